//! `apportion results`: look at what sweeps have kept, and join it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, Subcommand};

use crate::Session;
use crate::exit::Failure;
use crate::file::{at, check_files, check_folder};
use crate::output::{Cell, OutputFormat, Table};
use apportion::metrics::table::Unit;
use apportion::metrics::{METRICS, Metric};
use apportion::scheduler::DecisionError;
use apportion::simulator::SimulationError;
use apportion::spec::nearest::{name_list, suggestion};
use apportion::spec::run::FieldComplaint;
use apportion::units::Decimals;
use apportion_studies::report::study::GivenUp;
use apportion_studies::sweep::spec::value_text;
use apportion_studies::sweep::summary::{Group, Groups};
use apportion_studies::sweep::{Row, Run, RunError, Status, Store, StoreError, Study, oddities};

/// Look at the results of sweeps, and join them
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  apportion results show results/quick
  apportion results merge results/part-1 results/part-2 --out results/whole")]
pub struct ResultsArguments {
    #[command(subcommand)]
    command: ResultsCommand,
}

#[derive(Debug, Subcommand)]
enum ResultsCommand {
    /// Show a metric by policy and arrival rate, or every run
    #[command(after_help = "Example:\n  apportion results show results/quick --metric p99_jct")]
    Show {
        /// A results folder, or the file in it
        #[arg(value_name = "DIR")]
        results: PathBuf,
        /// The metric
        #[arg(long, default_value = "average_jct_s")]
        metric: String,
        /// One line a run, all metrics
        #[arg(long)]
        runs: bool,
        /// One line for each share of each decision, from its instant until the next one, of the runs that kept them
        #[arg(long, conflicts_with_all = ["runs", "metric"])]
        allocations: bool,
    },
    /// Join results of one sweep that were made apart, each run once
    #[command(
        after_help = "Example:\n  apportion results merge results/part-1 results/part-2 --out results/whole"
    )]
    Merge {
        /// Results folders
        #[arg(value_name = "DIR", required = true)]
        results: Vec<PathBuf>,
        /// The folder for the joined results; some may be there already
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

pub(super) fn run(arguments: &ResultsArguments, session: &Session) -> Result<(), Failure> {
    match &arguments.command {
        ResultsCommand::Show { results, metric: name, runs, allocations } => {
            let store = Store::open_to_read(results).map_err(failure)?;
            let rows = store.rows().map_err(failure)?;
            note_left_out(session, "", &store, &rows)?;
            if *allocations {
                return session.output.table(&all_allocations(&store, &rows)?);
            }
            if *runs {
                return session.output.table(&all_runs(store.study(), &rows));
            }
            show_metric(session, store.study(), &rows, metric(name)?)
        }
        ResultsCommand::Merge { results, out } => {
            check_folder("--out", Some(out))?;
            let csv = out.join("results.csv");
            check_files(&[], &[at("the table of results", csv.exists().then_some(&*csv))])?;
            let (store, merged) = Store::merge(out, results).map_err(failure)?;
            let csv = store.write_csv().map_err(failure)?;
            let (n_rows, n_duplicates) = (merged.n_rows, merged.n_duplicates);
            session.note(format!("runs in all: {n_rows}; results given more than once: {n_duplicates}"));
            let (results, csv) = (store.path().display().to_string(), csv.display().to_string());
            if session.output.format() == OutputFormat::Table {
                return session.output.words(&format!("{results}\n{csv}"));
            }
            let mut table = Table::new(["results", "csv", "n_runs", "n_duplicates"]);
            let counts = [n_rows, n_duplicates].map(|n| Cell::Count(n as u64));
            table.push([results.into(), csv.into()].into_iter().chain(counts).collect());
            session.output.table(&table)
        }
    }
}

/// Notes how many results are not among the rows, because newer ones of the same points are.
pub(super) fn note_left_out(
    session: &Session,
    head: &str,
    store: &Store,
    rows: &[Row],
) -> Result<(), Failure> {
    let n_left_out = store.digests().map_err(failure)?.len() - rows.len();
    if n_left_out > 0 {
        session.note(format!(
            "{head}older results left out: {n_left_out}, of points that were run again with other data"
        ));
    }
    Ok(())
}

/// The position of the metric that a flag names.
pub(super) fn metric(name: &str) -> Result<usize, Failure> {
    Metric::position(name).ok_or_else(|| {
        let message = format!("unknown metric `{name}`, expected one of {}", name_list(Metric::names()));
        Failure::usage(message, suggestion(name, Metric::names()))
    })
}

/// The table a sweep ends with: average JCT by policy and arrival rate.
pub(super) fn show(session: &Session, study: &Study, rows: &[Row]) -> Result<(), Failure> {
    show_metric(session, study, rows, metric("average_jct_s")?)
}

fn show_metric(session: &Session, study: &Study, rows: &[Row], metric: usize) -> Result<(), Failure> {
    let groups = Groups::of(study, rows, metric);
    let (name, unit) = (METRICS[metric].bare_name(), METRICS[metric].unit);
    if session.output.format() != OutputFormat::Table {
        return session.output.table(&listed(&groups, &METRICS[metric]));
    }
    let name = name.replace('_', " ");
    let words = match unit {
        Unit::Seconds => " in hours".to_owned(),
        unit if unit.shown().is_empty() => String::new(),
        unit => format!(" in {}", unit.shown()),
    };
    if rows.is_empty() {
        return session.output.words("no runs are in these results");
    }
    let over = match groups.n_seeds {
        1 => "of one seed".to_owned(),
        n => format!("mean ± standard deviation over {n} seeds"),
    };
    let is_part = |group: &Group| group.metric.is_some_and(|metric| metric.whole().is_none());
    let part = if groups.groups.iter().any(is_part) {
        "\n(in parentheses over the seeds that have a number, which says nothing of the others)"
    } else {
        ""
    };
    let published = if groups.groups.iter().any(|group| group.published.is_some()) {
        format!("\n[in brackets as published: {}]", groups.sources.join("; "))
    } else {
        String::new()
    };
    let by = if rate_axis(&groups).is_some() { ", by arrival rate in jobs/h" } else { "" };
    session.output.words(&format!("{name}{words}{by}, {over}{part}{published}\n\n"))?;
    let (table, n_heads) = by_policy(&groups, &METRICS[metric]);
    session.output.wide_table(&table, n_heads)
}

/// A table with a line for each group, for programs; the mean is over `n_of` seeds, and empty for fewer.
fn listed(groups: &Groups, metric: &Metric) -> Table {
    let axes = groups.axes.iter().cloned();
    let Metric { name, unit, .. } = metric;
    let numbers = [(*name).to_owned(), format!("{name}_deviation"), "capacity".to_owned()];
    let counts = Status::ALL.map(|status| format!("n_{status}"));
    let seeds = ["measured_jobs", "jobs_given_up", "n", "n_of"].map(str::to_owned);
    let has_published = !groups.sources.is_empty();
    let published = has_published.then(|| format!("{name}_published"));
    let mut table = Table::new(axes.chain(numbers).chain(counts).chain(seeds).chain(published));
    for group in &groups.groups {
        let mut cells: Vec<Cell> = group.values.iter().map(cell).collect();
        let whole = group.metric.and_then(|metric| metric.whole());
        let (mean, deviation) = (whole.map(|spread| spread.mean), whole.and_then(|spread| spread.deviation));
        cells.extend([mean, deviation, group.capacity].map(number));
        cells.extend(group.by_status.map(|n| Cell::Count(n as u64)));
        let n = group.metric.map_or(0, |metric| metric.there().n);
        let GivenUp { n: n_given_up, n_of: n_jobs } = group.given_up;
        cells.extend([n_jobs, n_given_up, n, groups.n_seeds].map(|n| Cell::Count(n as u64)));
        let published = group.published.map(|value| value * unit.scale());
        cells.extend(has_published.then(|| number(published)));
        table.push(cells);
    }
    table
}

/// The axis of arrival rates among those of groups.
fn rate_axis(groups: &Groups) -> Option<usize> {
    groups.axes.iter().position(|name| matches!(name.as_str(), "rate" | "workload.rate"))
}

/// A table with a line for each policy and each combination of other values, and a column for each rate; and the number of columns
/// before those of the rates.
fn by_policy(groups: &Groups, metric: &Metric) -> (Table, usize) {
    let rate = rate_axis(groups);
    let policy = groups.axis("policy");
    let others = (0..groups.axes.len()).filter(|axis| Some(*axis) != rate && Some(*axis) != policy);
    let heads: Vec<usize> = policy.into_iter().chain(others).collect();
    let mut rates = rate.map_or_else(|| vec!["result".to_owned()], |axis| groups.texts(axis));
    let number = |text: &String| text.parse::<f64>().unwrap_or(f64::INFINITY);
    rates.sort_by(|one, other| number(one).total_cmp(&number(other)));
    let names = heads.iter().map(|axis| groups.axes[*axis].clone());
    let mut table = Table::new(names.chain(rates.iter().cloned()));
    let mut lines: Vec<(Vec<String>, Vec<Cell>)> = Vec::new();
    for group in &groups.groups {
        let key: Vec<String> = heads.iter().map(|axis| value_text(&group.values[*axis])).collect();
        let line = lines.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
            lines.push((key, vec![Cell::Empty; rates.len()]));
            lines.len() - 1
        });
        let here = rate.map(|axis| value_text(&group.values[axis]));
        let column = here.map_or(Some(0), |here| rates.iter().position(|other| *other == here));
        if let Some(column) = column {
            lines[line].1[column] = Cell::Text(brief(group, groups.n_seeds, metric));
        }
    }
    for (key, cells) in lines {
        table.push(key.into_iter().map(Cell::from).chain(cells).collect());
    }
    (table, heads.len())
}

/// The cell of a group: `12.34 ± 0.56`, or `(12.34 over 2 of 3), 1 timeout` if seeds are missing, or why there is no number.
fn brief(group: &Group, n_seeds: usize, metric: &Metric) -> String {
    let scale = metric.unit.scale();
    let number = |value: f64| Decimals(value, 2);
    let mean = group.metric.map(|found| match (found.whole(), found.there()) {
        (None, there) => format!("({} over {} of {n_seeds})", number(there.mean / scale), there.n),
        (Some(spread), _) => match spread.deviation {
            Some(deviation) => format!("{} ± {}", number(spread.mean / scale), number(deviation / scale)),
            None => number(spread.mean / scale).to_string(),
        },
    });
    let n_rows: usize = group.by_status.iter().sum();
    let others = Status::ALL.into_iter().filter(|status| *status != Status::Done);
    let others = others.map(|status| (status.to_string(), group.n(status)));
    let lacking = ("not there".to_owned(), n_seeds.saturating_sub(n_rows));
    let rest = others.chain([lacking]).filter(|(_, n)| *n > 0);
    let rest = rest.map(|(what, n)| if n == n_seeds { what } else { format!("{n} {what}") });
    let GivenUp { n, n_of } = group.given_up;
    let given_up = (n > 0 && metric.of_completed).then(|| format!("without {n} of {n_of} jobs given up"));
    let here = mean.into_iter().chain(rest).chain(given_up).collect::<Vec<_>>().join(", ");
    match group.published {
        Some(value) => format!("{here} [{}]", number(value)),
        None => here,
    }
}

fn all_runs(study: &Study, rows: &[Row]) -> Table {
    let axes = study.axes.iter().map(|(name, _)| name.as_str());
    let mut table = Table::new(axes.chain(["status", "capacity"]).chain(Metric::names()).chain(["seconds"]));
    for row in rows {
        let mut cells: Vec<Cell> = row.values.iter().map(cell).collect();
        cells.push(row.outcome.status.name().into());
        cells.push(number(row.outcome.capacity));
        cells.extend(row.outcome.metrics.map(number));
        cells.push(Cell::Number(row.seconds, 2));
        table.push(cells);
    }
    table
}

/// The shares of the runs that kept them.
fn all_allocations(store: &Store, rows: &[Row]) -> Result<Table, Failure> {
    let axes = store.study().axes.iter().map(|(name, _)| name.as_str());
    let mut table = Table::new(axes.chain(["from_s", "until_s", "job", "partner", "worker_type", "share"]));
    for row in rows {
        for share in store.allocations(&row.digest).map_err(failure)? {
            let mut cells: Vec<Cell> = row.values.iter().map(cell).collect();
            cells.extend([Some(share.from), Some(share.until)].map(number));
            cells.extend([Cell::Count(share.job), share.partner.map_or(Cell::Empty, Cell::Count)]);
            let tiny = share.share < 5e-7;
            let part = if tiny { Cell::Scientific(share.share) } else { Cell::Number(share.share, 6) };
            cells.extend([share.worker_type.into(), part]);
            table.push(cells);
        }
    }
    if table.rows().is_empty() {
        let help = "`apportion sweep … --keep-allocations` keeps them; runs that are done are not run again";
        let message = "no run of these results has kept its allocations".to_owned();
        return Err(Failure::usage(message, Some(help.to_owned())));
    }
    Ok(table)
}

/// The cell of an axis's value: for programs a number is a number, for people it is as written.
pub(super) fn axis_cell(value: &serde_json::Value, is_for_people: bool) -> Cell {
    if is_for_people { value_text(value).into() } else { cell(value) }
}

fn cell(value: &serde_json::Value) -> Cell {
    match (value.as_u64(), value.as_f64()) {
        (Some(whole), _) => Cell::Count(whole),
        (None, Some(number)) => Cell::Number(number, 3),
        (None, None) => value_text(value).into(),
    }
}

fn number(value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::Number(value, if value.fract() == 0.0 { 0 } else { 4 }))
}

/// Warns of odd results of runs, once of each kind.
pub(super) fn warn<'r>(runs: impl Iterator<Item = &'r Run>, session: &Session) {
    let mut said = BTreeSet::new();
    for oddity in runs.flat_map(oddities).map(|oddity| oddity.to_string()) {
        if said.insert(oddity.clone()) {
            session.note(format!("warning: {oddity}"));
        }
    }
}

/// The failure of a store's error.
#[expect(clippy::needless_pass_by_value, reason = "given to map_err")]
pub(super) fn failure(error: StoreError) -> Failure {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    if error.is_bad_input() {
        let help = error.help().map(str::to_owned);
        return Failure::Usage { message: format!("{error}{cause}"), help };
    }
    let help = error.help().map(|help| format!("; {help}"));
    let text = format!("{error}{cause}{}", help.unwrap_or_default());
    Failure::Io { action: "keep results".to_owned(), source: io::Error::other(text) }
}

/// The failure of a run's error, for a command with the arguments `A`: a field of the run is replaced by its flag if it has one. An
/// error about owners names the file of `--entities`, too.
pub(super) fn run_failure_of<A: Args>(mut error: RunError, entities: Option<&Path>) -> Failure {
    let flags = A::augment_args(Command::new("apportion"));
    if let RunError::Fields(complaints) = &mut error {
        for FieldComplaint { field, .. } in complaints {
            let flag = field.rsplit('.').next().unwrap_or_default().replace('_', "-");
            if flags.get_arguments().any(|argument| argument.get_long() == Some(&flag)) {
                let file = entities.filter(|_| flag == "entities");
                let file = file.map_or_else(String::new, |file| format!(" {}", file.display()));
                *field = format!("--{flag}{file}");
            }
        }
    }
    run_failure(error)
}

/// The failure of a run's error.
pub(super) fn run_failure(error: RunError) -> Failure {
    match error {
        RunError::Document(error) => error.into(),
        RunError::Policy(error) | RunError::Simulation(SimulationError::Policy(error)) => error.into(),
        RunError::Fields(complaints) => {
            let help = complaints.first().and_then(|complaint| complaint.help.clone());
            let lines: Vec<String> = complaints
                .iter()
                .map(|complaint| format!("{}: {}", complaint.field, complaint.message))
                .collect();
            Failure::Usage { message: lines.join("\n"), help }
        }
        RunError::Simulation(SimulationError::Decision { place, error }) => match *error {
            DecisionError::Policy(error) => Failure::Decision { place: place.to_string(), error },
            error @ DecisionError::Livelock { .. } => Failure::Bug { message: format!("{place}: {error}") },
            error => Failure::usage(format!("{place}: {error}"), None),
        },
        error => Failure::usage(error.to_string(), None),
    }
}
