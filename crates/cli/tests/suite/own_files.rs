//! Calls with one file in two roles: no file of the user is overwritten, and a file that cannot be written is refused first.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const TRACE: &str = "job_type,total_steps,arrival\nA3C,100,0\n";
const POLICY: &str = include_str!("../../../../policies/fifo.yaml");
const THROUGHPUTS: &str = include_str!("../../../../throughputs/osdi20.yaml");
const HELIOS: &str = "job_id,user,vc,gpu_num,submit_time,start_time,end_time,duration,state,node_num,cpu_num\n\
                      1,u,v,1,2020-04-01 00:00:00,2020-04-01 00:00:10,2020-04-01 01:00:10,3600,COMPLETED,1,4\n";
const SIMULATE: &str =
    "simulate --cluster v100=1 --policy own.yaml --throughputs tp.yaml --trace t.csv --entities e.yaml";
const CONVERT: &str = "trace convert h.csv --from helios --throughputs tp.yaml --rules r.yaml";

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let rules = Command::new(env!("CARGO_BIN_EXE_apportion")).args(["trace", "rules"]).output().unwrap();
    let at = folder.path();
    fs::write(at.join("r.yaml"), rules.stdout).unwrap();
    for (name, text) in [
        ("t.csv", TRACE),
        ("own.yaml", POLICY),
        ("tp.yaml", THROUGHPUTS),
        ("e.yaml", "[{id: a}]\n"),
        ("h.csv", HELIOS),
        ("p.yaml", "{v100: 2}\n"),
        ("jobs.csv", "job_name,inst_id,user,status,start_time,end_time\n"),
    ] {
        fs::write(at.join(name), text).unwrap();
    }
    symlink("t.csv", at.join("link")).unwrap();
    folder
}

/// All files with their content.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.map(|path| (path.display().to_string(), fs::read(&path).unwrap_or_default())).collect();
    files.sort();
    files
}

/// Checks for exit code 2 with these words, and that no file is changed.
#[track_caller]
fn refused(folder: &Path, words: &str, expected: &str) {
    let before = files(folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.current_dir(folder).args(words.split_whitespace()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words}: {said}");
    assert!(said.contains(expected), "{words}: {said}\nlacks: {expected}");
    assert!(files(folder) == before, "{words}: files are changed");
}

#[test]
fn no_file_is_written_over_one_that_is_read() {
    let folder = folder();
    for words in [
        &format!("{SIMULATE} --events t.csv"),
        &format!("{SIMULATE} --events ./link"),
        &format!("{SIMULATE} --events own.yaml"),
        &format!("{SIMULATE} --events e.yaml"),
        &format!("{SIMULATE} --events tp.yaml"),
        &format!("{SIMULATE} --prices p.yaml --events p.yaml"),
        &format!("{SIMULATE} --checkpoint t.csv"),
        &format!("{CONVERT} --report r.yaml"),
        &format!("{CONVERT} --out r.yaml"),
        &format!("{CONVERT} --out tp.yaml"),
        &format!("{CONVERT} --out h.csv"),
        "trace convert h.csv --from pai --throughputs tp.yaml --job-table jobs.csv --out jobs.csv",
        "trace convert t.csv --to gavel --throughputs tp.yaml --out tp.yaml",
        "trace show h.csv --from helios --rules r.yaml --page r.yaml",
        "trace generate --static 3 --throughputs tp.yaml --out tp.yaml",
        "throughputs import tp.yaml --out tp.yaml",
        "throughputs fit tp.yaml --model resource --out ./tp.yaml",
        "forecast --policy fifo --cluster v100=1 --trace t.csv --entities e.yaml --at 1 --job 0 --page e.yaml",
        "policies import-sb3 h.csv --out h.csv",
    ] {
        refused(folder.path(), words, "are the same file");
    }
}

#[test]
fn a_sweep_writes_no_table_over_its_trace() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("results.csv"), TRACE).unwrap();
    let sweep = "format: apportion/sweep-v1\nname: s\naxes: {policy: [fifo, isolated]}\n\
                 run: {cluster: {v100: 1}, workload: {trace: results.csv}}\n";
    fs::write(at.join("s.yaml"), sweep).unwrap();
    refused(at, "sweep s.yaml --out .", "the table of results and a trace are the same file");
}

/// A link to nothing is no file to read and no folder to write into.
#[test]
fn a_link_to_nothing_is_told_as_one() {
    let folder = folder();
    symlink("nowhere", folder.path().join("dangling")).unwrap();
    refused(
        folder.path(),
        "allocate --policy fifo dangling",
        "this is a link, and where it leads there is nothing",
    );
    refused(folder.path(), "policies check dangling", "this is a link, and where it leads there is nothing");
    refused(
        folder.path(),
        "sweep --policy fifo --rate 1 --seed 0 --cluster v100=1 --set jobs=2 --out dangling",
        "--out: dangling is no folder",
    );
    refused(folder.path(), "report own.yaml --assets dangling", "--assets: dangling is no folder");
}

#[test]
fn no_two_files_are_written_under_one_name() {
    let folder = folder();
    symlink("new", folder.path().join("to-new")).unwrap();
    for (words, one, other) in [(CONVERT, "--out", "--report"), (SIMULATE, "--events", "--checkpoint")] {
        for (first, second) in [("new", "new"), ("./new", "new"), ("to-new", "new")] {
            refused(folder.path(), &format!("{words} {one} {first} {other} {second}"), "are the same file");
        }
    }
    let output = Command::new(env!("CARGO_BIN_EXE_apportion"))
        .current_dir(folder.path())
        .args(CONVERT.split_whitespace().chain("--out /dev/null --report /dev/null".split_whitespace()))
        .output();
    assert!(output.unwrap().status.success(), "what is written to /dev/null is lost as is asked");
}

#[test]
fn what_cannot_be_written_is_refused_before_the_work() {
    let folder = folder();
    let forecast = "forecast --policy fifo --cluster v100=1 --trace t.csv --at 1 --job 0 --page";
    for (words, flag) in [
        (SIMULATE, "--events"),
        (SIMULATE, "--checkpoint"),
        (CONVERT, "--out"),
        (CONVERT, "--report"),
        ("trace show h.csv --from helios", "--page"),
        ("trace generate --static 3", "--out"),
        ("throughputs import tp.yaml", "--out"),
        ("throughputs fit tp.yaml --model resource", "--out"),
        (forecast.trim_end_matches(" --page"), "--page"),
    ] {
        for name in [".", "absent/", "absent/file"] {
            refused(
                folder.path(),
                &format!("{words} {flag} {name}"),
                &format!("{flag}: cannot write {name}"),
            );
        }
    }
    for (words, flag) in [
        ("check --instances 1 --out", "--out"),
        ("sweep quick --out", "--out"),
        ("sweep quick --dry-run --out", "--out"),
        ("bench --sizes 5 --export", "--export"),
        ("man", "the folder"),
    ] {
        for name in ["t.csv", "t.csv/x"] {
            refused(folder.path(), &format!("{words} {name}"), &format!("{flag}: t.csv is no folder"));
        }
    }
}

#[test]
fn a_sweep_that_is_refused_leaves_no_results() {
    let folder = folder();
    let at = folder.path();
    let sweep = "format: apportion/sweep-v1\nname: s\naxes: {policy: [fifo]}\nrun: {cluster: {v100: 1}, trace: t.csv}\n";
    fs::write(at.join("s.yaml"), sweep).unwrap();
    fs::write(at.join("o.yaml"), sweep.replace("name: s", "name: other")).unwrap();
    let program = env!("CARGO_BIN_EXE_apportion");
    let run = |line: &str| {
        let line = line.replace("apportion ", &format!("{program} "));
        let output = Command::new("bash").args(["-c", &line]).current_dir(at).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run("apportion sweep s.yaml --out s; mkdir bin foreign moved lock csv csv/results.csv lock/results.lock").0, Some(0));
    fs::copy(at.join("s/results.sqlite"), at.join("moved/results.sqlite")).unwrap();
    fs::write(at.join("foreign/results.sqlite"), "not a database").unwrap();
    // A Slurm that takes no job.
    fs::write(at.join("bin/sbatch"), "#!/bin/sh\necho no partition >&2; exit 1\n").unwrap();
    assert_eq!(run("chmod +x bin/sbatch").0, Some(0));
    let tree = || run("find . | sort >/dev/stderr").1;
    let before = tree();
    for (line, expected) in [
        ("apportion sweep s.yaml --slurm --out new --time '1 2'", "--time: `1 2` is not one word"),
        ("apportion sweep s.yaml --slurm --out new --sbatch $'a\\nb'", "more than a line"),
        ("apportion sweep s.yaml --slurm --out 'a b'", "no path with spaces"),
        ("apportion sweep --policy fifo --trace t.csv --cluster v100=1 --slurm --out new", "as a file"),
        ("PATH=bin:$PATH apportion sweep s.yaml --slurm --out a/new", "refused the script: no partition"),
        ("apportion sweep s.yaml --out foreign", "is not a results file"),
        ("apportion results merge s --out foreign", "is not a results file"),
        ("apportion sweep o.yaml --out moved", "results of another study"),
        ("PATH=bin:$PATH apportion sweep o.yaml --slurm --out moved", "results of another study"),
        ("apportion sweep s.yaml --out lock", "a folder is where a file"),
        ("apportion results merge s --out csv", "the table of results: cannot write"),
        ("apportion results merge s moved absent --out new", "absent: there is no such file"),
    ] {
        let (code, said) = run(line);
        assert!(code == Some(2) && said.contains(expected), "{line}: {code:?}: {said}");
        assert!(said.contains("\n  help: ") || said.contains("one word"), "{line}: {said}");
        assert_eq!(tree(), before, "{line}");
    }
    fs::write(at.join("bin/sbatch"), "#!/bin/sh\necho 7\n").unwrap();
    assert_eq!(run("PATH=bin:$PATH apportion sweep s.yaml --slurm --out a/new").0, Some(0));
    for name in ["results.sqlite", "results.csv", "slurm/array.sbatch"] {
        assert!(at.join("a/new").join(name).is_file(), "{name}");
    }
}

#[test]
fn standard_output_is_no_folder_and_holds_nothing_that_is_read_again() {
    let folder = folder();
    for (words, flag) in [
        ("check --instances 1", "--out"),
        ("sweep quick", "--out"),
        ("results merge t.csv", "--out"),
        ("bench --sizes 5", "--export"),
        ("report own.yaml", "--assets"),
        (SIMULATE, "--save-snapshots"),
    ] {
        refused(folder.path(), &format!("{words} {flag} -"), &format!("{flag}: `-` is standard output"));
    }
    #[cfg(feature = "live")]
    for flag in ["--state", "--checkpoints"] {
        let words = "agent --scheduler http://127.0.0.1:9 --worker-type v100 --workers 1";
        refused(folder.path(), &format!("{words} {flag} -"), &format!("{flag}: `-` is standard output"));
    }
    refused(folder.path(), &format!("{SIMULATE} --checkpoint -"), "--checkpoint: a saved simulation is read");
    let both = format!("{SIMULATE} --checkpoint saved --events /dev/stdout");
    refused(folder.path(), &both, "--events: a simulation with `--checkpoint` reads its events again");
}

#[test]
fn what_does_not_fit_with_the_owners_of_a_file_is_said_with_its_name() {
    let folder = folder();
    let owned = "job_type,total_steps,arrival,entity\nA3C,100,0,b\n";
    fs::write(folder.path().join("owned.csv"), owned).unwrap();
    let expected = "--entities e.yaml: owned.csv:2:1: job `0` belongs to `b`, expected one of `a`";
    for words in [
        "simulate --cluster v100=1 --policy fifo --entities e.yaml --trace owned.csv",
        "forecast --cluster v100=1 --policy fifo --entities e.yaml --trace owned.csv --at 1 --job 0",
    ] {
        refused(folder.path(), words, expected);
    }
    let drawn = "simulate --cluster v100=1 --policy fifo --entities e.yaml --static 2";
    refused(folder.path(), drawn, "--entities e.yaml: jobs that are drawn belong to nobody");
}

#[test]
#[cfg(target_os = "linux")]
fn results_are_printed_before_a_page_that_cannot_be_written() {
    let folder = folder();
    for words in [
        "trace show h.csv --from helios --page /dev/full",
        "trace show t.csv --throughputs tp.yaml --page /dev/full",
        "forecast --policy fifo --cluster v100=1 --trace t.csv --at 1 --job 0 --known-durations --arrivals none \
         --forks 10 --page /dev/full",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
        let output = command.current_dir(folder.path()).args(words.split_whitespace()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(!output.stdout.is_empty() && said.contains("cannot write /dev/full"), "{words}: {said}");
    }
}
