//! The mix of a generator in the long run: the frequency of each kind of job, and its work.

use crate::units::{Seconds, Steps};
use crate::workload::generator::{SCALE_FACTORS, WorkloadOptions};

/// Jobs of one type and scale factor among all that a generator draws.
#[derive(Clone, Debug, PartialEq)]
pub struct MixShare {
    /// The job type.
    pub job_type: String,
    /// Workers it needs at once.
    pub scale_factor: u32,
    /// The probability that a job is of this kind; all together are 1.
    pub probability: f64,
    /// The expectation of its total steps.
    pub mean_steps: Steps,
}

/// The expectation of the drawn duration: exactly that of the table in this module's parent.
pub fn mean_duration(options: &WorkloadOptions) -> Seconds {
    // E[60·10^U(a, b)] = 60·(10^b − 10^a) / ((b − a)·ln 10)
    let mean =
        |a: f64, b: f64| 60.0 * (10.0_f64.powf(b) - 10.0_f64.powf(a)) / ((b - a) * std::f64::consts::LN_10);
    options.duration.unwrap_or_else(|| Seconds::new(0.8 * mean(1.5, 3.0) + 0.2 * mean(3.0, 4.0)))
}

/// The mix if the types of scale factor number `size`, each with its throughput on the reference worker type, are drawn uniformly.
pub(super) fn mix(options: &WorkloadOptions, types: impl Fn(usize) -> Vec<(String, f64)>) -> Vec<MixShare> {
    let duration = mean_duration(options).get();
    let mut shares = Vec::new();
    let mut before = 0.0;
    for (size, (scale_factor, end)) in SCALE_FACTORS.into_iter().enumerate() {
        let chance = if options.multi_worker { end - before } else { f64::from(u8::from(size == 0)) };
        before = end;
        if chance <= 0.0 {
            continue;
        }
        let types = types(size);
        let probability = chance / types.len() as f64;
        shares.extend(types.into_iter().map(|(job_type, speed)| MixShare {
            job_type,
            scale_factor,
            probability,
            mean_steps: Steps::new(duration * speed),
        }));
    }
    shares
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::throughput::Throughputs;
    use crate::workload::generator::{Gavel, Native};
    use crate::workload::{Arrivals, Job};

    const N_JOBS: usize = 200_000;

    /// Compares a mix with the jobs drawn: probabilities within 5 standard errors, work within 3 %.
    fn check(mix: &[MixShare], jobs: impl Iterator<Item = Job>) {
        let mut drawn: BTreeMap<(String, u32), (f64, f64)> = BTreeMap::new();
        for job in jobs.take(N_JOBS) {
            let kind = drawn.entry((job.job_type.clone(), job.scale_factor)).or_default();
            kind.0 += 1.0;
            kind.1 += job.total_steps.get();
        }
        assert_eq!(drawn.len(), mix.len());
        assert!((mix.iter().map(|share| share.probability).sum::<f64>() - 1.0).abs() < 1e-12);
        let n_jobs = N_JOBS as f64;
        let (mut work, mut expected) = (0.0, 0.0);
        for share in mix {
            let (count, steps) = drawn[&(share.job_type.clone(), share.scale_factor)];
            let error = (share.probability * (1.0 - share.probability) / n_jobs).sqrt();
            assert!((count / n_jobs - share.probability).abs() < 5.0 * error, "{share:?}: {count}");
            // The unit is the kind's own mean, so that fast job types do not drown the others.
            work += steps / share.mean_steps.get();
            expected += share.probability * n_jobs;
        }
        assert!((work / expected - 1.0).abs() < 0.03, "{work} {expected}");
    }

    #[test]
    fn the_mix_is_what_is_drawn() {
        let throughputs: Arc<Throughputs> = Throughputs::embedded("osdi20").unwrap();
        for multi_worker in [false, true] {
            let options = WorkloadOptions::continuous(Seconds::new(100.0)).multi_worker(multi_worker);
            let mut gavel = Gavel::try_new(options, Arc::clone(&throughputs), 1).unwrap();
            check(&gavel.mix(), std::iter::from_fn(|| gavel.next_job()));
            let mut native = Native::try_new(options, &throughputs, 1).unwrap();
            check(&native.mix(), std::iter::from_fn(|| native.next_job()));
        }
    }

    #[test]
    fn a_job_lasts_16_8_hours_on_average() {
        let options = WorkloadOptions::continuous(Seconds::new(100.0));
        assert!((mean_duration(&options).hours() - 16.767).abs() < 1e-3);
        let fixed = options.duration(Some(Seconds::new(7.0)));
        assert_eq!(mean_duration(&fixed), Seconds::new(7.0));
    }
}
