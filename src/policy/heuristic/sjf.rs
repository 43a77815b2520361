//! Shortest job first, not preemptive: a job that has workers keeps them to its end.
//!
//! Free workers go to waiting jobs in ascending order of time left on their fastest type (or of time × workers:
//! the symbols are those of [`srtf`](super::srtf)), ties by arrival, each on the type with room that runs it
//! fastest. A waiting job has all of its work left, so the order is that of the jobs' lengths.
//!
//! Source: the textbook rule.

use std::collections::BTreeMap;

use crate::index::{JobId, WorkerTypeId};
use crate::policy::decision::{Decision, Policy, PolicyError};
use crate::policy::heuristic::srtf::{ShortestParameters, shortest_first};
use crate::policy::heuristic::workers::{Handout, restored};
use crate::problem::Problem;

const NAME: &str = "sjf";

/// Shortest job first. Its state: the worker type of each running job.
#[derive(Clone, Debug)]
pub struct Sjf {
    parameters: ShortestParameters,
    running: BTreeMap<JobId, WorkerTypeId>,
}

impl Sjf {
    /// The rule with these parameters; nothing runs yet.
    pub fn new(parameters: ShortestParameters) -> Self {
        Self { parameters, running: BTreeMap::new() }
    }
}

impl Policy for Sjf {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let order = shortest_first(NAME, problem, self.parameters.measure)?;
        let mut handout = Handout::new(problem);
        handout.keep(|job| self.running.get(&job).copied());
        let waiting: Vec<_> = order.into_iter().filter(|job| !handout.placed().contains_key(job)).collect();
        handout.offer(waiting, self.parameters.backfill);
        self.running = handout.held();
        handout.decide(NAME)
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!({ "running": self.running.iter().collect::<Vec<_>>() })
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        let running: Vec<(JobId, WorkerTypeId)> = restored(NAME, &state["running"])?;
        self.running = running.into_iter().collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{given, snapshot};
    use super::*;

    #[test]
    fn a_running_job_is_not_preempted_by_a_shorter_one() {
        let mut policy = Sjf::new(ShortestParameters::default());
        let first = snapshot("only=1", &[(1, 100.0, &[1.0])]);
        assert_eq!(given(&mut policy, &first), ["0: only"]);
        let then = snapshot("only=1", &[(1, 90.0, &[1.0]), (1, 5.0, &[1.0]), (1, 3.0, &[1.0])]);
        assert_eq!(given(&mut policy, &then), ["0: only"]);

        // Saved and taken back, it still knows; without its state it would let the shortest run.
        let mut restored = Sjf::new(ShortestParameters::default());
        restored.restore(&policy.state()).unwrap();
        assert_eq!(given(&mut restored, &then), ["0: only"]);
        assert_eq!(given(&mut Sjf::new(ShortestParameters::default()), &then), ["2: only"]);
        assert!(restored.restore(&serde_json::json!({"running": "yes"})).is_err());
    }
}
