//! Interrupts that end a solve from outside: a flag that the caller raises, or an instant on the wall clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::solver::timing::Stopwatch;

/// Conditions at which a decision is ended without an answer. Where none of them is met, the decision is the same as
/// without an interrupt; a limit, by contrast, may make an answer worse.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    flag: Option<Arc<AtomicBool>>,
    until: Option<(Stopwatch, Duration)>,
    decision: Option<Duration>,
}

impl Interrupt {
    /// The interrupt, raised also while this flag is true.
    #[must_use]
    pub fn with_flag(self, flag: Arc<AtomicBool>) -> Self {
        Self { flag: Some(flag), ..self }
    }

    /// The interrupt, raised also once the time `after` has passed since the stopwatch `since` was started.
    #[must_use]
    pub fn with_end(self, since: Stopwatch, after: Duration) -> Self {
        Self { until: Some((since, after)), ..self }
    }

    /// The interrupt, raised also in a decision that takes longer than this wall time; see
    /// [`of_decision`](Self::of_decision).
    #[must_use]
    pub fn with_decision(self, time: Duration) -> Self {
        Self { decision: Some(time), ..self }
    }

    /// The interrupt of a decision that begins now: its wall time is counted from here on.
    #[must_use]
    pub fn of_decision(&self) -> Self {
        let mut begun = self.clone();
        if let Some(time) = begun.decision.take()
            && begun.left().is_none_or(|left| time < left)
        {
            begun.until = Some((Stopwatch::start(), time));
        }
        begun
    }

    /// Whether work is to be broken off now.
    pub fn is_raised(&self) -> bool {
        let flagged = self.flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
        flagged || self.left().is_some_and(|left| left.is_zero())
    }

    /// Wall time that is left until the end of the interrupt, if it has one.
    pub fn left(&self) -> Option<Duration> {
        self.until.map(|(since, after)| after.saturating_sub(since.elapsed()))
    }
}

/// Equality of interrupts: the same flag and the same ends.
impl PartialEq for Interrupt {
    fn eq(&self, other: &Self) -> bool {
        let flag = |own: &Self| own.flag.as_ref().map(Arc::as_ptr);
        (flag(self), self.until, self.decision) == (flag(other), other.until, other.decision)
    }
}

impl Eq for Interrupt {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_end_counts() {
        let hour = Duration::from_hours(1);
        let never = Interrupt::default();
        assert!(!never.of_decision().is_raised() && never.left().is_none());
        let later = Interrupt::default().with_end(Stopwatch::start(), 2 * hour).with_decision(hour);
        assert!(!later.is_raised() && later.of_decision().left().is_some_and(|left| left <= hour));
        let sooner = Interrupt::default().with_end(Stopwatch::start(), Duration::ZERO).with_decision(hour);
        assert!(sooner.is_raised() && sooner.of_decision().is_raised());
        let flag = Arc::new(AtomicBool::new(false));
        let flagged = Interrupt::default().with_flag(Arc::clone(&flag)).of_decision();
        assert!(!flagged.is_raised());
        flag.store(true, Ordering::Relaxed);
        assert!(flagged.is_raised() && flagged == Interrupt::default().with_flag(flag));
    }
}
