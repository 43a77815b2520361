//! A job that is not over, and its run.

use apportion::Seconds;
use apportion::index::{JobId, WorkerId, WorkerTypeId};
use apportion::workload::Combination;

use super::charges::Charges;
use super::record::{CountedRecord, JobRecord, LoggedRecord, RunRecord};
use super::spans::{Span, Spans};
use crate::protocol::{End, JobNumber, Phase, Progress, Run, Stop};

/// The workers of a job and the end of its lease, as the mechanism decided.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placement {
    /// Its workers, in the order of ids.
    pub(super) workers: Vec<WorkerId>,
    pub(super) worker_type: WorkerTypeId,
    /// The job that has the same workers.
    pub(super) beside: Option<JobNumber>,
    /// The jobs of the lease, as the mechanism knows them.
    pub(super) jobs: Combination<JobId>,
    pub(super) until: Seconds,
}

/// The state of a rank, as far as the scheduler knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It has been ordered; nothing has been heard of it.
    Ordered,
    /// It may run since before the scheduler's start; its server has not been heard of since.
    Believed,
    /// Its server reported it once and no longer does. Its end is unknown.
    Lost,
    /// It has been reported: running, stopping, or ended.
    Reported(Phase),
}

impl Known {
    /// Whether its server reported it once and its end is unknown.
    pub(super) fn may_be_there(&self) -> bool {
        match self {
            Self::Believed => true,
            Self::Reported(phase) => !phase.is_end(),
            Self::Ordered | Self::Lost => false,
        }
    }

    pub(super) fn end(&self) -> Option<&End> {
        match self {
            Self::Reported(Phase::Ended(end)) => Some(end),
            _ => None,
        }
    }
}

/// A rank of a run.
#[derive(Clone, Debug)]
pub(super) struct Rank {
    pub(super) server: String,
    /// Its worker; none where the cluster that the scheduler was started with does not have it there any more.
    pub(super) worker: Option<WorkerId>,
    pub(super) known: Known,
    /// The time that it ran; none before its server has reported its end.
    pub(super) ran: Option<Seconds>,
    /// The instant of its end, on the scheduler's clock.
    pub(super) ended: Option<Seconds>,
}

/// Why a run is asked to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Its workers are another job's in the next round, or it has other workers.
    Preempted,
    /// A rank of it has ended; the others cannot go on, or do not end.
    RankEnded,
    /// Not all of its ranks have been started in time.
    NotStarted,
    /// Its user cancelled the job.
    Cancelled,
    /// An earlier start of the job was done, as was reported late.
    Done,
}

/// A run that is asked to stop.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) reason: Reason,
    pub(super) since: Seconds,
}

/// A run that may still hold its workers.
#[derive(Clone, Debug)]
pub(super) struct LiveRun {
    pub(super) run: Run,
    pub(super) ranks: Vec<Rank>,
    pub(super) ordered: Seconds,
    /// The instant since when all of its ranks have been known to run.
    pub(super) running: Option<Seconds>,
    /// The latest lease's end that any server may have been told.
    pub(super) until: Seconds,
    /// The instant at which it is over if its end is not reported.
    pub(super) over_at: Seconds,
    pub(super) ending: Option<Ending>,
    /// The instant since when one of its ranks has ended well while others have not ended.
    pub(super) ends_since: Option<Seconds>,
    /// The progress that rank 0 last reported.
    pub(super) progress: Progress,
    /// The jobs of its lease, and the type of its workers.
    pub(super) lease: (Combination<JobId>, WorkerTypeId),
    /// The instant up to which its time has been counted.
    pub(super) counted: Seconds,
    /// The instant at which its time stops counting, its lease being over and its end unknown; none while it counts.
    pub(super) counts_until: Option<Seconds>,
    /// The cost of its time.
    pub(super) charges: Charges,
    /// The part of it that the event log has.
    pub(super) logged: LoggedRecord,
    /// The time that runs beside it, which have ended, had its workers.
    pub(super) beside: Spans,
    /// The time that an earlier start of the scheduler counted of it; none once it is known to run on.
    pub(super) counted_before: Option<CountedRecord>,
    /// The end of the lease that it had at the earlier start; none once all of its ranks are known to run on.
    pub(super) lease_end: Option<Seconds>,
    /// The time counted since the last checkpoint: the lease's jobs, its worker type, and the time.
    pub(super) at_risk: Vec<(Combination<JobId>, WorkerTypeId, Seconds)>,
    /// Steps and their time, in s, at the last measurement of its throughput; none before the first.
    pub(super) measured: Option<(f64, f64)>,
}

impl LiveRun {
    /// A run as it is recorded now, of which nothing has been reported.
    pub(super) fn new(
        run: Run,
        record: &RunRecord,
        lease: (Combination<JobId>, WorkerTypeId),
        (known, now): (Known, Seconds),
    ) -> Self {
        let rank = |(server, worker): (&String, &WorkerId)| Rank {
            server: server.clone(),
            worker: Some(*worker),
            known: known.clone(),
            ran: None,
            ended: None,
        };
        Self {
            run,
            ranks: record.servers.iter().zip(&record.workers).map(rank).collect(),
            ordered: now,
            running: None,
            until: now,
            over_at: now + record.outlives,
            ending: None,
            ends_since: None,
            progress: Progress::default(),
            lease,
            counted: now,
            counts_until: None,
            charges: record.charges.clone(),
            logged: record.logged().unwrap_or(LoggedRecord { at: now, ..LoggedRecord::default() }),
            beside: record.beside.clone(),
            counted_before: record.counted,
            lease_end: record.lease_end,
            at_risk: Vec::new(),
            measured: None,
        }
    }

    /// The counted time that is to be put on disk.
    pub(super) fn counted(&self) -> Option<CountedRecord> {
        let now = self.running.map(|running| CountedRecord { running, until: self.counted, logged: None });
        now.or(self.counted_before.map(|counted| CountedRecord { logged: None, ..counted }))
    }

    /// The lease's end that is to be put on disk, where its placement lasts until `placed`: the earlier one while it is not known
    /// that the run goes on.
    pub(super) fn lease_end(&self, placed: Option<Seconds>) -> Option<Seconds> {
        let now = self.until.max(placed.unwrap_or(self.until));
        if self.counted_before.is_some() { self.lease_end } else { Some(now) }
    }

    /// Whether the lease that an earlier start of the scheduler gave it was over before it was known that this start prolongs it.
    pub(super) fn lease_ran_out(&self, now: Seconds) -> bool {
        self.lease_end.is_some_and(|end| end <= now)
    }

    /// The time that has been counted of it, over all starts of the scheduler.
    pub(super) fn span(&self) -> Option<Span> {
        match (self.running, self.counted_before) {
            (Some(start), _) => Some(Span { start, end: self.counted.max(start) }),
            (None, Some(CountedRecord { running, until, .. })) => Some(Span { start: running, end: until }),
            (None, None) => None,
        }
    }

    /// The time that it had its workers, now that it is over; `most` at most. None if it never ran. `is_end_known`: its end was
    /// reported, and not that it was lost.
    pub(super) fn had(&self, now: Seconds, most: Seconds, is_end_known: bool) -> Option<Span> {
        let counted = self.span();
        let length = counted.map_or(Seconds::ZERO, Span::length);
        match (self.ran(), counted) {
            (Some(ran), _) => {
                let (ran, ended) = (ran.max(Seconds::ZERO).min(most), self.ended().unwrap_or(now));
                // It ran already when it was first known to run.
                let latest = counted.map_or(now, |counted| counted.start + ran).min(now);
                let end = ended.min(latest);
                Some(Span { start: end - ran, end })
            }
            (None, Some(Span { start, end })) if self.running.is_some() && !is_end_known => {
                Some(Span { start, end: end.min(self.until).max(start) })
            }
            (None, _) => {
                let end = counted.map_or(now, |counted| counted.end);
                Some(Span { start: end - self.ran_longest().min(most).max(length), end })
            }
        }
        .filter(|span| span.length().get() > 0.0)
    }

    /// The instant at which the last of its ranks ended, where their servers have reported it.
    fn ended(&self) -> Option<Seconds> {
        let ended = self.ranks.iter().map(|rank| rank.ended).collect::<Option<Vec<_>>>()?;
        ended.into_iter().reduce(Seconds::max)
    }

    /// The time that it ran until the last of its ranks had ended, where the servers of all ranks have reported it.
    pub(super) fn ran(&self) -> Option<Seconds> {
        self.ranks.iter().all(|rank| rank.ran.is_some()).then(|| self.ran_longest())
    }

    /// The longest time of a rank among those that were reported.
    pub(super) fn ran_longest(&self) -> Seconds {
        self.ranks.iter().filter_map(|rank| rank.ran).fold(Seconds::ZERO, Seconds::max)
    }

    /// Whether a rank of it has been lost, so that its end is unknown.
    pub(super) fn is_lost(&self) -> bool {
        self.ranks.iter().any(|rank| rank.ran.is_none() && matches!(rank.known.end(), Some(End::Lost(_))))
    }

    /// Whether it has been known to run, by this or an earlier start of the scheduler, or by a server's report now.
    pub(super) fn has_run(&self) -> bool {
        self.running.is_some() || self.counted_before.is_some() || self.ran_longest().get() > 0.0
    }

    /// Whether a rank of it ended because there was nothing to execute.
    pub(super) fn is_unexecutable(&self) -> bool {
        self.ranks.iter().any(|rank| matches!(rank.known.end(), Some(End::NotExecutable(_))))
    }

    /// The increase of checkpointed steps since the last log, and the steps made since with the time that they took, in s. Both
    /// count as logged now.
    pub(super) fn log(&mut self, now: Seconds, checkpointed: f64) -> (f64, (f64, f64)) {
        let (Progress { first, steps, seconds, .. }, before) = (self.progress, self.logged);
        let made = (steps - before.steps.max(first), seconds - before.seconds);
        let is_known = made.0 >= 0.0 && made.1 >= 0.0;
        self.logged = LoggedRecord {
            at: now.max(before.at),
            checkpointed,
            steps: steps.max(before.steps),
            seconds: seconds.max(before.seconds),
        };
        (checkpointed - before.checkpointed, if is_known { made } else { (0.0, 0.0) })
    }

    /// Whether a rank of it has a worker that the cluster does not have there any more. Such a run is stopped, and not counted.
    pub(super) fn is_displaced(&self) -> bool {
        self.ranks.iter().any(|rank| rank.worker.is_none())
    }

    /// Its workers, in the order of ids.
    pub(super) fn workers(&self) -> Vec<WorkerId> {
        let mut workers: Vec<_> = self.ranks.iter().filter_map(|rank| rank.worker).collect();
        workers.sort_unstable();
        workers
    }

    /// Whether it is broken: a rank has failed or been lost, or one ended well so long ago that the others ought to have ended.
    pub(super) fn is_broken(&mut self, now: Seconds, grace: Seconds) -> bool {
        let is_bad = |rank: &Rank| match rank.known.end() {
            Some(end) => *end != End::Exit(0),
            None => rank.known == Known::Lost,
        };
        if self.ranks.iter().any(|rank| rank.known.end().is_some()) {
            let since = *self.ends_since.get_or_insert(now);
            return self.ranks.iter().any(is_bad) || now > since + grace;
        }
        self.ranks.iter().any(is_bad)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ranks.iter().all(|rank| rank.known.end().is_some())
    }

    /// The way in which the ranks of a server are to stop now; none if they are to go on. A gang whose program reports progress
    /// stops after one step that rank 0 names; where it names none within half the grace, and in all other cases, after the step
    /// that is running.
    pub(super) fn stop(&self, server: &str, now: Seconds, grace: Seconds) -> Option<Stop> {
        let ending = self.ending.as_ref()?;
        let together = self.ranks.len() > 1 && self.progress.speaks && ending.reason == Reason::Preempted;
        match self.progress.proposed {
            _ if !together => Some(Stop::Now),
            Some(step) => Some(Stop::After(step)),
            None if now >= ending.since + grace / 2.0 => Some(Stop::Now),
            None => self.ranks.first().filter(|first| first.server == server).map(|_| Stop::Propose),
        }
    }
}

/// A job that is not over.
#[derive(Clone, Debug)]
pub(super) struct LiveJob {
    pub(super) record: JobRecord,
    pub(super) id: JobId,
    pub(super) placement: Option<Placement>,
    pub(super) run: Option<LiveRun>,
    /// Whether there was nothing to execute when it last failed.
    pub(super) was_unexecutable: bool,
}

impl LiveJob {
    /// The time before it may be started again after a failure; none if it may be now.
    pub(super) fn rests(&self, now: Seconds) -> Option<Seconds> {
        self.record.not_before.filter(|at| *at > now).map(|at| at - now)
    }
}

impl LiveJob {
    /// Whether all ranks of its run have ended, or been unheard of for so long that they surely have.
    pub(super) fn is_gone(&self, now: Seconds) -> bool {
        let Some((run, record)) = self.run.as_ref().zip(self.record.run.as_ref()) else { return false };
        let is_unheard = |known: &Known| matches!(known, Known::Believed | Known::Lost);
        (0u32..).zip(&run.ranks).all(|(number, rank)| {
            let is_past = || record.gone_by.get(&number).is_some_and(|by| now >= *by);
            rank.known.end().is_some() || (is_unheard(&rank.known) && is_past())
        })
    }

    /// Whether something may be due for the job at some instant, even if nothing is reported.
    pub(super) fn waits_for_time(&self, now: Seconds) -> bool {
        let Some(run) = &self.run else { return self.placement.is_some() };
        let has_ended = |rank: &Rank| rank.known.end().is_some();
        run.running.is_none() || run.ending.is_some() || now >= run.over_at || run.ranks.iter().any(has_ended)
    }
}
