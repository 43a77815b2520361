//! Microsoft's log of 2017: a JSON list of jobs, each with its attempts.

use std::collections::BTreeSet;
use std::sync::Arc;

use apportion::spec::SpecError;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::input::Input;
use crate::json::{Entry, List};
use crate::reading::{Fault, Reading};
use crate::row::{Row, State};
use crate::table::Value;
use crate::tally::{Doubt, Reason};

const LIST: List = List {
    under: None,
    expected: "a JSON list of {jobid, vc, submitted_time, attempts: [{start_time, end_time, detail}]}",
};

const STATES: [(&str, State); 3] =
    [("Pass", State::Completed), ("Killed", State::Cancelled), ("Failed", State::Failed)];

#[derive(Deserialize)]
struct Job<'a> {
    #[serde(borrow)]
    jobid: Option<&'a RawValue>,
    #[serde(borrow)]
    vc: Option<&'a RawValue>,
    #[serde(borrow)]
    user: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    submitted_time: Option<&'a RawValue>,
    #[serde(borrow)]
    attempts: Vec<Attempt<'a>>,
}

#[derive(Deserialize)]
struct Attempt<'a> {
    #[serde(borrow)]
    start_time: Option<&'a RawValue>,
    #[serde(borrow)]
    end_time: Option<&'a RawValue>,
    #[serde(borrow)]
    detail: Option<Vec<Server<'a>>>,
}

#[derive(Deserialize)]
struct Server<'a> {
    #[serde(borrow)]
    ip: Option<&'a RawValue>,
    #[serde(borrow)]
    gpus: Vec<&'a RawValue>,
}

/// Times of a job's attempts, taken together.
#[derive(Default)]
struct Times {
    started_s: Option<f64>,
    ended_s: Option<f64>,
    ran_s: Option<f64>,
    /// Whether an attempt starts before the one before it ended.
    overlap: bool,
    /// Whether an attempt ends before it starts.
    end_before_start: bool,
    /// Whether the last attempt has started and not ended.
    is_open: bool,
}

/// Start and end of an attempt, s, and its position among the job's attempts.
type Attempted = (Option<f64>, Option<f64>, usize);

pub(crate) fn read(input: &mut Input, log: &mut Reading) -> Result<(), SpecError> {
    LIST.read(input, |entry| {
        log.n_read += 1;
        match row(&entry, log) {
            Ok(Some(row)) => log.take(row),
            Ok(None) => {}
            Err(fault) => {
                let text = if log.is_full() { "".into() } else { entry.line_text(fault.place) };
                log.complain(fault, &text);
            }
        }
    })
    .map(|IgnoredAny| ())
}

/// The row of a job; none if it was left out.
fn row(entry: &Entry<'_>, log: &mut Reading) -> Result<Option<Row>, Fault> {
    let job: Job<'_> = entry.parse()?;
    let id: Option<Arc<str>> = entry.value(job.jobid, ("jobid", NAME), name)?.map(Into::into);
    let id = id.ok_or_else(|| Fault {
        place: job.jobid.map_or(entry.place(), |jobid| entry.place_of(jobid)),
        message: "a job without a name".to_owned(),
    })?;
    let mut row = Row::new(id, entry.line());
    row.group = entry.value(job.vc, ("vc", NAME), name)?.map(|name| log.share(&name));
    row.user = entry.value(job.user, ("user", NAME), name)?.map(|name| log.share(&name));
    let state = |text: &str| STATES.iter().find(|(name, _)| *name == text).map(|(_, state)| *state);
    let state = entry.value(job.status, ("status", "one of Pass, Killed, Failed"), state)?;
    row.state = state.unwrap_or(State::Unknown);
    row.submitted_s = time(entry, job.submitted_time, ("submitted_time", None), log)?;
    let attempts = in_order(entry, &job.attempts, &row, log)?;
    let times = times(&attempts);
    if times.overlap {
        log.doubt(Doubt::Overlap, row.line, Some(&row.id));
    }
    if times.end_before_start {
        log.leave_out(Reason::Contradictory, row.line, Some(&row.id));
        return Ok(None);
    }
    (row.started_s, row.ended_s, row.ran_s) = (times.started_s, times.ended_s, times.ran_s);
    if times.is_open && state.is_none() {
        row.state = State::Running;
    }
    if check_workers(entry, &job.attempts)? {
        log.doubt(Doubt::NamedTwice, row.line, Some(&row.id));
    }
    // The workers of the last attempt that had any.
    let ordered: Vec<&Attempt<'_>> = attempts.iter().map(|(.., at)| &job.attempts[*at]).collect();
    let sizes: Vec<usize> = ordered.iter().map(|attempt| attempt.n_workers()).collect();
    if sizes.windows(2).any(|pair| pair[0] != pair[1]) {
        log.doubt(Doubt::SizeChanged, row.line, Some(&row.id));
    }
    let last = ordered.iter().rev().find(|attempt| attempt.n_workers() > 0).or(ordered.last());
    if let Some(last) = last {
        // An empty list of servers does not say that the job had no accelerator.
        let is_told = last.detail.as_ref().is_some_and(|servers| !servers.is_empty());
        row.n_workers = Some(u32::try_from(last.n_workers()).unwrap_or(u32::MAX)).filter(|_| is_told);
        let servers: BTreeSet<Option<&str>> =
            last.detail.iter().flatten().map(|server| server.ip.map(RawValue::get)).collect();
        row.n_nodes = u32::try_from(servers.len()).ok().filter(|n| *n > 0);
    }
    row.n_attempts = match attempts.len() {
        0 => row.starts_of_one_run(false),
        n => Some(u32::try_from(n).unwrap_or(u32::MAX)),
    };
    Ok(Some(row))
}

/// Checks that the accelerators listed for each server are names. Returns whether a name is listed twice for one.
fn check_workers(entry: &Entry<'_>, attempts: &[Attempt<'_>]) -> Result<bool, Fault> {
    let mut is_named_twice = false;
    for server in attempts.iter().flat_map(|attempt| attempt.detail.iter().flatten()) {
        let mut names = BTreeSet::new();
        for raw in &server.gpus {
            let named = entry.value(Some(*raw), ("gpus", NAME), name)?.ok_or_else(|| Fault {
                place: entry.place_of(raw),
                message: format!("gpus has `{}`, expected names of accelerators", raw.get()),
            })?;
            is_named_twice |= !names.insert(named);
        }
    }
    Ok(is_named_twice)
}

impl Attempt<'_> {
    fn n_workers(&self) -> usize {
        self.detail.iter().flatten().map(|server| server.gpus.len()).sum()
    }
}

/// Starts and ends of a job's attempts in order of time, with their positions; an attempt without times stays after the one
/// before it. Attempts with neither times nor accelerators never started, and are left out.
fn in_order(
    entry: &Entry<'_>,
    attempts: &[Attempt<'_>],
    row: &Row,
    log: &mut Reading,
) -> Result<Vec<Attempted>, Fault> {
    let (mut all, mut keys) = (Vec::new(), Vec::new());
    let (mut last, mut key) = (row.submitted_s, f64::NEG_INFINITY);
    for (at, attempt) in attempts.iter().enumerate() {
        let start = time(entry, attempt.start_time, ("start_time", last), log)?;
        last = start.or(last);
        let end = time(entry, attempt.end_time, ("end_time", last), log)?;
        last = end.or(last);
        key = start.or(end).unwrap_or(key);
        keys.push(key);
        if start.is_some() || end.is_some() || attempt.n_workers() > 0 {
            all.push((start, end, at));
        }
    }
    if !all.is_sorted_by_key(|(.., at)| keys[*at]) {
        log.doubt(Doubt::AttemptsSorted, row.line, Some(&row.id));
        all.sort_by(|one, other| keys[one.2].total_cmp(&keys[other.2]));
    }
    Ok(all)
}

/// Times of all attempts together. The running time is known if each attempt has a start and an end.
fn times(attempts: &[Attempted]) -> Times {
    let mut times = Times::default();
    let mut is_known = !attempts.is_empty();
    for (start, end, _) in attempts.iter().copied() {
        times.started_s = times.started_s.or(start);
        times.overlap |= start.zip(times.ended_s).is_some_and(|(start, last)| start < last - 1.0);
        match start.zip(end) {
            Some((start, end)) => {
                times.end_before_start |= end < start - 1.0;
                *times.ran_s.get_or_insert(0.0) += f64::max(end - start, 0.0);
            }
            None => is_known = false,
        }
        // Without an end the last attempt was running when the log was taken, unless the job's status says that it ended.
        times.is_open = start.is_some() && end.is_none();
        times.ended_s = end;
    }
    times.ran_s = times.ran_s.filter(|_| is_known);
    times
}

/// A time of the entry: of two readings the one that is after `last`, another time of the same job.
fn time(
    entry: &Entry<'_>,
    raw: Option<&RawValue>,
    (name, last): (&str, Option<f64>),
    log: &mut Reading,
) -> Value<f64> {
    Ok(entry.moment(raw, name, log)?.map(|moment| moment.after(last)))
}

pub(super) const NAME: &str = "a name without control characters";

/// A name without control characters; none for other texts.
pub(super) fn name(text: &str) -> Option<String> {
    (!text.chars().any(char::is_control)).then(|| text.to_owned())
}
