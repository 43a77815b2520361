//! Records that are damaged: they are set aside, and the scheduler goes on; or it is refused, with the remedy.

use std::fs;
use std::path::Path;

use apportion::Seconds;
use apportion_live::core::Record;
use apportion_live::store::{Lines, Store};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::served::{Served, driver, form};

/// The lines of the event log, by number, without the header.
fn lines(served: &Served, query: &str) -> Vec<String> {
    let request =
        format!("GET /v1/events?{query} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", served.address);
    let (status, _, body) = served.raw(request.as_bytes());
    assert_eq!(status, 200, "{body}");
    body.lines().map(str::to_owned).collect()
}

fn warnings(served: &Served) -> Vec<String> {
    let notes = served.get("/v1/notes");
    let warnings = notes.as_array().unwrap().iter().filter(|note| note["is_warning"] == true);
    warnings.map(|note| note["text"].as_str().unwrap().to_owned()).collect()
}

/// The records that were set aside, by table and key.
fn aside(folder: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(folder.join("set-aside.jsonl")).unwrap();
    let of = |line: &str| {
        let copy: Value = serde_json::from_str(line).unwrap();
        assert!(copy["document"].is_string() || copy["hex"].is_string(), "{copy}");
        (copy["table"].as_str().unwrap().to_owned(), copy["key"].as_str().unwrap().to_owned())
    };
    text.lines().map(of).collect()
}

fn damage(folder: &Path, statements: &str) {
    Connection::open(folder.join("scheduler.sqlite")).unwrap().execute_batch(statements).unwrap();
}

#[test]
fn damaged_lines_are_set_aside_and_the_event_log_goes_on() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    served.submit(&form("one", 5));
    served.submit(&form("two", 5));
    drop(served);
    let lines_of = |statement: &str| format!("INSERT INTO events (at_s, line) VALUES (1.0, {statement});");
    damage(
        folder.path(),
        &[
            lines_of("CAST(x'7bff7d' AS TEXT)"),
            lines_of("CAST(x'00000000' AS TEXT)"),
            lines_of("'{\"event\": \"round_started\", \"round\": 4'"),
            lines_of("'{\"no\": \"event\"}'"),
            lines_of("'{\"event\": \"completion\", \"job\": 77}'"),
            "DELETE FROM events WHERE number = 2;".to_owned(),
            "INSERT INTO notes (at_s, document) VALUES (1.0, CAST(x'ff' AS TEXT));".to_owned(),
        ]
        .concat(),
    );
    let served = Served::start(folder.path(), None);
    let first = lines(&served, "");
    let of_json: Vec<Value> = first.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(of_json.contains(&json!({"no": "event"})), "what is whole JSON is for its readers to judge");
    assert!(
        of_json.contains(&json!({"event": "completion", "job": 77})),
        "lines behind the damaged ones are there"
    );
    let known = served.until("/v1/notes", |notes| notes.to_string().contains("control character"));
    let text = known.to_string();
    for reason in
        ["it is no UTF-8 from byte 2 on", "byte 1 is a control character", "it is not a whole object"]
    {
        assert!(text.contains(reason), "{reason}: {text}");
    }
    assert_eq!(aside(folder.path()).iter().filter(|(table, _)| table == "events").count(), 3);
    // They are out of the way, also for the newest lines, which the page asks for.
    assert!(lines(&served, "last=5000").len() >= first.len() - 1);
    assert_eq!(warnings(&served).iter().filter(|text| text.contains("event log")).count(), 3);
    assert_eq!(served.get("/v1/jobs").as_array().unwrap().len(), 2);
    assert_eq!(served.get("/v1/jobs/1")["name"], "two");
}

#[test]
fn damaged_records_are_set_aside_whatever_their_bytes() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    for name in ["whole", "bytes", "swapped", "no job"] {
        served.submit(&form(name, 5));
    }
    drop(served);
    damage(
        folder.path(),
        "UPDATE jobs SET document = CAST(x'ff00' AS TEXT) WHERE number = 1;
         UPDATE jobs SET document = (SELECT document FROM jobs WHERE number = 0) WHERE number = 2;
         UPDATE jobs SET document = '{\"no\": \"job\"}' WHERE number = 3;
         INSERT INTO servers (name, document) VALUES (CAST(x'61ff' AS TEXT), '{}');
         UPDATE meta SET value = 'many' WHERE key = 'epoch';
         UPDATE meta SET value = '[1e9' WHERE key = 'clock';
         UPDATE meta SET value = CAST(x'ff' AS TEXT) WHERE key = 'node_clock';
         INSERT OR REPLACE INTO meta (key, value) VALUES ('scheduler', CAST(x'ff' AS TEXT));
         INSERT INTO notes (at_s, document) VALUES (5000.0, '{}');",
    );
    let served = Served::start(folder.path(), None);
    let jobs = served.get("/v1/jobs");
    let names: Vec<_> = jobs.as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["whole"]);
    assert!(served.submit(&form("new", 5)) > 3, "no number is used twice");
    let set_aside = aside(folder.path());
    let keys: Vec<_> = set_aside.iter().map(|(table, key)| (table.as_str(), key.as_str())).collect();
    let (jobs, others) = keys.split_at(4);
    assert_eq!(
        (jobs, others),
        (
            &[("meta", "epoch"), ("jobs", "1"), ("jobs", "2"), ("jobs", "3")][..],
            &[("servers", "a\u{fffd}"), ("meta", "scheduler"), ("meta", "clock"), ("meta", "node_clock")][..]
        )
    );
    let said = warnings(&served);
    let is_said =
        |what: &str| said.iter().any(|text| text.contains(what) && text.contains("set-aside.jsonl"));
    for what in [
        "job 1 cannot be read (it is no UTF-8",
        "job 2 cannot be read (it is the record of 0)",
        "job 3",
        "the server a",
    ] {
        assert!(is_said(what), "{what}: {said:?}");
    }
    let now = served.get("/v1/health")["now_s"].as_f64().unwrap();
    assert!(now >= 5000.0, "the clock has gone back to {now}");
}

#[test]
fn a_part_of_the_event_log_that_cannot_be_read_is_passed_over() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    let (mut store, _) = Store::open(&path).unwrap();
    let event = |number: u32| {
        let line = format!("{{\"event\": \"round_started\", \"round\": {number}, \"mark\": \"<{number}>\"}}");
        Record::Event(Seconds::ZERO, line)
    };
    store.commit(&(0..3_000).map(event).collect::<Vec<_>>()).unwrap();
    drop(store);
    // Pages of the file as after a power cut: of lines in the middle, and of the newest lines before them.
    let mut bytes = fs::read(&path).unwrap();
    for mark in ["<700>", "<1500>"] {
        let place = bytes.windows(mark.len()).position(|window| window == mark.as_bytes()).unwrap();
        let page = place / 4096 * 4096;
        bytes[page..page + 4096].fill(0);
    }
    fs::write(&path, bytes).unwrap();
    let (mut store, stored) = Store::open(&path).unwrap();
    assert_eq!(stored.n_rounds, 3_000);
    let mut numbers = Vec::new();
    let passed = store.lines(Lines::After(0, 10_000), |number, _| numbers.push(number)).unwrap();
    let sentences = store.set_aside(&passed).unwrap();
    assert_eq!(sentences.len(), 2, "{sentences:?}");
    assert!(numbers.len() > 2_850 && numbers.is_sorted(), "{} lines", numbers.len());
    assert_eq!((numbers[0], numbers[numbers.len() - 1]), (1, 3_000));
    let gap: Vec<i64> = (1..=3_000).filter(|number| !numbers.contains(number)).collect();
    assert!(gap.contains(&701) && gap.contains(&1_501));
    let names = |number: i64| sentences.iter().any(|text| text.contains(&format!("lines {number} to ")));
    assert!(names(gap[0]), "{} in {sentences:?}", gap[0]);
    let mut parts = Vec::new();
    while let Some(after) = parts.last().copied().or(Some(0)).filter(|after| *after < 3_000) {
        store.lines(Lines::After(after, 100), |number, _| parts.push(number)).unwrap();
    }
    assert_eq!(parts, numbers, "in parts, too");
}

#[test]
fn a_file_that_lacks_a_part_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    drop(driver(&path).unwrap());
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 4096]).unwrap();
    let refused = driver(&path).unwrap_err().to_string();
    assert!(
        refused.contains("scheduler.sqlite: this file is damaged") && refused.contains("put a back-up"),
        "{refused}"
    );
    fs::write(&path, whole).unwrap();
    damage(folder.path(), "DROP TABLE jobs;");
    let refused = driver(&path).unwrap_err().to_string();
    assert!(refused.contains("the table `jobs` of this file is missing: put a back-up"), "{refused}");
}
