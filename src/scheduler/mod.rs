//! A policy and the mechanism at work for any owner of jobs and workers: the common part of embedders, live schedulers and the
//! simulator.
//!
//! In: jobs that come and go, the time that they received, workers that go down and come up, owners' weights, and the instant at
//! which a round starts. Out: the [leases](Lease) of the round, with the user's own names, and the outcome of asking the policy
//! ([`Decided`]). It reads no clock, starts no job and opens no file: instants are arguments.
//!
//! ```text
//! submit, finish, record, set_up, declare → tick(now, deadline) → due? → policy → settle, adopt → assign → leases
//! ```
//!
//! There are two layers. [`Rounds`] is the inner one: the policy, the mechanism, and the data between them, over a table of jobs
//! that the caller keeps (a [`Situation`]). [`Scheduler`] is `Rounds` with a table of its own. The simulator uses `Rounds`, not
//! `Scheduler`: its jobs have faults, noise and slices besides. Both keep jobs in the same type of table, so that a policy is shown
//! the same problem live as simulated. In place of `Rounds`, both may have a [policy that decides inside
//! rounds](crate::policy::RoundPolicy): its placements are granted, without a mechanism.
//!
//! Measured throughputs of jobs alone ([`Scheduler::measure`]) are averaged into the throughputs that policies are shown. A
//! scheduler is saved and restored by [`Scheduler::state`] and [`Scheduler::restore`], with the same leases.
//!
//! Jobs that fit nowhere are refused one by one, by [`Scheduler::submit`]. A policy that fails, or has not answered by the
//! deadline, leaves the last allocation in force; a late answer is adopted at the first round after it has come.
//!
//! ```
//! use std::time::Duration;
//! use apportion::scheduler::{Decided, Options, Received, Scheduler};
//! use apportion::{Catalog, Cluster, Job, Seconds, Steps, StepsPerSecond, Throughputs};
//!
//! let cluster: Cluster = "v100=1,k80=1".parse()?;
//! let policy = Catalog::embedded().policy("max_sum_throughput_perf")?;
//! let mut scheduler =
//!     Scheduler::new(&cluster, Throughputs::embedded("osdi20")?, policy, Options::default())?;
//! let job = |v100: f64, k80: f64| {
//!     let speed = StepsPerSecond::new;
//!     Job::new("my own").steps(100_000).throughput("v100", speed(v100)).throughput("k80", speed(k80))
//! };
//! let fast = scheduler.submit_as("fast", job(10.0, 1.0))?;
//! let slow = scheduler.submit_as("slow", job(2.0, 1.0))?;
//! assert!(scheduler.submit_as("vast", job(4.0, 1.0).scale_factor(8)).is_err());
//!
//! let round = scheduler.tick(Seconds::ZERO, Some(Duration::from_secs(30)));
//! assert_eq!(round.decided, Decided::Fresh { asked: Seconds::ZERO });
//! let leases: Vec<_> = round.leases.iter().map(|lease| (&*lease.names[0], &*lease.type_name)).collect();
//! assert_eq!(leases, [("fast", "v100"), ("slow", "k80")]);
//!
//! for lease in &round.leases {
//!     let (jobs, worker_type, time) = (lease.jobs, lease.worker_type, Seconds::new(360.0));
//!     scheduler.record(Received { jobs, worker_type, time, steps: [Steps::new(360.0), Steps::ZERO] })?;
//! }
//! scheduler.finish(fast);
//! let round = scheduler.tick(Seconds::new(360.0), None);
//! assert!(round.leases.iter().all(|lease| lease.jobs.contains(slow)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod active;
mod boundary;
mod decided;
pub(crate) mod direct;
pub(crate) mod driver;
mod errors;
mod inside;
mod job_scheduler;
mod leases;
mod options;
mod owners;
mod policy_thread;
mod reports;
mod round_policy;
mod rounds;
mod state;
#[cfg(test)]
mod tests;

pub use decided::{Decided, DecisionError, RestoreError};
pub use errors::{ReportError, SetupError, SubmitError};
pub use job_scheduler::Scheduler;
pub use leases::{InForce, Lease, Round};
pub use options::{EmptyCluster, OptionError, Options, TypeDraws};
pub use reports::Received;
pub use rounds::{Answer, Rounds, RoundsState, Situation};
pub use state::SchedulerState;
