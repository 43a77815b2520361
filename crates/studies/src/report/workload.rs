//! Page about a workload: arrivals, running times and sizes of its jobs, and their load.

use apportion_logs::load::{PERCENTILES, Shape};

use super::chart::{Axis, Chart, Figure, Kind, Mark, Series};
use super::number::brief;
use super::page::{Item, NamedTable, Page, Section};
use super::table::Table;

const HOUR_S: f64 = 3600.0;

/// Numbers of a workload that its page shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name of the workload.
    pub name: String,
    /// Facts about its origin: log, form, throughputs, seed, version.
    pub facts: Vec<(String, String)>,
    /// Tables of rows that were left out or are doubtful; empty for a trace.
    pub tables: Vec<NamedTable>,
    /// Notes above the tables.
    pub notes: Vec<String>,
    /// Statistics of its jobs; none if there are none.
    pub shape: Option<Shape>,
    /// Number of jobs by class of running time: lower end of the class, s, and jobs; 0 for those below 1 s.
    pub durations: Vec<(f64, usize)>,
    /// Number of workers of the cluster that it is compared with.
    pub n_workers: Option<u64>,
}

/// The page about a workload.
pub fn page(workload: &Workload) -> Page {
    let mut sections = Vec::new();
    if let Some(shape) = &workload.shape {
        sections.push(Section {
            title: "What the jobs are like".to_owned(),
            text: vec![sentence(shape)],
            items: pictures(workload, shape),
        });
    }
    if !workload.tables.is_empty() {
        sections.push(Section {
            title: "What became of the log".to_owned(),
            text: workload.notes.clone(),
            items: workload.tables.iter().cloned().map(Item::Table).collect(),
        });
    }
    let n_jobs = workload.shape.as_ref().map_or(0, |shape| shape.n_jobs);
    Page {
        title: format!("A workload: {}", workload.name),
        subtitle: jobs(n_jobs),
        about: workload.facts.clone(),
        facts: Vec::new(),
        sections,
    }
}

/// Summary of the jobs in a sentence.
pub fn sentence(shape: &Shape) -> String {
    let rate = shape.arrivals_per_h.map_or_else(String::new, |rate| format!(", {} jobs/h", brief(rate)));
    let busy = shape.mean_busy_workers.map_or_else(String::new, |busy| {
        format!(" Run as they arrive, they keep {} workers busy on average.", brief(busy))
    });
    format!(
        "{} over {}{rate}; the mean running time is {}; together they take {} worker-hours.{busy}",
        jobs(shape.n_jobs),
        from(shape.span_s),
        from(shape.mean_duration_s),
        brief(shape.worker_hours),
    )
}

/// Table of the jobs' statistics, for people.
pub fn numbers(shape: &Shape) -> Table {
    let mut table = Table::new(["number", "value"]);
    let mut push = |name: String, value: String| table.push(vec![name.into(), value.into()]);
    push("from the first arrival to the last".to_owned(), from(shape.span_s));
    if let Some(rate) = shape.arrivals_per_h {
        push("arrivals".to_owned(), format!("{} jobs/h", brief(rate)));
    }
    push("mean running time".to_owned(), from(shape.mean_duration_s));
    for (percent, duration_s) in PERCENTILES.iter().zip(shape.duration_quantiles_s) {
        push(format!("running time that {percent} % do not exceed"), from(duration_s));
    }
    push("work of all jobs".to_owned(), format!("{} worker-hours", brief(shape.worker_hours)));
    if let Some(busy) = shape.mean_busy_workers {
        push("busy on average, if jobs ran as they arrive".to_owned(), format!("{} workers", brief(busy)));
    }
    for (size, n_jobs) in &shape.sizes {
        push(format!("of scale factor {size}"), jobs(*n_jobs));
    }
    table
}

/// A number of jobs, in words.
fn jobs(n: usize) -> String {
    if n == 1 { "1 job".to_owned() } else { format!("{n} jobs") }
}

fn pictures(workload: &Workload, shape: &Shape) -> Vec<Item> {
    let bin_h = shape.bin_s / HOUR_S;
    let subtitle = format!("in spans of {}", from(shape.bin_s));
    let over_time = |name: &str, title: &str, y: &str, series: Vec<Series>| {
        alone(Chart {
            name: name.to_owned(),
            title: title.to_owned(),
            subtitle: subtitle.clone(),
            kind: Kind::Lines,
            x: Axis::new("time after the first arrival (h)"),
            y: Axis::new(y).from_zero(),
            rows: Vec::new(),
            series,
            absent: Vec::new(),
            published: Vec::new(),
        })
    };
    let line = |name: &str, style: usize, values: Vec<f64>| {
        let mark = |(at, value): (usize, f64)| Some(Mark::at((at as f64 + 0.5) * bin_h, value));
        Series { name: name.to_owned(), style, marks: values.into_iter().enumerate().map(mark).collect() }
    };
    let arrivals = shape.arrivals.iter().map(|n| *n as f64).collect();
    let mut busy = vec![line("busy, if jobs ran as they arrive", 0, shape.busy.clone())];
    if let Some(n_workers) = workload.n_workers {
        busy.push(line("workers of the cluster", 1, vec![n_workers as f64; shape.busy.len()]));
    }
    let bars = |name: &str, title: &str, y: &str, rows: Vec<(String, usize)>| {
        alone(Chart {
            name: name.to_owned(),
            title: title.to_owned(),
            subtitle: jobs(shape.n_jobs),
            kind: Kind::Bars,
            x: Axis::new("jobs").from_zero(),
            y: Axis::new(y),
            series: vec![Series {
                name: "jobs".to_owned(),
                style: 0,
                marks: rows.iter().map(|(_, n)| Some(Mark::at(0.0, *n as f64))).collect(),
            }],
            rows: rows.into_iter().map(|(label, _)| (label, 0)).collect(),
            absent: Vec::new(),
            published: Vec::new(),
        })
    };
    let durations = workload.durations.iter().map(|(from_s, n)| (class(*from_s), *n)).collect();
    let sizes = shape.sizes.iter().map(|(size, n)| (size.to_string(), *n)).collect();
    let table = NamedTable {
        name: "numbers".to_owned(),
        title: "The jobs in numbers".to_owned(),
        table: numbers(shape),
        folded: false,
    };
    vec![
        Item::Figure(over_time(
            "arrivals",
            "Arrivals over time",
            "jobs",
            vec![line("arrivals", 0, arrivals)],
        )),
        Item::Figure(over_time("load", "Load over time", "workers", busy)),
        Item::Figure(bars("durations", "Running times", "running time", durations)),
        Item::Figure(bars("sizes", "Sizes", "workers that a job needs", sizes)),
        Item::Table(table),
    ]
}

fn alone(chart: Chart) -> Figure {
    Figure { choice: String::new(), variants: vec![(String::new(), chart)], first: 0, note: String::new() }
}

/// Name of a class of running times, by its lower end, s.
pub fn class(from_s: f64) -> String {
    if from_s < 1.0 { "below 1 s".to_owned() } else { format!("from {}", from(from_s)) }
}

/// Time in a suitable unit.
pub fn from(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 60.0 => (s, "s"),
        s if s < HOUR_S => (s / 60.0, "min"),
        s => (s / HOUR_S, "h"),
    };
    format!("{} {unit}", brief(value))
}
