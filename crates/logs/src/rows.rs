//! The rows of a log, kept in little memory: numbers without `Option`s, and each text once.

use std::sync::Arc;

use crate::places::Places;
use crate::row::{Row, Seen, State};

/// Place of a missing text.
const NONE: u32 = u32::MAX;

/// Rows of a log. They are given with borrowed texts.
#[derive(Debug, Default)]
pub struct Rows {
    kept: Vec<Kept>,
    texts: Texts,
}

/// A row in its compact form.
#[derive(Debug)]
struct Kept {
    id: Arc<str>,
    /// Positions of name, user, group, worker type, class and file among the texts; [`NONE`] for a missing one.
    texts: [u32; 6],
    numbers: Numbers,
}

/// Numbers and state of a row.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    /// Submission, eligibility, start, end, running time, all in s, and fraction; NaN for a missing one.
    real: [f64; 6],
    line: u64,
    /// Workers, nodes and attempts; `is_there` says which of them are known.
    whole: [u32; 3],
    is_there: [bool; 3],
    state: State,
}

/// Texts, each kept once.
#[derive(Debug, Default)]
struct Texts {
    all: Vec<Arc<str>>,
    places: Places,
}

impl Texts {
    fn place(&mut self, text: &str) -> usize {
        if let Some(place) = self.places.find(text, |place| &self.all[place]) {
            return place;
        }
        self.all.push(text.into());
        self.places.add(text, self.all.len() - 1);
        self.all.len() - 1
    }

    fn place_of<T: AsRef<str>>(&mut self, text: Option<&T>) -> u32 {
        text.map_or(NONE, |text| {
            // Positions were checked to be below the largest number when texts were added.
            u32::try_from(self.place(text.as_ref())).unwrap_or(NONE)
        })
    }

    fn at(&self, place: u32) -> Option<&str> {
        self.all.get(place as usize).map(|text| &**text)
    }
}

impl Numbers {
    fn of<T>(row: &Row<T>) -> Self {
        let times = [row.submitted_s, row.eligible_s, row.started_s, row.ended_s, row.ran_s];
        let [submitted, eligible, started, ended, ran] = times.map(|time| time.unwrap_or(f64::NAN));
        let whole = [row.n_workers, row.n_nodes, row.n_attempts];
        Self {
            real: [submitted, eligible, started, ended, ran, row.fraction.unwrap_or(f64::NAN)],
            line: row.line,
            whole: whole.map(Option::unwrap_or_default),
            is_there: whole.map(|number| number.is_some()),
            state: row.state,
        }
    }
}

impl Kept {
    fn row<'a>(&'a self, texts: &'a Texts) -> Seen<'a> {
        let [name, user, group, worker_type, class, file] = self.texts.map(|place| texts.at(place));
        let Numbers { real, line, whole, is_there, state } = self.numbers;
        let real = real.map(|number| (!number.is_nan()).then_some(number));
        let [submitted_s, eligible_s, started_s, ended_s, ran_s, fraction] = real;
        let of = |at: usize| is_there[at].then_some(whole[at]);
        Row {
            id: &self.id,
            name,
            user,
            group,
            submitted_s,
            eligible_s,
            started_s,
            ended_s,
            ran_s,
            n_workers: of(0),
            fraction,
            n_nodes: of(1),
            worker_type,
            state,
            n_attempts: of(2),
            class,
            line,
            file,
        }
    }
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The row at a position.
    ///
    /// # Panics
    /// If there are not more rows than that.
    #[inline]
    pub fn at(&self, position: usize) -> Seen<'_> {
        self.kept[position].row(&self.texts)
    }

    /// The id of the row at a position.
    pub(crate) fn id(&self, position: usize) -> &str {
        &self.kept[position].id
    }

    /// The first row.
    pub fn first(&self) -> Option<Seen<'_>> {
        self.iter().next()
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Seen<'_>> {
        self.kept.iter().map(|kept| kept.row(&self.texts))
    }

    /// All rows in order, in parts of at most `n`.
    pub fn pieces(&self, n: usize) -> impl Iterator<Item = impl ExactSizeIterator<Item = Seen<'_>> + Clone> {
        self.kept.chunks(n).map(|piece| piece.iter().map(|kept| kept.row(&self.texts)))
    }

    /// Adds a row.
    pub fn push<T: AsRef<str> + Into<Arc<str>>>(&mut self, row: Row<T>) {
        let kept = self.keep(row);
        self.kept.push(kept);
    }

    /// Replaces the row at a position.
    pub(crate) fn set(&mut self, position: usize, row: Row) {
        self.kept[position] = self.keep(row);
    }

    fn keep<T: AsRef<str> + Into<Arc<str>>>(&mut self, row: Row<T>) -> Kept {
        let texts = [&row.name, &row.user, &row.group, &row.worker_type, &row.class, &row.file];
        let texts = texts.map(|text| self.texts.place_of(text.as_ref()));
        Kept { texts, numbers: Numbers::of(&row), id: row.id.into() }
    }

    /// The shared copy of a text.
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        let place = self.texts.place(text);
        Arc::clone(&self.texts.all[place])
    }

    /// Gives each row to `change`, which may change its numbers, and returns whether it stays.
    pub(crate) fn retain(&mut self, mut change: impl FnMut(&mut Seen<'_>) -> bool) {
        let texts = &self.texts;
        self.kept.retain_mut(|kept| {
            let mut row = kept.row(texts);
            let stays = change(&mut row);
            kept.numbers = Numbers::of(&row);
            stays
        });
    }

    /// Removes the worker type of a row.
    pub(crate) fn forget_worker_type(&mut self, position: usize) {
        self.kept[position].texts[3] = NONE;
    }

    /// Takes a prefix off all ids.
    pub(crate) fn take_off_ids(&mut self, prefix: &str) {
        for kept in &mut self.kept {
            if let Some(id) = kept.id.strip_prefix(prefix) {
                kept.id = id.into();
            }
        }
    }

    /// Frees the memory that only adding rows needs.
    pub(crate) fn forget_look_ups(&mut self) {
        self.texts.places = Places::default();
        self.kept.shrink_to_fit();
    }
}

impl<T: AsRef<str> + Into<Arc<str>>> FromIterator<Row<T>> for Rows {
    fn from_iter<I: IntoIterator<Item = Row<T>>>(rows: I) -> Self {
        let mut all = Self::default();
        rows.into_iter().for_each(|row| all.push(row));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_takes_little_memory_and_texts_are_kept_once() {
        assert!(size_of::<Kept>() <= 112, "{} bytes", size_of::<Kept>());
        let row = |at: u32| Row {
            name: Some("train".into()),
            user: Some("ann".into()),
            class: Some("ann".into()),
            n_workers: Some(at),
            ..Row::new(format!("j{at}").into(), 1)
        };
        let rows: Rows = (0..100).map(row).collect();
        assert_eq!((rows.len(), rows.texts.all.len()), (100, 2));
        assert_eq!(rows.at(7), row(7).seen());
    }

    #[test]
    fn the_largest_numbers_are_kept_as_they_are() {
        let row = Row {
            n_workers: Some(u32::MAX),
            n_nodes: Some(0),
            submitted_s: Some(0.0),
            ran_s: Some(-0.5),
            fraction: Some(0.25),
            ..Row::new("a".into(), u64::MAX)
        };
        let rows: Rows = [row.clone()].into_iter().collect();
        assert_eq!(rows.at(0), row.seen());
    }
}
