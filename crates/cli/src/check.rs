//! `apportion check`: decisions on random instances, judged by arithmetic that is independent of how they were found.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Session;
use crate::check_process::{CHUNK, Case, Plan, WithoutEnd, run_child};
use crate::conditions::number;
use crate::exit::Failure;
use crate::file::{check_folder, check_reread, write as write_file, write_bytes};
use crate::output::{Answer, Cell, OutputFormat, Table};
use crate::paths::name_or_path;
use crate::progress::Progress;
use apportion::solver::registry::{BACKENDS, entry};
use apportion::spec::PolicyKind;
use apportion::spec::policy::View;
use apportion_published::plugin;
use apportion_studies::benchmark::measure::DEFAULT;
use apportion_studies::check::{Decided, Fault, Judge, Tally, Verdict};

/// Backends that decide in addition to the default way, where this build has them.
const USUAL: [&str; 4] = ["highs-simplex", "highs-ipm", "clarabel", "good_lp-microlp"];

/// Let policies decide random instances by several backends, and look for untrue claims
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
An instance has 1 to 12 jobs on 1 to 4 worker types, and whatever snapshots may have: gangs, weights, deadlines, pairs,
owners, types without workers. Its numbers are spread over --decades: one of the list after the other. Every policy
decides it by every backend, in processes that are ended at --limit. Then arithmetic that shares nothing with programs,
solvers and certificates holds each decision to what it claims, with the numbers of the snapshot alone: shares, their
value, and no allocation of any other decision that is worth more than an optimum or a bound, keeps more deadlines, or
has a finite value where there is said to be none. The same seed gives the same instances and, but for what runs into
the limit, the same output, on any number of threads.

Columns: what became of decisions. `certified` have an optimum's proof, `uncertified` shares without one; `infeasible`
and `unbounded` are said to be so; `unsolved`: no backend certified an answer; `refused`: the instance lacks what the
policy needs; `broken`: an error that blames the program; `no end` within the limit; `not tried`, because three others of
the policy had no end; `untrue`: a claim is. Then the largest relative gap, and the largest relative difference between
two certified optima.

Exit code 5 if a claim is untrue, 1 if a decision crashed or is broken, 4 if one had no end.

Examples:
  apportion check --instances 60 --seed 1
  apportion check --instances 1000 --decades 12,15 --policies max_min_fairness_perf --out found")]
pub struct CheckArguments {
    /// Number of instances
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    instances: u64,
    /// The seed of the draws
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Policies that are programs: names, or policy files [default: all that ship]
    #[arg(long, value_name = "NAME|FILE,…", value_delimiter = ',', value_parser = name_or_path())]
    policies: Vec<String>,
    /// Backends that are tried first; `default` is the chain that users get [default: that, highs-simplex, highs-ipm, clarabel and
    /// good_lp-microlp, where there are]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    backends: Vec<String>,
    /// The decades over which numbers are spread
    #[arg(long, value_name = "D,…", value_delimiter = ',', default_value = "1,3,6,9,12,15", value_parser = number)]
    decades: Vec<f64>,
    /// Processor time for a decision, in s
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = number)]
    limit: f64,
    /// Write instances with an untrue claim, a crash, a broken decision or no end as snapshots here, with findings.json
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A part of the decisions, in the form in which this command passes it to itself
    #[arg(long, hide = true, value_name = "JSON")]
    case: Option<String>,
}

/// The outcome of decisions on random instances, as `apportion check --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Checked<'a> {
    /// The seed of the instances.
    seed: u64,
    /// The limit of processor time of a decision.
    #[schemars(extend("x-unit" = "s"))]
    limit_seconds: f64,
    /// Counts, by the decades over which the instances' numbers are spread.
    rows: &'a [Tally],
    /// Untrue claims.
    findings: &'a [Finding],
}

impl Answer for Checked<'_> {
    const KIND: &'static str = "check";
}

/// A decision with a fault.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Finding {
    /// The instance's number.
    instance: u64,
    /// Decades over which its numbers are spread.
    decades: f64,
    #[serde(flatten)]
    fault: Fault,
}

/// The outcome of checking some instances.
#[derive(Debug, Default)]
struct Part {
    tallies: Vec<Tally>,
    findings: Vec<Finding>,
    /// Snapshots to write: number and text.
    kept: Vec<(u64, String)>,
}

/// Runs the command.
///
/// # Errors
/// If an argument names what does not exist, or a decision is not as it ought to be.
pub(super) fn run(arguments: &CheckArguments, session: &Session) -> Result<(), Failure> {
    if let Some(case) = &arguments.case {
        return Case::read(case)?.run();
    }
    check_folder("--out", arguments.out.as_deref())?;
    let plan = plan(arguments)?;
    let reference = reference()?;
    let bar = Progress::new(session, arguments.instances, "instances");
    let without_end = WithoutEnd::default();
    let starts: Vec<u64> = (0..arguments.instances).step_by(CHUNK).collect();
    let parts: Result<Vec<Part>, Failure> = starts
        .into_par_iter()
        .map(|from| {
            let to = arguments.instances.min(from + CHUNK as u64);
            let decided = run_child(&plan, (from, to), &without_end, session, &bar)?;
            Ok(part(&plan, from, &decided, &reference, arguments.limit))
        })
        .collect();
    bar.finish();
    let mut all = Part::default();
    parts?.into_iter().for_each(|part| all.add(part));
    if let Some(folder) = &arguments.out {
        write(folder, &all, session)?;
    }
    show(arguments, &all, session)?;
    let n_done: u64 = all.tallies.iter().map(|tally| tally.instances).sum();
    if n_done < arguments.instances {
        let message = format!("{n_done} of {} instances are shown", arguments.instances);
        return Err(Failure::Interrupted { message });
    }
    outcome(&all)
}

/// The plan of a check for the arguments, after they are checked.
fn plan(arguments: &CheckArguments) -> Result<Plan, Failure> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !positive(arguments.limit) {
        return Err(Failure::usage(format!("a limit of {} s, expected one above 0", arguments.limit), None));
    }
    if let Some(bad) = arguments.decades.iter().find(|decades| !(0.0..=20.0).contains(*decades)) {
        return Err(Failure::usage(format!("numbers over {bad} decades, expected 0 to 20"), None));
    }
    let catalog = plugin::catalog();
    let mut policies = arguments.policies.clone();
    for policy in &policies {
        check_reread("--policies", policy)?;
        if !matches!(catalog.document(policy)?.kind, PolicyKind::Program(_)) {
            let help = "`apportion policies list` tells which are".to_owned();
            return Err(Failure::usage(format!("policy `{policy}` is not a program"), Some(help)));
        }
    }
    if policies.is_empty() {
        for name in catalog.names() {
            if matches!(catalog.document(name)?.kind, PolicyKind::Program(_)) {
                policies.push(name.to_owned());
            }
        }
    }
    let mut backends = arguments.backends.clone();
    for name in backends.iter().filter(|name| *name != DEFAULT) {
        entry(name).map_err(|error| Failure::usage(error.to_string(), None))?;
    }
    if backends.is_empty() {
        let here = |name: &&str| BACKENDS.iter().any(|backend| backend.name == *name);
        backends = [DEFAULT].into_iter().chain(USUAL.into_iter().filter(here)).map(str::to_owned).collect();
    }
    let (seed, decades, limit) = (arguments.seed, arguments.decades.clone(), arguments.limit);
    Ok(Plan { seed, decades, policies, backends, limit })
}

/// The worker types that policies which ignore types refer to.
fn reference() -> Result<Vec<String>, Failure> {
    let catalog = plugin::catalog();
    for name in catalog.names() {
        if let PolicyKind::Program(program) = catalog.document(name)?.kind
            && let View::Reference { types, .. } = program.view
        {
            return Ok(types);
        }
    }
    Ok(Vec::new())
}

/// Judges all decisions on the instances from number `from` on.
fn part(plan: &Plan, from: u64, decided: &[Decided], reference: &[String], limit: f64) -> Part {
    let mut part = Part::default();
    for (instance, decisions) in (from..).zip(decided.chunks(plan.per_instance())) {
        let (decades, document) = plan.draw(instance);
        let judge = Judge::new(&document, reference, decisions);
        let mut faults = judge.faults();
        part.tally(&Tally::of(decades, decisions, &judge, &faults));
        faults.extend(decisions.iter().filter_map(|decided| {
            let what = match decided.verdict {
                Verdict::Crashed => format!("crashed: {}", decided.message.as_deref().unwrap_or_default()),
                Verdict::Broken => format!("broken: {}", decided.message.as_deref().unwrap_or_default()),
                Verdict::NoEnd => format!("no end within {limit} s"),
                _ => return None,
            };
            Some(Fault { policy: decided.policy.clone(), backend: decided.backend.clone(), what })
        }));
        if !faults.is_empty() {
            part.kept.push((instance, document.to_json()));
        }
        part.findings.extend(faults.into_iter().map(|fault| Finding { instance, decades, fault }));
    }
    part
}

impl Part {
    fn tally(&mut self, tally: &Tally) {
        match self.tallies.iter_mut().find(|other| other.decades.total_cmp(&tally.decades).is_eq()) {
            Some(same) => same.add(tally),
            None => self.tallies.push(tally.clone()),
        }
    }

    fn add(&mut self, other: Self) {
        other.tallies.iter().for_each(|tally| self.tally(tally));
        self.findings.extend(other.findings);
        self.kept.extend(other.kept);
    }
}

fn file_name(instance: u64) -> String {
    format!("{instance:06}.json")
}

fn write(folder: &Path, all: &Part, session: &Session) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(Failure::io(format!("make {}", folder.display())))?;
    for (instance, text) in &all.kept {
        write_file(&folder.join(file_name(*instance)), text.as_bytes())?;
    }
    let findings = serde_json::to_string_pretty(&all.findings)
        .map_err(|error| Failure::Bug { message: format!("findings are not JSON: {error}") })?;
    write_bytes(session, &folder.join("findings.json"), findings.as_bytes())
}

fn show(arguments: &CheckArguments, all: &Part, session: &Session) -> Result<(), Failure> {
    match session.output.format() {
        OutputFormat::Json => session.output.answer(&Checked {
            seed: arguments.seed,
            limit_seconds: arguments.limit,
            rows: &all.tallies,
            findings: &all.findings,
        }),
        OutputFormat::Csv => session.output.table(&table(&all.tallies)),
        OutputFormat::Table => {
            session.output.words(&table(&all.tallies).aligned())?;
            if all.findings.is_empty() {
                return Ok(());
            }
            let mut found = Table::new(["instance", "decades", "policy", "backend", "finding"]);
            for Finding { instance, decades, fault } in &all.findings {
                let Fault { policy, backend, what } = fault.clone();
                let number = Cell::Count(*instance);
                found.push(vec![
                    number,
                    Cell::Number(*decades, 0),
                    policy.into(),
                    backend.into(),
                    what.into(),
                ]);
            }
            session.output.words(&format!("\n{}", found.aligned()))?;
            session.output.words(&repeat(arguments, all))
        }
    }
}

/// The command by which a finding is repeated.
fn repeat(arguments: &CheckArguments, all: &Part) -> String {
    let (Some(finding), Some(folder)) = (all.findings.first(), &arguments.out) else {
        return "\n`--out DIR` writes the instances, for `apportion allocate`".to_owned();
    };
    let Fault { policy, backend, .. } = &finding.fault;
    let backend = if backend == DEFAULT { String::new() } else { format!(" --backend {backend}") };
    let path = folder.join(file_name(finding.instance));
    format!("\nthe first one again: apportion allocate --policy {policy}{backend} {}", path.display())
}

fn table(tallies: &[Tally]) -> Table {
    let mut table = Table::new([
        "decades",
        "instances",
        "decisions",
        "certified",
        "uncertified",
        "infeasible",
        "unbounded",
        "unsolved",
        "refused",
        "broken",
        "crashed",
        "no_end",
        "not_tried",
        "untrue",
        "gap_max",
        "disagreement_max",
    ]);
    let worst = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Scientific);
    for tally in tallies {
        let counts = [
            tally.instances,
            tally.decisions,
            tally.certified,
            tally.uncertified,
            tally.infeasible,
            tally.unbounded,
            tally.unsolved,
            tally.refused,
            tally.broken,
            tally.crashed,
            tally.no_end,
            tally.not_tried,
            tally.untrue,
        ];
        let cells = [Cell::Number(tally.decades, 0)].into_iter().chain(counts.map(Cell::Count));
        table.push(cells.chain([worst(tally.gap_max), worst(tally.disagreement_max)]).collect());
    }
    table
}

fn outcome(all: &Part) -> Result<(), Failure> {
    let sum = |of: fn(&Tally) -> u64| all.tallies.iter().map(of).sum::<u64>();
    let (untrue, no_end) = (sum(|tally| tally.untrue), sum(|tally| tally.no_end));
    let failed = sum(|tally| tally.crashed + tally.broken);
    let first = all.findings.iter().map(|finding| finding.fault.what.as_str());
    let mut first = first.filter(|what| what.starts_with("crashed") || what.starts_with("broken"));
    let all = sum(|tally| tally.decisions);
    if untrue > 0 {
        return Err(Failure::BoundBroken {
            message: format!("{untrue} of {all} decisions claim what is untrue"),
        });
    }
    if failed > 0 {
        let first = first.next().map(|what| format!(", the first {what}")).unwrap_or_default();
        return Err(Failure::Bug {
            message: format!("{failed} of {all} decisions crashed or are broken{first}"),
        });
    }
    if no_end > 0 {
        return Err(Failure::Limit {
            message: format!("{no_end} of {all} decisions had no end within the limit"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::ExitStatus;

    #[test]
    fn the_worst_that_was_found_decides_the_exit_code() {
        let status = |untrue, crashed, broken, no_end| {
            let tallies = vec![Tally { untrue, crashed, broken, no_end, decisions: 9, ..Tally::default() }];
            outcome(&Part { tallies, ..Part::default() }).err().map(|failure| failure.status())
        };
        assert_eq!(status(0, 0, 0, 0), None);
        assert_eq!(status(0, 0, 0, 1), Some(ExitStatus::Limit));
        assert_eq!(status(0, 0, 1, 1), Some(ExitStatus::Bug));
        assert_eq!(status(0, 1, 0, 1), Some(ExitStatus::Bug));
        assert_eq!(status(1, 1, 1, 1), Some(ExitStatus::BoundBroken));
    }
}
