//! Jobs of a world, and what a placed one holds.

use crate::world::servers::Slots;
use apportion::index::{JobTypeId, ServerId};

/// What a task of a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// Computes gradients on accelerators.
    Worker,
    /// Keeps parameters.
    ParameterServer,
}

impl Role {
    /// How many there are.
    pub const COUNT: usize = 2;

    /// Its position.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Tasks of a job on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where.
    pub server: ServerId,
    /// What they do.
    pub role: Role,
    /// How many, ≥ 1.
    pub count: u16,
}

impl Part {
    /// Workers on a server.
    pub const fn workers(server: ServerId, count: u16) -> Self {
        Self { server, role: Role::Worker, count }
    }
}

/// What tasks of a type of job need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobKind {
    /// Slots of one task, by role; a role of none takes no slots.
    pub task: [Slots; Role::COUNT],
}

/// A job before it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorldJob {
    /// What it is a job of.
    pub job_type: JobTypeId,
    /// Workers it needs at once, no more and no less; 0 = elastic, the policy's choice.
    pub workers: u16,
    /// Work until it is done, > 0, in the unit of the world's rates.
    pub work: f64,
    /// The same as its owner estimates it: what policies see.
    pub work_estimated: f64,
    /// Seconds after the start.
    pub arrival_s: f64,
    /// The number of its owner.
    pub owner: u32,
}
