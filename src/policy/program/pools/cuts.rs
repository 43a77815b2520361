//! Rows that a pool's program needs so that its time can be divided among its members.

use super::needs::Needs;
use crate::program::{Demand, Formulation, Range};

/// Worth of time below this part of the fastest speed, at prices of at most 1, is rounding of nothing.
const WORTH_MIN: f64 = 1e-12;

/// A column of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotColumn {
    /// Throughput of a job of the pool there, steps/s.
    pub(super) speed: f64,
    /// Position among the columns.
    pub(super) column: u32,
    /// Class time of the pool per unit of the column: 1, or 2 for pairs within the pool.
    pub(super) uses: f64,
}

/// Prices of a member's throughput, ω ≥ 0, and of its time, μ ≥ 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MemberPrice {
    /// Position among the pool's members.
    pub(super) place: u32,
    /// Of what a job of it gets.
    pub(super) throughput: f64,
    /// Of the time of a job of it.
    pub(super) time: f64,
}

/// What prices of members say of a pool's time, whatever the level: Σ_c κ_c·y_c + Σ_i n_i·μ_i ≥ Σ_i n_i·ω_i·r_i.
///
/// κ_c is the most that a unit of time at speed v_c is worth to a member, ω_i·v_c − μ_i; of time of pairs within the pool half
/// of what it is worth to two jobs, who have half of it each.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) pool: usize,
    /// The speed above which these are the members that ask for more: ω = 1, μ = the speed, and κ = (v − speed)⁺.
    above: Option<f64>,
    /// Of members, by place; 0 for the others.
    pub(super) prices: Vec<MemberPrice>,
    /// What the row was divided by.
    pub(super) scale: f64,
}

impl Cut {
    /// Of the members that ask for most, and a speed that they ask for more than.
    pub(super) fn above(pool: usize, speed: f64, needs: &Needs, n_members: usize) -> Self {
        let price = |place: &u32| MemberPrice { place: *place, throughput: 1.0, time: speed };
        let mut prices: Vec<MemberPrice> = needs.members()[..n_members].iter().map(price).collect();
        prices.sort_unstable_by_key(|price| price.place);
        Self { pool, above: Some(speed), prices, scale: 1.0 }
    }

    /// Of any prices.
    pub(super) fn of(pool: usize, prices: Vec<MemberPrice>) -> Self {
        Self { pool, above: None, prices, scale: 1.0 }
    }

    /// The same of whoever asks for more than the speed now; of the same prices if there is no speed.
    pub(super) fn again(self, needs: &Needs) -> Self {
        match self.above {
            Some(speed) => Self::above(self.pool, speed, needs, needs.above(speed)),
            None => self,
        }
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        self.pool == other.pool
            && self.above.is_some() == other.above.is_some()
            && self.prices == other.prices
    }

    /// Adds the row behind the others. `jobs` and `demands` are those of the pool's members.
    pub(super) fn push(
        &mut self,
        formulation: &mut Formulation,
        slots: &[SlotColumn],
        jobs: &[f64],
        demands: &[Demand],
    ) {
        let level = formulation.columns.len();
        let unit = formulation.auxiliaries.first().map_or(1.0, |auxiliary| auxiliary.scale);
        let (mut least, mut slope) = (0.0, 0.0);
        for price in &self.prices {
            let (jobs, demand) = (jobs[price.place as usize], demands[price.place as usize]);
            least += jobs * (price.throughput * demand.base - price.time);
            slope += jobs * price.throughput * demand.slope;
        }
        let n_jobs: f64 = self.prices.iter().map(|price| jobs[price.place as usize]).sum();
        let fastest = slots.first().map_or(0.0, |slot| slot.speed);
        let mut terms: Vec<(usize, f64)> = Vec::with_capacity(slots.len() + 1);
        for slot in slots {
            let worth = match self.above {
                // (one job alone has half of the time of pairs within the pool)
                Some(speed) if slot.uses > 1.0 && n_jobs < 2.0 => (slot.speed - speed).max(0.0) / 2.0,
                Some(speed) => (slot.speed - speed).max(0.0),
                None => self.worth(slot, jobs),
            };
            if worth.abs() > WORTH_MIN * fastest {
                terms.push((slot.column as usize, slot.uses * worth));
            }
        }
        terms.sort_unstable_by_key(|(column, _)| *column);
        if slope > 0.0 {
            terms.push((level, -slope * unit));
        }
        let most = terms.iter().fold(0.0_f64, |most, (_, value)| most.max(value.abs()));
        self.scale = if most > 0.0 { most } else { 1.0 };
        let terms = terms.into_iter().map(|(column, value)| (column, value / self.scale));
        formulation.program.push_row(Range::at_least(least / self.scale), terms);
    }

    /// κ of a slot.
    fn worth(&self, slot: &SlotColumn, jobs: &[f64]) -> f64 {
        let mut best = [f64::NEG_INFINITY; 2];
        let mut offer = |worth: f64, twice: bool| {
            if worth > best[0] {
                best = [worth, if twice { worth } else { best[0] }];
            } else {
                best[1] = best[1].max(worth);
            }
        };
        for price in &self.prices {
            offer(price.throughput.mul_add(slot.speed, -price.time), jobs[price.place as usize] > 1.0);
        }
        // (members that have no price would take it for nothing)
        if self.prices.len() < jobs.len() {
            offer(0.0, self.prices.len() + 1 < jobs.len() || jobs.iter().any(|jobs| *jobs > 1.0));
        }
        if slot.uses > 1.0 { best[0].midpoint(best[1]) } else { best[0] }
    }
}
