//! The inequalities and equations of a block, each one side of a row, cone or bound of the program.

use crate::program::Range;

/// Where an inequality of a block comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A row of the program.
    Row(u32),
    /// The third entry of an exponential cone.
    Cone(u32),
    /// The upper bound of a column that has a lower one too.
    Width(u32),
}

/// How a side binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// There is none.
    Absent,
    /// form + slack = bound, slack ≥ 0.
    AtMost,
    /// form = bound.
    Equal,
    /// form + slack = bound, the slack's logarithm being worth its weight.
    Logarithm,
}

/// One inequality or equation of a block: sign · form ≤ sign · bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Inequality {
    pub(super) source: Source,
    pub(super) kind: Kind,
    pub(super) sign: f64,
}

/// The sides of a range: at most two.
pub(super) fn sides_of(source: Source, range: Range) -> impl Iterator<Item = Inequality> {
    let equal = range.is_point();
    let upper = (range.upper < f64::INFINITY).then_some(Inequality {
        source,
        kind: if equal { Kind::Equal } else { Kind::AtMost },
        sign: 1.0,
    });
    let lower = (!equal && range.lower > f64::NEG_INFINITY).then_some(Inequality {
        source,
        kind: Kind::AtMost,
        sign: -1.0,
    });
    upper.into_iter().chain(lower)
}
