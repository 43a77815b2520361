//! Minimum-cost assignment: every row to a column of its own, by shortest augmenting paths.
//!
//! Rows are matched one by one. For each, a shortest path in reduced costs (cost − u[row] − v[column]) leads over
//! columns already taken to a free one; columns along it change hands, and the prices u, v are moved so that
//! reduced costs stay non-negative. Costs are a function, never a matrix: memory is O(rows + columns), time
//! O(rows² · columns) at worst.
//!
//! Optima tie where columns are alike, and published runs depend on which is taken. The order here is that of the
//! implementation most of them use: rows in order; among columns equally near, a free one before a taken one; the
//! columns not yet reached for good stand in a row, the last column first, in which the last of the standing
//! takes the place of one that leaves; of free columns the one standing last is taken, of taken ones the first.
//!
//! Source: Jonker and Volgenant (Computing 1987); the rectangular form is Crouse's (IEEE Transactions on
//! Aerospace and Electronic Systems, 2016).

use thiserror::Error;

const NOBODY: usize = usize::MAX;

/// No assignment of finite cost exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("row {row} of the assignment has no column left of finite cost")]
pub struct Unassignable {
    /// The first row that found none (a column, if there are fewer columns than rows).
    pub row: usize,
}

/// The cheapest assignment of `n_rows` rows to `n_columns` columns, at most one each: for every row its column.
/// The smaller side is assigned whole. A cost of +∞ forbids.
///
/// ```
/// use apportion::policy::heuristic::assignment::assign;
/// let costs = [[4.0, 1.0, 3.0], [2.0, 0.0, 5.0]];
/// assert_eq!(assign(2, 3, |row, column| costs[row][column])?, [Some(1), Some(0)]);
/// # Ok::<(), apportion::policy::heuristic::assignment::Unassignable>(())
/// ```
///
/// # Errors
/// If every assignment of the smaller side costs +∞.
pub fn assign(
    n_rows: usize,
    n_columns: usize,
    cost: impl Fn(usize, usize) -> f64,
) -> Result<Vec<Option<usize>>, Unassignable> {
    if n_rows <= n_columns {
        let columns = assign_chained(n_rows, n_columns, n_columns, cost)?;
        return Ok(columns.into_iter().map(Some).collect());
    }
    let mut columns = vec![None; n_rows];
    let rows = assign_chained(n_columns, n_rows, n_rows, |column, row| cost(row, column))?;
    for (column, row) in rows.into_iter().enumerate() {
        columns[row] = Some(column);
    }
    Ok(columns)
}

/// The same for columns in chains: column c + `n_chains` costs more than column c in every row, as later turns on
/// one worker do, so it is not looked at before c is taken. The answer is that of [`assign`]; the time falls to
/// O(rows² · (rows + chains)).
///
/// # Errors
/// If every assignment of the rows costs +∞.
///
/// # Panics
/// If there are more rows than columns.
pub fn assign_chained(
    n_rows: usize,
    n_columns: usize,
    n_chains: usize,
    cost: impl Fn(usize, usize) -> f64,
) -> Result<Vec<usize>, Unassignable> {
    assert!(n_rows <= n_columns, "{n_rows} rows for {n_columns} columns");
    let mut matching = Matching::new(n_rows, n_columns, n_chains);
    for row in 0..n_rows {
        let sink = matching.search(row, &cost).ok_or(Unassignable { row })?;
        matching.reprice(row, sink);
        matching.augment(row, sink);
        if sink + n_chains < n_columns {
            matching.open.push(sink + n_chains);
        }
    }
    Ok(matching.column_of)
}

/// Rows and columns matched so far, with their prices, and the scratch of one search.
struct Matching {
    /// Of each row; `NOBODY` while it has none.
    column_of: Vec<usize>,
    /// Of each column; `NOBODY` while it is free.
    row_of: Vec<usize>,
    row_price: Vec<f64>,
    column_price: Vec<f64>,
    /// Columns worth looking at.
    open: Vec<usize>,
    /// Cost of the shortest path to each column.
    distance: Vec<f64>,
    /// The row before each column on that path.
    came_from: Vec<usize>,
    /// Columns whose distance is final, in the order in which it became so.
    settled: Vec<usize>,
    standing: Standing,
}

impl Matching {
    fn new(n_rows: usize, n_columns: usize, n_chains: usize) -> Self {
        Self {
            column_of: vec![NOBODY; n_rows],
            row_of: vec![NOBODY; n_columns],
            row_price: vec![0.0; n_rows],
            column_price: vec![0.0; n_columns],
            open: (0..n_chains.min(n_columns)).collect(),
            distance: vec![f64::INFINITY; n_columns],
            came_from: vec![NOBODY; n_columns],
            settled: Vec::new(),
            standing: Standing::new(n_columns),
        }
    }

    /// The free column nearest to `start`, with distances of all columns nearer than it.
    fn search(&mut self, start: usize, cost: &impl Fn(usize, usize) -> f64) -> Option<usize> {
        self.settled.clear();
        self.standing.reset();
        let mut waiting = self.open.clone();
        for column in &waiting {
            self.distance[*column] = f64::INFINITY;
        }
        let (mut row, mut so_far) = (start, 0.0);
        loop {
            let mut nearest: Option<(usize, usize)> = None;
            for (position, column) in waiting.iter().copied().enumerate() {
                let distance = so_far + cost(row, column) - self.row_price[row] - self.column_price[column];
                if distance < self.distance[column] {
                    self.distance[column] = distance;
                    self.came_from[column] = row;
                }
                if nearest.is_none_or(|(_, other)| self.comes_before(column, other)) {
                    nearest = Some((position, column));
                }
            }
            let (position, column) = nearest?;
            so_far = self.distance[column];
            if so_far == f64::INFINITY {
                return None;
            }
            waiting.swap_remove(position);
            self.standing.leave(column);
            self.settled.push(column);
            row = self.row_of[column];
            if row == NOBODY {
                return Some(column);
            }
        }
    }

    /// Is `column` to be settled rather than `other`?
    fn comes_before(&self, column: usize, other: usize) -> bool {
        let (near, far) = (self.distance[column], self.distance[other]);
        // Not `total_cmp`, to which −0 and 0 are different.
        if near < far || far < near {
            return near < far;
        }
        let later = self.standing.place[column] > self.standing.place[other];
        match (self.row_of[column] == NOBODY, self.row_of[other] == NOBODY) {
            (true, true) => later,
            (false, false) => !later,
            (free, _) => free,
        }
    }

    /// Moves prices so that the path to `sink` costs nothing and no reduced cost is negative.
    fn reprice(&mut self, start: usize, sink: usize) {
        let whole = self.distance[sink];
        self.row_price[start] += whole;
        for column in &self.settled {
            let rest = whole - self.distance[*column];
            if self.row_of[*column] != NOBODY {
                self.row_price[self.row_of[*column]] += rest;
            }
            self.column_price[*column] -= rest;
        }
    }

    /// Lets each row on the path to `sink` take the column after it.
    fn augment(&mut self, start: usize, sink: usize) {
        let mut column = sink;
        loop {
            let row = self.came_from[column];
            self.row_of[column] = row;
            std::mem::swap(&mut self.column_of[row], &mut column);
            if row == start {
                return;
            }
        }
    }
}

/// The row in which columns stand that are not settled: the last column first.
struct Standing {
    place: Vec<usize>,
    column: Vec<usize>,
    n: usize,
    moved: Vec<usize>,
}

impl Standing {
    fn new(n: usize) -> Self {
        let backwards: Vec<usize> = (0..n).rev().collect();
        Self { place: backwards.clone(), column: backwards, n, moved: Vec::new() }
    }

    /// Everyone back where they began.
    fn reset(&mut self) {
        let total = self.column.len();
        for place in self.moved.drain(..) {
            let column = total - 1 - place;
            self.column[place] = column;
            self.place[column] = place;
        }
        self.n = total;
    }

    /// The last of the standing takes the place of `column`.
    fn leave(&mut self, column: usize) {
        self.n -= 1;
        let (place, last) = (self.place[column], self.column[self.n]);
        self.column[place] = last;
        self.place[last] = place;
        self.moved.push(place);
        self.moved.push(self.n);
    }
}

#[cfg(test)]
mod tests;
