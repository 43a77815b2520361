//! Tests of a live scheduler on a real Slurm: nodes are drained, the controller is started anew. Skipped where Slurm is not
//! installed, or where its daemons may not be started.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::live::Served;
use crate::slurm_cluster::{Node, Slurm};

const NODES: [Node<'_>; 3] = [
    ("v100-0", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
    ("v100-1", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
    ("v100-2", "CPUs=4 RealMemory=1000 Gres=gpu:v100:2"),
];

const SERVE: [&str; 7] =
    ["serve", "--executor", "slurm", "--policy", "max_min_fairness_perf", "--state=state", "--slurm-time=30"];

/// How often something that must come is looked for.
const LOOKS: usize = 1200;

/// A cluster and its scheduler.
struct World {
    slurm: Slurm,
    folder: TempDir,
    served: Option<Served>,
}

impl World {
    /// The error says what this machine lacks for a Slurm.
    fn start(nodes: &[Node<'_>]) -> Result<Self, String> {
        let slurm = Slurm::start(nodes)?;
        Ok(Self { slurm, folder: TempDir::new().unwrap(), served: None })
    }

    fn serve(&mut self, round_length: &str) {
        let conf = self.slurm.at("slurm.conf");
        let arguments = [&SERVE[..], &["--round-length", round_length]].concat();
        self.served = Some(Served::start_with(self.folder.path(), &arguments, &[("SLURM_CONF", &conf)]));
    }

    fn submit(&self, arguments: &[&str], program: &[&str]) {
        let usual = ["--quiet", "submit", "--job-type", "ResNet-18 (batch size 64)"];
        let served = self.served.as_ref().unwrap();
        served.ask(self.folder.path(), &[&usual, arguments, &["--"], program].concat());
    }

    /// The only job.
    fn job(&self) -> Value {
        self.served.as_ref().unwrap().json(self.folder.path(), &["jobs"])[0].clone()
    }

    /// Waits until something holds of the only job. Answers the job.
    #[track_caller]
    fn until(&self, holds: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..LOOKS {
            let job = self.job();
            if holds(&job) {
                return job;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("it does not come: {}", self.job());
    }
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
    world.serve("6");
    world.submit(&["--scale-factor", "4", "--steps", "1000000"], &TRAINER);
    let before = servers(&world.until(|job| job["state"] == "running"));
    assert_eq!(before.len(), 2);
    let drained = before.first().unwrap();
    world.slurm.said("scontrol", &["update", &format!("NodeName={drained}"), "State=DRAIN", "Reason=fan"]);
    let is_elsewhere = |job: &Value| job["state"] == "running" && !servers(job).contains(drained);
    let after = world.until(is_elsewhere);
    assert!(after["starts"].as_u64() >= Some(2), "{after}");
}

#[test]
fn a_scheduler_is_started_right_after_the_controller() {
    let mut world = match World::start(&NODES[..1]) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: faults of a real Slurm: {lacking}"),
    };
    world.slurm.kill_controller();
    world.slurm.start_controller();
    // Slurm does not know at first whether its nodes are up. (A lease outlives what follows on a slow machine, too.)
    world.serve("60");
    world.submit(&["--steps", "1000000"], &TRAINER);
    world.until(|job| job["state"] == "running");
    drop(world.served.take());
    world.slurm.kill_controller();
    world.slurm.start_controller();
    world.serve("60");
    let job = world.until(|job| job["state"] == "running");
    assert_eq!(job["starts"], 1, "{job}");
}

#[test]
fn a_gang_is_over_when_its_last_rank_is() {
    let mut world = match World::start(&NODES[..2]) {
        Ok(world) => world,
        Err(lacking) => return eprintln!("skipped: faults of a real Slurm: {lacking}"),
    };
    // (a round that no test outlives: nothing is known only at its end)
    world.serve("600");
    let script = "while [ ! -e \"$APPORTION_CHECKPOINTS/go\" ]; do sleep 0.1; done";
    world.submit(&["--scale-factor", "4", "--steps", "10"], &["sh", "-c", script]);
    world.until(|job| job["state"] == "running");
    let mut folders = fs::read_dir(world.folder.path().join("state/shared/checkpoints")).unwrap();
    let folder = folders.find_map(|entry| entry.ok().filter(|entry| entry.path().is_dir())).unwrap();
    assert!(folder.file_name().to_string_lossy().starts_with("0-"), "{folder:?}");
    fs::write(folder.path().join("go"), "").unwrap();
    let job = world.until(|job| !job["ended_s"].is_null());
    assert_eq!(job["state"], "completed", "{job}");
}
