//! The order of reasons in which a run is judged.

use std::collections::BTreeMap;

use apportion::Seconds;
use apportion::index::{Id, JobId, WorkerId, WorkerTypeId};
use apportion::workload::Combination;

use super::*;
use crate::core::charges::Charges;
use crate::core::job::Ending;
use crate::core::record::RunRecord;
use crate::core::spans::Spans;
use crate::protocol::{Phase, Run};

/// A run of job 0 on servers `a`, `b`, …, whose ranks ended like this; a rank without an end is lost.
fn run(ends: &[Option<End>], reason: Option<Reason>) -> LiveRun {
    let record = RunRecord {
        workers: (0..ends.len()).map(WorkerId::from_index).collect(),
        servers: ["a", "b", "c"][..ends.len()].iter().map(ToString::to_string).collect(),
        outlives: Seconds::ZERO,
        gone_by: BTreeMap::new(),
        counted: None,
        charges: Charges::default(),
        lease_end: None,
        logged: None,
        unlogged: None,
        beside: Spans::default(),
        untold: None,
    };
    let start = Run { job: JobNumber(0), incarnation: 1 };
    let lease = (Combination::single(JobId::from_index(0)), WorkerTypeId::from_index(0));
    let mut run = LiveRun::new(start, &record, lease, (Known::Ordered, Seconds::ZERO));
    for (rank, end) in run.ranks.iter_mut().zip(ends) {
        rank.known = end.clone().map_or(Known::Lost, |end| Known::Reported(Phase::Ended(end)));
    }
    run.ending = reason.map(|reason| Ending { reason, since: Seconds::ZERO });
    run
}

fn verdict(ends: &[Option<End>], reason: Option<Reason>) -> Verdict {
    judge(&run(ends, reason), 100.0, Seconds::new(1e9))
}

/// The name of a verdict, and the server that it counts for.
fn kind(verdict: &Verdict) -> (&'static str, Option<&str>) {
    match verdict {
        Verdict::Completed(_) => ("completed", None),
        Verdict::Stopped(_) => ("stopped", None),
        Verdict::Lost(_) => ("lost", None),
        Verdict::Cut(_) => ("cut", None),
        Verdict::Failed(_, server) => ("failed", server.as_deref()),
        Verdict::Final(_) => ("final", None),
        Verdict::Refused(_, server) => ("refused", Some(server)),
    }
}

#[test]
fn a_program_that_says_that_it_is_done_is_done_however_others_ended() {
    let ends = [Some(End::Stopped(Some(0))), Some(End::Signal(9)), None];
    let mut done = run(&ends, Some(Reason::Preempted));
    (done.progress.speaks, done.progress.done) = (true, true);
    assert_eq!(kind(&judge(&done, 100.0, Seconds::new(1e9))), ("completed", None));
    // It is done by its steps, too, but not if rank 0 did not end well.
    (done.progress.done, done.progress.steps) = (false, 100.0);
    assert_eq!(kind(&judge(&done, 100.0, Seconds::new(1e9))), ("completed", None));
    done.ranks[0].known = Known::Reported(Phase::Ended(End::Stopped(Some(143))));
    assert_eq!(kind(&judge(&done, 100.0, Seconds::new(1e9))), ("failed", Some("b")));
}

#[test]
fn a_program_that_ended_by_itself_is_done_whatever_the_scheduler_wished_meanwhile() {
    let well = [Some(End::Exit(0)), Some(End::Exit(0))];
    assert_eq!(kind(&verdict(&well, None)), ("completed", None));
    assert_eq!(kind(&verdict(&well, Some(Reason::RankEnded))), ("completed", None));
    assert_eq!(kind(&verdict(&well, Some(Reason::Preempted))), ("completed", None));
    assert_eq!(kind(&verdict(&well, Some(Reason::NotStarted))), ("completed", None));
    assert_eq!(kind(&verdict(&well, Some(Reason::Cancelled))), ("stopped", None));
    // A rank that was asked to stop has stopped, and so has its gang.
    let asked = [Some(End::Exit(0)), Some(End::Stopped(Some(0)))];
    assert_eq!(kind(&verdict(&asked, Some(Reason::Preempted))), ("stopped", None));
}

#[test]
fn a_failure_comes_before_what_is_not_known_and_before_a_kill() {
    let failed = verdict(&[None, Some(End::Killed), Some(End::Exit(3))], Some(Reason::RankEnded));
    assert_eq!(kind(&failed), ("failed", Some("c")));
    assert_eq!(failed, Verdict::Failed("rank 2 on c, it ended with exit code 3".into(), Some("c".into())));
    // The first rank that failed is named.
    let failed = verdict(&[Some(End::Signal(11)), Some(End::Exit(3))], None);
    assert_eq!(kind(&failed), ("failed", Some("a")));
}

#[test]
fn what_cannot_be_started_again_is_over_whatever_others_did() {
    let over = || Some(End::Final("its time limit was over".into()));
    assert_eq!(kind(&verdict(&[Some(End::Exit(3)), over()], None)), ("final", None));
    assert_eq!(kind(&verdict(&[None, over()], Some(Reason::Preempted))), ("final", None));
}

#[test]
fn what_is_the_jobs_fault_alone_counts_for_no_server() {
    let declined = End::Declined("BadConstraints".into());
    let of_the_job = [End::NotExecutable("none".into()), declined, End::Exit(126), End::Exit(127)];
    for end in of_the_job {
        assert_eq!(kind(&verdict(&[Some(end)], None)), ("failed", None));
    }
    for end in [End::Exit(1), End::Exit(125), End::Signal(9), End::Vanished] {
        assert_eq!(kind(&verdict(&[Some(end)], None)), ("failed", Some("a")));
    }
    let refused = End::NotStarted("no space left".into());
    assert_eq!(kind(&verdict(&[Some(refused)], None)), ("refused", Some("a")));
}

#[test]
fn a_rank_that_went_on_beside_one_that_was_done_has_failed() {
    let ends = [Some(End::Exit(0)), Some(End::Killed)];
    assert_eq!(kind(&verdict(&ends, Some(Reason::RankEnded))), ("failed", Some("a")));
    assert_eq!(kind(&verdict(&ends, Some(Reason::Preempted))), ("lost", None));
}

#[test]
fn what_is_not_known_is_lost_before_a_kill_or_a_late_start_is_looked_at() {
    for ends in [[None, Some(End::Killed)], [Some(End::Killed), None]] {
        let Verdict::Lost(what) = verdict(&ends, Some(Reason::NotStarted)) else { panic!("{ends:?}") };
        assert!(what.contains("did not say how it ended"), "{what}");
    }
    let gone = [Some(End::Killed), Some(End::Lost("Slurm's node failed".into()))];
    let Verdict::Lost(what) = verdict(&gone, Some(Reason::Preempted)) else { panic!("{gone:?}") };
    assert!(what.contains("was lost: Slurm's node failed"), "{what}");
    let Verdict::Lost(what) =
        verdict(&[Some(End::Stopped(None)), Some(End::Stopped(None))], Some(Reason::NotStarted))
    else {
        panic!("it was not started")
    };
    assert!(what.contains("could be started in time"), "{what}");
}

#[test]
fn what_ends_from_outside_is_a_failure_where_it_says_so() {
    let cut = |is_failure| Some(End::Cut { why: "its node failed".into(), is_failure });
    assert_eq!(kind(&verdict(&[cut(true)], None)), ("failed", Some("a")));
    let Verdict::Cut(what) = verdict(&[Some(End::Killed), cut(false)], Some(Reason::RankEnded)) else {
        panic!("the gang is not over for this reason")
    };
    assert_eq!(what, "on b, it was ended from outside: its node failed");
}

#[test]
fn a_kill_after_the_last_step_was_saved_loses_nothing() {
    let mut killed = run(&[Some(End::Killed)], Some(Reason::Preempted));
    assert_eq!(kind(&judge(&killed, 100.0, Seconds::new(1e9))), ("lost", None));
    (killed.progress.speaks, killed.progress.steps, killed.progress.checkpointed) = (true, 40.0, 39.0);
    assert_eq!(kind(&judge(&killed, 100.0, Seconds::new(1e9))), ("lost", None));
    killed.progress.checkpointed = 40.0;
    assert_eq!(kind(&judge(&killed, 100.0, Seconds::new(1e9))), ("stopped", None));
}

#[test]
fn a_stop_that_no_scheduler_asked_for_is_not_said_to_be_the_lease_s_end() {
    let said = |reason: Option<Reason>, now: f64| {
        let mut stopped = run(&[Some(End::Stopped(None))], reason);
        stopped.until = Seconds::new(10.0);
        match judge(&stopped, 100.0, Seconds::new(now)) {
            Verdict::Stopped(why) => why,
            other => panic!("{other:?}"),
        }
    };
    assert!(
        said(None, 5.0).contains("before its lease was over, not by its scheduler"),
        "{}",
        said(None, 5.0)
    );
    assert!(said(Some(Reason::RankEnded), 5.0).contains("not by its scheduler"));
    assert_eq!(said(None, 11.0), "it stopped when its lease was over");
    assert_eq!(said(Some(Reason::Preempted), 5.0), "it stopped when it was asked to");
}
