//! Solvers: what each takes, what each answers, and a certificate that trusts none of them.
//!
//! In: a [`Program`](crate::program::Program). Out: a [`Solution`] with its evidence. Nothing here knows of jobs.

pub mod backend;

pub use backend::{
    Backend, Basis, BasisStatus, Feature, Limits, Solution, SolveError, Termination, WarmStart,
};
