//! Counts of rows that were left out or are doubtful, each with an example.

use schemars::JsonSchema;
use serde::Serialize;

use crate::row::Row;

/// The most characters of a log's text in a count.
const EXCERPT_MAX: usize = 60;

/// The text of a log, shortened to be shown.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A number of things in words: `1 job`, `2 jobs`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A number of rows, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tally {
    /// Number of rows.
    pub n: u64,
    /// Line of the first row; 0 if there is none.
    pub line: u64,
    /// File of that line where it is not the log, such as PAI's table of jobs. Lines of the log come before its lines.
    pub file: Option<String>,
    /// Id of the first row, where it has one; a long id is cut.
    pub id: Option<String>,
}

impl Tally {
    /// Counts one row of the log.
    pub fn count(&mut self, line: u64, id: Option<&str>) {
        self.count_in(None, line, id);
    }

    /// Counts one row, with the file that it is from.
    pub(crate) fn count_row<T: AsRef<str>>(&mut self, row: &Row<T>) {
        self.count_in(row.file.as_ref().map(T::as_ref), row.line, Some(row.id.as_ref()));
    }

    /// Counts one row of another file or, for `None`, of the log.
    pub(crate) fn count_in(&mut self, file: Option<&str>, line: u64, id: Option<&str>) {
        if self.n == 0 || (file, line) < (self.file.as_deref(), self.line) {
            (self.line, self.file) = (line, file.map(str::to_owned));
            self.id = id.map(excerpt);
        }
        self.n += 1;
    }

    /// Adds the rows of another tally.
    pub fn add(&mut self, other: &Self) {
        if self.n == 0 || (other.n > 0 && (&other.file, other.line) < (&self.file, self.line)) {
            (self.line, self.id, self.file) = (other.line, other.id.clone(), other.file.clone());
        }
        self.n += other.n;
    }

    /// Position of the first row, as `line 5` or `line 5 of jobs.csv`; none if there is no line.
    pub fn place(&self) -> Option<String> {
        let of = self.file.as_ref().map_or_else(String::new, |file| format!(" of {file}"));
        (self.line > 0).then(|| format!("line {}{of}", self.line))
    }
}

/// Reason why a row of a log is no job of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A value of the row is present and not understood.
    NotUnderstood,
    /// The row is a step of a job, whose own row stands for it.
    Step,
    /// Another row stands for it: it is a slice of an elastic job that was replaced.
    Replaced,
    /// It is a run that had not started or not ended, and another row says as much of it or more.
    Superseded,
    /// The row repeats an earlier one word for word.
    Repeated,
    /// The job asked for no worker.
    NoWorkers,
    /// The job's number of workers is not known.
    WorkersUnknown,
    /// The job never started.
    NotStarted,
    /// The job had not ended when the log was taken.
    NotEnded,
    /// The job's running time is not known.
    RunningTimeUnknown,
    /// The job ran for 0 s.
    RanForNothing,
    /// The row's times contradict one another: the job ends before it starts, or starts before it is submitted.
    Contradictory,
    /// The row lacks the time that is its arrival by the rules, and all later ones.
    NoArrival,
    /// The rules leave out jobs that ended in this state.
    State,
    /// The rules leave out jobs that asked for parts of workers.
    Fraction,
    /// The rules leave out jobs that need more workers than any row of the matrix has.
    TooLarge,
    /// No rule says which job type stands for it.
    NoRule,
    /// An entry of the rules leaves the row out.
    LeftOutByRule,
    /// Its rule takes the job type that its class names, and it has no class or one that names no job type.
    ClassUnknown,
    /// No job type that its rule names runs on its reference worker type.
    NoJobType,
    /// It arrived outside the window.
    OutsideWindow,
    /// Its steps or its arrival are larger than a trace can hold.
    OutOfRange,
}

impl Reason {
    /// The reason in words, after "N rows:".
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotUnderstood => "something in them is not understood",
            Self::Step => "steps of jobs, which other rows stand for",
            Self::Replaced => "slices of elastic jobs, which other rows stand for",
            Self::Superseded => {
                "runs that had not started or not ended, of which another row says as much or more"
            }
            Self::Repeated => "say the same as an earlier row",
            Self::NoWorkers => "asked for no accelerator",
            Self::WorkersUnknown => "how many accelerators they had is not known",
            Self::NotStarted => "never started",
            Self::NotEnded => "had not ended when the log was taken",
            Self::RunningTimeUnknown => "how long they ran is not known",
            Self::RanForNothing => "ran for 0 s",
            Self::Contradictory => {
                "end before they start, start before they are submitted, or ran for less than 0 s"
            }
            Self::NoArrival => "neither the time that is their arrival by the rules nor a later one is there",
            Self::State => "ended in a state that the rules leave out",
            Self::Fraction => "parts of accelerators, which the rules leave out",
            Self::TooLarge => {
                "larger than the largest scale factor of their rule's job types, which the rules leave out"
            }
            Self::NoRule => "no rule of `job_types` is about them",
            Self::LeftOutByRule => "a rule of `job_types` leaves them out",
            Self::ClassUnknown => {
                "their class, by which their rule takes the job type, names none of the throughputs"
            }
            Self::NoJobType => "no job type of their rule runs on their reference worker type",
            Self::OutsideWindow => "arrived outside the window",
            Self::OutOfRange => "more or fewer steps, or a later arrival, than a trace holds",
        }
    }
}

// Doubts in words, after "N rows:", that are too long for a line of their list.
const BROKEN_LINES: &str = "several lines in one row, as a text such as SubmitLine or JobName holds their ends; they are taken as one";
const ZERO_TIMES: &str = "times at the zero of time (0, 1970-01-01, the year 1), as programs write one that was never set; taken as unknown";
const OUT_OF_ORDER: &str = "times out of order by a second or less; starts and ends are taken to be no earlier than what they follow";
const END_UNKNOWN: &str =
    "have ended, as their state says, and the log does not say when: how long they ran is not known";
const WAITING_ARRAY: &str = "several tasks of an array in one row, as none of them had started; the row is one job of the normalized log";
const PART_OF_SEVERAL: &str = "a part of an accelerator where several are asked for; the part counts only where one is, so they are taken as \
    whole ones";
const WAITS_AGAIN: &str = "rows that wait, with the submission of a run that ended on an earlier line; taken as its next attempt, so the job had \
    not ended: where two calls of sacct are joined newest first it may have ended, which a column Eligible, or the older call first, \
    tells";
const ERROR_LINE: &str = "lines in which sacct or Slurm tells an error: the log may be incomplete";

/// Doubt about a log, found by reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Times without a zone, and no zone was given.
    NaiveTimes,
    /// Times that the zone's clock shows twice, or never, as it is set back or forth.
    AmbiguousTimes,
    /// The running time that the log gives is not its end less its start.
    DurationDiffers,
    /// A running time that is the log's duration, because the start or the end is missing.
    DurationAlone,
    /// An elapsed time that is longer than from start to end.
    ElapsedTooLong,
    /// Workers that were requested and are not among the allocated resources.
    OnlyAsked,
    /// Attempts of one job that overlap in time.
    Overlap,
    /// An id that an earlier row has, of another job; the later one is called `ID#2`.
    SameId,
    /// Attempts of one job with different numbers of workers; those of the last that had any are taken.
    SizeChanged,
    /// No row lists accelerators.
    NoneListed,
    /// Rows of one id, which are attempts of one job.
    Requeued,
    /// A row under the same id that waits, without the time from which it may run, behind an attempt of the same submission
    /// that ended.
    WaitsAgain,
    /// Workers of several types in one job.
    SeveralTypes,
    /// A missing time of submission; the start stands for it.
    NoSubmission,
    /// A missing time of submission; the time from which the job could run stands for it.
    NoSubmissionButEligible,
    /// A missing time from which the job could run; the start stands for it.
    NoEligible,
    /// A job of one table that the other table lacks.
    NotInJobTable,
    /// A job that was evicted or requeued, and whose earlier running times the log does not keep.
    RunsLost,
    /// A line that repeats the table's header.
    RepeatedHeader,
    /// Attempts of one job that are not in order of time; they are put in order.
    AttemptsSorted,
    /// A list that is a part of a longer one.
    PartOfList,
    /// A row of Slurm's without the job's full name.
    NoJobId,
    /// The first row of each further cluster, in a log of several.
    SeveralClusters,
    /// A row that takes several lines, as a quoted text in it holds ends of lines.
    SeveralLines,
    /// A row that takes several lines, as a text in it that is not quoted holds ends of lines.
    BrokenLines,
    /// A time at the zero of time, as programs write one that was never set; it is taken as unknown.
    ZeroTimes,
    /// Times that are out of order by a second or less; the later in order is taken to be as late as the earlier.
    OutOfOrder,
    /// A job that has ended by its state, without an end or a running time.
    EndUnknown,
    /// A row that stands for several tasks of an array, none of which had started.
    WaitingArray,
    /// A part of an accelerator, for a job that asks for several; they are taken as whole ones.
    PartOfSeveral,
    /// An accelerator that a server lists twice for one attempt; both count.
    NamedTwice,
    /// A line that sacct wrote about an error, amid its output.
    ErrorLine,
}

impl Doubt {
    /// The doubt in words, after "N rows:".
    pub const fn words(self) -> &'static str {
        match self {
            Self::NaiveTimes => {
                "times without a zone, taken as UTC: hours of the day are those of the cluster's clock, and where it was \
                 set for summer time an hour is wrong; `--zone` gives the zone"
            }
            Self::AmbiguousTimes => {
                "times that the zone's clock shows twice or never, when it is set back or forth; the earlier reading, unless \
                 only the later is in order with the row's other times, or the time after the gap is taken"
            }
            Self::DurationDiffers => "the log's duration is not end less start, which is taken",
            Self::DurationAlone => "no start or no end; the log's duration is taken",
            Self::ElapsedTooLong => "elapsed times longer than from start to end; the elapsed time is taken",
            Self::OnlyAsked => {
                "accelerators that were asked for and not listed as given; those asked for are taken"
            }
            Self::Overlap => "attempts of one job that overlap in time; each counts as running time",
            Self::SameId => "ids that an earlier job has; the later one is called ID#2",
            Self::SizeChanged => {
                "attempts of one job with different numbers of accelerators; those of the last that had any are taken"
            }
            Self::NoneListed => {
                "no row lists gres/gpu: either no job asked for an accelerator, or the cluster's AccountingStorageTRES does not \
                 name gres/gpu"
            }
            Self::Requeued => "several rows of one id, taken as attempts of one job",
            Self::WaitsAgain => WAITS_AGAIN,
            Self::SeveralTypes => {
                "jobs on several worker types, at once or one after the other; none is taken"
            }
            Self::NoSubmission => {
                "no time of submission: the start is taken as arrival, so waiting on the original cluster is part of it"
            }
            Self::NoSubmissionButEligible => {
                "no time of submission: the time from which they could run is taken as arrival"
            }
            Self::NoEligible => {
                "no time from which they could run: the start is taken as arrival, so waiting on the original cluster is part \
                 of it"
            }
            Self::NotInJobTable => "jobs that the table of jobs does not have",
            Self::RunsLost => {
                "evicted or requeued jobs, of which the log does not keep the time of earlier runs"
            }
            Self::RepeatedHeader => "lines that repeat the header",
            Self::AttemptsSorted => {
                "attempts of one job that are not in order of time; they are put in order of their starts"
            }
            Self::PartOfList => {
                "the list is a part of a longer one, as its `metadata.continue` says: there are more workloads than it has"
            }
            Self::NoJobId => {
                "no JobID, only JobIDRaw: components of heterogeneous jobs are taken as jobs of their own; ask sacct for JobID, too"
            }
            Self::SeveralLines => {
                "several lines in one row, as a quoted text holds their ends: is a quote a stray one?"
            }
            Self::BrokenLines => BROKEN_LINES,
            Self::ZeroTimes => ZERO_TIMES,
            Self::OutOfOrder => OUT_OF_ORDER,
            Self::EndUnknown => END_UNKNOWN,
            Self::WaitingArray => WAITING_ARRAY,
            Self::PartOfSeveral => PART_OF_SEVERAL,
            Self::NamedTwice => "an accelerator that a server lists twice for one attempt; both count",
            Self::ErrorLine => ERROR_LINE,
            Self::SeveralClusters => {
                "clusters beside the first: jobs are called CLUSTER:ID, and their load is that of all clusters together"
            }
        }
    }
}
