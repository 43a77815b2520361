//! Flags of `serve` that state times and limits.

use std::time::Duration;

use clap::Args;

use crate::conditions::time;
use apportion::units::Seconds;
use apportion_live::core::Settings;

/// Times and limits; by default they follow from the round's length.
#[derive(Args, Clone, Debug)]
pub(super) struct TimeArguments {
    /// Time before the end of a round at which the next one is decided
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    look_ahead: Option<Seconds>,
    /// Time after the request to stop at which a rank is killed
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    pub(super) grace: Option<Seconds>,
    /// Time after that until its worker counts as free if its end is not reported
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    slack: Option<Seconds>,
    /// Time without a report after which a server gets no new job
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    silence: Option<Seconds>,
    /// Time that all ranks of a job may take to start
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    start_limit: Option<Seconds>,
    /// Time that a job waits after its first failure; twice as long after each further one, up to 64 times
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    back_off: Option<Seconds>,
    /// Number of failures in a row after which a job is given up
    #[arg(long, value_name = "N")]
    failures_max: Option<u32>,
    /// The number of different jobs that fail on a server one after the other until it is drained
    #[arg(long, value_name = "N")]
    server_failures_max: Option<usize>,
    /// Leave workers that become idle inside a round, or that a new job finds idle, idle until the next
    #[arg(long)]
    no_refill: bool,
    /// Time that a decision may take; the last one stays in force after it
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    pub(super) decision_limit: Option<Seconds>,
    /// Number of newest lines of the event log that are kept; 10,000,000 where not given
    #[arg(long, value_name = "N")]
    keep_events: Option<u64>,
}

impl TimeArguments {
    /// The settings for rounds of this length.
    pub(super) fn settings(&self, round_length: Seconds) -> Settings {
        let usual = Settings::of_round(round_length);
        let limit = self
            .decision_limit
            .map(|limit| Duration::try_from_secs_f64(limit.get()).unwrap_or(Duration::MAX));
        Settings {
            look_ahead: self.look_ahead.unwrap_or(usual.look_ahead),
            grace: self.grace.unwrap_or(usual.grace),
            slack: self.slack.unwrap_or(usual.slack),
            silence: self.silence.unwrap_or(usual.silence),
            start_limit: self.start_limit.unwrap_or(usual.start_limit),
            back_off: self.back_off.unwrap_or(usual.back_off),
            failures_max: self.failures_max.unwrap_or(usual.failures_max),
            server_failures_max: self.server_failures_max.unwrap_or(usual.server_failures_max),
            refill: !self.no_refill,
            decision_limit: limit.or(usual.decision_limit),
            keep_events: self.keep_events.unwrap_or(usual.keep_events),
            front_door: usual.front_door,
        }
    }
}
