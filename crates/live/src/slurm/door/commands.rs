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
pub(super) fn steer(id: u64, words: &[&str]) -> Result<String, ToolError> {
    let words = words.iter().map(|word| (*word).to_owned());
    order("scontrol", &words.chain([id.to_string()]).collect::<Vec<_>>())
}

/// Asks Slurm for something.
///
/// # Errors
/// If it refuses, or does not answer. What it answers is no word that it is done for good.
pub(super) fn carry_out(id: u64, command: &Command) -> Result<String, ToolError> {
    let update = |more: &[String]| {
        let words = ["update".to_owned(), format!("JobId={id}")];
        order("scontrol", &words.iter().chain(more).cloned().collect::<Vec<_>>())
    };
    match command {
        Command::Release(nodes) => {
            update(&[format!("NodeList={nodes}"), "StartTime=now".to_owned()])?;
            steer(id, &["release"])
        }
        Command::StartNow => update(&["StartTime=now".to_owned()]),
        Command::Hold => steer(id, &["uhold"]),
        // (without this word a job that has just been completed would run again)
        Command::Requeue => steer(id, &["requeuehold", "Incomplete"]),
        Command::Cancel => order("scancel", &[id.to_string()]),
    }
}

/// Tells a job's user, where Slurm lets it: `scontrol show job` has it as AdminComment.
pub(super) fn tell(id: u64, text: &str) {
    let words = ["update".to_owned(), format!("JobId={id}"), format!("AdminComment={text}")];
    // (only an operator may: who may not has said it to the scheduler)
    let _ = order("scontrol", &words);
}
