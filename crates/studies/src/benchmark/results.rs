//! Results of benchmarks, row by row.

use std::fmt;

use apportion::policy::Strategy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the results' format.
pub const FORMAT: &str = "apportion/bench-v1";

/// Outcome of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// The case was measured; `optimal` says whether its answer is a certified optimum.
    Done,
    /// The backend does not take this kind of program, or the problem cannot be split into these parts.
    Declined,
    /// No backend gave a certified optimum.
    Failed,
    /// No allocation keeps the policy's constraints.
    Infeasible,
    /// The policy's objective has no best value.
    Unbounded,
    /// An answer without dual values, from a backend that never gives any: nothing proves it, and no certificate refutes it.
    Unproven,
    /// The case ran out of time.
    Limit,
    /// The case ran out of memory.
    Memory,
    /// The case was not tried: a smaller instance ran out of time or memory.
    Skipped,
    /// Any other error, explained in the row's message.
    #[default]
    Error,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Declined => "declined",
            Self::Failed => "failed",
            Self::Infeasible => "infeasible",
            Self::Unbounded => "unbounded",
            Self::Unproven => "unproven",
            Self::Limit => "limit",
            Self::Memory => "memory",
            Self::Skipped => "skipped",
            Self::Error => "error",
        })
    }
}

/// Times of one decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Seconds {
    /// Time for grouping jobs and building programs.
    #[schemars(extend("x-unit" = "s"))]
    pub build: f64,
    /// Time inside backends.
    #[schemars(extend("x-unit" = "s"))]
    pub solve: f64,
    /// Time for certificates.
    #[schemars(extend("x-unit" = "s"))]
    pub certify: f64,
    /// Time for expanding classes to jobs and checking the allocation.
    #[schemars(extend("x-unit" = "s"))]
    pub expand: f64,
    /// Time by the clock from problem to decision.
    #[schemars(extend("x-unit" = "s"))]
    pub total: f64,
    /// Processor time from problem to decision, where the system tells it and one thread did all the work.
    #[schemars(extend("x-unit" = "s"))]
    pub processor: Option<f64>,
}

/// Results of one case. Values that it did not get to are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Name or path of the policy.
    pub policy: String,
    /// Kind of instance: `osdi20` (jobs drawn as published), `osdi20-distinct` (no two alike), `random-…`, `restricted-…`,
    /// or a snapshot's path.
    pub instance: String,
    /// Number of jobs of the instance.
    pub n_jobs: usize,
    /// Number of worker types of the instance.
    pub n_types: usize,
    /// Seed by which the instance was drawn.
    pub seed: u64,
    /// Requested backend: `default` is the chain that users get, `rule` stands for a policy that solves nothing.
    pub backend: String,
    /// Number of parts into which the jobs are split at random and which are solved separately; 1 is the whole problem.
    pub partitions: usize,
    /// Outcome of the case.
    pub status: Status,
    /// Explanation: why the case is not done, how many of its repeats were made, or why changes were not measured.
    pub message: Option<String>,
    /// Sense of the objective: `maximize` or `minimize`.
    pub sense: Option<String>,
    /// Objective of the decision.
    pub objective: Option<f64>,
    /// Bound on the objective that no allocation betters.
    pub bound: Option<f64>,
    /// Relative gap between objective and bound, by the certificate that is recomputed from the program.
    pub gap_relative: Option<f64>,
    /// Largest violation of a constraint, by the same certificate.
    pub violation_max: Option<f64>,
    /// Whether the answer is a certified optimum.
    pub optimal: Option<bool>,
    /// Relative loss of a partitioned decision: its distance from the whole problem's optimum, divided by that optimum.
    pub loss_relative: Option<f64>,
    /// Times of the median decision of all `repeats` by cost; of two in the middle, the quicker.
    pub seconds: Option<Seconds>,
    /// Number of measured decisions.
    pub repeats: u32,
    /// Number of decisions before the measured ones: 1, or 0 where there was time for only one, which is then measured.
    #[serde(default)]
    pub warm_ups: Option<u32>,
    /// Least processor time of all `repeats`.
    #[serde(default)]
    #[schemars(extend("x-unit" = "s"))]
    pub processor_min_seconds: Option<f64>,
    /// Greatest processor time of all `repeats`.
    #[serde(default)]
    #[schemars(extend("x-unit" = "s"))]
    pub processor_max_seconds: Option<f64>,
    /// Least time by the clock of all `repeats`.
    #[serde(default)]
    #[schemars(extend("x-unit" = "s"))]
    pub clock_min_seconds: Option<f64>,
    /// Greatest time by the clock of all `repeats`.
    #[serde(default)]
    #[schemars(extend("x-unit" = "s"))]
    pub clock_max_seconds: Option<f64>,
    /// Number of iterations of the backends.
    pub iterations: Option<u64>,
    /// Number of programs that were solved.
    pub solves: Option<u32>,
    /// Number of backends that gave no certified optimum before the one that did.
    pub fallbacks: Option<usize>,
    /// Strategy that found the optimum: `singles`, `kinds`, `pairs` or `written`; null for rules.
    #[serde(default)]
    pub strategy: Option<String>,
    /// Backend that solved the program of the optimum, or the last program where none was written for the optimum; null
    /// where no program was written at all.
    pub backend_used: Option<String>,
    /// Number of classes of jobs of the largest program solved, after grouping.
    pub n_classes: Option<usize>,
    /// Number of columns of that program.
    pub n_columns: Option<usize>,
    /// Number of rows of that program.
    pub n_rows: Option<usize>,
    /// Number of terms of that program.
    pub n_terms: Option<usize>,
    /// Resident memory before the first decision, instance included.
    #[schemars(extend("x-unit" = "bytes"))]
    pub memory_before_bytes: Option<u64>,
    /// Peak resident memory until the end.
    #[schemars(extend("x-unit" = "bytes"))]
    pub memory_peak_bytes: Option<u64>,
    /// Number of arrivals and departures decided on one by one in a session. The session keeps prices of worker types;
    /// written programs, also those of a named backend, are solved from scratch.
    pub changes: Option<u32>,
    /// Median processor time from a change to the certified decision.
    #[schemars(extend("x-unit" = "s"))]
    pub change_p50_seconds: Option<f64>,
    /// 99th percentile of the processor time from a change to the certified decision.
    #[schemars(extend("x-unit" = "s"))]
    pub change_p99_seconds: Option<f64>,
    /// Cause that ended a done case before all its repeats: `limit`, `memory` or `error`; null if there was none.
    #[serde(default)]
    pub cut_by: Option<Status>,
}

impl Row {
    /// The row of a case that has not been run.
    pub fn of(policy: &str, instance: &str, backend: &str, partitions: usize) -> Self {
        Self {
            policy: policy.to_owned(),
            instance: instance.to_owned(),
            backend: backend.to_owned(),
            partitions,
            ..Self::default()
        }
    }

    /// Cost of the median decision, s: processor time, or time by the clock where the system tells no processor time.
    pub fn cost_seconds(&self) -> Option<f64> {
        self.seconds.map(|seconds| seconds.cost())
    }

    /// Least and greatest cost of a measured decision, s, by the same measure as [`cost_seconds`](Self::cost_seconds); none
    /// where only one decision was measured.
    pub fn cost_range_seconds(&self) -> Option<(f64, f64)> {
        let (least, most) = if self.is_by_clock() {
            (self.clock_min_seconds, self.clock_max_seconds)
        } else {
            (self.processor_min_seconds, self.processor_max_seconds)
        };
        least.zip(most).filter(|_| self.repeats > 1)
    }

    /// Whether the cost is time by the clock, because the system tells no processor time.
    pub fn is_by_clock(&self) -> bool {
        self.seconds.is_some_and(|seconds| seconds.processor.is_none())
    }

    /// Marks the row as one with fewer repeats than planned, with the reason; `asked` is the requested number of repeats, if
    /// any.
    pub fn cut(&mut self, by: Status, why: &str, asked: Option<u32>) {
        let n_made = if self.warm_ups == Some(0) { 0 } else { self.repeats };
        let of = asked.map_or_else(String::new, |n| format!(" of {n}"));
        let were = if n_made == 1 && asked.is_none() { "repeat was" } else { "repeats were" };
        (self.cut_by, self.message) = (Some(by), Some(format!("{n_made}{of} {were} made: {why}")));
    }

    /// Fills in the times of measured decisions: those of the median by cost, of two in the middle the quicker, and the
    /// least and greatest of all.
    pub fn put_times(&mut self, times: &[Seconds]) {
        let mut by_cost = times.to_vec();
        by_cost.sort_by(|one, other| one.cost().total_cmp(&other.cost()));
        self.repeats = u32::try_from(times.len()).unwrap_or(u32::MAX);
        self.seconds = by_cost.get(times.len().saturating_sub(1) / 2).copied();
        let ends = |of: &dyn Fn(&Seconds) -> Option<f64>| {
            let values: Option<Vec<f64>> = times.iter().map(of).collect();
            let values = values.unwrap_or_default();
            let least = values.iter().copied().reduce(f64::min);
            (least, values.iter().copied().reduce(f64::max))
        };
        (self.processor_min_seconds, self.processor_max_seconds) = ends(&|seconds| seconds.processor);
        (self.clock_min_seconds, self.clock_max_seconds) = ends(&|seconds| Some(seconds.total));
    }
}

impl Seconds {
    /// Cost of the decision, s: processor time, or time by the clock where the system tells no processor time.
    pub fn cost(&self) -> f64 {
        self.processor.unwrap_or(self.total)
    }
}

/// Properties of the machine on which results depend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// Operating system.
    pub os: String,
    /// Architecture of the processor.
    pub architecture: String,
    /// Number of cores that a process may use.
    pub cores: usize,
    /// Model of the processor; `unknown` where the system does not tell it.
    #[serde(default = "unknown")]
    pub processor: String,
}

/// Model of a processor that is not known.
pub const UNKNOWN: &str = "unknown";

fn unknown() -> String {
    UNKNOWN.to_owned()
}

impl System {
    /// The system of this process; `processor` is the processor's model, where it is known.
    pub fn this(processor: Option<String>) -> Self {
        Self {
            processor: processor.unwrap_or_else(unknown),
            os: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// Rows of a benchmark, with the version, the system and the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Name of the format: `apportion/bench-v1`.
    pub format: String,
    /// Version of apportion.
    pub version: String,
    /// Command that ran the benchmark; null in results of older versions.
    #[serde(default)]
    pub command: Option<String>,
    /// Day on which it ended, as 2026-07-31 in UTC; null in results of older versions.
    #[serde(default)]
    pub made_on: Option<String>,
    /// System on which the benchmark ran.
    pub system: System,
    /// Time limit of a case.
    #[schemars(extend("x-unit" = "s"))]
    pub limit_seconds: f64,
    /// Rows in the order of the cases.
    pub rows: Vec<Row>,
}

impl Results {
    /// Results of this version on this system. `processor` is the processor's model.
    pub fn new(limit_seconds: f64, rows: Vec<Row>, processor: Option<String>) -> Self {
        let (format, version) = (FORMAT.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let (command, made_on, system) = (None, None, System::this(processor));
        Self { format, version, command, made_on, system, limit_seconds, rows }
    }

    /// These results with the command and the day on which they were made.
    #[must_use]
    pub fn made_by(self, command: String, day: Option<String>) -> Self {
        Self { command: Some(command), made_on: day, ..self }
    }

    /// Parses results of this version or an earlier one. Before there was a column `strategy`, `backend_used` named the
    /// strategy where no program was written.
    ///
    /// # Errors
    /// If the text is no such document.
    pub fn read(text: &str) -> serde_json::Result<Self> {
        let mut results: Self = serde_json::from_str(text)?;
        for row in results.rows.iter_mut().filter(|row| row.strategy.is_none()) {
            if row.backend_used.as_deref().and_then(Strategy::named).is_some() {
                row.strategy = row.backend_used.take();
            }
        }
        Ok(results)
    }

    /// Fills in the losses of partitioned rows, against a certified optimum of the same problem by any backend.
    pub fn compare_partitions(&mut self) {
        let exact = |rows: &[Row], of: &Row| {
            let same = |row: &&Row| {
                (row.partitions, row.optimal) == (1, Some(true))
                    && (&row.policy, &row.instance, row.n_jobs, row.seed)
                        == (&of.policy, &of.instance, of.n_jobs, of.seed)
            };
            rows.iter().find(same).and_then(|row| row.objective)
        };
        for position in 0..self.rows.len() {
            let row = &self.rows[position];
            if row.partitions == 1 {
                continue;
            }
            if let (Some(exact), Some(value)) = (exact(&self.rows, row), row.objective) {
                let worse =
                    if row.sense.as_deref() == Some("minimize") { value - exact } else { exact - value };
                self.rows[position].loss_relative = Some(worse / exact.abs());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_that_older_results_name_as_the_backend_is_read_as_one() {
        let row = |used: &str| Row { backend_used: Some(used.to_owned()), ..Row::of("p", "i", "default", 1) };
        let mut written =
            serde_json::to_value(Results::new(1.0, vec![row("singles"), row("highs-simplex")], None))
                .unwrap();
        written["system"].as_object_mut().unwrap().remove("processor");
        written.as_object_mut().unwrap().retain(|name, _| name != "command" && name != "made_on");
        for row in written["rows"].as_array_mut().unwrap() {
            let row = row.as_object_mut().unwrap();
            row.remove("strategy");
            row.retain(|name, _| !name.ends_with("_seconds") && name != "warm_ups");
            row.insert("change_p50_seconds".to_owned(), 0.5.into());
        }
        let read = Results::read(&written.to_string()).unwrap();
        assert_eq!((read.system.processor.as_str(), &read.command, &read.made_on), ("unknown", &None, &None));
        let rows = read.rows;
        assert_eq!((rows[0].warm_ups, rows[0].cost_range_seconds()), (None, None));
        let told = |row: &Row| [row.strategy.clone(), row.backend_used.clone()];
        assert_eq!(told(&rows[0]), [Some("singles".to_owned()), None]);
        assert_eq!(told(&rows[1]), [None, Some("highs-simplex".to_owned())]);
    }

    #[test]
    fn a_case_that_is_cut_short_says_after_how_many_repeats() {
        let of = |warm_ups: u32, repeats: u32, asked: Option<u32>| {
            let mut row = Row { warm_ups: Some(warm_ups), repeats, ..Row::of("p", "i", "default", 1) };
            row.cut(Status::Memory, "why", asked);
            assert_eq!(row.cut_by, Some(Status::Memory));
            row.message.unwrap()
        };
        assert_eq!(of(1, 7, Some(10)), "7 of 10 repeats were made: why");
        assert_eq!(of(1, 1, None), "1 repeat was made: why");
        assert_eq!(of(0, 1, Some(10)), "0 of 10 repeats were made: why", "the first alone counts");
    }

    #[test]
    fn the_time_of_a_case_is_that_of_the_decision_in_the_middle() {
        let times = |costs: &[(f64, Option<f64>)]| {
            let seconds = |(total, processor): &(f64, Option<f64>)| Seconds {
                build: total / 2.0,
                total: *total,
                processor: *processor,
                ..Seconds::default()
            };
            let mut row = Row::of("p", "i", "default", 1);
            row.put_times(&costs.iter().map(seconds).collect::<Vec<_>>());
            row
        };
        let row = times(&[(9.0, Some(3.0)), (4.0, Some(1.0)), (5.0, Some(2.0)), (7.0, Some(8.0))]);
        let middle = row.seconds.unwrap();
        assert_eq!((middle.processor, middle.total, middle.build), (Some(2.0), 5.0, 2.5), "one decision's");
        assert_eq!((row.cost_range_seconds(), row.repeats), (Some((1.0, 8.0)), 4));
        assert_eq!((row.clock_min_seconds, row.clock_max_seconds), (Some(4.0), Some(9.0)));
        let clocked = times(&[(3.0, None), (1.0, None), (2.0, None)]);
        assert!(clocked.is_by_clock() && !row.is_by_clock());
        assert_eq!((clocked.cost_seconds(), clocked.cost_range_seconds()), (Some(2.0), Some((1.0, 3.0))));
        assert_eq!(clocked.processor_min_seconds, None);
        assert_eq!(times(&[(3.0, Some(3.0))]).cost_range_seconds(), None, "of one there is no range");
    }
}
