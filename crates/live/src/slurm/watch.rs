//! Asks Slurm for its jobs and nodes, on a thread of its own: a controller that does not answer keeps no report waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use apportion::Seconds;

use super::NEVER;
use super::nodes::{Node, NodesError, nodes};
use super::tools::ToolError;
use crate::clock;

/// How often Slurm is asked for its jobs.
const QUEUE_BEAT: Duration = Duration::from_millis(500);

/// How often Slurm is asked for its nodes.
const NODES_BEAT: Seconds = Seconds::new(5.0);

/// How often it is looked whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// What Slurm shows.
#[derive(Debug)]
pub(super) enum Seen<T> {
    /// Its jobs.
    Jobs(T),
    /// Its nodes.
    Nodes(Vec<Node>),
    /// It does not answer, and why.
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
                // After a start of the controller it does not know of its nodes at first.
                nodes_asked = NEVER;
                Seen::Silence(error.to_string())
            }
        };
        let mut is_heard = true;
        // Before its jobs: it is taken to answer again by these.
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
