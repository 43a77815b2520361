//! Slurm's accounting: one line per run of a job, of a task of an array, or of a component of a heterogeneous job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apportion::spec::SpecError;
use apportion::spec::trace::field::Field;

use super::runs::{BESIDE, Run, finish};
use super::slurm_state;
use super::tres;
use crate::form::Form;
use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::row::{Row, State};
use crate::table::{Cells, Columns, Value};
use crate::tally::{Doubt, Reason};

/// Call that prints the input of [`read`], for all jobs since a date.
pub(crate) const COMMAND: &str = "SLURM_TIME_FORMAT=%s sacct -a -X -D -P --noconvert -S DATE -E now -o \
    JobID,JobIDRaw,User,Account,Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,State,NNodes,ReqTRES,AllocTRES,JobName";

const COLUMNS: Columns = Columns {
    form: Some(Form::Sacct),
    required: &["Submit", "Start", "End", "State"],
    optional: &[
        "JobID",
        "JobIDRaw",
        "JobName",
        "User",
        "Account",
        "Partition",
        "QOS",
        "Eligible",
        "ElapsedRaw",
        "Elapsed",
        "NNodes",
        "ReqTRES",
        "AllocTRES",
        "Cluster",
        "Suspended",
    ],
    ignored: &[
        "Constraints",
        "Reserved",
        "Planned",
        "Group",
        "UID",
        "Timelimit",
        "TimelimitRaw",
        "Priority",
        "NodeList",
        "NCPUS",
        "AllocCPUS",
        "AllocNodes",
        "ReqCPUS",
        "ReqNodes",
        "ReqMem",
        "CPUTime",
        "CPUTimeRAW",
        "TotalCPU",
        "ExitCode",
        "DerivedExitCode",
    ],
    without_header: &[],
    separator: '|',
    with_separator: &["JobName", "Constraints"],
    advice: "; `apportion trace sacct-command` prints the call of sacct whose output is read",
};

/// Jobs with several runs, and the clusters of a log.
#[derive(Default)]
struct Several {
    jobs: Vec<Vec<Run>>,
    known: BTreeMap<Arc<str>, usize>,
    /// Clusters that rows name; `None` among them stands for rows that name none.
    clusters: BTreeSet<Option<Arc<str>>>,
}

pub(crate) fn read(input: &mut Input, log: &mut Reading) -> Result<(), SpecError> {
    let mut several = Several::default();
    let source = input.name.clone();
    let (mut has_resources, mut has_ids) = (true, true);
    COLUMNS.read(input, log, |cells, log| {
        has_resources &= cells.has("AllocTRES") || cells.has("ReqTRES");
        has_ids &= cells.has("JobID") || cells.has("JobIDRaw");
        match run(cells, log) {
            Ok(Some(run)) => several.take(run, log),
            Ok(None) => {}
            Err(fault) => cells.complain(fault, log),
        }
    })?;
    for (has_one, columns) in
        [(has_resources, "`AllocTRES` nor `ReqTRES`"), (has_ids, "`JobID` nor `JobIDRaw`")]
    {
        if !has_one {
            let help =
                "`apportion trace sacct-command` prints the call of sacct whose output is read".to_owned();
            return Err(SpecError::about(source, format!("neither a column {columns}"), Some(help)));
        }
    }
    for runs in std::mem::take(&mut several.jobs) {
        finish(runs, log);
    }
    if let (1, Some(Some(only))) = (several.clusters.len(), several.clusters.first()) {
        log.take_off_ids(&prefix(only));
    }
    for at in 0..log.rows.len() {
        let row = log.rows.at(at);
        if row.worker_type.is_some_and(|types| types.contains(BESIDE)) {
            log.doubts.entry(Doubt::SeveralTypes).or_default().count_row(&row);
            log.rows.forget_worker_type(at);
        }
    }
    let has_workers = log.rows.iter().any(|row| row.n_workers != Some(0));
    if let (false, Some(line)) = (has_workers, log.rows.first().map(|first| first.line)) {
        (0..log.rows.len()).for_each(|_| log.doubt(Doubt::NoneListed, line, None));
    }
    Ok(())
}

/// Prefix of the ids of a cluster's jobs in a log of several clusters.
fn prefix(cluster: &str) -> String {
    format!("{cluster}:")
}

impl Several {
    /// Takes in a run. The first run of a job becomes a row at once, unless it is a component of one.
    fn take(&mut self, mut run: Run, log: &mut Reading) {
        self.put_under_cluster(&mut run, log);
        let is_first = log.row_of(&run.row.id).is_none() && !self.known.contains_key(&run.row.id);
        if is_first && run.component.is_none() {
            return log.take(run.row);
        }
        let at = *self.known.entry(Arc::clone(&run.row.id)).or_insert_with(|| {
            self.jobs.push(Vec::new());
            self.jobs.len() - 1
        });
        self.jobs[at].push(run);
    }

    /// Adds the cluster to a run's id, so that no other cluster has the same.
    fn put_under_cluster(&mut self, run: &mut Run, log: &mut Reading) {
        let is_new = !self.clusters.contains(&run.cluster);
        if let Some(cluster) = &run.cluster {
            run.row.id = (prefix(cluster) + &run.row.id).into();
        }
        if is_new && !self.clusters.is_empty() {
            log.doubt(Doubt::SeveralClusters, run.row.line, Some(&run.row.id));
        }
        if is_new {
            self.clusters.insert(run.cluster.clone());
        }
    }
}

/// The run of a line; none if it is a step.
fn run(cells: &Cells<'_>, log: &mut Reading) -> Result<Option<Run>, Fault> {
    let column = if cells.raw("JobID").is_some() { "JobID" } else { "JobIDRaw" };
    let full = cells.id(column)?;
    // `200_[1,5,9...]` is a task list that was cut, not a step.
    if full.split('[').next().is_some_and(|id| id.contains('.')) {
        log.leave_out(Reason::Step, cells.line, Some(&full));
        return Ok(None);
    }
    let (id, component) = match full.split_once('+').filter(|(job, _)| !job.is_empty()) {
        None => (Arc::clone(&full), None),
        Some((job, component)) => {
            let number = component.parse().map_err(|_| {
                let shown = Field::shortened(&full);
                cells.fault(column, format!("{column} is `{shown}`, expected such as 12, 12_3 or 12+0"))
            })?;
            (job.into(), Some(number))
        }
    };
    if is_several_tasks(&full) {
        log.doubt(Doubt::WaitingArray, cells.line, Some(&full));
    }
    if column == "JobIDRaw" {
        log.doubt(Doubt::NoJobId, cells.line, Some(&id));
    }
    let mut row = Row::new(id, cells.line);
    // A name that breaks its row, which is counted, has blanks for the ends of lines.
    row.name = match cells.raw("JobName").filter(|name| name.contains('\n')) {
        Some(broken) => Some(log.share(broken)),
        None => cells.name("JobName", log)?,
    };
    row.user = cells.name("User", log)?;
    row.group = cells.name("Account", log)?;
    row.class = match cells.name("QOS", log)? {
        Some(class) => Some(class),
        None => cells.name("Partition", log)?,
    };
    row.state = state(cells)?;
    [row.submitted_s, row.eligible_s, row.started_s, row.ended_s] =
        cells.times(["Submit", "Eligible", "Start", "End"], log)?;
    // Slurm gives a job that was held after a requeue, and cancelled, a start at its end, before it could have run.
    let never_ran = row.started_s.zip(row.ended_s).is_some_and(|(start, end)| start >= end)
        && row.eligible_s.zip(row.ended_s).is_some_and(|(eligible, end)| eligible > end);
    row.started_s = row.started_s.filter(|_| !never_ran);
    row.n_attempts = if never_ran {
        Some(0)
    } else {
        let elapsed = running_time(cells, &mut row, log)?;
        row.starts_of_one_run(elapsed.is_some_and(|elapsed| elapsed <= 0.0))
    };
    resources(cells, &mut row, log)?;
    let cluster = cells.name("Cluster", log)?;
    Ok(Some(Run { row, component, cluster, place: cells.place(column) }))
}

/// Whether an id names several tasks of an array, as `7_[1-800%50]`. Slurm has one row for those that have not started.
fn is_several_tasks(id: &str) -> bool {
    let tasks = id.split_once("_[").and_then(|(_, rest)| rest.split([']', '%']).next());
    tasks.is_some_and(|tasks| tasks.contains(['-', ',', '.']))
}

/// Takes the running time into a row: the elapsed time without suspensions. Returns the elapsed time, s.
fn running_time(cells: &Cells<'_>, row: &mut Row, log: &mut Reading) -> Value<f64> {
    let elapsed = match cells.number("ElapsedRaw")? {
        Some(elapsed) => Some(elapsed),
        None => cells.elapsed("Elapsed")?,
    };
    let span_s = row.ended_s.zip(row.started_s).map(|(end, start)| end - start);
    // The elapsed time of a job that has not ended counts up to the call.
    let is_over =
        row.ended_s.is_some() || !matches!(row.state, State::Running | State::Pending | State::Unknown);
    if is_over {
        row.ran_s = match (elapsed, span_s) {
            (None, Some(span)) if span > 0.0 => Some(span - suspended(cells, span)?),
            _ => elapsed.or(span_s),
        };
        // The elapsed time of a job without a start is 0 where it never ran.
        row.ran_s = row.ran_s.filter(|ran| row.started_s.is_some() || *ran > 0.0);
        if span_s.is_none() && row.ran_s.is_some() {
            log.doubt(Doubt::DurationAlone, row.line, Some(&row.id));
        }
    }
    if elapsed.zip(span_s).is_some_and(|(elapsed, span)| elapsed > span + 1.0 && span >= 0.0) {
        log.doubt(Doubt::ElapsedTooLong, row.line, Some(&row.id));
    }
    Ok(elapsed)
}

/// Time for which the job was suspended between its start and its end, s.
fn suspended(cells: &Cells<'_>, span: f64) -> Result<f64, Fault> {
    let suspended = cells.elapsed("Suspended")?.unwrap_or(0.0);
    if suspended <= span {
        return Ok(suspended);
    }
    let shown = Field::shortened(cells.raw("Suspended").unwrap_or_default());
    Err(cells.fault("Suspended", format!("Suspended is `{shown}`, longer than from Start to End")))
}

fn state(cells: &Cells<'_>) -> Result<State, Fault> {
    let Some(text) = cells.raw("State") else { return Ok(State::Unknown) };
    slurm_state::of(text).ok_or_else(|| {
        let shown = Field::shortened(text);
        cells.fault("State", format!("State is `{shown}`, expected {}", slurm_state::EXPECTED))
    })
}

/// Takes workers, their type and nodes into a row: the allocated ones, or those that the job asked for.
fn resources(cells: &Cells<'_>, row: &mut Row, log: &mut Reading) -> Result<(), Fault> {
    let list = |column: &str| {
        tres::accelerators(cells.raw(column).unwrap_or_default())
            .map_err(|what| cells.fault(column, format!("{column} has {what}")))
    };
    let (given, asked) = (list("AllocTRES")?, list("ReqTRES")?);
    let is_given = cells.raw("AllocTRES").is_some();
    // Where accelerators are not consumed, a job is allocated 0 of those that it asked for.
    let is_only_asked = is_given && given.n == 0 && asked.n > 0;
    if is_only_asked {
        log.doubt(Doubt::OnlyAsked, row.line, Some(&row.id));
    }
    let found = if is_given && !is_only_asked { given } else { asked };
    if is_given || cells.raw("ReqTRES").is_some() {
        row.n_workers = Some(found.n);
    }
    let stated = cells.count("NNodes")?.filter(|n| *n > 0);
    row.n_nodes = found.n_nodes.or(stated);
    let types: Vec<&str> = found.types.iter().map(|(name, _)| name.as_str()).collect();
    row.worker_type = match types[..] {
        [] => None,
        [only] => Some(log.share(only)),
        _ => Some(types.join(BESIDE).into()),
    };
    Ok(())
}
