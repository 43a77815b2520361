//! All jobs of a Slurm partition, of all users, as a shadow looks at them.

use std::collections::BTreeMap;

use super::tools::{ToolError, ask_in_utc, lines};

/// A job as Slurm shows it. Instants are in s since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct SlurmJob {
    /// Slurm's number of the job, or of the array if it is a task of one: waiting tasks have no number of their own.
    pub id: u64,
    /// The number of its task in the array; none if it is a job by itself.
    pub task: Option<u64>,
    /// Its name, with blanks in place of line breaks and other control characters.
    pub name: String,
    /// The user that submitted it.
    pub user: String,
    /// Slurm's word for its state.
    pub state: String,
    /// The instant at which it was submitted, or last put back.
    pub submitted_s: f64,
    /// The number of times that it was put back.
    pub n_restarts: u32,
    /// The instant since when it may run, as far as its user and its dependencies let it; none while it may not, or if it ended
    /// before.
    pub eligible_s: Option<f64>,
    /// Whether it is held, or waits for other jobs or for a later time.
    pub is_withheld: bool,
    /// The instant of its start; none if it waits.
    pub started_s: Option<f64>,
    /// The instant of its end; none if it has not ended.
    pub ended_s: Option<f64>,
    /// The number of its GPUs in all; 0 for a job that asks only for parts of GPUs, since Slurm does not state their size.
    pub n_workers: u32,
    /// The type of GPU that it asks for; none for any type.
    pub gres_type: Option<String>,
    /// Its time limit, in s; none if it has none.
    pub limit_s: Option<f64>,
    /// The first of its nodes; none if it has none.
    pub first_node: Option<String>,
}

/// The fields that Slurm is asked for; the name, which may hold anything, is the last.
const FORMAT: &str = "%F|%K|%u|%T|%r|%V|%S|%e|%b|%D|%l|%N|%j";

/// Slurm's reasons for the wait of a job that is not ready to run.
const WITHHELD: [&str; 7] = [
    "BeginTime",
    "Dependency",
    "DependencyNeverSatisfied",
    "JobArrayTaskLimit",
    "JobHeldAdmin",
    "JobHeldUser",
    "JobHoldMaxRequeue",
];

/// Width of a column where Slurm writes in columns.
const WIDTH: usize = 64;

/// Further fields, shown in columns: users write none of them.
const COLUMNS: [&str; 7] =
    ["ArrayJobID", "ArrayTaskID", "tres-per-job", "tres-per-task", "NumTasks", "EligibleTime", "RestartCnt"];

/// The key of a job: its number or that of its array, and the task.
type Key = (u64, Option<u64>);

/// The fields of a job that Slurm shows in columns.
#[derive(Clone, Debug, Default, PartialEq)]
struct Beside {
    /// The GPUs that it asks for as a whole or by task: type and number; none if it asks for none so.
    workers: Option<(Option<String>, u32)>,
    eligible_s: Option<f64>,
    n_restarts: u32,
}

/// The jobs of a partition that ask for GPUs, or for parts of them, by number; each task of an array is one.
///
/// # Errors
/// If Slurm does not answer.
pub fn all_jobs(partition: &str) -> Result<Vec<SlurmJob>, ToolError> {
    let asked = ask_all(FORMAT, &["--states=all", &format!("--partition={partition}")])?;
    Ok(asked.lines.iter().filter_map(|line| parse(line, &asked)).collect())
}

/// Slurm's answer about jobs: a line for each, and the columns.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) lines: Vec<String>,
    beside: BTreeMap<Key, Beside>,
}

impl Asked {
    /// An answer from lines, and from a text in columns.
    pub(super) fn new(lines: Vec<String>, columns: &str) -> Self {
        Self { lines, beside: columns.lines().filter_map(beside).collect() }
    }

    /// The type and the total number of GPUs of a job: `per_node` on each of `n_nodes` nodes, or else the number for the whole job
    /// in Slurm's columns.
    pub(super) fn workers(
        &self,
        (id, task): (&str, &str),
        per_node: &str,
        n_nodes: u32,
    ) -> Option<(Option<String>, u32)> {
        let of_nodes = workers(per_node).map(|(kind, count)| (kind, count.saturating_mul(n_nodes)));
        let beside = || self.beside.get(&key(id, task)?)?.workers.clone();
        let parts = || asks_for_parts(per_node).then_some((None, 0));
        of_nodes.or_else(beside).or_else(parts)
    }
}

/// Asks Slurm for the jobs that the words `which` select, in this format.
pub(super) fn ask_all(format: &str, which: &[&str]) -> Result<Asked, ToolError> {
    let with = |last: String| {
        let usual = ["--noheader", "--array"].iter().chain(which);
        usual.map(|word| (*word).to_owned()).chain([last]).collect::<Vec<_>>()
    };
    let shown = lines(format, |format| ask_in_utc("squeue", &with(format)))?;
    let columns = COLUMNS.map(|name| format!("{name}:{WIDTH}")).join(",");
    Ok(Asked::new(shown, &ask_in_utc("squeue", &with(format!("--Format={columns}")))?))
}

fn key(id: &str, task: &str) -> Option<Key> {
    Some((id.parse().ok()?, task.parse().ok()))
}

fn beside(line: &str) -> Option<(Key, Beside)> {
    let column =
        |place: usize| line.get(place * WIDTH..).map_or("", |rest| rest.get(..WIDTH).unwrap_or(rest)).trim();
    let key = key(column(0), column(1))?;
    let n_tasks: u32 = column(4).parse().unwrap_or(1);
    let by_task = || workers(column(3)).map(|(kind, count)| (kind, count.saturating_mul(n_tasks)));
    let parts = || (asks_for_parts(column(2)) || asks_for_parts(column(3))).then_some((None, 0));
    let workers = workers(column(2)).or_else(by_task).or_else(parts);
    let (eligible_s, n_restarts) = (instant(column(5)), column(6).parse().unwrap_or(0));
    Some((key, Beside { workers, eligible_s, n_restarts }))
}

fn parse(line: &str, asked: &Asked) -> Option<SlurmJob> {
    let fields: Vec<&str> = line.splitn(13, '|').map(str::trim).collect();
    let [id, task, user, state, reason, submitted, started, ended, per_node, n_nodes, limit, nodes, name] =
        fields.as_slice()
    else {
        return None;
    };
    let (gres_type, n_workers) = asked.workers((id, task), per_node, n_nodes.parse().unwrap_or(1))?;
    let (id, task) = key(id, task)?;
    let beside = asked.beside.get(&(id, task)).cloned().unwrap_or_default();
    let waits = matches!(*state, "PENDING" | "REQUEUED" | "REQUEUE_HOLD" | "SPECIAL_EXIT" | "CONFIGURING");
    let is_over = super::queue::is_over(state);
    let first_node = Some(first_of(nodes)).filter(|node| !node.is_empty());
    // A job that was cancelled before it ran has a start all the same, and no node.
    let has_run = !waits && first_node.is_some();
    let submitted_s = instant(submitted)?;
    let (started_s, ended_s) = (instant(started).filter(|_| has_run), instant(ended).filter(|_| is_over));
    let is_withheld = waits && WITHHELD.contains(reason);
    let eligible_s = beside.eligible_s.or(has_run.then_some(submitted_s));
    Some(SlurmJob {
        id,
        task,
        name: name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect(),
        user: (*user).to_owned(),
        state: (*state).to_owned(),
        submitted_s,
        n_restarts: beside.n_restarts,
        eligible_s: eligible_s.filter(|at| !is_withheld && ended_s.is_none_or(|ended| *at <= ended)),
        is_withheld,
        started_s,
        ended_s,
        n_workers,
        gres_type,
        limit_s: duration(limit),
        first_node,
    })
}

/// Whether Slurm's words ask for parts of GPUs: `gres:shard:2`, `gres/mps=50`.
fn asks_for_parts(text: &str) -> bool {
    text.split(',').any(|part| {
        let part = part.trim();
        let part = part.strip_prefix("gres:").or_else(|| part.strip_prefix("gres/")).unwrap_or(part);
        matches!(part.split(['(', ':', '=']).next(), Some("shard" | "mps"))
    })
}

/// The type and the number of GPUs in Slurm's words: `gres:gpu:v100:2`, `gres/gpu=2`, `gpu:2`.
fn workers(text: &str) -> Option<(Option<String>, u32)> {
    let mut found: Option<(Option<String>, u32)> = None;
    for part in text.split(',') {
        let part = part.trim();
        let part = part.strip_prefix("gres:").or_else(|| part.strip_prefix("gres/")).unwrap_or(part);
        let words: Vec<&str> = part.split(['(', ')']).next()?.split([':', '=']).collect();
        let (kind, count) = match words.as_slice() {
            ["gpu"] => (None, 1),
            ["gpu", count] => match count.parse() {
                Ok(count) => (None, count),
                Err(_) => (Some((*count).to_owned()), 1),
            },
            ["gpu", kind, count] => (Some((*kind).to_owned()), count.parse().ok()?),
            _ => continue,
        };
        let so_far = found.map_or(0, |(_, so_far)| so_far);
        found = Some((kind, so_far.saturating_add(count)));
    }
    found.filter(|(_, count)| *count > 0)
}

/// The first name of a list such as `n[03-05,7],m1`.
fn first_of(list: &str) -> String {
    let Some((prefix, rest)) = list.split_once('[').filter(|(prefix, _)| !prefix.contains(',')) else {
        return list.split(',').next().unwrap_or_default().to_owned();
    };
    let number = rest.split([',', '-', ']']).next().unwrap_or_default();
    let suffix = rest.split_once(']').map_or("", |(_, after)| after.split(',').next().unwrap_or_default());
    format!("{prefix}{number}{suffix}")
}

/// The instant `2026-11-26T12:02:20`, in UTC, in s since 1970.
fn instant(text: &str) -> Option<f64> {
    let (date, time) = text.split_once('T')?;
    let numbers = |text: &str, between: char| -> Option<Vec<i64>> {
        text.split(between).map(|number| number.parse().ok()).collect()
    };
    let (date, time) = (numbers(date, '-')?, numbers(time, ':')?);
    let ([year, month, day], [hour, minute, second]) = (date.as_slice(), time.as_slice()) else {
        return None;
    };
    if !(1..=12).contains(month) || !(1970..=9999).contains(year) {
        return None;
    }
    // The days since 1970 of the proleptic Gregorian calendar, with years that begin in March.
    let (year, month) = if *month > 2 { (*year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second) as f64)
}

/// A time limit in s, from `DAYS-HH:MM:SS`, `HH:MM:SS` or `MM:SS`; none for another word.
fn duration(text: &str) -> Option<f64> {
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let days: f64 = days.parse().ok()?;
    let parts: Vec<f64> = rest.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let seconds = match parts.as_slice() {
        [hours, minutes, seconds] => 3600.0 * hours + 60.0 * minutes + seconds,
        [minutes, seconds] => 60.0 * minutes + seconds,
        _ => return None,
    };
    Some(86_400.0 * days + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_durations_are_read() {
        assert_eq!(instant("1970-01-01T00:00:00"), Some(0.0));
        // By date -u -d 2026-11-26T12:02:20 +%s, and a leap day.
        assert_eq!(instant("2026-11-26T12:02:20"), Some(1_795_694_540.0));
        assert_eq!(instant("2024-02-29T23:59:59"), Some(1_709_251_199.0));
        for odd in ["N/A", "Unknown", "", "2026-13-01T00:00:00"] {
            assert_eq!(instant(odd), None, "{odd}");
        }
        assert_eq!(duration("1-02:00:01"), Some(93_601.0));
        assert_eq!(duration("10:00"), Some(600.0));
        assert_eq!(duration("UNLIMITED"), None);
    }

    /// A line of columns.
    fn columns(of_job: [&str; 7]) -> String {
        of_job.map(|column| format!("{column:WIDTH$}")).concat() + "\n"
    }

    #[test]
    fn a_job_is_read_with_its_workers() {
        let text = columns(["14", "N/A", "gres:gpu:4", "N/A", "1", "N/A", "0"])
            + &columns(["15", "N/A", "N/A", "gres:gpu:a100:1", "3", "N/A", "0"])
            + &columns(["17", "N/A", "N/A", "gres:shard:1", "3", "N/A", "0"]);
        let asked = Asked::new(Vec::new(), &text);
        let line = |id: u64, state: &str, gres: &str, nodes: &str| {
            format!(
                "{id}|N/A|ann|{state}|None|2026-11-26T12:00:00|2026-11-26T12:01:00|2026-11-26T12:03:00|{gres}|2|1:00:00|{nodes}|a|b"
            )
        };
        let read = |line: String| parse(&line, &asked);
        let job = read(line(12, "RUNNING", "gres:gpu:v100:2", "n[03-04]")).unwrap();
        assert_eq!((job.n_workers, job.gres_type.as_deref(), job.name.as_str()), (4, Some("v100"), "a|b"));
        assert_eq!((job.first_node.as_deref(), job.limit_s), (Some("n03"), Some(3600.0)));
        assert_eq!((job.started_s.map(|at| at - job.submitted_s), job.ended_s), (Some(60.0), None));
        let over = read(line(12, "COMPLETED", "gres:gpu:2", "n1,n2")).unwrap();
        assert_eq!((over.ended_s.map(|at| at - over.submitted_s), over.gres_type), (Some(180.0), None));
        let waiting = read(line(13, "PENDING", "gres/gpu=1", "")).unwrap();
        assert_eq!((waiting.started_s, waiting.n_workers), (None, 2));
        let cancelled = read(line(13, "CANCELLED", "gpu:1", "")).unwrap();
        assert!(cancelled.started_s.is_none() && cancelled.ended_s.is_some());
        assert_eq!(read(line(14, "PENDING", "N/A", "")).unwrap().n_workers, 4);
        assert_eq!(read(line(15, "PENDING", "N/A", "")).unwrap().n_workers, 3);
        assert_eq!(read(line(16, "PENDING", "N/A", "")), None, "it asks for no GPU");
        for (id, gres, expected) in [
            (16, "gres/shard:2", Some(0)),
            (16, "gres:mps:50", Some(0)),
            (16, "gres:mps", Some(0)),
            (16, "gres:gpu:1,gres:shard:2", Some(2)),
            (16, "gres:sharding:2", None),
            (17, "N/A", Some(0)),
        ] {
            let job = read(line(id, "PENDING", gres, ""));
            assert_eq!(job.map(|job| job.n_workers), expected, "{gres}");
        }
    }

    #[test]
    fn a_job_that_may_not_run_yet_and_tasks_of_arrays_are_told_apart() {
        let text = columns(["12", "N/A", "N/A", "N/A", "1", "2026-11-26T12:02:00", "1"])
            + &columns(["13", "0", "N/A", "N/A", "1", "N/A", "0"])
            + &columns(["13", "1", "gres:gpu:3", "N/A", "1", "2026-11-26T12:05:00", "0"]);
        let asked = Asked::new(Vec::new(), &text);
        let read = |id: u64, task: &str, state: &str, reason: &str| {
            let times = "2026-11-26T12:00:00|N/A|2026-11-26T12:04:00";
            let line = format!("{id}|{task}|ann|{state}|{reason}|{times}|gres:gpu:1|1|1:00||a\nb");
            parse(&line, &asked).unwrap()
        };
        let since = |job: &SlurmJob| job.eligible_s.map(|at| at - job.submitted_s);
        let job = read(12, "N/A", "PENDING", "Resources");
        assert_eq!((job.name.as_str(), job.n_restarts, since(&job)), ("a b", 1, Some(120.0)));
        for reason in ["JobHeldUser", "BeginTime", "Dependency"] {
            let job = read(12, "N/A", "PENDING", reason);
            assert!(job.is_withheld && job.eligible_s.is_none(), "{reason}");
        }
        let (first, second) = (read(13, "0", "PENDING", "None"), read(13, "1", "CANCELLED", "None"));
        assert_eq!((first.id, first.task, first.eligible_s, first.is_withheld), (13, Some(0), None, false));
        assert_eq!((second.task, second.eligible_s), (Some(1), None), "it ended before it might run");
    }

    #[test]
    fn the_first_node_of_a_list_is_found() {
        for (list, first) in [("n[3-5,7],m", "n3"), ("m1,n[3-5]", "m1"), ("n[007]-ib,x", "n007-ib"), ("", "")]
        {
            assert_eq!(first_of(list), first, "{list}");
        }
    }
}
