//! A real Slurm for tests: its daemons as plain processes in a temporary folder, all nodes on one host.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// The number of looks for a result that must come.
const LOOKS: usize = 30_000;

/// A node: its name, and its options in `slurm.conf`.
pub(crate) type Node<'a> = (&'a str, &'a str);

/// A cluster that ends with its owner.
pub(crate) struct Slurm {
    folder: TempDir,
    daemons: Vec<Child>,
    controller: Option<Child>,
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = self.client("scancel", &["--full", "--signal=KILL", "--user=root"]).output();
        for daemon in self.controller.iter_mut().chain(self.daemons.iter_mut().rev()) {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        self.kill_jobs();
    }
}

impl Slurm {
    /// Kills processes that Slurm had not stopped when it ended, and that would stay: scripts of jobs, which are in its folder, and
    /// the daemons of their steps, which have its log open.
    fn kill_jobs(&self) {
        let folder = self.folder.path();
        let name = folder.display().to_string();
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let number = process.file_name().to_string_lossy().into_owned();
            if number.parse() == Ok(std::process::id()) {
                continue;
            }
            let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let files = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            let is_open = |path: PathBuf| fs::read_link(path).is_ok_and(|file| file.starts_with(folder));
            if String::from_utf8_lossy(&words).contains(&name) || files.map(|file| file.path()).any(is_open) {
                let _ = Command::new("kill").args(["-KILL", &number]).status();
            }
        }
    }

    /// Starts a cluster, and waits until its nodes are idle. The error names what this machine lacks for one.
    pub(crate) fn start(nodes: &[Node<'_>]) -> Result<Self, String> {
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
        let mut slurm = Self { folder: TempDir::new().unwrap(), daemons: Vec::new(), controller: None };
        slurm.configure(nodes);
        let at = |name: &str| slurm.at(name).display().to_string();
        let munge = ["key", "socket", "pid", "log", "seed"].map(|file| (file, at(&format!("munge.{file}"))));
        let flags = munge.map(|(file, path)| match file {
            "key" | "pid" | "log" | "seed" => format!("--{file}-file={path}"),
            _ => format!("--{file}={path}"),
        });
        let socket = slurm.at("munge.socket");
        slurm.spawn(
            "munged",
            &[&["--foreground", "--force"][..], &flags.each_ref().map(String::as_str)].concat(),
        );
        slurm.wait_for(|_| socket.exists())?;
        slurm.start_controller();
        for (node, _) in nodes {
            slurm.start_node(node);
        }
        let n_nodes = nodes.len();
        slurm.wait_for(|slurm| {
            let idle = slurm.said("sinfo", &["--noheader", "--Node", "--states=idle", "--format=%N"]);
            idle.lines().count() == n_nodes
        })?;
        Ok(slurm)
    }

    pub(crate) fn start_controller(&mut self) {
        let configuration = self.at("slurm.conf").display().to_string();
        self.spawn("slurmctld", &["-D", "-f", &configuration]);
        self.controller = self.daemons.pop();
    }

    /// Starts the daemon of a node.
    pub(crate) fn start_node(&mut self, node: &str) {
        let configuration = self.at("slurm.conf").display().to_string();
        self.spawn("slurmd", &["-D", "-N", node, "-f", &configuration]);
    }

    /// Kills the daemon of a node, and has the controller take the node for down. What runs there goes on.
    #[cfg(feature = "live")]
    pub(crate) fn lose_node(&mut self, node: &str) {
        let daemon = fs::read_to_string(self.at(&format!("slurmd-{node}.pid"))).unwrap();
        let place = self.daemons.iter().position(|other| other.id().to_string() == daemon.trim()).unwrap();
        let mut daemon = self.daemons.remove(place);
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        self.said("scontrol", &["update", &format!("NodeName={node}"), "State=DOWN", "Reason=cable"]);
    }

    /// Ends the controller as an administrator does: it writes its state first. One that is killed while jobs end can count their GPUs
    /// as used for ever, and drain nodes.
    #[cfg(feature = "live")]
    pub(crate) fn end_controller(&mut self) {
        let mut controller = self.controller.take().unwrap();
        assert!(Command::new("kill").arg(controller.id().to_string()).status().unwrap().success());
        controller.wait().unwrap();
    }

    /// Kills the controller, and waits until it is gone.
    #[cfg(feature = "live")]
    pub(crate) fn kill_controller(&mut self) {
        let mut controller = self.controller.take().unwrap();
        controller.kill().unwrap();
        controller.wait().unwrap();
    }

    fn configure(&self, nodes: &[Node<'_>]) {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let (host, folder) = (host.trim(), self.folder.path().display());
        // The ports are held until all are drawn, so that they differ.
        let listeners: Vec<TcpListener> =
            (0..=nodes.len()).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> =
            listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        let (control, ports) = ports.split_first().unwrap();
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
             GresTypes=gpu\nPartitionName=main Nodes={} Default=YES MaxTime=INFINITE State=UP\n",
            nodes.iter().map(|(node, _)| *node).collect::<Vec<_>>().join(",")
        );
        let mut devices = String::new();
        for ((node, has), port) in nodes.iter().zip(ports) {
            fs::create_dir(self.at(&format!("spool-{node}"))).unwrap();
            let place = format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}");
            text += &place;
            text += " State=UNKNOWN ";
            text += has;
            text += "\n";
            if has.contains("gpu:") {
                devices += &self.devices(node);
            }
        }
        fs::write(self.at("gres.conf"), devices).unwrap();
        fs::write(self.at("slurm.conf"), text).unwrap();
        let key = self.at("munge.key");
        fs::write(&key, [b'k'; 128]).unwrap();
        Command::new("chmod").arg("600").arg(key).status().unwrap();
    }

    /// Two devices of a node, which are no GPUs: character devices that Slurm can number.
    fn devices(&self, node: &str) -> String {
        for place in 0..2 {
            let device = self.at(&format!("{node}-{place}"));
            Command::new("mknod").arg(device).args(["c", "1", "3"]).status().unwrap();
        }
        let kind = node.split('-').next().unwrap();
        format!("NodeName={node} Name=gpu Type={kind} File={}-[0-1]\n", self.at(node).display())
    }

    /// A file in its folder.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn spawn(&mut self, program: &str, arguments: &[&str]) {
        let log = fs::File::create(self.at(&format!("{program}-{}.out", self.daemons.len()))).unwrap();
        let mut daemon = Command::new(program);
        daemon.args(arguments).env("SLURM_CONF", self.at("slurm.conf"));
        self.daemons.push(daemon.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }

    pub(crate) fn client(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", self.at("slurm.conf")).stdin(Stdio::null());
        command
    }

    /// The output of a command of Slurm.
    pub(crate) fn said(&self, program: &str, arguments: &[&str]) -> String {
        String::from_utf8_lossy(&self.client(program, arguments).output().unwrap().stdout).into_owned()
    }

    /// Waits until a condition holds, or a daemon has ended.
    pub(crate) fn wait_for(&mut self, mut holds: impl FnMut(&Self) -> bool) -> Result<(), String> {
        let mut n_looks = 0;
        while !holds(self) {
            n_looks += 1;
            if n_looks > LOOKS {
                return Err("what is waited for does not come".to_owned());
            }
            for daemon in &mut self.daemons {
                if let Some(status) = daemon.try_wait().unwrap() {
                    return Err(format!("a daemon of Slurm ended: {status}"));
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Ok(())
    }

    /// Waits until no job is left.
    pub(crate) fn drain(&mut self) {
        let is_empty = |slurm: &Self| {
            let queue = slurm.client("squeue", &["--noheader"]).output().unwrap();
            queue.status.success() && queue.stdout.is_empty()
        };
        self.wait_for(is_empty).unwrap();
    }

    pub(crate) fn apportion(&self, folder: &Path, arguments: &[&str]) -> Output {
        let mut command = self.client(env!("CARGO_BIN_EXE_apportion"), arguments);
        let output = command.args(["--progress", "never"]).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }
}
