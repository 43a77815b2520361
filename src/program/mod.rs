//! Optimization programs: from an objective's text to the standard form that solvers take.
//!
//! In: an expression and an [`Instance`](instance::Instance) of numbers. Out: a [`Program`](standard::Program).
//! It knows nothing of jobs' names, clusters or solvers.

pub mod instance;
pub mod standard;

pub use instance::{Column, Instance, InstanceCombination, Part};
pub use standard::{Affine, Cone, ConeKind, Namer, Program, Range, Sense};
