//! `apportion throughputs`: import, show and check throughput matrices; fit contention models.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::Session;
use crate::exit::Failure;
use crate::file::{at, check_files, named, write_or_print};
use crate::paths::name_or_path;
use crate::throughputs_fit::{self, FitArguments};
use apportion::index::RowId;
use apportion::spec::nearest::suggestion;
use apportion::spec::throughputs::{EMBEDDED, file_stem};
use apportion::spec::{
    Finding, Origin, Source, SpecError, ThroughputsFile, load_throughputs, read_throughputs,
    write_throughputs,
};
use apportion::spec::{elastic_throughputs, spread_throughputs};
use apportion::throughput::Throughputs;
use apportion::throughput::contention::retention;
use apportion_studies::report::{Cell, Table};

/// `apportion throughputs`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  apportion throughputs import simulation_throughputs.json --name mine --out mine.yaml
  apportion throughputs show osdi20 --text > mine.yaml
  apportion throughputs show mine.yaml --scale-factor 2
  apportion throughputs fit mine.yaml --model resource --out mine-resource.yaml")]
pub struct ThroughputsArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Re-express measurements (Gavel's JSON, or ours) in our format; says what was dropped.
    Import(ImportArguments),
    /// Show a matrix in steps/s.
    Show(ShowArguments),
    /// Fit a contention model to measured pairs; says how well it predicts pairs held out.
    Fit(FitArguments),
    /// Check a file, and say what is missing or odd in it.
    Check {
        /// The file
        #[arg(value_parser = name_or_path())]
        file: String,
    },
}

#[derive(Args, Debug)]
struct ImportArguments {
    /// The measurements
    #[arg(value_parser = name_or_path())]
    file: String,
    /// The name by which documents and commands refer to the matrix; the file's by default
    #[arg(long)]
    name: Option<String>,
    /// Where to write, `-` being standard output [default: -]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The people or the group that measured
    #[arg(long, value_name = "TEXT")]
    who: Option<String>,
    /// The publication
    #[arg(long = "where", value_name = "TEXT")]
    published: Option<String>,
    /// The time of the measurements
    #[arg(long, value_name = "TEXT")]
    when: Option<String>,
    /// The licence of the numbers
    #[arg(long, value_name = "TEXT")]
    licence: Option<String>,
    /// The hardware that was measured
    #[arg(long, value_name = "TEXT")]
    hardware: Option<String>,
    /// The software with which it was measured
    #[arg(long, value_name = "TEXT")]
    software: Option<String>,
    /// Further notes for readers
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

#[derive(Args, Debug)]
struct ShowArguments {
    /// An embedded matrix's name, or a file
    #[arg(default_value = "osdi20", value_parser = name_or_path())]
    matrix: String,
    /// Only this job type
    #[arg(long, value_name = "NAME")]
    job_type: Option<String>,
    /// Only this scale factor
    #[arg(long, value_name = "WORKERS")]
    scale_factor: Option<u32>,
    /// Fractions of the isolated throughput kept beside other job types, instead of steps/s alone
    #[arg(long, requires = "job_type")]
    colocated: bool,
    /// The document as it is written, to start one's own from
    #[arg(long, conflicts_with_all = ["job_type", "scale_factor", "colocated"])]
    text: bool,
}

pub(super) fn run(arguments: &ThroughputsArguments, session: &Session) -> Result<(), Failure> {
    match &arguments.action {
        Action::Import(arguments) => import(arguments, session),
        Action::Show(arguments) => show(arguments, session),
        Action::Fit(arguments) => throughputs_fit::run(arguments, session),
        Action::Check { file } => check(file, session),
    }
}

fn import(arguments: &ImportArguments, session: &Session) -> Result<(), Failure> {
    check_files(&[named("the file", Some(&arguments.file))], &[at("--out", arguments.out.as_deref())])?;
    let name = arguments.name.clone().unwrap_or_else(|| file_stem(&arguments.file));
    let mut file = read(&Source::load(&arguments.file)?, &name)?;
    let origin = &mut file.header.source;
    overwrite(origin, arguments);
    if arguments.name.is_some() {
        name.clone_into(&mut file.header.name);
    }
    session.note(summary(&file));
    for finding in &file.findings {
        session.note(in_words(finding));
    }
    write_or_print(session, arguments.out.as_deref(), &write_throughputs(&file.header, &file.measured))
}

/// Overwrites the origin that the file states with the fields that flags state.
fn overwrite(origin: &mut Origin, arguments: &ImportArguments) {
    let flags = [
        (&mut origin.who, &arguments.who),
        (&mut origin.r#where, &arguments.published),
        (&mut origin.when, &arguments.when),
        (&mut origin.licence, &arguments.licence),
        (&mut origin.hardware, &arguments.hardware),
        (&mut origin.software, &arguments.software),
        (&mut origin.note, &arguments.note),
    ];
    for (field, flag) in flags {
        if flag.is_some() {
            field.clone_from(flag);
        }
    }
}

/// Reads a document and checks that it makes a matrix.
fn read(source: &Source, name: &str) -> Result<ThroughputsFile, Failure> {
    let file = read_throughputs(source, name)?;
    match Throughputs::try_new(file.measured.clone()) {
        Ok(_) => Ok(file),
        Err(error) => Err(SpecError::about(&source.name, error.to_string(), None).into()),
    }
}

fn summary(file: &ThroughputsFile) -> String {
    let measured = &file.measured;
    let n_pairs = measured.colocated.iter().filter(|value| **value > 0.0).count();
    format!(
        "{}: {} rows on {}, {n_pairs} co-located throughputs",
        file.header.name,
        measured.rows.len(),
        measured.worker_types.join(", ")
    )
}

fn in_words(finding: &Finding) -> String {
    let more = if finding.count > finding.examples.len() { ", …" } else { "" };
    format!("{} {}: {}{more}", finding.count, finding.kind.describe(), finding.examples.join("; "))
}

/// The content of a file of throughputs for a learned scheduler's world, in words; none if it is not such a file.
fn world_speeds(source: &Source) -> Result<Option<String>, SpecError> {
    let words = if source.is_of(elastic_throughputs::FORMAT) {
        let speeds = elastic_throughputs::read_elastic_throughputs(source)?;
        let n_measured: usize = speeds.job_types.iter().map(|job_type| job_type.measured.len()).sum();
        let n_types = speeds.job_types.len();
        format!("{n_types} elastic job types, {n_measured} speeds by workers and parameter servers")
    } else if source.is_of(spread_throughputs::FORMAT) {
        let speeds = spread_throughputs::read_spread_throughputs(source)?;
        let (n_types, n) = (speeds.job_types.len(), speeds.configurations.len());
        format!("{n_types} job types in {n} configurations of workers on servers, alone and side by side")
    } else {
        return Ok(None);
    };
    Ok(Some(words))
}

fn check(path: &str, session: &Session) -> Result<(), Failure> {
    let source = Source::load(path)?;
    if let Some(words) = world_speeds(&source)? {
        session.note(format!("{}: {words}; for `apportion world`, no matrix for policies", file_stem(path)));
        return session.output.table(&Table::new(["count", "finding", "examples"]));
    }
    let file = read(&source, &file_stem(path))?;
    session.note(summary(&file));
    let mut table = Table::new(["count", "finding", "examples"]);
    for Finding { kind, count, examples } in &file.findings {
        let examples = examples.join("; ");
        table.push(vec![Cell::Count(*count as u64), kind.describe().into(), examples.into()]);
    }
    session.output.table(&table)
}

fn show(arguments: &ShowArguments, session: &Session) -> Result<(), Failure> {
    if arguments.text {
        let source = Source::find("throughputs", &arguments.matrix, &EMBEDDED)?;
        read(&source, &file_stem(&arguments.matrix))?;
        return session.output.document(&source.text);
    }
    let throughputs = load_throughputs(&arguments.matrix)?;
    let chosen = |row: &RowId| {
        let key = &throughputs.rows()[*row];
        arguments.job_type.as_ref().is_none_or(|job_type| *job_type == key.job_type)
            && arguments.scale_factor.is_none_or(|scale_factor| scale_factor == key.scale_factor)
    };
    let rows: Vec<RowId> = throughputs.rows().ids().filter(chosen).collect();
    if rows.is_empty() {
        return Err(none_chosen(&throughputs, arguments));
    }
    let table = if arguments.colocated { colocated(&throughputs, &rows) } else { alone(&throughputs, &rows) };
    session.output.table(&table)
}

fn none_chosen(throughputs: &Throughputs, arguments: &ShowArguments) -> Failure {
    let rows = throughputs.rows().iter();
    let known = |job_type: &str| rows.clone().any(|row| row.job_type == job_type);
    match &arguments.job_type {
        Some(job_type) if !known(job_type) => Failure::usage(
            format!("throughputs `{}` have no job type `{job_type}`", throughputs.name()),
            suggestion(job_type, rows.clone().map(|row| row.job_type.as_str()))
                .or_else(|| Some(format!("`apportion throughputs show {}` lists them", arguments.matrix))),
        ),
        _ => Failure::usage(
            format!("throughputs `{}` have no such row at this scale factor", throughputs.name()),
            Some("leave `--scale-factor` out to see which there are".to_owned()),
        ),
    }
}

/// A table of the steps/s of each row, consolidated and not.
fn alone(throughputs: &Throughputs, rows: &[RowId]) -> Table {
    let types = throughputs.worker_types();
    let names = types.iter().cloned().chain(types.iter().map(|name| format!("{name}_unconsolidated")));
    let mut table = Table::new(["job_type".to_owned(), "scale_factor".to_owned()].into_iter().chain(names));
    for row in rows {
        let key = &throughputs.rows()[*row];
        let mut cells: Vec<Cell> = vec![key.job_type.as_str().into(), Cell::Count(key.scale_factor.into())];
        cells.extend(types.ids().map(|column| Cell::Number(throughputs.alone(*row, column), 3)));
        cells.extend(types.ids().map(|column| {
            throughputs.spread(*row, column).map_or(Cell::Empty, |value| Cell::Number(value, 3))
        }));
        table.push(cells);
    }
    table
}

/// A table of the fraction of its isolated throughput that each row keeps beside each row of its scale factor; empty if the two
/// cannot share workers.
fn colocated(throughputs: &Throughputs, rows: &[RowId]) -> Table {
    let types = throughputs.worker_types();
    let head = ["job_type", "scale_factor", "beside"].map(str::to_owned);
    let mut table = Table::new(head.into_iter().chain(types.iter().cloned()));
    for row in rows {
        let key = &throughputs.rows()[*row];
        for (other, beside) in throughputs.rows().enumerate() {
            if beside.scale_factor != key.scale_factor {
                continue;
            }
            let size = Cell::Count(key.scale_factor.into());
            let mut cells: Vec<Cell> =
                vec![key.job_type.as_str().into(), size, beside.job_type.as_str().into()];
            cells.extend(types.ids().map(|column| {
                let both = throughputs.colocated(*row, other, column);
                let kept = retention(throughputs.alone(*row, column), both);
                if both > 0.0 { Cell::Number(kept, 3) } else { Cell::Empty }
            }));
            table.push(cells);
        }
    }
    table
}
