//! The training document, in its own form and as `--set` changes it.

use std::path::PathBuf;

use serde::Deserialize as _;
use serde_json::Value;

use crate::exit::Failure;
use apportion::spec::Source;
use apportion_published::systems;
use apportion_published::training::spec::{FORMAT, TrainingSpec};
use apportion_published::trainings::TRAININGS;

/// A document, and the values that replace some of its own.
#[derive(Debug)]
pub(super) struct Document<'a> {
    source: Source,
    written: TrainingSpec,
    changes: &'a [String],
    folder: PathBuf,
}

impl<'a> Document<'a> {
    /// Reads the document that ships with the program under this name, or that is at this path, without changes.
    pub(super) fn read(name_or_path: &str, changes: &'a [String]) -> Result<Self, Failure> {
        let source = Source::find("training", name_or_path, &TRAININGS)?;
        source.check_finite()?;
        let written = source.parse_format(FORMAT)?;
        let folder = source.folder();
        Ok(Self { source, written, changes, folder })
    }

    /// The specification with all changes.
    pub(super) fn changed(&self) -> Result<TrainingSpec, Failure> {
        self.changed_by(self.changes)
    }

    fn changed_by(&self, changes: &[String]) -> Result<TrainingSpec, Failure> {
        let mut spec = self.written.clone();
        // A path in the document begins at the document's folder; a path of the command line, where the command runs.
        if !changes.iter().any(|change| change.starts_with("from=")) {
            spec.folder.clone_from(&self.folder);
        }
        if changes.is_empty() {
            return Ok(spec);
        }
        let folder = std::mem::take(&mut spec.folder);
        let bug = |error: serde_json::Error| Failure::Bug { message: error.to_string() };
        let mut document = serde_json::to_value(&spec).map_err(bug)?;
        for change in changes {
            put(&mut document, change)?;
            // The changes are made one after another, so that a faulty one is named.
            let _ =
                TrainingSpec::deserialize(&document).map_err(|error| fault(change, &error.to_string()))?;
        }
        Ok(TrainingSpec { folder, ..TrainingSpec::deserialize(document).map_err(bug)? })
    }

    /// An error about the value at `place`: it names the `--set` that made it wrong, if one did, or else the place in the document.
    pub(super) fn error_at(&self, place: &str, message: String, help: Option<String>) -> Failure {
        match self.culprit(place) {
            Some(change) => Failure::usage(format!("`--set {change}`: {message}"), help),
            None => self.source.error_at(place, message, help).into(),
        }
    }

    /// The change that sets the value at `place`, or else the last one without which there would be no error.
    fn culprit(&self, place: &str) -> Option<&str> {
        let field = |change: &'a String| change.split_once('=').map_or("", |(field, _)| field);
        let around = |field: &str| {
            place.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let given = self.changes.iter().rev().find(|change| around(field(change)));
        let broke = || {
            let fine = |n: usize| self.changed_by(&self.changes[..n]).is_ok_and(|spec| is_fine(&spec));
            let n = (0..self.changes.len()).rev().find(|n| fine(*n))?;
            self.changes.get(n)
        };
        given.or_else(broke).map(String::as_str)
    }
}

/// Whether a training of this specification can begin.
fn is_fine(spec: &TrainingSpec) -> bool {
    systems::open(&spec.system, &spec.world).is_ok_and(|system| spec.learner(&system).is_ok())
}

fn fault(change: &str, message: &str) -> Failure {
    Failure::usage(format!("`--set {change}`: {message}"), None)
}

/// Puts the value of a change into its field.
fn put(document: &mut Value, change: &str) -> Result<(), Failure> {
    let (field, text) = change
        .split_once('=')
        .filter(|(field, _)| !field.is_empty())
        .ok_or_else(|| fault(change, "expected FIELD=VALUE, as in `seed=2`"))?;
    let value: Value =
        Source::new("value", text).parse().map_err(|error| fault(change, &error.to_string()))?;
    let mut at = document;
    for key in field.split('.') {
        if at.is_null() {
            *at = Value::Object(serde_json::Map::new());
        }
        let Value::Object(fields) = at else {
            return Err(fault(change, &format!("there is nothing above `{key}` that has fields")));
        };
        at = fields.entry(key).or_insert(Value::Null);
    }
    *at = value;
    Ok(())
}
