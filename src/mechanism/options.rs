//! Options of the mechanism: the points at which it differs as described and as published.

use serde::{Deserialize, Serialize};

use crate::units::Seconds;

/// The order of combinations that are equal otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// By the ids of the jobs: a job alone before its pairs, and its pairs before the next job.
    JobId,
    /// In the order of their creation: a job alone, then its pairs with earlier jobs.
    Insertion,
}

/// The treatment of jobs that arrived after the last re-computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unallocated {
    /// Such jobs are not selected.
    Wait,
    /// Such jobs are selected as fillers and counted, but get no workers, so that the workers stay idle.
    Block,
}

/// The meaning of a pending change when a waiting job could use workers that would otherwise idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleWorkers {
    /// The allocation is re-computed at once, however recent the last reset.
    Recompute,
    /// The workers idle until the reset interval is over.
    Wait,
}

/// The start of the reset interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastReset {
    /// At every reset.
    Exact,
    /// At every reset but one at time 0, which counts as no reset.
    ZeroIsNone,
}

/// The credit of a new pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairStart {
    /// The full credit, as for a job alone.
    Credited,
    /// No credit, so that the first deficit is too high by it.
    Uncredited,
}

/// The combinations without a share that may fill workers left free by those with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fillers {
    /// Jobs alone, and pairs that have a row in the allocation.
    Allocated,
    /// Every job and, where the policy shares space, every pair: n²/2 accounts.
    EveryCombination,
}

/// The treatment of a combination that fills workers of a type on which it is slower than on one that it has a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowFillers {
    /// The combination runs on the slower type.
    Stay,
    /// The combination moves to the faster type, if enough of its workers are left when all types have been filled. Only under
    /// policies that look at throughputs.
    Move,
}

/// The treatment of a job that has a share and has not run for long: new allocations, each of which begins with equal
/// credits, can come so often that a small share is never served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverdueJobs {
    /// The job waits for its priority, which starts anew with each allocation.
    Wait,
    /// The job precedes others where it has a share, once two rounds were allotted to it between resets while it ran less than half
    /// of that, beyond the time that it has run since. Time is weighted by the job's throughput there over its mean throughput by
    /// its shares.
    First,
}

/// The placement of a gang that does not keep its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gangs {
    /// On as few servers as are possible now.
    FewestServers,
    /// On the free workers of lowest id, wherever they are.
    LowestIds,
}

/// The treatment of workers that are too few to fill a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastServer {
    /// A smaller server.
    Smaller,
    /// No server: the workers do not exist.
    Dropped,
}

/// Parameters of the mechanism and its differences, one field each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MechanismOptions {
    /// The time that every combination counts as having received at a reset: half a round, so that a new one is neither infinitely
    /// nor never preferred. With 0, a combination that has received nothing is [starved](super::Priority::Starved).
    pub initial_credit: Seconds,
    /// The least time between two resets.
    pub reset_interval: Seconds,
    /// Ties in priority, deficit and share.
    pub ties: Ties,
    /// Jobs that arrived after the last re-computation.
    pub unallocated: Unallocated,
    /// Idle workers beside waiting jobs.
    pub idle_workers: IdleWorkers,
    /// The start of the reset interval.
    pub last_reset: LastReset,
    /// The credit of new pairs.
    pub pair_start: PairStart,
    /// Combinations that fill workers left free.
    pub fillers: Fillers,
    /// Combinations that fill workers on which they are slower than necessary.
    pub slow_fillers: SlowFillers,
    /// Jobs that have a share and have not run for long.
    pub overdue_jobs: OverdueJobs,
    /// The placement of gangs.
    pub gangs: Gangs,
    /// Workers that are too few to fill a server.
    pub last_server: LastServer,
}

impl MechanismOptions {
    /// The mechanism as described: 360 s rounds (a credit of 180 s), resets at least 1,920 s apart.
    pub const fn corrected() -> Self {
        Self {
            initial_credit: Seconds::new(180.0),
            reset_interval: Seconds::new(1920.0),
            ties: Ties::JobId,
            unallocated: Unallocated::Wait,
            idle_workers: IdleWorkers::Recompute,
            last_reset: LastReset::Exact,
            pair_start: PairStart::Credited,
            fillers: Fillers::Allocated,
            slow_fillers: SlowFillers::Move,
            overdue_jobs: OverdueJobs::First,
            gangs: Gangs::FewestServers,
            last_server: LastServer::Smaller,
        }
    }

    /// The mechanism as published (Gavel's repository at c4fa400).
    pub const fn gavel() -> Self {
        Self {
            initial_credit: Seconds::new(180.0),
            reset_interval: Seconds::new(1920.0),
            ties: Ties::Insertion,
            unallocated: Unallocated::Block,
            idle_workers: IdleWorkers::Wait,
            last_reset: LastReset::ZeroIsNone,
            pair_start: PairStart::Uncredited,
            fillers: Fillers::EveryCombination,
            slow_fillers: SlowFillers::Stay,
            overdue_jobs: OverdueJobs::Wait,
            gangs: Gangs::LowestIds,
            last_server: LastServer::Dropped,
        }
    }

    /// The allotted time from which a job is overdue, s: two rounds, which are four credits; none if no job ever is.
    pub(super) fn overdue_after(&self) -> Option<f64> {
        let after = 4.0 * self.initial_credit.get();
        (self.overdue_jobs == OverdueJobs::First && after > 0.0).then_some(after)
    }
}

impl Default for MechanismOptions {
    fn default() -> Self {
        Self::corrected()
    }
}
