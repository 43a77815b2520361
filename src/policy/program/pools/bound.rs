//! What no allocation can exceed: prices of pools, as prices of members.
//!
//! A row of a pool's program is worth λ per unit. With ω_i = Σ λ over the rows that a member is in (that of the level, and
//! those above a speed θ that it asks for more than) and μ_i = the pool's price of time + Σ λ·θ over the latter,
//! every allocation has, in the programs of members (see [`singles`](crate::program::singles)),
//!
//!   t·Σ_i n_i·ω_i·d_i ≤ Σ_i n_i·(μ_i − ω_i·b_i) + Σ_j w_j·κ_j,
//!
//! once κ_j is no less than what any member, or any two beside each other, would pay for a worker of type j: for a pair
//! Σ (ω·T − μ) over both, by its workers. Nothing is taken from the program but prices; whatever they are, this holds.

use super::{Pools, Stage};
use crate::policy::program::master::Master;
use crate::policy::program::pairs::Pairing;
use crate::program::{Demand, Instance};

/// Prices, per unit of the level.
#[derive(Clone, Debug)]
pub(super) struct Priced {
    /// No level is higher.
    pub(super) bound: f64,
    /// What all that members have is worth in levels: the measure of what is near the bound.
    pub(super) size: f64,
    /// How much the level falls per unit of throughput asked for: ≥ 0, [members].
    pub(super) demand_price: Vec<f64>,
}

/// The two who would pay most, and the first of them.
#[derive(Clone, Copy, Debug)]
struct Best {
    first: f64,
    second: f64,
}

struct Prices {
    /// ω: of a unit of throughput of a job, [members].
    throughput: Vec<f64>,
    /// μ: of a job's time, [members].
    time: Vec<f64>,
    /// κ, `[K]`.
    capacity: Vec<f64>,
}

/// The bound that an answer's duals prove on the level of demands; nothing if they prove none.
pub(super) fn priced(pools: &Pools, stage: &Stage, master: &Master<'_>, duals: &[f64]) -> Option<Priced> {
    let (instance, pairing) = (&master.reduced().instance, master.pairing()?);
    let mut prices = prices(pools, stage, instance, duals)?;
    raise_capacity(pools, instance, pairing, &mut prices, &|_, _| 0.0);
    let jobs = &instance.multiplicity;
    let of_members = || (0..jobs.len()).zip(&pools.demands);
    let level: f64 = of_members().map(|(i, demand)| jobs[i] * prices.throughput[i] * demand.slope).sum();
    let begun: f64 = of_members().map(|(i, demand)| jobs[i] * prices.throughput[i] * demand.base).sum();
    let time: f64 = jobs.iter().zip(&prices.time).map(|(jobs, price)| jobs * price).sum();
    let workers = instance.capacity.iter().zip(&prices.capacity);
    let size = (time + workers.map(|(workers, price)| workers * price).sum::<f64>()) / level;
    let bound = size - begun / level;
    let demand_price = (0..jobs.len()).map(|i| jobs[i] * prices.throughput[i] / level).collect();
    (level > 0.0 && bound.is_finite()).then_some(Priced { bound, size, demand_price })
}

/// What no sum exceeds in which a unit of throughput of a pool's members is worth so much `(pool, worker type)`, by the duals
/// of its program; nothing if they prove nothing.
pub(super) fn summed(
    pools: &Pools,
    stage: &Stage,
    master: &Master<'_>,
    duals: &[f64],
    worth: &dyn Fn(usize, usize) -> f64,
) -> Option<f64> {
    let (instance, pairing) = (&master.reduced().instance, master.pairing()?);
    let mut prices = prices(pools, stage, instance, duals)?;
    raise_capacity(pools, instance, pairing, &mut prices, worth);
    let workers = instance.capacity.iter().zip(&prices.capacity).map(|(workers, price)| workers * price);
    let of_member = |(i, demand): (usize, &Demand)| {
        let asked = demand.slope * stage.level + demand.base;
        instance.multiplicity[i] * (prices.time[i] - prices.throughput[i] * asked)
    };
    let bound = workers.sum::<f64>() + pools.demands.iter().enumerate().map(of_member).sum::<f64>();
    bound.is_finite().then_some(bound)
}

fn prices(pools: &Pools, stage: &Stage, instance: &Instance, duals: &[f64]) -> Option<Prices> {
    let (n, k, n_pools) = (instance.n_members(), instance.n_types(), pools.members.len());
    let first_cut = 2 * n_pools + k;
    if duals.len() != first_cut + stage.cuts.len() {
        return None;
    }
    let scaled = |row: usize| duals[row] / stage.formulation.row_scales[row];
    let mut prices = Prices {
        throughput: vec![0.0; n],
        time: vec![0.0; n],
        capacity: (n_pools..n_pools + k).map(|row| scaled(row).max(0.0)).collect(),
    };
    for (pool, members) in pools.members.iter().enumerate() {
        let level = (-scaled(n_pools + k + pool)).max(0.0) / pools.instance.multiplicity[pool];
        for member in members {
            prices.throughput[*member as usize] = level;
            prices.time[*member as usize] = scaled(pool).max(0.0);
        }
    }
    for (cut, dual) in stage.cuts.iter().zip(&duals[first_cut..]) {
        let price = (-dual / cut.scale).max(0.0);
        for of in &cut.prices {
            let member = pools.members[cut.pool][of.place as usize] as usize;
            prices.throughput[member] += price * of.throughput;
            prices.time[member] += price * of.time;
        }
    }
    Some(prices)
}

/// Makes workers as dear as the members that would pay most for them say, who gain `worth` by a unit of throughput, too:
/// `(pool, worker type)`.
fn raise_capacity(
    pools: &Pools,
    instance: &Instance,
    pairing: &Pairing,
    prices: &mut Prices,
    worth: &dyn Fn(usize, usize) -> f64,
) {
    let best = |pool: usize, speed: f64, j: usize| {
        let mut best = Best { first: f64::NEG_INFINITY, second: f64::NEG_INFINITY };
        let worth = worth(pool, j);
        for member in pools.members[pool].iter().map(|member| *member as usize) {
            let paid = (prices.throughput[member] + worth).mul_add(speed, -prices.time[member]);
            if paid > best.first {
                // (a member of two jobs or more may run beside its own)
                let second = if instance.multiplicity[member] > 1.0 { paid } else { best.first };
                best = Best { first: paid, second };
            } else {
                best.second = best.second.max(paid);
            }
        }
        best
    };
    let mut capacity = prices.capacity.clone();
    let mut offer = |paid: f64, scale_factor: f64, j: usize| {
        capacity[j] = capacity[j].max(paid / scale_factor);
    };
    for pool in 0..pools.members.len() {
        let scale_factor = pools.instance.scale_factor[pool];
        for (j, speed) in pools.instance.alone(pool).iter().enumerate() {
            if *speed > 0.0 && instance.has_room(scale_factor, j) {
                offer(best(pool, *speed, j).first, scale_factor, j);
            }
        }
    }
    for (a, b) in pools.all_pairs(pairing) {
        let (of_a, of_b) = (pools.kinds[a], pools.kinds[b]);
        let (Some(mine), Some(theirs)) = (pairing.beside(of_a, of_b), pairing.beside(of_b, of_a)) else {
            continue;
        };
        let scale_factor = pools.instance.scale_factor[a];
        for j in (0..mine.len()).filter(|j| mine[*j] > 0.0 && instance.has_room(scale_factor, *j)) {
            let ours = best(a, mine[j], j);
            let other = if a == b { ours.second } else { best(b, theirs[j], j).first };
            let paid = ours.first + other;
            offer(paid, scale_factor, j);
        }
    }
    prices.capacity = capacity;
}
