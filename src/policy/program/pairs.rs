//! Which members may share workers, and at what throughputs.
//!
//! What two jobs get beside each other depends on their *kinds* alone (row of the matrix, scale factor and
//! throughputs alone), of which there are few however many members there are, so it is looked up once per two kinds.

use crate::index::{Id, JobIndex, WorkerTypeId};
use crate::policy::view::ThroughputView;
use crate::problem::{Colocation, Problem};
use crate::program::{Classes, InstancePair, Part, Unlike};
use crate::workload::Combination;

/// The pairs of a problem's members.
#[derive(Clone, Debug)]
pub(super) struct Pairing {
    /// Members by kind.
    pub(super) kinds: Classes,
    /// Jobs of each member: [members].
    n_jobs: Vec<usize>,
    scale_factors: Vec<f64>,
    /// Steps/s of a member of the first kind beside one of the second, as the view has it: [kinds × kinds][K]; 0
    /// where they do not share a worker type, nothing if they share none.
    beside: Vec<Option<Vec<f64>>>,
}

impl Pairing {
    /// Looks up every two kinds. With `prune`, pairs that time slicing serves as well are left out.
    pub(super) fn of(problem: &Problem, view: &ThroughputView, classes: &Classes, prune: bool) -> Self {
        let (kinds, _) =
            Classes::group(classes.len(), problem.n_types() + 3, Unlike::ByKey, |member, key| {
                write_kind(problem, classes, member, key);
            });
        let n = kinds.len();
        let mut beside = vec![None; n * n];
        for g in 0..n {
            let jobs = |kind: usize| {
                kinds.members(kind).iter().flat_map(|member| classes.members(*member as usize)).copied()
            };
            let Some(first) = jobs(g).next() else { continue };
            for h in g..n {
                let other = if g == h { jobs(g).nth(1) } else { jobs(h).next() };
                let Some(second) = other else { continue };
                if let Some([mine, theirs]) = throughputs(problem, view, first, second, prune) {
                    beside[g * n + h] = Some(mine);
                    beside[h * n + g] = Some(theirs);
                }
            }
        }
        let first = |member: usize| JobIndex::from_index(classes.members(member)[0] as usize);
        let scale_factors = (0..classes.len()).map(|m| f64::from(problem.jobs()[first(m)].scale_factor));
        let n_jobs = (0..classes.len()).map(|member| classes.members(member).len()).collect();
        Self { scale_factors: scale_factors.collect(), kinds, n_jobs, beside }
    }

    /// Steps/s of a member of one kind beside one of another: `[K]`.
    pub(super) fn beside(&self, kind: usize, other: usize) -> Option<&[f64]> {
        self.beside[kind * self.kinds.len() + other].as_deref()
    }

    /// How many jobs a member stands for.
    pub(super) fn n_jobs(&self, member: usize) -> usize {
        self.n_jobs[member]
    }

    /// Workers that a job of a member needs.
    pub(super) fn scale_factor(&self, member: usize) -> f64 {
        self.scale_factors[member]
    }

    /// Every pair of members, (smaller, larger) in order; the same twice for a member of two jobs or more.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let n = self.n_jobs.len();
        (0..n).flat_map(move |a| (a..n).map(move |b| (a, b))).filter(|(a, b)| self.exists(*a, *b))
    }

    fn exists(&self, a: usize, b: usize) -> bool {
        let shared = self.beside(self.kinds.class_of(a), self.kinds.class_of(b)).is_some();
        shared && (a != b || self.n_jobs[a] > 1)
    }

    /// The pair of two members that may share workers.
    pub(super) fn pair(&self, a: usize, b: usize) -> Option<InstancePair> {
        let (g, h) = (self.kinds.class_of(a), self.kinds.class_of(b));
        let part = |member, kind, other, uses| {
            Some(Part { member, uses, throughput: self.beside(kind, other)?.to_vec() })
        };
        let parts =
            if a == b { vec![part(a, g, h, 2.0)?] } else { vec![part(a, g, h, 1.0)?, part(b, h, g, 1.0)?] };
        Some(InstancePair { parts, scale_factor: self.scale_factors[a] })
    }
}

/// What decides whom a member may run beside and how fast.
fn write_kind(problem: &Problem, classes: &Classes, member: usize, key: &mut [u64]) {
    let job = JobIndex::from_index(classes.members(member)[0] as usize);
    let active = &problem.jobs()[job];
    // Pairs given job by job say nothing of other jobs.
    let own = if matches!(problem.colocation(), Colocation::Pairs(_)) { 1 + job.index() as u64 } else { 0 };
    let row = active.row.map_or(0, |row| 1 + row.index() as u64);
    let speeds = problem.throughput().row(job).iter().map(|speed| speed.to_bits());
    for (place, word) in key.iter_mut().zip(speeds.chain([u64::from(active.scale_factor), row, own])) {
        *place = word;
    }
}

/// Steps/s of each of two jobs beside the other: `[K]` each; `None` if they share no worker type.
fn throughputs(
    problem: &Problem,
    view: &ThroughputView,
    first: u32,
    second: u32,
    prune: bool,
) -> Option<[Vec<f64>; 2]> {
    let (first, second) = (JobIndex::from_index(first as usize), JobIndex::from_index(second as usize));
    let together = Combination::pair(first, second);
    let swapped = together.first() != first;
    let mut rows = [vec![0.0; problem.n_types()], vec![0.0; problem.n_types()]];
    for kind in (0..problem.n_types()).map(WorkerTypeId::from_index) {
        let Some(mut both) = problem.colocated(together, kind) else { continue };
        if swapped {
            both.reverse();
        }
        let alone = [problem.throughput()[(first, kind)], problem.throughput()[(second, kind)]];
        // Time slicing the two on the same workers serves both as well and spends less time and no more
        // capacity, so such a pair can be left out of any program in which only throughputs count.
        let dominated = alone[0] > 0.0 && alone[1] > 0.0 && both[0] / alone[0] + both[1] / alone[1] <= 1.0;
        if prune && dominated {
            continue;
        }
        // The factor is 0 where a job cannot run alone: pairs only where both can.
        rows[0][kind.index()] = both[0] * view.factor(problem, first, kind);
        rows[1][kind.index()] = both[1] * view.factor(problem, second, kind);
    }
    rows[0].iter().any(|value| *value != 0.0).then_some(rows)
}
