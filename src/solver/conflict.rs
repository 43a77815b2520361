//! The fewest rows of a program that contradict one another, found by implicit hitting sets.
//!
//! A set of rows is a contradiction if and only if it has a row of each *correction set*: rows without which all
//! others can be satisfied. The correction sets known so far have a smallest set that hits all of them. If its rows
//! contradict one another, no smaller contradiction exists; else they are extended to rows that can be satisfied
//! together, and the others are one more correction set. Contradictions are proven by multipliers, as all are.

mod hitting;
#[cfg(test)]
mod tests;

use crate::program::{Program, Range, Sense};
use crate::solver::backend::Limits;
use crate::solver::conflict::hitting::smallest_hitting;
use crate::solver::proof::{Standing, certified, row_scale, standing};
use crate::solver::timing::Stopwatch;

/// The most programs that are solved in a search for the smallest contradiction.
const TRIES_MAX: usize = 400;

/// The most terms of all programs of a search together; each program has all terms of the original.
const TERMS_MAX: usize = 4_000_000;

/// The most rows of a contradiction that are left out one by one where the smallest is not found.
const LEFT_OUT_MAX: usize = 200;

/// The part of its scale by which a point may miss a row and still satisfy it.
const ROW_MISSED_MAX: f64 = 1e-9;

/// Known minimality of a contradiction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictSize {
    /// No contradiction has fewer rows.
    Smallest,
    /// Without any one of its rows, no contradiction is proven of the others; another may have fewer rows.
    Irreducible,
    /// Some of its rows may not be needed.
    Unreduced,
}

/// A set of rows that contradict one another beside all rows that were no candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictingRows {
    /// The rows, in order.
    pub rows: Vec<usize>,
    /// Known minimality of the set.
    pub size: ConflictSize,
}

/// The fewest rows of `candidates` that contradict one another, rows that are no candidates being kept; `None` if no
/// contradiction is proven. Where the search takes too many programs, or a program has no certified answer, the rows
/// are those of the smallest contradiction found, from which each row is left out that is not needed.
pub fn conflict(program: &Program, candidates: &[usize], limits: &Limits) -> Option<ConflictingRows> {
    let mut search = Search::new(program, candidates, limits);
    let Standing::Contradiction(core) = search.standing_of(&vec![true; candidates.len()]) else {
        return None;
    };
    search.best = vec![true; candidates.len()];
    search.improve(core);
    let found = match search.smallest() {
        Some(smallest) => (smallest, ConflictSize::Smallest),
        None => search.irreducible(),
    };
    let mut rows = rows_of(candidates, &found.0);
    rows.sort_unstable();
    Some(ConflictingRows { rows, size: found.1 })
}

/// The candidates whose flags are set.
fn rows_of(candidates: &[usize], kept: &[bool]) -> Vec<usize> {
    candidates.iter().zip(kept).filter(|(_, kept)| **kept).map(|(row, _)| *row).collect()
}

fn n_kept(kept: &[bool]) -> usize {
    kept.iter().filter(|kept| **kept).count()
}

/// A search for the smallest contradiction. Sets of candidates are flags by position: [candidates].
struct Search<'a> {
    program: &'a Program,
    candidates: &'a [usize],
    limits: &'a Limits,
    clock: Stopwatch,
    /// Programs that may still be solved.
    tries: usize,
    /// Whether every set so far has been proven to be a contradiction or satisfiable.
    is_settled: bool,
    /// The smallest contradiction found.
    best: Vec<bool>,
}

impl<'a> Search<'a> {
    fn new(program: &'a Program, candidates: &'a [usize], limits: &'a Limits) -> Self {
        let tries = TRIES_MAX.min(TERMS_MAX / program.term_values.len().max(1));
        Self {
            program,
            candidates,
            limits,
            clock: Stopwatch::start(),
            tries,
            is_settled: true,
            best: Vec::new(),
        }
    }

    fn is_over(&self) -> bool {
        self.tries == 0 || self.limits.is_over(&self.clock)
    }

    /// The program without the candidates that are not kept.
    fn part(&self, kept: &[bool]) -> Program {
        let mut part = self.program.clone();
        for (row, kept) in self.candidates.iter().zip(kept) {
            if !kept {
                part.rows[*row] = Range::FREE;
            }
        }
        part
    }

    /// The limits of the next program.
    fn limits(&self) -> Limits {
        let time = self.limits.time.map(|time| time.saturating_sub(self.clock.elapsed()));
        Limits { time, ..self.limits.clone() }
    }

    /// The standing of these candidates. The rows of a contradiction are positions of candidates.
    fn standing_of(&mut self, kept: &[bool]) -> Standing {
        self.tries = self.tries.saturating_sub(1);
        match standing(&self.part(kept), &self.limits()) {
            Standing::Contradiction(rows) => {
                let mut counts = vec![false; self.program.n_rows()];
                for row in rows {
                    counts[row] = true;
                }
                let of = (0..self.candidates.len()).filter(|at| kept[*at] && counts[self.candidates[*at]]);
                Standing::Contradiction(of.collect())
            }
            other => other,
        }
    }

    /// Takes the candidates at these positions for the smallest contradiction, if they are fewer and proven to be one.
    fn improve(&mut self, core: Vec<usize>) {
        if core.len() >= n_kept(&self.best) || self.tries == 0 {
            return;
        }
        let mut kept = vec![false; self.candidates.len()];
        for at in core {
            kept[at] = true;
        }
        if matches!(self.standing_of(&kept), Standing::Contradiction(_)) {
            self.best = kept;
        }
    }

    /// The smallest contradiction; none if the search ends before it is proven.
    fn smallest(&mut self) -> Option<Vec<bool>> {
        let mut corrections: Vec<Vec<usize>> = Vec::new();
        let mut least = 0;
        while !self.is_over() {
            let hitting = smallest_hitting(&corrections, self.candidates.len(), least)?;
            least = n_kept(&hitting);
            // No contradiction is smaller than a set that hits all correction sets.
            if least >= n_kept(&self.best) {
                return self.is_settled.then(|| self.best.clone());
            }
            let satisfied = match self.standing_of(&hitting) {
                Standing::Contradiction(_) => {
                    self.best = hitting;
                    return self.is_settled.then(|| self.best.clone());
                }
                Standing::Satisfied(point) => self.extended(hitting, &point),
                // A set of which nothing is proven is taken for satisfiable, and then no contradiction is called the smallest.
                Standing::Unknown => {
                    self.is_settled = false;
                    hitting
                }
            };
            let others: Vec<usize> = (0..satisfied.len()).filter(|at| !satisfied[*at]).collect();
            // All rows together are a contradiction, so that only rounding leaves none.
            if others.is_empty() {
                return None;
            }
            corrections.push(others);
        }
        None
    }

    /// A set of candidates that can be satisfied together, extended by others that can be beside it: by those that a
    /// point satisfies that misses the others by little, then one by one.
    fn extended(&mut self, mut kept: Vec<bool>, point: &[f64]) -> Vec<bool> {
        self.keep_satisfied(&mut kept, point);
        if let Some(point) = self.nearest(&kept) {
            self.keep_satisfied(&mut kept, &point);
        }
        for at in 0..kept.len() {
            if kept[at] || self.is_over() {
                continue;
            }
            kept[at] = true;
            match self.standing_of(&kept) {
                Standing::Satisfied(point) => self.keep_satisfied(&mut kept, &point),
                Standing::Contradiction(core) => {
                    kept[at] = false;
                    self.improve(core);
                }
                Standing::Unknown => kept[at] = false,
            }
        }
        kept
    }

    /// Adds the candidates that a point satisfies.
    fn keep_satisfied(&self, kept: &mut [bool], point: &[f64]) {
        for (at, row) in self.candidates.iter().enumerate() {
            let (range, scale) = (self.program.rows[*row], row_scale(self.program, *row));
            let value: f64 = self.program.row(*row).map(|(column, value)| value * point[column]).sum();
            let missed = (range.lower - value).max(value - range.upper);
            kept[at] |= missed <= ROW_MISSED_MAX * scale;
        }
    }

    /// The point that satisfies the rows kept and misses the other candidates least, all together.
    fn nearest(&mut self, kept: &[bool]) -> Option<Vec<f64>> {
        self.tries = self.tries.saturating_sub(1);
        let mut near = Program::new(Sense::Minimize);
        for (range, implied) in self.program.columns.iter().zip(&self.program.implied) {
            near.push_column(*range, *implied, 0.0);
        }
        near.cones.clone_from(&self.program.cones);
        let mut missed = vec![false; self.program.n_rows()];
        for (row, kept) in self.candidates.iter().zip(kept) {
            missed[*row] = !kept;
        }
        for (row, range) in self.program.rows.iter().enumerate() {
            if !missed[row] {
                near.push_row(*range, self.program.row(row));
                continue;
            }
            let scale = row_scale(self.program, row);
            let more = near.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 1.0);
            let less = near.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 1.0);
            near.push_row(*range, self.program.row(row).chain([(more, scale), (less, -scale)]));
        }
        certified(&near, &self.limits()).map(|found| found.solution.columns)
    }

    /// The smallest contradiction found, without each row that is not needed, up to a number of rows.
    fn irreducible(mut self) -> (Vec<bool>, ConflictSize) {
        let all: Vec<usize> = (0..self.best.len()).filter(|at| self.best[*at]).collect();
        let mut best = std::mem::take(&mut self.best);
        for at in all.iter().copied().take(LEFT_OUT_MAX) {
            if self.limits.is_over(&self.clock) {
                return (best, ConflictSize::Unreduced);
            }
            best[at] = false;
            best[at] = !matches!(self.standing_of(&best), Standing::Contradiction(_));
        }
        let size = if all.len() > LEFT_OUT_MAX { ConflictSize::Unreduced } else { ConflictSize::Irreducible };
        (best, size)
    }
}
