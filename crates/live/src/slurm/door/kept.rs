//! What is on disk of a Slurm job that apportion steers.

use serde::{Deserialize, Serialize};

use super::terms::Shape;
use crate::protocol::{End, JobNumber, Run};

/// A rank of a run: its node, and its worker there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    pub(super) node: String,
    pub(super) rank: u32,
    pub(super) worker: u32,
}

/// A run that a job was released for, or is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) run: Run,
    pub(super) places: Vec<Place>,
    /// How often Slurm had put the job back before.
    pub(super) n_restarts: u32,
    pub(super) has_begun: bool,
    /// Has Slurm been asked to put the job back?
    pub(super) is_stopping: bool,
}

impl Order {
    /// Its nodes, by name.
    pub(super) fn nodes(&self) -> Vec<&str> {
        let mut nodes: Vec<&str> = self.places.iter().map(|place| place.node.as_str()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Are its workers such as the job asks for?
    pub(super) fn fits(&self, shape: Shape) -> bool {
        let nodes = self.nodes();
        let on = |node: &str| self.places.iter().filter(|place| place.node == node).count();
        u32::try_from(nodes.len()) == Ok(shape.n_nodes)
            && nodes.iter().all(|node| u32::try_from(on(node)) == Ok(shape.per_node))
    }
}

/// What is kept of a job on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    /// Slurm's number of it.
    pub(super) id: u64,
    /// What Slurm's commands call it, where that is not its number: as a task of an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<String>,
    /// Apportion's.
    pub(super) number: JobNumber,
    /// What its user had said of it when it was taken in.
    pub(super) terms: String,
    pub(super) shape: Shape,
    /// What it was released for, until that is over.
    pub(super) order: Option<Order>,
    /// When the controller was started that last showed it as it ought to be, in Slurm's words.
    pub(super) boot: Option<String>,
    /// Why apportion steers it no more; none if it does.
    pub(super) given_up: Option<String>,
    /// How it ended in Slurm; none while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<End>,
}

impl Kept {
    /// What Slurm's commands call it.
    pub(super) fn address(&self) -> String {
        self.task.clone().unwrap_or_else(|| self.id.to_string())
    }
}
