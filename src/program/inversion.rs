//! Level inversion: the throughput that a job requires for its part of a min-max objective to reach a level.
//!
//! Under `min_over_jobs` and `max_over_jobs` an expression that names `throughput` once is a chain of steps from the whole
//! down to the throughput. Undone one by one, they turn "the expression reaches level t" into "the throughput is at least
//! `required(t)`", which is linear in the allocation however curved the expression is. Another affine form of the
//! allocation, such as `throughput_on(type)`, may stand in the place of `throughput`; whatever is said of throughputs here
//! holds of it, too.

use super::expression::{
    Curvature, Expr, ExpressionError, Function, Node, Operator, Variable, Vocabulary, facts, shape,
};

/// The form of the required throughput as a function of the level t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelForm {
    /// a + b·t: one linear program with t as a column.
    Affine,
    /// a + b/t: one linear program with 1/t as a column.
    AffineInInverse,
    /// Anything else: one linear program per level tried.
    General,
}

/// The side of a bound on a value y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// y ≥ level.
    AtLeast,
    /// y ≤ level.
    AtMost,
}

impl Bound {
    fn flipped(self) -> Self {
        match self {
            Self::AtLeast => Self::AtMost,
            Self::AtMost => Self::AtLeast,
        }
    }

    fn holds(self, value: f64, level: f64) -> bool {
        match self {
            Self::AtLeast => value >= level,
            Self::AtMost => value <= level,
        }
    }
}

/// The operation of a step on x, with its datum d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// x + d
    Plus,
    /// x − d
    Minus,
    /// d − x
    From,
    /// x · d
    Times,
    /// x / d
    Over,
    /// d / x, x ≥ 0
    Under,
    /// −x
    Negate,
    /// log x
    Log,
    /// √x
    Sqrt,
    /// min(x, d)
    Min,
    /// max(x, d)
    Max,
}

/// A step and the expression of its datum, if it has one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    pub(crate) datum: Option<Expr>,
}

/// A chain of invertible steps from an expression down to its throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct Inversion {
    pub(crate) steps: Vec<Step>,
    throughput: Expr,
    pub(crate) bound: Bound,
    form: LevelForm,
}

impl Inversion {
    /// Finds the chain of an expression of one job, if there is one and the whole is on the side `bound` of a level
    /// exactly where the throughput is *at least* something.
    pub(crate) fn trace(expression: &Expr, bound: Bound, vocabulary: &Vocabulary) -> Option<Self> {
        let (steps, throughput) = chain(expression, vocabulary)?;
        let shape = shape(&throughput, vocabulary).ok()?;
        if shape.curvature != Curvature::Affine {
            return None;
        }
        let mut towards = bound;
        for step in &steps {
            if step.flips(vocabulary).ok()?? {
                towards = towards.flipped();
            }
        }
        let form = form(&steps);
        (towards == Bound::AtLeast).then_some(Self { steps, throughput, bound, form })
    }

    /// The end of the chain: `throughput`, or the affine form that stands in its place.
    pub fn throughput(&self) -> &Expr {
        &self.throughput
    }

    /// Whether the end of the chain is the job's effective throughput itself.
    pub fn is_of_throughput(&self) -> bool {
        self.throughput.node == Node::Variable(Variable::Throughput, None)
    }

    /// The form of the required throughput as a function of the level.
    pub fn form(&self) -> LevelForm {
        self.form
    }
}

impl Step {
    /// Whether a larger x makes the result smaller; `None` if that depends on numbers.
    fn flips(&self, vocabulary: &Vocabulary) -> Result<Option<bool>, ExpressionError> {
        Ok(match self.kind {
            StepKind::Plus
            | StepKind::Minus
            | StepKind::Log
            | StepKind::Sqrt
            | StepKind::Min
            | StepKind::Max => Some(false),
            StepKind::From | StepKind::Negate => Some(true),
            StepKind::Times | StepKind::Over | StepKind::Under => {
                let Some(datum) = &self.datum else { return Ok(None) };
                let sign = facts(datum, vocabulary)?.sign;
                let negative = match (sign.is_non_negative(), sign.is_non_positive()) {
                    (true, _) => false,
                    (_, true) => true,
                    _ => return Ok(None),
                };
                Some(negative != (self.kind == StepKind::Under))
            }
        })
    }
}

/// The steps from the whole down to the first part that is not an operation on one varying part and data, and that part.
fn chain(expression: &Expr, vocabulary: &Vocabulary) -> Option<(Vec<Step>, Expr)> {
    let non_negative = |part: &Expr| facts(part, vocabulary).is_ok_and(|facts| facts.sign.is_non_negative());
    let mut steps = Vec::new();
    let mut rest = expression;
    loop {
        let (step, inner): (Step, &Expr) = match &rest.node {
            Node::Negate(inner) => (Step { kind: StepKind::Negate, datum: None }, inner),
            Node::Binary(operator, left, right) => match (left.varies(), right.varies()) {
                (true, false) => {
                    let kind = match operator {
                        Operator::Add => StepKind::Plus,
                        Operator::Subtract => StepKind::Minus,
                        Operator::Multiply => StepKind::Times,
                        Operator::Divide => StepKind::Over,
                    };
                    (Step { kind, datum: Some((**right).clone()) }, left)
                }
                (false, true) => {
                    let kind = match operator {
                        Operator::Add => StepKind::Plus,
                        Operator::Subtract => StepKind::From,
                        Operator::Multiply => StepKind::Times,
                        Operator::Divide if non_negative(right) => StepKind::Under,
                        Operator::Divide => return None,
                    };
                    (Step { kind, datum: Some((**left).clone()) }, right)
                }
                _ => return Some((steps, rest.clone())),
            },
            Node::Call(function, arguments) => {
                let (variable, data): (Vec<&Expr>, Vec<&Expr>) =
                    arguments.iter().partition(|argument| argument.varies());
                let [inner] = variable[..] else { return Some((steps, rest.clone())) };
                (called(*function, &data, rest), inner)
            }
            _ => return Some((steps, rest.clone())),
        };
        steps.push(step);
        rest = inner;
    }
}

/// The step of a function of one varying argument and data.
fn called(function: Function, data: &[&Expr], whole: &Expr) -> Step {
    let folded = || match data {
        [one] => (*one).clone(),
        several => {
            let arguments = several.iter().map(|part| (*part).clone()).collect();
            Expr { node: Node::Call(function, arguments), span: whole.span }
        }
    };
    match function {
        Function::Log => Step { kind: StepKind::Log, datum: None },
        Function::Sqrt => Step { kind: StepKind::Sqrt, datum: None },
        Function::Inv => {
            let one = Node::Number { value: 1.0, dimension: super::expression::Dimension::NONE };
            Step { kind: StepKind::Under, datum: Some(Expr { node: one, span: whole.span }) }
        }
        Function::Min => Step { kind: StepKind::Min, datum: Some(folded()) },
        Function::Max => Step { kind: StepKind::Max, datum: Some(folded()) },
    }
}

/// The form of the level after all steps are undone: affine in t, or in 1/t if no constant is added before the inverse.
fn form(steps: &[Step]) -> LevelForm {
    let (mut form, mut pure) = (LevelForm::Affine, true);
    for step in steps {
        match step.kind {
            StepKind::Plus | StepKind::Minus | StepKind::From => pure = false,
            StepKind::Times | StepKind::Over | StepKind::Negate => {}
            StepKind::Under if pure => {
                form = match form {
                    LevelForm::Affine => LevelForm::AffineInInverse,
                    LevelForm::AffineInInverse => LevelForm::Affine,
                    LevelForm::General => return LevelForm::General,
                }
            }
            _ => return LevelForm::General,
        }
    }
    form
}

/// A required throughput, and its derivative by the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Required {
    /// The least throughput, at least 0, in steps/s; +∞ if none reaches the level.
    pub value: f64,
    /// d value / d level.
    pub slope: f64,
}

/// An inversion with the data of its steps.
#[derive(Clone, Debug)]
pub struct Levels {
    kinds: Vec<StepKind>,
    /// The value of each step's datum: [members × steps]; unused entries are 0.
    data: Vec<f64>,
    bound: Bound,
    form: LevelForm,
}

/// Coefficients of the throughput that a level t requires of a member: base + slope·t or, where the levels are affine in
/// the inverse, base + slope/t.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LevelCoefficients {
    /// The part that no level changes.
    pub base: f64,
    /// The part in proportion to the level, or to its inverse.
    pub slope: f64,
}

impl Levels {
    /// The levels of an inversion with `data`, the value of each step's datum: [members × steps].
    pub(crate) fn new(inversion: &Inversion, data: Vec<f64>) -> Self {
        let kinds = inversion.steps.iter().map(|step| step.kind).collect();
        Self { kinds, data, bound: inversion.bound, form: inversion.form }
    }

    /// The form of the required throughput as a function of the level.
    pub fn form(&self) -> LevelForm {
        self.form
    }

    fn steps(&self, member: usize) -> impl DoubleEndedIterator<Item = (StepKind, f64)> + '_ {
        let span = member * self.kinds.len()..(member + 1) * self.kinds.len();
        self.kinds.iter().copied().zip(self.data[span].iter().copied())
    }

    /// The level of one job of `member` at this throughput.
    pub fn level(&self, member: usize, throughput: f64) -> f64 {
        self.steps(member).rev().fold(throughput, |x, (kind, d)| match kind {
            StepKind::Plus => x + d,
            StepKind::Minus => x - d,
            StepKind::From => d - x,
            StepKind::Times => x * d,
            StepKind::Over => x / d,
            // 0/0 = 0: a job without steps left takes no time at throughput 0.
            StepKind::Under if d == 0.0 => 0.0,
            StepKind::Under => d / x,
            StepKind::Negate => -x,
            StepKind::Log => x.ln(),
            StepKind::Sqrt => x.sqrt(),
            StepKind::Min => x.min(d),
            StepKind::Max => x.max(d),
        })
    }

    /// The least throughput of one job of `member` at which the objective's level is reached.
    pub fn required(&self, member: usize, level: f64) -> Required {
        const ALWAYS: Required = Required { value: 0.0, slope: 0.0 };
        const NEVER: Required = Required { value: f64::INFINITY, slope: 0.0 };
        let constant = |holds: bool| if holds { ALWAYS } else { NEVER };
        let (mut y, mut slope, mut bound) = (level, 1.0, self.bound);
        for (kind, d) in self.steps(member) {
            match kind {
                StepKind::Plus => y -= d,
                StepKind::Minus => y += d,
                StepKind::From => (y, slope, bound) = (d - y, -slope, bound.flipped()),
                StepKind::Negate => (y, slope, bound) = (-y, -slope, bound.flipped()),
                StepKind::Times | StepKind::Under if d == 0.0 => return constant(bound.holds(0.0, y)),
                StepKind::Times | StepKind::Over => {
                    let factor = if kind == StepKind::Times { d.recip() } else { d };
                    (y, slope) = (y * factor, slope * factor);
                    bound = if factor < 0.0 { bound.flipped() } else { bound };
                }
                StepKind::Under => {
                    // d/x runs over all of d's own side of 0, and only over that.
                    if y * d.signum() <= 0.0 {
                        return constant(bound.holds(d, y));
                    }
                    slope *= -d / (y * y);
                    y = d / y;
                    bound = if d > 0.0 { bound.flipped() } else { bound };
                }
                StepKind::Log => {
                    y = y.exp();
                    slope *= y;
                }
                StepKind::Sqrt if y < 0.0 => return constant(bound == Bound::AtLeast),
                StepKind::Sqrt => (y, slope) = (y * y, slope * 2.0 * y),
                // The datum alone may decide: min(x, d) ≤ d, max(x, d) ≥ d.
                StepKind::Min if bound == Bound::AtMost && d <= y => return ALWAYS,
                StepKind::Min if bound == Bound::AtLeast && d < y => return NEVER,
                StepKind::Max if bound == Bound::AtLeast && d >= y => return ALWAYS,
                StepKind::Max if bound == Bound::AtMost && d > y => return NEVER,
                StepKind::Min | StepKind::Max => {}
            }
        }
        if y > 0.0 { Required { value: y, slope } } else { ALWAYS }
    }

    /// Coefficients of the required throughput, as [`form`](Self::form) says; `None` if the form is general or a factor
    /// of this member is 0.
    pub fn coefficients(&self, member: usize) -> Option<LevelCoefficients> {
        // x = (p + q t) / (r + s t): every step keeps this shape.
        let (mut p, mut q, mut r, mut s) = (0.0, 1.0, 1.0, 0.0);
        for (kind, d) in self.steps(member) {
            match kind {
                StepKind::Plus => (p, q) = (p - d * r, q - d * s),
                StepKind::Minus => (p, q) = (p + d * r, q + d * s),
                StepKind::From => (p, q) = (d * r - p, d * s - q),
                StepKind::Times => (p, q) = (p / d, q / d),
                StepKind::Over => (p, q) = (p * d, q * d),
                StepKind::Under => (p, q, r, s) = (d * r, d * s, p, q),
                StepKind::Negate => (p, q) = (-p, -q),
                StepKind::Log | StepKind::Sqrt | StepKind::Min | StepKind::Max => return None,
            }
        }
        let (base, slope) = match self.form {
            LevelForm::Affine => (p / r, q / r),
            LevelForm::AffineInInverse => (q / s, p / s),
            LevelForm::General => return None,
        };
        (base.is_finite() && slope.is_finite()).then_some(LevelCoefficients { base, slope })
    }
}
