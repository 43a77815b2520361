//! Checks that the inputs of a run fit together, beyond the checks of each document.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::sweep::run_error::RunError;
use apportion::catalog::Ready;
use apportion::cluster::Cluster;
use apportion::policy::objective::objective_of;
use apportion::program::expression::Vocabulary;
use apportion::scheduler::{Scheduler, SubmitError};
use apportion::simulator::Options;
use apportion::spec::nearest;
use apportion::spec::policy::Rule;
use apportion::spec::run::{FieldComplaint, RunSpec};
use apportion::spec::{PolicyDocument, PolicyKind};
use apportion::throughput::Throughputs;
use apportion::units::Decimals;
use apportion::workload::Job;

/// The error of one field, with advice.
pub(super) fn refused(field: &str, message: String, help: &str) -> RunError {
    RunError::Fields(vec![FieldComplaint { field: field.to_owned(), message, help: Some(help.to_owned()) }])
}

/// Refuses a policy that reads the prices of worker types where one has none.
pub(super) fn check_prices(document: &PolicyDocument, cluster: &Cluster) -> Result<(), RunError> {
    let Some(objective) = objective_of(document).map_err(|error| RunError::naming("policy", error))? else {
        return Ok(());
    };
    let reads = Vocabulary::default().find("price").is_some_and(|slot| objective.uses(slot));
    let lacking: Vec<&str> =
        cluster.types().iter().filter(|kind| kind.price.is_none()).map(|kind| kind.name.as_str()).collect();
    if !reads || lacking.is_empty() {
        return Ok(());
    }
    let lacking = nearest::name_list(lacking);
    let message = format!("policy `{}` reads prices, and there is none of {lacking}", document.name);
    let help = "`prices: {TYPE: DOLLARS_PER_HOUR, …}`, or the path of a file of prices, has one for each worker type";
    Err(refused("prices", message, help))
}

/// Refuses jobs that the policy could never place on this cluster, even alone with all workers up.
pub(super) fn check_gangs(
    document: &PolicyDocument,
    ready: Ready,
    cluster: &Cluster,
    throughputs: &Arc<Throughputs>,
    options: &Options,
    kinds: Vec<(&str, u32)>,
) -> Result<(), RunError> {
    let kinds: BTreeSet<(&str, u32)> = kinds.into_iter().collect();
    let help = "leave such jobs or the policy out, from a sweep by `skip`";
    if let PolicyKind::Heuristic(heuristic) = &document.kind
        && heuristic.rule == Rule::AlloX
        && let Some((job_type, n)) = kinds.iter().find(|(_, scale_factor)| *scale_factor != 1)
    {
        let name = &document.name;
        let message =
            format!("policy `{name}` gives each job one worker, and `{job_type}` needs {n} at once");
        return Err(refused("policy", message, help));
    }
    let Ready::InRounds(policy) = ready else { return Ok(()) };
    let scheduler =
        Scheduler::with_round_policy(cluster, Arc::clone(throughputs), policy, options.scheduler());
    let mut scheduler = scheduler.map_err(|error| RunError::field("policy", error.to_string()))?;
    for (job_type, scale_factor) in kinds {
        let job = Job::new(job_type).scale_factor(scale_factor);
        if let Err(SubmitError::CannotPlace { policy, reason }) = scheduler.submit(job) {
            let message = format!("policy `{policy}` could never place `{job_type}`: {reason}");
            return Err(refused("policy", message, help));
        }
    }
    Ok(())
}

/// Refuses jobs with owners that the run does not declare, if it declares any.
fn check_owners(spec: &RunSpec, (jobs, at): (&[Job], &dyn Fn(usize) -> String)) -> Result<(), RunError> {
    let declared = || spec.workload.entities.iter().map(|entity| entity.id.as_str());
    if declared().next().is_none() {
        return Ok(());
    }
    let known: BTreeSet<&str> = declared().collect();
    let mut named =
        jobs.iter().enumerate().filter_map(|(position, job)| Some((position, job.entity.as_deref()?)));
    match named.find(|(_, name)| !known.contains(name)) {
        None => Ok(()),
        Some((position, name)) => {
            let known = nearest::name_list(declared());
            let message = format!("{} belongs to `{name}`, expected one of {known}", at(position));
            let help = nearest::suggestion(name, declared());
            let field = "workload.entities".to_owned();
            Err(RunError::Fields(vec![FieldComplaint { field, message, help }]))
        }
    }
}

/// Refuses kinds of jobs that no worker type of the cluster can run.
pub(super) fn check_jobs<'a>(
    cluster: &Cluster,
    throughputs: &Throughputs,
    kinds: impl Iterator<Item = (&'a str, u32)>,
    field: &str,
) -> Result<(), RunError> {
    let mut checked: BTreeSet<(&str, u32)> = BTreeSet::new();
    for (job_type, scale_factor) in kinds {
        if !checked.insert((job_type, scale_factor)) {
            continue;
        }
        if let Some((message, help)) = why_not(cluster, throughputs, (job_type, scale_factor)) {
            let (field, help) = (field.to_owned(), help.map(str::to_owned));
            return Err(RunError::Fields(vec![FieldComplaint { field, message, help }]));
        }
    }
    Ok(())
}

/// Reason why no worker type of the cluster can run a kind of jobs, with advice; none if one can.
fn why_not(
    cluster: &Cluster,
    throughputs: &Throughputs,
    (job_type, scale_factor): (&str, u32),
) -> Option<(String, Option<&'static str>)> {
    let Some(row) = throughputs.find(job_type, scale_factor) else {
        return Some((format!("no throughputs for `{job_type}` at scale factor {scale_factor}"), None));
    };
    let runs = cluster.types().iter().any(|kind| {
        let column = throughputs.find_worker_type(&kind.name);
        kind.n_workers >= scale_factor && column.is_some_and(|column| throughputs.alone(row, column) > 0.0)
    });
    let help = "a job runs on workers of one type: one on which it has throughput needs as many workers";
    (!runs).then(|| {
        let message =
            format!("`{job_type}` at scale factor {scale_factor} can run on no worker type of {cluster}");
        (message, Some(help))
    })
}

/// Refuses jobs of a trace that the run cannot have; `at` gives the name and place of the job at a position.
pub(super) fn check_trace(
    spec: &RunSpec,
    cluster: &Cluster,
    throughputs: &Throughputs,
    (jobs, at): (&[Job], &dyn Fn(usize) -> String),
) -> Result<(), RunError> {
    let mut checked: BTreeSet<(&str, u32)> = BTreeSet::new();
    let kinds = jobs.iter().enumerate().flat_map(|(position, job)| {
        let sizes = job.sizes.iter().filter(|size| **size != job.scale_factor);
        [&job.scale_factor]
            .into_iter()
            .chain(sizes)
            .map(move |size| (position, (job.job_type.as_str(), *size)))
    });
    for (position, kind) in kinds {
        if !checked.insert(kind) {
            continue;
        }
        if let Some((why, help)) = why_not(cluster, throughputs, kind) {
            let (field, help) = ("workload.trace".to_owned(), help.map(str::to_owned));
            let message = format!("{}: {why}", at(position));
            return Err(RunError::Fields(vec![FieldComplaint { field, message, help }]));
        }
    }
    check_lengths(cluster, throughputs, (jobs, at))?;
    check_owners(spec, (jobs, at))
}

/// The longest accepted duration of a job alone where it is fastest: a hundred years, s.
const ALONE_MAX: f64 = 100.0 * 365.25 * 86_400.0;

/// Refuses jobs that are too long for any simulation: their steps are probably in another unit.
fn check_lengths(
    cluster: &Cluster,
    throughputs: &Throughputs,
    (jobs, at): (&[Job], &dyn Fn(usize) -> String),
) -> Result<(), RunError> {
    for (position, job) in jobs.iter().enumerate() {
        let Some(row) = throughputs.find(&job.job_type, job.scale_factor) else { continue };
        let kinds = cluster.types().iter().filter(|kind| kind.n_workers >= job.scale_factor);
        let columns = kinds.filter_map(|kind| throughputs.find_worker_type(&kind.name));
        let fastest = columns.map(|column| throughputs.alone(row, column)).fold(0.0, f64::max);
        let alone = job.total_steps.get() / fastest;
        if alone > ALONE_MAX {
            let (place, years) = (at(position), alone / ALONE_MAX * 100.0);
            let steps = job.total_steps.get();
            let message = format!(
                "{place} takes {} years alone: {steps} steps at {fastest} steps/s",
                Decimals(years, 0)
            );
            return Err(RunError::field("workload.trace", message));
        }
    }
    Ok(())
}
