//! Requests to Slurm about a job, by its own commands.

use crate::slurm::tools::{ToolError, order};

/// A request to Slurm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Start the job on these nodes, as soon as they have room for it.
    Release(String),
    /// Start the job now, though it was to wait after it had been put back.
    StartNow,
    /// Do not start the job until it is released.
    Hold,
    /// End the job, and keep it in the queue, held.
    Requeue,
    /// End the job for good.
    Cancel,
}

/// Runs `scontrol` with these words on a job.
///
/// # Errors
/// If Slurm refuses, or does not answer.
pub(super) fn steer(address: &str, words: &[&str]) -> Result<String, ToolError> {
    let words = words.iter().map(|word| (*word).to_owned());
    order("scontrol", &words.chain([address.to_owned()]).collect::<Vec<_>>())
}

/// Carries out a request.
///
/// # Errors
/// If Slurm refuses, or does not answer. Its answer does not mean that the request is carried out for good.
pub(super) fn carry_out(address: &str, command: &Command, is_in_all: bool) -> Result<String, ToolError> {
    let update = |more: &[String]| {
        let words = ["update".to_owned(), format!("JobId={address}")];
        order("scontrol", &words.iter().chain(more).cloned().collect::<Vec<_>>())
    };
    match command {
        Command::Release(nodes) => {
            let mut words = vec![format!("NodeList={nodes}"), "StartTime=now".to_owned()];
            if is_in_all {
                // Without this, Slurm takes GPUs of further nodes while not all of this one's are free.
                words.push("NumNodes=1-1".to_owned());
            }
            update(&words)?;
            steer(address, &["release"])
        }
        Command::StartNow => update(&["StartTime=now".to_owned()]),
        Command::Hold => steer(address, &["uhold"]),
        // Without this word a job that has just been completed would run again.
        Command::Requeue => steer(address, &["requeuehold", "Incomplete"]),
        Command::Cancel => order("scancel", &[address.to_owned()]),
    }
}

/// Writes a text for a job's user, if Slurm lets it: `scontrol show job` shows it as AdminComment.
pub(super) fn tell(address: &str, text: &str) {
    let words = ["update".to_owned(), format!("JobId={address}"), format!("AdminComment={text}")];
    // Only an administrator may write it, not an operator. What matters is in the scheduler's notes, too, so a refusal is no fault.
    let _ = order("scontrol", &words);
}
