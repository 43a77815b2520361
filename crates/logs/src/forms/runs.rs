//! Jobs from runs under the same id in Slurm's accounting: attempts, components, and reused ids.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use apportion::spec::Place;
use apportion::spec::snapshot::NUMBER_MAX;
use apportion::spec::trace::field::Field;

use crate::reading::{Fault, Reading};
use crate::row::{Row, State};
use crate::tally::{Doubt, Reason};

/// A run of a job, or of a component of one: one line.
pub(super) struct Run {
    pub(super) row: Row,
    /// Number of the component of a heterogeneous job.
    pub(super) component: Option<u32>,
    /// Cluster that the line names.
    pub(super) cluster: Option<Arc<str>>,
    pub(super) place: Place,
}

/// Makes rows of runs under one id.
pub(super) fn finish(runs: Vec<Run>, log: &mut Reading) {
    let Some(id) = runs.first().map(|run| Arc::clone(&run.row.id)) else { return };
    let (components, plain): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| run.component.is_some());
    let earlier = log.row_of(&id);
    let mut plain: Vec<Row> = plain.into_iter().map(|run| run.row).collect();
    if let Some(at) = earlier {
        plain.insert(0, Row { id: Arc::clone(&id), ..log.rows.at(at).to_owned() });
    }
    let components = of_other_jobs(components, &plain, log);
    let mut jobs = jobs_of(plain, log).into_iter();
    if let Some((at, first)) = earlier.and_then(|at| Some((at, jobs.next()?))) {
        let id = log.rows.id(at).into();
        log.rows.set(at, Row { id, ..first });
    }
    for row in jobs {
        log.take(row);
    }
    let whole = joined(components, log);
    for row in jobs_of(whole, log) {
        log.take(row);
    }
}

/// The runs of components without those submitted at the same time as a run without components under the same id, which are
/// counted as not understood.
fn of_other_jobs(components: Vec<Run>, plain: &[Row], log: &mut Reading) -> Vec<Run> {
    let submitted: BTreeSet<Option<u64>> =
        plain.iter().map(|row| row.submitted_s.map(f64::to_bits)).collect();
    let (within, others): (Vec<Run>, Vec<Run>) =
        components.into_iter().partition(|run| submitted.contains(&run.row.submitted_s.map(f64::to_bits)));
    for Run { row, place, .. } in within {
        let message = format!("job `{}` has rows with and without a component", Field::shortened(&row.id));
        log.complain(Fault { place, message }, "");
    }
    others
}

/// Runs of a heterogeneous job, each joined from the runs of its components that were submitted together.
fn joined(runs: Vec<Run>, log: &mut Reading) -> Vec<Row> {
    let mut components: BTreeMap<Option<u32>, Vec<Row>> = BTreeMap::new();
    for run in runs {
        components.entry(run.component).or_default().push(run.row);
    }
    let mut whole = Vec::new();
    for mut rows in components.into_values() {
        sort(&mut rows);
        whole = with_component(whole, without_open_ones(rows, log), log);
    }
    whole
}

/// Runs joined with the runs of one more component. Both are in order of submission and start. Where several were submitted
/// at one time, as attempts are with old versions of Slurm, those that started nearest to one another are joined.
fn with_component(whole: Vec<Row>, rows: Vec<Row>, log: &mut Reading) -> Vec<Row> {
    let is_with = |one: &Row, other: &Row| match (one.submitted_s, other.submitted_s) {
        (Some(one), Some(other)) => (one - other).abs() <= 1.0,
        (one, other) => one == other,
    };
    let apart = |one: &Row, other: &Row| match (one.started_s, other.started_s) {
        (Some(one), Some(other)) => (one - other).abs(),
        (None, None) => 0.0,
        _ => f64::INFINITY,
    };
    let is_nearer = |next: Option<&Row>, than: &Row, to: &Row| {
        next.is_some_and(|next| is_with(next, to) && apart(next, to) < apart(than, to))
    };
    let (mut left, mut right) = (VecDeque::from(whole), VecDeque::from(rows));
    let mut all = Vec::with_capacity(left.len().max(right.len()));
    while let (Some(one), Some(other)) = (left.front(), right.front()) {
        let from_left = if is_with(one, other) {
            is_nearer(left.get(1), one, other)
                .then_some(true)
                .or(is_nearer(right.get(1), other, one).then_some(false))
        } else {
            Some(order(one) <= order(other))
        };
        let taken = match from_left {
            Some(true) => left.pop_front(),
            Some(false) => right.pop_front(),
            None => left.pop_front().zip(right.pop_front()).map(|(one, other)| {
                log.n_merged += 1;
                together(one, &other)
            }),
        };
        all.extend(taken);
    }
    all.extend(left.into_iter().chain(right));
    sort(&mut all);
    all
}

/// Sort key of runs: submission and start, s, with missing ones last.
fn order(run: &Row) -> (f64, f64) {
    (run.submitted_s.unwrap_or(f64::INFINITY), run.started_s.unwrap_or(f64::INFINITY))
}

/// Puts runs in order of submission and start.
fn sort(runs: &mut [Row]) {
    runs.sort_by(|one, other| {
        let ((one_s, one_start_s), (other_s, other_start_s)) = (order(one), order(other));
        one_s.total_cmp(&other_s).then(one_start_s.total_cmp(&other_start_s)).then(one.line.cmp(&other.line))
    });
}

/// Jobs of the runs under one id: most often one, which was requeued; sometimes several, as Slurm reuses ids.
///
/// A run is a later attempt of a job if user, account and name agree, the job had not completed, and the run was submitted
/// after the one before it ended, as Slurm's requeues are.
fn jobs_of(mut runs: Vec<Row>, log: &mut Reading) -> Vec<Row> {
    sort(&mut runs);
    let mut jobs: Vec<Row> = Vec::new();
    let mut last: Option<Row> = None;
    for run in without_open_ones(runs, log) {
        let is_later = last.as_ref().is_some_and(|last| is_attempt_after(last, &run));
        match jobs.last_mut().filter(|_| is_later) {
            Some(job) => {
                log.doubt(Doubt::Requeued, run.line, Some(&run.id));
                log.n_merged += 1;
                if last.as_ref().is_some_and(|last| may_be_the_wait_of(last, &run)) {
                    log.doubt(Doubt::WaitsAgain, run.line, Some(&run.id));
                }
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

/// Submission and start of a run, as bits, for look-ups.
type Times = (Option<u64>, Option<u64>);

/// Rows of ended and settled runs under one id, by which earlier rows of the same runs are recognized.
#[derive(Default)]
struct Later {
    /// Submission and start of the runs that ended.
    ended: BTreeSet<Times>,
    /// Runs that had started or ended, by submission, then by start.
    settled: BTreeMap<Option<u64>, BTreeMap<Option<u64>, Settled>>,
    /// Last line of the runs that had not ended in any row, by submission and start.
    open: BTreeMap<Times, u64>,
}

/// A run that had started or ended.
struct Settled {
    /// First line that has the run.
    line: u64,
    /// Start of the run; without one, the later of its end and the time from which it could run. It could run by then.
    due_s: Option<f64>,
    has_completed: bool,
}

impl Settled {
    /// Whether a row of a run that waits, submitted at the same time, is an earlier row of this run.
    ///
    /// A run that is requeued may run again only after its end. Where the waiting row has no time from which it may run, it
    /// is this run if it is on an earlier line.
    fn was(&self, waiting: &Row) -> bool {
        let is_due = waiting.eligible_s.zip(self.due_s).map(|(eligible, due)| eligible <= due);
        self.has_completed || is_due.unwrap_or(self.line > waiting.line)
    }
}

impl Later {
    fn of(runs: &[Row]) -> Self {
        let mut later = Self::default();
        for run in runs.iter().filter(|run| run.started_s.is_some() || run.ended_s.is_some()) {
            let (submitted, started) = times(run);
            if run.ended_s.is_some() {
                later.ended.insert((submitted, started));
            }
            let due_s = run.started_s.or_else(|| latest(run.ended_s, run.eligible_s));
            let settled = Settled { line: run.line, due_s, has_completed: false };
            let there = later.settled.entry(submitted).or_default().entry(started).or_insert(settled);
            there.line = there.line.min(run.line);
            there.due_s = latest(there.due_s, due_s);
            there.has_completed |= run.state == State::Completed;
        }
        for run in runs.iter().filter(|run| run.ended_s.is_none()) {
            if !later.has_settled(run) {
                let line = later.open.entry(times(run)).or_default();
                *line = run.line.max(*line);
            }
        }
        later
    }

    /// Whether a row that has not ended was followed by one of the same run that had started, if it waited, or ended.
    fn has_settled(&self, run: &Row) -> bool {
        let (submitted, started) = times(run);
        if started.is_some() {
            return self.ended.contains(&(submitted, started));
        }
        self.settled.get(&submitted).is_some_and(|runs| runs.values().any(|settled| settled.was(run)))
    }

    /// Whether a later row of the same run is there.
    fn has(&self, run: &Row) -> bool {
        if run.ended_s.is_some() || run.submitted_s.is_none() {
            return false;
        }
        self.has_settled(run) || self.open.get(&times(run)).is_some_and(|line| *line > run.line)
    }
}

/// The later of two times, or the known one.
fn latest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

fn times(run: &Row) -> Times {
    (run.submitted_s.map(f64::to_bits), run.started_s.map(f64::to_bits))
}

/// The runs without rows that had not ended and have a later row, as where two logs are joined.
fn without_open_ones(runs: Vec<Row>, log: &mut Reading) -> Vec<Row> {
    let later = Later::of(&runs);
    let mut said = BTreeSet::new();
    let (runs, superseded): (Vec<Row>, Vec<Row>) = runs.into_iter().partition(|run| !later.has(run));
    let (kept, repeated): (Vec<Row>, Vec<Row>) = runs
        .into_iter()
        .partition(|run| said.insert(format!("{:?}", Row { id: "".into(), line: 0, ..run.clone() })));
    for (reason, runs) in [(Reason::Repeated, repeated), (Reason::Superseded, superseded)] {
        for run in runs {
            log.leave_out(reason, run.line, Some(&run.id));
        }
    }
    kept
}

/// The longest time after its end at which a run is requeued, s: later ones are other jobs with a reused id.
const REQUEUED_WITHIN_S: f64 = 7.0 * 86_400.0;

fn is_attempt_after(earlier: &Row, later: &Row) -> bool {
    let same = (&earlier.user, &earlier.group, &earlier.name) == (&later.user, &later.group, &later.name);
    let is_after = earlier
        .ended_s
        .zip(later.submitted_s)
        .is_some_and(|(end, submitted)| (end - 1.0..=end + REQUEUED_WITHIN_S).contains(&submitted));
    // Old versions of Slurm kept the time of submission.
    let is_with = earlier.submitted_s.is_some() && earlier.submitted_s == later.submitted_s;
    same && earlier.state != State::Completed && (is_after || is_with)
}

/// Whether a waiting row may be from before the run started, and not its next attempt. Both were submitted at one time, and
/// the row does not say from when it may run.
fn may_be_the_wait_of(earlier: &Row, waiting: &Row) -> bool {
    let waits = waiting.started_s.is_none() && waiting.ended_s.is_none() && waiting.eligible_s.is_none();
    waits
        && earlier.ended_s.is_some()
        && earlier.submitted_s.is_some()
        && earlier.submitted_s == waiting.submitted_s
}

/// The job with one more attempt: submitted and started as before, ended as the attempt, and sized as the last that ran.
fn with_attempt(job: &Row, attempt: Row) -> Row {
    let least = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::min);
    let has_run = attempt.started_s.is_some() || job.started_s.is_none();
    let (n_workers, n_nodes) =
        if has_run { (attempt.n_workers, attempt.n_nodes) } else { (job.n_workers, job.n_nodes) };
    // An attempt that has not ended has no known running time, so neither has the job.
    let is_open = attempt.started_s.is_some() && attempt.ended_s.is_none();
    let ran_s = job.ran_s.into_iter().chain(attempt.ran_s).reduce(|one, other| one + other);
    let is_contradictory = job.contradicts_itself() || attempt.contradicts_itself();
    let whole = Row {
        submitted_s: least(job.submitted_s, attempt.submitted_s),
        eligible_s: least(job.eligible_s, attempt.eligible_s),
        started_s: least(job.started_s, attempt.started_s),
        ran_s: ran_s.filter(|ran| !is_open && *ran <= NUMBER_MAX),
        n_workers,
        n_nodes,
        worker_type: both_types(job.worker_type.as_deref(), attempt.worker_type.as_deref()),
        n_attempts: job.n_attempts.zip(attempt.n_attempts).map(|(one, other)| one.saturating_add(other)),
        line: job.line.min(attempt.line),
        ..attempt
    };
    if is_contradictory { whole.contradictory() } else { whole }
}

/// Separator of the types of a job of several, which are split once all of its rows are read.
pub(super) const BESIDE: &str = "\n";

/// Worker types of two parts of a job, each once; at most two of them, as more are not reported.
fn both_types(one: Option<&str>, other: Option<&str>) -> Option<Arc<str>> {
    let mut types: Vec<&str> = one.into_iter().chain(other).flat_map(|types| types.split(BESIDE)).collect();
    types.sort_unstable();
    types.dedup();
    types.truncate(2);
    (!types.is_empty()).then(|| types.join(BESIDE).into())
}

/// Two components of a heterogeneous job, which run at the same time, joined to one row.
fn together(row: Row, other: &Row) -> Row {
    let least = |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::min);
    let worker_type = both_types(row.worker_type.as_deref(), other.worker_type.as_deref());
    let is_contradictory = row.contradicts_itself() || other.contradicts_itself();
    let whole = Row {
        n_workers: row.n_workers.zip(other.n_workers).and_then(|(one, other)| one.checked_add(other)),
        n_nodes: row.n_nodes.zip(other.n_nodes).and_then(|(one, other)| one.checked_add(other)),
        submitted_s: least(row.submitted_s, other.submitted_s),
        eligible_s: least(row.eligible_s, other.eligible_s),
        started_s: least(row.started_s, other.started_s),
        ended_s: row.ended_s.zip(other.ended_s).map(|(one, other)| one.max(other)),
        ran_s: row.ran_s.zip(other.ran_s).map(|(one, other)| one.max(other)),
        // An unknown number of one component leaves that of the job unknown where the other never started.
        n_attempts: match (row.n_attempts, other.n_attempts) {
            (None, Some(0)) | (Some(0), None) => None,
            (one, other) => one.max(other),
        },
        worker_type,
        state: row.state.worse(other.state),
        ..row
    };
    if is_contradictory { whole.contradictory() } else { whole }
}
