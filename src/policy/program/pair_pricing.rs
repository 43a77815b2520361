//! Pair pricing: reduced costs of all pairs of members, for column generation and for bounds that hold for all pairs.
//!
//! A linear program with every pair has n² columns, and optima that use 2n + K of them. Column generation solves it over few
//! pairs, prices the others at its dual values, adds each member's pair with the largest positive reduced cost, and so on
//! until there is none.
//!
//! **Reduced costs.** Every coefficient of a column of (member m, worker type j) is a sum of a part
//! proportional to its throughput there and a part that is its time or its workers, which only the time row and the
//! capacity row have (programs that read `time_on` are not priced). With μ and κ the dual values of those rows,
//! the reduced cost of m's own column, d = A·T − μ_m − s·κ_j, thus gives A, and that of a pair is
//!
//!   d(a, b, j) = (A_aj·T_ab,j − μ_a) + (A_bj·T_ba,j − μ_b) − s·κ_j.
//!
//! Throughputs depend on kinds alone, so the best partner of every member among a kind is that kind's member with
//! the largest bracket: O(n·kinds·K) numbers price all n²·K columns.
//!
//! **The bound.** Duals of the restricted program bound the full one too, once κ_j is raised by the largest d/s of
//! the pairs on j, which costs w_j times that (Lagrangian duality; Desrosiers and Lübbecke, *A primer in column
//! generation*, 2005). Every number is recomputed from the program, so the bound holds whatever the solver reports.

mod fixing;

use std::collections::BTreeSet;

use self::fixing::{UnfixedPair, UnfixedPairs};
use crate::policy::program::pairs::{Pairing, Partner};
use crate::policy::program::solver_context::Answer;
use crate::program::{Formulation, Instance, Range, RowRole, Sense};

/// A pair enters only if its reduced cost times the workers of the type is more than this fraction of the optimum: less
/// is within a solver's tolerances.
const GAIN_MIN: f64 = 1e-10;

/// Dual prices of members' throughput and time and of workers, by which columns are priced.
#[derive(Clone, Debug)]
pub(super) struct DualPrices {
    /// A, the price of the throughput of a job: [members × K].
    pub(super) throughput: Vec<f64>,
    /// μ, the price of the time of a job: [members].
    pub(super) time: Vec<f64>,
    /// κ, the price of a worker: `[K]`.
    pub(super) capacity: Vec<f64>,
}

/// The two largest brackets A·T − μ among the members of a kind.
#[derive(Clone, Copy, Debug)]
struct Best {
    /// The largest bracket.
    bracket: f64,
    /// Its member.
    member: usize,
    /// The second largest bracket.
    second: f64,
}

/// The largest bracket among the members that can be a member's partner.
#[derive(Clone, Copy, Debug)]
struct BestPartner {
    bracket: f64,
    /// Its member; none if it is not known.
    member: Option<usize>,
}

impl Best {
    /// The largest bracket among the members of the kind that can be a member's partner, and that partner. A member
    /// of one job is not its own partner: if it has the largest bracket, the second counts, of which the member is
    /// not known.
    fn partner(&self, member: usize, pairing: &Pairing) -> BestPartner {
        let itself = self.member == member && pairing.n_jobs(member) == 1;
        if itself {
            BestPartner { bracket: self.second, member: None }
        } else {
            BestPartner { bracket: self.bracket, member: Some(self.member) }
        }
    }
}

impl DualPrices {
    /// The bracket A·T − μ of a member on a worker type, where it has this speed.
    fn bracket(&self, member: usize, worker_type: usize, speed: f64) -> f64 {
        self.throughput[member * self.capacity.len() + worker_type] * speed - self.time[member]
    }

    /// The two largest brackets of members, at least one, on a worker type where all of them have this speed.
    fn best(&self, members: &[u32], worker_type: usize, speed: f64) -> Best {
        let nothing = f64::NEG_INFINITY;
        let mut best = Best { bracket: nothing, member: members[0] as usize, second: nothing };
        for member in members.iter().map(|member| *member as usize) {
            let bracket = self.bracket(member, worker_type, speed);
            if bracket > best.bracket {
                best = Best { bracket, member, second: best.bracket };
            } else if bracket > best.second {
                best.second = bracket;
            }
        }
        best
    }

    /// Raises the prices of workers until no member alone and no pair has a positive reduced cost.
    pub(super) fn raise_capacity(&mut self, instance: &Instance, pairing: &Pairing) {
        let kinds = &pairing.kinds;
        for g in 0..kinds.len() {
            let members = kinds.members(g);
            let first = members[0] as usize;
            let scale_factor = pairing.scale_factor(first);
            let runs = |(j, speed): &(usize, &f64)| **speed > 0.0 && instance.has_room(scale_factor, *j);
            for (j, speed) in instance.alone(first).iter().enumerate().filter(runs) {
                let most = self.best(members, j, *speed).bracket;
                self.capacity[j] = self.capacity[j].max(most / scale_factor);
            }
            for Partner { other: h, speeds, other_speeds } in pairing.partners(g).filter(|of| of.other >= g) {
                for (j, speed) in speeds.iter().enumerate().filter(runs) {
                    let best = self.best(members, j, *speed);
                    let other = if h == g {
                        best.partner(best.member, pairing).bracket
                    } else {
                        self.best(kinds.members(h), j, other_speeds[j]).bracket
                    };
                    self.capacity[j] = self.capacity[j].max((best.bracket + other) / scale_factor);
                }
            }
        }
    }
}

/// All pairs, and which of them are columns.
#[derive(Clone, Debug)]
pub(super) struct Pricing {
    pairing: Pairing,
    admitted: BTreeSet<(usize, usize)>,
    /// The pairs that are priced, if they are listed: all, or those that are not fixed at zero.
    unfixed: Option<UnfixedPairs>,
}

/// The outcome of pricing.
#[derive(Clone, Debug, Default)]
pub(super) struct Priced {
    /// Each member's best pair with a positive reduced cost that is no column yet: none at an optimum over all pairs.
    pub(super) entering: Vec<(usize, usize)>,
    /// An upper bound on the gain in the objective of the program solved if all pairs were columns: ≥ 0.
    pub(super) slack: f64,
}

/// The largest reduced costs of pairs.
struct Gains {
    /// The reduced cost that a pair must exceed on each type to enter: `[K]`.
    least: Vec<f64>,
    /// The largest reduced cost per worker of each type: `[K]`.
    most: Vec<f64>,
    /// Each member's largest reduced cost over all types, and its partner there: [members]. One entering pair for each member
    /// and type, in place of one for each member, was measured to take 1.7 times as many columns and 1.5 times as many
    /// simplex steps.
    chosen: Vec<Option<(f64, usize)>>,
}

impl Gains {
    /// Takes the reduced cost of a member's pair into account.
    fn record(&mut self, member: usize, partner: usize, gain: f64, scale_factor: f64, worker_type: usize) {
        let most = &mut self.most[worker_type];
        *most = most.max(gain / scale_factor);
        let known = &mut self.chosen[member];
        if gain > self.least[worker_type] && known.is_none_or(|(known, _)| gain > known) {
            *known = Some((gain, partner));
        }
    }
}

impl Pricing {
    /// The pricing of these pairs, none of which is a column yet.
    pub(super) fn new(pairing: Pairing) -> Self {
        Self { pairing, admitted: BTreeSet::new(), unfixed: None }
    }

    /// The pairs that may become columns, with their throughputs.
    pub(super) fn pairing(&self) -> &Pairing {
        &self.pairing
    }

    /// Marks pairs as columns; returns the pairs that were none before.
    pub(super) fn admit(&mut self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
        pairs.into_iter().filter(|pair| self.admitted.insert(*pair)).collect()
    }

    /// The fastest pair of every member on every worker type where it is faster than the member alone: with these pairs
    /// as columns, bounds on what members can reach hold over all pairs.
    pub(super) fn faster_together(&self, instance: &Instance) -> Vec<(usize, usize)> {
        let kinds = &self.pairing.kinds;
        let mut pairs = Vec::new();
        for member in 0..instance.n_members() {
            let alone = instance.alone(member);
            for j in 0..alone.len() {
                let others = self.pairing.others(kinds.class_of(member));
                let best = others
                    .map(|(other, speeds)| (speeds[j], other))
                    .filter(|(speed, _)| *speed > alone[j])
                    .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
                let Some((_, other)) = best else { continue };
                let partner =
                    |partner: &&u32| **partner as usize != member || self.pairing.n_jobs(member) > 1;
                let partner = kinds.members(other).iter().find(partner).map(|partner| *partner as usize);
                pairs.extend(partner.map(|partner| (member.min(partner), member.max(partner))));
            }
        }
        pairs
    }

    /// Prices every pair that is not fixed at the dual values of an answer.
    pub(super) fn price(&self, instance: &Instance, formulation: &Formulation, answer: &Answer) -> Priced {
        let prices = self.prices(instance, formulation, &answer.solution.row_duals);
        let least = GAIN_MIN * formulation.program.objective(&answer.solution.columns).abs();
        let mut gains = Gains {
            least: instance.capacity.iter().map(|workers| least / workers).collect(),
            most: vec![0.0; instance.n_types()],
            chosen: vec![None; instance.n_members()],
        };
        if let Some(unfixed) = &self.unfixed {
            for pair in unfixed.iter() {
                let [a, b] = pair.members;
                let scale_factor = self.pairing.scale_factor(a);
                let costs = self.reduced_costs(&prices, pair);
                for (j, gain) in costs.filter(|(j, gain)| *gain > 0.0 && pair.is_unfixed_on(*j)) {
                    gains.record(a, b, gain, scale_factor, j);
                    gains.record(b, a, gain, scale_factor, j);
                }
            }
        } else {
            self.price_by_kind(instance, &prices, &mut gains);
        }
        let chosen = gains.chosen.iter().enumerate();
        let pairs = chosen.filter_map(|(member, best)| best.map(|(_, partner)| (member, partner)));
        let pairs = pairs.map(|(member, partner)| (member.min(partner), member.max(partner)));
        let entering: BTreeSet<_> = pairs.filter(|pair| !self.admitted.contains(pair)).collect();
        let slack = gains.most.iter().zip(&instance.capacity).map(|(most, workers)| most * workers).sum();
        Priced { entering: entering.into_iter().collect(), slack }
    }

    /// Prices all pairs, kind by kind.
    fn price_by_kind(&self, instance: &Instance, prices: &DualPrices, gains: &mut Gains) {
        let (kinds, k) = (&self.pairing.kinds, instance.n_types());
        for g in 0..kinds.len() {
            let scale_factor = self.pairing.scale_factor(kinds.members(g)[0] as usize);
            for Partner { other: h, speeds, other_speeds } in self.pairing.partners(g) {
                for j in (0..k).filter(|j| speeds[*j] > 0.0 && instance.has_room(scale_factor, *j)) {
                    let best = prices.best(kinds.members(h), j, other_speeds[j]);
                    for member in kinds.members(g).iter().map(|member| *member as usize) {
                        let BestPartner { bracket, member: partner } = best.partner(member, &self.pairing);
                        let pays = prices.bracket(member, j, speeds[j]) + bracket;
                        let gain = pays - scale_factor * prices.capacity[j];
                        if let Some(partner) = partner {
                            gains.record(member, partner, gain, scale_factor, j);
                        } else {
                            // The partner, the member with the second bracket, has this member as its own best partner,
                            // and records the pair.
                            gains.most[j] = gains.most[j].max(gain / scale_factor);
                        }
                    }
                }
            }
        }
    }

    /// The reduced cost of a pair on each worker type.
    fn reduced_costs<'p>(
        &self,
        prices: &'p DualPrices,
        pair: UnfixedPair<'p>,
    ) -> impl Iterator<Item = (usize, f64)> + use<'p> {
        let ([a, b], [speeds_a, speeds_b], k) = (pair.members, pair.speeds, prices.capacity.len());
        let spent = prices.time[a] + prices.time[b];
        let scale_factor = self.pairing.scale_factor(a);
        let worth = prices.throughput[a * k..][..k].iter().zip(speeds_a);
        let worth = worth.zip(prices.throughput[b * k..][..k].iter().zip(speeds_b)).zip(&prices.capacity);
        worth.map(move |((a, b), price)| a.0 * a.1 + b.0 * b.1 - spent - scale_factor * price).enumerate()
    }

    /// Reduced-cost fixing: fixes pairs at zero on worker types where all the time that they can have would cost more than
    /// `least` of the objective.
    pub(super) fn fix(&mut self, instance: &Instance, formulation: &Formulation, duals: &[f64], least: f64) {
        self.list(instance);
        let Some(mut unfixed) = self.unfixed.take() else { return };
        let prices = self.prices(instance, formulation, duals);
        let kept = unfixed.iter().map(|pair| {
            let [a, b] = pair.members;
            let n_pairs = self.pairing.n_jobs(a).min(self.pairing.n_jobs(b)) as f64;
            let n_pairs = if a == b { n_pairs / 2.0 } else { n_pairs };
            let time = |j: usize| n_pairs.min(instance.capacity[j] / self.pairing.scale_factor(a));
            let kept = self.reduced_costs(&prices, pair).filter(|(j, gain)| -gain * time(*j) <= least);
            kept.fold(0, |types, (j, _)| types | 1 << j)
        });
        let kept: Vec<u32> = kept.collect();
        unfixed.keep(&kept);
        self.unfixed = Some(unfixed);
    }

    /// Whether a pair is fixed at zero on a worker type.
    pub(super) fn is_fixed(&self, (a, b): (usize, usize), worker_type: usize) -> bool {
        self.unfixed.as_ref().is_some_and(|unfixed| !unfixed.has((a, b), worker_type))
    }

    /// Frees every pair. Where every member is a kind of its own, pairs are listed: pricing a list takes a tenth of the time
    /// that looking for each member's best partner among kinds takes.
    pub(super) fn unfix_all(&mut self, instance: &Instance) {
        self.unfixed = None;
        if self.pairing.kinds.len() == instance.n_members() {
            self.list(instance);
        }
    }

    /// Lists all pairs, if they are not listed.
    fn list(&mut self, instance: &Instance) {
        if self.unfixed.is_none() {
            self.unfixed = UnfixedPairs::all(&self.pairing, instance);
        }
    }

    /// Prices by the dual values of a program over members: per unit of class time, of throughput and per worker, in
    /// units of the program's objective, with the signs of a maximization.
    fn prices(&self, instance: &Instance, formulation: &Formulation, duals: &[f64]) -> DualPrices {
        let (n, k) = (instance.n_members(), instance.n_types());
        let program = &formulation.program;
        let sign = if program.sense == Sense::Maximize { 1.0 } else { -1.0 };
        let mut prices =
            DualPrices { throughput: vec![0.0; n * k], time: vec![0.0; n], capacity: vec![0.0; k] };
        let mut reduced: Vec<f64> = program.cost[..formulation.columns.len()].to_vec();
        for (row, role) in formulation.rows.iter().enumerate() {
            // A dual value with the sign of an infinite bound proves nothing: it counts as 0, as in the certificate.
            let Range { lower, upper } = program.rows[row];
            let finite = if sign * duals[row] > 0.0 { upper.is_finite() } else { lower.is_finite() };
            let dual = if finite { duals[row] } else { 0.0 };
            for (column, value) in program.row(row) {
                if let Some(reduced) = reduced.get_mut(column) {
                    *reduced -= dual * value;
                }
            }
            let price = sign * dual / formulation.row_scales[row];
            match role {
                RowRole::Time { member } => prices.time[*member] = price,
                RowRole::Capacity { worker_type } => prices.capacity[*worker_type] = price,
                _ => {}
            }
        }
        for (column, reduced) in formulation.columns.iter().zip(reduced) {
            if column.combination < n {
                let (member, j) = (column.combination, column.worker_type);
                let speed = instance.alone(member)[j];
                let spent = prices.time[member] + self.pairing.scale_factor(member) * prices.capacity[j];
                prices.throughput[member * k + j] = (sign * reduced + spent) / speed;
            }
        }
        prices
    }
}

#[cfg(test)]
mod tests;
