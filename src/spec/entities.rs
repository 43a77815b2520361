//! Owners of jobs in documents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::spec::document::{Complaints, Source, SpecError, Unplaced};
use crate::spec::nearest;
use crate::spec::run::FieldComplaint;
use crate::spec::snapshot::{NUMBER_MAX, NUMBER_MIN};
use crate::spec::structure;

/// The way in which an entity divides its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InnerRuleName {
    /// In proportion to the jobs' weights.
    #[default]
    Fairness,
    /// All to the earliest job.
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
    /// The way in which it divides its share among its jobs.
    #[serde(default)]
    pub inner: InnerRuleName,
    /// The entity that it belongs to, for deeper trees; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

fn weight_one() -> f64 {
    1.0
}

/// The position of the entity of each name; of the first, if several have one name.
fn positions(entities: &[SnapshotEntity]) -> BTreeMap<&str, usize> {
    entities.iter().enumerate().rev().map(|(position, entity)| (entity.id.as_str(), position)).collect()
}

/// The position of each entity's parent; none if it has none, or none of that name exists.
pub(crate) fn parents(entities: &[SnapshotEntity]) -> Vec<Option<usize>> {
    let positions = positions(entities);
    let parent = |entity: &SnapshotEntity| positions.get(entity.parent.as_deref()?).copied();
    entities.iter().map(parent).collect()
}

/// Whether each entity is its own ancestor.
pub(super) fn belong_to_themselves(parents: &[Option<usize>]) -> Vec<bool> {
    let mut circular = vec![false; parents.len()];
    // The walk on which each entity was met first.
    let mut met: Vec<Option<usize>> = vec![None; parents.len()];
    for start in 0..parents.len() {
        let mut next = Some(start);
        while let Some(at) = next.filter(|at| met[*at].is_none()) {
            met[at] = Some(start);
            next = parents[at];
        }
        // If it was met on this very walk, a circle begins there.
        while let Some(at) = next.filter(|at| met[*at] == Some(start) && !circular[*at]) {
            circular[at] = true;
            next = parents[at];
        }
    }
    circular
}

/// The most owners one above another: more are a mistake, and would overflow the stack of recursive code.
pub(super) const DEPTH_MAX: usize = 1_000;

/// The depth of each entity: the number of owners from the root to it, itself counted. Entities that lead into a circle have no
/// meaningful depth.
pub(super) fn depths(parents: &[Option<usize>]) -> Vec<usize> {
    let mut depths = vec![0; parents.len()];
    let mut walk = Vec::new();
    for start in 0..parents.len() {
        let mut next = Some(start);
        while let Some(at) = next.filter(|at| depths[*at] == 0) {
            depths[at] = 1;
            walk.push(at);
            next = parents[at];
        }
        let mut depth = next.map_or(0, |at| depths[at]);
        for at in walk.drain(..).rev() {
            depth += 1;
            depths[at] = depth;
        }
    }
    depths
}

/// The message about an entity that is too deep.
pub(super) fn too_deep(id: &str, depth: usize) -> String {
    format!(
        "entity `{id}` is number {depth} of a chain of owners, expected at most {DEPTH_MAX} one above another"
    )
}

/// A fault of one entity in a list: its position, the field, the message, and a remedy if there is one.
type Fault = (usize, &'static str, String, Option<String>);

fn faults(entities: &[SnapshotEntity]) -> Vec<Fault> {
    let mut found = Vec::new();
    let (positions, parents) = (positions(entities), parents(entities));
    let (circular, depths) = (belong_to_themselves(&parents), depths(&parents));
    for (position, entity) in entities.iter().enumerate() {
        let SnapshotEntity { id, weight, parent, .. } = entity;
        let mut push = |field, message, help| found.push((position, field, message, help));
        if !(NUMBER_MIN..=NUMBER_MAX).contains(weight) {
            let expected = format!("a number from {NUMBER_MIN:e} to {NUMBER_MAX:e}");
            push("weight", format!("entity `{id}` has weight {weight:?}, expected {expected}"), None);
        }
        if positions[id.as_str()] != position {
            push("id", format!("entity `{id}` is given twice, expected each once"), None);
        }
        let Some(parent) = parent else { continue };
        if parents[position].is_none() {
            let known = || entities.iter().map(|entity| entity.id.as_str());
            let expected = nearest::name_list(known());
            let message = format!(
                "entity `{id}` belongs to `{parent}`, which is not given, expected one of {expected}"
            );
            push("parent", message, nearest::suggestion(parent, known()));
        } else if circular[position] {
            push("parent", format!("entity `{id}` belongs to itself, by way of its parents"), None);
        } else if depths[position] == DEPTH_MAX + 1 {
            push("parent", too_deep(id, depths[position]), None);
        }
    }
    found
}

/// Reads a document that is a list of entities and nothing else.
///
/// # Errors
/// With the place of every fault.
pub fn read_entities(source: &Source) -> Result<Vec<SnapshotEntity>, SpecError> {
    if structure::is_void(source) {
        let help = "such as `[{id: research}, {id: product, weight: 2}]`".to_owned();
        let message = "the document is empty, expected a list of entities";
        return Err(source.at(1, 1, message.to_owned(), Some(help)));
    }
    let entities: Vec<SnapshotEntity> = source.parse()?;
    let mut complaints = Complaints::default();
    for (position, field, message, help) in faults(&entities) {
        complaints.push(|| Unplaced::at(&format!("[{position}].{field}"), message, help));
    }
    source.all_at(complaints)?;
    Ok(entities)
}

/// The faults of the entities that a run declares. `listed`: whether its jobs come from a trace, and are not drawn.
pub(super) fn complaints(entities: &[SnapshotEntity], listed: bool) -> Vec<FieldComplaint> {
    let drawn = (!listed && !entities.is_empty()).then(|| {
        let help = "jobs name their owners in a trace's column `entity`".to_owned();
        ("jobs that are drawn belong to nobody".to_owned(), Some(help))
    });
    let faults = faults(entities).into_iter().map(|(_, _, message, help)| (message, help));
    let complaint = |(message, help)| FieldComplaint { field: "workload.entities".to_owned(), message, help };
    drawn.into_iter().chain(faults).map(complaint).collect()
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

    #[test]
    fn an_entity_is_one_deeper_than_its_owner() {
        assert_eq!(depths(&[Some(1), Some(3), None, None, Some(0)]), [3, 2, 1, 1, 4]);
        let chain: Vec<Option<usize>> = (0..100_000_usize).map(|at| at.checked_sub(1)).collect();
        assert_eq!(depths(&chain).last(), Some(&100_000));
    }
}
