//! `apportion history`: the jobs of a scheduler as a normalized log.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::jobs::list;
use super::remote::{Remote, RemoteArguments};
use crate::Session;
use crate::exit::Failure;
use crate::file::{at, check_files, write_or_print};
use crate::output::{Answer, OutputFormat, text_of};
use apportion_logs::normalized::{Described, write_rows};
use apportion_logs::{Row, State};

/// Arguments of `history`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The class of a job is its type, so rules with `named_by_class: true` make the same jobs of the log (docs/traces.md).

Example:
  apportion history --out log.csv
  apportion trace show log.csv --from log")]
pub struct HistoryArguments {
    /// Where to write, `-` being standard output [default: -]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// The jobs of a scheduler, as `apportion history --format json` prints them: rows of a normalized log, and what jobs cost.
#[derive(Serialize, JsonSchema)]
pub(crate) struct History<'a> {
    /// All present and past jobs, in the order of their submission.
    jobs: Vec<PastJob<'a>>,
}

impl Answer for History<'_> {
    const KIND: &'static str = "history";
}

/// A row of a normalized log, and its cost.
#[derive(Serialize, JsonSchema)]
struct PastJob<'a> {
    #[serde(flatten)]
    row: Described<'a>,
    /// The cost of its time on workers; null without prices.
    #[schemars(extend("x-unit" = "$"))]
    cost: Option<f64>,
}

/// Writes all present and past jobs.
///
/// # Errors
/// If there is no scheduler that answers, or the file cannot be written.
pub(super) fn run(arguments: &HistoryArguments, session: &Session) -> Result<(), Failure> {
    check_files(&arguments.remote.files(), &[at("--out", arguments.out.as_deref())])?;
    let jobs = Remote::new(&arguments.remote)?.get_noting("/v1/jobs", session)?;
    let mut jobs: Vec<(Row, &Value)> = list(&jobs).iter().map(|job| (row(job), &job["cost"])).collect();
    let submitted = |row: &Row| row.submitted_s.unwrap_or(0.0);
    jobs.sort_by(|(one, _), (other, _)| submitted(one).total_cmp(&submitted(other)));
    if session.output.format() == OutputFormat::Json {
        let jobs = jobs.iter().map(|(row, cost)| PastJob { row: row.into(), cost: cost.as_f64() });
        let history = History { jobs: jobs.collect() };
        return write_or_print(session, arguments.out.as_deref(), &text_of(&history)?);
    }
    let mut text = Vec::new();
    write_rows(&mut text, jobs.into_iter().map(|(row, _)| row)).map_err(Failure::io("write the log"))?;
    write_or_print(session, arguments.out.as_deref(), &String::from_utf8_lossy(&text))
}

/// The row of a job.
fn row(job: &Value) -> Row {
    let text = |name: &str| job[name].as_str().filter(|text| !text.is_empty()).map(Into::into);
    let count = |name: &str| job[name].as_u64().and_then(|count| u32::try_from(count).ok());
    let mut row = Row::new(job["job"].to_string().into(), 0);
    row.name = text("name");
    row.user = text("user");
    row.group = text("owner");
    row.class = text("job_type");
    row.n_workers = count("scale_factor");
    row.n_attempts = count("starts");
    row.submitted_s = job["submitted_s"].as_f64();
    row.started_s = job["started_s"].as_f64();
    row.ended_s = job["ended_s"].as_f64();
    let received = job["received_s"].as_object();
    let on = || received.into_iter().flatten().filter_map(|(kind, ran)| Some((kind, ran.as_f64()?)));
    if row.n_attempts.is_some_and(|n| n > 0) {
        // An empty sum would be a negative zero.
        row.ran_s = Some(on().fold(0.0, |sum, (_, ran)| sum + ran));
    }
    let mut types = on().filter(|(_, ran)| *ran > 0.0).map(|(kind, _)| kind);
    // If a job ran on several types, its running time is of no single one.
    row.worker_type = types.next().filter(|_| types.next().is_none()).map(|kind| kind.as_str().into());
    row.state = match job["state"].as_str() {
        Some("completed") => State::Completed,
        Some("failed") => State::Failed,
        Some("cancelled") => State::Cancelled,
        Some("running" | "stopping" | "starting") => State::Running,
        Some("waiting" | "placed") => State::Pending,
        _ => State::Unknown,
    };
    row
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_that_ended_says_how_long_it_ran_and_on_what() {
        let job = json!({
            "job": 7, "name": "a, b", "user": "ann", "owner": null, "job_type": "A3C", "scale_factor": 2, "starts": 3,
            "submitted_s": 10.0, "started_s": 12.0, "ended_s": 500.0, "received_s": {"k80": 0.0, "v100": 300.5}, "state": "completed",
        });
        let mut text = Vec::new();
        write_rows(&mut text, [row(&job)]).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().nth(1), Some("7,\"a, b\",ann,,10,,12,500,300.5,2,,,v100,completed,3,A3C"));
        let waits =
            row(&json!({"job": 8, "scale_factor": 1, "starts": 0, "submitted_s": 11.0, "state": "placed"}));
        assert_eq!((waits.state, waits.ran_s, waits.worker_type), (State::Pending, None, None));
        let new = row(&json!({"job": 8, "starts": 1, "received_s": {}, "state": "starting"}));
        assert_eq!(new.ran_s.map(|ran| ran.to_string()).as_deref(), Some("0"));
        assert_eq!(Described::from(&new).attempts, Some(1));
        let both = row(
            &json!({"job": 9, "starts": 2, "received_s": {"k80": 5.0, "v100": 300.0}, "state": "failed"}),
        );
        assert_eq!((both.ran_s, both.worker_type), (Some(305.0), None));
    }
}
