//! ONNX files: networks made by other tools, and this program's for other tools.
//!
//! A network that decides takes one observation and gives the logits of the actions, both of 32-bit floats:
//! `[batch, numbers seen]` → `[batch, actions]`, the batch of 1 or of no fixed size. Where several agents decide, the
//! file has one input and one output for each, in order. Masks are applied outside, to the logits.
//!
//! [`write()`] makes such files in any build, and the pieces in [`write`](mod@write) make those of other networks. To read them takes the feature `onnx`, and with it tract.

pub mod write;
#[cfg(feature = "onnx")]
mod check;
#[cfg(feature = "onnx")]
mod guard;
#[cfg(feature = "onnx")]
mod read;

use std::ffi::OsStr;
use std::path::Path;

use thiserror::Error;

#[cfg(feature = "onnx")]
pub use guard::is_guarded;
#[cfg(feature = "onnx")]
pub use read::OnnxActor;
pub use write::write;

/// A file that decides nothing here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OnnxError {
    /// This build cannot read it.
    #[cfg(not(feature = "onnx"))]
    #[error("it is an ONNX file, which this build does not read: build with `--features onnx`")]
    NotBuilt,
    /// Bytes that are no ONNX model, or not a whole one.
    #[error("not a whole ONNX file: {reason}")]
    Damaged {
        /// Why the file is not whole, in words.
        reason: String,
    },
    /// A model that holds what decides nothing here.
    #[error("its {place} {found}, expected {expected}")]
    Unfit {
        /// The input, output, tensor or operator.
        place: String,
        /// The property of it that does not fit.
        found: String,
        /// The property that is expected, in words.
        expected: String,
    },
    /// A model that cannot be evaluated.
    #[error("its network cannot be evaluated: {reason}")]
    Failed {
        /// Why.
        reason: String,
    },
}

/// Is this an ONNX file? Its name ends in `.onnx`; or in nothing that is known, and its bytes begin as such files do,
/// with a version, and not as safetensors, with the length of a header in braces.
pub fn is_onnx(name: &str, bytes: &[u8]) -> bool {
    match Path::new(name).extension().and_then(OsStr::to_str) {
        Some("onnx") => true,
        Some("safetensors") => false,
        _ => bytes.first() == Some(&0x08) && bytes.get(8) != Some(&b'{'),
    }
}

/// Reads no file in this build, and so breaks off in none.
#[cfg(not(feature = "onnx"))]
pub const fn is_guarded() -> bool {
    false
}
