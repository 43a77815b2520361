//! A Slurm job that apportion steers: the consequences of its state in Slurm and of its orders, without input or output.
//!
//! A held job has no run. It is given one by an order: its nodes are set, and it is released. It is put back and held again to end
//! the run. Slurm's acknowledgements are not trusted: each look starts from the state that Slurm shows, and asks again for all that
//! differs. Changes by its user or an administrator are not undone: apportion gives such a job up, and notes it. If the controller
//! was started anew, a difference may be a request that it forgot.

mod over;

use apportion::Seconds;

use super::commands::Command;
use super::jobs::HeldJob;
use super::kept::{Kept, Known, Order, Place};
use super::look::{Event, View};
use super::terms::Shape;
use crate::protocol::{End, Run};

/// Time after which Slurm is asked again for a change that it does not show.
const AGAIN: Seconds = Seconds::new(2.0);

/// Time after which a job that Slurm does not show is gone.
const GONE: Seconds = Seconds::new(10.0);

/// The number of refusals of one request in a row that count as Slurm's answer about the job: a controller that ends, or has just
/// been started, refuses requests that it grants soon after.
const REFUSALS: u32 = 5;

/// Slurm's reasons for the wait of a released job that mean only that its nodes do not take it yet.
const OF_ITS_NODES: [&str; 6] = ["", "None", "Priority", "Resources", "NodeDown", "ReqNodeNotAvail"];

/// Slurm's reason for holding a job that can never run on the nodes that it names.
const BAD_CONSTRAINTS: &str = "BadConstraints";

/// A run and its orders.
#[derive(Clone, Debug)]
struct Wish {
    order: Order,
    /// The number of its ranks on all nodes.
    n_ranks: u32,
    until: Seconds,
    is_to_stop: bool,
}

/// A job that apportion steers.
#[derive(Debug)]
pub(super) struct Steered {
    pub(super) kept: Kept,
    /// Whether the record is not on disk yet. Slurm is asked for nothing until it is.
    pub(super) is_changed: bool,
    /// Whether the job in apportion has been told that it was given up.
    pub(super) is_withdrawn: bool,
    /// Whether it is over in Slurm.
    pub(super) is_over: bool,
    current: Option<Wish>,
    wanted: Option<Wish>,
    /// The run with which the job was over: it is kept until the scheduler has its end, too.
    last: Option<Order>,
    /// The last request to Slurm, and its instant.
    acted: Option<(Command, Seconds)>,
    /// The number of refusals in a row of the last request.
    n_refused: u32,
    /// The run for which Slurm has shown the job as released.
    released: Option<Run>,
    /// The span in which Slurm has shown the released run to wait only for its nodes.
    waited: Option<(Seconds, Seconds)>,
    missing: Option<Seconds>,
    said: Option<String>,
    events: Vec<Event>,
}

impl Steered {
    /// A job from its record. A run of an earlier start goes on until `until` without orders.
    pub(super) fn new(kept: Kept, until: Seconds) -> Self {
        let current = kept.order.clone().map(|order| {
            let n_ranks = u32::try_from(order.places.len()).unwrap_or(u32::MAX);
            Wish { order, n_ranks, until, is_to_stop: false }
        });
        Self {
            is_over: kept.end.is_some(),
            kept,
            is_changed: false,
            is_withdrawn: false,
            current,
            wanted: None,
            last: None,
            acted: None,
            n_refused: 0,
            released: None,
            waited: None,
            missing: None,
            said: None,
            events: Vec::new(),
        }
    }

    /// Adds a rank to the wanted run of `n_ranks` ranks.
    pub(super) fn want(&mut self, run: Run, n_ranks: u32, place: Place, until: Seconds) {
        if self.wanted.as_ref().is_none_or(|wish| wish.order.run != run) {
            self.drop_wanted(End::Stopped(None));
            self.wanted = Some(Wish { order: Order::new(run), n_ranks, until, is_to_stop: false });
        }
        if let Some(wish) = &mut self.wanted {
            wish.order.places.push(place);
            wish.order.places.sort();
            wish.until = wish.until.max(until);
        }
    }

    /// The end of every run that is still to come, if the job is over in Slurm or given up; none if it is neither.
    pub(super) fn last_word(&self) -> Option<End> {
        self.kept.end.clone().or_else(|| self.kept.given_up.clone().map(End::Final))
    }

    /// Extends a run to `until`, and stops it if it is to stop. False if it is no run of this job.
    pub(super) fn steer(&mut self, run: Run, until: Seconds, is_to_stop: bool) -> bool {
        let of_run = |wish: &&mut Wish| wish.order.run == run;
        let Some(wish) = self.current.iter_mut().chain(&mut self.wanted).find(of_run) else { return false };
        wish.until = wish.until.max(until);
        wish.is_to_stop |= is_to_stop;
        true
    }

    /// Notes a request to Slurm that was answered.
    pub(super) fn note_command(&mut self, command: Command, now: Seconds) {
        self.acted = Some((command, now));
        self.n_refused = 0;
    }

    /// Notes that Slurm does not answer, or did not: earlier refusals were not its answer about the job.
    pub(super) fn note_silence(&mut self) {
        self.n_refused = 0;
    }

    /// Notes that Slurm refused a request. The request is sent again while Slurm's state needs it. Several refusals in a row count
    /// as Slurm's answer about the job.
    pub(super) fn note_refusal(&mut self, command: Command, said: &str, now: Seconds) -> Vec<Event> {
        let is_same = self.acted.as_ref().is_some_and(|(last, _)| *last == command);
        self.n_refused = if is_same { self.n_refused.saturating_add(1) } else { 1 };
        let is_certain = self.n_refused >= REFUSALS;
        match &command {
            Command::Release(_) if is_certain => {
                self.n_refused = 0;
                self.end(End::Declined(said.to_owned()));
            }
            Command::Requeue if is_certain => {
                self.give_up(format!("Slurm does not put it back, asked {REFUSALS} times: {said}"));
            }
            _ => {
                let address = self.kept.address();
                self.say(format!(
                    "Slurm refuses what is asked of its job {address}: {said}; it is asked again"
                ));
            }
        }
        self.acted = Some((command, now));
        std::mem::take(&mut self.events)
    }

    /// The request that is to be sent to Slurm now, and the news.
    pub(super) fn look(&mut self, view: &View<'_>) -> (Option<Command>, Vec<Event>) {
        let is_old = self.acted.as_ref().is_some_and(|(_, at)| view.asked <= *at);
        if let Some(end) = self.kept.end.clone() {
            // An earlier start of the scheduler saw the end, and may not have reported it.
            self.finish(end);
        }
        let command = if is_old || self.is_over { None } else { self.follow(view) };
        let is_again = |command: &Command| {
            self.acted.as_ref().is_some_and(|(last, at)| last == command && view.now < *at + AGAIN)
        };
        let command = command.filter(|command| !is_again(command));
        if self.kept.given_up.is_some() && !self.is_withdrawn && self.events.is_empty() {
            self.events.extend(self.kept.given_up.clone().map(Event::Withdrawn));
        }
        (command, std::mem::take(&mut self.events))
    }

    fn follow(&mut self, view: &View<'_>) -> Option<Command> {
        let Some(job) = view.job else {
            if view.asked >= *self.missing.get_or_insert(view.asked) + GONE {
                self.events.push(Event::Missing);
            }
            return None;
        };
        self.missing = None;
        let forgot = self.kept.boot.as_ref().is_some_and(|boot| boot != view.boot);
        if !self.kept.is_of(job, forgot) {
            let (address, name, user) = (self.kept.address(), &job.name, &job.user);
            self.lose(format!(
                "Slurm forgot its job {address} as its controller was started anew, and has given the number to another (`{name}` of {user})"
            ));
            return None;
        }
        self.note_known(job);
        if job.is_over() {
            self.conclude(job);
            return None;
        }
        if self.kept.given_up.is_none() {
            if let Some(why) = self.kept.why_not_kept(job, view.partition) {
                if self.current.is_some() && job.is_pending() && !job.is_held() {
                    // The job was released for its earlier resources.
                    return Some(Command::Hold);
                }
                self.give_up(why);
            }
            match &job.terms {
                None => self.give_up("its comment is not apportion's any more: it was taken back".to_owned()),
                Some(terms) if *terms != self.kept.terms => {
                    let what = "its comment was changed; what it said when it was taken in goes on to hold";
                    self.say(format!("Slurm job {}: {what}", self.kept.address()));
                }
                Some(_) => {}
            }
        }
        if self.kept.given_up.is_some() {
            self.let_be(job);
            return None;
        }
        let command = match &self.current {
            Some(_) => self.follow_run(job, view.now, forgot),
            None => self.follow_waiting(job, view, forgot),
        };
        // A controller that is there already does not undo a state that is as it ought to be.
        if self.kept.boot.is_none() || (forgot && command.is_none()) {
            self.kept.boot = Some(view.boot.to_owned());
            self.is_changed = true;
        }
        command
    }

    /// Notes the job's present identity.
    fn note_known(&mut self, job: &HeldJob) {
        let known = Known::of(job, self.kept.known.as_ref());
        if self.kept.known.as_ref() != Some(&known) {
            self.kept.known = Some(known);
            self.is_changed = true;
        }
    }

    /// The next request for a job with a run.
    fn follow_run(&mut self, job: &HeldJob, now: Seconds, forgot: bool) -> Option<Command> {
        let wish = self.current.as_mut()?;
        let ends = wish.is_to_stop || now >= wish.until;
        let order = &mut wish.order;
        let was_put_back = job.n_restarts > order.n_restarts;
        if job.is_pending() && !job.is_held() {
            return self.follow_released(job, ends || was_put_back, now);
        }
        if job.is_pending() {
            return self.follow_held(job, ends, was_put_back, forgot);
        }
        if job.is_completing {
            return None;
        }
        if !is_on(&order.nodes(), &job.nodes) {
            self.give_up(format!("it is on {}, where apportion did not start it", job.nodes));
            return None;
        }
        if was_put_back {
            order.n_restarts = job.n_restarts;
            order.note_put_back(job);
            self.is_changed = true;
            let text = format!("Slurm has put its job {} back and started it again by itself", job.address());
            self.events.push(Event::Words(text));
        } else if job.state != "CONFIGURING" && !order.has_begun {
            order.has_begun = true;
            self.is_changed = true;
            let order = order.clone();
            self.events.push(Event::Begun(order));
        }
        let wish = self.current.as_mut()?;
        if wish.order.started_s != job.started_s {
            wish.order.started_s = job.started_s;
            self.is_changed = true;
        }
        if !ends {
            return None;
        }
        if !wish.order.is_stopping {
            wish.order.is_stopping = true;
            self.is_changed = true;
            self.events.push(Event::Stopping(wish.order.clone()));
        }
        Some(Command::Requeue)
    }

    /// The next request for a job with a run that Slurm may start, or was about to start again.
    fn follow_released(&mut self, job: &HeldJob, is_to_go: bool, now: Seconds) -> Option<Command> {
        if is_to_go {
            return Some(Command::Hold);
        }
        self.released = self.order().map(|order| order.run);
        let since = self.waited.map_or(now, |(since, _)| since);
        self.waited = OF_ITS_NODES.contains(&job.reason.as_str()).then_some((since, now));
        if job.reason == "BeginTime" {
            return Some(Command::StartNow);
        }
        if !["None", "Priority", ""].contains(&job.reason.as_str()) {
            self.say(format!("Slurm job {} waits for its workers: {}", job.address(), job.reason));
        }
        None
    }

    /// The next request for a held job with a run: it was not released yet, or the run is over.
    fn follow_held(
        &mut self,
        job: &HeldJob,
        ends: bool,
        was_put_back: bool,
        forgot: bool,
    ) -> Option<Command> {
        let order = &mut self.current.as_mut()?.order;
        if was_put_back {
            order.note_put_back(job);
        }
        let was_released = self.released == Some(order.run);
        // A released job had another reason; it may have been held for this one since, before it was shown as released.
        let is_declined = self.acted.is_some() && !forgot && job.reason == BAD_CONSTRAINTS;
        if was_put_back && (ends || order.is_stopping) {
            self.end(End::Stopped(None));
        } else if was_put_back {
            let detail = if job.detail.is_empty() { String::new() } else { format!(": {}", job.detail) };
            self.end(End::Lost(format!("it was put back into Slurm's queue, not by apportion{detail}")));
        } else if order.has_begun {
            self.end(End::Lost("Slurm's controller does not know that it was started".to_owned()));
        } else if is_declined {
            self.end(End::Declined(job.why_it_waits().to_owned()));
        } else if ends {
            let waited = self.waited.filter(|_| was_released).map(|(since, until)| until - since);
            self.events.extend(waited.map(|waited| Event::Unstarted(order.clone(), waited)));
            self.end(End::Stopped(None));
        } else if job.is_held_by_admin() {
            self.end(End::Stopped(None));
            self.give_up("an administrator holds it".to_owned());
        } else if was_released && !forgot && job.reason == "JobHeldUser" {
            self.end(End::Stopped(None));
            self.give_up("it was held after apportion had released it".to_owned());
        } else if was_released && !forgot {
            self.end(End::Declined(job.why_it_waits().to_owned()));
        } else {
            return Some(Command::Release(order.nodes().join(",")));
        }
        None
    }

    /// The next request for a job without a run.
    fn follow_waiting(&mut self, job: &HeldJob, view: &View<'_>, forgot: bool) -> Option<Command> {
        if job.is_completing {
            return None;
        }
        match view.over_here {
            Some(true) if job.is_pending() => return Some(Command::Cancel),
            Some(false) => {
                self.give_up(format!("apportion has given it up: `apportion why {}`", self.kept.number));
                return None;
            }
            _ => {}
        }
        if !job.is_held() {
            if forgot {
                return Some(if job.is_pending() { Command::Hold } else { Command::Requeue });
            }
            self.give_up("it was released in Slurm, not by apportion: Slurm alone runs it now".to_owned());
        } else if job.is_held_by_admin() {
            self.give_up("an administrator holds it".to_owned());
        } else if !job.may_requeue {
            self.give_up("Slurm may not put it back into its queue any more (Requeue=0)".to_owned());
        } else {
            return self.promote(job, view.now);
        }
        self.drop_wanted(End::Stopped(None));
        None
    }

    /// Takes up the wanted run once all of its ranks are wanted, if its workers have the shape that the job asks for.
    fn promote(&mut self, job: &HeldJob, now: Seconds) -> Option<Command> {
        let shape = self.kept.shape;
        let wish = self.wanted.as_mut()?;
        if wish.is_to_stop || now >= wish.until {
            self.drop_wanted(End::Stopped(None));
            return None;
        }
        if u32::try_from(wish.order.places.len()) != Ok(wish.n_ranks) {
            return None;
        }
        if !wish.order.fits(shape) {
            let Shape { n_nodes, per_node, .. } = shape;
            let text = format!(
                "the round gives Slurm job {} workers on {}, and it asks for {per_node} on each of {n_nodes}: it waits",
                self.kept.address(),
                wish.order.nodes().join(", ")
            );
            self.say(text);
            return None;
        }
        let mut wish = self.wanted.take()?;
        wish.order.n_restarts = job.n_restarts;
        let nodes = wish.order.nodes().join(",");
        self.current = Some(wish);
        self.is_changed = true;
        (self.waited, self.n_refused) = (None, 0);
        Some(Command::Release(nodes))
    }

    /// The order that the job was released for.
    pub(super) fn order(&self) -> Option<&Order> {
        self.current.as_ref().map(|wish| &wish.order)
    }

    /// The record for the disk.
    pub(super) fn kept(&self) -> Kept {
        Kept { order: self.order().or(self.last.as_ref()).cloned(), ..self.kept.clone() }
    }

    fn give_up(&mut self, why: String) {
        if self.kept.given_up.is_none() {
            self.kept.given_up = Some(why.clone());
            self.is_changed = true;
            self.events.push(Event::Withdrawn(why));
        }
    }

    /// Notes a sentence, once until another one follows.
    fn say(&mut self, text: String) {
        if self.said.as_ref() != Some(&text) {
            self.said = Some(text.clone());
            self.events.push(Event::Words(text));
        }
    }
}

/// Whether these nodes, by name and in order, are those of a list in Slurm's form.
fn is_on(nodes: &[&str], list: &str) -> bool {
    // A list may name several nodes by a range: then it is not compared.
    list.is_empty() || list.contains('[') || list.split(',').eq(nodes.iter().copied())
}
