//! Logs of clusters, read as they are and turned into traces of jobs.
//!
//! ```text
//! a log (Slurm's, Philly's, …) → forms → rows of the normalized log → rules → a trace of jobs
//!                                     ↘ what was left out, by reason; what is doubtful ↗
//! ```
//!
//! In: a file of one of the [`forms`](form::FORMS), a throughput matrix and [rules](Rules). Out: [`Rows`], which hold what
//! the log says and no more; jobs, which the rules make of rows; and [counts](Tally) of every row that was left out, by
//! reason, with an example. A value that is not understood is a complaint with its position, and never taken for a missing
//! one.
//!
//! A log says how many accelerators a job had and for how long, not what it computed. The job of the matrix that stands for
//! it is an assumption, which the rules state.

// Modules are declared in import order: each may mention only those above it.

mod date;
pub mod clock;
pub mod row;
mod places;
pub mod rows;
mod unpacked;
mod input;
pub mod tally;
pub mod reading;
pub mod form;
mod table;
mod json;
mod forms;
pub mod read;
pub mod normalized;
pub mod nodes;
pub mod pattern;
pub mod rules;
pub mod window;
pub mod convert;
pub mod write;
pub mod load;
pub mod report;

pub use clock::Zone;
pub use convert::{Converted, Converter};
pub use form::{FORMS, Form};
pub use nodes::read_nodes;
pub use read::{ReadOptions, read_log};
pub use reading::Reading;
pub use report::ImportReport;
pub use row::{Row, Seen, State};
pub use rows::Rows;
pub use rules::Rules;
pub use tally::{Doubt, Reason, Tally};
pub use window::Window;
