//! `apportion serve --shadow slurm`: a policy decides beside a running Slurm, and orders nothing; and `apportion shadow`, which
//! shows the consequences.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::answers::Shadowed;
use super::log::Log;
use super::serve::Plan;
use super::slurm::Partition;
use crate::Session;
use crate::exit::Failure;
use crate::file::check_folder;
use crate::output::{Cell, OutputFormat, Table};
use apportion::scheduler::Scheduler;
use apportion::throughput::Throughputs;
use apportion_live::clock::wall_s;
use apportion_live::shadow::{Averages, JobKey, Record, RecordError, Report, Row, Seen, Shadow, Times};
use apportion_live::slurm::{SlurmJob, all_jobs};

/// The name of the record in the state folder.
const RECORD: &str = "shadow.json";

/// The bounds of the interval at which Slurm is asked for its jobs, in s.
const LOOK_S: (f64, f64) = (1.0, 10.0);

/// The interval at which Slurm is asked for its nodes, in s.
const NODES_S: f64 = 30.0;

/// The interval at which the record is written, in s.
const WRITTEN_S: f64 = 5.0;

/// The interval at which the command looks whether to end.
const PAUSE: Duration = Duration::from_millis(100);

/// The number of newest jobs that the table shows.
const SHOWN: usize = 30;

/// Arguments of `shadow`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  apportion serve --shadow slurm --partition gpu --policy max_min_fairness_perf --state state
  apportion shadow --state state
  apportion shadow --state state --format csv >jobs.csv")]
pub struct ShadowArguments {
    /// The folder that `serve --shadow` was given
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
}

fn unreadable(error: &RecordError) -> Failure {
    let help =
        "`--state` names the folder of `apportion serve --shadow`; a record of another form can be put aside";
    Failure::usage(error.to_string(), Some(help.to_owned()))
}

/// Shows the findings of a shadow.
///
/// # Errors
/// If there is no record that can be read.
pub(super) fn show(arguments: &ShadowArguments, session: &Session) -> Result<(), Failure> {
    let path = arguments.state.join(RECORD);
    let record = Record::read(&path).map_err(|error| unreadable(&error))?;
    let Some(record) = record else {
        let help = "`apportion serve --shadow slurm --policy NAME --state DIR` makes one".to_owned();
        return Err(Failure::usage(
            format!("{}: there is no record of a shadow", path.display()),
            Some(help),
        ));
    };
    let report = Report::of(&record);
    match session.output.format() {
        OutputFormat::Json => session.output.answer(&Shadowed { report: &report }),
        OutputFormat::Csv => session.output.table(&table(&report.jobs)),
        OutputFormat::Table => {
            session.output.words(&summary(&report))?;
            let first = report.jobs.len().saturating_sub(SHOWN);
            session.output.table(&table(&report.jobs[first..]))
        }
    }
}

fn summary(report: &Report) -> String {
    let Averages { n_jobs, n_waiting_there, n_waiting_here, n_ended, .. } = report.averages;
    let averages = &report.averages;
    let hours = (report.looked_s - report.since_s) / 3600.0;
    let mut lines =
        vec![format!("{}, beside Slurm for {hours:.1} h, {} rounds.", report.policy, report.n_rounds)];
    if let (Some(there), Some(here)) = (averages.mean_wait_there_s, averages.mean_wait_here_s) {
        let at_least = |n_waiting: usize| if n_waiting > 0 { "at least " } else { "" };
        lines.push(format!(
            "Mean wait of {n_jobs} jobs: {}{there:.0} s under Slurm ({n_waiting_there} wait still), {}{here:.0} s in the \
             shadow ({n_waiting_here} wait still).",
            at_least(n_waiting_there),
            at_least(n_waiting_here),
        ));
    } else {
        lines.push("No job has been submitted since it began.".to_owned());
    }
    if let (Some(there), Some(here)) = (averages.mean_completion_there_s, averages.mean_completion_here_s) {
        lines.push(format!(
            "Mean job completion time of the {n_ended} of {n_jobs} that ended in both: {there:.0} s under Slurm, {here:.0} s \
             in the shadow."
        ));
    }
    lines.join("\n")
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        "job",
        "name",
        "user",
        "workers",
        "wait_slurm_s",
        "wait_shadow_s",
        "waits_still",
        "completion_slurm_s",
        "completion_shadow_s",
        "not_counted",
    ];
    let mut table = Table::new(columns);
    for row in rows {
        let time = |time: Option<f64>| time.map_or(Cell::Empty, |time| Cell::Number(time, 0));
        let waits = match (row.waits_there, row.waits_here) {
            (true, true) => "in both",
            (true, false) => "under Slurm",
            (false, true) => "in the shadow",
            (false, false) => "-",
        };
        table.push(vec![
            Cell::Text(row.task.map_or_else(|| row.job.to_string(), |task| format!("{}_{task}", row.job))),
            Cell::Text(row.name.clone()),
            Cell::Text(row.user.clone()),
            Cell::Count(row.n_workers.into()),
            time(Some(row.wait_there_s)),
            time(Some(row.wait_here_s)),
            Cell::Text(waits.to_owned()),
            time(row.completion_there_s),
            time(row.completion_here_s),
            row.not_counted.clone().map_or(Cell::Empty, Cell::Text),
        ]);
    }
    table
}

/// Decides beside Slurm until it is asked to end.
///
/// # Errors
/// If the record cannot be read, or another shadow has the folder.
pub(super) fn run(
    plan: &Plan,
    scheduler: Scheduler,
    job_types: &[(String, String)],
    log: Log<'_>,
) -> Result<(), Failure> {
    let Some(partition) = &plan.partition else {
        return Err(Failure::Bug { message: "a shadow without a partition".to_owned() });
    };
    let folder = &plan.state;
    check_folder("--state", Some(folder))?;
    fs::create_dir_all(folder).map_err(|error| {
        Failure::usage(format!("--state: cannot make {}: {error}", folder.display()), None)
    })?;
    let _lock = lock(folder)?;
    let path = folder.join(RECORD);
    let length_s = plan.round_length.get();
    let record = Record::read(&path).map_err(|error| unreadable(&error))?;
    let record = match record {
        Some(record) if record.policy != plan.policy => {
            let message = format!("{} is the record of `{}`", path.display(), record.policy);
            let help = "each policy needs a folder of its own: another `--state`".to_owned();
            return Err(Failure::usage(message, Some(help)));
        }
        Some(record) => record,
        None => Record::begin(&plan.policy, length_s, wall_s()),
    };
    let limit = plan.settings.decision_limit.unwrap_or(Duration::MAX);
    let mut shadow = Shadow::new(scheduler, record, limit, wall_s());
    log.say(
        &format!(
            "beside Slurm's partition {}: it orders nothing; `apportion shadow --state {}` shows what it would have done",
            partition.name(),
            folder.display()
        ),
        &json!({"partition": partition.name()}),
    );
    let look_s = (length_s / 20.0).clamp(LOOK_S.0, LOOK_S.1);
    let eye = Eye { partition, throughputs: &plan.throughputs, job_types };
    let mut beside = Beside { eye, log, path: &path, look_s, due: Due::default(), is_silent: false };
    while !log.session.interrupt.flag().load(Ordering::Relaxed) {
        beside.look(&mut shadow);
        thread::sleep(PAUSE);
    }
    shadow.record().write(&path).map_err(|error| unreadable(&error))?;
    log.say("ended; Slurm was not touched", &json!({}));
    Ok(())
}

/// The instants of the next actions, in s since 1970.
#[derive(Debug, Default)]
struct Due {
    look: f64,
    nodes: f64,
    write: f64,
}

/// A shadow beside Slurm: it is shown Slurm's jobs, and its record is written to a file.
#[derive(Debug)]
struct Beside<'a> {
    eye: Eye<'a>,
    log: Log<'a>,
    path: &'a Path,
    /// The interval at which Slurm is asked for its jobs, in s.
    look_s: f64,
    due: Due,
    /// Whether Slurm has not answered.
    is_silent: bool,
}

impl Beside<'_> {
    fn look(&mut self, shadow: &mut Shadow) {
        let now = wall_s();
        if now >= self.due.nodes {
            self.due.nodes = now + NODES_S;
            if let Some(n_up) = self.eye.partition.workers_up() {
                shadow.see_workers(&n_up);
            }
        }
        if now >= self.due.look {
            self.due.look = now + self.look_s;
            self.look_at_jobs(shadow);
        }
        shadow.advance(wall_s());
        for words in shadow.take_words() {
            self.log.warning(&words);
        }
        if now >= self.due.write {
            self.due.write = now + WRITTEN_S;
            if let Err(error) = shadow.record().write(self.path) {
                self.log.warning(&format!("the record cannot be written: {error}"));
            }
        }
    }

    fn look_at_jobs(&mut self, shadow: &mut Shadow) {
        match all_jobs(self.eye.partition.name()) {
            Ok(jobs) => {
                let seen =
                    jobs.iter().map(|job| (JobKey::new(job.id, job.task), self.eye.seen(job))).collect();
                shadow.see(wall_s(), &seen);
                if std::mem::take(&mut self.is_silent) {
                    self.log.say("Slurm answers again", &json!({}));
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_silent, true) {
                    self.log.warning(&format!("{error}; the shadow goes on with what it knows"));
                }
            }
        }
    }
}

fn lock(folder: &Path) -> Result<File, Failure> {
    let path = folder.join("shadow.lock");
    let file = File::options().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(Failure::io(format!("open {}", path.display())))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => {
            let message = format!("another shadow has the folder {}", folder.display());
            Err(Failure::usage(message, Some("each needs a folder of its own: another `--state`".to_owned())))
        }
        Err(fs::TryLockError::Error(error)) => Err(Failure::io(format!("lock {}", path.display()))(error)),
    }
}

/// A translation of Slurm's jobs into jobs as a policy knows them.
#[derive(Debug)]
struct Eye<'a> {
    partition: &'a Partition,
    throughputs: &'a Throughputs,
    /// Job types by the names of Slurm's jobs.
    job_types: &'a [(String, String)],
}

impl Eye<'_> {
    fn seen(&self, job: &SlurmJob) -> Seen {
        let named = self.job_types.iter().find(|(name, _)| *name == job.name).map(|(_, kind)| kind);
        let job_type = named.unwrap_or(&job.name).clone();
        let row = self.throughputs.find(&job_type, job.n_workers);
        let mut speeds = BTreeMap::new();
        for name in self.partition.types_for(job.gres_type.as_deref()) {
            // A job of unknown type is as fast on one worker type as on another.
            let speed = row.map_or(Some(1.0), |row| {
                Some(self.throughputs.alone(row, self.throughputs.find_worker_type(name)?))
            });
            if let Some(speed) = speed.filter(|speed| *speed > 0.0) {
                speeds.insert(name.to_owned(), speed);
            }
        }
        Seen {
            name: job.name.clone(),
            user: job.user.clone(),
            job_type,
            n_workers: job.n_workers,
            speeds,
            limit_s: job.limit_s,
            submitted_s: job.submitted_s,
            n_restarts: job.n_restarts,
            eligible_s: job.eligible_s,
            is_withheld: job.is_withheld,
            there: Times { started_s: job.started_s, ended_s: job.ended_s },
            ran_on: job
                .first_node
                .as_deref()
                .and_then(|node| self.partition.type_of(node))
                .map(str::to_owned),
        }
    }
}
