//! What a real Slurm prints of jobs that were requeued, joined from two calls, suspended or given nothing.

use std::io::Cursor;

use apportion_logs::read::read_log_from;
use apportion_logs::{Doubt, Form, ReadOptions, Reading, Reason, Row, State};

const HEAD: &str = "JobID|User|Account|Submit|Start|End|ElapsedRaw|State|NNodes|ReqTRES|AllocTRES|JobName\n";

fn log(lines: &str) -> Reading {
    let text = [HEAD, lines].concat();
    let log = read_log_from("sacct.txt", Cursor::new(text), &ReadOptions::new(Form::Sacct)).unwrap();
    assert!(log.complaints.is_empty(), "{:?}", log.complaints);
    let n_left_out: u64 = log.left_out.values().map(|tally| tally.n).sum();
    assert_eq!(log.n_read, log.rows.len() as u64 + log.n_merged + n_left_out);
    log
}

fn only(log: &Reading) -> &Row {
    assert_eq!(log.rows.len(), 1, "{:?}", log.rows);
    &log.rows[0]
}

#[test]
fn a_run_that_had_not_ended_in_one_call_is_no_attempt_beside_its_end_in_the_next() {
    let log = log("\
23|ann|lab|1700000000|1700000010|1700000022|12|PREEMPTED|1|gres/gpu=1|gres/gpu=1|a
23|ann|lab|1700000022|1700000030|Unknown|100|RUNNING|1|gres/gpu=1|gres/gpu=1|a
23|ann|lab|1700000000|1700000010|1700000022|12|PREEMPTED|1|gres/gpu=1|gres/gpu=1|a
23|ann|lab|1700000022|1700000030|1700000230|200|COMPLETED|1|gres/gpu=1|gres/gpu=1|a
");
    let row = only(&log);
    assert_eq!((row.n_attempts, row.ran_s, row.state), (Some(2), Some(212.0), State::Completed));
    let counts = [Reason::Superseded, Reason::Repeated].map(|reason| log.left_out[&reason].n);
    assert_eq!((counts, log.n_merged), ([1, 1], 1));
}

#[test]
fn how_long_a_job_ran_that_runs_again_is_not_known() {
    let log = log("\
5|ann|lab|1700000000|1700000010|1700000022|12|PREEMPTED|1||gres/gpu=1|a
5|ann|lab|1700000022|1700000030|Unknown|100|RUNNING|1||gres/gpu=1|a
");
    assert_eq!((only(&log).ran_s, only(&log).state, only(&log).n_attempts), (None, State::Running, Some(2)));
}

#[test]
fn a_job_is_sized_as_its_last_attempt_that_ran_and_of_several_types_has_none() {
    let cancelled = log("\
7|ann|lab|1700000000|1700000010|1700000610|600|REQUEUED|1||gres/gpu:t4=1,gres/gpu=1|a
7|ann|lab|1700000610|None|1700000700|0|CANCELLED by 5|1|||a
");
    let row = only(&cancelled);
    assert_eq!((row.n_workers, row.worker_type.as_deref(), row.ran_s), (Some(1), Some("t4"), Some(600.0)));
    let moved = log("\
8|ann|lab|1700000000|1700000010|1700000610|600|PREEMPTED|1||gres/gpu:a100=1,gres/gpu=1|a
8|ann|lab|1700000610|1700000620|1700000680|60|COMPLETED|1||gres/gpu:t4=1,gres/gpu=1|a
");
    assert_eq!((only(&moved).worker_type.as_deref(), only(&moved).ran_s), (None, Some(660.0)));
    let both = log(
        "9|ann|lab|1700000000|1700000010|1700000610|600|PREEMPTED|1||gres/gpu:a100=1,gres/gpu:t4=1|a\n\
                    9|ann|lab|1700000610|1700000620|1700000680|60|COMPLETED|1||gres/gpu:a100=1,gres/gpu:t4=1|a\n",
    );
    assert_eq!((both.doubts[&Doubt::SeveralTypes].n, moved.doubts[&Doubt::SeveralTypes].n), (1, 1));
}

#[test]
fn elapsed_times_are_taken_and_doubted_where_they_cannot_be() {
    let log = log("\
1|ann|lab|1700000000|1700000000|1700000600|60|COMPLETED|1||gres/gpu=1|suspended
2|ann|lab|1700000000|1700000000|1700000600|900|COMPLETED|1||gres/gpu=1|impossible
3|ann|lab|1700000000|1700000000|Unknown|60|COMPLETED|1||gres/gpu=1|without an end
4|ann|lab|1700000000|1700000000|1700000600|600|COMPLETED|1|gres/gpu=4|cpu=1|given nothing
");
    let ran: Vec<Option<f64>> = log.rows.iter().map(|row| row.ran_s).collect();
    assert_eq!(ran, [Some(60.0), Some(900.0), Some(60.0), Some(600.0)]);
    assert_eq!(log.doubts[&Doubt::ElapsedTooLong].id.as_deref(), Some("2"));
    assert_eq!((log.rows[3].n_workers, log.doubts[&Doubt::OnlyAsked].n), (Some(4), 1));
}

#[test]
fn the_same_dump_twice_counts_once_however_its_runs_are_ordered() {
    let runs = "\
3|ann|lab|1700000000|1700000010|1700003610|3600|PREEMPTED|1||gres/gpu=1|a
3|ann|lab|1700000000|1700004000|1700007600|3600|COMPLETED|1||gres/gpu=1|a
";
    let twice = log(&[runs, runs].concat());
    assert_eq!((only(&twice).ran_s, only(&twice).n_attempts), (Some(7200.0), Some(2)));
    assert_eq!(twice.left_out[&Reason::Repeated].n, 2);
}

#[test]
fn an_id_that_comes_round_after_a_failure_is_another_job() {
    let log = log("\
4|ann|lab|1600000000|1600000010|1600003610|3600|FAILED|1||gres/gpu=1|a
4|ann|lab|1700000000|1700000010|1700000110|100|COMPLETED|1||gres/gpu=8|a
");
    let ids: Vec<&str> = log.rows.iter().map(|row| &*row.id).collect();
    assert_eq!((ids, log.rows[1].n_workers), (vec!["4", "4#2"], Some(8)));
}

#[test]
fn odd_resources_are_read_or_refused_and_never_break_off() {
    let many =
        "1|ann|lab|1700000000|1700000000|1700000600|600|COMPLETED|1||gres/gpu:a=4294967295,gres/gpu:b=1|a\n";
    assert_eq!(only(&log(many)).n_workers, Some(u32::MAX));
    let tab = "1|ann|lab|1700000000|1700000000|1700000600|600|COMPLETED|1||gres/gpu:a\tb =2|a\n";
    assert_eq!(only(&log(tab)).worker_type.as_deref(), Some("a b"));
    let long = "1|ann|lab|1700000000|1700000000|1700000600|1e15|PREEMPTED|1||gres/gpu=1|a\n\
                1|ann|lab|1700000600|1700000700|1700000800|1e15|COMPLETED|1||gres/gpu=1|a\n";
    assert_eq!(only(&log(long)).ran_s, None);
}

#[test]
fn a_job_that_completed_is_not_requeued() {
    let log = log("\
6|ann|lab|1700000000|1700000010|1700000110|100|COMPLETED|1||gres/gpu=1|a
6|ann|lab|1700000200|1700000210|1700000310|100|COMPLETED|1||gres/gpu=1|a
");
    assert_eq!((log.rows.len(), log.n_merged, log.doubts[&Doubt::SameId].n), (2, 0, 1));
}
