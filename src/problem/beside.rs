//! Throughputs of two jobs of a problem that share workers.

use crate::index::{Id, JobIndex, RowId, WorkerTypeId};
use crate::problem::{Colocation, Problem};
use crate::workload::Combination;

/// A job's scale factor and matrix row, which decide the jobs it may share workers with and, where pairs are not given one
/// by one, how fast. Code that looks up many pairs keeps sharers at hand: the second job of a pair may be anywhere in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharer {
    scale_factor: u32,
    /// Its row of the throughput matrix; [`NO_ROW`] if it has none.
    row: u32,
}

const NO_ROW: u32 = u32::MAX;

impl Sharer {
    /// Workers that the job needs.
    pub fn scale_factor(self) -> u32 {
        self.scale_factor
    }
}

impl Problem {
    /// Steps/s of the first and second member of a pair on one worker type; `None` where they may not share it:
    /// different scale factors, nothing measured, or a member without progress.
    pub fn colocated(&self, pair: Combination<JobIndex>, worker_type: WorkerTypeId) -> Option<[f64; 2]> {
        let (first, second) = (pair.first(), pair.second()?);
        self.colocated_as(pair, [self.sharer(first), self.sharer(second)], worker_type)
    }

    /// Steps/s of the first and second member of a pair on one worker type, given as sharers; `None` where they may not
    /// share it.
    pub fn colocated_as(
        &self,
        pair: Combination<JobIndex>,
        [first, second]: [Sharer; 2],
        worker_type: WorkerTypeId,
    ) -> Option<[f64; 2]> {
        if let Colocation::Pairs(pairs) = &self.colocation {
            return colocated_as_given(pairs.get(&pair)?, [first, second], worker_type);
        }
        self.colocated_by_row([first, second], worker_type)
    }

    /// Steps/s of two sharers on one worker type, by their rows of the throughput matrix; `None` where they may not
    /// share it, and where pairs are given one by one.
    pub fn colocated_by_row(
        &self,
        [first, second]: [Sharer; 2],
        worker_type: WorkerTypeId,
    ) -> Option<[f64; 2]> {
        let Colocation::Rows { throughputs, columns } = &self.colocation else { return None };
        let column = columns[worker_type]?;
        if first.scale_factor != second.scale_factor || first.row == NO_ROW || second.row == NO_ROW {
            return None;
        }
        let [a, b] = [first.row, second.row].map(|row| RowId::from_index(row as usize));
        let both = [throughputs.colocated(a, b, column), throughputs.colocated(b, a, column)];
        runs(both).then_some(both)
    }

    /// A job as a sharer of workers.
    pub fn sharer(&self, job: JobIndex) -> Sharer {
        let active = &self.jobs[job];
        let row = active.row.map_or(NO_ROW, |row| u32::try_from(row.index()).unwrap_or(NO_ROW));
        Sharer { scale_factor: active.scale_factor, row }
    }
}

/// Steps/s of two sharers on one worker type, from the throughputs given for their pair, `[K]`; `None` where they may not share
/// it.
pub(crate) fn colocated_as_given(
    given: &[[f64; 2]],
    [first, second]: [Sharer; 2],
    worker_type: WorkerTypeId,
) -> Option<[f64; 2]> {
    let both = given[worker_type.index()];
    (first.scale_factor == second.scale_factor && runs(both)).then_some(both)
}

fn runs(both: [f64; 2]) -> bool {
    both[0] > 0.0 && both[1] > 0.0
}
