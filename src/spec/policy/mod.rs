//! Policy files: a policy's purpose, its objective or rule, and the throughputs that it sees.
//!
//! In: a document `apportion/policy-v1`. Out: a [`PolicyDocument`] whose fields fit together, with its [`Source`] for errors that
//! are found later: the meaning of its expressions is checked where programs are known.

mod constraint;
mod document;
mod embedded;
mod kind_fields;
mod naming;
mod parameters;

pub use constraint::ConstraintDocument;
pub use document::{
    Colocation, Document, FORMAT, Heuristic, Kind, Plugged, PolicyDocument, PolicyKind, Program, Refine,
    Rule, View,
};
pub use embedded::EMBEDDED;
pub use parameters::{Parameter, ParameterDocument, PolicyReference};

use crate::spec::document::{Source, SpecError};

/// The embedded policy of this name, or the one in the file at this path; the fields of a plug-in's kind are not read.
///
/// # Errors
/// If there is neither, or the document is not a policy.
pub fn load_policy(name_or_path: &str) -> Result<PolicyDocument, SpecError> {
    PolicyDocument::read(Source::find("policy", name_or_path, &EMBEDDED)?)
}

#[cfg(test)]
mod tests;
