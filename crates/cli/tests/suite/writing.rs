//! Files of the user that commands write, and signals that were ignored from the start.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![cfg(unix)]

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_apportion");
const SIMULATE: &str = "simulate --policy fifo --cluster v100=2 --static 3 --duration 1h --seed 1 --quiet";

fn apportion(folder: &Path, words: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).args(words.split_whitespace()).output().unwrap()
}

#[track_caller]
fn succeed(folder: &Path, words: &str) -> Output {
    let output = apportion(folder, words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn events_go_where_they_are_sent() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    succeed(at, &format!("{SIMULATE} --events plain"));
    let events = fs::read_to_string(at.join("plain")).unwrap();
    // A link.
    symlink("behind", at.join("link")).unwrap();
    succeed(at, &format!("{SIMULATE} --events link"));
    assert_eq!(fs::read_to_string(at.join("behind")).unwrap(), events);
    assert!(at.join("link").is_symlink());
    // Standard output, before the result.
    let output = succeed(at, &format!("{SIMULATE} --events /dev/stdout"));
    assert!(String::from_utf8(output.stdout).unwrap().starts_with(&events));
    // A pipe.
    assert!(Command::new("mkfifo").arg(at.join("pipe")).status().unwrap().success());
    let reader = thread::spawn({
        let path = at.join("pipe");
        move || fs::read_to_string(path).unwrap()
    });
    succeed(at, &format!("{SIMULATE} --events pipe --checkpoint saved"));
    assert_eq!(reader.join().unwrap(), events);
    assert!(fs::metadata(at.join("pipe")).unwrap().file_type().is_fifo());
    assert_eq!(names(at), ["behind", "link", "pipe", "plain"]);
}

#[test]
fn a_reader_of_events_that_goes_away_is_told_of() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    assert!(Command::new("mkfifo").arg(at.join("pipe")).status().unwrap().success());
    let reader = thread::spawn({
        let path = at.join("pipe");
        move || fs::File::open(path).unwrap().read_exact(&mut [0]).unwrap()
    });
    let many = "simulate --policy fifo --cluster v100=2 --static 2000 --duration 1h --quiet --events pipe";
    let output = apportion(at, many);
    reader.join().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.contains("cannot write pipe")), (Some(1), true), "{said}");
}

#[test]
fn a_result_replaces_a_file_and_no_other() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    succeed(at, &format!("{SIMULATE} --events run.jsonl"));
    for name in ["page.partial", "page.new"] {
        fs::write(at.join(name), "mine").unwrap();
    }
    fs::write(at.join("kept"), "before").unwrap();
    symlink("kept", at.join("page")).unwrap();
    succeed(at, "report run.jsonl --out page");
    assert!(fs::read_to_string(at.join("kept")).unwrap().starts_with("<!"));
    for name in ["page.partial", "page.new"] {
        assert_eq!(fs::read_to_string(at.join(name)).unwrap(), "mine");
    }
    assert_eq!(names(at), ["kept", "page", "page.new", "page.partial", "run.jsonl"]);
    let output = apportion(at, "report run.jsonl --out absent/page");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot write absent/page: no file can be made in absent: No such file"), "{said}");
}

/// A simulation that has begun and takes long, with a shell's line before it.
fn begun(folder: &Path, before: &str, more: &str) -> std::process::Child {
    let long = "simulate --policy fifo --cluster v100=2,p100=2,k80=2 --rate 0.4 --measure 100:200000";
    let line = format!("{before} exec '{PROGRAM}' {long} {more}");
    let mut command = Command::new("sh");
    let child = command.current_dir(folder).args(["-c", &line]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let catches = |signal: u32| {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let digits = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(digits.trim(), 16).unwrap() >> (signal - 1) & 1 == 1
    };
    while !catches(15) {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        thread::yield_now();
    }
    child
}

fn send(signal: &str, child: &std::process::Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_was_ignored_stays_ignored() {
    let folder = TempDir::new().unwrap();
    let child = begun(folder.path(), "trap '' HUP INT;", "--progress never");
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim().to_owned();
    let ignored = u64::from_str_radix(&ignored, 16).unwrap();
    assert_eq!(ignored & 0b11, 0b11, "{status}");
    send("-TERM", &child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[cfg(target_os = "linux")]
fn events_of_a_simulation_that_is_not_kept_are_not_kept() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("run.jsonl"), "before").unwrap();
    let child = begun(folder.path(), "", "--events run.jsonl");
    send("-TERM", &child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(fs::read_to_string(folder.path().join("run.jsonl")).unwrap(), "before");
    assert_eq!(names(folder.path()), ["run.jsonl"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_simulation_goes_on_only_with_the_events_of_its_start() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let child = begun(at, "", "--events run.jsonl --checkpoint saved");
    send("-TERM", &child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    let again = |events: &str| {
        let long = "simulate --policy fifo --cluster v100=2,p100=2,k80=2 --rate 0.4 --measure 100:200000";
        let output = apportion(at, &format!("{long} --checkpoint saved --events {events}"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        said
    };
    assert!(again("other.jsonl").contains("other.jsonl is not there"));
    assert!(again("/dev/null").contains("no regular file"));
    fs::write(at.join("run.jsonl"), "x").unwrap();
    assert!(again("run.jsonl").contains("run.jsonl is too short"));
    assert_eq!(names(at), ["run.jsonl", "saved"]);
}
