//! Output of real Slurm versions for jobs that were requeued, joined from two calls, suspended or given nothing.

use std::collections::BTreeSet;
use std::io::Cursor;

use apportion_logs::read::read_log_from;
use apportion_logs::{Doubt, Form, ReadOptions, Reading, Reason, Seen, State};

const HEAD: &str = "JobID|User|Account|Submit|Start|End|ElapsedRaw|State|NNodes|ReqTRES|AllocTRES|JobName\n";

fn read(text: &str) -> Reading {
    let text = Cursor::new(text.to_owned());
    read_log_from("sacct.txt", text, &ReadOptions::new(Form::Sacct)).unwrap()
}

fn log(lines: &str) -> Reading {
    let log = read(&[HEAD, lines].concat());
    assert!(log.complaints.is_empty(), "{:?}", log.complaints);
    let n_left_out: u64 = log.left_out.values().map(|tally| tally.n).sum();
    assert_eq!(log.n_read, log.rows.len() as u64 + log.n_merged + n_left_out);
    log
}

fn only(log: &Reading) -> Seen<'_> {
    assert_eq!(log.rows.len(), 1, "{:?}", log.rows);
    log.rows.at(0)
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
    assert_eq!((row.n_workers, row.worker_type, row.ran_s), (Some(1), Some("t4"), Some(600.0)));
    let moved = log("\
8|ann|lab|1700000000|1700000010|1700000610|600|PREEMPTED|1||gres/gpu:a100=1,gres/gpu=1|a
8|ann|lab|1700000610|1700000620|1700000680|60|COMPLETED|1||gres/gpu:t4=1,gres/gpu=1|a
");
    assert_eq!((only(&moved).worker_type, only(&moved).ran_s), (None, Some(660.0)));
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
    assert_eq!((log.rows.at(3).n_workers, log.doubts[&Doubt::OnlyAsked].n), (Some(4), 1));
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
    let ids: Vec<&str> = log.rows.iter().map(|row| row.id).collect();
    assert_eq!((ids, log.rows.at(1).n_workers), (vec!["4", "4#2"], Some(8)));
}

#[test]
fn odd_resources_are_read_or_refused_and_never_break_off() {
    let many =
        "1|ann|lab|1700000000|1700000000|1700000600|600|COMPLETED|1||gres/gpu:a=4294967295,gres/gpu:b=1|a\n";
    let said = read(&[HEAD, many].concat()).complaints;
    assert!(said[0].message.contains("more than 4294967295 accelerators"), "{said:?}");
    let tab = "1|ann|lab|1700000000|1700000000|1700000600|600|COMPLETED|1||gres/gpu:a\tb =2|a\n";
    assert_eq!(only(&log(tab)).worker_type, Some("a b"));
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

#[test]
fn a_separator_in_a_text_shifts_no_column() {
    let line = "|1700000000|1700000010|1700000110|COMPLETED|gres/gpu=1";
    // Where only one column may hold the separator, the text is that column's, wherever it stands.
    for (head, line) in [
        ("JobID|JobName|Submit|Start|End|State|AllocTRES|", format!("1|a|b|c{line}|")),
        ("JobID|Submit|Start|End|State|AllocTRES|JobName", format!("1{line}|a|b|c")),
    ] {
        let log = read(&format!("{head}\n{line}\n"));
        assert_eq!((only(&log).name, only(&log).n_workers), (Some("a|b|c"), Some(1)));
    }
    for last in ["Constraints", "Comment"] {
        let log = read(&format!("JobID|JobName|Submit|Start|End|State|AllocTRES|{last}\n1|a|b{line}|x\n"));
        let expected = format!(
            "9 columns, expected 8: a text holds `|`, and of which column is not known: `JobName`, `{last}`"
        );
        let message = &log.complaints[0].message;
        assert!(log.rows.is_empty() && message.starts_with(&expected), "{message}");
    }
}

#[test]
fn an_id_that_looks_numbered_is_another_job() {
    let run = |id: &str, user: &str, submitted: u32| {
        format!(
            "{id}|{user}|lab|{submitted}|{}|{}|60|COMPLETED|1||gres/gpu=1|a\n",
            submitted + 10,
            submitted + 70
        )
    };
    // A run with the id of another user's, and one more under the id that the first was renamed to.
    let logs = [
        [run("k#2", "ann", 1_700_000_000), run("k", "ann", 1_700_000_000), run("k", "bob", 1_700_000_000)],
        [run("k", "ann", 1_700_000_000), run("k", "bob", 1_700_000_000), run("k#2", "bob", 1_700_000_000)],
        [run("k#1", "bob", 1_700_000_000), run("k", "ann", 1_700_000_000), run("k", "bob", 1_700_000_000)],
    ];
    for lines in logs {
        let log = log(&lines.concat());
        let ids: BTreeSet<&str> = log.rows.iter().map(|row| row.id).collect();
        assert_eq!((log.rows.len(), ids.len()), (3, 3), "{:?}", log.rows);
    }
    let lines = "k,9,1\nk,8,1\nk#2,8,1\nk#2,8,1\nk#2,7,1\nk,8,1\nk#1,9,1\n";
    let text = format!("id,ran_s,gpus\n{lines}");
    let log = read_log_from("log", Cursor::new(text), &ReadOptions::new(Form::Log)).unwrap();
    let ids: Vec<&str> = log.rows.iter().map(|row| row.id).collect();
    assert_eq!(ids, ["k", "k#2", "k#2#2", "k#2#3", "k#1"]);
    assert_eq!((log.left_out[&Reason::Repeated].n, log.doubts[&Doubt::SameId].n), (2, 3));
}

#[test]
fn a_job_of_components_ended_as_the_worst_of_them() {
    for (states, expected) in [
        (["COMPLETED", "FAILED"], State::Failed),
        (["FAILED", "COMPLETED"], State::Failed),
        (["CANCELLED", "NODE_FAIL"], State::NodeFailure),
        (["COMPLETED", "RUNNING"], State::Running),
        (["COMPLETED", "COMPLETED"], State::Completed),
    ] {
        let line = |at: usize, state: &str| {
            format!("3+{at}|ann|lab|1700000000|1700000010|1700000110|100|{state}|1||gres/gpu=1|a\n")
        };
        let log = log(&[line(0, states[0]), line(1, states[1])].concat());
        assert_eq!((only(&log).state, only(&log).n_workers), (expected, Some(2)), "{states:?}");
    }
}

#[test]
fn without_full_names_components_are_doubtful() {
    let line = "9|1700000000|1700000010|1700000110|COMPLETED|gres/gpu=1\n";
    let log = read(&format!("JobIDRaw|Submit|Start|End|State|AllocTRES\n{line}"));
    assert_eq!((log.rows.len(), log.doubts[&Doubt::NoJobId].n), (1, 1));
    let text = "Submit|Start|End|State|AllocTRES\n1700000000|||COMPLETED|\n";
    let error = read_log_from("sacct.txt", Cursor::new(text), &ReadOptions::new(Form::Sacct));
    assert!(error.expect_err("refused").to_string().contains("neither a column `JobID` nor `JobIDRaw`"));
}

#[test]
fn of_an_hour_that_comes_twice_the_one_is_taken_that_is_in_order() {
    // The clocks of this zone were set back at 3:00 on 2025-10-26.
    let options =
        ReadOptions { zone: Some("Europe/Berlin".parse().unwrap()), ..ReadOptions::new(Form::Sacct) };
    let times = |times: &str| {
        let text = format!("JobID|State|AllocTRES|Submit|Start|End\n1|COMPLETED|gres/gpu=1|{times}\n");
        let log = read_log_from("sacct.txt", Cursor::new(text), &options).unwrap();
        let row = log.rows.first()?;
        let [submitted, started, ended] = [row.submitted_s, row.started_s, row.ended_s].map(Option::unwrap);
        Some((started - submitted, ended - started, log.doubts[&Doubt::AmbiguousTimes].n))
    };
    let day = "2025-10-26T";
    assert_eq!(times(&format!("{day}02:10:00|{day}02:50:00|{day}02:20:00")), Some((2400.0, 1800.0, 3)));
    assert_eq!(times(&format!("{day}02:50:00|{day}02:10:00|{day}02:20:00")), Some((1200.0, 600.0, 3)));
    assert_eq!(times(&format!("{day}02:10:00|{day}02:20:00|{day}02:50:00")), Some((600.0, 1800.0, 3)));
    // Times that are in order by neither reading contradict one another.
    assert_eq!(times(&format!("{day}04:00:00|{day}02:00:00|{day}02:30:00")), None);
}

#[test]
fn what_sacct_says_of_an_error_is_no_part_of_a_row() {
    let lines = "\
1|ann|lab|1700000000|1700000010|1700000070|60|COMPLETED|1||gres/gpu=1|a
sacct: error: slurm_persist_conn_open: Something happened
2|ann|lab|1700000000|1700000010|1700000070|60|COMPLETED|1||gres/gpu=1|b
and more of b
slurmdbd: error: Problem getting jobs
";
    let log = read(&["sacct: error: early\n", HEAD, lines].concat());
    assert!(log.complaints.is_empty(), "{:?}", log.complaints);
    let names: Vec<_> = log.rows.iter().map(|row| row.name.unwrap()).collect();
    assert_eq!((names, log.n_read), (vec!["a", "b and more of b"], 2));
    assert_eq!((log.doubts[&Doubt::ErrorLine].n, log.doubts[&Doubt::ErrorLine].line), (3, 1));
}

#[test]
fn what_was_held_after_a_requeue_and_cancelled_did_not_start() {
    let head = HEAD.replace("Submit|", "Submit|Eligible|");
    let first =
        "7|ann|lab|1700000000|1700000000|1700000010|1700000610|600|REQUEUED|1|gres/gpu=1|gres/gpu=1|a\n";
    let held = "7|ann|lab|1700000610|1700000731|1700000700|1700000700|0|CANCELLED by 5|1|gres/gpu=1||a\n";
    let both = read(&[&head, first, held].concat());
    assert_eq!((only(&both).n_attempts, only(&both).ran_s), (Some(1), Some(600.0)));
    assert_eq!(only(&both).state, State::Cancelled);
    let alone = read(&[&*head, held].concat());
    assert_eq!((only(&alone).n_attempts, only(&alone).started_s, only(&alone).ran_s), (Some(0), None, None));
    let ended_at_once = held.replace("1700000731", "1700000690");
    assert_eq!(only(&read(&[&*head, &*ended_at_once].concat())).n_attempts, Some(1));
}
