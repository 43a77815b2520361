use proptest::prelude::*;

use super::*;
use crate::policy::heuristic::fifo::tests::{problem, recorded};

fn rows(fidelity: Fidelity, workers: [u32; 2], jobs: &[(u32, [f64; 2])]) -> Vec<f64> {
    let decision = Isolated { fidelity }.allocate(&problem(workers, jobs)).unwrap();
    decision.allocation.shares().rows().flatten().copied().collect()
}

#[test]
fn shares_are_an_nth_of_the_cluster() {
    // Of 4 + 2 workers three jobs have 4/3 + 2/3 each: two workers' time, so a single worker is full at
    // 2/3 + 1/3, and four at once get 1/3 + 1/6.
    let expected = [2.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0];
    let jobs = [(1, [1.0, 0.0]), (2, [9.0, 0.1]), (4, [3.0, 2.0])];
    let published = rows(Fidelity::Published, [4, 2], &jobs);
    for (found, expected) in published.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-15, "{found} {expected}");
    }
    // The first cannot run on the second type, which has too few workers for the last.
    let corrected = rows(Fidelity::Corrected, [4, 2], &jobs);
    let kept = [true, false, true, true, true, false];
    for ((found, published), kept) in corrected.iter().zip(&published).zip(kept) {
        assert_eq!(found.to_bits(), if kept { published.to_bits() } else { 0 });
    }
}

#[test]
fn shares_are_those_of_the_published_code_to_the_last_bit() {
    recorded("isolated", || Box::new(Isolated { fidelity: Fidelity::Published }));
}

#[test]
fn no_jobs_are_no_rows() {
    assert!(rows(Fidelity::Corrected, [1, 1], &[]).is_empty());
}

proptest! {
    #[test]
    fn shares_are_always_an_allocation(
        workers in prop::array::uniform2(1_u32..50),
        sizes in prop::collection::vec(1_u32..9, 1..40),
    ) {
        let jobs: Vec<_> = sizes.iter().map(|size| ((*size).min(workers[0]), [1.0, 2.0])).collect();
        for fidelity in [Fidelity::Corrected, Fidelity::Published] {
            // Checked inside.
            let isolated = Isolated { fidelity }.allocate(&problem(workers, &jobs));
            prop_assert!(isolated.is_ok());
            let decision = crate::policy::heuristic::Proportional { fidelity }.allocate(&problem(workers, &jobs));
            prop_assert!(decision.unwrap().allocation.violation_max() < 1e-12);
        }
    }
}
