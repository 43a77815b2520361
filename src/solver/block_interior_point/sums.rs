//! Reductions over chunks of blocks: sums and extremes.

use crate::solver::block_interior_point::block_batch::BlockBatch;
use crate::solver::block_interior_point::inequality::Kind;
use crate::solver::block_interior_point::passes::Chunk;
use crate::solver::block_interior_point::system::Sums;
use crate::solver::lanes::F64x8;

/// Sums over chunks of where the blocks stand.
pub(super) struct Tally {
    complementarity: F64x8,
    primal_residual: F64x8,
    dual_residual: F64x8,
    primal: F64x8,
    dual: F64x8,
}

impl Default for Tally {
    fn default() -> Self {
        let zero = F64x8::ZERO;
        Self { complementarity: zero, primal_residual: zero, dual_residual: zero, primal: zero, dual: zero }
    }
}

impl Tally {
    #[inline]
    pub(super) fn count<const K: usize>(
        &mut self,
        batch: &BlockBatch,
        position: usize,
        chunk: &Chunk<K>,
        objective: bool,
    ) {
        for j in 0..K {
            self.complementarity += chunk.x[j] * chunk.z[j];
            self.dual_residual = self.dual_residual.max((chunk.reduced[j] - chunk.z[j]).abs());
            self.primal += chunk.cost[j] * chunk.x[j];
        }
        for row in 0..2 {
            if batch.kinds[row] == Kind::Absent {
                continue;
            }
            let (s, y) = (chunk.s[row], chunk.y[row]);
            self.dual += -(batch.bounds[position * 2 + row] * y);
            match batch.kinds[row] {
                Kind::Equal => {
                    self.primal_residual = self.primal_residual.max(chunk.residual[row].abs());
                }
                Kind::Logarithm if objective => {
                    let weight = batch.weights[position * 2 + row];
                    let log = |value: F64x8| F64x8(value.0.map(f64::ln));
                    self.primal += -(weight * log(s));
                    self.dual += weight * (F64x8::ONE + log(y / weight));
                    self.primal_residual = self.primal_residual.max((chunk.residual[row] - s).abs());
                    let ratio = s * y / weight;
                    self.complementarity += weight * (ratio - F64x8::ONE - log(ratio));
                }
                _ => {
                    self.primal_residual = self.primal_residual.max((chunk.residual[row] - s).abs());
                    if batch.kinds[row] == Kind::AtMost {
                        self.complementarity += s * y;
                    } else {
                        // the second-order term of ratio − 1 − log ratio
                        let weight = batch.weights[position * 2 + row];
                        let off = s * y / weight - F64x8::ONE;
                        self.complementarity += weight * off * off * 0.5;
                    }
                }
            }
        }
    }

    pub(super) fn sums(&self) -> Sums {
        Sums {
            complementarity: self.complementarity.sum(),
            primal_residual: self.primal_residual.largest(),
            dual_residual: self.dual_residual.largest(),
            primal: self.primal.sum(),
            dual: self.dual.sum(),
            ..Sums::default()
        }
    }
}

/// Sums over chunks of where a step leads.
pub(super) struct StepTally {
    primal_ratio: F64x8,
    dual_ratio: F64x8,
    cross: [F64x8; 3],
}

impl Default for StepTally {
    fn default() -> Self {
        Self { primal_ratio: F64x8::ZERO, dual_ratio: F64x8::ZERO, cross: [F64x8::ZERO; 3] }
    }
}

impl StepTally {
    #[inline]
    pub(super) fn count(&mut self, (x, z): (F64x8, F64x8), (dx, dz): (F64x8, F64x8), vanishing: bool) {
        if vanishing {
            self.cross[0] += x * dz;
            self.cross[1] += z * dx;
            self.cross[2] += dx * dz;
        }
    }

    #[inline]
    pub(super) fn ratios(&mut self, (over_x, over_z): (F64x8, F64x8), (dx, dz): (F64x8, F64x8)) {
        self.primal_ratio = self.primal_ratio.max(-(dx * over_x));
        self.dual_ratio = self.dual_ratio.max(-(dz * over_z));
    }

    pub(super) fn sums(&self) -> Sums {
        Sums {
            primal_ratio: self.primal_ratio.largest(),
            dual_ratio: self.dual_ratio.largest(),
            cross: self.cross.map(F64x8::sum),
            ..Sums::default()
        }
    }
}
