//! Formats for numbers: table, JSON, CSV. Computes nothing.

pub mod table;

pub use table::{Cell, Table};
