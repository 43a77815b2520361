//! Shares of rounds by a linear program, rounded by priorities: allocation policies for worlds in which jobs have several sizes.
//!
//! Job j has a column for each of its sizes c; x\[j,c\] is the fraction of rounds in which it has that size:
//!
//!   Σ_c x\[j,c\] ≤ 1                              for every job j
//!   Σ_{j,c} x\[j,c\] · needs\[c,r\] ≤ total\[r\]      for every resource r
//!
//! The [`Goal`] is maximized. A round goes to sizes by priority, as in Gavel's mechanism (OSDI 2020, §5): x over the part of the
//! rounds since the job's arrival in which it had this size. The true speeds of the world are known: an oracle, as Optimus is.

use std::ops;

use crate::world::state::World;
use apportion::index::{Id, JobId};
use apportion::program::{Program, Range, Sense};
use apportion::solver::registry::default_chain;
use apportion::solver::{Limits, solve_certified};

/// The objective that shares maximize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The smallest speed over jobs, each relative to the job's fastest; then the sum of relative speeds.
    LeastSpeed,
    /// The sum over jobs of speed over remaining work, which favors jobs about to end.
    Completions,
}

/// One size of a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Size<T> {
    /// The world's description of the size.
    pub(crate) what: T,
    /// Amounts of each resource that the size takes: [resource].
    pub(crate) needs: Vec<f64>,
    /// Speed, in work per second.
    pub(crate) per_s: f64,
}

/// The sizes that no other size dominates in needs and speed; of equal sizes, the first.
pub(crate) fn efficient<T>(mut all: Vec<Size<T>>) -> Vec<Size<T>> {
    let no_worse = |one: &Size<T>, other: &Size<T>| {
        one.per_s >= other.per_s && one.needs.iter().zip(&other.needs).all(|(one, other)| one <= other)
    };
    let beaten = |at: usize| {
        let mut others = all.iter().enumerate().filter(|(other, _)| *other != at);
        others.any(|(other, size)| no_worse(size, &all[at]) && (other < at || !no_worse(&all[at], size)))
    };
    let mut is_kept = (0..all.len()).map(|at| !beaten(at)).collect::<Vec<_>>().into_iter();
    all.retain(|_| is_kept.next().unwrap_or(false));
    all
}

/// The columns of one job, one for each size.
#[derive(Clone, Debug)]
struct Columns {
    job: JobId,
    span: ops::Range<usize>,
}

/// Shares of a world's rounds, and the sizes that jobs have received.
#[derive(Clone, Debug)]
pub(crate) struct Shares<T> {
    goal: Goal,
    /// Sizes of each job type, made at the first job of the type: [job type][size].
    sizes: Vec<Vec<Size<T>>>,
    /// Rounds in which each job had each size: [job][size].
    received: Vec<Vec<u32>>,
}

/// Jobs with their sizes in a round, by priority; and jobs without a size.
pub(crate) type Handed<T> = (Vec<(JobId, T)>, Vec<JobId>);

impl<T: Copy> Shares<T> {
    /// Shares before any round.
    pub(crate) fn new(goal: Goal) -> Self {
        Self { goal, sizes: Vec::new(), received: Vec::new() }
    }

    /// The sizes of jobs in this round: at most one size a job, by priority, within `total` of each resource. `sizes_of` gives the
    /// sizes of a job's type.
    pub(crate) fn hand_out(
        &mut self,
        world: &World,
        total: &[f64],
        sizes_of: impl Fn(JobId) -> Vec<Size<T>>,
    ) -> Handed<T> {
        if world.round() == 0 {
            self.received.clear();
        }
        self.received.resize(world.n_jobs(), Vec::new());
        for &job in world.active() {
            let job_type = world.job(job).job_type.index();
            if self.sizes.len() <= job_type {
                self.sizes.resize_with(job_type + 1, Vec::new);
            }
            if self.sizes[job_type].is_empty() {
                self.sizes[job_type] = sizes_of(job);
            }
            self.received[job.index()].resize(self.sizes[job_type].len(), 0);
        }
        let order = self.by_priority(world, total);
        let mut left = total.to_vec();
        let mut served = vec![false; world.n_jobs()];
        let mut wanted = Vec::new();
        for (job, size) in order {
            let Size { what, needs, .. } = &self.sizes[world.job(job).job_type.index()][size];
            if served[job.index()] || left.iter().zip(needs).any(|(left, needs)| needs > left) {
                continue;
            }
            for (left, needs) in left.iter_mut().zip(needs) {
                *left -= needs;
            }
            served[job.index()] = true;
            self.received[job.index()][size] += 1;
            wanted.push((job, *what));
        }
        (wanted, world.active().iter().copied().filter(|job| !served[job.index()]).collect())
    }

    fn sizes(&self, world: &World, job: JobId) -> &[Size<T>] {
        &self.sizes[world.job(job).job_type.index()]
    }

    /// (job, size) of every share above [`SHARE_MIN`], by descending priority, ties by arrival and size.
    fn by_priority(&self, world: &World, total: &[f64]) -> Vec<(JobId, usize)> {
        let mut jobs = Vec::with_capacity(world.active().len());
        let mut n_columns = 0;
        for &job in world.active() {
            let n_sizes = self.sizes(world, job).len();
            jobs.push(Columns { job, span: n_columns..n_columns + n_sizes });
            n_columns += n_sizes;
        }
        let shares = self.optimum(world, &jobs, (n_columns, total));
        let mut order = Vec::new();
        for Columns { job, span } in jobs {
            let received = &self.received[job.index()];
            let rounds = (world.now_s() - world.job(job).arrival_s) / world.rules().round_s + 0.5;
            for (size, share) in shares[span].iter().enumerate().filter(|(_, share)| **share > SHARE_MIN) {
                let part = (f64::from(received[size]) + 0.5) / rounds;
                order.push((share / part, job, size));
            }
        }
        order.sort_by(|one, other| other.0.total_cmp(&one.0));
        order.into_iter().map(|(_, job, size)| (job, size)).collect()
    }

    /// Optimal shares by column; all 0 if no backend certifies a solution, which has not been seen to happen.
    fn optimum(&self, world: &World, jobs: &[Columns], (n_columns, total): (usize, &[f64])) -> Vec<f64> {
        let mut program = self.program(world, jobs, total);
        let Some(mut shares) = solved(&program) else { return vec![0.0; n_columns] };
        if self.goal == Goal::LeastSpeed {
            let level = n_columns;
            program.columns[level].lower = shares[level] * (1.0 - LEVEL_SLACK);
            program.cost[level] = 0.0;
            for Columns { job, span } in jobs {
                for (column, part) in span.clone().zip(parts_of_fastest(self.sizes(world, *job))) {
                    program.cost[column] = part;
                }
            }
            shares = solved(&program).unwrap_or(shares);
        }
        shares.truncate(n_columns);
        shares
    }

    /// The program of the first optimum: its columns are the jobs' sizes, and then the level if the goal has one.
    fn program(&self, world: &World, jobs: &[Columns], total: &[f64]) -> Program {
        let share = Range { lower: 0.0, upper: 1.0 };
        let mut program = Program::new(Sense::Maximize);
        let mut resources: Vec<Vec<(usize, f64)>> = vec![Vec::new(); total.len()];
        for &Columns { job, .. } in jobs {
            let left = world.job(job).work_estimated - world.progress(job);
            for size in self.sizes(world, job) {
                let cost = match self.goal {
                    Goal::LeastSpeed => 0.0,
                    // A job that ends within a second, or has passed its estimate, counts as ending in one second.
                    Goal::Completions => size.per_s / left.max(size.per_s),
                };
                let column = program.push_column(Range::NON_NEGATIVE, share, cost);
                for (terms, needs) in resources.iter_mut().zip(&size.needs).filter(|(_, needs)| **needs > 0.0)
                {
                    terms.push((column, *needs));
                }
            }
        }
        let level = (self.goal == Goal::LeastSpeed).then(|| program.push_column(share, share, 1.0));
        for Columns { job, span } in jobs {
            program.push_row(Range::at_most(1.0), span.clone().map(|column| (column, 1.0)));
            if let Some(level) = level {
                let parts = parts_of_fastest(self.sizes(world, *job));
                program.push_row(Range::at_least(0.0), span.clone().zip(parts).chain([(level, -1.0)]));
            }
        }
        for (terms, total) in resources.into_iter().zip(total) {
            program.push_row(Range::at_most(*total), terms);
        }
        program
    }
}

/// Speeds of sizes relative to the fastest size.
fn parts_of_fastest<T>(sizes: &[Size<T>]) -> impl Iterator<Item = f64> {
    let fastest = sizes.iter().map(|size| size.per_s).fold(0.0, f64::max);
    sizes.iter().map(move |size| size.per_s / fastest)
}

/// The largest share that counts as rounding error.
const SHARE_MIN: f64 = 1e-9;

/// The relative slack of the level in the second optimum, which leaves room for rounding.
const LEVEL_SLACK: f64 = 1e-9;

fn solved(program: &Program) -> Option<Vec<f64>> {
    let answer = solve_certified(program, &mut default_chain(program), &Limits::default(), None);
    answer.ok().map(|certified| certified.solution.columns)
}
