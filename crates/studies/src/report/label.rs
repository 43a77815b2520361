//! Names of metrics as people read them.

/// A metric's name in words, its unit, and what one of that unit is in the unit of the results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label {
    /// `Average completion time`.
    pub name: &'static str,
    /// `h`; nothing for pure numbers.
    pub unit: &'static str,
    /// 3600 for hours, where results are in seconds.
    pub scale: f64,
}

/// Labels of the metrics that are reported, by their column; in the order in which they are shown.
pub const LABELS: [(&str, Label); 12] = [
    ("average_jct", hours("Average job completion time")),
    ("median_jct", hours("Median job completion time")),
    ("p95_jct", hours("95th percentile of job completion time")),
    ("p99_jct", hours("99th percentile of job completion time")),
    ("average_rho", plain("Average finish-time fairness ρ")),
    ("worst_rho", plain("Worst finish-time fairness ρ")),
    ("makespan", hours("Makespan")),
    ("utilization", Label { name: "Utilization of all workers", unit: "%", scale: 0.01 }),
    ("preemptions", plain("Preemptions")),
    ("cost", Label { name: "Cost", unit: "$", scale: 1.0 }),
    ("slo_violations", plain("Jobs that missed their deadline")),
    ("solves", plain("Allocations computed")),
];

const fn hours(name: &'static str) -> Label {
    Label { name, unit: "h", scale: 3600.0 }
}

const fn plain(name: &'static str) -> Label {
    Label { name, unit: "", scale: 1.0 }
}

impl Label {
    /// The label of a metric's column; none for those that are not charted.
    pub fn of(metric: &str) -> Option<Self> {
        LABELS.iter().find(|(name, _)| *name == metric).map(|(_, label)| *label)
    }

    /// `Makespan (h)`.
    pub fn with_unit(&self) -> String {
        with_unit(self.name, self.unit)
    }
}

/// `name (unit)`, or the name alone.
pub fn with_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

/// An axis of a sweep with its unit: `rate` → `arrival rate (jobs/h)`.
pub fn axis(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    match last {
        "rate" => "arrival rate (jobs/h)".to_owned(),
        "static" => "jobs at the start".to_owned(),
        "round_length" | "reset_interval" | "preemption_cost" | "duration" => {
            format!("{} (s)", last.replace('_', " "))
        }
        _ => last.replace('_', " "),
    }
}
