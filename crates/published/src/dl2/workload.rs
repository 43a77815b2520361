//! Workloads of DL2's world, by the published generator.

use thiserror::Error;

use crate::dl2::SLOT_S;
use crate::world::WorldJob;
use apportion::index::{Id, JobTypeId};
use apportion::spec::nearest::name_list;
use apportion::throughput::elastic::ElasticThroughputs;
use apportion::workload::random::{SeedStreams, Stream};

/// A law of the number of jobs that arrive in a slot; never more than the rate.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// The published counts of this rate, from a random one of the first five slots on.
    #[default]
    Google,
    /// Exactly the rate.
    Uniform,
    /// Poisson with the rate as its mean.
    Poisson,
}

/// Options of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadOptions {
    /// The number of jobs.
    pub n_jobs: usize,
    /// The process by which jobs arrive.
    pub arrivals: Arrivals,
    /// The most arrivals in a slot.
    pub rate: u32,
    /// Epochs of a job type whose share of epochs is 1.
    pub epochs_max: u32,
    /// Whether each job's epochs are multiplied by a factor of U(0.9, 1.1), in hundredths.
    pub vary_epochs: bool,
    /// Error e of estimates: a job's true epochs are its owner's estimate times 1 + U(−e, e).
    pub estimate_error: f64,
}

impl Default for WorkloadOptions {
    fn default() -> Self {
        Self {
            n_jobs: 60,
            arrivals: Arrivals::Google,
            rate: 3,
            epochs_max: 4000,
            vary_epochs: false,
            estimate_error: 0.0,
        }
    }
}

/// Why a workload cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// No counts of this rate were published.
    #[error("no arrivals were published at {rate} a slot, expected one of {known}")]
    UnknownRate {
        /// The rate.
        rate: u32,
        /// The arrival rates that were published.
        known: String,
    },
    /// An option is out of range.
    #[error("{what} is {value}, expected {expected}")]
    Value {
        /// The name of the option.
        what: &'static str,
        /// The value of the option.
        value: String,
        /// The values that are allowed, in words.
        expected: &'static str,
    },
}

/// Draws a workload.
///
/// # Errors
/// If there are no counts of this rate, or an option is out of range.
pub fn generate(
    tables: &ElasticThroughputs,
    options: &WorkloadOptions,
    seed: u64,
) -> Result<Vec<WorldJob>, WorkloadError> {
    check(options)?;
    let streams = SeedStreams::new(seed);
    let mut types = streams.stream("dl2 types");
    let (mut epochs, mut errors) = (streams.stream("dl2 epochs"), streams.stream("dl2 estimates"));
    let mut counts = Counts::new(tables, options, streams.stream("dl2 arrivals"))?;
    let mut jobs = Vec::with_capacity(options.n_jobs);
    let mut slot = 0_u32;
    while jobs.len() < options.n_jobs {
        for _ in 0..counts.next().min(options.rate) {
            if jobs.len() == options.n_jobs {
                break;
            }
            let job_type = types.below(tables.job_types.len());
            let row = &tables.job_types[job_type];
            let mut estimated = (row.epochs_share * f64::from(options.epochs_max)).floor();
            if options.vary_epochs {
                let hundredths = u32::try_from(epochs.below(20)).unwrap_or(0) + 90;
                estimated *= f64::from(hundredths) / 100.0;
            }
            let error = options.estimate_error * errors.uniform_in(-1.0, 1.0);
            let work_estimated = estimated.max(1.0) * row.samples_per_epoch;
            jobs.push(WorldJob {
                job_type: JobTypeId::from_index(job_type),
                workers: 0,
                work: (1.0 + error) * work_estimated,
                work_estimated,
                arrival_s: f64::from(slot) * SLOT_S,
                owner: 0,
            });
        }
        slot += 1;
    }
    Ok(jobs)
}

fn check(options: &WorkloadOptions) -> Result<(), WorkloadError> {
    let value = |what, value: String, expected| Err(WorkloadError::Value { what, value, expected });
    if options.rate == 0 || options.rate > RATE_MAX {
        return value("the rate", options.rate.to_string(), "1 to 500 jobs a slot");
    }
    if options.epochs_max == 0 {
        return value("the most epochs", options.epochs_max.to_string(), "at least 1");
    }
    if !(0.0..1.0).contains(&options.estimate_error) {
        return value("the error of estimates", options.estimate_error.to_string(), "0 to 1");
    }
    Ok(())
}

/// The largest rate: beyond it, e to the minus rate would vanish.
const RATE_MAX: u32 = 500;

/// An endless sequence of counts of arrivals, slot by slot.
struct Counts<'a> {
    arrivals: Arrivals,
    rate: u32,
    published: &'a [u32],
    next: usize,
    draws: Stream,
}

impl<'a> Counts<'a> {
    fn new(
        tables: &'a ElasticThroughputs,
        options: &WorkloadOptions,
        mut draws: Stream,
    ) -> Result<Self, WorkloadError> {
        let (arrivals, rate) = (options.arrivals, options.rate);
        let found = tables.arrivals.iter().find(|(most, _)| *most == rate);
        let published = match (arrivals, found) {
            (Arrivals::Google, None) => {
                let known: Vec<String> = tables.arrivals.iter().map(|(most, _)| most.to_string()).collect();
                return Err(WorkloadError::UnknownRate {
                    rate,
                    known: name_list(known.iter().map(String::as_str)),
                });
            }
            (Arrivals::Google, Some((_, counts))) => counts.as_slice(),
            (Arrivals::Uniform | Arrivals::Poisson, _) => &[],
        };
        Ok(Self { arrivals, rate, published, next: draws.below(5), draws })
    }

    fn next(&mut self) -> u32 {
        match self.arrivals {
            Arrivals::Google => {
                let count = self.published[self.next % self.published.len()];
                self.next += 1;
                count
            }
            Arrivals::Uniform => self.rate,
            Arrivals::Poisson => {
                // Knuth's method: the number of uniform factors before the product falls below e^−rate.
                let least = (-f64::from(self.rate)).exp();
                let (mut count, mut product) = (0, self.draws.uniform());
                while product > least {
                    count += 1;
                    product *= self.draws.uniform();
                }
                count
            }
        }
    }
}
