//! Skipping of levels at which members saturate only because they reach their limits, the highest throughputs on types that
//! are not scarce.

use super::FillState;
use super::singles::{LACK_MAX, SinglesOracle};
use crate::decomposition::PrimalDual;
use crate::policy::program::hierarchy::Rising;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::{GaveUp, Unfit};

/// The most levels that are tried; then the highest one reached stands.
const ATTEMPTS_MAX: u32 = 24;
/// The number of these attempts at which Newton's step chooses the level; bisection chooses later ones.
const NEWTON_MAX: u32 = 8;

/// An inequality that every allocation satisfies, by the duals of a search: Σ throughput_price·rise ≤ most, for rises
/// above what members have reached.
struct ValidInequality {
    throughput_price: Vec<f64>,
    most: f64,
}

/// The outcome of an attempt to raise members to given throughputs.
enum Rise {
    /// They have them.
    Reached,
    /// No allocation gives them: the inequality excludes it.
    Excluded(ValidInequality),
}

impl ValidInequality {
    /// Whether the inequality allows a rise from `reached` to `target`, [members] each.
    fn allows(&self, reached: &[f64], target: &[f64]) -> bool {
        let priced = self.throughput_price.iter().zip(reached.iter().zip(target));
        priced.map(|(price, (reached, target))| price * (target - reached)).sum::<f64>() <= self.most
    }
}

impl SinglesOracle<'_> {
    /// Raises members to the highest feasible one of the levels at which some member reaches its limit, or as near to it as
    /// [`ATTEMPTS_MAX`] searches come; an error if these levels have no closed form or prices do not converge. `limits`:
    /// the highest throughput of each member on types that are not scarce, [members].
    ///
    /// The throughputs at any of these levels are known in closed form. If a search proves a level infeasible, its
    /// prices also exclude all levels above some lower one, which is tried next (Newton's step); if that converges
    /// slowly, levels are bisected.
    pub(super) fn skip_saturated(
        &mut self,
        solver: &mut SolverContext,
        state: &mut FillState,
        rates: &impl Rising,
        limits: &[f64],
    ) -> Result<(), GaveUp> {
        let room = |(member, limit): (usize, &f64)| {
            if state.frozen[member] { 0.0 } else { limit - state.reached[member] }
        };
        let rooms: Vec<f64> = limits.iter().enumerate().map(room).collect();
        let tree = rates.level_tree(&rooms).ok_or(GaveUp::Unfit(Unfit::Objective))?;
        let full_at = tree.full_at();
        let mut levels: Vec<f64> = full_at.iter().copied().filter(|level| *level > 0.0).collect();
        levels.sort_unstable_by(f64::total_cmp);
        levels.dedup();
        let start = state.reached.clone();
        let at = |level: f64| {
            let mut target = tree.risen(level);
            for (member, (target, start)) in target.iter_mut().zip(&start).enumerate() {
                let full = full_at[member] > 0.0 && full_at[member] <= level;
                *target = if full { limits[member] } else { start + *target };
            }
            target
        };
        // Of the levels in ascending order: how many are reached, and how many are not excluded.
        let (mut passed, mut possible) = (0, levels.len());
        for attempt in 0..ATTEMPTS_MAX {
            if passed == possible {
                break;
            }
            let to = if attempt < NEWTON_MAX { possible } else { passed + (possible - passed).div_ceil(2) };
            match self.rise_to(solver, state, &at(levels[to - 1]))? {
                Rise::Reached => passed = to,
                Rise::Excluded(cut) => {
                    let allowed = |level: &f64| cut.allows(&state.reached, &at(*level));
                    possible = passed + levels[passed..to - 1].partition_point(allowed);
                }
            }
        }
        for (frozen, full_at) in state.frozen.iter_mut().zip(&full_at) {
            *frozen |= *full_at > 0.0 && passed > 0 && *full_at <= levels[passed - 1];
        }
        Ok(())
    }

    /// Gives members the throughputs `target`, [members], if these are feasible.
    fn rise_to(
        &mut self,
        solver: &mut SolverContext,
        state: &mut FillState,
        target: &[f64],
    ) -> Result<Rise, GaveUp> {
        let rise = target.iter().zip(&state.reached).map(|(target, reached)| {
            let rise = target - reached;
            if rise > LACK_MAX * target { rise } else { 0.0 }
        });
        let rise: Vec<f64> = rise.collect();
        if rise.iter().all(|rise| *rise == 0.0) {
            return Ok(Rise::Reached);
        }
        let found = self.search(solver, state, &rise)?;
        let PrimalDual { time, level, throughput_price, .. } = found.answer.answer;
        if level < 1.0 - LACK_MAX {
            let mut price = vec![0.0; rise.len()];
            for (member, of) in self.residual.members.iter().zip(throughput_price) {
                price[*member] = of;
            }
            return Ok(Rise::Excluded(ValidInequality { throughput_price: price, most: found.bound }));
        }
        state.reached.copy_from_slice(target);
        // A level above 1 would give more than the limits.
        self.move_time_to(&time, level.recip().min(1.0));
        state.cap(&self.throughputs());
        Ok(Rise::Reached)
    }
}
