//! Snapshots for the tests of the rules.

mod properties;
mod recorded;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::index::{Id, JobId, JobIndex};
use crate::policy::decision::Policy;
use crate::problem::{ActiveJob, Colocation, Problem, ProblemBuilder};
use crate::units::{Seconds, Steps};
use crate::workload::Combination;

/// Active jobs that can be let run, come and go between calls.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    cluster: Arc<Cluster>,
    jobs: BTreeMap<usize, (ActiveJob, Vec<f64>)>,
    pairs: BTreeMap<(usize, usize), Vec<[f64; 2]>>,
    extra: BTreeMap<String, Vec<f64>>,
}

impl Snapshot {
    pub(super) fn new(cluster: &str) -> Self {
        let cluster = Arc::new(cluster.parse().unwrap());
        Self { cluster, jobs: BTreeMap::new(), pairs: BTreeMap::new(), extra: BTreeMap::new() }
    }

    /// Adds a job that has just arrived: workers, steps, steps/s per type.
    pub(super) fn job(&mut self, id: usize, scale_factor: u32, steps: f64, throughput: &[f64]) {
        let active = ActiveJob {
            scale_factor,
            steps_remaining: Steps::new(steps),
            ..ActiveJob::new(JobId::from_index(id))
        };
        self.jobs.insert(id, (active, throughput.to_vec()));
    }

    /// Sets the time since a job's arrival.
    pub(super) fn elapsed(&mut self, id: usize, seconds: f64) {
        if let Some((active, _)) = self.jobs.get_mut(&id) {
            active.elapsed = Seconds::new(seconds);
        }
    }

    /// Sets the steps/s of two jobs beside each other, per type.
    pub(super) fn pair(&mut self, first: usize, second: usize, throughput: &[[f64; 2]]) {
        self.pairs.insert((first, second), throughput.to_vec());
    }

    pub(super) fn extra(&mut self, name: &str, column: Vec<f64>) {
        self.extra.insert(name.to_owned(), column);
    }

    /// Lets time pass, in which jobs do steps.
    pub(super) fn pass(&mut self, seconds: f64, done: &[(usize, f64)]) {
        for (id, (active, _)) in &mut self.jobs {
            active.elapsed += Seconds::new(seconds);
            for (_, steps) in done.iter().filter(|(job, _)| job == id) {
                active.steps_remaining -= Steps::new(*steps);
            }
        }
    }

    /// Removes a job that ends.
    pub(super) fn leave(&mut self, id: usize) {
        self.jobs.remove(&id);
    }

    pub(super) fn problem(&self) -> Problem {
        let mut builder = ProblemBuilder::new(Arc::clone(&self.cluster));
        let mut index: BTreeMap<usize, JobIndex> = BTreeMap::new();
        for (id, (active, throughput)) in &self.jobs {
            index.insert(*id, builder.job(active.clone(), throughput));
        }
        let present = |(pair, throughput): (&(usize, usize), &Vec<[f64; 2]>)| {
            Some((Combination::pair(*index.get(&pair.0)?, *index.get(&pair.1)?), throughput.clone()))
        };
        builder.colocation(Colocation::Pairs(self.pairs.iter().filter_map(present).collect()));
        for (name, column) in &self.extra {
            builder.extra(name, column.clone());
        }
        builder.build().unwrap()
    }
}

/// The shares that a policy gives: `job: type` for all of the time there, `job: type share` for less.
pub(super) fn given(policy: &mut impl Policy, snapshot: &Snapshot) -> Vec<String> {
    let problem = snapshot.problem();
    let allocation = policy.allocate(&problem).unwrap().allocation;
    let mut lines = Vec::new();
    for (row, combination) in allocation.combinations().enumerate() {
        let ids: Vec<String> = combination.members().map(|job| problem.jobs()[job].id.to_string()).collect();
        for (share, kind) in allocation.shares().row(row).iter().zip(problem.cluster().types()) {
            let (ids, name) = (ids.join("+"), &kind.name);
            match *share {
                0.0 => {}
                1.0 => lines.push(format!("{ids}: {name}")),
                share => lines.push(format!("{ids}: {name} {share:.4}")),
            }
        }
    }
    lines
}

/// A snapshot of jobs that have just arrived: workers, steps, steps/s per type.
pub(super) fn snapshot(cluster: &str, jobs: &[(u32, f64, &[f64])]) -> Snapshot {
    let mut snapshot = Snapshot::new(cluster);
    for (id, (scale_factor, steps, throughput)) in jobs.iter().enumerate() {
        snapshot.job(id, *scale_factor, *steps, throughput);
    }
    snapshot
}
