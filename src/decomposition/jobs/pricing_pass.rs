//! One sweep over all pricing subproblems, eight members at a time.

use super::best_response::{Best, JobsX8, Proof, best_proof, proof_at};
use super::{Done, JobBatch};
use crate::solver::lanes::{F64x8, LANES};

/// What may be left unproven of what a member costs, relative.
const UNPROVEN_MAX: f64 = 1e-14;

/// Prices of workers `[K]`, and the level that is asked for.
pub(super) type At<const K: usize> = ([f64; K], f64);

/// Prices out all members: adds each chunk's best responses to its group's column. Gives the least cost of all members and
/// its derivative in the level; nothing if a member cannot reach the level.
pub(super) fn price_out<const K: usize>(
    batch: &JobBatch<K>,
    at: At<K>,
    done: &mut [Done<K>],
) -> Option<[f64; 2]> {
    let (mut least, mut slope) = (F64x8::ZERO, F64x8::ZERO);
    let mut group = 0;
    for chunk in 0..batch.demand.len() {
        let members = batch.at(chunk, &at);
        let best = batch.best(chunk, &members);
        if best.value.any(|value| value == f64::INFINITY) {
            return None;
        }
        batch.count(chunk, &best.part, &mut done[group]);
        if batch.worth.is_empty() {
            let proof = surely(&members, &best);
            least += proof.value;
            slope += proof.throughput_price * batch.demand[chunk];
        } else {
            // (a level that is held is asked for as it is)
            least += best.value;
        }
        group = if group + 1 < done.len() { group + 1 } else { 0 };
    }
    Some([least.sum(), slope.sum()])
}

/// The dual bound at the best responses' own prices of throughput or, where those do not prove it (degenerate vertices,
/// rounding), at the prices that prove the most.
#[inline]
fn surely<const K: usize>(members: &JobsX8<'_, K>, best: &Best<K>) -> Proof {
    let proof = proof_at(members, &best.throughput_price.max(F64x8::ZERO));
    let unproven = best.value - proof.value - best.value.abs() * UNPROVEN_MAX;
    if unproven.any(|unproven| unproven > 0.0) { best_proof(members) } else { proof }
}

/// Adds the best responses' time fractions, `[members × K]`, times the weight of their group.
pub(super) fn mix<const K: usize>(batch: &JobBatch<K>, at: At<K>, weights: &[f64], time: &mut [f64]) {
    for (chunk, time) in time.chunks_mut(K * LANES).enumerate() {
        let weight = weights[chunk % weights.len()];
        if weight == 0.0 {
            continue;
        }
        let members = batch.at(chunk, &at);
        let best = batch.best(chunk, &members);
        add(weight, &best.part, time);
    }
}

/// Adds so much of a chunk's parts of time.
#[inline]
pub(super) fn add<const K: usize>(weight: f64, part: &[F64x8; K], time: &mut [f64]) {
    for (i, time) in time.chunks_exact_mut(K).enumerate() {
        for (time, part) in time.iter_mut().zip(part) {
            *time += weight * part.0[i];
        }
    }
}

/// Writes the dual prices of throughput and of time that prove the most: `[members]` each.
pub(super) fn prove<const K: usize>(
    batch: &JobBatch<K>,
    at: At<K>,
    throughput_price: &mut [f64],
    time: &mut [f64],
) {
    for (chunk, (throughput_price, time)) in
        throughput_price.chunks_mut(LANES).zip(time.chunks_mut(LANES)).enumerate()
    {
        let proof = best_proof(&batch.at(chunk, &at));
        throughput_price.copy_from_slice(&proof.throughput_price.0[..throughput_price.len()]);
        time.copy_from_slice(&proof.time.0[..time.len()]);
    }
}
