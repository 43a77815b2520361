//! Hierarchical weights: the tree of entities and jobs, and the weight that falls to each job.
//!
//! An entity grants its weight to its unsaturated children, jobs or entities: under `fairness` in proportion to their own
//! weights, under `fifo` all of it to the earliest child, the job that has waited longest or the entity that owns it; of
//! children that came together, the first listed. Entities at the top, and jobs without an entity, have their own weights.
//! Source: Narayanan et al. (OSDI '20), §4.3; nested to any depth here.

mod level_tree;

pub(super) use self::level_tree::{Rates, Rising};

use crate::index::{EntityId, Id};
use crate::problem::{InnerRule, Problem};
use crate::program::Classes;

#[derive(Clone, Debug)]
enum TreeNode {
    /// A class of so many jobs, with the weight of one.
    Member { member: usize, weight: f64, n_jobs: f64 },
    /// An entity, by its place.
    Entity(usize),
}

#[derive(Clone, Debug)]
struct EntityNode {
    weight: f64,
    inner: InnerRule,
    /// In order of arrival of their earliest job.
    children: Vec<TreeNode>,
}

/// The tree of one problem's entities and classes of jobs.
#[derive(Clone, Debug)]
pub(super) struct Hierarchy {
    nodes: Vec<EntityNode>,
    roots: Vec<TreeNode>,
}

/// Are jobs of this entity interchangeable? Not if their order of arrival decides, in it or above it.
pub(super) fn interchangeable(problem: &Problem, entity: Option<EntityId>) -> bool {
    let mut at = entity;
    // An entity has fewer ancestors than there are entities; a longer chain is a cycle, refused on reading.
    for _ in 0..=problem.entities().len() {
        let Some(id) = at else { return true };
        let entity = &problem.entities()[id];
        if entity.inner == InnerRule::Fifo {
            return false;
        }
        at = entity.parent;
    }
    true
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
        Self { nodes, roots }
    }

    /// The weight that falls to one job of each class, [members]: 0 if it is frozen, or waits for an earlier child of a
    /// `fifo` entity.
    pub(super) fn weights(&self, frozen: &[bool]) -> Vec<f64> {
        let mut weights = vec![0.0; frozen.len()];
        for root in &self.roots {
            match root {
                TreeNode::Member { member, weight, .. } if !frozen[*member] => weights[*member] = *weight,
                TreeNode::Member { .. } => {}
                TreeNode::Entity(node) => self.grant(*node, self.nodes[*node].weight, frozen, &mut weights),
            }
        }
        weights
    }

    /// Is a child, or any job below it, not frozen?
    fn unsaturated(&self, child: &TreeNode, frozen: &[bool]) -> bool {
        match child {
            TreeNode::Member { member, .. } => !frozen[*member],
            TreeNode::Entity(node) => {
                self.nodes[*node].children.iter().any(|child| self.unsaturated(child, frozen))
            }
        }
    }

    /// Divides an amount of weight among an entity's unsaturated children, by its rule, and so on down to jobs.
    fn grant(&self, node: usize, amount: f64, frozen: &[bool], weights: &mut [f64]) {
        let open = || self.nodes[node].children.iter().filter(|child| self.unsaturated(child, frozen));
        let own = |child: &TreeNode| match child {
            TreeNode::Member { weight, n_jobs, .. } => weight * n_jobs,
            TreeNode::Entity(node) => self.nodes[*node].weight,
        };
        let total: f64 = match self.nodes[node].inner {
            InnerRule::Fairness => open().map(own).sum(),
            InnerRule::Fifo => 0.0,
        };
        let n_granted = if self.nodes[node].inner == InnerRule::Fifo { 1 } else { usize::MAX };
        for child in open().take(n_granted) {
            let share = if total > 0.0 { amount * own(child) / total } else { amount };
            match child {
                TreeNode::Member { member, n_jobs, .. } => weights[*member] = share / n_jobs,
                TreeNode::Entity(node) => self.grant(*node, share, frozen, weights),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::JobId;
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
        let of = |job: usize| interchangeable(&problem, problem.jobs()[Id::from_index(job)].entity);
        assert_eq!([of(0), of(1), of(4)], [true, false, true]);
    }
}
