//! Themis: leases of workers to the jobs that finish-time fairness serves worst.
//!
//!   ρ_m = (e_m + r_m / T_m) / (D_m + r_m / thr_iso(m))
//!
//! | symbol     | meaning                                                                     | unit    |
//! |------------|-----------------------------------------------------------------------------|---------|
//! | e_m        | time since arrival                                                          | s       |
//! | r_m        | steps remaining                                                             | steps   |
//! | T_m        | throughput on the fastest type that has s_m workers: what a bid hopes for   | steps/s |
//! | thr_iso(m) | throughput on an isolated 1/n share of the cluster, n the jobs now          | steps/s |
//! | D_m        | isolated time of the work done so far: what the caller says when the job is | s       |
//! |            | first seen, plus at each call (steps since the last) / (thr_iso at the last)|         |
//!
//! A job with workers holds them for the length of a lease and then gives them back. At each call free workers
//! are offered to the fraction 1 − `fairness` of the jobs without a lease whose ρ is largest (at least one job),
//! in descending order of ρ, ties by arrival; each takes s_m whole workers of the type with room that runs it
//! fastest. Workers still free go to the other jobs in random order, so that none idles that a job could use.
//!
//! Source: Mahajan et al., NSDI '20. Differs: Themis' bidders submit a table of ρ for many sets of workers and
//! an arbiter solves a partial-allocation auction with hidden payments, so that no bidder gains by lying; here ρ is
//! computed from the problem's data, and the jobs served worst choose in turn. The policy requests its next decision for
//! the instant at which the next lease ends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::index::{IndexVec, JobId, JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, Policy, PolicyError};
use crate::policy::heuristic::workers::{Handout, by_arrival, restored, time_remaining};
use crate::policy::heuristic::{Parameters, expect};
use crate::problem::Problem;
use crate::spec::snapshot::NUMBER_MAX;
use crate::units::{Seconds, Steps};
use crate::workload::random::{SeedStreams, Stream};

const NAME: &str = "themis";

/// Parameters of the rule `themis`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ThemisParameters {
    /// Time for which a job holds its workers, above 0. The default is that of the paper's evaluation.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "s")))]
    pub lease_s: f64,
    /// The fairness knob in [0, 1]: offers go to the fraction 1 − this of the jobs first. The default is that of the
    /// paper's evaluation. At 0 all workers go by ρ.
    pub fairness: f64,
}

impl Parameters for ThemisParameters {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let is_fine = self.lease_s > 0.0 && self.lease_s <= NUMBER_MAX;
        expect(is_fine, "lease_s", self.lease_s, "a number of seconds above 0")?;
        let is_fine = (0.0..=1.0).contains(&self.fairness);
        expect(is_fine, "fairness", self.fairness, "a number from 0 to 1")
    }
}

impl Default for ThemisParameters {
    fn default() -> Self {
        Self { lease_s: 1200.0, fairness: 0.8 }
    }
}

/// Themis. Its state: leases, isolated times and the random stream.
#[derive(Clone, Debug)]
pub struct Themis {
    parameters: ThemisParameters,
    state: State,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Histories of the active jobs, in order of arrival.
    jobs: Vec<History>,
    leftovers: Stream,
}

/// The history of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct History {
    job: JobId,
    /// Steps left at the last call.
    steps_remaining: f64,
    elapsed_s: f64,
    isolated_throughput: f64,
    /// D_m, isolated time of the work done so far.
    isolated_s: f64,
    lease: Option<Lease>,
}

/// A lease of workers of one type, with the time left of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lease {
    worker_type: WorkerTypeId,
    left_s: f64,
}

impl Themis {
    /// The rule with these parameters; no leases yet.
    pub fn new(parameters: ThemisParameters, seed: u64) -> Self {
        let leftovers = SeedStreams::new(seed).stream("themis");
        Self { parameters, state: State { jobs: Vec::new(), leftovers } }
    }

    /// Number of bidders that are offered workers first.
    fn n_offered(&self, n_bidders: usize) -> usize {
        let fraction = (1.0 - self.parameters.fairness).clamp(0.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to the number of bidders"
        )]
        let offered = (fraction * n_bidders as f64).ceil() as usize;
        offered.clamp(1, n_bidders.max(1)).min(n_bidders)
    }
}

/// The history of a job brought up to date: isolated time of the work done, and the time left of its lease.
fn brought_up(problem: &Problem, job: JobIndex, known: Option<&History>) -> History {
    let active = &problem.jobs()[job];
    let (steps_remaining, elapsed_s) = (active.steps_remaining.get(), active.elapsed.get());
    let isolated_throughput = isolated_throughput(problem, job);
    let Some(last) = known else {
        let (isolated_s, lease) = (active.isolated_elapsed.get(), None);
        return History {
            job: active.id,
            steps_remaining,
            elapsed_s,
            isolated_throughput,
            isolated_s,
            lease,
        };
    };
    let done = (last.steps_remaining - steps_remaining).max(0.0);
    let isolated_s = last.isolated_s + done / last.isolated_throughput;
    let lease = last.lease.as_ref().and_then(|lease| {
        let left_s = lease.left_s - (elapsed_s - last.elapsed_s);
        (left_s > 0.0).then_some(Lease { worker_type: lease.worker_type, left_s })
    });
    History { job: active.id, steps_remaining, elapsed_s, isolated_throughput, isolated_s, lease }
}

/// thr_iso(m) = Σ_j T[m,j]·x_j with x_j = w_j/(n·s_m), the row divided by max(1, its sum).
fn isolated_throughput(problem: &Problem, job: JobIndex) -> f64 {
    let sharers = problem.n_jobs() as f64 * f64::from(problem.jobs()[job].scale_factor);
    let share = |n_workers: u32| f64::from(n_workers) / sharers;
    let types = problem.cluster().types();
    let sum: f64 = types.iter().map(|kind| share(kind.n_workers)).sum();
    let row = problem.throughput().row(job);
    let throughput: f64 = types.iter().zip(row).map(|(kind, steps)| steps * share(kind.n_workers)).sum();
    throughput / sum.max(1.0)
}

/// ρ of every job if it got its fastest type now: [n].
fn rho(
    problem: &Problem,
    jobs: &IndexVec<JobIndex, History>,
) -> Result<IndexVec<JobIndex, f64>, PolicyError> {
    let hoped = time_remaining(NAME, problem)?;
    let ratio = |(job, active): (JobIndex, &crate::problem::ActiveJob)| {
        let history = &jobs[job];
        let isolated =
            Seconds::new(history.isolated_s + history.steps_remaining / history.isolated_throughput);
        (active.elapsed + Seconds::new(hoped[job])) / isolated
    };
    Ok(problem.jobs().enumerate().map(ratio).collect())
}

impl Policy for Themis {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let known: BTreeMap<JobId, &History> = self.state.jobs.iter().map(|last| (last.job, last)).collect();
        let mut jobs: IndexVec<JobIndex, History> = problem
            .jobs()
            .enumerate()
            .map(|(job, active)| brought_up(problem, job, known.get(&active.id).copied()))
            .collect();
        let rho = rho(problem, &jobs)?;
        let mut handout = Handout::new(problem);
        let leases: BTreeMap<JobId, WorkerTypeId> =
            jobs.iter().filter_map(|held| Some((held.job, held.lease.as_ref()?.worker_type))).collect();
        handout.keep(|job| leases.get(&job).copied());

        let mut bidders = by_arrival(problem);
        bidders.retain(|job| !handout.placed().contains_key(job));
        bidders.sort_by(|one, other| rho[*other].total_cmp(&rho[*one]));
        let mut others = bidders.split_off(self.n_offered(bidders.len()));
        handout.offer(bidders, true);
        self.state.leftovers.shuffle(&mut others);
        handout.offer(others, true);

        for job in problem.jobs().ids() {
            let held = handout.placed().get(&job).copied();
            let new = |worker_type| Lease { worker_type, left_s: self.parameters.lease_s };
            let kept = jobs[job].lease.take();
            jobs[job].lease = held.map(|worker_type| kept.unwrap_or_else(|| new(worker_type)));
        }
        let leases = jobs.iter().filter_map(|history| history.lease.as_ref());
        let next = leases.map(|lease| lease.left_s).min_by(f64::total_cmp);
        self.state.jobs = by_arrival(problem).into_iter().map(|job| jobs[job].clone()).collect();
        handout.decide_until(NAME, next)
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!(self.state)
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        self.state = restored(NAME, state)?;
        Ok(())
    }

    fn restate_steps(&mut self, job: JobId, more: Steps) {
        if let Some(history) = self.state.jobs.iter_mut().find(|history| history.job == job) {
            history.steps_remaining += more.get();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Snapshot, given};
    use super::*;

    fn themis(fairness: f64) -> Themis {
        Themis::new(ThemisParameters { lease_s: 100.0, fairness }, 7)
    }

    #[test]
    fn the_job_served_worst_leases_first() {
        // Two jobs, one worker of 1 step/s: thr_iso is 1/2. Job 0: e = 300, r = 100, ρ = 400/200 = 2.
        // Job 1: e = 10, r = 10, ρ = 20/20 = 1.
        let mut snapshot = Snapshot::new("only=1");
        snapshot.job(0, 1, 100.0, &[1.0]);
        snapshot.pass(290.0, &[]);
        snapshot.job(1, 1, 10.0, &[1.0]);
        snapshot.pass(10.0, &[]);
        let mut policy = themis(0.0);
        assert_eq!(given(&mut policy, &snapshot), ["0: only"]);

        // The lease holds although job 1 is now worse off: ρ_0 = (350 + 50)/(100 + 100) = 2, and
        // ρ_1 = (60 + 10)/20 = 3.5; when it has expired job 1 is served.
        snapshot.pass(50.0, &[(0, 50.0)]);
        let mut restored = themis(0.0);
        restored.restore(&policy.state()).unwrap();
        assert_eq!(given(&mut restored, &snapshot), ["0: only"]);
        snapshot.pass(50.0, &[(0, 49.0)]);
        assert_eq!(given(&mut restored, &snapshot), ["1: only"]);
        assert!(restored.restore(&serde_json::json!([])).is_err());
    }

    #[test]
    fn isolated_time_is_accumulated_at_the_share_of_the_last_call() {
        let mut policy = themis(0.0);
        let mut snapshot = Snapshot::new("only=1");
        snapshot.job(0, 1, 100.0, &[2.0]);
        given(&mut policy, &snapshot);
        snapshot.pass(10.0, &[(0, 20.0)]);
        snapshot.job(1, 1, 100.0, &[2.0]);
        given(&mut policy, &snapshot);
        // 20 steps alone at 2 steps/s; then 30 steps at half of that.
        snapshot.pass(15.0, &[(0, 30.0)]);
        given(&mut policy, &snapshot);
        assert!((policy.state.jobs[0].isolated_s - 40.0).abs() < 1e-12);
    }

    #[test]
    fn the_knob_says_how_many_are_offered_first() {
        for (fairness, n, offered) in [(0.8, 10, 2), (0.8, 3, 1), (1.0, 5, 1), (0.0, 5, 5), (0.8, 0, 0)] {
            assert_eq!(themis(fairness).n_offered(n), offered, "{fairness} of {n}");
        }
        // At 1 the worst-served is first and no other job's place is certain; no worker idles at any setting.
        for fairness in [0.0, 0.5, 1.0] {
            let mut snapshot = Snapshot::new("only=3");
            for job in 0..6 {
                snapshot.job(job, 1, 100.0, &[1.0]);
                snapshot.pass(10.0, &[]);
            }
            let leased = given(&mut themis(fairness), &snapshot);
            assert_eq!(leased.len(), 3);
            assert!(leased.contains(&"0: only".to_owned()));
        }
    }
}
