//! The progress of a sweep: one line for the whole and one for each run in progress, plain lines, or events.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::Session;
use crate::diagnostics;
use crate::progress::{Pace, Shown, event};
use crate::sweep::left::Left;
use apportion::solver::timing::Stopwatch;
use apportion::units::Decimals;
use apportion_studies::report::plain::{plain, plain_lines};
use apportion_studies::sweep::spec::value_text;
use apportion_studies::sweep::{Outcome, Point, Standing, Status, runner};

/// The progress of a sweep, for people or programs.
pub(super) struct SweepProgress {
    shown: Shown,
    axes: Vec<String>,
    bars: MultiProgress,
    whole: ProgressBar,
    state: Mutex<State>,
    stopwatch: Stopwatch,
}

/// A run in progress.
struct Running {
    line: Option<ProgressBar>,
    /// The pace of its reports.
    pace: Pace,
    policy: String,
    since: Stopwatch,
}

struct State {
    n_done: u64,
    n_total: u64,
    /// Runs in progress by label.
    running: BTreeMap<String, Running>,
    left: Left,
    /// Reasons that were reported.
    told: Vec<String>,
    /// Whether more runs may follow from the results of these.
    is_open: bool,
}

impl SweepProgress {
    /// The progress of these runs of a sweep with these axes. `is_open` if more runs may follow from their results.
    pub(super) fn new<'a>(
        session: &Session,
        axes: Vec<String>,
        points: impl ExactSizeIterator<Item = &'a Point>,
        is_open: bool,
    ) -> Self {
        let n_total = points.len() as u64;
        // Without runs there is nothing to show.
        let shown = if n_total == 0 { Shown::Nothing } else { Shown::of(session) };
        let bars = MultiProgress::new();
        let mut left = Left::new(is_open);
        points.for_each(|point| left.add(&point.spec.policy));
        let whole = if shown == Shown::Bars { ProgressBar::new(n_total) } else { ProgressBar::hidden() };
        let whole = if shown == Shown::Bars { bars.add(whole) } else { whole };
        let runs = if is_open { "{pos} of at least {len} runs" } else { "{pos}/{len} runs" };
        let template = format!("[{{bar:30}}] {runs}, {{elapsed}} gone, {{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            whole.set_style(style.progress_chars("=> "));
        }
        if shown == Shown::Bars {
            whole.enable_steady_tick(Duration::from_millis(500));
        }
        let (running, told) = (BTreeMap::new(), Vec::new());
        let state = Mutex::new(State { n_done: 0, n_total, running, left, told, is_open });
        Self { shown, axes, bars, whole, state, stopwatch: Stopwatch::start() }
    }

    /// Removes all lines.
    pub(super) fn finish(&self) {
        for (_, Running { line, .. }) in std::mem::take(&mut self.state().running) {
            if let Some(line) = line {
                line.finish_and_clear();
            }
        }
        self.whole.finish_and_clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The values of a point in the order of the axes, each with the name of its axis but the policy: `fifo rate=0.5 seed=1`.
    pub(super) fn label(&self, point: &Point) -> String {
        let values = self.axes.iter().zip(point.values.iter().map(value_text));
        let values = values.filter(|(_, text)| !text.is_empty());
        let named = values.map(|(axis, text)| if axis == "policy" { text } else { format!("{axis}={text}") });
        named.collect::<Vec<_>>().join(" ")
    }

    fn run(&self, point: &Point) -> Value {
        self.axes.iter().cloned().zip(point.values.iter().cloned()).collect()
    }

    /// The time that the rest takes at this pace; none if there is no estimate.
    fn left(&self, state: &State) -> Option<Duration> {
        let running =
            state.running.values().map(|run| (run.policy.as_str(), run.since.elapsed().as_secs_f64()));
        let left = self.stopwatch.elapsed().as_secs_f64() * state.left.in_parts_of_done(running)?;
        Duration::try_from_secs_f64(left).ok()
    }

    fn say(&self, line: &str) {
        match self.shown {
            Shown::Bars => {
                let _ = self.bars.println(plain_lines(line));
            }
            Shown::Lines => diagnostics::print(line),
            Shown::Events | Shown::Nothing => {}
        }
    }
}

impl runner::Progress for SweepProgress {
    fn started(&self, point: &Point) {
        let line = (self.shown == Shown::Bars).then(|| {
            let line = self.bars.add(ProgressBar::no_length());
            if let Ok(style) = ProgressStyle::with_template("  {prefix}: {msg}") {
                line.set_style(style);
            }
            line.set_prefix(plain(&self.label(point)).into_owned());
            line.set_message("starting");
            line
        });
        let (pace, policy, since) = (Pace::start(), point.spec.policy.clone(), Stopwatch::start());
        self.state().running.insert(self.label(point), Running { line, pace, policy, since });
        if self.shown == Shown::Events {
            event(&json!({"event": "started", "run": self.run(point)}));
        }
    }

    fn went_on(&self, point: &Point, standing: &Standing) {
        let label = self.label(point);
        let mut state = self.state();
        if self.shown == Shown::Bars {
            self.whole.set_message(left_text(self.left(&state)));
        }
        let Some(Running { line, pace, .. }) = state.running.get_mut(&label) else { return };
        match self.shown {
            Shown::Bars => line.iter().for_each(|line| line.set_message(so_far(standing))),
            Shown::Lines if pace.is_due() => diagnostics::print(&format!("  {label}: {}", so_far(standing))),
            Shown::Events if pace.is_due() => event(&json!({
                "event": "progress",
                "run": self.run(point),
                "measured_done": standing.n_done,
                "measured": standing.n_measured,
                "active": standing.n_active,
                "average_jct_s": standing.average_jct,
                "simulated_seconds": standing.now,
                "rounds": standing.rounds,
            })),
            Shown::Lines | Shown::Events | Shown::Nothing => {}
        }
    }

    fn finished(&self, point: &Point, outcome: &Outcome) {
        let label = self.label(point);
        let mut state = self.state();
        if let Some(Running { line, since, .. }) = state.running.remove(&label) {
            let seconds = (outcome.status != Status::Saturated).then(|| since.elapsed().as_secs_f64());
            state.left.finish(&point.spec.policy, seconds);
            line.iter().for_each(ProgressBar::finish_and_clear);
        }
        state.n_done += 1;
        let left = self.left(&state);
        let (n_done, n_total) = (state.n_done, state.n_total);
        let reason = outcome.reason.as_deref().unwrap_or_default();
        let is_news = outcome.status == Status::Done
            && !reason.is_empty()
            && !state.told.iter().any(|told| told == reason);
        if is_news {
            state.told.push(reason.to_owned());
        }
        let is_open = state.is_open;
        drop(state);
        let average_jct = outcome.metric("average_jct_s");
        let left_text = left_text(left);
        self.whole.set_position(n_done);
        self.whole.set_message(left_text.clone());
        let result = match (outcome.status, average_jct) {
            (Status::Done, Some(jct)) => format!("average JCT {} h", Decimals(jct / 3600.0, 2)),
            (Status::Done, None) => "done".to_owned(),
            (status, _) => format!("{status}: {reason}"),
        };
        let is_bad = outcome.status.is_given_up();
        if self.shown == Shown::Lines {
            let more = if n_done == n_total && !is_open { String::new() } else { format!("; {left_text}") };
            let of = if is_open { " of at least " } else { "/" };
            self.say(&format!("{n_done}{of}{n_total} {label}: {result}{more}"));
        } else if is_bad {
            self.say(&format!("{label} {result}"));
        }
        if is_news {
            self.say(&format!("{label}: {reason}"));
        }
        if self.shown == Shown::Events {
            event(&json!({
                "event": "finished",
                "run": self.run(point),
                "status": outcome.status,
                "reason": outcome.reason,
                "average_jct_s": average_jct,
                "done": n_done,
                "total": n_total,
                "seconds_left": left.map(|left| left.as_secs_f64()),
            }));
        }
    }

    fn added(&self, point: &Point) {
        let mut state = self.state();
        state.left.add(&point.spec.policy);
        state.n_total += 1;
        self.whole.set_length(state.n_total);
    }
}

fn left_text(left: Option<Duration>) -> String {
    left.map_or_else(
        || "time left unknown".to_owned(),
        |left| format!("about {} left at this pace", HumanDuration(left)),
    )
}

fn so_far(standing: &Standing) -> String {
    let Standing { n_done, n_measured, n_active, average_jct, now, .. } = standing;
    let measured = n_measured.map_or(String::new(), |n| format!(" of {n}"));
    let jct = average_jct
        .map_or(String::new(), |jct| format!(", average JCT of those {} h", Decimals(jct.hours(), 2)));
    format!(
        "{n_done}{measured} measured jobs done{jct}, {n_active} active, {} simulated hours",
        Decimals(now.hours(), 0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::output::{Output, OutputFormat};
    use crate::progress::ProgressMode;
    use apportion::spec::run::RunSpec;

    #[test]
    fn of_no_runs_nothing_is_shown() {
        let (output, interrupt) = (Output::new(OutputFormat::Table), Interrupt::new());
        let session = Session { output, progress: ProgressMode::Plain, quiet: false, interrupt };
        let (positions, values, spec) = (Vec::new(), Vec::new(), RunSpec::default());
        let point = Point { index: 0, positions, values, spec };
        let shown = |points: &[Point]| SweepProgress::new(&session, Vec::new(), points.iter(), false).shown;
        assert_eq!((shown(&[]), shown(&[point])), (Shown::Nothing, Shown::Lines));
    }
}
