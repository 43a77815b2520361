//! A case in a process of its own: started, watched, and ended if it exceeds its limits.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Session;
use crate::exit::{ExitStatus, Failure, TO_STANDARD_OUTPUT};
use apportion::problem::Problem;
use apportion::solver::timing::Stopwatch;
use apportion::spec::{Snapshot, Source, load_throughputs};
use apportion_published::plugin;
use apportion_studies::benchmark::measure::{changes_unmeasured, not_done_within};
use apportion_studies::benchmark::{Case, Instance, Row, Status, measure, measure_changes};

/// The child's line once its instance is ready and its time begins.
pub(super) const READY: &str = "ready";
/// The child's line once all decisions of its case are made; changes may follow.
const MEASURED: &str = "measured";
/// The child's last line; the most memory that it had follows, in bytes, where the system tells.
pub(super) const END: &str = "end";
/// The interval at which the parent looks at the child.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The multiple of its limit after which a process is ended by the clock, even if it uses no processor.
pub(super) const CLOCK_FACTOR: f64 = 10.0;
/// The unit in which the system counts a process's processor time, as a part of a second.
const TICKS_PER_S: f64 = 100.0;

/// The source of a problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Subject {
    /// Drawn at random.
    Drawn { instance: Instance, n_jobs: usize, seed: u64 },
    /// Read from a file.
    Snapshot { path: String, throughputs: String },
}

/// A case, as the child gets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct MeasuredCase {
    pub(super) policy: String,
    pub(super) subject: Subject,
    pub(super) backend: String,
    pub(super) partitions: usize,
    pub(super) seed: u64,
    pub(super) changes: u32,
    pub(super) repeats: Option<u32>,
    /// Limit of all its decisions together, in s.
    pub(super) limit_seconds: f64,
    /// The folder for the instance and its programs, which are then written in place of measuring; in the form of
    /// [`path_text`](apportion::spec::path_text).
    pub(super) export: Option<String>,
}

/// The limits of a case: processor time where the system tells, and a multiple of that by the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) seconds: f64,
    pub(super) bytes: u64,
}

impl Subject {
    /// Its name in results.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Drawn { instance, .. } => instance.to_string(),
            Self::Snapshot { path, .. } => path.clone(),
        }
    }

    /// The names of its jobs, by position; none for jobs that are drawn.
    fn job_names(&self) -> Result<Vec<String>, Failure> {
        let Self::Snapshot { path, .. } = self else { return Ok(Vec::new()) };
        let snapshot = Snapshot::read(&Source::load(path)?)?;
        Ok(snapshot.document().jobs.iter().map(|job| job.id.to_string()).collect())
    }

    /// The problem.
    pub(super) fn problem(&self) -> Result<Problem, Failure> {
        match self {
            Self::Drawn { instance, n_jobs, seed } => {
                let name = match instance {
                    Instance::Matrix { throughputs, .. } => throughputs,
                    Instance::Random { .. } | Instance::Restricted { .. } => "osdi20",
                };
                let drawn = instance.problem(*n_jobs, *seed, &load_throughputs(name)?);
                drawn.map_err(|error| Failure::usage(error.to_string(), None))
            }
            Self::Snapshot { path, throughputs } => {
                let snapshot = Snapshot::read(&Source::load(path)?)?;
                Ok(Problem::from_snapshot(&snapshot, &load_throughputs(throughputs)?)?)
            }
        }
    }
}

impl MeasuredCase {
    /// Reads the case that the parent process wrote.
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        serde_json::from_str(text).map_err(|error| Failure::usage(format!("`--case` is none: {error}"), None))
    }

    pub(super) fn new(policy: &str, subject: Subject, backend: &str, partitions: usize, seed: u64) -> Self {
        let (policy, backend) = (policy.to_owned(), backend.to_owned());
        Self {
            policy,
            subject,
            backend,
            partitions,
            seed,
            changes: 0,
            repeats: None,
            limit_seconds: f64::MAX,
            export: None,
        }
    }

    /// The instance's name in results.
    pub(super) fn name(&self) -> String {
        self.subject.name()
    }

    /// The row of the case, before it has run.
    pub(super) fn row(&self) -> Row {
        let mut row = Row::of(&self.policy, &self.name(), &self.backend, self.partitions);
        row.seed = self.seed;
        if let Subject::Drawn { instance, n_jobs, .. } = &self.subject {
            row.n_jobs = *n_jobs;
            row.n_types = match instance {
                Instance::Random { types, .. } | Instance::Restricted { types, .. } => *types,
                Instance::Matrix { .. } => 0,
            };
        }
        row
    }
}

/// The child's side: runs one case, and writes its row to standard output after each decision, and once more with the cost of
/// changes.
pub(super) fn run_one(case: &MeasuredCase) -> Result<(), Failure> {
    let problem = case.subject.problem()?;
    let job_names = case.subject.job_names()?;
    let before = forget_peak();
    say(READY)?;
    let measured = Case {
        job_names: &job_names,
        policy: &case.policy,
        backend: &case.backend,
        partitions: case.partitions,
        seed: case.seed,
        changes: case.changes,
        repeats: case.repeats,
        limit_seconds: case.limit_seconds,
    };
    let catalog = plugin::catalog();
    let say_row = |row: &Row| {
        let memory_peak_bytes = status_bytes("self", "VmHWM:");
        say_json(&Row {
            instance: case.name(),
            memory_before_bytes: before,
            memory_peak_bytes,
            ..row.clone()
        })
    };
    let mut said = Ok(());
    let mut told = |row: &Row| {
        if said.is_ok() {
            said = say_row(row);
        }
    };
    let mut row = measure(&catalog, &problem, &measured, &processor_seconds, &mut told);
    said?;
    say(MEASURED)?;
    if measure_changes(&catalog, &problem, &measured, &processor_seconds, &mut row) {
        say_row(&row)?;
    }
    say_end()
}

/// Writes the last line to the parent, with the peak of memory, which cannot be read off an ended process.
pub(super) fn say_end() -> Result<(), Failure> {
    let peak = status_bytes("self", "VmHWM:");
    say(&peak.map_or_else(|| END.to_owned(), |bytes| format!("{END} {bytes}")))
}

/// Writes a line to the parent process. It fails if the parent has ended: then the rest of the work is of no use.
pub(super) fn say(line: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(Failure::io(TO_STANDARD_OUTPUT))
}

/// Writes a value to the parent, as JSON on a line.
pub(super) fn say_json<T: Serialize>(value: &T) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::Bug { message: format!("a result is not JSON: {error}") })?;
    say(&text)
}

/// A case that was run.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) row: Row,
    /// Whether its instance could not be read.
    pub(super) refused: bool,
}

/// The parent's side: the row of a case; none if the user wants to stop.
pub(super) fn run_child(
    case: &MeasuredCase,
    limits: &Limits,
    session: &Session,
) -> Result<Option<Ran>, Failure> {
    let said = Said::by_child(case, limits, session)?;
    if said.end == End::Stopped {
        return Ok(None);
    }
    // A row that came just before its process exceeded its memory is not one of a case within its limits.
    let within = |row: &Row| row.memory_peak_bytes.is_none_or(|bytes| bytes <= limits.bytes);
    let mut rows = said.lines.iter().filter_map(|line| serde_json::from_str::<Row>(line).ok());
    let row = match (rows.rfind(within), said.why(limits)) {
        (Some(row), None) => row,
        (Some(mut row), Some((by, why))) => {
            // The row's decision is measured; the work after it is missing.
            let is_whole = said.lines.iter().any(|line| line == MEASURED);
            match row.status {
                Status::Done if !is_whole => row.cut(by, &why, case.repeats),
                _ if case.changes > 0 => row.message = Some(changes_unmeasured(&why)),
                _ => {}
            }
            row
        }
        (None, why) => {
            let broken = || (Status::Error, "the process ended without a result".to_owned());
            let (status, message) = why.unwrap_or_else(broken);
            Row { status, message: Some(message), memory_peak_bytes: said.peak, ..case.row() }
        }
    };
    Ok(Some(Ran { row, refused: said.refused }))
}

/// The output of a child.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) end: End,
    /// The lines between the first and the last one.
    pub(super) lines: Vec<String>,
    /// The most memory that was observed, in bytes.
    peak: Option<u64>,
    complaint: String,
    /// Whether the child could not read its instance.
    pub(super) refused: bool,
}

/// The way in which a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Limit,
    Memory,
    Broken,
    Stopped,
}

impl Said {
    /// Runs a case in a process of its own, within limits.
    pub(super) fn by_child(case: &MeasuredCase, limits: &Limits, session: &Session) -> Result<Self, Failure> {
        let text = serde_json::to_string(case)
            .map_err(|error| Failure::Bug { message: format!("a case is not JSON: {error}") })?;
        let program = std::env::current_exe().map_err(Failure::io("find this program's own file"))?;
        let mut child = Command::new(program)
            .args(["--quiet", "bench", "--case", &text])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Failure::io("start a process for a case"))?;
        let complaints = child.stderr.take().map(|mut stderr| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = stderr.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        let lines = lines_of(&mut child);
        let mut said = watch(&mut child, &lines, limits, session);
        if said.end != End::Broken {
            // The child has ended, or is to end: if it is gone it cannot be killed, and that is fine.
            let _ = child.kill();
        }
        let status = child.wait().map_err(Failure::io("end the process of a case"))?;
        said.complaint = complaints.and_then(|thread| thread.join().ok()).unwrap_or_default();
        said.refused = said.end == End::Broken && status.code() == Some(ExitStatus::BadInput as i32);
        Ok(said)
    }

    /// Why the output is not whole; none if it is.
    pub(super) fn why(&self, limits: &Limits) -> Option<(Status, String)> {
        Some(match self.end {
            End::Done => return None,
            End::Limit => (Status::Limit, not_done_within(limits.seconds)),
            End::Memory => (Status::Memory, format!("more than {} MiB", limits.bytes >> 20)),
            End::Stopped => (Status::Error, "interrupted".to_owned()),
            End::Broken => {
                let complaint = self.complaint.trim();
                let complaint = complaint.strip_prefix("error: ").unwrap_or(complaint);
                let silent = "the process ended without a result";
                (Status::Error, if complaint.is_empty() { silent } else { complaint }.to_owned())
            }
        })
    }
}

/// A channel of the lines that a child writes.
pub(super) fn lines_of(child: &mut Child) -> Receiver<String> {
    let (send, receive) = channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
    }
    receive
}

fn watch(child: &mut Child, lines: &Receiver<String>, limits: &Limits, session: &Session) -> Said {
    let id = child.id().to_string();
    let mut since_ready: Option<(Stopwatch, Option<f64>)> = None;
    let mut said =
        Said { end: End::Broken, lines: Vec::new(), peak: None, complaint: String::new(), refused: false };
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) if line == READY => {
                since_ready = Some((Stopwatch::start(), child_seconds(&id)));
            }
            Ok(line) if line.split(' ').next() == Some(END) => {
                said.peak = line.split(' ').nth(1).and_then(|bytes| bytes.parse().ok()).or(said.peak);
                let within = said.peak.is_none_or(|bytes| bytes <= limits.bytes);
                return Said { end: if within { End::Done } else { End::Memory }, ..said };
            }
            Ok(line) => said.lines.push(line),
            Err(RecvTimeoutError::Disconnected) => return said,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if session.interrupt.is_raised() {
            return Said { end: End::Stopped, ..said };
        }
        said.peak = status_bytes(&id, "VmHWM:").or(said.peak);
        if status_bytes(&id, "VmRSS:").is_some_and(|bytes| bytes > limits.bytes) {
            return Said { end: End::Memory, ..said };
        }
        let over = |(clock, before): (Stopwatch, Option<f64>)| {
            let waited = clock.elapsed().as_secs_f64();
            let used = before.zip(child_seconds(&id)).map_or(waited, |(before, now)| now - before);
            used > limits.seconds || waited > CLOCK_FACTOR * limits.seconds
        };
        if since_ready.is_some_and(over) {
            return Said { end: End::Limit, ..said };
        }
    }
}

/// Restarts the peak of resident memory where the system allows it. Returns the memory that is resident now, in bytes.
fn forget_peak() -> Option<u64> {
    // If this is refused or unknown, the peak is that of the whole process, drawing the instance included.
    let _ = fs::write("/proc/self/clear_refs", "5");
    status_bytes("self", "VmRSS:")
}

/// A value in a process's status, in bytes; none where the system has no such file.
fn status_bytes(process: &str, key: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The model of the processor; none where the system does not tell.
pub(super) fn processor_model() -> Option<String> {
    model_in(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// The model of the first processor in Linux's list of processors.
fn model_in(cpuinfo: &str) -> Option<String> {
    let model = cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    model.filter(|model| !model.is_empty())
}

/// Processor time of a process so far, all its threads, in s; none where the system does not tell.
pub(super) fn child_seconds(process: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which is in parentheses, state is the third field, user and system time the 14th and 15th.
    let (_, fields) = text.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map_while(|field| field.parse::<f64>().ok());
    Some((ticks.next()? + ticks.next()?) / TICKS_PER_S)
}

/// Processor time of this thread so far, in s; none where the system does not tell.
fn processor_seconds() -> Option<f64> {
    // The system updates the count when a thread gives way, and else only now and then.
    thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_that_of_the_first_processor_or_none() {
        let told = "processor\t: 0\nvendor_id\t: V\nmodel\t\t: 79\nmodel name\t: Some  CPU @ 2.20GHz\n\nprocessor\t: 1\n";
        assert_eq!(model_in(told).as_deref(), Some("Some CPU @ 2.20GHz"));
        assert_eq!(
            model_in("processor\t: 0\nBogoMIPS\t: 50.00\nCPU part\t: 0xd0c\n"),
            None,
            "as ARM's tells none"
        );
    }
}
