//! `apportion allocate`: one decision, from a snapshot to time shares with their certificate.

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cli::Session;
use crate::cli::decide::{DecisionArguments, Question};
use crate::cli::exit::Failure;
use crate::cli::output::{Cell, OutputFormat, Table};
use crate::index::CombinationId;
use crate::policy::{Decision, ObjectiveReport, Sense, SolveReport};

/// Its arguments.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion allocate --policy max_min_fairness_perf --format json snapshot.yaml

A snapshot:
  format: apportion/snapshot-v1
  cluster: {v100: 4, p100: 4}
  jobs:
    - {id: 1, throughput: {v100: 4.4, p100: 2.6}}
    - {id: 2, scale_factor: 2, throughput: {v100: 10.2, p100: 5.1}}")]
pub struct AllocateArguments {
    #[command(flatten)]
    decision: DecisionArguments,
}

/// Runs the command.
///
/// # Errors
/// If a document is at fault, or the policy gives no decision.
pub(super) fn run(arguments: &AllocateArguments, session: &Session) -> Result<(), Failure> {
    let mut question = Question::read(&arguments.decision)?;
    let decided = question.policy.allocate(&question.problem);
    let decision = decided.map_err(|error| question.place(error))?;
    match session.output.format() {
        OutputFormat::Json => session.output.json(&answer(&question, &decision)),
        OutputFormat::Csv => session.output.table(&shares(&question, &decision)),
        OutputFormat::Table => {
            let summary = summary(&question, &decision);
            session.output.text(&format!("{}\n{summary}", shares(&question, &decision).aligned()))
        }
    }
}

/// Rows of the allocation that are not all zero.
fn rows(decision: &Decision) -> impl Iterator<Item = (CombinationId, &[f64])> {
    let allocation = &decision.allocation;
    let ids = allocation.combinations().ids();
    ids.map(|id| (id, allocation.shares().row(id))).filter(|(_, row)| row.iter().any(|share| *share > 0.0))
}

fn shares(question: &Question, decision: &Decision) -> Table {
    let types: Vec<&str> = question.worker_types().collect();
    let mut table = Table::new(["jobs"].into_iter().chain(types).chain(["throughput"]));
    for (id, row) in rows(decision) {
        let combination = decision.allocation.combinations()[id];
        let throughput = if combination.is_pair() {
            Cell::Empty
        } else {
            Cell::Number(decision.allocation.effective_throughput()[combination.first()], 4)
        };
        let cells = row.iter().map(|share| Cell::Number(*share, 4));
        table
            .push([question.name(combination).into()].into_iter().chain(cells).chain([throughput]).collect());
    }
    table
}

/// The answer as programs read it.
fn answer(question: &Question, decision: &Decision) -> Value {
    let allocation = rows(decision).map(|(id, row)| {
        let shares: Map<String, Value> =
            question.worker_types().zip(row).map(|(name, share)| (name.to_owned(), json!(share))).collect();
        json!({"jobs": question.labels(decision.allocation.combinations()[id]), "shares": shares})
    });
    let throughput = decision.allocation.effective_throughput().enumerate();
    let by_id = |(job, value): (_, &f64)| (question.label(job).to_string(), json!(value));
    let mut answer = json!({
        "policy": question.policy.name(),
        "allocation": allocation.collect::<Vec<_>>(),
        "effective_throughput": throughput.map(by_id).collect::<Map<_, _>>(),
        "objective": decision.objective.as_ref().map(objective),
        "certificate": {
            "violation_max": decision.allocation.violation_max(),
            "optimal": decision.objective.as_ref().map(|objective| objective.optimal),
        },
        "solve": decision.solve.as_ref().map(solve),
        "dropped": decision.dropped.iter().map(|job| question.label(*job)).collect::<Vec<_>>(),
    });
    if let (Some(levels), Some(answer)) = (&decision.levels, answer.as_object_mut()) {
        let ids = question.problem.jobs().ids();
        let levels = ids.zip(levels).map(|(job, level)| (question.label(job).to_string(), json!(level)));
        answer.insert("levels".to_owned(), Value::Object(levels.collect()));
    }
    answer
}

fn objective(report: &ObjectiveReport) -> impl Serialize + use<> {
    json!({
        "sense": sense(report.sense),
        "value": report.value,
        "bound": report.bound,
        "gap_relative": report.gap_relative,
    })
}

fn solve(report: &SolveReport) -> impl Serialize + use<> {
    let seconds = report.seconds;
    json!({
        "backend": report.backend,
        "route": report.route,
        "seconds": {"build": seconds.build, "solve": seconds.solve, "certify": seconds.certify, "expand": seconds.expand},
        "iterations": report.iterations,
        "solves": report.solves,
        "fallbacks": report.fallbacks,
    })
}

/// `maximize` or `minimize`.
pub(super) fn sense(sense: Sense) -> &'static str {
    match sense {
        Sense::Maximize => "maximize",
        Sense::Minimize => "minimize",
    }
}

/// The evidence, in words.
fn summary(question: &Question, decision: &Decision) -> String {
    let mut lines = vec![format!("policy     {}", question.policy.name())];
    if let Some(ObjectiveReport { sense: direction, value, bound, gap_relative, violation_max, optimal }) =
        &decision.objective
    {
        let verdict = if *optimal { "certified optimal" } else { "NOT certified optimal" };
        lines.push(format!("objective  {} {value}, bound {bound}", sense(*direction)));
        lines.push(format!(
            "           {verdict}: gap {gap_relative:.1e}, largest violation {violation_max:.1e}"
        ));
    }
    if let Some(SolveReport { backend, route, seconds, iterations, solves, fallbacks, .. }) = &decision.solve
    {
        let total = seconds.total();
        lines.push(format!(
            "solve      {backend}, {route}: {solves} programs, {iterations} iterations, {:.1} ms",
            total * 1e3
        ));
        lines.extend(fallbacks.iter().map(|fallback| format!("fallback   {fallback}")));
    }
    for job in &decision.dropped {
        lines.push(format!("dropped    the promise to job {}", question.label(*job)));
    }
    lines.push(String::new());
    lines.join("\n")
}
