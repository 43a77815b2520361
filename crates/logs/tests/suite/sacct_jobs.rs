//! Runs of Slurm's accounting joined to jobs: clusters, components, and joined calls.

use std::io::Cursor;

use apportion_logs::read::read_log_from;
use apportion_logs::{Doubt, Form, ReadOptions, Reading, Reason, State};

const HEAD: &str = "JobID|User|Account|Submit|Start|End|ElapsedRaw|State|NNodes|ReqTRES|AllocTRES|JobName";

fn read(head: &str, lines: &str) -> Reading {
    let text = Cursor::new(format!("{head}\n{lines}"));
    let log = read_log_from("sacct.txt", text, &ReadOptions::new(Form::Sacct)).unwrap();
    let n_left_out: u64 = log.left_out.values().map(|tally| tally.n).sum();
    assert_eq!(log.n_read, log.rows.len() as u64 + log.n_merged + n_left_out, "every row is accounted for");
    log
}

/// A run: its id, its submission, start and end after a day, and its state.
fn run(id: &str, times: [u32; 3], state: &str) -> String {
    let [submitted, started, ended] = times.map(|time| 1_700_000_000 + time);
    let ran = ended - started;
    format!("{id}|ann|lab|{submitted}|{started}|{ended}|{ran}|{state}|1||gres/gpu=4|a\n")
}

fn ids(log: &Reading) -> Vec<&str> {
    log.rows.iter().map(|row| row.id).collect()
}

#[test]
fn each_cluster_has_ids_of_its_own() {
    let head = format!("Cluster|{HEAD}");
    let of = |cluster: &str, run: String| format!("{cluster}|{run}");
    let one = of("c1", run("77", [0, 10, 3610], "FAILED"));
    let log = read(&head, &[one.clone(), of("c2", run("77", [4000, 4010, 11_210], "COMPLETED"))].concat());
    assert_eq!((ids(&log), log.n_merged), (vec!["c1:77", "c2:77"], 0));
    assert_eq!(log.doubts[&Doubt::SeveralClusters].id.as_deref(), Some("c2:77"));
    // Equal lines of both clusters are two jobs, and of one cluster one.
    let same = |clusters: [&str; 2]| {
        let lines = clusters.map(|cluster| of(cluster, run("77", [0, 10, 3610], "COMPLETED")));
        read(&head, &lines.concat())
    };
    assert_eq!(ids(&same(["c1", "c2"])), ["c1:77", "c2:77"]);
    let alone = same(["c1", "c1"]);
    assert_eq!((ids(&alone), alone.left_out[&Reason::Repeated].id.as_deref()), (vec!["77"], Some("77")));
    assert!(!alone.doubts.contains_key(&Doubt::SeveralClusters));
}

#[test]
fn components_are_of_the_job_with_which_they_were_submitted() {
    // An id that was reused, with one component more.
    let (march, june) = ([0, 10, 3610], [8_000_000, 8_000_010, 8_007_210]);
    let lines = [
        run("300+0", march, "COMPLETED"),
        run("300+1", march, "COMPLETED"),
        run("300+0", june, "COMPLETED"),
        run("300+1", june, "COMPLETED"),
        run("300+2", june, "COMPLETED"),
    ];
    let log = read(HEAD, &lines.concat());
    let sizes: Vec<_> = log.rows.iter().map(|row| (row.n_workers, row.ran_s)).collect();
    assert_eq!(sizes, [(Some(8), Some(3600.0)), (Some(12), Some(7200.0))]);
    // The log has only one component of each of the two jobs.
    let log = read(HEAD, &[&*lines[0], &*lines[3]].concat());
    let sizes: Vec<_> = log.rows.iter().map(|row| (row.n_workers, row.ran_s)).collect();
    assert_eq!((sizes, log.n_merged), (vec![(Some(4), Some(3600.0)), (Some(4), Some(7200.0))], 0));
    // The log lacks the first component of the first job.
    let log = read(HEAD, &lines[1..].concat());
    let sizes: Vec<_> = log.rows.iter().map(|row| (row.n_workers, row.ran_s)).collect();
    assert_eq!(sizes, [(Some(4), Some(3600.0)), (Some(12), Some(7200.0))]);
}

#[test]
fn a_job_of_components_that_is_requeued_is_one_job_of_several_attempts() {
    let (first, second) = ([0, 10, 3610], [3611, 7000, 10_600]);
    let lines = [
        run("300+0", first, "NODE_FAIL"),
        run("300+1", first, "COMPLETED"),
        run("300+0", second, "COMPLETED"),
        run("300+1", second, "COMPLETED"),
    ];
    let log = read(HEAD, &lines.concat());
    let row = log.rows.at(0);
    assert_eq!((ids(&log), log.n_merged), (vec!["300"], 3));
    assert_eq!((row.n_workers, row.ran_s, row.n_attempts), (Some(8), Some(7200.0), Some(2)));
    // Old versions of Slurm keep the time of submission.
    let again = [0, 7000, 10_600];
    let lines = [
        run("300+0", first, "NODE_FAIL"),
        run("300+0", again, "COMPLETED"),
        run("300+1", again, "COMPLETED"),
    ];
    let log = read(HEAD, &lines.concat());
    let row = log.rows.at(0);
    assert_eq!((log.n_merged, row.n_workers, row.n_attempts), (2, Some(8), Some(2)));
}

#[test]
fn rows_with_and_without_a_component_are_each_counted() {
    let times = [0, 10, 3610];
    let plain = run("300", times, "COMPLETED");
    let components = [run("300+0", times, "COMPLETED"), run("300+1", times, "COMPLETED")].concat();
    for lines in [[plain.clone(), components.clone()], [components.clone(), plain]] {
        let log = read(HEAD, &lines.concat());
        assert_eq!((ids(&log), log.n_not_understood()), (vec!["300"], 2));
        assert!(log.complaints[0].message.contains("with and without a component"), "{:?}", log.complaints);
    }
    // At another time it is another job, under a reused id.
    let log = read(HEAD, &[run("300", [9_000_000, 9_000_010, 9_000_020], "COMPLETED"), components].concat());
    assert_eq!((ids(&log), log.n_not_understood()), (vec!["300", "300#2"], 0));
}

#[test]
fn a_run_that_waited_in_one_call_is_the_run_of_the_next() {
    let waiting = "5|ann|lab|1700000000|Unknown|Unknown|0|PENDING|1|gres/gpu=4||a\n";
    let running =
        |elapsed: u32| format!("5|ann|lab|1700000000|1700000010|Unknown|{elapsed}|RUNNING|1||gres/gpu=4|a\n");
    let ended = run("5", [0, 10, 3610], "FAILED");
    for (lines, state, n_left_out) in [
        (vec![waiting.to_owned(), ended.clone()], State::Failed, 1),
        (vec![waiting.to_owned(), running(60), running(1060)], State::Running, 2),
        (vec![waiting.to_owned(), running(60), running(1060), ended.clone()], State::Failed, 3),
    ] {
        let log = read(HEAD, &lines.concat());
        let row = log.rows.at(0);
        assert_eq!((log.rows.len(), row.state, row.n_attempts), (1, state, Some(1)), "{lines:?}");
        assert_eq!(log.left_out[&Reason::Superseded].n, n_left_out, "{lines:?}");
        assert!(!log.doubts.contains_key(&Doubt::Requeued), "{lines:?}");
    }
    // A row that waits after a run that failed is its next attempt, though old versions of Slurm keep the time of
    // submission; or the calls are joined newest first, which cannot be told apart without the time from which it may run.
    let log = read(HEAD, &[ended, waiting.to_owned()].concat());
    assert_eq!((log.n_merged, log.rows.at(0).state), (1, State::Pending));
    assert_eq!(log.doubts[&Doubt::WaitsAgain].line, 3);
}

#[test]
fn calls_joined_in_any_order_are_the_same_jobs() {
    let head = "JobID|User|Submit|Eligible|Start|End|ElapsedRaw|State|AllocTRES";
    let row = |eligible: &str, start: &str, end: &str, state: &str| {
        format!("5|ann|1700000000|{eligible}|{start}|{end}|3600|{state}|gres/gpu=4\n")
    };
    let waiting = |eligible: &str| row(eligible, "Unknown", "Unknown", "PENDING");
    let first = waiting("1700000000");
    let running = row("1700000000", "1700000010", "Unknown", "RUNNING");
    for (state, expected) in [
        ("COMPLETED", State::Completed),
        ("FAILED", State::Failed),
        ("TIMEOUT", State::Timeout),
        ("CANCELLED by 7", State::Cancelled),
        ("OUT_OF_MEMORY", State::OutOfMemory),
    ] {
        let ended = row("1700000000", "1700000010", "1700003610", state);
        for lines in [[&first, &running, &ended], [&ended, &running, &first], [&running, &ended, &first]] {
            let log = read(head, &lines.map(String::as_str).concat());
            assert_eq!((log.rows.len(), log.rows.at(0).state), (1, expected), "{lines:?}");
            assert_eq!((log.left_out[&Reason::Superseded].n, log.doubts.len()), (2, 0), "{lines:?}");
        }
    }
    // A run that was cancelled before it started, and one that runs.
    let cancelled = row("1700000000", "Unknown", "1700000500", "CANCELLED");
    for (later, expected) in [(&cancelled, State::Cancelled), (&running, State::Running)] {
        for lines in [[&first, later], [later, &first]] {
            let log = read(head, &lines.map(String::as_str).concat());
            assert_eq!((log.rows.len(), log.rows.at(0).state, log.n_merged), (1, expected, 0), "{lines:?}");
        }
    }
    // Requeued by an old version of Slurm, it waits again, whichever call is first: it may run only after the end of its
    // first attempt.
    for state in ["FAILED", "NODE_FAIL", "PREEMPTED"] {
        let (ended, again) = (row("1700000000", "1700000010", "1700003610", state), waiting("1700003731"));
        for lines in [
            vec![&first, &ended, &again],
            vec![&ended, &again, &first],
            vec![&ended, &again, &running],
            vec![&again, &ended],
        ] {
            let log = read(head, &lines.iter().map(|line| line.as_str()).collect::<String>());
            assert_eq!((log.rows.len(), log.rows.at(0).state), (1, State::Pending), "{lines:?}");
            assert_eq!((log.rows.at(0).n_attempts, log.rows.at(0).ended_s), (Some(1), None), "{lines:?}");
            assert!(!log.doubts.contains_key(&Doubt::WaitsAgain), "{lines:?}");
        }
        // The second attempt ended, too.
        let second = row("1700003731", "1700004000", "1700007600", "COMPLETED");
        for lines in [[&ended, &again, &second], [&second, &ended, &again]] {
            let log = read(head, &lines.map(String::as_str).concat());
            assert_eq!(
                (log.rows.at(0).state, log.rows.at(0).n_attempts),
                (State::Completed, Some(2)),
                "{lines:?}"
            );
        }
    }
    // A held run has no such time.
    let held = row("1700000000", "1700000010", "1700003610", "FAILED") + &waiting("Unknown");
    assert_eq!(read(head, &held).doubts[&Doubt::WaitsAgain].n, 1);
}

#[test]
fn repeats_are_found_among_any_number_of_jobs_of_an_id() {
    let runs: Vec<String> = (0..5).map(|at| format!("k,{},1\n", 10 + at)).collect();
    let text = format!("id,ran_s,gpus\n{}{}", runs.concat(), runs.concat());
    let log = read_log_from("log", Cursor::new(text), &ReadOptions::new(Form::Log)).unwrap();
    assert_eq!((log.rows.len(), log.left_out[&Reason::Repeated].n, log.doubts[&Doubt::SameId].n), (5, 5, 4));
}

#[test]
fn where_nothing_has_elapsed_time_for_which_a_job_was_suspended_is_not_running_time() {
    let head = "JobID|State|AllocTRES|Submit|Start|End|Suspended";
    let line =
        |suspended: &str| format!("1|COMPLETED|gres/gpu=1|1700000000|1700000000|1700007200|{suspended}\n");
    assert_eq!(read(head, &line("00:30:00")).rows.at(0).ran_s, Some(5400.0));
    assert_eq!(read(head, &line("")).rows.at(0).ran_s, Some(7200.0));
    let log = read(head, &line("03:00:00"));
    assert!(log.rows.is_empty() && log.complaints[0].message.contains("longer than from Start to End"));
    let with_elapsed = read(&format!("{head}|Elapsed"), &line("00:30:00|01:30:00"));
    assert_eq!(with_elapsed.rows.at(0).ran_s, Some(5400.0));
}
