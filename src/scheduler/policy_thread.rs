//! A policy, and the thread of its own on which it may decide.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use crate::index::JobId;
use crate::policy::{Decision, Policy, PolicyError};
use crate::problem::Problem;
use crate::units::{Seconds, Steps};

/// Stack of a deciding thread, bytes: the usual size of a main thread's.
const STACK: usize = 8 << 20;

/// A decision that a policy was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecisionRequest {
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

/// A policy that a deciding thread hands back, with the problem and its answer.
struct Returned {
    policy: Box<dyn Policy>,
    problem: Problem,
    answer: Result<Decision, PolicyError>,
}

/// A decision that another thread is making.
#[derive(Debug)]
struct PendingDecision {
    request: DecisionRequest,
    /// The policy's state when it was asked.
    state: serde_json::Value,
    returns: Receiver<Returned>,
}

/// Whether a policy can be asked for a decision.
#[derive(Debug)]
enum Availability {
    Idle(Box<dyn Policy>),
    Deciding(PendingDecision),
    /// The thread ended and did not hand the policy back.
    Lost,
}

/// A policy that decides on the thread that asks or on one of its own.
#[derive(Debug)]
pub(super) struct PolicyThread {
    name: String,
    availability: Availability,
}

impl PolicyThread {
    pub(super) fn new(policy: Box<dyn Policy>) -> Self {
        Self { name: policy.name().to_owned(), availability: Availability::Idle(policy) }
    }

    /// The policy's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The request that is out, if one is.
    pub(super) fn request(&self) -> Option<DecisionRequest> {
        match &self.availability {
            Availability::Deciding(pending) => Some(pending.request),
            Availability::Idle(_) | Availability::Lost => None,
        }
    }

    /// Decides on this thread. A policy that is deciding has to be [awaited](Self::wait) first.
    pub(super) fn decide(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        match &mut self.availability {
            Availability::Idle(policy) => policy.allocate(problem),
            Availability::Deciding(_) | Availability::Lost => Err(self.unavailable()),
        }
    }

    /// Starts a decision of the policy on a thread of its own. The thread is never joined: it ends when the policy does.
    pub(super) fn send(&mut self, problem: Problem, request: DecisionRequest) -> Result<(), PolicyError> {
        let policy = match std::mem::replace(&mut self.availability, Availability::Lost) {
            Availability::Idle(policy) => policy,
            other => {
                self.availability = other;
                return Err(self.unavailable());
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
            self.availability = Availability::Idle(policy);
            return Err(self.fault(&format!("no thread could be started: {error}")));
        }
        let state = policy.state();
        if to_thread.send((policy, problem)).is_ok() {
            self.availability = Availability::Deciding(PendingDecision { request, state, returns });
            Ok(())
        } else {
            Err(self.unavailable())
        }
    }

    /// Waits for the answer to the request that is out, for `at_most`; without a limit, as long as it takes. `None`
    /// where no answer has come by then, and where [no request](Self::request) is out.
    pub(super) fn wait(&mut self, at_most: Option<Duration>) -> Option<Result<Answered, PolicyError>> {
        let Availability::Deciding(pending) = &self.availability else { return None };
        let returned = match at_most {
            None => pending.returns.recv().map_err(|_| TryRecvError::Disconnected),
            Some(Duration::ZERO) => pending.returns.try_recv(),
            Some(at_most) => pending.returns.recv_timeout(at_most).map_err(|error| match error {
                mpsc::RecvTimeoutError::Timeout => TryRecvError::Empty,
                mpsc::RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            }),
        };
        match returned {
            Ok(Returned { policy, problem, answer }) => {
                self.availability = Availability::Idle(policy);
                Some(Ok(Answered { problem, answer }))
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.availability = Availability::Lost;
                Some(Err(self.unavailable()))
            }
        }
    }

    /// The state that must survive a checkpoint: of a policy that is deciding, as it was when it was asked.
    pub(super) fn state(&self) -> serde_json::Value {
        match &self.availability {
            Availability::Idle(policy) => policy.state(),
            Availability::Deciding(pending) => pending.state.clone(),
            Availability::Lost => serde_json::Value::Null,
        }
    }

    /// Restores a state of the policy.
    pub(super) fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        match &mut self.availability {
            Availability::Idle(policy) => policy.restore(state),
            Availability::Deciding(_) | Availability::Lost => Err(self.unavailable()),
        }
    }

    /// Changes the steps to go of a job in the policy's memory by `more`.
    pub(super) fn restate_steps(&mut self, job: JobId, more: Steps) -> Result<(), PolicyError> {
        match &mut self.availability {
            Availability::Idle(policy) => {
                policy.restate_steps(job, more);
                Ok(())
            }
            Availability::Deciding(_) | Availability::Lost => Err(self.unavailable()),
        }
    }

    fn fault(&self, reason: &str) -> PolicyError {
        PolicyError::Fault { policy: self.name.clone(), reason: reason.to_owned() }
    }

    /// Why the policy cannot be asked.
    fn unavailable(&self) -> PolicyError {
        self.fault(match &self.availability {
            Availability::Lost => "its thread ended without handing it back",
            Availability::Idle(_) | Availability::Deciding(_) => "it is still deciding",
        })
    }
}

/// The error of a policy that panicked.
pub(super) fn panicked(policy: &str, panic: &(dyn std::any::Any + Send)) -> PolicyError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    PolicyError::Fault { policy: policy.to_owned(), reason: format!("it panicked: {text}") }
}
