//! The command's output in a terminal: the width of tables, and a line of progress.

#![expect(clippy::print_stderr, reason = "a test says what it skips")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The output of a command line in a terminal of a number of columns and unknown rows; none without the tool `script`.
fn in_terminal(folder: &Path, n_columns: usize, line: &str) -> Option<String> {
    let command = format!("stty rows 0 cols {n_columns}; exec '{}' {line}", env!("CARGO_BIN_EXE_apportion"));
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(folder).stdin(Stdio::null());
    let Ok(output) = script.output() else {
        eprintln!("skipped: there is no `script`, which makes terminals");
        return None;
    };
    let shown = String::from_utf8(output.stdout).expect("output is UTF-8");
    assert!(output.status.success(), "{shown}");
    Some(shown)
}

#[test]
fn tables_of_benchmarks_have_the_width_of_the_terminal_and_no_time_left_is_made_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = "bench --policy max_min_fairness_perf --sizes 40 --backend default --repeats 1 --changes 2";
    let Some(shown) = in_terminal(folder.path(), 60, line) else { return };
    assert!(shown.contains("0/1 cases") && !shown.contains("left"), "{shown}");
    let heads: Vec<&str> = shown.lines().filter(|line| line.starts_with("policy ")).collect();
    assert!(heads.len() > 8 && heads.iter().all(|head| head.trim_end().len() <= 60), "{shown}");
}

/// All words of a text, as often as they stand in it.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    words.sort_unstable();
    words
}

#[test]
fn policies_and_comparisons_have_the_width_of_the_terminal_and_lose_nothing_in_a_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let is_within =
        |shown: &str, n: usize| shown.lines().all(|line| line.trim_end_matches('\r').chars().count() <= n);
    let piped = |line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
        let output = command.args(line.split(' ')).current_dir(folder.path()).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("output is UTF-8")
    };
    let Some(shown) = in_terminal(folder.path(), 80, "policies list") else { return };
    assert!(is_within(&shown, 80), "{shown}");
    let whole = piped("policies list");
    assert!(whole.lines().any(|line| line.chars().count() > 120), "each policy is one line: {whole}");
    let summaries = |text: &str| {
        let of = text.lines().filter_map(|line| line.split_once("  ")).map(|(_, rest)| rest.to_owned());
        of.collect::<Vec<_>>().join(" ")
    };
    let (told, there) = (summaries(&shown), summaries(&whole));
    let told = words(&told);
    assert!(words(&there).iter().all(|word| told.contains(word)), "{shown}");
    fs::write(
        folder.path().join("s.yaml"),
        "format: apportion/sweep-v1\nname: s\nrun: {cluster: {v100: 2}, workload: {jobs: 3, duration: 1h}}\n\
         axes: {policy: [max_min_fairness_water_filling_perf], rate: [0.5], seed: [0, 1]}\n",
    )
    .expect("it is written");
    piped("sweep s.yaml --progress never");
    let line = "compare results/s results/s --metric average_jct_s --metric makespan_s";
    let shown = in_terminal(folder.path(), 80, line).expect("there was a terminal before");
    let rows = |text: &str| {
        let is_row = |line: &&str| line.starts_with("policy  ") || line.starts_with("max_min");
        text.lines().filter(is_row).collect::<Vec<_>>().join("\n")
    };
    assert!(is_within(&rows(&shown), 80), "{shown}");
    let heads = shown.lines().filter(|line| line.starts_with("policy  ")).count();
    assert!(heads >= 2 && shown.contains("ratio_lower"), "{shown}");
    let whole = piped(line);
    assert!(whole.contains("ratio  ratio_lower  ratio_upper") && !is_within(&rows(&whole), 80), "{whole}");
}
