//! `apportion trace cluster`: the cluster of a table of nodes.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use super::log::COMPLAINTS_SHOWN;
use crate::Session;
use crate::exit::Failure;
use crate::output::{Answer, OutputFormat};
use crate::paths::name_or_path;
use apportion::spec::SpecError;
use apportion_logs::nodes::{NodeForm, Nodes, read_nodes};
use apportion_logs::tally::{Tally, counted};
use apportion_studies::report::{Cell, Table};

#[derive(Args, Debug)]
pub(super) struct NodesArguments {
    /// The table of nodes, packed by gzip or not; `-` is standard input
    #[arg(value_parser = name_or_path())]
    file: String,
    /// Its form
    #[arg(long, value_enum, value_name = "FORM")]
    from: Form,
    /// Leave out nodes of which something is not understood, and say how many and which come first
    #[arg(long)]
    skip_unreadable: bool,
}

/// The cluster of a table of nodes, as `apportion trace cluster --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NodesSummary<'a> {
    /// The cluster, as `--cluster` takes it.
    cluster: String,
    /// Its worker types.
    types: Vec<NodesOfType<'a>>,
}

impl Answer for NodesSummary<'_> {
    const KIND: &'static str = "nodes";
}

/// The servers of a worker type.
#[derive(Serialize, JsonSchema)]
struct NodesOfType<'a> {
    /// The worker type.
    name: &'a str,
    /// The number of its workers.
    n_workers: u32,
    /// Workers on each server, as `--servers` takes it: if servers differ, the most frequent number.
    workers_per_server: u32,
    /// The number of servers by the number of their workers.
    servers_by_workers: &'a BTreeMap<u32, u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Slurm's nodes: what `scontrol show node` prints, with or without `-o`.
    Scontrol,
    /// Alibaba's nodes of 2026: node_info_df.csv.
    SpotGpu,
    /// Alibaba's nodes of 2023: openb_node_list_all_node.csv.
    Openb,
}

pub(super) fn run(arguments: &NodesArguments, session: &Session) -> Result<(), Failure> {
    let form = match arguments.from {
        Form::Scontrol => NodeForm::Scontrol,
        Form::SpotGpu => NodeForm::SpotGpu,
        Form::Openb => NodeForm::Openb,
    };
    let nodes = read_nodes(&arguments.file, form)?;
    let n = nodes.n_not_understood;
    let complaints = nodes.complaints.iter().map(|complaint| SpecError::from(complaint.clone()));
    if n > 0 && !arguments.skip_unreadable {
        let message = format!("{} not understood, the first here:", counted(n, "node"));
        let help = "`--skip-unreadable` leaves them out, and says so".to_owned();
        let whole = SpecError::about(arguments.file.clone(), message, Some(help));
        SpecError::join(std::iter::once(whole).chain(complaints))?;
    } else if n > 0 {
        session.note(format!("{} not understood and left out, the first:", counted(n, "node")));
        for complaint in complaints.take(COMPLAINTS_SHOWN) {
            session.note(complaint.to_string());
        }
    }
    for (tally, what) in [
        (&nodes.without_workers, "without an accelerator"),
        (&nodes.without_type, "with accelerators whose type is not named, which are not counted"),
        (&nodes.away, "down, drained or not there yet, and not counted"),
        (
            &nodes.contradictory,
            "with more or fewer accelerators than the scheduler counts (Gres and CfgTRES differ); Gres counts",
        ),
    ] {
        say(tally, what, session);
    }
    print(arguments, &nodes, session)
}

fn say(tally: &Tally, what: &str, session: &Session) {
    if tally.n > 0 {
        let id = tally.id.as_deref().unwrap_or_default();
        session.note(format!("{} {what} (first: line {}, `{id}`)", counted(tally.n, "node"), tally.line));
    }
}

fn print(arguments: &NodesArguments, nodes: &Nodes, session: &Session) -> Result<(), Failure> {
    let cluster = nodes.cluster().map_err(|error| {
        let help = "notes above say which nodes were left out".to_owned();
        SpecError::about(arguments.file.clone(), error.to_string(), Some(help))
    })?;
    let mut table = Table::new(["worker_type", "workers", "servers", "workers_per_server"]);
    for kind in cluster.types() {
        let sizes = &nodes.types[&kind.name];
        let each: Vec<String> = sizes.iter().map(|(size, n)| format!("{size} on {n}")).collect();
        let n_servers: u64 = sizes.values().map(|n| u64::from(*n)).sum();
        let each = if sizes.len() == 1 { kind.workers_per_server.to_string() } else { each.join(", ") };
        let n_workers = Cell::Count(u64::from(kind.n_workers));
        table.push(vec![kind.name.as_str().into(), n_workers, Cell::Count(n_servers), each.into()]);
    }
    match session.output.format() {
        OutputFormat::Json => session.output.answer(&NodesSummary {
            cluster: cluster.to_string(),
            types: cluster
                .types()
                .iter()
                .map(|kind| NodesOfType {
                    name: &kind.name,
                    n_workers: kind.n_workers,
                    workers_per_server: kind.workers_per_server,
                    servers_by_workers: &nodes.types[&kind.name],
                })
                .collect(),
        }),
        OutputFormat::Csv => session.output.table(&table),
        OutputFormat::Table => {
            session.output.table(&table)?;
            if nodes.types.values().any(|sizes| sizes.len() > 1) {
                session
                    .note("servers of one type differ in size; --servers has the most common size of each");
            }
            let servers: Vec<String> = cluster
                .types()
                .iter()
                .map(|kind| format!("{}={}", kind.name, kind.workers_per_server))
                .collect();
            session.output.words(&format!("--cluster {cluster} --servers {}", servers.join(",")))
        }
    }
}
