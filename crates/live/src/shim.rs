//! The process that owns one rank, whatever becomes of the agent.
//!
//! An agent starts one for each rank: the program that it runs in has a subcommand that does nothing but [`run`]. It
//! leaves the agent's session, starts the rank's program in a process group of its own, and sees to it that the program
//! is asked to stop at the lease's end, or when the agent's orders say so, and that it is killed when it does not.
//!
//! **A program is asked to stop** by `control.json` in the folder named by `APPORTION_LEASE`, if it has written
//! `progress.json` there; else by SIGTERM to its process group. Whatever is left after the grace gets SIGKILL, and again
//! until nothing is left. What outlives the program itself gets SIGTERM at once, and SIGKILL after the grace.
//!
//! **Nothing is left** means: no child of the shim. The shim adopts its children's children when their parents end
//! (`PR_SET_CHILD_SUBREAPER`), so that a process which left the group or the session is waited for and killed, too.
//!
//! **If the shim itself is killed**, the kernel kills the program (`PR_SET_PDEATHSIG`), and the shim's parent kills all other
//! processes of the rank: its guard, which does nothing else, and which no end of the agent touches. If the guard is killed with the shim, an
//! agent does it, the next one if there is none: it finds the processes of the program's group, and those that have the rank's
//! `APPORTION_LEASE` in the environment with which they were started.
//!
//! A shim and its program end with their whole control group: a service manager must be told to end the
//! agent's own process only (`KillMode=process`).

mod guard;
mod launch;
mod signals;
mod stopping;
mod watch;

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use apportion::Seconds;
use rustix::process::{Pid, Signal, getpid, getsid, kill_process, set_child_subreaper, setsid};

pub use launch::VISIBLE;

use crate::clock;
use crate::files;
use crate::process::{Owned, boot_id};
use crate::protocol::End;
use crate::rank::{Ended, RankFolder};

/// The word before the folders of [`run_all`] on a command line.
pub const EACH: &str = "--each";

/// The interval at which a shim looks at its lease, its orders and its program.
const LOOK: Duration = Duration::from_millis(50);

/// Time for which a shim tries, on a full disk, to write how its rank ended, before it leaves that to the agent.
const END_TRIED: Seconds = Seconds::new(60.0);

/// Why a shim could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    /// The folder, or the system, refuses.
    #[error("{what}: {source}")]
    Io {
        /// The action that failed.
        what: String,
        /// The error.
        source: io::Error,
    },
    /// Another shim owns the rank.
    #[error("{0} has a shim already")]
    Owned(String),
    /// The step before the rank's program could not start it.
    #[error("it {0}")]
    NotStarted(String),
    /// The shim did not end well, as it has printed itself.
    #[error("the shim ended with {0}")]
    Ended(String),
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> ShimError {
    let what = what.into();
    move |source| ShimError::Io { what, source }
}

/// Owns the rank of a folder, until no process of it is left.
///
/// Must be called by a process that was started for it, on its main thread, and whose command line leads here: the shim
/// starts itself once more, by the same command line, as the process that becomes the program. SIGTERM and SIGUSR1 ask the
/// program to stop. The process that is called first is the guard, unless a Slurm job started it by [`run_all`]: it starts itself as
/// the shim.
///
/// # Errors
/// If the folder cannot be used, or another shim owns it. A program that could not be started is no error, but an [`End`].
pub fn run(folder: &Path) -> Result<(), ShimError> {
    let folder = RankFolder::at(folder.to_owned());
    match launch::shim_of_step() {
        Some(shim) => Err(ShimError::NotStarted(launch::become_program(&folder, shim).to_string())),
        None if guard::is_guarded() || signals::is_of_slurm() => own(&folder),
        None => guard::guard(),
    }
}

/// Starts a shim for each of the folders, and waits for their ends: the program of a Slurm job with several ranks. SIGTERM and
/// SIGUSR1 are passed on to the shims; if this process is killed, they kill their programs at once, since Slurm takes the job for
/// over then. If a shim was killed, its remaining processes are killed, and the end of its rank is written in its place.
///
/// Must be called on the main thread of a process whose command line is that of [`run`] once its last words, [`EACH`] and
/// the folders, are replaced by one of these.
///
/// # Errors
/// If a shim cannot be started; the others are asked to end.
pub fn run_all(folders: &[PathBuf]) -> Result<(), ShimError> {
    let told = signals::Told::listen().map_err(failed("listening to signals"))?;
    let command: Vec<_> = env::args_os().skip(1).collect();
    let own = command.len().saturating_sub(folders.len() + 1);
    let mut shims = Vec::new();
    let mut failure = None;
    for folder in folders {
        let mut shim = Command::new("/proc/self/exe");
        shim.args(&command[..own]).arg(folder).stdin(Stdio::null());
        shim.env(signals::PARENT, getpid().to_string());
        match shim.spawn() {
            Ok(shim) => shims.push((shim, RankFolder::at(folder.clone()))),
            Err(error) => failure = Some(failed(folder.display().to_string())(error)),
        }
    }
    let mut is_passed_on = false;
    while !shims.is_empty() {
        if (told.is_told() || failure.is_some()) && !is_passed_on {
            is_passed_on = true;
            for pid in shims.iter().filter_map(|(shim, _)| Pid::from_raw(i32::try_from(shim.id()).ok()?)) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        shims.retain_mut(|(shim, folder)| match shim.try_wait() {
            Ok(Some(status)) => !is_buried(folder, status),
            _ => true,
        });
        thread::sleep(LOOK);
    }
    failure.map_or(Ok(()), Err)
}

/// Ends a rank after the end of its shim process. True once no process of the rank is left. If the shim was killed, or could not
/// write the rank's end to its folder, the rank's processes are killed here and an end is written.
fn is_buried(folder: &RankFolder, status: ExitStatus) -> bool {
    if folder.read_end().is_some() {
        return true;
    }
    let Ok(Some(_lock)) = folder.try_lock() else { return true };
    if files::read::<Owned>(&folder.owned()).is_ok_and(|owned| !owned.kill_rest(folder.path())) {
        return false;
    }
    let end = match status.code() {
        Some(_) => End::Lost(
            "its shim could not write down how it ended; the Slurm job's output says why".to_owned(),
        ),
        None => End::Vanished,
    };
    // If it cannot be written, only Slurm's record of the job remains.
    let _ = folder.write_end(end, clock::node_now());
    true
}

fn own(folder: &RankFolder) -> Result<(), ShimError> {
    if let Err(error) = setsid()
        && getsid(None).ok() != Some(getpid())
    {
        return Err(failed("a session of its own")(error.into()));
    }
    set_child_subreaper(Some(getpid())).map_err(|error| failed("adopting processes")(error.into()))?;
    let lock = folder.try_lock().map_err(failed(folder.lock().display().to_string()))?;
    let Some(_lock) = lock else {
        return Err(ShimError::Owned(folder.path().display().to_string()));
    };
    if folder.end().exists() {
        // An agent that was started meanwhile has given this rank up.
        return Ok(());
    }
    let told = signals::Told::listen().map_err(failed("listening to signals"))?;
    let began = clock::node_now();
    let end = match launch::launch(folder, &told) {
        Ok(launched) => watch::Watch::new(folder, launched).until_over(&told),
        Err(why) => End::NotStarted(why),
    };
    write_end(folder, end, began)
}

fn write_end(folder: &RankFolder, end: End, began: Seconds) -> Result<(), ShimError> {
    let over = clock::node_now();
    let never_ran = matches!(end, End::NotStarted(_) | End::NotExecutable(_));
    let ran = if never_ran { Seconds::ZERO } else { over - began };
    let ended = Ended { end, at: over, ran: Some(ran), boot: boot_id() };
    loop {
        match folder.write_ended(&ended) {
            Err(error) if clock::node_now() > over + END_TRIED => {
                return Err(failed(folder.end().display().to_string())(error));
            }
            Err(_) => thread::sleep(LOOK),
            Ok(()) => return Ok(()),
        }
    }
}
