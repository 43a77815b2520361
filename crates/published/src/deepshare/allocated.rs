//! Policies that allocate time, in this world: shares become an order of the queue, and each job goes where it and its neighbours
//! retain most.
//!
//! A policy sees one worker type. A job's speed on it is the speed alone of a measured spread, times the mean retention
//! beside another active job (neighbours are not known when time is allocated), for the faster of its spreads. Shares are
//! computed anew when a job arrives or ends. In each round all jobs are taken off their servers and placed again by
//! priority (share over the part of time received since arrival); jobs that do not fit are skipped.

use std::fmt;
use std::sync::Arc;

use crate::deepshare::control::best_servers;
use crate::deepshare::{DeepShareSpeeds, N_SERVERS, WORKERS_PER_SERVER, is_shape, spread};
use crate::world::AfterRound;
use crate::world::Decision;
use crate::world::Part;
use crate::world::WorldPolicy;
use crate::world::{AllocatedError, World};
use apportion::cluster::Cluster;
use apportion::index::{IndexVec, JobId, JobIndex};
use apportion::mechanism::Priority;
use apportion::policy::Policy;
use apportion::problem::{ActiveJob, Problem, ProblemBuilder, ProblemError};
use apportion::units::{Seconds, Steps};

/// A policy that allocates time, as a policy of this world.
pub struct AllocatedPolicy {
    policy: Box<dyn Policy>,
    cluster: Arc<Cluster>,
    speeds: DeepShareSpeeds,
    /// Jobs that were active when shares were decided.
    asked: Vec<JobId>,
    asked_at_s: f64,
    again_after_s: Option<f64>,
    skips_unallotted: bool,
    /// Shares of time of the jobs in `asked`.
    shares: Vec<f64>,
    /// Jobs still to be tried in this round, in reverse order.
    queue: Vec<JobId>,
    parts: Vec<Part>,
    error: Option<AllocatedError>,
}

impl AllocatedPolicy {
    /// The rule of placed jobs after a round under such policies.
    pub const AFTER_ROUND: AfterRound = AfterRound::PreemptAll;

    /// A policy in a world of these speeds.
    ///
    /// # Errors
    /// Never: the cluster is a fixed one.
    pub fn new(policy: Box<dyn Policy>, speeds: DeepShareSpeeds) -> Result<Self, AllocatedError> {
        let n_workers = u32::try_from(N_SERVERS).unwrap_or(u32::MAX) * u32::from(WORKERS_PER_SERVER);
        Ok(Self {
            policy,
            cluster: Arc::new(Cluster::try_new([("accelerator", n_workers)])?),
            speeds,
            asked: Vec::new(),
            asked_at_s: 0.0,
            again_after_s: None,
            skips_unallotted: false,
            shares: Vec::new(),
            queue: Vec::new(),
            parts: Vec::with_capacity(N_SERVERS),
            error: None,
        })
    }

    /// The error after which the policy no longer decides anything, if there was one.
    pub fn error(&self) -> Option<&AllocatedError> {
        self.error.as_ref()
    }

    fn ask(&mut self, world: &World) -> Result<(), AllocatedError> {
        let problem = problem(world, &self.speeds, &self.cluster)?;
        let decision = self.policy.allocate(&problem)?;
        let mut shares: IndexVec<JobIndex, f64> = problem.jobs().iter().map(|_| 0.0).collect();
        let rows = decision.allocation.combinations().enumerate();
        for (row, combination) in rows {
            for job in combination.members() {
                shares[job] += decision.allocation.shares().row(row).iter().sum::<f64>();
            }
        }
        self.asked.clear();
        self.asked.extend(problem.jobs().iter().map(|job| job.id));
        self.shares.clear();
        self.shares.extend(shares.iter());
        self.asked_at_s = world.now_s();
        self.again_after_s = decision.rules.recompute_after.map(Seconds::get);
        self.skips_unallotted = decision.rules.skip_zero_priority;
        Ok(())
    }
}

/// The active jobs as a policy sees them.
fn problem(world: &World, speeds: &DeepShareSpeeds, cluster: &Arc<Cluster>) -> Result<Problem, ProblemError> {
    let mut problem = ProblemBuilder::new(Arc::clone(cluster));
    problem.reserve(world.active().len());
    for &job in world.active() {
        let known = world.job(job);
        let left = (known.work_estimated - world.progress(job)).max(0.0);
        let job = ActiveJob {
            scale_factor: u32::from(known.workers),
            steps_remaining: Steps::new(left),
            elapsed: Seconds::new(world.now_s() - known.arrival_s),
            ..ActiveJob::new(job)
        };
        let speed = expected_speed(world, speeds, job.id);
        problem.job(job, &[speed]);
    }
    problem.build()
}

/// Samples/s of a job at the faster of its spreads, with the mean retention beside another active job.
fn expected_speed(world: &World, speeds: &DeepShareSpeeds, job: JobId) -> f64 {
    let widths = [2, N_SERVERS].into_iter().filter(|width| is_shape(world.job(job).workers, *width));
    let at = widths.filter_map(|width| {
        let own = speeds.configuration(world, job, width)?;
        let others = world.active().iter().filter(|other| **other != job);
        let beside = others.filter_map(|other| speeds.configuration(world, *other, 2));
        let (sum, n) =
            beside.fold((0.0, 0.0), |(sum, n), other| (sum + speeds.retained(own, other), n + 1.0));
        Some(speeds.alone(own) * if n > 0.0 { sum / n } else { 1.0 })
    });
    at.fold(0.0, f64::max)
}

impl WorldPolicy for AllocatedPolicy {
    fn begin(&mut self, world: &World) {
        self.queue.clear();
        if self.error.is_some() {
            return;
        }
        let late = self.again_after_s.is_some_and(|after_s| world.now_s() >= self.asked_at_s + after_s);
        if (late || world.active() != self.asked)
            && let Err(error) = self.ask(world)
        {
            self.error = Some(error);
            return;
        }
        let total: f64 = self.asked.iter().map(|job| world.service_s(*job)).sum();
        let owed = self.asked.iter().zip(&self.shares);
        let mut owed: Vec<(Priority, JobId)> =
            owed.map(|(job, share)| (Priority::of(*share, world.service_s(*job), total), *job)).collect();
        owed.retain(|(priority, _)| !self.skips_unallotted || *priority != Priority::Nothing);
        owed.sort_by(|one, other| one.0.descending(other.0).then(one.1.cmp(&other.1)));
        self.queue.extend(owed.iter().rev().map(|(_, job)| *job));
    }

    fn next(&mut self, world: &World) -> Decision<'_> {
        while let Some(job) = self.queue.pop() {
            if let Some(servers) = best_servers(world, &self.speeds, job) {
                spread(&mut self.parts, world.job(job).workers, servers);
                return Decision::Place { job, parts: &self.parts };
            }
        }
        Decision::EndRound
    }
}

impl fmt::Debug for AllocatedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocatedPolicy").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deepshare::{DEMANDS, ROUND_S, job_type, world};
    use crate::world::WorldJob;
    use crate::world::{Limits, WorldError};
    use apportion::allocation::Allocation;
    use apportion::index::Id as _;
    use apportion::policy;
    use apportion::policy::PolicyError;
    use apportion::policy::heuristic::{ShortestParameters, Srtf};
    use apportion::spec::Fidelity;
    use apportion::throughput::spread::SpreadThroughputs;
    use apportion::workload::Combination;

    /// A policy with equal shares for all jobs, or with an error.
    #[derive(Debug)]
    struct Alike {
        fails: bool,
    }

    impl Policy for Alike {
        fn name(&self) -> &'static str {
            "alike"
        }

        fn allocate(&mut self, problem: &Problem) -> Result<policy::Decision, PolicyError> {
            if self.fails {
                return Err(PolicyError::State { policy: self.name().to_owned() });
            }
            let wanted: u32 = problem.jobs().iter().map(|job| job.scale_factor).sum();
            let share = (32.0 / f64::from(wanted)).min(1.0);
            let rows = (0..problem.n_jobs())
                .map(|job| (Combination::single(JobIndex::from_index(job)), vec![share]));
            Ok(policy::Decision::of(Allocation::check(problem, rows).unwrap()))
        }
    }

    /// The world after at most this number of rounds.
    fn play(
        policy: Box<dyn Policy>,
        jobs: &[WorldJob],
        rounds_max: u64,
    ) -> (World, Option<AllocatedError>, Result<(), WorldError>) {
        let tables = SpreadThroughputs::deepshare();
        let mut speeds = DeepShareSpeeds::new(&tables, Fidelity::Corrected);
        let mut policy = AllocatedPolicy::new(policy, speeds.clone()).unwrap();
        let mut world = world(&tables, Fidelity::Corrected, AllocatedPolicy::AFTER_ROUND);
        world.reset(jobs);
        let limits = Limits { decisions_max: 100, rounds_max };
        let ended = crate::world::run(&mut world, &mut speeds, &mut policy, limits).map(drop);
        (world, policy.error().cloned(), ended)
    }

    fn job(model: usize, work: f64) -> WorldJob {
        let (workers, job_type) = (DEMANDS[2], job_type(model, 2));
        WorldJob { job_type, workers, work, work_estimated: work, arrival_s: 0.0, owner: 0 }
    }

    #[test]
    fn equal_shares_become_turns() {
        let jobs = vec![job(0, 1e12); 12];
        let (world, error, ended) = play(Box::new(Alike { fails: false }), &jobs, 12);
        assert!(error.is_none() && ended.is_err(), "the jobs are endless");
        for &job in world.active() {
            let rounds = world.service_s(job) / ROUND_S;
            assert!((rounds - 4.0).abs() < 1e-9, "four of twelve fit at a time, job {job} had {rounds}");
        }
    }

    #[test]
    fn the_shortest_run_first_and_all_end() {
        let hours = |hours: f64| job(4, hours * 3600.0 * 20.0);
        let jobs: Vec<WorldJob> = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0].into_iter().map(hours).collect();
        let srtf = || Box::new(Srtf::new(ShortestParameters::default()));
        let (world, _, _) = play(srtf(), &jobs, 1);
        let ran = |number: usize| world.service_s(JobId::from_index(number)) > 0.0;
        assert_eq!([0, 1, 2, 3, 4, 5].map(ran), [false, true, false, true, true, true]);
        let (world, error, ended) = play(srtf(), &jobs, 10_000);
        assert!(error.is_none() && ended.is_ok() && world.is_done());
    }

    #[test]
    fn a_policy_without_an_answer_is_told() {
        let (world, error, ended) = play(Box::new(Alike { fails: true }), &[job(0, 1.0)], 3);
        assert!(matches!(error, Some(AllocatedError::Policy(_))), "{error:?}");
        assert!(ended.is_err() && world.n_done() == 0);
    }
}
