//! Forecasts of a job's start and end: a simulation up to an instant, then many forks of it over possible futures.
//!
//! In: a [`Run`](crate::sweep::Run) of a trace, an instant and jobs. Out: the [`Distribution`] of each job's start and end.
//!
//! ```text
//! trace up to an instant ──▶ past ─Situation─▶ future ─forks─▶ distribution
//!    likeness, survival ─▶ durations, arrivals ──▲
//! ```
//!
//! A forecast uses what is known at the instant: the jobs that have arrived, the steps that each has run, and the total
//! steps of those that have ended. In every fork the total steps of the active jobs are drawn anew ([`durations`]), and so
//! are the jobs to come ([`arrivals`]). [`calibration`] compares forecasts with the actual events.
//!
//! ```
//! use apportion::spec::Source;
//! use apportion::spec::run::RunSpec;
//! use apportion::{Catalog, Seconds};
//! use apportion_studies::forecast::{Arriving, JobSteps, Settings, forecast};
//! use apportion_studies::sweep::Inputs;
//! # use std::error::Error;
//!
//! let trace = "id,job_type,scale_factor,total_steps,arrival,weight,slo,entity\n\
//!              a,A3C,1,30000,0,1,,\nb,A3C,1,30000,600,1,,\n";
//! let mut spec = RunSpec { policy: "fifo".to_owned(), ..RunSpec::default() };
//! spec.cluster = "v100=1".parse()?;
//! spec.workload.trace = Some("mine".to_owned());
//! let run = Inputs::new(Catalog::embedded()).with_text(Source::new("mine", trace)).load(&spec)?;
//! // Each job has the steps that the trace says, and no other arrives: there is nothing to guess.
//! let settings = Settings { steps: JobSteps::Known, arriving: Arriving::None, n_forks: 3, ..Settings::default() };
//! let found = forecast(&run, ("b", Seconds::new(700.0)), &settings, &Default::default())?;
//! assert_eq!(found.end.quantile(0.1), found.end.quantile(0.9));
//! # Ok::<(), Box<dyn Error>>(())
//! ```

// Modules are declared in import order: each may mention only those above it.

mod error;
mod whole;
pub mod past;
pub mod survival;
pub mod likeness;
pub mod durations;
pub mod arrivals;
pub mod distribution;
pub mod future;
pub mod single;
pub mod calibration;
#[cfg(test)]
mod tests;

pub use calibration::{Calibration, Plan, calibrate};
pub use distribution::{Distribution, Quantile};
pub use error::ForecastError;
pub use future::{Arriving, Attended, JobSteps, Settings};
pub use past::{KnownJob, Situation};
pub use single::{Forecast, forecast, forecast_from};
