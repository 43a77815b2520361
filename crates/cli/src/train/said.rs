//! The messages of a training on standard error: lines for people, or events for programs.

use serde_json::{Value, json};

use crate::Session;
use crate::progress::{Pace, Shown, event};
use apportion::units::Decimals;
use apportion_learn::actor::Choice;
use apportion_learn::training::run::CurvePoint;

/// A writer of a training's messages: with `--progress json` as one JSON object a line.
pub(super) struct Said<'a> {
    session: &'a Session,
    shown: Shown,
    pace: Pace,
}

/// The progress of a training.
pub(super) struct Reached<'a> {
    /// The point of the curve after the last update.
    pub(super) point: &'a CurvePoint,
    /// The unit of the budget, and the budget in it.
    pub(super) counted: (&'static str, u64),
    /// Samples in the replay, and the number that it needs before anything is learned.
    pub(super) filling: Option<(usize, usize)>,
    /// The best validation so far.
    pub(super) best: Option<f64>,
}

impl<'a> Said<'a> {
    pub(super) fn new(session: &'a Session) -> Self {
        Self { session, shown: Shown::of(session), pace: Pace::start() }
    }

    /// Writes a note.
    pub(super) fn note(&self, message: impl AsRef<str>) {
        self.session.note(message);
    }

    /// Writes the validation of the first weights, with the unit of the budget and the budget in it.
    pub(super) fn first(&self, when: &str, validation: f64, (unit, total): (&str, u64)) {
        match self.shown {
            Shown::Events => event(&json!({
                "event": "update", "update": 0, "done": 0, "total": total, "unit": unit, "validation": validation,
            })),
            Shown::Bars | Shown::Lines => {
                self.note(format!("{when}: validation {}", Decimals(validation, 4)));
            }
            Shown::Nothing => {}
        }
    }

    /// Writes an update: for people if it was validated, for programs also if nothing was written for some time.
    pub(super) fn update(&mut self, reached: &Reached<'_>) {
        let Reached { point: CurvePoint { progress, validation }, counted, filling, best } = reached;
        let (unit, total) = *counted;
        let (update, done) = (progress.n_updates, progress.n_decisions);
        // The last update may go on beyond the budget.
        let total = total.max(done);
        match (self.shown, validation) {
            (Shown::Events, _) if validation.is_some() || self.pace.is_due() => event(&json!({
                "event": "update",
                "update": update,
                "done": done,
                "total": total,
                "unit": unit,
                "episodes": progress.finished.len(),
                "mean_return": progress.mean_return(),
                "validation": validation,
                "best_validation": best,
                "filling": filling.map(|(n, of)| json!({ "samples": n, "of": of })),
            })),
            (Shown::Bars | Shown::Lines, Some(validation)) => {
                let filling = filling.map(|(n, of)| format!(", still filling the replay: {n}/{of}"));
                self.note(format!(
                    "update {update}, {done} of {total} {unit}: validation {}{}",
                    Decimals(*validation, 4),
                    filling.unwrap_or_default()
                ));
            }
            _ => {}
        }
    }

    /// Writes the result of the test episodes.
    pub(super) fn test(&self, test: &Test) {
        let Test { mean, n_episodes, choice, n_updates } = *test;
        if self.shown == Shown::Events {
            let choice: Value = json!(choice);
            event(&json!({
                "event": "test", "test": mean, "episodes": n_episodes, "choice": choice, "update": n_updates,
            }));
        } else {
            let of = of_actions(choice);
            self.note(format!(
                "test {}: {n_episodes} episodes {of} by the weights of update {n_updates}",
                Decimals(mean, 4)
            ));
        }
    }
}

/// The result of the test episodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// Their mean return.
    pub(super) mean: f64,
    /// The number of episodes.
    pub(super) n_episodes: usize,
    /// The choice of actions.
    pub(super) choice: Choice,
    /// The number of the update after which the weights that were tested were kept.
    pub(super) n_updates: u64,
}

/// The choice of an episode's actions, in words.
pub(super) fn of_actions(choice: Choice) -> &'static str {
    match choice {
        Choice::Sampled => "of sampled actions",
        Choice::MostProbable => "of the most probable actions",
    }
}
