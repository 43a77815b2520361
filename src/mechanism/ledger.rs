//! What every combination is owed and has received, per worker type.
//!
//! | array      | shape           | unit | meaning                                                   |
//! |------------|-----------------|------|-----------------------------------------------------------|
//! | `received` | [slot × type]   | s    | run since the last reset, plus the initial credit         |
//! | `deficit`  | [slot × type]   | s    | Σ over resets of share·elapsed − what was run             |
//! | `share`    | [slot × type]   | 1    | X                                                         |
//! | `runs`     | [slot × type]   |      | every member has a throughput there                       |
//! | `total`    | [type]          | s    | Σ received, as the published system counts it             |

use std::collections::BTreeMap;

use super::options::{MechanismOptions, PairStart, Ties};
use crate::index::JobId;
use crate::workload::Combination;

/// A place in the ledger, used again after its combination is gone.
pub(super) type Slot = u32;

/// A combination in the ledger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) combination: Combination<JobId>,
    /// Places of the members among the jobs; the second equals the first for a job alone.
    pub(super) members: [u32; 2],
    pub(super) scale_factor: u32,
    /// Has a row in the allocation.
    pub(super) allocated: bool,
    /// Tells this combination from earlier ones in the same place.
    pub(super) generation: u64,
}

/// A job in the ledger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) scale_factor: u32,
    /// The selection in which it was last taken.
    pub(super) taken: u64,
    /// Where it stands alone.
    pub(super) alone: Slot,
}

/// All accounts.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) n_types: usize,
    pub(super) accounts: Vec<Account>,
    pub(super) received: Vec<f64>,
    pub(super) deficit: Vec<f64>,
    pub(super) share: Vec<f64>,
    pub(super) runs: Vec<bool>,
    pub(super) total: Vec<f64>,
    /// Places in use, in the order that breaks ties.
    pub(super) order: Vec<Slot>,
    /// Jobs by place.
    pub(super) members: Vec<Member>,
    slots: BTreeMap<Combination<JobId>, Slot>,
    places: BTreeMap<JobId, u32>,
    free_slots: Vec<Slot>,
    free_places: Vec<u32>,
    generation: u64,
}

impl Ledger {
    pub(super) fn new(n_types: usize) -> Self {
        Self {
            n_types,
            accounts: Vec::new(),
            received: Vec::new(),
            deficit: Vec::new(),
            share: Vec::new(),
            runs: Vec::new(),
            total: vec![0.0; n_types],
            order: Vec::new(),
            members: Vec::new(),
            slots: BTreeMap::new(),
            places: BTreeMap::new(),
            free_slots: Vec::new(),
            free_places: Vec::new(),
            generation: 0,
        }
    }

    /// Start of a slot's row in the arrays.
    pub(super) fn row(&self, slot: Slot) -> usize {
        slot as usize * self.n_types
    }

    /// Is the combination of this generation still in this place?
    pub(super) fn is_current(&self, slot: Slot, generation: u64) -> bool {
        self.accounts.get(slot as usize).is_some_and(|account| account.generation == generation)
    }

    pub(super) fn slot(&self, combination: Combination<JobId>) -> Option<Slot> {
        self.slots.get(&combination).copied()
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.places.keys().copied()
    }

    pub(super) fn has_job(&self, job: JobId) -> bool {
        self.places.contains_key(&job)
    }

    /// Opens the account of a job alone.
    pub(super) fn add_job(&mut self, job: JobId, scale_factor: u32, runs: &[bool], credit: f64) -> Slot {
        assert!(!self.has_job(job), "job {job} is in the ledger already");
        let member = Member { scale_factor, taken: 0, alone: 0 };
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.members.push(member);
            u32::try_from(self.members.len() - 1).expect("fewer than 2^32 jobs")
        });
        self.members[place as usize] = member;
        self.places.insert(job, place);
        let slot = self.open(Combination::single(job), runs, credit);
        self.members[place as usize].alone = slot;
        slot
    }

    /// Opens the account of a combination of known jobs.
    pub(super) fn open(&mut self, combination: Combination<JobId>, runs: &[bool], credit: f64) -> Slot {
        let first = self.places[&combination.first()];
        let second = combination.second().map_or(first, |job| self.places[&job]);
        self.generation += 1;
        let account = Account {
            combination,
            members: [first, second],
            scale_factor: self.members[first as usize].scale_factor,
            allocated: false,
            generation: self.generation,
        };
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.accounts.push(account);
            let size = self.accounts.len() * self.n_types;
            self.received.resize(size, 0.0);
            self.deficit.resize(size, 0.0);
            self.share.resize(size, 0.0);
            self.runs.resize(size, false);
            u32::try_from(self.accounts.len() - 1).expect("fewer than 2^32 combinations")
        });
        self.accounts[slot as usize] = account;
        let cells = self.row(slot)..self.row(slot) + self.n_types;
        self.received[cells.clone()].fill(credit);
        self.deficit[cells.clone()].fill(0.0);
        self.share[cells.clone()].fill(0.0);
        self.runs[cells].copy_from_slice(runs);
        self.slots.insert(combination, slot);
        self.order.push(slot);
        slot
    }

    /// Closes every account of a job.
    pub(super) fn remove_job(&mut self, job: JobId) {
        let Some(place) = self.places.remove(&job) else { return };
        self.free_places.push(place);
        let gone = |account: &Account| account.members.contains(&place);
        let (accounts, slots, free) = (&mut self.accounts, &mut self.slots, &mut self.free_slots);
        self.order.retain(|slot| {
            let account = &mut accounts[*slot as usize];
            if gone(account) {
                slots.remove(&account.combination);
                account.generation = 0;
                free.push(*slot);
                return false;
            }
            true
        });
    }

    pub(super) fn n_jobs(&self) -> usize {
        self.places.len()
    }

    /// Are both members known, with equal scale factors?
    pub(super) fn can_pair(&self, pair: Combination<JobId>) -> bool {
        let scale_factor =
            |job: JobId| self.places.get(&job).map(|place| self.members[*place as usize].scale_factor);
        let Some(second) = pair.second() else { return false };
        scale_factor(pair.first()).is_some() && scale_factor(pair.first()) == scale_factor(second)
    }

    /// Nobody has a share.
    pub(super) fn clear_shares(&mut self) {
        self.share.fill(0.0);
        for account in &mut self.accounts {
            account.allocated = false;
        }
    }

    /// Every combination counts as having a row in the allocation.
    pub(super) fn allocate_all(&mut self) {
        for slot in &self.order {
            self.accounts[*slot as usize].allocated = true;
        }
    }

    pub(super) fn set_shares(&mut self, slot: Slot, shares: &[f64]) {
        let row = self.row(slot);
        self.share[row..row + self.n_types].copy_from_slice(shares);
        self.accounts[slot as usize].allocated = true;
    }

    /// Settles accounts after `elapsed` seconds: the deficit grows by what was owed and not run, and what was
    /// received starts again at the credit.
    pub(super) fn settle(&mut self, elapsed: f64, credit: f64) {
        self.total.fill(0.0);
        for slot in &self.order {
            let row = *slot as usize * self.n_types;
            let allocated = self.accounts[*slot as usize].allocated;
            for column in 0..self.n_types {
                let cell = row + column;
                let run = self.received[cell] - credit;
                let owed = if allocated { self.share[cell] * elapsed } else { 0.0 };
                self.deficit[cell] += owed - run;
                self.received[cell] = credit;
                self.total[column] += credit;
            }
        }
    }

    /// The first deficit of a pair that would have been there, uncredited, at the last settlement.
    pub(super) fn settle_new_pair(&mut self, slot: Slot, options: &MechanismOptions) {
        let (row, credit) = (self.row(slot), options.initial_credit.get());
        for column in 0..self.n_types {
            if options.pair_start == PairStart::Uncredited {
                self.deficit[row + column] = credit;
            }
            self.received[row + column] = credit;
            self.total[column] += credit;
        }
    }

    /// Puts accounts in the order that breaks ties.
    pub(super) fn sort(&mut self, ties: Ties) {
        let accounts = &self.accounts;
        let insertion = |combination: Combination<JobId>| {
            let last = combination.second().unwrap_or(combination.first());
            (last, combination.is_pair(), combination.first())
        };
        match ties {
            Ties::JobId => self.order.sort_unstable_by_key(|slot| accounts[*slot as usize].combination),
            Ties::Insertion => {
                self.order.sort_unstable_by_key(|slot| insertion(accounts[*slot as usize].combination));
            }
        }
    }
}
