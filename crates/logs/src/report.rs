//! The report of an import: what was read, what became of it, what is doubtful, and what the jobs are like.

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

/// The format of the report as JSON.
pub const FORMAT: &str = "apportion/import-report-v1";

/// What became of a log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportReport {
    /// Names the format: `apportion/import-report-v1`.
    pub format: &'static str,
    /// The version of the program.
    pub version: &'static str,
    /// The log.
    pub log: String,
    /// Its form.
    pub form: &'static str,
    /// The throughputs whose job types stand for its jobs.
    pub throughputs: String,
    /// The seed by which job types were drawn.
    pub seed: u64,
    /// Lines or entries that were read as rows.
    pub n_rows_read: u64,
    /// Rows that are parts of others: attempts, components, roles of a job.
    pub n_rows_merged: u64,
    /// Jobs that became of them.
    pub n_jobs: usize,
    /// Rows that are no jobs, by reason.
    pub left_out: Vec<LeftOut>,
    /// Jobs that were given the largest scale factor there is, and needed more workers.
    pub n_cut: u64,
    /// Jobs that were given more workers than they had, for lack of a scale factor of their size.
    pub n_rounded_up: u64,
    /// Hours of one accelerator that jobs with more workers than they had took in the log, as large as they were there.
    pub worker_hours_rounded_up_in_log: f64,
    /// Hours of one accelerator that all jobs took in the log.
    pub worker_hours_in_log: f64,
    /// Jobs whose running times were taken to be those of each worker type of the throughputs.
    pub running_times_of: BTreeMap<String, u64>,
    /// What is doubtful in this log, by what was found.
    pub doubts: Vec<Doubtful>,
    /// What is known to be doubtful of logs of this form, with where that is written.
    pub known_doubts: Vec<&'static str>,
    /// The first complaints about what is not understood, with their places.
    pub complaints: Vec<String>,
    /// Columns that are not used.
    pub unused_columns: Vec<String>,
    /// Rows by how they ended, those that became no jobs included.
    pub states: BTreeMap<State, u64>,
    /// Rows by the log's name of their accelerator; empty where it has none.
    pub accelerators: BTreeMap<String, u64>,
    /// How long jobs waited on the original cluster, from submission to start; none if no row has both.
    pub waited: Option<Waited>,
    /// What the jobs are like; none if there are none.
    pub shape: Option<Shape>,
    /// What they are for a cluster, if one was named.
    pub on_cluster: Option<OnCluster>,
}

/// Rows that were left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The reason.
    pub reason: Reason,
    /// The reason in words.
    pub words: &'static str,
    /// How many, and the first of them.
    #[serde(flatten)]
    pub rows: Tally,
}

/// Rows about which something is doubtful.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Doubtful {
    /// What is.
    pub doubt: Doubt,
    /// The same in words.
    pub words: &'static str,
    /// How often, and the first of them.
    #[serde(flatten)]
    pub rows: Tally,
}

/// How long jobs waited on the original cluster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Waited {
    /// Jobs of which that is known.
    pub n_jobs: usize,
    /// The mean.
    #[schemars(extend("x-unit" = "s"))]
    pub mean_s: f64,
    /// The least that half of them did not exceed.
    #[schemars(extend("x-unit" = "s"))]
    pub median_s: f64,
    /// The least that nine in ten did not exceed.
    #[schemars(extend("x-unit" = "s"))]
    pub p90_s: f64,
}

/// The load of the jobs on a cluster, by their running times in the log, or alone on the first worker type of a trace's matrix.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OnCluster {
    /// The cluster.
    pub cluster: String,
    /// Its workers.
    pub n_workers: u64,
    /// Workers that would be busy on average, as a part of all: above 1, jobs come faster than they could be run at the speeds
    /// of the log. None where arrivals last for less than a job takes.
    pub mean_busy_part: Option<f64>,
    /// Jobs that need more workers than any worker type has.
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

/// What a report is made of.
#[derive(Clone, Copy, Debug)]
pub struct Import<'a> {
    /// The log's form.
    pub form: Form,
    /// The log.
    pub log: &'a Reading,
    /// What became of it.
    pub converted: &'a Converted,
    /// The throughputs whose job types stand for its jobs.
    pub throughputs: &'a Throughputs,
    /// The seed by which job types were drawn.
    pub seed: u64,
    /// A cluster to compare with.
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

    /// What is said of the jobs beside how many there are, in sentences without an end: which were cut, and which are larger
    /// than they were.
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

    /// Rows something of which is not understood.
    pub fn n_not_understood(&self) -> u64 {
        let mut all = self.left_out.iter();
        all.find(|left_out| left_out.reason == Reason::NotUnderstood).map_or(0, |left_out| left_out.rows.n)
    }

    /// Rows that are no jobs.
    pub fn n_left_out(&self) -> u64 {
        self.left_out.iter().map(|left_out| left_out.rows.n).sum()
    }
}

/// What is counted of the jobs: their running times are those of the log.
pub fn loads(import: &Import<'_>) -> Vec<Load> {
    let of = |chosen: &Chosen| {
        let row = import.log.rows.at(chosen.row);
        let n_workers = import.throughputs.rows()[chosen.kind].scale_factor;
        Load { arrival_s: chosen.arrival_s, duration_s: row.ran_s.unwrap_or(0.0), n_workers }
    };
    import.converted.chosen.iter().map(of).collect()
}

/// Hours of one accelerator that some of the jobs took in the log.
fn worker_hours(log: &Reading, converted: &Converted, counts: impl Fn(&Chosen) -> bool) -> f64 {
    let rows = converted.chosen.iter().filter(|chosen| counts(chosen)).map(|chosen| log.rows.at(chosen.row));
    let each = rows.filter_map(|row| Some(row.held()? * row.ran_s?));
    // A sum of nothing is −0 otherwise.
    each.fold(0.0, |sum, hours| sum + hours) / 3600.0
}

fn in_a_line(complaint: &Diagnostic) -> String {
    SpecError { diagnostics: vec![complaint.clone()] }.to_string()
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
