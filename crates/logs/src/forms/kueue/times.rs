//! Start, end, number of starts and final state of a workload, from its conditions. Kueue keeps the last time of each.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::time;
use crate::json::Entry;
use crate::reading::{Fault, Reading};
use crate::row::{Row, State};
use crate::tally::{Doubt, Reason};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition<'a> {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: Option<String>,
    message: Option<String>,
    #[serde(borrow)]
    last_transition_time: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct SchedulingStats {
    #[serde(default)]
    pub(super) evictions: Vec<Eviction>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Eviction {
    underlying_cause: Option<String>,
    count: Option<u32>,
}

/// Parts of a workload's status that tell of its runs.
pub(super) struct Course<'a> {
    pub(super) conditions: &'a [Condition<'a>],
    pub(super) evictions: &'a [Eviction],
    /// Running time of earlier runs, s, above 0.
    pub(super) past_s: Option<f64>,
    pub(super) is_active: bool,
}

impl<'a> Course<'a> {
    /// Takes start, end, state and number of starts into a row; `false` if another workload stands for this one.
    ///
    /// An eviction after the admission ended the run that the workload was admitted for; one before it, an earlier run.
    pub(super) fn take_into(
        &self,
        row: &mut Row,
        entry: &Entry<'_>,
        log: &mut Reading,
    ) -> Result<bool, Fault> {
        let mut time_of = |condition: Option<&Condition<'_>>| {
            time(entry, condition.and_then(|condition| condition.last_transition_time), log)
        };
        let (finished, evicted) = (self.holding("Finished"), self.holding("Evicted"));
        row.started_s = time_of(self.holding("Admitted"))?;
        let (finished_s, evicted_s) = (time_of(finished)?, time_of(evicted)?);
        let ended_run = row.started_s.zip(evicted_s).is_some_and(|(start, evicted)| evicted >= start);
        let is_end = ended_run || (!self.is_active && row.started_s.is_none());
        row.ended_s = if finished.is_some() { finished_s } else { evicted_s.filter(|_| is_end) };
        let last_s = row.started_s.zip(row.ended_s).map(|(start, end)| end - start);
        row.ran_s = last_s.into_iter().chain(self.past_s).reduce(|one, other| one + other);
        row.state = match finished {
            Some(Condition { reason: Some(reason), .. }) if reason == "WorkloadSliceReplaced" => {
                log.leave_out(Reason::Replaced, row.line, Some(&row.id));
                return Ok(false);
            }
            Some(condition) => how_it_finished(condition),
            None if !self.is_active && self.is_late() => State::Timeout,
            None if !self.is_active => State::Cancelled,
            None if ended_run => how_it_was_evicted(evicted),
            None if row.started_s.is_some() => State::Running,
            None => State::Pending,
        };
        row.n_attempts = self.n_starts(row, ended_run);
        let n_earlier = self.n_evictions().saturating_sub(u32::from(ended_run));
        let was_evicted = n_earlier > 0 || self.was_evicted_before(ended_run);
        if self.has("Admitted") && self.past_s.is_none() && was_evicted {
            log.doubt(Doubt::RunsLost, row.line, Some(&row.id));
        }
        Ok(true)
    }

    /// Number of starts; none where Kueue does not keep it, as older versions count no evictions.
    fn n_starts(&self, row: &Row, ended_run: bool) -> Option<u32> {
        if !self.has("Admitted") && self.past_s.is_none() {
            return row.starts_of_one_run(false);
        }
        let has_earlier =
            self.past_s.is_some() || row.started_s.is_none() || self.was_evicted_before(ended_run);
        match self.n_evictions().saturating_sub(u32::from(ended_run)) {
            0 if has_earlier => None,
            n => Some(n.saturating_add(u32::from(row.started_s.is_some()))),
        }
    }

    /// Whether it was evicted before the admission of its conditions. Kueue keeps the condition when it admits the workload
    /// again.
    fn was_evicted_before(&self, ended_run: bool) -> bool {
        self.has("Evicted") && !(ended_run && self.holding("Evicted").is_some())
    }

    fn n_evictions(&self) -> u32 {
        let counts = self.evictions.iter().map(|eviction| eviction.count.unwrap_or(0));
        counts.fold(0, u32::saturating_add)
    }

    /// Whether it was stopped at its time limit.
    fn is_late(&self) -> bool {
        self.evictions.iter().any(|eviction| eviction.underlying_cause.as_deref() == Some(LATE))
    }

    /// Whether there is a condition of a kind, true or false. Kueue writes that a workload is not admitted only where it
    /// was.
    fn has(&self, kind: &str) -> bool {
        self.conditions.iter().any(|condition| condition.kind == kind)
    }

    /// The condition of a kind that is true.
    fn holding(&self, kind: &str) -> Option<&'a Condition<'a>> {
        self.conditions.iter().find(|condition| condition.kind == kind && condition.status == "True")
    }
}

/// State by Kueue's reason for an eviction: the servers failed, or the workers were taken away.
fn how_it_was_evicted(evicted: Option<&Condition<'_>>) -> State {
    match evicted.and_then(|condition| condition.reason.as_deref()) {
        Some("NodeFailures") => State::NodeFailure,
        _ => State::Preempted,
    }
}

/// Kueue's cause of an eviction at the time limit.
const LATE: &str = "MaximumExecutionTimeExceeded";

/// State by Kueue's reason for the finish; older versions have it in the message only.
fn how_it_finished(condition: &Condition<'_>) -> State {
    match condition.reason.as_deref() {
        Some("Succeeded") => return State::Completed,
        Some("Failed") => return State::Failed,
        _ => {}
    }
    let message = condition.message.as_deref().unwrap_or_default().to_ascii_lowercase();
    if message.contains("success") {
        State::Completed
    } else if message.contains("fail") {
        State::Failed
    } else {
        State::Unknown
    }
}
