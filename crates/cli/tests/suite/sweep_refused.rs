//! Sweeps that are refused, warned of or only shown: the messages and their places.

use std::fs;
use std::process::{Command, Output};

use super::sweep::{TINY, apportion, complaint, folder_with, succeed};

#[test]
fn bad_input_is_one_complaint_with_its_place() {
    let folder = folder_with("tiny.yaml", &TINY.replace("isolated]", "isolatd]"));
    let said = complaint(folder.path(), &["sweep", "tiny.yaml"]);
    assert!(said.contains("unknown policy `isolatd`"), "{said}");
    assert!(said.contains("--> tiny.yaml:8:29\n"), "{said}");
    assert!(!folder.path().join("results").exists(), "nothing is written");
    for (line, instead, expected, place) in [
        ("k80: 2", "k90: 2", "worker type `k90`", "tiny.yaml:4:12"),
        (
            "generator: gavel, ",
            "generator: gavel, multi_worker: true, ",
            "can run on no worker type",
            "tiny.yaml:4:12",
        ),
        (
            "duration: 2h}",
            "duration: 2h}\n  throughputs: osdi21",
            "unknown throughputs `osdi21`",
            "tiny.yaml:6:16",
        ),
    ] {
        fs::write(folder.path().join("tiny.yaml"), TINY.replace(line, instead)).unwrap();
        for more in [&[][..], &["--show"]] {
            let said = complaint(folder.path(), &[&["sweep", "tiny.yaml"], more].concat());
            assert!(said.contains(expected) && said.contains(place), "{said}");
        }
    }
    fs::write(folder.path().join("tiny.yaml"), TINY.replace("name:", "nam:")).unwrap();
    let said = complaint(folder.path(), &["sweep", "show", "tiny.yaml"]);
    assert!(said.contains("unknown key `nam`") && said.contains("tiny.yaml:2:1"), "{said}");
    let said = complaint(folder.path(), &["sweep", "qick"]);
    assert!(said.contains("unknown sweep `qick`") && said.contains("did you mean `quick`?"), "{said}");
    let said = complaint(folder.path(), &["sweep", "quick", "--only", "policy=fifi"]);
    assert!(said.contains("axis `policy` has no value `fifi`"), "{said}");
    let said = complaint(folder.path(), &["results", "show", "nowhere"]);
    assert!(said.contains("nowhere: there is no such file or folder"), "{said}");
    let flags = ["sweep", "--policy", "fifo", "--rate", "1", "--seed", "0"];
    let said = complaint(folder.path(), &[&flags[..], &["--cluster", "v100=2"]].concat());
    assert!(said.contains("arrivals would never stop") && said.contains("`--set jobs=200`"), "{said}");
    let said = complaint(folder.path(), &[&flags[..], &["--set", "jobs=3"]].concat());
    assert!(said.contains("no cluster is given") && said.contains("`--cluster v100=36,"), "{said}");
    let said = complaint(folder.path(), &["sweep", "--policy", "fifo", "--cluster", "v100=8"]);
    assert!(said.contains("`--rate 0.2:1.0:5 --set jobs=200`, or `--trace jobs.csv`"), "{said}");
    let other = ["simulate", "--policy", "fifo", "--cluster", "a100=8", "--rate", "1", "--jobs", "3"];
    for other in
        [&other[..], &["sweep", "--policy", "fifo", "--cluster", "a100=8", "--rate", "1", "--set", "jobs=3"]]
    {
        let said = complaint(folder.path(), other);
        assert!(said.contains("`a100` is not in throughputs `osdi20`, expected one of `v100`"), "{said}");
        assert!(said.contains("docs/study.md#your-accelerators"), "{said}");
    }
    let twice = ["--set", "jobs=3", "--set", "cluster=\"v100=2,v100=3\""];
    let said = complaint(folder.path(), &[&flags[..], &twice].concat());
    assert!(said.contains("worker type `v100` is named twice"), "{said}");
    let simulate = ["simulate", "--policy", "fifo", "--cluster", "v100=2"];
    let with = |more: &[&'static str]| complaint(folder.path(), &[&simulate[..], more].concat());
    assert!(with(&["--rate", "1"]).contains("arrivals would never stop"));
    assert!(with(&["--rate", "-1", "--jobs", "3"]).contains("'-1'"));
    assert!(with(&["--rate=nan", "--jobs", "3"]).contains("`nan` is no number"));
    assert!(with(&["--trace", "none.csv"]).contains("there is no such file"));
    assert!(with(&["--rate", "1", "--static", "3"]).contains("cannot be used with"));
    fs::write(folder.path().join("saved.json"), "{}").unwrap();
    assert!(
        with(&["--static", "3", "--checkpoint", "saved.json"]).contains("is not a simulation that was saved")
    );
}

#[test]
fn a_dry_run_says_what_would_be_run() {
    let folder = folder_with("tiny.yaml", TINY);
    let output =
        succeed(folder.path(), &["sweep", "tiny.yaml", "--only", "seed=1", "--dry-run", "--format", "csv"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 13, "{text}");
    assert!(text.starts_with("policy,rate,seed,result,digest\nfifo,0.5,1,to run,"), "{text}");
    assert!(!folder.path().join("results").exists());
}

/// A fault of a run is found before any is made, with the place in the sweep and a remedy.
#[test]
fn a_dry_run_finds_prices_that_are_missing_and_jobs_that_a_policy_cannot_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let head = "format: apportion/sweep-v1\nname: t\nrun:\n  jobs: 3\n  rate: 1\n";
    let cost = "max_sum_throughput_normalized_by_cost_perf";
    let refused = |run: &str, axes: &str| {
        write("t.yaml", &format!("{head}{run}axes:\n  {axes}\n"));
        complaint(folder.path(), &["sweep", "t.yaml", "--dry-run"])
    };
    let policies = |names: &str| format!("policy: [fifo, {names}]");
    let two = "  cluster: {v100: 4, k80: 4}\n";
    let said = refused(two, &policies(cost));
    assert!(said.contains(&format!("`{cost}` reads prices, and there is none of `v100`, `k80`")), "{said}");
    assert!(said.contains("t.yaml:") && said.contains("help: `prices: {"), "{said}");
    let said = refused(&format!("{two}  prices: {{v100: 2}}\n"), &policies(cost));
    assert!(said.contains("none of `k80`") && said.contains("t.yaml:7:"), "{said}");
    let gangs = "  cluster: {v100: 8, k80: 8}\n  multi_worker: true\n";
    let said = refused(gangs, &policies("allox"));
    assert!(said.contains("policy `allox` gives each job one worker"), "{said}");
    assert!(said.contains("t.yaml:9:") && said.contains("`skip`"), "{said}");
    let said = refused("  cluster: {v100: 4}\n  multi_worker: true\n", &policies("isolated"));
    assert!(
        said.contains("scale factor 8 can run on no worker type") && said.contains("as many workers"),
        "{said}"
    );
    let cells = "  cluster: {v100: 8, k80: 8}\n  servers: {v100: 1, k80: 1}\n  multi_worker: true\n";
    let said = refused(cells, &policies("random_cells"));
    assert!(
        said.contains("policy `random_cells` could never place `") && said.contains("`servers` says"),
        "{said}"
    );
    // A complete sweep is not refused.
    write(
        "t.yaml",
        &format!(
            "{head}{two}  prices: {{v100: 2, k80: 1}}\naxes:\n  {}\n",
            policies(&format!("allox, {cost}"))
        ),
    );
    succeed(folder.path(), &["sweep", "t.yaml", "--dry-run"]);
    assert!(!folder.path().join("results").exists());
}

#[test]
fn what_is_odd_is_a_line_of_warning_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("jobs.csv", "job_type,total_steps\nA3C,1000\nA3C,2000\n");
    let lines = |output: &Output| -> Vec<String> {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect()
    };
    let flags = ["simulate", "--policy", "fifo", "--cluster", "v100=2", "--trace", "jobs.csv"];
    let odd = apportion(folder.path(), &[&flags[..], &["--servers", "v100=8"]].concat()).output().unwrap();
    assert_eq!(odd.status.code(), Some(0));
    let said = lines(&odd);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("all 2 jobs of the trace `jobs.csv` arrive at once"), "{said:?}");
    assert!(said[1].contains("8 workers of `v100` on a server, and the cluster has 2"), "{said:?}");
    let quiet =
        apportion(folder.path(), &[&flags[..], &["--servers", "v100=8", "--quiet"]].concat()).output();
    assert_eq!(lines(&quiet.unwrap()), Vec::<String>::new());
    write(
        "s.yaml",
        "format: apportion/sweep-v1\nname: s\nrun: {cluster: {v100: 2}, trace: jobs.csv, servers: {v100: 8}}\n\
         axes: {policy: [fifo, isolated], seed: [0, 1]}\n",
    );
    assert_eq!(
        lines(&succeed(folder.path(), &["sweep", "s.yaml", "--dry-run"])),
        said,
        "once, not once a run"
    );
    write("jobs.csv", "job_type,total_steps,arrival\nA3C,1000,0\nA3C,2000,60\n");
    assert_eq!(lines(&apportion(folder.path(), &flags).output().unwrap()), Vec::<String>::new());
}

#[test]
fn paths_in_a_sweep_start_in_its_folder_and_other_files_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("jobs.csv", "job_type,total_steps\nA3C,1000\n");
    write("prices.csv", "time,v100\n0,2\n");
    let secret = "root:x:0:0:root:/root:/bin/bash\nhunter2: hunter2\n";
    write("secret", secret);
    let sweep = |run: &str| {
        let text = format!(
            "format: apportion/sweep-v1\nname: s\nrun: {{cluster: {{v100: 1}}, {run}}}\naxes: {{seed: [0]}}\n"
        );
        write("s.yaml", &text);
        let document = folder.path().join("s.yaml").display().to_string();
        let elsewhere = tempfile::tempdir().unwrap();
        let command = Command::new(env!("CARGO_BIN_EXE_apportion"))
            .args(["sweep", &document, "--dry-run"])
            .current_dir(elsewhere.path())
            .output()
            .unwrap();
        (command.status.code(), String::from_utf8_lossy(&command.stderr).into_owned())
    };
    let (code, said) = sweep("policy: fifo, trace: jobs.csv, prices: prices.csv");
    assert_eq!(code, Some(0), "{said}");
    for run in [
        "policy: fifo, trace: secret",
        "policy: fifo, trace: jobs.csv, prices: secret",
        "policy: secret, trace: jobs.csv",
        "policy: ./secret, trace: jobs.csv",
        "policy: fifo, trace: jobs.csv, throughputs: secret",
    ] {
        let (code, said) = sweep(run);
        assert_eq!(code, Some(2), "{run}: {said}");
        assert!(said.contains("secret") && said.contains("this is no "), "{run}: {said}");
        assert!(!said.contains("root") && !said.contains("hunter2"), "{run}: {said}");
        assert!(said.contains("\n  help: "), "{run}: {said}");
    }
    // A file that begins like a trace is shown as one.
    write("jobs.csv", "job_type,total_steps\nA3C,many\n");
    let (_, said) = sweep("policy: fifo, trace: jobs.csv");
    assert!(said.contains("jobs.csv:2:5") && said.contains("A3C,many"), "{said}");
}

#[test]
fn prices_and_servers_of_a_type_that_another_cluster_has_are_taken() {
    let text = "format: apportion/sweep-v1\nname: t\nrun: {jobs: 3, rate: 1, prices: {v100: 2, k80: 1}, servers: {k80: 2}}\n\
                axes: {policy: [fifo], cluster: [{v100: 4}, {v100: 2, k80: 2}]}\n";
    let folder = folder_with("t.yaml", text);
    succeed(folder.path(), &["sweep", "t.yaml", "--dry-run"]);
    // A worker type that no cluster has is refused at its place.
    fs::write(folder.path().join("t.yaml"), text.replace("k80: 1}, s", "p100: 1}, s")).unwrap();
    let said = complaint(folder.path(), &["sweep", "t.yaml", "--dry-run"]);
    assert!(said.contains("no worker type `p100`") && said.contains("t.yaml:3:"), "{said}");
}

#[test]
fn a_field_that_is_given_as_it_is_anyway_makes_no_other_study() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = ["sweep", "--name", "t", "--policy", "fifo", "--rate", "1", "--cluster", "v100=2"];
    let sweep = [&sweep[..], &["--set", "measure=[1,3]"]].concat();
    succeed(folder.path(), &sweep);
    let with = |set: &'static str| [&sweep[..], &["--set", set]].concat();
    for set in ["jobs=null", "semantics=corrected", "round_length=6min"] {
        let output = succeed(folder.path(), &with(set));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("1 of 1 runs are in results/t already"), "{set}: {said}");
    }
    let said = complaint(folder.path(), &with("round_length=5min"));
    assert!(said.contains("other fixed fields: `round_length` is 360 there, 300 now"), "{said}");
    let said = complaint(folder.path(), &with("stop.wall=20s"));
    assert!(said.contains("`stop` is no field of a run") && said.contains("beside `run:`"), "{said}");
}
