//! How far everyone has risen at a level, where nobody stops before having all that they have room for.
//!
//! Weights that fall to the members of an entity are in proportion whatever happens outside of it, so that what it has
//! been handed so far tells what each of its children has: under `fairness` all that still rise have risen as high, by
//! their weights; under `fifo` one after another is full. That can be said of any level at once, without going through
//! those below it.

use super::{Child, Hierarchy};
use crate::problem::InnerRule;

/// How fast members rise, by who rises no more.
pub(in crate::policy::program) trait Rising {
    /// Throughput per unit of the level: [members]; 0 for those that are `frozen` or wait.
    fn slopes(&self, frozen: &[bool]) -> Vec<f64>;

    /// How they rise where each of them stops when its throughput is up by all of its `room`, [members], and not before;
    /// nothing if that cannot be said.
    fn ascent(&self, room: &[f64]) -> Option<Ascent>;
}

/// Members that rise each by itself, or by the weights that fall to them.
#[derive(Clone, Debug)]
pub(in crate::policy::program) struct Rates<'a> {
    /// Throughput per unit of the level, or of it and of weight where weights fall: [members].
    pub(in crate::policy::program) slope: Vec<f64>,
    /// How weights fall.
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

    fn ascent(&self, room: &[f64]) -> Option<Ascent> {
        let lack = |(room, slope): (&f64, &f64)| if *room > 0.0 { room / slope } else { 0.0 };
        let lack: Vec<f64> = room.iter().zip(&self.slope).map(lack).collect();
        let mut ascent = Ascent { groups: Vec::new(), roots: Vec::new(), slope: self.slope.clone(), lack };
        if !ascent.lack.iter().all(|lack| lack.is_finite()) {
            return None;
        }
        ascent.roots = match self.hierarchy {
            None => (0..room.len()).filter_map(|member| ascent.member(member, 1.0, 1.0)).collect(),
            Some(hierarchy) => ascent.heirs(hierarchy, &hierarchy.roots),
        };
        let mut heirs = ascent.groups.iter().flat_map(|group| &group.heirs).chain(&ascent.roots);
        heirs.all(|heir| heir.weight > 0.0).then_some(ascent)
    }
}

#[derive(Clone, Copy, Debug)]
enum Of {
    Member { member: usize, n_jobs: f64 },
    Group(usize),
}

/// A child that is not full.
#[derive(Clone, Copy, Debug)]
struct Heir {
    of: Of,
    weight: f64,
    /// What it must be handed to be full.
    lack: f64,
}

impl Heir {
    /// Where all that share have risen to when it is full.
    fn height(&self) -> f64 {
        self.lack / self.weight
    }
}

/// The children of an entity.
#[derive(Clone, Debug)]
struct Group {
    rule: InnerRule,
    /// In the order in which they are full.
    heirs: Vec<Heir>,
    /// What the entity has been handed when each is: [heirs].
    handed: Vec<f64>,
    /// The weight of each and of those after it: [heirs].
    weight_left: Vec<f64>,
}

/// How members rise.
#[derive(Clone, Debug)]
pub(in crate::policy::program) struct Ascent {
    groups: Vec<Group>,
    roots: Vec<Heir>,
    /// Throughput per unit of what a job is handed: [members].
    slope: Vec<f64>,
    /// What a job must be handed: [members].
    lack: Vec<f64>,
}

impl Group {
    fn new(rule: InnerRule, mut heirs: Vec<Heir>) -> Self {
        if rule == InnerRule::Fairness {
            heirs.sort_by(|one, other| one.height().total_cmp(&other.height()));
        }
        let mut weight_left: Vec<f64> = heirs.iter().map(|heir| heir.weight).collect();
        for at in (1..heirs.len()).rev() {
            weight_left[at - 1] += weight_left[at];
        }
        let (mut handed, mut full) = (Vec::with_capacity(heirs.len()), 0.0);
        for (at, heir) in heirs.iter().enumerate() {
            full += heir.lack;
            let after = weight_left.get(at + 1).map_or(0.0, |weight| weight * heir.height());
            handed.push(if rule == InnerRule::Fairness { full + after } else { full });
        }
        Self { rule, heirs, handed, weight_left }
    }

    /// What it has been handed when the heir before this one is full.
    fn before(&self, at: usize) -> f64 {
        at.checked_sub(1).map_or(0.0, |before| self.handed[before])
    }

    /// Where all have risen to when the heir before this one is full.
    fn height_before(&self, at: usize) -> f64 {
        at.checked_sub(1).map_or(0.0, |before| self.heirs[before].height())
    }

    /// What it has been handed when one of its heirs has `part`.
    fn handed_with(&self, heir: usize, part: f64) -> f64 {
        if self.rule == InnerRule::Fifo {
            return self.before(heir) + part;
        }
        let height = part / self.heirs[heir].weight;
        let next = self.heirs.partition_point(|heir| heir.height() <= height);
        let weight = self.weight_left.get(next).copied().unwrap_or_default();
        self.before(next) + weight * (height - self.height_before(next))
    }

    /// What each heir has of what it has been handed.
    fn parts(&self, handed: f64) -> impl Iterator<Item = (&Heir, f64)> {
        let next = self.handed.partition_point(|full| *full <= handed);
        let above = handed - self.before(next);
        let weight = self.weight_left.get(next).copied().unwrap_or(1.0);
        let height = self.height_before(next) + above / weight;
        let part = move |at: usize, heir: &Heir| match self.rule {
            _ if at < next => heir.lack,
            InnerRule::Fairness => (heir.weight * height).min(heir.lack),
            InnerRule::Fifo if at == next => above.min(heir.lack),
            InnerRule::Fifo => 0.0,
        };
        self.heirs.iter().enumerate().map(move |(at, heir)| (heir, part(at, heir)))
    }
}

impl Ascent {
    fn member(&self, member: usize, weight: f64, n_jobs: f64) -> Option<Heir> {
        let lack = self.lack[member] * n_jobs;
        let heir = Heir { of: Of::Member { member, n_jobs }, weight: weight * n_jobs, lack };
        (lack > 0.0).then_some(heir)
    }

    /// Those of children that are not full, and theirs.
    fn heirs(&mut self, hierarchy: &Hierarchy, children: &[Child]) -> Vec<Heir> {
        let mut heirs = Vec::with_capacity(children.len());
        for child in children {
            heirs.extend(match child {
                Child::Member { member, weight, n_jobs } => self.member(*member, *weight, *n_jobs),
                Child::Entity(node) => {
                    let node = &hierarchy.nodes[*node];
                    let below = self.heirs(hierarchy, &node.children);
                    let group = Group::new(node.inner, below);
                    let full = group.handed.last().copied();
                    self.groups.push(group);
                    let of = Of::Group(self.groups.len() - 1);
                    full.map(|lack| Heir { of, weight: node.weight, lack })
                }
            });
        }
        heirs
    }

    /// The level at which each is full; 0 for those that are: [members].
    pub(in crate::policy::program) fn full_at(&self) -> Vec<f64> {
        let mut levels = vec![0.0; self.slope.len()];
        for root in &self.roots {
            self.note(root, &|part| part / root.weight, &mut levels);
        }
        levels
    }

    /// Notes when an heir's members are full, by the level at which it has a part.
    fn note(&self, heir: &Heir, level: &dyn Fn(f64) -> f64, levels: &mut [f64]) {
        match heir.of {
            Of::Member { member, .. } => levels[member] = level(heir.lack),
            Of::Group(group) => {
                let group = &self.groups[group];
                for (at, heir) in group.heirs.iter().enumerate() {
                    self.note(heir, &|part| level(group.handed_with(at, part)), levels);
                }
            }
        }
    }

    /// How much throughputs have risen at a level: [members].
    pub(in crate::policy::program) fn risen(&self, level: f64) -> Vec<f64> {
        let mut risen = vec![0.0; self.slope.len()];
        for root in &self.roots {
            self.hand_down(root, (root.weight * level).min(root.lack), &mut risen);
        }
        risen
    }

    fn hand_down(&self, heir: &Heir, part: f64, risen: &mut [f64]) {
        match heir.of {
            Of::Member { member, n_jobs } => risen[member] = self.slope[member] * part / n_jobs,
            Of::Group(group) => {
                for (heir, part) in self.groups[group].parts(part) {
                    self.hand_down(heir, part, risen);
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
                let ascent = rates.ascent(room).unwrap();
                let full_at = ascent.full_at();
                let (mut level, mut risen) = (0.0, vec![0.0; n]);
                let mut frozen: Vec<bool> = room.iter().map(|room| *room == 0.0).collect();
                while frozen.contains(&false) {
                    let slopes = rates.slopes(&frozen);
                    let left = |member: usize| (room[member] - risen[member]) / slopes[member];
                    let rises = |member: &usize| !frozen[*member] && slopes[*member] > 0.0;
                    let next = (0..n).filter(rises).min_by(|a, b| left(*a).total_cmp(&left(*b))).unwrap();
                    let rise = left(next);
                    for part in [0.5, 1.0] {
                        let said = ascent.risen(level + part * rise);
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
