//! A row of the normalized log: the record of one job, in one form for all logs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Reason why a job that asks for 2³² accelerators or more is left out.
pub(crate) const TOO_MANY_WORKERS: &str = "more than 4294967295 accelerators";

/// One job of a log, with texts of type `T`. A number that the log does not say is `None`, never 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<T = Arc<str>> {
    /// Name of the job in the log, unique among its rows.
    pub id: T,
    /// Name that the owner gives the job.
    pub name: Option<T>,
    /// Owner of the job.
    pub user: Option<T>,
    /// Group of the owner: an account, a virtual cluster, a queue.
    pub group: Option<T>,
    /// Time of submission: s since 1970 in UTC, or since the log's own start.
    pub submitted_s: Option<f64>,
    /// Time from which the job could run, on the same clock, s.
    pub eligible_s: Option<f64>,
    /// Start of the first attempt, s.
    pub started_s: Option<f64>,
    /// End of the last attempt, s.
    pub ended_s: Option<f64>,
    /// Running time over all attempts, s.
    pub ran_s: Option<f64>,
    /// Workers that the job held at once; 0 if the log says that it asked for none.
    pub n_workers: Option<u32>,
    /// Part of each worker that the job asked for, above 0 and below 1; `None` for whole ones.
    pub fraction: Option<f64>,
    /// Number of servers that the job ran on.
    pub n_nodes: Option<u32>,
    /// Worker type, or alternative types separated by `|`, by the log's names.
    pub worker_type: Option<T>,
    /// State in which the job ended, or was when the log was taken.
    pub state: State,
    /// Number of starts; `None` where the log does not say, as for a job that ended and has no start there.
    pub n_attempts: Option<u32>,
    /// Class that the log gives the job: a priority, a kind of work.
    pub class: Option<T>,
    /// Line of the log at which the job begins, from 1.
    pub line: u64,
    /// File of that line where it is not the log: for a job that only PAI's table of jobs has.
    pub file: Option<T>,
}

impl Row {
    /// A row with nothing but a name and a line.
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

    /// The row with borrowed texts.
    pub fn seen(&self) -> Seen<'_> {
        self.with(|text| &**text)
    }
}

impl Seen<'_> {
    /// The row with texts of its own.
    pub(crate) fn to_owned(&self) -> Row {
        self.with(|text| Arc::from(*text))
    }

    /// Whether both rows have the same contents, apart from name, line and file.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        let at = |row: &Self| Self { id: "", line: 0, file: None, ..row.clone() };
        at(self) == at(other)
    }

    /// Digest of the row's contents, apart from name, line and file: equal for rows with the same contents.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", Self { id: "", line: 0, file: None, ..self.clone() }).hash(&mut hasher);
        hasher.finish()
    }
}

impl<T> Row<T> {
    /// The row with each text replaced by what `text` makes of it.
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

    /// Workers that the job held, in whole ones: a job of two halves held 1.
    pub fn held(&self) -> Option<f64> {
        Some(f64::from(self.n_workers?) * self.fraction.unwrap_or(1.0))
    }

    /// Whether it ends before it starts, or starts before it is submitted, by more than a second, or its running time is
    /// below 0.
    pub fn contradicts_itself(&self) -> bool {
        let is_before = |one: Option<f64>, other: Option<f64>| {
            one.zip(other).is_some_and(|(one, other)| one < other - 1.0)
        };
        is_before(self.ended_s, self.started_s)
            || is_before(self.started_s, self.submitted_s)
            || is_before(self.ended_s, self.submitted_s)
            || self.ran_s.is_some_and(|ran| ran < -1.0)
    }

    /// The row marked as contradictory: a part of the job contradicts itself, whatever its other parts are.
    pub(crate) fn contradictory(self) -> Self {
        Self { ran_s: Some(-1e9), ..self }
    }

    /// Puts times in order that are out of it by a second or less. Returns `false` if they were in order.
    pub(crate) fn put_in_order(&mut self) -> bool {
        let after = |time: Option<f64>, other: Option<f64>| Some(time?.max(other.unwrap_or(f64::MIN)));
        let started_s = after(self.started_s, self.submitted_s);
        let ended_s = after(after(self.ended_s, started_s), self.submitted_s);
        let ran_s = after(self.ran_s, Some(0.0));
        let was_in_order = (started_s, ended_s, ran_s) == (self.started_s, self.ended_s, self.ran_s);
        (self.started_s, self.ended_s, self.ran_s) = (started_s, ended_s, ran_s);
        !was_in_order
    }

    /// Number of starts of a job with one run: 1, 0, or none where the log does not say. `ran_for_nothing`: whether the log
    /// says that it ran for 0 s.
    ///
    /// A job without a start that waits or was cancelled never started. One that ended otherwise may have lost its start,
    /// unless the log has no end of it, either.
    pub(crate) fn starts_of_one_run(&self, ran_for_nothing: bool) -> Option<u32> {
        if self.started_s.is_some() || self.ran_s.is_some_and(|ran| ran > 0.0) {
            return Some(1);
        }
        let never_started = match self.state {
            state if state.is_only_of_runs() => false,
            State::Pending | State::Cancelled => true,
            // Slurm also has this state for jobs that miss their deadline while they wait.
            State::Timeout => ran_for_nothing,
            _ => ran_for_nothing || self.ended_s.is_none(),
        };
        never_started.then_some(0)
    }

    /// Whether its state says that it has ended, while neither its end nor its running time is known.
    pub(crate) fn lacks_its_end(&self) -> bool {
        let is_open = matches!(self.state, State::Running | State::Pending | State::Unknown);
        !is_open && self.started_s.is_some() && self.ended_s.is_none() && self.ran_s.is_none()
    }
}

/// A row that borrows its texts, as [`Rows`](crate::Rows) give it.
pub type Seen<'a> = Row<&'a str>;

/// State in which a job ended, or was when the log was taken.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The job ended by itself without an error.
    Completed,
    /// The job ended by itself with an error.
    Failed,
    /// The job was stopped by its owner or by an operator.
    Cancelled,
    /// The job was stopped at its time limit.
    Timeout,
    /// The job ended because its server failed.
    NodeFailure,
    /// The job ended for lack of memory.
    OutOfMemory,
    /// The job's workers were taken away.
    Preempted,
    /// The job was running when the log was taken.
    Running,
    /// The job was waiting when the log was taken.
    Pending,
    /// The log does not say.
    Unknown,
}

impl State {
    /// All states.
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

    /// Name in the normalized log.
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

    /// Whether only a job that was started can have this state.
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

    /// The state with a name of the normalized log; none if there is none.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}
