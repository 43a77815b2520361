//! Shares of slots by a linear program, rounded by priorities: what allocation policies do, at home in this world.
//!
//! A job's columns are the sizes c = (workers, parameter servers) that no other beats in needs and speed; x is the
//! fraction of slots in which it has each:
//!
//!   Σ_c x\[j,c\] ≤ 1                              for every job j
//!   Σ_{j,c} x\[j,c\] · needs\[c,r\] ≤ total\[r\]      for both resources r
//!
//! and of all that, what the [`Aim`] says is largest. A slot goes to sizes by priority, as in Gavel's mechanism (OSDI 2020,
//! §5): x over the part of the slots since its arrival in which the job had this size. The true speeds of the world are known: an oracle,
//! as Optimus is.

use std::ops;

use crate::index::{Id, JobId};
use crate::program::{Program, Range, Sense};
use crate::solver::registry::default_chain;
use crate::solver::{Limits, solve_certified};
use crate::world::dl2::published::Step;
use crate::world::dl2::speeds::Dl2Speeds;
use crate::world::dl2::task::{Tasks, any_server};
use crate::world::job::{Part, Role};
use crate::world::servers::N_RESOURCES;
use crate::world::state::World;

/// What the shares make largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The least speed, each as a part of the job's fastest; among such shares the sum of those parts.
    LeastSpeed,
    /// The sum of speeds, each over the work that remains: what is about to end comes first.
    Completions,
}

/// One size of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Size {
    /// By role.
    tasks: [u16; Role::COUNT],
    /// Slots.
    needs: [f64; N_RESOURCES],
    samples_per_s: f64,
    /// The speed as a part of the fastest size's.
    part_of_fastest: f64,
}

/// The columns of one job: a size each.
#[derive(Clone, Debug)]
struct Columns {
    job: JobId,
    span: ops::Range<usize>,
}

/// The rule at work.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    aim: Aim,
    tasks_max: u16,
    /// [job type][size], made at the first job of a type.
    sizes: Vec<Vec<Size>>,
    /// Slots in which each job had each size: [job][size].
    received: Vec<Vec<u32>>,
    /// Who is to have what in this slot, the first last.
    wanted: Vec<(JobId, [u16; Role::COUNT])>,
}

impl Shares {
    pub(super) fn new(aim: Aim, tasks_max: u16) -> Self {
        Self { aim, tasks_max, sizes: Vec::new(), received: Vec::new(), wanted: Vec::new() }
    }

    /// Asks for shares, and says who is to have what in this slot.
    pub(super) fn begin(&mut self, world: &World, speeds: &Dl2Speeds) {
        if world.round() == 0 {
            self.received.clear();
        }
        self.received.resize(world.n_jobs(), Vec::new());
        for &job in world.active() {
            let job_type = world.job(job).job_type.index();
            if self.sizes.len() <= job_type {
                self.sizes.resize(job_type + 1, Vec::new());
            }
            if self.sizes[job_type].is_empty() {
                self.sizes[job_type] = efficient_sizes(world, speeds, job, self.tasks_max);
            }
            self.received[job.index()].resize(self.sizes[job_type].len(), 0);
        }
        let order = self.by_priority(world);
        self.hand_out(world, &order);
    }

    /// The next task: all that a job is to have, or as much of it as there is room for, before the next job's.
    pub(super) fn next(&mut self, world: &World) -> Step {
        while let Some(&(job, wanted)) = self.wanted.last() {
            let step = missing(world, job, wanted);
            if step.is_some() {
                return step;
            }
            self.wanted.pop();
        }
        None
    }

    fn sizes(&self, world: &World, job: JobId) -> &[Size] {
        &self.sizes[world.job(job).job_type.index()]
    }

    /// (job, size) of every share above nothing, by descending priority, ties by arrival and size.
    fn by_priority(&self, world: &World) -> Vec<(JobId, usize)> {
        let mut jobs = Vec::with_capacity(world.active().len());
        let mut n_columns = 0;
        for &job in world.active() {
            let n_sizes = self.sizes(world, job).len();
            jobs.push(Columns { job, span: n_columns..n_columns + n_sizes });
            n_columns += n_sizes;
        }
        let shares = self.optimum(world, &jobs, n_columns);
        let mut order = Vec::new();
        for Columns { job, span } in jobs {
            let received = &self.received[job.index()];
            let slots = (world.now_s() - world.job(job).arrival_s) / world.rules().round_s + 0.5;
            for (size, share) in shares[span].iter().enumerate().filter(|(_, share)| **share > SHARE_MIN) {
                let part = (f64::from(received[size]) + 0.5) / slots;
                order.push((share / part, job, size));
            }
        }
        order.sort_by(|one, other| other.0.total_cmp(&one.0));
        order.into_iter().map(|(_, job, size)| (job, size)).collect()
    }

    /// Optimal shares; nothing for anybody if no backend could certify any, which no program here has been seen to do.
    fn optimum(&self, world: &World, jobs: &[Columns], n_columns: usize) -> Vec<f64> {
        let mut program = self.program(world, jobs);
        let Some(mut shares) = solved(&program) else { return vec![0.0; n_columns] };
        if self.aim == Aim::LeastSpeed {
            let level = n_columns;
            program.columns[level].lower = shares[level] * (1.0 - LEVEL_SLACK);
            program.cost[level] = 0.0;
            for Columns { job, span } in jobs {
                for (column, size) in span.clone().zip(self.sizes(world, *job)) {
                    program.cost[column] = size.part_of_fastest;
                }
            }
            shares = solved(&program).unwrap_or(shares);
        }
        shares.truncate(n_columns);
        shares
    }

    /// The program of the first optimum: its columns are the jobs', and the level behind them if there is one.
    fn program(&self, world: &World, jobs: &[Columns]) -> Program {
        let share = Range { lower: 0.0, upper: 1.0 };
        let mut program = Program::new(Sense::Maximize);
        let mut resources: [Vec<(usize, f64)>; N_RESOURCES] = Default::default();
        for &Columns { job, .. } in jobs {
            let left = world.job(job).work_estimated - world.progress(job);
            for size in self.sizes(world, job) {
                let cost = match self.aim {
                    Aim::LeastSpeed => 0.0,
                    // What ends within the second, or has passed its estimate, can end no sooner.
                    Aim::Completions => size.samples_per_s / left.max(size.samples_per_s),
                };
                let column = program.push_column(Range::NON_NEGATIVE, share, cost);
                for (terms, needs) in resources.iter_mut().zip(size.needs) {
                    terms.push((column, needs));
                }
            }
        }
        let level = (self.aim == Aim::LeastSpeed).then(|| program.push_column(share, share, 1.0));
        for Columns { job, span } in jobs {
            program.push_row(Range::at_most(1.0), span.clone().map(|column| (column, 1.0)));
            if let Some(level) = level {
                let parts = self.sizes(world, *job).iter().map(|size| size.part_of_fastest);
                program.push_row(Range::at_least(0.0), span.clone().zip(parts).chain([(level, -1.0)]));
            }
        }
        for (terms, total) in resources.into_iter().zip(world.servers().total()) {
            program.push_row(Range::at_most(f64::from(total)), terms);
        }
        program
    }

    /// One size a job, in this order, while the resources of the cluster last; then one task of each role for those that
    /// have nothing, should there be room on a server.
    fn hand_out(&mut self, world: &World, order: &[(JobId, usize)]) {
        let mut left = world.servers().total().map(f64::from);
        let mut served = vec![false; world.n_jobs()];
        self.wanted.clear();
        for &(job, size) in order {
            let Size { tasks, needs, .. } = self.sizes(world, job)[size];
            if served[job.index()] || left.iter().zip(needs).any(|(left, needs)| needs > *left) {
                continue;
            }
            for (left, needs) in left.iter_mut().zip(needs) {
                *left -= needs;
            }
            served[job.index()] = true;
            self.received[job.index()][size] += 1;
            self.wanted.push((job, tasks));
        }
        let unserved = world.active().iter().filter(|job| !served[job.index()]);
        self.wanted.extend(unserved.map(|job| (*job, [1; Role::COUNT])));
        self.wanted.reverse();
    }
}

/// A share below this is rounding's.
const SHARE_MIN: f64 = 1e-9;

/// The part of the level that the second optimum may fall short of it, so that rounding leaves room.
const LEVEL_SLACK: f64 = 1e-9;

fn solved(program: &Program) -> Option<Vec<f64>> {
    let answer = solve_certified(program, &mut default_chain(program), &Limits::default(), None);
    answer.ok().map(|certified| certified.solution.columns)
}

/// The sizes of a job that none beats, fewest workers first. Where speeds depend on the place, as if the tasks of each
/// role were spread evenly over the servers.
fn efficient_sizes(world: &World, speeds: &Dl2Speeds, job: JobId, tasks_max: u16) -> Vec<Size> {
    let mut all = Vec::new();
    for workers in 1..=tasks_max {
        for servers in 1..=tasks_max {
            let tasks = [workers, servers];
            let samples_per_s = speeds.samples_per_s(world, job, tasks, &spread(world, tasks));
            let needs = std::array::from_fn(|resource| {
                let of = |role: Role| f64::from(world.task_slots(job, role)[resource]);
                f64::from(workers) * of(Role::Worker) + f64::from(servers) * of(Role::ParameterServer)
            });
            if samples_per_s > 0.0 {
                all.push(Size { tasks, needs, samples_per_s, part_of_fastest: 0.0 });
            }
        }
    }
    let fastest = all.iter().map(|size| size.samples_per_s).fold(0.0, f64::max);
    let no_worse = |one: &Size, other: &Size| {
        one.samples_per_s >= other.samples_per_s
            && one.needs.iter().zip(other.needs).all(|(one, other)| *one <= other)
    };
    // Of sizes that are alike the first stays.
    let beaten = |at: usize| {
        let mut others = all.iter().enumerate().filter(|(other, _)| *other != at);
        others.any(|(other, size)| no_worse(size, &all[at]) && (other < at || !no_worse(&all[at], size)))
    };
    let mut efficient: Vec<Size> = (0..all.len()).filter(|at| !beaten(*at)).map(|at| all[at]).collect();
    for size in &mut efficient {
        size.part_of_fastest = size.samples_per_s / fastest;
    }
    efficient
}

/// So many tasks of each role, evenly over all servers.
fn spread(world: &World, tasks: [u16; Role::COUNT]) -> Vec<Part> {
    let n_servers = world.servers().len();
    let of_role = |(role, n): (Role, u16)| {
        world.servers().ids().filter_map(move |server| {
            let (each, more) = (usize::from(n) / n_servers, usize::from(n) % n_servers);
            let count = each + usize::from(server.index() < more);
            let count = u16::try_from(count).ok().filter(|count| *count > 0)?;
            Some(Part { server, role, count })
        })
    };
    [Role::Worker, Role::ParameterServer].into_iter().zip(tasks).flat_map(of_role).collect()
}

/// A task that a job lacks and that fits on some server: one of both roles together as long as it lacks both.
fn missing(world: &World, job: JobId, wanted: [u16; Role::COUNT]) -> Step {
    let lacks = |role: Role| world.tasks(job, role) < wanted[role.index()];
    let (worker, server) = (lacks(Role::Worker), lacks(Role::ParameterServer));
    let together = (worker && server).then_some(Tasks::Bundle);
    let apart = [(server, Tasks::ParameterServer), (worker, Tasks::Worker)];
    let kinds =
        together.into_iter().chain(apart.into_iter().filter(|(lacks, _)| *lacks).map(|(_, kind)| kind));
    let mut found = kinds.filter_map(|tasks| Some((job, tasks, any_server(world, job, tasks)?)));
    found.next()
}
