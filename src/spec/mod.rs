//! The only reader of input files: documents with places, so that every complaint has file, line and column.

pub mod document;

pub use document::{Diagnostic, Source, SpecError};
