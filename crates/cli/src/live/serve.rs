//! `apportion serve`: the scheduler of real servers, until it is asked to end.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clap::{Args, ValueEnum};

use super::agent;
use super::begin;
use super::demo::{self, Demo};
use super::front_door::{self, ByRequests};
use super::local;
use super::log::{Log, LogForm};
use super::prices;
use super::shadow;
use super::slurm::{self, Partition, SlurmArguments};
use super::times::TimeArguments;
use crate::Session;
use crate::conditions::{round, time};
use crate::exit::Failure;
use crate::paths::name_or_path;
use apportion::Cluster;
use apportion::catalog::{PolicyOptions, Ready};
use apportion::policy::Policy;
use apportion::policy::naming::check_worker_types;
use apportion::scheduler::{Options as SchedulerOptions, Scheduler, SetupError};
use apportion::simulator::PriceChange;
use apportion::spec::load_throughputs;
use apportion::spec::nearest::{name_list, suggestion};
use apportion::spec::policy::PolicyReference;
use apportion::spec::run::{RunSpec, WorkerCounts};
use apportion::throughput::Throughputs;
use apportion::units::Seconds;
use apportion_live::core::Settings;
use apportion_live::front::{self, FrontError, Options, Served, Tls, Tokens};
use apportion_live::slurm::{Executor, HeldJobExecutor};
use apportion_published::plugin;

/// The reset interval in rounds, by default: 1920 s at 360 s.
const ROUNDS_PER_RESET: f64 = 1920.0 / 360.0;

/// The default policy, which runs on any cluster.
const USUAL_POLICY: &str = "max_min_fairness_perf";

/// Arguments of `serve`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  apportion serve --demo
  apportion serve --local --cluster v100=4 --policy max_min_fairness_perf --state state
  apportion serve --cluster v100=8,k80=4 --servers v100=4,k80=4 --policy max_min_fairness_perf --state state
  apportion serve --executor slurm --partition gpu --policy max_min_fairness_perf --state state --shared /shared/me
  apportion serve --executor slurm --front-door sbatch --partition gpu --policy max_min_fairness_perf --state state
  apportion serve --shadow slurm --partition gpu --policy max_min_fairness_perf --state state
  apportion serve --cluster v100=8 --policy fifo --state state --listen 0.0.0.0:7070 --token-file token.sha256 \
    --tls-cert cert.pem --tls-key key.pem

It ends at Ctrl-C or SIGTERM; jobs go on, and a later start takes them over. See docs/live.md.")]
pub struct ServeArguments {
    /// A scheduler to look at: pretend workers and pretend jobs on this machine, rounds of 2 s, state in ./apportion-state
    #[arg(long)]
    demo: bool,
    /// Workers of each type, such as v100=36,p100=36,k80=36; those that join later included
    #[arg(long, value_name = "TYPE=N,…", required_unless_present_any = ["demo", "executor", "shadow"])]
    cluster: Option<WorkerCounts>,
    /// The system that starts jobs: agents on the servers, or Slurm
    #[arg(long, value_name = "NAME", value_enum, default_value_t, conflicts_with = "demo")]
    executor: ExecutorKind,
    /// The way in which users submit jobs to Slurm: to apportion, or held ones by their own `sbatch`, which apportion then steers
    #[arg(long, value_name = "NAME", value_enum, conflicts_with_all = ["demo", "shadow"])]
    front_door: Option<FrontDoor>,
    /// Workers on each server; 1 where not given
    #[arg(long, value_name = "TYPE=N,…")]
    servers: Option<WorkerCounts>,
    /// A policy's name, or a policy file
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path(), required_unless_present = "demo")]
    policy: Option<String>,
    /// The folder for the scheduler's records; made where there is none
    #[arg(long, value_name = "DIR", required_unless_present = "demo")]
    state: Option<PathBuf>,
    /// The cluster is this machine: its one server's jobs run here, as you
    #[arg(long)]
    local: bool,
    /// Decide beside a running scheduler, order nothing, and keep account of the consequences: `apportion shadow`
    #[arg(long, value_name = "NAME", value_enum, conflicts_with_all = ["demo", "local", "executor", "cluster", "servers"])]
    shadow: Option<Shadowed>,
    /// The address to listen on; beyond this machine only with `--token-file`
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7070")]
    listen: String,
    /// A file with digests of tokens, `sha256:` and the digest, one a line: a request must carry one of the tokens. `agent`
    /// behind a digest makes it one for agents, and for nothing else; names behind that are the servers that may have it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The certificate of this scheduler, and behind it the intermediate ones, in PEM: it then speaks https only
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A throughput matrix's name, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "osdi20", value_parser = name_or_path())]
    throughputs: String,
    /// Prices in $/h: {v100: 2.48, p100: 1.46}, or over time as CSV under `time,worker_type,price`, from the first start of
    /// this state on
    #[arg(long, value_name = "FILE", value_parser = name_or_path())]
    prices: Option<String>,
    /// Length of a round; 360 s where not given
    #[arg(long, value_name = "SECONDS", value_parser = round, allow_negative_numbers = true)]
    round_length: Option<Seconds>,
    /// Least time between two computations of the allocation; 5⅓ rounds where not given
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    reset_interval: Option<Seconds>,
    #[command(flatten)]
    times: TimeArguments,
    #[command(flatten)]
    slurm: SlurmArguments,
    /// The form of the log on standard error
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    log: LogForm,
}

/// The system that starts jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ExecutorKind {
    /// Agents, one on each server
    #[default]
    Agents,
    /// Slurm: the cluster is a partition of it
    Slurm,
}

/// The way in which jobs come to Slurm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FrontDoor {
    /// Users submit held jobs to Slurm
    Sbatch,
}

/// The scheduler beside which a shadow decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shadowed {
    /// Slurm
    Slurm,
}

/// The documents and options of a scheduler, completed by those of the demo.
#[derive(Debug)]
pub(super) struct Plan {
    cluster: Cluster,
    /// The changes of the cluster's prices.
    prices: Vec<PriceChange>,
    pub(super) policy: String,
    pub(super) state: PathBuf,
    pub(super) throughputs: Arc<Throughputs>,
    pub(super) round_length: Seconds,
    reset_interval: Seconds,
    pub(super) settings: Settings,
    /// The partition that is the cluster, if Slurm starts jobs.
    pub(super) partition: Option<Partition>,
    /// The names of policy and throughputs for clients.
    served: Served,
}

impl Plan {
    fn new(arguments: &ServeArguments, session: &Session) -> Result<Self, Failure> {
        let missing = |flag: &str| Failure::usage(format!("`--{flag}` is missing"), None);
        let throughputs = load_throughputs(&arguments.throughputs)?;
        let partition = arguments.partition(&throughputs, session)?;
        let of_slurm = partition.as_ref().map(Partition::workers);
        let demo = if arguments.demo { Some(Demo::defaults()?) } else { None };
        let counts =
            arguments.cluster.as_ref().or(demo.as_ref()).or(of_slurm.as_ref().map(|(counts, _)| counts));
        let counts = counts.ok_or_else(|| missing("cluster"))?;
        let is_local = arguments.local || arguments.demo;
        let servers = arguments.servers.as_ref().or(of_slurm.as_ref().map(|(_, servers)| servers));
        let servers = servers.or(Some(counts).filter(|_| is_local));
        let cluster = cluster(counts, servers, &throughputs)?;
        let (cluster, prices) = arguments.priced(cluster, &throughputs)?;
        if arguments.local && !arguments.demo && local::n_servers(&cluster) != 1 {
            let help =
                "`--local` runs jobs on the workers of this machine: name their type and how many there are";
            let message =
                format!("--local: `{cluster}` are workers of several servers, and this machine is one");
            return Err(Failure::usage(message, Some(help.to_owned())));
        }
        if arguments.local && !arguments.demo {
            agent::check_visible(u32::try_from(cluster.n_workers()).unwrap_or(u32::MAX))?;
        }
        let usual = Seconds::new(if arguments.demo { 2.0 } else { 360.0 });
        let round_length = arguments.round_length.unwrap_or(usual);
        begin::check_round(round_length)?;
        let policy = arguments.policy.clone().or(arguments.demo.then(|| demo::POLICY.to_owned()));
        let policy = policy.ok_or_else(|| missing("policy"))?;
        let reference = PolicyReference::new(&policy);
        let ships = plugin::catalog().names().contains(&reference.policy);
        let served = Served {
            policy: reference.at(&named(reference.policy, ships)),
            throughputs: named(
                &arguments.throughputs,
                Throughputs::embedded_text(&arguments.throughputs).is_some(),
            ),
            is_local,
        };
        let state = arguments.state.clone().or(arguments.demo.then(|| demo::STATE.into()));
        let mut settings = arguments.times.settings(round_length);
        if arguments.front_door.is_some() {
            settings = front_door::settings(settings, arguments.times.grace, session)?;
        }
        Ok(Self {
            cluster,
            prices,
            policy,
            state: state.ok_or_else(|| missing("state"))?,
            throughputs,
            round_length,
            reset_interval: arguments.reset_interval.unwrap_or(round_length * ROUNDS_PER_RESET),
            settings,
            partition,
            served,
        })
    }
}

/// A name as it is if the document ships with the program, else a path from the root.
fn named(name_or_path: &str, ships: bool) -> String {
    let absolute = absolute(name_or_path).ok().filter(|_| !ships);
    absolute.map_or_else(|| name_or_path.to_owned(), |path| path.display().to_string())
}

impl ServeArguments {
    /// The cluster with its prices, and their changes.
    fn priced(
        &self,
        cluster: Cluster,
        throughputs: &Throughputs,
    ) -> Result<(Cluster, Vec<PriceChange>), Failure> {
        let Some(path) = &self.prices else { return Ok((cluster, Vec::new())) };
        let (cluster, changes) = prices::read(path, cluster, throughputs)?;
        if self.shadow.is_some() && !changes.is_empty() {
            let message = format!("--prices: {path} has prices that change, and a shadow has constant ones");
            let help = "give it a file such as {v100: 2.48, p100: 1.46}";
            return Err(Failure::usage(message, Some(help.to_owned())));
        }
        Ok((cluster, changes))
    }

    /// Refuses flags that have no meaning for a policy that decides inside rounds.
    fn check_in_rounds(&self, policy: &str) -> Result<(), Failure> {
        for (flag, is_given, has) in [
            ("--reset-interval", self.reset_interval.is_some(), "has no allocation that is computed anew"),
            ("--decision-limit", self.times.decision_limit.is_some(), "is waited for, however long it takes"),
        ] {
            if is_given {
                let message =
                    format!("{flag}: the policy `{policy}` places jobs itself, each round, and {has}");
                return Err(Failure::usage(message, Some("leave it out".to_owned())));
            }
        }
        Ok(())
    }

    /// Refuses, if users submit to Slurm, flags that concern only jobs which apportion submits itself.
    fn check_front_door(&self) -> Result<(), Failure> {
        if self.front_door.is_none() {
            return Ok(());
        }
        if self.executor != ExecutorKind::Slurm {
            let message = "--front-door sbatch: users submit to Slurm, which is not what starts jobs here";
            return Err(Failure::usage(message, Some("add `--executor slurm`".to_owned())));
        }
        match self.slurm.given_of_leases() {
            Some(flag) => {
                let message = format!(
                    "{flag} says something of Slurm jobs that apportion submits; with `--front-door sbatch` its users do"
                );
                Err(Failure::usage(message, Some("leave it out".to_owned())))
            }
            None => Ok(()),
        }
    }

    /// The partition that is the cluster, if Slurm starts jobs.
    fn partition(&self, throughputs: &Throughputs, session: &Session) -> Result<Option<Partition>, Failure> {
        self.check_front_door()?;
        if self.shadow.is_some() {
            return Partition::find(&self.slurm, throughputs, session).map(Some);
        }
        if self.executor == ExecutorKind::Slurm {
            for (flag, is_given) in [
                ("--cluster", self.cluster.is_some()),
                ("--servers", self.servers.is_some()),
                ("--local", self.local),
            ] {
                if is_given {
                    let message =
                        format!("{flag}: with `--executor slurm` the cluster is a partition of Slurm");
                    return Err(Failure::usage(message, Some("leave it out".to_owned())));
                }
            }
            return Partition::find(&self.slurm, throughputs, session).map(Some);
        }
        match self.slurm.given() {
            Some(flag) => {
                let message = format!("{flag} says something of Slurm, which is not what starts jobs here");
                Err(Failure::usage(message, Some("add `--executor slurm`, or `--shadow slurm`".to_owned())))
            }
            None => Ok(None),
        }
    }
}

/// Runs the command until it is asked to end.
///
/// # Errors
/// If an argument is at fault, the address or the state is in use, or the system does not let it serve.
pub(super) fn run(arguments: &ServeArguments, session: &Session) -> Result<(), Failure> {
    let plan = Plan::new(arguments, session)?;
    let (scheduler, explainer) = scheduler(&plan, arguments)?;
    if plan.partition.is_some() {
        slurm::check_policy(&plugin::catalog(), &plan.policy)?;
        slurm::check_time(&arguments.slurm, plan.round_length, plan.settings.grace)?;
    }
    if arguments.shadow.is_some() {
        let log = Log { form: arguments.log, session };
        return shadow::run(&plan, scheduler, &arguments.slurm.job_type_of, log);
    }
    let carrier = carrier(&plan, arguments, session)?;
    let tokens = tokens(arguments.token_file.as_deref())?;
    let tls = tls(arguments)?;
    let (listener, address) = listen(&arguments.listen, tokens.is_some())?;
    let log = Log { form: arguments.log, session };
    let driver = begin::start((&plan.state, plan.settings, plan.prices.clone()), scheduler, explainer, &log)?;
    if arguments.log == LogForm::Json {
        session.interrupt.hush();
    }
    log.address(address, tls.is_some());
    let client = driver.client();
    if let Some(Carrier::Executor(_, warnings)) = &carrier {
        for warning in warnings {
            log.warning(warning);
        }
    }
    let is_ending = |_| Failure::Bug { message: "the scheduler ended by itself".to_owned() };
    let agents = if arguments.local || arguments.demo {
        local::agents(&plan.cluster, &client, &plan.state, plan.settings.beat()).map_err(is_ending)?
    } else {
        Vec::new()
    };
    let demo = arguments.demo.then(|| Demo::new(&plan.cluster, &plan.throughputs)).transpose();
    let demo = demo.map_err(Failure::io("find this program"))?;
    let stop = session.interrupt.flag();
    let is_over = AtomicBool::new(false);
    let beat = plan.settings.beat();
    let served = thread::scope(|scope| {
        let (log, client, is_over) = (&log, &client, &is_over);
        scope.spawn(move || log.follow(client, is_over));
        for agent in agents {
            scope.spawn(move || agent.follow(is_over, log));
        }
        match carrier {
            Some(Carrier::Executor(mut executor, _)) => {
                scope.spawn(move || slurm::run(&mut executor, client, beat, log, is_over));
            }
            Some(Carrier::HeldJobs(mut executor, partition)) => {
                let mut desk = ByRequests::new(client.clone(), Arc::clone(&plan.throughputs), &partition);
                scope.spawn(move || front_door::run(&mut executor, &mut desk, beat, log, is_over));
            }
            None => {}
        }
        if let Some(demo) = demo {
            scope.spawn(move || {
                if let Err(error) = demo.run(client, is_over) {
                    log.warning(&format!("there are no more pretend jobs: {error}"));
                }
            });
        }
        let served =
            front::serve(client.clone(), listener, Options { tokens, tls, served: plan.served }, &stop);
        is_over.store(true, Ordering::Relaxed);
        served
    });
    drop(driver);
    served.map_err(|error| Failure::usage(error.to_string(), None))?;
    log.ended(plan.settings.front_door);
    Ok(())
}

/// The carrier of leases in Slurm.
enum Carrier {
    /// Each lease is a Slurm job. The sentences are for the operator.
    Executor(Box<Executor>, Vec<String>),
    /// Each lease is a span of a Slurm job that its user submitted.
    HeldJobs(Box<HeldJobExecutor>, Partition),
}

fn carrier(plan: &Plan, arguments: &ServeArguments, session: &Session) -> Result<Option<Carrier>, Failure> {
    let Some(partition) = plan.partition.clone() else { return Ok(None) };
    if arguments.front_door.is_some() {
        let executor = front_door::open(&partition, &plan.state, plan.settings.start_limit)?;
        return Ok(Some(Carrier::HeldJobs(Box::new(executor), partition)));
    }
    let (executor, warnings) = slurm::executor(&arguments.slurm, partition, &plan.state, session)?;
    Ok(Some(Carrier::Executor(Box::new(executor), warnings)))
}

fn tls(arguments: &ServeArguments) -> Result<Option<Tls>, Failure> {
    let files = arguments.tls_cert.as_deref().zip(arguments.tls_key.as_deref());
    let tls = files.map(|(certificate, key)| Tls::read(certificate, key)).transpose();
    tls.map_err(|error| Failure::usage(error.to_string(), None))
}

fn tokens(path: Option<&Path>) -> Result<Option<Tokens>, Failure> {
    path.map(Tokens::read).transpose().map_err(|error| {
        let help =
            "printf 'sha256:%s\\n' \"$(printf %s TOKEN | sha256sum | cut -d' ' -f1)\" >FILE writes one";
        Failure::usage(error.to_string(), Some(help.to_owned()))
    })
}

/// A scheduler with the policy on the cluster, and a second policy of the same kind that explains shares, if it gives shares.
fn scheduler(
    plan: &Plan,
    arguments: &ServeArguments,
) -> Result<(Scheduler, Option<Box<dyn Policy>>), Failure> {
    let catalog = plugin::catalog();
    check_worker_types(&catalog.document(&plan.policy)?, &plan.cluster)?;
    let ready = catalog.ready(&plan.policy, &PolicyOptions::default())?;
    let options = SchedulerOptions::default()
        .with_round_length(plan.round_length)
        .with_reset_interval(plan.reset_interval);
    let throughputs = Arc::clone(&plan.throughputs);
    let (scheduler, explainer) = match ready {
        Ready::Allocating(policy) => {
            let explainer = catalog.build(&plan.policy, &PolicyOptions::default())?;
            let trial = catalog.build(&plan.policy, &PolicyOptions::default())?;
            begin::check_prices(trial, &plan.cluster, &throughputs)?;
            (Scheduler::new(&plan.cluster, throughputs, policy, options), Some(explainer))
        }
        Ready::InRounds(policy) => {
            arguments.check_in_rounds(policy.name())?;
            (Scheduler::with_round_policy(&plan.cluster, throughputs, policy, options), None)
        }
    };
    let scheduler = scheduler.map_err(|error| {
        let help = match &error {
            SetupError::CannotPlace { .. } => {
                Some(format!("take a policy that gives shares, such as `{USUAL_POLICY}`"))
            }
            _ => None,
        };
        Failure::usage(error.to_string(), help)
    })?;
    Ok((scheduler, explainer))
}

fn cluster(
    counts: &WorkerCounts,
    servers: Option<&WorkerCounts>,
    throughputs: &Throughputs,
) -> Result<Cluster, Failure> {
    let known = || throughputs.worker_types().iter().map(String::as_str);
    if let Some((name, _)) = counts.0.iter().find(|(name, _)| throughputs.find_worker_type(name).is_none()) {
        let (of, known_names) = (throughputs.name(), name_list(known()));
        let message = format!(
            "--cluster: the throughputs `{of}` have no worker type `{name}`, expected one of {known_names}"
        );
        let help = suggestion(name, known());
        let help = help.unwrap_or_else(|| "`--throughputs FILE` names a matrix that has it".to_owned());
        return Err(Failure::usage(message, Some(help)));
    }
    let servers = servers.cloned().unwrap_or_default();
    let spec = RunSpec { cluster: counts.clone(), servers, ..RunSpec::default() };
    spec.cluster().map_err(|error| Failure::usage(format!("--cluster, --servers: {error}"), None))
}

fn listen(address: &str, has_tokens: bool) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind(address).map_err(|error| {
        if error.kind() == ErrorKind::AddrInUse {
            let message = format!("{address} is in use already");
            let help = "another scheduler may run there (`apportion jobs`); `--listen 127.0.0.1:0` takes a free port";
            return Failure::usage(message, Some(help.to_owned()));
        }
        let help = "`--listen` expects an address and a port of this machine, such as 127.0.0.1:7070";
        Failure::usage(format!("cannot listen on {address}: {error}"), Some(help.to_owned()))
    })?;
    let address = listener.local_addr().map_err(Failure::io("listen"))?;
    if !address.ip().is_loopback() && !has_tokens {
        let help = "`--token-file FILE` names a file with digests of tokens; see docs/live.md";
        return Err(Failure::usage(FrontError::NeedsToken { address }.to_string(), Some(help.to_owned())));
    }
    Ok((listener, address))
}
