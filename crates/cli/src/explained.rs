//! The explanation of a decision for programs.

use schemars::JsonSchema;
use serde::Serialize;

use crate::decide::Question;
use crate::decided::{DecisionCertificate, Solve};
use crate::output::Answer;
use apportion::index::{Id, JobIndex};
use apportion::policy::{ConstraintExplanation, ConstraintRow, Explanation, Fixed, JobExplanation, Limit};
use apportion::program::expression::Subject;
use apportion::spec::snapshot::Label;

/// The reason for each job's share, as `apportion explain --format json` prints it. A price is the change of the objective per unit
/// more of something; it is null where it is not known.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExplanationAnswer<'a> {
    /// The policy.
    policy: &'a str,
    /// The form of its program, and the reason for that form; for rules, that there is none.
    reason: &'a str,
    /// Its objective; null for rules.
    objective: Option<Objective>,
    /// The proof of the optimum.
    certificate: DecisionCertificate,
    /// The method by which the decision was found; null where nothing was solved.
    solve: Option<Solve<'a>>,
    /// The capacity of each worker type, and its price.
    worker_types: Vec<Capacity<'a>>,
    /// The jobs that are asked about.
    jobs: Vec<Job<'a>>,
    /// The policy's own constraints: a row for each job that is asked about, for each worker type, or for the whole cluster.
    constraints: Vec<Row<'a>>,
    /// Data that depend on the number of workers, and that are taken as constant in the gain of one worker more.
    one_more_holds: &'a [String],
    /// Why no price is shown, if a program was solved and its prices are not known.
    prices_unknown: Option<&'static str>,
}

impl Answer for ExplanationAnswer<'_> {
    const KIND: &'static str = "explanation";
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
    /// The value at measured throughputs, where the policy sees others.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_at_measured_throughputs: Option<f64>,
}

/// A worker type's use and price.
#[derive(Serialize, JsonSchema)]
struct Capacity<'a> {
    /// The worker type.
    worker_type: &'a str,
    /// Workers in use, summed over shares.
    workers_used: f64,
    /// The number of workers.
    workers: f64,
    /// Whether all of them are in use.
    binds: bool,
    /// The gain of one worker more, at most.
    one_more: Option<f64>,
}

/// A job and the reason for which it has no more.
#[derive(Serialize, JsonSchema)]
struct Job<'a> {
    /// The job.
    id: &'a Label,
    /// Its share of time, over all worker types and partners.
    time: f64,
    /// The reason: `constraint`, `bottleneck`, `time`, `capacity`, `discount`, `free`, `unrefined` or `unexplained`.
    binding: &'static str,
    /// Its effective throughput.
    #[schemars(extend("x-unit" = "steps/s"))]
    effective_throughput: f64,
    /// The price of a step/s that is demanded of it.
    throughput_price: Option<f64>,
    /// The price of all of its time.
    time_price: Option<f64>,
    /// The part of its time that it keeps, if the policy discounts it.
    discount: Option<f64>,
    /// The step at which its level was fixed, under water filling.
    fixed: Option<FixedLevel<'a>>,
    /// Whether it sets the objective.
    sets_objective: bool,
    /// Rows with a price that hold its share.
    limits: Vec<PricedRow>,
}

/// The step of water filling at which a job's level was fixed.
#[derive(Serialize, JsonSchema)]
struct FixedLevel<'a> {
    /// The number of the step, from 1.
    step: usize,
    /// The number of all steps.
    steps: usize,
    /// The job's level.
    level: f64,
    /// The gain of one worker more of each type, in the order of `worker_types`.
    one_more: &'a [Option<f64>],
    /// The price of a step/s that is demanded of the job.
    throughput_price: Option<f64>,
    /// The price of all of its time.
    time_price: f64,
    /// The prices of the rows of each of the policy's own constraints.
    constraints: &'a [Vec<Option<f64>>],
}

/// A row with a price that holds a job's share.
#[derive(Serialize, JsonSchema)]
struct PricedRow {
    /// `constraint`, `time` or `capacity`.
    row: &'static str,
    /// The number of the policy's own constraint, from 0, if the row is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    constraint: Option<usize>,
}

/// A row of one of the policy's own constraints.
#[derive(Serialize, JsonSchema)]
struct Row<'a> {
    /// The constraint, as in the policy file.
    constraint: &'a str,
    /// The subject of its rows: `job`, `worker_type` or `cluster`.
    for_each: &'static str,
    /// The job, if the constraint is for each job.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a Label>,
    /// The worker type, if the constraint is for each worker type.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker_type: Option<&'a str>,
    /// `the whole cluster`, if the constraint is for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'static str>,
    /// The unit of its sides.
    unit: String,
    /// The change of the objective per unit added to its right side.
    price: Option<f64>,
    /// Room between its sides, below 0 if it is exceeded; null if a side is no limit.
    slack: Option<f64>,
    /// Whether there is no room.
    binds: bool,
    /// The cost of a unit of violation, if it may be violated.
    penalty: Option<f64>,
    /// Whether it may be dropped for jobs.
    droppable: bool,
    /// Whether it was dropped for the job.
    dropped: bool,
}

/// Rows of the policy's own constraints, each with its constraint and its position in that; rows for jobs only if they are among
/// `jobs`.
pub(crate) fn constraint_rows<'e>(
    explanation: &'e Explanation,
    jobs: &'e [JobIndex],
) -> impl Iterator<Item = (&'e ConstraintExplanation, usize, &'e ConstraintRow)> {
    explanation.constraints.iter().flat_map(move |constraint| {
        let rows: Vec<usize> = match constraint.subject {
            Some(Subject::Job) => jobs.iter().map(|job| job.index()).collect(),
            Some(Subject::WorkerType) | None => (0..constraint.rows.len()).collect(),
        };
        rows.into_iter().map(move |row| (constraint, row, &constraint.rows[row]))
    })
}

impl<'a> ExplanationAnswer<'a> {
    /// The reason of these jobs; with the explanation, its objective at measured throughputs, where the policy sees others.
    pub(crate) fn of(
        question: &'a Question,
        (explanation, measured): (&'a Explanation, Option<f64>),
        jobs: &'a [JobIndex],
    ) -> Self {
        let decision = &explanation.decision;
        let types = question.worker_types().zip(&explanation.types);
        let worker_type = |(worker_type, part): (&'a str, &apportion::policy::TypeExplanation)| Capacity {
            worker_type,
            workers_used: part.workers_used,
            workers: part.workers,
            binds: part.binds,
            one_more: part.one_more,
        };
        let job = |job: &JobIndex| {
            let throughput = decision.allocation.effective_throughput()[*job];
            Job::of(question.label(*job), &explanation.jobs[job.index()], throughput)
        };
        let rows = constraint_rows(explanation, jobs);
        Self {
            policy: question.policy.name(),
            reason: &explanation.reason,
            objective: explanation.objective().map(|objective| Objective {
                sense: objective.sense.name(),
                value: objective.value,
                bound: objective.bound,
                gap_relative: objective.gap_relative,
                value_at_measured_throughputs: measured,
            }),
            certificate: DecisionCertificate::of(decision),
            solve: decision.solve.as_ref().map(Solve::of),
            worker_types: types.map(worker_type).collect(),
            jobs: jobs.iter().map(job).collect(),
            constraints: rows.map(|(constraint, row, of)| Row::of(question, (constraint, row), of)).collect(),
            one_more_holds: &explanation.held,
            prices_unknown: explanation.prices_unknown,
        }
    }
}

impl<'a> Job<'a> {
    fn of(id: &'a Label, part: &'a JobExplanation, effective_throughput: f64) -> Self {
        let limit = |limit: &Limit| match limit {
            Limit::Constraint(position) => PricedRow { row: "constraint", constraint: Some(*position) },
            Limit::Time => PricedRow { row: "time", constraint: None },
            Limit::Capacity => PricedRow { row: "capacity", constraint: None },
        };
        let fixed = |fixed: &'a Fixed| FixedLevel {
            step: fixed.step,
            steps: fixed.steps,
            level: fixed.level,
            one_more: &fixed.one_more,
            throughput_price: fixed.throughput_price,
            time_price: fixed.time_price,
            constraints: &fixed.constraints,
        };
        Self {
            id,
            time: part.time,
            binding: part.binding.name(),
            effective_throughput,
            throughput_price: part.throughput_price,
            time_price: part.time_price,
            discount: part.discount,
            fixed: part.fixed.as_ref().map(fixed),
            sets_objective: part.sets_objective,
            limits: part.limits.iter().map(limit).collect(),
        }
    }
}

impl<'a> Row<'a> {
    fn of(
        question: &'a Question,
        (constraint, position): (&'a ConstraintExplanation, usize),
        row: &ConstraintRow,
    ) -> Self {
        let subject = constraint.subject;
        let for_each = match subject {
            Some(Subject::Job) => "job",
            Some(Subject::WorkerType) => "worker_type",
            None => "cluster",
        };
        let of_jobs = || question.label(JobIndex::from_index(position));
        let is_of_types = subject == Some(Subject::WorkerType);
        Self {
            constraint: &constraint.text,
            for_each,
            job: (subject == Some(Subject::Job)).then(of_jobs),
            worker_type: question.worker_types().nth(position).filter(|_| is_of_types),
            cluster: subject.is_none().then_some("the whole cluster"),
            unit: constraint.unit.to_string(),
            price: row.price,
            // JSON has no infinite number for unlimited room.
            slack: row.slack.is_finite().then_some(row.slack),
            binds: row.binds,
            penalty: constraint.penalty,
            droppable: constraint.droppable,
            dropped: row.dropped,
        }
    }
}
