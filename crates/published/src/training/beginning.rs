//! Weights that a training begins with, made by another training of the same networks.

use serde::Deserialize;
use serde_json::Value;

use super::spec::TrainingSpec;
use crate::dual_agent::network::{HEADS, NAME};
use crate::dual_agent::training_network::SetOptions;
use crate::weights::load_weights_from;
use apportion::spec::run::sha256;
use apportion_learn::checkpoint::{Checkpoint, NetworkKind};
use apportion_learn::onnx::is_onnx;
use apportion_learn::system::System;
use apportion_learn::tensors::Tensors;
use apportion_learn::training::TrainingError;
use apportion_learn::training::model::{Model, Parameters, fitting};

/// Weights by the model's names; without the critic's, if the file has the actors' alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Beginning {
    weights: Tensors,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
}

impl Beginning {
    /// Loads the weights that the document's `from` names, if it is given: weights that ship with the program, or a file.
    ///
    /// # Errors
    /// If there are no such weights, or they are of another network or system.
    pub fn load(spec: &TrainingSpec, system: &System) -> Result<Option<Self>, TrainingError> {
        let Some(name) = &spec.from else { return Ok(None) };
        let fault = |reason: String, help: &str| TrainingError::Beginning {
            reason: format!("weights `{name}`: {reason}"),
            help: help.to_owned(),
        };
        let elsewhere = "give weights that `apportion train` made, by the path of their file";
        let bytes = load_weights_from(&spec.folder, name).map_err(|error| {
            let said = error.diagnostics.into_iter().next();
            let (message, help) = said.map(|said| (said.message, said.help)).unwrap_or_default();
            let reason = if message.contains(name.as_str()) {
                message
            } else {
                format!("weights `{}`: {message}", spec.folder.join(name).display())
            };
            TrainingError::Beginning { reason, help: help.unwrap_or_else(|| elsewhere.to_owned()) }
        })?;
        if is_onnx(name, &bytes) {
            return Err(fault("it is an ONNX file, which no training goes on from".to_owned(), elsewhere));
        }
        let found = Checkpoint::from_bytes(&bytes).map_err(|error| fault(error.to_string(), elsewhere))?;
        let own = spec.kind(system);
        if found.header.network != own {
            let reason =
                format!("it is of {}, and this training of {}", named(&found.header.network), named(&own));
            return Err(fault(reason, "give weights of a training of the same `system` and `network`"));
        }
        if let Some(of) = found.header.spec["system"].as_str().filter(|of| *of != spec.system) {
            let reason = format!("it is of `system: {of}`, and this training of `system: {}`", spec.system);
            return Err(fault(reason, "give weights of a training of the same `system` and `network`"));
        }
        if system.own_network == Some(NAME) {
            let theirs = found.header.spec.get("sets").unwrap_or(&Value::Null);
            check_sets(theirs, spec.sets.clone().unwrap_or_default())?;
        }
        Ok(Some(Self { weights: found.weights(), digest: sha256(&bytes) }))
    }

    /// Puts these weights in place of a model's own. The model keeps its own critic where the weights have none, and its own heads
    /// of the placement agent where the weights were trained for another kind of choices.
    ///
    /// # Errors
    /// If the weights do not fit the model; the model is then unchanged.
    pub fn give(&self, model: &dyn Model) -> Result<(), TrainingError> {
        let parameters = model.parameters();
        let whole = self.filled(parameters).map_err(|error| TrainingError::Beginning {
            reason: match error {
                TrainingError::Checkpoint { reason } => reason,
                error => error.to_string(),
            },
            help: "make `network`, `sets` and `world` as they were in the training that made them".to_owned(),
        })?;
        parameters.set(&whole)
    }

    /// The whole weights of a model: these where there are some, and otherwise the model's own.
    fn filled(&self, parameters: &Parameters) -> Result<Tensors, TrainingError> {
        let mut whole = parameters.to_tensors()?;
        let is_head = |name: &str| HEADS.iter().any(|head| name.starts_with(head));
        let lost = |name: &str| !whole.contains(name) && !is_head(name);
        if let Some((name, ..)) = self.weights.iter().find(|(name, ..)| lost(name)) {
            let reason = format!("`{name}` is no tensor of this training's networks");
            return Err(TrainingError::Checkpoint { reason });
        }
        for (name, variable) in parameters.iter() {
            if self.weights.contains(name) || !name.starts_with("critic.") && !is_head(name) {
                let numbers = fitting(&self.weights, name, variable.dims())?;
                whole.insert(name.as_str(), variable.dims().to_vec(), numbers)?;
            }
        }
        Ok(whole)
    }
}

fn named(network: &NetworkKind) -> String {
    match network {
        NetworkKind::Mlp { activation, n_agents } => {
            format!("dense layers of {n_agents} agents after `{}`", format!("{activation:?}").to_lowercase())
        }
        NetworkKind::Own { name } => format!("the network `{name}`"),
    }
}

/// Refuses weights that were trained with other options of networks over sets.
fn check_sets(theirs: &Value, own: SetOptions) -> Result<(), TrainingError> {
    let bug = |error: serde_json::Error| TrainingError::Checkpoint { reason: error.to_string() };
    let theirs = Option::<SetOptions>::deserialize(theirs).map_err(bug)?.unwrap_or_default();
    if theirs == own {
        return Ok(());
    }
    let [theirs, own] = [theirs, own].map(|options| serde_json::to_value(options).unwrap_or_default());
    let fields = ["width", "summary", "communicates", "residual"];
    let shown = |value: &Value, field: &str| value.get(field).map_or("absent".to_owned(), Value::to_string);
    let differs = fields.into_iter().find(|field| theirs.get(field) != own.get(field)).unwrap_or("width");
    Err(TrainingError::Beginning {
        reason: format!(
            "it was trained with `sets.{differs}` {}, which is {} here",
            shown(&theirs, differs),
            shown(&own, differs)
        ),
        help: "make `sets` as it was in the training that made the weights".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::systems;
    use crate::training::spec::FORMAT;
    use apportion::spec::Source;
    use apportion_learn::training::learner::Learner as _;

    const TEXT: &str = "\
format: apportion/training-v1
system: dual_agent
world: { jobs: 12, gap_s: 10, scale: 0.01, seen_jobs: 5, seen_servers: 6, advised: true }
sets: { width: 4, summary: 2, residual: { patience: 0.5 } }
evolution: { pairs: 2, episodes: 2, deviation: 5.0, only: [actor.place] }
seed: 5
budget: { decisions: 8, validate_every: 1 }
validation: { seeds: [1] }
";

    fn made(text: &str) -> (TrainingSpec, System) {
        let spec: TrainingSpec = Source::new("training.yaml", text).parse_format(FORMAT).unwrap();
        let system = systems::open(&spec.system, &spec.world).unwrap();
        (spec, system)
    }

    fn weights_of(spec: &TrainingSpec, system: &System) -> Tensors {
        spec.learner(system).unwrap().model().parameters().to_tensors().unwrap()
    }

    #[test]
    fn a_training_begins_with_the_weights_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("first.safetensors");
        let (spec, system) = made(TEXT);
        let mut first = spec.learner(&system).unwrap();
        first.update().unwrap();
        let weights = first.model().parameters().to_tensors().unwrap();
        let provenance = spec.provenance((&system, None), (1, 2)).unwrap();
        for slim in [true, false] {
            let checkpoint = if slim {
                Checkpoint::of_weights(provenance.clone(), &weights)
            } else {
                let saved = first.save().unwrap();
                Checkpoint::of_training(provenance.clone(), saved.tensors, saved.state)
            };
            let bytes = checkpoint.to_bytes().unwrap();
            fs::write(&file, &bytes).unwrap();
            let (mut next, system) = made(&TEXT.replace("seed: 5", "seed: 6"));
            let drawn = weights_of(&next, &system);
            next.from = Some(file.display().to_string());
            let begun = weights_of(&next, &system);
            assert_ne!(begun, drawn);
            for (name, _, numbers) in begun.iter() {
                let of_file = !slim || name.starts_with("actor.");
                let expected = if of_file { &weights } else { &drawn };
                assert_eq!(numbers, expected.get(name).unwrap().1, "{name}");
            }
            // Weights outside `only` stay as they were given, and the digest is that of the file.
            let mut learner = next.learner(&system).unwrap();
            learner.update().unwrap();
            let moved = learner.model().parameters().to_tensors().unwrap();
            let kept = |name: &str| moved.get(name).unwrap() == weights.get(name).unwrap();
            assert!(kept("actor.job.0.weight") && !kept("actor.place.0.weight"));
            // A learner that is stopped here and restored goes on bit for bit.
            let mut resumed = next.learner(&system).unwrap();
            resumed.restore(&learner.save().unwrap()).unwrap();
            for learner in [&mut learner, &mut resumed] {
                learner.update().unwrap();
            }
            assert_eq!(learner.save().unwrap(), resumed.save().unwrap());
            assert_eq!(Beginning::load(&next, &system).unwrap().unwrap().digest, sha256(&bytes));
        }
    }

    /// A network that chooses among whole placements begins with all weights but the heads of one that chose servers, and the other
    /// way.
    #[test]
    fn heads_for_other_choices_stay_as_they_were_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("first.safetensors");
        let servers = TEXT.replace("seen_servers: 6", "seen_servers: 10");
        let proposals = servers.replace("advised: true", "advised: true, proposals: true");
        let proposals = proposals.replace("actor.place", "actor.choice").replace("seed: 5", "seed: 6");
        for (first, next) in [(&servers, &proposals), (&proposals, &servers)] {
            let (spec, system) = made(first);
            let weights = weights_of(&spec, &system);
            let provenance = spec.provenance((&system, None), (1, 2)).unwrap();
            fs::write(&file, Checkpoint::of_weights(provenance, &weights).to_bytes().unwrap()).unwrap();
            let (mut next, system) = made(next);
            let drawn = weights_of(&next, &system);
            next.from = Some(file.display().to_string());
            let begun = weights_of(&next, &system);
            let mut n_heads = 0;
            for (name, _, numbers) in begun.iter().filter(|(name, ..)| name.starts_with("actor.")) {
                let is_head = HEADS.iter().any(|head| name.starts_with(head));
                let of = if is_head { &drawn } else { &weights };
                assert_eq!(numbers, of.get(name).unwrap().1, "{name}");
                n_heads += usize::from(is_head);
            }
            assert_eq!(n_heads, 8);
        }
    }

    #[test]
    fn weights_of_other_networks_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("first.safetensors");
        let (spec, system) = made(TEXT);
        let provenance = spec.provenance((&system, None), (1, 2)).unwrap();
        let weights = weights_of(&spec, &system);
        fs::write(&path, Checkpoint::of_weights(provenance, &weights).to_bytes().unwrap()).unwrap();
        let said = |text: &str, from: &str| {
            let (mut spec, system) = made(text);
            spec.from = Some(from.to_owned());
            spec.learner(&system).unwrap_err().to_string()
        };
        // A relative path starts in the document's folder, and nowhere else.
        let (mut beside, system) = made(TEXT);
        (beside.from, beside.folder) = (Some("first.safetensors".to_owned()), folder.path().to_owned());
        beside.learner(&system).unwrap();
        beside.folder = folder.path().join("elsewhere");
        let error = beside.learner(&system).unwrap_err().to_string();
        assert!(error.contains("elsewhere/first.safetensors`: there is no such file"), "{error}");
        let file = path.display().to_string();
        let changed = |from: &str, to: &str| said(&TEXT.replace(from, to), &file);
        assert!(changed("width: 4", "width: 6").contains("trained with `sets.width` 4, which is 6 here"));
        assert!(changed("patience: 0.5", "patience: 0.3").contains("`sets.residual` {\"patience\":0.5}"));
        assert!(said(TEXT, "elastic").contains("it is of "));
        assert!(said(TEXT, "elastik").contains("unknown weights `elastik`"));
        assert!(said(TEXT, "nowhere.safetensors").contains("there is no such file"));
        let dense = "format: apportion/training-v1\nsystem: deepshare\nppo: {}\nnetwork: { hidden: [64, 32] }\nseed: 1\n\
                     budget: { decisions: 1, validate_every: 1 }\nvalidation: { seeds: [1] }\n";
        let shapes = said(dense, "deepshare_e");
        assert!(shapes.contains("has shape"), "{shapes}");
        fs::write(&path, b"nothing").unwrap();
        assert!(said(TEXT, &file).contains("not a whole safetensors file"));
    }
}
