//! A slow, obvious mechanism beside the real one.

mod by_hand;
mod slow;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::allocation::Allocation;
use crate::cluster::Cluster;
use crate::index::{Id, IndexVec, JobId, JobIndex, WorkerId, WorkerTypeId};
use crate::problem::{ActiveJob, Colocation, Problem, ProblemBuilder};
use crate::units::Seconds;
use crate::workload::Combination;
use crate::workload::random::{SeedStreams, Stream};
use slow::{Slow, World};

type Jobs = Combination<JobId>;

fn id<I: Id>(index: usize) -> I {
    I::from_index(index)
}

/// A random history in which both mechanisms must agree after every round.
struct History {
    world: World,
    slow: Slow,
    fast: Mechanism,
    draws: Stream,
    problem: Option<Problem>,
    pair_fillers: bool,
    next_job: usize,
    now: f64,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut draws = SeedStreams::new(seed).stream("history");
        let gavel = draws.below(2) == 1;
        let mut options = if gavel { MechanismOptions::gavel() } else { MechanismOptions::corrected() };
        if draws.below(2) == 1 {
            options.slow_fillers = if gavel { SlowFillers::Move } else { SlowFillers::Stay };
        }
        if draws.below(2) == 1 {
            options.overdue_jobs = if gavel { OverdueJobs::First } else { OverdueJobs::Wait };
        }
        let mut cluster = Cluster::try_new((0..3).map(|kind| (format!("t{kind}"), 4))).unwrap();
        for kind in 0..3 {
            let per_server = u32::try_from([1, 2, 4][draws.below(3)]).unwrap();
            cluster = cluster.with_workers_per_server(&format!("t{kind}"), per_server).unwrap();
        }
        let fast = Mechanism::new(&cluster, options);
        let world = World { cluster, options, scale_factor: BTreeMap::new(), throughput: BTreeMap::new() };
        let pair_fillers = draws.below(2) == 1;
        Self { world, slow: Slow::default(), fast, draws, problem: None, pair_fillers, next_job: 0, now: 0.0 }
    }

    fn arrive(&mut self) {
        let job: JobId = id(self.next_job);
        self.next_job += 1;
        let scale_factor = u32::try_from([1, 1, 1, 2, 4][self.draws.below(5)]).unwrap();
        let mut speeds: Vec<f64> = (0..3).map(|_| self.draws.below(4) as f64).collect();
        speeds[0] = speeds[0].max(1.0);
        for (other, known) in &self.world.scale_factor {
            if *known == scale_factor {
                let pair = Combination::pair(*other, job);
                self.world.throughput.insert(pair, (0..3).map(|_| self.draws.below(3) as f64).collect());
            }
        }
        self.world.scale_factor.insert(job, scale_factor);
        self.world.throughput.insert(Combination::single(job), speeds);
        let credit = self.world.options.initial_credit.get();
        self.slow.open(&self.world, Combination::single(job), (credit, 0.0));
        if self.fast.rules.pair_fillers && self.world.options.fillers == Fillers::EveryCombination {
            let start = if self.world.options.pair_start == PairStart::Credited { credit } else { 0.0 };
            for pair in self.world.pairs().into_iter().filter(|pair| pair.contains(job)) {
                self.slow.open(&self.world, pair, (start, 0.0));
            }
        }
        let world = &self.world;
        self.fast.add_job(job, scale_factor, &|jobs, kind| world.throughput(jobs, kind.index()));
    }

    fn leave(&mut self) {
        let jobs: Vec<JobId> = self.world.scale_factor.keys().copied().collect();
        if jobs.is_empty() {
            return;
        }
        let gone = *self.draws.choice(&jobs);
        self.world.scale_factor.remove(&gone);
        self.slow.remove(gone);
        self.fast.remove_job(gone);
    }

    /// A random point of the allocation polytope.
    fn allocate(&mut self) -> Vec<(Jobs, Vec<f64>)> {
        let jobs: Vec<JobId> = self.world.scale_factor.keys().copied().collect();
        let mut rows: Vec<(Jobs, Vec<f64>)> = Vec::new();
        let singles = jobs.iter().map(|job| Combination::single(*job));
        for combination in singles.chain(self.world.pairs()) {
            if self.draws.below(3) == 0 {
                continue;
            }
            let share = |kind: usize, draws: &mut Stream| {
                let possible = !combination.is_pair() || self.world.runs(combination, kind);
                // Few values, so that ties happen.
                if possible { [0.0, 0.0, 0.25, 0.5, 1.0][draws.below(5)] } else { 0.0 }
            };
            rows.push((combination, (0..3).map(|kind| share(kind, &mut self.draws)).collect()));
        }
        let mut worst: f64 = 1.0;
        for job in &jobs {
            let of_job = rows.iter().filter(|(combination, _)| combination.contains(*job));
            worst = worst.max(of_job.map(|(_, shares)| shares.iter().sum::<f64>()).sum());
        }
        for kind in 0..3 {
            let used = |(combination, shares): &(Jobs, Vec<f64>)| {
                f64::from(self.world.scale_factor[&combination.first()]) * shares[kind]
            };
            worst = worst.max(rows.iter().map(used).sum::<f64>() / 4.0);
        }
        for (_, shares) in &mut rows {
            for share in shares.iter_mut() {
                *share /= worst;
            }
        }
        rows
    }

    fn problem(&self) -> Problem {
        let mut builder = ProblemBuilder::new(Arc::new(self.world.cluster.clone()));
        let mut pairs = BTreeMap::new();
        let index = |job: JobId| -> JobIndex {
            id(self.world.scale_factor.keys().position(|other| *other == job).unwrap())
        };
        for (job, scale_factor) in &self.world.scale_factor {
            let speed = |kind| self.world.throughput(Combination::single(*job), kind);
            let active = ActiveJob { scale_factor: *scale_factor, ..ActiveJob::new(*job) };
            builder.job(active, &[speed(0), speed(1), speed(2)]);
        }
        for (jobs, speeds) in &self.world.throughput {
            if jobs.is_pair() && jobs.members().all(|job| self.world.scale_factor.contains_key(&job)) {
                let speeds = speeds.iter().map(|speed| [speed / 2.0; 2]).collect();
                pairs.insert(jobs.map(index), speeds);
            }
        }
        builder.colocation(Colocation::Pairs(pairs));
        builder.build().unwrap()
    }

    fn recompute(&mut self, rules: Rules) {
        let rows = self.allocate();
        let problem = self.problem();
        let ids: IndexVec<JobIndex, JobId> = problem.jobs().iter().map(|job| job.id).collect();
        let index = |job: JobId| -> JobIndex { id(ids.iter().position(|other| *other == job).unwrap()) };
        let by_index = rows.iter().map(|(jobs, shares)| (jobs.map(index), shares.clone()));
        let allocation = Allocation::check(&problem, by_index).unwrap();
        self.slow.reset(&self.world, self.now);
        self.slow.adopt(&self.world, &rows, rules);
        self.fast.reset(Seconds::new(self.now));
        let world = &self.world;
        self.fast.adopt(&allocation, &ids, rules, &|jobs, kind| world.throughput(jobs, kind.index()));
        self.problem = Some(problem);
    }

    fn round(&mut self) {
        for _ in 0..self.draws.below(3) {
            self.arrive();
        }
        if self.draws.below(4) == 0 {
            self.leave();
        }
        let worker = id::<WorkerId>(self.draws.below(12));
        if self.draws.below(8) == 0 {
            self.fast.set_up(worker, false);
        } else {
            self.fast.set_up(worker, true);
        }
        let by_speed = self.draws.below(3) > 0;
        let skip_zero_priority = self.draws.below(3) == 0;
        let rules =
            Rules { skip_zero_priority, pair_fillers: self.pair_fillers, by_speed, ..Rules::default() };
        if self.fast.due(Seconds::new(self.now)) {
            self.recompute(rules);
        }
        let mut order: Vec<usize> = (0..3).collect();
        self.draws.shuffle(&mut order);
        let before: BTreeMap<Jobs, (usize, Vec<WorkerId>)> = self
            .fast
            .leases()
            .map(|lease| (lease.combination, (lease.worker_type.index(), lease.workers.to_vec())))
            .collect();
        let up: Vec<u32> = (0..3).map(|kind| self.fast.workers().n_up(id(kind))).collect();
        let selected = self.slow.select(&self.world, self.fast.rules, &up, &order);
        let order: Vec<WorkerTypeId> = order.into_iter().map(id).collect();
        self.fast.assign(&order);
        self.check(&selected, &before);
        let n_leases = self.fast.leases().len();
        for index in 0..n_leases {
            let time = [359.0, 360.0, 17.5][self.draws.below(3)];
            let (jobs, kind) =
                (self.fast.lease(index).combination, self.fast.lease(index).worker_type.index());
            self.fast.record_lease(index, Seconds::new(time));
            *self.slow.received.get_mut(&(jobs, kind)).unwrap() += time;
            for job in jobs.members() {
                self.slow.ran(&self.world, (job, kind), time);
            }
            if let Some(total) = self.slow.total.get_mut(kind) {
                *total += time;
            }
        }
        self.now += 360.0;
    }

    /// Leases are the selected combinations; they are extended if possible, else on as few servers as possible.
    fn check(&self, selected: &BTreeMap<usize, Vec<Jobs>>, before: &BTreeMap<Jobs, (usize, Vec<WorkerId>)>) {
        let blocked = |jobs: &Jobs, kind: usize| {
            self.world.options.unallocated == Unallocated::Block
                && !self.slow.allocated.contains(jobs)
                && before.get(jobs).is_none_or(|(old, _)| *old != kind)
        };
        let mut granted: BTreeSet<WorkerId> = BTreeSet::new();
        for kind in 0..3 {
            let of_type: Vec<GrantedLease<'_>> =
                self.fast.leases().filter(|lease| lease.worker_type.index() == kind).collect();
            let found: BTreeSet<Jobs> = of_type.iter().map(|lease| lease.combination).collect();
            let placed = selected[&kind].iter().filter(|jobs| !blocked(jobs, kind)).copied();
            let expected: BTreeSet<Jobs> = placed.collect();
            // An unallocated combination with an earlier lease keeps it, or has nothing.
            let kept = |jobs: &Jobs| !self.slow.allocated.contains(jobs);
            assert!(found.difference(&expected).next().is_none(), "{found:?} beyond {expected:?}");
            assert!(expected.difference(&found).all(kept), "{expected:?} beyond {found:?}");
            let mut scale_factors: Vec<u32> = Vec::new();
            for lease in of_type {
                let workers = self.fast.workers();
                let scale_factor = self.world.scale_factor[&lease.combination.first()];
                assert_eq!(lease.workers.len(), scale_factor as usize);
                let free = |worker: &WorkerId| workers.is_up(*worker) && !granted.contains(worker);
                assert!(lease.workers.iter().all(|worker| {
                    free(worker) && workers.worker_type(*worker) == Some(lease.worker_type)
                }));
                let old = before.get(&lease.combination).filter(|(old, _)| *old == kind);
                let could_keep = old.is_some_and(|(_, old)| old.iter().all(free));
                assert_eq!(lease.extended, could_keep, "{:?}", lease.combination);
                if !lease.extended && self.world.options.gangs == Gangs::FewestServers {
                    let mut on_server: BTreeMap<_, usize> = BTreeMap::new();
                    for worker in workers.of_type(lease.worker_type).filter(free) {
                        *on_server.entry(workers.server(worker)).or_default() += 1;
                    }
                    let mut most: Vec<usize> = on_server.into_values().collect();
                    most.sort_by_key(|free| Reverse(*free));
                    let mut left = lease.workers.len();
                    let least = most.iter().take_while(|free| {
                        let needed = left > 0;
                        left = left.saturating_sub(**free);
                        needed
                    });
                    assert_eq!(lease.n_servers as usize, least.count());
                }
                granted.extend(lease.workers);
                scale_factors.push(scale_factor);
            }
            assert!(scale_factors.is_sorted_by_key(|scale_factor| Reverse(*scale_factor)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_fast_mechanism_is_the_obvious_one(seed in any::<u64>()) {
        let mut history = History::new(seed);
        for _ in 0..25 {
            history.round();
        }
    }

    #[test]
    fn a_restored_mechanism_goes_on_the_same(seed in any::<u64>()) {
        let mut history = History::new(seed);
        for _ in 0..12 {
            history.round();
        }
        let state = history.fast.state();
        let text = serde_json::to_string(&state).unwrap();
        let read: MechanismState = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&read, &state);
        let mut restored = Mechanism::restore(&history.world.cluster, history.world.options, &read).unwrap();
        let order = [id(2), id(0), id(1)];
        restored.assign(&order);
        history.fast.assign(&order);
        let leases = |mechanism: &Mechanism| {
            let owned = mechanism.leases().map(|lease| {
                (lease.combination, lease.worker_type, lease.workers.to_vec(), lease.extended)
            });
            owned.collect::<Vec<_>>()
        };
        prop_assert_eq!(leases(&restored), leases(&history.fast));
        prop_assert_eq!(restored.state(), history.fast.state());
    }
}
