//! Solvers of linear and conic programs, and a certificate that trusts none of them.
//!
//! In: a [`Program`](crate::program::Program). Out: a [`Solution`] with its evidence. Nothing here knows of jobs.
//! [`solve_certified`] is the way in; [`registry`] has the backends by name; [`conformance`] is the suite of tests
//! that every backend must pass.

pub(crate) mod tolerances;
pub mod timing;
pub mod interrupt;
pub mod backend;
mod intake;
mod scaling;
pub mod certificate;
mod normal;
pub mod centre;
pub mod separable;
mod forced;
pub mod chain;
#[cfg(feature = "highs")]
pub mod highs;
pub mod simplex;
pub mod clarabel;
#[cfg(feature = "good_lp")]
pub mod good_lp;
pub mod registry;
mod proof;
mod conflict;
pub mod conformance;

#[cfg(test)]
pub(crate) mod draws;

pub use backend::{
    Backend, Basis, BasisStatus, Feature, Limits, Solution, SolveError, Termination, WarmStart,
};
pub use certificate::AnswerCertificate;
pub use chain::{Certified, solve_certified};
pub use conflict::{ConflictSize, ConflictingRows, conflict};
pub(crate) use forced::has_flat_cone;
pub(crate) use intake::check;
pub use interrupt::Interrupt;
pub use proof::without_optimum;
