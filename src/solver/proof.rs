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

/// The part of its scale by which a row must be relaxed, at least, for the rows to contradict one another.
const RELAXED_MIN: f64 = 1e-9;

/// The part of its scale by which a row may be violated by a point that satisfies it.
const VIOLATED_MAX: f64 = 1e-6;

/// The most rows that are tried one by one: each alone, and each left out of a contradiction.
const LEFT_OUT_MAX: usize = 200;

/// The most single rows and pairs of rows that are tried as a smaller contradiction.
const FEWER_MAX: usize = 300;

/// The most terms of all programs together that try single rows and pairs; each program has all terms of the
/// original.
const FEWER_TERMS_MAX: usize = 2_000_000;

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
        return contradiction(program, limits).map(|_| Termination::Infeasible);
    }
    let relaxed = certified(&relaxed(program, false).0, limits)?;
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

/// A small set of rows of `candidates` that contradict one another, rows that are no candidates being kept. Rows are
/// taken out one after another if the contradiction remains without them, up to a number of tries. A single row or a
/// pair that is a contradiction takes the place of a larger set, if a number of tries finds one. `None` if no
/// contradiction is proven.
pub fn conflict(program: &Program, candidates: &[usize], limits: &Limits) -> Option<Vec<usize>> {
    let (proof, first_of_row) = contradiction(program, limits)?;
    let duals = &proof.solution.row_duals;
    let largest = duals.iter().fold(0.0_f64, |most, dual| most.max(dual.abs()));
    let counts = |row: &usize| {
        let of_row = first_of_row[*row]..first_of_row[*row + 1];
        duals[of_row].iter().any(|dual| dual.abs() > RELAXED_MIN * largest)
    };
    let is_proven = |kept: &[usize]| {
        let mut part = program.clone();
        for row in candidates.iter().filter(|row| !kept.contains(row)) {
            part.rows[*row] = Range::FREE;
        }
        contradiction(&part, limits).is_some()
    };
    let mut kept: Vec<usize> = candidates.iter().copied().filter(counts).collect();
    if !is_proven(&kept) {
        kept = candidates.to_vec();
    }
    // With cones, a proof may fail beside other rows that succeeds without them.
    let alone = kept.iter().take(LEFT_OUT_MAX).find(|row| !program.is_linear() && is_proven(&[**row]));
    if let Some(row) = alone {
        return Some(vec![*row]);
    }
    for row in kept.clone().into_iter().take(LEFT_OUT_MAX) {
        let others: Vec<usize> = kept.iter().copied().filter(|other| *other != row).collect();
        if is_proven(&others) {
            kept = others;
        }
    }
    let tries = FEWER_MAX.min(FEWER_TERMS_MAX / program.term_values.len().max(1));
    let fewer = fewer(candidates, &kept).take(tries).find(|rows| is_proven(rows));
    let mut found = fewer.unwrap_or(kept);
    found.sort_unstable();
    Some(found)
}

/// Sets of rows that are smaller than a contradiction and not part of it: single rows, then pairs, of which those
/// with a row of the contradiction come first.
fn fewer<'a>(candidates: &'a [usize], contradiction: &'a [usize]) -> impl Iterator<Item = Vec<usize>> + 'a {
    let others = || candidates.iter().copied().filter(|row| !contradiction.contains(row));
    let alone = others().take(if contradiction.len() > 1 { usize::MAX } else { 0 }).map(|row| vec![row]);
    let ordered: Vec<usize> = contradiction.iter().copied().chain(others()).collect();
    let n = if contradiction.len() > 2 { ordered.len() } else { 0 };
    let pairs = (0..n).flat_map(move |first| (first + 1..n).map(move |second| (first, second)));
    let is_new = move |(_, second): &(usize, usize)| *second >= contradiction.len();
    alone.chain(pairs.filter(is_new).map(move |(first, second)| vec![ordered[first], ordered[second]]))
}

fn contradictory(program: &Program) -> bool {
    program.columns.iter().chain(&program.rows).any(|range| range.lower > range.upper)
}

/// A certified optimum. Our simplex comes last: its multipliers are exact at a vertex, which an interior point's are not
/// where columns have no bound.
fn certified(program: &Program, limits: &Limits) -> Option<Certified> {
    let mut chain = registry::default_chain(program);
    chain.extend(registry::backend("simplex"));
    solve_certified(program, &mut chain, limits, None).ok()
}

/// The certified multipliers by which the rows contradict one another, by themselves or with the cones; and, as
/// [`relaxed`] gives it, where the rows begin that stand for each row.
fn contradiction(program: &Program, limits: &Limits) -> Option<(Certified, Vec<usize>)> {
    let with_cones: &[bool] = if program.is_linear() { &[false] } else { &[false, true] };
    with_cones.iter().find_map(|cones| {
        let (relaxed, first_of_row) = relaxed(program, *cones);
        let proof = certified(&relaxed, limits).filter(|proof| proof.certificate.bound > RELAXED_MIN)?;
        Some((proof, first_of_row))
    })
}

/// minimize t, with each row relaxed by t times its scale. Each row becomes none, one or two rows; the second value
/// has the position of the first of them, and the end: [rows + 1].
fn relaxed(program: &Program, with_cones: bool) -> (Program, Vec<usize>) {
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
        let size = program.row(row).fold(0.0_f64, |most, (_, value)| most.max(value.abs()));
        let ends = [range.lower, range.upper].into_iter().filter(|end| end.is_finite());
        let scale = ends.fold(size, |most, end| most.max(end.abs()));
        let scale = if scale > 0.0 { scale } else { 1.0 };
        if range.upper.is_finite() {
            relaxed.push_row(Range::at_most(range.upper), program.row(row).chain([(t, -scale)]));
        }
        if range.lower.is_finite() {
            relaxed.push_row(Range::at_least(range.lower), program.row(row).chain([(t, scale)]));
        }
    }
    first_of_row.push(relaxed.n_rows());
    (relaxed, first_of_row)
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

    /// maximize x + y subject to x − y ≤ 1, x, y ≥ 0.
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
    fn a_conflict_has_the_rows_that_contradict_one_another_and_no_other() {
        let mut program = open();
        let low = program.push_row(Range::at_most(1.0), [(1, 1.0)]);
        let idle = program.push_row(Range::at_least(0.5), [(0, 1.0), (1, 1.0)]);
        let high = program.push_row(Range::at_least(3.0), [(0, 1.0)]);
        assert_eq!(conflict(&program, &[low, idle, high], &Limits::default()), Some(vec![low, high]));
        assert_eq!(conflict(&program, &[idle, high], &Limits::default()), Some(vec![high]));
        program.rows[high] = Range::at_least(2.0);
        assert_eq!(conflict(&program, &[low, idle, high], &Limits::default()), None);
    }

    #[test]
    fn two_rows_that_contradict_one_another_are_found_where_three_were() {
        let mut program = Program::new(Sense::Maximize);
        for _ in 0..2 {
            program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 0.0);
        }
        let little = program.push_row(Range::at_most(1.0), [(0, 1.0), (1, 1.0)]);
        let one = program.push_row(Range::at_least(0.8), [(0, 1.0)]);
        let other = program.push_row(Range::at_least(0.8), [(1, 1.0)]);
        let both = program.push_row(Range::at_least(1.2), [(0, 1.0), (1, 1.0)]);
        let rows = [little, one, other, both];
        assert_eq!(conflict(&program, &rows, &Limits::default()), Some(vec![little, both]));
        let sets: Vec<Vec<usize>> = fewer(&rows, &[little, one, other]).collect();
        assert_eq!(sets[0], [both]);
        assert_eq!(sets[1..], [vec![little, both], vec![one, both], vec![other, both]]);
        assert_eq!(fewer(&rows, &[little, both]).collect::<Vec<_>>(), [vec![one], vec![other]]);
        assert_eq!(fewer(&rows, &[little]).count(), 0);
    }

    #[test]
    fn a_direction_that_leaves_the_bounds_at_a_small_coefficient_proves_nothing() {
        // x may grow to 1e7, which is far, but not without end.
        let mut far = open();
        far.push_row(Range::at_most(1.0), [(1, 1e-7)]);
        assert_eq!(proven(&far), [None; 3]);
    }
}
