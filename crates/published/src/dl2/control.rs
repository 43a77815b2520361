//! Random actions, the control that learned policies must be compared with.

use crate::dl2::observe::Window;
use crate::dl2::published::Addition;
use crate::dl2::task::{Tasks, least_loaded};
use crate::world::World;
use apportion::workload::random::Stream;

/// Random actions on a window, with weights by kind of task; the slot ends with an action that does not fit.
#[derive(Clone, Debug)]
pub(super) struct RandomActions {
    weights: [f64; 3],
    /// Weight of ending the slot.
    nothing: f64,
    window: Window,
    draws: Stream,
}

impl RandomActions {
    /// Random actions with the weights of [a worker, a parameter server, one of both], and of *nothing*.
    pub(super) fn new(weights: [f64; 3], nothing: f64, window: Window, draws: Stream) -> Self {
        Self { weights, nothing, window, draws }
    }

    /// The next task; none ends the slot.
    pub(super) fn next(&mut self, world: &World, tasks_max: u16) -> Option<Addition> {
        self.window.look(world);
        let weight = |job, kind: usize| {
            if Tasks::ALL[kind].is_allowed(world, job, tasks_max) { self.weights[kind] } else { 0.0 }
        };
        let actions = || self.window.jobs().iter().flat_map(|job| (0..3).map(|kind| (*job, kind)));
        let total: f64 = actions().map(|(job, kind)| weight(job, kind)).sum();
        if total <= 0.0 {
            return None;
        }
        let mut left = self.draws.uniform() * (total + self.nothing);
        let chosen = actions().filter(|(job, kind)| weight(*job, *kind) > 0.0).find(|(job, kind)| {
            left -= weight(*job, *kind);
            left < 0.0
        });
        let (job, kind) = chosen?;
        let tasks = Tasks::ALL[kind];
        Some(Addition { job, tasks, server: least_loaded(world, job, tasks)? })
    }
}
