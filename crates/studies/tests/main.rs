//! Tests on the instances of the benchmark, in one binary so that it links once.

#[path = "suite/session.rs"]
mod session;
#[path = "suite/solver.rs"]
mod solver;
