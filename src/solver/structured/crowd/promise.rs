//! Promises of throughputs where not all can be kept: as many as possible, some of them in part.
//!
//!   maximize Σ n_m·z_m   subject to   leaf_m ≥ d_m·z_m,   time_m ≤ n_m·z_m,   z ≤ 1,   the workers of types
//!
//! Time that is not enough for all of a promise serves nobody: with z_m = 0 or 1 alone that is so, and asked of their
//! mixtures, too, few of them are neither. At prices of workers a member has the leaf that it was promised or nothing: the
//! search for prices is the one for sums of leaves. Any prices κ of workers bound what can be kept, with any prices λ_m of
//! leaves:
//!
//!   Σ n_m·z_m  ≤  Σ w_j·κ_j + Σ n_m·max(0, 1 − c_m),     c_m = λ_m·d_m − max_j(0, λ_m·T_mj − s_m·κ_j)
//!
//! and without the first maximum where z_m is to be 1.

use std::array;

use super::{Crowd, LANES, pass};
use crate::program::promise::PROMISE_SLACK;
use crate::program::sharing::{Sharing, Wanted};
use crate::solver::backend::Limits;
use crate::solver::structured::lane::Lane;
use crate::solver::structured::padded::Padded;
use crate::solver::structured::prices::Found;
use crate::solver::structured::types::of_types;

/// Promises kept as far as they can be.
#[derive(Clone, Debug)]
pub struct PromisesKept {
    /// Class time: [members × K].
    pub time: Vec<f64>,
    /// The part of its promise that a job of each member is kept: `[members]`.
    pub part: Vec<f64>,
    /// What to keep all of its promise costs at prices that prove the bound, of what one job counts: `[members]`; 0 without
    /// a promise.
    pub cost: Vec<f64>,
    /// No more jobs than this can be kept theirs, in parts that are added up.
    pub bound: f64,
    /// How often everyone was asked.
    pub asked: u32,
}

/// Keeps as many of the promises that members `demand` as there are workers for, and in any case those that are `due`,
/// `[members]`, without writing the program; nothing if there are too many worker types, or prices do not settle.
pub fn keep_promises(sharing: &Sharing<'_>, due: &[bool], limits: &Limits) -> Option<PromisesKept> {
    if let Some(padded) = Padded::of(sharing, Wanted::Level) {
        let mut kept = keep_promises(&padded.sharing(), due, limits)?;
        padded.cut_rows(&mut kept.time);
        return Some(kept);
    }
    of_types!(sharing.instance().n_types(), K => Crowd::<K>::keep(sharing, due, limits))
}

impl<const K: usize> Crowd<K> {
    fn keep(sharing: &Sharing<'_>, due: &[bool], limits: &Limits) -> Option<PromisesKept> {
        let instance = sharing.instance();
        let promised = |member: usize| sharing.demand[member] > 0.0;
        let jobs: f64 =
            (0..due.len()).filter(|member| promised(*member)).map(|m| instance.multiplicity[m]).sum();
        if jobs == 0.0 {
            return None;
        }
        let crowd = Self::of_promises(sharing, due, 1.0 / jobs);
        let found = crowd.search(Some(1.0), None, limits)?;
        let rent = crowd.rent(&found.at).map(|rent| (rent * jobs).max(0.0));
        let mut kept = crowd.kept(sharing, &found);
        for (worker_type, workers) in instance.capacity.iter().enumerate() {
            kept.bound += rent[worker_type] * workers;
        }
        for (member, due) in due.iter().enumerate() {
            let cost = if promised(member) { Promised::<K>::of(sharing, member, &rent).cost() } else { 0.0 };
            let most = if *due { 1.0 - cost } else { (1.0 - cost).max(0.0) };
            kept.bound += instance.multiplicity[member] * most;
            kept.cost.push(cost);
        }
        Some(kept)
    }

    /// Members whose leaf is worth something up to what was promised.
    fn of_promises(sharing: &Sharing<'_>, due: &[bool], unit: f64) -> Self {
        let instance = sharing.instance();
        let per_worker =
            array::from_fn(|j| if instance.capacity[j] > 0.0 { 1.0 / instance.capacity[j] } else { 0.0 });
        let mut crowd = Self::room_for(due.len(), [per_worker, [1.0; K]], [true, false, false]);
        crowd.due = vec![Lane::ZERO; crowd.demand.len()];
        for (member, due) in due.iter().enumerate() {
            let (chunk, i) = (member / LANES, member % LANES);
            for (j, speed) in instance.alone(member).iter().enumerate() {
                crowd.speed[chunk][j].0[i] = if sharing.runs(member, j) { *speed } else { 0.0 };
            }
            let (promised, jobs) = (asked(sharing, member), instance.multiplicity[member]);
            crowd.demand[chunk].0[i] = promised;
            crowd.workers[chunk].0[i] = instance.scale_factor[member] * jobs;
            crowd.due[chunk].0[i] = f64::from(u8::from(*due));
            crowd.worth[chunk].0[i] = if *due || promised == 0.0 { 0.0 } else { unit * jobs / promised };
        }
        crowd
    }

    /// Who is kept what where the mixture has them.
    fn kept(&self, sharing: &Sharing<'_>, found: &Found) -> PromisesKept {
        let instance = sharing.instance();
        let mut time = vec![0.0; self.n * K];
        for (place, weights) in &found.mixture {
            pass::mix(self, self.place(place), weights, &mut time);
        }
        let part = |(member, time): (usize, &[f64])| {
            let leaf: f64 = time.iter().zip(instance.alone(member)).map(|(time, speed)| time * speed).sum();
            if sharing.demand[member] > 0.0 { (leaf / sharing.demand[member]).min(1.0) } else { 1.0 }
        };
        let part = time.chunks_exact(K).enumerate().map(part).collect();
        for (time, jobs) in time.chunks_exact_mut(K).zip(&instance.multiplicity) {
            for time in time {
                *time = time.max(0.0) * jobs;
            }
        }
        PromisesKept { time, part, cost: Vec::with_capacity(self.n), bound: 0.0, asked: found.asked }
    }
}

/// What a member was promised, less what rounding puts out of its reach.
fn asked(sharing: &Sharing<'_>, member: usize) -> f64 {
    let (promised, fastest) = (sharing.demand[member], sharing.fastest(member));
    if promised <= fastest * (1.0 + PROMISE_SLACK) { promised.min(fastest) } else { promised }
}

/// A job of a member at prices of workers.
struct Promised<const K: usize> {
    /// 0 where it cannot run.
    speed: [f64; K],
    /// Of all of its time.
    rent: [f64; K],
    asked: f64,
}

impl<const K: usize> Promised<K> {
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

    /// The least price of time that goes with a price of leaf.
    fn time(&self, leaf: f64) -> f64 {
        let gain = |j: usize| if self.speed[j] > 0.0 { leaf * self.speed[j] - self.rent[j] } else { 0.0 };
        (0..K).map(gain).fold(0.0, f64::max)
    }

    /// The least that all of its promise costs; infinite where it cannot be kept.
    fn cost(&self) -> f64 {
        let fastest = self.speed.iter().copied().fold(0.0, f64::max);
        let mut cost = if self.asked > fastest { f64::INFINITY } else { 0.0_f64 };
        let mut attempt = |leaf: f64| {
            if leaf >= 0.0 && leaf.is_finite() {
                cost = cost.max(leaf * self.asked - self.time(leaf));
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
