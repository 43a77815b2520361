//! The expression language of policy files: from text to a checked tree.
//!
//! In: text and a [`Vocabulary`]. Out: an [`Expr`] whose names, physical dimensions, signs and curvature were
//! checked, or an [`ExpressionError`] with its place. Numbers come later: nothing here knows an instance.

pub mod ast;
pub mod check;
pub mod curvature;
pub mod dimension;
pub mod error;
pub mod functions;
mod lexer;
pub mod parser;
pub mod sign;
pub mod vocabulary;

pub use ast::{Comparison, Expr, Node, Operator, Span, TypeRef, owned_by, owner_of};
pub use check::{Facts, facts};
pub use curvature::{Curvature, Shape, shape};
pub use dimension::Dimension;
pub use error::{ExpressionError, ExpressionErrorKind};
pub use functions::{Domain, Fold, Function, FunctionRule, Reduction};
pub use parser::{ComparedSides, Scope, parse, parse_comparison};
pub use sign::Sign;
pub use vocabulary::{Absent, Atom, Measure, Source, Subject, Variable, Vocabulary};

/// The longest expression that is read, in bytes. It also bounds how deep a tree can be.
pub const LENGTH_MAX: usize = 1000;

/// The deepest nesting of factors, by parentheses, arguments and minus signs, that is read.
pub const DEPTH_MAX: usize = 64;

#[cfg(test)]
mod tests;
