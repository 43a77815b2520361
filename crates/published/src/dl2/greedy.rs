//! Optimus: one worker or parameter server at a time, for the job whose remaining time it shortens most.
//!
//! It knows the true speeds of the world: an oracle, where the published system fits a model.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::dl2::published::Addition;
use crate::dl2::share_of;
use crate::dl2::speeds::Dl2Speeds;
use crate::dl2::task::{Tasks, any_server, least_loaded};
use crate::world::World;
use crate::world::{Part, Role};
use apportion::index::{JobId, ServerId};

/// Seconds that a job would gain by more tasks; ordered by seconds, ties by id.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gain {
    seconds: f64,
    job: JobId,
    tasks: Tasks,
}

impl Eq for Gain {}

impl Ord for Gain {
    fn cmp(&self, other: &Self) -> Ordering {
        self.seconds.total_cmp(&other.seconds).then(other.job.cmp(&self.job))
    }
}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Optimus, as published in code or as described.
#[derive(Clone, Debug)]
pub(super) struct Optimus {
    /// Whether it is as described: gains are per dominant share of the task, a task goes to any server where it fits, and a job
    /// that can have nothing more does not end the slot for the others.
    textbook: bool,
    tasks_max: u16,
    heap: BinaryHeap<Gain>,
    parts: Vec<Part>,
}

impl Optimus {
    /// Optimus, as published in code or as described.
    pub(super) fn new(textbook: bool, tasks_max: u16) -> Self {
        Self { textbook, tasks_max, heap: BinaryHeap::new(), parts: Vec::new() }
    }

    /// Begins a slot: all jobs, with the tasks that they hold.
    pub(super) fn begin(&mut self, world: &World, speeds: &Dl2Speeds) {
        self.heap.clear();
        for &job in world.active() {
            let held = [world.tasks(job, Role::Worker), world.tasks(job, Role::ParameterServer)];
            self.push(world, speeds, job, held);
        }
    }

    /// The next task; none ends the slot.
    pub(super) fn next(&mut self, world: &World, speeds: &Dl2Speeds) -> Option<Addition> {
        while let Some(Gain { seconds, job, tasks }) = self.heap.pop() {
            if seconds <= 0.0 {
                return None;
            }
            if !tasks.is_allowed(world, job, self.tasks_max) {
                continue;
            }
            let server = if self.textbook {
                any_server(world, job, tasks)
            } else {
                match least_loaded(world, job, tasks) {
                    Some(server) => Some(server),
                    None => return None,
                }
            };
            let Some(server) = server else { continue };
            let mut held = [world.tasks(job, Role::Worker), world.tasks(job, Role::ParameterServer)];
            for role in tasks.roles() {
                held[role.index()] += 1;
            }
            self.parts.clear();
            self.parts.extend_from_slice(world.parts(job));
            grow(&mut self.parts, tasks, server);
            self.push(world, speeds, job, held);
            return Some(Addition { job, tasks, server });
        }
        None
    }

    /// Pushes the larger gain of another task of a job that holds `held` in `parts`; a parameter server if gains are equal.
    fn push(&mut self, world: &World, speeds: &Dl2Speeds, job: JobId, held: [u16; Role::COUNT]) {
        let (seconds, tasks) = if held[Role::Worker.index()] == 0 {
            (f64::INFINITY, Tasks::Worker)
        } else if held[Role::ParameterServer.index()] == 0 {
            (f64::INFINITY, Tasks::ParameterServer)
        } else {
            let left = world.job(job).work_estimated - world.progress(job);
            let n_parts = self.parts.len();
            let before = left / speeds.samples_per_s(world, job, held, &self.parts);
            let mut gains = [Tasks::Worker, Tasks::ParameterServer].map(|tasks| {
                let mut more = held;
                for role in tasks.roles() {
                    more[role.index()] += 1;
                }
                if self.textbook && more.iter().any(|n| *n > self.tasks_max) {
                    return f64::NEG_INFINITY;
                }
                if speeds.depend_on_place() {
                    grow(&mut self.parts, tasks, world.least_loaded());
                }
                let after = left / speeds.samples_per_s(world, job, more, &self.parts);
                self.parts.truncate(n_parts);
                let share = if tasks == Tasks::Worker { (1, 0) } else { (0, 1) };
                let share = if self.textbook { share_of(world, job, share.0, share.1) } else { 1.0 };
                (before - after) / share
            });
            // Infinite times before and after make a gain that is not a number, which counts as no gain.
            gains = gains.map(|gain| if gain.is_nan() { f64::NEG_INFINITY } else { gain });
            if gains[1] >= gains[0] { (gains[1], Tasks::ParameterServer) } else { (gains[0], Tasks::Worker) }
        };
        self.heap.push(Gain { seconds, job, tasks });
    }
}

/// Appends parts without merging them with others on the server: speeds add them up.
fn grow(parts: &mut Vec<Part>, tasks: Tasks, server: ServerId) {
    parts.extend(tasks.roles().iter().map(|role| Part { server, role: *role, count: 1 }));
}
