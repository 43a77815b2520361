//! The servers of the cloud: PAI's table of 2020, scaled.

use crate::world::{ACCELERATOR, Servers};
use apportion::index::{Id, ServerId, WorkerTypeId};

/// The number of server types.
pub const N_TYPES: usize = 5;

/// The most servers of a rack, all of one type.
pub const SERVERS_PER_RACK: u32 = 8;

/// The speed of a worker of a type, by columns of the measured throughputs (fastest first).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeedOf {
    /// The measured speed of a column.
    Measured(usize),
    /// The geometric mean of the speeds of two columns, for a type between them that was not measured.
    Between(usize, usize),
}

/// A type of servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerType {
    /// The number of servers in the published cluster.
    pub n_published: u32,
    /// Number of accelerators of a server.
    pub workers: u16,
    /// Speed of the accelerators.
    pub speed: SpeedOf,
    /// Dollars per worker and hour.
    pub price: f64,
}

/// Types of servers with accelerators in the table of Alibaba's PAI, 2020 (cluster-trace-gpu-v2020), in order of speed: V100 of 32
/// and of 16 GB, P100, T4, and older ones. Prices are those of on-demand accelerators in Google's cloud in 2020 (for 32 GB, raised
/// by the ratio of Amazon's prices). The older ones have the price and speed of a K80, and the speed of a T4 lies between a K80 and
/// a P100.
pub const TYPES: [ServerType; N_TYPES] = [
    ServerType { n_published: 135, workers: 8, speed: SpeedOf::Measured(0), price: 3.16 },
    ServerType { n_published: 104, workers: 8, speed: SpeedOf::Measured(0), price: 2.48 },
    ServerType { n_published: 798, workers: 2, speed: SpeedOf::Measured(1), price: 1.46 },
    ServerType { n_published: 497, workers: 2, speed: SpeedOf::Between(1, 2), price: 0.35 },
    ServerType { n_published: 280, workers: 8, speed: SpeedOf::Measured(2), price: 0.45 },
];

/// The servers of the published cluster times `scale`, at least one of each type.
pub fn servers(scale: f64) -> Servers {
    let mut servers = Servers::new();
    let mut rack = 0;
    for (number, kind) in TYPES.iter().enumerate() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded and positive")]
        let count = (f64::from(kind.n_published) * scale).round().max(1.0) as u32;
        for server in 0..count {
            rack += u32::from(server > 0 && server % SERVERS_PER_RACK == 0);
            servers.push([0, kind.workers], WorkerTypeId::from_index(number), rack);
        }
        rack += 1;
    }
    servers
}

/// The position of a server's type.
pub fn type_of(servers: &Servers, server: ServerId) -> usize {
    servers.worker_type(server).index()
}

/// The number of accelerators of each type.
pub fn workers_by_type(servers: &Servers) -> [u32; N_TYPES] {
    let mut workers = [0; N_TYPES];
    for server in servers.ids() {
        workers[type_of(servers, server)] += u32::from(servers.capacity(server)[ACCELERATOR]);
    }
    workers
}
