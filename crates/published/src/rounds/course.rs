//! Workloads to learn from, and what slows them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::gangs::{Course, CourseError, of_seed};
use apportion::policy::RoundPolicy;
use apportion::simulator::{Contention, Options, Simulation, Stragglers};
use apportion::units::JobsPerHour;

/// What slows jobs in an episode, beside the type of their workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// By how much a job on several servers is slowed for each other such job on its busiest link; 0 = not at all.
    pub contention: f64,
    /// Each worker's speed is uniform between this much below 1 and 1.
    pub straggling: f64,
    /// Rounds after which those speeds are drawn anew; none = never.
    pub straggling_rounds: Option<u64>,
}

/// What episodes are of: those of some courses, each under some conditions, decided inside rounds.
#[derive(Clone, Debug)]
pub struct RoundsCourse {
    /// Cluster, speeds and jobs; the seed says which, and then at which rate, each course at every rate of its own in turn.
    pub courses: Vec<Course>,
    /// What slows jobs; the seed says which, each with every rate in turn.
    pub conditions: Vec<Condition>,
}

impl RoundsCourse {
    /// The episode of a seed: its simulation at time 0, under this policy.
    ///
    /// # Errors
    /// If no such jobs can be drawn, or they do not fit the cluster.
    pub fn simulation(&self, seed: u64, policy: Box<dyn RoundPolicy>) -> Result<Simulation, CourseError> {
        let (course, rate, condition) = self.of(seed)?;
        let Course { cluster, throughputs, .. } = course;
        let mut options = Options::default().with_seed(seed);
        let Condition { contention, straggling, straggling_rounds } = condition;
        options.contention = (contention > 0.0).then_some(Contention { slowdown: contention });
        options.faults.stragglers =
            (straggling > 0.0).then_some(Stragglers { spread: straggling, redraw_rounds: straggling_rounds });
        let parts = (cluster, Arc::clone(throughputs));
        Ok(Simulation::with_round_policy(parts, course.arrivals_at(rate, seed)?, policy, options)?)
    }

    /// Mean completion time of the jobs of a seed's episode under a policy, h.
    ///
    /// # Errors
    /// If the simulation fails, or stands still while jobs wait.
    pub fn completion_h(&self, seed: u64, policy: Box<dyn RoundPolicy>) -> Result<f64, CourseError> {
        let (course, ..) = self.of(seed)?;
        course.hours(self.simulation(seed, policy)?)
    }

    /// Jobs of the episode of a seed.
    pub(super) fn n_jobs(&self, seed: u64) -> usize {
        of_seed(&self.courses, seed).map_or(0, |course| course.n_jobs)
    }

    /// What the episode of a seed is of: the course, its rate and the condition.
    pub(super) fn of(&self, seed: u64) -> Result<(&Course, JobsPerHour, Condition), CourseError> {
        let course = of_seed(&self.courses, seed).ok_or(CourseError::NoRate)?;
        let of_rates = seed / self.courses.len() as u64;
        let rate = *of_seed(&course.rates, of_rates).ok_or(CourseError::NoRate)?;
        let of_conditions = of_rates / course.rates.len() as u64;
        Ok((course, rate, of_seed(&self.conditions, of_conditions).copied().unwrap_or_default()))
    }
}
