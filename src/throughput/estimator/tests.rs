use proptest::prelude::*;

use super::*;

/// A matrix of `n_jobs` types on two worker types; type i keeps f_i · g_k beside k, which has rank 1 on each worker type.
fn rank_one(n_jobs: u32) -> Arc<Throughputs> {
    let rows: Vec<RowKey> =
        (0..n_jobs).map(|job| RowKey { job_type: format!("t{job}"), scale_factor: 1 }).collect();
    let n = rows.len();
    let kept = |column: usize, row: usize, other: usize| {
        let (row, other) = (row as f64 / n as f64, other as f64 / n as f64);
        if column == 0 {
            (0.4 + 0.6 * row) * (1.0 - 0.5 * other)
        } else {
            (0.9 - 0.5 * row) * (0.6 + 0.4 * other)
        }
    };
    let measured = Measured {
        name: "planted".to_owned(),
        worker_types: vec!["fast".to_owned(), "slow".to_owned()],
        consolidated: (0..n_jobs).map(|job| vec![10.0 + f64::from(job), 4.0]).collect(),
        spread: vec![vec![None; 2]; n],
        colocated: Array3::from_shape_fn((2, n, n), |(column, row, other)| {
            kept(column, row, other) * if column == 0 { 10.0 + row as f64 } else { 4.0 }
        }),
        rows,
    };
    Arc::new(Throughputs::try_new(measured).unwrap())
}

fn estimator(truth: &Arc<Throughputs>, fraction: f64, reference_models: usize, seed: u64) -> Estimator {
    Estimator::try_new(Arc::clone(truth), Profiling::new(fraction, reference_models), seed).unwrap()
}

fn job(index: usize) -> JobId {
    Id::from_index(index)
}

/// The root mean squared error of estimated retention over all pairs of one job a type.
fn error_of(estimator: &mut Estimator, truth: &Throughputs) -> f64 {
    let rows: Vec<RowId> = truth.rows().ids().filter(|row| truth.rows()[*row].scale_factor == 1).collect();
    for (index, row) in rows.iter().enumerate() {
        estimator.arrive(job(index), *row);
    }
    let mut squares = Vec::new();
    for (i, a) in rows.iter().enumerate() {
        for (k, b) in rows.iter().enumerate().filter(|(k, _)| *k != i) {
            for column in truth.worker_types().ids() {
                let believed = estimator.believed_pair((job(i), job(k)), column)[0];
                squares
                    .push(((believed - truth.colocated(*a, *b, column)) / truth.alone(*a, column)).powi(2));
            }
        }
    }
    (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}

#[test]
fn with_everything_profiled_against_everything_beliefs_are_the_truth() {
    let truth = rank_one(10);
    let mut estimator = estimator(&truth, 1.0, 10, 5);
    assert!(error_of(&mut estimator, &truth) < 1e-12);
    for (index, row) in truth.rows().ids().enumerate() {
        assert_eq!(estimator.row_for(job(index)), Some(row), "a type is its own nearest reference");
    }
}

#[test]
fn a_low_rank_truth_needs_only_part_of_the_profile() {
    let truth = rank_one(12);
    let errors: Vec<f64> =
        (0..5).map(|seed| error_of(&mut estimator(&truth, 0.6, 12, seed), &truth)).collect();
    assert!(errors.iter().all(|error| *error < 0.03), "{errors:?}");
}

#[test]
fn estimates_degrade_as_less_is_profiled_and_fewer_references_are_known() {
    let truth = rank_one(12);
    let mean = |fraction: f64, references: usize| {
        (0..40).map(|seed| error_of(&mut estimator(&truth, fraction, references, seed), &truth)).sum::<f64>()
            / 40.0
    };
    let by_fraction = [1.0, 0.5, 0.15, 0.05, 0.0].map(|fraction| mean(fraction, 12));
    assert!(by_fraction.is_sorted(), "{by_fraction:?}");
    assert!(by_fraction[4] > by_fraction[0] + 0.05, "{by_fraction:?}");
    let by_references = [12, 6, 3, 1].map(|references| mean(1.0, references));
    assert!(by_references.is_sorted(), "{by_references:?}");
}

#[test]
fn measurements_halve_the_error_of_a_belief_each_time() {
    let truth = rank_one(10);
    let mut estimator = estimator(&truth, 0.0, 4, 1);
    estimator.arrive(job(3), Id::from_index(0));
    estimator.arrive(job(7), Id::from_index(9));
    let column = Id::from_index(1);
    let before = estimator.believed_pair((job(3), job(7)), column);
    let measured = [before[0] + 0.8, before[1] - 0.4];
    estimator.observe((job(7), job(3)), column, [measured[1], measured[0]]);
    let after = estimator.believed_pair((job(3), job(7)), column);
    assert!(
        (after[0] - before[0] - 0.4).abs() < 1e-12 && (after[1] - before[1] + 0.2).abs() < 1e-12,
        "{after:?}"
    );
    for _ in 0..60 {
        estimator.observe((job(3), job(7)), column, measured);
    }
    let at_last = estimator.believed_pair((job(7), job(3)), column);
    assert!((at_last[1] - measured[0]).abs() < 1e-12, "{at_last:?}");
    estimator.observe((job(3), job(7)), column, [1.0, 0.0]);
    assert!(estimator.believed_pair((job(3), job(7)), column).iter().all(|steps| *steps <= 0.0));
    estimator.leave(job(3));
    assert!(estimator.believed_pair((job(3), job(7)), column).iter().all(|steps| *steps <= 0.0));
    assert_eq!(estimator.row_for(job(3)), None);
}

#[test]
fn jobs_believed_alike_share_a_row_until_they_have_run() {
    let truth = rank_one(8);
    let mut estimator = estimator(&truth, 1.0, 8, 0);
    for (index, row) in [(0, 2), (1, 2), (2, 5), (3, 2)] {
        estimator.arrive(job(index), Id::from_index(row));
    }
    let jobs = [0, 1, 2, 3].map(job);
    let believed = estimator.believed(&jobs);
    assert_eq!(believed.throughputs.rows().len(), 2);
    assert_eq!(believed.rows.iter().map(|row| row.index()).collect::<Vec<_>>(), [0, 0, 1, 0]);
    estimator.observe((job(1), job(2)), Id::from_index(0), [1.0, 2.0]);
    let believed = estimator.believed(&jobs);
    assert_eq!(believed.throughputs.rows().len(), 3, "job 1 apart from 0 and 3, job 2 by itself");
    assert_eq!(believed.rows[0], believed.rows[3]);
    assert_ne!(believed.rows[0], believed.rows[1]);
    for (i, one) in jobs.iter().enumerate() {
        for (k, other) in jobs.iter().enumerate().filter(|(k, _)| *k != i) {
            for column in truth.worker_types().ids() {
                let in_matrix = believed.throughputs.colocated(believed.rows[i], believed.rows[k], column);
                let of_pair = estimator.believed_pair((*one, *other), column)[0];
                assert_eq!(in_matrix.to_bits(), of_pair.to_bits(), "{one} beside {other}");
            }
        }
    }
}

#[test]
fn a_state_survives_json_and_another_matrix_refuses_it() {
    let truth = rank_one(8);
    let mut one = estimator(&truth, 0.4, 6, 11);
    for index in 0..8 {
        one.arrive(job(index), Id::from_index(index));
    }
    one.observe((job(1), job(6)), Id::from_index(1), [0.25, 1.5]);
    let saved = serde_json::to_string(one.state()).unwrap();
    let mut other = estimator(&truth, 0.4, 6, 11);
    other.restore(serde_json::from_str(&saved).unwrap()).unwrap();
    assert_eq!(other.state(), one.state());
    one.arrive(job(8), Id::from_index(3));
    other.arrive(job(8), Id::from_index(3));
    assert_eq!(other.state(), one.state(), "profiles need no saved generator");
    let mut stranger = estimator(&rank_one(4), 0.4, 3, 11);
    assert!(matches!(
        stranger.restore(serde_json::from_str(&saved).unwrap()),
        Err(EstimatorError::State { .. })
    ));
}

#[test]
fn knobs_out_of_range_are_refused() {
    let truth = rank_one(5);
    let message = |profiling| Estimator::try_new(Arc::clone(&truth), profiling, 0).unwrap_err().to_string();
    assert_eq!(message(Profiling::new(1.5, 3)), "fraction is 1.5, expected a fraction, 0 to 1");
    let expected = "reference_models is 6, expected 1 to 5, the job types measured at scale factor 1";
    assert_eq!(message(Profiling::new(0.5, 6)), expected);
    assert!(message(Profiling { smoothing: 0.0, ..Profiling::new(0.5, 3) }).starts_with("smoothing is 0"));
}

#[test]
fn published_columns_agree_when_every_type_is_a_reference() {
    let truth = rank_one(7);
    let with = |columns, references| {
        let profiling = Profiling { columns, ..Profiling::new(1.0, references) };
        let mut estimator = Estimator::try_new(Arc::clone(&truth), profiling, 3).unwrap();
        error_of(&mut estimator, &truth)
    };
    assert!((with(ProfileColumns::Published, 7) - with(ProfileColumns::Corrected, 7)).abs() < 1e-12);
    assert!(
        with(ProfileColumns::Published, 4) > with(ProfileColumns::Corrected, 4),
        "other neighbours are measured"
    );
}

proptest! {
    #[test]
    fn beliefs_are_finite_whatever_is_measured(
        fraction in 0.0..=1.0_f64, references in 1..6_usize, seed in any::<u64>(),
        measured in prop::collection::vec((0..6_usize, 0..6_usize, 0..2_usize, 0.0..100.0_f64, 0.0..100.0_f64), 0..12),
    ) {
        let truth = rank_one(6);
        let mut estimator = estimator(&truth, fraction, references, seed);
        for index in 0..6 {
            estimator.arrive(job(index), Id::from_index(index));
        }
        for (one, other, column, a, b) in measured {
            estimator.observe((job(one), job(other)), Id::from_index(column), [a, b]);
        }
        let believed = estimator.believed(&[0, 1, 2, 3, 4, 5].map(job));
        for row in believed.throughputs.rows().ids() {
            for other in believed.throughputs.rows().ids() {
                let steps = believed.throughputs.colocated(row, other, Id::from_index(0));
                prop_assert!(steps.is_finite() && steps >= 0.0);
            }
        }
    }
}
