//! The definition of the mechanism, in maps.

use std::collections::{BTreeMap, BTreeSet};

use super::{Jobs, id};
use crate::cluster::Cluster;
use crate::index::JobId;
use crate::mechanism::{
    Fillers, MechanismOptions, OverdueJobs, PairStart, Priority, Rules, SlowFillers, Ties, Unallocated,
};
use crate::workload::Combination;

/// A mechanism by definition, in maps; all that can be computed is computed anew.
#[derive(Default)]
pub(super) struct Slow {
    pub(super) received: BTreeMap<(Jobs, usize), f64>,
    pub(super) deficit: BTreeMap<(Jobs, usize), f64>,
    pub(super) total: Vec<f64>,
    pub(super) share: BTreeMap<Jobs, Vec<f64>>,
    pub(super) allocated: BTreeSet<Jobs>,
    pub(super) last_reset: f64,
    /// The sum of each job's shares in the last allocation, and of its shares times its throughputs alone.
    pub(super) allotted: BTreeMap<JobId, (f64, f64)>,
    /// Time allotted to each job between resets while it ran less than half of it, less the time that it has run since.
    pub(super) overdue: BTreeMap<JobId, f64>,
    /// Time that each job has run since the last reset.
    pub(super) run: BTreeMap<JobId, f64>,
}

/// The world of both mechanisms.
pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) options: MechanismOptions,
    pub(super) scale_factor: BTreeMap<JobId, u32>,
    pub(super) throughput: BTreeMap<Jobs, Vec<f64>>,
}

impl World {
    pub(super) fn throughput(&self, jobs: Jobs, worker_type: usize) -> f64 {
        self.throughput.get(&jobs).map_or(0.0, |speeds| speeds[worker_type])
    }

    pub(super) fn runs(&self, jobs: Jobs, worker_type: usize) -> bool {
        self.throughput(jobs, worker_type) > 0.0
    }

    /// Every two active jobs of the same scale factor.
    pub(super) fn pairs(&self) -> Vec<Jobs> {
        let active = |job: JobId| self.scale_factor.contains_key(&job);
        self.throughput.keys().filter(|jobs| jobs.is_pair() && jobs.members().all(active)).copied().collect()
    }
}

impl Slow {
    pub(super) fn open(&mut self, world: &World, jobs: Jobs, (received, deficit): (f64, f64)) {
        for column in 0..world.cluster.n_types() {
            self.received.insert((jobs, column), received);
            self.deficit.insert((jobs, column), deficit);
        }
    }

    /// Opens a pair as if it had been there, uncredited, at the last settlement.
    fn open_late(&mut self, world: &World, pair: Jobs) {
        if !self.received.contains_key(&(pair, 0)) {
            let credit = world.options.initial_credit.get();
            let late = world.options.pair_start == PairStart::Uncredited;
            self.open(world, pair, (credit, if late { credit } else { 0.0 }));
            for total in &mut self.total {
                *total += credit;
            }
        }
    }

    pub(super) fn remove(&mut self, job: JobId) {
        self.received.retain(|(jobs, _), _| !jobs.contains(job));
        self.deficit.retain(|(jobs, _), _| !jobs.contains(job));
        self.share.retain(|jobs, _| !jobs.contains(job));
        self.allocated.retain(|jobs| !jobs.contains(job));
        self.overdue.remove(&job);
        self.run.remove(&job);
        self.allotted.remove(&job);
    }

    /// Counts a job's run on a type: time is weighted by its throughput over its mean throughput by its shares.
    pub(super) fn ran(&mut self, world: &World, (job, kind): (JobId, usize), time: f64) {
        let (share, rate) = self.allotted.get(&job).copied().unwrap_or_default();
        let speed = world.throughput(Combination::single(job), kind);
        let counted = if rate > 0.0 { time * speed * share / rate } else { time };
        let overdue = self.overdue.entry(job).or_default();
        *overdue = (*overdue - counted).max(0.0);
        *self.run.entry(job).or_default() += counted;
    }

    pub(super) fn reset(&mut self, world: &World, now: f64) {
        let credit = world.options.initial_credit.get();
        for job in world.scale_factor.keys() {
            let share = self.allotted.get(job).map_or(0.0, |(share, _)| *share);
            let allotted = share * (now - self.last_reset);
            if self.run.remove(job).unwrap_or(0.0) < allotted / 2.0 {
                *self.overdue.entry(*job).or_default() += allotted;
            }
        }
        self.total = vec![0.0; world.cluster.n_types()];
        for ((jobs, column), received) in &mut self.received {
            let share = self.share.get(jobs).map_or(0.0, |shares| shares[*column]);
            *self.deficit.get_mut(&(*jobs, *column)).unwrap() +=
                share * (now - self.last_reset) - (*received - credit);
            *received = credit;
            self.total[*column] += credit;
        }
        self.last_reset = now;
    }

    pub(super) fn adopt(&mut self, world: &World, rows: &[(Jobs, Vec<f64>)], rules: Rules) {
        self.share = rows.iter().cloned().collect();
        self.allotted.clear();
        for (jobs, shares) in rows {
            for job in jobs.members() {
                let speed = |kind: usize| world.throughput(Combination::single(job), kind);
                let (share, rate) = self.allotted.entry(job).or_default();
                *share += shares.iter().sum::<f64>();
                *rate += shares.iter().enumerate().map(|(kind, share)| share * speed(kind)).sum::<f64>();
            }
        }
        self.allocated = world.scale_factor.keys().map(|job| Combination::single(*job)).collect();
        self.allocated.extend(rows.iter().map(|(jobs, _)| *jobs));
        if rules.pair_fillers && world.options.fillers == Fillers::EveryCombination {
            for pair in world.pairs() {
                self.open_late(world, pair);
            }
        }
        for (jobs, _) in rows {
            self.open_late(world, *jobs);
        }
        if rules.pair_fillers {
            self.allocated.extend(self.received.keys().map(|(jobs, _)| *jobs));
        }
    }

    /// The combinations selected on each type, in order.
    pub(super) fn select(
        &self,
        world: &World,
        rules: Rules,
        up: &[u32],
        order: &[usize],
    ) -> BTreeMap<usize, Vec<Jobs>> {
        let mut taken: BTreeSet<JobId> = BTreeSet::new();
        let mut selected: BTreeMap<usize, Vec<Jobs>> = BTreeMap::new();
        let mut left = up.to_vec();
        for column in order {
            self.select_for((world, rules), *column, &mut left[*column], (&mut taken, &mut selected));
        }
        if rules.by_speed
            && world.options.slow_fillers == SlowFillers::Move
            && self.move_slow(world, order, (&mut left, &mut selected))
        {
            for column in order {
                self.select_for((world, rules), *column, &mut left[*column], (&mut taken, &mut selected));
            }
        }
        selected
    }

    /// Moves fillers, one after the other, to the fastest type that they have a share of and that has workers left, if they are
    /// faster there. Returns whether any moved.
    fn move_slow(
        &self,
        world: &World,
        order: &[usize],
        (left, selected): (&mut [u32], &mut BTreeMap<usize, Vec<Jobs>>),
    ) -> bool {
        let share = |jobs: Jobs, kind: usize| self.share.get(&jobs).map_or(0.0, |shares| shares[kind]);
        let mut has_moved = false;
        for from in order {
            for jobs in selected[from].clone() {
                let needs = world.scale_factor[&jobs.first()];
                let mut best = None;
                for to in order.iter().filter(|to| share(jobs, **to) > 0.0 && left[**to] >= needs) {
                    let speed = world.throughput(jobs, *to);
                    let than =
                        best.map_or(world.throughput(jobs, *from), |best| world.throughput(jobs, best));
                    if speed > than || (best.is_some() && speed >= than) {
                        best = Some(*to);
                    }
                }
                if let (Some(to), true) = (best, share(jobs, *from) == 0.0) {
                    selected.get_mut(from).unwrap().retain(|other| *other != jobs);
                    selected.get_mut(&to).unwrap().push(jobs);
                    left[*from] += needs;
                    left[to] -= needs;
                    has_moved = true;
                }
            }
        }
        has_moved
    }

    /// Selects for one type, from the workers that are left.
    fn select_for(
        &self,
        (world, rules): (&World, Rules),
        column: usize,
        left: &mut u32,
        (taken, selected): (&mut BTreeSet<JobId>, &mut BTreeMap<usize, Vec<Jobs>>),
    ) {
        let mut queue: Vec<Jobs> =
            self.received.keys().filter(|(_, other)| *other == column).map(|(jobs, _)| *jobs).collect();
        queue.sort_by_key(|jobs| match world.options.ties {
            Ties::JobId => (jobs.first(), false, jobs.second().unwrap_or(id(0))),
            Ties::Insertion => (jobs.second().unwrap_or(jobs.first()), jobs.is_pair(), jobs.first()),
        });
        let credit = world.options.initial_credit.get();
        let key = |jobs: &Jobs| {
            let share = self.share.get(jobs).map_or(0.0, |shares| shares[column]);
            let share = if world.runs(*jobs, column) { share } else { 0.0 };
            let received = self.received[&(*jobs, column)];
            let of = |job: JobId| self.overdue.get(&job).copied().unwrap_or(0.0);
            let allotted = jobs.members().map(of).fold(0.0, f64::max);
            let first = world.options.overdue_jobs == OverdueJobs::First;
            let priority = if first && share > 0.0 && allotted >= 4.0 * credit {
                Priority::Overdue { allotted }
            } else {
                Priority::of(share, received, self.total.get(column).copied().unwrap_or(0.0))
            };
            (priority, self.deficit[&(*jobs, column)], share)
        };
        queue.sort_by(|one, other| {
            let (one, other) = (key(one), key(other));
            (one.0.descending(other.0))
                .then(other.1.partial_cmp(&one.1).unwrap())
                .then(other.2.partial_cmp(&one.2).unwrap())
        });
        for jobs in queue {
            let zero = key(&jobs).0 == Priority::Nothing;
            let known = self.allocated.contains(&jobs) || world.options.unallocated == Unallocated::Block;
            let scale_factor = world.scale_factor[&jobs.first()];
            if !world.runs(jobs, column)
                || jobs.members().any(|job| taken.contains(&job))
                || (zero && (rules.skip_zero_priority || !known))
                || scale_factor > *left
            {
                continue;
            }
            *left -= scale_factor;
            taken.extend(jobs.members());
            selected.entry(column).or_default().push(jobs);
        }
        selected.entry(column).or_default();
    }
}
