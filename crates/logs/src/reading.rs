//! A log as far as it is read: rows, and counts of what was left out, doubtful or not understood.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apportion::spec::snapshot::NUMBER_MAX;
use apportion::spec::{Diagnostic, Place, SpecError};

use crate::clock::{Clock, Moment, Zone};
use crate::places::Places;
use crate::row::{Row, Seen};
use crate::rows::Rows;
use crate::tally::{Doubt, Reason, Tally, excerpt};

/// The most complaints that are kept: a log of another form has one in every line.
const COMPLAINTS_MAX: usize = 19;

/// The most unused names that are kept where entries name them, as Kueue's workloads name their resources.
const UNUSED_MAX: usize = 100;

/// The most characters of a line that are kept with a complaint.
const EXCERPT_MAX: usize = 1_000;

/// A log as far as it is read: its rows, and counts of the rest.
#[derive(Debug, Default)]
pub struct Reading {
    /// Name of the log in error messages.
    pub source: String,
    /// Number of lines or entries that were read as rows, including those left out.
    pub n_read: u64,
    /// Number of lines or entries that are parts of other rows: attempts, components, roles of a job.
    pub n_merged: u64,
    /// Rows in the log's order.
    pub rows: Rows,
    /// Rows that were left out, by reason.
    pub left_out: BTreeMap<Reason, Tally>,
    /// Doubts, with how many rows each is about.
    pub doubts: BTreeMap<Doubt, Tally>,
    /// The first complaints about rows that are not understood.
    pub complaints: Vec<Diagnostic>,
    /// Columns of the log that are not used.
    pub unused_columns: Vec<String>,
    pub(crate) clock: Clock,
    /// Position of the first row of each id, by the log's own ids.
    ids: Places,
    /// Position of the first row of each id whose first row was renamed.
    renamed: BTreeMap<Arc<str>, usize>,
    /// Rows of each id that several jobs have.
    again: BTreeMap<Arc<str>, Again>,
    /// Ids that end in an added number.
    numbered: BTreeSet<Arc<str>>,
}

/// Rows of an id that several jobs have.
#[derive(Debug, Default)]
struct Again {
    /// Positions of the rows by a digest of their contents.
    places: BTreeMap<u64, usize>,
    /// Number that was added to the last row's id.
    number: u32,
}

/// A message about a text that is not understood, and its position.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) place: Place,
    pub(crate) message: String,
}

impl Reading {
    pub(crate) fn new(source: &str, zone: Option<Zone>) -> Self {
        Self { source: source.to_owned(), clock: Clock::new(zone), ..Self::default() }
    }

    /// A shared copy of the text, as a normalized log holds it: trimmed and without control characters.
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        let text = text.trim();
        if text.chars().any(char::is_control) {
            let plain: String =
                text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
            return self.share(&plain);
        }
        self.rows.share(text)
    }

    /// Takes in a row. One that repeats an earlier row is left out; another job under the same id is renamed to `ID#2`.
    pub(crate) fn take(&mut self, mut row: Row) {
        let id = Arc::clone(&row.id);
        let times = [row.submitted_s, row.eligible_s, row.started_s, row.ended_s, row.ran_s];
        if times.into_iter().flatten().any(|time| !(-NUMBER_MAX..=NUMBER_MAX).contains(&time)) {
            let place = Place { line: usize::try_from(row.line).unwrap_or(usize::MAX), column: 1, width: 1 };
            let message = format!("a time of job `{}` is larger than {NUMBER_MAX:e} s", excerpt(&id));
            return self.complain_in(row.file.as_deref(), Fault { place, message }, "");
        }
        let at = self.rows.len();
        let first = self.row_of(&id);
        if self.is_there(first, &row) {
            return self.leave_out_row(Reason::Repeated, &row);
        }
        if first.is_some() || self.numbered.contains(&id) {
            self.doubt_row(Doubt::SameId, &row);
            let mut again = self.again.remove(&id).unwrap_or_else(|| {
                let places = first.map(|first| (self.rows.at(first).digest(), first));
                Again { places: places.into_iter().collect(), number: 1 }
            });
            let (name, number) = self.free_id(&id, again.number);
            again.number = number;
            again.places.entry(row.seen().digest()).or_insert(at);
            row.id = Arc::clone(&name);
            self.numbered.insert(name);
            self.again.insert(Arc::clone(&id), again);
        }
        if first.is_none() && row.id == id {
            self.ids.add(&id, at);
        } else if first.is_none() {
            self.renamed.insert(id, at);
        }
        self.rows.push(row);
    }

    /// Whether a row with the row's id and the same contents was taken in; `first` is the position of the first row of the
    /// id.
    fn is_there(&self, first: Option<usize>, row: &Row) -> bool {
        let among_several =
            self.again.get(&row.id).and_then(|again| again.places.get(&row.seen().digest()).copied());
        first.into_iter().chain(among_several).any(|at| self.rows.at(at).says_the_same_as(&row.seen()))
    }

    /// Takes a prefix off all ids. It told clusters apart, and the log turned out to be of one cluster.
    pub(crate) fn take_off_ids(&mut self, prefix: &str) {
        self.rows.take_off_ids(prefix);
        for tally in self.left_out.values_mut().chain(self.doubts.values_mut()) {
            if let Some(id) = tally.id.as_ref().and_then(|id| id.strip_prefix(prefix)) {
                tally.id = Some(id.to_owned());
            }
        }
    }

    /// An id with a number after it that no row has, and the number: the first free one after `last`.
    fn free_id(&self, id: &str, last: u32) -> (Arc<str>, u32) {
        let mut number = last + 1;
        loop {
            let name = format!("{id}#{number}");
            if self.row_of(&name).is_none() && !self.numbered.contains(name.as_str()) {
                return (name.into(), number);
            }
            number += 1;
        }
    }

    /// Position of the first row of an id of the log.
    pub(crate) fn row_of(&self, id: &str) -> Option<usize> {
        self.renamed.get(id).copied().or_else(|| self.ids.find(id, |at| self.rows.id(at)))
    }

    /// Counts a row that is not understood, and keeps the complaint if it is among the first.
    pub(crate) fn complain(&mut self, fault: Fault, text: &str) {
        self.complain_in(None, fault, text);
    }

    /// Counts a row that is not understood, of another file or, for `None`, of the log.
    fn complain_in(&mut self, file: Option<&str>, fault: Fault, text: &str) {
        let Fault { place, message } = fault;
        self.left_out.entry(Reason::NotUnderstood).or_default().count_in(file, place.line as u64, None);
        if self.is_full() {
            return;
        }
        // The part of a long line around the place.
        let n_before = if place.column > EXCERPT_MAX / 2 { place.column - EXCERPT_MAX / 4 } else { 0 };
        self.complaints.push(Diagnostic {
            message,
            source: file.unwrap_or(&self.source).to_owned(),
            line: place.line,
            column: place.column,
            excerpt: text.chars().skip(n_before).take(EXCERPT_MAX).collect(),
            n_before,
            width: place.width,
            help: None,
        });
    }

    /// Adds a name to the unused ones, once.
    pub(crate) fn note_unused(&mut self, name: &str) {
        let name = excerpt(name);
        if self.unused_columns.len() < UNUSED_MAX && !self.unused_columns.contains(&name) {
            self.unused_columns.push(name);
        }
    }

    /// Frees the memory that is needed for reading alone.
    pub(crate) fn forget_look_ups(&mut self) {
        (self.ids, self.renamed) = (Places::default(), BTreeMap::new());
        (self.numbered, self.again) = (BTreeSet::new(), BTreeMap::new());
        self.rows.forget_look_ups();
    }

    /// Whether no more complaints are kept.
    pub(crate) fn is_full(&self) -> bool {
        self.complaints.len() >= COMPLAINTS_MAX
    }

    /// Adds the left-out, doubtful and not understood rows and the unused columns of a second table of the same log.
    pub(crate) fn take_over(&mut self, other: Self) {
        let in_table = |tally| Tally { file: Some(other.source.clone()), ..tally };
        for (reason, tally) in other.left_out {
            self.left_out.entry(reason).or_default().add(&in_table(tally));
        }
        for (doubt, tally) in other.doubts {
            self.doubts.entry(doubt).or_default().add(&in_table(tally));
        }
        self.complaints.extend(other.complaints);
        self.unused_columns.extend(other.unused_columns);
    }

    /// Counts a row as left out.
    pub(crate) fn leave_out(&mut self, reason: Reason, line: u64, id: Option<&str>) {
        self.left_out.entry(reason).or_default().count(line, id);
    }

    /// Counts a row as doubtful.
    pub(crate) fn doubt(&mut self, doubt: Doubt, line: u64, id: Option<&str>) {
        self.doubts.entry(doubt).or_default().count(line, id);
    }

    /// Counts a row as left out, with the file that it is from.
    pub(crate) fn leave_out_row<T: AsRef<str>>(&mut self, reason: Reason, row: &Row<T>) {
        self.left_out.entry(reason).or_default().count_row(row);
    }

    /// Counts a row as doubtful, with the file that it is from.
    fn doubt_row<T: AsRef<str>>(&mut self, doubt: Doubt, row: &Row<T>) {
        self.doubts.entry(doubt).or_default().count_row(row);
    }

    /// The time that was read last, with doubts about it counted; none if it is the zero of time, which is no time of a job.
    pub(crate) fn checked_time(&mut self, moment: Moment, line: u64) -> Option<Moment> {
        if self.clock.was_zero {
            self.doubt(Doubt::ZeroTimes, line, None);
            return None;
        }
        if self.clock.was_naive {
            self.doubt(Doubt::NaiveTimes, line, None);
        }
        if self.clock.was_ambiguous {
            self.doubt(Doubt::AmbiguousTimes, line, None);
        }
        Some(moment)
    }

    /// Leaves out rows with contradictory times, once all are read, and counts doubts about the times of others.
    pub(crate) fn check_times(&mut self) {
        self.retain_rows(|row, log| {
            if row.contradicts_itself() {
                log.leave_out_row(Reason::Contradictory, row);
                return false;
            }
            if row.put_in_order() {
                log.doubt_row(Doubt::OutOfOrder, row);
            }
            if row.lacks_its_end() {
                log.doubt_row(Doubt::EndUnknown, row);
            }
            true
        });
    }

    /// Gives each row to `change`, which may change its numbers, may count it, and returns whether it stays.
    pub(crate) fn retain_rows(&mut self, mut change: impl FnMut(&mut Seen<'_>, &mut Self) -> bool) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.retain(|row| change(row, self));
        self.rows = rows;
    }

    /// Number of rows that are not understood.
    pub fn n_not_understood(&self) -> u64 {
        self.left_out.get(&Reason::NotUnderstood).map_or(0, |tally| tally.n)
    }

    /// Refuses a log with rows that are not understood; `help` says how to leave such rows out.
    ///
    /// # Errors
    /// If there is such a row: with the number of them, and the positions of the first.
    pub fn check_understood(&self, help: &str) -> Result<(), SpecError> {
        let n = self.n_not_understood();
        if n == 0 {
            return Ok(());
        }
        let rows = if n == 1 { "row" } else { "rows" };
        let is_elsewhere = |complaint: &Diagnostic| complaint.source != self.source;
        let table = if self.complaints.iter().any(is_elsewhere) { " and its table of jobs" } else { "" };
        let message = format!("{n} {rows} of the log{table} not understood, the first here:");
        let whole = SpecError::about(self.source.clone(), message, Some(help.to_owned()));
        let each = self.complaints.iter().map(|complaint| SpecError::from(complaint.clone()));
        SpecError::join(std::iter::once(whole).chain(each))
    }

    /// Names of worker types in the log, in alphabetical order.
    pub fn worker_types(&self) -> BTreeSet<&str> {
        self.rows.iter().filter_map(|row| row.worker_type).collect()
    }
}
