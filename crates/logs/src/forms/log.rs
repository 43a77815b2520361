//! The normalized log, read back.

use apportion::spec::SpecError;
use apportion::spec::trace::field::Field;

use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::row::{Row, State};
use crate::table::{Cells, Columns};

/// Its columns, in the order in which they are written.
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
    COLUMNS.read_rows(input, log, row)
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
