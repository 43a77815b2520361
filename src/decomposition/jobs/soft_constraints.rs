//! Soft constraints: the largest number of jobs whose required throughput can be met, in the linear relaxation.
//!
//!   maximize Σ n_m·z_m   subject to   throughput_m ≥ d_m·z_m,   time_m ≤ n_m·z_m,   z ≤ 1,   the workers of types
//!
//! At prices of workers a member's best response is its required throughput or nothing, so the loop over prices is the one
//! for sums of throughputs, and few z of the resulting mixture are fractional. Any prices κ of workers and λ_m of
//! throughput bound the optimum:
//!
//!   Σ n_m·z_m  ≤  Σ w_j·κ_j + Σ n_m·max(0, 1 − c_m),     c_m = λ_m·d_m − max_j(0, λ_m·T_mj − s_m·κ_j)
//!
//! and without the first maximum where z_m is fixed at 1.

use std::array;

use super::{JobBatch, LANES, pricing_pass};
use crate::decomposition::dantzig_wolfe::Found;
use crate::decomposition::padded::Padded;
use crate::decomposition::types::of_types;
use crate::program::promise::PROMISE_SLACK;
use crate::program::singles::{Goal as Wanted, Singles as Sharing};
use crate::solver::backend::Limits;
use crate::solver::lanes::F64x8;

/// An optimum of the relaxation: which soft constraints are kept, in part or whole, and the dual prices' verdict.
#[derive(Clone, Debug)]
pub struct SoftConstraintsKept {
    /// Class time: [members × K].
    pub time: Vec<f64>,
    /// The part of its soft constraint that is kept, of a job of each member: `[members]`.
    pub part: Vec<f64>,
    /// The cost of keeping all of it at the prices that prove the bound, where one job counts 1: `[members]`; 0 without a soft
    /// constraint.
    pub cost: Vec<f64>,
    /// The dual bound on the number of jobs whose soft constraints are kept, parts added up.
    pub bound: f64,
    /// Sweeps over all subproblems.
    pub asked: u32,
}

/// Keeps as many as possible of the soft constraints that members `demand`, and in any case the ones that are `due`,
/// `[members]`; nothing if there are more than 64 worker types, or prices do not settle.
pub fn keep_soft_constraints(
    sharing: &Sharing<'_>,
    due: &[bool],
    limits: &Limits,
) -> Option<SoftConstraintsKept> {
    if let Some(padded) = Padded::of(sharing, Wanted::Level) {
        let mut kept = keep_soft_constraints(&padded.sharing(), due, limits)?;
        padded.cut_rows(&mut kept.time);
        return Some(kept);
    }
    of_types!(sharing.instance().n_types(), K => JobBatch::<K>::keep(sharing, due, limits))
}

impl<const K: usize> JobBatch<K> {
    fn keep(sharing: &Sharing<'_>, due: &[bool], limits: &Limits) -> Option<SoftConstraintsKept> {
        let instance = sharing.instance();
        let promised = |member: usize| sharing.demand[member] > 0.0;
        let jobs: f64 =
            (0..due.len()).filter(|member| promised(*member)).map(|m| instance.multiplicity[m]).sum();
        if jobs == 0.0 {
            return None;
        }
        let batch = Self::of_soft_constraints(sharing, due, 1.0 / jobs);
        let found = batch.search(Some(1.0), None, limits)?;
        let rent = batch.rent(&found.at).map(|rent| (rent * jobs).max(0.0));
        let mut kept = batch.kept(sharing, &found);
        for (worker_type, workers) in instance.capacity.iter().enumerate() {
            kept.bound += rent[worker_type] * workers;
        }
        for (member, due) in due.iter().enumerate() {
            let cost =
                if promised(member) { SoftDemand::<K>::of(sharing, member, &rent).cost() } else { 0.0 };
            let most = if *due { 1.0 - cost } else { (1.0 - cost).max(0.0) };
            kept.bound += instance.multiplicity[member] * most;
            kept.cost.push(cost);
        }
        Some(kept)
    }

    /// Members whose throughput is worth something up to their soft constraint.
    fn of_soft_constraints(sharing: &Sharing<'_>, due: &[bool], unit: f64) -> Self {
        let instance = sharing.instance();
        let per_worker =
            array::from_fn(|j| if instance.capacity[j] > 0.0 { 1.0 / instance.capacity[j] } else { 0.0 });
        let mut batch = Self::room_for(due.len(), [per_worker, [1.0; K]], [true, false, false]);
        batch.due = vec![F64x8::ZERO; batch.demand.len()];
        for (member, due) in due.iter().enumerate() {
            let (chunk, i) = (member / LANES, member % LANES);
            for (j, speed) in instance.alone(member).iter().enumerate() {
                batch.speed[chunk][j].0[i] = if sharing.runs(member, j) { *speed } else { 0.0 };
            }
            let (promised, jobs) = (asked(sharing, member), instance.multiplicity[member]);
            batch.demand[chunk].0[i] = promised;
            batch.workers[chunk].0[i] = instance.scale_factor[member] * jobs;
            batch.due[chunk].0[i] = f64::from(u8::from(*due));
            batch.worth[chunk].0[i] = if *due || promised == 0.0 { 0.0 } else { unit * jobs / promised };
        }
        batch
    }

    /// What the mixture keeps of each member's soft constraint.
    fn kept(&self, sharing: &Sharing<'_>, found: &Found) -> SoftConstraintsKept {
        let instance = sharing.instance();
        let mut time = vec![0.0; self.n * K];
        for (place, weights) in &found.mixture {
            pricing_pass::mix(self, self.place(place), weights, &mut time);
        }
        let part = |(member, time): (usize, &[f64])| {
            let throughput: f64 =
                time.iter().zip(instance.alone(member)).map(|(time, speed)| time * speed).sum();
            if sharing.demand[member] > 0.0 { (throughput / sharing.demand[member]).min(1.0) } else { 1.0 }
        };
        let part = time.chunks_exact(K).enumerate().map(part).collect();
        for (time, jobs) in time.chunks_exact_mut(K).zip(&instance.multiplicity) {
            for time in time {
                *time = time.max(0.0) * jobs;
            }
        }
        SoftConstraintsKept { time, part, cost: Vec::with_capacity(self.n), bound: 0.0, asked: found.asked }
    }
}

/// A soft constraint's throughput, less what rounding puts out of the member's reach.
fn asked(sharing: &Sharing<'_>, member: usize) -> f64 {
    let (promised, fastest) = (sharing.demand[member], sharing.fastest(member));
    if promised <= fastest * (1.0 + PROMISE_SLACK) { promised.min(fastest) } else { promised }
}

/// A job of a member at prices of workers.
struct SoftDemand<const K: usize> {
    /// 0 where it cannot run.
    speed: [f64; K],
    /// Of all of its time.
    rent: [f64; K],
    asked: f64,
}

impl<const K: usize> SoftDemand<K> {
    fn of(sharing: &Sharing<'_>, member: usize, rent: &[f64; K]) -> Self {
        let instance = sharing.instance();
        let speed = |j: usize| if sharing.runs(member, j) { instance.alone(member)[j] } else { 0.0 };
        let size = instance.scale_factor[member];
        Self {
            speed: array::from_fn(speed),
            rent: rent.map(|rent| size * rent),
            asked: asked(sharing, member),
        }
    }

    /// The least price of time that goes with a price of throughput.
    fn time(&self, throughput_price: f64) -> f64 {
        let gain = |j: usize| {
            if self.speed[j] > 0.0 { throughput_price * self.speed[j] - self.rent[j] } else { 0.0 }
        };
        (0..K).map(gain).fold(0.0, f64::max)
    }

    /// The least cost of keeping all of its soft constraint; infinite where it cannot be kept.
    fn cost(&self) -> f64 {
        let fastest = self.speed.iter().copied().fold(0.0, f64::max);
        let mut cost = if self.asked > fastest { f64::INFINITY } else { 0.0_f64 };
        let mut attempt = |throughput_price: f64| {
            if throughput_price >= 0.0 && throughput_price.is_finite() {
                cost = cost.max(throughput_price * self.asked - self.time(throughput_price));
            }
        };
        for l in (0..K).filter(|l| self.speed[*l] > 0.0) {
            attempt(self.rent[l] / self.speed[l]);
            for j in (0..l).filter(|j| self.speed[*j] > 0.0) {
                attempt((self.rent[l] - self.rent[j]) / (self.speed[l] - self.speed[j]));
            }
        }
        cost
    }
}
