//! The parts that all forecasts have in common: times, and assumptions.

use schemars::JsonSchema;
use serde::Serialize;

use crate::command_line::made_now;
use crate::exit::Failure;
use crate::output::{Cell, Table};
use crate::report::{about, facts};
use apportion::units::{Decimals, Seconds};
use apportion_studies::forecast::likeness::Likeness;
use apportion_studies::forecast::single::DrawnFrom;
use apportion_studies::forecast::{Distribution, Forecast, Quantile, Settings};
use apportion_studies::report::forecast::Beside;
use apportion_studies::sweep::Run;

/// The quantiles that are always shown.
const PARTS: [f64; 3] = [0.1, 0.5, 0.9];

/// The words before the limit for a time after it.
const LATER: &str = "more than";

/// The time until an event, over all forks.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Times {
    /// The number of forks.
    n_forks: usize,
    /// The number of forks in which the event happened within the limit. In the others it happens later.
    n_happened: usize,
    /// Quantiles, in order.
    quantiles: Vec<QuantileRow>,
    /// The interval asked for.
    interval: IntervalRow,
}

/// A quantile.
#[derive(Serialize, JsonSchema)]
struct QuantileRow {
    /// The part of the forks in which the event has happened by then, from 0 to 1.
    part: f64,
    /// The time from that of the forecast; null if it is after the limit.
    #[schemars(extend("x-unit" = "s"))]
    time_s: Option<f64>,
}

/// An interval that leaves out as many forks before as after.
#[derive(Serialize, JsonSchema)]
struct IntervalRow {
    /// The part of the forks that it holds, from 0 to 1.
    level: f64,
    /// Its start, from the time of the forecast; null if it is after the limit.
    #[schemars(extend("x-unit" = "s"))]
    from_s: Option<f64>,
    /// Its end, from the time of the forecast; null if it is after the limit.
    #[schemars(extend("x-unit" = "s"))]
    to_s: Option<f64>,
}

/// The assumptions of a forecast.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Assumed {
    /// Jobs that were active at the time of the forecast, this one among them.
    n_active: usize,
    /// The jobs from which steps were drawn; null if they were those of the trace.
    drawn_from: Option<DrawnRow>,
    /// The blocks of time from which later arrivals were drawn; null if no job arrived.
    blocks: Option<BlocksRow>,
    /// The longest time that a fork went on after the time of the forecast.
    #[schemars(extend("x-unit" = "s"))]
    limit_s: f64,
}

/// Jobs from which steps were drawn.
#[derive(Serialize, JsonSchema)]
struct DrawnRow {
    /// The number of these that had ended.
    n_ended: usize,
    /// The number of these that had not ended: the steps that they had run count.
    n_active: usize,
    /// The likeness by which some of them count more: the one that would have predicted the last of them best.
    likeness: Likeness,
    /// The part of the forks, from 0 to 1, in which any two active jobs are drawn at the same position among all. It depends on how
    /// much jobs that arrived near one another were short or long together, and on how few had ended.
    shared: f64,
    /// The number of equally weighted jobs with as much information on this job's steps as those that had ended.
    n_effective: f64,
}

/// Blocks of time from which later arrivals were drawn.
#[derive(Serialize, JsonSchema)]
struct BlocksRow {
    /// The number of blocks.
    n_blocks: usize,
    /// The length of each.
    #[schemars(extend("x-unit" = "s"))]
    length_s: f64,
    /// The number of jobs in all of them.
    n_jobs: usize,
}

fn seconds(quantile: Quantile) -> Option<f64> {
    match quantile {
        Quantile::At(time) => Some(time.get()),
        Quantile::After(_) => None,
    }
}

impl Times {
    pub(crate) fn of(distribution: &Distribution, level: f64) -> Self {
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
    pub(crate) fn of(found: &Forecast, settings: &Settings) -> Self {
        let drawn_from = found.drawn_from.map(|from| DrawnRow {
            n_ended: from.n_ended,
            n_active: from.n_active,
            likeness: from.likeness,
            shared: from.shared,
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

/// The texts of a page in addition to the numbers of a run's forecast.
pub(super) fn beside_of(run: &Run, table: Table, text: &str) -> Result<Beside, Failure> {
    let spec =
        serde_json::to_value(&run.spec).map_err(|error| Failure::Bug { message: error.to_string() })?;
    let version = env!("CARGO_PKG_VERSION");
    let data = run.data.iter().map(|(name, digest)| (name.clone(), digest.clone()));
    Ok(Beside {
        table,
        text: text.trim().lines().map(str::to_owned).collect(),
        about: made_now().chain(about(version, &spec)).collect(),
        facts: facts(version, &run.digest, &spec, data),
    })
}

/// The distributions of start and end, if these are still to come.
pub(super) fn happenings(found: &Forecast) -> impl Iterator<Item = (&'static str, &Distribution)> {
    found.start.iter().map(|start| ("start", start)).chain([("end", &found.end)])
}

/// The quantiles and the interval of a distribution, in columns.
fn columns(distribution: &Distribution, level: f64) -> impl Iterator<Item = Quantile> {
    let quantiles = PARTS.map(|part| distribution.quantile(part));
    quantiles.into_iter().chain(distribution.interval(level))
}

/// A forecast in columns, for programs.
pub(crate) fn for_programs(found: &Forecast, level: f64, settings: &Settings) -> Table {
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
            Quantile::At(time) => Cell::Number(time.hours(), 6),
            Quantile::After(_) => Cell::Empty,
        };
        let (n_forks, n_happened) = (distribution.n_forks() as u64, distribution.n_happened() as u64);
        let mut row = vec![event.into(), Cell::Count(n_forks), Cell::Count(n_happened)];
        row.extend(columns(distribution, level).map(hours));
        row.extend([Cell::Number(level, 2), Cell::Number(settings.limit.hours(), 6)]);
        table.push(row);
    }
    table
}

/// The unit in which people read times up to this one: its name, and its length.
fn unit(longest: Seconds) -> (&'static str, Seconds) {
    let (minute, hour) = (Seconds::new(60.0), Seconds::new(3600.0));
    match longest {
        time if time < minute * 3.0 => ("s", Seconds::new(1.0)),
        time if time < hour * 3.0 => ("min", minute),
        _ => ("h", hour),
    }
}

/// A time in words.
pub(crate) fn in_words(time: Seconds) -> String {
    let (name, length) = unit(time);
    format!("{} {name}", Decimals(time / length, 2))
}

/// A forecast in columns, for people.
pub(crate) fn for_people(found: &Forecast, level: f64) -> Table {
    let percent = (1e4 * level).round() / 100.0;
    let interval = format!("{percent} % interval");
    let all = happenings(found).flat_map(|(_, distribution)| columns(distribution, level));
    let longest =
        all.map(|(Quantile::At(time) | Quantile::After(time))| time).fold(Seconds::ZERO, Seconds::max);
    let (name, length) = unit(longest);
    let from_then = format!("{name} from then");
    let mut table = Table::new([&*from_then, "10 %", "50 %", "90 %", &*interval, "forks that came to it"]);
    for (event, distribution) in happenings(found) {
        let told = |quantile| match quantile {
            Quantile::At(time) => Decimals(time / length, 2).to_string(),
            Quantile::After(limit) => format!("{LATER} {}", Decimals(limit / length, 1)),
        };
        let mut cells: Vec<String> = columns(distribution, level).map(told).collect();
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

/// The assumptions on drawn steps and on later arrivals, in lines.
pub(crate) fn assumed_words(found: &Forecast, settings: &Settings) -> Vec<String> {
    let mut lines = found.drawn_from.as_ref().map(drawn_words).unwrap_or_default();
    match &found.blocks {
        None => lines.push("No job arrives any more.".to_owned()),
        Some(blocks) => lines.push(format!(
            "Jobs arrive as in {} blocks of {} before then, drawn at random: {} jobs in all of them.",
            blocks.n_blocks,
            in_words(blocks.length),
            blocks.n_jobs
        )),
    }
    lines.push(format!("A fork ends {} after then at the latest.", in_words(settings.limit)));
    lines
}

/// The meaning of an interval of a level, in words.
pub(crate) fn interval_words(level: f64) -> String {
    format!(
        "The interval leaves out {:.1} % of the forks before it, and as many after it.",
        50.0 * (1.0 - level)
    )
}

/// The jobs from which steps were drawn, in lines.
fn drawn_words(from: &DrawnFrom) -> Vec<String> {
    let DrawnFrom { n_ended, n_active, likeness, shared, n_effective } = from;
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
    let alike = format!(
        "Any two active jobs are drawn as short or as long among all in {:.1} % of the forks: by how much jobs that arrived near one another were short or long together, and by how few ended.",
        100.0 * shared
    );
    vec![from, how, alike]
}
