//! The document on disk of a Slurm job that apportion steers.

use apportion::Seconds;
use serde::{Deserialize, Serialize};

use super::jobs::HeldJob;
use super::terms::{Shape, asked};
use crate::protocol::{End, JobNumber, Run};
use crate::slurm::may_be_same;

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
    /// The number of times that Slurm had put the job back before.
    pub(super) n_restarts: u32,
    pub(super) has_begun: bool,
    /// Whether Slurm has been asked to put the job back.
    pub(super) is_stopping: bool,
    /// The instant at which Slurm started the job, in s since 1970; 0 until Slurm shows it.
    #[serde(default)]
    pub(super) started_s: u64,
    /// The time that the job ran, in s by Slurm's clock, once it is over or put back; none if Slurm does not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ran_s: Option<u64>,
}

impl Order {
    /// An order for a run that has no ranks yet.
    pub(super) fn new(run: Run) -> Self {
        let (places, n_restarts, started_s, ran_s) = (Vec::new(), 0, 0, None);
        Self { run, places, n_restarts, has_begun: false, is_stopping: false, started_s, ran_s }
    }

    /// The time that it ran, once it is over and if Slurm states it.
    pub(super) fn ran(&self) -> Option<Seconds> {
        let seconds = self.ran_s.and_then(|seconds| u32::try_from(seconds).ok())?;
        Some(Seconds::new(f64::from(seconds)))
    }

    /// Notes that its job was put back into Slurm's queue. That happened when its processes had ended, and is its new instant of
    /// submission.
    pub(super) fn note_put_back(&mut self, job: &HeldJob) {
        let began = Some(self.started_s).filter(|started| *started > 0);
        self.note_over(began.and_then(|started| job.submitted_s.checked_sub(started)));
        self.started_s = 0;
    }

    /// Notes that Slurm's last start of the run is over, after this time in s. Earlier starts by Slurm itself are added.
    pub(super) fn note_over(&mut self, ran_s: Option<u64>) {
        self.ran_s = ran_s.map(|ran_s| ran_s.saturating_add(self.ran_s.unwrap_or(0)));
    }

    /// Its nodes, by name.
    pub(super) fn nodes(&self) -> Vec<&str> {
        let mut nodes: Vec<&str> = self.places.iter().map(|place| place.node.as_str()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Whether its workers have the shape that the job asks for.
    pub(super) fn fits(&self, shape: Shape) -> bool {
        let nodes = self.nodes();
        let on = |node: &str| self.places.iter().filter(|place| place.node == node).count();
        u32::try_from(nodes.len()) == Ok(shape.n_nodes)
            && nodes.iter().all(|node| u32::try_from(on(node)) == Ok(shape.per_node))
    }
}

/// The record of a steered job on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    /// Slurm's number of the job.
    pub(super) id: u64,
    /// The job's name in Slurm's commands if it is a task of an array; none if that is its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) task: Option<String>,
    /// Apportion's number of the job.
    pub(super) number: JobNumber,
    /// The terms of its user when it was taken in.
    pub(super) terms: String,
    pub(super) shape: Shape,
    /// The order that it was released for, until that is over.
    pub(super) order: Option<Order>,
    /// The start of the controller that last showed the job as it ought to be, in Slurm's words.
    pub(super) boot: Option<String>,
    /// Why apportion does not steer it any more; none if it does.
    pub(super) given_up: Option<String>,
    /// Its end in Slurm; none before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<End>,
    /// Its identity beside the number; none in states of earlier versions, until Slurm shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) known: Option<Known>,
}

/// The identity of a job beside its number, which Slurm gives out again if it has forgotten the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    pub(super) user: String,
    pub(super) name: String,
    /// The instant at which it was submitted, or last put back, in s since 1970.
    pub(super) submitted_s: u64,
    /// The number of times that it was put back.
    pub(super) n_restarts: u32,
    /// The type of GPU, as Slurm names it, that it asked for when it was first seen; none for any type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) gres_type: Option<String>,
}

impl Known {
    /// The identity of a job as Slurm shows it now. The type of GPU stays as it was before.
    pub(super) fn of(job: &HeldJob, before: Option<&Self>) -> Self {
        let gres_type = match before {
            Some(before) => before.gres_type.clone(),
            None => asked(job).ok().and_then(|(_, gres_type)| gres_type),
        };
        let (user, name) = (job.user.clone(), job.name.clone());
        Self { user, name, submitted_s: job.submitted_s, n_restarts: job.n_restarts, gres_type }
    }
}

impl Kept {
    /// Whether the job that Slurm shows under the number is this job. A name may be changed; but if the controller `forgot` its
    /// requests, another name means another job, which may have been submitted in the same second.
    pub(super) fn is_of(&self, job: &HeldJob, forgot: bool) -> bool {
        self.known.as_ref().is_none_or(|known| {
            let submitted = job.submitted_s.cmp(&known.submitted_s);
            known.user == job.user
                && (known.name == job.name || !forgot)
                && may_be_same(known.n_restarts, job.n_restarts, submitted)
        })
    }

    /// Why it cannot be steered any more as it was taken in, in words: it was moved, or asks for something else. None if it can.
    pub(super) fn why_not_kept(&self, job: &HeldJob, partition: &str) -> Option<String> {
        if !job.partitions.is_empty() && job.partitions != partition {
            return Some(format!(
                "it was moved to the partition `{}` in Slurm, and apportion has the jobs of `{partition}` alone",
                job.partitions
            ));
        }
        if job.is_completing {
            // It has fewer nodes from one instant to the next.
            return None;
        }
        let changed = |what: String| Some(format!("it was changed in Slurm after it was taken in: {what}"));
        let Shape { n_nodes, per_node, .. } = self.shape;
        match asked(job) {
            // A running job is shown with the nodes that it has.
            Ok((shape, _)) if !job.is_pending() && shape.per_node == per_node => None,
            Err(_) if !job.is_pending() => None,
            Err(why) => changed(why),
            Ok((shape, _)) if (shape.n_nodes, shape.per_node) != (n_nodes, per_node) => changed(format!(
                "it asks for {} on each of {}, and asked for {per_node} on each of {n_nodes}",
                shape.per_node, shape.n_nodes
            )),
            Ok((shape, gres_type)) => {
                let before = self.known.as_ref().map(|known| &known.gres_type);
                let is_other = shape != self.shape || before.is_some_and(|before| *before != gres_type);
                let asks = || [&job.per_node, &job.per_job].map(String::as_str).concat();
                if is_other { changed(format!("it asks for `{}`", asks())) } else { None }
            }
        }
    }

    /// The job's name in Slurm's commands.
    pub(super) fn address(&self) -> String {
        self.task.clone().unwrap_or_else(|| self.id.to_string())
    }
}
