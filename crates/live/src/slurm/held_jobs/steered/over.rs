//! The end of a steered job, and of its runs.

use super::Steered;
use crate::protocol::End;
use crate::slurm::held_jobs::jobs::HeldJob;
use crate::slurm::held_jobs::look::Event;

impl Steered {
    /// Leaves a job that was given up as it is: its run is over when it has no nodes any more.
    pub(super) fn let_be(&mut self, job: &HeldJob) {
        self.drop_wanted(End::Stopped(None));
        if job.is_pending() {
            if let Some(wish) = self.current.as_mut().filter(|wish| job.n_restarts > wish.order.n_restarts) {
                wish.order.note_put_back(job);
            }
            self.end(End::Stopped(None));
        }
    }

    /// Notes that the job is over in Slurm, as `job` shows.
    pub(in crate::slurm::held_jobs) fn conclude(&mut self, job: &HeldJob) {
        let is_cancelled = job.state == "CANCELLED";
        if is_cancelled || self.current.is_none() {
            let what = if is_cancelled { "cancelled in Slurm".to_owned() } else { job.end_in_words() };
            self.give_up(what);
        }
        let end = match job.state.as_str() {
            "COMPLETED" => End::Exit(0),
            "CANCELLED" => End::Stopped(None),
            _ => End::Final(job.end_in_words()),
        };
        if let Some(wish) = &mut self.current {
            wish.order.note_over(job.ran_s);
        }
        self.finish(end);
    }

    /// Ends the job, its run, and each run that the scheduler wants of it, with this end.
    pub(super) fn finish(&mut self, end: End) {
        self.is_over = true;
        self.is_changed |= self.kept.end.is_none();
        self.kept.end = Some(end.clone());
        self.end(end.clone());
        self.drop_wanted(end);
    }

    /// Notes that neither Slurm nor its accounts know the job any more.
    pub(in crate::slurm::held_jobs) fn note_lost(&mut self) -> Vec<Event> {
        self.lose(format!("Slurm does not know its job {} any more, nor how it ended", self.kept.address()));
        std::mem::take(&mut self.events)
    }

    /// Ends a job that does not exist any more, for this reason.
    pub(super) fn lose(&mut self, why: String) {
        if self.current.is_none() {
            self.give_up(why.clone());
        }
        self.finish(End::Final(why));
    }

    /// Ends the job as Slurm's accounts have it.
    pub(in crate::slurm::held_jobs) fn note_accounts(&mut self, job: &HeldJob) -> Vec<Event> {
        self.conclude(job);
        std::mem::take(&mut self.events)
    }

    pub(super) fn end(&mut self, end: End) {
        if let Some(wish) = self.current.take() {
            self.last = self.is_over.then(|| wish.order.clone());
            self.events.push(Event::Ended(wish.order, end));
            self.is_changed = true;
        }
    }

    pub(super) fn drop_wanted(&mut self, end: End) {
        if let Some(wish) = self.wanted.take() {
            self.events.push(Event::Ended(wish.order, end));
        }
    }
}
