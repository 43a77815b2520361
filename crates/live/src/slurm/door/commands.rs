//! What is asked of Slurm for a job, by its own commands.

use crate::slurm::tools::{ToolError, order};

/// What is asked of Slurm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// To start it on these nodes, as soon as they have room for it.
    Release(String),
    /// To start it now, though it was to wait after it had been put back.
    StartNow,
    /// To start it no more until it is released.
    Hold,
    /// To end it, and to keep it in its queue, held.
    Requeue,
    /// To end it for good.
    Cancel,
}

/// Has Slurm do what these words say with a job.
///
/// # Errors
/// If it refuses, or does not answer.
pub(super) fn steer(address: &str, words: &[&str]) -> Result<String, ToolError> {
    let words = words.iter().map(|word| (*word).to_owned());
    order("scontrol", &words.chain([address.to_owned()]).collect::<Vec<_>>())
}

/// Asks Slurm for something.
///
/// # Errors
/// If it refuses, or does not answer. What it answers is no word that it is done for good.
pub(super) fn carry_out(address: &str, command: &Command, is_in_all: bool) -> Result<String, ToolError> {
    let update = |more: &[String]| {
        let words = ["update".to_owned(), format!("JobId={address}")];
        order("scontrol", &words.iter().chain(more).cloned().collect::<Vec<_>>())
    };
    match command {
        Command::Release(nodes) => {
            let mut words = vec![format!("NodeList={nodes}"), "StartTime=now".to_owned()];
            if is_in_all {
                // Else Slurm takes GPUs of further nodes, where not all of this one are free yet.
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

/// Tells a job's user, where Slurm lets it: `scontrol show job` has it as AdminComment.
pub(super) fn tell(address: &str, text: &str) {
    let words = ["update".to_owned(), format!("JobId={address}"), format!("AdminComment={text}")];
    // Only an operator may write it. What matters is in the scheduler's notes, too, so a refusal is no fault.
    let _ = order("scontrol", &words);
}
