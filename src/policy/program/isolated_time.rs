//! D_m: the isolated time a job has accumulated, which finish-time fairness measures against.
//!
//! At each decision D_m grows by (steps done since the last one)/(thr_iso at the last one): the time that the
//! isolated share would have needed for what was done. It starts at what the problem in which the job is first seen
//! says of it; what later problems say is not added again. Source: Mahajan et al. (NSDI '20), as Narayanan et al.
//! (OSDI '20) compute it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::index::JobId;
use crate::policy::view::{self, ThroughputView};
use crate::problem::Problem;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Account {
    accumulated_s: f64,
    steps_remaining: f64,
    isolated_throughput: f64,
}

/// Every active job's account; jobs that are gone are forgotten.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct IsolatedTime {
    accounts: BTreeMap<JobId, Account>,
}

impl IsolatedTime {
    /// Brings the accounts up to date and returns them, in seconds: [n].
    pub(super) fn update(&mut self, problem: &Problem, view: &ThroughputView) -> Vec<f64> {
        let mut row = vec![0.0; problem.n_types()];
        let mut next = BTreeMap::new();
        let mut seconds = Vec::with_capacity(problem.n_jobs());
        for (index, job) in problem.jobs().enumerate() {
            let remaining = job.steps_remaining.get();
            let accumulated_s = self.accounts.get(&job.id).map_or(job.isolated_elapsed.get(), |account| {
                let done = (account.steps_remaining - remaining).max(0.0);
                account.accumulated_s + done / account.isolated_throughput
            });
            view.row(problem, index, &mut row);
            let isolated_throughput = view::isolated(problem, index, &row);
            next.insert(job.id, Account { accumulated_s, steps_remaining: remaining, isolated_throughput });
            seconds.push(accumulated_s);
        }
        self.accounts = next;
        seconds
    }
}
