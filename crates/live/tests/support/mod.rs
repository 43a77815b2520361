//! Helpers of tests with real processes.

use std::fs;
use std::thread;
use std::time::Duration;

use apportion::Seconds;
use apportion_live::clock;

/// The longest wait, which ends a test that would never end.
pub(crate) const LIMIT: Seconds = Seconds::new(60.0);

/// Asks until there is an answer.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = clock::node_now() + LIMIT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(clock::node_now() < until, "{what}: waited too long");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the process runs. A dead process that its parent has not waited for does not.
pub(crate) fn lives(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !matches!(stat.rsplit_once(") ").unwrap().1.chars().next(), Some('Z' | 'X'))
}
