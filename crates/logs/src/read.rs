//! Reading of a log in one of its forms.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use apportion::spec::SpecError;

use crate::clock::Zone;
use crate::form::Form;
use crate::forms;
use crate::input::Input;
use crate::reading::Reading;

/// Options for reading a log.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Form of the log.
    pub form: Form,
    /// Zone of times that do not name one; without it they are taken as UTC, and counted as doubtful.
    pub zone: Option<Zone>,
    /// Path of PAI's table of jobs.
    pub job_table: Option<String>,
    /// Whether to read a form that is otherwise refused.
    pub force: bool,
    /// A flag: once it is raised, reading ends with an error, between two rows.
    pub stop: Option<Arc<AtomicBool>>,
}

impl ReadOptions {
    /// Options for a form, with defaults for the rest.
    pub fn new(form: Form) -> Self {
        Self { form, zone: None, job_table: None, force: false, stop: None }
    }
}

/// Reads the log at a path, packed by gzip or not; `-` is standard input.
///
/// # Errors
/// If it cannot be read, is not of the form, or is refused. A row that is not understood is no error: it is among the
/// [complaints](Reading::complaints) and not among the rows.
pub fn read_log(path: &str, options: &ReadOptions) -> Result<Reading, SpecError> {
    refuse(path, options)?;
    read(&mut Input::open(path)?, options)
}

/// Reads a log from a reader; `name` is its name in error messages.
///
/// ```
/// use apportion_logs::form::Form;
/// use apportion_logs::read::{ReadOptions, read_log_from};
/// let text = "JobID|User|Submit|Start|End|ElapsedRaw|State|AllocTRES\n\
///     7|ann|2026-03-01T08:00:00Z|2026-03-01T08:05:00Z|2026-03-01T09:05:00Z|3600|COMPLETED|gres/gpu:a100=2,gres/gpu=2\n";
/// let log = read_log_from("sacct.txt", text.as_bytes(), &ReadOptions::new(Form::Sacct))?;
/// assert_eq!((log.rows.at(0).n_workers, log.rows.at(0).ran_s), (Some(2), Some(3600.0)));
/// # Ok::<(), apportion::spec::SpecError>(())
/// ```
///
/// # Errors
/// Fails as [`read_log`] does.
pub fn read_log_from(
    name: &str,
    from: impl Read + 'static,
    options: &ReadOptions,
) -> Result<Reading, SpecError> {
    refuse(name, options)?;
    read(&mut Input::new(name, Box::new(from))?, options)
}

fn refuse(name: &str, options: &ReadOptions) -> Result<(), SpecError> {
    let Some(reason) = options.form.entry().refused else { return Ok(()) };
    let can_be_read = options.form == Form::Dlrm;
    if can_be_read && options.force {
        return Ok(());
    }
    let help = if can_be_read {
        "`--force` reads it all the same"
    } else {
        "there is no reader that could be trusted"
    };
    let message = format!("a log of the form `{}` is not read: {reason}", options.form.name());
    Err(SpecError::about(name, message, Some(help.to_owned())))
}

fn read(input: &mut Input, options: &ReadOptions) -> Result<Reading, SpecError> {
    input.until(options.stop.clone());
    let mut log = Reading::new(&input.name, options.zone.clone());
    if let (Some(table), form) = (&options.job_table, options.form)
        && form != Form::Pai
    {
        let message = format!("a log of the form `{}` has no table of jobs", form.name());
        let help = "only the form `pai` has one".to_owned();
        return Err(SpecError::about(table.clone(), message, Some(help)));
    }
    match options.form {
        Form::Log => forms::log::read(input, &mut log)?,
        Form::Sacct => forms::sacct::read(input, &mut log)?,
        Form::Philly => forms::philly::read(input, &mut log)?,
        Form::Helios => forms::cluster_log::helios(input, &mut log)?,
        Form::Acme => forms::cluster_log::acme(input, &mut log)?,
        Form::SpotGpu => forms::spot::read(input, &mut log)?,
        Form::Openb => forms::openb::read(input, &mut log)?,
        Form::Kueue => forms::kueue::read(input, &mut log)?,
        Form::Dlrm => forms::dlrm::read(input, &mut log)?,
        Form::Pai => {
            let mut table = options.job_table.as_deref().map(Input::open).transpose()?;
            if let Some(table) = &mut table {
                table.until(options.stop.clone());
            }
            forms::pai::read(input, table.as_mut(), &mut log)?;
        }
        Form::Gpu2026 | Form::SuperCloud => {}
    }
    log.check_times();
    log.forget_look_ups();
    Ok(log)
}

/// Call of `sacct` whose output the form `sacct` is, with `DATE` in the place of the first day.
pub const SACCT_COMMAND: &str = forms::sacct::COMMAND;
