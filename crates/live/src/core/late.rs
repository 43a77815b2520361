//! Ends of runs that are reported after the run was closed as lost. If such a run ended well, its job is done.

use apportion::simulator::{Event, Slice};
use apportion::workload::Combination;
use apportion::{Seconds, Steps};

use super::Core;
use super::charges::Charge;
use super::ends::why_done;
use super::job::{Ending, Rank, Reason};
use super::record::{How, LateEnd, UnheardRecord};
use super::slices::SliceLog;
use super::spans::Span;
use crate::protocol::{End, JobNumber, Phase, Progress, RankReport};

/// The most starts of a job that are remembered although their ends are unknown.
const UNHEARD_MAX: usize = 16;

impl UnheardRecord {
    /// The further time of its workers that the run, or a run beside it, held, now that the run is known to have taken `ran`.
    fn more_of_all(&self, ran: Seconds, now: Seconds) -> Seconds {
        if self.span.is_none() && self.counted.get() > 0.0 {
            // An earlier version did not note when; of two that share, the log has the time with both.
            return if self.was_shared { Seconds::ZERO } else { ran - self.counted };
        }
        let ended = self.ends.values().map(|late| late.ended).collect::<Option<Vec<_>>>();
        let ended = ended.and_then(|ended| ended.into_iter().reduce(Seconds::max)).unwrap_or(now);
        // It ran already when it was first known to run.
        let latest = self.span.map_or(now, |span| span.start + ran).min(now);
        let end = ended.min(latest);
        let before = self.span.map_or(Seconds::ZERO, |span| self.beside.missing(span));
        self.beside.missing(Span { start: end - ran, end }) - before
    }
}

impl Core {
    /// Remembers a run that is closed as lost before all of its ends were reported. `span` is the part of its time that is counted in
    /// the time that the job has received.
    pub(super) fn note_unheard(&mut self, number: JobNumber, span: Option<Span>) {
        let beside = self.counted_beside(number);
        let Some(job) = self.jobs.get(&number).filter(|job| !job.record.cancelled) else { return };
        let Some(run) = job.run.as_ref().filter(|run| !run.is_displaced()) else { return };
        let end = |(rank, known): (u32, &Rank)| {
            known
                .known
                .end()
                .map(|end| (rank, LateEnd { end: end.clone(), ran: known.ran, ended: known.ended }))
        };
        let unheard = UnheardRecord {
            incarnation: run.run.incarnation,
            servers: run.ranks.iter().map(|rank| rank.server.clone()).collect(),
            worker_type: self.type_name(run.lease.1),
            counted: span.map_or(Seconds::ZERO, Span::length),
            span,
            beside,
            charges: run.charges.clone(),
            was_shared: run.lease.0.is_pair(),
            ends: (0u32..).zip(&run.ranks).filter_map(end).collect(),
        };
        let Some(job) = self.jobs.get_mut(&number) else { return };
        job.record.unheard.push(unheard);
        if job.record.unheard.len() > UNHEARD_MAX {
            job.record.unheard.remove(0);
        }
    }

    /// Takes the end of a rank of a run that is closed. If the run has ended well, its job is done, and a later start of it is
    /// stopped.
    pub(super) fn take_late(&mut self, server: &str, report: &RankReport) {
        let Phase::Ended(end) = &report.phase else { return };
        let now = self.now;
        let number = report.run.job;
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let is_it = |unheard: &UnheardRecord| unheard.incarnation == report.run.incarnation;
        let Some(place) = job.record.unheard.iter().position(is_it) else { return };
        let unheard = &mut job.record.unheard[place];
        let is_here = unheard.servers.get(report.rank as usize).is_some_and(|other| other == server);
        if !is_here || unheard.ends.contains_key(&report.rank) {
            return;
        }
        let ended = report.ended_ago.filter(|ago| ago.get() >= 0.0).map(|ago| now - ago);
        unheard.ends.insert(report.rank, LateEnd { end: end.clone(), ran: report.ran, ended });
        let ends: Vec<Option<&End>> = (0u32..)
            .zip(&unheard.servers)
            .map(|(rank, _)| unheard.ends.get(&rank).map(|late| &late.end))
            .collect();
        let progress = if report.rank == 0 { report.progress } else { Progress::default() };
        let total = job.record.job.total_steps.get();
        let why = why_done(&ends, &progress, total).filter(|_| !job.record.cancelled);
        let mut more_steps = 0.0;
        if why.is_some() && progress.steps > job.record.checkpointed && progress.steps <= total {
            more_steps = progress.steps - job.record.checkpointed;
            job.record.checkpointed = progress.steps;
        }
        if ends.iter().all(Option::is_some) || why.is_some() {
            let unheard = job.record.unheard.remove(place);
            self.correct_late(number, unheard, more_steps);
        }
        match why {
            Some(why) => self.finish_late(
                number,
                format!("{why}, in incarnation {}, as was heard of late", report.run.incarnation),
            ),
            None => self.record_job(number),
        }
    }

    /// Corrects the time of a closed run, and its cost, once its servers report how long it ran.
    fn correct_late(&mut self, number: JobNumber, mut unheard: UnheardRecord, more_steps: f64) {
        let now = self.now;
        let kinds = self.scheduler.cluster().types();
        let kind = kinds.enumerate().find(|(_, kind)| kind.name == unheard.worker_type);
        let price = kind.and_then(|(_, kind)| kind.price);
        let worker_type = kind.map(|(worker_type, _)| worker_type);
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let most = (now - job.record.job.arrival).max(Seconds::ZERO);
        let n_workers = u32::try_from(unheard.servers.len()).unwrap_or(u32::MAX);
        let ran = unheard.ends.values().map(|late| late.ran).collect::<Option<Vec<_>>>();
        let ran = ran.filter(|ran| ran.len() == unheard.servers.len());
        let longest = ran.map(|ran| ran.into_iter().fold(Seconds::ZERO, Seconds::max).min(most));
        let more = longest.map_or(Seconds::ZERO, |ran| ran - unheard.counted);
        let more_of_all = longest.map_or(Seconds::ZERO, |ran| unheard.more_of_all(ran, now));
        let other = Charge { price, is_shared: unheard.was_shared, time: Seconds::ZERO };
        let mut of_all = unheard.charges.clone();
        let changes = unheard.charges.correct(more, other);
        job.record.receive(&unheard.worker_type, n_workers, &changes);
        // The steps of a later start go into the log with its own end.
        let mut steps = if job.run.is_some() { 0.0 } else { more_steps };
        let Some(worker_type) = worker_type else { return };
        for Charge { price, time, .. } in of_all.correct(more_of_all, other) {
            if time.get().abs() < 1e-9 && steps <= 0.0 {
                continue;
            }
            let log = SliceLog { worker_type, price, n_workers, start: now, end: now, time };
            let correction =
                log.correction(Combination::single(number.in_log()), [Some(unheard.incarnation), None]);
            let steps = [Steps::new(std::mem::take(&mut steps)), Steps::ZERO];
            self.event(now, &Event::Slice(Slice { steps, ..correction }));
        }
    }

    /// Ends a job that was done before its last start, once that is stopped.
    fn finish_late(&mut self, number: JobNumber, why: String) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(&number) else { return };
        if job.run.is_none() {
            return self.end_job(number, How::Completed, why);
        }
        self.count(number);
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Some(run) = &mut job.run else { return };
        run.ending = Some(Ending { reason: Reason::Done, since: now });
        job.placement = None;
        job.record.done = Some(why);
        self.record_job(number);
        self.touched.insert(number);
    }
}
