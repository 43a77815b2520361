//! Results of benchmarks, row by row.

use std::fmt;

use apportion::policy::Strategy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `format:` of results.
pub const FORMAT: &str = "apportion/bench-v1";

/// How a case ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// Measured; whether the answer is a certified optimum, the row's `optimal` says.
    Done,
    /// The backend does not take this program, or the problem cannot be split so.
    Declined,
    /// No certified optimum.
    Failed,
    /// No allocation keeps the policy's constraints.
    Infeasible,
    /// The policy's objective has no best value.
    Unbounded,
    /// An answer without dual values, from a backend that never gives any: nothing proves it, and no certificate refutes it.
    Unproven,
    /// Out of time.
    Limit,
    /// Out of memory.
    Memory,
    /// Not tried: a smaller instance was out of time or memory.
    Skipped,
    /// Anything else, in the row's message.
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
    /// Grouping, and building the programs.
    #[schemars(extend("x-unit" = "s"))]
    pub build: f64,
    /// Inside backends.
    #[schemars(extend("x-unit" = "s"))]
    pub solve: f64,
    /// Certificates.
    #[schemars(extend("x-unit" = "s"))]
    pub certify: f64,
    /// From classes to jobs, and the check of the allocation.
    #[schemars(extend("x-unit" = "s"))]
    pub expand: f64,
    /// Time by the clock from problem to decision.
    #[schemars(extend("x-unit" = "s"))]
    pub total: f64,
    /// Processor time of the same, where the system tells and one thread did it all.
    #[schemars(extend("x-unit" = "s"))]
    pub processor: Option<f64>,
}

/// One case, and what became of it. What it did not get to is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The policy, by its name or path.
    pub policy: String,
    /// The kind of instance: `osdi20` (jobs drawn as published), `osdi20-distinct` (no two alike), `random-…`, `restricted-…`, or a
    /// snapshot's path.
    pub instance: String,
    /// Jobs of the instance.
    pub n_jobs: usize,
    /// Worker types of the instance.
    pub n_types: usize,
    /// The seed that it was drawn by.
    pub seed: u64,
    /// The backend that was asked for: `default` is the chain that users get, `rule` a policy that solves nothing.
    pub backend: String,
    /// The number of parts into which the jobs are split at random, and which are solved apart; 1 is the whole problem.
    pub partitions: usize,
    /// How the case ended.
    pub status: Status,
    /// Why a case is not done, how many of its repeats were made, or why changes after it were not measured.
    pub message: Option<String>,
    /// Whether the objective is to be `maximize`d or `minimize`d.
    pub sense: Option<String>,
    /// The objective that the decision reaches.
    pub objective: Option<f64>,
    /// What no allocation betters.
    pub bound: Option<f64>,
    /// How far the two are apart, as a part, by the certificate that is recomputed from the program.
    pub gap_relative: Option<f64>,
    /// The most by which a constraint is violated, by the same certificate.
    pub violation_max: Option<f64>,
    /// Is the answer a certified optimum?
    pub optimal: Option<bool>,
    /// Of a partitioned decision: how far its value is from the whole problem's optimum, as a part of that.
    pub loss_relative: Option<f64>,
    /// What the decision in the middle of all `repeats` by its cost took; of two in the middle, the quicker.
    pub seconds: Option<Seconds>,
    /// Decisions that count.
    pub repeats: u32,
    /// Decisions before those that count: 1, or 0 where there was time for the first alone, which then counts.
    #[serde(default)]
    pub warm_ups: Option<u32>,
    /// The least processor time of all `repeats`.
    #[serde(default)]
    #[schemars(extend("x-unit" = "s"))]
    pub processor_min_seconds: Option<f64>,
    /// The most processor time of all `repeats`.
    #[serde(default)]
    #[schemars(extend("x-unit" = "s"))]
    pub processor_max_seconds: Option<f64>,
    /// The least time by the clock of all `repeats`.
    #[serde(default)]
    #[schemars(extend("x-unit" = "s"))]
    pub clock_min_seconds: Option<f64>,
    /// The most time by the clock of all `repeats`.
    #[serde(default)]
    #[schemars(extend("x-unit" = "s"))]
    pub clock_max_seconds: Option<f64>,
    /// Iterations of the backends.
    pub iterations: Option<u64>,
    /// Programs that were solved.
    pub solves: Option<u32>,
    /// Backends that were tried and gave no certified optimum before the one that did.
    pub fallbacks: Option<usize>,
    /// The strategy that found the optimum: `singles`, `kinds`, `pairs` or `written`; null for rules.
    #[serde(default)]
    pub strategy: Option<String>,
    /// The backend that solved the program of the optimum, or the last program where none was written for the optimum; null where
    /// none was written at all.
    pub backend_used: Option<String>,
    /// Classes of jobs of the largest program solved, after grouping.
    pub n_classes: Option<usize>,
    /// Its columns.
    pub n_columns: Option<usize>,
    /// Its rows.
    pub n_rows: Option<usize>,
    /// Its terms.
    pub n_terms: Option<usize>,
    /// Resident memory before the first decision, instance included.
    #[schemars(extend("x-unit" = "bytes"))]
    pub memory_before_bytes: Option<u64>,
    /// The most resident memory until the end.
    #[schemars(extend("x-unit" = "bytes"))]
    pub memory_peak_bytes: Option<u64>,
    /// Arrivals and departures that were decided on one by one in a session. It keeps prices of worker types; written programs,
    /// those of a named backend too, are solved from scratch.
    pub changes: Option<u32>,
    /// The median processor time of one, from the change to the certified decision.
    #[schemars(extend("x-unit" = "s"))]
    pub change_p50_seconds: Option<f64>,
    /// What 99 % of them stay within.
    #[schemars(extend("x-unit" = "s"))]
    pub change_p99_seconds: Option<f64>,
    /// What ended the repeats of a case that is done before their number: `limit`, `memory` or `error`; null if nothing did.
    #[serde(default)]
    pub cut_by: Option<Status>,
}

impl Row {
    /// A case that has not been run.
    pub fn of(policy: &str, instance: &str, backend: &str, partitions: usize) -> Self {
        Self {
            policy: policy.to_owned(),
            instance: instance.to_owned(),
            backend: backend.to_owned(),
            partitions,
            ..Self::default()
        }
    }

    /// The time that says what the case cost: the processor's, or the clock's where the system tells no other.
    pub fn cost_seconds(&self) -> Option<f64> {
        self.seconds.map(|seconds| seconds.cost())
    }

    /// The least and the most that a counted decision cost, by the same measure as [`cost_seconds`](Self::cost_seconds);
    /// none where one decision alone was counted.
    pub fn cost_range_seconds(&self) -> Option<(f64, f64)> {
        let (least, most) = if self.is_by_clock() {
            (self.clock_min_seconds, self.clock_max_seconds)
        } else {
            (self.processor_min_seconds, self.processor_max_seconds)
        };
        least.zip(most).filter(|_| self.repeats > 1)
    }

    /// Does the clock say what the case cost, because the system tells no processor time?
    pub fn is_by_clock(&self) -> bool {
        self.seconds.is_some_and(|seconds| seconds.processor.is_none())
    }

    /// Marks the row of a case of which not all repeats were made, for this reason; `asked`: how many were asked for, if that
    /// was said.
    pub fn cut(&mut self, by: Status, why: &str, asked: Option<u32>) {
        let n_made = if self.warm_ups == Some(0) { 0 } else { self.repeats };
        let of = asked.map_or_else(String::new, |n| format!(" of {n}"));
        let were = if n_made == 1 && asked.is_none() { "repeat was" } else { "repeats were" };
        (self.cut_by, self.message) = (Some(by), Some(format!("{n_made}{of} {were} made: {why}")));
    }

    /// Puts in what the counted decisions took: the one in the middle by its cost, of two in the middle the quicker, and the
    /// least and the most of all.
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
    /// The time that says what the decision cost: the processor's, or the clock's where the system tells no other.
    pub fn cost(&self) -> f64 {
        self.processor.unwrap_or(self.total)
    }
}

/// The machine, as far as results depend on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct System {
    /// The operating system.
    pub os: String,
    /// The processor's architecture.
    pub architecture: String,
    /// Cores that a process may use.
    pub cores: usize,
    /// The processor's model, `unknown` where the system does not tell it.
    #[serde(default = "unknown")]
    pub processor: String,
}

/// The processor of results that name none, where the system does not tell its model.
pub const UNKNOWN: &str = "unknown";

fn unknown() -> String {
    UNKNOWN.to_owned()
}

impl System {
    /// This one, with a processor of this model, as far as it is known.
    pub fn this(processor: Option<String>) -> Self {
        Self {
            processor: processor.unwrap_or_else(unknown),
            os: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// All rows of a benchmark, with what is needed to read them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Names the format: `apportion/bench-v1`.
    pub format: String,
    /// The program's version.
    pub version: String,
    /// The system on which the benchmark ran.
    pub system: System,
    /// How long a case might take.
    #[schemars(extend("x-unit" = "s"))]
    pub limit_seconds: f64,
    /// In the order of the cases.
    pub rows: Vec<Row>,
}

impl Results {
    /// Results of this version on this system. `processor` is the processor's model.
    pub fn new(limit_seconds: f64, rows: Vec<Row>, processor: Option<String>) -> Self {
        let (format, version) = (FORMAT.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self { format, version, system: System::this(processor), limit_seconds, rows }
    }

    /// Results as they were written, by this version or an earlier one: before there was a column `strategy`, `backend_used`
    /// named the strategy where no program was written.
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

    /// Fills in the losses of partitioned rows: against a certified optimum of the same problem, whoever found it.
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
        for row in written["rows"].as_array_mut().unwrap() {
            let row = row.as_object_mut().unwrap();
            row.remove("strategy");
            row.retain(|name, _| !name.ends_with("_seconds") && name != "warm_ups");
            row.insert("change_p50_seconds".to_owned(), 0.5.into());
        }
        let read = Results::read(&written.to_string()).unwrap();
        assert_eq!(read.system.processor, "unknown");
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
