//! Shortest remaining time first, preemptive: at each call the jobs with the least left go first.
//!
//! | symbol    | meaning                                                        | unit            |
//! |-----------|----------------------------------------------------------------|-----------------|
//! | r_m       | steps remaining                                                | steps           |
//! | T`[m,j]`    | throughput alone on type j                                     | steps/s         |
//! | left_m    | r_m / max_j T`[m,j]`, over types with at least s_m workers       | s               |
//! | service_m | s_m · left_m                                                   | worker-seconds  |
//!
//! Jobs in ascending order of left_m (or service_m), ties by arrival, each take s_m whole workers of the type
//! with room that runs them fastest; workers of jobs further back are taken away. It needs the work left, so it
//! is an oracle's baseline.
//!
//! Source: the textbook rule; weighing by workers is what Tiresias (NSDI '19) calls shortest remaining service
//! first.

use serde::{Deserialize, Serialize};

use crate::index::JobIndex;
use crate::policy::decision::{Decision, Policy, PolicyError};
use crate::policy::heuristic::Parameters;
use crate::policy::heuristic::workers::{Handout, by_arrival, time_remaining};
use crate::problem::Problem;

const NAME: &str = "srtf";

/// Quantity by which jobs are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The time left.
    #[default]
    Time,
    /// The time left × workers.
    Service,
}

/// Parameters of the rules `srtf` and `sjf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ShortestParameters {
    /// Quantity by which jobs are compared.
    pub measure: Measure,
    /// Whether a job further back may take workers that a job before it cannot use. Otherwise the queue blocks at the first
    /// job that does not fit.
    pub backfill: bool,
}

impl Parameters for ShortestParameters {}

impl Default for ShortestParameters {
    fn default() -> Self {
        Self { measure: Measure::Time, backfill: true }
    }
}

/// Shortest remaining time first.
#[derive(Clone, Debug)]
pub struct Srtf {
    parameters: ShortestParameters,
}

impl Srtf {
    /// The rule with these parameters.
    pub fn new(parameters: ShortestParameters) -> Self {
        Self { parameters }
    }
}

impl Policy for Srtf {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let order = shortest_first(NAME, problem, self.parameters.measure)?;
        let mut handout = Handout::new(problem);
        handout.offer(order, self.parameters.backfill);
        handout.decide(NAME)
    }
}

/// Jobs with the least left first, ties by arrival.
pub(super) fn shortest_first(
    policy: &str,
    problem: &Problem,
    measure: Measure,
) -> Result<Vec<JobIndex>, PolicyError> {
    let time = time_remaining(policy, problem)?;
    let key = |job: JobIndex| match measure {
        Measure::Time => time[job],
        Measure::Service => time[job] * f64::from(problem.jobs()[job].scale_factor),
    };
    let mut order = by_arrival(problem);
    order.sort_by(|one, other| key(*one).total_cmp(&key(*other)));
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{given, snapshot};
    use super::*;

    #[test]
    fn the_job_with_least_left_takes_the_workers() {
        // On the faster type: 100 s, 50 s, 60 s. One worker of each type: the second job takes the fast one, the
        // third the slow one, the first waits.
        let snapshot = snapshot(
            "fast=1,slow=1",
            &[(1, 200.0, &[2.0, 1.0]), (1, 100.0, &[2.0, 1.0]), (1, 60.0, &[1.0, 1.0])],
        );
        let mut policy = Srtf::new(ShortestParameters::default());
        assert_eq!(given(&mut policy, &snapshot), ["1: fast", "2: slow"]);
        assert!(policy.allocate(&snapshot.problem()).unwrap().rules.skip_zero_priority);
    }

    #[test]
    fn workers_count_in_service_and_backfilling_is_a_choice() {
        // Time left: 10 s on two workers, 15 s on one, 30 s on one; three workers.
        let jobs: [(u32, f64, &[f64]); 3] = [(2, 10.0, &[1.0]), (2, 15.0, &[1.0]), (1, 31.0, &[1.0])];
        let three = snapshot("only=3", &jobs);
        let with = |measure, backfill| {
            let mut policy = Srtf::new(ShortestParameters { measure, backfill });
            given(&mut policy, &three)
        };
        assert_eq!(with(Measure::Time, true), ["0: only", "2: only"]);
        assert_eq!(with(Measure::Time, false), ["0: only"]);
        // 20, 30 and 31 worker-seconds: the same order; a fourth worker would change nothing either.
        assert_eq!(with(Measure::Service, true), ["0: only", "2: only"]);
        let swapped = snapshot("only=2", &[(2, 10.0, &[1.0]), (1, 15.0, &[1.0])]);
        let mut by_service = Srtf::new(ShortestParameters { measure: Measure::Service, backfill: true });
        assert_eq!(given(&mut by_service, &swapped), ["1: only"]);
    }

    #[test]
    fn a_job_without_steps_is_refused_by_name() {
        let snapshot = snapshot("only=1", &[(1, 0.0, &[1.0])]);
        let error = Srtf::new(ShortestParameters::default()).allocate(&snapshot.problem()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "policy `srtf` needs `steps_remaining` of job 0, expected a number above 0"
        );
    }
}
