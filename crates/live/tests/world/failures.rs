//! Jobs that fail: their waits, and the consequences for their server.

use apportion::Seconds;
use apportion_live::core::{Answer, How, Request};
use apportion_live::protocol::End;

use super::small::{Small, job};

fn small() -> Small {
    let mut small = Small::new("isolated", &[("v100", 8)]);
    small.settings.back_off = Seconds::new(1.0);
    small.settings.failures_max = 1;
    small.start("v100=8");
    small.until(5.0);
    small
}

fn is_drained(small: &mut Small) -> bool {
    match small.ask(Request::Servers).unwrap() {
        Answer::Servers(servers) => servers[0].drained.is_some(),
        answer => panic!("{answer:?}"),
    }
}

/// Submits a job with this end, and waits until it is over.
fn over(small: &mut Small, end: Option<&End>) -> How {
    let number = small.submit(job(1));
    if let Some(end) = end {
        small.doom(number, end);
    }
    small.until(small.now + 70.0);
    small.jobs[&number].outcome.as_ref().unwrap().how
}

#[test]
fn three_different_jobs_that_fail_in_a_row_drain_a_server() {
    for end in [End::Exit(1), End::Signal(11), End::Vanished] {
        let mut small = small();
        for n_failed in 1..=3 {
            assert!(!is_drained(&mut small), "{end:?} after {n_failed}");
            assert_eq!(over(&mut small, Some(&end)), How::Failed);
        }
        assert!(is_drained(&mut small), "{end:?}");
        assert_eq!(small.warnings("3 different jobs failed on it in a row"), 1);
    }
}

#[test]
fn three_different_jobs_that_it_cannot_start_drain_a_server() {
    let mut small = Small::new("isolated", &[("v100", 8)]);
    small.start("v100=8");
    small.until(5.0);
    for n_refused in 1..=3 {
        assert!(!is_drained(&mut small), "after {n_refused}");
        let number = small.submit(job(1));
        small.doom(number, &End::NotStarted("no space left on device".into()));
        small.until(small.now + 70.0);
    }
    assert!(is_drained(&mut small));
}

#[test]
fn one_job_that_fails_again_and_again_drains_none() {
    let mut small = small();
    small.settings.failures_max = 6;
    small.start("v100=8");
    small.until(small.now + 5.0);
    let number = small.submit(job(1));
    small.doom(number, &End::Exit(1));
    small.until(small.now + 200.0);
    assert_eq!(small.jobs[&number].outcome.as_ref().unwrap().how, How::Failed);
    assert_eq!(small.jobs[&number].incarnation, 6);
    assert!(!is_drained(&mut small));
}

#[test]
fn a_success_in_between_clears_the_count() {
    let mut small = small();
    for end in [Some(End::Exit(1)), Some(End::Exit(2)), None, Some(End::Exit(1)), Some(End::Exit(2))] {
        over(&mut small, end.as_ref());
        assert!(!is_drained(&mut small));
    }
    over(&mut small, Some(&End::Exit(1)));
    assert!(is_drained(&mut small));
}

#[test]
fn commands_that_are_mistyped_drain_no_server() {
    let mut small = small();
    for end in [
        End::NotExecutable("/no/such/program: No such file or directory".into()),
        End::NotExecutable("folder /no/such: No such file or directory".into()),
        End::Exit(127),
        End::Exit(126),
        End::NotExecutable("/etc/passwd: Permission denied".into()),
    ] {
        assert_eq!(over(&mut small, Some(&end)), How::Failed);
        assert!(!is_drained(&mut small), "{end:?}");
    }
    assert_eq!(over(&mut small, None), How::Completed);
}

#[test]
fn back_off_doubles_up_to_64_times() {
    let mut small = Small::new("isolated", &[("v100", 1)]);
    small.settings.back_off = Seconds::new(8.0);
    small.settings.failures_max = 100;
    small.start("v100=1");
    small.until(5.0);
    let number = small.submit(job(1));
    small.doom(number, &End::Exit(1));
    let mut waits = Vec::new();
    for failures in 1..=9 {
        while small.jobs[&number].failures < failures {
            small.until(small.now + 0.25);
            assert!(small.now < 5_000.0, "it fails no more: {waits:?}");
        }
        let until = small.jobs[&number].not_before.unwrap().get();
        waits.push((until - small.now).round());
    }
    assert_eq!(waits, [8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 512.0, 512.0]);
}

#[test]
fn a_grace_below_a_second_or_above_the_round_is_warned_of() {
    for (grace, n_warnings) in [(0.9, 1), (1.0, 0), (60.0, 0), (60.1, 1)] {
        let mut small = Small::new("fifo", &[("v100", 1)]);
        small.settings.grace = Seconds::new(grace);
        small.start("v100=1");
        assert_eq!(small.warnings("the grace is"), n_warnings, "{grace}");
    }
}

#[test]
fn constraints_that_cannot_be_kept_are_said_of_jobs_by_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("floor.yaml");
    let policy = "format: apportion/policy-v1\nname: floor\nsummary: a floor\nsource: this test\nkind: program\n\
        throughput: measured\ncolocation: none\nmaximize: sum_over_jobs(throughput)\n\
        for_each_job: [\"throughput >= 9[steps/s]\"]\n";
    std::fs::write(&path, policy).unwrap();
    let path: &'static str = Box::leak(path.display().to_string().into_boxed_str());
    let mut small = Small::new(path, &[("v100", 1)]);
    small.start("v100=1");
    let first = small.submit(job(10_000));
    small.ask(Request::Cancel(first)).unwrap();
    // From now on the second is the scheduler's first.
    small.start("v100=1");
    small.submit(job(10_000));
    small.until(200.0);
    let said = "no allocation keeps `throughput >= 9[steps/s]` for job 1 (with no other constraint";
    assert!(small.warnings(said) > 0, "{:?}", small.notes);
}

#[test]
fn jobs_that_fail_wherever_they_are_drain_no_server() {
    let mut small = Small::new("isolated", &[("v100", 1), ("v100", 1)]);
    small.settings.back_off = Seconds::new(1.0);
    small.settings.failures_max = 8;
    small.start("v100=2");
    small.until(5.0);
    let jobs = [1, 1, 1].map(|steps| {
        let number = small.submit(job(steps));
        small.doom(number, &End::Exit(1));
        number
    });
    small.until(2_000.0);
    assert!(jobs.iter().all(|number| small.jobs[number].outcome.is_some()));
    let Answer::Servers(servers) = small.ask(Request::Servers).unwrap() else { panic!("no servers") };
    assert!(servers.iter().all(|server| server.drained.is_none()), "{servers:?}");
    // A server that was drained for them before they had failed elsewhere, too, was given jobs again.
    let resumed = small.notes.iter().filter(|note| note.text.ends_with("is given jobs again")).count();
    assert_eq!(resumed, small.warnings("different jobs failed on it in a row"));
}

#[test]
fn a_job_whose_shim_is_killed_at_each_start_waits_and_is_given_up() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.settings.back_off = Seconds::new(8.0);
    small.settings.failures_max = 3;
    small.start("v100=1");
    small.until(5.0);
    let number = small.submit(job(1));
    small.doom(number, &End::Vanished);
    small.until(12.0);
    assert_eq!(small.jobs[&number].incarnation, 1, "it is started again at once");
    let why = small.why(number).because.join(" ");
    assert!(why.contains("It failed, and is not started again for") && why.contains("was gone"), "{why}");
    small.until(200.0);
    let outcome = small.jobs[&number].outcome.as_ref().unwrap();
    assert_eq!((outcome.how, small.jobs[&number].incarnation), (How::Failed, 3), "{}", outcome.reason);
    assert!(outcome.reason.contains("it failed 3 times in a row"), "{}", outcome.reason);
}

#[test]
fn what_ends_with_its_server_counts_against_no_job() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.settings.failures_max = 1;
    small.start("v100=1");
    small.until(5.0);
    let number = small.submit(job(300));
    for _ in 0..3 {
        small.until(small.now + 20.0);
        small.nodes[0].switch_off(false);
        small.until(small.now + 5.0);
        small.nodes[0].is_off = false;
        small.nodes[0].start_agent(small.now);
    }
    small.until(small.now + 600.0);
    let record = &small.jobs[&number];
    assert_eq!(record.outcome.as_ref().map(|outcome| outcome.how), Some(How::Completed), "{record:?}");
}

#[test]
fn a_job_that_its_server_cannot_start_is_not_given_up() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.settings.back_off = Seconds::new(8.0);
    small.settings.failures_max = 2;
    small.start("v100=1");
    small.until(5.0);
    let number = small.submit(job(10));
    small.doom(number, &End::NotStarted("end.room: No space left on device".into()));
    small.until(8.0);
    let why = small.why(number).because.join(" ");
    assert!(why.contains("Its server could not start it: that is no failure of its own."), "{why}");
    small.until(120.0);
    let record = &small.jobs[&number];
    assert!(record.outcome.is_none() && record.failures == 0 && record.incarnation > 3, "{record:?}");
    small.nodes[0].fates.clear();
    small.until(220.0);
    assert_eq!(small.jobs[&number].outcome.as_ref().unwrap().how, How::Completed);
}

#[test]
fn a_program_that_cannot_be_executed_is_tried_twice() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.settings.back_off = Seconds::new(1.0);
    small.start("v100=1");
    small.until(5.0);
    let number = small.submit(job(10));
    small.doom(number, &End::NotExecutable("pyhton: No such file or directory".into()));
    small.until(100.0);
    let record = &small.jobs[&number];
    let reason = &record.outcome.as_ref().unwrap().reason;
    assert_eq!(record.incarnation, 2, "{reason}");
    assert!(reason.contains("its program could not be executed twice in a row"), "{reason}");
}

#[test]
fn a_job_that_was_ended_from_outside_waits_and_has_not_failed() {
    let mut small = Small::new("isolated", &[("v100", 1)]);
    (small.settings.back_off, small.settings.failures_max) = (Seconds::new(20.0), 1);
    small.start("v100=1");
    small.until(5.0);
    let number = small.submit(job(1000));
    small.until(10.0);
    small.doom(number, &End::Cut { why: "its node failed".into(), is_failure: false });
    while small.jobs[&number].run.is_some() {
        small.until(small.now + 0.25);
    }
    let ended = small.now;
    let record = small.jobs[&number].clone();
    assert_eq!((record.failures, record.incarnation, record.outcome), (0, 1, None));
    assert!((record.not_before.unwrap().get() - ended - 20.0).abs() < 1.0);
    small.until(ended + 19.0);
    assert_eq!(small.jobs[&number].incarnation, 1);
    small.until(ended + 22.0);
    assert!(small.jobs[&number].incarnation > 1, "{:?}", small.jobs[&number]);
    // A job whose end counts as a failure is given up after a number of them.
    let number = small.submit(job(1000));
    small.doom(number, &End::Cut { why: "no memory".into(), is_failure: true });
    small.until(small.now + 200.0);
    assert!(
        small.notes.iter().any(|note| note.text.contains("it failed 1 times in a row")),
        "{:?}",
        small.notes
    );
}
