//! The scheduler of real servers, and the commands that talk to it.

mod answers;
mod prices;
mod remote;
mod events;
mod jobs;
mod history;
mod when;
mod agent;
mod log;
mod begin;
mod local;
mod demo;
mod comment;
mod front_door;
mod sbatch;
mod serve;
mod servers;
mod shadow;
mod shared;
mod slurm;
mod submit;
mod times;

use std::path::PathBuf;
use std::process::ExitCode;

use apportion_live::{shim, trainer};
use clap::Subcommand;

use crate::Session;
use crate::diagnostics;
use crate::exit::{ExitStatus, Failure};
pub(super) use answers::{Bound, Done, Jobs, Rounds, Servers, Shadowed, Submitted};
pub(super) use history::History;
pub(super) use when::When;

/// The commands around a live scheduler.
#[derive(Debug, Subcommand)]
pub enum LiveCommand {
    /// Schedule jobs on real servers, round by round
    Serve(Box<serve::ServeArguments>),
    /// Run jobs of a scheduler on this server
    Agent(agent::AgentArguments),
    /// Submit a job to a running scheduler
    Submit(Box<submit::SubmitArguments>),
    /// List the jobs of a running scheduler
    Jobs(jobs::JobsArguments),
    /// Write the jobs of a scheduler, including finished ones, as a normalized log
    History(history::HistoryArguments),
    /// Show why a job of a running scheduler waits, or runs as it does
    Why(jobs::WhyArguments),
    /// Forecast when a job of a running scheduler starts and ends
    When(when::WhenArguments),
    /// Show the places of jobs in a running scheduler's round and in the next one
    Next(jobs::NextArguments),
    /// Stop a job of a running scheduler, and never start it again
    Cancel(jobs::CancelArguments),
    /// Write the event log of a running scheduler, as `report` reads it
    Events(events::EventsArguments),
    /// List the servers of a running scheduler
    Servers(servers::ServersArguments),
    /// Give a server no new job
    Drain(servers::DrainArguments),
    /// Give a server jobs again
    Resume(servers::ResumeArguments),
    /// Remove a server that is gone for good, so that another can take its place
    Remove(servers::RemoveArguments),
    /// Show what a policy beside another scheduler would have done (`serve --shadow`)
    Shadow(shadow::ShadowArguments),
    /// Own the ranks of a job, as agents and Slurm start it
    #[command(hide = true)]
    Shim {
        /// Start a shim for each of the folders
        #[arg(long)]
        each: bool,
        /// The rank's folder, or several
        #[arg(required = true)]
        folders: Vec<PathBuf>,
    },
    /// Pretend to train, as the demo's jobs do
    #[command(hide = true)]
    Trainer {
        /// Its own flags
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// Runs a command that agents and jobs start, and returns the exit code of its own contract; none if the command is for people.
pub(super) fn rank(command: &LiveCommand) -> Option<ExitCode> {
    let done = match command {
        LiveCommand::Shim { each, folders } => {
            let owned = match folders.as_slice() {
                [folder] if !each => shim::run(folder),
                folders => shim::run_all(folders),
            };
            owned.map(|()| 0).map_err(|error| error.to_string())
        }
        LiveCommand::Trainer { arguments } => trainer::run(arguments).map_err(|error| error.to_string()),
        _ => return None,
    };
    Some(done.map_or_else(
        |error| {
            diagnostics::print(&format!("error: {error}"));
            ExitStatus::Bug.into()
        },
        ExitCode::from,
    ))
}

/// Runs a command for people.
///
/// # Errors
/// If an argument is at fault, or there is no scheduler that answers.
pub(super) fn run(command: &LiveCommand, session: &Session) -> Result<(), Failure> {
    match command {
        LiveCommand::Serve(arguments) => serve::run(arguments, session),
        LiveCommand::Agent(arguments) => agent::run(arguments, session),
        LiveCommand::Submit(arguments) => submit::run(arguments, session),
        LiveCommand::Jobs(arguments) => jobs::run(arguments, session),
        LiveCommand::History(arguments) => history::run(arguments, session),
        LiveCommand::Why(arguments) => jobs::run_why(arguments, session),
        LiveCommand::When(arguments) => when::run(arguments, session),
        LiveCommand::Next(arguments) => jobs::run_next(arguments, session),
        LiveCommand::Cancel(arguments) => jobs::run_cancel(arguments, session),
        LiveCommand::Events(arguments) => events::run(arguments, session),
        LiveCommand::Servers(arguments) => servers::run(arguments, session),
        LiveCommand::Drain(arguments) => servers::run_drain(arguments, session),
        LiveCommand::Resume(arguments) => servers::run_resume(arguments, session),
        LiveCommand::Remove(arguments) => servers::run_remove(arguments, session),
        LiveCommand::Shadow(arguments) => shadow::show(arguments, session),
        LiveCommand::Shim { .. } | LiveCommand::Trainer { .. } => {
            Err(Failure::Bug { message: "a rank is no command for people".to_owned() })
        }
    }
}
