//! The outcome of a command, compared with the promises of every command.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use apportion::spec::snapshot::SnapshotDocument;
use apportion::spec::{Snapshot, Source};
use apportion_studies::check::{Decided, Judge, Numbers, Row, Verdict, View};
use serde_json::Value;

use super::{Ran, Step};

/// Files of a folder that a case made before its commands ran, with their bytes.
pub(super) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()) {
        if entry.is_file() {
            let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
            files.insert(name, fs::read(&entry).expect("a file of ours"));
        }
    }
    files
}

/// The inputs that changed, and the files that are not whole; none if there are none.
pub(super) fn lost(folder: &Path, before: &BTreeMap<String, Vec<u8>>) -> Option<String> {
    let after = files(folder);
    for (name, bytes) in before {
        if after.get(name) != Some(bytes) {
            return Some(format!("input {name} is not what it was"));
        }
    }
    for (name, bytes) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
        let text = String::from_utf8_lossy(bytes);
        let whole = match name.rsplit('.').next().unwrap_or_default() {
            "partial" => false,
            "json" => serde_json::from_str::<Value>(&text).is_ok(),
            "jsonl" => text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()),
            "html" => text.trim_end().ends_with("</html>"),
            "csv" => columns(&text).is_ok(),
            _ => true,
        };
        if !whole {
            return Some(format!("output {name} is not whole"));
        }
    }
    None
}

/// The fault in a command's outcome; none if there is none.
pub(super) fn fault(folder: &Path, step: &Step, ran: &Ran) -> Option<String> {
    if !ran.ended {
        return Some("it does not end".to_owned());
    }
    let Some(code @ (0 | 2 | 3 | 4 | 5)) = ran.code else {
        let said = String::from_utf8_lossy(&ran.stderr);
        return Some(format!("exit code {:?}: {}", ran.code, said.lines().next().unwrap_or_default()));
    };
    let (Ok(stdout), Ok(stderr)) = (str::from_utf8(&ran.stdout), str::from_utf8(&ran.stderr)) else {
        return Some("output that is not UTF-8".to_owned());
    };
    if ["panicked", "broke off", "this is a bug"].iter().any(|word| stderr.contains(word)) {
        return Some(format!("a panic: {}", stderr.lines().next().unwrap_or_default()));
    }
    if code != 0 && !stderr.contains("error: ") {
        return Some(format!("exit code {code} without a word: {stderr:?}"));
    }
    let raw = |text: &str| text.chars().find(|letter| letter.is_control() && !matches!(letter, '\n' | '\t'));
    if let Some(letter) = raw(stderr) {
        return Some(format!("a raw {letter:?} on standard error"));
    }
    let format =
        step.arguments.iter().position(|word| word == "--format").map(|at| step.arguments[at + 1].as_str());
    match format.filter(|_| step.formatted && !stdout.is_empty()) {
        Some("json") => {
            let Ok(answer) = serde_json::from_str::<Value>(stdout) else {
                return Some("standard output is not JSON".to_owned());
            };
            if step.arguments[0] == "allocate" {
                return untrue(folder, step, &answer);
            }
        }
        Some("csv") => return columns(stdout).err(),
        _ => return raw(stdout).map(|letter| format!("a raw {letter:?} on standard output")),
    }
    None
}

/// Checks that every row of CSV is as long as the first.
fn columns(text: &str) -> Result<(), String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().try_for_each(|record| record.map(drop)).map_err(|error| format!("CSV: {error}"))
}

/// The untrue claim in an answer of `allocate`; none if there is none.
fn untrue(folder: &Path, step: &Step, answer: &Value) -> Option<String> {
    let source = Source::load(folder.join(step.arguments.last()?).display().to_string()).ok()?;
    let snapshot = Snapshot::read(&source).ok()?;
    let document = snapshot.document();
    // As published, jobs have time where they do not fit; and throughputs that no snapshot states are not known here.
    let known = document.jobs.iter().all(|job| job.throughput.is_some());
    if !known || step.arguments.iter().any(|word| word == "gavel") {
        return None;
    }
    let mut decided = decided(document, answer)?;
    // A policy file may differ from the policy of its name.
    if step.arguments.iter().any(|word| word == "mine.yaml") {
        "mine".clone_into(&mut decided.policy);
    }
    let faults = Judge::new(document, &["v100".to_owned()], std::slice::from_ref(&decided)).faults();
    if let Some(fault) = faults.first() {
        return Some(format!("{}: {}", fault.policy, fault.what));
    }
    let own = Numbers::of(document, &[]).throughput(&decided.rows, View::Measured);
    for (job, own) in document.jobs.iter().zip(own) {
        let printed = answer["effective_throughput"][job.id.to_string()].as_f64()?;
        if (printed - own).abs() > 1e-9 * printed.abs().max(own.abs()) {
            return Some(format!("job {:?} has {printed} steps/s, its shares make {own}", job.id));
        }
    }
    None
}

fn decided(document: &SnapshotDocument, answer: &Value) -> Option<Decided> {
    let position = |label: &Value| document.jobs.iter().position(|job| serde_json::json!(job.id) == *label);
    let row = |row: &Value| -> Option<Row> {
        let share = |(name, _): (&str, &u64)| row["shares"][name].as_f64();
        Some(Row {
            jobs: row["jobs"].as_array()?.iter().map(position).collect::<Option<_>>()?,
            shares: document.cluster.iter().map(share).collect::<Option<_>>()?,
        })
    };
    let optimal = answer["certificate"]["optimal"].as_bool();
    let verdict = if optimal == Some(true) { Verdict::Certified } else { Verdict::Uncertified };
    let objective = &answer["objective"];
    Some(Decided {
        value: objective["value"].as_f64(),
        bound: objective["bound"].as_f64(),
        gap_relative: objective["gap_relative"].as_f64(),
        maximize: objective["sense"] == "maximize",
        rows: answer["allocation"].as_array()?.iter().map(row).collect::<Option<_>>()?,
        dropped: answer["dropped"].as_array()?.iter().map(position).collect::<Option<_>>()?,
        ..Decided::without(answer["policy"].as_str()?, "default", verdict, "")
    })
}
