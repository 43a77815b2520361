//! A server that has joined, and the messages between it and the scheduler.

use std::collections::VecDeque;

use apportion::Seconds;

use super::record::ServerRecord;
use crate::protocol::{JobNumber, LeaseOrder, ReportId, Run};

/// The orders that a server was last sent, with its leases' ends as instants.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    pub(super) leases: Vec<(LeaseOrder, Seconds)>,
    pub(super) forget: Vec<Run>,
}

/// A server, as the scheduler knows it.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) record: ServerRecord,
    /// The instant since when this start of the scheduler has known it.
    pub(super) since: Seconds,
    /// The instant of its last report; none before the first since the scheduler's start.
    pub(super) heard: Option<Seconds>,
    /// The instant of its last report, kept also while it counts as silent.
    pub(super) last_heard: Option<Seconds>,
    pub(super) last: ReportId,
    /// The epoch of its orders: the scheduler's own, or a later one if it has had orders of a later one.
    pub(super) epoch: u64,
    /// Number of the last orders.
    pub(super) n_orders: u64,
    /// The orders that it was last sent; none if they have to be sent again.
    pub(super) told: Option<Told>,
    /// Runs that it reported as ended and that are over: it may forget them.
    pub(super) forget: Vec<Run>,
    /// The last different jobs that failed on it in a row, and on no other server.
    pub(super) failed: VecDeque<JobNumber>,
    /// Whether it is drained because of these.
    pub(super) is_suspected: bool,
    /// Workers that are up, as the mechanism was told: `[workers]`.
    pub(super) up: Vec<bool>,
    /// The number of its workers, as its agent reports.
    pub(super) n_workers: u32,
    /// Whether it can start nothing now, as its agent reports.
    pub(super) is_frozen: bool,
    /// Why it can start nothing more, its disk being full, as its agent reports; none if there is room.
    pub(super) disk: Option<String>,
    /// Why it offers no worker, as its agent reports; none if it does.
    pub(super) closed: Option<String>,
    /// Runs that it has and that the scheduler does not know: their workers are not free until they have ended.
    pub(super) strays: Vec<(Run, u32)>,
}

impl Server {
    pub(super) fn new(record: ServerRecord, since: Seconds) -> Self {
        let n_workers = record.workers.len();
        Self {
            record,
            since,
            heard: None,
            last_heard: None,
            last: ReportId::default(),
            epoch: 0,
            n_orders: 0,
            told: None,
            forget: Vec::new(),
            failed: VecDeque::new(),
            is_suspected: false,
            up: vec![false; n_workers],
            n_workers: 0,
            is_frozen: false,
            disk: None,
            closed: None,
            strays: Vec::new(),
        }
    }

    /// Whether it has been heard of lately.
    pub(super) fn is_reachable(&self, now: Seconds, silence: Seconds) -> bool {
        self.heard.is_some_and(|heard| now <= heard + silence)
    }

    /// The time since it was last heard of.
    pub(super) fn unheard(&self, now: Seconds) -> Seconds {
        now - self.last_heard.unwrap_or(self.since)
    }

    /// Whether it is the server of an agent with another folder, which was heard of lately or is still waited for.
    pub(super) fn is_anothers(&self, home: Option<u64>, now: Seconds, silence: Seconds) -> bool {
        let differs = self.record.home.zip(home).is_some_and(|(own, home)| own != home);
        differs && now <= self.heard.unwrap_or(self.since) + silence
    }
}
