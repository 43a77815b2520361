//! The dimension and the sign of an expression, and whether it depends on the allocation, before there are numbers.

use super::ast::{Expr, Node, Operator};
use super::curvature::Curvature;
use super::dimension::Dimension;
use super::error::{ExpressionError, ExpressionErrorKind as Kind};
use super::functions::{Domain, Fold, Function};
use super::sign::Sign;
use super::vocabulary::{Atom, OWNED_BY_ATOM, Vocabulary};

/// The properties of an expression that are known before there are numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The dimension; `None` for a literal 0, which agrees with any.
    pub dimension: Option<Dimension>,
    /// The sign, whatever the allocation.
    pub sign: Sign,
    /// Whether it depends on the allocation.
    pub varies: bool,
}

impl Facts {
    fn of(atom: &Atom) -> Self {
        let varies = atom.curvature() != Curvature::Constant;
        Self { dimension: Some(atom.dimension), sign: atom.sign, varies }
    }
}

/// Works out the facts of an expression, and refuses one that makes no sense whatever its numbers are.
///
/// # Errors
/// Where dimensions differ that must agree, a divisor may be 0, or the argument of a function or the base of a power may
/// leave its domain.
pub fn facts(expression: &Expr, vocabulary: &Vocabulary) -> Result<Facts, ExpressionError> {
    match &expression.node {
        Node::Number { value, dimension } => {
            let any = *value == 0.0 && dimension.is_none();
            let dimension = (!any).then_some(*dimension);
            Ok(Facts { dimension, sign: Sign::of(*value), varies: false })
        }
        Node::Data { slot, .. } => Ok(Facts::of(vocabulary.datum(*slot))),
        Node::Variable(variable, _) => Ok(Facts::of(variable.atom())),
        Node::OwnedBy(_) => Ok(Facts::of(&OWNED_BY_ATOM)),
        Node::Negate(inner) => {
            let inner = facts(inner, vocabulary)?;
            Ok(Facts { sign: inner.sign.negated(), ..inner })
        }
        Node::Binary(operator, left, right) => {
            let (of_left, of_right) = (facts(left, vocabulary)?, facts(right, vocabulary)?);
            binary(*operator, of_left, of_right, right, expression)
        }
        Node::Power(base, exponent) => power(base, *exponent, vocabulary),
        Node::Call(function, arguments) => call(*function, arguments, expression, vocabulary),
        Node::Reduce(reduction, inner) => {
            let inner = facts(inner, vocabulary)?;
            let sign = if reduction.fold == Fold::Sum { inner.sign.plus(inner.sign) } else { inner.sign };
            Ok(Facts { sign, ..inner })
        }
    }
}

/// The common dimension of two expressions; a literal 0 agrees with any.
///
/// # Errors
/// If they have none in common.
pub(crate) fn common_dimension(
    operation: &'static str,
    left: Facts,
    right: Facts,
    whole: &Expr,
) -> Result<Option<Dimension>, ExpressionError> {
    match (left.dimension, right.dimension) {
        (Some(one), Some(other)) if one != other => {
            let kind = Kind::Dimensions { operation, left: one, right: other };
            Err(ExpressionError::new(kind, whole.span))
        }
        (one, other) => Ok(one.or(other)),
    }
}

fn binary(
    operator: Operator,
    left: Facts,
    right: Facts,
    divisor: &Expr,
    whole: &Expr,
) -> Result<Facts, ExpressionError> {
    let varies = left.varies || right.varies;
    let plain = |facts: Facts| facts.dimension.unwrap_or(Dimension::NONE);
    match operator {
        Operator::Add | Operator::Subtract => {
            let (operation, sign) = match operator {
                Operator::Add => ("sum", left.sign.plus(right.sign)),
                _ => ("difference", left.sign.plus(right.sign.negated())),
            };
            let dimension = common_dimension(operation, left, right, whole)?;
            Ok(Facts { dimension, sign, varies })
        }
        Operator::Multiply => {
            let dimension = Some(plain(left).times(plain(right)));
            Ok(Facts { dimension, sign: left.sign.times(right.sign), varies })
        }
        Operator::Divide => {
            // A divisor that depends on the allocation may touch 0: the objective keeps it above.
            let unsafe_data = !right.varies && right.sign.zero;
            let unsafe_variable = right.varies && right.sign.below && right.sign.above;
            if unsafe_data || unsafe_variable {
                let known = right.sign.to_string();
                let kind = Kind::DivisionByZero { divisor: divisor.to_string(), known };
                return Err(ExpressionError::new(kind, divisor.span));
            }
            let dimension = Some(plain(left).over(plain(right)));
            Ok(Facts { dimension, sign: left.sign.over(right.sign), varies })
        }
    }
}

fn power(base: &Expr, exponent: f64, vocabulary: &Vocabulary) -> Result<Facts, ExpressionError> {
    let known = facts(base, vocabulary)?;
    if known.varies {
        return Err(ExpressionError::new(Kind::PowerOfVariable(base.to_string()), base.span));
    }
    if let Some(dimension) = known.dimension.filter(|dimension| !dimension.is_none()) {
        return Err(ExpressionError::new(
            Kind::PowerDimension { base: base.to_string(), dimension },
            base.span,
        ));
    }
    let below_zero = exponent <= 0.0;
    if known.sign.below || (below_zero && known.sign.zero) {
        let expected = if below_zero { "above 0" } else { "at least 0" };
        let (text, known) = (base.to_string(), known.sign.to_string());
        return Err(ExpressionError::new(
            Kind::PowerDomain { base: text, exponent, expected, known },
            base.span,
        ));
    }
    Ok(Facts { dimension: Some(Dimension::NONE), ..known })
}

fn call(
    function: Function,
    arguments: &[Expr],
    whole: &Expr,
    vocabulary: &Vocabulary,
) -> Result<Facts, ExpressionError> {
    let first = facts(&arguments[0], vocabulary)?;
    if let Some(domain) = function.rule().domain {
        check_domain(function, domain, &arguments[0], first)?;
    }
    match function {
        Function::Min | Function::Max => {
            let mut all = first;
            for argument in &arguments[1..] {
                let next = facts(argument, vocabulary)?;
                let dimension = common_dimension("comparison", all, next, whole)?;
                let sign = match function {
                    Function::Min => all.sign.min(next.sign),
                    _ => all.sign.max(next.sign),
                };
                all = Facts { dimension, sign, varies: all.varies || next.varies };
            }
            Ok(all)
        }
        Function::Log => Ok(Facts { dimension: Some(Dimension::NONE), sign: Sign::ANY, ..first }),
        Function::Sqrt => {
            let dimension = first.dimension.unwrap_or(Dimension::NONE);
            let Some(root) = dimension.root() else {
                return Err(ExpressionError::new(Kind::RootDimension(dimension), whole.span));
            };
            Ok(Facts { dimension: Some(root), ..first })
        }
        Function::Inv => {
            let dimension = Dimension::NONE.over(first.dimension.unwrap_or(Dimension::NONE));
            Ok(Facts { dimension: Some(dimension), sign: Sign::POSITIVE, ..first })
        }
    }
}

/// Refuses an argument that may be below 0, and data that may be 0 where the function has no value at 0.
fn check_domain(
    function: Function,
    domain: Domain,
    argument: &Expr,
    known: Facts,
) -> Result<(), ExpressionError> {
    let excludes_zero = domain == Domain::Positive;
    if known.sign.below || (excludes_zero && !known.varies && known.sign.zero) {
        let (function, argument_text) = (function.name(), argument.to_string());
        let kind = Kind::Domain { function, argument: argument_text, known: known.sign.to_string() };
        return Err(ExpressionError::new(kind, argument.span));
    }
    Ok(())
}
