//! Policies: a problem in, a decision out.

pub mod decision;
pub mod explain;
pub mod round;
pub mod view;
pub mod heuristic;
pub mod objective;
pub mod naming;
pub mod program;

pub use decision::{
    Conflict, ConflictNames, Decision, ObjectiveReport, Policy, PolicyError, ProgramSize, RoundRules, Sense,
    SolveReport, SolveSeconds, TypeOrder, in_words,
};
pub use explain::{
    Binding, ConstraintExplanation, ConstraintRow, Explanation, Fixed, JobExplanation, Limit, TypeExplanation,
};
pub use program::{
    ClassDecision, GaveUp, ProgramOptions, ProgramPolicy, Purpose, Reason, Refine, Session, SessionError,
    SolvedProgram, Strategy, Unfit,
};
pub use round::{Location, Placed, Ran, Resizable, RoundDecision, RoundPolicy, RoundView};
pub use view::ThroughputView;
