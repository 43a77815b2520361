//! Expansion against a slow one that writes its definition out.

use std::sync::Arc;

use proptest::prelude::*;

use super::expand::expand;
use super::pairs::Pairing;
use super::reduce::{Reduced, Selection, reduce};
use super::tolerances::SHARE_MIN;
use crate::allocation::Allocation;
use crate::index::{Id, JobId, JobIndex};
use crate::policy::ThroughputView;
use crate::problem::{ActiveJob, Colocation, Problem, ProblemBuilder, matrix_columns};
use crate::program::Column;
use crate::spec::Fidelity;
use crate::throughput::Throughputs;
use crate::workload::Combination;

/// Jobs of a few types, on more workers than they can use.
fn problem(rows: &[usize]) -> Problem {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let cluster = crate::Cluster::try_new([("v100", 1000), ("p100", 1000), ("k80", 1000)]).unwrap();
    let columns = matrix_columns(&cluster, &throughputs).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    let alone: Vec<_> =
        throughputs.rows().ids().filter(|row| throughputs.rows()[*row].scale_factor == 1).collect();
    for (index, row) in rows.iter().enumerate() {
        let row = alone[*row];
        let speeds: Vec<f64> =
            columns.iter().map(|column| column.map_or(0.0, |c| throughputs.alone(row, c))).collect();
        builder.job(ActiveJob { row: Some(row), ..ActiveJob::new(JobId::from_index(index)) }, &speeds);
    }
    builder.colocation(Colocation::Rows { throughputs, columns });
    builder.build().unwrap()
}

/// The problem over its classes, with the pairs of classes that `chosen` selects, in that order.
fn reduced(problem: &Problem, chosen: &[prop::sample::Index]) -> Reduced {
    let selection = Selection {
        view: &ThroughputView::Measured,
        pairs: true,
        classes: true,
        hierarchical: false,
        dropped: &[],
        fidelity: Fidelity::Corrected,
        data: &[],
        isolated_elapsed: &[],
    };
    let mut reduced = reduce(problem, &selection);
    let pairing = Pairing::of(problem, &ThroughputView::Measured, &reduced.classes, false);
    let mut all: Vec<(usize, usize)> = pairing.all().collect();
    for index in chosen {
        if all.is_empty() {
            break;
        }
        let (a, b) = all.swap_remove(index.index(all.len()));
        reduced.instance.pairs.extend(pairing.pair(a, b));
        reduced.pairs.push((a, b));
    }
    reduced
}

/// Pairs of jobs of a class pair, with their parts of its time. Between two classes, job i of n has the part of a line
/// from i/n to (i + 1)/n, and two jobs share what both have; within one, neighbours share, round a circle if they are odd.
fn divided(jobs_a: &[u32], jobs_b: &[u32], same: bool, evenly: bool) -> Vec<(u32, u32, f64)> {
    let (n_a, n_b) = (jobs_a.len(), jobs_b.len());
    let mut pairs = Vec::new();
    for (a, one) in jobs_a.iter().enumerate() {
        for (b, other) in jobs_b.iter().enumerate().filter(|(b, _)| !same || *b > a) {
            let n_pairs = if same { n_a * (n_a - 1) / 2 } else { n_a * n_b };
            let fraction = if evenly {
                1.0 / n_pairs as f64
            } else if !same {
                let common = ((a + 1) * n_b).min((b + 1) * n_a).saturating_sub((a * n_b).max(b * n_a));
                common as f64 / (n_a * n_b) as f64
            } else if n_a % 2 == 0 {
                if a % 2 == 0 && b == a + 1 { 2.0 / n_a as f64 } else { 0.0 }
            } else if b == a + 1 || (a == 0 && b + 1 == n_a) {
                1.0 / n_a as f64
            } else {
                0.0
            };
            if fraction > 0.0 {
                pairs.push((*one.min(other), *one.max(other), fraction));
            }
        }
    }
    pairs
}

fn slowly(
    problem: &Problem,
    reduced: &Reduced,
    columns: &[Column],
    time: &[f64],
    keep_all: bool,
) -> Allocation {
    let (k, n_members) = (reduced.instance.n_types(), reduced.instance.n_members());
    let of = |combination: usize, fraction: f64| -> Vec<f64> {
        let time_on = |kind: usize| {
            let at = |column: &Column| column.combination == combination && column.worker_type == kind;
            columns.iter().position(at).map_or(0.0, |column| time[column])
        };
        let shares = (0..k).map(|kind| time_on(kind) * fraction);
        shares.map(|share| if keep_all || share > 1e-12 { share } else { 0.0 }).collect()
    };
    let mut rows = Vec::new();
    for job in 0..problem.n_jobs() {
        let class = reduced.classes.class_of(job);
        let fraction = 1.0 / reduced.classes.members(class).len() as f64;
        rows.push((Combination::single(JobIndex::from_index(job)), of(class, fraction)));
    }
    let mut pairs = Vec::new();
    for (position, (a, b)) in reduced.pairs.iter().enumerate() {
        if !keep_all && of(n_members + position, 1.0).iter().all(|time| *time <= 1e-12) {
            continue;
        }
        let members = |class: usize| reduced.classes.members(class);
        for (one, other, fraction) in divided(members(*a), members(*b), a == b, keep_all) {
            let jobs = [one, other].map(|job| JobIndex::from_index(job as usize));
            pairs.push((Combination::pair(jobs[0], jobs[1]), of(n_members + position, fraction)));
        }
    }
    pairs.sort_by_key(|(combination, _)| *combination);
    rows.extend(pairs);
    Allocation::check(problem, rows).unwrap()
}

proptest! {
    #[test]
    fn expansion_is_what_its_definition_says(
        rows in prop::collection::vec(0_usize..6, 2..60),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        times in prop::collection::vec(prop_oneof![Just(0.0), Just(1e-13), Just(1e-9), 0.0_f64..1.0], 16),
        keep_all in any::<bool>(),
    ) {
        let problem = problem(&rows);
        let reduced = reduced(&problem, &chosen);
        let (k, n_members) = (reduced.instance.n_types(), reduced.instance.n_members());
        let (mut columns, mut time) = (Vec::new(), Vec::new());
        for combination in 0..reduced.instance.n_combinations() {
            let runs = |kind: usize| match combination.checked_sub(n_members) {
                None => true,
                Some(pair) => reduced.instance.pairs[pair].parts.iter().all(|part| part.throughput[kind] > 0.0),
            };
            let n_jobs = reduced.instance.multiplicity.iter().copied().fold(f64::INFINITY, f64::min);
            for worker_type in (0..k).filter(|kind| runs(*kind)) {
                time.push(times[(combination * k + worker_type) % times.len()] * n_jobs / 80.0);
                columns.push(Column { combination, worker_type });
            }
        }
        let expanded = expand(&problem, &reduced, &columns, &time, (!keep_all).then_some(SHARE_MIN)).unwrap();
        let slowly = slowly(&problem, &reduced, &columns, &time, keep_all);
        prop_assert_eq!(expanded.combinations(), slowly.combinations());
        prop_assert_eq!(expanded.shares(), slowly.shares());
        for (one, other) in expanded.effective_throughput().iter().zip(slowly.effective_throughput()) {
            prop_assert!((one - other).abs() <= 1e-12 * other);
        }
        prop_assert!((expanded.violation_max() - slowly.violation_max()).abs() < 1e-12);
    }
}
