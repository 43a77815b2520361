//! The answer to a client that simulates on from here: the scheduler's state, and the jobs that it knows.

use std::collections::BTreeMap;

use apportion::Job;
use apportion::index::WorkerId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::job::LiveJob;
use super::record::{How, JobRecord};
use super::requests::Refusal;
use super::server::Server;
use super::{Core, OVER_MAX};
use crate::protocol::JobNumber;

/// The format of a situation.
pub const SITUATION_FORMAT: &str = "apportion/situation-v1";

/// The state from which a simulation can go on where the scheduler is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SituationView {
    /// The format of this document: [`SITUATION_FORMAT`].
    pub format: String,
    /// The present instant, on the scheduler's clock.
    pub now_s: f64,
    /// Workers by type, as on command lines; those of servers that have not joined included.
    pub cluster: String,
    /// Workers on each server, by type.
    pub workers_per_server: BTreeMap<String, u32>,
    /// Workers that may be given jobs now, by type: those of servers that are present and not drained. None from an earlier
    /// version.
    #[serde(default)]
    pub workers_up: Option<BTreeMap<String, u32>>,
    /// The price of a worker now, in $/h, by type; types without a price are left out.
    #[serde(default)]
    pub prices: BTreeMap<String, f64>,
    /// Length of a round.
    pub round_length_s: f64,
    /// Least time between two computations of the allocation.
    pub reset_interval_s: f64,
    /// The scheduler's state, which a [`SchedulerState`](apportion::scheduler::SchedulerState) reads. A job's id in it is the job's
    /// number.
    pub scheduler: Value,
    /// All active jobs, and the last ones that ended, by number.
    pub jobs: Vec<PastView>,
    /// The instant of the scheduler's clock since when the list of jobs is complete: every job that was active then, or arrived
    /// later, is in it.
    pub complete_since_s: f64,
}

/// A job, and the work that it has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastView {
    /// Its number.
    pub number: JobNumber,
    /// The name that its user gave it.
    pub name: Option<String>,
    /// The job as the policy knows it. Its arrival is an instant on the scheduler's clock.
    pub job: Job,
    /// Steps that it has done, as its program reports; at least those of its last checkpoint.
    pub steps: f64,
    /// The time for which all of its ranks have run on workers of each type, s.
    pub received_s: BTreeMap<String, f64>,
    /// The number of its starts.
    pub starts: u32,
    /// Whether its user has cancelled it: if it has not ended, it is being stopped.
    #[serde(default)]
    pub cancelled: bool,
    /// The instant at which it was over, on the scheduler's clock.
    pub ended_s: Option<f64>,
    /// The way in which it ended; none while it is active.
    pub how: Option<How>,
}

fn past(record: &JobRecord, steps: f64) -> PastView {
    let outcome = record.outcome.as_ref();
    PastView {
        number: record.number,
        name: record.name.clone(),
        job: record.job.clone(),
        steps,
        received_s: record.received.iter().map(|(name, ran)| (name.clone(), ran.get())).collect(),
        starts: record.incarnation,
        cancelled: record.cancelled,
        ended_s: outcome.map(|outcome| outcome.at.get()),
        how: outcome.map(|outcome| outcome.how),
    }
}

impl Core {
    /// The situation now, after the mechanism was told the time that was received up to now.
    pub(super) fn situation(&mut self) -> Result<SituationView, Refusal> {
        self.tell_received(self.now);
        let scheduler = serde_json::to_value(self.scheduler.state())
            .map_err(|error| Refusal::Invalid { text: format!("the state has no form in JSON: {error}") })?;
        let active = self.jobs.values().map(|job| past(&job.record, job.steps()));
        let waiting = self.unfit_records().map(|record| past(record, record.checkpointed));
        let over = self.over.iter().map(|record| past(record, record.checkpointed));
        let mut jobs: Vec<PastView> = active.chain(waiting).chain(over).collect();
        jobs.sort_by_key(|job| job.number);
        let oldest = self.over.front().filter(|_| self.over.len() >= OVER_MAX);
        let oldest = oldest.and_then(|record| record.outcome.as_ref());
        let (cluster, options) = (self.scheduler.cluster(), self.scheduler.options());
        let on_servers = cluster.types().iter().map(|kind| (kind.name.clone(), kind.workers_per_server));
        Ok(SituationView {
            format: SITUATION_FORMAT.to_owned(),
            now_s: self.now.get(),
            cluster: cluster.to_string(),
            workers_per_server: on_servers.collect(),
            workers_up: Some(self.workers_up()),
            prices: cluster
                .types()
                .iter()
                .filter_map(|kind| Some((kind.name.clone(), kind.price?.get())))
                .collect(),
            round_length_s: options.round_length.get(),
            reset_interval_s: options.mechanism.reset_interval.get(),
            scheduler,
            jobs,
            complete_since_s: oldest.map_or(0.0, |outcome| outcome.at.get()),
        })
    }

    /// Number of workers of servers that may be given jobs, by type; 0 for a type without any.
    pub(super) fn workers_up(&self) -> BTreeMap<String, u32> {
        let kinds = self.scheduler.cluster().types().iter();
        let mut up: BTreeMap<_, _> = kinds.map(|kind| (kind.name.clone(), 0)).collect();
        for server in self.servers_up() {
            *up.entry(server.record.worker_type.clone()).or_default() += server.n_workers;
        }
        up
    }

    /// The workers of a type that count as [up](Self::workers_up).
    pub(super) fn workers_offered(&self, worker_type: &str) -> Vec<WorkerId> {
        let of_type = self.servers_up().filter(|server| server.record.worker_type == worker_type);
        let offered = of_type.flat_map(|server| server.record.workers.iter().take(server.n_workers as usize));
        offered.copied().collect()
    }

    /// Servers that may be given jobs.
    fn servers_up(&self) -> impl Iterator<Item = &Server> {
        let up = self.servers.iter().filter(|(name, server)| self.is_usable(name) && server.disk.is_none());
        up.map(|(_, server)| server)
    }
}

impl LiveJob {
    /// Steps that it has done, as its program reports; at least those of its last checkpoint.
    pub(super) fn steps(&self) -> f64 {
        self.run.as_ref().map_or(0.0, |run| run.progress.steps).max(self.record.checkpointed)
    }
}
