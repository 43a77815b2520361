//! Tables of nodes, as clusters: how many accelerators of each type, on how many servers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apportion::index::{Id, WorkerTypeId};
use apportion::spec::trace::field::Field;
use apportion::spec::{Place, SpecError};
use apportion::{Cluster, ClusterError};

use crate::forms::scontrol::{self, Node};
use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::table::{Cells, Columns, is_nothing};
use crate::tally::Tally;

/// The most characters of a worker type's name.
const NAME_MAX: usize = 200;

/// Form of a table of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeForm {
    /// Slurm's nodes, as `scontrol show node` prints them, a line each or several.
    Scontrol,
    /// Alibaba's nodes of 2026: node_info_df.csv.
    SpotGpu,
    /// Alibaba's nodes of 2023: openb_node_list_all_node.csv.
    Openb,
}

/// Accelerators in a table of nodes, with counts of the nodes that are not usable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nodes {
    /// Number of servers by worker type, then by workers of a server.
    pub types: BTreeMap<String, BTreeMap<u32, u32>>,
    /// Nodes without accelerators.
    pub without_workers: Tally,
    /// Nodes whose accelerators have no named type.
    pub without_type: Tally,
    /// Nodes whose list of accelerators differs from the number that the scheduler counts; the list is taken.
    pub contradictory: Tally,
    /// Nodes that are down, drained or planned; their accelerators are not counted.
    pub away: Tally,
    /// The first complaints about nodes that are not understood.
    pub complaints: Vec<apportion::spec::Diagnostic>,
    /// Number of nodes with something that is not understood.
    pub n_not_understood: u64,
}

const SPOT_GPU: Columns = Columns {
    form: None,
    required: &["node_name", "gpu_model", "gpu_capacity_num"],
    optional: &[],
    ignored: &["cpu_num"],
    without_header: &[],
    separator: ',',
    with_separator: &[],
    advice: "",
};

const OPENB: Columns = Columns {
    form: None,
    required: &["sn", "model", "gpu"],
    optional: &[],
    ignored: &["cpu_milli", "memory_mib"],
    without_header: &[],
    separator: ',',
    with_separator: &[],
    advice: "",
};

impl Nodes {
    /// The cluster, with the largest type first. Servers of one type may differ in size; the cluster has the most common
    /// size of each.
    ///
    /// # Errors
    /// If there is no accelerator, or there are too many.
    pub fn cluster(&self) -> Result<Cluster, ClusterError> {
        let mut types: Vec<(&String, u64, u32)> = Vec::new();
        for (name, sizes) in &self.types {
            let n_workers = sizes.iter().map(|(size, n)| u64::from(*size) * u64::from(*n)).sum();
            let most = sizes.iter().max_by_key(|(size, n)| (**n, **size)).map_or(1, |(size, _)| *size);
            types.push((name, n_workers, most));
        }
        types.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        let counted = types.iter().map(|(name, n_workers, _)| {
            let too_many = ClusterError::TooMany { name: (*name).clone(), n_workers: *n_workers };
            Ok(((*name).clone(), u32::try_from(*n_workers).map_err(|_| too_many)?))
        });
        let mut cluster = Cluster::try_new(counted.collect::<Result<Vec<_>, ClusterError>>()?)?;
        for (at, (_, _, most)) in types.into_iter().enumerate() {
            cluster.set_workers_per_server(WorkerTypeId::from_index(at), most);
        }
        Ok(cluster)
    }

    /// Takes in a node. Returns a message if its worker type is not understood.
    fn take(&mut self, mut node: Node) -> Result<(), String> {
        for (kind, _) in &mut node.workers {
            if is_nothing(kind) {
                kind.clear();
            }
            if kind.contains(['=', ','])
                || kind.contains(char::is_control)
                || kind.chars().nth(NAME_MAX).is_some()
            {
                let shown = Field::shortened(kind);
                return Err(format!(
                    "worker type `{shown}`, expected at most {NAME_MAX} characters, without `=`, `,` and controls, as \
                     --cluster takes"
                ));
            }
        }
        self.count(node);
        Ok(())
    }

    fn count(&mut self, node: Node) {
        if node.is_away {
            return self.away.count(node.line, Some(&node.name));
        }
        if node.is_contradictory {
            self.contradictory.count(node.line, Some(&node.name));
        }
        if node.workers.iter().all(|(_, n)| *n == 0) {
            return self.without_workers.count(node.line, Some(&node.name));
        }
        if node.workers.iter().any(|(name, _)| name.is_empty()) {
            return self.without_type.count(node.line, Some(&node.name));
        }
        for (name, n) in node.workers.into_iter().filter(|(_, n)| *n > 0) {
            *self.types.entry(name).or_default().entry(n).or_default() += 1;
        }
    }
}

/// Reads the table of nodes at a path, packed by gzip or not; `-` is standard input.
///
/// # Errors
/// If it cannot be read or is not of the form. What of a node is not understood is among the
/// [complaints](Nodes::complaints).
pub fn read_nodes(path: &str, form: NodeForm) -> Result<Nodes, SpecError> {
    read(&mut Input::open(path)?, form)
}

/// Reads a table of nodes from a reader; `name` is its name in error messages.
///
/// ```
/// use apportion_logs::nodes::{NodeForm, read_nodes_from};
/// let text = "sn,cpu_milli,memory_mib,gpu,model\nn1,96000,393216,8,G2\nn2,96000,393216,8,G2\nn3,32000,1024,0,\n";
/// let nodes = read_nodes_from("nodes.csv", text.as_bytes(), NodeForm::Openb)?;
/// assert_eq!(nodes.cluster()?.to_string(), "G2=16");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Reads and refuses as [`read_nodes`] does.
pub fn read_nodes_from(
    name: &str,
    from: impl std::io::Read + 'static,
    form: NodeForm,
) -> Result<Nodes, SpecError> {
    read(&mut Input::new(name, Box::new(from))?, form)
}

fn read(input: &mut Input, form: NodeForm) -> Result<Nodes, SpecError> {
    let mut nodes = Nodes::default();
    let mut names = BTreeSet::new();
    let mut log = Reading::new(&input.name, None);
    let mut take = |node: Result<Node, Fault>, text: &str, log: &mut Reading| {
        let node = match node {
            Ok(node) => node,
            Err(fault) => return log.complain(fault, text),
        };
        let place = Place { line: usize::try_from(node.line).unwrap_or(usize::MAX), column: 1, width: 1 };
        let shown = Field::shortened(&node.name);
        let taken = if names.insert(Arc::clone(&node.name)) {
            nodes.take(node)
        } else {
            Err("it is in the table already".to_owned())
        };
        if let Err(what) = taken {
            log.complain(Fault { place, message: format!("node `{shown}`: {what}") }, text);
        }
    };
    match form {
        NodeForm::Scontrol => scontrol::read(input, &mut log, take)?,
        NodeForm::SpotGpu => SPOT_GPU.read(input, &mut log, |cells, log| {
            let node = node(cells, ["node_name", "gpu_model", "gpu_capacity_num"]);
            let text = text_of(cells, &node);
            take(node, text, log);
        })?,
        NodeForm::Openb => OPENB.read(input, &mut log, |cells, log| {
            let node = node(cells, ["sn", "model", "gpu"]);
            let text = text_of(cells, &node);
            take(node, text, log);
        })?,
    }
    nodes.n_not_understood = log.n_not_understood();
    nodes.complaints = log.complaints;
    Ok(nodes)
}

/// The line that is shown where something is wrong with a node.
fn text_of<'c>(cells: &'c Cells<'_>, node: &Result<Node, Fault>) -> &'c str {
    match node {
        Ok(_) => cells.text.lines().next().unwrap_or_default(),
        Err(fault) => cells.line_text(fault),
    }
}

fn node(cells: &Cells<'_>, [name, kind, n_workers]: [&str; 3]) -> Result<Node, Fault> {
    let n = cells.count(n_workers)?.ok_or_else(|| {
        cells.fault(n_workers, format!("how many accelerators the node has is not said: no {n_workers}"))
    })?;
    Ok(Node {
        name: cells.id(name)?,
        workers: vec![(cells.raw(kind).unwrap_or_default().to_owned(), n)],
        is_away: false,
        is_contradictory: false,
        line: cells.line,
    })
}
