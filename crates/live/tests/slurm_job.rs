//! The batch process of a Slurm job and its shims as real processes, without a Slurm.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use apportion::{Seconds, Steps};
use apportion_live::agent::RankStart;
use apportion_live::protocol::{JobNumber, Program, Run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use support::{lives, wait_for};

/// The shim and the pretend trainer.
const PROGRAM: &str = env!("CARGO_BIN_EXE_apportion-shim");

/// A lease, or a grace, that no test outlives.
const LONG: f64 = 300.0;

/// A Slurm job of some ranks in a folder of its own.
struct Job {
    folder: TempDir,
    batch: Option<Child>,
    n_ranks: u32,
}

impl Job {
    /// Starts ranks whose lease counts from when their shims read it. The batch process leads a group, as Slurm's does.
    fn start(n_ranks: u32, lease: f64, command: &[&str]) -> Self {
        Self::start_in(n_ranks, lease, command, |_| {})
    }

    /// Starts ranks as [`start`](Self::start) does, after the first rank's folder has been `prepared`.
    fn start_in(n_ranks: u32, lease: f64, command: &[&str], prepared: impl Fn(&Path)) -> Self {
        let mut job = Self { folder: TempDir::new().unwrap(), batch: None, n_ranks };
        for rank in 0..n_ranks {
            job.make(rank, lease, command);
        }
        prepared(&job.rank(0));
        let mut batch = Command::new(PROGRAM);
        batch.args(["shim", "--each"]).args((0..n_ranks).map(|rank| job.rank(rank)));
        batch.env("CUDA_VISIBLE_DEVICES", "7,8").stdin(Stdio::null()).process_group(0);
        job.batch = Some(batch.spawn().unwrap());
        job
    }

    fn make(&self, rank: u32, lease: f64, command: &[&str]) {
        let program = Program {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            directory: None,
            environment: BTreeMap::new(),
        };
        let start = RankStart {
            run: Run { job: JobNumber(3), incarnation: 1 },
            submission: None,
            rank,
            worker: 9,
            local_rank: rank,
            ranks_here: self.n_ranks,
            world_size: self.n_ranks,
            first_server: "here".to_owned(),
            total_steps: Steps::new(1e9),
            program,
            until: Seconds::new(lease),
            grace: Seconds::new(LONG),
        };
        let checkpoints = self.folder.path().join("checkpoints");
        let by = json!({"slurm": {"first": 0, "place": rank}});
        let start = json!({"rank": start, "by": by, "checkpoints": checkpoints, "worker_type": "fast"});
        let folder = self.rank(rank);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("start.json"), start.to_string()).unwrap();
        fs::write(folder.join("lock"), "").unwrap();
        fs::write(folder.join("output.log"), "").unwrap();
    }

    fn rank(&self, rank: u32) -> PathBuf {
        self.folder.path().join(format!("3.1.{rank}"))
    }

    fn read(&self, rank: u32, name: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.rank(rank).join(name)).ok()?).ok()
    }

    fn pid(&self, rank: u32) -> i32 {
        wait_for("the program", || {
            i32::try_from(self.read(rank, "shim.json")?["program"]["pid"].as_i64()?).ok()
        })
    }

    fn speaks(&self, rank: u32) {
        wait_for("its progress", || self.read(rank, "progress.json"));
    }

    fn end(&self, rank: u32) -> Value {
        wait_for("its end", || self.read(rank, "end.json"))["end"].clone()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.batch.as_ref().unwrap().id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let mut batch = self.batch.take().unwrap();
        let _ = batch.kill();
        let _ = batch.wait();
    }
}

const TRAINER: [&str; 4] = [PROGRAM, "trainer", "--speed", "100"];

#[test]
fn what_outlives_the_batch_process_is_killed() {
    let job = Job::start(2, LONG, &TRAINER);
    let programs = [0, 1].map(|rank| job.pid(rank));
    (0..2).for_each(|rank| job.speaks(rank));
    assert!(programs.iter().all(|pid| lives(*pid)));
    job.signal(Signal::KILL);
    for (rank, pid) in (0..).zip(programs) {
        let cut = json!({"why": "the process of its Slurm job was killed", "is_failure": true});
        assert_eq!(job.end(rank), json!({"cut": cut}), "its grace is long, and its workers may be another's");
        assert!(!lives(pid));
    }
}

#[test]
fn a_signal_before_the_time_limit_lets_programs_save() {
    let mut job = Job::start(2, LONG, &TRAINER);
    (0..2).for_each(|rank| job.speaks(rank));
    job.signal(Signal::USR1);
    for rank in 0..2 {
        assert_eq!(job.end(rank), json!({"stopped": 0}));
        assert_eq!(job.read(rank, "stopping.json").unwrap()["why"], "signal");
        let progress = job.read(rank, "progress.json").unwrap();
        assert_eq!((&progress["steps"], &progress["state"]), (&progress["checkpointed"], &json!("stopped")));
    }
    assert!(job.batch.as_mut().unwrap().wait().unwrap().success());
}

#[test]
fn a_lease_counts_from_when_it_is_read() {
    let job = Job::start(1, 0.2, &TRAINER);
    assert_eq!(job.end(0), json!({"stopped": 0}));
    assert_eq!(job.read(0, "stopping.json").unwrap()["why"], "lease");
    // The node has been up for longer than the lease is long: had the number been an instant, it would have been over at once.
    let progress = job.read(0, "progress.json").unwrap();
    assert!(progress["seconds"].as_f64().unwrap() > 0.0, "{progress}");
}

#[test]
fn each_rank_sees_its_own_worker_of_the_job_s() {
    let job = Job::start(2, LONG, &["/bin/sh", "-c", "echo $RANK on $CUDA_VISIBLE_DEVICES"]);
    for (rank, worker) in [(0, 7), (1, 8)] {
        assert_eq!(job.end(rank), json!({"exit": 0}));
        let said = fs::read_to_string(Path::join(&job.rank(rank), "output.log")).unwrap();
        assert_eq!(said, format!("{rank} on {worker}\n"));
    }
}

#[test]
fn the_rank_of_a_shim_that_is_killed_is_over_at_once() {
    // A process that ignores the end of its parent is left beside the program.
    let script = "trap '' TERM; sleep 300 & echo $! >\"$APPORTION_LEASE/left\"; wait";
    let job = Job::start(2, LONG, &["/bin/sh", "-c", script]);
    let programs = [0, 1].map(|rank| job.pid(rank));
    let left: i32 =
        wait_for("the process", || fs::read_to_string(job.rank(0).join("left")).ok()?.trim().parse().ok());
    let shim = i32::try_from(job.read(0, "shim.json").unwrap()["shim"]["pid"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(shim).unwrap(), Signal::KILL).unwrap();
    assert_eq!(job.end(0), json!("vanished"));
    assert!(!lives(programs[0]) && !lives(left));
    assert!(lives(programs[1]) && job.read(1, "end.json").is_none(), "the other rank is another's to stop");
}

#[test]
fn a_program_begins_when_its_processes_can_be_written_down() {
    // This is as on a full disk: no file can be made where a folder is.
    let refuses = |folder: &Path| fs::create_dir(folder.join("shim.json.new")).unwrap();
    let job = Job::start_in(2, LONG, &["/bin/true"], refuses);
    assert_eq!(job.end(1), json!({"exit": 0}), "the other rank does not wait for it");
    assert!(job.read(0, "end.json").is_none(), "{:?}", job.read(0, "end.json"));
    fs::remove_dir(job.rank(0).join("shim.json.new")).unwrap();
    assert_eq!(job.end(0), json!({"exit": 0}));
}

#[test]
fn a_start_that_cannot_be_written_down_is_given_up_when_the_job_is_to_end() {
    let refuses = |folder: &Path| fs::create_dir(folder.join("shim.json.new")).unwrap();
    let job = Job::start_in(2, LONG, &TRAINER, refuses);
    job.speaks(1);
    job.signal(Signal::USR1);
    let why = job.end(0)["not_started"].as_str().unwrap().to_owned();
    assert!(why.contains("shim.json"), "{why}");
}

#[test]
fn an_end_has_room_on_a_full_disk() {
    let takes = |folder: &Path| fs::write(folder.join("end.room"), [b' '; 4096]).unwrap();
    let refuses = "mkdir \"$APPORTION_LEASE/end.json.new\"; exit 7";
    let job = Job::start_in(1, LONG, &["/bin/sh", "-c", refuses], takes);
    assert_eq!(job.end(0), json!({"exit": 7}));
}
