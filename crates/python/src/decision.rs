//! Decisions of policies, as arrays.

use apportion::index::Id;
use apportion::policy::{Decision as EngineDecision, ObjectiveReport, SolveReport};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::{number, reduced};
use crate::errors;

/// Shares of time, with their evidence.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct Decision {
    answer: Answer,
    solve: Option<Py<PyDict>>,
    /// Policy and problem of the decision; none where they would not give the same decision again.
    asked: Option<(Py<PyAny>, Py<PyAny>)>,
}

/// State of a decision, without how it was solved.
#[derive(Clone, Debug, FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
struct Answer {
    policy: String,
    n_types: usize,
    /// Shape `[n × K]`.
    shares: Vec<f64>,
    /// Shape `[m × 2]`.
    pairs: Vec<i64>,
    /// Shape `[m × K]`.
    pair_shares: Vec<f64>,
    throughput: Vec<f64>,
    levels: Option<Vec<f64>>,
    dropped: Vec<usize>,
    violation: f64,
    certificate: Option<Proof>,
}

/// The objective's value with its proof, recomputed from the shares that are given, whichever solver found them.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct ObjectiveCertificate(Proof);

/// State of a certificate.
#[derive(Clone, Debug, FromPyObject, IntoPyObject)]
#[pyo3(from_item_all)]
struct Proof {
    sense: String,
    value: f64,
    bound: f64,
    gap: f64,
    violation: f64,
    optimal: bool,
    first_level_only: bool,
    value_at_measured_throughputs: Option<f64>,
}

impl Proof {
    fn of(report: &ObjectiveReport, measured: Option<f64>) -> Self {
        Self {
            sense: report.sense.name().to_owned(),
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
impl ObjectiveCertificate {
    #[staticmethod]
    fn _rebuilt(state: Proof) -> Self {
        Self(state)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        reduced(py, "certificate", (self.0.clone(),))
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    /// `maximize` or `minimize`.
    #[getter]
    fn sense(&self) -> &str {
        &self.0.sense
    }

    /// The objective of the shares.
    #[getter]
    fn value(&self) -> f64 {
        self.0.value
    }

    /// What no allocation can beat, from dual values.
    #[getter]
    fn bound(&self) -> f64 {
        self.0.bound
    }

    /// The relative distance of value and bound.
    #[getter]
    fn gap(&self) -> f64 {
        self.0.gap
    }

    /// The largest violation of a constraint by the shares.
    #[getter]
    fn violation(&self) -> f64 {
        self.0.violation
    }

    /// Is the gap within the tolerance of certificates?
    #[getter]
    fn optimal(&self) -> bool {
        self.0.optimal
    }

    /// Is the optimum lexicographic? Then all this is of its first level, and nothing is certified of those above it.
    #[getter]
    fn first_level_only(&self) -> bool {
        self.0.first_level_only
    }

    /// The objective at measured throughputs, where the policy sees others.
    #[getter]
    fn value_at_measured_throughputs(&self) -> Option<f64> {
        self.0.value_at_measured_throughputs
    }

    fn __repr__(&self) -> String {
        let Proof { sense, value, bound, gap, .. } = &self.0;
        let proven = if self.0.optimal { "proven optimal" } else { "NOT proven optimal" };
        format!("<ObjectiveCertificate: {sense} {value}, bound {bound}, gap {gap:.1e}, {proven}>")
    }
}

impl Decision {
    /// The decision as arrays; `measured` is the objective at measured throughputs, where the policy uses others.
    ///
    /// # Errors
    /// If Python cannot hold it.
    pub(crate) fn of(
        py: Python<'_>,
        answer: &EngineDecision,
        policy: &str,
        (n_types, measured): (usize, Option<f64>),
    ) -> PyResult<Self> {
        let allocation = &answer.allocation;
        let throughput = allocation.effective_throughput().as_slice().to_vec();
        let mut shares = vec![0.0; throughput.len() * n_types];
        let (mut pairs, mut pair_shares) = (Vec::new(), Vec::new());
        for (id, combination) in allocation.combinations().enumerate() {
            let given = allocation.shares().row(id);
            if let Some(second) = combination.second() {
                pairs.extend([combination.first(), second].map(|job| number(job.index())));
                pair_shares.extend_from_slice(given);
            } else {
                let row = &mut shares[combination.first().index() * n_types..][..n_types];
                for (sum, share) in row.iter_mut().zip(given) {
                    *sum += share;
                }
            }
        }
        let answer_of = Answer {
            policy: policy.to_owned(),
            n_types,
            shares,
            pairs,
            pair_shares,
            throughput,
            levels: answer.levels.clone(),
            dropped: answer.dropped.iter().map(|job| job.index()).collect(),
            violation: allocation.violation_max(),
            certificate: answer.objective.as_ref().map(|report| Proof::of(report, measured)),
        };
        let solve = answer.solve.as_ref().map(|report| solve(py, report)).transpose()?;
        Ok(Self { answer: answer_of, solve: solve.map(Bound::unbind), asked: None })
    }

    /// The decision together with the policy and the problem by which it can be explained.
    pub(crate) fn explainable(self, policy: Py<PyAny>, problem: Py<PyAny>) -> Self {
        Self { asked: Some((policy, problem)), ..self }
    }
}

#[pymethods]
impl Decision {
    #[staticmethod]
    fn _rebuilt(state: Answer, solve: Option<Py<PyDict>>) -> PyResult<Self> {
        let Answer { n_types, shares, pairs, pair_shares, throughput, .. } = &state;
        let fits = |values: &[f64], rows: usize| Some(values.len()) == rows.checked_mul(*n_types);
        if !fits(shares, throughput.len()) || !fits(pair_shares, pairs.len() / 2) || pairs.len() % 2 != 0 {
            return Err(errors::input("this is not the state of a decision"));
        }
        Ok(Self { answer: state, solve, asked: None })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let solve = self.solve.as_ref().map(|solve| solve.clone_ref(py));
        reduced(py, "decision", (self.answer.clone(), solve))
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    /// The policy's name.
    #[getter]
    fn policy(&self) -> &str {
        &self.answer.policy
    }

    /// Share of time of each job alone on each worker type: [n × K].
    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let shape = [self.answer.throughput.len(), self.answer.n_types];
        self.answer.shares.clone().into_pyarray(py).reshape(shape)
    }

    /// Positions of the jobs that share workers: [m × 2].
    #[getter]
    fn pairs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let m = self.answer.pairs.len() / 2;
        self.answer.pairs.clone().into_pyarray(py).reshape([m, 2])
    }

    /// Share of time of each pair on each worker type: [m × K].
    #[getter]
    fn pair_shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let shape = [self.answer.pairs.len() / 2, self.answer.n_types];
        self.answer.pair_shares.clone().into_pyarray(py).reshape(shape)
    }

    /// Effective throughput of each job in steps/s, under measured throughputs: `[n]`.
    #[getter]
    fn throughput<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.answer.throughput.clone().into_pyarray(py)
    }

    /// The normalized level of each job, where the policy has levels: `[n]`.
    #[getter]
    fn levels<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        Some(self.answer.levels.clone()?.into_pyarray(py))
    }

    /// Positions of the jobs of which a droppable constraint, such as a deadline, was given up.
    #[getter]
    fn dropped(&self) -> Vec<usize> {
        self.answer.dropped.clone()
    }

    /// The largest violation of the allocation polytope that was found and accepted.
    #[getter]
    fn violation(&self) -> f64 {
        self.answer.violation
    }

    /// The proof of the objective; None for rules, which have none.
    #[getter]
    fn certificate(&self) -> Option<ObjectiveCertificate> {
        self.answer.certificate.clone().map(ObjectiveCertificate)
    }

    /// How it was solved: strategy and reason, backend, wall seconds, size, …; None for rules.
    #[getter]
    fn solve<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.solve.as_ref().map(|solve| solve.bind(py).copy()).transpose()
    }

    /// Why each job gets what it gets: an `Explanation`, or its entry of the job of this name or position.
    #[pyo3(signature = (job = None))]
    fn explain<'py>(&self, py: Python<'py>, job: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let Some((policy, problem)) = &self.asked else {
            return Err(errors::input(
                "this decision holds nothing to explain it by: it is a session's, a function's, or was pickled; \
                 `apportion.explain` explains what a policy decides on a problem",
            ));
        };
        let explained = py.import("apportion._explanation")?.getattr("Explanation")?;
        let explained = explained.call_method1("_asked", (policy, problem))?;
        job.map_or(Ok(explained.clone()), |job| explained.get_item(job))
    }

    fn __repr__(&self) -> String {
        let n = self.answer.throughput.len();
        let proof = match &self.answer.certificate {
            None => "a rule, without an objective".to_owned(),
            Some(proof) => ObjectiveCertificate(proof.clone()).__repr__(),
        };
        format!("<Decision of `{}` for {n} jobs: {proof}>", self.answer.policy)
    }
}

/// Report of how a decision was solved, as a dict.
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
    let droppable = report.droppable.map(|(strategy, reason)| (strategy.name(), reason.to_string()));
    solve.set_item("droppable", droppable)?;
    solve.set_item("exchanged", report.exchanged)?;
    solve.set_item("fallbacks", &report.fallbacks)?;
    Ok(solve)
}
