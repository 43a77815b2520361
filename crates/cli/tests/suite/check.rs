//! `apportion check` as a command: its output, whatever the number of threads, and its refusals.

use std::process::{Command, Output};

use serde_json::Value;

fn check(threads: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apportion"))
        .args(["check", "--progress", "never"])
        .args(arguments)
        .env("RAYON_NUM_THREADS", threads)
        .output()
        .expect("the command ends")
}

const SOME: [&str; 12] = [
    "--limit",
    "100",
    "--instances",
    "14",
    "--seed",
    "1",
    "--decades",
    "1",
    "--policies",
    "max_min_fairness_perf,max_min_fairness_packed,min_total_duration",
    "--backends",
    "default,clarabel",
];

#[test]
fn harmless_instances_are_decided_truly_and_the_same_on_any_number_of_threads() {
    let json = |threads| check(threads, &[&SOME[..], &["--format", "json"]].concat());
    let (one, two) = (json("1"), json("2"));
    assert_eq!(one.status.code(), Some(0), "{}", String::from_utf8_lossy(&one.stderr));
    assert_eq!(one.stdout, two.stdout);
    let answer: Value = serde_json::from_slice(&one.stdout).expect("JSON");
    let row = &answer["rows"][0];
    assert_eq!(row["instances"], 14);
    assert_eq!(row["decisions"], 14 * 3 * 2);
    assert_eq!(row["untrue"], 0);
    assert!(row["certified"].as_u64() > Some(50), "{row}");
    let csv = check("2", &[&SOME[..], &["--format", "csv"]].concat());
    let text = String::from_utf8_lossy(&csv.stdout);
    assert!(text.starts_with("decades,instances,decisions,certified,"), "{text}");
    assert!(String::from_utf8_lossy(&check("2", &SOME).stdout).contains("disagreement_max"));
}

#[test]
fn what_cannot_be_checked_is_refused() {
    for (arguments, complaint) in [
        (["--policies", "fifo"], "is not a program"),
        (["--policies", "max_min_fairnes"], "max_min_fairness"),
        (["--backends", "abacus"], "unknown backend `abacus`"),
        (["--decades", "21"], "21 decades"),
        (["--limit", "0"], "a limit of 0 s"),
    ] {
        let refused = check("1", &arguments);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(complaint), "{said}");
    }
}

/// Allocations that break a floor of the policy are worth more than its optimum, and prove nothing.
#[test]
fn a_policy_with_a_floor_is_held_to_what_keeps_it() {
    // The last policy has no floor, and so finds such allocations.
    let policies = "low_average_jct,low_average_jct_packed,max_sum_throughput_perf";
    let checked =
        check("2", &["--instances", "6", "--seed", "3", "--policies", policies, "--backends", "default"]);
    let said = String::from_utf8_lossy(&checked.stderr);
    assert_eq!(checked.status.code(), Some(0), "{said}");
}
