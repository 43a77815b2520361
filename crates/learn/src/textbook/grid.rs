//! A walk on a grid to its last corner, which should be as short as possible.

use super::admit;
use crate::environment::{Environment, Refused, Space, Status, Transition};
use apportion::workload::random::SeedStreams;

/// A rule for steps off the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walls {
    /// A step off the grid leaves the walker where it is.
    Bumped,
    /// A step off the grid is masked.
    Masked,
}

/// A walk from a random cell to the last corner; every step costs 1. A corridor is a grid of one row.
///
/// Observation: one number per cell, 1 where the walker stands. Actions: left, right, up, down. Episodes terminate in the last
/// corner, and are truncated after a number of steps.
#[derive(Debug)]
pub struct Grid {
    width: usize,
    height: usize,
    walls: Walls,
    step_limit: u64,
    spaces: [Space; 1],
    cell: usize,
    n_steps: u64,
    status: Status,
}

impl Grid {
    /// A grid of width × height cells, at least two.
    ///
    /// # Panics
    /// If there are fewer than two cells.
    pub fn new((width, height): (usize, usize), walls: Walls, step_limit: u64) -> Self {
        assert!(width * height >= 2, "a walk needs a start and an end");
        let spaces = [Space::uniform(width * height, (0.0, 1.0), 4)];
        let status = Status::Terminated;
        Self { width, height, walls, step_limit, spaces, cell: 0, n_steps: 0, status }
    }

    fn neighbour(&self, cell: usize, action: usize) -> Option<usize> {
        let (column, row) = (cell % self.width, cell / self.width);
        match action {
            0 if column > 0 => Some(cell - 1),
            1 if column + 1 < self.width => Some(cell + 1),
            2 if row > 0 => Some(cell - self.width),
            3 if row + 1 < self.height => Some(cell + self.width),
            _ => None,
        }
    }

    /// The best return from each cell, discounted by γ = `discount` per step, by value iteration.
    pub fn best_values(&self, discount: f64) -> Vec<f64> {
        let n_cells = self.width * self.height;
        let mut values = vec![0.0; n_cells];
        for _ in 0..n_cells {
            for cell in 0..n_cells - 1 {
                let of = |action| values[self.neighbour(cell, action).unwrap_or(cell)];
                values[cell] = -1.0 + discount * (0..4).map(of).fold(f64::NEG_INFINITY, f64::max);
            }
        }
        values
    }

    /// The mean of the best undiscounted returns over the starts.
    pub fn best_mean_return(&self) -> f64 {
        let values = self.best_values(1.0);
        values.iter().sum::<f64>() / (values.len() - 1) as f64
    }
}

impl Environment for Grid {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) {
        self.cell = SeedStreams::new(seed).stream("grid").below(self.width * self.height - 1);
        self.n_steps = 0;
        self.status = Status::Running;
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        observation.fill(0.0);
        observation[self.cell] = 1.0;
        for (action, allowed) in mask.iter_mut().enumerate() {
            *allowed = self.walls == Walls::Bumped || self.neighbour(self.cell, action).is_some();
        }
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        if self.status.is_over() {
            return Err(Refused::Over);
        }
        let next = self.neighbour(self.cell, action);
        admit(action, 4, |_| self.walls == Walls::Bumped || next.is_some())?;
        self.cell = next.unwrap_or(self.cell);
        self.n_steps += 1;
        self.status = if self.cell + 1 == self.width * self.height {
            Status::Terminated
        } else if self.n_steps == self.step_limit {
            Status::Truncated
        } else {
            Status::Running
        };
        Ok(Transition::new(-1.0, self.status))
    }

    fn step_limit(&self) -> Option<u64> {
        Some(self.step_limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_way_is_as_long_as_rows_and_columns_say() {
        let grid = Grid::new((4, 3), Walls::Bumped, 100);
        let values = grid.best_values(1.0);
        for (cell, value) in values.iter().enumerate() {
            let distance = (3 - cell % 4) + (2 - cell / 4);
            assert!((value + distance as f64).abs() < 1e-12, "cell {cell}");
        }
        let discounted = Grid::new((3, 1), Walls::Bumped, 100).best_values(0.5);
        assert_eq!(discounted, [-1.5, -1.0, 0.0]);
    }
}
