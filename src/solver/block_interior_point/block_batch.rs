//! Blocks of one shape, eight abreast: their numbers, and where they stand.
//!
//! A block has up to [`COLUMNS_MAX`] columns and two rows, coefficients a and v. Blocks of a batch agree in the
//! number of columns, the kinds of their rows, which columns are in linking rows and which rows hold a linking
//! column; if they are in the *same* linking rows the batch is uniform and its sums stay in registers.

use crate::solver::block_interior_point::inequality::{Inequality, Kind, Source};
use crate::solver::block_interior_point::scale::{Coefficient, Scaled};
use crate::solver::block_interior_point::structure::index;
use crate::solver::lanes::{F64x8, LANES};

/// Columns of a block that a batch takes.
pub(super) const COLUMNS_MAX: usize = 8;
/// Blocks of a batch: what stays in a core's cache.
pub(super) const BLOCKS_MAX: usize = 1024;

/// What the blocks of a batch have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Columns.
    pub(super) k: usize,
    /// How the rows bind.
    pub(super) kinds: Vec<Kind>,
    /// The column of each entry in a linking row.
    pub(super) entries: Vec<u32>,
    /// (row, linking column) of each entry of a linking column.
    pub(super) levels: Vec<(u32, u32)>,
}

/// One block, gathered from the program, in scaled units.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    pub(super) shape: Shape,
    /// The linking row of each entry.
    pub(super) links: Vec<u32>,
    pub(super) link_values: Vec<f64>,
    pub(super) level_values: Vec<f64>,
    pub(super) cost: Vec<f64>,
    /// Coefficients: [rows × columns].
    pub(super) coefficients: Vec<f64>,
    pub(super) bounds: Vec<f64>,
    /// What the logarithm of each row's slack is worth; zero for other rows.
    pub(super) weights: Vec<f64>,
    pub(super) scratch: Vec<Coefficient>,
}

/// Entries of linking rows, column by column.
#[derive(Debug)]
pub(super) struct Links {
    starts: Vec<u32>,
    rows: Vec<u32>,
    values: Vec<f64>,
}

impl Links {
    pub(super) fn of(scaled: &Scaled<'_>) -> Self {
        let n = scaled.program.n_columns();
        let mut starts = vec![0_u32; n + 1];
        let in_block = |column: usize| scaled.structure.block_of[column] != u32::MAX;
        for linking in scaled.linking {
            for (column, value) in scaled.program.row(linking.row as usize) {
                starts[column + 1] += u32::from(value != 0.0 && in_block(column));
            }
        }
        for column in 0..n {
            starts[column + 1] += starts[column];
        }
        let mut next = starts.clone();
        let total = starts[n] as usize;
        let (mut rows, mut values) = (vec![0; total], vec![0.0; total]);
        for (position, linking) in (0..).zip(scaled.linking) {
            for (column, value) in scaled.program.row(linking.row as usize) {
                if value == 0.0 || !in_block(column) {
                    continue;
                }
                let at = next[column] as usize;
                next[column] += 1;
                rows[at] = position;
                values[at] = linking.factor * value * scaled.structure.direction[column];
            }
        }
        Self { starts, rows, values }
    }

    fn of_column(&self, column: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        let span = self.starts[column as usize] as usize..self.starts[column as usize + 1] as usize;
        self.rows[span.clone()].iter().copied().zip(self.values[span].iter().copied())
    }
}

impl Gathered {
    /// Reads one block.
    pub(super) fn read(&mut self, scaled: &Scaled<'_>, links: &Links, block: usize) {
        let structure = scaled.structure;
        let columns = structure.columns_of(block);
        self.shape.k = columns.len();
        self.shape.kinds.clear();
        self.shape.entries.clear();
        self.shape.levels.clear();
        for list in [&mut self.link_values, &mut self.level_values, &mut self.cost, &mut self.coefficients] {
            list.clear();
        }
        for list in [&mut self.bounds, &mut self.weights] {
            list.clear();
        }
        self.links.clear();
        for (position, column) in (0..).zip(columns) {
            self.cost.push(scaled.cost(*column as usize));
            for (row, value) in links.of_column(*column) {
                self.shape.entries.push(position);
                self.links.push(row);
                self.link_values.push(value);
            }
        }
        let factors = &scaled.factors[structure.side_starts[block]..];
        for (side, factor) in structure.sides_in(block).iter().zip(factors) {
            self.read_side(scaled, columns, side, *factor);
        }
    }

    fn read_side(&mut self, scaled: &Scaled<'_>, columns: &[u32], side: &Inequality, factor: f64) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let bound = scaled.side(side, &mut scratch);
        let row = self.shape.kinds.len();
        self.shape.kinds.push(side.kind);
        self.bounds.push(bound * factor);
        self.weights.push(match side.source {
            Source::Cone(cone) => (scaled.weight(cone as usize).0 * scaled.objective).abs(),
            _ => 0.0,
        });
        let start = self.coefficients.len();
        self.coefficients.resize(start + columns.len(), 0.0);
        for coefficient in &scratch {
            match *coefficient {
                Coefficient::Block(column, value) => {
                    // columns of a block are ascending, as those of a row mostly are
                    let position = columns.binary_search(&column).unwrap_or_else(|at| at);
                    self.coefficients[start + position] += value * factor;
                }
                Coefficient::Linking(position, value) => {
                    self.shape.levels.push((index(row), position));
                    self.level_values.push(value * factor);
                }
            }
        }
        self.scratch = scratch;
    }
}

/// Numbers and state of the blocks of one shape. Lanes are chunk by chunk: `[chunks × what a chunk has]`.
#[derive(Debug)]
pub(super) struct BlockBatch {
    pub(super) shape: Shape,
    pub(super) kinds: [Kind; 2],
    /// The linking row of each entry where all blocks agree.
    pub(super) uniform: Option<Vec<u32>>,
    /// The linking row of each entry of each block: [chunks × entries]; empty if uniform.
    pub(super) links: Vec<[u32; LANES]>,
    /// The blocks, in order.
    pub(super) blocks: Vec<u32>,
    pub(super) n_chunks: usize,
    /// [k]
    pub(super) cost: Vec<F64x8>,
    /// [2k]: the first row's coefficients, then the second's.
    pub(super) coefficients: Vec<F64x8>,
    /// [entries]
    pub(super) link_values: Vec<F64x8>,
    /// [levels]
    pub(super) level_values: Vec<F64x8>,
    /// [2]
    pub(super) bounds: Vec<F64x8>,
    /// [2]
    pub(super) weights: Vec<F64x8>,
    /// How much of mu the products of a block aim at: [1].
    pub(super) shares: Vec<F64x8>,
    /// [k + 2]: columns, then the slacks of rows.
    pub(super) primal: Vec<F64x8>,
    /// [k + 2]: reduced costs, then the duals of rows.
    pub(super) dual: Vec<F64x8>,
    pub(super) primal_step: Vec<F64x8>,
    pub(super) dual_step: Vec<F64x8>,
    /// A step put aside.
    pub(super) kept: (Vec<F64x8>, Vec<F64x8>),
}

impl BlockBatch {
    /// A batch for blocks of this shape.
    pub(super) fn new(shape: Shape, uniform: Option<Vec<u32>>) -> Self {
        let kind = |row: usize| shape.kinds.get(row).copied().unwrap_or(Kind::Absent);
        Self {
            kinds: [kind(0), kind(1)],
            shape,
            uniform,
            links: Vec::new(),
            blocks: Vec::new(),
            n_chunks: 0,
            cost: Vec::new(),
            coefficients: Vec::new(),
            link_values: Vec::new(),
            level_values: Vec::new(),
            bounds: Vec::new(),
            weights: Vec::new(),
            shares: Vec::new(),
            primal: Vec::new(),
            dual: Vec::new(),
            primal_step: Vec::new(),
            dual_step: Vec::new(),
            kept: (Vec::new(), Vec::new()),
        }
    }

    /// Adds a block of the batch's shape.
    pub(super) fn push(&mut self, block: u32, gathered: &Gathered) {
        let lane = self.blocks.len() % LANES;
        if lane == 0 {
            self.push_chunk();
        }
        self.blocks.push(block);
        let chunk = self.n_chunks - 1;
        let k = self.shape.k;
        let set = |list: &mut [F64x8], stride: usize, values: &[f64]| {
            for (place, value) in list[chunk * stride..].iter_mut().zip(values) {
                place.0[lane] = *value;
            }
        };
        set(&mut self.cost, k, &gathered.cost);
        set(&mut self.coefficients, 2 * k, &gathered.coefficients);
        set(&mut self.link_values, gathered.link_values.len(), &gathered.link_values);
        set(&mut self.level_values, gathered.level_values.len(), &gathered.level_values);
        set(&mut self.bounds, 2, &gathered.bounds);
        set(&mut self.weights, 2, &gathered.weights);
        if self.uniform.is_none() {
            let stride = gathered.links.len();
            for (place, row) in self.links[chunk * stride..].iter_mut().zip(&gathered.links) {
                place[lane] = *row;
            }
        }
    }

    /// Room for eight more blocks, each of which is in nothing: x ≥ 0, with rows slack = 1, or x = 1 for equations.
    fn push_chunk(&mut self) {
        self.n_chunks += 1;
        let (k, n) = (self.shape.k, self.n_chunks);
        self.cost.resize(n * k, F64x8::ZERO);
        self.coefficients.resize(n * 2 * k, F64x8::ZERO);
        for row in (0..2).filter(|row| self.kinds[*row] == Kind::Equal) {
            self.coefficients[(n - 1) * 2 * k + row * k + row.min(k - 1)] = F64x8::ONE;
        }
        self.link_values.resize(n * self.shape.entries.len(), F64x8::ZERO);
        self.level_values.resize(n * self.shape.levels.len(), F64x8::ZERO);
        self.bounds.resize(n * 2, F64x8::ONE);
        self.weights.resize(n * 2, F64x8::ZERO);
        if self.uniform.is_none() {
            self.links.resize(n * self.shape.entries.len(), [0; LANES]);
        }
    }

    /// Room for where the blocks stand and for steps. `small`: the cost of what only fills a chunk.
    pub(super) fn open_steps(&mut self, small: f64) {
        for lane in self.blocks.len()..self.n_chunks * LANES {
            let (chunk, lane, k) = (lane / LANES, lane % LANES, self.shape.k);
            self.cost[chunk * k..(chunk + 1) * k].iter_mut().for_each(|cost| cost.0[lane] = small);
            self.weights[chunk * 2..chunk * 2 + 2].iter_mut().for_each(|weight| weight.0[lane] = small);
        }
        let pairs = self.n_chunks * (self.shape.k + 2);
        self.primal.resize(pairs, F64x8::ONE);
        self.dual.resize(pairs, F64x8::ONE);
        self.shares.resize(self.n_chunks, F64x8::ONE);
        self.primal_step.resize(pairs, F64x8::ZERO);
        self.dual_step.resize(pairs, F64x8::ZERO);
    }
}
