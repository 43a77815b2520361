//! Command lines of the published scripts, and sweeps by flags.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use apportion_studies::sweep::Store;
use tempfile::TempDir;

fn apportion(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.current_dir(folder).args(["--progress", "never"]).args(line.split_whitespace()).output().unwrap()
}

#[track_caller]
fn succeed(folder: &Path, line: &str) -> String {
    let output = apportion(folder, line);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(folder: &Path, line: &str, said: &str) {
    let output = apportion(folder, line);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
    assert!(stderr.contains(said), "{line}: {stderr}");
}

const CONTINUOUS: &str = "gavel scripts/sweeps/run_sweep_continuous.py -s 10 -e 30 -l logs -j 2 -p fifo max_min_fairness_perf --seeds 0 1 \
                          -c 2:2:2 -a 0.0 -b 0.2 -n 3 --generate-multi-priority-jobs";

/// Runs, prints the sweep, keeps results and logs, and continues after an interrupt.
#[test]
fn a_published_sweep_runs_as_typed() {
    let folder = TempDir::new().unwrap();
    let said = succeed(folder.path(), CONTINUOUS);
    let document = fs::read_to_string(folder.path().join("logs/sweep.yaml")).unwrap();
    assert!(said.starts_with(&document) && said.contains("average jct in hours"), "{said}");
    assert!(document.contains("rate: [0.1,0.2]") && document.contains("semantics: gavel"), "{document}");
    let store = Store::open_to_read(&folder.path().join("logs")).unwrap();
    let rows = store.rows().unwrap();
    assert_eq!(rows.len(), 8);
    for row in &rows {
        let [policy, rate, seed] =
            [0, 1, 2].map(|axis| apportion_studies::sweep::spec::value_text(&row.values[axis]));
        let lambda = 3600.0 / rate.parse::<f64>().unwrap();
        let log = format!("logs/raw_logs/v100=2.p100=2.k80=2/{policy}/seed={seed}/lambda={lambda:.6}.log");
        let log = fs::read_to_string(folder.path().join(log)).unwrap();
        let average = row.outcome.metric("average_jct_s").unwrap();
        assert!(log.contains(&format!("Average job completion time: {average:.3} seconds (")), "{log}");
        // The lines that the notebooks average over: one for each job of the window.
        let jobs = log.lines().filter(|line| line.starts_with("Job ") && !line.contains("times"));
        let times: Vec<f64> = jobs.map(|line| line.rsplit_once(": ").unwrap().1.parse().unwrap()).collect();
        assert_eq!(times.len(), 20);
        assert!((times.iter().sum::<f64>() / 20.0 - average).abs() < 1e-3);
        assert!(log.contains("(high priority)") && log.contains("Total duration: "));
    }
    let again = apportion(folder.path(), CONTINUOUS);
    assert!(String::from_utf8_lossy(&again.stderr).contains("8 of 8 runs are in logs already"));
    assert_eq!(succeed(folder.path(), &CONTINUOUS.replacen("gavel", "gavel --show", 1)), document);
    // The same runs by the sweep file.
    let other = succeed(folder.path(), "sweep logs/sweep.yaml --out other --format csv");
    assert!(other.lines().count() > 4);
    let of = |folder: &Path| -> Vec<_> {
        Store::open_to_read(folder)
            .unwrap()
            .rows()
            .unwrap()
            .into_iter()
            .map(|row| (row.digest, row.outcome))
            .collect()
    };
    let without_jobs = |rows: Vec<(String, apportion_studies::sweep::Outcome)>| -> Vec<_> {
        rows.into_iter().map(|(digest, outcome)| (digest, outcome.metrics)).collect()
    };
    assert_eq!(without_jobs(of(&folder.path().join("logs"))), without_jobs(of(&folder.path().join("other"))));
}

#[test]
fn the_other_published_scripts_run_as_typed() {
    let folder = TempDir::new().unwrap();
    let line = "gavel run_sweep_static.py -l l -p min_total_duration_perf --seeds 0 -c 2:2:0 4:0:0 -a 0 -b 8 -n 3 --assign_SLOs";
    succeed(folder.path(), line);
    for cluster in ["v100=2.p100=2.k80=0", "v100=4.p100=0.k80=0"] {
        for jobs in [4, 8] {
            let log =
                format!("l/raw_logs/{cluster}/min_total_duration_perf/seed=0/num_total_jobs={jobs}.log");
            assert!(folder.path().join(&log).is_file(), "{log}");
        }
    }
    let line = "gavel simulate_scheduler_with_generated_jobs.py -c 2:2:2 -p isolated --seed 3 -l 36000 -s 0 -e 10 -v";
    let said = succeed(folder.path(), line);
    // The same run by its own command.
    let by_flags = "simulate --policy isolated --cluster v100=2,p100=2,k80=2 --rate 0.1 --seed 3 --measure 0:10 --semantics gavel \
                    --generator gavel --format json";
    let run: serde_json::Value = serde_json::from_str(&succeed(folder.path(), by_flags)).unwrap();
    let hours = format!("{:.2}", run["average_jct_s"].as_f64().unwrap() / 3600.0);
    assert!(said.contains(&hours), "{hours}: {said}");
    succeed(
        folder.path(),
        "trace generate --rate 0.2 --jobs 8 --generator gavel --to gavel --out jobs.trace",
    );
    succeed(
        folder.path(),
        "gavel simulate_scheduler_with_trace.py -t jobs.trace -c 2:2:2 -p fifo --seed 0 --solver SCS",
    );
    fs::write(
        folder.path().join("mine.yaml"),
        "format: apportion/policy-v1\nname: mine\nsummary: s\nkind: heuristic\nrule: fifo\n",
    )
    .unwrap();
    let line = format!(
        "gavel run_sweep_static.py -l own -p {} --seeds 0 -c 2:2:2 -a 4 -b 4 -n 1",
        folder.path().join("mine.yaml").display()
    );
    succeed(folder.path(), &line);
    let log = "own/raw_logs/v100=2.p100=2.k80=2/mine.yaml/seed=0/num_total_jobs=4.log";
    assert!(folder.path().join(log).is_file());
    // Another command line is refused there, and the folder's content stays.
    let before = fs::read_to_string(folder.path().join("own/sweep.yaml")).unwrap();
    refused(folder.path(), &line.replace("-c 2:2:2", "-c 4:4:4"), "other fixed fields");
    assert_eq!(fs::read_to_string(folder.path().join("own/sweep.yaml")).unwrap(), before);
    let said = succeed(folder.path(), "gavel run_sweep_continuous.py --help");
    assert!(said.contains("--profiling_percentages"), "{said}");
}

#[test]
fn what_is_none_of_the_scripts_is_refused() {
    let folder = TempDir::new().unwrap();
    refused(
        folder.path(),
        "gavel run_scheduler_with_trace.py -t x",
        "is no script of Gavel's that is known here",
    );
    refused(folder.path(), "gavel run_sweep_continuous.py -n 3", "throughput-lower-bound");
    refused(folder.path(), "gavel run_sweep_continuous.py -a 1 -b 2 --fast", "--fast");
    refused(folder.path(), "gavel run_sweep_continuous.py -a 1 -b 2 -c 36:36", "`36:36` is no cluster");
    refused(
        folder.path(),
        "gavel run_sweep_continuous.py -a 1 -b 2 -p fifoo --seeds 0 -c 2:2:2 -n 2",
        "did you mean `fifo`",
    );
    refused(folder.path(), "gavel run_sweep_static.py -a 1 -b 2 --enable_global_queue", "global queue");
    for (line, said) in [
        ("static.py -a 1 -b 2 --enable_global_queue", "help: leave the flag out"),
        (
            "static.py -a 9 -b 2 -n 3",
            "3 points from 9 to 2: no such range\n  help: give `-a` from 0 to what `-b` has",
        ),
        ("continuous.py -a 1 -b 2 --profiling_percentages 26", "--profiling_percentage: 26 of"),
        ("continuous.py -a 1 -b 2 --num_reference_models 27", "--num_reference_models: 27 reference models"),
    ] {
        refused(folder.path(), &format!("gavel run_sweep_{line}"), said);
    }
    let with = |rest: &str, said: &str| {
        let line = format!("gavel run_sweep_continuous.py -p fifo --seeds 0 -c 2:2:2 {rest}");
        refused(folder.path(), &line, said);
    };
    with("-a 0 -b 1 --num 3", "`--num` is the beginning of several flags");
    with("-a 0 -b 1 --num 3", "--num_reference_models, --num-data-points");
    with("-a 0 -b 1 -n -1", "'-1' for '--num-data-points");
    with("-a -0.3 -b 1", "from -0.3 to 1");
    with("-a 0 -b 1 --profiling_percentages 0.5 2", "2 of co-located throughputs");
    with("-a 0 -b 1 --num_reference_models 100", "100 reference models, expected 1 to 26");
}

#[test]
fn a_sweep_that_would_be_refused_is_not_shown() {
    let folder = TempDir::new().unwrap();
    let line =
        |rest: &str| format!("gavel --show run_sweep_continuous.py -s 4 -e 8 -l d {rest} -c 4:4:4 -a 0 -b 1");
    refused(folder.path(), &line("-p fifo -n 1"), "rate");
    refused(folder.path(), &line("-p fifo nosuch -n 2"), "nosuch");
    let shown = succeed(folder.path(), &line("-p max_sum_throughput_normalized_by_cost_perf -n 2"));
    assert!(shown.contains("  prices: {\"v100\":1,\"p100\":1,\"k80\":1}\n"), "{shown}");
}

#[test]
fn a_sweep_needs_no_file() {
    let folder = TempDir::new().unwrap();
    let flags = "sweep --policy fifo,isolated --rate 0.2:0.4:2 --seed 0:2 --cluster v100=2,p100=2,k80=2 --set jobs=10";
    let document = succeed(folder.path(), &format!("{flags} --show"));
    fs::write(folder.path().join("mine.yaml"), &document).unwrap();
    // The conditions that end runs are shown even if the document leaves them out.
    let stop = "stop: {saturated: false, rounds: 10000, doublings: 4}";
    assert!(document.ends_with(&format!("\n# Runs are ended by `{stop}`.\n")), "{document}");
    let planned = apportion(folder.path(), "sweep mine.yaml --dry-run");
    assert!(String::from_utf8_lossy(&planned.stderr).contains(stop), "{planned:?}");
    let first = succeed(folder.path(), flags);
    let name = document.lines().nth(1).unwrap().trim_start_matches("name: ").trim_matches('"');
    let store = Store::open_to_read(&folder.path().join("results").join(name)).unwrap();
    assert_eq!(store.rows().unwrap().len(), 8);
    let second = succeed(folder.path(), "sweep mine.yaml");
    assert_eq!(first, second);
    refused(folder.path(), "sweep mine.yaml --seed 0:2", "goes with no flag that does");
    refused(folder.path(), "sweep --rate 1 --set jbos=3", "jbos");
    refused(folder.path(), "sweep --policy fifo --rate 1,x --cluster v100=1", "are no rates");
    refused(folder.path(), "sweep mine.yaml quick", "unexpected argument `quick`");
    refused(folder.path(), "sweep", "FILE|NAME");
    let shown = succeed(folder.path(), "sweep show quick");
    assert!(shown.starts_with("format: apportion/sweep-v1\nname: quick"), "{shown}");
}

/// A value that is given twice is run once, as the published scripts' second run would only overwrite the logs of the first.
#[test]
fn values_that_are_typed_twice_are_run_once() {
    let folder = TempDir::new().unwrap();
    let line = "gavel --show scripts/sweeps/run_sweep_static.py -l logs -j 24 -p gandiva max_min_fairness min_total_duration \
                min_total_duration_packed fifo gandiva --seeds 0 1 0 -c 36:36:36 36:36:36 -a 1 -b 3 -n 10 --generate-multi-gpu-jobs";
    let output = apportion(folder.path(), line);
    let (said, document) =
        (String::from_utf8(output.stderr).unwrap(), String::from_utf8(output.stdout).unwrap());
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("policy gandiva: it is given more than once, and run once"), "{said}");
    assert!(said.contains("jobs 3: several points are of so many, and run once"), "{said}");
    assert!(document.contains("static: [1, 2, 3]") && document.contains("seed: [0,1]"), "{document}");
    assert_eq!(document.matches("gandiva").count(), 1, "{document}");
    assert!(document.contains("cluster: {\"v100\":36"), "{document}");
    let line =
        "gavel --show run_sweep_continuous.py -s 1 -e 3 -l logs -p fifo --seeds 0 -c 2:2:2 -a 1 -b 1 -n 3";
    assert!(succeed(folder.path(), line).contains("rate: [1.0]"));
}

#[test]
fn one_folder_of_logs_keeps_the_sweep_file_of_every_command_line() {
    let folder = TempDir::new().unwrap();
    let line = |policy: &str| {
        format!("gavel run_sweep_static.py -l logs -p {policy} --seeds 0 -c 2:2:2 -a 4 -b 4 -n 1")
    };
    for policy in ["fifo", "fifo_perf", "fifo"] {
        succeed(folder.path(), &line(policy));
    }
    let kept = |name: &str| fs::read_to_string(folder.path().join("logs").join(name)).unwrap();
    assert!(kept("sweep.yaml").contains("policy: [\"fifo\"]") && kept("sweep-2.yaml").contains("fifo_perf"));
    assert!(!folder.path().join("logs/sweep-3.yaml").exists());
    let elsewhere = line("fifo").replace("gavel ", "gavel --out other ");
    refused(folder.path(), &elsewhere, "--out: results go to --log-dir, logs");
}

/// The published script writes the number of jobs into the name of a log by `%d`, and adds jobs until there are as many.
#[test]
fn logs_of_a_part_of_a_job_are_named_as_published() {
    let folder = TempDir::new().unwrap();
    let line = |bounds: &str| {
        format!(
            "gavel python3 -u scripts/sweeps/run_sweep_static.py -l logs -p fifo --seeds 0 -c 2:2:2 {bounds}"
        )
    };
    let logs = |expected: &[(&str, usize)]| {
        let seed = folder.path().join("logs/raw_logs/v100=2.p100=2.k80=2/fifo/seed=0");
        let mut there: Vec<(String, usize)> = fs::read_dir(seed)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let text = fs::read_to_string(&path).unwrap();
                let n_jobs =
                    text.lines().filter(|line| line.starts_with("Job ") && !line.contains("times")).count();
                (path.file_stem().unwrap().to_str().unwrap().to_owned(), n_jobs)
            })
            .collect();
        there.sort();
        let named = |(name, n_jobs): &(&str, usize)| (format!("num_total_jobs={name}"), *n_jobs);
        assert_eq!(there, expected.iter().map(named).collect::<Vec<_>>());
    };
    succeed(folder.path(), &line("-a 10 -b 21 -n 4"));
    logs(&[("10", 10), ("13", 14), ("17", 18), ("21", 21)]);
    // Of two runs with one name the last has it, as published, and this is noted. Logs of other command lines stay as they are.
    let output = apportion(folder.path(), &line("-a 3 -b 4 -n 3"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("num_total_jobs=3.log is the log of 3 and of 4 jobs in the published script"),
        "{said}"
    );
    logs(&[("10", 10), ("13", 14), ("17", 18), ("21", 21), ("3", 4), ("4", 4)]);
    refused(folder.path(), "gavel python -u nothing.py", "`nothing.py` is no script");
    refused(folder.path(), "gavel python -u", "no script is named");
}
