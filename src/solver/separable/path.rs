//! The interior-point method: a point near the central path, and the steps along it.

use std::rc::Rc;

use crate::solver::backend::Limits;
use crate::solver::normal::{Factor, Matrix, Plan, Products};
use crate::solver::separable::form::{Form, Placed};
use crate::solver::timing::Stopwatch;

/// Part of the way to the boundary that a step may go.
const SEPARABLE_STEP_PART: f64 = 0.995;
/// Part of the way to 0 that the argument of a function may go in a step: farther away, the function is far from its
/// tangent.
const CURVED_STEP_PART: f64 = 0.7;
/// The largest relative growth, in a step, of the argument of a function in rows, for the same reason.
const GROWTH_MAX: f64 = 1.0;
/// Number of steps after which the best point so far is the answer; a path takes twenty to fifty.
const SEPARABLE_STEPS_MAX: u32 = 200;
/// Number of steps without progress after which the path ends: rounding allows no more.
const STEPS_IDLE_MAX: u32 = 40;
/// The part of the tolerance at which the path ends.
const PATH_END: f64 = 1e-2;
/// The least weight of a column, the largest being 1.
const WEIGHT_MIN: f64 = 1e-2;
/// The gap aimed at is at least this part of the residuals: with products far smaller, hardly a step could reduce them.
const GAP_MIN: f64 = 0.1;

/// The end of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum End {
    /// The path came close enough, or rounding or [`SEPARABLE_STEPS_MAX`] ended it. The value is the larger of the residual
    /// and the gap at the best point, both relative.
    Off(f64),
    /// The time limit was reached or the interrupt raised.
    TimeLimit,
    /// The given limit on iterations was reached.
    IterationLimit,
}

/// A point: columns and slacks v with their reduced costs z, and prices y of rows.
#[derive(Clone)]
struct Point {
    v: Vec<f64>,
    z: Vec<f64>,
    y: Vec<f64>,
}

/// The state of the method: its point, the quantities computed from it, and the best point so far.
pub(super) struct Path<'a> {
    form: &'a Form,
    matrix: Matrix,
    /// Plans of the normal equations of earlier steps.
    plans: Vec<Rc<Plan>>,
    /// Weights w of columns and slacks; 0 for arguments of functions and where a row has no slack.
    weights: Vec<f64>,
    /// The sum of the weights.
    weight: f64,
    point: Point,
    /// The diagonal D of the normal equations.
    ratio: Vec<f64>,
    /// The residual of rows, b − G v − Σ J F.
    primal: Vec<f64>,
    /// The residual of columns and slacks, q − Gᵀy − z; for the argument of a function in rows, less the part that the
    /// residual of its s contributes.
    dual: Vec<f64>,
    /// The distance log(κ·λ/(z·u^p)) of each curve from the path, where it is 0: [curves].
    curve_distances: Vec<f64>,
    /// The size of the objective, or the largest worth λ·|F′(u)|·u of a function if that is larger.
    reference: f64,
    /// The gap, relative to `reference`.
    gap: f64,
    /// The largest residual: of each row, relative to its bound or 1; of columns, summed up in units of the
    /// objective, relative to `reference`.
    residual: f64,
    /// The larger of residual and gap at the best point so far, and that point.
    best: (f64, Point),
    steps: u32,
}

impl<'a> Path<'a> {
    /// Starts at a point with positive columns, slacks and arguments.
    pub(super) fn start(form: &'a Form) -> Self {
        let (n, m) = (form.matrix.n_columns(), form.matrix.n_rows());
        let v = inside(form);
        let costs = form.cost.iter().zip(&v).map(|(cost, value)| (cost * value).abs());
        let most = costs.fold(0.0, f64::max);
        let worths = form.curves.iter().map(|placed| {
            let u = v[placed.u];
            placed.cost.abs() * placed.shape.slope(u) * u
        });
        let worths: Vec<f64> = worths.collect();
        let worth = most + worths.iter().sum::<f64>();
        let worth = if worth > 0.0 { worth } else { 1.0 };
        let weights = weights_by_worth(form, &worths);
        let weight: f64 = weights.iter().sum();
        let mu = worth / weight;
        let price = |at: usize| if weights[at] > 0.0 { mu * weights[at] / v[at] } else { 0.0 };
        let mut z: Vec<f64> = (0..n + m).map(price).collect();
        let mut y = vec![0.0; m];
        // In reverse: a curve's price needs the rows that tie later ones to it.
        for placed in form.curves.iter().rev() {
            let Placed { shape, u, s, link, cost, .. } = placed;
            let lambda = s.map_or(cost.abs(), |s| z[s]);
            z[*u] = lambda * shape.slope(v[*u]);
            y[*link] = z[*u] - placed.price(&form.matrix, &y);
        }
        for row in 0..m {
            if form.has_slack[row] {
                y[row] = -z[n + row];
            }
        }
        let point = Point { v, z, y };
        let mut path = Self {
            form,
            matrix: form.matrix.clone(),
            plans: Vec::new(),
            weights,
            weight,
            best: (f64::INFINITY, point.clone()),
            point,
            ratio: Vec::new(),
            primal: Vec::new(),
            dual: Vec::new(),
            curve_distances: Vec::new(),
            gap: f64::INFINITY,
            reference: 1.0,
            residual: f64::INFINITY,
            steps: 0,
        };
        path.update();
        path
    }

    /// Follows the path until its point is close enough, or a limit or rounding ends it.
    pub(super) fn follow(&mut self, limits: &Limits) -> End {
        let clock = Stopwatch::start();
        let mut idle = 0;
        while self.best.0 > PATH_END * limits.tolerance && idle < STEPS_IDLE_MAX {
            if limits.is_over(&clock) {
                return End::TimeLimit;
            }
            if self.steps >= limits.iterations.unwrap_or(SEPARABLE_STEPS_MAX) {
                return if limits.iterations.is_some() { End::IterationLimit } else { End::Off(self.best.0) };
            }
            self.steps += 1;
            if !self.advance() {
                break;
            }
            let off = self.gap.max(self.residual);
            idle = if off < 0.9 * self.best.0 { 0 } else { idle + 1 };
            if off < self.best.0 {
                self.best = (off, self.point.clone());
            }
        }
        End::Off(self.best.0)
    }

    /// Number of steps taken.
    pub(super) fn steps(&self) -> u32 {
        self.steps
    }

    /// Columns and slacks of the best point.
    pub(super) fn columns(&self) -> &[f64] {
        &self.best.1.v
    }

    /// Prices of rows at the best point.
    pub(super) fn prices(&self) -> &[f64] {
        &self.best.1.y
    }

    /// Computes all quantities that follow from the point.
    fn update(&mut self) {
        let (form, Point { v, z, y }) = (self.form, &self.point);
        let n = self.matrix.n_columns();
        self.ratio.clear();
        let ratios = v.iter().zip(z).zip(&self.weights);
        self.ratio.extend(ratios.map(|((v, z), weight)| if *weight > 0.0 { v / z } else { 0.0 }));
        for Placed { shape, u, jacobian, n_ties, .. } in &form.curves {
            let slope = shape.side() * shape.slope(v[*u]);
            let start = self.matrix.start(*u) + n_ties;
            for (at, (_, coefficient)) in jacobian.iter().enumerate() {
                self.matrix.term_values[start + at] = -slope * coefficient;
            }
            self.ratio[*u] = v[*u] / (shape.power() * z[*u]);
        }
        self.primal = self.matrix.times(v);
        for Placed { shape, u, jacobian, .. } in &form.curves {
            let (at, slope) = (v[*u], shape.side() * shape.slope(v[*u]));
            for (row, coefficient) in jacobian {
                self.primal[*row] += coefficient * (shape.value(at) + slope * at);
            }
        }
        for (value, bound) in self.primal.iter_mut().zip(&form.bounds) {
            *value = bound - *value;
        }
        self.dual = self.matrix.transposed(y);
        for (at, (value, z)) in self.dual.iter_mut().zip(z).enumerate() {
            let cost = form.cost.get(at).copied().unwrap_or(0.0);
            *value = if at < n || form.has_slack[at - n] { cost - *value - z } else { 0.0 };
        }
        self.curve_distances.clear();
        let mut bent = 0.0;
        let mut worth = 0.0_f64;
        for placed in &form.curves {
            let Placed { shape, u, s, cost, .. } = placed;
            let slope = shape.slope(v[*u]);
            let lambda = s.map_or(cost.abs(), |s| z[s]);
            let distance = (lambda * slope / z[*u]).ln();
            worth = worth.max(lambda * slope * v[*u]);
            bent += lambda * slope * v[*u] * distance.abs().min(1.0) * distance.abs();
            self.curve_distances.push(distance);
            self.dual[*u] = placed.price(&self.matrix, y) - z[*u] - slope * s.map_or(0.0, |s| self.dual[s]);
        }
        self.update_gap(bent, worth);
    }

    /// Computes the gap and the residual. `bent` is the contribution of the curves' distances from the path to the gap,
    /// `worth` the largest worth of a function.
    fn update_gap(&mut self, bent: f64, worth: f64) {
        let (form, v) = (self.form, &self.point.v);
        let linear: f64 = form.cost.iter().zip(v).map(|(cost, v)| cost * v).sum();
        let curved: f64 =
            form.curves.iter().map(|placed| placed.cost * placed.shape.value(v[placed.u])).sum();
        let reference = (linear + curved).abs().max(worth).max(f64::MIN_POSITIVE);
        let gap: f64 = (0..v.len()).map(|at| self.product(at)).sum();
        let sizes = form.sizes.iter().copied().chain(std::iter::repeat(0.0));
        let dual = self.dual.iter().zip(sizes).zip(v).map(|((dual, size), v)| dual.abs() * size.max(*v));
        let dual = dual.sum::<f64>() / reference;
        let primal =
            self.primal.iter().zip(&form.bounds).map(|(off, bound)| off.abs() / bound.abs().max(1.0));
        let number = |value: f64| if value.is_finite() { value } else { f64::INFINITY };
        (self.gap, self.residual) = (number((gap + bent) / reference), number(primal.fold(dual, f64::max)));
        self.reference = reference;
    }

    /// The product v·z of a column or slack; 0 for arguments of functions.
    fn product(&self, at: usize) -> f64 {
        if self.weights[at] > 0.0 { self.point.v[at] * self.point.z[at] } else { 0.0 }
    }

    /// Takes a predictor and a corrector step. False where rounding allows none.
    fn advance(&mut self) -> bool {
        let Some(factor) = Factor::of(&self.matrix, &self.ratio, &mut self.plans) else { return false };
        let Point { v, z, .. } = &self.point;
        let products: Vec<f64> = (0..v.len()).map(|at| self.product(at)).collect();
        let mu = products.iter().sum::<f64>() / self.weight;
        let aims: Vec<f64> = products.iter().map(|product| -product).collect();
        let predicted = self.step(&factor, &aims);
        let (primal, dual) = (
            length_to_boundary(&self.weights, v, &predicted.v).min(1.0),
            length_to_boundary(&self.weights, z, &predicted.z).min(1.0),
        );
        let ahead = |at: usize| (v[at] + primal * predicted.v[at]) * (z[at] + dual * predicted.z[at]);
        let ahead: f64 = (0..v.len()).filter(|at| self.weights[*at] > 0.0).map(ahead).sum();
        let sigma = (ahead / self.weight / mu).clamp(0.0, 1.0).powi(3).max(1e-4);
        let least = GAP_MIN * self.residual * self.reference / (self.weight * mu);
        let sigma = sigma.max(least.min(1.0));
        let aims: Vec<f64> = (0..v.len())
            .map(|at| sigma * mu * self.weights[at] - products[at] - predicted.v[at] * predicted.z[at])
            .collect();
        let step = self.step(&factor, &aims);
        self.move_along(&step)
    }

    /// Takes the longest part of a step at which columns, slacks and z stay positive and arguments change by no more than
    /// their limits. False if the step leads nowhere.
    fn move_along(&mut self, step: &Point) -> bool {
        let Point { v, z, y } = &mut self.point;
        let (mut primal, mut dual) = (1.0_f64, 1.0_f64);
        for Placed { u, s, .. } in &self.form.curves {
            let (argument, change) = (v[*u], step.v[*u]);
            if change < 0.0 {
                primal = primal.min(-CURVED_STEP_PART * argument / change);
            } else if s.is_some() {
                primal = primal.min(GROWTH_MAX * argument / change);
            }
            if s.is_none() && step.z[*u] < 0.0 {
                dual = dual.min(-CURVED_STEP_PART * z[*u] / step.z[*u]);
            }
        }
        primal = primal.min(SEPARABLE_STEP_PART * length_to_boundary(&self.weights, v, &step.v));
        dual = dual.min(SEPARABLE_STEP_PART * length_to_boundary(&self.weights, z, &step.z));
        let add = |values: &mut [f64], steps: &[f64], length: f64| {
            values.iter_mut().zip(steps).for_each(|(value, step)| *value += length * step);
        };
        add(v, &step.v, primal);
        add(z, &step.z, dual);
        add(y, &step.y, dual);
        for Placed { shape, u, s, .. } in &self.form.curves {
            if let Some(s) = *s {
                z[*u] = z[s] * shape.slope(v[*u]);
            }
        }
        let finite = [&*v, &*z, &*y].into_iter().all(|values| values.iter().all(|value| value.is_finite()));
        if finite && primal.max(dual) > 1e-10 {
            self.update();
            return true;
        }
        false
    }

    /// The Newton step that changes each product v·z by `aims`, and makes the curves' distances from the path and the
    /// residuals 0.
    fn step(&self, factor: &Factor, aims: &[f64]) -> Point {
        let Point { v, z, .. } = &self.point;
        let mut wanted: Vec<f64> = aims
            .iter()
            .zip(z)
            .zip(&self.weights)
            .map(|((aim, z), w)| if *w > 0.0 { aim / z } else { 0.0 })
            .collect();
        for (Placed { shape, u, .. }, distance) in self.form.curves.iter().zip(&self.curve_distances) {
            wanted[*u] = v[*u] * distance / shape.power();
        }
        let pull = self
            .ratio
            .iter()
            .zip(&self.dual)
            .zip(wanted)
            .map(|((ratio, dual), wanted)| ratio * dual - wanted);
        let pull: Vec<f64> = pull.collect();
        let mut right = self.matrix.times(&pull);
        right.iter_mut().zip(&self.primal).for_each(|(value, primal)| *value += primal);
        let (dy, mut dv) = factor.solve_refined(&self.matrix, &self.ratio, &right, 0.0);
        for ((value, ratio), pull) in dv.iter_mut().zip(&self.ratio).zip(&pull) {
            *value = ratio * *value - pull;
        }
        let mut dz: Vec<f64> = (0..v.len())
            .map(|at| if self.weights[at] > 0.0 { (aims[at] - z[at] * dv[at]) / v[at] } else { 0.0 })
            .collect();
        // Where a function is in rows, z of its argument is set from λ and u after the step: see `move_along`.
        for (Placed { shape, u, .. }, distance) in self.form.curves.iter().zip(&self.curve_distances) {
            dz[*u] = z[*u] * (distance - shape.power() * dv[*u] / v[*u]);
        }
        Point { v: dv, z: dz, y: dy }
    }
}

/// The length along `steps` at which the first of the `values` with a weight is 0; at most 2, where 1 is the whole
/// step.
fn length_to_boundary(weights: &[f64], values: &[f64], steps: &[f64]) -> f64 {
    let along =
        values.iter().zip(steps).zip(weights).filter(|((_, step), weight)| **weight > 0.0 && **step < 0.0);
    along.map(|((value, step), _)| -value / step).fold(2.0, f64::min)
}

/// A point to start from: rows of positive terms are about half used, arguments have the values that this gives them,
/// and slacks the rest.
fn inside(form: &Form) -> Vec<f64> {
    let (n, m) = (form.matrix.n_columns(), form.matrix.n_rows());
    let mut totals = vec![0.0; m];
    for (row, value) in form.matrix.terms().flat_map(|(rows, values)| rows.iter().zip(values)) {
        totals[*row] += if *value >= 0.0 { *value } else { f64::NAN };
    }
    let part = |row: usize| {
        let part = form.bounds[row] / totals[row];
        if form.has_slack[row] && part.is_finite() { 0.5 * part.max(1e-9) } else { f64::INFINITY }
    };
    let parts: Vec<f64> = (0..m).map(part).collect();
    let of_column = |((rows, _), size): ((&[usize], &[f64]), &f64)| {
        let least = rows.iter().map(|row| parts[*row]).fold(f64::INFINITY, f64::min);
        let usual = if *size > 0.0 { *size } else { 1.0 };
        if least.is_finite() { least } else { usual }
    };
    let mut v: Vec<f64> = form.matrix.terms().zip(&form.sizes).map(of_column).collect();
    v.resize(n + m, 0.0);
    form.curves.iter().for_each(|placed| v[placed.u] = 0.0);
    let tied = form.matrix.times(&v);
    for Placed { shape, u, s, link, tie, .. } in &form.curves {
        let value = tied[*link] - form.bounds[*link] + tie.map_or(0.0, |(other, ratio)| ratio * v[other]);
        v[*u] = if value > 0.0 { value } else { 1.0 };
        if let Some(s) = *s {
            v[s] = shape.slope(v[*u]) * v[*u];
        }
    }
    let mut activity = form.matrix.times(&v);
    for Placed { shape, u, jacobian, .. } in &form.curves {
        for (row, coefficient) in jacobian {
            activity[*row] += coefficient * shape.value(v[*u]);
        }
    }
    let mut sizes = form.bounds.iter().map(|bound| bound.abs()).collect::<Vec<f64>>();
    for ((rows, values), v) in form.matrix.terms().zip(&v) {
        rows.iter().zip(values).for_each(|(row, value)| sizes[*row] = sizes[*row].max((value * v).abs()));
    }
    for row in 0..m {
        let size = if sizes[row] > 0.0 { sizes[row] } else { 1.0 };
        v[n + row] =
            if form.has_slack[row] { (form.bounds[row] - activity[row]).max(0.1 * size) } else { 0.0 };
    }
    v
}

/// Weights w: of a column, the largest worth of a function whose argument it is in, relative to the largest of all; of
/// a slack, the largest weight of a column in its row; 0 for arguments, and where a row has no slack.
fn weights_by_worth(form: &Form, worths: &[f64]) -> Vec<f64> {
    let (n, m) = (form.matrix.n_columns(), form.matrix.n_rows());
    let most = worths.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut of_row = vec![0.0_f64; m];
    // The worth of a curve in rows is known at the optimum only.
    let part = |s: &Option<usize>, worth: f64| if s.is_some() { 1.0 } else { (worth / most).max(WEIGHT_MIN) };
    let mut link_of = vec![0; n];
    for (Placed { u, link, s, tie, .. }, worth) in form.curves.iter().zip(worths) {
        link_of[*u] = tie.map_or(*link, |(other, _)| link_of[other]);
        let weight = &mut of_row[link_of[*u]];
        *weight = weight.max(part(s, *worth));
    }
    let of_column = |(rows, _): (&[usize], &[f64])| {
        let most = rows.iter().map(|row| of_row[*row]).fold(0.0, f64::max);
        if most > 0.0 { most } else { 1.0 }
    };
    let mut weights: Vec<f64> = form.matrix.terms().map(of_column).collect();
    for (Placed { u, s, .. }, worth) in form.curves.iter().zip(worths) {
        weights[*u] = 0.0;
        if let Some(s) = *s {
            weights[s] = part(&Some(s), *worth);
        }
    }
    weights.resize(n + m, 0.0);
    for (column, (rows, _)) in form.matrix.terms().enumerate() {
        for row in rows.iter().filter(|row| form.has_slack[**row]) {
            weights[n + row] = weights[n + row].max(weights[column]);
        }
    }
    for row in 0..m {
        if form.has_slack[row] && weights[n + row] == 0.0 {
            weights[n + row] = 1.0;
        }
    }
    weights
}
