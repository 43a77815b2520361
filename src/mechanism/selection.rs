//! The selection of combinations for the next round: greedily, type by type, the most urgent first, without
//! backtracking.

use std::cmp::Ordering;

use super::key_order::KeyOrder;
use super::ledger::{Ledger, Slot};
use super::options::{MechanismOptions, SlowFillers, Unallocated};
use super::priority::{Priority, descending};
use super::rounds::Rules;
use crate::index::{Id, WorkerTypeId};

/// Half the least number of entries that are sorted at once.
const CHUNK_MIN: usize = 4;

/// A combination that wants a worker type; the least is selected first.
#[derive(Clone, Copy, Debug)]
struct Entry {
    urgency: u64,
    deficit: f64,
    share: f64,
    /// The place of the combination in the order that breaks ties.
    position: u32,
    slot: Slot,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.urgency.cmp(&self.urgency))
            .then_with(|| descending(self.deficit, other.deficit))
            .then_with(|| descending(self.share, other.share))
            .then_with(|| self.position.cmp(&other.position))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

/// A combination with a share of a worker type on which it can run.
#[derive(Clone, Copy, Debug)]
struct Sharing {
    position: u32,
    slot: Slot,
    members: [u32; 2],
    share: f64,
}

/// The rule that no combination runs longer than its share of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WithinShares {
    /// Time since the last reset, s.
    pub(super) elapsed: f64,
    /// Time that counts as received at a reset, s: half a round.
    pub(super) credit: f64,
}

impl WithinShares {
    /// The time that a combination still lacks until it is owed half a round by the end of this one, s.
    fn lacks(self, ledger: &Ledger, cell: usize) -> f64 {
        let (share, received) = (ledger.share[cell], ledger.received[cell] - self.credit);
        let owed = ledger.deficit[cell] + share * self.elapsed - received;
        self.credit - owed - share * 2.0 * self.credit
    }

    /// Whether a combination is nearer to its share at the end of this round if it runs in it than if it does not.
    fn is_due(self, ledger: &Ledger, cell: usize) -> bool {
        self.lacks(ledger, cell) <= self.credit * 1e-9
    }

    /// The time until a combination is due, s; none if it is due now.
    pub(super) fn due_in(self, ledger: &Ledger, cell: usize) -> Option<f64> {
        (!self.is_due(ledger, cell)).then(|| self.lacks(ledger, cell) / ledger.share[cell])
    }
}

/// The selection of a round, with its buffers.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// Combinations with a share that can run on the type: [type].
    sharing: Vec<Vec<Sharing>>,
    /// The combinations selected, in order: [type].
    pub(super) chosen: Vec<Vec<Slot>>,
    /// Workers that the selection left: [type].
    pub(super) left: Vec<u32>,
    /// Each account's place in the order that breaks ties: [slot].
    positions: Vec<u32>,
    entries: Vec<Entry>,
    order: KeyOrder,
    stamp: u64,
    n_taken: usize,
    /// Whether `sharing` is out of date.
    pub(super) stale: bool,
    /// Whether jobs that came after the last allocation may be fillers.
    pub(super) admits_arrivals: bool,
    /// The limits of combinations that may not exceed their share of the time; none if shares are no limit.
    pub(super) within_shares: Option<WithinShares>,
}

impl Selection {
    pub(super) fn new(n_types: usize) -> Self {
        Self {
            sharing: vec![Vec::new(); n_types],
            chosen: vec![Vec::new(); n_types],
            left: vec![0; n_types],
            positions: Vec::new(),
            entries: Vec::new(),
            order: KeyOrder::default(),
            stamp: 0,
            n_taken: 0,
            stale: true,
            admits_arrivals: false,
            within_shares: None,
        }
    }

    /// Whether the job at this place among the ledger's members was selected.
    pub(super) fn has_taken(&self, ledger: &Ledger, place: u32) -> bool {
        ledger.taken[place as usize] == self.stamp
    }

    /// Selects for every type in the order given. The jobs at the places `others` get nothing here, as they hold workers already or
    /// rest. `left` answers the number of workers of a type that are left.
    pub(super) fn select(
        &mut self,
        ledger: &mut Ledger,
        (options, rules): (&MechanismOptions, Rules),
        order: &[WorkerTypeId],
        (others, left): (&[u32], &dyn Fn(WorkerTypeId) -> u32),
    ) {
        if self.stale {
            self.refresh(ledger);
        }
        self.stamp += 1;
        self.n_taken = others.len();
        for place in others {
            ledger.taken[*place as usize] = self.stamp;
        }
        for worker_type in order {
            self.left[worker_type.index()] = left(*worker_type);
        }
        self.select_for_all(ledger, (options, rules), order);
    }

    /// Selects for every type that has workers left.
    fn select_for_all(
        &mut self,
        ledger: &mut Ledger,
        (options, rules): (&MechanismOptions, Rules),
        order: &[WorkerTypeId],
    ) {
        self.chosen.iter_mut().for_each(Vec::clear);
        for worker_type in order {
            self.select_for(ledger, (options, rules), worker_type.index());
        }
        let moves = rules.by_speed && options.slow_fillers == SlowFillers::Move;
        if moves && self.move_slow(ledger, order) {
            for worker_type in order {
                self.select_for(ledger, (options, rules), worker_type.index());
            }
        }
    }

    /// Gives the workers of one type that are left to combinations with a share, then to fillers.
    fn select_for(
        &mut self,
        ledger: &mut Ledger,
        (options, rules): (&MechanismOptions, Rules),
        column: usize,
    ) {
        self.gather_sharing(ledger, options, column);
        self.take_entries(ledger, column);
        let all_taken = self.n_taken == ledger.n_jobs();
        let fills = !rules.skip_zero_priority && !rules.within_shares;
        if self.left[column] > 0 && fills && !all_taken {
            self.gather_fillers(ledger, options, column);
            self.take_entries(ledger, column);
        }
    }

    /// Moves fillers to workers that are left of a type that they have a share of and are faster on: of several, the one on which
    /// they are fastest. Returns whether any moved.
    fn move_slow(&mut self, ledger: &Ledger, order: &[WorkerTypeId]) -> bool {
        if self.left.iter().all(|left| *left == 0) {
            return false;
        }
        let mut has_moved = false;
        for from in order.iter().map(|worker_type| worker_type.index()) {
            let mut chosen = std::mem::take(&mut self.chosen[from]);
            chosen.retain(|slot| {
                let (row, n_workers) = (ledger.row(*slot), ledger.accounts[*slot as usize].scale_factor);
                let speed = |column: usize| ledger.throughput[row + column];
                let is_better = |column: &usize| {
                    ledger.share[row + column] > 0.0
                        && speed(*column) > speed(from)
                        && self.left[*column] >= n_workers
                };
                let better = order.iter().map(|worker_type| worker_type.index()).filter(is_better);
                let to = better.max_by(|one, other| speed(*one).total_cmp(&speed(*other)));
                let Some(to) = to.filter(|_| ledger.share[row + from] <= 0.0) else { return true };
                self.left[from] += n_workers;
                self.left[to] -= n_workers;
                self.chosen[to].push(*slot);
                has_moved = true;
                false
            });
            self.chosen[from] = chosen;
        }
        has_moved
    }

    fn refresh(&mut self, ledger: &mut Ledger) {
        ledger.sort();
        self.positions.resize(ledger.accounts.len(), 0);
        for (position, slot) in (0..).zip(&ledger.order) {
            self.positions[*slot as usize] = position;
        }
        self.sharing.iter_mut().for_each(Vec::clear);
        for slot in ledger.shared() {
            let row = ledger.row(slot);
            for (column, sharing) in self.sharing.iter_mut().enumerate() {
                let share = ledger.share[row + column];
                if ledger.runs(row + column) && share > 0.0 {
                    let (position, members) =
                        (self.positions[slot as usize], ledger.accounts[slot as usize].members);
                    sharing.push(Sharing { position, slot, members, share });
                }
            }
        }
        self.stale = false;
    }

    fn gather_sharing(&mut self, ledger: &Ledger, options: &MechanismOptions, column: usize) {
        self.entries.clear();
        let overdue_after = options.overdue_after();
        for Sharing { position, slot, members: [first, second], share } in
            self.sharing[column].iter().copied()
        {
            if self.has_taken(ledger, first) || self.has_taken(ledger, second) {
                continue;
            }
            let cell = ledger.row(slot) + column;
            if self.within_shares.is_some_and(|within| !within.is_due(ledger, cell)) {
                continue;
            }
            let urgency = ledger.priority(slot, column, overdue_after).urgency();
            self.entries.push(Entry { urgency, deficit: ledger.deficit[cell], share, position, slot });
        }
    }

    /// Combinations without a share of jobs that are not taken yet.
    fn gather_fillers(&mut self, ledger: &Ledger, options: &MechanismOptions, column: usize) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.clear();
        for place in ledger.places().filter(|place| !self.has_taken(ledger, *place)) {
            let member = &ledger.members[place as usize];
            entries.extend(self.filler(ledger, options, member.alone, column));
            // Each pair once, at the place its account names first.
            for (partner, slot) in &member.pairs {
                let first = ledger.accounts[*slot as usize].members[0] == place;
                if first && !self.has_taken(ledger, *partner) {
                    entries.extend(self.filler(ledger, options, *slot, column));
                }
            }
        }
        self.entries = entries;
    }

    fn filler(
        &self,
        ledger: &Ledger,
        options: &MechanismOptions,
        slot: Slot,
        column: usize,
    ) -> Option<Entry> {
        let cell = ledger.row(slot) + column;
        let account = &ledger.accounts[slot as usize];
        let is_admitted = self.admits_arrivals && !account.combination.is_pair();
        let waits = options.unallocated == Unallocated::Wait && !is_admitted && !ledger.is_allocated(account);
        if ledger.share[cell] > 0.0 || !ledger.runs(cell) || waits {
            return None;
        }
        Some(Entry {
            urgency: Priority::Nothing.urgency(),
            deficit: ledger.deficit[cell],
            share: 0.0,
            position: self.positions[slot as usize],
            slot,
        })
    }

    /// Takes the entries that fit, in descending (priority, deficit, share), then by position.
    fn take_entries(&mut self, ledger: &mut Ledger, column: usize) {
        let (mut entries, mut order) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.order));
        let mut remaining = entries.as_mut_slice();
        // At most as many entries are taken as workers are left, so about as many are sorted at once.
        let mut n_ordered = CHUNK_MIN;
        while self.left[column] > 0 && !remaining.is_empty() {
            n_ordered = (n_ordered * 2).max(self.left[column] as usize).min(remaining.len());
            if n_ordered < remaining.len() {
                remaining.select_nth_unstable(n_ordered);
            }
            let (chunk, others) = remaining.split_at_mut(n_ordered);
            let compare = |one: u32, other: u32| chunk[one as usize].cmp(&chunk[other as usize]);
            for index in order.sorted(chunk.iter().map(|entry| !entry.urgency), compare) {
                self.take(ledger, chunk[index as usize], column);
            }
            remaining = others;
        }
        (self.entries, self.order) = (entries, order);
    }

    /// Takes one entry, if its jobs are free and enough workers are left.
    fn take(&mut self, ledger: &mut Ledger, entry: Entry, column: usize) {
        let account = &ledger.accounts[entry.slot as usize];
        let [first, second] = account.members;
        if account.scale_factor > self.left[column]
            || ledger.taken[first as usize] == self.stamp
            || ledger.taken[second as usize] == self.stamp
        {
            return;
        }
        self.left[column] -= account.scale_factor;
        self.n_taken += account.combination.n_members();
        ledger.taken[first as usize] = self.stamp;
        ledger.taken[second as usize] = self.stamp;
        self.chosen[column].push(entry.slot);
    }
}
