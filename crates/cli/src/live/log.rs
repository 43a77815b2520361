//! The log of `serve` on standard error.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::Session;
use crate::diagnostics;
use apportion::units::Seconds;
use apportion_live::clock::wall_s;
use apportion_live::core::Note;
use apportion_live::driver::Client;

/// The interval at which news are looked for.
const LOOK: Duration = Duration::from_millis(200);

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogForm {
    /// In words
    #[default]
    Text,
    /// As JSON, one document a line
    Json,
}

/// The log of `serve`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log<'a> {
    pub(super) form: LogForm,
    pub(super) session: &'a Session,
}

impl Log<'_> {
    pub(super) fn address(self, address: SocketAddr, has_tls: bool) {
        let url = format!("{}://{address}", if has_tls { "https" } else { "http" });
        let text = format!("listening on {url}; the page is {url}/");
        self.say(&text, &json!({"address": address.to_string(), "page": format!("{url}/")}));
        if !has_tls && !address.ip().is_loopback() {
            self.warning(
                "tokens travel in clear text: give `--tls-cert` and `--tls-key`, or see to it that nothing listens between \
                 this machine and the others",
            );
        }
    }

    /// Writes that the scheduler has ended, and what its jobs do then.
    pub(super) fn ended(self, has_held_jobs: bool) {
        self.say(last_words(has_held_jobs), &json!({}));
    }

    /// Writes a text, with fields for programs.
    pub(super) fn say(self, text: &str, fields: &Value) {
        match self.form {
            LogForm::Text => self.session.note(text),
            LogForm::Json if self.session.quiet => {}
            LogForm::Json => {
                let mut line = json!({"time_s": wall_s(), "level": "info", "text": text});
                if let (Some(line), Some(fields)) = (line.as_object_mut(), fields.as_object()) {
                    line.extend(fields.clone());
                }
                diagnostics::print_exactly(&line.to_string());
            }
        }
    }

    /// Writes the scheduler's notes as they come, and the state of its disk.
    pub(super) fn follow(self, client: &Client, is_over: &AtomicBool) {
        let start = client.health().now_s;
        let mut said: Option<(Seconds, Note)> = None;
        let mut disk = None;
        loop {
            let is_last = is_over.load(Ordering::Relaxed);
            let notes = client.notes();
            let from = said.as_ref().and_then(|last| notes.iter().rposition(|note| note == last));
            let new = notes.iter().skip(from.map_or(0, |place| place + 1));
            for (_, note) in new.filter(|(at, _)| from.is_some() || at.get() >= start) {
                self.note(note);
            }
            said = notes.last().cloned().or(said);
            let health = client.health();
            if health.disk != disk {
                disk = health.disk;
                match &disk {
                    Some(why) => self.warning(&format!("the disk refuses, and nothing is taken: {why}")),
                    None => self.say("the disk is well again", &json!({})),
                }
            }
            if is_last {
                return;
            }
            thread::sleep(LOOK);
        }
    }

    fn note(self, note: &Note) {
        let about = match note.job.map(|job| format!("job {job}")) {
            Some(job) if self.form == LogForm::Text && !note.text.contains(&job) => format!("{job}: "),
            _ => String::new(),
        };
        let level = if note.is_warning { "warning" } else { "info" };
        let mark = if note.is_warning && self.form == LogForm::Text { "warning: " } else { "" };
        let fields = json!({"level": level, "job": note.job, "server": note.server});
        self.say(&format!("{mark}{about}{}", note.text), &fields);
    }

    pub(super) fn warning(self, text: &str) {
        self.note(&Note { text: text.to_owned(), job: None, server: None, is_warning: true });
    }
}

/// The last words of a scheduler. The leases of held jobs of Slurm have no end while it is away.
fn last_words(has_held_jobs: bool) -> &'static str {
    if has_held_jobs {
        "ended; jobs run on in Slurm, without an end to their leases, and a later start takes them over"
    } else {
        "ended; jobs go on until their leases end, and a later start takes them over"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_of_held_jobs_are_said_to_have_no_end() {
        assert!(last_words(true).contains("without an end to their leases"));
        assert!(last_words(false).contains("until their leases end"));
    }
}
