//! One job, as its owner submits it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::{Seconds, Steps, StepsPerSecond};

/// A training run: its type, its demands, and its arrival.
///
/// A builder: everything but the job type has a default, documented at its setter.
///
/// ```
/// use apportion::{Job, Seconds};
/// let job = Job::new("ResNet-50 (batch size 64)").scale_factor(2).steps(120_000).arrival(Seconds::new(60.0));
/// assert_eq!(job.scale_factor, 2);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Job {
    /// Its id in the trace; none if that is its position in order of arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of its job type in the throughput matrix.
    pub job_type: String,
    /// Workers it needs at once (a gang), ≥ 1.
    pub scale_factor: u32,
    /// Numbers of workers that it may be given, ascending, its scale factor among them; empty if that is the only one. A
    /// policy that decides inside rounds may change the scale factor to any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u32>,
    /// Steps from its beginning to its end; generated jobs may have a fraction.
    pub total_steps: Steps,
    /// Its arrival, from the start of the workload.
    pub arrival: Seconds,
    /// Its importance to its user, > 0; larger is more.
    pub weight: f64,
    /// The time from its arrival within which it ought to be done.
    pub slo: Option<Seconds>,
    /// Its owner, for hierarchical policies.
    pub entity: Option<String>,
    /// The time it would take alone on the reference worker type, if its generator drew one.
    pub duration: Option<Seconds>,
    /// Its own throughput alone, per worker type by name, in place of the matrix's.
    pub throughput: Option<Vec<(String, StepsPerSecond)>>,
}

impl Job {
    /// A job of this type: one worker, weight 1, arriving at 0, with no steps yet.
    pub fn new(job_type: impl Into<String>) -> Self {
        Self {
            name: None,
            job_type: job_type.into(),
            scale_factor: 1,
            sizes: Vec::new(),
            total_steps: Steps::ZERO,
            arrival: Seconds::ZERO,
            weight: 1.0,
            slo: None,
            entity: None,
            duration: None,
            throughput: None,
        }
    }

    /// Its id in the trace; by default its position in order of arrival.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Workers it needs at once; default 1.
    #[must_use]
    pub fn scale_factor(mut self, scale_factor: u32) -> Self {
        self.scale_factor = scale_factor;
        self
    }

    /// Numbers of workers that it may be given, if it can be stopped and go on with another number from its checkpoint; by default
    /// only its scale factor. A step is the same work on each.
    #[must_use]
    pub fn sizes(mut self, sizes: impl Into<Vec<u32>>) -> Self {
        self.sizes = sizes.into();
        self
    }

    /// Steps from its beginning to its end; default 0, which only policies that ignore the remaining work accept.
    #[must_use]
    pub fn steps(mut self, steps: u32) -> Self {
        self.total_steps = Steps::new(f64::from(steps));
        self
    }

    /// Steps from its beginning to its end, possibly fractional.
    #[must_use]
    pub fn total_steps(mut self, steps: Steps) -> Self {
        self.total_steps = steps;
        self
    }

    /// Its arrival; default 0.
    #[must_use]
    pub fn arrival(mut self, arrival: Seconds) -> Self {
        self.arrival = arrival;
        self
    }

    /// Its importance; default 1.
    #[must_use]
    pub fn weight(mut self, weight: f64) -> Self {
        self.weight = weight;
        self
    }

    /// The time from arrival within which it ought to be done; default none.
    #[must_use]
    pub fn slo(mut self, slo: Seconds) -> Self {
        self.slo = Some(slo);
        self
    }

    /// The entity that owns the job; by default none.
    #[must_use]
    pub fn entity(mut self, entity: impl Into<String>) -> Self {
        self.entity = Some(entity.into());
        self
    }

    /// Its throughput alone on a worker type, in place of the matrix's; types not named run nothing.
    #[must_use]
    pub fn throughput(mut self, worker_type: impl Into<String>, throughput: StepsPerSecond) -> Self {
        self.throughput.get_or_insert_default().push((worker_type.into(), throughput));
        self
    }
    /// Checks the sizes, if it has any.
    ///
    /// # Errors
    /// If they are not ascending, lack the scale factor, or are given together with throughputs of its own.
    pub fn check_sizes(&self) -> Result<(), SizesError> {
        if self.sizes.is_empty() {
            return Ok(());
        }
        if self.sizes[0] == 0 {
            return Err(SizesError::Zero);
        }
        if let Some(pair) = self.sizes.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(SizesError::Order { before: pair[0], after: pair[1] });
        }
        if self.sizes.binary_search(&self.scale_factor).is_err() {
            return Err(SizesError::Lacking { scale_factor: self.scale_factor });
        }
        if self.throughput.is_some() && self.sizes.len() > 1 {
            return Err(SizesError::OwnSpeeds);
        }
        Ok(())
    }

    /// The sizes as text: one number after another.
    pub fn sizes_text(&self) -> String {
        self.sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// Why the sizes of a job are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SizesError {
    /// No worker at all.
    #[error("a size is 0, expected numbers of workers from 1")]
    Zero,
    /// Two that are not ascending.
    #[error("size {after} comes after {before}, expected sizes in ascending order, each once")]
    Order {
        /// One of them.
        before: u32,
        /// The one after it.
        after: u32,
    },
    /// The number of workers that the job has at first is missing among them.
    #[error(
        "the scale factor {scale_factor} is not among the sizes: add it, or take one of them as the scale factor"
    )]
    Lacking {
        /// The scale factor that was refused.
        scale_factor: u32,
    },
    /// The job states its own throughputs, which are those of one size.
    #[error("the speeds that the job states are those at one size: leave out them or the sizes")]
    OwnSpeeds,
}
