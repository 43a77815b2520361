//! What is known of servers' speeds: a Gaussian process whose similarity is a random walk on a graph of servers, and
//! whose change in time is a random walk too.
//!
//! In: measured speeds, a round at a time. Out: for each server the mean and variance of the logarithm of its speed
//! against its type. [`kernel`] is the similarity, [`PerformanceFilter`] the exact recursion, [`SwitchingFilter`] the
//! same with stragglers told apart, [`ExponentialAverage`] what
//! it is compared with, and [`fit()`] finds its constants by how well they predict.

mod average;
mod filter;
mod fit;
mod graph;
mod switching;

pub use average::ExponentialAverage;
pub use filter::{FilterOptions, FilterState, PerformanceFilter};
pub use fit::{Predictor, Record, Score, fit, score};
pub use graph::{KernelOptions, Rows, kernel};
pub use switching::{SwitchingFilter, SwitchingOptions};

#[cfg(test)]
mod tests;
