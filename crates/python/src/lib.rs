//! The engine of apportion as a Python package: the part in Rust, `apportion._native`.
//!
//! It exchanges numpy arrays, numbers and text, and has no files of its own; the functions that users call are written in
//! Python on top of it, in `python/apportion`. Long work runs without Python's lock, very long work on a thread of its own,
//! so that Ctrl-C is received.

#![expect(clippy::needless_pass_by_value, reason = "what Python hands over is this side's")]

mod errors;
mod arrays;
mod ending;
mod attended;
mod options;
mod arguments;
mod problem;
mod decision;
mod explanation;
mod function;
mod policy;
mod session;
mod simulation;
mod sweep;
mod traces;
mod environment;

use pyo3::prelude::*;

/// The module `apportion._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::decision::{Decision, ObjectiveCertificate};
    #[pymodule_export]
    use crate::ending::_end;
    #[pymodule_export]
    use crate::environment::{Environment, VectorEnvironment, systems};
    #[pymodule_export]
    use crate::explanation::Program;
    #[pymodule_export]
    use crate::policy::{Policy, document, policies};
    #[pymodule_export]
    use crate::problem::Problem;
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::simulation::{metrics, simulate};
    #[pymodule_export]
    use crate::sweep::{Results, sweep};
    #[pymodule_export]
    use crate::traces::read_trace;
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
