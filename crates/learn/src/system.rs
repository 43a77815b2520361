//! What a learned scheduler declares, so that it can be trained by its name: from a world's options to environments.

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

/// A learned scheduler and its name: what its module declares, and a list of systems names.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Its name in training documents.
    pub name: &'static str,
    /// What is decided, in one line.
    pub decides: &'static str,
    /// Opens the system in a world of these options; with null, in the published one. What it opens has the name above.
    pub open: fn(&Value) -> Result<System, SystemError>,
}

/// Something that can be learned: environments of one world.
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
    /// Its name in training documents.
    pub name: &'static str,
    /// SHA-256 of the data that its world is made of, in hexadecimal.
    pub data_digest: String,
    /// The network that decides, if it is not dense layers: its name in files.
    pub own_network: Option<&'static str>,
    /// Plays an episode to judge an actor, where that is not by the environment's rewards.
    pub play: Option<Play>,
    /// What the return of an episode is where an actor is judged: in words, with its unit.
    pub judged_by: &'static str,
    /// Plays an episode to judge an actor by the jobs' service times, where results were published so: see
    /// `validation.measure`. The return is less these times, over a baseline's.
    pub service: Option<Play>,
    /// Plays an episode to judge an actor by the jobs' mean service and completion times: see `validation.measure`. The
    /// return is less these times, over a baseline's.
    pub times: Option<Play>,
    /// Shows what others do.
    pub demonstrate: Option<Demonstrate>,
    make: Arc<dyn Fn() -> Box<dyn Environment> + Send + Sync>,
}

/// Plays the episode of a seed; says why it cannot. The return is less the mean completion time.
pub type Play = Arc<dyn Fn(Arc<dyn Actor>, Choice, u64) -> Result<Finished, String> + Send + Sync>;

/// Plays the episode of a seed as a teacher decides, and shows each action; says why it cannot.
pub type Demonstrate = Arc<dyn Fn(&Teacher<'_>, u64, &mut Show<'_>) -> Result<(), String> + Send + Sync>;

/// Makes a policy of a name; says why it cannot.
pub type MakePolicy<'a> = dyn Fn(&str) -> Result<Box<dyn Policy>, String> + 'a;

/// A policy or rule of which examples are shown.
pub struct Teacher<'a> {
    /// A name that the system knows, or that of a policy.
    pub name: &'a str,
    /// Makes a policy of a name; says why it cannot.
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

/// Why there is no such system.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SystemError {
    /// No such name.
    #[error("unknown system `{name}`, expected one of {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names of the systems that there are.
        known: String,
    },
    /// Options that its world does not have.
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
    /// Environments that `make` makes, still to be reset, of a world of this data. Dense layers decide, there is no teacher, and
    /// actors are judged by the rewards of an episode.
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

    /// This system, with actors judged by what `play` returns: in words, `judged_by`.
    #[must_use]
    pub fn with_play(
        self,
        judged_by: &'static str,
        play: impl Fn(Arc<dyn Actor>, Choice, u64) -> Result<Finished, String> + Send + Sync + 'static,
    ) -> Self {
        Self { judged_by, play: Some(Arc::new(play)), ..self }
    }

    /// This system, with teachers that `demonstrate` lets play.
    #[must_use]
    pub fn with_teachers(
        self,
        demonstrate: impl Fn(&Teacher<'_>, u64, &mut Show<'_>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { demonstrate: Some(Arc::new(demonstrate)), ..self }
    }

    /// This system, decided by the network of this name, if there is one.
    #[must_use]
    pub fn with_network(self, own_network: Option<&'static str>) -> Self {
        Self { own_network, ..self }
    }

    /// An environment, still to be reset.
    pub fn environment(&self) -> Box<dyn Environment> {
        (self.make)()
    }
}

/// The most jobs or servers that are seen at once. A training keeps thousands of observations, each as long as all that is
/// seen in it.
const N_SEEN_MAX: usize = 1024;

/// The most jobs, servers or workers of a world that are believed: it has to hold them.
pub const COUNT_MAX: u64 = 1_000_000;

/// Refuses counts of 0, and more than a world is believed to hold; and a limit of 0 steps.
///
/// # Errors
/// With the first such field.
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

/// Refuses to see more at once than trainings can keep.
///
/// # Errors
/// If `n`, which documents call `field`, is more.
pub fn check_seen(field: &str, n: usize) -> Result<(), SystemError> {
    if n <= N_SEEN_MAX {
        return Ok(());
    }
    Err(SystemError::World { reason: format!("`{field}` is {n}, expected at most {N_SEEN_MAX}") })
}

/// A world's options; without any, the defaults.
///
/// # Errors
/// If it has no such options.
pub fn options<T: Default + DeserializeOwned>(world: &Value) -> Result<T, SystemError> {
    if world.is_null() {
        return Ok(T::default());
    }
    T::deserialize(world)
        .map_err(|error| SystemError::World { reason: in_words::<T>(world, &error.to_string()) })
}

/// A complaint of serde's about a world, in the words that documents have for it: with the field that it is about.
fn in_words<T: DeserializeOwned>(world: &Value, complaint: &str) -> String {
    let read_again = Source::new("world", world.to_string()).parse::<T>();
    let said = read_again.err().and_then(|error| error.diagnostics.first().map(|said| said.message.clone()));
    said.unwrap_or_else(|| complaint.to_owned())
}
