//! Nash welfare, the largest Σ weight·log(throughput), by the prices of its Eisenberg-Gale market.
//!
//! The optimum is the equilibrium of a market in which each job spends its weight on workers' time and cannot use
//! more than all of its own time (Eisenberg & Gale, *Consensus of subjective probabilities: the pari-mutuel method*, 1959):
//! prices z of the w`[k]` workers of each type k minimize the convex dual
//!
//!   Σ w`[k]`·z`[k]`  +  Σ_m  max { weight·log(T x) − s z x : x ≥ 0, Σ x ≤ 1 }
//!
//! where job m has throughputs T, needs s workers and spends the fractions x of its time. The dual bounds the optimum at any
//! prices; its gradient is the excess supply of workers. At known prices a job's demand is in closed form
//! ([`choice`](super::choice)). The prices of a sample decide most jobs' choices: jobs with a choice that is optimal everywhere
//! in the price box are summed in closed form, and only undecided ones are evaluated one by one, fewer as the box shrinks. As
//! several choices of a job are mixed at the optimum, demand is smoothed ([`smoothed_demand`](super::smoothed_demand)); the
//! smoothing width goes to 0 and prices follow by Newton's method ([`continuation`](super::continuation)).

use crate::decomposition::certificate::PrimalDual;
use crate::decomposition::choice::{Job, PriceBox, TypePrices};
use crate::decomposition::continuation::{
    Continuation, ContinuationEnd, ContinuationStart, LastWidth, PricesLost,
};
use crate::decomposition::dantzig_wolfe::{Searched, WarmPrices};
use crate::decomposition::demand::{Demand, SampleDemand, price_floor};
use crate::decomposition::sampling::by_samples;
use crate::decomposition::smoothed_demand::UndecidedJob;
use crate::decomposition::tolerances::{
    BOX_GROWTH, BOXES_MAX, EVALUATIONS_BESIDES, EVALUATIONS_PER_JOB, IDLE_WIDTHS_SAMPLE, MOVED, MOVED_GROWTH,
    NASH_SAMPLE_MAX, NASH_TYPES, NASH_TYPES_OF_JOB, SAMPLE_ERROR, SAMPLE_ERROR_MAX, WIDTH_FIRST,
    WIDTH_SAMPLE, WIDTH_SAMPLE_MIN,
};
use crate::decomposition::types::{compiled_for, of_types};
use crate::decomposition::unsolved::Unsolved;
use crate::program::singles::Singles;
use crate::solver::backend::Limits;
use crate::solver::timing::Stopwatch;

/// The market, with passes over its jobs that are compiled for its number of worker types.
struct Market<'a> {
    /// The classes of jobs.
    singles: &'a Singles<'a>,
    /// Weight of all jobs of a class: `[members]`.
    weight: &'a [f64],
    /// The sum of all weights.
    weights: f64,
    /// Workers of each type per unit of all weights, 1 for a type without workers and for an empty type: `[K]`.
    capacity: Vec<f64>,
    /// Passes over undecided jobs so far.
    passes: u32,
    /// The demand of every `step`-th class where prices are in the box of a start; none if one of them runs on no type.
    demand_of_sample: fn(&Market<'_>, usize, &ContinuationStart) -> Option<Box<dyn Demand>>,
    /// Appends the class times and dual prices of all classes at the prices found; none if a class runs on no type.
    allocate: fn(&Market<'_>, &ContinuationEnd, &mut PrimalDual) -> Option<()>,
}

/// The largest sum of `weight`·log(throughput), `[members]`; `warm_prices` are the prices that an earlier search left.
pub(super) fn solve(
    singles: &Singles<'_>,
    weight: &[f64],
    warm_prices: &WarmPrices,
    limits: &Limits,
) -> Result<Searched, Unsolved> {
    let instance = singles.instance();
    let (n, n_types) = (instance.n_members(), instance.n_types());
    let types_of = |class: usize| (0..n_types).filter(|j| singles.runs(class, *j)).count();
    if n_types > NASH_TYPES && (0..n).map(types_of).sum::<usize>() < NASH_TYPES_OF_JOB * n {
        return Err(Unsolved::TooManyTypes);
    }
    let weights: f64 = weight.iter().sum();
    if !(weight.iter().all(|weight| *weight > 0.0) && weights.is_finite()) {
        return Err(Unsolved::Weights);
    }
    let k = compiled_for(n_types).ok_or(Unsolved::TooManyTypes)?;
    let mut capacity = vec![1.0; k];
    for (capacity, workers) in capacity.iter_mut().zip(&instance.capacity) {
        *capacity = if *workers > 0.0 { workers / weights } else { 1.0 };
    }
    let passes = 0;
    let market = of_types!(k, K => {
        let (demand_of_sample, allocate) = (demand_of_sample::<K>, allocate::<K>);
        Some(Market { singles, weight, weights, capacity, passes, demand_of_sample, allocate })
    });
    market.ok_or(Unsolved::TooManyTypes)?.solve(warm_prices, limits)
}

/// A class of a market as one job that needs the workers of all its jobs.
#[inline]
fn job_of_class<const K: usize>(market: &Market<'_>, class: usize) -> Job<K> {
    let instance = market.singles.instance();
    let size = instance.scale_factor[class];
    let row = instance.alone(class);
    let mut speed = [0.0; K];
    for (k, (speed, of)) in speed.iter_mut().zip(row).enumerate() {
        let runs = instance.has_room(size, k) && instance.capacity[k] > 0.0;
        *speed = if runs { *of } else { 0.0 };
    }
    let workers = size * instance.multiplicity[class] / market.weight[class];
    Job { speed, workers, weight: market.weight[class] / market.weights }
}

/// The demand of a sample: see [`Market::demand_of_sample`].
fn demand_of_sample<const K: usize>(
    market: &Market<'_>,
    step: usize,
    start: &ContinuationStart,
) -> Option<Box<dyn Demand>> {
    let n = market.weight.len();
    let classes = (step / 2..n).step_by(step);
    // Each job of the sample has the weight of as many jobs as it represents.
    let stands_for = n as f64 / classes.len() as f64;
    let jobs = classes.map(|class| {
        let job = job_of_class::<K>(market, class);
        Job { weight: job.weight * stands_for, ..job }
    });
    Some(Box::new(SampleDemand::of(jobs, &start.price_box, &start.price)?))
}

/// The allocation at the prices found: see [`Market::allocate`].
fn allocate<const K: usize>(
    market: &Market<'_>,
    found: &ContinuationEnd,
    answer: &mut PrimalDual,
) -> Option<()> {
    let instance = market.singles.instance();
    let n_types = instance.n_types();
    let (place, price_box) = (found.place.fixed(), found.price_box.fixed());
    let (near, at) = (TypePrices::<K>::of(&found.place.price), TypePrices::<K>::of(&market.shifted(found)));
    let mut options = Vec::new();
    for (class, jobs) in instance.multiplicity.iter().enumerate() {
        let (job, weight) = (job_of_class::<K>(market, class), market.weight[class]);
        let sure = job.choose(&near).filter(|choice| job.is_sure(*choice, &price_box));
        let time = match sure {
            Some(choice) => job.time(choice, &at),
            None => UndecidedJob::of(job).time(&place, &price_box, &mut options),
        };
        answer.time.extend(time[..n_types].iter().map(|time| time * jobs));
        let choice = if sure.is_some() { sure } else { job.choose(&at) };
        let (throughput, time) = job.proof(choice?, &at);
        answer.throughput_price.push(throughput * weight);
        answer.time_price.push(time * weight / jobs);
    }
    Some(())
}

/// The relative error of the prices of a sample of this size.
fn sample_error(size: usize) -> f64 {
    (SAMPLE_ERROR / (size as f64).sqrt()).min(SAMPLE_ERROR_MAX)
}

impl Market<'_> {
    /// The prices that a search found, with their shifts: `[K]`.
    fn shifted(&self, found: &ContinuationEnd) -> Vec<f64> {
        (0..self.capacity.len()).map(|k| found.place.shifted(k)).collect()
    }

    /// The start at a width of a search near prices, `[K]`, that have a relative error.
    fn start_around(&self, price: &[f64], error: f64, width: f64) -> ContinuationStart {
        let price_box = PriceBox::around(price, &self.capacity, error);
        let mut start = ContinuationStart { price: price.to_vec(), price_box, width, moved: MOVED };
        self.admit_idle_workers(&mut start);
        start
    }

    /// Makes the start's box include a price of 0 for types that may have idle workers.
    fn admit_idle_workers(&self, start: &mut ContinuationStart) {
        for (k, capacity) in self.capacity.iter().enumerate() {
            if start.price[k] * capacity < IDLE_WIDTHS_SAMPLE * start.width {
                start.price_box.low[k] = 0.0;
            }
        }
    }

    /// The prices of every `step`-th class, from a start, with a wider price box where the start's is too narrow. The search ends
    /// at the width that [`Continuation::follow`] has for `last`. It
    /// ends in at most [`BOXES_MAX`] boxes.
    fn prices_of_sample(
        &mut self,
        step: usize,
        mut start: ContinuationStart,
        last: LastWidth,
        is_out_of_time: &dyn Fn() -> bool,
    ) -> Result<ContinuationEnd, Unsolved> {
        let (mut wider, mut evaluated) = (1.0, 0);
        let evaluated_max = EVALUATIONS_PER_JOB * (self.weight.len() / step) + EVALUATIONS_BESIDES;
        for attempt in 1..=BOXES_MAX {
            let mut continuation = Continuation {
                demand: (self.demand_of_sample)(self, step, &start).ok_or(Unsolved::RunsNowhere)?,
                capacity: &self.capacity,
                price_box: start.price_box.clone(),
                moved: start.moved,
                passes: 0,
                evaluated,
                evaluated_max,
                is_out_of_time,
            };
            let outcome = continuation.follow(&start, last);
            evaluated = continuation.evaluated;
            self.passes += continuation.passes;
            match outcome {
                Ok(found) => return Ok(found),
                Err(PricesLost::Outside(price)) => {
                    wider *= BOX_GROWTH;
                    let floor = price_floor(&price, &self.capacity);
                    let low = price.iter().map(|price| price / wider).collect();
                    let high =
                        price.iter().zip(floor).map(|(price, floor)| (price + floor) * wider).collect();
                    let moved = start.moved * MOVED_GROWTH;
                    start = ContinuationStart { price, price_box: PriceBox { low, high }, moved, ..start };
                    self.admit_idle_workers(&mut start);
                    if attempt + 1 >= BOXES_MAX {
                        let price_box = PriceBox::anywhere(self.capacity.len());
                        start = ContinuationStart { price_box, width: WIDTH_FIRST, ..start };
                    }
                }
                Err(PricesLost::GaveUp(why)) => return Err(why),
            }
        }
        Err(Unsolved::NotConverged)
    }

    /// The optimum and the prices that it leaves for the next search: from the prices that an earlier search left or, where there
    /// are none or that fails, from samples.
    fn solve(mut self, warm_prices: &WarmPrices, limits: &Limits) -> Result<Searched, Unsolved> {
        let clock = Stopwatch::start();
        let is_out_of_time = || limits.is_over(&clock);
        let warm = self.warm_start(warm_prices);
        let known =
            warm.and_then(|start| self.prices_of_sample(1, start, LastWidth::OF_ALL, &is_out_of_time).ok());
        let found = match known {
            Some(found) => found,
            None => self.prices_by_samples(&is_out_of_time)?,
        };
        let warm_prices = WarmPrices { prices: vec![found.place.price.clone()], level: 0.0 };
        Ok(Searched { optimum: self.primal_dual(&found).ok_or(Unsolved::RunsNowhere)?, warm_prices })
    }

    /// The prices of all classes, without knowledge of any: searched from those of a sample, found from those of a smaller one.
    fn prices_by_samples(&mut self, is_out_of_time: &dyn Fn() -> bool) -> Result<ContinuationEnd, Unsolved> {
        let (n, k) = (self.weight.len(), self.capacity.len());
        let price = self.capacity.iter().map(|capacity| 1.0 / (capacity * k as f64)).collect();
        let price_box = PriceBox::anywhere(k);
        let start = ContinuationStart { price, price_box, width: WIDTH_FIRST, moved: MOVED };
        let start = by_samples(n, NASH_SAMPLE_MAX, start, |step, start| {
            let size = n / step;
            let worth_part = WIDTH_SAMPLE / (size as f64).sqrt();
            let last = LastWidth { width: WIDTH_SAMPLE_MIN, worth_part };
            let found = self.prices_of_sample(step, start.clone(), last, is_out_of_time).ok()?;
            Some(self.start_around(&found.place.price, sample_error(size), found.place.width))
        });
        self.prices_of_sample(1, start, LastWidth::OF_ALL, is_out_of_time)
    }

    /// The start of a search from the prices that a similar search left; none if it left none, or if they are of another number
    /// of types.
    fn warm_start(&self, warm_prices: &WarmPrices) -> Option<ContinuationStart> {
        let price = warm_prices.prices.first().filter(|price| price.len() == self.capacity.len())?;
        let n = self.weight.len();
        Some(self.start_around(price, sample_error(n), (WIDTH_SAMPLE / (n as f64).sqrt()).min(WIDTH_FIRST)))
    }

    /// Class times and dual prices at the end of a search, in the instance's units.
    fn primal_dual(&self, found: &ContinuationEnd) -> Option<PrimalDual> {
        let instance = self.singles.instance();
        let (n, n_types) = (instance.n_members(), instance.n_types());
        let priced = self.shifted(found).into_iter().zip(&instance.capacity);
        let mut answer = PrimalDual {
            time: Vec::with_capacity(n * n_types),
            level: 0.0,
            worker_price: priced.map(|(price, workers)| if *workers > 0.0 { price } else { 0.0 }).collect(),
            time_price: Vec::with_capacity(n),
            throughput_price: Vec::with_capacity(n),
            passes: self.passes,
        };
        (self.allocate)(self, found, &mut answer)?;
        let mut used = vec![0.0; n_types];
        for (times, size) in answer.time.chunks_exact(n_types).zip(&instance.scale_factor) {
            used.iter_mut().zip(times).for_each(|(used, time)| *used += size * time);
        }
        // Scale down the times on types of which rounding made the classes use more workers than there are.
        let factor = |(used, workers): (f64, &f64)| if used > 0.0 { (workers / used).min(1.0) } else { 1.0 };
        let factors: Vec<f64> = used.into_iter().zip(&instance.capacity).map(factor).collect();
        for times in answer.time.chunks_exact_mut(n_types) {
            times.iter_mut().zip(&factors).for_each(|(time, factor)| *time *= factor);
        }
        Some(answer)
    }
}
