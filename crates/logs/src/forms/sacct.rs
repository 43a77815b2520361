//! Slurm's accounting: a line a run of a job, of a task of an array, or of a component of a heterogeneous job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apportion::spec::trace::field::Field;
use apportion::spec::{Place, SpecError};

use super::slurm_state;
use super::tres;
use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::row::{Row, State};
use crate::table::{Cells, Columns, NUMBER_MAX};
use crate::tally::{Doubt, Reason};

/// The call that prints what [`read`] reads, for all jobs since a date.
pub(crate) const COMMAND: &str = "SLURM_TIME_FORMAT=%s sacct -a -X -D -P --noconvert -S DATE -E now -o \
    JobID,JobIDRaw,User,Account,Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,State,NNodes,ReqTRES,AllocTRES,JobName";

const COLUMNS: Columns = Columns {
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
    ],
    ignored: &[
        "Constraints",
        "Reserved",
        "Planned",
        "Cluster",
        "Group",
        "UID",
        "Timelimit",
        "TimelimitRaw",
        "Priority",
        "NodeList",
        "Suspended",
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

/// One line: a run of a job, or of a component of one.
struct Run {
    row: Row,
    /// The component of a heterogeneous job.
    component: Option<u32>,
    place: Place,
}

/// Runs that are not the only ones of their job, by job.
#[derive(Default)]
struct Several {
    jobs: Vec<Vec<Run>>,
    known: BTreeMap<Arc<str>, usize>,
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
            Err(fault) => log.complain(fault, cells.text),
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
    for runs in several.jobs {
        finish(runs, log);
    }
    for at in 0..log.rows.len() {
        if log.rows[at].worker_type.as_ref().is_some_and(|types| types.contains(BESIDE)) {
            let (line, id) = (log.rows[at].line, Arc::clone(&log.rows[at].id));
            log.doubt(Doubt::SeveralTypes, line, Some(&id));
            log.rows[at].worker_type = None;
        }
    }
    let mut with_workers = log.rows.iter().filter(|row| row.n_workers != Some(0));
    if let (None, Some(first)) = (with_workers.next(), log.rows.first()) {
        let (line, n) = (first.line, log.rows.len());
        (0..n).for_each(|_| log.doubt(Doubt::NoneListed, line, None));
    }
    Ok(())
}

impl Several {
    /// Takes in a run: the first of a job becomes a row at once, unless it is a component of one.
    fn take(&mut self, run: Run, log: &mut Reading) {
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
}

/// The run of a line; none if it is a step.
fn run(cells: &Cells<'_>, log: &mut Reading) -> Result<Option<Run>, Fault> {
    let column = if cells.raw("JobID").is_some() { "JobID" } else { "JobIDRaw" };
    let full = cells.id(column)?;
    // (`200_[1,5,9...]` is a task list that was cut, not a step)
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
    if column == "JobIDRaw" {
        log.doubt(Doubt::NoJobId, cells.line, Some(&id));
    }
    let mut row = Row::new(id, cells.line);
    row.name = cells.name("JobName", log)?;
    row.user = cells.name("User", log)?;
    row.group = cells.name("Account", log)?;
    row.class = match cells.name("QOS", log)? {
        Some(class) => Some(class),
        None => cells.name("Partition", log)?,
    };
    row.state = state(cells)?;
    [row.submitted_s, row.eligible_s, row.started_s, row.ended_s] =
        cells.times(["Submit", "Eligible", "Start", "End"], log)?;
    let elapsed = match cells.number("ElapsedRaw")? {
        Some(elapsed) => Some(elapsed),
        None => cells.elapsed("Elapsed")?,
    };
    let span_s = row.ended_s.zip(row.started_s).map(|(end, start)| end - start);
    // (of a job that has not ended, what has elapsed counts up to the call)
    let is_over =
        row.ended_s.is_some() || !matches!(row.state, State::Running | State::Pending | State::Unknown);
    if row.started_s.is_some() && is_over {
        row.ran_s = elapsed.or(span_s);
    }
    // (a job that was suspended ran for less than from its start to its end)
    if elapsed.zip(span_s).is_some_and(|(elapsed, span)| elapsed > span + 1.0 && span >= 0.0) {
        log.doubt(Doubt::ElapsedTooLong, row.line, Some(&row.id));
    }
    row.n_attempts = Some(u32::from(row.started_s.is_some()));
    resources(cells, &mut row, log)?;
    Ok(Some(Run { row, component, place: cells.place(column) }))
}

fn state(cells: &Cells<'_>) -> Result<State, Fault> {
    let Some(text) = cells.raw("State") else { return Ok(State::Unknown) };
    slurm_state::of(text).ok_or_else(|| {
        let shown = Field::shortened(text);
        cells.fault("State", format!("State is `{shown}`, expected {}", slurm_state::EXPECTED))
    })
}

/// Workers, their type and nodes: those that the job got, or those that it asked for.
fn resources(cells: &Cells<'_>, row: &mut Row, log: &mut Reading) -> Result<(), Fault> {
    let list = |column: &str| {
        tres::accelerators(cells.raw(column).unwrap_or_default())
            .map_err(|what| cells.fault(column, format!("{column} has {what}")))
    };
    let (given, asked) = (list("AllocTRES")?, list("ReqTRES")?);
    let is_given = cells.raw("AllocTRES").is_some();
    // (where accelerators are not consumed, a job is given 0 of those that it asked for)
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

/// Makes rows of runs under one id.
fn finish(runs: Vec<Run>, log: &mut Reading) {
    let Some(first) = runs.first() else { return };
    let (place, id) = (first.place, Arc::clone(&first.row.id));
    let earlier = log.row_of(&id);
    let is_mixed = runs.iter().any(|run| run.component.is_none()) || earlier.is_some();
    if is_mixed && runs.iter().any(|run| run.component.is_some()) {
        let message = format!("job `{}` has rows with and without a component", Field::shortened(&id));
        return log.complain(Fault { place, message }, "");
    }
    let mut components: BTreeMap<Option<u32>, Vec<Row>> = BTreeMap::new();
    for run in runs {
        components.entry(run.component).or_default().push(run.row);
    }
    if let Some(at) = earlier {
        let mut rows = components.remove(&None).unwrap_or_default();
        rows.insert(0, Row { id: Arc::clone(&id), ..log.rows[at].clone() });
        let mut jobs = jobs_of(rows, log).into_iter();
        if let Some(first) = jobs.next() {
            log.rows[at] = Row { id: Arc::clone(&log.rows[at].id), ..first };
        }
        for row in jobs {
            log.take(row);
        }
        return;
    }
    // The jobs under one id, in order, each with its components.
    let mut jobs: Vec<Row> = Vec::new();
    for rows in components.into_values() {
        for (at, row) in jobs_of(rows, log).into_iter().enumerate() {
            match jobs.get_mut(at) {
                Some(job) => {
                    log.n_merged += 1;
                    *job = together(job.clone(), &row);
                }
                None => jobs.push(row),
            }
        }
    }
    for row in jobs {
        log.take(row);
    }
}

/// The jobs that runs under one id are of: most often one, which was requeued; ids come round, so sometimes several.
///
/// A run is a later attempt of a job if user, account and name agree, the job had not completed, and the run was submitted
/// after the one before it ended, as Slurm's requeues are.
fn jobs_of(mut runs: Vec<Row>, log: &mut Reading) -> Vec<Row> {
    let submitted = |row: &Row| row.submitted_s.unwrap_or(f64::INFINITY);
    runs.sort_by(|one, other| submitted(one).total_cmp(&submitted(other)).then(one.line.cmp(&other.line)));
    let mut jobs: Vec<Row> = Vec::new();
    let mut last: Option<Row> = None;
    for run in without_open_ones(runs, log) {
        let is_later = last.as_ref().is_some_and(|last| is_attempt_after(last, &run));
        match jobs.last_mut().filter(|_| is_later) {
            Some(job) => {
                log.doubt(Doubt::Requeued, run.line, Some(&run.id));
                log.n_merged += 1;
                if run.started_s.is_some() && run.n_workers != job.n_workers {
                    log.doubt(Doubt::SizeChanged, run.line, Some(&run.id));
                }
                if run.started_s.zip(job.ended_s).is_some_and(|(start, end)| start < end - 1.0) {
                    log.doubt(Doubt::Overlap, run.line, Some(&run.id));
                }
                *job = with_attempt(job, run.clone());
            }
            None => jobs.push(run.clone()),
        }
        last = Some(run);
    }
    jobs
}

/// The runs less those that had not ended in one row and have in another, as where two logs are joined.
fn without_open_ones(runs: Vec<Row>, log: &mut Reading) -> Vec<Row> {
    // (times as bits, by which runs are looked up)
    let times = |run: &Row| Some((run.submitted_s.map(f64::to_bits), run.started_s?.to_bits()));
    let ended: BTreeSet<_> = runs.iter().filter(|run| run.ended_s.is_some()).filter_map(times).collect();
    let mut said = BTreeSet::new();
    let mut kept: Vec<Row> = Vec::with_capacity(runs.len());
    for run in runs {
        let is_open = run.ended_s.is_none() && times(&run).is_some_and(|times| ended.contains(&times));
        if is_open {
            log.leave_out(Reason::Superseded, run.line, Some(&run.id));
        } else if !said.insert(format!("{:?}", Row { id: "".into(), line: 0, ..run.clone() })) {
            log.leave_out(Reason::Repeated, run.line, Some(&run.id));
        } else {
            kept.push(run);
        }
    }
    kept
}

/// How long after its end a run is requeued at the latest, s: later, the id has come round.
const REQUEUED_WITHIN_S: f64 = 7.0 * 86_400.0;

fn is_attempt_after(earlier: &Row, later: &Row) -> bool {
    let same = (&earlier.user, &earlier.group, &earlier.name) == (&later.user, &later.group, &later.name);
    let is_after = earlier
        .ended_s
        .zip(later.submitted_s)
        .is_some_and(|(end, submitted)| (end - 1.0..=end + REQUEUED_WITHIN_S).contains(&submitted));
    // (Slurm of old kept the time of submission)
    let is_with = earlier.submitted_s.is_some() && earlier.submitted_s == later.submitted_s;
    same && earlier.state != State::Completed && (is_after || is_with)
}

/// A job with one more attempt: submitted and started as before, ended as the attempt, and sized as the last that ran.
fn with_attempt(job: &Row, attempt: Row) -> Row {
    let least = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::min);
    let has_run = attempt.started_s.is_some() || job.started_s.is_none();
    let (n_workers, n_nodes) =
        if has_run { (attempt.n_workers, attempt.n_nodes) } else { (job.n_workers, job.n_nodes) };
    // (of an attempt that has not ended, how long it ran is not known, nor is it of the job)
    let is_open = attempt.started_s.is_some() && attempt.ended_s.is_none();
    let ran_s = job.ran_s.into_iter().chain(attempt.ran_s).reduce(|one, other| one + other);
    Row {
        submitted_s: least(job.submitted_s, attempt.submitted_s),
        eligible_s: least(job.eligible_s, attempt.eligible_s),
        started_s: least(job.started_s, attempt.started_s),
        ran_s: ran_s.filter(|ran| !is_open && *ran <= NUMBER_MAX),
        n_workers,
        n_nodes,
        worker_type: both_types(job.worker_type.as_deref(), attempt.worker_type.as_deref()),
        n_attempts: Some(job.n_attempts.unwrap_or(0).saturating_add(attempt.n_attempts.unwrap_or(0))),
        line: job.line.min(attempt.line),
        ..attempt
    }
}

/// What stands between the types of a job of several, which are told apart once all of its rows are read.
const BESIDE: &str = "\n";

/// The worker types of two parts of a job, each once; two of them where there are more, which is as much as is said of them.
fn both_types(one: Option<&str>, other: Option<&str>) -> Option<Arc<str>> {
    let mut types: Vec<&str> = one.into_iter().chain(other).flat_map(|types| types.split(BESIDE)).collect();
    types.sort_unstable();
    types.dedup();
    types.truncate(2);
    (!types.is_empty()).then(|| types.join(BESIDE).into())
}

/// Two components of a heterogeneous job, which run at the same time, as one.
fn together(row: Row, other: &Row) -> Row {
    let least = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::min);
    let worker_type = both_types(row.worker_type.as_deref(), other.worker_type.as_deref());
    Row {
        n_workers: row.n_workers.zip(other.n_workers).and_then(|(one, other)| one.checked_add(other)),
        n_nodes: row.n_nodes.zip(other.n_nodes).and_then(|(one, other)| one.checked_add(other)),
        submitted_s: least(row.submitted_s, other.submitted_s),
        eligible_s: least(row.eligible_s, other.eligible_s),
        started_s: least(row.started_s, other.started_s),
        ended_s: row.ended_s.zip(other.ended_s).map(|(one, other)| one.max(other)),
        ran_s: row.ran_s.zip(other.ran_s).map(|(one, other)| one.max(other)),
        n_attempts: row.n_attempts.max(other.n_attempts),
        worker_type,
        state: row.state.worse(other.state),
        ..row
    }
}
