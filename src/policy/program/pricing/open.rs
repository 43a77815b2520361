//! Pairs that may still have time, where levels are raised one after another.
//!
//! Every optimum of a level gives no time to a pair that would lose by it at the level's prices (complementary slackness),
//! and all later levels are of optima of this one. So fewer pairs are priced from level to level, and none enters that
//! would lose what was reached.

use crate::policy::program::pairs::Pairing;
use crate::program::Instance;

/// Throughputs above which pairs are not looked at one by one: 256 MiB.
const SPEEDS_MAX: usize = 1 << 25;

/// A pair that may have time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    /// The smaller first.
    pub(super) members: [usize; 2],
    /// Steps/s of each beside the other: `[K]` each.
    pub(super) speeds: [&'a [f64]; 2],
    types: u32,
}

impl Pair<'_> {
    /// May it have time on this worker type?
    pub(super) fn runs_on(&self, worker_type: usize) -> bool {
        self.types >> worker_type & 1 == 1
    }
}

/// All of them, in order.
#[derive(Clone, Debug)]
pub(super) struct Open {
    members: Vec<[u32; 2]>,
    /// The worker types on which each may have time, as bits: [pairs].
    types: Vec<u32>,
    /// Steps/s of the first, then of the second: [pairs × 2 × K].
    speeds: Vec<f64>,
    k: usize,
}

impl Open {
    /// Every pair there is; nothing if they are too many, or worker types are.
    pub(super) fn all(pairing: &Pairing, instance: &Instance) -> Option<Self> {
        let (n, k) = (instance.n_members(), instance.n_types());
        if k > u32::BITS as usize {
            return None;
        }
        let mut open = Self { members: Vec::new(), types: Vec::new(), speeds: Vec::new(), k };
        let mut later = Vec::new();
        for a in 0..n {
            for (other, mine, theirs) in pairing.both(pairing.kinds.class_of(a)) {
                let others = pairing.kinds.members(other).iter().map(|b| *b as usize);
                let exists = |b: &usize| *b > a || *b == a && pairing.n_jobs(a) > 1;
                later.extend(others.filter(exists).map(|b| (b, mine, theirs)));
            }
            later.sort_unstable_by_key(|(b, ..)| *b);
            for (b, mine, theirs) in later.drain(..) {
                let fits = |j: &usize| mine[*j] > 0.0 && instance.has_room(pairing.scale_factor(a), *j);
                open.members.push([a, b].map(|member| u32::try_from(member).unwrap_or(u32::MAX)));
                open.types.push((0..k).filter(fits).fold(0, |types, j| types | 1 << j));
                open.speeds.extend(mine.iter().chain(theirs));
            }
            if open.speeds.len() > SPEEDS_MAX {
                return None;
            }
        }
        Some(open)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Pair<'_>> {
        let speeds = self.speeds.chunks_exact(2 * self.k);
        let pairs = self.members.iter().zip(&self.types).zip(speeds);
        pairs.map(|((members, types), speeds)| {
            let speeds = speeds.split_at(self.k);
            Pair {
                members: members.map(|member| member as usize),
                speeds: [speeds.0, speeds.1],
                types: *types,
            }
        })
    }

    /// May two members have time together on a worker type?
    pub(super) fn has(&self, (a, b): (usize, usize), worker_type: usize) -> bool {
        let place = self.members.binary_search_by_key(&[a, b], |pair| pair.map(|member| member as usize));
        place.is_ok_and(|place| self.types[place] >> worker_type & 1 == 1)
    }

    /// Closes pairs, all of which were looked at in turn, but on those worker types that are told of each, as bits.
    pub(super) fn keep(&mut self, types: &[u32]) {
        let mut kept = 0;
        let width = 2 * self.k;
        for (at, types) in types.iter().enumerate() {
            let left = self.types[at] & types;
            if left != 0 {
                (self.members[kept], self.types[kept]) = (self.members[at], left);
                self.speeds.copy_within(at * width..(at + 1) * width, kept * width);
                kept += 1;
            }
        }
        self.members.truncate(kept);
        self.types.truncate(kept);
        self.speeds.truncate(kept * width);
    }
}
