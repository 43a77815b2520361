//! First in, first out, on workers of a random type.
//!
//! In order of arrival each waiting job takes all of its workers on a type drawn uniformly from those with enough
//! free ones that can run it, and keeps them to its end. The queue blocks at its head: no job overtakes.
//!
//! The published code does something else ([`Fidelity::Published`]). It draws a type but gives the job the last
//! one, by the alphabet, of those that had a free worker, whether or not it has room; that type is struck off
//! only if it comes out at exactly 0, and then the type drawn is struck off in its place. So workers are given away
//! several times over, and jobs that run wait on each other's time. A job that ended hands its place to the
//! queue's head before the workers of jobs that still run are counted. The published FIFO baselines contain all
//! of this, so it is repeated here draw for draw; such a decision's
//! [`violation_max`](crate::Allocation::violation_max) tells of it.
//!
//! Source: Gavel's `FIFOPolicy`. O(n·K) a call.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::allocation::Allocation;
use crate::index::{Id, IndexVec, JobId, JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, Policy, PolicyError, RoundRules, TypeOrder};
use crate::policy::heuristic::workers::{Handout, alphabetical, by_arrival, positions, restored};
use crate::problem::{ActiveJob, Problem};
use crate::spec::Fidelity;
use crate::workload::Combination;
use crate::workload::python_random::PythonRandom;
use crate::workload::random::{SeedStreams, Stream};

const NAME: &str = "fifo";

/// Only jobs with a place run, and no type is preferred.
const RULES: RoundRules = RoundRules {
    skip_zero_priority: true,
    type_order: TypeOrder::Shuffled,
    pair_fillers: false,
    within_shares: false,
    recompute_after: None,
};

/// First in, first out. Its state: the worker type of each running job, and the state of the generator of random numbers.
#[derive(Clone, Debug)]
pub struct Fifo {
    state: State,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    running: Vec<(JobId, WorkerTypeId)>,
    random: Random,
}

/// The generator of draws: each fidelity has its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Random {
    Corrected(Stream),
    Published(Box<PythonRandom>),
}

impl Fifo {
    /// The rule with nothing running yet; `seed` is the seed of the run.
    pub fn new(fidelity: Fidelity, seed: u64) -> Self {
        let random = match fidelity {
            Fidelity::Corrected => Random::Corrected(SeedStreams::new(seed).stream(NAME)),
            Fidelity::Published => Random::Published(Box::new(PythonRandom::new(seed))),
        };
        Self { state: State { running: Vec::new(), random } }
    }
}

impl Policy for Fifo {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let running: BTreeMap<JobId, WorkerTypeId> = self.state.running.iter().copied().collect();
        let (held, allocation) = match &mut self.state.random {
            Random::Corrected(stream) => {
                let handout = hand_out(problem, &running, stream);
                let allocation = Allocation::check(problem, rows(problem, &handout.held()));
                (handout.held(), allocation)
            }
            Random::Published(random) => {
                let held = as_published(problem, running, random);
                let allocation = Allocation::overcommitted(problem, rows(problem, &held));
                (held, allocation)
            }
        };
        self.state.running = held.into_iter().collect();
        let allocation =
            allocation.map_err(|source| PolicyError::Allocation { policy: NAME.to_owned(), source })?;
        Ok(Decision { rules: RULES, ..Decision::of(allocation) })
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!(self.state)
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        let restored: State = restored(NAME, state)?;
        if std::mem::discriminant(&restored.random) != std::mem::discriminant(&self.state.random) {
            return Err(PolicyError::State { policy: NAME.to_owned() });
        }
        self.state = restored;
        Ok(())
    }
}

/// Rows that give every job with a worker type all of its time there.
fn rows(problem: &Problem, held: &BTreeMap<JobId, WorkerTypeId>) -> Vec<(Combination<JobIndex>, Vec<f64>)> {
    let row = |(job, active): (JobIndex, &ActiveJob)| {
        let mut shares = vec![0.0; problem.n_types()];
        shares[held.get(&active.id)?.index()] = 1.0;
        Some((Combination::single(job), shares))
    };
    problem.jobs().enumerate().filter_map(row).collect()
}

fn hand_out<'a>(
    problem: &'a Problem,
    running: &BTreeMap<JobId, WorkerTypeId>,
    stream: &mut Stream,
) -> Handout<'a> {
    let mut handout = Handout::new(problem);
    handout.keep(|job| running.get(&job).copied());
    for job in by_arrival(problem) {
        if handout.placed().contains_key(&job) {
            continue;
        }
        let types = problem.cluster().types().ids();
        let fitting: Vec<WorkerTypeId> =
            types.filter(|worker_type| handout.fits(job, *worker_type)).collect();
        if fitting.is_empty() {
            break;
        }
        handout.place(job, *stream.choice(&fitting));
    }
    handout
}

/// Decides by the published procedure, its oddities included: see the module's documentation.
fn as_published(
    problem: &Problem,
    mut running: BTreeMap<JobId, WorkerTypeId>,
    random: &mut PythonRandom,
) -> BTreeMap<JobId, WorkerTypeId> {
    let position = positions(problem);
    let runs_on = |job: JobIndex, worker_type| problem.throughput()[(job, worker_type)] > 0.0;
    let size = |job: JobIndex| i64::from(problem.jobs()[job].scale_factor);
    let id = |job: JobIndex| problem.jobs()[job].id;
    let types = problem.cluster().types();
    let mut free: IndexVec<WorkerTypeId, i64> =
        types.iter().map(|worker_type| i64::from(worker_type.n_workers)).collect();
    let waiting = |job: &JobIndex| !running.contains_key(&id(*job));
    let mut queue: VecDeque<JobIndex> = by_arrival(problem).into_iter().filter(waiting).collect();
    for (job, worker_type) in running.clone() {
        if let Some(job) = position.get(&job) {
            free[worker_type] -= size(*job);
            continue;
        }
        running.remove(&job);
        let heir = queue.front().copied();
        if let Some(heir) =
            heir.filter(|heir| size(*heir) <= free[worker_type] && runs_on(*heir, worker_type))
        {
            queue.pop_front();
            running.insert(id(heir), worker_type);
            free[worker_type] -= size(heir);
        }
    }
    let mut open: Vec<WorkerTypeId> = alphabetical(problem);
    open.retain(|worker_type| free[*worker_type] > 0);
    while let (Some(job), Some(last)) = (queue.pop_front(), open.last().copied()) {
        let roomy: Vec<usize> = (0..open.len()).filter(|place| free[open[*place]] >= size(job)).collect();
        if roomy.is_empty() {
            break;
        }
        let drawn = random.randrange(roomy.len());
        if runs_on(job, last) {
            running.insert(id(job), last);
            free[last] -= size(job);
            if free[last] == 0 {
                open.remove(roomy[drawn]);
            }
        }
    }
    running
}

#[cfg(test)]
pub(super) mod tests;
