//! Worker types and owners that a policy's document names, checked before anything is decided.

use crate::cluster::Cluster;
use crate::policy::objective::objective_of;
use crate::spec::nearest::{name_list, suggestion};
use crate::spec::policy::View;
use crate::spec::{PolicyDocument, PolicyKind, SpecError};

/// Refuses a policy that names a worker type which the cluster lacks, in an expression or as its reference.
///
/// # Errors
/// At the place in the document where the worker type is named, or where the document itself is at fault.
pub fn check_worker_types(document: &PolicyDocument, cluster: &Cluster) -> Result<(), SpecError> {
    let PolicyKind::Program(program) = &document.kind else { return Ok(()) };
    let known = || cluster.types().iter().map(|kind| kind.name.as_str());
    let is_unknown = |name: &str| cluster.find(name).is_none();
    let expected = name_list(known());
    if let View::Reference { types, or_fastest: false } = &program.view
        && types.iter().all(|name| is_unknown(name))
    {
        let message = format!(
            "policy `{}` takes throughputs to be those of {}, and the cluster has {expected}",
            document.name,
            name_list(types.iter().map(String::as_str)),
        );
        let help = format!(
            "name one of {expected}, or put `fastest` at the end: `reference({}, fastest)`",
            types.join(", ")
        );
        return Err(document.source.error_at("throughput", message, Some(help)));
    }
    let Some(objective) = objective_of(document)? else { return Ok(()) };
    let Some(name) = objective.worker_types().into_iter().find(|name| is_unknown(name)) else {
        return Ok(());
    };
    let message = format!(
        "policy `{}` names the worker type `{name}`, expected one of the cluster's, {expected}",
        document.name
    );
    Err(document.error_naming(name, message, suggestion(name, known())))
}

/// Refuses a policy that names an owner which is not in `known`, the owners of `of` ("the snapshot", for one). The
/// policy would take that name for an owner without jobs.
///
/// # Errors
/// At the place in the document where the owner is named, or where the document itself is at fault.
pub fn check_owners<'a, I: Iterator<Item = &'a str>>(
    document: &PolicyDocument,
    known: impl Fn() -> I,
    of: &str,
) -> Result<(), SpecError> {
    let Some(objective) = objective_of(document)? else { return Ok(()) };
    let is_unknown = |owner: &&str| known().all(|name| name != *owner);
    let Some(owner) = objective.owners().into_iter().find(is_unknown) else { return Ok(()) };
    let expected = if known().next().is_some() {
        format!("one of {of}'s, {}", name_list(known()))
    } else {
        format!("none: {of} has no `entities`")
    };
    let message =
        format!("policy `{}` names the owner `{}`, expected {expected}", document.name, owner.escape_debug());
    Err(document.error_naming(&format!("\"{owner}\""), message, suggestion(owner, known())))
}
