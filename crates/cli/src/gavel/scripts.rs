//! The flags of Gavel's scripts, with their defaults. As with Python's `argparse`, the last of several occurrences of a flag
//! counts.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser};

/// The policies that the scripts name.
const POLICIES: [&str; 22] = [
    "allox",
    "fifo",
    "fifo_perf",
    "fifo_packed",
    "finish_time_fairness",
    "finish_time_fairness_perf",
    "finish_time_fairness_packed",
    "gandiva",
    "isolated",
    "max_min_fairness",
    "max_min_fairness_perf",
    "max_min_fairness_packed",
    "max_min_fairness_water_filling",
    "max_min_fairness_water_filling_perf",
    "max_min_fairness_water_filling_packed",
    "max_sum_throughput_perf",
    "max_sum_throughput_normalized_by_cost_perf",
    "max_sum_throughput_normalized_by_cost_perf_SLOs",
    "max_sum_throughput_normalized_by_cost_packed_SLOs",
    "min_total_duration",
    "min_total_duration_perf",
    "min_total_duration_packed",
];
/// The number of job types in the published table: with as many reference models nothing is estimated.
pub(super) const N_JOB_TYPES: u64 = 26;
/// The published name of the throughputs that ship as `osdi20`.
pub(super) const THROUGHPUTS_FILE: &str = "simulation_throughputs.json";

/// `scripts/sweeps/run_sweep_continuous.py`: a sweep over arrival rates.
#[derive(Debug, Parser)]
#[command(
    name = "run_sweep_continuous.py",
    no_binary_name = true,
    infer_long_args = true,
    args_override_self = true,
    allow_negative_numbers = true
)]
pub(super) struct Continuous {
    #[command(flatten)]
    pub(super) many: Many,
    /// The first job that is measured
    #[arg(short = 's', long, default_value_t = 0)]
    pub(super) window_start: u64,
    /// The job after the last one that is measured
    #[arg(short = 'e', long, default_value_t = 5000)]
    pub(super) window_end: u64,
    /// Rates to leave out, as JSON: {"36:36:36": {"fifo": 3.0}}
    #[arg(long)]
    pub(super) cutoff_throughputs_file: Option<PathBuf>,
    /// Draw weights
    #[arg(long)]
    pub(super) generate_multi_priority_jobs: bool,
    /// Start with as many jobs as there are workers
    #[arg(long)]
    pub(super) simulate_steady_state: bool,
    /// Not needed: a sweep that was stopped goes on
    #[arg(long)]
    pub(super) checkpoint_threshold: Option<u64>,
    /// Parts of co-located throughputs that are measured
    #[arg(long = "profiling_percentages", num_args = 1.., action = ArgAction::Set, default_values_t = [1.0])]
    pub(super) profiling_percentages: Vec<f64>,
    /// Job types that others are estimated from
    #[arg(long = "num_reference_models", num_args = 1.., action = ArgAction::Set, default_values_t = [N_JOB_TYPES])]
    pub(super) num_reference_models: Vec<u64>,
    /// The lowest arrival rate, jobs/h
    #[arg(short = 'a', long, required = true)]
    pub(super) throughput_lower_bound: Option<f64>,
    /// The highest arrival rate, jobs/h
    #[arg(short = 'b', long, required = true)]
    pub(super) throughput_upper_bound: Option<f64>,
    /// Number of rates, evenly spaced
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(super) num_data_points: usize,
}

/// `scripts/sweeps/run_sweep_static.py`: a sweep over numbers of jobs that are all there at first.
#[derive(Debug, Parser)]
#[command(
    name = "run_sweep_static.py",
    no_binary_name = true,
    infer_long_args = true,
    args_override_self = true,
    allow_negative_numbers = true
)]
pub(super) struct Static {
    #[command(flatten)]
    pub(super) many: Many,
    #[command(flatten)]
    pub(super) paid: Paid,
    /// The smallest number of jobs
    #[arg(short = 'a', long, required = true)]
    pub(super) num_total_jobs_lower_bound: Option<u64>,
    /// The largest number of jobs
    #[arg(short = 'b', long, required = true)]
    pub(super) num_total_jobs_upper_bound: Option<u64>,
    /// Number of numbers of jobs, evenly spaced
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(super) num_data_points: usize,
}

/// `scripts/drivers/simulate_scheduler_with_generated_jobs.py`: one run of jobs that are drawn.
#[derive(Debug, Parser)]
#[command(
    name = "simulate_scheduler_with_generated_jobs.py",
    no_binary_name = true,
    infer_long_args = true,
    args_override_self = true,
    allow_negative_numbers = true
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the script")]
pub(super) struct Generated {
    #[command(flatten)]
    pub(super) one: One,
    #[command(flatten)]
    pub(super) paid: Paid,
    /// The first job that is measured
    #[arg(short = 's', long, default_value_t = 0)]
    pub(super) window_start: u64,
    /// The job after the last one that is measured
    #[arg(short = 'e', long, default_value_t = 5000)]
    pub(super) window_end: u64,
    /// The random seed
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Length of a round, s
    #[arg(short = 'i', long, default_value_t = 360)]
    pub(super) interval: u64,
    /// Mean time between arrivals, s; 0 = all jobs at first
    #[arg(short = 'l', long, required = true)]
    pub(super) lam: Option<f64>,
    /// Time that each job takes alone, s
    #[arg(short = 'f', long)]
    pub(super) fixed_job_duration: Option<u64>,
    /// Draw jobs of several workers, too
    #[arg(short = 'm', long)]
    pub(super) generate_multi_gpu_jobs: bool,
    /// Draw weights
    #[arg(long)]
    pub(super) generate_multi_priority_jobs: bool,
    /// Start with as many jobs as there are workers
    #[arg(long)]
    pub(super) simulate_steady_state: bool,
    /// Part of co-located throughputs that is measured
    #[arg(long = "profiling_percentage", default_value_t = 1.0)]
    pub(super) profiling_percentage: f64,
    /// Job types that others are estimated from
    #[arg(long = "num_reference_models", default_value_t = N_JOB_TYPES)]
    pub(super) num_reference_models: u64,
    /// Refused: `apportion trace generate --generator gavel` writes a trace
    #[arg(long = "output_trace_file_name")]
    pub(super) output_trace_file_name: Option<PathBuf>,
    /// Ignored
    #[arg(short, long)]
    pub(super) verbose: bool,
}

/// `scripts/drivers/simulate_scheduler_with_trace.py`: one run of a trace.
#[derive(Debug, Parser)]
#[command(
    name = "simulate_scheduler_with_trace.py",
    no_binary_name = true,
    infer_long_args = true,
    args_override_self = true,
    allow_negative_numbers = true
)]
pub(super) struct Traced {
    #[command(flatten)]
    pub(super) one: One,
    /// The trace
    #[arg(short = 't', long = "trace_file", required = true)]
    pub(super) trace_file: Option<PathBuf>,
    /// The random seed
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Length of a round, s
    #[arg(long = "time_per_iteration", default_value_t = 360)]
    pub(super) time_per_iteration: u64,
    /// The first job that is measured
    #[arg(short = 's', long)]
    pub(super) window_start: Option<u64>,
    /// The job after the last one that is measured
    #[arg(short = 'e', long)]
    pub(super) window_end: Option<u64>,
}

/// The flags that the two sweeps have in common.
#[derive(Args, Debug)]
pub(super) struct Many {
    /// The folder for results and logs
    #[arg(short = 'l', long, default_value = "logs")]
    pub(super) log_dir: PathBuf,
    /// Wall time of a run, s
    #[arg(short = 't', long)]
    pub(super) timeout: Option<u64>,
    /// Runs at once
    #[arg(short = 'j', long)]
    pub(super) processes: Option<NonZeroUsize>,
    /// Policies
    #[arg(short = 'p', long, num_args = 1.., action = ArgAction::Set, default_values = POLICIES)]
    pub(super) policies: Vec<String>,
    /// Clusters, as V100s:P100s:K80s
    #[arg(short = 'c', long, num_args = 1.., action = ArgAction::Set, default_values = ["25:0:0", "12:12:0", "16:8:0", "8:8:8"])]
    pub(super) cluster_spec: Vec<String>,
    /// Workers on a server, as V100s:P100s:K80s
    #[arg(long = "num_gpus_per_server", default_value = "1:1:1")]
    pub(super) num_gpus_per_server: String,
    /// Random seeds
    #[arg(long, num_args = 1.., action = ArgAction::Set, default_values_t = [0, 1, 2, 3, 4])]
    pub(super) seeds: Vec<u64>,
    /// Length of a round, s
    #[arg(short = 'i', long, default_value_t = 360)]
    pub(super) interval: u64,
    /// Time that each job takes alone, s
    #[arg(short = 'f', long)]
    pub(super) fixed_job_duration: Option<u64>,
    /// Throughputs, as Gavel's JSON
    #[arg(long, default_value = THROUGHPUTS_FILE)]
    pub(super) throughputs_file: PathBuf,
    /// Draw jobs of several workers, too
    #[arg(short = 'm', long)]
    pub(super) generate_multi_gpu_jobs: bool,
    /// Not needed: every optimum is exact
    #[arg(long, value_parser = ["ECOS", "GUROBI", "SCS"])]
    pub(super) solver: Option<String>,
    /// Ignored
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Run allocations exactly
    #[arg(long)]
    pub(super) ideal: bool,
}

/// The flags that the two drivers have in common.
#[derive(Args, Debug)]
pub(super) struct One {
    /// The cluster, as V100s:P100s:K80s
    #[arg(short = 'c', long = "cluster_spec", default_value = "25:0:0")]
    pub(super) cluster_spec: String,
    /// Workers on a server, as V100s:P100s:K80s
    #[arg(long = "num_gpus_per_server", default_value = "1:1:1")]
    pub(super) num_gpus_per_server: String,
    /// The policy
    #[arg(short = 'p', long, default_value = "fifo")]
    pub(super) policy: String,
    /// Throughputs, as Gavel's JSON
    #[arg(long = "throughputs_file", default_value = THROUGHPUTS_FILE)]
    pub(super) throughputs_file: PathBuf,
    /// Not needed: every optimum is exact
    #[arg(long, value_parser = ["ECOS", "GUROBI", "SCS"])]
    pub(super) solver: Option<String>,
    /// Ignored
    #[arg(short, long)]
    pub(super) debug: bool,
    /// Not needed
    #[arg(long = "checkpoint_threshold")]
    pub(super) checkpoint_threshold: Option<u64>,
    /// Not needed
    #[arg(long = "checkpoint_file")]
    pub(super) checkpoint_file: Option<PathBuf>,
}

/// Prices and deadlines.
#[derive(Args, Debug)]
pub(super) struct Paid {
    /// Refused: prices are read as CSV, `prices:` of a sweep
    #[arg(long = "per_instance_type_prices_dir")]
    pub(super) per_instance_type_prices_dir: Option<PathBuf>,
    /// Without effect, as there are no prices
    #[arg(long = "available_clouds", num_args = 1.., action = ArgAction::Set)]
    pub(super) available_clouds: Vec<String>,
    /// Draw deadlines
    #[arg(long = "assign_SLOs")]
    pub(super) assign_slos: bool,
    /// Refused: the mechanism has no global queue
    #[arg(long = "enable_global_queue")]
    pub(super) enable_global_queue: bool,
}
