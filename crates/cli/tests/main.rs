//! Tests of the command and its output, in one binary so that it links once.

#[path = "suite/command.rs"]
mod command;
#[path = "suite/explained.rs"]
mod explained;
#[path = "suite/lower_bound.rs"]
mod lower_bound;
#[cfg(unix)]
#[path = "suite/odd_arguments.rs"]
mod odd_arguments;
#[cfg(unix)]
#[path = "suite/terminal.rs"]
mod terminal;
#[path = "suite/fuzz.rs"]
mod fuzz;
#[path = "monkey/mod.rs"]
mod monkey;
#[path = "suite/snapshot.rs"]
mod snapshot;
#[path = "suite/data_commands.rs"]
mod data_commands;
#[path = "suite/trace_logs.rs"]
mod trace_logs;
#[path = "suite/completions.rs"]
mod completions;
#[path = "suite/writing.rs"]
mod writing;
#[path = "suite/own_files.rs"]
mod own_files;
#[path = "suite/endings.rs"]
mod endings;
#[path = "suite/finished_jobs.rs"]
mod finished_jobs;
#[path = "suite/numbers.rs"]
mod numbers;
#[path = "suite/sweep.rs"]
mod sweep;
#[path = "suite/sweep_refused.rs"]
mod sweep_refused;
#[path = "suite/results.rs"]
mod results;
#[path = "suite/gavel.rs"]
mod gavel;
#[path = "suite/help.rs"]
mod help;
#[path = "suite/standstill.rs"]
mod standstill;
#[path = "suite/forecast.rs"]
mod forecast;
#[path = "suite/slurm_cluster.rs"]
mod slurm_cluster;
#[path = "suite/slurm.rs"]
mod slurm;
#[path = "suite/conditions.rs"]
mod conditions;
#[path = "suite/floors.rs"]
mod floors;
#[path = "suite/world.rs"]
mod world;
#[path = "suite/figure_11.rs"]
mod figure_11;
#[path = "suite/bench.rs"]
mod bench;
#[path = "suite/explain_program.rs"]
mod explain_program;
#[path = "suite/bench_export.rs"]
mod bench_export;
#[path = "suite/cbf.rs"]
mod cbf;
#[path = "suite/check.rs"]
mod check;
#[path = "suite/browser.rs"]
mod browser;
#[path = "suite/report.rs"]
mod report;
#[path = "suite/pages.rs"]
mod pages;
#[path = "suite/policy_faults.rs"]
mod policy_faults;
#[path = "suite/policy_parameters.rs"]
mod policy_parameters;
#[path = "suite/report_simulation.rs"]
mod report_simulation;
#[cfg(feature = "live")]
#[path = "suite/live.rs"]
mod live;
#[cfg(feature = "live")]
#[path = "suite/live_agent.rs"]
mod live_agent;
#[cfg(feature = "live")]
#[path = "suite/live_page.rs"]
mod live_page;
#[cfg(feature = "live")]
#[path = "suite/live_placing.rs"]
mod live_placing;
#[cfg(feature = "live")]
#[path = "suite/live_prices.rs"]
mod live_prices;
#[cfg(feature = "live")]
#[path = "suite/live_refused.rs"]
mod live_refused;
#[cfg(feature = "live")]
#[path = "suite/live_resized.rs"]
mod live_resized;
#[cfg(feature = "live")]
#[path = "suite/live_slurm.rs"]
mod live_slurm;
#[cfg(feature = "live")]
#[path = "suite/live_slurm_changes.rs"]
mod live_slurm_changes;
#[cfg(feature = "live")]
#[path = "suite/live_slurm_door.rs"]
mod live_slurm_door;
#[cfg(feature = "live")]
#[path = "suite/live_slurm_faults.rs"]
mod live_slurm_faults;
#[cfg(feature = "live")]
#[path = "suite/live_slurm_world.rs"]
mod live_slurm_world;
#[path = "suite/compare.rs"]
mod compare;
#[path = "suite/metrics.rs"]
mod metrics;
#[path = "suite/learning.rs"]
mod learning;
#[path = "suite/schema_checker.rs"]
mod schema_checker;
#[cfg(feature = "live")]
#[path = "suite/live_strays.rs"]
mod live_strays;
#[cfg(feature = "live")]
#[path = "suite/live_when.rs"]
mod live_when;
#[path = "suite/schema.rs"]
mod schema;
#[path = "suite/answers.rs"]
mod answers;
#[path = "suite/schema_written.rs"]
mod schema_written;
#[path = "suite/training.rs"]
mod training;
