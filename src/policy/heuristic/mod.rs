//! Policies that are rules: shares by a closed form or by handing out workers, without a program to solve.
//!
//! A rule is a file: its formula or procedure, its parameters, its state. [`workers`] holds what several share.

pub mod behaviour;
pub mod fifo;
pub mod fifo_perf;
pub mod isolated;
pub mod proportional;
pub mod workers;

pub use behaviour::Behaviour;
pub use fifo::Fifo;
pub use fifo_perf::FifoPerf;
pub use isolated::Isolated;
pub use proportional::Proportional;
