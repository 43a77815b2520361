//! Servers that can start nothing for a while, as the nodes of a Slurm whose controller is away.

use apportion_live::core::State;

use super::small::{Small, job};

#[test]
fn nothing_is_stopped_for_jobs_that_could_not_begin() {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let first = small.submit(job(100_000));
    small.until(20.0);
    let second = small.submit(job(100_000));
    assert_eq!(small.why(first).job.state, State::Running);
    small.nodes[0].is_frozen = true;
    small.until(400.0);
    assert_eq!(small.why(first).job.state, State::Running, "its lease is extended, round by round");
    let starts = |small: &Small, job| small.jobs[&job].incarnation;
    assert_eq!((starts(&small, first), starts(&small, second)), (1, 0));
    small.nodes[0].is_frozen = false;
    small.until(600.0);
    assert!(starts(&small, second) >= 1, "what it did not get is made up for");
}
