//! A program in the form that the method follows, and the way back.
//!
//!   minimize   q·v + Σ c_k·F_k(u_k)   subject to   G v + Σ J_k·F_k(u_k) = b,   v ≥ 0
//!
//! with v the columns from their bounds, for each curve the argument u of its function and, if its column is in rows,
//! the distance s of that column from the function; then the slacks of rows. A row of its own, the *link*, ties each u
//! to its linear form or, where that is a multiple of an earlier curve's form, to the u of that one: nearly dependent
//! rows would cost the normal equations most of their digits.

use std::collections::BTreeMap;

use crate::program::{Affine, Program, Range, Sense};
use crate::solver::backend::{Solution, Termination};
use crate::solver::intake::without_columns;
use crate::solver::normal::{Matrix, Products};
use crate::solver::separable::curve::{Curve, Shape};

/// A curve, and the columns and rows of its parts.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) shape: Shape,
    pub(super) curve: Curve,
    /// The column of u.
    pub(super) u: usize,
    /// The column of s; none where the curve's column is in no row.
    pub(super) s: Option<usize>,
    /// The row that ties u to its form, or to the argument of an earlier curve.
    pub(super) link: usize,
    /// The column of that argument, and the factor on it that gives u, a constant apart; none if u is tied to its form.
    pub(super) tie: Option<(usize, f64)>,
    /// Number of terms of u in its own link and in the links of curves tied to it; the terms of the Jacobian come
    /// after these.
    pub(super) n_ties: usize,
    /// The cost c_k of the function.
    pub(super) cost: f64,
    /// The coefficients J_k of the function, as (row, coefficient), in the order of the terms of u.
    pub(super) jacobian: Vec<(usize, f64)>,
}

impl Placed {
    /// The price of a unit of u in the links, at prices `y` of rows.
    pub(super) fn price(&self, matrix: &Matrix, y: &[f64]) -> f64 {
        let (rows, values) = matrix.column(self.u);
        -rows.iter().zip(values).take(self.n_ties).map(|(row, value)| value * y[*row]).sum::<f64>()
    }
}

/// The place of a column of the program in the form: a column here, a fixed value, or a curve.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A column x = origin + direction · v.
    Plain {
        at: usize,
        origin: f64,
        direction: f64,
    },
    Fixed(f64),
    /// The column of the curve at this position.
    Curve(usize),
}

/// A program as the method takes it.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// The sense of the program: +1 to maximize, −1 to minimize.
    sign: f64,
    /// The matrix G. Terms of u in rows that are no links change with u: see [`Placed::jacobian`].
    pub(super) matrix: Matrix,
    /// Costs q: [columns].
    pub(super) cost: Vec<f64>,
    /// Bounds b: [rows].
    pub(super) bounds: Vec<f64>,
    /// Whether each row is an inequality: [rows].
    pub(super) has_slack: Vec<bool>,
    pub(super) curves: Vec<Placed>,
    /// The length of each column's implied range where it is known and finite, else 0: [columns].
    pub(super) sizes: Vec<f64>,
    /// The place here of each column of the program.
    sources: Vec<Source>,
    /// The rows here of each row of the program, each with the sign by which it was multiplied.
    row_of: Vec<Vec<(usize, f64)>>,
}

/// The columns and rows of a form while it is built.
#[derive(Default)]
struct Parts {
    columns: Vec<Vec<(usize, f64)>>,
    cost: Vec<f64>,
    sizes: Vec<f64>,
    bounds: Vec<f64>,
    has_slack: Vec<bool>,
}

impl Parts {
    fn column(&mut self, cost: f64, size: f64) -> usize {
        self.columns.push(Vec::new());
        self.cost.push(cost);
        self.sizes.push(size);
        self.columns.len() - 1
    }

    fn row(&mut self, bound: f64, has_slack: bool) -> usize {
        self.bounds.push(bound);
        self.has_slack.push(has_slack);
        self.bounds.len() - 1
    }
}

impl Form {
    /// The form of a program, or the reason why it has none, such as a cone that is no curve of a column of its own.
    pub(super) fn of(program: &Program) -> Result<Self, &'static str> {
        let sign = if program.sense == Sense::Maximize { 1.0 } else { -1.0 };
        let curves = curves(program)?;
        let mut parts = Parts::default();
        let mut sources = sources(program, &curves, &mut parts)?;
        let in_rows = column_is_in_rows(program, &curves);
        let (mut placed, mut firsts) = (Vec::new(), BTreeMap::<usize, Vec<usize>>::new());
        for (curve, in_rows) in curves.into_iter().zip(&in_rows) {
            let cost = -sign * program.cost[curve.column] / curve.factor;
            let side = curve.shape.side();
            if !*in_rows && side * cost <= 0.0 {
                return Err("a cone is worth nothing");
            }
            let s = in_rows.then(|| parts.column(side * cost, 0.0));
            let u = parts.column(0.0, 0.0);
            let link = parts.row(-curve.form.constant, false);
            parts.columns[u].push((link, -1.0));
            let tie = tie(&curve.form, &placed, firsts.get(&curve.form.terms[0].0));
            if let Some(Multiple { column, ratio, constant }) = tie {
                parts.columns[column].push((link, ratio));
                parts.bounds[link] += ratio * constant;
            } else {
                firsts.entry(curve.form.terms[0].0).or_default().push(placed.len());
                add_form(&curve.form, &sources, link, &mut parts)?;
            }
            let tie = tie.map(|of| (of.column, of.ratio));
            sources[curve.column] = Source::Curve(placed.len());
            let shape = curve.shape;
            placed.push(Placed { shape, curve, u, s, link, tie, n_ties: 0, cost, jacobian: Vec::new() });
        }
        for Placed { u, n_ties, .. } in &mut placed {
            *n_ties = parts.columns[*u].len();
        }
        let row_of = (0..program.n_rows()).map(|row| rows(program, row, &sources, &mut placed, &mut parts));
        let row_of = row_of.collect();
        let Parts { columns, cost, sizes, bounds, has_slack } = parts;
        let matrix = Matrix::of(columns, bounds.len());
        Ok(Self { sign, matrix, cost, bounds, has_slack, curves: placed, sizes, sources, row_of })
    }

    /// The solution of the program at columns `v` and prices `y` of rows.
    pub(super) fn solution(&self, program: &Program, v: &[f64], y: &[f64]) -> Solution {
        let mut columns = vec![0.0; program.n_columns()];
        for (value, source) in columns.iter_mut().zip(&self.sources) {
            match *source {
                Source::Plain { at, origin, direction } => *value = origin + direction * v[at],
                Source::Fixed(x) => *value = x,
                Source::Curve(_) => {}
            }
        }
        let priced = self.matrix.transposed(y);
        let mut cone_duals = Vec::with_capacity(self.curves.len());
        for placed in &self.curves {
            let Placed { shape, curve, u, s, cost, .. } = placed;
            let terms = curve.form.terms.iter().map(|&(column, value)| value * columns[column]);
            let at = curve.form.constant + terms.sum::<f64>();
            let at = if at > 0.0 { at } else { v[*u] };
            let distance = s.map_or(0.0, |s| v[s]);
            columns[curve.column] =
                (shape.value(at) + shape.side() * distance - curve.constant) / curve.factor;
            let lambda = s.map_or(shape.side() * cost, |s| self.cost[s] - priced[s]);
            let tiny = f64::MIN_POSITIVE;
            let duals = shape.duals(lambda.max(tiny), placed.price(&self.matrix, y).max(tiny));
            cone_duals.push(duals.into_iter().map(|dual| self.sign * dual).collect());
        }
        let price = |rows: &Vec<(usize, f64)>| rows.iter().map(|(at, flip)| -self.sign * flip * y[*at]).sum();
        Solution {
            row_duals: self.row_of.iter().map(price).collect(),
            cone_duals,
            objective: program.objective(&columns),
            columns,
            ..without_columns(Termination::Optimal)
        }
    }
}

/// Puts the terms of an argument's form into the row that ties the argument.
fn add_form(form: &Affine, sources: &[Source], link: usize, parts: &mut Parts) -> Result<(), &'static str> {
    for &(column, value) in &form.terms {
        match sources[column] {
            Source::Plain { at, origin, direction } => {
                parts.columns[at].push((link, value * direction));
                parts.bounds[link] -= value * origin;
            }
            Source::Fixed(x) => parts.bounds[link] -= value * x,
            Source::Curve(_) => return Err("a cone is of another cone's column"),
        }
    }
    Ok(())
}

/// An argument of a curve, of which the argument of another one is a multiple, constants apart.
#[derive(Clone, Copy, Debug)]
struct Multiple {
    /// Its column.
    column: usize,
    /// The factor.
    ratio: f64,
    /// Its constant.
    constant: f64,
}

/// The argument, among those of `candidates`, of which a form is a multiple, constants apart; `None` if there is none.
fn tie(form: &Affine, placed: &[Placed], candidates: Option<&Vec<usize>>) -> Option<Multiple> {
    candidates?.iter().find_map(|candidate| {
        let other = &placed[*candidate].curve.form;
        let ratio = form.terms[0].1 / other.terms[0].1;
        let near = |one: f64, another: f64| (one - another).abs() <= 4.0 * f64::EPSILON * one.abs();
        let alike = |(one, another): (&(usize, f64), &(usize, f64))| {
            one.0 == another.0 && near(one.1, ratio * another.1)
        };
        let same = form.terms.len() == other.terms.len() && form.terms.iter().zip(&other.terms).all(alike);
        let column = placed[*candidate].u;
        (same && ratio > 0.0).then_some(Multiple { column, ratio, constant: other.constant })
    })
}

/// The curve of each cone; no two are of the same column.
fn curves(program: &Program) -> Result<Vec<Curve>, &'static str> {
    let mut terms = vec![0_usize; program.n_columns()];
    for &column in &program.term_columns {
        terms[column] += 1;
    }
    for cone in &program.cones {
        for (column, _) in cone.entries.iter().flat_map(|entry| &entry.terms) {
            terms[*column] += 1;
        }
    }
    let mut taken = vec![false; program.n_columns()];
    let mut found = Vec::with_capacity(program.cones.len());
    for cone in &program.cones {
        let fits = |curve: &Curve| {
            let Range { lower, upper } = program.columns[curve.column];
            let below = if matches!(curve.shape, Shape::Logarithm { .. }) { f64::NEG_INFINITY } else { 0.0 };
            !taken[curve.column] && lower <= below && upper == f64::INFINITY
        };
        let curve = Curve::of(cone).into_iter().filter(fits).min_by_key(|curve| terms[curve.column]);
        let curve = curve.ok_or("a cone is no curve of a column of its own")?;
        taken[curve.column] = true;
        found.push(curve);
    }
    Ok(found)
}

/// Whether the column of each curve is in a row: [curves].
fn column_is_in_rows(program: &Program, curves: &[Curve]) -> Vec<bool> {
    let mut used = vec![false; program.n_columns()];
    for (column, value) in program.term_columns.iter().zip(&program.term_values) {
        used[*column] |= *value != 0.0;
    }
    curves.iter().map(|curve| used[curve.column]).collect()
}

/// The place of each column of the program; the positions of curves are filled in later.
fn sources(program: &Program, curves: &[Curve], parts: &mut Parts) -> Result<Vec<Source>, &'static str> {
    let sign = if program.sense == Sense::Maximize { 1.0 } else { -1.0 };
    let mut is_curve = vec![false; program.n_columns()];
    for curve in curves {
        is_curve[curve.column] = true;
    }
    let mut sources = Vec::with_capacity(program.n_columns());
    for (column, is_curve) in is_curve.into_iter().enumerate() {
        let (range, implied) = (program.columns[column], program.implied[column]);
        if is_curve {
            sources.push(Source::Curve(usize::MAX));
            continue;
        }
        if range.is_point() {
            sources.push(Source::Fixed(range.lower));
            continue;
        }
        // Beyond bounds that are only implied there is room, so that they do not bind.
        let beyond = |bound: f64| bound.abs().max(1.0);
        let (origin, direction) = if range.lower.is_finite() {
            (range.lower, 1.0)
        } else if range.upper.is_finite() {
            (range.upper, -1.0)
        } else if implied.lower.is_finite() {
            (implied.lower - beyond(implied.lower), 1.0)
        } else if implied.upper.is_finite() {
            (implied.upper + beyond(implied.upper), -1.0)
        } else {
            return Err("a column has no bounds");
        };
        let size = implied.upper - implied.lower;
        let at =
            parts.column(-sign * program.cost[column] * direction, if size.is_finite() { size } else { 0.0 });
        if range.lower.is_finite() && range.upper.is_finite() {
            let row = parts.row(range.upper - range.lower, true);
            parts.columns[at].push((row, 1.0));
        }
        sources.push(Source::Plain { at, origin, direction });
    }
    Ok(sources)
}

/// Adds the rows here that stand for a row of the program, and returns each with the sign by which it was multiplied.
fn rows(
    program: &Program,
    row: usize,
    sources: &[Source],
    placed: &mut [Placed],
    parts: &mut Parts,
) -> Vec<(usize, f64)> {
    let range = program.rows[row];
    let mut asked = Vec::new();
    if range.upper.is_finite() {
        asked.push((1.0, range.upper, !range.is_point()));
    }
    if range.lower.is_finite() && !range.is_point() {
        asked.push((-1.0, -range.lower, true));
    }
    let mut added = Vec::new();
    for (flip, bound, has_slack) in asked {
        let at_row = parts.row(bound, has_slack);
        for (column, value) in program.row(row).filter(|(_, value)| *value != 0.0) {
            let value = flip * value;
            match sources[column] {
                Source::Plain { at, origin, direction } => {
                    parts.columns[at].push((at_row, value * direction));
                    parts.bounds[at_row] -= value * origin;
                }
                Source::Fixed(x) => parts.bounds[at_row] -= value * x,
                Source::Curve(position) => {
                    let Placed { shape, curve, u, s, jacobian, .. } = &mut placed[position];
                    let slope = value / curve.factor;
                    parts.bounds[at_row] += slope * curve.constant;
                    if let Some(s) = *s {
                        parts.columns[s].push((at_row, shape.side() * slope));
                    }
                    parts.columns[*u].push((at_row, 0.0));
                    jacobian.push((at_row, slope));
                }
            }
        }
        added.push((at_row, flip));
    }
    added
}
