//! The certificate of an optimum of jobs that share no workers: violation, value and dual bound from the jobs' own numbers.
//!
//! Any prices μ ≥ 0 of workers, τ ≥ 0 of classes' time and λ ≥ 0 of their throughputs bound the objective (Boyd &
//! Vandenberghe, *Convex optimization*, 2004, section 5.1), as [`dual_bound`](crate::solver::certificate::dual_bound) does for
//! any program:
//!
//!   objective  ≤  Σ μ_j w_j + Σ τ_m n_m − Σ λ_m (b_m + t·d_m) + Σ max { c[m,j] y : 0 ≤ y ≤ most[m,j] }
//!
//! with c`[m,j]` = (λ_m + worth_m·by_type_j)·T`[m,j]`/n_m − τ_m − s_m μ_j. Type j has w_j workers; class m has n_m jobs of s_m
//! workers, the throughput T`[m,j]` on type j, and the required throughput b_m + t·d_m at the level t; most`[m,j]` is the most
//! class time that it can have on type j. A level that is raised is itself a variable such as y, with coefficient 1 − Σ λ_m d_m.
//! A logarithm is below its tangents: for any λ_m > 0,
//!
//!   weight_m·log(throughput_m)  ≤  λ_m·throughput_m + weight_m·(log(weight_m / λ_m) − 1)
//!
//! so a sum of logarithms has the constants of its tangents in the bound. The rounding error of the bound, as estimated from
//! the magnitudes of its terms, is added to it.

use crate::program::singles::{Goal, Singles};
use crate::solver::certificate::{AnswerCertificate, OBJECTIVE_FLOOR, TOLERANCE};
use crate::solver::tolerances::SUM_ROUNDING;

/// Class times and the dual prices that bound the objective, in the instance's units.
#[derive(Clone, Debug, Default)]
pub struct PrimalDual {
    /// Class time: `[members × K]`.
    pub time: Vec<f64>,
    /// The level that all classes reach, or rise by above a base; 0 where the goal has no level.
    pub level: f64,
    /// Dual price of a worker of each type: `[K]`.
    pub worker_price: Vec<f64>,
    /// Dual price of class time: `[members]`.
    pub time_price: Vec<f64>,
    /// Dual price of required throughput or, for logarithms, of throughput: `[members]`.
    pub throughput_price: Vec<f64>,
    /// Passes over all jobs.
    pub passes: u32,
}

/// Sums and maxima over the classes.
#[derive(Default)]
struct Sums {
    /// The objective's terms: worth of throughput, or weighted logarithms.
    worth: f64,
    /// The dual bound.
    bound: f64,
    /// The sum of the magnitudes of the dual bound's terms.
    magnitude: f64,
    /// The highest level that every class could reach alone; 0 where the goal has no level.
    level_max: f64,
    /// The demand at the prices of throughput, Σ λ_m d_m.
    priced: f64,
    /// The least level that corresponds to the base of a class with demand.
    base_level: f64,
    /// The largest magnitude that a term of the objective can have.
    term_max: f64,
    /// The largest weight of a logarithm.
    weight_max: f64,
    /// The largest violation of a constraint, relative to the constraint's own size.
    violation: f64,
    /// Workers of each type in use: `[K]`.
    used: Vec<f64>,
}

impl Sums {
    /// Adds a term of the dual bound.
    fn add(&mut self, term: f64) {
        self.bound += term;
        self.magnitude += term.abs();
    }

    /// Counts a constraint that is exceeded by `by`, below 0 where it holds, relative to `scale` or, if that is 0, to 1.
    fn exceeds(&mut self, by: f64, scale: f64) {
        self.violation = self.violation.max(by / if scale > 0.0 { scale } else { 1.0 });
    }
}

impl AnswerCertificate {
    /// The certificate of class times and prices for a goal, in one pass over the classes. Lists of wrong lengths, numbers that
    /// are not finite and prices below 0 have one that is not optimal, with an infinite violation.
    pub fn of_jobs(singles: &Singles<'_>, goal: Goal<'_>, answer: &PrimalDual) -> Self {
        let instance = singles.instance();
        let (n, k) = (instance.n_members(), instance.n_types());
        let prices = [&answer.time_price, &answer.throughput_price, &answer.worker_price];
        let lengths = answer.time.len() == n * k && prices.map(Vec::len) == [n, n, k];
        let numbers = prices.into_iter().flatten().all(|price| price.is_finite() && *price >= 0.0)
            && answer.time.iter().chain([&answer.level]).all(|value| value.is_finite());
        if !lengths || !numbers {
            let (violation_max, gap_relative) = (f64::INFINITY, f64::INFINITY);
            return Self {
                violation_max,
                primal: f64::NAN,
                bound: f64::INFINITY,
                gap_relative,
                optimal: false,
            };
        }
        let level_max = match goal {
            Goal::Level | Goal::Above { .. } | Goal::Worth { .. } => {
                let limits = (0..n).map(|class| singles.limit_above(class, goal.base(class)));
                limits.fold(f64::INFINITY, f64::min).max(0.0)
            }
            Goal::Logarithms(_) => 0.0,
        };
        let mut sums = Sums { used: vec![0.0; k], base_level: f64::INFINITY, level_max, ..Sums::default() };
        for class in 0..n {
            sums.class(singles, goal, answer, class);
        }
        let used = std::mem::take(&mut sums.used);
        for (worker_type, (used, workers)) in used.iter().zip(&instance.capacity).enumerate() {
            sums.exceeds(used - workers, *workers);
            sums.add(answer.worker_price[worker_type] * workers);
        }
        let primal = match goal {
            Goal::Level | Goal::Above { .. } => {
                // The level is a variable between 0 and the highest.
                let reduced = (1.0 - sums.priced).max(0.0) + SUM_ROUNDING * (1.0 + sums.priced);
                sums.add(reduced * level_max);
                sums.term_max = level_max;
                answer.level
            }
            Goal::Worth { level, .. } => {
                sums.add(-sums.priced * level);
                sums.worth
            }
            Goal::Logarithms(of) => {
                sums.add(of.constant);
                sums.worth + of.constant
            }
        };
        let bound = sums.bound + SUM_ROUNDING * sums.magnitude;
        // An error of a level above a base is judged relative to base and level together.
        let base_level = if sums.base_level.is_finite() { sums.base_level } else { 0.0 };
        let size = primal.abs().max(bound.abs()) + base_level;
        let reference = size.max(OBJECTIVE_FLOOR * sums.term_max).max(sums.weight_max);
        let gap_relative = if reference > 0.0 { (bound - primal).abs() / reference } else { 0.0 };
        let optimal = sums.violation <= TOLERANCE && gap_relative <= TOLERANCE;
        Self { violation_max: sums.violation, primal, bound, gap_relative, optimal }
    }
}

impl Sums {
    /// Adds one class.
    fn class(&mut self, singles: &Singles<'_>, goal: Goal<'_>, answer: &PrimalDual, class: usize) {
        let level_max = self.level_max;
        let instance = singles.instance();
        let k = instance.n_types();
        let (jobs, size) = (instance.multiplicity[class], instance.scale_factor[class]);
        let (time_price, throughput_price) = (answer.time_price[class], answer.throughput_price[class]);
        let (worth, by_type, level) = match goal {
            Goal::Level | Goal::Above { .. } => (0.0, &[][..], answer.level),
            Goal::Worth { level, worth, by_type, .. } => (worth[class], by_type, level),
            Goal::Logarithms(_) => (0.0, &[][..], 0.0),
        };
        let given = &answer.time[class * k..(class + 1) * k];
        let (mut time, mut throughput, mut largest) = (0.0, 0.0, 0.0_f64);
        for (worker_type, (speed, given)) in instance.alone(class).iter().zip(given).enumerate() {
            let most = singles.most(class, worker_type);
            self.exceeds((given - most).max(-given), most);
            let per_time = speed / jobs;
            time += given;
            throughput += per_time * given;
            self.used[worker_type] += size * given;
            largest = largest.max(per_time * most);
            let worth = by_type.get(worker_type).map_or(0.0, |of| worth * of);
            self.worth += worth * per_time * given;
            self.term_max = self.term_max.max(worth * per_time * most);
            let (gain, rent) =
                ((throughput_price + worth) * per_time, size * answer.worker_price[worker_type]);
            let reduced = gain - time_price - rent;
            // The rounding error of a reduced cost is added to it.
            self.add((reduced.max(0.0) + SUM_ROUNDING * (gain + time_price + rent)) * most);
        }
        let (demand, base) = (singles.demand[class], goal.base(class));
        self.priced += throughput_price * demand;
        self.base_level = if demand > 0.0 { self.base_level.min(base / demand) } else { self.base_level };
        self.add(time_price * jobs);
        self.add(-throughput_price * base);
        self.exceeds(time - jobs, jobs);
        self.exceeds(base + demand * level - throughput, largest.max(base + demand * level_max));
        if let Goal::Logarithms(of) = goal {
            self.logarithm(of.weight[class], throughput, largest, throughput_price);
        }
    }

    /// Adds the weighted logarithm of a throughput to the objective, and to the bound the constant of its tangent with the slope
    /// of a price of throughput; `largest` is the most throughput on one type.
    fn logarithm(&mut self, weight: f64, throughput: f64, largest: f64, throughput_price: f64) {
        self.worth += weight * throughput.ln();
        self.add(weight * ((weight / throughput_price).ln() - 1.0) + SUM_ROUNDING * weight);
        self.term_max = self.term_max.max(weight * largest.ln().abs());
        self.weight_max = self.weight_max.max(weight);
    }
}
