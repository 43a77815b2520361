//! Shares of slots in DL2's world: a job's sizes are (workers, parameter servers).

use crate::dl2::published::Addition;
use crate::dl2::speeds::Dl2Speeds;
use crate::dl2::task::{Tasks, any_server};
use crate::world::N_RESOURCES;
use crate::world::World;
use crate::world::shares::{self, Goal, Size, efficient};
use crate::world::{Part, Role};
use apportion::index::{Id, JobId};

/// Numbers of workers and of parameter servers.
type Counts = [u16; Role::COUNT];

/// The rule of optimal shares at work.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    rounds: shares::Shares<Counts>,
    tasks_max: u16,
    /// Jobs with their sizes in this slot, in reverse order.
    wanted: Vec<(JobId, Counts)>,
}

impl Shares {
    pub(super) fn new(goal: Goal, tasks_max: u16) -> Self {
        Self { rounds: shares::Shares::new(goal), tasks_max, wanted: Vec::new() }
    }

    /// Begins a slot: computes shares and the sizes of jobs. Jobs without a size come last, with one task of each role if a server
    /// has room.
    pub(super) fn begin(&mut self, world: &World, speeds: &Dl2Speeds) {
        let total = world.servers().total().map(f64::from);
        let sizes_of = |job| efficient(sizes(world, speeds, job, self.tasks_max));
        let (wanted, unserved) = self.rounds.hand_out(world, &total, sizes_of);
        self.wanted = wanted;
        self.wanted.extend(unserved.into_iter().map(|job| (job, [1; Role::COUNT])));
        self.wanted.reverse();
    }

    /// The next task: each job gets its size, or as much of it as there is room for, before the next job begins.
    pub(super) fn next(&mut self, world: &World) -> Option<Addition> {
        while let Some(&(job, wanted)) = self.wanted.last() {
            let step = missing(world, job, wanted);
            if step.is_some() {
                return step;
            }
            self.wanted.pop();
        }
        None
    }
}

/// All sizes of a job, fewest workers first. Where speeds depend on the place, they are those of tasks spread evenly over the
/// servers.
fn sizes(world: &World, speeds: &Dl2Speeds, job: JobId, tasks_max: u16) -> Vec<Size<Counts>> {
    let counts = (1..=tasks_max).flat_map(|workers| (1..=tasks_max).map(move |servers| [workers, servers]));
    let size = |tasks: Counts| {
        let needs = |resource: usize| {
            let of = |role: Role| f64::from(world.task_slots(job, role)[resource]);
            f64::from(tasks[0]) * of(Role::Worker) + f64::from(tasks[1]) * of(Role::ParameterServer)
        };
        Size {
            what: tasks,
            needs: (0..N_RESOURCES).map(needs).collect(),
            per_s: speeds.samples_per_s(world, job, tasks, &spread(world, tasks)),
        }
    };
    counts.map(size).filter(|size| size.per_s > 0.0).collect()
}

/// Parts of these numbers of tasks, each role spread evenly over all servers.
fn spread(world: &World, tasks: Counts) -> Vec<Part> {
    let n_servers = world.servers().len();
    let of_role = |(role, n): (Role, u16)| {
        world.servers().ids().filter_map(move |server| {
            let (each, more) = (usize::from(n) / n_servers, usize::from(n) % n_servers);
            let count = each + usize::from(server.index() < more);
            let count = u16::try_from(count).ok().filter(|count| *count > 0)?;
            Some(Part { server, role, count })
        })
    };
    [Role::Worker, Role::ParameterServer].into_iter().zip(tasks).flat_map(of_role).collect()
}

/// A task that a job lacks and that fits on some server: first one of both roles together, if it lacks both.
fn missing(world: &World, job: JobId, wanted: Counts) -> Option<Addition> {
    let lacks = |role: Role| world.tasks(job, role) < wanted[role.index()];
    let (worker, server) = (lacks(Role::Worker), lacks(Role::ParameterServer));
    let together = (worker && server).then_some(Tasks::Bundle);
    let apart = [(server, Tasks::ParameterServer), (worker, Tasks::Worker)];
    let kinds =
        together.into_iter().chain(apart.into_iter().filter(|(lacks, _)| *lacks).map(|(_, kind)| kind));
    let mut found =
        kinds.filter_map(|tasks| Some(Addition { job, tasks, server: any_server(world, job, tasks)? }));
    found.next()
}
