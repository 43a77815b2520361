//! What the command shows in a terminal: the width of tables, and a line of progress.

#![expect(clippy::print_stderr, reason = "a test says what it skips")]

use std::path::Path;
use std::process::{Command, Stdio};

/// What a command line shows in a terminal that tells no rows and 60 columns, where there is `script` to make one.
fn in_terminal(folder: &Path, line: &str) -> Option<String> {
    let command = format!("stty rows 0 cols 60; exec '{}' {line}", env!("CARGO_BIN_EXE_apportion"));
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
    let Some(shown) = in_terminal(folder.path(), line) else { return };
    assert!(shown.contains("0/1 cases") && !shown.contains("left"), "{shown}");
    let heads: Vec<&str> = shown.lines().filter(|line| line.starts_with("policy ")).collect();
    assert!(heads.len() > 8 && heads.iter().all(|head| head.trim_end().len() <= 60), "{shown}");
}
