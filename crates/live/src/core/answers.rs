//! Answers about jobs, rounds and servers.

use std::collections::BTreeMap;

use apportion::Seconds;
use apportion::index::{Id, WorkerId, WorkerTypeId};
use apportion::units::Dollars;
use schemars::JsonSchema;
use serde::Serialize;

use super::Core;
use super::job::LiveJob;
use super::record::{How, JobRecord};
use super::requests::{Answer, Refusal, Request};
use crate::protocol::JobNumber;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has no workers.
    Waiting,
    /// It has workers that are not free yet, or waits after a failure.
    Placed,
    /// Its ranks have been ordered, and do not all run yet.
    Starting,
    /// All of its ranks run.
    Running,
    /// It is asked to stop.
    Stopping,
    /// It is done.
    Completed,
    /// It was given up.
    Failed,
    /// Its user cancelled it.
    Cancelled,
}

/// A job, for people.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JobView {
    /// Its number.
    pub job: JobNumber,
    /// The name that its user gave it.
    pub name: Option<String>,
    /// The user that submitted it.
    pub user: Option<String>,
    /// Its owner, for hierarchical policies.
    pub owner: Option<String>,
    /// Its type.
    pub job_type: String,
    /// The number of workers that it needs, or has now.
    pub scale_factor: u32,
    /// The numbers of workers that it may be given; empty if no other than the scale factor.
    pub sizes: Vec<u32>,
    /// Its state.
    pub state: State,
    /// Steps that it has done, as its program reports; at least those of its last checkpoint.
    pub steps: f64,
    /// Steps that its last checkpoint holds.
    pub checkpointed: f64,
    /// Steps from its beginning to its end.
    pub total_steps: f64,
    /// The type of its workers; none if it has none.
    pub worker_type: Option<String>,
    /// The servers of its ranks.
    pub servers: Vec<String>,
    /// The number of its starts.
    pub starts: u32,
    /// The instant of its submission, on the scheduler's clock.
    pub submitted_s: f64,
    /// The instant of its first order to start, on the scheduler's clock; none before.
    pub started_s: Option<f64>,
    /// The instant at which it was over, on the scheduler's clock.
    pub ended_s: Option<f64>,
    /// The time for which all of its ranks have run on workers of each type, s.
    pub received_s: BTreeMap<String, f64>,
    /// The cost of its time on workers, in $; none without prices.
    pub cost: Option<f64>,
    /// Its end, or that of its last start.
    pub last_end: Option<String>,
}

/// A place of a job in a round.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlaceView {
    /// The job.
    pub job: JobNumber,
    /// The name that its user gave it.
    pub name: Option<String>,
    /// The type of its workers.
    pub worker_type: String,
    /// The workers, by server and place.
    pub workers: Vec<(String, u32)>,
    /// The job that shares them.
    pub beside: Option<JobNumber>,
    /// Whether it runs there already.
    pub is_there: bool,
}

/// The present round and the next one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NextView {
    /// The present instant, on the scheduler's clock.
    pub now_s: f64,
    /// The time until the round ends, in s; none if no round runs.
    pub ends_in_s: Option<f64>,
    /// The time until the next round is decided, in s; none if it is decided, or no round runs.
    pub decides_in_s: Option<f64>,
    /// Whether the next round is decided, so that the places are its own.
    pub is_decided: bool,
    /// Places of the next round where it is decided, else of the one that runs.
    pub places: Vec<PlaceView>,
    /// Jobs without a place.
    pub without: Vec<JobNumber>,
}

/// A server, for people.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ServerView {
    /// Its name.
    pub server: String,
    /// The type of its workers.
    pub worker_type: String,
    /// The number of its workers.
    pub n_workers: usize,
    /// The number of its workers that it offers: 0 if Slurm gives it no job.
    pub n_offered: usize,
    /// Whether the server has been heard of lately.
    pub is_reachable: bool,
    /// The time since it was last heard of, in s; none before its first report since the scheduler's start.
    pub heard_s_ago: Option<f64>,
    /// Why it gets no new job.
    pub drained: Option<String>,
    /// Whether it is removed from the cluster as soon as nothing can run there any more.
    pub is_leaving: bool,
    /// Why nothing can be started there, its disk being full, in the agent's words.
    pub disk: Option<String>,
    /// Why it offers no worker, as where Slurm says that it is down; none if it offers some.
    pub closed: Option<String>,
    /// The number of each of its workers in the event log.
    pub workers: Vec<WorkerId>,
    /// The jobs on each of its workers.
    pub jobs: Vec<Vec<JobNumber>>,
}

impl Core {
    /// Answers a question although the last step is not on disk yet; none if the request is no question.
    pub fn look_up(&mut self, now: Seconds, request: &Request) -> Option<Result<Answer, Refusal>> {
        request.is_question().then(|| {
            self.held_up.get_or_insert(self.now);
            self.now = self.now.max(now);
            self.answer(request.clone())
        })
    }

    /// The instant up to which reports have been taken: now, unless the disk refuses. No server is silent while the scheduler takes
    /// no reports.
    pub(super) fn listens_at(&self) -> Seconds {
        self.held_up.unwrap_or(self.now)
    }

    pub(super) fn job_views(&self) -> Vec<JobView> {
        let active = self.jobs.values().map(|job| self.view(job));
        // Jobs that run come first, then jobs that wait, then jobs that are over, the newest first.
        let mut active: Vec<_> = active.chain(self.unfit_views()).collect();
        active.sort_by_key(|view| (view.servers.is_empty(), view.job));
        let mut over: Vec<_> = self.over.iter().map(view_of_over).collect();
        let ended = |view: &JobView| view.ended_s.unwrap_or(0.0);
        over.sort_by(|one, other| ended(other).total_cmp(&ended(one)).then_with(|| other.job.cmp(&one.job)));
        active.into_iter().chain(over).collect()
    }

    pub(super) fn view(&self, job: &LiveJob) -> JobView {
        let state = match (&job.run, &job.placement) {
            (Some(run), _) if run.ending.is_some() => State::Stopping,
            (Some(run), _) if run.running.is_some() => State::Running,
            (Some(_), _) => State::Starting,
            (None, Some(_)) => State::Placed,
            (None, None) => State::Waiting,
        };
        let (run, steps) = (job.run.as_ref(), job.steps());
        let worker_type =
            run.map(|run| run.lease.1).or(job.placement.as_ref().map(|placement| placement.worker_type));
        let mut servers: Vec<_> =
            run.iter().flat_map(|run| &run.ranks).map(|rank| rank.server.clone()).collect();
        servers.dedup();
        let worker_type = worker_type.map(|worker_type| self.type_name(worker_type));
        let scale_factor = self.size(job);
        let cost = job.record.cost.or(self.is_priced().then_some(Dollars::ZERO)).map(Dollars::get);
        JobView { scale_factor, steps, worker_type, servers, cost, ..view_of(&job.record, state) }
    }

    /// The number of workers that a job has, or is to have at its next start.
    pub(super) fn size(&self, job: &LiveJob) -> u32 {
        let of_run = job.run.as_ref().and_then(|run| u32::try_from(run.ranks.len()).ok());
        let decided = || self.scheduler.job(job.id).map(|known| known.scale_factor);
        of_run.or_else(decided).unwrap_or(job.record.job.scale_factor)
    }

    pub(super) fn type_name(&self, worker_type: WorkerTypeId) -> String {
        self.scheduler.cluster().types()[worker_type].name.clone()
    }

    pub(super) fn next_view(&self) -> NextView {
        let place = |(number, job): (&JobNumber, &LiveJob)| {
            let placement = job.placement.as_ref()?;
            let workers =
                placement.workers.iter().filter_map(|worker| self.places[worker.index()].clone()).collect();
            Some(PlaceView {
                job: *number,
                name: job.record.name.clone(),
                worker_type: self.type_name(placement.worker_type),
                workers,
                beside: placement.beside,
                is_there: job
                    .run
                    .as_ref()
                    .is_some_and(|run| run.ending.is_none() && run.workers() == placement.workers),
            })
        };
        let left = |at: Seconds| (at - self.now).get();
        let timeline = self.timeline;
        NextView {
            now_s: self.now.get(),
            ends_in_s: timeline.map(|timeline| left(timeline.until)),
            decides_in_s: timeline
                .filter(|timeline| !timeline.is_decided)
                .map(|timeline| left(timeline.next(&self.settings))),
            is_decided: timeline.is_some_and(|timeline| timeline.is_decided),
            places: self.jobs.iter().filter_map(place).collect(),
            without: self
                .jobs
                .iter()
                .filter(|(_, job)| job.placement.is_none())
                .map(|(number, _)| *number)
                .chain(self.unfit.keys().copied())
                .collect(),
        }
    }

    pub(super) fn server_views(&self) -> Vec<ServerView> {
        let view = |server: &super::server::Server| ServerView {
            server: server.record.name.clone(),
            worker_type: server.record.worker_type.clone(),
            n_workers: server.record.workers.len(),
            n_offered: server.record.workers.len().min(server.n_workers as usize),
            is_reachable: server.is_reachable(self.listens_at(), self.settings.silence),
            heard_s_ago: server.last_heard.map(|heard| (self.now - heard).get()),
            drained: server.record.drained.clone(),
            is_leaving: server.record.removal.is_some(),
            disk: server.disk.clone(),
            closed: server.closed.clone(),
            workers: server.record.workers.clone(),
            jobs: server.record.workers.iter().map(|worker| self.holders[worker.index()].clone()).collect(),
        };
        self.servers.values().map(view).collect()
    }
}

pub(super) fn view_of(record: &JobRecord, state: State) -> JobView {
    JobView {
        job: record.number,
        name: record.name.clone(),
        user: record.user.clone(),
        owner: record.job.entity.clone(),
        job_type: record.job.job_type.clone(),
        scale_factor: record.job.scale_factor,
        sizes: record.job.sizes.clone(),
        state,
        steps: record.checkpointed,
        checkpointed: record.checkpointed,
        total_steps: record.job.total_steps.get(),
        worker_type: None,
        servers: Vec::new(),
        starts: record.incarnation,
        submitted_s: record.job.arrival.get(),
        started_s: record.started.map(Seconds::get),
        ended_s: record.outcome.as_ref().map(|outcome| outcome.at.get()),
        received_s: record.received.iter().map(|(name, ran)| (name.clone(), ran.get())).collect(),
        cost: record.cost.map(Dollars::get),
        last_end: record
            .outcome
            .as_ref()
            .map(|outcome| outcome.reason.clone())
            .or_else(|| record.last_end.clone()),
    }
}

pub(super) fn view_of_over(record: &JobRecord) -> JobView {
    let state = match record.outcome.as_ref().map(|outcome| outcome.how) {
        Some(How::Completed) => State::Completed,
        Some(How::Cancelled) => State::Cancelled,
        Some(How::Failed) | None => State::Failed,
    };
    view_of(record, state)
}
