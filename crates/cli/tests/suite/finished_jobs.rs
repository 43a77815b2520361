//! Jobs of a snapshot that have no steps left: they get nothing, and no other job's share depends on them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

const HEAD: &str = "format: apportion/snapshot-v1\ncluster: {fast: 2, slow: 2}\nprices: {fast: 2, slow: 1}\n";
const OVER: &str =
    "  - {id: over, steps_remaining: 0, slo_remaining: 50, elapsed: 90, throughput: {fast: 9, slow: 3}}\n";
const OTHERS: &str = "  - {id: a, steps_remaining: 1000, slo_remaining: 900, throughput: {fast: 10, slow: 5}}\n  \
                        - {id: b, steps_remaining: 500, elapsed: 60, throughput: {fast: 4, slow: 3}}\n";
const PAIRS: &str = "pairs:\n  - {jobs: [over, a], throughput: {fast: [8, 9], slow: [2, 4]}}\n";

fn run(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.current_dir(folder).args(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_job_without_steps_gets_nothing_under_every_policy() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("with.yaml"), format!("{HEAD}jobs:\n{OVER}{OTHERS}{PAIRS}")).unwrap();
    fs::write(folder.path().join("without.yaml"), format!("{HEAD}jobs:\n{OTHERS}")).unwrap();
    for policy in [
        "fifo",
        "isolated",
        "max_min_fairness_packed",
        "max_min_fairness_water_filling_perf",
        "min_total_duration_perf",
        "finish_time_fairness_packed",
        "low_average_jct_packed",
        "max_sum_throughput_normalized_by_cost_perf_SLOs",
        "allox",
        "srtf",
        "themis",
        "learned_values",
    ] {
        let decided = |snapshot: &str| -> (Value, String) {
            let words = ["allocate", "--policy", policy, snapshot, "--format", "json"];
            let (code, said, remarks) = run(folder.path(), &words);
            assert_eq!(code, Some(0), "{policy}: {remarks}");
            (serde_json::from_str(&said).unwrap(), remarks)
        };
        let ((with, remarks), (without, _)) = (decided("with.yaml"), decided("without.yaml"));
        assert!(remarks.contains("job `over` has no steps left and gets nothing"), "{remarks}");
        for field in ["allocation", "objective", "levels", "dropped"] {
            assert_eq!(with[field], without[field], "{policy}: {field}");
        }
        assert_eq!(with["effective_throughput"]["over"], 0.0, "{policy}");
        assert_eq!(with["effective_throughput"]["a"], without["effective_throughput"]["a"], "{policy}");
    }
    let (_, table, _) = run(folder.path(), &["allocate", "--policy", "srtf", "with.yaml"]);
    assert!(table.contains("over  0.0000  0.0000      0.0000\n"), "{table}");
    let (code, _, said) = run(folder.path(), &["explain", "--policy", "srtf", "--job", "over", "with.yaml"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("job `over` has no steps left: nothing is decided for it"), "{said}");
}

#[test]
fn jobs_behind_one_that_is_over_keep_their_place() {
    let folder = TempDir::new().unwrap();
    for (job, expected) in [
        ("  - {id: 5, throughput: {fast: 1}}\n", "s.yaml:6:5"),
        ("  - {id: 5, scale_factor: 3, steps_remaining: 1, throughput: {fast: 1}}\n", "s.yaml:6:5"),
    ] {
        fs::write(folder.path().join("s.yaml"), format!("{HEAD}jobs:\n{OVER}{job}")).unwrap();
        let (code, _, said) = run(folder.path(), &["allocate", "--policy", "min_total_duration", "s.yaml"]);
        assert!(code == Some(2) && said.contains(&format!("--> {expected}\n")), "{job}: {said}");
    }
    fs::write(folder.path().join("s.yaml"), format!("{HEAD}jobs:\n{OVER}")).unwrap();
    let (code, table, said) = run(folder.path(), &["allocate", "--policy", "min_total_duration", "s.yaml"]);
    assert!(code == Some(0) && table.contains("over  0.0000  0.0000      0.0000\n"), "{table}{said}");
}
