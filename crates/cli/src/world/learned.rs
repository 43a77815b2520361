//! Trained weights as rows of a world's table.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::exit::Failure;
use apportion::spec::{SpecError, path_text};
use apportion_learn::actor::{Actor, Choice};
use apportion_learn::environment::Space;
use apportion_learn::trained::Trained;
use apportion_published::gangs::{N_FEATURES, read_scorer};
use apportion_published::weights::load_weights;

/// Weights of dense layers or of a scorer, or an ONNX model.
#[derive(Clone, Debug)]
pub(super) struct Learned {
    /// The name or path of the weights, as on the command line.
    source: String,
    /// The name of the policy's row in the table.
    pub(super) name: String,
    trained: Arc<Trained>,
    pub(super) actor: Arc<dyn Actor>,
    /// Whether the network scores one row of numbers for each action.
    pub(super) scores_rows: bool,
    /// The choice of actions: that of the training's test, or else that of its validation.
    pub(super) choice: Choice,
    /// The training's options of its world; null if it was trained elsewhere.
    world: Value,
}

impl Learned {
    /// The weights of this name that ship with the program, or in this file. Weights of another program that name no system are
    /// taken for weights of this one.
    pub(super) fn load(name_or_path: &str, system: &str) -> Result<Self, Failure> {
        let fault = |message: String| complaint(name_or_path, message, system);
        let trained = read(name_or_path, system)?;
        let (actor, scores_rows) = match read_scorer(&trained) {
            Ok(scorer) => (scorer, true),
            Err(_) => (trained.actor().map_err(|error| fault(error.to_string()))?.0, false),
        };
        let spec = trained.spec();
        let choice = ["test", "validation"]
            .iter()
            .find_map(|episodes| Choice::deserialize(spec.get(episodes)?.get("choice")?).ok());
        Ok(Self {
            source: name_or_path.to_owned(),
            name: name_of(name_or_path),
            choice: choice.unwrap_or_default(),
            world: spec.get("world").cloned().unwrap_or_default(),
            actor,
            scores_rows,
            trained: Arc::new(trained),
        })
    }

    /// The options of the world in which the weights were trained; the defaults if there are none.
    pub(super) fn world<T: Default + for<'de> Deserialize<'de>>(&self, system: &str) -> Result<T, Failure> {
        if self.world.is_null() {
            return Ok(T::default());
        }
        T::deserialize(&self.world).map_err(|error| complaint(&self.source, error.to_string(), system))
    }

    /// Refuses a network whose inputs and outputs do not fit the world's observations and actions.
    pub(super) fn check_fits(&self, spaces: &[Space], system: &str) -> Result<(), Failure> {
        let in_rows = |space: &Space| space.observation_length() == space.n_actions * N_FEATURES;
        if self.scores_rows && spaces.iter().all(in_rows) {
            return Ok(());
        }
        let sizes: Vec<(usize, usize)> =
            spaces.iter().map(|space| (space.observation_length(), space.n_actions)).collect();
        let fits = self.trained.actor_of(&sizes);
        fits.map(|_| ()).map_err(|error| complaint(&self.source, error.to_string(), system))
    }
}

/// The weights of this name that ship with the program, or in this file, unless they name another system.
pub(super) fn read(name_or_path: &str, system: &str) -> Result<Trained, Failure> {
    let bytes = load_weights(name_or_path)?;
    let fault = |message: String| complaint(name_or_path, message, system);
    let trained = Trained::read(name_or_path, &bytes).map_err(|error| fault(error.to_string()))?;
    match trained.spec().get("system").and_then(Value::as_str) {
        Some(other) if other != system => {
            Err(fault(format!("it is of `system: {other}`, expected `system: {system}`")))
        }
        _ => Ok(trained),
    }
}

pub(super) fn complaint(source: &str, message: String, system: &str) -> Failure {
    let help = format!("give weights of `system: {system}`, as `apportion train` keeps them");
    SpecError::about(source, message, Some(help)).into()
}

/// The name of a row: the file's name, with its folder's if training chose the file's name.
pub(super) fn name_of(name_or_path: &str) -> String {
    let path = path_text::to_path(name_or_path);
    let text = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    let stem = text(path.file_stem()).unwrap_or_else(|| name_or_path.to_owned());
    let folder = text(path.parent().and_then(Path::file_name));
    match folder {
        Some(folder) if ["best", "checkpoint"].contains(&stem.as_str()) => format!("{folder}/{stem}"),
        _ => stem,
    }
}
