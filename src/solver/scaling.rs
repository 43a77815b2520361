//! Scaling by powers of two, which loses no digit.
//!
//! HiGHS judges feasibility and reduced costs by absolute tolerances and Clarabel partly so; a program in which
//! a level of 1e-6 is maximized would be "optimal" to no digit at all. So every program is sent as
//!
//!   x = C x′        A′ = R A C        row bounds′ = R b        cost′ = σ C cost
//!
//! with geometric-mean scaling of rows and columns (Fourer 1982; the square root of the product of the smallest and
//! largest magnitude), then a common factor that brings the largest bound between 1 and [`BOUND_MAX`], then σ = 1 /
//! max |cost′|. Duals come back as y = R y′ / σ. Entries of cones cannot be scaled one by one, so where there are
//! cones only rows and the objective are.

use crate::program::Program;
use crate::solver::backend::Solution;

/// Number of passes over the coefficients; each is cheap beside a solve, and few improve anything after the fourth.
const SCALING_PASSES: usize = 6;
/// The most that the largest finite bound may be after scaling; the least is 1.
const BOUND_MAX: f64 = 1_048_576.0;

/// A program in units that suit absolute tolerances, and the factors that lead back.
#[derive(Debug)]
pub(super) struct Scaled {
    /// The scaled program that is sent to the backend.
    pub(super) program: Program,
    /// The factor C of each column: [columns].
    columns: Vec<f64>,
    /// The factor R of each row: [rows].
    rows: Vec<f64>,
    /// The factor σ on the objective.
    objective: f64,
}

/// The factors by which the coefficients of rows and columns are multiplied.
#[derive(Clone, Debug)]
pub(super) struct Factors {
    pub(super) rows: Vec<f64>,
    pub(super) columns: Vec<f64>,
}

impl Scaled {
    /// Scales a checked program.
    pub(super) fn of(program: &Program) -> Self {
        let Factors { mut rows, mut columns } = geometric_factors(program);
        let common = common_factor(program, &rows, &columns);
        for factor in &mut rows {
            *factor = power_of_two(*factor / common);
        }
        if program.is_linear() {
            for factor in &mut columns {
                *factor = power_of_two(*factor * common);
            }
        }
        Self::by(program, Factors { rows, columns })
    }

    /// Scales a program by factors found for one of the same shape.
    pub(super) fn by(program: &Program, Factors { rows, columns }: Factors) -> Self {
        let cost_max =
            program.cost.iter().zip(&columns).map(|(cost, c)| (cost * c).abs()).fold(0.0, f64::max);
        let objective = if cost_max > 0.0 { power_of_two(1.0 / cost_max) } else { 1.0 };
        Self { program: apply(program, &rows, &columns, objective), columns, rows, objective }
    }

    /// The factors, to scale another program of the same shape.
    pub(super) fn into_factors(self) -> Factors {
        Factors { rows: self.rows, columns: self.columns }
    }

    /// The solution of the original program from one of the scaled program.
    pub(super) fn recover(&self, original: &Program, mut solution: Solution) -> Solution {
        for (value, factor) in solution.columns.iter_mut().zip(&self.columns) {
            *value *= factor;
        }
        for (dual, factor) in solution.row_duals.iter_mut().zip(&self.rows) {
            *dual *= factor / self.objective;
        }
        for dual in solution.cone_duals.iter_mut().flatten() {
            *dual /= self.objective;
        }
        solution.objective = original.offset + solution.objective / self.objective;
        solution
    }

    /// Column values of the original, in the units of the scaled program.
    #[cfg(feature = "highs")]
    pub(super) fn columns_scaled(&self, columns: &[f64]) -> Vec<f64> {
        columns.iter().zip(&self.columns).map(|(value, factor)| value / factor).collect()
    }
}

/// The nearest power of two; 1 for a number that is not positive and finite.
fn power_of_two(value: f64) -> f64 {
    if value > 0.0 && value.is_finite() { value.log2().round().clamp(-500.0, 500.0).exp2() } else { 1.0 }
}

/// Row and column factors before rounding; columns stay at one where there are cones.
fn geometric_factors(program: &Program) -> Factors {
    let mut rows = vec![1.0_f64; program.n_rows()];
    let mut columns = vec![1.0_f64; program.n_columns()];
    let magnitudes: Vec<f64> = program.term_values.iter().map(|value| value.abs()).collect();
    let extreme = (f64::INFINITY, 0.0_f64);
    let mean = |(low, high): (f64, f64)| if high > 0.0 { 1.0 / (low * high).sqrt() } else { 1.0 };
    for _ in 0..SCALING_PASSES {
        let mut column_extremes = vec![extreme; columns.len()];
        for (row, factor) in rows.iter_mut().enumerate() {
            let span = program.row_starts[row]..program.row_starts[row + 1];
            let terms = || program.term_columns[span.clone()].iter().zip(&magnitudes[span.clone()]);
            let (mut low, mut high) = extreme;
            for (&column, &magnitude) in terms().filter(|(_, magnitude)| **magnitude > 0.0) {
                low = low.min(magnitude * columns[column]);
                high = high.max(magnitude * columns[column]);
            }
            *factor = mean((low, high));
            for (&column, &magnitude) in terms().filter(|(_, magnitude)| **magnitude > 0.0) {
                let (low, high) = &mut column_extremes[column];
                *low = low.min(magnitude * *factor);
                *high = high.max(magnitude * *factor);
            }
        }
        if program.is_linear() {
            for (factor, extremes) in columns.iter_mut().zip(column_extremes) {
                *factor = mean(extremes);
            }
        }
    }
    Factors { rows, columns }
}

/// The factor on all of x that brings the largest finite bound between 1 and [`BOUND_MAX`]; 1 where there are cones.
fn common_factor(program: &Program, rows: &[f64], columns: &[f64]) -> f64 {
    if !program.is_linear() {
        return 1.0;
    }
    let of_rows = program.rows.iter().zip(rows).flat_map(|(range, r)| [range.lower * r, range.upper * r]);
    let of_columns =
        program.columns.iter().zip(columns).flat_map(|(range, c)| [range.lower / c, range.upper / c]);
    let largest =
        of_rows.chain(of_columns).map(f64::abs).filter(|bound| bound.is_finite()).fold(0.0, f64::max);
    if largest == 0.0 {
        1.0
    } else if largest < 1.0 {
        largest
    } else {
        (largest / BOUND_MAX).max(1.0)
    }
}

fn apply(program: &Program, rows: &[f64], columns: &[f64], objective: f64) -> Program {
    let mut scaled = program.clone();
    scaled.offset = 0.0;
    for (cost, factor) in scaled.cost.iter_mut().zip(columns) {
        *cost *= factor * objective;
    }
    for (range, factor) in
        scaled.columns.iter_mut().chain(&mut scaled.implied).zip(columns.iter().chain(columns))
    {
        range.lower /= factor;
        range.upper /= factor;
    }
    for (row, factor) in rows.iter().enumerate() {
        scaled.rows[row].lower *= factor;
        scaled.rows[row].upper *= factor;
        for term in program.row_starts[row]..program.row_starts[row + 1] {
            scaled.term_values[term] *= factor * columns[program.term_columns[term]];
        }
    }
    scaled
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "powers of two are exact")]
mod tests {
    use super::*;
    use crate::program::{Range, Sense};
    use crate::solver::backend::Termination;
    use crate::solver::intake::without_columns;

    /// Program that maximizes t, with t ≤ 1e-7·x and x ≤ 1.
    fn tiny_level() -> Program {
        let mut program = Program::new(Sense::Maximize);
        program.offset = 3.0;
        program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 1.0);
        program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 0.0);
        program.push_row(Range::at_most(0.0), [(0, 1.0), (1, -1e-7)]);
        program.push_row(Range::at_most(1.0), [(1, 1.0)]);
        program
    }

    #[test]
    fn a_tiny_level_is_of_order_one_once_scaled() {
        let scaled = Scaled::of(&tiny_level());
        for value in &scaled.program.term_values {
            assert!((0.25..4.0).contains(&value.abs()), "{:?}", scaled.program.term_values);
        }
        // the optimum in scaled units: t′ = 1e-7 / its factor
        let level = 1e-7 / scaled.columns[0];
        assert!((0.1..10.0).contains(&level), "{level}");
        assert!((0.5..=2.0).contains(&scaled.program.cost[0]));
    }

    #[test]
    fn an_answer_comes_back_in_the_units_of_the_program() {
        let program = tiny_level();
        let scaled = Scaled::of(&program);
        // the optimum and its duals (1 for the level's row, 1e-7 for the other), put into scaled units by hand
        let columns = vec![1e-7 / scaled.columns[0], 1.0 / scaled.columns[1]];
        let answer = Solution {
            objective: scaled.program.objective(&columns),
            row_duals: vec![scaled.objective / scaled.rows[0], 1e-7 * scaled.objective / scaled.rows[1]],
            columns,
            ..without_columns(Termination::Optimal)
        };
        let back = scaled.recover(&program, answer);
        assert_eq!((back.columns, back.row_duals), (vec![1e-7, 1.0], vec![1.0, 1e-7]));
        assert!((back.objective - 3.000_000_1).abs() < 1e-15);
        for factor in scaled.columns.iter().chain(&scaled.rows).chain([&scaled.objective]) {
            assert_eq!(factor.log2().fract(), 0.0, "{factor} is no power of two");
        }
    }
}
