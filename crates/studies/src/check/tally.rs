//! Counts of the decisions on all instances with numbers spread over one number of decades.

use schemars::JsonSchema;
use serde::Serialize;

use crate::check::decided::{Decided, Verdict};
use crate::check::judge::{Fault, Judge};

/// Counts of decisions, with the largest gap and disagreement.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct Tally {
    /// Decades over which the instances' numbers are spread.
    pub decades: f64,
    /// Number of instances.
    pub instances: u64,
    /// Number of decisions: policies × backends × instances.
    pub decisions: u64,
    /// Number of decisions with shares that are claimed to be optimal.
    pub certified: u64,
    /// Number of decisions with shares that are not proven to be optimal.
    pub uncertified: u64,
    /// Number of claims that there is no solution.
    pub infeasible: u64,
    /// Number of claims that there is no finite optimum.
    pub unbounded: u64,
    /// Number of decisions without an answer certified by any backend.
    pub unsolved: u64,
    /// Number of decisions refused: the instance lacks what the policy needs, or the backend does not take the program.
    pub refused: u64,
    /// Number of errors that blame the program itself.
    pub broken: u64,
    /// Number of panics, and of processes that ended.
    pub crashed: u64,
    /// Number of decisions without an end within the limit.
    pub no_end: u64,
    /// Number of decisions left out because others had no end.
    pub not_tried: u64,
    /// Number of decisions with an untrue claim.
    pub untrue: u64,
    /// Largest relative gap of shares.
    pub gap_max: Option<f64>,
    /// Largest relative difference between optima of a policy by different backends.
    pub disagreement_max: Option<f64>,
}

impl Tally {
    /// Counts of one instance.
    pub fn of(decades: f64, decisions: &[Decided], judge: &Judge<'_>, faults: &[Fault]) -> Self {
        let count =
            |verdict: Verdict| decisions.iter().filter(|decided| decided.verdict == verdict).count() as u64;
        let is_untrue = |decided: &&Decided| {
            faults.iter().any(|fault| (&fault.policy, &fault.backend) == (&decided.policy, &decided.backend))
        };
        Self {
            decades,
            instances: 1,
            decisions: decisions.len() as u64,
            certified: count(Verdict::Certified),
            uncertified: count(Verdict::Uncertified),
            infeasible: count(Verdict::Infeasible),
            unbounded: count(Verdict::Unbounded),
            unsolved: count(Verdict::Unsolved),
            refused: count(Verdict::Refused),
            broken: count(Verdict::Broken),
            crashed: count(Verdict::Crashed),
            no_end: count(Verdict::NoEnd),
            not_tried: count(Verdict::NotTried),
            untrue: decisions.iter().filter(is_untrue).count() as u64,
            gap_max: decisions.iter().filter_map(|decided| decided.gap_relative).reduce(f64::max),
            disagreement_max: judge.worst_disagreement(),
        }
    }

    /// Adds the counts of other instances with the same decades.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.instances, other.instances),
            (&mut self.decisions, other.decisions),
            (&mut self.certified, other.certified),
            (&mut self.uncertified, other.uncertified),
            (&mut self.infeasible, other.infeasible),
            (&mut self.unbounded, other.unbounded),
            (&mut self.unsolved, other.unsolved),
            (&mut self.refused, other.refused),
            (&mut self.broken, other.broken),
            (&mut self.crashed, other.crashed),
            (&mut self.no_end, other.no_end),
            (&mut self.not_tried, other.not_tried),
            (&mut self.untrue, other.untrue),
        ] {
            *sum += more;
        }
        let larger = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::max);
        self.gap_max = larger(self.gap_max, other.gap_max);
        self.disagreement_max = larger(self.disagreement_max, other.disagreement_max);
    }
}
