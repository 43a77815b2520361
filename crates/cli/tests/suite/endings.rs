//! Ends of commands with trouble around them: closed pipes, full disks, size limits, interrupts, odd values.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_apportion");

/// Runs a line of a shell, in which `$A` is the command.
fn shell(folder: &Path, line: &str) -> Output {
    let mut command = Command::new("bash");
    command.current_dir(folder).env("A", PROGRAM).args(["-c", line]).output().unwrap()
}

/// The exit code of the line's first command, and its standard error.
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
fn events_go_to_standard_output_as_results_do() {
    let folder = TempDir::new().unwrap();
    let simulate = "$A simulate --policy fifo --cluster v100=2 --static 3 --quiet --events";
    for output in ["-", "/dev/stdout"] {
        let line = format!("{simulate} {output} | head -1 >/dev/null");
        assert_eq!(ended(folder.path(), &line), (0, String::new()));
        let (code, said) = ended(folder.path(), &format!("{simulate} {output} >/dev/full"));
        assert_eq!((code, said.contains("cannot write to standard output")), (1, true), "{said}");
        let both = shell(folder.path(), &format!("{simulate} {output} >both; cat both"));
        let text = String::from_utf8(both.stdout).unwrap();
        assert!(text.starts_with("{\"format\":\"apportion/events-v1\""), "{text:.90}");
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("wall time"), "results follow the events: {last}");
    }
    assert!(!folder.path().join("-").exists());
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
        // A shell makes its background processes ignore Ctrl-C.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=INT", PROGRAM])
            .current_dir(folder.path())
            .args(line.split_whitespace());
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
fn a_job_that_a_policy_cannot_do_with_is_named_with_its_place_and_a_remedy() {
    let folder = TempDir::new().unwrap();
    let head = "format: apportion/snapshot-v1\ncluster: {fast: 2}\njobs:\n";
    for (field, policy, place, help) in [
        (
            "weight: 2",
            "min_total_duration",
            "4:5",
            "state `steps_remaining` for the job, or leave the job out",
        ),
        (
            "scale_factor: 2, steps_remaining: 9",
            "allox",
            "4:30",
            "leave the job out, or decide by another policy",
        ),
    ] {
        let job = format!("  - {{id: over, {field}, throughput: {{fast: 10}}}}\n");
        fs::write(folder.path().join("s.yaml"), format!("{head}{job}")).unwrap();
        let (code, said) = ended(folder.path(), &format!("$A allocate --policy {policy} s.yaml"));
        assert_eq!(code, 2, "{said}");
        let is_whole = said.contains("of job `over`") && said.contains(&format!("--> s.yaml:{place}\n"));
        assert!(is_whole && said.contains(help), "{said}");
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

/// Runs a shell's line with a standard output that is closed at its other end, and checks the exit code.
#[track_caller]
fn without_a_reader(folder: &Path, line: &str, expected: i32) {
    let (reader, output) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new("bash");
    command.current_dir(folder).env("A", PROGRAM).args(["-c", &format!("exec $A {line}")]);
    let ended = command.stdout(output).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(expected), "{line}: {said}");
    assert!(!said.contains("standard output"), "{line}: {said}");
}

#[test]
fn a_reader_that_has_gone_changes_neither_the_exit_code_nor_what_is_kept() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let sweep = "format: apportion/sweep-v1\nname: s\nrun: {cluster: {v100: 1}, static: 2}\naxes: {policy: [POLICIES]}\n";
    fs::write(at.join("one.yaml"), sweep.replace("POLICIES", "fifo, isolated")).unwrap();
    without_a_reader(at, "sweep one.yaml --out one", 0);
    without_a_reader(at, "compare one one --bound 'average_jct<=0.5'", 5);
    fs::write(at.join("over.yaml"), sweep.replace("POLICIES", "fifo") + "stop: {wall: 1e-9}\n").unwrap();
    without_a_reader(at, "sweep over.yaml --out over", 4);
    let trace = "job_type,total_steps,arrival\nA3C,100000,0\nA3C,200000,3600\nA3C,100000,7200\n";
    fs::write(at.join("t.csv"), trace).unwrap();
    without_a_reader(at, "trace show t.csv --throughputs osdi20 --page shown.html", 0);
    let forecast =
        "forecast --policy fifo --cluster v100=1 --trace t.csv --at 2h --job 1 --forks 20 --known-durations";
    without_a_reader(at, &format!("{forecast} --page forecast.html"), 0);
    without_a_reader(at, "gavel run_sweep_static.py -l logs -p fifo --seeds 0 -c 2:2:2 -a 4 -b 4 -n 1", 0);
    for name in ["shown.html", "forecast.html", "logs/sweep.yaml", "logs/raw_logs"] {
        assert!(at.join(name).exists(), "{name}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_check_that_is_interrupted_begins_no_more_processes_and_a_fit_ends_at_once() {
    let folder = TempDir::new().unwrap();
    let fit = "throughputs fit osdi20 --model resource --starts 100000";
    let check = "check --instances 1000000 --limit 1 --policies max_min_fairness_perf --backends default --progress json";
    for (line, is_caught) in [(check, true), (fit, false)] {
        // A shell makes its background processes ignore Ctrl-C.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", PROGRAM]).args(line.split_whitespace());
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let status = format!("/proc/{}/task/{}/children", child.id(), child.id());
        // The command has begun once it has a process for some instances, or, for a fit, once it computes.
        let stat = format!("/proc/{}/stat", child.id());
        let computes = || fs::read_to_string(&stat).is_ok_and(|text| ticks(&text) > 20);
        let has_begun = || if is_caught { descendants(child.id()) > 0 } else { computes() };
        while !has_begun() {
            assert!(Path::new(&status).exists(), "it ended: {line}");
            std::thread::yield_now();
        }
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), is_caught.then_some(130), "{line}: {said}");
        assert_eq!(is_caught, said.contains("of 1000000 instances are shown"), "{line}: {said}");
    }
}

/// The number of processes below a process, of any of its threads.
#[cfg(target_os = "linux")]
fn descendants(pid: u32) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    children.map(|text| text.split_whitespace().count()).sum()
}

/// The processor time of a process so far, in ticks, by its line in `/proc`.
#[cfg(target_os = "linux")]
fn ticks(stat: &str) -> u64 {
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_standard_output_is_printed_alone() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let simulate = "simulate --policy fifo --cluster v100=1 --static 2 --events run.jsonl >/dev/null";
    fs::write(at.join("t.csv"), "job_type,total_steps,arrival\nA3C,100000,0\nA3C,200000,3600\n").unwrap();
    assert_eq!(ended(at, &format!("$A {simulate}")).0, 0);
    let targets =
        [("-", "| cat"), ("/dev/stdout", "| cat"), ("/dev/fd/1", ">to"), ("to", ">to"), ("./link", ">to")];
    for (line, begin, end) in [
        ("$A report run.jsonl --out", "<!", "</html>"),
        ("$A report run.jsonl --out page.html --svg", "<svg", "</svg>"),
        ("$A trace show t.csv --throughputs osdi20 --format csv --page", "<!", "</html>"),
        ("$A trace generate --static 3 --out", "id,job_type,", ""),
        ("$A throughputs fit osdi20 --model resource --starts 1 --out", "format: ", ""),
    ] {
        // A fit takes seconds.
        let n_targets = if line.contains(" fit ") { 1 } else { targets.len() };
        for (target, to) in targets.into_iter().rev().take(n_targets) {
            let _ = std::os::unix::fs::symlink("to", at.join("link"));
            let output = shell(at, &format!("{line} {target} --quiet {to}; cat to; rm -f to"));
            let text = String::from_utf8(output.stdout).unwrap();
            let is_alone = text.starts_with(begin) && text.trim_end().ends_with(end);
            assert!(
                is_alone,
                "{line} {target} {to}: {text:.60} … {}",
                &text[text.len().saturating_sub(60)..]
            );
        }
    }
    let (code, said) = ended(at, "$A report run.jsonl --out - --svg /dev/stdout");
    assert_eq!((code, said.contains("are the same file")), (2, true), "{said}");
}

#[test]
fn a_loop_of_links_is_no_file_to_write() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    std::os::unix::fs::symlink("loop", at.join("loop")).unwrap();
    for line in ["trace generate --static 3 --out loop", "trace generate --static 3 --out loop/x"] {
        let (code, said) = ended(at, &format!("$A {line}"));
        assert_eq!(
            (code, said.contains("--out: cannot write loop") && said.contains("help: ")),
            (2, true),
            "{said}"
        );
    }
}
