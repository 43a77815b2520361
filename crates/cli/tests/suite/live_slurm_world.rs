//! A real Slurm and a live scheduler of it, for tests.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, thread};

use serde_json::Value;
use tempfile::TempDir;

use crate::live::Served;
use crate::slurm_cluster::{Node, Slurm};

/// The number of looks for a result that must come.
const LOOKS: usize = 3000;

/// A cluster, and its scheduler once there is one.
pub(crate) struct World {
    pub(crate) slurm: Slurm,
    pub(crate) folder: TempDir,
    pub(crate) served: Option<Served>,
}

impl World {
    /// A cluster without a scheduler. The error names what this machine lacks for a Slurm.
    pub(crate) fn start(nodes: &[Node<'_>]) -> Result<Self, String> {
        Ok(Self { slurm: Slurm::start(nodes)?, folder: TempDir::new().unwrap(), served: None })
    }

    /// Starts the scheduler with these arguments, while its user has variables that are options of Slurm's commands.
    pub(crate) fn serve(&mut self, arguments: &[&str]) {
        let conf = self.slurm.at("slurm.conf");
        let of_others = [
            ("SQUEUE_USERS", "nobody"),
            ("SQUEUE_PARTITION", "other"),
            ("SINFO_PARTITION", "other"),
            ("SBATCH_ARRAY_INX", "0-3"),
            ("SBATCH_HOLD", "1"),
        ];
        let variables = of_others.iter().map(|(name, text)| (*name, Path::new(text)));
        let variables: Vec<_> = variables.chain([("SLURM_CONF", &*conf)]).collect();
        self.served = Some(Served::start_with(self.folder.path(), arguments, &variables));
    }

    /// Starts the scheduler as [`serve`](Self::serve) does, while commands of Slurm fail at first, once for each of these: a
    /// command, a word among its arguments, and the message. The messages are those of commands whose controller ends.
    pub(crate) fn serve_failing(&mut self, arguments: &[&str], failing: &[(&str, &str, &str)]) {
        let tools = self.folder.path().join("tools");
        let acts = failing.iter().map(|(tool, word, says)| {
            let once = tools.join(format!("{tool}.failed"));
            let act =
                format!("if mkdir '{}' 2>/dev/null; then echo '{says}' >&2; exit 1; fi", once.display());
            (*tool, *word, act)
        });
        self.serve_with_tools(arguments, acts.collect());
    }

    /// Starts a scheduler for which a command of Slurm takes `seconds` longer if `word` is among its arguments.
    pub(crate) fn serve_slow(&mut self, arguments: &[&str], tool: &str, word: &str, seconds: &str) {
        self.serve_with_tools(arguments, vec![(tool, word, format!("sleep {seconds}"))]);
    }

    /// Starts a scheduler with commands of Slurm that run another command first if a word is among their arguments.
    #[expect(clippy::disallowed_methods, reason = "the folders of the real commands")]
    fn serve_with_tools(&mut self, arguments: &[&str], acts: Vec<(&str, &str, String)>) {
        let tools = self.folder.path().join("tools");
        fs::create_dir(&tools).unwrap();
        for (tool, word, act) in acts {
            let own = tools.join(tool);
            let script = format!(
                "#!/bin/sh\ncase \" $* \" in *\"{word}\"*)\n  {act};;\nesac\nPATH=${{PATH#*:}} exec {tool} \"$@\"\n"
            );
            fs::write(&own, script).unwrap();
            fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = PathBuf::from(format!("{}:{}", tools.display(), env::var("PATH").unwrap()));
        let conf = self.slurm.at("slurm.conf");
        let variables = [("SLURM_CONF", &*conf), ("PATH", &*path)];
        self.served = Some(Served::start_with(self.folder.path(), arguments, &variables));
    }

    /// Whether this command has failed as it was to.
    pub(crate) fn has_failed(&self, tool: &str) -> bool {
        self.folder.path().join(format!("tools/{tool}.failed")).exists()
    }

    pub(crate) fn ask(&self, arguments: &[&str]) -> String {
        self.served.as_ref().unwrap().ask(self.folder.path(), arguments)
    }

    /// Submits a job to the scheduler. Answers its number.
    pub(crate) fn submit(&self, arguments: &[&str], program: &[&str]) -> String {
        let usual = ["--quiet", "submit", "--job-type", "ResNet-18 (batch size 64)"];
        self.ask(&[&usual, arguments, &["--"], program].concat()).trim().to_owned()
    }

    /// The scheduler's jobs, by their numbers.
    pub(crate) fn jobs(&self) -> BTreeMap<String, Value> {
        let jobs = self.served.as_ref().unwrap().json(self.folder.path(), &["jobs"]);
        jobs.as_array().unwrap().iter().map(|job| (job["job"].to_string(), job.clone())).collect()
    }

    /// Looks until `find` answers something.
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

    /// Waits until a condition holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        self.wait_for(what, |world| holds(world).then_some(()));
    }
}
