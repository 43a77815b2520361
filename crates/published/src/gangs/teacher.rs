//! Decisions of another policy as actions: examples to learn from.

use super::environment::{GangEnvironment, Turn};
use apportion::index::{Id, JobIndex, WorkerTypeId};
use apportion::policy::{Policy, PolicyError};
use apportion_learn::environment::{Environment, Show, Status};

/// Plays the episode of a seed as a policy decides, and shows each observation, mask and action.
///
/// The shares of a decision become gangs: of the jobs and types that are in view and fit, the pair with the largest share goes
/// first, the earliest among equals; when no pair with a share fits, the decision stops.
///
/// # Errors
/// If the policy fails.
pub fn demonstrate(
    environment: &mut GangEnvironment,
    policy: &mut dyn Policy,
    seed: u64,
    show: &mut Show<'_>,
) -> Result<(), PolicyError> {
    environment.reset(seed);
    let space = &environment.spaces()[0];
    let (mut seen, mut mask) = (vec![0.0; space.observation_length()], vec![false; space.n_actions]);
    let mut shares: Vec<Vec<f64>> = Vec::new();
    loop {
        let Some(Turn { problem, partial, observation }) = environment.turn() else { return Ok(()) };
        if !partial.has_placed() {
            let decision = policy.allocate(problem)?;
            shares = vec![vec![0.0; problem.n_types()]; problem.n_jobs()];
            for (row, jobs) in decision.allocation.combinations().enumerate() {
                shares[jobs.first().index()].copy_from_slice(decision.allocation.shares().row(row));
            }
        }
        environment.observe(&mut seen, &mut mask);
        let share = |(job, kind): (JobIndex, WorkerTypeId)| shares[job.index()][kind.index()];
        let allowed = || (0..mask.len()).filter(|action| mask[*action]);
        let given = allowed().filter_map(|action| Some((action, share(observation.decode(action)?))));
        let best = given.filter(|(_, share)| *share > 0.0).fold(None, |best: Option<(usize, f64)>, next| {
            Some(best.filter(|best| best.1 >= next.1).unwrap_or(next))
        });
        // *Stop* is the last of the allowed actions, if it is allowed.
        let Some(action) = best.map(|(action, _)| action).or_else(|| allowed().next_back()) else {
            return Ok(());
        };
        show(0, &seen, &mask, action);
        match environment.step(action) {
            Ok(transition) if transition.status == Status::Running => {}
            _ => return Ok(()),
        }
    }
}
