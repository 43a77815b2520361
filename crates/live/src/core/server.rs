//! A server that has joined, and what passes between it and the scheduler.

use std::collections::VecDeque;

use apportion::Seconds;

use super::record::ServerRecord;
use crate::protocol::{JobNumber, LeaseOrder, ReportId, Run};

/// What a server was last told, with its leases' ends as instants.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    pub(super) leases: Vec<(LeaseOrder, Seconds)>,
    pub(super) forget: Vec<Run>,
}

/// A server, as the scheduler knows it.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) record: ServerRecord,
    /// Since when this start of the scheduler has known it.
    pub(super) since: Seconds,
    /// When its last report was received; none before the first since the scheduler's start.
    pub(super) heard: Option<Seconds>,
    /// The same, though it counts as silent since.
    pub(super) last_heard: Option<Seconds>,
    pub(super) last: ReportId,
    /// The epoch of its orders: the scheduler's own, or a later one, where it has had orders of a later one.
    pub(super) epoch: u64,
    /// Number of the last orders.
    pub(super) n_orders: u64,
    /// What it was last told; none if that has to be said again.
    pub(super) told: Option<Told>,
    /// Runs that it reported as ended and that are over: it may forget them.
    pub(super) forget: Vec<Run>,
    /// The last different jobs that failed on it in a row, and on no other server.
    pub(super) failed: VecDeque<JobNumber>,
    /// Is it drained for these?
    pub(super) is_suspected: bool,
    /// Workers that are up, as the mechanism was told: `[workers]`.
    pub(super) up: Vec<bool>,
    /// How many of its workers it has, as it says.
    pub(super) n_workers: u32,
    /// Can it start nothing now, as it says?
    pub(super) is_frozen: bool,
    /// Why it can start nothing more, its disk being full, as it says; none if there is room.
    pub(super) disk: Option<String>,
    /// Runs that it has and that nothing here knows: their workers are not free until they have ended.
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
            strays: Vec::new(),
        }
    }

    /// Has it been heard of lately?
    pub(super) fn is_reachable(&self, now: Seconds, silence: Seconds) -> bool {
        self.heard.is_some_and(|heard| now <= heard + silence)
    }

    /// For how long nothing has been heard of it.
    pub(super) fn unheard(&self, now: Seconds) -> Seconds {
        now - self.last_heard.unwrap_or(self.since)
    }

    /// Is it the server of an agent with another folder than this one, that was heard of lately or is still waited for?
    pub(super) fn is_anothers(&self, home: Option<u64>, now: Seconds, silence: Seconds) -> bool {
        let differs = self.record.home.zip(home).is_some_and(|(own, home)| own != home);
        differs && now <= self.heard.unwrap_or(self.since) + silence
    }
}
