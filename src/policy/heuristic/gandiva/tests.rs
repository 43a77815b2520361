use super::super::tests::{Snapshot, given};
use super::*;

fn with(fidelity: Fidelity, seed: u64) -> Gandiva {
    Gandiva::new(GandivaParameters { fidelity, ..GandivaParameters::default() }, seed)
}

const BOTH: [Fidelity; 2] = [Fidelity::Published, Fidelity::Corrected];

#[test]
fn while_all_fit_everyone_has_the_isolated_share() {
    let mut snapshot = Snapshot::new("fast=2,slow=2");
    snapshot.job(0, 2, 1.0, &[1.0, 1.0]);
    snapshot.job(1, 1, 1.0, &[1.0, 1.0]);
    for fidelity in BOTH {
        // 2/(2·2) = 0.5 of each type; and 2/2 = 1 of each, halved by the row's sum.
        let expected = ["0: fast 0.5000", "0: slow 0.5000", "1: fast 0.5000", "1: slow 0.5000"];
        assert_eq!(given(&mut with(fidelity, 0), &snapshot), expected);
    }
}

/// Four jobs for two workers, all of whose pairs keep `together` of each type.
fn crowded(together: [[f64; 2]; 2]) -> Snapshot {
    let mut snapshot = Snapshot::new("fast=1,slow=1");
    for job in 0..4 {
        snapshot.job(job, 1, 100.0, &[1.0, 1.0]);
        for other in 0..job {
            snapshot.pair(other, job, &together);
        }
    }
    snapshot
}

#[test]
fn beyond_that_pairs_share_equally_and_last() {
    for fidelity in BOTH {
        let mut policy = with(fidelity, 3);
        let mut snapshot = crowded([[0.6, 0.6], [0.5, 0.5]]);
        let first = given(&mut policy, &snapshot);
        assert_eq!(first.len(), 4, "two pairs on two types: {first:?}");
        assert!(first.iter().all(|line| line.contains('+') && line.ends_with("0.5000")), "{first:?}");
        assert_eq!(given(&mut policy, &snapshot), first, "kept");

        // Job 0 ends: its partner is alone until another job arrives.
        snapshot.leave(0);
        let then = given(&mut policy, &snapshot);
        assert_eq!(then.iter().filter(|line| !line.contains('+')).count(), 2, "{then:?}");
        let kept: Vec<_> = first.iter().filter(|line| then.contains(line)).collect();
        assert_eq!(kept.len(), 2, "the other pair stays: {then:?}");
    }
}

#[test]
fn a_pair_that_gains_nothing_is_broken_at_the_next_call() {
    // N is 0.9 on one type and 0.8 on the other. Published: 0.9 + 0.8 ≥ 1 keeps it; the mean 0.85 breaks it.
    let snapshot = crowded([[0.45, 0.45], [0.4, 0.4]]);
    let survive = |fidelity| {
        let mut policy = with(fidelity, 1);
        given(&mut policy, &snapshot);
        let before = policy.state.pairs.clone();
        policy.break_pairs(&snapshot.problem());
        (before.len(), policy.state.pairs.len())
    };
    assert_eq!(survive(Fidelity::Published), (2, 2));
    assert_eq!(survive(Fidelity::Corrected), (2, 0));

    // On the slow type no pair can run: published breaks it although the fast type gains 2, corrected has a mean
    // of 1 and keeps it, with no time on the slow type.
    let snapshot = crowded([[1.0, 1.0], [0.0, 1.0]]);
    let survive = |fidelity| {
        let mut policy = with(fidelity, 1);
        let lines = given(&mut policy, &snapshot);
        assert!(lines.iter().all(|line| line.contains("fast")), "{lines:?}");
        policy.break_pairs(&snapshot.problem());
        policy.state.pairs.len()
    };
    assert_eq!(survive(Fidelity::Published), 0);
    assert_eq!(survive(Fidelity::Corrected), 2);
}

#[test]
fn scale_factors_do_not_mix() {
    for fidelity in BOTH {
        for seed in 0..20 {
            let mut snapshot = Snapshot::new("fast=2,slow=2");
            for (job, scale_factor) in [1, 2, 1, 2, 1].into_iter().enumerate() {
                snapshot.job(job, scale_factor, 100.0, &[1.0, 1.0]);
                for other in 0..job {
                    snapshot.pair(other, job, &[[0.7, 0.7], [0.7, 0.7]]);
                }
            }
            let mut policy = with(fidelity, seed);
            given(&mut policy, &snapshot);
            let scale_factor = |job: JobId| [1, 2, 1, 2, 1][job.index()];
            for pair in &policy.state.pairs {
                assert_eq!(scale_factor(pair.first()), scale_factor(pair.second().unwrap()));
            }
            if fidelity == Fidelity::Corrected {
                assert_eq!(policy.state.pairs.len(), 2, "one of each scale factor");
            }
        }
    }
}

#[test]
fn a_saved_state_goes_on_with_the_same_draws() {
    for fidelity in BOTH {
        let mut policy = with(fidelity, 9);
        let mut snapshot = crowded([[0.6, 0.6], [0.6, 0.6]]);
        given(&mut policy, &snapshot);
        let saved: serde_json::Value = serde_json::from_str(&policy.state().to_string()).unwrap();
        let mut restored = with(fidelity, 0);
        restored.restore(&saved).unwrap();
        for job in 4..12 {
            snapshot.job(job, 1, 100.0, &[1.0, 1.0]);
            for other in 0..job {
                snapshot.pair(other, job, &[[0.6, 0.6], [0.6, 0.6]]);
            }
            snapshot.leave(job - 4);
            assert_eq!(given(&mut restored, &snapshot), given(&mut policy, &snapshot));
        }
        let other = if fidelity == Fidelity::Published { Fidelity::Corrected } else { Fidelity::Published };
        assert!(with(other, 0).restore(&saved).is_err(), "another fidelity's generator");
    }
}
