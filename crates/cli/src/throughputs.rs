//! `apportion throughputs`: import, show and check throughput matrices; fit contention models.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::Session;
use crate::exit::Failure;
use crate::file::{at, check_files, named, write_or_print};
use crate::paths::name_or_path;
use crate::throughputs_fit::{self, FitArguments};
use apportion::index::RowId;
use apportion::spec::lookup::Embedded;
use apportion::spec::nearest::suggestion;
use apportion::spec::throughputs::{EMBEDDED, file_stem, throughputs_of};
use apportion::spec::{
    Finding, Origin, Source, SpecError, ThroughputsFile, read_throughputs, write_throughputs,
};
use apportion::spec::{elastic_throughputs, spread_throughputs};
use apportion::throughput::Throughputs;
use apportion::throughput::contention::retention;
use apportion::throughput::elastic::ElasticThroughputs;
use apportion::throughput::spread::SpreadThroughputs;
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
    /// Show a matrix in steps/s, or throughputs of a learned scheduler's world in samples/s.
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
    /// The name of throughputs that ship with the program (`osdi20`, `osdi20-physical`, and `dl2` and `deepshare` of worlds), or
    /// a file
    #[arg(default_value = "osdi20", value_name = "NAME|FILE", value_parser = name_or_path())]
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

/// Throughputs for a learned scheduler's world.
enum WorldSpeeds {
    /// By workers and parameter servers.
    Elastic(ElasticThroughputs),
    /// By workers and servers.
    Spread(SpreadThroughputs),
}

impl WorldSpeeds {
    /// Reads a document; none if it is of another format.
    fn read(source: &Source) -> Result<Option<Self>, SpecError> {
        if source.is_of(elastic_throughputs::FORMAT) {
            elastic_throughputs::read_elastic_throughputs(source).map(|speeds| Some(Self::Elastic(speeds)))
        } else if source.is_of(spread_throughputs::FORMAT) {
            spread_throughputs::read_spread_throughputs(source).map(|speeds| Some(Self::Spread(speeds)))
        } else {
            Ok(None)
        }
    }

    /// The content in words.
    fn in_words(&self) -> String {
        match self {
            Self::Elastic(speeds) => {
                let n_measured: usize = speeds.job_types.iter().map(|job_type| job_type.measured.len()).sum();
                let n_types = speeds.job_types.len();
                format!("{n_types} elastic job types, {n_measured} speeds by workers and parameter servers")
            }
            Self::Spread(speeds) => {
                let (n_types, n) = (speeds.job_types.len(), speeds.configurations.len());
                format!(
                    "{n_types} job types in {n} configurations of workers on servers, alone and side by side"
                )
            }
        }
    }

    fn job_types(&self) -> Vec<&str> {
        match self {
            Self::Elastic(speeds) => speeds.job_types.iter().map(|one| one.name.as_str()).collect(),
            Self::Spread(speeds) => speeds.job_types.iter().map(String::as_str).collect(),
        }
    }

    /// A table of the measured throughputs in samples/s, of one job type or of all; empty where a run failed.
    fn table(&self, only: Option<&str>) -> Table {
        let wanted = |name: &str| only.is_none_or(|only| only == name);
        let count = |number: u32| Cell::Count(number.into());
        match self {
            Self::Elastic(speeds) => {
                let mut table = Table::new(["job_type", "workers", "parameter_servers", "samples_per_s"]);
                for job_type in speeds.job_types.iter().filter(|one| wanted(&one.name)) {
                    for point in &job_type.measured {
                        let (workers, servers) = (count(point.workers), count(point.parameter_servers));
                        let has_failed = point.samples_per_s <= 0.0;
                        let speed =
                            if has_failed { Cell::Empty } else { Cell::Number(point.samples_per_s, 3) };
                        table.push(vec![job_type.name.as_str().into(), workers, servers, speed]);
                    }
                }
                table
            }
            Self::Spread(speeds) => {
                let mut table = Table::new(["job_type", "workers", "servers", "samples_per_s"]);
                for one in &speeds.configurations {
                    let name = &speeds.job_types[one.job_type];
                    if wanted(name) {
                        let (workers, servers) = (count(one.workers), count(one.servers));
                        table.push(vec![name.as_str().into(), workers, servers, Cell::Number(one.alone, 3)]);
                    }
                }
                table
            }
        }
    }
}

fn check(path: &str, session: &Session) -> Result<(), Failure> {
    let source = Source::load(path)?;
    if let Some(speeds) = WorldSpeeds::read(&source)? {
        let words = speeds.in_words();
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

/// All throughputs that ship with the program: matrices, and those of worlds.
fn shipped() -> Vec<Embedded> {
    let of_worlds = elastic_throughputs::EMBEDDED.iter().chain(&spread_throughputs::EMBEDDED);
    EMBEDDED.iter().chain(of_worlds).copied().collect()
}

fn show(arguments: &ShowArguments, session: &Session) -> Result<(), Failure> {
    let source = Source::find("throughputs", &arguments.matrix, &shipped())?;
    let of_world = WorldSpeeds::read(&source)?;
    if arguments.text {
        if of_world.is_none() {
            read(&source, &file_stem(&arguments.matrix))?;
        }
        return session.output.document(&source.text);
    }
    if let Some(speeds) = of_world {
        return show_world(&speeds, arguments, session);
    }
    let throughputs = throughputs_of(&source, &file_stem(&arguments.matrix))?;
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

/// Shows the throughputs of a world, which have neither scale factors nor, in steps/s, pairs.
fn show_world(speeds: &WorldSpeeds, arguments: &ShowArguments, session: &Session) -> Result<(), Failure> {
    let flags = [("--scale-factor", arguments.scale_factor.is_some()), ("--colocated", arguments.colocated)];
    if let Some((flag, _)) = flags.iter().find(|(_, is_given)| *is_given) {
        let message = format!("`{flag}` is of matrices, and `{}` is of a world", arguments.matrix);
        let help = "`--text` prints all that the document has".to_owned();
        return Err(Failure::usage(message, Some(help)));
    }
    let only = arguments.job_type.as_deref();
    if let Some(job_type) = only.filter(|name| !speeds.job_types().contains(name)) {
        let help = suggestion(job_type, speeds.job_types());
        let help =
            help.or_else(|| Some(format!("`apportion throughputs show {}` lists them", arguments.matrix)));
        let message = format!("throughputs `{}` have no job type `{job_type}`", arguments.matrix);
        return Err(Failure::usage(message, help));
    }
    session.output.table(&speeds.table(only))
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
