//! Policies: a problem in, a decision out.

pub mod decision;
pub mod round;
pub mod heuristic;

pub use decision::{
    Decision, ObjectiveReport, Policy, PolicyError, RoundRules, Sense, SolveReport, SolveSeconds, TypeOrder,
};
pub use round::{Placed, Ran, RoundDecision, RoundPolicy, RoundView};
