use std::sync::Mutex;

use super::*;
use crate::sweep::grid;
use crate::sweep::spec::SweepSpec;
use crate::sweep::store::Absence;
use apportion::spec::Source;

fn points() -> Vec<Point> {
    let text = "format: apportion/sweep-v1\nname: t\nrun: {cluster: {a: 1}, static: 5}\n\
                axes: {policy: [x, y], seed: {from: 0, to: 19, points: 20}}\n";
    grid::points(&SweepSpec::parse(&Source::new("t.yaml", text), false).unwrap())
}

fn runner(interrupt: &AtomicBool, n_threads: usize) -> Runner<'_> {
    Runner { interrupt, n_threads: NonZeroUsize::new(n_threads), progress: &() }
}

fn done(index: usize) -> Outcome {
    let mut outcome = Outcome::without_metrics(Status::Done, "");
    outcome.metrics[0] = Some(index as f64);
    outcome
}

#[test]
fn every_point_is_run_once_on_any_number_of_threads() {
    for n_threads in 1..=4 {
        let interrupt = AtomicBool::new(false);
        let runs = Mutex::new(vec![0; 40]);
        let mut kept = Vec::new();
        let summary = runner(&interrupt, n_threads)
            .run(
                points(),
                |point| {
                    runs.lock().unwrap()[point.index] += 1;
                    Some(done(point.index))
                },
                |point, outcome, _| {
                    assert_eq!(outcome.metrics[0], Some(point.index as f64));
                    kept.push(point.index);
                    Ok(None)
                },
            )
            .unwrap();
        kept.sort_unstable();
        assert_eq!(kept, (0..40).collect::<Vec<_>>());
        assert!(runs.into_inner().unwrap().iter().all(|n| *n == 1));
        assert_eq!((summary.n_ended(), summary.interrupted), (40, false));
    }
}

#[test]
fn a_panic_is_a_failed_run_and_the_others_go_on() {
    let interrupt = AtomicBool::new(false);
    let mut reasons = Vec::new();
    let summary = runner(&interrupt, 2)
        .run(
            points(),
            |Point { index, .. }| {
                assert!(*index != 7, "seven");
                Some(done(*index))
            },
            |_, outcome, _| {
                reasons.extend(outcome.reason.clone().filter(|reason| !reason.is_empty()));
                Ok(None)
            },
        )
        .unwrap();
    assert_eq!((summary.of(Status::Done), summary.of(Status::Failed)), (39, 1));
    assert_eq!(reasons, ["a bug of apportion, please report it: seven"]);
    assert_eq!(summary.to_string(), "39 done, 1 failed");
}

#[test]
fn an_interrupt_keeps_what_has_ended() {
    let interrupt = AtomicBool::new(false);
    let mut kept = 0;
    let summary = runner(&interrupt, 2)
        .run(
            points(),
            |Point { index, .. }| {
                if *index == 10 {
                    interrupt.store(true, Ordering::Relaxed);
                    return None;
                }
                Some(done(*index))
            },
            |_, _, _| {
                kept += 1;
                Ok(None)
            },
        )
        .unwrap();
    assert!(summary.interrupted);
    assert!((9..=12).contains(&kept), "{kept}");
    assert_eq!(summary.n_ended(), kept);
}

#[test]
fn a_store_that_fails_stops_the_sweep() {
    let interrupt = AtomicBool::new(false);
    let mut kept = 0;
    let result = runner(&interrupt, 2).run(
        points(),
        |point| Some(done(point.index)),
        |_, _, _| {
            kept += 1;
            let gone = StoreError::Missing { path: "gone".to_owned(), why: Absence::NotThere };
            if kept == 3 { Err(gone) } else { Ok(None) }
        },
    );
    assert!(matches!(result, Err(StoreError::Missing { .. })));
    assert_eq!(kept, 3);
}

#[test]
fn a_run_may_call_for_another_and_the_last_one_ends_the_sweep() {
    for n_threads in 1..=4 {
        let interrupt = AtomicBool::new(false);
        let feet: Vec<Point> = points().into_iter().take(3).collect();
        let mut kept = [0; 3];
        let summary = runner(&interrupt, n_threads)
            .run(
                feet,
                |point| Some(done(point.index)),
                |point, _, _| {
                    kept[point.index] += 1;
                    Ok((kept[point.index] < 2 * point.index + 1).then(|| point.clone()))
                },
            )
            .unwrap();
        assert_eq!(kept, [1, 3, 5]);
        assert_eq!((summary.n_ended(), summary.n_tasks, summary.interrupted), (9, 9, false));
    }
}

#[test]
fn an_interrupt_ends_a_ladder_too() {
    let interrupt = AtomicBool::new(false);
    let foot = points().into_iter().take(1).collect();
    let mut kept = 0;
    let summary = runner(&interrupt, 3)
        .run(
            foot,
            |point| Some(done(point.index)),
            |point, _, _| {
                kept += 1;
                interrupt.store(kept == 7, Ordering::Relaxed);
                Ok(Some(point.clone()))
            },
        )
        .unwrap();
    assert!(summary.interrupted);
    assert_eq!(summary.n_ended(), 7);
}

#[test]
fn runs_begin_in_the_order_of_falling_rates() {
    let text = "format: apportion/sweep-v1\nname: t\nrun: {cluster: {a: 1}, workload: {jobs: 5}}\n\
                axes: {policy: [x, y], rate: [1.0, 3.0, 2.0]}\n";
    let mut points = grid::points(&SweepSpec::parse(&Source::new("t.yaml", text), false).unwrap());
    busiest_first(&mut points);
    assert_eq!(points.iter().map(|point| point.index).collect::<Vec<_>>(), [1, 4, 2, 5, 0, 3]);
}
