//! A bound on the average completion time of a trace that no schedule is below, not even one that knows the future.
//!
//! Let a_j be the arrival of job j, R_j its steps, and p_j the time that it takes at its fastest. A schedule gives combinations c
//! shares x_c(t) of the time of workers; φ_j(t) is the fraction of its steps that job j runs a second. Its mean busy time is
//! M_j = ∫ t φ_j dt, and it holds workers for X_j = ∫ Σ_{c∋j} x_c dt. It is never done before either of
//!
//! - M_j + p_j/2, as φ_j is at most 1/p_j;
//! - a_j + X_j, as it holds workers for at most all of the time;
//!
//! nor before their mean with weights θ_j and 1 − θ_j. Moving ∫ φ_j = 1 into the objective with multipliers v_j leaves, at each
//! instant, an allocation to choose, and for all v and 0 ≤ θ ≤ 1
//!
//! Σ_j C_j ≥ Σ_j [v_j + θ_j p_j/2 + (1 − θ_j) a_j] − ∫ A(t) dt,
//!
//! where A(t) = max_x Σ_c x_c Σ_{j∈c} [T_jc/R_j · (v_j − θ_j t) − (1 − θ_j)], over the allocations x of the jobs that have
//! arrived. This is a linear program, which the engine solves; the certificate bounds A(t) from above. Between two arrivals A is
//! the maximum of linear functions of t. So it is convex there, and below the chord between any two instants: the trapezoid rule
//! errs on the safe side. The best v and θ are looked for by quasi-Newton steps, but whatever they are, the bound holds.
//!
//! Sources: mean busy times bound completion times as in Goemans, Queyranne, Schulz, Skutella and Wang (2002), "Single machine
//! scheduling with release dates"; that the relaxed program splits into one allocation an instant, and the rest, is of this
//! project.
//!
//! ```
//! use std::sync::Arc;
//! use apportion::{Cluster, Job, StepsPerSecond, Throughputs};
//! use apportion_studies::bound::{Instance, Settings, bound};
//!
//! let cluster: Cluster = "v100=1".parse()?;
//! let job = |name: &str, steps| Job::new("mine").name(name).steps(steps).throughput("v100", StepsPerSecond::new(1.0));
//! let jobs = [job("short", 100), job("long", 300)];
//! let throughputs = Throughputs::embedded("osdi20")?;
//! let instance = Instance { cluster: &cluster, throughputs: &throughputs, jobs: &jobs, pairs: false };
//! let found = bound(&instance, &Settings::default(), &Default::default())?;
//! // The shorter one first: ends after 100 s and 400 s.
//! assert!(found.average_jct.get() <= 250.0 && found.average_jct.get() > 249.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Modules are declared in import order: each may mention only those above it.

mod error;
mod attended;
mod instance;
mod ascent;
mod dual;
#[cfg(test)]
mod tests;

pub use attended::Attended;
pub use error::BoundError;
pub use instance::Instance;

use ascent::{Function, climb};
use dual::Dual;

use apportion::units::Seconds;

/// Factor by which allocations are computed more often for the final bound than during the search.
const REFINED: f64 = 4.0;
/// The most doublings of the jobs' fastest times that are tried as the start of the search.
const DOUBLINGS_MAX: u32 = 20;

/// Limit of the search for a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most steps of the search; 25 by default.
    pub steps_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { steps_max: 25 }
    }
}

/// A bound that no schedule is below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Bound on the average completion time of all jobs.
    pub average_jct: Seconds,
    /// Average completion time if all jobs ran at their fastest from their arrival, which is a bound, too.
    pub fastest: Seconds,
    /// Number of steps of the search.
    pub n_steps: usize,
    /// Number of allocations that were computed.
    pub n_programs: u64,
    /// Whether the search was broken off. The bound holds, but is smaller than it might be.
    pub is_broken_off: bool,
}

/// A bound on the average completion time of the jobs.
///
/// It holds for every schedule in which no job runs faster than the throughputs say, on no more workers than the cluster has
/// and on as many at once as the job asks for. The same jobs give the same bound on any number of threads.
///
/// # Errors
/// If there is no job, a job can run nowhere, or an allocation cannot be computed.
pub fn bound(
    instance: &Instance<'_>,
    settings: &Settings,
    attended: &Attended<'_>,
) -> Result<Bound, BoundError> {
    let mut dual = Dual::new(instance, attended)?;
    let (n_jobs, fastest) = (instance.jobs.len() as f64, dual.mean_fastest());
    let (start, scales) = (start(&mut dual)?, dual.scales());
    let climbed = climb(&mut dual, start, &scales, settings.steps_max)?;
    let mut sum = fastest * n_jobs;
    let mut is_broken_off = climbed.is_broken_off;
    if let Some((multipliers, value)) = &climbed.best {
        sum = sum.max(*value);
        dual.refine(REFINED);
        match dual.value(multipliers)? {
            Some(refined) => sum = sum.max(refined.value),
            None => is_broken_off = true,
        }
    }
    Ok(Bound {
        average_jct: Seconds::new(sum / n_jobs),
        fastest: Seconds::new(fastest),
        n_steps: climbed.n_steps,
        n_programs: dual.n_programs(),
        is_broken_off,
    })
}

/// Start of the search: the multipliers of jobs that take 1, 2, 4, … times their fastest time, as long as the bound grows.
fn start(dual: &mut Dual<'_>) -> Result<Vec<f64>, BoundError> {
    let mut best = dual.multipliers(1.0);
    let Some(mut most) = dual.value(&best)?.map(|valued| valued.value) else { return Ok(best) };
    for doublings in 1..=DOUBLINGS_MAX {
        let next = dual.multipliers(f64::from(doublings).exp2());
        match dual.value(&next)? {
            Some(valued) if valued.value > most => (best, most) = (next, valued.value),
            _ => break,
        }
    }
    Ok(best)
}
