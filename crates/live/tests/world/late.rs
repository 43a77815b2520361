//! Ends that are reported late, and servers with ranks that the scheduler's records do not have.

use std::collections::BTreeMap;

use apportion::Seconds;
use apportion_live::core::{Answer, How, Request};
use apportion_live::protocol::JobNumber;

use super::node::{Ends, Manners};
use super::small::{GOOD, ROUND, Small, job};

/// A program that reports nothing, and ends by itself.
const SILENT: Manners = Manners { speaks: false, ..GOOD };

/// A scheduler of one worker. Its agent reports how long ranks ran. Rounds are of 60 s, decided 10 s ahead; the first begins at 5 s.
fn one_worker() -> Small {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 1)]);
    small.nodes[0].ends = Ends::WithTime;
    small.start("v100=1");
    small.until(5.0);
    small
}

fn received(small: &Small, number: JobNumber) -> f64 {
    small.jobs[&number].received.values().map(|time| time.get()).sum()
}

/// The time of a job in the event log.
fn in_log(small: &Small) -> f64 {
    let slices = small.events.iter().filter(|event| event["event"] == "slice");
    slices.map(|slice| slice["time"].as_f64().unwrap()).sum()
}

#[test]
fn a_program_that_ended_by_itself_is_not_run_again_though_that_is_heard_after_a_wish_to_stop_it() {
    let mut small = one_worker();
    let number = small.try_submit(job(30), SILENT).unwrap();
    small.until(10.0);
    small.nodes[0].agent = None;
    // The round from 65 s on is decided without the server, which is not heard of.
    small.until(60.0);
    let said = small.why(number).because[0].clone();
    let words = "It cannot be asked to stop, since nothing has been heard of a for 50 s: it is surely over, and can be started \
                 elsewhere, in 45 s at the latest.";
    assert_eq!(said, words);
    small.nodes[0].start_agent(small.now);
    small.until(70.0);
    let record = &small.jobs[&number];
    assert_eq!(
        (record.outcome.as_ref().map(|outcome| outcome.how), record.incarnation),
        (Some(How::Completed), 1)
    );
    // It ran for 30 s: time that was presumed beyond them counts no more.
    assert!((received(&small, number) - 30.0).abs() < 1.0, "{}", received(&small, number));
    assert!((in_log(&small) - 30.0).abs() < 1.0, "{}", in_log(&small));
}

#[test]
fn a_run_of_which_only_the_end_is_heard_counts() {
    let mut small = one_worker();
    let number = small.try_submit(job(30), SILENT).unwrap();
    small.nodes[0].agent = None;
    small.until(45.0);
    assert!(received(&small, number).abs() < 1e-9);
    small.nodes[0].start_agent(small.now);
    small.until(50.0);
    assert_eq!(small.jobs[&number].outcome.as_ref().map(|outcome| outcome.how), Some(How::Completed));
    assert!((received(&small, number) - 30.0).abs() < 1.0, "{}", received(&small, number));
    assert!((in_log(&small) - 30.0).abs() < 1.0, "{}", in_log(&small));
}

#[test]
fn a_run_whose_end_is_never_heard_of_counts_to_the_end_of_its_lease() {
    let mut small = one_worker();
    let number = small.try_submit(job(10_000), SILENT).unwrap();
    small.until(20.0);
    small.nodes[0].switch_off(false);
    small.until(3.0 * ROUND);
    assert!(small.jobs[&number].run.is_none());
    let (received, lease) = (received(&small, number), ROUND);
    assert!(received <= lease && received > lease - 2.0, "{received}");
    assert!((in_log(&small) - received).abs() < 1e-6);
}

/// Two servers of one worker. The agent of the one that has the job is gone before its program ends, and the job is started on
/// the other when its lease, the grace and the slack are over.
fn started_elsewhere(gone_at: f64, manners: Manners) -> (Small, JobNumber, usize) {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 1), ("v100", 1)]);
    small.nodes.iter_mut().for_each(|node| node.ends = Ends::WithTime);
    small.start("v100=2");
    small.until(5.0);
    let number = small.try_submit(job(30), manners).unwrap();
    let place = small.nodes.iter().position(|node| !node.processes.is_empty()).unwrap();
    small.until(gone_at);
    small.nodes[place].agent = None;
    small.until(60.0);
    // The later start finds nothing, and takes its time.
    small.checkpoints.clear();
    while small.jobs[&number].incarnation < 2 {
        small.until(small.now + 1.0);
        assert!(small.now < 4.0 * ROUND, "it is not started elsewhere");
    }
    small.until(small.now + 5.0);
    (small, number, place)
}

#[test]
fn a_program_that_ended_by_itself_is_done_though_it_was_started_elsewhere_meanwhile() {
    for (gone_at, restarts, speaks) in
        [(10.0, false, false), (10.0, true, false), (5.0, false, false), (10.0, false, true)]
    {
        // A job that reports no progress begins anew.
        let (mut small, number, place) = started_elsewhere(gone_at, Manners { speaks, ..SILENT });
        if restarts {
            small.start("v100=2");
        }
        let before = small.jobs[&number].clone();
        assert!(before.outcome.is_none() && before.run.is_some(), "{before:?}");
        small.nodes[place].start_agent(small.now);
        small.until(small.now + 5.0);
        let record = &small.jobs[&number];
        let outcome = record.outcome.as_ref().unwrap();
        assert_eq!((outcome.how, record.incarnation), (How::Completed, 2), "{outcome:?}");
        assert!(outcome.reason.contains("incarnation 1"), "{outcome:?}");
        let runs = small.nodes.iter().flat_map(|node| node.processes.values());
        assert!(runs.into_iter().all(|process| !process.is_running()), "the later start is stopped");
        // It ran for 30 s, and the later start for some seconds.
        let received = received(&small, number);
        assert!((34.0..42.0).contains(&received), "{gone_at} {restarts}: {received}");
        assert!((in_log(&small) - received).abs() < 1e-6, "{} and {received}", in_log(&small));
        if speaks {
            assert!((record.checkpointed - 30.0).abs() < 1e-9, "{record:?}");
        }
    }
}

#[test]
fn a_job_that_is_cancelled_is_not_done_by_an_end_that_is_heard_of_late() {
    let (mut small, number, place) = started_elsewhere(10.0, SILENT);
    small.ask(Request::Cancel(number)).unwrap();
    small.nodes[place].start_agent(small.now);
    small.until(small.now + 5.0);
    let outcome = small.jobs[&number].outcome.clone().unwrap();
    assert_eq!(outcome.how, How::Cancelled, "{outcome:?}");
}

#[test]
fn a_job_is_not_taken_for_another_of_its_number_that_a_server_still_has() {
    let mut small = one_worker();
    let number = small.submit(job(1_000));
    small.until(20.0);
    let anns = small.jobs.remove(&number).unwrap();
    assert!(anns.run.is_some());
    // A state from before the job is put back.
    small.put_back();
    small.nodes[0].start_agent(small.now);
    small.start("v100=1");
    small.until(21.0);
    let said = "runs job 0 (incarnation 1), which these records do not have";
    assert_eq!(small.warnings(said), 1, "{:?}", small.notes);
    assert_eq!(small.submit(job(50)), number);
    small.until(60.0);
    let bobs = &small.jobs[&number];
    assert_eq!(bobs.incarnation, anns.incarnation + 1, "the server has the first still, or had it");
    assert_ne!(bobs.submission, anns.submission);
    let starts: BTreeMap<_, _> =
        small.nodes[0].processes.iter().map(|(key, process)| (*key, process.start.submission)).collect();
    assert!(starts.values().all(|submission| *submission == bobs.submission), "{starts:?}");
    small.until(100.0);
    assert_eq!(small.jobs[&number].outcome.as_ref().map(|outcome| outcome.how), Some(How::Completed));
}

#[test]
fn a_server_that_has_had_orders_of_later_starts_takes_those_of_an_older_copy() {
    let mut small = one_worker();
    for _ in 0..3 {
        small.start("v100=1");
        let number = small.submit(job(2));
        small.until(small.now + 70.0);
        assert!(small.jobs[&number].outcome.is_some());
    }
    small.put_back();
    small.start("v100=1");
    let number = small.submit(job(2));
    small.until(small.now + 10.0);
    assert_eq!(small.jobs[&number].outcome.as_ref().map(|outcome| outcome.how), Some(How::Completed));
}

#[test]
fn a_job_on_a_silent_server_is_said_to_be_last_known_to_run() {
    let mut small = one_worker();
    let number = small.submit(job(1_000));
    small.until(10.0);
    small.nodes[0].agent = None;
    small.until(20.0);
    assert_eq!(small.why(number).because[0], "It runs.", "{} s are no silence", small.settings.silence);
    small.until(40.0);
    let said = small.why(number).because[0].clone();
    assert_eq!(said, "It is last known to run: nothing has been heard of a for 30 s.");
    small.ask(Request::Cancel(number)).unwrap();
    let said = small.why(number).because[0].clone();
    assert!(
        said.starts_with(
            "Its user cancelled it, and nothing has been heard of a for 30 s: it is surely over"
        ),
        "{said}"
    );
}

#[test]
fn no_server_is_silent_while_the_disk_refuses_and_reports_are_not_taken() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let jobs = [0, 1].map(|_| small.submit(job(100_000)));
    small.until(30.0);
    let core = small.core.as_mut().unwrap();
    let mut look_up =
        |after: f64, request| core.look_up(Seconds::new(30.0 + after), &request).unwrap().unwrap();
    for after in [1.0, 40.0] {
        let Answer::Servers(servers) = look_up(after, Request::Servers) else { panic!("servers") };
        assert!(servers[0].is_reachable, "{servers:?}");
        let Answer::Why(runs) = look_up(after, Request::Why(jobs[0])) else { panic!("a job") };
        assert_eq!(runs.because[0], "It runs.", "after {after} s");
        let Answer::Why(waits) = look_up(after, Request::Why(jobs[1])) else { panic!("a job") };
        assert_eq!(waits.worker_types[0].n_up, 1, "after {after} s");
    }
    // Once it does not refuse, all that was not heard meanwhile is missed.
    small.nodes[0].agent = None;
    small.until(60.0);
    let said = small.why(jobs[0]).because[0].clone();
    assert!(said.contains("nothing has been heard of a"), "{said}");
}
