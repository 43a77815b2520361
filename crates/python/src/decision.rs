//! What a policy answers, as arrays.

use apportion::index::Id;
use apportion::policy::{Decision as EngineDecision, ObjectiveReport, SolveReport};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::problem::number;

/// Shares of time with their evidence. See `apportion.Decision`.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct Decision {
    answer: EngineDecision,
    policy: String,
    measured: Option<f64>,
    n_types: usize,
}

/// The objective's value with its proof. See `apportion.Certificate`.
#[pyclass(frozen, module = "apportion", get_all)]
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    sense: &'static str,
    value: f64,
    bound: f64,
    gap: f64,
    violation: f64,
    optimal: bool,
    first_level_only: bool,
    value_at_measured_throughputs: Option<f64>,
}

impl Certificate {
    fn of(report: &ObjectiveReport, measured: Option<f64>) -> Self {
        Self {
            sense: report.sense.name(),
            value: report.value,
            bound: report.bound,
            gap: report.gap_relative,
            violation: report.violation_max,
            optimal: report.optimal,
            first_level_only: report.first_level_only,
            value_at_measured_throughputs: measured,
        }
    }
}

#[pymethods]
impl Certificate {
    fn __repr__(&self) -> String {
        let Self { sense, value, bound, gap, .. } = self;
        let proven = if self.optimal { "proven optimal" } else { "NOT proven optimal" };
        format!("<Certificate: {sense} {value}, bound {bound}, gap {gap:.1e}, {proven}>")
    }
}

impl Decision {
    /// `measured` is the objective at measured throughputs, where the policy sees others.
    pub(crate) fn of(answer: EngineDecision, policy: &str, n_types: usize, measured: Option<f64>) -> Self {
        Self { answer, policy: policy.to_owned(), measured, n_types }
    }

    /// Positions of the rows of pairs in the allocation.
    fn pair_rows(&self) -> impl Iterator<Item = (apportion::index::CombinationId, [usize; 2])> {
        self.answer.allocation.combinations().enumerate().filter_map(|(id, combination)| {
            Some((id, [combination.first().index(), combination.second()?.index()]))
        })
    }
}

#[pymethods]
impl Decision {
    #[getter]
    fn policy(&self) -> &str {
        &self.policy
    }

    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let allocation = &self.answer.allocation;
        let (n, k) = (allocation.effective_throughput().len(), self.n_types);
        let mut shares = vec![0.0; n * k];
        for (id, combination) in allocation.combinations().enumerate().filter(|(_, of)| !of.is_pair()) {
            let row = &mut shares[combination.first().index() * k..][..k];
            for (sum, share) in row.iter_mut().zip(allocation.shares().row(id)) {
                *sum += share;
            }
        }
        shares.into_pyarray(py).reshape([n, k])
    }

    #[getter]
    fn pairs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let pairs: Vec<i64> = self.pair_rows().flat_map(|(_, jobs)| jobs.map(number)).collect();
        let m = pairs.len() / 2;
        pairs.into_pyarray(py).reshape([m, 2])
    }

    #[getter]
    fn pair_shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let of_rows = self.answer.allocation.shares();
        let shares: Vec<f64> = self.pair_rows().flat_map(|(id, _)| of_rows.row(id).iter().copied()).collect();
        let m = shares.len() / self.n_types;
        shares.into_pyarray(py).reshape([m, self.n_types])
    }

    #[getter]
    fn throughput<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.answer.allocation.effective_throughput().as_slice().to_vec().into_pyarray(py)
    }

    #[getter]
    fn levels<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        Some(self.answer.levels.clone()?.into_pyarray(py))
    }

    #[getter]
    fn dropped(&self) -> Vec<usize> {
        self.answer.dropped.iter().map(|job| job.index()).collect()
    }

    #[getter]
    fn violation(&self) -> f64 {
        self.answer.allocation.violation_max()
    }

    #[getter]
    fn certificate(&self) -> Option<Certificate> {
        self.answer.objective.as_ref().map(|report| Certificate::of(report, self.measured))
    }

    #[getter]
    fn solve<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.answer.solve.as_ref().map(|report| solve(py, report)).transpose()
    }

    fn __repr__(&self) -> String {
        let n = self.answer.allocation.effective_throughput().len();
        let proof = match &self.answer.objective {
            None => "a rule, without an objective".to_owned(),
            Some(report) => Certificate::of(report, None).__repr__(),
        };
        format!("<Decision of `{}` for {n} jobs: {proof}>", self.policy)
    }
}

/// How a decision was solved.
fn solve<'py>(py: Python<'py>, report: &SolveReport) -> PyResult<Bound<'py, PyDict>> {
    let solve = PyDict::new(py);
    solve.set_item("strategy", report.strategy.name())?;
    solve.set_item("reason", report.reason.to_string())?;
    solve.set_item("backend", &report.backend)?;
    solve.set_item("route", &report.route)?;
    solve.set_item("seconds", report.seconds.total())?;
    solve.set_item("iterations", report.iterations)?;
    solve.set_item("solves", report.solves)?;
    solve.set_item("searches", report.searches)?;
    solve.set_item("columns", report.size.columns)?;
    solve.set_item("rows", report.size.rows)?;
    let gave_up = report.gave_up.iter().map(|(strategy, why)| (strategy.name(), why.to_string()));
    solve.set_item("gave_up", gave_up.collect::<Vec<_>>())?;
    solve.set_item("fallbacks", &report.fallbacks)?;
    Ok(solve)
}
