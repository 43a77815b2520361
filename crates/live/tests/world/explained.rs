//! The explanation of a job that waits: the time that it received, and its comparison with jobs that hold workers.

use apportion::{Job, StepsPerSecond};
use apportion_live::core::{State, Why};
use apportion_live::protocol::JobNumber;

use super::small::{GOOD, Small, job};

/// Two jobs on one worker, of which the second has come after the first decision.
fn two_on_one() -> Small {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    small.submit(job(10_000));
    small.submit(job(10_000));
    small
}

#[test]
fn what_was_received_is_without_credit_and_goes_on_over_a_restart_and_a_reset() {
    let mut small = two_on_one();
    let [first, second] = [0, 1].map(JobNumber);
    small.until(6.0);
    let none = small.why(second);
    assert!(none.worker_types[0].received_s.abs() < 1e-9);
    let mut last = 0.0;
    for at in [100.0, 500.0, 900.0] {
        small.until(at);
        let times = [first, second].map(|number| small.why(number).worker_types[0].received_s);
        let sum = times[0] + times[1];
        // The sums are short by the time that starting and stopping take.
        assert!(sum <= at - 5.0 && sum >= (at - 5.0) * 0.9, "{times:?} at {at}");
        assert!(sum > last && times[1] > 0.0 || at < 200.0, "{times:?} at {at}");
        last = sum;
    }
    let before = [first, second].map(|number| small.why(number).worker_types[0].received_s);
    small.start("v100=1");
    let after = [first, second].map(|number| small.why(number).worker_types[0].received_s);
    assert!(before.iter().zip(after).all(|(before, after)| before - after <= 60.0 && after > 0.0));
}

#[test]
fn why_names_priorities_deficits_holders_and_the_next_decision() {
    let mut small = two_on_one();
    small.until(400.0);
    let waits = small.views().iter().find(|view| view.state != State::Running).unwrap().job;
    let why = small.why(waits);
    let view = &why.worker_types[0];
    let holder = &view.holders[0];
    assert_eq!(view.held_by, [holder.job]);
    assert_ne!(holder.job, waits);
    assert!(holder.until_s > 0.0 && holder.until_s <= 120.0, "{holder:?}");
    assert!(view.priority.unwrap() > 0.0 && holder.priority.unwrap() > 0.0);
    let said = why.because.join("\n");
    for part in [
        "Its priority on v100 is ",
        " and a lease for ",
        " than it was owed, and ",
        "The next round is decided",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_job_to_which_a_rule_gives_no_share_is_not_said_to_be_undecided() {
    for policy in ["fifo", "las", "fifo_perf"] {
        let mut small = Small::new(policy, &[("v100", 1)]);
        small.start("v100=1");
        small.until(5.0);
        small.submit(job(10_000));
        small.until(20.0);
        let second = small.submit(job(10_000));
        let said = |small: &mut Small| small.why(second).because.join("\n");
        assert!(
            said(&mut small).contains("The policy has not decided since it came"),
            "{}",
            said(&mut small)
        );
        // The first decision that may reset the allocation is at 320 s.
        small.until(420.0);
        let text = said(&mut small);
        assert!(text.contains("The policy gives it no share of any worker type."), "{policy}: {text}");
        small.start("v100=1");
        small.until(440.0);
        assert!(!said(&mut small).contains("has not decided"), "{policy}: {}", said(&mut small));
    }
}

#[test]
fn why_says_how_many_workers_each_job_holds_of_those_that_are_up() {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 4)]);
    small.start("v100=4");
    small.until(5.0);
    let one = small.submit(job(10_000));
    let gang = small.submit(job(10_000).scale_factor(4));
    let mut said = Vec::new();
    while small.now < 1000.0 {
        small.until(small.now + 5.0);
        let (of_one, of_gang) = (small.why(one), small.why(gang));
        if of_one.job.state == State::Running {
            said.extend(of_gang.because.into_iter().filter(|text| text.contains("of the time")));
        }
        if of_gang.job.state == State::Running {
            assert_eq!(of_one.worker_types[0].holders[0].n_workers, 4);
            let text = of_one.because.join("\n");
            assert!(text.contains("the 4 that are up are held by job 1 now"), "{text}");
        }
    }
    assert!(!said.is_empty());
    let text = "of the 4 that are up, job 0 holds 1 now, and it needs 4.";
    assert!(said.iter().all(|said| said.ends_with(text)), "{said:?}");
}

#[test]
fn no_more_is_said_to_be_received_since_the_reset_than_was_run() {
    let mut small = two_on_one();
    let mut n_waiting = 0;
    while small.now < 900.0 {
        small.until(small.now + 3.0);
        for number in [0, 1].map(JobNumber) {
            let why = small.why(number);
            let view = &why.worker_types[0];
            let since = view.since_reset_s.unwrap();
            if why.job.state != State::Running {
                n_waiting += 1;
                assert!(since <= view.received_s + 1e-6, "at {}: {since} of {}", small.now, view.received_s);
            }
            // A running job is told to the end of the round, once the next one is decided.
            assert!((0.0..=view.received_s + 12.0).contains(&since), "at {}: {view:?}", small.now);
        }
    }
    assert!(n_waiting > 100);
}

#[test]
fn a_job_that_only_full_servers_could_take_is_told_where_that_is_said() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    small.submit(job(10_000));
    let second = small.submit(job(10_000));
    small.nodes[0].disk = Some("no space left".to_owned());
    small.until(20.0);
    let said = small.why(second).because.join("\n");
    assert!(said.contains("0 of v100 that may be given jobs"), "{said}");
    assert!(said.contains("whether it is up, drained, closed, full or silent"), "{said}");
}

#[test]
fn speeds_on_unknown_types_are_refused_and_on_types_that_are_not_here_warned_of() {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 1)]);
    small.start("v100=1,k80=2");
    small.until(5.0);
    let speed = StepsPerSecond::new(1.0);
    let on = |types: &[&str]| {
        types.iter().fold(Job::new("my own").steps(100), |job, name| job.throughput(*name, speed))
    };
    let unknown = small.try_submit(on(&["v10O", "k80"]), GOOD).unwrap_err().to_string();
    assert!(unknown.contains("`v10O`") && unknown.contains("did you mean `v100`?"), "{unknown}");
    let strange = small.try_submit(on(&["a100"]), GOOD).unwrap_err().to_string();
    assert!(strange.contains("`a100`") && strange.contains("`p100`"), "{strange}");
    let elsewhere = small.try_submit(on(&["p100"]), GOOD).unwrap_err().to_string();
    let says = "can run on no worker type of the cluster `v100=1,k80=2` at scale factor 1: its throughput names `p100`, and \
                the cluster has 1 of `v100`, 2 of `k80`";
    assert!(elsewhere.contains(says), "{elsewhere}");

    let number = small.try_submit(on(&["p100", "v100"]), GOOD).unwrap();
    let warned = "`p100` is not in this cluster, which has 1 of `v100`, 2 of `k80`: the speed that the job states there counts \
                  for nothing";
    assert_eq!(small.warned, [warned]);
    let types = |why: Why| -> Vec<_> { why.worker_types.into_iter().map(|view| view.worker_type).collect() };
    assert_eq!(types(small.why(number)), ["v100"]);
    let slow = small.try_submit(on(&["k80"]), GOOD).unwrap();
    assert_eq!((types(small.why(slow)), small.warned.len()), (vec!["k80".to_owned()], 1));
}
