//! `apportion bench`: what decisions cost, by policy, backend and size.

use std::path::PathBuf;

use clap::Args;

use crate::Session;
use crate::bench_check as check;
use crate::bench_export::{export, run_one as export_one};
use crate::bench_process::{Limits, MeasuredCase, Ran, Subject, processor_model, run_child, run_one};
use crate::bench_tables::{changes, details, flat, footer, heading, overview, reasons, unproven};
use crate::command_line;
use crate::conditions::number;
use crate::exit::Failure;
use crate::file::{check_folder, check_reread};
use crate::output::OutputFormat;
use crate::paths::name_or_path;
use crate::progress::Progress;
use apportion::catalog::CatalogError;
use apportion::policy::PolicyError;
use apportion::solver::registry::{BACKENDS, entry};
use apportion::spec::{PolicyKind, load_throughputs, path_text};
use apportion_published::plugin;
use apportion_studies::benchmark::measure::{DEFAULT, RULE};
use apportion_studies::benchmark::{Instance, Results, Row, Status};
use apportion_studies::sweep::today;

/// Measure what decisions cost, by policy, backend and size
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Without --policy, --instance and --snapshot: every kind of program on 2,048, 131,072 and 1,048,576 jobs, by every
backend. Each case runs in a process of its own: one decision to warm up, which is not counted, and then as many as 0.2 s
have room for, 3 at least unless these take over a second, 25 at most, or as --repeats says. The median counts (of an
even number the faster of the two in the middle), and the least and the most are shown beside it: of
processor time, or of the clock's where the system tells no other, which is marked. Where the limit leaves time for one
decision alone, that one counts, and is marked as cold; where it ends the repeats before their number, the case is marked
as cut short, and how many were made is told. A backend that runs out of time or memory is not tried on larger instances
of the kind.

Instances: osdi20 (jobs drawn from a throughput matrix as published; any matrix of those job types), osdi20-distinct
(the same, no two jobs alike), random (no two alike; see --types, --heterogeneity, --density), restricted (each job
on a few of many types). Or snapshots, such as `simulate --save-snapshots DIR` saves.

JSON is one object, {format: apportion/bench-v1, version, command, made_on, system, limit_seconds, rows}; `system.processor` is the
processor's model, `unknown` where the system does not tell it; a row has
  policy instance n_jobs n_types seed backend partitions
  status        done, declined, failed, infeasible, unbounded, unproven, limit, memory, skipped or error; with a message
                where there is one
  seconds       {build, solve, certify, expand, total, processor}, of the median of `repeats` decisions: `total` by the
                clock, and `processor` time where the system tells it
  cut_by        what ended the repeats before their number: limit, memory or error; `message` tells how many were made
  repeats warm_ups                              decisions that count, and those before them: 1, or 0 where there was no time
  processor_min_seconds processor_max_seconds clock_min_seconds clock_max_seconds     over the decisions that count
  sense objective bound gap_relative violation_max optimal     the certificate, recomputed from the program
  loss_relative                                 of a partitioned decision: how far it is from the whole's optimum
  iterations solves fallbacks strategy backend_used n_classes n_columns n_rows n_terms
  memory_before_bytes memory_peak_bytes
  changes change_p50_seconds change_p99_seconds         with --changes, where the policy has sessions
CSV has the same columns, `seconds.build` as `seconds_build`.

programs.json is one object, {format: apportion/programs-v1, version, instance, n_jobs, seed, policies}; each policy has
its objective, what each file is for, how the objective follows from the file's optimum, and which jobs its classes are.
A policy's files are written under the limits of a case.

Exit code 0 if at least one case is done: limits are results here, and marked. 4 if none is, or 3 if that is because none
has a solution. 2 if an instance is none.

Examples:
  apportion bench --quick
  apportion bench --format json > bench.json
  apportion bench --policy max_min_fairness_packed --sizes 2048 --partitions 2,8
  apportion bench --policy max_min_fairness_perf --sizes 10000 --backend default,highs-simplex --changes 400
  apportion bench --policy proportional_fairness --instance random --types 4 --sizes 1000,10000 --seeds 0,1,2
  apportion bench --policy max_min_fairness_perf --snapshot snapshots/000100.json --export programs")]
pub struct BenchArguments {
    /// Policies: names, or policy files
    #[arg(long, value_name = "NAME|FILE,…", value_delimiter = ',', value_parser = name_or_path())]
    policy: Vec<String>,
    /// Kinds of instance [default: osdi20, unless there are snapshots]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    instance: Vec<String>,
    /// Snapshots to measure on, YAML or JSON
    #[arg(long, value_name = "FILE", num_args = 1.., value_parser = name_or_path())]
    snapshot: Vec<String>,
    /// The throughputs in which a snapshot's jobs without their own are looked up by job type
    #[arg(long, value_name = "NAME|FILE", default_value = "osdi20", value_parser = name_or_path())]
    throughputs: String,
    /// Numbers of jobs [default: 2048,131072,1048576]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Seeds of the instances
    #[arg(long, value_name = "S,…", value_delimiter = ',', default_value = "0")]
    seeds: Vec<u64>,
    /// Backends, each alone; `default` is the chain that users get [default: that and all there are]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    backend: Vec<String>,
    /// Also split each problem at random into this many parts, solved apart: a baseline
    #[arg(long, value_name = "K,…", value_delimiter = ',')]
    partitions: Vec<usize>,
    /// Also decide on this many arrivals and departures one by one, in a session: the processor time of one, certified
    #[arg(long, value_name = "N", default_value_t = 0)]
    changes: u32,
    /// Decisions of each case that count, after one that does not [default: what 0.2 s have room for, 3 to 25]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: Option<u32>,
    /// For random instances: the factor by which a job may be faster on one worker type than on another
    #[arg(long, value_name = "R", default_value_t = 10.0, value_parser = number)]
    heterogeneity: f64,
    /// For random and restricted instances: the number of worker types [default: 3; 456 if restricted]
    #[arg(long, value_name = "K")]
    types: Option<usize>,
    /// For random instances: the part of the types that a job runs on
    #[arg(long, value_name = "PART", default_value_t = 1.0, value_parser = number)]
    density: f64,
    /// Processor time for all decisions of a case, in s; drawing the instance does not count
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = number)]
    limit: f64,
    /// Memory for a case, in MiB, where the system tells
    #[arg(long, value_name = "MIB", default_value_t = 8192)]
    memory_limit: u64,
    /// Write each instance as a snapshot, its programs as LP and MPS text where they are linear and as CBF text in any case, and
    /// their descriptions as programs.json, here; programs of an earlier export of the same policy and instance are removed
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Small sizes only
    #[arg(long)]
    quick: bool,
    /// One case, in the form in which this command passes it to itself
    #[arg(long, hide = true, value_name = "JSON")]
    case: Option<String>,
}

/// A policy on instances of growing size.
struct Group {
    policy: String,
    instance: Instance,
    sizes: Vec<usize>,
}

/// Runs the command.
///
/// # Errors
/// If an argument names what does not exist, nothing could be measured, or the user stopped it.
pub(super) fn run(arguments: &BenchArguments, session: &Session) -> Result<(), Failure> {
    if let Some(case) = &arguments.case {
        let case = MeasuredCase::read(case)?;
        return match &case.export {
            None => run_one(&case),
            Some(place) => export_one(&case, &path_text::to_path(place)),
        };
    }
    check_folder("--export", arguments.export.as_deref())?;
    let cases = cases(arguments)?;
    let limits = Limits { seconds: arguments.limit, bytes: arguments.memory_limit.saturating_mul(1 << 20) };
    if let Some(folder) = &arguments.export {
        export(folder, &cases, &limits, session)?;
    }
    let bar = Progress::of_unlike(session, cases.len() as u64, "cases");
    let mut rows: Vec<Row> = Vec::with_capacity(cases.len());
    let (mut stopped, mut refused) = (false, false);
    for case in &cases {
        bar.message(format!("{} {} {}", case.policy, case.name(), case.backend));
        let ran = match outgrown(&rows, case) {
            Some(row) => Some(Ran { row, refused: false }),
            None => run_child(case, &limits, session)?,
        };
        let Some(ran) = ran else {
            stopped = true;
            break;
        };
        refused |= ran.refused;
        rows.push(ran.row);
        bar.advance();
    }
    bar.finish();
    let (n_run, n_cases) = (rows.len(), cases.len());
    let mut results =
        Results::new(arguments.limit, rows, processor_model()).made_by(command_line::typed(), today());
    results.compare_partitions();
    show(&results, session)?;
    if stopped {
        return Err(Failure::Interrupted { message: format!("{n_run} of {n_cases} cases are shown") });
    }
    if refused {
        let help = "what is wrong with it is told in the rows of its cases".to_owned();
        return Err(Failure::usage("an instance could not be read", Some(help)));
    }
    if results.rows.iter().any(|row| row.status == Status::Done) {
        return Ok(());
    }
    Err(unsolved(&results.rows))
}

/// The failure of a benchmark in which no case is done: that of a policy without a solution, if all cases ended so.
fn unsolved(rows: &[Row]) -> Failure {
    let named = |status: Status| rows.iter().find(|row| row.status == status).map(|row| row.policy.clone());
    let reason = "no case was done: the rows say why".to_owned();
    let is_answer =
        |row: &Row| matches!(row.status, Status::Infeasible | Status::Unbounded | Status::Declined);
    let error = match (named(Status::Infeasible), named(Status::Unbounded)) {
        _ if !rows.iter().all(is_answer) => None,
        (Some(policy), _) => Some(PolicyError::Infeasible { policy, reason: reason.clone() }),
        (None, policy) => policy.map(|policy| PolicyError::Unbounded { policy, reason: reason.clone() }),
    };
    error.map_or(Failure::Limit { message: reason }, Failure::Policy)
}

fn show(results: &Results, session: &Session) -> Result<(), Failure> {
    match session.output.format() {
        OutputFormat::Json => session.output.json(results),
        OutputFormat::Csv => session.output.table(&flat(&results.rows)),
        OutputFormat::Table => {
            session.output.words(&heading(&results.rows))?;
            let width = session.output.width();
            session.output.text(&overview(&results.rows).aligned_within(width, 3))?;
            if results.rows.iter().any(|row| row.changes.is_some()) {
                session.output.text(&format!("\n{}", changes(&results.rows).aligned_within(width, 4)))?;
            }
            session.output.text(&format!("\n{}", details(&results.rows).aligned_within(width, 4)))?;
            let below = [unproven(&results.rows), reasons(&results.rows), Some(footer(results))];
            below.iter().flatten().try_for_each(|words| session.output.words(&format!("\n{words}")))
        }
    }
}

/// The row of a case that is not tried, because its backend was out of time or memory on a smaller instance.
fn outgrown(rows: &[Row], case: &MeasuredCase) -> Option<Row> {
    let Subject::Drawn { n_jobs, .. } = case.subject else { return None };
    let smaller = rows.iter().find(|row| {
        matches!(row.status, Status::Limit | Status::Memory)
            && row.n_jobs < n_jobs
            && (&row.policy, &row.instance, &row.backend, row.partitions)
                == (&case.policy, &case.name(), &case.backend, case.partitions)
    })?;
    let message = format!("{} at {} jobs", smaller.status, smaller.n_jobs);
    Some(Row { status: Status::Skipped, message: Some(message), ..case.row() })
}

/// All cases, in the order in which they are run.
fn cases(arguments: &BenchArguments) -> Result<Vec<MeasuredCase>, Failure> {
    for name in arguments.backend.iter().filter(|name| *name != DEFAULT) {
        entry(name).map_err(|error| Failure::usage(error.to_string(), None))?;
    }
    if !(arguments.limit.is_finite() && arguments.limit > 0.0) {
        return Err(Failure::usage(format!("a limit of {} s, expected one above 0", arguments.limit), None));
    }
    let groups = groups(arguments)?;
    check_instances(arguments, &groups)?;
    let (policies, snapshots) = (unique(&arguments.policy), unique(&arguments.snapshot));
    let (seeds, partitions) = (unique(&arguments.seeds), unique(&arguments.partitions));
    let mut cases = Vec::new();
    let mut push = |policy: &str, subject: &Subject, seed: u64| -> Result<(), Failure> {
        for backend in backends(arguments, policy)? {
            cases.push(MeasuredCase::new(policy, subject.clone(), &backend, 1, seed));
            if backend == RULE {
                continue;
            }
            let parts = partitions.iter().filter(|parts| **parts > 1);
            cases.extend(parts.map(|n| MeasuredCase::new(policy, subject.clone(), &backend, *n, seed)));
        }
        Ok(())
    };
    for group in groups {
        for n_jobs in group.sizes {
            for seed in &seeds {
                let subject = Subject::Drawn { instance: group.instance.clone(), n_jobs, seed: *seed };
                push(&group.policy, &subject, *seed)?;
            }
        }
    }
    for policy in &policies {
        for path in &snapshots {
            let throughputs = arguments.throughputs.clone();
            push(policy, &Subject::Snapshot { path: path.clone(), throughputs }, 0)?;
        }
    }
    for case in &mut cases {
        (case.changes, case.repeats, case.limit_seconds) =
            (arguments.changes, arguments.repeats, arguments.limit);
    }
    if cases.is_empty() {
        return Err(Failure::usage("nothing to measure: name a `--policy`", None));
    }
    Ok(cases)
}

/// Refuses instances of which no case could be made.
fn check_instances(arguments: &BenchArguments, groups: &[Group]) -> Result<(), Failure> {
    arguments.policy.iter().try_for_each(|policy| check_reread("--policy", policy))?;
    for group in groups {
        for n_jobs in &group.sizes {
            check::drawn(&group.instance, *n_jobs)?;
        }
        let smallest = Subject::Drawn { instance: group.instance.clone(), n_jobs: 1, seed: 0 };
        check::names(&group.policy, &smallest.problem()?)?;
    }
    let largest = groups.iter().flat_map(|group| &group.sizes).max().copied();
    let largest = largest.filter(|_| arguments.snapshot.is_empty());
    for n_parts in &arguments.partitions {
        check::partitions(*n_parts, largest)?;
    }
    if arguments.snapshot.is_empty() {
        return Ok(());
    }
    let throughputs = load_throughputs(&arguments.throughputs)?;
    arguments.snapshot.iter().try_for_each(|path| check::snapshot(path, &throughputs, &arguments.policy))
}

/// The distinct values, in the order of their first occurrence: a case is measured once, however often it is asked for.
fn unique<T: Clone + PartialEq>(asked: &[T]) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for one in asked {
        if !found.contains(one) {
            found.push(one.clone());
        }
    }
    found
}

fn backends(arguments: &BenchArguments, policy: &str) -> Result<Vec<String>, Failure> {
    let document = plugin::catalog().document(policy)?;
    if document.decides_inside_rounds() {
        return Err(CatalogError::InRounds { policy: document.name }.into());
    }
    if !matches!(document.kind, PolicyKind::Program(_)) {
        return Ok(vec![RULE.to_owned()]);
    }
    if !arguments.backend.is_empty() {
        return Ok(unique(&arguments.backend));
    }
    Ok([DEFAULT].into_iter().chain(BACKENDS.iter().map(|entry| entry.name)).map(str::to_owned).collect())
}

fn groups(arguments: &BenchArguments) -> Result<Vec<Group>, Failure> {
    let asked = !arguments.policy.is_empty() || !arguments.instance.is_empty();
    if !asked && arguments.snapshot.is_empty() {
        return Ok(standard(arguments));
    }
    if arguments.policy.is_empty() {
        return Err(Failure::usage("which policies? name them with `--policy`", None));
    }
    let mut names = unique(&arguments.instance);
    if names.is_empty() && !arguments.snapshot.is_empty() && !arguments.sizes.is_empty() {
        let help = "leave out `--sizes`, or name what is drawn besides with `--instance`".to_owned();
        let message = "`--sizes` says how many jobs are drawn, and a snapshot has jobs of its own";
        return Err(Failure::usage(message, Some(help)));
    }
    if names.is_empty() && arguments.snapshot.is_empty() {
        names.push("osdi20".to_owned());
    }
    if arguments.types.is_some() && !names.iter().any(|name| name == "random" || name == "restricted") {
        let help = "`--instance random` has as many worker types as it says".to_owned();
        return Err(Failure::usage(
            "`--types` is of random and restricted instances, and there are none",
            Some(help),
        ));
    }
    let instances = names.iter().map(|name| instance(arguments, name)).collect::<Result<Vec<_>, _>>()?;
    let mut groups = Vec::new();
    for policy in &unique(&arguments.policy) {
        for instance in &instances {
            let sizes = sizes(arguments, &[2048, 131_072, 1_048_576]);
            groups.push(Group { policy: policy.clone(), instance: instance.clone(), sizes });
        }
    }
    Ok(groups)
}

fn instance(arguments: &BenchArguments, name: &str) -> Result<Instance, Failure> {
    let (heterogeneity, density) = (arguments.heterogeneity, arguments.density);
    Ok(match name {
        "random" => Instance::Random { types: arguments.types.unwrap_or(3), heterogeneity, density },
        "restricted" => Instance::Restricted { types: arguments.types.unwrap_or(456), types_per_job: 8 },
        _ => {
            let (throughputs, distinct) = match name.strip_suffix("-distinct") {
                Some(matrix) => (matrix, true),
                None => (name, false),
            };
            let instance = Instance::Matrix { throughputs: throughputs.to_owned(), distinct };
            check::matrix(&instance, &load_throughputs(throughputs)?)?;
            instance
        }
    })
}

fn sizes(arguments: &BenchArguments, standard: &[usize]) -> Vec<usize> {
    match (arguments.sizes.is_empty(), arguments.quick) {
        (false, _) => unique(&arguments.sizes),
        (true, true) => standard.iter().map(|n| (*n).min(256)).take(1).collect(),
        (true, false) => standard.to_vec(),
    }
}

/// Every kind of program, at the sizes that suit it.
fn standard(arguments: &BenchArguments) -> Vec<Group> {
    let all = [2048, 131_072, 1_048_576];
    let matrix = |distinct| Instance::Matrix { throughputs: "osdi20".to_owned(), distinct };
    let random = |types| Instance::Random { types, heterogeneity: 10.0, density: 1.0 };
    let restricted = Instance::Restricted { types: 456, types_per_job: 8 };
    let groups: [(&str, Instance, &[usize]); 12] = [
        ("max_min_fairness_perf", matrix(false), &all),
        ("max_min_fairness_packed", matrix(false), &all),
        ("max_min_fairness_water_filling_perf", matrix(false), &all),
        ("max_min_fairness_water_filling_packed", matrix(false), &all),
        ("max_min_fairness_hierarchical_perf", matrix(false), &all),
        ("max_min_fairness_perf", random(3), &all),
        ("finish_time_fairness_perf", random(3), &all),
        ("min_total_duration_perf", random(3), &all),
        ("max_sum_throughput_perf", random(3), &all),
        ("proportional_fairness", random(4), &all),
        ("max_min_fairness_packed", matrix(true), &[64]),
        ("max_min_fairness_perf", restricted, &[1750]),
    ];
    let group = |(policy, instance, standard): (&str, Instance, &[usize])| Group {
        policy: policy.to_owned(),
        instance,
        sizes: sizes(arguments, standard),
    };
    groups.into_iter().map(group).collect()
}
