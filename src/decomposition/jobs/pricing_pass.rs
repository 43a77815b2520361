//! Passes over the pricing subproblems of all jobs, eight at a time.
//!
//! The best responses are computed for a constant number of worker types K; [`PricingPass`] has the functions for the K of a
//! batch, so that the code that calls them is compiled once.

use std::array;

use super::JobBatch;
use super::best_response::{
    Best, JobsX8, Proof, best_proof, cheapest, cheapest_above, cheapest_or_none, proof_at,
};
use crate::decomposition::columns::Columns;
use crate::decomposition::lanes::{F64x8, LANES};
use crate::decomposition::tolerances::COST_ROUNDING;
use crate::decomposition::types::of_types;

/// The prices and the level of a pass.
#[derive(Clone, Debug)]
pub(super) struct WorkerPrices {
    /// Price of one worker of each type: `[K]`.
    pub(super) price: Vec<f64>,
    /// The level, as a part of the highest that every job can reach alone.
    pub(super) level: f64,
}

/// The functions that go through all jobs, compiled for one number of worker types.
#[derive(Clone, Copy, Debug)]
pub(super) struct PricingPass {
    /// The columns of the best responses of as many groups, with their least cost; none if a job cannot reach the level.
    pub(super) price_out: fn(&JobBatch, &WorkerPrices, usize) -> Option<Columns>,
    /// The columns of the batch's given allocation for as many groups.
    pub(super) given: fn(&JobBatch, usize) -> Columns,
    /// Adds the time fractions of the best responses, times the weight of each group, `[groups]`, to `[jobs × K]`.
    pub(super) mix: fn(&JobBatch, &WorkerPrices, &[f64], &mut [f64]),
    /// Writes the dual prices of throughput and of time that prove the largest bound: `[jobs]` each.
    pub(super) prove: fn(&JobBatch, &WorkerPrices, &mut [f64], &mut [f64]),
}

impl PricingPass {
    /// The passes for K types; none if no code is compiled for this K.
    pub(super) fn of(types: usize) -> Option<Self> {
        of_types!(types, K => Some(Self {
            price_out: price_out::<K>,
            given: columns_of_given::<K>,
            mix: mix::<K>,
            prove: prove::<K>,
        }))
    }
}

/// The sums over a group's jobs, lane by lane, from which its column follows.
#[derive(Clone, Copy, Debug)]
struct GroupSums<const K: usize> {
    /// Workers of each type in use, on average over time.
    workers: [F64x8; K],
    /// Worth of throughput.
    worth: F64x8,
}

/// All jobs at prices of workers and a level, with lists of constant length.
struct Priced<'a, const K: usize> {
    /// The jobs.
    batch: &'a JobBatch,
    /// Throughput on each type: `[chunks]`.
    speed: &'a [[F64x8; K]],
    /// Factor on worth for throughput on each type.
    by_type: [f64; K],
    /// Price of one worker of each type.
    price: [f64; K],
    /// The level.
    level: f64,
}

impl<'a, const K: usize> Priced<'a, K> {
    /// The jobs of a batch at prices.
    fn of(batch: &'a JobBatch, at: &WorkerPrices) -> Self {
        let of = |list: &[f64]| array::from_fn(|j| list[j]);
        let speed = batch.speed.as_chunks().0;
        Self { batch, speed, by_type: of(&batch.by_type), price: of(&at.price), level: at.level }
    }

    /// The cost of all of the time on each type, for the jobs of a chunk, less the worth of the throughput there.
    #[inline]
    fn costs(&self, chunk: usize) -> [F64x8; K] {
        let mut costs = [F64x8::ZERO; K];
        for (cost, price) in costs.iter_mut().zip(&self.price) {
            *cost = self.batch.workers[chunk] * *price;
        }
        if let Some(worth) = self.batch.worth.get(chunk) {
            for ((cost, speed), of_type) in costs.iter_mut().zip(&self.speed[chunk]).zip(&self.by_type) {
                *cost = *cost - *worth * *speed * *of_type;
            }
        }
        costs
    }

    /// The subproblems of a chunk's jobs.
    #[inline]
    fn subproblems(&self, chunk: usize) -> JobsX8<'_, K> {
        let required = self.batch.required(chunk, self.level);
        JobsX8 { speed: &self.speed[chunk], cost: self.costs(chunk), required }
    }

    /// The best responses of a chunk's jobs. Without worth, more throughput than required only costs; with worth it may pay, but
    /// a droppable constraint is worth no more than itself.
    #[inline]
    fn best_responses(&self, chunk: usize, jobs: &JobsX8<'_, K>) -> Best<K> {
        match (self.batch.worth.is_empty(), self.batch.due.get(chunk)) {
            (true, _) => cheapest(jobs),
            (false, None) => cheapest_above(jobs),
            (false, Some(due)) => cheapest_or_none(jobs, due),
        }
    }

    /// Adds the workers and the worth of a chunk's jobs, at time fractions, to the sums of their group.
    #[inline]
    fn add_use(&self, chunk: usize, part: &[F64x8; K], sum: &mut GroupSums<K>) {
        for (workers, part) in sum.workers.iter_mut().zip(part) {
            *workers += self.batch.workers[chunk] * *part;
        }
        if let Some(worth) = self.batch.worth.get(chunk) {
            let mut throughput = F64x8::ZERO;
            for ((speed, part), of_type) in self.speed[chunk].iter().zip(part).zip(&self.by_type) {
                throughput += *speed * *part * *of_type;
            }
            sum.worth += *worth * throughput;
        }
    }

    /// The columns of groups, from their sums, without least cost and slope.
    fn columns_of(&self, sums: &[GroupSums<K>]) -> Columns {
        let mut columns = Columns::idle(sums.len(), K);
        let usage = columns.usage.chunks_exact_mut(K);
        for ((sum, cost), usage) in sums.iter().zip(&mut columns.cost).zip(usage) {
            *cost = -sum.worth.sum();
            for ((usage, workers), per_worker) in
                usage.iter_mut().zip(&sum.workers).zip(&self.batch.per_worker)
            {
                *usage = workers.sum() * per_worker;
            }
        }
        columns
    }
}

impl<const K: usize> GroupSums<K> {
    /// The sums of no jobs.
    const ZERO: Self = Self { workers: [F64x8::ZERO; K], worth: F64x8::ZERO };
}

/// The best responses of all jobs: see [`PricingPass::price_out`].
fn price_out<const K: usize>(batch: &JobBatch, at: &WorkerPrices, groups: usize) -> Option<Columns> {
    let (priced, mut sums) = (Priced::<K>::of(batch, at), vec![GroupSums::ZERO; groups]);
    let (mut least, mut slope) = (F64x8::ZERO, F64x8::ZERO);
    let mut group = 0;
    for chunk in 0..batch.demand.len() {
        let jobs = priced.subproblems(chunk);
        let best = priced.best_responses(chunk, &jobs);
        if best.value.any(|value| value == f64::INFINITY) {
            return None;
        }
        priced.add_use(chunk, &best.part, &mut sums[group]);
        if batch.worth.is_empty() {
            let proof = proof_of(&jobs, &best);
            least += proof.value;
            slope += proof.price * batch.demand[chunk];
        } else {
            // A search at a held level does not use the derivative.
            least += best.value;
        }
        group = if group + 1 < groups { group + 1 } else { 0 };
    }
    Some(Columns { least: least.sum(), slope: slope.sum(), ..priced.columns_of(&sums) })
}

/// The dual bounds that prove the best responses' costs: at the responses' own prices of throughput or, where these do not prove
/// a cost (at a degenerate vertex, or for rounding), at the prices that prove the largest bound.
#[inline]
fn proof_of<const K: usize>(jobs: &JobsX8<'_, K>, best: &Best<K>) -> Proof {
    let proof = proof_at(jobs, &best.price.max(F64x8::ZERO));
    let unproven = best.value - proof.value - best.value.abs() * COST_ROUNDING;
    if unproven.any(|unproven| unproven > 0.0) { best_proof(jobs) } else { proof }
}

/// The columns of the given allocation: see [`PricingPass::given`].
fn columns_of_given<const K: usize>(batch: &JobBatch, groups: usize) -> Columns {
    let free = WorkerPrices { price: vec![0.0; K], level: 0.0 };
    let (priced, mut sums) = (Priced::<K>::of(batch, &free), vec![GroupSums::ZERO; groups]);
    for (chunk, part) in batch.given.as_chunks().0.iter().enumerate() {
        priced.add_use(chunk, part, &mut sums[chunk % groups]);
    }
    priced.columns_of(&sums)
}

/// The mixture of best responses: see [`PricingPass::mix`].
fn mix<const K: usize>(batch: &JobBatch, at: &WorkerPrices, weights: &[f64], time: &mut [f64]) {
    let priced = Priced::<K>::of(batch, at);
    for (chunk, time) in time.chunks_mut(K * LANES).enumerate() {
        let weight = weights[chunk % weights.len()];
        if weight == 0.0 {
            continue;
        }
        let best = priced.best_responses(chunk, &priced.subproblems(chunk));
        for (i, time) in time.chunks_exact_mut(K).enumerate() {
            for (time, part) in time.iter_mut().zip(&best.part) {
                *time += weight * part.0[i];
            }
        }
    }
}

/// The dual prices of all jobs: see [`PricingPass::prove`].
fn prove<const K: usize>(batch: &JobBatch, at: &WorkerPrices, throughput: &mut [f64], time: &mut [f64]) {
    let priced = Priced::<K>::of(batch, at);
    let chunks = throughput.chunks_mut(LANES).zip(time.chunks_mut(LANES));
    for (chunk, (throughput, time)) in chunks.enumerate() {
        let proof = best_proof(&priced.subproblems(chunk));
        throughput.copy_from_slice(&proof.price.0[..throughput.len()]);
        time.copy_from_slice(&proof.time.0[..time.len()]);
    }
}
