//! Alibaba's jobs of 2026: one line per job, each with several workers of some accelerators.

use apportion::spec::SpecError;

use crate::form::Form;
use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::row::{Row, TOO_MANY_WORKERS};
use crate::table::{Cells, Columns, is_nothing};

const COLUMNS: Columns = Columns {
    form: Some(Form::SpotGpu),
    required: &["job_name", "gpu_request", "worker_num", "submit_time", "duration"],
    optional: &["organization", "gpu_model", "job_type"],
    ignored: &["cpu_request"],
    without_header: &[],
    separator: ',',
    with_separator: &[],
    advice: "",
};

pub(crate) fn read(input: &mut Input, log: &mut Reading) -> Result<(), SpecError> {
    COLUMNS.read_rows(input, log, row)
}

fn row(cells: &Cells<'_>, log: &mut Reading) -> Result<Row, Fault> {
    let mut row = Row::new(cells.id("job_name")?, cells.line);
    row.group = cells.name("organization", log)?;
    row.class = cells.name("job_type", log)?;
    row.worker_type = cells.name("gpu_model", log)?.filter(|kind| !is_nothing(kind));
    let per_member = cells.number("gpu_request")?;
    if let Some((each, members)) = per_member.zip(cells.count("worker_num")?) {
        let (n, fraction) = workers(each, members)
            .ok_or_else(|| cells.fault("gpu_request", format!("the job has {TOO_MANY_WORKERS}")))?;
        (row.n_workers, row.fraction) = (Some(n), fraction);
    }
    row.submitted_s = cells.signed("submit_time")?;
    row.ran_s = cells.signed("duration")?;
    Ok(row)
}

/// Whole workers of a job, and the part of each that it asked for: `n_members` members, each with `per_member` accelerators.
/// Members that ask for one and a half have two each, three quarters of both. None from 2³² workers on.
pub(super) fn workers(per_member: f64, n_members: u32) -> Option<(u32, Option<f64>)> {
    let each = per_member.ceil();
    let n = each * f64::from(n_members);
    // A job without members has no part.
    let fraction = if n_members == 0 { 1.0 } else { per_member / each };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the largest")]
    (n <= f64::from(u32::MAX)).then_some((n as u32, (fraction < 1.0).then_some(fraction)))
}
