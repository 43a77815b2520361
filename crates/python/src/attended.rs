//! Long work during which Python still receives Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;

use crate::ending::Work;

/// Interval between checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Stack of the working thread, bytes: deep enough for Python's own recursion through functions that call the engine again.
const STACK: usize = 64 << 20;

/// Runs `work` on a thread of its own, without Python's lock. At a signal that raises an exception, `interrupt` is set,
/// which the work must check, and the exception is raised once the work has ended.
///
/// # Errors
/// With the signal's exception, if the work panics, or if there are no more threads.
pub(crate) fn attended<T: Send>(
    py: Python<'_>,
    interrupt: &Arc<AtomicBool>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (send, mut receive) = channel();
    let _begun = Work::begin(interrupt);
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(STACK);
        let spawned = worker.spawn_scoped(scope, move || {
            // The receiver waits for this, and is gone only if it panicked.
            let _ = send.send(catch_unwind(AssertUnwindSafe(work)));
        });
        spawned.map_err(|error| PyOSError::new_err(format!("no thread could be started: {error}")))?;
        let mut raised = None;
        loop {
            let (back, got) = py.detach(move || {
                let got = receive.recv_timeout(LOOK_EVERY);
                (receive, got)
            });
            receive = back;
            match (got, raised.take()) {
                (Err(RecvTimeoutError::Timeout), None) => raised = py.check_signals().err(),
                (Err(RecvTimeoutError::Timeout), Some(error)) => raised = Some(error),
                (Ok(_), Some(error)) => return Err(error),
                (Ok(done), None) => {
                    return done.map_err(|_| PyRuntimeError::new_err("the engine panicked: this is a bug"));
                }
                (Err(RecvTimeoutError::Disconnected), _) => {
                    return Err(PyRuntimeError::new_err("the engine ended without an answer: this is a bug"));
                }
            }
            if raised.is_some() {
                interrupt.store(true, Ordering::SeqCst);
            }
        }
    })
}
