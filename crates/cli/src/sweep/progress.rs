//! How far a sweep is: one line for the whole and one for each run that goes on, plain lines, or events.

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

#[derive(Default)]
struct State {
    n_done: u64,
    n_total: u64,
    /// By label: its line, when it was last reported, and how long it has been running.
    running: BTreeMap<String, (Option<ProgressBar>, Pace, Stopwatch)>,
    left: Left,
    /// Reasons that were reported.
    told: Vec<String>,
}

impl SweepProgress {
    /// For these runs of a sweep with these axes.
    pub(super) fn new<'a>(
        session: &Session,
        axes: Vec<String>,
        points: impl ExactSizeIterator<Item = &'a Point>,
    ) -> Self {
        let shown = Shown::of(session);
        let bars = MultiProgress::new();
        let n_total = points.len() as u64;
        let mut left = Left::default();
        points.for_each(|point| left.add(&point.spec.policy));
        let whole = if shown == Shown::Bars { ProgressBar::new(n_total) } else { ProgressBar::hidden() };
        let whole = if shown == Shown::Bars { bars.add(whole) } else { whole };
        if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {pos}/{len} runs, {elapsed} gone, {msg}")
        {
            whole.set_style(style.progress_chars("=> "));
        }
        if shown == Shown::Bars {
            whole.enable_steady_tick(Duration::from_millis(500));
        }
        let state = Mutex::new(State { n_total, left, ..State::default() });
        Self { shown, axes, bars, whole, state, stopwatch: Stopwatch::start() }
    }

    /// Removes all lines.
    pub(super) fn finish(&self) {
        for (_, (line, ..)) in std::mem::take(&mut self.state().running) {
            if let Some(line) = line {
                line.finish_and_clear();
            }
        }
        self.whole.finish_and_clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, point: &Point) -> Value {
        self.axes.iter().cloned().zip(point.values.iter().cloned()).collect()
    }

    /// Time that the rest takes if runs go on at this pace.
    fn left(&self, state: &State) -> Option<Duration> {
        let left = self.stopwatch.elapsed().as_secs_f64() * state.left.in_parts_of_done()?;
        Duration::try_from_secs_f64(left).ok()
    }

    fn say(&self, line: &str) {
        match self.shown {
            Shown::Bars => {
                let _ = self.bars.println(line);
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
            line.set_prefix(label(point));
            line.set_message("starting");
            line
        });
        self.state().running.insert(label(point), (line, Pace::start(), Stopwatch::start()));
        if self.shown == Shown::Events {
            event(&json!({"event": "started", "run": self.run(point)}));
        }
    }

    fn went_on(&self, point: &Point, standing: &Standing) {
        let label = label(point);
        let mut state = self.state();
        let Some((line, pace, _)) = state.running.get_mut(&label) else { return };
        match self.shown {
            Shown::Bars => line.iter().for_each(|line| line.set_message(so_far(standing))),
            Shown::Lines if pace.is_due() => diagnostics::print(&format!("  {label}: {}", so_far(standing))),
            Shown::Events if pace.is_due() => event(&json!({
                "event": "progress",
                "run": self.run(point),
                "measured_done": standing.n_done,
                "measured": standing.n_measured,
                "active": standing.n_active,
                "average_jct": standing.average_jct,
                "simulated_seconds": standing.now,
                "rounds": standing.rounds,
            })),
            Shown::Lines | Shown::Events | Shown::Nothing => {}
        }
    }

    fn finished(&self, point: &Point, outcome: &Outcome) {
        let label = label(point);
        let mut state = self.state();
        if let Some((line, _, stopwatch)) = state.running.remove(&label) {
            state.left.finish(&point.spec.policy, stopwatch.elapsed().as_secs_f64());
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
        drop(state);
        let average_jct = outcome.metric("average_jct");
        let left_text =
            left.map_or(String::new(), |left| format!("{} left at this pace", HumanDuration(left)));
        self.whole.set_position(n_done);
        self.whole.set_message(left_text.clone());
        let result = match (outcome.status, average_jct) {
            (Status::Done, Some(jct)) => format!("average JCT {:.2} h", jct / 3600.0),
            (Status::Done, None) => "done".to_owned(),
            (status, _) => format!("{status}: {reason}"),
        };
        let is_bad = outcome.status.is_given_up();
        if self.shown == Shown::Lines {
            let more = if left_text.is_empty() || n_done == n_total {
                String::new()
            } else {
                format!("; {left_text}")
            };
            self.say(&format!("{n_done}/{n_total} {label}: {result}{more}"));
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
                "average_jct": average_jct,
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

/// A point's values, in the order of the axes.
pub(super) fn label(point: &Point) -> String {
    let values = point.values.iter().map(value_text);
    values.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

fn so_far(standing: &Standing) -> String {
    let Standing { n_done, n_measured, n_active, average_jct, now, .. } = standing;
    let measured = n_measured.map_or(String::new(), |n| format!(" of {n}"));
    let jct = average_jct.map_or(String::new(), |jct| format!(", average JCT so far {:.2} h", jct.hours()));
    format!(
        "{n_done}{measured} measured jobs done{jct}, {n_active} active, {:.0} simulated hours",
        now.hours()
    )
}
