//! Counts on the command line.

use clap::builder::RangedU64ValueParser;

/// Reads a count of what there must be at least one of.
pub(crate) fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}
