//! The only reader of input files: documents with places, so that every complaint has file, line and column.

mod complaint;
pub mod document;
pub mod entries;
pub mod lookup;
pub mod nearest;
mod places;
mod structure;

pub use document::{Diagnostic, Source, SpecError};
pub use entries::Entries;
pub use nearest::did_you_mean;
