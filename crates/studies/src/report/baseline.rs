//! Tables that compare each policy of a study, or other compared value, with one of them, the baseline.

use apportion::metrics::statistics::{Estimate, LEVEL, Paired, Repeated};
use apportion::metrics::table::{Prominence, with_unit};
use apportion::metrics::{METRICS, Metric};

use super::chart::BANDS_MAX;
use super::label;
use super::number::brief;
use super::page::NamedTable;
use super::study::{GivenUp, Panel, Point, Study, file_name, same, why_absent};
use super::table::{Cell, Table};

/// Description of how the tables against the baseline are made.
pub(super) fn method(study: &Study) -> String {
    let baseline = study.series.get(study.baseline).map_or("the baseline", String::as_str);
    let repeated = if study.seeds.len() > 1 {
        let percent = 100.0 * LEVEL;
        format!(
            "the geometric mean over all {} seeds, each seed drawing the same jobs for both, with the {percent} % \
             interval and p of Student’s t on the paired logarithms; where a number is not positive, the ratio of the \
             means. Where either has not finished a seed, there is none: the rest would be compared where the slower \
             one was quick. The difference is the mean of the paired differences, the row’s less {baseline}’s",
            study.seeds.len()
        )
    } else {
        "of one seed, so without an interval".to_owned()
    };
    format!("Improvement: how many times smaller than with {baseline} ({baseline} ÷ the row’s); {repeated}.")
}

/// A table against the baseline for each metric that has values.
pub(super) fn tables(study: &Study, panel: &Panel, stem: &str) -> Vec<NamedTable> {
    let Some(baseline) = study.series.get(study.baseline) else { return Vec::new() };
    let mut tables = Vec::new();
    let compared = METRICS.iter().filter(|metric| metric.prominence >= Prominence::Compared);
    let mut metrics: Vec<&Metric> = compared.collect();
    if study.is_static() {
        // The makespan comes first where the study is about it.
        metrics.sort_by_key(|metric| metric.name != "makespan_s");
    }
    for metric in metrics {
        let place = study.x_axis.as_deref().map(label::axis);
        let heads = [study.series_axis.clone()].into_iter().chain(place);
        let numbers = [
            metric.title(),
            "improvement (×)".to_owned(),
            "from".to_owned(),
            "to".to_owned(),
            with_unit("difference", metric.unit.shown()),
            "p".to_owned(),
            "n".to_owned(),
            "not done".to_owned(),
        ];
        let mut table = Table::new(heads.chain(numbers));
        let mut any = false;
        for point in panel.points.iter().filter(|point| point.series != study.baseline) {
            let against = point.against_baseline.get(metric.name);
            any |= against.is_some();
            let base =
                panel.points.iter().find(|base| base.series == study.baseline && same(base.x, point.x));
            table.push(comparison_row(study, (point, base), metric, against));
        }
        if any {
            tables.push(NamedTable {
                name: format!("{stem}against-baseline-{}", file_name(metric.bare_name())),
                title: format!("{} against {baseline}", metric.label),
                table,
                folded: !tables.is_empty() || study.series.len() > BANDS_MAX,
            });
        }
    }
    tables
}

fn comparison_row(
    study: &Study,
    (point, base): (&Point, Option<&Point>),
    metric: &Metric,
    against: Option<&Paired>,
) -> Vec<Cell> {
    let number =
        |value: Option<f64>, n_decimals| value.map_or(Cell::Empty, |value| Cell::Number(value, n_decimals));
    let ratio: Option<Estimate> = against.and_then(|paired| paired.ratio);
    let interval = ratio.and_then(|ratio| ratio.interval);
    let scale = metric.unit.scale();
    let mut cells = vec![study.series[point.series].as_str().into()];
    if study.x_axis.is_some() {
        cells.push(point.x.map_or(Cell::Empty, |x| Cell::from(brief(x))));
    }
    cells.extend([
        number(point.metrics.get(metric.name).and_then(Repeated::whole).map(|spread| spread.mean / scale), 2),
        number(ratio.map(|ratio| ratio.mean).or(against.map(|paired| paired.ratio_of_means)), 3),
        number(interval.map(|interval| interval.lower), 3),
        number(interval.map(|interval| interval.upper), 3),
        number(against.map(|paired| -paired.difference.mean / scale), 2),
        ratio.and_then(|ratio| ratio.p).map_or(Cell::Empty, p_cell),
        against.map_or(Cell::Empty, |paired| Cell::Count(paired.difference.n as u64)),
        not_done(study, (point, base), metric).map_or(Cell::Empty, Cell::from),
    ]);
    cells
}

/// Statuses of unfinished runs, of a point and of the baseline at its place, and the jobs given up that the metric leaves out:
/// `1 of 3 timeout; fifo: saturated; fifo: 2 of 60 jobs given up`.
fn not_done(study: &Study, (point, base): (&Point, Option<&Point>), metric: &Metric) -> Option<String> {
    let baseline = study.series.get(study.baseline)?;
    let given_up = |point: &Point| {
        let GivenUp { n, n_of } = point.given_up;
        (n > 0 && metric.of_completed).then(|| format!("{n} of {n_of} jobs given up"))
    };
    let of_base: Vec<String> = match base {
        None => vec!["not there".to_owned()],
        Some(base) => why_absent(base).into_iter().chain(given_up(base)).collect(),
    };
    let of_base = of_base.into_iter().map(|why| format!("{baseline}: {why}"));
    let pieces: Vec<String> = why_absent(point).into_iter().chain(given_up(point)).chain(of_base).collect();
    (!pieces.is_empty()).then(|| pieces.join("; "))
}

/// Number with four decimals, and more where they would all be zero.
fn p_cell(p: f64) -> Cell {
    let n_decimals = (4..=12).find(|n| p * 10_f64.powi(*n) >= 1.0).unwrap_or(4);
    Cell::Number(p, usize::try_from(n_decimals).unwrap_or(4))
}
