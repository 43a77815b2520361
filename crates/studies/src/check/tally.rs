//! What became of the decisions on all instances of so many decades.

use schemars::JsonSchema;
use serde::Serialize;

use crate::check::decided::{Decided, Verdict};
use crate::check::judge::{Fault, Judge};

/// Counts of decisions, and the worst that was seen of them.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct Tally {
    /// Decades over which the instances' numbers are spread.
    pub decades: f64,
    /// Instances.
    pub instances: u64,
    /// Decisions: policies × backends × instances.
    pub decisions: u64,
    /// Of them: with shares that are said to be optimal,
    pub certified: u64,
    /// with shares that are not proven to be,
    pub uncertified: u64,
    /// said to have no solution,
    pub infeasible: u64,
    /// said to have no finite optimum,
    pub unbounded: u64,
    /// of which no backend certified an answer,
    pub unsolved: u64,
    /// lacking what the policy needs,
    pub refused: u64,
    /// errors that blame the program itself,
    pub broken: u64,
    /// panics,
    pub crashed: u64,
    /// without an end within the limit,
    pub no_end: u64,
    /// left out because others had no end.
    pub not_tried: u64,
    /// Decisions of which a claim is untrue.
    pub untrue: u64,
    /// The largest relative gap of shares.
    pub gap_max: Option<f64>,
    /// The largest relative difference between optima of a policy by different backends.
    pub disagreement_max: Option<f64>,
}

impl Tally {
    /// Of one instance.
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

    /// Adds others of the same decades.
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
