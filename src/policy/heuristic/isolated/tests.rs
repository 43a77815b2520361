use proptest::prelude::*;

use super::*;
use crate::policy::heuristic::fifo::tests::{problem, recorded};

fn rows(workers: [u32; 2], jobs: &[(u32, [f64; 2])]) -> Vec<f64> {
    let decision = Isolated.allocate(&problem(workers, jobs)).unwrap();
    decision.allocation.shares().as_slice().to_vec()
}

#[test]
fn shares_are_an_nth_of_the_cluster() {
    // Of 4 + 2 workers three jobs have 4/3 + 2/3 each: two workers' time, so a single worker is full at
    // 2/3 + 1/3, and four at once get 1/3 + 1/6.
    let expected = [2.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0];
    let found = rows([4, 2], &[(1, [1.0, 1.0]), (2, [9.0, 0.1]), (4, [3.0, 2.0])]);
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-15, "{found} {expected}");
    }
}

#[test]
fn shares_are_those_of_the_published_code_to_the_last_bit() {
    recorded("isolated", || Box::new(Isolated));
}

#[test]
fn no_jobs_are_no_rows() {
    assert!(rows([1, 1], &[]).is_empty());
}

proptest! {
    #[test]
    fn shares_are_always_an_allocation(
        workers in prop::array::uniform2(1_u32..50),
        sizes in prop::collection::vec(1_u32..9, 1..40),
    ) {
        let jobs: Vec<_> = sizes.iter().map(|size| ((*size).min(workers[0]), [1.0, 2.0])).collect();
        // Checked inside.
        prop_assert!(Isolated.allocate(&problem(workers, &jobs)).is_ok());
        let decision = crate::policy::heuristic::Proportional.allocate(&problem(workers, &jobs));
        prop_assert!(decision.unwrap().allocation.violation_max() < 1e-12);
    }
}
