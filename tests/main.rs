//! Tests across module boundaries, in one binary so that it links once.

#[path = "suite/command.rs"]
mod command;
#[path = "suite/fuzz.rs"]
mod fuzz;
#[path = "suite/snapshot.rs"]
mod snapshot;
#[path = "suite/solver.rs"]
mod solver;
#[path = "suite/formulations.rs"]
mod formulations;
#[path = "suite/data_commands.rs"]
mod data_commands;
#[path = "suite/contention.rs"]
mod contention;
#[path = "suite/sweep.rs"]
mod sweep;
#[path = "suite/slurm.rs"]
mod slurm;
#[path = "suite/fidelity.rs"]
mod fidelity;
#[path = "suite/published_programs.rs"]
mod published_programs;
#[path = "suite/conditions.rs"]
mod conditions;
#[path = "suite/profiling.rs"]
mod profiling;
#[path = "suite/asked_again.rs"]
mod asked_again;
#[path = "suite/simulation.rs"]
mod simulation;
#[path = "suite/properties.rs"]
mod properties;
#[path = "suite/cannot_run.rs"]
mod cannot_run;
#[path = "suite/world.rs"]
mod world;
#[path = "suite/figure_11.rs"]
mod figure_11;
#[path = "suite/bench.rs"]
mod bench;
#[path = "suite/bench_export.rs"]
mod bench_export;
#[path = "suite/browser.rs"]
mod browser;
#[path = "suite/report.rs"]
mod report;
#[path = "suite/report_simulation.rs"]
mod report_simulation;
#[path = "suite/compare.rs"]
mod compare;
#[path = "suite/classes.rs"]
mod classes;
#[path = "suite/session.rs"]
mod session;
#[path = "suite/learning.rs"]
mod learning;
#[cfg(feature = "learn")]
#[path = "suite/training.rs"]
mod training;
