//! Additions of tasks to a job, the steps of which every allocation of DL2's world consists.

use crate::world::Decision;
use crate::world::{N_RESOURCES, Slots};
use crate::world::{Part, Role};
use crate::world::{Status, World};
use apportion::index::{JobId, ServerId};

/// Tasks that an action adds at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    /// A worker.
    Worker,
    /// A parameter server.
    ParameterServer,
    /// One of both, on the same server.
    Bundle,
}

impl Tasks {
    /// All kinds, in the order of a window's actions.
    pub(super) const ALL: [Self; 3] = [Self::Worker, Self::ParameterServer, Self::Bundle];

    /// The roles of the tasks.
    pub(super) const fn roles(self) -> &'static [Role] {
        match self {
            Self::Worker => &[Role::Worker],
            Self::ParameterServer => &[Role::ParameterServer],
            Self::Bundle => &[Role::Worker, Role::ParameterServer],
        }
    }

    /// Slots that the tasks of a job take.
    pub(super) fn slots(self, world: &World, job: JobId) -> Slots {
        let mut slots = [0; N_RESOURCES];
        for role in self.roles() {
            for (sum, task) in slots.iter_mut().zip(world.task_slots(job, *role)) {
                *sum += task;
            }
        }
        slots
    }

    /// Whether a job may have the tasks: it has fewer than the most of each role.
    pub(super) fn is_allowed(self, world: &World, job: JobId, tasks_max: u16) -> bool {
        self.roles().iter().all(|role| world.tasks(job, *role) < tasks_max)
    }
}

/// The decision that adds tasks to a job on a server; writes the job's new parts to `parts`.
pub(super) fn add<'a>(
    world: &World,
    job: JobId,
    tasks: Tasks,
    server: ServerId,
    parts: &'a mut Vec<Part>,
) -> Decision<'a> {
    parts.clear();
    parts.extend_from_slice(world.parts(job));
    for &role in tasks.roles() {
        match parts.iter_mut().find(|part| part.server == server && part.role == role) {
            Some(part) => part.count += 1,
            None => parts.push(Part { server, role, count: 1 }),
        }
    }
    if world.status(job) == Status::Waiting {
        Decision::Place { job, parts }
    } else {
        Decision::Resize { job, parts }
    }
}

/// The least loaded server, if the tasks fit there.
pub(super) fn least_loaded(world: &World, job: JobId, tasks: Tasks) -> Option<ServerId> {
    let server = world.least_loaded();
    world.fits(server, tasks.slots(world, job)).then_some(server)
}

/// The least loaded of the servers where the tasks fit, ties by id.
pub(super) fn any_server(world: &World, job: JobId, tasks: Tasks) -> Option<ServerId> {
    let slots = tasks.slots(world, job);
    let load = |server: &ServerId| world.used(*server).iter().map(|used| u32::from(*used)).sum::<u32>();
    world.servers().ids().filter(|server| world.fits(*server, slots)).min_by_key(load)
}
