//! Rows that are multiples of one another.
//!
//! The presolve of HiGHS (1.15.0) compares such rows with one another, each with each: 8,000 limits on one sum take it ten
//! seconds, and the simplex method without it a twentieth of one.

use crate::program::Program;

/// Number of last bits of a coefficient that are ignored in comparisons of rows: rounding may differ there.
const ROUNDED_BITS: u32 = 8;

/// The size of the largest set of rows that are multiples of one another.
pub(super) fn most_parallel(program: &Program) -> usize {
    let direction = |row: usize| {
        let mut terms: Vec<(usize, f64)> = program.row(row).filter(|(_, value)| *value != 0.0).collect();
        terms.sort_unstable_by_key(|(column, _)| *column);
        let first = terms.first().map_or(1.0, |(_, value)| *value);
        let rounded = |value: f64| (value / first).to_bits() >> ROUNDED_BITS;
        terms.into_iter().map(|(column, value)| (column, rounded(value))).collect::<Vec<_>>()
    };
    let mut directions: Vec<_> = (0..program.n_rows()).map(direction).collect();
    directions.sort_unstable();
    directions.chunk_by(|one, other| one == other).map(<[_]>::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Range, Sense};

    #[test]
    fn rows_are_counted_whatever_their_factor_and_the_order_of_their_terms() {
        let mut program = Program::new(Sense::Maximize);
        for _ in 0..3 {
            program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 1.0);
        }
        assert_eq!(most_parallel(&program), 0);
        for factor in [1.0, 0.1, -3.0] {
            program.push_row(Range::at_most(1.0), [(0, factor), (1, 0.3 * factor), (2, 0.0)]);
            program.push_row(Range::at_most(1.0), [(2, factor), (1, factor)]);
        }
        program.push_row(Range::at_most(1.0), [(1, 0.6), (0, 2.0)]);
        assert_eq!(most_parallel(&program), 4);
    }
}
