//! A live scheduler that starts its jobs by a real Slurm, on nodes of three types. Skipped where Slurm is not installed, or
//! where its daemons may not be started.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::live_slurm_world::World;
use crate::slurm_cluster::{Node, Slurm};

const NODES: [Node<'_>; 3] = [
    ("v100-0", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
    ("p100-0", "CPUs=4 RealMemory=1000 Gres=gpu:p100:2"),
    ("k80-0", "CPUs=4 RealMemory=1000 Gres=gpu:k80:2"),
];

const SERVE: [&str; 9] = [
    "serve",
    "--executor",
    "slurm",
    "--policy",
    "max_min_fairness_perf",
    "--round-length",
    "6",
    "--state=state",
    "--slurm-time=10",
];

/// A Slurm job that is not over: its number, its run's job, its node, the number of its workers, and its lowest rank's name.
type Held = (u64, String, String, usize, String);

/// The Slurm jobs that are not over. Checks that no two are of one job, and that no node has more than its workers.
fn held(world: &World) -> Vec<Held> {
    let queue = world.slurm.said("squeue", &["--noheader", "--states=RUNNING", "--format=%A|%k"]);
    let held: Vec<Held> = queue
        .lines()
        .map(|line| {
            let (id, comment) = line.split_once('|').unwrap();
            let parts: Vec<&str> = comment.split(':').collect();
            let [_, _, node, name, n_ranks] = parts.as_slice() else { unreachable!("{line}") };
            let job = name.split('.').next().unwrap().to_owned();
            (
                id.trim().parse().unwrap(),
                job,
                (*node).to_owned(),
                n_ranks.trim().parse().unwrap(),
                (*name).to_owned(),
            )
        })
        .collect();
    let jobs: BTreeSet<&String> = held.iter().map(|(_, job, ..)| job).collect();
    assert_eq!(jobs.len(), held.len(), "a job twice: {queue}");
    for (name, _) in NODES {
        let n_held: usize = held.iter().filter(|held| held.2 == name).map(|held| held.3).sum();
        assert!(n_held <= 2, "{name}: {queue}");
    }
    held
}

/// Waits until a condition holds, and checks the Slurm jobs at each look.
#[track_caller]
fn until(world: &World, mut holds: impl FnMut(&World) -> bool) {
    world.until("what is to hold", |world| {
        let is_so = holds(world);
        if !is_so {
            held(world);
        }
        is_so
    });
}

fn is_running(world: &World, job: &str) -> bool {
    world.jobs()[job]["state"] == "running"
}

/// The output of a job's ranks, of all starts. A start that ends before its program prints anything has none.
fn printed(folder: &Path, job: &str) -> BTreeSet<String> {
    let nodes = fs::read_dir(folder.join("state/shared/nodes")).unwrap();
    let logs = nodes.flat_map(|node| fs::read_dir(node.unwrap().path().join("logs")).unwrap());
    let of_job = logs
        .map(|log| log.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(&format!("{job}.")));
    let lines = of_job.map(|path| fs::read_to_string(path).unwrap().trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

#[test]
fn slurm_carries_leases_through_the_ends_of_scheduler_and_controller() {
    let mut world = match World::start(&NODES) {
        Ok(world) => world,
        Err(lacking) => {
            eprintln!("skipped: a live scheduler on a real Slurm: {lacking}");
            return;
        }
    };
    world.serve(&SERVE);
    let trainer = [env!("CARGO_BIN_EXE_apportion"), "trainer", "--speed", "v100=40,p100=30,k80=20"];
    let singles: Vec<String> = (0..5).map(|_| world.submit(&["--steps", "600"], &trainer)).collect();
    let gang = world.submit(&["--scale-factor", "2", "--steps", "400"], &trainer);
    let says = "echo $RANK of $WORLD_SIZE on $CUDA_VISIBLE_DEVICES";
    let telling = world.submit(&["--scale-factor", "2", "--steps", "10"], &["sh", "-c", says]);
    until(&world, |world| singles.iter().filter(|job| is_running(world, job)).count() >= 2);

    // The scheduler ends at once, and is back: no running job is touched.
    let before: BTreeSet<u64> = held(&world).iter().map(|held| held.0).collect();
    drop(world.served.take());
    world.serve(&SERVE);
    let after: BTreeSet<u64> = held(&world).iter().map(|held| held.0).collect();
    assert!(before.intersection(&after).next().is_some(), "{before:?}, then {after:?}");
    until(&world, |world| singles.iter().any(|job| is_running(world, job)));

    world.slurm.end_controller();
    world.slurm.start_controller();
    until(&world, |world| held(world).len() > 1);

    // A job that an administrator cancels is not at fault, and is started again.
    let another = |world: &World| held(world).into_iter().find(|held| held.1 != telling);
    let victim = another(&world).unwrap();
    world.slurm.said("scancel", &[&victim.0.to_string()]);
    // Nor is a Slurm job at fault whose batch process is killed; `slurm_job` of the live crate tests what becomes of its programs.
    until(&world, |world| another(world).is_some());
    let (_, _, node, _, name) = another(&world).unwrap();
    let folder = format!("{}/state/shared/nodes/{node}/ranks/{name}", world.folder.path().display());
    world.slurm.said("pkill", &["-9", "-f", &format!("shim --each {folder}")]);
    let cancelled = singles.last().unwrap();
    world.ask(&["cancel", cancelled]);
    until(&world, |world| world.jobs().values().all(|job| !job["ended_s"].is_null()));

    let states: BTreeMap<String, Value> =
        world.jobs().into_iter().map(|(job, view)| (job, view["state"].clone())).collect();
    for (job, state) in &states {
        assert_eq!(state, if job == cancelled { "cancelled" } else { "completed" }, "job {job}: {states:?}");
    }
    let ranks = printed(world.folder.path(), &telling);
    assert_eq!(ranks, BTreeSet::from(["0 of 2 on 0".to_owned(), "1 of 2 on 1".to_owned()]));
    until(&world, |world| held(world).is_empty());
    assert!(states.contains_key(&gang));
}

#[test]
fn a_shadow_compares_waits_and_touches_nothing() {
    let mut slurm = match Slurm::start(&NODES[..1]) {
        Ok(slurm) => slurm,
        Err(lacking) => {
            eprintln!("skipped: a shadow beside a real Slurm: {lacking}");
            return;
        }
    };
    let folder = TempDir::new().unwrap();
    let shadow = ["serve", "--shadow", "slurm", "--policy", "fifo_perf", "--round-length=2", "--state=state"];
    let mut shadow = slurm.client(env!("CARGO_BIN_EXE_apportion"), &shadow);
    let mut shadow = shadow.current_dir(folder.path()).spawn().unwrap();
    let record = folder.path().join("state/shadow.json");
    slurm.wait_for(|_| record.exists()).unwrap();
    // Both ask for a worker and hold a processor each; the second one waits in Slurm for all four processors.
    for (name, n_cpus) in [("one", "1"), ("all", "4")] {
        let flags = [format!("--job-name={name}"), format!("--cpus-per-task={n_cpus}")];
        let flags =
            ["--gres=gpu:1", "--mem=10", "--output=/dev/null", "--wrap=sleep 8", &flags[0], &flags[1]];
        let said = slurm.said("sbatch", &flags);
        assert!(said.contains("Submitted"), "{said}");
    }
    let report = |slurm: &Slurm| -> Value {
        let arguments = ["shadow", "--state=state", "--format=json"];
        let output = slurm
            .client(env!("CARGO_BIN_EXE_apportion"), &arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    slurm.wait_for(|slurm| report(slurm)["averages"]["n_ended"] == 2).unwrap();
    let report = report(&slurm);
    let wait = |name: &str, place: &str| -> f64 {
        let jobs = report["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["name"] == name).unwrap()[place].as_f64().unwrap()
    };
    // Slurm has one run after the other; the shadow, which counts workers alone, has both at once.
    assert!(wait("all", "wait_there_s") >= 7.0, "{report}");
    assert!(wait("all", "wait_here_s") < wait("all", "wait_there_s"), "{report}");
    assert_eq!(report["averages"]["n_jobs"], 2);
    Command::new("kill").arg(shadow.id().to_string()).status().unwrap();
    assert!(shadow.wait().unwrap().success());
}

#[test]
fn a_shadow_knows_tasks_and_names_and_what_may_not_run_yet() {
    let mut slurm = match Slurm::start(&NODES[..1]) {
        Ok(slurm) => slurm,
        Err(lacking) => {
            eprintln!("skipped: tasks and names in a shadow of a real Slurm: {lacking}");
            return;
        }
    };
    let all = "Nodes=v100-0";
    slurm.said("scontrol", &["create", "PartitionName=other", all, "MaxTime=INFINITE", "State=UP"]);
    let usual = ["--mem=10", "--output=/dev/null", "--parsable", "--wrap=sleep 600"];
    let submit = |slurm: &Slurm, more: &[&str]| {
        let said = slurm.said("sbatch", &[&usual, more].concat()).trim().to_owned();
        assert!(said.parse::<u64>().is_ok(), "{more:?}: {said}");
        said
    };
    // A job of another partition has one of the two workers.
    let elsewhere = submit(&slurm, &["--gres=gpu:1", "--partition=other"]);
    slurm
        .wait_for(|slurm| {
            slurm.said("squeue", &["--noheader", "--format=%T", "--jobs", &elsewhere]).contains("RUN")
        })
        .unwrap();
    let folder = TempDir::new().unwrap();
    let shadow = ["serve", "--shadow", "slurm", "--policy", "fifo_perf", "--round-length=2", "--state=state"];
    let mut shadow = slurm.client(env!("CARGO_BIN_EXE_apportion"), &shadow);
    let variables = [("SQUEUE_USERS", "nobody"), ("SQUEUE_STATES", "CD")];
    let mut shadow = shadow.envs(variables).current_dir(folder.path()).spawn().unwrap();
    let record = folder.path().join("state/shadow.json");
    slurm.wait_for(|_| record.exists()).unwrap();
    let first = submit(&slurm, &["--gres=gpu:1", "--job-name=first", "--cpus-per-task=2"]);
    let forged = format!("--job-name=x\n{first}|N/A|root|COMPLETED|None|2020-01-01T00:00:00");
    submit(&slurm, &["--gres=gpu:1", &forged, "--array=0-2", "--cpus-per-task=4"]);
    let after = format!("--dependency=afterok:{first}");
    let [after, held] = [&*after, "--hold"].map(|flag| submit(&slurm, &["--gres=gpu:1", flag]));
    let jobs = |slurm: &Slurm| -> Vec<Value> {
        let arguments = ["shadow", "--state=state", "--format=json"];
        let output =
            slurm.client(env!("CARGO_BIN_EXE_apportion"), &arguments).current_dir(folder.path()).output();
        let report: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        report["jobs"].as_array().unwrap().clone()
    };
    slurm.wait_for(|slurm| jobs(slurm).len() >= 4).unwrap();
    // They are seen together, or not at all.
    std::thread::sleep(std::time::Duration::from_secs(8));
    let shown = jobs(&slurm);
    let tasks = |job: &Value| {
        (job["name"].as_str().unwrap().chars().take(1).collect::<String>(), job["task"].as_u64())
    };
    let named: Vec<_> = shown.iter().map(tasks).collect();
    let x = || "x".to_owned();
    let expected = [("f".to_owned(), None), (x(), Some(0)), (x(), Some(1)), (x(), Some(2))];
    assert_eq!(named, expected, "neither what waits for {after} nor {held}: {shown:?}");
    assert!(shown[0]["completion_there_s"].is_null() && shown[0]["waits_there"] == false, "{shown:?}");
    assert_eq!(shown[1]["name"].as_str().unwrap().lines().count(), 1, "{shown:?}");
    // Only the first one's worker is there for them.
    assert_eq!(shown.iter().filter(|job| job["waits_here"] == true).count(), 3, "{shown:?}");
    Command::new("kill").arg(shadow.id().to_string()).status().unwrap();
    assert!(shadow.wait().unwrap().success());
}

#[test]
fn a_partition_that_cannot_be_the_cluster_is_refused_with_its_reason() {
    let nodes = [("a100-0", "CPUs=4 RealMemory=1000 Gres=gpu:a100:2")];
    let Ok(slurm) = Slurm::start(&nodes) else {
        eprintln!("skipped: partitions of a real Slurm");
        return;
    };
    let folder = TempDir::new().unwrap();
    let refused = |more: &[&str]| {
        let mut command = slurm.client(env!("CARGO_BIN_EXE_apportion"), &SERVE);
        let output = command.args(more).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        said
    };
    for (more, says) in [
        (&[][..], "Slurm calls the GPUs of node a100-0 `a100`"),
        (&["--partition", "other"], "no partition `other`; its partitions are main"),
        (&["--slurm-types", "a100=h100"], "no worker type `h100`"),
        (&["--slurm-types", "a100=v100", "--sbatch", "--reservation=nothing"], "Slurm would not take a job"),
        (&["--slurm-types", "a100=v100", "--cluster", "v100=2"], "the cluster is a partition of Slurm"),
        (
            &["--slurm-types", "a100=v100", "--sbatch=--array=0-3"],
            "--sbatch --array=0-3: `sbatch --array` cannot",
        ),
        (
            &["--slurm-types", "a100=v100", "--node-program", "/nonexistent"],
            "--node-program /nonexistent: No such file",
        ),
        (
            &["--slurm-types", "a100=v100", "--node-program", "/etc/passwd"],
            "/etc/passwd: this file cannot be executed",
        ),
        (&["--slurm-types", "a100=v100", "--node-program", "/usr"], "--node-program /usr: this is no file"),
        (&["--slurm-types", "a100=v100", "--shared", "nowhere"], "--shared nowhere: there is no such folder"),
    ] {
        let said = refused(more);
        assert!(said.contains(says), "{more:?}: {said}");
    }
    assert!(!folder.path().join("nowhere").exists());
}
