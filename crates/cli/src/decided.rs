//! A decision in the JSON of `allocate` and `explain`: its certificate, and how it was solved.

use schemars::JsonSchema;
use serde::Serialize;

use apportion::policy::{Decision, SolveReport};

/// The certificate of a decision: of its shares and, if it has an objective, of its optimum.
#[derive(Serialize, JsonSchema)]
pub(crate) struct DecisionCertificate {
    /// The largest violation of a constraint by the shares.
    violation_max: f64,
    /// Whether the optimum is proven; null without an objective.
    optimal: Option<bool>,
    /// Whether the proof is of the first level alone, the least of all jobs'; null without an objective.
    first_level_only: Option<bool>,
    /// Whether the proof is among allocations that drop the same constraints; null without an objective.
    among_same_dropped: Option<bool>,
}

impl DecisionCertificate {
    /// The certificate of a decision.
    pub(crate) fn of(decision: &Decision) -> Self {
        let objective = decision.objective.as_ref();
        Self {
            violation_max: decision.allocation.violation_max(),
            optimal: objective.map(|objective| objective.optimal),
            first_level_only: objective.map(|objective| objective.first_level_only),
            among_same_dropped: objective.map(|_| !decision.dropped.is_empty()),
        }
    }
}

/// How a decision was found.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Solve<'a> {
    /// The strategy by which the optimum was found: `singles`, `kinds`, `pairs` or `written`.
    strategy: &'static str,
    /// The reason for the strategy.
    reason: String,
    /// Strategies that gave up before.
    gave_up: Vec<GaveUp>,
    /// The strategy by which the droppable constraints to drop were found, where the policy has such constraints.
    #[serde(skip_serializing_if = "Option::is_none")]
    droppable: Option<Droppable>,
    /// The backend that solved a program; null if none was written.
    backend: Option<&'a str>,
    /// `linear`, `parametric` or `conic`.
    route: &'a str,
    /// Wall time by phase.
    seconds: Seconds,
    /// Iterations of all programs, and passes over all jobs of all searches.
    iterations: u64,
    /// Programs that a backend worked on.
    solves: u32,
    /// Searches for prices, which write no program.
    searches: u32,
    /// The largest program, searches counting as the programs that they stand for.
    size: Size,
    /// Jobs that were moved from slower worker types to idle time on faster ones.
    exchanged: usize,
    /// Was the time for it over? Then it is the best decision found so far.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    out_of_time: bool,
    /// Was the time over before all discounts of a policy that has them were found? Then the shares are without any.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    undiscounted: bool,
    /// Departures from the planned way, each with the reason.
    fallbacks: &'a [String],
}

/// The strategy by which the droppable constraints to drop were found.
#[derive(Serialize, JsonSchema)]
struct Droppable {
    /// The strategy.
    strategy: &'static str,
    /// The reason for it.
    reason: String,
}

/// A strategy that gave up.
#[derive(Serialize, JsonSchema)]
struct GaveUp {
    /// The strategy.
    strategy: &'static str,
    /// Why it gave up.
    why: String,
}

/// Wall time of a solve by phase.
#[derive(Serialize, JsonSchema)]
struct Seconds {
    /// Grouping and building the program.
    #[schemars(extend("x-unit" = "s"))]
    build: f64,
    /// Time inside backends.
    #[schemars(extend("x-unit" = "s"))]
    solve: f64,
    /// Certifying the backends' answers.
    #[schemars(extend("x-unit" = "s"))]
    certify: f64,
    /// Expanding classes to jobs and checking the allocation.
    #[schemars(extend("x-unit" = "s"))]
    expand: f64,
}

/// The size of a program.
#[derive(Serialize, JsonSchema)]
struct Size {
    /// Its columns.
    columns: usize,
    /// Its rows, cones apart.
    rows: usize,
    /// Coefficients of the rows.
    terms: usize,
}

impl<'a> Solve<'a> {
    /// The solve of a report.
    pub(crate) fn of(report: &'a SolveReport) -> Self {
        let (seconds, size) = (report.seconds, report.size);
        let gave_up = report
            .gave_up
            .iter()
            .map(|(strategy, why)| GaveUp { strategy: strategy.name(), why: why.to_string() });
        Self {
            strategy: report.strategy.name(),
            reason: report.reason.to_string(),
            gave_up: gave_up.collect(),
            droppable: report.droppable.map(|(strategy, reason)| Droppable {
                strategy: strategy.name(),
                reason: reason.to_string(),
            }),
            backend: report.backend.as_deref(),
            route: &report.route,
            seconds: Seconds {
                build: seconds.build,
                solve: seconds.solve,
                certify: seconds.certify,
                expand: seconds.expand,
            },
            iterations: report.iterations,
            solves: report.solves,
            searches: report.searches,
            size: Size { columns: size.columns, rows: size.rows, terms: size.terms },
            exchanged: report.exchanged,
            out_of_time: report.out_of_time,
            undiscounted: report.undiscounted,
            fallbacks: &report.fallbacks,
        }
    }
}
