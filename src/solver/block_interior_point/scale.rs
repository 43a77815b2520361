//! Units in which the numbers of a program are near one: the rows', the linking columns' and the objective's.
//!
//! A row of a block is divided by its largest coefficient in the block, a linking row by its bound or largest
//! coefficient, a linking column is measured by the row that feels it most, and the objective by what all blocks
//! can have of it together. A Newton step does not depend on units; where it starts and when it is done do.

use crate::program::{Program, Range};
use crate::solver::block_interior_point::inequality::{Inequality, Kind, Source, sides_of};
use crate::solver::block_interior_point::structure::{Structure, index, sign};

/// A linking row as `form + slack = bound`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkingRow {
    /// The row it is a side of.
    pub(super) row: u32,
    pub(super) kind: Kind,
    /// sign · factor, which the row is multiplied by.
    pub(super) factor: f64,
    pub(super) bound: f64,
}

/// What follows from the rows alone.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) structure: Structure,
    units: Vec<f64>,
    linking_position: Vec<u32>,
    linking: Vec<LinkingRow>,
    factors: Vec<f64>,
}

/// The program's numbers in these units, seen through the structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scaled<'a> {
    pub(super) program: &'a Program,
    pub(super) structure: &'a Structure,
    /// The objective is divided by this, and minimized: cost′ = objective · cost.
    pub(super) objective: f64,
    /// Linking column: t = unit · t′: [linking columns].
    pub(super) units: &'a [f64],
    /// Position of each linking column among them: [columns], or `u32::MAX`.
    pub(super) linking_position: &'a [u32],
    /// Linking rows, two for one with two different bounds.
    pub(super) linking: &'a [LinkingRow],
    /// What each side of a block is multiplied by: [sides].
    pub(super) factors: &'a [f64],
}

/// A coefficient of a side: of a column of its block, or of a linking one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Coefficient {
    Block(u32, f64),
    Linking(u32, f64),
}

impl Frame {
    pub(super) fn of(program: &Program, structure: Structure) -> Self {
        let mut linking_position = vec![u32::MAX; program.n_columns()];
        for (position, column) in structure.linking_columns.iter().enumerate() {
            linking_position[*column as usize] = index(position);
        }
        let units = vec![1.0; structure.linking_columns.len()];
        let mut frame = Self { structure, units, linking_position, linking: Vec::new(), factors: Vec::new() };
        let unscaled = frame.seen(program);
        let (units, factors) = unscaled.measured_linking_columns();
        let linking = unscaled.linking_rows();
        (frame.units, frame.factors, frame.linking) = (units, factors, linking);
        frame
    }

    /// A program of these rows, its objective as it is.
    fn seen<'a>(&'a self, program: &'a Program) -> Scaled<'a> {
        Scaled {
            program,
            structure: &self.structure,
            objective: 1.0,
            units: &self.units,
            linking_position: &self.linking_position,
            linking: &self.linking,
            factors: &self.factors,
        }
    }
}

impl<'a> Scaled<'a> {
    /// A program of these rows.
    pub(super) fn of(program: &'a Program, frame: &'a Frame) -> Self {
        let seen = frame.seen(program);
        Self { objective: seen.measured_objective(), ..seen }
    }

    /// Position of a column among the linking ones.
    pub(super) fn linking_of(&self, column: usize) -> Option<usize> {
        let position = self.linking_position[column];
        (position != u32::MAX).then_some(position as usize)
    }

    /// The coefficients of a side and its bound, unscaled but in x′ and t′.
    pub(super) fn side(&self, side: &Inequality, out: &mut Vec<Coefficient>) -> f64 {
        out.clear();
        let structure = self.structure;
        let mut bound = 0.0;
        let mut take = |column: usize, value: f64| {
            if value == 0.0 {
                return;
            }
            let direction = structure.direction[column];
            bound -= value * structure.origin[column];
            match self.linking_of(column) {
                Some(position) => {
                    out.push(Coefficient::Linking(index(position), value * self.units[position]));
                }
                None if direction != 0.0 => out.push(Coefficient::Block(index(column), value * direction)),
                None => {}
            }
        };
        match side.source {
            Source::Row(row) => {
                let row = row as usize;
                self.program.row(row).for_each(|(column, value)| take(column, side.sign * value));
                let range = self.program.rows[row];
                bound += if side.sign > 0.0 { range.upper } else { -range.lower };
            }
            Source::Cone(cone) => {
                let form = &self.program.cones[cone as usize].entries[2];
                form.terms.iter().for_each(|&(column, value)| take(column, -value));
                bound += form.constant;
            }
            Source::Width(column) => {
                let Range { lower, upper } = self.program.columns[column as usize];
                out.push(Coefficient::Block(column, 1.0));
                bound = upper - lower;
            }
        }
        bound
    }

    /// What a row of a block is multiplied by.
    fn row_factor(coefficients: &[Coefficient]) -> f64 {
        let largest = coefficients.iter().fold(0.0_f64, |most, coefficient| match coefficient {
            Coefficient::Block(_, value) => most.max(value.abs()),
            Coefficient::Linking(..) => most,
        });
        if largest > 0.0 { 1.0 / largest } else { 1.0 }
    }

    /// The unit of each linking column, and what each side of a block is multiplied by.
    fn measured_linking_columns(&self) -> (Vec<f64>, Vec<f64>) {
        let mut factors = Vec::with_capacity(self.structure.sides.len());
        let mut largest = vec![0.0_f64; self.units.len()];
        let mut coefficients = Vec::new();
        for side in &self.structure.sides {
            self.side(side, &mut coefficients);
            let factor = Self::row_factor(&coefficients);
            factors.push(factor);
            for coefficient in &coefficients {
                if let Coefficient::Linking(position, value) = coefficient {
                    let most = &mut largest[*position as usize];
                    *most = most.max(value.abs() * factor);
                }
            }
        }
        let unit = |largest: f64| if largest > 0.0 { 1.0 / largest } else { 1.0 };
        (largest.into_iter().map(unit).collect(), factors)
    }

    fn linking_rows(&self) -> Vec<LinkingRow> {
        let mut linking = Vec::new();
        for row in &self.structure.linking_rows {
            let range = self.program.rows[*row as usize];
            for side in sides_of(Source::Row(*row), range) {
                let mut bound = if side.sign > 0.0 { range.upper } else { -range.lower };
                let mut largest = 0.0_f64;
                for (column, value) in self.program.row(*row as usize) {
                    bound -= side.sign * value * self.structure.origin[column];
                    if self.structure.direction[column] != 0.0 {
                        largest = largest.max(value.abs());
                    }
                }
                let size = bound.abs().max(largest);
                let factor = if size > 0.0 { side.sign / size } else { side.sign };
                let bound = bound * factor.abs();
                linking.push(LinkingRow { row: *row, kind: side.kind, factor, bound });
            }
        }
        linking
    }

    fn measured_objective(&self) -> f64 {
        let (program, structure) = (self.program, self.structure);
        let mut total = 0.0;
        for block in 0..structure.n_blocks() {
            let cost = structure.columns_of(block).iter().map(|column| program.cost[*column as usize].abs());
            total += cost.fold(0.0, f64::max);
        }
        for (position, column) in structure.linking_columns.iter().enumerate() {
            total += (program.cost[*column as usize] * self.units[position]).abs();
        }
        for cone in 0..program.cones.len() {
            total += self.weight(cone).0.abs();
        }
        if total > 0.0 { sign(program) / total } else { sign(program) }
    }

    /// The cost of a column, minimized: of x′ or t′.
    pub(super) fn cost(&self, column: usize) -> f64 {
        let unit = self.linking_of(column).map_or(self.structure.direction[column], |at| self.units[at]);
        -self.objective * self.program.cost[column] * unit
    }

    /// What a cone's logarithm is worth: (weight, c, k) with y = (middle·log(form/middle) − k)/c at its best and
    /// weight = cost·middle/c.
    pub(super) fn weight(&self, cone: usize) -> (f64, f64, f64) {
        let entries = &self.program.cones[cone].entries;
        let (column, c) = entries[0].terms[0];
        (self.program.cost[column] * entries[1].constant / c, c, entries[0].constant)
    }
}
