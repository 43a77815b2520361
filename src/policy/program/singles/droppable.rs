//! The relaxation of droppable constraints, and the answer that drops the costliest jobs, by prices of worker types.
//!
//! Meeting a job's droppable constraint counts 1, and at optimal prices it has a cost. Constraints are met in part only
//! where the cost is 1, too; a small linear program moves these to a vertex, with all other jobs fixed. Dropping the
//! jobs with the highest cost makes most room. The relaxation bounds how many jobs must be dropped: if dropping only
//! that many suffices, the answer is optimal.

use super::tie_break::{TieBreak, idle_workers};
use super::{report_search, search, searched_columns, timed};
use crate::decomposition::{self, DroppableKept};
use crate::policy::program::droppable::Relaxation;
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::{GaveUp, Unfit};
use crate::program::{DROPPABLE_SLACK, Goal, Range, Singles};
use crate::solver::certificate::TOLERANCE;

/// Distance from 0 and from 1 above which the part of a droppable constraint that is met counts as partial.
const PART: f64 = 1e-9;
/// The most constraints met in part for which the small program is small.
const PARTLY_MAX: usize = 512;

/// The members with the throughputs that droppable constraints ask for.
struct DroppableDemand<'a> {
    singles: Singles<'a>,
    /// The number of columns of the program that is not written.
    n_columns: usize,
}

/// The members with the throughputs that droppable constraints ask for; an error where the relaxation takes a program.
fn droppable_demand<'a>(
    solver: &SolverContext,
    columns: &'a ProgramColumns<'_>,
) -> Result<DroppableDemand<'a>, Unfit> {
    let n_columns = searched_columns(solver, columns)?;
    let demand = columns.bound().droppable_throughputs().ok_or(Unfit::Constraints)?;
    Ok(DroppableDemand { singles: Singles::new(&columns.reduced().instance, demand), n_columns })
}

/// The relaxation in which some members are `decided`, [members], to have their droppable constraints met or dropped; an
/// error where that takes a program over all members.
pub(in crate::policy::program) fn relaxation(
    solver: &mut SolverContext,
    columns: &ProgramColumns<'_>,
    decided: &[Option<bool>],
) -> Result<Relaxation, GaveUp> {
    let DroppableDemand { mut singles, n_columns } = droppable_demand(solver, columns)?;
    let dropped = |member: &usize| decided[*member] == Some(false);
    let mut uncounted = 0.0;
    for member in (0..decided.len()).filter(dropped) {
        uncounted += singles.instance().multiplicity[member];
        singles.demand[member] = 0.0;
    }
    let due: Vec<bool> = decided.iter().map(|decided| *decided == Some(true)).collect();
    let mut found = most_kept(solver, &singles, &due, n_columns)?;
    move_to_vertex(solver, &singles, &due, &mut found)?;
    for member in (0..decided.len()).filter(dropped) {
        found.part[member] = 0.0;
    }
    let free = |member: &usize| decided[*member].is_none() && singles.demand[*member] > 0.0;
    let mut costliest: Vec<usize> = (0..decided.len()).filter(free).collect();
    costliest.sort_by(|a, b| found.cost[*b].total_cmp(&found.cost[*a]));
    Ok(Relaxation { most: found.bound - uncounted, met: found.part, costliest })
}

/// The certified relaxation in which the droppable constraints of members that are `due`, [members], are met whole.
fn most_kept(
    solver: &mut SolverContext,
    singles: &Singles<'_>,
    due: &[bool],
    n_columns: usize,
) -> Result<DroppableKept, GaveUp> {
    let kept = timed(solver, |solver| decomposition::keep_droppable(singles, due, &solver.limits()))?;
    let counted = kept.part.iter().zip(&singles.instance().multiplicity);
    let counted: f64 = counted.map(|(part, jobs)| part * jobs).sum();
    let gap = kept.bound - counted;
    if gap.is_nan() || gap > TOLERANCE * counted {
        return Err(GaveUp::Unproven);
    }
    let (n, k) = (singles.instance().n_members(), singles.instance().n_types());
    report_search(solver, [n_columns + n, 2 * n + k, 3 * n_columns + n], kept.passes);
    Ok(kept)
}

/// Moves the parts of droppable constraints that are met in part to a vertex, with all other jobs fixed; an error if
/// they are too many.
fn move_to_vertex(
    solver: &mut SolverContext,
    singles: &Singles<'_>,
    due: &[bool],
    found: &mut DroppableKept,
) -> Result<(), GaveUp> {
    let instance = singles.instance();
    let (n, k) = (instance.n_members(), instance.n_types());
    let in_part =
        |member: usize| !due[member] && found.part[member] > PART && found.part[member] < 1.0 - PART;
    let partly: Vec<usize> = (0..n).filter(|member| in_part(*member)).collect();
    if partly.is_empty() {
        return Ok(());
    }
    if partly.len() > PARTLY_MAX {
        return Err(GaveUp::TooManyTied);
    }
    let mut small = TieBreak::new(singles);
    let mut of_members = Vec::with_capacity(partly.len());
    for member in &partly {
        let jobs = instance.multiplicity[*member];
        let whole = Range { lower: 0.0, upper: 1.0 };
        let part = small.program.push_column(whole, whole, jobs);
        let (mut time, mut throughput) = (vec![(part, -(1.0 + DROPPABLE_SLACK) * jobs)], vec![(part, -1.0)]);
        for j in (0..k).filter(|j| singles.runs(*member, *j)) {
            let column = small.push_time(*member, j, 0.0);
            time.push((column, 1.0));
            throughput.push((column, instance.alone(*member)[j] / (jobs * singles.demand[*member])));
        }
        small.program.push_row(Range::at_most(0.0), time);
        small.program.push_row(Range::at_least(0.0), throughput);
        of_members.push(part);
    }
    small.push_capacity(idle_workers(singles, &found.time, |member| !in_part(member)));
    let answer = small.solve(solver)?;
    for (member, part) in partly.iter().zip(of_members) {
        found.part[*member] = answer.solution.columns[part];
    }
    Ok(())
}

/// Drops the costliest jobs until `n_met` constraints remain: the dropped members, [members]; an error if the remaining
/// constraints are not proven to be feasible together.
pub(in crate::policy::program) fn drop_costliest(
    solver: &mut SolverContext,
    columns: &ProgramColumns<'_>,
    decided: &[Option<bool>],
    n_met: f64,
    costliest: &[usize],
) -> Result<Vec<bool>, GaveUp> {
    let mut dropped: Vec<bool> = decided.iter().map(|decided| *decided == Some(false)).collect();
    let mut n_kept = dropped.iter().filter(|dropped| !**dropped).count() as f64;
    let mut costliest = costliest.iter();
    while n_kept > n_met {
        dropped[*costliest.next().ok_or(GaveUp::Unproven)?] = true;
        n_kept -= 1.0;
    }
    let DroppableDemand { mut singles, n_columns } = droppable_demand(solver, columns)?;
    for (demand, dropped) in singles.demand.iter_mut().zip(&dropped) {
        *demand = if *dropped { 0.0 } else { *demand };
    }
    let found = search(solver, &singles, Goal::Level, n_columns)?;
    if found.answer.level >= 1.0 { Ok(dropped) } else { Err(GaveUp::Unproven) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::index::{Id, JobId};
    use crate::policy::Policy;
    use crate::policy::program::tests::options_of;
    use crate::policy::program::{ProgramPolicy, Reason, Strategy, Unfit};
    use crate::problem::{ActiveJob, Problem, ProblemBuilder};
    use crate::program::{ConstraintText, ObjectiveText, Sense};
    use crate::solver::{Limits, registry};
    use crate::units::{Seconds, Steps};

    /// Jobs on three types, each with a droppable constraint. Every `like`th job is the same. The number of workers is in
    /// proportion to `part`.
    fn problem(n_jobs: u32, like: u32, part: u32) -> Problem {
        let workers = |of: u32| (n_jobs * of * part).div_ceil(1000).max(8);
        let types = [("a", workers(5)), ("b", workers(4)), ("c", workers(7))];
        let mut builder = ProblemBuilder::new(Arc::new(crate::Cluster::try_new(types).unwrap()));
        let mut at = 0.0;
        let mut draw = || {
            at += 0.618_033_988_749_894_9_f64;
            at.fract()
        };
        for index in 0..n_jobs {
            let (speed, others, asked) = (1.0 + 9.0 * draw(), [draw(), draw()], draw());
            let alike = index % like == 0;
            let speeds = if alike { [4.0, 2.0, 1.0] } else { [speed, speed * others[0], speed * others[1]] };
            let job = ActiveJob {
                scale_factor: if alike { 2 } else { [1, 1, 2, 8][index as usize % 4] },
                steps_remaining: Steps::new(3600.0 * if alike { 3.0 } else { speed * (0.1 + asked) }),
                slo_remaining: Some(Seconds::new(3600.0)),
                ..ActiveJob::new(JobId::from_index(index as usize))
            };
            builder.job(job, &speeds);
        }
        builder.build().unwrap()
    }

    #[test]
    fn as_few_jobs_are_dropped_without_a_program_as_with_one() {
        let mut text = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(throughput)");
        text.for_each_job = vec![ConstraintText::droppable("throughput >= steps_remaining / slo_remaining")];
        for (like, part) in [(u32::MAX, 5), (u32::MAX, 30), (40, 10), (40, 60)] {
            let problem = problem(800, like, part);
            let mut policy = ProgramPolicy::try_new(options_of(&text)).unwrap();
            let decision = policy.allocate(&problem).unwrap();
            let solve = decision.solve.clone().unwrap();
            assert!(solve.fallbacks.is_empty(), "{like} {part}: {:?}", solve.fallbacks);
            assert_eq!(solve.droppable, Some((Strategy::Singles, Reason::JobsAlone)), "{like} {part}");
            let other = || registry::backend("simplex").unwrap();
            policy.solve_by(vec![other()], vec![other()], Limits::default());
            let written = policy.allocate(&problem).unwrap();
            let by = written.solve.as_ref().unwrap().droppable;
            assert_eq!(by, Some((Strategy::Written, Reason::Unfit(Unfit::Backend))), "{like} {part}");
            assert_eq!(decision.dropped.len(), written.dropped.len(), "{like} {part}");
            assert!(decision.dropped.len() > 80, "{like} {part}: {}", decision.dropped.len());
            let steps = [&solve, written.solve.as_ref().unwrap()].map(|solve| solve.iterations);
            assert!(2 * steps[0] < steps[1], "{like} {part}: {steps:?}");
        }
    }
}
