//! Finish-time fairness of the jobs of a simulation.
//!
//!   ρ_m = JCT_m / I_m        I_m = Σ over slices of steps / thr_iso(m)
//!
//! thr_iso(m) is the throughput of job m on an isolated 1/n share of the cluster, n being the number of active
//! jobs when the slice ran: x`[m,j]` = w_j/(n·s_m), the row divided by max(1, its sum). So ρ ≤ 1 says that sharing
//! was no worse for the job than a cluster split n ways.
//!
//! Source: Mahajan et al., NSDI '20 (ρ); Narayanan et al., OSDI '20 (the isolated share). Differs from both in
//! that n varies with time, where they use its average.

use serde::{Deserialize, Serialize};

use super::completion::JobRecord;
use super::summary::Distribution;

/// The part by which rounding may lift the ρ of a job, a ratio of two sums over its slices.
const ROUNDING: f64 = 1e-9;

/// ρ over the measured jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fairness {
    /// Its distribution; the largest is the worst treated job.
    pub distribution: Distribution,
    /// The fraction of jobs with ρ ≤ 1, up to a part in 10⁹.
    pub fraction_fair: f64,
}

impl Fairness {
    /// The distribution of ρ over the jobs that have a ρ; none without such jobs.
    pub fn of(jobs: &[JobRecord]) -> Option<Self> {
        Self::of_values(jobs.iter().filter_map(|job| job.rho).collect())
    }

    fn of_values(values: Vec<f64>) -> Option<Self> {
        // A job that is alone all its life has ρ = 1 but for the rounding of sums of times.
        let fair = values.iter().filter(|rho| **rho <= 1.0 + ROUNDING).count() as f64;
        let fraction_fair = fair / values.len() as f64;
        Distribution::of(values).map(|distribution| Self { distribution, fraction_fair })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_treats_no_job_unfairly() {
        let fairness = Fairness::of_values(vec![1.0 + 4e-16, 1.0 - 1e-12, 1.0 + 1e-6, 0.5]).unwrap();
        assert!((fairness.fraction_fair - 0.75).abs() < 1e-12, "{fairness:?}");
    }
}
