//! Levels raised one after another by the pools of members of a kind, where members may share workers.

use super::{FilledShared, PRICE_MIN};
use crate::policy::program::master::Master;
use crate::policy::program::pools::{Pools, Told};
use crate::policy::program::solving::Solving;
use crate::policy::program::strategy::GaveUp;
use crate::program::Demand;

/// Parts of what was reached that are given back, in turn, where rounding keeps it from being held.
const HELD: [f64; 4] = [0.0, 1e-11, 1e-10, 1e-9];

/// Raises all members from nothing, as [`fill`](super::fill) does; nothing where programs over members must be written.
pub(in crate::policy::program) fn fill_pooled(
    solving: &mut Solving,
    master: &mut Master<'_>,
    mut slopes: impl FnMut(&[bool]) -> Vec<f64>,
) -> Result<FilledShared, GaveUp> {
    let mut pools = Pools::of(master, solving, Told::Level).map_err(GaveUp::Unfit)?;
    let n = master.reduced().instance.n_members();
    let mut frozen = vec![false; n];
    let mut reached = vec![0.0; n];
    let mut first = None;
    while !frozen.iter().all(|frozen| *frozen) {
        let mut slope = slopes(&frozen);
        for (slope, frozen) in slope.iter_mut().zip(&frozen) {
            *slope = if *frozen { 0.0 } else { *slope };
        }
        if first.is_some() && slope.iter().all(|slope| *slope == 0.0) {
            break;
        }
        let raised = HELD.iter().find_map(|eased| {
            let demand = |(slope, base): (&f64, &f64)| Demand { slope: *slope, base: base * (1.0 - eased) };
            let demands: Vec<Demand> = slope.iter().zip(&reached).map(demand).collect();
            pools.raise(solving, master, &demands)
        });
        let raised = raised.ok_or(GaveUp::Unproven)?;
        let rise = raised.level.max(0.0);
        // Prices times slopes are shares of the level's price, which sum to 1.
        let share = |member: usize| raised.demand_price[member] * slope[member];
        let binding: Vec<usize> = (0..n).filter(|member| share(*member) > PRICE_MIN).collect();
        let most = || (0..n).max_by(|a, b| share(*a).total_cmp(&share(*b)));
        let binding = if binding.is_empty() { most().into_iter().collect() } else { binding };
        for member in binding {
            frozen[member] = true;
        }
        for (reached, slope) in reached.iter_mut().zip(&slope) {
            *reached += slope * rise;
        }
        first.get_or_insert((raised.bound, slope));
    }
    let (bound, first_slope) = first.ok_or(GaveUp::Unproven)?;
    let class_time = pools.divided(master).ok_or(GaveUp::Undivided)?;
    let throughputs = super::throughputs(&master.bound(), &class_time);
    Ok(FilledShared { class_time, throughputs, bound, first_slope })
}
