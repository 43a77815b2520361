//! Explanations of jobs' shares, as trees of Python's own values.

use apportion::policy::{
    ConstraintExplanation, ConstraintRow, Explanation, JobExplanation, Limit, TypeExplanation,
};
use apportion::program::Program as Solved;
use apportion::program::expression::Subject;
use apportion::program::text::{to_cbf, to_lp, to_mps};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The explanation: `jobs` and `worker_types` in the problem's order, the policy's own `constraints`, and the `program` where one
/// was solved.
pub(crate) fn tree<'py>(py: Python<'py>, explanation: &Explanation) -> PyResult<Bound<'py, PyDict>> {
    let tree = PyDict::new(py);
    tree.set_item("reason", &explanation.reason)?;
    tree.set_item("prices_unknown", explanation.prices_unknown)?;
    tree.set_item("held", &explanation.held)?;
    let kinds = explanation.types.iter().map(|part| kind(py, part));
    tree.set_item("worker_types", PyList::new(py, kinds.collect::<PyResult<Vec<_>>>()?)?)?;
    let jobs = explanation.jobs.iter().map(|part| job(py, part));
    tree.set_item("jobs", PyList::new(py, jobs.collect::<PyResult<Vec<_>>>()?)?)?;
    let constraints = explanation.constraints.iter().map(|part| constraint(py, part));
    tree.set_item("constraints", PyList::new(py, constraints.collect::<PyResult<Vec<_>>>()?)?)?;
    tree.set_item("program", explanation.program.as_ref().map(|solved| Program(solved.program.clone())))?;
    Ok(tree)
}

/// A program that was solved, which is written out when it is asked for.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct Program(Solved);

#[pymethods]
impl Program {
    /// The program as CPLEX LP; none if it has other rows than linear ones.
    fn lp(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| to_lp(&self.0).ok())
    }

    /// The program as free MPS; none if it has other rows than linear ones.
    fn mps(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| to_mps(&self.0).ok())
    }

    /// The program as CBF, which has cones, too.
    fn cbf(&self, py: Python<'_>) -> String {
        py.detach(|| to_cbf(&self.0))
    }
}

fn kind<'py>(py: Python<'py>, part: &TypeExplanation) -> PyResult<Bound<'py, PyDict>> {
    let of = PyDict::new(py);
    of.set_item("workers_used", part.workers_used)?;
    of.set_item("workers", part.workers)?;
    of.set_item("binds", part.binds)?;
    of.set_item("one_more", part.one_more)?;
    Ok(of)
}

fn job<'py>(py: Python<'py>, part: &JobExplanation) -> PyResult<Bound<'py, PyDict>> {
    let of = PyDict::new(py);
    of.set_item("time", part.time)?;
    of.set_item("binding", part.binding.name())?;
    of.set_item("sets_objective", part.sets_objective)?;
    let held_by = |limit: &Limit| match limit {
        Limit::Constraint(position) => Some(*position),
        Limit::Time | Limit::Capacity => None,
    };
    of.set_item("held_by_constraints", part.limits.iter().filter_map(held_by).collect::<Vec<_>>())?;
    of.set_item("throughput_price", part.throughput_price)?;
    of.set_item("time_price", part.time_price)?;
    of.set_item("level", part.fixed.as_ref().map(|fixed| fixed.level))?;
    of.set_item("level_step", part.fixed.as_ref().map(|fixed| fixed.step))?;
    let one_more = part.fixed.as_ref().map(|fixed| fixed.one_more.clone());
    of.set_item("level_one_more", one_more)?;
    Ok(of)
}

fn constraint<'py>(py: Python<'py>, part: &ConstraintExplanation) -> PyResult<Bound<'py, PyDict>> {
    let of = PyDict::new(py);
    of.set_item("text", &part.text)?;
    let subject = match part.subject {
        Some(Subject::Job) => "job",
        Some(Subject::WorkerType) => "worker_type",
        None => "cluster",
    };
    of.set_item("subject", subject)?;
    of.set_item("penalty", part.penalty)?;
    let column = |value: fn(&ConstraintRow) -> Option<f64>| part.rows.iter().map(value).collect::<Vec<_>>();
    of.set_item("price", column(|row| row.price))?;
    of.set_item("slack", column(|row| Some(row.slack)))?;
    of.set_item("binds", part.rows.iter().map(|row| row.binds).collect::<Vec<_>>())?;
    of.set_item("exceeded", part.rows.iter().map(|row| row.exceeded).collect::<Vec<_>>())?;
    of.set_item("dropped", part.rows.iter().map(|row| row.dropped).collect::<Vec<_>>())?;
    Ok(of)
}
