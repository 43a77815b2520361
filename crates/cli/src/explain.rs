//! `apportion explain`: the reason for each job's share.

use std::fmt::Write as _;
use std::ops::Deref;

use clap::Args;
use serde_json::{Value, json};

use crate::Session;
use crate::allocate;
use crate::decide::{DecisionArguments, Question};
use crate::exit::Failure;
use crate::explain_program::{self, ProgramForm};
use crate::explained::{ExplanationAnswer, constraint_rows};
use crate::output::{Cell, OutputFormat, Table};
use apportion::index::{Id, JobIndex, WorkerTypeId};
use apportion::policy::{ConstraintExplanation, ConstraintRow, Explanation, Fixed, JobExplanation, Sense};
use apportion::problem::ActiveJob;
use apportion::program::expression::Subject;
use apportion::units::Decimals;

/// The part of the objective's size, or of the largest price's, up to which a price may be rounding.
const ROUNDING: f64 = 5e-7;
/// The least size of a number of which six decimals show three digits.
const DECIMALS_MIN: f64 = 1e-4;
/// The size from which numbers are shown with an exponent.
const DECIMALS_MAX: f64 = 1e15;

/// Arguments of `explain`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion explain --policy max_min_fairness_perf snapshot.yaml --job 17
  apportion explain --policy max_min_fairness_perf snapshot.yaml --program lp")]
pub struct ExplainArguments {
    #[command(flatten)]
    decision: DecisionArguments,
    /// Only this job; may be given several times
    #[arg(long, value_name = "ID")]
    job: Vec<String>,
    /// Print the program instead, for another solver to read; comments say what its optimum and its classes are. It is that of
    /// all jobs, so it goes with no `--job`
    #[arg(long, value_name = "FORM")]
    program: Option<ProgramForm>,
}

/// An explanation.
struct Explained {
    explanation: Explanation,
    /// The size of prices that may be rounding.
    rounding: f64,
    /// The objective at measured throughputs, where the policy sees others.
    measured: Option<f64>,
}

impl Deref for Explained {
    type Target = Explanation;

    fn deref(&self) -> &Explanation {
        &self.explanation
    }
}

/// Runs the command.
///
/// # Errors
/// If a document is at fault, or the policy gives no decision.
pub(super) fn run(arguments: &ExplainArguments, session: &Session) -> Result<(), Failure> {
    if arguments.program.is_some() && !arguments.job.is_empty() {
        let help =
            "leave out `--job`: comments ahead of the program say which columns are of which jobs".to_owned();
        return Err(Failure::usage(
            "`--program` prints the program of all jobs, and `--job` asks about one",
            Some(help),
        ));
    }
    let mut question = Question::read(&arguments.decision)?;
    let jobs = question.positions(&arguments.job)?;
    let explained = question.policy.explain(&question.problem);
    let explanation = explained.map_err(|error| question.place(error))?;
    let measured = question.measured_value(&explanation.decision)?;
    if let Some(remark) = &question.remark {
        session.note(remark);
    }
    if let Some(form) = arguments.program {
        return session.output.text(&explain_program::text(&question, &explanation, form)?);
    }
    let explanation = Explained { rounding: ROUNDING * explanation.scale().min(1.0), explanation, measured };
    match session.output.format() {
        OutputFormat::Json => {
            session.output.answer(&ExplanationAnswer::of(&question, (&explanation, measured), &jobs))
        }
        OutputFormat::Csv => session.output.table(&job_table(&question, &explanation, &jobs)),
        OutputFormat::Table => {
            let asked = !arguments.job.is_empty();
            session.output.words(&in_words(&question, &explanation, &jobs, asked))
        }
    }?;
    allocate::proven(&explanation.decision)
}

/// The effect of more workers on the level at which water filling fixed a job, in words.
fn fixed_in_words(question: &Question, explanation: &Explained, fixed: &Fixed) -> String {
    let mut text = format!(
        "  its level {} was fixed at step {} of {}\n",
        Decimals(fixed.level, 6),
        fixed.step,
        fixed.steps
    );
    let level = |price| change(Sense::Maximize, price);
    if shown(explanation, fixed.time_price) != 0.0 {
        let more = level(fixed.time_price);
        let _ = writeln!(text, "  its time was all used: a unit more would have changed the level by {more}");
    }
    for (constraint, prices) in explanation.constraints.iter().zip(&fixed.constraints) {
        let known = prices.iter().enumerate().filter_map(|(row, price)| Some((row, (*price)?)));
        for (row, more) in known.filter(|(_, price)| shown(explanation, *price) != 0.0) {
            let of_type =
                (constraint.subject == Some(Subject::WorkerType)).then(|| question.worker_types().nth(row));
            let of_type = of_type.flatten().map(|name| format!(" of {name}")).unwrap_or_default();
            let (text_of, unit, more) = (&constraint.text, unit(constraint), level(more));
            let _ = writeln!(
                text,
                "  {unit} more on the right of `{text_of}`{of_type} would have changed the level by {more}"
            );
        }
    }
    let kinds = question.problem.cluster().types().ids();
    for ((name, kind), more) in question.worker_types().zip(kinds).zip(&fixed.one_more) {
        let but = uncounted(question, kind);
        let _ = match more.map(|more| shown(explanation, more)) {
            None => writeln!(
                text,
                "  one worker more of {name} would raise the level of an earlier step first: for this one, its worth is not known"
            ),
            Some(0.0) => writeln!(text, "  one worker more of {name} gains nothing there{but}"),
            Some(more) => {
                let (more, held) = (level(more), held(explanation));
                writeln!(
                    text,
                    "  one worker more of {name} would have changed the level by {more}{held}{but}"
                )
            }
        };
    }
    text
}

/// A cell of a price, with its exponent where six decimals would not show three digits of it.
fn price(explanation: &Explained, price: Option<f64>) -> Cell {
    let Some(price) = price.map(|price| shown(explanation, price)) else { return Cell::Empty };
    if price == 0.0 || price.abs() >= DECIMALS_MIN { Cell::Number(price, 6) } else { Cell::Scientific(price) }
}

/// A price as it is shown: 0 if it may be rounding, beside the objective and the largest price; 0 has no sign.
fn shown(explanation: &Explained, price: f64) -> f64 {
    if price.abs() <= explanation.rounding { 0.0 } else { price }
}

/// The effect on an optimum of one unit more, from its price. A maximum is concave in the right sides of the program's rows, a
/// minimum convex, so a gain is at most the price and a loss at least.
fn change(sense: Sense, price: f64) -> String {
    let gains = (sense == Sense::Maximize) == (price > 0.0);
    let bounded = if gains { "at most" } else { "at least" };
    if (DECIMALS_MIN..DECIMALS_MAX).contains(&price.abs()) {
        format!("{bounded} {price:+.6}")
    } else {
        format!("{bounded} {price:+.2e}")
    }
}

/// The sense of the explained decision's objective.
fn sense(explanation: &Explained) -> Sense {
    explanation.objective().map_or(Sense::Maximize, |objective| objective.sense)
}

/// The data that one worker more would change and that its price takes as constant, in words; empty if there are none.
fn held(explanation: &Explained) -> String {
    let names: Vec<String> = explanation.held.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { String::new() } else { format!(", with {} held", names.join(" and ")) }
}

/// The effect that the price of a worker of a type does not count, in words: jobs that would fit there with one more. Empty if
/// there are none.
fn uncounted(question: &Question, kind: WorkerTypeId) -> String {
    let (problem, n_workers) = (&question.problem, question.problem.cluster().types()[kind].n_workers);
    let fits_then = |(job, active): (JobIndex, &ActiveJob)| {
        active.scale_factor == n_workers + 1 && problem.throughput()[(job, kind)] > 0.0
    };
    if problem.jobs().ids().zip(problem.jobs()).any(fits_then) {
        format!(", not counting that jobs of {} workers would then fit there", n_workers + 1)
    } else {
        String::new()
    }
}

/// A job's share in a sentence, and the effect of one worker more of each type, where prices are known.
fn job_in_words(question: &Question, explanation: &Explained, job: JobIndex) -> String {
    let part = &explanation.jobs[job.index()];
    let mut text = format!("{}: {}\n", question.label(job), explanation.in_words(job));
    if let Some(fixed) = part.fixed.as_ref().filter(|fixed| fixed.step > 1) {
        text.push_str(&fixed_in_words(question, explanation, fixed));
    }
    text.push_str(&own_in_words(explanation, job, part));
    if let (Some(objective), Some(price)) = (explanation.objective(), part.throughput_price) {
        let price = shown(explanation, price);
        let demand = if part.sets_objective && price != 0.0 {
            let more = change(objective.sense, price);
            format!("  one step/s more asked of it changes the objective by {more}")
        } else {
            "  no step/s that is asked of it changes the objective".to_owned()
        };
        let _ = writeln!(text, "{demand} ({} {})", objective.sense.name(), Decimals(objective.value, 6));
    }
    let kinds = question.problem.cluster().types().ids();
    for ((name, kind), part) in question.worker_types().zip(kinds).zip(&explanation.types) {
        let Some(more) = part.one_more.map(|price| shown(explanation, price)) else { continue };
        let but = uncounted(question, kind);
        let _ = if more == 0.0 {
            writeln!(text, "  one worker more of {name} gains nothing{but}")
        } else {
            let (more, held) = (change(sense(explanation), more), held(explanation));
            writeln!(text, "  one worker more of {name} changes the objective by {more}{held}{but}")
        };
    }
    text
}

/// The effect on a job of more time, and of more on the right side of each of the policy's constraints on it, in words.
fn own_in_words(explanation: &Explained, job: JobIndex, part: &JobExplanation) -> String {
    let mut text = String::new();
    if let Some(more) = part.time_price.map(|price| shown(explanation, price)) {
        let _ = if more == 0.0 {
            writeln!(text, "  more time than there is gains nothing")
        } else {
            let more = change(sense(explanation), more);
            writeln!(text, "  a unit of time more than there is changes the objective by {more}")
        };
    }
    for constraint in explanation.constraints.iter().filter(|of| of.subject == Some(Subject::Job)) {
        let row = &constraint.rows[job.index()];
        let (state, text_of) = (state(row), &constraint.text);
        let _ = match row.price.map(|price| shown(explanation, price)) {
            None => writeln!(text, "  `{text_of}` {state}"),
            Some(0.0) => writeln!(text, "  `{text_of}` {state}: more on its right gains nothing"),
            Some(more) => writeln!(
                text,
                "  `{text_of}` {state}: {} more on its right changes the objective by {}",
                unit(constraint),
                change(sense(explanation), more)
            ),
        };
    }
    text
}

/// One unit of a constraint's sides, in words.
fn unit(constraint: &ConstraintExplanation) -> String {
    if constraint.unit.is_none() { "1".to_owned() } else { format!("1[{}]", constraint.unit) }
}

/// The state of a constraint's row, in words.
fn state(row: &ConstraintRow) -> &'static str {
    match row {
        _ if row.dropped => "is dropped",
        _ if row.exceeded => "is exceeded",
        _ if row.binds => "binds",
        _ if row.slack.is_nan() => "is not known to bind",
        _ => "has room",
    }
}

/// The subject of a constraint's row: a job by its label, a worker type by its name, or the whole cluster.
fn subject(question: &Question, constraint: &ConstraintExplanation, row: usize) -> Value {
    match constraint.subject {
        Some(Subject::Job) => json!(question.label(JobIndex::from_index(row))),
        Some(Subject::WorkerType) => json!(question.worker_types().nth(row)),
        None => json!("the whole cluster"),
    }
}

/// A subject as text: without quotes if it is a name.
fn name(subject: &Value) -> String {
    subject.as_str().map_or_else(|| subject.to_string(), str::to_owned)
}

fn constraint_table(question: &Question, explanation: &Explained, jobs: &[JobIndex]) -> Table {
    let mut table = Table::new([
        "constraint",
        "for",
        "",
        "room",
        "price of more on its right",
        "per",
        "penalty per unit",
    ]);
    for (constraint, position, row) in constraint_rows(explanation, jobs) {
        let room = if row.slack.is_finite() { Cell::Number(row.slack, 6) } else { Cell::Empty };
        let penalty = constraint.penalty.map_or(Cell::Empty, |penalty| Cell::Number(penalty, 6));
        table.push(vec![
            constraint.text.clone().into(),
            name(&subject(question, constraint, position)).into(),
            state(row).into(),
            room,
            price(explanation, row.price),
            unit(constraint).into(),
            penalty,
        ]);
    }
    table
}

fn job_table(question: &Question, explanation: &Explained, jobs: &[JobIndex]) -> Table {
    let mut table = Table::new(["job", "time", "throughput", "binding", "throughput_price", "time_price"]);
    for job in jobs {
        let part = &explanation.jobs[job.index()];
        let throughput = explanation.decision.allocation.effective_throughput()[*job];
        table.push(vec![
            question.label(*job).to_string().into(),
            Cell::Number(part.time, 4),
            Cell::Number(throughput, 4),
            part.binding.name().into(),
            price(explanation, part.throughput_price),
            price(explanation, part.time_price),
        ]);
    }
    table
}

/// The value of the objective and its bound, and the value at measured throughputs, where the policy sees others.
fn objective_in_words(explanation: &Explained) -> String {
    let mut text = String::new();
    if let Some(objective) = explanation.objective() {
        let _ = writeln!(
            text,
            "{} {}{}, and no allocation{} beats {} (gap {:.1e})",
            objective.sense.name(),
            objective.value,
            if explanation.measured.is_some() { " at the throughputs that the policy sees" } else { "" },
            if explanation.decision.dropped.is_empty() {
                ""
            } else {
                " that drops the constraints of the same jobs"
            },
            objective.bound,
            objective.gap_relative
        );
        if let Some(value) = explanation.measured {
            let _ = writeln!(text, "         {value} at measured throughputs");
        }
    }
    text
}

fn in_words(question: &Question, explanation: &Explained, jobs: &[JobIndex], asked: bool) -> String {
    let mut text = format!("{}: {}\n", question.policy.name(), explanation.reason);
    if let Some(report) = &explanation.decision.solve {
        let _ = writeln!(text, "decided by {}", allocate::strategy(report));
        if let Some(what) = allocate::exchanged(report) {
            let _ = writeln!(text, "exchanged {what}");
        }
    }
    text.push_str(&objective_in_words(explanation));
    if let Some(why) = explanation.prices_unknown {
        let _ = writeln!(text, "prices are not known: {why}");
    }
    let mut types = Table::new(["worker type", "used", "of", "one worker more is worth at most"]);
    for (name, part) in question.worker_types().zip(&explanation.types) {
        let (used, workers) = (Cell::Number(part.workers_used, 2), Cell::Number(part.workers, 0));
        // A gain lowers a minimum.
        let sign = if sense(explanation) == Sense::Maximize { 1.0 } else { -1.0 };
        let worth = part.one_more.map(|change| sign * change);
        types.push(vec![name.into(), used, workers, price(explanation, worth)]);
    }
    let _ = write!(text, "\n{}", types.aligned());
    if explanation.types.iter().any(|kind| kind.one_more.is_some()) && !explanation.held.is_empty() {
        let _ = writeln!(text, "(one worker more{} as without it)", held(explanation));
    }
    for (name, kind) in question.worker_types().zip(question.problem.cluster().types().ids()) {
        let but = uncounted(question, kind);
        if explanation.types[kind.index()].one_more.is_some() && !but.is_empty() {
            let _ = writeln!(text, "(one worker more of {name}{but})");
        }
    }
    text.push('\n');
    if !explanation.constraints.is_empty() {
        let _ = writeln!(text, "{}", constraint_table(question, explanation, jobs).aligned());
    }
    let mut table = Table::new(["job", "time", "throughput", "price", "price of time", "what holds it"]);
    for job in jobs {
        let part = &explanation.jobs[job.index()];
        let throughput = explanation.decision.allocation.effective_throughput()[*job];
        table.push(vec![
            question.label(*job).to_string().into(),
            Cell::Number(part.time, 4),
            Cell::Number(throughput, 4),
            price(explanation, part.throughput_price),
            price(explanation, part.time_price),
            explanation.in_words(*job).into(),
        ]);
    }
    text.push_str(&table.aligned());
    if asked {
        for job in jobs {
            let _ = write!(text, "\n{}", job_in_words(question, explanation, *job));
        }
    }
    text
}
