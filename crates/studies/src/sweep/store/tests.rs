use std::collections::BTreeMap;
use std::fs;

use apportion::metrics::{METRICS, Service};
use apportion::units::Seconds;
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
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
    let error = refusal(&fs::read(&path).unwrap());
    assert!(matches!(error, StoreError::Version { .. }), "{error}");
}

#[test]
fn another_version_can_be_read_but_not_gone_on_from() {
    let folder = folder_with(&[row(0, 0)]);
    let path = folder.path().join(FILE);
    let change =
        "UPDATE meta SET value = '0.0.1' WHERE key = 'version'; ALTER TABLE runs DROP COLUMN worst_rho;
         ALTER TABLE runs DROP COLUMN checksum; ALTER TABLE runs DROP COLUMN jobs_checksum; PRAGMA user_version = 1";
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
fn columns_without_units_in_their_names_are_read_and_renamed() {
    let folder = folder_with(&[row(0, 0), row(0, 1)]);
    let change = [
        ("runs", &["average_jct", "makespan"][..]),
        ("jobs", &["arrival", "completion", "jct"]),
        ("services", &["wait", "service"]),
    ];
    let change = change.map(|(table, names)| {
        let renamed =
            names.iter().map(|name| format!("ALTER TABLE {table} RENAME COLUMN {name}_s TO {name};"));
        renamed.collect::<String>()
    });
    Connection::open(folder.path().join(FILE)).unwrap().execute_batch(&change.concat()).unwrap();
    let old = Store::open_to_read(folder.path()).unwrap();
    assert_eq!(old.rows().unwrap(), [bare(row(0, 0)), bare(row(0, 1))]);
    assert_eq!(old.jobs("00").unwrap(), row(0, 0).outcome.jobs);
    let mut store = Store::open(folder.path(), &study()).unwrap();
    store.keep(&row(1, 0)).unwrap();
    assert_eq!(store.rows().unwrap(), [bare(row(0, 0)), bare(row(0, 1)), bare(row(1, 0))]);
    let connection = Connection::open(folder.path().join(FILE)).unwrap();
    let named = "SELECT COUNT(average_jct_s), COUNT(makespan_s) FROM runs";
    assert_eq!(connection.query_row(named, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap(), (3, 0));
    for digest in ["00", "01", "10"] {
        assert_eq!(store.jobs(digest).unwrap(), row(0, 0).outcome.jobs);
    }
    let named =
        "SELECT arrival_s, completion_s, jct_s, wait_s, service_s FROM jobs JOIN services USING (digest, id)";
    let times =
        connection.query_row(named, [], |row| (0..5).map(|at| row.get(at)).collect::<Result<Vec<f64>, _>>());
    assert_eq!(times.unwrap(), [0.5, 2.0, 1.5, 0.25, 1.0]);
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
    let other = TempDir::new().unwrap();
    study.name = "tiny".to_owned();
    study.fixed = r#"{"workload":{"jobs":5}}"#.to_owned();
    drop(Store::open(other.path(), &study).unwrap());
    let error = Store::merge(target.path(), &[paths[0].clone(), other.path().to_owned()]).unwrap_err();
    assert!(error.to_string().contains("`jobs` is 5 here, not given there"), "{error}");
    assert!(matches!(Store::merge(target.path(), &[]), Err(StoreError::Missing { .. })));
}

/// The complaint about results in which one statement changed something.
fn complaint_after(statement: &str) -> Option<String> {
    let folder = folder_with(&[row(0, 0), row(1, 0)]);
    let path = folder.path().join(FILE);
    let connection = Connection::open(&path).unwrap();
    assert_eq!(connection.execute(statement, []).unwrap(), 1);
    drop(connection);
    let store = Store::open_to_read(folder.path()).unwrap();
    let read = store
        .rows()
        .and_then(|rows| rows.iter().map(|row| store.jobs(&row.digest)).collect::<Result<Vec<_>, _>>());
    read.err().map(|error| {
        assert!(matches!(error, StoreError::Damaged { .. }) && error.is_bad_input());
        error.to_string()
    })
}

#[test]
fn a_changed_digit_is_found_when_it_is_read() {
    for change in [
        "UPDATE runs SET average_jct_s = 0.2 WHERE digest = '00'",
        "UPDATE runs SET rate = 0.4 WHERE digest = '00'",
        "UPDATE runs SET status = 'failed' WHERE digest = '00'",
        "UPDATE runs SET data = '{\"a\":1}' WHERE digest = '00'",
        "UPDATE runs SET makespan_s = 5 WHERE digest = '00'",
        "INSERT INTO utilization VALUES ('00', 'v100', 0.5)",
    ] {
        let said = complaint_after(change).unwrap_or_else(|| panic!("{change} is believed"));
        assert!(said.contains("is not what its checksum says") && said.contains("digest 00"), "{said}");
    }
    for change in [
        "UPDATE jobs SET jct_s = 1.25 WHERE digest = '00'",
        "UPDATE jobs SET rho = 1 WHERE digest = '00'",
        "DELETE FROM jobs WHERE digest = '00'",
    ] {
        let said = complaint_after(change).unwrap_or_else(|| panic!("{change} is believed"));
        assert!(said.contains("jobs of a run (digest 00)"), "{said}");
    }
    assert_eq!(
        complaint_after("UPDATE runs SET seconds = 9 WHERE digest = '00'"),
        None,
        "not part of the result"
    );
    let old = "UPDATE runs SET checksum = NULL, average_jct_s = 9 WHERE digest = '00'";
    assert_eq!(complaint_after(old), None, "rows of before there were checksums are read as they are");
}

#[test]
fn a_damaged_row_is_named() {
    for (change, expected) in [
        ("UPDATE runs SET status = 'donne' WHERE digest = '10'", "row 2 of the runs (digest 10): "),
        (
            "UPDATE runs SET average_jct_s = 'x' WHERE digest = '10'",
            "row 2 of the runs (digest 10): `average_jct_s` is of type Text",
        ),
        (
            "UPDATE runs SET spec = NULL WHERE digest = '00'",
            "row 1 of the runs (digest 00): `spec` is of type Null",
        ),
        ("UPDATE runs SET spec = CAST(x'e9' AS TEXT) WHERE digest = '00'", "row 1 of the runs (digest 00): "),
        (
            "INSERT INTO utilization VALUES ('00', 'v100', 'x')",
            "of the utilizations, by digest and worker type: ",
        ),
        (
            "UPDATE jobs SET job_type = x'00' WHERE digest = '00'",
            "row 1 of the jobs of the run (digest 00): `job_type` is of type Blob",
        ),
    ] {
        let said = complaint_after(change).unwrap_or_else(|| panic!("{change} is believed"));
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn results_of_the_first_format_are_gone_on_from() {
    let folder = folder_with(&[row(0, 0)]);
    let path = folder.path().join(FILE);
    let change = "ALTER TABLE runs DROP COLUMN checksum; ALTER TABLE runs DROP COLUMN jobs_checksum;
         ALTER TABLE runs DROP COLUMN n_measured; PRAGMA user_version = 1";
    Connection::open(&path).unwrap().execute_batch(change).unwrap();
    assert_eq!(Store::open_to_read(folder.path()).unwrap().rows().unwrap(), [bare(row(0, 0))]);
    let mut store = Store::open(folder.path(), &study()).unwrap();
    store.keep(&row(1, 0)).unwrap();
    assert_eq!(store.rows().unwrap(), [row(0, 0), row(1, 0)].map(bare));
    assert_eq!(store.jobs("00").unwrap(), row(0, 0).outcome.jobs);
}

#[test]
fn allocations_are_added_to_older_results_and_what_was_changed_in_them_is_found() {
    let folder = folder_with(&[row(0, 0), row(1, 0)]);
    let path = folder.path().join(FILE);
    let change = |sql: &str| Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    change("UPDATE allocations SET share = 0.4 WHERE digest = '00' AND partner = 4");
    let store = Store::open_to_read(folder.path()).unwrap();
    let said = store.allocations("00").unwrap_err().to_string();
    assert!(
        said.contains("list of the allocations of a run (digest 00) is not what its checksum says"),
        "{said}"
    );
    assert_eq!(store.allocations("10").unwrap(), row(1, 0).outcome.allocations);
    // A file of before there were allocations.
    change("DROP TABLE allocations; ALTER TABLE runs DROP COLUMN allocations_checksum");
    assert_eq!(Store::open_to_read(folder.path()).unwrap().allocations("10").unwrap(), []);
    let mut store = Store::open(folder.path(), &study()).unwrap();
    store.keep(&row(1, 1)).unwrap();
    assert_eq!(store.allocations("11").unwrap(), row(1, 1).outcome.allocations);
    assert_eq!(store.allocations("10").unwrap(), []);
    assert_eq!(store.rows().unwrap().len(), 3);
    let target = TempDir::new().unwrap();
    let (merged, _) =
        Store::merge(target.path(), &[folder.path().to_owned(), folder_with(&[row(1, 0)]).path().to_owned()])
            .unwrap();
    assert_eq!(merged.allocations("10").unwrap(), row(1, 0).outcome.allocations);
    assert_eq!(merged.jobs("10").unwrap(), row(1, 0).outcome.jobs);
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

#[test]
fn a_merge_of_different_numbers_for_one_run_is_refused() {
    let mut other = row(0, 0);
    other.outcome.metrics[1] = Some(0.2);
    let mut jobs = row(0, 0);
    jobs.outcome.jobs[0].jct = Some(1.25);
    for (other, what) in [(other, "average_jct_s is 0.1 in one and 0.2 in the other"), (jobs, "their jobs")] {
        let inputs = [folder_with(&[row(0, 0)]), folder_with(std::slice::from_ref(&other))];
        let paths: Vec<PathBuf> = inputs.iter().map(|folder| folder.path().to_owned()).collect();
        let target = TempDir::new().unwrap();
        let refused = Store::merge(target.path(), &paths).unwrap_err();
        assert!(refused.is_bad_input() && refused.help().is_some());
        let said = refused.to_string();
        for piece in
            [what, "00", "policy=b rate=1", &paths[0].display().to_string(), &paths[1].display().to_string()]
        {
            assert!(said.contains(piece), "{said}: no {piece}");
        }
        assert!(!target.path().join(FILE).exists(), "nothing is joined");
        // So is what the target holds already.
        let refused = Store::merge(inputs[0].path(), &paths[1..]).unwrap_err();
        assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    }
    let inputs = [folder_with(&[bare(row(0, 0))]), folder_with(&[row(0, 0)])];
    let paths: Vec<PathBuf> = inputs.iter().map(|folder| folder.path().to_owned()).collect();
    let target = TempDir::new().unwrap();
    let (store, _) = Store::merge(target.path(), &paths).unwrap();
    assert_eq!(store.jobs("00").unwrap().len(), 1, "jobs that one part kept are kept");
}

#[test]
fn a_merge_keeps_when_and_by_what_runs_were_made_each_once() {
    let sitting = |command: &str, cores| Sitting {
        date: "2026-01-31".to_owned(),
        cores,
        command: format!("apportion sweep --shard {command}"),
    };
    let parts = [folder_with(&[row(0, 0)]), folder_with(&[row(1, 1)]), folder_with(&[])];
    for (position, folder) in parts.iter().take(2).enumerate() {
        let store = Store::open(folder.path(), &study()).unwrap();
        assert_eq!((store.sittings().unwrap(), store.description().unwrap()), (Vec::new(), None));
        store.describe("two parts").unwrap();
        store.sit_down("apportion sweep", 3).unwrap();
        store.note_sittings(vec![sitting("1/2", 2), sitting(&format!("{}/2", position + 1), 2)]).unwrap();
    }
    let target = TempDir::new().unwrap();
    let paths: Vec<PathBuf> = parts.iter().map(|part| part.path().to_owned()).collect();
    let (store, _) = Store::merge(target.path(), &paths).unwrap();
    assert_eq!(store.description().unwrap().as_deref(), Some("two parts"));
    let mut sittings = store.sittings().unwrap();
    let today = sittings.pop().unwrap();
    assert_eq!((today.cores, today.command.as_str(), today.date.len()), (3, "apportion sweep", 10));
    assert_eq!(sittings, [sitting("1/2", 2), sitting("2/2", 2)]);
}
