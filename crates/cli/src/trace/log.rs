//! The arguments by which a cluster's log is read as jobs, and their effects.

use std::str::FromStr;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::Session;
use crate::exit::Failure;
use crate::file::{Named, named};
use crate::paths::name_or_path;
use apportion::Cluster;
use apportion::spec::{Source, SpecError};
use apportion::throughput::Throughputs;
use apportion_logs::form::FORMS;
use apportion_logs::report::{Doubtful, Import, LeftOut};
use apportion_logs::tally::{Tally, counted};
use apportion_logs::{
    Converted, Converter, Form, ImportReport, ReadOptions, Reading, Rules, Window, Zone, read_log,
};

/// The most error messages about a log that are shown if rows are left out.
pub(super) const COMPLAINTS_SHOWN: usize = 5;

/// The most names of unused columns that are shown.
const COLUMNS_SHOWN: usize = 20;

/// The names of forms; Slurm's log also has the name of the scheduler.
fn forms() -> PossibleValuesParser {
    PossibleValuesParser::new(FORMS.map(|entry| {
        let value = PossibleValue::new(entry.name);
        if entry.form == Form::Sacct { value.alias("slurm") } else { value }
    }))
}

/// The flags by which a cluster's log is read.
#[derive(Args, Debug)]
pub(super) struct LogArguments {
    /// Take the jobs from a cluster's log of this form; `apportion trace forms` says what each is
    #[arg(long, value_name = "FORM", value_parser = forms())]
    from: Option<String>,
    /// The rules by which rows of a log become jobs, as a file; `apportion trace rules` prints those that are used by default
    #[arg(long, value_name = "FILE", requires = "from", value_parser = name_or_path())]
    rules: Option<String>,
    /// The time zone of times in the log that name no zone themselves, as Asia/Shanghai or +08:00
    #[arg(long, value_name = "ZONE", requires = "from", allow_hyphen_values = true, value_parser = Zone::from_str)]
    zone: Option<Zone>,
    /// PAI's table of jobs, which has their submissions
    #[arg(long, value_name = "FILE", requires = "from", value_parser = name_or_path())]
    job_table: Option<String>,
    /// Take only jobs that arrive in this span, as 7d..21d after the first row that becomes a job, or 2017-10-09..2017-10-16
    #[arg(long, value_name = "FROM..TO", requires = "from", value_parser = Window::from_str)]
    window: Option<Window>,
    /// The seed of the job types drawn for a log
    #[arg(long, default_value_t = 0, requires = "from")]
    seed: u64,
    /// Leave out rows of a log of which something is not understood, and say how many and which come first
    #[arg(long, requires = "from")]
    skip_unreadable: bool,
    /// Read a form that is refused otherwise, because its rows are no trainings
    #[arg(long, requires = "from")]
    force: bool,
}

/// A log that was read, with the rules for it.
pub(super) struct Given {
    pub(super) form: Form,
    pub(super) log: Reading,
    rules: Rules,
    rules_source: Source,
    window: Option<Window>,
    zone: Option<Zone>,
    pub(super) seed: u64,
}

/// The failure of an interrupt, if the user has asked to stop between two rows.
pub(super) fn check_interrupt(session: &Session) -> Result<(), Failure> {
    session.interrupt.check(|| "nothing was written".to_owned())
}

impl LogArguments {
    /// The files that are read in addition to the log.
    pub(super) fn files(&self) -> [Named<'_>; 2] {
        [named("--rules", self.rules.as_deref()), named("--job-table", self.job_table.as_deref())]
    }

    /// The log's form; none if the file is a trace.
    pub(super) fn form(&self) -> Option<Form> {
        self.from.as_deref().and_then(|name| if name == "slurm" { Some(Form::Sacct) } else { Form::of(name) })
    }

    /// The first flag that is about jobs, which are not made if the log itself is wanted; none if there is none.
    pub(super) fn about_jobs(&self) -> Option<&'static str> {
        let flags = [
            (self.rules.is_some(), "--rules"),
            (self.window.is_some(), "--window"),
            (self.seed != 0, "--seed"),
        ];
        flags.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
    }

    /// Refuses a call that reads two things from standard input.
    pub(super) fn check_one_input(&self, file: &str, throughputs: Option<&str>) -> Result<(), Failure> {
        let given = [
            ("the log", Some(file)),
            ("--throughputs", throughputs),
            ("--rules", self.rules.as_deref()),
            ("--job-table", self.job_table.as_deref()),
        ];
        let mut from = given.into_iter().filter(|(_, path)| *path == Some("-")).map(|(what, _)| what);
        if let (Some(one), Some(other)) = (from.next(), from.next()) {
            let message = format!("{one} and {other} are both `-`, and standard input is read once");
            return Err(Failure::usage(message, Some("name a file for one of them".to_owned())));
        }
        Ok(())
    }

    /// Reads the log at a path; none if no form is named.
    pub(super) fn read(&self, path: &str, session: &Session) -> Result<Option<Given>, Failure> {
        let Some(form) = self.form() else { return Ok(None) };
        if let Some(window) = &self.window {
            let about = |message: String| Failure::usage(format!("--window: {message}"), None);
            window.check(self.zone.as_ref()).map_err(about)?;
        }
        let (rules, rules_source) = match &self.rules {
            None => Rules::embedded()?,
            Some(path) => {
                let source = Source::load(path)?;
                (Rules::parse(&source)?, source)
            }
        };
        let mut options = ReadOptions::new(form);
        options.zone.clone_from(&self.zone);
        options.job_table.clone_from(&self.job_table);
        options.force = self.force;
        options.stop = Some(session.interrupt.flag());
        let read = read_log(path, &options);
        check_interrupt(session)?;
        let (log, window, zone) = (read?, self.window.clone(), self.zone.clone());
        Ok(Some(Given { form, log, rules, rules_source, window, zone, seed: self.seed }))
    }

    /// Refuses a log with rows that are not understood, unless they are to be left out: then notes their number.
    pub(super) fn check(&self, log: &Reading, session: &Session) -> Result<(), Failure> {
        if !self.skip_unreadable {
            return Ok(log.check_understood("`--skip-unreadable` leaves them out, and says so")?);
        }
        let n = log.n_not_understood();
        if n > 0 {
            session.note(format!("{} not understood and left out, the first:", counted(n, "row")));
            let each = log.complaints.iter().map(|complaint| SpecError::from(complaint.clone()));
            for complaint in each.take(COMPLAINTS_SHOWN) {
                session.note(complaint.to_string());
            }
        }
        Ok(())
    }
}

impl Given {
    /// The converter of the log to jobs.
    pub(super) fn converter<'a>(
        &'a self,
        throughputs: &'a Throughputs,
        session: &Session,
    ) -> Result<Converter<'a>, Failure> {
        let converter = Converter::new(throughputs, (&self.rules, &self.rules_source), self.seed)?;
        Ok(converter.until(session.interrupt.flag()))
    }

    /// Converts the log to a trace.
    pub(super) fn convert(&self, converter: &Converter<'_>, session: &Session) -> Result<Converted, Failure> {
        let converted = converter.convert(&self.log, self.window.as_ref(), self.zone.as_ref());
        check_interrupt(session).map(|()| converted)
    }

    /// The parts of its report.
    pub(super) fn import<'a>(
        &'a self,
        converted: &'a Converted,
        throughputs: &'a Throughputs,
        cluster: Option<&'a Cluster>,
    ) -> Import<'a> {
        Import { form: self.form, log: &self.log, converted, throughputs, seed: self.seed, cluster }
    }

    /// Refuses a log of which no job is left, with the reasons.
    pub(super) fn check_some(&self, report: &ImportReport) -> Result<(), Failure> {
        if report.n_jobs > 0 {
            return Ok(());
        }
        let reasons =
            report.left_out.iter().map(|left_out| format!("{}: {}", left_out.rows.n, left_out.words));
        let none = format!("no job is left of {} of the log", counted(report.n_rows_read, "row"));
        let message = std::iter::once(none).chain(reasons).collect::<Vec<_>>().join("; ");
        let doubt = report.doubts.iter().find(|doubt| doubt.doubt == apportion_logs::Doubt::NoneListed);
        let help = doubt.map(|doubt| doubt.words.to_owned());
        Err(SpecError::about(self.log.source.clone(), message, help).into())
    }
}

/// The error about a file that is no trace; if it looks like a log, with advice on reading it.
pub(super) fn like_a_log(source: &Source, error: SpecError) -> SpecError {
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    match Form::like(first) {
        Some(form) => {
            let help = format!("`--from {}` reads it", form.name());
            SpecError::about(
                source.name.clone(),
                format!("a log of the form `{}`, no trace", form.name()),
                Some(help),
            )
        }
        None => error,
    }
}

/// The outcome of reading a log, in sentences.
pub(super) fn sentences(report: &ImportReport) -> Vec<String> {
    let first = |rows: &Tally| {
        let id = rows.id.as_ref().map_or_else(String::new, |id| format!(", `{id}`"));
        rows.place().map_or_else(String::new, |place| format!(" (first: {place}{id})"))
    };
    let mut lines = vec![counts(report)];
    for LeftOut { words, rows, .. } in &report.left_out {
        lines.push(format!("  {} left out: {words}{}", counted(rows.n, "row"), first(rows)));
    }
    lines.extend(report.of_jobs().into_iter().map(|said| format!("  {said}")));
    for Doubtful { words, rows, .. } in &report.doubts {
        lines.push(format!("doubtful ({}): {words}{}", rows.n, first(rows)));
    }
    lines.extend(not_used(&report.unused_columns));
    lines
}

/// The outcome of reading a log in sentences, without the parts that are in tables of left-out and doubtful rows.
pub(super) fn beside_tables(report: &ImportReport) -> Vec<String> {
    let lines =
        std::iter::once(counts(report)).chain(report.of_jobs()).chain(not_used(&report.unused_columns));
    lines.map(|line| line + ".").collect()
}

/// The numbers of rows that were read, and that became jobs, parts of jobs and neither.
fn counts(report: &ImportReport) -> String {
    let n_jobs = counted(report.n_jobs as u64, "job");
    let n_left_out = counted(report.n_left_out(), "row");
    let merged = match report.n_rows_merged {
        0 => String::new(),
        n => format!(", {n} more that are attempts, components or roles of others"),
    };
    format!("{} read, {n_jobs}, {n_left_out} left out{merged}", counted(report.n_rows_read, "row"))
}

/// The names of unused columns, in words; none if all are used.
pub(super) fn not_used(columns: &[String]) -> Option<String> {
    if columns.is_empty() {
        return None;
    }
    let shown: Vec<&str> = columns.iter().take(COLUMNS_SHOWN).map(String::as_str).collect();
    let n_more = columns.len() - shown.len();
    let more = if n_more > 0 { format!(", and {n_more} more") } else { String::new() };
    Some(format!("columns not used: {}{more}", shown.join(", ")))
}
