//! Logs of production clusters as traces.
//!
//! In: a log, a throughput matrix, a seed. Out: a [`Trace`] of jobs that the matrix knows. A log says how many
//! accelerators a job had and for how long, not what it computed, so a rule says which job of the matrix stands for it:
//!
//! | of the trace | is                                                                                            |
//! |--------------|-----------------------------------------------------------------------------------------------|
//! | scale factor | the smallest of the matrix that is at least the number of accelerators; the largest, if none is |
//! | job type     | drawn uniformly, in order of submission, from those that run at that scale factor on the reference worker type, the matrix's first |
//! | total steps  | the job's running time × its throughput alone there                                           |
//! | arrival      | its submission, after the first one's                                                         |
//! | entity       | its virtual cluster, where the log has one                                                    |
//!
//! | log    | file                   | accelerators                            | running time                        |
//! |--------|------------------------|-----------------------------------------|-------------------------------------|
//! | Philly | `cluster_job_log`, JSON | those of the last attempt that has any | all attempts, end − start           |
//! | PAI    | `pai_task_table.csv`   | Σ over tasks of `inst_num` × `plan_gpu` / 100, rounded up | last end − first start of its tasks with accelerators |
//! | Helios | `cluster_log.csv`      | `gpu_num`                               | `duration`                          |
//!
//! Jobs without accelerators, and those whose times are not there, are left out and counted. What is there and is not
//! understood is a complaint, and so is a name that an earlier job has; jobs with complaints can be left out, too.
//!
//! Sources of the forms: the README files of msr-fiddle/philly-traces (29a1b87), alibaba/clusterdata
//! (cluster-trace-gpu-v2020, 02a1be1) and S-Lab-System-Group/HeliosData (106713b).

mod date;
mod logs;

use std::collections::BTreeMap;

use self::logs::{Log, Place, Said};
use super::field::Range;
use super::{Trace, TraceForm, TracedJob, speed};
use crate::index::Id;
use crate::spec::document::Unplaced;
use crate::spec::{Source, SpecError};
use crate::throughput::Throughputs;
use crate::units::{Seconds, Steps};
use crate::workload::Job;
use crate::workload::random::SeedStreams;

/// Whose log it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogOrigin {
    /// Microsoft's Philly clusters, 2017.
    Philly,
    /// Alibaba's PAI, 2020.
    Pai,
    /// SenseTime's Helios clusters, 2020.
    Helios,
}

/// What becomes of a log in which some jobs are not understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotUnderstood {
    /// It is refused.
    #[default]
    Refuse,
    /// Those jobs are left out, and counted.
    LeaveOut,
}

/// A log as a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Its jobs, in order of submission.
    pub trace: Trace,
    /// Jobs left out: no accelerators, or no times.
    pub n_left_out: usize,
    /// Jobs left out because something of them is not understood, or an earlier job has their name.
    pub n_not_understood: usize,
    /// What was not understood, of the first of them.
    pub complaints: Vec<SpecError>,
    /// Jobs with more accelerators than the matrix's largest scale factor, which they were given.
    pub n_cut: usize,
}

/// Reads a log and takes jobs of the matrix for its own.
///
/// # Errors
/// If it is not in its form, or a value in it is not understood, with the place; or if nothing of the matrix runs on its
/// first worker type.
pub fn import_log(
    source: &Source,
    origin: LogOrigin,
    throughputs: &Throughputs,
    (seed, policy): (u64, NotUnderstood),
) -> Result<Imported, SpecError> {
    let mut log = Log::default();
    match origin {
        LogOrigin::Philly => logs::philly(source, &mut log)?,
        LogOrigin::Pai => logs::pai(source, &mut log)?,
        LogOrigin::Helios => logs::helios(source, &mut log)?,
    }
    log.jobs.sort_by(|one, other| one.submitted.total_cmp(&other.submitted));
    let mut kinds: BTreeMap<u32, Vec<(&str, f64)>> = BTreeMap::new();
    for (index, row) in throughputs.rows().iter().enumerate() {
        if let Some(speed) = speed(throughputs, crate::index::RowId::from_index(index)) {
            kinds.entry(row.scale_factor).or_default().push((&row.job_type, speed.get()));
        }
    }
    let Some(largest) = kinds.keys().next_back().copied() else {
        let message = format!("no job type of `{}` runs on its first worker type", throughputs.name());
        return Err(SpecError::about(source.name.clone(), message, None));
    };
    let mut draws = SeedStreams::new(seed).stream("imported_job_types");
    let first = log.jobs.first().map_or(0.0, |job| job.submitted);
    let mut n_cut = 0;
    let mut jobs = Vec::with_capacity(log.jobs.len());
    for logs::Logged { id, submitted, duration, n_workers, entity, place } in std::mem::take(&mut log.jobs) {
        let fitting = u32::try_from(n_workers).ok().and_then(|n| kinds.range(n..).next());
        n_cut += usize::from(fitting.is_none());
        let (scale_factor, types) =
            fitting.map_or((largest, &kinds[&largest]), |(size, types)| (*size, types));
        let (job_type, speed) = *draws.choice(types);
        let steps = duration * speed;
        if !(Range::Positive.contains(steps) && Range::NotNegative.contains(submitted - first)) {
            let message = format!(
                "job `{id}` ran for {duration:e} s, or was submitted {:e} s after the first",
                submitted - first
            );
            log.complain(place, format!("{message}, which no trace holds"));
            continue;
        }
        let mut job = Job::new(job_type)
            .scale_factor(scale_factor)
            .total_steps(Steps::new(steps))
            .arrival(Seconds::new(submitted - first));
        job.duration = Some(Seconds::new(duration));
        job.entity = entity;
        jobs.push(TracedJob { job, id, command: None });
    }
    let Log { n_left_out, n_not_understood, said, .. } = log;
    let complaints = placed(source, said);
    if n_not_understood > 0 && policy == NotUnderstood::Refuse {
        let message =
            format!("{n_not_understood} jobs of the log are not understood, the first of them here:");
        let help = "`--skip-unreadable` leaves them out".to_owned();
        let whole = SpecError::about(source.name.clone(), message, Some(help));
        SpecError::join(std::iter::once(whole).chain(complaints.clone()))?;
    }
    let trace = Trace { form: TraceForm::Native, jobs };
    Ok(Imported { trace, n_left_out, n_not_understood, complaints, n_cut })
}

/// What was not understood, with its places in the text.
fn placed(source: &Source, said: Vec<Said>) -> Vec<SpecError> {
    let mut unplaced = Vec::new();
    let mut complaints = Vec::new();
    for Said { place, message } in said {
        match place {
            Place::Cell(place) => complaints.push(source.at_place(Some(place), message, None)),
            Place::Path(path) => unplaced.push(Unplaced::at(&path, message)),
        }
    }
    if let Err(SpecError { diagnostics }) = source.all_at(unplaced) {
        complaints
            .extend(diagnostics.into_iter().map(|diagnostic| SpecError { diagnostics: vec![diagnostic] }));
    }
    complaints
}

#[cfg(test)]
mod tests;
