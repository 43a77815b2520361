//! The throughputs of all members at a level, in closed form, if members saturate nowhere but at known limits.
//!
//! What is *granted* is weight times rise of the level, added up over levels. How an entity divides it does not depend
//! on anything outside of the entity, so what it has been granted so far determines what each child has: under
//! `fairness` all unsaturated children are at the same *height*, the grant per unit of their weight; under `fifo`
//! children become full one after another. So any level can be evaluated without going through the lower ones.

use super::{Hierarchy, TreeNode};
use crate::problem::InnerRule;

/// A source of the rates at which throughputs rise with the level.
pub(in crate::policy::program) trait Rising {
    /// The rise of throughputs per unit of the level, 0 for members that are `frozen` or wait: [members].
    fn slopes(&self, frozen: &[bool]) -> Vec<f64>;

    /// The tree that gives, in closed form, the throughputs at any level, if each member saturates when it has risen by
    /// its `room`, [members], and not before; `None` exactly where there is no closed form: a member with room never
    /// rises, or a weight is 0. Each level is then found from the one below.
    fn level_tree(&self, room: &[f64]) -> Option<LevelTree>;
}

/// Slopes from which no closed form follows.
#[cfg(test)]
impl<F: Fn(&[bool]) -> Vec<f64>> Rising for F {
    fn slopes(&self, frozen: &[bool]) -> Vec<f64> {
        self(frozen)
    }

    fn level_tree(&self, _: &[f64]) -> Option<LevelTree> {
        None
    }
}

/// Slopes that each member has by itself, or by the weight that falls to it.
#[derive(Clone, Debug)]
pub(in crate::policy::program) struct Rates<'a> {
    /// The rise of throughputs per unit of the level or, in a hierarchy, per unit of the level times weight: [members].
    pub(in crate::policy::program) slope: Vec<f64>,
    /// The tree by which weights fall.
    pub(in crate::policy::program) hierarchy: Option<&'a Hierarchy>,
}

impl Rising for Rates<'_> {
    fn slopes(&self, frozen: &[bool]) -> Vec<f64> {
        let slope = |(slope, frozen): (&f64, &bool)| if *frozen { 0.0 } else { *slope };
        let slopes = self.slope.iter().zip(frozen).map(slope);
        match self.hierarchy {
            None => slopes.collect(),
            Some(hierarchy) => {
                slopes.zip(hierarchy.weights(frozen)).map(|(slope, weight)| slope * weight).collect()
            }
        }
    }

    fn level_tree(&self, room: &[f64]) -> Option<LevelTree> {
        let lack = |(room, slope): (&f64, &f64)| if *room > 0.0 { room / slope } else { 0.0 };
        let lack: Vec<f64> = room.iter().zip(&self.slope).map(lack).collect();
        let mut tree = LevelTree { groups: Vec::new(), roots: Vec::new(), slope: self.slope.clone(), lack };
        if !tree.lack.iter().all(|lack| lack.is_finite()) {
            return None;
        }
        tree.roots = match self.hierarchy {
            None => (0..room.len()).filter_map(|member| tree.member(member, 1.0, 1.0)).collect(),
            Some(hierarchy) => tree.children_of(hierarchy, &hierarchy.roots),
        };
        let mut children = tree.groups.iter().flat_map(|group| &group.children).chain(&tree.roots);
        children.all(|child| child.weight > 0.0).then_some(tree)
    }
}

/// A member, or a group of children, by its position.
#[derive(Clone, Copy, Debug)]
enum ChildKind {
    Member { member: usize, n_jobs: f64 },
    Group(usize),
}

/// A member, or the members of an entity, that are not full.
#[derive(Clone, Copy, Debug)]
struct Child {
    of: ChildKind,
    weight: f64,
    /// The grant at which it is full.
    lack: f64,
}

impl Child {
    /// The height, per unit of weight, at which it is full.
    fn height(&self) -> f64 {
        self.lack / self.weight
    }
}

/// The unsaturated children of an entity.
#[derive(Clone, Debug)]
struct Group {
    rule: InnerRule,
    /// Children, in the order in which they become full.
    children: Vec<Child>,
    /// The grants of the entity at which each child becomes full: [children].
    granted: Vec<f64>,
    /// The weight of each child and all later ones: [children].
    weight_left: Vec<f64>,
}

/// The tree of members that are not full, with what each must be granted to be full.
#[derive(Clone, Debug)]
pub(in crate::policy::program) struct LevelTree {
    groups: Vec<Group>,
    roots: Vec<Child>,
    /// The rise of throughputs per unit that a job is granted: [members].
    slope: Vec<f64>,
    /// The grants at which a job of each member is full: [members].
    lack: Vec<f64>,
}

impl Group {
    fn new(rule: InnerRule, mut children: Vec<Child>) -> Self {
        if rule == InnerRule::Fairness {
            children.sort_by(|one, other| one.height().total_cmp(&other.height()));
        }
        let mut weight_left: Vec<f64> = children.iter().map(|child| child.weight).collect();
        for at in (1..children.len()).rev() {
            weight_left[at - 1] += weight_left[at];
        }
        let (mut granted, mut full) = (Vec::with_capacity(children.len()), 0.0);
        for (at, child) in children.iter().enumerate() {
            full += child.lack;
            let after = weight_left.get(at + 1).map_or(0.0, |weight| weight * child.height());
            granted.push(if rule == InnerRule::Fairness { full + after } else { full });
        }
        Self { rule, children, granted, weight_left }
    }

    /// The grant of the entity at which the child before this one becomes full.
    fn before(&self, at: usize) -> f64 {
        at.checked_sub(1).map_or(0.0, |before| self.granted[before])
    }

    /// The height of all unsaturated children when the child before this one becomes full.
    fn height_before(&self, at: usize) -> f64 {
        at.checked_sub(1).map_or(0.0, |before| self.children[before].height())
    }

    /// The grant of the entity at which one of its children has been granted `part`.
    fn granted_with(&self, child: usize, part: f64) -> f64 {
        if self.rule == InnerRule::Fifo {
            return self.before(child) + part;
        }
        let height = part / self.children[child].weight;
        let next = self.children.partition_point(|child| child.height() <= height);
        let weight = self.weight_left.get(next).copied().unwrap_or_default();
        self.before(next) + weight * (height - self.height_before(next))
    }

    /// The part of each child when the entity has been granted `granted`.
    fn parts(&self, granted: f64) -> impl Iterator<Item = (&Child, f64)> {
        let next = self.granted.partition_point(|full| *full <= granted);
        let above = granted - self.before(next);
        let weight = self.weight_left.get(next).copied().unwrap_or(1.0);
        let height = self.height_before(next) + above / weight;
        let part = move |at: usize, child: &Child| match self.rule {
            _ if at < next => child.lack,
            InnerRule::Fairness => (child.weight * height).min(child.lack),
            InnerRule::Fifo if at == next => above.min(child.lack),
            InnerRule::Fifo => 0.0,
        };
        self.children.iter().enumerate().map(move |(at, child)| (child, part(at, child)))
    }
}

impl LevelTree {
    fn member(&self, member: usize, weight: f64, n_jobs: f64) -> Option<Child> {
        let lack = self.lack[member] * n_jobs;
        let child = Child { of: ChildKind::Member { member, n_jobs }, weight: weight * n_jobs, lack };
        (lack > 0.0).then_some(child)
    }

    /// The unsaturated children among some nodes; the groups below them are added to the tree.
    fn children_of(&mut self, hierarchy: &Hierarchy, nodes: &[TreeNode]) -> Vec<Child> {
        let mut children = Vec::with_capacity(nodes.len());
        for node in nodes {
            children.extend(match node {
                TreeNode::Member { member, weight, n_jobs } => self.member(*member, *weight, *n_jobs),
                TreeNode::Entity(node) => {
                    let node = &hierarchy.nodes[*node];
                    let below = self.children_of(hierarchy, &node.children);
                    let group = Group::new(node.inner, below);
                    let full = group.granted.last().copied();
                    self.groups.push(group);
                    let of = ChildKind::Group(self.groups.len() - 1);
                    full.map(|lack| Child { of, weight: node.weight, lack })
                }
            });
        }
        children
    }

    /// The level at which each member becomes full, 0 if it has no room: [members].
    pub(in crate::policy::program) fn full_at(&self) -> Vec<f64> {
        let mut levels = vec![0.0; self.slope.len()];
        for root in &self.roots {
            self.add_levels_of(root, &|part| part / root.weight, &mut levels);
        }
        levels
    }

    /// Notes the levels at which a child's members become full. `level`: the level at which the child has been granted an
    /// amount.
    fn add_levels_of(&self, child: &Child, level: &dyn Fn(f64) -> f64, levels: &mut [f64]) {
        match child.of {
            ChildKind::Member { member, .. } => levels[member] = level(child.lack),
            ChildKind::Group(group) => {
                let group = &self.groups[group];
                for (at, child) in group.children.iter().enumerate() {
                    self.add_levels_of(child, &|part| level(group.granted_with(at, part)), levels);
                }
            }
        }
    }

    /// The rise of throughputs at a level: [members].
    pub(in crate::policy::program) fn risen(&self, level: f64) -> Vec<f64> {
        let mut risen = vec![0.0; self.slope.len()];
        for root in &self.roots {
            self.grant(root, (root.weight * level).min(root.lack), &mut risen);
        }
        risen
    }

    fn grant(&self, child: &Child, part: f64, risen: &mut [f64]) {
        match child.of {
            ChildKind::Member { member, n_jobs } => risen[member] = self.slope[member] * part / n_jobs,
            ChildKind::Group(group) => {
                for (child, part) in self.groups[group].parts(part) {
                    self.grant(child, part, risen);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::index::{EntityId, Id, JobId};
    use crate::problem::{ActiveJob, Entity, Problem, ProblemBuilder};
    use crate::program::Classes;
    use crate::units::Seconds;

    /// Entities of weights and rules, each below one before it or none; jobs of weights, times they have waited, and owners.
    fn problem(entities: &[(f64, bool, usize)], jobs: &[(f64, u32, usize)]) -> Problem {
        let mut builder = ProblemBuilder::new(Arc::new("v=4".parse().unwrap()));
        let mut ids: Vec<EntityId> = Vec::new();
        for (at, (weight, in_order, parent)) in entities.iter().enumerate() {
            let inner = if *in_order { InnerRule::Fifo } else { InnerRule::Fairness };
            let parent = parent.checked_sub(1).and_then(|parent| ids.get(parent).copied());
            ids.push(builder.entity(Entity { name: format!("e{at}"), weight: *weight, inner, parent }));
        }
        for (at, (weight, waited, owner)) in jobs.iter().enumerate() {
            let entity = owner.checked_sub(1).and_then(|owner| ids.get(owner).copied());
            let elapsed = Seconds::new(f64::from(*waited));
            let job = ActiveJob { weight: *weight, entity, elapsed, ..ActiveJob::new(JobId::from_index(at)) };
            builder.job(job, &[1.0]);
        }
        builder.build().unwrap()
    }

    proptest! {
        #[test]
        fn what_is_said_of_a_level_is_what_going_through_those_below_it_gives(
            entities in prop::collection::vec((0.3_f64..3.0, any::<bool>(), 0_usize..4), 1..5),
            jobs in prop::collection::vec((0.3_f64..3.0, 0_u32..3, 0_usize..5), 1..14),
            room in prop::collection::vec(prop_oneof![1 => Just(0.0), 4 => 0.1_f64..5.0], 14),
            slope in prop::collection::vec(0.2_f64..4.0, 14),
        ) {
            let problem = problem(&entities, &jobs);
            let n = jobs.len();
            let (room, slope) = (&room[..n], slope[..n].to_vec());
            let hierarchy = Hierarchy::new(&problem, &Classes::singletons(n), false);
            for hierarchy in [None, Some(&hierarchy)] {
                let rates = Rates { slope: slope.clone(), hierarchy };
                let tree = rates.level_tree(room).unwrap();
                let full_at = tree.full_at();
                let (mut level, mut risen) = (0.0, vec![0.0; n]);
                let mut frozen: Vec<bool> = room.iter().map(|room| *room == 0.0).collect();
                while frozen.contains(&false) {
                    let slopes = rates.slopes(&frozen);
                    let left = |member: usize| (room[member] - risen[member]) / slopes[member];
                    let rises = |member: &usize| !frozen[*member] && slopes[*member] > 0.0;
                    let next = (0..n).filter(rises).min_by(|a, b| left(*a).total_cmp(&left(*b))).unwrap();
                    let rise = left(next);
                    for part in [0.5, 1.0] {
                        let said = tree.risen(level + part * rise);
                        for (member, said) in said.iter().enumerate() {
                            let here = risen[member] + part * rise * slopes[member];
                            prop_assert!((said - here).abs() <= 1e-9, "{member}: {said} {here}");
                        }
                    }
                    level += rise;
                    (0..n).for_each(|member| risen[member] += rise * slopes[member]);
                    frozen[next] = true;
                    prop_assert!((full_at[next] - level).abs() <= 1e-9 * level, "{next}: {level} {full_at:?}");
                }
            }
        }
    }
}
