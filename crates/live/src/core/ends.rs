//! The ends of runs and of jobs, and their reasons.

use apportion::Seconds;
use apportion::simulator::Event;

use super::Core;
use super::job::{Known, LiveJob, LiveRun, Rank, Reason};
use super::record::{How, JobRecord, Outcome};
use crate::protocol::{End, JobNumber, Progress};

/// The reason for a cancelled job that its user cancelled here.
pub(super) const BY_ITS_USER: &str = "cancelled by its user";

/// The meaning of a run's end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// The job is done.
    Completed(String),
    /// It stopped when it was asked to, and kept its work.
    Stopped(String),
    /// It was stopped without its work since the last checkpoint, by no fault of its own.
    Lost(String),
    /// It was stopped as in [`Lost`](Self::Lost), and its job waits before it is started again.
    Cut(String),
    /// It failed by itself, on this server; none if the fault is the job's on every server.
    Failed(String, Option<String>),
    /// It did not end well, and nothing is left that could be started again.
    Final(String),
    /// A server could not start it: the reason, and the server's name.
    Refused(String, String),
}

/// The reason for which a job is completed: its program has reported that it is done.
const SAYS_SO: &str = "its program says that it is done";

/// The reason for which a run with these ends of its ranks completes its job; none if it does not. `ends`, `[ranks]`, has none for a
/// rank that is not known to have ended. `progress` is what rank 0 reported last, and `total_steps` what the job needs.
pub(super) fn why_done(ends: &[Option<&End>], progress: &Progress, total_steps: f64) -> Option<&'static str> {
    let went_well = matches!(ends.first(), Some(Some(End::Exit(0) | End::Stopped(Some(0)))));
    let is_done = progress.done || (progress.speaks && progress.steps >= total_steps);
    if went_well && is_done {
        return Some(SAYS_SO);
    }
    // No rank had been asked to stop when it ended, whatever has been ordered since.
    let is_well = ends.iter().all(|end| matches!(end, Some(End::Exit(0))));
    is_well.then_some("its program ended with exit code 0")
}

/// The verdict on a run that is over at `now`: all of its ranks have ended, or its last lease ended so long ago that none can run,
/// though the ends of some are unknown.
fn judge(run: &LiveRun, total_steps: f64, now: Seconds) -> Verdict {
    let ends: Vec<_> = run.ranks.iter().map(|rank| (rank, rank.known.end())).collect();
    let is_cancelled = run.ending.as_ref().is_some_and(|ending| ending.reason == Reason::Cancelled);
    let of_ranks: Vec<_> = ends.iter().map(|(_, end)| *end).collect();
    match why_done(&of_ranks, &run.progress, total_steps) {
        Some(why) if !is_cancelled || why == SAYS_SO => return Verdict::Completed(why.to_owned()),
        _ => {}
    }
    let last_word = ends.iter().find_map(|(_, end)| match end {
        Some(End::Final(why)) => Some(why.clone()),
        _ => None,
    });
    if let Some(why) = last_word {
        return Verdict::Final(why);
    }
    for (number, (rank, end)) in ends.iter().enumerate() {
        let Some(end) = end.filter(|end| is_failure(end)) else { continue };
        let which = if ends.len() > 1 { format!("rank {number} on ") } else { "on ".to_owned() };
        let (what, server) = (format!("{which}{}, it {end}", rank.server), rank.server.clone());
        return match end {
            End::NotStarted(_) => Verdict::Refused(what, server),
            _ => Verdict::Failed(what, Some(server).filter(|_| !is_of_the_job(end))),
        };
    }
    let is_alone = run.ending.as_ref().is_some_and(|ending| ending.reason == Reason::RankEnded);
    if let (true, Some((rank, _))) =
        (is_alone, ends.iter().find(|(_, end)| matches!(end, Some(End::Exit(_)))))
    {
        let what = "a rank ended with exit code 0, and others went on for longer than the grace".to_owned();
        return Verdict::Failed(what, Some(rank.server.clone()));
    }
    if let Some((rank, _)) = ends.iter().find(|(_, end)| end.is_none()) {
        return Verdict::Lost(format!("{} did not say how it ended before its lease was over", rank.server));
    }
    if let Some((rank, Some(end))) = ends.iter().find(|(_, end)| matches!(end, Some(End::Lost(_)))) {
        return Verdict::Lost(format!("on {}, it {end}", rank.server));
    }
    if let Some((rank, Some(end))) = ends.iter().find(|(_, end)| matches!(end, Some(End::Cut { .. }))) {
        return Verdict::Cut(format!("on {}, it {end}", rank.server));
    }
    let is_saved = run.progress.speaks && run.progress.checkpointed >= run.progress.steps;
    if ends.iter().any(|(_, end)| matches!(end, Some(End::Killed))) && is_saved {
        return Verdict::Stopped(
            "it saved its last step, and was killed, since it did not end in time".into(),
        );
    }
    if ends.iter().any(|(_, end)| matches!(end, Some(End::Killed))) {
        return Verdict::Lost(format!("it {}", End::Killed));
    }
    if run.ending.as_ref().is_some_and(|ending| ending.reason == Reason::NotStarted) && run.running.is_none()
    {
        return Verdict::Lost("not all of its ranks could be started in time".into());
    }
    let when = match run.ending.as_ref().map(|ending| &ending.reason) {
        Some(Reason::Preempted) => "it was asked to",
        None | Some(Reason::RankEnded) if now < run.until && !run.lease_ran_out(now) => {
            "it was asked to before its lease was over, not by its scheduler: by its server, or by Slurm"
        }
        _ => "its lease was over",
    };
    Verdict::Stopped(format!("it stopped when {when}"))
}

/// Whether this end of a rank is a failure, of the job or of its server. A rank has vanished where its shim was killed and its
/// agent went on: by a process of the job, by a user, or by the system for want of memory.
fn is_failure(end: &End) -> bool {
    matches!(
        end,
        End::Signal(_)
            | End::NotStarted(_)
            | End::NotExecutable(_)
            | End::Declined(_)
            | End::Vanished
            | End::Exit(1..)
            | End::Cut { is_failure: true, .. }
    )
}

/// Whether the rank would end like this on every server. A shell exits with 127 if there is no such program, with 126 if it is no
/// program.
fn is_of_the_job(end: &End) -> bool {
    matches!(end, End::NotExecutable(_) | End::Declined(_) | End::Exit(126 | 127))
}

impl Core {
    /// Ends a run if all of its ranks have ended, or its last lease has been over for so long that nothing of it can run.
    pub(super) fn end_run_if_over(&mut self, number: JobNumber) {
        let Some(job) = self.jobs.get(&number) else { return };
        let Some(run) = &job.run else { return };
        let is_confirmed = run.has_ended();
        let is_over = self.now >= run.over_at || job.is_gone(self.now);
        if !is_confirmed && (!is_over || self.now < self.listens_until || self.is_in_slurms_hands(job, run)) {
            return;
        }
        let mut verdict = judge(run, job.record.job.total_steps.get(), self.now);
        if matches!(verdict, Verdict::Completed(_)) {
            self.note_all_done(number);
        }
        let had = self.correct_count(number, is_confirmed);
        if !is_confirmed && matches!(verdict, Verdict::Lost(_)) {
            self.note_unheard(number, had);
        }
        self.presume_steps(number);
        let mut beside = self.sharing(number);
        beside.retain(|other| *other != number);
        // What it ran is in the event log before its end is.
        self.flush_last(number);
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Some(run) = job.run.take() else { return };
        job.record.run = None;
        if job.record.cancelled && !matches!(verdict, Verdict::Completed(_)) {
            let why = job.record.withdrawn.clone();
            verdict = Verdict::Stopped(why.unwrap_or_else(|| BY_ITS_USER.to_owned()));
        }
        if let Some(why) = &job.record.done {
            verdict = Verdict::Completed(why.clone());
        }
        if !is_confirmed {
            self.counters.unconfirmed += 1;
        }
        let keeps = match &verdict {
            Verdict::Completed(_) => true,
            // A program that reports no checkpoints has made one if it stopped when it was asked to.
            Verdict::Stopped(_) => !run.progress.speaks || run.progress.checkpointed >= run.progress.steps,
            Verdict::Lost(_)
            | Verdict::Cut(_)
            | Verdict::Failed(..)
            | Verdict::Refused(..)
            | Verdict::Final(_) => false,
        };
        self.close_run(&run, keeps);
        let workers = run.workers();
        self.release(number, &workers);
        self.touched.insert(number);
        self.conclude(number, &run, verdict);
        // What is known of the time on its workers is on disk with those that stay there.
        for other in beside {
            self.record_job(other);
        }
    }

    /// Whether a run lasts until Slurm reports its end. The run of a job that its user submitted to Slurm does: its lease has no
    /// end of its own, and Slurm may answer late or not at all. Once the job has been given up, its workers are released without
    /// waiting for Slurm.
    fn is_in_slurms_hands(&self, job: &LiveJob, run: &LiveRun) -> bool {
        let is_there = |rank: &Rank| {
            let server = self.servers.get(&rank.server);
            let server = server.filter(|server| server.is_reachable(self.now, self.settings.silence));
            let is_frozen = server.is_some_and(|server| server.is_frozen);
            let may_be = server.is_some() && rank.known.may_be_there() && job.record.withdrawn.is_none();
            rank.known.end().is_none() && (is_frozen || may_be)
        };
        self.settings.front_door && run.ranks.iter().any(is_there)
    }

    /// Counts all steps of a job that is done, though its program wrote no checkpoint after the last.
    fn note_all_done(&mut self, number: JobNumber) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Some(Progress { steps, .. }) = job.run.as_ref().map(|run| run.progress) else { return };
        if steps > job.record.checkpointed && steps <= job.record.job.total_steps.get() {
            job.record.checkpointed = steps;
        }
    }

    /// Applies the verdict on a run that is over to its job and its servers.
    fn conclude(&mut self, number: JobNumber, run: &LiveRun, verdict: Verdict) {
        if matches!(verdict, Verdict::Completed(_) | Verdict::Stopped(_)) {
            self.failed_on.remove(&number);
            for server in run.ranks.iter().map(|rank| &rank.server) {
                if let Some(server) = self.servers.get_mut(server) {
                    server.failed.clear();
                }
            }
        }
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let is_cancelled = job.record.cancelled;
        let what = match verdict {
            Verdict::Completed(reason) => return self.end_job(number, How::Completed, reason),
            Verdict::Final(reason) => return self.end_job(number, How::Failed, reason),
            Verdict::Stopped(reason) | Verdict::Lost(reason) | Verdict::Cut(reason) if is_cancelled => {
                return self.end_job(number, How::Cancelled, reason);
            }
            Verdict::Stopped(what) => what,
            Verdict::Lost(what) => self.note_lost(number, run, what),
            Verdict::Cut(what) => {
                let not_before = self.now + self.back_off(1);
                self.rest(number, not_before);
                self.note_lost(number, run, what)
            }
            Verdict::Refused(what, server) => {
                self.note_refused(number, run, (&what, &server));
                what
            }
            Verdict::Failed(what, server) => match self.note_failed(number, run, (&what, server)) {
                Some(reason) => return self.end_job(number, How::Failed, reason),
                None => what,
            },
        };
        if let Some(job) = self.jobs.get_mut(&number) {
            job.record.last_end = Some(what);
        }
        self.record_job(number);
    }

    /// Notes that a run was lost. Returns the reason.
    fn note_lost(&mut self, number: JobNumber, run: &LiveRun, what: String) -> String {
        let has_run = run.has_run();
        let text = if has_run && self.settings.front_door {
            format!("{} is over, and the steps that are presumed of it stay: {what}", run.run)
        } else if has_run {
            format!("of {} nothing counts since the last checkpoint that was reported: {what}", run.run)
        } else {
            format!("{} was not reported to run: {what}", run.run)
        };
        self.warn(text, Some(number), None);
        what
    }

    /// Notes that a job failed: it waits, or is given up. Answers why, if it is given up.
    fn note_failed(
        &mut self,
        number: JobNumber,
        run: &LiveRun,
        (what, server): (&str, Option<String>),
    ) -> Option<String> {
        let job = self.jobs.get_mut(&number)?;
        let was_unexecutable = std::mem::replace(&mut job.was_unexecutable, run.is_unexecutable());
        let is_nowhere = was_unexecutable && job.was_unexecutable;
        job.record.failures += 1;
        let (at, failures) = (self.now, job.record.failures);
        self.event(at, &Event::Failure { at, id: number.in_log(), attempts: failures });
        self.warn(format!("{} failed: {what}", run.run), Some(number), server.clone());
        if let Some(server) = server {
            self.note_failure_on(&server, number);
        }
        if failures >= self.settings.failures_max {
            return Some(format!("it failed {failures} times in a row; the last time {what}"));
        }
        if is_nowhere {
            return Some(format!("its program could not be executed twice in a row; the last time {what}"));
        }
        let not_before = at + self.back_off(failures);
        self.rest(number, not_before);
        None
    }

    /// Notes that a server could not start a job: this is no failure of the job, and counts for the server only. The job waits as
    /// after a first failure.
    fn note_refused(&mut self, number: JobNumber, run: &LiveRun, (what, server): (&str, &str)) {
        let text = format!("{} is no failure of the job: {what}", run.run);
        self.warn(text, Some(number), Some(server.to_owned()));
        self.suspect(server, number);
        let not_before = self.now + self.back_off(1);
        self.rest(number, not_before);
    }

    /// Counts a failure for a server, which is drained when different jobs failed on it one after the other. A job that has failed
    /// on another server, too, is at fault itself, and counts for none.
    fn note_failure_on(&mut self, name: &str, number: JobNumber) {
        let servers = self.failed_on.entry(number).or_default();
        servers.insert(name.to_owned());
        if servers.len() > 1 {
            return self.acquit_servers(number);
        }
        self.suspect(name, number);
    }

    /// Counts a job among the last different ones that failed on a server, which is drained when there are too many of them.
    fn suspect(&mut self, name: &str, number: JobNumber) {
        let most = self.settings.server_failures_max;
        let Some(server) = self.servers.get_mut(name) else { return };
        if !server.failed.contains(&number) {
            server.failed.push_back(number);
        }
        if server.failed.len() >= most && server.record.drained.is_none() {
            let failed = server.failed.clone();
            let reason = format!("{most} different jobs failed on it in a row");
            self.set_drained(name, Some(reason));
            if let Some(server) = self.servers.get_mut(name) {
                (server.failed, server.is_suspected) = (failed, true);
            }
        }
    }

    /// Removes a job that is at fault itself from the failures of its servers; a server that is drained only because of it is given
    /// jobs again.
    fn acquit_servers(&mut self, number: JobNumber) {
        let most = self.settings.server_failures_max;
        let mut acquitted = Vec::new();
        for (name, server) in &mut self.servers {
            let n_failed = server.failed.len();
            server.failed.retain(|failed| *failed != number);
            if server.is_suspected && server.failed.len() < n_failed.min(most) {
                acquitted.push(name.clone());
            }
        }
        for name in acquitted {
            let text =
                format!("job {number} failed on another server, too: that is not counted against {name}");
            self.note(text, Some(number), Some(name.clone()));
            self.set_drained(&name, None);
        }
    }

    /// Ends a job.
    pub(super) fn end_job(&mut self, number: JobNumber, how: How, reason: String) {
        let Some(job) = self.jobs.remove(&number) else { return };
        self.accounts.close(job.id);
        self.failed_on.remove(&number);
        self.scheduler.finish(job.id);
        if self.timeline.is_none() {
            // Without rounds, its number is never forgotten later, and nothing else mentions it: it has had no workers.
            self.numbers.remove(&job.id);
        }
        self.is_vacant = true;
        self.end_record(job.record, how, reason);
    }

    /// Puts on disk, and into the log, that a job is over.
    pub(super) fn end_record(&mut self, mut record: JobRecord, how: How, reason: String) {
        let (at, number) = (self.now, record.number);
        if !std::mem::replace(&mut record.arrived, true) {
            let id = number.in_log();
            self.event(at, &Event::Arrival { now: at, id, measured: true, job: &record.job });
        }
        let (id, measured) = (number.in_log(), true);
        let ended = &record.job;
        let event = if how == How::Completed {
            let isolated = Seconds::ZERO;
            Event::Completion { at, id, measured, job: ended, isolated }
        } else {
            Event::Dropped { at, id, measured, job: ended }
        };
        self.event(at, &event);
        match how {
            How::Completed => self.counters.completed += 1,
            How::Failed => self.counters.failed += 1,
            How::Cancelled => {}
        }
        let text = match how {
            How::Completed => format!("job {number} is done: {reason}"),
            How::Failed => format!("job {number} is given up: {reason}"),
            How::Cancelled if reason == BY_ITS_USER => format!("job {number} is cancelled"),
            How::Cancelled => format!("job {number} is cancelled: {reason}"),
        };
        self.note(text, Some(number), None);
        record.outcome = Some(Outcome { at, how, reason });
        self.put_over(record);
    }

    /// Whether a rank is to be among a server's leases: it may be there, or is to be started.
    pub(super) fn is_ordered(known: &Known) -> bool {
        *known != Known::Lost && known.end().is_none()
    }
}

#[cfg(test)]
mod tests;
