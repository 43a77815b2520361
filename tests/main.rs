//! Tests of the engine across module boundaries, in one binary so that it links once.

#[path = "suite/formulations.rs"]
mod formulations;
#[path = "suite/contention.rs"]
mod contention;
#[path = "suite/fidelity.rs"]
mod fidelity;
#[path = "suite/published_programs.rs"]
mod published_programs;
#[path = "suite/profiling.rs"]
mod profiling;
#[path = "suite/asked_again.rs"]
mod asked_again;
#[path = "suite/simulation.rs"]
mod simulation;
#[path = "suite/properties.rs"]
mod properties;
#[path = "suite/cluster_limits.rs"]
mod cluster_limits;
#[path = "suite/policy_forms.rs"]
mod policy_forms;
#[path = "suite/explanations.rs"]
mod explanations;
#[path = "suite/policy_manual.rs"]
mod policy_manual;
#[path = "suite/cannot_run.rs"]
mod cannot_run;
#[path = "suite/classes.rs"]
mod classes;
#[path = "suite/badly_scaled.rs"]
mod badly_scaled;
#[path = "suite/live.rs"]
mod live;
#[path = "suite/low_average_jct.rs"]
mod low_average_jct;
#[path = "suite/standstill.rs"]
mod standstill;
