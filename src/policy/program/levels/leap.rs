//! Levels that are leapt over.

use super::shared::{LACK_MAX, Raised, Standing};
use crate::decomposition::PrimalDual;
use crate::policy::program::hierarchy::Rising;
use crate::policy::program::solving::Solving;

/// Places that a leap tries, and how many of them by Newton's step.
const ATTEMPTS_MAX: u32 = 24;
const NEWTON_MAX: u32 = 8;

/// Where members went that were to be given more.
enum Gone {
    There,
    /// Nowhere: it is more than this.
    Short(Cut),
}

/// What no allocation can exceed: prices of throughputs `[members]`, and what all that is risen is worth at most.
struct Cut {
    throughput_price: Vec<f64>,
    most: f64,
}

impl Cut {
    /// May members be there, from where they are?
    fn allows(&self, reached: &[f64], there: &[f64]) -> bool {
        let priced = self.throughput_price.iter().zip(reached.iter().zip(there));
        priced.map(|(price, (reached, there))| price * (there - reached)).sum::<f64>() <= self.most
    }
}

impl Standing<'_> {
    /// Goes on to the highest of the levels at which a member has all that it can have of types that are not scarce,
    /// `limits`, to which there are workers for all; or as far towards it as is found.
    ///
    /// Where members would be there is known without any allocation. Where there are no workers for that, prices say
    /// below which level it must be (Newton's step), and if that does not get on, the middle is looked at.
    pub(super) fn leap(
        &mut self,
        solving: &mut Solving,
        (rates, limits): (&impl Rising, &[f64]),
    ) -> Option<()> {
        let room = |(member, limit): (usize, &f64)| {
            if self.frozen[member] { 0.0 } else { limit - self.reached[member] }
        };
        let ascent = rates.ascent(&limits.iter().enumerate().map(room).collect::<Vec<f64>>())?;
        let full_at = ascent.full_at();
        let mut levels: Vec<f64> = full_at.iter().copied().filter(|level| *level > 0.0).collect();
        levels.sort_unstable_by(f64::total_cmp);
        levels.dedup();
        let start = self.reached.clone();
        let at = |level: f64| {
            let mut there = ascent.risen(level);
            for (member, (there, start)) in there.iter_mut().zip(&start).enumerate() {
                let full = full_at[member] > 0.0 && full_at[member] <= level;
                *there = if full { limits[member] } else { start + *there };
            }
            there
        };
        // so many levels are passed, and so many are not excluded
        let (mut passed, mut left) = (0, levels.len());
        for attempt in 0..ATTEMPTS_MAX {
            if passed == left {
                break;
            }
            let to = if attempt < NEWTON_MAX { left } else { passed + (left - passed).div_ceil(2) };
            match self.go_to(solving, &at(levels[to - 1]))? {
                Gone::There => passed = to,
                Gone::Short(cut) => {
                    let allowed = |level: &f64| cut.allows(&self.reached, &at(*level));
                    left = passed + levels[passed..to - 1].partition_point(allowed);
                }
            }
        }
        for (frozen, full_at) in self.frozen.iter_mut().zip(&full_at) {
            *frozen |= *full_at > 0.0 && passed > 0 && *full_at <= levels[passed - 1];
        }
        Some(())
    }

    /// Gives members what they are to have, if there are workers for that; else a bound that it exceeds.
    fn go_to(&mut self, solving: &mut Solving, there: &[f64]) -> Option<Gone> {
        let rise = there.iter().zip(&self.reached).map(|(there, reached)| {
            let rise = there - reached;
            if rise > LACK_MAX * there { rise } else { 0.0 }
        });
        let rise: Vec<f64> = rise.collect();
        if rise.iter().all(|rise| *rise == 0.0) {
            return Some(Gone::There);
        }
        let Raised { climbed, bound } = self.raised(solving, &rise)?;
        let PrimalDual { time, level, throughput_price, .. } = climbed.shares;
        if level < 1.0 - LACK_MAX {
            let mut price = vec![0.0; rise.len()];
            for (member, of) in self.rest.members.iter().zip(throughput_price) {
                price[*member] = of;
            }
            return Some(Gone::Short(Cut { throughput_price: price, most: bound }));
        }
        self.reached.copy_from_slice(there);
        // more than that would be more than those have who cannot have more
        self.take(&time, level.recip().min(1.0));
        Some(Gone::There)
    }
}
