//! Workers that fail or are slow, jobs that fail, measurements that err: all drawn from named streams.

use serde::{Deserialize, Serialize};

use super::options::{Faults, WorkerFaults};
use crate::index::{Id, JobId, WorkerId};
use crate::mechanism::Workers;
use crate::units::Seconds;
use crate::workload::random::{SeedStreams, Stream};

/// The state of faults: workers that are down or slow, and the next failures.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultState {
    seed: SeedStreams,
    /// The instant at which each worker next fails, or is repaired if it is down, s: [worker]; empty if none fails.
    turns: Vec<f64>,
    worker_draws: Stream,
    job_draws: Stream,
    /// The speed of each worker, 1 = full: [worker]; empty if all run at full speed.
    speeds: Vec<f64>,
    speed_draws: Stream,
}

/// A failure or repair of a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) at: Seconds,
    pub(super) worker: WorkerId,
    /// Whether the worker is up from then on.
    pub(super) up: bool,
}

impl FaultState {
    pub(super) fn new(faults: &Faults, workers: &Workers, seed: u64) -> Self {
        let seed = SeedStreams::new(seed);
        let mut state = Self {
            seed,
            turns: Vec::new(),
            worker_draws: seed.stream("worker_failures"),
            job_draws: seed.stream("job_failures"),
            speeds: Vec::new(),
            speed_draws: seed.stream("stragglers"),
        };
        if let Some(faults) = &faults.workers {
            let mean = faults.mean_time_between_failures.get();
            state.turns = (0..workers.len()).map(|_| state.worker_draws.exponential(mean)).collect();
        }
        state.draw_speeds(faults, workers.len());
        state
    }

    fn draw_speeds(&mut self, faults: &Faults, n_workers: usize) {
        if let Some(stragglers) = &faults.stragglers {
            let draws = &mut self.speed_draws;
            self.speeds = (0..n_workers).map(|_| 1.0 - stragglers.spread * draws.uniform()).collect();
        }
    }

    /// Starts a round, in which speeds may be drawn anew.
    pub(super) fn start_round(&mut self, faults: &Faults, round: u64) {
        if let Some(every) = faults.stragglers.and_then(|stragglers| stragglers.redraw_rounds)
            && round > 0
            && every > 0
            && round.is_multiple_of(every)
        {
            self.draw_speeds(faults, self.speeds.len());
        }
    }

    /// The speed of the slowest of some workers, 1 = full.
    pub(super) fn speed(&self, workers: &[WorkerId]) -> f64 {
        if self.speeds.is_empty() {
            return 1.0;
        }
        workers.iter().map(|worker| self.speeds[worker.index()]).fold(1.0, f64::min)
    }

    /// The instant at which the first of some workers fails.
    pub(super) fn first_failure(&self, workers: &[WorkerId]) -> Option<Seconds> {
        if self.turns.is_empty() {
            return None;
        }
        let turns = workers.iter().map(|worker| Seconds::new(self.turns[worker.index()]));
        turns.min_by(Seconds::total_cmp)
    }

    /// The next failure or repair of a worker up to `now`, after which the one that follows it is drawn.
    pub(super) fn next_turn(
        &mut self,
        faults: &WorkerFaults,
        workers: &Workers,
        now: Seconds,
    ) -> Option<Turn> {
        let index = (0..self.turns.len()).min_by(|a, b| self.turns[*a].total_cmp(&self.turns[*b]))?;
        let (at, worker) = (self.turns[index], WorkerId::from_index(index));
        if at > now.get() {
            return None;
        }
        let up = !workers.is_up(worker);
        let mean = if up { faults.mean_time_between_failures } else { faults.mean_time_to_repair }.get();
        self.turns[index] = at + self.worker_draws.exponential(mean);
        Some(Turn { at: Seconds::new(at), worker, up })
    }

    /// The instant at which the next worker that is down is repaired.
    pub(super) fn next_repair(&self, workers: &Workers) -> Option<Seconds> {
        let down = |index: &usize| !workers.is_up(WorkerId::from_index(*index));
        let repairs = (0..self.turns.len()).filter(down).map(|index| Seconds::new(self.turns[index]));
        repairs.min_by(Seconds::total_cmp)
    }

    /// Draws whether a slice fails.
    pub(super) fn job_fails(&mut self, faults: &Faults) -> bool {
        faults.jobs.probability > 0.0 && self.job_draws.uniform() < faults.jobs.probability
    }

    /// Factors on a job's throughputs as they are measured: [type]; none if they are exact.
    pub(super) fn noise(&self, faults: &Faults, job: JobId, n_types: usize) -> Vec<f64> {
        if faults.throughput_noise <= 0.0 {
            return Vec::new();
        }
        let mut draws = self.seed.stream(format!("throughput_noise/{job}"));
        (0..n_types).map(|_| draws.normal(1.0, faults.throughput_noise).max(0.05)).collect()
    }
}
