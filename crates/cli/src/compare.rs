//! `apportion compare`: two sets of results side by side, and bounds on how they may differ.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use serde_json::{Value, json};

use crate::Session;
use crate::exit::Failure;
use crate::output::{Cell, OutputFormat, Table};
use crate::results;
use apportion::metrics::METRICS;
use apportion::metrics::statistics::{Estimate, Interval};
use apportion::metrics::table::{Better, with_unit};
use apportion_studies::sweep::comparison::{Compared, Comparison, PairedPoint};
use apportion_studies::sweep::spec::value_text;
use apportion_studies::sweep::{Status, Store};

/// Compare two sets of results run by run, and check bounds on how they may differ
#[derive(Args, Debug)]
#[command(after_help = "\
Runs are matched by their values on all axes, whichever versions of apportion made them; runs that differ in their seed alone are one point, compared in pairs.
The ratio is B ÷ A, the geometric mean over seeds, with the 95 % interval and p of Student's t on paired logarithms.

A bound is METRIC<=FACTOR or METRIC>=FACTOR, on the ratio at every point, or mean(METRIC)<=FACTOR, on the ratio over
all points. One that is broken ends the command with exit code 5; so does a run that A finished and B did not.

Examples:
  apportion compare results/before results/after
  apportion compare results/before results/after --bound 'average_jct<=1.02' --bound 'mean(makespan)<=1'")]
pub struct CompareArguments {
    /// A sweep's folder, or the results.sqlite in it
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Another, of a sweep with the same axes
    #[arg(value_name = "B")]
    second: PathBuf,
    /// Which metric; may be given several times [default: average_jct, and those that have a bound]
    #[arg(long, value_name = "METRIC")]
    metric: Vec<String>,
    /// How far the ratio may go; may be given several times
    #[arg(long, value_name = "BOUND")]
    bound: Vec<String>,
}

/// How far a ratio may go.
#[derive(Clone, Debug, PartialEq)]
struct Bound {
    /// As it was given.
    text: String,
    /// Its position in [`METRICS`].
    metric: usize,
    /// Whether it bounds the ratio over all points, not at each.
    in_the_mean: bool,
    at_most: bool,
    factor: f64,
}

impl Bound {
    fn is_broken_by(&self, ratio: f64) -> bool {
        let holds = if self.at_most { ratio <= self.factor } else { ratio >= self.factor };
        !holds
    }
}

impl FromStr for Bound {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let split = text.split_once("<=").map(|sides| (sides, true));
        let split = split.or_else(|| text.split_once(">=").map(|sides| (sides, false)));
        let help = Some("such as 'average_jct<=1.02', or 'mean(average_jct)<=1.02'".to_owned());
        let Some(((name, factor), at_most)) = split else {
            return Err(Failure::usage(
                format!("--bound: `{text}` is not METRIC<=FACTOR or METRIC>=FACTOR"),
                help,
            ));
        };
        let (name, factor) = (name.trim(), factor.trim());
        let of_mean = name.strip_prefix("mean(").and_then(|rest| rest.strip_suffix(')'));
        let parsed: Option<f64> =
            factor.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
        let Some(factor) = parsed else {
            return Err(Failure::usage(format!("--bound: `{factor}` is not a positive number"), help));
        };
        let metric = results::metric(of_mean.unwrap_or(name).trim())?;
        Ok(Self { text: text.to_owned(), metric, in_the_mean: of_mean.is_some(), at_most, factor })
    }
}

pub(super) fn run(arguments: &CompareArguments, session: &Session) -> Result<(), Failure> {
    let bounds: Vec<Bound> = arguments.bound.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let mut metrics: Vec<usize> = Vec::new();
    for name in &arguments.metric {
        metrics.push(results::metric(name)?);
    }
    if metrics.is_empty() {
        metrics.push(results::metric("average_jct")?);
        metrics.extend(bounds.iter().map(|bound| bound.metric));
    }
    metrics.sort_unstable();
    metrics.dedup();
    let (comparison, versions) = compare(&arguments.first, &arguments.second, session)?;
    if comparison.points.is_empty() {
        let (first, second) = (arguments.first.display(), arguments.second.display());
        return Err(Failure::usage(format!("{first} and {second} have no finished run in common"), None));
    }
    let broken: Vec<(String, Vec<String>)> =
        bounds.iter().map(|bound| (bound.text.clone(), broken(bound, &comparison))).collect();
    match session.output.format() {
        OutputFormat::Json => session.output.json(&document((&comparison, &versions), &metrics, &broken))?,
        OutputFormat::Csv => session.output.table(&table(&comparison, &metrics, false))?,
        OutputFormat::Table => for_people(arguments, (&comparison, &versions), (&metrics, &broken), session)?,
    }
    for other in &comparison.unmatched {
        let side = |status: Option<Status>| status.map_or("not there", Status::name);
        session.note(format!("{}: A {}, B {}", other.run, side(other.first), side(other.second)));
    }
    ending(&broken)
}

/// The comparison, and which version of this crate made each side.
fn compare(first: &Path, second: &Path, session: &Session) -> Result<(Comparison, [String; 2]), Failure> {
    let open = |path: &Path| Store::open_to_read(path).map_err(results::failure);
    let (one, two) = (open(first)?, open(second)?);
    if one.study().fixed != two.study().fixed {
        session.note("the two do not share all fixed fields: seeds may not have drawn the same jobs");
    }
    let versions = [&one, &two].map(|store| store.version().to_owned());
    if versions[0] != versions[1] {
        session.note(format!("A was made by apportion {}, B by apportion {}", versions[0], versions[1]));
    }
    let rows = (one.rows().map_err(results::failure)?, two.rows().map_err(results::failure)?);
    let comparison =
        Comparison::of((one.study(), rows.0), (two.study(), rows.1)).map_err(|[names, others]| {
            let (first, second) = (first.display(), second.display());
            let message = format!("{first} varies {names}, but {second} varies {others}");
            let help = "only results with the same axes can be matched run by run".to_owned();
            Failure::usage(message, Some(help))
        })?;
    Ok((comparison, versions))
}

/// Where a bound is broken, with the ratio there; nowhere if it holds.
fn broken(bound: &Bound, comparison: &Comparison) -> Vec<String> {
    let lost = comparison.unmatched.iter().filter(|other| other.first == Some(Status::Done));
    let lost =
        lost.map(|other| format!("{}: {} in B", other.run, other.second.map_or("not there", Status::name)));
    let name = METRICS[bound.metric].name;
    let mut places = Vec::new();
    if bound.in_the_mean {
        match comparison.overall(bound.metric) {
            Some(overall) if bound.is_broken_by(overall.mean) => places.push(format!("{:.4}", overall.mean)),
            Some(_) => {}
            None => places.push(format!("no ratio of {name} over all points")),
        }
    } else {
        let mut any = false;
        for point in &comparison.points {
            let Some(compared) = point.compared(bound.metric) else { continue };
            any = true;
            let ratio = compared.paired.factor();
            if bound.is_broken_by(ratio) {
                places.push(format!("{ratio:.4} at {}", label(comparison, point)));
            }
        }
        if !any {
            places.push(format!("no run has {name} on both sides"));
        }
    }
    places.extend(lost);
    places
}

fn label(comparison: &Comparison, point: &PairedPoint) -> String {
    let pieces = comparison.axes.iter().zip(&point.values);
    pieces.map(|(name, value)| format!("{name}={}", value_text(value))).collect::<Vec<_>>().join(" ")
}

fn ending(broken: &[(String, Vec<String>)]) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for (bound, places) in broken {
        let Some(first) = places.first() else { continue };
        let more = if places.len() > 1 { format!(" (and {} more)", places.len() - 1) } else { String::new() };
        lines.push(format!("bound {bound} is broken: {first}{more}"));
    }
    if lines.is_empty() { Ok(()) } else { Err(Failure::BoundBroken { message: lines.join("\n") }) }
}

fn number(value: Option<f64>, n_decimals: usize) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::Number(value, n_decimals))
}

/// One line for each metric and point. For people in their units, and without the columns of the difference.
fn table(comparison: &Comparison, metrics: &[usize], is_for_people: bool) -> Table {
    let axes = comparison.axes.iter().map(String::as_str);
    let mut heads: Vec<&str> =
        axes.chain(["metric", "n", "A", "B", "ratio", "ratio_lower", "ratio_upper", "p"]).collect();
    if !is_for_people {
        heads.extend(["difference", "difference_lower", "difference_upper", "difference_p"]);
    }
    let mut table = Table::new(heads);
    for metric in metrics {
        let known = &METRICS[*metric];
        let (unit, scale) = if is_for_people { (known.unit.shown(), known.unit.scale()) } else { ("", 1.0) };
        let name = with_unit(known.name, unit);
        for point in &comparison.points {
            let Some(Compared { first, second, paired }) = point.compared(*metric) else { continue };
            let mut cells: Vec<Cell> = point.values.iter().map(|value| value_text(value).into()).collect();
            let Interval { lower, upper } = interval(paired.ratio);
            cells.extend([
                name.as_str().into(),
                Cell::Count(first.n as u64),
                Cell::Number(first.mean / scale, 3),
                Cell::Number(second.mean / scale, 3),
                Cell::Number(paired.factor(), 4),
                number(finite(lower), 4),
                number(finite(upper), 4),
                number(paired.ratio.and_then(|ratio| ratio.p), 4),
            ]);
            if !is_for_people {
                let difference = paired.difference;
                let Interval { lower, upper } = interval(Some(difference));
                let bounds = [Some(difference.mean), finite(lower), finite(upper), difference.p];
                cells.extend(bounds.map(|value| number(value, 3)));
            }
            table.push(cells);
        }
    }
    table
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
    (metrics, broken): (&[usize], &[(String, Vec<String>)]),
    session: &Session,
) -> Result<(), Failure> {
    session.output.text(&format!(
        "A: {} (apportion {})\nB: {} (apportion {})\nratio: B ÷ A, geometric mean over n seeds, 95 % interval and p from paired t on logarithms\n\n",
        arguments.first.display(),
        versions[0],
        arguments.second.display(),
        versions[1]
    ))?;
    session.output.table(&table(comparison, metrics, true))?;
    let mut lines: Vec<String> = vec![String::new()];
    for metric in metrics {
        let Some(overall) = comparison.overall(*metric) else { continue };
        let about = match overall.interval {
            Some(Interval { lower, upper }) => format!("{lower:.4} to {upper:.4}, {} seeds", overall.n),
            None => "one seed, so no interval".to_owned(),
        };
        let known = &METRICS[*metric];
        let better = match known.better {
            Better::Neither => String::new(),
            better => format!("; {} is better", better.name()),
        };
        lines.push(format!("{} over all points: {:.4} ({about}){better}", known.name, overall.mean));
    }
    let one_sided = comparison.unmatched.len();
    if one_sided > 0 {
        lines.push(format!("{one_sided} runs have a number on one side only, or differ in how they ended"));
    }
    if comparison.n_both_unfinished > 0 {
        lines.push(format!(
            "{} runs have none on either side, for the same reason",
            comparison.n_both_unfinished
        ));
    }
    for (bound, places) in broken {
        let verdict = if places.is_empty() { "holds" } else { "is broken" };
        lines.push(format!("bound {bound} {verdict}"));
    }
    session.output.text(&lines.join("\n"))
}

fn document(
    (comparison, [first, second]): (&Comparison, &[String; 2]),
    metrics: &[usize],
    broken: &[(String, Vec<String>)],
) -> Value {
    let overall =
        metrics.iter().filter_map(|metric| Some((METRICS[*metric].name, comparison.overall(*metric)?)));
    let overall: serde_json::Map<String, Value> =
        overall.map(|(name, estimate)| (name.to_owned(), json!(estimate))).collect();
    let unmatched: Vec<Value> = comparison
        .unmatched
        .iter()
        .map(|other| json!({"run": other.run, "a": other.first, "b": other.second}))
        .collect();
    let bounds: Vec<Value> = broken
        .iter()
        .map(|(bound, places)| json!({"bound": bound, "holds": places.is_empty(), "broken": places}))
        .collect();
    json!({
        "test": "paired t on logarithms over seeds",
        "versions": {"a": first, "b": second},
        "level": apportion::metrics::statistics::LEVEL,
        "points": table(comparison, metrics, false).objects(),
        "overall_ratio": overall,
        "unmatched": unmatched,
        "n_unfinished_on_both": comparison.n_both_unfinished,
        "bounds": bounds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_and_refused() {
        let bound: Bound = " mean(average_jct) <= 1.02".parse().unwrap();
        assert!(bound.in_the_mean && bound.at_most && bound.is_broken_by(1.021) && !bound.is_broken_by(1.02));
        let bound: Bound = "utilization>=0.9".parse().unwrap();
        assert!(bound.is_broken_by(0.89) && bound.is_broken_by(f64::NAN) && !bound.is_broken_by(0.9));
        for (text, expected) in [
            ("average_jct", "`average_jct` is not METRIC<=FACTOR or METRIC>=FACTOR"),
            ("average_jct<=none", "`none` is not a positive number"),
            ("average_jtc<=1", "unknown metric `average_jtc`"),
        ] {
            let said = text.parse::<Bound>().unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
