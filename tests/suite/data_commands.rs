//! `apportion throughputs` and `apportion trace`, as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

fn apportion(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apportion")).args(arguments).output().expect("the command runs")
}

fn stdout(arguments: &[&str]) -> String {
    let output = apportion(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Exit code 2 and a message that contains `expected`.
fn assert_refused(arguments: &[&str], expected: &str) {
    let output = apportion(arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(message.contains(expected), "{message}\nlacks: {expected}");
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn a_generated_trace_survives_both_forms() {
    let folder = tempfile::tempdir().expect("a folder");
    let (csv, gavel) = (path(folder.path(), "jobs.csv"), path(folder.path(), "jobs.trace"));
    let generate = ["trace", "generate", "--rate", "2", "--jobs", "50", "--multi-worker", "--slos"];
    let text = stdout(&[&generate[..], &["--seed", "7", "--out", &csv]].concat());
    assert_eq!(text, "");
    let again = stdout(&[&generate[..], &["--seed", "7"]].concat());
    assert_eq!(std::fs::read_to_string(&csv).expect("written"), again);
    assert_ne!(again, stdout(&[&generate[..], &["--seed", "8"]].concat()));
    stdout(&["trace", "convert", &csv, "--to", "gavel", "--throughputs", "osdi20", "--out", &gavel]);
    let show = |file: &str| stdout(&["trace", "show", file, "--throughputs", "osdi20", "--format", "csv"]);
    let counts = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.rsplit_once(',').expect("columns").0.to_owned()).collect()
    };
    assert_eq!(counts(&show(&csv)), counts(&show(&gavel)));
}

#[test]
fn an_exported_matrix_is_read_back_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (path(folder.path(), "a.yaml"), path(folder.path(), "b.yaml"));
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/throughputs/osdi20.yaml");
    stdout(&["throughputs", "import", shipped, "--name", "mine", "--note", "a copy", "--out", &first]);
    stdout(&["throughputs", "import", &first, "--out", &second]);
    let text = std::fs::read_to_string(&first).expect("written");
    assert!(text.contains("name: mine\n") && text.contains("note: a copy\n"), "{}", &text[..600]);
    assert_eq!(text, std::fs::read_to_string(&second).expect("written"));
    let show = |matrix: &str| stdout(&["throughputs", "show", matrix, "--format", "json"]);
    assert_eq!(show(&first), show("osdi20"));
    assert!(
        stdout(&["throughputs", "check", &first, "--format", "csv"]).contains("isolated throughputs of 0")
    );
}

#[test]
fn retained_fractions_are_shown_beside_each_job_type_of_the_same_size() {
    let text = stdout(&["throughputs", "show", "--job-type", "A3C", "--colocated", "--format", "csv"]);
    assert_eq!(text.lines().count(), 1 + 26);
    assert!(text.starts_with("job_type,scale_factor,beside,v100,p100,k80\n"), "{text}");
}

#[test]
fn bad_input_is_refused_with_the_nearest_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = path(folder.path(), "bad.csv");
    std::fs::write(&trace, "job_type,total_steps,arrival\nA3C,10,5\nA3D,10,4\n").expect("written");
    let show = ["trace", "show", &trace, "--throughputs", "osdi20"];
    assert_refused(&show, "did you mean `A3C`?");
    assert_refused(&show, "bad.csv:3:8");
    assert_refused(&["throughputs", "show", "osdi2"], "osdi20");
    assert_refused(&["throughputs", "show", "--job-type", "A3"], "did you mean `A3C`?");
    assert_refused(&["trace", "generate", "--rate", "nan", "--jobs", "3"], "expected a number above 0");
    assert_refused(&["trace", "generate", "--jobs", "3"], "--rate");
    assert_refused(&["trace", "show", "nowhere.csv"], "there is no such file");
}
