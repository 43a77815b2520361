use std::fs;

use apportion::metrics::METRICS;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::sweep::outcome::Status;

fn study() -> Study {
    let axes = vec![
        ("policy".to_owned(), vec![json!("b"), json!("a, \"quoted\"")]),
        ("rate".to_owned(), vec![json!(1.0), json!(0.4)]),
        ("multi_worker".to_owned(), vec![json!(false)]),
    ];
    Study { name: "tiny".to_owned(), fixed: "{}".to_owned(), axes }
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
    }];
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
    let before = "policy,rate,multi_worker,status,capacity,n_jobs,average_jct,median_jct,p95_jct,p99_jct,\
        average_rho,worst_rho,makespan,utilization,rounds,solves,preemptions,cost,slo_violations";
    let (head, lines) = text.split_once('\n').unwrap();
    let new = head.strip_prefix(before).and_then(|rest| rest.strip_suffix(",reason,version,digest"));
    assert_eq!(new.map(|new| new.matches(',').count()), Some(METRICS.len() - 14), "{head}");
    let others = ",".repeat(METRICS.len());
    let expected =
        format!("b,0.4,false,done,,,0.1{others}0,01\n\"a, \"\"quoted\"\"\",1,false,done,,,1.1{others}0,10\n");
    assert_eq!(lines, expected);
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
    fixed.fixed = "{\"seed\":1}".to_owned();
    let mut fewer = study();
    fewer.axes.pop();
    for study in [renamed, fixed, fewer] {
        let error = Store::open(folder.path(), &study).unwrap_err();
        assert!(matches!(error, StoreError::OtherStudy { .. }), "{error}");
        assert!(error.help().is_some() && error.is_bad_input());
    }
    assert_eq!(fs::read(folder.path().join(FILE)).unwrap(), before);
}

/// Opens a folder whose results file has this content, both ways; the file must stay as it was.
fn refusal(content: &[u8]) -> StoreError {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(FILE);
    fs::write(&path, content).unwrap();
    assert!(Store::open_to_read(folder.path()).is_err());
    let error = Store::open(folder.path(), &study()).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), content, "{error}");
    error
}

fn good_file() -> Vec<u8> {
    fs::read(folder_with(&[row(0, 0), row(0, 1), row(1, 0)]).path().join(FILE)).unwrap()
}

#[test]
fn a_foreign_file_is_refused_and_left_alone() {
    for content in [&b"policy,rate\n"[..], b"\0\0\0", &[0xFF; 5000]] {
        assert!(matches!(refusal(content), StoreError::Foreign { .. }));
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(FILE);
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE songs (name TEXT)").unwrap();
    let error = refusal(&fs::read(&path).unwrap());
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

#[test]
fn a_half_written_file_is_refused_at_every_length() {
    let whole = good_file();
    for length in (1..whole.len()).step_by(997).chain([16, 50, 99, 100, 4096, 8192]) {
        let error = refusal(&whole[..length]);
        assert!(matches!(error, StoreError::Damaged { .. }), "{length}: {error}");
    }
}

#[test]
fn a_file_with_flipped_bytes_is_refused_or_read_but_never_changed() {
    let whole = good_file();
    let mut refused = 0;
    for position in (0..whole.len()).step_by(61) {
        let mut broken = whole.clone();
        broken[position] ^= 0xA5;
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(FILE);
        fs::write(&path, &broken).unwrap();
        match Store::open_to_read(folder.path()).and_then(|store| store.rows()) {
            Ok(rows) => assert!(rows.len() <= 3),
            Err(_) => refused += 1,
        }
        assert_eq!(fs::read(&path).unwrap(), broken);
    }
    assert!(refused > 5, "{refused}");
}

#[test]
fn another_format_is_refused() {
    let folder = folder_with(&[row(0, 0)]);
    let path = folder.path().join(FILE);
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 2").unwrap();
    let error = refusal(&fs::read(&path).unwrap());
    assert!(matches!(error, StoreError::Version { .. }), "{error}");
}

#[test]
fn another_version_can_be_read_but_not_gone_on_from() {
    let folder = folder_with(&[row(0, 0)]);
    let path = folder.path().join(FILE);
    let change =
        "UPDATE meta SET value = '0.0.1' WHERE key = 'version'; ALTER TABLE runs DROP COLUMN worst_rho";
    Connection::open(&path).unwrap().execute_batch(change).unwrap();
    let before = fs::read(&path).unwrap();
    let store = Store::open_to_read(folder.path()).unwrap();
    assert_eq!((store.version(), store.rows().unwrap()), ("0.0.1", vec![bare(row(0, 0))]));
    let target = TempDir::new().unwrap();
    for refused in [
        Store::open(folder.path(), &study()).unwrap_err(),
        Store::open_to_resume(folder.path()).unwrap_err(),
        Store::merge(target.path(), &[folder.path().to_owned()]).unwrap_err(),
    ] {
        assert!(matches!(refused, StoreError::Version { .. }), "{refused}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn an_empty_file_is_a_new_one() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(FILE), b"").unwrap();
    assert!(Store::open(folder.path(), &study()).unwrap().rows().unwrap().is_empty());
}

#[test]
fn results_without_anything_in_them_join_as_nothing() {
    let target = TempDir::new().unwrap();
    let (full, void) = (folder_with(&[row(0, 0)]), TempDir::new().unwrap());
    fs::write(void.path().join(FILE), b"").unwrap();
    let paths = [void.path().to_owned(), full.path().to_owned()];
    assert_eq!(Store::merge(target.path(), &paths).unwrap().1.n_rows, 1);
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
fn unfinished_runs_can_be_forgotten() {
    let mut failed = row(0, 0);
    failed.outcome.status = Status::Failed;
    let folder = folder_with(&[failed, row(1, 1)]);
    let mut store = Store::open(folder.path(), &study()).unwrap();
    assert_eq!(store.forget_unfinished().unwrap(), 1);
    assert_eq!(store.rows().unwrap(), [bare(row(1, 1))]);
    assert!(store.jobs("00").unwrap().is_empty());
}

#[test]
fn a_merge_loses_nothing_and_keeps_each_run_once() {
    let mut timeout = row(0, 0);
    timeout.outcome.status = Status::Timeout;
    let inputs = [folder_with(&[timeout, row(0, 1)]), folder_with(&[row(0, 0), row(1, 0)])];
    let paths: Vec<PathBuf> = inputs.iter().map(|folder| folder.path().to_owned()).collect();
    let target = TempDir::new().unwrap();
    for _ in 0..2 {
        let (store, merged) = Store::merge(target.path(), &paths).unwrap();
        assert_eq!(merged, Merged { n_rows: 3, n_duplicates: 1 });
        assert_eq!(store.rows().unwrap(), [row(0, 0), row(0, 1), row(1, 0)].map(bare));
        assert_eq!(store.jobs("10").unwrap().len(), 1);
    }
    let other = TempDir::new().unwrap();
    let mut study = study();
    study.name = "other".to_owned();
    drop(Store::open(other.path(), &study).unwrap());
    let error = Store::merge(target.path(), &[paths[0].clone(), other.path().to_owned()]).unwrap_err();
    assert!(matches!(error, StoreError::OtherStudy { .. }), "{error}");
    assert!(matches!(Store::merge(target.path(), &[]), Err(StoreError::Missing { .. })));
}
