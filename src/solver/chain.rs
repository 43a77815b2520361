//! Chains of backends: the first certified optimum wins, and no status is taken at its word.

use crate::program::{Program, Sense};
use crate::solver::backend::{Backend, Limits, Solution, SolveError, Termination, WarmStart};
use crate::solver::certificate::{AnswerCertificate, TOLERANCE, dual_bound};
use crate::solver::forced::Reduced;
use crate::solver::intake::check;
use crate::solver::timing::Stopwatch;

/// A certified optimum, and how it was found.
#[derive(Clone, Debug)]
pub struct Certified {
    /// The answer.
    pub solution: Solution,
    /// The certificate of the answer.
    pub certificate: AnswerCertificate,
    /// The backend that gave the answer.
    pub backend: &'static str,
    /// A line for each backend that failed before; each counts as a fallback.
    pub fallbacks: Vec<String>,
    /// Iterations of all backends together.
    pub iterations: u64,
    /// Wall time spent on certificates, in s.
    pub certify_seconds: f64,
}

/// The outcomes of the backends tried so far, with the tightest bound that they prove.
#[derive(Debug, Default)]
struct Attempts {
    /// The outcome of each failed attempt, in words.
    lines: Vec<String>,
    iterations: u64,
    certify_seconds: f64,
    /// The tightest bound on the objective that the duals of any backend have proven.
    bound: Option<f64>,
    /// The claim that there is no optimum, if a backend made it.
    claim: Option<Termination>,
    /// Termination of the last backend that gave an answer.
    last: Option<Termination>,
}

/// Tries each backend in turn until one answers with a certified optimum.
///
/// An answer is accepted on its certificate alone, whatever its termination says. Bounds proven by one backend's
/// duals are kept to judge the next one's answer; an answer without duals, as microlp's, can be certified in no other
/// way. "Infeasible" and "unbounded" are claims that nothing here certifies: all backends are asked, and
/// [`without_optimum`](crate::solver::without_optimum) proves the claim, or does not. A backend that declines a
/// program or lacks a feature for it is passed over, and is no fallback.
///
/// In a program with cones, columns that the rows allow only one value are fixed: at once where that leaves a cone
/// without the interior that interior-point methods need, else only after no backend has succeeded.
///
/// ```
/// use apportion::program::{Program, Range, Sense};
/// use apportion::solver::{Limits, registry, solve_certified};
///
/// // maximize x + 2y subject to x + y ≤ 4, 0 ≤ x ≤ 4, 0 ≤ y ≤ 3
/// let mut program = Program::new(Sense::Maximize);
/// let mut column = |upper, cost| {
///     let bounds = Range { lower: 0.0, upper };
///     program.push_column(bounds, bounds, cost)
/// };
/// let (x, y) = (column(4.0, 1.0), column(3.0, 2.0));
/// program.push_row(Range::at_most(4.0), [(x, 1.0), (y, 1.0)]);
/// let mut chain = registry::default_chain(&program);
/// let found = solve_certified(&program, &mut chain, &Limits::default(), None)?;
/// assert!(found.certificate.optimal && (found.certificate.primal - 7.0).abs() < 1e-6);
/// # Ok::<(), apportion::solver::SolveError>(())
/// ```
///
/// # Errors
/// [`SolveError::NotOptimal`] if no answer is certified, with the claim as its termination if there is one, else that
/// of the last backend; [`SolveError::Malformed`] at once; the first error of a backend if no backend gave an answer.
pub fn solve_certified(
    program: &Program,
    chain: &mut [Box<dyn Backend>],
    limits: &Limits,
    warm: Option<&WarmStart>,
) -> Result<Certified, SolveError> {
    let is_sound = !program.is_linear() && check(program).is_ok();
    let Some(reduced) = (if is_sound { Reduced::of(program) } else { None }) else {
        return solve_in_turn(program, chain, limits, warm);
    };
    if reduced.is_flat
        && let Some(certified) = without_forced(program, &reduced, chain, limits)
    {
        return Ok(certified);
    }
    solve_in_turn(program, chain, limits, warm).or_else(|error| {
        let SolveError::NotOptimal { attempts, .. } = &error else { return Err(error) };
        let found = if reduced.is_flat { None } else { without_forced(program, &reduced, chain, limits) };
        let Some(mut certified) = found else { return Err(error) };
        certified.fallbacks.insert(0, attempts.clone());
        Ok(certified)
    })
}

/// Tries each backend in turn on this program as it is.
fn solve_in_turn(
    program: &Program,
    chain: &mut [Box<dyn Backend>],
    limits: &Limits,
    warm: Option<&WarmStart>,
) -> Result<Certified, SolveError> {
    let mut attempts = Attempts::default();
    let mut failure = None;
    let clock = Stopwatch::start();
    for backend in chain.iter_mut() {
        let name = backend.name();
        let time = limits.time.map(|time| time.saturating_sub(clock.elapsed()));
        if attempts.last.is_some() && time.is_some_and(|time| time.is_zero()) {
            break;
        }
        match backend.solve(program, &Limits { time, ..limits.clone() }, warm) {
            Ok(solution) => {
                attempts.iterations += solution.iterations;
                let clock = Stopwatch::start();
                let certificate = attempts.judge(program, &solution);
                attempts.certify_seconds += clock.elapsed().as_secs_f64();
                if certificate.optimal {
                    return Ok(Certified {
                        solution,
                        certificate,
                        backend: name,
                        fallbacks: attempts.lines,
                        iterations: attempts.iterations,
                        certify_seconds: attempts.certify_seconds,
                    });
                }
                attempts.record(name, &solution, &certificate);
                attempts.claimed(solution.termination);
            }
            Err(error @ SolveError::Malformed { .. }) => return Err(error),
            // A backend that is not made for this program is no fallback.
            Err(error @ (SolveError::Declined { .. } | SolveError::Unsupported { .. })) => {
                failure.get_or_insert(error);
            }
            Err(error) => {
                attempts.lines.push(error.to_string());
                failure.get_or_insert(error);
            }
        }
    }
    match (attempts.claim.or(attempts.last), failure) {
        (Some(termination), _) => Err(attempts.failed(termination)),
        (None, Some(error)) => Err(error),
        (None, None) => Err(SolveError::NotOptimal {
            attempts: "the chain has no backend".to_owned(),
            termination: Termination::Failed,
        }),
    }
}

/// The certified optimum of a program from that of its reduction, in which columns that rows allow only one value are
/// fixed. None if the reduction is not solved, or its solution is no certified optimum of the whole program.
fn without_forced(
    program: &Program,
    reduced: &Reduced,
    chain: &mut [Box<dyn Backend>],
    limits: &Limits,
) -> Option<Certified> {
    let certified = solve_certified(&reduced.program, chain, limits, None).ok()?;
    let (solution, certificate) =
        reduced.recover(program, certified.solution.clone(), certified.certificate.bound);
    certificate.optimal.then_some(Certified { solution, certificate, ..certified })
}

impl Attempts {
    /// The certificate of an answer by the tightest bound of all answers so far, which this one may tighten.
    fn judge(&mut self, program: &Program, solution: &Solution) -> AnswerCertificate {
        if self.bound.is_none() {
            let certificate = AnswerCertificate::of(program, solution);
            self.bound = certificate.bound.is_finite().then_some(certificate.bound);
            return certificate;
        }
        let proven = dual_bound(program, &solution.row_duals, &solution.cone_duals);
        self.bound = self.bound.map(|known| match program.sense {
            Sense::Maximize => known.min(proven),
            Sense::Minimize => known.max(proven),
        });
        AnswerCertificate::with_bound(program, solution, self.bound)
    }

    fn record(&mut self, name: &str, solution: &Solution, certificate: &AnswerCertificate) {
        let termination = solution.termination;
        // A claimed optimum that breaks a constraint is none.
        let refuted = termination == Termination::Optimal && certificate.violation_max > TOLERANCE;
        self.last = Some(if refuted { Termination::Failed } else { termination });
        let line = if certificate.primal.is_finite() {
            let (violation, gap) = (certificate.violation_max, certificate.gap_relative);
            let silent = solution.row_duals.is_empty() && solution.cone_duals.is_empty();
            let proof = if silent && gap.is_infinite() {
                "without dual values nothing proves it".to_owned()
            } else {
                format!("gap {gap:.1e}")
            };
            format!("{name}: {} (violation {violation:.1e}, {proof})", ended(termination))
        } else {
            format!("{name}: {}", ended(termination))
        };
        self.lines.push(line);
    }

    /// Records a claim that there is no optimum; two different claims leave open which of them holds.
    fn claimed(&mut self, termination: Termination) {
        if !matches!(
            termination,
            Termination::Infeasible | Termination::Unbounded | Termination::InfeasibleOrUnbounded
        ) {
            return;
        }
        let unclear = Termination::InfeasibleOrUnbounded;
        self.claim = Some(match self.claim {
            Some(earlier) if earlier == termination || termination == unclear => earlier,
            Some(earlier) if earlier != unclear => unclear,
            _ => termination,
        });
    }

    fn failed(self, termination: Termination) -> SolveError {
        SolveError::NotOptimal { attempts: self.lines.join("; "), termination }
    }
}

/// Description of how a backend ended, in which the absence of an optimum is called a claim.
fn ended(termination: Termination) -> String {
    let claim = match termination {
        Termination::Infeasible => "infeasible",
        Termination::Unbounded => "unbounded",
        Termination::InfeasibleOrUnbounded => "infeasible or unbounded",
        other => return format!("{other:?}"),
    };
    format!("claims that the program is {claim}")
}

#[cfg(test)]
mod tests;
