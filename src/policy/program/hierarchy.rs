//! Hierarchical weights: the tree of entities and jobs, and the weight that falls to each job.
//!
//! An entity grants its weight to its unsaturated children, jobs or entities: under `fairness` in proportion to their own
//! weights, under `fifo` all of it to the earliest child, the job that has waited longest or the entity that owns it; of
//! children that came together, the first listed. Entities at the top, and jobs without an entity, have their own weights.
//! Source: Narayanan et al. (OSDI '20), §4.3; nested to any depth here.

mod level_tree;

pub(super) use self::level_tree::{Rates, Rising};

use crate::index::Id;
use crate::problem::{InnerRule, Problem};
use crate::program::Classes;

/// A child of an entity, or of the root.
#[derive(Clone, Debug)]
enum TreeNode {
    /// A class of `n_jobs` jobs, with the weight of one job.
    Member { member: usize, weight: f64, n_jobs: f64 },
    /// An entity, by its position.
    Entity(usize),
}

/// An entity with its children.
#[derive(Clone, Debug)]
struct EntityNode {
    weight: f64,
    inner: InnerRule,
    /// Children, in order of arrival of their earliest job.
    children: Vec<TreeNode>,
}

/// The tree of one problem's entities and classes of jobs.
#[derive(Clone, Debug)]
pub(super) struct Hierarchy {
    nodes: Vec<EntityNode>,
    roots: Vec<TreeNode>,
    /// Entities with jobs below them, each after its owner.
    downwards: Vec<usize>,
}

/// Whether the jobs of an entity are interchangeable: [entities]. False for entities that serve jobs in order of
/// arrival, and for those below them.
pub(super) fn interchangeable(problem: &Problem) -> Vec<bool> {
    let entities = problem.entities();
    let mut known: Vec<Option<bool>> =
        entities.iter().map(|entity| (entity.inner == InnerRule::Fifo).then_some(false)).collect();
    let mut walk = Vec::new();
    for start in entities.ids() {
        let mut at = Some(start);
        // Entities that are their own ancestors are refused on reading; a walk meets each once all the same.
        while let Some(id) = at.filter(|id| known[id.index()].is_none()) {
            known[id.index()] = Some(true);
            walk.push(id);
            at = entities[id].parent;
        }
        let answer = at.is_none_or(|id| known[id.index()] == Some(true));
        for id in walk.drain(..) {
            known[id.index()] = Some(answer);
        }
    }
    known.into_iter().map(|known| known == Some(true)).collect()
}

impl Hierarchy {
    /// The tree of `problem`'s entities and `classes` of its jobs. `as_listed`: the job listed first counts as the earliest,
    /// not the one that has waited longest.
    pub(super) fn new(problem: &Problem, classes: &Classes, as_listed: bool) -> Self {
        let entities = problem.entities();
        let mut nodes: Vec<EntityNode> = entities
            .iter()
            .map(|entity| EntityNode { weight: entity.weight, inner: entity.inner, children: Vec::new() })
            .collect();
        let mut members: Vec<(f64, usize)> = (0..classes.len())
            .map(|member| {
                let jobs =
                    classes.members(member).iter().map(|job| &problem.jobs()[Id::from_index(*job as usize)]);
                let longest = jobs.map(|job| job.elapsed.get()).fold(0.0, f64::max);
                (if as_listed { 0.0 } else { longest }, member)
            })
            .collect();
        members.sort_by(|(one, a), (other, b)| {
            other.total_cmp(one).then(classes.members(*a)[0].cmp(&classes.members(*b)[0]))
        });
        let mut attached = vec![false; nodes.len()];
        let mut roots = Vec::new();
        for (_, member) in members {
            let jobs = classes.members(member);
            let job = &problem.jobs()[Id::from_index(jobs[0] as usize)];
            let mut child = TreeNode::Member { member, weight: job.weight, n_jobs: jobs.len() as f64 };
            let mut owner = job.entity;
            while let Some(id) = owner {
                nodes[id.index()].children.push(child);
                if std::mem::replace(&mut attached[id.index()], true) {
                    break;
                }
                child = TreeNode::Entity(id.index());
                owner = entities[id].parent;
                if owner.is_none() {
                    roots.push(child.clone());
                }
            }
            if job.entity.is_none() {
                roots.push(TreeNode::Member { member, weight: job.weight, n_jobs: jobs.len() as f64 });
            }
        }
        let downwards = downwards(&nodes, &roots);
        Self { nodes, roots, downwards }
    }

    /// The weight that falls to one job of each class, [members]: 0 if it is frozen, or waits for an earlier child of a
    /// `fifo` entity.
    pub(super) fn weights(&self, frozen: &[bool]) -> Vec<f64> {
        let mut weights = vec![0.0; frozen.len()];
        // Whether some job below the entity is not frozen.
        let mut open = vec![false; self.nodes.len()];
        for node in self.downwards.iter().rev() {
            open[*node] = self.nodes[*node].children.iter().any(|child| is_open(child, frozen, &open));
        }
        let mut granted = vec![0.0; self.nodes.len()];
        for root in &self.roots {
            match root {
                TreeNode::Member { member, weight, .. } if !frozen[*member] => weights[*member] = *weight,
                TreeNode::Member { .. } => {}
                TreeNode::Entity(node) => granted[*node] = self.nodes[*node].weight,
            }
        }
        for node in self.downwards.iter().filter(|node| open[**node]) {
            let amount = granted[*node];
            let node = &self.nodes[*node];
            let unsaturated = || node.children.iter().filter(|child| is_open(child, frozen, &open));
            let (total, n_granted) = match node.inner {
                InnerRule::Fairness => (unsaturated().map(|child| self.own_weight(child)).sum(), usize::MAX),
                InnerRule::Fifo => (0.0, 1),
            };
            for child in unsaturated().take(n_granted) {
                let share = if total > 0.0 { amount * self.own_weight(child) / total } else { amount };
                match child {
                    TreeNode::Member { member, n_jobs, .. } => weights[*member] = share / n_jobs,
                    TreeNode::Entity(node) => granted[*node] = share,
                }
            }
        }
        weights
    }

    fn own_weight(&self, child: &TreeNode) -> f64 {
        match child {
            TreeNode::Member { weight, n_jobs, .. } => weight * n_jobs,
            TreeNode::Entity(node) => self.nodes[*node].weight,
        }
    }
}

/// Whether a child, or any job below it, is not frozen. `open` has the answer for entities.
fn is_open(child: &TreeNode, frozen: &[bool], open: &[bool]) -> bool {
    match child {
        TreeNode::Member { member, .. } => !frozen[*member],
        TreeNode::Entity(node) => open[*node],
    }
}

/// The entities below some nodes, each after its owner.
fn downwards(nodes: &[EntityNode], roots: &[TreeNode]) -> Vec<usize> {
    let entity = |child: &TreeNode| match child {
        TreeNode::Entity(node) => Some(*node),
        TreeNode::Member { .. } => None,
    };
    let mut order: Vec<usize> = roots.iter().filter_map(entity).collect();
    let mut at = 0;
    while let Some(node) = order.get(at) {
        order.extend(nodes[*node].children.iter().filter_map(entity));
        at += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::{EntityId, JobId};
    use crate::problem::{ActiveJob, Entity, ProblemBuilder};
    use crate::units::Seconds;

    fn entity(name: &str, weight: f64, inner: InnerRule, parent: Option<EntityId>) -> Entity {
        Entity { name: name.into(), weight, inner, parent }
    }

    /// org (weight 6, fairness) holds team a (2, fairness: jobs 0 and 2 of weights 1 and 3) and team b
    /// (1, fifo: jobs 1 and 3); job 4 has no entity, weight 5.
    fn problem() -> Problem {
        let mut builder = ProblemBuilder::new(Arc::new("v=4".parse().unwrap()));
        let org = builder.entity(entity("org", 6.0, InnerRule::Fairness, None));
        let a = builder.entity(entity("a", 2.0, InnerRule::Fairness, Some(org)));
        let b = builder.entity(entity("b", 1.0, InnerRule::Fifo, Some(org)));
        for (index, (owner, weight)) in
            [(Some(a), 1.0), (Some(b), 1.0), (Some(a), 3.0), (Some(b), 1.0), (None, 5.0)]
                .into_iter()
                .enumerate()
        {
            let job = ActiveJob { weight, entity: owner, ..ActiveJob::new(JobId::from_index(index)) };
            builder.job(job, &[1.0]);
        }
        builder.build().unwrap()
    }

    #[test]
    fn weight_falls_through_the_tree_to_unsaturated_jobs() {
        let hierarchy = Hierarchy::new(&problem(), &Classes::singletons(5), false);
        assert_eq!(hierarchy.weights(&[false; 5]), [1.0, 2.0, 3.0, 0.0, 5.0]);
        assert_eq!(hierarchy.weights(&[false, true, true, false, false]), [4.0, 0.0, 0.0, 2.0, 5.0]);
        assert_eq!(hierarchy.weights(&[true, true, true, false, true]), [0.0, 0.0, 0.0, 6.0, 0.0]);
    }

    #[test]
    fn the_earliest_has_waited_longest_wherever_it_is_listed() {
        let mut builder = ProblemBuilder::new(Arc::new("v=4".parse().unwrap()));
        let org = builder.entity(entity("org", 6.0, InnerRule::Fifo, None));
        let a = builder.entity(entity("a", 1.0, InnerRule::Fairness, Some(org)));
        let b = builder.entity(entity("b", 1.0, InnerRule::Fifo, Some(org)));
        for (index, (owner, waited)) in
            [(a, 10.0), (b, 5.0), (b, 30.0), (a, 20.0), (b, 30.0)].into_iter().enumerate()
        {
            let id = JobId::from_index(index);
            let job = ActiveJob { entity: Some(owner), elapsed: Seconds::new(waited), ..ActiveJob::new(id) };
            builder.job(job, &[1.0]);
        }
        let problem = builder.build().unwrap();
        // As published, the first listed: its entity shares between its two jobs.
        let hierarchy = Hierarchy::new(&problem, &Classes::singletons(5), true);
        assert_eq!(hierarchy.weights(&[false; 5]), [3.0, 0.0, 0.0, 3.0, 0.0]);
        let hierarchy = Hierarchy::new(&problem, &Classes::singletons(5), false);
        assert_eq!(hierarchy.weights(&[false; 5]), [0.0, 0.0, 6.0, 0.0, 0.0]);
        assert_eq!(hierarchy.weights(&[false, false, true, false, false]), [0.0, 0.0, 0.0, 0.0, 6.0]);
        assert_eq!(hierarchy.weights(&[false, false, true, false, true]), [0.0, 6.0, 0.0, 0.0, 0.0]);
        assert_eq!(hierarchy.weights(&[false, true, true, false, true]), [3.0, 0.0, 0.0, 3.0, 0.0]);
    }

    #[test]
    fn order_matters_only_below_a_fifo_entity() {
        let problem = problem();
        assert_eq!(interchangeable(&problem), [true, true, false]);
        let mut builder = ProblemBuilder::new(Arc::new("v=4".parse().unwrap()));
        let mut owner = builder.entity(entity("top", 1.0, InnerRule::Fifo, None));
        for depth in 0..3 {
            owner = builder.entity(entity(&depth.to_string(), 1.0, InnerRule::Fairness, Some(owner)));
        }
        builder.entity(entity("apart", 1.0, InnerRule::Fairness, None));
        assert_eq!(interchangeable(&builder.build().unwrap()), [false, false, false, false, true]);
    }

    #[test]
    fn weight_falls_through_any_number_of_owners() {
        let mut builder = ProblemBuilder::new(Arc::new("v=4".parse().unwrap()));
        let mut owner = None;
        for depth in 0..100_000 {
            owner = Some(builder.entity(entity(&depth.to_string(), 3.0, InnerRule::Fairness, owner)));
        }
        builder.job(ActiveJob { entity: owner, ..ActiveJob::new(JobId::from_index(0)) }, &[1.0]);
        let problem = builder.build().unwrap();
        assert!(interchangeable(&problem).iter().all(|all| *all));
        let hierarchy = Hierarchy::new(&problem, &Classes::singletons(1), false);
        assert_eq!(hierarchy.weights(&[false]), [3.0]);
    }
}
