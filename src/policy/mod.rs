//! Policies: a problem in, a decision out.

pub mod decision;
pub mod heuristic;
pub mod round;

pub use decision::{
    Decision, ObjectiveReport, Policy, PolicyError, RoundRules, Sense, SolveReport, SolveSeconds, TypeOrder,
};
pub use round::{Placed, Ran, RoundDecision, RoundPolicy, RoundView};
