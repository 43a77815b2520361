//! `apportion report`: a page with charts about results.

use std::fs;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::Session;
use crate::bench_tables;
use crate::conditions::time;
use crate::exit::Failure;
use crate::file::{at, check_files, check_folder, is_standard_output, write};
use crate::output::{Answer, OutputFormat, SIMULATION_FORMAT, Table};
use crate::results;
use crate::simulate;
use apportion::metrics::log::{self, Header, Missing, Replay};
use apportion::metrics::timeline::Timeline;
use apportion::metrics::{Recorder, Summary};
use apportion::spec::nearest::{name_list, suggestion};
use apportion::spec::{Source, path_text};
use apportion::units::Seconds;
use apportion_studies::benchmark;
use apportion_studies::report::number::brief;
use apportion_studies::report::page::Page;
use apportion_studies::report::{benchmark as benchmark_page, run as run_page, study};
use apportion_studies::sweep::spec::value_text;
use apportion_studies::sweep::{Store, day, findings};

mod given;

use given::{Begun, Given, reading, text_of};

/// Write a page with charts about results: one HTML file that needs no network
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  apportion report results/quick
  apportion report results/quick --baseline fifo --out quick.html --assets figures
  apportion report results/osdi20-figure-8 --svg figure-8.svg
  apportion simulate --policy fifo --cluster v100=8 --rate 2 --jobs 50 --events run.jsonl
  apportion report run.jsonl

The page about a sweep goes into its folder, that about a file beside it, under its name: results/quick/report.html,
run.html. Where it is, is printed; `--format json` as {format: apportion/report-v1, version, page, assets, picture}.")]
pub struct ReportArguments {
    /// A sweep's folder or the results.sqlite in it; the events that `simulate --events` wrote, or its JSON; the JSON of `bench`
    #[arg(value_name = "RESULTS")]
    results: PathBuf,
    /// The file of the page, `-` being standard output [default: report.html in a sweep's folder; else the file's name with .html,
    /// beside it]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The policy that the others are held against [default: the sweep's first]
    #[arg(long, value_name = "POLICY")]
    baseline: Option<String>,
    /// Also write every chart as SVG and CSV, and every table as CSV, into this folder
    #[arg(long, value_name = "DIR")]
    assets: Option<PathBuf>,
    /// Also write the chart that the page begins with as SVG into this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Of events: show the beginning of the simulation, up to this time since its start
    #[arg(long, value_name = "SECONDS", value_parser = time)]
    until: Option<Seconds>,
}

pub(super) fn run(arguments: &ReportArguments, session: &Session) -> Result<(), Failure> {
    let out = arguments.out.clone().unwrap_or_else(|| beside(&arguments.results));
    let of_sweep = ["results.sqlite", "results.csv", "results.lock"].map(|name| arguments.results.join(name));
    let read: Vec<_> =
        of_sweep.iter().chain([&arguments.results]).map(|file| at("the results", Some(file))).collect();
    check_files(&read, &[at("--out", Some(&out)), at("--svg", arguments.svg.as_deref())])?;
    check_folder("--assets", arguments.assets.as_deref())?;
    let page = match Given::open(&arguments.results)? {
        Given::Sweep | Given::Result(_) if arguments.until.is_some() => {
            let help = "`apportion simulate … --events FILE` keeps what happened when".to_owned();
            let message = format!("--until: {} holds no events", arguments.results.display());
            return Err(Failure::usage(message, Some(help)));
        }
        Given::Sweep => study_page(&arguments.results, arguments.baseline.as_deref())?,
        _ if arguments.baseline.is_some() => {
            let help = "a baseline is for policies of a sweep".to_owned();
            let message = format!("--baseline: {} is not of a sweep", arguments.results.display());
            return Err(Failure::usage(message, Some(help)));
        }
        Given::Events(file) => events_page(arguments, file, session)?,
        Given::Result(file) => result_page(&arguments.results, file)?,
    };
    let picture =
        arguments.svg.as_deref().map(|file| Ok::<_, Failure>((file, picture(&page)?))).transpose()?;
    write(&out, page.html().as_bytes())?;
    if let Some(folder) = &arguments.assets {
        fs::create_dir_all(folder).map_err(Failure::io(format!("make {}", folder.display())))?;
        let assets = page.assets().map_err(undrawn)?;
        for asset in &assets {
            write(&folder.join(&asset.name), asset.text.as_bytes())?;
        }
        session.note(format!("{} files in {}", assets.len(), folder.display()));
    }
    if let Some((file, text)) = picture {
        write(file, text.as_bytes())?;
    }
    if is_standard_output(&out) || arguments.svg.as_deref().is_some_and(is_standard_output) {
        return Ok(());
    }
    let place = |path: &Path| path.display().to_string();
    let (assets, picture) = (arguments.assets.as_deref().map(place), arguments.svg.as_deref().map(place));
    tell(session, &Reported { page: place(&out), assets, picture })
}

/// The answer of `apportion report --format json`: the files that were written.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Reported {
    /// The page.
    page: String,
    /// The folder of charts and tables; null without `--assets`.
    assets: Option<String>,
    /// The chart that the page begins with; null without `--svg`.
    picture: Option<String>,
}

impl Answer for Reported {
    const KIND: &'static str = "report";
}

/// Prints the files that were written.
fn tell(session: &Session, reported: &Reported) -> Result<(), Failure> {
    let named = [("page", Some(&reported.page)), ("assets", reported.assets.as_ref())];
    let named = named.into_iter().chain([("picture", reported.picture.as_ref())]);
    let written: Vec<(&str, &str)> = named.filter_map(|(what, path)| Some((what, path?.as_str()))).collect();
    match session.output.format() {
        OutputFormat::Json => session.output.answer(reported),
        OutputFormat::Csv => {
            let mut table = Table::new(["what", "path"]);
            for (what, path) in written {
                table.push(vec![what.into(), path.into()]);
            }
            session.output.table(&table)
        }
        OutputFormat::Table => {
            let paths: Vec<&str> = written.into_iter().map(|(_, path)| path).collect();
            session.output.words(&paths.join("\n"))
        }
    }
}

/// The page's path without `--out`: in the folder of a sweep, or beside a file of results. Results that come through a pipe have no
/// folder: their page goes where the command runs.
fn beside(results: &Path) -> PathBuf {
    const PAGE: &str = "report.html";
    if results.is_dir() {
        return results.join(PAGE);
    }
    let is_stream = ["/dev", "/proc"].iter().any(|folder| results.starts_with(folder));
    if is_stream || !results.is_file() {
        return PathBuf::from(PAGE);
    }
    let named = results.with_extension("html");
    let is_of_sweep = results.extension().is_some_and(|ending| ending == "sqlite");
    if is_of_sweep || named == results { results.with_file_name(PAGE) } else { named }
}

/// The failure to draw a chart.
#[expect(clippy::needless_pass_by_value, reason = "given to map_err")]
fn undrawn(message: String) -> Failure {
    Failure::Bug { message: format!("cannot draw {message}") }
}

/// The chart that a page begins with.
fn picture(page: &Page) -> Result<String, Failure> {
    page.picture().map_err(undrawn)?.ok_or_else(|| {
        let help = "leave out `--svg`, or finish a run first".to_owned();
        Failure::usage("--svg: there is no chart in these results".to_owned(), Some(help))
    })
}

fn study_page(path: &Path, baseline: Option<&str>) -> Result<Page, Failure> {
    let store = Store::open_to_read(path).map_err(results::failure)?;
    match findings::of(&store, baseline).map_err(results::failure)? {
        Ok(found) => Ok(study::page(&found)),
        Err(names) => {
            let (wanted, known) = (baseline.unwrap_or_default(), names.iter().map(String::as_str));
            let message = format!("--baseline: no runs of `{wanted}`, expected one of {}", name_list(known));
            Err(Failure::usage(message, suggestion(wanted, names.iter().map(String::as_str))))
        }
    }
}

/// A simulation from its events.
fn events_page(
    ReportArguments { results: path, until, .. }: &ReportArguments,
    mut lines: Begun,
    session: &Session,
) -> Result<Page, Failure> {
    let refused = |error: log::LogError| -> Failure {
        let help = "`apportion simulate … --events FILE` writes such a file".to_owned();
        let source = Source::new(path_text::of(path), "");
        source.at(error.line(), error.column(), error.to_string(), Some(help)).into()
    };
    let mut line = Vec::new();
    let mut next = |line: &mut Vec<u8>| {
        line.clear();
        lines.read_until(b'\n', line).map_err(reading(path))
    };
    next(&mut line)?;
    let header = log::header(text_of(path, &line, 1)?).map_err(refused)?;
    let mut observer = (Recorder::new(&header.cluster), Timeline::new(&header.cluster));
    // The log of a scheduler has no workload. It goes on where that set a record aside, or dropped its oldest events.
    let is_live = header.spec["workload"].is_null();
    let replay = Replay::new(&header);
    let mut replay = if is_live { replay.passing_over() } else { replay };
    if let Some(end) = until {
        replay = replay.until(*end);
    }
    for number in 2.. {
        if replay.is_over() || next(&mut line)? == 0 {
            break;
        }
        let text =
            if is_live { String::from_utf8_lossy(&line) } else { text_of(path, &line, number)?.into() };
        replay.tell(&text, &mut observer).map_err(refused)?;
    }
    let missing = replay.into_missing();
    let Header { version, digest, cluster, spec, data, origin, .. } = header;
    let (recorder, timeline) = observer;
    let summary = recorder.summary().counted_from(origin);
    let mut facts = facts(&version, &digest, &spec, data.into_iter());
    let n_open = timeline.jobs().values().filter(|job| job.end.is_none()).count();
    if n_open > 0 {
        facts.push(("jobs that are not done where the events end".to_owned(), n_open.to_string()));
    }
    for (what, which) in lacks(&missing) {
        session.note(format!("warning: {}: {what}: {which}", path.display()));
        facts.push((what, which));
    }
    let (policy, text) = (value_text(&spec["policy"]), value_text(&spec["cluster"]));
    let n_measured = measured(&spec, Some(timeline.jobs().len()));
    let course = Some((cluster, timeline));
    let mut about = about_file(&version, &spec, path);
    about.extend(
        until.map(|end| ("shown".to_owned(), format!("what begins in the first {} h", brief(end.hours())))),
    );
    Ok(run_page::page(&run_page::Run { policy, cluster: text, summary, n_measured, course, facts, about }))
}

/// The most of the jobs that a log lacks of which the page names each.
const MISSING_MAX: usize = 20;

/// The events and lines that a damaged log lacks, in words.
fn lacks(missing: &Missing) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if !missing.jobs.is_empty() {
        let mut names: Vec<_> = missing.jobs.iter().take(MISSING_MAX).map(ToString::to_string).collect();
        if missing.jobs.len() > MISSING_MAX {
            names.push(format!("{} more", missing.jobs.len() - MISSING_MAX));
        }
        let what = "jobs that are left out, since the event of their arrival is missing";
        facts.push((what.to_owned(), names.join(", ")));
    }
    if missing.n_rounds > 0 {
        facts.push(("rounds of which the beginning is missing".to_owned(), missing.n_rounds.to_string()));
    }
    if missing.n_unread > 0 {
        let lines: Vec<_> =
            missing.unread.iter().map(|(line, what)| format!("line {line}: {what}")).collect();
        let what = format!("lines that are no events, {} in all", missing.n_unread);
        facts.push((what, lines.join("; ")));
    }
    facts
}

/// A simulation from what `simulate --format json` printed, or a benchmark from what `bench` did.
fn result_page(path: &Path, mut file: Begun) -> Result<Page, Failure> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(reading(path))?;
    let text = text_of(path, &bytes, 1)?;
    let source = Source::new(path_text::of(path), text);
    let refused = |error: serde_json::Error| -> Failure {
        let help = "expected results of `apportion sweep`, `simulate` or `bench`".to_owned();
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        let message = format!("it is not the JSON of a simulation or a benchmark: {said}");
        source.at(error.line().max(1), error.column().max(1), message, Some(help)).into()
    };
    let whole: Value = serde_json::from_str(text).map_err(refused)?;
    match whole["format"].as_str() {
        Some(benchmark::FORMAT) => {
            let results = benchmark::Results::read(text).map_err(refused)?;
            return Ok(benchmark_page::page(&benchmark_numbers(results)));
        }
        // Results of older versions have no format.
        Some(SIMULATION_FORMAT) | None => {}
        Some(found) => {
            let message = format!("{} is of format {found}, which has no page", path.display());
            let help = format!("known here are {SIMULATION_FORMAT} and {}", benchmark::FORMAT);
            return Err(source.error_at("format", message, Some(help)).into());
        }
    }
    let summary: Summary = serde_json::from_str(text).map_err(refused)?;
    let data = whole["data"].as_object().cloned().unwrap_or_default();
    let data = data.into_iter().map(|(name, digest)| (name, value_text(&digest)));
    let spec = &whole["spec"];
    let mut facts = facts(&value_text(&whole["version"]), &value_text(&whole["digest"]), spec, data);
    if let Some(reason) = whole["reason"].as_str() {
        facts.insert(0, (format!("given up as {}", value_text(&whole["status"])), reason.to_owned()));
    }
    let (policy, cluster) = (value_text(&spec["policy"]), value_text(&spec["cluster"]));
    let n_measured = whole["jobs_to_measure"].as_u64().and_then(|n| usize::try_from(n).ok());
    let n_measured = n_measured.or_else(|| measured(spec, None));
    let about = about_file(&value_text(&whole["version"]), spec, path);
    Ok(run_page::page(&run_page::Run { policy, cluster, summary, n_measured, course: None, facts, about }))
}

/// The number of jobs that a run was to measure, by its specification and the number of known arrivals; none if neither tells.
fn measured(spec: &Value, n_arrived: Option<usize>) -> Option<usize> {
    let count = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
    let workload = &spec["workload"];
    let declared = count(&workload["static"]).or_else(|| count(&workload["jobs"]));
    let endless = workload["trace"].is_null() && declared.is_none();
    match (count(&spec["measure"][0]), count(&spec["measure"][1])) {
        (Some(start), Some(end)) => {
            // Without a last job, arrivals go on until all these are done.
            let all = declared.or(if endless { Some(end) } else { n_arrived })?;
            Some(all.min(end).saturating_sub(start))
        }
        _ => declared.or(n_arrived),
    }
}

fn benchmark_numbers(results: benchmark::Results) -> benchmark_page::Benchmark {
    let table = bench_tables::flat(&results.rows);
    let system = &results.system;
    let made = [("command", &results.command), ("made on", &results.made_on)];
    let made = made.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    let mut facts: Vec<(String, String)> = made.collect();
    facts.extend([
        ("made by".to_owned(), format!("apportion {}", results.version)),
        ("processor".to_owned(), system.processor.clone()),
        ("cores".to_owned(), system.cores.to_string()),
        ("system".to_owned(), format!("{} {}", system.os, system.architecture)),
        ("limit of a case".to_owned(), format!("{} s", results.limit_seconds)),
    ]);
    let case = |row: benchmark::Row| benchmark_page::Case {
        seconds: row.cost_seconds().filter(|_| row.status == benchmark::Status::Done),
        range: row.cost_range_seconds(),
        by_clock: row.is_by_clock(),
        certified: row.optimal == Some(true),
        status: row.message.map_or(row.status.to_string(), |message| format!("{}: {message}", row.status)),
        backend: row.backend,
        n_parts: row.partitions,
        policy: row.policy,
        instance: row.instance,
        n_jobs: row.n_jobs,
    };
    benchmark_page::Benchmark { cases: results.rows.into_iter().map(case).collect(), rows: table, facts }
}

/// The facts that a page about a file of one run begins with: those of its specification, the command that makes it again, and the day on
/// which the file was last written. All are of the file alone, so that one file has one page.
fn about_file(version: &str, spec: &Value, path: &Path) -> Vec<(String, String)> {
    let mut about = about(version, spec);
    let written = fs::metadata(path).ok().filter(fs::Metadata::is_file).and_then(|file| file.modified().ok());
    let again = simulate::again(spec).map(|command| ("the same run", command));
    let written = written.and_then(day).map(|day| ("file last written on", day));
    about.extend([again, written].into_iter().flatten().map(|(name, value)| (name.to_owned(), value)));
    about
}

/// The facts about a run that its specification states.
pub(crate) fn about(version: &str, spec: &Value) -> Vec<(String, String)> {
    let workload = &spec["workload"];
    let jobs = match (workload["trace"].as_str(), workload["generator"].as_str()) {
        (Some(trace), _) => Some(format!("trace {trace}")),
        (None, generator) => generator.map(|name| format!("generator {name}")),
    };
    let about = [
        ("version", Some(format!("apportion {version}"))),
        ("semantics", spec["semantics"].as_str().map(str::to_owned)),
        ("jobs from", jobs),
        ("seed", spec["seed"].as_u64().map(|seed| seed.to_string())),
    ];
    about.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

pub(crate) fn facts(
    version: &str,
    digest: &str,
    spec: &Value,
    data: impl Iterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    let mut facts = vec![
        ("made by".to_owned(), format!("apportion {version}")),
        ("policy".to_owned(), value_text(&spec["policy"])),
        ("cluster".to_owned(), value_text(&spec["cluster"])),
        ("seed".to_owned(), value_text(&spec["seed"])),
        ("spec".to_owned(), spec.to_string()),
        ("digest of the run".to_owned(), digest.to_owned()),
    ];
    facts.extend(data.map(|(name, digest)| (format!("digest of the {name}"), digest)));
    facts
}
