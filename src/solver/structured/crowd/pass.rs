//! Passes over all members, eight abreast.

use super::corner::{Best, Eight, Proof, best_proof, proof_at};
use super::{Crowd, Done};
use crate::solver::structured::lane::{LANES, Lane};

/// What may be left unproven of what a member costs, relative.
const UNPROVEN_MAX: f64 = 1e-14;

/// Prices of workers `[K]`, and the level that is asked for.
pub(super) type At<const K: usize> = ([f64; K], f64);

/// Adds what members do to what their groups do, every so manieth chunk to the same. Gives what they cost at least, and per
/// unit more of the level; nothing if one of them cannot reach it.
pub(super) fn reply<const K: usize>(crowd: &Crowd<K>, at: At<K>, done: &mut [Done<K>]) -> Option<[f64; 2]> {
    let (mut least, mut slope) = (Lane::ZERO, Lane::ZERO);
    let mut group = 0;
    for chunk in 0..crowd.demand.len() {
        let members = crowd.at(chunk, &at);
        let best = crowd.best(chunk, &members);
        if best.value.any(|value| value == f64::INFINITY) {
            return None;
        }
        crowd.count(chunk, &best.part, &mut done[group]);
        if crowd.worth.is_empty() {
            let proof = surely(&members, &best);
            least += proof.value;
            slope += proof.leaf * crowd.demand[chunk];
        } else {
            // (a level that is held is asked for as it is)
            least += best.value;
        }
        group = if group + 1 < done.len() { group + 1 } else { 0 };
    }
    Some([least.sum(), slope.sum()])
}

/// What the prices of leaf at best vertices prove, or the prices that prove the most: at a vertex with more than one
/// price of leaf, or one that is the best but for rounding, the price it has may not be one that proves it.
#[inline]
fn surely<const K: usize>(members: &Eight<'_, K>, best: &Best<K>) -> Proof {
    let proof = proof_at(members, &best.leaf.max(Lane::ZERO));
    let unproven = best.value - proof.value - best.value.abs() * UNPROVEN_MAX;
    if unproven.any(|unproven| unproven > 0.0) { best_proof(members) } else { proof }
}

/// Adds the parts of time `[members × K]` that members take, times the weight of their group.
pub(super) fn mix<const K: usize>(crowd: &Crowd<K>, at: At<K>, weights: &[f64], time: &mut [f64]) {
    for (chunk, time) in time.chunks_mut(K * LANES).enumerate() {
        let weight = weights[chunk % weights.len()];
        if weight == 0.0 {
            continue;
        }
        let members = crowd.at(chunk, &at);
        let best = crowd.best(chunk, &members);
        add(weight, &best.part, time);
    }
}

/// Adds so much of a chunk's parts of time.
#[inline]
pub(super) fn add<const K: usize>(weight: f64, part: &[Lane; K], time: &mut [f64]) {
    for (i, time) in time.chunks_exact_mut(K).enumerate() {
        for (time, part) in time.iter_mut().zip(part) {
            *time += weight * part.0[i];
        }
    }
}

/// Writes the prices of leaf and of time that prove the most: `[members]` each.
pub(super) fn prove<const K: usize>(crowd: &Crowd<K>, at: At<K>, leaf: &mut [f64], time: &mut [f64]) {
    for (chunk, (leaf, time)) in leaf.chunks_mut(LANES).zip(time.chunks_mut(LANES)).enumerate() {
        let proof = best_proof(&crowd.at(chunk, &at));
        leaf.copy_from_slice(&proof.leaf.0[..leaf.len()]);
        time.copy_from_slice(&proof.time.0[..time.len()]);
    }
}
