//! Time on slower worker types exchanged for idle time on faster ones, where the policy does not tell them apart.
//!
//! To a policy that does not look at speeds, all worker types on which a job can run are the same: which of them it gives the job
//! is chance. A job that has time on a slow type while a worker of a faster one idles is better off there, and neither the
//! policy's objective nor any job's level changes.

use crate::allocation::{Allocation, AllocationError};
use crate::index::{Id, JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, PolicyError};
use crate::policy::program::options::Refine;
use crate::policy::program::policy::ProgramPolicy;
use crate::policy::view::ThroughputView;
use crate::problem::Problem;
use crate::spec::Fidelity;
use crate::workload::Combination;

/// Time and workers below this are rounding.
const LEAST: f64 = 1e-9;

/// The most rounds over all jobs and pairs of types: a worker that an exchange frees may be a faster one for another
/// job.
const ROUNDS_MAX: usize = 64;

/// Jobs alike in speeds, size and time: each exchange takes the same part of the time of each of them.
struct AlikeJobs {
    /// Positions of the jobs' rows.
    rows: Vec<usize>,
    scale_factor: f64,
    /// Throughput of each job, steps/s: `[K]`.
    speeds: Vec<f64>,
    /// Time of one job: `[K]`.
    time: Vec<f64>,
}

/// A possible exchange: its group of jobs, both worker types, and the gain per worker, relative to the job's fastest
/// throughput.
struct Exchange {
    group: usize,
    from: usize,
    to: usize,
    gain: f64,
}

/// The treatment of time on slower worker types while faster ones are idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlowTime {
    /// The time stays as the policy decided.
    Left,
    /// The time is exchanged for idle time on the faster types.
    Exchanged,
}

impl ProgramPolicy {
    /// This policy with exchanges made in its decisions: for single decisions. Policies that are compared over time
    /// are compared without them, so that one that does not look at speeds gains nothing by them.
    #[must_use]
    pub fn exchanging(mut self) -> Self {
        self.slow_time = SlowTime::Exchanged;
        self
    }

    /// Makes the exchanges in a decision, if they were asked for and the policy neither sees speeds nor tells worker
    /// types apart in another way.
    pub(super) fn exchange(&mut self, problem: &Problem, decision: &mut Decision) -> Result<(), PolicyError> {
        let options = &self.options;
        let sees_speeds = options.view == ThroughputView::Measured || options.fidelity == Fidelity::Published;
        let chooses =
            matches!(options.refine, Refine::Utilization | Refine::WaterFilling) && !options.discounted;
        if self.slow_time == SlowTime::Left
            || sees_speeds
            || !chooses
            || !options.objective.reads_throughput_only()
        {
            return Ok(());
        }
        let exchanged = on_faster_types(problem, &decision.allocation);
        let exchanged = exchanged
            .map_err(|source| PolicyError::Allocation { policy: self.options.name.clone(), source })?;
        if let Some((allocation, n_jobs)) = exchanged {
            decision.allocation = allocation;
            self.solver.report().exchanged = n_jobs;
        }
        Ok(())
    }
}

/// The allocation after all exchanges, and the number of jobs in them; none if there is no exchange. Pairs are left
/// as they are.
pub(super) fn on_faster_types(
    problem: &Problem,
    allocation: &Allocation,
) -> Result<Option<(Allocation, usize)>, AllocationError> {
    let rows = allocation.combinations().ids().zip(allocation.combinations());
    let mut shares: Vec<(Combination<JobIndex>, Vec<f64>)> =
        rows.map(|(row, combination)| (*combination, allocation.shares().row(row).to_vec())).collect();
    let mut idle = idle_workers(problem, &shares);
    let mut groups = groups_of_alike(problem, &shares);
    let exchanges = exchanges(problem, &groups);
    let mut has_moved = vec![false; groups.len()];
    for _ in 0..ROUNDS_MAX {
        let mut moves = false;
        for Exchange { group, from, to, .. } in &exchanges {
            let AlikeJobs { rows, scale_factor, time, .. } = &mut groups[*group];
            let size = *scale_factor * rows.len() as f64;
            let moved = time[*from].min(idle[*to] / size);
            if moved <= LEAST {
                continue;
            }
            time[*from] -= moved;
            time[*to] += moved;
            idle[*from] += size * moved;
            idle[*to] -= size * moved;
            has_moved[*group] = true;
            moves = true;
        }
        if !moves {
            break;
        }
    }
    let mut n_jobs = 0;
    for (group, _) in groups.into_iter().zip(has_moved).filter(|(_, moved)| *moved) {
        n_jobs += group.rows.len();
        for row in group.rows {
            shares[row].1.clone_from(&group.time);
        }
    }
    if n_jobs == 0 {
        return Ok(None);
    }
    Allocation::check(problem, shares).map(|exchanged| Some((exchanged, n_jobs)))
}

/// Workers of each type that shares leave idle: `[K]`.
fn idle_workers(problem: &Problem, shares: &[(Combination<JobIndex>, Vec<f64>)]) -> Vec<f64> {
    let mut idle: Vec<f64> = problem.cluster().types().iter().map(|kind| f64::from(kind.n_workers)).collect();
    for (combination, row) in shares {
        let size = f64::from(problem.jobs()[combination.first()].scale_factor);
        for (idle, share) in idle.iter_mut().zip(row) {
            *idle -= size * share;
        }
    }
    idle
}

/// A job's size, the bits of its speeds and of its time, `[K]` each, and the position of its row.
type Key = (u32, Vec<u64>, Vec<u64>, usize);

/// Groups of jobs alone that have time and are alike, in order of the first job of each.
fn groups_of_alike(problem: &Problem, shares: &[(Combination<JobIndex>, Vec<f64>)]) -> Vec<AlikeJobs> {
    let has_time = |(_, (combination, row)): &(usize, &(Combination<JobIndex>, Vec<f64>))| {
        !combination.is_pair() && row.iter().any(|share| *share > LEAST)
    };
    let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<u64>>();
    let key = |(row, (combination, share)): (usize, &(Combination<JobIndex>, Vec<f64>))| -> Key {
        let job = combination.first();
        (problem.jobs()[job].scale_factor, bits(problem.throughput().row(job)), bits(share), row)
    };
    let mut keys: Vec<Key> = shares.iter().enumerate().filter(has_time).map(key).collect();
    keys.sort_unstable();
    let group = |keys: &[Key]| AlikeJobs {
        rows: keys.iter().map(|(.., row)| *row).collect(),
        scale_factor: f64::from(keys[0].0),
        speeds: keys[0].1.iter().map(|bits| f64::from_bits(*bits)).collect(),
        time: keys[0].2.iter().map(|bits| f64::from_bits(*bits)).collect(),
    };
    let same = |one: &Key, other: &Key| (one.0, &one.1, &one.2) == (other.0, &other.1, &other.2);
    let mut groups: Vec<AlikeJobs> = keys.chunk_by(same).map(group).collect();
    groups.sort_by_key(|group| group.rows[0]);
    groups
}

/// The exchanges that gain speed, the largest gain for a worker first, relative to the job's fastest type.
fn exchanges(problem: &Problem, groups: &[AlikeJobs]) -> Vec<Exchange> {
    let fits = |to: usize, group: &AlikeJobs| {
        f64::from(problem.cluster().types()[WorkerTypeId::from_index(to)].n_workers) >= group.scale_factor
    };
    let mut found = Vec::new();
    for (position, group) in groups.iter().enumerate() {
        let fastest = group.speeds.iter().copied().fold(0.0, f64::max);
        for (to, speed) in group.speeds.iter().enumerate().filter(|(to, _)| fits(*to, group)) {
            for (from, other) in group.speeds.iter().enumerate().filter(|(_, other)| **other < *speed) {
                // On types where it cannot run, it has no time.
                if *other > 0.0 {
                    let gain = (speed - other) / (fastest * group.scale_factor);
                    found.push(Exchange { group: position, from, to, gain });
                }
            }
        }
    }
    found.sort_by(|one, other| {
        let by_place = || (one.group, one.to, one.from).cmp(&(other.group, other.to, other.from));
        other.gain.total_cmp(&one.gain).then_with(by_place)
    });
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::JobId;
    use crate::policy::Policy;
    use crate::policy::program::tests::options_of;
    use crate::problem::{ActiveJob, ProblemBuilder};
    use crate::program::{ObjectiveText, Sense};

    fn problem(cluster: &str, jobs: &[(u32, &[f64])]) -> Problem {
        let mut builder = ProblemBuilder::new(Arc::new(cluster.parse().unwrap()));
        for (id, (scale_factor, speeds)) in jobs.iter().enumerate() {
            let job = ActiveJob::new(JobId::from_index(id));
            builder.job(ActiveJob { scale_factor: *scale_factor, ..job }, speeds);
        }
        builder.build().unwrap()
    }

    fn exchanged(problem: &Problem, shares: &[&[f64]]) -> Option<(Vec<Vec<f64>>, usize)> {
        let row = |(job, row): (JobIndex, &&[f64])| (Combination::single(job), row.to_vec());
        let allocation = Allocation::check(problem, problem.jobs().ids().zip(shares).map(row)).unwrap();
        let (allocation, n_jobs) = on_faster_types(problem, &allocation).unwrap()?;
        let rows = allocation.combinations().ids().map(|row| allocation.shares().row(row).to_vec());
        Some((rows.collect(), n_jobs))
    }

    #[test]
    fn time_on_a_slower_type_is_exchanged_for_idle_time_on_a_faster_one() {
        let three = problem("fast=2,slow=2", &[(1, &[10.0, 0.0]), (1, &[10.0, 5.0]), (1, &[8.0, 2.0])]);
        // The second and the third gain half and three quarters of their speed: the third has the idle worker.
        let found = exchanged(&three, &[&[1.0, 0.0], &[0.0, 1.0], &[0.0, 1.0]]);
        assert_eq!(found, Some((vec![vec![1.0, 0.0], vec![0.0, 1.0], vec![1.0, 0.0]], 1)));
        assert_eq!(exchanged(&three, &[&[1.0, 0.0], &[1.0, 0.0], &[0.0, 1.0]]), None);
    }

    #[test]
    fn jobs_that_are_alike_have_part_in_equal_measure_and_gangs_where_they_fit() {
        let alike = problem("fast=1,slow=3", &[(1, &[4.0, 1.0]), (1, &[4.0, 1.0]), (1, &[1.0, 4.0])]);
        let found = exchanged(&alike, &[&[0.0, 1.0], &[0.0, 1.0], &[0.0, 1.0]]);
        assert_eq!(found, Some((vec![vec![0.5, 0.5], vec![0.5, 0.5], vec![0.0, 1.0]], 2)));
        let gang = problem("fast=1,slow=2", &[(2, &[4.0, 1.0])]);
        assert_eq!(exchanged(&gang, &[&[0.0, 1.0]]), None);
    }

    #[test]
    fn a_worker_that_an_exchange_frees_may_be_a_faster_one_for_another_job() {
        let chain = problem("a=1,b=1,c=1", &[(1, &[3.0, 1.0, 0.0]), (1, &[0.0, 9.0, 8.0])]);
        let found = exchanged(&chain, &[&[0.0, 1.0, 0.0], &[0.0, 0.0, 1.0]]);
        assert_eq!(found, Some((vec![vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0]], 2)));
    }

    #[test]
    fn only_decisions_that_are_looked_at_by_themselves_are_exchanged_and_only_of_policies_blind_to_types() {
        let problem = problem("fast=3,slow=2", &[(1, &[10.0, 0.0]), (1, &[10.0, 5.0]), (1, &[8.0, 2.0])]);
        let used = |constraint: Option<&str>, exchanges: bool, refine| {
            let mut text = ObjectiveText::new(Sense::Maximize, "min_over_jobs(throughput)");
            text.for_each_job.extend(constraint.map(crate::program::ConstraintText::hard));
            let view = ThroughputView::Unit { everywhere: false };
            let options = crate::policy::program::ProgramOptions { view, refine, ..options_of(&text) };
            let policy = ProgramPolicy::try_new(options).unwrap();
            let mut policy = if exchanges { policy.exchanging() } else { policy };
            let decision = policy.allocate(&problem).unwrap();
            let objective = decision.objective.unwrap();
            assert!(objective.optimal && (objective.value - 1.0).abs() < 1e-6);
            let of_last = decision.allocation.effective_throughput().as_slice()[2];
            (of_last, decision.solve.unwrap().exchanged)
        };
        let utilization = Refine::Utilization;
        let (before, none) = used(None, false, utilization);
        let (after, moved) = used(None, true, utilization);
        assert!(none == 0 && (after - 8.0).abs() < 1e-6, "{before} {after} {moved}");
        assert_eq!(moved > 0, before < 7.9);
        assert_eq!(used(Some("time_on(fast) <= 1"), true, utilization).1, 0);
        assert_eq!(used(None, true, Refine::Interior).1, 0);
    }
}
