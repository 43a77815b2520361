//! Training documents of the published schedulers, and the weights that trainings begin with.

pub mod spec;
pub mod beginning;

#[cfg(test)]
mod warm_up_tests;
