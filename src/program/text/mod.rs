//! Programs as LP, MPS and CBF text, for people and for other solvers.
//!
//! Rows and columns keep their names as far as the formats allow: a run of characters other than letters, digits and dots
//! becomes one underscore, and names that then agree are numbered. Numbers are written so that reading them gives the
//! same bits. Only CBF has cones; it has no names, so they stand in comments.

mod cbf;
mod lp;
mod mps;
mod names;

use thiserror::Error;

use crate::program::standard::Program;

pub use cbf::to_cbf;
pub use lp::to_lp;
pub use mps::to_mps;

/// An error that keeps a program from being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextError {
    /// The program has cones, which the format cannot express.
    #[error("{format} text is for linear programs, and this one has {cones} cones: CBF text has these, too")]
    Cones {
        /// Name of the format.
        format: &'static str,
        /// Number of cones.
        cones: usize,
    },
    /// The bounds of a row contradict each other: MPS can only give the distance between them.
    #[error("the bounds of row {row} contradict each other, which {format} text cannot say")]
    Contradictory {
        /// Name of the format.
        format: &'static str,
        /// The row's position.
        row: usize,
    },
}

fn check_linear(program: &Program, format: &'static str) -> Result<(), TextError> {
    if program.is_linear() { Ok(()) } else { Err(TextError::Cones { format, cones: program.cones.len() }) }
}

/// The shortest text that reads as the same number, with an exponent where digits would only be zeros.
fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-5..1e15).contains(&magnitude) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

#[cfg(test)]
pub(crate) mod tests;
