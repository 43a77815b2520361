//! First in, first out, with the queue's head packed beside running jobs where that gains much.
//!
//! From scratch at each call:
//! 1. as in `fifo_perf`: jobs in order of arrival each take whole workers of the type with room that runs them
//!    fastest (of equals the first in the alphabet), until the first for which no type has room; a job
//!    with room only on types that it cannot use is skipped;
//! 2. the queue left, in order of arrival, is packed: each onto the placed single job of the same scale factor, on its type
//!    j, for which N_j is largest, if N_j > `threshold`; of equals onto the earliest; until the first that
//!    can be paired with none.
//!
//! | symbol    | meaning                                                                              |
//! |-----------|--------------------------------------------------------------------------------------|
//! | N_j(a, b) | T[a,{a,b},j]/T`[a,j]` + T[b,{a,b},j]/T`[b,j]`, the pair's normalized throughput on type j |
//!
//! Source: Gavel (OSDI '20), its FIFO baseline with space sharing.
//!
//! Where the two fidelities differ: `published` drops from the queue the job that did not fit (unless no worker is free)
//! and skipped jobs, so that later jobs are packed before them; `corrected` packs all jobs without workers in order of
//! arrival.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::index::{JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, Policy, PolicyError, RoundRules};
use crate::policy::heuristic::workers::{Handout, alphabetical, by_arrival, decide_whole};
use crate::policy::heuristic::{Parameters, THRESHOLD_MAX, expect};
use crate::problem::Problem;
use crate::spec::Fidelity;
use crate::workload::Combination;

const NAME: &str = "fifo_packed";

/// Parameters of the rule `fifo_packed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct FifoPackedParameters {
    /// Normalized throughput that a pair must exceed, from 0 to 100. The default is Gavel's.
    pub threshold: f64,
    /// Whether the rule is as published or corrected: the run's `semantics` decide.
    #[serde(skip)]
    pub fidelity: Fidelity,
}

impl Parameters for FifoPackedParameters {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let is_fine = (0.0..=THRESHOLD_MAX).contains(&self.threshold);
        expect(is_fine, "threshold", self.threshold, "a number from 0 to 100")
    }
}

impl Default for FifoPackedParameters {
    fn default() -> Self {
        Self { threshold: 1.5, fidelity: Fidelity::Corrected }
    }
}

/// FIFO with packing. It has no state.
#[derive(Clone, Debug)]
pub struct FifoPacked {
    parameters: FifoPackedParameters,
}

impl FifoPacked {
    /// The rule with these parameters.
    pub fn new(parameters: FifoPackedParameters) -> Self {
        Self { parameters }
    }

    /// Combinations with their types: jobs that stayed alone, then pairs.
    fn packed(
        &self,
        problem: &Problem,
        handout: &Handout<'_>,
        queue: VecDeque<JobIndex>,
    ) -> Vec<(Combination<JobIndex>, WorkerTypeId)> {
        let mut singles: Vec<(JobIndex, WorkerTypeId)> = by_arrival(problem)
            .into_iter()
            .filter_map(|job| Some((job, *handout.placed().get(&job)?)))
            .collect();
        let mut pairs = Vec::new();
        for job in queue {
            let mut best = (self.parameters.threshold, None);
            for (position, (placed, worker_type)) in singles.iter().enumerate() {
                let gain = normalized(problem, Combination::pair(*placed, job), *worker_type);
                if gain > best.0 {
                    best = (gain, Some(position));
                }
            }
            let Some(position) = best.1 else { break };
            let (placed, worker_type) = singles.remove(position);
            pairs.push((Combination::pair(placed, job), worker_type));
        }
        let singles = singles.into_iter().map(|(job, worker_type)| (Combination::single(job), worker_type));
        singles.chain(pairs).collect()
    }
}

/// N_j of a pair; 0 where it cannot run.
fn normalized(problem: &Problem, pair: Combination<JobIndex>, worker_type: WorkerTypeId) -> f64 {
    let alone = |job| problem.throughput()[(job, worker_type)];
    match (problem.colocated(pair, worker_type), pair.second()) {
        (Some(both), Some(second)) => {
            let mut ids = [
                (problem.jobs()[pair.first()].id, pair.first(), both[0]),
                (problem.jobs()[second].id, second, both[1]),
            ];
            ids.sort_by_key(|(id, ..)| *id);
            ids.iter().map(|(_, job, together)| together / alone(*job)).sum()
        }
        _ => 0.0,
    }
}

/// Places jobs in order until one has room nowhere. Returns the queue left by the published procedure, which lacks
/// that job, too, unless no worker at all is free.
fn place(problem: &Problem, handout: &mut Handout<'_>) -> VecDeque<JobIndex> {
    let types = alphabetical(problem);
    let mut queue: VecDeque<JobIndex> = by_arrival(problem).into();
    while handout.free().iter().any(|free| *free > 0) {
        let Some(job) = queue.pop_front() else { break };
        let throughput = |worker_type: WorkerTypeId| problem.throughput()[(job, worker_type)];
        let with_room = types.iter().copied().filter(|worker_type| handout.has_room(job, *worker_type));
        // The last of equals is what `max_by` takes, hence the reversal.
        match with_room.rev().max_by(|one, other| throughput(*one).total_cmp(&throughput(*other))) {
            None => break,
            Some(best) if throughput(best) > 0.0 => handout.place(job, best),
            Some(_) => {}
        }
    }
    queue
}

impl Policy for FifoPacked {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let mut handout = Handout::new(problem);
        let mut queue = place(problem, &mut handout);
        if self.parameters.fidelity == Fidelity::Corrected {
            queue = by_arrival(problem).into();
            queue.retain(|job| !handout.placed().contains_key(job));
        }
        let placed = self.packed(problem, &handout, queue);
        let rules = RoundRules { skip_zero_priority: true, pair_fillers: true, ..RoundRules::default() };
        decide_whole(NAME, problem, placed, rules)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Snapshot, given};
    use super::*;

    fn with(fidelity: Fidelity) -> FifoPacked {
        FifoPacked::new(FifoPackedParameters { fidelity, ..FifoPackedParameters::default() })
    }

    #[test]
    fn the_queue_packs_with_its_best_partner_and_stops_at_the_first_without() {
        let mut snapshot = Snapshot::new("fast=1,slow=1");
        for job in 0..5 {
            snapshot.job(job, 1, 100.0, &[10.0, 5.0]);
        }
        // Job 2 gains 0.9 + 0.7 on the fast type beside job 0, 0.8 + 0.9 on the slow one beside job 1: the latter.
        snapshot.pair(0, 2, &[[9.0, 7.0], [0.0, 0.0]]);
        snapshot.pair(1, 2, &[[0.0, 0.0], [4.0, 4.5]]);
        // Job 3 reaches only 1.5 with job 0, so it waits, and job 4 behind it too, although it would gain 2.
        snapshot.pair(0, 3, &[[7.5, 7.5], [0.0, 0.0]]);
        snapshot.pair(0, 4, &[[10.0, 10.0], [0.0, 0.0]]);
        for fidelity in [Fidelity::Published, Fidelity::Corrected] {
            assert_eq!(given(&mut with(fidelity), &snapshot), ["0: fast", "1+2: slow"]);
        }
    }

    #[test]
    fn a_head_that_does_not_fit_is_overtaken_only_as_published() {
        // Three workers: job 0 takes two, job 1 wants two, job 2 one. Pairs (0, 1) and (0, 2)… only equal scale
        // factors pair: job 1 with job 0.
        let mut snapshot = Snapshot::new("only=3");
        snapshot.job(0, 2, 100.0, &[10.0]);
        snapshot.job(1, 2, 100.0, &[10.0]);
        snapshot.job(2, 2, 100.0, &[10.0]);
        snapshot.pair(0, 1, &[[8.0, 8.0]]);
        snapshot.pair(0, 2, &[[9.0, 9.0]]);
        assert_eq!(given(&mut with(Fidelity::Corrected), &snapshot), ["0+1: only"]);
        assert_eq!(given(&mut with(Fidelity::Published), &snapshot), ["0+2: only"]);
    }

    #[test]
    fn a_job_passed_over_is_packed_in_its_turn_unless_as_published() {
        // The free type cannot run job 1; job 2 takes it, and what packs beside job 0 is job 1 before job 3.
        let mut snapshot = Snapshot::new("a=1,b=1");
        snapshot.job(0, 1, 100.0, &[10.0, 1.0]);
        snapshot.job(1, 1, 100.0, &[10.0, 0.0]);
        snapshot.job(2, 1, 100.0, &[10.0, 1.0]);
        snapshot.job(3, 1, 100.0, &[10.0, 1.0]);
        snapshot.pair(0, 1, &[[9.0, 9.0], [0.0, 0.0]]);
        snapshot.pair(0, 3, &[[9.0, 9.0], [0.0, 0.0]]);
        assert_eq!(given(&mut with(Fidelity::Corrected), &snapshot), ["2: b", "0+1: a"]);
        assert_eq!(given(&mut with(Fidelity::Published), &snapshot), ["2: b", "0+3: a"]);
    }
}
