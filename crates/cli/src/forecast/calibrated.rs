//! The calibration of forecasts, for people and programs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::shown::beside_of;
use crate::Session;
use crate::exit::Failure;
use crate::output::{Answer, Cell, OutputFormat, Table};
use apportion::spec::run::RunSpec;
use apportion_studies::forecast::calibration::{Happening, Held};
use apportion_studies::forecast::{Calibration, Plan, Settings};
use apportion_studies::report::forecast::{self as page, Beside};
use apportion_studies::sweep::Run;

/// The calibration of a trace's forecasts, as `apportion forecast --calibrate --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Calibrated<'a> {
    /// Times at which jobs were active.
    n_times: usize,
    /// Forks at each time.
    n_forks: usize,
    /// The first time, from the trace's first arrival.
    #[schemars(extend("x-unit" = "s"))]
    from_s: f64,
    /// The last time that is allowed.
    #[schemars(extend("x-unit" = "s"))]
    to_s: f64,
    /// The interval between two times.
    #[schemars(extend("x-unit" = "s"))]
    every_s: f64,
    /// Forecasts of ends in which more than a twentieth of the forks did not reach the end.
    n_censored: usize,
    /// Counts by forecast event and level. Forecasts of one trace are not independent of one another.
    levels: Vec<LevelRow>,
    /// The identity of the run: SHA-256 of its specification and its data, in hexadecimal.
    digest: &'a str,
    /// SHA-256 of the data that it read, in hexadecimal, by the name of the data.
    data: &'a BTreeMap<String, String>,
    /// The whole specification of the run.
    spec: &'a RunSpec,
}

impl Answer for Calibrated<'_> {
    const KIND: &'static str = "forecast-calibration";
}

/// The success of intervals of a level.
#[derive(Serialize, JsonSchema)]
struct LevelRow {
    /// The forecast event: `start` or `end`.
    event: &'static str,
    /// The nominal level, from 0 to 1.
    level: f64,
    /// The number of forecasts.
    n: usize,
    /// The part of the forecasts, from 0 to 1, in which the event happened within the interval.
    held: f64,
    /// The standard error of `held`, half of Wilson's interval, as if forecasts were independent: the true one is larger.
    standard_error: f64,
    /// The part of the forecasts in which the event happened before the interval.
    before: f64,
    /// The part of the forecasts in which the event happened after the interval.
    after: f64,
    /// The mean length of the intervals; times after the limit count as the limit.
    #[schemars(extend("x-unit" = "s"))]
    width_s: f64,
}

impl LevelRow {
    fn of(held: &Held) -> Self {
        let part = |n: usize| n as f64 / held.n as f64;
        Self {
            event: match held.happening {
                Happening::Start => "start",
                Happening::End => "end",
            },
            level: held.level,
            n: held.n,
            held: held.part(),
            standard_error: held.standard_error(),
            before: part(held.n_before),
            after: part(held.n_after),
            width_s: held.width.get(),
        }
    }
}

/// Prints a calibration.
pub(super) fn show(
    session: &Session,
    run: &Run,
    found: &Calibration,
    plan: &Plan,
    settings: &Settings,
) -> Result<(), Failure> {
    let levels: Vec<LevelRow> = found.rows().iter().map(LevelRow::of).collect();
    match session.output.format() {
        OutputFormat::Json => session.output.answer(&Calibrated {
            n_times: found.n_times,
            n_forks: settings.n_forks,
            from_s: plan.from.get(),
            to_s: plan.to.get(),
            every_s: plan.every.get(),
            n_censored: found.n_censored,
            levels,
            digest: &run.digest,
            data: &run.data,
            spec: &run.spec,
        }),
        OutputFormat::Csv => session.output.table(&for_programs(&levels)),
        OutputFormat::Table => {
            session.output.table(&for_people(&levels))?;
            session.output.words(&words(found, plan, settings))
        }
    }
}

/// The numbers that a page draws.
pub(super) fn on_page(found: &Calibration, settings: &Settings) -> page::Calibrated {
    let rows: Vec<LevelRow> = found.rows().iter().filter(|held| held.n > 0).map(LevelRow::of).collect();
    let of = |event: &'static str| {
        let parts = rows.iter().filter(|row| row.event == event).map(|row| (row.level, row.held));
        (event, parts.collect())
    };
    let held = vec![of("start"), of("end")];
    page::Calibrated { n_times: found.n_times, n_forks: settings.n_forks, held }
}

/// The texts of a page in addition to the numbers of a calibration.
pub(super) fn beside(
    run: &Run,
    found: &Calibration,
    plan: &Plan,
    settings: &Settings,
) -> Result<Beside, Failure> {
    let levels: Vec<LevelRow> = found.rows().iter().map(LevelRow::of).collect();
    beside_of(run, for_people(&levels), &words(found, plan, settings))
}

fn for_programs(levels: &[LevelRow]) -> Table {
    let mut table =
        Table::new(["event", "level", "n", "held", "standard_error", "before", "after", "width_h"]);
    for row in levels {
        let number = |value| Cell::Number(value, 3);
        let mut cells = vec![row.event.into(), number(row.level), Cell::Count(row.n as u64)];
        cells.extend([row.held, row.standard_error, row.before, row.after, row.width_s / 3600.0].map(number));
        table.push(cells);
    }
    table
}

fn for_people(levels: &[LevelRow]) -> Table {
    let names = [
        "event",
        "interval, %",
        "n",
        "held, %",
        "± (one s.e.)",
        "before it, %",
        "after it, %",
        "mean length, h",
    ];
    let mut table = Table::new(names);
    for row in levels {
        let percent = |part: f64| Cell::Number(100.0 * part, 1);
        let mut cells = vec![row.event.into(), Cell::Number(100.0 * row.level, 0), Cell::Count(row.n as u64)];
        cells.extend([row.held, row.standard_error, row.before, row.after].map(percent));
        cells.push(Cell::Number(row.width_s / 3600.0, 2));
        table.push(cells);
    }
    table
}

fn words(found: &Calibration, plan: &Plan, settings: &Settings) -> String {
    let mut lines = vec![format!(
        "\nForecasts at {} times from {:.2} h to {:.2} h, of up to {} jobs each, by {} forks.",
        found.n_times,
        plan.from.hours(),
        plan.to.hours(),
        plan.n_jobs,
        settings.n_forks
    )];
    let most = "Forecasts of one trace are not independent of one another: the true errors are larger than those shown.";
    lines.push(most.to_owned());
    if found.n_censored > 0 {
        lines.push(format!(
            "In {} forecasts of ends more than 5 % of the forks did not come to it within {:.0} h.",
            found.n_censored,
            settings.limit.hours()
        ));
    }
    lines.join("\n")
}
