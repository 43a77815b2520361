//! Alibaba's PAI of 2020: a table of tasks, several a job, and one of jobs.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use apportion::spec::SpecError;
use apportion::spec::trace::field::Field;

use super::spot::workers;
use crate::form::{Form, PAI_JOBS, PAI_TASKS};
use crate::input::Input;
use crate::places::Places;
use crate::reading::{Fault, Reading};
use crate::row::{Row, State, TOO_MANY_WORKERS};
use crate::table::{Cells, Columns, is_nothing};
use crate::tally::{Doubt, Reason};

const TASKS: Columns = Columns {
    form: Some(Form::Pai),
    required: &["job_name", "inst_num", "start_time", "end_time", "plan_gpu"],
    optional: &["status", "gpu_type"],
    ignored: &["task_name", "plan_cpu", "plan_mem"],
    without_header: PAI_TASKS,
    separator: ',',
    with_separator: &[],
    advice: "",
};

const JOBS: Columns = Columns {
    form: Some(Form::Pai),
    required: &["job_name", "start_time"],
    optional: &["user", "status"],
    ignored: &["inst_id", "end_time"],
    without_header: PAI_JOBS,
    separator: ',',
    with_separator: &[],
    advice: "",
};

const STATES: [(&str, State); 4] = [
    ("Terminated", State::Completed),
    ("Failed", State::Failed),
    ("Running", State::Running),
    ("Waiting", State::Pending),
];

/// A day, s.
const DAY_S: f64 = 86_400.0;

/// Columns of a job in the table of jobs.
struct Submission {
    user: Option<Arc<str>>,
    state: Option<State>,
    /// Time of submission, s; the table calls it the start.
    submitted_s: Option<f64>,
    /// Line of the table, from 1.
    line: u64,
}

/// A job of the table of jobs, with what is known of its tasks.
struct Submitted {
    id: Arc<str>,
    /// Whether the log has a task of the job.
    has_tasks: bool,
    /// Columns of the job; none if they are not understood, which was complained of.
    submission: Option<Submission>,
}

/// The table of jobs.
#[derive(Default)]
struct Submissions {
    jobs: Vec<Submitted>,
    places: Places,
}

impl Submissions {
    fn get(&mut self, id: &str) -> Option<&mut Submitted> {
        let at = self.places.find(id, |at| &self.jobs[at].id)?;
        self.jobs.get_mut(at)
    }
}

/// A job, accumulated from the tasks read so far.
struct Job {
    id: Arc<str>,
    /// Line of its first task.
    line: u64,
    n_workers: Option<u32>,
    /// First start and last end of its tasks, s.
    started_s: Option<f64>,
    ended_s: Option<f64>,
    /// The first complaint about one of its tasks, with the task's line.
    fault: Option<Box<(Fault, String)>>,
    /// Accelerators in whole ones: half of two is one.
    held: f64,
    /// Worker types of its tasks, up to two of them.
    types: [Option<Arc<str>>; 2],
    has_ended: bool,
    /// Whether one of its tasks ends before it starts.
    is_contradictory: bool,
    state: Option<State>,
    /// Whether one of its tasks has a time, also a task without accelerators, whose times are not taken.
    has_times: bool,
}

pub(crate) fn read(
    input: &mut Input,
    job_table: Option<&mut Input>,
    log: &mut Reading,
) -> Result<(), SpecError> {
    let file: Option<Arc<str>> = job_table.as_ref().map(|table| table.name.as_str().into());
    let mut submissions = job_table.map(|table| read_jobs(table, log)).transpose()?;
    let (mut jobs, mut places): (Vec<Job>, _) = (Vec::new(), Places::default());
    // Digests of tasks' lines, with their jobs, by which repeated lines are recognized.
    let mut tasks: BTreeSet<(usize, u64)> = BTreeSet::new();
    TASKS.read(input, log, |cells, log| {
        let mut id = match cells.id("job_name") {
            Ok(id) => id,
            Err(fault) => return cells.complain(fault, log),
        };
        let known = places.find(&id, |at| &jobs[at].id);
        let at = known.unwrap_or_else(|| {
            if let Some(submitted) = submissions.as_mut().and_then(|submissions| submissions.get(&id)) {
                submitted.has_tasks = true;
                id = Arc::clone(&submitted.id);
            }
            places.add(&id, jobs.len());
            jobs.push(Job::new(Arc::clone(&id), cells.line));
            jobs.len() - 1
        });
        let mut hasher = DefaultHasher::new();
        cells.text.hash(&mut hasher);
        if !tasks.insert((at, hasher.finish())) {
            return log.leave_out(Reason::Repeated, cells.line, Some(&jobs[at].id));
        }
        log.n_merged += u64::from(known.is_some());
        if let Err(fault) = jobs[at].add(cells, log) {
            let text = cells.line_text(&fault).to_owned();
            jobs[at].fault.get_or_insert_with(|| Box::new((fault, text)));
        }
    })?;
    drop((places, tasks));
    for job in jobs {
        job.finish(submissions.as_mut(), log);
    }
    // The log has no task of these jobs: they wait, or ended, and only one that completed is known to have had some.
    let jobs = submissions.into_iter().flat_map(|table| table.jobs);
    for Submitted { id, submission, .. } in jobs.filter(|submitted| !submitted.has_tasks) {
        let Some(Submission { user, state, submitted_s, line }) = submission else { continue };
        let mut row = Row { file: file.clone(), ..Row::new(id, line) };
        (row.user, row.submitted_s) = (user, submitted_s);
        row.state = state.unwrap_or(State::Unknown);
        row.n_attempts = row.starts_of_one_run(false);
        log.n_read += 1;
        log.take(row);
    }
    Ok(())
}

fn read_jobs(table: &mut Input, log: &mut Reading) -> Result<Submissions, SpecError> {
    let mut submissions = Submissions::default();
    let mut of_table = Reading::new(&table.name, None);
    JOBS.read(table, &mut of_table, |cells, of_table| {
        let id = match cells.id("job_name") {
            Ok(id) => id,
            Err(fault) => return cells.complain(fault, of_table),
        };
        let submission = match submission(cells, of_table) {
            Ok(submission) => Some(submission),
            Err(fault) => {
                cells.complain(fault, of_table);
                None
            }
        };
        match submissions.get(&id) {
            None => {
                submissions.places.add(&id, submissions.jobs.len());
                submissions.jobs.push(Submitted { id, has_tasks: false, submission });
            }
            Some(there) => {
                let same = there.submission.as_ref().zip(submission.as_ref()).is_some_and(|(one, other)| {
                    (&one.user, one.state, one.submitted_s) == (&other.user, other.state, other.submitted_s)
                });
                if same {
                    of_table.leave_out(Reason::Repeated, cells.line, Some(&id));
                } else {
                    let message = format!(
                        "job `{}` is in the table of jobs already, with other values",
                        Field::shortened(&id)
                    );
                    cells.complain(cells.fault("job_name", message), of_table);
                }
            }
        }
    })?;
    log.n_read += of_table.left_out.values().map(|tally| tally.n).sum::<u64>();
    log.take_over(of_table);
    Ok(submissions)
}

fn submission(cells: &Cells<'_>, log: &mut Reading) -> Result<Submission, Fault> {
    Ok(Submission {
        user: cells.name("user", log)?,
        state: cells.word("status", &STATES)?,
        // A time of 0 counts as missing, as in the authors' own analysis.
        submitted_s: cells.number("start_time")?.filter(|time| *time > 0.0),
        line: cells.line,
    })
}

impl Job {
    fn new(id: Arc<str>, line: u64) -> Self {
        Self {
            id,
            line,
            n_workers: None,
            started_s: None,
            ended_s: None,
            fault: None,
            held: 0.0,
            types: [None, None],
            has_ended: true,
            is_contradictory: false,
            state: None,
            has_times: false,
        }
    }

    /// Takes in a task. A task without accelerators counts only for the job's state.
    fn add(&mut self, cells: &Cells<'_>, log: &mut Reading) -> Result<(), Fault> {
        let state = cells.word("status", &STATES)?;
        self.state = self.state.into_iter().chain(state).reduce(State::worse);
        let percent = cells.number("plan_gpu")?.unwrap_or(0.0);
        let (mut start, mut end) = (cells.number("start_time")?, cells.number("end_time")?);
        let n_members = cells.count("inst_num")?;
        self.has_times |= [start, end].into_iter().flatten().any(|time| time > 0.0);
        if percent == 0.0 || n_members == Some(0) {
            self.n_workers = self.n_workers.or(Some(0));
            return Ok(());
        }
        let n_members =
            n_members.ok_or_else(|| cells.fault("inst_num", "a task of accelerators without inst_num"))?;
        // A time of 0 counts as missing in this log, whose times begin days after 0; in a table that begins at 0 it is a
        // time.
        if start == Some(0.0) && end.is_none_or(|end| end == 0.0 || end > DAY_S) {
            start = None;
        }
        if end == Some(0.0) {
            end = None;
        }
        let workers = workers(percent / 100.0, n_members);
        let all = workers.and_then(|(n, _)| n.checked_add(self.n_workers.unwrap_or(0)));
        self.n_workers =
            Some(all.ok_or_else(|| cells.fault("plan_gpu", format!("the job has {TOO_MANY_WORKERS}")))?);
        self.held += f64::from(n_members) * percent / 100.0;
        if let Some(kind) = cells.name("gpu_type", log)?.filter(|kind| !is_nothing(kind)) {
            let [first, second] = &mut self.types;
            if *first.get_or_insert_with(|| Arc::clone(&kind)) != kind {
                *second = Some(kind);
            }
        }
        self.started_s = self.started_s.into_iter().chain(start).reduce(f64::min);
        self.ended_s = self.ended_s.into_iter().chain(end).reduce(f64::max);
        self.is_contradictory |= start.zip(end).is_some_and(|(start, end)| end < start - 1.0);
        self.has_ended &= end.is_some() || start.is_none();
        Ok(())
    }

    fn finish(self, submissions: Option<&mut Submissions>, log: &mut Reading) {
        if let Some((fault, text)) = self.fault.map(|fault| *fault) {
            return log.complain(fault, &text);
        }
        let mut row = Row::new(self.id, self.line);
        (row.n_workers, row.started_s) = (self.n_workers, self.started_s);
        row.ended_s = self.ended_s.filter(|_| self.has_ended);
        row.ran_s = row.ended_s.zip(row.started_s).map(|(end, start)| end - start);
        row.state = self.state.unwrap_or(State::Unknown);
        let all = f64::from(row.n_workers.unwrap_or(0));
        row.fraction = (self.held < all).then(|| self.held / all);
        match self.types {
            [first, None] => row.worker_type = first,
            [_, Some(_)] => log.doubt(Doubt::SeveralTypes, row.line, Some(&row.id)),
        }
        match submissions.map(|submissions| submissions.get(&row.id).map(|submitted| &submitted.submission)) {
            None => {}
            Some(Some(Some(Submission { user, state, submitted_s, .. }))) => {
                row.user.clone_from(user);
                row.state = state.unwrap_or(row.state);
                row.submitted_s = *submitted_s;
            }
            // The job's row in the table of jobs was not understood, and counted there.
            Some(Some(None)) => return log.leave_out(Reason::NotUnderstood, row.line, Some(&row.id)),
            Some(None) => log.doubt(Doubt::NotInJobTable, row.line, Some(&row.id)),
        }
        let has_waited = matches!(row.state, State::Pending | State::Cancelled);
        row.n_attempts = row.starts_of_one_run(false).filter(|n| *n > 0 || has_waited || !self.has_times);
        log.take(if self.is_contradictory { row.contradictory() } else { row });
    }
}
