//! Owners of jobs, as documents write them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::spec::nearest;
use crate::spec::run::FieldComplaint;
use crate::spec::snapshot::{NUMBER_MAX, NUMBER_MIN};

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
    /// Its weight among the entities of the same parent, from 1e-100 to 1e15.
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

/// Where the entity of each name stands, the first of several.
fn positions(entities: &[SnapshotEntity]) -> BTreeMap<&str, usize> {
    entities.iter().enumerate().rev().map(|(position, entity)| (entity.id.as_str(), position)).collect()
}

/// The entity that each belongs to; none for one that is not there.
pub(crate) fn parents(entities: &[SnapshotEntity]) -> Vec<Option<usize>> {
    let positions = positions(entities);
    let parent = |entity: &SnapshotEntity| positions.get(entity.parent.as_deref()?).copied();
    entities.iter().map(parent).collect()
}

/// Which entities are their own ancestors.
pub(super) fn belong_to_themselves(parents: &[Option<usize>]) -> Vec<bool> {
    let mut circular = vec![false; parents.len()];
    // The walk on which each was met first.
    let mut met: Vec<Option<usize>> = vec![None; parents.len()];
    for start in 0..parents.len() {
        let mut next = Some(start);
        while let Some(at) = next.filter(|at| met[*at].is_none()) {
            met[at] = Some(start);
            next = parents[at];
        }
        // Met on this very walk: a circle begins there.
        while let Some(at) = next.filter(|at| met[*at] == Some(start) && !circular[*at]) {
            circular[at] = true;
            next = parents[at];
        }
    }
    circular
}

/// What is wrong with the entities of a run whose jobs are listed in a trace, or drawn; each with a remedy if there
/// is one.
pub(super) fn complaints(entities: &[SnapshotEntity], listed: bool) -> Vec<FieldComplaint> {
    let mut found = Vec::new();
    if !listed && !entities.is_empty() {
        let help = "jobs name their owners in a trace's column `entity`".to_owned();
        found.push(("jobs that are drawn belong to nobody".to_owned(), Some(help)));
    }
    let (positions, parents) = (positions(entities), parents(entities));
    let circular = belong_to_themselves(&parents);
    for (position, entity) in entities.iter().enumerate() {
        let SnapshotEntity { id, weight, parent, .. } = entity;
        if !(NUMBER_MIN..=NUMBER_MAX).contains(weight) {
            let expected = format!("a number from {NUMBER_MIN:e} to {NUMBER_MAX:e}");
            found.push((format!("entity `{id}` has weight {weight:?}, expected {expected}"), None));
        }
        if positions[id.as_str()] != position {
            found.push((format!("entity `{id}` is given twice"), None));
        }
        let Some(parent) = parent else { continue };
        if parents[position].is_none() {
            let message = format!("entity `{id}` belongs to `{parent}`, which is not given");
            let known = entities.iter().map(|entity| entity.id.as_str());
            found.push((message, nearest::suggestion(parent, known)));
        } else if circular[position] {
            found.push((format!("entity `{id}` belongs to itself, by way of its parents"), None));
        }
    }
    let field = "workload.entities";
    found
        .into_iter()
        .map(|(message, help)| FieldComplaint { field: field.to_owned(), message, help })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_what_leads_into_them_is_none() {
        // 0 → 1 → 2 → 1; 3 → 3; 4 → 0; 5 is a root; 6 → 5.
        let parents = [Some(1), Some(2), Some(1), Some(3), Some(0), None, Some(5)];
        let expected = [false, true, true, true, false, false, false];
        assert_eq!(belong_to_themselves(&parents), expected);
    }
}
