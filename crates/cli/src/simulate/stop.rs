//! Flags for giving up a simulation.

use std::time::Duration;

use clap::Args;

use crate::conditions::time;
use apportion::simulator::Patience;
use apportion_studies::sweep::spec::StopSpec;

/// The conditions for giving up, as `stop` has them in a sweep.
#[derive(Args, Debug)]
#[command(next_help_heading = "When it is given up")]
pub(super) struct StopArguments {
    /// Rounds in a row in which no job runs a step, while none is to arrive and no price to change; where workers or jobs fail
    /// at random, a hundred times as many
    #[arg(long, value_name = "N", default_value_t = StopSpec::default().rounds,
        value_parser = clap::value_parser!(u64).range(1..))]
    stop_rounds: u64,
    /// Number of doublings of the arrived jobs while measured jobs wait or the queue grows, where arrivals never stop
    #[arg(long, value_name = "N", default_value_t = StopSpec::default().doublings,
        value_parser = clap::value_parser!(u32).range(2..=20))]
    stop_doublings: u32,
    /// Wall time of one decision of a program: one that takes longer ends the simulation, with exit code 4
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    time_limit: Option<Duration>,
}

impl StopArguments {
    /// The conditions under which it makes no progress.
    pub(super) fn patience(&self) -> Patience {
        let (rounds, doublings) = (self.stop_rounds, self.stop_doublings);
        StopSpec { rounds, doublings, ..StopSpec::default() }.patience()
    }

    /// The time limit of a decision.
    pub(super) fn decision(&self) -> Option<Duration> {
        self.time_limit
    }
}

fn positive(text: &str) -> Result<Duration, String> {
    let duration = Duration::try_from_secs_f64(time(text)?.get());
    let duration = duration.ok().filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| format!("`{text}` is no time above 0"))
}
