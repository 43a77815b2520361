//! Programs as LP, MPS and CBF text, for people and for other solvers.
//!
//! Rows and columns keep their names as far as the formats allow: what is no letter, digit, dot or underscore
//! becomes an underscore (several in a row, one), and names that then agree are numbered. Numbers are written so that reading them gives
//! the same bits. CBF alone has cones; it has no names, which then stand in comments.

mod cbf;
mod lp;
mod mps;
mod names;

use thiserror::Error;

use crate::program::standard::Program;

pub use cbf::to_cbf;
pub use lp::to_lp;
pub use mps::to_mps;

/// Why a program cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextError {
    /// It has cones.
    #[error("{format} text is for linear programs, and this one has {cones} cones: CBF text has these, too")]
    Cones {
        /// The format.
        format: &'static str,
        /// How many cones.
        cones: usize,
    },
    /// A row's bounds contradict each other: MPS can only say how far they are apart.
    #[error("the bounds of row {row} contradict each other, which {format} text cannot say")]
    Contradictory {
        /// The format.
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
