//! The strategy `singles`: optima for jobs that share no workers, by prices of worker types ([`decomposition`]).
//!
//! | objective | file |
//! |---|---|
//! | the highest common level, and the best use of workers at it | `level` |
//! | a linear sum | `linear` |
//! | a sum of logarithms (Nash welfare) | here |
//! | the number of droppable constraints that can be kept | `droppable` |
//!
//! A *member* is a class of identical jobs. Every answer is certified from the members' own data. A program is written
//! only over the few members that optimal prices leave undecided (`tie_break`); `residual` is the smaller problem over
//! members and worker types that a level leaves undecided.

mod level;
mod linear;
mod residual;
mod droppable;
mod tie_break;

pub(super) use self::droppable::{drop_costliest, relaxation};
pub(super) use self::level::{HeldLevel, PricedLevel, raise_by_prices, refine};
pub(super) use self::linear::all_droppable_met;
pub(super) use self::residual::{FixedLevel, ResidualProblem};
use crate::decomposition::{self, PrimalDual, RaisedLevel, Searched, Unsolved};
use crate::policy::program::optimum::{Optimum, OptimumKind};
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solve::Task;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::{GaveUp, Unfit, prices_suffice};
use crate::program::{BoundObjective, Goal, LogarithmicSum, Singles};
use crate::solver::certificate::AnswerCertificate;
use crate::solver::timing::Stopwatch;

/// Class times by column, [columns], from class times by member and type, [members × K].
pub(super) fn class_time(bound: &BoundObjective<'_>, time: &[f64]) -> Vec<f64> {
    let k = bound.instance().n_types();
    bound.columns().iter().map(|column| time[column.combination * k + column.worker_type]).collect()
}

impl Task<'_, '_> {
    /// The refined optimum of a level that is in proportion to throughputs, or the inverse of which is; of a linear
    /// sum; or of a sum of logarithms.
    pub(super) fn solve_singles(&mut self, solver: &mut SolverContext) -> Result<Optimum, GaveUp> {
        match self.kind {
            OptimumKind::Conic => self.maximize_logarithms(solver),
            OptimumKind::Linear => self.maximize_linear(solver),
            _ => self.maximize_level(solver),
        }
    }

    /// The optimum of a sum of logarithms. It fixes every throughput, so nothing is refined.
    fn maximize_logarithms(&self, solver: &mut SolverContext) -> Result<Optimum, GaveUp> {
        let bound = self.columns.bound();
        let LogarithmicSum { singles, logarithms } =
            bound.logarithms().ok_or(GaveUp::Unfit(Unfit::Objective))?;
        let n_columns = bound.columns().len();
        let found = search(solver, &singles, Goal::Logarithms(&logarithms), n_columns)?;
        Ok(Optimum::without_program(class_time(&bound, &found.answer.time), found.bound))
    }
}

/// The number of columns that a program over jobs would have; an error unless all jobs run alone and a search for prices
/// may take the place of the program.
fn searched_columns(solver: &SolverContext, columns: &ProgramColumns<'_>) -> Result<usize, Unfit> {
    prices_suffice(columns, solver)?;
    Ok(columns.bound().columns().len())
}

/// The answer of a search for prices, with the bound that its certificate proves.
#[derive(Clone, Debug)]
pub(super) struct Certified<T> {
    pub(super) answer: T,
    pub(super) bound: f64,
}

/// A certified optimum by a search for prices. An error is not reported as a fallback.
/// `n_columns` is the number of columns of the program that is not written, for the report.
fn search(
    solver: &mut SolverContext,
    singles: &Singles<'_>,
    goal: Goal<'_>,
    n_columns: usize,
) -> Result<Certified<PrimalDual>, GaveUp> {
    let warm_prices = solver.take_warm(goal);
    let Searched { optimum, warm_prices } =
        timed(solver, |solver| decomposition::solve(singles, goal, &warm_prices, &solver.limits()))?;
    let bound = certified_bound(solver, singles, goal, &optimum, n_columns)?;
    solver.keep_warm(goal, warm_prices);
    Ok(Certified { answer: optimum, bound })
}

/// The next level of water filling, certified. `warm_prices`: prices of the level before.
pub(super) fn search_above(
    solver: &mut SolverContext,
    singles: &Singles<'_>,
    goal: Goal<'_>,
    warm_prices: Vec<Vec<f64>>,
    n_columns: usize,
) -> Result<Certified<RaisedLevel>, GaveUp> {
    solver.check_time().map_err(|_| Unsolved::OutOfTime)?;
    let answer =
        timed(solver, |solver| decomposition::raise_above(singles, goal, warm_prices, &solver.limits()))?;
    let bound = certified_bound(solver, singles, goal, &answer.answer, n_columns)?;
    Ok(Certified { answer, bound })
}

/// Runs a search, the time of which counts as time in backends.
fn timed<T>(solver: &mut SolverContext, search: impl FnOnce(&SolverContext) -> T) -> T {
    let clock = Stopwatch::start();
    let found = search(solver);
    solver.report().seconds.solve += clock.elapsed().as_secs_f64();
    found
}

/// The bound that the certificate of a search's answer proves; an error if it does not prove the optimum.
fn certified_bound(
    solver: &mut SolverContext,
    singles: &Singles<'_>,
    goal: Goal<'_>,
    optimum: &PrimalDual,
    n_columns: usize,
) -> Result<f64, GaveUp> {
    let clock = Stopwatch::start();
    let certificate = AnswerCertificate::of_jobs(singles, goal, optimum);
    solver.report().seconds.certify += clock.elapsed().as_secs_f64();
    if !certificate.optimal || !bound_is_close(solver, goal, &certificate) {
        return Err(GaveUp::Unproven);
    }
    let (n, k) = (singles.instance().n_members(), singles.instance().n_types());
    let size = match goal {
        Goal::Logarithms(_) => [n_columns + n, n + k, 2 * n_columns],
        // A sum with the row that holds its optimum.
        Goal::Worth { level, .. } if level <= 0.0 => [n_columns, n + k + 1, 3 * n_columns],
        Goal::Level | Goal::Above { .. } | Goal::Worth { .. } => {
            [n_columns + 1, 2 * n + k, 3 * n_columns + n]
        }
    };
    report_search(solver, size, optimum.passes);
    Ok(certificate.bound)
}

/// Reports a search: its passes, and the size, [columns, rows, terms], of the program that was not written.
fn report_search(solver: &mut SolverContext, [columns, rows, terms]: [usize; 3], passes: u32) {
    let report = solver.report();
    // The largest program is reported: searches of residual problems have smaller ones.
    if terms >= report.size.terms {
        (report.size.columns, report.size.rows, report.size.terms) = (columns, rows, terms);
    }
    report.searches += 1;
    report.iterations += u64::from(passes);
}

/// Whether the bound on a sum of logarithms is as close as programs must come. True for other goals, of which the
/// certificates say so. The gap is relative to the sum of weights, so it is the relative error of throughputs; the
/// sum of logarithms itself may be near 0.
fn bound_is_close(solver: &SolverContext, goal: Goal<'_>, certificate: &AnswerCertificate) -> bool {
    let Goal::Logarithms(of) = goal else { return true };
    let size = of.weight.iter().sum::<f64>().max(certificate.primal.abs());
    certificate.bound - certificate.primal <= solver.limits().tolerance * size
}
