//! The pricing subproblems of jobs, eight side by side, and the searches over them.
//!
//! At prices of worker types and a level, a job pays q`[j]` for all of its time on type j and must reach a required
//! throughput r. Its best response is a vertex of {time ≤ 1, throughput ≥ r}: one type for the part of its time that r takes,
//! one type for all of its time, or two types that together take all of it. Eight jobs are computed side by side
//! ([`best_response`], [`lower_hull`]); a class of identical jobs is one job here, which needs the workers of all of them. Time
//! is a fraction of a job's time, throughput in the units of the instance. The loop over prices is
//! [`dantzig_wolfe`](super::dantzig_wolfe).

mod best_response;
mod lower_hull;
mod pricing_pass;
mod next_level;
mod droppable;

use std::array;

pub use droppable::{DroppableKept, keep_droppable};
pub use next_level::{RaisedLevel, raise_above};
use pricing_pass::{PricingPass, WorkerPrices};

use crate::decomposition::certificate::PrimalDual;
use crate::decomposition::dantzig_wolfe::{
    LevelGoal, MixedPoint, PricePoint, Search, SearchEnd, SearchStart, Searched, WarmPrices, n_groups,
};
use crate::decomposition::lanes::{F64x8, LANES};
use crate::decomposition::nash_welfare;
use crate::decomposition::sampling::by_samples;
use crate::decomposition::tolerances::{GAP, GAP_ABOVE, SAMPLE_GAP, SAMPLE_MAX, WARM_PRICES_MAX};
use crate::decomposition::types::compiled_for;
use crate::decomposition::unsolved::Unsolved;
use crate::program::singles::{Goal, Singles};
use crate::solver::backend::Limits;
use crate::solver::timing::Stopwatch;

/// The pricing subproblems of jobs, in chunks of eight. Lanes of the last chunk without a job have one that requires nothing and
/// needs no workers.
#[derive(Clone, Debug)]
struct JobBatch {
    /// Throughput on each type, 0 where a job cannot run: `[chunks × K]`.
    speed: Vec<F64x8>,
    /// Throughput required per unit of the search's level: `[chunks]`.
    demand: Vec<F64x8>,
    /// Throughput required at a level of zero: `[chunks]`; empty if none is.
    base: Vec<F64x8>,
    /// Workers that a job needs at once, for a class those of all its jobs: `[chunks]`.
    workers: Vec<F64x8>,
    /// Worth of a unit of throughput, in the search's units of the objective: `[chunks]`; empty if only the level counts.
    worth: Vec<F64x8>,
    /// Factor on `worth` for throughput on each type: `[K]`.
    by_type: Vec<f64>,
    /// Time fractions of a feasible allocation that has the held level, or the base: `[chunks × K]`; empty if none is known.
    given: Vec<F64x8>,
    /// 1 where the required throughput must be met, 0 where the job may have no time at all instead: `[chunks]`; empty
    /// where no droppable constraints are counted.
    due: Vec<F64x8>,
    /// Number of jobs.
    n: usize,
    /// Number of worker types, K, with empty types up to a number that code is compiled for.
    k: usize,
    /// The part of all workers of a type that one worker is, 0 for a type without workers: `[K]`.
    per_worker: Vec<f64>,
    /// The passes over all jobs for K types.
    pass: PricingPass,
}

/// The units of a search.
#[derive(Clone, Copy, Debug)]
struct Units {
    /// The unit of levels: the highest level that every job can reach alone.
    level: f64,
    /// The factor on the objective that makes it at most 1; 1 where the objective is the level.
    objective: f64,
}

/// The optimum of a goal; `warm_prices` are the prices that an earlier search left. The relative gap is a part of
/// `limits.tolerance`. A goal of logarithms is solved by `nash_welfare`, with limits of its own.
///
/// # Errors
/// If a class can reach no level, if there are more than 64 worker types, or if prices do not converge in time.
pub fn solve(
    singles: &Singles<'_>,
    goal: Goal<'_>,
    warm_prices: &WarmPrices,
    limits: &Limits,
) -> Result<Searched, Unsolved> {
    if let Goal::Logarithms(of) = goal {
        return nash_welfare::solve(singles, &of.weight, warm_prices, limits);
    }
    let limit = lowest_limit(singles, goal);
    // Where a held level demands nothing of any class, no class limits it, and any unit of levels will do.
    let held = matches!(goal, Goal::Worth { .. });
    let limit = if held && limit == f64::INFINITY { 1.0 } else { limit };
    if !(limit > 0.0 && limit.is_finite()) {
        return Err(Unsolved::NoLevel);
    }
    let units = Units { level: limit, objective: objective_unit(singles, goal) };
    let batch = JobBatch::of(singles, goal, units).ok_or(Unsolved::TooManyTypes)?;
    let level_goal = match goal {
        Goal::Worth { level, .. } => LevelGoal::Hold { level: level / limit },
        _ => LevelGoal::Raise,
    };
    let found = batch.search(level_goal, batch.warm_start(warm_prices, units), limits)?;
    let optimum = batch.primal_dual(singles, goal, &found, units);
    Ok(Searched { optimum, warm_prices: batch.warm_prices(&found, units) })
}

/// The highest level above the goal's base that every class can reach if it has the cluster to itself; infinite if none demands
/// anything.
fn lowest_limit(singles: &Singles<'_>, goal: Goal<'_>) -> f64 {
    let limit = |class| singles.limit_above(class, goal.base(class));
    (0..singles.instance().n_members()).map(limit).fold(f64::INFINITY, f64::min)
}

/// The factor on the objective that makes the worth of all jobs 1 if each is on its best type for all of its time.
fn objective_unit(singles: &Singles<'_>, goal: Goal<'_>) -> f64 {
    let Goal::Worth { worth, by_type, .. } = goal else { return 1.0 };
    let best = |most: f64, (speed, of): (&f64, &f64)| most.max(speed * of);
    let fastest = |class: usize| singles.instance().alone(class).iter().zip(by_type).fold(0.0, best);
    let most: f64 = worth.iter().enumerate().map(|(class, worth)| worth * fastest(class)).sum();
    if most > 0.0 { 1.0 / most } else { 1.0 }
}

/// The numbers `of` n jobs in chunks of eight, 0 in lanes without a job: `[chunks]`.
fn in_chunks(n: usize, of: impl Fn(usize) -> f64) -> Vec<F64x8> {
    let lane = |job: usize| if job < n { of(job) } else { 0.0 };
    (0..n.div_ceil(LANES)).map(|chunk| F64x8(array::from_fn(|i| lane(chunk * LANES + i)))).collect()
}

impl JobBatch {
    /// The jobs of an instance, without required throughputs, worth and given allocation; none if it has more worker types than
    /// code is compiled for.
    fn of_instance(singles: &Singles<'_>) -> Option<Self> {
        let instance = singles.instance();
        let (n, n_types) = (instance.n_members(), instance.n_types());
        let k = compiled_for(n_types)?;
        let mut per_worker = vec![0.0; k];
        for (per_worker, workers) in per_worker.iter_mut().zip(&instance.capacity) {
            *per_worker = if *workers > 0.0 { 1.0 / workers } else { 0.0 };
        }
        let mut speed = vec![F64x8::ZERO; n.div_ceil(LANES) * k];
        for class in 0..n {
            for (j, of) in instance.alone(class).iter().enumerate() {
                let at = &mut speed[class / LANES * k + j].0[class % LANES];
                *at = if singles.runs(class, j) { *of } else { 0.0 };
            }
        }
        let workers = in_chunks(n, |class| instance.scale_factor[class] * instance.multiplicity[class]);
        let none = || Vec::new();
        let (demand, by_type, pass) = (in_chunks(n, |_| 0.0), vec![1.0; k], PricingPass::of(k)?);
        let (base, worth, given, due) = (none(), none(), none(), none());
        let mut batch =
            Self { speed, demand, base, workers, worth, by_type, given, due, n, k, per_worker, pass };
        batch.fill_empty_lanes();
        Some(batch)
    }

    /// Gives lanes without a job a throughput of 1 on the first type, so that every subproblem has an optimum.
    fn fill_empty_lanes(&mut self) {
        for lane in self.n..self.demand.len() * LANES {
            self.speed[lane / LANES * self.k].0[lane % LANES] = 1.0;
        }
    }

    /// The jobs of an instance with required throughputs, worth and given allocation of a goal, in the units of a search; none
    /// if there are more worker types than code is compiled for.
    fn of(singles: &Singles<'_>, goal: Goal<'_>, units: Units) -> Option<Self> {
        let mut batch = Self::of_instance(singles)?;
        let (n, n_types) = (batch.n, singles.instance().n_types());
        batch.demand = in_chunks(n, |class| singles.demand[class] * units.level);
        let given = match goal {
            Goal::Worth { worth, by_type, given, .. } => {
                batch.worth = in_chunks(n, |class| worth[class] * units.objective);
                batch.by_type[..n_types].copy_from_slice(by_type);
                given
            }
            Goal::Above { given, .. } => {
                // Rounding may have made a base larger than the job's highest throughput.
                batch.base = in_chunks(n, |class| goal.base(class).min(singles.fastest(class)));
                given
            }
            Goal::Level | Goal::Logarithms(_) => &[],
        };
        if !given.is_empty() {
            batch.given = vec![F64x8::ZERO; batch.speed.len()];
            let rows = given.chunks_exact(n_types).zip(&singles.instance().multiplicity);
            for (class, (times, jobs)) in rows.enumerate() {
                for (j, time) in times.iter().enumerate() {
                    batch.given[class / LANES * batch.k + j].0[class % LANES] = time / jobs;
                }
            }
        }
        Some(batch)
    }

    /// A sample of the jobs: every `step`-th one, from the middle of the first `step` on.
    fn sample(&self, step: usize) -> Self {
        let jobs: Vec<usize> = (step / 2..self.n).step_by(step).collect();
        let sampled = |list: &[F64x8], width: usize| {
            let mut sample =
                vec![F64x8::ZERO; if list.is_empty() { 0 } else { jobs.len().div_ceil(LANES) * width }];
            for (to, from) in jobs.iter().enumerate().filter(|_| !list.is_empty()) {
                for j in 0..width {
                    sample[to / LANES * width + j].0[to % LANES] =
                        list[from / LANES * width + j].0[from % LANES];
                }
            }
            sample
        };
        let mut sample = Self {
            speed: sampled(&self.speed, self.k),
            demand: sampled(&self.demand, 1),
            base: sampled(&self.base, 1),
            workers: sampled(&self.workers, 1),
            worth: sampled(&self.worth, 1),
            by_type: self.by_type.clone(),
            given: sampled(&self.given, self.k),
            due: sampled(&self.due, 1),
            n: jobs.len(),
            k: self.k,
            per_worker: self.per_worker.clone(),
            pass: self.pass,
        };
        sample.fill_empty_lanes();
        sample
    }

    /// The start of a search from the prices that an earlier search left; none if it left none, or if they are of another number
    /// of types.
    fn warm_start(&self, warm_prices: &WarmPrices, units: Units) -> Option<SearchStart> {
        let of_all = |(price, per_worker): (&f64, &f64)| {
            if *per_worker > 0.0 { price * units.objective / per_worker } else { 0.0 }
        };
        let scaled = |price: &Vec<f64>| price.iter().zip(&self.per_worker).map(of_all).collect();
        let WarmPrices { prices, level } = warm_prices;
        if prices.is_empty() || prices.iter().any(|price| price.len() != self.k) {
            return None;
        }
        Some(SearchStart::around(prices.iter().map(scaled).collect(), self.n, level / units.level))
    }

    /// The prices that a search leaves for the next, in the instance's units.
    fn warm_prices(&self, found: &SearchEnd, units: Units) -> WarmPrices {
        if !found.has_prices {
            return WarmPrices::default();
        }
        let points = std::iter::once(&found.at).chain(found.mixed_points(WARM_PRICES_MAX));
        let scaled = |point: &PricePoint| {
            self.worker_prices(point).price.iter().map(|price| price / units.objective).collect()
        };
        WarmPrices { prices: points.map(scaled).collect(), level: found.level * units.level }
    }

    /// The optimum of a goal, searched from a `warm` start or, where there is none or it fails, from the prices of samples, each
    /// of which is larger than the one before.
    fn search(
        &self,
        goal: LevelGoal,
        warm: Option<SearchStart>,
        limits: &Limits,
    ) -> Result<SearchEnd, Unsolved> {
        let clock = Stopwatch::start();
        let is_out_of_time = || limits.is_over(&clock);
        let used = self.given_usage();
        let search = |batch: &Self, start: &SearchStart, gap: f64| {
            let groups = n_groups(batch.demand.len());
            let price_out =
                |point: &PricePoint| (batch.pass.price_out)(batch, &batch.worker_prices(point), groups);
            let given = (!batch.given.is_empty()).then(|| (batch.pass.given)(batch, groups));
            // A sample has its part of the capacity that the given allocation of all jobs leaves free, and what its
            // own jobs use in that allocation.
            let part = batch.n as f64 / self.n as f64;
            let capacity =
                used.iter().zip(batch.given_usage()).map(|(all, used)| part * (1.0 - all) + used).collect();
            Search {
                price_out: &price_out,
                given,
                capacity,
                groups,
                part,
                start,
                gap,
                is_out_of_time: &is_out_of_time,
            }
            .solve(goal)
        };
        let above = matches!(goal, LevelGoal::RaiseAbove { .. });
        let gap = limits.tolerance * if above { GAP_ABOVE } else { GAP };
        if let Some(found) = warm.and_then(|start| search(self, &start, gap).ok()) {
            return Ok(found);
        }
        let start = SearchStart::anywhere(&vec![1.0; self.k]);
        let start = by_samples(self.n, SAMPLE_MAX, start, |step, start| {
            let sample = self.sample(step);
            let found = search(&sample, start, SAMPLE_GAP / sample.n as f64).ok()?;
            if above {
                return found.next_prices().map(|prices| start.with_prices(prices));
            }
            // A sample in which no type is scarce has no prices.
            found.has_prices.then(|| SearchStart::of_sample(&found, sample.n))
        });
        search(self, &start, gap)
    }

    /// The part of all workers of each type that the given allocation uses: `[K]`.
    fn given_usage(&self) -> Vec<f64> {
        let mut used = vec![0.0; self.k];
        for (workers, parts) in self.workers.iter().zip(self.given.chunks_exact(self.k)) {
            used.iter_mut().zip(parts).for_each(|(used, part)| *used += (*workers * *part).sum());
        }
        used.iter_mut().zip(&self.per_worker).for_each(|(used, per_worker)| *used *= per_worker);
        used
    }

    /// The throughput that a level requires of a chunk's jobs.
    #[inline]
    fn required(&self, chunk: usize, level: f64) -> F64x8 {
        let above = self.demand[chunk] * level;
        self.base.get(chunk).map_or(above, |base| above + *base)
    }

    /// The level and the prices of one worker of each type, from a point's prices of all workers of each type.
    fn worker_prices(&self, point: &PricePoint) -> WorkerPrices {
        let price = point.price.iter().zip(&self.per_worker).map(|(price, per_worker)| price * per_worker);
        WorkerPrices { price: price.collect(), level: point.level }
    }

    /// The time fractions of a search's mixture, without empty types: `[jobs × types]`.
    fn mixture_times(&self, found: &SearchEnd, n_types: usize) -> Vec<f64> {
        let k = self.k;
        let mut time = vec![0.0; self.n * k];
        for MixedPoint { point, weights } in &found.mixture {
            (self.pass.mix)(self, &self.worker_prices(point), weights, &mut time);
        }
        let given = self.given.chunks_exact(k);
        for (chunk, (part, time)) in given.zip(time.chunks_mut(k * LANES)).enumerate() {
            let weight = found.given[chunk % found.given.len()];
            if weight == 0.0 {
                continue;
            }
            for (i, time) in time.chunks_exact_mut(k).enumerate() {
                time.iter_mut().zip(part).for_each(|(time, part)| *time += weight * part.0[i]);
            }
        }
        without_empty_types(&mut time, k, n_types);
        time
    }

    /// The class times of a search's mixture and the dual prices, in the instance's units.
    fn primal_dual(
        &self,
        singles: &Singles<'_>,
        goal: Goal<'_>,
        found: &SearchEnd,
        units: Units,
    ) -> PrimalDual {
        let instance = singles.instance();
        let n_types = instance.n_types();
        let mut answer = PrimalDual {
            time: self.mixture_times(found, n_types),
            level: if let Goal::Worth { level, .. } = goal { level } else { found.level * units.level },
            worker_price: vec![0.0; n_types],
            time_price: vec![0.0; self.n],
            throughput_price: vec![0.0; self.n],
            passes: found.passes,
        };
        class_times(&mut answer.time, singles);
        let limit_of = |class: usize| singles.limit_above(class, goal.base(class));
        if found.has_prices {
            let at = self.worker_prices(&found.at);
            answer.worker_price.copy_from_slice(&at.price[..n_types]);
            (self.pass.prove)(self, &at, &mut answer.throughput_price, &mut answer.time_price);
            for (price, jobs) in answer.time_price.iter_mut().zip(&instance.multiplicity) {
                *price /= jobs;
            }
        } else if let Some(limiting) = (0..self.n).min_by(|a, b| limit_of(*a).total_cmp(&limit_of(*b))) {
            // The class that limits the level even if it has the cluster to itself proves the bound by itself: its throughput
            // is at most its time times its highest speed.
            answer.throughput_price[limiting] = 1.0;
            answer.time_price[limiting] = singles.fastest(limiting) / instance.multiplicity[limiting];
        }
        let factor = if let Goal::Worth { .. } = goal {
            1.0 / units.objective
        } else {
            let priced = answer.throughput_price.iter().zip(&singles.demand);
            1.0 / priced.map(|(price, demand)| price * demand).sum::<f64>()
        };
        let PrimalDual { worker_price, time_price, throughput_price, .. } = &mut answer;
        for price in worker_price.iter_mut().chain(time_price).chain(throughput_price) {
            *price *= factor;
        }
        answer
    }
}

/// Removes empty types from rows of numbers: `[jobs × K]` becomes `[jobs × n_types]`.
pub(super) fn without_empty_types(rows: &mut Vec<f64>, k: usize, n_types: usize) {
    let n = rows.len() / k;
    for row in (0..n).filter(|_| n_types < k) {
        rows.copy_within(row * k..row * k + n_types, row * n_types);
    }
    rows.truncate(n * n_types);
}

/// Turns time fractions of jobs into class times, the time fractions of a class's jobs added up: `[members × types]`.
fn class_times(time: &mut [f64], singles: &Singles<'_>) {
    let instance = singles.instance();
    for (times, jobs) in time.chunks_exact_mut(instance.n_types()).zip(&instance.multiplicity) {
        for time in times {
            *time = time.max(0.0) * jobs;
        }
    }
}
