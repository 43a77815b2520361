//! Policies that are rules: shares by a closed form or by handing out workers, without a program to solve.
//!
//! A rule is a file: its formula or procedure, its parameters, its state. [`workers`] holds what several share.

pub mod workers;
pub mod assignment;
pub mod isolated;
pub mod proportional;
pub mod fifo;
pub mod fifo_perf;
pub mod fifo_packed;
pub mod gandiva;
pub mod allox;
pub mod srtf;
pub mod sjf;
pub mod las;
pub mod themis;

pub use allox::{AlloX, AlloXParameters};
pub use fifo::Fifo;
pub use fifo_packed::{FifoPacked, FifoPackedParameters};
pub use fifo_perf::FifoPerf;
pub use gandiva::{Gandiva, GandivaParameters};
pub use isolated::Isolated;
pub use las::{Las, LasParameters};
pub use proportional::Proportional;
pub use sjf::Sjf;
pub use srtf::{ShortestParameters, Srtf};
pub use themis::{Themis, ThemisParameters};

/// Parameters of a rule, each with a default and a range.
pub trait Parameters {
    /// Refuses parameters that are out of their range.
    ///
    /// # Errors
    /// With the field and what is wrong with it.
    fn check(&self) -> Result<(), (&'static str, String)> {
        Ok(())
    }
}

/// The largest threshold of a pair's normalized throughput that is accepted; two jobs that do not slow each other
/// down have 2.
const THRESHOLD_MAX: f64 = 100.0;

/// Refuses the value of a field unless it is fine.
fn expect(
    is_fine: bool,
    field: &'static str,
    value: impl std::fmt::Debug,
    expected: &str,
) -> Result<(), (&'static str, String)> {
    if is_fine { Ok(()) } else { Err((field, format!("`{field}` is {value:?}, expected {expected}"))) }
}

#[cfg(test)]
mod tests;
