//! Arguments that are not UTF-8, or hold control characters.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;

use crate::command::{Ran, apportion};

fn run(folder: &Path, arguments: &[&OsStr]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.args(arguments).current_dir(folder).output().expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs a line of words, in which `?` is replaced by a byte that is not UTF-8.
fn run_line(folder: &Path, line: &str) -> Ran {
    let word = |word: &str| {
        OsString::from_vec(word.bytes().map(|byte| if byte == b'?' { 0xe9 } else { byte }).collect())
    };
    let words: Vec<OsString> = line.split_whitespace().map(word).collect();
    run(folder, &words.iter().map(OsString::as_os_str).collect::<Vec<_>>())
}

#[test]
fn inputs_are_read_from_paths_that_are_not_utf8() {
    let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&folder).expect("written");
    let write = |name: &[u8], text: &str| {
        fs::write(folder.join(OsStr::from_bytes(name)), text).expect("written");
    };
    let copy = |name: &[u8], from: &str| {
        write(name, &fs::read_to_string(repository.join(from)).expect("a file"));
    };
    copy(b"p\xe9.yaml", "policies/max_min_fairness_perf.yaml");
    copy(b"m\xe9.yaml", "throughputs/osdi20.yaml");
    write(
        b"s\xe9.json",
        r#"{"format": "apportion/snapshot-v1", "cluster": {"v100": 1},
        "jobs": [{"id": 1, "throughput": {"v100": 2.0}}]}"#,
    );
    write(b"t\xe9.csv", "job_type,total_steps\nLM (batch size 20),1000\n");
    write(b"c\xe9.json", r#"{"v100": 2.5}"#);
    write(
        b"w\xe9.yaml",
        "format: apportion/sweep-v1\nname: s\naxes: {policy: [fifo, ./q.yaml]}\n\
        run: {cluster: {v100: 1}, workload: {static: 2}}\n",
    );
    copy(b"q.yaml", "policies/isolated.yaml");
    for line in [
        "allocate --policy p?.yaml --throughputs m?.yaml s?.json",
        "explain --policy ../caf?/p?.yaml ./s?.json",
        "simulate --policy p?.yaml --throughputs m?.yaml --prices c?.json --cluster v100=1 --trace t?.csv",
        "trace show t?.csv --throughputs m?.yaml",
        "throughputs check m?.yaml",
        "policies check p?.yaml",
        "sweep ../caf?/w?.yaml --out r? --progress json",
        "results show r?",
        "bench --policy p?.yaml --snapshot s?.json --export e?",
    ] {
        let ran = run_line(&folder, line);
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
    }
    let ran = run_line(&folder, "allocate --policy p?.yaml missing?.json");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--> missing\\xe9.json"), "{}", ran.stderr);
}

#[test]
fn a_refusal_repeats_no_control_characters() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [
        &["simulate", "--rate", "\u{1b}[2J\nerror: x"][..],
        &["no\u{1b}[31m\nerror: x"],
        &["allocate", "--no\u{1b}c\nerror: x"],
        &["simulate", "--duration", "\u{1b}c\nerror: x"],
    ] {
        let ran = run(folder.path(), &arguments.iter().map(OsStr::new).collect::<Vec<_>>());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("\\u{1b}") && !ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
        assert_eq!(ran.stderr.matches("\nerror: ").count(), 0, "{}", ran.stderr);
    }
}

#[test]
fn an_unknown_job_stands_on_one_line() {
    let snapshot = r#"{"format": "apportion/snapshot-v1", "cluster": {"v100": 1},
        "jobs": [{"id": "a\nb", "throughput": {"v100": 2.0}}]}"#;
    let arguments = ["explain", "--policy", "max_min_fairness_perf", "--job", "a\nc", "-"];
    let ran = apportion(&arguments, snapshot);
    assert_eq!(ran.code, Some(2));
    let expected = "error: the snapshot has no job `a\\nc`, expected one of `a\\nb`\n";
    assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
}

#[test]
fn a_number_that_a_flag_cannot_take_is_named_with_the_flag_and_its_range() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = ["simulate", "--policy", "fifo", "--cluster", "v100=2", "--jobs", "2", "--rate", "1"];
    for (more, expected) in [
        (
            ["--round", "0"],
            "invalid value '0' for '--round <SECONDS>': `0` is no length of a round, expected from 0.001 s to",
        ),
        (["--round", "-5"], "invalid value '-5' for '--round <SECONDS>': `-5` is no time"),
        (
            ["--preemption-cost", "-5"],
            "invalid value '-5' for '--preemption-cost <SECONDS>': `-5` is no time",
        ),
        (["--reset-interval", "-1"], "for '--reset-interval <SECONDS>': `-1` is no time"),
    ] {
        let words: Vec<&OsStr> = base.iter().chain(&more).map(OsStr::new).collect();
        let ran = run(folder.path(), &words);
        assert_eq!(ran.code, Some(2), "{more:?}");
        assert!(ran.stderr.contains(expected), "{more:?}: {}", ran.stderr);
    }
}

#[test]
fn a_job_of_a_trace_that_cannot_run_is_named_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    let head = "id,job_type,scale_factor,total_steps,arrival,entity";
    write("gang.csv", &format!("{head}\na,A3C,1,1000,0,\n\nb,ResNet-18 (batch size 16),4,1000,10,\n"));
    write("long.csv", &format!("{head}\na,A3C,1,1e14,0,\n"));
    write("ours.csv", "id;job_type;total_steps\na;A3C;1000\n");
    for (trace, expected) in [
        (
            "gang.csv",
            "--trace: gang.csv:4:1: job `b`: `ResNet-18 (batch size 16)` at scale factor 4 can run on no",
        ),
        ("long.csv", "--trace: long.csv:2:1: job `a` takes "),
        ("ours.csv", "columns are separated by `;`, expected `,`"),
    ] {
        let ran =
            run_line(folder.path(), &format!("simulate --policy fifo --cluster v100=2 --trace {trace}"));
        assert_eq!(ran.code, Some(2), "{trace}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{trace}: {}", ran.stderr);
    }
}
