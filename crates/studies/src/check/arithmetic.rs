//! Values of shares, computed from the numbers of a snapshot alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use apportion::spec::snapshot::{SnapshotDocument, SnapshotJob};

/// Tolerance of constraints: absolute for time, relative for workers.
pub(super) const TOLERANCE: f64 = 1e-6;

/// Time shares of a job, or of two jobs that share workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Positions of the jobs: one or two.
    pub jobs: Vec<usize>,
    /// Time shares by worker type: `[K]`.
    pub shares: Vec<f64>,
}

/// View of the throughputs of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Measured throughputs.
    Measured,
    /// Throughput 1 on each type where the job runs.
    Unit,
    /// One throughput for all types: that on a reference type, or where the job does not run there, that on its fastest.
    Reference,
}

/// Value of an allocation by a policy's objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// Least scale factor · throughput / (weight · throughput with an equal share of all workers).
    Level(View),
    /// Largest ratio of a job's duration to its duration with 1/n of the cluster.
    Unfairness(View),
    /// Longest remaining duration of a job.
    Makespan(View),
    /// Sum of throughputs.
    Total,
    /// Sum of throughputs, each part divided by the price of its worker type.
    PerDollar,
    /// Sum of weight · logarithm of throughput.
    Logarithms,
    /// Sum of weight · √scale factor · throughput / throughput with an equal share · (hours left with that)^−0.15.
    RelativeRate,
    /// Sum of throughput / steps remaining · (hours left on the fastest type with workers enough)^0.75.
    Tempered,
    /// Sum of logarithms of throughput / throughput with an equal share, before time is discounted.
    Welfare,
    /// Value that is not known here.
    Unknown,
}

impl Worth {
    /// Value of allocations by a shipped policy.
    pub fn of(policy: &str) -> Self {
        match policy {
            "max_min_fairness" | "max_min_fairness_water_filling" => Self::Level(View::Unit),
            "max_min_fairness_perf"
            | "max_min_fairness_packed"
            | "max_min_fairness_water_filling_perf"
            | "max_min_fairness_water_filling_packed" => Self::Level(View::Measured),
            "finish_time_fairness" => Self::Unfairness(View::Reference),
            "finish_time_fairness_perf" | "finish_time_fairness_packed" => Self::Unfairness(View::Measured),
            "min_total_duration" => Self::Makespan(View::Reference),
            "min_total_duration_perf" | "min_total_duration_packed" => Self::Makespan(View::Measured),
            "max_sum_throughput_perf" => Self::Total,
            "max_sum_throughput_normalized_by_cost_perf"
            | "max_sum_throughput_normalized_by_cost_perf_SLOs"
            | "max_sum_throughput_normalized_by_cost_packed_SLOs" => Self::PerDollar,
            "low_average_jct" | "low_average_jct_packed" => Self::RelativeRate,
            "tempered_completion_rate" | "tempered_completion_rate_packed" => Self::Tempered,
            "proportional_fairness" => Self::Logarithms,
            "max_min_fairness_strategy_proof" => Self::Welfare,
            _ => Self::Unknown,
        }
    }

    /// Whether larger values are better.
    pub fn is_gain(self) -> bool {
        !matches!(self, Self::Unfairness(_) | Self::Makespan(_))
    }

    /// Magnitude below which values are compared absolutely; 1 for sums of logarithms, which may be near 0.
    pub fn unit(self) -> f64 {
        if matches!(self, Self::Logarithms | Self::Welfare) { 1.0 } else { f64::MIN_POSITIVE }
    }
}

/// Numbers of a snapshot, by position.
#[derive(Debug)]
pub struct Numbers<'a> {
    /// Jobs of the snapshot: `[n]`.
    pub jobs: &'a [SnapshotJob],
    workers: Vec<f64>,
    prices: Option<Vec<f64>>,
    speeds: Vec<Vec<f64>>,
    together: BTreeMap<(usize, usize), Vec<[f64; 2]>>,
    reference: usize,
}

impl<'a> Numbers<'a> {
    /// Numbers of a document whose jobs state their throughputs. `reference`: names of worker types, of which the first that
    /// the cluster has is the type of [`View::Reference`]; the cluster's first type if it has none of them.
    pub fn of(document: &'a SnapshotDocument, reference: &[String]) -> Self {
        let names: Vec<&str> = document.cluster.iter().map(|(name, _)| name).collect();
        let speeds = |job: &SnapshotJob| -> Vec<f64> {
            let of = |name: &&str| job.throughput.as_ref().and_then(|own| own.get(name).copied().flatten());
            names.iter().map(|name| of(name).unwrap_or(0.0)).collect()
        };
        let position = |label: &str| document.jobs.iter().position(|job| job.id.to_string() == label);
        let mut together = BTreeMap::new();
        for pair in &document.pairs {
            let [Some(one), Some(other)] = pair.jobs.each_ref().map(|label| position(&label.to_string()))
            else {
                continue;
            };
            let both: Vec<[f64; 2]> =
                names.iter().map(|name| pair.throughput.get(name).copied().unwrap_or_default()).collect();
            together.insert((other, one), both.iter().map(|[a, b]| [*b, *a]).collect());
            together.insert((one, other), both);
        }
        let price = |name: &&str| document.prices.as_ref().and_then(|prices| prices.get(name).copied());
        Self {
            jobs: &document.jobs,
            workers: document.cluster.iter().map(|(_, n_workers)| *n_workers as f64).collect(),
            prices: names.iter().map(price).collect(),
            speeds: document.jobs.iter().map(speeds).collect(),
            together,
            reference: reference.iter().find_map(|name| names.iter().position(|n| n == name)).unwrap_or(0),
        }
    }

    fn runs_on(&self, job: usize, kind: usize) -> bool {
        self.speeds[job][kind] > 0.0 && f64::from(self.jobs[job].scale_factor) <= self.workers[kind]
    }

    /// Throughputs of a job alone: `[K]`.
    fn seen(&self, job: usize, view: View) -> Vec<f64> {
        let own = &self.speeds[job];
        let most = own.iter().copied().fold(0.0, f64::max);
        let reference = if own[self.reference] > 0.0 { own[self.reference] } else { most };
        let seen = |speed: &f64| match view {
            _ if *speed == 0.0 => 0.0,
            View::Measured => *speed,
            View::Unit => 1.0,
            View::Reference => reference,
        };
        own.iter().map(seen).collect()
    }

    /// Time given to each job, `[n]`, and workers taken from each type, `[K]`.
    fn given(&self, rows: &[Row]) -> (Vec<f64>, Vec<f64>) {
        let (mut time, mut workers) = (vec![0.0; self.jobs.len()], vec![0.0; self.workers.len()]);
        for row in rows {
            let size = row.jobs.iter().map(|job| f64::from(self.jobs[*job].scale_factor)).fold(0.0, f64::max);
            for (kind, share) in row.shares.iter().enumerate() {
                row.jobs.iter().for_each(|job| time[*job] += share);
                workers[kind] += size * share;
            }
        }
        (time, workers)
    }

    /// Constraint that shares break, if any.
    pub fn broken(&self, rows: &[Row]) -> Option<String> {
        for row in rows {
            if row.shares.iter().any(|share| !(*share >= 0.0 && *share <= 1.0 + TOLERANCE)) {
                return Some(format!("jobs {:?} have shares {:?}", row.jobs, row.shares));
            }
            let nowhere = |kind: usize| row.jobs.iter().any(|job| !self.runs_on(*job, kind));
            if (0..row.shares.len()).any(|kind| row.shares[kind] > 0.0 && nowhere(kind)) {
                return Some(format!(
                    "jobs {:?} have time where they cannot run: {:?}",
                    row.jobs, row.shares
                ));
            }
        }
        let (time, workers) = self.given(rows);
        if let Some((job, time)) = time.iter().enumerate().find(|(_, time)| **time > 1.0 + TOLERANCE) {
            return Some(format!("job {job} has {time} of its time"));
        }
        let over =
            workers.iter().zip(&self.workers).position(|(given, are)| *given > are * (1.0 + TOLERANCE));
        over.map(|kind| {
            format!("{} of {} workers of type {kind} are given", workers[kind], self.workers[kind])
        })
    }

    /// Shares scaled down until they break no constraint.
    pub fn within(&self, rows: &[Row]) -> Vec<Row> {
        let (time, workers) = self.given(rows);
        let used =
            workers.iter().zip(&self.workers).map(|(given, are)| if *are > 0.0 { given / are } else { 0.0 });
        let most = time.into_iter().chain(used).fold(1.0, f64::max);
        let scaled = |row: &Row| Row {
            jobs: row.jobs.clone(),
            shares: row.shares.iter().map(|share| share.max(0.0) / most).collect(),
        };
        rows.iter().map(scaled).collect()
    }

    /// Shares of 1/n of the cluster for each of n jobs, on the types where it runs.
    pub fn equal_shares(&self) -> Vec<Row> {
        let row = |job: usize| {
            let given = |kind: usize| if self.runs_on(job, kind) { self.isolated(job)[kind] } else { 0.0 };
            Row { jobs: vec![job], shares: (0..self.workers.len()).map(given).collect() }
        };
        (0..self.jobs.len()).map(row).collect()
    }

    fn isolated(&self, job: usize) -> Vec<f64> {
        let parts = self.jobs.len() as f64 * f64::from(self.jobs[job].scale_factor);
        let whole = self.workers.iter().sum::<f64>() / parts;
        self.workers.iter().map(|workers| workers / parts / whole.max(1.0)).collect()
    }

    /// Throughput of each job on each worker type: `[n][K]`.
    fn made(&self, rows: &[Row], view: View) -> Vec<Vec<f64>> {
        let mut made = vec![vec![0.0; self.workers.len()]; self.jobs.len()];
        for row in rows {
            for (kind, share) in row.shares.iter().enumerate() {
                match row.jobs[..] {
                    [job] => made[job][kind] += share * self.seen(job, view)[kind],
                    [one, other] => {
                        let both = self.together.get(&(one, other)).map_or([0.0; 2], |both| both[kind]);
                        made[one][kind] += share * both[0];
                        made[other][kind] += share * both[1];
                    }
                    _ => {}
                }
            }
        }
        made
    }

    /// Effective throughput of each job: `[n]`.
    pub fn throughput(&self, rows: &[Row], view: View) -> Vec<f64> {
        self.made(rows, view).iter().map(|by_type| by_type.iter().sum()).collect()
    }

    /// Value of shares; none where it is not finite, or not known.
    pub fn value(&self, worth: Worth, rows: &[Row]) -> Option<f64> {
        let (Worth::Level(view) | Worth::Unfairness(view) | Worth::Makespan(view)) = worth else {
            return self.sum(worth, rows).filter(|value| value.is_finite());
        };
        let throughput = self.throughput(rows, view);
        let mean = |job: usize, shares: &[f64]| -> f64 {
            self.seen(job, view).iter().zip(shares).map(|(speed, share)| speed * share).sum()
        };
        let all: f64 = self.workers.iter().sum();
        let of_job = |(position, job): (usize, &SnapshotJob)| {
            let takes = |speed: f64| job.steps_remaining.map_or(f64::NAN, |steps| steps / speed);
            match worth {
                Worth::Level(_) => {
                    let equal = mean(position, &self.workers) / all;
                    f64::from(job.scale_factor) * throughput[position] / (job.weight * equal)
                }
                Worth::Unfairness(_) => {
                    let alone = mean(position, &self.isolated(position));
                    (job.elapsed + takes(throughput[position])) / (job.isolated_elapsed + takes(alone))
                }
                _ => takes(throughput[position]),
            }
        };
        let values: Vec<f64> = self.jobs.iter().enumerate().map(of_job).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.into_iter().reduce(if worth.is_gain() { f64::min } else { f64::max })
    }

    fn sum(&self, worth: Worth, rows: &[Row]) -> Option<f64> {
        let made = self.made(rows, View::Measured);
        let total = |job: usize| made[job].iter().sum::<f64>();
        let all: f64 = self.workers.iter().sum();
        let equal =
            |job: usize| self.speeds[job].iter().zip(&self.workers).map(|(s, w)| s * w).sum::<f64>() / all;
        let of_job = |position: usize| -> Option<f64> {
            let (job, total) = (&self.jobs[position], total(position));
            Some(match worth {
                Worth::Total => total,
                Worth::PerDollar => {
                    made[position].iter().zip(self.prices.as_ref()?).map(|(made, price)| made / price).sum()
                }
                Worth::Logarithms => job.weight * total.ln(),
                Worth::Welfare => (total / equal(position)).ln(),
                Worth::RelativeRate => {
                    let hours = job.steps_remaining? / equal(position) / 3600.0;
                    let relative = total / equal(position) * hours.powf(-0.15);
                    job.weight * f64::from(job.scale_factor).sqrt() * relative
                }
                Worth::Tempered => {
                    let steps = job.steps_remaining?;
                    let hours = steps / self.fitting(position).fold(0.0, f64::max) / 3600.0;
                    total / steps * hours.powf(0.75)
                }
                _ => return None,
            })
        };
        (0..self.jobs.len()).map(of_job).sum()
    }

    /// Throughput of a job on 1/n of the types that have enough workers for it, steps/s.
    pub fn fitting_isolated_throughput(&self, job: usize) -> f64 {
        self.isolated(job).iter().zip(self.fitting(job)).map(|(share, speed)| share * speed).sum()
    }

    /// Measured throughput of a job on each worker type, steps/s; 0 on types with too few workers: `[K]`.
    fn fitting(&self, job: usize) -> impl Iterator<Item = f64> {
        let needs = f64::from(self.jobs[job].scale_factor);
        let speeds = self.seen(job, View::Measured).into_iter().zip(&self.workers);
        speeds.map(move |(speed, workers)| if *workers >= needs { speed } else { 0.0 })
    }

    /// Throughput that a job's deadline requires, steps/s; none where it has no deadline, or one that has passed.
    pub fn asked(&self, job: usize) -> Option<f64> {
        let left = self.jobs[job].slo_remaining.filter(|left| *left > 0.0)?;
        self.jobs[job].steps_remaining.map(|steps| steps / left)
    }
}
