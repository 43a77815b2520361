//! Decisions recorded from Gavel's own classes, sequence by sequence, against the published fidelity.

use serde::Deserialize;
use serde_json::Value;

use super::Snapshot;
use crate::index::Id;
use crate::policy::decision::Policy;
use crate::policy::heuristic::allox::{AlloX, AlloXParameters};
use crate::policy::heuristic::fifo_packed::{FifoPacked, FifoPackedParameters};
use crate::policy::heuristic::gandiva::{Gandiva, GandivaParameters};
use crate::spec::Fidelity;

const RECORDED: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/gavel_stateful_heuristics.jsonl"));

/// Calls of one policy object; arrays over v100, p100, k80.
#[derive(Deserialize)]
struct Sequence {
    policy: String,
    seed: u64,
    workers: [u32; 3],
    /// Steps/s alone: [kind of job × type].
    isolated: Vec<[f64; 3]>,
    /// Steps/s of the two jobs: [kind × kind × type].
    colocated: Option<Vec<Vec<[[f64; 2]; 3]>>>,
    alpha: Option<f64>,
    threshold: Option<f64>,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    /// (id, kind, scale factor, steps remaining, elapsed time)
    jobs: Vec<(usize, usize, u32, f64, f64)>,
    /// (members, worker type, share), without shares of 0
    given: Vec<(Vec<usize>, usize, f64)>,
}

impl Sequence {
    fn policy(&self) -> Box<dyn Policy> {
        let fidelity = Fidelity::Published;
        match self.policy.as_str() {
            "allox" => Box::new(AlloX::new(AlloXParameters { alpha: self.alpha.unwrap(), fidelity })),
            "gandiva" => Box::new(Gandiva::new(
                GandivaParameters { fidelity, ..GandivaParameters::default() },
                self.seed,
            )),
            "fifo_packed" => {
                let threshold = self.threshold.unwrap();
                Box::new(FifoPacked::new(FifoPackedParameters { threshold, fidelity }))
            }
            other => panic!("nobody recorded `{other}`"),
        }
    }

    fn snapshot(&self, call: &Call) -> Snapshot {
        let [v100, p100, k80] = self.workers;
        let mut snapshot = Snapshot::new(&format!("v100={v100},p100={p100},k80={k80}"));
        for (position, (id, kind, scale_factor, steps, elapsed)) in call.jobs.iter().enumerate() {
            snapshot.job(*id, *scale_factor, *steps, &self.isolated[*kind]);
            snapshot.elapsed(*id, *elapsed);
            for (other, other_kind, other_scale_factor, ..) in &call.jobs[..position] {
                if let Some(colocated) = &self.colocated
                    && scale_factor == other_scale_factor
                {
                    snapshot.pair(*other, *id, &colocated[*other_kind][*kind]);
                }
            }
        }
        snapshot
    }
}

/// (members, worker type, share) of every share that is not 0, sorted.
fn given(policy: &mut dyn Policy, snapshot: &Snapshot) -> Vec<(Vec<usize>, usize, f64)> {
    let problem = snapshot.problem();
    let allocation = policy.allocate(&problem).unwrap().allocation;
    let mut given = Vec::new();
    for (row, combination) in allocation.combinations().enumerate() {
        let ids: Vec<usize> = combination.members().map(|job| problem.jobs()[job].id.index()).collect();
        let shares = allocation.shares().row(row).iter().copied().enumerate();
        given.extend(
            shares.filter(|(_, share)| *share != 0.0).map(|(kind, share)| (ids.clone(), kind, share)),
        );
    }
    // As Gavel sorts: jobs alone before pairs.
    given.sort_by(|one, other| (one.0.len(), &one.0, one.1).cmp(&(other.0.len(), &other.0, other.1)));
    given
}

#[test]
fn decisions_are_those_of_the_published_code_to_the_last_bit() {
    let mut compared = 0;
    for line in RECORDED.lines() {
        let sequence: Sequence = serde_json::from_str(line).unwrap();
        let mut policy = sequence.policy();
        for (number, call) in sequence.calls.iter().enumerate() {
            let place = format!("{} seed {} call {number}", sequence.policy, sequence.seed);
            assert_eq!(given(&mut *policy, &sequence.snapshot(call)), call.given, "{place}");
            // A checkpoint at every call must not change the next.
            let state: Value = serde_json::from_str(&policy.state().to_string()).unwrap();
            policy = sequence.policy();
            policy.restore(&state).unwrap();
            compared += 1;
        }
    }
    assert!(compared >= 100, "{compared} decisions compared");
}
