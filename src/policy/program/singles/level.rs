//! The level that all jobs have in common: how far it can be raised, and the best use of workers at it.

use super::{ResidualProblem, class_time, search, searched_columns};
use crate::decomposition::PrimalDual;
use crate::policy::program::levels::{self, LevelOptimum};
use crate::policy::program::optimum::{MemberPrices, Optimum};
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solve::Task;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::{GaveUp, Unfit, refines_by_program};
use crate::program::{Demand, Goal, HOLD_SLACK, LevelCoefficients, Singles};

/// A level, and the prices that prove it, without their class times.
pub(in crate::policy::program) struct PricedLevel {
    pub(in crate::policy::program) level: LevelOptimum,
    pub(in crate::policy::program) prices: PrimalDual,
}

/// The highest level of demands without a base; an error where that takes a program.
pub(in crate::policy::program) fn raise_by_prices(
    solver: &mut SolverContext,
    columns: &ProgramColumns<'_>,
    demands: &[Demand],
) -> Result<PricedLevel, GaveUp> {
    searched_columns(solver, columns)?;
    if demands.iter().any(|demand| demand.base != 0.0) {
        return Err(GaveUp::Unfit(Unfit::Objective));
    }
    highest_level(solver, columns, demands.iter().map(|demand| demand.slope).collect())
}

/// The highest level of `demand`, throughput per unit of the level: [members].
fn highest_level(
    solver: &mut SolverContext,
    columns: &ProgramColumns<'_>,
    demand: Vec<f64>,
) -> Result<PricedLevel, GaveUp> {
    let objective = columns.bound();
    let singles = objective.singles(demand).ok_or(Unfit::Objective)?;
    let found = search(solver, &singles, Goal::Level, objective.columns().len())?;
    let (mut prices, bound) = (found.answer, found.bound);
    let class_time = class_time(&objective, &std::mem::take(&mut prices.time));
    let throughputs = levels::throughputs(&objective, &class_time);
    let (level, demand_price) = (prices.level, prices.throughput_price.clone());
    Ok(PricedLevel { level: LevelOptimum { class_time, throughputs, level, bound, demand_price }, prices })
}

/// A level of demands in proportion to it that all members are to keep.
pub(in crate::policy::program) struct HeldLevel {
    /// Throughput per unit of the level: [members].
    pub(in crate::policy::program) demand: Vec<f64>,
    pub(in crate::policy::program) level: f64,
}

/// The class times, [columns], that use the workers best, by the largest sum of throughputs over equal shares, at a
/// held level; an error where that takes a program. `class_time` reaches the level, and `prices` prove it:
/// only the residual problem, which the prices leave undecided, is searched. If prices do not converge and no
/// program refines it either ([`refines_by_program`]), `class_time` stands, and the report says so.
pub(in crate::policy::program) fn refine(
    solver: &mut SolverContext,
    columns: &ProgramColumns<'_>,
    held: HeldLevel,
    class_time: &[f64],
    prices: Option<&PrimalDual>,
) -> Result<Vec<f64>, GaveUp> {
    let (instance, bound) = (&columns.reduced().instance, columns.bound());
    let n_columns = searched_columns(solver, columns)?;
    let normal = instance.multiplicity.iter().zip(&columns.reduced().equal_share);
    let worth: Vec<f64> = normal.map(|(jobs, equal_share)| jobs / equal_share).collect();
    let level = held.level - HOLD_SLACK * held.level.abs();
    let k = instance.n_types();
    let mut given = vec![0.0; instance.n_members() * k];
    for (column, time) in bound.columns().iter().zip(class_time) {
        given[column.combination * k + column.worker_type] = *time;
    }
    let residual = prices.and_then(|prices| ResidualProblem::of_level(instance, prices, &given));
    let residual = residual.unwrap_or_else(|| ResidualProblem::all(instance));
    if residual.members.is_empty() {
        return Ok(class_time.to_vec());
    }
    let singles = bound.singles(held.demand).ok_or(Unfit::Objective)?;
    let [demand, worth] = [&singles.demand, &worth].map(|of| residual.of_members(of));
    let (given_there, by_type) = (residual.times(&given, k), vec![1.0; residual.types.len()]);
    let goal = Goal::Worth { level, worth: &worth, by_type: &by_type, given: &given_there };
    let refined = search(solver, &Singles::new(&residual.instance, demand), goal, n_columns);
    if let Err(why) = &refined
        && !refines_by_program(k)
    {
        solver.report().fallbacks.push(format!("not refined: {why}"));
        return Ok(class_time.to_vec());
    }
    residual.write_times(&refined?.answer.time, &mut given, k);
    Ok(super::class_time(&bound, &given))
}

impl Task<'_, '_> {
    /// The refined optimum of a level: the highest one or, where the inverse is raised, the lowest one.
    pub(super) fn maximize_level(&mut self, solver: &mut SolverContext) -> Result<Optimum, GaveUp> {
        let demand = self.demand_in_proportion()?;
        let PricedLevel { level, prices } = highest_level(solver, self.columns, demand.clone())?;
        let held = HeldLevel { demand, level: level.level };
        let refined = solver
            .among_optima(|solver| refine(solver, self.columns, held, &level.class_time, Some(&prices)));
        let class_time = refined.map_err(|_| GaveUp::Unrefined)?;
        let optimum = Optimum::without_program(class_time, self.bound_of_objective(level.bound));
        Ok(Optimum { prices: Some(MemberPrices::of(&prices)), ..optimum })
    }

    /// The throughput that a unit of the level asks of each member, [members]; an error if levels are not in proportion to
    /// throughputs, for which [`strategy`](crate::policy::program::strategy) chooses no such method.
    pub(in crate::policy::program) fn demand_in_proportion(&self) -> Result<Vec<f64>, Unfit> {
        let levels = self.columns.bound().levels_kept().ok_or(Unfit::Objective)?;
        let n = self.columns.reduced().instance.n_members();
        let slope = |member| match levels.coefficients(member) {
            Some(LevelCoefficients { base: 0.0, slope }) => Ok(slope),
            _ => Err(Unfit::Objective),
        };
        (0..n).map(slope).collect()
    }

    /// The bound on the objective that follows from a bound on the raised level, which is the objective or its
    /// inverse.
    pub(in crate::policy::program) fn bound_of_objective(&self, bound: f64) -> f64 {
        if self.columns.objective().is_by_inverse() { bound.recip() } else { bound }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::index::{Id, JobId};
    use crate::policy::Policy;
    use crate::policy::program::tests::{options_of, worth};
    use crate::policy::program::{ProgramOptions, ProgramPolicy, Reason, Refine, Strategy};
    use crate::problem::{ActiveJob, Problem, ProblemBuilder};
    use crate::program::{ObjectiveText, Sense};
    use crate::solver::{Limits, registry};
    use crate::units::{Seconds, Steps};

    /// Jobs on three types, no two alike, with about half as many workers as jobs.
    fn problem(n_jobs: usize) -> Problem {
        let part = |per_100: usize| u32::try_from((n_jobs * per_100).div_ceil(100).max(4)).unwrap();
        let cluster = crate::Cluster::try_new([("a", part(22)), ("b", part(17)), ("c", part(10))]).unwrap();
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        // multiples of the golden ratio are spread evenly
        let mut at = 0.0;
        let mut draw = || {
            at += 0.618_033_988_749_894_9_f64;
            at.fract()
        };
        for index in 0..n_jobs {
            let job = ActiveJob {
                scale_factor: [1, 1, 2, 4][index % 4],
                weight: 1.0 + draw(),
                steps_remaining: Steps::new(1e5 * (0.1 + draw())),
                elapsed: Seconds::new(1e4 * draw()),
                isolated_elapsed: Seconds::new(5e3 * draw()),
                ..ActiveJob::new(JobId::from_index(index))
            };
            let speed = 1.0 + 9.0 * draw();
            builder.job(job, &[speed, speed * draw(), speed * draw().powi(3)]);
        }
        builder.build().unwrap()
    }

    fn policy(sense: Sense, text: &str) -> ProgramPolicy {
        ProgramPolicy::try_new(options_of(&ObjectiveText::new(sense, text))).unwrap()
    }

    #[test]
    fn decisions_without_a_program_are_as_good_as_those_of_one() {
        let few = [2, 5, 12, 30, 60, 61].map(|n_jobs| (n_jobs, "simplex"));
        for (n_jobs, other) in few.into_iter().chain([(900, "clarabel")]) {
            as_good_as_a_program(&problem(n_jobs), other);
        }
    }

    fn as_good_as_a_program(problem: &Problem, other: &str) {
        for (sense, text) in [
            (Sense::Maximize, "min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))"),
            (Sense::Minimize, "max_over_jobs(steps_remaining / throughput)"),
            (
                Sense::Minimize,
                "max_over_jobs((elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput))",
            ),
        ] {
            let mut policy = policy(sense, text);
            let explained = policy.explain(problem).unwrap();
            assert!(
                explained.program.is_some() && explained.types.iter().all(|kind| kind.one_more.is_some())
            );
            let decision = policy.allocate(problem).unwrap();
            assert_eq!(
                explained.decision.allocation, decision.allocation,
                "an explanation is of the decision"
            );
            let solve = decision.solve.as_ref().unwrap();
            assert_eq!((solve.strategy, solve.reason), (Strategy::Singles, Reason::JobsAlone));
            assert_eq!((solve.solves, &solve.backend), (0, &None), "no program is written");
            let other = || registry::backend(other).unwrap();
            policy.solve_by(vec![other()], vec![other()], Limits::default());
            let written = policy.allocate(problem).unwrap();
            let values = [&decision, &written].map(|of| of.objective.clone().unwrap());
            assert!(values.iter().all(|objective| objective.optimal), "{values:?}");
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-8 * a.abs();
            assert!(near(values[0].value, values[1].value), "{text}: {values:?}");
            let worths = [&decision, &written].map(|of| worth(problem, of));
            assert!(near(worths[0], worths[1]), "{text}: {worths:?}");
            assert!(decision.solve.unwrap().fallbacks.is_empty());
        }
    }

    #[test]
    fn an_interior_optimum_takes_the_program_of_its_centre_and_no_other() {
        let text = "max_over_jobs((elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput))";
        let objective = ObjectiveText::new(Sense::Minimize, text);
        let options = ProgramOptions { refine: Refine::Interior, ..options_of(&objective) };
        let centre = ProgramPolicy::try_new(options).unwrap().allocate(&problem(60)).unwrap();
        let report = centre.solve.unwrap();
        assert_eq!((report.solves, report.backend.as_deref()), (1, Some("centre")), "{report:?}");
        assert!(report.searches > 0 && report.fallbacks.is_empty(), "{report:?}");
        let optimum = policy(Sense::Minimize, text).allocate(&problem(60)).unwrap().objective.unwrap();
        let reached = centre.objective.unwrap();
        assert!(reached.optimal && (reached.value - optimum.value).abs() <= 1e-8 * optimum.value);
    }

    #[test]
    fn logarithms_without_a_program_are_as_good_as_with_cones() {
        let problem = problem(900);
        let mut policy = policy(Sense::Maximize, "sum_over_jobs(weight * log(throughput))");
        let explained = policy.explain(&problem).unwrap();
        assert!(explained.program.is_some() && explained.types.iter().all(|kind| kind.one_more.is_some()));
        let decision = policy.allocate(&problem).unwrap();
        assert_eq!(explained.decision.allocation, decision.allocation, "an explanation is of the decision");
        let solve = decision.solve.as_ref().unwrap();
        assert!(solve.fallbacks.is_empty() && solve.size.rows == 903, "{solve:?}");
        let other = || registry::backend("clarabel").unwrap();
        policy.solve_by(vec![other()], vec![other()], Limits::default());
        let written = policy.allocate(&problem).unwrap();
        let values = [&decision, &written].map(|of| of.objective.clone().unwrap());
        assert!(values.iter().all(|objective| objective.optimal), "{values:?}");
        assert!((values[0].value - values[1].value).abs() <= 1e-8 * values[0].value.abs(), "{values:?}");
        // throughputs at the optimum are unique; the value is flat about them
        let [one, other] = [&decision, &written].map(|of| of.allocation.effective_throughput().as_slice());
        for (one, other) in one.iter().zip(other) {
            assert!((one - other).abs() <= 1e-3 * one, "{one} {other}");
        }
    }
}
