//! From a bound objective to a program in standard form.
//!
//! Every program has one column of class time Y`[c,j]` per combination and worker type on which it runs, one time row
//! per member and one capacity row per worker type (see [`instance`](super::instance)). The objective and its constraints
//! add a level column with a row per member, auxiliary columns for curved or piecewise linear parts, and cones. Columns
//! carry rigorous implied bounds, from interval arithmetic over all allocations and from the value of one feasible
//! allocation (each member's isolated share).

use std::sync::Arc;

use super::at::At;
use super::binding::BoundObjective;
use super::builder::Builder;
use super::expression::Subject;
use super::instance::{Column, Instance};
use super::inversion::LevelCoefficients;
use super::objective::Route;
use super::program_map::{AuxiliaryRole, Formulation, Replaced, ReplacedBounds, RowRole, ValueMap};
use super::range::Reach;
use super::standard::{Affine, Program, Range, Sense};

/// The relative loss of an optimum that a second stage may use: enough to keep it feasible in floating point, and less than
/// the precision to which values are reported.
pub const HOLD_SLACK: f64 = 1e-9;

impl BoundObjective<'_> {
    /// The program of a linear or conic objective; of a parametric one, the program at a level that can be
    /// reached.
    pub fn formulate(&self) -> Formulation {
        let (reach, reference) = (Reach::of(self), self.reference_value());
        let level = self.level_range_within(&reach, reference);
        if self.objective.route() == Route::Parametric {
            return self.at_level(level.upper_or_lower(self.objective.sense()));
        }
        let reach = match reference {
            Some(reference) => reach.tightened(self, reference),
            None => reach,
        };
        let mut builder = self.polytope(&reach, None);
        if self.objective.is_by_inverse() {
            self.inverse_level(&mut builder, level);
            return builder.finish(Sense::Maximize);
        }
        let affine = match self.objective.sense() {
            Sense::Maximize => builder.at_most(self.objective.expression(), At::default(), Some(level)),
            Sense::Minimize => builder.at_least(self.objective.expression(), At::default(), Some(level)),
        };
        builder.objective(affine);
        builder.constraints();
        builder.finish(self.objective.sense())
    }

    /// The program of the policy's hard constraints alone, without an objective: it is feasible if an allocation keeps
    /// them. With `with_droppable`, droppable constraints that are not dropped count as hard.
    pub fn constraints_alone(&self, with_droppable: bool) -> Formulation {
        let reach = Reach::of(self);
        let mut builder = self.polytope(&reach, None);
        builder.kept_constraints(with_droppable);
        builder.objective(Affine::default());
        builder.finish(Sense::Maximize)
    }

    /// The program at one level: maximize λ, the part of the required throughputs that all members reach at once. The
    /// level can be reached if and only if the optimum is at least 1. Its [`level_rows`](Formulation::level_rows) are
    /// `throughput(m) − λ·required(m, level) ≥ 0`, one per member.
    ///
    /// A member that requires nothing at this level has a row without λ; at a level that no throughput reaches, λ is 0.
    ///
    /// # Panics
    /// If the objective has no levels.
    pub fn at_level(&self, level: f64) -> Formulation {
        let (inversion, levels) =
            self.objective.inversion().zip(self.levels()).expect("the objective has levels");
        let reach = Reach::of(self);
        let mut builder = self.polytope(&reach, None);
        let required: Vec<f64> =
            self.places(Subject::Job).map(|at| levels.required(at.member, level).value).collect();
        let never = required.iter().any(|value| value.is_infinite());
        let mut most = 1e9_f64;
        for (at, required) in self.places(Subject::Job).zip(&required) {
            if *required > 0.0 {
                most = most.min(self.range(inversion.throughput(), at, &reach).upper / required);
            }
        }
        // If nothing is required, every λ is feasible: this bound keeps the program bounded.
        let hard = Range { lower: 0.0, upper: if never { 0.0 } else { most } };
        let column = builder.auxiliary(AuxiliaryRole::Reached, hard, hard, 1.0);
        for (at, required) in self.places(Subject::Job).zip(required) {
            let required = (required > 0.0 && required.is_finite()).then_some((column, -required));
            builder.throughput_row(inversion, at, Range::at_least(0.0), required);
        }
        builder.constraints();
        builder.objective(Affine { constant: 0.0, terms: vec![(column, 1.0)] });
        let mut formulation = builder.finish(Sense::Maximize);
        formulation.value_map = ValueMap::Level(level);
        formulation
    }

    /// The range in which the level (or the value) of every optimum lies.
    pub fn level_range(&self) -> Range {
        self.level_range_within(&Reach::of(self), self.reference_value())
    }

    /// A bound on the level (or value) of every allocation.
    pub fn ideal(&self) -> f64 {
        let range = self.range(self.objective.expression(), At::default(), &Reach::of(self));
        match self.objective.sense() {
            Sense::Maximize => range.upper,
            Sense::Minimize => range.lower,
        }
    }

    /// A bound on the size of the value of every allocation.
    pub fn largest(&self) -> f64 {
        let range = self.range(self.objective.expression(), At::default(), &Reach::of(self));
        range.lower.abs().max(range.upper.abs())
    }

    fn level_range_within(&self, reach: &Reach, reference: Option<f64>) -> Range {
        let range = self.range(self.objective.expression(), At::default(), reach);
        let Some(reference) = reference else { return range };
        match self.objective.sense() {
            Sense::Maximize => {
                Range { lower: range.lower.max(reference).min(range.upper), upper: range.upper }
            }
            Sense::Minimize => {
                Range { lower: range.lower, upper: range.upper.min(reference).max(range.lower) }
            }
        }
    }

    /// The objective's value at the isolated shares, which are feasible; `None` if it is not finite, or if the policy has
    /// constraints, which the shares may violate.
    pub fn reference_value(&self) -> Option<f64> {
        if !self.objective.constraints().is_empty() {
            return None;
        }
        let value = self.value(&self.point(&self.isolated()));
        value.is_finite().then_some(value)
    }

    /// The isolated share as class times: x`[m,j]` = w_j/(n·s_m), each job's row divided by max(1, its sum).
    pub fn isolated(&self) -> Vec<f64> {
        let instance = self.instance;
        let n_jobs: f64 = instance.multiplicity.iter().sum();
        let alone = |c: usize| instance.scale_factor.get(c).copied();
        let mut time = vec![0.0; instance.n_members()];
        let share = |j: usize, scale_factor: f64| instance.capacity[j] / (n_jobs * scale_factor);
        for column in self.columns() {
            if let Some(scale_factor) = alone(column.combination) {
                time[column.combination] += share(column.worker_type, scale_factor);
            }
        }
        let class_time = |column: &Column| {
            alone(column.combination).map_or(0.0, |scale_factor| {
                let row = time[column.combination].max(1.0);
                share(column.worker_type, scale_factor) / row * instance.multiplicity[column.combination]
            })
        };
        self.columns().iter().map(class_time).collect()
    }

    /// The second stage of `refine: utilization`: among the optima, the one with the largest
    /// Σ_m n_m · thr(m)/thr_eq(m). `optimum` is the first stage's own objective value; at most
    /// [`HOLD_SLACK`] of it is given up.
    ///
    /// `equal_share`: thr_eq of every member, steps/s.
    pub fn refine_utilization(
        &self,
        formulation: Formulation,
        optimum: f64,
        equal_share: &[f64],
    ) -> Formulation {
        let gains = || {
            let of = |(member, normal): (usize, &f64)| (member, self.instance.multiplicity[member] / normal);
            let of_member = |(member, weight): (usize, f64)| {
                self.terms(member).iter().map(move |term| (term.column, weight * term.throughput))
            };
            equal_share.iter().enumerate().map(of).flat_map(of_member)
        };
        let scale = gains().fold(0.0_f64, |most, (_, value)| most.max(value.abs()));
        let scale = if scale > 0.0 { scale } else { 1.0 };
        let mut cost = vec![0.0; formulation.program.n_columns()];
        for (column, value) in gains() {
            cost[column] += value / scale;
        }
        formulation.second_stage(optimum, cost, scale, self.instance)
    }

    /// The columns of class time with their time and capacity rows, taken from an old formulation if that is over the same
    /// columns.
    pub(super) fn polytope<'b>(&'b self, reach: &'b Reach, old: Option<Formulation>) -> Builder<'b> {
        let old = old.filter(|old| Arc::ptr_eq(&old.columns, &self.binding().columns));
        let is_new = old.is_none();
        let mut builder = Builder::new(self, reach, old);
        if is_new {
            self.class_times(&mut builder);
            self.shared_rows(&mut builder, &[], 1.0);
        }
        builder
    }

    /// Adds the columns of class time.
    pub(super) fn class_times(&self, builder: &mut Builder<'_>) {
        let instance = self.instance;
        builder.reserve();
        for column in self.columns() {
            let scale_factor = instance.scale_factor_of(column.combination);
            let mut most = instance.capacity[column.worker_type] / scale_factor;
            for (member, uses, _) in instance.parts(column.combination) {
                most = most.min(instance.multiplicity[member] / uses);
            }
            builder.program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: most }, 0.0);
        }
    }

    /// Adds the time rows and capacity rows. `kept`: a column for each member that scales the right side of its time row,
    /// `all` times its time; empty if right sides are fixed.
    pub(super) fn shared_rows(&self, builder: &mut Builder<'_>, kept: &[usize], all: f64) {
        let instance = self.instance;
        for member in 0..instance.n_members() {
            let n = instance.multiplicity[member];
            let terms = self.terms(member).iter().map(|term| (term.column, term.time * n));
            let part = kept.get(member).map(|kept| (*kept, -all * n));
            let range = Range::at_most(if part.is_some() { 0.0 } else { n });
            builder.row_in_order(RowRole::Time { member }, range, terms.chain(part));
        }
        let mut of_type = vec![Vec::new(); instance.n_types()];
        for (position, column) in (0_u32..).zip(self.columns()) {
            of_type[column.worker_type].push(position);
        }
        for (worker_type, columns) in of_type.into_iter().enumerate() {
            let range = Range::at_most(instance.capacity[worker_type]);
            let scale_factor =
                |position: usize| instance.scale_factor_of(self.columns()[position].combination);
            let terms = columns.iter().map(|position| *position as usize);
            let terms = terms.map(|position| (position, scale_factor(position)));
            builder.row_in_order(RowRole::Capacity { worker_type }, range, terms);
        }
    }

    /// Adds the level program in the inverse of the level: maximize u = 1/t subject to throughput(m) ≥ a_m + b_m·u.
    fn inverse_level(&self, builder: &mut Builder<'_>, level: Range) {
        let (inversion, levels) =
            self.objective.inversion().zip(self.levels()).expect("an inverse level has an inversion");
        let implied = Range { lower: level.upper.recip(), upper: level.lower.recip() };
        let bounds = if level.upper > 0.0 { Range::NON_NEGATIVE } else { Range::exactly(0.0) };
        let implied = if level.upper > 0.0 { implied } else { bounds };
        let column = builder.column(AuxiliaryRole::InverseLevel, bounds, implied);
        let scale = builder.scale_of(column);
        for at in self.places(Subject::Job) {
            // No coefficients: a factor is 0, and so is the job's part of the objective at any throughput.
            let (least, level) = match levels.coefficients(at.member) {
                Some(LevelCoefficients { base, slope }) => (base, Some((column, -slope * scale))),
                None => (0.0, None),
            };
            builder.throughput_row(inversion, at, Range::at_least(least), level);
        }
        builder.constraints();
        builder.objective(Affine { constant: 0.0, terms: vec![(column, 1.0)] });
        // If the level is 0 at every allocation, its inverse is unbounded.
        builder.value_map = if level.upper > 0.0 { ValueMap::Inverse(scale) } else { ValueMap::Level(0.0) };
    }
}

impl Range {
    /// The worse end of the range of an optimum, which can be reached: the lower one if it is maximized.
    fn upper_or_lower(self, sense: Sense) -> f64 {
        match sense {
            Sense::Maximize => self.lower,
            Sense::Minimize => self.upper,
        }
    }
}

impl Formulation {
    /// The next stage, which holds this stage's optimum, `optimum` in the program's own terms, and maximizes
    /// `scale`·`cost`·x.
    fn second_stage(self, optimum: f64, cost: Vec<f64>, scale: f64, instance: &Instance) -> Self {
        let mut next = self;
        let program: &mut Program = &mut next.program;
        let mut replaced = Replaced {
            sense: program.sense,
            offset: program.offset,
            cost: Vec::new(),
            value_map: next.value_map,
            column: None,
        };
        let slack = HOLD_SLACK * optimum.abs().max(1e-12);
        let held: Vec<(usize, f64)> =
            program.cost.iter().copied().enumerate().filter(|(_, cost)| *cost != 0.0).collect();
        let (value, better) = match program.sense {
            Sense::Maximize => (optimum - slack - program.offset, true),
            Sense::Minimize => (optimum + slack - program.offset, false),
        };
        if let [(column, cost)] = held[..] {
            // A bound on the only column of the objective is as good as a row.
            let limit = value / cost;
            let (range, implied) = (program.columns[column], program.implied[column]);
            replaced.column = Some(ReplacedBounds { column, range, implied });
            let range = &mut program.columns[column];
            if better == (cost > 0.0) {
                range.lower = range.lower.max(limit);
            } else {
                range.upper = range.upper.min(limit);
            }
            let bounds = program.columns[column];
            let implied = &mut program.implied[column];
            *implied = Range {
                lower: implied.lower.max(bounds.lower),
                upper: implied.upper.min(bounds.upper).max(bounds.lower),
            };
        } else {
            let range = if better { Range::at_least(value) } else { Range::at_most(value) };
            program.push_row(range, held);
            program.forget_names();
            Arc::make_mut(&mut next.rows).push(RowRole::Hold);
            next.row_scales.push(1.0);
            next.name(instance);
        }
        let program = &mut next.program;
        program.sense = Sense::Maximize;
        program.offset = 0.0;
        replaced.cost = std::mem::replace(&mut program.cost, cost);
        next.value_map = ValueMap::Scaled(scale);
        next.replaced = Some(Box::new(replaced));
        next
    }

    /// The formulation whose optimum this one holds; itself if it holds none.
    pub(crate) fn first_stage(mut self, instance: &Instance) -> Self {
        let Some(replaced) = self.replaced.take() else { return self };
        let program = &mut self.program;
        (program.sense, program.offset, program.cost) = (replaced.sense, replaced.offset, replaced.cost);
        self.value_map = replaced.value_map;
        if let Some(ReplacedBounds { column, range, implied }) = replaced.column {
            (program.columns[column], program.implied[column]) = (range, implied);
            return self;
        }
        program.pop_row();
        program.forget_names();
        Arc::make_mut(&mut self.rows).pop();
        self.row_scales.pop();
        self.name(instance);
        self
    }
}
