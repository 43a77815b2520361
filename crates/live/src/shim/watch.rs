//! The watch over a program until no process of it is left.

use std::thread;

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus, getpid, wait};

use crate::clock;
use crate::files::{self, Version};
use crate::process::{Identity, Seen, dies_of, living, signal_group};
use crate::protocol::{End, Stop};
use crate::rank::{Asked, RankFolder, StartedBy, Steer};
use crate::shim::launch::Launched;
use crate::shim::signals::Told;
use crate::shim::stopping::{Measure, Stopping};

/// The end of a program that its shim killed because the process of its Slurm job was gone. It is a failure if the program had not
/// been asked to stop before.
fn cut(was_unasked: bool) -> End {
    let asked = if was_unasked { "" } else { ", when it had been asked to stop" };
    End::Cut { why: format!("the process of its Slurm job was killed{asked}"), is_failure: was_unasked }
}

/// A program under watch, and the state of its stop.
pub(super) struct Watch<'a> {
    folder: &'a RankFolder,
    program: Identity,
    by: StartedBy,
    refusal: std::sync::mpsc::Receiver<String>,
    stopping: Stopping,
    /// The version of the agent's orders that has been read.
    steered: Version,
    /// Whether it is on disk that the program has been asked to stop.
    asking_noted: bool,
    /// The status with which the program itself ended.
    status: Option<WaitStatus>,
    /// Whether it was sent SIGTERM without having a handler for it, so that the signal ends it.
    dies_when_asked: bool,
    /// Whether it ended after it had been asked to stop, as far as is known.
    ended_asked: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(folder: &'a RankFolder, launched: Launched) -> Self {
        let Launched { program, by, steer, refusal } = launched;
        Self {
            folder,
            program,
            by,
            refusal,
            stopping: Stopping::new(steer),
            steered: Version::default(),
            asking_noted: false,
            status: None,
            dies_when_asked: false,
            ended_asked: false,
        }
    }

    /// Waits until no process of the rank is left, and answers how the program ended.
    pub(super) fn until_over(mut self, told: &Told) -> End {
        while self.reap() {
            self.read_steer();
            if told.is_orphaned() {
                self.stopping.note_orphaned(clock::node_now());
            } else if told.is_told() {
                self.stopping.note_signal(clock::node_now());
            }
            let speaks = Version::of(&self.folder.progress()).is_there();
            let measure = self.stopping.next(clock::node_now(), speaks);
            self.note_asking();
            match measure {
                Some(Measure::Write(stop)) => self.write(stop),
                Some(Measure::Terminate) => self.signal(Signal::TERM),
                Some(Measure::Kill) => self.signal(Signal::KILL),
                None => {}
            }
            thread::sleep(super::LOOK);
        }
        self.end(told)
    }

    /// Collects processes that have ended. Returns whether some are left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid.as_raw_nonzero().get() == self.program.pid {
                        self.status = Some(status);
                        // A program that SIGTERM would have ended has an exit code only if it was ending by itself.
                        self.ended_asked = self.stopping.asked().is_some() && !self.dies_when_asked;
                        self.stopping.note_program_ended(clock::node_now());
                    }
                }
                Ok(None) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Reads the agent's orders, if they are new. Orders that cannot be read are ignored.
    fn read_steer(&mut self) {
        let version = Version::of(&self.folder.steer());
        if version != self.steered {
            self.steered = version;
            if let Ok(steer) = files::read::<Steer>(&self.folder.steer()) {
                let until = self.by.instant(clock::node_now(), steer.until);
                self.stopping.steer(Steer { until, ..steer });
            }
        }
    }

    /// Writes a stop for the program; if that fails, the next look asks for it again.
    fn write(&mut self, stop: Stop) {
        if self.folder.write_control(stop).is_ok() {
            self.stopping.note_written(stop);
        }
    }

    fn note_asking(&mut self) {
        if let Some((at, why)) = self.stopping.asked()
            && !self.asking_noted
        {
            self.asking_noted = files::write(&self.folder.asked(), &Asked { why, at }).is_ok();
        }
    }

    /// Sends a signal to the program's group; once the program itself is gone, to all that it left.
    fn signal(&mut self, signal: Signal) {
        let group = self.program.pid;
        if self.status.is_none() {
            self.dies_when_asked |= signal == Signal::TERM && dies_of(group, signal);
            signal_group(group, signal);
            return;
        }
        // The group's number may be another's once its leader has been waited for: only if a member is seen is it the program's.
        let own = getpid().as_raw_nonzero().get();
        let rest: Vec<Seen> = living();
        if rest.iter().any(|seen| seen.group == group && seen.session == own) {
            signal_group(group, signal);
        }
        for child in rest.iter().filter(|seen| seen.parent == own && seen.group != group) {
            child.signal(signal);
        }
    }

    fn end(self, told: &Told) -> End {
        let why = self.refusal.recv().unwrap_or_default();
        if !why.is_empty() {
            return serde_json::from_str(&why).unwrap_or(End::NotStarted(why));
        }
        let is_signalled =
            self.status.and_then(WaitStatus::terminating_signal) == Some(Signal::TERM.as_raw());
        if is_signalled && !told.is_told() {
            // Slurm sends SIGTERM to all processes of a job, one after the other: the shim's may be on its way.
            thread::sleep(super::LOOK);
        }
        let was_asked = self.ended_asked || told.is_told();
        let is = |number: i32, signal: Signal| number == signal.as_raw();
        let code = self.status.and_then(WaitStatus::exit_status);
        let signal = self.status.and_then(WaitStatus::terminating_signal);
        match (code, signal) {
            (Some(code), _) if was_asked => End::Stopped(Some(code)),
            (Some(code), _) => End::Exit(code),
            (None, Some(number)) if is(number, Signal::KILL) && self.stopping.was_killed() => {
                self.stopping.was_unasked().map_or(End::Killed, cut)
            }
            (None, Some(number))
                if is(number, Signal::TERM) && (self.stopping.was_terminated() || told.is_told()) =>
            {
                End::Stopped(None)
            }
            (None, Some(number)) => End::Signal(number),
            (None, None) => End::Vanished,
        }
    }
}
