//! The way of a held Slurm job into the scheduler.

use std::collections::BTreeMap;

use super::jobs::HeldJob;
use crate::protocol::{JobNumber, Program};
use crate::slurm::tools::ToolError;

/// The word in place of a Slurm job's program, before its number.
pub(super) const PROGRAM: &str = "slurm-job";

/// The most letters of a job's name that are in its key.
const KEY_NAME_MAX: usize = 32;

/// Messages of Slurm's commands for a user without the rights for a request.
const OF_RIGHTS: [&str; 4] =
    ["Access/permission denied", "Access denied", "Invalid user id", "Operation not permitted"];

/// A Slurm job that is to be taken in.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer<'a> {
    /// The job, with its user's terms.
    pub job: &'a HeldJob,
    /// The number of nodes that it asks for.
    pub n_nodes: u32,
    /// The number of workers that it asks for on each node.
    pub per_node: u32,
    /// The type of these, as Slurm names it; none for any type.
    pub gres_type: Option<&'a str>,
}

impl Newcomer<'_> {
    /// A key that no other job has: submitted again with it, it is the same job.
    pub fn key(&self) -> String {
        let name = self.job.name.chars().filter(|letter| !letter.is_control()).take(KEY_NAME_MAX);
        format!("slurm:{}:{}:{}", self.job.id, self.job.submitted_s, name.collect::<String>())
    }

    /// A placeholder for its program, by which orders identify the job.
    pub fn program(&self) -> Program {
        Program {
            command: vec![PROGRAM.to_owned(), self.job.id.to_string()],
            directory: None,
            environment: BTreeMap::new(),
        }
    }
}

/// Why a job has not been taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// It cannot be taken in, for this reason, with a remedy for its user.
    Refused(String),
    /// The scheduler does not answer now.
    Later,
}

/// The way to the scheduler's requests.
pub trait Intake {
    /// Takes a job in.
    ///
    /// # Errors
    /// Why the job is not taken in.
    fn take_in(&mut self, newcomer: &Newcomer<'_>) -> Result<JobNumber, NotTaken>;
    /// Ends a job for this reason. False if the scheduler does not answer now.
    fn withdraw(&mut self, job: JobNumber, why: &str) -> bool;
    /// Notes a remark for the operator.
    fn remark(&mut self, job: Option<JobNumber>, text: &str);
    /// The jobs that are over, as far back as they are known, and whether each was cancelled; none if the scheduler does not answer
    /// now.
    fn over(&mut self) -> Option<BTreeMap<JobNumber, bool>>;
}

/// Refuses a job that is not held, or is held by another than its user.
pub(super) fn check_held(job: &HeldJob) -> Result<(), NotTaken> {
    if !job.is_held() {
        let why =
            "it is not held: Slurm alone runs it; what apportion is to start is submitted with `--hold`";
        return Err(NotTaken::Refused(why.to_owned()));
    }
    if job.is_held_by_admin() {
        let address = job.address();
        let why =
            format!("an administrator holds it: `scontrol release {address}; scontrol uhold {address}`");
        return Err(NotTaken::Refused(why));
    }
    Ok(())
}

/// The reason for not taking in a job that Slurm does not let be steered.
pub(super) fn unsteerable(error: ToolError) -> NotTaken {
    let ToolError::Refused { said, .. } = error else { return NotTaken::Later };
    let why = if OF_RIGHTS.iter().any(|words| said.contains(words)) {
        format!(
            "Slurm does not let this user steer it ({said}): run `serve` as Slurm's operator, or as the job's own user"
        )
    } else if said.contains("configuration") {
        format!(
            "Slurm cannot start it in its partition ({said}): it asks for more processors, memory, nodes or time than that has or \
             allows; submit it with less"
        )
    } else {
        format!("Slurm does not let it be held and released ({said}): what that says is to be mended first")
    };
    NotTaken::Refused(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_slurm_says_of_rights_is_taken_for_a_want_of_rights() {
        let why =
            |said: &str| match unsteerable(ToolError::Refused { tool: "scontrol", said: said.to_owned() }) {
                NotTaken::Refused(why) => why,
                NotTaken::Later => String::new(),
            };
        for (said, says) in [
            ("Invalid user id for job 8; slurm_suspend error: Invalid user id", "as Slurm's operator"),
            ("slurm_suspend error: Access/permission denied", "as Slurm's operator"),
            (
                "slurm_suspend error: Requested partition configuration not available now",
                "submit it with less",
            ),
            ("Requested node configuration is not available", "submit it with less"),
            (
                "slurm_suspend error: Unknown words",
                "does not let it be held and released (slurm_suspend error: Unknown",
            ),
        ] {
            let why = why(said);
            assert!(why.contains(says) && why.contains(said), "{why}");
            assert_eq!(why.contains("operator"), says.contains("operator"), "{why}");
        }
        let said = "no answer".to_owned();
        assert_eq!(unsteerable(ToolError::Unreachable { tool: "scontrol", said }), NotTaken::Later);
    }
}
