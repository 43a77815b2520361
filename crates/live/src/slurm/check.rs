//! A test whether Slurm would take jobs, before anything is begun.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use super::nodes::{Node, NodesError, nodes};
use super::tools::{ToolError, ask};
use super::{Options, SlurmError, batch};

/// Time after which Slurm is asked once more after a refusal: a controller that has just been started may refuse jobs that it takes
/// later.
const AGAIN: Duration = Duration::from_secs(1);

/// Asks Slurm whether it would take a job on a node of each type that it gives jobs. While it does not answer, or has not heard of
/// any node of a type, it is asked again as long as `waits`, which gets the reason, answers true. It would take none if it refuses
/// twice.
///
/// # Errors
/// If it would not take one, or `waits` ends the wait.
pub(super) fn would_take(options: &Options, waits: &mut dyn FnMut(&str) -> bool) -> Result<(), SlurmError> {
    let types: BTreeSet<&str> = options.nodes.iter().map(|(_, worker_type)| worker_type.as_str()).collect();
    for worker_type in types {
        let mut is_refused = false;
        while let Err(error) = takes_one(options, worker_type) {
            let is_to_wait = matches!(error.source, ToolError::Unreachable { .. });
            let is_refusal = matches!(error.source, ToolError::Refused { .. });
            if is_refusal && !std::mem::replace(&mut is_refused, true) {
                thread::sleep(AGAIN);
            } else if !is_to_wait || !waits(&error.source.to_string()) {
                return Err(SlurmError::Refuses { node: error.node, source: error.source });
            }
        }
    }
    Ok(())
}

/// Why it is not known that Slurm would take a job: the node, and the error.
struct Untaken {
    node: String,
    source: ToolError,
}

/// Asks Slurm whether it would take a job on a node of a type. Nothing is asked if it gives no node of the type jobs.
fn takes_one(options: &Options, worker_type: &str) -> Result<(), Untaken> {
    let named = |node: &Node| {
        let is_one = |(other, kind): &&(Node, String)| other.name == node.name && kind == worker_type;
        options.nodes.iter().any(|other| is_one(&other))
    };
    let failed = |node: &str, source: ToolError| Untaken { node: node.to_owned(), source };
    let now = match nodes(&options.partition) {
        Ok(nodes) => nodes,
        Err(NodesError::Tool(source)) => return Err(failed(worker_type, source)),
        // It was a cluster when it was first asked for, so this is not refused.
        Err(_) => return Ok(()),
    };
    let usable: Vec<&Node> = now.iter().filter(|node| named(node) && node.unusable.is_none()).collect();
    let Some(first) = usable.first() else { return Ok(()) };
    let Some(node) = usable.iter().find(|node| !node.is_unknown) else {
        let said = format!("the controller has not heard of {} yet", first.name);
        return Err(failed(&first.name, ToolError::Unreachable { tool: "scontrol", said }));
    };
    let mut arguments = batch::resources(node, 1, options);
    arguments.push("--test-only".to_owned());
    arguments.extend(options.arguments.iter().cloned());
    arguments.push("--wrap=true".to_owned());
    ask("sbatch", &arguments).map(drop).map_err(|source| failed(&node.name, source))
}
