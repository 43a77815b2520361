//! The agent of a server: its reaction to orders, without processes, sockets or clocks.
//!
//! In: [`Orders`] of a scheduler, and the progress and ends of ranks. Out: [`Act`]s for the code that starts processes, and
//! [`Report`]s. Instants are of the node's own clock, which must not be set and must go on while the node sleeps.
//!
//! Around it: [`Processes`] carries out its acts with real processes, and [`run`] carries documents over a [`Link`].

mod disk;
mod drive;
pub(crate) mod server_rank;
pub(crate) mod processes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use apportion::Seconds;

use crate::protocol::{
    End, JobNumber, LeaseOrder, Orders, Phase, Progress, RankReport, Report, ReportId, Run, Stop,
};
pub use crate::rank::RankStart;

pub use drive::{Link, LinkError, run};
pub use processes::{Home, Processes, ProcessesError};

/// The number of last reports whose sending an agent remembers; orders that answer an older one start and extend nothing.
const REPORTS_REMEMBERED: usize = 4096;

/// The description of a server with which its agent is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its name, by which the scheduler recognizes it.
    pub name: String,
    /// The type of its workers.
    pub worker_type: String,
    /// The number of its workers.
    pub n_workers: u32,
}

/// An action on a rank.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Start it.
    Start(Box<RankStart>),
    /// Write its lease's end and its stop, if it is to stop, for its shim.
    Steer {
        /// The run.
        run: Run,
        /// The rank's number.
        rank: u32,
        /// The end of its lease.
        until: Seconds,
        /// Time after which it is killed, from the request to stop or from the lease's end.
        grace: Seconds,
        /// The way in which it is to stop; none if it is to go on.
        stop: Option<Stop>,
    },
}

/// A rank of this server.
#[derive(Clone, Debug)]
struct Rank {
    worker: u32,
    phase: Phase,
    progress: Progress,
    ran: Option<Seconds>,
    /// The instant of its end, by the node's clock; none where that is not known.
    ended: Option<Seconds>,
    until: Seconds,
    grace: Seconds,
    stop: Option<Stop>,
}

impl Rank {
    fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// Notes that it has been asked to stop; a rank that waits to be started goes on waiting.
    fn note_stopping(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Stopping;
        }
    }
}

/// A rank that was running before its agent was started.
#[derive(Clone, Debug, PartialEq)]
pub struct Adopted {
    /// The rank, as it is now.
    pub report: RankReport,
    /// The instant of its end, by the node's clock; none where that is not known.
    pub ended: Option<Seconds>,
    /// The end of its lease.
    pub until: Seconds,
    /// Time after which it is killed, from the request to stop or from the lease's end.
    pub grace: Seconds,
}

/// An agent between two inputs.
#[derive(Clone, Debug)]
pub struct Agent {
    server: Server,
    home: Option<u64>,
    boot: u64,
    n_reports: u64,
    /// The instants at which the last reports were sent, by number.
    sent: VecDeque<(u64, Seconds)>,
    /// The highest epoch and number of orders taken.
    taken: (u64, u64),
    ranks: BTreeMap<(Run, u32), Rank>,
}

impl Agent {
    /// An agent with the ranks that an earlier one left. `boot` must be larger than the earlier one's.
    pub fn new(server: Server, boot: u64, adopted: Vec<Adopted>) -> Self {
        let mut ranks = BTreeMap::new();
        for Adopted { report, ended, until, grace } in adopted {
            let RankReport { run, rank, worker, phase, progress, ran, .. } = report;
            let here = Rank { worker, phase, progress, ran, ended, until, grace, stop: None };
            ranks.insert((run, rank), here);
        }
        Self { server, home: None, boot, n_reports: 0, sent: VecDeque::new(), taken: (0, 0), ranks }
    }

    /// This agent with the number of its folder.
    #[must_use]
    pub fn with_home(mut self, home: u64) -> Self {
        self.home = Some(home);
        self
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Whether the rank is here: it runs, or has ended and is not forgotten yet.
    pub fn has(&self, run: Run, rank: u32) -> bool {
        self.ranks.contains_key(&(run, rank))
    }

    /// A report that is sent at `now`, or later.
    pub fn report(&mut self, now: Seconds) -> Report {
        self.n_reports += 1;
        self.sent.push_back((self.n_reports, now));
        if self.sent.len() > REPORTS_REMEMBERED {
            self.sent.pop_front();
        }
        let rank = |(key, rank): (&(Run, u32), &Rank)| RankReport {
            run: key.0,
            rank: key.1,
            worker: rank.worker,
            phase: rank.phase.clone(),
            progress: rank.progress,
            ran: rank.ran,
            ended_ago: rank.ended.filter(|ended| *ended <= now).map(|ended| now - ended),
        };
        Report {
            server: self.server.name.clone(),
            id: ReportId { boot: self.boot, number: self.n_reports },
            home: self.home,
            worker_type: self.server.worker_type.clone(),
            n_workers: self.server.n_workers,
            is_frozen: false,
            disk: None,
            closed: None,
            taken: self.taken,
            ranks: self.ranks.iter().map(rank).collect(),
        }
    }

    /// Takes orders, unless they are older than earlier ones, or answer an earlier agent of this server.
    pub fn take(&mut self, now: Seconds, orders: &Orders) -> Vec<Act> {
        if (orders.epoch, orders.number) <= self.taken || orders.answers.boot != self.boot {
            return Vec::new();
        }
        self.taken = (orders.epoch, orders.number);
        let base = self.sent_at(orders.answers);
        let mut acts = Vec::new();
        for lease in &orders.leases {
            for (place, &(rank, worker)) in (0u32..).zip(&lease.ranks) {
                let until = base.map(|base| base + lease.lease);
                if self.ranks.contains_key(&(lease.run, rank)) {
                    acts.extend(self.steer(lease, rank, until));
                } else {
                    acts.extend(self.start(now, lease, (rank, worker, place), until));
                }
            }
        }
        let is_wanted = |run: Run| orders.leases.iter().any(|lease| lease.run == run);
        for (&(run, rank), here) in &mut self.ranks {
            // A rank that was only asked for a proposal runs on, but its proposal would not be answered any more: it is stopped,
            // too.
            let goes_on = here.stop.is_none_or(|stop| stop == Stop::Propose);
            if !is_wanted(run) && !here.is_over() && goes_on {
                here.stop = Some(Stop::Now);
                here.note_stopping();
                let (until, grace) = (here.until, here.grace);
                acts.push(Act::Steer { run, rank, until, grace, stop: here.stop });
            }
        }
        self.ranks.retain(|(run, _), rank| !(rank.is_over() && orders.forget.contains(run)));
        acts
    }

    /// The instant at which a report of this agent was sent; none if that is too long ago.
    fn sent_at(&self, id: ReportId) -> Option<Seconds> {
        let first = self.sent.front()?.0;
        let place = usize::try_from(id.number.checked_sub(first)?).ok()?;
        self.sent.get(place).map(|(_, at)| *at)
    }

    /// Extends the lease of a rank that is here, and stops it if it has to stop.
    fn steer(&mut self, lease: &LeaseOrder, rank: u32, until: Option<Seconds>) -> Option<Act> {
        let run = lease.run;
        let here = self.ranks.get_mut(&(run, rank)).filter(|here| !here.is_over())?;
        let before = (here.until, here.grace, here.stop);
        here.until = until.map_or(here.until, |until| here.until.max(until));
        here.grace = lease.grace;
        here.stop = lease.stop.or(here.stop);
        if here.stop.is_some_and(|stop| stop != Stop::Propose) {
            here.note_stopping();
        }
        let after = (here.until, here.grace, here.stop);
        (after != before).then_some(Act::Steer { run, rank, until: after.0, grace: after.1, stop: after.2 })
    }

    /// Starts a rank that is not here, if its lease is not over and its worker is free. Else the next orders try again. A rank that
    /// is to stop before it was started has ended.
    fn start(
        &mut self,
        now: Seconds,
        lease: &LeaseOrder,
        (rank, worker, local_rank): (u32, u32, u32),
        until: Option<Seconds>,
    ) -> Option<Act> {
        let run = lease.run;
        let ended = if lease.stop.is_some() {
            Some(End::Stopped(None))
        } else if worker >= self.server.n_workers {
            let n_workers = self.server.n_workers;
            Some(End::NotStarted(format!("worker {worker} is asked for, the server has {n_workers}")))
        } else {
            None
        };
        let until = match (ended.is_some(), until) {
            (true, _) => now,
            (false, Some(until)) if until > now && self.is_free(worker, lease) => until,
            _ => return None,
        };
        let phase = ended.map_or(Phase::Running, Phase::Ended);
        let starts = phase == Phase::Running;
        let grace = lease.grace;
        let (progress, ran) = (Progress::default(), None);
        let here = Rank { worker, phase, progress, ran, ended: None, until, grace, stop: lease.stop };
        self.ranks.insert((run, rank), here);
        starts.then(|| {
            Act::Start(Box::new(RankStart {
                run,
                submission: lease.submission,
                rank,
                worker,
                local_rank,
                ranks_here: u32::try_from(lease.ranks.len()).unwrap_or(u32::MAX),
                world_size: lease.world_size,
                first_server: lease.first_server.clone(),
                total_steps: lease.total_steps,
                program: lease.program.clone(),
                until,
                grace,
            }))
        })
    }

    /// Whether the run of this lease may have the worker: only the job that it shares with may hold it.
    fn is_free(&self, worker: u32, lease: &LeaseOrder) -> bool {
        let shares = |job: JobNumber| lease.beside == Some(job);
        self.ranks.iter().all(|((run, _), rank)| {
            rank.is_over() || (run.job == lease.run.job && run.incarnation == lease.run.incarnation)
                // An earlier start of the same job may run anywhere on this server: it must end first.
                || (run.job != lease.run.job && (rank.worker != worker || shares(run.job)))
        })
    }

    /// Notes the progress of a rank that is not over. Returns whether it has news that a scheduler waits for: that the program
    /// reports progress, a proposal, or that the job is done.
    pub fn note_progress(&mut self, run: Run, rank: u32, progress: Progress) -> bool {
        let Some(here) = self.ranks.get_mut(&(run, rank)).filter(|here| !here.is_over()) else {
            return false;
        };
        let is_waited_for = |progress: &Progress| (progress.speaks, progress.proposed, progress.done);
        let before = std::mem::replace(&mut here.progress, progress);
        is_waited_for(&before) != is_waited_for(&progress)
    }

    /// Notes that a rank waits to be started.
    pub(crate) fn note_waiting(&mut self, run: Run, rank: u32) {
        if let Some(here) = self.ranks.get_mut(&(run, rank)).filter(|here| here.phase == Phase::Running) {
            here.phase = Phase::Waiting;
        }
    }

    /// Notes that a rank that waited to be started runs.
    pub(crate) fn note_started(&mut self, run: Run, rank: u32) {
        if let Some(here) = self.ranks.get_mut(&(run, rank)).filter(|here| here.phase == Phase::Waiting) {
            here.phase = Phase::Running;
        }
    }

    /// Notes that a rank has been asked to stop, because its lease is over.
    pub fn note_stopping(&mut self, run: Run, rank: u32) {
        if let Some(here) = self.ranks.get_mut(&(run, rank)) {
            here.note_stopping();
        }
    }

    /// Notes the time that a rank ran which is over now.
    pub fn note_ran(&mut self, run: Run, rank: u32, ran: Seconds) {
        if let Some(here) = self.ranks.get_mut(&(run, rank)).filter(|here| !here.is_over()) {
            here.ran = Some(ran);
        }
    }

    /// Notes when a rank ended that is over now, by the node's clock.
    pub fn note_ended(&mut self, run: Run, rank: u32, ended: Seconds) {
        if let Some(here) = self.ranks.get_mut(&(run, rank)).filter(|here| !here.is_over()) {
            here.ended = Some(ended);
        }
    }

    /// Notes that no process of a rank is left.
    pub fn note_end(&mut self, run: Run, rank: u32, end: End) {
        if let Some(here) = self.ranks.get_mut(&(run, rank)).filter(|here| !here.is_over()) {
            here.phase = Phase::Ended(end);
        }
    }
}
