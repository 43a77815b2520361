//! The speed of each server against its type, learned from measurements: a Gaussian process whose similarity is a random walk on a
//! graph of servers, and whose change in time is a random walk too.
//!
//! In: the types and racks of servers, and measured speeds, a round at a time. Out: for each server the mean and variance of the
//! logarithm of its speed against its type. [`kernel()`] is the similarity, [`SpeedFilter`] the exact recursion,
//! [`SwitchingFilter`] the recursion with stragglers as a second state, [`ExponentialAverage`] a baseline that takes each server by
//! itself. [`fit()`] finds the constants that predict measurements best.

mod average;
mod kernel;
mod filter;
mod fit;
mod switching;

pub use average::ExponentialAverage;
pub use filter::{FilterOptions, FilterState, SpeedFilter};
pub use fit::{Predictor, Record, Score, fit, score};
pub use kernel::{KernelOptions, Rows, ServerPlace, kernel};
pub use switching::{SwitchingFilter, SwitchingOptions};

#[cfg(test)]
mod tests;
