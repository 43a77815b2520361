//! Functions and reductions: a table of what the rules of composition need to know of each.

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

/// What the arguments of a function must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// At least 0.
    NonNegative,
    /// Above 0. (Of an argument that varies, at least 0 is enough: the objective keeps it above.)
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

/// What is known of a function.
#[derive(Clone, Copy, Debug)]
pub struct FunctionRule {
    /// As it is written.
    pub name: &'static str,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// Does it take two arguments or more? Else it takes one.
    pub several: bool,
    /// Its curvature.
    pub curvature: Curvature,
    /// Is it increasing? Else it is decreasing.
    pub increasing: bool,
    /// Is it piecewise linear?
    pub piecewise_linear: bool,
    /// What its arguments must be.
    pub domain: Option<Domain>,
    /// Its value; of several arguments, the value of two.
    pub value: fn(f64, f64) -> f64,
}

/// What is known of each function, at the place of its variant, which is its place in [`Function::ALL`], too.
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
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Log, Self::Sqrt, Self::Inv, Self::Min, Self::Max];

    /// What is known of it.
    #[inline]
    pub fn rule(self) -> &'static FunctionRule {
        &RULES[self as usize]
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        self.rule().name
    }

    /// The function of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.name() == name)
    }
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
    pub over: Subject,
}

impl Reduction {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self { fold: Fold::Min, over: Subject::Job },
        Self { fold: Fold::Max, over: Subject::Job },
        Self { fold: Fold::Sum, over: Subject::Job },
        Self { fold: Fold::LexicographicMin, over: Subject::Job },
        Self { fold: Fold::Min, over: Subject::WorkerType },
        Self { fold: Fold::Max, over: Subject::WorkerType },
        Self { fold: Fold::Sum, over: Subject::WorkerType },
    ];

    /// The reduction of this name.
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
