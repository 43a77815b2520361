//! D_m, the isolated time that a job has accumulated: finish-time fairness measures against it.
//!
//! At each decision D_m grows by (steps done since the last one)/(thr_iso at the last one): the time that the
//! isolated share would have needed for the steps done. It starts at the figure of the problem in which the job is
//! first seen; figures of later problems are not added. Source: Mahajan et al. (NSDI '20), as Narayanan et al. (OSDI
//! '20) compute it.

use serde::{Deserialize, Serialize};

use crate::index::JobId;
use crate::policy::view::{self, ThroughputView};
use crate::problem::Problem;
use crate::units::Steps;

/// The isolated time of a job at the last decision, with the data that bring it up to date.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Account {
    accumulated_s: f64,
    steps_remaining: f64,
    isolated_throughput: f64,
}

/// The accounts of all active jobs; accounts of other jobs are deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct IsolatedTime {
    /// Accounts in ascending order of jobs; written as a mapping.
    #[serde(with = "by_job")]
    accounts: Vec<(JobId, Account)>,
}

mod by_job {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Account, JobId};

    pub(super) fn serialize<S: Serializer>(
        accounts: &[(JobId, Account)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(accounts.iter().map(|(job, account)| (job, account)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(JobId, Account)>, D::Error> {
        let accounts: BTreeMap<JobId, Account> = BTreeMap::deserialize(deserializer)?;
        Ok(accounts.into_iter().collect())
    }
}

impl IsolatedTime {
    /// Brings the accounts up to date and returns them, in seconds: [n].
    pub(super) fn update(&mut self, problem: &Problem, view: &ThroughputView) -> Vec<f64> {
        let seen = view.seen(problem);
        let mut row = vec![0.0; problem.n_types()];
        let mut next = Vec::with_capacity(problem.n_jobs());
        let mut seconds = Vec::with_capacity(problem.n_jobs());
        let mut place = 0;
        for (index, job) in problem.jobs().enumerate() {
            let remaining = job.steps_remaining.get();
            let accumulated_s = self.find(job.id, &mut place).map_or(job.isolated_elapsed.get(), |account| {
                let done = (account.steps_remaining - remaining).max(0.0);
                account.accumulated_s + done / account.isolated_throughput
            });
            seen.row(index, &mut row);
            let isolated_throughput = view::isolated(problem, job.scale_factor, &row);
            next.push((job.id, Account { accumulated_s, steps_remaining: remaining, isolated_throughput }));
            seconds.push(accumulated_s);
        }
        if !next.is_sorted_by_key(|(job, _)| *job) {
            next.sort_by_key(|(job, _)| *job);
        }
        self.accounts = next;
        seconds
    }

    /// Adds steps to the steps that a job had left at the last decision.
    pub(super) fn restate_steps(&mut self, job: JobId, more: Steps) {
        if let Ok(place) = self.accounts.binary_search_by_key(&job, |(other, _)| *other) {
            self.accounts[place].1.steps_remaining += more.get();
        }
    }

    /// A job's account. `place`: its position if the jobs come in order and none is gone.
    fn find(&self, job: JobId, place: &mut usize) -> Option<Account> {
        if self.accounts.get(*place).is_none_or(|(other, _)| *other != job) {
            *place = self.accounts.binary_search_by_key(&job, |(other, _)| *other).ok()?;
        }
        let (_, account) = self.accounts[*place];
        *place += 1;
        Some(account)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::Id;
    use crate::problem::{ActiveJob, ProblemBuilder};
    use crate::units::Steps;

    fn problem(jobs: &[(usize, f64)]) -> Problem {
        let mut builder = ProblemBuilder::new(Arc::new("fast=1".parse().unwrap()));
        for (id, steps) in jobs {
            let job =
                ActiveJob { steps_remaining: Steps::new(*steps), ..ActiveJob::new(JobId::from_index(*id)) };
            builder.job(job, &[2.0]);
        }
        builder.build().unwrap()
    }

    #[test]
    fn accounts_follow_their_jobs_in_any_order_and_survive_being_written() {
        let mut time = IsolatedTime::default();
        let view = ThroughputView::Measured;
        assert_eq!(time.update(&problem(&[(1, 8.0), (4, 8.0), (6, 8.0), (9, 8.0)]), &view), [0.0; 4]);
        // Each has a quarter of a worker at 2 steps/s: 2 steps take 4 s.
        let text = serde_json::to_string(&time).unwrap();
        assert!(text.starts_with(r#"{"accounts":{"1":{"accumulated_s":0.0,"#), "{text}");
        let mut read: IsolatedTime = serde_json::from_str(&text).unwrap();
        let next = problem(&[(9, 6.0), (4, 8.0), (2, 5.0), (1, 4.0)]);
        assert_eq!(time.update(&next, &view), [4.0, 0.0, 0.0, 8.0]);
        assert_eq!(read.update(&next, &view), [4.0, 0.0, 0.0, 8.0]);
        assert_eq!(time, read);
    }
}
