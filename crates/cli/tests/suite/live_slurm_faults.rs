//! Tests of a live scheduler on a real Slurm: nodes are drained, the controller is started anew. Skipped where Slurm is not
//! installed, or where its daemons may not be started.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::live_slurm_world::World;
use crate::slurm_cluster::Node;

const NODES: [Node<'_>; 3] = [
    ("v100-0", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
    ("v100-1", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
    ("v100-2", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
];

const SERVE: [&str; 7] =
    ["serve", "--executor", "slurm", "--policy", "max_min_fairness_perf", "--state=state", "--slurm-time=30"];

fn serve(world: &mut World, round_length: &str) {
    world.serve(&[&SERVE[..], &["--round-length", round_length]].concat());
}

/// Waits until a condition holds for the only job. Returns the job.
#[track_caller]
fn until(world: &World, holds: impl Fn(&Value) -> bool) -> Value {
    world.wait_for("what is to be the job's", |world| Some(world.jobs()["0"].clone()).filter(&holds))
}

fn servers(job: &Value) -> BTreeSet<String> {
    job["servers"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

const TRAINER: [&str; 4] = [env!("CARGO_BIN_EXE_apportion"), "trainer", "--speed", "20"];

#[test]
fn a_gang_leaves_a_node_that_slurm_drains() {
    let mut world = match World::start(&NODES) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: faults of a real Slurm: {lacking}"),
    };
    serve(&mut world, "6");
    world.submit(&["--scale-factor", "4", "--steps", "1000000"], &TRAINER);
    let before = servers(&until(&world, |job| job["state"] == "running"));
    assert_eq!(before.len(), 2);
    let drained = before.first().unwrap();
    world.slurm.said("scontrol", &["update", &format!("NodeName={drained}"), "State=DRAIN", "Reason=fan"]);
    let is_elsewhere = |job: &Value| job["state"] == "running" && !servers(job).contains(drained);
    let after = until(&world, is_elsewhere);
    assert!(after["starts"].as_u64() >= Some(2), "{after}");
}

/// Why Slurm gives this node no job, as the scheduler knows it.
fn closed(world: &World, node: &str) -> Value {
    let servers = world.served.as_ref().unwrap().json(world.folder.path(), &["servers"]);
    let is_it = |server: &&Value| server["server"] == node;
    servers.as_array().unwrap().iter().find(is_it).map_or(Value::Null, |server| server["closed"].clone())
}

#[test]
fn a_job_leaves_a_node_that_is_down_with_what_it_did_and_the_node_comes_back() {
    let mut world = match World::start(&NODES[..2]) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: faults of a real Slurm: {lacking}"),
    };
    serve(&mut world, "6");
    world.submit(&["--steps", "1000000"], &TRAINER);
    let before = until(&world, |job| job["state"] == "running" && job["steps"].as_f64() > Some(20.0));
    let lost = servers(&before).first().unwrap().clone();
    assert_eq!(closed(&world, &lost), Value::Null);
    world.slurm.lose_node(&lost);
    let says_why = |world: &World| closed(world, &lost).as_str().is_some_and(|why| why.contains("DOWN"));
    world.until("why the node gets no job", says_why);
    let after = until(&world, |job| job["state"] == "running" && !servers(job).contains(&lost));
    // Its shim ran on when its node was down, and has heard that it is to stop.
    assert!(after["checkpointed"].as_f64() > Some(20.0), "{after}");
    assert!(world.ask(&["servers"]).contains("Slurm gives it no job: "), "{}", world.ask(&["servers"]));
    world.slurm.start_node(&lost);
    world.until("the node", |world| closed(world, &lost).is_null());
}

#[test]
fn a_scheduler_is_started_right_after_the_controller() {
    let mut world = match World::start(&NODES[..1]) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: faults of a real Slurm: {lacking}"),
    };
    world.slurm.kill_controller();
    world.slurm.start_controller();
    // Slurm does not know at first whether its nodes are up. (A lease outlives the following steps on a slow machine, too.)
    serve(&mut world, "60");
    world.submit(&["--steps", "1000000"], &TRAINER);
    until(&world, |job| job["state"] == "running");
    drop(world.served.take());
    world.slurm.kill_controller();
    world.slurm.start_controller();
    serve(&mut world, "60");
    let job = until(&world, |job| job["state"] == "running");
    assert_eq!(job["starts"], 1, "{job}");
}

#[test]
fn a_gang_is_over_when_its_last_rank_is() {
    let mut world = match World::start(&NODES[..2]) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: faults of a real Slurm: {lacking}"),
    };
    // No test outlives this round, so nothing may become known only at its end.
    serve(&mut world, "600");
    let script = "while [ ! -e \"$APPORTION_CHECKPOINTS/go\" ]; do sleep 0.1; done";
    world.submit(&["--scale-factor", "4", "--steps", "10"], &["sh", "-c", script]);
    until(&world, |job| job["state"] == "running");
    let mut folders = fs::read_dir(world.folder.path().join("state/shared/checkpoints")).unwrap();
    let folder = folders.find_map(|entry| entry.ok().filter(|entry| entry.path().is_dir())).unwrap();
    assert!(folder.file_name().to_string_lossy().starts_with("0-"), "{folder:?}");
    fs::write(folder.path().join("go"), "").unwrap();
    let job = until(&world, |job| !job["ended_s"].is_null());
    assert_eq!(job["state"], "completed", "{job}");
}

#[test]
fn a_job_whose_batch_process_is_killed_waits_before_its_next_start() {
    let mut world = match World::start(&NODES[..1]) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: faults of a real Slurm: {lacking}"),
    };
    world.serve(&[&SERVE[..], &["--round-length", "60", "--back-off", "3600"]].concat());
    world.submit(&["--steps", "1000000"], &TRAINER);
    until(&world, |job| job["state"] == "running");
    let id = world.slurm.said("squeue", &["--noheader", "--format=%A"]);
    world.slurm.said("scancel", &["--batch", "--signal=KILL", id.trim()]);
    let job = until(&world, |job| !job["last_end"].is_null());
    assert!(job["last_end"].as_str().unwrap().contains("was ended from outside"), "{job}");
    let why = world.ask(&["why", "0"]);
    assert!(why.contains("is not started again for 3"), "{why}");
    assert_eq!(world.jobs()["0"]["starts"], 1, "{why}");
}

#[test]
fn a_submission_that_is_refused_once_is_made_again_on_the_same_node() {
    let mut world = match World::start(&NODES[..1]) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: faults of a real Slurm: {lacking}"),
    };
    let says = "sbatch: error: Batch job submission failed: Requested node configuration is not available";
    let arguments = [&SERVE[..], &["--round-length", "60"]].concat();
    world.serve_failing(&arguments, &[("sbatch", "--parsable", says)]);
    world.submit(&["--steps", "1000000"], &TRAINER);
    let job = until(&world, |job| job["state"] == "running");
    assert!(world.has_failed("sbatch") && job["starts"] == 1 && job["last_end"].is_null(), "{job}");
}

#[test]
fn a_scheduler_that_is_started_as_the_controller_ends_waits() {
    let mut world = match World::start(&NODES[..1]) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: faults of a real Slurm: {lacking}"),
    };
    let socket = "sbatch: error: slurm_msg_sendto: msg_type=4003: Unexpected missing socket error; allocation failure: Requested \
                  node configuration is not available";
    let reset = "slurm_load_partitions: Connection reset by peer";
    let arguments = [&SERVE[..], &["--round-length", "60"]].concat();
    world.serve_failing(&arguments, &[("sinfo", "", reset), ("sbatch", "--test-only", socket)]);
    let said = world.served.as_ref().unwrap().said_before().to_owned();
    assert!(world.has_failed("sinfo") && world.has_failed("sbatch"), "{said}");
    assert!(said.contains("Connection reset by peer; it is waited for"), "{said}");
}
