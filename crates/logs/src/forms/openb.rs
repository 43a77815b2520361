//! Alibaba's pods of 2023, which ask for parts of an accelerator or for whole ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use apportion::spec::SpecError;

use crate::form::Form;
use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::row::{Row, State};
use crate::table::{Cells, Columns, is_nothing};
use crate::tally::Doubt;

const COLUMNS: Columns = Columns {
    form: Some(Form::Openb),
    required: &["name", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"],
    optional: &["gpu_spec", "qos", "pod_phase"],
    ignored: &["cpu_milli", "memory_mib"],
    without_header: &[],
    separator: ',',
    with_separator: &[],
    advice: "",
};

const PHASES: [(&str, State); 4] = [
    ("Succeeded", State::Completed),
    ("Failed", State::Failed),
    ("Running", State::Running),
    ("Pending", State::Pending),
];

pub(crate) fn read(input: &mut Input, log: &mut Reading) -> Result<(), SpecError> {
    COLUMNS.read_rows(input, log, row)
}

fn row(cells: &Cells<'_>, log: &mut Reading) -> Result<Row, Fault> {
    let mut row = Row::new(cells.id("name")?, cells.line);
    row.class = cells.name("qos", log)?;
    row.worker_type = cells.name("gpu_spec", log)?.and_then(|types| alternatives(&types, log));
    row.state = cells.word("pod_phase", &PHASES)?.unwrap_or(State::Unknown);
    row.n_workers = cells.count("num_gpu")?;
    // The part counts only where one accelerator is asked for: a pod with several has each of them whole.
    let thousandths = cells.number("gpu_milli")?;
    if let (Some(0), Some(thousandths)) =
        (row.n_workers, thousandths.filter(|thousandths| *thousandths > 0.0))
    {
        let message = format!("{thousandths} thousandths of 0 accelerators, expected 0 of them");
        return Err(cells.fault("gpu_milli", message));
    }
    let thousandths = thousandths.filter(|thousandths| (*thousandths - 1000.0).abs() > 1e-6);
    if row.n_workers.is_some_and(|n| n > 1) && thousandths.is_some() {
        log.doubt(Doubt::PartOfSeveral, row.line, Some(&row.id));
    }
    if row.n_workers == Some(1)
        && let Some(thousandths) = thousandths
    {
        if !(thousandths > 0.0 && thousandths < 1000.0) {
            let message = format!("{thousandths} thousandths of one accelerator, expected from 1 to 1000");
            return Err(cells.fault("gpu_milli", message));
        }
        row.fraction = Some(thousandths / 1000.0);
    }
    row.submitted_s = cells.number("creation_time")?;
    row.started_s = cells.number("scheduled_time")?;
    row.ended_s = cells.number("deletion_time")?;
    row.ran_s = row.started_s.zip(row.ended_s).map(|(start, end)| end - start);
    row.n_attempts = row.starts_of_one_run(false);
    row.n_nodes = row.started_s.map(|_| 1);
    Ok(row)
}

/// Alternative worker types, each once; none if any type would do.
fn alternatives(types: &str, log: &mut Reading) -> Option<Arc<str>> {
    let mut known = BTreeSet::new();
    let names = types.split('|').map(str::trim).filter(|name| !name.is_empty() && !is_nothing(name));
    let each: Vec<&str> = names.filter(|name| known.insert(*name)).collect();
    (!each.is_empty()).then(|| log.share(&each.join("|")))
}
