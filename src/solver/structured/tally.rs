//! Sums and extremes over chunks.

use crate::solver::structured::lane::Lane;
use crate::solver::structured::passes::Chunk;
use crate::solver::structured::side::Kind;
use crate::solver::structured::system::Sums;
use crate::solver::structured::tile::Tile;

/// Sums over chunks of where the blocks stand.
pub(super) struct Tally {
    complementarity: Lane,
    primal_residual: Lane,
    dual_residual: Lane,
    primal: Lane,
    dual: Lane,
}

impl Default for Tally {
    fn default() -> Self {
        let zero = Lane::ZERO;
        Self { complementarity: zero, primal_residual: zero, dual_residual: zero, primal: zero, dual: zero }
    }
}

impl Tally {
    #[inline]
    pub(super) fn count<const K: usize>(
        &mut self,
        tile: &Tile,
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
            if tile.kinds[row] == Kind::Absent {
                continue;
            }
            let (s, y) = (chunk.s[row], chunk.y[row]);
            self.dual += -(tile.bounds[position * 2 + row] * y);
            match tile.kinds[row] {
                Kind::Equal => {
                    self.primal_residual = self.primal_residual.max(chunk.residual[row].abs());
                }
                Kind::Logarithm if objective => {
                    let weight = tile.weights[position * 2 + row];
                    let log = |value: Lane| Lane(value.0.map(f64::ln));
                    self.primal += -(weight * log(s));
                    self.dual += weight * (Lane::ONE + log(y / weight));
                    self.primal_residual = self.primal_residual.max((chunk.residual[row] - s).abs());
                    let ratio = s * y / weight;
                    self.complementarity += weight * (ratio - Lane::ONE - log(ratio));
                }
                _ => {
                    self.primal_residual = self.primal_residual.max((chunk.residual[row] - s).abs());
                    if tile.kinds[row] == Kind::AtMost {
                        self.complementarity += s * y;
                    } else {
                        // the second-order term of ratio − 1 − log ratio
                        let weight = tile.weights[position * 2 + row];
                        let off = s * y / weight - Lane::ONE;
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
    primal_ratio: Lane,
    dual_ratio: Lane,
    cross: [Lane; 3],
}

impl Default for StepTally {
    fn default() -> Self {
        Self { primal_ratio: Lane::ZERO, dual_ratio: Lane::ZERO, cross: [Lane::ZERO; 3] }
    }
}

impl StepTally {
    #[inline]
    pub(super) fn count(&mut self, (x, z): (Lane, Lane), (dx, dz): (Lane, Lane), vanishing: bool) {
        if vanishing {
            self.cross[0] += x * dz;
            self.cross[1] += z * dx;
            self.cross[2] += dx * dz;
        }
    }

    #[inline]
    pub(super) fn ratios(&mut self, (over_x, over_z): (Lane, Lane), (dx, dz): (Lane, Lane)) {
        self.primal_ratio = self.primal_ratio.max(-(dx * over_x));
        self.dual_ratio = self.dual_ratio.max(-(dz * over_z));
    }

    pub(super) fn sums(&self) -> Sums {
        Sums {
            primal_ratio: self.primal_ratio.largest(),
            dual_ratio: self.dual_ratio.largest(),
            cross: self.cross.map(Lane::sum),
            ..Sums::default()
        }
    }
}
