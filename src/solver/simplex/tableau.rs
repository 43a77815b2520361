//! A linear program as the simplex method takes it, and the state of a basis.
//!
//!   minimize c·x   subject to   A x − s = 0,   lower ≤ (x, s) ≤ upper
//!
//! The variables are the columns x and, behind them, the *logicals* s, the values of the rows, one for each. A variable
//! in the basis is *basic*; every other is at a bound, or 0 if it has none. A *position* counts the variables of the
//! basis.

use crate::program::{Program, Sense};
use crate::solver::backend::{Basis, BasisStatus};
use crate::solver::simplex::factor::{Columns, Factor};

/// The coefficients, costs and bounds of a program.
#[derive(Debug)]
pub(super) struct Tableau {
    /// The terms of the columns, column by column.
    pub(super) columns: Columns,
    /// The terms of the columns, row by row.
    pub(super) by_row: Columns,
    /// The cost of each column, to be minimized: [columns].
    pub(super) cost: Vec<f64>,
    /// Lower bounds: [variables].
    pub(super) lower: Vec<f64>,
    /// Upper bounds: [variables].
    pub(super) upper: Vec<f64>,
    pub(super) n_rows: usize,
}

/// A basis with its factors and the values that belong to it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) factor: Factor,
    /// The variable of each position: [rows].
    pub(super) basic: Vec<u32>,
    /// Status of each variable: [variables].
    pub(super) status: Vec<BasisStatus>,
    /// Value of each variable: [variables].
    pub(super) value: Vec<f64>,
}

impl Tableau {
    pub(super) fn of(program: &Program) -> Self {
        let (n, n_rows) = (program.n_columns(), program.n_rows());
        let mut starts = vec![0; n + 1];
        for column in &program.term_columns {
            starts[column + 1] += 1;
        }
        for column in 0..n {
            starts[column + 1] += starts[column];
        }
        let mut next = starts.clone();
        let n_terms = program.term_values.len();
        let (mut rows, mut values) = (vec![0; n_terms], vec![0.0; n_terms]);
        for row in 0..n_rows {
            for (column, value) in program.row(row) {
                let place = &mut next[column];
                (rows[*place], values[*place]) = (u32::try_from(row).unwrap_or(u32::MAX), value);
                *place += 1;
            }
        }
        let as_u32 = |column: &usize| u32::try_from(*column).unwrap_or(u32::MAX);
        let by_row = Columns {
            starts: program.row_starts.clone(),
            rows: program.term_columns.iter().map(as_u32).collect(),
            values: program.term_values.clone(),
        };
        let sign = sign(program);
        let ranges = || program.columns.iter().chain(&program.rows);
        Self {
            columns: Columns { starts, rows, values },
            by_row,
            cost: program.cost.iter().map(|cost| sign * cost).collect(),
            lower: ranges().map(|range| range.lower).collect(),
            upper: ranges().map(|range| range.upper).collect(),
            n_rows,
        }
    }

    pub(super) fn n_columns(&self) -> usize {
        self.cost.len()
    }

    pub(super) fn n_variables(&self) -> usize {
        self.lower.len()
    }

    /// Adds `factor` times the terms of a variable to a vector of rows.
    pub(super) fn add_column(&self, variable: usize, factor: f64, to: &mut [f64]) {
        match variable.checked_sub(self.n_columns()) {
            Some(row) => to[row] -= factor,
            None => self.columns.column(variable).for_each(|(row, value)| to[row] += factor * value),
        }
    }

    /// The status of a variable out of the basis: `wanted` if the variable has that bound, else its other bound or free.
    fn outside(&self, variable: usize, wanted: BasisStatus) -> BasisStatus {
        let (below, above) = (self.lower[variable].is_finite(), self.upper[variable].is_finite());
        match wanted {
            BasisStatus::Upper if above => BasisStatus::Upper,
            _ if below => BasisStatus::Lower,
            _ if above => BasisStatus::Upper,
            _ => BasisStatus::Free,
        }
    }

    fn at(&self, variable: usize, status: BasisStatus) -> f64 {
        match status {
            BasisStatus::Lower => self.lower[variable],
            BasisStatus::Upper => self.upper[variable],
            BasisStatus::Free | BasisStatus::Basic => 0.0,
        }
    }

    /// The state of a basis of this shape; where its variables are dependent, logicals replace some.
    pub(super) fn state(&self, basis: &Basis) -> State {
        let mut status: Vec<BasisStatus> = basis.columns.iter().chain(&basis.rows).copied().collect();
        let wanted = (0..).zip(&status).filter(|(_, status)| **status == BasisStatus::Basic);
        let wanted: Vec<u32> = wanted.map(|(variable, _)| variable).collect();
        let (factor, basic) = Factor::of(&self.columns, self.n_rows, &wanted);
        for (variable, status) in status.iter_mut().enumerate() {
            *status = self.outside(variable, *status);
        }
        for variable in &basic {
            status[*variable as usize] = BasisStatus::Basic;
        }
        let value = (0..self.n_variables()).map(|variable| self.at(variable, status[variable])).collect();
        let mut state = State { factor, basic, status, value };
        self.revalue(&mut state);
        state
    }

    /// Factors the basis of a state anew; a variable that has to leave it goes to its nearer bound.
    pub(super) fn refactor(&self, state: &mut State) {
        let mut wanted = std::mem::take(&mut state.basic);
        wanted.sort_unstable();
        let (factor, basic) = Factor::of(&self.columns, self.n_rows, &wanted);
        for variable in &basic {
            state.status[*variable as usize] = BasisStatus::Basic;
        }
        (state.factor, state.basic) = (factor, basic);
        let mut kept = state.basic.clone();
        kept.sort_unstable();
        for variable in wanted.into_iter().filter(|variable| kept.binary_search(variable).is_err()) {
            let variable = variable as usize;
            let nearer_upper = (self.upper[variable] - state.value[variable])
                < (state.value[variable] - self.lower[variable]);
            let wanted = if nearer_upper { BasisStatus::Upper } else { BasisStatus::Lower };
            state.status[variable] = self.outside(variable, wanted);
            state.value[variable] = self.at(variable, state.status[variable]);
        }
        self.revalue(state);
    }

    /// Computes the values of basic variables from those of all others.
    fn revalue(&self, state: &mut State) {
        let mut right = vec![0.0; self.n_rows];
        for variable in 0..self.n_variables() {
            let value = state.value[variable];
            if value != 0.0 && state.status[variable] != BasisStatus::Basic {
                self.add_column(variable, -value, &mut right);
            }
        }
        let mut values = vec![0.0; self.n_rows];
        state.factor.forward(&mut right, &mut values);
        for (variable, value) in state.basic.iter().zip(values) {
            state.value[*variable as usize] = value;
        }
    }
}

/// The factor that makes the objective one to minimize: 1 or −1.
pub(super) fn sign(program: &Program) -> f64 {
    match program.sense {
        Sense::Maximize => -1.0,
        Sense::Minimize => 1.0,
    }
}
