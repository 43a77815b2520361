//! The optimum of a bound objective, by its route: class times, the value that they reach, and the bound that proves it.

use crate::policy::program::barrier_weights;
use crate::policy::program::entity_level::ReachedLevel;
use crate::policy::program::hierarchy::Hierarchy;
use crate::policy::program::idle::use_idle;
use crate::policy::program::kinds::{BoundUse, KindProgram};
use crate::policy::program::levels;
use crate::policy::program::optimum::{
    ExplainingProgram, Optimum, OptimumKind, Refinement, is_another_level,
};
use crate::policy::program::parametric::best_worst;
use crate::policy::program::program_columns::{ProgramColumns, SolvedFormulation, clear_forbidden};
use crate::policy::program::recorded::Purpose;
use crate::policy::program::singles::{self, HeldLevel};
use crate::policy::program::solver_context::{FirstMethod, SolverContext, SolvingError};
use crate::policy::program::strategy::{GaveUp, Strategy, Unfit, after_giving_up, strategy};
use crate::policy::program::tolerances::{EASING_FROM_TOLERANCE, GIVEN_UP_REFINING};
use crate::policy::program::water_filling::{self, FilledByPrograms, FirstLevel};
use crate::program::{BoundObjective, Demand, Formulation, Sense};
use crate::solver::SolveError;

/// The part of the optimum that an interior refinement gives up, so that its program has an interior.
const INTERIOR_EASING: f64 = 1e-7;

/// An objective to be optimized, with the refinement of the optimum.
#[derive(Debug)]
pub(super) struct Task<'a, 'o> {
    pub(super) columns: &'a mut ProgramColumns<'o>,
    pub(super) kind: OptimumKind,
    pub(super) refinement: Refinement,
    pub(super) hierarchy: Option<&'a Hierarchy>,
}

impl Task<'_, '_> {
    /// Finds the optimum that the policy asks for. If no solver finds a feasible point, droppable constraints are eased by
    /// the smallest part of [`EASING_FROM_TOLERANCE`] at which one does.
    pub(super) fn solve(&mut self, solver: &mut SolverContext) -> Result<Optimum, SolvingError> {
        let mut outcome = self.solve_by_strategy(solver);
        for eased in EASING_FROM_TOLERANCE {
            let unsolved = outcome.as_ref().is_err_and(SolvingError::is_unsolved);
            if !unsolved || !self.columns.bound().has_droppable() {
                break;
            }
            self.columns.ease(*eased);
            outcome = self.solve_by_strategy(solver);
        }
        outcome
    }

    fn solve_by_strategy(&mut self, solver: &mut SolverContext) -> Result<Optimum, SolvingError> {
        let (strategy, reason) = strategy(self, solver)?;
        solver.decide_by(strategy, reason);
        let mut solved = match self.kind {
            OptimumKind::Lexicographic => self.solve_lexicographic(solver),
            OptimumKind::Parametric => self.solve_parametric(solver),
            OptimumKind::Level | OptimumKind::Linear | OptimumKind::Conic => {
                self.solve_in_one_program(solver)
            }
        }?;
        // Columns that were priced in later have no time.
        let bound = self.columns.bound();
        solved.class_time.resize(bound.columns().len(), 0.0);
        if self.refinement == Refinement::Utilization {
            let filled = use_idle(&bound, &self.columns.reduced().equal_share, &solved.class_time);
            solved.class_time = filled.unwrap_or(solved.class_time);
        }
        Ok(solved)
    }

    /// The lexicographic optimum, with weights that fall through entities if there are any.
    fn solve_lexicographic(&mut self, solver: &mut SolverContext) -> Result<Optimum, SolvingError> {
        let unraised = ReachedLevel::unraised(&self.columns.bound(), self.hierarchy);
        let (unraised, rates) = unraised.ok_or(SolvingError::NoLevels)?;
        let (base, inverse) = (unraised.base().to_vec(), unraised.is_inverse());
        solver.found_so_far.keep_level(unraised.clone());
        let hierarchy = self.hierarchy;
        let of_first = |first: FirstLevel| {
            let reached = unraised.clone().raised(first);
            (reached.bound(), hierarchy.map(|_| reached))
        };
        solver.set_purpose(Purpose::FirstLevel { inverse });
        let filled = match solver.strategy() {
            Strategy::Singles => Some(water_filling::fill_singles(solver, self.columns, &rates)),
            Strategy::Kinds => Some(water_filling::fill_kinds(solver, self.columns, &rates)),
            Strategy::Pairs | Strategy::Written => None,
        };
        match filled {
            None => {}
            Some(Err(why)) => solver.give_up(why, after_giving_up(self.columns))?,
            Some(Ok(filled)) => {
                let (bound, reached) = of_first(filled.first);
                return Ok(Optimum { reached, ..Optimum::without_program(filled.class_time, bound) });
            }
        }
        let FilledByPrograms { mut filled, first_level, saturation_duals } =
            water_filling::fill_written(solver, self.columns, &rates, &base)?;
        if self.refinement == Refinement::Centre {
            // Every allocation with the final throughputs is an optimum: take their centre.
            filled.class_time = self.centre_at(solver, &filled.throughputs)?;
        }
        let (bound, reached) = of_first(filled.first);
        // Where the inverse of the level is raised, prices are changes of the inverse: d(1/u) = −du/u².
        let price_factor = if inverse { -bound * bound } else { 1.0 };
        Ok(Optimum {
            reached,
            explaining: ExplainingProgram::Kept(Box::new(first_level.formulation)),
            answer: Some(first_level.answer),
            price_factor,
            saturation_duals: Some(saturation_duals),
            ..Optimum::without_program(filled.class_time, bound)
        })
    }

    fn solve_parametric(&mut self, solver: &mut SolverContext) -> Result<Optimum, SolvingError> {
        match (solver.strategy() == Strategy::Kinds).then(|| self.solve_parametric_by_kinds(solver)) {
            Some(Ok(solved)) => return Ok(solved),
            Some(Err(why)) => solver.give_up(why, after_giving_up(self.columns))?,
            None => {}
        }
        let mut found = best_worst(solver, self.columns, None)?;
        let levels = self.columns.bound().levels_kept().ok_or(SolvingError::NoLevels)?;
        if solver.is_explaining() && is_another_level(found.tried, found.value) {
            found.price_at_optimum(solver, self.columns, &levels)?;
        }
        let n = self.columns.reduced().instance.n_members();
        let required = |member, level| levels.required(member, level).value;
        let class_time = match self.refinement {
            Refinement::Any => found.raised.class_time.clone(),
            Refinement::Centre => {
                let throughputs: Vec<f64> = (0..n).map(|member| required(member, found.value)).collect();
                self.centre_at(solver, &throughputs)?
            }
            Refinement::NearCentre => {
                // With every demand a floor, the program has no objective: an interior-point method ends well inside.
                let is_minimized = self.columns.objective().sense() == Sense::Minimize;
                let eased = if is_minimized { INTERIOR_EASING } else { -INTERIOR_EASING };
                let level = found.value + eased * found.value.abs();
                let floors: Vec<Demand> =
                    (0..n).map(|member| Demand::floor(required(member, level))).collect();
                let inside = |solver: &mut SolverContext| {
                    self.columns.solve(solver, |bound| bound.with_demands(&floors))
                };
                solver.with_purpose(Purpose::Choice, inside)?.class_time().to_vec()
            }
            Refinement::Utilization => {
                // The throughputs found are held where they are below the required ones, which rounding may have made
                // infeasible.
                let found_throughputs = levels::throughputs(&self.columns.bound(), &found.raised.class_time);
                let least =
                    |member: usize| required(member, found.value).min(found_throughputs[member]).max(0.0);
                let demands: Vec<Demand> =
                    (0..n).map(|member| Demand { slope: least(member), base: 0.0 }).collect();
                let part = f64::from(u8::from(demands.iter().any(|demand| demand.slope > 0.0)));
                let demand = demands.iter().map(|demand| demand.slope).collect();
                let kept = HeldLevel { demand, level: part };
                let mut old = found.formulation.take();
                solver.among_optima(|solver| {
                    let refined = singles::refine(
                        solver,
                        self.columns,
                        kept,
                        &found.raised.class_time,
                        found.proof.search.as_ref(),
                    );
                    let held = |bound: &BoundObjective<'_>| bound.with_demands_again(&demands, old.take());
                    refined.or_else(|_| self.refine_by_program(solver, held, part, &found.raised.class_time))
                })?
            }
        };
        Ok(found.into_optimum(&levels, class_time))
    }

    /// The parametric optimum by programs over kinds of jobs.
    fn solve_parametric_by_kinds(&mut self, solver: &mut SolverContext) -> Result<Optimum, GaveUp> {
        let mut kinds = KindProgram::of(self.columns, solver, BoundUse::Inequality).map_err(GaveUp::Unfit)?;
        let found = best_worst(solver, self.columns, Some(&mut kinds));
        let found = found.map_err(|_| GaveUp::Unproven)?;
        let levels = self.columns.bound().levels_kept().ok_or(GaveUp::Unfit(Unfit::Objective))?;
        let least = |(member, throughput): (usize, &f64)| {
            let slope = levels.required(member, found.value).value.min(*throughput).max(0.0);
            Demand { slope, base: 0.0 }
        };
        let demands: Vec<Demand> = found.raised.throughputs.iter().enumerate().map(least).collect();
        let class_time = solver.among_optima(|solver| kinds.class_time_at(solver, self.columns, &demands));
        Ok(found.into_optimum(&levels, class_time?))
    }

    /// Class times at the centre of the allocations that give members the largest common part of `throughputs`, [members].
    fn centre_at(
        &mut self,
        solver: &mut SolverContext,
        throughputs: &[f64],
    ) -> Result<Vec<f64>, SolvingError> {
        let demands: Vec<Demand> =
            throughputs.iter().map(|throughput| Demand { slope: *throughput, base: 0.0 }).collect();
        let centre =
            |solver: &mut SolverContext| self.solve_for_centre(solver, |bound| bound.with_demands(&demands));
        Ok(solver.among_optima(centre)?.class_time().to_vec())
    }

    fn solve_in_one_program(&mut self, solver: &mut SolverContext) -> Result<Optimum, SolvingError> {
        let solved = match solver.strategy() {
            Strategy::Singles => Some(self.solve_singles(solver)),
            Strategy::Kinds => Some(self.solve_kinds(solver)),
            Strategy::Pairs | Strategy::Written => None,
        };
        match solved {
            Some(Ok(solved)) => return Ok(solved),
            Some(Err(why)) => solver.give_up(why, after_giving_up(self.columns))?,
            None => {}
        }
        let refines = self.refinement == Refinement::Utilization;
        if self.columns.objective().inversion().is_none() && refines {
            solver.announce_held_optimum();
        }
        let solved = self.solve_for_centre(solver, program_of_objective)?;
        let SolvedFormulation { mut formulation, answer } = solved;
        solver.found_so_far.keep_bound(formulation.value(answer.bound), self.columns.objective().sense());
        let optimum = formulation.value(formulation.program.objective(&answer.solution.columns));
        // A strictly concave objective fixes every throughput: there is nothing left to refine.
        let refinable = formulation.program.is_linear() && refines;
        let first = formulation.class_time(&answer.solution.columns).to_vec();
        let class_time = if !refinable {
            first
        } else if self.columns.is_priced() || self.columns.bound().has_droppable() {
            solver.among_optima(|solver| {
                self.refine_by_program(solver, program_of_objective, optimum, &first)
            })?
        } else {
            // All columns are in the program already, which is extended and then restored.
            let refined = solver.among_optima(|solver| self.refine_in_place(solver, formulation, optimum))?;
            formulation = refined.formulation;
            refined.class_time.unwrap_or(first)
        };
        let bound = formulation.value(answer.bound);
        Ok(Optimum {
            explaining: ExplainingProgram::Kept(Box::new(formulation)),
            answer: Some(answer),
            ..Optimum::without_program(class_time, bound)
        })
    }

    /// Solves a program for the analytic centre of its optima, over all pairs, if the answer is to be the centre over
    /// jobs; else for any optimum.
    fn solve_for_centre(
        &mut self,
        solver: &mut SolverContext,
        formulate: impl Fn(&BoundObjective<'_>) -> Formulation,
    ) -> Result<SolvedFormulation, SolvingError> {
        if self.refinement != Refinement::Centre {
            return self.columns.solve(solver, formulate);
        }
        self.columns.admit_all();
        let formulation = formulate(&self.columns.bound());
        let weights =
            barrier_weights::of_classes(self.columns.objective(), self.columns.reduced(), &formulation);
        solver.record_value_map(&formulation);
        let mut answer = solver.solve(&formulation.program, FirstMethod::Centre(weights))?;
        clear_forbidden(&formulation, &mut answer);
        Ok(SolvedFormulation { formulation, answer })
    }

    /// Refines an optimum as [`refine_by_program`](Self::refine_by_program) does, by changing its program, which must have all
    /// columns, and restoring it: the class time, if the optimum could be held, and the program as it was.
    fn refine_in_place(
        &self,
        solver: &mut SolverContext,
        formulation: Formulation,
        optimum: f64,
    ) -> Result<RefinedInPlace, SolvingError> {
        let (bound, reduced) = (self.columns.bound(), self.columns.reduced());
        let held = formulation.program_objective(optimum);
        let worse = if formulation.program.sense == Sense::Maximize { -held.abs() } else { held.abs() };
        let (mut first, mut attempts) = (formulation, String::new());
        for eased in GIVEN_UP_REFINING {
            let next = bound.refine_utilization(first, held + eased * worse, &reduced.equal_share);
            if !reduced.pairs.is_empty() && next.auxiliaries.is_empty() {
                // A vertex of a sum's optimum is one of the program that holds it.
                solver.add_rows_to_basis(next.program.n_rows());
            }
            let outcome = self.columns.solve_all(solver, &next);
            let time = outcome.map(|answer| next.class_time(&answer.solution.columns).to_vec());
            first = next.first_stage(&reduced.instance);
            match time {
                Ok(time) => return Ok(RefinedInPlace { class_time: Some(time), formulation: first }),
                Err(SolvingError::Solve(SolveError::NotOptimal { attempts: tried, .. })) => attempts = tried,
                Err(error) => return Err(error),
            }
        }
        solver.report().fallbacks.push(format!("not refined: {attempts}"));
        Ok(RefinedInPlace { class_time: None, formulation: first })
    }

    /// The class times that use the workers best among the points at which a program has the value `optimum`. An
    /// optimum that cannot be held in floating point, and droppable constraints with it, are eased by the smallest
    /// part of [`GIVEN_UP_REFINING`] at which a solver finds a point. If it finds none, the optimum `first` stands,
    /// which is reported as a fallback.
    fn refine_by_program(
        &mut self,
        solver: &mut SolverContext,
        mut formulate: impl FnMut(&BoundObjective<'_>) -> Formulation,
        optimum: f64,
        first: &[f64],
    ) -> Result<Vec<f64>, SolvingError> {
        solver.report_written_refinement();
        let equal_share = self.columns.reduced().equal_share.clone();
        let mut second_stage = |bound: &BoundObjective<'_>, eased: f64| {
            let first = formulate(bound);
            let held = first.program_objective(optimum);
            let given_up = if first.program.sense == Sense::Maximize { -eased } else { eased };
            bound.refine_utilization(first, held + given_up * held.abs(), &equal_share)
        };
        let mut attempts = String::new();
        for eased in GIVEN_UP_REFINING {
            self.columns.ease(eased);
            if self.columns.is_priced() || !self.columns.reduced().pairs.is_empty() {
                // A vertex of the optimum is one of the program that holds it.
                solver.add_rows_to_basis(second_stage(&self.columns.bound(), eased).program.n_rows());
            }
            match self.columns.solve(solver, |bound| second_stage(bound, eased)) {
                Ok(solved) => return Ok(solved.class_time().to_vec()),
                Err(SolvingError::Solve(SolveError::NotOptimal { attempts: tried, .. })) => attempts = tried,
                Err(error) => return Err(error),
            }
        }
        solver.report().fallbacks.push(format!("not refined: {attempts}"));
        Ok(first.to_vec())
    }
}

/// The outcome of a refinement that changes the program of the optimum and restores it.
struct RefinedInPlace {
    /// The refined class time, [columns]; none if no solver held the optimum.
    class_time: Option<Vec<f64>>,
    /// The program as it was.
    formulation: Formulation,
}

/// The program of an objective.
fn program_of_objective(bound: &BoundObjective<'_>) -> Formulation {
    bound.formulate()
}
