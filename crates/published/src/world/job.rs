//! Jobs of a world, and the parts that placed jobs hold.

use crate::world::servers::Slots;
use apportion::index::{JobTypeId, ServerId};

/// The role of a task of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// Computes gradients on accelerators.
    Worker,
    /// Keeps parameters.
    ParameterServer,
}

impl Role {
    /// The number of roles.
    pub const COUNT: usize = 2;

    /// The role's position in arrays by role.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Tasks of one role of a job on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Server of the tasks.
    pub server: ServerId,
    /// Role of the tasks.
    pub role: Role,
    /// Number of tasks, ≥ 1.
    pub count: u16,
}

impl Part {
    /// A part of `count` workers on a server.
    pub const fn workers(server: ServerId, count: u16) -> Self {
        Self { server, role: Role::Worker, count }
    }
}

/// Slots that tasks of a job type need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobKind {
    /// Slots of one task, by role; zeros for a role that the job type does not have.
    pub task: [Slots; Role::COUNT],
}

/// A job before it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorldJob {
    /// The job's type.
    pub job_type: JobTypeId,
    /// Workers that the job needs at once, no more and no less; 0 = elastic, the policy's choice.
    pub workers: u16,
    /// Work until the job is done, > 0, in the unit of the world's rates.
    pub work: f64,
    /// Work as the job's owner estimates it, which is what policies see.
    pub work_estimated: f64,
    /// Time of arrival, in seconds after the start.
    pub arrival_s: f64,
    /// The number of the job's owner.
    pub owner: u32,
}
