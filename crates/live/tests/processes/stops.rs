//! The ends of programs: by themselves, asked, at the end of a lease, or killed.

use std::fs;
use std::path::Path;

use apportion::{Seconds, Steps};
use apportion_live::agent::Processes;
use apportion_live::clock;
use apportion_live::protocol::{End, JobNumber, LeaseOrder, Phase, Run, Stop};
use rustix::process::Signal;

use crate::place::{
    LONG, Place, end_of, lease, program, rank_of, run_of, shell, trainer, until, until_steps,
};
use crate::support::{lives, wait_for};

#[test]
fn a_job_reports_progress_and_ends() {
    let mut place = Place::new();
    let mut agent = place.open();
    let job = LeaseOrder { total_steps: Steps::new(40.0), ..lease(1, trainer("--speed 100")) };
    place.order(&mut agent, &[&job]);
    let rank = until_steps(&mut agent, 1);
    assert!(rank.progress.speaks);
    let (end, rank) = end_of(&mut agent, 1);
    assert_eq!(end, End::Exit(0));
    assert_eq!((rank.progress.steps, rank.progress.checkpointed, rank.progress.done), (40.0, 40.0, true));
    assert!(rank.progress.seconds > 0.0);
    assert!(place.folder.path().join("checkpoints/1/checkpoint.json").exists());
}

#[test]
fn a_job_stops_when_asked_and_goes_on_from_its_checkpoint() {
    let mut place = Place::new();
    let mut agent = place.open();
    let mut job = lease(1, trainer("--speed 50 --saving 0.2"));
    place.order(&mut agent, &[&job]);
    until_steps(&mut agent, 1);
    job.stop = Some(Stop::Now);
    place.order(&mut agent, &[&job]);
    assert_eq!(rank_of(&agent.report(), 1, 0).unwrap().phase, Phase::Stopping);
    let (end, stopped) = end_of(&mut agent, 1);
    assert_eq!(end, End::Stopped(Some(0)));
    assert!(stopped.progress.checkpointed > 0.0 && !stopped.progress.done);

    let mut again = lease(1, job.program.clone());
    again.run.incarnation = 2;
    let answers = agent.report().id;
    agent.take(&place.orders(answers, &[&again], vec![run_of(1)]));
    let first = wait_for("the second start", || {
        agent.look();
        let report = agent.report();
        let rank = report.ranks.iter().find(|rank| rank.run == again.run)?;
        rank.progress.speaks.then_some(rank.progress.first)
    });
    assert_eq!(first, stopped.progress.checkpointed);
    again.stop = Some(Stop::Kill);
    place.order(&mut agent, &[&again]);
    wait_for("its end", || {
        agent.look();
        agent.report().ranks.iter().any(|rank| rank.phase == Phase::Ended(End::Killed)).then_some(())
    });
}

#[test]
fn a_run_that_orders_do_not_name_is_stopped() {
    let mut place = Place::new();
    let mut agent = place.open();
    place.order(&mut agent, &[&lease(1, trainer("--speed 50"))]);
    until_steps(&mut agent, 1);
    place.order(&mut agent, &[]);
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(0)));
}

#[test]
fn a_program_that_does_not_speak_is_terminated() {
    let mut place = Place::new();
    let mut agent = place.open();
    let started = place.path("started");
    let script = format!("trap 'echo saved; exit 3' TERM; echo $$ >{started}; while :; do sleep 0.05; done");
    let mut with_trap = lease(1, shell(&script));
    let mut without = lease(2, trainer("--silent"));
    without.ranks = vec![(0, 1)];
    place.order(&mut agent, &[&with_trap, &without]);
    place.written("started");
    (with_trap.stop, without.stop) = (Some(Stop::Now), Some(Stop::Now));
    place.order(&mut agent, &[&with_trap, &without]);
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(3)));
    // The shell reports its own child's end before.
    assert!(place.output(1).ends_with("saved\n"));
    let (end, rank) = end_of(&mut agent, 2);
    assert_eq!(end, End::Stopped(None));
    assert!(!rank.progress.speaks);
}

#[test]
fn what_ignores_every_word_is_killed_with_its_children() {
    let mut place = Place::new();
    let mut agent = place.open();
    // One child is in the group, one has left group and session.
    let (near, far, leader) = (place.path("near"), place.path("far"), place.path("leader"));
    let script = format!(
        "trap '' TERM; sh -c 'echo $$ >{near}; exec sleep 600' & \
         setsid sh -c 'echo $$ >{far}; exec sleep 600' & \
         echo $$ >{leader}; while :; do sleep 0.05; done"
    );
    let mut job = LeaseOrder { grace: Seconds::new(0.2), ..lease(1, shell(&script)) };
    place.order(&mut agent, &[&job]);
    let pids = ["near", "far", "leader"].map(|name| place.written(name));
    job.stop = Some(Stop::Now);
    place.order(&mut agent, &[&job]);
    assert_eq!(end_of(&mut agent, 1).0, End::Killed);
    assert_eq!(pids.map(lives), [false; 3]);
}

#[test]
fn a_deaf_trainer_and_its_deaf_child_are_killed() {
    let mut place = Place::new();
    let mut agent = place.open();
    let mut job = LeaseOrder { grace: Seconds::new(0.2), ..lease(1, trainer("--deaf --child --speed 50")) };
    place.order(&mut agent, &[&job]);
    until_steps(&mut agent, 1);
    job.stop = Some(Stop::Now);
    place.order(&mut agent, &[&job]);
    assert_eq!(end_of(&mut agent, 1).0, End::Killed);
}

#[test]
fn what_outlives_its_program_is_ended_before_the_end_is_told() {
    let mut place = Place::new();
    let mut agent = place.open();
    let child = place.path("child");
    let script = format!("trap '' TERM; sh -c 'echo $$ >{child}; exec sleep 600' & sleep 0.1; exit 7");
    let job = LeaseOrder { grace: Seconds::new(0.2), ..lease(1, shell(&script)) };
    place.order(&mut agent, &[&job]);
    let pid = place.written("child");
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(7));
    assert!(!lives(pid));
}

#[test]
fn a_program_that_ended_before_it_was_asked_has_ended_by_itself() {
    let mut place = Place::new();
    let mut agent = place.open();
    // Its child is ended with it, and is there when the request to stop comes.
    let (child, script) =
        (place.path("child"), "trap '' TERM; sh -c 'echo $$ >CHILD; exec sleep 600' & exit 0");
    let script = script.replace("CHILD", &child);
    let mut job = LeaseOrder { grace: Seconds::new(1.0), ..lease(1, shell(&script)) };
    place.order(&mut agent, &[&job]);
    place.written("child");
    wait_for("its program's end", || (!lives(place.pid(1, "program"))).then_some(()));
    job.stop = Some(Stop::Now);
    place.order(&mut agent, &[&job]);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(0));
}

#[test]
fn how_long_a_rank_ran_is_told_with_its_end() {
    let mut place = Place::new();
    let mut agent = place.open();
    let missing = LeaseOrder { ranks: vec![(0, 1)], ..lease(2, program(&["/no/such/program"])) };
    place.order(&mut agent, &[&lease(1, shell("sleep 0.5")), &missing]);
    let first = end_of(&mut agent, 1).1;
    let (ran, ago) = (first.ran.unwrap(), first.ended_ago.unwrap());
    assert!(ran.get() >= 0.5, "{ran}");
    assert!((0.0..5.0).contains(&ago.get()), "it ended {ago} ago");
    assert_eq!(end_of(&mut agent, 2).1.ran, Some(Seconds::ZERO));
    // A later agent reports it, too.
    drop(agent);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let later = end_of(&mut place.open(), 1).1;
    assert_eq!(later.ran, Some(ran));
    assert!(later.ended_ago.unwrap().get() >= ago.get() + 0.2, "{later:?}, {ago} before");
}

#[test]
fn a_submission_has_a_folder_for_checkpoints_of_its_own() {
    let mut place = Place::new();
    let mut agent = place.open();
    let save = shell("ls -A $APPORTION_CHECKPOINTS; touch $APPORTION_CHECKPOINTS/weights");
    let with = |submission, incarnation| {
        let run = Run { job: JobNumber(1), incarnation };
        LeaseOrder { run, submission: Some(submission), ..lease(1, save.clone()) }
    };
    for (submission, incarnation) in [(0xa, 1), (0xb, 2), (0xa, 3)] {
        let job = with(submission, incarnation);
        place.order(&mut agent, &[&job]);
        let printed = wait_for("its end", || {
            agent.look();
            let report = agent.report();
            let rank = report.ranks.iter().find(|rank| rank.run == job.run)?;
            let output = place.state().join(format!("ranks/1.{incarnation}.0/output.log"));
            (rank.phase == Phase::Ended(End::Exit(0))).then(|| fs::read_to_string(output).unwrap())
        });
        let expected = if incarnation == 3 { "weights\n" } else { "" };
        assert_eq!(printed, expected, "start {incarnation}");
    }
    assert!(place.folder.path().join("checkpoints/1-00000000000a/weights").exists());
}

#[test]
fn ends_by_itself_are_told_as_they_were() {
    let mut place = Place::new();
    let mut agent = place.open();
    let exits = lease(1, trainer("--speed 50 --exit 9,5"));
    let signalled = LeaseOrder { ranks: vec![(0, 1)], ..lease(2, shell("kill -SEGV $$")) };
    place.order(&mut agent, &[&exits, &signalled]);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(9));
    assert_eq!(end_of(&mut agent, 2).0, End::Signal(Signal::SEGV.as_raw()));
}

#[test]
fn a_lease_ends_without_any_agent() {
    let mut place = Place::new();
    let mut agent = place.open();
    let job = lease(1, trainer("--speed 50"));
    place.order_for_a_second(&mut agent, job, |agent| {
        agent.look();
        rank_of(&agent.report(), 1, 0).is_some_and(|rank| rank.progress.speaks)
    });
    drop(agent);
    let end = place.rank(1, 0).join("end.json");
    wait_for("the end", || end.exists().then_some(()));
    let why = fs::read_to_string(place.rank(1, 0).join("stopping.json")).unwrap();
    assert!(why.contains("\"lease\""), "{why}");
    assert_eq!(end_of(&mut place.open(), 1).0, End::Stopped(Some(0)));
}

#[test]
fn a_lease_that_ends_is_told_as_stopping() {
    let mut place = Place::new();
    let mut agent = place.open();
    let (ready, more) = (place.path("ready"), place.path("more"));
    let script = format!(
        "trap 'while [ ! -e {more} ]; do sleep 0.02; done; exit 0' TERM; echo >{ready}; \
         while :; do sleep 0.05; done"
    );
    let job = lease(1, shell(&script));
    place.order_for_a_second(&mut agent, job.clone(), |_| Path::new(&ready).exists());
    until(&mut agent, 1, "stopping", |rank| rank.phase == Phase::Stopping);
    // Once it is asked to stop, no longer lease lets it go on.
    place.order(&mut agent, &[&LeaseOrder { lease: Seconds::new(LONG), ..job }]);
    assert_eq!(until(&mut agent, 1, "a look", |_| true).phase, Phase::Stopping);
    fs::write(&more, "").unwrap();
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(0)));
}

#[test]
fn a_lease_that_is_extended_goes_on() {
    let mut place = Place::new();
    let mut agent = place.open();
    let job = LeaseOrder { lease: Seconds::new(2.0), ..lease(1, trainer("--speed 50")) };
    place.order(&mut agent, &[&job]);
    place.order(&mut agent, &[&LeaseOrder { lease: Seconds::new(LONG), ..job.clone() }]);
    let over = clock::node_now() + job.lease;
    until(&mut agent, 1, "the first lease's end", |_| clock::node_now() > over + Seconds::new(0.2));
    let rank = until_steps(&mut agent, 1);
    assert_eq!(rank.phase, Phase::Running);
    place.order(&mut agent, &[]);
    assert_eq!(end_of(&mut agent, 1).0, End::Stopped(Some(0)));
}

#[test]
fn a_gang_stops_after_the_same_step() {
    let mut place = Place::new();
    let mut agent = place.open();
    let mut gang = lease(1, trainer("--speed 200 --margin 500"));
    (gang.ranks, gang.world_size) = (vec![(0, 2), (1, 3)], 2);
    place.order(&mut agent, &[&gang]);
    let ranks = |agent: &mut Processes| {
        agent.look();
        let report = agent.report();
        [0, 1].map(|rank| rank_of(&report, 1, rank).unwrap())
    };
    wait_for("both", || ranks(&mut agent).iter().all(|rank| rank.progress.steps > 0.0).then_some(()));
    gang.stop = Some(Stop::Propose);
    place.order(&mut agent, &[&gang]);
    let proposed = wait_for("a proposal", || ranks(&mut agent)[0].progress.proposed);
    assert!(ranks(&mut agent).iter().all(|rank| rank.phase == Phase::Running));
    gang.stop = Some(Stop::After(proposed));
    place.order(&mut agent, &[&gang]);
    let ended = wait_for("both ends", || {
        let ranks = ranks(&mut agent);
        ranks.iter().all(|rank| rank.phase == Phase::Ended(End::Stopped(Some(0)))).then_some(ranks)
    });
    assert_eq!(ended.map(|rank| rank.progress.checkpointed), [proposed as f64; 2]);
}
