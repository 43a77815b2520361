//! Tests of rows pushed one by one, all at once and by parts.

use std::sync::Arc;

use super::*;
use crate::index::JobId;
use crate::problem::{ActiveJob, Colocation, ProblemBuilder, matrix_columns};
use crate::throughput::Throughputs;

/// A problem with one job for each of the first `n_jobs` rows of the matrix, on two worker types.
fn problem(n_jobs: usize, colocation: impl FnOnce(Arc<Throughputs>) -> Colocation) -> Problem {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let cluster = Arc::new(crate::Cluster::try_new([("v100", 8), ("k80", 8)]).unwrap());
    let columns = matrix_columns(&cluster, &throughputs).unwrap();
    let mut builder = ProblemBuilder::new(cluster);
    for (index, row) in throughputs.rows().ids().take(n_jobs).enumerate() {
        let speeds: Vec<f64> =
            columns.iter().map(|column| column.map_or(0.0, |c| throughputs.alone(row, c))).collect();
        builder.job(ActiveJob { row: Some(row), ..ActiveJob::new(JobId::from_index(index)) }, &speeds);
    }
    builder.colocation(colocation(throughputs));
    builder.build().unwrap()
}

fn by_row(throughputs: Arc<Throughputs>) -> Colocation {
    let cluster = crate::Cluster::try_new([("v100", 8), ("k80", 8)]).unwrap();
    let columns = matrix_columns(&cluster, &throughputs).unwrap();
    Colocation::Rows { throughputs, columns }
}

fn job(index: usize) -> JobIndex {
    JobIndex::from_index(index)
}

#[test]
fn parts_are_rows_like_others_whoever_they_are_of() {
    let problem = problem(4, by_row);
    // the same order of jobs, the other order, and jobs of other rows
    for (asked, pair) in [([0, 1], [0, 1]), ([1, 0], [0, 1]), ([0, 1], [2, 3])] {
        let builder = AllocationBuilder::new(&problem);
        let whole = builder.together(asked.map(job), vec![0.5, 0.25]).unwrap();
        let pair = Combination::pair(job(pair[0]), job(pair[1]));
        let (mut parts, mut rows) = (AllocationBuilder::new(&problem), AllocationBuilder::new(&problem));
        parts.push_part(&whole, pair, 0.5).unwrap();
        rows.push(pair, [0.25, 0.125]).unwrap();
        let (parts, rows) = (parts.finish().unwrap(), rows.finish().unwrap());
        assert_eq!((parts.combinations(), parts.shares()), (rows.combinations(), rows.shares()));
        for (part, row) in parts.effective_throughput().iter().zip(rows.effective_throughput()) {
            assert!((part - row).abs() <= 1e-12 * row, "{part} for {row}");
        }
    }
}

#[test]
fn rows_of_jobs_alone_are_rows_like_others() {
    let problem = problem(4, by_row);
    let (of, kinds) = ([1, 0, 1, 0], [0.5, 0.25, 1.0, -1e-9]);
    let (mut at_once, mut rows) = (AllocationBuilder::new(&problem), AllocationBuilder::new(&problem));
    at_once.push_all_alone(&of, kinds.to_vec(), 0).unwrap();
    for (index, kind) in of.into_iter().enumerate() {
        rows.push(Combination::single(job(index)), kinds[2 * kind as usize..][..2].to_vec()).unwrap();
    }
    assert_eq!(at_once.finish().unwrap(), rows.finish().unwrap());
    let mut builder = AllocationBuilder::new(&problem);
    let refused = builder.push_all_alone(&of, vec![0.5, 0.25, 1.5, 0.0], 0);
    assert_eq!(refused, Err(AllocationError::Share { combination: 0, worker_type: 0, share: 1.5 }));
    let refused = AllocationBuilder::new(&problem).push_all_alone(&of, vec![0.5, f64::NAN, 1.0, 0.0], 0);
    assert!(matches!(refused, Err(AllocationError::Share { combination: 1, worker_type: 1, .. })));
}

#[test]
fn too_large_a_part_is_refused() {
    let problem = problem(2, by_row);
    let mut builder = AllocationBuilder::new(&problem);
    let whole = builder.together([job(0), job(1)], vec![3.0, 0.0]).unwrap();
    let pair = Combination::pair(job(0), job(1));
    for part in [0.5, -0.5, f64::NAN] {
        let refused = builder.push_part(&whole, pair, part);
        assert!(matches!(refused, Err(AllocationError::Share { .. })), "{part}: {refused:?}");
    }
    let mut builder = AllocationBuilder::new(&problem);
    (0..2).for_each(|_| builder.push_part(&whole, pair, 0.25).unwrap());
    assert!(matches!(builder.finish(), Err(AllocationError::Time { .. })));
}

#[test]
fn pairs_given_one_by_one_are_looked_at_one_by_one() {
    let problem = problem(3, |_| {
        let pair = |other, speed| (Combination::pair(job(0), job(other)), vec![[speed, 1.0]; 2]);
        Colocation::Pairs([pair(1, 1.0), pair(2, 3.0)].into())
    });
    let builder = AllocationBuilder::new(&problem);
    assert!(builder.together([job(0), job(1)], vec![0.5, 0.0]).is_none());
    // shares that are not allowed, or of the wrong number, give none either
    let problem = self::problem(2, by_row);
    let builder = AllocationBuilder::new(&problem);
    for shares in [vec![-0.5, 0.5], vec![f64::NAN, 0.0], vec![0.5]] {
        assert!(builder.together([job(0), job(1)], shares).is_none());
    }
}
