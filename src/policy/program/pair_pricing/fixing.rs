//! Reduced-cost fixing of pairs, where levels are raised one after another.
//!
//! By complementary slackness every optimum of a level gives no time to a pair that has a negative reduced cost at
//! the level's prices, and the optima of later levels are among those of this one. Such pairs are fixed at zero where
//! all the time that they can have would cost more than rounding: fewer pairs are priced from level to level, and
//! none enters that would lower a level already reached.

use crate::policy::program::pairs::{Pairing, Partner};
use crate::program::Instance;

/// The most throughputs that are listed, 256 MiB: pairs that have more are priced kind by kind.
const SPEEDS_MAX: usize = 1 << 25;

/// A pair that is free, which is to say not fixed at zero, on one worker type at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnfixedPair<'a> {
    /// The two members, the smaller first.
    pub(super) members: [usize; 2],
    /// Steps/s of each member beside the other: `[K]` each.
    pub(super) speeds: [&'a [f64]; 2],
    /// The worker types on which the pair is not fixed, as bits.
    types: u32,
}

impl UnfixedPair<'_> {
    pub(super) fn is_unfixed_on(&self, worker_type: usize) -> bool {
        self.types >> worker_type & 1 == 1
    }
}

/// The pairs that are free on one worker type at least, in order of their members.
#[derive(Clone, Debug)]
pub(super) struct UnfixedPairs {
    members: Vec<[u32; 2]>,
    /// The worker types on which each pair is not fixed, as bits: [pairs].
    types: Vec<u32>,
    /// Steps/s of the first member, then of the second: [pairs × 2 × K].
    speeds: Vec<f64>,
    k: usize,
}

impl UnfixedPairs {
    /// All pairs; none if there are too many of them, or of worker types.
    pub(super) fn all(pairing: &Pairing, instance: &Instance) -> Option<Self> {
        let (n, k) = (instance.n_members(), instance.n_types());
        if k > u32::BITS as usize {
            return None;
        }
        let mut all = Self { members: Vec::new(), types: Vec::new(), speeds: Vec::new(), k };
        let mut later = Vec::new();
        for a in 0..n {
            pairing.later_partners(a, &mut later);
            for Partner { other: b, speeds, other_speeds } in later.drain(..) {
                let fits = |j: &usize| speeds[*j] > 0.0 && instance.has_room(pairing.scale_factor(a), *j);
                all.members.push([a, b].map(|member| u32::try_from(member).unwrap_or(u32::MAX)));
                all.types.push((0..k).filter(fits).fold(0, |types, j| types | 1 << j));
                all.speeds.extend(speeds.iter().chain(other_speeds));
            }
            if all.speeds.len() > SPEEDS_MAX {
                return None;
            }
        }
        Some(all)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = UnfixedPair<'_>> {
        let speeds = self.speeds.chunks_exact(2 * self.k);
        let pairs = self.members.iter().zip(&self.types).zip(speeds);
        pairs.map(|((members, types), speeds)| {
            let speeds = speeds.split_at(self.k);
            UnfixedPair {
                members: members.map(|member| member as usize),
                speeds: [speeds.0, speeds.1],
                types: *types,
            }
        })
    }

    /// Whether a pair is free on a worker type. False, too, if it does not run there.
    pub(super) fn has(&self, (a, b): (usize, usize), worker_type: usize) -> bool {
        let place = self.members.binary_search_by_key(&[a, b], |pair| pair.map(|member| member as usize));
        place.is_ok_and(|place| self.types[place] >> worker_type & 1 == 1)
    }

    /// Fixes every pair at zero on all worker types but these, as bits: [pairs].
    pub(super) fn keep(&mut self, types: &[u32]) {
        let mut kept = 0;
        let width = 2 * self.k;
        for (at, types) in types.iter().enumerate() {
            let still = self.types[at] & types;
            if still != 0 {
                (self.members[kept], self.types[kept]) = (self.members[at], still);
                self.speeds.copy_within(at * width..(at + 1) * width, kept * width);
                kept += 1;
            }
        }
        self.members.truncate(kept);
        self.types.truncate(kept);
        self.speeds.truncate(kept * width);
    }
}
