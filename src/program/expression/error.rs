//! Errors in expressions, each with its place in the text.

use thiserror::Error;

use super::ast::Span;
use super::dimension::Dimension;
use super::vocabulary::Subject;

/// An error in an expression, and its place.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{kind}")]
pub struct ExpressionError {
    /// The kind of error.
    pub kind: ExpressionErrorKind,
    /// The place of the error in the text.
    pub span: Span,
}

/// The kinds of errors in an expression.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ExpressionErrorKind {
    /// A droppable constraint that is soft, curved, an equality, or not one of `for_each_job`.
    #[error("only a hard, linear constraint of `for_each_job` can be droppable")]
    NotDroppable,
    /// A character that no expression has.
    #[error("unexpected character `{0}`")]
    Character(char),
    /// A number that cannot be read, is not finite, or lies between 0 and 1e-100.
    #[error("`{0}` is not a finite number that is 0 or at least 1e-100")]
    Number(String),
    /// A quotation mark without its partner.
    #[error("a quoted name without its closing quotation mark")]
    OpenQuote,
    /// An unknown unit.
    #[error(
        "unknown unit `{0}`, expected a product of `steps`, `s`, `h`, `$` and `workers`, as in `steps/s`"
    )]
    Unit(String),
    /// A token that the grammar does not allow there.
    #[error("expected {expected}, found {found}")]
    Token {
        /// The tokens that are allowed there.
        expected: &'static str,
        /// The token that was found there.
        found: String,
    },
    /// A text that is too long.
    #[error("an expression of {0} bytes, expected at most {max}", max = super::LENGTH_MAX)]
    TooLong(usize),
    /// A text that is nested too deeply.
    #[error("an expression nested deeper than {max} levels", max = super::DEPTH_MAX)]
    TooDeep,
    /// An unknown name.
    #[error("unknown name `{name}`, expected one of {}", listed(.known))]
    UnknownName {
        /// The name.
        name: String,
        /// The names that expressions may use.
        known: Vec<String>,
    },
    /// A function with too few or too many arguments, or an atom without the argument that it takes or with one that it does not.
    #[error("`{name}` takes {expected}, found {found}")]
    Arguments {
        /// The name of the function, reduction or atom.
        name: String,
        /// The number of arguments that it takes, in words.
        expected: &'static str,
        /// The number of arguments that it was given.
        found: usize,
    },
    /// A quantity of one job where no job is at hand, or of one worker type where none is.
    #[error("`{name}` is of one {}, and none is at hand here", subject_name(*.subject))]
    Unbound {
        /// The quantity.
        name: String,
        /// The subject of the quantity.
        subject: Subject,
    },
    /// A reduction over jobs (or worker types) where a job (or worker type) is already at hand.
    #[error("`{name}` inside a place that is already about one {}", subject_name(*.subject))]
    Nested {
        /// The reduction.
        name: String,
        /// The subject at hand.
        subject: Subject,
    },
    /// A lexicographic reduction anywhere but at the top of a maximized objective.
    #[error("`lexicographic_min_over_jobs` stands only as the whole of what is maximized")]
    Lexicographic,
    /// A lexicographic reduction of an expression that gives no level per job.
    #[error("the order of levels needs an expression that grows with each job's `throughput`, named once")]
    LexicographicLevel,
    /// Two quantities of different dimensions that are added, subtracted or compared.
    #[error("{operation} of `{left}` and `{right}`, expected equal dimensions")]
    Dimensions {
        /// The operation: `sum`, `difference` or `comparison`.
        operation: &'static str,
        /// Dimension of the left quantity.
        left: Dimension,
        /// Dimension of the right quantity.
        right: Dimension,
    },
    /// A dimension without a square root.
    #[error("square root of `{0}`, which has no unit")]
    RootDimension(Dimension),
    /// A power of a quantity that depends on the allocation.
    #[error("`{0}` depends on the allocation; only data may be raised to a power")]
    PowerOfVariable(String),
    /// A power of a quantity with a unit.
    #[error("a power of `{base}`, which is in {dimension}; the base of a power must have no unit")]
    PowerDimension {
        /// The base.
        base: String,
        /// The dimension of the base.
        dimension: Dimension,
    },
    /// A power of a base that may be below 0 or, where the exponent is at most 0, may be 0.
    #[error("`{base}` to the power of {exponent:?}, where the base must be {expected} and is {known}")]
    PowerDomain {
        /// The base.
        base: String,
        /// The exponent.
        exponent: f64,
        /// The signs that the base may have.
        expected: &'static str,
        /// The sign that the base is known to have.
        known: String,
    },
    /// Division by a quantity that may be 0.
    #[error("division by `{divisor}`, which may be 0 (it is {known})")]
    DivisionByZero {
        /// The divisor.
        divisor: String,
        /// The sign that the divisor is known to have.
        known: String,
    },
    /// A logarithm, root or inverse of a quantity that may be below 0, or a logarithm or inverse of data that may be 0.
    #[error("`{function}` of `{argument}`, which must not be below 0 and is {known}")]
    Domain {
        /// The function.
        function: &'static str,
        /// The argument of the function.
        argument: String,
        /// The sign that the argument is known to have.
        known: String,
    },
    /// A product of two quantities that depend on the allocation.
    #[error("product of `{left}` and `{right}`, which both depend on the allocation")]
    Product {
        /// The left factor.
        left: String,
        /// The right factor.
        right: String,
    },
    /// A quotient of two quantities that depend on the allocation.
    #[error("quotient of `{left}` and `{right}`, which both depend on the allocation")]
    Quotient {
        /// The dividend.
        left: String,
        /// The divisor.
        right: String,
    },
    /// A convex or concave part multiplied or divided by data of unknown sign.
    #[error("`{part}` is multiplied by `{factor}`, whose sign is not known")]
    SignUnknown {
        /// The convex or concave part.
        part: String,
        /// The data of unknown sign.
        factor: String,
    },
    /// A sum of a convex and a concave part.
    #[error("`{part}` is neither convex nor concave: `{convex}` is convex and `{concave}` concave")]
    Mixed {
        /// The sum.
        part: String,
        /// The convex side of the sum.
        convex: String,
        /// The concave side of the sum.
        concave: String,
    },
    /// A function of an argument whose curvature breaks the rules.
    #[error("`{function}` of `{argument}`, which is {found}, expected {expected}")]
    Curvature {
        /// The function or reduction, `division`, or the direction of the objective.
        function: String,
        /// The argument of the function.
        argument: String,
        /// The argument's curvature.
        found: &'static str,
        /// The curvature that the rules allow.
        expected: &'static str,
    },
    /// A constraint that bounds no convex set: its left side is not convex, or, of an equation, not affine.
    #[error("the constraint is `{excess} {comparison} 0`, and its left side is {found}, expected {expected}")]
    ConstraintCurvature {
        /// The smaller side less the larger one.
        excess: String,
        /// `<=`, or `==`.
        comparison: &'static str,
        /// The curvature of the left side.
        found: &'static str,
        /// The curvature that the rules allow.
        expected: &'static str,
    },
    /// An objective or constraint that no allocation can change.
    #[error("`{0}` does not depend on the allocation")]
    Constant(String),
    /// A penalty that is not a finite number above 0.
    #[error("penalty {0}, expected a finite number above 0")]
    Penalty(f64),
    /// A soft constraint beside an objective that is solved level by level, or in the inverse of the level.
    #[error("a soft constraint beside an objective that is not linear or conic")]
    SoftParametric,
    /// A soft constraint where levels are raised one after another: later steps do not know the penalty that an earlier one paid.
    #[error("a soft constraint where one level is raised after the other, by `{0}`")]
    SoftLexicographic(&'static str),
    /// A column that is declared and never used.
    #[error("column `{0}` is declared but neither the objective nor a constraint uses it")]
    UnusedColumn(String),
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn subject_name(subject: Subject) -> &'static str {
    match subject {
        Subject::Job => "job",
        Subject::WorkerType => "worker type",
    }
}

impl ExpressionError {
    pub(crate) fn new(kind: ExpressionErrorKind, span: Span) -> Self {
        Self { kind, span }
    }

    /// Advice for people on what would be accepted; `None` where there is none.
    pub fn help(&self) -> Option<String> {
        use ExpressionErrorKind as Kind;
        let text = match &self.kind {
            Kind::UnknownName { .. } => {
                "a per-job column of your own is declared under `columns`".to_owned()
            }
            Kind::Unbound { subject: Subject::Job, .. } => {
                "put it inside `min_over_jobs(…)`, `max_over_jobs(…)` or `sum_over_jobs(…)`, or under `for_each_job`"
                    .to_owned()
            }
            Kind::Unbound { subject: Subject::WorkerType, .. } => {
                "put it inside `sum_over_worker_types(…)`, or name a worker type in its place".to_owned()
            }
            Kind::Nested { .. } => "one reduction of a kind is enough".to_owned(),
            Kind::Dimensions { .. } => {
                "a number takes a unit in brackets, as in `60[s]` or `3600[s/h]`".to_owned()
            }
            Kind::DivisionByZero { .. } => {
                "keep the divisor above 0, as in `max(elapsed, 1[s])`".to_owned()
            }
            Kind::PowerOfVariable(_) => "`sqrt`, `log` and `inv` take what depends on the allocation".to_owned(),
            Kind::PowerDimension { .. } => {
                "divide the base by a number with its unit, as in `(elapsed / 3600[s])^0.5`".to_owned()
            }
            Kind::PowerDomain { .. } => {
                "keep the base above 0, as in `max(elapsed / 3600[s], 0.1)^-0.5`".to_owned()
            }
            Kind::Domain { .. } => "keep the argument at 0 or above".to_owned(),
            Kind::Product { .. } => "one factor of a product must be data or a number".to_owned(),
            Kind::Quotient { .. } => {
                "under `min_over_jobs` or `max_over_jobs`, a quotient that names `throughput` once is accepted"
                    .to_owned()
            }
            Kind::SignUnknown { .. } => "declare the column's sign, as in `columns: {bonus: \"1 > 0\"}`".to_owned(),
            Kind::Mixed { .. } | Kind::Curvature { .. } | Kind::ConstraintCurvature { .. } => {
                "a maximized objective must be concave, a minimized one convex; `log`, `sqrt` and `min` are concave, `inv`, `max` and division by `throughput` convex"
                    .to_owned()
            }
            Kind::LexicographicLevel => {
                "as in `lexicographic_min_over_jobs(throughput / equal_share_throughput)`".to_owned()
            }
            Kind::SoftParametric => "make the constraint hard, or the objective a sum".to_owned(),
            Kind::SoftLexicographic(_) => {
                "raise the lowest level alone, by `min_over_jobs(…)` without `refine: water_filling`, or make the constraint hard".to_owned()
            }
            Kind::NotDroppable => {
                "any other may be exceeded at a price, as in `{constraint: \"…\", soft: 10}`".to_owned()
            }
            Kind::UnusedColumn(_) => "remove it, or use it".to_owned(),
            Kind::Constant(_) => {
                "name what an allocation changes, as `throughput` or `time_on(…)` of a job".to_owned()
            }
            Kind::Unit(_) => "prices are `$/h/workers`, throughputs `steps/s`".to_owned(),
            _ => return None,
        };
        Some(text)
    }
}
