//! Policies that solve a program: how a problem becomes a decision.

use crate::allocation::Allocation;
use crate::index::{Id, JobId, JobIndex};
use crate::policy::decision::{Decision, Policy, PolicyError, RoundRules, TypeOrder};
use crate::policy::explain::Explanation;
use crate::policy::program::conflict::{Stage, conflicts};
use crate::policy::program::discount;
use crate::policy::program::droppable;
use crate::policy::program::errors::ProgramPolicyError;
use crate::policy::program::exchange::SlowTime;
use crate::policy::program::expand::expand;
use crate::policy::program::explain::explain;
use crate::policy::program::hierarchy::Hierarchy;
use crate::policy::program::isolated_time::IsolatedTime;
use crate::policy::program::late::Late;
use crate::policy::program::optimum::{Optimum, OptimumKind, Refinement};
use crate::policy::program::options::{ProgramOptions, Refine};
use crate::policy::program::pairs::Pairing;
use crate::policy::program::program_columns::{PricingLimits, ProgramColumns};
use crate::policy::program::recorded::Purpose;
use crate::policy::program::reduce::{Reduced, Selection, reduce};
use crate::policy::program::rounding::{
    FittedAllocation, MISSED_MAX, Rounded, scaled_to_fit, without_rounding,
};
use crate::policy::program::solve::Task;
use crate::policy::program::solver_context::{SolverContext, SolvingError};
use crate::policy::program::strategy::pricing_limits;
use crate::policy::view::ThroughputView;
use crate::problem::{ActiveJob, Colocation, Problem};
use crate::program::{Binding, Objective, Program, Sense};
use crate::solver::simplex::Simplex;
use crate::solver::timing::Stopwatch;
use crate::solver::{Backend, Limits, SolveError, registry};
use crate::spec::Fidelity;
use crate::units::Steps;

/// A decision, with the reduced problem and the optimum that it was made from.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) reduced: Reduced,
    pub(super) optimum: Optimum,
    pub(super) decision: Decision,
}

/// A policy that solves a program.
#[derive(Debug)]
pub struct ProgramPolicy {
    /// The options by which the policy was made.
    pub(super) options: ProgramOptions,
    /// Names of the jobs' data that the objective reads.
    pub(super) data: Vec<String>,
    /// Whether pairs that time slicing serves as well are left out: only where throughput alone counts.
    prune: bool,
    /// Whether it has droppable constraints.
    pub(super) droppable: bool,
    /// The limits of pair pricing: up to how many pairs all are columns from the start.
    pub(super) pricing: PricingLimits,
    /// The kind of optimum that is asked for.
    pub(super) kind: OptimumKind,
    /// The choice among optima.
    pub(super) refinement: Refinement,
    pub(super) solver: SolverContext,
    /// The account of isolated time, where the objective reads it.
    isolated_time: Option<IsolatedTime>,
    /// The treatment of time on slower worker types while faster ones, which the policy does not tell from them, are
    /// idle.
    pub(super) slow_time: SlowTime,
    /// The outcome of a decision that is not made within its time.
    pub(super) late: Late,
}

impl ProgramPolicy {
    /// A policy of these options.
    ///
    /// # Errors
    /// If the refinement or the hierarchy does not fit the objective, or the backend does not exist.
    pub fn try_new(options: ProgramOptions) -> Result<Self, ProgramPolicyError> {
        let objective = &options.objective;
        let (kind, refinement) = (OptimumKind::of(&options), Refinement::of(&options));
        let lexicographic = objective.is_lexicographic() || options.refine == Refine::WaterFilling;
        if lexicographic && kind != OptimumKind::Lexicographic {
            return Err(ProgramPolicyError::NotFillable);
        }
        if lexicographic && objective.constraints().iter().any(|constraint| constraint.soft.is_some()) {
            return Err(ProgramPolicyError::SoftLexicographic);
        }
        let data = objective.job_data();
        if options.hierarchical && !(objective.is_lexicographic() && data.iter().any(|name| name == "weight"))
        {
            return Err(ProgramPolicyError::NotHierarchical);
        }
        let droppable = objective.constraints().iter().any(|constraint| constraint.droppable);
        if options.discounted && !discount::fits(&options) {
            return Err(ProgramPolicyError::NotDiscountable);
        }
        let prune = !refinement.is_central() && objective.reads_throughput_only();
        let isolated_time = data.iter().any(|name| name == "isolated_elapsed").then(IsolatedTime::default);
        // Where the answer is a centre, programs before it may end at any optimum.
        let usual = options.backend.is_none() && refinement != Refinement::NearCentre;
        let interior_point = usual.then(|| registry::backend("clarabel")).transpose()?;
        let simplex: Option<Box<dyn Backend>> =
            if usual { Some(Box::new(Simplex::forgetful())) } else { None };
        let (linear, conic) = chains(&options)?;
        let solver =
            SolverContext::new(linear, conic).with_interior_point(interior_point).with_simplex(simplex);
        let solver = solver.with_strategy(options.strategy).with_time_limit(options.time_limit);
        let solver = solver.with_interrupt(options.interrupt.clone());
        let pricing = PricingLimits::default();
        Ok(Self {
            options,
            data,
            prune,
            droppable,
            pricing,
            kind,
            refinement,
            solver,
            isolated_time,
            slow_time: SlowTime::Left,
            late: Late::Refused,
        })
    }

    /// Checks that the problem has the data without which the policy cannot decide.
    pub(super) fn check_data(&self, problem: &Problem) -> Result<(), PolicyError> {
        let view = &self.options.view;
        if let ThroughputView::Reference { worker_types, .. } = view
            && view.reference(problem.cluster()).is_none()
        {
            let known: Vec<String> = worker_types.iter().map(|name| format!("`{name}`")).collect();
            return Err(PolicyError::Data {
                policy: self.options.name.clone(),
                field: "a reference worker type".to_owned(),
                problem: format!("one of {}, or `fastest`: the cluster has none of them", known.join(", ")),
            });
        }
        let needs_steps = self.data.iter().any(|name| name == "steps_remaining");
        let unstated =
            |job: &ActiveJob| needs_steps && job.steps_remaining.get() == 0.0 && job.slo_remaining.is_none();
        match problem.jobs().iter().position(unstated) {
            None => Ok(()),
            Some(job) => Err(PolicyError::Missing {
                policy: self.options.name.clone(),
                field: "steps_remaining".to_owned(),
                job,
                expected: "a number of steps above 0".to_owned(),
            }),
        }
    }

    pub(super) fn solve(&mut self, problem: &Problem) -> Result<Decided, PolicyError> {
        self.check_data(problem)?;
        let clock = Stopwatch::start();
        self.solver.begin_decision(self.options.objective.route().name());
        let isolated_elapsed = self
            .isolated_time
            .as_mut()
            .map(|time| time.update(problem, &self.options.view))
            .unwrap_or_default();
        let decided = self.decide_dropping_fewest(problem, &isolated_elapsed);
        let decided = decided.and_then(|mut decided| {
            self.discount_in_time(problem, &mut decided)?;
            Ok(decided)
        });
        // A decision that was broken off is an error, whatever came of it.
        self.solver.check_interrupt().map_err(|error| self.error(error))?;
        let mut decided =
            decided.map_err(|error| self.with_remedies(error, problem, &isolated_elapsed, &clock))?;
        self.exchange(problem, &mut decided.decision)?;
        decided.decision.solve = Some(self.solver.report().clone());
        Ok(decided)
    }

    /// Whether it finds a decision that is proven to be an optimum.
    pub(super) fn decides(&mut self, problem: &Problem, isolated_elapsed: &[f64]) -> bool {
        self.solver.begin_decision(self.options.objective.route().name());
        let decided = self.decide_dropping_fewest(problem, isolated_elapsed);
        let is_proven = |decision: &Decision| decision.objective.as_ref().is_some_and(|found| found.optimal);
        decided.is_ok_and(|decided| is_proven(&decided.decision)) && self.solver.check_interrupt().is_ok()
    }

    /// The decision in which the droppable constraints of the fewest jobs are dropped.
    fn decide_dropping_fewest(
        &mut self,
        problem: &Problem,
        isolated_elapsed: &[f64],
    ) -> Result<Decided, PolicyError> {
        let clock = Stopwatch::start();
        let before = self.solver.report().seconds;
        // A named backend ends near the centre of its program, so that program is over jobs.
        let classes = self.refinement != Refinement::NearCentre || self.options.backend.is_none();
        let objective = self.options.objective.clone();
        let mut columns =
            self.program_columns(problem, &objective, &self.selection(isolated_elapsed, &[], classes))?;
        self.solver.set_classes(&columns.reduced().classes);
        let published = self.options.fidelity == Fidelity::Published;
        // If the time is over, the search for the optimum is, too.
        let settled = |policy: &mut Self, columns: &mut ProgramColumns<'_>| match policy.drop_fewest(columns)
        {
            Err(_) if policy.is_late() => Ok(true),
            settled => settled,
        };
        let is_settled = !self.droppable || settled(self, &mut columns)?;
        if published && (!is_settled || columns.reduced().instance.dropped.contains(&true)) {
            columns.drop_constraints(vec![true; columns.reduced().instance.n_members()]);
        } else if !is_settled {
            // Only some jobs of a class lose their constraint: find which by a program over jobs, and group the jobs anew.
            let mut columns_of_jobs =
                self.program_columns(problem, &objective, &self.selection(isolated_elapsed, &[], false))?;
            self.solver.set_classes(&columns_of_jobs.reduced().classes);
            settled(self, &mut columns_of_jobs)?;
            let dropped = &columns_of_jobs.reduced().instance.dropped;
            columns = self.program_columns(
                problem,
                &objective,
                &self.selection(isolated_elapsed, dropped, classes),
            )?;
            self.solver.set_classes(&columns.reduced().classes);
            settled(self, &mut columns)?;
        }
        let hierarchy = |classes| Hierarchy::new(problem, classes, published);
        let hierarchy = self.options.hierarchical.then(|| hierarchy(&columns.reduced().classes));
        let solved = self.optimum_in_time(&mut columns, hierarchy.as_ref())?;
        let elapsed = clock.elapsed().as_secs_f64();
        let mut decision = self.decide(problem, &columns, &solved)?;
        // `decide` gives, as `dropped`, the jobs that miss a constraint which was to be kept: the solver was inaccurate.
        let missed = std::mem::take(&mut decision.dropped);
        let constraints = objective.constraints();
        let of_deadlines = constraints.iter().any(|one| one.droppable && one.reads_deadline());
        let past = |job: &ActiveJob| of_deadlines && job.slo_remaining.is_some_and(|left| left.get() <= 0.0);
        let dropped = |(index, job): (JobIndex, &ActiveJob)| {
            let class = columns.reduced().classes.class_of(index.index());
            let dropped = columns.reduced().instance.dropped.get(class) == Some(&true);
            let dropped = dropped && (!published || job.slo_remaining.is_some());
            let missed = !published && missed.binary_search(&index).is_ok();
            (dropped || missed || past(job)).then_some(index)
        };
        if self.droppable {
            decision.dropped = problem.jobs().enumerate().filter_map(dropped).collect();
        }
        let seconds = &mut self.solver.report().seconds;
        let by_solvers = (seconds.solve - before.solve) + (seconds.certify - before.certify);
        seconds.build += elapsed - by_solvers;
        seconds.expand += clock.elapsed().as_secs_f64() - elapsed;
        self.solver.report().size.classes = columns.reduced().classes.len();
        Ok(Decided { reduced: columns.into_reduced(), optimum: solved, decision })
    }

    /// The programs' columns: every job or class of jobs alone, and pairs where the policy has them.
    fn program_columns<'o>(
        &self,
        problem: &Problem,
        objective: &'o Objective,
        selection: &Selection<'_>,
    ) -> Result<ProgramColumns<'o>, PolicyError> {
        let reduced = reduce(problem, selection);
        let binding = self.binding(objective, &reduced)?;
        let pairing = || Pairing::of(problem, &self.options.view, &reduced.classes, self.prune);
        let shared = self.options.pairs && !matches!(problem.colocation(), Colocation::None);
        let pairing = shared.then(pairing);
        let pricing = pricing_limits(self.pricing, objective, self.refinement, self.solver.asked());
        Ok(ProgramColumns::new(objective, reduced, binding, pairing, pricing))
    }

    /// The binding of the objective to an instance.
    pub(super) fn binding(&self, objective: &Objective, reduced: &Reduced) -> Result<Binding, PolicyError> {
        let bound = objective.bind(&reduced.instance).map_err(|error| self.bind_error(&error, reduced))?;
        Ok(bound.binding().clone())
    }

    pub(super) fn selection<'a>(
        &'a self,
        isolated_elapsed: &'a [f64],
        dropped: &'a [bool],
        classes: bool,
    ) -> Selection<'a> {
        Selection {
            view: &self.options.view,
            pairs: self.options.pairs,
            classes,
            hierarchical: self.options.hierarchical,
            dropped,
            fidelity: self.options.fidelity,
            data: &self.data,
            isolated_elapsed,
        }
    }

    /// Drops droppable constraints of as few members as possible; false where only some jobs of a class would lose
    /// theirs: then each job must first be a member of its own.
    fn drop_fewest(&mut self, columns: &mut ProgramColumns<'_>) -> Result<bool, PolicyError> {
        let done =
            self.solver.with_purpose(Purpose::Droppable, |solver| droppable::drop_fewest(solver, columns));
        done.map_err(|error| self.error_or_conflicts(error, columns, Stage::Undropped))
    }

    /// The error of a program or, where constraints that contradict one another are its cause, these constraints.
    fn error_or_conflicts(
        &self,
        error: SolvingError,
        columns: &ProgramColumns<'_>,
        stage: Stage,
    ) -> PolicyError {
        let constrained = error.may_be_infeasible() && !self.options.objective.constraints().is_empty();
        let limits = self.solver.limits();
        let found = constrained.then(|| conflicts(columns.reduced(), &columns.bound(), stage, &limits));
        match found.and_then(|conflicts| conflicts.error_of(&self.options.name)) {
            Some(conflicts) => conflicts,
            // The search for a conflict may have run out of time.
            None if constrained => match self.solver.check_time() {
                Err(late) => self.error(late),
                Ok(()) => self.error_of(error, columns),
            },
            None => self.error_of(error, columns),
        }
    }

    /// Discounts the time of jobs in a decision by the partial allocation mechanism; the discounts are kept in its optimum.
    pub(super) fn discount(&mut self, problem: &Problem, decided: &mut Decided) -> Result<(), PolicyError> {
        let Decided { reduced, optimum: solved, decision } = decided;
        let (clock, before) = (Stopwatch::start(), self.solver.report().seconds);
        let objective = self.options.objective.clone();
        let throughput = |reduced: &Reduced, solved: &Optimum| {
            objective
                .bind(&reduced.instance)
                .map(|bound| bound.point(&solved.class_time).throughput().to_vec())
        };
        let with = throughput(reduced, solved).map_err(|error| self.bind_error(&error, reduced))?;
        self.solver.set_purpose(Purpose::Without);
        for member in 0..with.len() {
            let discount = match discount::without(reduced, member) {
                None => 1.0,
                Some(others) => {
                    let binding = self.binding(&objective, &others)?;
                    let mut columns = ProgramColumns::new(
                        &objective,
                        others.clone(),
                        binding,
                        None,
                        PricingLimits::UNPRICED,
                    );
                    let without = self.optimum(&mut columns, None)?;
                    let without =
                        throughput(&others, &without).map_err(|error| self.bind_error(&error, &others))?;
                    discount::discount(reduced, member, &with, &without)
                }
            };
            solved.discounts.push(discount);
        }
        let rows = discount::discounted(&decision.allocation, &reduced.classes, &solved.discounts);
        let allocation = Allocation::check(problem, rows)
            .map_err(|source| PolicyError::Allocation { policy: self.options.name.clone(), source })?;
        let seconds = &mut self.solver.report().seconds;
        let by_solvers = (seconds.solve - before.solve) + (seconds.certify - before.certify);
        seconds.build += clock.elapsed().as_secs_f64() - by_solvers;
        decision.allocation = allocation;
        Ok(())
    }

    /// The optimum of the programs over `columns`.
    pub(super) fn optimum(
        &mut self,
        columns: &mut ProgramColumns<'_>,
        hierarchy: Option<&Hierarchy>,
    ) -> Result<Optimum, PolicyError> {
        let mut task = Task { columns, kind: self.kind, refinement: self.refinement, hierarchy };
        task.solve(&mut self.solver).map_err(|error| self.error_or_conflicts(error, columns, Stage::Dropped))
    }

    pub(super) fn decide(
        &mut self,
        problem: &Problem,
        columns: &ProgramColumns<'_>,
        solved: &Optimum,
    ) -> Result<Decision, PolicyError> {
        let (reduced, bound) = (columns.reduced(), columns.bound());
        let Rounded { class_time, share_min } = if self.refinement.is_central() {
            Rounded {
                class_time: solved.class_time.iter().map(|time| time.max(0.0)).collect(),
                share_min: None,
            }
        } else {
            without_rounding(reduced, &bound, &solved.class_time)
        };
        let FittedAllocation { allocation, class_time } = scaled_to_fit(class_time, |class_time| {
            expand(problem, reduced, bound.columns(), class_time, share_min)
        })
        .map_err(|source| PolicyError::Allocation { policy: self.options.name.clone(), source })?;
        let point = bound.point(&class_time);
        let violation_max = allocation.violation_max().max(self.own_violation(columns, &bound, &point)?);
        let value = solved.value(&bound, &point);
        let objective = self.objective_report(value, solved.bound, violation_max, || bound.largest());
        if !objective.optimal && !self.options.objective.constraints().is_empty() {
            let conflicts = conflicts(columns.reduced(), &bound, Stage::Dropped, &self.solver.limits());
            if let Some(error) = conflicts.error_of(&self.options.name) {
                return Err(error);
            }
        }
        let levels = bound.throughputs(&point).zip(bound.levels()).map(|(throughputs, levels)| {
            let of_class: Vec<f64> = throughputs
                .iter()
                .enumerate()
                .map(|(member, throughput)| levels.level(member, *throughput))
                .collect();
            (0..problem.n_jobs()).map(|job| of_class[reduced.classes.class_of(job)]).collect()
        });
        let missed = if self.droppable { bound.missed(&point, MISSED_MAX) } else { Vec::new() };
        let is_missed = |job: &JobIndex| missed.get(reduced.classes.class_of(job.index())) == Some(&true);
        let dropped = problem.jobs().ids().filter(is_missed).collect();
        let rules = self.rules();
        Ok(Decision { objective: Some(objective), levels, rules, dropped, ..Decision::of(allocation) })
    }

    pub(super) fn rules(&self) -> RoundRules {
        let measured = self.options.view == ThroughputView::Measured;
        let type_order = if measured { TypeOrder::Speed } else { TypeOrder::Shuffled };
        let within_shares = self.options.objective.has_limits();
        let pair_fillers = self.options.pairs;
        RoundRules { type_order, pair_fillers, within_shares, ..RoundRules::default() }
    }

    fn decide_without_jobs(&self, problem: &Problem) -> Result<Decision, PolicyError> {
        let allocation = Allocation::check(problem, std::iter::empty())
            .map_err(|source| PolicyError::Allocation { policy: self.options.name.clone(), source })?;
        Ok(Decision { rules: self.rules(), ..Decision::of(allocation) })
    }

    /// Solves by these backends from now on, in place of the backends of the options. They are tried in order:
    /// `linear` for programs without cones, `conic` for programs with cones. They may be the caller's own.
    pub fn solve_by(&mut self, linear: Vec<Box<dyn Backend>>, conic: Vec<Box<dyn Backend>>, limits: Limits) {
        self.solver.replace(linear, conic, limits);
    }

    /// The options that the policy was made with.
    pub fn options(&self) -> &ProgramOptions {
        &self.options
    }
}

type Chain = Vec<Box<dyn Backend>>;

/// The chains of backends for linear programs and for programs with cones.
fn chains(options: &ProgramOptions) -> Result<(Chain, Chain), SolveError> {
    let (program, conic) = (Program::new(Sense::Maximize), registry::conic_chain());
    let linear = registry::default_chain(&program);
    Ok(match (&options.backend, Refinement::of(options)) {
        (Some(name), _) => (registry::led_by(name, linear)?, registry::led_by(name, conic)?),
        (None, Refinement::NearCentre) => (registry::central_chain(&program), conic),
        (None, _) => (linear, conic),
    })
}

impl Policy for ProgramPolicy {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        if problem.n_jobs() == 0 {
            return self.decide_without_jobs(problem);
        }
        self.solve(problem).map(|decided| decided.decision)
    }

    fn explain(&mut self, problem: &Problem) -> Result<Explanation, PolicyError> {
        if problem.n_jobs() == 0 {
            let decision = self.decide_without_jobs(problem)?;
            return Ok(Explanation::of_shares(problem, decision, "there are no jobs".to_owned()));
        }
        let state = self.state();
        let explained = self.solve_to_explain(problem)?;
        self.restore(&state)?;
        let reduced = explained.reduced.clone();
        let bound = self.options.objective.bind(&reduced.instance);
        let bound = bound.map_err(|error| self.bind_error(&error, &reduced))?;
        Ok(explain(problem, &bound, explained))
    }

    fn state(&self) -> serde_json::Value {
        serde_json::to_value(&self.isolated_time).unwrap_or_default()
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        self.isolated_time = serde_json::from_value(state.clone())
            .map_err(|_| PolicyError::State { policy: self.options.name.clone() })?;
        Ok(())
    }

    fn restate_steps(&mut self, job: JobId, more: Steps) {
        if let Some(isolated_time) = &mut self.isolated_time {
            isolated_time.restate_steps(job, more);
        }
    }
}
