//! A decision as its user sees it: shares, value, bound and verdict.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};

use crate::check::arithmetic::Row;
use apportion::catalog::{Catalog, PolicyOptions};
use apportion::index::Id;
use apportion::policy::{Decision, PolicyError, Sense};
use apportion::problem::Problem;
use apportion::solver::SolveError;

/// Outcome of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Shares that are claimed to be optimal.
    Certified,
    /// Shares that are not proven to be optimal.
    Uncertified,
    /// Claim that there is no solution.
    Infeasible,
    /// Claim that there is no finite optimum.
    Unbounded,
    /// No answer was certified by any backend.
    Unsolved,
    /// The instance lacks what the policy needs, or the backend does not take its program.
    Refused,
    /// An error that blames the program itself.
    Broken,
    /// A panic, or the end of the process.
    Crashed,
    /// No end was reached within the limit.
    NoEnd,
    /// The decision was left out, because others of the kind had no end.
    NotTried,
}

/// Answer of a policy on an instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// Name of the policy.
    pub policy: String,
    /// Backend that was requested; `default` if none was.
    pub backend: String,
    /// Outcome.
    pub verdict: Verdict,
    /// Value of the objective; none if there is none, or it is not finite.
    pub value: Option<f64>,
    /// Bound on the objective that no allocation betters.
    pub bound: Option<f64>,
    /// Relative gap, as it is printed.
    pub gap_relative: Option<f64>,
    /// Whether larger values are better.
    pub maximize: bool,
    /// Time shares.
    pub rows: Vec<Row>,
    /// Positions of jobs whose deadlines were given up.
    pub dropped: Vec<usize>,
    /// Reason why there are no shares.
    pub message: Option<String>,
}

impl Decided {
    /// An answer without shares.
    pub fn without(policy: &str, backend: &str, verdict: Verdict, message: impl Into<String>) -> Self {
        Self {
            policy: policy.to_owned(),
            backend: backend.to_owned(),
            verdict,
            value: None,
            bound: None,
            gap_relative: None,
            maximize: true,
            rows: Vec::new(),
            dropped: Vec::new(),
            message: Some(message.into()),
        }
    }

    fn of(policy: &str, backend: &str, decision: &Decision) -> Self {
        let allocation = &decision.allocation;
        let rows = allocation.combinations().ids().map(|id| Row {
            jobs: allocation.combinations()[id].members().map(Id::index).collect(),
            shares: allocation.shares().row(id).to_vec(),
        });
        let objective = decision.objective.as_ref();
        let optimal = objective.is_none_or(|objective| objective.optimal);
        Self {
            verdict: if optimal { Verdict::Certified } else { Verdict::Uncertified },
            value: objective.map(|objective| objective.value),
            bound: objective.map(|objective| objective.bound),
            gap_relative: objective.map(|objective| objective.gap_relative),
            maximize: objective.is_none_or(|objective| objective.sense == Sense::Maximize),
            rows: rows.filter(|row| row.shares.iter().any(|share| *share != 0.0)).collect(),
            dropped: decision.dropped.iter().map(|job| job.index()).collect(),
            message: None,
            ..Self::without(policy, backend, Verdict::Certified, "")
        }
    }
}

/// Lets a policy decide. `backend`: the one to try first, or none.
pub fn decide(catalog: &Catalog, problem: &Problem, policy: &str, backend: Option<&str>) -> Decided {
    let named = backend.unwrap_or("default");
    let options = PolicyOptions { backend: backend.map(str::to_owned), ..PolicyOptions::default() };
    let mut built = match catalog.build(policy, &options) {
        Ok(built) => built,
        Err(error) => return Decided::without(policy, named, Verdict::Refused, error.to_string()),
    };
    match catch_unwind(AssertUnwindSafe(|| built.allocate(problem))) {
        Ok(Ok(decision)) => Decided::of(policy, named, &decision),
        Ok(Err(error)) => Decided::without(policy, named, verdict(&error), error.to_string()),
        Err(panic) => Decided::without(policy, named, Verdict::Crashed, words(&*panic)),
    }
}

fn verdict(error: &PolicyError) -> Verdict {
    match error {
        PolicyError::Infeasible { .. } | PolicyError::Conflict { .. } => Verdict::Infeasible,
        PolicyError::Unbounded { .. } => Verdict::Unbounded,
        PolicyError::Missing { .. }
        | PolicyError::Data { .. }
        | PolicyError::Overflow { .. }
        | PolicyError::Undecided { .. }
        | PolicyError::Strategy { .. }
        | PolicyError::State { .. } => Verdict::Refused,
        PolicyError::Solve(error) => match error {
            SolveError::Unsupported { .. }
            | SolveError::Declined { .. }
            | SolveError::UnknownBackend { .. } => Verdict::Refused,
            _ => Verdict::Unsolved,
        },
        _ => Verdict::Broken,
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::spec::Source;
    use apportion::{Cluster, Job, Throughputs};

    #[test]
    fn constraints_that_contradict_one_another_are_an_infeasible_policy() {
        let mut catalog = Catalog::embedded();
        let text = "format: apportion/policy-v1\nname: much\nsummary: s\nkind: program\nmaximize: sum_over_jobs(throughput)\n\
                    for_each_worker_type: ['sum_over_jobs(workers_on(type)) >= 2 * capacity(type)']\n";
        catalog.add(Source::new("much.yaml", text)).unwrap();
        let cluster: Cluster = "v100=1".parse().unwrap();
        let throughputs = Throughputs::embedded("osdi20").unwrap();
        let problem = Problem::new(&cluster, &[Job::new("A3C").steps(10)], &throughputs).unwrap();
        let decided = decide(&catalog, &problem, "much", None);
        assert_eq!(decided.verdict, Verdict::Infeasible, "{decided:?}");
    }
}
