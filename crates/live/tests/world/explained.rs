//! What is said of a job that waits: what it received, and how the mechanism compares it with those that hold workers.

use apportion_live::core::State;

use super::small::{Small, job};

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
    let [first, second] = [0, 1].map(apportion_live::protocol::JobNumber);
    small.until(6.0);
    let none = small.why(second);
    assert!(none.worker_types[0].received_s.abs() < 1e-9);
    let mut last = 0.0;
    for at in [100.0, 500.0, 900.0] {
        small.until(at);
        let times = [first, second].map(|number| small.why(number).worker_types[0].received_s);
        let sum = times[0] + times[1];
        // But for what starting and stopping take.
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
