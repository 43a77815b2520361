//! The settings of a live scheduler.

use std::time::Duration;

use apportion::Seconds;
use thiserror::Error;

/// Times and limits of a live scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Time before the end of a round at which the next one is decided. Jobs that are to go have it for their checkpoint.
    pub look_ahead: Seconds,
    /// Time after which a rank is killed, from the request to stop or from the lease's end.
    pub grace: Seconds,
    /// Time after that until its worker counts as free, if its end is not reported: for a kill to be done, and for clocks that run
    /// at different speeds.
    pub slack: Seconds,
    /// Time without a report after which a server gets no new job.
    pub silence: Seconds,
    /// Time after its order at which a run has failed to start unless all of its ranks run.
    pub start_limit: Seconds,
    /// Time for which a job waits after its first failure; twice as long after each further one, up to 64 times.
    pub back_off: Seconds,
    /// The number of failures in a row after which a job is given up.
    pub failures_max: u32,
    /// The number of different jobs that fail on a server one after the other until it is drained.
    pub server_failures_max: usize,
    /// Whether workers that are idle inside a round are given to waiting jobs at once, and not only in the next round. Such are the
    /// workers of a job that is over and of a server that joins, and workers that a new job finds idle.
    pub refill: bool,
    /// The most time that a decision may take; none is without a limit. After it the last allocation stays in force.
    pub decision_limit: Option<Duration>,
    /// The number of newest lines of the event log that are kept.
    pub keep_events: u64,
    /// Whether users submit elsewhere, to the system that starts their programs. Then a job is [taken in](super::Request::TakeIn)
    /// from there only, and its steps are presumed, since its program reports none here.
    pub front_door: bool,
}

/// The least number of lines of the event log that is kept: more than there are between the starts of two rounds.
const EVENTS_MIN: u64 = 100_000;

/// A setting out of its range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{setting} is {value}, expected {expected}")]
pub struct SettingError {
    /// The setting's name.
    pub setting: &'static str,
    /// Its value.
    pub value: String,
    /// The values that are allowed.
    pub expected: String,
}

impl Settings {
    /// Settings for rounds of this length: those that suit 360 s, and proportionally less for shorter rounds.
    pub fn of_round(round_length: Seconds) -> Self {
        let part = |most: f64, share: f64| Seconds::new(most.min(round_length.get() * share));
        Self {
            look_ahead: part(30.0, 0.25),
            grace: part(60.0, 0.5),
            slack: part(10.0, 0.25),
            silence: part(15.0, 0.75),
            start_limit: part(120.0, 1.0),
            back_off: part(30.0, 0.25),
            failures_max: 5,
            server_failures_max: 3,
            refill: true,
            decision_limit: Some(Duration::from_secs_f64((round_length.get() / 8.0).clamp(0.05, 10.0))),
            keep_events: 10_000_000,
            front_door: false,
        }
    }

    /// The interval at which an agent is to report: several reports may be lost before its server counts as silent.
    pub fn beat(&self) -> Seconds {
        Seconds::new((self.silence.get() / 5.0).clamp(0.05, 5.0))
    }

    /// Warnings about settings that are allowed and rarely meant, in sentences.
    pub fn doubts(&self, round_length: Seconds) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.grace < Seconds::new(1.0) {
            doubts.push(format!(
                "the grace is {}: a job that takes longer to stop is killed, and loses its work since the last checkpoint",
                self.grace
            ));
        }
        if self.grace > round_length {
            doubts.push(format!(
                "the grace is {}, longer than the round's {round_length}: a job that does not stop holds its workers for longer \
                 than a round",
                self.grace
            ));
        }
        doubts
    }

    /// Refuses settings that are out of their range.
    ///
    /// # Errors
    /// If a time is not finite or below 0, the look-ahead is not shorter than the round, or a limit is 0.
    pub fn check(&self, round_length: Seconds) -> Result<(), SettingError> {
        let times = [
            ("look_ahead", self.look_ahead),
            ("grace", self.grace),
            ("slack", self.slack),
            ("silence", self.silence),
            ("start_limit", self.start_limit),
            ("back_off", self.back_off),
        ];
        let refuse =
            |setting, value: String, expected: String| Err(SettingError { setting, value, expected });
        if let Some((setting, time)) =
            times.into_iter().find(|(_, time)| !(time.is_finite() && time.get() >= 0.0))
        {
            return refuse(setting, time.to_string(), "a finite number of seconds, at least 0".into());
        }
        if self.look_ahead >= round_length {
            let expected = format!("less than the round's {round_length}");
            return refuse("look_ahead", self.look_ahead.to_string(), expected);
        }
        if self.failures_max == 0 || self.server_failures_max == 0 {
            let setting = if self.failures_max == 0 { "failures_max" } else { "server_failures_max" };
            return refuse(setting, "0".into(), "at least 1".into());
        }
        if self.keep_events < EVENTS_MIN {
            let expected = format!("at least {EVENTS_MIN}");
            return refuse("keep_events", self.keep_events.to_string(), expected);
        }
        Ok(())
    }
}
