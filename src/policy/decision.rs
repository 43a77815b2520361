//! The interface of policies: the trait that a policy implements, and its decision.

mod errors;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::errors::{Conflict, ConflictNames, PolicyError, in_words};
use crate::allocation::Allocation;
use crate::index::{JobId, JobIndex};
use crate::policy::explain::Explanation;
use crate::policy::program::{GaveUp, Reason, Strategy};
use crate::problem::Problem;
pub use crate::program::Sense;
use crate::units::{Seconds, Steps};

/// A policy that decides time shares: a function of the problem and of its own declared, serializable state.
pub trait Policy: fmt::Debug + Send {
    /// The name by which users know the policy.
    fn name(&self) -> &str;

    /// Decides the time shares of the jobs in `problem`; called at re-computation events only. A problem
    /// without jobs is answered by an allocation without rows.
    ///
    /// # Errors
    /// If the problem lacks what the policy needs, is infeasible, or no solver certifies an optimum.
    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError>;

    /// Explains the decision on `problem` without taking it: the policy's state stays as it was.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    fn explain(&mut self, problem: &Problem) -> Result<Explanation, PolicyError> {
        let state = self.state();
        let decision = self.allocate(problem)?;
        self.restore(&state)?;
        Ok(Explanation::of_shares(problem, decision, "it gives no prices".to_owned()))
    }

    /// The state that must survive a checkpoint, as JSON; `null` if there is none.
    fn state(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Restores a state that [`state`](Self::state) returned.
    ///
    /// # Errors
    /// If the value was not written by this policy.
    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        if state.is_null() { Ok(()) } else { Err(PolicyError::State { policy: self.name().to_owned() }) }
    }

    /// Adds steps to those that a job had left in the last problem, or takes them away if they are negative, without
    /// a run of the job. A policy that remembers the job's steps corrects them; one that remembers none has nothing
    /// to do.
    fn restate_steps(&mut self, job: JobId, more: Steps) {
        let _ = (job, more);
    }
}

/// A policy's decision, with its evidence.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The shares, checked.
    pub allocation: Allocation,
    /// The policy's own objective; none for heuristics.
    pub objective: Option<ObjectiveReport>,
    /// The normalized level of every job, where the policy has levels: `[n]`.
    pub levels: Option<Vec<f64>>,
    /// Report on how the decision was solved; none for closed forms and heuristics.
    pub solve: Option<SolveReport>,
    /// Jobs whose droppable constraints were dropped.
    pub dropped: Vec<JobIndex>,
    /// Rules that the policy needs of the mechanism.
    pub rules: RoundRules,
}

impl Decision {
    /// A decision without an objective, under the default rules.
    pub fn of(allocation: Allocation) -> Self {
        Self {
            allocation,
            objective: None,
            levels: None,
            solve: None,
            dropped: Vec::new(),
            rules: RoundRules::default(),
        }
    }
}

/// The objective's value with its proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveReport {
    /// Direction in which the objective is optimized.
    pub sense: Sense,
    /// Value of the allocation returned, recomputed from it, in the objective's unit; penalties of soft constraints
    /// included.
    pub value: f64,
    /// Bound from dual values that no allocation can beat; where droppable constraints were dropped, no allocation
    /// that drops those of the same jobs.
    pub bound: f64,
    /// |bound − value| / max(|value|, |bound|); for sums of logarithms, max with 1 besides. Where both are
    /// below 1e-11 of the largest value that the objective can have, the optimum is 0 but for rounding, and the gap is no larger than
    /// the certificate's tolerance.
    pub gap_relative: f64,
    /// Largest constraint violation of the shares returned.
    pub violation_max: f64,
    /// Whether the gap is within the certificate's tolerance.
    pub optimal: bool,
    /// Whether the optimum is lexicographic. Then this report is on its first level, the least of all jobs', and
    /// nothing is certified of the levels above it.
    pub first_level_only: bool,
}

/// Wall time of the parts of a solve, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SolveSeconds {
    /// Grouping of jobs and building of the program.
    pub build: f64,
    /// Time inside backends.
    pub solve: f64,
    /// Certification of the backends' answers.
    pub certify: f64,
    /// Expansion of classes to jobs and the check of the allocation.
    pub expand: f64,
}

impl SolveSeconds {
    /// Sum of all parts, in seconds.
    pub fn total(self) -> f64 {
        self.build + self.solve + self.certify + self.expand
    }
}

/// Size of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramSize {
    /// Classes of interchangeable jobs.
    pub classes: usize,
    /// Columns.
    pub columns: usize,
    /// Rows, cones apart.
    pub rows: usize,
    /// Coefficients of the rows.
    pub terms: usize,
}

/// Report on how a decision was solved.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SolveReport {
    /// Strategy by which the optimum was found.
    pub strategy: Strategy,
    /// Reason for which that strategy was chosen.
    pub reason: Reason,
    /// Strategies that were tried before, each with why it gave up.
    pub gave_up: Vec<(Strategy, GaveUp)>,
    /// Strategy by which the droppable constraints to drop were found, and the reason for it; none where a policy has none.
    pub droppable: Option<(Strategy, Reason)>,
    /// The backend that solved the program of the optimum or, where none was written for it, the last program that was: of
    /// droppable constraints, or of a choice among optima. None if none was written.
    pub backend: Option<String>,
    /// `linear`, `parametric` or `conic`: [`Route::name`](crate::program::Route::name).
    pub route: String,
    /// Wall time by part of the solve.
    pub seconds: SolveSeconds,
    /// Iterations of all programs, and passes over all jobs of all searches.
    pub iterations: u64,
    /// Programs written that a backend worked on; one that two worked on counts twice.
    pub solves: u32,
    /// Searches for prices, which write no program.
    pub searches: u32,
    /// The largest program, searches counting as the programs that they stand for.
    pub size: ProgramSize,
    /// Jobs whose time on slower worker types was exchanged for idle time on faster ones, which the policy does not tell apart.
    pub exchanged: usize,
    /// Was the time for it over before the optimum was found, or chosen among optima? Then the decision is the best found so far.
    pub out_of_time: bool,
    /// Was the time over before all discounts of a policy that has them were found? Then the shares are without any.
    pub undiscounted: bool,
    /// Departures from the plan, each with its reason: backends with an answer that was rejected, optima that were not
    /// refined.
    pub fallbacks: Vec<String>,
}

/// The order in which a round fills worker types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TypeOrder {
    /// Order of the throughput matrix, fastest first.
    #[default]
    Speed,
    /// Random order, shuffled anew each round, for policies that do not look at speed.
    Shuffled,
}

/// Rules that a policy needs of the mechanism: data, so that nothing downstream asks for its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundRules {
    /// Combinations with priority 0 are skipped, not used as fillers.
    pub skip_zero_priority: bool,
    /// The order of worker types.
    pub type_order: TypeOrder,
    /// Whether pairs without a share fill workers left free, as single jobs do: for policies that share space.
    pub pair_fillers: bool,
    /// Whether nothing runs longer than its share of the time, though workers idle: for policies that limit the total
    /// over jobs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within_shares: bool,
    /// Time after this decision from which the policy is asked again, at the next boundary, though nothing has
    /// changed and the last reset was a moment ago: for rules of which time itself is a part. None = when something
    /// changes.
    pub recompute_after: Option<Seconds>,
}
