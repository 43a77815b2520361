//! Held jobs on a real Slurm that forgets jobs after a crash, and held jobs that users change. Skipped where Slurm is not
//! installed, or where its daemons may not be started.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::live_slurm_world::World;
use crate::slurm_cluster::Node;

const NODES: [Node<'_>; 2] = [
    ("v100-0", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
    ("v100-1", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
];

const SERVE: [&str; 9] = [
    "serve",
    "--executor",
    "slurm",
    "--front-door",
    "sbatch",
    "--policy",
    "max_min_fairness_perf",
    "--state=state",
    "--round-length=5",
];

const COMMENT: &str = "--comment=apportion: throughput=v100=3 steps=100000";

/// The resources of a job that waits while a node is drained.
const BIG: [&str; 3] = ["--nodes=2", "--gres=gpu:2", COMMENT];

/// Submits a held job that runs for a long time. Answers its number in Slurm.
fn submit(world: &World, more: &[&str]) -> String {
    let usual = ["--parsable", "--hold", "--output=/dev/null", "--mem=10", "--wrap=sleep 600"];
    let said = world.slurm.said("sbatch", &[&usual, more].concat()).trim().to_owned();
    assert!(said.parse::<u64>().is_ok(), "{more:?}: {said}");
    said
}

/// The scheduler's jobs, by their names.
fn jobs(world: &World) -> BTreeMap<String, Value> {
    world.jobs().into_values().map(|job| (job["name"].as_str().unwrap().to_owned(), job)).collect()
}

/// Whether there is a job with this name in this state.
fn is(world: &World, name: &str, state: &str) -> bool {
    jobs(world).get(name).is_some_and(|job| job["state"] == state)
}

/// The reasons for a job's state, in the scheduler's words.
fn why(world: &World, name: &str) -> String {
    world.ask(&["why", &jobs(world)[name]["job"].to_string()])
}

fn update(world: &World, id: &str, what: &str) {
    world.slurm.said("scontrol", &["update", &format!("JobId={id}"), what]);
}

fn drain(world: &World) {
    world.slurm.said("scontrol", &["update", "NodeName=v100-1", "State=DRAIN", "Reason=fan"]);
}

/// Copies a folder in place of another. False if files of it came and went meanwhile.
fn copy(from: &Path, to: &Path) -> bool {
    let _ = fs::remove_dir_all(to);
    Command::new("cp").arg("-r").args([from, to]).output().unwrap().status.success()
}

#[test]
fn a_number_that_a_killed_controller_gives_out_again_is_another_job() {
    let mut world = match World::start(&NODES) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: a real Slurm that forgets jobs: {lacking}"),
    };
    drain(&world);
    world.serve(&SERVE);
    // The first number is taken, so that there is a state to go back to.
    submit(&world, &["--comment=of-others"]);
    let (state, before) = (world.slurm.at("state"), world.slurm.at("state-before"));
    world.until("the controller's state", |_| {
        let saved = fs::read(state.join("job_state")).unwrap_or_default();
        String::from_utf8_lossy(&saved).contains("of-others") && copy(&state, &before)
    });
    let first = submit(&world, &[&BIG[..], &["--job-name=first"]].concat());
    let first_name = format!("first (Slurm {first})");
    world.until("the first to be taken in", |world| jobs(world).contains_key(&first_name));
    world.slurm.kill_controller();
    assert!(copy(&before, &state));
    world.slurm.start_controller();
    world.until("the controller", |world| !world.slurm.said("squeue", &["--noheader"]).is_empty());
    let second = submit(&world, &["--gres=gpu:1", COMMENT, "--job-name=second"]);
    assert_eq!(first, second, "the controller has forgotten the first");
    let second_name = format!("second (Slurm {second})");
    world.until("the second to run", |world| is(world, &second_name, "running"));
    world.until("the first to be lost", |world| !jobs(world)[&first_name]["ended_s"].is_null());
    let said = why(&world, &first_name);
    assert!(said.contains("Slurm forgot its job"), "{said}");
    assert_eq!(
        (&jobs(&world)[&first_name]["starts"], &jobs(&world)[&second_name]["starts"]),
        (&0.into(), &1.into())
    );
}

#[test]
fn jobs_that_users_move_or_change_are_let_go_with_the_reason() {
    let mut world = match World::start(&NODES) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: changed jobs of a real Slurm: {lacking}"),
    };
    world.slurm.said(
        "scontrol",
        &["create", "PartitionName=cpu", "Nodes=v100-0,v100-1", "MaxTime=INFINITE", "State=UP"],
    );
    drain(&world);
    world.serve(&SERVE);
    let named = |name: &'static str, more: &[&str]| {
        let id = submit(&world, &[more, &[&format!("--job-name={name}")]].concat());
        (format!("{name} (Slurm {id})"), id)
    };
    let said = |id: &str| world.slurm.said("scontrol", &["show", "job", id]);
    let several = named("several", &["--partition=cpu,main", "--gres=gpu:1", COMMENT]);
    let vast = named("vast", &["--cpus-per-task=64", "--gres=gpu:1", COMMENT]);
    world.until("a word on the one", |_| {
        said(&several.1).contains("not taken in: it may run in several partitions")
    });
    assert!(said(&several.1).contains(&format!("scontrol update JobId={} Partition=main", several.1)));
    world.until("a word on the other", |_| said(&vast.1).contains("not taken in: Slurm cannot start it"));
    assert!(!said(&vast.1).contains("operator"), "{}", said(&vast.1));
    let (moved, grown) = (named("moved", &BIG), named("grown", &BIG));
    world.until("both to be taken in", |world| {
        [&moved, &grown].iter().all(|(name, _)| jobs(world).contains_key(name))
    });
    world.until("the one to be put right", |world| {
        update(world, &several.1, "Partition=main");
        jobs(world).contains_key(&several.0)
    });
    update(&world, &moved.1, "Partition=cpu");
    update(&world, &grown.1, "gres=gpu:1");
    for (name, says) in
        [(&moved.0, "it was moved to the partition `cpu`"), (&grown.0, "it asks for 1 on each of 2")]
    {
        world.until("a changed job to be let go", |world| !jobs(world)[name]["ended_s"].is_null());
        let said = why(&world, name);
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn jobs_run_while_many_others_are_taken_in() {
    let mut world = match World::start(&NODES) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: many held jobs of a real Slurm: {lacking}"),
    };
    let n_jobs = 40;
    (0..n_jobs).for_each(|_| drop(submit(&world, &["--gres=gpu:1", COMMENT])));
    world.serve_slow(&SERVE, "scontrol", " uhold ", "0.3");
    world.until("a job to run", |world| jobs(world).values().any(|job| job["state"] == "running"));
    let n_taken = jobs(&world).len();
    assert!(n_taken < n_jobs, "all are taken in before one runs");
}
