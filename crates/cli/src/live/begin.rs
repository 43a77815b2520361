//! The checks before a scheduler's first round: of the policy's data, and of the state folder.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;

use super::log::Log;
use crate::exit::Failure;
use crate::file::check_folder;
use apportion::policy::{Policy, PolicyError};
use apportion::scheduler::{Options, Scheduler};
use apportion::simulator::PriceChange;
use apportion::spec::nearest::name_list;
use apportion::throughput::Throughputs;
use apportion::units::{Seconds, StepsPerSecond};
use apportion::{Cluster, Job};
use apportion_live::core::{SettingError, Settings};
use apportion_live::driver::{Driver, StartError};
use apportion_live::store::{Store, StoreError};
use std::sync::Arc;

/// The scheduler's records, in the folder of its state.
const RECORDS: &str = "scheduler.sqlite";

/// The shortest round: within it, servers report and jobs are started and stopped.
const ROUND_MIN: Seconds = Seconds::new(1.0);

/// Refuses rounds in which nothing could happen.
///
/// # Errors
/// If the round is too short.
pub(super) fn check_round(length: Seconds) -> Result<(), Failure> {
    if length >= ROUND_MIN {
        return Ok(());
    }
    let help = "jobs are started and stopped at the ends of rounds: real ones take some minutes".to_owned();
    Err(Failure::usage(format!("--round-length is {length}, expected {ROUND_MIN} or more"), Some(help)))
}

/// Refuses a policy that needs prices of workers if some are missing: it would never decide. The policy is tried on one job.
///
/// # Errors
/// If it needs them.
pub(super) fn check_prices(
    mut trial: Box<dyn Policy>,
    cluster: &Cluster,
    throughputs: &Arc<Throughputs>,
) -> Result<(), Failure> {
    let own = trial.name().to_owned();
    let mut job = Job::new("trial").steps(1000);
    job.slo = Some(Seconds::new(1e6));
    for kind in cluster.types() {
        job = job.throughput(&kind.name, StepsPerSecond::new(1.0));
    }
    // A rule that decides nothing stands in: only the problem that it would be shown is needed.
    let stand_in = apportion::Catalog::embedded().policy("isolated");
    let problem = stand_in.ok().and_then(|policy| {
        let mut scheduler =
            Scheduler::new(cluster, Arc::clone(throughputs), policy, Options::default()).ok()?;
        scheduler.submit(job).ok()?;
        scheduler.problem().ok()
    });
    let answer = problem.map(|problem| trial.allocate(&problem).map(drop));
    match answer {
        Some(Err(PolicyError::Data { field, .. })) if field == "price" => {
            let missing = cluster.types().iter().filter(|kind| kind.price.is_none());
            let missing = name_list(missing.map(|kind| kind.name.as_str()));
            let help = "`--prices FILE` states them, such as {v100: 2.48, p100: 1.46}; or take a policy without costs, such as \
                        `max_sum_throughput_perf`";
            let message =
                format!("--policy: `{own}` needs the prices of workers, and there is none of {missing}");
            Err(Failure::usage(message, Some(help.to_owned())))
        }
        _ => Ok(()),
    }
}

/// A warning about a state folder without records that holds files of an earlier scheduler, and is treated as a new folder; none if
/// there are no such files.
fn doubt(folder: &Path) -> Option<String> {
    let has_records = folder.join(RECORDS).exists();
    let has_some =
        |name: &&str| fs::read_dir(folder.join(name)).is_ok_and(|mut entries| entries.next().is_some());
    let left = ["agents", "checkpoints"].into_iter().find(has_some).filter(|_| !has_records)?;
    Some(format!(
        "{} has no records in {RECORDS}, and has {left}/ of an earlier state: it begins anew, with job 0, and stops what still runs. \
         If that is not meant, end it and put a back-up in its place",
        folder.display()
    ))
}

/// Refuses records of no bytes: whatever was acknowledged would be lost without a word.
fn check_not_empty(records: &Path) -> Result<(), Failure> {
    if !fs::metadata(records).is_ok_and(|file| file.is_file() && file.len() == 0) {
        return Ok(());
    }
    let message =
        format!("{} is empty: it was cut short, or a first start was killed at once", records.display());
    let help = "put a back-up in its place; or remove it, and the next start begins anew, with job 0";
    Err(Failure::usage(message, Some(help.to_owned())))
}

/// Starts the scheduler on the records of a folder.
///
/// # Errors
/// If another scheduler uses them or they cannot be used, or a setting is out of range.
pub(super) fn start(
    (folder, settings, prices): (&Path, Settings, Vec<PriceChange>),
    scheduler: Scheduler,
    explainer: Option<Box<dyn Policy>>,
    log: &Log<'_>,
) -> Result<Driver, Failure> {
    check_folder("--state", Some(folder))?;
    fs::create_dir_all(folder).map_err(|error| {
        Failure::usage(format!("--state: cannot make {}: {error}", folder.display()), None)
    })?;
    if let Some(doubt) = doubt(folder) {
        log.warning(&doubt);
    }
    let records = folder.join(RECORDS);
    check_not_empty(&records)?;
    if Store::is_in_use(&records) {
        let text = format!("another scheduler uses {}: it is given 5 s to end", folder.display());
        log.say(&text, &json!({}));
    }
    Driver::start(settings, scheduler, explainer, prices, &records).map_err(|error| match error {
        StartError::Setting(SettingError { setting, value, expected }) => {
            Failure::usage(format!("--{} is {value}, expected {expected}", setting.replace('_', "-")), None)
        }
        StartError::Store(StoreError::Sqlite { path, source }) => {
            let action = format!("use {}", path.display());
            Failure::Io { action, source: io::Error::other(source) }
        }
        StartError::Store(StoreError::Full { path }) => {
            let action = format!("use {}", path.display());
            let source = io::Error::new(
                io::ErrorKind::StorageFull,
                "the disk is full: make room on it, and start again",
            );
            Failure::Io { action, source }
        }
        StartError::Thread(source) => Failure::Io { action: "start the scheduler".to_owned(), source },
        error => Failure::usage(error.to_string(), None),
    })
}
