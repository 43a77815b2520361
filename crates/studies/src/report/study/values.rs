//! Charts of the metrics of runs: against the drawn axis, and as bars at one place of it.

use super::missing::{given_up_text, why_absent};
use super::{Panel, Point, Study, at, by_place, file_name, place_text, published, rows, spread_text, xs};
use crate::report::chart::{Absent, Axis, Chart, Figure, Kind, Mark, Series};
use crate::report::label;
use apportion::metrics::table::Prominence;
use apportion::metrics::{METRICS, Metric};

fn subtitle(study: &Study, panel: &Panel, metric: &Metric, series: &[Series]) -> String {
    let mut ways: Vec<&str> = Vec::new();
    for (status, _) in panel.points.iter().flat_map(|point| &point.unfinished) {
        if !ways.contains(&status.as_str()) {
            ways.push(status);
        }
    }
    let crosses = if ways.is_empty() { String::new() } else { format!("; ×: {}", ways.join(", ")) };
    let points: Vec<&Point> = panel.points.iter().filter(|_| metric.of_completed).collect();
    let published = published::text(study, metric);
    spread_text(study, panel, series) + &given_up_text(study, &points) + &crosses + &published
}

/// Charts of each metric against the drawn axis, or as bars if there is none.
pub(super) fn metrics(study: &Study, panel: &Panel, stem: &str) -> Option<Figure> {
    let has = |metric: &str| panel.points.iter().any(|point| point.metrics.contains_key(metric));
    let any_absent = panel.points.iter().any(|point| !point.unfinished.is_empty());
    let charted = METRICS.iter().filter(|metric| metric.prominence >= Prominence::Chart);
    let shown = charted.filter(|metric| has(metric.name) || (any_absent && metric.name == "average_jct_s"));
    let chart = |metric: &Metric| {
        let chart = match &study.x_axis {
            Some(axis) => lines(study, panel, metric, &label::axis(axis)),
            None => bars(study, panel, metric, None),
        };
        (metric.label.to_owned(), Chart { name: format!("{stem}{}", file_name(metric.bare_name())), ..chart })
    };
    let variants: Vec<(String, Chart)> = shown.map(chart).collect();
    let note = if any_absent {
        "A cross above the plot marks places where runs have no number: hover over it for the reason, which is beside the \
         name, too. One cross with a count stands for many policies, until some are selected. Where other seeds have one, a hollow mark shows the mean of those, which is not the mean \
         of all: no line leads to it."
    } else {
        ""
    };
    let makespan = variants.iter().position(|(_, chart)| chart.name.ends_with("makespan"));
    let first = makespan.filter(|_| study.is_static()).unwrap_or(0);
    let figure = Figure { choice: "metric".into(), variants, first, note: note.to_owned() };
    (!figure.variants.is_empty()).then_some(figure)
}

fn lines(study: &Study, panel: &Panel, metric: &Metric, x_title: &str) -> Chart {
    let xs = xs(panel);
    let series = |(position, name): (usize, &String)| {
        // A place without runs is skipped; one whose runs have no number breaks the line.
        let there = xs.iter().filter_map(|x| Some((*x, at(panel, position, Some(*x))?)));
        let mark_at = |(x, point): (f64, &Point)| {
            Some(Mark::of_repeated(point.metrics.get(metric.name)?, x, metric.unit.scale()))
        };
        Series { name: name.clone(), style: position, marks: there.map(mark_at).collect() }
    };
    let series: Vec<Series> = study.series.iter().enumerate().map(series).collect();
    let absent = |point: &Point| Some(Absent { series: point.series, x: point.x?, why: why_absent(point)? });
    let y = Axis::new(metric.title());
    let published = published::series(study, metric);
    let values = series.iter().chain(&published).flat_map(|series| series.marks.iter().flatten());
    let values = values.flat_map(|mark| [Some(mark.y), mark.low, mark.high]).flatten();
    let y = y.fitted(values);
    Chart {
        name: String::new(),
        title: format!("{} against {}", metric.label, x_title.split(" (").next().unwrap_or(x_title)),
        subtitle: subtitle(study, panel, metric, &series),
        kind: Kind::Lines,
        x: Axis::new(x_title).fitted_to_places(&xs),
        y,
        rows: Vec::new(),
        series,
        absent: panel.points.iter().filter_map(absent).collect(),
        published,
    }
}

/// Chart with one bar per compared value, at one place.
fn bars(study: &Study, panel: &Panel, metric: &Metric, x: Option<f64>) -> Chart {
    let rows = rows(study, panel, x);
    let scale = metric.unit.scale();
    let value = |series| Some(Mark::of_repeated(at(panel, series, x)?.metrics.get(metric.name)?, 0.0, scale));
    let marks = (0..rows.len()).map(value).collect();
    let series = vec![Series { name: metric.label.to_owned(), style: 0, marks }];
    let here = (0..rows.len()).filter_map(|series| at(panel, series, x));
    let here: Vec<&Point> = here.filter(|_| metric.of_completed).collect();
    let place = place_text(study, x).map(|place| format!("{place}; ")).unwrap_or_default();
    Chart {
        name: String::new(),
        title: format!("{} by {}", metric.label, label::axis(&study.series_axis)),
        subtitle: format!("{place}{}{}", spread_text(study, panel, &series), given_up_text(study, &here)),
        kind: Kind::Bars,
        x: Axis::new(metric.title()).from_zero(),
        y: Axis::new(study.series_axis.clone()),
        rows,
        series,
        absent: Vec::new(),
        published: Vec::new(),
    }
}

pub(super) fn makespans(study: &Study, panel: &Panel, stem: &str) -> Option<Figure> {
    study.x_axis.as_ref()?;
    let makespan = Metric::named("makespan_s")?;
    by_place(study, panel, &format!("{stem}makespan-bars"), |x| bars(study, panel, makespan, x))
}
