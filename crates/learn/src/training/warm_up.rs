//! Warm-up before a training: another policy shows its decisions, and the actor learns to take them.

use serde::{Deserialize, Serialize};

use super::cloning::{Cloning, CloningOptions, Example};
use super::model::Model;
use super::{TrainingError, within};
use crate::system::{MakePolicy, System, Teacher};
use apportion::workload::random::SeedStreams;

/// The most episodes that a warm-up plays.
const EPISODES_MAX: u64 = 100_000;

/// A warm-up before the training: another policy shows its decisions, and the actor learns to take them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WarmUp {
    /// Name of the teacher: of a policy, or of a rule of the system's own world.
    pub teacher: String,
    /// The number of steps down the cross-entropy.
    pub updates: u64,
    /// The number of new examples between two steps; before the first step there are `capacity` of them.
    #[serde(default = "one")]
    pub examples_per_update: usize,
    /// Options of the actor's learning.
    #[serde(default)]
    pub cloning: CloningOptions,
}

fn one() -> usize {
    1
}

impl WarmUp {
    /// Checks the options.
    ///
    /// # Errors
    /// If an option is out of its range.
    pub fn check(&self) -> Result<(), TrainingError> {
        within(self.updates > 0, "updates", self.updates, "a whole number above 0")?;
        let fresh = self.examples_per_update;
        within(fresh > 0, "examples_per_update", fresh, "a whole number above 0")
    }

    /// Warms a model up, and returns the mean cross-entropy of the first step and of the last, in nats. The warm-up depends on the
    /// streams alone, so a training that was stopped before its first checkpoint begins with it anew. `stop` is called before each
    /// episode and each step.
    ///
    /// # Errors
    /// If the system has no teachers, the teacher fails, the numbers are no longer finite, or `stop` says so.
    pub fn run(
        &self,
        system: &System,
        model: &dyn Model,
        (policy, stop): (&MakePolicy<'_>, &dyn Fn() -> bool),
        streams: SeedStreams,
    ) -> Result<(f64, f64), TrainingError> {
        self.check()?;
        let shows = system.demonstrate.as_ref();
        let value = format!("given in `{}`", system.name);
        within(shows.is_some(), "warm_up", value, "none where no policy can show what it does")?;
        let Some(demonstrate) = shows else { return Ok((0.0, 0.0)) };
        let mut seeds = streams.stream("episodes of the teacher");
        let mut cloning = Cloning::new(model, self.cloning.clone(), streams)?;
        let (mut losses, mut n_done, mut n_episodes) = (None, 0, 0);
        let mut n_new = 0;
        while n_done < self.updates {
            if stop() {
                return Err(TrainingError::Stopped);
            }
            n_episodes += 1;
            let is_too_many = n_episodes > EPISODES_MAX;
            within(!is_too_many, "updates", self.updates, "as many as the teacher's examples allow")?;
            let mut examples = Vec::new();
            let mut show = |agent: usize, seen: &[f32], mask: &[bool], action: usize| {
                examples.push(Example { agent, observation: seen.to_vec(), mask: mask.to_vec(), action });
            };
            let shown = demonstrate(&Teacher { name: &self.teacher, policy }, seeds.next_u64(), &mut show);
            shown.map_err(|reason| TrainingError::Play { reason })?;
            for example in examples {
                cloning.push(example);
                n_new += 1;
                if n_new < self.examples_per_update || n_done == self.updates {
                    continue;
                }
                if stop() {
                    return Err(TrainingError::Stopped);
                }
                if let Some(loss) = cloning.update(model)? {
                    losses = Some((losses.map_or(loss, |(first, _)| first), loss));
                    (n_done, n_new) = (n_done + 1, 0);
                }
            }
        }
        Ok(losses.unwrap_or_default())
    }
}
