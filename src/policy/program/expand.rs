//! Class time → shares of jobs: the recovery of the class reduction.

use crate::index::{Id, JobIndex};
use crate::policy::program::reduce::Reduced;
use crate::program::Column;
use crate::program::classes::{shares_between, shares_evenly, shares_within};
use crate::workload::Combination;

/// Shares below this are rounding of a solver and become 0 (interior answers keep theirs).
const SHARE_MIN: f64 = 1e-12;

/// The rows of an allocation: every job alone, in order, then pairs that have time, in order.
///
/// `columns` and `time` are the program's columns and their class time. With `keep_all`, no share is rounded,
/// pairs without time are kept, and a class pair's time is divided evenly among all pairs of its jobs.
pub(super) fn expand(
    reduced: &Reduced,
    columns: &[Column],
    time: &[f64],
    keep_all: bool,
) -> Vec<(Combination<JobIndex>, Vec<f64>)> {
    let n_types = reduced.instance.n_types();
    let n_members = reduced.instance.n_members();
    let mut class_time = vec![0.0; reduced.instance.combinations.len() * n_types];
    for (column, time) in columns.iter().zip(time) {
        class_time[column.combination * n_types + column.worker_type] = *time;
    }
    let of = |combination: usize| &class_time[combination * n_types..(combination + 1) * n_types];
    let share = |time: f64, fraction: f64| {
        let share = time * fraction;
        if keep_all || share > SHARE_MIN { share.max(0.0) } else { 0.0 }
    };
    let n_jobs: usize = (0..n_members).map(|class| reduced.classes.members(class).len()).sum();
    let mut rows = Vec::with_capacity(n_jobs);
    for job in 0..n_jobs {
        let class = reduced.classes.class_of(job);
        let fraction = 1.0 / reduced.classes.members(class).len() as f64;
        let shares = of(class).iter().map(|time| share(*time, fraction)).collect();
        rows.push((Combination::single(JobIndex::from_index(job)), shares));
    }
    let mut pairs = Vec::new();
    for (position, (a, b)) in reduced.pairs.iter().enumerate() {
        let time = of(n_members + position);
        if !keep_all && time.iter().all(|time| *time <= SHARE_MIN) {
            continue;
        }
        let (jobs_a, jobs_b) = (reduced.classes.members(*a), reduced.classes.members(*b));
        let pattern = match (keep_all, a == b) {
            (true, same) => shares_evenly(jobs_a.len(), jobs_b.len(), same),
            (false, true) => shares_within(jobs_a.len()),
            (false, false) => shares_between(jobs_a.len(), jobs_b.len()),
        };
        for (first, second, fraction) in pattern {
            let job = |members: &[u32], position: usize| JobIndex::from_index(members[position] as usize);
            let shares: Vec<f64> = time.iter().map(|time| share(*time, fraction)).collect();
            pairs.push((Combination::pair(job(jobs_a, first), job(jobs_b, second)), shares));
        }
    }
    pairs.sort_by_key(|(combination, _)| *combination);
    rows.extend(pairs);
    rows
}
