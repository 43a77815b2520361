//! Workloads from traces and from the published generator.

use thiserror::Error;

use crate::deepshare::trace::DeepShareJob;
use crate::deepshare::{DEMANDS, job_type};
use crate::world::WorldJob;
use apportion::index::JobTypeId;
use apportion::spec::nearest::name_list;
use apportion::throughput::spread::SpreadThroughputs;
use apportion::workload::random::{SeedStreams, Stream};

/// Shares of the models among jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// Drawn for each workload: multinomial(100, uniform) / 100.
    #[default]
    Random,
    /// Equal shares.
    Equal,
    /// One of the tables' named mixes.
    Named(String),
}

/// Why a workload cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// The tables lack a job of a trace.
    #[error("job {position} is a `{model}` of {workers} workers, which the tables lack: they have {known}")]
    UnknownJob {
        /// The position of the job.
        position: usize,
        /// The model of the job.
        model: String,
        /// The number of workers of the job.
        workers: u32,
        /// The models of the tables, with their workers.
        known: String,
    },
    /// The tables have no such mix.
    #[error("unknown mix `{name}`, expected one of {known}")]
    UnknownMix {
        /// The name of the mix.
        name: String,
        /// The names of all mixes.
        known: String,
    },
}

fn job(job_type: JobTypeId, workers: u16, work: f64) -> WorldJob {
    WorldJob { job_type, workers, work, work_estimated: work, arrival_s: 0.0, owner: 0 }
}

/// The jobs of a published trace.
///
/// # Errors
/// If the tables lack a job's model or number of workers.
pub fn from_trace(
    tables: &SpreadThroughputs,
    trace: &[DeepShareJob],
) -> Result<Vec<WorldJob>, WorkloadError> {
    let made = trace.iter().enumerate().map(|(position, traced)| {
        let model = tables.job_types.iter().position(|name| *name == traced.model);
        let demand = DEMANDS.iter().position(|workers| u32::from(*workers) == traced.workers);
        match (model, demand) {
            (Some(model), Some(demand)) => Ok(job(job_type(model, demand), DEMANDS[demand], traced.samples)),
            _ => Err(WorkloadError::UnknownJob {
                position,
                model: traced.model.clone(),
                workers: traced.workers,
                known: format!("{}, of 2, 4 or 8", name_list(tables.job_types.iter().map(String::as_str))),
            }),
        }
    });
    made.collect()
}

/// Draws `n_jobs` jobs: first the shares of models and demands, then each job by itself.
///
/// # Errors
/// If the tables have no such mix.
pub fn generate(
    tables: &SpreadThroughputs,
    mix: &Mix,
    n_jobs: usize,
    seed: u64,
) -> Result<Vec<WorldJob>, WorkloadError> {
    let streams = SeedStreams::new(seed);
    let n_models = tables.job_types.len();
    let models = match mix {
        Mix::Random => shares(&mut streams.stream("deepshare model shares"), n_models),
        Mix::Equal => vec![1.0 / n_models as f64; n_models],
        Mix::Named(name) => {
            let found =
                tables.mixes.iter().find(|(other, _)| other == name).map(|(_, shares)| shares.clone());
            let names =
                ["random", "equal"].into_iter().chain(tables.mixes.iter().map(|(name, _)| name.as_str()));
            found.ok_or_else(|| WorkloadError::UnknownMix { name: name.clone(), known: name_list(names) })?
        }
    };
    let demands = shares(&mut streams.stream("deepshare demand shares"), DEMANDS.len());
    let mut draws = streams.stream("deepshare jobs");
    let drawn = (0..n_jobs).map(|_| {
        let (model, demand) = (draw(&mut draws, &models), draw(&mut draws, &demands));
        let samples = tables.samples_of(model, u32::from(DEMANDS[demand])).unwrap_or(1.0);
        job(job_type(model, demand), DEMANDS[demand], samples)
    });
    Ok(drawn.collect())
}

/// Random shares of n: multinomial(100, uniform over n) / 100.
fn shares(stream: &mut Stream, n: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n];
    for _ in 0..100 {
        counts[stream.below(n)] += 0.01;
    }
    counts
}

/// A position drawn by its share; the last position with a share if rounding leaves a gap.
fn draw(stream: &mut Stream, shares: &[f64]) -> usize {
    let mut left = stream.uniform();
    for (position, share) in shares.iter().enumerate() {
        left -= share;
        if left < 0.0 {
            return position;
        }
    }
    shares.iter().rposition(|share| *share > 0.0).unwrap_or(0)
}
