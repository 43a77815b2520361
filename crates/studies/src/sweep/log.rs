//! Studies on clusters' own logs: traces that are windows of a log that the user has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;

use crate::sweep::spec::SweepSpec;
use crate::sweep::spec::log::{LogSpec, window_of};
use apportion::spec::throughputs::load_throughputs;
use apportion::spec::{Source, SpecError, TraceForm, path_text};
use apportion::throughput::Throughputs;
use apportion_logs::report::Import;
use apportion_logs::tally::{Reason, Tally, counted};
use apportion_logs::write::write_jobs;
use apportion_logs::{Converter, ImportReport, ReadOptions, Reading, Rules, Window, Zone, read_log};

/// A window of a log as a trace.
#[derive(Debug)]
pub struct LogTrace {
    /// Trace, with the name that the study's runs have for it.
    pub trace: Source,
    /// Report of the import of the log.
    pub report: ImportReport,
    /// Rows that would arrive in the window and became no job, by reason.
    pub left_out: BTreeMap<Reason, Tally>,
    /// Rows of the whole log that became no job and have no known arrival, by reason, without those that are not understood.
    pub undated: BTreeMap<Reason, Tally>,
}

/// Sentences about the windows of a log: rows that are left out, with the reasons, and jobs that are smaller or larger than
/// they were.
pub fn said(traces: &[LogTrace]) -> Vec<String> {
    let mut said = Vec::new();
    // These rows are the same for each window.
    if let Some(LogTrace { report, undated, .. }) = traces.first() {
        if report.n_not_understood() > 0 {
            let rows = counted(report.n_not_understood(), "row");
            let first =
                report.complaints.first().map_or_else(String::new, |first| format!(", the first: {first}"));
            said.push(format!("{rows} of {} not understood and left out{first}", report.log));
        }
        if let Some((rows, reasons)) = by_reason(undated) {
            said.push(format!("{rows} of {} left out whatever the window ({reasons})", report.log));
        }
    }
    for LogTrace { trace, report, left_out, .. } in traces {
        let left_out = by_reason(left_out).map(|(rows, reasons)| format!("{rows} left out ({reasons})"));
        let of_window = left_out.into_iter().chain(report.of_jobs());
        said.extend(of_window.map(|said| format!("in `{}`: {said}", trace.name)));
    }
    said
}

/// Number of rows that are left out, and the numbers by reason, as text; none if there are none.
fn by_reason(left_out: &BTreeMap<Reason, Tally>) -> Option<(String, String)> {
    let n = left_out.values().map(|rows| rows.n).sum();
    let reasons: Vec<String> =
        left_out.iter().map(|(reason, rows)| format!("{}: {}", rows.n, reason.words())).collect();
    (n > 0).then(|| (counted(n, "row"), reasons.join("; ")))
}

/// Traces of a study that are windows of the log at a path. Once `stop` is raised, reading ends between two rows; the result
/// is then useless.
///
/// # Errors
/// If the log is not of the study's form, has rows that are not understood and are not to be left out, or a window has no
/// job.
pub fn traces(
    sweep: &SweepSpec,
    spec: &LogSpec,
    path: &str,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<LogTrace>, SpecError> {
    let about = |message: String| SpecError::about(path, message, None);
    let mut options = ReadOptions::new(spec.known_form().map_err(about)?);
    let zone = spec.known_zone().map_err(about)?;
    options.zone.clone_from(&zone);
    options.stop = Some(Arc::clone(stop));
    let (rules, source) = match &spec.rules {
        None => Rules::embedded()?,
        Some(file) => {
            let source = Source::load(path_text::of(sweep.folder.join(path_text::to_path(file))))?;
            (Rules::parse(&source)?, source)
        }
    };
    let log = read_log(path, &options)?;
    if !spec.skip_unreadable {
        log.check_understood("`skip_unreadable: true` in the study's `log` leaves them out, and says so")?;
    }
    let matrix = &sweep.run(&vec![0; sweep.axes.len()]).throughputs.0;
    let throughputs = load_throughputs(matrix)?;
    let converter = Converter::new(&throughputs, (&rules, &source), spec.seed)?.until(Arc::clone(stop));
    let names = windows(sweep);
    let read =
        ReadLog { spec, options: &options, log: &log, converter: &converter, throughputs: &throughputs };
    let mut traces = Vec::with_capacity(names.len());
    for (name, window) in names {
        let window = window.map_err(about)?;
        window.check(zone.as_ref()).map_err(about)?;
        traces.push(read.trace_of(name, &window, zone.as_ref())?);
    }
    Ok(traces)
}

/// Windows that the study's runs name, each once.
fn windows(sweep: &SweepSpec) -> Vec<(String, Result<Window, String>)> {
    let fixed = sweep.run(&vec![0; sweep.axes.len()]).workload.trace;
    let axes = sweep.axes.iter().filter(|axis| axis.field == "workload.trace").flat_map(|axis| &axis.values);
    let names: BTreeSet<String> = axes.filter_map(Value::as_str).map(str::to_owned).chain(fixed).collect();
    names.into_iter().filter_map(|name| Some((name.clone(), window_of(&name)?))).collect()
}

/// A log that was read, and the way in which its rows become jobs.
struct ReadLog<'a> {
    spec: &'a LogSpec,
    options: &'a ReadOptions,
    log: &'a Reading,
    converter: &'a Converter<'a>,
    throughputs: &'a Throughputs,
}

impl ReadLog<'_> {
    /// The trace of a window, by its name.
    fn trace_of(&self, name: String, window: &Window, zone: Option<&Zone>) -> Result<LogTrace, SpecError> {
        let Self { spec, options, log, converter, throughputs } = *self;
        let converted = converter.convert(log, Some(window), zone);
        let (form, seed) = (options.form, spec.seed);
        let import = Import { form, log, converted: &converted, throughputs, seed, cluster: None };
        let report = ImportReport::of(&import);
        if report.n_jobs == 0 {
            let help = "`apportion trace show` says what the log has, and when".to_owned();
            return Err(SpecError::about(
                log.source.clone(),
                format!("no job of the log is in `{name}`"),
                Some(help),
            ));
        }
        let mut text = Vec::new();
        write_jobs(&mut text, converter, log, &converted, TraceForm::Native, throughputs)
            .map_err(|error| SpecError::about(log.source.clone(), error.to_string(), None))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut undated = log.left_out.clone();
        undated.remove(&Reason::NotUnderstood);
        for (reason, rows) in &converted.left_out_undated {
            undated.entry(*reason).or_default().add(rows);
        }
        Ok(LogTrace { trace: Source::new(name, text), report, left_out: converted.left_out_inside, undated })
    }
}
