//! Learning for schedulers: environments, actors, weights and training.
//!
//! **To decide.** An [`Actor`](actor::Actor) turns an observation into a probability for each allowed action; most are a
//! few dense layers ([`network`]). Weights are arrays with names ([`tensors`]), kept in files that say where they come
//! from ([`checkpoint`]); files of stable-baselines3 ([`stable_baselines`]) and ONNX models ([`onnx`]) are read too.
//! [`trained`] is a file of any of them. None of this needs a library for learning.
//!
//! **What is decided about** is an [`Environment`](environment::Environment), held to its contract by a [`checker`] that
//! any implementation can be run through. [`vectorized`] steps many copies in parallel; [`evaluation`] plays the episodes
//! of given seeds; [`textbook`] has small environments whose best return is known.
//!
//! **To train** takes the feature `train`: `training` has the networks with their gradients, and the algorithms.
//!
//! **What can be learned** is a [`system`] with a name. The published ones are in a crate of their own.
//!
//! Everything random is drawn from streams that only one copy of an environment has, so the same seed gives the same
//! weights on any number of threads, and after a stop and a resume.

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
