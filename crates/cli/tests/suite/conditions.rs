//! Simulations in which prices change, things go wrong, or throughputs are not known.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn apportion(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.current_dir(folder).args(arguments).args(["--progress", "never"]);
    command.output().unwrap()
}

#[track_caller]
fn simulate(folder: &Path, more: &[&str]) -> Value {
    let arguments = [&["simulate", "--format", "json"], more].concat();
    let output = apportion(folder, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    summary["wall_seconds"] = Value::Null;
    summary
}

fn events(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn named<'e>(events: &'e [Value], name: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

/// A matrix in which A gains little by the fast workers, B much.
const MATRIX: &str = "\
format: apportion/throughputs-v1
name: two
unit: steps/s
source: {who: nobody}
worker_types: [fast, slow]
rows:
  - {job_type: A, scale_factor: 1, consolidated: [2.0, 1.5]}
  - {job_type: B, scale_factor: 1, consolidated: [1.0, 0.2]}
";

#[test]
fn a_change_of_price_moves_the_job_and_its_cost() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("two.yaml"), MATRIX).unwrap();
    fs::write(at("jobs.csv"), "job_type,total_steps,arrival\nA,18000,0\nB,7920,0\n").unwrap();
    // Steps per dollar of A on fast and B on slow, or the other way: 2/3 + 0.2/1 < 1/3 + 1.5/1, and from two hours
    // on 2/1 + 0.2/2 > 1/1 + 1.5/2.
    fs::write(at("prices.csv"), "time,fast,slow\n0,3,1\n2h,1,2\n").unwrap();
    let policy = "max_sum_throughput_normalized_by_cost_perf";
    let run = [
        "--policy",
        policy,
        "--cluster",
        "fast=1,slow=1",
        "--throughputs",
        "two.yaml",
        "--trace",
        "jobs.csv",
    ];
    let priced =
        [&run[..], &["--prices", "prices.csv", "--events", "events.jsonl", "--save-snapshots", "decisions"]];
    let summary = simulate(folder.path(), &priced.concat());
    let events = events(&at("events.jsonl"));
    assert_eq!(named(&events, "price_change").len(), 2);
    assert_eq!(named(&events, "allocated").len(), 2, "once at the start, once for the price");
    // A: 10,800 steps in two hours on slow, 7,200 in one on fast. B: 7,200 on fast, 720 on slow.
    for slice in named(&events, "slice") {
        let early = slice["start"].as_f64().unwrap() < 7200.0;
        let is_b = slice["jobs"].to_string().contains('1');
        assert_eq!(slice["worker_type"], if early == is_b { "fast" } else { "slow" }, "{slice}");
    }
    assert_eq!(summary["makespan_s"].as_f64(), Some(3.0 * 3600.0));
    let cost = |summary: &Value| summary["cost"].as_f64().unwrap();
    assert!((cost(&summary) - 11.0).abs() < 1e-9, "{}", summary["cost"]);
    let decision = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(at("decisions").join(name)).unwrap()).unwrap()
    };
    assert_eq!(decision("000000.json")["prices"]["fast"], 3.0);
    assert_eq!(decision("000001.json")["prices"]["slow"], 2.0);
    let again = apportion(
        folder.path(),
        &["allocate", "--policy", policy, "--format", "json", "decisions/000001.json"],
    );
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert!(again["allocation"][0]["shares"]["fast"].as_f64().unwrap() > 0.999, "{again}");

    // It is the same without rounds; and where prices do not change, A is on slow to its end.
    let ideal = simulate(folder.path(), &[&run[..], &["--prices", "prices.csv", "--ideal"]].concat());
    assert!((cost(&ideal) - 11.0).abs() < 1e-6, "{}", ideal["cost"]);
    fs::write(at("constant.yaml"), "{fast: 3, slow: 1}").unwrap();
    let constant = simulate(folder.path(), &[&run[..], &["--prices", "constant.yaml", "--ideal"]].concat());
    let expected = 12_000.0 / 3600.0 + 3.0 * 7920.0 / 3600.0;
    assert!((cost(&constant) - expected).abs() < 1e-6, "{}", constant["cost"]);
    fs::write(at("wrong.csv"), "time,fast,slow\n0,3,1\n2h,-1,1\n").unwrap();
    let refused = apportion(folder.path(), &[&["simulate"], &run[..], &["--prices", "wrong.csv"]].concat());
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("wrong.csv:3:4"), "{said}");
}

/// Alone on its worker, the second job ends 6·10⁻¹¹ s after its deadline, by the rounding of its slices' times.
#[test]
fn rounding_makes_no_job_miss_its_deadline() {
    let folder = TempDir::new().unwrap();
    let jobs = "job_type,total_steps,arrival,slo\nA3C,10000,0,1393.5792159386483\nA3C,77777,100000,10838.84106780603\n";
    fs::write(folder.path().join("jobs.csv"), jobs).unwrap();
    let run = ["--policy", "fifo", "--cluster", "v100=1", "--trace", "jobs.csv"];
    let summary = simulate(folder.path(), &run);
    assert_eq!((&summary["slo_violations"], &summary["rho"]["fraction_fair"]), (&0.into(), &1.0.into()));
    fs::write(folder.path().join("jobs.csv"), jobs.replace("10838.8", "10838.7")).unwrap();
    assert_eq!(simulate(folder.path(), &run)["slo_violations"], 1);
}

/// A price that changes 100 s into a round of 360 s, and again 40 s later, holds from then on.
#[test]
fn a_price_that_changes_inside_a_round_is_paid_from_then_on() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("two.yaml"), MATRIX).unwrap();
    fs::write(at("jobs.csv"), "job_type,total_steps,arrival\nA,18000,0\nB,7920,0\n").unwrap();
    fs::write(at("prices.csv"), "time,fast,slow\n0,3,1\n3700,100,2\n3740,1,2\n").unwrap();
    let run = "--policy fifo --cluster fast=1,slow=1 --throughputs two.yaml --trace jobs.csv --prices prices.csv \
               --events events.jsonl";
    let summary = simulate(folder.path(), &run.split_whitespace().collect::<Vec<_>>());
    let mut expected = 0.0;
    for slice in named(&events(&at("events.jsonl")), "slice") {
        let [start, end] = ["start", "end"].map(|name| slice[name].as_f64().unwrap());
        let within = |from: f64, to: f64| (end.min(to) - start.max(from)).max(0.0) / 3600.0;
        let (first, second, last) =
            (within(0.0, 3700.0), within(3700.0, 3740.0), within(3740.0, f64::INFINITY));
        expected += match slice["worker_type"].as_str() {
            Some("fast") => 3.0 * first + 100.0 * second + last,
            _ => first + 2.0 * (second + last),
        };
    }
    let cost = summary["cost"].as_f64().unwrap();
    assert!((cost - expected).abs() < 1e-9 && expected > 10.0, "{cost}, by hand {expected}");
}

#[test]
fn prices_are_an_axis_of_sweeps() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("prices.csv"), "time,worker_type,price\n0,v100,2\n0,k80,1\n30min,v100,4\n").unwrap();
    let sweep = "\
format: apportion/sweep-v1
name: prices
run:
  policy: max_min_fairness_packed
  cluster: {v100: 2, k80: 2}
  workload: {static: 8, duration: 2h}
  profiling: {reference_models: 8}
axes:
  prices: [{v100: 2, k80: 1}, prices.csv]
  fraction: [0.0, 1.0]
";
    fs::write(at("prices.yaml"), sweep).unwrap();
    let ran = apportion(folder.path(), &["sweep", "prices.yaml", "--out", "out", "--jobs", "1"]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let csv = fs::read_to_string(at("out").join("results.csv")).unwrap();
    let mut lines = csv::Reader::from_reader(csv.as_bytes());
    let cost = lines.headers().unwrap().iter().position(|name| name == "cost").unwrap();
    let costs: Vec<f64> = lines.records().map(|row| row.unwrap()[cost].parse().unwrap()).collect();
    assert_eq!(costs.len(), 4);
    assert!(costs[2] > costs[0] && costs[3] > costs[1], "{costs:?}");
}

#[test]
fn everything_that_can_go_wrong_does() {
    let folder = TempDir::new().unwrap();
    let run = [
        "--policy",
        "isolated",
        "--cluster",
        "v100=8",
        "--servers",
        "v100=2",
        "--static",
        "12",
        "--multi-worker",
    ];
    let well = simulate(folder.path(), &run);
    let faults = [
        "--worker-mtbf",
        "20h",
        "--worker-mttr",
        "1h",
        "--job-failure",
        "0.1",
        "--job-attempts",
        "50",
        "--straggling",
        "0.3",
        "--straggling-rounds",
        "10",
        "--noise",
        "0.1",
        "--contention",
        "0.5",
    ];
    let ill = [&run[..], &faults[..], &["--events", "events.jsonl"]].concat();
    let summary = simulate(folder.path(), &ill);
    let events = events(&folder.path().join("events.jsonl"));
    for name in ["worker_down", "worker_up", "failure"] {
        assert!(!named(&events, name).is_empty(), "no {name}");
    }
    assert!(summary["average_jct_s"].as_f64() > well["average_jct_s"].as_f64());
    assert_eq!(summary["spec"]["faults"]["straggling_rounds"], 10);
    assert_eq!(summary, simulate(folder.path(), &ill), "the same seed, the same faults");
    let refused = apportion(folder.path(), &[&["simulate"], &run[..], &["--worker-mtbf", "1h"]].concat());
    assert!(String::from_utf8(refused.stderr).unwrap().contains("--worker-mttr"));
}

/// Two jobs of one step a second on one worker: 700 steps, and 100 from 10 s on.
const ONE: &str = "\
format: apportion/throughputs-v1
name: one
unit: steps/s
source: {who: nobody}
worker_types: [v100]
rows:
  - {job_type: A, scale_factor: 1, consolidated: [1.0]}
";

#[test]
fn what_a_live_cluster_does_is_a_flag_and_a_field() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("one.yaml"), ONE).unwrap();
    fs::write(at("jobs.csv"), "job_type,total_steps,arrival\nA,700,0\nA,100,10\n").unwrap();
    let run = "--policy fifo --cluster v100=1 --throughputs one.yaml --trace jobs.csv";
    let run: Vec<&str> = run.split(' ').collect();
    let jcts = |more: &[&str]| -> Vec<f64> {
        let summary = simulate(folder.path(), &[&run[..], more].concat());
        let jobs = summary["jobs"].as_array().unwrap();
        jobs.iter().map(|job| job["completion_s"].as_f64().unwrap()).collect()
    };
    assert_eq!(jcts(&[]), [700.0, 800.0]);
    let off = ["--look-ahead", "0", "--start-up", "0s", "--stop", "0", "--refill", "never"];
    assert_eq!(simulate(folder.path(), &run), simulate(folder.path(), &[&run[..], &off].concat()));
    // Decided at 660, when the first is not done: the second has the worker from 1080 on.
    assert_eq!(jcts(&["--look-ahead", "60"]), [700.0, 1180.0]);
    // 30 s of start-up each, and nothing stops, because the first is done.
    assert_eq!(jcts(&["--start-up", "30s", "--stop", "20", "--measured"]), [730.0, 860.0]);

    let sweep = "\
format: apportion/sweep-v1
name: ahead
run: {policy: fifo, cluster: {v100: 1}, throughputs: one.yaml, trace: jobs.csv}
axes:
  look_ahead: [0, 1min]
  live.refill: [never, completion]
";
    fs::write(at("ahead.yaml"), sweep).unwrap();
    let ran = apportion(folder.path(), &["sweep", "ahead.yaml", "--out", "out", "--jobs", "1"]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let csv = fs::read_to_string(at("out").join("results.csv")).unwrap();
    let mut lines = csv::Reader::from_reader(csv.as_bytes());
    let column = lines.headers().unwrap().iter().position(|name| name == "average_jct_s").unwrap();
    let found: Vec<f64> = lines.records().map(|row| row.unwrap()[column].parse().unwrap()).collect();
    // Under `fifo` a job that waits has no share, so that no job is refilled.
    assert_eq!(found, [745.0, 745.0, 935.0, 935.0]);
}

#[test]
fn what_a_live_cluster_cannot_do_is_refused_with_its_place() {
    let folder = TempDir::new().unwrap();
    let refused = |arguments: &[&str]| {
        let output = apportion(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stderr).unwrap()
    };
    let run = ["simulate", "--policy", "fifo", "--cluster", "v100=1", "--static", "1"];
    for (flags, expected) in [
        (&["--look-ahead", "360"][..], "--look-ahead: 360 s, expected less than a round of 360 s"),
        (&["--look-ahead=-1"], "`-1` is no time"),
        (&["--stop", "soon"], "`soon` is no time"),
        (&["--start-up", "5min", "--stop", "1min"], "--start-up: 360 s to start up and stop"),
        (&["--refill", "always"], "possible values: never, completion"),
        (&["--ideal", "--refill", "completion"], "--refill: is about rounds, and `ideal` runs without"),
        (&["--ideal", "--job-failure", "0.5"], "--job-failure: happens to leases on workers"),
        (&["--ideal", "--straggling", "0.5"], "--straggling: happens to leases on workers"),
        (&["--ideal", "--contention", "1"], "--contention: happens to leases on workers"),
        (&["--ideal", "--preemption-cost", "9"], "--preemption-cost: happens to leases on workers"),
    ] {
        let said = refused(&[&run[..], flags].concat());
        assert!(said.contains(expected), "{flags:?}: {said}");
    }
    let sweep = |live: &str| {
        let text = format!(
            "format: apportion/sweep-v1\nname: wrong\nrun:\n  cluster: {{v100: 1}}\n  static: 1\n  {live}\n\
             axes: {{policy: [fifo, isolated]}}\n"
        );
        fs::write(folder.path().join("wrong.yaml"), text).unwrap();
        refused(&["sweep", "wrong.yaml", "--out", "out"])
    };
    for (live, expected) in [
        ("live: {look_ahead: 7min}", "wrong.yaml:6:22"),
        ("live: {stop: -1}", "wrong.yaml:6:16"),
        ("refill: always", "wrong.yaml:6:11"),
        ("live: {measure: true}", "measured"),
    ] {
        let said = sweep(live);
        assert!(said.contains(expected), "{live}: {said}");
    }
}

/// Jobs that share a worker end one after the other in a slice, and are recorded in another order, or before the slice.
#[test]
fn jobs_that_share_workers_cost_what_their_run_costs() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("prices.yaml"), "{v100: 3, p100: 1}").unwrap();
    for look_ahead in ["0", "30"] {
        let run = "--policy max_min_fairness_packed --cluster v100=1,p100=1 --static 6 --duration 500 --seed 1 --prices prices.yaml \
                   --look-ahead";
        let run: Vec<&str> = run.split(' ').filter(|word| !word.is_empty()).chain([look_ahead]).collect();
        let summary = simulate(folder.path(), &run);
        let jobs = summary["jobs"].as_array().unwrap();
        let of_jobs: f64 = jobs.iter().map(|job| job["cost"].as_f64().unwrap()).sum();
        let of_run = summary["cost"].as_f64().unwrap();
        assert!((of_jobs - of_run).abs() < 1e-9, "{of_jobs} and {of_run}, decided {look_ahead} s ahead");
    }
}
