//! The class reduction: interchangeable jobs become one member with a multiplicity.
//!
//! **Why it is exact.** Jobs of one class agree in every number that the program contains, so exchanging two of
//! them maps feasible allocations to feasible ones of the same objective. The feasible set is convex and the
//! objective concave (or convex, when minimized), so the average of an optimum over all exchanges is feasible
//! and no worse: some optimum gives every job of a class the same row. Restricting the program to such
//! allocations leaves one column per (class, worker type), in units of class time (see
//! [`instance`](crate::program::instance)), and loses nothing. The same holds for quasi-concave objectives.
//!
//! **Pairs.** After averaging, every pair of one job of class A with one of class B has the same share. Only the
//! sums over a job's pairs enter its time, its throughput and the capacity, so any other division of the class
//! pair's time with the same sums is as good: [`shares_between`] gives a sparse one.

/// A division of n jobs into classes, in the order of their keys, so that it does not depend on the order of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    class_of: Vec<u32>,
    members: Vec<Vec<u32>>,
}

impl Classes {
    /// Groups jobs whose keys agree in every word; `keys` is [n × width].
    ///
    /// One hash pass over the keys, O(n·width).
    ///
    /// # Panics
    /// If `width` is 0 or does not divide the number of words.
    pub fn group(width: usize, keys: &[u64]) -> Self {
        assert!(width > 0 && keys.len().is_multiple_of(width), "keys are [n × width]");
        let key = |job: usize| &keys[job * width..(job + 1) * width];
        let n = keys.len() / width;
        let mut table = Table::with_capacity(64);
        let mut first = Vec::new();
        let mut class_of = Vec::with_capacity(n);
        for job in 0..n {
            let class = table.find_or_insert(key(job), |class: u32| key(first[class as usize]), first.len());
            if class as usize == first.len() {
                first.push(job);
                if first.len() * 2 > table.slots.len() {
                    table = table.grown(first.iter().map(|job| key(*job)));
                }
            }
            class_of.push(class);
        }
        let mut order: Vec<u32> = (0..).take(first.len()).collect();
        order.sort_unstable_by(|a, b| key(first[*a as usize]).cmp(key(first[*b as usize])));
        let mut rank = vec![0_u32; order.len()];
        for (position, class) in (0_u32..).zip(&order) {
            rank[*class as usize] = position;
        }
        for class in &mut class_of {
            *class = rank[*class as usize];
        }
        Self::from_assignment(class_of, first.len())
    }

    /// Every job a class of its own, in order.
    pub fn singletons(n: usize) -> Self {
        Self::from_assignment((0..).take(n).collect(), n)
    }

    fn from_assignment(class_of: Vec<u32>, n_classes: usize) -> Self {
        let mut members = vec![Vec::new(); n_classes];
        for (job, class) in (0_u32..).zip(&class_of) {
            members[*class as usize].push(job);
        }
        Self { class_of, members }
    }

    /// How many classes.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// No jobs at all?
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The class of a job.
    pub fn class_of(&self, job: usize) -> usize {
        self.class_of[job] as usize
    }

    /// The jobs of a class, ascending; at least one.
    pub fn members(&self, class: usize) -> &[u32] {
        &self.members[class]
    }

    /// Jobs in each class: `[classes]`.
    pub fn multiplicity(&self) -> Vec<f64> {
        self.members.iter().map(|members| members.len() as f64).collect()
    }
}

/// An open-addressing table from key to class: insertion order decides the classes, never the hash.
struct Table {
    slots: Vec<u32>,
}

const EMPTY: u32 = u32::MAX;

impl Table {
    fn with_capacity(slots: usize) -> Self {
        Self { slots: vec![EMPTY; slots] }
    }

    fn grown<'k>(&self, keys: impl Iterator<Item = &'k [u64]>) -> Self {
        let mut larger = Self::with_capacity(self.slots.len() * 4);
        for (class, key) in (0_u32..).zip(keys) {
            let mut slot = larger.start(key);
            while larger.slots[slot] != EMPTY {
                slot = (slot + 1) & (larger.slots.len() - 1);
            }
            larger.slots[slot] = class;
        }
        larger
    }

    fn start(&self, key: &[u64]) -> usize {
        let mix = |state: u64, word: &u64| (state.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let hash = key.iter().fold(0, mix);
        #[expect(clippy::cast_possible_truncation, reason = "the table is smaller than any hash")]
        let slot = (hash ^ (hash >> 32)) as usize & (self.slots.len() - 1);
        slot
    }

    fn find_or_insert<'k>(&mut self, key: &[u64], known: impl Fn(u32) -> &'k [u64], next: usize) -> u32 {
        let mut slot = self.start(key);
        loop {
            let class = self.slots[slot];
            if class == EMPTY {
                let class = u32::try_from(next).expect("fewer than 2^32 classes");
                self.slots[slot] = class;
                return class;
            }
            if known(class) == key {
                return class;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }
}

/// Who shares workers with whom when a class pair's time is divided among jobs: (job of A, job of B, fraction),
/// positions within the classes. Fractions sum to 1, every job of A has 1/`n_a` of them and every job of B
/// 1/`n_b`: the transportation problem's north-west corner, `n_a + n_b − 1` pairs at most.
pub fn shares_between(n_a: usize, n_b: usize) -> Vec<(usize, usize, f64)> {
    let mut pairs = Vec::with_capacity(n_a + n_b);
    // In units of 1/(n_a·n_b) all supplies and demands are whole numbers, so nothing is lost to rounding.
    let (mut a, mut b, mut supply, mut demand) = (0, 0, n_b, n_a);
    while a < n_a && b < n_b {
        let amount = supply.min(demand);
        pairs.push((a, b, amount as f64 / (n_a * n_b) as f64));
        supply -= amount;
        demand -= amount;
        if supply == 0 {
            (a, supply) = (a + 1, n_b);
        }
        if demand == 0 {
            (b, demand) = (b + 1, n_a);
        }
    }
    pairs
}

/// The same within one class of n ≥ 2 jobs: fractions sum to 1 and every job takes part in 2/n of them: one
/// pair for n = 2, a perfect matching for even n, else a cycle.
pub fn shares_within(n: usize) -> Vec<(usize, usize, f64)> {
    if n.is_multiple_of(2) {
        return (0..n / 2).map(|pair| (2 * pair, 2 * pair + 1, 2.0 / n as f64)).collect();
    }
    (0..n).map(|job| (job.min((job + 1) % n), job.max((job + 1) % n), 1.0 / n as f64)).collect()
}

/// Every pair alike: of a job of A with one of B, or, if they are the `same` class, of two of its jobs.
pub fn shares_evenly(n_a: usize, n_b: usize, same: bool) -> Vec<(usize, usize, f64)> {
    let pairs = (0..n_a).flat_map(|a| (if same { a + 1 } else { 0 }..n_b).map(move |b| (a, b)));
    let n_pairs = if same { n_a * n_a.saturating_sub(1) / 2 } else { n_a * n_b };
    pairs.map(|(a, b)| (a, b, 1.0 / n_pairs as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_keys_share_a_class_whatever_the_order() {
        let classes = Classes::group(2, &[5, 1, 3, 3, 5, 1, 0, 9]);
        assert_eq!((0..4).map(|job| classes.class_of(job)).collect::<Vec<_>>(), [2, 1, 2, 0]);
        assert_eq!(classes.members(2), [0, 2]);
    }

    proptest! {
        #[test]
        fn grouping_agrees_with_a_sorted_map(keys in prop::collection::vec(0_u64..400, 0..1500)) {
            let classes = Classes::group(1, &keys);
            let mut distinct = keys.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(classes.len(), distinct.len());
            for (job, key) in keys.iter().enumerate() {
                prop_assert_eq!(distinct[classes.class_of(job)], *key);
            }
        }

        #[test]
        fn a_pairing_meets_every_supply_and_demand(n_a in 1_usize..40, n_b in 1_usize..40) {
            let pairs = shares_between(n_a, n_b);
            prop_assert!(pairs.len() < n_a + n_b);
            for a in 0..n_a {
                let sum: f64 = pairs.iter().filter(|p| p.0 == a).map(|p| p.2).sum();
                prop_assert!((sum - 1.0 / n_a as f64).abs() < 1e-12);
            }
            for b in 0..n_b {
                let sum: f64 = pairs.iter().filter(|p| p.1 == b).map(|p| p.2).sum();
                prop_assert!((sum - 1.0 / n_b as f64).abs() < 1e-12);
            }
        }

        #[test]
        fn an_even_division_uses_every_pair_once(n_a in 1_usize..9, n_b in 1_usize..9) {
            for (n_b, same) in [(n_b, false), (n_a, true)] {
                let pairs = shares_evenly(n_a, n_b, same);
                let sum: f64 = pairs.iter().map(|p| p.2).sum();
                prop_assert!((sum - 1.0).abs() < 1e-12 || pairs.is_empty());
                prop_assert!(pairs.windows(2).all(|two| (two[0].0, two[0].1) < (two[1].0, two[1].1)));
                prop_assert!(pairs.iter().all(|p| !same || p.0 < p.1));
            }
        }

        #[test]
        fn a_division_within_a_class_uses_every_job_alike(n in 2_usize..40) {
            let pairs = shares_within(n);
            for job in 0..n {
                let sum: f64 = pairs.iter().filter(|p| p.0 == job || p.1 == job).map(|p| p.2).sum();
                prop_assert!((sum - 2.0 / n as f64).abs() < 1e-12);
            }
            prop_assert!(pairs.iter().all(|p| p.0 < p.1));
        }
    }
}
