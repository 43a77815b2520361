//! The queue of an executor's jobs, as Slurm shows it.

use std::collections::BTreeMap;

use apportion::Seconds;

use super::tools::{ToolError, ask, lines, order};
use crate::clock;
use crate::protocol::Run;
use crate::rank;

/// The prefix in the comments of all Slurm jobs of apportion.
const PREFIX: &str = "apportion:";

/// The comment of a Slurm job: its executor, node and ranks. It is looked for before the job is submitted again, so that none is
/// submitted twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Comment {
    pub(super) key: String,
    pub(super) node: String,
    pub(super) run: Run,
    /// The lowest of its ranks.
    pub(super) first: u32,
}

impl Comment {
    /// Its text in Slurm, with the number of ranks, which is the number of workers that the job holds.
    pub(super) fn text(&self, n_ranks: usize) -> String {
        let Self { key, node, run, first } = self;
        format!("{PREFIX}{key}:{node}:{}:{n_ranks}", rank::name(*run, *first))
    }

    /// Reads a comment, and the number of ranks.
    fn parse(text: &str) -> Option<(Self, u32)> {
        let (key, rest) = text.trim().strip_prefix(PREFIX)?.split_once(':')?;
        let (rest, n_ranks) = rest.rsplit_once(':')?;
        let (node, name) = rest.rsplit_once(':')?;
        let (run, first) = rank::of_name(name)?;
        let n_ranks = n_ranks.parse().ok()?;
        Some((Self { key: key.to_owned(), node: node.to_owned(), run, first }, n_ranks))
    }
}

/// The stage of a job in Slurm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for its workers.
    Pending,
    /// It has its workers, and may run on them.
    Running,
    /// It is over.
    Over,
}

/// A Slurm job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: u64,
    /// The number of workers that it holds, or waits for.
    pub(super) n_workers: u32,
    pub(super) stage: Stage,
    /// Slurm's word for its state.
    pub(super) state: String,
    /// The reason for which it waits, or ended, in Slurm's words.
    pub(super) reason: String,
}

/// All Slurm jobs of an executor, at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Queue {
    /// The instant at which Slurm was asked: a job that was submitted before, and is not in it, is over.
    pub(super) asked: Seconds,
    entries: BTreeMap<Comment, Vec<Entry>>,
}

impl Queue {
    /// Asks Slurm for the jobs of the executor with this key.
    pub(super) fn ask(key: &str) -> Result<Self, ToolError> {
        let asked = clock::node_now();
        let shown = lines("%A|%T|%r|%k", |format| {
            ask("squeue", &["--noheader", "--me", "--states=all", &format].map(str::to_owned))
        })?;
        Ok(Self { asked, ..Self::parse(&shown, key) })
    }

    pub(super) fn parse(lines: &[String], key: &str) -> Self {
        let mut entries: BTreeMap<Comment, Vec<Entry>> = BTreeMap::new();
        for line in lines {
            let mut fields = line.splitn(4, '|');
            let (Some(id), Some(state), Some(reason), Some(comment)) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let Ok(id) = id.trim().parse() else { continue };
            let known = Comment::parse(comment).filter(|(comment, _)| comment.key == key);
            let Some((comment, n_workers)) = known else {
                continue;
            };
            let stage = stage(state);
            let entry = Entry { id, n_workers, stage, state: state.to_owned(), reason: reason.to_owned() };
            entries.entry(comment).or_default().push(entry);
        }
        for of_one in entries.values_mut() {
            of_one.sort_by_key(|entry| entry.id);
        }
        Self { asked: Seconds::ZERO, entries }
    }

    /// The jobs with a comment, by number.
    pub(super) fn of(&self, comment: &Comment) -> &[Entry] {
        self.entries.get(comment).map_or(&[], Vec::as_slice)
    }

    /// The number of a node's workers that jobs hold, or wait for.
    pub(super) fn n_held(&self, node: &str) -> u32 {
        let of_node = self.iter().filter(|(comment, _)| comment.node == node);
        // If one comment was submitted twice, only the first job is not cancelled.
        let alive = |entries: &[Entry]| entries.iter().find(|entry| entry.stage != Stage::Over).cloned();
        of_node.filter_map(|(_, entries)| alive(entries)).map(|entry| entry.n_workers).sum()
    }

    /// All comments with their jobs.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Comment, &[Entry])> {
        self.entries.iter().map(|(comment, entries)| (comment, entries.as_slice()))
    }
}

/// The stage that a state means. States that the manual of `squeue` does not list as the end of a job may run.
pub(super) fn stage(state: &str) -> Stage {
    match state {
        "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" | "RESV_DEL_HOLD" => {
            Stage::Pending
        }
        "BOOT_FAIL" | "CANCELLED" | "COMPLETED" | "DEADLINE" | "FAILED" | "NODE_FAIL" | "OUT_OF_MEMORY"
        | "PREEMPTED" | "REVOKED" | "TIMEOUT" => Stage::Over,
        _ => Stage::Running,
    }
}

/// Whether a job in this state is over.
pub(super) fn is_over(state: &str) -> bool {
    stage(state) == Stage::Over
}

/// Cancels Slurm jobs. An answer does not mean that they have ended, and a refusal is no fault, since a job may be over.
///
/// # Errors
/// If Slurm does not answer.
pub(super) fn cancel(ids: impl IntoIterator<Item = u64>) -> Result<(), ToolError> {
    let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    match order("scancel", &ids) {
        Ok(_) | Err(ToolError::Refused { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::JobNumber;

    fn comment(node: &str, job: u64) -> Comment {
        let run = Run { job: JobNumber(job), incarnation: 2 };
        Comment { key: "ab12".to_owned(), node: node.to_owned(), run, first: 3 }
    }

    #[test]
    fn a_comment_is_read_as_it_is_written() {
        let written = comment("v100-0", 7).text(2);
        assert_eq!(written, "apportion:ab12:v100-0:7.2.3:2");
        assert_eq!(Comment::parse(&written), Some((comment("v100-0", 7), 2)));
        for other in
            ["", "(null)", "apportion:", "apportion:ab12:7.2.3:1", "apportion:ab12:n:7.2:1", "my job"]
        {
            assert_eq!(Comment::parse(other), None, "{other}");
        }
    }

    #[test]
    fn only_jobs_of_the_key_are_seen() {
        let text = "12|RUNNING|None|apportion:ab12:n1:7.2.3:2\n\
                    11|PENDING|Resources|apportion:ab12:n1:7.2.3:2\n\
                    13|COMPLETING|None|apportion:ab12:n2:8.2.3:2\n\
                    14|TIMEOUT|TimeLimit|apportion:ab12:n2:9.2.3:2\n\
                    15|RUNNING|None|apportion:ffff:n2:9.2.3:2\n\
                    16|RUNNING|None|a | of another\nslurm_load_jobs: odd\n";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let queue = Queue::parse(&lines, "ab12");
        let stages = |node: &str, job: u64| -> Vec<(u64, Stage)> {
            queue.of(&comment(node, job)).iter().map(|entry| (entry.id, entry.stage)).collect()
        };
        assert_eq!(stages("n1", 7), [(11, Stage::Pending), (12, Stage::Running)]);
        assert_eq!(stages("n2", 8), [(13, Stage::Running)]);
        assert_eq!(stages("n2", 9), [(14, Stage::Over)]);
        assert_eq!(queue.iter().count(), 3);
        assert_eq!((queue.n_held("n1"), queue.n_held("n2")), (2, 2));
    }
}
