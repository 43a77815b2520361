//! Forecasts of a job's start and end in a running scheduler.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::live::{LOOKS, Served};
use crate::schema_checker::check;

const MATRIX: &str = "\
format: apportion/throughputs-v1
name: one
unit: steps/s
source: {who: nobody}
worker_types: [fast]
rows: [{job_type: A, scale_factor: 1, consolidated: [1.0]}]
";

/// The arguments of a scheduler with one worker and rounds of 2 s. Paths of its documents begin in its own folder.
const ONE: &str =
    "serve --local --cluster fast=1 --throughputs one.yaml --policy fifo --round-length 2 --state=state";

fn served(folder: &Path) -> Served {
    fs::write(folder.join("one.yaml"), MATRIX).unwrap();
    Served::start(folder, &ONE.split(' ').collect::<Vec<_>>())
}

fn submit(served: &Served, folder: &Path, text: &str) {
    served.ask(folder, &text.split(' ').collect::<Vec<_>>());
}

#[track_caller]
fn until(served: &Served, folder: &Path, job: usize, state: &str) {
    let is_so = || {
        let jobs = served.json(folder, &["jobs"]);
        let found = jobs.as_array().unwrap().iter().find(|one| one["job"] == job);
        found.is_some_and(|one| one["state"] == state)
    };
    assert!((0..LOOKS).any(|_| is_so() || {
        thread::sleep(Duration::from_millis(100));
        false
    }));
}

/// The time of a quantile, in s from now.
fn time(times: &Value, position: usize) -> f64 {
    times["quantiles"][position]["time_s"].as_f64().unwrap()
}

#[test]
fn a_job_starts_when_the_one_before_it_has_done_its_steps() {
    let (folder, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (at, there) = (folder.path(), elsewhere.path());
    let served = served(at);
    submit(&served, at, "submit --name first --job-type A --steps 1000 -- sleep 1000");
    until(&served, at, 0, "running");
    thread::sleep(Duration::from_secs(4));
    submit(&served, at, "submit --job-type A --steps 500 -- sleep 1000");
    submit(&served, at, "submit --job-type mine --throughput fast=2 --steps 300 -- sleep 1000");

    let flags = ["--arrivals", "none", "--forks", "3"];
    let when = |job: &str| served.json(there, &[&["when", job][..], &flags].concat());
    let (first, second, third) = (when("0"), when("1"), when("2"));
    // 1000 steps at 1 step/s are 1000 s, less the time that has passed: the job reports no steps, so time counts.
    let first_end = time(&first["end"], 1);
    assert!(first_end > 800.0 && first_end <= 997.0, "4 s at least have been run: {first}");
    assert_eq!(
        (&first["start"], &first["starts"], &first["name"]),
        (&Value::Null, &1.into(), &"first".into())
    );
    assert_eq!(first["n_reckoned"], 1);
    assert!(time(&second["start"], 0) <= first_end + 2.0, "{first} {second}");
    assert!((time(&second["end"], 2) - time(&second["start"], 2) - 500.0).abs() <= 2.0, "{second}");
    assert!(
        (time(&third["end"], 1) - time(&third["start"], 1) - 150.0).abs() <= 2.0,
        "its own speed counts: {third}"
    );
    assert!(time(&third["start"], 1) > 1200.0, "it is the last: {third}");
    assert_eq!(second["assumed"]["n_active"], 3);
    let schema: Value = serde_json::from_str(&served.ask(there, &["schema", "when"])).unwrap();
    for document in [&first, &second] {
        assert_eq!(check(&schema, document), Ok(()));
    }

    // Under another policy it shares the worker at once.
    let shared = served.json(there, &[&["when", "1", "--policy", "max_min_fairness"][..], &flags].concat());
    assert!(time(&shared["start"], 1) < 100.0 && shared["policy"] == "max_min_fairness", "{shared}");

    let said = served.ask(there, &[&["when", "1"][..], &flags].concat());
    for words in [
        "min from then",
        "Job 1 was submitted",
        "has not started",
        "fifo decides",
        "Active jobs take the steps that they were submitted with.",
        "1 active job reports no steps",
        "No job arrives any more.",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(
        served
            .refused(there, &["when", "1", "--draw-durations"])
            .contains("no job of this scheduler is over")
    );
    let said = served.refused(there, &["when", "1", "--policy", "random_cells"]);
    assert!(
        said.contains("--policy: the scheduler's policy gives shares, and this one places jobs itself"),
        "{said}"
    );
    served.ask(at, &["cancel", "0"]);
    until(&served, at, 0, "cancelled");
    assert!(served.refused(there, &["when", "0"]).contains("job 0 is over: it was cancelled"));
    assert!(served.refused(there, &["when", "7"]).contains("there is no job 7: the last is 2"));
    assert!(served.refused(there, &["when", "first"]).contains("`first` is no number of a job"));
    // The steps of the next job are drawn from those of the cancelled one, which ran little.
    let drawn = served.json(there, &["when", "2", "--draw-durations", "--forks", "20"]);
    assert_eq!(drawn["assumed"]["drawn_from"]["n_ended"], 1);
    fs::remove_file(at.join("one.yaml")).unwrap();
    let said = served.refused(there, &["when", "1"]);
    assert!(said.contains("one.yaml") && said.contains("--throughputs"), "{said}");
}

#[test]
fn a_job_that_has_run_as_long_as_its_steps_take_ends_nobody_knows_when() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let served = served(at);
    submit(&served, at, "submit --job-type A --steps 1 -- sleep 1000");
    until(&served, at, 0, "running");
    thread::sleep(Duration::from_secs(2));
    let when = served.json(at, &["when", "0", "--forks", "2"]);
    assert_eq!(
        (&when["has_done_its_steps"], &when["assumed"]["blocks"]),
        (&true.into(), &Value::Null),
        "{when}"
    );
    let said = served.ask(at, &["when", "0", "--forks", "2"]);
    // One job has come, some seconds ago: it is not assumed to come again every few seconds.
    for words in
        ["nothing says when it ends", "only, which does not say how more will", "No job arrives any more."]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn nothing_starts_where_no_server_is() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("one.yaml"), MATRIX).unwrap();
    let remote = ONE.replace(" --local", "");
    let served = Served::start(at, &remote.split(' ').collect::<Vec<_>>());
    submit(&served, at, "submit --job-type A --steps 10 -- true");
    // It would wait in every one of a thousand forks of thirty days.
    let said = served.refused(at, &["when", "0"]);
    assert!(
        said.contains("job 0 needs a worker, and no worker type that it can run on has so many"),
        "{said}"
    );
    assert!(served.ask(at, &["why", "0"]).contains("No server that may be given jobs is here."));
}
