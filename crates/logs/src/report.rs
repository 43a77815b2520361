//! Report of an import: rows read and left out, doubts, and statistics of the jobs.

use std::collections::BTreeMap;

use apportion::Cluster;
use apportion::spec::{Diagnostic, SpecError};
use apportion::throughput::Throughputs;
use schemars::JsonSchema;
use serde::Serialize;

use crate::convert::{Chosen, Converted};
use crate::form::Form;
use crate::load::{Load, Shape};
use crate::reading::Reading;
use crate::row::State;
use crate::tally::{Doubt, Reason, Tally, counted};

/// Name of the report's JSON format.
pub const FORMAT: &str = "apportion/import-report-v1";

/// Report of an import: the rows of a log, and the jobs that they became.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportReport {
    /// Name of the format: `apportion/import-report-v1`.
    pub format: &'static str,
    /// Version of the program.
    pub version: &'static str,
    /// Name of the log.
    pub log: String,
    /// Form of the log.
    pub form: &'static str,
    /// Throughputs whose job types stand for the log's jobs.
    pub throughputs: String,
    /// Seed by which job types were drawn.
    pub seed: u64,
    /// Number of lines or entries that were read as rows.
    pub n_rows_read: u64,
    /// Number of rows that are parts of others: attempts, components, roles of a job.
    pub n_rows_merged: u64,
    /// Number of jobs that the rows became.
    pub n_jobs: usize,
    /// Rows that became no job, by reason.
    pub left_out: Vec<LeftOut>,
    /// Number of jobs that needed more workers than the largest scale factor, which they were given.
    pub n_cut: u64,
    /// Number of jobs that were given more workers than they had, as no job type has their scale factor.
    pub n_rounded_up: u64,
    /// Worker hours in the log of the jobs that were given more workers, at their size in the log.
    pub worker_hours_rounded_up_in_log: f64,
    /// Worker hours of all jobs in the log.
    pub worker_hours_in_log: f64,
    /// Number of jobs by the worker type of the throughputs that their running times were taken to be of.
    pub running_times_of: BTreeMap<String, u64>,
    /// Doubts that were found in this log.
    pub doubts: Vec<Doubtful>,
    /// Known doubts about logs of this form, with where they are written.
    pub known_doubts: Vec<&'static str>,
    /// The first complaints about rows that are not understood, with their positions.
    pub complaints: Vec<String>,
    /// Columns of the log that are not used.
    pub unused_columns: Vec<String>,
    /// Number of rows by their state, including those that became no job.
    pub states: BTreeMap<State, u64>,
    /// Number of rows by the log's name of their accelerator; empty where it has none.
    pub accelerators: BTreeMap<String, u64>,
    /// Waiting times of jobs on the original cluster, from submission to start; none if no row has both times.
    pub waited: Option<Waited>,
    /// Statistics of the jobs; none if there are none.
    pub shape: Option<Shape>,
    /// Load of the jobs on a cluster, if one was named.
    pub on_cluster: Option<OnCluster>,
}

/// Rows that were left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Reason as a key.
    pub reason: Reason,
    /// Reason in words.
    pub words: &'static str,
    /// Number of rows, and the first of them.
    #[serde(flatten)]
    pub rows: Tally,
}

/// Rows about which something is doubtful.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Doubtful {
    /// Doubt as a key.
    pub doubt: Doubt,
    /// Doubt in words.
    pub words: &'static str,
    /// Number of rows, and the first of them.
    #[serde(flatten)]
    pub rows: Tally,
}

/// Waiting times of jobs on the original cluster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Waited {
    /// Number of jobs whose waiting time is known.
    pub n_jobs: usize,
    /// Mean waiting time.
    #[schemars(extend("x-unit" = "s"))]
    pub mean_s: f64,
    /// Median: the least waiting time that half of the jobs did not exceed.
    #[schemars(extend("x-unit" = "s"))]
    pub median_s: f64,
    /// 90th percentile: the least waiting time that nine in ten jobs did not exceed.
    #[schemars(extend("x-unit" = "s"))]
    pub p90_s: f64,
}

/// Load of the jobs on a cluster, by their running times in the log, or alone on the first worker type of a trace's matrix.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OnCluster {
    /// Cluster, as `TYPE=N,…`.
    pub cluster: String,
    /// Number of workers of the cluster.
    pub n_workers: u64,
    /// Mean number of busy workers divided by all workers: above 1, jobs come faster than they could be run at the speeds of
    /// the log. None where arrivals last for less than the mean running time.
    pub mean_busy_part: Option<f64>,
    /// Number of jobs that need more workers than any worker type has.
    pub n_too_large: usize,
}

impl OnCluster {
    /// The load of jobs of this shape on a cluster.
    pub fn of(cluster: &Cluster, shape: Option<&Shape>) -> Self {
        let n_workers = cluster.n_workers();
        let largest = cluster.types().iter().map(|kind| kind.n_workers).max().unwrap_or(0);
        let sizes = shape.into_iter().flat_map(|shape| &shape.sizes);
        let busy = shape.and_then(|shape| shape.mean_busy_workers);
        Self {
            cluster: cluster.to_string(),
            n_workers,
            mean_busy_part: busy.map(|busy| busy / n_workers as f64),
            n_too_large: sizes.filter(|(size, _)| **size > largest).map(|(_, n)| *n).sum(),
        }
    }
}

/// Parts from which a report is made.
#[derive(Clone, Copy, Debug)]
pub struct Import<'a> {
    /// Form of the log.
    pub form: Form,
    /// Log as it was read.
    pub log: &'a Reading,
    /// Jobs that the log became.
    pub converted: &'a Converted,
    /// Throughputs whose job types stand for the log's jobs.
    pub throughputs: &'a Throughputs,
    /// Seed by which job types were drawn.
    pub seed: u64,
    /// Cluster to compare the load with.
    pub cluster: Option<&'a Cluster>,
}

impl ImportReport {
    /// The report of an import.
    pub fn of(import: &Import<'_>) -> Self {
        let Import { form, log, converted, throughputs, seed, cluster } = *import;
        let loads = loads(import);
        let shape = Shape::of(&loads);
        let mut states = BTreeMap::new();
        let mut accelerators: BTreeMap<String, u64> = BTreeMap::new();
        for row in log.rows.iter() {
            *states.entry(row.state).or_default() += 1;
            if let Some(name) = row.worker_type {
                match accelerators.get_mut(name) {
                    Some(n) => *n += 1,
                    None => drop(accelerators.insert(name.to_owned(), 1)),
                }
            }
        }
        let ran_on = throughputs.worker_types().iter().zip(&converted.ran_on).filter(|(_, n)| **n > 0);
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            log: log.source.clone(),
            form: form.name(),
            throughputs: throughputs.name().to_owned(),
            seed,
            n_rows_read: log.n_read,
            n_rows_merged: log.n_merged,
            n_jobs: converted.chosen.len(),
            left_out: left_out(log, converted),
            n_cut: converted.cut.n,
            n_rounded_up: converted.rounded_up.n,
            worker_hours_rounded_up_in_log: worker_hours(log, converted, |chosen| {
                chosen.is_rounded_up(log, throughputs)
            }),
            worker_hours_in_log: worker_hours(log, converted, |_| true),
            running_times_of: ran_on.map(|(name, n)| (name.clone(), *n)).collect(),
            doubts: doubts(log, converted),
            known_doubts: form.entry().known_doubts.to_vec(),
            complaints: log.complaints.iter().map(in_a_line).collect(),
            unused_columns: log.unused_columns.clone(),
            states,
            accelerators,
            waited: waited(log, converted),
            on_cluster: cluster.map(|cluster| OnCluster::of(cluster, shape.as_ref())),
            shape,
        }
    }

    /// Sentences, without an end, about jobs that were cut and jobs that are larger than in the log.
    pub fn of_jobs(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.n_cut > 0 {
            let jobs = counted(self.n_cut, "job");
            said.push(format!("{jobs} given the largest scale factor of their rule, and needed more"));
        }
        if self.n_rounded_up > 0 {
            let jobs = counted(self.n_rounded_up, "job");
            let hours = self.worker_hours_rounded_up_in_log;
            said.push(format!(
                "{jobs} given more workers than they had, the next scale factor; in the log these took {hours:.1} worker-hours"
            ));
        }
        said
    }

    /// Number of rows that are not understood.
    pub fn n_not_understood(&self) -> u64 {
        let mut all = self.left_out.iter();
        all.find(|left_out| left_out.reason == Reason::NotUnderstood).map_or(0, |left_out| left_out.rows.n)
    }

    /// Number of rows that became no job.
    pub fn n_left_out(&self) -> u64 {
        self.left_out.iter().map(|left_out| left_out.rows.n).sum()
    }
}

/// Loads of the jobs, with their running times in the log.
pub fn loads(import: &Import<'_>) -> Vec<Load> {
    let of = |chosen: &Chosen| {
        let row = import.log.rows.at(chosen.row);
        let n_workers = import.throughputs.rows()[chosen.kind].scale_factor;
        Load { arrival_s: chosen.arrival_s, duration_s: row.ran_s.unwrap_or(0.0), n_workers }
    };
    import.converted.chosen.iter().map(of).collect()
}

/// Worker hours in the log of the jobs that `counts` chooses.
fn worker_hours(log: &Reading, converted: &Converted, counts: impl Fn(&Chosen) -> bool) -> f64 {
    let rows = converted.chosen.iter().filter(|chosen| counts(chosen)).map(|chosen| log.rows.at(chosen.row));
    let each = rows.filter_map(|row| Some(row.held()? * row.ran_s?));
    // An empty `sum` would be −0.
    each.fold(0.0, |sum, hours| sum + hours) / 3600.0
}

fn in_a_line(complaint: &Diagnostic) -> String {
    SpecError::from(complaint.clone()).to_string()
}

fn left_out(log: &Reading, converted: &Converted) -> Vec<LeftOut> {
    let mut all: BTreeMap<Reason, Tally> = log.left_out.clone();
    for (reason, tally) in &converted.left_out {
        all.entry(*reason).or_default().add(tally);
    }
    all.into_iter().map(|(reason, rows)| LeftOut { reason, words: reason.words(), rows }).collect()
}

fn doubts(log: &Reading, converted: &Converted) -> Vec<Doubtful> {
    let all = log.doubts.iter().chain(&converted.doubts);
    all.map(|(doubt, rows)| Doubtful { doubt: *doubt, words: doubt.words(), rows: rows.clone() }).collect()
}

fn waited(log: &Reading, converted: &Converted) -> Option<Waited> {
    let rows = converted.chosen.iter().map(|chosen| log.rows.at(chosen.row));
    let mut waits: Vec<f64> =
        rows.filter_map(|row| Some((row.started_s? - row.submitted_s?).max(0.0))).collect();
    waits.sort_by(f64::total_cmp);
    let at = |part: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position in the list")]
        let at = (part * waits.len() as f64).ceil() as usize;
        waits.get(at.max(1) - 1).copied()
    };
    let mean_s = waits.iter().sum::<f64>() / waits.len() as f64;
    Some(Waited { n_jobs: waits.len(), mean_s, median_s: at(0.5)?, p90_s: at(0.9)? })
}
