//! A process for the decisions on some instances: a crash, or a decision that does not end, costs one decision only.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::Session;
use crate::bench_process::{CLOCK_FACTOR, END, LOOK_EVERY, child_seconds, lines_of, say, say_json};
use crate::exit::Failure;
use crate::progress::Progress;
use apportion::problem::Problem;
use apportion::solver::timing::Stopwatch;
use apportion::spec::snapshot::SnapshotDocument;
use apportion::spec::{Snapshot, Source, SpecError, load_throughputs};
use apportion_published::plugin;
use apportion_studies::benchmark::measure::DEFAULT;
use apportion_studies::check::{Decided, Verdict, decide, draw};

/// Instances that a process decides, one after the other.
pub(super) const CHUNK: usize = 12;
/// Decisions without an end after which a policy is not tried on further instances of the same spread of numbers.
const NO_END_MAX: usize = 3;
/// The throughput matrix that the names of instances' worker types are taken from.
const NAMES_FROM: &str = "osdi20";

/// The instances of one check, and the policies and backends that decide them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// The decades of the instances, in turn.
    pub(super) decades: Vec<f64>,
    pub(super) policies: Vec<String>,
    pub(super) backends: Vec<String>,
    /// Processor time for a decision, in s.
    pub(super) limit: f64,
}

/// Decisions without an end, by the positions of their policy and decades.
#[derive(Debug, Default)]
pub(super) struct WithoutEnd(Mutex<Vec<(usize, usize)>>);

impl WithoutEnd {
    fn push(&self, kind: (usize, usize)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(kind);
    }

    /// The positions of policies and decades that are not tried any more: too many of their decisions had no end.
    fn hopeless(&self) -> Vec<(usize, usize)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let often = |kind: &&(usize, usize)| all.iter().filter(|other| other == kind).count() >= NO_END_MAX;
        let mut hopeless: Vec<(usize, usize)> = all.iter().filter(often).copied().collect();
        hopeless.sort_unstable();
        hopeless.dedup();
        hopeless
    }
}

/// A part of the decisions, as the child gets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Case {
    plan: Plan,
    from: u64,
    to: u64,
    /// Decisions that are done already.
    done: usize,
    /// Positions of policies and decades that are not tried any more.
    hopeless: Vec<(usize, usize)>,
}

impl Plan {
    /// Number of decisions on an instance.
    pub(super) fn per_instance(&self) -> usize {
        self.policies.len() * self.backends.len()
    }

    fn turn(&self, instance: u64) -> usize {
        usize::try_from(instance % self.decades.len() as u64).unwrap_or(0)
    }

    /// The instance of this number, and the decades of its numbers.
    pub(super) fn draw(&self, instance: u64) -> (f64, SnapshotDocument) {
        let known = load_throughputs(NAMES_FROM).map(|known| known.worker_types().iter().cloned().collect());
        let names: Vec<String> = known.unwrap_or_default();
        let decades = self.decades[self.turn(instance)];
        (decades, draw(self.seed, instance, decades, &names))
    }

    /// The place of a decision, in a part that begins at instance `from`.
    fn place(&self, from: u64, decision: usize) -> DecisionPlace {
        let within = decision % self.per_instance();
        let n_backends = self.backends.len();
        let instance = from + (decision / self.per_instance()) as u64;
        DecisionPlace { instance, policy: within / n_backends, backend: within % n_backends }
    }
}

/// The instance of a decision, and the positions of its policy and backend in the plan.
struct DecisionPlace {
    instance: u64,
    policy: usize,
    backend: usize,
}

impl Case {
    /// Reads the case that the parent process wrote.
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        serde_json::from_str(text).map_err(|error| Failure::usage(format!("`--case` is none: {error}"), None))
    }

    fn total(&self) -> usize {
        usize::try_from(self.to - self.from).unwrap_or(0) * self.plan.per_instance()
    }

    /// The child's side: makes the decisions, and writes a line for each.
    pub(super) fn run(&self) -> Result<(), Failure> {
        let catalog = plugin::catalog();
        let plan = &self.plan;
        let mut known: Option<(u64, Result<Problem, SpecError>)> = None;
        for decision in self.done..self.total() {
            let DecisionPlace { instance, policy, backend } = plan.place(self.from, decision);
            if known.as_ref().is_none_or(|(number, _)| *number != instance) {
                known = Some((instance, problem(&plan.draw(instance).1)));
            }
            let names = (plan.policies[policy].as_str(), plan.backends[backend].as_str());
            let decided = match &known {
                _ if self.hopeless.contains(&(policy, plan.turn(instance))) => {
                    Decided::without(names.0, names.1, Verdict::NotTried, "others had no end")
                }
                Some((_, Ok(problem))) => {
                    decide(&catalog, problem, names.0, (names.1 != DEFAULT).then_some(names.1))
                }
                Some((_, Err(error))) => {
                    Decided::without(names.0, names.1, Verdict::Refused, error.to_string())
                }
                None => continue,
            };
            say_json(&decided)?;
        }
        say(END)
    }
}

fn problem(document: &SnapshotDocument) -> Result<Problem, SpecError> {
    let snapshot = Snapshot::read(&Source::new("instance", document.to_json()))?;
    Problem::from_snapshot(&snapshot, &load_throughputs(NAMES_FROM)?)
}

/// The parent's side: all decisions on the instances from `from` up to `to`; on fewer, if the user wants to stop.
pub(super) fn run_child(
    plan: &Plan,
    (from, to): (u64, u64),
    without_end: &WithoutEnd,
    session: &Session,
    bar: &Progress,
) -> Result<Vec<Decided>, Failure> {
    let mut case = Case { plan: plan.clone(), from, to, done: 0, hopeless: Vec::new() };
    let mut decided: Vec<Decided> = Vec::with_capacity(case.total());
    while decided.len() < case.total() && !session.interrupt.is_raised() {
        (case.done, case.hopeless) = (decided.len(), without_end.hopeless());
        let end = by_child(&case, &mut decided, session, bar)?;
        if end == End::Stopped {
            break;
        }
        if decided.len() >= case.total() {
            break;
        }
        let DecisionPlace { instance, policy, backend } = plan.place(from, decided.len());
        let (verdict, why) = match end {
            End::Limit => (Verdict::NoEnd, "no end within the limit"),
            _ => (Verdict::Crashed, "the process ended"),
        };
        decided.push(Decided::without(&plan.policies[policy], &plan.backends[backend], verdict, why));
        without_end.push((policy, plan.turn(instance)));
    }
    decided.truncate(decided.len() / plan.per_instance() * plan.per_instance());
    Ok(decided)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Limit,
    Broken,
    Stopped,
}

fn by_child(
    case: &Case,
    decided: &mut Vec<Decided>,
    session: &Session,
    bar: &Progress,
) -> Result<End, Failure> {
    let text = serde_json::to_string(case)
        .map_err(|error| Failure::Bug { message: format!("a case is not JSON: {error}") })?;
    let program = std::env::current_exe().map_err(Failure::io("find this program's own file"))?;
    let mut child = Command::new(program)
        .args(["--quiet", "check", "--case", &text])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(Failure::io("start a process for some instances"))?;
    let end = watch(case, &mut child, decided, session, bar);
    if end != End::Done {
        // The child has ended, or is to end: if it is gone it cannot be killed, and that is fine.
        let _ = child.kill();
    }
    child.wait().map_err(Failure::io("end the process of some instances"))?;
    Ok(end)
}

/// Takes a child's lines until it is done or a decision takes too long.
fn watch(
    case: &Case,
    child: &mut Child,
    decided: &mut Vec<Decided>,
    session: &Session,
    bar: &Progress,
) -> End {
    let (id, lines) = (child.id().to_string(), lines_of(child));
    let (mut clock, mut before) = (Stopwatch::start(), child_seconds(&id));
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) if line == END => return End::Done,
            Ok(line) => {
                let Ok(next) = serde_json::from_str(&line) else { return End::Broken };
                decided.push(next);
                (clock, before) = (Stopwatch::start(), child_seconds(&id));
                if decided.len().is_multiple_of(case.plan.per_instance()) {
                    bar.advance();
                }
            }
            Err(RecvTimeoutError::Disconnected) => return End::Broken,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if session.interrupt.is_raised() {
            return End::Stopped;
        }
        let waited = clock.elapsed().as_secs_f64();
        let used = before.zip(child_seconds(&id)).map_or(waited, |(before, now)| now - before);
        if used > case.plan.limit || waited > CLOCK_FACTOR * case.plan.limit {
            return End::Limit;
        }
    }
}
