//! The store's records as the scheduler's thread shows them: lines of the event log, notes, and what of them is damaged.

use std::sync::mpsc::Sender;

use apportion::Seconds;

use super::{Events, NOTES_MAX, Work, lock};
use crate::core::{Note, Record};
use crate::store::{Lines, Passed, StoreError};

impl Work {
    /// Sends lines of the event log, if the receiver still waits for them. Damaged lines are set aside, once they are sent.
    pub(super) fn tell_events(&mut self, which: Lines, sender: &Sender<Events>) {
        let mut lines = Vec::new();
        let read = self.store.lines(which, |number, line| lines.push((number, line.to_owned())));
        let (lines, passed) = match read {
            Ok(passed) => (Ok(lines), passed),
            Err(error) => (Err(error.to_string()), Passed::default()),
        };
        let _ = sender.send(lines);
        if !passed.is_empty() {
            // Where the disk refuses, the next question for these lines sets them aside.
            let sentences = self.store.set_aside(&passed).unwrap_or_default();
            self.warn_once(sentences);
        }
    }

    /// Drops old records, and warns if a part of the file keeps them from being dropped.
    pub(super) fn drop_old(&mut self) {
        // If it fails for another reason, it is tried again.
        if let Err(error @ StoreError::Foreign { .. }) = self.store.drop_old(self.keep_events) {
            self.warn_once(vec![format!("old records cannot be dropped, and the file grows: {error}")]);
        }
    }

    /// Notes warnings of the store, each once in this start.
    fn warn_once(&mut self, mut sentences: Vec<String>) {
        sentences.retain(|text| self.warned.insert(text.clone()));
        let at = self.clock.now();
        let note = |text| (at, Note { text, job: None, server: None, is_warning: true });
        let notes: Vec<_> = sentences.into_iter().map(note).collect();
        let records: Vec<_> = notes.iter().map(|(at, note)| Record::Note(*at, note.clone())).collect();
        // If it fails, they are shown until the scheduler ends.
        let _ = self.store.commit(&records);
        self.show_notes(notes);
    }

    pub(super) fn show_notes(&self, notes: impl IntoIterator<Item = (Seconds, Note)>) {
        let mut shown = lock(&self.shown);
        shown.notes.extend(notes);
        let more = shown.notes.len().saturating_sub(NOTES_MAX);
        shown.notes.drain(..more);
    }
}
