//! The normalized log, read back.

use apportion::spec::SpecError;
use apportion::spec::trace::field::Field;

use crate::date;
use crate::form::Form;
use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::row::{Row, State};
use crate::table::{Cells, Columns};
use crate::tally::Doubt;

/// Columns of the normalized log, in the order in which they are written.
pub(crate) const NAMES: [&str; 16] = [
    "id",
    "name",
    "user",
    "group",
    "submitted_s",
    "eligible_s",
    "started_s",
    "ended_s",
    "ran_s",
    "gpus",
    "gpu_fraction",
    "nodes",
    "gpu_type",
    "state",
    "attempts",
    "class",
];

const COLUMNS: Columns = Columns {
    form: Some(Form::Log),
    required: &["id", "ran_s", "gpus"],
    optional: &[
        "name",
        "user",
        "group",
        "submitted_s",
        "eligible_s",
        "started_s",
        "ended_s",
        "gpu_fraction",
        "nodes",
        "gpu_type",
        "state",
        "attempts",
        "class",
    ],
    ignored: &[],
    without_header: &[],
    separator: ',',
    with_separator: &[],
    advice: "",
};

pub(crate) fn read(input: &mut Input, log: &mut Reading) -> Result<(), SpecError> {
    COLUMNS.read_rows(input, log, row)?;
    forget_zeros(log);
    Ok(())
}

/// Time by which all other times are later where one at the zero of time counts as unknown, s: some three years.
const LATER_S: f64 = 1e8;

/// Takes times at the zero of time as unknown where all others are years later. Where the log counts from its own start,
/// they are real times.
fn forget_zeros(log: &mut Reading) {
    // Zones' clocks differ from UTC by whole quarters of an hour.
    let is_zero = |time: f64| time.abs() <= date::ZONE_S && time % 900.0 == 0.0;
    let times = log.rows.iter().flat_map(|row| [row.submitted_s, row.eligible_s, row.started_s, row.ended_s]);
    let least = times.flatten().filter(|time| !is_zero(*time)).reduce(f64::min);
    if least.is_none_or(|least| least < LATER_S) {
        return;
    }
    log.retain_rows(|row, log| {
        for time in [&mut row.submitted_s, &mut row.eligible_s, &mut row.started_s, &mut row.ended_s] {
            if time.take_if(|time| is_zero(*time)).is_some() {
                log.doubt(Doubt::ZeroTimes, row.line, None);
            }
        }
        true
    });
}

fn row(cells: &Cells<'_>, log: &mut Reading) -> Result<Row, Fault> {
    let mut row = Row::new(cells.id("id")?, cells.line);
    row.name = cells.name("name", log)?;
    row.user = cells.name("user", log)?;
    row.group = cells.name("group", log)?;
    row.submitted_s = cells.signed("submitted_s")?;
    row.eligible_s = cells.signed("eligible_s")?;
    row.started_s = cells.signed("started_s")?;
    row.ended_s = cells.signed("ended_s")?;
    row.ran_s = cells.signed("ran_s")?;
    row.n_workers = cells.count("gpus")?;
    row.fraction = cells.number("gpu_fraction")?;
    if row.fraction.is_some_and(|fraction| !(fraction > 0.0 && fraction < 1.0)) {
        let message =
            "gpu_fraction is out of range, expected a number above 0 and below 1, or nothing for whole ones";
        return Err(cells.fault("gpu_fraction", message));
    }
    if row.fraction.is_some() && row.n_workers == Some(0) {
        return Err(cells.fault("gpu_fraction", "gpu_fraction is a part of 0 accelerators, expected nothing"));
    }
    row.n_nodes = cells.count("nodes")?;
    row.worker_type = cells.name("gpu_type", log)?;
    row.state = match cells.raw("state") {
        None => State::Unknown,
        Some(text) => State::of(text).ok_or_else(|| {
            let known = State::ALL.map(State::name).join(", ");
            cells.fault("state", format!("state is `{}`, expected one of {known}", Field::shortened(text)))
        })?,
    };
    row.n_attempts = cells.count("attempts")?;
    row.class = cells.name("class", log)?;
    Ok(row)
}
