//! First in, first out, on the fastest free workers.
//!
//! Decided anew at each call, in order of arrival: a job takes all of its workers on the type that runs it
//! fastest, of the types with enough free ones. The first job for which no type has enough ends the call, so no
//! job overtakes another that is larger. A job with room only on types that it cannot use is skipped, because these
//! workers would otherwise idle.
//!
//! Source: Gavel's `FIFOPolicyWithPerf`, whose choices this repeats, the order of types of equal throughput
//! (alphabetical) included. O(n·K).

use crate::index::WorkerTypeId;
use crate::policy::decision::{Decision, Policy, PolicyError};
use crate::policy::heuristic::workers::{Handout, alphabetical, by_arrival};
use crate::problem::Problem;

const NAME: &str = "fifo_perf";

/// First in, first out, on the fastest free workers. No state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FifoPerf;

impl Policy for FifoPerf {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let types = alphabetical(problem);
        let mut handout = Handout::new(problem);
        for job in by_arrival(problem) {
            let throughput = |worker_type: WorkerTypeId| problem.throughput()[(job, worker_type)];
            let roomy = types.iter().copied().filter(|worker_type| handout.has_room(job, *worker_type));
            // The last of equals is what `max_by` takes, hence the reversal.
            let best = roomy.rev().max_by(|one, other| throughput(*one).total_cmp(&throughput(*other)));
            match best {
                None => break,
                Some(best) if throughput(best) > 0.0 => handout.place(job, best),
                Some(_) => {}
            }
        }
        handout.decide(NAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::heuristic::fifo::tests::{given, problem, recorded};

    fn types_given(capacity: [u32; 2], jobs: &[(u32, [f64; 2])]) -> Vec<Option<usize>> {
        given(&FifoPerf.allocate(&problem(capacity, jobs)).unwrap())
    }

    #[test]
    fn each_job_takes_the_fastest_free_type() {
        let jobs = [(1, [4.0, 5.0]), (1, [4.0, 5.0]), (1, [4.0, 1.0])];
        // The second would rather have the second type, whose one worker is gone.
        assert_eq!(types_given([2, 1], &jobs), [Some(1), Some(0), Some(0)]);
    }

    #[test]
    fn the_first_job_without_room_ends_it() {
        let jobs = [(1, [4.0, 1.0]), (2, [4.0, 1.0]), (1, [4.0, 1.0])];
        assert_eq!(types_given([2, 1], &jobs), [Some(0), None, None]);
    }

    #[test]
    fn a_job_that_cannot_use_what_is_free_is_passed_over() {
        let jobs = [(1, [4.0, 1.0]), (1, [4.0, 0.0]), (1, [4.0, 1.0])];
        assert_eq!(types_given([1, 1], &jobs), [Some(0), None, Some(1)]);
    }

    #[test]
    fn equal_throughputs_go_by_the_alphabet() {
        // Types are named `a` and `b`, listed in that order.
        assert_eq!(types_given([1, 1], &[(1, [3.0, 3.0])]), [Some(0)]);
    }

    #[test]
    fn decisions_are_those_of_the_published_code() {
        recorded("fifo_perf", || Box::new(FifoPerf));
    }
}
