//! Slurm as the carrier of leases: the servers are the nodes of a partition, and ranks are Slurm jobs.
//!
//! The ranks of a run on a node are one Slurm job, submitted to this node by name. It runs a [shim](crate::shim) for each rank; the
//! documents between shim and scheduler are in the rank's folder, on a file system that all nodes share. The scheduler does not
//! notice any of this: it has an agent for each node, as it has without Slurm.
//!
//! **One job a worker** holds by Slurm: it gives a worker to no second job before the first is over. Slurm's acknowledgements are
//! not trusted: a submission carries a comment by which it is looked for before it is tried again, and a job counts as over when
//! Slurm's list of jobs shows it so, however often it has been cancelled.
//!
//! **Leases** end by the shim's clock, which counts from when it reads how long the lease still is; so no two clocks need
//! agree. If the scheduler is gone, jobs stop and save when their leases are over. A time limit of Slurm is only a second
//! hold: a while before it Slurm sends SIGUSR1, and the shim asks its program to stop.
//!
//! **Rights.** All of it needs no more than the right to submit jobs to the partition. Jobs run as the user of the
//! scheduler.

mod all_jobs;
mod batch;
mod check;
mod elsewhere;
mod identity;
mod node;
mod nodes;
mod queue;
mod reporting_node;
mod tools;
mod watch;
mod held_jobs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use apportion::Seconds;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::agent::processes::{at, lock};
use crate::agent::{Link, LinkError, ProcessesError};
use crate::clock;
use crate::files;
use node::NodeAgent;
use queue::{Queue, cancel};
use watch::Seen;

pub(crate) use identity::may_be_same;

pub use all_jobs::{SlurmJob, all_jobs};
pub use elsewhere::held_elsewhere;
pub use held_jobs::{HeldJob, HeldJobExecutor, HeldJobOptions, Intake, Newcomer, NotTaken, kill_wait};
pub use nodes::{Node, NodesError, nodes, partition};
pub use tools::ToolError;

/// The interval at which the ranks' folders and the orders are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The name of the document with the key of the executor that a shared folder belongs to.
const IDENTITY: &str = "slurm.json";

/// Time for which a node gets no job after one could not be started there.
const PAUSE: Seconds = Seconds::new(60.0);

/// An instant before all others.
const NEVER: Seconds = Seconds::new(f64::NEG_INFINITY);

/// The options by which leases become Slurm jobs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The partition.
    pub partition: String,
    /// The folder of ranks, outputs and checkpoints, by the same path on all nodes.
    pub shared: PathBuf,
    /// The program whose subcommand `shim` is [`run_all`](crate::shim::run_all), by the same path on all nodes.
    pub program: PathBuf,
    /// The time limit of a Slurm job, as `sbatch --time` reads it; none is the partition's.
    pub time_limit: Option<String>,
    /// Further arguments of `sbatch`, such as `--account=x`; each is one word. They have precedence.
    pub arguments: Vec<String>,
    /// The nodes, and the type of each one's workers as the throughputs name it.
    pub nodes: Vec<(Node, String)>,
    /// The key of the executor that the Slurm jobs belong to; drawn when its folder is first used.
    key: String,
    addresses: BTreeMap<String, String>,
}

impl Options {
    /// Options with the partition's time limit, and without further arguments.
    pub fn new(partition: String, shared: PathBuf, program: PathBuf, nodes: Vec<(Node, String)>) -> Self {
        let addresses = nodes.iter().map(|(node, _)| (node.name.clone(), node.address.clone())).collect();
        Self {
            partition,
            shared,
            program,
            time_limit: None,
            arguments: Vec::new(),
            nodes,
            key: String::new(),
            addresses,
        }
    }

    fn address_of(&self, node: &str) -> String {
        self.addresses.get(node).cloned().unwrap_or_else(|| node.to_owned())
    }
}

/// Why leases cannot be given to Slurm.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SlurmError {
    /// The folder cannot be used, or another scheduler has it.
    #[error(transparent)]
    Folder(#[from] ProcessesError),
    /// The shared folder has a path that Slurm's commands cannot be given.
    #[error("{path}: Slurm takes no path with `{letter}` in it")]
    Path {
        /// The path.
        path: String,
        /// The character.
        letter: char,
    },
    /// Another scheduler steers the held jobs of the partition.
    #[error("the held jobs of the partition `{partition}` are steered by another scheduler: {by}")]
    Claimed {
        /// The partition.
        partition: String,
        /// The other scheduler, in words.
        by: String,
    },
    /// Slurm would not take a job that asks for a worker of a node.
    #[error("Slurm would not take a job for a worker of {node}: {source}")]
    Refuses {
        /// The node.
        node: String,
        /// The answer of Slurm.
        source: ToolError,
    },
}

/// The document `slurm.json` in the shared folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Identity {
    key: String,
}

/// An executor that gives leases to Slurm, for all nodes.
#[derive(Debug)]
pub struct Executor {
    options: Options,
    nodes: Vec<NodeAgent>,
    queue: Queue,
    /// The lock of the folder, held while this value lives.
    _lock: File,
}

impl Executor {
    /// Takes over the jobs of an earlier scheduler. With a new folder, it asks Slurm whether it would take a job on a node of each
    /// type. If Slurm cannot answer yet, as after a start of its controller, it is asked again as long as `waits`, which gets the
    /// reason, answers true.
    ///
    /// # Errors
    /// If the folder cannot be used, another scheduler has it, or Slurm would take no job.
    pub fn open(mut options: Options, waits: &mut dyn FnMut(&str) -> bool) -> Result<Self, SlurmError> {
        options.shared = std::path::absolute(&options.shared).map_err(at(&options.shared))?;
        let text = options.shared.to_string_lossy().into_owned();
        if let Some(letter) = text.chars().find(|letter| letter.is_control() || *letter == '\\') {
            return Err(SlurmError::Path { path: text, letter });
        }
        let shared = options.shared.clone();
        fs::create_dir_all(&shared).map_err(at(&shared))?;
        let path = shared.join("lock");
        let Some(lock) = lock(&path).map_err(at(&path))? else {
            return Err(ProcessesError::Taken(shared.display().to_string()).into());
        };
        if !shared.join(IDENTITY).exists() {
            check::would_take(&options, waits)?;
        }
        options.key = key(&shared).map_err(at(&shared.join(IDENTITY)))?;
        let now = clock::node_now();
        let open =
            |(node, worker_type): &(Node, String)| NodeAgent::open(node.clone(), worker_type, &options, now);
        let nodes = options.nodes.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { options, nodes, queue: Queue::default(), _lock: lock })
    }

    /// Carries out the scheduler's orders until `stop`, and passes sentences for the operator to `say`. `link` is the way to the
    /// scheduler for the node of this name; each node reports at least every `beat`. Slurm jobs go on afterwards, until their
    /// leases end or another executor takes over.
    ///
    /// # Errors
    /// If there is no way to the scheduler. Later, no fault of Slurm or the ranks ends it.
    pub fn run<L: Link>(
        &mut self,
        link: impl Fn(&str) -> Result<L, LinkError>,
        beat: Duration,
        say: &dyn Fn(&str),
        stop: &AtomicBool,
    ) -> Result<(), LinkError> {
        let mut links =
            self.nodes.iter().map(|agent| link(&agent.reporting.node.name)).collect::<Result<Vec<L>, _>>()?;
        let (sender, seen) = channel();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let (key, partition) = (self.options.key.clone(), self.options.partition.clone());
            let is_over = &is_over;
            scope.spawn(move || watch::watch(|| Queue::ask(&key), &partition, &sender, is_over));
            let mut state = State {
                silent: None,
                reported: vec![NEVER; self.nodes.len()],
                beat: Seconds::new(beat.as_secs_f64()),
                say,
            };
            while !stop.load(Ordering::Relaxed) {
                while let Ok(seen) = seen.try_recv() {
                    self.take(seen, &mut state);
                }
                for (place, link) in links.iter_mut().enumerate() {
                    self.look(place, link, &mut state);
                }
                thread::sleep(LOOK);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        Ok(())
    }

    /// Looks at a node's ranks, and carries documents between the node and the scheduler.
    fn look(&mut self, place: usize, link: &mut impl Link, state: &mut State<'_>) {
        let Self { options, nodes, queue, .. } = self;
        let agent = &mut nodes[place];
        let found = agent.look(queue, options, clock::node_now(), state.silent.is_none());
        for words in &found.words {
            (state.say)(words);
        }
        if let Some(why) = &found.unreachable {
            state.note_silence(why);
        }
        let now = clock::node_now();
        if found.has_changed || now >= state.reported[place] + state.beat {
            state.reported[place] = now;
            if let Some(report) = agent.report(now, state.silent.is_some()) {
                // A report that was not sent is made good by the next one.
                let _ = link.send(&report);
            }
        }
        while let Some(orders) = link.receive(Duration::ZERO) {
            agent.take(&orders, options, clock::node_now());
            state.reported[place] = NEVER;
        }
    }

    /// Takes over an answer of Slurm. A node that begins or ceases to get jobs reports at once.
    fn take(&mut self, seen: Seen<Queue>, state: &mut State<'_>) {
        match seen {
            Seen::Silence(why) => state.note_silence(&why),
            Seen::Jobs(queue) => {
                self.queue = queue;
                state.note_answer();
                if let Err(error) = self.cancel_strays() {
                    state.note_silence(&error.to_string());
                }
            }
            Seen::Nodes(nodes) => {
                for (agent, reported) in self.nodes.iter_mut().zip(&mut state.reported) {
                    agent.reporting.take(&nodes, reported, state.say);
                }
            }
        }
    }

    /// Cancels jobs of this executor that have no folder: their submission was late.
    fn cancel_strays(&self) -> Result<(), ToolError> {
        let is_ours = |node: &str| self.nodes.iter().find(|agent| agent.reporting.node.name == node);
        let strays = self
            .queue
            .iter()
            .filter(|(comment, _)| is_ours(&comment.node).is_some_and(|agent| !agent.has(comment)));
        let alive = strays.flat_map(|(_, entries)| entries).filter(|entry| entry.stage != queue::Stage::Over);
        cancel(alive.map(|entry| entry.id))
    }
}

/// The surroundings of a running executor.
struct State<'a> {
    /// The instant since when Slurm has not answered; none if it does.
    silent: Option<Seconds>,
    /// The instant of each node's last report: `[nodes]`.
    reported: Vec<Seconds>,
    /// The longest interval between reports of a node.
    beat: Seconds,
    /// A function that gets sentences for the operator.
    say: &'a dyn Fn(&str),
}

impl State<'_> {
    fn note_silence(&mut self, why: &str) {
        if self.silent.is_none() {
            self.silent = Some(clock::node_now());
            (self.say)(&format!("{why}; jobs that run go on, and none is started until Slurm answers"));
        }
    }

    fn note_answer(&mut self) {
        if let Some(since) = self.silent.take() {
            (self.say)(&format!("Slurm answers again, after {:.0} s", (clock::node_now() - since).get()));
        }
    }
}

/// The key of the folder's executor.
fn key(shared: &Path) -> io::Result<String> {
    let path = shared.join(IDENTITY);
    match files::read(&path) {
        Ok(Identity { key }) => return Ok(key),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let key = tools::drawn()?;
    files::write_durably(&path, &Identity { key: key.clone() })?;
    Ok(key)
}
