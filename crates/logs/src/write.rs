//! Writing of a log's trace in pieces, each read back and compared before it is written.

use std::io::{self, Cursor};

use apportion::spec::{
    Source, SpecError, Trace, TraceForm, TraceOrder, WriteTraceError, read_trace, write_trace,
};
use apportion::throughput::Throughputs;
use thiserror::Error;

use crate::convert::{Converted, Converter};
use crate::form::Form;
use crate::normalized::write_rows;
use crate::read::{ReadOptions, read_log_from};
use crate::reading::Reading;
use crate::row::Seen;
use crate::rows::Rows;

/// Number of jobs or rows that are written at a time.
const PIECE: usize = 10_000;

/// Reason why a trace was not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The form of the trace cannot hold a job.
    #[error(transparent)]
    Form(#[from] WriteTraceError),
    /// The reader of traces refuses the text of a piece.
    #[error("what was written is not read back: {0}")]
    Unread(SpecError),
    /// The text of a piece is read back as different jobs.
    #[error("job `{id}` is not read back as it was written")]
    Changed {
        /// Id of the first job that differs.
        id: String,
    },
    /// The file cannot be written to.
    #[error("cannot be written")]
    Io(#[from] io::Error),
}

/// Losses of jobs that a form of trace cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotHeld {
    /// Number of jobs whose fraction of a step was cut off.
    pub n_cut_steps: usize,
    /// Number of jobs whose owner was left out.
    pub n_without_entity: usize,
}

/// Writes the jobs of a log as a trace. Each piece is read back and compared before it is given to `out`.
///
/// # Errors
/// If a job cannot be written, is not read back as it is, or `out` cannot be written to; `out` then holds a part.
pub fn write_jobs(
    out: &mut dyn io::Write,
    converter: &Converter<'_>,
    log: &Reading,
    converted: &Converted,
    form: TraceForm,
    throughputs: &Throughputs,
) -> Result<NotHeld, WriteError> {
    let mut not_held = NotHeld::default();
    for (number, piece) in converted.chosen.chunks(PIECE).enumerate() {
        let jobs = piece.iter().map(|chosen| converter.job(log, chosen)).collect();
        let trace = Trace { form, jobs };
        let written = write_trace(&trace, form, Some(throughputs))?;
        not_held.n_cut_steps += written.n_cut_steps;
        not_held.n_without_entity += written.n_without_entity;
        let source = Source::new("what was written", written.text);
        let back = read_trace(&source, Some(throughputs), TraceOrder::Refuse).map_err(WriteError::Unread)?;
        compare(&trace, &back)?;
        // Only the first piece has a header, where the form has one.
        let skipped = usize::from(number > 0 && form == TraceForm::Native);
        let text = source.text.split_inclusive('\n').take(skipped).map(str::len).sum::<usize>();
        out.write_all(&source.text.as_bytes()[text..])?;
    }
    Ok(not_held)
}

/// Writes rows as a normalized log. Each piece is read back and compared before it is given to `out`.
///
/// # Errors
/// Fails as [`write_jobs`] does.
pub fn write_log(out: &mut dyn io::Write, rows: &Rows) -> Result<(), WriteError> {
    for (number, piece) in rows.pieces(PIECE).enumerate() {
        let mut text = Vec::new();
        write_rows(&mut text, piece.clone())?;
        let header = text.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let skipped = if number > 0 { header } else { 0 };
        let options = ReadOptions::new(Form::Log);
        let back = read_log_from("what was written", Cursor::new(text.clone()), &options);
        let back = back.map_err(WriteError::Unread)?;
        let is_same = |one: &Seen<'_>, other: &Seen<'_>| one.id == other.id && one.says_the_same_as(other);
        let mut read = back.rows.iter();
        for row in piece {
            if !read.next().is_some_and(|back| is_same(&row, &back)) {
                return Err(WriteError::Changed { id: row.id.to_owned() });
            }
        }
        out.write_all(&text[skipped..])?;
    }
    Ok(())
}

/// Checks that the jobs read back are those written, as far as the form holds them.
fn compare(written: &Trace, back: &Trace) -> Result<(), WriteError> {
    for (one, other) in written.jobs.iter().zip(&back.jobs) {
        let same = one.job.job_type == other.job.job_type
            && one.job.scale_factor == other.job.scale_factor
            && (one.job.total_steps.get() - other.job.total_steps.get()).abs() <= 1.0
            && one.job.arrival == other.job.arrival
            && (written.form == TraceForm::Gavel
                || (one.id == other.id
                    && one.job.entity == other.job.entity
                    && one.job.weight.total_cmp(&other.job.weight).is_eq()));
        if !same {
            return Err(WriteError::Changed { id: one.id.clone() });
        }
    }
    if written.jobs.len() == back.jobs.len() {
        return Ok(());
    }
    let id = written.jobs.last().map(|job| job.id.clone()).unwrap_or_default();
    Err(WriteError::Changed { id })
}
