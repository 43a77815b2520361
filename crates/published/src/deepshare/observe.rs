//! Observations and rewards of learned policies.

use crate::deepshare::{
    DEMANDS, N_MODELS, N_SERVERS, WORKERS_PER_SERVER, candidates, is_shape, looks_free, workers_on,
};
use crate::world::World;
use apportion::index::{Id, JobId, ServerId};
use apportion::spec::Fidelity;

/// The number of columns of an observation: workers of a server, then shapes of candidates.
const N_COLUMNS: usize = 2 * WORKERS_PER_SERVER as usize;

/// Length of an observation: [server × column], row-major.
pub const OBSERVATION_LEN: usize = N_SERVERS * N_COLUMNS;

/// Weight of the newest round in the mean utilization, for a span of 10 rounds.
const UTILIZATION_WEIGHT: f64 = 2.0 / 11.0;

/// Length of a server's part with [`ObservationKind::Counts`]: one for each model, and one for free workers.
const N_OF_SERVER: usize = N_MODELS + 1;

/// A kind of observation of servers and candidates.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ObservationKind {
    /// Serial numbers of models and demands, as published.
    #[default]
    Serials,
    /// Counts of each model, as numbers from 0 to 1.
    Counts,
}

impl ObservationKind {
    /// Length of an observation.
    pub const fn length(self) -> usize {
        match self {
            Self::Serials => OBSERVATION_LEN,
            Self::Counts => N_SERVERS * N_OF_SERVER + DEMANDS.len() * N_MODELS,
        }
    }

    /// The largest number in an observation; the smallest is 0.
    pub const fn most(self) -> f32 {
        match self {
            Self::Serials => (N_MODELS * DEMANDS.len()) as f32,
            Self::Counts => 1.0,
        }
    }

    /// Writes an observation.
    ///
    /// # Panics
    /// If `observation` is not of [`length`](Self::length).
    pub fn observe(self, world: &World, fidelity: Fidelity, observation: &mut [f32]) {
        match self {
            Self::Serials => observe(world, fidelity, observation),
            Self::Counts => observe_counts(world, fidelity, observation),
        }
    }
}

/// Writes the observation with a number for each model, so that a network need not tell models apart by serial numbers.
///
/// | numbers | what |
/// |---|---|
/// | 7 for each server | parts of its workers that jobs of each model hold, and the free part |
/// | 6 for each demand | 1 for the model of the candidate of that demand |
///
/// # Panics
/// If `observation` is not of the length of [`ObservationKind::Counts`].
pub fn observe_counts(world: &World, fidelity: Fidelity, observation: &mut [f32]) {
    observation.fill(0.0);
    let (of_servers, of_candidates) = observation.split_at_mut(N_SERVERS * N_OF_SERVER);
    let model = |job: JobId| world.job(job).job_type.index() / DEMANDS.len();
    for (server, row) in of_servers.chunks_exact_mut(N_OF_SERVER).enumerate() {
        let id = ServerId::from_index(server);
        let (held, free) = row.split_at_mut(N_MODELS);
        for &job in world.residents(id) {
            if !(fidelity == Fidelity::Published && world.is_ending(job)) {
                held[model(job)] += f32::from(workers_on(world, job, id)) / f32::from(WORKERS_PER_SERVER);
            }
        }
        free[0] = f32::from(looks_free(world, id, fidelity)) / f32::from(WORKERS_PER_SERVER);
    }
    for (row, candidate) in of_candidates.chunks_exact_mut(N_MODELS).zip(candidates(world)) {
        if let Some(job) = candidate {
            row[model(job)] = 1.0;
        }
    }
}

/// Writes the published observation: raw serial numbers from 0 to 18.
///
/// | columns | row r                                                                                          |
/// |---------|------------------------------------------------------------------------------------------------|
/// | 0–7     | workers of server r, filled from the left in order of placement, with the serial of their job  |
/// | 8–15    | column 8 + g − 1: the serial of the candidate that may run on r + 1 servers of g workers each   |
///
/// A serial is 1 + 3 · model + demand; 0 = free, or none.
///
/// # Panics
/// If `observation` is not of [`OBSERVATION_LEN`].
pub fn observe(world: &World, fidelity: Fidelity, observation: &mut [f32]) {
    observation.fill(0.0);
    for server in 0..N_SERVERS {
        let id = ServerId::from_index(server);
        let mut column = 0;
        for &job in world.residents(id) {
            if fidelity == Fidelity::Published && world.is_ending(job) {
                continue;
            }
            for _ in 0..workers_on(world, job, id) {
                observation[server * N_COLUMNS + column] = serial(world.job(job).job_type.index());
                column += 1;
            }
        }
    }
    for (demand, candidate) in candidates(world).into_iter().enumerate() {
        let Some(job) = candidate else { continue };
        for servers in (1..=N_SERVERS).filter(|servers| is_shape(DEMANDS[demand], *servers)) {
            let per_server = usize::from(DEMANDS[demand]) / servers;
            let column = usize::from(WORKERS_PER_SERVER) + per_server - 1;
            observation[(servers - 1) * N_COLUMNS + column] = serial(world.job(job).job_type.index());
        }
    }
}

fn serial(job_type: usize) -> f32 {
    f32::from(u16::try_from(job_type + 1).unwrap_or(u16::MAX))
}

/// Exponentially weighted mean of utilization over rounds, of span 10, with weights that add up to 1 from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UtilizationMean {
    sum: f64,
    weight: f64,
}

impl UtilizationMean {
    /// Adds a round.
    pub fn add(&mut self, utilization: f64) {
        self.sum = self.sum * (1.0 - UTILIZATION_WEIGHT) + utilization;
        self.weight = self.weight * (1.0 - UTILIZATION_WEIGHT) + 1.0;
    }

    /// The mean; 0 before any round.
    pub fn get(&self) -> f64 {
        if self.weight == 0.0 { 0.0 } else { self.sum / self.weight }
    }
}

/// The published reward of a round: −w1 · mean over placed jobs of (1 − ρ) + w2 · mean utilization of the rounds before; 0 if no
/// job is placed.
pub fn reward(world: &World, contention_weight: f64, utilization_weight: f64, utilization: f64) -> f64 {
    let placed = world.placed();
    if placed.is_empty() {
        return 0.0;
    }
    let lost: f64 = placed.iter().map(|job| 1.0 - world.retention(*job)).sum();
    -contention_weight * lost / placed.len() as f64 + utilization_weight * utilization
}
