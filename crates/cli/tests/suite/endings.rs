//! How commands end where the world is in the way: closed pipes, full disks, limits of sizes, interrupts, odd values.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_apportion");

/// A line of a shell, in which `$A` is the command.
fn shell(folder: &Path, line: &str) -> Output {
    let mut command = Command::new("bash");
    command.current_dir(folder).env("A", PROGRAM).args(["-c", line]).output().unwrap()
}

/// The exit code of the line's first command, and what was said on standard error.
fn ended(folder: &Path, line: &str) -> (i32, String) {
    let output = shell(folder, &format!("{line}; exit ${{PIPESTATUS[0]}}"));
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn log_of(n_rows: usize) -> String {
    let rows = (0..n_rows).map(|row| format!("job-{row},{row},60,1\n"));
    std::iter::once("id,submitted_s,ran_s,gpus\n".to_owned()).chain(rows).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn help_that_cannot_be_printed_is_told_of_and_a_reader_that_has_enough_is_no_failure() {
    let folder = TempDir::new().unwrap();
    // A reader that is gone before the first line.
    assert_eq!(ended(folder.path(), "(sleep 0.3; $A --help; echo $? >code) | true"), (0, String::new()));
    assert_eq!(fs::read_to_string(folder.path().join("code")).unwrap(), "0\n");
    let (code, said) = ended(folder.path(), "$A --help >/dev/full");
    assert_eq!((code, said.contains("cannot write to standard output")), (1, true), "{said}");
}

#[test]
fn what_is_not_written_is_not_said_to_be() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("log.csv"), log_of(100_000)).unwrap();
    let convert = "$A trace convert log.csv --from log --to log";
    assert_eq!(ended(folder.path(), &format!("{convert} | head -2 >/dev/null")), (0, String::new()));
    let (code, said) = ended(folder.path(), &format!("{convert} --out whole.csv"));
    assert_eq!((code, said.contains("100000 rows read, 100000 written")), (0, true), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_limit_of_sizes_is_a_failure_that_leaves_nothing_behind() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("log.csv"), log_of(20_000)).unwrap();
    let (code, said) =
        ended(folder.path(), "ulimit -f 8; $A trace convert log.csv --from log --to log --out whole.csv");
    assert_eq!((code, said.contains("cannot write whole.csv: File too large")), (1, true), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part is left");
}

#[test]
fn an_interrupt_ends_the_reading_of_a_log_between_two_rows() {
    let folder = TempDir::new().unwrap();
    for line in ["trace convert - --from log --to log --out out.csv", "trace show - --from log"] {
        let mut command = Command::new(PROGRAM);
        command.current_dir(folder.path()).args(line.split_whitespace());
        let mut child =
            command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut rows = child.stdin.take().unwrap();
        rows.write_all(b"id,submitted_s,ran_s,gpus\n").unwrap();
        // More than a pipe holds: it reads, so it has set up its signals.
        rows.write_all(&b"\n".repeat(1 << 20)).unwrap();
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        // The log has no end of its own: it is read until the flag is seen, or the pipe is closed by the other side.
        for row in 0.. {
            if rows.write_all(format!("{row},{row},60,1\n").as_bytes()).is_err() {
                break;
            }
            assert!(row < 10_000_000, "it reads on");
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.contains("interrupted")), (Some(130), true), "{line}: {said}");
        assert!(!folder.path().join("out.csv").exists());
    }
}

#[test]
fn what_is_no_number_is_refused_wherever_it_stands() {
    let folder = TempDir::new().unwrap();
    for line in [
        "bench --quick --density nan",
        "bench --quick --heterogeneity NaN",
        "check --limit nan",
        "check --decades 1,nan",
        "simulate --policy fifo --cluster v100=1 --static 1 --noise nan",
        "throughputs fit osdi20 --model resource --held-out nan",
        "world dual-agent --drift nan",
    ] {
        let (code, said) = ended(folder.path(), &format!("$A {line}"));
        assert_eq!((code, said.contains("is no number")), (2, true), "{line}: {said}");
    }
}

#[test]
fn long_values_are_repeated_in_part() {
    let folder = TempDir::new().unwrap();
    let long = "a".repeat(100_000);
    fs::write(folder.path().join("prices.yaml"), format!("{{{long}: 2}}\n")).unwrap();
    for line in [
        format!("$A simulate --{long}"),
        format!("$A {long}"),
        format!("$A simulate --policy {long} --cluster v100=1 --static 1"),
        format!("$A simulate --policy fifo --cluster {long} --static 1"),
        "$A simulate --policy fifo --cluster v100=1 --static 1 --prices prices.yaml".to_owned(),
    ] {
        let (code, said) = ended(folder.path(), &line);
        assert_eq!(code, 2, "{said:.500}");
        assert!(said.len() < 3_000 && said.contains("aaa…"), "{} characters: {said:.500}", said.len());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_is_no_results_is_bad_input() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("h.csv"), "a,b\n").unwrap();
    std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
    for name in ["/dev/null", "h.csv/x", "/proc/self/mem", "loop", "h.csv"] {
        for line in [format!("$A results show {name}"), format!("$A compare {name} {name}")] {
            let (code, said) = ended(folder.path(), &line);
            assert_eq!(code, 2, "{line}: {said}");
        }
    }
}
