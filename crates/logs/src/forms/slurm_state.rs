//! States by Slurm's names, which several logs use.

use crate::row::State;

/// Slurm's names, as its manual of `sacct` lists them, with the states that they stand for.
const STATES: [(&str, State); 28] = [
    ("BOOT_FAIL", State::NodeFailure),
    ("CANCELLED", State::Cancelled),
    ("CANCELED", State::Cancelled),
    ("COMPLETED", State::Completed),
    ("COMPLETING", State::Running),
    ("CONFIGURING", State::Pending),
    ("DEADLINE", State::Timeout),
    ("FAILED", State::Failed),
    ("LAUNCH_FAILED", State::Failed),
    ("NODE_FAIL", State::NodeFailure),
    ("OUT_OF_MEMORY", State::OutOfMemory),
    ("PENDING", State::Pending),
    ("PREEMPTED", State::Preempted),
    ("REQUEUED", State::Pending),
    ("POWER_UP_NODE", State::Pending),
    ("RECONFIG_FAIL", State::NodeFailure),
    ("REQUEUE_FED", State::Pending),
    ("REQUEUE_HOLD", State::Pending),
    ("RESIZING", State::Running),
    ("RESV_DEL_HOLD", State::Pending),
    ("REVOKED", State::Cancelled),
    ("RUNNING", State::Running),
    ("SIGNALING", State::Running),
    ("SPECIAL_EXIT", State::Pending),
    ("STAGE_OUT", State::Running),
    ("STOPPED", State::Running),
    ("SUSPENDED", State::Running),
    ("TIMEOUT", State::Timeout),
];

/// Description of a state in error messages.
pub(crate) const EXPECTED: &str =
    "one of Slurm's states, such as COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL";

/// The state with a name, which may say `CANCELLED by UID`, or end in `+` where a column was too narrow.
pub(crate) fn of(text: &str) -> Option<State> {
    let name = text.split(" by ").next().unwrap_or(text).trim();
    if let Some(start) = name.strip_suffix('+') {
        let mut like = STATES.iter().filter(|(name, _)| starts_like(name, start)).map(|(_, state)| *state);
        let first = like.next()?;
        return like.all(|other| other == first).then_some(first);
    }
    let name = name.replace(' ', "_");
    STATES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name)).map(|(_, state)| *state)
}

fn starts_like(name: &str, start: &str) -> bool {
    name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_slurm_writes_them() {
        for (text, expected) in [
            ("COMPLETED", Some(State::Completed)),
            ("CANCELLED by 1234", Some(State::Cancelled)),
            ("CANCELLED+", Some(State::Cancelled)),
            ("OUT_OF_ME+", Some(State::OutOfMemory)),
            ("node_fail", Some(State::NodeFailure)),
            ("RE+", None),
            ("GONE", None),
            ("", None),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
