//! Random numbers for tests.

/// Generator of numbers in [0, 1), whose sequence for a seed is the same on every machine (Knuth's MMIX constants).
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A random whole number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (0..n).rev().find(|at| self.next() * (*at as f64 + 1.0) < 1.0).unwrap_or(0)
    }
}
