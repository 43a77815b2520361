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

#[cfg(test)]
mod tests;
