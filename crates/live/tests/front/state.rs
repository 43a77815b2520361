//! The state on disk: of one scheduler at a time, of one version, there after a restart, on a disk that refuses.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use apportion::Seconds;
use apportion_live::clock::wall_s;
use apportion_live::core::{Note, Record};
use apportion_live::driver::StartError;
use apportion_live::store::{Store, StoreError};
use serde_json::Value;
use tempfile::TempDir;

use crate::served::{PATIENCE, Served, driver, form};

#[test]
fn two_schedulers_do_not_share_their_state() {
    let folder = TempDir::new().unwrap();
    let _served = Served::start(folder.path(), None);
    let second = driver(&folder.path().join("scheduler.sqlite"));
    assert!(matches!(second, Err(StartError::Store(StoreError::InUse { .. }))), "{second:?}");
}

#[test]
fn a_state_of_another_version_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    drop(driver(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refused = driver(&path).unwrap_err().to_string();
    assert!(refused.contains("another version (layout 99"), "{refused}");
    fs::write(
        &path,
        "no database, but longer than the head of one, so that it is read as something else".repeat(20),
    )
    .unwrap();
    let refused = driver(&path).unwrap_err().to_string();
    assert!(refused.contains("no SQLite file"), "{refused}");
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    assert_eq!(served.get("/v1/health")["epoch"], 1);
    let (kept, gone) = (served.submit(&form("kept", 5)), served.submit(&form("gone", 5)));
    assert_eq!(served.ask("DELETE", &format!("/v1/jobs/{gone}"), &[], "").0, 200);
    drop(served);
    let served = Served::start(folder.path(), None);
    let health = served.get("/v1/health");
    assert_eq!((health["epoch"].as_u64(), health["disk"].is_null()), (Some(2), true), "{health}");
    let jobs = served.get("/v1/jobs");
    let (over, active): (Vec<_>, Vec<_>) =
        jobs.as_array().unwrap().iter().partition(|job| job["ended_s"].as_f64().is_some());
    let numbers =
        |jobs: Vec<&Value>| -> Vec<_> { jobs.iter().filter_map(|job| job["job"].as_u64()).collect() };
    assert_eq!((numbers(active), numbers(over)), (vec![kept], vec![gone]));
    assert_eq!(served.submit(&form("kept", 5)), kept, "its key is known still");
    assert!(served.submit(&form("new", 5)) > gone, "no number is used twice");
}

#[test]
fn the_clock_never_goes_back_though_the_wall_clock_was_set_back_while_the_node_was_off() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    drop(driver(&path).unwrap());
    let (mut store, _) = Store::open(&path).unwrap();
    store.note_clock(Seconds::new(50.0), wall_s() + 5000.0).unwrap();
    let note = Note { text: "the last one".into(), job: None, server: None, is_warning: false };
    let event = Record::Event(Seconds::new(80.0), "{}".to_owned());
    store.commit(&[event, Record::Note(Seconds::new(90.0), note)]).unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("DELETE FROM meta WHERE key = 'node_clock'", []).unwrap();
    drop(connection);
    let served = Served::start(folder.path(), None);
    let now_s = served.get("/v1/health")["now_s"].as_f64().unwrap();
    assert!(now_s >= 90.0, "{now_s}");
}

/// Makes the records' file refuse jobs, as on a full disk, until a time on the wall, in s since 1970.
fn refuse_jobs_until(path: &Path, until: f64) {
    drop(Store::open(path).unwrap());
    let connection = rusqlite::Connection::open(path).unwrap();
    let trigger = format!(
        "CREATE TRIGGER full BEFORE INSERT ON jobs WHEN unixepoch('subsec') < {until:.3}
         BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    );
    connection.execute_batch(&trigger).unwrap();
}

#[test]
fn a_disk_that_refuses_is_said_with_503_and_nothing_is_acknowledged_before_it_is_well() {
    let folder = TempDir::new().unwrap();
    let until = wall_s() + 3.0;
    refuse_jobs_until(&folder.path().join("scheduler.sqlite"), until);
    let served = Served::start(folder.path(), None);
    assert_eq!(served.ask("GET", "/v1/health", &[], "").0, 200);
    thread::scope(|scope| {
        let submitted = scope.spawn(|| (served.submit(&form("late", 3)), wall_s()));
        let refusal = (0..PATIENCE).find_map(|_| {
            let (status, health) = served.ask("GET", "/v1/health", &[], "");
            thread::park_timeout(Duration::from_millis(20));
            (status == 503).then_some(health)
        });
        let refusal = refusal.unwrap();
        assert!(refusal["disk"].as_str().unwrap().contains("the disk is full"), "{refusal}");
        assert!(
            served.ask("GET", "/metrics", &[], "").1.as_str().unwrap().contains("apportion_disk_refuses 1")
        );
        // Questions are answered; nothing is taken.
        for path in ["/v1/jobs", "/v1/jobs/0", "/v1/servers", "/v1/next"] {
            assert_eq!(served.ask("GET", path, &[], "").0, 200, "{path}");
        }
        let because = served.get("/v1/jobs/0")["because"][0].to_string();
        assert!(because.contains("disk refuses") && because.contains("the disk is full"), "{because}");
        assert_eq!(served.ask("DELETE", "/v1/jobs/0", &[], "").0, 503);
        let (job, at) = submitted.join().unwrap();
        assert_eq!(job, 0);
        assert!(at >= until, "it was acknowledged {} s before it was on disk", until - at);
    });
    assert_eq!(served.until("/v1/health", |_| true)["disk"], Value::Null);
    assert_eq!(served.get("/v1/jobs/0")["name"], "late");
}
