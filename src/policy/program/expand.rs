//! Class time → shares of jobs: the recovery of the class reduction.

use crate::allocation::{Allocation, AllocationBuilder, AllocationError, Together};
use crate::index::{Id, JobIndex};
use crate::policy::program::reduce::Reduced;
use crate::problem::Problem;
use crate::program::classes::Division;
use crate::program::{Classes, Column};
use crate::workload::Combination;

/// Shares below this are rounding of a solver and become 0 (interior answers keep theirs).
const SHARE_MIN: f64 = 1e-12;

/// Second jobs of pairs are mostly fewer than so many jobs after the first: both are as far in their classes.
const AHEAD: usize = 16_384;

/// The second job of a pair, and the pair's part of its class pair's time.
#[derive(Clone, Copy, Debug)]
struct Shared {
    second: u32,
    /// Position among the class pairs that have time.
    place: u32,
    fraction: f64,
}

/// The allocation: every job alone, in order, then pairs of jobs that have time, by first job, then by second.
///
/// `columns` and `time` are the program's columns and their class time. With `keep_all`, no share is rounded,
/// pairs without time are kept, and a class pair's time is divided evenly among all pairs of its jobs. O(n·K) else:
/// pairs come in order, and no vector has what the allocation does not keep.
pub(super) fn expand(
    problem: &Problem,
    reduced: &Reduced,
    columns: &[Column],
    time: &[f64],
    keep_all: bool,
) -> Result<Allocation, AllocationError> {
    let (n_types, n_members) = (reduced.instance.n_types(), reduced.instance.n_members());
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
    let n_jobs = reduced.classes.n_jobs();
    let mut pairs = Pairs::of(reduced, &with_time, keep_all);
    let mut builder = AllocationBuilder::new(problem);
    builder.reserve(n_jobs + pairs.n_pairs_max());
    let alone: Vec<f64> = (0..n_members)
        .flat_map(|class| {
            let fraction = 1.0 / reduced.classes.members(class).len() as f64;
            of(class).iter().map(move |time| share(*time, fraction))
        })
        .collect();
    for job in 0..n_jobs {
        let class = reduced.classes.class_of(job);
        let shares = &alone[class * n_types..(class + 1) * n_types];
        builder.push(Combination::single(JobIndex::from_index(job)), shares.iter().copied())?;
    }
    let time_of = |place: usize| of(n_members + with_time[place]);
    let whole = |pair: &ClassPair<'_>| together(&builder, pair.jobs, time_of(pair.place as usize));
    let together: Vec<Option<Together>> =
        pairs.shared.iter().map(|pair| whole(pair).filter(|_| !keep_all)).collect();
    let mut with = Vec::new();
    for first in (0_u32..).take(if with_time.is_empty() { 0 } else { n_jobs }) {
        pairs.of_first(first, &mut with);
        builder.look_at(first as usize + AHEAD);
        let first = JobIndex::from_index(first as usize);
        for Shared { second, place, fraction } in &with {
            let pair = Combination::pair(first, JobIndex::from_index(*second as usize));
            if let Some(together) = &together[*place as usize] {
                builder.push_part(together, pair, *fraction)?;
            } else {
                let time = time_of(*place as usize);
                builder.push(pair, time.iter().map(|time| share(*time, *fraction)))?;
            }
        }
    }
    builder.finish()
}

/// What pairs of these classes' jobs are given parts of; none where a part may be no more than rounding.
fn together(builder: &AllocationBuilder<'_>, jobs: [&[u32]; 2], time: &[f64]) -> Option<Together> {
    let shares: Vec<f64> = time.iter().map(|time| if *time > SHARE_MIN { *time } else { 0.0 }).collect();
    let least = shares.iter().copied().filter(|share| *share > 0.0).fold(f64::INFINITY, f64::min);
    let n_pairs = jobs[0].len() as f64 * jobs[1].len() as f64;
    let jobs = jobs.map(|jobs| JobIndex::from_index(jobs[0] as usize));
    // (no part is smaller than one of all pairs)
    if least / n_pairs > SHARE_MIN { builder.together(jobs, shares) } else { None }
}

/// The pairs of jobs among which class pairs divide their time, first job by first job.
struct Pairs<'a> {
    classes: &'a Classes,
    shared: Vec<ClassPair<'a>>,
    /// The first job of the pair that the division of each of those is at; [`NONE`] if there is none.
    first: Vec<u32>,
    /// Which of those each class is in, by itself or as the other: [classes].
    of_class: Vec<Vec<u32>>,
}

/// A class pair: a place in a division whose pairs come by first job, since both its jobs ascend; or all pairs alike.
struct ClassPair<'a> {
    jobs: [&'a [u32]; 2],
    /// None where all pairs are alike.
    division: Option<Division>,
    /// Position among the class pairs that have time.
    place: u32,
    /// Of the pair that the division is at; where all are alike, of all.
    fraction: f64,
    /// Of the pair that the division is at.
    second: u32,
}

const NONE: u32 = u32::MAX;

impl<'a> Pairs<'a> {
    fn of(reduced: &'a Reduced, class_pairs: &[usize], evenly: bool) -> Self {
        let classes = &reduced.classes;
        let mut of_class = vec![Vec::new(); classes.len()];
        let (mut shared, mut first) = (Vec::with_capacity(class_pairs.len()), Vec::new());
        for (place, position) in (0_u32..).zip(class_pairs) {
            let (a, b) = reduced.pairs[*position];
            of_class[a].push(place);
            if a != b {
                of_class[b].push(place);
            }
            let jobs = [classes.members(a), classes.members(b)];
            let [n_a, n_b] = jobs.map(<[u32]>::len);
            let n_pairs = if a == b { n_a * (n_a - 1) / 2 } else { n_a * n_b };
            let division = if a == b { Division::within(n_a) } else { Division::between(n_a, n_b) };
            let (division, fraction) = ((!evenly).then_some(division), 1.0 / n_pairs as f64);
            let mut pair = ClassPair { jobs, division, place, fraction, second: NONE };
            first.push(pair.advance());
            shared.push(pair);
        }
        Self { classes, shared, first, of_class }
    }

    /// At least as many as there are pairs.
    fn n_pairs_max(&self) -> usize {
        let of = |pair: &ClassPair<'_>| match (&pair.division, pair.jobs.map(<[u32]>::len)) {
            (Some(_), [a, b]) => a + b,
            (None, [a, b]) => a * b,
        };
        self.shared.iter().map(of).sum()
    }

    /// The pairs whose first job is this one, by their second; to be asked of every job, in order.
    fn of_first(&mut self, job: u32, with: &mut Vec<Shared>) {
        with.clear();
        for place in &self.of_class[self.classes.class_of(job as usize)] {
            let place = *place as usize;
            if self.shared[place].division.is_none() {
                self.shared[place].all_of_first(job, with);
            }
            while self.first[place] == job {
                let pair = &mut self.shared[place];
                with.push(pair.with(pair.second));
                self.first[place] = pair.advance();
            }
        }
        if with.len() > 1 {
            with.sort_unstable_by_key(|pair| pair.second);
        }
    }
}

impl ClassPair<'_> {
    /// Goes on to the next pair of the division: its first job.
    fn advance(&mut self) -> u32 {
        let [of_a, of_b] = self.jobs;
        let Some((a, b, fraction)) = self.division.as_mut().and_then(Iterator::next) else { return NONE };
        let (one, other) = (of_a[a], of_b[b]);
        (self.second, self.fraction) = (one.max(other), fraction);
        one.min(other)
    }

    fn with(&self, second: u32) -> Shared {
        Shared { second, place: self.place, fraction: self.fraction }
    }

    /// Every pair of two jobs of the classes with this one as the first.
    fn all_of_first(&self, job: u32, with: &mut Vec<Shared>) {
        let [of_a, of_b] = self.jobs;
        let others = if of_a.binary_search(&job).is_ok() { of_b } else { of_a };
        let later = &others[others.partition_point(|other| *other <= job)..];
        with.extend(later.iter().map(|second| self.with(*second)));
    }
}
