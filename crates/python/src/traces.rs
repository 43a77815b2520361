//! Traces of jobs from files, as columns.

use apportion::spec::{
    Source, SpecError, Trace, TraceForm, TraceOrder, load_throughputs, read_trace as read,
};
use apportion::throughput::Throughputs;
use apportion::units::Seconds;
use apportion_logs::form::FORMS;
use apportion_logs::report::Import;
use apportion_logs::{Converter, Form, ImportReport, ReadOptions, Rules, Window, Zone, read_log};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::options::Text;

/// Options for reading a file.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Reading {
    form: Option<String>,
    throughputs: Option<Text>,
    sort: bool,
    seed: u64,
    skip_unreadable: bool,
    rules: Option<Text>,
    zone: Option<String>,
    window: Option<String>,
    job_table: Option<Text>,
}

/// Reads a trace, or a cluster's log as a trace. Returns its jobs as columns, and counts of what was left out.
#[pyfunction]
pub(crate) fn read_trace(py: Python<'_>, path: Text, reading: Reading) -> PyResult<Bound<'_, PyDict>> {
    let said = |error| errors::spec(&error);
    let matrix =
        reading.throughputs.as_ref().map(|name| load_throughputs(&name.0)).transpose().map_err(said)?;
    let all = PyDict::new(py);
    let Some(form) = reading.form.as_deref() else {
        let source = Source::load(&path.0).map_err(said)?;
        let order = if reading.sort { TraceOrder::Sort } else { TraceOrder::Refuse };
        let trace = py.detach(|| read(&source, matrix.as_deref(), order)).map_err(said)?;
        all.set_item("jobs", columns(py, &trace)?)?;
        all.set_item("report", PyDict::new(py))?;
        return Ok(all);
    };
    let Some(form) = Form::of(form) else {
        let known = FORMS.map(|entry| format!("`{}`", entry.name)).join(", ");
        return Err(errors::input(format!("unknown form `{form}`, expected one of {known}")));
    };
    let Some(matrix) = &matrix else {
        let message = "a cluster's log needs throughputs, of whose job types its jobs are taken for";
        return Err(errors::input_with_help(message, Some("such as throughputs=\"osdi20\"")));
    };
    let zone = reading.zone.as_deref().map(str::parse::<Zone>).transpose().map_err(errors::input)?;
    let window = reading.window.as_deref().map(str::parse::<Window>).transpose().map_err(errors::input)?;
    if let Some(window) = &window {
        window.check(zone.as_ref()).map_err(errors::input)?;
    }
    let imported = py.detach(|| import(&path, form, (&reading, zone, window), matrix));
    let (trace, report) = imported.map_err(|mut error| {
        for diagnostic in &mut error.diagnostics {
            diagnostic.help = diagnostic.help.as_deref().map(in_python);
        }
        said(error)
    })?;
    all.set_item("jobs", columns(py, &trace)?)?;
    all.set_item("report", dictionary(py, &report)?)?;
    Ok(all)
}

/// A cluster's log as a trace, with the report of the import.
fn import(
    path: &Text,
    form: Form,
    (reading, zone, window): (&Reading, Option<Zone>, Option<Window>),
    matrix: &Throughputs,
) -> Result<(Trace, ImportReport), SpecError> {
    let (rules, source) = match &reading.rules {
        None => Rules::embedded()?,
        Some(path) => {
            let source = Source::load(&path.0)?;
            (Rules::parse(&source)?, source)
        }
    };
    let mut options = ReadOptions::new(form);
    options.zone.clone_from(&zone);
    options.job_table = reading.job_table.as_ref().map(|path| path.0.clone());
    let log = read_log(&path.0, &options)?;
    if !reading.skip_unreadable {
        log.check_understood("`skip_unreadable=True` leaves them out")?;
    }
    let converter = Converter::new(matrix, (&rules, &source), reading.seed)?;
    let converted = converter.convert(&log, window.as_ref(), zone.as_ref());
    let jobs = converted.chosen.iter().map(|chosen| converter.job(&log, chosen)).collect();
    let parts = Import {
        form,
        log: &log,
        converted: &converted,
        throughputs: matrix,
        seed: reading.seed,
        cluster: None,
    };
    Ok((Trace { form: TraceForm::Native, jobs }, ImportReport::of(&parts)))
}

/// The words about a log, with arguments of `apportion.traces.read` in place of options of the command.
fn in_python(words: &str) -> String {
    words
        .replace("`--zone`", "`zone=…`")
        .replace("`--force` reads it", "`apportion trace convert … --force`, the command, reads it")
}

fn dictionary<'py>(py: Python<'py>, report: &ImportReport) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let left_out = PyDict::new(py);
    for reason in &report.left_out {
        left_out.set_item(reason.words, reason.rows.n)?;
    }
    let doubts = PyDict::new(py);
    for doubt in &report.doubts {
        doubts.set_item(in_python(doubt.words), doubt.rows.n)?;
    }
    all.set_item("rows_read", report.n_rows_read)?;
    all.set_item("left_out", left_out)?;
    all.set_item("doubts", doubts)?;
    all.set_item("cut", report.n_cut)?;
    all.set_item("complaints", report.complaints.clone())?;
    Ok(all)
}

fn columns<'py>(py: Python<'py>, trace: &Trace) -> PyResult<Bound<'py, PyDict>> {
    let jobs = || trace.jobs.iter().map(|traced| &traced.job);
    let table = PyDict::new(py);
    table.set_item("id", trace.jobs.iter().map(|traced| traced.id.clone()).collect::<Vec<_>>())?;
    table.set_item("job_type", jobs().map(|job| job.job_type.clone()).collect::<Vec<_>>())?;
    let scale: Vec<i64> = jobs().map(|job| i64::from(job.scale_factor)).collect();
    table.set_item("scale_factor", scale.into_pyarray(py))?;
    let number = |values: Vec<f64>| values.into_pyarray(py);
    table.set_item("total_steps", number(jobs().map(|job| job.total_steps.get()).collect()))?;
    table.set_item("arrival", number(jobs().map(|job| job.arrival.get()).collect()))?;
    table.set_item("weight", number(jobs().map(|job| job.weight).collect()))?;
    let slo = jobs().map(|job| job.slo.map_or(f64::NAN, Seconds::get));
    table.set_item("slo", number(slo.collect()))?;
    table.set_item("entity", jobs().map(|job| job.entity.clone()).collect::<Vec<_>>())?;
    if jobs().any(|job| !job.sizes.is_empty()) {
        let sizes = jobs().map(|job| (!job.sizes.is_empty()).then(|| job.sizes_text()));
        table.set_item("sizes", sizes.collect::<Vec<_>>())?;
    }
    Ok(table)
}
