//! Jobs with new totals of steps: several futures are simulated from one checkpoint.

use super::outcome::SimulationError;
use super::simulation::Simulation;
use crate::index::JobId;
use crate::scheduler::driver::Driver;
use crate::units::Steps;

impl Simulation {
    /// Gives the active jobs new totals of steps: `total` maps each job's id and the steps that it has run to the new total. The
    /// past stays as it was, and a policy goes on as if it had known the new totals all along; but the allocation in force is the
    /// one that it decided.
    ///
    /// # Errors
    /// If a total is not above the steps that its job has run; if slices are running, as their ends follow from the earlier totals;
    /// or if the policy decides inside rounds, because it may remember the earlier totals.
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
