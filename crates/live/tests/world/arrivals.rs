//! Jobs that come, or whose back-off is over, while workers idle.

use apportion::{Job, Seconds, StepsPerSecond};
use apportion_live::core::{How, State};
use apportion_live::protocol::End;

use super::small::{GOOD, Small, job};

#[test]
fn a_job_that_comes_while_workers_idle_runs_at_once() {
    for policy in ["max_min_fairness_perf", "fifo", "isolated"] {
        let mut small = Small::new(policy, &[("v100", 2), ("k80", 1)]);
        small.start("v100=2,k80=1");
        small.until(5.0);
        let first = small.submit(job(1000));
        small.until(20.0);
        assert_eq!(small.why(first).job.state, State::Running);
        let second = small.submit(job(1000));
        small.until(22.0);
        let third = small.submit(job(1000));
        let vast = small.submit(job(1000).scale_factor(2));
        small.until(24.0);
        let states: Vec<_> = small.views().iter().map(|view| view.state).collect();
        assert_eq!(
            states,
            [State::Running, State::Running, State::Running, State::Waiting],
            "{policy}: {first}, {second}, {third}, {vast}"
        );
        let leases = small.events.iter().filter(|event| event["event"] == "lease").count();
        assert_eq!(leases, 3, "{policy}");
        // This holds in the last seconds of the round, too, when the next one is decided.
        small.until(130.0);
        let starts: Vec<_> = small.jobs.values().map(|job| job.incarnation).collect();
        assert!(starts[..3].iter().all(|starts| *starts >= 1), "{policy}: {starts:?}");
    }
}

#[test]
fn jobs_that_came_after_the_allocation_have_what_one_that_is_done_leaves() {
    for policy in ["max_min_fairness_perf", "fifo", "isolated"] {
        let mut small = Small::new(policy, &[("v100", 1)]);
        small.start("v100=1");
        small.until(5.0);
        let first = small.submit(job(20));
        small.until(8.0);
        let second = small.submit(job(1000));
        small.until(40.0);
        let states: Vec<_> = small.views().iter().map(|view| (view.job, view.state)).collect();
        assert_eq!(states, [(second, State::Running), (first, State::Completed)], "{policy}");
    }
}

#[test]
fn without_refill_it_waits_for_the_next_round() {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 2)]);
    small.settings.refill = false;
    small.start("v100=2");
    small.until(5.0);
    small.submit(job(1000));
    small.until(20.0);
    let second = small.submit(job(1000));
    small.until(50.0);
    assert_eq!(small.why(second).job.state, State::Waiting);
    small.until(70.0);
    assert_eq!(small.why(second).job.state, State::Running);
}

#[test]
fn a_job_whose_back_off_is_over_has_idle_workers_at_once() {
    // Four jobs on one worker: the first fails in its round, and has no place in the next; then the worker idles.
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.settings.back_off = Seconds::new(100.0);
    small.start("v100=1");
    small.until(5.0);
    let failing = small.submit(job(1000));
    small.doom(failing, &End::Exit(1));
    small.until(20.0);
    assert!(small.why(failing).because[0].contains("is not started again for"));
    small.nodes[0].fates.clear();
    small.until(104.0);
    assert_eq!(small.jobs[&failing].incarnation, 1);
    small.until(108.0);
    assert_eq!(small.why(failing).job.state, State::Running);
}

#[test]
fn workers_of_a_job_that_failed_are_for_others_until_it_may_start_again() {
    for policy in ["max_min_fairness_perf", "isolated"] {
        let mut small = Small::new(policy, &[("v100", 1)]);
        small.settings.back_off = Seconds::new(100.0);
        small.start("v100=1");
        small.until(5.0);
        let failing = small.submit(job(50));
        small.doom(failing, &End::Exit(1));
        let waiting = small.submit(job(1000));
        small.until(20.0);
        assert!(small.why(failing).because[0].contains("is not started again for"), "{policy}");
        assert_eq!(small.why(failing).job.state, State::Waiting, "{policy}");
        assert_eq!(small.why(waiting).job.state, State::Running, "{policy}");
        // It holds over a restart of the scheduler, too.
        small.start("v100=1");
        small.nodes[0].fates.clear();
        small.until(100.0);
        assert_eq!(small.jobs[&failing].incarnation, 1, "{policy}");
        assert_eq!(small.why(waiting).job.state, State::Running, "{policy}");
        // Once it may, it has its part of the rounds that come.
        small.until(600.0);
        assert_eq!(
            small.jobs[&failing].outcome.as_ref().map(|outcome| outcome.how),
            Some(How::Completed),
            "{policy}"
        );
    }
}

#[test]
fn numbers_that_no_snapshot_has_are_refused() {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 2)]);
    small.start("v100=2");
    let with_weight = |weight: f64| job(1000).weight(weight);
    let too_fast = Job::new("my own").steps(1000).throughput("v100", StepsPerSecond::new(1e300));
    for (job, says) in [
        (with_weight(1e300), "the job's weight is 1e300, expected a number from 1e-100 to 1e15"),
        (with_weight(1e-300), "the job's weight is 1e-300"),
        (too_fast, "the job's speed on v100 is 1e300"),
        (job(1000).slo(Seconds::new(1e300)), "the time by which the job ought to be done is 1e300"),
    ] {
        let said = small.try_submit(job, GOOD).unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
    }
    for weight in [1e-100, 1e15] {
        small.submit(with_weight(weight));
    }
}
