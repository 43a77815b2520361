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
//! pair's time with the same sums is as good: a [`Division`] is a sparse one.

/// Number of first jobs that are hashed on trial: if they form more than half as many classes, all jobs are sorted instead.
const UNLIKE_JOBS: usize = 1024;

/// The order of classes where hardly any two jobs are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlike {
    /// In the order of their keys, as where many jobs are alike.
    ByKey,
    /// In the order of their first jobs: data of jobs are then read and written in their own order.
    InTurn,
}

/// A division of n jobs into classes. Where many are alike, classes are in the order of their keys, and so do not depend on
/// the order of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    class_of: Vec<u32>,
    /// Position in `jobs` of each class's first job, then the number of jobs: [classes + 1].
    starts: Vec<u32>,
    /// Jobs, class after class, ascending within each.
    jobs: Vec<u32>,
}

impl Classes {
    /// Groups `n` jobs whose keys agree in every word; `write` puts a job's key into `width` words. Returns the classes and
    /// their keys.
    ///
    /// One hash pass, O(n·width), then a sort of the classes; where hardly any two jobs are alike, a sort of the jobs.
    ///
    /// # Panics
    /// If there are 2^32 jobs or more.
    pub fn group(
        n: usize,
        width: usize,
        unlike: Unlike,
        mut write: impl FnMut(usize, &mut [u64]),
    ) -> (Self, ClassKeys) {
        let mut key = vec![0; width];
        let mut table = Table::with_capacity(64, width);
        let mut class_of: Vec<u32> = Vec::with_capacity(n);
        for job in 0..n {
            if job == UNLIKE_JOBS && table.n_classes() * 2 > job {
                let words = KeyWords::of(n, width, write);
                return match unlike {
                    Unlike::ByKey => Self::sorted(words),
                    Unlike::InTurn => Self::in_turn(words),
                };
            }
            write(job, &mut key);
            class_of.push(table.find_or_insert(&key));
        }
        let order = table.keys.order();
        let mut rank = vec![0_u32; order.len()];
        for (class, place) in (0..).zip(&order) {
            rank[*place as usize] = class;
        }
        for class in &mut class_of {
            *class = rank[*class as usize];
        }
        (Self::from_assignment(class_of, rank.len()), ClassKeys { words: table.keys, order: Some(order) })
    }

    /// The division of jobs with these keys, classes in the order of their keys.
    fn sorted(words: KeyWords) -> (Self, ClassKeys) {
        let mut order = words.order();
        let mut class_of = vec![0_u32; order.len()];
        let (mut class, mut last) = (0, None);
        for job in &order {
            class += u32::from(last.is_some_and(|last| words.key(last) != words.key(*job)));
            class_of[*job as usize] = class;
            last = Some(*job);
        }
        order.dedup_by_key(|job| class_of[*job as usize]);
        (Self::from_assignment(class_of, order.len()), ClassKeys { words, order: Some(order) })
    }

    /// The division of jobs with these keys, classes in the order of their first jobs. Only keys with equal hashes are compared.
    fn in_turn(words: KeyWords) -> (Self, ClassKeys) {
        let n = words.n();
        let place = |of: &u64| (*of & 0xFFFF_FFFF) as u32;
        let key = |of: &u64| words.key(place(of));
        let mut order: Vec<u64> =
            (0..n).map(|job| (u64::from(hash(words.key(job))) << 32) | u64::from(job)).collect();
        order.sort_unstable();
        let mut first_of = Vec::new();
        for run in order.chunk_by_mut(|one, other| one >> 32 == other >> 32).filter(|run| run.len() > 1) {
            run.sort_unstable_by(|one, other| key(one).cmp(key(other)).then(one.cmp(other)));
            for alike in run.chunk_by(|one, other| key(one) == key(other)).filter(|alike| alike.len() > 1) {
                if first_of.is_empty() {
                    first_of.extend(0..n);
                }
                for job in alike {
                    first_of[place(job) as usize] = place(&alike[0]);
                }
            }
        }
        if first_of.is_empty() {
            return (Self::singletons(n as usize), ClassKeys { words, order: None });
        }
        let mut class_of: Vec<u32> = Vec::with_capacity(first_of.len());
        let mut firsts = Vec::new();
        for (job, first) in (0_u32..).zip(&first_of) {
            if *first == job {
                class_of.push(as_u32(firsts.len()));
                firsts.push(job);
            } else {
                class_of.push(class_of[*first as usize]);
            }
        }
        (Self::from_assignment(class_of, firsts.len()), ClassKeys { words, order: Some(firsts) })
    }

    /// The division with every job in a class of its own, in order.
    pub fn singletons(n: usize) -> Self {
        let class_of: Vec<u32> = (0..).take(n).collect();
        let starts = class_of.iter().copied().chain([as_u32(n)]).collect();
        Self { jobs: class_of.clone(), class_of, starts }
    }

    fn from_assignment(class_of: Vec<u32>, n_classes: usize) -> Self {
        let mut starts = vec![0_u32; n_classes + 1];
        for class in &class_of {
            starts[*class as usize + 1] += 1;
        }
        for class in 0..n_classes {
            starts[class + 1] += starts[class];
        }
        let mut next = starts.clone();
        let mut jobs = vec![0; class_of.len()];
        for (job, class) in (0_u32..).zip(&class_of) {
            let place = &mut next[*class as usize];
            jobs[*place as usize] = job;
            *place += 1;
        }
        Self { class_of, starts, jobs }
    }

    /// The division into classes of these members, ascending in each.
    pub(super) fn from_members(members: &[Vec<u32>], class_of: Vec<u32>) -> Self {
        let mut starts = Vec::with_capacity(members.len() + 1);
        starts.push(0);
        let mut jobs = Vec::with_capacity(class_of.len());
        for members in members {
            jobs.extend_from_slice(members);
            starts.push(as_u32(jobs.len()));
        }
        Self { class_of, starts, jobs }
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of jobs.
    pub fn n_jobs(&self) -> usize {
        self.class_of.len()
    }

    /// The class of a job.
    pub fn class_of(&self, job: usize) -> usize {
        self.class_of[job] as usize
    }

    /// The class of every job: `[n]`.
    pub fn of_jobs(&self) -> &[u32] {
        &self.class_of
    }

    /// The jobs of a class, ascending; at least one.
    pub fn members(&self, class: usize) -> &[u32] {
        &self.jobs[self.starts[class] as usize..self.starts[class + 1] as usize]
    }

    /// Number of jobs in each class: `[classes]`.
    pub fn multiplicity(&self) -> Vec<f64> {
        (0..self.len()).map(|class| self.members(class).len() as f64).collect()
    }
}

/// Keys of one width, one after another.
#[derive(Clone, Debug)]
struct KeyWords {
    width: usize,
    /// Words of the keys: [keys × width].
    words: Vec<u64>,
}

impl KeyWords {
    /// The keys of `n` jobs, as `write` gives them.
    fn of(n: usize, width: usize, mut write: impl FnMut(usize, &mut [u64])) -> Self {
        let mut words = vec![0; n * width];
        for (job, key) in words.chunks_exact_mut(width.max(1)).enumerate() {
            write(job, key);
        }
        Self { width, words }
    }

    fn key(&self, place: u32) -> &[u64] {
        &self.words[place as usize * self.width..(place as usize + 1) * self.width]
    }

    /// Number of keys.
    fn n(&self) -> u32 {
        as_u32(self.words.len() / self.width.max(1))
    }

    /// Positions in the order of their keys; of equal keys, ascending.
    fn order(&self) -> Vec<u32> {
        let first = |place: u32| self.key(place).first().copied().unwrap_or(0);
        let mut order: Vec<(u64, u32)> = (0..self.n()).map(|place| (first(place), place)).collect();
        self.sort(&mut order, 0);
        order.into_iter().map(|(_, place)| place).collect()
    }

    /// Sorts (word, position) by the keys from this word on, word after word, so that words that many keys share are not
    /// compared again and again.
    fn sort(&self, order: &mut [(u64, u32)], word: usize) {
        order.sort_unstable_by_key(|(word, _)| *word);
        if word + 1 >= self.width {
            let alike = order.chunk_by_mut(|one, other| one.0 == other.0);
            alike.for_each(|same| same.sort_unstable_by_key(|(_, place)| *place));
            return;
        }
        for same in order.chunk_by_mut(|one, other| one.0 == other.0).filter(|same| same.len() > 1) {
            for (next, place) in same.iter_mut() {
                *next = self.key(*place)[word + 1];
            }
            self.sort(same, word + 1);
        }
    }
}

/// The keys that jobs were grouped by.
#[derive(Clone, Debug)]
pub struct ClassKeys {
    words: KeyWords,
    /// Position among `words` of each class's key, `[classes]`; `None` if it is the class's own.
    order: Option<Vec<u32>>,
}

impl ClassKeys {
    /// The key of a class: `[width]`.
    pub fn of_class(&self, class: usize) -> &[u64] {
        let at = class * self.words.width;
        match &self.order {
            Some(order) => self.words.key(order[class]),
            None => &self.words.words[at..at + self.words.width],
        }
    }
}

/// An open-addressing table from key to class: insertion order numbers the classes, never the hash.
struct Table {
    /// Half of a key's hash, and its class: most other keys are told apart by the hash alone.
    slots: Vec<(u32, u32)>,
    /// The keys of the classes.
    keys: KeyWords,
}

const EMPTY: u32 = u32::MAX;

impl Table {
    fn with_capacity(n_slots: usize, width: usize) -> Self {
        Self { slots: vec![(0, EMPTY); n_slots], keys: KeyWords { width, words: Vec::new() } }
    }

    fn n_classes(&self) -> usize {
        self.keys.n() as usize
    }

    fn find_or_insert(&mut self, key: &[u64]) -> u32 {
        let hash = hash(key);
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let (known, class) = self.slots[slot];
            if class == EMPTY {
                break;
            }
            if known == hash && self.keys.key(class) == key {
                return class;
            }
            slot = (slot + 1) & mask;
        }
        let class = as_u32(self.n_classes());
        self.slots[slot] = (hash, class);
        self.keys.words.extend_from_slice(key);
        if self.n_classes() * 2 > self.slots.len() {
            self.grow();
        }
        class
    }

    fn grow(&mut self) {
        let larger = vec![(0, EMPTY); self.slots.len() * 4];
        let mask = larger.len() - 1;
        for (hash, class) in std::mem::replace(&mut self.slots, larger) {
            if class == EMPTY {
                continue;
            }
            let mut slot = hash as usize & mask;
            while self.slots[slot].1 != EMPTY {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = (hash, class);
        }
    }
}

/// A number of jobs or classes, fewer than 2^32.
fn as_u32(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 jobs")
}

/// Half of a hash of a key's words.
fn hash(key: &[u64]) -> u32 {
    let mix = |state: u64, word: &u64| (state.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (key.iter().fold(0, mix) >> 32) as u32
}

/// A pair of jobs, and the fraction of their class pair's time that it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DividedPair {
    /// The position of a job within class A.
    pub a: usize,
    /// The position of a job within class B.
    pub b: usize,
    /// The fraction.
    pub fraction: f64,
}

/// The division of a class pair's time among jobs, the positions in class A ascending from pair to pair. Fractions sum to 1,
/// and every job of a class has the same part of them.
#[derive(Clone, Debug)]
pub enum Division {
    /// A division between two classes: every job of A has 1/`n_a` and every job of B 1/`n_b`, by the transportation
    /// problem's north-west corner rule, in `n_a + n_b − 1` pairs at most.
    Between(Corner),
    /// A division within one class of n ≥ 2 jobs, each of which has 2/n: one pair for n = 2, a perfect matching for even
    /// n, else a cycle.
    Within {
        /// Number of jobs, n.
        n: usize,
        /// Position of the next pair.
        next: usize,
    },
}

impl Division {
    /// The division between all jobs of two classes.
    pub fn between(n_a: usize, n_b: usize) -> Self {
        Self::Between(Corner { n_a, n_b, a: 0, b: 0, supply: n_b, demand: n_a })
    }

    /// The division among the jobs of one class.
    pub fn within(n: usize) -> Self {
        Self::Within { n, next: 0 }
    }
}

impl Iterator for Division {
    type Item = DividedPair;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Between(corner) => corner.next(),
            Self::Within { n, next } => {
                let (n, pair) = (*n, *next);
                *next += 1;
                if n.is_multiple_of(2) {
                    let (a, b, fraction) = (2 * pair, 2 * pair + 1, 2.0 / n as f64);
                    return (pair < n / 2).then_some(DividedPair { a, b, fraction });
                }
                // (0, 1), then the pair that closes the cycle, (0, n − 1), then (1, 2), (2, 3) and so on
                let [a, b] = match pair {
                    0 => [0, 1],
                    1 => [0, n - 1],
                    _ => [pair - 1, pair],
                };
                (pair < n).then(|| DividedPair { a, b, fraction: 1.0 / n as f64 })
            }
        }
    }
}

/// The state of a division between two classes. In units of 1/(n_a·n_b) all supplies and demands are whole numbers, so
/// nothing is lost to rounding.
#[derive(Clone, Debug)]
pub struct Corner {
    n_a: usize,
    n_b: usize,
    a: usize,
    b: usize,
    /// The remaining supply of the current job of A.
    supply: usize,
    /// The remaining demand of the current job of B.
    demand: usize,
}

impl Corner {
    fn next(&mut self) -> Option<DividedPair> {
        if self.a == self.n_a || self.b == self.n_b {
            return None;
        }
        let amount = self.supply.min(self.demand);
        let fraction = amount as f64 / (self.n_a * self.n_b) as f64;
        let pair = DividedPair { a: self.a, b: self.b, fraction };
        self.supply -= amount;
        self.demand -= amount;
        if self.supply == 0 {
            (self.a, self.supply) = (self.a + 1, self.n_b);
        }
        if self.demand == 0 {
            (self.b, self.demand) = (self.b + 1, self.n_a);
        }
        Some(pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_keys_share_a_class_whatever_the_order() {
        let keys = [[5, 1], [3, 3], [5, 1], [0, 9]];
        let (classes, of) = Classes::group(4, 2, Unlike::ByKey, |job, key| key.copy_from_slice(&keys[job]));
        assert_eq!((0..4).map(|job| classes.class_of(job)).collect::<Vec<_>>(), [2, 1, 2, 0]);
        assert_eq!(classes.members(2), [0, 2]);
        assert_eq!([0, 1, 2].map(|class| of.of_class(class)), [[0, 9], [3, 3], [5, 1]]);
    }

    proptest! {
        #[test]
        fn grouping_agrees_with_a_sorted_map(
            most in prop::sample::select(vec![9_u64, 400, 4000, u64::MAX]),
            drawn in prop::collection::vec(any::<u64>(), 0..2500),
        ) {
            let keys: Vec<u64> = drawn.iter().map(|key| key % most).collect();
            let mut distinct = keys.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let unlike = keys.len() > UNLIKE_JOBS && {
                let mut first = keys[..UNLIKE_JOBS].to_vec();
                first.sort_unstable();
                first.dedup();
                first.len() * 2 > UNLIKE_JOBS
            };
            let write = |job: usize, key: &mut [u64]| key[0] = keys[job];
            for order in [Unlike::ByKey, Unlike::InTurn] {
                let (classes, of) = Classes::group(keys.len(), 1, order, write);
                let by_key = order == Unlike::ByKey || !unlike;
                prop_assert_eq!(classes.len(), distinct.len());
                for (job, key) in keys.iter().enumerate() {
                    let class = classes.class_of(job);
                    prop_assert_eq!(of.of_class(class), &[*key][..]);
                    prop_assert!(classes.members(class).is_sorted());
                    prop_assert!(!by_key || distinct[class] == *key);
                }
                let firsts: Vec<u32> = (0..classes.len()).map(|class| classes.members(class)[0]).collect();
                prop_assert!(by_key || firsts.is_sorted());
            }
        }

        #[test]
        fn a_pairing_meets_every_supply_and_demand(n_a in 1_usize..40, n_b in 1_usize..40) {
            let pairs: Vec<_> = Division::between(n_a, n_b).collect();
            prop_assert!(pairs.len() < n_a + n_b);
            for a in 0..n_a {
                let sum: f64 = pairs.iter().filter(|p| p.a == a).map(|p| p.fraction).sum();
                prop_assert!((sum - 1.0 / n_a as f64).abs() < 1e-12);
            }
            for b in 0..n_b {
                let sum: f64 = pairs.iter().filter(|p| p.b == b).map(|p| p.fraction).sum();
                prop_assert!((sum - 1.0 / n_b as f64).abs() < 1e-12);
            }
        }

        #[test]
        fn a_division_within_a_class_uses_every_job_alike(n in 2_usize..40) {
            let pairs: Vec<_> = Division::within(n).collect();
            for job in 0..n {
                let sum: f64 = pairs.iter().filter(|p| p.a == job || p.b == job).map(|p| p.fraction).sum();
                prop_assert!((sum - 2.0 / n as f64).abs() < 1e-12);
            }
            prop_assert!(pairs.iter().all(|p| p.a < p.b));
            prop_assert!(pairs.windows(2).all(|two| two[0].a <= two[1].a && two[0] != two[1]));
        }
    }
}
