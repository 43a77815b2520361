//! The seat of the policy: here, or on a thread of its own while it decides.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use crate::index::JobId;
use crate::policy::{Decision, Policy, PolicyError};
use crate::problem::Problem;
use crate::units::{Seconds, Steps};

/// Stack of a deciding thread, bytes: the usual size of a main thread's.
const STACK: usize = 8 << 20;

/// A question to a policy, and its round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    /// Start of the round at which it was asked.
    pub(super) asked: Seconds,
    /// The mechanism's [changes](crate::mechanism::Mechanism::n_changes) that the problem takes into account.
    pub(super) n_changes: u64,
}

/// A problem with the policy's answer.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) problem: Problem,
    pub(super) answer: Result<Decision, PolicyError>,
}

/// The result of a deciding thread, with the policy itself.
struct Returned {
    policy: Box<dyn Policy>,
    problem: Problem,
    answer: Result<Decision, PolicyError>,
}

/// A policy that decides on another thread.
#[derive(Debug)]
struct Away {
    question: Question,
    /// The policy's state when it was asked.
    state: serde_json::Value,
    returns: Receiver<Returned>,
}

#[derive(Debug)]
enum Place {
    Here(Box<dyn Policy>),
    Away(Away),
    /// The thread ended and did not hand the policy back.
    Lost,
}

/// The policy, or the thread that has it.
#[derive(Debug)]
pub(super) struct Seat {
    name: String,
    place: Place,
}

impl Seat {
    pub(super) fn new(policy: Box<dyn Policy>) -> Self {
        Self { name: policy.name().to_owned(), place: Place::Here(policy) }
    }

    /// The policy's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The open question; none if there is none.
    pub(super) fn question(&self) -> Option<Question> {
        match &self.place {
            Place::Away(away) => Some(away.question),
            Place::Here(_) | Place::Lost => None,
        }
    }

    /// Decides on this thread. A policy that is away has to be [awaited](Self::wait) first.
    pub(super) fn decide(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        match &mut self.place {
            Place::Here(policy) => policy.allocate(problem),
            Place::Away(_) | Place::Lost => Err(self.absent()),
        }
    }

    /// Lets the policy decide on a thread of its own. The thread is never joined: it ends when the policy has decided.
    pub(super) fn send(&mut self, problem: Problem, question: Question) -> Result<(), PolicyError> {
        let policy = match std::mem::replace(&mut self.place, Place::Lost) {
            Place::Here(policy) => policy,
            other => {
                self.place = other;
                return Err(self.absent());
            }
        };
        let (to_thread, questions) = mpsc::channel::<(Box<dyn Policy>, Problem)>();
        let (to_here, returns) = mpsc::channel();
        let decide = move || {
            let Ok((mut policy, problem)) = questions.recv() else { return };
            let decided = catch_unwind(AssertUnwindSafe(|| policy.allocate(&problem)));
            let answer = decided.unwrap_or_else(|panic| Err(panicked(policy.name(), panic.as_ref())));
            // The scheduler may be gone by now: then the answer is dropped.
            drop(to_here.send(Returned { policy, problem, answer }));
        };
        let thread = std::thread::Builder::new().name("decision".to_owned()).stack_size(STACK);
        if let Err(error) = thread.spawn(decide) {
            self.place = Place::Here(policy);
            return Err(self.undecided(&format!("no thread could be started: {error}")));
        }
        let state = policy.state();
        if to_thread.send((policy, problem)).is_ok() {
            self.place = Place::Away(Away { question, state, returns });
            Ok(())
        } else {
            Err(self.absent())
        }
    }

    /// Waits for the answer to the open question, at most this long; none for no limit. Answers none if it has not come by then or
    /// there is no question.
    pub(super) fn wait(&mut self, at_most: Option<Duration>) -> Option<Result<Answered, PolicyError>> {
        let Place::Away(away) = &self.place else { return None };
        let returned = match at_most {
            None => away.returns.recv().map_err(|_| TryRecvError::Disconnected),
            Some(Duration::ZERO) => away.returns.try_recv(),
            Some(at_most) => away.returns.recv_timeout(at_most).map_err(|error| match error {
                mpsc::RecvTimeoutError::Timeout => TryRecvError::Empty,
                mpsc::RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            }),
        };
        match returned {
            Ok(Returned { policy, problem, answer }) => {
                self.place = Place::Here(policy);
                Some(Ok(Answered { problem, answer }))
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.place = Place::Lost;
                Some(Err(self.absent()))
            }
        }
    }

    /// The state that must survive a checkpoint; for a policy on another thread, its state when it was asked.
    pub(super) fn state(&self) -> serde_json::Value {
        match &self.place {
            Place::Here(policy) => policy.state(),
            Place::Away(away) => away.state.clone(),
            Place::Lost => serde_json::Value::Null,
        }
    }

    /// Restores a state of the policy.
    pub(super) fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        match &mut self.place {
            Place::Here(policy) => policy.restore(state),
            Place::Away(_) | Place::Lost => Err(self.absent()),
        }
    }

    /// Changes the steps to go of a job in the policy's memory by `more`.
    pub(super) fn restate_steps(&mut self, job: JobId, more: Steps) -> Result<(), PolicyError> {
        match &mut self.place {
            Place::Here(policy) => {
                policy.restate_steps(job, more);
                Ok(())
            }
            Place::Away(_) | Place::Lost => Err(self.absent()),
        }
    }

    fn undecided(&self, reason: &str) -> PolicyError {
        PolicyError::Undecided { policy: self.name.clone(), reason: reason.to_owned() }
    }

    /// Why the policy cannot be asked.
    fn absent(&self) -> PolicyError {
        self.undecided(match &self.place {
            Place::Lost => "its thread ended without handing it back",
            Place::Here(_) | Place::Away(_) => "it is still deciding",
        })
    }
}

/// The error of a policy that panicked.
pub(super) fn panicked(policy: &str, panic: &(dyn std::any::Any + Send)) -> PolicyError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    PolicyError::Undecided { policy: policy.to_owned(), reason: format!("it panicked: {text}") }
}
