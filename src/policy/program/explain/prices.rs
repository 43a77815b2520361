//! The prices of a program's rows, and whether they are those of the decision shown.

use std::collections::BTreeMap;

use crate::policy::decision::ObjectiveReport;
use crate::policy::explain::TypeExplanation;
use crate::policy::program::optimum::{ExplainingProgram, Optimum};
use crate::policy::program::tolerances::SHOWN_PRICE_MIN;
use crate::program::expression::Subject;
use crate::program::{BoundObjective, Constraint, Formulation, Point, RowRole, Sides};
use crate::solver::certificate::{AnswerCertificate, TOLERANCE};
use crate::solver::has_flat_cone;

/// Dual values below this share of the largest of any kind are rounding.
const DUAL_MIN: f64 = 1e-9;

/// A row with more room than this part of its side does not bind.
const ROOM_MAX: f64 = 1e-3;

/// The largest product of a row's price and its room, and the largest difference of the optima of program and decision,
/// relative to what all rows together are worth.
const SLACKNESS_MAX: f64 = 10.0 * TOLERANCE;

/// Sides of a constraint that differ by less than this part of the larger one are equal.
const SIDES_MIN: f64 = 1e-6;

/// Sides that differ by less than this are equal, however small they are.
const SIDES_ZERO: f64 = 1e-9;

/// A decision's throughputs, time and workers, before any discount.
#[derive(Clone, Debug)]
pub(in crate::policy::program) struct DecisionUse {
    /// The variables of the objective and the constraints.
    pub(super) point: Point,
    /// Time of one job of each member: [members].
    time: Vec<f64>,
    /// Workers of each type in use: [K].
    workers: Vec<f64>,
}

impl DecisionUse {
    /// The throughputs, time and workers of these class times: [columns].
    pub(in crate::policy::program) fn of(bound: &BoundObjective<'_>, class_time: &[f64]) -> Self {
        let instance = bound.instance();
        let (mut time, mut workers) = (vec![0.0; instance.n_members()], vec![0.0; instance.n_types()]);
        for (column, given) in bound.columns().iter().zip(class_time) {
            workers[column.worker_type] += instance.scale_factor_of(column.combination) * given;
            for (member, uses, _) in instance.parts(column.combination) {
                time[member] += uses / instance.multiplicity[member] * given;
            }
        }
        Self { point: bound.point(class_time), time, workers }
    }
}

/// One row's price.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Price {
    /// Change of the policy's objective per unit of the row's side.
    pub(super) value: f64,
    /// The dual value in the program's own terms, where rows are scaled alike.
    dual: f64,
    /// Whether the price is more than rounding.
    pub(super) counts: bool,
}

/// The prices of a program's rows, over members: each row of a member speaks for all its jobs at once.
#[derive(Clone, Debug)]
pub(super) struct RowPrices {
    /// Prices per worker: [K].
    pub(super) capacity: Vec<Price>,
    /// Prices per unit of a job's time: [members].
    pub(super) time: Vec<Price>,
    /// Prices per unit of what the level row asks of the member: [members]; none where the program asks nothing of
    /// single members.
    pub(super) level: Vec<Option<Price>>,
    /// Prices per unit of a constraint's right side, as it was written: [constraints][members, K or 1].
    pub(super) own: Vec<Vec<Price>>,
}

impl RowPrices {
    /// The prices of a program that was solved, if they prove the decision's optimum, too; else why they are not known.
    pub(super) fn of(
        bound: &BoundObjective<'_>,
        solved: &Optimum,
        formulation: &Formulation,
        in_use: &DecisionUse,
        objective: Option<&ObjectiveReport>,
    ) -> Result<Self, &'static str> {
        let answer = solved.answer.as_ref().ok_or("no program was solved")?;
        let (program, solution) = (&formulation.program, &answer.solution);
        if solution.row_duals.len() != program.n_rows() || program.n_rows() == 0 {
            return Err("the backend gives none");
        }
        if !program.is_linear() && (!formulation.forbidden().is_empty() || has_flat_cone(program)) {
            return Err("a constraint forbids all that it counts, and beside cones that has no price");
        }
        if !AnswerCertificate::by_duals(program, solution).optimal {
            return Err("the dual values of the backend do not prove its optimum");
        }
        if solved.price_factor == 0.0 || !solved.price_factor.is_finite() {
            return Err("nothing that is asked of jobs has a price at the level that was found");
        }
        let at = program.objective(&solution.columns);
        let mut prices = Self::none(bound);
        for (row, role) in formulation.rows.iter().enumerate() {
            let dual = formulation.dual_of(row, &solution.row_duals);
            let value = formulation.shadow_price(row, dual, at) * solved.price_factor;
            let price = Price { value, dual, counts: false };
            match role {
                RowRole::Capacity { worker_type } => prices.capacity[*worker_type] = price,
                RowRole::Time { member } => prices.time[*member] = price,
                RowRole::Level { member } => prices.level[*member] = Some(price),
                RowRole::Constraint { constraint, position } => {
                    let of = &bound.objective().constraints()[*constraint];
                    let value = bound.price_of_side(of, *position, value);
                    prices.own[*constraint][*position] = Price { value, ..price };
                }
                RowRole::Part { .. } | RowRole::Hold => {}
            }
        }
        prices.count();
        prices.check(bound, solved.bound, in_use, objective)?;
        prices.discount_rows_with_room(bound, in_use);
        Ok(prices)
    }

    /// These prices with 0 for workers of types that the decision leaves idle: to a tolerance it is another optimum, in which
    /// one worker more of them gains nothing.
    pub(super) fn without_idle(mut self, types: &[TypeExplanation]) -> Self {
        let idle = self.capacity.iter_mut().zip(types).filter(|(_, kind)| !kind.binds);
        idle.for_each(|(price, _)| *price = Price::default());
        self
    }

    fn none(bound: &BoundObjective<'_>) -> Self {
        let (n, k) = (bound.instance().n_members(), bound.instance().n_types());
        let none = |n: usize| vec![Price::default(); n];
        let rows = |constraint: &Constraint| match constraint.subject {
            Some(Subject::Job) => none(n),
            Some(Subject::WorkerType) => none(k),
            None => none(1),
        };
        let own = bound.objective().constraints().iter().map(rows).collect();
        Self { capacity: none(k), time: none(n), level: vec![None; n], own }
    }

    /// Marks the prices that are more than rounding.
    fn count(&mut self) {
        let most = |of: &[Price]| of.iter().fold(0.0_f64, |most, price| most.max(price.dual.abs()));
        let mut level: Vec<Price> = self.level.iter().map(|price| price.unwrap_or_default()).collect();
        let mut kinds = vec![&mut self.capacity, &mut self.time, &mut level];
        kinds.extend(&mut self.own);
        // The largest coefficient of every row and of the objective is 1.
        let largest = kinds.iter().fold(1.0_f64, |largest, kind| largest.max(most(kind)));
        for kind in kinds {
            let least = (SHOWN_PRICE_MIN * most(kind)).max(DUAL_MIN * largest);
            for price in kind.iter_mut() {
                price.counts = price.dual.abs() > least;
            }
        }
        for (price, counted) in self.level.iter_mut().zip(level) {
            *price = price.map(|_| counted);
        }
    }

    /// Unmarks the prices of rows with room in the decision: by complementary slackness they are 0 but for rounding.
    fn discount_rows_with_room(&mut self, bound: &BoundObjective<'_>, in_use: &DecisionUse) {
        let instance = bound.instance();
        for ((price, used), all) in self.capacity.iter_mut().zip(&in_use.workers).zip(&instance.capacity) {
            price.counts &= all - used <= ROOM_MAX * all;
        }
        for (price, time) in self.time.iter_mut().zip(&in_use.time) {
            price.counts &= 1.0 - time <= ROOM_MAX;
        }
        for (constraint, prices) in bound.objective().constraints().iter().zip(&mut self.own) {
            if constraint.is_equality() {
                continue;
            }
            for (place, price) in prices.iter_mut().enumerate().filter(|(_, price)| price.counts) {
                let sides = bound.sides(constraint, place, &in_use.point);
                price.counts = sides.slack() <= ROOM_MAX * sides.small.abs().max(sides.large.abs());
            }
        }
    }

    /// Checks that the prices are the decision's: they prove its optimum, and no row with a price has room in it
    /// (complementary slackness).
    fn check(
        &self,
        bound: &BoundObjective<'_>,
        proven: f64,
        in_use: &DecisionUse,
        objective: Option<&ObjectiveReport>,
    ) -> Result<(), &'static str> {
        let instance = bound.instance();
        let objective = objective.filter(|objective| objective.optimal);
        let objective = objective.ok_or("the decision is not proven to be an optimum")?;
        let mut rows: Vec<PricedRow> = Vec::new();
        for ((price, used), all) in self.capacity.iter().zip(&in_use.workers).zip(&instance.capacity) {
            rows.push(PricedRow { price: price.value, room: all - used, side: *all });
        }
        for ((price, time), n_jobs) in self.time.iter().zip(&in_use.time).zip(&instance.multiplicity) {
            rows.push(PricedRow { price: price.value, room: n_jobs * (1.0 - time), side: *n_jobs });
        }
        let constraints = bound.objective().constraints().iter().zip(&self.own);
        for (constraint, prices) in constraints {
            for (place, price) in prices.iter().enumerate().filter(|(_, price)| price.counts) {
                let sides = bound.sides(constraint, place, &in_use.point);
                let (mut price, mut room) = (price.value, sides.slack());
                if let Some(penalty) = constraint.soft.filter(|_| room < 0.0 || constraint.is_equality()) {
                    // The price is at most the penalty, and is the penalty where the constraint is broken: what must be
                    // 0 is the rest of the penalty times the excess.
                    let at = if constraint.subject == Some(Subject::Job) {
                        instance.multiplicity[place]
                    } else {
                        1.0
                    };
                    price = penalty * at - price.abs();
                    room = room.abs();
                }
                rows.push(PricedRow { price, room, side: sides.small.abs().max(sides.large.abs()) });
            }
        }
        let worth = rows.iter().map(|row| (row.price * row.side).abs());
        let scale = worth.sum::<f64>().max(objective.value.abs());
        if (proven - objective.bound).abs() > SLACKNESS_MAX * scale {
            return Err("the program that was written for them has another optimum");
        }
        if rows.iter().any(|row| (row.price * row.room).abs() > SLACKNESS_MAX * scale) {
            return Err("a row of the program has a price and room in the decision");
        }
        Ok(())
    }
}

/// A row with its price, and the room in it.
struct PricedRow {
    price: f64,
    room: f64,
    /// The side of the row that the room is a part of.
    side: f64,
}

/// The rise of a member's level row per step/s of one of its jobs; none where its levels are not proportional to
/// throughput. These rows hold levels in a program that is written once, and throughputs in programs at levels that
/// are tried or raised step by step.
pub(super) fn rise(bound: &BoundObjective<'_>, solved: &Optimum, member: usize) -> Option<f64> {
    let objective = bound.objective();
    objective.inversion().filter(|inversion| inversion.is_of_throughput())?;
    let is_tried =
        solved.saturation_duals.is_some() || matches!(solved.explaining, ExplainingProgram::Tried { .. });
    if is_tried || objective.is_by_inverse() {
        return Some(1.0);
    }
    Some(bound.levels()?.coefficients(member)?.slope.recip())
}

/// Whether two sides have no room between them, to a tolerance. `size`: how large the terms of the row can be.
pub(super) fn is_close(sides: Sides, size: f64) -> bool {
    let size = sides.small.abs().max(sides.large.abs()).max(size);
    sides.slack().is_finite() && sides.slack().abs() <= SIDES_MIN * size + SIDES_ZERO
}

/// The size that terms of each row of the policy's own constraints can have, by (constraint, member or worker type):
/// the scale of violations in certificates.
pub(super) fn row_sizes(formulation: &Formulation) -> BTreeMap<(usize, usize), f64> {
    let program = &formulation.program;
    let finite = |bound: f64| if bound.is_finite() { bound.abs() } else { 0.0 };
    let largest = |row: usize| {
        let term = |(column, value): (usize, f64)| {
            let within = program.implied[column];
            value.abs() * finite(within.lower).max(finite(within.upper))
        };
        program.row(row).map(term).fold(0.0, f64::max) * formulation.row_scales[row]
    };
    let rows = formulation.rows.iter().enumerate().filter_map(|(row, role)| match role {
        RowRole::Constraint { constraint, position } => Some(((*constraint, *position), largest(row))),
        _ => None,
    });
    rows.collect()
}
