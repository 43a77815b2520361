//! `apportion jobs`, `why`, `next` and `cancel`: jobs of a running scheduler.

use clap::Args;
use serde_json::Value;

use super::answers::{Bound, Done, Jobs, Rounds};
use super::remote::{Remote, RemoteArguments};
use crate::Session;
use crate::exit::Failure;
use crate::output::{Cell, OutputFormat, Table};

/// Arguments of `jobs`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  apportion jobs
  apportion jobs --scheduler http://head:7070 --token-file token --format json")]
pub struct JobsArguments {
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Arguments of `why`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion why 3")]
pub struct WhyArguments {
    /// The job's number
    #[arg(value_name = "JOB", value_parser = number, allow_negative_numbers = true)]
    job: u64,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Arguments of `next`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion next")]
pub struct NextArguments {
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Arguments of `cancel`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion cancel 3")]
pub struct CancelArguments {
    /// The job's number
    #[arg(value_name = "JOB", value_parser = number, allow_negative_numbers = true)]
    job: u64,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// The number of a job on a command line.
pub(super) fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number of a job; `apportion jobs` lists them"))
}

/// A cell of a text in an answer.
pub(super) fn text(value: &Value) -> Cell {
    value.as_str().map_or(Cell::Empty, |text| Cell::Text(text.to_owned()))
}

/// A cell of a whole number in an answer.
pub(super) fn count(value: &Value) -> Cell {
    value.as_u64().map_or(Cell::Empty, Cell::Count)
}

/// The elements of a list in an answer.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A cell of names or numbers, one after the other.
pub(super) fn joined(values: &[Value]) -> Cell {
    let words: Vec<String> =
        values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
    if words.is_empty() { Cell::Empty } else { Cell::Text(words.join(" ")) }
}

/// Shows the outcome of a request, in the scheduler's words.
pub(super) fn done(answer: &Value, session: &Session) -> Result<(), Failure> {
    let text = answer["text"].as_str().unwrap_or_default();
    match session.output.format() {
        OutputFormat::Table => session.output.words(text),
        OutputFormat::Json | OutputFormat::Csv => session.output.answer(&Done { text }),
    }
}

/// Runs `jobs`.
///
/// # Errors
/// If there is no scheduler that answers.
pub(super) fn run(arguments: &JobsArguments, session: &Session) -> Result<(), Failure> {
    let jobs = Remote::new(&arguments.remote)?.get_noting("/v1/jobs", session)?;
    if session.output.format() == OutputFormat::Json {
        return session.output.answer(&Jobs { jobs: &jobs });
    }
    let columns = [
        "job", "name", "job_type", "workers", "state", "done_%", "on", "servers", "starts", "cost",
        "last_end",
    ];
    let mut table = Table::new(columns);
    for job in list(&jobs) {
        let (steps, total) = (job["steps"].as_f64(), job["total_steps"].as_f64());
        // The steps of a program that reported none are not known.
        let steps = steps.filter(|steps| *steps > 0.0 || job["state"] != "completed");
        let done = steps
            .zip(total)
            .map_or(Cell::Empty, |(steps, total)| Cell::Number(100.0 * (steps / total.max(1.0)).min(1.0), 1));
        table.push(vec![
            count(&job["job"]),
            text(&job["name"]),
            text(&job["job_type"]),
            count(&job["scale_factor"]),
            text(&job["state"]),
            done,
            text(&job["worker_type"]),
            joined(list(&job["servers"])),
            count(&job["starts"]),
            job["cost"].as_f64().map_or(Cell::Empty, |cost| Cell::Number(cost, 3)),
            text(&job["last_end"]),
        ]);
    }
    session.output.table(&table)
}

/// Runs `why`.
///
/// # Errors
/// If there is no scheduler that answers, or no such job.
pub(super) fn run_why(arguments: &WhyArguments, session: &Session) -> Result<(), Failure> {
    let why = Remote::new(&arguments.remote)?.get_noting(&format!("/v1/jobs/{}", arguments.job), session)?;
    if session.output.format() == OutputFormat::Json {
        return session.output.answer(&Bound { why: &why });
    }
    let columns = ["worker_type", "share", "priority", "received_s", "deficit_s", "up", "held_by"];
    let mut table = Table::new(columns);
    let number =
        |value: &Value, decimals| value.as_f64().map_or(Cell::Empty, |value| Cell::Number(value, decimals));
    // The largest number stands for a job that precedes all others.
    let priority = |value: &Value| match value.as_f64() {
        Some(f64::MAX..) => Cell::Text("first".to_owned()),
        _ => number(value, 2),
    };
    for kind in list(&why["worker_types"]) {
        table.push(vec![
            text(&kind["worker_type"]),
            number(&kind["share"], 3),
            priority(&kind["priority"]),
            number(&kind["received_s"], 1),
            number(&kind["deficit_s"], 1),
            count(&kind["n_up"]),
            joined(list(&kind["held_by"])),
        ]);
    }
    if session.output.format() == OutputFormat::Csv {
        return session.output.table(&table);
    }
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = why["name"].as_str().map_or(String::new(), |name| format!(" ({name})"));
    let (state, kind) = (word(&why["state"]), word(&why["job_type"]));
    let mut lines = vec![format!("job {}{name}, {kind}, is {state}.", why["job"])];
    lines.extend(list(&why["because"]).iter().map(word));
    if !table.rows().is_empty() {
        lines.push(String::new());
        lines.push(table.aligned());
    }
    session.output.words(&lines.join("\n"))
}

/// Runs `next`.
///
/// # Errors
/// If there is no scheduler that answers.
pub(super) fn run_next(arguments: &NextArguments, session: &Session) -> Result<(), Failure> {
    let next = Remote::new(&arguments.remote)?.get_noting("/v1/next", session)?;
    if session.output.format() == OutputFormat::Json {
        return session.output.answer(&Rounds { next: &next });
    }
    let mut table = Table::new(["job", "name", "worker_type", "workers", "beside", "is_there"]);
    for place in list(&next["places"]) {
        let worker = |pair: &Value| format!("{}:{}", pair[0].as_str().unwrap_or_default(), pair[1]);
        let workers: Vec<String> = list(&place["workers"]).iter().map(worker).collect();
        let is_there = if place["is_there"].as_bool() == Some(true) { "yes" } else { "no" };
        table.push(vec![
            count(&place["job"]),
            text(&place["name"]),
            text(&place["worker_type"]),
            workers.join(" ").into(),
            count(&place["beside"]),
            is_there.into(),
        ]);
    }
    if session.output.format() == OutputFormat::Csv {
        return session.output.table(&table);
    }
    let round = match next["ends_in_s"].as_f64() {
        None => "No round runs: there is no job, or no server that may be given one.".to_owned(),
        Some(ends) => {
            let decided =
                next["decides_in_s"].as_f64().map_or("these are the next one's places".to_owned(), |in_s| {
                    format!("the next one is decided in {:.1} s", in_s.max(0.0))
                });
            format!("The round ends in {:.1} s; {decided}.", ends.max(0.0))
        }
    };
    let without: Vec<String> = list(&next["without"]).iter().map(Value::to_string).collect();
    let without = if without.is_empty() {
        String::new()
    } else {
        format!("Without a place: job {}.\n", without.join(", "))
    };
    let places = if table.rows().is_empty() { String::new() } else { format!("\n{}", table.aligned()) };
    session.output.words(&format!("{round}\n{without}{places}"))
}

/// Runs `cancel`.
///
/// # Errors
/// If there is no scheduler that answers, or no such job.
pub(super) fn run_cancel(arguments: &CancelArguments, session: &Session) -> Result<(), Failure> {
    let answer = Remote::new(&arguments.remote)?.delete(&format!("/v1/jobs/{}", arguments.job))?;
    done(&answer, session)
}
