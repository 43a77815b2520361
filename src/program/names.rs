//! The owners and worker types that an objective and its constraints name.

use std::collections::BTreeSet;

use super::expression::{Node, TypeRef};
use super::objective::Objective;

impl Objective {
    /// The owners that the objective or a constraint names by `owned_by`, each once, in the order of their names.
    pub fn owners(&self) -> Vec<&str> {
        let mut owners = BTreeSet::new();
        self.each_node(&mut |node| {
            if let Node::OwnedBy(owner) = node {
                owners.insert(owner.as_str());
            }
        });
        owners.into_iter().collect()
    }

    /// The worker types that the objective or a constraint names, each once, in the order of their names.
    pub fn worker_types(&self) -> Vec<&str> {
        let mut names = BTreeSet::new();
        self.each_node(&mut |node| {
            if let Node::Variable(_, Some(TypeRef::Named(name)))
            | Node::Data { of: Some(TypeRef::Named(name)), .. } = node
            {
                names.insert(name.as_str());
            }
        });
        names.into_iter().collect()
    }
}
