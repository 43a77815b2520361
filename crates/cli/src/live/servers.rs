//! `apportion servers`, `drain`, `resume` and `remove`: servers of a running scheduler.

use clap::Args;
use serde_json::{Value, json};

use super::answers::Servers;
use super::jobs::{count, done, list, text};
use super::remote::{Remote, RemoteArguments};
use crate::Session;
use crate::exit::Failure;
use crate::output::{Cell, OutputFormat, Table};
use apportion_live::network::escaped;

/// Arguments of `servers`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion servers")]
pub struct ServersArguments {
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Arguments of `drain`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion drain node-7 --reason \"a fan is broken\"")]
pub struct DrainArguments {
    /// The server's name
    #[arg(value_name = "SERVER")]
    server: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Arguments of `resume`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion resume node-7")]
pub struct ResumeArguments {
    /// The server's name
    #[arg(value_name = "SERVER")]
    server: String,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Arguments of `remove`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion remove node-7")]
pub struct RemoveArguments {
    /// The server's name
    #[arg(value_name = "SERVER")]
    server: String,
    /// Its machine is off: no lease there is waited for. On a machine that runs, its jobs would run twice
    #[arg(long)]
    off: bool,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Runs `servers`.
///
/// # Errors
/// If there is no scheduler that answers.
pub(super) fn run(arguments: &ServersArguments, session: &Session) -> Result<(), Failure> {
    let servers = Remote::new(&arguments.remote)?.get_noting("/v1/servers", session)?;
    if session.output.format() == OutputFormat::Json {
        return session.output.answer(&Servers { servers: &servers });
    }
    let mut table =
        Table::new(["server", "worker_type", "workers", "state", "heard_s_ago", "jobs", "drained"]);
    for server in list(&servers) {
        let state = match (server["is_reachable"].as_bool(), server["drained"].is_null()) {
            (Some(true), true) if server["n_offered"] == 0 => "closed",
            (Some(true), true) if !server["disk"].is_null() => "full",
            (Some(true), true) => "up",
            (Some(true), false) => "drained",
            _ if server["is_leaving"] == true => "leaving",
            _ => "silent",
        };
        let reasons = [&server["drained"], &server["disk"], &server["closed"]];
        let jobs = |jobs: &Value| -> String {
            let jobs: Vec<String> = list(jobs).iter().map(Value::to_string).collect();
            if jobs.is_empty() { "-".to_owned() } else { jobs.join("+") }
        };
        let jobs: Vec<String> = list(&server["jobs"]).iter().map(jobs).collect();
        table.push(vec![
            text(&server["server"]),
            text(&server["worker_type"]),
            count(&server["n_workers"]),
            state.into(),
            server["heard_s_ago"].as_f64().map_or(Cell::Empty, |ago| Cell::Number(ago, 1)),
            jobs.join(" ").into(),
            text(reasons.into_iter().find(|reason| !reason.is_null()).unwrap_or(&Value::Null)),
        ]);
    }
    session.output.table(&table)
}

/// Runs `drain`.
///
/// # Errors
/// If there is no scheduler that answers, or no such server.
pub(super) fn run_drain(arguments: &DrainArguments, session: &Session) -> Result<(), Failure> {
    let path = format!("/v1/servers/{}/drain", escaped(&arguments.server));
    let answer = Remote::new(&arguments.remote)?.post(&path, &json!({"reason": arguments.reason}))?;
    done(&answer, session)
}

/// Runs `resume`.
///
/// # Errors
/// If there is no scheduler that answers, or no such server.
pub(super) fn run_resume(arguments: &ResumeArguments, session: &Session) -> Result<(), Failure> {
    let path = format!("/v1/servers/{}/resume", escaped(&arguments.server));
    let answer = Remote::new(&arguments.remote)?.post(&path, &json!({}))?;
    done(&answer, session)
}

/// Runs `remove`.
///
/// # Errors
/// If there is no scheduler that answers, no such server, or it is heard of.
pub(super) fn run_remove(arguments: &RemoveArguments, session: &Session) -> Result<(), Failure> {
    let path = format!("/v1/servers/{}/remove", escaped(&arguments.server));
    let answer = Remote::new(&arguments.remote)?.post(&path, &json!({"is_off": arguments.off}))?;
    done(&answer, session)
}
