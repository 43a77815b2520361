//! The weighted analytic centre of the optimal face of a linear program.
//!
//! Among the optima, the one that maximizes Σ w_i·log v_i over the columns and the slacks of rows v that are not 0
//! at every optimum. Interior-point methods without crossover end near it with w = 1. Weights make one column (row)
//! stand for several alike: the centre of a program with n copies of a column is that of the program with one column
//! of n times the weight, its value shared out evenly, because the sum of logarithms under a fixed total is largest
//! at equal parts and then is n·log(v/n).
//!
//! Method: infeasible primal-dual path following on v_i·z_i = μ·w_i, predictor and corrector (Mehrotra, SIAM J. Optim.
//! 2, 1992), whose limit as μ → 0 is that centre (Roos, Terlaky and Vial, *Theory and algorithms for linear
//! optimization*, 1997, on weighted paths), with centring steps at the end. Normal equations fall apart into blocks
//! where few rows and columns link them, and are dense within a block (see `normal`): fit for blocks of up to some
//! hundred rows with any number of columns.
//!
//! It is no backend of the [`registry`](super::registry), as it cannot do without weights.

mod form;
mod lines;

use std::rc::Rc;

use crate::program::Program;
use crate::solver::backend::{Backend, Feature, Limits, Solution, SolveError, Termination, WarmStart};
use crate::solver::intake::{admit, without_columns};
use crate::solver::normal::{Factor, Plan, Products};
use crate::solver::scaling::Scaled;
use crate::solver::timing::Stopwatch;
use form::Form;

const NAME: &str = "centre";
/// The sum of the products μ·w at the start, relative to Σ |q·v| there. It must not be small beside the dual residual, which
/// is as large as q: Newton's directions then point through the boundary, and steps end there.
const FIRST_GAP: f64 = 100.0;
/// At the start, z of a column satisfies its dual row, except that v·z is kept between this part of μ·w and μ·w
/// divided by it.
const FIRST_SPREAD: f64 = 0.01;
/// The least slack at the start, relative to the row's bound.
const SLACK_MIN: f64 = 0.01;
/// Part of the way to the boundary that a step may go.
const CENTRE_STEP_PART: f64 = 0.9995;
/// Part of the way to the boundary that a centring step may go, smaller so that the point stays away from the boundary.
const CENTRING_STEP_PART: f64 = 0.9;
/// The length of a step, relative to the whole one, up to which it leads nowhere.
const STEP_LENGTH_MIN: f64 = 1e-10;
/// Steps after which the method stops without an answer; it takes about ten.
const CENTRE_STEPS_MAX: u32 = 120;
/// The most centring steps at the end of the path; Newton's method takes about four.
const CENTRING_STEPS_MAX: u32 = 20;
/// The largest relative distance of products v·z from μ·w at which centring ends; columns are as far from the path, about.
/// Newton's method converges quadratically there: compared to 1e-4, this takes one step more in some twentieth of programs.
const OFF_PATH_MAX: f64 = 1e-7;
/// The relative distance of products v·z from μ·w up to which a point is near the path.
const OFF_PATH_NEAR: f64 = 1e-4;
/// The least gap of an answer, relative to the tolerance. The last step may reach gaps near the rounding of costs; at these,
/// rounding decides where in the optimal face the point of the path is.
const GAP_PART_MIN: f64 = 0.01;
/// The relative distance of products v·z from μ·w above which the answer is refused: rounding keeps it from the
/// centre.
const ASTRAY: f64 = 0.5;
/// A solution of normal equations is exact if it misses no more than this part of the right-hand side.
const EXACT: f64 = 1e-12;

/// Weights, > 0, of the logarithms of columns and of rows' slacks.
#[derive(Clone, Debug)]
pub struct BarrierWeights {
    /// Weight of each column: `[columns]`.
    pub columns: Vec<f64>,
    /// Weight of each row's slack: `[rows]`.
    pub rows: Vec<f64>,
}

/// A method that finds the weighted analytic centre of the optima of a linear program whose rows are one-sided and whose
/// columns have a lower bound and no upper one, or are fixed. A free column gets a lower bound that it cannot reach, which is
/// right where it has the same value at every optimum, as a level has. The method fails on other programs, and where rounding
/// stops it too early.
#[derive(Clone, Debug)]
pub struct Centre {
    weights: BarrierWeights,
}

impl Centre {
    /// A method for programs with as many columns and rows as there are weights.
    pub const fn new(weights: BarrierWeights) -> Self {
        Self { weights }
    }
}

impl Backend for Centre {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, feature: Feature) -> bool {
        matches!(feature, Feature::Duals | Feature::CentralSolutions)
    }

    fn solve(
        &mut self,
        program: &Program,
        limits: &Limits,
        _warm: Option<&WarmStart>,
    ) -> Result<Solution, SolveError> {
        if let Some(answer) = admit(self, program)? {
            return Ok(answer);
        }
        let failed = |what: &str| SolveError::Backend { backend: NAME, message: what.to_owned() };
        if self.weights.columns.len() != program.n_columns() || self.weights.rows.len() != program.n_rows() {
            return Err(failed("the weights are another program's"));
        }
        let scaled = Scaled::of(program);
        let form = Form::of(&scaled.program, &self.weights)
            .ok_or_else(|| failed("the program has two-sided parts"))?;
        let mut state = State::start(&form);
        let mut steps = 0;
        let clock = Stopwatch::start();
        while !state.is_close(&form, limits.tolerance) {
            steps += 1;
            if steps > limits.iterations.unwrap_or(CENTRE_STEPS_MAX) {
                return Ok(without_columns(Termination::IterationLimit));
            }
            if limits.is_over(&clock) {
                return Ok(without_columns(Termination::TimeLimit));
            }
            state.advance(&form).map_err(|halt| failed(halt.reason()))?;
        }
        let mu_min = GAP_PART_MIN * limits.tolerance * state.value(&form) / form.weight;
        let target = state.mu(&form).max(mu_min);
        steps += state.centre(&form, target);
        if state.off_path(&form, target) > ASTRAY {
            return Err(failed("rounding keeps it from the centre"));
        }
        Ok(scaled.recover(program, form.solution(&scaled.program, &state.v, &state.y, steps)))
    }
}

/// A point of the method: v, z > 0 and y, with the quantities that follow from them.
struct State {
    v: Vec<f64>,
    z: Vec<f64>,
    y: Vec<f64>,
    /// The diagonal of the normal equations, v / z.
    ratio: Vec<f64>,
    /// The residual of rows, b − G v.
    primal: Vec<f64>,
    /// The residual of columns and slacks, q − Gᵀ y − z.
    dual: Vec<f64>,
    /// Plans of the normal equations of earlier steps.
    plans: Vec<Rc<Plan>>,
}

/// The accuracy to which normal equations are solved: a predictor only says how far to aim, and needs few digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digits {
    Few,
    All,
}

/// The reason why a point cannot be moved along the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    /// The factor of the normal equations has a number that is NaN or infinite.
    NotFinite,
    /// A value of v or z is not above 0 after the step, for rounding.
    Boundary,
    /// The longest step that keeps v and z positive is shorter than `STEP_LENGTH_MIN`.
    ShortStep,
}

impl Halt {
    fn reason(self) -> &'static str {
        match self {
            Self::NotFinite => "its normal equations overflow",
            Self::Boundary => "rounding puts its point on the boundary",
            Self::ShortStep => "its steps have become too short to go on",
        }
    }
}

/// A step, the change of each part of a point, or the parts themselves.
struct Step {
    v: Vec<f64>,
    z: Vec<f64>,
    y: Vec<f64>,
}

impl State {
    fn start(form: &Form) -> Self {
        let v = interior_start(form);
        let size: f64 = form.cost.iter().zip(&v).map(|(cost, v)| (cost * v).abs()).sum();
        let mu = FIRST_GAP * if size > 0.0 { size } else { 1.0 } / form.weight;
        let mut z: Vec<f64> = form.weights.iter().zip(&v).map(|(weight, v)| mu * weight / v).collect();
        let y: Vec<f64> = z[form.n()..].iter().map(|z| -z).collect();
        for ((z, along), cost) in z.iter_mut().zip(form.transposed(&y)).zip(&form.cost) {
            *z = (cost - along).clamp(FIRST_SPREAD * *z, *z / FIRST_SPREAD);
        }
        let none = Vec::new;
        let mut state = Self { v, z, y, ratio: none(), primal: none(), dual: none(), plans: Vec::new() };
        state.update(form);
        state
    }

    /// Computes the quantities that follow from v, z and y.
    fn update(&mut self, form: &Form) {
        self.ratio.clear();
        self.ratio.extend(self.v.iter().zip(&self.z).map(|(v, z)| v / z));
        self.primal = form.times(&self.v);
        for (value, bound) in self.primal.iter_mut().zip(&form.bounds) {
            *value = bound - *value;
        }
        self.dual = form.transposed(&self.y);
        for ((value, cost), z) in self.dual.iter_mut().zip(form.costs()).zip(&self.z) {
            *value = cost - *value - z;
        }
    }

    /// The weighted mean μ of the products, Σ v·z / Σ w.
    fn mu(&self, form: &Form) -> f64 {
        let products: f64 = self.v.iter().zip(&self.z).map(|(v, z)| v * z).sum();
        products / form.weight
    }

    fn is_close(&self, form: &Form, tolerance: f64) -> bool {
        let largest = |values: &[f64]| values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        let gap = self.mu(form) * form.weight;
        largest(&self.primal) <= tolerance * largest(&form.bounds).max(1.0)
            && largest(&self.dual) <= tolerance * largest(&form.cost).max(1.0)
            && gap <= tolerance * self.value(form)
    }

    /// The size of the objective, to which gaps are relative.
    fn value(&self, form: &Form) -> f64 {
        form.cost.iter().zip(&self.v).map(|(cost, v)| cost * v).sum::<f64>().abs().max(1e-3)
    }

    /// The largest relative distance of v·z from μ·w.
    fn off_path(&self, form: &Form, mu: f64) -> f64 {
        let products = self.v.iter().zip(&self.z).map(|(v, z)| v * z);
        products.zip(&form.weights).map(|(product, w)| (product / (mu * w) - 1.0).abs()).fold(0.0, f64::max)
    }

    /// Takes a predictor and a corrector step.
    fn advance(&mut self, form: &Form) -> Result<(), Halt> {
        let mu = self.mu(form);
        let factor = Factor::of(&form.matrix, &self.ratio, &mut self.plans).ok_or(Halt::NotFinite)?;
        let complementarity: Vec<f64> = self.v.iter().zip(&self.z).map(|(v, z)| -v * z).collect();
        let predicted = self.step(form, &factor, &complementarity, Digits::Few);
        let primal = length_to_boundary(&self.v, &predicted.v);
        let dual = length_to_boundary(&self.z, &predicted.z);
        let along = self.v.iter().zip(&predicted.v).zip(self.z.iter().zip(&predicted.z));
        let ahead: f64 = along.map(|((v, dv), (z, dz))| (v + primal * dv) * (z + dual * dz)).sum();
        let sigma = (ahead / form.weight / mu).clamp(0.0, 1.0).powi(3).max(1e-4);
        let of_path = form.weights.iter().zip(&complementarity);
        let corrected: Vec<f64> = of_path
            .zip(predicted.v.iter().zip(&predicted.z))
            .map(|((weight, product), (dv, dz))| sigma * mu * weight + product - dv * dz)
            .collect();
        let step = self.step(form, &factor, &corrected, Digits::All);
        self.move_along(form, &step, CENTRE_STEP_PART)
    }

    /// Moves to the point of the path at μ by Newton steps, and returns their number. A step that leads away from a point near
    /// the path is taken back: there, the remaining residual of rows moves columns near 0 by more than their own values.
    fn centre(&mut self, form: &Form, mu: f64) -> u32 {
        let mut off_path = self.off_path(form, mu);
        for step in 0..CENTRING_STEPS_MAX {
            if off_path <= OFF_PATH_MAX {
                return step;
            }
            let before = Step { v: self.v.clone(), z: self.z.clone(), y: self.y.clone() };
            let outcome = self.centring_step(form, mu);
            let after = self.off_path(form, mu);
            if outcome.is_err() || off_path <= OFF_PATH_NEAR && after > off_path {
                let Step { v, z, y } = before;
                (self.v, self.z, self.y) = (v, z, y);
                self.update(form);
                return step;
            }
            off_path = after;
        }
        CENTRING_STEPS_MAX
    }

    /// Takes a Newton step towards the point of the path at μ.
    fn centring_step(&mut self, form: &Form, mu: f64) -> Result<(), Halt> {
        let factor = Factor::of(&form.matrix, &self.ratio, &mut self.plans).ok_or(Halt::NotFinite)?;
        let complementarity: Vec<f64> =
            (0..self.v.len()).map(|at| mu * form.weights[at] - self.v[at] * self.z[at]).collect();
        let step = self.step(form, &factor, &complementarity, Digits::All);
        self.move_along(form, &step, CENTRING_STEP_PART)
    }

    /// Moves the point by `part` of the longest step that keeps v and z positive, and by no more than the whole step.
    fn move_along(&mut self, form: &Form, step: &Step, part: f64) -> Result<(), Halt> {
        let primal = (length_to_boundary(&self.v, &step.v) * part).min(1.0);
        let dual = (length_to_boundary(&self.z, &step.z) * part).min(1.0);
        let add = |values: &mut [f64], steps: &[f64], length: f64| {
            values.iter_mut().zip(steps).for_each(|(value, step)| *value += length * step);
        };
        add(&mut self.v, &step.v, primal);
        add(&mut self.z, &step.z, dual);
        add(&mut self.y, &step.y, dual);
        let positive = |values: &[f64]| values.iter().all(|value| *value > 0.0 && value.is_finite());
        if !(positive(&self.v) && positive(&self.z)) {
            return Err(Halt::Boundary);
        }
        if primal.max(dual) <= STEP_LENGTH_MIN {
            return Err(Halt::ShortStep);
        }
        self.update(form);
        Ok(())
    }

    /// The solution y of the normal equations for a right-hand side, and Gᵀ y.
    fn solve(&self, form: &Form, factor: &Factor, right: &[f64], digits: Digits) -> (Vec<f64>, Vec<f64>) {
        match digits {
            Digits::All => factor.solve_refined(form, &self.ratio, right, EXACT),
            Digits::Few => {
                let y = factor.solve(right);
                let along = form.transposed(&y);
                (y, along)
            }
        }
    }

    /// The Newton step with Z Δv + V Δz = `complementarity` that makes both residuals 0.
    fn step(&self, form: &Form, factor: &Factor, complementarity: &[f64], digits: Digits) -> Step {
        let wanted = complementarity.iter().zip(&self.z).map(|(product, z)| product / z);
        let pull: Vec<f64> = self
            .ratio
            .iter()
            .zip(&self.dual)
            .zip(wanted)
            .map(|((ratio, dual), wanted)| ratio * dual - wanted)
            .collect();
        let mut y = form.times(&pull);
        for (value, primal) in y.iter_mut().zip(&self.primal) {
            *value += primal;
        }
        let (y, mut v) = self.solve(form, factor, &y, digits);
        for ((value, ratio), pull) in v.iter_mut().zip(&self.ratio).zip(&pull) {
            *value = ratio * *value - pull;
        }
        let held = self.z.iter().zip(&self.v).zip(&v);
        let z = complementarity.iter().zip(held).map(|(product, ((z, v), step))| (product - z * step) / v);
        Step { z: z.collect(), v, y }
    }
}

/// Columns and slacks of a point that leaves every row about half of its bound. Columns with a lower bound of their own in
/// rows with a bound above 0 are placed first, then free columns, such as a level, and columns for which the first make room.
/// Free columns come second because, before the others are placed, their rows have no more room than the distance of their
/// artificial lower bounds below 0, some 1e-4. A level that starts there makes the first μ, a multiple of the objective, 1e-4 of
/// the dual residual, and from such a point Newton's steps end at the boundary at once. Where there is no room, the point
/// misses the row.
fn interior_start(form: &Form) -> Vec<f64> {
    let mut v = vec![0.0; form.n()];
    let mut left = form.bounds.clone();
    for places_all in [false, true] {
        let placed_now: Vec<bool> =
            v.iter().zip(&form.columns).map(|(v, of)| *v == 0.0 && (places_all || !of.is_free)).collect();
        let mut totals = vec![0.0; left.len()];
        for (_, (rows, values)) in placed_now.iter().zip(form.matrix.terms()).filter(|(now, _)| **now) {
            rows.iter().zip(values).for_each(|(row, value)| totals[*row] += value.max(0.0));
        }
        let parts: Vec<f64> = left.iter().zip(totals).map(|(left, total)| 0.5 * left / total).collect();
        let columns = v.iter_mut().zip(form.matrix.terms()).zip(&placed_now).filter(|(_, now)| **now);
        for ((v, (rows, values)), _) in columns {
            let bounding = rows.iter().zip(values).filter(|(_, value)| **value > 0.0);
            let part = bounding.map(|(row, _)| parts[*row]).fold(f64::INFINITY, f64::min);
            let unplaced = if places_all { 1.0 } else { 0.0 };
            *v = if part > 0.0 && part.is_finite() { part } else { unplaced };
            rows.iter().zip(values).for_each(|(row, value)| left[*row] -= value * *v);
        }
    }
    let size = |bound: f64| if bound == 0.0 { 1.0 } else { bound.abs() };
    v.extend(left.iter().zip(&form.bounds).map(|(left, bound)| left.max(SLACK_MIN * size(*bound))));
    v
}

/// The length along `steps` at which the first of `values` is 0; at most 2, where 1 is the whole step.
fn length_to_boundary(values: &[f64], steps: &[f64]) -> f64 {
    // In four lanes, without branches.
    const UNROLLED: usize = 4;
    let until = |value: &f64, step: &f64| if *step < 0.0 { -value / step } else { 2.0 };
    let mut least = [2.0_f64; UNROLLED];
    let (values, steps) = (values.chunks_exact(UNROLLED), steps.chunks_exact(UNROLLED));
    let last = values.remainder().iter().zip(steps.remainder());
    let last = last.map(|(value, step)| until(value, step)).fold(2.0, f64::min);
    for (values, steps) in values.zip(steps) {
        for ((least, value), step) in least.iter_mut().zip(values).zip(steps) {
            let ahead = until(value, step);
            *least = if ahead < *least { ahead } else { *least };
        }
    }
    least.into_iter().fold(last, f64::min)
}

#[cfg(test)]
mod tests;
