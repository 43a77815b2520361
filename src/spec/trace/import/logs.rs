//! What the logs of three clusters say of their jobs.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::date;
use crate::spec::places::Place as TextPlace;
use crate::spec::trace::field::{Field, Range, split_commas};
use crate::spec::{Source, SpecError};

/// Complaints that are kept; a log of another kind would have one a line.
const COMPLAINTS_MAX: usize = 20;

/// What a log writes where there is nothing.
const NOTHING: [&str; 8] = ["None", "none", "null", "NULL", "NaN", "nan", "N/A", "-"];

/// Where a log says something.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// A cell of a table.
    Cell(TextPlace),
    /// A path in a JSON document.
    Path(String),
}

/// A complaint.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) place: Place,
    pub(super) message: String,
}

/// What a log says of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Logged {
    pub(super) id: String,
    pub(super) submitted: f64,
    pub(super) duration: f64,
    pub(super) n_workers: u64,
    pub(super) entity: Option<String>,
    pub(super) place: Place,
}

/// A log as far as it is read.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) jobs: Vec<Logged>,
    /// Jobs without accelerators or times.
    pub(super) n_left_out: usize,
    pub(super) n_not_understood: usize,
    /// The first complaints.
    pub(super) said: Vec<Said>,
    /// Names had so far, with the number of the line or job.
    names: BTreeMap<String, usize>,
}

/// A value of a log: there, not there, or not understood.
type Value<T> = Result<Option<T>, Said>;

impl Log {
    /// A job is not understood.
    pub(super) fn complain(&mut self, place: Place, message: String) {
        self.n_not_understood += 1;
        if self.said.len() < COMPLAINTS_MAX {
            self.said.push(Said { place, message });
        }
    }

    /// Takes in a job; none is one without accelerators or times.
    fn take(&mut self, number: usize, job: Value<Logged>) {
        match job {
            Err(said) => self.complain(said.place, said.message),
            Ok(None) => self.n_left_out += 1,
            Ok(Some(job)) => match self.names.insert(job.id.clone(), number) {
                None => self.jobs.push(job),
                Some(first) => {
                    self.names.insert(job.id.clone(), first);
                    let what = if matches!(job.place, Place::Cell(_)) { "line" } else { "entry" };
                    self.complain(job.place, format!("job `{}` is that of {what} {first} already", job.id));
                }
            },
        }
    }
}

/// What a text stands for, unless it stands for nothing.
fn value<T>(
    text: &str,
    (name, expected): (&str, &str),
    place: impl FnOnce() -> Place,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Value<T> {
    let text = text.trim();
    // A name may be any text.
    if text.is_empty() || (expected != NAME && NOTHING.contains(&text)) {
        return Ok(None);
    }
    parse(text).map(Some).ok_or_else(|| {
        let shown = Field::shortened(text);
        Said { place: place(), message: format!("{name} is `{shown}`, expected {expected}") }
    })
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number| Range::NotNegative.contains(*number)).map(|number: f64| number + 0.0)
}

/// A name that our traces hold.
fn name(text: &str) -> Option<String> {
    (!text.chars().any(char::is_control)).then(|| text.to_owned())
}

const NUMBER: &str = "a number from 0 to 1e15";
const NAME: &str = "a name without control characters";

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

impl PhillyJob {
    fn read(&self, index: usize) -> Value<Logged> {
        let at = |field: &str| Place::Path(format!("[{index}].{field}"));
        let time = |text: &Option<String>, path: &str| {
            let name = path.rsplit('.').next().unwrap_or_default();
            let text = text.as_deref().unwrap_or_default();
            value(text, (name, date::EXPECTED), || at(path), date::seconds)
        };
        let id = value(&self.jobid, ("jobid", NAME), || at("jobid"), name)?;
        let id = id.ok_or_else(|| Said { place: at("jobid"), message: "a job without a name".to_owned() })?;
        let entity = value(self.vc.as_deref().unwrap_or_default(), ("vc", NAME), || at("vc"), name)?;
        let submitted = time(&self.submitted_time, "submitted_time")?;
        let (mut duration, mut last_end) = (0.0, None);
        for (number, attempt) in self.attempts.iter().enumerate() {
            let start = time(&attempt.start_time, &format!("attempts[{number}].start_time"))?;
            let end = time(&attempt.end_time, &format!("attempts[{number}].end_time"))?;
            if let (Some(start), Some(end)) = (start, end) {
                duration += f64::max(end - start, 0.0);
            }
            last_end = end;
        }
        let n_workers_of =
            |attempt: &PhillyAttempt| attempt.detail.iter().map(|server| server.gpus.len() as u64).sum();
        let n_workers = self.attempts.iter().rev().map(n_workers_of).find(|n_workers: &u64| *n_workers > 0);
        // Without an end the job was running when the log was taken.
        let (Some(submitted), Some(n_workers), Some(_)) = (submitted, n_workers, last_end) else {
            return Ok(None);
        };
        let place = at("jobid");
        Ok((duration > 0.0).then_some(Logged { id, submitted, duration, n_workers, entity, place }))
    }
}

pub(super) fn philly(source: &Source, log: &mut Log) -> Result<(), SpecError> {
    let jobs: Vec<PhillyJob> = serde_json::from_str(&source.text).map_err(|error| {
        let help =
            "expected a JSON list of {jobid, vc, submitted_time, attempts: [{start_time, end_time, detail}]}";
        source.at(error.line().max(1), error.column().max(1), error.to_string(), Some(help.to_owned()))
    })?;
    for (index, job) in jobs.iter().enumerate() {
        log.take(index + 1, job.read(index));
    }
    Ok(())
}

/// The columns of PAI's table of tasks, which has no header.
pub(super) const PAI_COLUMNS: [&str; 10] = [
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

/// A job of PAI's as far as its tasks are read.
struct PaiJob {
    line: usize,
    place: TextPlace,
    /// First start, last end and accelerators of the tasks that have any.
    tasks: Result<Option<(f64, f64, f64)>, Said>,
}

pub(super) fn pai(source: &Source, log: &mut Log) -> Result<(), SpecError> {
    let mut jobs: BTreeMap<String, PaiJob> = BTreeMap::new();
    let wanted = ["job_name", "inst_num", "start_time", "end_time", "plan_gpu"];
    for_each_record(source, Some(&PAI_COLUMNS), &wanted, |line, cells| {
        let [id, instances, start, end, percent] = cells else { return };
        let name = match cell(id, ("job_name", NAME), name) {
            Ok(Some(name)) => name,
            Ok(None) => return log.complain(Place::Cell(id.place), "a task without a job".to_owned()),
            Err(said) => return log.complain(said.place, said.message),
        };
        let job = jobs.entry(name).or_insert_with(|| PaiJob { line, place: id.place, tasks: Ok(None) });
        let read = || -> Value<(f64, f64, f64)> {
            let start = cell(start, ("start_time", NUMBER), number)?;
            let end = cell(end, ("end_time", NUMBER), number)?;
            let instances = cell(instances, ("inst_num", NUMBER), number)?;
            let percent = cell(percent, ("plan_gpu", NUMBER), number)?;
            let n_workers = instances.zip(percent).map(|(n, percent)| n * percent / 100.0);
            let n_workers = n_workers.filter(|n_workers| *n_workers > 0.0);
            Ok(start.zip(end).zip(n_workers).map(|((start, end), n_workers)| (start, end, n_workers)))
        };
        match (read(), &mut job.tasks) {
            (Err(said), tasks @ Ok(_)) => *tasks = Err(said),
            (Ok(Some((start, end, n_workers))), Ok(tasks)) => {
                let (first, last, sum) = tasks.unwrap_or((start, end, 0.0));
                *tasks = Some((first.min(start), last.max(end), sum + n_workers));
            }
            _ => {}
        }
    })?;
    for (id, PaiJob { line, place, tasks }) in jobs {
        let job = tasks.map(|tasks| {
            let (submitted, end, n_workers) = tasks?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a finite count above 0"
            )]
            let n_workers = n_workers.ceil() as u64;
            let (duration, entity, place) = (end - submitted, None, Place::Cell(place));
            (duration > 0.0).then_some(Logged { id, submitted, duration, n_workers, entity, place })
        });
        log.take(line, job);
    }
    Ok(())
}

pub(super) fn helios(source: &Source, log: &mut Log) -> Result<(), SpecError> {
    let wanted = ["job_id", "vc", "gpu_num", "submit_time", "duration"];
    for_each_record(source, None, &wanted, |line, cells| {
        let [id, vc, n_workers, submitted, duration] = cells else { return };
        let read = || -> Value<Logged> {
            let place = Place::Cell(id.place);
            let entity = cell(vc, ("vc", NAME), name)?;
            let n_workers = cell(n_workers, ("gpu_num", "a whole number"), whole)?;
            let duration = cell(duration, ("duration", NUMBER), number)?;
            let submitted = cell(submitted, ("submit_time", date::EXPECTED), date::seconds)?;
            let Some(id) = cell(id, ("job_id", NAME), name)? else {
                return Err(Said { place, message: "a job without a name".to_owned() });
            };
            let (Some(n_workers @ 1..), Some(duration), Some(submitted)) = (n_workers, duration, submitted)
            else {
                return Ok(None);
            };
            Ok((duration > 0.0).then_some(Logged { id, submitted, duration, n_workers, entity, place }))
        };
        log.take(line, read());
    })
}

/// A whole number, possibly with a fraction of zeros.
fn whole(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    whole.parse().ok().filter(|_| fraction.bytes().all(|byte| byte == b'0'))
}

fn cell<T>(
    field: &Field<'_>,
    (name, expected): (&str, &str),
    parse: impl FnOnce(&str) -> Option<T>,
) -> Value<T> {
    value(&field.text, (name, expected), || Place::Cell(field.place), parse)
}

/// Gives the wanted cells of each line of a CSV, with its number; its columns are those of its first line, or `columns`
/// where that is no header.
fn for_each_record(
    source: &Source,
    columns: Option<&[&str]>,
    wanted: &[&str],
    mut take: impl FnMut(usize, &[Field<'_>]),
) -> Result<(), SpecError> {
    let mut places: Option<Vec<usize>> = None;
    for (index, text) in source.text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let line = index + 1;
        let cells = split_commas(text, line)
            .map_err(|(place, message)| source.at_place(Some(place), message.to_owned(), None))?;
        let places = if let Some(places) = &places {
            places
        } else {
            let names: Vec<&str> = cells.iter().map(|cell| cell.text.trim()).collect();
            let is_header = names.contains(&wanted[0]);
            let names = if is_header { &names[..] } else { columns.unwrap_or(&names) };
            let find = |name: &&str| {
                names.iter().position(|other| other == name).ok_or_else(|| {
                    let help = format!("expected {}", wanted.join(", "));
                    source.at(line, 1, format!("no column `{name}`"), Some(help))
                })
            };
            let found = wanted.iter().map(find).collect::<Result<Vec<_>, _>>()?;
            let places = &*places.insert(found);
            if is_header {
                continue;
            }
            places
        };
        let picked: Option<Vec<Field<'_>>> = places.iter().map(|place| cells.get(*place).cloned()).collect();
        let Some(picked) = picked else {
            let n_columns = places.iter().max().map_or(0, |last| last + 1);
            let message = format!("{} columns, expected at least {n_columns}", cells.len());
            return Err(source.at(line, 1, message, None));
        };
        take(line, &picked);
    }
    Ok(())
}
