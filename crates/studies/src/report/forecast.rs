//! The page about a forecast: when a job will start and end over all forks, or how often such forecasts held.

use apportion::metrics::cdf::Cdf;
use apportion::units::Seconds;

use super::chart::{Axis, Chart, Figure, Kind, Mark, Series};
use super::page::{Item, NamedTable, Page, Section};
use super::table::Table;
use crate::forecast::calibration::{Happening, Held, LEVELS};
use crate::forecast::{Calibration, Forecast};

/// What is shown beside the numbers of a forecast.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// The numbers as a table.
    pub table: Table,
    /// What was forecast and assumed, a paragraph each.
    pub text: Vec<String>,
    /// What a reader is to know first: policy, trace, seed, version.
    pub about: Vec<(String, String)>,
    /// Where the numbers come from.
    pub facts: Vec<(String, String)>,
}

/// The page about the forecast of one job.
pub fn page(found: &Forecast, beside: Beside) -> Page {
    let happenings = found.start.iter().map(|start| ("start", start)).chain([("end", &found.end)]);
    let series = happenings.enumerate().map(|(style, (name, distribution))| {
        let hours = distribution.times().iter().copied().map(Seconds::hours).collect();
        let cdf = Cdf::of_part(hours, distribution.n_forks());
        let points = cdf.into_iter().flat_map(|cdf| cdf.points);
        let marks = points.map(|(x, y)| Some(Mark::at(x, y))).collect();
        Series { name: name.to_owned(), style, marks }
    });
    let series: Vec<Series> = series.collect();
    let n_forks = found.end.n_forks();
    let what = if found.start.is_some() { "start and end" } else { "end" };
    let chart = Chart {
        name: "forecast".to_owned(),
        title: format!("When job {} will {what}", found.job),
        subtitle: format!(
            "{n_forks} forks, {} of which came to the end within the limit: the curve stays as far below 1 as others did not",
            found.end.n_happened()
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

/// The page about how often forecasts held.
pub fn calibration_page(found: &Calibration, n_forks: usize, beside: Beside) -> Page {
    let rows = found.rows();
    let of = |happening: Happening, name: &str, style: usize| Series {
        name: name.to_owned(),
        style,
        marks: rows.iter().filter(|held| held.happening == happening).map(part).collect(),
    };
    let promised = LEVELS.iter().map(|level| Some(Mark::at(100.0 * level, 100.0 * level))).collect();
    let series = vec![
        of(Happening::Start, "start", 0),
        of(Happening::End, "end", 1),
        Series { name: "as promised".to_owned(), style: 6, marks: promised },
    ];
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
        format!("forecasts at {} times, by {n_forks} forks each", found.n_times),
        ("Intervals that held", "How this was found", chart),
        beside,
    )
}

fn part(held: &Held) -> Option<Mark> {
    (held.n > 0).then(|| Mark::at(100.0 * held.level, 100.0 * held.part()))
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
