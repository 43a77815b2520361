//! `apportion agent`: a server of a scheduler on another machine, until it is asked to end.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::remote::RemoteArguments;
use crate::Session;
use crate::conditions::time;
use crate::diagnostics;
use crate::exit::Failure;
use crate::file::check_folder;
use apportion::units::Seconds;
use apportion_live::agent::{self, Home, ProcessesError, Server};
use apportion_live::network::{HttpLink, News};
use apportion_live::protocol::{ServerFault, check_server};
use apportion_live::shim::VISIBLE;

/// The file with this machine's name.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// The interval between reports until the scheduler has stated one.
const FIRST_BEAT: Duration = Duration::from_secs(1);

/// The longest beat: a server that is not heard of for longer gets no jobs.
const BEAT_MAX: Duration = Duration::from_mins(10);

/// Arguments of `agent`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  apportion agent --scheduler https://head:7070 --token-file agent.token --worker-type TYPE --workers 4
  apportion agent --worker-type TYPE --workers 2 --name node-7 --state /var/lib/apportion-agent --checkpoints /shared/checkpoints

It runs the jobs' programs as you. It ends at Ctrl-C or SIGTERM; jobs go on, and a later start with the same `--state` takes
them over. See docs/live.md.")]
pub struct AgentArguments {
    /// The type of this server's workers, by its name in the scheduler's throughputs
    #[arg(long, value_name = "TYPE")]
    worker_type: String,
    /// Number of its workers
    #[arg(long, value_name = "N")]
    workers: u32,
    /// The server's name, which no other server has; the host's where not given
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The folder for the agent's own records; made where there is none
    #[arg(long, value_name = "DIR", default_value = "apportion-agent")]
    state: PathBuf,
    /// The folder for jobs' checkpoints, the same on all servers; `checkpoints` in `--state` where not given
    #[arg(long, value_name = "DIR")]
    checkpoints: Option<PathBuf>,
    /// The interval between reports; the scheduler's where not given
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    beat: Option<Seconds>,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Runs the command until it is asked to end.
///
/// # Errors
/// If an argument is at fault, the scheduler refuses the token at the start, or the folder is another agent's.
pub(super) fn run(arguments: &AgentArguments, session: &Session) -> Result<(), Failure> {
    let access = arguments.remote.access()?;
    let server = server(arguments)?;
    let state = &arguments.state;
    let checkpoints = arguments.checkpoints.clone().unwrap_or_else(|| state.join("checkpoints"));
    for (what, folder) in [("--state", state), ("--checkpoints", &checkpoints)] {
        check_folder(what, Some(folder))?;
    }
    let home = Home::new(state, &checkpoints);
    let stop = session.interrupt.flag();
    let (quiet, url) = (session.quiet, access.url().to_owned());
    let workers =
        if server.n_workers == 1 { "1 worker".to_owned() } else { format!("{} workers", server.n_workers) };
    let about = format!("{} with {workers} of {}", server.name, server.worker_type);
    let told = move |news: &News| {
        let text = match news {
            News::Heeded => format!("the scheduler at {url} takes the reports of {about}"),
            News::Refused(why) => format!("warning: the scheduler at {url} does not take this server: {why}"),
            News::Disk(Some(why)) => {
                format!("warning: {why}: no job is started here until there is room; what runs goes on")
            }
            News::Disk(None) => "the disk has room again: jobs are started".to_owned(),
            News::Unreached(why) => {
                format!("warning: {why}; jobs go on until their leases end, and it is tried again")
            }
        };
        if !quiet {
            diagnostics::print(&text);
        }
    };
    let no_threads = Failure::io("start the threads that talk to the scheduler");
    let mut link = HttpLink::start(access, &server.name, stop.clone(), told).map_err(no_threads)?;
    let beat = arguments.beat.map(beat).transpose()?;
    if let Some(beat) = beat {
        link.set_beat(beat);
    }
    let ended = agent::run(server, home, &mut link, beat.unwrap_or(FIRST_BEAT), &stop);
    ended.map_err(|error| match error {
        ProcessesError::Io { path, source } => Failure::Io { action: format!("use {path}"), source },
        error @ ProcessesError::Taken(_) => {
            Failure::usage(error.to_string(), Some("`--state DIR` names another folder".to_owned()))
        }
    })?;
    if let Some(why) = link.denied() {
        let help = "`--token-file FILE` names the file with the token whose digest is in the scheduler's file with `agent` behind \
                    it, and where names follow that, this server's";
        return Err(Failure::usage(why, Some(help.to_owned())));
    }
    session.note("ended; jobs go on until their leases end, and a later agent takes them over");
    Ok(())
}

fn beat(beat: Seconds) -> Result<Duration, Failure> {
    let is_fit = |beat: &Duration| (Duration::from_millis(10)..=BEAT_MAX).contains(beat);
    Duration::try_from_secs_f64(beat.get()).ok().filter(is_fit).ok_or_else(|| {
        let help =
            "leave it out: the scheduler says how often it wants to hear of the server, by its --silence";
        let message = format!("--beat is {beat}, expected from 0.01 s to {} s", BEAT_MAX.as_secs());
        Failure::usage(message, Some(help.to_owned()))
    })
}

fn server(arguments: &AgentArguments) -> Result<Server, Failure> {
    let (worker_type, n_workers) = (arguments.worker_type.clone(), arguments.workers);
    let name = arguments.name.clone().map_or_else(host_name, Ok)?;
    check_server(&name, &worker_type, n_workers).map_err(|fault| {
        let flag = match fault {
            ServerFault::WorkerType => "--worker-type",
            ServerFault::Workers(_) => "--workers",
            _ => "--name",
        };
        Failure::usage(format!("{flag}: {fault}"), None)
    })?;
    check_visible(n_workers)?;
    Ok(Server { name, worker_type, n_workers })
}

/// Refuses to offer more workers than this process may use itself: a job on one of the others would use another's worker.
///
/// # Errors
/// If the variable names fewer.
#[expect(clippy::disallowed_methods, reason = "what this process may use is in its environment")]
pub(super) fn check_visible(n_workers: u32) -> Result<(), Failure> {
    let Some(given) = env::var(VISIBLE).ok().filter(|given| !given.trim().is_empty()) else { return Ok(()) };
    let n_given = given.split(',').filter(|name| !name.trim().is_empty()).count();
    if n_given >= n_workers as usize {
        return Ok(());
    }
    let message =
        format!("{VISIBLE} is {given}: that is {n_given} of the {n_workers} workers of this server");
    Err(Failure::usage(message, Some("offer no more workers than it names, or unset it".to_owned())))
}

fn host_name() -> Result<String, Failure> {
    let name = fs::read_to_string(HOST_NAME).map_err(|error| {
        let help = "`--name NAME` names the server";
        let message = format!("the host's name is not known ({HOST_NAME}: {error})");
        Failure::usage(message, Some(help.to_owned()))
    })?;
    Ok(name.trim().to_owned())
}
