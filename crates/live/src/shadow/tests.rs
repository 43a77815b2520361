use std::collections::BTreeMap;
use std::time::Duration;

use apportion::scheduler::{Options, Rounds, Scheduler};
use apportion::{Catalog, Cluster, Seconds, Throughputs};

use super::*;

/// A shadow with rounds of 10 s, one fast worker and one slow one, first come, first served.
fn shadow(now_s: f64) -> Shadow {
    shadow_of(now_s, false)
}

/// Such a shadow, with a policy behind the mechanism, or with one that places jobs itself.
fn shadow_of(now_s: f64, places_itself: bool) -> Shadow {
    let cluster: Cluster = "v100=1,k80=1".parse().unwrap();
    let policy = Catalog::embedded().policy("fifo_perf").unwrap();
    let options = Options::default().with_round_length(Seconds::new(10.0));
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let scheduler = if places_itself {
        let rounds = Box::new(Rounds::new(policy, &cluster, &options));
        Scheduler::with_round_policy(&cluster, throughputs, rounds, options)
    } else {
        Scheduler::new(&cluster, throughputs, policy, options)
    };
    let scheduler = scheduler.unwrap();
    Shadow::new(scheduler, Record::begin("fifo_perf", 10.0, now_s), Duration::from_secs(10), now_s)
}

fn seen(submitted_s: f64, started_s: Option<f64>, ended_s: Option<f64>) -> Seen {
    Seen {
        name: "one".to_owned(),
        user: "ann".to_owned(),
        job_type: "own".to_owned(),
        n_workers: 1,
        speeds: BTreeMap::from([("v100".to_owned(), 8.0), ("k80".to_owned(), 2.0)]),
        limit_s: Some(3600.0),
        submitted_s,
        n_restarts: 0,
        eligible_s: Some(submitted_s),
        is_withheld: false,
        there: Times { started_s, ended_s },
        ran_on: started_s.map(|_| "k80".to_owned()),
    }
}

/// Jobs by their numbers.
fn all<const N: usize>(jobs: [(u64, Seen); N]) -> BTreeMap<JobKey, Seen> {
    jobs.into_iter().map(|(id, seen)| (id.into(), seen)).collect()
}

fn row(shadow: &Shadow, id: u64) -> Row {
    Report::of(shadow.record()).jobs.into_iter().find(|row| row.job == id).unwrap()
}

#[test]
fn a_job_ends_when_it_has_done_what_it_did_there() {
    let mut shadow = shadow(1000.0);
    // There it waits for 20 s and runs for 40 s on the slow worker: 80 steps, which take 10 s on the fast one.
    shadow.see(1001.0, &all([(1, seen(1000.0, None, None))]));
    shadow.advance(1001.0);
    let now = row(&shadow, 1);
    assert_eq!((now.waits_there, now.waits_here, now.wait_here_s), (true, false, 1.0));
    for now in [1021, 1031, 1041, 1051] {
        shadow.see(f64::from(now), &all([(1, seen(1000.0, Some(1020.0), None))]));
        shadow.advance(f64::from(now));
    }
    assert_eq!(row(&shadow, 1).completion_here_s, None, "nothing is known of its length yet");
    shadow.see(1061.0, &all([(1, seen(1000.0, Some(1020.0), Some(1060.0)))]));
    let over = row(&shadow, 1);
    assert_eq!((over.completion_there_s, over.completion_here_s), (Some(60.0), Some(11.0)));
    let averages = Report::of(shadow.record()).averages;
    assert_eq!(
        (averages.n_ended, averages.mean_wait_there_s, averages.mean_wait_here_s),
        (1, Some(20.0), Some(1.0))
    );
}

#[test]
fn a_policy_that_places_jobs_itself_has_them_start_with_rounds() {
    let mut shadow = shadow_of(1000.0, true);
    shadow.see(1001.0, &all([(1, seen(1000.0, None, None))]));
    shadow.advance(1001.0);
    let both = all([(1, seen(1000.0, None, None)), (2, seen(1003.0, None, None))]);
    shadow.see(1003.0, &both);
    shadow.advance(1003.0);
    assert!(!row(&shadow, 1).waits_here && row(&shadow, 2).waits_here);
    shadow.see(1012.0, &both);
    shadow.advance(1012.0);
    assert_eq!((row(&shadow, 2).waits_here, row(&shadow, 2).wait_here_s), (false, 8.0));
    assert!(shadow.take_words().is_empty());
}

#[test]
fn what_cannot_be_compared_is_left_out_with_its_reason() {
    let mut shadow = shadow(1000.0);
    let mut vast = seen(1000.0, None, None);
    vast.n_workers = 8;
    let old = seen(900.0, Some(950.0), None);
    let long_over = seen(900.0, Some(950.0), Some(990.0));
    shadow.see(1001.0, &all([(1, seen(1000.0, None, None)), (2, vast), (3, old), (4, long_over)]));
    shadow.advance(1001.0);
    assert!(shadow.take_words()[0].contains("job 2"));
    shadow.see(1002.0, &all([(1, seen(1000.0, None, Some(1002.0)))]));
    let why = |id| row(&shadow, id).not_counted.unwrap();
    assert!(why(1).contains("withdrawn"));
    assert!(why(2).contains("fits nowhere"));
    assert!(why(3).contains("not shown any more"));
    assert!(!shadow.record().jobs.contains_key(&4.into()));
    let averages = Report::of(shadow.record()).averages;
    assert_eq!(averages, Averages::default(), "no mean over none");
}

#[test]
fn the_wait_of_a_job_that_is_withdrawn_or_left_out_has_ended() {
    let mut shadow = shadow(1000.0);
    // The first one has the fast worker, the second the slow one; the others wait.
    let waiting = |id: u64| (JobKey::from(id), seen(1000.0, None, None));
    let (mut vast, mut shown) = (seen(1000.0, None, None), (1..=5).map(waiting).collect::<BTreeMap<_, _>>());
    vast.n_workers = 8;
    shown.insert(6.into(), vast);
    shadow.see(1001.0, &shown);
    shadow.advance(1001.0);
    let waits = |shadow: &Shadow, id| {
        let row = row(shadow, id);
        (row.waits_there, row.wait_there_s, row.waits_here, row.wait_here_s)
    };
    assert_eq!(waits(&shadow, 4), (true, 1.0, true, 1.0));
    assert_eq!(waits(&shadow, 6), (true, 1.0, false, 0.0), "it never was in the shadow");
    // Withdrawn, gone, and shown again; the looks that follow change nothing.
    shown.insert(3.into(), seen(1000.0, None, Some(1002.0)));
    let gone = shown.remove(&4.into());
    for now in [1004.0, 1005.0, 1009.0] {
        shadow.see(now, &shown);
    }
    assert_eq!(waits(&shadow, 3), (false, 2.0, false, 2.0));
    assert_eq!(waits(&shadow, 4), (false, 4.0, false, 4.0));
    assert_eq!(waits(&shadow, 5), (true, 9.0, true, 9.0));
    shown.extend(gone.map(|gone| (4.into(), gone)));
    shown.remove(&6.into());
    shadow.see(1010.0, &shown);
    assert_eq!(waits(&shadow, 4), (true, 10.0, false, 4.0));
    assert_eq!(waits(&shadow, 6), (false, 10.0, false, 0.0));
}

#[test]
fn waits_so_far_are_in_the_mean_and_said_to_be() {
    let mut shadow = shadow(1000.0);
    let jobs = (0..4)
        .map(|id| (id, seen(1000.0, (id == 0).then_some(1000.0), None)))
        .map(|(id, seen): (u64, Seen)| (id.into(), seen))
        .collect();
    for now in [1000, 1010, 1020] {
        shadow.see(f64::from(now), &jobs);
        shadow.advance(f64::from(now));
    }
    let averages = Report::of(shadow.record()).averages;
    assert_eq!((averages.n_jobs, averages.n_waiting_there, averages.n_waiting_here), (4, 3, 2));
    assert_eq!((averages.mean_wait_there_s, averages.mean_wait_here_s), (Some(15.0), Some(10.0)));
}

#[test]
fn a_record_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shadow.json");
    let mut first = shadow(1000.0);
    first.see(1000.0, &all([(1, seen(1000.0, Some(1000.0), None))]));
    first.advance(1000.0);
    first.see(1008.0, &all([(1, seen(1000.0, Some(1000.0), None))]));
    first.record().write(&path).unwrap();
    let record = Record::read(&path).unwrap().unwrap();
    assert_eq!(&record, first.record());
    let mut second = Shadow { record, ..shadow(1020.0) };
    second.submit(1.into());
    second.see(1020.0, &all([(1, seen(1000.0, Some(1000.0), Some(1016.0)))]));
    // 32 steps: 4 s of the 8 s before.
    assert_eq!(row(&second, 1).completion_here_s, Some(4.0));
    std::fs::write(&path, r#"{"format":"other"}"#).unwrap();
    assert!(Record::read(&path).is_err());
    assert!(Record::read(&folder.path().join("none")).unwrap().is_none());
}

#[test]
fn a_job_of_parts_of_accelerators_is_left_out_with_the_reason() {
    let mut shadow = shadow(1000.0);
    let parts = Seen { n_workers: 0, ..seen(1000.0, None, None) };
    shadow.see(1001.0, &all([(1, parts.clone()), (2, seen(1000.0, None, None))]));
    let words = shadow.take_words();
    assert_eq!(words.len(), 1, "{words:?}");
    assert!(words[0].starts_with("job 1 (one) is left out: it asks for parts of accelerators"), "{words:?}");
    let why = shadow.record().jobs[&1.into()].left_out.clone().unwrap();
    assert!(why.contains("workers here are whole ones"), "{why}");
    // The sentence comes once.
    shadow.see(1002.0, &all([(1, parts)]));
    assert!(shadow.take_words().is_empty());
}

#[test]
fn a_job_is_not_there_before_it_may_run_and_waits_from_then() {
    let mut shadow = shadow(1000.0);
    let held = Seen { eligible_s: None, is_withheld: true, ..seen(1000.0, None, None) };
    for now in [1001.0, 1011.0, 1021.0] {
        shadow.see(now, &all([(1, held.clone())]));
        shadow.advance(now);
    }
    assert!(shadow.record().jobs.is_empty(), "it is held");
    let ready = Seen { eligible_s: Some(1025.0), ..seen(1000.0, None, None) };
    shadow.see(1031.0, &all([(1, ready.clone())]));
    shadow.advance(1031.0);
    let now = row(&shadow, 1);
    assert_eq!((now.submitted_s, now.wait_there_s, now.wait_here_s), (1000.0, 6.0, 6.0));
    let started = |ready: Seen| Seen { there: Times { started_s: Some(1045.0), ended_s: None }, ..ready };
    shadow.see(1046.0, &all([(1, started(ready))]));
    assert_eq!((row(&shadow, 1).wait_there_s, Report::of(shadow.record()).averages.n_jobs), (20.0, 1));
    // A job that is held again before it was started is compared no more; a job that ended before it could run was never there.
    shadow.see(1047.0, &all([(2, seen(1047.0, None, None))]));
    shadow.see(
        1048.0,
        &all([(2, Seen { submitted_s: 1047.0, ..held.clone() }), (3, Seen { is_withheld: false, ..held })]),
    );
    assert!(row(&shadow, 2).not_counted.unwrap().contains("was held"));
    assert!(!shadow.record().jobs.contains_key(&3.into()));
}

#[test]
fn tasks_of_an_array_that_wait_are_a_job_each() {
    let mut shadow = shadow(1000.0);
    let tasks = (0..3).map(|task| (JobKey::new(7, Some(task)), seen(1000.0, None, None))).collect();
    shadow.see(1001.0, &tasks);
    shadow.advance(1001.0);
    let report = Report::of(shadow.record());
    assert_eq!(
        report.jobs.iter().map(|row| (row.job, row.task)).collect::<Vec<_>>(),
        [(7, Some(0)), (7, Some(1)), (7, Some(2))]
    );
    assert_eq!(report.averages.n_waiting_here, 1, "two have a worker each");
}

#[test]
fn a_number_that_was_given_out_again_is_another_job() {
    let mut shadow = shadow(1000.0);
    shadow.see(1001.0, &all([(1, seen(1000.0, None, None))]));
    shadow.advance(1001.0);
    let second = Seen { name: "two".to_owned(), ..seen(1010.0, Some(1011.0), None) };
    for now in [1012.0, 1013.0] {
        shadow.see(now, &all([(1, second.clone())]));
    }
    let rows = Report::of(shadow.record()).jobs;
    assert_eq!(
        rows.iter().map(|row| (row.job, row.name.as_str())).collect::<Vec<_>>(),
        [(1, "one"), (1, "two")]
    );
    assert!(rows[0].not_counted.as_ref().unwrap().contains("not shown any more") && !rows[0].waits_there);
    assert_eq!((rows[1].submitted_s, rows[1].wait_there_s), (1010.0, 1.0));
    // A job of another user is another job, too; and a record of an earlier version takes over what is shown.
    let third = Seen { user: "eve".to_owned(), ..second.clone() };
    shadow.see(1014.0, &all([(1, third)]));
    assert_eq!(shadow.record().jobs.len(), 3);
    let mut old = Entry::new(second.clone());
    old.shown = None;
    assert!(old.may_be(&seen(1020.0, None, None)));
}

#[test]
fn a_job_that_was_put_back_had_its_workers_when_it_first_had_them() {
    let mut shadow = shadow(1000.0);
    shadow.see(1001.0, &all([(1, seen(1000.0, Some(1001.0), None))]));
    shadow.advance(1001.0);
    let again = Seen { n_restarts: 1, is_withheld: true, eligible_s: None, ..seen(1040.0, None, None) };
    shadow.see(1041.0, &all([(1, again.clone())]));
    let ran = Times { started_s: Some(1160.0), ended_s: Some(1180.0) };
    shadow.see(
        1181.0,
        &all([(1, Seen { there: ran, ran_on: Some("k80".to_owned()), is_withheld: false, ..again })]),
    );
    let row = row(&shadow, 1);
    assert_eq!((row.wait_there_s, row.completion_there_s, row.not_counted), (1.0, Some(180.0), None));
    let entry = &shadow.record().jobs[&1.into()];
    assert_eq!((entry.needed, entry.restarted_s), (Some(40.0), Some(1160.0)));
}
