//! `simulate --lower-bound`: a bound that no schedule of the jobs is below.

#![expect(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a failure here fails the test, and equal bounds are the same"
)]

use std::process::{Command, Output};

use serde_json::Value;

const RUN: &str = "--cluster v100=1,p100=1,k80=1 --rate 1 --jobs 12 --generator gavel --seed 3";

fn simulate(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.arg("simulate").args(arguments.split_whitespace()).args(["--progress", "never"]).output().unwrap()
}

fn bounded(policy: &str, sharing: &str) -> (f64, f64) {
    let output = simulate(&format!("--policy {policy} {RUN} --lower-bound {sharing} --format json"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (average, found) = (result["average_jct_s"].as_f64().unwrap(), &result["lower_bound"]);
    let [bound, ratio, fastest] =
        ["average_jct_s", "ratio", "fastest_s"].map(|field| found[field].as_f64().unwrap());
    assert!(
        (ratio - average / bound).abs() < 1e-12
            && fastest <= bound
            && !found["broken_off"].as_bool().unwrap()
    );
    assert_eq!(found["pairs"], sharing == "pairs");
    (average, bound)
}

#[test]
fn no_policy_is_below_the_bound() {
    let found = ["fifo_perf", "srtf", "low_average_jct"].map(|policy| bounded(policy, "alone"));
    // The bound depends on the jobs alone, not on the policy, and is not far below an average that is reached.
    let [.., (average, bound)] = found;
    assert!(found.iter().all(|(other, same)| *other >= bound && *same == bound), "{found:?}");
    assert!(bound > 0.85 * average, "{found:?}");
    let (average, shared) = bounded("low_average_jct_packed", "pairs");
    assert!(shared <= average && shared < bound, "{shared} {found:?}");
}

#[test]
fn it_is_in_the_table_and_beside_the_csv() {
    let run = format!("--policy fifo_perf {RUN} --lower-bound alone");
    let table = String::from_utf8(simulate(&run).stdout).unwrap();
    assert!(
        table.contains("no schedule of jobs alone averages below") && table.contains("over that"),
        "{table}"
    );
    let csv = simulate(&format!("{run} --format csv"));
    let said = String::from_utf8(csv.stderr).unwrap();
    assert!(said.contains("no schedule of jobs alone averages below"), "{said}");
    assert!(!String::from_utf8(csv.stdout).unwrap().contains("averages"));
}

#[test]
fn a_result_with_a_bound_makes_a_page() {
    let folder = tempfile::TempDir::new().unwrap();
    let [result, page] = ["run.json", "page.html"].map(|name| folder.path().join(name));
    std::fs::write(
        &result,
        simulate(&format!("--policy fifo_perf {RUN} --lower-bound alone --format json")).stdout,
    )
    .unwrap();
    let mut report = Command::new(env!("CARGO_BIN_EXE_apportion"));
    assert!(report.arg("report").arg(&result).arg("--out").arg(&page).output().unwrap().status.success());
    assert!(page.exists());
}

#[test]
fn what_has_no_bound_is_refused() {
    for (run, expected) in [
        ("--cluster v100=1 --rate 1 --measure 5:10 --lower-bound alone", "cannot be used with"),
        ("--cluster v100=1 --rate 1 --lower-bound alone", "arrivals would never stop"),
        (
            "--cluster v100=1 --static 2 --semantics gavel --lower-bound pairs",
            "where a job may be dropped with steps left",
        ),
        ("--cluster v100=1 --static 2 --lower-bound both", "possible values: alone, pairs"),
    ] {
        let output = simulate(&format!("--policy fifo {run}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{run}: {said}");
        assert!(said.contains(expected), "{run}: {said}");
    }
}

#[test]
fn what_gavel_would_drop_is_corrected_for_a_bound() {
    for correct in ["all", "short_slice"] {
        let run = format!(
            "--policy fifo {RUN} --semantics gavel --correct {correct} --lower-bound alone --format json"
        );
        let output = simulate(&run);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(result["lower_bound"]["ratio"].as_f64().unwrap() >= 1.0, "{result}");
    }
}

#[test]
fn a_simulation_that_is_given_up_has_none() {
    let livelock =
        "--policy max_min_fairness_perf --cluster v100=1 --static 2 --preemption-cost 360 --stop-rounds 200";
    let output = simulate(&format!("{livelock} --lower-bound alone --format json"));
    assert_eq!(output.status.code(), Some(4));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result.get("lower_bound").is_none(), "{result}");
}
