//! Learning for schedulers: environments, actors, weights and training.
//!
//! **Decisions.** An [`Actor`](actor::Actor) turns an observation into a probability for each allowed action; most are a
//! few dense layers ([`network`]). Weights are named arrays ([`tensors`]) in files that say where they come from
//! ([`checkpoint`]); files of stable-baselines3 ([`stable_baselines`]) and ONNX models ([`onnx`]) are read too.
//! [`trained`] reads checkpoints and ONNX models alike. None of this needs a library for learning.
//!
//! **Environments.** An [`Environment`](environment::Environment) is controlled by actors; a [`checker`] checks any
//! implementation against the contract. [`vectorized`] steps many copies in parallel; [`evaluation`] plays the episodes of
//! given seeds; [`textbook`] has small environments whose best return is known.
//!
//! **Training** needs the feature `train`: `training` has the networks with their gradients, and the algorithms.
//!
//! **Systems.** A [`system`] is something that can be learned, with a name. The published ones are in a crate of their own.
//!
//! Every copy of an environment draws from streams of its own, so the same seed gives the same weights on any number of threads,
//! and after a stop and a resume.

#![expect(clippy::cast_possible_truncation, reason = "the numbers of networks are 32-bit floats")]
#![cfg_attr(test, expect(clippy::float_cmp, reason = "what must be the same is compared to the bit"))]

// Modules are declared in import order: each may mention only those above it.

pub mod environment;
pub mod checker;
pub mod textbook;
pub mod actor;
pub mod tensors;
pub mod network;
pub mod vectorized;
pub mod system;
pub mod evaluation;
pub mod checkpoint;
pub mod stable_baselines;
pub mod onnx;
pub mod trained;
#[cfg(feature = "train")]
pub mod training;
