//! The next level of water filling: the highest level above what jobs already have.
//!
//! Required throughputs are a base plus a multiple of the level, so a response to one level becomes one to a lower
//! level when it is mixed with the allocation that gives the base. Where one job alone limits the level, the
//! responses to the prices of the level before mostly fit, and one pass is enough. The prices found say which jobs
//! are saturated and which worker types are scarce from then on.

use super::{F64x8, JobBatch, LANES, LevelGoal, SearchStart, Units, lowest_limit};
use crate::decomposition::certificate::PrimalDual;
use crate::decomposition::dantzig_wolfe::SearchEnd;
use crate::decomposition::tolerances::{LACK_MAX, SCARCE_MIN};
use crate::program::singles::{Goal, Singles};
use crate::solver::backend::Limits;

/// The next level of water filling, and what proves it.
#[derive(Clone, Debug)]
pub struct RaisedLevel {
    /// Class times and the dual prices that certify them.
    pub answer: PrimalDual,
    /// Is the class saturated: do the prices prove that no optimum raises it above the level? `[members]`.
    pub binding: Vec<bool>,
    /// Is a worker type scarce: has it a price, so that all its workers are used at every optimum? `[K]`.
    pub scarce: Vec<bool>,
    /// Sets of prices to begin the next level with: `[sets × K]`, for all workers of a type together.
    pub near: Vec<Vec<f64>>,
}

/// The highest level above what jobs have, by [`Goal::Above`]; `near` are prices of the level before, if there was one.
/// None if a class cannot rise at all, if there are more than 64 worker types, or if prices do not converge in time.
pub fn raise_above(
    singles: &Singles<'_>,
    goal: Goal<'_>,
    near: Vec<Vec<f64>>,
    limits: &Limits,
) -> Option<RaisedLevel> {
    let limit = lowest_limit(singles, goal);
    if !(limit > 0.0 && limit.is_finite()) {
        return None;
    }
    let units = Units { level: limit, objective: 1.0 };
    let batch = JobBatch::of(singles, goal, units)?;
    // the least level at which jobs would have their base
    let of_base = |class: usize| goal.base(class) / (singles.demand[class] * limit);
    let demanding = (0..batch.n).filter(|class| singles.demand[*class] > 0.0);
    let base = demanding.map(of_base).fold(f64::INFINITY, f64::min);
    let warm = (!near.is_empty()).then(|| SearchStart::anywhere(&vec![1.0; batch.k]).at(near.clone()));
    let found = batch.search(LevelGoal::RaiseAbove { base }, warm, limits)?;
    let scarce = found.at.price.iter().map(|price| found.has_prices && *price > SCARCE_MIN);
    let mut scarce: Vec<bool> = scarce.collect();
    let binding = batch.binding(&found, &scarce);
    scarce.truncate(singles.instance().n_types());
    let answer = batch.primal_dual(singles, goal, &found, units);
    let unchanged = || if near.is_empty() { vec![found.at.price.clone()] } else { near };
    let near = found.next_prices().unwrap_or_else(unchanged);
    Some(RaisedLevel { answer, binding, scarce, near })
}

impl JobBatch {
    /// Saturated jobs: those at their highest throughput, and those whose throughput has a positive dual price when
    /// only scarce types cost anything.
    fn binding(&self, found: &SearchEnd, scarce: &[bool]) -> Vec<bool> {
        let mut at = self.at(&found.at);
        at.level = found.level;
        for (price, scarce) in at.price.iter_mut().zip(scarce) {
            *price = if *scarce { *price } else { 0.0 };
        }
        let (mut priced, mut time) = (vec![0.0; self.n], vec![0.0; self.n]);
        (self.pass.prove)(self, &at, &mut priced, &mut time);
        let mut binding = Vec::with_capacity(self.n);
        for (chunk, priced) in priced.chunks(LANES).enumerate() {
            let speeds = &self.speed[chunk * self.k..(chunk + 1) * self.k];
            let fastest = speeds.iter().fold(F64x8::ZERO, |most, speed| most.max(*speed));
            let lacking = fastest + self.required(chunk, at.level) * -1.0;
            for (i, price) in priced.iter().enumerate() {
                let full = lacking.0[i] <= LACK_MAX * fastest.0[i];
                binding.push(self.demand[chunk].0[i] > 0.0 && (full || *price > 0.0));
            }
        }
        binding
    }
}
