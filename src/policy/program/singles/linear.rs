//! Linear sums over jobs: the largest one, and the best use of workers among the largest.
//!
//! At optimal prices almost every job has a unique best response. Ties are broken by a small linear program over the tied
//! jobs, with all other jobs fixed.

use super::tie_break::{TieBreak, idle_workers};
use super::{Certified, class_time, search, searched_columns};
use crate::decomposition::PrimalDual;
use crate::policy::program::optimum::{MemberPrices, Optimum, Refinement};
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solve::Task;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::{GaveUp, Unfit};
use crate::program::{Goal, LinearObjective, LinearSum, Range, Singles};

/// A worker type is tied with a job's best one if the job loses less than this by it, relative to what time there is
/// worth or to the price of the job's time, whichever is more.
const TIED: f64 = 1e-7;
/// The most tied jobs for which the small program is small.
const TIED_MAX: usize = 65_536;
/// The part of the tied jobs' value that breaking ties may cost: below the tolerance of certificates.
const LOSS_MAX: f64 = 1e-9;

/// The largest sum at which all members have the throughputs that constraints ask for.
fn maximize(
    solver: &mut SolverContext,
    singles: &Singles<'_>,
    linear: &LinearObjective,
    n_columns: usize,
) -> Result<Certified<PrimalDual>, GaveUp> {
    let asked = singles.demand.iter().any(|least| *least > 0.0);
    let LinearObjective { coefficient, by_type } = linear;
    let goal = Goal::Worth { level: f64::from(u8::from(asked)), worth: coefficient, by_type, given: &[] };
    search(solver, singles, goal, n_columns)
}

/// Whether it is known without a program that all droppable constraints can be met at once. It is if prices converge
/// to an optimum of the objective that meets all of them.
pub(in crate::policy::program) fn all_droppable_met(
    solver: &mut SolverContext,
    columns: &ProgramColumns<'_>,
) -> bool {
    let Ok(n_columns) = searched_columns(solver, columns) else { return false };
    let bound = columns.bound();
    let Some(LinearSum { singles, linear }) = bound.linear_objective() else { return false };
    maximize(solver, &singles, &linear, n_columns).is_ok()
}

impl Task<'_, '_> {
    /// The largest sum, refined.
    pub(super) fn maximize_linear(&mut self, solver: &mut SolverContext) -> Result<Optimum, GaveUp> {
        let bound = self.columns.bound();
        let LinearSum { singles, linear } =
            bound.linear_objective().ok_or_else(|| GaveUp::Unfit(Unfit::without_linear_objective(&bound)))?;
        let mut found = maximize(solver, &singles, &linear, bound.columns().len())?;
        if self.refinement == Refinement::Utilization {
            let equal_share = &self.columns.reduced().equal_share;
            let optimum = &mut found.answer;
            let refined =
                solver.among_optima(|solver| refine(solver, &singles, &linear, equal_share, optimum));
            refined.map_err(|_| GaveUp::Unrefined)?;
        }
        let prices = Some(MemberPrices::of(&found.answer));
        Ok(Optimum {
            prices,
            ..Optimum::without_program(class_time(&bound, &found.answer.time), found.bound)
        })
    }
}

/// A member with several best responses, and the worker types that they use.
struct Tied {
    member: usize,
    types: Vec<usize>,
}

/// The members with several best responses at optimal prices.
fn tied(singles: &Singles<'_>, linear: &LinearObjective, optimum: &PrimalDual) -> Vec<Tied> {
    let instance = singles.instance();
    let of = |member: usize| {
        let (time, throughput_price) = (optimum.time_price[member], optimum.throughput_price[member]);
        let jobs = instance.multiplicity[member];
        let size = instance.scale_factor[member];
        let mut binds = [false; 2];
        let mut types = Vec::new();
        for (j, speed) in instance.alone(member).iter().enumerate().filter(|(j, _)| singles.runs(member, *j))
        {
            let per_time = speed / jobs;
            let gain = (throughput_price + linear.coefficient[member] * linear.by_type[j]) * per_time;
            let (rent, least) = (size * optimum.worker_price[j], TIED * gain.max(time));
            if gain - time - rent >= -least {
                types.push(j);
                binds = [binds[0] || time > least, binds[1] || throughput_price * per_time > least];
            }
        }
        // At a vertex of its own subproblem, a member has time on as many types as constraints bind.
        let n_bound = usize::from(binds[0]) + usize::from(binds[1]);
        (types.len() > n_bound).then_some(Tied { member, types })
    };
    (0..instance.n_members()).filter_map(of).collect()
}

/// Makes the best use of the workers among optima; an error if too many jobs are tied.
fn refine(
    solver: &mut SolverContext,
    singles: &Singles<'_>,
    linear: &LinearObjective,
    equal_share: &[f64],
    optimum: &mut PrimalDual,
) -> Result<(), GaveUp> {
    let tied = tied(singles, linear, optimum);
    if tied.is_empty() {
        return Ok(());
    }
    if tied.len() > TIED_MAX {
        return Err(GaveUp::TooManyTied);
    }
    let instance = singles.instance();
    let k = instance.n_types();
    let mut available = idle_workers(singles, &optimum.time, |_| true);
    let mut small = TieBreak::new(singles);
    let (mut held, mut value) = (Vec::new(), 0.0);
    for Tied { member, types } in &tied {
        let (jobs, size) = (instance.multiplicity[*member], instance.scale_factor[*member]);
        let (mut time, mut throughput) = (Vec::new(), Vec::new());
        let (mut used, mut reached) = (0.0, 0.0);
        for j in types {
            let (per_time, given) = (instance.alone(*member)[*j] / jobs, optimum.time[member * k + j]);
            let column = small.push_time(*member, *j, jobs / equal_share[*member] * per_time);
            let worth = linear.coefficient[*member] * linear.by_type[*j] * per_time;
            time.push((column, 1.0));
            throughput.push((column, per_time));
            held.push((column, worth));
            available[*j] += size * given;
            (used, reached, value) = (used + given, reached + per_time * given, value + worth * given);
        }
        // time on other types, from rounding or where it costs nothing, stays
        let others = |of: &dyn Fn(usize) -> f64| -> f64 {
            let apart = (0..k).filter(|j| !types.contains(j));
            apart.map(|j| of(j) * optimum.time[member * k + j]).sum()
        };
        let throughput_elsewhere = others(&|j| instance.alone(*member)[j] / jobs);
        let needed = (singles.demand[*member] - throughput_elsewhere).min(reached).max(0.0);
        small.program.push_row(Range::at_most((jobs - others(&|_| 1.0)).max(used)), time);
        if needed > 0.0 {
            small.program.push_row(Range::at_least(needed), throughput);
        }
    }
    small.push_capacity(available);
    if value > 0.0 {
        for (_, worth) in &mut held {
            *worth /= value;
        }
        small.program.push_row(Range::at_least(1.0 - LOSS_MAX), held);
    }
    let answer = match small.solve(solver) {
        Ok(answer) => answer,
        Err(why) => {
            solver.report().fallbacks.push(format!("not refined: {why}"));
            return Ok(());
        }
    };
    let mut chosen = answer.solution.columns.iter();
    for Tied { member, types } in &tied {
        for (j, time) in types.iter().zip(chosen.by_ref()) {
            optimum.time[member * k + j] = time.max(0.0);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::index::{Id, JobId};
    use crate::policy::Policy;
    use crate::policy::program::ProgramPolicy;
    use crate::policy::program::Strategy;
    use crate::policy::program::tests::{options_of, worth};
    use crate::problem::{ActiveJob, Problem, ProblemBuilder};
    use crate::program::{ConstraintText, ObjectiveText, Sense};
    use crate::solver::{Limits, registry};
    use crate::units::{DollarsPerWorkerHour, Seconds, Steps};

    /// Jobs on three types. Every `like`th is faster on the first type than on the second by the same number of
    /// steps/s, so that these jobs are tied. Every fiftieth cannot meet its deadline.
    fn problem(n_jobs: usize, like: usize) -> Problem {
        let part = |per_100: usize| u32::try_from((n_jobs * per_100).div_ceil(100).max(4)).unwrap();
        let mut cluster =
            crate::Cluster::try_new([("a", part(30)), ("b", part(25)), ("c", part(40))]).unwrap();
        for (name, price) in [("a", 3.0), ("b", 1.5), ("c", 1.0)] {
            cluster = cluster.with_price(name, DollarsPerWorkerHour::new(price)).unwrap();
        }
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        // multiples of the golden ratio are spread evenly
        let mut at = 0.0;
        let mut draw = || {
            at += 0.618_033_988_749_894_9_f64;
            at.fract()
        };
        for index in 0..n_jobs {
            let (speed, others) = (1.0 + 9.0 * draw(), [draw(), draw()]);
            let unit_s = if index % 50 == 7 { 1.0 } else { 3600.0 };
            let job = ActiveJob {
                scale_factor: [1, 1, 2][index % 3],
                weight: 1.0 + draw(),
                steps_remaining: Steps::new(3600.0 * speed * draw()),
                slo_remaining: Some(Seconds::new(unit_s * (0.6 + 2.0 * draw()))),
                ..ActiveJob::new(JobId::from_index(index))
            };
            let third = if index % 7 == 3 { 0.0 } else { speed * others[1] };
            let speeds = [speed, speed * others[0], third];
            builder.job(job, &if index % like == 0 { [speed + 2.0, speed, 0.0] } else { speeds });
        }
        builder.build().unwrap()
    }

    fn policy(text: &str, constraint: Option<ConstraintText>) -> ProgramPolicy {
        let mut objective = ObjectiveText::new(Sense::Maximize, text);
        objective.for_each_job.extend(constraint);
        ProgramPolicy::try_new(options_of(&objective)).unwrap()
    }

    // Without HiGHS the search for the jobs to drop certifies too little.
    #[cfg(feature = "highs")]
    #[test]
    fn jobs_dropped_where_not_all_can_be_served_are_known() {
        let speeds = |index: usize| [4.0 + (index % 97) as f64 / 97.0, 2.0, 1.0 + (index % 89) as f64 / 89.0];
        let cluster = crate::Cluster::try_new([("a", 300), ("b", 250), ("c", 400)]).unwrap();
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        for index in 0..900 {
            // each of twelve large jobs needs 32 workers of the first type for nearly all of its time
            let large = index % 75 == 7;
            let job = ActiveJob {
                scale_factor: if large { 32 } else { 1 },
                steps_remaining: Steps::new(3600.0 * 0.99 * speeds(index)[0]),
                slo_remaining: Some(Seconds::new(if large { 3600.0 } else { 1e9 })),
                ..ActiveJob::new(JobId::from_index(index))
            };
            builder.job(job, &speeds(index));
        }
        let problem = builder.build().unwrap();
        let soft = ConstraintText::droppable("throughput >= steps_remaining / slo_remaining");
        let mut policy = policy("sum_over_jobs(throughput)", Some(soft));
        let decision = policy.allocate(&problem).unwrap();
        assert_eq!(decision.dropped.len(), 3, "{:?}", decision.solve);
        assert!(decision.objective.unwrap().optimal);
    }

    #[test]
    fn sums_without_a_program_are_as_good_as_those_of_one() {
        let soft = || ConstraintText::droppable("throughput >= steps_remaining / slo_remaining");
        let hard = || ConstraintText::hard("throughput >= 0.1 * equal_share_throughput");
        let by_price = "sum_over_jobs(sum_over_worker_types(throughput_on(type) / price(type)))";
        for (text, constraint) in [
            ("sum_over_jobs(throughput)", None),
            ("sum_over_jobs(weight * throughput / scale_factor)", Some(hard())),
            (by_price, None),
            (by_price, Some(soft())),
        ] {
            for like in [usize::MAX, 3] {
                let problem = problem(900, like);
                let mut policy = policy(text, constraint.clone());
                let decision = policy.allocate(&problem).unwrap();
                let solve = decision.solve.clone().unwrap();
                assert!(solve.fallbacks.is_empty(), "{text}: {:?}", solve.fallbacks);
                assert_eq!(solve.strategy, Strategy::Singles, "{text}: {solve:?}");
                let other = || registry::backend("simplex").unwrap();
                policy.solve_by(vec![other()], vec![other()], Limits::default());
                let written = policy.allocate(&problem).unwrap();
                let steps = [&solve, written.solve.as_ref().unwrap()].map(|solve| solve.iterations);
                assert!(3 * steps[0] < steps[1], "{text}: {steps:?}");
                assert_eq!(decision.dropped, written.dropped, "{text}");
                let droppable = constraint.as_ref().is_some_and(|constraint| constraint.droppable);
                assert_eq!(decision.dropped.len(), if droppable { 18 } else { 0 }, "{text}");
                let values = [&decision.objective, &written.objective].map(|of| of.clone().unwrap());
                assert!(values.iter().all(|objective| objective.optimal), "{text}: {values:?}");
                let near = |a: f64, b: f64, by: f64| (a - b).abs() <= by * a.abs();
                assert!(near(values[0].value, values[1].value, 1e-8), "{text}: {values:?}");
                let worths = [worth(&problem, &decision), worth(&problem, &written)];
                assert!(near(worths[0], worths[1], 1e-5), "{text}, {like}: {worths:?}");
            }
        }
    }
}
