//! Systems: the declarations of learned schedulers, by which they are trained by name, from a world's options to environments.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::actor::{Actor, Choice};
use crate::environment::{Environment, Show};
use crate::vectorized::Finished;
use apportion::policy::Policy;
use apportion::spec::Source;
use apportion::spec::run::sha256;

/// A learned scheduler with its name, as its module declares it and a list of systems has it.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Name of the system in training documents.
    pub name: &'static str,
    /// Description of the decisions, in one line.
    pub decides: &'static str,
    /// Opens the system, under the name above, in a world of these options; null means the default options.
    pub open: fn(&Value) -> Result<System, SystemError>,
}

/// A system, which can be learned: environments of one world.
///
/// ```
/// use apportion_learn::system::System;
/// use apportion_learn::textbook::Bandit;
///
/// let bandit = System::new("bandit", "no data", || Box::new(Bandit::new(vec![0.2, 0.8])));
/// assert_eq!(bandit.environment().spaces()[0].n_actions, 2);
/// ```
#[derive(Clone)]
pub struct System {
    /// Name of the system in training documents.
    pub name: &'static str,
    /// SHA-256 of the data that its world is made of, in hexadecimal.
    pub data_digest: String,
    /// Name in files of the network that decides, if it is not dense layers.
    pub own_network: Option<&'static str>,
    /// Plays an episode to judge an actor, where actors are not judged by the environment's rewards.
    pub play: Option<Play>,
    /// Description, with its unit, of the return of an episode by which an actor is judged.
    pub judged_by: &'static str,
    /// Plays an episode to judge an actor by the jobs' service times, where results were published so: see `validation.measure`.
    /// The return is less these times over a baseline's.
    pub service: Option<Play>,
    /// Plays an episode to judge an actor by the jobs' mean service and completion times: see `validation.measure`. The return is
    /// less these times over a baseline's.
    pub times: Option<Play>,
    /// Plays an episode as a teacher decides, if the system has teachers.
    pub demonstrate: Option<Demonstrate>,
    make: Arc<dyn Fn() -> Box<dyn Environment> + Send + Sync>,
}

/// A function that plays the episode of a seed to judge an actor; the error says why it cannot.
pub type Play = Arc<dyn Fn(Arc<dyn Actor>, Choice, u64) -> Result<Finished, String> + Send + Sync>;

/// A function that plays the episode of a seed as a teacher decides, and shows each action; the error says why it cannot.
pub type Demonstrate = Arc<dyn Fn(&Teacher<'_>, u64, &mut Show<'_>) -> Result<(), String> + Send + Sync>;

/// A function that makes the policy of a name; the error says why it cannot.
pub type MakePolicy<'a> = dyn Fn(&str) -> Result<Box<dyn Policy>, String> + 'a;

/// A teacher: a policy or rule whose decisions are shown as examples.
pub struct Teacher<'a> {
    /// Name of a rule that the system knows, or of a policy.
    pub name: &'a str,
    /// Makes the policy of a name.
    pub policy: &'a MakePolicy<'a>,
}

impl fmt::Debug for Teacher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teacher").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, data_digest, .. } = self;
        f.debug_struct("System").field("name", name).field("data_digest", data_digest).finish_non_exhaustive()
    }
}

/// Why a system cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SystemError {
    /// There is no system of the name.
    #[error("unknown system `{name}`, expected one of {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names of all systems.
        known: String,
    },
    /// The world refuses its options.
    #[error("{reason}")]
    World {
        /// Why the world refuses its options, in words.
        reason: String,
    },
}

impl From<String> for SystemError {
    fn from(reason: String) -> Self {
        Self::World { reason }
    }
}

impl System {
    /// A system of the environments that `make` makes, still to be reset, whose world is made of this data. Dense layers decide,
    /// there is no teacher, and actors are judged by the rewards of an episode.
    pub fn new(
        name: &'static str,
        data: &str,
        make: impl Fn() -> Box<dyn Environment> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            data_digest: sha256(data.as_bytes()),
            own_network: None,
            play: None,
            judged_by: "rewards of an episode, added up",
            service: None,
            times: None,
            demonstrate: None,
            make: Arc::new(make),
        }
    }

    /// This system, with actors judged by the return of `play`, which `judged_by` describes.
    #[must_use]
    pub fn with_play(
        self,
        judged_by: &'static str,
        play: impl Fn(Arc<dyn Actor>, Choice, u64) -> Result<Finished, String> + Send + Sync + 'static,
    ) -> Self {
        Self { judged_by, play: Some(Arc::new(play)), ..self }
    }

    /// This system, with teachers that are played by `demonstrate`.
    #[must_use]
    pub fn with_teachers(
        self,
        demonstrate: impl Fn(&Teacher<'_>, u64, &mut Show<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { demonstrate: Some(Arc::new(demonstrate)), ..self }
    }

    /// This system, decided by the network of this name, or by dense layers if there is none.
    #[must_use]
    pub fn with_network(self, own_network: Option<&'static str>) -> Self {
        Self { own_network, ..self }
    }

    /// An environment, still to be reset.
    pub fn environment(&self) -> Box<dyn Environment> {
        (self.make)()
    }
}

/// The most jobs or servers in view. A training keeps thousands of observations, whose length grows with the view.
const N_SEEN_MAX: usize = 1024;

/// The most jobs, servers or workers of a world, which has to hold them in memory.
pub const COUNT_MAX: u64 = 1_000_000;

/// Checks that counts are from 1 to [`COUNT_MAX`], and that the limit on steps is not 0.
///
/// # Errors
/// If one is not; the error names the first such field.
pub fn check_counts(counts: &[(&str, u64)], step_limit: u64) -> Result<(), String> {
    for (field, value) in counts.iter().chain([&("step_limit", step_limit)]) {
        if *value == 0 {
            return Err(format!("`{field}` is 0, expected a whole number above 0"));
        }
    }
    match counts.iter().find(|(_, value)| *value > COUNT_MAX) {
        None => Ok(()),
        Some((field, value)) => Err(format!("`{field}` is {value}, expected at most {COUNT_MAX}")),
    }
}

/// Checks that the number of jobs or servers in view is small enough for a training to keep.
///
/// # Errors
/// If `n`, which documents call `field`, is larger.
pub fn check_seen(field: &str, n: usize) -> Result<(), SystemError> {
    if n <= N_SEEN_MAX {
        return Ok(());
    }
    Err(SystemError::World { reason: format!("`{field}` is {n}, expected at most {N_SEEN_MAX}") })
}

/// Reads a world's options; null means the defaults.
///
/// # Errors
/// If the world has no such options.
pub fn options<T: Default + DeserializeOwned>(world: &Value) -> Result<T, SystemError> {
    if world.is_null() {
        return Ok(T::default());
    }
    T::deserialize(world)
        .map_err(|error| SystemError::World { reason: in_words::<T>(world, &error.to_string()) })
}

/// An error message of serde's about a world, in the words of errors about documents, which name the field.
fn in_words<T: DeserializeOwned>(world: &Value, complaint: &str) -> String {
    let read_again = Source::new("world", world.to_string()).parse::<T>();
    let said = read_again.err().and_then(|error| error.diagnostics.first().map(|said| said.message.clone()));
    said.unwrap_or_else(|| complaint.to_owned())
}
