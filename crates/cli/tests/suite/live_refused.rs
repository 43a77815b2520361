//! Refusals of the commands of a live scheduler, and their messages.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::live::{Served, comes_true, command, said_with_2};

const LOCAL: [&str; 7] = ["serve", "--local", "--cluster", "v100=1", "--policy", "fifo", "--state=state"];

const SUBMIT: [&str; 7] = ["submit", "--job-type", "x", "--throughput", "v100=3", "--steps", "9"];

#[test]
fn submissions_at_fault_are_refused_with_the_remedy() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let served = Served::start(at, &LOCAL);
    let long = "n".repeat(257);
    let with = |more: &[&'static str]| [&SUBMIT[..], more, &["--", "true"]].concat();
    for (arguments, says) in [
        (with(&["--weight", "inf"]), "`inf` is no weight"),
        (with(&["--scale-factor", "-1"]), "`-1` is no number of workers"),
        (with(&["--scale-factor", "0"]), "`0` is no number of workers"),
        (
            "submit --job-type x --throughput v10O=3 --steps 9 -- true".split(' ').collect(),
            "`v10O`, which the throughputs `osdi20` do not have, expected one of `v100`, `p100`, `k80`. did you mean `v100`?",
        ),
        (
            "submit --job-type x --throughput p100=3 --steps 9 -- true".split(' ').collect(),
            "its throughput names `p100`, and the cluster has 1 of `v100`",
        ),
        (with(&["--slo", "0"]), "the time by which the job ought to be done is 0.0"),
        (with(&["--env", "RANK=9"]), "the variable RANK is given"),
        (with(&["--env", "CUDA_VISIBLE_DEVICES=7"]), "the variable CUDA_VISIBLE_DEVICES is given"),
        (with(&["--env", "APPORTION_JOB=77"]), "the variable APPORTION_JOB is given"),
        (with(&["--user", "a\nb"]), "the job's user has a line break"),
        (with(&["--owner", "a\tb"]), "the job's owner has a line break"),
        (with(&["--key", "a\u{7}b"]), "the job's key has a line break"),
        (with(&["--key", ""]), "it is empty, expected a word"),
        (with(&["--key", " "]), "it is empty, expected a word"),
        (with(&["--name", ""]), "the job's name is empty"),
        (with(&["--directory", "/no/such/folder"]), "`/no/such/folder`, which is no folder of this machine"),
        ([&SUBMIT[..], &["--name", &long, "--", "true"]].concat(), "the job's name has 257 bytes"),
        ("submit --job-type A3C --scale-factor 8 --steps 9 -- true".split(' ').collect(), "throughputs show"),
        ("submit --job-type x --steps 2.5 -- true".split(' ').collect(), "`2.5` is no number of steps"),
        (vec!["submit", "--job-type", "", "--steps", "9", "--", "true"], "the job's type is empty"),
        (
            vec!["submit", "--job-type", "a\nb", "--steps", "9", "--", "true"],
            "the job's type has a line break",
        ),
        (vec!["drain", "v100-0", "--reason", "a\nb"], "the reason has a line break"),
        (vec!["cancel", "abc"], "`abc` is no number of a job"),
        (vec!["why", "-3"], "`-3` is no number of a job"),
    ] {
        let said = served.refused(at, &arguments);
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    assert!(comes_true(|| served.json(at, &["servers"])[0]["is_reachable"] == true));
    assert!(served.ask(at, &["resume", "v100-0"]).contains("v100-0 was not drained"));
    let said = served.refused(at, &["remove", "v100-0", "--off"]);
    assert!(
        said.contains("v100-0 may be there: it was heard of ") && said.contains("end its agent first"),
        "{said}"
    );
}

#[test]
fn the_history_is_json_too_and_knows_when_jobs_started() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let served = Served::start(at, &LOCAL);
    let history = || -> Vec<Value> { serde_json::from_value(served.json(at, &["history"])).unwrap() };
    assert_eq!(history(), Vec::<Value>::new());
    served.ask(at, &[&SUBMIT[..], &["--", "true"]].concat());
    assert!(comes_true(|| history()[0]["state"] == "completed"));
    let row = history().remove(0);
    let (submitted, started) = (row["submitted_s"].as_f64().unwrap(), row["started_s"].as_f64().unwrap());
    assert!(submitted <= started && row["ran_s"].as_f64().unwrap().is_sign_positive(), "{row}");
    assert_eq!((&row["id"], &row["class"], &row["gpu_fraction"]), (&json!("0"), &json!("x"), &Value::Null));
}

#[test]
fn a_scheduler_that_could_not_work_does_not_begin() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let policies = ["perf", "perf_SLOs", "packed_SLOs"];
    for policy in policies.map(|name| format!("max_sum_throughput_normalized_by_cost_{name}")) {
        let arguments = ["serve", "--local", "--cluster=v100=1", "--state=s", "--policy", &policy];
        let said = said_with_2(command(at, &arguments).output().unwrap());
        assert!(said.contains("needs the prices of workers"), "{said}");
    }
    let short = [&LOCAL[..], &["--round-length", "0.5"]].concat();
    let said = said_with_2(command(at, &short).output().unwrap());
    assert!(said.contains("--round-length is 0.5 s, expected 1 s or more"), "{said}");
    assert_eq!(Served::start(at, &LOCAL).end(), Some(0));
    let records = at.join("state/scheduler.sqlite");
    let whole = fs::read(&records).unwrap();
    fs::write(&records, &whole[..whole.len() / 2]).unwrap();
    let said = said_with_2(command(at, &LOCAL).output().unwrap());
    assert!(said.contains("damaged, or a part of it is missing: put a back-up"), "{said}");
}

#[test]
fn records_that_are_missing_beside_what_they_were_of_are_warned_of() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::create_dir_all(at.join("state/checkpoints/0-ab")).unwrap();
    // A file that was cut short to nothing is not begun anew without a word.
    let records = at.join("state/scheduler.sqlite");
    fs::write(&records, "").unwrap();
    let said = said_with_2(command(at, &LOCAL).output().unwrap());
    assert!(
        said.contains("scheduler.sqlite is empty: it was cut short") && said.contains("remove it"),
        "{said}"
    );
    fs::remove_file(&records).unwrap();
    let served = Served::start(at, &LOCAL);
    let said = served.said_before();
    assert!(
        said.contains("has no records in scheduler.sqlite, and has checkpoints/ of an earlier state"),
        "{said}"
    );
    // The second scheduler reports at once what it waits for.
    let more = ["--listen", "127.0.0.1:0"];
    let said = said_with_2(command(at, &[&LOCAL[..], &more].concat()).output().unwrap());
    assert!(said.contains("it is given 5 s to end"), "{said}");
    assert!(said.contains("another scheduler uses this state"), "{said}");
}

#[test]
fn a_disk_that_refuses_is_said_beside_what_is_asked() {
    let folder = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // A scheduler without servers, and a full disk.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = String::new();
            let mut reader = BufReader::new(&stream);
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).unwrap();
            }
            let (status, body) = if head.contains("/v1/health") {
                ("503 no", "{\"disk\": \"it is full\"}")
            } else {
                ("200 yes", "[]")
            };
            let length = body.len();
            let rest = "x-apportion-version: 1\r\nConnection: close";
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{rest}\r\n\r\n{body}").unwrap();
        }
    });
    for asked in ["servers", "jobs", "history"] {
        let output = command(folder.path(), &[asked]).env("APPORTION_SCHEDULER", &url).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && said.contains("disk refuses") && said.contains("it is full"),
            "{said}"
        );
    }
}

#[test]
fn a_speed_on_a_type_that_the_cluster_lacks_is_warned_of() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let served = Served::start(at, &LOCAL);
    let submit = "submit --job-type x --throughput v100=3,p100=2 --steps 9 -- true";
    let answer = served.json(at, &submit.split(' ').collect::<Vec<_>>());
    let warning = answer["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("`p100` is not in this cluster"), "{answer}");
}
