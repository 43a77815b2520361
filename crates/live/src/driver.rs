//! The scheduler at work: its core and its store on a thread of their own, and a handle for all that talk to it.
//!
//! The thread takes one input after the other: the step that follows is put on disk, and only then are answers and orders sent.
//! Where the disk refuses, nothing is ordered and nothing new is taken until it takes the step: leases run out on their nodes
//! meanwhile, and [`Client::health`] reports it. Questions are answered.

mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use apportion::index::{Id, JobIndex};
use apportion::policy::Policy;
use apportion::scheduler::Scheduler;
use apportion::simulator::PriceChange;
use apportion::{Problem, Seconds};
use serde::Serialize;
use thiserror::Error;
use tokio::sync::{oneshot, watch};

use crate::clock::{Clock, wall_s};
use crate::core::{
    Answer, Core, Counters, Effect, Input, Note, Record, Refusal, Request, SettingError, Settings, Step,
};
use crate::log;
use crate::mail::Mail;
use crate::protocol::{JobNumber, Orders, Report};
use crate::store::{Lines, Store, StoreError};

/// The interval at which the clocks are noted, so that a restart knows how long the scheduler was away.
const CLOCK_BEAT: Seconds = Seconds::new(5.0);

/// The pause before the disk is tried again after it has refused.
const DISK_PAUSE: Duration = Duration::from_millis(500);

/// The most notes that are kept in memory.
const NOTES_MAX: usize = 200;

/// Why a scheduler cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its records cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A setting is out of range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The system has no thread for the scheduler.
    #[error("no thread can be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// The scheduler has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the scheduler is ending")]
pub struct Closed;

/// Why there is no answer. The request may have been granted all the same, or may be later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unanswered {
    /// The scheduler has ended.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// The scheduler has not answered in time.
    #[error("the scheduler has not answered in time")]
    Late,
}

/// The scheduler's answer to a report: the interval at which it wants reports, or why it does not heed this one, in words.
pub type Verdict = Result<Seconds, String>;

/// A part of the event log: its lines, in order, with their numbers; or why it cannot be read.
pub type Events = Result<Vec<(i64, String)>, String>;

/// The state of the scheduler's thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    /// The number of this start of the scheduler, from 1.
    pub epoch: u64,
    /// The present instant on its clock, in s.
    pub now_s: f64,
    /// The time since the last input, in s.
    pub idle_s: f64,
    /// Time since the first round of the policy's newest decision began, in s: 0 before it begins, none before the first decision.
    pub decided_s_ago: Option<f64>,
    /// Why no input is taken at present; none if all is well.
    pub disk: Option<String>,
    /// Counters since its start.
    pub counters: Counters,
}

enum Message {
    Input(Input),
    /// A report whose sender waits for the verdict.
    Report(Box<Report>, oneshot::Sender<Verdict>),
    Ask(Request, Sender<Result<Answer, Refusal>>),
    /// A request for the problem that a policy would be shown now, and the jobs by position.
    Problem(Sender<Option<(Problem, Vec<JobNumber>)>>),
    /// A listener for a server: it gets the server's orders from now on.
    Listen(String, Sender<Orders>),
    Events(Lines, Sender<Events>),
    End,
}

/// The part of the thread's state that others may read.
#[derive(Debug)]
struct Shown {
    health: Health,
    clock: Clock,
    decided: Option<Seconds>,
    notes: Vec<(Seconds, Note)>,
}

/// A handle by which to talk to a scheduler. Its clones talk to the same one.
#[derive(Clone, Debug)]
pub struct Client {
    sender: Sender<Message>,
    shown: Arc<Mutex<Shown>>,
    mail: Mail,
    /// A policy of the same kind as the scheduler's, which explains shares; none where the scheduler's gives no shares.
    explainer: Option<Arc<Mutex<Box<dyn Policy>>>>,
    /// The first line of the event log.
    header: Arc<str>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Input(_) => "Input",
            Self::Report(..) => "Report",
            Self::Ask(..) => "Ask",
            Self::Problem(_) => "Problem",
            Self::Listen(..) => "Listen",
            Self::Events(..) => "Events",
            Self::End => "End",
        })
    }
}

impl Client {
    /// Sends a request and waits for the answer: whatever it promises is on disk.
    ///
    /// # Errors
    /// If the scheduler is ending. The request may or may not have been granted.
    pub fn ask(&self, request: Request) -> Result<Result<Answer, Refusal>, Closed> {
        let (sender, receiver) = channel();
        self.sender.send(Message::Ask(request, sender)).map_err(|_| Closed)?;
        self.with_more(receiver.recv().map_err(|_| Closed)?)
    }

    /// An answer, extended by facts about a job that the core does not know: that the disk refuses, and the policy's explanation.
    fn with_more(&self, mut answer: Result<Answer, Refusal>) -> Result<Result<Answer, Refusal>, Closed> {
        if let Ok(Answer::Why(why)) = &mut answer {
            if let Some(disk) = self.health().disk {
                why.because.insert(0, format!("The scheduler's disk refuses, and nothing is taken or ordered until it does not: {disk}."));
            }
            why.because.extend(self.in_the_policys_terms(why.job.job)?);
        }
        Ok(answer)
    }

    /// An explanation of a job's share by a policy of the scheduler's kind, computed here and now; none if the policy has none.
    fn in_the_policys_terms(&self, job: JobNumber) -> Result<Option<String>, Closed> {
        let Some(explainer) = &self.explainer else { return Ok(None) };
        let (sender, receiver) = channel();
        self.sender.send(Message::Problem(sender)).map_err(|_| Closed)?;
        let Some((problem, jobs)) = receiver.recv().map_err(|_| Closed)? else { return Ok(None) };
        let Some(position) = jobs.iter().position(|other| *other == job) else { return Ok(None) };
        let mut policy = explainer.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(policy.explain(&problem).ok().map(|explanation| {
            let position = JobIndex::from_index(position);
            let part = &explanation.jobs[position.index()];
            let time = 100.0 * part.time;
            format!(
                "Asked now, the policy gives it {time:.1} % of the time: {}.",
                explanation.in_words(position)
            )
        }))
    }

    /// Sends a request and waits for the scheduler's answer, at most this long. The policy's explanation of a job
    /// ([`Request::Why`]) is computed here after that, and its time is not bounded.
    ///
    /// # Errors
    /// If there is no answer in time, or the scheduler is ending.
    pub fn ask_within(
        &self,
        request: Request,
        patience: Duration,
    ) -> Result<Result<Answer, Refusal>, Unanswered> {
        let (sender, receiver) = channel();
        self.sender.send(Message::Ask(request, sender)).map_err(|_| Closed)?;
        Ok(self.with_more(within(&receiver, patience)?)?)
    }

    /// Lines of the event log. If those after line 0 are asked for, its header precedes them as line 0: the cluster and the policy
    /// of this start.
    ///
    /// # Errors
    /// If they have not come in time, or the scheduler is ending.
    pub fn events(&self, which: Lines, patience: Duration) -> Result<Events, Unanswered> {
        let (sender, receiver) = channel();
        self.sender.send(Message::Events(which, sender)).map_err(|_| Closed)?;
        let mut lines = within(&receiver, patience)?;
        if let (Ok(lines), Lines::After(..=0, _)) = (&mut lines, which) {
            lines.insert(0, (0, self.header.to_string()));
        }
        Ok(lines)
    }

    /// Passes on an agent's report.
    ///
    /// # Errors
    /// If the scheduler is ending.
    pub fn report(&self, report: Report) -> Result<(), Closed> {
        self.sender.send(Message::Input(Input::Report(report))).map_err(|_| Closed)
    }

    /// Passes on an agent's report, and gives the verdict on it once all that follows from the report is on disk. There is no
    /// verdict while the disk refuses.
    ///
    /// # Errors
    /// If the scheduler is ending.
    pub fn report_and_hear(&self, report: Report) -> Result<oneshot::Receiver<Verdict>, Closed> {
        let (sender, receiver) = oneshot::channel();
        self.sender.send(Message::Report(Box::new(report), sender)).map_err(|_| Closed)?;
        Ok(receiver)
    }

    /// The newest orders for a server that nothing in this process [listens](Self::listen) for, and the ones that follow;
    /// none before there were any.
    pub fn newest_orders(&self, server: &str) -> Option<watch::Receiver<Arc<Orders>>> {
        self.mail.of(server)
    }

    /// A channel of the orders for the server of this name, from now on. An earlier listener for it gets none any more.
    ///
    /// # Errors
    /// If the scheduler is ending.
    pub fn listen(&self, server: &str) -> Result<Receiver<Orders>, Closed> {
        let (sender, receiver) = channel();
        self.sender.send(Message::Listen(server.to_owned(), sender)).map_err(|_| Closed)?;
        Ok(receiver)
    }

    /// The present state of the scheduler's thread.
    pub fn health(&self) -> Health {
        let shown = lock(&self.shown);
        let now = shown.clock.now();
        Health {
            idle_s: now.get() - shown.health.now_s,
            decided_s_ago: shown.decided.map(|decided| (now - decided).get().max(0.0)),
            ..shown.health.clone()
        }
    }

    /// The newest notes, the oldest of them first.
    pub fn notes(&self) -> Vec<(Seconds, Note)> {
        lock(&self.shown).notes.clone()
    }
}

fn within<T>(receiver: &Receiver<T>, patience: Duration) -> Result<T, Unanswered> {
    receiver.recv_timeout(patience).map_err(|error| match error {
        RecvTimeoutError::Timeout => Unanswered::Late,
        RecvTimeoutError::Disconnected => Unanswered::Closed(Closed),
    })
}

fn lock(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running scheduler. When it is dropped, the scheduler ends and touches no job.
#[derive(Debug)]
pub struct Driver {
    client: Client,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts a scheduler on the records of a store. `scheduler` has no jobs. `explainer` is a policy of the same kind as its own,
    /// by which shares are explained; none where that policy decides inside rounds. Prices are those that the scheduler's cluster
    /// states, until they change at instants of its clock, which begins with its first start.
    ///
    /// # Errors
    /// If the store cannot be opened, a setting is out of range, or there is no thread.
    pub fn start(
        settings: Settings,
        scheduler: Scheduler,
        explainer: Option<Box<dyn Policy>>,
        prices: Vec<PriceChange>,
        path: &Path,
    ) -> Result<Self, StartError> {
        let (mut store, mut stored) = Store::open(path)?;
        let sure = store.node_clock()?;
        stored.is_clock_sure = sure.is_some();
        let clock = if let Some(clock) = sure {
            clock
        } else {
            // Where the wall clock was set back, too, it shows no less than what has been written. Lines that cannot be read are told of
            // where they are asked for.
            let last = store.last_instant().unwrap_or(Seconds::ZERO);
            Clock::at(Clock::resumed(store.clock()?).now().max(last))
        };
        let (epoch, now) = (stored.epoch, clock.now());
        let header = log::header(&scheduler).into();
        let (mut core, step) = Core::open(settings, scheduler, stored, now)?;
        store.commit(&step.records)?;
        store.commit(&core.set_prices(prices).records)?;
        store.note_clock(now, wall_s())?;
        let (now_s, counters) = (now.get(), core.counters());
        let health = Health { epoch, now_s, idle_s: 0.0, decided_s_ago: None, disk: None, counters };
        let notes = store.notes(u32::try_from(NOTES_MAX).unwrap_or(u32::MAX))?;
        let shown = Arc::new(Mutex::new(Shown { health, clock, decided: core.decided(), notes }));
        let (sender, receiver) = channel();
        let explainer = explainer.map(|explainer| Arc::new(Mutex::new(explainer)));
        let mail = Mail::default();
        let client = Client { sender, shown: Arc::clone(&shown), mail: mail.clone(), explainer, header };
        let work = Work {
            core,
            store,
            clock,
            shown,
            mail,
            listeners: BTreeMap::new(),
            asked: BTreeMap::new(),
            n_asked: 0,
            noted: now,
            keep_events: settings.keep_events,
            warned: BTreeSet::new(),
        };
        let thread = Builder::new().name("scheduler".into()).spawn(move || work.run(&receiver))?;
        Ok(Self { client, thread: Some(thread) })
    }

    /// A handle by which to talk to the scheduler.
    pub fn client(&self) -> Client {
        self.client.clone()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.client.sender.send(Message::End);
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has reported it.
            let _ = thread.join();
        }
    }
}

/// The state of the scheduler's thread.
struct Work {
    core: Core,
    store: Store,
    clock: Clock,
    shown: Arc<Mutex<Shown>>,
    mail: Mail,
    listeners: BTreeMap<String, Sender<Orders>>,
    asked: BTreeMap<u64, Sender<Result<Answer, Refusal>>>,
    n_asked: u64,
    noted: Seconds,
    keep_events: u64,
    /// Warnings of the store that this start has noted.
    warned: BTreeSet<String>,
}

impl Work {
    fn run(mut self, receiver: &Receiver<Message>) {
        loop {
            let wait = (self.core.wake_at() - self.clock.now()).max(Seconds::ZERO);
            let wait = Duration::try_from_secs_f64(wait.get()).unwrap_or(DISK_PAUSE);
            let mut reporter = None;
            let input = match receiver.recv_timeout(wait) {
                Ok(Message::Input(input)) => input,
                Ok(Message::Report(report, sender)) => {
                    reporter = Some(sender);
                    Input::Report(*report)
                }
                Ok(Message::Ask(request, sender)) => {
                    self.n_asked += 1;
                    self.asked.insert(self.n_asked, sender);
                    Input::Request(self.n_asked, request)
                }
                Ok(Message::Listen(server, sender)) => {
                    self.listeners.insert(server, sender);
                    continue;
                }
                Ok(Message::Problem(sender)) => {
                    // A client that has stopped waiting needs no answer.
                    let _ = sender.send(self.core.problem());
                    continue;
                }
                Ok(Message::Events(which, sender)) => {
                    self.tell_events(which, &sender);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => Input::Wake,
                Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => break,
            };
            let step = self.core.take(self.clock.now(), input);
            if !self.put(&step, receiver) {
                return;
            }
            let refused = step.refused.clone();
            self.say(step);
            if let Some(reporter) = reporter {
                // An agent that does not wait any more reports again.
                let _ = reporter.send(refused.map_or_else(|| Ok(self.core.beat()), Err));
            }
            self.show(None);
            if self.clock.now() >= self.noted + CLOCK_BEAT {
                self.noted = self.clock.now();
                // If it fails, the next start assumes that the scheduler was away a little longer.
                let _ = self.store.note_clock(self.clock.now(), wall_s());
                self.drop_old();
            }
        }
        // If it fails, the next start goes on with the last count on disk.
        let _ = self.store.commit(&self.core.close(self.clock.now()).records);
        // The next start takes the clock of the last note.
        let _ = self.store.note_clock(self.clock.now(), wall_s());
    }

    /// Puts a step on disk, however long it takes. False if the scheduler is to end before it is there.
    fn put(&mut self, step: &Step, receiver: &Receiver<Message>) -> bool {
        let mut waiting = Vec::new();
        loop {
            match self.store.commit(&step.records) {
                Ok(()) => break,
                Err(error) => self.show(Some(error.to_string())),
            }
            match receiver.recv_timeout(DISK_PAUSE) {
                Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => return false,
                // Reports come again. Questions are answered; requests that would change something wait for the disk.
                Ok(Message::Ask(request, sender)) => match self.core.look_up(self.clock.now(), &request) {
                    Some(answer) => drop(sender.send(answer)),
                    None => waiting.push((request, sender)),
                },
                Ok(Message::Listen(server, sender)) => drop(self.listeners.insert(server, sender)),
                Ok(Message::Problem(sender)) => drop(sender.send(None)),
                Ok(Message::Events(which, sender)) => self.tell_events(which, &sender),
                Ok(Message::Input(_) | Message::Report(..)) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        for (request, sender) in waiting {
            self.n_asked += 1;
            self.asked.insert(self.n_asked, sender);
            let step = self.core.take(self.clock.now(), Input::Request(self.n_asked, request));
            if !self.put(&step, receiver) {
                return false;
            }
            self.say(step);
        }
        true
    }

    /// Sends the effects of a step that is on disk.
    fn say(&mut self, step: Step) {
        let notes = step.records.into_iter().filter_map(|record| match record {
            Record::Note(at, note) => Some((at, note)),
            _ => None,
        });
        self.show_notes(notes);
        for effect in step.effects {
            match effect {
                // An agent that does not listen any more reports again, and gets its orders then.
                Effect::Send(server, orders) => match self.listeners.get(&server) {
                    Some(listener) => drop(listener.send(orders)),
                    None => self.mail.put(&server, orders),
                },
                Effect::Answer(number, answer) => {
                    if let Some(asked) = self.asked.remove(&number) {
                        let _ = asked.send(answer);
                    }
                }
            }
        }
    }

    fn show(&mut self, disk: Option<String>) {
        let mut shown = lock(&self.shown);
        shown.health.now_s = self.clock.now().get();
        shown.health.disk = disk;
        shown.decided = self.core.decided();
        shown.health.counters = self.core.counters();
    }
}
