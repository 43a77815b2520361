use std::collections::BTreeMap;
use std::fs;

use apportion::metrics::{METRICS, Service};
use apportion::units::Seconds;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::sweep::outcome::Status;

mod damaged;
mod merged;
mod older;

fn study() -> Study {
    let axes = vec![
        ("policy".to_owned(), vec![json!("b"), json!("a, \"quoted\"")]),
        ("rate".to_owned(), vec![json!(1.0), json!(0.4)]),
        ("multi_worker".to_owned(), vec![json!(false)]),
    ];
    Study { name: "tiny".to_owned(), fixed: "{}".to_owned(), axes, seeds: Vec::new(), published: Vec::new() }
}

fn row(policy: usize, rate: usize) -> Row {
    let study = study();
    let mut outcome = Outcome::without_metrics(Status::Done, "");
    outcome.reason = None;
    outcome.metrics[1] = Some(0.1 + policy as f64);
    outcome.jobs = vec![JobRow {
        id: 3,
        job_type: "x".to_owned(),
        scale_factor: 2,
        weight: 1.0,
        arrival: 0.5,
        completion: Some(2.0),
        jct: Some(1.5),
        rho: None,
        service: Some(Service {
            wait: Some(Seconds::new(0.25)),
            service: Seconds::new(1.0),
            preemptions: 2,
            worker_hours: BTreeMap::from([("fast".to_owned(), 0.5), ("slow".to_owned(), 0.0)]),
            cost: None,
            share_received: Some(2.0 / 3.0),
            share_owed: None,
        }),
    }];
    let share = |partner: Option<u64>, share: f64| AllocationRow {
        from: 0.5,
        until: 2.0,
        job: 3,
        partner,
        worker_type: "fast".to_owned(),
        share,
    };
    outcome.allocations = vec![share(None, 1.0 / 3.0), share(Some(4), 0.5)];
    Row {
        digest: format!("{policy}{rate}"),
        values: vec![study.axes[0].1[policy].clone(), study.axes[1].1[rate].clone(), json!(false)],
        outcome,
        version: "0".to_owned(),
        spec: "{}".to_owned(),
        data: "{}".to_owned(),
        seconds: 0.25,
    }
}

fn bare(mut row: Row) -> Row {
    row.outcome.jobs.clear();
    row.outcome.allocations.clear();
    row
}

fn folder_with(rows: &[Row]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut store = Store::open(folder.path(), &study()).unwrap();
    for row in rows {
        store.keep(row).unwrap();
    }
    folder
}

#[test]
fn rows_come_back_whole_and_in_the_order_of_the_grid() {
    let folder = folder_with(&[row(1, 1), row(0, 1), row(0, 0), row(1, 0), row(0, 0)]);
    let store = Store::open_to_read(folder.path()).unwrap();
    assert_eq!(store.rows().unwrap(), [row(0, 0), row(0, 1), row(1, 0), row(1, 1)].map(bare));
    assert_eq!(store.jobs("01").unwrap(), row(0, 1).outcome.jobs);
    assert_eq!(store.allocations("01").unwrap(), row(0, 1).outcome.allocations);
    assert_eq!(store.digests().unwrap().len(), 4);
    assert_eq!(store.study(), &study());
}

#[test]
fn the_csv_does_not_depend_on_the_order_of_writing() {
    let csv = |rows: &[Row]| {
        let folder = folder_with(rows);
        fs::read_to_string(Store::open_to_read(folder.path()).unwrap().write_csv().unwrap()).unwrap()
    };
    let text = csv(&[row(0, 1), row(1, 0)]);
    assert_eq!(text, csv(&[row(1, 0), row(0, 1)]));
    // Columns keep their names and places: new metrics stand behind those of before.
    let before = "policy,rate,multi_worker,status,capacity,n_jobs,average_jct_s,median_jct_s,p95_jct_s,p99_jct_s,\
        average_rho,worst_rho,makespan_s,utilization,rounds,solves,preemptions,cost,slo_violations";
    let (head, lines) = text.split_once('\n').unwrap();
    let new = head.strip_prefix(before).and_then(|rest| rest.strip_suffix(",reason,version,digest,checksum"));
    assert_eq!(new.map(|new| new.matches(',').count()), Some(METRICS.len() - 14), "{head}");
    let others = ",".repeat(METRICS.len());
    let expected = [
        format!("b,0.4,false,done,,,0.1{others}0,01,"),
        format!("\"a, \"\"quoted\"\"\",1,false,done,,,1.1{others}0,10,"),
    ];
    for (line, (expected, row)) in lines.lines().zip(expected.iter().zip([row(0, 1), row(1, 0)])) {
        assert_eq!(line.strip_prefix(expected), Some(checksum::of_run(&study(), &row).as_str()));
    }
}

#[test]
fn of_rows_with_equal_axes_the_last_one_is_shown() {
    let mut newer = row(0, 0);
    newer.digest = "other data".to_owned();
    let folder = folder_with(&[row(0, 0), newer.clone()]);
    let store = Store::open_to_read(folder.path()).unwrap();
    assert_eq!(store.rows().unwrap(), [bare(newer)]);
    assert_eq!(store.digests().unwrap().len(), 2, "nothing is lost");
}

#[test]
fn new_values_of_an_axis_join_the_old_ones() {
    let folder = folder_with(&[row(0, 0), row(1, 1)]);
    let mut wider = study();
    wider.axes[0].1 = vec![json!("c"), json!("b")];
    let store = Store::open(folder.path(), &wider).unwrap();
    assert_eq!(store.study().axes[0].1, [json!("c"), json!("b"), json!("a, \"quoted\"")]);
    assert_eq!(store.rows().unwrap().len(), 2);
}

#[test]
fn a_seed_of_any_size_comes_back() {
    let mut large = study();
    large.axes[1].1 = [0, 1 << 63, u64::MAX].map(|seed: u64| json!(seed)).to_vec();
    let folder = TempDir::new().unwrap();
    let mut store = Store::open(folder.path(), &large).unwrap();
    for (position, seed) in large.axes[1].1.iter().enumerate() {
        let mut row = row(0, 0);
        row.digest = position.to_string();
        row.values[1] = seed.clone();
        store.keep(&row).unwrap();
    }
    let read = Store::open_to_read(folder.path()).unwrap().rows().unwrap();
    assert_eq!(read.into_iter().map(|row| row.values[1].clone()).collect::<Vec<_>>(), large.axes[1].1);
}

#[test]
fn values_that_were_found_stand_in_numeric_order() {
    let mut found = study();
    found.axes[1].1 = vec![json!(1.0)];
    let folder = TempDir::new().unwrap();
    let mut store = Store::open(folder.path(), &found).unwrap();
    for (position, rate) in [16.0, 2.0, 1.0, 10.5].into_iter().enumerate() {
        let mut row = row(0, 0);
        row.digest = position.to_string();
        row.values[1] = json!(rate);
        store.keep(&row).unwrap();
    }
    let rates: Vec<Option<f64>> = store.rows().unwrap().iter().map(|row| row.values[1].as_f64()).collect();
    assert_eq!(rates, [1.0, 2.0, 10.5, 16.0].map(Some));
}

#[test]
fn results_of_another_study_are_refused_and_left_alone() {
    let folder = folder_with(&[row(0, 0)]);
    let before = fs::read(folder.path().join(FILE)).unwrap();
    let mut renamed = study();
    renamed.name = "other".to_owned();
    let mut fixed = study();
    fixed.fixed = r#"{"mechanism":{"round_length":"5min"},"workload":{"jobs":5}}"#.to_owned();
    let mut fewer = study();
    fewer.axes.pop();
    let different = [
        (renamed, "`tiny`, not `other`"),
        (
            fixed,
            "`tiny` with other fixed fields: `jobs` is not given there, 5 now; `round_length` is 360 there, 300 now",
        ),
        (fewer, "varied"),
    ];
    for (study, said) in different {
        let error = Store::open(folder.path(), &study).unwrap_err();
        assert!(matches!(error, StoreError::OtherStudy { .. }), "{error}");
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.help().is_some() && error.is_bad_input());
    }
    assert_eq!(fs::read(folder.path().join(FILE)).unwrap(), before);
}

#[test]
fn an_empty_file_is_a_new_one() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(FILE), b"").unwrap();
    assert!(Store::open(folder.path(), &study()).unwrap().rows().unwrap().is_empty());
}

#[test]
fn two_writers_do_not_meet() {
    let folder = folder_with(&[]);
    let first = Store::open(folder.path(), &study()).unwrap();
    assert!(matches!(Store::open(folder.path(), &study()), Err(StoreError::Locked { .. })));
    Store::open_to_read(folder.path()).unwrap();
    drop(first);
    Store::open(folder.path(), &study()).unwrap();
}

#[test]
fn a_run_takes_the_place_of_one_that_was_given_up_and_of_no_other() {
    let mut failed = row(0, 0);
    failed.outcome.status = Status::Failed;
    let folder = folder_with(&[failed.clone(), row(1, 1)]);
    let mut store = Store::open(folder.path(), &study()).unwrap();
    assert_eq!(store.finished_outcomes().unwrap().into_keys().collect::<Vec<_>>(), ["11"]);
    let mut late = failed.clone();
    late.outcome.status = Status::Timeout;
    store.keep(&late).unwrap();
    assert_eq!(store.rows().unwrap(), [bare(late.clone()), bare(row(1, 1))]);
    store.keep(&row(0, 0)).unwrap();
    for given_up in [failed, late] {
        store.keep(&given_up).unwrap();
    }
    assert_eq!(store.rows().unwrap(), [bare(row(0, 0)), bare(row(1, 1))]);
    assert_eq!(store.jobs("00").unwrap(), row(0, 0).outcome.jobs);
}

#[test]
fn numbers_of_any_kind_come_back_as_they_were_summed() {
    let mut odd = row(0, 0);
    let numbers = [-0.0, 1e300, 5e-324, 1.0 / 3.0, f64::INFINITY, 12_345_678_901_234_567.0, -7.0];
    for (metric, number) in odd.outcome.metrics.iter_mut().zip(numbers) {
        *metric = Some(number);
    }
    odd.outcome.reason = Some("ρ \u{0} \"".to_owned());
    odd.outcome.utilization = vec![("a".to_owned(), 0.1 + 0.2)];
    odd.values = vec![json!({"b": [1, 2]}), json!(1e21), json!(null)];
    let store = folder_with(&[odd]);
    assert_eq!(Store::open_to_read(store.path()).unwrap().rows().unwrap().len(), 1);
}
