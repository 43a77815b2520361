//! The scheduler's core: a state machine without input or output.
//!
//! In: [`Input`]s and the instant at which they come. Out: a [`Step`]: records to be put on disk, and what is to be said
//! when they are there. It owns jobs and their incarnations, leases, servers, the mechanism and the policy. It opens no
//! file and no socket, and reads no clock.
//!
//! A job that has workers has a *placement* (what the round gave it, and until when) and a *run* (what may be running,
//! and on which workers it may still be). All that the core does follows from the difference of the two: a run without its
//! placement is asked to stop, a placement without a run is started when its workers are free, and a run on its placement
//! has its lease extended. A worker is free when the end of each rank on it has been reported, or when the last lease that
//! any server may have been told is over, with the grace and some slack.

mod accounts;
mod answers;
mod ends;
mod job;
mod late;
mod leases;
mod orders;
mod prices;
mod record;
mod reports;
mod requests;
mod rounds;
mod server;
mod settings;
mod settle;
mod situation;
mod unfit;
mod why;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use apportion::index::{Id, JobId, WorkerId, WorkerTypeId};
use apportion::problem::ActiveJob;
use apportion::scheduler::{Scheduler, SchedulerState};
use apportion::simulator::{Event, PriceChange};
use apportion::workload::Combination;
use apportion::{Cluster, Problem, Seconds};
use serde::Serialize;

use accounts::Accounts;
use job::{Known, LiveJob, LiveRun, Placement};
use rounds::Timeline;
use server::Server;
use unfit::Unfit;

pub use answers::{JobView, NextView, PlaceView, ServerView, State};
pub use record::{
    How, JobRecord, LateEnd, Note, Outcome, Record, RunRecord, ServerRecord, Stored, UnheardRecord,
};
pub use requests::{Answer, Refusal, Request, Submission};
pub use settings::{SettingError, Settings};
pub use situation::{PastView, SITUATION_FORMAT, SituationView};
pub use why::{HolderView, TypeView, Why};

use crate::protocol::{JobNumber, Orders, Report, Run};

/// How many jobs that are over can still be asked about.
pub const OVER_MAX: usize = 1000;

/// How many refused servers are remembered, so that nothing is said twice of them.
const REFUSED_MAX: usize = 1000;

/// What comes to the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An agent's report.
    Report(Report),
    /// A request, and the number by which its answer is known.
    Request(u64, Request),
    /// Time has passed: see [`Core::wake_at`].
    Wake,
}

/// What the scheduler says.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Orders, to the server of this name.
    Send(String, Orders),
    /// The answer to a request.
    Answer(u64, Result<Answer, Refusal>),
}

/// What follows from an input. Effects leave only when the records are on disk, all of them.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "what is not recorded is lost"]
pub struct Step {
    /// To be put on disk together.
    pub records: Vec<Record>,
    /// To be said after that, in order.
    pub effects: Vec<Effect>,
    /// Why the report that was the input is not heeded, and what its sender's operator can do; none if it is.
    pub refused: Option<String>,
}

/// What has happened since the scheduler's start, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Rounds decided.
    pub rounds: u64,
    /// Decisions that did not come in time.
    pub late_decisions: u64,
    /// Decisions that failed.
    pub failed_decisions: u64,
    /// Starts of jobs.
    pub starts: u64,
    /// Jobs that were completed.
    pub completed: u64,
    /// Jobs that were given up.
    pub failed: u64,
    /// Runs that were over without a word of their end.
    pub unconfirmed: u64,
}

/// A scheduler between two inputs.
#[derive(Debug)]
pub struct Core {
    settings: Settings,
    epoch: u64,
    scheduler: Scheduler,
    jobs: BTreeMap<JobNumber, LiveJob>,
    numbers: BTreeMap<JobId, JobNumber>,
    next_job: u64,
    /// What tells the submissions of this start from those of others.
    drawn: u64,
    /// Jobs that fit no worker type of the cluster.
    unfit: BTreeMap<JobNumber, Unfit>,
    /// Jobs that are over, the newest last.
    over: VecDeque<JobRecord>,
    servers: BTreeMap<String, Server>,
    /// Servers whose last report was refused, and why.
    refused: BTreeMap<String, String>,
    /// The server of each worker, and its place there; none before a server has joined that has it.
    places: Vec<Option<(String, u32)>>,
    /// The jobs whose runs may be on each worker.
    holders: Vec<Vec<JobNumber>>,
    /// The jobs that were placed on each worker in this round. Some may have no place there any more.
    placed: Vec<Vec<JobNumber>>,
    /// No server that was heard of becomes silent before this.
    silent_after: Seconds,
    timeline: Option<Timeline>,
    accounts: Accounts,
    slices: BTreeMap<Combination<JobId>, leases::SliceLog>,
    counters: Counters,
    /// The servers on which each job has failed since it last ended well.
    failed_on: BTreeMap<JobNumber, BTreeSet<String>>,
    /// Rounds in the event log, of all starts.
    n_rounds: u64,
    /// Has a job come or gone, a server come, or a back-off ended, since workers were last given to jobs that wait?
    is_vacant: bool,
    now: Seconds,
    /// When it wanted to be woken at the latest, as it said after the last input.
    due: Seconds,
    /// Changes of prices that are still to come, in order of time.
    prices: VecDeque<PriceChange>,
    /// Until then servers are given time to report, since the scheduler itself was away: no run is over without a word.
    listens_until: Seconds,
    /// Since when nothing is taken in, the disk refusing what followed from the last input; none if it does not.
    held_up: Option<Seconds>,
    /// When the jobs that wait for a time were last looked at.
    looked: Seconds,
    /// Jobs to be looked at before the step ends.
    touched: BTreeSet<JobNumber>,
    /// Servers for which there may be news.
    to_tell: BTreeSet<String>,
    /// What the step has so far.
    step: Step,
}

impl Core {
    /// A scheduler that goes on where the stored one ended. `scheduler` has no jobs, and all its workers are up.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn open(
        settings: Settings,
        mut scheduler: Scheduler,
        mut stored: Stored,
        now: Seconds,
    ) -> Result<(Self, Step), SettingError> {
        settings.check(scheduler.options().round_length)?;
        let n_workers = scheduler.workers().len();
        let restored = restore(&mut scheduler, &stored);
        for worker in (0..n_workers).map(WorkerId::from_index) {
            // It exists.
            let _ = scheduler.set_up(worker, false);
        }
        let mut core = Self {
            settings,
            epoch: stored.epoch,
            scheduler,
            jobs: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next_job: stored.next_job,
            drawn: stored.drawn,
            unfit: BTreeMap::new(),
            over: VecDeque::from(std::mem::take(&mut stored.over)),
            servers: BTreeMap::new(),
            refused: BTreeMap::new(),
            places: vec![None; n_workers],
            holders: vec![Vec::new(); n_workers],
            placed: vec![Vec::new(); n_workers],
            silent_after: now,
            timeline: None,
            accounts: Accounts::default(),
            slices: BTreeMap::new(),
            counters: Counters::default(),
            failed_on: BTreeMap::new(),
            n_rounds: stored.n_rounds,
            is_vacant: false,
            now,
            due: now,
            prices: VecDeque::new(),
            listens_until: now + settings.silence,
            held_up: None,
            looked: now,
            touched: BTreeSet::new(),
            to_tell: BTreeSet::new(),
            step: Step::default(),
        };
        match restored {
            Ok(numbers) => core.numbers = numbers,
            Err(text) => core.warn(text, None, None),
        }
        for doubt in settings.doubts(core.scheduler.options().round_length) {
            core.warn(doubt, None, None);
        }
        core.adopt(stored);
        let step = std::mem::take(&mut core.step);
        Ok((core, step))
    }

    /// Takes over what an earlier start left: servers keep their workers, and jobs what they have done. Runs may go on;
    /// their servers are waited for, and the first round is decided when those that are silent have had their time.
    fn adopt(&mut self, stored: Stored) {
        for text in stored.set_aside {
            self.warn(text, None, None);
        }
        for record in stored.servers {
            if !self.has_place_for(&record) {
                let text = format!(
                    "the cluster is another one than before, and has no place for the workers of {}: this server has to join again",
                    record.name
                );
                self.warn(text, None, Some(record.name.clone()));
                continue;
            }
            for (place, worker) in (0u32..).zip(&record.workers) {
                self.places[worker.index()] = Some((record.name.clone(), place));
            }
            self.servers.insert(record.name.clone(), Server::new(record, self.now));
        }
        for mut record in stored.jobs {
            if let Some(run) = record.run.as_mut().filter(|_| !stored.is_clock_sure) {
                run.gone_by.clear();
            }
            self.adopt_job(record);
        }
        self.pair_up();
        self.restore_slices();
        let running = |(number, job): (&JobNumber, &LiveJob)| job.run.is_some().then_some(*number);
        for number in self.jobs.iter().filter_map(running).collect::<Vec<_>>() {
            // Until when its ranks are waited for.
            self.record_job(number);
        }
        if self.jobs.values().any(|job| job.run.is_some()) {
            let until = self.now + self.settings.silence + self.settings.look_ahead;
            self.timeline = Some(Timeline { from: self.now, until, is_decided: false });
            for job in self.jobs.values_mut() {
                if let Some(placement) = &mut job.placement {
                    placement.until = until;
                }
            }
        }
    }

    /// Are the workers that a server had still workers of its type, that no other server has?
    fn has_place_for(&self, record: &ServerRecord) -> bool {
        let kinds = self.scheduler.cluster().types();
        record.workers.iter().all(|worker| {
            let kind = self.scheduler.workers().worker_type(*worker).map(|kind| &kinds[kind].name);
            kind == Some(&record.worker_type) && self.places[worker.index()].is_none()
        })
    }

    /// Takes over a job. Its run is where its ranks' servers still have the same workers; else it is stopped there. One that
    /// fits no worker type waits for another start.
    fn adopt_job(&mut self, mut record: JobRecord) {
        let number = record.number;
        let name = number.to_string();
        let known = self.scheduler.find(&name).map(Ok);
        let id = match known.unwrap_or_else(|| self.scheduler.submit_as(name, record.job.clone())) {
            Ok(id) => id,
            // One that its user cancelled does not wait to be started.
            Err(_) if record.done.is_some() => {
                let why = record.done.clone().unwrap_or_default();
                self.end_record(JobRecord { run: None, ..record }, How::Completed, why);
                return;
            }
            Err(_) if record.cancelled => {
                let record = JobRecord { run: None, ..record };
                self.end_record(record, How::Cancelled, "cancelled by its user".to_owned());
                return;
            }
            Err(error) => return self.set_unfit(record, &error),
        };
        self.numbers.insert(id, number);
        if let Some(until) = record.not_before.filter(|_| self.settings.refill) {
            self.scheduler.rest(id, until);
        }
        if let Some(run) = &mut record.run {
            let by = self.now + run.outlives;
            for (rank, _) in (0u32..).zip(&run.servers) {
                run.gone_by.entry(rank).or_insert(by);
            }
        }
        let run = record.run.as_ref().map(|known| {
            let run = Run { job: number, incarnation: record.incarnation };
            let kind = known.workers.first().and_then(|worker| self.scheduler.workers().worker_type(*worker));
            let lease = (Combination::single(id), kind.unwrap_or(WorkerTypeId::from_index(0)));
            let mut run = LiveRun::new(run, known, lease, (Known::Believed, self.now));
            run.logged.checkpointed = record.checkpointed;
            for rank in &mut run.ranks {
                let place = rank.worker.and_then(|worker| self.places.get(worker.index())?.as_ref());
                if place.is_none_or(|(server, _)| *server != rank.server) {
                    rank.worker = None;
                }
            }
            run
        });
        let placed = run.as_ref().filter(|run| !run.is_displaced());
        let placement = placed.map(|run| Placement {
            workers: run.workers(),
            worker_type: run.lease.1,
            beside: None,
            jobs: run.lease.0,
            until: self.now,
        });
        for worker in run.iter().flat_map(LiveRun::workers) {
            self.holders[worker.index()].push(number);
            self.placed[worker.index()].push(number);
        }
        self.tell_steps(id, run.as_ref(), record.checkpointed);
        let job = LiveJob { record, id, placement, run, was_unexecutable: false };
        self.jobs.insert(number, job);
        self.touched.insert(number);
    }

    /// Runs that were found on the same workers share them.
    fn pair_up(&mut self) {
        let mut by_workers: BTreeMap<Vec<WorkerId>, Vec<JobNumber>> = BTreeMap::new();
        for (number, job) in &self.jobs {
            if let Some(placement) = &job.placement {
                by_workers.entry(placement.workers.clone()).or_default().push(*number);
            }
        }
        for numbers in by_workers.into_values() {
            let [one, other] = numbers[..] else { continue };
            let jobs = Combination::pair(self.jobs[&one].id, self.jobs[&other].id);
            for (number, beside) in [(one, other), (other, one)] {
                let Some(job) = self.jobs.get_mut(&number) else { continue };
                if let (Some(placement), Some(run)) = (&mut job.placement, &mut job.run) {
                    (placement.beside, placement.jobs, run.lease.0) = (Some(beside), jobs, jobs);
                }
            }
        }
    }

    /// What follows from an input at `now`, an instant on a clock that never goes back, not over starts either.
    pub fn take(&mut self, now: Seconds, input: Input) -> Step {
        (self.now, self.held_up) = (self.now.max(now), None);
        self.note_absence();
        self.apply_prices();
        match input {
            Input::Report(report) => {
                let taken = self.take_report(&report);
                self.step.refused = self.refusal(&report.server, taken);
            }
            Input::Request(number, request) => {
                let answer = self.answer(request);
                self.step.effects.push(Effect::Answer(number, answer));
            }
            Input::Wake => {
                self.looked = self.now;
                self.touched.extend(self.jobs.keys());
            }
        }
        if self.now >= self.looked + self.look_beat() {
            // Where many servers report, something always comes before the core would be woken.
            self.looked = self.now;
            let due = self.jobs.iter().filter(|(_, job)| job.waits_for_time(self.now));
            self.touched.extend(due.map(|(number, _)| *number));
        }
        self.note_rested();
        self.advance();
        self.settle();
        self.refill();
        self.settle();
        self.send_orders();
        self.due = self.wake_at();
        std::mem::take(&mut self.step)
    }

    /// When it wants to be woken, if nothing comes before.
    pub fn wake_at(&self) -> Seconds {
        let beat = (self.looked + self.look_beat()).max(self.now);
        match self.timeline {
            Some(timeline) => beat.min(timeline.next(&self.settings)).max(self.now),
            None => beat,
        }
    }

    /// How often jobs that wait for a time are looked at: waits and leases may be over without a word.
    fn look_beat(&self) -> Seconds {
        Seconds::new((self.scheduler.options().round_length.get() / 20.0).clamp(0.02, 1.0))
    }

    /// How often an agent is to report.
    pub fn beat(&self) -> Seconds {
        self.settings.beat()
    }

    /// The cluster, with all its workers.
    pub fn cluster(&self) -> &Cluster {
        self.scheduler.cluster()
    }

    /// What a policy would be shown now, and the jobs by position; none if there is nothing to decide.
    pub fn problem(&self) -> Option<(Problem, Vec<JobNumber>)> {
        let problem = self.scheduler.problem().ok().filter(|problem| problem.n_jobs() > 0)?;
        let number = |job: &ActiveJob| self.numbers.get(&job.id).copied();
        let numbers = problem.jobs().iter().map(number).collect::<Option<_>>()?;
        Some((problem, numbers))
    }

    /// What has happened since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// When the decision that is in force was made; none before the first.
    pub fn decided(&self) -> Option<Seconds> {
        self.scheduler.decided()
    }

    fn event(&mut self, at: Seconds, event: &Event<'_>) {
        // Numbers, names and lists of them: there is no key that is not text.
        if let Ok(line) = serde_json::to_string(event) {
            self.step.records.push(Record::Event(at, line));
        }
    }

    fn note(&mut self, text: String, job: Option<JobNumber>, server: Option<String>) {
        self.step.records.push(Record::Note(self.now, Note { text, job, server, is_warning: false }));
    }

    fn warn(&mut self, text: String, job: Option<JobNumber>, server: Option<String>) {
        self.step.records.push(Record::Note(self.now, Note { text, job, server, is_warning: true }));
    }

    /// Puts a job as it is now on disk.
    fn record_job(&mut self, number: JobNumber) {
        if let Some(job) = self.jobs.get_mut(&number) {
            if let (Some(record), Some(run)) = (&mut job.record.run, &job.run) {
                record.counted = run.counted();
            }
            self.step.records.push(Record::Job(Box::new(job.record.clone())));
        }
    }

    /// Puts a job that is over on disk, and keeps it for questions.
    fn put_over(&mut self, record: JobRecord) {
        self.step.records.push(Record::Job(Box::new(record.clone())));
        self.over.push_back(record);
        if self.over.len() > OVER_MAX {
            self.over.pop_front();
        }
    }
}

/// Gives a scheduler the state in which the stored one was last, without the jobs that were over since. Returns the numbers of
/// all jobs that were in it.
///
/// # Errors
/// If it cannot be taken, in words: then the scheduler knows of no job.
fn restore(scheduler: &mut Scheduler, stored: &Stored) -> Result<BTreeMap<JobId, JobNumber>, String> {
    let Some(state) = &stored.scheduler else { return Ok(BTreeMap::new()) };
    let what = "what the policy and the mechanism knew is lost, and jobs start with equal claims";
    let state: SchedulerState = serde_json::from_str(state)
        .map_err(|error| format!("the saved state cannot be read ({error}): {what}"))?;
    scheduler.restore(&state).map_err(|error| format!("the saved state does not fit ({error}): {what}"))?;
    let number = |(id, name): (JobId, &str)| name.parse().ok().map(|number| (id, JobNumber(number)));
    let numbers: BTreeMap<_, _> = scheduler.jobs().filter_map(number).collect();
    let active: BTreeSet<JobNumber> = stored.jobs.iter().map(|job| job.number).collect();
    for (id, _) in numbers.iter().filter(|(_, number)| !active.contains(number)) {
        scheduler.finish(*id);
    }
    Ok(numbers)
}
