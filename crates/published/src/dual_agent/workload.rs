//! Workloads: drawn jobs that stand in for PAI's trace, whose tables of jobs are not at hand.

use thiserror::Error;

use crate::dual_agent::tables::{SIZES, Tables};
use crate::world::WorldJob;
use apportion::workload::random::SeedStreams;

/// Options of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadOptions {
    /// The number of jobs.
    pub n_jobs: usize,
    /// Mean seconds between arrivals, which are exponential; 0 = all jobs at once.
    pub gap_s: f64,
    /// Mean minutes of a job on its fastest type, undisturbed. Durations follow Gavel's law, scaled to this mean.
    pub duration_min: f64,
    /// Standard deviation of the logarithm of owners' estimates of work over the true work.
    pub estimate_error: f64,
}

impl Default for WorkloadOptions {
    fn default() -> Self {
        Self { n_jobs: 100, gap_s: 120.0, duration_min: 100.0, estimate_error: 0.2 }
    }
}

/// Why a workload cannot be drawn.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("`{field}` is {value}, expected {expected}")]
pub struct WorkloadError {
    /// The name of the option.
    pub field: &'static str,
    /// The value of the option.
    pub value: f64,
    /// The values that are allowed, in words.
    pub expected: &'static str,
}

/// Shares of [`SIZES`] among jobs: wider gangs than Gavel's, as in production traces.
const SIZE_SHARES: [f64; SIZES.len()] = [0.30, 0.15, 0.20, 0.20, 0.15];

/// The number of owners, each with a habit of short or long jobs.
pub const N_OWNERS: u32 = 12;

/// Standard deviation of the logarithm of an owner's habit.
const HABIT: f64 = 0.5;

/// Mean minutes of Gavel's durations: 10^U(1.5, 3), and 10^U(3, 4) for every fifth job.
const GAVEL_MEAN_MIN: f64 = 1006.0;

impl WorkloadOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// If an option is out of its range.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let within = |fine: bool, field, value, expected| {
            if fine { Ok(()) } else { Err(WorkloadError { field, value, expected }) }
        };
        let not_negative = |value: f64| value.is_finite() && value >= 0.0;
        let duration = self.duration_min;
        within(self.n_jobs > 0, "jobs", 0.0, "a whole number above 0")?;
        within(not_negative(self.gap_s), "gap_s", self.gap_s, "a finite number of seconds, at least 0")?;
        within(
            duration.is_finite() && duration > 0.0,
            "duration_min",
            duration,
            "a finite number of minutes above 0",
        )?;
        within(
            not_negative(self.estimate_error),
            "estimate_error",
            self.estimate_error,
            "a finite number, at least 0",
        )
    }
}

/// Draws the jobs of a seed.
///
/// # Errors
/// If an option is out of its range.
pub fn generate(
    tables: &Tables,
    options: &WorkloadOptions,
    seed: u64,
) -> Result<Vec<WorldJob>, WorkloadError> {
    options.check()?;
    let streams = SeedStreams::new(seed);
    let mut habits = streams.stream("dual-agent owners");
    let habits: Vec<f64> = (0..N_OWNERS).map(|_| habits.normal(-HABIT * HABIT / 2.0, HABIT).exp()).collect();
    let mut gaps = streams.stream("dual-agent arrivals");
    let mut draws = streams.stream("dual-agent jobs");
    let mut arrival_s = 0.0;
    let mut one = || {
        let size = draw_size(draws.uniform());
        let model = loop {
            let model = draws.below(tables.n_models());
            if tables.best_speed(Tables::job_type(model, size)) > 0.0 {
                break model;
            }
        };
        let job_type = Tables::job_type(model, size);
        let owner = draws.below(N_OWNERS as usize);
        let long = draws.uniform() < 0.2;
        let (from, to) = if long { (3.0, 4.0) } else { (1.5, 3.0) };
        let minutes = 10f64.powf(draws.uniform_in(from, to)) * options.duration_min / GAVEL_MEAN_MIN;
        let work = minutes * 60.0 * habits[owner] * tables.best_speed(job_type);
        let error = draws.normal(0.0, options.estimate_error).exp();
        let job = WorldJob {
            job_type,
            workers: SIZES[size],
            work,
            work_estimated: work * error,
            arrival_s,
            owner: u32::try_from(owner).unwrap_or(0),
        };
        arrival_s += gaps.exponential(options.gap_s);
        job
    };
    Ok((0..options.n_jobs).map(|_| one()).collect())
}

fn draw_size(mut left: f64) -> usize {
    for (position, share) in SIZE_SHARES.iter().enumerate() {
        left -= share;
        if left < 0.0 {
            return position;
        }
    }
    SIZES.len() - 1
}
