//! Policies that are Python functions: they get a problem and return shares, which are checked like those of other policies.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use apportion::allocation::Allocation;
use apportion::catalog::{Catalog, CatalogError, Plugin, PolicyOptions, Ready};
use apportion::index::{Id, JobIndex};
use apportion::policy::{Decision, Policy, PolicyError, RoundRules, TypeOrder};
use apportion::problem::Problem as EngineProblem;
use apportion::solver::Interrupt;
use apportion::spec::policy::Plugged;
use apportion::spec::{PolicyDocument, Source, SpecError};
use apportion::workload::Combination;
use apportion_published::plugin;
use apportion_studies::sweep::Inputs;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::arrays::Array2;
use crate::ending::Call;
use crate::errors::{self, Called};
use crate::problem::Problem;

/// Kind of the documents of such policies.
const KIND: &str = "python";

/// A Python function, with its requirements and version.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Function {
    callable: Py<PyAny>,
    /// Whether it may let jobs share workers.
    pairs: bool,
    rules: Rules,
    /// Version under which results are kept: the function's text, or one that the user gave.
    version: String,
}

/// Requirements of a function on the round mechanism.
#[derive(Clone, Copy, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
struct Rules {
    /// Whether worker types are filled in an order drawn anew each round, and not fastest first.
    shuffled: bool,
    /// Whether jobs without a share are kept from filling remaining workers.
    skip_zero_priority: bool,
}

impl Rules {
    /// The engine's rules of a round.
    fn of_rounds(self, pairs: bool) -> RoundRules {
        let type_order = if self.shuffled { TypeOrder::Shuffled } else { TypeOrder::Speed };
        let skip_zero_priority = self.skip_zero_priority;
        RoundRules { skip_zero_priority, type_order, pair_fillers: pairs, ..RoundRules::default() }
    }
}

/// The last exception that a Python function raised, kept so that the call that asked for the decision can raise it again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn put(&self, error: PyErr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// Takes the exception out.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Kind of policy for functions, by name.
#[derive(Debug)]
struct Functions {
    by_name: BTreeMap<String, Function>,
    raised: Raised,
}

/// Functions, policies and texts that runs name and that are not files.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Given {
    /// Policies that are functions, by name.
    functions: BTreeMap<String, Function>,
    /// Documents of policies, as text.
    policies: Vec<String>,
    /// Texts of traces and throughputs, by their names in runs.
    texts: BTreeMap<String, String>,
}

impl Given {
    /// Inputs of runs: the shipped policies together with the given ones, and the traces. An exception that a function
    /// raises is put into `raised`.
    ///
    /// # Errors
    /// If a document is not a policy.
    pub(crate) fn inputs(self, raised: &Raised) -> Result<Inputs, SpecError> {
        let Self { functions, policies, texts } = self;
        let of_function = |name: &String| {
            let quoted = Value::from(name.as_str());
            let text =
                format!("{{format: apportion/policy-v1, name: {quoted}, summary: a function, kind: {KIND}}}");
            Source::new(format!("<policy {name}>"), text)
        };
        let mut documents: Vec<Source> = functions.keys().map(of_function).collect();
        documents.extend(policies.into_iter().map(|text| Source::new("<policy>", text)));
        let mut catalog = plugin::catalog().with(Functions { by_name: functions, raised: raised.clone() });
        for document in documents {
            catalog.add(document)?;
        }
        let texts = texts.into_iter().map(|(name, text)| Source::new(name, text));
        Ok(texts.fold(Inputs::new(catalog), Inputs::with_text))
    }
}

impl Plugin for Functions {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn read(&self, document: &PolicyDocument) -> Result<Plugged, SpecError> {
        let pairs = self.by_name.get(&document.name).is_some_and(|of| of.pairs);
        Ok(Plugged { kind: KIND.to_owned(), inside_rounds: false, pairs })
    }

    fn data(&self, document: &PolicyDocument) -> Result<Option<Vec<u8>>, SpecError> {
        Ok(self.by_name.get(&document.name).map(|of| of.version.as_bytes().to_vec()))
    }

    fn build(
        &self,
        _: &Catalog,
        document: &PolicyDocument,
        options: &PolicyOptions,
    ) -> Result<Ready, CatalogError> {
        let wrong = |reason: String| CatalogError::Plugin { policy: document.name.clone(), reason };
        let Some(of) = self.by_name.get(&document.name) else {
            let reason = "a document of `kind: python` has a function only where it is given one in Python";
            return Err(wrong(reason.to_owned()));
        };
        let function = fresh(&of.callable).map_err(|error| {
            let reason = format!("it cannot begin a run: {error}");
            self.raised.put(error);
            wrong(reason)
        })?;
        Ok(Ready::Allocating(Box::new(FunctionPolicy {
            name: document.name.clone(),
            function,
            stated: None,
            rules: of.rules.of_rounds(of.pairs),
            raised: self.raised.clone(),
            interrupt: options.interrupt.clone(),
        })))
    }
}

/// The function for one run: the result of its attribute `policy_fresh`, if it has one, so that runs do not share its state.
fn fresh(function: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    let _call = Call::begin().ok_or_else(|| PyRuntimeError::new_err("the interpreter ends"))?;
    Python::attach(|py| {
        let fresh = py.import("apportion._policy")?.getattr("fresh")?;
        Ok(fresh.call1((function,))?.unbind())
    })
}

/// A policy that asks a Python function.
pub(crate) struct FunctionPolicy {
    name: String,
    function: Py<PyAny>,
    /// Problem as it was stated, where there is only one.
    stated: Option<Py<Problem>>,
    rules: RoundRules,
    raised: Raised,
    /// Interrupt after which an answer comes too late.
    interrupt: Interrupt,
}

impl fmt::Debug for FunctionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionPolicy").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Shares by combination, for the engine's checks.
type Rows = Vec<(Combination<JobIndex>, Vec<f64>)>;

/// Result of `apportion._answers.read`: the jobs of each row, none if row i is job i alone, and the shares, `[rows × K]`.
type Answer<'py> = (Option<Vec<Vec<usize>>>, Array2<'py, f64>);

impl FunctionPolicy {
    /// A policy from one function, for one problem.
    pub(crate) fn new(name: &str, function: Py<PyAny>, stated: Py<Problem>, raised: &Raised) -> Self {
        Self {
            name: name.to_owned(),
            function,
            stated: Some(stated),
            rules: RoundRules::default(),
            raised: raised.clone(),
            interrupt: Interrupt::default(),
        }
    }

    /// Checked shares from the function; none if the answer came too late, or the interpreter ends.
    fn ask(&self, problem: &EngineProblem) -> PyResult<Option<Allocation>> {
        let interrupt = self.interrupt.of_decision();
        let Some(_call) = Call::begin() else { return Ok(None) };
        Python::attach(|py| {
            let seen = match &self.stated {
                Some(stated) => stated.clone_ref(py).into_bound(py),
                None => Bound::new(py, Problem::of(problem.clone()))?,
            };
            let answer = self.function.bind(py).call1((&seen,))?;
            if interrupt.is_raised() {
                return Ok(None);
            }
            let read = py.import("apportion._answers")?.getattr("read")?.call1((&seen, answer))?;
            let rows = rows(read.extract()?);
            let members: Vec<_> = rows.iter().map(|(combination, _)| *combination).collect();
            let checked = Allocation::check(problem, rows);
            checked.map(Some).map_err(|error| {
                let seen = seen.get();
                let job = |position| seen.called(position);
                let worker_types = seen.worker_types();
                let called = Called { job: &job, worker_types: &worker_types };
                errors::allocation(&self.name, &error, called, &|row| match members.get(row) {
                    None => format!("row {row}"),
                    Some(of) => match of.second() {
                        None => job(of.first().index()),
                        Some(second) => format!("{} with {}", job(of.first().index()), job(second.index())),
                    },
                })
            })
        })
    }
}

impl Policy for FunctionPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&mut self, problem: &EngineProblem) -> Result<Decision, PolicyError> {
        let policy = || self.name.clone();
        let answer = if problem.n_jobs() == 0 {
            Allocation::check(problem, Rows::new())
                .map(Some)
                .map_err(|source| PolicyError::Allocation { policy: policy(), source })?
        } else {
            self.ask(problem).map_err(|error| {
                let reason = format!("it raised {error}");
                self.raised.put(error);
                PolicyError::Undecided { policy: policy(), reason }
            })?
        };
        match answer {
            Some(allocation) => Ok(Decision { rules: self.rules, ..Decision::of(allocation) }),
            None => Err(PolicyError::BrokenOff { policy: policy() }),
        }
    }
}

/// Rows of an answer by combination. All positions must be those of jobs.
fn rows((members, shares): Answer<'_>) -> Rows {
    let single = |job| Combination::single(JobIndex::from_index(job));
    let of_row = |row: usize| match members.as_ref().map(|members| members[row].as_slice()) {
        Some(&[one, other]) => Combination::pair(JobIndex::from_index(one), JobIndex::from_index(other)),
        Some(&[one]) => single(one),
        _ => single(row),
    };
    shares.as_array().outer_iter().enumerate().map(|(row, shares)| (of_row(row), shares.to_vec())).collect()
}
