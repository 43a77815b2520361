//! The end of the interpreter: by then no thread may be in Python code that the engine called.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use pyo3::prelude::*;

/// Has the interpreter begun to end?
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// Calls of Python code that have not returned.
static N_CALLS: AtomicUsize = AtomicUsize::new(0);
/// What breaks off the work that is being done.
static WORKS: Mutex<Vec<Arc<AtomicBool>>> = Mutex::new(Vec::new());

/// How long calls are waited for: this many times.
const N_LOOKS: u32 = 2000;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A call of Python code by the engine. The interpreter tears down threads that want its lock after its end, and one with the
/// engine's frames below Python's would take the process with it.
#[derive(Debug)]
pub(crate) struct Call(());

impl Call {
    /// Leave to call; none once the interpreter ends.
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
    /// Work that looks at this flag.
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

/// Breaks off all work, and waits until no thread is in Python code that the engine called: ten seconds at most.
#[pyfunction]
pub(crate) fn _end(py: Python<'_>) -> PyResult<()> {
    // First the work: a run whose call is refused knows by then that it is broken off, and is not recorded as failed.
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
