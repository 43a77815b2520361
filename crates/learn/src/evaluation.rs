//! Evaluation of an actor in episodes of given seeds.

use rayon::prelude::*;

use crate::actor::{Actor, Choice, Scratch, draw, masked_softmax, most_probable};
use crate::environment::{Environment, Status};
use crate::vectorized::{Finished, PlayError};
use apportion::workload::random::SeedStreams;

/// The number of steps after which an episode without a limit of its own is given up, as truncated.
const STEPS_MAX: usize = 10_000_000;

/// Plays one episode per seed, in parallel. Actions are drawn by a stream of each episode's seed, so the result does not depend on
/// earlier episodes or on the number of threads.
///
/// # Errors
/// If the actor gives no probabilities, or an environment refuses an action that its mask allows.
pub fn evaluate<E: Environment>(
    make: impl Fn() -> E + Sync,
    actor: &dyn Actor,
    choice: Choice,
    seeds: &[u64],
) -> Result<Vec<Finished>, PlayError> {
    seeds.par_iter().map(|seed| play(&mut make(), actor, choice, *seed)).collect()
}

/// Plays the episode of a seed, and leaves the environment at its end.
///
/// # Errors
/// If the actor gives no probabilities, or the environment refuses an action that its mask allows.
pub fn play<E: Environment>(
    environment: &mut E,
    actor: &dyn Actor,
    choice: Choice,
    seed: u64,
) -> Result<Finished, PlayError> {
    let mut stream = SeedStreams::new(seed).stream("actions of an evaluation");
    let mut scratch = Scratch::default();
    let (mut observation, mut mask, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    let mut total_reward = 0.0;
    environment.reset(seed);
    for n_steps in 1..=STEPS_MAX {
        let agent = environment.agent();
        let space = &environment.spaces()[agent];
        observation.resize(space.observation_length(), 0.0);
        mask.resize(space.n_actions, false);
        numbers.resize(space.n_actions, 0.0);
        environment.observe(&mut observation, &mut mask);
        actor.logits(agent, &observation, &mut scratch, &mut numbers)?;
        masked_softmax(&mut numbers, &mask)?;
        let action = match choice {
            Choice::Sampled => draw(&numbers, stream.uniform()),
            Choice::MostProbable => most_probable(&numbers),
        };
        let transition = environment.step(action)?;
        total_reward += f64::from(transition.reward);
        if transition.status.is_over() {
            return Ok(Finished { total_reward, n_steps, status: transition.status });
        }
    }
    Ok(Finished { total_reward, n_steps: STEPS_MAX, status: Status::Truncated })
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::UniformActor;
    use crate::textbook::{Grid, Walls};

    fn mean(choice: Choice, n_threads: usize) -> Vec<Finished> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let make = || Grid::new((3, 3), Walls::Masked, 50);
        let seeds: Vec<u64> = (0..40).collect();
        pool.install(|| evaluate(make, &UniformActor, choice, &seeds).unwrap())
    }

    #[test]
    fn episodes_are_those_of_their_seeds_on_any_number_of_threads() {
        let one = mean(Choice::Sampled, 1);
        assert_eq!(one, mean(Choice::Sampled, 4));
        assert!(one.iter().any(|episode| episode.status == Status::Terminated));
        let alone = evaluate(|| Grid::new((3, 3), Walls::Masked, 50), &UniformActor, Choice::Sampled, &[7]);
        assert_eq!(alone.unwrap()[0], one[7]);
    }

    #[test]
    fn the_most_probable_of_equals_is_the_first() {
        // The most probable of equals is left where there is a left, so no walk reaches the last corner.
        let episodes = mean(Choice::MostProbable, 2);
        assert!(episodes.iter().all(|episode| episode.status == Status::Truncated && episode.n_steps == 50));
    }
}
