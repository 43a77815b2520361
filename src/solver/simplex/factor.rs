//! The LU factors of a basis, B = L U by columns, and the pivots since they were made.
//!
//! Columns are eliminated one after another, those with few terms first, each on a row with few terms that is not much
//! smaller than the best (Gilbert and Peierls 1988). Columns that depend on others are left out, and rows that are left
//! over get their logicals: any selection of columns leads to a basis. Later pivots are kept as a product of their
//! columns (the product form of the inverse) until the factors are made anew.

/// The least pivot, as a part of the largest entry that its column could be pivoted on.
const THRESHOLD: f64 = 0.1;
/// The part of its largest entry above which elimination must leave an entry of a column; else the column counts as
/// dependent on others.
const DEPENDENT: f64 = 1e-9;

/// A sparse matrix, column by column.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Position of each column's first term, then the number of terms: [columns + 1].
    pub(super) starts: Vec<usize>,
    /// Row of each term.
    pub(super) rows: Vec<u32>,
    /// Coefficient of each term.
    pub(super) values: Vec<f64>,
}

impl Columns {
    fn empty() -> Self {
        Self { starts: vec![0], rows: Vec::new(), values: Vec::new() }
    }

    /// The terms of one column: (row, coefficient).
    pub(super) fn column(&self, column: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let span = self.starts[column]..self.starts[column + 1];
        self.rows[span.clone()].iter().map(|row| *row as usize).zip(self.values[span].iter().copied())
    }

    fn push(&mut self, row: usize, value: f64) {
        self.rows.push(as_u32(row));
        self.values.push(value);
    }

    fn end(&mut self) {
        self.starts.push(self.rows.len());
    }
}

fn as_u32(position: usize) -> u32 {
    u32::try_from(position).expect("fewer than 2^32 rows and columns")
}

/// The factors of a basis; positions are the order of elimination.
#[derive(Debug)]
pub(super) struct Factor {
    /// L by position: terms in rows of the program, without the 1 on the diagonal.
    lower: Columns,
    /// U by position: terms in earlier positions, without the diagonal.
    upper: Columns,
    /// The diagonal of U, by position.
    diagonal: Vec<f64>,
    /// The row on which each position was eliminated.
    row: Vec<u32>,
    /// Pivots since the factors were made: the position, and the entering column's entry there, in terms of the basis.
    pivots: Vec<(u32, f64)>,
    /// The entering columns' entries in other positions, by pivot.
    others: Columns,
    /// A column by row while it is eliminated, zero between uses: [rows].
    work: Vec<f64>,
}

/// The search for the earlier columns that a column's elimination involves, and for the rows it can be pivoted on.
struct Reach<'a> {
    /// Number of terms of all wanted columns in each row: [rows].
    row_counts: &'a [u32],
    /// Number of columns eliminated before this one.
    stamp: u32,
    /// The stamp at which each row was last seen: [rows].
    seen: Vec<u32>,
    /// Positions on the way to the present one, each with its next term.
    stack: Vec<(usize, usize)>,
    /// Positions in the reverse of the order in which they are to be eliminated.
    order: Vec<usize>,
    /// Rows visited that have no position yet.
    open: Vec<usize>,
}

impl Reach<'_> {
    /// Adds to `order` and `open` all that a term in `row` leads to.
    fn visit(&mut self, row: usize, position: &[u32], lower: &Columns) {
        let stamp = self.stamp;
        if self.seen[row] == stamp {
            return;
        }
        self.seen[row] = stamp;
        if position[row] == NONE {
            self.open.push(row);
            return;
        }
        let first = position[row] as usize;
        self.stack.push((first, lower.starts[first]));
        while let Some((at, term)) = self.stack.last_mut() {
            if *term == lower.starts[*at + 1] {
                self.order.push(*at);
                self.stack.pop();
                continue;
            }
            let row = lower.rows[*term] as usize;
            *term += 1;
            if self.seen[row] == stamp {
                continue;
            }
            self.seen[row] = stamp;
            if position[row] == NONE {
                self.open.push(row);
            } else {
                let next = position[row] as usize;
                self.stack.push((next, lower.starts[next]));
            }
        }
    }
}

const NONE: u32 = u32::MAX;

impl Factor {
    /// Factors of as many of the `wanted` variables as are independent, and the variable of each position. Logicals,
    /// which are the variables from the number of columns on, one a row, take the place of the others. `columns` has
    /// the terms of all other variables.
    pub(super) fn of(columns: &Columns, n_rows: usize, wanted: &[u32]) -> (Self, Vec<u32>) {
        let n_columns = columns.starts.len() - 1;
        let mut factor = Self {
            lower: Columns::empty(),
            upper: Columns::empty(),
            diagonal: Vec::with_capacity(n_rows),
            row: Vec::with_capacity(n_rows),
            pivots: Vec::new(),
            others: Columns::empty(),
            work: vec![0.0; n_rows],
        };
        let mut position = vec![NONE; n_rows];
        let mut basic = Vec::with_capacity(n_rows);
        let logical = |variable: u32| (variable as usize).checked_sub(n_columns);
        for (variable, row) in wanted.iter().filter_map(|variable| Some((*variable, logical(*variable)?))) {
            factor.push_logical(row, &mut position);
            basic.push(variable);
        }
        let structural = || wanted.iter().copied().filter(|variable| logical(*variable).is_none());
        let mut row_counts = vec![0_u32; n_rows];
        let mut order = Vec::with_capacity(n_rows - basic.len());
        for variable in structural() {
            let mut open = 0_u32;
            for (row, _) in columns.column(variable as usize) {
                row_counts[row] += 1;
                open += u32::from(position[row] == NONE);
            }
            order.push((open, variable));
        }
        order.sort_unstable();
        let mut reach = Reach {
            row_counts: &row_counts,
            stamp: 0,
            seen: vec![NONE; n_rows],
            stack: Vec::new(),
            order: Vec::new(),
            open: Vec::new(),
        };
        for (_, variable) in order {
            if factor.eliminate(columns, variable, &mut position, &mut reach) {
                basic.push(variable);
            }
            reach.stamp += 1;
        }
        for row in 0..n_rows {
            if position[row] == NONE {
                factor.push_logical(row, &mut position);
                basic.push(as_u32(n_columns + row));
            }
        }
        (factor, basic)
    }

    fn push_logical(&mut self, row: usize, position: &mut [u32]) {
        position[row] = as_u32(self.diagonal.len());
        self.diagonal.push(-1.0);
        self.row.push(as_u32(row));
        self.lower.end();
        self.upper.end();
    }

    /// Adds a column to the factors; false if it depends on the columns already there.
    fn eliminate(
        &mut self,
        columns: &Columns,
        variable: u32,
        position: &mut [u32],
        reach: &mut Reach<'_>,
    ) -> bool {
        reach.order.clear();
        reach.open.clear();
        let mut size = 0.0_f64;
        for (row, value) in columns.column(variable as usize) {
            reach.visit(row, position, &self.lower);
            self.work[row] = value;
            size = size.max(value.abs());
        }
        let n_upper = self.upper.rows.len();
        for at in reach.order.iter().rev() {
            let value = std::mem::take(&mut self.work[self.row[*at] as usize]);
            if value == 0.0 {
                continue;
            }
            self.upper.push(*at, value);
            for (row, factor) in self.lower.column(*at) {
                self.work[row] -= factor * value;
            }
        }
        let largest = reach.open.iter().map(|row| self.work[*row].abs()).fold(0.0, f64::max);
        let best = |row: &&usize| self.work[**row].abs() >= THRESHOLD * largest;
        let fewest = |a: &&usize, b: &&usize| {
            let by_size = || self.work[**b].abs().total_cmp(&self.work[**a].abs());
            reach.row_counts[**a].cmp(&reach.row_counts[**b]).then_with(by_size).then(a.cmp(b))
        };
        let pivot = reach.open.iter().filter(best).min_by(fewest).copied();
        let Some(pivot) = pivot.filter(|_| largest > DEPENDENT * size) else {
            reach.open.iter().for_each(|row| self.work[*row] = 0.0);
            self.upper.rows.truncate(n_upper);
            self.upper.values.truncate(n_upper);
            return false;
        };
        let diagonal = std::mem::take(&mut self.work[pivot]);
        position[pivot] = as_u32(self.diagonal.len());
        self.diagonal.push(diagonal);
        self.row.push(as_u32(pivot));
        for row in &reach.open {
            let value = std::mem::take(&mut self.work[*row]);
            if value != 0.0 {
                self.lower.push(*row, value / diagonal);
            }
        }
        self.lower.end();
        self.upper.end();
        true
    }

    /// Number of pivots since the factors were made.
    pub(super) fn n_pivots(&self) -> usize {
        self.pivots.len()
    }

    /// Replaces the variable of a position by one whose column, in terms of the basis, is `column`.
    pub(super) fn replace(&mut self, position: usize, column: &[f64]) {
        for (at, value) in column.iter().enumerate() {
            if at != position && *value != 0.0 {
                self.others.push(at, *value);
            }
        }
        self.others.end();
        self.pivots.push((as_u32(position), column[position]));
    }

    /// Solves B x = a: `column` is a by row, which is zero afterwards, and x by position goes to `x`.
    pub(super) fn forward(&self, column: &mut [f64], x: &mut [f64]) {
        for (at, row) in self.row.iter().enumerate() {
            let value = std::mem::take(&mut column[*row as usize]);
            x[at] = value;
            if value != 0.0 {
                for (row, factor) in self.lower.column(at) {
                    column[row] -= factor * value;
                }
            }
        }
        for at in (0..self.row.len()).rev() {
            if x[at] != 0.0 {
                let value = x[at] / self.diagonal[at];
                x[at] = value;
                for (earlier, factor) in self.upper.column(at) {
                    x[earlier] -= factor * value;
                }
            }
        }
        for (pivot, (position, value)) in self.pivots.iter().enumerate() {
            let position = *position as usize;
            if x[position] != 0.0 {
                let value = x[position] / value;
                x[position] = value;
                for (at, factor) in self.others.column(pivot) {
                    x[at] -= factor * value;
                }
            }
        }
    }

    /// Solves Bᵀ y = c: `costs` is c by position, changed on the way, and y by row goes to `y`.
    pub(super) fn backward(&self, costs: &mut [f64], y: &mut [f64]) {
        for (pivot, (position, value)) in self.pivots.iter().enumerate().rev() {
            let others: f64 = self.others.column(pivot).map(|(at, factor)| factor * costs[at]).sum();
            let cost = &mut costs[*position as usize];
            *cost = (*cost - others) / value;
        }
        let first = costs.iter().position(|cost| *cost != 0.0).unwrap_or(costs.len());
        for at in first..self.row.len() {
            let earlier: f64 = self.upper.column(at).map(|(before, factor)| factor * costs[before]).sum();
            costs[at] = (costs[at] - earlier) / self.diagonal[at];
        }
        for (at, row) in self.row.iter().enumerate().rev() {
            let later: f64 = self.lower.column(at).map(|(row, factor)| factor * y[row]).sum();
            y[*row as usize] = costs[at] - later;
        }
    }
}
