//! A node and its reports, which follow from its state in Slurm: whether it gets jobs now.

use apportion::Seconds;

use super::nodes::Node;
use super::{NEVER, PAUSE};
use crate::agent::Agent;
use crate::protocol::Report;

/// A node, its agent, and whether Slurm gives it jobs.
#[derive(Debug)]
pub(super) struct ReportingNode {
    pub(super) node: Node,
    pub(super) agent: Agent,
    /// The instant until which it gets no job, since Slurm has refused one; none if it gets jobs.
    paused: Option<Seconds>,
    has_reported: bool,
}

impl ReportingNode {
    pub(super) fn new(node: Node, agent: Agent) -> Self {
        Self { node, agent, paused: None, has_reported: false }
    }

    /// A report that is sent now, or later. If the node `is_frozen`, it can start nothing. None from an `is_empty` node that Slurm
    /// gives no job and that has never had one.
    pub(super) fn report(&mut self, now: Seconds, is_frozen: bool, is_empty: bool) -> Option<Report> {
        let gets_jobs = self.node.unusable.is_none() && self.paused.is_none_or(|until| now >= until);
        if !gets_jobs && !self.has_reported && is_empty {
            return None;
        }
        self.has_reported = true;
        let mut report = self.agent.report(now);
        report.is_frozen = is_frozen;
        if !gets_jobs {
            report.n_workers = 0;
            report.closed = Some(match &self.node.unusable {
                Some(state) => format!("Slurm gives it no job: {state}"),
                None => "Slurm has refused a job there, and is asked again within a minute".to_owned(),
            });
        }
        Some(report)
    }

    /// Gives the node no job for a while.
    pub(super) fn pause(&mut self, now: Seconds) {
        self.paused = Some(now + PAUSE);
    }

    /// Whether a pause has ended since this was last asked.
    pub(super) fn resumes(&mut self, now: Seconds) -> bool {
        let resumes = self.paused.is_some_and(|until| now >= until);
        if resumes {
            self.paused = None;
        }
        resumes
    }

    /// Takes over the nodes as Slurm shows them now, and passes differences to `say`. A node that begins or ceases to get jobs is
    /// to report at once.
    pub(super) fn take(&mut self, nodes: &[Node], reported: &mut Seconds, say: &dyn Fn(&str)) {
        let now = nodes.iter().find(|node| node.name == self.node.name);
        self.node.is_unknown = now.is_some_and(|node| node.is_unknown);
        if self.node.is_unknown {
            return;
        }
        let gone = || Some("it is not a node of the partition any more".to_owned());
        let why = now.map_or_else(gone, |node| node.unusable.clone());
        // A node that was drained may go down, too; that its jobs leave it is no news.
        let differs = why.as_deref().map(troubles) != self.node.unusable.as_deref().map(troubles);
        self.node.unusable.clone_from(&why);
        if differs {
            let name = &self.node.name;
            say(&match why {
                Some(why) => format!("Slurm gives {name} no job: {why}"),
                None => format!("Slurm gives {name} jobs"),
            });
            *reported = NEVER;
        }
    }
}

/// The words of a node's state without the ones that say whether jobs run there.
fn troubles(state: &str) -> Vec<&str> {
    let is_use = |word: &&str| !["ALLOCATED", "COMPLETING", "IDLE", "MIXED"].contains(word);
    state.split('+').filter(is_use).collect()
}
