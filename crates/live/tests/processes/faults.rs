//! Ranks that cannot be started, kept or read, and the variables of programs.

use std::collections::BTreeMap;
use std::fs;

use apportion::{Seconds, Steps};
use apportion_live::protocol::{End, LeaseOrder, Program, Stop};

use crate::place::{Place, end_of, lease, place_again, program, run_of, shell, trainer, until, until_steps};
use crate::support::wait_for;

fn why_not_executable(program: Program) -> String {
    let mut place = Place::new();
    let mut agent = place.open();
    place.order(&mut agent, &[&lease(1, program)]);
    match end_of(&mut agent, 1).0 {
        End::NotExecutable(why) => why,
        end => panic!("{end:?}"),
    }
}

#[test]
fn what_cannot_be_started_says_why() {
    let why = why_not_executable(program(&["/no/such/program"]));
    assert!(why.starts_with("/no/such/program: No such file or directory"), "{why}");
    let why = why_not_executable(program(&["no-such-program-anywhere"]));
    assert!(why.starts_with("no-such-program-anywhere: No such file or directory"), "{why}");
    let why = why_not_executable(program(&["/etc/passwd"]));
    assert!(why.starts_with("/etc/passwd: Permission denied"), "{why}");
    let elsewhere = Program { directory: Some("/no/such/folder".to_owned()), ..trainer("") };
    let why = why_not_executable(elsewhere);
    assert!(why.starts_with("folder /no/such/folder: No such file or directory"), "{why}");
    assert_eq!(why_not_executable(program(&[])), "no program is named");
}

#[test]
fn an_order_that_cannot_be_kept_starts_nothing() {
    let mut place = Place::new();
    let mut agent = place.open();
    // This is as on a full disk: no folder can be made in a file.
    let ranks = place.state().join("ranks");
    fs::remove_dir(&ranks).unwrap();
    fs::write(&ranks, "").unwrap();
    place.order(&mut agent, &[&lease(1, trainer(""))]);
    let End::NotStarted(why) = end_of(&mut agent, 1).0 else { panic!("it was started") };
    assert!(why.contains("ranks/.new-1.1.0: Not a directory"), "{why}");
}

#[test]
fn an_end_is_told_though_the_disk_has_no_more_room() {
    let mut place = Place::new();
    let mut agent = place.open();
    // No file can be made where a folder is.
    place.order(&mut agent, &[&lease(1, shell("mkdir $APPORTION_LEASE/end.json.new; exit 0"))]);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(0));
}

#[test]
fn ends_are_told_until_they_are_forgotten() {
    let mut place = Place::new();
    let mut agent = place.open();
    place.order(&mut agent, &[&lease(1, shell("echo to be kept; exit 5"))]);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(5));
    let mut agent = place_again(&place, agent);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(5));
    let answers = agent.report().id;
    agent.take(&place.orders(answers, &[], vec![run_of(1)]));
    assert_eq!(agent.report().ranks, []);
    assert!(!place.rank(1, 0).exists());
    let log = fs::read_to_string(place.state().join("logs/1.1.0.log")).unwrap();
    assert_eq!(log, "to be kept\n");
    let mut agent = place_again(&place, agent);
    assert_eq!(agent.report().ranks, []);
}

#[test]
fn what_a_program_is_told_is_in_its_environment() {
    let mut place = Place::new();
    let mut agent = place.open();
    let script = "echo $RANK $WORLD_SIZE $LOCAL_RANK $MASTER_ADDR $CUDA_VISIBLE_DEVICES $APPORTION_JOB \
                  $APPORTION_TOTAL_STEPS $OWN $(pwd) ${APPORTION_SHIM_OF_STEP-unset}";
    let mut job = LeaseOrder { total_steps: Steps::new(9.0), ..lease(4, shell(script)) };
    job.ranks = vec![(0, 2)];
    job.program.environment =
        BTreeMap::from([("OWN", "mine"), ("RANK", "no")].map(|(k, v)| (k.into(), v.into())));
    job.program.directory = Some("/".to_owned());
    place.order(&mut agent, &[&job]);
    assert_eq!(end_of(&mut agent, 4).0, End::Exit(0));
    assert_eq!(place.output(4).trim(), "0 1 0 127.0.0.1 2 4 9 mine / unset");
}

#[test]
fn progress_that_cannot_be_read_changes_nothing() {
    let mut place = Place::new();
    let mut agent = place.open();
    let (more, said) = (place.path("more"), "$APPORTION_LEASE/progress.json");
    let script = format!(
        "echo '{{\"version\": 1, \"steps\": 7, \"state\": \"running\"}}' >{said}.new; mv {said}.new {said}; \
         while [ ! -e {more} ]; do sleep 0.02; done; echo '{{half' >{said}; exit 1"
    );
    place.order(&mut agent, &[&lease(1, shell(&script))]);
    until(&mut agent, 1, "steps", |rank| rank.progress.steps == 7.0);
    fs::write(&more, "").unwrap();
    let (end, rank) = end_of(&mut agent, 1);
    assert_eq!((end, rank.progress.steps), (End::Exit(1), 7.0));
}

#[test]
fn a_folder_that_cannot_be_read_is_set_aside() {
    let mut place = Place::new();
    let mut agent = place.open();
    place.order(&mut agent, &[&lease(1, shell("exit 5"))]);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(5));
    let broken = place.rank(2, 0);
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("start.json"), "{half").unwrap();
    let mut agent = place_again(&place, agent);
    assert_eq!(end_of(&mut agent, 1).0, End::Exit(5));
    assert_eq!(agent.report().ranks.len(), 1);
    assert!(place.state().join("aside/2.1.0/start.json").exists());
}

#[test]
fn a_program_is_asked_to_stop_though_the_disk_has_no_more_room() {
    let mut place = Place::new();
    let mut agent = place.open();
    // No file can be made where a folder is.
    let mut job = LeaseOrder { lease: Seconds::new(1.0), ..lease(1, trainer("--speed 50")) };
    place.order(&mut agent, &[&job]);
    for name in ["steer.json.new", "control.json.new"] {
        fs::create_dir(place.rank(1, 0).join(name)).unwrap();
    }
    // The lease is longer, twice, and is over a second after the last time: then the trainer saves.
    for _ in 0..2 {
        let before = until_steps(&mut agent, 1).progress.steps;
        job.lease = Seconds::new(job.lease.get() + 300.0);
        place.order(&mut agent, &[&job]);
        until(&mut agent, 1, "more steps", |rank| rank.progress.steps > before);
        let steer = fs::read_to_string(place.rank(1, 0).join("steer.json")).unwrap();
        assert!(steer.contains("until"), "{steer}");
    }
    for stop in [Stop::Propose, Stop::Now] {
        job.stop = Some(stop);
        place.order(&mut agent, &[&job]);
        let control = place.rank(1, 0).join("control.json");
        let says = format!("{stop:?}").to_lowercase();
        wait_for(&says, || fs::read_to_string(&control).ok()?.contains(&says).then_some(()));
    }
    let (end, rank) = end_of(&mut agent, 1);
    assert_eq!(end, End::Stopped(Some(0)));
    assert!(rank.progress.checkpointed > 0.0);
}
