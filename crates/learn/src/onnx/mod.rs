//! ONNX files: networks of other tools for this program, and this program's for other tools.
//!
//! A network takes one observation and gives the logits of the actions, both 32-bit floats: `[batch, length]` → `[batch, actions]`,
//! with a batch of 1 or of no fixed size. A file of several agents has one input and one output for each, in order. Masks are
//! applied outside, to the logits.
//!
//! [`write()`] makes such files in any build, and the pieces in [`write`](mod@write) make files of other networks. Reading needs
//! the feature `onnx`, which builds tract.

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

/// Why an ONNX file gives no usable network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OnnxError {
    /// This build cannot read ONNX files.
    #[cfg(not(feature = "onnx"))]
    #[error("it is an ONNX file, which this build does not read: build with `--features onnx`")]
    NotBuilt,
    /// The bytes are no ONNX model, or not a whole one.
    #[error("not a whole ONNX file: {reason}")]
    Damaged {
        /// Why the file is not whole, in words.
        reason: String,
    },
    /// A part of the model does not fit.
    #[error("its {place} {found}, expected {expected}")]
    Unfit {
        /// The input, output, tensor or operator.
        place: String,
        /// The property of it that does not fit.
        found: String,
        /// The property that is expected, in words.
        expected: String,
    },
    /// The model cannot be evaluated.
    #[error("its network cannot be evaluated: {reason}")]
    Failed {
        /// Why it cannot be evaluated, in words.
        reason: String,
    },
}

/// Whether a file is an ONNX file: its name ends in `.onnx`; or in no known ending, and its bytes begin with a version as ONNX
/// files do, not with the length of a header in braces as safetensors do.
pub fn is_onnx(name: &str, bytes: &[u8]) -> bool {
    match Path::new(name).extension().and_then(OsStr::to_str) {
        Some("onnx") => true,
        Some("safetensors") => false,
        _ => bytes.first() == Some(&0x08) && bytes.get(8) != Some(&b'{'),
    }
}

/// Whether this thread reads or evaluates an ONNX model: never in this build.
#[cfg(not(feature = "onnx"))]
pub const fn is_guarded() -> bool {
    false
}
