//! Pools as members of a program of their own: their columns and pairs.

use super::Pools;
use super::cuts::SlotColumn;
use crate::policy::program::pairs::Pairing;
use crate::program::{Instance, InstancePair, Part};

impl Pools {
    pub(super) fn sort_slots(&mut self) {
        self.slots = vec![Vec::new(); self.members.len()];
        for (column, of) in (0_u32..).zip(self.layout.columns.iter()) {
            for (pool, uses, speeds) in self.instance.parts(of.combination) {
                self.slots[pool].push(SlotColumn { speed: speeds[of.worker_type], column, uses });
            }
        }
        for slots in &mut self.slots {
            slots.sort_by(|one, other| other.speed.total_cmp(&one.speed).then(one.column.cmp(&other.column)));
        }
    }

    /// Every pair of pools whose members may share workers.
    pub(super) fn all_pairs<'a>(&'a self, pairing: &'a Pairing) -> impl Iterator<Item = (usize, usize)> + 'a {
        pairs_of(&self.members, &self.kinds, &self.instance.multiplicity, pairing)
    }
}

/// The pools as members of an instance, and their pairs.
pub(super) fn pooled(
    members: &[Vec<u32>],
    kinds: &[usize],
    instance: &Instance,
    pairing: &Pairing,
) -> (Instance, Vec<(usize, usize)>) {
    let first = |pool: usize| members[pool][0] as usize;
    let jobs =
        |members: &Vec<u32>| members.iter().map(|member| instance.multiplicity[*member as usize]).sum();
    let multiplicity: Vec<f64> = members.iter().map(jobs).collect();
    let pairs: Vec<(usize, usize)> = pairs_of(members, kinds, &multiplicity, pairing).collect();
    let pair = |(a, b): &(usize, usize)| {
        let part = |pool: usize, other: usize, uses: f64| {
            let throughput = pairing.beside(kinds[pool], kinds[other]).unwrap_or_default().to_vec();
            Part { member: pool, uses, throughput }
        };
        let parts = if a == b { vec![part(*a, *a, 2.0)] } else { vec![part(*a, *b, 1.0), part(*b, *a, 1.0)] };
        InstancePair { parts, scale_factor: instance.scale_factor[first(*a)] }
    };
    let pooled = Instance {
        capacity: instance.capacity.clone(),
        worker_types: instance.worker_types.clone(),
        scale_factor: (0..members.len()).map(|pool| instance.scale_factor[first(pool)]).collect(),
        throughput: (0..members.len()).flat_map(|pool| instance.alone(first(pool)).iter().copied()).collect(),
        pairs: pairs.iter().map(pair).collect(),
        oversized: instance.oversized,
        multiplicity,
        ..Instance::default()
    };
    (pooled, pairs)
}

pub(super) fn pairs_of<'a>(
    members: &'a [Vec<u32>],
    kinds: &'a [usize],
    jobs: &'a [f64],
    pairing: &'a Pairing,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let exists =
        move |a: usize, b: usize| pairing.beside(kinds[a], kinds[b]).is_some() && (a != b || jobs[a] > 1.0);
    (0..members.len())
        .flat_map(move |a| (a..members.len()).map(move |b| (a, b)))
        .filter(move |(a, b)| exists(*a, *b))
}
