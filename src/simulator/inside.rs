//! The inside of a round under the options of a [live](super::Live) cluster: the next round is decided ahead of its
//! end, workers of jobs that are done get others, and jobs that have lost their workers stop.

use std::ops::ControlFlow;

use super::event::Observer;
use super::live::Refill;
use super::options::{ExecutionTime, PairEnd};
use super::outcome::{SimulationError, Step};
use super::progress::{Fate, Running};
use super::simulation::Simulation;
use super::snapshot::EventSnapshot;
use crate::index::{Id, JobId, WorkerId};
use crate::scheduler::Decided;
use crate::scheduler::driver::Driver;
use crate::units::Seconds;
use crate::workload::Combination;

impl Simulation {
    /// Moves on from the start of a round that ends at `until` at the latest: to its end, or to the instant at which the next one
    /// is decided.
    ///
    /// Breaks with the end of the simulation, if there is nothing to move on to.
    ///
    /// # Errors
    /// If the policy fails, or a job that arrives cannot be taken in.
    pub(super) fn advance_inside(
        &mut self,
        until: f64,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<Step>, SimulationError> {
        if !self.resolves(until) {
            return Ok(ControlFlow::Break(Step::Unresolved));
        }
        self.clock.round_base = self.clock.round_end.unwrap_or(self.clock.round_base);
        let look_ahead = self.setting.options.live.look_ahead.get();
        let ahead = (until - look_ahead).max(self.clock.now);
        self.refill_before(ahead, observer)?;
        if look_ahead > 0.0 && !self.is_finished() {
            self.clock.now = ahead;
            self.end_slices_by(ahead, observer);
            self.complete_members(ahead, observer);
            self.clock.is_ahead = !self.is_finished();
        }
        if !self.clock.is_ahead {
            let latest = self.running.iter().map(|slice| slice.end).fold(self.clock.now, f64::max);
            self.reach_end(if look_ahead > 0.0 { until } else { latest });
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Ends the round at an instant.
    fn reach_end(&mut self, at: f64) {
        self.clock.now = at;
        self.clock.round_end = Some(at);
        (self.clock.until, self.clock.is_ahead) = (None, false);
    }

    /// Ends this round after the next one was decided ahead. True if all measured jobs are done.
    pub(super) fn end_round(&mut self, observer: &mut dyn Observer) -> bool {
        self.reach_end(self.clock.until.unwrap_or(self.clock.now));
        self.end_slices(observer);
        self.is_finished()
    }

    /// Ends the slices that are over by an instant.
    fn end_slices_by(&mut self, at: f64, observer: &mut dyn Observer) {
        let running = std::mem::take(&mut self.running);
        let (over, later): (Vec<Running>, Vec<Running>) =
            running.into_iter().partition(|slice| slice.end <= at);
        self.running = over;
        self.end_slices(observer);
        self.running = later;
    }

    /// Completes members of pairs that are done by an instant while the other runs on.
    fn complete_members(&mut self, at: f64, observer: &mut dyn Observer) {
        if self.setting.options.semantics.pair_end == PairEnd::Later {
            return;
        }
        for slice in self.running.clone() {
            for (job, part) in slice.jobs.members().zip(slice.parts) {
                if slice.jobs.is_pair()
                    && slice.fate == Fate::Succeeds
                    && part.end <= at
                    && let Some(position) = self.table.find(job)
                    && self.table.jobs[position].progress.steps_remaining() <= part.steps
                {
                    self.progress(position, part.steps, (part.end, false), observer);
                }
            }
        }
    }

    /// Ends slices before an instant, one after another if one leaves its workers idle, and gives idle workers to waiting jobs; to
    /// jobs that arrive, too, if they need not wait for the next round.
    fn refill_before(&mut self, limit: f64, observer: &mut dyn Observer) -> Result<(), SimulationError> {
        let refill = self.setting.options.live.refill;
        if refill == Refill::Never {
            return Ok(());
        }
        loop {
            let arrival = self.arrivals.next_arrival().map(Seconds::get).filter(|_| refill == Refill::AtOnce);
            let next = self.next_vacancy().into_iter().chain(arrival).min_by(f64::total_cmp);
            let Some(at) = next.filter(|at| *at < limit) else { return Ok(()) };
            self.clock.now = self.clock.now.max(at);
            self.end_slices_by(at, observer);
            if self.is_finished() {
                return Ok(());
            }
            while arrival.is_some() && !self.take_arrivals(observer)? {}
            self.refill(observer)?;
        }
    }

    /// The first end of a running slice with which all its jobs are done.
    fn next_vacancy(&self) -> Option<f64> {
        let is_done = |job: JobId, steps: f64| {
            self.table.get(job).is_none_or(|active| active.progress.steps_remaining() <= steps)
        };
        let leaves = |slice: &&Running| {
            let mut members = slice.jobs.members().zip(slice.parts);
            slice.fate == Fate::Succeeds && members.all(|(job, part)| is_done(job, part.steps))
        };
        self.running.iter().filter(leaves).map(|slice| slice.end).min_by(f64::total_cmp)
    }

    /// Gives idle workers to waiting jobs, until the round ends.
    fn refill(&mut self, observer: &mut dyn Observer) -> Result<(), SimulationError> {
        let n_new = self.grant_idle(observer)?;
        let n_leases = self.driver.n_leases();
        self.vigil.leased(n_new);
        self.count_links();
        let length = self.clock.until.unwrap_or(self.clock.now) - self.clock.now;
        for index in n_leases - n_new..n_leases {
            self.start_slice(index, length, observer);
        }
        Ok(())
    }

    /// Grants leases of idle workers to waiting jobs. Returns the number of new leases, which follow all others.
    fn grant_idle(&mut self, observer: &mut dyn Observer) -> Result<usize, SimulationError> {
        let now = self.now();
        if self.setting.options.live.refill != Refill::AtOnce {
            let Driver::Mechanized(rounds) = &mut self.driver else { return Ok(0) };
            return Ok(rounds.refill(now));
        }
        let shown = self.project(now);
        let mut snapshot = EventSnapshot { now, table: &mut self.table, cluster: &self.cluster, observer };
        let Driver::Mechanized(rounds) = &mut self.driver else { return Ok(0) };
        let (decided, n_new) = rounds.refill_with_arrivals(&mut snapshot, None);
        self.unproject(shown);
        match decided {
            Decided::Failed { error } => Err(self.at_boundary(error)),
            _ => Ok(n_new),
        }
    }

    /// Gives the workers of leases without a job to other jobs, in the round that is about to start: their jobs have
    /// completed since it was decided.
    pub(super) fn refill_emptied(&mut self, observer: &mut dyn Observer) -> Result<(), SimulationError> {
        if self.setting.options.live.refill != Refill::Never {
            self.grant_idle(observer)?;
        }
        Ok(())
    }

    /// Shows the policy and the mechanism the running slices, with their time as it will be at `until` and the steps done by now.
    /// Returns the state that [`unproject`](Self::unproject) needs.
    pub(super) fn project(&mut self, until: Seconds) -> Vec<(usize, f64)> {
        let Driver::Mechanized(rounds) = &mut self.driver else { return Vec::new() };
        let (now, until) = (self.clock.now, until.get());
        let mut shown = Vec::new();
        for slice in &self.running {
            let base = match self.setting.options.semantics.execution_time {
                ExecutionTime::SinceLastRound if !slice.is_refilled => self.clock.round_base,
                _ => slice.start,
            };
            rounds.mechanism_mut().project(slice.jobs, slice.worker_type, Seconds::new(until - base));
            let run = (now - slice.start - slice.overhead).max(0.0);
            for (job, part) in slice.jobs.members().zip(slice.parts) {
                if let Some(position) = self.table.find(job) {
                    let progress = &mut self.table.jobs[position].progress;
                    shown.push((position, progress.steps_run));
                    progress.steps_run += (part.throughput * run).floor().min(part.steps);
                }
            }
        }
        shown
    }

    /// Takes back the steps that were shown; they count when the slices have ended.
    pub(super) fn unproject(&mut self, shown: Vec<(usize, f64)>) {
        for (position, steps_run) in shown {
            self.table.jobs[position].progress.steps_run = steps_run;
        }
    }

    /// Stops jobs that have lost their workers and are not done. Until they have stopped, neither they can start elsewhere, nor
    /// other jobs on the workers.
    pub(super) fn stop_lost(&mut self) {
        let stop = self.setting.options.live.stop.get();
        if stop <= 0.0 {
            return;
        }
        let until = self.clock.now + stop;
        self.free_at.resize(self.driver.workers().len(), 0.0);
        let (mut lost, free_at) = (Vec::new(), &mut self.free_at);
        self.driver.each_lost(&self.table, &mut |lease| {
            lost.extend(lease.combination.members());
            for worker in lease.workers {
                free_at[worker.index()] = until;
            }
        });
        for position in lost.into_iter().filter_map(|job| self.table.find(job)).collect::<Vec<_>>() {
            self.table.jobs[position].progress.stops_until = until;
        }
    }

    /// The instant from which jobs can run on workers: no job stops there any more, and they have stopped elsewhere.
    pub(super) fn free_from(&self, jobs: Combination<JobId>, workers: &[WorkerId]) -> f64 {
        if self.free_at.is_empty() {
            return self.clock.now;
        }
        let of_workers = workers.iter().map(|worker| self.free_at[worker.index()]);
        let of_jobs =
            jobs.members().filter_map(|job| self.table.get(job)).map(|job| job.progress.stops_until);
        of_workers.chain(of_jobs).fold(self.clock.now, f64::max)
    }

    /// The members of a combination that are still here: after a decision ahead some may have completed.
    pub(super) fn left_of(&self, jobs: Combination<JobId>) -> Option<Combination<JobId>> {
        let mut here = jobs.members().filter(|job| self.table.find(*job).is_some());
        let first = here.next()?;
        Some(here.next().map_or(Combination::single(first), |second| Combination::pair(first, second)))
    }

    /// Takes the measured throughput of a job that ran alone. Returns whether that changes the throughputs that policies are shown.
    pub(super) fn measure(&mut self, slice: &Running) -> bool {
        let part = &slice.parts[0];
        let position = self.table.find_again(slice.jobs.first(), slice.positions[0]);
        // The next round's decision, made ahead, may have resized the job, so that policies are shown its throughput on another
        // number of workers.
        let is_so_large =
            |position: &usize| self.table.jobs[*position].progress.job.scale_factor == slice.n_workers;
        slice.is_measured
            && part.steps > 0.0
            && position
                .filter(is_so_large)
                .is_some_and(|position| self.table.measure(position, slice.worker_type, part.throughput))
    }
}
