//! Recognition: which few rows and columns link, and the small blocks that are left without them.
//!
//! Only the matrix is looked at. Columns in many rows link (a level); free columns link too, for a block cannot
//! hold one. Rows are then taken from the shortest to the longest and their columns put into one block, unless the
//! block would be large or too many blocks would become one: such a row links (a worker type's capacity).

use crate::program::{Cone, ConeKind, Program, Range};
use crate::solver::block_interior_point::inequality::{Inequality, Kind, Source, sides_of};

/// A column in more rows than this links.
const ROWS_PER_COLUMN_MAX: u32 = 12;
/// Columns of a block.
const BLOCK_COLUMNS_MAX: u32 = 32;
/// Rows of a block.
const BLOCK_ROWS_MAX: usize = 128;
/// Blocks of two or more columns that one row may join.
const JOINED_MAX: usize = 4;
/// Linking rows.
const LINKING_ROWS_MAX: usize = 1024;
/// Linking columns.
const LINKING_COLUMNS_MAX: usize = 16;
/// Linking rows from which on there are to be many more blocks than they: so many for each. With fewer, sparse
/// factors are sooner there than the dense one of the linking rows, ten times where there is a block for each.
const ENTANGLED_ROWS_MIN: usize = 64;
const ENTANGLED_BLOCKS: usize = 3;
/// How far below its implied lower bound a column without a bound is given one, relative to max(1, its size).
const IMPLIED_MARGIN: f64 = 1.0;

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A constant.
    Fixed,
    /// Part of a block.
    Block,
    /// In many blocks.
    Linking,
    /// At most the logarithm of a form, and worth something: a cone's.
    Logarithm,
}

/// Says why a program is left to another backend.
pub(super) type Declined = String;

/// The structure of a program: columns and rows by position in it.
#[derive(Debug)]
pub(super) struct Structure {
    /// x = origin + direction · x′ with x′ ≥ 0 in a block; direction is 0 for a constant.
    pub(super) origin: Vec<f64>,
    pub(super) direction: Vec<f64>,
    /// Columns that link, ascending.
    pub(super) linking_columns: Vec<u32>,
    /// Rows that link, ascending.
    pub(super) linking_rows: Vec<u32>,
    /// Columns of each block, one block after another, and where each starts: [blocks + 1].
    pub(super) block_columns: Vec<u32>,
    pub(super) block_starts: Vec<usize>,
    /// Block of each column that is in one.
    pub(super) block_of: Vec<u32>,
    /// Sides of rows in blocks, block by block, and where each block's start.
    pub(super) sides: Vec<Inequality>,
    pub(super) side_starts: Vec<usize>,
    /// Rows without a column of a block: empty, or a bound of a linking column.
    pub(super) bare_rows: Vec<u32>,
}

/// The recognition, step by step.
struct Recognition<'a> {
    program: &'a Program,
    roles: Vec<Role>,
    /// Linking columns that rows make constants, and their values.
    pinned: Vec<(usize, f64)>,
    parent: Vec<u32>,
    size: Vec<u32>,
}

impl Structure {
    /// Takes a checked program apart.
    pub(super) fn of(program: &Program) -> Result<Self, Declined> {
        let n = program.n_columns();
        if u32::try_from(n.max(program.n_rows())).is_err() {
            return Err("too many columns or rows".to_owned());
        }
        let (roles, pinned) = pinned(program, roles(program)?);
        let mut recognition =
            Recognition { program, roles, pinned, parent: (0..n).map(index).collect(), size: vec![1; n] };
        let (origin, direction) = recognition.coordinates();
        recognition.join_cones()?;
        let linking_rows = recognition.join_rows();
        if linking_rows.len() > LINKING_ROWS_MAX {
            return Err(format!("{} rows link blocks", linking_rows.len()));
        }
        let linking_columns: Vec<u32> =
            (0..n).filter(|column| recognition.roles[*column] == Role::Linking).map(index).collect();
        if linking_columns.len() > LINKING_COLUMNS_MAX {
            return Err(format!("{} columns link blocks", linking_columns.len()));
        }
        recognition.structure(origin, direction, linking_rows, linking_columns)
    }

    /// Blocks.
    pub(super) fn n_blocks(&self) -> usize {
        self.block_starts.len() - 1
    }

    /// Are there too many linking rows for so few blocks? For linear programs, that is: logarithms still gain by it.
    pub(super) fn is_entangled(&self) -> bool {
        let rows = self.linking_rows.len();
        rows >= ENTANGLED_ROWS_MIN && self.n_blocks() <= ENTANGLED_BLOCKS * rows
    }

    /// The columns of a block.
    pub(super) fn columns_of(&self, block: usize) -> &[u32] {
        &self.block_columns[self.block_starts[block]..self.block_starts[block + 1]]
    }

    /// The sides of a block.
    pub(super) fn sides_in(&self, block: usize) -> &[Inequality] {
        &self.sides[self.side_starts[block]..self.side_starts[block + 1]]
    }
}

/// Positions fit: checked on entry.
#[expect(clippy::cast_possible_truncation, reason = "the number of columns and rows is checked to fit")]
pub(super) fn index(position: usize) -> u32 {
    position as u32
}

fn roles(program: &Program) -> Result<Vec<Role>, Declined> {
    let n = program.n_columns();
    let mut uses = vec![0_u32; n];
    for (column, value) in program.term_columns.iter().zip(&program.term_values) {
        uses[*column] += u32::from(*value != 0.0);
    }
    let mut roles = vec![Role::Block; n];
    for cone in &program.cones {
        if cone.kind != ConeKind::Exponential {
            return Err("it has second-order cones".to_owned());
        }
        let (ConeColumn::Is(column), [.., form]) = (cone_column(cone), &cone.entries[..]) else {
            return Err("a cone is not the logarithm of a form".to_owned());
        };
        if uses[column] > 0 || roles[column] == Role::Logarithm || !is_valued(program, cone, column) {
            return Err("a logarithm is not simply worth something".to_owned());
        }
        roles[column] = Role::Logarithm;
        for (column, _) in form.terms.iter().filter(|(_, value)| *value != 0.0) {
            uses[*column] += 1;
        }
    }
    for (column, role) in roles.iter_mut().enumerate() {
        let range = program.columns[column];
        if *role == Role::Logarithm {
            continue;
        }
        if range.is_point() {
            *role = Role::Fixed;
        } else if uses[column] > ROWS_PER_COLUMN_MAX || bound_below(program, column).is_none() {
            *role = Role::Linking;
        }
    }
    for cone in &program.cones {
        if cone.entries[2].terms.iter().any(|(column, _)| roles[*column] == Role::Logarithm) {
            return Err("a logarithm of a logarithm".to_owned());
        }
    }
    Ok(roles)
}

/// Linking columns to which rows without a block's column leave one value are constants: a level that some job
/// cannot raise above zero.
fn pinned(program: &Program, mut roles: Vec<Role>) -> (Vec<Role>, Vec<(usize, f64)>) {
    let linking: Vec<usize> = (0..roles.len()).filter(|column| roles[*column] == Role::Linking).collect();
    let mut pinned = Vec::new();
    if linking.is_empty() || linking.len() > LINKING_COLUMNS_MAX {
        return (roles, pinned);
    }
    let mut ranges: Vec<Range> = linking.iter().map(|column| program.columns[*column]).collect();
    for (row, range) in program.rows.iter().enumerate() {
        let mut terms = program.row(row).filter(|&(_, value)| value != 0.0);
        let (Some((column, value)), None) = (terms.next(), terms.next()) else { continue };
        let Some(at) = linking.iter().position(|of| *of == column) else { continue };
        let (lower, upper) =
            if value > 0.0 { (range.lower, range.upper) } else { (range.upper, range.lower) };
        ranges[at].lower = ranges[at].lower.max(lower / value);
        ranges[at].upper = ranges[at].upper.min(upper / value);
    }
    for (column, range) in linking.into_iter().zip(ranges) {
        if range.is_point() {
            roles[column] = Role::Fixed;
            pinned.push((column, range.lower));
        }
    }
    (roles, pinned)
}

enum ConeColumn {
    Is(usize),
    None,
}

/// The column y of a cone that says y ≤ log(form): entries (c·y + const, const > 0, form).
fn cone_column(cone: &Cone) -> ConeColumn {
    match (&cone.entries[0].terms[..], &cone.entries[1]) {
        (&[(column, value)], middle) if value > 0.0 && middle.terms.is_empty() && middle.constant > 0.0 => {
            ConeColumn::Is(column)
        }
        _ => ConeColumn::None,
    }
}

/// Is the logarithm's column without bounds, and is more of it better?
fn is_valued(program: &Program, cone: &Cone, column: usize) -> bool {
    let range = program.columns[column];
    let free = range.lower == f64::NEG_INFINITY && range.upper == f64::INFINITY;
    let elsewhere = cone.entries[2].terms.iter().any(|(other, _)| *other == column);
    free && !elsewhere && sign(program) * program.cost[column] > 0.0
}

/// +1 to maximize, −1 to minimize.
pub(super) fn sign(program: &Program) -> f64 {
    match program.sense {
        crate::program::Sense::Maximize => 1.0,
        crate::program::Sense::Minimize => -1.0,
    }
}

/// Origin and direction of a column that can be made non-negative.
fn bound_below(program: &Program, column: usize) -> Option<(f64, f64)> {
    let (range, implied) = (program.columns[column], program.implied[column]);
    if range.lower > f64::NEG_INFINITY {
        return Some((range.lower, 1.0));
    }
    if range.upper < f64::INFINITY {
        return Some((range.upper, -1.0));
    }
    // an implied bound is valid for an optimum; with room to spare it never binds
    let margin = |bound: f64| IMPLIED_MARGIN * bound.abs().max(1.0);
    if implied.lower > f64::NEG_INFINITY {
        return Some((implied.lower - margin(implied.lower), 1.0));
    }
    (implied.upper < f64::INFINITY).then(|| (implied.upper + margin(implied.upper), -1.0))
}

impl Recognition<'_> {
    fn coordinates(&self) -> (Vec<f64>, Vec<f64>) {
        let of = |(column, role): (usize, &Role)| match role {
            Role::Fixed => (self.program.columns[column].lower, 0.0),
            Role::Block => bound_below(self.program, column).unwrap_or((0.0, 1.0)),
            Role::Linking => (0.0, 1.0),
            Role::Logarithm => (0.0, 0.0),
        };
        let (mut origin, direction): (Vec<f64>, Vec<f64>) = self.roles.iter().enumerate().map(of).unzip();
        for (column, value) in &self.pinned {
            origin[*column] = *value;
        }
        (origin, direction)
    }

    fn root(&mut self, column: u32) -> u32 {
        let mut at = column as usize;
        while self.parent[at] as usize != at {
            self.parent[at] = self.parent[self.parent[at] as usize];
            at = self.parent[at] as usize;
        }
        index(at)
    }

    /// Puts columns into one block if it stays small and joins few. True if it did.
    fn join(&mut self, columns: impl Iterator<Item = usize> + Clone, roots: &mut Vec<u32>) -> bool {
        roots.clear();
        for column in columns {
            let root = self.root(index(column));
            if !roots.contains(&root) {
                if roots.len() == BLOCK_COLUMNS_MAX as usize {
                    return false;
                }
                roots.push(root);
            }
        }
        let total: u32 = roots.iter().map(|root| self.size[*root as usize]).sum();
        let formed = roots.iter().filter(|root| self.size[**root as usize] > 1).count();
        if total > BLOCK_COLUMNS_MAX || formed > JOINED_MAX {
            return false;
        }
        if let Some(&first) = roots.iter().min() {
            for root in roots.iter() {
                self.parent[*root as usize] = first;
            }
            self.size[first as usize] = total;
        }
        true
    }

    fn join_cones(&mut self) -> Result<(), Declined> {
        let mut roots = Vec::new();
        let program = self.program;
        for cone in &program.cones {
            let terms = cone.entries[2].terms.iter().filter(|(_, value)| *value != 0.0);
            let columns: Vec<usize> = terms.map(|(column, _)| *column).collect();
            let in_block = |column: &usize| self.roles[*column] == Role::Block;
            let columns: Vec<usize> = columns.into_iter().filter(in_block).collect();
            if columns.is_empty() || !self.join(columns.into_iter(), &mut roots) {
                return Err("a logarithm spans blocks".to_owned());
            }
        }
        Ok(())
    }

    /// Joins the columns of rows, shortest rows first; gives the rows that link instead, ascending.
    fn join_rows(&mut self) -> Vec<u32> {
        let program = self.program;
        let mut linking = Vec::new();
        let mut roots = Vec::new();
        let mut short: Vec<Vec<u32>> = vec![Vec::new(); BLOCK_COLUMNS_MAX as usize + 1];
        for row in 0..program.n_rows() {
            let range = program.rows[row];
            if range.lower == f64::NEG_INFINITY && range.upper == f64::INFINITY {
                continue;
            }
            let length = self.in_blocks(row).count();
            match short.get_mut(length) {
                Some(rows) => rows.push(index(row)),
                None => linking.push(index(row)),
            }
        }
        let mut columns: Vec<usize> = Vec::new();
        for row in short.into_iter().skip(2).flatten() {
            columns.clear();
            columns.extend(self.in_blocks(row as usize));
            if !self.join(columns.iter().copied(), &mut roots) {
                linking.push(row);
            }
        }
        linking.sort_unstable();
        linking
    }

    /// The columns of a row that are in blocks.
    fn in_blocks(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        let terms = self.program.row(row).filter(|&(_, value)| value != 0.0);
        terms.map(|(column, _)| column).filter(|&column| self.roles[column] == Role::Block)
    }

    fn structure(
        mut self,
        origin: Vec<f64>,
        direction: Vec<f64>,
        linking_rows: Vec<u32>,
        linking_columns: Vec<u32>,
    ) -> Result<Structure, Declined> {
        let n = self.program.n_columns();
        let (mut block_of, mut n_blocks) = (vec![u32::MAX; n], 0);
        for column in 0..n {
            if self.roles[column] != Role::Block {
                continue;
            }
            let root = self.root(index(column)) as usize;
            if block_of[root] == u32::MAX {
                block_of[root] = index(n_blocks);
                n_blocks += 1;
            }
            block_of[column] = block_of[root];
        }
        let in_block = |column: &usize| self.roles[*column] == Role::Block;
        let members = (0..n).filter(in_block).map(|column| (block_of[column], index(column)));
        let (block_columns, block_starts) = grouped(n_blocks, members);
        let redundant = self.redundant_widths(&origin, &direction);
        let mut bare_rows = Vec::new();
        let mut sides = Vec::new();
        let mut next_linking = linking_rows.iter().peekable();
        for row in 0..self.program.n_rows() {
            if next_linking.next_if(|linking| **linking as usize == row).is_some() {
                continue;
            }
            match self.in_blocks(row).next() {
                Some(column) => {
                    let of = sides_of(Source::Row(index(row)), self.program.rows[row]);
                    sides.extend(of.map(|side| (block_of[column], side)));
                }
                None => bare_rows.push(index(row)),
            }
        }
        for column in (0..n).filter(|column| self.roles[*column] == Role::Block) {
            let range = self.program.columns[column];
            let width = range.upper - range.lower;
            if width.is_finite() && !redundant.get(column).copied().unwrap_or(false) {
                let side = Inequality { source: Source::Width(index(column)), kind: Kind::AtMost, sign: 1.0 };
                sides.push((block_of[column], side));
            }
        }
        for (position, cone) in self.program.cones.iter().enumerate() {
            let form = cone.entries[2].terms.iter().filter(|(_, value)| *value != 0.0);
            let Some(&(column, _)) = form.clone().find(|(column, _)| in_block(column)) else { continue };
            let side =
                Inequality { source: Source::Cone(index(position)), kind: Kind::Logarithm, sign: -1.0 };
            sides.push((block_of[column], side));
        }
        let (sides, side_starts) = grouped(n_blocks, sides.into_iter());
        if side_starts.windows(2).any(|pair| pair[1] - pair[0] > BLOCK_ROWS_MAX) {
            return Err(format!("a block has more than {BLOCK_ROWS_MAX} rows"));
        }
        Ok(Structure {
            origin,
            direction,
            linking_columns,
            linking_rows,
            block_columns,
            block_starts,
            block_of,
            sides,
            side_starts,
            bare_rows,
        })
    }

    /// Columns whose upper bound follows from a row of non-negative terms: [columns], or empty if none has both
    /// bounds.
    fn redundant_widths(&self, origin: &[f64], direction: &[f64]) -> Vec<bool> {
        let program = self.program;
        let two_sided = |(range, role): (&Range, &Role)| {
            *role == Role::Block && range.lower.is_finite() && range.upper.is_finite()
        };
        if !program.columns.iter().zip(&self.roles).any(two_sided) {
            return Vec::new();
        }
        let mut redundant = vec![false; program.n_columns()];
        for row in 0..program.n_rows() {
            for side in sides_of(Source::Row(index(row)), program.rows[row]) {
                let range = program.rows[row];
                let mut bound = if side.sign > 0.0 { range.upper } else { -range.lower };
                let mut positive = true;
                for (column, value) in program.row(row) {
                    bound -= side.sign * value * origin[column];
                    let coefficient = side.sign * value * direction[column];
                    positive &= coefficient >= 0.0 && (self.roles[column] != Role::Linking || value == 0.0);
                }
                if !positive {
                    continue;
                }
                for (column, value) in program.row(row) {
                    let range = program.columns[column];
                    let coefficient = value.abs() * direction[column].abs();
                    redundant[column] |= coefficient > 0.0
                        && bound <= coefficient * (range.upper - range.lower) * (1.0 + 1e-12);
                }
            }
        }
        redundant
    }
}

/// Items by group, in order, and where each group starts.
fn grouped<T: Copy>(n: usize, items: impl Iterator<Item = (u32, T)>) -> (Vec<T>, Vec<usize>) {
    let items: Vec<(u32, T)> = items.collect();
    let mut starts = vec![0; n + 1];
    for (group, _) in &items {
        starts[*group as usize + 1] += 1;
    }
    for group in 0..n {
        starts[group + 1] += starts[group];
    }
    let mut next = starts.clone();
    let Some(&(_, filler)) = items.first() else { return (Vec::new(), starts) };
    let mut out = vec![filler; items.len()];
    for (group, item) in items {
        out[next[group as usize]] = item;
        next[group as usize] += 1;
    }
    (out, starts)
}
