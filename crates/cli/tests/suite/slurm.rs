//! A sweep as a job array of a real Slurm: its daemons as plain processes in a temporary folder, two nodes on one
//! host. Skipped where Slurm is not installed or the user may not start it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use apportion_studies::sweep::Store;
use tempfile::TempDir;

/// Long enough a run that a task can be caught at it, short enough to wait for.
const STUDY: &str = "\
format: apportion/sweep-v1
name: shared
run:
  cluster: {v100: 2, p100: 2, k80: 2}
  workload: {generator: gavel, duration: 2h}
  measure: [100, 1500]
axes:
  policy: [fifo_perf, isolated, max_min_fairness_perf]
  rate: [0.5, 1.0]
  seed: [0, 1, 2, 3]
";

/// A cluster that ends with its owner.
struct Slurm {
    folder: TempDir,
    daemons: Vec<Child>,
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = self.client("scancel", &["--full", "--signal=KILL", "--user=root"]).output();
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Slurm {
    /// A cluster whose nodes wait for jobs; what is lacking where there cannot be one.
    fn start() -> Result<Self, String> {
        for program in ["munged", "slurmctld", "slurmd", "sbatch"] {
            let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
            if !found.is_ok_and(|output| output.status.success()) {
                return Err(format!("no `{program}`"));
            }
        }
        let user = Command::new("id").arg("-u").output().unwrap();
        if String::from_utf8_lossy(&user.stdout).trim() != "0" {
            return Err("only root may start slurmd".to_owned());
        }
        let mut slurm = Self { folder: TempDir::new().unwrap(), daemons: Vec::new() };
        slurm.configure();
        let at = |name: &str| slurm.at(name).display().to_string();
        let munge = ["key", "socket", "pid", "log", "seed"].map(|file| (file, at(&format!("munge.{file}"))));
        let flags = munge.map(|(file, path)| match file {
            "key" | "pid" | "log" | "seed" => format!("--{file}-file={path}"),
            _ => format!("--{file}={path}"),
        });
        let (socket, configuration) = (slurm.at("munge.socket"), at("slurm.conf"));
        slurm.spawn(
            "munged",
            &[&["--foreground", "--force"][..], &flags.each_ref().map(String::as_str)].concat(),
        );
        slurm.wait_for(|_| socket.exists())?;
        slurm.spawn("slurmctld", &["-D", "-f", &configuration]);
        for node in ["n1", "n2"] {
            slurm.spawn("slurmd", &["-D", "-N", node, "-f", &configuration]);
        }
        slurm.wait_for(|slurm| {
            let idle =
                slurm.client("sinfo", &["--noheader", "--states=idle", "--format=%D"]).output().unwrap();
            String::from_utf8_lossy(&idle.stdout).trim() == "2"
        })?;
        Ok(slurm)
    }

    fn configure(&self) {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let (host, folder) = (host.trim(), self.folder.path().display());
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [control, first, second] = listeners.map(|listener| listener.local_addr().unwrap().port());
        fs::create_dir(self.at("state")).unwrap();
        let mut text = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={control}\nSlurmUser=root\n\
             SlurmdUser=root\nAuthType=auth/munge\nAuthInfo=socket={folder}/munge.socket\n\
             StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool-%n\n\
             SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd-%n.pid\n\
             SlurmctldLogFile={folder}/slurmctld.log\nSlurmdLogFile={folder}/slurmd-%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
             SchedulerParameters=sched_interval=1,batch_sched_delay=0\nSelectType=select/cons_tres\n\
             SelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\nReturnToService=2\nKillWait=1\n\
             PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP\n"
        );
        for (node, port) in [("n1", first), ("n2", second)] {
            fs::create_dir(self.at(&format!("spool-{node}"))).unwrap();
            let place = format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}");
            text += &place;
            text += " CPUs=1 State=UNKNOWN\n";
        }
        fs::write(self.at("slurm.conf"), text).unwrap();
        let key = self.at("munge.key");
        fs::write(&key, [b'k'; 128]).unwrap();
        Command::new("chmod").arg("600").arg(key).status().unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn spawn(&mut self, program: &str, arguments: &[&str]) {
        let log = fs::File::create(self.at(&format!("{program}-{}.out", self.daemons.len()))).unwrap();
        let mut daemon = Command::new(program);
        daemon.args(arguments).env("SLURM_CONF", self.at("slurm.conf"));
        self.daemons.push(daemon.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }

    fn client(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", self.at("slurm.conf")).stdin(Stdio::null());
        command
    }

    /// Waits until something holds, or a daemon has ended.
    fn wait_for(&mut self, mut holds: impl FnMut(&Self) -> bool) -> Result<(), String> {
        while !holds(self) {
            for daemon in &mut self.daemons {
                if let Some(status) = daemon.try_wait().unwrap() {
                    return Err(format!("a daemon of Slurm ended: {status}"));
                }
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Waits until no job is left.
    fn drain(&mut self) {
        let is_empty = |slurm: &Self| {
            let queue = slurm.client("squeue", &["--noheader"]).output().unwrap();
            queue.status.success() && queue.stdout.is_empty()
        };
        self.wait_for(is_empty).unwrap();
    }

    fn apportion(&self, folder: &Path, arguments: &[&str]) -> Output {
        let mut command = self.client(env!("CARGO_BIN_EXE_apportion"), arguments);
        let output = command.args(["--progress", "never"]).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }
}

/// Rows in each part's results.
fn n_rows(out: &Path) -> Vec<usize> {
    let Ok(parts) = fs::read_dir(out.join("parts")) else { return Vec::new() };
    let rows = |path: PathBuf| Store::open_to_read(&path).ok()?.digests().ok().map(|digests| digests.len());
    parts.filter_map(|part| rows(part.unwrap().path())).collect()
}

#[test]
fn a_killed_array_is_submitted_again_and_only_its_gaps_are_run() {
    let mut slurm = match Slurm::start() {
        Ok(slurm) => slurm,
        Err(lacking) => {
            eprintln!("skipped: a sweep on a real Slurm: {lacking}");
            return;
        }
    };
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("shared.yaml"), STUDY).unwrap();
    slurm.apportion(folder.path(), &["sweep", "shared.yaml", "--out", "alone"]);
    let alone = fs::read(folder.path().join("alone/results.csv")).unwrap();

    let out = folder.path().join("out");
    let submit = ["sweep", "shared.yaml", "--out", "out", "--slurm", "--tasks", "4", "--format", "json"];
    let submitted = |slurm: &Slurm| -> serde_json::Value {
        serde_json::from_slice(&slurm.apportion(folder.path(), &submit).stdout).unwrap()
    };
    let first = submitted(&slurm);
    assert_eq!((&first["tasks"], &first["pending"]), (&4.into(), &24.into()));
    slurm.wait_for(|_| n_rows(&out).iter().sum::<usize>() >= 3).unwrap();
    // All that is queued or running ends at once, wherever it is.
    let job = first["job"].as_str().unwrap();
    slurm.client("scancel", &["--full", "--signal=KILL", job]).status().unwrap();
    slurm.client("scancel", &[job]).status().unwrap();
    slurm.drain();
    let n_kept: usize = n_rows(&out).iter().sum();
    assert!((3..24).contains(&n_kept), "{n_kept} of 24 runs are kept");

    let second = submitted(&slurm);
    assert_eq!((&second["kept"], &second["pending"]), (&n_kept.into(), &(24 - n_kept).into()));
    slurm.drain();
    let third = slurm.apportion(folder.path(), &submit);
    let said = String::from_utf8_lossy(&third.stderr).into_owned();
    assert!(said.contains("all 24 runs are in") && said.contains("nothing to submit"), "{said}");
    assert_eq!(fs::read(out.join("results.csv")).unwrap(), alone);
    assert_eq!(n_rows(&out).iter().sum::<usize>(), 24, "no run was made twice");
    eprintln!("{n_kept} of 24 runs outlived the first array");
}
