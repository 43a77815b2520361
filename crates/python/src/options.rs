//! Options of policies by their names.

use std::ffi::OsString;
use std::time::Duration;

use apportion::PolicyOptions;
use apportion::policy::{Refine, Strategy};
use apportion::solver::Interrupt;
use apportion::spec::nearest::{name_list, suggestion};
use apportion::spec::{Fidelity, path_text};
use pyo3::prelude::*;

use crate::errors;

/// A name, a path or a text, from Python's `str`. A path that is not UTF-8 stays the path that it is.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) String);

impl<'a, 'py> FromPyObject<'a, 'py> for Text {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract::<OsString>().map(|text| Self(path_text::of(text)))
    }
}

/// Options of a policy beyond its document.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    backend: Option<String>,
    refine: Option<String>,
    strategy: Option<String>,
    semantics: String,
    seed: u64,
    /// Time limit, s.
    time_limit: Option<f64>,
}

impl Asked {
    /// The catalog's options, with the interrupt that breaks decisions off.
    ///
    /// # Errors
    /// If the refinement, strategy or semantics is unknown, or the limit is not a time.
    pub(crate) fn options(&self, interrupt: Interrupt) -> PyResult<PolicyOptions> {
        let fidelity = match self.semantics.as_str() {
            "corrected" => Fidelity::Corrected,
            "gavel" => Fidelity::Published,
            other => return Err(unknown("semantics", other, ["corrected", "gavel"])),
        };
        let refine = match &self.refine {
            None => (fidelity == Fidelity::Published).then_some(Refine::Interior),
            Some(name) => match Refine::named(name) {
                Some(refine) => Some(refine),
                None => return Err(unknown("refine", name, Refine::ALL.map(Refine::name))),
            },
        };
        let strategy = match &self.strategy {
            None => None,
            Some(name) => match Strategy::named(name) {
                Some(strategy) => Some(strategy),
                None => return Err(unknown("strategy", name, Strategy::ALL.map(Strategy::name))),
            },
        };
        let time_limit = match self.time_limit {
            None => None,
            Some(seconds) => match Duration::try_from_secs_f64(seconds) {
                Ok(limit) if !limit.is_zero() => Some(limit),
                _ => {
                    let seconds = errors::short(seconds);
                    return Err(errors::input(format!("time_limit is {seconds}, expected seconds above 0")));
                }
            },
        };
        let (backend, seed) = (self.backend.clone(), self.seed);
        Ok(PolicyOptions { fidelity, seed, refine, backend, strategy, time_limit, interrupt })
    }
}

fn unknown<const N: usize>(what: &str, name: &str, known: [&'static str; N]) -> PyErr {
    let message = format!("unknown {what} `{name}`, expected one of {}", name_list(known.iter().copied()));
    errors::input_with_help(&message, suggestion(name, known).as_deref())
}
