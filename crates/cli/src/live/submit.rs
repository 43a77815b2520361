//! `apportion submit`: a job for a running scheduler.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{PathBuf, absolute};
use std::process;
use std::thread;
use std::time::Duration;

use clap::Args;

use super::answers::Submitted;
use super::remote::{Remote, RemoteArguments};
use crate::Session;
use crate::conditions::time;
use crate::exit::Failure;
use crate::output::OutputFormat;
use apportion::spec::snapshot::{NUMBER_MAX, NUMBER_MIN};
use apportion::units::Seconds;
use apportion_live::front::{Form, JobForm};
use apportion_live::protocol::Program;

/// The most times that a submission is sent while its answer is lost.
const SENT_MAX: u32 = 5;

/// The pause before it is sent again.
const PAUSE: Duration = Duration::from_secs(1);

/// Arguments of `submit`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  apportion submit --name cifar --job-type TYPE --scale-factor 2 --steps 100000 -- python train.py --epochs 90
  apportion submit --job-type TYPE --sizes 1,2,4 --steps 100000 -- python train.py
  apportion submit --job-type mine --throughput v100=3.2,k80=1 --steps 5000 --env SEED=7 -- ./train

`apportion throughputs show osdi20` lists types that a scheduler knows. The program gets the job's steps, its folder for
checkpoints and its lease by variables: see docs/live.md.")]
pub struct SubmitArguments {
    /// A name for the job
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Its type, by which the scheduler's throughputs have its speeds
    #[arg(long, value_name = "TYPE")]
    job_type: String,
    /// Workers it needs at once [default: 1, or the least of --sizes]
    #[arg(long, value_name = "K", value_parser = workers, allow_negative_numbers = true)]
    scale_factor: Option<u32>,
    /// Workers that it may be given, such as 1,2,4, if it can go on from its checkpoint with another number; a step is the
    /// same work on each
    #[arg(long, value_name = "K,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    sizes: Vec<u32>,
    /// Steps from its beginning to its end
    #[arg(long, value_name = "S", value_parser = steps, allow_negative_numbers = true)]
    steps: u64,
    /// Its importance, in policies that know one; larger is more
    #[arg(long, value_name = "W", default_value_t = 1.0, value_parser = weight, allow_negative_numbers = true)]
    weight: f64,
    /// The time from now within which it ought to be done, in policies with deadlines: 3600, 90min, 2h
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    slo: Option<Seconds>,
    /// Its owner, for hierarchical policies
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// Its speeds in steps/s by worker type, in place of its type's, such as v100=3.2,k80=1
    #[arg(long, value_name = "TYPE=X,…", value_parser = speeds)]
    throughput: Option<BTreeMap<String, f64>>,
    /// The folder it runs in, on every server; the one you are in where not given
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// A variable of its environment
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// Its user's name
    #[arg(long, value_name = "NAME", env = "USER", hide_env = true)]
    user: Option<String>,
    /// A key of its own: sent again with the same one, it is the same job. Drawn where not given
    #[arg(long, value_name = "WORD", value_parser = word)]
    key: Option<String>,
    #[command(flatten)]
    remote: RemoteArguments,
    /// The program and its arguments; no shell reads them
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

fn workers(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{text}` is no number of workers, expected a whole number, at least 1"))
}

fn steps(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{text}` is no number of steps, expected a whole number, at least 1"))
}

fn weight(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (NUMBER_MIN..=NUMBER_MAX).contains(number));
    number.ok_or_else(|| format!("`{text}` is no weight, expected a number from 1e-100 to 1e15"))
}

/// Reads a key. An empty one is refused: it would be the same for all.
fn word(text: &str) -> Result<String, String> {
    let is_empty = text.trim().is_empty();
    if is_empty {
        Err("it is empty, expected a word of the submission's own".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// Speeds in steps/s by worker type: `v100=3.2,k80=1`.
pub(super) fn speeds(text: &str) -> Result<BTreeMap<String, f64>, String> {
    let mut speeds = BTreeMap::new();
    for piece in text.split(',').map(str::trim) {
        let wrong = || format!("`{piece}` is no speed on a worker type, expected TYPE=STEPS_PER_SECOND");
        let (name, speed) = piece.split_once('=').ok_or_else(wrong)?;
        let speed: f64 = speed.trim().parse().map_err(|_| wrong())?;
        if name.trim().is_empty() || !speed.is_finite() {
            return Err(wrong());
        }
        if speeds.insert(name.trim().to_owned(), speed).is_some() {
            return Err(format!("`{}` comes twice", name.trim()));
        }
    }
    Ok(speeds)
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is no variable, expected NAME=VALUE")),
    }
}

/// A key that no other submission has, from the system's random keys.
fn drawn() -> String {
    let word = |part: u32| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(part);
        hasher.write_u32(process::id());
        hasher.finish()
    };
    format!("{:016x}{:016x}", word(0), word(1))
}

/// Runs the command.
///
/// # Errors
/// If there is no scheduler, or it does not take the job in.
pub(super) fn run(arguments: &SubmitArguments, session: &Session) -> Result<(), Failure> {
    let remote = Remote::new(&arguments.remote)?;
    let form = form(arguments)?;
    let key = form.key.clone().unwrap_or_default();
    let answer = send(&remote, &form, session)?;
    let warnings: Vec<&str> =
        answer["warnings"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str).collect();
    for warning in &warnings {
        session.note(format!("warning: {warning}"));
    }
    let job = answer["job"].as_u64();
    let number =
        job.ok_or_else(|| Failure::Bug { message: "the scheduler's answer has no number".to_owned() })?;
    match session.output.format() {
        OutputFormat::Json => {
            session.output.answer(&Submitted { job: number, key: &key, warnings: &warnings })
        }
        OutputFormat::Csv => session.output.text(&format!("job\n{number}")),
        OutputFormat::Table => {
            session.output.text(&number.to_string())?;
            session.note(format!("job {number} is taken in: `apportion why {number}` says what binds it"));
            Ok(())
        }
    }
}

fn form(arguments: &SubmitArguments) -> Result<Form, Failure> {
    let directory = arguments.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    let directory = absolute(&directory).map_err(Failure::io("find the folder that the job runs in"))?;
    let directory = directory
        .into_os_string()
        .into_string()
        .map_err(|name| Failure::usage(format!("{} is no name in UTF-8", name.display()), None))?;
    Ok(Form {
        name: arguments.name.clone(),
        // An empty variable USER is no user.
        user: arguments.user.clone().filter(|user| !user.is_empty()),
        key: Some(arguments.key.clone().unwrap_or_else(drawn)),
        job: JobForm {
            job_type: arguments.job_type.clone(),
            scale_factor: arguments.scale_factor.or(arguments.sizes.first().copied()).unwrap_or(1),
            sizes: arguments.sizes.clone(),
            total_steps: arguments.steps as f64,
            weight: arguments.weight,
            slo: arguments.slo.map(Seconds::get),
            owner: arguments.owner.clone(),
            throughput: arguments.throughput.clone(),
        },
        program: Program {
            command: arguments.command.clone(),
            directory: Some(directory),
            environment: arguments.environment.iter().cloned().collect(),
        },
    })
}

/// Sends the submission until there is an answer; by its key it is taken in once, however often it arrives.
fn send(remote: &Remote, form: &Form, session: &Session) -> Result<serde_json::Value, Failure> {
    let mut may_be_in = false;
    for left in (0..SENT_MAX).rev() {
        match remote.try_post("/v1/jobs", form) {
            Ok(answer) => return answer,
            Err(lost) if (lost.is_unheard && !may_be_in) || left == 0 || session.interrupt.is_raised() => {
                if may_be_in || !lost.is_unheard {
                    let key = form.key.as_deref().unwrap_or_default();
                    session.note(format!(
                        "the job may have been taken in: the same command with `--key {key}` asks for the same one"
                    ));
                }
                return Err(remote.failure(lost));
            }
            Err(lost) => may_be_in |= !lost.is_unheard,
        }
        thread::sleep(PAUSE);
    }
    Err(Failure::Bug { message: "a submission was not sent".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_and_variables_are_read() {
        assert_eq!(speeds("a=1.5, b=2").unwrap(), BTreeMap::from([("a".into(), 1.5), ("b".into(), 2.0)]));
        for wrong in ["", "a", "a=", "=1", "a=x", "a=1,a=2", "a=NaN", "a=inf"] {
            assert!(speeds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(variable("A=b=c").unwrap(), ("A".into(), "b=c".into()));
        assert!(variable("=x").is_err() && variable("A").is_err());
    }

    #[test]
    fn no_two_words_are_the_same() {
        assert_ne!(drawn(), drawn());
        assert_eq!(drawn().len(), 32);
    }
}
