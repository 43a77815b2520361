//! Jobs that can be resized: in simulations of a trace, and under `serve`.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::live::{Served, comes_true, command, said_with_2};

const TYPE: &str = "ResNet-50 (batch size 64)";

const TRACE: &str = "\
id,job_type,scale_factor,total_steps,sizes
grows,ResNet-50 (batch size 64),1,20000,1 2
ends,ResNet-50 (batch size 64),2,1000,
";

fn submission<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["submit", "--job-type", TYPE, "--steps", "1000000"], more].concat()
}

#[test]
fn a_job_of_a_trace_grows_when_another_ends() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("trace.csv"), TRACE).unwrap();
    let simulate = |policy: &str| {
        let words =
            ["simulate", "--trace", "trace.csv", "--cluster", "p100=3", "--events", "events", "--policy"];
        let output = command(at, &[&words[..], &[policy]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let events = fs::read_to_string(at.join("events")).unwrap();
        let lines = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let slices: Vec<Value> =
            lines.filter(|line| line["event"] == "slice" && line["jobs"]["first"] == 0).collect();
        slices.iter().map(|slice| slice["n_workers"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    for policy in ["elastic", "elastic_optimus"] {
        let workers = simulate(policy);
        assert!(workers[0] == 1 && workers[1..].iter().all(|n| *n == 2), "{policy}: {workers:?}");
    }
    let ignored = simulate("max_min_fairness_perf");
    assert!(ignored.iter().all(|n| *n == 1), "{ignored:?}");

    fs::write(at.join("trace.csv"), TRACE.replace("1 2", "1 2 8")).unwrap();
    let large = ["simulate", "--trace", "trace.csv", "--cluster", "p100=3", "--policy", "elastic"];
    let said = said_with_2(command(at, &large).output().unwrap());
    let says = "`ResNet-50 (batch size 64)` at scale factor 8 can run on no worker type of p100=3";
    assert!(said.contains("--trace: ") && said.contains(says), "{said}");
    fs::write(at.join("trace.csv"), TRACE.replace("1 2", "1 3")).unwrap();
    let said = said_with_2(command(at, &large).output().unwrap());
    assert!(said.contains("trace.csv:2:41") && said.contains("no throughputs at scale factor 3"), "{said}");
}

#[test]
fn a_job_that_runs_starts_again_with_as_many_ranks_as_it_is_given() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let serve = ["serve", "--local", "--cluster", "v100=2", "--state=state", "--round-length", "2"];
    let serve = [&serve[..], &["--policy", "elastic_optimus"]].concat();
    let mut served = Served::start(at, &serve);
    let said = served.refused(at, &submission(&["--sizes", "2,1", "--", "true"]));
    assert!(said.contains("size 1 comes after 2, expected sizes in ascending order"), "{said}");
    let said = served.refused(at, &submission(&["--sizes", "1,4", "--", "true"]));
    assert!(said.contains("can run on no worker type of the cluster `v100=2` at scale factor 4"), "{said}");
    served.ask(at, &submission(&["--", "sleep", "900"]));
    served.ask(
        at,
        &submission(&["--sizes", "1,2", "--", "sh", "-c", "echo $RANK of $WORLD_SIZE >> ranks; sleep 900"]),
    );
    let ranks = || {
        let ranks = fs::read_to_string(at.join("ranks")).unwrap_or_default();
        let mut ranks: Vec<String> = ranks.lines().map(str::to_owned).collect();
        ranks.sort();
        ranks
    };
    assert!(comes_true(|| ranks() == ["0 of 1"]), "{:?}", ranks());
    served.ask(at, &["cancel", "0"]);
    assert!(comes_true(|| ranks() == ["0 of 1", "0 of 2", "1 of 2"]), "{:?}", ranks());
    let job = |served: &Served| {
        let jobs = served.json(at, &["jobs"]);
        jobs.as_array().unwrap().iter().find(|job| job["job"] == 1).unwrap().clone()
    };
    let seen = job(&served);
    assert_eq!((&seen["scale_factor"], &seen["sizes"]), (&Value::from(2), &Value::from(vec![1, 2])));
    let why = served.ask(at, &["why", "1"]);
    assert!(why.contains("2, resized from the 1 that it was submitted with"), "{why}");
    assert!(served.ask(at, &["events"]).contains("\"sizes\":[1,2]"));

    assert_eq!(served.end(), Some(0));
    served = Served::start(at, &serve);
    assert!(comes_true(|| job(&served)["state"] == "running" && job(&served)["scale_factor"] == 2));
    assert_eq!(ranks().len(), 3, "it is not started again");
    served.ask(at, &["cancel", "1"]);
    assert!(comes_true(|| job(&served)["state"] == "cancelled"));
}
