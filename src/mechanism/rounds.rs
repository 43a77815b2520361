//! The mechanism: its state from round to round, and the steps of one.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::ahead::Ahead;
use super::leases::{GrantedLease, Lease, Leases};
use super::ledger::{Ledger, Slot};
use super::options::{Fillers, LastReset, MechanismOptions, PairStart, Unallocated};
use super::placement::{Free, Workers};
use super::selection::Selection;
use crate::allocation::Allocation;
use crate::cluster::Cluster;
use crate::index::{Id, IndexVec, JobId, JobIndex, WorkerId, WorkerTypeId};
use crate::units::Seconds;
use crate::workload::Combination;

/// The rules that the policy of an allocation sets for the mechanism.
#[expect(
    clippy::struct_excessive_bools,
    reason = "a policy has each of them or not, whatever the others are"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Whether combinations with priority 0 are skipped, and not used as fillers.
    pub skip_zero_priority: bool,
    /// Whether pairs without a share may be fillers.
    pub pair_fillers: bool,
    /// Whether the policy looks at throughputs, so that the mechanism may.
    pub by_speed: bool,
    /// Whether a combination runs no longer than its share of the time that has passed, to half a round: workers may idle beside
    /// waiting jobs, and there are no fillers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within_shares: bool,
}

/// The instants at which the policy is asked again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Resets {
    pub(super) changed: bool,
    pub(super) last: Option<f64>,
    /// The instant at which the policy wants to be asked again in any case, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<f64>,
    /// The beginning of the round that is being assigned, s, if it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) round: Option<f64>,
}

const NO_LEASE: u32 = u32::MAX;

/// The round-based mechanism. See the [module](super) for the order of its steps.
#[derive(Clone, Debug)]
pub struct Mechanism {
    pub(super) options: MechanismOptions,
    pub(super) rules: Rules,
    pub(super) ledger: Ledger,
    pub(super) workers: Workers,
    pub(super) resets: Resets,
    pub(super) current: Leases,
    previous: Leases,
    /// Each slot's lease in the previous round: [slot].
    previous_of: Vec<u32>,
    pub(super) selection: Selection,
    pub(super) free: Free,
    throughput: Vec<f64>,
    /// The number of changes noted so far.
    n_changes: u64,
    /// Time that counts and has not been recorded.
    pub(super) ahead: Vec<Ahead>,
    /// Jobs that rest, with the instants at which they end, s; some may be over.
    pub(super) resting: Vec<(JobId, f64)>,
    /// The beginning of the round, s.
    pub(super) round: f64,
}

impl Mechanism {
    /// A mechanism for these workers, with no jobs yet; a re-computation is due.
    pub fn new(cluster: &Cluster, options: MechanismOptions) -> Self {
        let n_types = cluster.n_types();
        Self {
            options,
            rules: Rules::default(),
            ledger: Ledger::new(n_types, options.ties),
            workers: Workers::new(cluster, options.last_server),
            resets: Resets { changed: true, ..Resets::default() },
            current: Leases::default(),
            previous: Leases::default(),
            previous_of: Vec::new(),
            selection: Selection::new(n_types),
            free: Free::default(),
            throughput: vec![0.0; n_types],
            n_changes: 0,
            ahead: Vec::new(),
            resting: Vec::new(),
            round: 0.0,
        }
    }

    /// The parameters.
    pub fn options(&self) -> &MechanismOptions {
        &self.options
    }

    /// The workers.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Takes a worker away, or gives it back, which counts as a change.
    pub fn set_up(&mut self, worker: WorkerId, up: bool) {
        if self.workers.is_up(worker) != up {
            self.workers.set_up(worker, up);
            self.note_change();
        }
    }

    /// The jobs, by id.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.ledger.jobs()
    }

    /// Whether this job is known.
    pub fn has_job(&self, job: JobId) -> bool {
        self.ledger.has_job(job)
    }

    /// Notes a change in the data that an allocation depends on.
    pub fn note_change(&mut self) {
        self.resets.changed = true;
        self.n_changes += 1;
    }

    /// The number of changes noted so far: an allocation that was decided at a lower number does not know all of them.
    pub fn n_changes(&self) -> u64 {
        self.n_changes
    }

    /// Whether something has changed since the last re-computation.
    pub fn has_changed(&self) -> bool {
        self.resets.changed
    }

    /// Adds a job, which counts as a change. `throughput` is that of a job alone, or of both members of a pair
    /// together, in steps/s; 0 where the combination cannot run.
    ///
    /// # Panics
    /// If the job is known.
    pub fn add_job(
        &mut self,
        job: JobId,
        scale_factor: u32,
        throughput: &dyn Fn(Combination<JobId>, WorkerTypeId) -> f64,
    ) {
        self.note_change();
        self.selection.stale = true;
        let credit = self.options.initial_credit.get();
        self.fill_throughput(Combination::single(job), throughput);
        self.ledger.add_job(job, scale_factor, &self.throughput, credit);
        if self.rules.pair_fillers && self.options.fillers == Fillers::EveryCombination {
            let start = if self.options.pair_start == PairStart::Credited { credit } else { 0.0 };
            let others: Vec<JobId> = self.ledger.jobs().filter(|other| *other != job).collect();
            for other in others {
                self.open_pair(Combination::pair(other, job), throughput, start);
            }
        }
    }

    /// Removes a job, which counts as a change.
    pub fn remove_job(&mut self, job: JobId) {
        self.note_change();
        self.selection.stale = true;
        self.ledger.remove_job(job);
        self.ahead.retain(|ahead| !ahead.combination.contains(job));
        self.resting.retain(|(resting, _)| *resting != job);
    }

    /// Records that a combination held workers of a type for this long, since it was last recorded.
    pub fn record(&mut self, combination: Combination<JobId>, worker_type: WorkerTypeId, time: Seconds) {
        let ahead = self.take_ahead(combination, worker_type);
        self.receive(combination, worker_type, time - Seconds::new(ahead));
    }

    pub(super) fn receive(
        &mut self,
        combination: Combination<JobId>,
        worker_type: WorkerTypeId,
        time: Seconds,
    ) {
        if let Some(slot) = self.ledger.slot(combination) {
            self.add_received(slot, worker_type, time);
        }
    }

    /// Records that the combination of a lease of this round held its workers for this long.
    pub fn record_lease(&mut self, lease: usize, time: Seconds) {
        let Lease { slot, generation, worker_type, .. } = self.current.leases[lease];
        if self.ledger.is_current(slot, generation) {
            self.add_received(slot, worker_type, time);
        }
    }

    fn add_received(&mut self, slot: Slot, worker_type: WorkerTypeId, time: Seconds) {
        self.ledger.receive(slot, worker_type.index(), time.get());
    }

    /// Whether a re-computation is due. It is if something changed and the last reset was long enough ago, or there was none; or if
    /// the instant given to [`ask_again_at`](Self::ask_again_at) has come.
    pub fn due(&self, now: Seconds) -> bool {
        let rested = |last: f64| {
            now.get() - last >= self.options.reset_interval.get()
                || (self.options.last_reset == LastReset::ZeroIsNone && last == 0.0)
        };
        let awaited = self.resets.at.is_some_and(|at| now.get() >= at);
        awaited || (self.resets.changed && self.resets.last.is_none_or(rested))
    }

    /// Makes a re-computation due from an instant on, however recent the last reset; with none, only when something changes. The
    /// next reset forgets the instant.
    pub fn ask_again_at(&mut self, at: Option<Seconds>) {
        self.resets.at = at.map(Seconds::get);
    }

    /// The instant given to [`ask_again_at`](Self::ask_again_at).
    pub fn asks_again_at(&self) -> Option<Seconds> {
        self.resets.at.map(Seconds::new)
    }

    /// The instant of the last reset.
    pub fn last_reset(&self) -> Option<Seconds> {
        self.resets.last.map(Seconds::new)
    }

    /// Forgets the last reset, so that the next change counts at once.
    pub fn forget_reset(&mut self) {
        self.resets.last = None;
    }

    /// Resets the accounts: deficits grow by the time that was owed and not received since the last reset, and the time
    /// received starts again at the initial credit. [`adopt`](Self::adopt) follows.
    pub fn reset(&mut self, now: Seconds) {
        let elapsed = now.get() - self.resets.last.unwrap_or(0.0);
        self.ledger.reset(elapsed, self.options.initial_credit.get());
        self.resets = Resets { last: Some(now.get()), ..Resets::default() };
    }

    /// Replaces the allocation in force. `ids` are the jobs of the new one, in the order of its problem. `throughput` is that of a
    /// combination on a worker type in steps/s, for a pair the sum of both jobs' throughputs; 0 where it cannot run.
    pub fn adopt(
        &mut self,
        allocation: &Allocation,
        ids: &IndexVec<JobIndex, JobId>,
        rules: Rules,
        throughput: &dyn Fn(Combination<JobId>, WorkerTypeId) -> f64,
    ) {
        self.selection.stale = true;
        self.ledger.clear_shares();
        if rules.pair_fillers && !self.rules.pair_fillers && self.options.fillers == Fillers::EveryCombination
        {
            self.open_all_pairs(throughput);
        }
        self.rules = rules;
        let places: IndexVec<JobIndex, Option<u32>> = ids.iter().map(|job| self.ledger.place(*job)).collect();
        for (place, job) in places.iter().zip(ids).filter_map(|(place, job)| Some(((*place)?, job))) {
            let alone = self.ledger.members[place as usize].alone;
            self.ledger.allocate(alone);
            self.fill_throughput(Combination::single(*job), throughput);
            self.ledger.set_throughput(alone, &self.throughput);
        }
        // Rows come by first job: its pairs are looked up once.
        let (mut beside, mut of) = (Vec::new(), None);
        for (row, combination) in allocation.combinations().enumerate() {
            let first = places[combination.first()];
            if combination.is_pair() && of != first {
                self.ledger.slots_beside(first, &mut beside);
                of = first;
            }
            let slot = match combination.second() {
                None => first.map(|place| self.ledger.members[place as usize].alone),
                Some(second) => {
                    places[second].and_then(|place| beside.get(place as usize).copied().flatten())
                }
            };
            let combination = combination.map(|index| ids[index]);
            let slot = match slot {
                Some(slot) => slot,
                None => match self.open_pair(combination, throughput, 0.0) {
                    Some(slot) => {
                        self.ledger.backdate_new_pair(slot, &self.options);
                        slot
                    }
                    None => continue,
                },
            };
            self.ledger.set_shares(slot, allocation.shares().row(row));
        }
        if rules.pair_fillers {
            self.ledger.allocate_all();
        }
    }

    /// Counts every job as having a row in the allocation, until the next is adopted: jobs that came after the last one may fill
    /// workers left free, if the [rules](Rules) have fillers at all.
    pub fn admit_all(&mut self) {
        self.ledger.allocate_jobs();
    }

    fn fill_throughput(
        &mut self,
        combination: Combination<JobId>,
        throughput: &dyn Fn(Combination<JobId>, WorkerTypeId) -> f64,
    ) {
        for (column, speed) in self.throughput.iter_mut().enumerate() {
            *speed = throughput(combination, WorkerTypeId::from_index(column));
        }
    }

    /// Opens the account of a pair, if its jobs are known and need equally many workers.
    fn open_pair(
        &mut self,
        pair: Combination<JobId>,
        throughput: &dyn Fn(Combination<JobId>, WorkerTypeId) -> f64,
        start: f64,
    ) -> Option<Slot> {
        let places = self.ledger.pair_places(pair)?;
        self.fill_throughput(pair, throughput);
        let credit = self.options.initial_credit.get();
        Some(self.ledger.add_pair(pair, places, &self.throughput, (start, credit)))
    }

    fn open_all_pairs(&mut self, throughput: &dyn Fn(Combination<JobId>, WorkerTypeId) -> f64) {
        let jobs: Vec<JobId> = self.ledger.jobs().collect();
        for (position, second) in jobs.iter().enumerate() {
            for first in &jobs[..position] {
                let pair = Combination::pair(*first, *second);
                if self.ledger.slot(pair).is_none()
                    && let Some(slot) = self.open_pair(pair, throughput, 0.0)
                {
                    self.ledger.backdate_new_pair(slot, &self.options);
                }
            }
        }
    }

    /// Begins a round, which is then [assigned](Self::assign).
    pub fn begin_round(&mut self, now: Seconds) {
        self.round = now.get();
        self.resting.retain(|(_, until)| *until > now.get());
    }

    /// Assigns the leases of the next round, types being filled in the order given: selection, then placement.
    pub fn assign(&mut self, order: &[WorkerTypeId]) {
        for lease in &self.previous.leases {
            if let Some(of_slot) = self.previous_of.get_mut(lease.slot as usize) {
                *of_slot = NO_LEASE;
            }
        }
        std::mem::swap(&mut self.previous, &mut self.current);
        self.previous_of.resize(self.ledger.accounts.len(), NO_LEASE);
        for (index, lease) in (0_u32..).zip(&self.previous.leases) {
            if self.ledger.is_current(lease.slot, lease.generation) {
                self.previous_of[lease.slot as usize] = index;
            }
        }
        self.assign_again(order);
    }

    /// Assigns the same round anew, after another allocation was adopted.
    pub fn assign_again(&mut self, order: &[WorkerTypeId]) {
        self.previous_of.resize(self.ledger.accounts.len(), NO_LEASE);
        self.current.clear();
        for lease in &mut self.previous.leases {
            lease.kept = false;
        }
        self.free.start_round(&self.workers);
        self.selection.within_shares = self.within_shares();
        let resting = self.resting_at(self.round);
        let left = |worker_type| self.workers.n_up(worker_type);
        self.selection.select(&mut self.ledger, (&self.options, self.rules), order, (&resting, &left));
        for worker_type in order {
            self.place(*worker_type, true);
        }
    }

    /// Gives the selected combinations of one type their workers, larger scale factors first; at the start of a round their
    /// previous workers, if possible.
    pub(super) fn place(&mut self, worker_type: WorkerTypeId, at_start: bool) {
        let mut chosen = std::mem::take(&mut self.selection.chosen[worker_type.index()]);
        let scale_factor = |slot: Slot| self.ledger.accounts[slot as usize].scale_factor;
        let largest_first = |slot: &Slot| Reverse(scale_factor(*slot));
        if !chosen.is_sorted_by_key(largest_first) {
            chosen.sort_by_key(largest_first);
        }
        self.free.start_type(&self.workers, worker_type);
        let mut unplaced = chosen.as_slice();
        while let Some(largest) = unplaced.first() {
            let largest = self.ledger.accounts[*largest as usize].scale_factor;
            let same = |slot: &Slot| self.ledger.accounts[*slot as usize].scale_factor == largest;
            let (group, smaller) = unplaced.split_at(unplaced.partition_point(same));
            self.place_group(worker_type, group, at_start);
            unplaced = smaller;
        }
        self.selection.chosen[worker_type.index()] = chosen;
    }

    /// Extends the leases that can be extended, then places the others.
    fn place_group(&mut self, worker_type: WorkerTypeId, group: &[Slot], at_start: bool) {
        let first = self.current.leases.len();
        for slot in group.iter().filter(|_| at_start) {
            self.extend_lease(worker_type, *slot);
        }
        let extended = self.current.leases.len();
        let mut next = first;
        for slot in group {
            if next < extended && self.current.leases[next].slot == *slot {
                next += 1;
                continue;
            }
            let account = self.ledger.accounts[*slot as usize];
            if self.options.unallocated == Unallocated::Block && !self.ledger.is_allocated(&account) {
                continue;
            }
            let start = self.current.workers.len();
            let wanted = (worker_type, account.scale_factor);
            self.free.grant(&self.workers, wanted, &self.options, &mut self.current.workers);
            self.push_lease(worker_type, *slot, start, false);
        }
    }

    fn extend_lease(&mut self, worker_type: WorkerTypeId, slot: Slot) {
        let index = self.previous_of[slot as usize];
        if index == NO_LEASE {
            return;
        }
        let lease = self.previous.leases[index as usize];
        let workers = &self.previous.workers[lease.workers.0 as usize..lease.workers.1 as usize];
        let usable = lease.worker_type == worker_type
            && workers.len() == self.ledger.accounts[slot as usize].scale_factor as usize
            && workers.iter().all(|worker| self.free.is_free(&self.workers, *worker));
        if !usable {
            return;
        }
        let start = self.current.workers.len();
        for worker in workers {
            self.free.take(&self.workers, *worker);
            self.current.workers.push(*worker);
        }
        self.push_lease(worker_type, slot, start, true);
    }

    fn push_lease(&mut self, worker_type: WorkerTypeId, slot: Slot, start: usize, extended: bool) {
        let account = &self.ledger.accounts[slot as usize];
        let end = self.current.workers.len();
        let granted = &self.current.workers[start..end];
        if extended {
            self.previous.leases[self.previous_of[slot as usize] as usize].kept = true;
        }
        let position = |index: usize| u32::try_from(index).expect("fewer than 2^32 workers");
        self.current.leases.push(Lease {
            slot,
            generation: account.generation,
            combination: account.combination,
            worker_type,
            workers: (position(start), position(end)),
            n_servers: if end - start == 1 { 1 } else { self.workers.n_servers_of(granted) },
            extended,
            kept: false,
        });
    }

    /// The leases of this round, in the order in which they were granted.
    pub fn leases(&self) -> impl ExactSizeIterator<Item = GrantedLease<'_>> {
        self.current.leases.iter().map(|lease| self.current.granted(lease))
    }

    /// A lease of this round.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn lease(&self, index: usize) -> GrantedLease<'_> {
        self.current.granted(&self.current.leases[index])
    }

    /// The combinations of the previous round that lost their workers although a job of theirs is still here.
    pub fn preempted(&self) -> impl Iterator<Item = GrantedLease<'_>> {
        let lost =
            self.previous.leases.iter().filter(|lease| {
                !lease.kept && lease.combination.members().any(|job| self.ledger.has_job(job))
            });
        lost.map(|lease| self.previous.granted(lease))
    }
}
