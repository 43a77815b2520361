//! Expressions as trees, and how they are written.

use std::fmt;

use super::dimension::Dimension;

/// A stretch of the text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Where it starts.
    pub offset: usize,
    /// How long it is.
    pub width: usize,
}

impl Span {
    /// The stretch from the start of `self` to the end of `last`.
    #[must_use]
    pub fn to(self, last: Self) -> Self {
        Self { offset: self.offset, width: (last.offset + last.width).saturating_sub(self.offset) }
    }
}

/// An expression and its place in the text. Two are equal if they say the same, wherever they stand.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub node: Node,
    /// Where it stands.
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
        /// At least 0: a minus is a [`Node::Negate`].
        value: f64,
        /// The unit in brackets.
        dimension: Dimension,
    },
    /// A datum of the job at hand, or with a type of that worker type.
    Data {
        /// Its slot in the vocabulary.
        slot: usize,
        /// Its name.
        name: String,
        /// The worker type, for data of worker types.
        of: Option<TypeRef>,
    },
    /// `throughput`: the effective throughput of the job at hand, affine in X.
    Throughput,
    /// `throughput_on(type)`: the part of it that comes from one worker type.
    ThroughputOn(TypeRef),
    /// `time_on(type)`: the share of time the job at hand runs there.
    TimeOn(TypeRef),
    /// −x.
    Negate(Box<Expr>),
    /// x + y and its kin.
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `log(x)` and its kin.
    Call(Function, Vec<Expr>),
    /// `min_over_jobs(x)` and its kin.
    Reduce(Reduction, Box<Expr>),
}

/// Which worker type is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeRef {
    /// `type`: the one that an enclosing reduction or constraint list ranges over.
    Bound,
    /// One by name.
    Named(String),
}

/// The four operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// Functions of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The natural logarithm.
    Log,
    /// The square root.
    Sqrt,
    /// 1/x.
    Inv,
    /// The smallest of its arguments.
    Min,
    /// The largest of its arguments.
    Max,
}

/// How a reduction folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The sum.
    Sum,
    /// The smallest, then among its optima the next smallest, and so on.
    LexicographicMin,
}

/// A fold over all jobs or all worker types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// How.
    pub fold: Fold,
    /// Over what.
    pub over: super::vocabulary::Subject,
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

impl Function {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Log, Self::Sqrt, Self::Inv, Self::Min, Self::Max];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Sqrt => "sqrt",
            Self::Inv => "inv",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

impl Reduction {
    /// The reduction of this name.
    pub fn find(name: &str) -> Option<Self> {
        use super::vocabulary::Subject::{Job, WorkerType};
        let (fold, over) = match name {
            "min_over_jobs" => (Fold::Min, Job),
            "max_over_jobs" => (Fold::Max, Job),
            "sum_over_jobs" => (Fold::Sum, Job),
            "lexicographic_min_over_jobs" => (Fold::LexicographicMin, Job),
            "min_over_worker_types" => (Fold::Min, WorkerType),
            "max_over_worker_types" => (Fold::Max, WorkerType),
            "sum_over_worker_types" => (Fold::Sum, WorkerType),
            _ => return None,
        };
        Some(Self { fold, over })
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use super::vocabulary::Subject;
        let fold = match self.fold {
            Fold::Min => "min",
            Fold::Max => "max",
            Fold::Sum => "sum",
            Fold::LexicographicMin => "lexicographic_min",
        };
        let over = match self.over {
            Subject::Job => "jobs",
            Subject::WorkerType => "worker_types",
        };
        write!(f, "{fold}_over_{over}")
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

impl Expr {
    /// Is there a node of this kind anywhere in it?
    pub fn contains(&self, kind: &impl Fn(&Node) -> bool) -> bool {
        kind(&self.node)
            || match &self.node {
                Node::Negate(inner) | Node::Reduce(_, inner) => inner.contains(kind),
                Node::Binary(_, left, right) => left.contains(kind) || right.contains(kind),
                Node::Call(_, arguments) => arguments.iter().any(|argument| argument.contains(kind)),
                _ => false,
            }
    }

    /// Does it depend on the allocation?
    pub fn varies(&self) -> bool {
        self.contains(&|node| matches!(node, Node::Throughput | Node::ThroughputOn(_) | Node::TimeOn(_)))
    }

    fn binds(&self) -> u8 {
        match &self.node {
            Node::Binary(operator, ..) => operator.binds(),
            _ => 3,
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, at_least: u8) -> fmt::Result {
        if self.binds() < at_least { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

impl fmt::Display for Expr {
    /// As one would type it, with no parentheses but those that are needed; reads back as the same tree.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Node::Number { value, dimension } if dimension.is_none() => write!(f, "{value:?}"),
            Node::Number { value, dimension } => write!(f, "{value:?}[{dimension}]"),
            Node::Data { name, of: None, .. } => f.write_str(name),
            Node::Data { name, of: Some(of), .. } => write!(f, "{name}({of})"),
            Node::Throughput => f.write_str("throughput"),
            Node::ThroughputOn(of) => write!(f, "throughput_on({of})"),
            Node::TimeOn(of) => write!(f, "time_on({of})"),
            Node::Negate(inner) => {
                f.write_str("-")?;
                inner.write(f, 3)
            }
            Node::Binary(operator, left, right) => {
                left.write(f, operator.binds())?;
                write!(f, " {} ", operator.symbol())?;
                right.write(f, operator.binds() + 1)
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
