//! Shares run exactly, without rounds; the difference to rounds is the cost of the mechanism.
//!
//! Between two re-computations every combination runs on every type for its share of the time. A change is
//! taken into account when the reset interval is over, or at once if a job without a share could use workers
//! that are not fully allocated.

use serde::{Deserialize, Serialize};

use super::event::{Event, Observer, Slice};
use super::outcome::{SimulationError, Step};
use super::simulation::Simulation;
use super::snapshot::EventSnapshot;
use crate::index::{Id, JobId, WorkerTypeId};
use crate::scheduler::driver::Driver;
use crate::units::{Seconds, Steps};
use crate::workload::Combination;

/// The shares that are running.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fluid {
    /// Combinations and their shares: [type].
    rows: Vec<(Combination<JobId>, Vec<f64>)>,
}

/// The flow of a row on one type: steps/s of the members while it runs, and its share.
struct Flow {
    row: usize,
    worker_type: WorkerTypeId,
    share: f64,
    throughput: [f64; 2],
}

impl Simulation {
    /// Goes on to the next arrival, completion, change or re-computation.
    pub(super) fn flow(&mut self, observer: &mut dyn Observer) -> Result<Step, SimulationError> {
        if self.is_finished() {
            return Ok(Step::Finished);
        }
        if !self.take_in(observer)? {
            return Ok(Step::Advanced);
        }
        if self.table.jobs.is_empty() {
            let Some(next) = self.next_event() else { return Ok(Step::Finished) };
            if !self.resolves(next.get()) {
                return Ok(Step::Unresolved);
            }
            let (from, until) = (self.now(), next.max(self.now()));
            self.clock.now = until.get();
            observer.observe(&Event::Idle { from, until });
            return Ok(Step::Advanced);
        }
        self.share(observer)?;
        let flows = self.flows();
        let mut rates = vec![0.0; self.table.jobs.len()];
        for flow in &flows {
            for (job, throughput) in self.rows()[flow.row].0.members().zip(flow.throughput) {
                if let Some(position) = self.table.find(job) {
                    rates[position] += flow.share * throughput;
                }
            }
        }
        let completion = |(position, rate): (usize, &f64)| {
            (*rate > 0.0).then(|| self.table.jobs[position].progress.steps_remaining() / rate)
        };
        let first = rates.iter().enumerate().filter_map(completion).min_by(f64::total_cmp);
        let to = |at: f64| (at - self.clock.now).max(0.0);
        let event = self.next_event().map(|at| to(at.get()));
        let reset = self.next_reset().map(to);
        let Some(span) = [first, event, reset].into_iter().flatten().min_by(f64::total_cmp) else {
            self.note_stalled();
            return Ok(Step::Stalled);
        };
        if !self.resolves(self.clock.now + span) {
            return Ok(Step::Unresolved);
        }
        self.vigil.leased(flows.len());
        self.run_flows(&flows, &rates, span, observer);
        self.clock.round += 1;
        Ok(if self.is_finished() { Step::Finished } else { Step::Advanced })
    }

    fn rows(&self) -> &[(Combination<JobId>, Vec<f64>)] {
        self.fluid.as_ref().map_or(&[], |fluid| &fluid.rows)
    }

    /// Asks the policy if a re-computation is due.
    fn share(&mut self, observer: &mut dyn Observer) -> Result<(), SimulationError> {
        let Driver::Mechanized(rounds) = &self.driver else { return Ok(()) };
        let now = self.now();
        let mechanism = rounds.mechanism();
        // Compared by the sum that `flow` uses: `now − last` could round to just under the interval for ever.
        let rested = self.next_reset().is_some_and(|at| now.get() >= at);
        let due = rested || mechanism.due(now);
        if !(due || mechanism.has_changed() && self.waits_beside_unshared()) {
            return Ok(());
        }
        let Driver::Mechanized(rounds) = &mut self.driver else { return Ok(()) };
        let mut snapshot = EventSnapshot { now, table: &mut self.table, cluster: &self.cluster, observer };
        let decided = rounds.recompute(&mut snapshot);
        let (decision, ids) = decided.map_err(|error| self.at_boundary(error))?;
        let allocation = &decision.allocation;
        let row = |(id, jobs): (_, &Combination<_>)| {
            (jobs.map(|index| ids[index]), allocation.shares().row(id).to_vec())
        };
        self.fluid = Some(Fluid { rows: allocation.combinations().enumerate().map(row).collect() });
        Ok(())
    }

    /// The instant at which a change that is held back will count, s.
    fn next_reset(&self) -> Option<f64> {
        let Driver::Mechanized(rounds) = &self.driver else { return None };
        let mechanism = rounds.mechanism();
        let last = mechanism.last_reset().filter(|_| mechanism.has_changed())?;
        Some(last.get() + mechanism.options().reset_interval.get())
    }

    /// Whether a job without a share could use workers that are not fully allocated.
    fn waits_beside_unshared(&self) -> bool {
        let mut left: Vec<f64> = self.cluster.types().iter().map(|kind| f64::from(kind.n_workers)).collect();
        for (jobs, shares) in self.rows() {
            if let Some(active) = jobs.members().find_map(|job| self.table.get(job)) {
                for (left, share) in left.iter_mut().zip(shares) {
                    *left -= share * f64::from(active.progress.job.scale_factor);
                }
            }
        }
        let shared = |job: JobId| {
            let mut of_job = self.rows().iter().filter(|(jobs, _)| jobs.contains(job));
            of_job.any(|(_, shares)| shares.iter().any(|share| *share > 0.0))
        };
        self.table.jobs.iter().any(|active| {
            let needs = f64::from(active.progress.job.scale_factor);
            let fits = left.iter().zip(&active.alone).any(|(left, speed)| *speed > 0.0 && *left >= needs);
            fits && !shared(active.progress.id)
        })
    }

    /// The flows of all rows with a job that is still here. A pair that lost a member runs on as the other alone.
    fn flows(&self) -> Vec<Flow> {
        let mut flows = Vec::new();
        for (row, (jobs, shares)) in self.rows().iter().enumerate() {
            let active: Vec<_> = jobs.members().map(|job| self.table.get(job)).collect();
            for (column, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let worker_type = WorkerTypeId::from_index(column);
                let throughput = match active.as_slice() {
                    [Some(alone)] | [Some(alone), None] => [alone.alone[column], 0.0],
                    [None, Some(alone)] => [0.0, alone.alone[column]],
                    [Some(one), Some(other)] => {
                        self.table.colocated(one, other, worker_type).unwrap_or_default()
                    }
                    _ => continue,
                };
                flows.push(Flow { row, worker_type, share: *share, throughput });
            }
        }
        flows
    }

    fn run_flows(&mut self, flows: &[Flow], rates: &[f64], span: f64, observer: &mut dyn Observer) {
        let start = self.now();
        let end = Seconds::new(self.clock.now + span);
        for flow in flows {
            let jobs = self.rows()[flow.row].0;
            let active = jobs.members().find_map(|job| self.table.get(job));
            let time = flow.share * span;
            observer.observe(&Event::Slice(Slice {
                jobs,
                incarnations: None,
                worker_type: flow.worker_type,
                n_workers: active.map_or(0, |active| active.progress.job.scale_factor),
                start,
                end,
                time: Seconds::new(time),
                overhead: Seconds::ZERO,
                price: self.cluster.types()[flow.worker_type].price,
                steps: flow.throughput.map(|throughput| Steps::new(throughput * time)),
                throughput: flow.throughput,
                succeeded: true,
            }));
        }
        for flow in flows {
            let jobs = self.rows()[flow.row].0;
            let alone = jobs.members().find_map(|job| self.table.find(job)).filter(|_| !jobs.is_pair());
            let is_new = alone.is_some_and(|position| {
                self.setting.options.live.measured
                    && self.table.measure(position, flow.worker_type, flow.throughput[0])
            });
            if self.table.observe(jobs, flow.worker_type, flow.throughput) || is_new {
                self.driver.note_change();
            }
        }
        self.clock.now = end.get();
        for position in (0..rates.len()).rev() {
            let progress = &self.table.jobs[position].progress;
            let remaining = progress.steps_remaining();
            let done = rates[position] > 0.0 && remaining / rates[position] <= span;
            let steps = if done { remaining } else { rates[position] * span };
            self.progress(position, steps, (end.get(), true), observer);
        }
    }
}
