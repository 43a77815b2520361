//! The next level of water filling: the highest level above the throughputs that jobs already have.
//!
//! The required throughput of a job is its base, the throughput that it already has, plus its demand times the level. A best
//! response to one level becomes one to a lower level when it is mixed with the allocation that gives the base. Where one job
//! alone limits the level, the responses to the prices of the level before mostly fit, and one pass is enough. The prices found
//! say which jobs are saturated and which worker types are scarce at all later levels.

use super::{F64x8, JobBatch, LANES, LevelGoal, SearchStart, Units, lowest_limit};
use crate::decomposition::certificate::PrimalDual;
use crate::decomposition::dantzig_wolfe::SearchEnd;
use crate::decomposition::tolerances::{LACK_MAX, SCARCE_MIN};
use crate::decomposition::unsolved::Unsolved;
use crate::program::singles::{Goal, Singles};
use crate::solver::backend::Limits;

/// The next level of water filling, with the prices that prove it and what they say of later levels.
#[derive(Clone, Debug)]
pub struct RaisedLevel {
    /// Class times and the dual prices that certify them.
    pub answer: PrimalDual,
    /// True for a saturated class, which by the prices no optimum raises above the level: `[members]`.
    pub binding: Vec<bool>,
    /// True for a scarce worker type, which has a price, so that every optimum uses all its workers: `[K]`.
    pub scarce: Vec<bool>,
    /// Prices to begin the search for the next level with, of all workers of a type together: `[entries × K]`.
    pub near: Vec<Vec<f64>>,
}

/// The highest level above the base of `goal`, a [`Goal::Above`]; `warm_prices` are the prices that the level before left, empty if
/// there was none.
///
/// # Errors
/// If a class with a demand cannot rise at all, if there are more than 64 worker types, or if prices do not converge in time.
pub fn raise_above(
    singles: &Singles<'_>,
    goal: Goal<'_>,
    warm_prices: Vec<Vec<f64>>,
    limits: &Limits,
) -> Result<RaisedLevel, Unsolved> {
    let limit = lowest_limit(singles, goal);
    if !(limit > 0.0 && limit.is_finite()) {
        return Err(Unsolved::NoLevel);
    }
    let units = Units { level: limit, objective: 1.0 };
    let batch = JobBatch::of(singles, goal, units).ok_or(Unsolved::TooManyTypes)?;
    // The level that corresponds to a job's base, in the search's units; the least one of all jobs.
    let of_base = |class: usize| goal.base(class) / (singles.demand[class] * limit);
    let demanding = (0..batch.n).filter(|class| singles.demand[*class] > 0.0);
    let base = demanding.map(of_base).fold(f64::INFINITY, f64::min);
    let warm = (!warm_prices.is_empty())
        .then(|| SearchStart::anywhere(&vec![1.0; batch.k]).with_prices(warm_prices.clone()));
    let found = batch.search(LevelGoal::RaiseAbove { base }, warm, limits)?;
    let scarce = found.at.price.iter().map(|price| found.has_prices && *price > SCARCE_MIN);
    let mut scarce: Vec<bool> = scarce.collect();
    let binding = batch.saturated(&found, &scarce);
    scarce.truncate(singles.instance().n_types());
    let answer = batch.primal_dual(singles, goal, &found, units);
    let unchanged = || if warm_prices.is_empty() { vec![found.at.price.clone()] } else { warm_prices };
    let near = found.next_prices().unwrap_or_else(unchanged);
    Ok(RaisedLevel { answer, binding, scarce, near })
}

impl JobBatch {
    /// Marks of the saturated jobs, `[jobs]`. A job that has a demand is saturated if it is at its highest throughput, or if its
    /// throughput has a positive dual price where types that are not scarce cost nothing.
    fn saturated(&self, found: &SearchEnd, scarce: &[bool]) -> Vec<bool> {
        let mut at = self.worker_prices(&found.at);
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
