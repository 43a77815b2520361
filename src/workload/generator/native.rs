//! Our own generator: Gavel's distributions over any throughput matrix.
//!
//! Each quantity has a stream of its own and takes exactly one draw of it per job, so the same seed gives the
//! same arrivals and durations whether or not several workers, priorities or SLOs are asked for.

use std::sync::Arc;

use crate::index::{Id, WorkerTypeId};
use crate::throughput::Throughputs;
use crate::units::{Seconds, Steps};
use crate::workload::generator::backlog::Backlog;
use crate::workload::generator::mix::{MixShare, mix};
use crate::workload::generator::{
    ArrivalProcess, GeneratorError, HIGH_WEIGHT, SCALE_FACTORS, WorkloadOptions, minutes, slo_factor, speed,
};
use crate::workload::random::{SeedStreams, Stream};
use crate::workload::{Arrivals, Job};

/// Jobs of any matrix's types, drawn from named streams; durations are times alone on the matrix's first worker
/// type, its fastest.
#[derive(Clone, Debug)]
pub struct Native {
    options: WorkloadOptions,
    /// Job types with their throughput on the reference worker type, for each of the scale factors.
    types: [Vec<(String, f64)>; SCALE_FACTORS.len()],
    streams: Streams,
    n_generated: usize,
    next_arrival: f64,
    backlog: Backlog,
}

#[derive(Clone, Debug)]
struct Streams {
    arrivals: Stream,
    scale_factors: Stream,
    duration_kinds: Stream,
    durations: Stream,
    job_types: Stream,
    weights: Stream,
    slos: Stream,
}

impl Native {
    /// A generator of jobs with this seed.
    ///
    /// # Errors
    /// If an option is out of its range, or no job type runs at a scale factor that may be drawn.
    pub fn try_new(
        options: WorkloadOptions,
        throughputs: &Arc<Throughputs>,
        seed: u64,
    ) -> Result<Self, GeneratorError> {
        options.check()?;
        let reference = throughputs.worker_types().get(WorkerTypeId::from_index(0));
        let reference = reference.map_or("", String::as_str);
        let mut types = [const { Vec::new() }; SCALE_FACTORS.len()];
        for (types, (scale_factor, _)) in types.iter_mut().zip(SCALE_FACTORS) {
            let rows = throughputs.rows().iter().filter(|row| row.scale_factor == scale_factor);
            *types = rows
                .filter_map(|row| {
                    let speed = speed(throughputs, &row.job_type, scale_factor, reference)?;
                    Some((row.job_type.clone(), speed))
                })
                .collect();
            if types.is_empty() && (scale_factor == 1 || options.multi_worker) {
                let (throughputs, worker_type) = (throughputs.name().to_owned(), reference.to_owned());
                return Err(GeneratorError::NoJobType { throughputs, scale_factor, worker_type });
            }
        }
        let stream = |name| SeedStreams::new(seed).stream(name);
        let streams = Streams {
            arrivals: stream("arrivals"),
            scale_factors: stream("scale_factors"),
            duration_kinds: stream("duration_kinds"),
            durations: stream("durations"),
            job_types: stream("job_types"),
            weights: stream("weights"),
            slos: stream("slos"),
        };
        Ok(Self { options, types, streams, n_generated: 0, next_arrival: 0.0, backlog: Backlog::default() })
    }

    /// Starts with jobs at time 0 that need all of these workers, a number for each type.
    #[must_use]
    pub fn with_backlog(mut self, workers: impl IntoIterator<Item = u32>) -> Self {
        self.backlog = Backlog::of(workers);
        self
    }

    /// The mix of jobs in the long run.
    pub fn mix(&self) -> Vec<MixShare> {
        mix(&self.options, |size| self.types[size].clone())
    }

    /// The position of a drawn scale factor in [`SCALE_FACTORS`].
    fn scale_factor(&mut self) -> usize {
        let u = self.streams.scale_factors.uniform();
        if self.options.multi_worker {
            SCALE_FACTORS.iter().position(|(_, end)| u < *end).unwrap_or(0)
        } else {
            0
        }
    }

    fn duration(&mut self) -> f64 {
        let (short, u) = (self.streams.duration_kinds.uniform() < 0.8, self.streams.durations.uniform());
        match self.options.duration {
            Some(duration) => duration.get(),
            None if short => minutes(1.5 + 1.5 * u),
            None => minutes(3.0 + u),
        }
    }

    fn arrive(&mut self, scale_factor: u32) -> Seconds {
        if self.backlog.takes(scale_factor) {
            return Seconds::ZERO;
        }
        let arrival = self.next_arrival;
        if let ArrivalProcess::Poisson { mean_gap } = self.options.arrivals {
            self.next_arrival += self.streams.arrivals.exponential(mean_gap.get());
        }
        Seconds::new(arrival)
    }
}

impl Arrivals for Native {
    fn next_job(&mut self) -> Option<Job> {
        if self.options.n_jobs.is_some_and(|n_jobs| self.n_generated >= n_jobs) {
            return None;
        }
        self.n_generated += 1;
        let size = self.scale_factor();
        let duration = self.duration();
        let (job_type, speed) = self.streams.job_types.choice(&self.types[size]).clone();
        let high = self.streams.weights.uniform() < 0.2 && self.options.multi_priority;
        let slo = slo_factor(self.streams.slos.uniform()) * duration;
        let mut job = Job::new(job_type)
            .scale_factor(SCALE_FACTORS[size].0)
            .total_steps(Steps::new(duration * speed))
            .weight(if high { HIGH_WEIGHT } else { 1.0 })
            .arrival(self.arrive(SCALE_FACTORS[size].0));
        job.duration = Some(Seconds::new(duration));
        job.slo = self.options.slos.then(|| Seconds::new(slo));
        Some(job)
    }
}
