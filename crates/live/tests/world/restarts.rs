//! The state that a restart keeps, and a scheduler that was stopped for a while.

use apportion::{Job, Seconds, StepsPerSecond};
use apportion_live::core::{How, JobRecord, Request, State};
use apportion_live::protocol::End;

use super::log;
use super::node::{Ends, Manners};
use super::small::{GOOD, ROUND, Small, job};

#[test]
fn a_back_off_goes_on_over_a_restart() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.settings.back_off = Seconds::new(100.0);
    small.start("v100=1");
    small.until(5.0);
    let failing = small.submit(job(1000));
    small.doom(failing, &End::Exit(1));
    small.until(20.0);
    small.nodes[0].fates.clear();
    small.start("v100=1");
    small.until(100.0);
    assert_eq!(small.jobs[&failing].incarnation, 1);
    assert!(small.why(failing).because[0].contains("is not started again for"));
    small.until(120.0);
    assert_eq!(small.why(failing).job.state, State::Running);
}

#[test]
fn a_lease_that_ran_out_while_no_scheduler_was_there_is_the_reason_for_the_stop() {
    // A program that has stopped when the scheduler is back, and one that is still stopping then.
    for (stop_time, back) in [(0.0, 90.0), (20.0, 70.0)] {
        let mut small = Small::new("fifo", &[("v100", 1)]);
        small.start("v100=1");
        small.until(5.0);
        let number = small.try_submit(job(100_000), Manners { stop_time, ..GOOD }).unwrap();
        small.until(20.0);
        assert_eq!(small.why(number).job.state, State::Running);
        small.core = None;
        small.sleep_until(back);
        small.start("v100=1");
        small.until(back + 25.0);
        let end = small.jobs[&number].last_end.as_deref();
        assert_eq!(end, Some("it stopped when its lease was over"), "{stop_time}");
    }
}

#[test]
fn a_record_of_before_back_offs_were_kept_is_read() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1");
    let number = small.submit(job(1000));
    let text = serde_json::to_string(&small.jobs[&number]).unwrap();
    assert!(!text.contains("not_before"));
    let record: JobRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(record, small.jobs[&number]);
}

#[test]
fn a_job_that_fits_no_worker_type_waits_for_a_start_with_one() {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 2), ("k80", 1)]);
    small.start("v100=2,k80=1");
    small.until(5.0);
    let gang = small.submit(job(200).scale_factor(2));
    let small_one = small.submit(job(400));
    small.until(30.0);
    assert_eq!(small.why(gang).job.state, State::Running);
    let incarnation = small.jobs[&gang].incarnation;

    small.start("v100=1,k80=1");
    let why = small.why(gang);
    assert_eq!(why.job.state, State::Waiting);
    assert!(why.because[0].starts_with("No worker type of this cluster fits it"), "{why:?}");
    let what = "started with a cluster that has 2 workers of one of the types v100, k80";
    assert!(why.because[1].contains(what), "{why:?}");
    assert_eq!(small.warnings("waits. No worker type of this cluster fits it"), 1);
    assert!(small.views().iter().any(|view| view.job == gang));
    small.until(150.0);
    assert_eq!((small.jobs[&gang].incarnation, &small.jobs[&gang].outcome), (incarnation, &None));
    let refusal = small.try_submit(job(10).scale_factor(2), GOOD).unwrap_err();
    assert!(refusal.to_string().contains("can run on no worker type"), "{refusal}");

    small.start("v100=2,k80=1");
    small.until(700.0);
    for number in [gang, small_one] {
        let outcome = small.jobs[&number].outcome.as_ref().unwrap();
        assert_eq!(outcome.how, How::Completed, "{outcome:?}");
    }
    assert!(small.jobs[&gang].incarnation > incarnation);
}

#[test]
fn a_job_that_fits_no_worker_type_can_be_cancelled() {
    let mut small = Small::new("fifo", &[("v100", 2)]);
    small.start("v100=2");
    small.until(5.0);
    let gang = small.submit(job(200).scale_factor(2));
    small.start("v100=1");
    small.ask(Request::Cancel(gang)).unwrap();
    assert_eq!(small.jobs[&gang].outcome.as_ref().unwrap().how, How::Cancelled);
    let ends = small.events.iter().filter(|event| event["event"] == "dropped").count();
    assert_eq!(ends, 1);
    small.start("v100=2");
    assert_eq!(small.why(gang).job.state, State::Cancelled);
}

#[test]
fn jobs_are_listed_as_they_run_then_as_they_wait_and_the_newest_end_first() {
    // The server of the only type that the third can run on is not there.
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1,k80=1");
    small.until(5.0);
    let slow = Job::new("my own").steps(1000).throughput("k80", StepsPerSecond::new(1.0));
    let numbers: Vec<_> = [job(5), job(5), slow, job(1000)].map(|job| small.submit(job)).to_vec();
    small.until(300.0);
    let listed: Vec<_> = small.views().iter().map(|view| (view.job, view.state)).collect();
    let states = [State::Running, State::Waiting, State::Completed, State::Completed];
    let order = [numbers[3], numbers[2], numbers[1], numbers[0]];
    assert_eq!(listed, order.into_iter().zip(states).collect::<Vec<_>>());
}

#[test]
fn a_scheduler_that_was_stopped_past_a_lease_hears_that_jobs_stopped_in_order() {
    for restarts in [false, true] {
        let mut small = Small::new("max_min_fairness_perf", &[("v100", 2)]);
        small.settings.silence = Seconds::new(200.0);
        small.start("v100=2");
        small.until(5.0);
        let numbers = [0, 1].map(|_| small.submit(job(1000)));
        small.until(20.0);
        small.sleep_until(320.0);
        if restarts {
            small.start("v100=2");
            // Reports are late, too: until all that a run may outlive is over.
            small.sleep_until(460.0);
        }
        small.wake();
        small.until(small.now + 300.0);
        assert_eq!(small.warnings("nothing counts since"), 0, "{restarts}: {:?}", small.notes);
        assert_eq!(small.core.as_ref().unwrap().counters().unconfirmed, 0);
        for number in numbers {
            assert_eq!(small.why(number).job.state, State::Running, "{restarts}");
        }
    }
}

#[test]
fn a_server_that_stays_silent_after_the_scheduler_was_stopped_is_waited_out() {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 1), ("v100", 1)]);
    small.start("v100=2");
    small.until(5.0);
    let number = small.submit(job(1000));
    small.until(20.0);
    let place = small.nodes.iter().position(|node| !node.processes.is_empty()).unwrap();
    small.nodes[place].is_stopped = true;
    small.sleep_until(320.0);
    small.wake();
    let woken = small.now;
    small.until(woken + small.settings.silence.get() - 1.0);
    assert_eq!(small.warnings("nothing counts since"), 0);
    small.until(woken + 60.0);
    assert_eq!(small.warnings("nothing counts since"), 1);
    small.until(woken + 150.0);
    assert_eq!(small.why(number).job.state, State::Running);
}

#[test]
fn a_short_stop_takes_no_job_off_its_workers() {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let number = small.submit(job(1000));
    small.until(30.0);
    // Past the decision, at 55 s, but within the lease.
    small.sleep_until(60.0);
    small.wake();
    small.until(200.0);
    assert_eq!((small.jobs[&number].incarnation, small.why(number).job.state), (1, State::Running));
}

/// The state of the job on the first server, which is not heard of any more, after restarts of the scheduler.
fn after_restarts(lose: impl Fn(&mut Small), is_clock_sure: bool) -> State {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 1), ("v100", 1)]);
    small.is_clock_sure = is_clock_sure;
    small.start("v100=2");
    small.until(5.0);
    let number = small.submit(job(10_000));
    small.until(20.0);
    lose(&mut small);
    // A scheduler waits for such a rank for 110 s: a round, the look-ahead, the grace and the slack.
    for _ in 0..10 {
        small.start("v100=2");
        small.until(small.now + 20.0);
    }
    assert!(small.jobs[&number].incarnation <= 2);
    small.why(number).job.state
}

#[test]
fn the_wait_for_a_lost_rank_goes_on_over_restarts() {
    let silent = |small: &mut Small| {
        for node in small.nodes.iter_mut().filter(|node| !node.processes.is_empty()) {
            node.switch_off(true);
        }
    };
    let forgetful = |small: &mut Small| {
        let now = small.now;
        for node in small.nodes.iter_mut().filter(|node| !node.processes.is_empty()) {
            node.processes.clear();
            node.start_agent(now);
        }
    };
    assert_eq!(after_restarts(silent, true), State::Running);
    assert_eq!(after_restarts(forgetful, true), State::Running);
    // If the clock may have been set, that is no proof.
    assert_ne!(after_restarts(silent, false), State::Running);
}

#[test]
fn a_run_that_was_shown_as_running_is_not_forgotten_by_a_power_cut() {
    for (back, is_clean) in [(16.0, false), (16.0, true), (1000.0, false)] {
        let mut small = Small::new("fifo", &[("v100", 1)]);
        small.start("v100=1");
        small.until(5.0);
        let number = small.try_submit(job(10_000), Manners { speaks: false, ..GOOD }).unwrap();
        while small.why(number).job.state != State::Running {
            small.until(small.now + 0.25);
        }
        if is_clean {
            small.close();
        }
        small.core = None;
        small.nodes[0].switch_off(false);
        small.sleep_until(back);
        small.nodes[0].start_agent(small.now);
        small.start("v100=1");
        small.until(back + 2.0);
        assert_eq!(small.warnings("was not reported to run"), 0, "{:?}", small.notes);
        assert_eq!(small.warnings("nothing counts since the last checkpoint"), 1, "{:?}", small.notes);
        // The time that it ran is not known: at most up to the end of its lease, at 65 s.
        let slices =
            || small.events.iter().filter(|event| event["event"] == "slice" && event["incarnations"][0] == 1);
        let logged: f64 = slices().map(|slice| slice["time"].as_f64().unwrap()).sum();
        let most = (back - 5.0).min(ROUND);
        assert!(logged > most - 2.0 && logged < most + 1.0, "back at {back}: {logged}, {most}");
        small.ask(Request::Cancel(number)).unwrap();
        small.until(back + 10.0);
        let received = small.jobs[&number].received["v100"].get();
        assert!((logged..logged + 12.0).contains(&received), "{received}");
        log::check_sums(&small.events, small.jobs.values(), "small");
        log::check(&small.events, &[1.0], "small");
    }
}

#[test]
fn a_run_that_ended_while_the_scheduler_was_away_counts_as_long_as_it_ran() {
    for is_elsewhere in [false, true] {
        let mut small = Small::new("fifo", &[("v100", 1)]);
        small.settings.front_door = is_elsewhere;
        small.nodes[0].ends = Ends::WithTime;
        small.start("v100=1");
        small.until(5.0);
        let number = small.try_submit(job(30), Manners { speaks: false, ..GOOD }).unwrap();
        small.until(20.0);
        let before = small.why(number).job.received_s["v100"];
        small.core = None;
        small.start("v100=1");
        small.until(21.0);
        let after = small.why(number).job.received_s["v100"];
        assert!(after >= before, "{before} s before, {after} s after");
        small.core = None;
        small.sleep_until(50.0);
        small.start("v100=1");
        small.until(60.0);
        let record = &small.jobs[&number];
        let received = record.received["v100"].get();
        assert!(record.outcome.is_some() && (received - 30.0).abs() < 1.0, "{record:?}");
        let logged: f64 = log::slices(&small.events).map(|slice| slice["time"].as_f64().unwrap()).sum();
        assert!((received - logged).abs() < 1e-6, "{received} received, {logged} logged");
    }
}

#[test]
fn a_run_that_an_earlier_version_recorded_without_its_prices_goes_on() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let number = small.submit(job(100));
    small.until(30.0);
    small.close();
    let mut record = serde_json::to_value(&small.jobs[&number]).unwrap();
    let run = record["run"].as_object_mut().unwrap();
    assert!(run.remove("charges").is_some() && run.remove("lease_end").is_some());
    small.jobs.insert(number, serde_json::from_value(record).unwrap());
    small.start("v100=1");
    small.until(200.0);
    assert!(small.jobs[&number].outcome.is_some());
    log::check_sums(&small.events, small.jobs.values(), "small");
}
