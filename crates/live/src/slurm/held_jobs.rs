//! The executor of jobs that users submit by Slurm's own `sbatch`, held: apportion decides when and where each one runs.
//!
//! A Slurm job is one job of apportion for all its life: it is released on the nodes of its workers, and put back into Slurm's
//! queue, held, when these are given to another job. Its program is its user's own, and does not know apportion; so its steps are
//! unknown, and a lease has no other clock than this process: while it is away, jobs run on.
//!
//! A file for each job has its numbers in Slurm and in apportion, and the order that it was released for. For all else Slurm's
//! answers count; [`steered`] has the consequences.

mod commands;
mod jobs;
mod intake;
mod arrays;
mod claim;
mod terms;
mod kept;
mod look;
mod ranks;
mod steered;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use apportion::Seconds;

use super::nodes::Node;
use super::reporting_node::ReportingNode;
use super::tools::ToolError;
use super::watch::{Seen, watch};
use super::{LOOK, NEVER, PAUSE, SlurmError, State};
use crate::agent::processes::{at, lock, next_boot, number};
use crate::agent::{Act, Agent, Home, Link, LinkError, ProcessesError, Server};
use crate::clock;
use crate::files;
use crate::protocol::{End, JobNumber, Orders, Stop};
use arrays::take_apart;
use claim::{Claim, Claimed};
use commands::{carry_out, steer, tell};
use intake::{check_held, unsteerable};
use jobs::Jobs;
use kept::{Kept, Known, Order, Place};
use look::{Event, View};
use ranks::{adopted, want};
use steered::Steered;
use terms::Shape;

pub use intake::{Intake, Newcomer, NotTaken};
pub use jobs::{HeldJob, kill_wait};

/// Time for which runs of an earlier start go on without orders of the scheduler.
const ADOPTED: Seconds = Seconds::new(120.0);

/// The word in Slurm's reasons if a node could not start a job.
const LAUNCH: &str = "launch";

/// The longest time for which new jobs are taken in at one look: each takes some requests to Slurm, and nothing else is done
/// meanwhile.
const INTAKE: Seconds = Seconds::new(0.5);

/// The interval at which the scheduler is asked which jobs are over.
const OVER_BEAT: Seconds = Seconds::new(1.0);

/// The options of an executor of held jobs.
#[derive(Clone, Debug)]
pub struct HeldJobOptions {
    /// The partition.
    pub partition: String,
    /// The folder for documents that survive a restart.
    pub folder: PathBuf,
    /// The nodes, and the type of each one's workers as the throughputs name it.
    pub nodes: Vec<(Node, String)>,
    /// Time after its order at which a run has failed to start if it has not begun.
    pub start_limit: Seconds,
}

/// An executor of the held jobs of a Slurm partition, which it releases and puts back.
#[derive(Debug)]
pub struct HeldJobExecutor {
    partition: String,
    folder: PathBuf,
    nodes: Vec<ReportingNode>,
    /// The steered jobs, by Slurm's number.
    steered: BTreeMap<u64, Steered>,
    /// Jobs that are not taken in, as Slurm shows them, and the reasons.
    refused: BTreeMap<u64, (Option<HeldJob>, String)>,
    /// Slurm's last answer, and the instant of the request.
    seen: (Jobs, Seconds),
    /// The scheduler's jobs that are over, with whether they were cancelled, and the instant of the request.
    over: (BTreeMap<JobNumber, bool>, Seconds),
    /// The claim to the partition.
    claim: Claim,
    /// Sentences about the start for the operator.
    words: Vec<String>,
    /// Time after which a node that lets a job wait and starts none gets no job for a while.
    patience: Seconds,
    _lock: File,
}

impl HeldJobExecutor {
    /// Takes over the jobs of an earlier start.
    ///
    /// # Errors
    /// If the folder cannot be used, or another scheduler has it or the partition's jobs.
    pub fn open(options: HeldJobOptions) -> Result<Self, SlurmError> {
        let HeldJobOptions { partition, folder, nodes, start_limit } = options;
        let jobs = folder.join("jobs");
        fs::create_dir_all(&jobs).map_err(at(&jobs))?;
        let path = folder.join("lock");
        let Some(lock) = lock(&path).map_err(at(&path))? else {
            return Err(ProcessesError::Taken(folder.display().to_string()).into());
        };
        let key = super::key(&folder).map_err(at(&folder))?;
        let (mut steered, mut words) = (BTreeMap::new(), Vec::new());
        let mut claim = Claim::new(&partition, &folder, key);
        match claim.make() {
            Ok(Claimed::Own) => {}
            Ok(Claimed::Another(mark)) => {
                return Err(SlurmError::Claimed { partition, by: mark.in_words() });
            }
            Ok(Claimed::Unmarked(why)) => {
                words.push(format!("a second scheduler of this partition would not be noticed: {why}"));
            }
            Err(error) => {
                words.push(format!("{error}; whether another scheduler has this partition is not known yet"));
            }
        }
        let until = clock::node_now() + ADOPTED;
        for entry in fs::read_dir(&jobs).map_err(at(&jobs))? {
            let path = entry.map_err(at(&jobs))?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match files::read::<Kept>(&path) {
                Ok(kept) => drop(steered.insert(kept.id, Steered::new(kept, until))),
                Err(error) => {
                    let aside = path.with_extension("aside");
                    fs::rename(&path, &aside).map_err(at(&aside))?;
                    words.push(format!("{} cannot be read ({error}) and is set aside", path.display()));
                }
            }
        }
        let reporting = |(node, worker_type): (Node, String)| {
            let home = Home {
                state: folder.join("nodes").join(&node.name),
                checkpoints: PathBuf::new(),
                shim: Vec::new(),
            };
            fs::create_dir_all(&home.state).map_err(at(&home.state))?;
            let server = Server { name: node.name.clone(), worker_type, n_workers: node.n_workers };
            let boot = next_boot(&home).map_err(at(&home.state))?;
            let agent = Agent::new(server, boot, adopted(&steered, &node.name, until));
            Ok(ReportingNode::new(node, agent.with_home(number(&home).map_err(at(&home.state))?)))
        };
        let nodes = nodes.into_iter().map(reporting).collect::<Result<_, ProcessesError>>()?;
        let (seen, over) = ((Jobs::default(), NEVER), (BTreeMap::new(), NEVER));
        Ok(Self {
            partition,
            folder,
            nodes,
            steered,
            refused: BTreeMap::new(),
            seen,
            over,
            claim,
            words,
            // The order and its release take their part of the limit.
            patience: start_limit / 2.0,
            _lock: lock,
        })
    }

    /// Carries out the scheduler's orders until `stop`, and passes sentences for the operator to `say`. `link` is the way to the
    /// scheduler for the node of this name; each node reports at least every `beat`. Jobs go on afterwards.
    ///
    /// # Errors
    /// If there is no way to the scheduler, or another scheduler has come to claim the partition.
    pub fn run<L: Link>(
        &mut self,
        link: impl Fn(&str) -> Result<L, LinkError>,
        intake: &mut dyn Intake,
        (beat, say): (Duration, &dyn Fn(&str)),
        stop: &AtomicBool,
    ) -> Result<(), LinkError> {
        let mut links = self.nodes.iter().map(|at| link(&at.node.name)).collect::<Result<Vec<L>, _>>()?;
        self.words.drain(..).for_each(|words| say(&words));
        let (sender, seen) = channel();
        let (is_over, steered) = (AtomicBool::new(false), Mutex::new(self.numbers()));
        let mut ended = Ok(());
        thread::scope(|scope| {
            let (partition, is_over, steered) = (self.partition.clone(), &is_over, &steered);
            let numbers = || steered.lock().unwrap_or_else(PoisonError::into_inner);
            let ask = move |partition: &str| jobs::jobs(partition, &numbers().clone());
            scope.spawn(move || watch(|| ask(&partition), &partition, &sender, is_over));
            let reported = vec![NEVER; self.nodes.len()];
            let mut state = State { silent: None, reported, beat: Seconds::new(beat.as_secs_f64()), say };
            while !stop.load(Ordering::Relaxed) {
                let mut is_shown = false;
                while let Ok(seen) = seen.try_recv() {
                    is_shown |= matches!(&seen, Seen::Jobs(_));
                    self.take(seen, &mut state);
                }
                if is_shown && state.silent.is_none() {
                    self.admit(intake);
                }
                if state.silent.is_none() && self.seen.1 > NEVER {
                    self.look(intake, &mut state);
                    *numbers() = self.numbers();
                }
                self.talk(&mut links, &mut state);
                if state.silent.is_none()
                    && let Ok(Claimed::Another(mark)) = self.claim.renew()
                {
                    ended =
                        Err(LinkError(format!("another scheduler has the partition: {}", mark.in_words())));
                    break;
                }
                thread::sleep(LOOK);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        self.claim.leave();
        ended
    }

    /// The numbers of jobs that are steered and not over.
    fn numbers(&self) -> BTreeSet<u64> {
        self.steered.iter().filter(|(_, steered)| !steered.is_over).map(|(id, _)| *id).collect()
    }

    /// Takes over an answer of Slurm.
    fn take(&mut self, seen: Seen<(Jobs, Seconds)>, state: &mut State<'_>) {
        match seen {
            Seen::Silence(why) => self.note_silence(&why, state),
            Seen::Nodes(nodes) => {
                for (reporting, reported) in self.nodes.iter_mut().zip(&mut state.reported) {
                    reporting.take(&nodes, reported, state.say);
                }
            }
            Seen::Jobs(seen) => {
                state.note_answer();
                self.seen = seen;
            }
        }
    }

    /// Notes that Slurm does not answer.
    fn note_silence(&mut self, why: &str, state: &mut State<'_>) {
        self.steered.values_mut().for_each(Steered::note_silence);
        state.note_silence(why);
    }

    /// Takes in held jobs that are new, and notes why others that ask for apportion are not taken in, as many as there is time for.
    fn admit(&mut self, intake: &mut dyn Intake) {
        let jobs = std::mem::take(&mut self.seen.0);
        self.refused.retain(|id, _| jobs.all.contains_key(id) || jobs.strange.contains_key(id));
        let until = clock::node_now() + INTAKE;
        for (id, why) in &jobs.strange {
            if clock::node_now() >= until {
                break;
            }
            self.refuse(*id, None, why, intake);
        }
        for job in jobs.all.values().filter(|job| job.terms.is_some() && !job.is_over()) {
            if clock::node_now() >= until {
                // The other jobs are still new at the next look.
                break;
            }
            let is_known = self.refused.get(&job.id).is_some_and(|(before, _)| before.as_ref() == Some(job));
            if self.steered.contains_key(&job.id) || is_known || job.is_completing {
                continue;
            }
            let taken = if job.tasks.is_empty() { self.admitted(job, intake) } else { take_apart(job) };
            match taken {
                Ok(()) => {}
                Err(NotTaken::Refused(why)) => self.refuse(job.id, Some(job), &why, intake),
                Err(NotTaken::Later) => break,
            }
        }
        self.seen.0 = jobs;
    }

    /// Takes a job in.
    fn admitted(&mut self, job: &HeldJob, intake: &mut dyn Intake) -> Result<(), NotTaken> {
        check_held(job)?;
        let (shape, gres_type) =
            terms::check(job, &self.partition, clock::wall_s()).map_err(NotTaken::Refused)?;
        // This leaves the hold as it is, and shows whether Slurm would let the job be steered.
        steer(&job.address(), &["uhold"]).map_err(unsteerable)?;
        let Shape { n_nodes, per_node, .. } = shape;
        let newcomer = Newcomer { job, n_nodes, per_node, gres_type: gres_type.as_deref() };
        let number = intake.take_in(&newcomer)?;
        let terms = job.terms.clone().unwrap_or_default();
        let (order, boot, given_up, end) = (None, None, None, None);
        let (task, known) = (job.task.clone(), Some(Known::of(job, None)));
        let kept = Kept { id: job.id, task, number, terms, shape, order, boot, given_up, end, known };
        let mut steered = Steered::new(kept, NEVER);
        steered.is_changed = true;
        self.steered.insert(job.id, steered);
        self.refused.remove(&job.id);
        tell(&job.address(), &format!("apportion: job {number}"));
        Ok(())
    }

    /// Notes once why a job is not taken in as it is, and tells its user where Slurm permits it.
    fn refuse(&mut self, id: u64, job: Option<&HeldJob>, why: &str, intake: &mut dyn Intake) {
        let before = self.refused.insert(id, (job.cloned(), why.to_owned()));
        if before.is_none_or(|(_, said)| said != why) {
            let address = job.map_or_else(|| id.to_string(), HeldJob::address);
            intake.remark(None, &format!("Slurm job {address} is not taken in: {why}"));
            tell(&address, &format!("apportion: not taken in: {why}"));
        }
    }

    /// Looks at all steered jobs, and sends Slurm the requests that are due.
    fn look(&mut self, intake: &mut dyn Intake, state: &mut State<'_>) {
        let now = clock::node_now();
        if now >= self.over.1 + OVER_BEAT {
            self.over = (intake.over().unwrap_or_else(|| std::mem::take(&mut self.over.0)), now);
        }
        for id in self.steered.keys().copied().collect::<Vec<_>>() {
            let Some(steered) = self.steered.get_mut(&id) else { continue };
            let (address, is_in_all) = (steered.kept.address(), steered.kept.shape.is_in_all);
            let over_here = self.over.0.get(&steered.kept.number).copied();
            let (jobs, asked) = (&self.seen.0, self.seen.1);
            let (job, boot, partition) = (jobs.all.get(&id), &*jobs.boot, &*self.partition);
            let view = View { job, asked, boot, partition, now, over_here };
            let (command, events) = steered.look(&view);
            self.note(id, events, intake, state);
            if !self.keep(id, state) {
                continue;
            }
            let Some(command) = command else { continue };
            let done = carry_out(&address, &command, is_in_all);
            let now = clock::node_now();
            let Some(steered) = self.steered.get_mut(&id) else { continue };
            match done {
                Ok(_) => steered.note_command(command, now),
                Err(ToolError::Refused { said, .. }) => {
                    let events = steered.note_refusal(command, &said, now);
                    self.note(id, events, intake, state);
                }
                Err(error) => return self.note_silence(&error.to_string(), state),
            }
        }
        self.forget();
    }

    /// Passes on the news of a job.
    fn note(&mut self, id: u64, events: Vec<Event>, intake: &mut dyn Intake, state: &mut State<'_>) {
        for event in events {
            let Some(steered) = self.steered.get_mut(&id) else { return };
            let job = steered.kept.number;
            match event {
                Event::Begun(order) => {
                    self.note_ranks(&order, state, |agent, place| agent.note_started(order.run, place.rank));
                }
                Event::Stopping(order) => {
                    self.note_ranks(&order, state, |agent, place| agent.note_stopping(order.run, place.rank));
                }
                Event::Ended(order, end) => {
                    if matches!(&end, End::Lost(why) if why.contains(LAUNCH)) {
                        self.pause(&order.nodes(), "could not start one there", state);
                    }
                    self.note_ranks(&order, state, |agent, place| {
                        order.ran().into_iter().for_each(|ran| agent.note_ran(order.run, place.rank, ran));
                        agent.note_end(order.run, place.rank, end.clone());
                    });
                }
                Event::Unstarted(order, waited) => {
                    if waited >= self.patience {
                        let why =
                            format!("has let one wait there for {:.0} s and started none", waited.get());
                        self.pause(&self.idle_nodes(&order), &why, state);
                    }
                }
                Event::Withdrawn(why) if intake.withdraw(job, &why) => {
                    steered.is_withdrawn = true;
                    if !steered.is_over {
                        tell(&steered.kept.address(), &format!("apportion: given up: {why}"));
                    }
                }
                Event::Withdrawn(_) => {}
                Event::Words(text) => intake.remark(Some(job), &text),
                Event::Missing => {
                    let events = match jobs::ended(id, &steered.kept.address()) {
                        Some(ended) => steered.note_accounts(&ended),
                        None => steered.note_lost(),
                    };
                    self.note(id, events, intake, state);
                }
            }
        }
    }

    /// The nodes of a run that have no other run.
    fn idle_nodes<'a>(&self, order: &'a Order) -> Vec<&'a str> {
        let orders = || self.steered.values().filter_map(Steered::order);
        let runs_on = |node: &&str| orders().any(|other| other.has_begun && other.nodes().contains(node));
        order.nodes().into_iter().filter(|node| !runs_on(node)).collect()
    }

    /// Gives nodes no job for a while, because of Slurm's failure there.
    fn pause(&mut self, nodes: &[&str], why: &str, state: &State<'_>) {
        let now = clock::node_now();
        for reporting in self.nodes.iter_mut().filter(|reporting| nodes.contains(&&*reporting.node.name)) {
            reporting.pause(now);
            let name = &reporting.node.name;
            (state.say)(&format!("{name} gets no job for {PAUSE}: Slurm {why}"));
        }
    }

    /// Tells the agents of a run's nodes, which report at once.
    fn note_ranks(&mut self, order: &Order, state: &mut State<'_>, tell: impl Fn(&mut Agent, &Place)) {
        for place in &order.places {
            let found = self.nodes.iter_mut().position(|reporting| reporting.node.name == place.node);
            if let Some(found) = found {
                tell(&mut self.nodes[found].agent, place);
                state.reported[found] = NEVER;
            }
        }
    }

    /// Puts a changed job on disk. False if that fails.
    fn keep(&mut self, id: u64, state: &State<'_>) -> bool {
        let Some(steered) = self.steered.get_mut(&id).filter(|steered| steered.is_changed) else {
            return true;
        };
        let path = self.folder.join("jobs").join(format!("{id}.json"));
        match files::write_durably(&path, &steered.kept()) {
            Ok(()) => {
                steered.is_changed = false;
                true
            }
            Err(error) => {
                let text = format!("{}: {error}; Slurm is asked nothing of its job {id}", path.display());
                if self.words.last() != Some(&text) {
                    (state.say)(&text);
                    self.words = vec![text];
                }
                false
            }
        }
    }

    /// Forgets jobs that are over, here and in Slurm.
    fn forget(&mut self) {
        let (over, folder) = (&self.over.0, self.folder.join("jobs"));
        self.steered.retain(|id, steered| {
            let stays = !steered.is_over || steered.is_changed || !over.contains_key(&steered.kept.number);
            stays || fs::remove_file(folder.join(format!("{id}.json"))).is_err()
        });
    }

    /// Carries documents between each node and the scheduler.
    fn talk(&mut self, links: &mut [impl Link], state: &mut State<'_>) {
        let is_frozen = state.silent.is_some() || self.seen.1 <= NEVER;
        for (place, link) in links.iter_mut().enumerate() {
            let now = clock::node_now();
            if self.nodes[place].resumes(now) || now >= state.reported[place] + state.beat {
                state.reported[place] = now;
                let name = &self.nodes[place].node.name;
                let is_on = |order: &Order| order.places.iter().any(|place| place.node == *name);
                let is_empty = !self.steered.values().filter_map(Steered::order).any(is_on);
                if let Some(report) = self.nodes[place].report(now, is_frozen, is_empty) {
                    // A report that was not sent is made good by the next one.
                    let _ = link.send(&report);
                }
            }
            while let Some(orders) = link.receive(Duration::ZERO) {
                self.take_orders(place, &orders);
                state.reported[place] = NEVER;
            }
        }
    }

    fn take_orders(&mut self, place: usize, orders: &Orders) {
        let now = clock::node_now();
        let reporting = &mut self.nodes[place];
        for act in reporting.agent.take(now, orders) {
            match act {
                Act::Start(start) => match want(&mut self.steered, &reporting.node.name, &start) {
                    Ok(()) => reporting.agent.note_waiting(start.run, start.rank),
                    Err(end) => reporting.agent.note_end(start.run, start.rank, end),
                },
                Act::Steer { run, until, stop, .. } => {
                    let is_to_stop = stop.is_some_and(|stop| stop != Stop::Propose);
                    let _ = self.steered.values_mut().any(|steered| steered.steer(run, until, is_to_stop));
                }
            }
        }
    }
}
