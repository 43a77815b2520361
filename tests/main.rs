//! Tests across module boundaries, in one binary so that it links once.

#[path = "suite/solver.rs"]
mod solver;
#[path = "suite/formulations.rs"]
mod formulations;
