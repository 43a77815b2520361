//! Results as logs in the form that the published notebooks read:
//! `raw_logs/v100=36.p100=36.k80=36/POLICY/seed=0/lambda=3600.000000.log`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::meaning::worker_types;
use crate::exit::Failure;
use crate::file::write;
use crate::results;
use apportion::spec::path_text;
use apportion_studies::sweep::{JobRow, Row, Status, Store};
use serde_json::Value;

/// Writes a log of every finished run in the folder. `names` has, for a sweep over numbers of jobs, the numbers in the names of
/// logs → the number of jobs of the run: then only runs of this command line get logs. Others in the folder got theirs from their
/// own command line.
///
/// # Errors
/// If the results cannot be read, or a log not written.
pub(super) fn write_all(folder: &Path, names: &BTreeMap<u64, u64>) -> Result<(), Failure> {
    let store = Store::open_to_read(folder).map_err(results::failure)?;
    let worker_types = worker_types()?;
    for row in store.rows().map_err(results::failure)? {
        if row.outcome.status != Status::Done {
            continue;
        }
        let places = places(&row, &worker_types, names);
        if places.is_empty() {
            continue;
        }
        let jobs = store.jobs(&row.digest).map_err(results::failure)?;
        let text = text(&row, &jobs);
        for path in places.iter().map(|place| folder.join("raw_logs").join(place)) {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(Failure::io(format!("make {}", parent.display())))?;
            }
            write(&path, text.as_bytes())?;
        }
    }
    Ok(())
}

/// The paths of a run's logs: one, or several if the run stands for several numbers of jobs, such as 13.5 and 14.
fn places(row: &Row, worker_types: &[String], names: &BTreeMap<u64, u64>) -> Vec<PathBuf> {
    let Ok(spec) = serde_json::from_str::<Value>(&row.spec) else { return Vec::new() };
    let workload = &spec["workload"];
    let of_jobs = |name: &u64| format!("num_total_jobs={name}.log");
    let files = match (workload["rate"].as_f64(), workload["static"].as_u64()) {
        (Some(rate), _) => vec![format!("lambda={:.6}.log", 3600.0 / rate)],
        (None, Some(jobs)) if names.is_empty() => vec![of_jobs(&jobs)],
        (None, Some(jobs)) => {
            names.iter().filter(|(_, of)| **of == jobs).map(|(name, _)| of_jobs(name)).collect()
        }
        (None, None) => vec!["trace.log".to_owned()],
    };
    let Some(folder) = place(&spec, worker_types) else { return Vec::new() };
    files.into_iter().map(|file| folder.join(file)).collect()
}

/// The folder of a run's log, from its whole spec, so that it does not depend on the axes.
fn place(spec: &Value, worker_types: &[String]) -> Option<PathBuf> {
    let workers = |name: &String| format!("{name}={}", spec["cluster"][name].as_u64().unwrap_or(0));
    let cluster = worker_types.iter().map(workers).collect::<Vec<_>>().join(".");
    let (policy, seed) = (spec["policy"].as_str()?, spec["seed"].as_u64()?);
    let profiling = &spec["profiling"];
    // A policy file is named by its file name: its path would lead out of the folder.
    let policy = path_text::to_path(policy).file_name()?.to_owned();
    let mut place = PathBuf::from(cluster).join(policy);
    if let (Some(part), Some(models)) =
        (profiling["fraction"].as_f64(), profiling["reference_models"].as_u64())
    {
        place = place
            .join(format!("profiling_percentage={part:.6}"))
            .join(format!("num_reference_models={models}"));
    }
    Some(place.join(format!("seed={seed}")))
}

/// The lines that the notebooks look for.
fn text(row: &Row, jobs: &[JobRow]) -> String {
    let mut text = String::new();
    if let Some(makespan) = row.outcome.metric("makespan_s") {
        let _ = writeln!(text, "Total duration: {makespan:.3} seconds ({:.2} hours)", makespan / 3600.0);
    }
    text.push_str("Job completion times:\n");
    let mut means: [(&str, Vec<f64>); 2] =
        [(" (low priority)", Vec::new()), (" (high priority)", Vec::new())];
    for job in jobs {
        let Some(jct) = job.jct else { continue };
        let is_high = job.weight > 1.0;
        let _ = writeln!(text, "Job {}{}: {jct:.3}", job.id, if is_high { " (high priority)" } else { "" });
        means[usize::from(is_high)].1.push(jct);
    }
    let mean = |text: &mut String, of: &str, mean: f64| {
        let _ =
            writeln!(text, "Average job completion time{of}: {mean:.3} seconds ({:.2} hours)", mean / 3600.0);
    };
    if let Some(average) = row.outcome.metric("average_jct_s") {
        mean(&mut text, "", average);
    }
    for (of, jcts) in &means {
        if !jcts.is_empty() {
            mean(&mut text, of, jcts.iter().sum::<f64>() / jcts.len() as f64);
        }
    }
    if let Some(utilization) = row.outcome.metric("utilization") {
        let _ = writeln!(text, "Cluster utilization: {utilization:.3}");
    }
    text
}
