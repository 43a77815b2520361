//! Properties of every rule on any problem: it decides, within the allocation polytope, and the same again.

use proptest::prelude::*;

use super::Snapshot;
use crate::index::Id;
use crate::policy::decision::Policy;
use crate::policy::heuristic::allox::{AlloX, AlloXParameters};
use crate::policy::heuristic::fifo_packed::{FifoPacked, FifoPackedParameters};
use crate::policy::heuristic::gandiva::{Gandiva, GandivaParameters};
use crate::policy::heuristic::las::{Las, LasParameters};
use crate::policy::heuristic::sjf::Sjf;
use crate::policy::heuristic::srtf::{ShortestParameters, Srtf};
use crate::policy::heuristic::themis::{Themis, ThemisParameters};
use crate::spec::Fidelity;

/// Every rule in every fidelity; `allox` only if all jobs need one worker.
fn rules(alone: bool) -> Vec<Box<dyn Policy>> {
    let mut rules: Vec<Box<dyn Policy>> = vec![
        Box::new(Srtf::new(ShortestParameters::default())),
        Box::new(Sjf::new(ShortestParameters::default())),
        Box::new(Las::new(LasParameters { thresholds: vec![5.0, 50.0], ..LasParameters::default() })),
        Box::new(Themis::new(ThemisParameters { lease_s: 15.0, fairness: 0.5 }, 4)),
    ];
    for fidelity in [Fidelity::Published, Fidelity::Corrected] {
        let gandiva = GandivaParameters { fidelity, ..GandivaParameters::default() };
        rules.push(Box::new(Gandiva::new(gandiva, 4)));
        let fifo_packed = FifoPackedParameters { fidelity, ..FifoPackedParameters::default() };
        rules.push(Box::new(FifoPacked::new(fifo_packed)));
        if alone {
            let allox = AlloXParameters { fidelity, ..AlloXParameters::default() };
            rules.push(Box::new(AlloX::new(allox)));
        }
    }
    rules
}

/// Snapshots one after the other: jobs come, run and go.
#[derive(Clone, Debug)]
struct History {
    snapshots: Vec<Snapshot>,
    alone: bool,
}

type Arrival = (u32, f64, [u8; 2], u8);

fn history() -> impl Strategy<Value = History> {
    let arrival = (1..4_u32, 1.0..200.0_f64, [0..4_u8, 1..4_u8], 0..11_u8);
    let round = (prop::collection::vec(arrival, 0..5), 0.0..20.0_f64, any::<prop::sample::Index>());
    (prop::collection::vec(round, 1..6), 0..4_u32, 3..6_u32, any::<bool>()).prop_map(
        |(rounds, n_first, n_second, alone)| {
            let mut snapshot = Snapshot::new(&format!("b={n_first},a={n_second}"));
            let mut kinds: Vec<(usize, Arrival)> = Vec::new();
            let mut snapshots = Vec::new();
            let mut next = 0;
            for (arrivals, seconds, leaving) in rounds {
                for arrival in arrivals {
                    let (scale_factor, steps, speed, retained) = arrival;
                    let scale_factor = if alone { 1 } else { scale_factor };
                    snapshot.job(next, scale_factor, steps, &speed.map(f64::from));
                    for (other, (_, _, other_speed, _)) in &kinds {
                        let together = |j: usize| {
                            [other_speed[j], speed[j]]
                                .map(|speed| f64::from(speed) * f64::from(retained) / 10.0)
                        };
                        snapshot.pair(*other, next, &[together(0), together(1)]);
                    }
                    kinds.push((next, arrival));
                    next += 1;
                }
                snapshots.push(snapshot.clone());
                snapshot.pass(seconds, &[(leaving.index(next.max(1)), 0.5)]);
                snapshot.leave(leaving.index(next.max(1)));
            }
            History { snapshots, alone }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_rule_decides_and_decides_the_same_again(history in history()) {
        let mut policies = rules(history.alone);
        let mut again = rules(history.alone);
        for snapshot in &history.snapshots {
            let problem = snapshot.problem();
            for (policy, other) in policies.iter_mut().zip(&mut again) {
                // Checked against the polytope, or the decision would be an error.
                let decision = policy.allocate(&problem);
                prop_assert!(decision.is_ok(), "{}: {decision:?}", policy.name());
                // The other one lives on saved states.
                let allocation = other.allocate(&problem).unwrap().allocation;
                prop_assert_eq!(&decision.unwrap().allocation, &allocation);
                let saved: serde_json::Value = serde_json::from_str(&other.state().to_string()).unwrap();
                other.restore(&saved).unwrap();
            }
        }
    }

    #[test]
    fn no_worker_idles_that_a_job_could_use(history in history()) {
        // The rules that hand out whole workers and skip jobs that do not fit.
        for mut policy in rules(history.alone).into_iter().take(4) {
            for snapshot in &history.snapshots {
                let problem = snapshot.problem();
                let allocation = policy.allocate(&problem).unwrap().allocation;
                let mut free: Vec<u32> = problem.cluster().types().iter().map(|kind| kind.n_workers).collect();
                let mut waiting: Vec<_> = problem.jobs().ids().collect();
                for (row, combination) in allocation.combinations().enumerate() {
                    let kind = allocation.shares().row(row).iter().position(|share| *share > 0.0).unwrap();
                    free[kind] -= problem.jobs()[combination.first()].scale_factor;
                    waiting.retain(|job| *job != combination.first());
                }
                for job in waiting {
                    let row = problem.throughput().row(job);
                    let fits = (0..2).any(|j| row[j] > 0.0 && free[j] >= problem.jobs()[job].scale_factor);
                    prop_assert!(!fits, "{} leaves job {} waiting", policy.name(), job.index());
                }
            }
        }
    }
}
