//! From where the path ended back to the program's own columns, rows and cones.

use crate::solver::backend::{Solution, Termination};
use crate::solver::block_interior_point::inequality::Source;
use crate::solver::block_interior_point::interior::Interior;
use crate::solver::block_interior_point::linking::Linking;
use crate::solver::block_interior_point::scale::Scaled;
use crate::solver::block_interior_point::structure::sign;
use crate::solver::intake::without_columns;

/// Where a block ended: columns, duals of its rows.
struct Ended<'a> {
    block: usize,
    columns: &'a [f64],
    duals: &'a [f64],
}

impl Scaled<'_> {
    /// The linking rows and columns with their bounds; none if two bounds contradict one another.
    pub(super) fn linking_system(&self) -> Option<Linking> {
        let (rows, columns) = (self.linking.len(), self.units.len());
        let mut linking = Linking {
            kinds: self.linking.iter().map(|row| row.kind).collect(),
            share: 1.0,
            bounds: self.linking.iter().map(|row| row.bound).collect(),
            coefficients: vec![0.0; rows * columns],
            cost: self.structure.linking_columns.iter().map(|column| self.cost(*column as usize)).collect(),
            lower: vec![f64::NEG_INFINITY; columns],
            upper: vec![f64::INFINITY; columns],
            slack: vec![1.0; rows],
            price: vec![1.0; rows],
            level: vec![0.0; columns],
            lower_dual: vec![0.0; columns],
            upper_dual: vec![0.0; columns],
        };
        for (position, row) in self.linking.iter().enumerate() {
            for (column, value) in self.program.row(row.row as usize) {
                if let Some(t) = self.linking_of(column) {
                    linking.coefficients[position * columns + t] += row.factor * value * self.units[t];
                }
            }
        }
        for (t, column) in self.structure.linking_columns.iter().enumerate() {
            let range = self.program.columns[*column as usize];
            linking.lower[t] = range.lower / self.units[t];
            linking.upper[t] = range.upper / self.units[t];
        }
        for row in &self.structure.bare_rows {
            self.bound_by(*row as usize, &mut linking)?;
        }
        let open = |t: usize| linking.lower[t] < linking.upper[t];
        (0..columns).all(open).then_some(linking)
    }

    /// A row that is a bound of one linking column, or of nothing.
    fn bound_by(&self, row: usize, linking: &mut Linking) -> Option<()> {
        let range = self.program.rows[row];
        let (mut shift, mut size, mut of) = (0.0, 0.0_f64, None);
        for (column, value) in self.program.row(row).filter(|(_, value)| *value != 0.0) {
            match self.linking_of(column) {
                Some(t) => of = Some((t, value * self.units[t])),
                None => shift += value * self.structure.origin[column],
            }
            size = size.max(value.abs());
        }
        let (lower, upper) = (range.lower - shift, range.upper - shift);
        let Some((t, value)) = of else {
            let slack = 1e-9 * size.max(shift.abs());
            return (lower <= slack && upper >= -slack).then_some(());
        };
        let (lower, upper) =
            if value > 0.0 { (lower / value, upper / value) } else { (upper / value, lower / value) };
        linking.lower[t] = linking.lower[t].max(lower);
        linking.upper[t] = linking.upper[t].min(upper);
        Some(())
    }
}

/// The solution in the program's terms.
pub(super) fn solution(scaled: &Scaled<'_>, interior: &Interior, termination: Termination) -> Solution {
    let program = scaled.program;
    let mut answer = without_columns(termination);
    answer.columns.clone_from(&scaled.structure.origin);
    answer.row_duals = vec![0.0; program.n_rows()];
    answer.cone_duals = vec![vec![0.0; 3]; program.cones.len()];
    answer.iterations = u64::from(interior.iterations);
    for (t, column) in scaled.structure.linking_columns.iter().enumerate() {
        answer.columns[*column as usize] = scaled.units[t] * interior.linking.level[t];
    }
    for (row, price) in scaled.linking.iter().zip(&interior.linking.price) {
        answer.row_duals[row.row as usize] += price * row.factor / scaled.objective;
    }
    bare_duals(scaled, &interior.linking, &mut answer);
    for batch in &interior.batches {
        let k = batch.shape.k;
        for (position, block) in batch.blocks.iter().enumerate() {
            let (start, lane) = (position / 8 * (k + 2), position % 8);
            let columns: [f64; 8] =
                std::array::from_fn(|j| if j < k { batch.primal[start + j].0[lane] } else { 0.0 });
            let duals: [f64; 2] = std::array::from_fn(|row| batch.dual[start + k + row].0[lane]);
            let ended = Ended { block: *block as usize, columns: &columns[..k], duals: &duals };
            write(scaled, &ended, &mut answer);
        }
    }
    for block in &interior.dense {
        let (columns, duals) =
            (block.primal.split_at(block.data().shape.k).0, block.dual.split_at(block.data().shape.k).1);
        write(scaled, &Ended { block: block.block as usize, columns, duals }, &mut answer);
    }
    logarithms(scaled, &mut answer);
    answer.objective = program.objective(&answer.columns);
    answer
}

fn write(scaled: &Scaled<'_>, ended: &Ended<'_>, answer: &mut Solution) {
    let structure = scaled.structure;
    for (column, value) in structure.columns_of(ended.block).iter().zip(ended.columns) {
        let column = *column as usize;
        answer.columns[column] = structure.origin[column] + structure.direction[column] * value;
    }
    let factors = &scaled.factors[structure.side_starts[ended.block]..];
    for ((side, factor), dual) in structure.sides_in(ended.block).iter().zip(factors).zip(ended.duals) {
        let dual = dual * factor / scaled.objective;
        match side.source {
            Source::Row(row) => answer.row_duals[row as usize] += side.sign * dual,
            Source::Cone(cone) => answer.cone_duals[cone as usize][2] = dual,
            Source::Width(_) => {}
        }
    }
}

/// Duals of the rows that bound a linking column.
fn bare_duals(scaled: &Scaled<'_>, linking: &Linking, answer: &mut Solution) {
    let mut lower_left = linking.lower_dual.clone();
    let mut upper_left = linking.upper_dual.clone();
    for row in &scaled.structure.bare_rows {
        let terms = scaled.program.row(*row as usize).filter(|(_, value)| *value != 0.0);
        let of = terms
            .filter_map(|(column, value)| scaled.linking_of(column).map(|t| (t, value * scaled.units[t])));
        let Some((t, value)) = of.last() else { continue };
        let column = scaled.program.columns[scaled.structure.linking_columns[t] as usize];
        let range = scaled.program.rows[*row as usize];
        let ends = if value > 0.0 { (range.lower, range.upper) } else { (range.upper, range.lower) };
        let at = |end: f64, bound: f64| (end / value - bound).abs() <= 1e-12 * bound.abs().max(1e-300);
        if at(ends.1, linking.upper[t]) && column.upper / scaled.units[t] > linking.upper[t] {
            answer.row_duals[*row as usize] +=
                std::mem::take(&mut upper_left[t]) / (value * scaled.objective);
        }
        if at(ends.0, linking.lower[t]) && column.lower / scaled.units[t] < linking.lower[t] {
            answer.row_duals[*row as usize] -=
                std::mem::take(&mut lower_left[t]) / (value * scaled.objective);
        }
    }
}

/// The columns of logarithms, as large as their forms allow, and the duals of their cones' other entries.
fn logarithms(scaled: &Scaled<'_>, answer: &mut Solution) {
    let program = scaled.program;
    let sign = sign(program);
    for (position, cone) in program.cones.iter().enumerate() {
        let form = &cone.entries[2];
        let value: f64 = form.constant
            + form.terms.iter().map(|(column, value)| value * answer.columns[*column]).sum::<f64>();
        let middle = cone.entries[1].constant;
        let (column, c) = cone.entries[0].terms[0];
        let log = (value / middle).max(f64::MIN_POSITIVE).ln();
        answer.columns[column] = (middle * log - cone.entries[0].constant) / c;
        let duals = &mut answer.cone_duals[position];
        duals[0] = -program.cost[column] / c;
        let (u, w) = (sign * duals[0], sign * duals[2]);
        duals[1] = sign * u * (1.0 + (w / -u).ln());
    }
}
