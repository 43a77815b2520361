//! Execution of the runs that a sweep still needs, with each kept as it ends.

use std::cell::RefCell;

use serde_json::json;

use crate::sweep::course::{Course, Task};
use crate::sweep::grid::Point;
use crate::sweep::run_error::RunError;
use crate::sweep::runner::{Runner, Summary};
use crate::sweep::simulation::Executor;
use crate::sweep::store::{Row, Store, StoreError};

/// Results of making runs.
#[derive(Debug)]
pub struct Made {
    /// Number of runs by status.
    pub summary: Summary,
    /// The last point whose next run was invalid, and why.
    pub refused: Option<(Point, RunError)>,
}

/// Makes the pending runs and those that follow from them. Each is in the store before the next result is taken.
///
/// # Errors
/// If the store cannot be written, or no threads can be had.
pub fn make(
    (course, pending): (&mut Course<'_>, Vec<Task>),
    store: &mut Store,
    executor: &Executor,
    runner: &Runner<'_>,
) -> Result<Made, StoreError> {
    let refused = RefCell::new(None);
    let summary = runner.run(
        pending,
        |task| {
            let mut report = |standing: &_| runner.progress.went_on(&task.point, standing);
            executor.execute(&task.run, &mut report)
        },
        |Task { point, run }, outcome, seconds| {
            store.keep(&Row {
                digest: run.digest.clone(),
                values: point.values.clone(),
                outcome: outcome.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                spec: run.spec.canonical(),
                data: json!(run.data).to_string(),
                seconds,
            })?;
            let task = Task { point: point.clone(), run: run.clone() };
            Ok(course.after(&task, outcome).unwrap_or_else(|error| {
                refused.replace(Some((point.clone(), error)));
                None
            }))
        },
    )?;
    Ok(Made { summary, refused: refused.into_inner() })
}
