//! `apportion sweep --slurm`: the sweep's parts as the tasks of a Slurm job array, on a shared file system.
//!
//! Task I of N runs `apportion sweep … --shard I/N` and keeps its results in `OUT/parts/I-of-N`. Submitting first joins the
//! existing parts into `OUT`, and submits only the shards with missing runs: so a second submission, whatever its N, fills only the
//! gaps that killed tasks left.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::SweepArguments;
use crate::Session;
use crate::command_line::quoted;
use crate::exit::Failure;
use crate::file::write;
use crate::output::{Answer, OutputFormat};
use crate::results;
use apportion::spec::path_text;
use apportion_studies::file::Made;
use apportion_studies::sweep::{Course, Outcome, Plan, Shard, Store, StoreError, Study, Task};

/// Flags of a job array.
#[derive(Args, Debug)]
#[command(next_help_heading = "More than one machine")]
pub(super) struct SlurmArguments {
    /// Submit the sweep as a Slurm job array; with --dry-run, print its script
    #[arg(long, conflicts_with_all = ["shard", "besides", "jobs"])]
    pub(super) slurm: bool,
    /// Tasks of the array at most, each a part of the sweep
    #[arg(long, value_name = "N", default_value = "16", requires = "slurm")]
    tasks: NonZeroUsize,
    /// Cores of each task, and runs at once in it
    #[arg(long, value_name = "N", default_value = "1", requires = "slurm")]
    cpus: NonZeroUsize,
    /// Wall time of each task as Slurm writes it, such as 2:00:00
    #[arg(long, value_name = "TIME", requires = "slurm")]
    time: Option<String>,
    /// Slurm partition
    #[arg(long, value_name = "NAME", requires = "slurm")]
    partition: Option<String>,
    /// One more line `#SBATCH LINE` in the script; may be given several times
    #[arg(long, value_name = "LINE", requires = "slurm", allow_hyphen_values = true)]
    sbatch: Vec<String>,
}

impl Default for SlurmArguments {
    fn default() -> Self {
        let (tasks, cpus) = (NonZeroUsize::MIN, NonZeroUsize::MIN);
        Self { slurm: false, tasks, cpus, time: None, partition: None, sbatch: Vec::new() }
    }
}

/// Joins the existing parts, writes the script of the rest, and submits it. What is refused leaves nothing behind.
pub(super) fn submit(
    arguments: &SweepArguments,
    session: &Session,
    plan: &Plan,
    folder: &Path,
) -> Result<(), Failure> {
    let folder = absolute(folder)?;
    let n_tasks = arguments.slurm.tasks.get().min(plan.tasks.len());
    let script = |array: &BTreeSet<usize>| script(arguments, plan, &folder, n_tasks, array);
    // Flags are refused before anything is made.
    script(&(1..=n_tasks).collect())?;
    let parts = parts(&folder)?;
    let mut joined = if arguments.dry_run { None } else { Some(join_parts(plan, &folder, &parts)?) };
    let kept = match &joined {
        Some(store) => super::kept_in(store, arguments)?,
        None => kept_so_far(arguments, &folder, &parts)?,
    };
    let mut course = Course::new(plan, kept);
    let pending = course.pending().map_err(results::run_failure)?;
    let array = shards(plan, &pending, n_tasks);
    if arguments.dry_run && !pending.is_empty() {
        return session.output.text(&script(&array)?);
    }
    let mut made = Made::default();
    let path = folder.join("slurm").join("array.sbatch");
    let job = if pending.is_empty() {
        None
    } else {
        made.note(&path);
        fs::create_dir_all(folder.join("slurm")).map_err(Failure::io(format!("make {}", path.display())))?;
        write(&path, script(&array)?.as_bytes())?;
        Some(sbatch(&path)?)
    };
    made.keep();
    if let Some(store) = &mut joined {
        store.settle();
        store.write_csv().map_err(results::failure)?;
    }
    let Some(job) = job else {
        let n_kept = course.n_kept();
        session.note(format!("all {n_kept} runs are in {}: nothing to submit", folder.display()));
        return Ok(());
    };
    let (n_kept, n_pending, n_array) = (course.n_kept(), pending.len(), array.len());
    if session.output.format() == OutputFormat::Table {
        session.output.words(&format!(
            "job {job}: {n_array} tasks, {n_pending} runs to be made, {n_kept} are there\nscript: {}\n\
             When it has ended, the same command joins the results and submits what is missing.",
            path.display()
        ))
    } else {
        session.output.answer(&SubmittedArray {
            job,
            tasks: n_array,
            pending: n_pending,
            kept: n_kept,
            script: path,
        })
    }
}

/// A job array, as `apportion sweep --slurm --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SubmittedArray {
    /// Slurm's number of the array.
    job: String,
    /// The number of its tasks.
    tasks: usize,
    /// The number of runs that they make.
    pending: usize,
    /// The number of runs that already have results.
    kept: usize,
    /// The script that was submitted.
    script: PathBuf,
}

impl Answer for SubmittedArray {
    const KIND: &'static str = "array";
}

/// The folders of the parts that have ended, or are under way.
fn parts(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut parts = Vec::new();
    let place = folder.join("parts");
    if place.exists() {
        let read = || Failure::io(format!("read {}", place.display()));
        for entry in fs::read_dir(&place).map_err(read())? {
            let path = entry.map_err(read())?.path();
            match Store::open_to_resume(&path) {
                Ok(_) => parts.push(path),
                Err(StoreError::Missing { .. }) => {}
                Err(error) => return Err(results::failure(error)),
            }
        }
    }
    parts.sort();
    Ok(parts)
}

/// Joins the parts into the whole. A whole that is new is removed with the store unless it is settled.
fn join_parts(plan: &Plan, folder: &Path, parts: &[PathBuf]) -> Result<Store, Failure> {
    let opened = if parts.is_empty() {
        Store::begin(folder, &Study::of(&plan.sweep, &plan.selection))
    } else {
        Store::merge(folder, parts).map(|(store, _)| store)
    };
    opened.map_err(results::failure)
}

/// Digest and outcome of all runs that are not made again, of the whole and its parts as they are.
fn kept_so_far(
    arguments: &SweepArguments,
    folder: &Path,
    parts: &[PathBuf],
) -> Result<BTreeMap<String, Outcome>, Failure> {
    let mut kept = BTreeMap::new();
    for place in parts.iter().map(PathBuf::as_path).chain([folder]) {
        match Store::open_to_resume(place) {
            Ok(store) => kept.extend(super::kept_in(&store, arguments)?),
            Err(StoreError::Missing { .. }) => {}
            Err(error) => return Err(results::failure(error)),
        }
    }
    Ok(kept)
}

/// The shards with missing runs.
fn shards(plan: &Plan, pending: &[Task], n_tasks: usize) -> BTreeSet<usize> {
    let is_pending = |task: &Task| pending.iter().any(|other| other.point.index == task.point.index);
    let dealt = plan.tasks.iter().zip(Shard::deal(plan.tasks.len(), n_tasks));
    dealt.filter(|(task, _)| is_pending(task)).map(|(_, shard)| shard).collect()
}

/// Ranges of numbers: `1-3,7` for 1, 2, 3, 7.
fn ranges(numbers: &BTreeSet<usize>) -> String {
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match pieces.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => pieces.push((*number, *number)),
        }
    }
    let text = |(first, last): (usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    pieces.into_iter().map(text).collect::<Vec<_>>().join(",")
}

fn script(
    arguments: &SweepArguments,
    plan: &Plan,
    folder: &Path,
    n_tasks: usize,
    array: &BTreeSet<usize>,
) -> Result<String, Failure> {
    let SlurmArguments { cpus, time, partition, sbatch, .. } = &arguments.slurm;
    let program = env::current_exe().map_err(Failure::io("find this program"))?;
    let here = env::current_dir().map_err(Failure::io("find the current folder"))?;
    let mut text =
        String::from("#!/bin/bash\n# One part of a sweep a task; made by `apportion sweep --slurm`.\n");
    let mut line = |directive: &str| {
        let _ = writeln!(text, "#SBATCH {directive}");
    };
    let job = |letter: char| if letter.is_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    line(&format!("--job-name=apportion-{}", plan.sweep.name.chars().map(job).collect::<String>()));
    line(&format!("--array={}", ranges(array)));
    line(&format!("--cpus-per-task={cpus}"));
    line(&format!("--chdir={}", unbroken(&here)?));
    // In the name of a log, `%` begins a field that Slurm fills in.
    line(&format!("--output={}/slurm/%A-%a.log", unbroken(folder)?.replace('%', "%%")));
    for (name, value) in [("time", time), ("partition", partition)] {
        if let Some(value) = value {
            if value.is_empty()
                || value.contains(|letter: char| letter.is_whitespace() || letter.is_control())
            {
                let message =
                    format!("--{name}: `{value}` is not one word, which is all that Slurm takes there");
                return Err(Failure::usage(message, None));
            }
            line(&format!("--{name}={value}"));
        }
    }
    for directive in sbatch {
        if directive.contains(char::is_control) {
            let help = "give `--sbatch` once for each line".to_owned();
            return Err(Failure::usage(format!("--sbatch: `{directive}` is more than a line"), Some(help)));
        }
        line(directive);
    }
    let Some(sweep) = &arguments.sweep else {
        let help = "`apportion sweep … --show >sweep.yaml` writes it, to be submitted".to_owned();
        return Err(Failure::usage("--slurm: the tasks need the sweep as a file", Some(help)));
    };
    let path = path_text::to_path(sweep);
    let sweep = if path.is_file() { written(&absolute(&path)?)? } else { sweep.clone() };
    let mut words = vec![written(&program)?, "sweep".to_owned(), sweep];
    if let Some(log) = &arguments.log {
        words.extend(["--log".to_owned(), written(&absolute(&path_text::to_path(log))?)?]);
    }
    for selected in &arguments.only {
        words.extend(["--only".to_owned(), selected.clone()]);
    }
    for (flag, is_given) in [
        ("--quick", arguments.quick),
        ("--keep-jobs", arguments.keep_jobs),
        ("--keep-allocations", arguments.keep_allocations),
        ("--retry", arguments.retry),
    ] {
        words.extend(is_given.then(|| flag.to_owned()));
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let folder = quoted(&written(folder)?);
    let _ = write!(
        text,
        "\nout={folder}\nexec {} \\\n    --shard \"$SLURM_ARRAY_TASK_ID/{n_tasks}\" --besides \"$out\" \\\n    \
         --out \"$out/parts/$SLURM_ARRAY_TASK_ID-of-{n_tasks}\" --jobs {cpus} --progress plain\n",
        words.join(" ")
    );
    Ok(text)
}

/// A path as text; refused if it is not UTF-8.
fn written(path: &Path) -> Result<String, Failure> {
    let help = || Some("start it in another folder, or give another `--out`".to_owned());
    let refused =
        || Failure::usage(format!("a script holds no path that is not UTF-8: {}", path.display()), help());
    path.to_str().map(str::to_owned).ok_or_else(refused)
}

/// A path that fits into a directive of the script.
fn unbroken(path: &Path) -> Result<String, Failure> {
    let text = written(path)?;
    let is_apart = |letter: char| letter.is_whitespace() || letter.is_control() || "'\"\\".contains(letter);
    if text.contains(is_apart) {
        let help = "start it in another folder, or give another `--out`".to_owned();
        let message = format!("Slurm takes no path with spaces, quotes or backslashes: {text}");
        return Err(Failure::usage(message, Some(help)));
    }
    Ok(text)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(Failure::io(format!("find {}", path.display())))
}

/// Submits a script, and returns the job's number.
fn sbatch(script: &Path) -> Result<String, Failure> {
    let output = Command::new("sbatch")
        .arg("--parsable")
        .arg(script)
        .output()
        .map_err(Failure::io("run sbatch, which submits jobs to Slurm"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let job = said.trim().split(';').next().unwrap_or_default().to_owned();
    if output.status.success() && !job.is_empty() {
        return Ok(job);
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let help = "nothing was submitted and nothing kept; `--dry-run` prints the script".to_owned();
    Err(Failure::usage(format!("sbatch refused the script: {complaint}"), Some(help)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_ranges() {
        assert_eq!(ranges(&BTreeSet::from([1, 2, 3, 7, 9, 10])), "1-3,7,9-10");
        assert_eq!(ranges(&BTreeSet::from([4])), "4");
    }
}
