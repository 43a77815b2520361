//! The state of a mechanism that survives a checkpoint.

use serde::{Deserialize, Serialize};

use super::ahead::Ahead;
use super::leases::{Lease, Leases};
use super::ledger::Ledger;
use super::options::MechanismOptions;
use super::rounds::{Mechanism, Resets, Rules};
use crate::cluster::Cluster;
use crate::index::{Id, JobId, WorkerId, WorkerTypeId};
use crate::workload::Combination;

/// A mechanism between two rounds, to be saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MechanismState {
    rules: Rules,
    resets: Resets,
    jobs: Vec<(JobId, u32)>,
    accounts: Vec<AccountState>,
    total: Vec<f64>,
    leases: Vec<LeaseState>,
    down: Vec<WorkerId>,
    /// Jobs with their figures of overdue time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    overdue: Vec<(JobId, [f64; 4])>,
    /// Time that counts and has not been recorded, s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ahead: Vec<(Combination<JobId>, WorkerTypeId, f64)>,
    /// Jobs that rest, with the instants at which they end, s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resting: Vec<(JobId, f64)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountState {
    combination: Combination<JobId>,
    allocated: bool,
    received: Vec<f64>,
    deficit: Vec<f64>,
    share: Vec<f64>,
    throughput: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeaseState {
    combination: Combination<JobId>,
    worker_type: WorkerTypeId,
    workers: Vec<WorkerId>,
    n_servers: u32,
    extended: bool,
}

impl MechanismState {
    /// The jobs, in no order.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        let alone = self.accounts.iter().filter(|account| !account.combination.is_pair());
        alone.map(|account| account.combination.first())
    }
}

impl Mechanism {
    /// The state, for [`restore`](Self::restore).
    pub fn state(&self) -> MechanismState {
        let ledger = &self.ledger;
        let scale_factor = |job: JobId| {
            let alone = ledger.slot(Combination::single(job));
            alone.map_or(0, |slot| ledger.accounts[slot as usize].scale_factor)
        };
        let account = |slot: &u32| {
            let cells = ledger.row(*slot)..ledger.row(*slot) + ledger.n_types;
            let account = &ledger.accounts[*slot as usize];
            AccountState {
                combination: account.combination,
                allocated: ledger.is_allocated(account),
                received: ledger.received[cells.clone()].to_vec(),
                deficit: ledger.deficit[cells.clone()].to_vec(),
                share: ledger.share[cells.clone()].to_vec(),
                throughput: ledger.throughput[cells].to_vec(),
            }
        };
        let lease = |lease: &Lease| LeaseState {
            combination: lease.combination,
            worker_type: lease.worker_type,
            workers: self.current.workers(lease).to_vec(),
            n_servers: lease.n_servers,
            extended: lease.extended,
        };
        MechanismState {
            rules: self.rules,
            resets: Resets { round: self.rules.within_shares.then_some(self.round), ..self.resets },
            jobs: ledger.jobs().map(|job| (job, scale_factor(job))).collect(),
            accounts: ledger.order.iter().map(account).collect(),
            total: ledger.total.clone(),
            overdue: ledger.overdue().collect(),
            leases: self.current.leases.iter().map(lease).collect(),
            down: (0..self.workers.len())
                .map(WorkerId::from_index)
                .filter(|worker| !self.workers.is_up(*worker))
                .collect(),
            ahead: self.ahead.iter().map(|of| (of.combination, of.worker_type, of.time)).collect(),
            resting: self.resting.clone(),
        }
    }

    /// A mechanism in a saved state, for the same cluster and options.
    ///
    /// # Errors
    /// If the state does not fit the cluster, with the reason in words.
    pub fn restore(
        cluster: &Cluster,
        options: MechanismOptions,
        state: &MechanismState,
    ) -> Result<Self, String> {
        let mut mechanism = Self::new(cluster, options);
        mechanism.rules = state.rules;
        for worker in &state.down {
            if worker.index() >= mechanism.workers.len() {
                return Err(format!("worker {worker} is not in the cluster"));
            }
            mechanism.workers.set_up(*worker, false);
        }
        mechanism.ledger = restore_ledger(cluster.n_types(), &mechanism.options, state)?;
        mechanism.current = restore_leases(&mechanism, state)?;
        mechanism.round = state.resets.round.unwrap_or(0.0);
        mechanism.resets = Resets { round: None, ..state.resets };
        if state.ahead.iter().any(|(_, worker_type, _)| worker_type.index() >= cluster.n_types()) {
            return Err(format!("time ahead is not of {} worker types", cluster.n_types()));
        }
        let ahead = state.ahead.iter();
        mechanism.ahead = ahead
            .map(|(combination, worker_type, time)| Ahead {
                combination: *combination,
                worker_type: *worker_type,
                time: *time,
            })
            .collect();
        if let Some((job, _)) = state.resting.iter().find(|(job, _)| !mechanism.ledger.has_job(*job)) {
            return Err(format!("job {job} rests and has no account"));
        }
        mechanism.resting.clone_from(&state.resting);
        Ok(mechanism)
    }
}

fn restore_ledger(
    n_types: usize,
    options: &MechanismOptions,
    state: &MechanismState,
) -> Result<Ledger, String> {
    let mut ledger = Ledger::new(n_types, options.ties);
    let credit = options.initial_credit.get();
    let (singles, pairs): (Vec<_>, Vec<_>) =
        state.accounts.iter().partition(|account| !account.combination.is_pair());
    for account in singles.into_iter().chain(pairs) {
        let columns = [&account.received, &account.deficit, &account.share].map(Vec::len);
        if columns.iter().any(|columns| *columns != n_types) || account.throughput.len() != n_types {
            return Err(format!("an account does not have {n_types} worker types"));
        }
        let job = account.combination.first();
        let slot = if account.combination.is_pair() {
            let pair = account.combination;
            let places = ledger.pair_places(pair).ok_or_else(|| format!("jobs {pair:?} cannot be a pair"))?;
            ledger.add_pair(pair, places, &account.throughput, (0.0, credit))
        } else {
            let known = state.jobs.iter().find(|(id, _)| *id == job);
            let (_, scale_factor) = known.ok_or_else(|| format!("job {job} has no scale factor"))?;
            if ledger.has_job(job) {
                return Err(format!("job {job} comes twice"));
            }
            ledger.add_job(job, *scale_factor, &account.throughput, 0.0)
        };
        ledger.restore(slot, [&account.received, &account.deficit, &account.share], account.allocated);
    }
    if state.total.len() != n_types {
        return Err(format!("the totals are not of {n_types} worker types"));
    }
    ledger.total.copy_from_slice(&state.total);
    for (job, numbers) in &state.overdue {
        let place = ledger.place(*job).ok_or_else(|| format!("job {job} is overdue and has no account"))?;
        ledger.restore_overdue(place, *numbers);
    }
    Ok(ledger)
}

fn restore_leases(mechanism: &Mechanism, state: &MechanismState) -> Result<Leases, String> {
    let mut leases = Leases::default();
    for saved in &state.leases {
        if let Some(worker) = saved.workers.iter().find(|worker| worker.index() >= mechanism.workers.len()) {
            return Err(format!("worker {worker} is not in the cluster"));
        }
        // A combination of which a member has ended has no account: its lease cannot be extended.
        let slot = mechanism.ledger.slot(saved.combination);
        let generation = slot.map_or(u64::MAX, |slot| mechanism.ledger.accounts[slot as usize].generation);
        let position = |index: usize| u32::try_from(index).expect("fewer than 2^32 workers");
        let start = leases.workers.len();
        leases.workers.extend(&saved.workers);
        leases.leases.push(Lease {
            slot: slot.unwrap_or(0),
            generation,
            combination: saved.combination,
            worker_type: saved.worker_type,
            workers: (position(start), position(leases.workers.len())),
            n_servers: saved.n_servers,
            extended: saved.extended,
            kept: false,
        });
    }
    Ok(leases)
}
