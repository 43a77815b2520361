//! What is remembered from round to round: what jobs had, and how fast workers were.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dual_agent::performance::{FilterOptions, FilterState, PerformanceFilter};
use crate::world::Servers;
use apportion::index::{Id, IndexVec, JobId, ServerId, WorkerId};
use apportion::policy::{Location, Placed, RoundView};
use apportion::units::Seconds;

/// Seconds in which all but 1/e is forgotten of workers that are not measured.
const FORGOTTEN_S: f64 = 3600.0;

/// What is known of a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Expected logarithm of its speed against its type.
    pub log_speed: f64,
    /// The standard deviation of that.
    pub deviation: f64,
    /// How long ago it was measured, s; infinite if it never was.
    pub since_s: f64,
}

/// What a job had.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Past {
    /// Time that it ran, s.
    pub service_s: f64,
    /// Steps that were left when it was first seen.
    pub steps_at_first: f64,
    /// What it was seen to make in the last round, of what was expected of its workers; 1 if it did not run.
    pub retained: f64,
    /// Its place in the queue: the later it came, or was sent back, the larger.
    pub queued: u64,
}

/// What a job was expected to make in a round, steps/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// On such workers, on as few servers as hold it.
    pub by_type: f64,
    /// By what is known of these workers, on the servers where they are.
    pub expected: f64,
}

/// What is remembered.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    kept: Kept,
    filter: Option<PerformanceFilter>,
}

/// What is remembered of jobs and decisions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    past: BTreeMap<JobId, Past>,
    /// What was expected of those placed in the last round.
    expected: BTreeMap<JobId, Expected>,
    now: Option<Seconds>,
    n_queued: u64,
    decided: Option<Decided>,
}

/// The last round in which all was decided anew: the jobs and workers that were there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    round: u64,
    jobs: Vec<JobId>,
    workers: Vec<WorkerId>,
}

/// What must survive a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryState {
    kept: Kept,
    filter: Option<FilterState>,
}

impl Memory {
    /// A round begins: takes in what the one before showed.
    pub fn learn(&mut self, view: &RoundView<'_>) {
        let elapsed = self.kept.now.map_or(0.0, |before| view.now.get() - before.get());
        self.kept.now = Some(view.now);
        let filter = self.filter.get_or_insert_with(|| PerformanceFilter::new(&as_servers(view), OPTIONS));
        filter.predict(elapsed);
        for past in self.kept.past.values_mut() {
            past.retained = 1.0;
        }
        for ran in view.ran {
            let job = ran.combination.first();
            if let Some(past) = self.kept.past.get_mut(&job) {
                past.service_s += ran.time.get();
            }
            let Some(expected) = self.kept.expected.get(&job).filter(|_| ran.throughput[0] > 0.0) else {
                continue;
            };
            if let Some(past) = self.kept.past.get_mut(&job) {
                past.retained = ran.throughput[0] / expected.expected;
            }
            let log_speed = (ran.throughput[0] / expected.by_type).ln();
            let on = view.previous.iter().find(|placed| placed.combination == ran.combination);
            if let Some(worker) = on.and_then(|placed| slowest(filter, placed, view.locations)) {
                filter.observe(worker, log_speed);
            }
        }
        self.kept.expected.clear();
        let there: BTreeMap<JobId, f64> =
            view.problem.jobs().iter().map(|active| (active.id, active.steps_remaining.get())).collect();
        self.kept.past.retain(|job, _| there.contains_key(job));
        for active in view.problem.jobs() {
            let Kept { past, n_queued, .. } = &mut self.kept;
            past.entry(active.id).or_insert_with(|| {
                let queued = *n_queued;
                *n_queued += 1;
                let steps_at_first = active.steps_remaining.get();
                Past { service_s: 0.0, steps_at_first, retained: 1.0, queued }
            });
        }
    }

    /// Sends a job to the end of the queue.
    pub fn send_back(&mut self, job: JobId) {
        let Kept { past, n_queued, .. } = &mut self.kept;
        if let Some(past) = past.get_mut(&job) {
            past.queued = *n_queued;
            *n_queued += 1;
        }
    }

    /// What a job had, if it has been seen.
    pub fn past(&self, job: JobId) -> Option<&Past> {
        self.kept.past.get(&job)
    }

    /// This is expected of a job in this round.
    pub fn expect(&mut self, job: JobId, expected: Expected) {
        self.kept.expected.insert(job, expected);
    }

    /// What is known of a worker.
    pub fn known(&self, worker: WorkerId) -> Known {
        let place = as_server(worker);
        self.filter.as_ref().map_or(
            Known { log_speed: 0.0, deviation: OPTIONS.deviation, since_s: f64::INFINITY },
            |filter| Known {
                // What nobody uses nobody measures, and what was slow would pass for slow for ever.
                log_speed: filter.mean(place) * (-filter.since_s(place) / FORGOTTEN_S).exp(),
                deviation: filter.variance(place).sqrt(),
                since_s: filter.since_s(place),
            },
        )
    }

    /// Have jobs come or gone, or workers, since the last decision, or has it been so many rounds? If so, this is one.
    pub fn is_due(&mut self, view: &RoundView<'_>, rounds_max: u64) -> bool {
        let jobs = || view.problem.jobs().iter().map(|active| active.id);
        let workers = || view.free.iter().flatten().copied();
        let due = self.kept.decided.as_ref().is_none_or(|last| {
            view.round.saturating_sub(last.round) >= rounds_max
                || !jobs().eq(last.jobs.iter().copied())
                || !workers().eq(last.workers.iter().copied())
        });
        if due {
            let (jobs, workers) = (jobs().collect(), workers().collect());
            self.kept.decided = Some(Decided { round: view.round, jobs, workers });
        }
        due
    }

    /// What must survive a checkpoint.
    pub fn state(&self) -> MemoryState {
        MemoryState { kept: self.kept.clone(), filter: self.filter.as_ref().map(PerformanceFilter::state) }
    }

    /// Takes back what [`state`](Self::state) gave, when the first view shows what workers there are. False if that was of
    /// other workers.
    pub fn restore(&mut self, state: MemoryState, view: &RoundView<'_>) -> bool {
        let mut filter = PerformanceFilter::new(&as_servers(view), OPTIONS);
        let fits = state.filter.as_ref().is_none_or(|state| filter.restore(state));
        *self = Self { kept: state.kept, filter: state.filter.map(|_| filter) };
        fits
    }
}

/// What is assumed of workers' speeds: as in the dual-agent scheduler's own world.
const OPTIONS: FilterOptions = FilterOptions::FITTED;

/// The filter's servers are workers here, and their servers its racks.
fn as_servers(view: &RoundView<'_>) -> Servers {
    let mut servers = Servers::new();
    for location in view.locations {
        let rack = u32::try_from(location.server.index()).unwrap_or(u32::MAX);
        servers.push([0, 1], location.worker_type, rack);
    }
    servers
}

fn as_server(worker: WorkerId) -> ServerId {
    ServerId::from_index(worker.index())
}

/// A gang is as fast as its slowest worker, which is taken to be the one that is expected to be. None of a gang over
/// several servers, whose network may be what slows it.
fn slowest(
    filter: &PerformanceFilter,
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
