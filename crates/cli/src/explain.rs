//! `apportion explain`: why each job gets its share.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::Session;
use crate::allocate::{self, sense};
use crate::decide::{DecisionArguments, Question};
use crate::exit::Failure;
use crate::output::{Cell, OutputFormat, Table};
use apportion::index::{Id, JobIndex};
use apportion::policy::{Binding, Explanation, Fixed, JobExplanation};
use apportion::program::text::{to_lp, to_mps};

/// A share of time from which on a job runs all the time.
const TIME_ALL: f64 = 1.0 - 1e-6;

/// Its arguments.
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
    /// Print the program instead, with its rows and columns named, for another solver to read
    #[arg(long, value_name = "FORM")]
    program: Option<ProgramForm>,
}

/// How a program is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgramForm {
    /// CPLEX LP text
    Lp,
    /// Free MPS text
    Mps,
}

/// Runs the command.
///
/// # Errors
/// If a document is at fault, or the policy gives no decision.
pub(super) fn run(arguments: &ExplainArguments, session: &Session) -> Result<(), Failure> {
    let mut question = Question::read(&arguments.decision)?;
    let jobs = question.positions(&arguments.job)?;
    let explained = question.policy.explain(&question.problem);
    let explanation = explained.map_err(|error| question.place(error))?;
    if let Some(remark) = &question.remark {
        session.note(remark);
    }
    if let Some(form) = arguments.program {
        return session.output.text(&program_text(&explanation, form)?);
    }
    match session.output.format() {
        OutputFormat::Json => session.output.json(&as_json(&question, &explanation, &jobs)),
        OutputFormat::Csv => session.output.table(&job_table(&question, &explanation, &jobs)),
        OutputFormat::Table => {
            let asked = !arguments.job.is_empty();
            session.output.text(&in_words(&question, &explanation, &jobs, asked))
        }
    }
}

fn program_text(explanation: &Explanation, form: ProgramForm) -> Result<String, Failure> {
    let no_program = || Failure::usage("this policy is a rule: it has no program".to_owned(), None);
    let program = explanation.program.as_ref().ok_or_else(no_program)?;
    let written = match form {
        ProgramForm::Lp => to_lp(program),
        ProgramForm::Mps => to_mps(program),
    };
    written.map_err(|error| Failure::usage(error.to_string(), None))
}

/// What holds a job, for programs.
fn binding_name(binding: Binding) -> &'static str {
    match binding {
        Binding::Bottleneck => "bottleneck",
        Binding::Time => "time",
        Binding::Capacity => "capacity",
        Binding::Discount => "discount",
        Binding::Free => "free",
    }
}

/// What holds a job, for people.
fn binding_in_words(part: &JobExplanation) -> String {
    let all_the_time = part.time >= TIME_ALL;
    let words = match part.binding {
        Binding::Bottleneck if all_the_time => {
            "sets the objective, and runs all the time: only faster workers help"
        }
        Binding::Bottleneck => {
            "sets the objective, and would use more time, on worker types that are given away"
        }
        Binding::Time => "runs all the time: only faster workers would help it",
        Binding::Capacity => "would use more time, on worker types that are given away",
        Binding::Discount => {
            let kept = part.discount.unwrap_or(1.0);
            let taken = 100.0 * (1.0 - kept);
            let had = part.time / kept;
            return format!(
                "the discount took {taken:.2} % of the {had:.4} of time it had, for what its presence costs the others"
            );
        }
        Binding::Free => "has time left that the objective does not ask for",
    };
    match part.fixed.as_ref().filter(|fixed| fixed.step > 1) {
        Some(fixed) => {
            format!("{words} (level {:.6}, fixed at step {} of {})", fixed.level, fixed.step, fixed.steps)
        }
        None => words.to_owned(),
    }
}

/// What more workers would do for the level at which water filling fixed a job.
fn fixed_in_words(question: &Question, fixed: &Fixed) -> String {
    let mut text =
        format!("  its level {:.6} was fixed at step {} of {}\n", fixed.level, fixed.step, fixed.steps);
    if shown(fixed.time_price) != 0.0 {
        let _ = writeln!(
            text,
            "  its time was all used: more of it would have raised the level by {:+.6} each",
            fixed.time_price
        );
    }
    for (name, more) in question.worker_types().zip(&fixed.one_more) {
        let more = shown(*more);
        let _ = if more == 0.0 {
            writeln!(text, "  one worker more of {name} changes nothing there")
        } else {
            writeln!(text, "  one worker more of {name} would have changed the level by {more:+.6}")
        };
    }
    text
}

fn price(price: Option<f64>) -> Cell {
    price.map_or(Cell::Empty, |price| Cell::Number(shown(price), 6))
}

/// A price as far as it is shown: rounding is no price, and 0 has no sign.
fn shown(price: f64) -> f64 {
    if price.abs() < 5e-7 { 0.0 } else { price }
}

/// A job's share in a sentence, and what one worker more of each type would bring; nothing of the latter without
/// prices.
fn job_in_words(question: &Question, explanation: &Explanation, job: JobIndex) -> String {
    let part = &explanation.jobs[job.index()];
    let mut text = format!("{}: {}\n", question.label(job), binding_in_words(part));
    if let Some(fixed) = part.fixed.as_ref().filter(|fixed| fixed.step > 1) {
        text.push_str(&fixed_in_words(question, fixed));
    }
    let (Some(objective), Some(price)) = (explanation.objective(), part.throughput_price) else {
        return text;
    };
    let demand = match part.binding {
        Binding::Bottleneck => {
            format!("  one step/s asked of it changes the objective by {:+.6}", shown(price))
        }
        _ => "  nothing that it is asked for changes the objective".to_owned(),
    };
    let _ = writeln!(text, "{demand} ({} {:.6})", sense(objective.sense), objective.value);
    for (name, kind) in question.worker_types().zip(&explanation.types) {
        let Some(more) = kind.one_more.map(shown) else { continue };
        let _ = if more == 0.0 {
            writeln!(text, "  one worker more of {name} changes nothing")
        } else {
            writeln!(text, "  one worker more of {name} changes the objective by {more:+.6}")
        };
    }
    text
}

fn job_table(question: &Question, explanation: &Explanation, jobs: &[JobIndex]) -> Table {
    let mut table = Table::new(["job", "time", "throughput", "binding", "throughput_price", "time_price"]);
    for job in jobs {
        let part = &explanation.jobs[job.index()];
        let throughput = explanation.decision.allocation.effective_throughput()[*job];
        table.push(vec![
            question.label(*job).to_string().into(),
            Cell::Number(part.time, 4),
            Cell::Number(throughput, 4),
            binding_name(part.binding).into(),
            price(part.throughput_price),
            price(part.time_price),
        ]);
    }
    table
}

fn in_words(question: &Question, explanation: &Explanation, jobs: &[JobIndex], asked: bool) -> String {
    let mut text = format!("{} decides by {}\n", question.policy.name(), explanation.reason);
    if let Some(report) = &explanation.decision.solve {
        let _ = writeln!(text, "strategy {}", allocate::strategy(report));
    }
    if let Some(objective) = explanation.objective() {
        let _ = writeln!(
            text,
            "{} {}, and no allocation beats {} (gap {:.1e})",
            sense(objective.sense),
            objective.value,
            objective.bound,
            objective.gap_relative
        );
    }
    let mut types = Table::new(["worker type", "used", "of", "one worker more changes the objective by"]);
    for (name, part) in question.worker_types().zip(&explanation.types) {
        let (used, workers) = (Cell::Number(part.workers_used, 2), Cell::Number(part.workers, 0));
        types.push(vec![name.into(), used, workers, price(part.one_more)]);
    }
    let _ = write!(text, "\n{}\n", types.aligned());
    let mut table = Table::new(["job", "time", "throughput", "price", "what holds it"]);
    for job in jobs {
        let part = &explanation.jobs[job.index()];
        let throughput = explanation.decision.allocation.effective_throughput()[*job];
        table.push(vec![
            question.label(*job).to_string().into(),
            Cell::Number(part.time, 4),
            Cell::Number(throughput, 4),
            price(part.throughput_price),
            binding_in_words(part).into(),
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

fn as_json(question: &Question, explanation: &Explanation, jobs: &[JobIndex]) -> Value {
    let types = question.worker_types().zip(&explanation.types).map(|(name, part)| {
        json!({"worker_type": name, "workers_used": part.workers_used, "workers": part.workers,
               "one_more": part.one_more})
    });
    let jobs = jobs.iter().map(|job| {
        let part = &explanation.jobs[job.index()];
        let fixed = part.fixed.as_ref().map(|fixed| {
            json!({"step": fixed.step, "steps": fixed.steps, "level": fixed.level, "one_more": fixed.one_more,
                   "throughput_price": fixed.throughput_price, "time_price": fixed.time_price})
        });
        json!({"id": question.label(*job), "time": part.time, "binding": binding_name(part.binding),
               "effective_throughput": explanation.decision.allocation.effective_throughput()[*job],
               "throughput_price": part.throughput_price, "time_price": part.time_price,
               "discount": part.discount, "fixed": fixed})
    });
    let objective = explanation.objective().map(|objective| {
        json!({"sense": sense(objective.sense), "value": objective.value, "bound": objective.bound,
               "gap_relative": objective.gap_relative})
    });
    let solve = explanation.decision.solve.as_ref().map(allocate::solve);
    json!({"policy": question.policy.name(), "reason": explanation.reason, "objective": objective, "solve": solve,
           "worker_types": types.collect::<Vec<_>>(), "jobs": jobs.collect::<Vec<_>>()})
}
