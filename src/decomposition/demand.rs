//! Total demand of jobs at prices, and Newton's step for the dual of the Eisenberg-Gale program.
//!
//! A *choice* of a job is the set of worker types that it uses, and whether it uses them all the time. A job is *decided* if one
//! choice is optimal for it at all prices in the price box. Decided jobs are summed by their choices: the weights
//! of jobs that use one type for part of their time (*spare*), the workers of jobs that use one type for all of it, and both
//! for jobs on two types, whose fraction on each follows from the difference of two prices. Only undecided jobs are
//! evaluated one by one.

use std::cmp::Ordering;

use crate::decomposition::choice::{Choice, Job, PriceBox, TypePrices};
use crate::decomposition::smoothed_demand::{OptionOfJob, SmoothedPrices, Spending, UndecidedJob};
use crate::decomposition::tolerances::PRICE_FLOOR;

/// The demand of a sample of jobs, for code that is compiled once for all numbers of types.
pub(super) trait Demand {
    /// The number of undecided jobs.
    fn undecided(&self) -> usize;

    /// Fixes the choices of jobs that are optimal at all prices in a price box. A choice is that of the job at `price`, `[K]`, in
    /// the box, which lies within every earlier box.
    fn decide_in(&mut self, price_box: &PriceBox<Vec<f64>>, price: &[f64]);

    /// The spending of all jobs at prices.
    fn spending(&mut self, place: &SmoothedPrices<Vec<f64>>) -> TotalSpending;
}

/// [`Spending`] with lists instead of arrays.
pub(super) struct TotalSpending {
    /// Spending on each type in parts of all weights: `[K]`.
    on: Vec<f64>,
    /// The second derivatives of all jobs' smoothed values, below and on the diagonal: `[K × K]`.
    slope: Vec<f64>,
}

/// The demand of a sample in code for K types: decided jobs are summed, undecided ones listed.
#[derive(Clone, Debug)]
pub(super) struct SampleDemand<const K: usize> {
    /// Sum of the weights of jobs that use a type for part of their time.
    spare: [f64; K],
    /// Workers that decided jobs use whatever the prices in the box, per unit of all weights; below 0 where the part that
    /// depends on prices, by `between`, is larger than the whole.
    taken: [f64; K],
    /// Sum of the weights of jobs on two types: `[fast][slow]`.
    between: [[f64; K]; K],
    /// Undecided jobs with spare time everywhere in the price box: only their types are undecided.
    undecided_spare: Vec<UndecidedJob<K>>,
    /// The other undecided jobs.
    undecided: Vec<UndecidedJob<K>>,
    /// A buffer for the options of one job.
    options: Vec<OptionOfJob>,
}

/// Newton's step.
pub(super) struct NewtonStep {
    /// Relative change of each price: `[K]`.
    pub(super) by: Vec<f64>,
    /// Minus the derivative of the dual objective, with its barrier, with respect to a relative change of each price: `[K]`. It
    /// is the worth of workers that are demanded in excess of those that there are.
    pub(super) falls: Vec<f64>,
}

/// The floor for the size of each price, at which all workers of the type are worth the part `PRICE_FLOOR` of the largest worth
/// of a type's workers: `[K]`.
pub(super) fn price_floor(price: &[f64], capacity: &[f64]) -> Vec<f64> {
    let worth = price.iter().zip(capacity).map(|(price, capacity)| price * capacity);
    let most = worth.fold(0.0_f64, f64::max);
    capacity.iter().map(|capacity| PRICE_FLOOR * most / capacity).collect()
}

impl PriceBox<Vec<f64>> {
    /// The box of all prices.
    pub(super) fn anywhere(types: usize) -> Self {
        Self { low: vec![0.0; types], high: vec![f64::INFINITY; types] }
    }

    /// The box about prices, `[K]`, each of which may be off by the part `off` of the sum of itself and its floor.
    pub(super) fn around(price: &[f64], capacity: &[f64], off: f64) -> Self {
        let floor = price_floor(price, capacity);
        let by = |k: usize| off * (price[k] + floor[k]);
        let types = 0..price.len();
        Self {
            low: types.clone().map(|k| (price[k] - by(k)).max(0.0)).collect(),
            high: types.map(|k| price[k] + by(k)).collect(),
        }
    }
}

impl<const K: usize> SampleDemand<K> {
    /// The demand of jobs where prices are in a box and near `price`; none if a job runs on no type.
    pub(super) fn of(
        jobs: impl Iterator<Item = Job<K>>,
        price_box: &PriceBox<Vec<f64>>,
        price: &[f64],
    ) -> Option<Self> {
        let mut demand = Self {
            spare: [0.0; K],
            taken: [0.0; K],
            between: [[0.0; K]; K],
            undecided_spare: Vec::new(),
            undecided: Vec::new(),
            options: Vec::new(),
        };
        let (price_box, prices) = (price_box.fixed(), TypePrices::of(price));
        for job in jobs {
            let choice = job.choose(&prices)?;
            if job.is_sure(choice, &price_box) {
                demand.add_decided(&job, choice);
            } else if job.has_spare(&price_box) {
                demand.undecided_spare.push(UndecidedJob::of(job));
            } else {
                demand.undecided.push(UndecidedJob::of(job));
            }
        }
        demand.merge_alike();
        Some(demand)
    }

    /// Adds a decided job by its choice.
    #[inline]
    fn add_decided(&mut self, job: &Job<K>, choice: Choice) {
        let workers = job.weight * job.workers;
        match choice {
            Choice::Spare(k) => self.spare[k] += job.weight,
            Choice::All(k) => self.taken[k] += workers,
            Choice::Both(slow, fast) => {
                let ratio = job.speed[slow] / (job.speed[fast] - job.speed[slow]);
                self.between[fast][slow] += job.weight;
                self.taken[slow] += workers * (1.0 + ratio);
                self.taken[fast] -= workers * ratio;
            }
        }
    }

    /// Merges undecided jobs that have spare time and the same throughputs into one: they use the same types.
    fn merge_alike(&mut self) {
        let rows: Vec<f64> = self.undecided_spare.iter().flat_map(|undecided| undecided.job.speed).collect();
        let mut merged: Vec<UndecidedJob<K>> = Vec::new();
        for at in order_of_rows(&rows, K) {
            let next = &self.undecided_spare[at].job;
            match merged.last_mut().map(|last| &mut last.job) {
                Some(last) if compare_rows(&last.speed, &next.speed).is_eq() => {
                    // Each of these jobs has spare time wherever the one with the fewest workers has.
                    last.weight += next.weight;
                    last.workers = last.workers.min(next.workers);
                }
                _ => merged.push(self.undecided_spare[at]),
            }
        }
        self.undecided_spare = merged;
    }
}

/// The lexicographic order of two rows of numbers.
fn compare_rows(one: &[f64], other: &[f64]) -> Ordering {
    let orders = one.iter().zip(other).map(|(one, other)| one.total_cmp(other));
    orders.fold(Ordering::Equal, Ordering::then)
}

/// The positions of the rows of a table in lexicographic order; equal rows are in their own order.
fn order_of_rows(rows: &[f64], width: usize) -> Vec<usize> {
    let row = |at: usize| &rows[at * width..(at + 1) * width];
    let mut order: Vec<usize> = (0..rows.len() / width).collect();
    order.sort_by(|one, other| compare_rows(row(*one), row(*other)));
    order
}

impl<const K: usize> Demand for SampleDemand<K> {
    fn undecided(&self) -> usize {
        self.undecided.len() + self.undecided_spare.len()
    }

    fn decide_in(&mut self, price_box: &PriceBox<Vec<f64>>, price: &[f64]) {
        let (price_box, prices) = (price_box.fixed(), TypePrices::of(price));
        let spare = std::mem::take(&mut self.undecided_spare);
        for undecided in spare.into_iter().chain(std::mem::take(&mut self.undecided)) {
            let job = &undecided.job;
            match job.choose(&prices).filter(|choice| job.is_sure(*choice, &price_box)) {
                Some(choice) => self.add_decided(job, choice),
                None if job.has_spare(&price_box) => self.undecided_spare.push(undecided),
                None => self.undecided.push(undecided),
            }
        }
    }

    fn spending(&mut self, place: &SmoothedPrices<Vec<f64>>) -> TotalSpending {
        let place = place.fixed();
        let mut sum = Spending::NONE;
        for undecided in &self.undecided_spare {
            undecided.add_spending_of_spare(&place, &mut sum);
        }
        for undecided in &self.undecided {
            undecided.add_spending(&place, &mut self.options, &mut sum);
        }
        let at = |k: usize| place.price[k] * (1.0 + place.shift[k]);
        for k in 0..K {
            sum.on[k] += self.spare[k] / (1.0 + place.shift[k]) + self.taken[k] * place.price[k];
            sum.slope[k][k] += self.spare[k];
            for j in (0..K).filter(|j| self.between[k][*j] > 0.0) {
                let (weight, dearer) = (self.between[k][j], at(k) - at(j));
                let bend = [place.price[j] / dearer, place.price[k] / dearer];
                sum.on[k] += weight * bend[1];
                sum.on[j] -= weight * bend[0];
                sum.slope[k][k] += weight * bend[1] * bend[1];
                sum.slope[j][j] += weight * bend[0] * bend[0];
                sum.slope[k.max(j)][k.min(j)] -= weight * bend[0] * bend[1];
            }
        }
        TotalSpending { on: sum.on.to_vec(), slope: sum.slope.as_flattened().to_vec() }
    }
}

/// Newton's step from prices of the smoothed dual, to which a barrier −μ/K·Σ log z of the smoothing width μ is added; none if the
/// second derivatives are singular.
pub(super) fn newton_step(
    demand: &mut dyn Demand,
    capacity: &[f64],
    place: &SmoothedPrices<Vec<f64>>,
) -> Option<NewtonStep> {
    let n = capacity.len();
    let TotalSpending { mut on, mut slope } = demand.spending(place);
    let barrier = place.width / n as f64;
    for k in 0..n {
        slope[k * n + k] += barrier;
        on[k] += barrier - capacity[k] * place.price[k];
    }
    let by = solve_positive_definite(slope, on.clone()).filter(|by| by.iter().all(|by| by.is_finite()))?;
    Some(NewtonStep { by, falls: on })
}

/// The solution of a symmetric positive definite system by Cholesky's method; the matrix, `[n × n]`, is given below and on the
/// diagonal, and the right-hand side is `[n]`. None if a pivot is not positive and finite.
fn solve_positive_definite(mut matrix: Vec<f64>, mut side: Vec<f64>) -> Option<Vec<f64>> {
    let n = side.len();
    for k in 0..n {
        let (above, row) = matrix.split_at_mut(k * n);
        for j in 0..k {
            let known: f64 = (0..j).map(|i| row[i] * above[j * n + i]).sum();
            row[j] = (row[j] - known) / above[j * n + j];
        }
        let known: f64 = (0..k).map(|i| row[i] * row[i]).sum();
        // The floor keeps rounding from making the matrix singular.
        let pivot = (row[k] - known).max(1e-14 * row[k]);
        if !(pivot > 0.0 && pivot.is_finite()) {
            return None;
        }
        row[k] = pivot.sqrt();
        let known: f64 = (0..k).map(|i| row[i] * side[i]).sum();
        side[k] = (side[k] - known) / row[k];
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|i| matrix[i * n + k] * side[i]).sum();
        side[k] = (side[k] - known) / matrix[k * n + k];
    }
    Some(side)
}
