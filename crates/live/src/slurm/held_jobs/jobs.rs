//! The jobs of a partition as `squeue --json` shows them: the fields that are read, and their forms.
//!
//! Slurm's JSON changes from version to version: a state is a word or a list of words, and a number may be wrapped with a flag
//! whether it is set. All these forms are read; a job of another form is reported as not understood.

use std::collections::{BTreeMap, BTreeSet};

use apportion::Seconds;
use serde_json::Value;

use crate::clock;
use crate::slurm::queue;
use crate::slurm::tools::{ToolError, ask};

/// The prefix in the comment of a job that apportion is to take in.
const PREFIX: &str = "apportion:";

/// A Slurm job that apportion steers, or may come to steer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldJob {
    /// Slurm's number of the job.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The user that submitted it.
    pub user: String,
    /// The terms that its user states after `apportion:`; none if its comment has no such prefix.
    pub terms: Option<String>,
    /// The partitions that it may run in, or the one that it runs in.
    pub partitions: String,
    /// The number of nodes that it asks for.
    pub n_nodes: u32,
    /// The most nodes that it may have; 0 for as many as it asks for.
    pub n_nodes_most: u32,
    /// The resources that it asks for on each node, such as `gres:gpu:2`.
    pub per_node: String,
    /// The resources that it asks for in all, such as `gres:gpu:2`.
    pub per_job: String,
    /// The resources that it asks for by task or by socket.
    pub per_other: String,
    /// The nodes that it asks for by name.
    pub required_nodes: String,
    /// The nodes that it excludes.
    pub excluded_nodes: String,
    /// The only jobs with which it shares its nodes, in Slurm's word (`none` for `--exclusive`); empty if with any.
    pub shared: String,
    /// The jobs on which it depends.
    pub dependency: String,
    /// Whether it is one of several jobs that are submitted as one.
    pub is_many: bool,
    /// Its array and its task in that, as `ARRAY_TASK`; none if it is a job by itself.
    pub task: Option<String>,
    /// The waiting tasks of an array that has not been taken apart yet.
    pub tasks: String,
    /// Whether Slurm may put it back into its queue.
    pub may_requeue: bool,
    /// The instant at which it was submitted, or last put back, in s since 1970.
    pub(super) submitted_s: u64,
    /// The instant before which it is not to start, in s since 1970; 0 if there is none.
    pub(super) begins_s: u32,
    /// Slurm's word for its state.
    pub(super) state: String,
    /// Whether its processes are still being ended.
    pub(super) is_completing: bool,
    /// Its place in Slurm's queue: 0 until it is released.
    pub(super) priority: u64,
    /// The reason for which it waits, in Slurm's words.
    pub(super) reason: String,
    /// Slurm's text beside the reason.
    pub(super) detail: String,
    /// The number of times that it was put back.
    pub(super) n_restarts: u32,
    /// The instant at which Slurm started it, in s since 1970; 0 if it waits.
    pub(super) started_s: u64,
    /// The time that it ran, in s, once it is over; none if Slurm does not state it.
    pub(super) ran_s: Option<u64>,
    /// The nodes that it has.
    pub(super) nodes: String,
    /// Its exit code as `wait` gives it.
    pub(super) exit_status: u32,
}

impl HeldJob {
    /// The job's name in Slurm's commands: the number of an array would mean all of its tasks.
    pub fn address(&self) -> String {
        self.task.clone().unwrap_or_else(|| self.id.to_string())
    }

    pub(super) fn is_pending(&self) -> bool {
        !self.is_completing && queue::stage(&self.state) == queue::Stage::Pending
    }

    /// Whether it asks for its nodes without the jobs of others.
    pub fn has_whole_nodes(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Whether it waits, and is not to be started until it is released.
    pub(super) fn is_held(&self) -> bool {
        self.is_pending() && self.priority == 0
    }

    /// Whether it is over for good.
    pub(super) fn is_over(&self) -> bool {
        !self.is_completing && queue::is_over(&self.state)
    }

    /// The reason for which it waits, or its details if Slurm states any.
    pub(super) fn why_it_waits(&self) -> &str {
        if self.detail.is_empty() { &self.reason } else { &self.detail }
    }

    /// Whether an administrator holds it.
    pub(super) fn is_held_by_admin(&self) -> bool {
        self.is_held() && self.reason == "JobHeldAdmin"
    }

    /// Its end, in Slurm's words.
    pub(super) fn end_in_words(&self) -> String {
        let (code, signal) = (self.exit_status >> 8, self.exit_status & 0x7f);
        let how = match (code, signal) {
            (0, 0) => String::new(),
            (_, 0) => format!(", exit code {code}"),
            _ => format!(", signal {signal}"),
        };
        let why = if self.reason.is_empty() || self.reason == "None" {
            String::new()
        } else {
            format!(" ({})", self.reason)
        };
        format!("Slurm says of its job {}: {}{why}{how}", self.address(), self.state)
    }
}

/// The jobs of a partition, and the steered jobs that were moved to others, at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Jobs {
    /// The jobs by number.
    pub(super) all: BTreeMap<u64, HeldJob>,
    /// The faults of jobs that may be apportion's and are not understood, in words, by number.
    pub(super) strange: BTreeMap<u64, String>,
    /// The instant at which Slurm's controller was started, in its words.
    pub(super) boot: String,
}

/// Asks Slurm for all jobs of a partition that it still knows, and for the jobs with these numbers in any partition. The second
/// value is the instant of the request.
///
/// # Errors
/// If Slurm does not answer, or its answer is no list of jobs.
pub(super) fn jobs(partition: &str, steered: &BTreeSet<u64>) -> Result<(Jobs, Seconds), ToolError> {
    let asked = clock::node_now();
    let boot = setting("BOOT_TIME")?;
    let arguments = ["--json", "--states=all", &format!("--partition={partition}")];
    let odd = |said| ToolError::Refused { tool: "squeue --json", said };
    let text = ask("squeue", &arguments.map(str::to_owned))?;
    let is_meant = |id: u64, partitions: &str| is_in(partitions, partition) || steered.contains(&id);
    let mut jobs = parse(&text, is_meant).map_err(odd)?;
    let is_missing = |id: &&u64| !jobs.all.contains_key(id) && !jobs.strange.contains_key(id);
    let missing: Vec<String> = steered.iter().filter(is_missing).map(u64::to_string).collect();
    if !missing.is_empty() {
        // Newer versions show jobs of the partition alone.
        let arguments = ["--json", "--states=all", &format!("--jobs={}", missing.join(","))];
        match ask("squeue", &arguments.map(str::to_owned)) {
            Ok(text) => {
                let more = parse(&text, |id, _| steered.contains(&id)).map_err(odd)?;
                jobs.all.extend(more.all);
                jobs.strange.extend(more.strange);
            }
            // Slurm knows none of these jobs.
            Err(ToolError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if setting("BOOT_TIME")? != boot {
        let said = "its controller has just been started".to_owned();
        return Err(ToolError::Unreachable { tool: "scontrol", said });
    }
    Ok((Jobs { boot, ..jobs }, asked))
}

/// A setting in Slurm's configuration; empty if it has none of this name.
fn setting(name: &str) -> Result<String, ToolError> {
    let text = ask("scontrol", &["show", "config"].map(str::to_owned))?;
    let of_name = |line: &str| {
        let (other, value) = line.split_once('=')?;
        (other.trim() == name).then(|| value.trim().to_owned())
    };
    Ok(text.lines().find_map(of_name).unwrap_or_default())
}

/// The time that Slurm gives a job to end before it kills it: `KillWait`, in s; none if Slurm does not state it.
///
/// # Errors
/// If Slurm does not answer.
pub fn kill_wait() -> Result<Option<f64>, ToolError> {
    let text = setting("KillWait")?;
    Ok(text.split_whitespace().next().and_then(|seconds| seconds.parse::<u32>().ok()).map(f64::from))
}

/// The end of a job that `squeue` does not show any more, by Slurm's accounts; none if these have no end of it.
pub(super) fn ended(id: u64, address: &str) -> Option<HeldJob> {
    let arguments = [
        "--noheader",
        "--parsable2",
        "--allocations",
        "--format=State,ExitCode,ElapsedRaw",
        &format!("--jobs={address}"),
    ];
    ended_as(id, &ask("sacct", &arguments.map(str::to_owned)).ok()?)
}

/// The end of a job in a text such as `CANCELLED by 0|0:15|12`; the last of several lines counts.
fn ended_as(id: u64, text: &str) -> Option<HeldJob> {
    let mut fields = text.lines().rfind(|line| !line.trim().is_empty())?.split('|');
    let (state, exit, ran_s) = (fields.next()?, fields.next()?, fields.next());
    let state = state.split_whitespace().next()?.to_owned();
    let ran_s = ran_s.and_then(|ran_s| ran_s.trim().parse().ok());
    let (code, signal) = exit.split_once(':')?;
    let (code, signal): (u32, u32) = (code.trim().parse().ok()?, signal.trim().parse().ok()?);
    let exit_status = code.checked_mul(256)? | (signal & 0x7f);
    Some(HeldJob { id, state, ran_s, exit_status, ..HeldJob::default() }).filter(HeldJob::is_over)
}

/// Whether a partition is in a list.
fn is_in(partitions: &str, partition: &str) -> bool {
    partitions.split(',').any(|other| other == partition)
}

/// Reads the jobs whose number and partitions fit `is_meant`.
fn parse(text: &str, is_meant: impl Fn(u64, &str) -> bool) -> Result<Jobs, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| format!("this is no JSON: {error}"))?;
    let list = document.get("jobs").and_then(Value::as_array).ok_or("it has no list `jobs`")?;
    let mut jobs = Jobs::default();
    for value in list {
        let Some(id) = number(value, "job_id") else { continue };
        // Some versions show jobs of all partitions; a waiting job may name several.
        if !is_meant(id, &word(value, "partition")) {
            continue;
        }
        match job(id, value) {
            Ok(job) => drop(jobs.all.insert(id, job)),
            Err(what) if terms(&word(value, "comment")).is_some() => {
                let text = format!("its `{what}` is of no form that is known, in this version of Slurm");
                jobs.strange.insert(id, text);
            }
            Err(_) => {}
        }
    }
    Ok(jobs)
}

/// Reads a job. The error is the field that is not understood.
fn job(id: u64, value: &Value) -> Result<HeldJob, &'static str> {
    let small = |name: &'static str| number(value, name).and_then(|number| u32::try_from(number).ok());
    let needed = |name: &'static str| small(name).ok_or(name);
    let (state, is_completing) = state(value).ok_or("job_state")?;
    let (started_s, ran_s) = times(value, &state, is_completing);
    let others = ["tres_per_task", "tres_per_socket"].map(|name| word(value, name));
    let is_set = |name: &str| number(value, name).is_some_and(|number| number > 0);
    Ok(HeldJob {
        id,
        name: word(value, "name"),
        user: word(value, "user_name"),
        terms: terms(&word(value, "comment")),
        partitions: word(value, "partition"),
        n_nodes: needed("node_count")?,
        n_nodes_most: small("max_nodes").unwrap_or(0),
        per_node: word(value, "tres_per_node"),
        per_job: word(value, "tres_per_job"),
        per_other: others.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(","),
        required_nodes: word(value, "required_nodes"),
        excluded_nodes: word(value, "excluded_nodes"),
        shared: shared(value),
        dependency: word(value, "dependency"),
        is_many: is_set("het_job_id"),
        task: task(value),
        tasks: word(value, "array_task_string"),
        may_requeue: value.get("requeue").and_then(Value::as_bool).ok_or("requeue")?,
        submitted_s: number(value, "submit_time").unwrap_or(0),
        begins_s: small("eligible_time").unwrap_or(0),
        state,
        is_completing,
        priority: number(value, "priority").ok_or("priority")?,
        reason: word(value, "state_reason"),
        detail: word(value, "state_description"),
        n_restarts: needed("restart_cnt")?,
        started_s,
        ran_s,
        nodes: word(value, "nodes"),
        exit_status: exit_status(value).unwrap_or(0),
    })
}

/// The start of a job, and the time that it ran if it is over. For a job that waits, and for the end of one that runs, Slurm shows
/// only expected instants.
fn times(value: &Value, state: &str, is_completing: bool) -> (u64, Option<u64>) {
    if queue::stage(state) == queue::Stage::Pending {
        return (0, None);
    }
    let instant = |name: &str| number(value, name).filter(|seconds| *seconds > 0);
    let (started, ended) = (instant("start_time"), instant("end_time"));
    let is_over = queue::is_over(state) && !is_completing;
    let ran = started.zip(ended).filter(|_| is_over).and_then(|(start, end)| end.checked_sub(start));
    (started.unwrap_or(0), ran)
}

/// The array and the task of a job, in the form of Slurm's commands.
fn task(value: &Value) -> Option<String> {
    let array = number(value, "array_job_id").filter(|array| *array > 0)?;
    let found = value.get("array_task_id")?;
    let is_set = found.get("set").and_then(Value::as_bool) == Some(true);
    let task = found.as_u64().or_else(|| number(value, "array_task_id").filter(|_| is_set))?;
    word(value, "array_task_string").is_empty().then(|| format!("{array}_{task}"))
}

/// A number, plain or wrapped with a flag whether it is set.
fn number(value: &Value, name: &str) -> Option<u64> {
    let found = value.get(name)?;
    found.as_u64().or_else(|| match found.get("set").and_then(Value::as_bool) {
        Some(false) => Some(0),
        _ => found.get("number").and_then(Value::as_u64),
    })
}

fn word(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().trim().to_owned()
}

/// The only jobs with which a job shares its nodes: Slurm has one word for it, or a list of words.
fn shared(value: &Value) -> String {
    let alone = |word: &Value| {
        word.as_str().filter(|word| ["none", "user", "mcs", "topo"].contains(word)).map(str::to_owned)
    };
    let word = match value.get("shared") {
        Some(Value::Array(words)) => words.iter().find_map(alone),
        other => other.and_then(alone),
    };
    word.unwrap_or_default()
}

/// The state, and whether processes are still being ended, which Slurm shows in place of the state or beside it.
fn state(value: &Value) -> Option<(String, bool)> {
    let found = value.get("job_state")?;
    let words: Vec<&str> = match found {
        Value::String(word) => vec![word.as_str()],
        Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    let is_completing = words.contains(&"COMPLETING");
    let base = words.iter().find(|word| **word != "COMPLETING").or(words.first())?;
    Some(((*base).to_owned(), is_completing))
}

/// The status as `wait` gives it, which newer versions of Slurm show in parts.
fn exit_status(value: &Value) -> Option<u32> {
    let found = value.get("exit_code")?;
    if let Some(status) = found.as_u64() {
        return u32::try_from(status).ok();
    }
    let code = number(found, "return_code").unwrap_or(0);
    let signal = found.get("signal").and_then(|signal| number(signal, "id")).unwrap_or(0);
    u32::try_from(code << 8 | (signal & 0x7f)).ok()
}

/// The text after the prefix of a comment; none without the prefix.
fn terms(comment: &str) -> Option<String> {
    comment.strip_prefix(PREFIX).map(|terms| terms.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a job is in the partition `gpu`, or is job 8.
    fn is_meant(id: u64, partitions: &str) -> bool {
        is_in(partitions, "gpu") || id == 8
    }

    fn read(job: &str) -> Jobs {
        parse(&format!("{{\"jobs\": [{job}]}}"), is_meant).unwrap()
    }

    const OLD: &str = r#"{"job_id": 7, "job_state": "PENDING", "partition": "gpu", "comment": "apportion: steps=5",
        "name": "a b", "user_name": "ann", "node_count": 2, "max_nodes": 2, "tres_per_node": "gres:gpu:2",
        "tres_per_job": "", "requeue": true, "priority": 0, "restart_cnt": 1, "state_reason": "JobHeldUser",
        "eligible_time": 0, "submit_time": 1795847258, "exit_code": 768, "array_job_id": 0}"#;

    #[test]
    fn a_job_is_read_in_the_forms_of_old_and_new_versions() {
        let old = read(OLD).all.remove(&7).unwrap();
        assert_eq!((old.terms.as_deref(), old.n_nodes, old.n_restarts), (Some("steps=5"), 2, 1));
        assert!(old.is_held() && old.is_pending() && old.may_requeue && !old.is_many && !old.is_over());
        let new = OLD
            .replace("\"PENDING\"", "[\"PENDING\"]")
            .replace("\"priority\": 0", "\"priority\": {\"set\": true, \"infinite\": false, \"number\": 0}")
            .replace("\"node_count\": 2", "\"node_count\": {\"set\": true, \"number\": 2}")
            .replace("\"array_job_id\": 0", "\"array_job_id\": {\"set\": false, \"number\": 0}")
            .replace(
                "768",
                "{\"return_code\": {\"set\": true, \"number\": 3}, \"signal\": {\"id\": {\"set\": false}}}",
            );
        assert_eq!(read(&new).all[&7], old);
    }

    #[test]
    fn how_long_a_job_ran_is_read_once_it_is_over() {
        let of = |state: &str, times: &str| {
            let text = OLD.replace("\"PENDING\"", state).replace("\"name\"", &format!("{times}, \"name\""));
            let job = read(&text).all.remove(&7).unwrap();
            (job.started_s, job.ran_s)
        };
        let old = "\"start_time\": 100, \"end_time\": 116";
        let new = "\"start_time\": {\"set\": true, \"number\": 100}, \"end_time\": {\"set\": true, \"number\": 116}";
        for times in [old, new] {
            assert_eq!(of("\"COMPLETED\"", times), (100, Some(16)));
            assert_eq!(of("[\"COMPLETED\", \"COMPLETING\"]", times), (100, None));
            assert_eq!(of("\"RUNNING\"", times), (100, None), "the end is what Slurm expects");
            assert_eq!(of("\"PENDING\"", times), (0, None), "so is the start");
        }
        assert_eq!(of("\"CANCELLED\"", "\"start_time\": 0, \"end_time\": 116"), (0, None));
    }

    #[test]
    fn tasks_of_arrays_are_told_from_arrays() {
        let of = |more: &str| {
            let job = read(&OLD.replace("\"array_job_id\": 0", more)).all.remove(&7).unwrap();
            (job.address(), job.tasks)
        };
        for task in ["0", "{\"set\": true, \"number\": 0}"] {
            let text = format!("\"array_job_id\": 5, \"array_task_id\": {task}, \"array_task_string\": \"\"");
            assert_eq!(of(&text), ("5_0".to_owned(), String::new()), "{task}");
        }
        let text = "\"array_job_id\": 7, \"array_task_id\": null, \"array_task_string\": \"0-3\"";
        assert_eq!(of(text), ("7".to_owned(), "0-3".to_owned()));
        let text = "\"array_job_id\": 0, \"array_task_id\": {\"set\": false, \"number\": 0}";
        assert_eq!(of(text), ("7".to_owned(), String::new()));
    }

    #[test]
    fn a_job_that_shares_no_node_is_told_from_others() {
        for (shared, is_alone) in [
            ("null", false),
            ("[]", false),
            ("\"shared\"", false),
            ("[\"oversubscribe\"]", false),
            ("\"none\"", true),
            ("[\"user\"]", true),
        ] {
            let text = OLD.replace("\"name\"", &format!("\"shared\": {shared}, \"name\""));
            assert_eq!(read(&text).all[&7].has_whole_nodes(), is_alone, "{shared}");
        }
    }

    #[test]
    fn the_end_in_the_accounts_is_read() {
        let of = |text: &str| ended_as(7, text).map(|job| (job.state, job.exit_status, job.ran_s));
        assert_eq!(of("CANCELLED by 0|0:15|12\n"), Some(("CANCELLED".to_owned(), 15, Some(12))));
        assert_eq!(of("FAILED|3:0\n"), Some(("FAILED".to_owned(), 768, None)));
        for odd in ["", "RUNNING|0:0", "Slurm accounting storage is disabled", "FAILED|x:0"] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }

    #[test]
    fn states_are_told_apart() {
        let of = |state: &str| read(&OLD.replace("\"PENDING\"", state)).all.remove(&7).unwrap();
        assert!(of("[\"CANCELLED\", \"COMPLETING\"]").is_completing && !of("\"COMPLETING\"").is_over());
        assert!(
            of("\"CANCELLED\"").is_over() && !of("\"RUNNING\"").is_over() && !of("\"RUNNING\"").is_pending()
        );
        let said = of("\"FAILED\"").end_in_words();
        assert_eq!(said, "Slurm says of its job 7: FAILED (JobHeldUser), exit code 3");
    }

    #[test]
    fn what_is_not_understood_is_said_of_jobs_that_may_be_meant() {
        let strange = read(&OLD.replace("\"job_state\"", "\"state\""));
        assert!(strange.all.is_empty() && strange.strange[&7].contains("job_state"), "{strange:?}");
        let anothers = OLD.replace("\"job_state\"", "\"state\"").replace("apportion:", "of ours:");
        assert_eq!(read(&anothers), Jobs::default());
        assert_eq!(read(&OLD.replace("\"gpu\"", "\"other\"")), Jobs::default());
        let moved = OLD.replace("\"gpu\"", "\"other\"").replace("\"job_id\": 7", "\"job_id\": 8");
        assert_eq!(read(&moved).all[&8].partitions, "other");
        assert!(parse("squeue: error", is_meant).is_err() && parse("{}", is_meant).is_err());
    }
}
