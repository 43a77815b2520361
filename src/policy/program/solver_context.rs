//! The solver of one decision: chains of backends, warm starts, and the report of what was solved and what it took.

mod broken_off;
mod claims;
mod error;
mod warm_prices;

use std::time::Duration;

use crate::decomposition::WarmPrices;
use crate::policy::decision::SolveReport;
use crate::policy::program::late::FoundSoFar;
use crate::policy::program::recorded::{Purpose, Recording};
use crate::policy::program::strategy::{GaveUp, Reason, Strategy};
use crate::program::{Classes, Formulation, Program};
use crate::solver::centre::{BarrierWeights, Centre};
use crate::solver::registry;
use crate::solver::timing::Stopwatch;
use crate::solver::{
    Backend, Basis, BasisStatus, Feature, Interrupt, Limits, Solution, SolveError, WarmStart, solve_certified,
};

pub(super) use error::SolvingError;

/// A certified answer: the solver's vectors, and a bound on the objective.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) solution: Solution,
    /// The bound that the certificate proves; where pairs are priced, with what pairs that are no columns could add to
    /// it, so that it holds over all pairs.
    pub(super) bound: f64,
}

/// Columns from which a linear program is large: it is first tried by an interior-point method, as simplex takes
/// several times as long where no two jobs are alike, and for linear sums and droppable constraints a search for prices
/// takes its place where it can. Below, the vertices of simplex are the answers.
pub(super) const COLUMNS_LARGE: usize = 2_000;

/// Steps of our simplex from a basis after which the chain is asked instead.
const SIMPLEX_STEPS_MAX: u32 = 3_000;

/// Rows up to which a program with a known start is first solved by our simplex, each step of which looks at all rows.
const ROWS_FEW: usize = 512;

/// The method by which a program is tried before its chain of backends.
pub(super) enum FirstMethod<'a> {
    /// The chain itself from the basis of the last program, if the chain ends in vertices. Else our simplex, if the program is
    /// linear and small: from that basis or, if it is of another shape, from the basis of the rows' slacks.
    Last,
    /// An interior-point method, if the program is linear, large, and without a basis to begin with.
    InteriorPoint,
    /// Our simplex, if the program is linear and small: from the basis of the last program or, if that is of another
    /// shape, from this one.
    Crash(&'a dyn Fn() -> Option<Basis>),
    /// Our method for the weighted analytic centre of a linear program's optima. Backends tried after it ignore the
    /// weights.
    Centre(BarrierWeights),
}

/// The chains of one policy and the bookkeeping of one decision.
#[derive(Debug)]
pub(super) struct SolverContext {
    /// The interior-point method by which large linear programs are tried before their chain; it may decline.
    interior_point: Option<Box<dyn Backend>>,
    /// Our simplex, by which small linear programs with a known basis are tried before their chain.
    simplex: Option<Box<dyn Backend>>,
    linear: Vec<Box<dyn Backend>>,
    conic: Vec<Box<dyn Backend>>,
    /// The limits of a whole decision.
    limits: Limits,
    /// The interrupt that breaks off decisions.
    interrupt: Interrupt,
    /// The time since the decision began.
    clock: Stopwatch,
    /// The basis of the last program, to start the next one from if that is of the same shape.
    basis: Option<Basis>,
    /// Whether that basis was extended to the next program, for which it is feasible but far from optimal.
    grown: bool,
    /// Whether the program after the next will hold the next one's optimum, and start from its basis.
    next_holds_optimum: bool,
    report: SolveReport,
    /// The strategy that was asked for, if one was.
    asked: Option<Strategy>,
    /// The strategy of the optimum that is being looked for.
    strategy: Strategy,
    /// The purpose of the next program.
    purpose: Purpose,
    /// Every program as it is solved, where they are recorded.
    recorded: Option<Recording>,
    /// Whether the decision is being explained. Then every program is written, even where prices would do.
    explaining: bool,
    /// The best point and bound that the decision has found so far.
    pub(super) found_so_far: FoundSoFar,
    /// Prices at which the last searches ended, by goal; none where decisions depend on their problem alone.
    warm: Option<[WarmPrices; 3]>,
}

impl SolverContext {
    pub(super) fn new(linear: Vec<Box<dyn Backend>>, conic: Vec<Box<dyn Backend>>) -> Self {
        Self {
            interior_point: None,
            simplex: None,
            linear,
            conic,
            limits: Limits::default(),
            interrupt: Interrupt::default(),
            clock: Stopwatch::start(),
            basis: None,
            grown: false,
            next_holds_optimum: false,
            report: SolveReport::default(),
            asked: None,
            strategy: Strategy::Written,
            purpose: Purpose::Optimum,
            recorded: None,
            explaining: false,
            found_so_far: FoundSoFar::default(),
            warm: None,
        }
    }

    /// Sets the backend by which large linear programs are tried before their chain.
    pub(super) fn with_interior_point(self, interior_point: Option<Box<dyn Backend>>) -> Self {
        Self { interior_point, ..self }
    }

    /// Sets the backend by which small linear programs with a known basis are tried before their chain.
    pub(super) fn with_simplex(self, simplex: Option<Box<dyn Backend>>) -> Self {
        Self { simplex, ..self }
    }

    /// Sets the strategy of every decision, if there is one.
    pub(super) fn with_strategy(self, asked: Option<Strategy>) -> Self {
        Self { asked, ..self }
    }

    /// Starts a decision's bookkeeping anew. Bases are forgotten, so that a decision depends on its problem alone:
    /// which of several optimal vertices simplex ends at depends on where it begins, and a run that was resumed
    /// would decide otherwise than one that was not. `benches/baseline.md` says what that costs.
    pub(super) fn begin_decision(&mut self, route: &str) {
        self.basis = None;
        self.clock = Stopwatch::start();
        self.limits.interrupt = self.interrupt.of_decision();
        self.purpose = Purpose::Optimum;
        self.found_so_far = FoundSoFar::default();
        self.report = SolveReport { route: route.to_owned(), ..SolveReport::default() };
    }

    /// Whether every program is solved by a backend that was named, or is the caller's own.
    pub(super) fn has_named_backend(&self) -> bool {
        self.interior_point.is_none()
    }

    /// Whether programs are recorded.
    pub(super) fn is_recording(&self) -> bool {
        self.recorded.is_some()
    }

    /// Sets the wall time of every decision, if it is bounded.
    pub(super) fn with_time_limit(mut self, time: Option<Duration>) -> Self {
        self.limits.time = time;
        self
    }

    /// The limits of the next program or search, with the time that is left of the decision's.
    pub(super) fn limits(&self) -> Limits {
        let time = self.limits.time.map(|time| time.saturating_sub(self.clock.elapsed()));
        let left = self.limits.interrupt.left();
        Limits { time: time.into_iter().chain(left).min(), ..self.limits.clone() }
    }

    /// The strategy that was asked for, if one was; none while a decision is explained, by a program that is written.
    pub(super) fn asked(&self) -> Option<Strategy> {
        self.asked.filter(|_| !self.explaining)
    }

    /// The strategy of the optimum that is being looked for.
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
        self.check_time()?;
        let strategy = std::mem::replace(&mut self.strategy, next);
        if self.asked() == Some(strategy) {
            return Err(SolvingError::Strategy { strategy, why });
        }
        if self.purpose != Purpose::Without {
            self.report.strategy = next;
            self.report.reason = match why {
                GaveUp::Unfit(unfit) => Reason::Unfit(unfit),
                GaveUp::Prices(_)
                | GaveUp::Unproven
                | GaveUp::TooManyTied
                | GaveUp::Undivided
                | GaveUp::Unrefined => {
                    self.report.gave_up.push((strategy, why));
                    Reason::GaveUp
                }
            };
        }
        Ok(())
    }

    /// Reports that a program refines an optimum that prices alone found.
    pub(super) fn report_written_refinement(&mut self) {
        if self.strategy == Strategy::Singles {
            self.report.gave_up.push((self.strategy, GaveUp::Unrefined));
        }
    }

    /// Takes other backends, and other limits at which they give up.
    pub(super) fn replace(
        &mut self,
        linear: Vec<Box<dyn Backend>>,
        conic: Vec<Box<dyn Backend>>,
        limits: Limits,
    ) {
        (self.interior_point, self.simplex) = (None, None);
        (self.linear, self.conic, self.limits) = (linear, conic, limits);
    }

    /// Records every program solved from now on in this recording, or nowhere; returns the recording before it.
    pub(super) fn record(&mut self, recording: Option<Recording>) -> Option<Recording> {
        std::mem::replace(&mut self.recorded, recording)
    }

    /// Records the classes that programs are over from now on, other than those before.
    pub(super) fn set_classes(&mut self, classes: &Classes) {
        self.found_so_far.forget_class_time();
        if let Some(recorded) = &mut self.recorded {
            recorded.set_classes(classes);
        }
    }

    /// Records the map from the next program's value to the policy's.
    pub(super) fn record_value_map(&mut self, formulation: &Formulation) {
        if let Some(recorded) = &mut self.recorded {
            recorded.set_value_map(formulation.value_map);
        }
    }

    /// Sets the purpose of programs from now on.
    pub(super) fn set_purpose(&mut self, purpose: Purpose) {
        self.purpose = purpose;
    }

    /// Runs something, with this purpose for the programs that it solves.
    pub(super) fn with_purpose<T>(&mut self, purpose: Purpose, something: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.purpose, purpose);
        let done = something(self);
        self.purpose = before;
        done
    }

    /// Extends the last program's basis to one with more class times, inserted at column `at`: `n_columns` in all.
    pub(super) fn add_columns_to_basis(&mut self, at: usize, n_columns: usize) {
        if let Some(basis) = self.basis.as_mut().filter(|basis| basis.columns.len() >= at) {
            basis.columns.splice(at..at, std::iter::repeat_n(BasisStatus::Lower, n_columns - at));
            self.grown = true;
        }
    }

    /// Extends the last program's basis by basic rows to `n_rows` rows, if it has fewer. The basis must be feasible
    /// for the next program; the objective may be another.
    pub(super) fn add_rows_to_basis(&mut self, n_rows: usize) {
        if let Some(basis) = &mut self.basis {
            basis.rows.resize(n_rows.max(basis.rows.len()), BasisStatus::Basic);
            self.grown = true;
        }
    }

    /// Sets whether a decision is explained from now on: then every program is written, even where prices would do.
    pub(super) fn set_explaining(&mut self, explaining: bool) {
        self.explaining = explaining;
    }

    /// Whether a decision is being explained.
    pub(super) fn is_explaining(&self) -> bool {
        self.explaining
    }

    /// Announces that the program after the next will hold the next one's optimum by a row. It starts from the next
    /// one's basis, so that one is solved by a backend that ends at a vertex.
    pub(super) fn announce_held_optimum(&mut self) {
        self.next_holds_optimum = true;
    }

    /// Runs something that chooses among optima: the report still names the backend that found the optimum, if one
    /// did.
    pub(super) fn among_optima<T>(&mut self, choose: impl FnOnce(&mut Self) -> T) -> T {
        let finder = self.report.backend.clone();
        let chosen = self.with_purpose(Purpose::Choice, choose);
        self.report.backend = finder.or(self.report.backend.take());
        chosen
    }

    /// The report of the decision so far.
    pub(super) fn report(&mut self) -> &mut SolveReport {
        &mut self.report
    }

    /// Solves one program, and certifies its answer.
    pub(super) fn solve(
        &mut self,
        program: &Program,
        start: FirstMethod<'_>,
    ) -> Result<Answer, SolvingError> {
        let first = match start {
            FirstMethod::Centre(weights) => {
                let mut chain = registry::central_chain(program);
                chain.insert(0, Box::new(Centre::new(weights)));
                return self
                    .solve_by(program, Some(&mut chain))
                    .map_err(|error| self.with_proven_claim(program, error));
            }
            FirstMethod::InteriorPoint => self.try_interior_point(program)?,
            FirstMethod::Crash(crash) => self.try_crash(program, crash)?,
            FirstMethod::Last if self.ends_in_vertices() => None,
            FirstMethod::Last => self.try_crash(program, &|| None)?,
        };
        match first {
            Some(answer) => Ok(answer),
            None => self.solve_by(program, None).or_else(|error| self.last_resort(program, error)),
        }
    }

    /// Solves a linear program from a basis, if one is given, which need not be feasible; an error if no certified
    /// optimum with dual values is found.
    pub(super) fn solve_from_basis(
        &mut self,
        program: &Program,
        basis: Option<Basis>,
    ) -> Result<Answer, GaveUp> {
        if let Some(basis) = basis.as_ref().filter(|_| program.n_rows() <= ROWS_FEW)
            && let Ok(Some(answer)) = self.try_simplex(program, basis.clone())
        {
            return Ok(answer);
        }
        self.basis = basis;
        let answer = self.solve(program, FirstMethod::Last).map_err(|_| GaveUp::Unproven)?;
        if answer.solution.row_duals.is_empty() { Err(GaveUp::Unproven) } else { Ok(answer) }
    }

    /// Whether the chain for linear programs begins with a method that ends in a vertex. Without HiGHS it does not.
    fn ends_in_vertices(&self) -> bool {
        self.linear.first().is_some_and(|first| first.supports(Feature::VertexSolutions))
    }

    /// Solves a small linear program by our simplex, from the basis of the last program if that is of its shape, else
    /// from `crash`. Where neither gives a basis and the chain does not end in vertices, it begins with all columns
    /// at their lower bounds: a vertex gives time to few combinations, which rounds can follow.
    fn try_crash(
        &mut self,
        program: &Program,
        crash: &dyn Fn() -> Option<Basis>,
    ) -> Result<Option<Answer>, SolvingError> {
        if self.simplex.is_none() || !program.is_linear() || program.n_rows() > ROWS_FEW {
            return Ok(None);
        }
        let ends_in_vertices = self.ends_in_vertices();
        let nothing = || (!ends_in_vertices).then(|| Basis::of_rows(program));
        match self.basis.take().filter(|basis| fits(basis, program)).or_else(crash).or_else(nothing) {
            Some(basis) => self.try_simplex(program, basis),
            None => Ok(None),
        }
    }

    /// Solves a linear program by our simplex, from a basis; none if it fails, which is no fallback: the chain is
    /// asked next.
    fn try_simplex(&mut self, program: &Program, basis: Basis) -> Result<Option<Answer>, SolvingError> {
        let Some(simplex) = self.simplex.take() else { return Ok(None) };
        let limits = Limits { iterations: Some(SIMPLEX_STEPS_MAX), ..self.limits.clone() };
        let limits = std::mem::replace(&mut self.limits, limits);
        self.basis = Some(basis);
        let (simplex, outcome) = self.try_backend(program, simplex);
        (self.simplex, self.limits) = (Some(simplex), limits);
        match outcome {
            Ok(answer) => Ok(Some(answer)),
            Err(SolvingError::Solve(SolveError::NotOptimal { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Solves a large linear program by an interior-point method, unless there is a basis to begin with, or the next
    /// program is to begin with this one's. None if the backend declines, which is not reported, or fails, which is a
    /// fallback.
    fn try_interior_point(&mut self, program: &Program) -> Result<Option<Answer>, SolvingError> {
        let goes_on = self.linear.first().is_some_and(|first| first.supports(Feature::WarmStart));
        let basis = self.basis.is_some() || (self.next_holds_optimum && goes_on);
        let fits = program.is_linear() && program.n_columns() >= COLUMNS_LARGE && !basis;
        let Some(backend) = (if fits { self.interior_point.take() } else { None }) else { return Ok(None) };
        let (backend, outcome) = self.try_backend(program, backend);
        self.interior_point = Some(backend);
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

    /// Solves a program by one backend, which is returned with the outcome; a program that it does not solve is not
    /// recorded.
    fn try_backend(
        &mut self,
        program: &Program,
        backend: Box<dyn Backend>,
    ) -> (Box<dyn Backend>, Result<Answer, SolvingError>) {
        let mut chain = [backend];
        let n_recorded = self.recorded.as_ref().map_or(0, Recording::len);
        let outcome = self.solve_by(program, Some(&mut chain));
        if let (Err(_), Some(recorded)) = (&outcome, &mut self.recorded) {
            recorded.truncate(n_recorded);
        }
        let [backend] = chain;
        (backend, outcome)
    }

    fn solve_by(
        &mut self,
        program: &Program,
        chain: Option<&mut [Box<dyn Backend>]>,
    ) -> Result<Answer, SolvingError> {
        if program.n_columns() == 0 {
            return Err(SolvingError::NoColumns);
        }
        self.check_time()?;
        let limits = self.limits();
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
        self.next_holds_optimum = false;
        let basis = self.basis.take().filter(|basis| fits(basis, program));
        let warm = WarmStart { basis, feasible: grown, columns: None };
        let usual = if program.is_linear() { &mut self.linear } else { &mut self.conic };
        let chain = chain.unwrap_or(usual);
        let clock = Stopwatch::start();
        let outcome = solve_certified(program, chain, &limits, Some(&warm));
        self.report.seconds.solve += clock.elapsed().as_secs_f64();
        self.report.solves += u32::from(!matches!(outcome, Err(SolveError::Declined { .. })));
        let certified = outcome?;
        if let Some(recorded) = &mut self.recorded {
            recorded.set_optimum(certified.certificate.primal);
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

/// Whether a basis has the shape of a program.
fn fits(basis: &Basis, program: &Program) -> bool {
    basis.columns.len() == program.n_columns() && basis.rows.len() == program.n_rows()
}
