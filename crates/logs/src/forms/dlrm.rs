//! Alibaba's inference services of 2025: one line per instance. They are no training jobs, and are read only with `force`.

use apportion::spec::SpecError;

use super::spot::workers;
use crate::form::Form;
use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::row::{Row, State, TOO_MANY_WORKERS};
use crate::table::{Cells, Columns};

const COLUMNS: Columns = Columns {
    form: Some(Form::Dlrm),
    required: &["instance_sn", "gpu_request", "creation_time", "scheduled_time", "deletion_time"],
    optional: &["role", "app_name"],
    ignored: &[
        "cpu_request",
        "cpu_limit",
        "gpu_limit",
        "rdma_request",
        "rdma_limit",
        "memory_request",
        "memory_limit",
        "disk_request",
        "disk_limit",
        "max_instance_per_node",
    ],
    without_header: &[],
    separator: ',',
    with_separator: &[],
    advice: "",
};

pub(crate) fn read(input: &mut Input, log: &mut Reading) -> Result<(), SpecError> {
    COLUMNS.read_rows(input, log, row)
}

fn row(cells: &Cells<'_>, log: &mut Reading) -> Result<Row, Fault> {
    let mut row = Row::new(cells.id("instance_sn")?, cells.line);
    row.name = cells.name("app_name", log)?;
    row.class = cells.name("role", log)?;
    if let Some(each) = cells.number("gpu_request")? {
        let (n, fraction) = workers(each, 1)
            .ok_or_else(|| cells.fault("gpu_request", format!("the instance has {TOO_MANY_WORKERS}")))?;
        (row.n_workers, row.fraction) = (Some(n), fraction);
    }
    row.submitted_s = cells.number("creation_time")?;
    row.started_s = cells.number("scheduled_time")?;
    row.ended_s = cells.number("deletion_time")?;
    row.ran_s = row.started_s.zip(row.ended_s).map(|(start, end)| end - start);
    // A missing time lies outside the log: before it began, or after it ended.
    row.n_attempts = row.started_s.map(|_| 1);
    if row.ended_s.is_none() {
        row.state = State::Running;
    }
    Ok(row)
}
