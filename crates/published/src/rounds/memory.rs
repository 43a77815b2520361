//! The memory of a policy between rounds: jobs' histories, and estimates of workers' speeds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use apportion::index::{Id, IndexVec, JobId, ServerId, WorkerId};
use apportion::policy::{Location, Placed, RoundView};
use apportion::throughput::server_speeds::{FilterOptions, FilterState, ServerPlace, SpeedFilter};
use apportion::units::Seconds;

/// Seconds in which the estimated log speed of a worker that is not measured decays to 1/e.
const DECAY_S: f64 = 3600.0;

/// The estimated speed of a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Expected logarithm of its speed relative to its type.
    pub log_speed: f64,
    /// The standard deviation of the logarithm.
    pub deviation: f64,
    /// Time since it was measured, s; infinite if it never was.
    pub since_s: f64,
}

/// The history of a job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobHistory {
    /// Time that it ran, s.
    pub service_s: f64,
    /// Remaining steps when it was first seen.
    pub steps_at_first: f64,
    /// Its throughput in the last round, relative to that expected of its workers; 1 if it did not run.
    pub retained: f64,
    /// Its position in the queue: the later it arrived or was sent back, the larger.
    pub queued: u64,
}

/// The expected throughput of a job in a round, steps/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// On average workers of its type, on as few servers as hold it.
    pub by_type: f64,
    /// On these very workers, by their estimated speeds and their servers.
    pub expected: f64,
}

/// Jobs' histories, and the filter of workers' speeds.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    remembered: Remembered,
    filter: Option<SpeedFilter>,
}

/// Jobs' histories and the last decision.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    #[serde(rename = "past")]
    history: BTreeMap<JobId, JobHistory>,
    /// Expectations of the jobs placed in the last round.
    expected: BTreeMap<JobId, Expected>,
    now: Option<Seconds>,
    n_queued: u64,
    decided: Option<Decided>,
}

/// The last round in which everything was decided anew, with the jobs and workers that it had.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    round: u64,
    jobs: Vec<JobId>,
    workers: Vec<WorkerId>,
}

/// The part of a memory that a checkpoint holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryState {
    #[serde(rename = "kept")]
    remembered: Remembered,
    filter: Option<FilterState>,
}

impl Memory {
    /// Begins a round: takes in the throughputs of the round before, and the jobs that have come and gone.
    pub fn learn(&mut self, view: &RoundView<'_>) {
        let elapsed = self.remembered.now.map_or(0.0, |before| view.now.get() - before.get());
        self.remembered.now = Some(view.now);
        let filter = self.filter.get_or_insert_with(|| SpeedFilter::new(&as_servers(view), OPTIONS));
        filter.predict(elapsed);
        for history in self.remembered.history.values_mut() {
            history.retained = 1.0;
        }
        for ran in view.ran {
            let job = ran.combination.first();
            if let Some(history) = self.remembered.history.get_mut(&job) {
                history.service_s += ran.time.get();
            }
            let Some(expected) = self.remembered.expected.get(&job).filter(|_| ran.throughput[0] > 0.0)
            else {
                continue;
            };
            if let Some(history) = self.remembered.history.get_mut(&job) {
                history.retained = ran.throughput[0] / expected.expected;
            }
            let log_speed = (ran.throughput[0] / expected.by_type).ln();
            let on = view.previous.iter().find(|placed| placed.combination == ran.combination);
            if let Some(worker) = on.and_then(|placed| slowest(filter, placed, view.locations)) {
                filter.observe(worker, log_speed);
            }
        }
        self.remembered.expected.clear();
        let mut there: Vec<JobId> = view.problem.jobs().iter().map(|active| active.id).collect();
        there.sort_unstable();
        self.remembered.history.retain(|job, _| there.binary_search(job).is_ok());
        for active in view.problem.jobs() {
            let Remembered { history, n_queued, .. } = &mut self.remembered;
            history.entry(active.id).or_insert_with(|| {
                let queued = *n_queued;
                *n_queued += 1;
                let steps_at_first = active.steps_remaining.get();
                JobHistory { service_s: 0.0, steps_at_first, retained: 1.0, queued }
            });
        }
    }

    /// Sends a job to the end of the queue.
    pub fn send_back(&mut self, job: JobId) {
        let Remembered { history, n_queued, .. } = &mut self.remembered;
        if let Some(history) = history.get_mut(&job) {
            history.queued = *n_queued;
            *n_queued += 1;
        }
    }

    /// The history of a job, if it has been seen.
    pub fn history(&self, job: JobId) -> Option<&JobHistory> {
        self.remembered.history.get(&job)
    }

    /// Stores the expected throughput of a job in this round.
    pub fn expect(&mut self, job: JobId, expected: Expected) {
        self.remembered.expected.insert(job, expected);
    }

    /// The estimated speed of a worker.
    pub fn known(&self, worker: WorkerId) -> Known {
        let place = as_server(worker);
        self.filter.as_ref().map_or(
            Known { log_speed: 0.0, deviation: OPTIONS.deviation, since_s: f64::INFINITY },
            |filter| Known {
                // Only workers in use are measured; without the decay, a slow worker that is avoided would stay slow for ever.
                log_speed: filter.mean(place) * (-filter.since_s(place) / DECAY_S).exp(),
                deviation: filter.variance(place).sqrt(),
                since_s: filter.since_s(place),
            },
        )
    }

    /// Whether jobs or workers have come or gone since everything was last decided anew, or `rounds_max` rounds have passed. If so,
    /// this round is stored as the last.
    pub fn is_due(&mut self, view: &RoundView<'_>, rounds_max: u64) -> bool {
        let jobs = || view.problem.jobs().iter().map(|active| active.id);
        let workers = || view.free.iter().flatten().copied();
        let due = self.remembered.decided.as_ref().is_none_or(|last| {
            view.round.saturating_sub(last.round) >= rounds_max
                || !jobs().eq(last.jobs.iter().copied())
                || !workers().eq(last.workers.iter().copied())
        });
        if due {
            let (jobs, workers) = (jobs().collect(), workers().collect());
            self.remembered.decided = Some(Decided { round: view.round, jobs, workers });
        }
        due
    }

    /// The part of the memory that a checkpoint holds.
    pub fn state(&self) -> MemoryState {
        MemoryState {
            remembered: self.remembered.clone(),
            filter: self.filter.as_ref().map(SpeedFilter::state),
        }
    }

    /// Restores a [`state`](Self::state), once a view shows which workers there are. False if the state is of other workers.
    pub fn restore(&mut self, state: MemoryState, view: &RoundView<'_>) -> bool {
        let mut filter = SpeedFilter::new(&as_servers(view), OPTIONS);
        let fits = state.filter.as_ref().is_none_or(|state| filter.restore(state));
        *self = Self { remembered: state.remembered, filter: state.filter.map(|_| filter) };
        fits
    }
}

/// The model of workers' speeds that the filter assumes, as in the dual-agent scheduler's own world.
const OPTIONS: FilterOptions = FilterOptions::FITTED;

/// Workers as servers of the filter, and their servers as its racks.
fn as_servers(view: &RoundView<'_>) -> Vec<ServerPlace> {
    let place = |location: &Location| ServerPlace {
        worker_type: location.worker_type,
        rack: u32::try_from(location.server.index()).unwrap_or(u32::MAX),
    };
    view.locations.iter().map(place).collect()
}

fn as_server(worker: WorkerId) -> ServerId {
    ServerId::from_index(worker.index())
}

/// The worker that a gang's speed is attributed to: the worker that is expected to be slowest. None for a gang over several
/// servers, whose network may be the cause.
fn slowest(
    filter: &SpeedFilter,
    placed: &Placed,
    locations: &IndexVec<WorkerId, Location>,
) -> Option<ServerId> {
    let first = placed.workers.first()?;
    if placed.workers.iter().any(|worker| locations[*worker] != locations[*first]) {
        return None;
    }
    let places = placed.workers.iter().map(|worker| as_server(*worker));
    places.min_by(|one, other| filter.mean(*one).total_cmp(&filter.mean(*other)))
}
