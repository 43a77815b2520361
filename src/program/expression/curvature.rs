//! Curvature by the rules of disciplined convex programming.
//!
//! Each part of an expression is constant, affine, convex or concave *as a function of the allocation*; the
//! rules say what a composition of such parts is, and refuse what they cannot tell. (Grant, Boyd, Ye:
//! Disciplined Convex Programming, 2006; restricted here to what policies need.)

use super::ast::{Expr, Fold, Function, Node, Operator};
use super::check::facts;
use super::error::{ExpressionError, ExpressionErrorKind as Kind};
use super::sign::Sign;
use super::vocabulary::Vocabulary;

/// The curvature of an expression, simplest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Curvature {
    /// No allocation changes it.
    Constant,
    /// A linear form plus a constant.
    Affine,
    /// Convex.
    Convex,
    /// Concave.
    Concave,
}

impl Curvature {
    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Affine => "affine",
            Self::Convex => "convex",
            Self::Concave => "concave",
        }
    }

    /// Constant, affine or convex.
    pub fn is_convex(self) -> bool {
        self != Self::Concave
    }

    /// Constant, affine or concave.
    pub fn is_concave(self) -> bool {
        self != Self::Convex
    }

    fn negated(self) -> Self {
        match self {
            Self::Convex => Self::Concave,
            Self::Concave => Self::Convex,
            other => other,
        }
    }
}

/// Curvature, and whether linear rows can say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The curvature.
    pub curvature: Curvature,
    /// Is it piecewise linear?
    pub piecewise_linear: bool,
}

/// Works out the shape of an expression that [`facts`] has accepted.
///
/// # Errors
/// Where the rules cannot tell it is convex or concave.
pub fn shape(expression: &Expr, vocabulary: &Vocabulary) -> Result<Shape, ExpressionError> {
    let of = |curvature| Shape { curvature, piecewise_linear: true };
    match &expression.node {
        Node::Number { .. } | Node::Data { .. } => Ok(of(Curvature::Constant)),
        Node::Throughput | Node::ThroughputOn(_) | Node::TimeOn(_) => Ok(of(Curvature::Affine)),
        Node::Negate(inner) => {
            let inner = shape(inner, vocabulary)?;
            Ok(Shape { curvature: inner.curvature.negated(), ..inner })
        }
        Node::Binary(operator, left, right) => {
            let both = (shape(left, vocabulary)?, shape(right, vocabulary)?);
            match operator {
                Operator::Add => sum(expression, (left, both.0), (right, both.1)),
                Operator::Subtract => {
                    let negated = Shape { curvature: both.1.curvature.negated(), ..both.1 };
                    sum(expression, (left, both.0), (right, negated))
                }
                Operator::Multiply => product(expression, (left, both.0), (right, both.1), vocabulary),
                Operator::Divide => quotient(expression, (left, both.0), (right, both.1), vocabulary),
            }
        }
        Node::Call(function, arguments) => call(*function, arguments, vocabulary),
        Node::Reduce(reduction, inner) => {
            let shape = shape(inner, vocabulary)?;
            let name = || reduction.to_string();
            match reduction.fold {
                Fold::Sum => Ok(shape),
                Fold::Min | Fold::LexicographicMin => extreme(name, &[(inner, shape)], Curvature::Concave),
                Fold::Max => extreme(name, &[(inner, shape)], Curvature::Convex),
            }
        }
    }
}

type Part<'a> = (&'a Expr, Shape);

fn sum(whole: &Expr, left: Part<'_>, right: Part<'_>) -> Result<Shape, ExpressionError> {
    let piecewise_linear = left.1.piecewise_linear && right.1.piecewise_linear;
    let (one, other) = (left.1.curvature, right.1.curvature);
    if one != other && one.min(other) >= Curvature::Convex {
        let (convex, concave) = if one == Curvature::Convex { (left, right) } else { (right, left) };
        let (convex, concave) = (convex.0.to_string(), concave.0.to_string());
        let kind = Kind::Mixed { part: whole.to_string(), convex, concave };
        return Err(ExpressionError::new(kind, whole.span));
    }
    let curvature = one.max(other);
    Ok(Shape { curvature, piecewise_linear })
}

/// The shape of `factor · part`, where the factor is data of this sign.
fn scaled(part: Part<'_>, factor: &Expr, sign: Sign) -> Result<Shape, ExpressionError> {
    let (expression, shape) = part;
    match shape.curvature {
        Curvature::Constant | Curvature::Affine => Ok(shape),
        _ if sign.is_non_negative() => Ok(shape),
        curvature if sign.is_non_positive() => Ok(Shape { curvature: curvature.negated(), ..shape }),
        _ => {
            let kind = Kind::SignUnknown { part: expression.to_string(), factor: factor.to_string() };
            Err(ExpressionError::new(kind, factor.span))
        }
    }
}

fn product(
    whole: &Expr,
    left: Part<'_>,
    right: Part<'_>,
    vocabulary: &Vocabulary,
) -> Result<Shape, ExpressionError> {
    match (left.1.curvature, right.1.curvature) {
        (Curvature::Constant, _) => scaled(right, left.0, facts(left.0, vocabulary)?.sign),
        (_, Curvature::Constant) => scaled(left, right.0, facts(right.0, vocabulary)?.sign),
        _ => {
            let kind = Kind::Product { left: left.0.to_string(), right: right.0.to_string() };
            Err(ExpressionError::new(kind, whole.span))
        }
    }
}

fn quotient(
    whole: &Expr,
    left: Part<'_>,
    right: Part<'_>,
    vocabulary: &Vocabulary,
) -> Result<Shape, ExpressionError> {
    match (left.1.curvature, right.1.curvature) {
        (_, Curvature::Constant) => scaled(left, right.0, facts(right.0, vocabulary)?.sign),
        (Curvature::Constant, _) => {
            let inverse = inverse("division", right, vocabulary)?;
            scaled((right.0, inverse), left.0, facts(left.0, vocabulary)?.sign)
        }
        _ => {
            let kind = Kind::Quotient { left: left.0.to_string(), right: right.0.to_string() };
            Err(ExpressionError::new(kind, whole.span))
        }
    }
}

/// The shape of 1/x: convex where x is concave and at least 0.
fn inverse(
    function: &str,
    (argument, shape): Part<'_>,
    vocabulary: &Vocabulary,
) -> Result<Shape, ExpressionError> {
    if facts(argument, vocabulary)?.sign.below {
        let known = facts(argument, vocabulary)?.sign.to_string();
        let kind = Kind::Domain { function: "inv", argument: argument.to_string(), known };
        return Err(ExpressionError::new(kind, argument.span));
    }
    if shape.curvature.is_concave() {
        return Ok(Shape { curvature: Curvature::Convex, piecewise_linear: false });
    }
    Err(breaks(function, argument, shape.curvature, "an affine or concave argument"))
}

fn call(function: Function, arguments: &[Expr], vocabulary: &Vocabulary) -> Result<Shape, ExpressionError> {
    let shapes: Vec<Shape> =
        arguments.iter().map(|argument| shape(argument, vocabulary)).collect::<Result<_, _>>()?;
    let parts: Vec<Part<'_>> = arguments.iter().zip(shapes).collect();
    let name = || function.name().to_owned();
    if parts.iter().all(|(_, shape)| shape.curvature == Curvature::Constant) {
        return Ok(Shape { curvature: Curvature::Constant, piecewise_linear: true });
    }
    match function {
        Function::Min => extreme(name, &parts, Curvature::Concave),
        Function::Max => extreme(name, &parts, Curvature::Convex),
        Function::Inv => inverse("inv", parts[0], vocabulary),
        Function::Log | Function::Sqrt => {
            let (argument, shape) = parts[0];
            if shape.curvature.is_concave() {
                return Ok(Shape { curvature: Curvature::Concave, piecewise_linear: false });
            }
            Err(breaks(function.name(), argument, shape.curvature, "an affine or concave argument"))
        }
    }
}

/// The shape of a smallest (concave) or largest (convex) of parts.
fn extreme(
    name: impl Fn() -> String,
    parts: &[Part<'_>],
    result: Curvature,
) -> Result<Shape, ExpressionError> {
    let (fits, expected): (fn(Curvature) -> bool, _) = match result {
        Curvature::Concave => (Curvature::is_concave, "affine or concave arguments"),
        _ => (Curvature::is_convex, "affine or convex arguments"),
    };
    for (argument, shape) in parts {
        if !fits(shape.curvature) {
            return Err(breaks(&name(), argument, shape.curvature, expected));
        }
    }
    let constant = parts.iter().all(|(_, shape)| shape.curvature == Curvature::Constant);
    let curvature = if constant { Curvature::Constant } else { result };
    Ok(Shape { curvature, piecewise_linear: parts.iter().all(|(_, shape)| shape.piecewise_linear) })
}

fn breaks(function: &str, argument: &Expr, found: Curvature, expected: &'static str) -> ExpressionError {
    let (function, text) = (function.to_owned(), argument.to_string());
    let kind = Kind::Curvature { function, argument: text, found: found.name(), expected };
    ExpressionError::new(kind, argument.span)
}
