//! The guard that turns a panic of tract into an error, the only such place.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread reads or evaluates an ONNX model. A panic during that becomes an error and is not reported.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// The result of `work`, or an error with the message if it panics.
///
/// tract trusts a model in places: it looks up names that a file may not have, and has `unimplemented!` for some kinds of numbers.
/// A file is input, so this must be an error. Anything that `work` leaves half done is dropped with it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn onnx_panics_become_errors_and_are_known_to_be_guarded() {
        assert!(!is_guarded());
        let broken = guarded(|| -> usize {
            [0; 2].iter().map(|_| is_guarded()).position(|guarded| !guarded).expect("two")
        });
        assert_eq!(broken, Err("tract broke off: two".to_owned()));
        assert!(!is_guarded());
    }
}
