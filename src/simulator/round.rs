//! One round: the slices that run end, jobs arrive, and the slices of the next round start.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use super::event::{Event, Observer, Slice};
use super::options::ExecutionTime;
use super::outcome::{Boundary, SimulationError, Step};
use super::progress::{Conditions, Fate, Running};
use super::simulation::{EVENTS_AT_ONCE, Simulation};
use super::snapshot::EventSnapshot;
use crate::index::{Id, JobId};
use crate::policy::{Placed, PolicyError, Ran};
use crate::scheduler::active::Progress;
use crate::scheduler::direct::Start;
use crate::scheduler::driver::Driver;
use crate::scheduler::{Decided, DecisionError};
use crate::units::{DollarsPerWorkerHour, Seconds, Steps};
use crate::workload::Combination;

impl Simulation {
    /// Moves on to the end of the running round, or to the next event.
    ///
    /// Breaks with the end of the simulation, if there is nothing to move on to.
    ///
    /// # Errors
    /// As [`advance_inside`](Self::advance_inside).
    pub(super) fn advance_clock(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<Step>, SimulationError> {
        if let Some(until) = self.clock.until {
            return self.advance_inside(until, observer);
        }
        let latest = self.running.iter().map(|slice| slice.end).fold(0.0, f64::max);
        if !self.running.is_empty() && latest > 0.0 {
            if !self.resolves(latest) {
                return Ok(ControlFlow::Break(Step::Unresolved));
            }
            self.clock.round_base = self.clock.round_end.unwrap_or(self.clock.round_base);
            self.clock.round_end = Some(latest);
            self.clock.now = latest;
            return Ok(ControlFlow::Continue(()));
        }
        // The last jobs may have been done after the next round was decided.
        if self.setting.options.live.look_ahead.get() > 0.0 && self.is_finished() {
            return Ok(ControlFlow::Break(Step::Finished));
        }
        let before = self.clock.now;
        let due = self.driver.next_due().filter(|due| due.get() > before);
        if let Some(next) = self.next_event().into_iter().chain(due).min_by(Seconds::total_cmp) {
            if !self.resolves(next.get()) {
                return Ok(ControlFlow::Break(Step::Unresolved));
            }
            self.clock.now = before.max(next.get());
        } else if self.is_finished() {
            return Ok(ControlFlow::Break(Step::Finished));
        } else {
            // Nothing will happen by itself. A change that the reset interval holds back counts now.
            match &mut self.driver {
                Driver::Mechanized(rounds)
                    if rounds.mechanism().has_changed() && !self.table.jobs.is_empty() =>
                {
                    rounds.mechanism_mut().forget_reset();
                }
                _ => {
                    self.note_stalled();
                    return Ok(ControlFlow::Break(Step::Stalled));
                }
            }
        }
        if self.clock.now > before {
            let (from, until) = (Seconds::new(before), Seconds::new(self.clock.now));
            observer.observe(&Event::Idle { from, until });
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The instant of the next arrival; if jobs wait, also of the next repair, change of price, or time at which the policy wants
    /// to be asked.
    pub(super) fn next_event(&self) -> Option<Seconds> {
        let arrival = self.arrivals.next_arrival();
        if self.table.jobs.is_empty() {
            return arrival;
        }
        let price = self.setting.options.prices.get(self.clock.n_prices).map(|change| change.at);
        let repair = self.faults.next_repair(self.driver.workers());
        let asked = self.driver.asks_again_at().filter(|at| at.get() > self.clock.now);
        [arrival, repair, price, asked].into_iter().flatten().min_by(Seconds::total_cmp)
    }

    /// Ends the running slices, the latest first, equal ones by job.
    pub(super) fn end_slices(&mut self, observer: &mut dyn Observer) {
        let (mut running, mut ends) = (std::mem::take(&mut self.running), std::mem::take(&mut self.ends));
        let compare = |one: u32, other: u32| {
            let key = |index: u32| {
                let slice = &running[index as usize];
                (slice.earliness(), slice.order_of_equal_ends())
            };
            key(one).cmp(&key(other))
        };
        for index in ends.sorted(running.iter().map(Running::earliness), compare) {
            self.end_slice(&running[index as usize], observer);
        }
        running.clear();
        (self.running, self.ends) = (running, ends);
    }

    fn end_slice(&mut self, slice: &Running, observer: &mut dyn Observer) {
        let base = match self.setting.options.semantics.execution_time {
            ExecutionTime::SinceLastRound if !slice.is_refilled => self.clock.round_base,
            _ => slice.start,
        };
        let succeeded = slice.fate == Fate::Succeeds;
        let time = Seconds::new(slice.end - base);
        let counted = succeeded || slice.fate == Fate::WorkerFails || slice.fate == Fate::JobFails;
        let steps = |part: usize| Steps::new(if succeeded { slice.parts[part].steps } else { 0.0 });
        observer.observe(&Event::Slice(Slice {
            jobs: slice.jobs,
            incarnations: None,
            worker_type: slice.worker_type,
            n_workers: slice.n_workers,
            start: Seconds::new(slice.start),
            end: Seconds::new(slice.end),
            time: if counted { time } else { Seconds::ZERO },
            overhead: Seconds::new(slice.overhead),
            price: self.price_of(slice),
            steps: [steps(0), steps(1)],
            throughput: [slice.parts[0].throughput, slice.parts[1].throughput],
            succeeded,
        }));
        if counted && let Driver::Direct(direct) = &mut self.driver {
            let throughput = slice.parts.map(|part| if succeeded { part.throughput } else { 0.0 });
            let (combination, worker_type) = (slice.jobs, slice.worker_type);
            direct.note_ran(Ran { combination, worker_type, time, throughput });
        }
        self.count_time(slice, counted.then_some(time));
        match slice.fate {
            Fate::Succeeds => {
                let measured = [slice.parts[0].throughput, slice.parts[1].throughput];
                let of_pair = self.table.observe(slice.jobs, slice.worker_type, measured);
                if self.measure(slice) || of_pair {
                    self.driver.note_change();
                }
                for ((job, part), before) in slice.jobs.members().zip(&slice.parts).zip(slice.positions) {
                    let Some(position) = self.table.find_again(job, before) else { continue };
                    self.progress(position, part.steps, (part.end, !slice.jobs.is_pair()), observer);
                }
            }
            Fate::TooShort | Fate::JobFails => self.fail(slice, observer),
            Fate::WorkerFails => {}
        }
    }

    /// Records the time of a slice on its workers, if it counts.
    fn count_time(&mut self, slice: &Running, time: Option<Seconds>) {
        let Driver::Mechanized(rounds) = &mut self.driver else { return };
        let mechanism = rounds.mechanism_mut();
        if self.setting.options.live.has_inside() {
            // The mechanism's leases may be those of the next round, or of jobs that are gone.
            mechanism.record(slice.jobs, slice.worker_type, time.unwrap_or_default());
        } else if let Some(time) = time {
            mechanism.record_lease(slice.lease as usize, time);
        }
    }

    /// Adds steps to the job at a position, which may complete it.
    pub(super) fn progress(
        &mut self,
        position: usize,
        steps: f64,
        (end, alone): (f64, bool),
        observer: &mut dyn Observer,
    ) {
        let last_run = self.last_run();
        let progress = &mut self.table.jobs[position].progress;
        let before = progress.steps_run;
        progress.steps_run += steps;
        if alone {
            progress.attempts = 0;
        }
        if progress.steps_run > before {
            progress.last_run = last_run;
            let length = self.setting.options.round_length;
            let ran = (steps, progress.steps_remaining());
            self.vigil.note_steps((last_run.now, self.clock.round), ran, length);
        }
        if progress.steps_remaining() > 0.0 {
            return;
        }
        let Progress { id, measured, job, .. } = &*progress;
        let (at, isolated) = (Seconds::new(end), progress.isolated());
        observer.observe(&Event::Completion { at, id: *id, measured: *measured, job, isolated });
        self.remove(position);
    }

    /// Counts a failed slice; after too many in a row the job is removed. Failures of pairs are not counted.
    fn fail(&mut self, slice: &Running, observer: &mut dyn Observer) {
        self.driver.note_change();
        let Some(position) = self.table.find(slice.jobs.first()) else { return };
        if slice.jobs.is_pair() {
            return;
        }
        let progress = &mut self.table.jobs[position].progress;
        progress.attempts += 1;
        let Progress { id, attempts, measured, ref job, .. } = *progress;
        let at = Seconds::new(slice.end);
        observer.observe(&Event::Failure { at, id, attempts });
        if attempts >= self.setting.options.faults.jobs.attempts_max {
            observer.observe(&Event::Dropped { at, id, measured, job });
            self.remove(position);
        }
    }

    fn remove(&mut self, position: usize) {
        let gone = self.table.remove(position);
        self.note_progress();
        self.clock.n_measured_done += u32::from(gone.progress.measured);
        self.driver.remove_job(gone.progress.id);
    }

    /// Takes in the jobs that have arrived; if there are very many, only a part. True if all are taken in.
    pub(super) fn take_arrivals(&mut self, observer: &mut dyn Observer) -> Result<bool, SimulationError> {
        let now = self.now();
        for _ in 0..EVENTS_AT_ONCE {
            let Some((id, job)) = self.arrivals.take_until(now) else { return Ok(true) };
            if self.arrivals.next_arrival().is_some_and(|next| next.get() < job.arrival.get()) {
                let arrival = self.arrivals.next_arrival().unwrap_or_default();
                let job = JobId::from_index(id.index() + 1);
                return Err(SimulationError::OutOfOrder { job, arrival });
            }
            let window = self.setting.options.measure.as_ref();
            let measured = window.is_none_or(|ids| ids.contains(&(self.arrivals.n_taken() - 1)));
            observer.observe(&Event::Arrival { now, id, measured, job: &job });
            let mut progress = Progress::new(id, job, measured);
            progress.last_run = self.last_run();
            progress.noise = self.faults.noise(&self.setting.options.faults, id, self.cluster.n_types());
            let scale_factor = progress.job.scale_factor;
            self.table.add(progress, &self.setting.cluster)?;
            self.driver.add_job(&self.table, id, scale_factor);
            self.note_arrival();
        }
        Ok(false)
    }

    /// The error of a failed decision, with the instant and the jobs.
    pub(super) fn at_boundary(&self, mut error: DecisionError) -> SimulationError {
        if let DecisionError::Policy(PolicyError::Data { field, problem, .. }) = &mut error
            && field == "price"
        {
            let free = self.cluster.types().iter().filter(|kind| {
                let price = kind.price.map_or(0.0, DollarsPerWorkerHour::get);
                !(price.is_finite() && price > 0.0)
            });
            let names: Vec<&str> = free.map(|kind| kind.name.as_str()).collect();
            let _ = write!(problem, " (worker type {})", names.join(", "));
        }
        let jobs = self.table.jobs.iter().map(|active| active.progress.label()).collect();
        let place = Boundary { now: self.now(), round: self.clock.round, jobs };
        if let DecisionError::Policy(of_policy) = error {
            let worker_type = |id| format!("worker type {}", self.cluster.types()[id].name);
            let job = |id: usize| match self.table.get(JobId::from_index(id)) {
                Some(active) => format!("job {}", active.progress.label()),
                None => format!("job {id}"),
            };
            error = of_policy.named(job, worker_type).into();
        }
        SimulationError::Decision { place, error: Box::new(error) }
    }

    /// The second half of a step: asks for decisions and starts the decided leases. If the decision is made ahead, the running
    /// round ends in between.
    ///
    /// # Errors
    /// If the policy fails.
    pub fn start_round(&mut self, observer: &mut dyn Observer) -> Result<(), SimulationError> {
        self.faults.start_round(&self.setting.options.faults, self.clock.round);
        if self.clock.is_ahead {
            let until = Seconds::new(self.clock.until.unwrap_or(self.clock.now));
            let shown = self.project(until);
            let decided = self.decide(observer);
            self.unproject(shown);
            decided?;
            if self.end_round(observer) {
                return Ok(());
            }
            self.refill_emptied(observer)?;
        } else {
            self.decide(observer)?;
        }
        self.start_leases(observer);
        Ok(())
    }

    /// Starts a round with placements that the caller has decided on the view of [`look`](Self::look); the policy is not asked.
    ///
    /// # Errors
    /// If a job cannot be placed so, or the policy gives allocations.
    pub fn start_placed_round(
        &mut self,
        placed: Vec<Placed>,
        observer: &mut dyn Observer,
    ) -> Result<(), SimulationError> {
        self.faults.start_round(&self.setting.options.faults, self.clock.round);
        let taken = match &mut self.driver {
            Driver::Direct(direct) => direct.take(&mut self.table, placed),
            Driver::Mechanized(rounds) => {
                let (policy, reason) = (rounds.policy_name().to_owned(), "it does not place jobs".to_owned());
                Err(PolicyError::Undecided { policy, reason }.into())
            }
        };
        taken.map_err(|error| self.at_boundary(error))?;
        self.start_leases(observer);
        Ok(())
    }

    /// Lets the policy and the mechanism decide the next round.
    fn decide(&mut self, observer: &mut dyn Observer) -> Result<(), SimulationError> {
        let now = self.now();
        let decided = match &mut self.driver {
            Driver::Mechanized(rounds) => {
                let mut snapshot =
                    EventSnapshot { now, table: &mut self.table, cluster: &self.cluster, observer };
                match rounds.decide(&mut snapshot, None) {
                    Decided::Failed { error } => Err(error),
                    _ => Ok(()),
                }
            }
            Driver::Direct(direct) => direct.decide(&mut Start {
                round: self.clock.round,
                now,
                round_length: self.setting.options.round_length,
                table: &mut self.table,
                cluster: &self.cluster,
            }),
        };
        decided.map_err(|error| self.at_boundary(error))
    }

    /// Starts the round that was decided.
    fn start_leases(&mut self, observer: &mut dyn Observer) {
        let now = self.now();
        let n_leases = self.driver.n_leases();
        self.vigil.leased(n_leases);
        let (round, n_active) = (self.clock.round, self.table.jobs.len());
        observer.observe(&Event::RoundStarted { now, round, n_active, n_leases: self.n_filled() });
        self.clock.round += 1;
        self.driver.each_lost(&self.table, &mut |lost| {
            let (jobs, worker_type) = (lost.combination, lost.worker_type);
            observer.observe(&Event::Preempted { now, jobs, worker_type });
        });
        self.stop_lost();
        self.count_links();
        let length = self.setting.options.round_length.get();
        for index in 0..n_leases {
            self.start_slice(index, length, observer);
        }
        let live = &self.setting.options.live;
        let waits = || {
            let arrival = self.arrivals.next_arrival();
            !self.table.jobs.is_empty() || arrival.is_some_and(|arrival| arrival <= now)
        };
        // A round also passes if all its leases have lost their jobs by now.
        let passes = live.look_ahead.get() > 0.0 && n_leases > 0 && waits();
        self.clock.until =
            (live.has_inside() && (passes || !self.running.is_empty())).then_some(self.clock.now + length);
    }

    /// The number of leases of the round with a job that is still here.
    fn n_filled(&self) -> usize {
        let n_leases = self.driver.n_leases();
        if self.setting.options.live.look_ahead.get() <= 0.0 {
            return n_leases;
        }
        let is_filled = |index: &usize| self.left_of(self.driver.lease(*index).combination).is_some();
        (0..n_leases).filter(is_filled).count()
    }

    /// Counts the links in use, if they matter.
    pub(super) fn count_links(&mut self) {
        if self.setting.options.contention.is_some() {
            let has_inside = self.setting.options.live.has_inside();
            let leases = (0..self.driver.n_leases()).map(|index| self.driver.lease(index));
            let here = |jobs: Combination<JobId>| jobs.members().any(|job| self.table.find(job).is_some());
            let leases = leases.filter(|lease| !has_inside || here(lease.combination));
            self.links.count(self.driver.workers(), leases);
        }
    }

    /// Starts the slice of a lease; `length` is the rest of the round, s.
    pub(super) fn start_slice(&mut self, index: usize, length: f64, observer: &mut dyn Observer) {
        let mut lease = self.driver.lease(index);
        let now = self.clock.now;
        if self.setting.options.live.look_ahead.get() > 0.0 {
            let Some(left) = self.left_of(lease.combination) else { return };
            lease.combination = left;
        }
        observer.observe(&Event::Lease {
            now: Seconds::new(now),
            jobs: lease.combination,
            worker_type: lease.worker_type,
            workers: lease.workers,
            n_servers: lease.n_servers,
            extended: lease.extended,
        });
        let conditions = Conditions {
            options: &self.setting.options,
            table: &self.table,
            workers: self.driver.workers(),
            links: &self.links,
        };
        let position = u32::try_from(index).expect("fewer than 2^32 leases");
        let start = self.free_from(lease.combination, lease.workers).min(now + length);
        let left = length - (start - now);
        let Some(mut slice) = conditions.plan((position, &lease), (start, left), &self.faults) else {
            return;
        };
        let failure = self.faults.first_failure(lease.workers);
        if self.faults.job_fails(&self.setting.options.faults) {
            slice.fate = Fate::JobFails;
        }
        if let Some(at) = failure.filter(|at| at.get() < slice.end) {
            slice.lose_worker(at.max(Seconds::new(slice.start)));
        }
        slice.is_refilled = length < self.setting.options.round_length.get();
        self.running.push(slice);
        self.note_start(&slice);
    }

    /// Notes, for each job of a slice that starts, the data that its next slice will need.
    fn note_start(&mut self, slice: &Running) {
        let options = &self.setting.options;
        if options.preemption_cost.is_none() && options.live.start_up <= Seconds::ZERO {
            return;
        }
        for job in slice.jobs.members() {
            if let Some(position) = self.table.find(job) {
                let progress = &mut self.table.jobs[position].progress;
                progress.has_run |= options.preemption_cost.is_some();
                progress.start_up_left = slice.start_up_left;
            }
        }
    }
}
