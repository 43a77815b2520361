//! The ledger: time that every combination is owed and has received, per worker type.
//!
//! | array        | shape         | unit    | meaning                                             |
//! |--------------|---------------|---------|-----------------------------------------------------|
//! | `received`   | [slot × type] | s       | run since the last reset, plus the initial credit   |
//! | `deficit`    | [slot × type] | s       | Σ over resets of share·elapsed − what was run       |
//! | `share`      | [slot × type] | 1       | X                                                   |
//! | `throughput` | [slot × type] | steps/s | of all members together; 0 where one cannot run     |
//! | `total`      | [type]        | s       | Σ received, as the published system counts it       |
//!
//! Where every two jobs have an account, most of the n²/2 accounts never receive time. The work of a reset is in
//! proportion to the accounts that have a share or have run.

mod overdue;

use super::options::{MechanismOptions, PairStart, Ties};
use crate::index::JobId;
use crate::workload::Combination;

/// The position of a combination's account in the ledger, used again after the combination is gone.
pub(super) type Slot = u32;

/// A combination in the ledger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) combination: Combination<JobId>,
    /// Places of the members among the jobs; the second equals the first for a job alone.
    pub(super) members: [u32; 2],
    pub(super) scale_factor: u32,
    /// The allocation in which it last had a row.
    adopted: u32,
    /// The number of accounts opened up to this one, which distinguishes it from others in the same slot; 0 once it is closed.
    pub(super) generation: u64,
}

impl Account {
    /// Places of the members, each once.
    fn places(&self) -> impl Iterator<Item = u32> + use<> {
        let [first, second] = self.members;
        std::iter::once(first).chain((second != first).then_some(second))
    }
}

/// A job in the ledger.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) scale_factor: u32,
    /// The slot of the job alone.
    pub(super) alone: Slot,
    /// The pairs of the job: the other member's place, and the slot of the pair.
    pub(super) pairs: Vec<(u32, Slot)>,
    /// Time that the job was allotted between resets while it ran less than half of that, less the time that it has run since, s.
    /// Time is weighted by the job's throughput alone on the type, relative to its mean throughput by its shares.
    overdue: f64,
    /// Time that the job has run since the last reset, weighted in the same way, s.
    run: f64,
    /// The sum of its shares.
    share: f64,
    /// The sum of its shares, each times its throughput alone there, steps/s.
    rate: f64,
}

/// The accounts of all combinations, as arrays.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) n_types: usize,
    ties: Ties,
    pub(super) accounts: Vec<Account>,
    pub(super) received: Vec<f64>,
    pub(super) deficit: Vec<f64>,
    pub(super) share: Vec<f64>,
    pub(super) throughput: Vec<f64>,
    pub(super) total: Vec<f64>,
    /// Slots in use, in the order that breaks ties once [sorted](Self::sort).
    pub(super) order: Vec<Slot>,
    sorted: bool,
    /// Jobs by place.
    pub(super) members: Vec<Member>,
    /// For each job the selection in which it was last taken: [place].
    pub(super) taken: Vec<u64>,
    /// Active jobs and their places, by id.
    jobs: Vec<(JobId, u32)>,
    /// Slots with a share, with their generations: some may have been closed since.
    shared: Vec<(Slot, u64)>,
    /// Slots with an account that differs from its state after a reset, with their generations: some may have been closed since.
    touched: Vec<(Slot, u64)>,
    /// Whether the slot is among `touched`: [slot].
    is_touched: Vec<bool>,
    free_slots: Vec<Slot>,
    free_places: Vec<u32>,
    generation: u64,
    /// The number of allocations adopted.
    adoption: u32,
    /// The last generation of accounts that count as having a row in the allocation.
    allocated_until: u64,
}

impl Ledger {
    pub(super) fn new(n_types: usize, ties: Ties) -> Self {
        Self {
            n_types,
            ties,
            accounts: Vec::new(),
            received: Vec::new(),
            deficit: Vec::new(),
            share: Vec::new(),
            throughput: Vec::new(),
            total: vec![0.0; n_types],
            order: Vec::new(),
            sorted: true,
            members: Vec::new(),
            taken: Vec::new(),
            jobs: Vec::new(),
            shared: Vec::new(),
            touched: Vec::new(),
            is_touched: Vec::new(),
            free_slots: Vec::new(),
            free_places: Vec::new(),
            generation: 0,
            adoption: 1,
            allocated_until: 0,
        }
    }

    /// Start of a slot's row in the arrays.
    pub(super) fn row(&self, slot: Slot) -> usize {
        slot as usize * self.n_types
    }

    /// Whether the combination of a row can run on the type of this cell.
    pub(super) fn runs(&self, cell: usize) -> bool {
        self.throughput[cell] > 0.0
    }

    /// Sets the throughputs of a combination on each type, steps/s.
    pub(super) fn set_throughput(&mut self, slot: Slot, throughput: &[f64]) {
        let row = self.row(slot);
        self.throughput[row..row + self.n_types].copy_from_slice(throughput);
    }

    /// Whether the account of this generation is still in this slot.
    pub(super) fn is_current(&self, slot: Slot, generation: u64) -> bool {
        self.accounts.get(slot as usize).is_some_and(|account| account.generation == generation)
    }

    /// Whether an account has a row in the allocation.
    pub(super) fn is_allocated(&self, account: &Account) -> bool {
        account.adopted == self.adoption || account.generation <= self.allocated_until
    }

    /// Place of a job.
    pub(super) fn place(&self, job: JobId) -> Option<u32> {
        let position = self.jobs.binary_search_by_key(&job, |(id, _)| *id).ok()?;
        Some(self.jobs[position].1)
    }

    pub(super) fn slot(&self, combination: Combination<JobId>) -> Option<Slot> {
        let first = &self.members[self.place(combination.first())? as usize];
        let Some(second) = combination.second() else { return Some(first.alone) };
        let place = self.place(second)?;
        // Either member knows the pair: the one with fewer pairs is searched.
        let (known, other) = match &self.members[place as usize] {
            second if second.pairs.len() < first.pairs.len() => {
                (second, self.accounts[first.alone as usize].members[0])
            }
            _ => (first, place),
        };
        known.pairs.iter().find(|(partner, _)| *partner == other).map(|(_, slot)| *slot)
    }

    /// Fills `slots` with the slots of the pairs of the job at a place, by the place of the other job.
    pub(super) fn slots_beside(&self, place: Option<u32>, slots: &mut Vec<Option<Slot>>) {
        slots.clear();
        slots.resize(self.members.len(), None);
        for (other, slot) in place.map_or(&[][..], |place| &self.members[place as usize].pairs) {
            slots[*other as usize] = Some(*slot);
        }
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.iter().map(|(job, _)| *job)
    }

    /// Places of the jobs, by id.
    pub(super) fn places(&self) -> impl Iterator<Item = u32> {
        self.jobs.iter().map(|(_, place)| *place)
    }

    pub(super) fn has_job(&self, job: JobId) -> bool {
        self.place(job).is_some()
    }

    /// Opens the account of a job alone.
    pub(super) fn add_job(&mut self, job: JobId, scale_factor: u32, throughput: &[f64], credit: f64) -> Slot {
        let Err(position) = self.jobs.binary_search_by_key(&job, |(id, _)| *id) else {
            panic!("job {job} is in the ledger already");
        };
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.members.push(Member {
                scale_factor,
                alone: 0,
                pairs: Vec::new(),
                overdue: 0.0,
                run: 0.0,
                share: 0.0,
                rate: 0.0,
            });
            self.taken.push(0);
            u32::try_from(self.members.len() - 1).expect("fewer than 2^32 jobs")
        });
        let member = &mut self.members[place as usize];
        member.scale_factor = scale_factor;
        member.pairs.clear();
        (member.overdue, member.run, member.share, member.rate) = (0.0, 0.0, 0.0, 0.0);
        self.taken[place as usize] = 0;
        self.jobs.insert(position, (job, place));
        let slot = self.open(Combination::single(job), [place, place], throughput, (credit, credit));
        self.members[place as usize].alone = slot;
        slot
    }

    /// Opens the account of a pair at its [places](Self::pair_places). `start` is the time that it counts as having received, out
    /// of the `credit` of every account after a reset.
    pub(super) fn add_pair(
        &mut self,
        pair: Combination<JobId>,
        [first, second]: [u32; 2],
        throughput: &[f64],
        (start, credit): (f64, f64),
    ) -> Slot {
        let slot = self.open(pair, [first, second], throughput, (start, credit));
        self.members[first as usize].pairs.push((second, slot));
        self.members[second as usize].pairs.push((first, slot));
        slot
    }

    /// The places of a pair's members; none if one is unknown, or they need different numbers of workers.
    pub(super) fn pair_places(&self, pair: Combination<JobId>) -> Option<[u32; 2]> {
        let (first, second) = (self.place(pair.first())?, self.place(pair.second()?)?);
        let scale_factor = |place: u32| self.members[place as usize].scale_factor;
        (scale_factor(first) == scale_factor(second)).then_some([first, second])
    }

    fn open(
        &mut self,
        combination: Combination<JobId>,
        members: [u32; 2],
        throughput: &[f64],
        (start, credit): (f64, f64),
    ) -> Slot {
        self.generation += 1;
        let account = Account {
            combination,
            members,
            scale_factor: self.members[members[0] as usize].scale_factor,
            adopted: 0,
            generation: self.generation,
        };
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.accounts.push(account);
            let size = self.accounts.len() * self.n_types;
            self.received.resize(size, 0.0);
            self.deficit.resize(size, 0.0);
            self.share.resize(size, 0.0);
            self.throughput.resize(size, 0.0);
            self.is_touched.push(false);
            u32::try_from(self.accounts.len() - 1).expect("fewer than 2^32 combinations")
        });
        self.accounts[slot as usize] = account;
        let cells = self.row(slot)..self.row(slot) + self.n_types;
        self.received[cells.clone()].fill(start);
        self.deficit[cells.clone()].fill(0.0);
        self.share[cells.clone()].fill(0.0);
        self.throughput[cells].copy_from_slice(throughput);
        self.is_touched[slot as usize] = false;
        if start.total_cmp(&credit).is_ne() {
            self.touch(slot);
        }
        let last = self.order.last().map(|last| self.accounts[*last as usize].combination);
        self.sorted &= last.is_none_or(|last| self.ties.key(last) < self.ties.key(combination));
        self.order.push(slot);
        slot
    }

    /// Closes every account of a job.
    pub(super) fn remove_job(&mut self, job: JobId) {
        let Ok(position) = self.jobs.binary_search_by_key(&job, |(id, _)| *id) else { return };
        let (_, place) = self.jobs.remove(position);
        self.free_places.push(place);
        let pairs = std::mem::take(&mut self.members[place as usize].pairs);
        for (partner, _) in &pairs {
            let of_partner = &mut self.members[*partner as usize].pairs;
            if let Some(position) = of_partner.iter().position(|(other, _)| *other == place) {
                of_partner.swap_remove(position);
            }
        }
        let alone = self.members[place as usize].alone;
        for slot in pairs.iter().map(|(_, slot)| *slot).chain([alone]) {
            self.accounts[slot as usize].generation = 0;
        }
        let (accounts, free) = (&self.accounts, &mut self.free_slots);
        self.order.retain(|slot| {
            let open = accounts[*slot as usize].generation != 0;
            if !open {
                free.push(*slot);
            }
            open
        });
    }

    pub(super) fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    fn touch(&mut self, slot: Slot) {
        if !self.is_touched[slot as usize] {
            self.is_touched[slot as usize] = true;
            self.touched.push((slot, self.accounts[slot as usize].generation));
        }
    }

    /// Counts time that a combination ran on a type.
    pub(super) fn receive(&mut self, slot: Slot, column: usize, time: f64) {
        self.touch(slot);
        for place in self.accounts[slot as usize].places() {
            let speed = self.speed_alone(place, column);
            let member = &mut self.members[place as usize];
            let counted = if member.rate > 0.0 { time * speed * member.share / member.rate } else { time };
            (member.overdue, member.run) = ((member.overdue - counted).max(0.0), member.run + counted);
        }
        let cell = self.row(slot) + column;
        self.received[cell] += time;
        self.total[column] += time;
    }

    /// Removes all shares.
    pub(super) fn clear_shares(&mut self) {
        for member in &mut self.members {
            (member.share, member.rate) = (0.0, 0.0);
        }
        for (slot, generation) in std::mem::take(&mut self.shared) {
            if self.is_current(slot, generation) {
                let row = self.row(slot);
                self.share[row..row + self.n_types].fill(0.0);
            }
        }
        self.adoption += 1;
        self.allocated_until = 0;
    }

    /// Notes that a combination has a row in the allocation.
    pub(super) fn allocate(&mut self, slot: Slot) {
        self.accounts[slot as usize].adopted = self.adoption;
    }

    /// Counts every job alone as having a row in the allocation.
    pub(super) fn allocate_jobs(&mut self) {
        for index in 0..self.jobs.len() {
            let (_, place) = self.jobs[index];
            self.allocate(self.members[place as usize].alone);
        }
    }

    /// Counts every combination as having a row in the allocation.
    pub(super) fn allocate_all(&mut self) {
        self.allocated_until = self.generation;
    }

    pub(super) fn set_shares(&mut self, slot: Slot, shares: &[f64]) {
        let row = self.row(slot);
        self.share[row..row + self.n_types].copy_from_slice(shares);
        for place in self.accounts[slot as usize].places() {
            let rate: f64 = shares
                .iter()
                .enumerate()
                .map(|(column, share)| share * self.speed_alone(place, column))
                .sum();
            let member = &mut self.members[place as usize];
            member.share += shares.iter().sum::<f64>();
            member.rate += rate;
        }
        if shares.iter().any(|share| *share != 0.0) {
            self.shared.push((slot, self.accounts[slot as usize].generation));
        }
        self.allocate(slot);
    }

    /// Accounts that have a share, in no order.
    pub(super) fn shared(&self) -> impl Iterator<Item = Slot> {
        let current = |(slot, generation): &&(Slot, u64)| self.is_current(*slot, *generation);
        self.shared.iter().filter(current).map(|(slot, _)| *slot)
    }

    /// Resets accounts after `elapsed` seconds: the deficit grows by the time owed and not received, and the time
    /// received starts again at the credit. An account without time owed or received stays as it is.
    pub(super) fn reset(&mut self, elapsed: f64, credit: f64) {
        for index in 0..self.shared.len() {
            let (slot, generation) = self.shared[index];
            if self.is_current(slot, generation) {
                self.touch(slot);
            }
        }
        for index in 0..self.jobs.len() {
            let (_, place) = self.jobs[index];
            let member = &mut self.members[place as usize];
            let allotted = member.share * elapsed;
            member.overdue += if member.run < allotted / 2.0 { allotted } else { 0.0 };
            member.run = 0.0;
        }
        let mut touched = std::mem::take(&mut self.touched);
        for (slot, generation) in touched.drain(..) {
            if !self.is_current(slot, generation) {
                continue;
            }
            self.is_touched[slot as usize] = false;
            let row = self.row(slot);
            for cell in row..row + self.n_types {
                let run = self.received[cell] - credit;
                self.deficit[cell] += self.share[cell] * elapsed - run;
                self.received[cell] = credit;
            }
        }
        self.touched = touched;
        self.total.fill(repeated(credit, self.order.len()));
    }

    /// Gives a pair that was added after a reset the account that it would have if it had been present at the reset, without
    /// its credit.
    pub(super) fn backdate_new_pair(&mut self, slot: Slot, options: &MechanismOptions) {
        let (row, credit) = (self.row(slot), options.initial_credit.get());
        for column in 0..self.n_types {
            if options.pair_start == PairStart::Uncredited {
                self.deficit[row + column] = credit;
            }
            self.received[row + column] = credit;
            self.total[column] += credit;
        }
    }

    /// Puts an open account into a saved state.
    pub(super) fn restore(&mut self, slot: Slot, [received, deficit, share]: [&[f64]; 3], allocated: bool) {
        let row = self.row(slot)..self.row(slot) + self.n_types;
        self.received[row.clone()].copy_from_slice(received);
        self.deficit[row].copy_from_slice(deficit);
        self.touch(slot);
        self.set_shares(slot, share);
        if !allocated {
            self.accounts[slot as usize].adopted = 0;
        }
    }

    /// Puts accounts in the order that breaks ties.
    pub(super) fn sort(&mut self) {
        if !self.sorted {
            let (accounts, ties) = (&self.accounts, self.ties);
            self.order.sort_unstable_by_key(|slot| ties.key(accounts[*slot as usize].combination));
            self.sorted = true;
        }
    }
}

impl Ties {
    /// The key by which combinations with equal priorities are ordered.
    fn key(self, combination: Combination<JobId>) -> (JobId, bool, JobId) {
        let (first, last) = (combination.first(), combination.second().unwrap_or(combination.first()));
        match self {
            Self::JobId => (first, combination.is_pair(), last),
            Self::Insertion => (last, combination.is_pair(), first),
        }
    }
}

/// The sum of `n` equal terms, rounded as if they were added one by one.
fn repeated(term: f64, n: usize) -> f64 {
    let product = term * n as f64;
    // Whole numbers below 2^53 are not rounded.
    if term.fract() == 0.0 && product < 9e15 { product } else { (0..n).fold(0.0, |sum, _| sum + term) }
}
