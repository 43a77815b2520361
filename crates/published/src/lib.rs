//! Published learned schedulers, each complete: world, observations, rules, network and training.
//!
//! - [`deepshare`]: DeepShare (Ryu and Eo, ICPADS 2023, arXiv 2310.20209).
//! - [`dl2`]: DL2 (Peng et al., arXiv 1909.06040); [`elastic`] has its decisions at Gavel's measured speeds.
//! - [`dual_agent`]: the dual-agent scheduler (KDD '23, doi 10.1145/3580305.3599241), rebuilt.
//! - [`gangs`] and [`rounds`]: learned decisions inside the engine's simulator, beside every other policy.
//!
//! All of them play on one engine of rounds on servers, [`world`]. [`plugin`] makes them policies of a
//! [`Catalog`](apportion::Catalog): `kind: learned` in policy files.

#![expect(clippy::cast_possible_truncation, reason = "the numbers of networks are 32-bit floats")]
#![cfg_attr(test, expect(clippy::float_cmp, reason = "what must be the same is compared to the bit"))]

// Modules are declared in import order: each may mention only those above it.

pub mod world;
pub mod slots;
pub mod weights;
pub mod trainings;
pub mod document;
pub mod floor;
pub mod gangs;
pub mod deepshare;
pub mod dl2;
pub mod elastic;
pub mod dual_agent;
pub mod rounds;
pub mod systems;
#[cfg(feature = "train")]
pub mod training;
pub mod export;
pub mod plugin;

#[cfg(all(test, feature = "onnx"))]
mod onnx_tests;
