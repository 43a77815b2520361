//! The one place where a panic of a library becomes an error.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does this thread read or evaluate a model? A panic then is not the end of the program, and nothing to report.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// Does `work`; if it panics, says so.
///
/// tract trusts a model in places: it looks up names that a file may not have, and leaves kinds of numbers out by
/// `unimplemented!`. A file is input, so this must be an error. What `work` leaves behind half done is dropped with it.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = GUARDED.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    outcome.map_err(|cause| format!("tract broke off: {}", said(&*cause)))
}

fn said(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("it does not say why")
}
