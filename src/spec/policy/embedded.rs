//! The policies that ship with the program.

use crate::spec::lookup::Embedded;

/// Every program and heuristic in `policies/`, by its name there.
pub const EMBEDDED: [Embedded; 36] = [
    ("allox", include_str!("../../../policies/allox.yaml")),
    ("fifo", include_str!("../../../policies/fifo.yaml")),
    ("fifo_packed", include_str!("../../../policies/fifo_packed.yaml")),
    ("fifo_perf", include_str!("../../../policies/fifo_perf.yaml")),
    ("finish_time_fairness", include_str!("../../../policies/finish_time_fairness.yaml")),
    ("finish_time_fairness_packed", include_str!("../../../policies/finish_time_fairness_packed.yaml")),
    ("finish_time_fairness_perf", include_str!("../../../policies/finish_time_fairness_perf.yaml")),
    ("gandiva", include_str!("../../../policies/gandiva.yaml")),
    ("isolated", include_str!("../../../policies/isolated.yaml")),
    ("las", include_str!("../../../policies/las.yaml")),
    ("low_average_jct", include_str!("../../../policies/low_average_jct.yaml")),
    ("low_average_jct_packed", include_str!("../../../policies/low_average_jct_packed.yaml")),
    ("max_min_fairness", include_str!("../../../policies/max_min_fairness.yaml")),
    ("max_min_fairness_hierarchical", include_str!("../../../policies/max_min_fairness_hierarchical.yaml")),
    (
        "max_min_fairness_hierarchical_packed",
        include_str!("../../../policies/max_min_fairness_hierarchical_packed.yaml"),
    ),
    (
        "max_min_fairness_hierarchical_perf",
        include_str!("../../../policies/max_min_fairness_hierarchical_perf.yaml"),
    ),
    ("max_min_fairness_packed", include_str!("../../../policies/max_min_fairness_packed.yaml")),
    ("max_min_fairness_perf", include_str!("../../../policies/max_min_fairness_perf.yaml")),
    (
        "max_min_fairness_strategy_proof",
        include_str!("../../../policies/max_min_fairness_strategy_proof.yaml"),
    ),
    ("max_min_fairness_water_filling", include_str!("../../../policies/max_min_fairness_water_filling.yaml")),
    (
        "max_min_fairness_water_filling_packed",
        include_str!("../../../policies/max_min_fairness_water_filling_packed.yaml"),
    ),
    (
        "max_min_fairness_water_filling_perf",
        include_str!("../../../policies/max_min_fairness_water_filling_perf.yaml"),
    ),
    (
        "max_sum_throughput_normalized_by_cost_packed_SLOs",
        include_str!("../../../policies/max_sum_throughput_normalized_by_cost_packed_SLOs.yaml"),
    ),
    (
        "max_sum_throughput_normalized_by_cost_perf",
        include_str!("../../../policies/max_sum_throughput_normalized_by_cost_perf.yaml"),
    ),
    (
        "max_sum_throughput_normalized_by_cost_perf_SLOs",
        include_str!("../../../policies/max_sum_throughput_normalized_by_cost_perf_SLOs.yaml"),
    ),
    ("max_sum_throughput_perf", include_str!("../../../policies/max_sum_throughput_perf.yaml")),
    ("min_total_duration", include_str!("../../../policies/min_total_duration.yaml")),
    ("min_total_duration_packed", include_str!("../../../policies/min_total_duration_packed.yaml")),
    ("min_total_duration_perf", include_str!("../../../policies/min_total_duration_perf.yaml")),
    ("proportional", include_str!("../../../policies/proportional.yaml")),
    ("proportional_fairness", include_str!("../../../policies/proportional_fairness.yaml")),
    ("sjf", include_str!("../../../policies/sjf.yaml")),
    ("srtf", include_str!("../../../policies/srtf.yaml")),
    ("tempered_completion_rate", include_str!("../../../policies/tempered_completion_rate.yaml")),
    (
        "tempered_completion_rate_packed",
        include_str!("../../../policies/tempered_completion_rate_packed.yaml"),
    ),
    ("themis", include_str!("../../../policies/themis.yaml")),
];
