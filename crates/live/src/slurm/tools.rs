//! Slurm's own commands, each with a limit on its time.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use apportion::Seconds;
use thiserror::Error;

use crate::clock;

/// The longest time that Slurm may take to show something.
const LIMIT: Seconds = Seconds::new(15.0);

/// The longest time that Slurm may take to carry out a request: nothing is reported meanwhile, and the request may have been
/// granted.
const SHORT_LIMIT: Seconds = Seconds::new(4.0);

/// The interval at which a command is looked at for its end.
const LOOK: Duration = Duration::from_millis(2);

/// Messages of Slurm's commands if its controller does not answer, or not now; the request may have been granted. They come from a
/// controller that is not there, is not ready, or ends while it is asked: the system's messages for a connection that breaks, and
/// Slurm's own for a message that did not get through, whatever else follows.
const UNREACHABLE: [&str; 24] = [
    "Unable to contact slurm controller",
    "Socket timed out",
    "Slurm temporarily unable",
    "Zero Bytes were transmitted",
    "backup controller in standby",
    "Controller is in standby mode",
    "Unexpected missing socket error",
    "Unexpected message received",
    "Communication connection failure",
    "Communication shutdown failure",
    "Message send failure",
    "Message receive failure",
    "Protocol authentication error",
    "Munge encode failed",
    "Connection refused",
    "Connection reset by peer",
    "Connection timed out",
    "Transport endpoint is not connected",
    "Broken pipe",
    "Network is down",
    "Network is unreachable",
    "No route to host",
    "Host is down",
    "Resource temporarily unavailable",
];

/// The prefixes of environment variables that are options of Slurm's commands: the format, the choice of jobs, the submission. The
/// variables that name the cluster, such as `SLURM_CONF` and `SLURM_CLUSTERS`, have other prefixes.
const OPTIONS: [&str; 6] = ["SACCT_", "SBATCH_", "SCANCEL_", "SCONTROL_", "SINFO_", "SQUEUE_"];

/// Further variables that are such options: formats of instants, lists and documents, and a hint about processors.
const FORMS: [&str; 5] = ["SLURM_BITSTR_LEN", "SLURM_HINT", "SLURM_JSON", "SLURM_TIME_FORMAT", "SLURM_YAML"];

/// Why a command of Slurm has no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolError {
    /// It cannot be run.
    #[error("`{tool}` cannot be run: {source}")]
    NotRun {
        /// The command.
        tool: &'static str,
        /// The error.
        source: io::Error,
    },
    /// Slurm does not answer now; the request may have been granted.
    #[error("Slurm does not answer: {tool}: {said}")]
    Unreachable {
        /// The command.
        tool: &'static str,
        /// Its message.
        said: String,
    },
    /// Slurm refuses.
    #[error("{tool}: {said}")]
    Refused {
        /// The command.
        tool: &'static str,
        /// Its message.
        said: String,
    },
}

/// Runs a command of Slurm and answers its output.
pub(super) fn ask(tool: &'static str, arguments: &[String]) -> Result<String, ToolError> {
    run(tool, Command::new(tool).args(arguments), LIMIT)
}

/// Runs a command of Slurm that changes something, and answers its output.
pub(super) fn order(tool: &'static str, arguments: &[String]) -> Result<String, ToolError> {
    run(tool, Command::new(tool).args(arguments), SHORT_LIMIT)
}

/// Runs a command of Slurm, which writes instants in UTC, and answers its output.
pub(super) fn ask_in_utc(tool: &'static str, arguments: &[String]) -> Result<String, ToolError> {
    run(tool, Command::new(tool).args(arguments).env("TZ", "UTC0"), LIMIT)
}

/// The lines that a command of Slurm prints, one for each thing, in this format for its `--format`. Users' texts may contain line
/// breaks: a line counts only if it begins with a random word of this call, which no text of theirs contains.
pub(super) fn lines(
    format: &str,
    ask: impl FnOnce(String) -> Result<String, ToolError>,
) -> Result<Vec<String>, ToolError> {
    let drawn = drawn().map_err(|source| ToolError::NotRun { tool: "getrandom", source })?;
    let mark = format!("{drawn}|");
    let text = ask(format!("--format={mark}{format}"))?;
    let line = |line: &str| line.strip_suffix('\n').unwrap_or(line).to_owned();
    Ok(text.split(&mark).skip(1).map(line).collect())
}

/// A random word of 16 hexadecimal digits.
pub(super) fn drawn() -> io::Result<String> {
    Ok(format!("{:016x}", getrandom::u64()?))
}

/// Whether a variable of this name is an option of Slurm's commands.
fn is_option(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    FORMS.contains(&&*name) || OPTIONS.iter().any(|beginning| name.starts_with(beginning))
}

fn run(tool: &'static str, command: &mut Command, limit: Seconds) -> Result<String, ToolError> {
    env::vars_os().map(|(name, _)| name).filter(|name| is_option(name)).for_each(|name| {
        command.env_remove(name);
    });
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let not_run = |source| ToolError::NotRun { tool, source };
    let mut child = command.spawn().map_err(not_run)?;
    let printed = child.stdout.take().map(in_background);
    let complained = child.stderr.take().map(in_background);
    let until = clock::node_now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(not_run)? {
            break Some(status);
        }
        if clock::node_now() > until {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        thread::sleep(LOOK);
    };
    // A process that it started may hold the pipes: after a kill they are not waited for.
    let Some(status) = status else {
        let said = format!("no answer within {limit}");
        return Err(ToolError::Unreachable { tool, said });
    };
    let text = |read: Option<thread::JoinHandle<String>>| {
        read.and_then(|thread| thread.join().ok()).unwrap_or_default()
    };
    let (printed, complained) = (text(printed), text(complained));
    judged(tool, status, printed, &complained)
}

fn judged(
    tool: &'static str,
    status: ExitStatus,
    printed: String,
    complained: &str,
) -> Result<String, ToolError> {
    if status.success() {
        return Ok(printed);
    }
    let said = match complained.trim().lines().map(str::trim).collect::<Vec<_>>().join("; ") {
        said if said.is_empty() => status.to_string(),
        said => said,
    };
    if UNREACHABLE.iter().any(|words| said.contains(words)) {
        return Err(ToolError::Unreachable { tool, said });
    }
    Err(ToolError::Refused { tool, said })
}

fn in_background(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// A path quoted for a shell.
pub(super) fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slurm_refuses_is_told_from_what_it_does_not_answer() {
        let said = |script: &str| ask("sh", &["-c".to_owned(), script.to_owned()]);
        assert_eq!(said("echo 17").unwrap(), "17\n");
        let refused = said("echo 'sbatch: error: Invalid partition' >&2; exit 1").unwrap_err();
        assert_eq!(refused.to_string(), "sh: sbatch: error: Invalid partition");
        assert!(matches!(refused, ToolError::Refused { .. }));
        assert!(matches!(ask("no-such-tool", &[]).unwrap_err(), ToolError::NotRun { .. }));
    }

    #[test]
    fn what_is_said_of_a_controller_that_ends_is_no_refusal() {
        for words in [
            "squeue: error: Unable to contact slurm controller (connect failure)",
            "scontrol: error: slurm_msg_sendto: address:port=127.0.0.1:6817 msg_type=5023: Unexpected missing socket error\n\
             Unexpected message received for job 124",
            "slurm_load_partitions: Connection reset by peer",
            "slurm_load_jobs error: Transport endpoint is not connected",
            "sbatch: error: slurm_msg_sendto: address:port=127.0.0.1:6817 msg_type=4003: Unexpected missing socket error\n\
             allocation failure: Requested node configuration is not available",
            "slurm_suspend error: Message receive failure",
            "slurm_update error: Message send failure",
            "sbatch: error: Batch job submission failed: Communication connection failure",
            "slurm_suspend error: Communication shutdown failure",
        ] {
            let script = format!("printf '%s\\n' '{words}' >&2; exit 1");
            let said = ask("sh", &["-c".to_owned(), script]).unwrap_err();
            assert!(matches!(said, ToolError::Unreachable { .. }), "{said}");
        }
        for words in [
            "Access/permission denied for job 7",
            "slurm_update error: Invalid node name specified",
            "sbatch: error: Batch job submission failed: Requested node configuration is not available",
        ] {
            let script = format!("printf '%s\\n' '{words}' >&2; exit 1");
            let said = ask("sh", &["-c".to_owned(), script]).unwrap_err();
            assert!(matches!(said, ToolError::Refused { .. }), "{said}");
        }
    }

    #[test]
    fn variables_that_are_options_are_told_from_those_that_name_the_cluster() {
        for name in ["SQUEUE_USERS", "SBATCH_ARRAY_INX", "SBATCH_CLUSTERS", "SLURM_TIME_FORMAT", "SLURM_HINT"]
        {
            assert!(is_option(OsStr::new(name)), "{name}");
        }
        for name in ["SLURM_CONF", "SLURM_CLUSTERS", "PATH", "HOME", "TZ", "MY_SQUEUE_USERS"] {
            assert!(!is_option(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn only_what_begins_with_the_drawn_word_is_a_line() {
        let printed = |format: String| {
            let mark = format.strip_prefix("--format=").unwrap().strip_suffix("%j").unwrap().to_owned();
            assert!(mark.len() > 16, "{mark}");
            Ok(format!("{mark}12|x\n13|forged\n{mark}14|\n"))
        };
        assert_eq!(lines("%j", printed).unwrap(), ["12|x\n13|forged", "14|"]);
        assert_ne!(drawn().unwrap(), drawn().unwrap());
    }

    #[test]
    fn a_word_survives_the_shell() {
        let word = "a'b $c";
        let script = format!("printf %s {}", quoted(Path::new(word)));
        assert_eq!(ask("sh", &["-c".to_owned(), script]).unwrap(), word);
    }
}
