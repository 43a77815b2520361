//! The jobs of a partition as `squeue --json` shows them: what is read, and in which forms.
//!
//! Slurm's JSON changes from version to version: a state is a word or a list of words, a number may be wrapped with whether
//! it is set. All are read; what is none of them makes a job unreadable, which is said.

use std::collections::{BTreeMap, BTreeSet};

use apportion::Seconds;
use serde_json::Value;

use crate::clock;
use crate::slurm::queue;
use crate::slurm::tools::{ToolError, ask};

/// What the comments begin with of jobs that apportion is to take in.
const PREFIX: &str = "apportion:";

/// A Slurm job that is apportion's to steer, or may become it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldJob {
    /// Slurm's number of it.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The user that submitted it.
    pub user: String,
    /// What its user says of it behind `apportion:`; none where its comment does not begin so.
    pub terms: Option<String>,
    /// The partitions that it may run in, or the one that it runs in.
    pub partitions: String,
    /// How many nodes it asks for.
    pub n_nodes: u32,
    /// The most nodes that it may have; 0 is as many as it asks for.
    pub n_nodes_most: u32,
    /// What it asks for on each node, such as `gres:gpu:2`.
    pub per_node: String,
    /// What it asks for in all, such as `gres:gpu:2`.
    pub per_job: String,
    /// What it asks for by task or by socket.
    pub per_other: String,
    /// The nodes that it asks for by name.
    pub required_nodes: String,
    /// The nodes that it does not want.
    pub excluded_nodes: String,
    /// With which jobs alone it shares its nodes, in Slurm's word (`none` for `--exclusive`); empty where with any.
    pub shared: String,
    /// On which jobs it depends.
    pub dependency: String,
    /// Is it one of several jobs at once?
    pub is_many: bool,
    /// Which task it is of which array, as `ARRAY_TASK`; none where it is a job by itself.
    pub task: Option<String>,
    /// The tasks that wait, of an array that has not been taken apart yet.
    pub tasks: String,
    /// May Slurm put it back into its queue?
    pub may_requeue: bool,
    /// When it was submitted, or last put back, in s since 1970.
    pub(super) submitted_s: u64,
    /// Before when it is not to start, in s since 1970; 0 where it may.
    pub(super) begins_s: u32,
    /// Slurm's word for its state.
    pub(super) state: String,
    /// Are its processes still being ended?
    pub(super) is_completing: bool,
    /// Its place in Slurm's queue: 0 until it is released.
    pub(super) priority: u64,
    /// Why it waits, in Slurm's words.
    pub(super) reason: String,
    /// What Slurm says beside the reason.
    pub(super) detail: String,
    /// How often it was put back.
    pub(super) n_restarts: u32,
    /// When Slurm started it, in s since 1970; 0 where it waits.
    pub(super) started_s: u64,
    /// How long it ran, in s, once it is over; none where Slurm does not say so.
    pub(super) ran_s: Option<u64>,
    /// The nodes that it has.
    pub(super) nodes: String,
    /// Its exit code as `wait` gives it.
    pub(super) exit_status: u32,
}

impl HeldJob {
    /// What Slurm's commands call it: the number of an array would be all of its tasks.
    pub fn address(&self) -> String {
        self.task.clone().unwrap_or_else(|| self.id.to_string())
    }

    pub(super) fn is_pending(&self) -> bool {
        !self.is_completing && queue::stage(&self.state) == queue::Stage::Pending
    }

    /// Does it ask for its nodes without the jobs of others?
    pub fn has_whole_nodes(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Does it wait, and is not to be started until it is released?
    pub(super) fn is_held(&self) -> bool {
        self.is_pending() && self.priority == 0
    }

    /// Is it over for good?
    pub(super) fn is_over(&self) -> bool {
        !self.is_completing && queue::is_over(&self.state)
    }

    /// Why it waits.
    pub(super) fn why_it_waits(&self) -> &str {
        if self.detail.is_empty() { &self.reason } else { &self.detail }
    }

    /// Does an administrator hold it?
    pub(super) fn is_held_by_admin(&self) -> bool {
        self.is_held() && self.reason == "JobHeldAdmin"
    }

    /// How it ended, in Slurm's words.
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

/// The jobs of a partition, and the steered ones that were moved to others, at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Jobs {
    /// By number.
    pub(super) all: BTreeMap<u64, HeldJob>,
    /// What is not understood of jobs that may be apportion's, in words, by number.
    pub(super) strange: BTreeMap<u64, String>,
    /// When Slurm's controller was started, in its words.
    pub(super) boot: String,
}

/// Asks Slurm for all jobs of a partition that it still knows, and for those of these numbers in whatever partition, and says when
/// it was asked.
///
/// # Errors
/// If Slurm does not answer, or with what is no list of jobs.
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
            // It knows none of them.
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

/// What Slurm's configuration says of a name; empty if nothing.
fn setting(name: &str) -> Result<String, ToolError> {
    let text = ask("scontrol", &["show", "config"].map(str::to_owned))?;
    let of_name = |line: &str| {
        let (other, value) = line.split_once('=')?;
        (other.trim() == name).then(|| value.trim().to_owned())
    };
    Ok(text.lines().find_map(of_name).unwrap_or_default())
}

/// How long Slurm gives a job that it ends, before it kills it: `KillWait`, in s; none where it does not say so.
///
/// # Errors
/// If Slurm does not answer.
pub fn kill_wait() -> Result<Option<f64>, ToolError> {
    let text = setting("KillWait")?;
    Ok(text.split_whitespace().next().and_then(|seconds| seconds.parse::<u32>().ok()).map(f64::from))
}

/// How a job ended that `squeue` does not show any more, by Slurm's accounts; none where these have no end of it.
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

/// Reads `CANCELLED by 0|0:15|12`, the last of several lines.
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

/// Is a partition one of a list?
fn is_in(partitions: &str, partition: &str) -> bool {
    partitions.split(',').any(|other| other == partition)
}

/// Reads the jobs that are meant by their number and their partitions.
fn parse(text: &str, is_meant: impl Fn(u64, &str) -> bool) -> Result<Jobs, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| format!("this is no JSON: {error}"))?;
    let list = document.get("jobs").and_then(Value::as_array).ok_or("it has no list `jobs`")?;
    let mut jobs = Jobs::default();
    for value in list {
        let Some(id) = number(value, "job_id") else { continue };
        // Some versions show jobs of all partitions; one that waits may name several.
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

/// When a job was started, and how long it ran if it is over: what Slurm shows of one that waits, or of the end of one that runs, is
/// what it expects.
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

/// The task of an array that a job is, as Slurm's commands name it.
fn task(value: &Value) -> Option<String> {
    let array = number(value, "array_job_id").filter(|array| *array > 0)?;
    let found = value.get("array_task_id")?;
    let is_set = found.get("set").and_then(Value::as_bool) == Some(true);
    let task = found.as_u64().or_else(|| number(value, "array_task_id").filter(|_| is_set))?;
    word(value, "array_task_string").is_empty().then(|| format!("{array}_{task}"))
}

/// A number, or one with whether it is set.
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

/// With which jobs alone a job shares its nodes: Slurm has one word for it, or a list of them.
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

/// The state, and whether processes are still being ended, which Slurm says in place of it or beside it.
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

/// The status that `wait` gives, which newer versions take apart.
fn exit_status(value: &Value) -> Option<u32> {
    let found = value.get("exit_code")?;
    if let Some(status) = found.as_u64() {
        return u32::try_from(status).ok();
    }
    let code = number(found, "return_code").unwrap_or(0);
    let signal = found.get("signal").and_then(|signal| number(signal, "id")).unwrap_or(0);
    u32::try_from(code << 8 | (signal & 0x7f)).ok()
}

/// What stands behind the prefix of a comment; none without it.
fn terms(comment: &str) -> Option<String> {
    comment.strip_prefix(PREFIX).map(|terms| terms.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The jobs of the partition `gpu`, and job 8.
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
