//! Solving on behalf of one decision: a chain of backends, what they took, and what they gave up.

mod alone;

use thiserror::Error;

use crate::policy::decision::SolveReport;
use crate::policy::program::bases::Bases;
use crate::policy::program::recorded::{Purpose, Recording};
use crate::policy::program::strategy::{GaveUp, Reason, Strategy};
use crate::program::{Classes, Formulation, Program};
use crate::solver::centre::{BarrierWeights, Centre};
use crate::solver::registry;
use crate::solver::timing::Stopwatch;
use crate::solver::{
    Backend, Basis, BasisStatus, Feature, Limits, Solution, SolveError, Termination, WarmStart,
    solve_certified,
};

/// Why a decision's programs were not solved.
#[derive(Clone, Debug, Error)]
pub(super) enum SolvingError {
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The strategy asked for is none for the problem.
    #[error("no decision by `{strategy}`: {why}")]
    Strategy { strategy: Strategy, why: GaveUp },
    /// A program without members.
    #[error("there is nothing to decide")]
    Empty,
}

impl SolvingError {
    /// Is it that no point satisfies the constraints?
    pub(super) fn is_infeasible(&self) -> bool {
        matches!(self, Self::Solve(SolveError::NotOptimal { termination: Termination::Infeasible, .. }))
    }

    /// Was there a program that no backend found a certified optimum of, for whatever reason?
    pub(super) fn is_unsolved(&self) -> bool {
        matches!(self, Self::Solve(SolveError::NotOptimal { .. }))
    }
}

/// A certified answer: the solver's vectors, and the bound that the certificate proves.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) solution: Solution,
    pub(super) bound: f64,
}

/// Columns from which a linear program that had to be written is first tried by an interior-point method: simplex takes
/// several times as long where no two jobs are alike. Below, the vertices of simplex are the answers.
pub(super) const COLUMNS_LARGE: usize = 2_000;

/// Steps from a basis after which it is no use.
const STEPS_MAX: u32 = 3_000;

/// Rows up to which a program that a start is known of is first solved from there. Each step looks at all of them.
const ROWS_FEW: usize = 512;

/// The chains of one policy and the bookkeeping of one decision.
#[derive(Debug)]
pub(super) struct Solving {
    /// What large linear programs are tried by before their chain.
    large: Option<Box<dyn Backend>>,
    /// What small linear programs are solved by from a start that is known, before their chain.
    quick: Option<Box<dyn Backend>>,
    linear: Vec<Box<dyn Backend>>,
    conic: Vec<Box<dyn Backend>>,
    limits: Limits,
    /// The basis of the last program of each shape (columns, rows), to start the next one from.
    basis: Option<Basis>,
    /// Is that basis feasible for the next program, but far from optimal?
    grown: bool,
    /// Will a row hold the next program's optimum?
    to_be_held: bool,
    report: SolveReport,
    /// What decisions are to be found by, if that was asked for.
    asked: Option<Strategy>,
    /// What the optimum that is being looked for is found by.
    strategy: Strategy,
    /// What the next program is for.
    purpose: Purpose,
    /// Every program as it is solved, where someone wants them.
    recorded: Option<Recording>,
    /// Is every program written, though it need not be?
    written: bool,
    /// Bases of the last decision, and what goes on from them, where that is done.
    going_on: Option<(Bases, Box<dyn Backend>)>,
}

impl Solving {
    pub(super) fn new(linear: Vec<Box<dyn Backend>>, conic: Vec<Box<dyn Backend>>) -> Self {
        Self {
            large: None,
            quick: None,
            linear,
            conic,
            limits: Limits::default(),
            basis: None,
            grown: false,
            to_be_held: false,
            report: SolveReport::default(),
            asked: None,
            strategy: Strategy::Written,
            purpose: Purpose::Optimum,
            recorded: None,
            written: false,
            going_on: None,
        }
    }

    /// Tries large linear programs by this backend before their chain; it may decline.
    pub(super) fn with_large(self, large: Option<Box<dyn Backend>>) -> Self {
        Self { large, ..self }
    }

    /// Solves small linear programs by this backend where it is known where to start.
    pub(super) fn with_quick(self, quick: Option<Box<dyn Backend>>) -> Self {
        Self { quick, ..self }
    }

    /// Starts a decision's bookkeeping anew. Bases are forgotten, so that a decision depends on its problem alone:
    /// which of several optimal vertices simplex ends at depends on where it begins, and a run that was resumed
    /// would decide otherwise than one that was not. `benches/baseline.md` says what that costs.
    pub(super) fn begin(&mut self, route: &str) {
        self.basis = None;
        self.purpose = Purpose::Optimum;
        self.report = SolveReport { route: route.to_owned(), ..SolveReport::default() };
    }

    /// Goes on from the bases of the last decision from now on, by this backend.
    pub(super) fn go_on(&mut self, by: Box<dyn Backend>) {
        self.going_on = Some((Bases::default(), by));
    }

    /// The bases to go on from, if that is done.
    pub(super) fn bases(&mut self) -> Option<&mut Bases> {
        self.going_on.as_mut().map(|(bases, _)| bases)
    }

    /// Solves a linear program from the basis of its like in the last decision, if bases are kept; nothing if they are
    /// not, or that does not lead to a certified optimum.
    pub(super) fn solve_on(&mut self, formulation: &Formulation) -> Result<Option<Answer>, SolvingError> {
        let program = &formulation.program;
        let Some((bases, _)) = self.going_on.as_ref().filter(|_| program.is_linear()) else {
            return Ok(None);
        };
        let start = bases.start(formulation);
        // From nothing, and over this many columns, a decision from scratch is quicker.
        if start.is_none() && program.n_columns() >= COLUMNS_LARGE {
            return Ok(None);
        }
        self.basis = start.or_else(|| self.basis.take());
        let answer = self.solve_going_on(program)?;
        if let (Some((bases, _)), Some(answer)) = (&mut self.going_on, &answer) {
            bases.keep(formulation, answer.solution.basis.as_ref());
        }
        Ok(answer)
    }

    /// Solves a small linear program from where its like ended before or, if it is the first of its shape, from `start`;
    /// nothing if there is no start, or it does not lead to a certified optimum, which is no fallback.
    pub(super) fn solve_from(
        &mut self,
        formulation: &Formulation,
        start: impl FnOnce(&Formulation) -> Option<Basis>,
    ) -> Result<Option<Answer>, SolvingError> {
        let program = &formulation.program;
        if self.quick.is_none() || !program.is_linear() || program.n_rows() > ROWS_FEW {
            return Ok(None);
        }
        let Some(basis) =
            self.basis.take().filter(|basis| fits(basis, program)).or_else(|| start(formulation))
        else {
            return Ok(None);
        };
        self.solve_quickly(program, basis)
    }

    /// Solves a linear program from a basis, if there is one, that need not be feasible; nothing if that does not come to a
    /// certified optimum.
    pub(super) fn solve_near(&mut self, program: &Program, basis: Option<Basis>) -> Option<Answer> {
        if let Some(basis) = basis.as_ref().filter(|_| program.n_rows() <= ROWS_FEW)
            && let Ok(Some(answer)) = self.solve_quickly(program, basis.clone())
        {
            return Some(answer);
        }
        self.basis = basis;
        self.solve_by_chain(program).ok().filter(|answer| !answer.solution.row_duals.is_empty())
    }

    fn solve_quickly(&mut self, program: &Program, basis: Basis) -> Result<Option<Answer>, SolvingError> {
        let Some(quick) = self.quick.take() else { return Ok(None) };
        let limits = Limits { iterations: Some(STEPS_MAX), ..self.limits };
        let limits = std::mem::replace(&mut self.limits, limits);
        self.basis = Some(basis);
        let mut chain = [quick];
        let outcome = self.solve_by(program, Some(&mut chain));
        let [quick] = chain;
        (self.quick, self.limits) = (Some(quick), limits);
        if let (Err(_), Some(recorded)) = (&outcome, &mut self.recorded) {
            recorded.pop();
        }
        match outcome {
            Ok(answer) => Ok(Some(answer)),
            // (an attempt to be quicker, of which nothing came: the chain has yet to be asked)
            Err(SolvingError::Solve(SolveError::NotOptimal { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps the basis of an answer that came by another way, if bases are kept and it has one.
    pub(super) fn keep(&mut self, formulation: &Formulation, answer: &Answer) {
        if let Some((bases, _)) = &mut self.going_on {
            bases.keep(formulation, answer.solution.basis.as_ref());
        }
    }

    /// Solves a program by what goes on; nothing if that finds no certified optimum.
    fn solve_going_on(&mut self, program: &Program) -> Result<Option<Answer>, SolvingError> {
        let Some((bases, by)) = self.going_on.take() else { return Ok(None) };
        let limits = Limits { iterations: Some(STEPS_MAX), ..self.limits };
        let limits = std::mem::replace(&mut self.limits, limits);
        let mut chain = [by];
        let outcome = self.solve_by(program, Some(&mut chain));
        let [by] = chain;
        self.going_on = Some((bases, by));
        self.limits = limits;
        match outcome {
            Ok(answer) => Ok(Some(answer)),
            Err(SolvingError::Solve(SolveError::NotOptimal { attempts, .. })) => {
                self.report.fallbacks.push(attempts);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Finds decisions by this strategy from now on, or not at all.
    pub(super) fn ask_for(&mut self, strategy: Strategy) {
        self.asked = Some(strategy);
    }

    /// The strategy that was asked for, if one was; a program that explains a decision is written all the same.
    pub(super) fn asked(&self) -> Option<Strategy> {
        self.asked.filter(|_| !self.written)
    }

    /// What the optimum that is being looked for is found by.
    pub(super) fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Begins to look for an optimum.
    pub(super) fn decide_by(&mut self, strategy: Strategy, reason: Reason) {
        self.strategy = strategy;
        if self.purpose != Purpose::Without {
            (self.report.strategy, self.report.reason) = (strategy, reason);
            self.report.gave_up.clear();
        }
    }

    /// Goes on by another strategy; an error if the one that gives up was asked for.
    pub(super) fn give_up(&mut self, why: GaveUp, next: Strategy) -> Result<(), SolvingError> {
        let strategy = std::mem::replace(&mut self.strategy, next);
        if self.asked() == Some(strategy) {
            return Err(SolvingError::Strategy { strategy, why });
        }
        if self.purpose != Purpose::Without {
            self.report.strategy = next;
            self.report.reason = match why {
                GaveUp::Unfit(unfit) => Reason::Unfit(unfit),
                GaveUp::Unproven | GaveUp::Undivided | GaveUp::Unrefined => {
                    self.report.gave_up.push((strategy, why));
                    Reason::GaveUp
                }
            };
        }
        Ok(())
    }

    /// Notes that programs refine what prices alone found.
    pub(super) fn leave_refining(&mut self) {
        if self.strategy == Strategy::Singles {
            self.report.gave_up.push((self.strategy, GaveUp::Unrefined));
        }
    }

    /// Lets backends use so many threads from now on.
    pub(super) fn use_threads(&mut self, threads: u32) {
        self.limits.threads = threads;
    }

    /// Other backends, and when they give up.
    pub(super) fn replace(
        &mut self,
        linear: Vec<Box<dyn Backend>>,
        conic: Vec<Box<dyn Backend>>,
        limits: Limits,
    ) {
        (self.large, self.quick) = (None, None);
        (self.linear, self.conic, self.limits) = (linear, conic, limits);
    }

    /// Keeps every program solved from now on in this recording, or none; gives back the one before.
    pub(super) fn record(&mut self, recording: Option<Recording>) -> Option<Recording> {
        std::mem::replace(&mut self.recorded, recording)
    }

    /// Says which classes programs are over from now on.
    pub(super) fn group(&mut self, classes: &Classes) {
        if let Some(recorded) = &mut self.recorded {
            recorded.group(classes);
        }
    }

    /// Says what the next program means.
    pub(super) fn means(&mut self, formulation: &Formulation) {
        if let Some(recorded) = &mut self.recorded {
            recorded.means(formulation.value_map);
        }
    }

    /// Says what programs are for from now on.
    pub(super) fn purpose(&mut self, purpose: Purpose) {
        self.purpose = purpose;
    }

    /// Does something for a purpose.
    pub(super) fn doing<T>(&mut self, purpose: Purpose, something: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.purpose, purpose);
        let done = something(self);
        self.purpose = before;
        done
    }

    /// Makes the last program's basis one of a program with more columns, put in at `at` to make `n_columns` there.
    pub(super) fn grow_basis(&mut self, at: usize, n_columns: usize) {
        if let Some(basis) = self.basis.as_mut().filter(|basis| basis.columns.len() >= at) {
            basis.columns.splice(at..at, std::iter::repeat_n(BasisStatus::Lower, n_columns - at));
            self.grown = true;
        }
    }

    /// Makes the last program's basis one of a program with a row more, for which it is feasible, or with another
    /// objective.
    pub(super) fn hold_basis(&mut self, n_rows: usize) {
        if let Some(basis) = &mut self.basis {
            basis.rows.resize(n_rows.max(basis.rows.len()), BasisStatus::Basic);
            self.grown = true;
        }
    }

    /// Writes every program from now on, or leaves it where it is not needed.
    pub(super) fn write(&mut self, written: bool) {
        self.written = written;
    }

    /// Says that a row will hold the next program's optimum: that is chosen among at vertices, from the basis of this one.
    pub(super) fn hold_next(&mut self) {
        self.to_be_held = true;
    }

    /// Does what only chooses among optima: the decision names the backend that found them, if one did.
    pub(super) fn among_optima<T>(&mut self, choose: impl FnOnce(&mut Self) -> T) -> T {
        let finder = self.report.backend.clone();
        let chosen = self.doing(Purpose::Choice, choose);
        self.report.backend = finder.or(self.report.backend.take());
        chosen
    }

    /// What the decision took so far.
    pub(super) fn report(&mut self) -> &mut SolveReport {
        &mut self.report
    }

    /// Solves one program; its answer is certified.
    pub(super) fn solve(&mut self, program: &Program) -> Result<Answer, SolvingError> {
        if let Some(answer) = self.solve_large(program)? {
            return Ok(answer);
        }
        self.solve_by(program, None)
    }

    /// Solves one program by its chain, however large it is.
    pub(super) fn solve_by_chain(&mut self, program: &Program) -> Result<Answer, SolvingError> {
        self.solve_by(program, None)
    }

    /// What the backend for large programs answers, if it has a certified optimum. Declining is no fallback.
    fn solve_large(&mut self, program: &Program) -> Result<Option<Answer>, SolvingError> {
        let goes_on = self.linear.first().is_some_and(|first| first.supports(Feature::WarmStart));
        let basis = self.basis.is_some() || (self.to_be_held && goes_on);
        let fits = program.is_linear() && program.n_columns() >= COLUMNS_LARGE && !basis;
        let Some(large) = (if fits { self.large.take() } else { None }) else { return Ok(None) };
        let mut chain = [large];
        let outcome = self.solve_by(program, Some(&mut chain));
        let [large] = chain;
        self.large = Some(large);
        if let (Err(_), Some(recorded)) = (&outcome, &mut self.recorded) {
            recorded.pop();
        }
        match outcome {
            Ok(answer) => Ok(Some(answer)),
            Err(SolvingError::Solve(SolveError::NotOptimal { attempts, .. })) => {
                self.report.fallbacks.push(attempts);
                Ok(None)
            }
            Err(SolvingError::Solve(SolveError::Malformed { what })) => {
                Err(SolveError::Malformed { what }.into())
            }
            Err(_) => Ok(None),
        }
    }

    /// Solves a linear program; the answer is the weighted analytic centre of its optima, or, counted as a fallback,
    /// near their centre without weights.
    pub(super) fn solve_centrally(
        &mut self,
        program: &Program,
        weights: BarrierWeights,
    ) -> Result<Answer, SolvingError> {
        let mut chain = registry::interior_chain(program);
        chain.insert(0, Box::new(Centre::new(weights)));
        self.solve_by(program, Some(&mut chain))
    }

    fn solve_by(
        &mut self,
        program: &Program,
        chain: Option<&mut [Box<dyn Backend>]>,
    ) -> Result<Answer, SolvingError> {
        if program.n_columns() == 0 {
            return Err(SolvingError::Empty);
        }
        if let Some(recorded) = &mut self.recorded {
            recorded.push(program, self.purpose);
        }
        let size = &mut self.report.size;
        if program.term_values.len() >= size.terms {
            size.columns = program.n_columns();
            size.rows = program.n_rows();
            size.terms = program.term_values.len();
        }
        let grown = std::mem::take(&mut self.grown);
        self.to_be_held = false;
        let basis = self.basis.take().filter(|basis| fits(basis, program));
        let warm = WarmStart { basis, feasible: grown, columns: None };
        let own = if program.is_linear() { &mut self.linear } else { &mut self.conic };
        let chain = chain.unwrap_or(own);
        let clock = Stopwatch::start();
        let outcome = solve_certified(program, chain, &self.limits, Some(&warm));
        self.report.seconds.solve += clock.elapsed().as_secs_f64();
        self.report.solves += u32::from(!matches!(outcome, Err(SolveError::Declined { .. })));
        let certified = outcome?;
        if let Some(recorded) = &mut self.recorded {
            recorded.found(certified.certificate.primal);
        }
        self.report.seconds.solve -= certified.certify_seconds;
        self.report.seconds.certify += certified.certify_seconds;
        self.report.iterations += certified.iterations;
        self.report.fallbacks.extend(certified.fallbacks);
        self.report.backend = Some(certified.backend.to_owned());
        self.basis.clone_from(&certified.solution.basis);
        Ok(Answer { solution: certified.solution, bound: certified.certificate.bound })
    }
}

/// Is a basis one of a program of this shape?
fn fits(basis: &Basis, program: &Program) -> bool {
    basis.columns.len() == program.n_columns() && basis.rows.len() == program.n_rows()
}
