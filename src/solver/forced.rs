//! Presolve for programs with cones: columns that rows allow only one value are fixed, and cones over fixed columns
//! become bounds.
//!
//! If the least value of a row within the bounds of its columns is also the most that the row allows, each of its
//! columns has one value: Σ x ≤ 0 over x ≥ 0 is x = 0. A cone over such columns has no interior, which interior-point
//! methods need: y ≤ √u at u = 0 has a multiplier that grows without end. Once they are fixed, the cone is a bound of
//! its one open column, and bounds need no interior.

use crate::program::{Affine, Cone, ConeKind, Program, Range};
use crate::solver::backend::Solution;
use crate::solver::certificate::AnswerCertificate;
use crate::solver::tolerances::SUM_ROUNDING;

/// The most passes over rows and cones; each carries fixed values one row further.
const FORCED_PASSES_MAX: usize = 16;

/// A program with cones in which the columns that rows allow only one value are fixed.
#[derive(Debug)]
pub(super) struct Reduced {
    pub(super) program: Program,
    /// Whether each cone of the original was left out: [cones].
    left_out: Vec<bool>,
    /// Whether one of the cones left out has no interior.
    pub(super) is_flat: bool,
}

/// The bounds that the columns of a program have at each of its points, as far as they are known.
struct Reach<'a> {
    program: &'a Program,
    /// The known bounds of each column: [columns].
    columns: Vec<Range>,
    left_out: Vec<bool>,
    is_flat: bool,
    /// Whether the present pass has changed any bound or left out a cone.
    changed: bool,
}

/// Whether the rows of a program leave one of its cones no interior.
pub(crate) fn has_flat_cone(program: &Program) -> bool {
    Reduced::of(program).is_some_and(|reduced| reduced.is_flat)
}

impl Reduced {
    /// The reduction of a program; none if it has no cones, if nothing is fixed, or if its rows contradict one
    /// another.
    pub(super) fn of(program: &Program) -> Option<Self> {
        if program.is_linear() {
            return None;
        }
        let (columns, left_out) = (program.columns.clone(), vec![false; program.cones.len()]);
        let mut reach = Reach { program, columns, left_out, is_flat: false, changed: false };
        for _ in 0..FORCED_PASSES_MAX {
            reach.changed = false;
            (0..program.n_rows()).try_for_each(|row| reach.keep_row(row))?;
            (0..program.cones.len()).try_for_each(|cone| reach.keep_cone(cone))?;
            if !reach.changed {
                break;
            }
        }
        reach.reduced()
    }

    /// The solution of the original program from one of the reduced program, with its certificate. `bound` is the bound
    /// that the certificate of the reduced program proves.
    pub(super) fn recover(
        &self,
        original: &Program,
        mut solution: Solution,
        bound: f64,
    ) -> (Solution, AnswerCertificate) {
        for (value, range) in solution.columns.iter_mut().zip(&self.program.columns) {
            *value = if range.is_point() { range.lower } else { *value };
        }
        let mut duals = std::mem::take(&mut solution.cone_duals).into_iter();
        let of_cone = |(cone, left_out): (&Cone, &bool)| {
            if *left_out { Some(vec![0.0; cone.entries.len()]) } else { duals.next() }
        };
        solution.cone_duals = original.cones.iter().zip(&self.left_out).map_while(of_cone).collect();
        solution.objective = original.objective(&solution.columns);
        let certificate = AnswerCertificate::with_bound(original, &solution, Some(bound));
        (solution, certificate)
    }
}

impl Reach<'_> {
    /// Narrows the columns of a row by its bounds; none if no point satisfies the row.
    fn keep_row(&mut self, row: usize) -> Option<()> {
        let range = self.program.rows[row];
        self.keep_below(row, 1.0, range.upper)?;
        self.keep_below(row, -1.0, -range.lower)
    }

    /// Narrows the columns of a row by `sign` · row ≤ `limit`: a column that alone is open gets a bound; if the least
    /// value of the row is the limit, all its columns are fixed at that end of their bounds. None if the least value
    /// is above the limit.
    fn keep_below(&mut self, row: usize, sign: f64, limit: f64) -> Option<()> {
        if limit == f64::INFINITY {
            return Some(());
        }
        let terms = || self.program.row(row).filter(|(_, value)| *value != 0.0);
        let end = |(column, value): (usize, f64)| {
            let range = self.columns[column];
            if sign * value > 0.0 { range.lower } else { range.upper }
        };
        let mut open = terms().filter(|(column, _)| !self.columns[*column].is_point());
        if let (Some((column, value)), None) = (open.next(), open.next()) {
            let fixed = terms().filter(|(other, _)| *other != column);
            let of_fixed: f64 = fixed.map(|term| sign * term.1 * end(term)).sum();
            let bound = (limit - of_fixed) / (sign * value);
            let narrowed = if sign * value > 0.0 { Range::at_most(bound) } else { Range::at_least(bound) };
            return self.tighten_bounds(column, narrowed);
        }
        let (mut least, mut size) = (0.0, limit.abs());
        for term in terms() {
            let part = sign * term.1 * end(term);
            least += part;
            size += part.abs();
        }
        let rounding = SUM_ROUNDING * size;
        if !least.is_finite() || least < limit - rounding {
            return Some(());
        }
        if least > limit + rounding {
            return None;
        }
        let fixed: Vec<(usize, f64)> = terms().map(|term| (term.0, end(term))).collect();
        fixed.into_iter().try_for_each(|(column, value)| self.tighten_bounds(column, Range::exactly(value)))
    }

    /// Narrows the bounds of a column; none if they contradict one another. Bounds that differ by rounding alone
    /// become one value.
    fn tighten_bounds(&mut self, column: usize, to: Range) -> Option<()> {
        let range = self.columns[column];
        let mut narrowed = Range { lower: range.lower.max(to.lower), upper: range.upper.min(to.upper) };
        let ends = [narrowed.lower, narrowed.upper];
        if ends.into_iter().all(f64::is_finite) && !narrowed.is_point() {
            let rounding = SUM_ROUNDING * ends.into_iter().fold(0.0_f64, |most, end| most.max(end.abs()));
            if narrowed.lower > narrowed.upper + rounding {
                return None;
            }
            if narrowed.upper - narrowed.lower <= rounding {
                narrowed = Range::exactly(if to.is_point() { to.lower } else { range.lower.max(to.lower) });
            }
        }
        self.changed |= narrowed != range;
        self.columns[column] = narrowed;
        Some(())
    }

    /// Replaces a cone with one open column by a bound of that column; none if no point is in the cone.
    fn keep_cone(&mut self, cone: usize) -> Option<()> {
        if self.left_out[cone] {
            return Some(());
        }
        let Cone { kind, entries } = &self.program.cones[cone];
        let entries: Vec<Affine> = entries.iter().map(|entry| self.open_part(entry)).collect();
        let bounded = match (kind, entries.as_slice()) {
            (ConeKind::Exponential, [y, scale, u]) => below_logarithm(y, scale, u),
            (ConeKind::SecondOrder, [t, middle, d]) => {
                below_root(t, middle, d).or_else(|| above_inverse(t, middle, d))
            }
            _ => None,
        };
        let Some((column, range)) = bounded else { return Some(()) };
        let range = range?;
        self.left_out[cone] = true;
        self.is_flat |= range.is_point();
        self.changed = true;
        self.tighten_bounds(column, range)
    }

    /// An affine form, its fixed columns put into its constant.
    fn open_part(&self, form: &Affine) -> Affine {
        let is_fixed = |column: usize| self.columns[column].is_point();
        let fixed = form.terms.iter().filter(|(column, _)| is_fixed(*column));
        let constant =
            form.constant + fixed.map(|(column, value)| value * self.columns[*column].lower).sum::<f64>();
        let terms = form.terms.iter().copied().filter(|(column, value)| *value != 0.0 && !is_fixed(*column));
        Affine { constant, terms: terms.collect() }
    }

    /// The reduced program; none if no column was fixed and no cone replaced.
    fn reduced(self) -> Option<Reduced> {
        let Self { program, columns, left_out, is_flat, .. } = self;
        let newly = |(range, before): (&Range, &Range)| range.is_point() && !before.is_point();
        let is_other = columns.iter().zip(&program.columns).any(newly) || left_out.contains(&true);
        if !is_other {
            return None;
        }
        let mut reduced = program.clone();
        let in_cone = bounded_by_cones(program, &left_out);
        for (column, range) in columns.iter().enumerate() {
            // Other bounds follow from rows, which are all kept.
            if !range.is_point() && !in_cone[column] {
                continue;
            }
            reduced.columns[column] = *range;
            let implied = reduced.implied[column];
            let (lower, upper) = (implied.lower.max(range.lower), implied.upper.min(range.upper));
            reduced.implied[column] = if lower <= upper { Range { lower, upper } } else { *range };
        }
        for row in 0..program.n_rows() {
            if program.row(row).all(|(column, value)| value == 0.0 || columns[column].is_point()) {
                reduced.rows[row] = Range::FREE;
            }
        }
        let mut kept = left_out.iter();
        reduced.cones.retain(|_| !kept.next().copied().unwrap_or(false));
        Some(Reduced { program: reduced, left_out, is_flat })
    }
}

/// Whether each column is in a cone that is left out, and may be bounded by it: [columns].
fn bounded_by_cones(program: &Program, left_out: &[bool]) -> Vec<bool> {
    let mut bounded = vec![false; program.n_columns()];
    let out = program.cones.iter().zip(left_out).filter(|(_, left_out)| **left_out);
    for (column, _) in out.flat_map(|(cone, _)| &cone.entries).flat_map(|entry| &entry.terms) {
        bounded[*column] = true;
    }
    bounded
}

/// The form α·y + β of one column y.
#[derive(Clone, Copy, Debug)]
struct FormOfOne {
    /// The column y.
    column: usize,
    /// α.
    factor: f64,
    /// β.
    constant: f64,
}

/// A form as one of its only column; `None` for a form of no column or of several.
fn of_one(form: &Affine) -> Option<FormOfOne> {
    let [(column, factor)] = form.terms[..] else { return None };
    Some(FormOfOne { column, factor, constant: form.constant })
}

/// The range of y where α·y + β is within the given range.
fn solved_for(FormOfOne { factor, constant, .. }: FormOfOne, range: Range) -> Range {
    let (one, other) = ((range.lower - constant) / factor, (range.upper - constant) / factor);
    Range { lower: one.min(other), upper: one.max(other) }
}

/// A column, and its range; no range if it has no feasible value.
type Bounded = (usize, Option<Range>);

/// The range of y with (α·y + β, γ, u) in the exponential cone, γ and u being constants.
fn below_logarithm(y: &Affine, scale: &Affine, u: &Affine) -> Option<Bounded> {
    let is_number = scale.terms.is_empty() && u.terms.is_empty();
    let form = of_one(y).filter(|_| is_number)?;
    let (scale, u) = (scale.constant, u.constant);
    let most = (scale > 0.0 && u > 0.0).then(|| scale * (u / scale).ln());
    Some((form.column, most.map(|most| solved_for(form, Range::at_most(most)))))
}

/// The range of y with (t, α·y + β, d) in the second-order cone, t and d being constants.
fn below_root(t: &Affine, middle: &Affine, d: &Affine) -> Option<Bounded> {
    let is_number = t.terms.is_empty() && d.terms.is_empty();
    let form = of_one(middle).filter(|_| is_number)?;
    let (sum, difference) = (t.constant + d.constant, t.constant - d.constant);
    let root = (sum >= 0.0 && difference >= 0.0).then(|| (sum * difference).sqrt());
    Some((form.column, root.map(|root| solved_for(form, Range { lower: -root, upper: root }))))
}

/// The range of y with (t, m, d) in the second-order cone, m being a constant, and one of t + d and t − d a constant,
/// the other α·y + β: their product is at least m².
fn above_inverse(t: &Affine, middle: &Affine, d: &Affine) -> Option<Bounded> {
    if !middle.terms.is_empty() {
        return None;
    }
    let FormOfOne { column, factor: of_t, constant } = of_one(t)?;
    let FormOfOne { factor: of_d, constant: other, .. } = of_one(d).filter(|of| of.column == column)?;
    // The difference and the sum of their coefficients, one of which is 0.
    let (number, form) = match (of_t - of_d, of_t + of_d) {
        (0.0, factor) => (constant - other, FormOfOne { column, factor, constant: constant + other }),
        (factor, 0.0) => (constant + other, FormOfOne { column, factor, constant: constant - other }),
        _ => return None,
    };
    let least = (number > 0.0).then(|| middle.constant * middle.constant / number);
    Some((column, least.map(|least| solved_for(form, Range::at_least(least)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Sense;
    use crate::solver::backend::Limits;
    use crate::solver::{registry, solve_certified};

    /// The form factor · x + constant of one column x.
    fn of(column: usize, factor: f64, constant: f64) -> Affine {
        Affine { constant, terms: vec![(column, factor)] }
    }

    /// Program of columns x from 0 to 2 and y without bounds, with y as the objective, and of a cone.
    fn program(sense: Sense, kind: ConeKind, entries: Vec<Affine>) -> Program {
        let mut program = Program::new(sense);
        let range = Range { lower: 0.0, upper: 2.0 };
        program.push_column(range, range, 0.0);
        program.push_column(Range::FREE, Range::FREE, 1.0);
        program.cones.push(Cone { kind, entries });
        program
    }

    /// Program that maximizes y ≤ √x.
    fn root() -> Program {
        program(
            Sense::Maximize,
            ConeKind::SecondOrder,
            vec![of(0, 1.0, 1.0), of(1, 2.0, 0.0), of(0, -1.0, 1.0)],
        )
    }

    /// Program that maximizes y ≤ log x.
    fn logarithm() -> Program {
        let one = Affine { constant: 1.0, terms: Vec::new() };
        program(Sense::Maximize, ConeKind::Exponential, vec![of(1, 1.0, 0.0), one, of(0, 1.0, 0.0)])
    }

    /// Program that minimizes y ≥ 1/x.
    fn inverse() -> Program {
        let two = Affine { constant: 2.0, terms: Vec::new() };
        let with = |sign: f64| Affine { constant: 0.0, terms: vec![(0, sign), (1, 1.0)] };
        program(Sense::Minimize, ConeKind::SecondOrder, vec![with(1.0), two, with(-1.0)])
    }

    fn optimum(program: &Program) -> Option<f64> {
        let certified =
            solve_certified(program, &mut registry::default_chain(program), &Limits::default(), None).ok()?;
        assert!(certified.certificate.optimal && certified.solution.row_duals.len() == program.n_rows());
        let lengths = |lengths: &mut dyn Iterator<Item = usize>| lengths.collect::<Vec<usize>>();
        let of_duals = lengths(&mut certified.solution.cone_duals.iter().map(Vec::len));
        assert_eq!(of_duals, lengths(&mut program.cones.iter().map(|cone| cone.entries.len())));
        Some(certified.certificate.primal)
    }

    fn near(found: Option<f64>, expected: f64) {
        let found = found.unwrap_or(f64::NAN);
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }

    #[test]
    fn nothing_is_forced_where_rows_leave_room() {
        for mut program in [root(), logarithm(), inverse()] {
            program.push_row(Range::at_most(1.5), [(0, 1.0)]);
            assert!(Reduced::of(&program).is_none());
        }
        near(optimum(&root()), 2.0_f64.sqrt());
    }

    #[test]
    fn a_column_without_room_makes_its_cone_a_bound() {
        for (range, at) in [(Range::at_least(2.0), 2.0_f64), (Range::exactly(0.25), 0.25)] {
            let best = [at.sqrt(), at.ln(), at.recip()];
            for (mut program, best) in [root(), logarithm(), inverse()].into_iter().zip(best) {
                program.push_row(range, [(0, 1.0)]);
                let reduced = Reduced::of(&program).unwrap();
                assert!(reduced.program.cones.is_empty() && !reduced.is_flat);
                near(optimum(&reduced.program), best);
                near(optimum(&program), best);
            }
        }
    }

    #[test]
    fn what_must_be_0_has_a_root_of_0_and_neither_logarithm_nor_inverse() {
        let forbidding = |mut program: Program| {
            // x + z ≤ 0 with z ≥ 0, and x ≥ 0 beside it.
            program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 0.0);
            program.push_row(Range::at_most(0.0), [(0, 3.0), (2, 1.0)]);
            program
        };
        assert!(has_flat_cone(&forbidding(root())));
        near(optimum(&forbidding(root())), 0.0);
        for program in [logarithm(), inverse()].map(forbidding) {
            assert!(Reduced::of(&program).is_none());
            assert_eq!(optimum(&program), None);
        }
    }

    #[test]
    fn what_one_row_fixes_another_carries_on() {
        let mut program = root();
        let z = program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 0.0);
        // z must be 1, and leaves nothing of x + z ≤ 1.
        program.push_row(Range::at_most(1.0), [(0, 1.0), (z, 1.0)]);
        program.push_row(Range::at_least(1.0), [(z, 1.0)]);
        near(optimum(&program), 0.0);
        // Rows that contradict one another are not this module's to judge.
        program.push_row(Range::at_least(0.5), [(0, 1.0)]);
        assert!(Reduced::of(&program).is_none());
        assert_eq!(optimum(&program), None);
    }
}
