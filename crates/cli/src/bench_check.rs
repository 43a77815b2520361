//! Checks before any case runs: faults of instances are reported at once, with their flag or file.

use std::fs::{self, File};
use std::io::Read;
use std::sync::Arc;

use crate::exit::Failure;
use apportion::policy::naming::{check_owners, check_worker_types};
use apportion::problem::Problem;
use apportion::spec::{Snapshot, Source};
use apportion::throughput::Throughputs;
use apportion_published::plugin;
use apportion_studies::benchmark::{Instance, InstanceError};

/// The largest snapshot in bytes that is read whole before any case runs; faults of a larger one are reported by its case.
const WHOLE_MAX: u64 = 4 << 20;

/// An error if the numbers of a random instance are outside their ranges.
pub(super) fn drawn(instance: &Instance, n_jobs: usize) -> Result<(), Failure> {
    instance.check(n_jobs).map_err(|error| refused(instance, &error))
}

/// An error if the throughput matrix lacks a job type that the instance draws.
pub(super) fn matrix(instance: &Instance, throughputs: &Arc<Throughputs>) -> Result<(), Failure> {
    instance.problem(1, 0, throughputs).map(|_| ()).map_err(|error| refused(instance, &error))
}

fn refused(instance: &Instance, error: &InstanceError) -> Failure {
    let help = match error {
        InstanceError::Parameter { .. } => {
            "`--sizes`, `--types`, `--heterogeneity` and `--density` say what is drawn"
        }
        _ => {
            "`--instance` takes a matrix of the job types of `osdi20`; `apportion throughputs` lists those there are"
        }
    };
    Failure::usage(format!("instance `{instance}`: {error}"), Some(help.to_owned()))
}

/// Refuses a number of parts into which no problem can be split. `n_jobs_max` is none if a size is not known up front.
pub(super) fn partitions(n_parts: usize, n_jobs_max: Option<usize>) -> Result<(), Failure> {
    if n_parts == 0 {
        return Err(Failure::usage("a problem cannot be split into 0 parts", None));
    }
    match n_jobs_max {
        Some(n_jobs) if n_parts > n_jobs => {
            let message = format!("`--partitions {n_parts}` is more than there are jobs, at most {n_jobs}");
            Err(Failure::usage(message, Some("a part needs one job at least".to_owned())))
        }
        _ => Ok(()),
    }
}

/// Refuses a policy that names worker types or owners which a problem lacks.
pub(super) fn names(policy: &str, problem: &Problem) -> Result<(), Failure> {
    let document = plugin::catalog().document(policy)?;
    check_worker_types(&document, problem.cluster())?;
    let owners = || problem.entities().iter().map(|entity| entity.name.as_str());
    Ok(check_owners(&document, owners, "the instance")?)
}

/// Refuses a file that has no snapshot, as far as that is quickly seen, or lacks names of the policies.
pub(super) fn snapshot(
    path: &str,
    throughputs: &Arc<Throughputs>,
    policies: &[String],
) -> Result<(), Failure> {
    let about = fs::metadata(path);
    let is_file = about.as_ref().is_ok_and(fs::Metadata::is_file);
    if path == "-" || (!is_file && about.as_ref().is_ok_and(|about| !about.is_dir())) {
        let help = "every case reads its snapshot anew: put it into a file first".to_owned();
        return Err(Failure::usage(format!("`--snapshot {path}` is no file"), Some(help)));
    }
    if about.is_ok_and(|about| is_file && about.len() > WHOLE_MAX) {
        let read = File::open(path).and_then(|file| file.take(1).read_to_end(&mut Vec::new()));
        return read.map(|_| ()).map_err(Failure::io(format!("read {path}")));
    }
    // A missing file, a folder or a file without text is refused here, too.
    let snapshot = Snapshot::read(&Source::load(path)?)?;
    let problem = Problem::from_snapshot(&snapshot, throughputs)?;
    policies.iter().try_for_each(|policy| names(policy, &problem))
}
