//! Observations of a partial decision: their numbers, their actions and the meaning of actions.

use super::features::{MOST, N_FEATURES, of_pair, of_stop};
use super::partial_decision::PartialDecision;
use apportion::index::{JobIndex, WorkerTypeId};
use apportion::problem::Problem;

/// Worker types that a window has actions for.
pub const N_WINDOW_TYPES: usize = 3;

/// Numbers in a window for each job.
pub const N_WINDOW_ROWS: usize = 9;

/// A kind of observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservationKind {
    /// A matrix [[`N_WINDOW_ROWS`] × slots], row-major, zeros where there is no job. A job's column has its speeds on three types
    /// over its fastest (DL2 has its job type instead), ln of 1 + hours since arrival, / 4, ln of the remaining hours on its
    /// fastest type, / 4, its dominant share and its parts of the first and of the second type in the last decision, and log₂ of
    /// its workers, / 3. DL2 has the shares in this decision; here a job that has been given its workers leaves the window. Types
    /// are in order of speed.
    Window {
        /// The number of jobs in view.
        n_slots: usize,
    },
    /// A row of [`N_FEATURES`] for each job on each type, then one for *stop*.
    Pairs {
        /// The number of jobs in view, with rows of zeros where there are fewer; none = all jobs, without such rows.
        n_slots: Option<usize>,
    },
}

/// An observation of a partial decision: its jobs and types, in order of their actions.
///
/// It contains jobs that can still be given workers, by arrival. If they outnumber the slots, the first half of the slots
/// has the earliest and the second half the latest, so that both old and new jobs are in view. A job that is given its
/// workers makes room for another, so every job comes into view in turn.
#[derive(Clone, Debug)]
pub struct Observation {
    kind: ObservationKind,
    jobs: Vec<JobIndex>,
    types: Vec<WorkerTypeId>,
}

impl ObservationKind {
    /// The observation of a partial decision.
    pub fn observation(self, problem: &Problem, partial: &PartialDecision) -> Observation {
        let mut jobs: Vec<JobIndex> = partial.open(problem).collect();
        let n_slots = match self {
            Self::Window { n_slots } | Self::Pairs { n_slots: Some(n_slots) } => n_slots,
            Self::Pairs { n_slots: None } => jobs.len(),
        };
        if jobs.len() > n_slots {
            let n_late = n_slots / 2;
            jobs.drain(n_slots - n_late..jobs.len() - n_late);
        }
        let types = match self {
            Self::Window { .. } => partial.types().iter().copied().take(N_WINDOW_TYPES).collect(),
            Self::Pairs { .. } => problem.cluster().types().ids().collect(),
        };
        Observation { kind: self, jobs, types }
    }
}

impl Observation {
    /// Whether the observation has no jobs.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn n_types(&self) -> usize {
        match self.kind {
            ObservationKind::Window { .. } => N_WINDOW_TYPES,
            ObservationKind::Pairs { .. } => self.types.len(),
        }
    }

    fn n_slots(&self) -> usize {
        match self.kind {
            ObservationKind::Window { n_slots } | ObservationKind::Pairs { n_slots: Some(n_slots) } => {
                n_slots
            }
            ObservationKind::Pairs { n_slots: None } => self.jobs.len(),
        }
    }

    /// The number of actions: each job on each type, and *stop*, the last.
    pub fn n_actions(&self) -> usize {
        self.n_slots() * self.n_types() + 1
    }

    /// Length of the observation.
    pub fn observation_length(&self) -> usize {
        match self.kind {
            ObservationKind::Window { n_slots } => N_WINDOW_ROWS * n_slots,
            ObservationKind::Pairs { .. } => self.n_actions() * N_FEATURES,
        }
    }

    /// Writes every number of the observation; magnitudes are at most [`bound`](Self::bound).
    ///
    /// # Panics
    /// If `observation` is not of [`observation_length`](Self::observation_length).
    pub fn observe(&self, problem: &Problem, partial: &PartialDecision, observation: &mut [f32]) {
        assert_eq!(observation.len(), self.observation_length(), "room for what is seen");
        observation.fill(0.0);
        if let ObservationKind::Window { n_slots } = self.kind {
            for (slot, job) in self.jobs.iter().enumerate() {
                for (row, number) in self.column(problem, partial, *job).into_iter().enumerate() {
                    observation[row * n_slots + slot] = (number as f32).clamp(-MOST, MOST);
                }
            }
            return;
        }
        let (pairs, stop) = observation.split_at_mut((self.n_actions() - 1) * N_FEATURES);
        of_stop(partial, stop);
        for (action, row) in pairs.chunks_exact_mut(N_FEATURES).enumerate() {
            if let Some((job, kind)) = self.decode(action)
                && problem.throughput()[(job, kind)] > 0.0
            {
                of_pair(problem, partial, (job, kind), row);
            }
        }
    }

    /// A job's column of a window.
    fn column(&self, problem: &Problem, partial: &PartialDecision, job: JobIndex) -> [f64; N_WINDOW_ROWS] {
        let (active, facts) = (&problem.jobs()[job], partial.facts(job));
        let workers = f64::from(active.scale_factor);
        let type_at = |rank: usize| self.types.get(rank).copied();
        let speed =
            |rank| type_at(rank).map_or(0.0, |kind| problem.throughput()[(job, kind)] / facts.fastest);
        let part = |kind: WorkerTypeId| workers / f64::from(problem.cluster().types()[kind].n_workers.max(1));
        let held_at = |rank| {
            let held = facts.held.filter(|held| type_at(rank) == Some(*held));
            held.map_or(0.0, part)
        };
        [
            speed(0),
            speed(1),
            speed(2),
            (active.elapsed.get() / 3600.0).ln_1p() / 4.0,
            facts.hours.ln() / 4.0,
            facts.held.map_or(0.0, part),
            held_at(0),
            held_at(1),
            workers.log2() / 3.0,
        ]
    }

    /// Writes the mask of allowed actions: jobs on types where they fit; and *stop*, once a job has been given workers, so that
    /// jobs do not wait for ever in an empty cluster.
    ///
    /// # Panics
    /// If `mask` is not of [`n_actions`](Self::n_actions).
    pub fn mask(&self, problem: &Problem, partial: &PartialDecision, mask: &mut [bool]) {
        assert_eq!(mask.len(), self.n_actions(), "room for the actions");
        mask.fill(false);
        for (action, allowed) in mask.iter_mut().enumerate() {
            *allowed = self.decode(action).is_some_and(|(job, kind)| partial.fits(problem, job, kind));
        }
        if let Some(stop) = mask.last_mut() {
            *stop = partial.has_placed();
        }
    }

    /// The job and type of an action; none for *stop*, and for slots without a job or a type.
    pub fn decode(&self, action: usize) -> Option<(JobIndex, WorkerTypeId)> {
        let n_types = self.n_types().max(1);
        if action + 1 == self.n_actions() {
            return None;
        }
        Some((*self.jobs.get(action / n_types)?, *self.types.get(action % n_types)?))
    }

    /// The action of a job on a type, if both are in view.
    pub fn encode(&self, job: JobIndex, kind: WorkerTypeId) -> Option<usize> {
        let slot = self.jobs.iter().position(|other| *other == job)?;
        Some(slot * self.n_types() + self.types.iter().position(|other| *other == kind)?)
    }

    /// The largest magnitude of a number in an observation.
    pub fn bound() -> f32 {
        MOST
    }
}
