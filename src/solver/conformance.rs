//! The conformance suite: programs with known answers that every backend must get right.
//!
//! It is part of the library, so that a backend written elsewhere can be put through it:
//!
//! ```
//! use apportion::solver::clarabel::Clarabel;
//! use apportion::solver::conformance;
//! let failures = conformance::run(&mut Clarabel);
//! assert!(failures.is_empty(), "{failures:?}");
//! ```
//!
//! An answer is judged by its certificate and by the known value; every dual by moving its bound both ways and
//! solving again. A backend must refuse a program for which it lacks a feature, and one that does not take programs
//! of any structure may decline a case. A fault found in one backend becomes a case here for all; a fault that cannot
//! be mended from here becomes an [`Exclusion`].

mod cases;

use std::fmt;

use crate::program::Program;
use crate::solver::backend::{Backend, Feature, Limits, Solution, SolveError, Termination, WarmStart};
use crate::solver::certificate::{AnswerCertificate, TOLERANCE};

pub use cases::CASES;

/// The right answer to a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// An optimum of this value.
    Optimal(f64),
    /// No feasible point. "Infeasible or unbounded" is accepted.
    Infeasible,
    /// No bound on the objective. "Infeasible or unbounded" is accepted.
    Unbounded,
}

/// A program and its right answer.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of the case.
    pub name: &'static str,
    /// The right answer to the case.
    pub expected: Expected,
    /// Whether the optimum is unique in the duals too, so that each can be checked by moving its bound.
    pub duals_unique: bool,
    /// The program.
    pub program: fn() -> Program,
}

/// A case that a backend is known to fail.
#[derive(Clone, Copy, Debug)]
pub struct Exclusion {
    /// The backend.
    pub backend: &'static str,
    /// The case.
    pub case: &'static str,
    /// Reason why the failure cannot be mended here.
    pub reason: &'static str,
}

/// Known failures of the backends here.
pub const EXCLUSIONS: &[Exclusion] = &[];

/// A case that went wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The case.
    pub case: &'static str,
    /// Description of the fault in the answer.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.what)
    }
}

/// The distance by which a bound is moved to check a dual, relative to max(1, its size).
const BOUND_SHIFT: f64 = 1e-3;
/// The largest difference of a dual from the measured slope, relative to the slope's size, taken between 1 and 1,000.
const SLOPE_TOLERANCE: f64 = 1e-3;

/// Runs a backend on all cases but its exclusions, and returns the failures.
pub fn run(backend: &mut dyn Backend) -> Vec<Failure> {
    let mut failures = Vec::new();
    for case in CASES {
        let excluded =
            |exclusion: &Exclusion| exclusion.backend == backend.name() && exclusion.case == case.name;
        if EXCLUSIONS.iter().any(excluded) {
            continue;
        }
        if let Err(what) = run_case(backend, case) {
            failures.push(Failure { case: case.name, what });
        }
    }
    if let Err(what) = check_malformed(backend) {
        failures.push(Failure { case: "malformed programs", what });
    }
    failures
}

/// Runs a backend on one case.
///
/// # Errors
/// A description of the fault.
pub fn run_case(backend: &mut dyn Backend, case: &Case) -> Result<(), String> {
    let program = (case.program)();
    let lacks = |feature| !backend.supports(feature);
    let uses = |kind| program.cones.iter().any(|cone| cone.kind == kind);
    let refused = (uses(crate::program::ConeKind::Exponential) && lacks(Feature::ExponentialCones))
        || (uses(crate::program::ConeKind::SecondOrder) && lacks(Feature::SecondOrderCones));
    let may_decline = lacks(Feature::AnyStructure);
    let answer = backend.solve(&program, &Limits::default(), None);
    if may_decline && matches!(answer, Err(SolveError::Declined { .. })) {
        return Ok(());
    }
    if refused {
        return match answer {
            Err(SolveError::Unsupported { .. }) => Ok(()),
            other => Err(format!("a cone it does not support should be refused, but: {other:?}")),
        };
    }
    let solution = answer.map_err(|error| error.to_string())?;
    match case.expected {
        Expected::Optimal(value) => check_optimum(backend, case, &program, (value, &solution)),
        Expected::Infeasible => claims(&solution, Termination::Infeasible),
        Expected::Unbounded => claims(&solution, Termination::Unbounded),
    }
}

fn claims(solution: &Solution, expected: Termination) -> Result<(), String> {
    if solution.termination == expected || solution.termination == Termination::InfeasibleOrUnbounded {
        return Ok(());
    }
    Err(format!("ended {:?}, expected {expected:?}", solution.termination))
}

fn check_optimum(
    backend: &mut dyn Backend,
    case: &Case,
    program: &Program,
    (value, solution): (f64, &Solution),
) -> Result<(), String> {
    if !matches!(solution.termination, Termination::Optimal | Termination::Inaccurate) {
        return Err(format!("ended {:?}, expected an optimum", solution.termination));
    }
    let certificate = AnswerCertificate::of(program, solution);
    let off = |found: f64| (found - value).abs() > TOLERANCE * value.abs().max(found.abs()).max(1e-9);
    if off(certificate.primal) && (certificate.primal - value).abs() > 1e-9 {
        return Err(format!("found {}, expected {value}", certificate.primal));
    }
    if off(solution.objective) && (solution.objective - value).abs() > 1e-9 {
        return Err(format!("reports {}, expected {value}", solution.objective));
    }
    if certificate.violation_max > TOLERANCE {
        return Err(format!("violates a constraint by {:e}", certificate.violation_max));
    }
    if backend.supports(Feature::Duals) {
        if !certificate.optimal {
            return Err(format!("its duals do not certify it: {certificate:?}"));
        }
        if case.duals_unique {
            check_row_duals(backend, program, solution)?;
            check_cone_duals(backend, program, solution)?;
        }
    } else if !solution.row_duals.is_empty() && program.n_columns() > 0 {
        return Err("it gives duals that it says it has not".to_owned());
    }
    if backend.supports(Feature::WarmStart) {
        check_warm_start(backend, program, solution)?;
    }
    Ok(())
}

/// The optimum of a changed program.
fn optimum(backend: &mut dyn Backend, program: &Program) -> Result<f64, String> {
    let solution = backend.solve(program, &Limits::default(), None).map_err(|error| error.to_string())?;
    let certificate = AnswerCertificate::of(program, &solution);
    if certificate.optimal { Ok(certificate.primal) } else { Err("a moved bound has no optimum".to_owned()) }
}

/// Compares a dual with the change of the objective per unit by which its bound is moved.
fn compare(name: &str, dual: f64, ahead: f64, behind: f64, step: f64) -> Result<(), String> {
    let slope = (ahead - behind) / (2.0 * step);
    if (slope - dual).abs() <= SLOPE_TOLERANCE * slope.abs().clamp(1.0, 1e3) {
        return Ok(());
    }
    Err(format!("the dual of {name} is {dual}, but moving its bound changes the objective by {slope} a unit"))
}

fn check_row_duals(backend: &mut dyn Backend, program: &Program, solution: &Solution) -> Result<(), String> {
    for row in 0..program.n_rows() {
        let range = program.rows[row];
        let dual = solution.row_duals[row];
        let size = [range.lower, range.upper].into_iter().filter(|bound| bound.is_finite());
        let step = BOUND_SHIFT * size.fold(1.0, |a: f64, b| a.max(b.abs()));
        let mut moved = |by: f64| {
            let mut changed = program.clone();
            changed.rows[row].lower += by;
            changed.rows[row].upper += by;
            optimum(backend, &changed)
        };
        compare(&program.row_name(row), dual, moved(step)?, moved(-step)?, step)?;
    }
    Ok(())
}

fn check_cone_duals(backend: &mut dyn Backend, program: &Program, solution: &Solution) -> Result<(), String> {
    for (position, cone) in program.cones.iter().enumerate() {
        for entry in 0..cone.entries.len() {
            let dual = solution.cone_duals[position][entry];
            let mut moved = |by: f64| {
                let mut changed = program.clone();
                changed.cones[position].entries[entry].constant += by;
                optimum(backend, &changed)
            };
            let name = format!("entry {entry} of cone {position}");
            compare(&name, dual, moved(BOUND_SHIFT)?, moved(-BOUND_SHIFT)?, BOUND_SHIFT)?;
        }
    }
    Ok(())
}

/// A program that is solved again from its own final basis must take no iteration and end at a certified optimum.
fn check_warm_start(backend: &mut dyn Backend, program: &Program, solution: &Solution) -> Result<(), String> {
    if program.n_columns() == 0 {
        return Ok(());
    }
    let Some(basis) = &solution.basis else { return Err("no basis to start from".to_owned()) };
    if basis.columns.len() != program.n_columns() || basis.rows.len() != program.n_rows() {
        return Err("its basis has another shape than the program".to_owned());
    }
    let warm = WarmStart { basis: Some(basis.clone()), ..WarmStart::default() };
    let again = backend.solve(program, &Limits::default(), Some(&warm)).map_err(|error| error.to_string())?;
    let certificate = AnswerCertificate::of(program, &again);
    if again.iterations != 0 || !certificate.optimal {
        return Err(format!("from its own basis it took {} iterations: {certificate:?}", again.iterations));
    }
    Ok(())
}

/// Programs that are not in standard form must be refused as malformed.
fn check_malformed(backend: &mut dyn Backend) -> Result<(), String> {
    for (what, program) in cases::malformed() {
        match backend.solve(&program, &Limits::default(), None) {
            Err(SolveError::Malformed { .. }) => {}
            other => return Err(format!("{what} should be refused, but: {other:?}")),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
