//! The throughput matrix: steps/s of every row (a job type at a scale factor) on every worker type.
//!
//! | array          | shape                   | unit    | meaning                                             |
//! |----------------|-------------------------|---------|-----------------------------------------------------|
//! | `consolidated` | [row × type]            | steps/s | alone, on the fewest servers; 0 = cannot run there  |
//! | `spread`       | [row × type]            | steps/s | alone, over several servers; none = not measured    |
//! | `colocated`    | [type × row × other]    | steps/s | the row's, beside the other row; 0 = cannot run     |

use std::collections::BTreeMap;

use ndarray::Array3;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::index::{Id, IndexVec, Matrix, RowId, WorkerTypeId};

/// A job type at a scale factor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RowKey {
    /// The job type.
    pub job_type: String,
    /// Workers used at once.
    pub scale_factor: u32,
}

/// The input of [`Throughputs`]: the measurements of one source, dense.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The name by which documents and commands refer to the matrix.
    pub name: String,
    /// Worker types, fastest first: `[type]`.
    pub worker_types: Vec<String>,
    /// Job types at scale factors: `[row]`.
    pub rows: Vec<RowKey>,
    /// Steps/s alone on the fewest servers: [row × type]; 0 = cannot run.
    pub consolidated: Vec<Vec<f64>>,
    /// Steps/s alone over several servers: [row × type]; `None` = not measured.
    pub spread: Vec<Vec<Option<f64>>>,
    /// Steps/s of a row beside another: [type × row × other]; 0 = cannot run together. Empty if nothing is known about rows beside
    /// one another: none can then run together.
    pub colocated: Array3<f64>,
}

/// A checked throughput matrix; cheap to share behind an `Arc`.
#[derive(Clone, Debug)]
pub struct Throughputs {
    name: String,
    worker_types: IndexVec<WorkerTypeId, String>,
    rows: IndexVec<RowId, RowKey>,
    by_size: BTreeMap<u32, BTreeMap<String, RowId>>,
    consolidated: Matrix<RowId, WorkerTypeId>,
    spread: Vec<Option<f64>>,
    /// Co-located steps/s; empty if no rows can run together.
    colocated: Array3<f64>,
}

/// Why measurements do not make a matrix.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ThroughputsError {
    /// Arrays of another shape than rows and worker types need.
    #[error("{array} has shape {found}, expected {expected}")]
    Shape {
        /// The array.
        array: &'static str,
        /// Its shape.
        found: String,
        /// The shape it ought to have.
        expected: String,
    },
    /// Throughputs measured at several places through which no surface goes.
    #[error("no surface goes through {n} measured speeds: expected at least one, each at another place")]
    Surface {
        /// The number of places.
        n: usize,
    },
    /// A row that occurs twice.
    #[error("`{job_type}` at scale factor {scale_factor} comes twice")]
    DuplicateRow {
        /// The job type.
        job_type: String,
        /// The scale factor.
        scale_factor: u32,
    },
    /// A negative, infinite or undefined throughput.
    #[error(
        "{array} throughput of `{job_type}` at scale factor {scale_factor} on `{worker_type}` is {value}, expected a finite number of steps/s, at least 0"
    )]
    Value {
        /// The array.
        array: &'static str,
        /// The row's job type.
        job_type: String,
        /// The row's scale factor.
        scale_factor: u32,
        /// The worker type.
        worker_type: String,
        /// The value.
        value: f64,
    },
    /// No such matrix in the binary.
    #[error("no embedded throughputs `{name}`")]
    Unknown {
        /// The name that was asked for.
        name: String,
    },
}

impl Throughputs {
    /// Checks measurements and makes a matrix of them.
    ///
    /// # Errors
    /// If shapes differ, a row occurs twice, or a value is not a finite number ≥ 0.
    pub fn try_new(measured: Measured) -> Result<Self, ThroughputsError> {
        check_shapes(&measured)?;
        let n_types = measured.worker_types.len();
        let mut by_size: BTreeMap<u32, BTreeMap<String, RowId>> = BTreeMap::new();
        let mut consolidated = Matrix::with_columns(n_types);
        for (index, key) in measured.rows.iter().enumerate() {
            let of_size = by_size.entry(key.scale_factor).or_default();
            if of_size.insert(key.job_type.clone(), RowId::from_index(index)).is_some() {
                let RowKey { job_type, scale_factor } = key.clone();
                return Err(ThroughputsError::DuplicateRow { job_type, scale_factor });
            }
            consolidated.push_row(&measured.consolidated[index]);
        }
        check_values(&measured)?;
        Ok(Self {
            name: measured.name,
            worker_types: measured.worker_types.into(),
            rows: measured.rows.into(),
            by_size,
            consolidated,
            spread: measured.spread.into_iter().flatten().collect(),
            colocated: measured.colocated,
        })
    }

    /// The name by which documents and commands refer to the matrix.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Worker types, fastest first.
    pub fn worker_types(&self) -> &IndexVec<WorkerTypeId, String> {
        &self.worker_types
    }

    /// The worker type of this name.
    pub fn find_worker_type(&self, name: &str) -> Option<WorkerTypeId> {
        self.worker_types.iter().position(|other| other == name).map(Id::from_index)
    }

    /// Job types at scale factors, in the order of the source.
    pub fn rows(&self) -> &IndexVec<RowId, RowKey> {
        &self.rows
    }

    /// The row of a job type at a scale factor.
    pub fn find(&self, job_type: &str, scale_factor: u32) -> Option<RowId> {
        self.by_size.get(&scale_factor)?.get(job_type).copied()
    }

    /// Steps/s alone on the fewest servers; 0 where it cannot run.
    pub fn alone(&self, row: RowId, worker_type: WorkerTypeId) -> f64 {
        self.consolidated[(row, worker_type)]
    }

    /// Steps/s alone over several servers; none if that was not measured.
    pub fn spread(&self, row: RowId, worker_type: WorkerTypeId) -> Option<f64> {
        self.spread[row.index() * self.worker_types.len() + worker_type.index()]
    }

    /// Steps/s of `row` beside `other` on the same workers; 0 where they cannot run together.
    pub fn colocated(&self, row: RowId, other: RowId, worker_type: WorkerTypeId) -> f64 {
        self.colocated.get([worker_type.index(), row.index(), other.index()]).copied().unwrap_or(0.0)
    }

    /// Whether nothing is known about rows beside one another, so that none can run together.
    pub(crate) fn shares_nothing(&self) -> bool {
        self.colocated.is_empty()
    }

    /// This matrix with other co-located throughputs: steps/s [type × row × other], or empty if no rows can run together.
    ///
    /// # Errors
    /// If the shape differs or a value is not a finite number ≥ 0.
    pub fn with_colocated(&self, colocated: Array3<f64>) -> Result<Self, ThroughputsError> {
        let (n_rows, n_types) = (self.rows.len(), self.worker_types.len());
        let expected = [n_types, n_rows, n_rows];
        if !colocated.is_empty() && colocated.shape() != expected {
            let (found, expected) = (format!("{:?}", colocated.shape()), format!("{expected:?}"));
            return Err(ThroughputsError::Shape { array: "co-located", found, expected });
        }
        if let Some(((column, row, _), value)) =
            colocated.indexed_iter().find(|(_, value)| !(value.is_finite() && **value >= 0.0))
        {
            let RowKey { job_type, scale_factor } = self.rows[RowId::from_index(row)].clone();
            let worker_type = self.worker_types[WorkerTypeId::from_index(column)].clone();
            let (array, value) = ("co-located", *value);
            return Err(ThroughputsError::Value { array, job_type, scale_factor, worker_type, value });
        }
        Ok(Self { colocated, ..self.clone() })
    }
}

fn check_shapes(measured: &Measured) -> Result<(), ThroughputsError> {
    let (n_rows, n_types) = (measured.rows.len(), measured.worker_types.len());
    let shape = |array, found: String, expected: String| {
        if found == expected { Ok(()) } else { Err(ThroughputsError::Shape { array, found, expected }) }
    };
    let rectangle = |lengths: Vec<usize>| match lengths.iter().find(|length| **length != n_types) {
        None => format!("[{} × {n_types}]", lengths.len()),
        Some(odd) => format!("[{} × {odd}]", lengths.len()),
    };
    let expected = format!("[{n_rows} × {n_types}]");
    shape("consolidated", rectangle(measured.consolidated.iter().map(Vec::len).collect()), expected.clone())?;
    shape("unconsolidated", rectangle(measured.spread.iter().map(Vec::len).collect()), expected)?;
    if measured.colocated.is_empty() {
        return Ok(());
    }
    let found = format!("{:?}", measured.colocated.shape());
    shape("co-located", found, format!("{:?}", [n_types, n_rows, n_rows]))
}

fn check_values(measured: &Measured) -> Result<(), ThroughputsError> {
    let bad = |array, row: usize, column: usize, value: f64| {
        let RowKey { job_type, scale_factor } = measured.rows[row].clone();
        let worker_type = measured.worker_types[column].clone();
        ThroughputsError::Value { array, job_type, scale_factor, worker_type, value }
    };
    let believable = |value: f64| value.is_finite() && value >= 0.0;
    for (row, values) in measured.consolidated.iter().enumerate() {
        if let Some(column) = values.iter().position(|value| !believable(*value)) {
            return Err(bad("consolidated", row, column, values[column]));
        }
    }
    for (row, values) in measured.spread.iter().enumerate() {
        if let Some(column) = values.iter().position(|value| !value.is_none_or(believable)) {
            return Err(bad("unconsolidated", row, column, values[column].unwrap_or(f64::NAN)));
        }
    }
    for ((column, row, _), value) in measured.colocated.indexed_iter() {
        if !believable(*value) {
            return Err(bad("co-located", row, column, *value));
        }
    }
    Ok(())
}
