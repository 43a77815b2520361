//! The claim to a partition: a mark that stands in Slurm itself, by which a second scheduler of the same held jobs sees the first.
//!
//! The mark is the text in the field `Extra` of a node: the first one of the partition without another text in this field. It
//! consists of the scheduler's host, process and state folder, and a number that the scheduler raises as long as it lives. Clocks
//! of two hosts are not compared: a scheduler counts as alive if the number of its mark grows while another watches it.

use std::fs;
use std::path::Path;
use std::process;
use std::thread;
use std::time::Duration;

use apportion::Seconds;

use crate::clock;
use crate::slurm::tools::{ToolError, order};

/// The interval at which the mark is renewed.
const BEAT: Seconds = Seconds::new(5.0);

/// Time for which another scheduler's mark is watched: some of its renewals may be late.
const WATCHED: Seconds = Seconds::new(16.0);

/// The interval at which the mark is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(500);

/// The prefix of all marks.
const PREFIX: &str = "apportion:";

/// The mark of a scheduler in Slurm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// A random key of its folder: a later start from the same folder has the same.
    key: String,
    /// The number of renewals.
    n_renewed: u64,
    host: String,
    pid: u32,
    folder: String,
}

impl Mark {
    fn text(&self) -> String {
        let Self { key, n_renewed, host, pid, folder } = self;
        format!("{PREFIX}{key}:{n_renewed}:{host}:{pid}:{folder}")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().strip_prefix(PREFIX)?.splitn(5, ':');
        let mut next = || parts.next().map(str::to_owned);
        let (key, n_renewed, host, pid, folder) = (next()?, next()?, next()?, next()?, next()?);
        Some(Self { key, n_renewed: n_renewed.parse().ok()?, host, pid: pid.parse().ok()?, folder })
    }

    /// Whether its process is known to be gone. False for a process of another host.
    fn is_gone(&self, host: &str) -> bool {
        self.host == host && !Path::new(&format!("/proc/{}", self.pid)).exists()
    }

    /// A description of its scheduler, in words.
    pub(super) fn in_words(&self) -> String {
        format!("process {} on {}, with the state in {}", self.pid, self.host, self.folder)
    }
}

/// The claim to a partition.
#[derive(Debug)]
pub(super) struct Claim {
    partition: String,
    own: Mark,
    /// The node with the mark; none while it could not be written.
    node: Option<String>,
    renewed: Seconds,
    /// Whether Slurm refuses the mark.
    is_refused: bool,
}

/// The outcome of a claim.
#[derive(Debug)]
pub(super) enum Claimed {
    /// It is this scheduler's.
    Own,
    /// Another scheduler has it.
    Another(Mark),
    /// Slurm does not let it be marked, or has no room for the mark, for this reason. A second scheduler would not be noticed.
    Unmarked(String),
}

impl Claim {
    /// A claim that has not been made yet. `key` is the folder's random key.
    pub(super) fn new(partition: &str, folder: &Path, key: String) -> Self {
        // Blanks would end the text where Slurm shows it.
        let folder = folder.display().to_string().replace(char::is_whitespace, "_");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        let own = Mark { key, n_renewed: 0, host, pid: process::id(), folder };
        let renewed = Seconds::new(f64::NEG_INFINITY);
        Self { partition: partition.to_owned(), own, node: None, renewed, is_refused: false }
    }

    /// Makes the claim, after another scheduler's mark has been watched. A mark that does not grow is taken over.
    ///
    /// # Errors
    /// If Slurm does not answer.
    pub(super) fn make(&mut self) -> Result<Claimed, ToolError> {
        let until = clock::node_now() + WATCHED;
        let mut first: Option<Mark> = None;
        while let Some(other) = self.other(&self.marks()?) {
            if other.is_gone(&self.own.host) {
                break;
            }
            match &first {
                Some(first) if *first != other => return Ok(Claimed::Another(other)),
                Some(_) => {}
                None => first = Some(other),
            }
            if clock::node_now() >= until {
                break;
            }
            thread::sleep(LOOK);
        }
        self.write()
    }

    /// Renews the claim if that is due.
    ///
    /// # Errors
    /// If Slurm does not answer.
    pub(super) fn renew(&mut self) -> Result<Claimed, ToolError> {
        if self.is_refused || clock::node_now() < self.renewed + BEAT {
            return Ok(Claimed::Own);
        }
        match self.other(&self.marks()?) {
            Some(other) => Ok(Claimed::Another(other)),
            None => self.write(),
        }
    }

    /// Gives the claim up.
    pub(super) fn leave(&mut self) {
        let Some(node) = self.node.take() else { return };
        let is_own = |marks: Vec<(String, String)>| {
            let own =
                marks.into_iter().find(|(name, _)| *name == node).and_then(|(_, text)| Mark::parse(&text));
            own.is_some_and(|mark| mark.key == self.own.key)
        };
        if self.marks().is_ok_and(is_own) {
            // If it stays, the next start watches it for a while.
            let _ = mark(&node, "");
        }
    }

    fn other(&self, marks: &[(String, String)]) -> Option<Mark> {
        let mut marks = marks.iter().filter_map(|(_, text)| Mark::parse(text));
        marks.find(|mark| mark.key != self.own.key)
    }

    /// The field `Extra` of each node of the partition, by name.
    fn marks(&self) -> Result<Vec<(String, String)>, ToolError> {
        let text = order("scontrol", &["--oneliner", "show", "node"].map(str::to_owned))?;
        Ok(parse(&text, &self.partition))
    }

    fn write(&mut self) -> Result<Claimed, ToolError> {
        let marks = self.marks()?;
        let is_free = |text: &str| text.is_empty() || Mark::parse(text).is_some();
        let Some((node, _)) = marks.into_iter().find(|(_, text)| is_free(text)) else {
            self.is_refused = true;
            return Ok(Claimed::Unmarked("the text `Extra` of all nodes is taken".to_owned()));
        };
        self.own.n_renewed += 1;
        self.renewed = clock::node_now();
        match mark(&node, &self.own.text()) {
            Ok(()) => {
                self.node = Some(node);
                Ok(Claimed::Own)
            }
            Err(ToolError::Refused { said, .. }) => {
                self.is_refused = true;
                Ok(Claimed::Unmarked(said))
            }
            Err(error) => Err(error),
        }
    }
}

/// Writes the field `Extra` of a node.
fn mark(node: &str, text: &str) -> Result<(), ToolError> {
    let words = ["update".to_owned(), format!("NodeName={node}"), format!("Extra={text}")];
    order("scontrol", &words).map(drop)
}

/// The nodes of a partition, by name, with their `Extra`.
fn parse(text: &str, partition: &str) -> Vec<(String, String)> {
    let mut nodes: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let field = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name));
        let is_in =
            field("Partitions=").is_some_and(|names| names.split(',').any(|other| other == partition));
        if let Some(name) = field("NodeName=").filter(|_| is_in) {
            nodes.push((name.to_owned(), field("Extra=").unwrap_or_default().to_owned()));
        }
    }
    nodes.sort();
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_is_written() {
        let claim = Claim::new("gpu", Path::new("/var/lib/a b:c"), "12ab".to_owned());
        assert_eq!(Mark::parse(&claim.own.text()), Some(claim.own.clone()));
        assert!(claim.own.in_words().ends_with("/var/lib/a_b:c"), "{}", claim.own.in_words());
        assert!(
            !claim.own.is_gone(&claim.own.host) && !Mark { pid: 0, ..claim.own.clone() }.is_gone("other")
        );
        assert!(Mark { pid: u32::MAX, ..claim.own.clone() }.is_gone(&claim.own.host));
        for other in ["", "rack 7", "apportion:", "apportion:a:b:c:d:e"] {
            assert_eq!(Mark::parse(other), None, "{other}");
        }
        let text = "NodeName=b Partitions=gpu,all State=IDLE Extra=rack\nNodeName=a Partitions=gpu State=IDLE\n\
                    NodeName=c Partitions=other Extra=x\n";
        let nodes = parse(text, "gpu");
        assert_eq!(nodes, [("a".to_owned(), String::new()), ("b".to_owned(), "rack".to_owned())]);
    }
}
