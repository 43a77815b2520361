//! Shares of jobs from the time of their classes: the inverse of the class reduction.

use std::ops::Range;

use crate::allocation::{Allocation, AllocationBuilder, AllocationError, Together};
use crate::index::{Id, JobIndex};
use crate::policy::program::reduce::Reduced;
use crate::problem::Problem;
use crate::program::Column;
use crate::program::classes::{DividedPair, Division};
use crate::workload::Combination;

/// The number of first jobs with pairs that are sorted at a time, so that the pairs stay in caches. It is small in
/// tests, so that they have several such blocks.
const BLOCK: usize = if cfg!(test) { 16 } else { 4096 };

/// The number of jobs by which the prefetching of second jobs is ahead: a second job mostly follows its first by
/// fewer jobs, as both are equally far in their classes.
const AHEAD: usize = 16_384;

/// A pair of jobs, and its fraction of its class pair's time.
#[derive(Clone, Copy, Debug, Default)]
struct JobPair {
    first: u32,
    second: u32,
    /// Position among the class pairs that have time.
    place: u32,
    fraction: f64,
}

/// The allocation: every job alone, in order, then pairs of jobs that have time, by first job, then by second.
///
/// `columns` and `time` are the program's columns and their class time; shares up to `rounding` become 0. If there is none, no
/// share is rounded, pairs without time are kept, and a class pair's time is divided evenly among all pairs of its jobs.
/// With a rounding it takes O(n·K) time: pairs are pushed in order, and nothing is held that the allocation does not keep.
pub(super) fn expand(
    problem: &Problem,
    reduced: &Reduced,
    columns: &[Column],
    time: &[f64],
    rounding: Option<f64>,
) -> Result<Allocation, AllocationError> {
    let (keep_all, least) = (rounding.is_none(), rounding.unwrap_or_default());
    let (n_types, n_members) = (reduced.instance.n_types(), reduced.instance.n_members());
    let mut class_time = vec![0.0; reduced.instance.n_combinations() * n_types];
    for (column, time) in columns.iter().zip(time) {
        class_time[column.combination * n_types + column.worker_type] = *time;
    }
    let of = |combination: usize| &class_time[combination * n_types..(combination + 1) * n_types];
    let share = |time: f64, fraction: f64| {
        let share = time * fraction;
        if keep_all || share > least { share.max(0.0) } else { 0.0 }
    };
    let with_time = |pair: &usize| keep_all || of(n_members + *pair).iter().any(|time| *time > least);
    let with_time: Vec<usize> = (0..reduced.pairs.len()).filter(with_time).collect();
    let n_jobs = reduced.classes.n_jobs();
    let mut pairs = Pairs::of(reduced, &with_time, keep_all);
    let mut builder = AllocationBuilder::new(problem);
    let alone: Vec<f64> = (0..n_members)
        .flat_map(|class| {
            let fraction = 1.0 / reduced.classes.members(class).len() as f64;
            of(class).iter().map(move |time| share(*time, fraction))
        })
        .collect();
    builder.push_all_alone(reduced.classes.of_jobs(), alone, pairs.n_pairs_max())?;
    let time_of = |place: u32| of(n_members + with_time[place as usize]);
    let whole = |pair: &ClassPair<'_>| together(&builder, pair.jobs, time_of(pair.place), least);
    let together: Vec<Option<Together>> =
        pairs.of_classes.iter().map(|pair| whole(pair).filter(|_| !keep_all)).collect();
    for begin in (0..if with_time.is_empty() { 0 } else { n_jobs }).step_by(BLOCK) {
        let end = n_jobs.min(begin + BLOCK);
        builder.prefetch(begin + AHEAD..end + AHEAD);
        for JobPair { first, second, place, fraction } in pairs.pairs_of(begin..end) {
            let [first, second] = [*first, *second].map(|job| JobIndex::from_index(job as usize));
            let pair = Combination::pair(first, second);
            if let Some(together) = &together[*place as usize] {
                builder.push_part(together, pair, *fraction)?;
            } else {
                builder.push(pair, time_of(*place).iter().map(|time| share(*time, *fraction)))?;
            }
        }
    }
    builder.finish()
}

/// The time of a class pair, of which pairs of its jobs are given parts; none where a part may be no more than
/// rounding.
fn together(
    builder: &AllocationBuilder<'_>,
    jobs: [&[u32]; 2],
    time: &[f64],
    rounding: f64,
) -> Option<Together> {
    let shares: Vec<f64> = time.iter().map(|time| if *time > rounding { *time } else { 0.0 }).collect();
    let least = shares.iter().copied().filter(|share| *share > 0.0).fold(f64::INFINITY, f64::min);
    let n_pairs = jobs[0].len() as f64 * jobs[1].len() as f64;
    let jobs = jobs.map(|jobs| JobIndex::from_index(jobs[0] as usize));
    // No part is smaller than one of all pairs.
    if least / n_pairs > rounding { builder.together(jobs, shares) } else { None }
}

/// The pairs of jobs among which class pairs divide their time, first job by first job.
struct Pairs<'a> {
    of_classes: Vec<ClassPair<'a>>,
    /// Pairs of the first jobs asked for, class pair by class pair.
    found: Vec<JobPair>,
    /// Pairs of the first jobs asked for, by first job, then by second.
    in_order: Vec<JobPair>,
    /// The ends of the pairs of each of those jobs in `in_order`.
    ends: Vec<u32>,
}

/// A pair of classes, and how its time is handed to pairs of jobs: by a division, in the order of first jobs, or the same
/// part to every pair.
struct ClassPair<'a> {
    jobs: [&'a [u32]; 2],
    /// Division of the class pair's time; none where all pairs are alike.
    division: Option<Division>,
    /// Position among the class pairs that have time.
    place: u32,
    /// The part of the class pair's time that every pair has, where all are alike.
    fraction: f64,
    /// The pair that the division is at; none at its end.
    next: Option<JobPair>,
}

impl<'a> Pairs<'a> {
    fn of(reduced: &'a Reduced, of_classes: &[usize], evenly: bool) -> Self {
        let of = |(place, position): (u32, &usize)| {
            let (a, b) = reduced.pairs[*position];
            let jobs = [reduced.classes.members(a), reduced.classes.members(b)];
            let [n_a, n_b] = jobs.map(<[u32]>::len);
            let n_pairs = if a == b { n_a * (n_a - 1) / 2 } else { n_a * n_b };
            let division = if a == b { Division::within(n_a) } else { Division::between(n_a, n_b) };
            let (division, fraction) = ((!evenly).then_some(division), 1.0 / n_pairs as f64);
            let mut pair = ClassPair { jobs, division, place, fraction, next: None };
            pair.next = pair.advance();
            pair
        };
        let of_classes = (0..).zip(of_classes).map(of).collect();
        Self { of_classes, found: Vec::new(), in_order: Vec::new(), ends: Vec::new() }
    }

    /// An upper bound on the number of pairs.
    fn n_pairs_max(&self) -> usize {
        let of = |pair: &ClassPair<'_>| match (&pair.division, pair.jobs.map(<[u32]>::len)) {
            (Some(_), [a, b]) => a + b,
            (None, [a, b]) => a * b,
        };
        self.of_classes.iter().map(of).sum()
    }

    /// The pairs of these first jobs, by first job, then by second. Calls must go through all jobs in order. Counting
    /// by first job leaves few pairs to sort.
    fn pairs_of(&mut self, jobs: Range<usize>) -> &[JobPair] {
        self.found.clear();
        for pair in &mut self.of_classes {
            pair.push_divided(jobs.clone(), &mut self.found);
        }
        self.ends.clear();
        self.ends.resize(jobs.len(), 0);
        for pair in &self.found {
            self.ends[pair.first as usize - jobs.start] += 1;
        }
        let mut sum = 0;
        for place in &mut self.ends {
            // The beginning of the job's pairs, which becomes their end as they are put in their places.
            (*place, sum) = (sum, sum + *place);
        }
        self.in_order.clear();
        self.in_order.resize(self.found.len(), JobPair::default());
        for pair in &self.found {
            let place = &mut self.ends[pair.first as usize - jobs.start];
            self.in_order[*place as usize] = *pair;
            *place += 1;
        }
        let mut begin = 0;
        for end in &self.ends {
            let end = *end as usize;
            if end > begin + 1 {
                self.in_order[begin..end].sort_unstable_by_key(|pair| pair.second);
            }
            begin = end;
        }
        &self.in_order
    }
}

impl ClassPair<'_> {
    /// The next pair of the division.
    #[inline]
    fn advance(&mut self) -> Option<JobPair> {
        let DividedPair { a, b, fraction } = self.division.as_mut()?.next()?;
        let (one, other) = (self.jobs[0][a], self.jobs[1][b]);
        Some(JobPair { first: one.min(other), second: one.max(other), place: self.place, fraction })
    }

    /// Adds the pairs with a first job in this range, which follows the range of the call before.
    fn push_divided(&mut self, jobs: Range<usize>, found: &mut Vec<JobPair>) {
        if self.division.is_none() {
            self.push_all(jobs, found);
            return;
        }
        let mut next = self.next;
        while let Some(pair) = next.filter(|pair| (pair.first as usize) < jobs.end) {
            found.push(pair);
            next = self.advance();
        }
        self.next = next;
    }

    /// Adds every pair of two jobs of the classes with a first job in this range.
    fn push_all(&self, jobs: Range<usize>, found: &mut Vec<JobPair>) {
        let [of_a, of_b] = self.jobs;
        let mut add = |of: &[u32], others: &[u32]| {
            for first in &of[of.partition_point(|job| (*job as usize) < jobs.start)
                ..of.partition_point(|job| (*job as usize) < jobs.end)]
            {
                let later = &others[others.partition_point(|other| other <= first)..];
                let with = |second: &u32| JobPair {
                    first: *first,
                    second: *second,
                    place: self.place,
                    fraction: self.fraction,
                };
                found.extend(later.iter().map(with));
            }
        };
        add(of_a, of_b);
        // Classes are the same or have no job in common.
        if of_a.first() != of_b.first() {
            add(of_b, of_a);
        }
    }
}
