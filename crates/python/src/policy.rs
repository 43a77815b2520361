//! Policies that are asked for one decision after another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use apportion::policy::{Explanation, PolicyError, ProgramPolicy};
use apportion::problem::Problem as EngineProblem;
use apportion::solver::Interrupt;
use apportion::spec::{PolicyKind, Source};
use apportion::{Catalog, policy as engine};
use apportion_published::plugin;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::attended::attended;
use crate::decision::Decision;
use crate::errors::{self, Called};
use crate::explanation;
use crate::function::{FunctionPolicy, Raised};
use crate::options::{Asked, Text};
use crate::problem::Problem;

/// Largest jobs × worker types at which a decision is made without checks for signals: it takes some milliseconds.
pub(crate) const SMALL: usize = 1 << 12;

/// A policy, ready to decide. See `apportion.Policy`.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct Policy {
    name: String,
    is_function: bool,
    asked: Mutex<Asking>,
    /// State before any decision.
    fresh: serde_json::Value,
    raised: Raised,
    /// Flag that breaks off a long decision.
    interrupt: Arc<AtomicBool>,
}

/// Policy that decides, and its program.
#[derive(Debug)]
struct Asking {
    policy: Box<dyn engine::Policy>,
    /// The policy as a program, if it is one: for single decisions, in which time is exchanged as the command does, and for
    /// the objective at measured throughputs.
    program: Option<ProgramPolicy>,
}

impl Asking {
    /// The policy that makes a single decision, from this state.
    fn single(&mut self, fresh: &serde_json::Value) -> Result<&mut dyn engine::Policy, PolicyError> {
        let Self { policy, program } = self;
        let single: &mut dyn engine::Policy = match program {
            Some(program) => program,
            None => policy.as_mut(),
        };
        single.restore(fresh)?;
        Ok(single)
    }

    /// The objective of a decision at measured throughputs, where the policy sees others.
    fn measured(
        &self,
        problem: &EngineProblem,
        decision: &engine::Decision,
    ) -> Result<Option<f64>, PolicyError> {
        match &self.program {
            Some(program) if decision.objective.is_some() => {
                program.measured_value_of(problem, &decision.allocation)
            }
            _ => Ok(None),
        }
    }
}

/// A catalog that knows the document of this text, or the shipped ones.
pub(crate) fn catalog_with(text: Option<&str>) -> PyResult<(Catalog, Option<String>)> {
    let mut catalog = plugin::catalog();
    let Some(text) = text else { return Ok((catalog, None)) };
    let source = Source::new("<policy>", text);
    let document = catalog.read(source.clone()).map_err(|error| errors::spec(&error))?;
    catalog.add(source).map_err(|error| errors::spec(&error))?;
    Ok((catalog, Some(document.name)))
}

#[pymethods]
impl Policy {
    /// A policy from its name or path, or from the text of a document.
    #[new]
    #[pyo3(signature = (name_or_text, is_text, asked))]
    fn new(name_or_text: Text, is_text: bool, asked: Asked) -> PyResult<Self> {
        let Text(name_or_text) = name_or_text;
        let interrupt = Arc::new(AtomicBool::new(false));
        let options = asked.options(Interrupt::default().with_flag(Arc::clone(&interrupt)))?;
        let (catalog, named) = catalog_with(is_text.then_some(&name_or_text))?;
        let name = named.unwrap_or(name_or_text);
        let document = catalog.document(&name).map_err(|error| errors::spec(&error))?;
        let given = [
            ("backend", options.backend.is_some()),
            ("strategy", options.strategy.is_some()),
            ("time_limit", options.time_limit.is_some()),
        ];
        if let Some((field, _)) = given.iter().find(|(_, given)| *given)
            && !matches!(document.kind, PolicyKind::Program(_))
        {
            return Err(errors::input(format!(
                "policy `{}` is not a program: it has no `{field}`",
                document.name
            )));
        }
        let policy = catalog.build(&name, &options).map_err(|error| errors::catalog(&error))?;
        let program = catalog.program(&name, &options).map_err(|error| errors::catalog(&error))?;
        let program = program.map(ProgramPolicy::exchanging);
        let fresh = policy.state();
        let asked = Mutex::new(Asking { policy, program });
        Ok(Self {
            name: document.name,
            is_function: false,
            asked,
            fresh,
            raised: Raised::default(),
            interrupt,
        })
    }

    /// A policy from a Python function, for one problem, which the function gets as it was stated.
    #[staticmethod]
    fn of_function(name: &str, function: Py<PyAny>, stated: Py<Problem>) -> Self {
        let raised = Raised::default();
        let policy: Box<dyn engine::Policy> = Box::new(FunctionPolicy::new(name, function, stated, &raised));
        let fresh = policy.state();
        let asked = Mutex::new(Asking { policy, program: None });
        let interrupt = Arc::default();
        Self { name: name.to_owned(), is_function: true, asked, fresh, raised, interrupt }
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Decides on a problem; with the state before any decision if `fresh`, else with the state from earlier decisions.
    fn allocate(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        problem: &Bound<'_, Problem>,
        fresh: bool,
    ) -> PyResult<Decision> {
        let (this, asked, stated) = (slf.get(), problem, problem.get());
        let problem = &*stated.stated;
        let decide = |asking: &mut Asking| -> Result<_, PolicyError> {
            let decision = if fresh {
                let decision = asking.single(&this.fresh)?.allocate(problem)?;
                if let Some(program) = &asking.program {
                    asking.policy.restore(&engine::Policy::state(program))?;
                }
                decision
            } else {
                asking.policy.allocate(problem)?
            };
            let measured = asking.measured(problem, &decision)?;
            Ok((decision, measured))
        };
        let (decision, measured) = this.ask(py, stated, decide)?;
        let decision = Decision::of(py, &decision, &this.name, (problem.n_types(), measured))?;
        // A function may keep its decisions, and has no program.
        let explainable = fresh && !this.is_function;
        let (policy, problem) = (slf.clone().into_any().unbind(), asked.clone().into_any().unbind());
        Ok(if explainable { decision.explainable(policy, problem) } else { decision })
    }

    /// Explains the decision on a problem. Returns the decision, and a tree of the binding constraints.
    fn explain<'py>(&self, py: Python<'py>, problem: &Problem) -> PyResult<(Decision, Bound<'py, PyDict>)> {
        let (stated, problem) = (problem, &*problem.stated);
        let explain = |asking: &mut Asking| -> Result<(Explanation, Option<f64>), PolicyError> {
            let known = asking.policy.state();
            let explained = asking.single(&self.fresh)?.explain(problem);
            asking.policy.restore(&known)?;
            let explanation = explained?;
            let measured = asking.measured(problem, &explanation.decision)?;
            Ok((explanation, measured))
        };
        let (explanation, measured) = self.ask(py, stated, explain)?;
        let tree = explanation::tree(py, &explanation)?;
        Ok((Decision::of(py, &explanation.decision, &self.name, (problem.n_types(), measured))?, tree))
    }

    /// State from earlier decisions, as JSON.
    fn state(&self) -> String {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).policy.state().to_string()
    }

    /// Restores the state of another policy with the same document.
    fn restore(&self, state: &str) -> PyResult<()> {
        let wrong = |error: String| errors::input(format!("the saved state: {error}"));
        let state = serde_json::from_str(state).map_err(|error| wrong(error.to_string()))?;
        let mut asking = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asking.policy.restore(&state).map_err(|error| wrong(error.to_string()))
    }

    fn __repr__(&self) -> String {
        format!("<Policy `{}`>", self.name)
    }
}

impl Policy {
    /// Decides without Python's lock, and checks for signals where that may take long.
    fn ask<T: Send>(
        &self,
        py: Python<'_>,
        stated: &Problem,
        question: impl FnOnce(&mut Asking) -> Result<T, PolicyError> + Send,
    ) -> PyResult<T> {
        let ask = || question(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner));
        let problem: &EngineProblem = &stated.stated;
        let is_small = problem.n_jobs().saturating_mul(problem.n_types()) <= SMALL;
        // A function runs in the calling thread, as its user expects.
        let answer = if is_small || self.is_function {
            py.detach(ask)
        } else {
            self.interrupt.store(false, Ordering::SeqCst);
            attended(py, &self.interrupt, ask)?
        };
        answer.map_err(|error| {
            let called = Called { job: &|job| stated.called(job), worker_types: &stated.worker_types() };
            self.raised.take().unwrap_or_else(|| errors::policy(&error, called))
        })
    }
}

/// Names of the policies there are, each with what its document says of it in a line.
#[pyfunction]
pub(crate) fn policies() -> PyResult<Vec<(String, String)>> {
    let catalog = plugin::catalog();
    let said = |name: &str| -> PyResult<(String, String)> {
        let document = catalog.document(name).map_err(|error| errors::spec(&error))?;
        Ok((name.to_owned(), document.summary))
    };
    catalog.names().into_iter().map(said).collect()
}

/// The text of a policy's document.
#[pyfunction]
pub(crate) fn document(name_or_path: Text) -> PyResult<String> {
    let document = plugin::catalog().document(&name_or_path.0).map_err(|error| errors::spec(&error))?;
    Ok(document.source.text.to_string())
}
