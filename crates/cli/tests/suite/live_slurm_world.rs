//! A real Slurm and a live scheduler of it, for tests.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::live::Served;
use crate::slurm_cluster::{Node, Slurm};

/// How often something that must come is looked for.
const LOOKS: usize = 3000;

/// A cluster, and its scheduler once there is one.
pub(crate) struct World {
    pub(crate) slurm: Slurm,
    pub(crate) folder: TempDir,
    pub(crate) served: Option<Served>,
}

impl World {
    /// A cluster without a scheduler. The error says what this machine lacks for a Slurm.
    pub(crate) fn start(nodes: &[Node<'_>]) -> Result<Self, String> {
        Ok(Self { slurm: Slurm::start(nodes)?, folder: TempDir::new().unwrap(), served: None })
    }

    /// Starts the scheduler with these arguments.
    pub(crate) fn serve(&mut self, arguments: &[&str]) {
        let conf = self.slurm.at("slurm.conf");
        self.served = Some(Served::start_with(self.folder.path(), arguments, &[("SLURM_CONF", &conf)]));
    }

    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        self.served.as_ref().unwrap().ask(self.folder.path(), arguments)
    }

    /// Submits a job to the scheduler. Its number.
    pub(crate) fn submit(&self, arguments: &[&str], program: &[&str]) -> String {
        let usual = ["--quiet", "submit", "--job-type", "ResNet-18 (batch size 64)"];
        self.ask(&[&usual, arguments, &["--"], program].concat()).trim().to_owned()
    }

    /// The scheduler's jobs, by their numbers.
    pub(crate) fn jobs(&self) -> BTreeMap<String, Value> {
        let jobs = self.served.as_ref().unwrap().json(self.folder.path(), &["jobs"]);
        jobs.as_array().unwrap().iter().map(|job| (job["job"].to_string(), job.clone())).collect()
    }

    /// Looks until something is found.
    #[track_caller]
    pub(crate) fn wait_for<T>(&self, what: &str, mut find: impl FnMut(&Self) -> Option<T>) -> T {
        for _ in 0..LOOKS {
            if let Some(found) = find(self) {
                return found;
            }
            thread::sleep(Duration::from_millis(100));
        }
        let queue = self.slurm.said("squeue", &["--states=all"]);
        panic!("{what} does not come: {:?}\n{queue}", self.jobs());
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        self.wait_for(what, |world| holds(world).then_some(()));
    }
}
