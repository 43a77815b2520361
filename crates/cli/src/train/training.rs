//! A training that the command begins, or continues from the checkpoint in its folder.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::document::Document;
use super::resumed::is_raised;
use super::said::{Reached, Said, Test, of_actions};
use super::{Failure, Session, TrainArguments};
use crate::file::{check_folder, write_bytes};
use crate::progress::{Pace, Progress as Bar};
use apportion::spec::SpecError;
use apportion::workload::random::SeedStreams;
use apportion_learn::actor::Actor;
use apportion_learn::checkpoint::{Checkpoint, Provenance, Raised};
use apportion_learn::system::{System, SystemError};
use apportion_learn::training::TrainingError;
use apportion_learn::training::learner::{AnyLearner, Learner as _, Saved};
use apportion_learn::training::run::{CurvePoint, Ended, Training};
use apportion_published::training::beginning::Beginning;
use apportion_published::training::spec::{Episodes, Measure, TrainingSpec};
use apportion_published::{plugin, systems};
use apportion_studies::report::{Cell, Table};

const CHECKPOINT: &str = "checkpoint.safetensors";
const BEST: &str = "best.safetensors";
const CURVE: &str = "curve.csv";

/// The training that one command begins or continues.
struct Job<'a> {
    arguments: &'a TrainArguments,
    /// The folder of its curve, checkpoint and weights.
    out: &'a Path,
    session: &'a Session,
    document: Document<'a>,
    spec: TrainingSpec,
    system: System,
    /// The digest of the file of weights that it begins with, if it names one.
    from_digest: Option<String>,
    /// Budgets that it had before, in a folder of an earlier version.
    raised: Vec<Raised>,
}

/// Runs the command.
///
/// # Errors
/// If the document or a checkpoint is at fault, the training diverges, or a file cannot be written.
pub(super) fn run(arguments: &TrainArguments, out: &Path, session: &Session) -> Result<(), Failure> {
    check_folder("--out", Some(out))?;
    let document = Document::read(&arguments.training, &arguments.set)?;
    let spec = document.changed()?;
    let system = systems::open(&spec.system, &spec.world).map_err(|error| {
        let place = match &error {
            SystemError::World { reason } => place_in_world(&spec.world, reason),
            SystemError::Unknown { .. } => "system".to_owned(),
        };
        document.error_at(&place, error.to_string(), None)
    })?;
    let mut job =
        Job { arguments, out, session, document, spec, system, from_digest: None, raised: Vec::new() };
    let beginning = Beginning::load(&job.spec, &job.system).map_err(|error| job.failed(&error))?;
    job.from_digest = beginning.map(|beginning| beginning.digest);
    job.run()
}

/// The place in a document of the world's option that an error names first.
fn place_in_world(world: &serde_json::Value, reason: &str) -> String {
    let named = reason.split('`').nth(1).filter(|field| world.get(field).is_some());
    named.map_or("world".to_owned(), |field| format!("world.{field}"))
}

impl Job<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        let learner = self.spec.learner(&self.system).map_err(|error| self.failed(&error))?;
        let mut training =
            Training::new(learner, self.spec.budget.clone()).map_err(|error| self.failed(&error))?;
        fs::create_dir_all(self.out).map_err(Failure::io(format!("make {}", self.out.display())))?;
        self.take_up(&mut training)?;
        self.go_on(training)
    }

    fn go_on(&self, mut training: Training<AnyLearner>) -> Result<(), Failure> {
        let mut said = Said::new(self.session);
        let mut curve = self.curve_so_far(training.learner())?;
        let (mut written, mut pace) = (Ok(()), Pace::start());
        let mut validate =
            |actor: Arc<dyn Actor>| TrainingSpec::judge(&self.system, &actor, &self.spec.validation);
        let returns = match self.spec.validation.measure {
            Measure::Reward => self.system.judged_by,
            Measure::Service => "less service times over those of `las`, mean and 99th percentile",
            Measure::Times => "less mean service and completion times over those of `las`",
        };
        said.note(format!("validation is {returns}, {}", of_actions(self.spec.validation.choice)));
        let begins_with = [
            (self.spec.warm_up.is_some(), "after the warm-up"),
            (self.spec.from.is_some(), "at the beginning"),
        ];
        let knows = begins_with.iter().find(|(does, _)| *does);
        if let (0, Some((_, when))) = (training.learner().n_updates(), knows) {
            self.warm_up(training.learner())?;
            let found = training.judge_first(&mut validate).map_err(|error| self.failed(&error))?;
            said.first(when, found, self.spec.counted());
        }
        let ended = training.run(&mut validate, &mut |training, point| {
            curve.push_str(&line(point));
            said.update(&Reached {
                point,
                counted: self.spec.counted(),
                filling: training.learner().filling(),
                best: training.best().map(|best| best.validation),
            });
            // A replay is tens of megabytes, and an update may take no longer than a millisecond.
            let due = match self.arguments.checkpoint_every {
                Some(n_updates) => point.progress.n_updates.is_multiple_of(n_updates),
                None => pace.is_due(),
            };
            if due {
                written = self.keep(training, &curve);
            }
            let stop = written.is_err() || self.session.interrupt.is_raised();
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let ended = ended.map_err(|error| self.failed(&error))?;
        written?;
        self.keep(&training, &curve)?;
        if ended == Ended::Stopped {
            let message = format!("update {} is kept; run it again to go on", training.learner().n_updates());
            return Err(Failure::Interrupted { message });
        }
        self.say_if_in_vain(training.learner());
        let test = self.test(&training)?;
        if let Some(test) = &test {
            said.test(test);
        }
        self.report(&training, ended, test)
    }

    /// Runs the warm-up by the document's teacher, if it has one.
    fn warm_up(&self, learner: &AnyLearner) -> Result<(), Failure> {
        let Some(warm_up) = &self.spec.warm_up else { return Ok(()) };
        let catalog = plugin::catalog();
        let policy = |name: &str| catalog.policy(name).map_err(|error| error.to_string());
        let streams = SeedStreams::new(self.spec.seed);
        let stop = || self.session.interrupt.is_raised();
        let warmed = warm_up.run(&self.system, learner.model(), (&policy, &stop), streams);
        let (first, last) = warmed.map_err(|error| match error {
            TrainingError::Stopped => {
                Failure::Interrupted { message: "in the warm-up, of which nothing is kept".to_owned() }
            }
            TrainingError::Play { reason } => self.document.error_at("warm_up.teacher", reason, None),
            error => self.failed(&error),
        })?;
        let updates = warm_up.updates;
        self.note(format!("warm-up of {updates} updates: cross-entropy {first:.3}, then {last:.3}"));
        Ok(())
    }

    fn note(&self, message: impl AsRef<str>) {
        Said::new(self.session).note(message);
    }

    fn provenance(&self, counts: (u64, u64)) -> Result<Provenance, TrainingError> {
        let provenance = self.spec.provenance((&self.system, self.from_digest.as_deref()), counts)?;
        Ok(Provenance { raised: self.raised.clone(), ..provenance })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }

    /// Continues from the folder's checkpoint, if there is one; also with a larger budget.
    fn take_up(&mut self, training: &mut Training<AnyLearner>) -> Result<(), Failure> {
        let path = self.path(CHECKPOINT);
        if !path.exists() {
            return Ok(());
        }
        let about = |message: String, help: Option<&str>| -> Failure {
            SpecError::about(path.display().to_string(), message, help.map(str::to_owned)).into()
        };
        let elsewhere = "give another `--out`, or remove the file to begin anew";
        let bytes = fs::read(&path).map_err(Failure::io(format!("read {}", path.display())))?;
        let checkpoint =
            Checkpoint::from_bytes(&bytes).map_err(|error| about(error.to_string(), Some(elsewhere)))?;
        let provenance = self.provenance((0, 0)).map_err(|error| self.failed(&error))?;
        let raised = is_raised(&checkpoint.header, &provenance, self.spec.counted().0);
        let raised = raised.map_err(|refused| {
            let help = if refused.may_begin_further { self.further() } else { elsewhere.to_owned() };
            about(refused.reason, Some(&help))
        })?;
        // Of files from before a larger budget was refused where rates fall along it.
        self.raised.clone_from(&checkpoint.header.raised);
        let state = checkpoint.state().map_err(|error| about(error.to_string(), Some(elsewhere)))?.clone();
        let saved = Saved { tensors: checkpoint.tensors, state };
        training.restore(&saved).map_err(|error| about(error.to_string(), Some(elsewhere)))?;
        let n_updates = training.learner().n_updates();
        let with = if raised { ", with a larger budget" } else { "" };
        self.note(format!("going on after update {n_updates}{with}"));
        Ok(())
    }

    /// The way to a further training that begins with the weights of this folder.
    fn further(&self) -> String {
        let warm_up = if self.spec.warm_up.is_some() { " --set warm_up=null" } else { "" };
        format!(
            "train on from its weights in another folder, `--set from={}{warm_up}` and another `--out`; or give another `--out` alone \
             for one training of that budget",
            self.path(BEST).display()
        )
    }

    /// The curve's lines up to the update that is gone on from; without the validation at the end of a smaller budget,
    /// where that was made beside the schedule.
    fn curve_so_far(&self, learner: &AnyLearner) -> Result<String, Failure> {
        let n_updates = learner.n_updates();
        let header = "update,decisions,episodes,mean_return,validation,figures\n".to_owned();
        if n_updates == 0 {
            return Ok(header);
        }
        let path = self.path(CURVE);
        let text = fs::read_to_string(&path).map_err(Failure::io(format!("read {}", path.display())))?;
        let before = |line: &&str| {
            line.split(',')
                .next()
                .and_then(|update| update.parse().ok())
                .is_some_and(|update: u64| update <= n_updates)
        };
        let goes_on = learner.n_decisions() < self.spec.budget.decisions;
        let scheduled = |line: &str| match line.split(',').collect::<Vec<_>>()[..] {
            [update, decisions, episodes, mean_return, validation, figures]
                if goes_on && !validation.is_empty() && !self.is_scheduled(update) =>
            {
                [update, decisions, episodes, mean_return, "", figures].join(",")
            }
            _ => line.to_owned(),
        };
        Ok(text.lines().filter(before).fold(header, |curve, line| curve + &scheduled(line) + "\n"))
    }

    /// Whether validations are due at this update, wherever the budget ends.
    fn is_scheduled(&self, update: &str) -> bool {
        update.parse().is_ok_and(|update: u64| update.is_multiple_of(self.spec.budget.validate_every))
    }

    fn keep(&self, training: &Training<AnyLearner>, curve: &str) -> Result<(), Failure> {
        let learner = training.learner();
        let counts = (learner.n_updates(), learner.n_decisions());
        let bug = |error: &dyn std::fmt::Display| Failure::Bug { message: error.to_string() };
        let provenance = self.provenance(counts).map_err(|error| bug(&error))?;
        let Saved { tensors, state } = training.save().map_err(|error| bug(&error))?;
        let checkpoint = Checkpoint::of_training(provenance.clone(), tensors, state);
        let Session { output, progress, ref interrupt, .. } = *self.session;
        let quiet = Session { output, progress, quiet: true, interrupt: interrupt.clone() };
        write_bytes(&quiet, &self.path(CURVE), curve.as_bytes())?;
        if let Some(best) = training.best() {
            let provenance = Provenance { n_updates: best.n_updates, ..provenance };
            let slim = Checkpoint::of_weights(provenance, &best.weights);
            write_bytes(&quiet, &self.path(BEST), &slim.to_bytes().map_err(|error| bug(&error))?)?;
        }
        write_bytes(&quiet, &self.path(CHECKPOINT), &checkpoint.to_bytes().map_err(|error| bug(&error))?)
    }

    /// Notes if nothing was learned.
    fn say_if_in_vain(&self, learner: &AnyLearner) {
        if let Some((n, of)) = learner.filling() {
            let begins = self.spec.warm_up.is_some() || self.spec.from.is_some();
            let since = if begins { " since the beginning" } else { "" };
            self.note(format!(
                "nothing was learned{since}: the replay has {n} of {of} samples; give more `budget.decisions`, or \
                 a smaller `actor_critic.replay`"
            ));
        }
    }

    /// Plays the test episodes at the end.
    fn test(&self, training: &Training<AnyLearner>) -> Result<Option<Test>, Failure> {
        let (Some(test), Some(best)) = (self.spec.test_episodes(), training.best()) else {
            return Ok(None);
        };
        let Some(actor) = training.best_actor().map_err(|error| self.failed(&error))? else {
            return Ok(None);
        };
        let progress = Bar::new(self.session, test.seeds.len() as u64, "test episodes");
        let mut returns = Vec::new();
        // As many episodes run at once as there are threads, so that progress is seen if episodes are long.
        for seeds in test.seeds.chunks(rayon::current_num_threads()) {
            let episodes = Episodes { seeds: seeds.to_vec(), ..test.clone() };
            let played = TrainingSpec::returns(&self.system, &actor, &episodes);
            returns.extend(played.map_err(|error| self.failed(&error))?);
            for _ in seeds {
                progress.advance();
            }
            if self.session.interrupt.is_raised() {
                let message = "the training is done; run it again to test its weights".to_owned();
                return Err(Failure::Interrupted { message });
            }
        }
        progress.finish();
        let n_episodes = returns.len();
        let mean = returns.iter().sum::<f64>() / n_episodes.max(1) as f64;
        let test = Test { mean, n_episodes, choice: test.choice, n_updates: best.n_updates };
        Ok((n_episodes > 0).then_some(test))
    }

    fn report(
        &self,
        training: &Training<AnyLearner>,
        ended: Ended,
        test: Option<Test>,
    ) -> Result<(), Failure> {
        let mut table = Table::new([
            "system",
            "updates",
            self.spec.counted().0,
            "ended",
            "best_update",
            "best_validation",
            "test",
            "test_episodes",
        ]);
        let learner = training.learner();
        let why = if ended == Ended::Patience { "no better validation" } else { "budget" };
        let best = training.best();
        table.push(vec![
            self.system.name.into(),
            Cell::Count(learner.n_updates()),
            Cell::Count(learner.n_decisions()),
            why.into(),
            best.map_or(Cell::Empty, |best| Cell::Count(best.n_updates)),
            best.map_or(Cell::Empty, |best| Cell::Number(best.validation, 4)),
            test.map_or(Cell::Empty, |test| Cell::Number(test.mean, 4)),
            test.map_or(Cell::Empty, |test| Cell::Count(test.n_episodes as u64)),
        ]);
        self.session.output.table(&table)
    }

    /// The failure of a training's error. The document is at fault for an option, the training for other failures.
    fn failed(&self, error: &TrainingError) -> Failure {
        match error {
            TrainingError::Option { field, .. } => {
                let section = match *field {
                    "decisions" | "validate_every" | "patience" => "budget.",
                    "hidden" => "network.",
                    "ppo" | "actor_critic" | "evolution" | "warm_up" | "validation.seeds"
                    | "validation.measure" | "test.seeds" | "test.measure" | "exploration" | "network"
                    | "sets" => "",
                    "updates" | "examples_per_update" => "warm_up.",
                    _ if field.starts_with("sets.") => "",
                    _ if self.spec.evolution.is_some() => "evolution.",
                    _ if self.spec.ppo.is_some() => "ppo.",
                    _ => "actor_critic.",
                };
                self.document.error_at(&format!("{section}{field}"), error.to_string(), None)
            }
            TrainingError::Beginning { reason, help } => {
                self.document.error_at("from", reason.clone(), Some(help.clone()))
            }
            TrainingError::Diverged { .. } => Failure::Limit { message: error.to_string() },
            TrainingError::Play { .. } => Failure::Usage { message: error.to_string(), help: None },
            _ => Failure::Bug { message: error.to_string() },
        }
    }
}

/// One line of the curve: the algorithm's figures as `name=value`, apart by spaces.
fn line(point: &CurvePoint) -> String {
    let CurvePoint { progress, validation } = point;
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let figures: Vec<String> =
        progress.figures.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!(
        "{},{},{},{},{},{}\n",
        progress.n_updates,
        progress.n_decisions,
        progress.finished.len(),
        number(progress.mean_return()),
        number(*validation),
        figures.join(" ")
    )
}
