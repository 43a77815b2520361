//! Bounds on the level, or a linear objective, of every allocation of time to members: weak duality, where the dual
//! values of the kind program give every member its prices.
//!
//! Let λ_r be the dual value of row r, in which member i has the prices ω_ri and μ_ri of throughput and time. The member
//! then has the price of throughput Ω_i = Σ λ_r·ω_ri over the rows of the level and the cuts, and the price of time M_i =
//! the price of the kind's time + Σ λ_r·μ_ri over the cuts. Every allocation satisfies, by the time, level and capacity
//! rows of the program over members,
//!
//!   t·Σ_i n_i·Ω_i·d_i ≤ Σ_i n_i·(M_i − Ω_i·b_i) + Σ_j w_j·κ_j,
//!
//! for demands d_i·t + b_i and prices κ_j of workers at which no member and no pair has a positive reduced cost. The
//! program only suggests prices; the inequality holds for any.

use super::{BoundUse, KindProgram, KindSolution, ProvenLevel};
use crate::policy::program::optimum::MemberPrices;
use crate::policy::program::pair_pricing::DualPrices;
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::strategy::{GaveUp, Unfit};
use crate::program::Demand;

/// The relative difference of two members' saturation levels that is rounding.
const SATURATION_WIDTH: f64 = 1e-12;

/// The level at which some members have all of their time at their fastest.
#[derive(Clone, Debug)]
pub(super) struct Saturation {
    pub(super) level: f64,
    members: Vec<usize>,
}

/// The two sides of the inequality, at prices.
struct Sides {
    /// Σ_i n_i·M_i + Σ_j w_j·κ_j.
    supply: f64,
    /// Σ_i n_i·Ω_i·d_i.
    slope: f64,
    /// Σ_i n_i·Ω_i·b_i.
    base: f64,
    /// n_i·Ω_i of throughput, M_i of time and κ_j of workers.
    prices: MemberPrices,
}

/// An upper bound on a linear objective, and the prices that prove it.
pub(super) struct ProvenSum {
    pub(super) bound: f64,
    pub(super) prices: MemberPrices,
}

impl KindProgram {
    /// The level of a solved program, lowered by as much as its time could not be divided, and an upper bound on the
    /// level of every allocation; an error if prices give no finite bound.
    pub(super) fn proven(
        &self,
        columns: &ProgramColumns<'_>,
        solved: &KindSolution,
    ) -> Result<ProvenLevel, GaveUp> {
        let lack = (1.0 - solved.fraction).max(0.0);
        let width = |saturation: &Saturation| SATURATION_WIDTH * saturation.level;
        if let Some(saturation) = self.saturation().filter(|found| solved.level >= found.level - width(found))
        {
            let (prices, size) = self.prices_of(&saturation, &columns.reduced().instance.multiplicity);
            return Ok(ProvenLevel {
                level: solved.level - lack * size,
                bound: saturation.level,
                size,
                prices,
            });
        }
        let Sides { supply, slope, base, prices } = self.sides(columns, solved, |_, _| 0.0)?;
        let (size, bound) = (supply / slope, (supply - base) / slope);
        let level = solved.level - lack * size;
        if slope <= 0.0 || !bound.is_finite() {
            return Err(GaveUp::Unproven);
        }
        Ok(ProvenLevel { level, bound, size, prices: prices.over(slope) })
    }

    /// The prices that prove a saturation level, of which its members have equal shares, and the value of their time at
    /// these, in levels. `jobs`: [members].
    fn prices_of(&self, saturation: &Saturation, jobs: &[f64]) -> (MemberPrices, f64) {
        let mut prices = MemberPrices {
            workers: vec![0.0; self.instance.n_types()],
            time: vec![0.0; self.demands.len()],
            throughput: vec![0.0; self.demands.len()],
        };
        let mut size = 0.0_f64;
        for member in &saturation.members {
            let Demand { slope, base } = self.demands[*member];
            let price = (saturation.members.len() as f64).recip() / slope;
            prices.throughput[*member] = price;
            // All of its time at its fastest gives a job slope·level + base.
            prices.time[*member] = price * (slope * saturation.level + base) / jobs[*member];
            size = size.max(saturation.level + base / slope);
        }
        (prices, size)
    }

    /// An upper bound on the linear objective in which a unit of throughput is worth `worth` `(kind, worker type)`, of
    /// allocations that give members what is demanded at the level; an error if the prices give no bound.
    pub(super) fn linear_bound(
        &self,
        columns: &ProgramColumns<'_>,
        solved: &KindSolution,
        worth: impl Fn(usize, usize) -> f64,
    ) -> Result<ProvenSum, GaveUp> {
        let Sides { supply, slope, base, prices } = self.sides(columns, solved, worth)?;
        let bound = supply - slope * solved.level - base;
        if bound.is_finite() { Ok(ProvenSum { bound, prices }) } else { Err(GaveUp::Unproven) }
    }

    /// The level at which the first members have all of their time at their fastest; none if levels are bounded by prices
    /// alone, or no member demands more with the level.
    pub(super) fn saturation(&self) -> Option<Saturation> {
        if self.bound_use == BoundUse::Inequality {
            return None;
        }
        let mut first = Saturation { level: f64::INFINITY, members: Vec::new() };
        for (members, columns) in self.members.iter().zip(&self.kind_columns) {
            let fastest = columns.first().map_or(0.0, |column| column.speed);
            for member in members.iter().map(|member| *member as usize) {
                let Demand { slope, base } = self.demands[member];
                if slope <= 0.0 {
                    continue;
                }
                let level = ((fastest - base) / slope).max(0.0);
                let near = SATURATION_WIDTH * fastest / slope;
                if level < first.level - near {
                    first = Saturation { level, members: vec![member] };
                } else if level <= first.level + near {
                    first.members.push(member);
                    first.level = first.level.min(level);
                }
            }
        }
        (!first.members.is_empty()).then_some(first)
    }

    /// The sides of the inequality at a program's dual values, where a linear objective adds `worth` to the price of
    /// throughput; an error if the program has other rows than the level's and the cuts', as that of a refined sum has.
    fn sides(
        &self,
        columns: &ProgramColumns<'_>,
        solved: &KindSolution,
        worth: impl Fn(usize, usize) -> f64,
    ) -> Result<Sides, GaveUp> {
        let pairing = columns.pairing().ok_or(Unfit::NoPairs)?;
        let instance = &columns.reduced().instance;
        let (n, k, n_kinds) = (instance.n_members(), instance.n_types(), self.members.len());
        let first_cut = 2 * n_kinds + k;
        if solved.duals.len() != first_cut + solved.cuts.len() {
            return Err(GaveUp::Unproven);
        }
        let scaled = |row: usize| solved.duals[row] / solved.formulation.row_scales[row];
        let (mut price, mut time) = (vec![0.0; n], vec![0.0; n]);
        for (kind, members) in self.members.iter().enumerate() {
            let level = (-scaled(n_kinds + k + kind)).max(0.0) / self.instance.multiplicity[kind];
            for member in members.iter().map(|member| *member as usize) {
                (price[member], time[member]) = (level, scaled(kind).max(0.0));
            }
        }
        for (cut, dual) in solved.cuts.iter().zip(&solved.duals[first_cut..]) {
            let dual = (-dual / cut.scale).max(0.0);
            for of in &cut.prices {
                price[of.member as usize] += dual * of.throughput;
                time[of.member as usize] += dual * of.time;
            }
        }
        let mut throughput = vec![0.0; n * k];
        for (kind, members) in self.members.iter().enumerate() {
            for (j, worth) in (0..k).map(|j| (j, worth(kind, j))) {
                for member in members.iter().map(|member| *member as usize) {
                    throughput[member * k + j] = price[member] + worth;
                }
            }
        }
        let capacity = (n_kinds..n_kinds + k).map(|row| scaled(row).max(0.0)).collect();
        let mut prices = DualPrices { throughput, time, capacity };
        prices.raise_capacity(instance, pairing);
        let DualPrices { time, capacity, .. } = prices;
        let (mut supply, mut of_slope, mut of_base) = (0.0, 0.0, 0.0);
        for (member, jobs) in instance.multiplicity.iter().enumerate() {
            let (price, Demand { slope, base }) = (&mut price[member], self.demands[member]);
            *price *= jobs;
            of_slope += *price * slope;
            of_base += *price * base;
            supply += jobs * time[member];
        }
        supply +=
            instance.capacity.iter().zip(&capacity).map(|(workers, price)| workers * price).sum::<f64>();
        let prices = MemberPrices { workers: capacity, time, throughput: price };
        Ok(Sides { supply, slope: of_slope, base: of_base, prices })
    }
}
