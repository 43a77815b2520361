//! Minimum-cost assignment: every row to a column with room for it, by shortest augmenting paths.
//!
//! Rows are matched one by one. For each, a shortest path in reduced costs (cost − u`[row]` − v[column]) leads over
//! full columns to one with room; columns along it change hands, and the prices u, v are moved so that
//! reduced costs stay non-negative. Costs are a function, never a matrix: memory is O(rows + columns), time
//! O(rows² · columns) at worst.
//!
//! Optima tie where columns are alike, and published runs depend on which is taken. The order here is that of the
//! implementation that most of them use (`linear_sum_assignment` of scipy): rows in order; among columns equally near,
//! one with room before a full one. Columns whose distance is not final are kept in a list, at first in reverse order; the
//! last of the list takes the place of one that leaves. Of equally near columns with room the last of the list is taken,
//! of full ones the first.
//!
//! Source: Jonker and Volgenant (Computing 1987); the rectangular form is Crouse's (IEEE Transactions on
//! Aerospace and Electronic Systems, 2016).

use thiserror::Error;

const NONE: usize = usize::MAX;

/// No assignment of finite cost exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("row {row} of the assignment has no column left of finite cost")]
pub struct Unassignable {
    /// The first row without a column (a column without a row, if there are fewer columns than rows).
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
    let dense = |n_columns| Chains { capacity: vec![1; n_columns], length: 1 };
    if n_rows <= n_columns {
        let columns = assign_chained(n_rows, &dense(n_columns), cost)?;
        return Ok(columns.into_iter().map(Some).collect());
    }
    let mut columns = vec![None; n_rows];
    let rows = assign_chained(n_columns, &dense(n_rows), |column, row| cost(row, column))?;
    for (column, row) in rows.into_iter().enumerate() {
        columns[row] = Some(column);
    }
    Ok(columns)
}

/// Columns in chains of one `length`: link k of chain i is column k · (number of chains) + i.
///
/// In every row a link costs more than the one before it, as later turns on a worker do, so it is not looked at
/// before that one is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chains {
    /// Rows that each link of a chain has room for.
    pub capacity: Vec<usize>,
    /// Links of each chain.
    pub length: usize,
}

/// The cheapest assignment of every row to a column of some chains. With capacities 1 it is what [`assign`]
/// returns for the same costs, in time O(rows² · (rows + chains)).
///
/// # Errors
/// If every assignment of the rows costs +∞.
///
/// # Panics
/// If there are more rows than room.
pub fn assign_chained(
    n_rows: usize,
    chains: &Chains,
    cost: impl Fn(usize, usize) -> f64,
) -> Result<Vec<usize>, Unassignable> {
    let room = chains.length.saturating_mul(chains.capacity.iter().sum());
    assert!(n_rows <= room, "{n_rows} rows for columns with room for {room}");
    let mut matching = Matching::new(n_rows, chains);
    for row in 0..n_rows {
        let sink = matching.search(row, &cost).ok_or(Unassignable { row })?;
        matching.reprice(row);
        matching.augment(row, sink);
        matching.open_after(sink);
    }
    Ok(matching.column_of)
}

/// Rows and columns matched so far, with their prices, and the scratch of one search.
struct Matching<'a> {
    chains: &'a Chains,
    /// The column of each row; `NONE` while it has none.
    column_of: Vec<usize>,
    /// The rows of each column.
    rows_of: Vec<Vec<usize>>,
    row_price: Vec<f64>,
    column_price: Vec<f64>,
    /// Columns that the search looks at.
    open: Vec<usize>,
    /// Open columns whose distance is not final.
    waiting: Vec<Reached>,
    /// Columns whose distance is final, in the order in which it became so.
    settled: Vec<Reached>,
    /// The row before each settled column on its path.
    came_from: Vec<usize>,
    unsettled: Unsettled,
}

/// A column during a search; its data are together, because the loop over columns takes most of the time.
#[derive(Clone, Copy)]
struct Reached {
    column: usize,
    price: f64,
    /// Cost of the shortest path to it found so far, and the row before it on that path.
    distance: f64,
    from: usize,
}

impl<'a> Matching<'a> {
    fn new(n_rows: usize, chains: &'a Chains) -> Self {
        let n_columns = chains.capacity.len() * chains.length;
        let first_links = chains.capacity.iter().enumerate().filter(|(_, capacity)| **capacity > 0);
        Self {
            chains,
            column_of: vec![NONE; n_rows],
            rows_of: vec![Vec::new(); n_columns],
            row_price: vec![0.0; n_rows],
            column_price: vec![0.0; n_columns],
            open: first_links.map(|(chain, _)| chain).collect(),
            waiting: Vec::new(),
            settled: Vec::new(),
            came_from: vec![NONE; n_columns],
            unsettled: Unsettled::new(n_columns),
        }
    }

    fn has_room(&self, column: usize) -> bool {
        self.rows_of[column].len() < self.chains.capacity[column % self.chains.capacity.len()]
    }

    /// The nearest column with room to `start`, the columns nearer than it settled.
    fn search(&mut self, start: usize, cost: &impl Fn(usize, usize) -> f64) -> Option<usize> {
        self.settled.clear();
        self.unsettled.reset();
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.clear();
        let prices = &self.column_price;
        waiting.extend(self.open.iter().map(|column| Reached {
            column: *column,
            price: prices[*column],
            distance: f64::INFINITY,
            from: NONE,
        }));
        let (mut rows, mut so_far) = (std::slice::from_ref(&start), 0.0);
        let sink = loop {
            for row in rows {
                let row_price = self.row_price[*row];
                for reached in &mut waiting {
                    let distance = so_far + cost(*row, reached.column) - row_price - reached.price;
                    if distance < reached.distance {
                        (reached.distance, reached.from) = (distance, *row);
                    }
                }
            }
            let Some(position) = self.nearest(&waiting) else { break None };
            let reached = waiting.swap_remove(position);
            self.unsettled.leave(reached.column);
            self.came_from[reached.column] = reached.from;
            self.settled.push(reached);
            if self.has_room(reached.column) {
                break Some(reached.column);
            }
            (rows, so_far) = (&self.rows_of[reached.column], reached.distance);
        };
        self.waiting = waiting;
        sink
    }

    /// The position of the column to settle next, if one can be reached.
    fn nearest(&self, waiting: &[Reached]) -> Option<usize> {
        let mut nearest: Option<(usize, &Reached)> = None;
        let mut least = f64::INFINITY;
        for (position, reached) in waiting.iter().enumerate() {
            let tie = |other: &Reached| self.comes_before(reached.column, other.column);
            if reached.distance < least
                || (reached.distance <= least && nearest.is_some_and(|(_, other)| tie(other)))
            {
                (nearest, least) = (Some((position, reached)), reached.distance);
            }
        }
        nearest.map(|(position, _)| position)
    }

    /// Whether `column` is settled before `other`, which is equally near.
    fn comes_before(&self, column: usize, other: usize) -> bool {
        let later = self.unsettled.place[column] > self.unsettled.place[other];
        match (self.has_room(column), self.has_room(other)) {
            (true, true) => later,
            (false, false) => !later,
            (room, _) => room,
        }
    }

    /// Moves prices so that the path from `start` to the column settled last costs nothing and no reduced cost is
    /// negative.
    fn reprice(&mut self, start: usize) {
        let whole = self.settled.last().map_or(0.0, |sink| sink.distance);
        self.row_price[start] += whole;
        for Reached { column, distance, .. } in &self.settled {
            let rest = whole - distance;
            for row in &self.rows_of[*column] {
                self.row_price[*row] += rest;
            }
            self.column_price[*column] -= rest;
        }
    }

    /// Assigns to each row on the path to `sink` the column after it.
    fn augment(&mut self, start: usize, sink: usize) {
        let mut column = sink;
        loop {
            let row = self.came_from[column];
            let left = std::mem::replace(&mut self.column_of[row], column);
            self.rows_of[column].push(row);
            if row == start {
                return;
            }
            self.rows_of[left].retain(|other| *other != row);
            column = left;
        }
    }

    /// Opens the link after this one to searches, if this one is full.
    fn open_after(&mut self, column: usize) {
        let next = column + self.chains.capacity.len();
        if next < self.rows_of.len() && !self.has_room(column) {
            self.open.push(next);
        }
    }
}

/// The list of unsettled columns, at first in reverse order.
struct Unsettled {
    place: Vec<usize>,
    column: Vec<usize>,
    n: usize,
    moved: Vec<usize>,
}

impl Unsettled {
    fn new(n: usize) -> Self {
        let backwards: Vec<usize> = (0..n).rev().collect();
        Self { place: backwards.clone(), column: backwards, n, moved: Vec::new() }
    }

    /// Restores the initial reverse order.
    fn reset(&mut self) {
        let total = self.column.len();
        for place in self.moved.drain(..) {
            let column = total - 1 - place;
            self.column[place] = column;
            self.place[column] = place;
        }
        self.n = total;
    }

    /// Removes `column`; the last of the list takes its place.
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
