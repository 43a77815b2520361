//! Proofs that a program has no optimum, where a backend claims so.
//!
//! *Infeasible* is proven by a dual bound: of a program that minimizes t, each row being relaxed by t times its
//! scale. A bound above 0 shows that no point satisfies all rows as they are; its multipliers are a Farkas
//! certificate. A conic program is tried without its cones, then with them. *Unbounded*, of a linear program, is
//! proven by a point that satisfies the rows and a direction in which the point may move without end while the
//! objective improves. Both are optima of programs of their own, certified as every other.

use crate::program::{Program, Range, Sense};
use crate::solver::backend::{Limits, Termination};
use crate::solver::chain::{Certified, solve_certified};
use crate::solver::registry;

/// The necessary relaxation of rows, as a part of their scales, above which the rows contradict one another.
const RELAXED_MIN: f64 = 1e-9;

/// The part of its scale by which a row may be violated by a point that satisfies it.
const VIOLATED_MAX: f64 = 1e-6;

/// Standing of a program's rows, as far as it is proven.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    /// The rows contradict one another, as multipliers of these rows prove.
    Contradiction(Vec<usize>),
    /// The rows are satisfied at this point: [columns].
    Satisfied(Vec<f64>),
    /// Neither is proven.
    Unknown,
}

/// Proves that a program without an optimum is infeasible, or that it is unbounded; `None` if neither is proven. For
/// programs with cones, unboundedness is never proven.
pub fn without_optimum(program: &Program, claim: Termination, limits: &Limits) -> Option<Termination> {
    if !matches!(claim, Termination::Infeasible | Termination::Unbounded | Termination::InfeasibleOrUnbounded)
    {
        return None;
    }
    if contradictory(program) {
        return Some(Termination::Infeasible);
    }
    if !program.is_linear() {
        let proven = matches!(standing(program, limits), Standing::Contradiction(_));
        return proven.then_some(Termination::Infeasible);
    }
    let relaxed = certified(&relaxed(program, false).program, limits)?;
    if relaxed.certificate.bound > RELAXED_MIN {
        return Some(Termination::Infeasible);
    }
    if relaxed.certificate.primal > VIOLATED_MAX {
        return None;
    }
    let ray = certified(&recession(program), limits)?;
    let largest = program.cost.iter().fold(0.0_f64, |most, cost| most.max(cost.abs()));
    let gained = ray.certificate.primal.abs();
    (ray.certificate.violation_max <= RELAXED_MIN && gained > VIOLATED_MAX * largest)
        .then_some(Termination::Unbounded)
}

/// The standing of a program's rows: contradictory by proof of a dual bound, satisfied at a point, or unknown.
pub(super) fn standing(program: &Program, limits: &Limits) -> Standing {
    if contradictory(program) {
        let empty = |row: &usize| program.rows[*row].lower > program.rows[*row].upper;
        return Standing::Contradiction((0..program.n_rows()).filter(empty).take(1).collect());
    }
    let mut standing = Standing::Unknown;
    // A proof without cones holds with them; a point does not.
    for with_cones in [false, true].into_iter().take(if program.is_linear() { 1 } else { 2 }) {
        let Relaxed { program: relaxed, first_of_row } = relaxed(program, with_cones);
        let Some(Certified { certificate, solution, .. }) = certified(&relaxed, limits) else { continue };
        if certificate.bound > RELAXED_MIN {
            return Standing::Contradiction(multiplied(&solution.row_duals, &first_of_row));
        }
        if certificate.primal <= VIOLATED_MAX && (with_cones || program.is_linear()) {
            standing = Standing::Satisfied(solution.columns);
        }
    }
    standing
}

/// The rows whose multipliers are more than rounding; `first_of_row` is the second value of [`relaxed`].
fn multiplied(duals: &[f64], first_of_row: &[usize]) -> Vec<usize> {
    let largest = duals.iter().fold(0.0_f64, |most, dual| most.max(dual.abs()));
    let counts =
        |ends: &[usize]| duals[ends[0]..ends[1]].iter().any(|dual| dual.abs() > RELAXED_MIN * largest);
    let rows = first_of_row.windows(2).enumerate();
    rows.filter(|(_, ends)| counts(ends)).map(|(row, _)| row).collect()
}

fn contradictory(program: &Program) -> bool {
    program.columns.iter().chain(&program.rows).any(|range| range.lower > range.upper)
}

/// The certified optimum of a program; none if no backend finds one. Our simplex comes last: its multipliers are exact at
/// a vertex, which an interior point's are not where columns have no bound.
pub(super) fn certified(program: &Program, limits: &Limits) -> Option<Certified> {
    let mut chain = registry::default_chain(program);
    chain.extend(registry::backend("simplex"));
    solve_certified(program, &mut chain, limits, None).ok()
}

/// A program that minimizes t, with each row of another program relaxed by t times its scale.
struct Relaxed {
    program: Program,
    /// The position of the first of the none, one or two rows that each row became, and the end: [rows + 1].
    first_of_row: Vec<usize>,
}

/// The relaxed program of a program's rows and, if asked for, with its cones.
fn relaxed(program: &Program, with_cones: bool) -> Relaxed {
    let mut first_of_row = Vec::with_capacity(program.n_rows() + 1);
    let mut relaxed = Program::new(Sense::Minimize);
    for (range, implied) in program.columns.iter().zip(&program.implied) {
        relaxed.push_column(*range, *implied, 0.0);
    }
    if with_cones {
        relaxed.cones.clone_from(&program.cones);
    }
    let t = relaxed.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 1.0);
    for (row, range) in program.rows.iter().enumerate() {
        first_of_row.push(relaxed.n_rows());
        let scale = row_scale(program, row);
        if range.upper.is_finite() {
            relaxed.push_row(Range::at_most(range.upper), program.row(row).chain([(t, -scale)]));
        }
        if range.lower.is_finite() {
            relaxed.push_row(Range::at_least(range.lower), program.row(row).chain([(t, scale)]));
        }
    }
    first_of_row.push(relaxed.n_rows());
    Relaxed { program: relaxed, first_of_row }
}

/// The largest magnitude among a row's coefficients and finite bounds; 1 if all are 0.
pub(super) fn row_scale(program: &Program, row: usize) -> f64 {
    let size = program.row(row).fold(0.0_f64, |most, (_, value)| most.max(value.abs()));
    let ends = [program.rows[row].lower, program.rows[row].upper].into_iter().filter(|end| end.is_finite());
    let scale = ends.fold(size, |most, end| most.max(end.abs()));
    if scale > 0.0 { scale } else { 1.0 }
}

/// The program for the best direction, with entries from −1 to 1, that approaches no finite bound of a row or column.
fn recession(program: &Program) -> Program {
    let within = |range: Range, step: f64| Range {
        lower: if range.lower.is_finite() { 0.0 } else { -step },
        upper: if range.upper.is_finite() { 0.0 } else { step },
    };
    let mut ray = Program::new(program.sense);
    for (range, cost) in program.columns.iter().zip(&program.cost) {
        let range = within(*range, 1.0);
        ray.push_column(range, range, *cost);
    }
    for (row, range) in program.rows.iter().enumerate() {
        ray.push_row(within(*range, f64::INFINITY), program.row(row));
    }
    ray
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Program that maximizes x + y subject to x − y ≤ 1, x, y ≥ 0.
    fn open() -> Program {
        let mut program = Program::new(Sense::Maximize);
        for _ in 0..2 {
            program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 1.0);
        }
        program.push_row(Range::at_most(1.0), [(0, 1.0), (1, -1.0)]);
        program
    }

    fn proven(program: &Program) -> [Option<Termination>; 3] {
        [Termination::Infeasible, Termination::Unbounded, Termination::InfeasibleOrUnbounded]
            .map(|claim| without_optimum(program, claim, &Limits::default()))
    }

    #[test]
    fn only_what_is_proven_is_given_back_whatever_is_claimed() {
        assert_eq!(proven(&open()), [Some(Termination::Unbounded); 3]);
        let mut infeasible = open();
        infeasible.push_row(Range::at_least(3.0), [(0, 1.0)]);
        infeasible.push_row(Range::at_most(1.0), [(1, 1.0)]);
        assert_eq!(proven(&infeasible), [Some(Termination::Infeasible); 3]);
        let mut bounded = open();
        bounded.push_row(Range::at_most(1.0), [(1, 1.0)]);
        assert_eq!(proven(&bounded), [None; 3]);
        let mut empty = open();
        empty.columns[0] = Range { lower: 2.0, upper: 1.0 };
        assert_eq!(proven(&empty), [Some(Termination::Infeasible); 3]);
        assert_eq!(without_optimum(&open(), Termination::Failed, &Limits::default()), None);
    }

    #[test]
    fn a_direction_that_leaves_the_bounds_at_a_small_coefficient_proves_nothing() {
        // x may grow to 1e7, which is far, but not without end.
        let mut far = open();
        far.push_row(Range::at_most(1.0), [(1, 1e-7)]);
        assert_eq!(proven(&far), [None; 3]);
    }
}
