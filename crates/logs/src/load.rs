//! Shape of a workload: arrivals over time, running times, sizes, and its load on a cluster.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// A job's contribution to the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Arrival, s.
    pub arrival_s: f64,
    /// Running time, s; on the reference worker type where it was measured there.
    pub duration_s: f64,
    /// Number of workers that the job needs at once.
    pub n_workers: u32,
}

/// Statistics of a workload: arrivals, running times, sizes and load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Shape {
    /// Number of jobs.
    pub n_jobs: usize,
    /// Time from the first arrival to the last, s.
    #[schemars(extend("x-unit" = "s"))]
    pub span_s: f64,
    /// Arrivals per hour over `span_s`; none for fewer than two jobs, or for jobs that all arrive at once.
    pub arrivals_per_h: Option<f64>,
    /// The mean running time, s.
    #[schemars(extend("x-unit" = "s"))]
    pub mean_duration_s: f64,
    /// Running times at the 5th, 25th, 50th, 75th, 95th and 99th percentile, s: each the least value that this share of jobs
    /// does not exceed.
    #[schemars(extend("x-unit" = "s"))]
    pub duration_quantiles_s: [f64; 6],
    /// Number of jobs by number of workers.
    pub sizes: BTreeMap<u32, usize>,
    /// Worker hours of all jobs together.
    pub worker_hours: f64,
    /// Mean number of busy workers if jobs kept arriving at this rate and ran at once: all work divided by `span_s`. None
    /// where `span_s` is shorter than the mean running time, as the number then says nothing.
    pub mean_busy_workers: Option<f64>,
    /// Length of a bin of `arrivals` and `busy`, s.
    #[schemars(extend("x-unit" = "s"))]
    pub bin_s: f64,
    /// Number of jobs that arrive in each bin.
    pub arrivals: Vec<usize>,
    /// Mean number of busy workers in each bin, if each job ran from its arrival.
    pub busy: Vec<f64>,
}

/// The percentiles of [`Shape::duration_quantiles_s`].
pub const PERCENTILES: [f64; 6] = [5.0, 25.0, 50.0, 75.0, 95.0, 99.0];

/// The most bins of the series.
const BINS_MAX: f64 = 200.0;

/// Lengths of bins to choose from, s: from a minute to four weeks.
const BINS_S: [f64; 12] = [
    60.0,
    300.0,
    900.0,
    1_800.0,
    3_600.0,
    7_200.0,
    14_400.0,
    28_800.0,
    86_400.0,
    172_800.0,
    604_800.0,
    2_419_200.0,
];

impl Shape {
    /// Statistics of jobs in any order; none if there are no jobs.
    ///
    /// ```
    /// use apportion_logs::load::{Load, Shape};
    /// let job = |arrival_s, n_workers| Load { arrival_s, duration_s: 3600.0, n_workers };
    /// let shape = Shape::of(&[job(0.0, 1), job(7200.0, 3)]).expect("two jobs");
    /// assert_eq!((shape.worker_hours, shape.mean_busy_workers), (4.0, Some(2.0)));
    /// ```
    pub fn of(jobs: &[Load]) -> Option<Self> {
        let first = jobs.iter().map(|job| job.arrival_s).reduce(f64::min)?;
        let last = jobs.iter().map(|job| job.arrival_s).reduce(f64::max)?;
        let span_s = last - first;
        let mut durations: Vec<f64> = jobs.iter().map(|job| job.duration_s).collect();
        durations.sort_by(f64::total_cmp);
        let mut sizes = BTreeMap::new();
        for job in jobs {
            *sizes.entry(job.n_workers).or_default() += 1;
        }
        let worker_s: f64 = jobs.iter().map(|job| job.duration_s * f64::from(job.n_workers)).sum();
        let has_span = span_s > 0.0;
        let mean_duration_s = durations.iter().sum::<f64>() / durations.len() as f64;
        let bin_s = BINS_S.into_iter().find(|bin| span_s / bin <= BINS_MAX).unwrap_or(span_s / BINS_MAX);
        let n_bins = bin_of(span_s, bin_s) + 1;
        let (mut arrivals, mut busy) = (vec![0; n_bins], vec![0.0; n_bins]);
        for job in jobs {
            let at = job.arrival_s - first;
            arrivals[bin_of(at, bin_s)] += 1;
            spread(&mut busy, (at, at + job.duration_s), f64::from(job.n_workers), bin_s);
        }
        Some(Self {
            n_jobs: jobs.len(),
            span_s,
            arrivals_per_h: has_span.then(|| (jobs.len() - 1) as f64 * 3600.0 / span_s),
            mean_duration_s,
            duration_quantiles_s: PERCENTILES.map(|percent| quantile(&durations, percent)),
            sizes,
            worker_hours: worker_s / 3600.0,
            mean_busy_workers: (has_span && span_s >= mean_duration_s).then(|| worker_s / span_s),
            bin_s,
            arrivals,
            busy,
        })
    }

    /// Number of jobs by class of running time: the lower end of each class, s, and its jobs. Classes grow by factors of √10
    /// from one second on; shorter jobs are in a class from 0 on.
    pub fn duration_classes(jobs: &[Load]) -> Vec<(f64, usize)> {
        let mut classes: BTreeMap<u32, usize> = BTreeMap::new();
        for job in jobs {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 32")]
            let of = if job.duration_s < 1.0 { 0 } else { (2.0 * job.duration_s.log10()) as u32 + 1 };
            *classes.entry(of).or_default() += 1;
        }
        let (Some(first), Some(last)) = (classes.keys().next().copied(), classes.keys().next_back().copied())
        else {
            return Vec::new();
        };
        let lower = |of: u32| if of == 0 { 0.0 } else { 10f64.powf(f64::from(of - 1) / 2.0) };
        (first..=last).map(|of| (lower(of), classes.get(&of).copied().unwrap_or(0))).collect()
    }
}

fn bin_of(at_s: f64, bin_s: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the number of bins")]
    let bin = if bin_s > 0.0 { (at_s / bin_s) as usize } else { 0 };
    bin
}

/// Adds a job's workers to each bin, multiplied by the part of the bin in which it runs.
fn spread(busy: &mut [f64], (from, to): (f64, f64), n_workers: f64, bin_s: f64) {
    if bin_s <= 0.0 {
        return;
    }
    for (bin, workers) in busy.iter_mut().enumerate().skip(bin_of(from, bin_s)) {
        let start = bin as f64 * bin_s;
        if start >= to {
            break;
        }
        let part = (to.min(start + bin_s) - from.max(start)) / bin_s;
        *workers += n_workers * part.max(0.0);
    }
}

/// The least value that this percentage of the sorted values does not exceed.
fn quantile(sorted: &[f64], percent: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position in the list")]
    let at = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(at.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_times_below_a_second_are_a_class_of_their_own() {
        let jobs = |durations: &[f64]| -> Vec<Load> {
            durations
                .iter()
                .map(|duration_s| Load { arrival_s: 0.0, duration_s: *duration_s, n_workers: 1 })
                .collect()
        };
        let classes = |durations: &[f64]| -> Vec<String> {
            let all = Shape::duration_classes(&jobs(durations));
            all.into_iter().map(|(from_s, n)| format!("{from_s:.1}: {n}")).collect()
        };
        assert_eq!(classes(&[0.2, 0.0, 0.999, 1.0, 12.0]), ["0.0: 3", "1.0: 1", "3.2: 0", "10.0: 1"]);
        assert_eq!(classes(&[0.3]), ["0.0: 1"]);
        assert_eq!(classes(&[5.0]), ["3.2: 1"]);
        assert!(classes(&[]).is_empty());
    }
}
