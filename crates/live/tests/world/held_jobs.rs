//! Jobs that users submit elsewhere: programs that report nothing, and that cannot be started again once they are over.

use std::collections::BTreeMap;

use apportion_live::core::{Answer, How, Request, Submission};
use apportion_live::protocol::{End, Program};

use super::node::Manners;
use super::small::{GOOD, Small, job};

const SILENT: Manners = Manners { speaks: false, ..GOOD };

fn with_held_jobs() -> Small {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.settings.front_door = true;
    small.start("v100=1");
    small.until(5.0);
    small
}

#[test]
fn steps_are_presumed_over_a_restart_and_never_all_of_them() {
    let mut small = with_held_jobs();
    let first = small.try_submit(job(200), SILENT).unwrap();
    small.until(125.0);
    let presumed = |small: &mut Small| small.why(first).job.checkpointed;
    // These are the steps of the last decision.
    let before = presumed(&mut small);
    assert!((90.0..=120.0).contains(&before), "{before}");
    assert!(small.why(first).because.iter().any(|text| text.contains("presumed")));
    small.core = None;
    small.start("v100=1");
    small.until(185.0);
    let after = presumed(&mut small);
    assert!((before + 20.0..=180.0).contains(&after), "what was presumed before is in it once: {after}");
    small.until(400.0);
    assert!((presumed(&mut small) - 199.0).abs() < 1e-9);
    // Other schedulers presume nothing.
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1");
    let first = small.try_submit(job(200), SILENT).unwrap();
    small.until(185.0);
    assert!(small.why(first).job.checkpointed <= 0.0);
}

#[test]
fn a_job_that_is_over_elsewhere_is_given_up_at_once() {
    let mut small = with_held_jobs();
    let first = small.submit(job(100_000));
    small.doom(first, &End::Final("its time limit was over".to_owned()));
    small.until(60.0);
    let outcome = small.jobs[&first].outcome.clone().unwrap();
    assert_eq!((outcome.how, outcome.reason.as_str()), (How::Failed, "its time limit was over"));
    assert_eq!(small.jobs[&first].incarnation, 1);
}

#[test]
fn a_run_that_is_lost_keeps_its_presumed_steps_and_nothing_is_said_of_checkpoints() {
    let mut small = with_held_jobs();
    let first = small.try_submit(job(100_000), SILENT).unwrap();
    small.until(50.0);
    small.doom(first, &End::Lost("Slurm's node failed".to_owned()));
    small.until(52.0);
    assert!(small.why(first).job.checkpointed > 30.0);
    assert_eq!(small.warnings("checkpoint"), 0, "{:?}", small.notes);
    assert_eq!(small.warnings("the steps that are presumed of it stay"), 1, "{:?}", small.notes);
}

#[test]
fn a_job_that_slurm_does_not_start_is_given_up_after_as_many_failures_as_others() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    (small.settings.front_door, small.settings.back_off) = (true, apportion::Seconds::new(1.0));
    small.start("v100=1");
    small.until(5.0);
    let number = small.submit(job(10));
    small.doom(number, &End::Declined("BadConstraints".into()));
    small.until(200.0);
    let record = &small.jobs[&number];
    let outcome = record.outcome.as_ref().unwrap();
    assert_eq!((outcome.how, record.incarnation), (How::Failed, 5), "{outcome:?}");
    assert_eq!(
        outcome.reason,
        "it failed 5 times in a row; the last time on a, it has not begun: Slurm does not start it there: BadConstraints"
    );
    assert_eq!(small.warnings("a is drained"), 0, "{:?}", small.notes);
}

#[test]
fn a_job_is_withdrawn_with_its_reason() {
    let mut small = with_held_jobs();
    let [first, second] = [0, 1].map(|_| small.submit(job(100_000)));
    small.until(20.0);
    for (number, why) in [(first, "cancelled in Slurm"), (second, "an administrator holds it")] {
        small.ask(Request::Withdraw(number, why.to_owned())).unwrap();
    }
    small.until(60.0);
    for (number, why) in [(first, "cancelled in Slurm"), (second, "an administrator holds it")] {
        let outcome = small.jobs[&number].outcome.clone().unwrap();
        assert_eq!((outcome.how, outcome.reason.as_str()), (How::Cancelled, why));
        assert!(small.notes.iter().any(|note| note.text.contains(why)));
    }
}

#[test]
fn only_held_jobs_are_taken_in() {
    let mut small = with_held_jobs();
    let program = Program { command: vec!["train".into()], directory: None, environment: BTreeMap::new() };
    let submission = || Submission {
        name: None,
        user: None,
        key: Some("slurm:7:9".to_owned()),
        job: job(5),
        program: program.clone(),
    };
    let said = small.ask(Request::Submit(Box::new(submission()))).unwrap_err().to_string();
    assert!(said.contains("sbatch --hold"), "{said}");
    let mut taken = || match small.ask(Request::TakeIn(Box::new(submission()))).unwrap() {
        Answer::Submitted { job, .. } => job,
        answer => panic!("{answer:?}"),
    };
    assert_eq!((taken(), taken().0), (taken(), 0), "said again, it is the same job");
    small.ask(Request::Remark(None, "Slurm job 8 is not taken in".to_owned())).unwrap();
    assert_eq!(small.warnings("not taken in"), 1);
}
