//! Class time → shares of jobs: the recovery of the class reduction.

use crate::allocation::Rows;
use crate::index::{Id, JobIndex};
use crate::policy::program::reduce::Reduced;
use crate::program::Column;
use crate::program::classes::{shares_between, shares_evenly, shares_within};
use crate::workload::Combination;

/// Shares below this are rounding of a solver and become 0 (interior answers keep theirs).
const SHARE_MIN: f64 = 1e-12;

/// A pair of jobs and its part of its class pair's time.
#[derive(Clone, Copy, Debug)]
struct Shared {
    first: u32,
    second: u32,
    /// Position among the class pairs.
    classes: u32,
    fraction: f64,
}

/// The rows of an allocation: every job alone, in order, then pairs that have time, in order.
///
/// `columns` and `time` are the program's columns and their class time. With `keep_all`, no share is rounded,
/// pairs without time are kept, and a class pair's time is divided evenly among all pairs of its jobs. O(n·K) else:
/// no sorting, and no vector a job.
pub(super) fn expand(reduced: &Reduced, columns: &[Column], time: &[f64], keep_all: bool) -> Rows {
    let n_types = reduced.instance.n_types();
    let n_members = reduced.instance.n_members();
    let mut class_time = vec![0.0; reduced.instance.n_combinations() * n_types];
    for (column, time) in columns.iter().zip(time) {
        class_time[column.combination * n_types + column.worker_type] = *time;
    }
    let of = |combination: usize| &class_time[combination * n_types..(combination + 1) * n_types];
    let share = |time: f64, fraction: f64| {
        let share = time * fraction;
        if keep_all || share > SHARE_MIN { share.max(0.0) } else { 0.0 }
    };
    let with_time = |pair: &usize| keep_all || of(n_members + *pair).iter().any(|time| *time > SHARE_MIN);
    let with_time: Vec<usize> = (0..reduced.pairs.len()).filter(with_time).collect();
    let shared = in_order(reduced, &with_time, keep_all);
    let n_jobs = reduced.classes.n_jobs();
    let n_rows = n_jobs + shared.len();
    let mut rows =
        Rows { combinations: Vec::with_capacity(n_rows), shares: Vec::with_capacity(n_rows * n_types) };
    let alone: Vec<f64> = (0..n_members)
        .flat_map(|class| {
            let fraction = 1.0 / reduced.classes.members(class).len() as f64;
            of(class).iter().map(move |time| share(*time, fraction))
        })
        .collect();
    for job in 0..n_jobs {
        let class = reduced.classes.class_of(job);
        rows.combinations.push(Combination::single(JobIndex::from_index(job)));
        rows.shares.extend_from_slice(&alone[class * n_types..(class + 1) * n_types]);
    }
    for pair in shared {
        let job = |position: u32| JobIndex::from_index(position as usize);
        rows.combinations.push(Combination::pair(job(pair.first), job(pair.second)));
        let time = of(n_members + pair.classes as usize);
        rows.shares.extend(time.iter().map(|time| share(*time, pair.fraction)));
    }
    rows
}

/// The pairs of jobs among which the class pairs divide their time, by first job, then by second. As many first
/// jobs as jobs: counting puts them in order, and few pairs have the same.
fn in_order(reduced: &Reduced, class_pairs: &[usize], evenly: bool) -> Vec<Shared> {
    let mut next = vec![0_usize; reduced.classes.n_jobs() + 1];
    for position in class_pairs {
        divide(reduced, *position, evenly, |pair| next[pair.first as usize + 1] += 1);
    }
    for job in 1..next.len() {
        next[job] += next[job - 1];
    }
    let none = Shared { first: 0, second: 0, classes: 0, fraction: 0.0 };
    let mut ordered = vec![none; next[next.len() - 1]];
    for position in class_pairs {
        divide(reduced, *position, evenly, |pair| {
            let place = &mut next[pair.first as usize];
            ordered[*place] = pair;
            *place += 1;
        });
    }
    for pairs in ordered.chunk_by_mut(|one, other| one.first == other.first) {
        pairs.sort_unstable_by_key(|pair| pair.second);
    }
    ordered
}

/// The pairs of jobs of one class pair: all of them, or as few as will do.
fn divide(reduced: &Reduced, position: usize, evenly: bool, mut each: impl FnMut(Shared)) {
    let (a, b) = reduced.pairs[position];
    let (jobs_a, jobs_b) = (reduced.classes.members(a), reduced.classes.members(b));
    let classes = u32::try_from(position).expect("fewer than 2^32 pairs of classes");
    let share = |(one, other, fraction): (usize, usize, f64)| {
        let (one, other) = (jobs_a[one], jobs_b[other]);
        each(Shared { first: one.min(other), second: one.max(other), classes, fraction });
    };
    if evenly {
        shares_evenly(jobs_a.len(), jobs_b.len(), a == b).into_iter().for_each(share);
    } else if a == b {
        shares_within(jobs_a.len()).for_each(share);
    } else {
        shares_between(jobs_a.len(), jobs_b.len()).for_each(share);
    }
}
