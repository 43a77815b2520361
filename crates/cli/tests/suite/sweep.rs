//! Sweeps and simulations as commands: the same bytes whatever happens to the process.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use apportion::spec::Source;
use apportion::spec::snapshot::Snapshot;
use apportion_studies::sweep::Store;
use tempfile::TempDir;

pub(super) const TINY: &str = "\
format: apportion/sweep-v1
name: tiny
run:
  cluster: {v100: 2, p100: 2, k80: 2}
  workload: {generator: gavel, duration: 2h}
  measure: [20, 60]
axes:
  policy: [fifo, fifo_perf, isolated]
  rate: {from: 0.5, to: 2.0, points: 4}
  seed: [0, 1, 2]
stop: {saturated: true}
";

const LADDER: &str = "\
format: apportion/sweep-v1
name: ladder
run:
  cluster: {v100: 2, p100: 2, k80: 2}
  workload: {generator: gavel, duration: 2h}
  measure: [20, 60]
axes:
  policy: [fifo, isolated]
  rate: {auto: {from: 0.25, utilization: 0.8, precision: 0.1}}
  seed: [0, 1]
stop: {saturated: true}
";

pub(super) fn apportion(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.current_dir(folder).args(arguments).args(["--progress", "never"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[track_caller]
pub(super) fn succeed(folder: &Path, arguments: &[&str]) -> Output {
    let output = apportion(folder, arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

pub(super) fn folder_with(name: &str, text: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(name), text).unwrap();
    folder
}

/// The error message of a command with bad input; its exit code must be 2.
#[track_caller]
pub(super) fn complaint(folder: &Path, arguments: &[&str]) -> String {
    let output = apportion(folder, arguments).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

/// Lets a process run for a while, without a clock: it looks `n` times whether it has ended, which it may. False if it has.
fn let_run(child: &mut Child, n: u64) -> bool {
    (0..n).any(|_| {
        std::thread::yield_now();
        child.try_wait().unwrap().is_some()
    })
}

/// Digest → wall time of every run that is kept.
pub(super) fn kept(folder: &Path) -> BTreeMap<String, f64> {
    match Store::open_to_read(folder) {
        Ok(store) => store.rows().unwrap().into_iter().map(|row| (row.digest, row.seconds)).collect(),
        Err(error) => {
            assert!(
                !folder.join("results.sqlite").exists()
                    || fs::read(folder.join("results.sqlite")).unwrap().is_empty(),
                "{error}"
            );
            BTreeMap::new()
        }
    }
}

#[test]
fn a_sweep_gives_the_same_bytes_on_one_thread_and_two_and_in_shards() {
    let folder = folder_with("tiny.yaml", TINY);
    let csv = |name: &str| fs::read(folder.path().join(name).join("results.csv")).unwrap();
    let one = succeed(folder.path(), &["sweep", "tiny.yaml", "--out", "one", "--jobs", "1"]);
    let two = succeed(folder.path(), &["sweep", "tiny.yaml", "--out", "two", "--jobs", "2"]);
    assert_eq!(csv("one"), csv("two"));
    let table = |output: &Output| {
        String::from_utf8(output.stdout.clone()).unwrap().split("results:").next().unwrap().to_owned()
    };
    assert_eq!(table(&one), table(&two));
    let rows: Vec<String> =
        table(&one).lines().map(|line| line.split("  ").next().unwrap().to_owned()).collect();
    assert!(rows[0].contains(", by arrival rate in jobs/h, mean ±"), "{rows:?}");
    assert_eq!(rows[2..6], ["policy", "fifo", "fifo_perf", "isolated"], "{}", table(&one));
    for part in ["1/2", "2/2"] {
        succeed(folder.path(), &["sweep", "tiny.yaml", "--shard", part, "--out", &part.replace('/', "-of-")]);
    }
    succeed(folder.path(), &["results", "merge", "2-of-2", "1-of-2", "--out", "joined"]);
    assert_eq!(csv("one"), csv("joined"));
    let again = succeed(folder.path(), &["sweep", "tiny.yaml", "--out", "joined"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("36 of 36 runs are in joined already"));
}

/// Kills a sweep a number of times, at random points and every other time inside a transaction if there is one, and continues it.
/// The results must be those of `whole`, and no kept run may be lost or made again.
fn kill_and_resume(folder: &Path, study: &str, whole: &[u8], n_kills_wanted: usize) -> String {
    let out = folder.join("killed");
    let mut random = 88_172_645_463_325_252_u64;
    let (mut n_kills, mut n_within) = (0, 0);
    while n_kills < n_kills_wanted {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let before = kept(&out);
        let mut child = apportion(folder, &["sweep", study, "--out", "killed"]).spawn().unwrap();
        n_kills += 1;
        if let_run(&mut child, random % 20_000) {
            assert_eq!(fs::read(out.join("results.csv")).unwrap(), whole);
            fs::remove_dir_all(&out).unwrap(); // it was done before: begin anew
            continue;
        }
        while n_kills % 2 == 1 && !out.join("results.sqlite-journal").exists() && !let_run(&mut child, 1) {}
        n_within += i32::from(out.join("results.sqlite-journal").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        let after = kept(&out);
        let lost: Vec<_> =
            before.iter().filter(|(digest, seconds)| after.get(*digest) != Some(*seconds)).collect();
        assert!(lost.is_empty(), "kill {n_kills} lost or repeated {lost:?}");
    }
    let before = kept(&out);
    succeed(folder, &["sweep", study, "--out", "killed"]);
    assert_eq!(fs::read(out.join("results.csv")).unwrap(), whole);
    let after = kept(&out);
    assert!(before.iter().all(|(digest, seconds)| after[digest].total_cmp(seconds).is_eq()));
    fs::remove_dir_all(&out).unwrap();
    format!("{n_within} of {n_kills} kills found a transaction open")
}

#[test]
fn a_sweep_killed_a_hundred_times_loses_and_repeats_nothing() {
    for (name, study, n_kills) in [("tiny.yaml", TINY, 70), ("ladder.yaml", LADDER, 30)] {
        let folder = folder_with(name, study);
        succeed(folder.path(), &["sweep", name, "--out", "whole"]);
        let whole = fs::read(folder.path().join("whole/results.csv")).unwrap();
        eprintln!("{name}: {}", kill_and_resume(folder.path(), name, &whole, n_kills));
    }
}

#[test]
fn a_ladder_gives_the_same_bytes_on_one_thread_and_three_and_in_shards() {
    let folder = folder_with("ladder.yaml", LADDER);
    let csv = |name: &str| fs::read_to_string(folder.path().join(name).join("results.csv")).unwrap();
    let one = succeed(folder.path(), &["sweep", "ladder.yaml", "--out", "one", "--jobs", "1"]);
    succeed(folder.path(), &["sweep", "ladder.yaml", "--out", "three", "--jobs", "3"]);
    assert_eq!(csv("one"), csv("three"));
    let said = String::from_utf8(one.stdout).unwrap();
    assert!(said.contains("knee (jobs/h)\n  fifo 0: above "), "{said}");
    let heads = said.lines().find(|line| line.starts_with("policy ")).unwrap().split_whitespace();
    let heads: Vec<f64> = heads.filter_map(|head| head.parse().ok()).collect();
    assert!(heads.len() > 4 && heads.is_sorted(), "{heads:?}");
    for part in ["1/3", "2/3", "3/3"] {
        succeed(
            folder.path(),
            &["sweep", "ladder.yaml", "--shard", part, "--out", &part.replace('/', "-of-")],
        );
    }
    let merged = ["results", "merge", "1-of-3", "2-of-3", "3-of-3", "--out", "joined", "--format", "csv"];
    let said = String::from_utf8(succeed(folder.path(), &merged).stdout).unwrap();
    let n_runs = csv("one").lines().count() - 1;
    let expected =
        format!("results,csv,n_runs,n_duplicates\njoined/results.sqlite,joined/results.csv,{n_runs},0\n");
    assert_eq!(said, expected);
    assert_eq!(csv("one"), csv("joined"));
    let again = succeed(folder.path(), &["sweep", "ladder.yaml", "--out", "joined"]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(said.contains(&format!("{n_runs} of {n_runs} runs are in joined already")), "{said}");
    // Rates were doubled, then halved in between, and the table has them in their order.
    let rates: Vec<f64> = csv("one")
        .lines()
        .filter(|line| line.starts_with("fifo,") && line.split(',').nth(2) == Some("0"))
        .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
        .collect();
    assert!(rates.is_sorted() && rates.len() > 4, "{rates:?}");
}

#[test]
fn what_is_kept_elsewhere_or_left_out_is_not_run() {
    let rules = "skip: [{policy: isolated, rate: {from: 1.5}}, {policy: fifo, seed: [1, 2]}]\n";
    let folder = folder_with("tiny.yaml", &format!("{TINY}{rules}"));
    let n_lines = |name: &str| {
        fs::read_to_string(folder.path().join(name).join("results.csv")).unwrap().lines().count()
    };
    succeed(folder.path(), &["sweep", "tiny.yaml", "--only", "seed=0", "--out", "first"]);
    assert_eq!(n_lines("first"), 1 + 4 + 4 + 2);
    succeed(folder.path(), &["sweep", "tiny.yaml", "--besides", "first", "--out", "second"]);
    assert_eq!(n_lines("second"), 1 + 2 * (4 + 2));
    let said = complaint(folder.path(), &["sweep", "tiny.yaml", "--besides", "nowhere"]);
    assert!(said.contains("nowhere: there is no such file or folder"), "{said}");
}

#[test]
fn progress_is_told_as_lines_or_as_events() {
    let folder = folder_with("tiny.yaml", TINY);
    let run = |how: &str, out: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
        command.current_dir(folder.path());
        command.args(["sweep", "tiny.yaml", "--only", "seed=0", "--out", out, "--progress", how]);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let lines = run("auto", "plain");
    assert_eq!(lines.lines().count(), 12, "{lines}");
    assert!(lines.contains("12/12 ") && lines.contains(" fifo rate=0.5 seed=0: average JCT "), "{lines}");
    let events: Vec<serde_json::Value> =
        run("json", "events").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    assert_eq!((named("sweep").len(), named("started").len(), named("finished").len()), (1, 12, 12));
    assert_eq!((&named("sweep")[0]["runs"], &named("sweep")[0]["kept"]), (&12.into(), &0.into()));
    let last = named("finished")[11];
    assert_eq!((&last["done"], &last["total"], &last["run"]["seed"]), (&12.into(), &12.into(), &0.into()));
    assert!(run("json", "events").lines().next().unwrap().contains("12 of 12 runs are in events already"));
    assert_eq!(run("never", "events").lines().count(), 1);
}

#[test]
fn a_script_for_a_job_array_can_be_read_beforehand() {
    let folder = folder_with("tiny.yaml", TINY);
    let flags =
        ["sweep", "tiny.yaml", "--slurm", "--dry-run", "--tasks", "5", "--cpus", "2", "--time", "1:00:00"];
    let more = ["--partition", "fast", "--sbatch", "--mem=4G", "--only", "seed=1", "--out", "shared"];
    let text = String::from_utf8(succeed(folder.path(), &[&flags[..], &more].concat()).stdout).unwrap();
    for line in [
        "#!/bin/bash",
        "#SBATCH --job-name=apportion-tiny",
        "#SBATCH --array=1-5",
        "#SBATCH --cpus-per-task=2",
        "#SBATCH --time=1:00:00",
        "#SBATCH --partition=fast",
        "#SBATCH --mem=4G",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    assert!(text.contains("--shard \"$SLURM_ARRAY_TASK_ID/5\" --besides \"$out\""), "{text}");
    assert!(text.contains("tiny.yaml --only seed=1 \\\n"), "{text}");
    assert!(!folder.path().join("shared").exists());
    // A task of the array, as the script runs it.
    let script = folder.path().join("array.sbatch");
    fs::write(&script, &text).unwrap();
    fs::create_dir(folder.path().join("shared")).unwrap();
    let mut task = Command::new("bash");
    let output = task.arg(&script).env("SLURM_ARRAY_TASK_ID", "2").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!kept(&folder.path().join("shared/parts/2-of-5")).is_empty());
    let said = complaint(folder.path(), &["sweep", "tiny.yaml", "--tasks", "2"]);
    assert!(said.contains("--slurm"), "{said}");
}

#[test]
fn a_script_for_slurm_holds_what_slurm_takes() {
    let folder = folder_with("tiny.yaml", TINY);
    let dry = ["sweep", "tiny.yaml", "--slurm", "--dry-run"];
    let script = succeed(folder.path(), &[&dry[..], &["--out", "50%A"]].concat()).stdout;
    let script = String::from_utf8(script).unwrap();
    assert!(script.contains("/50%%A/slurm/%A-%a.log\n") && script.contains("/50%A\nexec"), "{script}");
    for (more, expected) in [
        (["--time", "2 00"], "--time: `2 00` is not one word"),
        (["--partition", "a\n#SBATCH --wrap=x"], "is not one word"),
        (["--sbatch", "--qos=a\nrm x"], "is more than a line"),
        (["--out", "it's"], "quotes"),
    ] {
        let said = complaint(folder.path(), &[&dry[..], &more].concat());
        assert!(said.contains(expected), "{said}");
    }
    let said = complaint(folder.path(), &["sweep", "tiny.yaml", "--jobs", "5000"]);
    assert!(said.contains("from 1 to 1024"), "{said}");
}

#[test]
fn results_that_are_damaged_are_refused_as_such() {
    let folder = folder_with("tiny.yaml", TINY);
    succeed(
        folder.path(),
        &["sweep", "tiny.yaml", "--only", "policy=fifo", "--only", "seed=0", "--out", "r"],
    );
    let database = rusqlite::Connection::open(folder.path().join("r/results.sqlite")).unwrap();
    let change = |sql: &str, expected: &str| {
        database.execute_batch(sql).unwrap();
        for command in [&["results", "show", "r"][..], &["report", "r"], &["compare", "r", "r"]] {
            let said = complaint(folder.path(), command);
            assert!(said.contains("is damaged") && said.contains(expected), "{said}");
        }
    };
    change("UPDATE runs SET status = 'flying'", "flying");
    change("ALTER TABLE runs DROP COLUMN status", "status");
}

/// A sweep of eight runs of some seconds that gets a signal in its first run: the number of runs that had begun, and its output.
#[cfg(target_os = "linux")]
fn signalled(folder: &Path, signal: &str) -> (usize, Vec<String>) {
    let text = "format: apportion/sweep-v1\nname: slow\nrun: {cluster: {v100: 8, k80: 8}, jobs: 1000, rate: 1}\n\
                axes: {policy: [max_min_fairness_perf], seed: [0, 1, 2, 3, 4, 5, 6, 7]}\n";
    fs::write(folder.join("slow.yaml"), text).unwrap();
    // A shell makes its background processes ignore Ctrl-C.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_apportion"), "sweep", "slow.yaml"]);
    command.current_dir(folder).args(["--out", "out", "--jobs", "1", "--progress", "json"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("\"started\"")), "a run begins");
    Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    let said: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said:?}");
    for line in &said {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "no JSON: {line}");
    }
    (1 + said.iter().filter(|line| line.contains("\"started\"")).count(), said)
}

/// The number of runs in a folder of results.
#[cfg(target_os = "linux")]
fn n_kept(folder: &Path) -> usize {
    let kept = succeed(folder, &["results", "show", "out", "--runs", "--format", "csv"]);
    String::from_utf8(kept.stdout).unwrap().lines().count() - 1
}

/// The message of an interrupted command: it stops after the runs in progress, and keeps them.
#[cfg(target_os = "linux")]
#[test]
fn a_sweep_interrupted_by_a_key_finishes_what_runs_and_begins_no_more() {
    let folder = TempDir::new().unwrap();
    let (n_begun, said) = signalled(folder.path(), "-INT");
    assert!(said.iter().any(|line| line.contains("stopping after what is in progress")), "{said:?}");
    assert_eq!(n_kept(folder.path()), n_begun, "{said:?}");
    assert!(n_begun < 8, "{said:?}");
}

/// A sweep ends at the first request to terminate: batch systems and `timeout` send no second one.
#[cfg(target_os = "linux")]
#[test]
fn a_sweep_that_is_terminated_ends_at_once_and_goes_on_later() {
    for signal in ["-TERM", "-HUP"] {
        let folder = TempDir::new().unwrap();
        let (n_begun, said) = signalled(folder.path(), signal);
        assert!(
            said.iter().any(|line| line.contains("stopped at once: what is finished is kept")),
            "{said:?}"
        );
        assert!(!said.iter().any(|line| line.contains("\"finished\"")), "{said:?}");
        assert!(n_begun < 8, "{said:?}");
        let only = ["sweep", "slow.yaml", "--out", "out", "--only", "seed=0"];
        succeed(folder.path(), &only);
        assert_eq!(n_kept(folder.path()), 1);
    }
}

#[test]
fn a_simulation_interrupted_and_resumed_gives_the_same_bytes() {
    let folder = TempDir::new().unwrap();
    let flags = ["simulate", "--policy", "fifo", "--cluster", "v100=2,p100=2,k80=2", "--rate", "0.4"];
    let more = ["--measure", "100:200", "--generator", "gavel", "--seed", "3", "--format", "json"];
    let run = |extra: &[&str]| apportion(folder.path(), &[&flags[..], &more, extra].concat());
    let result = |output: &Output| {
        let mut value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        value.as_object_mut().unwrap().remove("wall_seconds");
        value
    };
    let whole = run(&["--events", "whole.jsonl"]).output().unwrap();
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let mut n_interrupts = 0;
    let last = loop {
        let mut child = run(&["--events", "parts.jsonl", "--checkpoint", "saved.json"]).spawn().unwrap();
        let ended = let_run(&mut child, 3_000 * (1 + n_interrupts));
        if !ended {
            // The signal comes twice at once, as from `timeout`: one request.
            for _ in 0..2 {
                Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
            }
        }
        let output = child.wait_with_output().unwrap();
        match output.status.code() {
            Some(0) => break output,
            Some(130) => assert!(folder.path().join("saved.json").exists()),
            None => {} // It came before the process listened.
            code => panic!("{code:?}: {}", String::from_utf8_lossy(&output.stderr)),
        }
        n_interrupts += 1;
    };
    assert_eq!(result(&last), result(&whole));
    let events = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(events("parts.jsonl") == events("whole.jsonl"), "events differ after {n_interrupts} interrupts");
    assert!(!folder.path().join("saved.json").exists(), "nothing is left to resume");
}

#[test]
fn a_simulation_saves_what_its_policy_saw() {
    let folder = TempDir::new().unwrap();
    let flags =
        ["--policy", "isolated", "--cluster", "v100=2,k80=2", "--static", "5", "--save-snapshots", "seen"];
    let output = succeed(folder.path(), &[&["simulate", "--format", "csv"], &flags[..]].concat());
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 6);
    let first = Snapshot::read(&Source::load(folder.path().join("seen/000000.json")).unwrap()).unwrap();
    assert_eq!(first.document().jobs.len(), 5);
}

/// Two jobs get half of the time each, as the constraint demands; with the third it cannot be met.
#[test]
fn a_simulation_keeps_events_and_input_of_the_decision_that_fails() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let policy = "format: apportion/policy-v1\nname: half\nsummary: x\nkind: program\nmaximize: min_over_jobs(throughput)\n\
                  for_each_job:\n  - time_on(v100) >= 0.5\n";
    fs::write(at.join("half.yaml"), policy).unwrap();
    let job = |arrival: u32| format!("A3C,1000000,{arrival}\n");
    let trace = format!("job_type,total_steps,arrival\n{}{}{}", job(0), job(0), job(9000));
    fs::write(at.join("t.csv"), trace).unwrap();
    let simulate = ["simulate", "--policy", "half.yaml", "--cluster", "v100=1", "--trace", "t.csv"];
    let kept = ["--events", "e.jsonl", "--save-snapshots", "seen"];
    let output = apportion(at, &[&simulate[..], &kept].concat()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    let events = fs::read_to_string(at.join("e.jsonl")).unwrap();
    assert_eq!(events.matches("\"event\":\"arrival\"").count(), 3, "{events}");
    let n_kept = fs::read_dir(at.join("seen")).unwrap().count();
    let last = format!("seen/{:06}.json", n_kept - 1);
    assert!(said.contains(&format!("the input of the decision that failed is {last}")), "{said}");
    let of_last = Snapshot::read(&Source::load(at.join(&last)).unwrap()).unwrap();
    assert_eq!(of_last.document().jobs.len(), 3);
    let output = apportion(at, &["allocate", "--policy", "half.yaml", &last]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    succeed(at, &["report", "e.jsonl"]);
}

/// Which runs a clock gives up depends on the machine: studies stop by rounds, simulated time or a growing queue.
#[test]
fn no_study_that_ships_stops_by_the_clock() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sweeps");
    let mut n_studies = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let by_clock = ["wall:", "decision:"].into_iter().find(|field| text.contains(field));
        assert_eq!(by_clock, None, "{}", path.display());
        assert!(text.contains("format: apportion/sweep-v1"), "{}", path.display());
        n_studies += 1;
    }
    assert!(n_studies > 20, "{n_studies}");
}
