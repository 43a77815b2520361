//! A monkey at the command line: documents and flags that are odd but valid, and some that are damaged.
//!
//! In all cases every command ends, with a documented exit code that is neither a bug of ours nor a signal; claims nothing untrue
//! about shares; writes files that can be read; and leaves its inputs, and no half-written file, behind.
//!
//! | environment | |
//! |---|---|
//! | `APPORTION_MONKEY_SEED` | the seed; a fixed one where unset |
//! | `APPORTION_MONKEY_SECONDS` | go on for so long; a fixed number of cases where unset |
//! | `APPORTION_MONKEY_CASE` | only the case of this number, again |
//!
//! A case that fails is kept in `target/monkey/SEED-NUMBER`: its inputs, the command lines, and what they printed.

mod draw;
mod look;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use apportion::solver::timing::Stopwatch;
use apportion::workload::random::SeedStreams;

/// The number of cases if no time is given.
const CASES: u64 = 80;
/// The seed if none is given.
const SEED: u64 = 2026;
/// Processor time after which a command counts as one that does not end.
const LIMIT_S: f64 = 20.0;
/// The time by the clock after which a command that uses no processor does not end.
const LIMIT_CLOCK: Duration = Duration::from_mins(3);

/// A command line with what it may print.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) arguments: Vec<String>,
    /// Whether standard output has the format that was asked for.
    pub(super) formatted: bool,
}

/// Command lines, one after the other, in a folder of their own.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) kind: &'static str,
    pub(super) steps: Vec<Step>,
}

/// The outcome of a command.
#[derive(Debug)]
pub(super) struct Ran {
    /// Its exit code; none if a signal ended it, or it did not end.
    pub(super) code: Option<i32>,
    pub(super) ended: bool,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

#[expect(clippy::disallowed_methods, reason = "the tests' own settings")]
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text}, expected a number")))
}

#[test]
fn whatever_it_is_given_the_command_keeps_its_promises() {
    let seed = number("APPORTION_MONKEY_SEED").unwrap_or(SEED);
    let seconds = number("APPORTION_MONKEY_SECONDS");
    let only = number("APPORTION_MONKEY_CASE");
    // Documents are as wild as can be if someone waits for the result.
    let wild = seconds.is_some() || only.is_some();
    let start = Stopwatch::start();
    let (next, n_run) = (AtomicU64::new(0), AtomicU64::new(0));
    let found: Mutex<Vec<(u64, &'static str, String)>> = Mutex::new(Vec::new());
    let kinds: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());
    let work = &|| {
        loop {
            let number = only.unwrap_or_else(|| next.fetch_add(1, Ordering::SeqCst));
            let over = seconds.map_or(number >= CASES, |limit| start.elapsed().as_secs() >= limit);
            let done = only.is_some() && n_run.load(Ordering::SeqCst) > 0;
            if done || (over && only.is_none()) {
                return;
            }
            n_run.fetch_add(1, Ordering::SeqCst);
            let (kind, fault) = one(seed, number, wild);
            *kinds.lock().expect("no panic").entry(kind).or_default() += 1;
            if let Some(fault) = fault {
                println!("case {number} ({kind}): {fault}");
                found.lock().expect("no panic").push((number, kind, fault));
            }
        }
    };
    let n_threads = if only.is_some() { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(work);
        }
    });
    let n_run = n_run.into_inner();
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    println!("seed {seed}: {n_run} cases, {:.0} a minute: {:?}", n_run as f64 / minutes, kinds.into_inner());
    let mut found = found.into_inner().expect("no panic");
    found.sort();
    let lines: Vec<String> =
        found.iter().map(|(number, kind, fault)| format!("{number} {kind}: {fault}")).collect();
    assert!(
        found.is_empty(),
        "{} of {n_run} cases fail; `APPORTION_MONKEY_SEED={seed} APPORTION_MONKEY_CASE=N` repeats one, its files are in \
         target/monkey/{seed}-N:\n{}",
        found.len(),
        lines.join("\n")
    );
}

/// Runs a case, and keeps its folder if it fails. Returns the case's kind, and the fault.
fn one(seed: u64, number: u64, wild: bool) -> (&'static str, Option<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/monkey/{seed}-{number}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder in target");
    let mut stream = SeedStreams::new(seed).stream(format!("monkey {number}"));
    let case = draw::case(&mut stream, &folder, wild);
    let before = look::files(&folder);
    let mut log = String::new();
    let mut fault = None;
    for step in &case.steps {
        let ran = run(&folder, &step.arguments);
        let (said, command) = (String::from_utf8_lossy(&ran.stderr), quoted(&step.arguments));
        let _ = writeln!(log, "apportion {command}\nexit {:?}\n{said}", ran.code);
        fault = look::fault(&folder, step, &ran);
        if fault.is_some() {
            fs::write(folder.join("stdout"), &ran.stdout).expect("a file in target");
            break;
        }
        if ran.code != Some(0) {
            break;
        }
    }
    fault = fault.or_else(|| look::lost(&folder, &before));
    match &fault {
        None => fs::remove_dir_all(&folder).expect("our own folder"),
        Some(what) => fs::write(folder.join("log"), format!("{log}\n{what}\n")).expect("a file in target"),
    }
    (case.kind, fault)
}

/// The command line, quoted for a shell.
fn quoted(arguments: &[String]) -> String {
    let quote = |text: &String| {
        let plain = text.chars().all(|letter| letter.is_alphanumeric() || "-_=.,/:<>".contains(letter));
        if plain && !text.is_empty() { text.clone() } else { format!("'{}'", text.replace('\'', r"'\''")) }
    };
    arguments.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn run(folder: &Path, arguments: &[String]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_apportion"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let all = |mut pipe: Box<dyn Read + Send>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            bytes
        })
    };
    let stdout = all(Box::new(child.stdout.take().expect("piped")));
    let stderr = all(Box::new(child.stderr.take().expect("piped")));
    let status = wait(&mut child);
    let bytes = |thread: thread::JoinHandle<Vec<u8>>| thread.join().expect("it only reads");
    Ran {
        code: status.and_then(|s| s.code()),
        ended: status.is_some(),
        stdout: bytes(stdout),
        stderr: bytes(stderr),
    }
}

/// The exit status of a command; none if it had to be killed.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let start = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return Some(status);
        }
        if processor_seconds(child.id()) > LIMIT_S || start.elapsed() > LIMIT_CLOCK {
            child.kill().expect("a child of ours");
            child.wait().expect("a child of ours");
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Processor time of a process so far; 0 where the system does not tell.
fn processor_seconds(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace().skip(11);
    fields.take(2).filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The path of a case's file.
pub(super) fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}
