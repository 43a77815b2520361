//! The page about one simulation.

use std::collections::BTreeSet;

use apportion::cluster::Cluster;
use apportion::metrics::cdf::Cdf;
use apportion::metrics::table::DETAILS;
use apportion::metrics::timeline::Timeline;
use apportion::metrics::{JobColumn, JobNumbers, JobRecord, JobValue, METRICS, Metric, Summary, job_columns};
use apportion::spec::snapshot::Label;
use apportion::units::Seconds;

use super::chart::{Axis, Chart, Figure, Kind, Mark, Series};
use super::gantt::Gantt;
use super::owners;
use super::page::{Item, NamedTable, Page, Section};
use super::table::{Cell, Table};

const HOUR_S: f64 = 3600.0;

/// Numbers of one simulation that its page shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Name of the policy.
    pub policy: String,
    /// The cluster in words.
    pub cluster: String,
    /// Summary of the simulation.
    pub summary: Summary,
    /// Number of jobs that were to be measured, where it is known; more than ended where the simulation was stopped.
    pub n_measured: Option<usize>,
    /// Cluster and timeline, where events were kept.
    pub course: Option<(Cluster, Timeline)>,
    /// Facts about its origin: version, seed, spec, digests.
    pub facts: Vec<(String, String)>,
    /// Facts that come first: version, semantics, generator.
    pub about: Vec<(String, String)>,
}

/// The page about a simulation.
pub fn page(run: &Run) -> Page {
    let summary = &run.summary;
    let n_of = run.n_measured.unwrap_or(0).max(summary.jobs.len());
    let mut sections = vec![result(summary, n_of)];
    match &run.course {
        Some((cluster, timeline)) => sections.push(over_time(cluster, timeline)),
        None => sections.push(Section {
            title: "Over time".to_owned(),
            text: vec![
                "Not known: this page was made from the result alone. `apportion simulate … --events FILE` keeps what \
                 happened, and `apportion report FILE` shows it."
                    .to_owned(),
            ],
            items: Vec::new(),
        }),
    }
    sections.push(jobs_and_workers(run, n_of));
    sections.push(Section {
        title: "Jobs".to_owned(),
        text: Vec::new(),
        items: vec![Item::Table(NamedTable {
            name: "jobs".to_owned(),
            title: "Every measured job that ended".to_owned(),
            table: jobs(&summary.jobs),
            folded: true,
        })],
    });
    let n_jobs = summary.jobs.len();
    let measured = match n_of - n_jobs {
        0 => format!("{n_jobs} measured jobs"),
        n_left => {
            format!("stopped with {n_left} of {n_of} measured jobs not done, so times are of the others")
        }
    };
    let is_whole = n_of == n_jobs;
    let makespan = summary.makespan.filter(|_| is_whole);
    let makespan = makespan.map(|makespan| format!("; makespan {:.1} h", makespan.hours()));
    Page {
        title: format!("One simulation: {} on {}", run.policy, run.cluster),
        subtitle: format!("{measured}{}; {} rounds", makespan.unwrap_or_default(), summary.rounds),
        about: run.about.clone(),
        facts: run.facts.clone(),
        sections,
    }
}

fn result(summary: &Summary, n_of: usize) -> Section {
    let (name, title) = ("numbers".to_owned(), "The simulation in numbers".to_owned());
    let items =
        vec![Item::Table(NamedTable { name, title, table: numbers_of(summary, n_of), folded: false })];
    Section { title: "Result".to_owned(), text: Vec::new(), items }
}

/// Table of all numbers of a simulation that have a meaning, in words and in units for people; `n_measured` jobs were to be
/// measured, and numbers over fewer jobs say over how many.
pub fn numbers_of(summary: &Summary, n_measured: usize) -> Table {
    let n_completed = summary.jct.as_ref().map_or(0, |jct| jct.count);
    let part = if n_completed < n_measured {
        format!(" ({n_completed} of {n_measured} measured jobs)")
    } else {
        String::new()
    };
    let mut table = Table::new(["number", "value", "unit"]);
    for metric in METRICS.iter().chain(DETAILS) {
        let Some(value) = (metric.of)(summary) else { continue };
        let Metric { label, unit, of_completed, .. } = metric;
        let part = if *of_completed { part.as_str() } else { "" };
        let cell = Cell::Number(value / unit.scale(), unit.n_decimals());
        table.push(vec![(inside_a_sentence(label) + part).into(), cell, unit.shown().into()]);
    }
    table
}

/// A label with its first letter in lower case.
fn inside_a_sentence(label: &str) -> String {
    let mut letters = label.chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}

fn over_time(cluster: &Cluster, timeline: &Timeline) -> Section {
    let mut items = Vec::new();
    match Gantt::of(cluster, timeline) {
        Some(gantt) => items.push(Item::Gantt(gantt)),
        None => items.push(Item::Note(
            "No leases: this simulation ran its allocations exactly, without rounds.".to_owned(),
        )),
    }
    let averages = timeline.averages();
    let width = averages.interval.get();
    let until = timeline.until().get();
    let marks = |values: &[f64], scale: f64| -> Vec<Option<Mark>> {
        let mark = |(at, value): (usize, &f64)| {
            let middle = (at as f64 + 0.5) * width;
            Some(Mark::at(middle.min(until) / HOUR_S, value * scale))
        };
        values.iter().enumerate().map(mark).collect()
    };
    let waiting: Vec<f64> = averages
        .active
        .iter()
        .zip(&averages.running)
        .map(|(active, running)| (active - running).max(0.0))
        .collect();
    let line = |(style, (name, values)): (usize, (String, &Vec<f64>)), scale: f64| Series {
        name,
        style,
        marks: marks(values, scale),
    };
    let jobs = [("active", &averages.active), ("running", &averages.running), ("waiting", &waiting)];
    let jobs = jobs.map(|(name, values)| (name.to_owned(), values)).into_iter().enumerate();
    let types = cluster.types().iter().map(|kind| kind.name.clone()).zip(&averages.utilization).enumerate();
    let subtitle = format!("averages over {} h", super::number::brief(width / HOUR_S));
    let chart = |name: &str, title: &str, y: &str, series: Vec<Series>| Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        subtitle: subtitle.clone(),
        kind: Kind::Lines,
        x: Axis::new("time (h)").of_time(),
        y: Axis::new(y).from_zero(),
        rows: Vec::new(),
        series,
        absent: Vec::new(),
        published: Vec::new(),
    };
    let jobs = jobs.map(|each| line(each, 1.0)).collect();
    let types = types.map(|each| line(each, 100.0)).collect();
    let charts = [
        chart("jobs-over-time", "Jobs that are active, that run and that wait", "jobs", jobs),
        chart("utilization-over-time", "Utilization by worker type over time", "busy worker time (%)", types),
    ];
    items.extend(owners::figure(&averages, until).map(Item::Figure));
    items.extend(charts.map(alone).map(Item::Figure));
    Section { title: "Over time".to_owned(), text: Vec::new(), items }
}

fn alone(chart: Chart) -> Figure {
    Figure { choice: String::new(), variants: vec![(String::new(), chart)], first: 0, note: String::new() }
}

fn jobs_and_workers(run: &Run, n_of: usize) -> Section {
    let summary = &run.summary;
    let values = |of: fn(&JobRecord) -> Option<f64>| summary.jobs.iter().filter_map(of).collect::<Vec<_>>();
    let jct = Cdf::of_part(values(|job| job.jct.map(Seconds::hours)), n_of);
    let rho = Cdf::of_part(values(|job| job.rho), n_of);
    let steps = |cdf: Option<Cdf>, name: &str, title: &str, x_title: &str| {
        let cdf = cdf?;
        let mark = |(x, y): &(f64, f64)| Some(Mark { n: cdf.n, ..Mark::at(*x, *y) });
        let marks: Vec<Option<Mark>> = cdf.points.iter().map(mark).collect();
        let xs = cdf.points.iter().map(|(x, _)| *x);
        Some(alone(Chart {
            name: name.to_owned(),
            title: title.to_owned(),
            subtitle: match cdf.n_of - cdf.n {
                0 => format!("{} measured jobs", cdf.n),
                n => format!("{} measured jobs, of which {n} have no such number", cdf.n_of),
            },
            kind: Kind::Steps,
            x: Axis::new(x_title).fitted(xs),
            y: Axis::new("fraction of jobs").from_zero(),
            rows: Vec::new(),
            series: vec![Series { name: "jobs".to_owned(), style: 0, marks }],
            absent: Vec::new(),
            published: Vec::new(),
        }))
    };
    let mut types: Vec<(&String, &f64)> =
        summary.utilization.iter().filter(|(name, _)| *name != "all").collect();
    // Types are in the order, and so in the colours, of the chart over time.
    if let Some((cluster, _)) = &run.course {
        types.sort_by_key(|(name, _)| cluster.find(name));
    }
    let busy = |(_, value): &(&String, &f64)| Some(Mark::at(0.0, **value * 100.0));
    let utilization = alone(Chart {
        name: "utilization".to_owned(),
        title: "Utilization by worker type".to_owned(),
        subtitle: "of the whole time".to_owned(),
        kind: Kind::Bars,
        x: Axis::new("busy worker time (%)").from_zero(),
        y: Axis::new("worker type"),
        rows: types.iter().enumerate().map(|(style, (name, _))| ((*name).clone(), style)).collect(),
        series: vec![Series { name: "busy".to_owned(), style: 0, marks: types.iter().map(busy).collect() }],
        absent: Vec::new(),
        published: Vec::new(),
    });
    let figures = [
        steps(jct, "jct-cdf", "Distribution of job completion time", "job completion time (h)"),
        steps(
            rho,
            "rho-cdf",
            "Distribution of finish-time fairness ρ",
            "finish-time fairness ρ (1: as with an equal share to oneself)",
        ),
        Some(utilization),
        shares(&summary.jobs, n_of),
    ];
    let items = figures.into_iter().flatten().map(Item::Figure).collect();
    Section { title: "How jobs and workers fare".to_owned(), text: Vec::new(), items }
}

/// The most jobs of which each has bars of its own.
const BARS_MAX: usize = 40;

/// The chart of the part of its time for which each job had workers, against the part that allocations gave it: bars, or of many jobs
/// the distribution of the difference. None where no job has both.
fn shares(jobs: &[JobRecord], n_of: usize) -> Option<Figure> {
    let of = |job: &JobRecord| job.service.share_received.zip(job.service.share_owed);
    let both: Vec<(&JobRecord, (f64, f64))> = jobs.iter().filter_map(|job| Some((job, of(job)?))).collect();
    if both.is_empty() {
        return None;
    }
    let lacking = match n_of.saturating_sub(both.len()) {
        0 => format!("{} measured jobs", both.len()),
        n => format!("{n_of} measured jobs, of which {n} have no such numbers"),
    };
    let subtitle = format!("parts of the time from a job's arrival to its end; {lacking}");
    let (name, title) =
        ("share-received-and-owed".to_owned(), "Share received against share owed".to_owned());
    let (absent, published) = (Vec::new(), Vec::new());
    if both.len() > BARS_MAX {
        let cdf = Cdf::of_part(both.iter().map(|(_, (got, owed))| 100.0 * (got - owed)).collect(), n_of)?;
        let marks = cdf.points.iter().map(|(x, y)| Some(Mark { n: cdf.n, ..Mark::at(*x, *y) })).collect();
        return Some(alone(Chart {
            name,
            title,
            subtitle,
            kind: Kind::Steps,
            x: Axis::new("share received less share owed (percentage points)"),
            y: Axis::new("fraction of jobs").from_zero(),
            rows: Vec::new(),
            series: vec![Series { name: "jobs".to_owned(), style: 0, marks }],
            absent,
            published,
        }));
    }
    let row = |(job, _): &(&JobRecord, _)| (format!("job {}", job.id), 0);
    let series = |(style, name): (usize, &str), of: fn(&(f64, f64)) -> f64| Series {
        name: name.to_owned(),
        style,
        marks: both.iter().map(|(_, both)| Some(Mark::at(0.0, 100.0 * of(both)))).collect(),
    };
    Some(alone(Chart {
        name,
        title,
        subtitle,
        kind: Kind::Bars,
        x: Axis::new("part of its time (%)").from_zero(),
        y: Axis::new("job"),
        rows: both.iter().map(row).collect(),
        series: vec![
            series((0, "received: with workers"), |both| both.0),
            series((1, "owed: by the allocations"), |both| both.1),
        ],
        absent,
        published,
    }))
}

fn jobs(jobs: &[JobRecord]) -> Table {
    let heads = [
        "id",
        "job type",
        "scale factor",
        "weight",
        "arrival (h)",
        "completion (h)",
        "completion time (h)",
        "ρ",
        "wait (h)",
        "service (h)",
        "preemptions",
        "share received",
        "share owed",
    ];
    let mut table = Table::new(heads);
    let number = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::Number(value, 3));
    for job in jobs {
        table.push(vec![
            id_cell(&job.id),
            job.job_type.as_str().into(),
            Cell::Count(u64::from(job.scale_factor)),
            Cell::Number(job.weight, 1),
            number(Some(job.arrival.hours())),
            number(job.completion.map(Seconds::hours)),
            number(job.jct.map(Seconds::hours)),
            number(job.rho),
            number(job.service.wait.map(Seconds::hours)),
            number(Some(job.service.service.hours())),
            Cell::Count(job.service.preemptions),
            number(job.service.share_received),
            number(job.service.share_owed),
        ]);
    }
    table
}

fn id_cell(id: &Label) -> Cell {
    match id {
        Label::Number(number) => Cell::Count(number.unsigned_abs()),
        Label::Text(name) => name.as_str().into(),
    }
}

/// Table of the measured jobs for programs: the columns of the engine's table, and the busy time of their workers in hours,
/// with a column for each worker type.
pub fn jobs_for_programs(jobs: &[JobRecord]) -> Table {
    let types: BTreeSet<&str> =
        jobs.iter().flat_map(|job| job.service.worker_hours.keys()).map(String::as_str).collect();
    let heads = ["id", "job_type"].into_iter().chain(job_columns().map(|column| column.name));
    let mut heads: Vec<String> = heads.map(str::to_owned).collect();
    heads.extend(types.iter().map(|name| format!("worker_hours_{name}")));
    let mut table = Table::new(heads.iter().map(String::as_str));
    for job in jobs {
        let numbers = JobNumbers::from(job);
        let cell = |column: &JobColumn| match (column.of)(&numbers) {
            None => Cell::Empty,
            Some(JobValue::Count(count)) => Cell::Count(count),
            Some(JobValue::Number(number)) => Cell::Number(number, 3),
        };
        let hours = |name: &&str| {
            let hours = job.service.worker_hours.get(*name);
            hours.map_or(Cell::Empty, |hours| Cell::Number(*hours, 3))
        };
        let mut row = vec![id_cell(&job.id), job.job_type.clone().into()];
        row.extend(job_columns().map(cell));
        row.extend(types.iter().map(hours));
        table.push(row);
    }
    table
}
