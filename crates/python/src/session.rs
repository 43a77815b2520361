//! Sessions: one policy and one problem, to which jobs are added and from which jobs are removed between decisions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use apportion::index::{Id, JobId};
use apportion::policy::{Session as EngineSession, SessionError};
use apportion::problem::ActiveJob;
use apportion::solver::Interrupt;
use apportion::units::{Seconds, Steps};
use numpy::{IntoPyArray, PyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arguments::{beyond_numbers, deadline, number};
use crate::arrays::Array1;
use crate::attended::attended;
use crate::decision::Decision;
use crate::errors::{self, Called};
use crate::options::{Asked, Text};
use crate::policy::{SMALL, catalog_with};
use crate::problem::Problem;

/// A policy and a problem to which jobs are added and from which they are removed. See `apportion.Session`.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct Session {
    inner: Mutex<EngineSession>,
    policy: String,
    worker_types: Vec<String>,
    n_types: usize,
    /// Flag that breaks off a long decision.
    interrupt: Arc<AtomicBool>,
}

/// Properties of one job beside its throughputs.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
struct Known {
    scale_factor: u32,
    weight: f64,
    /// Remaining steps.
    steps_remaining: f64,
    /// Time since arrival, s.
    elapsed: f64,
    /// Accumulated isolated time, s.
    isolated_elapsed: f64,
    /// Time to the deadline, s; none and NaN stand for no deadline.
    slo_remaining: Option<f64>,
}

impl Known {
    /// Refuses numbers and throughputs of a job that a problem also refuses.
    fn check(&self, throughputs: &[f64], called: &str) -> PyResult<()> {
        match beyond_numbers(self.weight, throughputs.iter().copied()) {
            None => Ok(()),
            Some(wrong) => Err(errors::input(format!("{called}: {wrong}"))),
        }
    }

    fn job(&self, id: JobId) -> ActiveJob {
        ActiveJob {
            scale_factor: self.scale_factor,
            weight: self.weight,
            steps_remaining: Steps::new(self.steps_remaining),
            elapsed: Seconds::new(self.elapsed),
            isolated_elapsed: Seconds::new(self.isolated_elapsed),
            slo_remaining: self.slo_remaining.and_then(deadline),
            ..ActiveJob::new(id)
        }
    }
}

/// The exception for a refused job; `called` is its name in messages.
fn of_job(error: &SessionError, called: &str) -> PyErr {
    errors::session(error, Called { job: &|_| called.to_owned(), worker_types: &[] })
}

impl Session {
    fn with<T>(&self, change: impl FnOnce(&mut EngineSession) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Session {
    #[new]
    fn new(problem: &Problem, name_or_text: Text, is_text: bool, asked: Asked) -> PyResult<Self> {
        let Text(name_or_text) = name_or_text;
        let interrupt = Arc::new(AtomicBool::new(false));
        let options = asked.options(Interrupt::default().with_flag(Arc::clone(&interrupt)))?;
        let (catalog, named) = catalog_with(is_text.then_some(&name_or_text))?;
        let name = named.unwrap_or(name_or_text);
        let program = catalog.program(&name, &options).map_err(|error| errors::catalog(&error))?;
        let Some(program) = program else {
            let message = format!("policy `{name}` is no program: a session has nothing to go on from");
            return Err(errors::input_with_help(&message, Some(errors::ALLOCATE)));
        };
        let n_types = problem.stated.n_types();
        let session = EngineSession::new(program, (*problem.stated).clone());
        let inner = Mutex::new(session.map_err(|error| of_job(&error, ""))?);
        Ok(Self { inner, policy: name, worker_types: problem.worker_types(), n_types, interrupt })
    }

    /// Adds a job; `called` is its name in messages.
    fn add(&self, id: u32, throughput: Array1<'_, f64>, known: Known, called: &str) -> PyResult<()> {
        if throughput.len() != self.n_types {
            let message = format!(
                "{} throughputs, expected one for each of {} worker types",
                throughput.len(),
                self.n_types
            );
            return Err(errors::input(message));
        }
        let row = throughput.as_array().to_vec();
        known.check(&row, called)?;
        let job = known.job(JobId::from_index(id as usize));
        self.with(|session| session.insert(job, &row)).map_err(|error| of_job(&error, called))
    }

    fn update(&self, id: u32, known: Known, called: &str) -> PyResult<()> {
        known.check(&[], called)?;
        let job = known.job(JobId::from_index(id as usize));
        self.with(|session| session.update(job)).map_err(|error| of_job(&error, called))
    }

    fn remove(&self, id: u32) -> PyResult<()> {
        let gone = self.with(|session| session.remove(JobId::from_index(id as usize)));
        gone.map(drop).map_err(|error| of_job(&error, ""))
    }

    /// The decision, and the engine's number of the job in each row. `called` gives the name of a job in messages by its
    /// number.
    fn decide<'py>(
        &self,
        py: Python<'py>,
        called: &Bound<'py, PyAny>,
    ) -> PyResult<(Decision, Bound<'py, PyArray1<i64>>)> {
        let decide = || {
            self.with(|session| {
                let decided = session.decide().map(drop);
                let ids: Vec<i64> =
                    session.problem().jobs().iter().map(|job| number(job.id.index())).collect();
                match decided.and_then(|()| session.written_out()) {
                    Ok(decision) => Ok((decision, ids)),
                    Err(error) => Err((error, ids)),
                }
            })
        };
        let is_small = self.with(|session| session.problem().n_jobs() * self.n_types <= SMALL);
        let decided = if is_small {
            py.detach(decide)
        } else {
            self.interrupt.store(false, Ordering::SeqCst);
            attended(py, &self.interrupt, decide)?
        };
        let (decision, ids) = decided.map_err(|(error, ids)| {
            let name = |id: Option<&i64>| called.call1((id?,)).ok()?.extract().ok();
            let job = |position: usize| name(ids.get(position)).unwrap_or_else(|| format!("job {position}"));
            errors::policy(&error, Called { job: &job, worker_types: &self.worker_types })
        })?;
        let decision = decision.ok_or_else(|| errors::input("nothing was decided"))?;
        let decision = Decision::of(py, &decision, &self.policy, (self.n_types, None))?;
        Ok((decision, ids.into_pyarray(py)))
    }
}
