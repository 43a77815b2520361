//! The scheduler's core: a state machine without input or output.
//!
//! In: [`Input`]s and the instant at which they come. Out: a [`Step`]: records to be put on disk, and effects that follow once they
//! are there. It owns jobs and their incarnations, leases, servers, the mechanism and the policy. It opens no file and no socket,
//! and reads no clock.
//!
//! A job that has workers has a *placement* (what the round gave it, and until when) and a *run* (what may be running,
//! and on which workers it may still be). All that the core does follows from the difference of the two: a run without its
//! placement is asked to stop, a placement without a run is started when its workers are free, and a run on its placement
//! has its lease extended. A worker is free when the end of each rank on it has been reported, or when the last lease that
//! any server may have been told is over, with the grace and some slack.

mod accounts;
mod adopt;
mod answers;
mod charges;
mod ends;
mod job;
mod late;
mod leases;
mod orders;
mod prices;
mod record;
mod removal;
mod reports;
mod requests;
mod rounds;
mod server;
mod settings;
mod situation;
mod slices;
mod spans;
mod speeds;
mod starts_and_stops;
mod unfit;
mod why;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use apportion::index::{Id, JobId, WorkerId};
use apportion::problem::ActiveJob;
use apportion::scheduler::Scheduler;
use apportion::simulator::{Event, PriceChange};
use apportion::workload::Combination;
use apportion::{Cluster, Problem, Seconds};
use serde::Serialize;

use accounts::Accounts;
use job::{LiveJob, Placement};
use rounds::Timeline;
use server::Server;
use unfit::Unfit;

pub use answers::{JobView, NextView, PlaceView, ServerView, State};
pub use charges::{Charge, Charges};
pub use record::{
    How, JobRecord, LateEnd, Note, Outcome, Record, Removal, RunRecord, ServerRecord, Stored, UnheardRecord,
    UnloggedRecord,
};
pub use requests::{Answer, Refusal, Request, Submission};
pub use settings::{SettingError, Settings};
pub use situation::{PastView, SITUATION_FORMAT, SituationView};
pub use spans::{Span, Spans};
pub use why::{HolderView, TypeView, Why};

use crate::protocol::{JobNumber, Orders, Report, Run};

/// The most jobs that are over and can still be asked about.
pub const OVER_MAX: usize = 1000;

/// The most refused servers that are remembered, so that each is noted only once.
const REFUSED_MAX: usize = 1000;

/// An input of the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An agent's report.
    Report(Report),
    /// A request, and the number by which its answer is known.
    Request(u64, Request),
    /// A wake-up when time has passed: see [`Core::wake_at`].
    Wake,
}

/// An effect of a step outside of the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Orders, to the server of this name.
    Send(String, Orders),
    /// The answer to a request.
    Answer(u64, Result<Answer, Refusal>),
}

/// The outcome of an input. Effects leave only when all of the records are on disk.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "what is not recorded is lost"]
pub struct Step {
    /// Records to be put on disk together.
    pub records: Vec<Record>,
    /// Effects after that, in order.
    pub effects: Vec<Effect>,
    /// Why the report that was the input is not heeded, and what its sender's operator can do; none if it is heeded.
    pub refused: Option<String>,
}

/// Counters of events since the scheduler's start.
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
    /// Runs that were over although their end had not been reported.
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
    /// A number by which the submissions of this start differ from those of others.
    drawn: u64,
    /// Jobs that fit no worker type of the cluster.
    unfit: BTreeMap<JobNumber, Unfit>,
    /// Jobs that are over, the newest last.
    over: VecDeque<JobRecord>,
    servers: BTreeMap<String, Server>,
    /// Servers that are removed as soon as nothing can run there.
    leaving: BTreeSet<String>,
    /// Servers whose last report was refused, and why.
    refused: BTreeMap<String, String>,
    /// Starts that were reported and are of no job of these records, as was noted.
    unknown: BTreeSet<Run>,
    /// The server of each worker, and its place there; none before a server with the worker has joined.
    places: Vec<Option<(String, u32)>>,
    /// The jobs whose runs may be on each worker.
    holders: Vec<Vec<JobNumber>>,
    /// The jobs that were placed on each worker in this round. Some may have no place there any more.
    placed: Vec<Vec<JobNumber>>,
    /// The instant before which no server that was heard of becomes silent.
    silent_after: Seconds,
    timeline: Option<Timeline>,
    accounts: Accounts,
    slices: BTreeMap<Combination<JobId>, slices::SliceLog>,
    counters: Counters,
    /// The servers on which each job has failed since it last ended well.
    failed_on: BTreeMap<JobNumber, BTreeSet<String>>,
    /// Number of rounds in the event log, over all starts.
    n_rounds: u64,
    /// Whether a job has come or gone, a server come, or a back-off ended, since idle workers were last given to waiting jobs.
    is_vacant: bool,
    now: Seconds,
    /// The instant of this start of the scheduler.
    opened: Seconds,
    /// The latest instant for the next wake-up, as the driver was told after the last input.
    due: Seconds,
    /// Changes of prices that are still to come, in order of time.
    prices: VecDeque<PriceChange>,
    /// The instant up to which servers are given time to report after the scheduler itself was away: until then no run is over for
    /// want of a report.
    listens_until: Seconds,
    /// The instant since when no input is taken, because the disk refuses the step of the last one; none if it does not.
    held_up: Option<Seconds>,
    /// The instant at which waiting jobs were last looked at.
    looked: Seconds,
    /// Jobs to be looked at before the step ends.
    touched: BTreeSet<JobNumber>,
    /// Servers for which there may be news.
    to_tell: BTreeSet<String>,
    /// The present step.
    step: Step,
}

impl Core {
    /// A scheduler that continues the stored one. `scheduler` has no jobs, and all its workers are up.
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
        let restored = adopt::restore(&mut scheduler, &stored);
        for worker in (0..n_workers).map(WorkerId::from_index) {
            // The worker exists.
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
            leaving: BTreeSet::new(),
            refused: BTreeMap::new(),
            unknown: BTreeSet::new(),
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
            opened: now,
            due: now,
            prices: VecDeque::new(),
            listens_until: now + settings.silence,
            held_up: None,
            looked: now,
            touched: BTreeSet::new(),
            to_tell: BTreeSet::new(),
            step: Step::default(),
        };
        let knows = restored.is_ok() && stored.scheduler.is_some();
        match restored {
            Ok(numbers) => core.numbers = numbers,
            Err(text) => core.warn(text, None, None),
        }
        for doubt in settings.doubts(core.scheduler.options().round_length) {
            core.warn(doubt, None, None);
        }
        core.adopt(stored, knows);
        let step = std::mem::take(&mut core.step);
        Ok((core, step))
    }

    /// The step that follows from an input at `now`, an instant on a clock that never goes back, not over starts either.
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
            // Where many servers report, some report always comes before the core would be woken.
            self.looked = self.now;
            let due = self.jobs.iter().filter(|(_, job)| job.waits_for_time(self.now));
            self.touched.extend(due.map(|(number, _)| *number));
        }
        self.note_rested();
        self.advance();
        self.start_and_stop();
        self.refill();
        self.start_and_stop();
        self.remove_gone();
        self.send_orders();
        self.due = self.wake_at();
        std::mem::take(&mut self.step)
    }

    /// The last step before the scheduler ends: it puts the time counted up to now on disk. Jobs run on.
    pub fn close(&mut self, now: Seconds) -> Step {
        self.now = self.now.max(now);
        self.apply_prices();
        self.flush_slices();
        self.record_running();
        std::mem::take(&mut self.step)
    }

    /// The instant at which it wants to be woken, if no input comes before.
    pub fn wake_at(&self) -> Seconds {
        let beat = (self.looked + self.look_beat()).max(self.now);
        match self.timeline {
            Some(timeline) => beat.min(timeline.next(&self.settings)).max(self.now),
            None => beat,
        }
    }

    /// The interval at which waiting jobs are looked at: waits and leases may end without any input.
    fn look_beat(&self) -> Seconds {
        Seconds::new((self.scheduler.options().round_length.get() / 20.0).clamp(0.02, 1.0))
    }

    /// The interval at which an agent is to report.
    pub fn beat(&self) -> Seconds {
        self.settings.beat()
    }

    /// The cluster, with all its workers.
    pub fn cluster(&self) -> &Cluster {
        self.scheduler.cluster()
    }

    /// The problem that a policy would be shown now, and the jobs by position; none if there is nothing to decide.
    pub fn problem(&self) -> Option<(Problem, Vec<JobNumber>)> {
        let problem = self.scheduler.problem().ok().filter(|problem| problem.n_jobs() > 0)?;
        let number = |job: &ActiveJob| self.numbers.get(&job.id).copied();
        let numbers = problem.jobs().iter().map(number).collect::<Option<_>>()?;
        Some((problem, numbers))
    }

    /// The counters since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The instant of the decision that is in force; none before the first.
    pub fn decided(&self) -> Option<Seconds> {
        self.scheduler.decided()
    }

    fn event(&mut self, at: Seconds, event: &Event<'_>) {
        // Events hold numbers, names and lists of them: no key is anything but text.
        if let Ok(line) = serde_json::to_string(&event.named(self.scheduler.cluster())) {
            self.step.records.push(Record::Event(at, line));
        }
    }

    fn note(&mut self, text: String, job: Option<JobNumber>, server: Option<String>) {
        self.step.records.push(Record::Note(self.now, Note { text, job, server, is_warning: false }));
    }

    fn warn(&mut self, text: String, job: Option<JobNumber>, server: Option<String>) {
        self.step.records.push(Record::Note(self.now, Note { text, job, server, is_warning: true }));
    }

    /// Puts a job as it is now on disk, and those that share its workers: the accounts of all agree there.
    fn record_job(&mut self, number: JobNumber) {
        for number in self.sharing(number) {
            self.record_one(number);
        }
    }

    fn record_one(&mut self, number: JobNumber) {
        let (unlogged, accounts_for) = (self.unlogged(number), self.accounts_for(number));
        if let Some(job) = self.jobs.get_mut(&number) {
            if let (Some(record), Some(run)) = (&mut job.record.run, &job.run) {
                (record.counted, record.logged) = (run.counted(), Some(run.logged));
                record.charges = run.charges.clone();
                let is_here = |placement: &&Placement| placement.workers == run.workers();
                record.lease_end =
                    run.lease_end(job.placement.as_ref().filter(is_here).map(|place| place.until));
                // Of two that share, the account is one's.
                let untold = self.accounts.untold(run.lease.0, run.lease.1);
                record.untold = Some(if accounts_for { untold } else { Seconds::ZERO });
                record.unlogged = Some(unlogged);
                record.beside = run.beside.clone();
            }
            self.step.records.push(Record::Job(Box::new(job.record.clone())));
        }
    }

    /// Puts the present records of all jobs that may be running on disk.
    fn record_running(&mut self) {
        let running = |(number, job): (&JobNumber, &LiveJob)| job.run.is_some().then_some(*number);
        for number in self.jobs.iter().filter_map(running).collect::<Vec<_>>() {
            self.record_job(number);
        }
    }

    /// Puts a job that is over on disk, and keeps it to answer questions.
    fn put_over(&mut self, record: JobRecord) {
        self.step.records.push(Record::Job(Box::new(record.clone())));
        self.over.push_back(record);
        if self.over.len() > OVER_MAX {
            self.over.pop_front();
        }
    }
}
