//! Tables with a header, read record by record: cells by the names of their columns.

use std::collections::BTreeSet;
use std::sync::Arc;

use apportion::spec::snapshot::NUMBER_MAX;
use apportion::spec::trace::field::{Field, split_at, split_commas};
use apportion::spec::{Place, SpecError};

use crate::date;
use crate::form::{Form, FormEntry, other_pai_table, pai_table_of};
use crate::input::{Input, is_error_line};
use crate::reading::{Fault, Reading};
use crate::row::Row;
use crate::tally::{Doubt, counted, excerpt};

/// Words of logs for a missing value, in any case.
const NOTHING: [&str; 6] = ["none", "null", "nan", "n/a", "-", "unknown"];

/// The columns of a form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    /// Form with these columns; none for tables that are not logs.
    pub(crate) form: Option<Form>,
    /// Columns that must be there.
    pub(crate) required: &'static [&'static str],
    /// Columns that are read where they are there.
    pub(crate) optional: &'static [&'static str],
    /// Columns that the form is known to have and that are not used.
    pub(crate) ignored: &'static [&'static str],
    /// All columns in order, for tables without a header; none of a form that always has one.
    pub(crate) without_header: &'static [&'static str],
    /// Separator of cells.
    pub(crate) separator: char,
    /// Columns in which text may contain the separator without quotes. If there are any, so may text in columns that the
    /// form does not know.
    pub(crate) with_separator: &'static [&'static str],
    /// Advice where columns are missing or too many: the end of the sentence about what is expected.
    pub(crate) advice: &'static str,
}

/// The columns that a table has.
struct Header {
    /// Columns that are read, with their positions.
    names: Vec<(&'static str, usize)>,
    n_columns: usize,
    /// Whether the first line is a header.
    is_a_line: bool,
    /// Columns in which text may contain the separator, with their positions.
    with_separator: Vec<(String, usize)>,
}

/// Cells of one record.
pub(crate) struct Cells<'a> {
    /// Number of its first line, from 1.
    pub(crate) line: u64,
    /// Text of the record.
    pub(crate) text: &'a str,
    names: &'a [(&'static str, usize)],
    fields: &'a [Field<'a>],
}

/// A value of a log: present, missing (`None`) or not understood (`Err`).
pub(crate) type Value<T> = Result<Option<T>, Fault>;

impl Columns {
    /// Gives each record of a table to `take`. Its columns may be in any order.
    pub(crate) fn read(
        &self,
        input: &mut Input,
        log: &mut Reading,
        mut take: impl FnMut(&Cells<'_>, &mut Reading),
    ) -> Result<(), SpecError> {
        let mut header: Option<Header> = None;
        let name = input.name.clone();
        while let Some((line, text)) = self.record(input, header.as_ref())? {
            if self.separator == '|' && is_error_line(text.as_bytes()) {
                log.doubt(Doubt::ErrorLine, line, None);
                continue;
            }
            let number = usize::try_from(line).unwrap_or(usize::MAX);
            let split = match self.separator {
                ',' => split_commas(text, number),
                by => Ok(split_at(text, by, number)),
            };
            let mut fields = match split {
                Ok(fields) => fields,
                Err((place, message)) if header.is_none() => {
                    let help = "the first line names the columns".to_owned();
                    return Err(refused((&name, text), place, message.to_owned(), help));
                }
                Err((place, message)) => {
                    log.n_read += 1;
                    log.complain(Fault { place, message: message.to_owned() }, text);
                    continue;
                }
            };
            if text.contains('\n') {
                for field in &mut fields {
                    field.place = within(text, field.place);
                }
            }
            let header = match &header {
                Some(header) if header.is_a_line && header.is_again(&fields) => {
                    log.doubt(Doubt::RepeatedHeader, line, None);
                    continue;
                }
                Some(header) => header,
                None => {
                    let header = &*header.insert(self.header(&name, (line, text), &fields, log)?);
                    if header.is_a_line {
                        continue;
                    }
                    header
                }
            };
            log.n_read += 1;
            if text.contains('\n') {
                let is_quoted = self.separator == ',';
                let doubt = if is_quoted { Doubt::SeveralLines } else { Doubt::BrokenLines };
                log.doubt(doubt, line, None);
            }
            if let ([(_, at)], true) = (&header.with_separator[..], fields.len() > header.n_columns) {
                join(&mut fields, *at, header.n_columns, self.separator);
            }
            if fields.len() != header.n_columns {
                let place = fields[fields.len() - 1].place;
                let message = self.miscounted(header, fields.len());
                log.complain(Fault { place, message }, line_of(text, number, place));
                continue;
            }
            take(&Cells { line, text, names: &header.names, fields: &fields }, log);
        }
        if header.is_none() {
            return Err(SpecError::about(name, "the log is empty", None));
        }
        Ok(())
    }

    /// The next record of a table, with the number of its first line.
    fn record<'i>(
        &self,
        input: &'i mut Input,
        header: Option<&Header>,
    ) -> Result<Option<(u64, &'i str)>, SpecError> {
        if self.separator != ',' {
            return match header {
                Some(header) => {
                    let ends_in_text = header.with_separator.iter().any(|(_, at)| at + 1 == header.n_columns);
                    input.joined(self.separator, (header.n_columns, ends_in_text))
                }
                None => input.line(),
            };
        }
        input.record(|text| {
            let n_columns = header.map(|header| header.n_columns);
            split_commas(text, 1).is_ok_and(|fields| n_columns.is_none_or(|n| fields.len() == n))
        })
    }

    /// Makes each record a row of the log; a record that is not understood becomes a complaint.
    pub(crate) fn read_rows(
        &self,
        input: &mut Input,
        log: &mut Reading,
        row: impl Fn(&Cells<'_>, &mut Reading) -> Result<Row, Fault>,
    ) -> Result<(), SpecError> {
        self.read(input, log, |cells, log| match row(cells, log) {
            Ok(row) => log.take(row),
            Err(fault) => cells.complain(fault, log),
        })
    }

    /// Message about a line with too few or too many cells.
    fn miscounted(&self, header: &Header, n: usize) -> String {
        let message = format!("{}, expected {}", counted(n as u64, "column"), header.n_columns);
        if header.with_separator.is_empty() {
            return message;
        }
        let names: Vec<String> =
            header.with_separator.iter().take(4).map(|(name, _)| format!("`{name}`")).collect();
        let names = names.join(", ");
        let by = self.separator;
        if n < header.n_columns {
            return format!(
                "{message}: the line is cut off, or a text holds the end of a line; ask for no {names}{}",
                self.advice
            );
        }
        format!("{message}: a text holds `{by}`, and of which column is not known: {names}{}", self.advice)
    }

    /// Help for a first line that lacks a column: the expected columns, and what may be wrong.
    fn expected(&self, missing: &str, text: &str, columns: &[&str]) -> String {
        let known = [self.required, self.optional].concat().join(", ");
        let expected = format!("expected {known}{}", self.advice);
        let parts = |by: char| text.split(by).map(|name| name.trim().trim_matches('"'));
        let other = [(';', "`;`"), ('\t', "tabs"), ('|', "`|`"), (',', "`,`")]
            .into_iter()
            .find(|(by, _)| *by != self.separator && parts(*by).any(|name| name == missing));
        if let Some((_, by)) = other {
            let convert = format!(
                "save the table with `{}`, as by `python3 -c 'import csv, sys; \
                 csv.writer(sys.stdout).writerows(csv.reader(sys.stdin, delimiter=\";\"))' <OLD >NEW`",
                self.separator
            );
            let convert =
                if by == "`;`" && self.separator == ',' { format!("; {convert}") } else { String::new() };
            return format!(
                "columns are separated by {by}, expected `{}`{convert}; {expected}",
                self.separator
            );
        }
        if text.trim_start().starts_with("sep=") {
            return format!("`sep=` is a line for Excel: leave it out; {expected}");
        }
        match columns.iter().find(|name| name.eq_ignore_ascii_case(missing)) {
            Some(name) => format!("there is `{}`; {expected}", excerpt(name)),
            None => expected,
        }
    }

    /// The header that the first line is or implies.
    fn header(
        &self,
        name: &str,
        (line, text): (u64, &str),
        fields: &[Field<'_>],
        log: &mut Reading,
    ) -> Result<Header, SpecError> {
        let there: Vec<&str> = fields.iter().map(|field| field.text.trim()).collect();
        let has_header =
            self.without_header.is_empty() || self.required.iter().any(|name| there.contains(name));
        let columns = if has_header { &there[..] } else { self.without_header };
        let place = Place { line: usize::try_from(line).unwrap_or(0), column: 1, width: 1 };
        if let Some((other, own)) = other_pai_table(&there, self.without_header) {
            let message = format!("its columns are those of PAI's `{other}`, expected those of `{own}`");
            let help = "the log of the form `pai` is `pai_task_table.csv`, and its table of jobs `pai_job_table.csv`".to_owned();
            return Err(refused((name, text), place, message, help));
        }
        let refuse = |message: String, help: String| {
            let help = match Form::like(text).map(Form::entry) {
                Some(FormEntry { name, refused: Some(why), .. }) => {
                    format!("its columns are those of the form `{name}`, which is not read: {why}")
                }
                Some(FormEntry { name, .. }) => format!("its columns are those of the form `{name}`; {help}"),
                None => help,
            };
            refused((name, text), place, message, help)
        };
        if self.separator == '|' && text.trim_start().starts_with('{') {
            let message = "it is JSON, as `sacct --json` prints it, which is not read".to_owned();
            return Err(refuse(message, self.advice.trim_start_matches("; ").to_owned()));
        }
        if self.separator != ',' && !text.contains(self.separator) {
            let message = format!("columns are not separated by `{}`", self.separator);
            return Err(refuse(message, format!("`sacct -P` separates them so{}", self.advice)));
        }
        if let Some(missing) = self.required.iter().find(|name| !columns.contains(name)) {
            return Err(refuse(format!("no column `{missing}`"), self.expected(missing, text, columns)));
        }
        if let Some((form, other)) = self.form.zip(Form::like(text)).filter(|(form, other)| form != other) {
            let (form, other) = (form.name(), other.name());
            let message = format!("a log of the form `{other}`, expected one of the form `{form}`");
            return Err(refuse(message, "name the form that it is of, or give another log".to_owned()));
        }
        if fields.len() != columns.len() {
            let message =
                format!("{} columns, expected {} as in {}", fields.len(), columns.len(), columns.join(", "));
            let other = pai_table_of(fields.len())
                .map_or_else(String::new, |other| format!(", and `{other}` {}", fields.len()));
            return Err(refuse(message, format!("a table without a header has just these{other}")));
        }
        let mut there = BTreeSet::new();
        if let Some(twice) = columns.iter().find(|name| !name.is_empty() && !there.insert(**name)) {
            let message = format!("two columns `{}`", excerpt(twice));
            return Err(refuse(message, "name each column once".to_owned()));
        }
        let place = |name: &&'static str| Some((*name, columns.iter().position(|other| other == name)?));
        let names: Vec<_> = self.required.iter().chain(self.optional).filter_map(place).collect();
        let is_known = |name: &str| {
            name.is_empty()
                || [self.required, self.optional, self.ignored].iter().any(|of| of.contains(&name))
        };
        let mut with_separator = Vec::new();
        for (at, name) in columns.iter().enumerate() {
            if !is_known(name) {
                log.unused_columns.push(excerpt(name));
            }
            if !self.with_separator.is_empty() && (!is_known(name) || self.with_separator.contains(name)) {
                with_separator.push((excerpt(name), at));
            }
        }
        Ok(Header { names, n_columns: columns.len(), is_a_line: has_header, with_separator })
    }
}

/// Line and column of a position in a record of several lines, from a column that counts through all of them.
fn within(record: &str, place: Place) -> Place {
    let before: String = record.chars().take(place.column.saturating_sub(1)).collect();
    let Some((lines, last)) = before.rsplit_once('\n') else {
        let width = record.lines().next().map_or(0, |line| line.chars().count());
        return Place { width: place.width.min((width + 1).saturating_sub(place.column)).max(1), ..place };
    };
    Place { line: place.line + lines.matches('\n').count() + 1, column: last.chars().count() + 1, width: 1 }
}

/// The line of a record on which a position is; the record begins at line `first`.
fn line_of(record: &str, first: usize, place: Place) -> &str {
    record.split('\n').nth(place.line.saturating_sub(first)).unwrap_or_default()
}

/// Error that refuses a table because of its first line.
fn refused((name, text): (&str, &str), place: Place, message: String, help: String) -> SpecError {
    let mut refused = SpecError::about(name, message, Some(help));
    for diagnostic in &mut refused.diagnostics {
        (diagnostic.line, diagnostic.column, diagnostic.width) = (place.line, place.column, place.width);
        diagnostic.excerpt = text.chars().take(1_000).collect();
    }
    refused
}

/// Joins the parts of a text that was split at separators in it, so that there are as many cells as columns.
fn join(fields: &mut Vec<Field<'_>>, at: usize, n_columns: usize, separator: char) {
    let n_parts = fields.len() - n_columns + 1;
    let texts: Vec<&str> = fields[at..at + n_parts].iter().map(|field| &*field.text).collect();
    let text = texts.join(&separator.to_string());
    let place = Place { width: text.chars().count().max(1), ..fields[at].place };
    fields.splice(at..at + n_parts, [Field { text: text.into(), place }]);
}

impl Header {
    /// Whether a record repeats the header.
    fn is_again(&self, fields: &[Field<'_>]) -> bool {
        self.names.iter().all(|(name, at)| fields.get(*at).is_some_and(|field| field.text.trim() == *name))
    }
}

impl Cells<'_> {
    fn field(&self, column: &str) -> Option<&Field<'_>> {
        let (_, at) = self.names.iter().find(|(name, _)| *name == column)?;
        self.fields.get(*at)
    }

    /// The line on which a fault is.
    pub(crate) fn line_text(&self, fault: &Fault) -> &str {
        line_of(self.text, usize::try_from(self.line).unwrap_or(usize::MAX), fault.place)
    }

    /// Counts the record as not understood.
    pub(crate) fn complain(&self, fault: Fault, log: &mut Reading) {
        let text = self.line_text(&fault);
        log.complain(fault, text);
    }

    /// Position of a column's cell; the start of the record if the table has no such column.
    pub(crate) fn place(&self, column: &str) -> Place {
        let start = Place { line: usize::try_from(self.line).unwrap_or(usize::MAX), column: 1, width: 1 };
        self.field(column).map_or(start, |field| field.place)
    }

    /// A fault at a column's cell.
    pub(crate) fn fault(&self, column: &str, message: impl Into<String>) -> Fault {
        Fault { place: self.place(column), message: message.into() }
    }

    /// The trimmed text of a cell; none if it is blank or missing.
    pub(crate) fn raw(&self, column: &str) -> Option<&str> {
        self.field(column).map(|field| field.text.trim()).filter(|text| !text.is_empty())
    }

    /// Whether the table has the column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.field(column).is_some()
    }

    fn value<T>(&self, column: &str, expected: &str, parse: impl FnOnce(&str) -> Option<T>) -> Value<T> {
        self.value_or(column, |_| expected, parse)
    }

    /// The value of a cell; `expected` describes the right value where the text is none.
    fn value_or<'e, T>(
        &self,
        column: &str,
        expected: impl FnOnce(&str) -> &'e str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Value<T> {
        let Some(text) = self.raw(column).filter(|text| !is_nothing(text)) else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| {
            let shown = Field::shortened(text);
            self.fault(column, format!("{column} is `{shown}`, expected {}", expected(text)))
        })
    }

    /// A name: any text without control characters.
    pub(crate) fn name(&self, column: &str, log: &mut Reading) -> Value<Arc<str>> {
        let Some(text) = self.raw(column) else { return Ok(None) };
        if text.chars().any(char::is_control) {
            let shown = Field::shortened(text);
            return Err(self.fault(
                column,
                format!("{column} is `{shown}`, expected a name without control characters"),
            ));
        }
        Ok(Some(log.share(text)))
    }

    /// The name of a job, which must be there. Unlike other names it is not shared: no other row has it.
    pub(crate) fn id(&self, column: &str) -> Result<Arc<str>, Fault> {
        match self.raw(column) {
            None => Err(self.fault(column, "a job without a name")),
            Some(text) if text.chars().any(char::is_control) => {
                let shown = Field::shortened(text);
                Err(self.fault(
                    column,
                    format!("{column} is `{shown}`, expected a name without control characters"),
                ))
            }
            Some(text) => Ok(text.into()),
        }
    }

    /// A number of at least 0.
    pub(crate) fn number(&self, column: &str) -> Value<f64> {
        self.value(column, "a number from 0 to 1e15", number)
    }

    /// A number of any sign.
    pub(crate) fn signed(&self, column: &str) -> Value<f64> {
        self.value(column, "a number from -1e15 to 1e15", |text| {
            text.parse().ok().filter(|number: &f64| number.abs() <= NUMBER_MAX).map(|number| number + 0.0)
        })
    }

    /// A whole number, possibly with a fraction of zeros.
    pub(crate) fn count(&self, column: &str) -> Value<u32> {
        self.value(column, "a whole number", count)
    }

    /// A duration as `[days-]hours:minutes:seconds`, or in s.
    pub(crate) fn elapsed(&self, column: &str) -> Value<f64> {
        self.value(column, "a duration such as 1-02:03:04, or in s", date::elapsed_s)
    }

    /// Dates and times in the order in which they happened, s since 1970; of two readings the one that is in order.
    pub(crate) fn times<const N: usize>(
        &self,
        columns: [&str; N],
        log: &mut Reading,
    ) -> Result<[Option<f64>; N], Fault> {
        let (mut times, mut last) = ([None; N], None);
        for (time, column) in times.iter_mut().zip(columns) {
            let moment = self.value_or(column, date::expected, |text| log.clock.moment(text))?;
            if let Some(moment) = moment.and_then(|moment| log.checked_time(moment, self.line)) {
                (*time, last) = (Some(moment.after(last)), Some(moment.after(last)));
            }
        }
        Ok(times)
    }

    /// The value of one of a form's words.
    pub(crate) fn word<T: Copy>(&self, column: &str, words: &[(&str, T)]) -> Value<T> {
        let Some(text) = self.raw(column) else { return Ok(None) };
        match words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None if is_nothing(text) => Ok(None),
            None => {
                let shown = Field::shortened(text);
                let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                let expected = known.join(", ");
                Err(self.fault(column, format!("{column} is `{shown}`, expected one of {expected}")))
            }
        }
    }
}

/// Whether a text stands for a missing value.
pub(crate) fn is_nothing(text: &str) -> bool {
    NOTHING.iter().any(|nothing| nothing.eq_ignore_ascii_case(text))
}

/// A number of at least 0.
pub(crate) fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number| (0.0..=NUMBER_MAX).contains(number)).map(|number: f64| number + 0.0)
}

/// A whole number, possibly with a fraction of zeros.
pub(crate) fn count(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    whole.parse().ok().filter(|_| fraction.bytes().all(|byte| byte == b'0'))
}
