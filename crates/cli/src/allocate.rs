//! `apportion allocate`: one decision, from a snapshot to time shares with their certificate.

use std::collections::BTreeMap;

use clap::Args;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::Session;
use crate::decide::{DecisionArguments, Question};
use crate::decided::{DecisionCertificate, Solve};
use crate::exit::Failure;
use crate::output::{Answer, Cell, OutputFormat, Table};
use apportion::index::{CombinationId, Id, JobIndex};
use apportion::policy::{Decision, ObjectiveReport, SolveReport};
use apportion::spec::snapshot::Label;
use apportion::workload::Combination;

/// Arguments of `allocate`.
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
    if let Some(remark) = &question.remark {
        session.note(remark);
    }
    let measured = question.measured_value(&decision)?;
    match session.output.format() {
        OutputFormat::Json => session.output.answer(&Allocated::of(&question, &decision, measured)),
        OutputFormat::Csv => session.output.table(&shares(&question, &decision)),
        OutputFormat::Table => {
            let summary = summary(&question, &decision, measured);
            session.output.words(&format!("{}\n{summary}", shares(&question, &decision).aligned()))
        }
    }?;
    proven(&decision)
}

/// Exit code 4 for a decision that was printed without proof: its time was over, or its shares are not proven to be an optimum.
pub(super) fn proven(decision: &Decision) -> Result<(), Failure> {
    let is_late = decision.solve.as_ref().is_some_and(|solve| solve.out_of_time);
    let late = if is_late { "the time for the decision was over: " } else { "" };
    match &decision.objective {
        Some(objective) if !objective.optimal => {
            let (gap, violation) = (objective.gap_relative, objective.violation_max);
            let message = format!(
                "{late}the shares are not proven to be optimal: relative gap {gap:.1e}, largest violation {violation:.1e}"
            );
            Err(Failure::Limit { message })
        }
        _ if is_late && decision.solve.as_ref().is_some_and(|solve| solve.undiscounted) => {
            let message = format!("{late}the shares are without the discounts, not all of which were found");
            Err(Failure::Limit { message })
        }
        _ if is_late => {
            Err(Failure::Limit { message: format!("{late}the choice among optima was not made") })
        }
        _ => Ok(()),
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
        let tiny = row.iter().all(|share| *share < 0.5e-4);
        let throughput = if combination.is_pair() {
            Cell::Empty
        } else {
            number(decision.allocation.effective_throughput()[combination.first()], tiny)
        };
        let cells = row.iter().map(|share| number(*share, tiny));
        table
            .push([question.name(combination).into()].into_iter().chain(cells).chain([throughput]).collect());
    }
    for job in without_time(decision) {
        let zeros = std::iter::repeat_n(Cell::Number(0.0, 4), question.worker_types().count() + 1);
        let name = question.name(Combination::single(job));
        table.push([name.into()].into_iter().chain(zeros).collect());
    }
    for label in question.snapshot.finished() {
        let zeros = std::iter::repeat_n(Cell::Number(0.0, 4), question.worker_types().count() + 1);
        table.push([label.to_string().into()].into_iter().chain(zeros).collect());
    }
    table
}

/// The jobs that have no time at all, neither alone nor in a pair.
fn without_time(decision: &Decision) -> Vec<JobIndex> {
    let mut has_time = vec![false; decision.allocation.effective_throughput().len()];
    for (id, _) in rows(decision) {
        for job in decision.allocation.combinations()[id].members() {
            has_time[job.index()] = true;
        }
    }
    let ids = (0..has_time.len()).filter(|job| !has_time[*job]);
    ids.map(JobIndex::from_index).collect()
}

/// A table cell with a number: four decimals, or an exponent in a `tiny` row, where four decimals would show every share as 0.
fn number(value: f64, tiny: bool) -> Cell {
    if tiny && value != 0.0 { Cell::Scientific(value) } else { Cell::Number(value, 4) }
}

/// The decision on a snapshot, as `apportion allocate --format json` prints it. Shares are computed while it is written.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Allocated<'a> {
    /// The policy.
    policy: &'a str,
    /// Time shares: a row for each job, or pair of jobs, that has time.
    #[schemars(with = "Vec<Share<'_>>")]
    allocation: Shares<'a>,
    /// The effective throughput of each job; 0 of one without steps left.
    #[schemars(with = "BTreeMap<String, f64>", extend("x-unit" = "steps/s"))]
    effective_throughput: ByJob<'a>,
    /// The policy's objective; null for rules.
    objective: Option<Objective>,
    /// The proof of the optimum.
    certificate: DecisionCertificate,
    /// The method by which the decision was found; null where nothing was solved.
    solve: Option<Solve<'a>>,
    /// Jobs with a droppable constraint that was dropped.
    dropped: Vec<&'a Label>,
    /// The normalized level of each job, where the policy has levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<String, f64>")]
    levels: Option<ByJob<'a>>,
}

impl Answer for Allocated<'_> {
    const KIND: &'static str = "allocation";
}

/// The objective's value.
#[derive(Serialize, JsonSchema)]
struct Objective {
    /// `maximize` or `minimize`.
    sense: &'static str,
    /// The value, in the objective's unit.
    value: f64,
    /// The value that no allocation can beat.
    bound: f64,
    /// The gap between them, as a part of the larger.
    gap_relative: f64,
    /// The value at measured throughputs, where the policy sees other ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_at_measured_throughputs: Option<f64>,
    /// Whether the value is that of the shares before a discount reduced each of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    before_discount: bool,
}

/// Jobs, and their share of time on each worker type.
#[derive(Serialize, JsonSchema)]
struct Share<'a> {
    /// A job, or two jobs that share workers.
    jobs: Vec<&'a Label>,
    /// The share of time on each worker type.
    #[schemars(with = "BTreeMap<String, f64>")]
    shares: Each<'a>,
}

/// Values keyed by the names of the worker types.
struct Each<'a> {
    question: &'a Question,
    values: &'a [f64],
}

impl Serialize for Each<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.question.worker_types().zip(self.values))
    }
}

/// Values keyed by the ids of the jobs: `[n]`.
struct ByJob<'a> {
    question: &'a Question,
    values: &'a [f64],
    /// Jobs with the value 0.
    finished: &'a [Label],
}

impl Serialize for ByJob<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let jobs = self.question.problem.jobs().ids();
        let finished = self.finished.iter().map(|label| (label, &0.0));
        serializer.collect_map(jobs.map(|job| self.question.label(job)).zip(self.values).chain(finished))
    }
}

/// Rows of the allocation that are not all zero.
struct Shares<'a> {
    question: &'a Question,
    decision: &'a Decision,
}

impl Serialize for Shares<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { question, decision } = *self;
        serializer.collect_seq(rows(decision).map(|(id, values)| Share {
            jobs: question.labels(decision.allocation.combinations()[id]),
            shares: Each { question, values },
        }))
    }
}

impl<'a> Allocated<'a> {
    /// A decision, and its objective at measured throughputs, where the policy sees other ones.
    fn of(question: &'a Question, decision: &'a Decision, measured: Option<f64>) -> Self {
        let by_job = |values| ByJob { question, values, finished: &[] };
        let throughputs = decision.allocation.effective_throughput().as_slice();
        let objective = |report: &ObjectiveReport| Objective {
            sense: report.sense.name(),
            value: report.value,
            bound: report.bound,
            gap_relative: report.gap_relative,
            value_at_measured_throughputs: measured,
            before_discount: question.is_discounted(decision),
        };
        Self {
            policy: question.policy.name(),
            allocation: Shares { question, decision },
            effective_throughput: ByJob { finished: question.snapshot.finished(), ..by_job(throughputs) },
            objective: decision.objective.as_ref().map(objective),
            certificate: DecisionCertificate::of(decision),
            solve: decision.solve.as_ref().map(Solve::of),
            dropped: decision.dropped.iter().map(|job| question.label(*job)).collect(),
            levels: decision.levels.as_deref().map(by_job),
        }
    }
}

/// The strategy by which the optimum was found, and the reason for it, in words.
pub(super) fn strategy(report: &SolveReport) -> String {
    let tried = report.gave_up.iter().map(|(strategy, why)| format!("; {strategy} gave up: {why}"));
    format!("{}: {}{}", report.strategy, report.reason, tried.collect::<String>())
}

/// The programs that were solved, in words.
fn solved(report: &SolveReport) -> String {
    let SolveReport { backend, route, seconds, iterations, solves, searches, size, .. } = report;
    let mut parts = Vec::new();
    if let Some(backend) = backend {
        let (columns, rows) = (size.columns, size.rows);
        // If searches found the optimum, the backend is that of a program for another purpose.
        let (programs, largest) = match (*solves, *searches) {
            (1, _) => ("program", ""),
            (_, 0) => ("programs, the optimum", ", the largest"),
            _ => ("programs, one", ", the largest"),
        };
        parts.push(format!("{solves} {programs} by {backend}{largest} of {columns} columns and {rows} rows"));
    }
    if *searches > 0 || backend.is_none() {
        let plural = if *searches == 1 { "" } else { "es" };
        parts.push(format!("{searches} search{plural} for prices"));
    }
    format!("{route}: {}, {iterations} iterations, {:.1} ms", parts.join(", "), seconds.total() * 1e3)
}

/// The exchange that followed the policy's decision, in words; none if there was none.
pub(super) fn exchanged(report: &SolveReport) -> Option<String> {
    let jobs = match report.exchanged {
        0 => return None,
        1 => "1 job".to_owned(),
        several => format!("{several} jobs"),
    };
    Some(format!(
        "time of {jobs} on slower worker types for idle time on faster ones, all of which are the same to the policy; simulations and live servers do not do that"
    ))
}

/// The evidence, in words.
fn summary(question: &Question, decision: &Decision, measured: Option<f64>) -> String {
    let mut lines = vec![format!("policy     {}", question.policy.name())];
    if let Some(report) = &decision.objective {
        let ObjectiveReport { value, bound, gap_relative, violation_max, .. } = report;
        let verdict = match (report.optimal, report.first_level_only) {
            (false, _) => "NOT certified optimal",
            (true, false) => "certified optimal",
            (true, true) => "certified optimal in its first level, the least, and not certified above it",
        };
        let seen = if measured.is_some() { " at the throughputs that the policy sees" } else { "" };
        lines.push(format!("objective  {} {value}, bound {bound}{seen}", report.sense.name()));
        lines.extend(measured.map(|value| format!("           {value} at measured throughputs")));
        if question.is_discounted(decision) {
            lines.push("           of the shares before the discount, which takes a part of each".to_owned());
        }
        let among = if decision.dropped.is_empty() {
            ""
        } else {
            " among allocations that drop the same constraints"
        };
        lines.push(format!(
            "           {verdict}{among}: gap {gap_relative:.1e}, largest violation {violation_max:.1e}"
        ));
    }
    if let Some(report) = &decision.solve {
        lines.push(format!("strategy   {}", strategy(report)));
        let droppable = report.droppable;
        lines.extend(droppable.map(|(strategy, reason)| format!("droppable  {strategy}: {reason}")));
        lines.push(format!("solve      {}", solved(report)));
        lines.extend(exchanged(report).map(|what| format!("exchanged  {what}")));
        lines.extend(report.fallbacks.iter().map(|fallback| format!("fallback   {fallback}")));
    }
    for job in &decision.dropped {
        lines.push(format!("dropped    the droppable constraints of job {}", question.label(*job)));
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use apportion::problem::{ActiveJob, Problem, ProblemBuilder};
    use apportion_published::plugin;

    use super::*;
    use crate::exit::ExitStatus;

    #[test]
    fn shares_that_are_not_proven_optimal_end_in_a_code_of_their_own() {
        let cluster = "v100=1".parse::<apportion::Cluster>().unwrap();
        let mut builder = ProblemBuilder::new(cluster.into());
        builder.job(ActiveJob::new(Id::from_index(0)), &[2.0]);
        let problem: Problem = builder.build().unwrap();
        let mut decision =
            plugin::catalog().policy("max_min_fairness_perf").unwrap().allocate(&problem).unwrap();
        assert!(proven(&decision).is_ok());
        if let Some(objective) = &mut decision.objective {
            objective.optimal = false;
        }
        let failure = proven(&decision).unwrap_err();
        assert_eq!(failure.status(), ExitStatus::Limit);
        assert!(failure.to_string().contains("not proven to be optimal"), "{failure}");
    }
}
