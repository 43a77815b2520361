//! Functions and reductions, with a table of the properties that the rules of composition need.

use std::fmt;

use super::curvature::Curvature;
use super::vocabulary::Subject;

/// A function of expressions.
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

/// The range that the arguments of a function must lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// At least 0.
    NonNegative,
    /// Above 0. (For an argument that varies with the allocation, at least 0 is enough: the objective keeps it above.)
    Positive,
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NonNegative => "at least 0",
            Self::Positive => "above 0",
        })
    }
}

/// The properties of a function.
#[derive(Clone, Copy, Debug)]
pub struct FunctionRule {
    /// Name of the function in expressions.
    pub name: &'static str,
    /// Description for people, in a few words.
    pub meaning: &'static str,
    /// Whether it takes two arguments or more; else it takes one.
    pub several: bool,
    /// Curvature of the function in its arguments.
    pub curvature: Curvature,
    /// Whether it is increasing; else it is decreasing.
    pub increasing: bool,
    /// Whether it is piecewise linear.
    pub piecewise_linear: bool,
    /// The range that its arguments must lie in; none if any number will do.
    pub domain: Option<Domain>,
    /// Value at two arguments; a function of one ignores the second, and one of several folds its arguments by it.
    pub value: fn(f64, f64) -> f64,
}

/// The rule of each function, at the position of its variant, which is its position in [`Function::ALL`], too.
static RULES: [FunctionRule; Function::ALL.len()] = [
    FunctionRule {
        name: "log",
        meaning: "the natural logarithm",
        several: false,
        curvature: Curvature::Concave,
        increasing: true,
        piecewise_linear: false,
        domain: Some(Domain::Positive),
        value: |x, _| x.ln(),
    },
    FunctionRule {
        name: "sqrt",
        meaning: "the square root",
        several: false,
        curvature: Curvature::Concave,
        increasing: true,
        piecewise_linear: false,
        domain: Some(Domain::NonNegative),
        value: |x, _| x.sqrt(),
    },
    FunctionRule {
        name: "inv",
        meaning: "1/x",
        several: false,
        curvature: Curvature::Convex,
        increasing: false,
        piecewise_linear: false,
        domain: Some(Domain::Positive),
        value: |x, _| x.recip(),
    },
    FunctionRule {
        name: "min",
        meaning: "the smallest",
        several: true,
        curvature: Curvature::Concave,
        increasing: true,
        piecewise_linear: true,
        domain: None,
        value: f64::min,
    },
    FunctionRule {
        name: "max",
        meaning: "the largest",
        several: true,
        curvature: Curvature::Convex,
        increasing: true,
        piecewise_linear: true,
        domain: None,
        value: f64::max,
    },
];

impl Function {
    /// All functions, in the order of their variants.
    pub const ALL: [Self; 5] = [Self::Log, Self::Sqrt, Self::Inv, Self::Min, Self::Max];

    /// The properties of the function.
    #[inline]
    pub fn rule(self) -> &'static FunctionRule {
        &RULES[self as usize]
    }

    /// Name of the function in expressions.
    pub fn name(self) -> &'static str {
        self.rule().name
    }

    /// The function with this name, if there is one.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.name() == name)
    }
}

/// The operation of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The sum of the values.
    Sum,
    /// The smallest value; among its optima, the next smallest, and so on.
    LexicographicMin,
}

/// A fold over all jobs or all worker types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// The operation of the reduction.
    pub fold: Fold,
    /// The subject that it ranges over: jobs or worker types.
    pub over: Subject,
}

impl Reduction {
    /// All reductions.
    pub const ALL: [Self; 7] = [
        Self { fold: Fold::Min, over: Subject::Job },
        Self { fold: Fold::Max, over: Subject::Job },
        Self { fold: Fold::Sum, over: Subject::Job },
        Self { fold: Fold::LexicographicMin, over: Subject::Job },
        Self { fold: Fold::Min, over: Subject::WorkerType },
        Self { fold: Fold::Max, over: Subject::WorkerType },
        Self { fold: Fold::Sum, over: Subject::WorkerType },
    ];

    /// The reduction with this name, if there is one.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reduction| reduction.to_string() == name)
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
