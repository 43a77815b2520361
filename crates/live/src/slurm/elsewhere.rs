//! GPUs that jobs of other partitions hold on nodes of several partitions: neither Slurm's partition nor a shadow has them.

use std::collections::BTreeMap;

use super::all_jobs::{Asked, ask_all};
use super::tools::ToolError;

/// The number of GPUs on each node that jobs of other partitions hold, by the node's name.
///
/// # Errors
/// If Slurm does not answer.
pub fn held_elsewhere(partition: &str) -> Result<BTreeMap<String, u32>, ToolError> {
    let asked = ask_all("%F|%K|%P|%D|%b|%N", &["--all", "--states=RUNNING,COMPLETING"])?;
    Ok(held(&asked, partition))
}

fn held(asked: &Asked, partition: &str) -> BTreeMap<String, u32> {
    let mut held = BTreeMap::new();
    for line in &asked.lines {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [id, task, of, n_nodes, per_node, nodes] = fields.as_slice() else { continue };
        if *of == partition {
            continue;
        }
        let (nodes, n_nodes) = (all_of(nodes), n_nodes.parse().unwrap_or(1));
        let Some((_, n_workers)) = asked.workers((id, task), per_node, n_nodes) else { continue };
        for node in nodes {
            // GPUs that a job asks for in all may lie unevenly; an equal share of each node is the best estimate.
            *held.entry(node).or_default() += n_workers.div_ceil(n_nodes.max(1));
        }
    }
    held
}

/// All names of a list such as `n[03-05,7],m1`.
fn all_of(list: &str) -> Vec<String> {
    let (mut names, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (place, letter) in list.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.extend(expanded(&list[start..place]));
                start = place + 1;
            }
            _ => {}
        }
    }
    names.extend(expanded(&list[start..]));
    names
}

/// The names in `n[03-05,7]`.
fn expanded(name: &str) -> Vec<String> {
    let parts = name.split_once('[').and_then(|(before, rest)| Some((before, rest.split_once(']')?)));
    let Some((before, (ranges, after))) = parts else {
        return if name.is_empty() { Vec::new() } else { vec![name.to_owned()] };
    };
    let ends = expanded(after);
    let ends = if ends.is_empty() { vec![String::new()] } else { ends };
    let mut names = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(from), Ok(to)) = (first.parse::<u64>(), last.parse::<u64>()) else { continue };
        for number in from..=to {
            let width = first.len();
            names.extend(ends.iter().map(|end| format!("{before}{number:0width$}{end}")));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_expanded() {
        for (list, names) in [
            ("n[3-5,7],m", "n3 n4 n5 n7 m"),
            ("m1,n[08-10]-ib", "m1 n08-ib n09-ib n10-ib"),
            ("r[1-2]n[1,3]", "r1n1 r1n3 r2n1 r2n3"),
            ("", ""),
        ] {
            assert_eq!(all_of(list).join(" "), names, "{list}");
        }
    }

    #[test]
    fn jobs_of_other_partitions_hold_workers_of_their_nodes() {
        let lines = [
            "12|N/A|cpu|2|gres:gpu:2|n[1-2]",
            "13|N/A|gpu|1|gres:gpu:1|n1",
            "14|0|cpu|1|gres:gpu:v100:1|n2",
            "15|N/A|cpu|1|N/A|n3",
        ];
        let asked = Asked::new(lines.map(str::to_owned).to_vec(), "");
        let held = held(&asked, "gpu");
        assert_eq!(held, [("n1", 2), ("n2", 3)].map(|(node, n)| (node.to_owned(), n)).into());
    }
}
