//! The forecast of a job of a trace, for people and programs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::shown::{
    Assumed, Times, assumed_words, beside_of, for_people, for_programs, happenings, interval_words,
};
use crate::Session;
use crate::exit::Failure;
use crate::output::{Answer, OutputFormat};
use apportion::spec::run::RunSpec;
use apportion::units::{Decimals, Seconds};
use apportion_studies::forecast::{Forecast, Settings};
use apportion_studies::report::forecast::{self as page, Beside};
use apportion_studies::sweep::Run;

/// The forecast of a job, as `apportion forecast --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Forecasted<'a> {
    /// The job: its id in the trace, or its position in order of arrival.
    job: &'a str,
    /// The time of the forecast, from the trace's first arrival.
    #[schemars(extend("x-unit" = "s"))]
    at_s: f64,
    /// The arrival of the job, from the trace's first arrival.
    #[schemars(extend("x-unit" = "s"))]
    arrival_s: f64,
    /// The first start of the job, from the trace's first arrival; null if it has had no workers by then.
    #[schemars(extend("x-unit" = "s"))]
    started_s: Option<f64>,
    /// The time until its first start; null if it has had workers.
    start: Option<Times>,
    /// The time until its end.
    end: Times,
    /// The assumptions.
    assumed: Assumed,
    /// The identity of the run: SHA-256 of its specification and its data, in hexadecimal.
    digest: &'a str,
    /// SHA-256 of the data that it read, in hexadecimal, by the name of the data.
    data: &'a BTreeMap<String, String>,
    /// The whole specification of the run.
    spec: &'a RunSpec,
}

impl Answer for Forecasted<'_> {
    const KIND: &'static str = "forecast";
}

/// Prints a forecast with the interval of a level.
pub(super) fn show(
    session: &Session,
    run: &Run,
    found: &Forecast,
    level: f64,
    settings: &Settings,
) -> Result<(), Failure> {
    match session.output.format() {
        OutputFormat::Json => session.output.answer(&Forecasted {
            job: &found.job,
            at_s: found.at.get(),
            arrival_s: found.arrival.get(),
            started_s: found.started.map(Seconds::get),
            start: found.start.as_ref().map(|start| Times::of(start, level)),
            end: Times::of(&found.end, level),
            assumed: Assumed::of(found, settings),
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

/// The numbers that a page draws.
pub(super) fn on_page(found: &Forecast) -> page::Forecasted {
    let times = happenings(found).map(|(name, distribution)| (name, distribution.times().to_vec()));
    page::Forecasted {
        job: found.job.clone(),
        at: found.at,
        n_forks: found.end.n_forks(),
        times: times.collect(),
    }
}

/// The texts of a page in addition to the forecast's own numbers.
pub(super) fn beside(
    run: &Run,
    found: &Forecast,
    level: f64,
    settings: &Settings,
) -> Result<Beside, Failure> {
    let text = words(found, level, settings);
    beside_of(run, for_people(found, level), &text)
}

/// The forecast and its assumptions, in words.
fn words(found: &Forecast, level: f64, settings: &Settings) -> String {
    let (at_h, arrival_h) = (found.at.hours(), found.arrival.hours());
    let started = match found.started {
        Some(started) => format!("it started after {} h", Decimals(started.hours(), 2)),
        None => "it has not started".to_owned(),
    };
    let mut lines = vec![
        format!(
            "\nJob {} at {at_h:.2} h from the trace's first arrival. It arrived after {arrival_h:.2} h; {started}.",
            found.job
        ),
        interval_words(level),
    ];
    if found.drawn_from.is_none() {
        lines.push("Assumed: every job takes the steps that the trace says.".to_owned());
    }
    lines.extend(assumed_words(found, settings));
    lines.join("\n")
}
