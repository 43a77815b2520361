//! Flags of a live cluster's behaviour in a simulation.

use clap::{Args, ValueEnum};

use crate::conditions::time;
use apportion::spec::run::{LiveSpec, Refill};
use apportion::units::Seconds;

/// The behaviour that the published simulator leaves out.
#[derive(Args, Debug)]
#[command(next_help_heading = "What a live cluster does")]
pub(super) struct LiveArguments {
    /// Time before the end of a round at which the next one is decided, by the state at that instant
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true, default_value = "0")]
    look_ahead: Seconds,
    /// Time without steps at the start of every lease that extends none
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true, default_value = "0")]
    start_up: Seconds,
    /// Time that workers are held after a lease that is not extended, if its job is not done
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true, default_value = "0")]
    stop: Seconds,
    /// The instants at which idle workers are given to waiting jobs, in addition to the start of rounds
    #[arg(long, value_enum, default_value = "never")]
    refill: RefillFlag,
    /// Policies see the measured throughputs of jobs alone, averaged with those that they saw before
    #[arg(long)]
    measured: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RefillFlag {
    /// Never
    Never,
    /// When a job is done inside a round
    Completion,
    /// When a job is done or comes inside a round, as `apportion serve` does
    AtOnce,
}

impl LiveArguments {
    pub(super) fn spec(&self) -> LiveSpec {
        let Self { look_ahead, start_up, stop, refill, measured } = *self;
        let refill = match refill {
            RefillFlag::Never => Refill::Never,
            RefillFlag::Completion => Refill::Completion,
            RefillFlag::AtOnce => Refill::AtOnce,
        };
        LiveSpec { look_ahead, start_up, stop, refill, measured }
    }
}
