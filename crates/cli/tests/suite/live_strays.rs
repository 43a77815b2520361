//! Processes of a job on a server whose agent and shim are killed, and do not come back.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::live::{Served, comes_true, command};

/// A job that leaves a process in a session of its own, and notes whether that of an earlier start still lives.
const SCRIPT: &str = r#"
if [ -e stray ] && kill -0 "$(cat stray)" 2>/dev/null; then echo beside; else echo alone; fi >>starts
setsid sh -c 'echo $$ >stray.new; mv stray.new stray; exec sleep 600' &
wait
"#;

/// An agent; killed when dropped.
struct Agent(Child);

impl Agent {
    fn start(folder: &Path, url: &str, name: &str) -> Self {
        let mut agent = command(folder, &["agent", "--worker-type=v100", "--workers=1", "--scheduler", url]);
        agent.args(["--name", name, "--state", name, "--checkpoints", "checkpoints"]);
        Self(agent.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kill(pid: &str) {
    assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success());
}

#[test]
fn a_job_starts_elsewhere_only_when_nothing_of_it_is_left() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let serve = "serve --cluster v100=2 --servers v100=1 --policy max_min_fairness_perf --state state --round-length 1";
    let served = Served::start(at, &serve.split(' ').collect::<Vec<_>>());
    let first = Agent::start(at, served.url(), "node-1");
    let submit = "submit --job-type A3C --steps 1000000 -- sh -c";
    let submit: Vec<&str> = submit.split(' ').chain([SCRIPT]).collect();
    assert_eq!(served.ask(at, &submit), "0\n");
    assert!(comes_true(|| at.join("stray").exists()), "the first start");
    let _second = Agent::start(at, served.url(), "node-2");
    let shim: Value =
        serde_json::from_slice(&fs::read(at.join("node-1/ranks/0.1.0/shim.json")).unwrap()).unwrap();
    drop(first);
    kill(&shim["shim"]["pid"].to_string());
    let starts = || fs::read_to_string(at.join("starts")).unwrap();
    assert!(comes_true(|| starts().lines().count() > 1), "a start on the second server");
    assert_eq!(starts().lines().collect::<Vec<_>>(), ["alone", "alone"]);
    served.ask(at, &["cancel", "0"]);
    assert!(comes_true(|| !Path::new("/proc")
        .join(fs::read_to_string(at.join("stray")).unwrap().trim())
        .exists()));
}
