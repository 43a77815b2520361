//! CPython's `random.Random`, draw for draw: the Mersenne Twister and the functions of Python's library on it.
//!
//! Published simulators written in Python can be repeated job for job only with their very draws. All functions here give the
//! values of CPython 3.2 and later, whatever the platform; new code draws from [`random`](crate::workload::random) instead.

use std::collections::BTreeSet;

use rand_mt::Mt;
use serde::{Deserialize, Serialize};

/// A generator with the draws of Python's `random.Random(seed)`.
///
/// It is saved as its seed and the number of 32-bit words drawn; restoring replays them.
///
/// ```
/// use apportion::workload::python_random::PythonRandom;
/// let mut python = PythonRandom::new(42);
/// assert_eq!(python.random(), 0.6394267984578837); // >>> random.Random(42).random()
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Saved", try_from = "Saved")]
pub struct PythonRandom {
    /// The seed's absolute value in base 2^32, least significant word first.
    seed: Vec<u32>,
    /// Number of 32-bit words drawn so far.
    drawn: u64,
    twister: Mt,
}

/// The state of a generator that a checkpoint keeps.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    seed: Vec<u32>,
    drawn: u64,
}

/// The most words of a saved state, more than any simulation draws: a state beyond it would be replayed for hours.
const DRAWN_MAX: u64 = 1 << 36;

/// The most 32-bit words of a seed, the size of the twister's own state.
const SEED_WORDS_MAX: usize = 624;

impl PythonRandom {
    /// The generator `random.Random(seed)` of an integer; as in Python, the sign is dropped.
    pub fn new(seed: impl Into<i128>) -> Self {
        let mut rest = seed.into().unsigned_abs();
        let mut words = Vec::new();
        while rest != 0 {
            words.push((rest & 0xffff_ffff) as u32);
            rest >>= 32;
        }
        Self::from_words(words)
    }

    /// The generator `random.Random(seed)` of an integer of any size, given in base 2^32, least significant word first; leading
    /// zeros do not matter.
    ///
    /// # Panics
    /// If the seed has more than 624 words.
    pub fn from_words(mut words: Vec<u32>) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        if words.is_empty() {
            words.push(0);
        }
        assert!(words.len() <= SEED_WORDS_MAX, "a seed of {} words, expected at most 624", words.len());
        let twister = Mt::new_with_key(words.iter().copied());
        Self { seed: words, drawn: 0, twister }
    }

    fn next_word(&mut self) -> u32 {
        self.drawn += 1;
        self.twister.next_u32()
    }

    /// `random()`: uniform in [0, 1), 53 bits.
    pub fn random(&mut self) -> f64 {
        let high = f64::from(self.next_word() >> 5);
        let low = f64::from(self.next_word() >> 6);
        (high * 67_108_864.0 + low) * (1.0 / 9_007_199_254_740_992.0)
    }

    /// `uniform(from, to)`.
    pub fn uniform(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.random()
    }

    /// `getrandbits(bits)`, for up to 64 bits.
    ///
    /// # Panics
    /// If `bits` exceeds 64.
    pub fn getrandbits(&mut self, bits: u32) -> u64 {
        assert!(bits <= 64, "{bits} bits, expected at most 64");
        match bits {
            0 => 0,
            1..=32 => u64::from(self.next_word() >> (32 - bits)),
            _ => {
                let low = u64::from(self.next_word());
                low | u64::from(self.next_word() >> (64 - bits)) << 32
            }
        }
    }

    /// `randrange(n)`: uniform in 0..n.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn randrange(&mut self, n: usize) -> usize {
        assert!(n > 0, "randrange over nothing");
        let bits = usize::BITS - n.leading_zeros();
        loop {
            // At most 64 bits were asked for, which a usize holds.
            if let Ok(drawn) = usize::try_from(self.getrandbits(bits))
                && drawn < n
            {
                return drawn;
            }
        }
    }

    /// `choice(items)`.
    ///
    /// # Panics
    /// If there is nothing to choose from.
    pub fn choice<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.randrange(items.len())]
    }

    /// `shuffle(items)`, in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.randrange(last + 1);
            items.swap(last, other);
        }
    }

    /// `sample(items, k)`: k different positions' items, in the order drawn.
    ///
    /// # Panics
    /// If there are fewer than `k` items.
    pub fn sample<T: Clone>(&mut self, items: &[T], k: usize) -> Vec<T> {
        let n = items.len();
        assert!(k <= n, "a sample of {k} from {n}");
        if n <= small_population(k) {
            let mut pool = items.to_vec();
            (0..k)
                .map(|taken| {
                    let position = self.randrange(n - taken);
                    let item = pool[position].clone();
                    pool[position] = pool[n - taken - 1].clone();
                    item
                })
                .collect()
        } else {
            let mut selected = BTreeSet::new();
            (0..k)
                .map(|_| {
                    let mut position = self.randrange(n);
                    while !selected.insert(position) {
                        position = self.randrange(n);
                    }
                    items[position].clone()
                })
                .collect()
        }
    }

    /// `expovariate(rate)`: exponential of mean 1/rate.
    pub fn expovariate(&mut self, rate: f64) -> f64 {
        -(1.0 - self.random()).ln() / rate
    }
}

/// CPython samples by shrinking a copy of populations up to this size, and by drawing until new above it.
fn small_population(k: usize) -> usize {
    if k <= 5 {
        return 21;
    }
    let exponent = ((k as f64 * 3.0).ln() / 4.0_f64.ln()).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small whole number above 0"
    )]
    let added = 4_usize.saturating_pow(exponent as u32);
    added.saturating_add(21)
}

impl From<PythonRandom> for Saved {
    fn from(random: PythonRandom) -> Self {
        Self { seed: random.seed, drawn: random.drawn }
    }
}

impl TryFrom<Saved> for PythonRandom {
    type Error = String;

    fn try_from(saved: Saved) -> Result<Self, String> {
        if saved.drawn > DRAWN_MAX || saved.seed.len() > SEED_WORDS_MAX {
            return Err("expected a generator that has drawn fewer than 2^36 words".to_owned());
        }
        let mut random = Self::from_words(saved.seed);
        for _ in 0..saved.drawn {
            random.next_word();
        }
        Ok(random)
    }
}

#[cfg(test)]
mod tests;
