//! What a training says on standard error: lines for people, or events for programs.

use serde_json::{Value, json};

use crate::Session;
use crate::progress::{Pace, Shown, event};
use apportion_learn::actor::Choice;
use apportion_learn::training::run::CurvePoint;

/// Says things as a session asks for: with `--progress json` as one JSON object a line.
pub(super) struct Said<'a> {
    session: &'a Session,
    shown: Shown,
    pace: Pace,
}

/// How far a training is.
pub(super) struct Reached<'a> {
    /// What the last update did.
    pub(super) point: &'a CurvePoint,
    /// What the budget is counted in, and how many of them there are.
    pub(super) counted: (&'static str, u64),
    /// Samples that the replay has, and those that it is to have before anything is learned.
    pub(super) filling: Option<(usize, usize)>,
    /// The best validation so far.
    pub(super) best: Option<f64>,
}

impl<'a> Said<'a> {
    pub(super) fn new(session: &'a Session) -> Self {
        Self { session, shown: Shown::of(session), pace: Pace::start() }
    }

    /// Something to know.
    pub(super) fn note(&self, message: impl AsRef<str>) {
        self.session.note(message);
    }

    /// The validation of the weights that a training begins with, and what its budget is counted in, with how many of them there are.
    pub(super) fn first(&self, when: &str, validation: f64, (unit, total): (&str, u64)) {
        match self.shown {
            Shown::Events => event(&json!({
                "event": "update", "update": 0, "done": 0, "total": total, "unit": unit, "validation": validation,
            })),
            Shown::Bars | Shown::Lines => self.note(format!("{when}: validation {validation:.4}")),
            Shown::Nothing => {}
        }
    }

    /// An update: to people where it was validated, to programs also where nothing was told for some time.
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
                    "update {update}, {done} of {total} {unit}: validation {validation:.4}{}",
                    filling.unwrap_or_default()
                ));
            }
            _ => {}
        }
    }

    /// What the test episodes came to.
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
                "test {mean:.4}: {n_episodes} episodes {of} by the weights of update {n_updates}"
            ));
        }
    }
}

/// What the episodes that judge in the end came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// The mean.
    pub(super) mean: f64,
    /// How many there are.
    pub(super) n_episodes: usize,
    /// How actions were chosen.
    pub(super) choice: Choice,
    /// The number of the update after which the weights that were tested were kept.
    pub(super) n_updates: u64,
}

/// How actions of an episode are chosen, in words.
pub(super) fn of_actions(choice: Choice) -> &'static str {
    match choice {
        Choice::Sampled => "of sampled actions",
        Choice::MostProbable => "of the most probable actions",
    }
}
