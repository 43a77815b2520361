//! The certificate of jobs alone on worker types: violation, value and dual bound from their own numbers.
//!
//! Any prices μ ≥ 0 of workers, τ ≥ 0 of members' time and λ ≥ 0 of their throughputs bound the objective (Boyd &
//! Vandenberghe, section 5.1), as [`dual_bound`](crate::solver::certificate::dual_bound) has it of any program:
//!
//!   wanted  ≤  Σ μ_j w_j + Σ τ_m n_m − Σ λ_m (b_m + t·d_m) + Σ max { c[m,j] y : 0 ≤ y ≤ most[m,j] }
//!
//! with c`[m,j]` = (λ_m + worth_m·by_type_j)·T`[m,j]`/n_m − τ_m − s_m μ_j; a level that is raised is itself such a variable, of
//! coefficient 1 − Σ λ_m d_m. Logarithms that are added up are below their tangents: for any λ_m > 0,
//!
//!   weight_m·log(throughput_m)  ≤  λ_m·throughput_m + weight_m·(log(weight_m / λ_m) − 1)
//!
//! and the constants of those are what the bound has more. The estimated rounding error of the sum is added to it.

use crate::program::singles::{Goal as Wanted, Singles as Sharing};
use crate::solver::certificate::{Certificate, OBJECTIVE_FLOOR, TOLERANCE};

/// Rounding of a sum, relative to the sum of magnitudes.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Class times, and the dual prices that bound how good any could be.
#[derive(Clone, Debug, Default)]
pub struct PrimalDual {
    /// Class time: [members × K].
    pub time: Vec<f64>,
    /// The level that all reach; 0 where nothing is demanded.
    pub level: f64,
    /// What is wanted changes by this per worker more: `[K]`.
    pub worker_price: Vec<f64>,
    /// Per unit of class time more: `[members]`.
    pub time_price: Vec<f64>,
    /// By this less per unit of throughput asked for, or more per unit had, where logarithms of throughputs are wanted: `[members]`.
    pub throughput_price: Vec<f64>,
    /// Sweeps over all subproblems.
    pub asked: u32,
}

/// Sums of one pass over the members.
#[derive(Default)]
struct Sums {
    worth: f64,
    /// Of the bound, and of the magnitudes of its terms.
    bound: f64,
    magnitude: f64,
    /// Σ λ d.
    priced: f64,
    /// The least level at which members that demand something would have what they do at a level of zero.
    had: f64,
    /// The largest term of the objective.
    term_max: f64,
    /// The largest weight of a logarithm.
    weight_max: f64,
    violation: f64,
    /// Workers of each type: `[K]`.
    used: Vec<f64>,
}

impl Sums {
    fn add(&mut self, term: f64) {
        self.bound += term;
        self.magnitude += term.abs();
    }

    fn exceeds(&mut self, by: f64, scale: f64) {
        self.violation = self.violation.max(by / if scale > 0.0 { scale } else { 1.0 });
    }
}

impl Certificate {
    /// Certifies class times and prices from the members' own numbers, in one pass over them.
    pub fn of_jobs(sharing: &Sharing<'_>, wanted: Wanted<'_>, shares: &PrimalDual) -> Self {
        let instance = sharing.instance();
        let (n, k) = (instance.n_members(), instance.n_types());
        let prices = [&shares.time_price, &shares.throughput_price, &shares.worker_price];
        let lengths = shares.time.len() == n * k && prices.map(Vec::len) == [n, n, k];
        let numbers = prices.into_iter().flatten().all(|price| price.is_finite() && *price >= 0.0)
            && shares.time.iter().chain([&shares.level]).all(|value| value.is_finite());
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
        let level_max = match wanted {
            Wanted::Level | Wanted::Above { .. } | Wanted::Worth { .. } => {
                let limits = (0..n).map(|member| sharing.limit_above(member, wanted.base(member)));
                limits.fold(f64::INFINITY, f64::min).max(0.0)
            }
            Wanted::Logarithms(_) => 0.0,
        };
        let mut sums = Sums { used: vec![0.0; k], had: f64::INFINITY, ..Sums::default() };
        for member in 0..n {
            sums.member(sharing, wanted, shares, (member, level_max));
        }
        let used = std::mem::take(&mut sums.used);
        for (worker_type, (used, workers)) in used.iter().zip(&instance.capacity).enumerate() {
            sums.exceeds(used - workers, *workers);
            sums.add(shares.worker_price[worker_type] * workers);
        }
        let primal = match wanted {
            Wanted::Level | Wanted::Above { .. } => {
                // (the level is a variable between 0 and the highest)
                let left = (1.0 - sums.priced).max(0.0) + ROUNDING * (1.0 + sums.priced);
                sums.add(left * level_max);
                sums.term_max = level_max;
                shares.level
            }
            Wanted::Worth { level, .. } => {
                sums.add(-sums.priced * level);
                sums.worth
            }
            Wanted::Logarithms(of) => {
                sums.add(of.constant);
                sums.worth + of.constant
            }
        };
        let bound = sums.bound + ROUNDING * sums.magnitude;
        // (a level above what members have is as exact as what they have with it)
        let had = if sums.had.is_finite() { sums.had } else { 0.0 };
        let size = primal.abs().max(bound.abs()) + had;
        let reference = size.max(OBJECTIVE_FLOOR * sums.term_max).max(sums.weight_max);
        let gap_relative = if reference > 0.0 { (bound - primal).abs() / reference } else { 0.0 };
        let optimal = sums.violation <= TOLERANCE && gap_relative <= TOLERANCE;
        Self { violation_max: sums.violation, primal, bound, gap_relative, optimal }
    }
}

impl Sums {
    fn member(
        &mut self,
        sharing: &Sharing<'_>,
        wanted: Wanted<'_>,
        shares: &PrimalDual,
        (member, level_max): (usize, f64),
    ) {
        let instance = sharing.instance();
        let k = instance.n_types();
        let (jobs, size) = (instance.multiplicity[member], instance.scale_factor[member]);
        let (time_price, throughput_price) = (shares.time_price[member], shares.throughput_price[member]);
        let (worth, by_type, level) = match wanted {
            Wanted::Level | Wanted::Above { .. } => (0.0, &[][..], shares.level),
            Wanted::Worth { level, worth, by_type, .. } => (worth[member], by_type, level),
            Wanted::Logarithms(_) => (0.0, &[][..], 0.0),
        };
        let given = &shares.time[member * k..(member + 1) * k];
        let (mut time, mut throughput, mut largest) = (0.0, 0.0, 0.0_f64);
        for (worker_type, (speed, given)) in instance.alone(member).iter().zip(given).enumerate() {
            let most = sharing.most(member, worker_type);
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
                ((throughput_price + worth) * per_time, size * shares.worker_price[worker_type]);
            let reduced = gain - time_price - rent;
            // (what is rounded off a reduced cost counts for it)
            self.add((reduced.max(0.0) + ROUNDING * (gain + time_price + rent)) * most);
        }
        let (asked, base) = (sharing.demand[member], wanted.base(member));
        self.priced += throughput_price * asked;
        self.had = if asked > 0.0 { self.had.min(base / asked) } else { self.had };
        self.add(time_price * jobs);
        self.add(-throughput_price * base);
        self.exceeds(time - jobs, jobs);
        self.exceeds(base + asked * level - throughput, largest.max(base + asked * level_max));
        if let Wanted::Logarithms(of) = wanted {
            self.logarithm(of.weight[member], (throughput, largest), throughput_price);
        }
    }

    /// The logarithm of a throughput, which may be the largest, at a price of throughput.
    fn logarithm(&mut self, weight: f64, (throughput, largest): (f64, f64), throughput_price: f64) {
        self.worth += weight * throughput.ln();
        self.add(weight * ((weight / throughput_price).ln() - 1.0) + ROUNDING * weight);
        self.term_max = self.term_max.max(weight * largest.ln().abs());
        self.weight_max = self.weight_max.max(weight);
    }
}
