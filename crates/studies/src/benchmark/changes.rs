//! Time of one arrival or departure in a [`Session`], certificate included.

use std::collections::VecDeque;

use thiserror::Error;

use apportion::index::{Id, JobIndex};
use apportion::policy::{PolicyError, ProgramPolicy, Session, SessionError};
use apportion::problem::{ActiveJob, Problem};
use apportion::solver::timing::Stopwatch;
use apportion::workload::random::SeedStreams;

/// Number of departures before the first arrival; every job arrives again that many departures after its own.
const AWAY: usize = 16;

/// Measured times of changes, one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Time from each change to the certified decision, ascending, s: processor time, or time by the clock where the system
    /// tells no processor time.
    pub seconds: Vec<f64>,
    /// Number of decisions with fallbacks: a solver's answer was not certified, so another solver was tried.
    pub n_fallbacks: usize,
    /// Number of decisions whose certificate is not within its tolerance.
    pub n_uncertified: usize,
}

/// Reason why changes were not measured.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ChangesError {
    /// The policy has no sessions.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A decision failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl Changes {
    /// The least time that a part of the changes, `0..=1`, does not exceed, s; none if there were no changes.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let last = self.seconds.len().checked_sub(1)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a count is a count"
        )]
        let at = (last as f64 * part.clamp(0.0, 1.0)).ceil() as usize;
        self.seconds.get(at.min(last)).copied()
    }
}

/// Measures `n` departures and arrivals in turn, of jobs drawn at random, with a decision after each. `processor` is as in
/// [`measure`](super::measure::measure).
///
/// # Errors
/// If the policy has no sessions, or a decision fails.
pub fn changes(
    problem: &Problem,
    policy: ProgramPolicy,
    (n, seed): (u32, u64),
    processor: &dyn Fn() -> Option<f64>,
) -> Result<Changes, ChangesError> {
    let mut draws = SeedStreams::new(seed).stream("benchmark changes");
    let mut session = Session::new(policy, problem.clone())?;
    let mut away: VecDeque<(ActiveJob, Vec<f64>)> = VecDeque::new();
    let someone = |session: &Session, draws: &mut apportion::workload::random::Stream| {
        let index = JobIndex::from_index(draws.below(session.problem().n_jobs()));
        let jobs = session.problem();
        (jobs.jobs()[index].clone(), jobs.throughput().row(index).to_vec())
    };
    while away.len() < AWAY.min(problem.n_jobs() / 2) {
        let (job, speeds) = someone(&session, &mut draws);
        session.remove(job.id)?;
        away.push_back((job, speeds));
    }
    session.decide()?;
    let mut measured = Changes { seconds: Vec::new(), n_fallbacks: 0, n_uncertified: 0 };
    for change in 0..n {
        let arriving = if change % 2 == 1 { away.pop_front() } else { None };
        let leaving = arriving.is_none().then(|| someone(&session, &mut draws));
        let (clock, before) = (Stopwatch::start(), processor());
        if let Some((job, speeds)) = arriving {
            session.insert(job, &speeds)?;
        }
        if let Some((job, _)) = &leaving {
            session.remove(job.id)?;
        }
        let decided = session.decide()?;
        let (waited, after) = (clock.elapsed().as_secs_f64(), processor());
        measured.n_fallbacks += usize::from(!decided.solve.fallbacks.is_empty());
        let certified = decided.objective.as_ref().is_none_or(|objective| objective.optimal);
        measured.n_uncertified += usize::from(!certified);
        measured.seconds.push(before.zip(after).map_or(waited, |(before, after)| after - before));
        away.extend(leaving);
    }
    measured.seconds.sort_by(f64::total_cmp);
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let seconds = (1..=100).map(f64::from).collect();
        let changes = Changes { seconds, n_fallbacks: 0, n_uncertified: 0 };
        assert_eq!(
            [0.0, 0.5, 0.99, 1.0].map(|part| changes.quantile(part)),
            [1.0, 51.0, 100.0, 100.0].map(Some)
        );
        assert_eq!(Changes { seconds: Vec::new(), ..changes }.quantile(0.5), None);
    }
}
