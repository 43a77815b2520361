//! Flags of faults in a simulation, and of data that policies do not have.

use clap::Args;

use apportion::spec::run::RunSpec;
use apportion::units::Seconds;

/// Flags of conditions, in addition to cluster, jobs and policy of `simulate`.
#[derive(Args, Debug)]
#[command(next_help_heading = "What goes wrong")]
pub(super) struct ConditionArguments {
    /// Workers fail: mean time between two failures of one, such as 30d
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true, requires = "worker_mttr")]
    worker_mtbf: Option<Seconds>,
    /// Mean time to repair a worker
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true, requires = "worker_mtbf")]
    worker_mttr: Option<Seconds>,
    /// Chance that a job fails in a round and its steps are lost, 0 to 1
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = number)]
    job_failure: f64,
    /// Failures in a row after which a job is given up
    #[arg(long, value_name = "N", default_value_t = 5)]
    job_attempts: u32,
    /// Workers of one type differ: speeds are uniform in (1 − S, 1]
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = number)]
    straggling: f64,
    /// Rounds after which speeds are drawn anew; drawn once where not given
    #[arg(long, value_name = "N", requires = "straggling")]
    straggling_rounds: Option<u64>,
    /// Policies see throughputs with this relative standard deviation, 0 to 1
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = number)]
    noise: f64,
    /// A job on several servers slows down by 1 / (1 + C × other such jobs on its busiest server)
    #[arg(long, value_name = "C", default_value_t = 0.0, value_parser = number)]
    contention: f64,
    /// Policies see estimates of co-located throughputs: this part of a job's pairs is profiled, 0 to 1
    #[arg(long, value_name = "F", requires = "reference_models", help_heading = "What policies do not know", value_parser = number)]
    profiling_fraction: Option<f64>,
    /// Job types that were measured beside each other beforehand
    #[arg(
        long,
        value_name = "N",
        requires = "profiling_fraction",
        help_heading = "What policies do not know"
    )]
    reference_models: Option<u64>,
    /// Weight of a new measurement, above 0, at most 1; 0.5 where not given, 1 under `gavel` semantics
    #[arg(
        long,
        value_name = "A",
        requires = "profiling_fraction",
        help_heading = "What policies do not know",
        value_parser = number
    )]
    profiling_smoothing: Option<f64>,
}

impl ConditionArguments {
    pub(super) fn put_into(&self, spec: &mut RunSpec) {
        let faults = &mut spec.faults;
        (faults.worker_mtbf, faults.worker_mttr) = (self.worker_mtbf, self.worker_mttr);
        (faults.job_failure, faults.job_attempts) = (self.job_failure, self.job_attempts);
        (faults.straggling, faults.straggling_rounds) = (self.straggling, self.straggling_rounds);
        (faults.noise, faults.contention) = (self.noise, self.contention);
        let profiling = &mut spec.profiling;
        profiling.fraction = self.profiling_fraction;
        profiling.reference_models = self.reference_models;
        profiling.smoothing = self.profiling_smoothing;
    }
}

/// Reads a number. `nan` is refused.
pub(super) fn number(text: &str) -> Result<f64, String> {
    let parsed: Option<f64> = text.parse().ok();
    parsed.filter(|number| !number.is_nan()).ok_or_else(|| format!("`{text}` is no number, expected one"))
}

/// Reads a time from a flag.
pub(super) fn time(text: &str) -> Result<Seconds, String> {
    Seconds::parse(text)
        .ok_or_else(|| format!("`{text}` is no time, expected seconds from 0, or 90s, 30min, 2h, 3d"))
}

/// The length of a round.
pub(super) fn round(text: &str) -> Result<Seconds, String> {
    let length = time(text)?;
    if (1e-3..=1e9).contains(&length.get()) {
        return Ok(length);
    }
    Err(format!("`{text}` is no length of a round, expected from 0.001 s to 1e9 s, such as 360 or 6min"))
}
