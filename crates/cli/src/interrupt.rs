//! The user's request to stop: a flag that long commands look at between units of work.

#[cfg(unix)]
use std::fs;
use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
#[cfg(unix)]
use signal_hook::iterator::Signals;

use crate::diagnostics;
use crate::exit::{ExitStatus, Failure};
use apportion::solver::timing::Stopwatch;

/// The span within which signals are one request: `timeout` sends it to the process and again to its group.
const REPEATED: Duration = Duration::from_millis(300);

/// The time that a decision in progress has after the first request.
const GRACE: Duration = Duration::from_secs(5);

/// The time after a request to terminate at which the command is ended: batch systems send no second request.
const LAST: Duration = Duration::from_secs(10);

/// The effect of a request to terminate, by the work that the command holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Terminated {
    /// The command finishes its work in progress, and is ended after [`LAST`].
    Soon,
    /// The command ends by itself, however long that takes: it has to tell other processes.
    ByItself,
    /// The command is ended at once: finished work is kept, and work in progress may take hours.
    AtOnce,
}

impl Terminated {
    fn of(number: u8) -> Self {
        [Self::Soon, Self::ByItself, Self::AtOnce]
            .into_iter()
            .find(|one| *one as u8 == number)
            .unwrap_or(Self::Soon)
    }
}

/// A flag that Ctrl-C or a request to terminate raises. The first Ctrl-C asks the command to finish its work in progress and keep
/// it; the second ends it at once. After a request to terminate, which batch systems and `timeout` send once, it ends at once or
/// within ten seconds.
#[derive(Clone, Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    /// A second flag, raised a while after the first.
    overdue: Arc<AtomicBool>,
    /// Whether no message is printed when it is raised.
    is_hushed: Arc<AtomicBool>,
    /// The effect of a request to terminate, as the number of a [`Terminated`].
    terminated: Arc<AtomicU8>,
}

impl Interrupt {
    /// A flag that is not raised; [`install`](Self::install) ties it to the signals.
    pub fn new() -> Self {
        let (raised, overdue, is_hushed) = (Arc::default(), Arc::default(), Arc::default());
        Self { raised, overdue, is_hushed, terminated: Arc::new(AtomicU8::new(Terminated::Soon as u8)) }
    }

    /// A flag that the first signal raises.
    pub fn install() -> Self {
        let interrupt = Self::new();
        let (raised, overdue) = (Arc::clone(&interrupt.raised), Arc::clone(&interrupt.overdue));
        let (is_hushed, terminated) = (Arc::clone(&interrupt.is_hushed), Arc::clone(&interrupt.terminated));
        let mut first: Option<Stopwatch> = None;
        let arrived = move |is_key: bool| {
            let terminated = Terminated::of(terminated.load(Ordering::SeqCst));
            let say = |words: &str| {
                if !is_hushed.load(Ordering::SeqCst) {
                    diagnostics::print(words);
                }
            };
            match first {
                _ if !is_key && terminated == Terminated::AtOnce => {
                    say("stopped at once: what is finished is kept, and the same command goes on from there");
                    end();
                }
                None => {
                    first = Some(Stopwatch::start());
                    raised.store(true, Ordering::SeqCst);
                    after(GRACE, {
                        let overdue = Arc::clone(&overdue);
                        move || overdue.store(true, Ordering::SeqCst)
                    });
                    if !is_key && terminated == Terminated::Soon {
                        say("stopping: what is in progress has ten seconds");
                        after(LAST, end);
                    } else {
                        say("stopping after what is in progress; once more to stop at once");
                    }
                }
                Some(first) if first.elapsed() < REPEATED => {}
                Some(_) => end(),
            }
        };
        if let Err(error) = on_signals(arrived) {
            diagnostics::print(&format!("note: an interrupt will stop at once: {error}"));
        }
        interrupt
    }

    /// Makes a request to terminate end the command at once from here on: finished work is kept.
    pub fn end_at_once_if_terminated(&self) {
        self.terminated.store(Terminated::AtOnce as u8, Ordering::SeqCst);
    }

    /// Makes a request to terminate equal to the first Ctrl-C from here on: the command ends by itself, however long that takes.
    pub fn end_by_itself_if_terminated(&self) {
        self.terminated.store(Terminated::ByItself as u8, Ordering::SeqCst);
    }

    /// Prints no message at the first signal from here on: the command's standard error is a log that programs read.
    pub fn hush(&self) {
        self.is_hushed.store(true, Ordering::SeqCst);
    }

    /// Whether the user has asked to stop.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// The flag itself, for modules that do not know the command.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.raised)
    }

    /// A flag that is raised five seconds after the other: for work in progress that would be lost if it were broken off.
    pub fn overdue(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.overdue)
    }

    /// The failure to end with, if the user has asked to stop; `finished` describes the work that is kept.
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

/// Makes writes to a file beyond the size limit (`ulimit -f`) fail, like writes to a full disk, in place of ending the command.
///
/// # Errors
/// If the signal cannot be caught.
pub fn heed_limits_of_files() -> io::Result<()> {
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
    Ok(())
}

/// Ends the program with the exit code of an interrupt.
#[expect(clippy::exit, reason = "what is in progress is given up on purpose")]
fn end() {
    process::exit(ExitStatus::Interrupted as i32);
}

/// Calls `act` after a while; at once if there is no thread to wait on.
fn after(time: Duration, act: impl Fn() + Clone + Send + 'static) {
    let later = act.clone();
    let wait = move || {
        thread::sleep(time);
        later();
    };
    if thread::Builder::new().name("grace".to_owned()).spawn(wait).is_err() {
        act();
    }
}

/// Calls `arrived` on every signal that asks to end, with whether it is Ctrl-C. Signals that were ignored when the program began
/// stay ignored: `nohup` and the shell's `trap '' INT` go on to hold.
#[cfg(unix)]
fn on_signals(mut arrived: impl FnMut(bool) + Send + 'static) -> io::Result<()> {
    let ignored = fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
    let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(wanted)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            arrived(signal == SIGINT);
        }
    })?;
    Ok(())
}

#[cfg(not(unix))]
fn on_signals(_: impl FnMut(bool) + Send + 'static) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The set of ignored signals in a process's status, bit n - 1 for signal n.
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
