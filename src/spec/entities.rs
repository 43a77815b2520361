//! Owners of jobs, as documents write them.

use serde::{Deserialize, Serialize};

use crate::spec::nearest;
use crate::spec::run::FieldComplaint;

/// How an entity divides its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InnerRuleName {
    /// In proportion to the jobs' weights.
    #[default]
    Fairness,
    /// All to its earliest job.
    Fifo,
}

/// An owner of jobs or of other entities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SnapshotEntity {
    /// The name by which jobs and other entities refer to it; no two are the same.
    pub id: String,
    /// Its weight among the entities of the same parent.
    #[serde(default = "weight_one")]
    pub weight: f64,
    /// How it divides its share among its jobs.
    #[serde(default)]
    pub inner: InnerRuleName,
    /// The entity that it belongs to, for deeper trees; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

fn weight_one() -> f64 {
    1.0
}

/// Is the entity at this position its own ancestor?
pub(super) fn belongs_to_itself(entities: &[SnapshotEntity], start: usize) -> bool {
    let mut at = start;
    for _ in 0..=entities.len() {
        let parent = entities[at].parent.as_deref();
        match parent.and_then(|parent| entities.iter().position(|entity| entity.id == parent)) {
            None => return false,
            Some(next) if next == start => return true,
            Some(next) => at = next,
        }
    }
    false // a circle further up: reported for its own members
}

/// What is wrong with the entities of a run whose jobs are listed in a trace, or drawn; each with a remedy if there
/// is one.
pub(super) fn complaints(entities: &[SnapshotEntity], listed: bool) -> Vec<FieldComplaint> {
    let mut found = Vec::new();
    if !listed && !entities.is_empty() {
        let help = "jobs name their owners in a trace's column `entity`".to_owned();
        found.push(("jobs that are drawn belong to nobody".to_owned(), Some(help)));
    }
    for (position, entity) in entities.iter().enumerate() {
        let SnapshotEntity { id, weight, parent, .. } = entity;
        if !(weight.is_finite() && *weight > 0.0) {
            found
                .push((format!("entity `{id}` has weight {weight}, expected a finite number above 0"), None));
        }
        if entities[..position].iter().any(|other| other.id == *id) {
            found.push((format!("entity `{id}` is given twice"), None));
        }
        let Some(parent) = parent else { continue };
        let known = || entities.iter().map(|entity| entity.id.as_str());
        if !known().any(|other| other == parent) {
            let message = format!("entity `{id}` belongs to `{parent}`, which is not given");
            found.push((message, nearest::suggestion(parent, known())));
        } else if belongs_to_itself(entities, position) {
            found.push((format!("entity `{id}` belongs to itself, by way of its parents"), None));
        }
    }
    let field = "workload.entities";
    found
        .into_iter()
        .map(|(message, help)| FieldComplaint { field: field.to_owned(), message, help })
        .collect()
}
