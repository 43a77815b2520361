//! The key by which a shadow identifies a job.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A job of the other scheduler: its number there, or the number of its array and of its task in that.
///
/// Where the other scheduler has forgotten a job and given its number out again, jobs with this number are counted in their order.
/// As text the key is `12`, `12_3` for a task, and `12#1` for the second job with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct JobKey {
    /// Its number, or that of its array.
    pub job: u64,
    /// The number of its task in the array; none if it is a job by itself.
    pub task: Option<u64>,
    /// The number of earlier jobs with this number.
    pub nth: u32,
}

impl JobKey {
    /// The key of the first job with this number.
    pub fn new(job: u64, task: Option<u64>) -> Self {
        Self { job, task, nth: 0 }
    }

    /// The key of the next job with the same number.
    pub(super) fn next(self) -> Self {
        Self { nth: self.nth.saturating_add(1), ..self }
    }

    /// The largest possible key with this number.
    pub(super) fn last(self) -> Self {
        Self { nth: u32::MAX, ..self }
    }
}

impl From<u64> for JobKey {
    fn from(job: u64) -> Self {
        Self::new(job, None)
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.job)?;
        self.task.map_or(Ok(()), |task| write!(out, "_{task}"))?;
        if self.nth > 0 { write!(out, "#{}", self.nth) } else { Ok(()) }
    }
}

impl From<JobKey> for String {
    fn from(key: JobKey) -> Self {
        key.to_string()
    }
}

impl FromStr for JobKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let strange = || format!("`{text}` names no job: expected a number, such as 12, or 12_3 for a task");
        let number = |text: &str| text.parse::<u64>().map_err(|_| strange());
        let (rest, nth) = text.split_once('#').unwrap_or((text, "0"));
        let (job, task) = rest.split_once('_').map_or((rest, None), |(job, task)| (job, Some(task)));
        let nth = nth.parse().map_err(|_| strange())?;
        Ok(Self { job: number(job)?, task: task.map(number).transpose()?, nth })
    }
}

impl TryFrom<String> for JobKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let first = JobKey::new(12, None);
        for (key, text) in [
            (first, "12"),
            (first.next(), "12#1"),
            (JobKey::new(12, Some(0)), "12_0"),
            (JobKey::new(12, Some(3)).next(), "12_3#1"),
        ] {
            assert_eq!((key.to_string().as_str(), text.parse()), (text, Ok(key)));
        }
        for odd in ["", "x", "12_", "12#", "12_3#x", "-1"] {
            assert!(odd.parse::<JobKey>().is_err(), "{odd}");
        }
        assert!(JobKey::new(9, None) < JobKey::new(10, None));
    }
}
