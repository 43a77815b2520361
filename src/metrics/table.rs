//! The table of metrics: all numbers of a simulation that have a name.
//!
//! All lists of metrics come from it: columns of results and of their CSV, keys of JSON, `compare --metric`, `results show
//! --metric`, labels and charts of pages, the table that `simulate` prints. Columns are in the order of [`METRICS`], so a new entry
//! goes to its end.

use super::summary::Summary;
use crate::units::{Dollars, Seconds};

/// A number of one simulation, with its description.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name as a column, as a key in JSON, and for `--metric`, with the unit of times at its end: `average_jct_s`.
    pub name: &'static str,
    /// Its unit, in results and for people.
    pub unit: Unit,
    /// Its name in words, as the title of a chart: `Average job completion time`.
    pub label: &'static str,
    /// Its meaning, in a line.
    pub meaning: &'static str,
    /// The better one of two values.
    pub better: Better,
    /// Its prominence on a study's page.
    pub prominence: Prominence,
    /// Whether it is taken over the measured jobs that were completed, and so leaves out those given up.
    pub of_completed: bool,
    /// Its value; none if it has no meaning, such as the cost without prices.
    pub of: fn(&Summary) -> Option<f64>,
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Jobs.
    Jobs,
    /// Events, such as rounds.
    Count,
    /// Seconds; hours for people.
    Seconds,
    /// A ratio that may exceed 1.
    Ratio,
    /// A part of a whole, from 0 to 1; percent for people.
    Fraction,
    /// Dollars.
    Dollars,
}

impl Unit {
    /// The unit in results: `s`, `jobs`, `$`; `1` for pure numbers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Seconds => "s",
            Self::Count | Self::Ratio | Self::Fraction => "1",
            Self::Dollars => "$",
        }
    }

    /// The unit for people: `h`, `%`; empty for pure numbers.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Seconds => "h",
            Self::Count | Self::Ratio => "",
            Self::Fraction => "%",
            Self::Dollars => "$",
        }
    }

    /// One unit for people, in the unit of results: an hour is 3600 s.
    pub const fn scale(self) -> f64 {
        match self {
            Self::Seconds => 3600.0,
            Self::Fraction => 0.01,
            Self::Jobs | Self::Count | Self::Ratio | Self::Dollars => 1.0,
        }
    }

    /// The number of decimals of a value for people.
    pub const fn n_decimals(self) -> usize {
        match self {
            Self::Jobs | Self::Count => 0,
            Self::Fraction => 1,
            Self::Dollars => 2,
            Self::Seconds | Self::Ratio => 3,
        }
    }
}

/// The better one of two values of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The smaller.
    Lower,
    /// The larger.
    Higher,
    /// Neither: the metric describes, and does not judge.
    Neither,
}

impl Better {
    /// The word `lower` or `higher`; empty for neither.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::Neither => "",
        }
    }
}

/// The prominence of a metric on a study's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prominence {
    /// A column in the table of all runs.
    Column,
    /// A chart, too.
    Chart,
    /// A chart, and a table of its ratio to the baseline.
    Compared,
}

/// The metrics that sweeps keep, in the order of their columns.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "n_jobs",
        unit: Unit::Jobs,
        label: "Measured jobs that were completed",
        meaning: "jobs in the measured window that were completed",
        better: Better::Higher,
        prominence: Prominence::Column,
        of_completed: false,
        of: |summary| Some(summary.jct.as_ref().map_or(0.0, |jct| jct.count as f64)),
    },
    Metric {
        name: "average_jct_s",
        unit: Unit::Seconds,
        label: "Average job completion time",
        meaning: "mean time from arrival to completion, over completed measured jobs",
        better: Better::Lower,
        prominence: Prominence::Compared,
        of_completed: true,
        // A simulation that was given up has no `average_jct_s`.
        of: |summary| summary.jct.as_ref().map(|jct| jct.average),
    },
    Metric {
        name: "median_jct_s",
        unit: Unit::Seconds,
        label: "Median job completion time",
        meaning: "median time from arrival to completion, over completed measured jobs",
        better: Better::Lower,
        prominence: Prominence::Chart,
        of_completed: true,
        of: |summary| summary.jct.as_ref().map(|jct| jct.median),
    },
    Metric {
        name: "p95_jct_s",
        unit: Unit::Seconds,
        label: "95th percentile of job completion time",
        meaning: "95th percentile of time from arrival to completion, over completed measured jobs",
        better: Better::Lower,
        prominence: Prominence::Chart,
        of_completed: true,
        of: |summary| summary.jct.as_ref().map(|jct| jct.p95),
    },
    Metric {
        name: "p99_jct_s",
        unit: Unit::Seconds,
        label: "99th percentile of job completion time",
        meaning: "99th percentile of time from arrival to completion, over completed measured jobs",
        better: Better::Lower,
        prominence: Prominence::Compared,
        of_completed: true,
        of: |summary| summary.jct.as_ref().map(|jct| jct.p99),
    },
    Metric {
        name: "average_rho",
        unit: Unit::Ratio,
        label: "Average finish-time fairness ρ",
        meaning: "mean of completion time over time on an isolated 1/n share, over completed measured jobs",
        better: Better::Lower,
        prominence: Prominence::Compared,
        of_completed: true,
        of: |summary| summary.rho.as_ref().map(|rho| rho.distribution.average),
    },
    Metric {
        name: "worst_rho",
        unit: Unit::Ratio,
        label: "Worst finish-time fairness ρ",
        meaning: "largest completion time over time on an isolated 1/n share, over completed measured jobs",
        better: Better::Lower,
        prominence: Prominence::Compared,
        of_completed: true,
        of: |summary| summary.rho.as_ref().map(|rho| rho.distribution.max),
    },
    Metric {
        name: "makespan_s",
        unit: Unit::Seconds,
        label: "Makespan",
        meaning: "time from the first arrival to the last completion, over all completed jobs",
        better: Better::Lower,
        prominence: Prominence::Compared,
        of_completed: true,
        of: |summary| summary.makespan.map(Seconds::get),
    },
    Metric {
        name: "utilization",
        unit: Unit::Fraction,
        label: "Utilization of all workers",
        meaning: "busy worker time over worker time from the first arrival to the end of the last lease, over all worker types",
        better: Better::Higher,
        prominence: Prominence::Chart,
        of_completed: false,
        of: |summary| summary.utilization.get("all").copied(),
    },
    Metric {
        name: "rounds",
        unit: Unit::Count,
        label: "Rounds",
        meaning: "rounds started",
        better: Better::Neither,
        prominence: Prominence::Column,
        of_completed: false,
        of: |summary| Some(summary.rounds as f64),
    },
    Metric {
        name: "solves",
        unit: Unit::Count,
        label: "Allocations computed",
        meaning: "decisions of the policy",
        better: Better::Neither,
        prominence: Prominence::Chart,
        of_completed: false,
        of: |summary| Some(summary.solves as f64),
    },
    Metric {
        name: "preemptions",
        unit: Unit::Count,
        label: "Preemptions",
        meaning: "times that a job, or two that share workers, lost its workers with steps left",
        better: Better::Lower,
        prominence: Prominence::Chart,
        of_completed: false,
        of: |summary| Some(summary.preemptions as f64),
    },
    Metric {
        name: "cost",
        unit: Unit::Dollars,
        label: "Cost",
        meaning: "price of busy worker time; empty without prices; under the published semantics of time credited, which is at times longer than slices lasted and than jobs' own costs count",
        better: Better::Lower,
        prominence: Prominence::Compared,
        of_completed: false,
        of: |summary| summary.cost.map(Dollars::get),
    },
    Metric {
        name: "slo_violations",
        unit: Unit::Jobs,
        label: "Jobs that missed their deadline",
        meaning: "measured jobs completed after their deadline, or given up; empty if no job has a deadline",
        better: Better::Lower,
        prominence: Prominence::Chart,
        of_completed: false,
        of: |summary| summary.slo_violations.map(|n| n as f64),
    },
    Metric {
        name: "n_measured",
        unit: Unit::Jobs,
        label: "Measured jobs that ended",
        meaning: "jobs in the measured window that were completed or given up",
        better: Better::Neither,
        prominence: Prominence::Column,
        of_completed: false,
        of: |summary| Some(summary.jobs.len() as f64),
    },
];

/// Numbers of one simulation that have no column in the results of sweeps, in the order of their list.
pub const DETAILS: &[Metric] = &[
    Metric {
        of_completed: true,
        ..detail("fraction_fair", Unit::Fraction, "Jobs with ρ ≤ 1", |summary| {
            summary.rho.as_ref().map(|rho| rho.fraction_fair)
        })
    },
    detail("leases", Unit::Count, "Leases", |summary| Some(summary.leases as f64)),
    detail("lease_extensions", Unit::Count, "Lease extensions", |summary| {
        Some(summary.lease_extensions as f64)
    }),
    detail("fallbacks", Unit::Count, "Fallbacks to another backend", |summary| {
        Some(summary.fallbacks as f64)
    }),
    detail("uncertified", Unit::Count, "Decisions not proven optimal", |summary| {
        Some(summary.uncertified as f64)
    }),
    detail("promises_dropped", Unit::Count, "Deadlines dropped, over all decisions", |summary| {
        summary.slo_violations.map(|_| summary.promises_dropped as f64)
    }),
    detail("failures", Unit::Count, "Slices of jobs that failed", |summary| some(summary.failures)),
    detail("worker_failures", Unit::Count, "Failures of workers", |summary| some(summary.worker_failures)),
    detail("jobs_dropped", Unit::Jobs, "Jobs given up", |summary| some(summary.jobs_dropped as u64)),
];

const fn detail(
    name: &'static str,
    unit: Unit,
    label: &'static str,
    of: fn(&Summary) -> Option<f64>,
) -> Metric {
    let (better, prominence) = (Better::Neither, Prominence::Column);
    Metric { name, unit, label, meaning: label, better, prominence, of_completed: false, of }
}

/// A count; none if it is 0, so that it is not listed.
fn some(n: u64) -> Option<f64> {
    (n > 0).then_some(n as f64)
}

impl Metric {
    /// The position of a metric in [`METRICS`], by its name with or without unit.
    pub fn position(name: &str) -> Option<usize> {
        METRICS.iter().position(|metric| metric.name == name || metric.bare_name() == name)
    }

    /// The metric of this name, with or without unit.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::position(name).map(|position| &METRICS[position])
    }

    /// The name without the unit of times, as in results of earlier versions: `average_jct`.
    pub fn bare_name(&self) -> &'static str {
        bare(self.name, self.unit)
    }

    /// The names of [`METRICS`], in their order.
    pub fn names<'a>() -> impl ExactSizeIterator<Item = &'a str> + Clone {
        METRICS.iter().map(|metric| -> &'a str { metric.name })
    }

    /// The label with the unit for people: `Makespan (h)`. For a number of jobs, the label contains the unit.
    pub fn title(&self) -> String {
        match self.unit {
            Unit::Jobs => self.label.to_owned(),
            unit => with_unit(self.label, unit.shown()),
        }
    }
}

/// The name of a number in seconds without the unit at its end; any other as it is.
pub(super) fn bare(name: &'static str, unit: Unit) -> &'static str {
    match unit {
        Unit::Seconds => name.strip_suffix("_s").unwrap_or(name),
        _ => name,
    }
}

/// The text `name (unit)`, or the name alone if there is no unit.
pub fn with_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

/// [`METRICS`] as rows of a document: name, unit in results, label, meaning, and the better value.
pub fn dictionary() -> impl ExactSizeIterator<Item = [&'static str; 5]> {
    METRICS
        .iter()
        .map(|metric| [metric.name, metric.unit.name(), metric.label, metric.meaning, metric.better.name()])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_entry_has_a_name_of_its_own_and_words() {
        let all = || METRICS.iter().chain(DETAILS);
        let names: BTreeSet<&str> = all().map(|metric| metric.name).collect();
        let labels: BTreeSet<&str> = all().map(|metric| metric.label).collect();
        assert_eq!((names.len(), labels.len()), (all().count(), all().count()));
        for (position, [name, unit, label, meaning, _]) in dictionary().enumerate() {
            assert!(name.chars().all(|letter| letter.is_ascii_lowercase() || "_0123456789".contains(letter)));
            assert_eq!(Metric::position(name), Some(position));
            assert_eq!(Metric::position(METRICS[position].bare_name()), Some(position));
            assert_eq!(name.ends_with("_s"), unit == "s", "{name} in {unit}");
            assert!(!unit.is_empty() && !label.is_empty() && !meaning.is_empty(), "{name}");
        }
    }

    #[test]
    fn what_is_compared_is_better_when_lower() {
        let compared = || METRICS.iter().filter(|metric| metric.prominence == Prominence::Compared);
        assert!(compared().count() > 0);
        for metric in compared() {
            assert_eq!(
                metric.better,
                Better::Lower,
                "{}: `improvement` is how many times smaller",
                metric.name
            );
        }
    }
}
