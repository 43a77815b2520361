//! `apportion serve --executor slurm`: the cluster is a partition of Slurm, and Slurm carries the leases.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;

use super::local::Direct;
use super::log::Log;
use super::{sbatch, shared};
use crate::Session;
use crate::exit::Failure;
use apportion::catalog::Catalog;
use apportion::spec::nearest::{name_list, suggestion};
use apportion::spec::policy::{Colocation, PolicyKind, Rule};
use apportion::spec::run::WorkerCounts;
use apportion::throughput::Throughputs;
use apportion::units::Seconds;
use apportion_live::agent::LinkError;
use apportion_live::driver::Client;
use apportion_live::slurm::{self, Executor, Node, NodesError, Options, SlurmError, ToolError};

/// The pause before a controller that does not answer is asked again.
const PAUSE: Duration = Duration::from_secs(2);

/// The name in `--slurm-types` of a worker without a type.
const UNTYPED: &str = "gpu";

/// Flags of leases as Slurm jobs.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Slurm (--executor slurm, --shadow slurm)")]
pub(super) struct SlurmArguments {
    /// The partition of Slurm that is the cluster; its default one where not given
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// An existing folder that all nodes see by the same path: outputs and checkpoints; STATE/shared, which is made, where not
    /// given
    #[arg(long, value_name = "DIR")]
    shared: Option<PathBuf>,
    /// The throughputs' names for Slurm's types of GPU, such as tesla=v100; `gpu=v100` names GPUs without a type
    #[arg(long, value_name = "GRES=TYPE,…", value_delimiter = ',', value_parser = pair)]
    slurm_types: Vec<(String, String)>,
    /// Time limit of a Slurm job, as Slurm writes it; the partition's where not given. Before it a job saves, and goes on in
    /// another
    #[arg(long, value_name = "TIME", value_parser = word)]
    slurm_time: Option<String>,
    /// The job type, as the throughputs name it, of Slurm's jobs with this name; may be given several times (`--shadow`)
    #[arg(long, value_name = "NAME=TYPE", value_parser = pair)]
    pub(super) job_type_of: Vec<(String, String)>,
    /// One more argument of `sbatch`, such as --account=x; may be given several times
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true, value_parser = word)]
    sbatch: Vec<String>,
    /// This program's path on the nodes and on this machine; where it is run from where not given
    #[arg(long, value_name = "FILE")]
    node_program: Option<PathBuf>,
}

impl SlurmArguments {
    /// A given flag about Slurm; none if there is none.
    pub(super) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--partition", self.partition.is_some()),
            ("--slurm-types", !self.slurm_types.is_empty()),
            ("--job-type-of", !self.job_type_of.is_empty()),
        ];
        let given = flags.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag));
        given.or_else(|| self.given_of_leases())
    }

    /// A given flag about the Slurm jobs that apportion submits; none if there is none.
    pub(super) fn given_of_leases(&self) -> Option<&'static str> {
        let flags = [
            ("--shared", self.shared.is_some()),
            ("--slurm-time", self.slurm_time.is_some()),
            ("--sbatch", !self.sbatch.is_empty()),
            ("--node-program", self.node_program.is_some()),
        ];
        flags.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((gres, name)) if !gres.is_empty() && !name.is_empty() => Ok((gres.to_owned(), name.to_owned())),
        _ => Err("expected GRES=TYPE: Slurm's name and that of the throughputs".to_owned()),
    }
}

fn word(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
        return Err("expected one word".to_owned());
    }
    Ok(text.to_owned())
}

/// A wait for a controller that cannot answer yet, until the command is to end.
struct Patience<'a> {
    session: &'a Session,
    is_said: bool,
}

impl<'a> Patience<'a> {
    fn new(session: &'a Session) -> Self {
        Self { session, is_said: false }
    }

    /// Waits a little, and notes the reason once. False if the command is to end.
    fn waits(&mut self, why: &str) -> bool {
        let is_asked_to_end = || self.session.interrupt.flag().load(Ordering::Relaxed);
        if is_asked_to_end() {
            return false;
        }
        if !std::mem::replace(&mut self.is_said, true) {
            self.session.note(format!("{why}; it is waited for"));
        }
        thread::sleep(PAUSE);
        !is_asked_to_end()
    }
}

/// Sends a request to Slurm, and sends it again while `is_away` takes the answer for one of a controller that is away, until the
/// command is to end.
///
/// # Errors
/// Any error other than that of a controller that is away.
pub(super) fn asked<T, E: Display>(
    session: &Session,
    ask: impl Fn() -> Result<T, E>,
    is_away: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let mut patience = Patience::new(session);
    loop {
        match ask() {
            Err(error) if is_away(&error) && patience.waits(&error.to_string()) => {}
            answer => return answer,
        }
    }
}

/// The partition that is the cluster.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    name: String,
    /// The nodes, and the type of each one's workers as the throughputs name it.
    nodes: Vec<(Node, String)>,
}

impl Partition {
    /// Finds the partition, and waits for a controller that does not answer.
    ///
    /// # Errors
    /// If Slurm does not answer, or a node's workers are of no type that the throughputs have.
    pub(super) fn find(
        arguments: &SlurmArguments,
        throughputs: &Throughputs,
        session: &Session,
    ) -> Result<Self, Failure> {
        let failed = |error: NodesError| {
            let help =
                "`sinfo` and `scontrol show node` show what there is; `--partition NAME` names another";
            Failure::usage(error.to_string(), Some(help.to_owned()))
        };
        let ask = || {
            let name = slurm::partition(arguments.partition.as_deref())?;
            slurm::nodes(&name).map(|nodes| (name, nodes))
        };
        let is_away = |error: &NodesError| matches!(error, NodesError::Tool(ToolError::Unreachable { .. }));
        let (name, nodes) = asked(session, ask, is_away).map_err(failed)?;
        check_types(arguments, &name, &nodes)?;
        let typed = |node: Node| {
            let worker_type = worker_type(&node, arguments, throughputs)?;
            Ok((node, worker_type))
        };
        Ok(Self { name, nodes: nodes.into_iter().map(typed).collect::<Result<_, Failure>>()? })
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The nodes, and the type of each one's workers.
    pub(super) fn nodes(&self) -> &[(Node, String)] {
        &self.nodes
    }

    /// The type of a node's workers.
    pub(super) fn type_of(&self, node: &str) -> Option<&str> {
        self.nodes.iter().find(|(other, _)| other.name == node).map(|(_, name)| name.as_str())
    }

    /// The worker types of nodes with this type of GPU in Slurm; of all nodes if there is none.
    pub(super) fn types_for(&self, gres_type: Option<&str>) -> BTreeSet<&str> {
        let may = |node: &Node| gres_type.is_none() || node.gres_type.as_deref() == gres_type;
        self.nodes.iter().filter(|(node, _)| may(node)).map(|(_, name)| name.as_str()).collect()
    }

    /// The number of workers of each type that Slurm gives jobs of this partition now; none if it does not answer. Workers that
    /// jobs of other partitions hold are not counted.
    pub(super) fn workers_up(&self) -> Option<BTreeMap<String, u32>> {
        let nodes = slurm::nodes(&self.name).ok()?;
        let held = slurm::held_elsewhere(&self.name).ok()?;
        let mut n_up = BTreeMap::new();
        for node in nodes.iter().filter(|node| node.unusable.is_none()) {
            if let Some(name) = self.type_of(&node.name) {
                *n_up.entry(name.to_owned()).or_default() +=
                    node.n_workers.saturating_sub(held.get(&node.name).copied().unwrap_or(0));
            }
        }
        Some(n_up)
    }

    /// By type, the number of workers, and the number on each of its servers. If nodes differ, each counts as the largest.
    pub(super) fn workers(&self) -> (WorkerCounts, WorkerCounts) {
        let mut sizes: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (node, worker_type) in &self.nodes {
            sizes.entry(worker_type).or_default().push(node.n_workers);
        }
        let most = |sizes: &[u32]| sizes.iter().copied().max().unwrap_or(1);
        let per_server = |(name, sizes): (&&str, &Vec<u32>)| ((*name).to_owned(), most(sizes));
        let in_all = |(name, sizes): (&&str, &Vec<u32>)| {
            let n_nodes = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
            ((*name).to_owned(), most(sizes).saturating_mul(n_nodes))
        };
        let counts = WorkerCounts(sizes.iter().map(in_all).collect());
        (counts, WorkerCounts(sizes.iter().map(per_server).collect()))
    }
}

/// Refuses names of types that no node has.
fn check_types(arguments: &SlurmArguments, partition: &str, nodes: &[Node]) -> Result<(), Failure> {
    let known: BTreeSet<&str> =
        nodes.iter().map(|node| node.gres_type.as_deref().unwrap_or(UNTYPED)).collect();
    let strange = arguments.slurm_types.iter().find(|(gres, _)| !known.contains(gres.as_str()));
    let Some((gres, _)) = strange else { return Ok(()) };
    let message = format!(
        "--slurm-types: no node of the partition `{partition}` has workers of the type `{gres}`, expected one of {}",
        name_list(known.iter().copied())
    );
    Err(Failure::usage(message, suggestion(gres, known.iter().copied())))
}

/// The seconds of a time limit in Slurm's form; none if there is no limit, or the form is not Slurm's.
fn limit(text: &str) -> Option<f64> {
    let (days, time) = text.split_once('-').map_or((None, text), |(days, time)| (Some(days), time));
    let parts: Vec<f64> =
        time.split(':').map(|part| part.parse::<u32>().ok().map(f64::from)).collect::<Option<_>>()?;
    let seconds = match (days, parts.as_slice()) {
        (None, [minutes]) => minutes * 60.0,
        (None, [minutes, seconds]) => minutes * 60.0 + seconds,
        (_, [hours, minutes, seconds]) => hours * 3600.0 + minutes * 60.0 + seconds,
        (Some(_), [hours, minutes]) => hours * 3600.0 + minutes * 60.0,
        (Some(_), [hours]) => hours * 3600.0,
        _ => return None,
    };
    let days: u32 = days.map_or(Some(0), |days| days.parse().ok())?;
    Some(seconds + f64::from(days) * 86_400.0).filter(|seconds| *seconds > 0.0)
}

/// Refuses a time limit in which no lease fits.
///
/// # Errors
/// If it is not longer than a round, the grace and a minute.
pub(super) fn check_time(arguments: &SlurmArguments, round: Seconds, grace: Seconds) -> Result<(), Failure> {
    let least = round + grace + Seconds::new(60.0);
    match arguments.slurm_time.as_deref().and_then(|text| Some((text, limit(text)?))) {
        Some((text, seconds)) if seconds <= least.get() => Err(Failure::usage(
            format!(
                "--slurm-time {text} is {seconds} s, expected more than a round, the grace and a minute: {} s",
                least.get()
            ),
            Some("`--slurm-time 30` is half an hour; `--round-length` makes rounds shorter".to_owned()),
        )),
        _ => Ok(()),
    }
}

fn worker_type(
    node: &Node,
    arguments: &SlurmArguments,
    throughputs: &Throughputs,
) -> Result<String, Failure> {
    let gres = node.gres_type.as_deref().unwrap_or(UNTYPED);
    let named = arguments.slurm_types.iter().find(|(other, _)| other == gres).map(|(_, name)| name.as_str());
    let wanted = named.unwrap_or(gres);
    let known = throughputs.worker_types();
    if let Some(name) = known.iter().find(|name| name.eq_ignore_ascii_case(wanted)) {
        return Ok(name.clone());
    }
    let types = name_list(known.iter().map(String::as_str));
    let of = throughputs.name();
    let message = match named {
        Some(name) => format!(
            "--slurm-types: the throughputs `{of}` have no worker type `{name}`, expected one of {types}"
        ),
        None if node.gres_type.is_none() => format!(
            "Slurm does not say of which type the GPUs of node {} are: `--slurm-types gpu=TYPE` says it, one of {types}",
            node.name
        ),
        None => format!(
            "Slurm calls the GPUs of node {} `{gres}`, and the throughputs `{of}` have {types}: `--slurm-types {gres}=TYPE` \
             says which that is",
            node.name
        ),
    };
    Err(Failure::usage(message, None))
}

/// Refuses policies that put two jobs on one worker: Slurm gives a worker to one job.
///
/// # Errors
/// If the policy does so, or cannot be read.
pub(super) fn check_policy(catalog: &Catalog, policy: &str) -> Result<(), Failure> {
    let document = catalog.document(policy)?;
    let shares = match &document.kind {
        PolicyKind::Program(program) => program.colocation == Colocation::Pairs,
        PolicyKind::Heuristic(heuristic) => matches!(heuristic.rule, Rule::FifoPacked | Rule::Gandiva),
        PolicyKind::Plugin(plugged) => plugged.pairs,
    };
    if !shares {
        return Ok(());
    }
    let message =
        format!("--policy {policy}: it puts two jobs on one worker, and Slurm gives a worker to one job");
    let help =
        "take a policy without space sharing (`apportion policies` lists them), or agents in place of Slurm";
    Err(Failure::usage(message, Some(help.to_owned())))
}

/// The executor, and warnings about its folders for the operator.
///
/// # Errors
/// If its folder cannot be used, or Slurm would take no job.
pub(super) fn executor(
    arguments: &SlurmArguments,
    partition: Partition,
    state: &Path,
    session: &Session,
) -> Result<(Executor, Vec<String>), Failure> {
    let folder = arguments.shared.clone().unwrap_or_else(|| state.join("shared"));
    if let Some(folder) = &arguments.shared {
        shared::check_folder(folder)?;
    }
    sbatch::check(&arguments.sbatch)?;
    let here = || env::current_exe().map_err(Failure::io("find this program"));
    let program =
        arguments.node_program.as_deref().map(shared::node_program).transpose()?.map_or_else(here, Ok)?;
    let addresses = partition.nodes.iter().map(|(node, _)| node.address.as_str()).collect();
    let warnings = shared::warnings(&addresses, state, &folder);
    let mut options = Options::new(partition.name, folder, program, partition.nodes);
    options.time_limit.clone_from(&arguments.slurm_time);
    options.arguments.clone_from(&arguments.sbatch);
    let mut patience = Patience::new(session);
    let executor = Executor::open(options, &mut |why| patience.waits(why)).map_err(|error| {
        let help = match &error {
            SlurmError::Refuses { .. } => {
                "`--sbatch --account=NAME` and the like state what this site's Slurm asks for".to_owned()
            }
            _ => "`--shared DIR` names a folder that all nodes see".to_owned(),
        };
        Failure::usage(error.to_string(), Some(help))
    })?;
    Ok((executor, warnings))
}

/// Runs the executor until `stop`.
pub(super) fn run(executor: &mut Executor, client: &Client, beat: Seconds, log: &Log<'_>, stop: &AtomicBool) {
    let link = |name: &str| Direct::new(client, name).map_err(|error| LinkError(error.to_string()));
    let (beat, say) = (Duration::from_secs_f64(beat.get()), |words: &str| log.warning(words));
    if let Err(error) = executor.run(link, beat, &say, stop) {
        log.warning(&format!("Slurm is given no job: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, gres_type: Option<&str>, n_workers: u32) -> Node {
        Node {
            name: name.to_owned(),
            address: name.to_owned(),
            gres_type: gres_type.map(str::to_owned),
            n_workers,
            n_cpus: 8,
            memory_mib: 1000,
            unusable: None,
            is_unknown: false,
        }
    }

    #[test]
    fn the_cluster_is_the_partition() {
        let of =
            |name: &str, n_workers: u32, kind: &str| (node(name, Some(kind), n_workers), kind.to_owned());
        let nodes = vec![of("a", 4, "v100"), of("b", 2, "v100"), of("c", 8, "k80")];
        let (counts, servers) = Partition { name: "gpu".to_owned(), nodes }.workers();
        let pairs = |counts: WorkerCounts| counts.0.into_iter().collect::<BTreeMap<_, _>>();
        let expected = |v100, k80| BTreeMap::from([("k80".to_owned(), k80), ("v100".to_owned(), v100)]);
        assert_eq!((pairs(counts), pairs(servers)), (expected(8, 8), expected(4, 8)));
    }

    #[test]
    fn types_are_known_by_their_names_or_by_what_is_said_of_them() {
        let throughputs = apportion::spec::load_throughputs("osdi20").unwrap();
        let arguments = SlurmArguments {
            slurm_types: vec![("tesla".to_owned(), "p100".to_owned())],
            ..SlurmArguments::default()
        };
        let of = |gres: Option<&str>| worker_type(&node("n", gres, 1), &arguments, &throughputs);
        assert_eq!(of(Some("V100")).unwrap(), "v100");
        assert_eq!(of(Some("tesla")).unwrap(), "p100");
        assert!(of(Some("a100")).unwrap_err().to_string().contains("--slurm-types a100=TYPE"));
        assert!(of(None).unwrap_err().to_string().contains("--slurm-types gpu=TYPE"));
    }

    #[test]
    fn names_of_types_that_no_node_has_are_refused() {
        let nodes = [node("a", Some("tesla"), 2), node("b", None, 1)];
        let of = |gres: &str| {
            let slurm_types = vec![(gres.to_owned(), "p100".to_owned())];
            check_types(&SlurmArguments { slurm_types, ..SlurmArguments::default() }, "main", &nodes)
        };
        assert!(of("tesla").is_ok() && of("gpu").is_ok());
        let said = of("telsa").unwrap_err().to_string();
        assert!(said.contains("has workers of the type `telsa`, expected one of `gpu`, `tesla`"), "{said}");
    }

    #[test]
    fn a_time_limit_holds_a_lease() {
        let all = [
            ("5", 300.0),
            ("1:30", 90.0),
            ("1:00:05", 3605.0),
            ("2-3", 183_600.0),
            ("1-0:30", 88_200.0),
            ("1-0:0:9", 86_409.0),
        ];
        for (text, seconds) in all {
            assert_eq!(limit(text), Some(seconds), "{text}");
        }
        for text in ["0", "UNLIMITED", "-1", "1:2:3:4", "1-", "99999999999999999999"] {
            assert_eq!(limit(text), None, "{text}");
        }
        let of = |text: &str| {
            let slurm_time = Some(text.to_owned());
            let arguments = SlurmArguments { slurm_time, ..SlurmArguments::default() };
            check_time(&arguments, Seconds::new(360.0), Seconds::new(60.0))
        };
        assert!(of("9").is_ok() && of("0").is_ok() && of("1-0").is_ok());
        let said = of("8").unwrap_err().to_string();
        assert!(
            said.contains("--slurm-time 8 is 480 s, expected more than") && said.contains("480 s"),
            "{said}"
        );
    }

    #[test]
    fn policies_that_share_workers_are_refused() {
        let catalog = apportion_published::plugin::catalog();
        for policy in ["max_min_fairness_packed", "fifo_packed", "gandiva", "learned_values_packed"] {
            assert!(check_policy(&catalog, policy).is_err(), "{policy}");
        }
        for policy in ["max_min_fairness_perf", "fifo", "dl2", "deepshare"] {
            assert!(check_policy(&catalog, policy).is_ok(), "{policy}");
        }
    }
}
