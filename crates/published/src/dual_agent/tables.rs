//! Speeds and contention by job type, from measured tables.

use crate::dual_agent::cluster::{N_TYPES, SpeedOf, TYPES};
use apportion::index::{Id, JobTypeId};
use apportion::throughput::spread::SpreadThroughputs;
use apportion::throughput::{Throughputs, ThroughputsError};

/// Numbers of workers that jobs need.
pub const SIZES: [u16; 5] = [1, 2, 4, 8, 16];

/// Factor η by which a server's crowded processors and buses slow its jobs: 1/(1 + η (load − 1)₊).
pub const HOST_SLOWDOWN: f64 = 0.5;

/// The smallest retention under network contention, however crowded a job's servers.
pub const RETENTION_FLOOR: f64 = 0.35;

/// Dense tables of speeds and contention; [job type] is [model × size].
#[derive(Clone, Debug)]
pub struct Tables {
    n_models: usize,
    /// Steps/s on one server: [job type × server type]; 0 = cannot run.
    alone: Vec<f64>,
    /// Steps/s over several servers: [job type × server type].
    spread: Vec<f64>,
    /// Retention of a spread job beside another on a server: [model × neighbour's model].
    retained: Vec<f64>,
    /// Load of one worker on its server's processors and buses, relative to a worker's share of the server: [model].
    host: Vec<f64>,
}

impl Tables {
    /// Tables from the embedded measurements: Gavel's throughputs, and DeepShare's retention under contention.
    ///
    /// # Errors
    /// If the throughputs are missing.
    pub fn embedded() -> Result<Self, ThroughputsError> {
        Ok(Self::new(&*Throughputs::embedded("osdi20")?, &SpreadThroughputs::deepshare()))
    }

    /// Tables of the job types of `throughputs` as models, each at all sizes. Sixteen workers were not measured: their gain over
    /// eight is that of eight over four.
    ///
    /// The correspondence with `contention`'s models is not known either: models of both are ranked by their loss when spread or
    /// crowded, and models of the same rank share a row. The load on hosts is also by rank: from 0.7 of a worker's share for models
    /// with the slowest steps to 1.5 for the fastest.
    pub fn new(throughputs: &Throughputs, contention: &SpreadThroughputs) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for row in throughputs.rows() {
            if row.scale_factor == 1 && !names.contains(&row.job_type.as_str()) {
                names.push(&row.job_type);
            }
        }
        let n_models = names.len();
        let (mut alone, mut spread) = (Vec::new(), Vec::new());
        for name in &names {
            let measured = |size: u16, column: usize, wide: bool| {
                let of = |size: u16| {
                    let row = throughputs.find(name, u32::from(size))?;
                    let column = Id::from_index(column);
                    let together = throughputs.alone(row, column);
                    let spread = throughputs.spread(row, column).filter(|speed| *speed > 0.0);
                    Some(if wide { spread.unwrap_or(together).min(together) } else { together })
                };
                match (size, of(size), of(4)) {
                    (16, None, Some(four)) if four > 0.0 => of(8).map_or(0.0, |eight| eight * eight / four),
                    (_, found, _) => found.unwrap_or(0.0),
                }
            };
            for size in SIZES {
                for kind in TYPES {
                    let speed = |wide| match kind.speed {
                        SpeedOf::Measured(column) => measured(size, column, wide),
                        SpeedOf::Between(one, other) => {
                            (measured(size, one, wide) * measured(size, other, wide)).sqrt()
                        }
                    };
                    alone.push(speed(false));
                    spread.push(speed(true));
                }
            }
        }
        let mut tables = Self { n_models, alone, spread, retained: Vec::new(), host: Vec::new() };
        let loss = |model: usize| {
            let job_type = Self::job_type(model, 3);
            -tables.speed(job_type, 0, true) / tables.speed(job_type, 0, false).max(f64::MIN_POSITIVE)
        };
        let losing = ranks(n_models, loss);
        let quick = ranks(n_models, |model| tables.speed(Self::job_type(model, 0), 0, false));
        let models = retained_by_model(contention);
        let n_theirs = contention.job_types.len();
        let mean = |theirs: &usize| {
            -models[theirs * n_theirs..(theirs + 1) * n_theirs].iter().sum::<f64>() / n_theirs as f64
        };
        let their_ranks = ranks(n_theirs, |theirs| mean(&theirs));
        let like = |model: usize| {
            let rank = losing[model] * n_theirs / n_models;
            their_ranks.iter().position(|other| *other == rank).unwrap_or(0)
        };
        for model in 0..n_models {
            for other in 0..n_models {
                tables.retained.push(models[like(model) * n_theirs + like(other)]);
            }
        }
        let host = |rank: &usize| 0.7 + 0.8 * *rank as f64 / (n_models.max(2) - 1) as f64;
        tables.host = quick.iter().map(host).collect();
        tables
    }

    /// The number of models.
    pub fn n_models(&self) -> usize {
        self.n_models
    }

    /// The job type of a model and a size, by their positions.
    pub fn job_type(model: usize, size: usize) -> JobTypeId {
        JobTypeId::from_index(model * SIZES.len() + size)
    }

    /// The position of a job type's model.
    pub fn model(job_type: JobTypeId) -> usize {
        job_type.index() / SIZES.len()
    }

    /// The number of workers that a job type needs.
    pub fn workers(job_type: JobTypeId) -> u16 {
        SIZES[job_type.index() % SIZES.len()]
    }

    /// Steps/s of a job on servers of a type, on one or over several; 0 where it cannot run.
    pub fn speed(&self, job_type: JobTypeId, server_type: usize, spread: bool) -> f64 {
        let table = if spread { &self.spread } else { &self.alone };
        table[job_type.index() * N_TYPES + server_type]
    }

    /// Steps/s of a job on the fewest servers of a type that hold it.
    pub fn speed_there(&self, job_type: JobTypeId, server_type: usize) -> f64 {
        self.speed(job_type, server_type, Self::workers(job_type) > TYPES[server_type].workers)
    }

    /// Steps/s of a job on the type where it is fastest.
    pub fn best_speed(&self, job_type: JobTypeId) -> f64 {
        (0..N_TYPES).map(|server_type| self.speed_there(job_type, server_type)).fold(0.0, f64::max)
    }

    /// Retention of a spread job of one model beside a spread job of another.
    pub fn retained(&self, model: usize, other: usize) -> f64 {
        self.retained[model * self.n_models + other].max(RETENTION_FLOOR)
    }

    /// Load of one worker of a model on its server, relative to a worker's share.
    pub fn host(&self, model: usize) -> f64 {
        self.host[model]
    }
}

/// The rank of each of n items by a key, ties by position.
fn ranks(n: usize, key: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|one, other| key(*one).total_cmp(&key(*other)).then(one.cmp(other)));
    let mut ranks = vec![0; n];
    for (rank, position) in order.into_iter().enumerate() {
        ranks[position] = rank;
    }
    ranks
}

/// Retention of models, as means of the measurements over sizes and spreads: [model × neighbour's model].
fn retained_by_model(contention: &SpreadThroughputs) -> Vec<f64> {
    let n = contention.job_types.len();
    let (mut sums, mut counts) = (vec![0.0; n * n], vec![0.0; n * n]);
    for (row, one) in contention.configurations.iter().enumerate() {
        for (column, other) in contention.configurations.iter().enumerate() {
            if one.servers > 1 && other.servers > 1 {
                sums[one.job_type * n + other.job_type] += contention.retained(row, column);
                counts[one.job_type * n + other.job_type] += 1.0;
            }
        }
    }
    sums.iter().zip(counts).map(|(sum, count)| if count > 0.0 { sum / count } else { 1.0 }).collect()
}
