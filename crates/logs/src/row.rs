//! A row of the normalized log: what a log says of one job, in one form for all logs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The reason why a job that asks for 2³² accelerators or more is left out.
pub(crate) const TOO_MANY_WORKERS: &str = "more than 4294967295 accelerators";

/// One job of a log, with texts of type `T`. A number that the log does not say is `None`, never 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<T = Arc<str>> {
    /// The name that no other row has.
    pub id: T,
    /// What its owner calls the job.
    pub name: Option<T>,
    /// Its owner.
    pub user: Option<T>,
    /// Its owner's group: an account, a virtual cluster, a queue.
    pub group: Option<T>,
    /// When it was submitted: s since 1970 in UTC, or since the log's own start.
    pub submitted_s: Option<f64>,
    /// When it could have run first.
    pub eligible_s: Option<f64>,
    /// When its first attempt started.
    pub started_s: Option<f64>,
    /// When its last attempt ended.
    pub ended_s: Option<f64>,
    /// How long it ran, over all attempts.
    pub ran_s: Option<f64>,
    /// Workers that it held at once; 0 if the log says that it asked for none.
    pub n_workers: Option<u32>,
    /// The part of each worker that it asked for, above 0 and below 1; `None` for whole ones.
    pub fraction: Option<f64>,
    /// Servers that it ran on.
    pub n_nodes: Option<u32>,
    /// The worker type, or types that would do, separated by `|`, by the log's names.
    pub worker_type: Option<T>,
    /// How it ended.
    pub state: State,
    /// How often it was started; `None` where the log does not say, as of a job that ended and has no start there.
    pub n_attempts: Option<u32>,
    /// What the log classes it as: a priority, a kind of work.
    pub class: Option<T>,
    /// The line of the log at which it begins, from 1.
    pub line: u64,
    /// The file of that line where it is not the log: a job of which only PAI's table of jobs has a row.
    pub file: Option<T>,
}

impl Row {
    /// A row of which nothing is known but its name and place.
    pub fn new(id: Arc<str>, line: u64) -> Self {
        Self {
            id,
            name: None,
            user: None,
            group: None,
            submitted_s: None,
            eligible_s: None,
            started_s: None,
            ended_s: None,
            ran_s: None,
            n_workers: None,
            fraction: None,
            n_nodes: None,
            worker_type: None,
            state: State::Unknown,
            n_attempts: None,
            class: None,
            line,
            file: None,
        }
    }

    /// The row as one that borrows its texts.
    pub fn seen(&self) -> Seen<'_> {
        self.with(|text| &**text)
    }
}

impl Seen<'_> {
    /// The row as one that has its texts itself.
    pub(crate) fn to_owned(&self) -> Row {
        self.with(|text| Arc::from(*text))
    }

    /// Does it say the same as another, apart from where it stands?
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        let at = |row: &Self| Self { id: "", line: 0, file: None, ..row.clone() };
        at(self) == at(other)
    }

    /// A digest of what it says, apart from its name and where it stands: the same of rows that say the same.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", Self { id: "", line: 0, file: None, ..self.clone() }).hash(&mut hasher);
        hasher.finish()
    }
}

impl<T> Row<T> {
    /// The row with other texts, which are made of its own.
    fn with<'a, U>(&'a self, text: impl Fn(&'a T) -> U) -> Row<U> {
        let of = |there: &'a Option<T>| there.as_ref().map(&text);
        Row {
            id: text(&self.id),
            name: of(&self.name),
            user: of(&self.user),
            group: of(&self.group),
            submitted_s: self.submitted_s,
            eligible_s: self.eligible_s,
            started_s: self.started_s,
            ended_s: self.ended_s,
            ran_s: self.ran_s,
            n_workers: self.n_workers,
            fraction: self.fraction,
            n_nodes: self.n_nodes,
            worker_type: of(&self.worker_type),
            state: self.state,
            n_attempts: self.n_attempts,
            class: of(&self.class),
            line: self.line,
            file: of(&self.file),
        }
    }

    /// The workers that it held, in whole ones: a job of two halves held 1.
    pub fn held(&self) -> Option<f64> {
        Some(f64::from(self.n_workers?) * self.fraction.unwrap_or(1.0))
    }

    /// Does it end before it starts, or start before it is submitted, by more than a second, or is its running time below 0?
    pub fn contradicts_itself(&self) -> bool {
        let is_before = |one: Option<f64>, other: Option<f64>| {
            one.zip(other).is_some_and(|(one, other)| one < other - 1.0)
        };
        is_before(self.ended_s, self.started_s)
            || is_before(self.started_s, self.submitted_s)
            || is_before(self.ended_s, self.submitted_s)
            || self.ran_s.is_some_and(|ran| ran < -1.0)
    }

    /// A job of which a part contradicts itself: it does so, too, whatever its other parts are.
    pub(crate) fn contradictory(self) -> Self {
        Self { ran_s: Some(-1e9), ..self }
    }

    /// Puts times in order that are out of it by a second or less; `false` if there are none.
    pub(crate) fn put_in_order(&mut self) -> bool {
        let after = |time: Option<f64>, other: Option<f64>| Some(time?.max(other.unwrap_or(f64::MIN)));
        let started_s = after(self.started_s, self.submitted_s);
        let ended_s = after(after(self.ended_s, started_s), self.submitted_s);
        let ran_s = after(self.ran_s, Some(0.0));
        let was_in_order = (started_s, ended_s, ran_s) == (self.started_s, self.ended_s, self.ran_s);
        (self.started_s, self.ended_s, self.ran_s) = (started_s, ended_s, ran_s);
        !was_in_order
    }

    /// How often a job of one run was started: once or never, or none where the log does not say. `ran_for_nothing`: does the log
    /// say that it ran for 0 s?
    ///
    /// One without a start that waits or was cancelled never started. One that ended in another way may have lost its start, unless
    /// the log has no end of it, either.
    pub(crate) fn starts_of_one_run(&self, ran_for_nothing: bool) -> Option<u32> {
        if self.started_s.is_some() || self.ran_s.is_some_and(|ran| ran > 0.0) {
            return Some(1);
        }
        let never_started = match self.state {
            state if state.is_only_of_runs() => false,
            State::Pending | State::Cancelled => true,
            // Of Slurm's jobs, those that miss their deadline as they wait, too.
            State::Timeout => ran_for_nothing,
            _ => ran_for_nothing || self.ended_s.is_none(),
        };
        never_started.then_some(0)
    }

    /// Does its state say that it has ended, where neither its end nor how long it ran is known?
    pub(crate) fn lacks_its_end(&self) -> bool {
        let is_open = matches!(self.state, State::Running | State::Pending | State::Unknown);
        !is_open && self.started_s.is_some() && self.ended_s.is_none() && self.ran_s.is_none()
    }
}

/// A row that borrows its texts, as [`Rows`](crate::Rows) give it.
pub type Seen<'a> = Row<&'a str>;

/// How a job ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// By itself, well.
    Completed,
    /// By itself, with an error.
    Failed,
    /// Stopped by its owner or by an operator.
    Cancelled,
    /// Stopped at its limit of time.
    Timeout,
    /// With its server.
    NodeFailure,
    /// For lack of memory.
    OutOfMemory,
    /// Its workers were taken away.
    Preempted,
    /// It was running when the log was taken.
    Running,
    /// It was waiting when the log was taken.
    Pending,
    /// The log does not say.
    Unknown,
}

impl State {
    /// All there are.
    pub const ALL: [Self; 10] = [
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Timeout,
        Self::NodeFailure,
        Self::OutOfMemory,
        Self::Preempted,
        Self::Running,
        Self::Pending,
        Self::Unknown,
    ];

    /// What the normalized log calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::NodeFailure => "node_failure",
            Self::OutOfMemory => "out_of_memory",
            Self::Preempted => "preempted",
            Self::Running => "running",
            Self::Pending => "pending",
            Self::Unknown => "unknown",
        }
    }

    /// Does only a job that was started have it?
    pub(crate) const fn is_only_of_runs(self) -> bool {
        matches!(self, Self::Completed | Self::OutOfMemory | Self::Preempted | Self::Running)
    }

    /// The state of a job of two parts: it has not ended before both have, and is completed if both are.
    pub(crate) fn worse(self, other: Self) -> Self {
        let rank = |state: Self| match state {
            Self::Running => 9,
            Self::Pending => 8,
            Self::NodeFailure => 7,
            Self::OutOfMemory => 6,
            Self::Failed => 5,
            Self::Timeout => 4,
            Self::Preempted => 3,
            Self::Cancelled => 2,
            Self::Unknown => 1,
            Self::Completed => 0,
        };
        if rank(other) > rank(self) { other } else { self }
    }

    /// The state of a name of the normalized log.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}
