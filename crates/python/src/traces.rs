//! Traces of jobs from files, as columns.

use apportion::spec::{
    LogOrigin, NotUnderstood, Source, Trace, TraceOrder, import_log, load_throughputs, read_trace as read,
};
use apportion::units::Seconds;
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::options::Text;

/// How a file is read.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Reading {
    form: Option<String>,
    throughputs: Option<Text>,
    sort: bool,
    seed: u64,
    skip_unreadable: bool,
}

/// Reads a trace, or a cluster's log as one: its jobs as columns, and what was left out.
#[pyfunction]
pub(crate) fn read_trace(py: Python<'_>, path: Text, reading: Reading) -> PyResult<Bound<'_, PyDict>> {
    let Reading { form, throughputs, sort, seed, skip_unreadable } = reading;
    let said = |error| errors::spec(&error);
    let source = Source::load(&path.0).map_err(said)?;
    let matrix = throughputs.map(|name| load_throughputs(&name.0)).transpose().map_err(said)?;
    let origin = match form.as_deref() {
        None => None,
        Some("philly") => Some(LogOrigin::Philly),
        Some("pai") => Some(LogOrigin::Pai),
        Some("helios") => Some(LogOrigin::Helios),
        Some(other) => {
            let message = format!("unknown form `{other}`, expected one of `philly`, `pai`, `helios`");
            return Err(errors::input(message));
        }
    };
    let report = PyDict::new(py);
    let trace = match origin {
        None => {
            let order = if sort { TraceOrder::Sort } else { TraceOrder::Refuse };
            py.detach(|| read(&source, matrix.as_deref(), order)).map_err(said)?
        }
        Some(origin) => {
            let Some(matrix) = &matrix else {
                return Err(errors::input(
                    "a cluster's log needs throughputs, of whose job types its jobs are taken for",
                ));
            };
            let policy = if skip_unreadable { NotUnderstood::LeaveOut } else { NotUnderstood::Refuse };
            let imported = py.detach(|| import_log(&source, origin, matrix, (seed, policy))).map_err(said)?;
            report.set_item("left_out", imported.n_left_out)?;
            report.set_item("not_understood", imported.n_not_understood)?;
            report.set_item("cut", imported.n_cut)?;
            let complaints = imported.complaints.iter().map(ToString::to_string);
            report.set_item("complaints", complaints.collect::<Vec<_>>())?;
            imported.trace
        }
    };
    let all = PyDict::new(py);
    all.set_item("jobs", columns(py, &trace)?)?;
    all.set_item("report", report)?;
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
    Ok(table)
}
