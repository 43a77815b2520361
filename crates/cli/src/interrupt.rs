//! The user's wish to stop: a flag that long commands look at between units of work.

#[cfg(unix)]
use std::fs;
use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
#[cfg(unix)]
use signal_hook::iterator::Signals;

use crate::diagnostics;
use crate::exit::{ExitStatus, Failure};
use apportion::solver::timing::Stopwatch;

/// Signals this close together are one request: `timeout` sends it to the process and again to its group.
const REPEATED: Duration = Duration::from_millis(300);

/// The time that a decision in progress has left after the first request.
const GRACE: Duration = Duration::from_secs(5);

/// Raised by Ctrl-C or a request to terminate. The first asks the command to finish what it holds and keep it;
/// the second ends it at once.
#[derive(Clone, Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    /// Raised a while after the other.
    overdue: Arc<AtomicBool>,
    /// Whether nothing is said when it is raised.
    is_hushed: Arc<AtomicBool>,
}

impl Interrupt {
    /// A flag that nobody has raised; [`install`](Self::install) ties it to the signals.
    pub fn new() -> Self {
        Self { raised: Arc::default(), overdue: Arc::default(), is_hushed: Arc::default() }
    }

    /// A flag that the first signal raises.
    pub fn install() -> Self {
        let interrupt = Self::new();
        let (raised, overdue) = (Arc::clone(&interrupt.raised), Arc::clone(&interrupt.overdue));
        let is_hushed = Arc::clone(&interrupt.is_hushed);
        let mut first: Option<Stopwatch> = None;
        let arrived = move || match first {
            None => {
                first = Some(Stopwatch::start());
                raised.store(true, Ordering::SeqCst);
                raise_later(&overdue);
                if !is_hushed.load(Ordering::SeqCst) {
                    diagnostics::print("stopping after what is in progress; once more to stop at once");
                }
            }
            Some(first) if first.elapsed() < REPEATED => {}
            Some(_) => process::exit(ExitStatus::Interrupted as i32),
        };
        if let Err(error) = on_signals(arrived) {
            diagnostics::print(&format!("note: an interrupt will stop at once: {error}"));
        }
        interrupt
    }

    /// Prints no message at the first signal from here on: the command's standard error is a log that programs read.
    pub fn hush(&self) {
        self.is_hushed.store(true, Ordering::SeqCst);
    }

    /// Has the user asked to stop?
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// The flag itself, for modules that know nothing of the command.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.raised)
    }

    /// A flag that is raised five seconds after the other: for what is in progress and would be lost if it were broken off.
    pub fn overdue(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.overdue)
    }

    /// Nothing, or the failure to end with if the user has asked to stop; `finished` says what is kept.
    ///
    /// # Errors
    /// [`Failure::Interrupted`], if the flag is raised.
    pub fn check(&self, finished: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.is_raised() { Err(Failure::Interrupted { message: finished() }) } else { Ok(()) }
    }
}

impl Default for Interrupt {
    fn default() -> Self {
        Self::new()
    }
}

/// Raises a flag after [`GRACE`]; at once if there is no thread to wait on.
fn raise_later(flag: &Arc<AtomicBool>) {
    let later = Arc::clone(flag);
    let wait = move || {
        thread::sleep(GRACE);
        later.store(true, Ordering::SeqCst);
    };
    if thread::Builder::new().name("grace".to_owned()).spawn(wait).is_err() {
        flag.store(true, Ordering::SeqCst);
    }
}

/// Calls this on every signal that asks to end, but those that were ignored when the program began: `nohup` and the
/// shell's `trap '' INT` go on to hold.
#[cfg(unix)]
fn on_signals(mut arrived: impl FnMut() + Send + 'static) -> io::Result<()> {
    let ignored = fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
    let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(wanted)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            arrived();
        }
    })?;
    Ok(())
}

#[cfg(not(unix))]
fn on_signals(_: impl FnMut() + Send + 'static) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The set of ignored signals, bit n - 1 for signal n, as Linux tells it of a process.
#[cfg(unix)]
fn ignored(status: &str) -> u64 {
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    digits.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_a_process_status() {
        assert_eq!(
            ignored("Name:\tapportion\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n"),
            0x1001
        );
        assert_eq!(ignored("Name:\tapportion\n"), 0);
    }
}
