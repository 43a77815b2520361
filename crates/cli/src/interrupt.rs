//! The user's wish to stop: a flag that long commands look at between units of work.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::diagnostics;
use crate::exit::{ExitStatus, Failure};
use apportion::solver::timing::Stopwatch;

/// Signals this close together are one request: `timeout` sends it to the process and again to its group.
const REPEATED: Duration = Duration::from_millis(300);

/// Raised by Ctrl-C or a request to terminate. The first asks the command to finish what it holds and keep it;
/// the second ends it at once.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that nobody has raised; [`install`](Self::install) ties it to the signals.
    pub fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    /// A flag that the first signal raises.
    pub fn install() -> Self {
        let interrupt = Self::new();
        let raised = Arc::clone(&interrupt.0);
        let mut first: Option<Stopwatch> = None;
        let installed = ctrlc::set_handler(move || match first {
            None => {
                first = Some(Stopwatch::start());
                raised.store(true, Ordering::SeqCst);
                diagnostics::print("stopping after what is in progress; once more to stop at once");
            }
            Some(first) if first.elapsed() < REPEATED => {}
            Some(_) => process::exit(ExitStatus::Interrupted as i32),
        });
        if let Err(error) = installed {
            diagnostics::print(&format!("note: an interrupt will stop at once: {error}"));
        }
        interrupt
    }

    /// Has the user asked to stop?
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The flag itself, for modules that know nothing of the command.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
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
