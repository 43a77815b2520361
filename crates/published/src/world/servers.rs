//! Servers: slots of two resources, worker type and rack of each.

use apportion::index::{Id, IndexVec, ServerId, WorkerTypeId};
use apportion::throughput::server_speeds::ServerPlace;

/// The number of resources of a server: processor and accelerators. Each world defines what a slot of them stands for.
pub const N_RESOURCES: usize = 2;

/// Position of processor slots in [`Slots`].
pub const PROCESSOR: usize = 0;

/// Position of accelerator slots in [`Slots`].
pub const ACCELERATOR: usize = 1;

/// Numbers of slots by resource.
pub type Slots = [u16; N_RESOURCES];

/// The servers of a world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Servers {
    capacity: IndexVec<ServerId, Slots>,
    places: IndexVec<ServerId, ServerPlace>,
    total: [u32; N_RESOURCES],
    n_worker_types: usize,
}

impl Servers {
    /// No servers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// `n` servers alike, of the first worker type, in one rack.
    pub fn alike(n: usize, capacity: Slots) -> Self {
        let mut servers = Self::new();
        for _ in 0..n {
            servers.push(capacity, Id::from_index(0), 0);
        }
        servers
    }

    /// Adds a server.
    pub fn push(&mut self, capacity: Slots, worker_type: WorkerTypeId, rack: u32) -> ServerId {
        self.n_worker_types = self.n_worker_types.max(worker_type.index() + 1);
        self.places.push(ServerPlace { worker_type, rack });
        for (sum, slots) in self.total.iter_mut().zip(capacity) {
            *sum += u32::from(slots);
        }
        self.capacity.push(capacity)
    }

    /// The number of servers.
    pub fn len(&self) -> usize {
        self.capacity.len()
    }

    /// The number of worker types: one more than the last type of any server.
    pub fn n_worker_types(&self) -> usize {
        self.n_worker_types
    }

    /// Whether there are no servers.
    pub fn is_empty(&self) -> bool {
        self.capacity.is_empty()
    }

    /// Ids of all servers, ascending.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ServerId> + ExactSizeIterator + use<> {
        self.capacity.ids()
    }

    /// Slots of a server.
    pub fn capacity(&self, server: ServerId) -> Slots {
        self.capacity[server]
    }

    /// The type of a server's accelerators.
    pub fn worker_type(&self, server: ServerId) -> WorkerTypeId {
        self.places[server].worker_type
    }

    /// The rack of a server.
    pub fn rack(&self, server: ServerId) -> u32 {
        self.places[server].rack
    }

    /// Type and rack of each server: `[server]`.
    pub fn places(&self) -> &[ServerPlace] {
        self.places.as_slice()
    }

    /// Slots of all servers together, by resource.
    pub const fn total(&self) -> [u32; N_RESOURCES] {
        self.total
    }
}
