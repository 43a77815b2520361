//! The bound as a function of its multipliers: one allocation for each of many instants.

use std::sync::Arc;

use rayon::prelude::*;

use crate::bound::Attended;
use crate::bound::ascent::{Function, Valued};
use crate::bound::error::BoundError;
use crate::bound::instance::{Instance, TimedJob};
use apportion::Cluster;
use apportion::catalog::{Catalog, CatalogError, PolicyOptions};
use apportion::index::{Id, JobId};
use apportion::policy::{Policy, ProgramOptions, ProgramPolicy};
use apportion::problem::{ActiveJob, Colocation, Problem, ProblemBuilder};
use apportion::spec::Source;
use apportion::units::{Seconds, Steps};

/// Policy with the most valuable allocation at an instant: a job's steps have a value, and time on workers costs a toll.
const POLICY: &str = "\
format: apportion/policy-v1
name: bound
summary: the allocation of the most worth at an instant
source: this project
kind: program
throughput: measured
colocation: COLOCATION
maximize: sum_over_jobs(worth * throughput - toll * sum_over_worker_types(time_on(type)))
columns: {worth: \"s/steps >= 0\", toll: \"1 >= 0\"}
refine: none
";

/// Number of successive instants whose allocations one policy object computes. It does not depend on the number of threads,
/// so neither do the allocations.
const CHUNK: usize = 64;

/// Number of intervals per mean fastest time of the jobs at which allocations are computed during the search.
const PARTS: f64 = 8.0;
/// First weight θ of the search, on the first of the two bounds on a completion time.
const WEIGHT_START: f64 = 0.75;
/// Least weight θ of the first of the two bounds on a completion time: with none, a job might as well run at the end of
/// time.
const WEIGHT_MIN: f64 = 0.3;
/// Approximate limit on the instants that are added between arrivals.
const INSTANTS_MAX: f64 = 1e5;
/// The like of [`INSTANTS_MAX`] for each job. A schedule without idle time needs some thirty; where jobs take times that are far
/// apart, or the search looks far ahead, there would be thousands.
const INSTANTS_PER_JOB: f64 = 400.0;
/// Largest contribution of a job to the optimum of an instant's program at which the job is left out of it; the contribution
/// is then added to the bound.
const NEGLIGIBLE: f64 = 1e-9;

/// Bound, summed over jobs, as a function of its multipliers: first an instant e of each job, s, in order of arrival, then
/// the weight θ of each job. v is e − (1 − θ) a. Where a job runs at its fastest, alone and from its arrival, the best e is
/// its end. Symbols are those of [`bound`](super): a is a job's arrival, θ its weight of the first of two bounds.
pub(super) struct Dual<'a> {
    jobs: Vec<TimedJob>,
    cluster: Arc<Cluster>,
    colocation: Colocation,
    options: ProgramOptions,
    /// Longest time between two instants, s.
    longest: f64,
    attended: &'a Attended<'a>,
    n_programs: u64,
}

/// Instant at which an allocation is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Instant {
    at: f64,
    /// Number of jobs that have arrived, which are the first in order of arrival.
    n_arrived: usize,
    /// Weight of the instant in the trapezoid rule, s.
    stands_for: f64,
}

/// Value of a job's steps, and toll of its time on workers, at an instant.
struct Worth {
    /// Position of the job in order of arrival.
    job: usize,
    /// Value v − θ t of all its steps, s.
    per_job: f64,
    /// Toll 1 − θ.
    toll: f64,
}

/// Integral of A over the instants of a chunk, and its gradient.
struct Part {
    value: f64,
    gradient: Vec<f64>,
    n_programs: u64,
}

impl<'a> Dual<'a> {
    pub(super) fn new(instance: &Instance<'_>, attended: &'a Attended<'a>) -> Result<Self, BoundError> {
        let (jobs, colocation) = instance.timed()?;
        let pairs = if instance.pairs { "pairs" } else { "none" };
        let mut catalog = Catalog::embedded();
        catalog.add(Source::new("bound", POLICY.replace("COLOCATION", pairs))).map_err(CatalogError::from)?;
        let policy_options =
            PolicyOptions { interrupt: attended.interrupt.clone(), ..PolicyOptions::default() };
        let policy = catalog.program("bound", &policy_options)?;
        let policy = policy.unwrap_or_else(|| unreachable!("its document says that it is a program"));
        let cluster = Arc::new(instance.cluster.clone());
        let options = policy.options().clone();
        let mut dual = Self { jobs, cluster, colocation, options, longest: 0.0, attended, n_programs: 0 };
        dual.longest = dual.mean_fastest() / PARTS;
        Ok(dual)
    }

    pub(super) fn n_programs(&self) -> u64 {
        self.n_programs
    }

    /// Divides the time between instants by `times`.
    pub(super) fn refine(&mut self, times: f64) {
        self.longest /= times;
    }

    /// Mean of the jobs' durations at their fastest, s.
    pub(super) fn mean_fastest(&self) -> f64 {
        self.jobs.iter().map(|job| job.fastest).sum::<f64>() / self.jobs.len() as f64
    }

    /// Multipliers to start from: the instant e of each job is its arrival plus `times` its duration on its fastest type.
    pub(super) fn multipliers(&self, times: f64) -> Vec<f64> {
        let ends = self.jobs.iter().map(|job| job.arrival + times * job.fastest);
        ends.chain(self.jobs.iter().map(|_| WEIGHT_START)).collect()
    }

    /// Estimate of 1 / |second derivative| for each multiplier: p for e, which is exact where a job runs at its fastest from
    /// its arrival, and 1/p for θ.
    pub(super) fn scales(&self) -> Vec<f64> {
        let times = self.jobs.iter().map(|job| job.fastest);
        times.clone().chain(times.map(f64::recip)).collect()
    }

    /// Spans of time in which A may be above 0 and the set of arrived jobs is constant: number of these jobs, and both ends,
    /// s.
    fn spans(&self, multipliers: &[f64]) -> Vec<(usize, [f64; 2])> {
        let (instants, weights) = multipliers.split_at(self.jobs.len());
        let mut last = f64::NEG_INFINITY;
        let mut spans = Vec::new();
        for (position, job) in self.jobs.iter().enumerate() {
            // From here on the job's value is below its toll: v − θ t ≤ (1 − θ) p.
            let over = (instants[position] - (1.0 - weights[position]) * (job.arrival + job.fastest))
                / weights[position];
            last = over.max(last);
            let next = self.jobs.get(position + 1).map_or(f64::INFINITY, |next| next.arrival);
            let to = next.min(last);
            if to > job.arrival {
                spans.push((position + 1, [job.arrival, to]));
            }
        }
        spans
    }

    /// Instants of all spans, including both ends of each.
    fn instants(&self, multipliers: &[f64]) -> Vec<Instant> {
        let spans = self.spans(multipliers);
        let total: f64 = spans.iter().map(|(_, [from, to])| to - from).sum();
        let n_max = INSTANTS_MAX.min(INSTANTS_PER_JOB * self.jobs.len() as f64);
        let longest = self.longest.max(total / n_max);
        let mut all = Vec::new();
        for (n_arrived, [from, to]) in spans {
            let n_parts = ((to - from) / longest).ceil().max(1.0);
            let length = (to - from) / n_parts;
            let mut part = 0.0;
            while part <= n_parts {
                let is_last = part > n_parts - 0.5;
                let at = if is_last { to } else { from + part * length };
                let stands_for = if is_last || part < 0.5 { length / 2.0 } else { length };
                all.push(Instant { at, n_arrived, stands_for });
                part += 1.0;
            }
        }
        all
    }

    /// Integral of A over some instants; none if it was broken off.
    fn part(&self, instants: &[Instant], multipliers: &[f64]) -> Result<Option<Part>, BoundError> {
        let mut policy = ProgramPolicy::try_new(self.options.clone())
            .map_err(|source| CatalogError::Program { policy: self.options.name.clone(), source })?;
        let mut part = Part { value: 0.0, gradient: vec![0.0; multipliers.len()], n_programs: 0 };
        for instant in instants {
            if self.attended.interrupt.is_raised() {
                return Ok(None);
            }
            match self.allocate(&mut policy, instant, multipliers, &mut part) {
                Ok(()) => {}
                Err(_) if self.attended.interrupt.is_raised() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(part))
    }

    fn allocate(
        &self,
        policy: &mut ProgramPolicy,
        instant: &Instant,
        multipliers: &[f64],
        part: &mut Part,
    ) -> Result<(), BoundError> {
        let n_jobs = self.jobs.len();
        let mut worths = Vec::new();
        for (job, timed) in self.jobs[..instant.n_arrived].iter().enumerate() {
            let toll = 1.0 - multipliers[n_jobs + job];
            let per_job = multipliers[job] - toll * timed.arrival - multipliers[n_jobs + job] * instant.at;
            // The net value of a second at its fastest.
            let net = per_job / timed.fastest - toll;
            if net > NEGLIGIBLE {
                worths.push(Worth { job, per_job, toll });
            } else {
                part.value += instant.stands_for * net.max(0.0);
            }
        }
        if worths.is_empty() {
            return Ok(());
        }
        let problem = self.problem(&worths)?;
        let decision = policy.allocate(&problem)?;
        part.n_programs += 1;
        let report = decision.objective.ok_or(BoundError::Uncertified)?;
        let most = report.bound.max(report.value);
        if !most.is_finite() {
            return Err(BoundError::Uncertified);
        }
        part.value += instant.stands_for * most;
        let allocation = &decision.allocation;
        let mut times = vec![0.0; worths.len()];
        for (combination, shares) in allocation.combinations().iter().zip(allocation.shares().rows()) {
            for member in combination.members() {
                times[member.index()] += shares.iter().sum::<f64>();
            }
        }
        for ((worth, throughput), time) in
            worths.iter().zip(allocation.effective_throughput().iter()).zip(times)
        {
            let timed = &self.jobs[worth.job];
            let run = throughput / timed.steps;
            part.gradient[worth.job] += instant.stands_for * run;
            let by_weight = run * (timed.arrival - instant.at) + time;
            part.gradient[n_jobs + worth.job] += instant.stands_for * by_weight;
        }
        Ok(())
    }

    fn problem(&self, worths: &[Worth]) -> Result<Problem, BoundError> {
        let mut builder = ProblemBuilder::new(Arc::clone(&self.cluster));
        for worth in worths {
            let timed = &self.jobs[worth.job];
            let active = ActiveJob {
                scale_factor: timed.scale_factor,
                steps_remaining: Steps::new(timed.steps),
                row: timed.row,
                ..ActiveJob::new(JobId::from_index(worth.job))
            };
            builder.job(active, &timed.speeds);
        }
        let per_step = |worth: &Worth| worth.per_job / self.jobs[worth.job].steps;
        builder.extra("worth", worths.iter().map(per_step).collect());
        builder.extra("toll", worths.iter().map(|worth| worth.toll).collect());
        builder.colocation(self.colocation.clone());
        Ok(builder.build()?)
    }
}

impl Function for Dual<'_> {
    type Error = BoundError;

    fn value(&mut self, multipliers: &[f64]) -> Result<Option<Valued>, BoundError> {
        let instants = self.instants(multipliers);
        let parts: Vec<Option<Part>> = instants
            .par_chunks(CHUNK)
            .map(|chunk| self.part(chunk, multipliers))
            .collect::<Result<_, _>>()?;
        let (instants, weights) = multipliers.split_at(self.jobs.len());
        let mut value = 0.0;
        let mut gradient = vec![1.0; self.jobs.len()];
        for ((job, e), weight) in self.jobs.iter().zip(instants).zip(weights) {
            // The term is v + θ p/2 + (1 − θ) a, less the arrival.
            value += e + weight * job.fastest / 2.0 - job.arrival;
            gradient.push(job.fastest / 2.0);
        }
        for part in parts {
            let Some(part) = part else { return Ok(None) };
            value -= part.value;
            self.n_programs += part.n_programs;
            for (entry, slope) in gradient.iter_mut().zip(part.gradient) {
                *entry -= slope;
            }
        }
        Ok(Some(Valued { value, gradient }))
    }

    fn project(&self, multipliers: &mut [f64]) {
        for weight in &mut multipliers[self.jobs.len()..] {
            *weight = weight.clamp(WEIGHT_MIN, 1.0);
        }
    }

    fn stepped(&self, value: f64) {
        if let Some(stepped) = self.attended.stepped {
            stepped(Seconds::new(value / self.jobs.len() as f64));
        }
    }
}

#[cfg(test)]
mod tests {
    use apportion::{Job, StepsPerSecond, Throughputs};

    use super::*;

    #[test]
    fn a_search_that_looks_far_ahead_has_a_limit_of_instants_for_each_job() {
        let cluster: Cluster = "v100=1".parse().unwrap();
        let job = |(position, steps): (usize, u32)| {
            let name = format!("job-{position}");
            Job::new("mine").name(name).steps(steps).throughput("v100", StepsPerSecond::new(1.0))
        };
        let jobs: Vec<Job> = [1, 1, 1, 1, 100_000].into_iter().enumerate().map(job).collect();
        let throughputs = Throughputs::embedded("osdi20").unwrap();
        let instance = Instance { cluster: &cluster, throughputs: &throughputs, jobs: &jobs, pairs: false };
        let attended = Attended::default();
        let dual = Dual::new(&instance, &attended).unwrap();
        let n_instants = |times: f64| dual.instants(&dual.multipliers(times)).len();
        assert!(n_instants(1.0) < 100, "{}", n_instants(1.0));
        assert!(n_instants(1e4) <= 2_020, "{}", n_instants(1e4));
    }
}
