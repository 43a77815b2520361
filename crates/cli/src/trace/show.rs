//! `apportion trace show`: a description of the jobs of a trace, or of a cluster's log.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::log::{
    COMPLAINTS_SHOWN, Given, LogArguments, beside_tables, check_interrupt, like_a_log, sentences,
};
use super::sketch::sketch;
use crate::Session;
use crate::command_line::made_now;
use crate::exit::Failure;
use crate::file::{at, check_files, named, print_page, write_page};
use crate::output::{Answer, OutputFormat};
use crate::paths::name_or_path;
use apportion::Cluster;
use apportion::index::{Id, WorkerTypeId};
use apportion::spec::path_text;
use apportion::spec::run::WorkerCounts;
use apportion::spec::{
    Source, SpecError, Trace, TraceForm, TraceOrder, TracedJob, load_throughputs, read_trace,
};
use apportion::throughput::Throughputs;
use apportion::units::Decimals;
use apportion_logs::ImportReport;
use apportion_logs::load::{Load, Shape};
use apportion_logs::report::{Doubtful, LeftOut, OnCluster, loads};
use apportion_logs::tally::{Tally, counted};
use apportion_studies::report::number::brief;
use apportion_studies::report::page::{NamedTable, Page};
use apportion_studies::report::workload::{self, Workload};
use apportion_studies::report::{Cell, Table};
use apportion_studies::sweep::TRACES;

/// The throughputs with which a log is shown by default.
const USUAL: &str = "osdi20";

#[derive(Args, Debug)]
pub(super) struct ShowArguments {
    /// The trace, in any form, or the name of one that ships with the program (`osdi20-figure-11`); with --from the log of a
    /// cluster, which may be packed by gzip; `-` is standard input
    #[arg(value_name = "FILE|NAME", value_parser = name_or_path())]
    file: String,
    /// The trace as it is written, once it is checked
    #[arg(long, conflicts_with_all = ["from", "page", "cluster"])]
    text: bool,
    #[command(flatten)]
    log: LogArguments,
    /// Check job types against this matrix (an embedded name, or a file), and take running times from it; of a log, take the
    /// jobs for its job types: those of `osdi20` by default
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    throughputs: Option<String>,
    /// Compare the load with this cluster, as v100=36,p100=36,k80=36
    #[arg(long, value_name = "TYPE=COUNT,...")]
    cluster: Option<WorkerCounts>,
    /// Write a page with pictures here: one HTML file that needs no network; `-` is standard output, in place of the results
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

pub(super) fn run(arguments: &ShowArguments, session: &Session) -> Result<(), Failure> {
    let throughputs = named("--throughputs", arguments.throughputs.as_deref());
    let what = if arguments.log.form().is_some() { "the log" } else { "the trace" };
    check_files(
        &[&arguments.log.files()[..], &[named(what, Some(&arguments.file)), throughputs]].concat(),
        &[at("--page", arguments.page.as_deref())],
    )?;
    arguments.log.check_one_input(&arguments.file, arguments.throughputs.as_deref())?;
    let cluster = arguments.cluster.as_ref().map(|counts| counts.to_string().parse::<Cluster>());
    let cluster = cluster.transpose().map_err(|error| Failure::usage(format!("--cluster: {error}"), None))?;
    if let Some(given) = arguments.log.read(&arguments.file, session)? {
        let throughputs = load_throughputs(arguments.throughputs.as_deref().unwrap_or(USUAL))?;
        return show_log(arguments, (&given, &throughputs), cluster.as_ref(), session);
    }
    let throughputs = arguments.throughputs.as_deref().map(load_throughputs).transpose()?;
    let source = trace_source(&arguments.file)?;
    let trace = read_trace(&source, throughputs.as_deref(), TraceOrder::Refuse)
        .map_err(|error| like_a_log(&source, error))?;
    check_interrupt(session)?;
    if arguments.text {
        return session.output.document(&source.text);
    }
    show_trace(arguments, (&trace, throughputs.as_deref()), cluster.as_ref(), session)
}

/// The trace that ships with the program under a name, or the file at a path. A name has neither folder nor ending.
fn trace_source(name_or_path: &str) -> Result<Source, SpecError> {
    match path_text::to_path(name_or_path).extension() {
        None => Source::find("trace", name_or_path, &TRACES),
        Some(_) => Source::load(name_or_path),
    }
}

fn show_log(
    arguments: &ShowArguments,
    (given, throughputs): (&Given, &Throughputs),
    cluster: Option<&Cluster>,
    session: &Session,
) -> Result<(), Failure> {
    let converter = given.converter(throughputs, session)?;
    let converted = given.convert(&converter, session)?;
    let import = given.import(&converted, throughputs, cluster);
    let report = ImportReport::of(&import);
    let durations = Shape::duration_classes(&loads(&import));
    check_interrupt(session)?;
    let page = arguments.page.as_deref().map(|path| (path, page_of(&report, &durations, cluster)));
    if print_page(session, &page)? {
        return given.check_some(&report);
    }
    match session.output.format() {
        OutputFormat::Json => session.output.json(&report)?,
        OutputFormat::Csv => session.output.table(&left_out(&report.left_out, true))?,
        OutputFormat::Table => {
            session.output.words(&sentences(&report).join("\n"))?;
            for complaint in report.complaints.iter().take(COMPLAINTS_SHOWN) {
                session.output.words(&format!("not understood: {complaint}"))?;
            }
            session.output.words(&told(&report).join("\n"))?;
            for doubt in &report.known_doubts {
                session.output.words(&format!("known of this form: {doubt}"))?;
            }
            drawn(report.shape.as_ref(), &durations, session)?;
        }
    }
    write_page(session, &page)?;
    given.check_some(&report)
}

/// The page about a log.
fn page_of(report: &ImportReport, durations: &[(f64, usize)], cluster: Option<&Cluster>) -> Page {
    let of_left_out = report.left_out.iter().map(|left_out| &left_out.rows);
    let of_doubts = report.doubts.iter().map(|doubt| &doubt.rows);
    let with_files = of_left_out.chain(of_doubts).any(|rows| rows.file.is_some());
    let tables = vec![
        named_table("left-out", "Rows that are no jobs", left_out(&report.left_out, with_files)),
        named_table("doubts", "What is doubtful", doubts(&report.doubts, with_files)),
        named_table("rows", "Rows by how they ended", states(report)),
    ];
    let known = report.known_doubts.iter().map(|doubt| format!("Known of this form: {doubt}."));
    let not_understood = report.complaints.iter().take(COMPLAINTS_SHOWN);
    let not_understood = not_understood.map(|complaint| format!("Not understood: {complaint}."));
    let notes = [beside_tables(report), told(report), not_understood.collect(), known.collect()];
    workload::page(&Workload {
        name: report.log.clone(),
        facts: facts(report),
        tables,
        notes: notes.concat(),
        shape: report.shape.clone(),
        durations: durations.to_vec(),
        n_workers: cluster.map(Cluster::n_workers),
    })
}

/// The statements of a report other than counts of rows, in sentences.
fn told(report: &ImportReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(waited) = report.waited {
        let [mean, median, p90] = [waited.mean_s, waited.median_s, waited.p90_s].map(workload::from);
        lines.push(format!(
            "On the original cluster the wait of {} was {mean} on average, half of the waits at most {median}, nine in ten at \
             most {p90}.",
            counted(waited.n_jobs as u64, "job")
        ));
    }
    if report.n_jobs > 0 {
        let hours = brief(report.worker_hours_in_log);
        lines.push(format!("In the log all jobs together took {hours} worker-hours."));
    }
    for (worker_type, n) in &report.running_times_of {
        lines.push(format!(
            "The running time of {} is taken to be that on {worker_type}.",
            counted(*n, "job")
        ));
    }
    if let Some(on) = &report.on_cluster {
        if let Some(part) = on.mean_busy_part {
            lines.push(format!(
                "At the speeds of the log the jobs are {} % of what {} ({} workers) can do.",
                Decimals(part * 100.0, 1),
                on.cluster,
                on.n_workers
            ));
        }
        if on.n_too_large > 0 {
            lines.push(format!(
                "More workers than any type of {} has: {}.",
                on.cluster,
                counted(on.n_too_large as u64, "job")
            ));
        }
    }
    lines
}

fn drawn(shape: Option<&Shape>, durations: &[(f64, usize)], session: &Session) -> Result<(), Failure> {
    let Some(shape) = shape else { return Ok(()) };
    session.output.words(&workload::sentence(shape))?;
    session.output.text(&sketch(shape, durations))?;
    session.output.table(&workload::numbers(shape))
}

fn named_table(name: &str, title: &str, table: Table) -> NamedTable {
    NamedTable { name: name.to_owned(), title: title.to_owned(), table, folded: false }
}

/// A table of rows that were left out, with the file of the first, which is empty if it is the log.
fn left_out(all: &[LeftOut], with_files: bool) -> Table {
    let rows = all.iter().map(|left_out| (left_out.words, &left_out.rows));
    of_rows(["reason", "rows", "first_line", "first_id", "first_file"], rows, with_files)
}

fn doubts(all: &[Doubtful], with_files: bool) -> Table {
    let rows = all.iter().map(|doubt| (doubt.words, &doubt.rows));
    of_rows(["what is doubtful", "times", "first line", "first id", "first file"], rows, with_files)
}

/// A table of kinds of rows, with their numbers and the place of the first.
fn of_rows<'r>(
    columns: [&str; 5],
    kinds: impl Iterator<Item = (&'static str, &'r Tally)>,
    with_files: bool,
) -> Table {
    let n_columns = if with_files { 5 } else { 4 };
    let mut table = Table::new(columns.into_iter().take(n_columns));
    for (words, rows) in kinds {
        let [id, file] = [&rows.id, &rows.file].map(|text| text.as_deref().unwrap_or_default());
        let row = [words.into(), Cell::Count(rows.n), Cell::Count(rows.line), id.into(), file.into()];
        table.push(row.into_iter().take(n_columns).collect());
    }
    table
}

fn states(report: &ImportReport) -> Table {
    let mut table = Table::new(["state", "rows"]);
    for (state, n) in &report.states {
        table.push(vec![state.name().into(), Cell::Count(*n)]);
    }
    table
}

fn facts(report: &ImportReport) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let facts = [
        fact("log", report.log.clone()),
        fact("form", report.form.to_owned()),
        fact("rows read", report.n_rows_read.to_string()),
        fact("throughputs", report.throughputs.clone()),
        fact("seed of job types", report.seed.to_string()),
        fact("version", format!("apportion {}", env!("CARGO_PKG_VERSION"))),
    ];
    made_now().chain(facts).collect()
}

fn show_trace(
    arguments: &ShowArguments,
    (trace, throughputs): (&Trace, Option<&Throughputs>),
    cluster: Option<&Cluster>,
    session: &Session,
) -> Result<(), Failure> {
    let loads = throughputs.map(|throughputs| loads_of(trace, throughputs));
    let shape = loads.as_deref().and_then(Shape::of);
    let durations = Shape::duration_classes(loads.as_deref().unwrap_or_default());
    if throughputs.is_none() && (arguments.page.is_some() || cluster.is_some()) {
        let message = "a trace has steps and no times: --throughputs says how fast they are".to_owned();
        return Err(Failure::usage(message, Some("`--throughputs osdi20`, for example".to_owned())));
    }
    let page = arguments.page.as_deref().map(|path| {
        let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let name = throughputs.map(Throughputs::name).unwrap_or_default();
        let workload = Workload {
            name: arguments.file.clone(),
            facts: made_now()
                .chain([
                    fact("throughputs", name),
                    fact("version", concat!("apportion ", env!("CARGO_PKG_VERSION"))),
                ])
                .collect(),
            tables: vec![named_table("job-types", "Jobs by type", kinds(trace))],
            notes: vec![
                "Running times are of jobs alone on the first worker type of the throughputs.".to_owned(),
            ],
            shape: shape.clone(),
            durations: durations.clone(),
            n_workers: cluster.map(Cluster::n_workers),
        };
        (path, workload::page(&workload))
    });
    if print_page(session, &page)? {
        return Ok(());
    }
    print_trace(trace, (shape, &durations), cluster, session)?;
    write_page(session, &page)
}

/// Prints a description of a trace's jobs.
fn print_trace(
    trace: &Trace,
    (shape, durations): (Option<Shape>, &[(f64, usize)]),
    cluster: Option<&Cluster>,
    session: &Session,
) -> Result<(), Failure> {
    session.note(in_words(trace));
    let on_cluster = cluster.map(|cluster| OnCluster::of(cluster, shape.as_ref()));
    if session.output.format() == OutputFormat::Json {
        return session.output.answer(&WorkloadSummary { job_types: kinds_of(trace), shape, on_cluster });
    }
    session.output.table(&kinds(trace))?;
    if session.output.format() != OutputFormat::Table {
        return Ok(());
    }
    if let Some(OnCluster { cluster, mean_busy_part, n_too_large, .. }) = &on_cluster {
        if let Some(part) = mean_busy_part {
            session.output.words(&format!(
                "At the speeds of the first worker type the jobs are {} % of what {cluster} can do.",
                Decimals(100.0 * part, 1)
            ))?;
        }
        if *n_too_large > 0 {
            let jobs = counted(*n_too_large as u64, "job");
            session.output.words(&format!("More workers than any type of {cluster} has: {jobs}."))?;
        }
    }
    drawn(shape.as_ref(), durations, session)
}

/// The load of each of a trace's jobs, running alone on the matrix's first worker type, or, if it cannot run there, on the first
/// that it can run on.
fn loads_of(trace: &Trace, throughputs: &Throughputs) -> Vec<Load> {
    let types = || (0..throughputs.worker_types().len()).map(WorkerTypeId::from_index);
    let load = |TracedJob { job, .. }: &TracedJob| {
        let row = throughputs.find(&job.job_type, job.scale_factor)?;
        let speed = types().map(|kind| throughputs.alone(row, kind)).find(|speed| *speed > 0.0)?;
        Some(Load {
            arrival_s: job.arrival.get(),
            duration_s: job.total_steps.get() / speed,
            n_workers: job.scale_factor,
        })
    };
    trace.jobs.iter().filter_map(load).collect()
}

/// A trace, as `apportion trace show --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WorkloadSummary<'a> {
    /// Its jobs, by job type and scale factor.
    job_types: Vec<JobsOfType<'a>>,
    /// The shape of its load; null without throughputs, which tell how long its jobs take.
    shape: Option<Shape>,
    /// The load on the given cluster; null without a cluster.
    on_cluster: Option<OnCluster>,
}

impl Answer for WorkloadSummary<'_> {
    const KIND: &'static str = "workload";
}

/// Jobs of one type and scale factor.
#[derive(Serialize, JsonSchema)]
struct JobsOfType<'a> {
    /// The job type.
    job_type: &'a str,
    /// Workers that each needs at once.
    scale_factor: u32,
    /// The number of these jobs.
    jobs: u64,
    /// Their mean number of steps.
    mean_steps: f64,
}

fn kinds_of(trace: &Trace) -> Vec<JobsOfType<'_>> {
    let mut kinds: BTreeMap<(&str, u32), (u64, f64)> = BTreeMap::new();
    for TracedJob { job, .. } in &trace.jobs {
        let (n_jobs, steps) = kinds.entry((&job.job_type, job.scale_factor)).or_default();
        *n_jobs += 1;
        *steps += job.total_steps.get();
    }
    let kind = |((job_type, scale_factor), (jobs, steps)): ((_, _), (u64, f64))| JobsOfType {
        job_type,
        scale_factor,
        jobs,
        mean_steps: Some(steps / jobs as f64)
            .filter(|mean| *mean < 1.0)
            .unwrap_or((steps / jobs as f64).round()),
    };
    kinds.into_iter().map(kind).collect()
}

fn kinds(trace: &Trace) -> Table {
    let mut table = Table::new(["job_type", "scale_factor", "jobs", "mean_steps"]);
    for JobsOfType { job_type, scale_factor, jobs, mean_steps } in kinds_of(trace) {
        let n_workers = Cell::Count(scale_factor.into());
        table.push(vec![job_type.into(), n_workers, Cell::Count(jobs), Cell::Number(mean_steps, 0)]);
    }
    table
}

fn in_words(trace: &Trace) -> String {
    let form = match trace.form {
        TraceForm::Native => "our CSV",
        TraceForm::Gavel => "Gavel's ten columns",
        TraceForm::GavelSeven => "Gavel's seven columns",
    };
    let hours = |job: Option<&TracedJob>| job.map_or(0.0, |traced| traced.job.arrival.hours());
    let (first, last) = (hours(trace.jobs.first()), hours(trace.jobs.last()));
    let jobs = counted(trace.jobs.len() as u64, "job");
    format!("{jobs} in {form}, arriving from {} h to {} h", Decimals(first, 2), Decimals(last, 2))
}
