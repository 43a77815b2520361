//! Policies that are Python functions: a problem in, shares out, checked like those of any other policy.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use apportion::allocation::Allocation;
use apportion::catalog::{Catalog, CatalogError, Plugin, PolicyOptions, Ready};
use apportion::index::{Id, JobIndex};
use apportion::policy::{Decision, Policy, PolicyError, RoundRules, TypeOrder};
use apportion::problem::Problem as EngineProblem;
use apportion::spec::policy::Plugged;
use apportion::spec::{PolicyDocument, Source, SpecError};
use apportion::workload::Combination;
use apportion_published::plugin;
use apportion_studies::sweep::Inputs;
use numpy::{PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde_json::Value;

use crate::errors;
use crate::problem::Problem;

/// The kind of a document of such a policy.
const KIND: &str = "python";

/// A Python function and what a run must know of it.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Function {
    callable: Py<PyAny>,
    /// Whether it may let jobs share workers.
    pairs: bool,
    rules: Rules,
    /// What results are kept under: the function's text, or what its user says.
    version: String,
}

/// What a function needs of the mechanism.
#[derive(Clone, Copy, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
struct Rules {
    /// Worker types are filled in an order that is drawn anew each round, not the fastest first.
    shuffled: bool,
    /// Jobs without a share do not fill workers that are left over.
    skip_zero_priority: bool,
}

impl Rules {
    /// As the engine has them.
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

    /// Takes it out.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Functions by name, as a kind of policies.
#[derive(Debug)]
struct Functions {
    by_name: BTreeMap<String, Function>,
    raised: Raised,
}

/// Functions, policies and texts that runs name and that are in no file.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Given {
    /// Policies that are functions, by name.
    functions: BTreeMap<String, Function>,
    /// Documents of policies.
    policies: Vec<String>,
    /// Texts of traces and throughputs, by the name that runs have for them.
    texts: BTreeMap<String, String>,
}

impl Given {
    /// The policies there are with those that are given, and the traces; an exception that a function raises is put where it
    /// says.
    ///
    /// # Errors
    /// If a document is no policy.
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
        _: &PolicyOptions,
    ) -> Result<Ready, CatalogError> {
        let wrong = |reason: String| CatalogError::Plugin { policy: document.name.clone(), reason };
        let Some(of) = self.by_name.get(&document.name) else {
            let reason = "a document of `kind: python` has a function only where it is given one in Python";
            return Err(wrong(reason.to_owned()));
        };
        let function = fresh(&of.callable).map_err(|error| {
            let reason = format!("it raised {error}");
            self.raised.put(error);
            wrong(reason)
        })?;
        Ok(Ready::Allocating(Box::new(FunctionPolicy {
            name: document.name.clone(),
            function,
            rules: of.rules.of_rounds(of.pairs),
            raised: self.raised.clone(),
        })))
    }
}

/// The function that a run asks: what its attribute `policy_fresh` gives, if it has one, so that runs do not share what it
/// remembers.
fn fresh(function: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    Python::attach(|py| match function.bind(py).getattr_opt("policy_fresh")? {
        Some(make) => Ok(make.call0()?.unbind()),
        None => Ok(function.clone_ref(py)),
    })
}

/// A policy that asks a Python function.
pub(crate) struct FunctionPolicy {
    name: String,
    function: Py<PyAny>,
    rules: RoundRules,
    raised: Raised,
}

impl fmt::Debug for FunctionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionPolicy").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Shares by combination, as an engine checks them.
type Rows = Vec<(Combination<JobIndex>, Vec<f64>)>;

impl FunctionPolicy {
    /// Of one function alone.
    pub(crate) fn new(name: &str, function: Py<PyAny>, raised: &Raised) -> Self {
        Self { name: name.to_owned(), function, rules: RoundRules::default(), raised: raised.clone() }
    }

    fn ask(&self, problem: &EngineProblem) -> PyResult<Rows> {
        Python::attach(|py| {
            let seen = Bound::new(py, Problem::of(problem.clone()))?;
            let answer = self.function.bind(py).call1((seen,))?;
            rows(&answer, problem.n_jobs(), problem.n_types())
        })
    }
}

impl Policy for FunctionPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&mut self, problem: &EngineProblem) -> Result<Decision, PolicyError> {
        let policy = || self.name.clone();
        let answer = if problem.n_jobs() == 0 { Ok(Rows::new()) } else { self.ask(problem) };
        let rows = answer.map_err(|error| {
            let reason = format!("it raised {error}");
            self.raised.put(error);
            PolicyError::Undecided { policy: policy(), reason }
        })?;
        let checked = Allocation::check(problem, rows);
        let decision = checked.map(|allocation| Decision { rules: self.rules, ..Decision::of(allocation) });
        decision.map_err(|source| PolicyError::Allocation { policy: policy(), source })
    }
}

/// The shares that a function gave: an array [n × K] of jobs alone, or a mapping of positions, or pairs of them, to `[K]`.
fn rows(answer: &Bound<'_, PyAny>, n: usize, k: usize) -> PyResult<Rows> {
    if let Ok(mapping) = answer.cast::<PyDict>() {
        return mapping.iter().map(|(key, shares)| Ok((combination(&key, n)?, row(&shares, k)?))).collect();
    }
    if answer.is_none() {
        return Err(errors::input("a policy returned None, expected shares (jobs × worker types)"));
    }
    let numpy = answer.py().import("numpy")?;
    let given = numpy.getattr("asarray")?.call1((answer,))?;
    let masked = numpy.getattr("ma")?.call_method1("isMaskedArray", (answer,))?.is_truthy()?;
    if masked || given.getattr("dtype")?.getattr("kind")?.extract::<char>()? == 'c' {
        return Err(errors::input("a policy returned masked or complex shares, expected plain numbers"));
    }
    let keywords = [("dtype", "float64")].into_py_dict(answer.py())?;
    let array = numpy.getattr("asarray")?.call((given,), Some(&keywords))?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    if shape != [n, k] {
        let message = format!(
            "a policy returned an array of shape {shape:?}, expected [{n}, {k}]: jobs × worker types"
        );
        return Err(errors::input(message));
    }
    let array: PyReadonlyArray2<'_, f64> = array.extract()?;
    debug_assert_eq!(array.shape(), [n, k]);
    let rows = array.as_array();
    Ok(rows
        .outer_iter()
        .enumerate()
        .map(|(job, row)| (Combination::single(JobIndex::from_index(job)), row.to_vec()))
        .collect())
}

fn combination(key: &Bound<'_, PyAny>, n: usize) -> PyResult<Combination<JobIndex>> {
    let single = key.extract::<usize>().ok().map(|job| (job, None));
    let pair = || key.extract::<(usize, usize)>().ok().map(|(one, other)| (one, Some(other)));
    let known = |job: usize| job < n;
    match single.or_else(pair) {
        Some((job, None)) if known(job) => Ok(Combination::single(JobIndex::from_index(job))),
        Some((one, Some(other))) if known(one) && known(other) && one != other => {
            Ok(Combination::pair(JobIndex::from_index(one), JobIndex::from_index(other)))
        }
        _ => Err(errors::input(format!(
            "a policy gave shares to {}, expected a position below {n}, or two of them",
            key.repr()?
        ))),
    }
}

fn row(shares: &Bound<'_, PyAny>, k: usize) -> PyResult<Vec<f64>> {
    let row = shares.extract::<Vec<f64>>().ok().filter(|row| row.len() == k);
    let said = shares.repr().map(|said| said.to_string());
    row.ok_or_else(|| {
        let said = said.unwrap_or_default();
        let message =
            format!("a policy gave {said} to one combination, expected a share on each of {k} worker types");
        errors::input(message)
    })
}
