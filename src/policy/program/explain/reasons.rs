//! The rows with a price that limit each member's share.

use crate::policy::explain::{Binding, JobExplanation, Limit, TypeExplanation};
use crate::policy::program::explain::TIME_ALL;
use crate::policy::program::explain::prices::RowPrices;
use crate::policy::program::optimum::Optimum;
use crate::policy::program::tolerances::SHOWN_PRICE_MIN;
use crate::program::expression::Subject;
use crate::program::{BoundObjective, Formulation, RowRole, Sense};

/// The rows with a price that limit the share of each member.
pub(super) struct Reasons {
    limits: Vec<Vec<Limit>>,
    /// Whether more class time would raise the objective by more than rounding, of a member that has time left: [columns].
    gains: Vec<bool>,
}

impl Reasons {
    /// The limits by a program's prices. A member that water filling fixed after the first step, and that has no own
    /// constraint with a price, has the limits by the prices of that later step.
    pub(super) fn of(
        bound: &BoundObjective<'_>,
        types: &[TypeExplanation],
        solved: &Optimum,
        formulation: &Formulation,
        prices: &RowPrices,
    ) -> Self {
        let column_limits = ColumnLimits::of(bound, solved, formulation, prices);
        let limits = |member: usize| {
            let mut limits = own_constraints(bound, prices, member);
            let at_later = limits_at_later_step(bound, types, solved, formulation, member);
            if let Some(later) = at_later.filter(|_| limits.is_empty()) {
                return later;
            }
            if prices.time[member].counts {
                limits.push(Limit::Time);
            }
            limits.extend(column_limits.limits(bound, member));
            limits
        };
        let limits = (0..bound.instance().n_members()).map(limits).collect();
        Self { limits, gains: column_limits.gains }
    }

    pub(super) fn of_member(&self, member: usize) -> Vec<Limit> {
        self.limits[member].clone()
    }

    /// Whether more class time in a column would raise the objective by more than rounding, of a member that has time left.
    pub(super) fn gains(&self, column: usize) -> bool {
        self.gains[column]
    }
}

/// The policy's own constraints with a row for the member that has a price.
fn own_constraints(bound: &BoundObjective<'_>, prices: &RowPrices, member: usize) -> Vec<Limit> {
    let constraints = bound.objective().constraints().iter().zip(&prices.own).enumerate();
    let limiting = constraints
        .filter(|(_, (constraint, rows))| constraint.subject == Some(Subject::Job) && rows[member].counts);
    limiting.map(|(position, _)| Limit::Constraint(position)).collect()
}

/// The rows of worker types and of the whole cluster with a price that limit each column's time: capacity, or a constraint of
/// the policy.
struct ColumnLimits {
    /// Whether more class time would take workers with a price: [columns].
    capacity: Vec<bool>,
    /// The constraint on worker types or on the whole cluster that has a price there, if one has: [columns].
    constraint: Vec<Option<usize>>,
    /// Whether more class time would lower the objective by more than rounding, at the prices of all rows: [columns].
    unasked: Vec<bool>,
    /// Whether more class time would raise the objective by more than rounding, without the price of the member's
    /// time: [columns].
    gains: Vec<bool>,
}

impl ColumnLimits {
    fn of(
        bound: &BoundObjective<'_>,
        solved: &Optimum,
        formulation: &Formulation,
        prices: &RowPrices,
    ) -> Self {
        let columns = &formulation.columns;
        let capacity = columns.iter().map(|column| prices.capacity[column.worker_type].counts).collect();
        let mut constraint = vec![None; columns.len()];
        let program = &formulation.program;
        let sign = if program.sense == Sense::Maximize { 1.0 } else { -1.0 };
        let duals = solved.answer.as_ref().map_or(&[][..], |answer| &answer.solution.row_duals);
        for ((row, role), dual) in formulation.rows.iter().enumerate().zip(duals) {
            let RowRole::Constraint { constraint: of, position } = *role else { continue };
            let shared = bound.objective().constraints()[of].subject != Some(Subject::Job);
            if !(shared && prices.own[of][position].counts) {
                continue;
            }
            for (column, value) in program.row(row).filter(|(column, _)| *column < columns.len()) {
                // The row makes more time cost something, or it requires the time that the column has.
                let dear = sign * dual * value > 0.0;
                let asked = solved.class_time.get(column).is_some_and(|time| *time > 0.0);
                if dear || asked {
                    constraint[column] = Some(of);
                }
            }
        }
        let is_time = |role: &RowRole| matches!(role, RowRole::Time { .. });
        let cone_duals = solved.answer.as_ref().map_or(&[][..], |answer| &answer.solution.cone_duals);
        let unasked =
            reduced_costs(formulation, duals, cone_duals, |_| true).map(|cost| cost < -SHOWN_PRICE_MIN);
        let gains = reduced_costs(formulation, duals, cone_duals, |role| !is_time(role))
            .map(|cost| cost > SHOWN_PRICE_MIN);
        Self { capacity, constraint, unasked: unasked.collect(), gains: gains.collect() }
    }

    /// The limits of a member on all worker types that it can run on, except where more time would lower the
    /// objective. Empty if it has no limit on one of the other types.
    fn limits(&self, bound: &BoundObjective<'_>, member: usize) -> Vec<Limit> {
        let (mut limits, mut capacity) = (Vec::new(), false);
        for term in bound.terms(member) {
            match (self.constraint[term.column], self.capacity[term.column]) {
                (None, false) if self.unasked[term.column] => {}
                (None, false) => return Vec::new(),
                (None, true) => capacity = true,
                (Some(of), _) if limits.contains(&Limit::Constraint(of)) => {}
                (Some(of), _) => limits.push(Limit::Constraint(of)),
            }
        }
        limits.extend(capacity.then_some(Limit::Capacity));
        limits
    }
}

/// The reduced cost of each column of class time at these prices of some rows and of all cones, over the sum of the sizes of its
/// terms: above 0 where more time raises the objective. [columns]
pub(super) fn reduced_costs(
    formulation: &Formulation,
    duals: &[f64],
    cone_duals: &[Vec<f64>],
    is_counted: impl Fn(&RowRole) -> bool,
) -> impl Iterator<Item = f64> {
    let program = &formulation.program;
    let n = formulation.columns.len();
    let mut gain = program.cost[..n].to_vec();
    let mut size: Vec<f64> = gain.iter().map(|cost| cost.abs()).collect();
    for (row, dual) in duals.iter().enumerate().filter(|(row, _)| is_counted(&formulation.rows[*row])) {
        for (column, value) in program.row(row).filter(|(column, _)| *column < n) {
            gain[column] -= dual * value;
            size[column] += (dual * value).abs();
        }
    }
    // A price of a cone's entry is the change of the objective per unit added to the entry.
    for (entry, dual) in
        program.cones.iter().zip(cone_duals).flat_map(|(cone, of)| cone.entries.iter().zip(of))
    {
        for (column, value) in entry.terms.iter().filter(|(column, _)| *column < n) {
            gain[*column] += dual * value;
            size[*column] += (dual * value).abs();
        }
    }
    let sign = if program.sense == Sense::Maximize { 1.0 } else { -1.0 };
    gain.into_iter().zip(size).map(move |(gain, size)| if size > 0.0 { sign * gain / size } else { 0.0 })
}

/// The limits of a member that water filling fixed after its first step, by the prices of the step that fixed it; none
/// for any other member.
fn limits_at_later_step(
    bound: &BoundObjective<'_>,
    types: &[TypeExplanation],
    solved: &Optimum,
    formulation: &Formulation,
    member: usize,
) -> Option<Vec<Limit>> {
    let saturation_duals = solved.saturation_duals.as_ref()?;
    let step = saturation_duals.step[member].filter(|step| *step > 0)?;
    let (one_more, time_price, rows) =
        (&saturation_duals.one_more[step], saturation_duals.time_price[member], &saturation_duals.own[step]);
    let prices = one_more.iter().chain([&time_price]).chain(rows.iter().map(|(_, price)| price));
    let largest = prices.fold(0.0_f64, |most, price| most.max(price.abs()));
    let counts = |price: f64| price.abs() > SHOWN_PRICE_MIN * largest;
    let constraints = bound.objective().constraints();
    let on = |subject: Option<Subject>, place: usize| {
        let rows = rows.iter().filter(move |((_, position), price)| *position == place && counts(*price));
        rows.map(|((constraint, _), _)| *constraint).filter(move |of| constraints[*of].subject == subject)
    };
    let mut limits: Vec<Limit> = on(Some(Subject::Job), member).map(Limit::Constraint).collect();
    if counts(time_price) {
        limits.push(Limit::Time);
    }
    let on_cluster = |column: usize| {
        let mut rows = on(None, 0);
        rows.find(|of| has_column(formulation, *of, column)).map(Limit::Constraint)
    };
    let mut on_types = Vec::new();
    for term in bound.terms(member) {
        let on_type = on(Some(Subject::WorkerType), term.worker_type);
        let limit = on_type.map(Limit::Constraint).next().or_else(|| on_cluster(term.column));
        let is_dear = types[term.worker_type].binds && counts(one_more[term.worker_type]);
        let limit = limit.or(is_dear.then_some(Limit::Capacity));
        let Some(limit) = limit else { return Some(limits) };
        if !on_types.contains(&limit) {
            on_types.push(limit);
        }
    }
    limits.extend(on_types);
    Some(limits)
}

/// Whether the row of a constraint on the whole cluster has a term in a column.
fn has_column(formulation: &Formulation, constraint: usize, column: usize) -> bool {
    let role = RowRole::Constraint { constraint, position: 0 };
    let row = formulation.rows.iter().position(|other| *other == role);
    row.is_some_and(|row| formulation.program.row(row).any(|(other, _)| other == column))
}

/// Workers that a job can run on and that idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// No worker that the job can run on is idle, or the prices are not known.
    None,
    /// Time on idle workers would not raise the objective.
    Unwanted,
    /// Time on idle workers would raise the objective, by less than the certificate's gap.
    Wanted,
}

/// The binding of a job, by the rows that limit it.
pub(super) fn binding(part: &JobExplanation, idle: Idle) -> Binding {
    let is_constraint = |limit: &Limit| matches!(limit, Limit::Constraint(_));
    let all_the_time = part.time >= TIME_ALL;
    match part.limits.first() {
        Some(Limit::Constraint(_)) => Binding::Constraint,
        _ if part.sets_objective => Binding::Bottleneck,
        Some(Limit::Time) => Binding::Time,
        _ if all_the_time => Binding::Time,
        _ if part.limits.iter().any(is_constraint) => Binding::Constraint,
        Some(Limit::Capacity) => Binding::Capacity,
        _ if idle == Idle::Wanted => Binding::Unrefined,
        _ if idle == Idle::Unwanted => Binding::Free,
        _ => Binding::Unexplained,
    }
}
