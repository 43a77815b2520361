//! The primal–dual path: predictor, corrector, steps.

use rayon::prelude::*;

use crate::solver::backend::Limits;
use crate::solver::block_interior_point::block_batch::BlockBatch;
use crate::solver::block_interior_point::dense::DenseBlock;
use crate::solver::block_interior_point::linking::{Linking, LinkingStep};
use crate::solver::block_interior_point::system::{Factored, Partial, Sums};
use crate::solver::block_interior_point::target::{Outer, PROXIMAL, Target, Wanted};
use crate::solver::timing::Stopwatch;

/// Iterations after which a solve that still gets nowhere is given up.
const ITERATIONS_MAX: u32 = 150;
/// How far of the way to the boundary a step goes, at least.
const FRACTION: f64 = 0.99;
/// Corrections of a step towards the centre, at most, while both lengths are below `LONG`.
const CORRECTIONS_MAX: u32 = 3;
const LONG: f64 = 0.9;
/// A correction aims at steps of this length: factor and summand.
const LONGER: (f64, f64) = (1.1, 0.1);
/// A correction that lengthens the step (the product of its lengths) by less is the last.
const GAIN_MIN: f64 = 0.05;
/// Iterations without progress after which a path is given up: far from the end, and where it is `CLOSE`.
const STUCK: u32 = 15;
const STUCK_CLOSE: u32 = 3;
const CLOSE: f64 = 1e-7;
/// An objective of this size, of what all blocks could have with columns near one, has no end.
const ENDLESS: f64 = 1e14;
/// A step aims at a gap of no less than this part of the tolerance.
const MU_MIN: f64 = 0.02;
/// Tiles whose sums are held at once; fixed, so that sums are the same on any number of threads.
const WAVE: usize = 32;

/// How a path ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum End {
    Optimal,
    /// No further progress; relative gap or residual.
    Stuck {
        worst: f64,
    },
    TimeLimit,
    IterationLimit,
}

/// All blocks, and what links them.
#[derive(Debug)]
pub(super) struct Interior {
    pub(super) batches: Vec<BlockBatch>,
    pub(super) dense: Vec<DenseBlock>,
    pub(super) linking: Linking,
    /// Shares of mu of all pairs whose products are to vanish.
    pub(super) shares: f64,
    pub(super) parallel: bool,
    pub(super) has_logarithms: bool,
    /// An objective below this is judged absolutely.
    pub(super) unit: f64,
    /// What is added to the objective.
    pub(super) offset: f64,
    pub(super) iterations: u32,
}

/// A step and how far along it the boundary is.
#[derive(Debug)]
struct Reached {
    linking: LinkingStep,
    primal: f64,
    dual: f64,
}

/// Where the iterate stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) mu: f64,
    pub(super) gap: f64,
    pub(super) primal_residual: f64,
    pub(super) dual_residual: f64,
    pub(super) primal: f64,
    pub(super) dual: f64,
}

impl Interior {
    /// Follows the path until the gap is within `tolerance` of the objective.
    pub(super) fn follow(&mut self, limits: &Limits) -> End {
        let clock = Stopwatch::start();
        let tolerance = (limits.tolerance * 0.1).clamp(1e-12, 1e-4);
        let iterations_max = limits.iterations.unwrap_or(ITERATIONS_MAX).min(ITERATIONS_MAX);
        let mut stuck = 0;
        let mut best = f64::INFINITY;
        let mut last: Option<(LinkingStep, f64, f64)> = None;
        loop {
            let affine =
                Wanted { target: Target::Path { mu: 0.0, second: 0.0 }, matrix: true, objective: true };
            let mut partial = self.gather(affine);
            let standing = self.standing(&partial);
            let scale = standing.primal.abs().max(standing.dual.abs()).max(self.unit);
            let worst = (standing.gap / scale).max(standing.primal_residual).max(standing.dual_residual);
            if !standing.mu.is_finite() {
                // rounding has spoilt the last step: take it back
                if let Some((step, primal, dual)) = last {
                    self.advance(&step, -primal, -dual);
                }
                return End::Stuck { worst: best };
            }
            if worst <= tolerance {
                return End::Optimal;
            }
            stuck = if worst < best * 0.9 { 0 } else { stuck + 1 };
            best = best.min(worst);
            if stuck >= if best < CLOSE { STUCK_CLOSE } else { STUCK } {
                return End::Stuck { worst };
            }
            if standing.primal.abs() > ENDLESS {
                return End::Stuck { worst };
            }
            if limits.time.is_some_and(|time| clock.elapsed() > time) {
                return End::TimeLimit;
            }
            if self.iterations >= iterations_max {
                return End::IterationLimit;
            }
            self.iterations += 1;
            let factored = self.factor(&mut partial);
            let mu_min = MU_MIN * tolerance * scale / self.shares;
            let Some(step) = self.iterate(&factored, &partial, standing.mu, mu_min) else {
                return End::Stuck { worst };
            };
            last = Some(step);
        }
    }

    /// One predictor and corrector: the step taken, and its lengths; none if rounding has left no step.
    fn iterate(
        &mut self,
        factored: &Factored,
        partial: &Partial,
        mu: f64,
        mu_min: f64,
    ) -> Option<(LinkingStep, f64, f64)> {
        let products = mu * self.shares;
        let affine = Target::Path { mu: 0.0, second: 0.0 };
        let none = LinkingStep::zero(&self.linking);
        let step = self.linking_step((factored, partial), partial, &none, affine);
        let sums = self.recover(&step, affine);
        let (primal, dual) = (reach(sums.primal_ratio), reach(sums.dual_ratio));
        let after = products + dual * sums.cross[0] + primal * sums.cross[1] + primal * dual * sums.cross[2];
        let ratio = (after / products).clamp(0.0, 1.0);
        let mu = (mu * ratio.powi(3)).max(mu_min);
        // with logarithms the predictor overshoots: its products count as far as it can be followed
        let second = if self.has_logarithms { primal * dual } else { 1.0 };
        let mut step = self.toward(factored, partial, &step, Target::Path { mu, second });
        for _ in 0..CORRECTIONS_MAX {
            let (primal, dual) = (step.primal, step.dual);
            if primal.min(dual) > LONG {
                break;
            }
            let further = |length: f64| (LONGER.0 * length + LONGER.1).min(1.0);
            let target = Target::Centre { mu, primal: further(primal), dual: further(dual) };
            self.batches.iter_mut().for_each(BlockBatch::keep);
            self.dense.iter_mut().for_each(DenseBlock::keep);
            let next = self.toward(factored, partial, &step.linking, target);
            let gain = next.primal.min(1.0) * next.dual.min(1.0) - primal * dual;
            if gain < 0.0 {
                self.batches.iter_mut().for_each(BlockBatch::revert);
                self.dense.iter_mut().for_each(DenseBlock::revert);
                break;
            }
            step = next;
            if gain < GAIN_MIN {
                break;
            }
        }
        let fraction = FRACTION.max(1.0 - products);
        let length = |to_boundary: f64| (fraction * to_boundary).min(1.0);
        let (primal, dual) = (length(step.primal), length(step.dual));
        let mut steps = step.linking.price.iter().chain(&step.linking.level);
        if !steps.all(|step| step.is_finite()) {
            return None;
        }
        self.advance(&step.linking, primal, dual);
        Some((step.linking, primal, dual))
    }

    /// The step for a target, stored in the blocks, and how far it is to the boundary. `before`: the linking rows'
    /// and columns' part of the step now stored.
    fn toward(&mut self, factored: &Factored, at: &Partial, before: &LinkingStep, target: Target) -> Reached {
        let gathered = self.gather(Wanted { target, matrix: false, objective: false });
        let linking = self.linking_step((factored, at), &gathered, before, target);
        let sums = self.recover(&linking, target);
        let length = |ratio: f64| 1.0 / ratio.max(1e-3);
        Reached { linking, primal: length(sums.primal_ratio), dual: length(sums.dual_ratio) }
    }

    fn gather(&mut self, wanted: Wanted) -> Partial {
        let linking = &self.linking;
        let at = Outer { price: &linking.price, level: &linking.level };
        let mut total = Partial::zero(at.price.len(), at.level.len(), wanted.matrix);
        for wave in self.batches.chunks(WAVE) {
            if self.parallel {
                let parts: Vec<Partial> = wave.par_iter().map(|batch| batch.gather(at, wanted)).collect();
                for part in &parts {
                    total.add(part);
                }
            } else {
                for batch in wave {
                    total.add(&batch.gather(at, wanted));
                }
            }
        }
        for block in &mut self.dense {
            block.gather(at, wanted, &mut total);
        }
        total
    }

    fn recover(&mut self, step: &LinkingStep, target: Target) -> Sums {
        let linking = &self.linking;
        let at = Outer { price: &linking.price, level: &linking.level };
        let outer = Outer { price: &step.price, level: &step.level };
        let parts: Vec<Sums> = if self.parallel {
            self.batches.par_iter_mut().map(|batch| batch.recover(at, outer, target)).collect()
        } else {
            self.batches.iter_mut().map(|batch| batch.recover(at, outer, target)).collect()
        };
        let mut sums = linking.step_sums(step);
        for part in &parts {
            sums.add(part);
        }
        for block in &mut self.dense {
            sums.add(&block.recover(at, outer, target));
        }
        sums
    }

    fn advance(&mut self, step: &LinkingStep, primal: f64, dual: f64) {
        if self.parallel {
            self.batches.par_iter_mut().for_each(|batch| batch.advance(primal, dual));
        } else {
            self.batches.iter_mut().for_each(|batch| batch.advance(primal, dual));
        }
        self.dense.iter_mut().for_each(|block| block.advance(primal, dual));
        self.linking.advance(step, primal, dual);
    }

    fn standing(&self, partial: &Partial) -> Standing {
        let mut sums = partial.sums;
        sums.add(&self.linking.sums(partial));
        Standing {
            mu: sums.complementarity / self.shares,
            gap: sums.complementarity.abs(),
            primal_residual: sums.primal_residual,
            dual_residual: sums.dual_residual,
            primal: sums.primal + self.offset,
            dual: sums.dual + self.offset,
        }
    }

    fn factor(&self, partial: &mut Partial) -> Factored {
        let (rows, columns) = (self.linking.kinds.len(), self.linking.level.len());
        let (mut p, mut q, mut r) =
            (std::mem::take(&mut partial.p), std::mem::take(&mut partial.q), std::mem::take(&mut partial.r));
        for row in 0..rows {
            let own = p[row * rows + row];
            p[row * rows + row] += self.linking.stiffness(row, own);
        }
        q.iter_mut().zip(&self.linking.coefficients).for_each(|(q, f)| *q -= f);
        for column in 0..columns {
            let own = r[column * columns + column];
            r[column * columns + column] += self.linking.bound_stiffness(column) + PROXIMAL * own.max(1e-6);
        }
        Factored::of(p, q, r, rows, columns)
    }

    /// The step of linking rows and columns for right-hand sides gathered at `target`. `before`: the step whose
    /// products are corrected for.
    fn linking_step(
        &self,
        (factored, at): (&Factored, &Partial),
        partial: &Partial,
        before: &LinkingStep,
        target: Target,
    ) -> LinkingStep {
        let linking = &self.linking;
        let products = linking.products(before, target);
        let mut rows = partial.rows.clone();
        for (row, value) in rows.iter_mut().enumerate() {
            *value -= linking.row_residual(row, at.activity[row]) - products.over_price(linking, row);
        }
        let mut columns = linking.column_residuals(&at.gradient);
        for (column, value) in columns.iter_mut().enumerate() {
            *value += products.over_bounds(linking, column) - partial.columns[column];
        }
        let (price, level) = factored.solve(&rows, &columns);
        linking.complete(&products, price, level)
    }
}

/// The largest step in [0, 1] that keeps values positive.
fn reach(ratio: f64) -> f64 {
    if ratio > 1.0 { 1.0 / ratio } else { 1.0 }
}
