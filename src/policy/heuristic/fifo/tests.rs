use std::sync::Arc;

use serde::Deserialize;

use super::*;
use crate::allocation::VIOLATION_MAX;
use crate::cluster::Cluster;
use crate::index::CombinationId;
use crate::problem::ProblemBuilder;

/// Decisions of the published policy classes for random arrivals and completions.
const RECORDED: &str = include_str!("../../../../tests/fixtures/gavel_heuristics.jsonl");

/// One policy over a sequence of calls.
#[derive(Debug, Deserialize)]
struct Sequence {
    policy: String,
    seed: u64,
    workers: [u32; 3],
    /// (scale factor, steps/s on each of three worker types)
    jobs: Vec<(u32, f64, f64, f64)>,
    /// Active jobs, and the shares that they were given.
    calls: Vec<(Vec<usize>, serde_json::Value)>,
}

/// A problem of jobs `ids`, each a scale factor and steps/s on every type; types are named `a`, `b`, ….
fn problem_of(workers: &[u32], jobs: &[(usize, u32, Vec<f64>)]) -> Problem {
    let names = ["a", "b", "c"];
    let cluster = Cluster::try_new(names.into_iter().zip(workers.iter().copied())).unwrap();
    build(cluster, jobs)
}

fn build(cluster: Cluster, jobs: &[(usize, u32, Vec<f64>)]) -> Problem {
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for (id, scale_factor, throughput) in jobs {
        let active = ActiveJob { scale_factor: *scale_factor, ..ActiveJob::new(JobId::from_index(*id)) };
        builder.job(active, throughput);
    }
    builder.build().unwrap()
}

/// A problem on types `a` and `b` of jobs 0, 1, ….
pub(in crate::policy::heuristic) fn problem(workers: [u32; 2], jobs: &[(u32, [f64; 2])]) -> Problem {
    let jobs: Vec<_> =
        jobs.iter().enumerate().map(|(id, (size, speed))| (id, *size, speed.to_vec())).collect();
    problem_of(&workers, &jobs)
}

/// The worker type on which each job has all of its time: [n].
pub(in crate::policy::heuristic) fn given(decision: &Decision) -> Vec<Option<usize>> {
    let allocation = &decision.allocation;
    let mut given = vec![None; allocation.effective_throughput().len()];
    for (row, combination) in allocation.combinations().enumerate() {
        let whole = allocation.shares().row(row).iter().position(|share| *share > 0.5);
        given[combination.first().index()] = whole;
    }
    given
}

/// Repeats the recorded sequences of a policy, which `make` makes with sequence's seed.
pub(in crate::policy::heuristic) fn recorded_with(policy: &str, make: impl Fn(u64) -> Box<dyn Policy>) {
    let mut n_calls = 0;
    for line in RECORDED.lines() {
        let sequence: Sequence = serde_json::from_str(line).unwrap();
        if sequence.policy != policy {
            continue;
        }
        let mut ours = make(sequence.seed);
        for (call, (active, expected)) in sequence.calls.iter().enumerate() {
            let [v, p, k] = sequence.workers;
            let cluster = Cluster::try_new([("v100", v), ("p100", p), ("k80", k)]).unwrap();
            let job = |id: &usize| {
                let (size, v, p, k) = sequence.jobs[*id];
                (*id, size, vec![v, p, k])
            };
            let problem = build(cluster, &active.iter().map(job).collect::<Vec<_>>());
            let decision = ours.allocate(&problem).unwrap();
            let found = if policy == "isolated" {
                serde_json::json!(shares_in_bits(&decision))
            } else {
                serde_json::json!(given(&decision))
            };
            assert_eq!(&found, expected, "{policy}, seed {}, call {call}", sequence.seed);
            n_calls += 1;
        }
    }
    assert!(n_calls > 20, "{n_calls} calls of {policy}");
}

pub(in crate::policy::heuristic) fn recorded(policy: &str, make: impl Fn() -> Box<dyn Policy>) {
    recorded_with(policy, |_| make());
}

fn shares_in_bits(decision: &Decision) -> Vec<Vec<String>> {
    let allocation = &decision.allocation;
    let bits = |row: CombinationId| {
        allocation.shares().row(row).iter().map(|share| format!("{:016x}", share.to_bits())).collect()
    };
    allocation.combinations().ids().map(bits).collect()
}

#[test]
fn published_decisions_are_those_of_the_published_code() {
    recorded_with(NAME, |seed| Box::new(Fifo::new(Fidelity::Published, seed)));
}

#[test]
fn published_decisions_give_workers_away_twice_and_say_so() {
    let mut fifo = Fifo::new(Fidelity::Published, 0);
    // Only `a` has room for two, but `b` is the last that has any.
    let decision = fifo.allocate(&problem([4, 1], &[(2, [1.0, 1.0])])).unwrap();
    assert_eq!(given(&decision), [Some(1)]);
    assert!(decision.allocation.violation_max() > VIOLATION_MAX);
}

#[test]
fn the_queue_blocks_at_its_head() {
    let mut fifo = Fifo::new(Fidelity::Corrected, 3);
    let jobs = [(1, [1.0, 0.0]), (2, [1.0, 0.0]), (1, [1.0, 0.0])];
    assert_eq!(given(&fifo.allocate(&problem([2, 5], &jobs)).unwrap()), [Some(0), None, None]);
}

#[test]
fn a_running_job_keeps_its_type_and_the_next_takes_what_is_left() {
    for seed in 0..20 {
        let mut fifo = Fifo::new(Fidelity::Corrected, seed);
        let job = |id| (id, 1, vec![1.0, 2.0]);
        let before = given(&fifo.allocate(&problem_of(&[1, 1], &[job(0), job(1), job(2)])).unwrap());
        assert_eq!(before[2], None);
        assert_ne!(before[0], before[1]);
        // Job 0 ends; job 2 inherits its worker, whatever is drawn.
        let after = given(&fifo.allocate(&problem_of(&[1, 1], &[job(1), job(2)])).unwrap());
        assert_eq!(after, [before[1], before[0]]);
    }
}

#[test]
fn types_are_drawn_uniformly_from_those_that_fit() {
    // The middle type has too few workers, so the others share the draws.
    let jobs = [(0, 2, vec![1.0, 1.0, 1.0])];
    let on_first = (0..1000).filter(|seed| {
        let mut fifo = Fifo::new(Fidelity::Corrected, *seed);
        given(&fifo.allocate(&problem_of(&[2, 1, 2], &jobs)).unwrap()) == [Some(0)]
    });
    // Five standard errors of 1,000 draws around 500.
    assert!((420..580).contains(&on_first.count()));
}

#[test]
fn a_restored_queue_goes_on_as_if_never_stopped() {
    for fidelity in [Fidelity::Corrected, Fidelity::Published] {
        let mut fifo = Fifo::new(fidelity, 9);
        let jobs: Vec<_> = (0..12).map(|id| (id, 1, vec![1.0, 2.0, 3.0])).collect();
        fifo.allocate(&problem_of(&[2, 2, 2], &jobs)).unwrap();
        let mut restored = Fifo::new(fidelity, 0);
        let text = fifo.state().to_string();
        restored.restore(&serde_json::from_str(&text).unwrap()).unwrap();
        for ended in 1..9 {
            let problem = problem_of(&[2, 2, 2], &jobs[ended..]);
            let (one, other) = (fifo.allocate(&problem).unwrap(), restored.allocate(&problem).unwrap());
            assert_eq!(one.allocation, other.allocation);
        }
    }
}

#[test]
fn another_policys_state_is_refused() {
    let mut fifo = Fifo::new(Fidelity::Corrected, 9);
    for state in [serde_json::json!(null), serde_json::json!({"running": 3})] {
        assert!(matches!(fifo.restore(&state), Err(PolicyError::State { .. })), "{state}");
    }
    let published = Fifo::new(Fidelity::Published, 9).state();
    assert!(matches!(fifo.restore(&published), Err(PolicyError::State { .. })));
}

#[test]
fn no_jobs_are_no_rows() {
    for fidelity in [Fidelity::Corrected, Fidelity::Published] {
        let decision = Fifo::new(fidelity, 1).allocate(&problem([1, 1], &[])).unwrap();
        assert!(decision.allocation.combinations().is_empty());
    }
}
