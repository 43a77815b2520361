//! `apportion compare`: two sets of results side by side, and bounds on how they may differ.

mod bounds;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use bounds::{Bound, Verdict, ending, verdict};

use crate::Session;
use crate::exit::Failure;
use crate::output::{Answer, Cell, OutputFormat, Table};
use crate::results;
use apportion::metrics::METRICS;
use apportion::metrics::statistics::{Estimate, Interval, LEVEL};
use apportion::metrics::table::{Better, with_unit};
use apportion::units::Decimals;
use apportion_studies::report::study::GivenUp;
use apportion_studies::sweep::comparison::{Compared, Comparison, Overall, PairedPoint, Unmatched};
use apportion_studies::sweep::spec::{are_alike, unlike_fields, value_text};
use apportion_studies::sweep::{Status, Store};

/// Compare two sets of results run by run, and check bounds on how they may differ
#[derive(Args, Debug)]
#[command(after_help = "\
Runs are matched by their values on all axes, whichever versions of apportion made them; runs that differ in their seed alone are one point, compared in pairs.
The ratio is B ÷ A, the geometric mean over seeds, with the 95 % interval and p of Student's t on paired logarithms.

A bound is METRIC<=FACTOR or METRIC>=FACTOR, on the ratio at every point, or mean(METRIC)<=FACTOR, on the ratio over
all points. One that is broken ends the command with exit code 5, and so, where there are bounds, does a run that A finished
and B did not.
A point is compared only if both sides have finished every seed of it: the rest would be the quick ones, and a mean over a part of
the seeds is none of the point. What is left out is counted, and each such run is named on standard error.

Times of jobs are means over the jobs that were completed. Where jobs were given up after too many failures, each side's number is printed,
and a bound on such a metric is broken at a point at which B gave up more jobs than A, whatever the ratio of the others.

Two policies of one sweep are compared on its page, paired by seed and with intervals, too: `apportion report results/quick --baseline fifo`.

Examples:
  apportion compare results/before results/after
  apportion compare results/before results/after --bound 'average_jct_s<=1.02' --bound 'mean(makespan_s)<=1'")]
pub struct CompareArguments {
    /// A sweep's folder, or the results.sqlite in it
    #[arg(value_name = "A")]
    first: PathBuf,
    /// A second one, of a sweep with the same axes
    #[arg(value_name = "B")]
    second: PathBuf,
    /// The metric; may be given several times [default: average_jct_s, and those that have a bound]
    #[arg(long, value_name = "METRIC")]
    metric: Vec<String>,
    /// A bound on the ratio; may be given several times
    #[arg(long, value_name = "BOUND")]
    bound: Vec<String>,
}

pub(super) fn run(arguments: &CompareArguments, session: &Session) -> Result<(), Failure> {
    let bounds: Vec<Bound> = arguments.bound.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let mut metrics: Vec<usize> = Vec::new();
    for name in &arguments.metric {
        metrics.push(results::metric(name)?);
    }
    if metrics.is_empty() {
        metrics.push(results::metric("average_jct_s")?);
        metrics.extend(bounds.iter().map(|bound| bound.metric));
    }
    metrics.sort_unstable();
    metrics.dedup();
    let (comparison, versions) = compare(&arguments.first, &arguments.second, session)?;
    if comparison.points.is_empty() {
        let (first, second) = (arguments.first.display(), arguments.second.display());
        return Err(Failure::usage(format!("{first} and {second} have no finished run in common"), None));
    }
    let broken: Vec<Verdict> = bounds.iter().map(|bound| verdict(bound, &comparison)).collect();
    match session.output.format() {
        OutputFormat::Json => {
            session.output.answer(&document((&comparison, &versions), &metrics, &broken))?;
        }
        OutputFormat::Csv => session.output.table(&table(&comparison, &metrics, false))?,
        OutputFormat::Table => for_people(arguments, (&comparison, &versions), (&metrics, &broken), session)?,
    }
    for other in &comparison.unmatched {
        let side = |status: Option<Status>| status.map_or("not there", Status::name);
        session.note(format!("{}: A {}, B {}", other.run, side(other.first), side(other.second)));
    }
    ending(&broken)
}

/// The comparison, and the version of this crate that made each side.
fn compare(first: &Path, second: &Path, session: &Session) -> Result<(Comparison, [String; 2]), Failure> {
    let open = |path: &Path| Store::open_to_read(path).map_err(results::failure);
    let (one, two) = (open(first)?, open(second)?);
    let [ours, theirs] = [&one, &two].map(|store| store.study().fixed.as_str());
    if !are_alike(ours, theirs) {
        let fields = unlike_fields(ours, theirs, ["in A", "in B"]);
        let fields = fields.map_or_else(String::new, |fields| format!(" ({fields})"));
        session.note(format!("fixed fields differ{fields}: seeds may not have drawn the same jobs"));
    }
    let versions = [&one, &two].map(|store| store.version().to_owned());
    if versions[0] != versions[1] {
        session.note(format!("A was made by apportion {}, B by apportion {}", versions[0], versions[1]));
    }
    let rows = (one.rows().map_err(results::failure)?, two.rows().map_err(results::failure)?);
    for (side, store, rows) in [("A", &one, &rows.0), ("B", &two, &rows.1)] {
        results::note_left_out(session, &format!("{side}: "), store, rows)?;
    }
    let comparison =
        Comparison::of((one.study(), rows.0), (two.study(), rows.1)).map_err(|[names, others]| {
            let (first, second) = (first.display(), second.display());
            let message = format!("{first} varies {names}, but {second} varies {others}");
            let help = "only results with the same axes can be matched run by run".to_owned();
            Failure::usage(message, Some(help))
        })?;
    Ok((comparison, versions))
}

/// Numbers of jobs given up on both sides: `0 of 40 jobs given up in A, 19 of 40 in B`.
fn sides_text(first: GivenUp, second: GivenUp) -> String {
    format!("{} of {} jobs given up in A, {} of {} in B", first.n, first.n_of, second.n, second.n_of)
}

fn label(comparison: &Comparison, point: &PairedPoint) -> String {
    let pieces = comparison.axes.iter().zip(&point.values);
    pieces.map(|(name, value)| format!("{name}={}", value_text(value))).collect::<Vec<_>>().join(" ")
}

fn number(value: Option<f64>, n_decimals: usize) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::Number(value, n_decimals))
}

/// A table with a line for each metric and point. For people, numbers are in their units, and there are no columns of the
/// difference.
fn table(comparison: &Comparison, metrics: &[usize], is_for_people: bool) -> Table {
    let axes = comparison.axes.iter().map(String::as_str);
    let mut heads: Vec<&str> =
        axes.chain(["metric", "n", "A", "B", "ratio", "ratio_lower", "ratio_upper", "p"]).collect();
    if !is_for_people {
        heads.extend(["difference", "difference_lower", "difference_upper", "difference_p", "n_of"]);
        heads.extend(["jobs_given_up_A", "jobs_given_up_B"]);
    }
    let mut table = Table::new(heads);
    for metric in metrics {
        let known = &METRICS[*metric];
        let (unit, scale) = if is_for_people { (known.unit.shown(), known.unit.scale()) } else { ("", 1.0) };
        let name = with_unit(known.name, unit);
        // A metric that means nothing at a point has no line there.
        let meant = |point: &&PairedPoint| point.n() < point.n_of || !point.lacks(*metric);
        for point in comparison.points.iter().filter(meant) {
            let mut cells: Vec<Cell> =
                point.values.iter().map(|value| results::axis_cell(value, is_for_people)).collect();
            cells.push(name.as_str().into());
            cells.push(if is_for_people && point.n() < point.n_of {
                format!("{} of {} seeds ended", point.n(), point.n_of).into()
            } else {
                Cell::Count(point.n() as u64)
            });
            cells.extend(numbers(point.compared(*metric), scale, is_for_people));
            if !is_for_people {
                cells.push(Cell::Count(point.n_of as u64));
                cells.extend(point.given_up().map(|given_up| Cell::Count(given_up.n as u64)));
            }
            table.push(cells);
        }
    }
    table
}

/// Cells of means, ratio and difference; empty if nothing is compared.
fn numbers(compared: Option<Compared>, scale: f64, is_for_people: bool) -> Vec<Cell> {
    let paired = compared.map(|compared| compared.paired);
    let ratio = paired.and_then(|paired| paired.ratio);
    let Interval { lower, upper } = interval(ratio);
    let mut cells = vec![
        number(compared.map(|compared| compared.first.mean / scale), 3),
        number(compared.map(|compared| compared.second.mean / scale), 3),
        number(paired.map(|paired| paired.factor()), 4),
        number(finite(lower), 4),
        number(finite(upper), 4),
        number(ratio.and_then(|ratio| ratio.p), 4),
    ];
    if !is_for_people {
        let difference = paired.map(|paired| paired.difference);
        let Interval { lower, upper } = interval(difference);
        let mean = difference.map(|difference| difference.mean);
        let bounds = [mean, finite(lower), finite(upper), difference.and_then(|difference| difference.p)];
        cells.extend(bounds.map(|value| number(value, 3)));
    }
    cells
}

fn interval(estimate: Option<Estimate>) -> Interval {
    let none = Interval { lower: f64::NAN, upper: f64::NAN };
    estimate.and_then(|estimate| estimate.interval).unwrap_or(none)
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn for_people(
    arguments: &CompareArguments,
    (comparison, versions): (&Comparison, &[String; 2]),
    (metrics, verdicts): (&[usize], &[Verdict]),
    session: &Session,
) -> Result<(), Failure> {
    session.output.words(&format!(
        "A: {} (apportion {})\nB: {} (apportion {})\nratio: B ÷ A, geometric mean over n seeds, 95 % interval and p from \
         paired t on logarithms; where a value is not positive, the ratio of the means\n\n",
        arguments.first.display(),
        versions[0],
        arguments.second.display(),
        versions[1]
    ))?;
    session.output.wide_table(&table(comparison, metrics, true), comparison.axes.len() + 1)?;
    let n_of = comparison.n_points_of;
    let mut lines: Vec<String> = vec![String::new()];
    for metric in metrics {
        let known = &METRICS[*metric];
        let Some(Overall { ratio, n_points }) = comparison.overall(*metric) else {
            lines.push(format!("{}: no ratio over all points", known.name));
            continue;
        };
        let about = match ratio.interval {
            Some(Interval { lower, upper }) => {
                format!("{} to {}, {} seeds", Decimals(lower, 4), Decimals(upper, 4), ratio.n)
            }
            None => "one seed, so no interval".to_owned(),
        };
        let better = match known.better {
            Better::Neither => String::new(),
            better => format!("; {} is better", better.name()),
        };
        let points = if n_points == n_of { "all".to_owned() } else { format!("{n_points} of {n_of}") };
        lines.push(format!(
            "{} over {points} points: {} ({about}){better}",
            known.name,
            Decimals(ratio.mean, 4)
        ));
    }
    let (n_runs, n_runs_of) = (comparison.n_paired(), comparison.n_runs_of);
    if n_runs < n_runs_of {
        lines.push(format!("done on both sides: {n_runs} of {n_runs_of} runs"));
    }
    let one_sided = comparison.unmatched.len();
    if one_sided > 0 {
        lines.push(format!("with a number on one side only, or other ends: {one_sided} of {n_runs_of} runs"));
    }
    if comparison.n_both_unfinished > 0 {
        let n = comparison.n_both_unfinished;
        lines.push(format!("ended the same way on both sides, without a number: {n} of {n_runs_of} runs"));
    }
    let n_unfinished = comparison.n_points_unfinished;
    if n_unfinished > 0 {
        lines.push(format!(
            "not compared, because a side has not finished all seeds: {n_unfinished} of {n_of} points"
        ));
    }
    if metrics.iter().any(|metric| METRICS[*metric].of_completed) {
        lines.extend(comparison.points.iter().filter_map(|point| {
            let [first, second] = point.given_up();
            let place = label(comparison, point);
            (first.n + second.n > 0)
                .then(|| format!("times of jobs leave out, at {place}: {}", sides_text(first, second)))
        }));
    }
    for Verdict { bound, broken, n_points } in verdicts {
        let verdict = if broken.is_empty() { "holds" } else { "is broken" };
        lines.push(format!("bound {bound} {verdict}; it was held against {n_points} of {n_of} points"));
    }
    session.output.words(&lines.join("\n"))
}

/// Two sets of results, as `apportion compare --format json` prints them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ComparisonAnswer<'a> {
    /// The test of ratios.
    test: &'static str,
    /// The versions of the program that made the results.
    versions: Sides<&'a str>,
    /// The probability with which an interval has the true mean.
    level: f64,
    /// A row for each metric and point: the value of each axis, `metric`, the means `A` and `B` of its seeds and their `ratio`, with
    /// intervals and probabilities, and the numbers of jobs given up, which times of jobs leave out.
    points: Vec<Map<String, Value>>,
    /// By metric, the ratio over all points.
    overall_ratio: BTreeMap<&'static str, OverallRatio>,
    /// Runs that have a number on one side only.
    unmatched: Vec<OneSided<'a>>,
    /// Runs that ended the same way on both sides, without a number.
    n_unfinished_on_both: usize,
    /// Runs that are done on both sides.
    n_runs: usize,
    /// The number of runs on either side.
    n_runs_of: usize,
    /// Points that are compared.
    n_points: usize,
    /// The number of points on either side.
    n_points_of: usize,
    /// Points at which a side has not finished all seeds.
    n_points_unfinished: usize,
    /// The outcome of each bound.
    bounds: Vec<Held<'a>>,
}

impl Answer for ComparisonAnswer<'_> {
    const KIND: &'static str = "comparison";
}

/// A value for each of the two results.
#[derive(Serialize, JsonSchema)]
struct Sides<T> {
    /// The value of A.
    a: T,
    /// The value of B.
    b: T,
}

/// The geometric mean of a metric's ratios B ÷ A.
#[derive(Serialize, JsonSchema)]
struct OverallRatio {
    /// The number of seeds.
    n: usize,
    /// The mean.
    mean: f64,
    /// Its interval; null for a single seed.
    interval: Option<Interval>,
    /// The probability of a mean at least as far from 1 if the true one were 1; null for a single seed.
    p: Option<f64>,
    /// The number of points in the mean.
    n_points: usize,
}

/// A run that has a number on one side only.
#[derive(Serialize, JsonSchema)]
struct OneSided<'a> {
    /// The values of its axes, with the seed.
    run: &'a str,
    /// How it ended on each side; null where it does not exist.
    #[serde(flatten)]
    ends: Sides<Option<Status>>,
}

/// The outcome of a bound.
#[derive(Serialize, JsonSchema)]
struct Held<'a> {
    /// The bound, as on the command line.
    bound: &'a str,
    /// Whether it holds.
    holds: bool,
    /// The points at which it is broken, with the ratio there or the numbers of jobs given up.
    broken: &'a [String],
    /// The number of points with a ratio that was checked against the bound; for a bound on the mean, the number of points in it.
    n_points: usize,
}

fn document<'a>(
    (comparison, [first, second]): (&'a Comparison, &'a [String; 2]),
    metrics: &[usize],
    verdicts: &'a [Verdict],
) -> ComparisonAnswer<'a> {
    let overall = |metric: &usize| {
        let Overall { ratio, n_points } = comparison.overall(*metric)?;
        let Estimate { n, mean, interval, p } = ratio;
        Some((METRICS[*metric].name, OverallRatio { n, mean, interval, p, n_points }))
    };
    let one_sided =
        |other: &'a Unmatched| OneSided { run: &other.run, ends: Sides { a: other.first, b: other.second } };
    let held = |Verdict { bound, broken, n_points }: &'a Verdict| Held {
        bound,
        holds: broken.is_empty(),
        broken,
        n_points: *n_points,
    };
    ComparisonAnswer {
        test: "paired t on logarithms over seeds",
        versions: Sides { a: first, b: second },
        level: LEVEL,
        points: table(comparison, metrics, false).objects(),
        overall_ratio: metrics.iter().filter_map(overall).collect(),
        unmatched: comparison.unmatched.iter().map(one_sided).collect(),
        n_unfinished_on_both: comparison.n_both_unfinished,
        n_runs: comparison.n_paired(),
        n_runs_of: comparison.n_runs_of,
        n_points: comparison.points.len(),
        n_points_of: comparison.n_points_of,
        n_points_unfinished: comparison.n_points_unfinished,
        bounds: verdicts.iter().map(held).collect(),
    }
}
