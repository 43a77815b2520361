//! The policies that ship with the program.

use crate::spec::lookup::Embedded;

/// Every file in `policies/`, by its name there.
pub const EMBEDDED: [Embedded; 22] = [
    ("max_min_fairness", include_str!("../../../policies/max_min_fairness.yaml")),
    ("max_min_fairness_perf", include_str!("../../../policies/max_min_fairness_perf.yaml")),
    ("max_min_fairness_packed", include_str!("../../../policies/max_min_fairness_packed.yaml")),
    ("max_sum_throughput_perf", include_str!("../../../policies/max_sum_throughput_perf.yaml")),
    ("min_total_duration", include_str!("../../../policies/min_total_duration.yaml")),
    ("min_total_duration_perf", include_str!("../../../policies/min_total_duration_perf.yaml")),
    ("min_total_duration_packed", include_str!("../../../policies/min_total_duration_packed.yaml")),
    ("finish_time_fairness", include_str!("../../../policies/finish_time_fairness.yaml")),
    ("finish_time_fairness_perf", include_str!("../../../policies/finish_time_fairness_perf.yaml")),
    ("finish_time_fairness_packed", include_str!("../../../policies/finish_time_fairness_packed.yaml")),
    ("proportional_fairness", include_str!("../../../policies/proportional_fairness.yaml")),
    ("isolated", include_str!("../../../policies/isolated.yaml")),
    ("proportional", include_str!("../../../policies/proportional.yaml")),
    ("fifo", include_str!("../../../policies/fifo.yaml")),
    ("fifo_perf", include_str!("../../../policies/fifo_perf.yaml")),
    ("fifo_packed", include_str!("../../../policies/fifo_packed.yaml")),
    ("gandiva", include_str!("../../../policies/gandiva.yaml")),
    ("allox", include_str!("../../../policies/allox.yaml")),
    ("srtf", include_str!("../../../policies/srtf.yaml")),
    ("sjf", include_str!("../../../policies/sjf.yaml")),
    ("las", include_str!("../../../policies/las.yaml")),
    ("themis", include_str!("../../../policies/themis.yaml")),
];
