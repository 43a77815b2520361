//! What a learned policy sees, and what it is rewarded with.

use crate::index::{Id, ServerId};
use crate::world::deepshare::{
    DEMANDS, Fidelity, N_SERVERS, WORKERS_PER_SERVER, candidates, is_shape, workers_on,
};
use crate::world::state::World;

/// Columns of an observation: workers of a server, then shapes of candidates.
const N_COLUMNS: usize = 2 * WORKERS_PER_SERVER as usize;

/// Numbers of an observation: [server × column], row-major.
pub const OBSERVATION_LEN: usize = N_SERVERS * N_COLUMNS;

/// Weight of the newest round in the mean utilization: span 10.
const UTILIZATION_WEIGHT: f64 = 2.0 / 11.0;

/// Writes the published observation, raw serial numbers 0…18.
///
/// | columns | row r                                                                                          |
/// |---------|------------------------------------------------------------------------------------------------|
/// | 0–7     | workers of server r, filled from the left in order of placement, with the serial of their job  |
/// | 8–15    | column 8 + g − 1: the serial of the candidate that may run on r + 1 servers of g workers each   |
///
/// A serial is 1 + 3 · model + demand; 0 = free, or none.
pub fn observe(world: &World, fidelity: Fidelity, observation: &mut [f32; OBSERVATION_LEN]) {
    observation.fill(0.0);
    for server in 0..N_SERVERS {
        let id = ServerId::from_index(server);
        let mut column = 0;
        for &job in world.residents(id) {
            if fidelity.ending_looks_free && world.is_ending(job) {
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

/// −w1 · mean over placed jobs of (1 − ρ) + w2 · mean utilization of the rounds before; 0 if nothing is placed.
pub fn reward(world: &World, contention_weight: f64, utilization_weight: f64, utilization: f64) -> f64 {
    let placed = world.placed();
    if placed.is_empty() {
        return 0.0;
    }
    let lost: f64 = placed.iter().map(|job| 1.0 - world.retention(*job)).sum();
    -contention_weight * lost / placed.len() as f64 + utilization_weight * utilization
}
