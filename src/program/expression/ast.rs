//! Expressions as trees, and their written form.

use std::fmt;

use super::dimension::Dimension;
use super::functions::{Function, Reduction};
use super::vocabulary::{OWNED_BY, Variable};

/// A stretch of the text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte of the span.
    pub offset: usize,
    /// The length of the span.
    pub width: usize,
}

impl Span {
    /// The stretch from the start of `self` to the end of `last`.
    #[must_use]
    pub fn to(self, last: Self) -> Self {
        Self { offset: self.offset, width: (last.offset + last.width).saturating_sub(self.offset) }
    }
}

/// An expression and its place in the text. Two expressions are equal if their trees are, wherever they stand.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The operation, atom or number at this place.
    pub node: Node,
    /// The place of the expression in the text.
    pub span: Span,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// `2`, `0.5[steps/s]`.
    Number {
        /// The number, at least 0: a minus is a [`Node::Negate`].
        value: f64,
        /// The unit in brackets; [`Dimension::NONE`] without one.
        dimension: Dimension,
    },
    /// A datum of the job at hand or, with a type, of that worker type.
    Data {
        /// The slot of the datum in the vocabulary.
        slot: usize,
        /// The name of the datum.
        name: String,
        /// The worker type, for a datum of worker types.
        of: Option<TypeRef>,
    },
    /// `throughput`, `time_on(type)`: a variable of the job at hand, of one worker type or of all.
    Variable(Variable, Option<TypeRef>),
    /// `owned_by("research")`: 1 if the job at hand belongs to this owner, or to one below it, else 0.
    OwnedBy(String),
    /// −x.
    Negate(Box<Expr>),
    /// x + y, x − y, x · y or x / y.
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `x^0.5`: data to a power that is a number.
    Power(Box<Expr>, f64),
    /// `log(x)`, `min(x, y)`…: a function of its arguments.
    Call(Function, Vec<Expr>),
    /// `min_over_jobs(x)`…: a fold of x over all jobs or all worker types.
    Reduce(Reduction, Box<Expr>),
}

/// A reference to a worker type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeRef {
    /// `type`: the worker type that an enclosing reduction or constraint list ranges over.
    Bound,
    /// A worker type by its name.
    Named(String),
}

/// The four arithmetic operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// A comparison of two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
}

impl Operator {
    fn symbol(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
        }
    }

    fn binds(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 1,
            Self::Multiply | Self::Divide => 2,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtMost => "<=",
            Self::AtLeast => ">=",
            Self::Equal => "==",
        })
    }
}

impl fmt::Display for TypeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound => f.write_str("type"),
            Self::Named(name) => write!(f, "\"{name}\""),
        }
    }
}

/// The datum that marks an owner's jobs as it is written, `owned_by("research")`: its name in an [`Instance`](crate::program::Instance).
pub fn owned_by(owner: &str) -> String {
    let quote = if owner.contains('"') { '\'' } else { '"' };
    format!("{OWNED_BY}({quote}{owner}{quote})")
}

/// The owner in the name of a datum, if that is written as [`owned_by`] writes it.
pub fn owner_of(datum: &str) -> Option<&str> {
    let quoted = datum.strip_prefix(OWNED_BY)?.strip_prefix('(')?.strip_suffix(')')?;
    let quote = |text: &str| text.starts_with('"') || text.starts_with('\'');
    (quoted.len() >= 2 && quote(quoted)).then(|| &quoted[1..quoted.len() - 1])
}

impl Expr {
    /// Calls `visit` with each node of the expression, each before its parts.
    pub fn each<'e>(&'e self, visit: &mut impl FnMut(&'e Node)) {
        visit(&self.node);
        match &self.node {
            Node::Negate(inner) | Node::Power(inner, _) | Node::Reduce(_, inner) => inner.each(visit),
            Node::Binary(_, left, right) => {
                left.each(visit);
                right.each(visit);
            }
            Node::Call(_, arguments) => arguments.iter().for_each(|argument| argument.each(visit)),
            Node::Number { .. } | Node::Data { .. } | Node::Variable(..) | Node::OwnedBy(_) => {}
        }
    }

    /// Whether the expression contains a node of this kind.
    pub fn contains(&self, kind: &impl Fn(&Node) -> bool) -> bool {
        kind(&self.node)
            || match &self.node {
                Node::Negate(inner) | Node::Power(inner, _) | Node::Reduce(_, inner) => inner.contains(kind),
                Node::Binary(_, left, right) => left.contains(kind) || right.contains(kind),
                Node::Call(_, arguments) => arguments.iter().any(|argument| argument.contains(kind)),
                _ => false,
            }
    }

    /// Whether the expression depends on the allocation.
    pub fn varies(&self) -> bool {
        self.contains(&|node| matches!(node, Node::Variable(..)))
    }

    fn binds(&self) -> u8 {
        match &self.node {
            Node::Binary(operator, ..) => operator.binds(),
            Node::Negate(_) | Node::Power(..) => 3,
            _ => 4,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, at_least: u8) -> fmt::Result {
        if self.binds() < at_least { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

impl fmt::Display for Expr {
    /// Writes the expression as one would type it, with only the parentheses that are needed; it reads back as the same tree.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Node::Number { value, dimension } if dimension.is_none() => write!(f, "{value:?}"),
            Node::Number { value, dimension } => write!(f, "{value:?}[{dimension}]"),
            Node::Data { name, of: None, .. } => f.write_str(name),
            Node::Data { name, of: Some(of), .. } => write!(f, "{name}({of})"),
            Node::Variable(variable, None) => f.write_str(&variable.atom().name),
            Node::Variable(variable, Some(of)) => write!(f, "{}({of})", variable.atom().name),
            Node::OwnedBy(owner) => f.write_str(&owned_by(owner)),
            Node::Negate(inner) => {
                f.write_str("-")?;
                inner.write(f, 3)
            }
            Node::Binary(operator, left, right) => {
                left.write(f, operator.binds())?;
                write!(f, " {} ", operator.symbol())?;
                right.write(f, operator.binds() + 1)
            }
            Node::Power(base, exponent) => {
                base.write(f, 4)?;
                write!(f, "^{exponent:?}")
            }
            Node::Call(function, arguments) => {
                write!(f, "{}(", function.name())?;
                for (position, argument) in arguments.iter().enumerate() {
                    write!(f, "{}{argument}", if position == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
            Node::Reduce(reduction, inner) => write!(f, "{reduction}({inner})"),
        }
    }
}
