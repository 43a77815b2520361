//! Promises to members alone on worker types, without a program over all of them.
//!
//! The prices at which the most can be kept in part say what each promise costs. Only those that cost as much as they
//! count are kept in part; one small program puts them at a vertex, with all others where they are. Whoever costs most
//! makes most room when let off: if as many of them as must be let off are enough, nobody can do better.

use super::Relaxed;
use crate::decomposition::SoftConstraintsKept;
use crate::policy::program::master::Master;
use crate::policy::program::solving::{COLUMNS_LARGE, Solving};
use crate::program::{PROMISE_SLACK, Program, Range, Sense, Sharing, Wanted};
use crate::solver::{Basis, BasisStatus};

/// Below 1, or above 0, by this much, a promise is kept in part.
const PART: f64 = 1e-9;
/// So many promises that are kept in part are too many for a small program.
const PARTLY_MAX: usize = 512;

/// Are promises to so many members settled without a program? Those that they were given, if so.
fn promised<'a>(solving: &Solving, master: &'a Master<'_>) -> Option<(Sharing<'a>, usize)> {
    let bound = master.bound();
    let n_columns = bound.columns().len();
    let instance = &master.reduced().instance;
    let alone = instance.pairs.is_empty() && !master.is_priced();
    let fits = alone && n_columns >= COLUMNS_LARGE && solving.shares();
    let demand = if fits { bound.promised()? } else { return None };
    Some((Sharing::new(instance, demand), n_columns))
}

/// The most jobs that can have their promises kept after some choices, found without a program over all members; nothing
/// where that takes one.
pub(super) fn relaxation(
    solving: &mut Solving,
    master: &Master<'_>,
    decided: &[Option<bool>],
) -> Option<Relaxed> {
    let (mut sharing, n_columns) = promised(solving, master)?;
    let let_off = |member: &usize| decided[*member] == Some(false);
    let mut uncounted = 0.0;
    for member in (0..decided.len()).filter(let_off) {
        uncounted += sharing.instance().multiplicity[member];
        sharing.demand[member] = 0.0;
    }
    let due: Vec<bool> = decided.iter().map(|decided| *decided == Some(true)).collect();
    let mut found = solving.keep_promises(&sharing, &due, n_columns)?;
    at_vertex(solving, &sharing, &due, &mut found)?;
    for member in (0..decided.len()).filter(let_off) {
        found.part[member] = 0.0;
    }
    let free = |member: &usize| decided[*member].is_none() && sharing.demand[*member] > 0.0;
    let mut dearest: Vec<usize> = (0..decided.len()).filter(free).collect();
    dearest.sort_by(|a, b| found.cost[*b].total_cmp(&found.cost[*a]));
    Some(Relaxed { most: found.bound - uncounted, kept: found.part, dearest })
}

/// Puts promises that are kept in part at a vertex of what the others leave; nothing if they are too many.
fn at_vertex(
    solving: &mut Solving,
    sharing: &Sharing<'_>,
    due: &[bool],
    found: &mut SoftConstraintsKept,
) -> Option<()> {
    let instance = sharing.instance();
    let (n, k) = (instance.n_members(), instance.n_types());
    let in_part =
        |member: &usize| !due[*member] && found.part[*member] > PART && found.part[*member] < 1.0 - PART;
    let partly: Vec<usize> = (0..n).filter(in_part).collect();
    if partly.is_empty() {
        return Some(());
    }
    if partly.len() > PARTLY_MAX {
        return None;
    }
    let mut left = instance.capacity.clone();
    for (member, time) in found.time.chunks_exact(k).enumerate() {
        if !in_part(&member) {
            for (left, time) in left.iter_mut().zip(time) {
                *left -= instance.scale_factor[member] * time;
            }
        }
    }
    let mut program = Program::new(Sense::Maximize);
    let mut rented = vec![Vec::new(); k];
    let mut of_members = Vec::with_capacity(partly.len());
    for member in &partly {
        let (jobs, size) = (instance.multiplicity[*member], instance.scale_factor[*member]);
        let whole = Range { lower: 0.0, upper: 1.0 };
        let part = program.push_column(whole, whole, jobs);
        let (mut time, mut throughput) = (vec![(part, -(1.0 + PROMISE_SLACK) * jobs)], vec![(part, -1.0)]);
        for j in (0..k).filter(|j| sharing.runs(*member, *j)) {
            let range = Range { lower: 0.0, upper: sharing.most(*member, j) };
            let column = program.push_column(range, range, 0.0);
            time.push((column, 1.0));
            throughput.push((column, instance.alone(*member)[j] / (jobs * sharing.demand[*member])));
            rented[j].push((column, size));
        }
        program.push_row(Range::at_most(0.0), time);
        program.push_row(Range::at_least(0.0), throughput);
        of_members.push(part);
    }
    for (rented, left) in rented.into_iter().zip(left) {
        program.push_row(Range::at_most(left.max(0.0)), rented);
    }
    let basis = Basis {
        columns: vec![BasisStatus::Lower; program.n_columns()],
        rows: vec![BasisStatus::Basic; program.n_rows()],
    };
    let answer = solving.solve_near(&program, Some(basis))?;
    for (member, part) in partly.iter().zip(of_members) {
        found.part[*member] = answer.solution.columns[part];
    }
    Some(())
}

/// Whom to let off so that `kept` members are kept their promises, none of them in part: the dearest, if that is enough.
/// [members]
pub(super) fn few(
    solving: &mut Solving,
    master: &Master<'_>,
    (decided, kept): (&[Option<bool>], f64),
    dearest: &[usize],
) -> Option<Vec<bool>> {
    let mut given_up: Vec<bool> = decided.iter().map(|decided| *decided == Some(false)).collect();
    let mut left = given_up.iter().filter(|given_up| !**given_up).count() as f64;
    let mut dearest = dearest.iter();
    while left > kept {
        given_up[*dearest.next()?] = true;
        left -= 1.0;
    }
    let (mut sharing, n_columns) = promised(solving, master)?;
    for (demand, given_up) in sharing.demand.iter_mut().zip(&given_up) {
        *demand = if *given_up { 0.0 } else { *demand };
    }
    let (shares, _) = solving.share(&sharing, Wanted::Level, n_columns)?;
    (shares.level >= 1.0).then_some(given_up)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::index::{Id, JobId};
    use crate::policy::Policy;
    use crate::policy::program::ProgramPolicy;
    use crate::policy::program::tests::options_of;
    use crate::problem::{ActiveJob, Problem, ProblemBuilder};
    use crate::program::{ConstraintText, ObjectiveText, Sense};
    use crate::solver::{Limits, registry};
    use crate::units::{Seconds, Steps};

    /// Jobs on three types, each with a deadline: every `like`th is like the others of those. There are workers for this part
    /// in a hundred of them.
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
    fn as_few_are_let_off_without_a_program_as_with_one() {
        let mut text = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(throughput)");
        text.for_each_job = vec![ConstraintText::droppable("throughput >= steps_remaining / slo_remaining")];
        for (like, part) in [(u32::MAX, 5), (u32::MAX, 30), (40, 10), (40, 60)] {
            let problem = problem(800, like, part);
            let mut policy = ProgramPolicy::try_new(options_of(&text)).unwrap();
            let decision = policy.allocate(&problem).unwrap();
            let solve = decision.solve.clone().unwrap();
            assert!(solve.fallbacks.is_empty(), "{like} {part}: {:?}", solve.fallbacks);
            let other = || registry::backend("simplex").unwrap();
            policy.solve_by(vec![other()], vec![other()], Limits::default());
            let written = policy.allocate(&problem).unwrap();
            assert_eq!(decision.dropped.len(), written.dropped.len(), "{like} {part}");
            assert!(decision.dropped.len() > 80, "{like} {part}: {}", decision.dropped.len());
            let steps = [&solve, written.solve.as_ref().unwrap()].map(|solve| solve.iterations);
            assert!(2 * steps[0] < steps[1], "{like} {part}: {steps:?}");
        }
    }
}
