//! The published simulator's generator, to the last bit.
//!
//! Its four streams are CPython's, seeded with the run's seed + 2 (jobs), seed + 3 (gaps between arrivals)
//! and seed + 6 (SLOs). All of a job comes from the first, in the order scale factor (drawn even where 1 is forced),
//! duration, job type (again until one that can be distributed if the scale factor is above 1), weight.
//!
//! Source: Gavel's scheduler/utils.py `generate_job` and scheduler/scheduler.py `simulate`.

use std::sync::Arc;

use crate::throughput::Throughputs;
use crate::units::{Seconds, Steps};
use crate::workload::generator::backlog::Backlog;
use crate::workload::generator::mix::{MixShare, mix};
use crate::workload::generator::{
    ArrivalProcess, GeneratorError, HIGH_WEIGHT, SCALE_FACTORS, WorkloadOptions, minutes, slo_factor, speed,
};
use crate::workload::python_random::PythonRandom;
use crate::workload::{Arrivals, Job};

/// The worker type on which durations are stated.
const REFERENCE: &str = "v100";

/// Job types: a model, its batch sizes, and whether it can be distributed. Draws depend on the order, which is that of
/// [`JobTable::Released`].
const MODELS: [(&str, &[u32], bool); 7] = [
    ("ResNet-18", &[16, 32, 64, 128, 256], true),
    ("ResNet-50", &[16, 32, 64, 128], true),
    ("Transformer", &[16, 32, 64, 128, 256], true),
    ("LM", &[5, 10, 20, 40, 80], true),
    ("Recommendation", &[512, 1024, 2048, 4096, 8192], false),
    ("A3C", &[], false),
    ("CycleGAN", &[], false),
];

/// The position of A3C for the paper, and its position in [`MODELS`].
const A3C_BEFORE: usize = 3;
const A3C_NOW: usize = 5;

/// The order of the job types. Jobs of one worker each last as long either way; if some need several workers, other types also mean
/// other numbers of draws, so that all later draws differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobTable {
    /// The order of the published code since August 29, 2020 (19a0dd2): A3C is the 25th.
    #[default]
    Released,
    /// The order for the paper's recorded runs, before: A3C is the 15th.
    Osdi20,
}

/// A job type to draw.
#[derive(Clone, Debug)]
struct Template {
    job_type: String,
    distributed: bool,
}

/// Jobs as the published simulator draws them.
///
/// ```
/// use std::sync::Arc;
/// use apportion::{Seconds, Throughputs};
/// use apportion::workload::{Arrivals, Gavel, WorkloadOptions};
///
/// let throughputs = Throughputs::embedded("osdi20")?;
/// let mut jobs = Gavel::try_new(WorkloadOptions::continuous(Seconds::new(1800.0)), throughputs, 0)?;
/// assert_eq!(jobs.next_job().unwrap().arrival, Seconds::ZERO);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gavel {
    options: WorkloadOptions,
    throughputs: Arc<Throughputs>,
    templates: Vec<Template>,
    jobs: PythonRandom,
    gaps: PythonRandom,
    slos: PythonRandom,
    n_generated: usize,
    next_arrival: f64,
    backlog: Backlog,
}

impl Gavel {
    /// The jobs of a run of the published simulator with this seed.
    ///
    /// # Errors
    /// If an option is out of its range, or the matrix lacks a job type or does not run it on a V100.
    pub fn try_new(
        options: WorkloadOptions,
        throughputs: Arc<Throughputs>,
        seed: u64,
    ) -> Result<Self, GeneratorError> {
        options.check()?;
        let templates = templates(JobTable::Released);
        check_templates(&options, &throughputs, &templates)?;
        let stream = |offset: i128| PythonRandom::new(i128::from(seed) + offset);
        Ok(Self {
            options,
            throughputs,
            templates,
            jobs: stream(2),
            gaps: stream(3),
            slos: stream(6),
            n_generated: 0,
            next_arrival: 0.0,
            backlog: Backlog::default(),
        })
    }

    /// Names of the job types drawn, in the order on which draws depend.
    pub fn job_types() -> Vec<String> {
        templates(JobTable::Released).into_iter().map(|template| template.job_type).collect()
    }

    /// Draws from this order of the job types. It is for the start: jobs already drawn stay as they are.
    #[must_use]
    pub fn with_job_table(mut self, table: JobTable) -> Self {
        self.templates = templates(table);
        self
    }

    /// Starts with jobs at time 0 that need all of these workers, a number for each type.
    #[must_use]
    pub fn with_backlog(mut self, workers: impl IntoIterator<Item = u32>) -> Self {
        self.backlog = Backlog::of(workers);
        self
    }

    /// The mix of jobs in the long run.
    pub fn mix(&self) -> Vec<MixShare> {
        mix(&self.options, |size| {
            let scale_factor = SCALE_FACTORS[size].0;
            let drawn = self.templates.iter().filter(|template| size == 0 || template.distributed);
            drawn
                .filter_map(|template| {
                    let speed = speed(&self.throughputs, &template.job_type, scale_factor, REFERENCE)?;
                    Some((template.job_type.clone(), speed))
                })
                .collect()
        })
    }

    fn scale_factor(&mut self) -> u32 {
        let u = self.jobs.uniform(0.0, 1.0);
        // Exactly 0.8 is a 2 there; every other edge belongs to the larger.
        let drawn = match u {
            u if u < SCALE_FACTORS[0].1 => SCALE_FACTORS[0].0,
            u if u <= SCALE_FACTORS[1].1 => SCALE_FACTORS[1].0,
            u if u <= SCALE_FACTORS[2].1 => SCALE_FACTORS[2].0,
            _ => SCALE_FACTORS[3].0,
        };
        if self.options.multi_worker { drawn } else { 1 }
    }

    fn duration(&mut self) -> f64 {
        match self.options.duration {
            Some(duration) => duration.get(),
            None if self.jobs.random() >= 0.8 => minutes(self.jobs.uniform(3.0, 4.0)),
            None => minutes(self.jobs.uniform(1.5, 3.0)),
        }
    }

    fn job_type(&mut self, scale_factor: u32) -> String {
        loop {
            let template = self.jobs.choice(&self.templates);
            if scale_factor == 1 || template.distributed {
                return template.job_type.clone();
            }
        }
    }

    fn arrive(&mut self, scale_factor: u32) -> Seconds {
        if self.backlog.takes(scale_factor) {
            return Seconds::ZERO;
        }
        let arrival = self.next_arrival;
        if let ArrivalProcess::Poisson { mean_gap } = self.options.arrivals {
            // A division by a reciprocal, as there: the product would round differently.
            self.next_arrival += self.gaps.expovariate(1.0 / mean_gap.get());
        }
        Seconds::new(arrival)
    }
}

impl Arrivals for Gavel {
    fn next_job(&mut self) -> Option<Job> {
        if self.options.n_jobs.is_some_and(|n_jobs| self.n_generated >= n_jobs) {
            return None;
        }
        self.n_generated += 1;
        let scale_factor = self.scale_factor();
        let duration = self.duration();
        let job_type = self.job_type(scale_factor);
        // Checked when the generator was made.
        let speed = speed(&self.throughputs, &job_type, scale_factor, REFERENCE)?;
        let high = self.options.multi_priority && self.jobs.uniform(0.0, 1.0) <= 0.2;
        let mut job = Job::new(job_type)
            .scale_factor(scale_factor)
            .total_steps(Steps::new(duration * speed))
            .weight(if high { HIGH_WEIGHT } else { 1.0 })
            .arrival(self.arrive(scale_factor));
        job.duration = Some(Seconds::new(duration));
        if self.options.slos {
            job.slo = Some(Seconds::new(slo_factor(self.slos.uniform(0.0, 1.0)) * duration));
        }
        Some(job)
    }
}

fn templates(table: JobTable) -> Vec<Template> {
    let mut models = MODELS;
    if table == JobTable::Osdi20 {
        models[A3C_BEFORE..=A3C_NOW].rotate_right(1);
    }
    let mut templates = Vec::new();
    for (model, batch_sizes, distributed) in models {
        if batch_sizes.is_empty() {
            templates.push(Template { job_type: model.to_owned(), distributed });
        }
        for size in batch_sizes {
            templates.push(Template { job_type: format!("{model} (batch size {size})"), distributed });
        }
    }
    templates
}

fn check_templates(
    options: &WorkloadOptions,
    throughputs: &Throughputs,
    templates: &[Template],
) -> Result<(), GeneratorError> {
    let name = || throughputs.name().to_owned();
    if throughputs.find_worker_type(REFERENCE).is_none() {
        return Err(GeneratorError::NoReference { throughputs: name(), worker_type: REFERENCE.to_owned() });
    }
    for template in templates {
        for (scale_factor, _) in SCALE_FACTORS {
            let drawn = scale_factor == 1 || (options.multi_worker && template.distributed);
            if drawn && speed(throughputs, &template.job_type, scale_factor, REFERENCE).is_none() {
                return Err(GeneratorError::NoThroughput {
                    throughputs: name(),
                    job_type: template.job_type.clone(),
                    scale_factor,
                    worker_type: REFERENCE.to_owned(),
                });
            }
        }
    }
    Ok(())
}
