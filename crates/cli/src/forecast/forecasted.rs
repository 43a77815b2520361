//! A forecast for people and programs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Session;
use crate::exit::Failure;
use crate::output::{Cell, OutputFormat, Table};
use apportion::spec::run::RunSpec;
use apportion::units::Seconds;
use apportion_studies::forecast::likeness::Likeness;
use apportion_studies::forecast::single::DrawnFrom;
use apportion_studies::forecast::{Distribution, Forecast, Quantile, Settings};
use apportion_studies::sweep::Run;

/// The quantiles that are always shown.
const PARTS: [f64; 3] = [0.1, 0.5, 0.9];

/// What is said of times after the limit.
const LATER: &str = "more than";

/// The forecast of a job, as `apportion forecast --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Forecasted<'a> {
    /// The format of this document.
    format: &'static str,
    /// The job: its id in the trace, or its position in order of arrival.
    job: &'a str,
    /// The time of the forecast, from the trace's first arrival.
    #[schemars(extend("x-unit" = "s"))]
    at_s: f64,
    /// When the job arrived, from the trace's first arrival.
    #[schemars(extend("x-unit" = "s"))]
    arrival_s: f64,
    /// When the job had workers first, from the trace's first arrival; null if it has had none by then.
    #[schemars(extend("x-unit" = "s"))]
    started_s: Option<f64>,
    /// When it will have workers first; null if it has had some.
    start: Option<Times>,
    /// When it will end.
    end: Times,
    /// What was assumed.
    assumed: Assumed,
    /// The version of the program.
    version: &'static str,
    /// The identity of the run: SHA-256 of its specification and its data, in hexadecimal.
    digest: &'a str,
    /// SHA-256 of the data that it read, in hexadecimal, by what it is.
    data: &'a BTreeMap<String, String>,
    /// The whole specification of the run.
    spec: &'a RunSpec,
}

/// The time until something happens, over all forks.
#[derive(Serialize, JsonSchema)]
struct Times {
    /// Forks.
    n_forks: usize,
    /// Forks in which it happened within the limit. In the others it happens later than that.
    n_happened: usize,
    /// Quantiles, in order.
    quantiles: Vec<QuantileRow>,
    /// The interval asked for.
    interval: IntervalRow,
}

/// A quantile.
#[derive(Serialize, JsonSchema)]
struct QuantileRow {
    /// The part of the forks in which it has happened by then, from 0 to 1.
    part: f64,
    /// The time from that of the forecast; null if it is later than the limit.
    #[schemars(extend("x-unit" = "s"))]
    time_s: Option<f64>,
}

/// An interval that leaves out as many forks before as after.
#[derive(Serialize, JsonSchema)]
struct IntervalRow {
    /// The part of the forks that it holds, from 0 to 1.
    level: f64,
    /// Its start, from the time of the forecast; null if it is later than the limit.
    #[schemars(extend("x-unit" = "s"))]
    from_s: Option<f64>,
    /// Its end; null if it is later than the limit.
    #[schemars(extend("x-unit" = "s"))]
    to_s: Option<f64>,
}

/// What a forecast assumed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Assumed {
    /// Jobs that were active at the time of the forecast, this one among them.
    n_active: usize,
    /// The jobs from which steps were drawn; null if they were those of the trace.
    drawn_from: Option<DrawnRow>,
    /// The blocks of time from which jobs to come were drawn; null if none came.
    blocks: Option<BlocksRow>,
    /// A fork ended so long after the time of the forecast at the latest.
    #[schemars(extend("x-unit" = "s"))]
    limit_s: f64,
}

/// Jobs from which steps were drawn.
#[derive(Serialize, JsonSchema)]
struct DrawnRow {
    /// Those that had ended.
    n_ended: usize,
    /// Those that had not: what they had run counts.
    n_active: usize,
    /// Which of them count more, as it would have foretold the last of them best.
    likeness: Likeness,
    /// The part of the active jobs, from 0 to 1, that are drawn at the same place among all as the job that arrived before: the
    /// rank correlation of jobs that ended.
    repeats: f64,
    /// The number of jobs of equal weight that would say as much of this job's steps as those that had ended.
    n_effective: f64,
}

/// Blocks from which jobs to come were drawn.
#[derive(Serialize, JsonSchema)]
struct BlocksRow {
    /// How many.
    n_blocks: usize,
    /// How long each is.
    #[schemars(extend("x-unit" = "s"))]
    length_s: f64,
    /// Jobs in all of them.
    n_jobs: usize,
}

fn seconds(quantile: Quantile) -> Option<f64> {
    match quantile {
        Quantile::At(time) => Some(time.get()),
        Quantile::After(_) => None,
    }
}

impl Times {
    fn of(distribution: &Distribution, level: f64) -> Self {
        let row = |part| QuantileRow { part, time_s: seconds(distribution.quantile(part)) };
        let [from, to] = distribution.interval(level).map(seconds);
        Self {
            n_forks: distribution.n_forks(),
            n_happened: distribution.n_happened(),
            quantiles: PARTS.map(row).into(),
            interval: IntervalRow { level, from_s: from, to_s: to },
        }
    }
}

impl Assumed {
    fn of(found: &Forecast, settings: &Settings) -> Self {
        let drawn_from = found.drawn_from.map(|from| DrawnRow {
            n_ended: from.n_ended,
            n_active: from.n_active,
            likeness: from.likeness,
            repeats: from.repeats,
            n_effective: from.n_effective,
        });
        let blocks = found.blocks.map(|blocks| BlocksRow {
            n_blocks: blocks.n_blocks,
            length_s: blocks.length.get(),
            n_jobs: blocks.n_jobs,
        });
        Self { n_active: found.n_active, drawn_from, blocks, limit_s: settings.limit.get() }
    }
}

/// Prints a forecast with the interval of a level.
pub(super) fn show(
    session: &Session,
    run: &Run,
    (found, level, settings): (&Forecast, f64, &Settings),
) -> Result<(), Failure> {
    match session.output.format() {
        OutputFormat::Json => session.output.json(&Forecasted {
            format: "apportion/forecast-v1",
            job: &found.job,
            at_s: found.at.get(),
            arrival_s: found.arrival.get(),
            started_s: found.started.map(Seconds::get),
            start: found.start.as_ref().map(|start| Times::of(start, level)),
            end: Times::of(&found.end, level),
            assumed: Assumed::of(found, settings),
            version: env!("CARGO_PKG_VERSION"),
            digest: &run.digest,
            data: &run.data,
            spec: &run.spec,
        }),
        OutputFormat::Csv => session.output.table(&for_programs(found, level, settings)),
        OutputFormat::Table => {
            session.output.table(&for_people(found, level))?;
            session.output.words(&words(found, level, settings))
        }
    }
}

/// Start and end, where they are still to come.
fn happenings(found: &Forecast) -> impl Iterator<Item = (&'static str, &Distribution)> {
    found.start.iter().map(|start| ("start", start)).chain([("end", &found.end)])
}

/// The quantiles and the interval of a distribution, in columns.
fn columns(distribution: &Distribution, level: f64) -> impl Iterator<Item = Quantile> {
    let quantiles = PARTS.map(|part| distribution.quantile(part));
    quantiles.into_iter().chain(distribution.interval(level))
}

fn for_programs(found: &Forecast, level: f64, settings: &Settings) -> Table {
    let names = [
        "event",
        "forks",
        "happened",
        "p10_h",
        "p50_h",
        "p90_h",
        "interval_from_h",
        "interval_to_h",
        "level",
        "limit_h",
    ];
    let mut table = Table::new(names);
    for (event, distribution) in happenings(found) {
        let hours = |quantile| match quantile {
            Quantile::At(time) => Cell::Number(time.hours(), 2),
            Quantile::After(_) => Cell::Empty,
        };
        let (n_forks, n_happened) = (distribution.n_forks() as u64, distribution.n_happened() as u64);
        let mut row = vec![event.into(), Cell::Count(n_forks), Cell::Count(n_happened)];
        row.extend(columns(distribution, level).map(hours));
        row.extend([Cell::Number(level, 2), Cell::Number(settings.limit.hours(), 2)]);
        table.push(row);
    }
    table
}

fn for_people(found: &Forecast, level: f64) -> Table {
    let percent = (1e4 * level).round() / 100.0;
    let interval = format!("{percent} % interval");
    let mut table = Table::new(["h from then", "10 %", "50 %", "90 %", &*interval, "forks that came to it"]);
    for (event, distribution) in happenings(found) {
        let hours = |quantile| match quantile {
            Quantile::At(time) => format!("{:.2}", time.hours()),
            Quantile::After(limit) => format!("{LATER} {:.1}", limit.hours()),
        };
        let mut cells: Vec<String> = columns(distribution, level).map(hours).collect();
        let to = cells.pop().unwrap_or_default();
        let from = cells.pop().unwrap_or_default();
        let mut row: Vec<Cell> = vec![event.into()];
        row.extend(cells.into_iter().map(Cell::from));
        let is_late = from.starts_with(LATER);
        row.push(if is_late { from.into() } else { format!("{from} to {to}").into() });
        row.push(format!("{} of {}", distribution.n_happened(), distribution.n_forks()).into());
        table.push(row);
    }
    table
}

/// What was forecast, and what was assumed.
fn words(found: &Forecast, level: f64, settings: &Settings) -> String {
    let (at_h, arrival_h) = (found.at.hours(), found.arrival.hours());
    let started = match found.started {
        Some(started) => format!("it started after {:.2} h", started.hours()),
        None => "it has not started".to_owned(),
    };
    let mut lines = vec![
        format!(
            "\nJob {} at {at_h:.2} h from the trace's first arrival. It arrived after {arrival_h:.2} h; {started}.",
            found.job
        ),
        format!(
            "The interval leaves out {:.1} % of the forks before it, and as many after it.",
            50.0 * (1.0 - level)
        ),
    ];
    match &found.drawn_from {
        None => lines.push("Assumed: every job takes the steps that the trace says.".to_owned()),
        Some(from) => lines.extend(drawn_words(from)),
    }
    match &found.blocks {
        None => lines.push("No job arrives any more.".to_owned()),
        Some(blocks) => lines.push(format!(
            "Jobs arrive as in {} blocks of {:.2} h before then, drawn at random: {} jobs in all of them.",
            blocks.n_blocks,
            blocks.length.hours(),
            blocks.n_jobs
        )),
    }
    lines.push(format!("A fork ends {:.0} h after then at the latest.", settings.limit.hours()));
    lines.join("\n")
}

/// Of which jobs steps were drawn.
fn drawn_words(from: &DrawnFrom) -> Vec<String> {
    let DrawnFrom { n_ended, n_active, likeness, repeats, n_effective } = from;
    let mut counts = Vec::new();
    if let Some(half) = likeness.halves_after_jobs {
        counts.push(format!("half for every {half} jobs that arrived between the two"));
    }
    let others = [("type or scale factor", likeness.other_type), ("owner", likeness.other_owner)];
    counts.extend(
        others
            .iter()
            .filter(|(_, part)| *part < 1.0)
            .map(|(of, part)| format!("{part} if it is of another {of}")),
    );
    let how = if counts.is_empty() {
        "Each counts the same: no other weights are known to foretell better.".to_owned()
    } else {
        format!(
            "What each counts would have foretold the last jobs best: {}. They say as much as {n_effective:.0} that count the same.",
            counts.join(", ")
        )
    };
    let from = format!(
        "Assumed: jobs take as many steps as others took: {n_ended} ended, and {n_active} active ones count for what they have run."
    );
    let mut lines = vec![from, how];
    if *repeats > 0.0 {
        lines.push(format!(
            "Of active jobs that arrived one after the other, {:.0} % are drawn as short or as long among all as the one before: the rank correlation of those that ended.",
            100.0 * repeats
        ));
    }
    lines
}
