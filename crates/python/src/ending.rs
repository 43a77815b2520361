//! End of the interpreter: by then no thread may be in Python code that the engine called.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use pyo3::prelude::*;

/// Whether the interpreter has begun to end.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Number of calls of Python code that have not returned.
static N_CALLS: AtomicUsize = AtomicUsize::new(0);
/// Flags that break off the work in progress.
static WORKS: Mutex<Vec<Arc<AtomicBool>>> = Mutex::new(Vec::new());

/// Number of times that running calls are checked before waiting ends.
const N_LOOKS: u32 = 2000;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A call of Python code by the engine. After its end the interpreter tears down threads that want its lock, and a thread
/// with the engine's frames below Python's would take down the process.
#[derive(Debug)]
pub(crate) struct Call(());

impl Call {
    /// Permission to call; none once the interpreter ends.
    pub(crate) fn begin() -> Option<Self> {
        N_CALLS.fetch_add(1, Ordering::SeqCst);
        let call = Self(());
        (!IS_ENDING.load(Ordering::SeqCst)).then_some(call)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        N_CALLS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Work that is broken off when the interpreter ends.
#[derive(Debug)]
pub(crate) struct Work<'a>(&'a Arc<AtomicBool>);

impl<'a> Work<'a> {
    /// Work that checks this flag.
    pub(crate) fn begin(interrupt: &'a Arc<AtomicBool>) -> Self {
        WORKS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(interrupt));
        Self(interrupt)
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let mut works = WORKS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = works.iter().position(|work| Arc::ptr_eq(work, self.0)) {
            works.swap_remove(place);
        }
    }
}

/// Breaks off all work, and waits for at most ten seconds until no thread is in Python code that the engine called.
#[pyfunction]
pub(crate) fn _end(py: Python<'_>) -> PyResult<()> {
    // The work is stopped first: a run whose call is refused then knows that it is broken off, and is not recorded as
    // failed.
    for work in WORKS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        work.store(true, Ordering::SeqCst);
    }
    IS_ENDING.store(true, Ordering::SeqCst);
    for _ in 0..N_LOOKS {
        if N_CALLS.load(Ordering::SeqCst) == 0 {
            break;
        }
        py.detach(|| sleep(LOOK_EVERY));
        py.check_signals()?;
    }
    Ok(())
}
