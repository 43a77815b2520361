//! Trainings of the published schedulers as documents.

pub mod spec;
pub mod beginning;

#[cfg(test)]
mod warm_up_tests;
