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
//! Jobs without accelerators, and those whose times are not there, are left out and counted.
//!
//! Sources of the forms: the README files of msr-fiddle/philly-traces (29a1b87), alibaba/clusterdata
//! (cluster-trace-gpu-v2020, 02a1be1) and S-Lab-System-Group/HeliosData (106713b).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Trace, TraceForm, TracedJob, speed};
use crate::index::Id;
use crate::spec::{Source, SpecError};
use crate::throughput::Throughputs;
use crate::units::Seconds;
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

/// A log as a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Its jobs, in order of submission.
    pub trace: Trace,
    /// Jobs left out: no accelerators, or no times.
    pub n_left_out: usize,
    /// Jobs with more accelerators than the matrix's largest scale factor, which they were given.
    pub n_cut: usize,
}

/// What a log says of a job.
#[derive(Clone, Debug, PartialEq)]
struct Logged {
    id: String,
    submitted: f64,
    duration: f64,
    n_workers: u64,
    entity: Option<String>,
}

/// Reads a log and takes jobs of the matrix for its own.
///
/// # Errors
/// If it is not in its form, with the place; or if nothing of the matrix runs on its first worker type.
pub fn import_log(
    source: &Source,
    origin: LogOrigin,
    throughputs: &Throughputs,
    seed: u64,
) -> Result<Imported, SpecError> {
    let (mut logged, n_left_out) = match origin {
        LogOrigin::Philly => philly(source)?,
        LogOrigin::Pai => pai(source)?,
        LogOrigin::Helios => helios(source)?,
    };
    logged.sort_by(|one, other| one.submitted.total_cmp(&other.submitted));
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
    let first = logged.first().map_or(0.0, |job| job.submitted);
    let mut n_cut = 0;
    let mut jobs = Vec::with_capacity(logged.len());
    for Logged { id, submitted, duration, n_workers, entity } in logged {
        let fitting = u32::try_from(n_workers).ok().and_then(|n| kinds.range(n..).next());
        n_cut += usize::from(fitting.is_none());
        let (scale_factor, types) =
            fitting.map_or((largest, &kinds[&largest]), |(size, types)| (*size, types));
        let (job_type, speed) = *draws.choice(types);
        let mut job = Job::new(job_type)
            .scale_factor(scale_factor)
            .total_steps(crate::units::Steps::new(duration * speed))
            .arrival(Seconds::new(submitted - first));
        job.duration = Some(Seconds::new(duration));
        job.entity = entity;
        jobs.push(TracedJob { job, id, command: None });
    }
    Ok(Imported { trace: Trace { form: TraceForm::Native, jobs }, n_left_out, n_cut })
}

#[derive(Deserialize)]
struct PhillyJob {
    jobid: String,
    vc: Option<String>,
    submitted_time: Option<String>,
    attempts: Vec<PhillyAttempt>,
}

#[derive(Deserialize)]
struct PhillyAttempt {
    start_time: Option<String>,
    end_time: Option<String>,
    #[serde(default)]
    detail: Vec<PhillyServer>,
}

#[derive(Deserialize)]
struct PhillyServer {
    gpus: Vec<String>,
}

fn philly(source: &Source) -> Result<(Vec<Logged>, usize), SpecError> {
    let jobs: Vec<PhillyJob> = serde_json::from_str(&source.text).map_err(|error| {
        let help =
            "expected a JSON list of {jobid, vc, submitted_time, attempts: [{start_time, end_time, detail}]}";
        source.at(error.line(), error.column(), error.to_string(), Some(help.to_owned()))
    })?;
    let n_jobs = jobs.len();
    let seconds = |time: &Option<String>| time.as_deref().and_then(date_seconds);
    let logged: Vec<Logged> = jobs
        .iter()
        .filter_map(|job| {
            let n_workers_of =
                |attempt: &PhillyAttempt| attempt.detail.iter().map(|server| server.gpus.len() as u64).sum();
            let n_workers =
                job.attempts.iter().rev().map(n_workers_of).find(|n_workers: &u64| *n_workers > 0)?;
            // Without an end the job was running when the log was taken.
            seconds(&job.attempts.last()?.end_time)?;
            let spans = job
                .attempts
                .iter()
                .filter_map(|attempt| Some(seconds(&attempt.end_time)? - seconds(&attempt.start_time)?));
            let duration: f64 = spans.filter(|span| *span > 0.0).sum();
            let submitted = seconds(&job.submitted_time)?;
            let (id, entity) = (job.jobid.clone(), job.vc.clone());
            (duration > 0.0).then_some(Logged { id, submitted, duration, n_workers, entity })
        })
        .collect();
    let n_left_out = n_jobs - logged.len();
    Ok((logged, n_left_out))
}

/// The columns of PAI's table of tasks, which has no header.
const PAI_COLUMNS: [&str; 10] = [
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
];

fn pai(source: &Source) -> Result<(Vec<Logged>, usize), SpecError> {
    let mut jobs: BTreeMap<String, Option<(f64, f64, f64)>> = BTreeMap::new();
    for_each_record(
        source,
        Some(&PAI_COLUMNS),
        &["job_name", "inst_num", "start_time", "end_time", "plan_gpu"],
        |cells| {
            let [name, instances, start, end, percent] = cells else { return };
            let number =
                |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
            let job = jobs.entry((*name).to_owned()).or_default();
            let read =
                (|| Some((number(start)?, number(end)?, number(instances)? * number(percent)? / 100.0)))();
            if let Some((start, end, n_workers)) = read {
                let (first, last, sum) = job.unwrap_or((start, end, 0.0));
                *job = Some((first.min(start), last.max(end), sum + n_workers));
            }
        },
    )?;
    let n_jobs = jobs.len();
    let logged: Vec<Logged> = jobs
        .into_iter()
        .filter_map(|(id, job)| {
            let (submitted, end, n_workers) = job?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a finite count above 0"
            )]
            let n_workers = n_workers.ceil() as u64;
            let duration = end - submitted;
            (duration > 0.0).then_some(Logged { id, submitted, duration, n_workers, entity: None })
        })
        .collect();
    let n_left_out = n_jobs - logged.len();
    Ok((logged, n_left_out))
}

fn helios(source: &Source) -> Result<(Vec<Logged>, usize), SpecError> {
    let (mut logged, mut n_left_out) = (Vec::new(), 0);
    for_each_record(source, None, &["job_id", "vc", "gpu_num", "submit_time", "duration"], |cells| {
        let [id, vc, n_workers, submitted, duration] = cells else { return };
        let read = (|| {
            let n_workers = n_workers.parse().ok().filter(|n_workers: &u64| *n_workers > 0)?;
            let duration =
                duration.parse().ok().filter(|duration: &f64| duration.is_finite() && *duration > 0.0)?;
            let (id, entity) = ((*id).to_owned(), Some((*vc).to_owned()));
            Some(Logged { id, submitted: date_seconds(submitted)?, duration, n_workers, entity })
        })();
        n_left_out += usize::from(read.is_none());
        logged.extend(read);
    })?;
    Ok((logged, n_left_out))
}

/// Gives the wanted cells of each line of a CSV, whose columns are those of its first line, or `columns` where that is
/// no header.
fn for_each_record(
    source: &Source,
    columns: Option<&[&str]>,
    wanted: &[&str],
    mut take: impl FnMut(&[&str]),
) -> Result<(), SpecError> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(source.text.as_bytes());
    let mut places: Option<Vec<usize>> = None;
    for (index, record) in reader.records().enumerate() {
        let line = |record: &csv::StringRecord| {
            record.position().and_then(|place| usize::try_from(place.line()).ok()).unwrap_or(index + 1)
        };
        let record = record.map_err(|error| source.at(index + 1, 1, error.to_string(), None))?;
        let cells: Vec<&str> = record.iter().map(str::trim).collect();
        let Some(places) = &places else {
            let is_header = cells.contains(&wanted[0]);
            let names = if is_header { &cells[..] } else { columns.unwrap_or(&cells) };
            let find = |name: &&str| {
                names.iter().position(|other| other == name).ok_or_else(|| {
                    source.at(
                        line(&record),
                        1,
                        format!("no column `{name}`"),
                        Some(format!("expected {}", wanted.join(", "))),
                    )
                })
            };
            let found = wanted.iter().map(find).collect::<Result<Vec<_>, _>>()?;
            if !is_header {
                take_cells(source, line(&record), &cells, &found, &mut take)?;
            }
            places = Some(found);
            continue;
        };
        take_cells(source, line(&record), &cells, places, &mut take)?;
    }
    Ok(())
}

fn take_cells(
    source: &Source,
    line: usize,
    cells: &[&str],
    places: &[usize],
    take: &mut impl FnMut(&[&str]),
) -> Result<(), SpecError> {
    let n_columns = places.iter().max().map_or(0, |last| last + 1);
    let picked: Option<Vec<&str>> = places.iter().map(|place| cells.get(*place).copied()).collect();
    let Some(picked) = picked else {
        let message = format!("{} columns, expected at least {n_columns}", cells.len());
        return Err(source.at(line, 1, message, None));
    };
    take(&picked);
    Ok(())
}

/// Seconds from 1970-01-01 of `2017-10-07 01:12:09`, as if all days had 24 hours; none if it is no such text.
fn date_seconds(text: &str) -> Option<f64> {
    let (date, time) = text.trim().split_once(' ')?;
    let numbers = |text: &str, by: char| -> Option<[u32; 3]> {
        let parts: Vec<u32> = text.split(by).map(str::parse).collect::<Result<_, _>>().ok()?;
        parts.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(time, ':')?);
    let is_sound = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    // Days before a year that begins in March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = f64::from(days) - 719_468.0;
    is_sound.then(|| days * 86_400.0 + f64::from(3600 * hour + 60 * minute + second))
}

#[cfg(test)]
mod tests;
