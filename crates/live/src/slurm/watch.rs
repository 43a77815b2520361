//! Requests to Slurm for its jobs and nodes, on a thread of their own: a controller that does not answer delays no report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use apportion::Seconds;

use super::NEVER;
use super::nodes::{Node, NodesError, nodes};
use super::tools::ToolError;
use crate::clock;

/// The interval at which Slurm is asked for its jobs.
const QUEUE_BEAT: Duration = Duration::from_millis(500);

/// The interval at which Slurm is asked for its nodes.
const NODES_BEAT: Seconds = Seconds::new(5.0);

/// The interval at which the thread looks whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// An answer of Slurm.
#[derive(Debug)]
pub(super) enum Seen<T> {
    /// Its jobs.
    Jobs(T),
    /// Its nodes.
    Nodes(Vec<Node>),
    /// No answer, for this reason.
    Silence(String),
}

/// Asks for the nodes of a partition, and for jobs by `ask`, until it `is_over`.
pub(super) fn watch<T>(
    ask: impl Fn() -> Result<T, ToolError>,
    partition: &str,
    sender: &Sender<Seen<T>>,
    is_over: &AtomicBool,
) {
    let mut nodes_asked = NEVER;
    while !is_over.load(Ordering::Relaxed) {
        let seen = match ask() {
            Ok(jobs) => Seen::Jobs(jobs),
            Err(error) => {
                // After a start the controller has not heard of its nodes at first.
                nodes_asked = NEVER;
                Seen::Silence(error.to_string())
            }
        };
        let mut is_heard = true;
        // Nodes come before jobs: Slurm counts as answering again from the jobs on.
        if matches!(seen, Seen::Jobs(_)) && clock::node_now() >= nodes_asked + NODES_BEAT {
            nodes_asked = clock::node_now();
            is_heard = match nodes(partition) {
                Ok(nodes) => {
                    if nodes.iter().any(|node| node.is_unknown) {
                        nodes_asked = NEVER;
                    }
                    sender.send(Seen::Nodes(nodes)).is_ok()
                }
                Err(NodesError::Tool(_)) => true,
                Err(error) => sender.send(Seen::Silence(error.to_string())).is_ok(),
            };
        }
        if !is_heard || sender.send(seen).is_err() {
            return;
        }
        let mut waited = Duration::ZERO;
        while waited < QUEUE_BEAT && !is_over.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
            waited += LOOK;
        }
    }
}
