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

/// ρ over the measured jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fairness {
    /// Its distribution; the largest is the worst treated job.
    pub distribution: Distribution,
    /// The fraction of jobs with ρ ≤ 1.
    pub fraction_fair: f64,
}

impl Fairness {
    /// The distribution of ρ over the jobs that have a ρ; none without such jobs.
    pub fn of(jobs: &[JobRecord]) -> Option<Self> {
        let values: Vec<f64> = jobs.iter().filter_map(|job| job.rho).collect();
        let fair = values.iter().filter(|rho| **rho <= 1.0).count() as f64;
        let fraction_fair = fair / values.len() as f64;
        Distribution::of(values).map(|distribution| Self { distribution, fraction_fair })
    }
}
