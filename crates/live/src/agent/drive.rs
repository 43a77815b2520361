//! The exchange of documents between an agent and a scheduler, at every beat and whenever something changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use apportion::Seconds;

use crate::agent::{Home, Processes, ProcessesError, Server};
use crate::clock;
use crate::protocol::{Orders, Report};

/// The longest time between two looks at an agent's ranks.
const LOOK: Duration = Duration::from_millis(100);

/// Why a document could not be sent, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LinkError(pub String);

/// A way to a scheduler. It may lose, repeat and delay documents, and be down for any time.
pub trait Link {
    /// Sends a report.
    ///
    /// # Errors
    /// If it was surely not sent. The agent sends another one later.
    fn send(&mut self, report: &Report) -> Result<(), LinkError>;

    /// Orders that have come, or that come within this time.
    fn receive(&mut self, wait: Duration) -> Option<Orders>;

    /// The interval at which the scheduler wants reports; none if it has not stated one.
    fn beat(&self) -> Option<Duration> {
        None
    }

    /// Tells the link that the agent's disk is full, and why nothing is started; or by none that there is room again.
    fn note_disk(&mut self, full: Option<&str>) {
        let _ = full;
    }
}

/// Runs a server's agent until `stop`, with a report at every `beat`, or at the link's beat. Its ranks go on afterwards, until
/// their leases end or another agent takes over.
///
/// # Errors
/// If it cannot begin. Later, no fault of the link or the ranks ends it.
pub fn run(
    server: Server,
    home: Home,
    link: &mut impl Link,
    beat: Duration,
    stop: &AtomicBool,
) -> Result<(), ProcessesError> {
    let mut processes = Processes::open(server, home)?;
    let mut last = None;
    let mut has_changed = false;
    while !stop.load(Ordering::Relaxed) {
        has_changed |= processes.look();
        if processes.look_at_disk() {
            link.note_disk(processes.full_disk());
            has_changed = true;
        }
        let beat = link.beat().unwrap_or(beat);
        let is_due = |last: Seconds| clock::node_now() >= last + Seconds::new(beat.as_secs_f64());
        if has_changed || last.is_none_or(is_due) {
            // A report that was not sent is made good by the next one.
            let _ = link.send(&processes.report());
            has_changed = false;
            last = Some(clock::node_now());
        }
        if let Some(orders) = receive(link, beat.min(LOOK)) {
            has_changed |= processes.take(&orders);
        }
    }
    Ok(())
}

/// Orders that come within this time. A link that is down may return at once: the rest of the time is waited for all the same.
fn receive(link: &mut impl Link, wait: Duration) -> Option<Orders> {
    let until = clock::node_now() + Seconds::new(wait.as_secs_f64());
    let orders = link.receive(wait);
    let left = (until - clock::node_now()).get();
    if orders.is_none() && left > 0.0 {
        thread::sleep(Duration::from_secs_f64(left.min(wait.as_secs_f64())));
    }
    orders
}
