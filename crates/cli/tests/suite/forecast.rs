//! Forecasts of a job's start and end, as the command prints them.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const MATRIX: &str = "\
format: apportion/throughputs-v1
name: one
unit: steps/s
source: {who: nobody}
worker_types: [fast]
rows: [{job_type: A, scale_factor: 1, consolidated: [1.0]}]
";

/// One worker and rounds of 100 s: the first job has it until 1000 s, the second from then to 1500 s.
const TWO: &str = "id,job_type,total_steps,arrival\nlong,A,1000,0\nshort,A,500,50\n";

const RULES: &str = "forecast --policy fifo --cluster fast=1 --throughputs one.yaml --trace jobs.csv --round 100 \
                     --reset-interval 100 --progress never --quiet";

fn folder(jobs: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("one.yaml"), MATRIX).unwrap();
    fs::write(folder.path().join("jobs.csv"), jobs).unwrap();
    folder
}

fn forecast(folder: &Path, more: &str, threads: usize) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.current_dir(folder).env("RAYON_NUM_THREADS", threads.to_string());
    command.args(RULES.split_whitespace()).args(more.split_whitespace()).output().unwrap()
}

#[track_caller]
fn json(folder: &Path, more: &str) -> Value {
    let output = forecast(folder, &format!("{more} --format json"), 2);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Jobs of random lengths that arrive at random on one worker.
fn many() -> String {
    let mut stream = apportion::workload::random::SeedStreams::new(9).stream("jobs");
    let mut now = 0.0;
    let line = |position: i32| {
        let line = format!("job-{position},A,{},{now}\n", stream.exponential(1000.0).ceil());
        now += stream.exponential(1200.0);
        line
    };
    let lines: String = (0..120).map(line).collect();
    format!("id,job_type,total_steps,arrival\n{lines}")
}

#[test]
fn two_jobs_are_forecast_exactly_where_nothing_is_unknown() {
    let folder = folder(TWO);
    let certain = "--at 250 --job short --known-durations --arrivals none --forks 2";
    let found = json(folder.path(), certain);
    assert_eq!((&found["format"], &found["started_s"]), (&"apportion/forecast-v1".into(), &Value::Null));
    for (event, time_s) in [("start", 750.0), ("end", 1250.0)] {
        let interval = &found[event]["interval"];
        assert_eq!((&interval["from_s"], &interval["to_s"]), (&time_s.into(), &time_s.into()), "{found}");
        assert_eq!(found[event]["n_happened"], 2);
    }
    let cut = json(folder.path(), &format!("{certain} --limit 800"));
    assert_eq!((&cut["end"]["n_happened"], &cut["end"]["quantiles"][1]["time_s"]), (&0.into(), &Value::Null));
    let table = forecast(folder.path(), &format!("{certain} --limit 800"), 1);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("more than 13.3") && table.contains("it has not started"), "{table}");
    let csv = forecast(folder.path(), &format!("{certain} --format csv"), 1);
    let csv = String::from_utf8(csv.stdout).unwrap();
    assert!(csv.starts_with("event,forks,happened,p10_h,p50_h,p90_h,interval_from_h,"), "{csv}");
    assert_eq!(csv.lines().count(), 3);
    let running = json(folder.path(), "--at 250 --job long --known-durations --arrivals none --forks 1");
    assert_eq!((&running["started_s"], &running["start"]), (&0.0.into(), &Value::Null));
}

#[test]
fn what_has_no_forecast_is_refused_with_what_to_do() {
    let folder = folder(TWO);
    for (more, complaint, help) in [
        ("--at 250 --job shot --known-durations", "no job `shot`", "did you mean `short`?"),
        ("--at 10 --job short", "--at: job `short` arrives 0.01 h after", "needs a time from 0.02h on"),
        ("--at 1d --job short", "--at: job `short` ended after 0.42 h", "needs a time before 0.41h"),
        ("--at 250 --job short", "no job has ended by 0.07 h", "--known-durations"),
        (
            "--at 250 --job short --known-durations --history 60",
            "--history: 60 s say too little of how jobs arrive, expected at least 1000 s",
            "--arrivals none",
        ),
        ("--at 250 --job short --page jobs.csv", "--page and the trace are the same file", "another name"),
        ("--calibrate --page one.yaml", "--page and the throughputs are the same file", "another name"),
        ("--at 250 --job short --forks 0", "invalid value '0'", "--help"),
        ("--at 250 --job short --forks 99999999999", "invalid value '99999999999'", "--help"),
        ("--at 250 --job short --limit 0", "--limit: 0 s, expected a time above 0", ""),
        ("--at 250 --job short --interval 80", "`80` is no part", "--help"),
        ("--at soon --job short", "`soon` is no time", "--help"),
        ("--job short", "--at", "--help"),
        ("--calibrate --at 250", "cannot be used with", "--help"),
        ("--at 250 --job 00", "the trace has no job `00`", ""),
        ("--calibrate --from 2h --to 1h", "--from: 2.00 h is after the last time, 1.00 h", ""),
        ("--calibrate --from 1d --to 2d --every 1h", "no job is active at any of 25 times", "--from"),
        ("--calibrate --every 1e-9", "--every", ""),
        (
            "--calibrate --forks 9",
            "--forks: fewer than 10 say nothing of an interval of 80 %",
            "200 are taken",
        ),
    ] {
        let output = forecast(folder.path(), more, 1);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more}: {said}");
        assert!(said.contains(complaint) && said.contains(help), "{more}: {said}");
    }
    let placing = RULES.replace("fifo", "random_agents");
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.current_dir(folder.path()).args(placing.split_whitespace());
    let output = output.args(["--at", "250", "--job", "short"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("--policy: `random_agents` decides inside") && said.contains("--known-durations"),
        "{said}"
    );
    fs::write(folder.path().join("jobs.csv"), "id,job_type,scale_factor,total_steps,arrival\n").unwrap();
    for more in ["--at 1 --job a", "--calibrate"] {
        let output = forecast(folder.path(), more, 1);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains("--trace: it has no jobs"),
            "{more}: {said}"
        );
    }
    fs::write(folder.path().join("jobs.csv"), "id,job_type,scale_factor,total_steps,arrival\nwide,A,2,9,0\n")
        .unwrap();
    let output = forecast(folder.path(), "--at 0 --job wide", 1);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("scale factor 2"), "{said}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = folder(&many());
    for more in ["--at 21h --job job-60 --forks 40", "--calibrate --forks 20 --jobs-per-point 2"] {
        for format in ["table", "csv", "json"] {
            let more = format!("{more} --format {format}");
            let [one, four] = [1, 4].map(|threads| forecast(folder.path(), &more, threads));
            assert!(one.status.success(), "{}", String::from_utf8_lossy(&one.stderr));
            assert_eq!(one.stdout, four.stdout, "{more}");
            let other = forecast(folder.path(), &format!("{more} --seed 1"), 2);
            assert_ne!(one.stdout, other.stdout, "{more}");
        }
    }
}

/// A page states the command that made it, and takes the place of the results on standard output.
#[test]
fn a_page_goes_where_it_is_sent_and_says_what_made_it() {
    let folder = folder(&many());
    for more in ["--at 21h --job job-60 --forks 20", "--calibrate --forks 10 --jobs-per-point 1"] {
        let output = forecast(folder.path(), &format!("{more} --page -"), 2);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let page = String::from_utf8(output.stdout).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "the page alone");
        let head = page.split("</header>").next().unwrap();
        for words in ["<dt>command</dt><dd>apportion forecast ", "<dt>made on</dt><dd>20", "<dt>version</dt>"]
        {
            assert!(head.contains(words), "{head}\nlacks {words}");
        }
    }
    assert!(!folder.path().join("-").exists());
}

#[test]
fn a_calibration_says_how_often_intervals_held() {
    let folder = folder(&many());
    let found = json(folder.path(), "--calibrate --forks 20 --jobs-per-point 3");
    let levels = found["levels"].as_array().unwrap();
    let of_ends: Vec<&Value> = levels.iter().filter(|row| row["event"] == "end").collect();
    assert_eq!(of_ends.len(), 4, "{found}");
    let part = |row: &Value, name: &str| row[name].as_f64().unwrap();
    for row in levels {
        let all = part(row, "held") + part(row, "before") + part(row, "after");
        assert!((all - 1.0).abs() < 1e-9 && row["n"].as_u64().unwrap() > 0, "{row}");
    }
    for name in ["held", "width_s"] {
        assert!(of_ends.windows(2).all(|pair| part(pair[0], name) <= part(pair[1], name)), "{found}");
    }
    assert!(part(of_ends[0], "width_s") > 0.0, "{found}");
    let table = forecast(folder.path(), "--calibrate --forks 20 --jobs-per-point 3", 2);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("not independent"), "{table}");
}
