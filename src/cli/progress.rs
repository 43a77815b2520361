//! Progress of long commands: one line on standard error with rate and time left.

use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::Session;

/// Whether to show progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressMode {
    /// If standard error is a terminal.
    #[default]
    Auto,
    /// Never.
    Never,
}

/// A line that says how far a command is. Cheap to clone; clones share the line, from any thread.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A line for `total` units of work, named in the plural: `runs`, `rounds`.
    pub fn new(session: &Session, total: u64, unit: &str) -> Self {
        let shown = session.progress == ProgressMode::Auto && !session.quiet;
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let template =
            format!("[{{bar:30}}] {{pos}}/{{len}} {unit}, {{per_sec}}, {{eta}} left  {{wide_msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar }
    }

    /// One more unit is done.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// Units done so far, where they are known as a whole.
    pub fn set(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// What is being done right now.
    pub fn message(&self, message: impl Into<String>) {
        self.bar.set_message(message.into());
    }

    /// Prints a line above the progress line, without disturbing it; nothing when progress is off.
    pub fn note(&self, line: impl AsRef<str>) {
        self.bar.println(line);
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
