//! The records that a store keeps, and for how long.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use apportion::{Job, Seconds};
use apportion_live::core::{How, JobRecord, Outcome, Record};
use apportion_live::protocol::JobNumber;
use apportion_live::store::{Lines, Store};
use serde_json::json;
use tempfile::TempDir;

fn record(number: u64, is_over: bool) -> Record {
    record_of(number, is_over.then_some(0.0))
}

/// A job that ended at this instant; an active job if there is none.
fn record_of(number: u64, ended: Option<f64>) -> Record {
    let program = json!({"command": ["true"]});
    let record = json!({
        "number": number, "job": Job::new("x"), "program": program, "incarnation": 1, "checkpointed": 0.0, "failures": 0,
    });
    let record: JobRecord = serde_json::from_value(record).unwrap();
    let outcome = |at: f64| Outcome { at: Seconds::new(at), how: How::Completed, reason: "done".to_owned() };
    Record::Job(Box::new(JobRecord { outcome: ended.map(outcome), ..record }))
}

fn events(store: &Store) -> Vec<i64> {
    let mut numbers = Vec::new();
    store.lines(Lines::After(0, 1_000), |number, _| numbers.push(number)).unwrap();
    numbers
}

#[test]
fn the_newest_events_are_kept_and_numbers_go_on() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    let (mut store, _) = Store::open(&path).unwrap();
    let event = || Record::Event(Seconds::ZERO, "{}".to_owned());
    store.commit(&(0..30).map(|_| event()).collect::<Vec<_>>()).unwrap();
    store.drop_old(30).unwrap();
    assert_eq!(events(&store).len(), 30);
    store.drop_old(10).unwrap();
    drop(store);
    let (mut store, _) = Store::open(&path).unwrap();
    store.commit(&[event()]).unwrap();
    assert_eq!(events(&store), (21..=31).collect::<Vec<_>>());
}

#[test]
fn jobs_are_dropped_when_nothing_can_ask_for_them_any_more() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    let (mut store, _) = Store::open(&path).unwrap();
    // Job 3 is still active.
    let records: Vec<_> = (0..1_010).map(|number| record(number, number != 3)).collect();
    store.commit(&records).unwrap();
    drop(store);
    let (mut store, before) = Store::open(&path).unwrap();
    store.drop_old(1_000_000).unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let n_jobs: i64 = connection.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
    assert_eq!(n_jobs, 1_001);
    drop(connection);
    let (_, after) = Store::open(&path).unwrap();
    assert_eq!((&after.over, &after.jobs, after.next_job), (&before.over, &before.jobs, 1_010));
    assert_eq!(after.jobs[0].number, JobNumber(3));
}

#[test]
fn the_last_jobs_that_ended_are_kept_whatever_their_numbers() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    let (mut store, _) = Store::open(&path).unwrap();
    // The first jobs end last, and the last one first.
    let records: Vec<_> = (0..1_500).map(|number| record_of(number, Some(2_000.0 - number as f64))).collect();
    store.commit(&records).unwrap();
    store.drop_old(1_000_000).unwrap();
    drop(store);
    for _ in 0..2 {
        let (mut store, stored) = Store::open(&path).unwrap();
        let numbers: Vec<u64> = stored.over.iter().map(|job| job.number.0).collect();
        assert_eq!(numbers, (0..1_000).rev().collect::<Vec<_>>(), "the newest last");
        assert_eq!(stored.next_job, 1_500, "no number is given again");
        store.drop_old(1_000_000).unwrap();
    }
}

#[test]
fn the_clock_goes_on_by_the_node_s() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    let (mut store, _) = Store::open(&path).unwrap();
    assert!(store.node_clock().unwrap().is_none());
    // The wall's clock is set forward by a day meanwhile.
    store.note_clock(Seconds::new(100.0), apportion_live::clock::wall_s() - 86_400.0).unwrap();
    let now = store.node_clock().unwrap().unwrap().now();
    assert!(now >= Seconds::new(100.0) && now < Seconds::new(3_700.0), "{now}");
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute("UPDATE meta SET value = '[100.0, 0.0, \"another\"]' WHERE key = 'node_clock'", [])
        .unwrap();
    drop(connection);
    let (store, _) = Store::open(&path).unwrap();
    assert!(store.node_clock().unwrap().is_none(), "the node has been started since");
}
