//! Generated workloads: jobs of random type, size and length, arriving at random or all at once.
//!
//! In: [`WorkloadOptions`], a throughput matrix, a seed. Out: [`Arrivals`](super::Arrivals), without end unless
//! a number of jobs is given. Two generators draw from the same distributions: [`Native`], whose quantities have
//! independent streams, and [`Gavel`], which repeats the published simulator's draws bit for bit.
//!
//! | quantity        | distribution                                                                        |
//! |-----------------|-------------------------------------------------------------------------------------|
//! | arrival         | the first at 0; gaps exponential, or none when all arrive at once                   |
//! | scale factor    | 1 with probability 0.7, 2 with 0.1, 4 with 0.15, 8 with 0.05; 1 unless multi-worker |
//! | duration        | 60·10^U(1.5, 3) s with probability 0.8, else 60·10^U(3, 4) s; or fixed              |
//! | job type        | uniform over those that run at the scale factor                                     |
//! | total steps     | duration × throughput alone on the reference worker type, not rounded               |
//! | weight          | 5 with probability 0.2 if several priorities are asked for, else 1                  |
//! | SLO             | 1.2, 2 or 10 × duration with probability 0.33, 0.34, 0.33, if asked for             |
//!
//! `with_backlog` starts with a full cluster: jobs at time 0 until they need all workers, then arrivals as above.
//!
//! Source: Narayanan et al., OSDI '20, section 7.1 (scale factors and durations after Microsoft's Philly trace),
//! and the published simulator.

mod backlog;
pub mod gavel;
pub mod mix;
pub mod native;

pub use gavel::{Gavel, JobTable};
pub use mix::MixShare;
pub use native::Native;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::throughput::Throughputs;
use crate::units::Seconds;

/// The arrival process of generated jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalProcess {
    /// A Poisson process: the first job at 0, then exponential gaps of this mean.
    Poisson {
        /// Mean time between two arrivals; [`JobsPerHour::mean_gap`](crate::JobsPerHour::mean_gap) of the rate.
        mean_gap: Seconds,
    },
    /// All at time 0.
    AtOnce,
}

/// The options of a generated workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkloadOptions {
    /// The arrival process.
    pub arrivals: ArrivalProcess,
    /// The number of jobs; none = without end, which only a Poisson process can be.
    pub n_jobs: Option<usize>,
    /// Whether some jobs need several workers.
    pub multi_worker: bool,
    /// Whether some jobs have weight 5.
    pub multi_priority: bool,
    /// Whether jobs have SLOs.
    pub slos: bool,
    /// The duration of every job; drawn job by job if absent.
    pub duration: Option<Seconds>,
}

impl WorkloadOptions {
    /// Jobs that arrive as a Poisson process with this mean gap, without end: one worker each, weight 1, no SLO.
    pub const fn continuous(mean_gap: Seconds) -> Self {
        Self {
            arrivals: ArrivalProcess::Poisson { mean_gap },
            n_jobs: None,
            multi_worker: false,
            multi_priority: false,
            slos: false,
            duration: None,
        }
    }

    /// `n_jobs` jobs at time 0: one worker each, weight 1, no SLO.
    pub const fn at_once(n_jobs: usize) -> Self {
        let none = Self::continuous(Seconds::ZERO);
        Self { arrivals: ArrivalProcess::AtOnce, n_jobs: Some(n_jobs), ..none }
    }

    /// Stops after this many jobs.
    #[must_use]
    pub const fn jobs(mut self, n_jobs: usize) -> Self {
        self.n_jobs = Some(n_jobs);
        self
    }

    /// Lets some jobs need several workers.
    #[must_use]
    pub const fn multi_worker(mut self, multi_worker: bool) -> Self {
        self.multi_worker = multi_worker;
        self
    }

    /// Lets some jobs have weight 5.
    #[must_use]
    pub const fn multi_priority(mut self, multi_priority: bool) -> Self {
        self.multi_priority = multi_priority;
        self
    }

    /// Gives jobs SLOs.
    #[must_use]
    pub const fn slos(mut self, slos: bool) -> Self {
        self.slos = slos;
        self
    }

    /// Gives all jobs this duration.
    #[must_use]
    pub const fn duration(mut self, duration: Option<Seconds>) -> Self {
        self.duration = duration;
        self
    }

    fn check(&self) -> Result<(), GeneratorError> {
        let positive = |seconds: Seconds| seconds.is_finite() && seconds.get() > 0.0;
        match self.arrivals {
            ArrivalProcess::Poisson { mean_gap } if !positive(mean_gap) => {
                return Err(GeneratorError::MeanGap { mean_gap });
            }
            ArrivalProcess::AtOnce if self.n_jobs.is_none() => return Err(GeneratorError::Endless),
            ArrivalProcess::Poisson { .. } | ArrivalProcess::AtOnce => {}
        }
        match self.duration {
            Some(duration) if !positive(duration) => Err(GeneratorError::Duration { duration }),
            _ => Ok(()),
        }
    }
}

/// Why a workload cannot be generated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum GeneratorError {
    /// A gap between arrivals, or a rate, that no Poisson process has.
    #[error("a mean gap of {mean_gap} between arrivals, expected a finite number above 0")]
    MeanGap {
        /// The gap.
        mean_gap: Seconds,
    },
    /// All at once, without end.
    #[error("jobs without end cannot all arrive at once, expected a number of jobs")]
    Endless,
    /// A duration that no job has.
    #[error("a job duration of {duration}, expected a finite number above 0")]
    Duration {
        /// The duration.
        duration: Seconds,
    },
    /// The worker type that durations are stated on is missing.
    #[error("throughputs `{throughputs}` lack the reference worker type `{worker_type}`")]
    NoReference {
        /// The matrix.
        throughputs: String,
        /// The type.
        worker_type: String,
    },
    /// A job type of the generator's that the matrix lacks, or that does not run on the reference worker type.
    #[error(
        "throughputs `{throughputs}` have nothing for `{job_type}` at scale factor {scale_factor} on `{worker_type}`"
    )]
    NoThroughput {
        /// The matrix.
        throughputs: String,
        /// The job type.
        job_type: String,
        /// The scale factor.
        scale_factor: u32,
        /// The reference worker type.
        worker_type: String,
    },
    /// No job type at all runs at a scale factor that is to be drawn.
    #[error(
        "no job type of throughputs `{throughputs}` runs at scale factor {scale_factor} on `{worker_type}`"
    )]
    NoJobType {
        /// The matrix.
        throughputs: String,
        /// The scale factor.
        scale_factor: u32,
        /// The reference worker type.
        worker_type: String,
    },
}

/// Scale factors, each with the upper end of its interval in U(0, 1).
const SCALE_FACTORS: [(u32, f64); 4] = [(1, 0.7), (2, 0.8), (4, 0.95), (8, 1.0)];

/// The larger weight, if there are several priorities.
const HIGH_WEIGHT: f64 = 5.0;

/// 60·10^`exponent` seconds.
fn minutes(exponent: f64) -> f64 {
    // The base is hidden from the compiler, which would call exp10 instead: another function, other last bits.
    60.0 * std::hint::black_box(10.0_f64).powf(exponent)
}

/// The SLO as a multiple of the duration, by `u` in [0, 1).
fn slo_factor(u: f64) -> f64 {
    match u {
        u if u < 0.33 => 1.2,
        u if u < 0.67 => 2.0,
        _ => 10.0,
    }
}

/// Steps/s of a job type alone on the reference worker type; none if it does not run there.
fn speed(throughputs: &Throughputs, job_type: &str, scale_factor: u32, reference: &str) -> Option<f64> {
    let row = throughputs.find(job_type, scale_factor)?;
    let speed = throughputs.alone(row, throughputs.find_worker_type(reference)?);
    (speed > 0.0).then_some(speed)
}

#[cfg(test)]
mod tests;
