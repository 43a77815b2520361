//! Two sets of results compared: ratios, bounds, and missing runs.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const TWO: &str = "\
format: apportion/sweep-v1
name: two
run:
  cluster: {v100: 2, p100: 2, k80: 2}
  workload: {generator: gavel, duration: 2h}
  measure: [10, 30]
axes:
  policy: [fifo, isolated]
  rate: [0.5, 1.0, 9.0]
  seed: [0, 1, 2]
stop: {saturated: true}
";

fn apportion(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.current_dir(folder).args(arguments).args(["--progress", "never"]).output().unwrap()
}

/// Standard output and standard error of a command that ends with this code.
#[track_caller]
fn ends(folder: &Path, code: i32, arguments: &[&str]) -> (String, String) {
    let output = apportion(folder, arguments);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    (out, err)
}

/// The results of a sweep in `a`, and a copy in `b` that a statement changes, in the form from before rows had checksums.
fn changed(statement: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("two.yaml"), TWO).unwrap();
    ends(at, 0, &["sweep", "two.yaml", "--out", "a"]);
    fs::create_dir(at.join("b")).unwrap();
    fs::copy(at.join("a/results.sqlite"), at.join("b/results.sqlite")).unwrap();
    let connection = rusqlite::Connection::open(at.join("b/results.sqlite")).unwrap();
    connection
        .execute_batch(&format!("PRAGMA foreign_keys = OFF; {statement}; UPDATE runs SET checksum = NULL"))
        .unwrap();
    folder
}

#[test]
fn results_are_equal_to_themselves() {
    let folder = changed("");
    let bounds = ["--bound", "average_jct_s<=1", "--bound", "mean(makespan_s)>=1", "--format", "json"];
    let (out, _) = ends(folder.path(), 0, &[&["compare", "a", "b"][..], &bounds].concat());
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), 8, "two policies, two rates that can be sustained, two metrics");
    assert!(points.iter().all(|point| point["ratio"] == 1.0 && point["p"] == 1.0 && point["n"] == 3));
    assert_eq!(
        (&found["n_unfinished_on_both"], &found["overall_ratio"]["makespan_s"]["mean"]),
        (&6.into(), &1.0.into())
    );
    assert!(found["bounds"].as_array().unwrap().iter().all(|bound| bound["holds"] == true));
}

#[test]
fn a_broken_bound_ends_in_its_own_exit_code() {
    let folder = changed(
        "UPDATE runs SET average_jct_s = average_jct_s * (1.1 + 0.01 * seed) WHERE policy = 'fifo' AND rate = 1.0",
    );
    let at = folder.path();
    let (out, err) = ends(at, 5, &["compare", "a", "b", "--bound", "average_jct_s<=1.02"]);
    assert!(err.contains("bound average_jct_s<=1.02 is broken: 1.1100 at policy=fifo rate=1"), "{err}");
    assert!(!err.contains("more)"), "at one point only: {err}");
    assert!(out.contains("bound average_jct_s<=1.02 is broken; it was held against 4 of 6 points"), "{out}");
    // By hand: the logarithms of 1.1, 1.11 and 1.12, and t = 4.3027 for two degrees of freedom.
    let (out, _) = ends(at, 0, &["compare", "a", "b", "--bound", "average_jct_s<=1.12", "--format", "csv"]);
    let line = out.lines().find(|line| line.starts_with("fifo,1,") || line.starts_with("fifo,1.0,")).unwrap();
    let ratio: Vec<f64> = line.split(',').skip(6).take(3).map(|cell| cell.parse().unwrap()).collect();
    let logs = [1.1_f64.ln(), 1.11_f64.ln(), 1.12_f64.ln()];
    let mean = logs.iter().sum::<f64>() / 3.0;
    let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    let reach = 4.302_653 * deviation / 3.0_f64.sqrt();
    for (found, expected) in ratio.iter().zip([mean, mean - reach, mean + reach].map(f64::exp)) {
        assert!((found - expected).abs() < 1e-6, "{line}");
    }
    // The ratio over all points: a quarter of the logarithm.
    let (_, err) = ends(at, 5, &["compare", "a", "b", "--bound", "mean(average_jct_s)<=1.02"]);
    assert!(err.contains("is broken: 1.0264"), "{err}");
    ends(at, 0, &["compare", "a", "b", "--bound", "mean(average_jct_s)<=1.03"]);
}

#[test]
fn runs_on_one_side_only_are_named() {
    let folder = changed(
        "DELETE FROM runs WHERE policy = 'fifo' AND rate = 0.5 AND seed = 1;
         UPDATE runs SET status = 'timeout', average_jct_s = NULL WHERE policy = 'isolated' AND rate = 1.0 AND seed = 2",
    );
    let at = folder.path();
    let (out, err) = ends(at, 0, &["compare", "a", "b"]);
    assert!(err.contains("policy=fifo rate=0.5 seed=1: A done, B not there"), "{err}");
    assert!(err.contains("policy=isolated rate=1 seed=2: A done, B timeout"), "{err}");
    for words in [
        "done on both sides: 10 of 18 runs",
        "with a number on one side only, or other ends: 2 of 18 runs",
        "ended the same way on both sides, without a number: 6 of 18 runs",
        "not compared, because a side has not finished all seeds: 4 of 6 points",
        "average_jct_s over 2 of 6 points: 1.0000",
        " 2 of 3 seeds ended",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let (out, _) = ends(at, 0, &["compare", "a", "b", "--format", "csv"]);
    let line =
        |start: &str| out.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{out}"));
    assert!(
        line("isolated,1").ends_with(",average_jct_s,2,,,,,,,,,,,3,0,0"),
        "no ratio of the quick seeds: {out}"
    );
    assert!(
        line("fifo,0.5,").ends_with(",average_jct_s,2,,,,,,,,,,,3,0,0"),
        "no mean over a part of the seeds: {out}"
    );
    let (_, err) = ends(at, 5, &["compare", "a", "b", "--bound", "average_jct_s<=2"]);
    assert!(err.contains("not there in B (and 1 more)"), "a run that is lost breaks a bound: {err}");
    let (out, _) = ends(at, 0, &["compare", "b", "a", "--bound", "average_jct_s<=2", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&found["n_runs"], &found["n_runs_of"]), (&10.into(), &18.into()));
    assert_eq!((&found["n_points"], &found["n_points_of"]), (&4.into(), &6.into()));
    assert_eq!(found["n_points_unfinished"], 4);
    let part =
        found["points"].as_array().unwrap().iter().find(|point| point["n"] == 2 && point["policy"] == "fifo");
    assert!(part.unwrap()["A"].is_null() && part.unwrap()["ratio"].is_null(), "{found}");
    assert_eq!((&found["bounds"][0]["holds"], &found["bounds"][0]["n_points"]), (&true.into(), &2.into()));
    ends(at, 0, &["compare", "b", "a", "--bound", "average_jct_s<=2"]);
}

#[test]
fn jobs_given_up_on_one_side_break_bounds_on_times_of_jobs() {
    let folder = changed(
        "UPDATE runs SET n_jobs = n_jobs - 5, average_jct_s = average_jct_s / 2 WHERE policy = 'fifo' AND rate = 0.5",
    );
    let at = folder.path();
    let words = "0 of 60 jobs given up in A, 15 of 60 in B";
    let (out, err) = ends(at, 5, &["compare", "a", "b", "--bound", "average_jct_s<=1"]);
    assert!(
        err.contains(&format!("is broken: average_jct_s leaves out {words} at policy=fifo rate=0.5")),
        "{err}"
    );
    assert!(out.contains(&format!("times of jobs leave out, at policy=fifo rate=0.5: {words}")), "{out}");
    // Rounds are of all jobs; and A, which has all, cannot look better than it is.
    ends(at, 0, &["compare", "a", "b", "--bound", "rounds<=1"]);
    ends(at, 0, &["compare", "b", "a", "--bound", "average_jct_s<=2"]);
    let (out, _) = ends(at, 0, &["compare", "a", "b", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let given_up = |point: &serde_json::Value| {
        [&point["jobs_given_up_A"], &point["jobs_given_up_B"]].map(serde_json::Value::as_u64)
    };
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.iter().filter(|point| given_up(point) == [Some(0), Some(15)]).count(), 1, "{out}");
    assert_eq!(points.iter().filter(|point| given_up(point) == [Some(0); 2]).count(), 3, "{out}");
    let (out, _) = ends(at, 0, &["results", "show", "b", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let groups = found["rows"].as_array().unwrap();
    let lost = groups.iter().find(|group| group["jobs_given_up"] == 15).unwrap();
    assert_eq!((&lost["policy"], &lost["measured_jobs"]), (&"fifo".into(), &60.into()));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = changed("DELETE FROM runs");
    let at = folder.path();
    let (_, err) = ends(at, 2, &["compare", "a", "b"]);
    assert!(err.contains("no finished run in common"), "{err}");
    let (_, err) = ends(at, 2, &["compare", "a", "c"]);
    assert!(err.contains("c: there is no such file or folder"), "{err}");
    fs::write(at.join("other.yaml"), TWO.replace("  seed: [0, 1, 2]\n", "")).unwrap();
    ends(at, 0, &["sweep", "other.yaml", "--out", "other"]);
    let (_, err) = ends(at, 2, &["compare", "a", "other"]);
    assert!(err.contains("a varies policy, rate, seed, but other varies policy, rate"), "{err}");
    let (_, err) = ends(at, 2, &["compare", "a", "a", "--bound", "average_jct_s<1"]);
    assert!(err.contains("is not METRIC<=FACTOR"), "{err}");
    let (_, err) = ends(at, 2, &["compare", "a", "a", "--metric", "average_jtc"]);
    assert!(err.contains("did you mean `average_jct_s`"), "{err}");
}

#[test]
fn results_of_two_versions_are_compared_and_said_to_be_that() {
    let folder = changed(
        "UPDATE meta SET value = '0.0.9' WHERE key = 'version'; UPDATE runs SET version = '0.0.9';
         UPDATE runs SET average_jct_s = average_jct_s * 1.5 WHERE policy = 'fifo'",
    );
    let at = folder.path();
    let own = env!("CARGO_PKG_VERSION");
    let (out, err) = ends(at, 5, &["compare", "a", "b", "--bound", "average_jct_s<=1.4"]);
    assert!(out.contains(&format!("A: a (apportion {own})\nB: b (apportion 0.0.9)")), "{out}");
    assert!(err.contains(&format!("A was made by apportion {own}, B by apportion 0.0.9")), "{err}");
    assert!(err.contains("is broken: 1.5000 at policy=fifo"), "{err}");
    let (out, _) = ends(at, 0, &["compare", "b", "a", "--format", "json"]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["versions"], serde_json::json!({"a": "0.0.9", "b": own}));
    // A sweep that one version began is not continued by another.
    let (_, err) = ends(at, 2, &["sweep", "two.yaml", "--out", "b"]);
    assert!(err.contains("was written by apportion 0.0.9"), "{err}");
    // Another format cannot be read.
    let connection = rusqlite::Connection::open(at.join("b/results.sqlite")).unwrap();
    connection.pragma_update(None, "user_version", 9).unwrap();
    let (_, err) = ends(at, 2, &["compare", "a", "b"]);
    assert!(err.contains("was written by format 9"), "{err}");
}

#[test]
fn a_changed_digit_is_refused_wherever_results_are_read() {
    let folder = changed("");
    let at = folder.path();
    let connection = rusqlite::Connection::open(at.join("a/results.sqlite")).unwrap();
    let change =
        "UPDATE runs SET average_jct_s = average_jct_s + 1 WHERE policy = 'fifo' AND rate = 0.5 AND seed = 1";
    connection.execute_batch(change).unwrap();
    drop(connection);
    let what = "policy=fifo rate=0.5 seed=1";
    for arguments in [
        &["compare", "a", "b"][..],
        &["results", "show", "a"],
        &["report", "a"],
        &["results", "merge", "a", "--out", "c"],
        &["sweep", "two.yaml", "--out", "a"],
    ] {
        let (_, err) = ends(at, 2, arguments);
        assert!(err.contains("a/results.sqlite is damaged") && err.contains(what), "{arguments:?}: {err}");
    }
    // Two parts of one sweep that disagree, of before there were checksums.
    let connection = rusqlite::Connection::open(at.join("b/results.sqlite")).unwrap();
    connection.execute_batch(change).unwrap();
    drop(connection);
    ends(at, 0, &["sweep", "two.yaml", "--out", "whole"]);
    let (_, err) = ends(at, 2, &["results", "merge", "whole", "b", "--out", "c"]);
    for words in ["whole/results.sqlite", "b/results.sqlite", what, "average_jct_s is ", "different results"]
    {
        assert!(err.contains(words), "{words}: {err}");
    }
    assert!(!at.join("c/results.sqlite").exists());
}

#[test]
fn fixed_fields_that_differ_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = ["sweep", "--name", "t", "--policy", "fifo", "--rate", "1", "--cluster", "v100=2", "--set"];
    for (out, jobs) in [("a", "jobs=3"), ("b", "jobs=4")] {
        ends(folder.path(), 0, &[&sweep[..], &[jobs, "--out", out]].concat());
    }
    let (_, said) = ends(folder.path(), 0, &["compare", "a", "b"]);
    assert!(said.contains("fixed fields differ (`jobs` is 3 in A, 4 in B): seeds may not"), "{said}");
    ends(folder.path(), 0, &[&sweep[..], &["jobs=3", "--set", "semantics=corrected", "--out", "c"]].concat());
    let (_, said) = ends(folder.path(), 0, &["compare", "a", "c"]);
    assert!(!said.contains("fixed fields"), "{said}");
}
