//! Column generation: which pairs of members would better an optimum over some of the pairs.
//!
//! A linear program with every pair has n² columns and optima that use 2n + K of them. So it is solved over few
//! pairs, its dual values price the others, those that would pay enter, and so on until none would.
//!
//! **What a pair would pay.** Every coefficient of a column of (member m, worker type j) is a sum of a part
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
//! generation*, 2005). Every number is recomputed from the program, so the bound holds whatever the solver says.

mod open;

use std::collections::BTreeSet;

use self::open::{Open, Pair};
use crate::policy::program::pairs::Pairing;
use crate::policy::program::solving::Answer;
use crate::program::{Formulation, Instance, Range, RowRole, Sense};

/// A pair enters only if it might better the optimum by this much of it: below are a solver's tolerances.
const GAIN_MIN: f64 = 1e-10;

/// All pairs, and which of them are columns.
#[derive(Clone, Debug)]
pub(super) struct Pricing {
    pairing: Pairing,
    admitted: BTreeSet<(usize, usize)>,
    /// Those that optima so far leave open, once some are not, or all where they are to be looked at one by one.
    open: Option<Open>,
}

/// What pricing found.
#[derive(Clone, Debug, Default)]
pub(super) struct Priced {
    /// Pairs that would better the optimum, each member's best: none if it is one over all pairs.
    pub(super) entering: Vec<(usize, usize)>,
    /// By how much, at most, all pairs better the objective of the program solved: ≥ 0.
    pub(super) slack: f64,
}

/// Dual values per member and worker type.
struct Prices {
    /// A: [members × K].
    throughput: Vec<f64>,
    /// μ: [members].
    time: Vec<f64>,
    /// κ: `[K]`.
    capacity: Vec<f64>,
}

impl Prices {
    /// What a member pays on a worker type, at a place among [members × K], that it has at this speed.
    fn pays(&self, place: usize, member: usize, speed: f64) -> f64 {
        self.throughput[place] * speed - self.time[member]
    }
}

/// What pairs would pay.
struct Gains {
    /// What a pair must pay on each type to be chosen: `[K]`.
    least: Vec<f64>,
    /// What one worker of each type would be paid, at most: `[K]`.
    most: Vec<f64>,
    /// Each member's best partner, and what they would pay on the type on which that is most: [members]. (With the best on
    /// every type there are two thirds more columns, and half as many steps again.)
    chosen: Vec<Option<(f64, usize)>>,
}

impl Gains {
    /// Takes down what a member would pay beside another.
    fn note(&mut self, member: usize, (gain, partner): (f64, usize), scale_factor: f64, worker_type: usize) {
        let most = &mut self.most[worker_type];
        *most = most.max(gain / scale_factor);
        let known = &mut self.chosen[member];
        if gain > self.least[worker_type] && known.is_none_or(|(known, _)| gain > known) {
            *known = Some((gain, partner));
        }
    }
}

/// The two best of a kind beside another on one worker type: (what it pays, member).
#[derive(Clone, Copy, Debug)]
struct Best {
    first: (f64, usize),
    second: f64,
}

impl Pricing {
    /// No pair is a column yet.
    pub(super) fn new(pairing: Pairing) -> Self {
        Self { pairing, admitted: BTreeSet::new(), open: None }
    }

    /// What two members get beside each other.
    pub(super) fn pairing(&self) -> &Pairing {
        &self.pairing
    }

    /// Notes that these pairs are columns now; gives back those that were none.
    pub(super) fn admit(&mut self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
        pairs.into_iter().filter(|pair| self.admitted.insert(*pair)).collect()
    }

    /// Pairs in which a member is faster than alone: with them, bounds on what members can reach hold for all.
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

    /// Prices every pair that is open at the dual values of an answer.
    pub(super) fn price(&self, instance: &Instance, formulation: &Formulation, answer: &Answer) -> Priced {
        let prices = self.prices(instance, formulation, &answer.solution.row_duals);
        let least = GAIN_MIN * formulation.program.objective(&answer.solution.columns).abs();
        let mut gains = Gains {
            least: instance.capacity.iter().map(|workers| least / workers).collect(),
            most: vec![0.0; instance.n_types()],
            chosen: vec![None; instance.n_members()],
        };
        if let Some(open) = &self.open {
            for pair in open.iter() {
                let [a, b] = pair.members;
                let scale_factor = self.pairing.scale_factor(a);
                let pays = self.gains(&prices, pair).filter(|(j, gain)| *gain > 0.0 && pair.runs_on(*j));
                for (j, gain) in pays {
                    gains.note(a, (gain, b), scale_factor, j);
                    gains.note(b, (gain, a), scale_factor, j);
                }
            }
        } else {
            self.look_at_all(instance, &prices, &mut gains);
        }
        let chosen = gains.chosen.iter().enumerate();
        let pairs = chosen.filter_map(|(member, best)| best.map(|(_, partner)| (member, partner)));
        let pairs = pairs.map(|(member, partner)| (member.min(partner), member.max(partner)));
        let entering: BTreeSet<_> = pairs.filter(|pair| !self.admitted.contains(pair)).collect();
        let slack = gains.most.iter().zip(&instance.capacity).map(|(most, workers)| most * workers).sum();
        Priced { entering: entering.into_iter().collect(), slack }
    }

    /// The gains of all pairs, kind by kind.
    fn look_at_all(&self, instance: &Instance, prices: &Prices, gains: &mut Gains) {
        let (kinds, k) = (&self.pairing.kinds, instance.n_types());
        for g in 0..kinds.len() {
            for (h, mine, theirs) in self.pairing.both(g) {
                let scale_factor = self.pairing.scale_factor(kinds.members(g)[0] as usize);
                for j in (0..k).filter(|j| mine[*j] > 0.0 && instance.has_room(scale_factor, *j)) {
                    let pays = |member: usize, speed: f64| prices.pays(member * k + j, member, speed);
                    let best = best(kinds.members(h), |member| pays(member, theirs[j]));
                    for member in kinds.members(g).iter().map(|member| *member as usize) {
                        let itself = best.first.1 == member && self.pairing.n_jobs(member) == 1;
                        let partner = if itself { best.second } else { best.first.0 };
                        let gain = pays(member, mine[j]) + partner - scale_factor * prices.capacity[j];
                        if itself {
                            gains.most[j] = gains.most[j].max(gain / scale_factor);
                        } else {
                            gains.note(member, (gain, best.first.1), scale_factor, j);
                        }
                    }
                }
            }
        }
    }

    /// What a pair would pay per unit of its time on each worker type.
    fn gains<'p>(&self, prices: &'p Prices, pair: Pair<'p>) -> impl Iterator<Item = (usize, f64)> + use<'p> {
        let ([a, b], [mine, theirs], k) = (pair.members, pair.speeds, prices.capacity.len());
        let spent = prices.time[a] + prices.time[b];
        let scale_factor = self.pairing.scale_factor(a);
        let worth = prices.throughput[a * k..][..k].iter().zip(mine);
        let worth = worth.zip(prices.throughput[b * k..][..k].iter().zip(theirs)).zip(&prices.capacity);
        worth.map(move |((a, b), price)| a.0 * a.1 + b.0 * b.1 - spent - scale_factor * price).enumerate()
    }

    /// Closes pairs that would lose at least so much of the objective by all the time that they can have.
    pub(super) fn close(
        &mut self,
        instance: &Instance,
        formulation: &Formulation,
        duals: &[f64],
        least: f64,
    ) {
        self.list(instance);
        let Some(mut open) = self.open.take() else { return };
        let prices = self.prices(instance, formulation, duals);
        let kept = open.iter().map(|pair| {
            let [a, b] = pair.members;
            let n_jobs = self.pairing.n_jobs(a).min(self.pairing.n_jobs(b)) as f64;
            let time = |j: usize| n_jobs.min(instance.capacity[j] / self.pairing.scale_factor(a));
            let kept = self.gains(&prices, pair).filter(|(j, gain)| -gain * time(*j) <= least);
            kept.fold(0, |types, (j, _)| types | 1 << j)
        });
        let kept: Vec<u32> = kept.collect();
        open.keep(&kept);
        self.open = Some(open);
    }

    /// May a pair have time on a worker type?
    pub(super) fn is_open(&self, (a, b): (usize, usize), worker_type: usize) -> bool {
        self.open.as_ref().is_none_or(|open| open.has((a, b), worker_type))
    }

    /// Every pair may have time. Where every member is a kind of its own, pairs are listed: going through a list takes a
    /// tenth of what it takes to look for each member's partner among kinds.
    pub(super) fn open_all(&mut self, instance: &Instance) {
        self.open = None;
        if self.pairing.kinds.len() == instance.n_members() {
            self.list(instance);
        }
    }

    /// Lists the pairs, if they were not: all of them.
    fn list(&mut self, instance: &Instance) {
        if self.open.is_none() {
            self.open = Open::all(&self.pairing, instance);
        }
    }

    /// Dual values of a program in class time, in units of its objective, taken as a maximization.
    fn prices(&self, instance: &Instance, formulation: &Formulation, duals: &[f64]) -> Prices {
        let (n, k) = (instance.n_members(), instance.n_types());
        let program = &formulation.program;
        let sign = if program.sense == Sense::Maximize { 1.0 } else { -1.0 };
        let mut prices = Prices { throughput: vec![0.0; n * k], time: vec![0.0; n], capacity: vec![0.0; k] };
        let mut reduced: Vec<f64> = program.cost[..formulation.columns.len()].to_vec();
        for (row, role) in formulation.rows.iter().enumerate() {
            // A multiplier whose bound is infinite is no bound's: the certificate cuts it, too.
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

fn best(members: &[u32], pays: impl Fn(usize) -> f64) -> Best {
    let mut best = Best { first: (f64::NEG_INFINITY, usize::MAX), second: f64::NEG_INFINITY };
    for member in members.iter().map(|member| *member as usize) {
        let paid = pays(member);
        if paid > best.first.0 {
            best = Best { first: (paid, member), second: best.first.0 };
        } else if paid > best.second {
            best.second = paid;
        }
    }
    best
}

#[cfg(test)]
mod tests;
