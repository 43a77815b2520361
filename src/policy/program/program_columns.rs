//! Column generation: the members of a decision's programs, and the pairs of members that are columns so far. The
//! program over the columns so far is the restricted master.

use crate::policy::program::crash::crash_basis;
use crate::policy::program::pair_pricing::Pricing;
use crate::policy::program::pairs::Pairing;
use crate::policy::program::reduce::Reduced;
use crate::policy::program::reduced_cost_fixing::unused_columns;
use crate::policy::program::solver_context::{Answer, FirstMethod, SolverContext, SolvingError};
use crate::program::{
    Auxiliary, AuxiliaryRole, Binding, BoundObjective, Column, Formulation, Objective, Range, RowRole, Sense,
};

/// Limits of column generation.
#[derive(Clone, Copy, Debug)]
pub(super) struct PricingLimits {
    /// The most pairs for which none is priced: all are columns from the start.
    pub(super) unpriced_max: usize,
    /// The bound on the objective's relative gain from pairs that are no columns yet, by their reduced costs, up to which an
    /// optimum over the columns so far is accepted.
    pub(super) gain_max: f64,
}

impl PricingLimits {
    /// Every pair is a column, however many there are.
    pub(super) const UNPRICED: Self = Self { unpriced_max: usize::MAX, gain_max: 0.0 };
}

impl Default for PricingLimits {
    fn default() -> Self {
        Self { unpriced_max: 1_000, gain_max: 1e-9 }
    }
}

/// Sets class times that a constraint forbids to 0: a solver leaves them positive within its tolerance.
pub(super) fn clear_forbidden(formulation: &Formulation, answer: &mut Answer) {
    for column in formulation.forbidden() {
        answer.solution.columns[column] = 0.0;
    }
}

/// A program that was solved, with its certified answer.
#[derive(Clone, Debug)]
pub(super) struct SolvedFormulation {
    pub(super) formulation: Formulation,
    pub(super) answer: Answer,
}

impl SolvedFormulation {
    /// Class time of the columns: [columns].
    pub(super) fn class_time(&self) -> &[f64] {
        self.formulation.class_time(&self.answer.solution.columns)
    }
}

/// An objective over a problem's members; its columns grow where pairs are priced.
#[derive(Clone, Debug)]
pub(super) struct ProgramColumns<'a> {
    objective: &'a Objective,
    reduced: Reduced,
    /// The binding of the objective to the columns so far.
    binding: Binding,
    /// The pairs, and which of them are columns; none if all are columns, or there are no pairs.
    pub(super) pricing: Option<Pricing>,
    limits: PricingLimits,
    /// Whether a column is fixed at 0 in every program from now on: [columns]; columns beyond the end of the list are free.
    fixed: Vec<bool>,
}

impl<'a> ProgramColumns<'a> {
    /// The first columns: every combination of `reduced`, and all pairs of `pairing` if they are few, else the pairs
    /// that are faster together. `binding` binds the objective to the instance without pairs; pairs never make a
    /// binding fail.
    pub(super) fn new(
        objective: &'a Objective,
        reduced: Reduced,
        binding: Binding,
        pairing: Option<Pairing>,
        limits: PricingLimits,
    ) -> Self {
        let pricing = pairing.map(Pricing::new);
        let mut columns = Self { objective, reduced, binding, pricing, limits, fixed: Vec::new() };
        if let Some(pricing) = &mut columns.pricing {
            if pricing.pairing().all().nth(limits.unpriced_max).is_some() {
                pricing.unfix_all(&columns.reduced.instance);
                let needed = pricing.faster_together(&columns.reduced.instance);
                columns.admit(needed);
            } else {
                columns.admit_all();
            }
        }
        columns
    }

    /// A column for every combination of an instance.
    #[cfg(test)]
    pub(super) fn of_instance(objective: &'a Objective, instance: crate::program::Instance) -> Self {
        let classes = crate::program::Classes::singletons(instance.n_members());
        let reduced = Reduced { instance, classes, pairs: Vec::new(), equal_share: Vec::new() };
        let binding = objective.bind(&reduced.instance).unwrap().binding().clone();
        Self::new(objective, reduced, binding, None, PricingLimits::UNPRICED)
    }

    /// The objective bound to the columns so far. Columns keep their places; new ones come behind.
    pub(super) fn bound(&self) -> BoundObjective<'_> {
        let bound = self.objective.bind_again(&self.reduced.instance, &self.binding);
        bound.unwrap_or_else(|error| unreachable!("bound before: {error}"))
    }

    /// The objective that the program optimizes.
    pub(super) fn objective(&self) -> &'a Objective {
        self.objective
    }

    /// The members.
    pub(super) fn reduced(&self) -> &Reduced {
        &self.reduced
    }

    /// Whether pairs are priced, rather than all columns from the start.
    pub(super) fn is_priced(&self) -> bool {
        self.pricing.is_some()
    }

    /// Drops the droppable constraints of members: [members].
    pub(super) fn drop_constraints(&mut self, dropped: Vec<bool>) {
        self.reduced.instance.dropped = dropped;
    }

    /// Eases the droppable constraints that are not dropped: what they require is lowered by the fraction `eased`, if it is
    /// not lowered more already.
    pub(super) fn ease(&mut self, eased: f64) {
        let known = &mut self.reduced.instance.eased;
        *known = known.max(eased);
    }

    /// The members, with the pairs that became columns.
    pub(super) fn into_reduced(self) -> Reduced {
        self.reduced
    }

    /// Solves a program over the columns so far; pairs that are no columns are not priced.
    pub(super) fn solve_all(
        &self,
        solver: &mut SolverContext,
        formulation: &Formulation,
    ) -> Result<Answer, SolvingError> {
        solver.record_value_map(formulation);
        let paired = !self.reduced.pairs.is_empty();
        let crash = || crash_basis(formulation);
        let from = match self.pricing {
            Some(_) => FirstMethod::Last,
            None if paired => FirstMethod::Crash(&crash),
            None if wants_vertex(formulation) => FirstMethod::Last,
            None => FirstMethod::InteriorPoint,
        };
        let mut answer = solver.solve(&formulation.program, from)?;
        clear_forbidden(formulation, &mut answer);
        solver.found_so_far.keep_class_time(formulation.class_time(&answer.solution.columns));
        Ok(answer)
    }

    /// Solves a program over all pairs: the answer's bound holds for every one of them. `formulate` is called again
    /// whenever columns were added.
    pub(super) fn solve(
        &mut self,
        solver: &mut SolverContext,
        mut formulate: impl FnMut(&BoundObjective<'_>) -> Formulation,
    ) -> Result<SolvedFormulation, SolvingError> {
        loop {
            match self.solve_priced(solver, &mut formulate) {
                // The program over all pairs may be feasible, or easier to solve.
                Err(error) if error.is_unsolved() && self.is_priced() => self.admit_all(),
                outcome => return outcome,
            }
        }
    }

    /// Solves, over all pairs, a program that is known to be feasible over the columns so far: if it is not solved,
    /// that is an error.
    pub(super) fn solve_priced(
        &mut self,
        solver: &mut SolverContext,
        mut formulate: impl FnMut(&BoundObjective<'_>) -> Formulation,
    ) -> Result<SolvedFormulation, SolvingError> {
        let mut n_columns = None;
        loop {
            let mut formulation = formulate(&self.bound());
            let fixed = self.fixed.iter().enumerate().filter(|(_, fixed)| **fixed).map(|(column, _)| column);
            // Backends for cones do not reach a sum that must be 0, so the columns in it are fixed; in linear
            // programs the answer is cleared instead.
            let is_linear = formulation.program.is_linear();
            let forbidden = if is_linear { Vec::new() } else { formulation.forbidden() };
            for column in fixed.chain(forbidden) {
                formulation.program.columns[column] = Range::exactly(0.0);
                formulation.program.implied[column] = Range::exactly(0.0);
            }
            if let Some(before) = n_columns {
                solver.add_columns_to_basis(before, formulation.columns.len());
            }
            n_columns = Some(formulation.columns.len());
            let outcome = self.solve_all(solver, &formulation);
            let Some(pricing) = &self.pricing else {
                return outcome.map(|answer| SolvedFormulation { formulation, answer });
            };
            let mut answer = outcome?;
            if answer.solution.row_duals.is_empty() {
                // Without prices all pairs must enter.
                self.admit_all();
                continue;
            }
            let priced = pricing.price(&self.reduced.instance, &formulation, &answer);
            let objective = formulation.program.objective(&answer.solution.columns);
            if priced.entering.is_empty() || priced.slack <= self.limits.gain_max * objective.abs() {
                let sign = if formulation.program.sense == Sense::Maximize { 1.0 } else { -1.0 };
                answer.bound += sign * priced.slack;
                return Ok(SolvedFormulation { formulation, answer });
            }
            self.admit(priced.entering);
        }
    }

    /// The pairs that may become columns, if not all are.
    pub(super) fn pairing(&self) -> Option<&Pairing> {
        self.pricing.as_ref().map(Pricing::pairing)
    }

    /// Makes pairs columns, behind the others.
    pub(super) fn admit(&mut self, pairs: Vec<(usize, usize)>) {
        let Some(pricing) = &mut self.pricing else { return };
        for (a, b) in pricing.admit(pairs) {
            if let Some(pair) = pricing.pairing().pair(a, b) {
                self.reduced.instance.pairs.push(pair);
                self.reduced.pairs.push((a, b));
            }
        }
        let bound = self.objective.bind(&self.reduced.instance);
        let bound = bound.unwrap_or_else(|error| unreachable!("bound before with fewer columns: {error}"));
        let binding = bound.binding().clone();
        let n = self.reduced.instance.n_members();
        let added = binding.columns[self.fixed.len().min(binding.columns.len())..].iter();
        let is_fixed = |column: &Column| {
            let pair = column.combination.checked_sub(n).map(|pair| self.reduced.pairs[pair]);
            pair.is_some_and(|pair| pricing.is_fixed(pair, column.worker_type))
        };
        let fixed: Vec<bool> = added.map(is_fixed).collect();
        self.fixed.extend(fixed);
        self.binding = binding;
    }

    /// Fixes columns, and pairs that are no columns yet, at 0 from now on where using them to the full would cost more
    /// than `least`, in units of the program's objective.
    pub(super) fn fix_unused(&mut self, formulation: &Formulation, answer: &Answer, least: f64) {
        self.fixed.resize(formulation.columns.len(), false);
        for (fixed, unused) in self.fixed.iter_mut().zip(unused_columns(formulation, answer, least)) {
            *fixed |= unused;
        }
        if let Some(pricing) = &mut self.pricing {
            pricing.fix(&self.reduced.instance, formulation, &answer.solution.row_duals, least);
        }
    }

    /// Frees all columns that were fixed.
    pub(super) fn free_all(&mut self) {
        self.fixed.clear();
        if let Some(pricing) = &mut self.pricing {
            pricing.unfix_all(&self.reduced.instance);
        }
    }

    /// Makes every pair a column.
    pub(super) fn admit_all(&mut self) {
        let Some(pricing) = &self.pricing else { return };
        let all = pricing.pairing().all().collect();
        self.admit(all);
        self.pricing = None;
    }
}

/// Whether the answer must be a vertex. The choice of droppable constraints to keep is rounded from one, and a row
/// that holds an optimum leaves an interior-point method no interior.
fn wants_vertex(formulation: &Formulation) -> bool {
    let counts = |auxiliary: &Auxiliary| matches!(auxiliary.role, AuxiliaryRole::Kept { .. });
    formulation.rows.contains(&RowRole::Hold) || formulation.auxiliaries.iter().any(counts)
}
