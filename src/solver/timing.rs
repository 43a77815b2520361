//! The wall clock, read here and nowhere else in the library.

use std::time::{Duration, Instant};

/// A stopwatch of wall time. No result may depend on it, limits on time and interrupts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    /// Starts counting now.
    #[expect(clippy::disallowed_methods, reason = "this module is where the wall clock is read")]
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Wall time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}
