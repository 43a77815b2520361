//! A Slurm job: the ranks of a run that were started on a node at one time.

use std::fs;
use std::path::Path;

use apportion::Seconds;

use super::nodes::Node;
use super::queue::{Comment, Entry, Queue, Stage, cancel};
use super::tools::{ToolError, order, quoted};
use super::{Options, PAUSE};
use crate::agent::server_rank::{News, ServerRank};
use crate::protocol::{End, Stop};
use crate::rank::{self, Steer};
use crate::shim::EACH;

/// Time after which a submission that was not answered has not reached Slurm, if Slurm does not show the job.
const UNANSWERED: Seconds = Seconds::new(5.0);

/// Time after which a rank that an earlier scheduler left was never given to Slurm, if Slurm does not show it.
const UNSEEN: Seconds = Seconds::new(30.0);

/// Time after the end of a job in Slurm for which the last documents of its ranks may still appear.
const LAST_WORDS: Seconds = Seconds::new(5.0);

/// Time after which a job is cancelled whose ranks ought to have been killed by their shims; and after that again.
const PATIENCE: Seconds = Seconds::new(10.0);

/// The interval at which a submission that Slurm did not take is tried again.
const AGAIN: Seconds = Seconds::new(2.0);

/// The number of refusals of a job in a row that count as Slurm's answer: a controller that ends, or has just been started, refuses
/// requests that it grants soon after.
const REFUSALS: u32 = 3;

/// The time in s before Slurm's time limit at which ranks are asked to stop, in addition to their grace: Slurm may be a minute
/// early.
const BEFORE_LIMIT: f64 = 60.0;

/// The state of a Slurm job.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// To be submitted, not before this instant.
    New { not_before: Seconds },
    /// Submitted, but not answered.
    Unanswered { since: Seconds },
    /// Left by an earlier scheduler.
    Adopted { since: Seconds },
    /// Known to Slurm by this number, now or before.
    Submitted { id: u64, at: Seconds },
}

/// A rank of a Slurm job.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) rank: u32,
    pub(super) server_rank: ServerRank,
    has_begun: bool,
}

impl Member {
    pub(super) fn new(rank: u32, server_rank: ServerRank) -> Self {
        Self { rank, server_rank, has_begun: false }
    }
}

/// The surroundings of a job that is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// Slurm's jobs, as it last showed them.
    pub(super) queue: &'a Queue,
    /// The job's node.
    pub(super) node: &'a Node,
    pub(super) options: &'a Options,
    pub(super) now: Seconds,
    /// The number of the node's workers that Slurm has to give; none while Slurm does not answer.
    pub(super) n_free: Option<u32>,
}

/// News of a Slurm job.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// A rank has begun to run.
    Begun(u32),
    /// News of a rank.
    News(u32, News),
    /// Slurm does not take the job, for this reason.
    Refused(String),
    /// Slurm does not answer, for this reason.
    Unreachable(String),
    /// It waits in Slurm, for this reason.
    Waits(String),
    /// Slurm has given it up, and its ranks may run on for this time.
    MayRunOn(Seconds),
}

/// A Slurm job.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) comment: Comment,
    pub(super) members: Vec<Member>,
    state: State,
    /// The number of refusals in a row.
    n_refused: u32,
    until: Seconds,
    grace: Seconds,
    stop: Option<(Stop, Seconds)>,
    /// The instant at which it was last cancelled.
    cancelled: Option<Seconds>,
    /// The instant since when Slurm has shown it as over, or not at all.
    gone: Option<Seconds>,
    /// The reason for its wait that was last noted.
    said: Option<String>,
    /// Whether its ranks are waited for although Slurm has given the job up, as was noted.
    is_waited_for: bool,
}

impl Batch {
    /// A Slurm job whose ranks' folders have been made, or were left by an earlier scheduler.
    pub(super) fn new(
        comment: Comment,
        members: Vec<Member>,
        steer: Steer,
        adopted: Option<Seconds>,
    ) -> Self {
        let new = State::New { not_before: Seconds::ZERO };
        Self {
            comment,
            members,
            state: adopted.map_or(new, |since| State::Adopted { since }),
            n_refused: 0,
            until: steer.until,
            grace: steer.grace,
            stop: None,
            cancelled: None,
            gone: None,
            said: None,
            is_waited_for: false,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.members.iter().all(|member| member.server_rank.is_over())
    }

    fn n_workers(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    /// The number of workers that it has asked Slurm for since Slurm was asked for its jobs.
    pub(super) fn n_asked_since(&self, asked: Seconds) -> u32 {
        let since = match self.state {
            State::Submitted { at, .. } => at,
            State::Unanswered { since } => since,
            State::New { .. } | State::Adopted { .. } => return 0,
        };
        if since >= asked { self.n_workers() } else { 0 }
    }

    /// Sends a rank its lease and its stop, if it is to stop. Instants are of this node's clock.
    pub(super) fn steer(&mut self, rank: u32, steer: Steer, now: Seconds) {
        self.until = steer.until;
        self.grace = steer.grace;
        if let Some(stop) = steer.stop.filter(|stop| *stop != Stop::Propose) {
            let since = self.stop.map_or(now, |(_, since)| since);
            self.stop = Some((stop, since));
        }
        let left = (steer.until - now).max(Seconds::ZERO);
        if let Some(member) = self.members.iter_mut().find(|member| member.rank == rank) {
            member.server_rank.steer(Steer { until: left, ..steer });
        }
    }

    /// The news since the last look. The job is submitted if its workers are free, and cancelled if that is due; neither while
    /// Slurm does not answer.
    pub(super) fn look(&mut self, view: &View<'_>) -> Vec<Event> {
        let View { queue, now, n_free, .. } = *view;
        let mut events = Vec::new();
        for member in &mut self.members {
            look_at(member, &mut events);
        }
        if self.is_over() {
            return events;
        }
        let entries = queue.of(&self.comment);
        self.follow(queue, entries, now);
        if matches!(self.state, State::New { not_before } if now >= not_before) {
            if self.stop.is_some() || now >= self.until {
                // It is to stop before it has begun.
                self.end_all(&End::Stopped(None), &mut events);
            } else if n_free.is_some_and(|n_free| n_free >= self.n_workers()) {
                self.submit(view, &mut events);
            }
        }
        events.extend(self.note_waiting(queue.asked, entries));
        if n_free.is_some() {
            events.extend(self.cancel_if_due(entries, now));
        }
        self.give_up_if_gone(queue, entries, now, &mut events);
        events
    }

    /// Notes why it waits in Slurm, once for each reason.
    fn note_waiting(&mut self, asked: Seconds, entries: &[Entry]) -> Option<Event> {
        let is_current = matches!(self.state, State::Submitted { at, .. } if at < asked);
        let waiting = entries.iter().find(|entry| is_current && entry.stage == Stage::Pending)?;
        let is_new = self.said.as_ref() != Some(&waiting.reason);
        self.said = Some(waiting.reason.clone());
        let is_telling = is_new && !["None", "Priority"].contains(&waiting.reason.as_str());
        is_telling.then(|| Event::Waits(format!("Slurm job {}: {}", waiting.id, waiting.reason)))
    }

    /// Takes over its state in Slurm.
    fn follow(&mut self, queue: &Queue, entries: &[Entry], now: Seconds) {
        self.state = match (&self.state, entries.first()) {
            (State::Unanswered { since } | State::Adopted { since }, Some(first)) if queue.asked > *since => {
                State::Submitted { id: first.id, at: now }
            }
            (State::Unanswered { since }, None) if queue.asked > *since + UNANSWERED => {
                State::New { not_before: now }
            }
            (state, _) => state.clone(),
        };
    }

    fn submit(&mut self, view: &View<'_>, events: &mut Vec<Event>) {
        let now = view.now;
        match submit(self, view.node, view.options) {
            Ok(id) => self.state = State::Submitted { id, at: now },
            Err(error @ ToolError::Unreachable { .. }) => {
                self.n_refused = 0;
                self.state = State::Unanswered { since: now };
                events.push(Event::Unreachable(error.to_string()));
            }
            Err(error @ ToolError::NotRun { .. }) => {
                self.state = State::New { not_before: now + AGAIN };
                events.push(Event::Unreachable(error.to_string()));
            }
            Err(ToolError::Refused { .. }) if self.n_refused + 1 < REFUSALS => {
                self.n_refused += 1;
                self.state = State::New { not_before: now + AGAIN };
            }
            Err(error @ ToolError::Refused { .. }) => {
                self.n_refused = 0;
                // If not even the end can be written, the next look that may submit tries again.
                self.state = State::New { not_before: now + PAUSE };
                events.push(Event::Refused(error.to_string()));
                self.end_all(&End::Lost(format!("Slurm did not take it: {error}")), events);
            }
        }
    }

    /// Cancels a job in Slurm that is to run no more: one that waits, one whose shims ought to have killed it long ago, and all but
    /// the first of several submissions.
    fn cancel_if_due(&mut self, entries: &[Entry], now: Seconds) -> Option<Event> {
        if self.cancelled.is_some_and(|at| now < at + PATIENCE) {
            return None;
        }
        let alive = || entries.iter().filter(|entry| entry.stage != Stage::Over);
        let is_to_end = self.stop.is_some() || now >= self.until;
        let asked = self.stop.map_or(self.until, |(_, since)| since.min(self.until));
        let is_overdue = now >= asked + self.grace + PATIENCE;
        let is_killed = matches!(self.stop, Some((Stop::Kill, _)));
        let is_due = |(place, entry): &(usize, &Entry)| {
            *place > 0 || is_overdue || is_killed || (is_to_end && entry.stage == Stage::Pending)
        };
        let due: Vec<u64> = alive().enumerate().filter(is_due).map(|(_, entry)| entry.id).collect();
        if due.is_empty() {
            return None;
        }
        let cancelled = cancel(due);
        self.cancelled = cancelled.is_ok().then_some(now);
        cancelled.err().map(|error| Event::Unreachable(error.to_string()))
    }

    /// Gives up ranks that according to Slurm are over, and that have not reported their end.
    fn give_up_if_gone(&mut self, queue: &Queue, entries: &[Entry], now: Seconds, events: &mut Vec<Event>) {
        let is_known_by = match self.state {
            State::Submitted { at, .. } => at,
            State::Adopted { since } => since + UNSEEN,
            State::New { .. } | State::Unanswered { .. } => return,
        };
        if queue.asked <= is_known_by || entries.iter().any(|entry| entry.stage != Stage::Over) {
            self.gone = None;
            return;
        }
        if now < *self.gone.get_or_insert(now) + LAST_WORDS {
            return;
        }
        let over = self.until + self.grace + PATIENCE;
        if self.may_run_on(entries) && now < over {
            let is_new = !std::mem::replace(&mut self.is_waited_for, true);
            events.extend(is_new.then_some(Event::MayRunOn(over - now)));
            return;
        }
        let end = self.end_by_slurm(entries);
        let is_fault_of_node = !self.members.iter().any(|member| member.has_begun)
            && entries.last().is_some_and(|entry| ["FAILED", "COMPLETED"].contains(&entry.state.as_str()));
        if let End::Lost(why) = &end
            && is_fault_of_node
        {
            events.push(Event::Refused(why.clone()));
        }
        self.end_all(&end, events);
    }

    /// Whether its ranks may run on although Slurm does not show the job as one that runs: Slurm gives up the jobs of a node that does
    /// not answer, or that was set down, whether or not it could kill them, and a controller that has lost its state knows none.
    fn may_run_on(&self, entries: &[Entry]) -> bool {
        let has_begun = self.members.iter().any(|member| member.has_begun);
        entries.last().map_or(has_begun, |entry| entry.state == "NODE_FAIL")
    }

    /// The end that Slurm's words mean for ranks which have reported none.
    fn end_by_slurm(&self, entries: &[Entry]) -> End {
        let has_begun = self.members.iter().any(|member| member.has_begun);
        if !has_begun && (self.stop.is_some() || self.cancelled.is_some()) {
            return End::Stopped(None);
        }
        let last = entries.last().map(|entry| (entry.id, entry.state.as_str(), entry.reason.as_str()));
        let is_by_us = self.stop.is_some() || self.cancelled.is_some();
        if let Some((id, state, reason)) = last.filter(|_| has_begun && !is_by_us) {
            // The kill of a batch process, as for want of memory, is a failure like that of any other rank.
            let is_failure = ["FAILED", "OUT_OF_MEMORY", "COMPLETED"].contains(&state);
            let why = format!("Slurm says of its job {id}: {state} ({reason})");
            return End::Cut { why, is_failure };
        }
        End::Lost(match last {
            Some((id, "FAILED" | "COMPLETED", _)) if !has_begun => format!(
                "Slurm job {id} ended before it could run the program: is this folder, and the program of apportion, the \
                 same on the node? {} in the folder of logs has what it printed",
                self.members.first().map_or_else(String::new, |first| {
                    rank::name(self.comment.run, first.rank) + ".slurm.log"
                })
            ),
            Some((id, state, reason)) => format!("Slurm says of its job {id}: {state} ({reason})"),
            None => "Slurm has no job for it any more".to_owned(),
        })
    }

    fn end_all(&mut self, end: &End, events: &mut Vec<Event>) {
        for member in self.members.iter_mut().filter(|member| !member.server_rank.is_over()) {
            if let Some(end) = member.server_rank.give_up(end.clone()) {
                events.push(Event::News(member.rank, News::Ended(end)));
            }
        }
    }
}

fn look_at(member: &mut Member, events: &mut Vec<Event>) {
    if member.server_rank.is_over() {
        return;
    }
    // On a network's file system, only opening a folder asks for documents of another node.
    let _ = fs::File::open(member.server_rank.folder().path());
    if !member.has_begun && member.server_rank.has_begun() {
        member.has_begun = true;
        events.push(Event::Begun(member.rank));
    }
    for news in member.server_rank.look() {
        if let (false, News::Ended(End::Lost(why))) = (member.has_begun, &news) {
            events.push(Event::Refused(why.clone()));
        }
        events.push(Event::News(member.rank, news));
    }
}

/// Submits the job to Slurm, and answers its number there.
fn submit(batch: &Batch, node: &Node, options: &Options) -> Result<u64, ToolError> {
    let tool = "sbatch";
    let refused = |said: String| ToolError::Refused { tool: "the batch script", said };
    let Some(first) = batch.members.first() else { return Err(refused("it has no ranks".to_owned())) };
    let folder = first.server_rank.folder();
    let folders: Vec<&Path> = batch.members.iter().map(|member| member.server_rank.folder().path()).collect();
    let script = folder.script();
    fs::write(&script, self::script(&options.program, &folders))
        .map_err(|error| refused(format!("{}: {error}", script.display())))?;
    let mut arguments = resources(node, batch.members.len(), options);
    let output = folder.slurm_output().display().to_string().replace('%', "%%");
    let lead = (batch.grace.get() + BEFORE_LIMIT).ceil().min(65_535.0);
    arguments.extend([
        "--parsable".to_owned(),
        format!("--job-name=apportion-{}.{}", batch.comment.run.job, batch.comment.run.incarnation),
        format!("--comment={}", batch.comment.text(batch.members.len())),
        format!("--signal=B:USR1@{lead:.0}"),
        format!("--output={output}"),
        format!("--chdir={}", folder.path().display()),
    ]);
    arguments.extend(options.arguments.iter().cloned());
    arguments.push(script.display().to_string());
    let printed = order(tool, &arguments)?;
    // The output is `ID`, or `ID;CLUSTER`.
    let id = printed.trim().split(';').next().and_then(|id| id.parse().ok());
    id.ok_or(ToolError::Unreachable { tool, said: format!("`{}` is no number of a job", printed.trim()) })
}

/// The arguments by which a job of `n_ranks` ranks asks for a part of a node: a worker for each rank, and the same part of
/// processors and memory.
pub(super) fn resources(node: &Node, n_ranks: usize, options: &Options) -> Vec<String> {
    let n_ranks = u32::try_from(n_ranks).unwrap_or(u32::MAX);
    let n_cpus = (node.n_cpus / node.n_workers.max(1)).saturating_mul(n_ranks).max(1);
    let memory_mib = (node.memory_mib / u64::from(node.n_workers.max(1))).saturating_mul(u64::from(n_ranks));
    let mut arguments = vec![
        format!("--partition={}", options.partition),
        format!("--nodelist={}", node.name),
        "--nodes=1".to_owned(),
        "--ntasks=1".to_owned(),
        format!("--cpus-per-task={n_cpus}"),
        format!("--gres=gpu:{n_ranks}"),
        "--no-requeue".to_owned(),
        "--open-mode=append".to_owned(),
    ];
    if memory_mib > 0 {
        // A job that asks for no memory would have all of it.
        arguments.push(format!("--mem={memory_mib}"));
    }
    if let Some(limit) = &options.time_limit {
        arguments.push(format!("--time={limit}"));
    }
    arguments
}

fn script(program: &Path, folders: &[&Path]) -> String {
    let folders: Vec<String> = folders.iter().map(|folder| quoted(folder)).collect();
    format!("#!/bin/sh\nexec {} shim {EACH} {}\n", quoted(program), folders.join(" "))
}
