//! Slurm's nodes: `scontrol show node`, with a block per node, or a line per node with `-o`.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion::spec::trace::field::Field;
use apportion::spec::{Place, SpecError};

use super::tres;
use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::row::TOO_MANY_WORKERS;

/// A node with accelerators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: Arc<str>,
    /// Accelerators by type; a node with several types has an entry for each.
    pub(crate) workers: Vec<(String, u32)>,
    /// Whether it is down, drained, or in the future.
    pub(crate) is_away: bool,
    /// Whether its list of accelerators differs from the number that the scheduler counts.
    pub(crate) is_contradictory: bool,
    pub(crate) line: u64,
}

/// Slurm's states and flags of nodes, with whether a node in them is away: no job will be started there. A node that Slurm
/// switches on when a job comes is not away.
const STATES: [(&str, bool); 33] = [
    ("ALLOCATED", false),
    ("BLOCKED", false),
    ("CLOUD", false),
    ("COMPLETING", false),
    ("DOWN", true),
    ("DRAIN", true),
    ("DRAINED", true),
    ("DRAINING", true),
    ("DYNAMIC_FUTURE", false),
    ("DYNAMIC_NORM", false),
    ("ERROR", true),
    ("FAIL", true),
    ("FAILING", true),
    ("FUTURE", true),
    ("IDLE", false),
    ("INVAL", true),
    ("INVALID_REG", true),
    ("MAINTENANCE", false),
    ("MAINT", false),
    ("MIXED", false),
    ("NOT_RESPONDING", false),
    ("NO_RESPOND", false),
    ("PLANNED", false),
    ("POWERED_DOWN", false),
    ("POWERING_DOWN", false),
    ("POWERING_UP", false),
    ("POWER_DOWN", false),
    ("POWER_UP", false),
    ("REBOOT_ISSUED", false),
    ("REBOOT_REQUESTED", false),
    ("RESERVED", false),
    ("RESUME", false),
    ("UNKNOWN", true),
];

/// Keys of the node that is being read. Free text may hold anything, so the first word of a kind counts.
#[derive(Default)]
struct Block {
    line: u64,
    name: String,
    gres: Option<String>,
    state: Option<String>,
    configured: Option<String>,
}

/// Gives each node to `take`.
pub(crate) fn read(
    input: &mut Input,
    log: &mut Reading,
    mut take: impl FnMut(Result<Node, Fault>, &str, &mut Reading),
) -> Result<(), SpecError> {
    let mut block: Option<Block> = None;
    let source = input.name.clone();
    while let Some((line, text)) = input.line()? {
        if let Some(name) = text.strip_prefix("NodeName=") {
            if let Some(block) = block.take() {
                log.n_read += 1;
                take(block.node(), "", log);
            }
            let name = name.split_whitespace().next().unwrap_or_default().to_owned();
            block = Some(Block { line, name, ..Block::default() });
        }
        if let Some(block) = &mut block {
            block.take_line(text);
        } else {
            let help = "expected what `scontrol show node` prints: lines of `NodeName=… Gres=… State=…`";
            let message = format!("no `NodeName` up to line {line}");
            return Err(SpecError::about(source, message, Some(help.to_owned())));
        }
    }
    let block = block.ok_or_else(|| SpecError::about(source, "no nodes: it is empty", None))?;
    log.n_read += 1;
    take(block.node(), "", log);
    Ok(())
}

impl Block {
    /// Takes in a line of words `KEY=VALUE`. Text after `Reason=` or another key of free text is not read.
    fn take_line(&mut self, text: &str) {
        for word in text.split_whitespace() {
            let Some((key, value)) = word.split_once('=') else { continue };
            let slot = match key {
                "Gres" => &mut self.gres,
                "State" => &mut self.state,
                "CfgTRES" => &mut self.configured,
                // The rest of the line is free text.
                "OS" | "Reason" | "Comment" | "Extra" if !text.starts_with("NodeName=") => break,
                "Reason" | "Comment" | "Extra" => break,
                _ => continue,
            };
            slot.get_or_insert_with(|| value.to_owned());
        }
    }

    fn node(self) -> Result<Node, Fault> {
        let Self { line, name, gres, state, configured } = self;
        let shown = Field::shortened(&name);
        let fault = |message: String| Fault {
            place: Place { line: usize::try_from(line).unwrap_or(usize::MAX), column: 1, width: 1 },
            message: format!("node `{shown}` {message}"),
        };
        if name.contains(['[', ']', ',']) {
            return Err(fault(
                "is a range of nodes, expected one node: `scontrol show node` prints each".to_owned(),
            ));
        }
        let state = state.ok_or_else(|| fault("has no State".to_owned()))?;
        let gres = gres.ok_or_else(|| {
            fault("has no Gres, which scontrol prints of a node without accelerators, too".to_owned())
        })?;
        let mut is_away = false;
        for flag in state.split('+') {
            let plain = flag.trim_end_matches(|mark: char| !mark.is_ascii_alphanumeric());
            let known = STATES.iter().find(|(name, _)| *name == plain);
            let known = known.ok_or_else(|| {
                fault(format!("has State `{}`, which is none of Slurm's", Field::shortened(&state)))
            })?;
            is_away |= known.1;
        }
        let mut workers: BTreeMap<String, u32> = BTreeMap::new();
        for entry in split(&gres) {
            let found = accelerators(entry).map_err(|what| fault(format!("has {what}")))?;
            let Some((kind, n)) = found else { continue };
            let sum = workers.entry(kind).or_default();
            *sum = sum.checked_add(n).ok_or_else(|| fault(format!("has {TOO_MANY_WORKERS}")))?;
        }
        let is_part = |entry: &&str| entry.starts_with("shard") || entry.starts_with("mps");
        if let (true, Some(entry)) = (workers.is_empty(), split(&gres).into_iter().find(is_part)) {
            let shown = Field::shortened(entry);
            return Err(fault(format!(
                "has Gres `{shown}`, which is parts of accelerators, and no accelerators"
            )));
        }
        let mut workers: Vec<(String, u32)> = workers.into_iter().collect();
        let configured = tres::accelerators(configured.as_deref().unwrap_or_default()).unwrap_or_default();
        let sum = |all: &[(String, u32)]| all.iter().map(|(_, n)| u64::from(*n)).sum::<u64>();
        let n = sum(&workers);
        // Types of accelerators that only the configured resources name.
        let of_types = sum(&configured.types);
        if workers.iter().any(|(kind, _)| kind.is_empty()) && of_types == n {
            workers = configured.types;
        }
        let is_contradictory = configured.is_listed && u64::from(configured.n) != n;
        Ok(Node { name: name.into(), workers, is_away, is_contradictory, line })
    }
}

/// Entries of a list, split at commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let at_comma = |letter: char| {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    };
    text.split(at_comma).map(str::trim).filter(|entry| !entry.is_empty()).collect()
}

/// Type and number of an entry such as `gpu:a100:4(S:0-1)` or `gpu:4`; none for other resources.
fn accelerators(entry: &str) -> Result<Option<(String, u32)>, String> {
    let plain = entry.split('(').next().unwrap_or(entry);
    let mut parts = plain.split(':');
    let first = parts.next().unwrap_or_default();
    let parts: Vec<&str> = parts.filter(|part| *part != "no_consume").collect();
    let not_understood = || format!("Gres `{}`, expected gpu:TYPE:NUMBER", Field::shortened(entry));
    match first.to_ascii_lowercase().as_str() {
        "gpu" => {}
        // Memory, cores and shares of accelerators are counted separately.
        "gpumem" | "gpucores" => return Ok(None),
        other if other.contains("gpu") => return Err(not_understood()),
        _ => return Ok(None),
    }
    let (kind, n) = match parts[..] {
        [] => ("", "1"),
        [n] => ("", n),
        [kind, n] => (kind, n),
        _ => return Err(not_understood()),
    };
    let n = n.parse().map_err(|_| not_understood())?;
    Ok(Some((kind.to_owned(), n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_slurm_writes_them() {
        let entries = split("gpu:a100:4(S:0-1),gpu:v100:no_consume:2(S:0,1),shard:8,gpu:3");
        let read: Vec<_> =
            entries.into_iter().map(|entry| accelerators(entry).expect("understood")).collect();
        let of = |kind: &str, n| Some((kind.to_owned(), n));
        assert_eq!(read, [of("a100", 4), of("v100", 2), None, of("", 3)]);
        assert_eq!(accelerators("gpu"), Ok(of("", 1)));
        assert_eq!(accelerators("GPU:a100:4"), Ok(of("a100", 4)));
        for odd in ["gpu:a100:x", "gpu=8", "gres/gpu=8", "gres/gpu:a100:2", "gpus:4"] {
            assert!(accelerators(odd).is_err(), "{odd}");
        }
    }
}
