//! The nodes of a Slurm partition, and their workers.

use std::collections::BTreeMap;

use thiserror::Error;

use super::tools::{ToolError, ask};

/// Why the cluster cannot be read from Slurm.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NodesError {
    /// Slurm does not answer.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// No partition is named, and none is the default.
    #[error("Slurm has no default partition; its partitions are {known}: name one")]
    NoDefault {
        /// All partitions.
        known: String,
    },
    /// There is no such partition.
    #[error("Slurm has no partition `{name}`; its partitions are {known}")]
    NoPartition {
        /// The partition that was asked for.
        name: String,
        /// All partitions.
        known: String,
    },
    /// No node of it has workers that could be used.
    #[error("no node of the partition `{partition}` has a generic resource `gpu`")]
    NoWorkers {
        /// The partition.
        partition: String,
    },
    /// A node has workers of more than one type, or of none that is known.
    #[error("node {node} has the generic resources `{gres}`: {problem}")]
    Gres {
        /// The node.
        node: String,
        /// The resources that Slurm states.
        gres: String,
        /// The fault, in words.
        problem: String,
    },
}

/// A node with workers of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Slurm's name of it.
    pub name: String,
    /// The address at which other ranks reach its ranks.
    pub address: String,
    /// The type of its workers, as Slurm names it; none if Slurm states only their number.
    pub gres_type: Option<String>,
    /// The number of its workers.
    pub n_workers: u32,
    /// Processors, as Slurm counts them.
    pub n_cpus: u32,
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// Why Slurm gives it no new job; none if it gives it jobs.
    pub unusable: Option<String>,
    /// Whether Slurm has not heard of its state. This is so for all nodes after a start of the controller.
    pub is_unknown: bool,
}

/// States in which Slurm gives a node no new job.
const UNUSABLE: [&str; 13] = [
    "DOWN",
    "DRAIN",
    "ERROR",
    "FAIL",
    "FUTURE",
    "INVALID_REG",
    "MAINT",
    "MAINTENANCE",
    "NOT_RESPONDING",
    "POWERING_DOWN",
    "POWER_DOWN",
    "REBOOT_ISSUED",
    "REBOOT_REQUESTED",
];

/// The name of the partition that is meant: the named one, or Slurm's default.
///
/// # Errors
/// If Slurm does not answer, or has no such partition.
pub fn partition(named: Option<&str>) -> Result<String, NodesError> {
    let text = ask("sinfo", &["--noheader", "--format=%P"].map(str::to_owned))?;
    let all: Vec<&str> = text.split_whitespace().collect();
    let known = || {
        let mut names: Vec<_> = all.iter().map(|name| name.trim_end_matches('*')).collect();
        names.dedup();
        names.join(", ")
    };
    match named {
        Some(name) if all.iter().any(|other| other.trim_end_matches('*') == name) => Ok(name.to_owned()),
        Some(name) => Err(NodesError::NoPartition { name: name.to_owned(), known: known() }),
        None => {
            let default = all.iter().find_map(|name| name.strip_suffix('*'));
            default.map(str::to_owned).ok_or_else(|| NodesError::NoDefault { known: known() })
        }
    }
}

/// The nodes of a partition that have workers, by name.
///
/// # Errors
/// If Slurm does not answer, or a node's workers are of several types.
pub fn nodes(partition: &str) -> Result<Vec<Node>, NodesError> {
    let text = ask("scontrol", &["--oneliner", "show", "node"].map(str::to_owned))?;
    let nodes = parse(&text, partition)?;
    if nodes.is_empty() {
        return Err(NodesError::NoWorkers { partition: partition.to_owned() });
    }
    Ok(nodes)
}

fn parse(text: &str, partition: &str) -> Result<Vec<Node>, NodesError> {
    let mut nodes = Vec::new();
    for line in text.lines() {
        // Values may contain blanks; none of those that are read here does.
        let fields: BTreeMap<&str, &str> =
            line.split_whitespace().filter_map(|field| field.split_once('=')).collect();
        let text = |name: &str| fields.get(name).copied().unwrap_or_default();
        let name = text("NodeName");
        if name.is_empty() || !text("Partitions").split(',').any(|other| other == partition) {
            continue;
        }
        let Some((gres_type, n_workers)) = workers(name, text("Gres"))? else { continue };
        let address = Some(text("NodeAddr")).filter(|address| !address.is_empty()).unwrap_or(name);
        nodes.push(Node {
            name: name.to_owned(),
            address: address.to_owned(),
            gres_type,
            n_workers,
            n_cpus: text("CPUTot").parse().unwrap_or(0),
            memory_mib: text("RealMemory").parse().unwrap_or(0),
            unusable: unusable(text("State")),
            is_unknown: text("State").split('+').any(|word| word.trim_end_matches('*') == "UNKNOWN"),
        });
    }
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(nodes)
}

/// Why a node in this state, such as `IDLE+DRAIN`, gets no new job; none if it does.
fn unusable(state: &str) -> Option<String> {
    let is_one =
        |word: &str| UNUSABLE.contains(&word.trim_end_matches(['*', '~', '#', '!', '%', '$', '@', '^', '-']));
    state.split('+').any(is_one).then(|| state.to_owned())
}

/// The type and the number of the GPUs in a list of generic resources such as `gpu:v100:2(S:0-1),nvme:1`.
fn workers(node: &str, gres: &str) -> Result<Option<(Option<String>, u32)>, NodesError> {
    let failed = |problem: String| NodesError::Gres { node: node.to_owned(), gres: gres.to_owned(), problem };
    let mut found: Option<(Option<String>, u32)> = None;
    for resource in top_level_parts(gres) {
        let resource = resource.split('(').next().unwrap_or_default();
        let words: Vec<&str> = resource.split(':').collect();
        let (kind, count) = match words.as_slice() {
            ["gpu"] => (None, "1"),
            ["gpu", count] if count.parse::<u32>().is_ok() => (None, *count),
            ["gpu", kind] => (Some((*kind).to_owned()), "1"),
            ["gpu", kind, count] => (Some((*kind).to_owned()), *count),
            _ => continue,
        };
        let count: u32 = count.parse().map_err(|_| failed(format!("`{count}` is no number of them")))?;
        found = match found {
            None => Some((kind, count)),
            Some((other, so_far)) if other == kind => Some((kind, so_far + count)),
            Some(_) => {
                return Err(failed("its workers are of several types, and a server has one".to_owned()));
            }
        };
    }
    Ok(found.filter(|(_, count)| *count > 0))
}

/// The parts of a list between commas outside of parentheses.
fn top_level_parts(list: &str) -> Vec<&str> {
    let mut depth = 0u32;
    list.split(|letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted_by_type() {
        let of = |gres: &str| workers("n", gres).unwrap();
        let kind = |name: &str, count: u32| Some((Some(name.to_owned()), count));
        assert_eq!(of("gpu:v100:2"), kind("v100", 2));
        assert_eq!(of("gpu:v100:2(S:0,1),nvme:1,gpu:v100:4(S:1)"), kind("v100", 6));
        assert_eq!(of("gpu:4"), Some((None, 4)));
        assert_eq!(of("gpu:a100"), kind("a100", 1));
        for none in ["(null)", "", "nvme:2", "gpu:v100:0", "gpumem:3"] {
            assert_eq!(of(none), None, "{none}");
        }
        let said = workers("n", "gpu:v100:2,gpu:k80:1").unwrap_err().to_string();
        assert!(said.contains("node n") && said.contains("several types"), "{said}");
    }

    #[test]
    fn a_node_of_the_partition_is_read_with_its_state() {
        let text = "NodeName=b Arch=x86_64 CPUTot=8 OS=Linux 6.1 #1 SMP @0 RealMemory=4000 State=MIXED+DRAIN \
                    Gres=gpu:v100:2 NodeAddr=10.0.0.7 Partitions=gpu,all Reason=fan is broken [root@now]\n\
                    NodeName=a CPUTot=8 RealMemory=1 State=IDLE Gres=gpu:k80:4 Partitions=gpu\n\
                    NodeName=c CPUTot=8 State=IDLE Gres=gpu:k80:4 Partitions=other\n\
                    NodeName=d CPUTot=8 State=IDLE Gres=(null) Partitions=gpu\n";
        let nodes = parse(text, "gpu").unwrap();
        let expected = [("a", "a", 4, None), ("b", "10.0.0.7", 2, Some("MIXED+DRAIN"))];
        let read: Vec<_> = nodes
            .iter()
            .map(|node| (node.name.as_str(), node.address.as_str(), node.n_workers, node.unusable.as_deref()))
            .collect();
        assert_eq!(read, expected);
        assert_eq!((nodes[1].n_cpus, nodes[1].memory_mib), (8, 4000));
    }

    #[test]
    fn states_in_which_a_node_gets_no_job_are_known() {
        for state in ["IDLE", "MIXED", "ALLOCATED+COMPLETING", "IDLE+PLANNED"] {
            assert_eq!(unusable(state), None, "{state}");
        }
        for state in ["DOWN", "DOWN*", "IDLE+DRAIN", "IDLE*+NOT_RESPONDING", "MIXED+MAINTENANCE"] {
            assert!(unusable(state).is_some(), "{state}");
        }
    }
}
