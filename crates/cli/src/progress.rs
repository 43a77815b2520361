//! Progress of long commands, on standard error: a line that is redrawn, lines one below the other, or events.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::Session;
use crate::diagnostics;
use apportion::solver::timing::Stopwatch;
use apportion_studies::report::plain::{plain, plain_lines};

/// Time between two lines about one thing in progress.
const LINE_EVERY: Duration = Duration::from_secs(15);

/// The template for units of work that take about as long each.
const ALIKE: &str = "[{bar:30}] {pos}/{len} {unit}, {left}  {wide_msg}";

/// How to show progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressMode {
    /// Redrawn lines if standard error is a terminal, else as `plain`
    #[default]
    Auto,
    /// A line now and then
    Plain,
    /// One JSON object a line
    Json,
    /// None
    Never,
}

/// A mode with `auto` decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Redrawn lines.
    Bars,
    /// A line now and then.
    Lines,
    /// One JSON object a line.
    Events,
    /// Nothing.
    Nothing,
}

impl Shown {
    /// The way to show progress that a session asks for.
    pub fn of(session: &Session) -> Self {
        match session.progress {
            _ if session.quiet => Self::Nothing,
            ProgressMode::Auto if io::stderr().is_terminal() => Self::Bars,
            ProgressMode::Auto | ProgressMode::Plain => Self::Lines,
            ProgressMode::Json => Self::Events,
            ProgressMode::Never => Self::Nothing,
        }
    }
}

/// A pace at which repeated lines are let through.
#[derive(Debug)]
pub struct Pace(Stopwatch);

impl Pace {
    /// A pace that begins now.
    pub fn start() -> Self {
        Self(Stopwatch::start())
    }

    /// Whether it is time for the next line.
    pub fn is_due(&mut self) -> bool {
        let due = self.0.elapsed() >= LINE_EVERY;
        if due {
            self.0 = Stopwatch::start();
        }
        due
    }
}

/// A line that shows how far a command is. It is cheap to clone; clones share the line, from any thread.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
    shown: Shown,
    unit: Arc<str>,
    pace: Arc<Mutex<Pace>>,
}

impl Progress {
    /// A line for `total` units of work that take about as long each, named in the plural: `runs`, `rounds`. The time that is left
    /// is shown once it can be estimated.
    pub fn new(session: &Session, total: u64, unit: &str) -> Self {
        // The total is not known, and so the time that is left is not.
        let template = if total == 0 { "{pos} {unit}, {elapsed} gone  {wide_msg}" } else { ALIKE };
        Self::with_template(session, total, unit, template)
    }

    /// A line for `total` units of work of very different lengths, without the time that is left.
    pub fn of_unlike(session: &Session, total: u64, unit: &str) -> Self {
        let template = "[{bar:30}] {pos}/{len} {unit}, {elapsed} gone  {wide_msg}";
        Self::with_template(session, total, unit, template)
    }

    fn with_template(session: &Session, total: u64, unit: &str, template: &str) -> Self {
        let shown = Shown::of(session);
        let target =
            if shown == Shown::Bars { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(&template.replace("{unit}", unit)) {
            bar.set_style(style.progress_chars("=> ").with_key("left", write_left));
        }
        if shown == Shown::Bars {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Self { bar, shown, unit: unit.into(), pace: Arc::new(Mutex::new(Pace::start())) }
    }

    /// Counts one more unit as done.
    pub fn advance(&self) {
        self.bar.inc(1);
        self.tell();
    }

    /// Sets the number of units done so far.
    pub fn set(&self, done: u64) {
        self.bar.set_position(done);
        self.tell();
    }

    /// Shows the work that is in progress now.
    pub fn message(&self, message: impl Into<String>) {
        self.bar.set_message(plain(&message.into()).into_owned());
    }

    /// Prints a line above the progress line, without disturbing it; nothing when progress is off.
    pub fn note(&self, line: impl AsRef<str>) {
        match self.shown {
            Shown::Bars => self.bar.println(plain_lines(line.as_ref())),
            Shown::Lines => diagnostics::print(line.as_ref()),
            Shown::Events => event(&serde_json::json!({"event": "note", "message": line.as_ref()})),
            Shown::Nothing => {}
        }
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn tell(&self) {
        let is_due = || self.pace.lock().unwrap_or_else(PoisonError::into_inner).is_due();
        if !matches!(self.shown, Shown::Lines | Shown::Events) || !is_due() {
            return;
        }
        let (done, total, unit) = (self.bar.position(), self.bar.length().unwrap_or(0), &*self.unit);
        if self.shown == Shown::Lines {
            let of = if total == 0 { String::new() } else { format!("/{total}") };
            diagnostics::print(&format!("{done}{of} {unit}  {}", self.bar.message()));
        } else {
            event(&serde_json::json!({"event": "progress", "done": done, "total": total, "unit": unit}));
        }
    }
}

/// Writes the pace and the time that is left, once a unit is done.
fn write_left(state: &ProgressState, text: &mut dyn fmt::Write) {
    let _ = if state.pos() == 0 {
        write!(text, "{} gone", HumanDuration(state.elapsed()))
    } else {
        write!(text, "{:.2}/s, about {} left at this pace", state.per_sec(), HumanDuration(state.eta()))
    };
}

/// Writes an event on a line of its own.
pub fn event(event: &serde_json::Value) {
    diagnostics::print_exactly(&event.to_string());
}
