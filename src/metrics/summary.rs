//! The numbers of one simulation, and the counts of events behind some of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::completion::JobRecord;
use super::fairness::Fairness;
use super::recorder::Recorder;
use super::slo;
use crate::simulator::Event;
use crate::units::{Dollars, Seconds};

/// The distribution of some values. Quantiles are interpolated linearly between order statistics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// The number of values.
    pub count: usize,
    /// Their mean.
    pub average: f64,
    /// The 50th percentile.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// The values themselves, ascending: the i-th of n is the quantile (i + 1)/n of the empirical CDF.
    #[serde(skip)]
    pub sorted: Vec<f64>,
}

impl Distribution {
    /// The distribution of these values; none without values.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let max = *values.last()?;
        let count = values.len();
        Some(Self {
            count,
            average: values.iter().sum::<f64>() / count as f64,
            median: quantile(&values, 0.5),
            p95: quantile(&values, 0.95),
            p99: quantile(&values, 0.99),
            max,
            sorted: values,
        })
    }
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the length of a slice"
    )]
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// Completion times of the measured jobs of one weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WeightClass {
    /// The weight.
    pub weight: f64,
    /// The distribution of their completion times.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "s")))]
    #[serde(rename = "jct_s", alias = "jct")]
    pub jct: Distribution,
}

/// The number of events of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    rounds: u64,
    solves: u64,
    iterations: u64,
    fallbacks: u64,
    #[serde(default)]
    uncertified: u64,
    promises_dropped: u64,
    leases: u64,
    lease_extensions: u64,
    preemptions: u64,
    failures: u64,
    worker_failures: u64,
}

impl Counts {
    /// Adds one event.
    pub(super) fn fold(&mut self, event: &Event<'_>) {
        match event {
            Event::RoundStarted { .. } => self.rounds += 1,
            Event::Allocated { iterations, fallbacks, dropped, uncertified, .. } => {
                self.solves += 1;
                self.iterations += iterations;
                self.fallbacks += fallbacks.len() as u64;
                self.uncertified += u64::from(*uncertified);
                self.promises_dropped += dropped.len() as u64;
            }
            Event::Lease { extended, .. } => {
                self.leases += 1;
                self.lease_extensions += u64::from(*extended);
            }
            Event::Preempted { .. } => self.preemptions += 1,
            Event::Failure { .. } => self.failures += 1,
            Event::WorkerDown { .. } => self.worker_failures += 1,
            Event::Slice(_)
            | Event::Arrival { .. }
            | Event::Completion { .. }
            | Event::Dropped { .. }
            | Event::WorkerUp { .. }
            | Event::PriceChange { .. }
            | Event::Idle { .. } => {}
        }
    }
}

/// One simulation in numbers; the same bytes for the same spec and seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// Mean completion time of the measured jobs that were completed; null without any, and if the simulation was given up: `jct_s`
    /// then has the mean and the number of the jobs that were done by then.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "s")))]
    #[serde(rename = "average_jct_s", alias = "average_jct")]
    pub average_jct: Option<f64>,
    /// The distribution of these jobs' completion times; null without any.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "s")))]
    #[serde(rename = "jct_s", alias = "jct")]
    pub jct: Option<Distribution>,
    /// The distribution of JCTs by weight; empty unless weights differ.
    pub jct_by_weight: Vec<WeightClass>,
    /// The finish-time fairness of these jobs; null without any.
    pub rho: Option<Fairness>,
    /// Last completion − first arrival, of all completed jobs; null if the simulation was given up.
    #[serde(rename = "makespan_s", alias = "makespan")]
    pub makespan: Option<Seconds>,
    /// Busy worker time over worker time from the first arrival to the end of the last lease, by type and `all`.
    pub utilization: BTreeMap<String, f64>,
    /// Rounds started.
    pub rounds: u64,
    /// Decisions of the policy.
    pub solves: u64,
    /// Iterations of all solves.
    pub solve_iterations: u64,
    /// Answers of backends that were rejected, after which another backend was asked.
    pub fallbacks: u64,
    /// Decisions by an objective that were not proven to be its optimum.
    pub uncertified: u64,
    /// Droppable constraints (deadlines) that the policy dropped, summed over decisions.
    pub promises_dropped: u64,
    /// Combinations that lost their workers while work was left.
    pub preemptions: u64,
    /// Leases granted.
    pub leases: u64,
    /// Leases that extend one of the previous round, on the same workers.
    pub lease_extensions: u64,
    /// The price of busy worker time, $; null without prices.
    pub cost: Option<Dollars>,
    /// Measured jobs that missed their SLO; null if none has one.
    pub slo_violations: Option<usize>,
    /// Slices of jobs that failed.
    pub failures: u64,
    /// Failures of workers.
    pub worker_failures: u64,
    /// Measured jobs given up after too many failures.
    pub jobs_dropped: usize,
    /// The measured jobs that ended, by id.
    pub jobs: Vec<JobRecord>,
}

impl Summary {
    pub(super) fn of(recorder: &Recorder) -> Self {
        let Recorder { completions, utilization, counts, .. } = recorder;
        let jobs = completions.jobs();
        let jct = Distribution::of(completions.jcts().collect());
        let mut by_type: BTreeMap<String, f64> = utilization.by_type().into_iter().collect();
        by_type.insert("all".to_owned(), utilization.all());
        Self {
            average_jct: jct.as_ref().map(|jct| jct.average),
            jct,
            jct_by_weight: by_weight(&jobs),
            rho: Fairness::of(&jobs),
            makespan: completions.makespan(),
            utilization: by_type,
            rounds: counts.rounds,
            solves: counts.solves,
            solve_iterations: counts.iterations,
            fallbacks: counts.fallbacks,
            uncertified: counts.uncertified,
            promises_dropped: counts.promises_dropped,
            preemptions: counts.preemptions,
            leases: counts.leases,
            lease_extensions: counts.lease_extensions,
            cost: utilization.cost(),
            slo_violations: slo::violations(&jobs),
            failures: counts.failures,
            worker_failures: counts.worker_failures,
            jobs_dropped: completions.n_dropped(),
            jobs,
        }
    }
}

impl Summary {
    /// This summary for a simulation that was given up: without an average completion time and a makespan, as the mean of the
    /// jobs that were done by then is not the mean of all, and their last completion not the last of all.
    #[must_use]
    pub fn given_up(self) -> Self {
        Self { average_jct: None, makespan: None, ..self }
    }

    /// This summary with the instants of jobs in the time of the trace, whose first arrival is `origin`.
    #[must_use]
    pub fn counted_from(mut self, origin: Seconds) -> Self {
        for job in &mut self.jobs {
            job.arrival += origin;
            job.completion = job.completion.map(|completion| completion + origin);
        }
        self
    }
}

fn by_weight(jobs: &[JobRecord]) -> Vec<WeightClass> {
    let mut weights: Vec<f64> = jobs.iter().map(|job| job.weight).collect();
    weights.sort_unstable_by(f64::total_cmp);
    weights.dedup();
    if weights.len() < 2 {
        return Vec::new();
    }
    let class = |weight: f64| {
        let of_weight = jobs.iter().filter(|job| job.weight.total_cmp(&weight).is_eq());
        let jct = Distribution::of(of_weight.filter_map(|job| job.jct).map(Seconds::get).collect())?;
        Some(WeightClass { weight, jct })
    };
    weights.into_iter().filter_map(class).collect()
}
