//! Helios and Acme: a line a job, with the columns of a Slurm cluster's log.

use apportion::spec::SpecError;
use apportion::spec::trace::field::Field;

use super::slurm_state;
use crate::form::Form;
use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::row::{Row, State};
use crate::table::{Cells, Columns};
use crate::tally::Doubt;

const HELIOS: Columns = Columns {
    form: Some(Form::Helios),
    required: &["job_id", "gpu_num", "submit_time"],
    optional: &["user", "vc", "node_num", "state", "start_time", "end_time", "duration"],
    ignored: &["cpu_num", "queue"],
    without_header: &[],
    separator: ',',
    with_separator: &[],
    advice: "",
};

const ACME: Columns = Columns {
    form: Some(Form::Acme),
    required: &["job_id", "gpu_num", "submit_time", "start_time", "end_time"],
    optional: &["user", "type", "node_num", "state", "duration"],
    ignored: &[
        "cpu_num",
        "queue",
        "gpu_time",
        "mem_per_pod_GB",
        "shared_mem_per_pod",
        "shared_mem_per_pod_GB",
        "fail_time",
        "stop_time",
    ],
    without_header: &[],
    separator: ',',
    with_separator: &[],
    advice: "",
};

pub(crate) fn helios(input: &mut Input, log: &mut Reading) -> Result<(), SpecError> {
    HELIOS.read_rows(input, log, |cells, log| row(cells, log, "vc"))
}

pub(crate) fn acme(input: &mut Input, log: &mut Reading) -> Result<(), SpecError> {
    ACME.read_rows(input, log, |cells, log| row(cells, log, "group"))
}

fn row(cells: &Cells<'_>, log: &mut Reading, group: &str) -> Result<Row, Fault> {
    let mut row = Row::new(cells.id("job_id")?, cells.line);
    row.user = cells.name("user", log)?;
    row.group = cells.name(group, log)?;
    row.class = cells.name("type", log)?;
    row.n_workers = cells.count("gpu_num")?;
    row.n_nodes = cells.count("node_num")?;
    [row.submitted_s, row.started_s, row.ended_s] =
        cells.times(["submit_time", "start_time", "end_time"], log)?;
    row.state = state(cells)?;
    if matches!(row.state, State::Running | State::Pending) && row.ended_s.is_some() {
        // The state `SUSPENDED` of a job that has ended does not say how it ended.
        row.state = State::Unknown;
    }
    row.ran_s = running_time(cells, &row, log)?;
    // A log without the column of starts does not say that a job was never started.
    let ran_for_nothing = cells.signed("duration")?.is_some_and(|given| (-1.0..=0.0).contains(&given));
    let starts = row.starts_of_one_run(ran_for_nothing);
    row.n_attempts = starts.filter(|n| *n > 0 || cells.has("start_time"));
    Ok(row)
}

fn state(cells: &Cells<'_>) -> Result<State, Fault> {
    let Some(text) = cells.raw("state") else { return Ok(State::Unknown) };
    slurm_state::of(text).ok_or_else(|| {
        let shown = Field::shortened(text);
        cells.fault("state", format!("state is `{shown}`, expected {}", slurm_state::EXPECTED))
    })
}

/// Running time, s: end less start where both are there, else the log's duration.
fn running_time(cells: &Cells<'_>, row: &Row, log: &mut Reading) -> Result<Option<f64>, Fault> {
    let given = cells.signed("duration")?;
    if let Some((start, end)) = row.started_s.zip(row.ended_s) {
        let ran = end - start;
        if given.is_some_and(|given| (given - ran).abs() > 1.0) {
            log.doubt(Doubt::DurationDiffers, row.line, Some(&row.id));
        }
        return Ok(Some(ran));
    }
    if !(cells.has("start_time") && cells.has("end_time")) {
        return Ok(given);
    }
    // A duration of 0 without a start means that the job never ran; one from the submission to the end is its waiting time.
    let from_submission = row.ended_s.zip(row.submitted_s).map(|(end, submitted)| end - submitted);
    let has_waited = row.started_s.is_none()
        && (row.state == State::Cancelled
            || given.zip(from_submission).is_some_and(|(given, wait)| (given - wait).abs() <= 1.0));
    let has_ended = !matches!(row.state, State::Running | State::Pending);
    // A duration below -1 s is kept, whatever the state: such a row contradicts itself.
    let ran = given.filter(|given| *given < -1.0 || *given > 0.0 && has_ended && !has_waited);
    if ran.is_some() {
        log.doubt(Doubt::DurationAlone, row.line, Some(&row.id));
    }
    Ok(ran)
}
