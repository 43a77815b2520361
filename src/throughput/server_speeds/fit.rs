//! The quality of a model's predictions, and the constants of the process that predict best.

use std::f64::consts::TAU;

use crate::index::ServerId;
use crate::throughput::server_speeds::average::ExponentialAverage;
use crate::throughput::server_speeds::filter::{FilterOptions, SpeedFilter};
use crate::throughput::server_speeds::kernel::{KernelOptions, ServerPlace};

/// A round's measurements, after some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Seconds since the previous record.
    pub elapsed_s: f64,
    /// Servers and the logarithms of their speeds.
    pub measured: Vec<(ServerId, f64)>,
}

/// A model of servers' speeds.
#[derive(Clone, Debug)]
pub enum Predictor {
    /// The Gaussian process.
    Filter(SpeedFilter),
    /// Each server's own average.
    Average(ExponentialAverage),
}

impl Predictor {
    fn elapse(&mut self, elapsed_s: f64) {
        if let Self::Filter(filter) = self {
            filter.predict(elapsed_s);
        }
    }

    fn predictive(&self, server: ServerId) -> (f64, f64) {
        match self {
            Self::Filter(filter) => {
                let noise = filter.options().noise;
                (filter.mean(server), filter.variance(server) + noise * noise)
            }
            Self::Average(average) => average.predictive(server),
        }
    }

    fn observe(&mut self, server: ServerId, log_speed: f64) {
        match self {
            Self::Filter(filter) => filter.observe(server, log_speed),
            Self::Average(average) => average.observe(server, log_speed),
        }
    }
}

/// The quality of predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Mean logarithm of the predicted density at the measurement, in nats.
    pub log_likelihood: f64,
    /// Fraction of measurements in the middle 90 % of their predicted distribution.
    pub coverage_90: f64,
}

/// The half width of the middle 90 % of a normal distribution, in deviations.
const REACH_90: f64 = 1.644_853_626_951_472;

/// Predicts each measurement from all before it; the first `n_warm_up` records are not counted.
pub fn score(mut predictor: Predictor, records: &[Record], n_warm_up: usize) -> Score {
    let (mut sum, mut covered, mut n) = (0.0, 0.0, 0.0_f64);
    for (number, record) in records.iter().enumerate() {
        predictor.elapse(record.elapsed_s);
        for &(server, log_speed) in &record.measured {
            let (mean, variance) = predictor.predictive(server);
            if number >= n_warm_up {
                let square = (log_speed - mean).powi(2);
                sum -= 0.5 * ((TAU * variance).ln() + square / variance);
                covered += f64::from(square <= REACH_90 * REACH_90 * variance);
                n += 1.0;
            }
            predictor.observe(server, log_speed);
        }
    }
    Score { log_likelihood: sum / n.max(1.0), coverage_90: covered / n.max(1.0) }
}

/// The constants under which these records are likeliest: the best of a coarse grid, improved by Nelder and Mead's
/// method in `n_steps` steps.
pub fn fit(servers: &[ServerPlace], records: &[Record], n_steps: usize) -> (FilterOptions, Score) {
    let judge =
        |options: &FilterOptions| score(Predictor::Filter(SpeedFilter::new(servers, *options)), records, 0);
    let mut best: Option<(f64, FilterOptions)> = None;
    for n_steps in [2, 3, 4] {
        for walking in [0.1, 0.4] {
            for deviation in [0.1, 0.3] {
                for drift_s in [3600.0, 6.0 * 3600.0] {
                    for noise in [0.02, 0.1] {
                        let kernel = KernelOptions { length: 0.7, walking, n_steps };
                        let options = FilterOptions { kernel, deviation, drift_s, noise };
                        let found = judge(&options).log_likelihood;
                        if best.is_none_or(|(likelihood, _)| found > likelihood) {
                            best = Some((found, options));
                        }
                    }
                }
            }
        }
    }
    let start = best.map(|(_, options)| options).unwrap_or_default();
    let p = start.kernel.n_steps;
    let cost = |point: &[f64; N]| -judge(&from_point(point, p)).log_likelihood;
    let found = from_point(&nelder_mead(to_point(&start), cost, n_steps), p);
    (found, judge(&found))
}

/// The number of constants: ln ℓ, a's logit within (0, ½), ln σ, ln τ, ln s.
const N: usize = 5;

fn to_point(options: &FilterOptions) -> [f64; N] {
    let share = 2.0 * options.kernel.walking;
    [
        options.kernel.length.ln(),
        (share / (1.0 - share)).ln(),
        options.deviation.ln(),
        options.drift_s.ln(),
        options.noise.ln(),
    ]
}

fn from_point(point: &[f64; N], n_steps: u32) -> FilterOptions {
    let [length, walking, deviation, drift_s, noise] = *point;
    let kernel = KernelOptions { length: length.exp(), walking: 0.5 / (1.0 + (-walking).exp()), n_steps };
    FilterOptions { kernel, deviation: deviation.exp(), drift_s: drift_s.exp(), noise: noise.exp() }
}

/// Nelder and Mead's method (1965): reflect, expand, contract, shrink.
fn nelder_mead(start: [f64; N], cost: impl Fn(&[f64; N]) -> f64, n_steps: usize) -> [f64; N] {
    let mut corners: Vec<(f64, [f64; N])> = vec![(cost(&start), start)];
    for axis in 0..N {
        let mut corner = start;
        corner[axis] += 0.5;
        corners.push((cost(&corner), corner));
    }
    for _ in 0..n_steps {
        corners.sort_by(|one, other| one.0.total_cmp(&other.0));
        let worst = corners[N];
        let mut center = [0.0; N];
        for (_, corner) in &corners[..N] {
            for (sum, value) in center.iter_mut().zip(corner) {
                *sum += value / N as f64;
            }
        }
        let at = |reach: f64| {
            let point: [f64; N] =
                std::array::from_fn(|axis| center[axis] + reach * (worst.1[axis] - center[axis]));
            (cost(&point), point)
        };
        let reflected = at(-1.0);
        let next = if reflected.0 < corners[0].0 {
            let expanded = at(-2.0);
            if expanded.0 < reflected.0 { expanded } else { reflected }
        } else if reflected.0 < corners[N - 1].0 {
            reflected
        } else {
            at(if reflected.0 < worst.0 { -0.5 } else { 0.5 })
        };
        if next.0 < worst.0 {
            corners[N] = next;
            continue;
        }
        let best = corners[0].1;
        for corner in &mut corners[1..] {
            let point = std::array::from_fn(|axis| best[axis] + 0.5 * (corner.1[axis] - best[axis]));
            *corner = (cost(&point), point);
        }
    }
    corners.sort_by(|one, other| one.0.total_cmp(&other.0));
    corners[0].1
}
