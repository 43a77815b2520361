//! Simulations without progress, and shifted instants.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn apportion(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.current_dir(folder).args(arguments.split_whitespace()).args(["--progress", "never"]);
    command.output().unwrap()
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

const LIVELOCK: &str = "--policy max_min_fairness_perf --cluster v100=1 --static 2 --preemption-cost 360";

#[test]
fn a_simulation_that_gets_nowhere_ends_with_what_it_has() {
    let folder = TempDir::new().unwrap();
    let output = apportion(folder.path(), &format!("simulate {LIVELOCK} --format json"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("given up as livelock: no job has run a step since 0."), "{said}");
    assert!(said.contains("the numbers are of the 0 of 2 measured jobs that are done"), "{said}");
    let result = json(&output);
    assert_eq!(result["status"], "livelock");
    assert!(result["reason"].as_str().unwrap().contains("2 active jobs (0, 1)"), "{result}");
    assert!(result["rounds"].as_u64().unwrap() > 10_000);
    fs::write(folder.path().join("run.json"), &output.stdout).unwrap();
    assert_eq!(apportion(folder.path(), "report run.json --out page.html").status.code(), Some(0));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("given up as livelock") && page.contains("no job has run a step since"), "{page}");
    let table = apportion(folder.path(), &format!("simulate {LIVELOCK}"));
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(
        table.lines().any(|line| line.starts_with("given up as") && line.contains("livelock")),
        "{table}"
    );
    let fine = apportion(folder.path(), "simulate --policy fifo --cluster v100=1 --static 2 --format json");
    assert_eq!((fine.status.code(), &json(&fine)["status"]), (Some(0), &Value::from("done")));
}

#[test]
fn jobs_that_would_run_for_a_century_are_given_up() {
    let folder = TempDir::new().unwrap();
    let slow = "--policy max_min_fairness_perf --cluster v100=1 --static 2 --preemption-cost 359.99999";
    let output = apportion(folder.path(), &format!("simulate {slow} --format json"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let result = json(&output);
    assert_eq!(result["status"], "livelock", "{said}");
    let reason = result["reason"].as_str().unwrap();
    let (_, years) = reason.split_once("no job would end in less than ").unwrap();
    let years: f64 = years.split_once(' ').unwrap().0.parse().unwrap();
    assert!(years > 100.0 && reason.contains("2 active jobs (0, 1)"), "{reason}");
}

#[test]
fn a_clock_that_runs_out_ends_a_simulation() {
    let folder = TempDir::new().unwrap();
    let faults = "--worker-mtbf 1000 --worker-mttr 1e308";
    let output = apportion(
        folder.path(),
        &format!("simulate --policy fifo --cluster v100=1 --static 2 --format json {faults}"),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("given up as unresolved: what comes next is at "), "{said}");
    assert_eq!(json(&output)["status"], "unresolved");
}

#[test]
fn a_sweep_records_what_got_nowhere() {
    let folder = TempDir::new().unwrap();
    let sweep = "format: apportion/sweep-v1\nname: vain\n\
                 run: {cluster: {v100: 1}, static: 2, preemption_cost: 360}\n\
                 axes: {policy: [fifo, max_min_fairness_perf]}\nstop: {rounds: 500}\n";
    fs::write(folder.path().join("vain.yaml"), sweep).unwrap();
    let output = apportion(folder.path(), "sweep vain.yaml --format csv");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let reason = "run max_min_fairness_perf livelock: no job has run a step since 0.";
    assert!(said.contains(reason) && said.contains(" in 501 rounds with "), "{said}");
    let rows = fs::read_to_string(folder.path().join("results/vain/results.csv")).unwrap();
    assert!(rows.lines().any(|line| line.contains(",livelock,")), "{rows}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.lines()
            .next()
            .unwrap()
            .ends_with("n_done,n_saturated,n_failed,n_timeout,n_growing,n_starved,n_livelock,measured_jobs,jobs_given_up,n,n_of"),
        "{text}"
    );

    for (stop, at) in
        [("rounds: 0", "0 rounds, expected at least 1"), ("doublings: 1", "1 doublings, expected 2 to 20")]
    {
        fs::write(folder.path().join("vain.yaml"), sweep.replace("rounds: 500", stop)).unwrap();
        let output = apportion(folder.path(), "sweep vain.yaml");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(at) && said.contains("vain.yaml:5:"), "{said}");
    }
}

#[test]
fn flags_say_when_a_simulation_is_given_up() {
    let folder = TempDir::new().unwrap();
    let of = |arguments: &str| {
        let output = apportion(folder.path(), &format!("simulate {arguments}"));
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = of(&format!("{LIVELOCK} --stop-rounds 20"));
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains(" in 21 rounds with "), "{said}");
    let program = "--policy max_min_fairness_perf --cluster v100=2 --static 3";
    let (code, said) = of(&format!("{program} --time-limit 1e-9"));
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("in round 0") && said.contains("the time for the decision is over"), "{said}");
    assert_eq!(of(&format!("{program} --time-limit 1h")).0, Some(0));
    for (flag, expected) in [
        ("--stop-rounds 0", "0 is not in 1.."),
        ("--stop-doublings 1", "1 is not in 2..=20"),
        ("--time-limit 0", "`0` is no time above 0"),
    ] {
        let (code, said) = of(&format!("{program} {flag}"));
        assert!(code == Some(2) && said.contains(expected), "{said}");
    }
}

#[test]
fn a_sweep_gives_up_runs_whose_decisions_take_too_long() {
    let folder = TempDir::new().unwrap();
    let sweep = "format: apportion/sweep-v1\nname: slow\nrun: {cluster: {v100: 1}, static: 2}\n\
                 axes: {policy: [fifo, max_min_fairness_perf, learned_values]}\nstop: {decision: 1e-9}\n";
    fs::write(folder.path().join("slow.yaml"), sweep).unwrap();
    let output = apportion(folder.path(), "sweep slow.yaml");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let rows = fs::read_to_string(folder.path().join("results/slow/results.csv")).unwrap();
    assert_eq!(rows.lines().filter(|line| line.contains(",timeout,")).count(), 2, "{rows}");
    let limit = "timeout: the wall time of 0.000000001 s for a decision (`stop: decision`) is over, in a decision after 0.00";
    assert!(said.contains(limit), "{said}");
    for policy in ["fifo", "max_min_fairness_perf"] {
        let of_run =
            sweep.replace("decision: 1e-9", "wall: 1e-9").replace("name: slow", &format!("name: {policy}"));
        fs::write(folder.path().join("wall.yaml"), of_run).unwrap();
        let output = apportion(folder.path(), &format!("sweep wall.yaml --only policy={policy}"));
        let said = String::from_utf8_lossy(&output.stderr);
        let limit = "timeout: the wall time of 0.000000001 s (`stop: wall`) is over";
        assert!(output.status.code() == Some(4) && said.contains(limit), "{said}");
    }
    // The selected runs are made again, and the others stay.
    fs::write(folder.path().join("slow.yaml"), sweep.replace("1e-9", "1h")).unwrap();
    let output = apportion(folder.path(), "sweep slow.yaml --retry --only policy=max_min_fairness_perf");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let retried = fs::read_to_string(folder.path().join("results/slow/results.csv")).unwrap();
    let with = |text: &str| retried.lines().filter(|line| line.contains(text)).count();
    assert_eq!((retried.lines().count(), with(",timeout,")), (rows.lines().count(), 1), "{retried}");
    assert_eq!(
        retried.lines().filter(|line| line.contains("max_min_fairness_perf,done,")).count(),
        1,
        "{retried}"
    );
    fs::write(folder.path().join("slow.yaml"), sweep.replace("1e-9", "0s")).unwrap();
    let output = apportion(folder.path(), "sweep slow.yaml");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("slow.yaml:5:18"), "{said}");
}

/// A trace of two jobs from an instant on.
fn trace(start: u64) -> String {
    let second = start + 60;
    format!("id,job_type,scale_factor,total_steps,arrival\na,A3C,1,50000,{start}\nb,A3C,1,50000,{second}\n")
}

#[test]
fn a_trace_of_clock_times_gives_the_numbers_of_one_from_0() {
    let folder = TempDir::new().unwrap();
    let result = |start: u64, more: &str| {
        fs::write(folder.path().join("t.csv"), trace(start)).unwrap();
        let prices = format!("time,worker_type,price\n0,v100,1\n{},v100,3\n", start + 3600);
        fs::write(folder.path().join("prices.csv"), prices).unwrap();
        let flags =
            "--policy max_min_fairness_perf --cluster v100=1 --trace t.csv --prices prices.csv --format json";
        let output = apportion(folder.path(), &format!("simulate {flags} {more}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        json(&output)
    };
    for more in ["", "--worker-mtbf 20000 --worker-mttr 600", "--ideal"] {
        let (first, mut later) = (result(0, more), result(1_507_338_729, more));
        assert!(first["utilization"]["all"].as_f64().unwrap() > 0.5, "{first}");
        for (job, same) in
            later["jobs"].as_array_mut().unwrap().iter_mut().zip(first["jobs"].as_array().unwrap())
        {
            for field in ["arrival_s", "completion_s"] {
                let shifted = job[field].as_f64().unwrap() - 1_507_338_729.0;
                assert!((shifted - same[field].as_f64().unwrap()).abs() < 1e-6, "{field}: {job} {same}");
                job[field] = same[field].clone();
            }
        }
        for (name, value) in first.as_object().unwrap() {
            if !["wall_seconds", "digest", "data"].contains(&name.as_str()) {
                assert_eq!(later[name], *value, "{name} {more}");
            }
        }
    }
}

#[test]
fn events_without_their_beginning_are_no_whole_simulation() {
    let folder = TempDir::new().unwrap();
    let output =
        apportion(folder.path(), "simulate --policy fifo --cluster v100=1 --static 2 --events run.jsonl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(folder.path().join("run.jsonl")).unwrap();
    let cut = |kept: &dyn Fn(usize) -> bool| {
        let lines = text.lines().enumerate().filter(|(number, _)| kept(*number));
        let lines: String = lines.flat_map(|(_, line)| [line, "\n"]).collect();
        fs::write(folder.path().join("cut.jsonl"), lines).unwrap();
        let output = apportion(folder.path(), "report cut.jsonl");
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(cut(&|_| true).0, Some(0));
    let (code, said) = cut(&|number| number == 0 || number > 60);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("events are missing before it"), "{said}");
    let (code, said) = cut(&|number| number > 0);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn the_mean_of_those_that_were_done_is_none_of_all() {
    let folder = TempDir::new().unwrap();
    let jobs = "id,job_type,total_steps,arrival\nquick,A3C,100,0\none,A3C,900000,4000\ntwo,A3C,900000,4000\n";
    fs::write(folder.path().join("jobs.csv"), jobs).unwrap();
    let run = "simulate --policy max_min_fairness_perf --cluster v100=1 --trace jobs.csv --preemption-cost 360 --stop-rounds 20";
    let table = apportion(folder.path(), run);
    let said = String::from_utf8(table.stdout).unwrap();
    assert!(said.contains("average job completion time (1 of 3 measured jobs)"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("rounds ")), "{said}");
    let why = String::from_utf8(table.stderr).unwrap();
    assert!(why.contains("2 active jobs (one, two)"), "{why}");
    let output = apportion(folder.path(), &format!("{run} --format json"));
    let result = json(&output);
    assert_eq!((&result["average_jct_s"], &result["jobs_to_measure"]), (&Value::Null, &Value::from(3)));
    assert_eq!((&result["jct_s"]["count"], &result["makespan_s"]), (&Value::from(1), &Value::Null));
    assert!(result["jct_s"]["average"].as_f64().unwrap() > 0.0);
    // The page shows it, too, from the result as from the events.
    fs::write(folder.path().join("run.json"), &output.stdout).unwrap();
    assert_eq!(apportion(folder.path(), "report run.json --out page.html").status.code(), Some(0));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("average job completion time (1 of 3 measured jobs)"), "{page}");
}
