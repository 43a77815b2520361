//! What is answered about jobs, rounds and servers.

use apportion::Seconds;
use apportion::index::{Id, WorkerTypeId};
use apportion::workload::Combination;
use serde::Serialize;

use super::Core;
use super::job::{LiveJob, Reason};
use super::record::{How, JobRecord};
use super::requests::Refusal;
use crate::protocol::JobNumber;

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobView {
    /// Its number.
    pub job: JobNumber,
    /// What its user calls it.
    pub name: Option<String>,
    /// Whose it is.
    pub user: Option<String>,
    /// Its type.
    pub job_type: String,
    /// How many workers it needs.
    pub scale_factor: u32,
    /// How far it is.
    pub state: State,
    /// Steps that it has done, as it says; at least those of its last checkpoint.
    pub steps: f64,
    /// Steps that its last checkpoint holds.
    pub checkpointed: f64,
    /// Steps to its end.
    pub total_steps: f64,
    /// The type of its workers, if it has some.
    pub worker_type: Option<String>,
    /// The servers of its ranks.
    pub servers: Vec<String>,
    /// How often it has been started.
    pub starts: u32,
    /// When it was taken in, on the scheduler's clock.
    pub submitted_s: f64,
    /// When it was over.
    pub ended_s: Option<f64>,
    /// What became of it, or of its last start.
    pub last_end: Option<String>,
}

/// What a job is owed and has received on workers of one type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeView {
    /// The type.
    pub worker_type: String,
    /// The share of its time that it is to have them, alone or beside another.
    pub share: f64,
    /// How long it has had them since the last reset, in s.
    pub received_s: f64,
    /// How much longer it ought to have had them up to the last reset, in s.
    pub deficit_s: f64,
    /// How many workers of the type there are, up.
    pub n_up: u32,
    /// The jobs that hold workers of the type.
    pub held_by: Vec<JobNumber>,
}

/// A job, and what binds it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Why {
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
    /// What binds it, in sentences.
    pub because: Vec<String>,
    /// Worker types on which it may run.
    pub worker_types: Vec<TypeView>,
    /// When the next round is decided, in s from now.
    pub decides_in_s: Option<f64>,
    /// When the policy last decided, on the scheduler's clock.
    pub decided_s: Option<f64>,
}

/// A place of a job in a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceView {
    /// The job.
    pub job: JobNumber,
    /// What its user calls it.
    pub name: Option<String>,
    /// The type of its workers.
    pub worker_type: String,
    /// The workers, by server and place.
    pub workers: Vec<(String, u32)>,
    /// The job that shares them.
    pub beside: Option<JobNumber>,
    /// Does it run there already?
    pub is_there: bool,
}

/// What the round and the next one hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NextView {
    /// Now, on the scheduler's clock.
    pub now_s: f64,
    /// When the round ends, in s from now; none if none runs.
    pub ends_in_s: Option<f64>,
    /// When the next is decided, in s from now; none if it is decided, or none runs.
    pub decides_in_s: Option<f64>,
    /// Do the places hold for the next round, too?
    pub is_decided: bool,
    /// Places: of the next round where it is decided, else of the one that runs.
    pub places: Vec<PlaceView>,
    /// Jobs without a place.
    pub without: Vec<JobNumber>,
}

/// A server, for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerView {
    /// Its name.
    pub server: String,
    /// The type of its workers.
    pub worker_type: String,
    /// How many it has.
    pub n_workers: usize,
    /// Is it heard of?
    pub is_reachable: bool,
    /// When it was last heard of, in s before now.
    pub heard_s_ago: Option<f64>,
    /// Why it gets no new job.
    pub drained: Option<String>,
    /// The jobs on each of its workers.
    pub jobs: Vec<Vec<JobNumber>>,
}

impl Core {
    pub(super) fn job_views(&self) -> Vec<JobView> {
        let active = self.jobs.values().map(|job| self.view(job));
        self.over.iter().map(view_of_over).chain(active).collect()
    }

    fn view(&self, job: &LiveJob) -> JobView {
        let state = match (&job.run, &job.placement) {
            (Some(run), _) if run.ending.is_some() => State::Stopping,
            (Some(run), _) if run.running.is_some() => State::Running,
            (Some(_), _) => State::Starting,
            (None, Some(_)) => State::Placed,
            (None, None) => State::Waiting,
        };
        let run = job.run.as_ref();
        let steps = run.map_or(0.0, |run| run.progress.steps).max(job.record.checkpointed);
        let worker_type =
            run.map(|run| run.lease.1).or(job.placement.as_ref().map(|placement| placement.worker_type));
        let mut servers: Vec<_> =
            run.iter().flat_map(|run| &run.ranks).map(|rank| rank.server.clone()).collect();
        servers.dedup();
        let worker_type = worker_type.map(|worker_type| self.type_name(worker_type));
        JobView { steps, worker_type, servers, ..view_of(&job.record, state) }
    }

    fn type_name(&self, worker_type: WorkerTypeId) -> String {
        self.scheduler.cluster().types()[worker_type].name.clone()
    }

    pub(super) fn why(&self, number: JobNumber) -> Result<Why, Refusal> {
        let Some(job) = self.jobs.get(&number) else {
            let over = self.over.iter().find(|record| record.number == number);
            let record = over.ok_or_else(|| self.unknown_job(number))?;
            let outcome = record.outcome.as_ref().map(|outcome| outcome.reason.clone());
            let because = outcome.into_iter().map(|reason| format!("It is over: {reason}.")).collect();
            let job = view_of_over(record);
            return Ok(Why { job, because, worker_types: Vec::new(), decides_in_s: None, decided_s: None });
        };
        let worker_types: Vec<_> = self
            .scheduler
            .cluster()
            .types()
            .ids()
            .filter_map(|worker_type| self.type_view(job, worker_type))
            .collect();
        let undecided = self.timeline.filter(|timeline| !timeline.is_decided);
        Ok(Why {
            job: self.view(job),
            because: self.because(job, &worker_types),
            worker_types,
            decides_in_s: undecided.map(|timeline| (timeline.next(&self.settings) - self.now).get()),
            decided_s: self.scheduler.in_force().map(|decision| decision.adopted.get()),
        })
    }

    /// A worker type as a job sees it; none if it cannot run there.
    fn type_view(&self, job: &LiveJob, worker_type: WorkerTypeId) -> Option<TypeView> {
        let mechanism = self.scheduler.mechanism();
        let alone = Combination::single(job.id);
        let received_s = mechanism.received(alone, worker_type)?.get();
        let deficit_s = mechanism.deficit(alone, worker_type)?.get();
        let in_force = self.scheduler.in_force();
        let shares = in_force.iter().flat_map(|decision| &decision.shares);
        let own = shares.filter(|(jobs, _)| jobs.contains(job.id));
        let share = own.map(|(_, shares)| shares.get(worker_type.index()).copied().unwrap_or(0.0)).sum();
        let mut held_by: Vec<_> = self
            .scheduler
            .workers()
            .of_type(worker_type)
            .flat_map(|worker| self.holders[worker.index()].iter().copied())
            .collect();
        held_by.sort_unstable();
        held_by.dedup();
        Some(TypeView {
            worker_type: self.type_name(worker_type),
            share,
            received_s,
            deficit_s,
            n_up: self.scheduler.workers().n_up(worker_type),
            held_by,
        })
    }

    /// What binds a job, in sentences.
    fn because(&self, job: &LiveJob, types: &[TypeView]) -> Vec<String> {
        let mut because = Vec::new();
        match &job.run {
            Some(run) => because.push(match run.ending.as_ref().map(|ending| &ending.reason) {
                None if run.running.is_some() => "It runs.".to_owned(),
                None => "It has been ordered; not all of its ranks have been reported yet.".to_owned(),
                Some(Reason::Preempted) => "It is asked to stop: its workers are another's in the next round, or it has others there.".into(),
                Some(Reason::RankEnded) => "It is asked to stop: one of its ranks has ended.".to_owned(),
                Some(Reason::NotStarted) => "It is asked to stop: not all of its ranks were started in time.".into(),
                Some(Reason::Cancelled) => "It is asked to stop: its user cancelled it.".to_owned(),
            }),
            None => match job.rests(self.now) {
                Some(wait) => because.push(format!(
                    "It failed {} times in a row and is not started again for {:.0} s.",
                    job.record.failures,
                    wait.get()
                )),
                None => because.extend(self.why_without(job, types)),
            },
        }
        because.extend(job.record.last_end.iter().map(|end| format!("Its last start: {end}.")));
        because
    }

    /// Why a job has no run.
    fn why_without(&self, job: &LiveJob, types: &[TypeView]) -> Vec<String> {
        if let Some(placement) = &job.placement {
            let mut holders: Vec<_> =
                placement.workers.iter().flat_map(|worker| &self.holders[worker.index()]).collect();
            holders.sort_unstable();
            holders.dedup();
            let list: Vec<_> = holders.into_iter().map(ToString::to_string).collect();
            let kind = self.type_name(placement.worker_type);
            return vec![if list.is_empty() {
                format!("It has workers of type {kind}, whose servers are not all here.")
            } else {
                format!(
                    "It has workers of type {kind} as soon as they are free: job {} is still there.",
                    list.join(", job ")
                )
            }];
        }
        if self.timeline.is_none() {
            return vec!["No server that may be given jobs is here.".to_owned()];
        }
        let Some(decision) = self
            .scheduler
            .in_force()
            .filter(|decision| decision.shares.iter().any(|(jobs, _)| jobs.contains(job.id)))
        else {
            return vec![
                "The policy has not decided since it came: it does so at the next round that may reset it."
                    .into(),
            ];
        };
        let with_share: Vec<_> = types.iter().filter(|view| view.share > 1e-9).collect();
        if decision.dropped.contains(&job.id) {
            return vec![
                "The policy cannot keep its deadline beside the others', and has dropped it.".to_owned(),
            ];
        }
        if with_share.is_empty() {
            return vec!["The policy gives it no share of any worker type.".to_owned()];
        }
        let part = |view: &&TypeView| {
            let share = 100.0 * view.share;
            let TypeView { worker_type, n_up, held_by, .. } = view;
            if *n_up == 0 {
                return format!(
                    "It is to have {worker_type} for {share:.1} % of the time; no worker of that type may be given jobs now."
                );
            }
            let holders: Vec<_> = held_by.iter().map(ToString::to_string).collect();
            let holders =
                if holders.is_empty() { "no job".to_owned() } else { format!("job {}", holders.join(", ")) };
            format!(
                "It is to have {worker_type} for {share:.1} % of the time; the {n_up} that are up are held by {holders} now."
            )
        };
        with_share.iter().map(part).collect()
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
                .collect(),
        }
    }

    pub(super) fn server_views(&self) -> Vec<ServerView> {
        let view = |server: &super::server::Server| ServerView {
            server: server.record.name.clone(),
            worker_type: server.record.worker_type.clone(),
            n_workers: server.record.workers.len(),
            is_reachable: server.is_reachable(self.now, self.settings.silence),
            heard_s_ago: server.heard.map(|heard| (self.now - heard).get()),
            drained: server.record.drained.clone(),
            jobs: server.record.workers.iter().map(|worker| self.holders[worker.index()].clone()).collect(),
        };
        self.servers.values().map(view).collect()
    }
}

fn view_of(record: &JobRecord, state: State) -> JobView {
    JobView {
        job: record.number,
        name: record.name.clone(),
        user: record.user.clone(),
        job_type: record.job.job_type.clone(),
        scale_factor: record.job.scale_factor,
        state,
        steps: record.checkpointed,
        checkpointed: record.checkpointed,
        total_steps: record.job.total_steps.get(),
        worker_type: None,
        servers: Vec::new(),
        starts: record.incarnation,
        submitted_s: record.job.arrival.get(),
        ended_s: record.outcome.as_ref().map(|outcome| outcome.at.get()),
        last_end: record
            .outcome
            .as_ref()
            .map(|outcome| outcome.reason.clone())
            .or_else(|| record.last_end.clone()),
    }
}

fn view_of_over(record: &JobRecord) -> JobView {
    let state = match record.outcome.as_ref().map(|outcome| outcome.how) {
        Some(How::Completed) => State::Completed,
        Some(How::Cancelled) => State::Cancelled,
        Some(How::Failed) | None => State::Failed,
    };
    view_of(record, state)
}
