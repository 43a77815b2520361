//! The state that a start of the scheduler takes over from an earlier one.

use std::collections::{BTreeMap, BTreeSet};

use apportion::Seconds;
use apportion::index::{Id, JobId, WorkerId, WorkerTypeId};
use apportion::scheduler::{Scheduler, SchedulerState};
use apportion::workload::Combination;

use super::Core;
use super::job::{Known, LiveJob, LiveRun, Placement};
use super::record::{How, JobRecord, ServerRecord, Stored};
use super::rounds::Timeline;
use super::server::Server;
use crate::protocol::{JobNumber, Run};

impl Core {
    /// Takes over the state of an earlier start: servers keep their workers, and jobs their progress. Runs may go on; their servers
    /// are waited for, and the first round is decided when silent servers have had their time. `knows`: whether the mechanism has
    /// the time that it was told before.
    pub(super) fn adopt(&mut self, stored: Stored, knows: bool) {
        for text in stored.set_aside {
            self.warn(text, None, None);
        }
        for record in stored.servers {
            if !self.has_place_for(&record) {
                let text = format!(
                    "the cluster is another one than before, and has no place for the workers of {}: this server has to join again",
                    record.name
                );
                self.warn(text, None, Some(record.name.clone()));
                continue;
            }
            for (place, worker) in (0u32..).zip(&record.workers) {
                self.places[worker.index()] = Some((record.name.clone(), place));
            }
            self.servers.insert(record.name.clone(), Server::new(record, self.now));
        }
        for mut record in stored.jobs {
            if let Some(run) = record.run.as_mut().filter(|_| !stored.is_clock_sure) {
                run.gone_by.clear();
            }
            self.adopt_job(record);
        }
        self.pair_up();
        for name in self.servers.keys().cloned().collect::<Vec<_>>() {
            self.give_up_ranks(&name);
        }
        self.restore_slices();
        if knows {
            self.restore_untold();
        }
        // The instants until which ranks are waited for are put on disk.
        self.record_running();
        if self.jobs.values().any(|job| job.run.is_some()) {
            let until = self.now + self.settings.silence + self.settings.look_ahead;
            self.timeline = Some(Timeline { from: self.now, until, is_decided: false });
            for job in self.jobs.values_mut() {
                if let Some(placement) = &mut job.placement {
                    placement.until = until;
                }
            }
        }
    }

    /// Whether the workers that a server had are still workers of its type, and no other server has them.
    fn has_place_for(&self, record: &ServerRecord) -> bool {
        let kinds = self.scheduler.cluster().types();
        record.workers.iter().all(|worker| {
            let kind = self.scheduler.workers().worker_type(*worker).map(|kind| &kinds[kind].name);
            kind == Some(&record.worker_type) && self.places[worker.index()].is_none()
        })
    }

    /// Takes over a job. Its run goes on if its ranks' servers still have the same workers; else it is stopped there. A job that
    /// fits no worker type waits for another start.
    fn adopt_job(&mut self, mut record: JobRecord) {
        let number = record.number;
        let name = number.to_string();
        let known = self.scheduler.find(&name).map(Ok);
        let id = match known.unwrap_or_else(|| self.scheduler.submit_as(name, record.job.clone())) {
            Ok(id) => id,
            // A job that its user cancelled does not wait to be started.
            Err(_) if record.done.is_some() => {
                let why = record.done.clone().unwrap_or_default();
                self.end_record(JobRecord { run: None, ..record }, How::Completed, why);
                return;
            }
            Err(_) if record.cancelled => {
                let record = JobRecord { run: None, ..record };
                self.end_record(record, How::Cancelled, "cancelled by its user".to_owned());
                return;
            }
            Err(error) => return self.set_unfit(record, &error),
        };
        self.numbers.insert(id, number);
        if let Some(until) = record.not_before.filter(|_| self.settings.refill) {
            self.scheduler.rest(id, until);
        }
        if let Some(run) = &mut record.run {
            let by = self.now + run.outlives;
            for (rank, _) in (0u32..).zip(&run.servers) {
                run.gone_by.entry(rank).or_insert(by);
            }
        }
        let run = record.run.as_ref().map(|known| {
            let run = Run { job: number, incarnation: record.incarnation };
            let kind = known.workers.first().and_then(|worker| self.scheduler.workers().worker_type(*worker));
            let lease = (Combination::single(id), kind.unwrap_or(WorkerTypeId::from_index(0)));
            let mut run = LiveRun::new(run, known, lease, (Known::Believed, self.now));
            if known.logged().is_none() {
                run.logged.checkpointed = record.checkpointed;
            }
            for rank in &mut run.ranks {
                let place = rank.worker.and_then(|worker| self.places.get(worker.index())?.as_ref());
                if place.is_none_or(|(server, _)| *server != rank.server) {
                    rank.worker = None;
                }
            }
            run
        });
        let placed = run.as_ref().filter(|run| !run.is_displaced());
        let placement = placed.map(|run| Placement {
            workers: run.workers(),
            worker_type: run.lease.1,
            beside: None,
            jobs: run.lease.0,
            until: self.now,
        });
        for worker in run.iter().flat_map(LiveRun::workers) {
            self.holders[worker.index()].push(number);
            self.placed[worker.index()].push(number);
        }
        self.tell_steps(id, run.as_ref(), record.checkpointed);
        let job = LiveJob { record, id, placement, run, was_unexecutable: false };
        self.jobs.insert(number, job);
        self.touched.insert(number);
    }

    /// Pairs runs that were found on the same workers, unless both were charged for their workers alone: then one of them had lost
    /// its workers to the other, as where the cluster was another one in between.
    fn pair_up(&mut self) {
        let mut by_workers: BTreeMap<Vec<WorkerId>, Vec<JobNumber>> = BTreeMap::new();
        for (number, job) in &self.jobs {
            if let Some(placement) = &job.placement {
                by_workers.entry(placement.workers.clone()).or_default().push(*number);
            }
        }
        for numbers in by_workers.into_values() {
            let [one, other] = numbers[..] else { continue };
            let is_alone = |number: &JobNumber| {
                let run = self.jobs[number].run.as_ref();
                run.and_then(|run| run.charges.last()).is_some_and(|last| !last.is_shared)
            };
            if [one, other].iter().all(is_alone) {
                continue;
            }
            let jobs = Combination::pair(self.jobs[&one].id, self.jobs[&other].id);
            for (number, beside) in [(one, other), (other, one)] {
                let Some(job) = self.jobs.get_mut(&number) else { continue };
                if let (Some(placement), Some(run)) = (&mut job.placement, &mut job.run) {
                    (placement.beside, placement.jobs, run.lease.0) = (Some(beside), jobs, jobs);
                }
            }
        }
    }

    /// Restores the time of runs that an earlier start counted and the mechanism's state on disk does not have, to be told next;
    /// time that it has ahead is deducted from later time.
    fn restore_untold(&mut self) {
        let mut untold: BTreeMap<_, Seconds> = BTreeMap::new();
        for job in self.jobs.values() {
            let (Some(run), Some(record)) = (&job.run, &job.record.run) else { continue };
            let Some(time) = record.untold else { continue };
            let account = untold.entry(run.lease);
            match record.unlogged {
                Some(_) => *account.or_insert(Seconds::ZERO) += time,
                // An earlier version noted the account of two that share with both.
                None => drop(account.or_insert(time)),
            }
        }
        for ((jobs, worker_type), time) in untold {
            self.accounts.add(jobs, worker_type, time);
        }
    }
}

/// Gives a scheduler the state in which the stored one was last, without the jobs that were over since. Returns the numbers of
/// all jobs that were in it.
///
/// # Errors
/// If the state cannot be taken, in words: then the scheduler knows of no job.
pub(super) fn restore(
    scheduler: &mut Scheduler,
    stored: &Stored,
) -> Result<BTreeMap<JobId, JobNumber>, String> {
    let Some(state) = &stored.scheduler else { return Ok(BTreeMap::new()) };
    let what = "what the policy and the mechanism knew is lost, and jobs start with equal claims";
    let state: SchedulerState = serde_json::from_str(state)
        .map_err(|error| format!("the saved state cannot be read ({error}): {what}"))?;
    scheduler.restore(&state).map_err(|error| format!("the saved state does not fit ({error}): {what}"))?;
    let number = |(id, name): (JobId, &str)| name.parse().ok().map(|number| (id, JobNumber(number)));
    let numbers: BTreeMap<_, _> = scheduler.jobs().filter_map(number).collect();
    let active: BTreeSet<JobNumber> = stored.jobs.iter().map(|job| job.number).collect();
    for (id, _) in numbers.iter().filter(|(_, number)| !active.contains(number)) {
        scheduler.finish(*id);
    }
    Ok(numbers)
}
