//! Reason why a run cannot start, or continue.

use thiserror::Error;

use apportion::policy::PolicyError;
use apportion::simulator::SimulationError;
use apportion::spec::SpecError;
use apportion::spec::run::FieldComplaint;

/// Reason why a run cannot start, or continue.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// Values of fields that are invalid, alone or together; at least one.
    #[error("{}", .0.first().map_or(String::new(), |c| format!("{}: {}", c.field, c.message)))]
    Fields(Vec<FieldComplaint>),
    /// A document that the run names is invalid.
    #[error(transparent)]
    Document(#[from] SpecError),
    /// The policy cannot be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The simulation stopped.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
}

impl RunError {
    pub(super) fn field(field: &str, message: impl Into<String>) -> Self {
        Self::Fields(vec![FieldComplaint { field: field.to_owned(), message: message.into(), help: None }])
    }

    /// A document's error as one of the field that names it, if the error has no position in the document.
    pub(super) fn naming(field: &str, error: SpecError) -> Self {
        match error.diagnostics.as_slice() {
            [only] if only.line == 0 => {
                let message = match only.source.as_str() {
                    "" => only.message.clone(),
                    source => format!("{source}: {}", only.message),
                };
                Self::Fields(vec![FieldComplaint {
                    field: field.to_owned(),
                    message,
                    help: only.help.clone(),
                }])
            }
            _ => Self::Document(error),
        }
    }
}
