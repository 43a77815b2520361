//! Optimization programs: from an objective's text to the standard form that solvers take.
//!
//! In: an expression and an [`Instance`] of numbers. Out: a [`Program`] and what its columns, rows and value mean.
//! Nothing here knows jobs' names, clusters or solvers.

pub mod standard;
pub mod text;
pub mod expression;
pub mod instance;
pub mod inversion;
pub mod objective;
mod names;
mod at;
pub mod binding;
mod terms;
mod evaluation;
mod range;
pub mod program_map;
mod affine;
mod builder;
mod sides;
pub mod formulate;
pub mod demand;
pub mod singles;
pub mod linear_objective;
pub mod droppable;
pub mod classes;
pub mod groups;

pub use binding::{BindError, Binding, BoundObjective, Got, Point, Term};
pub use classes::{Classes, Unlike};
pub use demand::Demand;
pub use droppable::DROPPABLE_SLACK;
pub use formulate::HOLD_SLACK;
pub use groups::Groups;
pub use instance::{Column, Instance, InstancePair, Part};
pub use inversion::{Bound, Inversion, LevelCoefficients, LevelForm, Levels, Required};
pub use linear_objective::{LinearObjective, LinearSum, LinearSumOfJobs};
pub use objective::{Constraint, ConstraintText, Objective, ObjectiveError, ObjectiveText, Place, Route};
pub use program_map::{Auxiliary, AuxiliaryRole, Formulation, RowRole, ValueMap};
pub use sides::Sides;
pub use singles::{Goal, LogarithmicSum, Logarithms, Singles};
pub use standard::{Affine, Cone, ConeKind, Namer, Program, Range, Sense};

#[cfg(test)]
mod vocabulary_tests;
