//! Owners of jobs in a scheduler or a simulation: in the order in which they were first named, found by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::{EntityId, IndexVec};
use crate::problem::{Entity, InnerRule};

/// Every owner seen or declared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    all: Arc<IndexVec<EntityId, Entity>>,
    /// The owners by name; of several with one name, the first.
    by_name: BTreeMap<String, EntityId>,
}

impl Owners {
    /// All owners, shared with the problems that are made of them.
    pub(crate) fn all(&self) -> &Arc<IndexVec<EntityId, Entity>> {
        &self.all
    }

    /// The owners in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Entity> {
        self.all.iter()
    }

    /// The owner of this name; none if there is none.
    pub(crate) fn find(&self, name: &str) -> Option<EntityId> {
        self.by_name.get(name).copied()
    }

    /// Adds an owner, even if another has its name.
    pub(crate) fn push(&mut self, entity: Entity) -> EntityId {
        let name = entity.name.clone();
        let id = Arc::make_mut(&mut self.all).push(entity);
        self.by_name.entry(name).or_insert(id);
        id
    }

    /// Puts an owner in the place of the one with this name, or adds it.
    pub(crate) fn declare(&mut self, entity: Entity) -> EntityId {
        let Some(known) = self.find(&entity.name) else { return self.push(entity) };
        Arc::make_mut(&mut self.all).replace(known, entity);
        known
    }

    /// The owner of this name; one that was never named before has weight 1.
    pub(crate) fn named(&mut self, name: &str) -> EntityId {
        let fresh = |name: &str| Entity {
            name: name.to_owned(),
            weight: 1.0,
            inner: InnerRule::Fairness,
            parent: None,
        };
        self.find(name).unwrap_or_else(|| self.push(fresh(name)))
    }
}

impl FromIterator<Entity> for Owners {
    fn from_iter<I: IntoIterator<Item = Entity>>(entities: I) -> Self {
        let mut owners = Self::default();
        for entity in entities {
            owners.push(entity);
        }
        owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_keep_their_positions_and_the_first_of_a_name_is_found() {
        let mut owners = Owners::default();
        let (a, b) = (owners.named("a"), owners.named("b"));
        assert_eq!((owners.named("a"), owners.find("b"), owners.find("c")), (a, Some(b), None));
        let entity = |name: &str, weight| Entity {
            name: name.to_owned(),
            weight,
            inner: InnerRule::Fifo,
            parent: None,
        };
        let seen = Arc::clone(owners.all());
        assert_eq!(owners.declare(entity("a", 3.0)), a);
        assert_ne!(owners.push(entity("a", 4.0)), a);
        assert_eq!((owners.find("a"), owners.iter().len()), (Some(a), 3));
        let weights: Vec<f64> = owners.iter().map(|entity| entity.weight).collect();
        assert_eq!(
            (weights, seen[a].weight),
            (vec![3.0, 1.0, 4.0], 1.0),
            "problems that were made keep theirs"
        );
    }
}
