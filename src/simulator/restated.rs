//! Jobs with other totals of steps than was believed: what may come is simulated from one checkpoint.

use super::outcome::SimulationError;
use super::simulation::Simulation;
use crate::index::JobId;
use crate::scheduler::driver::Driver;
use crate::units::Steps;

impl Simulation {
    /// Gives the active jobs other totals of steps: each the one that `total` says, by its id and what it has run. What has
    /// happened stays as it was, and a policy goes on as if it had known the new totals all along; but the allocation in
    /// force is the one that it decided.
    ///
    /// # Errors
    /// If a total is not above what its job has run; if slices are running, as their ends follow from the totals of
    /// before; or if the policy decides inside rounds, because it may remember what it was told.
    pub fn restate_steps(
        &mut self,
        mut total: impl FnMut(JobId, Steps) -> Steps,
    ) -> Result<(), SimulationError> {
        let refuse = |reason: String| Err(SimulationError::Checkpoint { reason });
        for active in &mut self.table.jobs {
            let progress = &mut active.progress;
            let (id, steps_run) = (progress.id, progress.steps_run);
            let (before, steps) = (progress.job.total_steps, total(id, Steps::new(steps_run)));
            if steps == before {
                continue;
            }
            if !self.running.is_empty() {
                return refuse("slices are running whose ends follow from their jobs' steps".to_owned());
            }
            if !steps.is_finite() || steps.get() <= steps_run {
                return refuse(format!("job {id} has run {steps_run} steps of {}", steps.get()));
            }
            let Driver::Mechanized(rounds) = &mut self.driver else {
                let reason =
                    "policies that decide inside rounds remember the steps that jobs were said to take";
                return refuse(reason.to_owned());
            };
            rounds.restate_steps(id, steps - before)?;
            progress.job.total_steps = steps;
        }
        Ok(())
    }
}
