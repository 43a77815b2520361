//! Page about a forecast: the start and end of a job over all forks, or how often such forecasts held.

use apportion::metrics::cdf::Cdf;
use apportion::units::Seconds;

use super::chart::{Axis, Chart, Figure, Kind, Mark, Series};
use super::page::{Item, NamedTable, Page, Section};
use super::table::Table;

/// The forecast of one job.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecasted {
    /// Name of the job.
    pub job: String,
    /// Instant of the forecast, from the trace's first arrival.
    pub at: Seconds,
    /// Number of forks.
    pub n_forks: usize,
    /// Times from the instant to each event, `start` and `end` or `end` alone, of the forks in which it came.
    pub times: Vec<(&'static str, Vec<Seconds>)>,
}

/// Results of a calibration of forecasts.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    /// Number of instants at which there were forecasts.
    pub n_times: usize,
    /// Number of forks of each forecast.
    pub n_forks: usize,
    /// Coverage by event: the levels of the intervals, and the parts of forecasts that held.
    pub held: Vec<(&'static str, Vec<(f64, f64)>)>,
}

/// Tables and texts beside the charts of a forecast.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// Table of the numbers.
    pub table: Table,
    /// Paragraphs about what was forecast and assumed.
    pub text: Vec<String>,
    /// Facts that come first: policy, trace, seed, version.
    pub about: Vec<(String, String)>,
    /// Facts about the origin of the numbers.
    pub facts: Vec<(String, String)>,
}

/// The page about the forecast of one job.
pub fn page(found: &Forecasted, beside: Beside) -> Page {
    let n_forks = found.n_forks;
    let series = found.times.iter().enumerate().map(|(style, (name, times))| {
        let cdf = Cdf::of_part(times.iter().copied().map(Seconds::hours).collect(), n_forks);
        let points = cdf.into_iter().flat_map(|cdf| cdf.points);
        Series { name: (*name).to_owned(), style, marks: points.map(|(x, y)| Some(Mark::at(x, y))).collect() }
    });
    let series: Vec<Series> = series.collect();
    let what = found.times.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" and ");
    let n_ended = found.times.last().map_or(0, |(_, times)| times.len());
    let chart = Chart {
        name: "forecast".to_owned(),
        title: format!("When job {} will {what}", found.job),
        subtitle: format!(
            "{n_forks} forks, {n_ended} of which came to the end within the limit: a curve stays as far below 1 as others did not"
        ),
        kind: Kind::Steps,
        x: Axis::new(format!("time after {:.2} h (h)", found.at.hours())).from_zero(),
        y: Axis::new("fraction of forks").from_zero(),
        rows: Vec::new(),
        series,
        absent: Vec::new(),
        published: Vec::new(),
    };
    sections(
        format!("A forecast: job {}", found.job),
        format!("at {:.2} h from the trace’s first arrival, by {n_forks} forks", found.at.hours()),
        (&*format!("When it will {what}"), "What was assumed", chart),
        beside,
    )
}

/// The page about a calibration of forecasts.
pub fn calibration_page(found: &Calibrated, beside: Beside) -> Page {
    let percent = |x: f64, y: f64| Some(Mark::at(100.0 * x, 100.0 * y));
    let series = found.held.iter().enumerate().map(|(style, (name, parts))| Series {
        name: (*name).to_owned(),
        style,
        marks: parts.iter().map(|(level, part)| percent(*level, *part)).collect(),
    });
    let levels = found.held.iter().flat_map(|(_, parts)| parts).map(|(level, _)| *level);
    let mut levels: Vec<f64> = levels.collect();
    levels.sort_unstable_by(f64::total_cmp);
    levels.dedup();
    let promised = levels.iter().map(|level| percent(*level, *level)).collect();
    let promised = Series { name: "as promised".to_owned(), style: 6, marks: promised };
    let series: Vec<Series> = series.chain([promised]).collect();
    let chart = Chart {
        name: "calibration".to_owned(),
        title: "How many intervals held what happened".to_owned(),
        subtitle: "without their standard errors, which are in the table".to_owned(),
        kind: Kind::Lines,
        x: Axis::new("interval (%)"),
        y: Axis::new("held (%)").from_zero(),
        rows: Vec::new(),
        series,
        absent: Vec::new(),
        published: Vec::new(),
    };
    sections(
        "How well forecasts hold".to_owned(),
        format!("forecasts at {} times, by {} forks each", found.n_times, found.n_forks),
        ("Intervals that held", "How this was found", chart),
        beside,
    )
}

fn sections(
    title: String,
    subtitle: String,
    (heading, text_heading, chart): (&str, &str, Chart),
    beside: Beside,
) -> Page {
    let Beside { table, text, about, facts } = beside;
    let figure = Figure {
        choice: String::new(),
        variants: vec![(String::new(), chart)],
        first: 0,
        note: String::new(),
    };
    let numbers =
        NamedTable { name: "numbers".to_owned(), title: "In numbers".to_owned(), table, folded: false };
    let first = Section {
        title: heading.to_owned(),
        text: Vec::new(),
        items: vec![Item::Figure(figure), Item::Table(numbers)],
    };
    let assumed = Section { title: text_heading.to_owned(), text, items: Vec::new() };
    Page { title, subtitle, about, facts, sections: vec![first, assumed] }
}
