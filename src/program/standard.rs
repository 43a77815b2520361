//! The standard form: a linear objective over bounded columns, ranged rows, and cones.
//!
//!   maximize or minimize   offset + cost·x
//!   subject to             row.lower ≤ A x ≤ row.upper          `[rows]`
//!                          F x + g ∈ K₁ × K₂ × …                `[cones]`
//!                          column.lower ≤ x ≤ column.upper      `[columns]`
//!
//! Infinite bounds are `f64::INFINITY` and its negative. Every column also carries *implied* bounds: valid for
//! at least one optimal solution, though no solver need be told; a certificate's dual bound may use them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Direction of the objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sense {
    /// Larger is better.
    Maximize,
    /// Smaller is better.
    Minimize,
}

impl Sense {
    /// `maximize` or `minimize`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Maximize => "maximize",
            Self::Minimize => "minimize",
        }
    }
}

/// The kind of a cone: a set in which affine forms of the columns must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConeKind {
    /// {(x, y, z): y > 0, y·exp(x/y) ≤ z} and its closure; three entries.
    Exponential,
    /// {(t, v): t ≥ ‖v‖₂}; two entries or more.
    SecondOrder,
}

/// One cone and the affine forms that must lie in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cone {
    /// The kind of cone.
    pub kind: ConeKind,
    /// The entries, each a constant plus a sparse linear form.
    pub entries: Vec<Affine>,
}

/// A constant plus a sparse linear form over columns.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Affine {
    /// The constant.
    pub constant: f64,
    /// (column, coefficient), each column at most once.
    pub terms: Vec<(usize, f64)>,
}

/// A range: lower ≤ value ≤ upper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lower end; may be −∞.
    pub lower: f64,
    /// The upper end; may be +∞.
    pub upper: f64,
}

impl Range {
    /// The range of values of at least `lower`.
    pub const fn at_least(lower: f64) -> Self {
        Self { lower, upper: f64::INFINITY }
    }
    /// The range of values of at most `upper`.
    pub const fn at_most(upper: f64) -> Self {
        Self { lower: f64::NEG_INFINITY, upper }
    }
    /// The range of exactly one value.
    pub const fn exactly(value: f64) -> Self {
        Self { lower: value, upper: value }
    }
    /// Whether both ends are the same number, exactly and not within a tolerance.
    #[expect(clippy::float_cmp, reason = "a point is a range whose ends are the same number")]
    pub fn is_point(&self) -> bool {
        self.lower == self.upper
    }
    /// The range without bounds.
    pub const FREE: Self = Self { lower: f64::NEG_INFINITY, upper: f64::INFINITY };
    /// The range from 0 to infinity.
    pub const NON_NEGATIVE: Self = Self { lower: 0.0, upper: f64::INFINITY };
}

/// A function that writes the name of the column or row at a position.
pub type Namer = Arc<dyn Fn(usize) -> String + Send + Sync>;

/// A program in standard form. Rows are stored one after another (compressed sparse rows).
#[derive(Clone)]
pub struct Program {
    /// Direction of the objective.
    pub sense: Sense,
    /// Constant of the objective.
    pub offset: f64,
    /// Objective coefficients: `[columns]`.
    pub cost: Vec<f64>,
    /// Bounds a solver must keep: `[columns]`.
    pub columns: Vec<Range>,
    /// Bounds that hold for at least one optimum, at least as tight as `columns`: `[columns]`.
    pub implied: Vec<Range>,
    /// Row bounds: `[rows]`.
    pub rows: Vec<Range>,
    /// Position of each row's first term, then the number of terms: [rows + 1].
    pub row_starts: Vec<usize>,
    /// Columns of the terms: `[terms]`.
    pub term_columns: Vec<usize>,
    /// Coefficients of the terms: `[terms]`.
    pub term_values: Vec<f64>,
    /// Cones in which affine forms of the columns must lie.
    pub cones: Vec<Cone>,
    names: Option<(Namer, Namer)>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("sense", &self.sense)
            .field("columns", &self.n_columns())
            .field("rows", &self.n_rows())
            .field("terms", &self.term_values.len())
            .field("cones", &self.cones.len())
            .finish_non_exhaustive()
    }
}

impl Program {
    /// An empty program, to which columns and rows are added.
    pub fn new(sense: Sense) -> Self {
        Self {
            sense,
            offset: 0.0,
            cost: Vec::new(),
            columns: Vec::new(),
            implied: Vec::new(),
            rows: Vec::new(),
            row_starts: vec![0],
            term_columns: Vec::new(),
            term_values: Vec::new(),
            cones: Vec::new(),
            names: None,
        }
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.cost.len()
    }

    /// Number of rows; cones do not count.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Whether the program has no cones, so that any linear solver will do.
    pub fn is_linear(&self) -> bool {
        self.cones.is_empty()
    }

    /// The terms of one row: (column, coefficient).
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = (usize, f64)> + '_ {
        let span = self.row_starts[row]..self.row_starts[row + 1];
        self.term_columns[span.clone()].iter().copied().zip(self.term_values[span].iter().copied())
    }

    /// The value of one row's linear form at `x`.
    pub fn row_value(&self, row: usize, x: &[f64]) -> f64 {
        self.row(row).map(|(column, value)| value * x[column]).sum()
    }

    /// The objective at `x`, offset included.
    pub fn objective(&self, x: &[f64]) -> f64 {
        self.offset + self.cost.iter().zip(x).map(|(cost, value)| cost * value).sum::<f64>()
    }

    /// Name of a column for people: the name given to it, or `x` and its position.
    pub fn column_name(&self, column: usize) -> String {
        self.names.as_ref().map_or_else(|| format!("x{column}"), |(namer, _)| namer(column))
    }

    /// Name of a row for people: the name given to it, or `r` and its position.
    pub fn row_name(&self, row: usize) -> String {
        self.names.as_ref().map_or_else(|| format!("r{row}"), |(_, namer)| namer(row))
    }

    /// Gives columns and rows names, made only when asked for.
    pub fn set_names(&mut self, columns: Namer, rows: Namer) {
        self.names = Some((columns, rows));
    }

    /// Reserves memory for a program of this many columns, rows and terms.
    pub(crate) fn reserve(&mut self, n_columns: usize, n_rows: usize, n_terms: usize) {
        self.cost.reserve_exact(n_columns);
        self.columns.reserve_exact(n_columns);
        self.implied.reserve_exact(n_columns);
        self.rows.reserve_exact(n_rows);
        self.row_starts.reserve_exact(n_rows + 1);
        self.term_columns.reserve_exact(n_terms);
        self.term_values.reserve_exact(n_terms);
    }

    /// Cuts the program down to its first columns and rows, without costs, offset, cones and names. The rows that stay
    /// must have no terms in columns that go.
    pub(crate) fn truncate(&mut self, n_columns: usize, n_rows: usize) {
        self.cost.clear();
        self.cost.resize(n_columns, 0.0);
        self.columns.truncate(n_columns);
        self.implied.truncate(n_columns);
        self.rows.truncate(n_rows);
        self.row_starts.truncate(n_rows + 1);
        self.term_columns.truncate(self.row_starts[n_rows]);
        self.term_values.truncate(self.row_starts[n_rows]);
        self.cones.clear();
        (self.offset, self.names) = (0.0, None);
    }

    /// Removes the names, and with them the data that they are made from.
    pub(crate) fn forget_names(&mut self) {
        self.names = None;
    }

    /// Adds a row behind the others and returns its position.
    pub fn push_row(&mut self, range: Range, terms: impl IntoIterator<Item = (usize, f64)>) -> usize {
        for (column, value) in terms {
            self.term_columns.push(column);
            self.term_values.push(value);
        }
        self.row_starts.push(self.term_values.len());
        self.rows.push(range);
        self.rows.len() - 1
    }

    /// Removes the last row.
    pub(crate) fn pop_row(&mut self) {
        self.rows.pop();
        self.row_starts.truncate(self.rows.len() + 1);
        let n_terms = self.row_starts[self.rows.len()];
        self.term_columns.truncate(n_terms);
        self.term_values.truncate(n_terms);
    }

    /// Adds a column behind the others and returns its position.
    pub fn push_column(&mut self, range: Range, implied: Range, cost: f64) -> usize {
        self.cost.push(cost);
        self.columns.push(range);
        self.implied.push(implied);
        self.cost.len() - 1
    }
}
