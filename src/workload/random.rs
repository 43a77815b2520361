//! Our own random numbers: named streams split from one seed.
//!
//! Each quantity that is drawn has a stream of its own, so that one quantity more, or another number of jobs, shifts no other's
//! draws. **Value-stable**: a seed and a name give the same numbers in every release; tests check the first ones. The integers are
//! the same on every platform; the exponential and the normal take logarithms and cosines from the platform's mathematical library,
//! whose last bit may differ.

use std::fmt;

use hmac_sha256::Hash;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Spreads any difference of a word over all its bits: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
pub const fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// One seed, from which streams are split by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SeedStreams {
    seed: u64,
}

/// A stream of random numbers: PCG64 seeded by the SHA-256 of the seed and the stream's name.
///
/// It is saved as seed, name and the number of draws.
///
/// ```
/// use apportion::workload::random::SeedStreams;
/// let mut arrivals = SeedStreams::new(7).stream("arrivals");
/// let gap = arrivals.exponential(3600.0);
/// assert!(gap > 0.0);
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "Saved", from = "Saved")]
pub struct Stream {
    streams: SeedStreams,
    name: String,
    /// Number of 64-bit words drawn so far.
    drawn: u64,
    generator: Pcg64,
}

/// The state of a stream that a checkpoint keeps.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    seed: SeedStreams,
    name: String,
    drawn: u64,
}

impl SeedStreams {
    /// The streams of this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed.
    pub const fn seed(self) -> u64 {
        self.seed
    }

    /// The stream of this name, from its beginning.
    pub fn stream(self, name: impl Into<String>) -> Stream {
        let name = name.into();
        let mut digest = Hash::new();
        digest.update(b"apportion stream v1\0");
        digest.update(self.seed.to_le_bytes());
        digest.update(name.as_bytes());
        let generator = Pcg64::from_seed(digest.finalize());
        Stream { streams: self, name, drawn: 0, generator }
    }
}

impl Stream {
    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.drawn += 1;
        self.generator.next_u64()
    }

    /// Uniform in [0, 1), 53 bits; one draw.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in [from, to); one draw.
    pub fn uniform_in(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.uniform()
    }

    /// Uniform in 0..n; one draw, whose bias of at most n/2^64 is accepted so that draws can be counted.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "a choice from nothing");
        let scaled = (u128::from(self.next_u64()) * n as u128) >> 64;
        usize::try_from(scaled).unwrap_or(n - 1)
    }

    /// One of the items, each as likely; one draw.
    ///
    /// # Panics
    /// If there are no items.
    pub fn choice<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Puts the items in random order; one draw less than items.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    /// Exponential of this mean; one draw.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.uniform()).ln() * mean
    }

    /// Normal of this mean and standard deviation, by Box and Muller's method; two draws.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.uniform();
        mean + deviation * radius * angle.cos()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { streams, name, drawn, .. } = self;
        f.debug_struct("Stream")
            .field("seed", &streams.seed)
            .field("name", name)
            .field("drawn", drawn)
            .finish_non_exhaustive()
    }
}

impl From<Stream> for Saved {
    fn from(stream: Stream) -> Self {
        Self { seed: stream.streams, name: stream.name, drawn: stream.drawn }
    }
}

impl From<Saved> for Stream {
    fn from(saved: Saved) -> Self {
        let mut stream = saved.seed.stream(saved.name);
        stream.generator.advance(u128::from(saved.drawn));
        stream.drawn = saved.drawn;
        stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_the_same_in_every_release() {
        let first = |seed, name: &str| SeedStreams::new(seed).stream(name).next_u64();
        let golden = [
            (0, "arrivals", 17_351_699_880_140_997_915),
            (0, "durations", 12_225_862_797_573_501_934),
            (1, "arrivals", 15_813_618_398_089_472_178),
            (u64::MAX, "", 8_576_976_082_231_910_545),
        ];
        let found: Vec<_> = golden.iter().map(|(seed, name, _)| (*seed, *name, first(*seed, name))).collect();
        assert_eq!(found, golden);
    }

    #[test]
    fn a_saved_stream_goes_on_where_it_was() {
        let mut stream = SeedStreams::new(3).stream("faults");
        for _ in 0..100 {
            stream.normal(0.0, 1.0);
        }
        let saved = serde_json::to_string(&stream).unwrap();
        assert_eq!(saved, r#"{"seed":3,"name":"faults","drawn":200}"#);
        let mut restored: Stream = serde_json::from_str(&saved).unwrap();
        assert_eq!(restored.next_u64(), stream.next_u64());
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        const N: usize = 100_000;
        let mut stream = SeedStreams::new(11).stream("moments");
        let mut mean = |mut draw: Box<dyn FnMut(&mut Stream) -> f64>| {
            (0..N).map(|_| draw(&mut stream)).sum::<f64>() / N as f64
        };
        // The bounds are ten standard errors of each mean.
        assert!((mean(Box::new(Stream::uniform)) - 0.5).abs() < 0.01);
        assert!((mean(Box::new(|s| s.exponential(2.0))) - 2.0).abs() < 0.07);
        assert!((mean(Box::new(|s| s.normal(5.0, 3.0))) - 5.0).abs() < 0.1);
        assert!((mean(Box::new(|s| (s.normal(0.0, 3.0)).powi(2))) - 9.0).abs() < 0.5);
        assert!((mean(Box::new(|s| s.below(7) as f64)) - 3.0).abs() < 0.07);
    }

    #[test]
    fn a_shuffle_loses_nothing() {
        let mut items: Vec<usize> = (0..50).collect();
        SeedStreams::new(1).stream("shuffle").shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
