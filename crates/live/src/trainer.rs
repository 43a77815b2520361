//! A pretend trainer: it sleeps at a given speed, and talks to its shim as a real program does. It can misbehave, too.
//!
//! It is for tests and for trying a scheduler where nothing is to be trained. It also shows how a program of one's own reports
//! progress, stops when asked and goes on from a checkpoint.

use std::env;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use apportion::Seconds;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::files;
use crate::protocol::Stop;
use crate::rank::{Control, PROGRESS_VERSION, RankFolder, Said, State};

/// The interval at which it looks at its control file.
const LOOK: Duration = Duration::from_millis(20);

/// The interval at which it writes its progress.
const WRITTEN_EVERY: Seconds = Seconds::new(0.1);

/// The environment variable that is set once it ignores SIGTERM.
const DEAF: &str = "APPORTION_TRAINER_IS_DEAF";

/// The help text of its flags.
const USAGE: &str = "\
--speed N|TYPE=N,TYPE=N…  steps/s, on each type of worker (10)
--steps N                 steps to the job's end, where APPORTION_TOTAL_STEPS does not say it
--margin N                steps from a proposal to the step it names (half a second's)
--saving S                how long a checkpoint takes, in s (0)
--exit CODE,N             end with an exit code after N steps
--silent                  write no progress
--deaf                    ignore SIGTERM and the control file
--child                   start a process that ignores SIGTERM and outlives this one";

/// Why the trainer cannot train.
#[derive(Debug, thiserror::Error)]
pub enum TrainerError {
    /// A flag is unknown, or its value is wrong.
    #[error("`{0}` is not understood; there are\n{USAGE}")]
    Argument(String),
    /// No speed is given for the type of its worker.
    #[error("no speed is given for workers of the type `{0}`")]
    NoSpeed(String),
    /// A file or a process failed.
    #[error("{what}: {source}")]
    Io {
        /// The action that failed.
        what: String,
        /// The error.
        source: io::Error,
    },
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> TrainerError {
    let what = what.into();
    move |source| TrainerError::Io { what, source }
}

/// The pretend trainer's behaviour, as its flags state it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Habits {
    speed: f64,
    steps: Option<u64>,
    margin: Option<u64>,
    saving_s: f64,
    exit: Option<(u8, u64)>,
    silent: bool,
    deaf: bool,
    child: bool,
}

impl Habits {
    fn parse(arguments: &[String], worker_type: &str) -> Result<Self, TrainerError> {
        let mut habits = Self { speed: 10.0, ..Self::default() };
        let mut words = arguments.iter();
        while let Some(flag) = words.next() {
            match flag.as_str() {
                "--silent" => habits.silent = true,
                "--deaf" => habits.deaf = true,
                "--child" => habits.child = true,
                _ => {
                    let value = words.next().ok_or_else(|| TrainerError::Argument(flag.clone()))?;
                    let wrong = || TrainerError::Argument(format!("{flag} {value}"));
                    match flag.as_str() {
                        "--speed" => habits.speed = speed(value, worker_type, wrong)?,
                        "--steps" => habits.steps = Some(value.parse().map_err(|_| wrong())?),
                        "--margin" => habits.margin = Some(value.parse().map_err(|_| wrong())?),
                        "--saving" => habits.saving_s = number(value).ok_or_else(wrong)?,
                        "--exit" => {
                            let (code, step) = value.split_once(',').ok_or_else(wrong)?;
                            let pair = (code.parse().ok()).zip(step.parse().ok());
                            habits.exit = Some(pair.ok_or_else(wrong)?);
                        }
                        _ => return Err(wrong()),
                    }
                }
            }
        }
        Ok(habits)
    }
}

/// A number that may be a duration or a speed.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number| (0.0..1e9).contains(number))
}

fn speed(text: &str, worker_type: &str, wrong: impl Fn() -> TrainerError) -> Result<f64, TrainerError> {
    if !text.contains('=') {
        return number(text).ok_or_else(wrong);
    }
    for one in text.split(',') {
        let (of, speed) = one.split_once('=').ok_or_else(&wrong)?;
        let speed = number(speed).ok_or_else(&wrong)?;
        if of == worker_type {
            return Ok(speed);
        }
    }
    Err(TrainerError::NoSpeed(worker_type.to_owned()))
}

/// The content of a checkpoint.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Checkpoint {
    steps: u64,
}

/// A variable of the environment, of a rank or of a program without a scheduler.
fn variable(name: &str) -> Option<String> {
    env::var_os(name)?.into_string().ok()
}

struct Trainer {
    habits: Habits,
    /// The folder of its rank; none outside a lease.
    folder: Option<RankFolder>,
    checkpoint: Option<PathBuf>,
    /// Whether it is rank 0, which writes the checkpoint and makes proposals.
    is_first: bool,
    total: Option<u64>,
    said: Said,
    written: Seconds,
}

/// Trains until the job is done, or it is to stop. Returns the exit code.
///
/// # Errors
/// If an argument is not understood, or a file cannot be read or written.
pub fn run(arguments: &[String]) -> Result<u8, TrainerError> {
    let worker_type = variable("APPORTION_WORKER_TYPE").unwrap_or_default();
    let habits = Habits::parse(arguments, &worker_type)?;
    if habits.deaf && env::var_os(DEAF).is_none() {
        return Err(failed("/bin/sh")(become_deaf()));
    }
    if habits.child {
        let mut child = Command::new("/bin/sh");
        child.args(["-c", "trap '' TERM; exec sleep 3600"]);
        child.spawn().map_err(failed("/bin/sh"))?;
    }
    Trainer::new(habits)?.train()
}

/// Starts this program again with SIGTERM ignored, which programs inherit. Comes back only if that failed.
fn become_deaf() -> io::Error {
    // This is not /proc/self/exe, which would be the shell.
    let Ok(own) = env::current_exe() else { return io::ErrorKind::NotFound.into() };
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "trap '' TERM; exec \"$0\" \"$@\""]).arg(own).args(env::args_os().skip(1));
    shell.env(DEAF, "1").exec()
}

impl Trainer {
    fn new(habits: Habits) -> Result<Self, TrainerError> {
        let folder = variable("APPORTION_LEASE").map(|path| RankFolder::at(path.into()));
        let checkpoint =
            variable("APPORTION_CHECKPOINTS").map(|folder| PathBuf::from(folder).join("checkpoint.json"));
        let resumed = match &checkpoint {
            Some(path) if path.exists() => files::read(path).map_err(failed(path.display().to_string()))?,
            _ => Checkpoint::default(),
        };
        let first = resumed.steps as f64;
        let said = Said {
            version: PROGRESS_VERSION,
            steps: first,
            checkpointed: first,
            first,
            seconds: 0.0,
            state: State::Starting,
            proposed: None,
        };
        let total = variable("APPORTION_TOTAL_STEPS").and_then(|steps| steps.parse().ok()).or(habits.steps);
        let is_first = variable("RANK").is_none_or(|rank| rank == "0");
        Ok(Self { habits, folder, checkpoint, is_first, total, said, written: Seconds::ZERO })
    }

    fn train(mut self) -> Result<u8, TrainerError> {
        self.say(State::Starting);
        let first = self.steps();
        let began = clock::node_now();
        // The step after which it stops, and whether that is the job's end.
        let mut last = self.total;
        loop {
            let now = clock::node_now();
            let seconds = (now - began).get();
            let steps = first.saturating_add(whole(seconds * self.habits.speed));
            let steps = last.map_or(steps, |last| steps.min(last.max(first)));
            self.said.steps = steps as f64;
            self.said.seconds = seconds;
            if let Some((code, after)) = self.habits.exit
                && steps >= after
            {
                self.say(State::Running);
                return Ok(code);
            }
            match self.order() {
                Some(Stop::Now | Stop::Kill) => last = Some(steps),
                // Steps that are done already are not undone.
                Some(Stop::After(step)) => {
                    last = Some(step.clamp(steps, self.total.unwrap_or(u64::MAX).max(steps)));
                }
                Some(Stop::Propose) if self.is_first && self.said.proposed.is_none() => {
                    let margin = self.habits.margin.unwrap_or(1 + whole(self.habits.speed / 2.0));
                    self.said.proposed = Some(steps + margin);
                    self.say(State::Running);
                }
                Some(Stop::Propose) | None => {}
            }
            if last.is_some_and(|last| steps >= last) {
                break;
            }
            if now >= self.written + WRITTEN_EVERY {
                self.say(State::Running);
            }
            thread::sleep(LOOK);
        }
        self.save()?;
        let is_done = self.total.is_some_and(|total| self.steps() >= total);
        self.say(if is_done { State::Done } else { State::Stopped });
        Ok(0)
    }

    fn steps(&self) -> u64 {
        whole(self.said.steps)
    }

    /// The order in the control file, if there is one and the habits heed it.
    fn order(&self) -> Option<Stop> {
        let folder = self.folder.as_ref().filter(|_| !self.habits.deaf)?;
        files::read::<Control>(&folder.control()).ok().map(|control| control.stop)
    }

    fn save(&mut self) -> Result<(), TrainerError> {
        self.say(State::Saving);
        thread::sleep(Duration::from_secs_f64(self.habits.saving_s));
        if let Some(path) = self.checkpoint.as_ref().filter(|_| self.is_first) {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(failed(folder.display().to_string()))?;
            }
            let checkpoint = Checkpoint { steps: self.steps() };
            files::write_durably(path, &checkpoint).map_err(failed(path.display().to_string()))?;
        }
        self.said.checkpointed = self.said.steps;
        Ok(())
    }

    /// Writes its progress. On a full disk it trains on, and writes again when there is room.
    fn say(&mut self, state: State) {
        self.said.state = state;
        self.written = clock::node_now();
        if let Some(folder) = self.folder.as_ref().filter(|_| !self.habits.silent) {
            let _ = files::write(&folder.progress(), &self.said);
        }
    }
}

/// A number of steps without its fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is not negative")]
fn whole(steps: f64) -> u64 {
    steps as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Habits, String> {
        let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Habits::parse(&arguments, "fast").map_err(|error| error.to_string())
    }

    #[test]
    fn flags_are_read() {
        let habits = parse("--speed slow=2,fast=5 --steps 9 --exit 3,4 --deaf").unwrap();
        let expected =
            Habits { speed: 5.0, steps: Some(9), exit: Some((3, 4)), deaf: true, ..Habits::default() };
        assert_eq!(habits, expected);
        assert_eq!(parse("--speed 7"), Ok(Habits { speed: 7.0, ..Habits::default() }));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for (text, words) in [
            ("--speed slow=2", "no speed is given for workers of the type `fast`"),
            ("--speed x", "`--speed x` is not understood"),
            ("--saving -1", "`--saving -1` is not understood"),
            ("--exit 3", "`--exit 3` is not understood"),
            ("--fast 3", "`--fast 3` is not understood"),
            ("--steps", "`--steps` is not understood"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.starts_with(words), "{said}");
        }
    }
}
