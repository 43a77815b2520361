//! The clocks of a live scheduler and of a node: the only place that reads one.

#![expect(clippy::disallowed_methods, reason = "a live scheduler lives in time")]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use apportion::Seconds;
use rustix::time::{ClockId, clock_gettime};

/// The scheduler's clock. It goes on from start to start and never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Seconds,
    since: Instant,
}

impl Clock {
    /// A clock that shows `base` now.
    pub fn at(base: Seconds) -> Self {
        Self { base, since: Instant::now() }
    }

    /// A clock that continues that of an earlier start: it adds the time that the scheduler was away, unless the wall clock was set
    /// back meanwhile. `last` is what both clocks showed then, the wall clock in s since 1970.
    pub fn resumed(last: Option<(Seconds, f64)>) -> Self {
        let base = last.map_or(Seconds::ZERO, |(at, wall)| {
            let away = wall_s() - wall;
            at + Seconds::new(if away.is_finite() { away.max(0.0) } else { 0.0 })
        });
        Self::at(base)
    }

    /// A clock that continues that of an earlier start by the [node's clock](node_now), which showed `node` when it showed `at`;
    /// none if the node has been started since, so that the time in between is unknown.
    pub fn resumed_on_node(at: Seconds, node: Seconds) -> Option<Self> {
        let away = node_now() - node;
        (away.get() >= 0.0).then(|| Self::at(at + away))
    }

    /// The present instant on this clock.
    pub fn now(&self) -> Seconds {
        self.base + Seconds::new(self.since.elapsed().as_secs_f64())
    }
}

/// The wall clock, in s since 1970.
pub fn wall_s() -> f64 {
    // Before 1970, no time has passed since.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The node's clock, counted from the node's start: it cannot be set, and goes on while the node sleeps. All processes of
/// the node agree on it.
pub fn node_now() -> Seconds {
    let now = clock_gettime(ClockId::Boottime);
    Seconds::new(now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9)
}
