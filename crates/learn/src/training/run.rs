//! The run of a training, from its beginning or a checkpoint to the end of its budget.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::learner::{Learner, Progress, Saved};
use super::{TrainingError, within};
use crate::actor::Actor;
use crate::tensors::Tensors;

/// The length of a training, and the interval of its validations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Decisions after which the training ends. `evolution` counts episodes in place of decisions, also in the result, `curve.csv`
    /// and headers.
    pub decisions: u64,
    /// Updates between validations.
    pub validate_every: u64,
    /// Validations without a new best after which the training ends early.
    #[serde(default)]
    pub patience: Option<u32>,
}

impl Budget {
    /// Checks the budget.
    ///
    /// # Errors
    /// If a number is 0.
    pub fn check(&self) -> Result<(), TrainingError> {
        within(self.decisions > 0, "decisions", self.decisions, "a whole number above 0")?;
        within(self.validate_every > 0, "validate_every", self.validate_every, "a whole number above 0")?;
        within(self.patience != Some(0), "patience", 0, "a whole number above 0")
    }
}

/// A point of the learning curve.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvePoint {
    /// The counts and figures of the update.
    pub progress: Progress,
    /// The mean return over the validation seeds, if the update was validated.
    pub validation: Option<f64>,
}

/// Why a training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its budget of decisions is spent.
    Budget,
    /// No validation was better for long enough.
    Patience,
    /// It was asked to stop; it can go on.
    Stopped,
}

/// A training in progress: a learner, with the best weights that validation has seen.
#[derive(Debug)]
pub struct Training<L> {
    learner: L,
    budget: Budget,
    judged: Judged,
    /// The validations made by the schedule, where the last one was made for the budget's end only.
    scheduled: Option<Judged>,
}

/// The results of validations so far.
#[derive(Clone, Debug, Default)]
struct Judged {
    best: Option<Best>,
    n_without_best: u32,
}

/// The best weights so far, by validation.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// Mean return over the validation seeds.
    pub validation: f64,
    /// The number of updates that the weights had.
    pub n_updates: u64,
    /// The weights.
    pub weights: Tensors,
}

/// The state of a training beside its learner's arrays, for a checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrainingState {
    learner: serde_json::Value,
    best: Option<(f64, u64)>,
    n_without_best: u32,
    /// Absent where the last validation was due by the schedule, and in files from before it existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheduled: Option<ScheduledState>,
}

/// The results of validations made by the schedule. The best weights of these lie beside the training's own.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduledState {
    best: Option<(f64, u64)>,
    n_without_best: u32,
}

impl<L: Learner> Training<L> {
    /// A training from the beginning.
    ///
    /// # Errors
    /// If the budget is not valid.
    pub fn new(learner: L, budget: Budget) -> Result<Self, TrainingError> {
        budget.check()?;
        Ok(Self { learner, budget, judged: Judged::default(), scheduled: None })
    }

    /// The learner.
    pub fn learner(&self) -> &L {
        &self.learner
    }

    /// The best weights that validation has seen.
    pub fn best(&self) -> Option<&Best> {
        self.judged.best.as_ref()
    }

    /// An actor with the best weights; the training itself keeps its present weights.
    ///
    /// # Errors
    /// If the library fails.
    pub fn best_actor(&self) -> Result<Option<Arc<dyn Actor>>, TrainingError> {
        let Some(best) = &self.judged.best else { return Ok(None) };
        let parameters = self.learner.model().parameters();
        let present = parameters.to_tensors()?;
        parameters.set(&best.weights)?;
        let actor = self.learner.model().actor();
        parameters.set(&present)?;
        Ok(Some(actor?.into()))
    }

    /// Validates the weights that the training begins with, after a warm-up or another training, so that they may stay the best.
    ///
    /// # Errors
    /// If the validation fails.
    pub fn judge_first(
        &mut self,
        validate: &mut dyn FnMut(Arc<dyn Actor>) -> Result<f64, TrainingError>,
    ) -> Result<f64, TrainingError> {
        self.validate(validate)
    }

    /// Trains to the end of the budget, where the actor is validated also if no validation is due there by the schedule. A training
    /// that is continued with a larger budget forgets validations that were not due. `validate` gives the mean return of an actor over
    /// the validation seeds, by which alone actors are judged; `look` sees each point of the curve, between updates, and may stop it.
    ///
    /// # Errors
    /// If an update or a validation fails.
    pub fn run(
        &mut self,
        validate: &mut dyn FnMut(Arc<dyn Actor>) -> Result<f64, TrainingError>,
        look: &mut dyn FnMut(&Self, &CurvePoint) -> ControlFlow<()>,
    ) -> Result<Ended, TrainingError> {
        loop {
            if self.learner.n_decisions() >= self.budget.decisions {
                return Ok(Ended::Budget);
            }
            if let Some(scheduled) = self.scheduled.take() {
                self.judged = scheduled;
            }
            if self.budget.patience.is_some_and(|patience| self.judged.n_without_best >= patience) {
                return Ok(Ended::Patience);
            }
            let progress = self.learner.update()?;
            let over = progress.n_decisions >= self.budget.decisions;
            let is_scheduled = progress.n_updates.is_multiple_of(self.budget.validate_every);
            self.scheduled = (over && !is_scheduled).then(|| self.judged.clone());
            let validation = if over || is_scheduled { Some(self.validate(validate)?) } else { None };
            if look(self, &CurvePoint { progress, validation }).is_break() {
                return Ok(Ended::Stopped);
            }
        }
    }

    fn validate(
        &mut self,
        validate: &mut dyn FnMut(Arc<dyn Actor>) -> Result<f64, TrainingError>,
    ) -> Result<f64, TrainingError> {
        let found = validate(self.learner.model().actor()?.into())?;
        let judged = &mut self.judged;
        if judged.best.as_ref().is_none_or(|best| found > best.validation) {
            let weights = self.learner.model().parameters().to_tensors()?;
            judged.best = Some(Best { validation: found, n_updates: self.learner.n_updates(), weights });
            judged.n_without_best = 0;
        } else {
            judged.n_without_best += 1;
        }
        Ok(found)
    }

    /// The whole state, from which the training can go on bit for bit.
    ///
    /// # Errors
    /// If the library fails.
    pub fn save(&self) -> Result<Saved, TrainingError> {
        let Saved { mut tensors, state: learner } = self.learner.save()?;
        let Judged { best, n_without_best } = &self.judged;
        if let Some(best) = best {
            tensors.extend("best.", &best.weights);
        }
        let numbers = |best: &Option<Best>| best.as_ref().map(|best| (best.validation, best.n_updates));
        let scheduled = self.scheduled.as_ref().map(|scheduled| {
            if let Some(best) = &scheduled.best {
                tensors.extend("scheduled.", &best.weights);
            }
            ScheduledState { best: numbers(&scheduled.best), n_without_best: scheduled.n_without_best }
        });
        let (best, n_without_best) = (numbers(best), *n_without_best);
        Saved::new(tensors, &TrainingState { learner, best, n_without_best, scheduled })
    }

    /// Goes on where another training was saved.
    ///
    /// # Errors
    /// If the state is of another training.
    pub fn restore(&mut self, saved: &Saved) -> Result<(), TrainingError> {
        let state: TrainingState = saved.state()?;
        self.learner.restore(&Saved { tensors: saved.tensors.clone(), state: state.learner })?;
        let judged = |best: Option<(f64, u64)>, n_without_best, below| Judged {
            best: best.map(|(validation, n_updates)| Best {
                validation,
                n_updates,
                weights: saved.tensors.below(below),
            }),
            n_without_best,
        };
        self.judged = judged(state.best, state.n_without_best, "best.");
        self.scheduled =
            state.scheduled.map(|before| judged(before.best, before.n_without_best, "scheduled."));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Choice;
    use crate::checkpoint::{Checkpoint, NetworkKind, Provenance};
    use crate::evaluation::evaluate;
    use crate::network::Activation;
    use crate::textbook::{Grid, Walls};
    use crate::training::model::{MlpModel, MlpOptions, Model};
    use crate::training::ppo::{Ppo, PpoOptions};
    use crate::vectorized::Vectorized;
    use apportion::workload::random::SeedStreams;

    const BUDGET: Budget = Budget { decisions: 3000, validate_every: 2, patience: None };

    fn grid() -> Grid {
        Grid::new((3, 3), Walls::Masked, 20)
    }

    fn begin(budget: Budget) -> Training<Ppo<Grid>> {
        let options = PpoOptions { n_environments: 2, n_steps: 64, n_epochs: 2, ..PpoOptions::default() };
        let streams = SeedStreams::new(1);
        let model = |environments: &Vectorized<Grid>| {
            let layers = MlpOptions { hidden: vec![8], ..MlpOptions::default() };
            Ok(Box::new(MlpModel::new(environments.spaces(), 0, &layers, streams)?) as Box<dyn Model>)
        };
        let learner = Ppo::new(|_| grid(), model, options, budget.decisions, streams).unwrap();
        Training::new(learner, budget).unwrap()
    }

    #[expect(clippy::unnecessary_wraps, reason = "as a training calls it")]
    #[expect(clippy::needless_pass_by_value, reason = "what a validation is given")]
    fn validate(actor: Arc<dyn Actor>) -> Result<f64, TrainingError> {
        let seeds: Vec<u64> = (100..110).collect();
        let episodes = evaluate(grid, &*actor, Choice::Sampled, &seeds).unwrap();
        Ok(episodes.iter().map(|episode| episode.total_reward).sum::<f64>() / 10.0)
    }

    type Curve = Vec<CurvePoint>;

    /// Runs a training to its end, or for `n_updates` updates.
    fn run(training: &mut Training<Ppo<Grid>>, n_updates: usize) -> (Ended, Curve) {
        let mut curve = Vec::new();
        let ended = training
            .run(&mut validate, &mut |_, point| {
                curve.push(point.clone());
                if curve.len() == n_updates { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        (ended, curve)
    }

    #[test]
    fn it_ends_with_its_budget_and_keeps_the_best() {
        let mut training = begin(BUDGET);
        let (ended, curve) = run(&mut training, usize::MAX);
        assert_eq!((ended, curve.len()), (Ended::Budget, 24));
        let seen: Vec<f64> = curve.iter().filter_map(|point| point.validation).collect();
        assert_eq!(seen.len(), 12);
        let best = seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(training.best().unwrap().validation, best);
        assert_eq!(run(&mut training, usize::MAX), (Ended::Budget, Vec::new()));
    }

    #[test]
    fn it_ends_where_nothing_gets_better() {
        let mut training = begin(Budget { patience: Some(1), decisions: 1_000_000, validate_every: 1 });
        let (ended, curve) = run(&mut training, usize::MAX);
        assert_eq!(ended, Ended::Patience);
        let (last, before) = curve.split_last().unwrap();
        let best_before =
            before.iter().filter_map(|point| point.validation).fold(f64::NEG_INFINITY, f64::max);
        assert!(last.validation.unwrap() <= best_before);
        assert!(Training::new(begin(BUDGET).learner, Budget { patience: Some(0), ..BUDGET }).is_err());
    }

    /// The first training ends after an odd number of updates, at which nothing is judged by the schedule: neither its best
    /// weights nor its patience may know of that validation later.
    #[test]
    fn a_larger_budget_keeps_what_it_keeps_from_the_beginning() {
        for (decisions, patience) in [(128, None), (640, None), (1152, Some(2)), (2000, Some(4))] {
            let larger = Budget { patience, ..BUDGET };
            let mut first = begin(Budget { decisions, ..larger.clone() });
            let (_, curve) = run(&mut first, usize::MAX);
            let is_beside = !first.learner().n_updates().is_multiple_of(larger.validate_every);
            assert!(curve.last().unwrap().validation.is_some());
            assert_eq!(first.scheduled.is_some(), is_beside);
            let mut raised = begin(larger.clone());
            raised.restore(&first.save().unwrap()).unwrap();
            let mut whole = begin(larger);
            assert_eq!(run(&mut raised, usize::MAX).0, run(&mut whole, usize::MAX).0, "{decisions}");
            assert_eq!(raised.best(), whole.best(), "{decisions}");
            assert_eq!(raised.judged.n_without_best, whole.judged.n_without_best, "{decisions}");
        }
    }

    /// The validation beside the schedule finds the best, which one training of the larger budget does not look at.
    #[test]
    fn a_best_that_was_found_beside_the_schedule_is_forgotten() {
        let mut lucky = |actor: Arc<dyn Actor>| validate(actor).map(|found| found + 1000.0);
        let mut first = begin(Budget { decisions: 384, ..BUDGET });
        first.run(&mut validate, &mut |_, _| ControlFlow::Break(())).unwrap();
        first.run(&mut validate, &mut |_, _| ControlFlow::Break(())).unwrap();
        first.run(&mut lucky, &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert!(first.best().unwrap().validation > 900.0 && first.best().unwrap().n_updates == 3);
        let mut raised = begin(BUDGET);
        raised.restore(&first.save().unwrap()).unwrap();
        let mut whole = begin(BUDGET);
        assert_eq!(run(&mut raised, usize::MAX).0, run(&mut whole, usize::MAX).0);
        assert_eq!(raised.best(), whole.best());
    }

    #[test]
    fn a_checkpoint_file_takes_it_up_bit_for_bit() {
        let mut whole = begin(BUDGET);
        let (ended, first) = run(&mut whole, 7);
        assert_eq!((ended, first.len()), (Ended::Stopped, 7));
        let Saved { tensors, state } = whole.save().unwrap();
        let provenance = Provenance {
            network: NetworkKind::Mlp { activation: Activation::Tanh, n_agents: 1 },
            spec: serde_json::json!({}),
            data_digest: String::new(),
            from_digest: None,
            raised: Vec::new(),
            seed: 1,
            n_updates: 7,
            n_decisions: whole.learner().n_decisions(),
        };
        let bytes = Checkpoint::of_training(provenance, tensors, state).to_bytes().unwrap();
        let read = Checkpoint::from_bytes(&bytes).unwrap();
        let mut resumed = begin(BUDGET);
        let state = read.state().unwrap().clone();
        resumed.restore(&Saved { tensors: read.tensors.clone(), state }).unwrap();
        assert_eq!(run(&mut whole, usize::MAX), run(&mut resumed, usize::MAX));
        assert_eq!(whole.save().unwrap(), resumed.save().unwrap());
        // The file's weights decide as the training's.
        assert_eq!(
            validate(Arc::new(read.actor().unwrap())).unwrap(),
            validate(Arc::new(read.slim().actor().unwrap())).unwrap()
        );
    }
}
