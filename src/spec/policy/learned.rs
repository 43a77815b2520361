//! Learned policies in files: which network decides, from which weights, and when.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{Colocation, Document};
use crate::spec::document::{Source, SpecError};
use crate::spec::lookup::read_bytes;
use crate::spec::nearest::{name_list, suggestion};

/// Who decides which job gets its workers of which type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorName {
    /// One gang after another, by a network over a window of jobs, as in DL2.
    Window,
    /// One gang after another, by a network that scores each job on each type alike.
    Pairs,
    /// All at once: the allocation of the largest sum of values, which a network scores; without weights all scores are 0.
    Values,
    /// One gang after another, each that fits as likely, and as likely to stop.
    Uniform,
    /// The same, without stopping while any fits.
    UniformBusy,
    /// One gang after another, that with the least time left × workers first.
    LeastService,
    /// Inside rounds, on concrete workers: one agent says which job is next, another gives it servers, as in the dual-agent
    /// scheduler; without weights, by chance.
    Agents,
    /// Inside rounds, on concrete workers: a job after another on a set of four servers, as in DeepShare; without weights,
    /// by chance.
    Cells,
}

impl ActorName {
    /// Does it decide inside rounds, rather than by allocations?
    pub fn decides_inside_rounds(self) -> bool {
        matches!(self, Self::Agents | Self::Cells)
    }

    /// Can it decide without weights? Does it look at any?
    fn weights(self) -> (bool, bool) {
        match self {
            Self::Window | Self::Pairs => (false, true),
            Self::Values | Self::Agents | Self::Cells => (true, true),
            Self::Uniform | Self::UniformBusy | Self::LeastService => (true, false),
        }
    }
}

/// When a learned policy decides anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskedName {
    /// At the first boundary after a job has come or gone.
    #[default]
    Events,
    /// At every boundary.
    Rounds,
}

/// How an action is chosen from probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceName {
    /// The most probable.
    #[default]
    MostProbable,
    /// Drawn with its probability.
    Sampled,
}

/// A learned policy, or a control of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// Who decides.
    pub actor: ActorName,
    /// Which jobs may share workers.
    pub colocation: Colocation,
    /// The weights: a name, or the path of a file. What the policy's file says relative to its own folder is a path from
    /// there already.
    pub weights: Option<String>,
    /// When it decides anew.
    pub asked: AskedName,
    /// How an action is chosen.
    pub choice: ChoiceName,
}

/// Checks that the fields of a learned policy fit together.
pub(super) fn learned(document: &Document, source: &Source) -> Result<Learned, SpecError> {
    let Some(actor) = document.actor else {
        let help = Some("as in `actor: pairs`".to_owned());
        return Err(source.error_at("kind", "a learned policy needs `actor`", help));
    };
    let colocation = document.colocation.unwrap_or_default();
    if colocation == Colocation::Pairs && actor != ActorName::Values {
        let help = Some("`actor: values` lets jobs share workers".to_owned());
        return Err(source.error_at_key("colocation", "this actor places one job at a time, alone", help));
    }
    if actor.decides_inside_rounds() && document.asked.is_some() {
        let help = Some("leave `asked` out".to_owned());
        return Err(source.error_at_key("asked", "this actor is asked in every round", help));
    }
    let (optional, looked_at) = actor.weights();
    match &document.weights {
        None if !optional => {
            let help = Some(
                "the name of weights that ship with the program, a file that `apportion train` made, or an ONNX file",
            );
            Err(source.error_at("actor", "this actor needs `weights`", help.map(str::to_owned)))
        }
        Some(_) if !looked_at => {
            Err(source.error_at_key("weights", "this actor is a rule and would ignore `weights`", None))
        }
        _ => Ok(Learned {
            actor,
            colocation,
            weights: document.weights.as_deref().map(|weights| from_folder(folder_of(source), weights)),
            asked: document.asked.unwrap_or_default(),
            choice: document.choice.unwrap_or_default(),
        }),
    }
}

/// Weights that ship with the program, by name: `training/NAME.safetensors`, made by the document beside it.
pub const WEIGHTS: [(&str, &[u8]); 15] = [
    ("deepshare_cells", include_bytes!("../../../training/deepshare_cells.safetensors")),
    ("deepshare_e", include_bytes!("../../../training/deepshare_e.safetensors")),
    ("deepshare_hybrid", include_bytes!("../../../training/deepshare_hybrid.safetensors")),
    ("dl2", include_bytes!("../../../training/dl2.safetensors")),
    ("dl2_world", include_bytes!("../../../training/dl2_world.safetensors")),
    ("dual_agent", include_bytes!("../../../training/dual_agent.safetensors")),
    ("dual_agent_beside", include_bytes!("../../../training/dual_agent_beside.safetensors")),
    ("dual_agent_joint", include_bytes!("../../../training/dual_agent_joint.safetensors")),
    ("dual_agent_longer", include_bytes!("../../../training/dual_agent_longer.safetensors")),
    ("dual_agent_rounds", include_bytes!("../../../training/dual_agent_rounds.safetensors")),
    ("dual_agent_switching", include_bytes!("../../../training/dual_agent_switching.safetensors")),
    ("elastic", include_bytes!("../../../training/elastic.safetensors")),
    ("learned_pairs", include_bytes!("../../../training/learned_pairs.safetensors")),
    ("learned_values", include_bytes!("../../../training/learned_values.safetensors")),
    ("learned_values_packed", include_bytes!("../../../training/learned_values_packed.safetensors")),
];

/// The bytes of the embedded weights of this name, or of the file at this path. What has a path separator, or ends in
/// `.safetensors` or `.onnx`, is a path; anything else is a name first.
///
/// # Errors
/// If there is neither; says which names there are.
pub fn load_weights(name_or_path: &str) -> Result<Vec<u8>, SpecError> {
    load_weights_from(Path::new(""), name_or_path)
}

/// The same, where a relative path starts in `folder`: that of the document which states it.
///
/// # Errors
/// If there is neither; says which names there are.
pub fn load_weights_from(folder: &Path, name_or_path: &str) -> Result<Vec<u8>, SpecError> {
    if let Some((_, bytes)) = WEIGHTS.iter().find(|(name, _)| *name == name_or_path) {
        return Ok(bytes.to_vec());
    }
    let path = folder.join(name_or_path);
    // (what is there but holds no weights is said to hold none, not to be unknown)
    if is_path(name_or_path) || path.exists() {
        return read_bytes(path);
    }
    let names = || WEIGHTS.iter().map(|(name, _)| *name);
    let message =
        format!("unknown weights `{name_or_path}`, expected a file or one of {}", name_list(names()));
    Err(SpecError::about("", message, suggestion(name_or_path, names())))
}

/// Do weights of this name ship with the program?
pub fn ships(name: &str) -> bool {
    WEIGHTS.iter().any(|(other, _)| *other == name)
}

fn is_path(name_or_path: &str) -> bool {
    let is_file = [".safetensors", ".onnx"].iter().any(|ending| name_or_path.ends_with(ending));
    is_file || name_or_path.contains(std::path::is_separator)
}

/// Where a document's own paths start: its folder, or where the command runs if it has none.
fn folder_of(source: &Source) -> &Path {
    Path::new(&source.name).parent().unwrap_or(Path::new(""))
}

/// A name as it is; a path from the folder of the document that states it.
fn from_folder(folder: &Path, name_or_path: &str) -> String {
    let path = folder.join(name_or_path);
    if !ships(name_or_path) && (is_path(name_or_path) || path.exists()) {
        return path.display().to_string();
    }
    name_or_path.to_owned()
}
