//! `apportion train`: a learned scheduler from its training document.

mod document;
mod resumed;
mod said;
mod training;

use std::path::PathBuf;

use clap::Args;

use crate::Session;
use crate::exit::Failure;
use crate::paths::name_or_path;
use apportion::spec::Source;
use apportion_published::trainings::{FORMAT, TRAININGS};

/// Arguments of `train`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion train show learned_pairs > mine.yaml
  apportion train mine.yaml --out trained/
  apportion train training.yaml --set from=trained/best.safetensors --set seed=2 --out further/
  apportion train training.yaml --set seed=2 --set actor_critic.critic=false --out without-critic/

A path that the document begins with (`from:`) starts in the document's folder; in --set, where the command runs.

The folder gets curve.csv (one line an update), checkpoint.safetensors (to go on from; running the command again does)
and best.safetensors (the weights that did best in validation, for use). Those play the document's test episodes in the
end; the last line before the table says how well, and so does the table.

A training that is done goes on where the document, or --set, now gives it more: a larger `budget.decisions` or
`budget.patience`. It keeps the weights that one training with the larger budget keeps; where rates, or numbers of jobs, change
along the budget, that is another training, which begins anew in another folder. --progress json says all of it in lines of JSON:
 {\"event\": \"update\", …} after each validation, in the end {\"event\": \"test\", …}.")]
pub struct TrainArguments {
    /// A training document, `format: apportion/training-v1`: a file, or the name of one that ships with the program. `show NAME`
    /// prints one
    #[arg(value_name = "FILE|NAME", value_parser = name_or_path())]
    training: String,
    /// The name of the training to show
    #[arg(hide = true, value_parser = name_or_path())]
    of: Option<String>,
    /// Where to keep curve, checkpoint and weights
    #[arg(long, value_name = "FOLDER", required_unless_present = "of")]
    out: Option<PathBuf>,
    /// Put another value in place of the document's: FIELD is a path as in `ppo.n_steps`, VALUE is YAML
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Updates between checkpoints; without it, there is one after each update that ends a quarter of a minute or more after
    /// the last one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    checkpoint_every: Option<u64>,
}

/// Runs the command.
///
/// # Errors
/// As [`training::run`]; if a document is to be shown, and there is none of this name.
pub(super) fn run(arguments: &TrainArguments, session: &Session) -> Result<(), Failure> {
    match (arguments.training.as_str(), &arguments.of, &arguments.out) {
        ("show", Some(name), None) => show(name, session),
        ("show", Some(_), Some(_)) => {
            Err(Failure::usage("`--out` is of a training that runs, and `show` only prints one", None))
        }
        (_, Some(more), _) => Err(Failure::usage(format!("unexpected argument `{more}`"), None)),
        (_, None, Some(out)) => training::run(arguments, out, session),
        (_, None, None) => Err(Failure::usage("`--out` names the folder in which a training is kept", None)),
    }
}

/// Prints the document of a training.
fn show(name_or_path: &str, session: &Session) -> Result<(), Failure> {
    let source = Source::find("training", name_or_path, &TRAININGS)?;
    source.parse_format::<apportion_published::training::spec::TrainingSpec>(FORMAT)?;
    session.output.document(&source.text)
}
