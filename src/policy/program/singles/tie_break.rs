//! A small program over the time of the few jobs that prices leave undecided, with all other jobs fixed.

use crate::policy::program::solver_context::{Answer, SolverContext};
use crate::policy::program::strategy::GaveUp;
use crate::program::{Program, Range, Sense, Singles};
use crate::solver::{Basis, BasisStatus};

/// The tie-breaking program; rows of jobs are pushed by its user.
pub(super) struct TieBreak<'a> {
    pub(super) program: Program,
    singles: &'a Singles<'a>,
    /// The columns that use each worker type, with their workers per unit of time: [K].
    rented: Vec<Vec<(usize, f64)>>,
}

impl<'a> TieBreak<'a> {
    pub(super) fn new(singles: &'a Singles<'a>) -> Self {
        let rented = vec![Vec::new(); singles.instance().n_types()];
        Self { program: Program::new(Sense::Maximize), singles, rented }
    }

    /// Pushes a column for the class time of a member on a worker type, with its worth per unit.
    pub(super) fn push_time(&mut self, member: usize, worker_type: usize, worth: f64) -> usize {
        let range = Range { lower: 0.0, upper: self.singles.most(member, worker_type) };
        let column = self.program.push_column(range, range, worth);
        self.rented[worker_type].push((column, self.singles.instance().scale_factor[member]));
        column
    }

    /// Pushes the capacity rows: the workers that the fixed jobs leave, [K].
    pub(super) fn push_capacity(&mut self, left: Vec<f64>) {
        for (rented, left) in std::mem::take(&mut self.rented).into_iter().zip(left) {
            self.program.push_row(Range::at_most(left), rented);
        }
    }

    /// The optimum, found from the basis in which all time is 0.
    pub(super) fn solve(self, solver: &mut SolverContext) -> Result<Answer, GaveUp> {
        let basis = Basis {
            columns: vec![BasisStatus::Lower; self.program.n_columns()],
            rows: vec![BasisStatus::Basic; self.program.n_rows()],
        };
        solver.solve_from_basis(&self.program, Some(basis))
    }
}

/// Workers of each type, [K], that no job among `counted` uses at class times, [members × K].
pub(super) fn idle_workers(singles: &Singles<'_>, time: &[f64], counted: impl Fn(usize) -> bool) -> Vec<f64> {
    let instance = singles.instance();
    let mut left = instance.capacity.clone();
    for (member, times) in time.chunks_exact(left.len()).enumerate().filter(|(member, _)| counted(*member)) {
        for (left, time) in left.iter_mut().zip(times) {
            *left -= instance.scale_factor[member] * time;
        }
    }
    left.into_iter().map(|left| left.max(0.0)).collect()
}
