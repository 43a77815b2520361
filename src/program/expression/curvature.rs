//! Curvature by the rules of disciplined convex programming.
//!
//! Each part of an expression is constant, affine, convex or concave *as a function of the allocation*; the
//! rules give the curvature of a composition of such parts, and refuse a composition of unknown curvature. (Grant, Boyd, Ye:
//! Disciplined Convex Programming, 2006; restricted here to what policies need.)

use super::ast::{Expr, Node, Operator};
use super::check::facts;
use super::error::{ExpressionError, ExpressionErrorKind as Kind};
use super::functions::{Fold, Function, FunctionRule};
use super::sign::Sign;
use super::vocabulary::Vocabulary;

/// The curvature of an expression, simplest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Curvature {
    /// Constant: no allocation changes it.
    Constant,
    /// A linear form plus a constant.
    Affine,
    /// Convex.
    Convex,
    /// Concave.
    Concave,
}

impl Curvature {
    /// Name of the curvature in messages and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Affine => "affine",
            Self::Convex => "convex",
            Self::Concave => "concave",
        }
    }

    /// Whether it is constant, affine or convex.
    pub fn is_convex(self) -> bool {
        self != Self::Concave
    }

    /// Whether it is constant, affine or concave.
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

/// The curvature of an expression, and whether linear rows can express it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The curvature.
    pub curvature: Curvature,
    /// Whether the expression is piecewise linear.
    pub piecewise_linear: bool,
}

/// Works out the shape of an expression that [`facts`] has accepted.
///
/// # Errors
/// Where the rules do not show that it is convex or concave.
pub fn shape(expression: &Expr, vocabulary: &Vocabulary) -> Result<Shape, ExpressionError> {
    let of = |curvature| Shape { curvature, piecewise_linear: true };
    match &expression.node {
        Node::Number { .. } | Node::OwnedBy(_) | Node::Power(..) => Ok(of(Curvature::Constant)),
        Node::Data { slot, .. } => Ok(of(vocabulary.datum(*slot).curvature())),
        Node::Variable(variable, _) => Ok(of(variable.atom().curvature())),
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
            let known = facts(right.0, vocabulary)?.sign;
            if known.below {
                let (argument, known) = (right.0.to_string(), known.to_string());
                let kind = Kind::Domain { function: "inv", argument, known };
                return Err(ExpressionError::new(kind, right.0.span));
            }
            let inverse = composed("division", Function::Inv.rule(), right)?;
            scaled((right.0, inverse), left.0, facts(left.0, vocabulary)?.sign)
        }
        _ => {
            let kind = Kind::Quotient { left: left.0.to_string(), right: right.0.to_string() };
            Err(ExpressionError::new(kind, whole.span))
        }
    }
}

fn call(function: Function, arguments: &[Expr], vocabulary: &Vocabulary) -> Result<Shape, ExpressionError> {
    let shapes: Vec<Shape> =
        arguments.iter().map(|argument| shape(argument, vocabulary)).collect::<Result<_, _>>()?;
    let parts: Vec<Part<'_>> = arguments.iter().zip(shapes).collect();
    let name = || function.name().to_owned();
    if parts.iter().all(|(_, shape)| shape.curvature == Curvature::Constant) {
        return Ok(Shape { curvature: Curvature::Constant, piecewise_linear: true });
    }
    let rule = function.rule();
    if rule.several { extreme(name, &parts, rule.curvature) } else { composed(rule.name, rule, parts[0]) }
}

/// The shape of a function of one argument, which has the function's own curvature. The argument must be affine, or of
/// the same curvature if the function is increasing, of the opposite one if it is decreasing.
fn composed(name: &str, rule: &FunctionRule, (argument, shape): Part<'_>) -> Result<Shape, ExpressionError> {
    let (fits, expected) = if rule.increasing == (rule.curvature == Curvature::Concave) {
        (shape.curvature.is_concave(), "an affine or concave argument")
    } else {
        (shape.curvature.is_convex(), "an affine or convex argument")
    };
    if !fits {
        return Err(breaks(name, argument, shape.curvature, expected));
    }
    let piecewise_linear = rule.piecewise_linear && shape.piecewise_linear;
    Ok(Shape { curvature: rule.curvature, piecewise_linear })
}

/// The shape of the smallest (`result` concave) or the largest (`result` convex) of some parts.
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
