//! Random programs with the structure of allocations, from a seed. Shared by tests and benches.

use apportion::program::{Affine, Cone, ConeKind, Program, Range, Sense};

/// SplitMix64 (Steele, Lea & Flood, OOPSLA '14): enough for instances, and the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Uniform in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Log-uniform between two positive numbers.
    pub(crate) fn log_between(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.unit() * (high / low).ln()).exp()
    }

    /// One of these numbers, each with the same probability.
    pub(crate) fn one_of(&mut self, of: &[f64]) -> f64 {
        of[self.below(of.len())]
    }

    /// A position below `count`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction of a small count"
    )]
    pub(crate) fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }
}

/// Numbers of jobs and workers.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    /// Number of workers of each type: `[K]`.
    pub(crate) capacity: Vec<f64>,
    /// Throughput of each job on each type, steps/s; 0 where it cannot run: `[n][K]`.
    pub(crate) throughput: Vec<Vec<f64>>,
    /// Number of workers that each job needs at once: `[n]`.
    pub(crate) scale_factor: Vec<f64>,
    /// Weight of each job: `[n]`.
    pub(crate) weight: Vec<f64>,
    /// Remaining steps of each job: `[n]`.
    pub(crate) steps: Vec<f64>,
}

impl Numbers {
    /// Numbers of `n` jobs on `k` types, with a part `zeros` of throughputs zero; demand is 0.3 to 8 times the supply.
    pub(crate) fn draw(draws: &mut Draws, n: usize, k: usize, zeros: f64) -> Self {
        let speed: Vec<f64> = (0..k).map(|_| draws.log_between(0.2, 1.0)).collect();
        let mut numbers = Self {
            capacity: Vec::new(),
            throughput: Vec::new(),
            scale_factor: Vec::new(),
            weight: Vec::new(),
            steps: Vec::new(),
        };
        for _ in 0..n {
            let base = draws.log_between(0.1, 100.0);
            let rates = speed.iter().map(|speed| {
                let heterogeneity = draws.log_between(0.3, 3.0);
                if draws.unit() < zeros { 0.0 } else { base * speed * heterogeneity }
            });
            numbers.throughput.push(rates.collect());
            numbers.scale_factor.push(draws.one_of(&[1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 8.0]));
            numbers.weight.push(draws.one_of(&[1.0, 1.0, 1.0, 2.0, 5.0, 0.1]));
            numbers.steps.push(draws.log_between(1e3, 1e6).round());
        }
        let demand: f64 = numbers.scale_factor.iter().sum();
        let supply = demand / draws.log_between(0.3, 8.0);
        numbers.capacity = (0..k).map(|_| (supply / k as f64 * draws.log_between(0.5, 2.0)).ceil()).collect();
        numbers
    }

    /// Shares that exist: (job, type), in the order of their columns.
    fn shares(&self) -> Vec<(usize, usize)> {
        let all = (0..self.throughput.len()).flat_map(|m| (0..self.capacity.len()).map(move |j| (m, j)));
        all.filter(|&(m, j)| self.throughput[m][j] > 0.0 && self.scale_factor[m] <= self.capacity[j])
            .collect()
    }

    /// Shares of each job with its throughput there: (column, steps/s); the shares are the first columns.
    fn rates(&self) -> Vec<Vec<(usize, f64)>> {
        let mut rates = vec![Vec::new(); self.throughput.len()];
        for (column, &(m, j)) in self.shares().iter().enumerate() {
            rates[m].push((column, self.throughput[m][j]));
        }
        rates
    }

    /// Adds the polytope after `first` existing columns: shares, time rows, capacity rows.
    fn push_polytope(&self, program: &mut Program, first: usize, cost: impl Fn(usize, usize) -> f64) {
        let share = Range { lower: 0.0, upper: 1.0 };
        let shares = self.shares();
        let (mut time, mut held) =
            (vec![Vec::new(); self.throughput.len()], vec![Vec::new(); self.capacity.len()]);
        for (position, &(m, j)) in shares.iter().enumerate() {
            program.push_column(Range::NON_NEGATIVE, share, cost(m, j));
            time[m].push((first + position, 1.0));
            held[j].push((first + position, self.scale_factor[m]));
        }
        for terms in time {
            program.push_row(Range::at_most(1.0), terms);
        }
        for (terms, &workers) in held.into_iter().zip(&self.capacity) {
            program.push_row(Range::at_most(workers), terms);
        }
    }

    /// Program max t with t ≤ factor(m)·thr(m) for every job: max-min fairness, or makespan with factor 1/steps.
    pub(crate) fn max_min(&self, factor: impl Fn(usize) -> f64) -> Program {
        let mut program = Program::new(Sense::Maximize);
        program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 1.0);
        self.push_polytope(&mut program, 1, |_, _| 0.0);
        let shares = self.shares();
        let mut terms = vec![vec![(0, 1.0)]; self.throughput.len()];
        for (position, &(m, j)) in shares.iter().enumerate() {
            terms[m].push((1 + position, -factor(m) * self.throughput[m][j]));
        }
        for terms in terms {
            program.push_row(Range::at_most(0.0), terms);
        }
        program
    }

    /// Factor of max-min fairness: s / (weight · throughput under an equal share).
    pub(crate) fn fairness(&self, m: usize) -> f64 {
        let workers: f64 = self.capacity.iter().sum();
        let equal: f64 =
            self.throughput[m].iter().zip(&self.capacity).map(|(rate, w)| rate * w / workers).sum();
        if equal > 0.0 { self.scale_factor[m] / (self.weight[m] * equal) } else { 1.0 }
    }

    /// Program max Σ thr.
    pub(crate) fn max_sum(&self) -> Program {
        let mut program = Program::new(Sense::Maximize);
        self.push_polytope(&mut program, 0, |m, j| self.throughput[m][j]);
        program
    }

    /// Program min Σ s·X (worker time) in which every job has a part `floor` of its best isolated throughput.
    pub(crate) fn min_work(&self, floor: f64) -> Program {
        let mut program = Program::new(Sense::Minimize);
        self.push_polytope(&mut program, 0, |m, _| self.scale_factor[m]);
        for terms in self.rates() {
            let best = terms.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
            program.push_row(Range::at_least(floor * best), terms);
        }
        program
    }

    /// Program max Σ weight·log thr over the jobs that can run, in columns after the shares, together with these jobs.
    pub(crate) fn proportional(&self) -> (Program, Vec<usize>) {
        let mut program = Program::new(Sense::Maximize);
        self.push_polytope(&mut program, 0, |_, _| 0.0);
        let mut jobs = Vec::new();
        for (m, terms) in self.rates().into_iter().enumerate() {
            if terms.is_empty() {
                continue;
            }
            jobs.push(m);
            let column = program.push_column(Range::FREE, Range::FREE, self.weight[m]);
            program.cones.push(Cone {
                kind: ConeKind::Exponential,
                entries: vec![
                    Affine { constant: 0.0, terms: vec![(column, 1.0)] },
                    Affine { constant: 1.0, terms: Vec::new() },
                    Affine { constant: 0.0, terms },
                ],
            });
        }
        (program, jobs)
    }
}
