//! Flags of `serve` that state times and limits.

use std::time::Duration;

use clap::Args;

use crate::conditions::time;
use apportion::units::Seconds;
use apportion_live::core::Settings;

/// Times and limits; by default they follow from the round's length.
#[derive(Args, Clone, Debug)]
pub(super) struct TimeArguments {
    /// The next round is decided so long before the round ends
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    look_ahead: Option<Seconds>,
    /// How long after it was asked to stop a rank is killed
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    pub(super) grace: Option<Seconds>,
    /// How long after that its worker is taken for free without a word of its end
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    slack: Option<Seconds>,
    /// A server that is not heard of for so long gets no new job
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    silence: Option<Seconds>,
    /// How long all ranks of a job may take to start
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    start_limit: Option<Seconds>,
    /// How long a job waits after its first failure; twice as long after each further one, up to 64 times
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    back_off: Option<Seconds>,
    /// A job that failed so often in a row is given up
    #[arg(long, value_name = "N")]
    failures_max: Option<u32>,
    /// The number of different jobs that fail on a server one after the other until it is drained
    #[arg(long, value_name = "N")]
    server_failures_max: Option<usize>,
    /// Leave workers that become idle inside a round, or that a new job finds idle, idle until the next
    #[arg(long)]
    no_refill: bool,
    /// How long a decision may take; the last one stays in force after it
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    pub(super) decision_limit: Option<Seconds>,
    /// How many of the newest lines of the event log are kept; 10,000,000 where not given
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
