//! Problem → [`Instance`] over classes: the numbers a program-backed policy sees, and no others.

use std::collections::BTreeMap;

use crate::index::{Id, JobIndex};
use crate::policy::program::hierarchy;
use crate::policy::view::{self, ThroughputView};
use crate::problem::{Colocation, Problem};
use crate::program::{Classes, Instance, InstanceCombination, Part};
use crate::units::{DollarsPerWorkerHour, Seconds};

/// What to take from a problem.
#[derive(Clone, Debug)]
pub(super) struct Selection<'a> {
    /// How throughputs are seen.
    pub(super) view: &'a ThroughputView,
    /// Do pairs count? Then jobs that may share workers with others are different.
    pub(super) pairs: bool,
    /// Group interchangeable jobs? Off where the answer must be the analytic centre over jobs.
    pub(super) classes: bool,
    /// Do owners matter? Then jobs of different owners are different, and so are those whose order decides.
    pub(super) hierarchical: bool,
    /// Jobs let off their droppable constraints: [n], or empty if none is.
    pub(super) waived: &'a [bool],
    /// Per-job data to carry, by name.
    pub(super) data: &'a [String],
    /// Isolated time as the policy keeps account of it, in place of the problem's: [n], or empty.
    pub(super) isolated_elapsed: &'a [f64],
}

/// An instance and how its members map to jobs.
#[derive(Clone, Debug)]
pub(super) struct Reduced {
    pub(super) instance: Instance,
    pub(super) classes: Classes,
    /// Pairs of members among the combinations, behind the singles: (member, member), the same twice for a class
    /// with itself. None at first: they are added as they become columns.
    pub(super) pairs: Vec<(usize, usize)>,
    /// `thr_eq` of one job of each member, as the view has it: [members].
    pub(super) equal_share: Vec<f64>,
}

/// Groups the problem's jobs and gathers the instance, without pairs.
pub(super) fn reduce(problem: &Problem, selection: &Selection<'_>) -> Reduced {
    let n = problem.n_jobs();
    let k = problem.n_types();
    let mut throughput = vec![0.0; n * k];
    for job in problem.jobs().ids() {
        selection.view.row(problem, job, &mut throughput[job.index() * k..(job.index() + 1) * k]);
    }
    let columns: Vec<Vec<f64>> =
        selection.data.iter().map(|name| column(problem, selection, name, &throughput)).collect();
    let classes = if selection.classes {
        classes(problem, selection, &throughput, &columns)
    } else {
        Classes::singletons(n)
    };
    let first = |class: usize| classes.members(class)[0] as usize;
    let data: BTreeMap<String, Vec<f64>> = selection
        .data
        .iter()
        .zip(&columns)
        .map(|(name, column)| (name.clone(), (0..classes.len()).map(|class| column[first(class)]).collect()))
        .collect();
    let mut combinations = Vec::with_capacity(classes.len());
    for class in 0..classes.len() {
        let job = first(class);
        let part = Part { member: class, uses: 1.0, throughput: throughput[job * k..(job + 1) * k].to_vec() };
        combinations
            .push(InstanceCombination { parts: vec![part], scale_factor: scale_factor(problem, job) });
    }
    let types = problem.cluster().types();
    let mut type_data = BTreeMap::new();
    if types.iter().all(|kind| kind.price.is_some()) {
        type_data.insert(
            "price".to_owned(),
            types.iter().filter_map(|kind| kind.price.map(DollarsPerWorkerHour::get)).collect(),
        );
    }
    let waived = if selection.waived.is_empty() {
        Vec::new()
    } else {
        (0..classes.len()).map(|class| selection.waived[first(class)]).collect()
    };
    let instance = Instance {
        waived,
        capacity: types.iter().map(|kind| f64::from(kind.n_workers)).collect(),
        multiplicity: classes.multiplicity(),
        data,
        type_data,
        worker_types: types.iter().map(|kind| kind.name.clone()).collect(),
        combinations,
    };
    let equal_share = (0..classes.len())
        .map(first)
        .map(|job| view::equal_share(problem, &throughput[job * k..(job + 1) * k]));
    Reduced { equal_share: equal_share.collect(), instance, classes, pairs: Vec::new() }
}

fn scale_factor(problem: &Problem, job: usize) -> f64 {
    f64::from(problem.jobs()[JobIndex::from_index(job)].scale_factor)
}

/// One data column by name: [n]. An SLO that is absent is infinitely far.
fn column(problem: &Problem, selection: &Selection<'_>, name: &str, throughput: &[f64]) -> Vec<f64> {
    let k = problem.n_types();
    let row = |job: JobIndex| &throughput[job.index() * k..(job.index() + 1) * k];
    problem
        .jobs()
        .enumerate()
        .map(|(index, job)| match name {
            "scale_factor" => f64::from(job.scale_factor),
            "weight" => job.weight,
            "steps_remaining" => job.steps_remaining.get(),
            "elapsed" => job.elapsed.get(),
            "isolated_elapsed" => {
                let own = selection.isolated_elapsed.get(index.index()).copied();
                own.unwrap_or(job.isolated_elapsed.get())
            }
            // One that is past asks for what no throughput gives: it is as if there were none.
            "slo_remaining" => {
                job.slo_remaining.map(Seconds::get).filter(|left| *left > 0.0).unwrap_or(f64::INFINITY)
            }
            "equal_share_throughput" => view::equal_share(problem, row(index)),
            "isolated_throughput" => view::isolated(problem, index, row(index)),
            other => problem.extra().get(other).map_or(f64::NAN, |column| column[index.index()]),
        })
        .collect()
}

fn classes(
    problem: &Problem,
    selection: &Selection<'_>,
    throughput: &[f64],
    columns: &[Vec<f64>],
) -> Classes {
    let k = problem.n_types();
    let width = 4 + k + columns.len();
    let mut keys = Vec::with_capacity(problem.n_jobs() * width);
    for (index, job) in problem.jobs().enumerate() {
        keys.push(u64::from(job.scale_factor));
        keys.extend(
            throughput[index.index() * k..(index.index() + 1) * k].iter().map(|value| value.to_bits()),
        );
        keys.extend(columns.iter().map(|column| column[index.index()].to_bits()));
        keys.push(u64::from(selection.waived.get(index.index()).copied().unwrap_or(false)));
        keys.push(match job.entity {
            _ if !selection.hierarchical => 0,
            entity if !hierarchy::interchangeable(problem, entity) => (1 << 32) + index.index() as u64,
            entity => entity.map_or(0, |entity| 1 + entity.index() as u64),
        });
        keys.push(match problem.colocation() {
            _ if !selection.pairs => 0,
            Colocation::None => 0,
            Colocation::Rows { .. } => job.row.map_or(0, |row| 1 + row.index() as u64),
            // Pairs given job by job say nothing of interchangeability.
            Colocation::Pairs(_) => 1 + index.index() as u64,
        });
    }
    Classes::group(width, &keys)
}
