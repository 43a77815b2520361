//! Times of all forms: contradictory ones, times that were never set, and unknown ends.

use std::io::Cursor;

use apportion_logs::read::read_log_from;
use apportion_logs::tally::{Doubt, Reason};
use apportion_logs::{Form, ReadOptions, Reading, State};
use proptest::prelude::*;
use proptest::{collection, option, sample};

fn read(form: Form, text: impl Into<String>) -> Reading {
    let options = ReadOptions { force: form == Form::Dlrm, ..ReadOptions::new(form) };
    let log = read_log_from("log", Cursor::new(text.into()), &options).unwrap();
    let n_left_out: u64 = log.left_out.values().map(|tally| tally.n).sum();
    assert_eq!(log.n_read, log.rows.len() as u64 + log.n_merged + n_left_out, "every row is accounted for");
    log
}

fn n_doubts(log: &Reading, doubt: Doubt) -> u64 {
    log.doubts.get(&doubt).map_or(0, |tally| tally.n)
}

/// Submission, start, end and duration, s, of an invented job.
type Invented = (Option<i64>, Option<i64>, Option<i64>, Option<i64>);

/// A time as seconds since 2023-01-02, or nothing.
fn plain(time: Option<i64>) -> String {
    time.map_or_else(String::new, |time| (1_672_617_600 + time).to_string())
}

/// A small number, or nothing.
fn small(time: Option<i64>) -> String {
    time.map_or_else(String::new, |time| time.to_string())
}

/// The log of invented jobs in a form. Every other row is of the same job as the one before it where a form has such rows.
fn log_of(form: Form, jobs: &[Invented]) -> String {
    let lines = |head: &str, line: &dyn Fn(usize, &Invented) -> String| {
        let each = jobs.iter().enumerate().map(|(at, job)| line(at, job));
        format!("{head}\n{}\n", each.collect::<Vec<_>>().join("\n"))
    };
    match form {
        Form::Helios | Form::Acme => {
            lines("job_id,gpu_num,submit_time,start_time,end_time,duration,state", &|at, (a, b, c, d)| {
                format!("{at},1,{},{},{},{},COMPLETED", plain(*a), plain(*b), plain(*c), small(*d))
            })
        }
        Form::Sacct => lines("JobID|Submit|Start|End|Elapsed|State|AllocTRES", &|at, (a, b, c, d)| {
            let id = if at % 3 == 0 { format!("{}+0", at / 2) } else { (at / 2).to_string() };
            let elapsed = small(d.filter(|elapsed| *elapsed >= 0));
            format!("{id}|{}|{}|{}|{elapsed}|FAILED|gres/gpu=1", plain(*a), plain(*b), plain(*c))
        }),
        Form::Pai => {
            lines("job_name,inst_num,status,start_time,end_time,plan_gpu,gpu_type", &|at, (_, b, c, _)| {
                let [b, c] = [b, c].map(|time| small(time.map(|time| 500_000 + time)));
                format!("j{},1,Terminated,{b},{c},100,", at / 2)
            })
        }
        Form::SpotGpu => {
            lines("job_name,gpu_request,worker_num,submit_time,duration", &|at, (a, _, _, d)| {
                format!("{at},1,1,{},{}", small(*a), small(*d))
            })
        }
        Form::Openb => {
            lines("name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time", &|at, (a, b, c, _)| {
                let [a, b, c] = [a, b, c].map(|time| small(time.map(|time| 500_000 + time)));
                format!("{at},1,1000,{a},{c},{b}")
            })
        }
        Form::Dlrm => lines(
            "instance_sn,gpu_request,creation_time,scheduled_time,deletion_time",
            &|at, (a, b, c, _)| {
                let [a, b, c] = [a, b, c].map(|time| small(time.map(|time| 500_000 + time)));
                format!("{at},1,{a},{b},{c}")
            },
        ),
        Form::Philly | Form::Kueue => document_of(form, jobs),
        _ => lines("id,submitted_s,started_s,ended_s,ran_s,gpus", &|at, (a, b, c, d)| {
            format!("{at},{},{},{},{},1", plain(*a), plain(*b), plain(*c), small(*d))
        }),
    }
}

/// The invented jobs as a JSON document of a form.
fn document_of(form: Form, jobs: &[Invented]) -> String {
    let json = |line: &dyn Fn(usize, &Invented) -> String| {
        jobs.iter().enumerate().map(|(at, job)| line(at, job)).collect::<Vec<_>>().join(",")
    };
    let stamp = |kind: &str, time: Option<i64>| {
        let text = plain(time);
        let status = if time.is_some() { "True" } else { "False" };
        format!(r#"{{"type": "{kind}", "status": "{status}", "lastTransitionTime": "{text}"}}"#)
    };
    match form {
        Form::Philly => format!(
            "[{}]",
            json(&|at, (a, b, c, d)| format!(
                r#"{{"jobid": "{at}", "status": "Killed", "submitted_time": "{}", "attempts": [
                    {{"start_time": "{}", "end_time": "{}", "detail": [{{"ip": "m", "gpus": ["g"]}}]}},
                    {{"start_time": "{}", "end_time": "{}", "detail": []}}]}}"#,
                plain(*a),
                plain(*b),
                plain(*c),
                plain(*c),
                plain(*d)
            ))
        ),
        _ => format!(
            r#"{{"items": [{}]}}"#,
            json(&|at, (a, b, c, d)| format!(
                r#"{{"kind": "Workload", "metadata": {{"name": "{at}", "creationTimestamp": "{}"}},
                "spec": {{"podSets": [], "active": {}}}, "status": {{"conditions": [{}, {}, {}]}}}}"#,
                plain(*a),
                at % 2 == 0,
                stamp("Admitted", *b),
                stamp("Finished", *c),
                stamp("Evicted", *d)
            ))
        ),
    }
}

const FORMS: [Form; 10] = [
    Form::Log,
    Form::Sacct,
    Form::Philly,
    Form::Helios,
    Form::Pai,
    Form::Acme,
    Form::SpotGpu,
    Form::Openb,
    Form::Kueue,
    Form::Dlrm,
];

fn invented() -> impl Strategy<Value = Vec<Invented>> {
    let time = || option::weighted(0.8, sample::select(vec![-5000_i64, -1, 0, 1, 2, 600, 601, 7200]));
    collection::vec((time(), time(), time(), time()), 1..8)
}

proptest! {
    #[test]
    fn no_row_of_any_form_has_a_time_below_none(jobs in invented()) {
        for form in FORMS {
            let log = read(form, log_of(form, &jobs));
            prop_assert!(form == Form::Sacct || log.complaints.is_empty(), "{form:?}: {:?}", log.complaints);
            for row in log.rows.iter() {
                let is_after = |one: Option<f64>, other: Option<f64>| {
                    one.zip(other).is_none_or(|(one, other)| one >= other)
                };
                prop_assert!(is_after(row.ran_s, Some(0.0)), "{form:?}: {row:?}");
                prop_assert!(is_after(row.started_s, row.submitted_s), "{form:?}: {row:?}");
                prop_assert!(is_after(row.ended_s, row.started_s), "{form:?}: {row:?}");
                prop_assert!(is_after(row.ended_s, row.submitted_s), "{form:?}: {row:?}");
            }
        }
    }
}

#[test]
fn rows_that_end_before_they_start_are_left_out_in_every_form() {
    let good = (Some(0), Some(10), Some(20), Some(30));
    for form in FORMS {
        let bad = match form {
            Form::SpotGpu => (Some(0), None, None, Some(-600)),
            _ => (Some(0), Some(900), Some(300), Some(300)),
        };
        let log = read(form, log_of(form, &[good, good, bad, bad]));
        let tally = &log.left_out[&Reason::Contradictory];
        assert!((1..=2).contains(&tally.n) && tally.line > 0 && tally.id.is_some(), "{form:?}: {tally:?}");
        assert!(log.rows.iter().all(|row| row.ran_s.is_none_or(|ran| ran > 0.0)), "{form:?}");
    }
}

#[test]
fn a_job_of_which_a_part_contradicts_itself_is_left_out() {
    // The other task, or the other run, would hide the contradiction.
    let pai =
        "job_name,inst_num,start_time,end_time,plan_gpu\nj,1,494919,494319,100\nj,1,494000,496000,100\n";
    let sacct = "JobID|User|Submit|Start|End|State|AllocTRES\n\
        7|ann|2026-03-01T08:00:00Z|2026-03-01T08:05:00Z|2026-03-01T08:01:00Z|NODE_FAIL|gres/gpu=1\n\
        7|ann|2026-03-01T08:02:00Z|2026-03-01T08:05:00Z|2026-03-01T10:00:00Z|COMPLETED|gres/gpu=1\n";
    for (form, text) in [(Form::Pai, pai), (Form::Sacct, sacct)] {
        let log = read(form, text);
        assert_eq!((log.rows.len(), log.n_merged), (0, 1), "{form:?}: {:?}", log.rows);
        assert_eq!(log.left_out[&Reason::Contradictory].n, 1, "{form:?}");
    }
}

#[test]
fn times_out_of_order_by_a_second_are_put_in_order() {
    let log = read(Form::Log, "id,submitted_s,started_s,ended_s,ran_s,gpus\na,100,99.5,99.2,-0.3,1\n");
    let row = log.rows.at(0);
    assert_eq!((row.started_s, row.ended_s, row.ran_s), (Some(100.0), Some(100.0), Some(0.0)));
    assert_eq!(n_doubts(&log, Doubt::OutOfOrder), 1);
}

#[test]
fn the_zero_of_time_is_no_time_where_others_are_years_later() {
    let helios = "job_id,gpu_num,submit_time,start_time,end_time,duration\n\
        1,1,2023-06-01 10:00:00,2023-06-01 10:01:00,2023-06-01 11:00:00,3540\n\
        2,1,1970-01-01 00:00:00,2023-06-01 10:01:00,2023-06-01 11:00:00,3540\n\
        3,1,2023-06-01 10:00:00,1970-01-01 08:00:00,2023-06-01 11:00:00,3000\n";
    let sacct = "JobID|Submit|Start|End|State|AllocTRES\n\
        1|1685613600|1685613660|1685617200|COMPLETED|gres/gpu=1\n\
        2|0|1685613660|1685617200|COMPLETED|gres/gpu=1\n\
        3|1685613600|1969-12-31T19:00:00|1685617200|COMPLETED|gres/gpu=1\n";
    let philly = r#"[{"jobid": "1", "submitted_time": "2017-10-07 01:12:09", "attempts": []},
        {"jobid": "2", "submitted_time": "1970-01-01 00:00:00", "attempts": [{"start_time": "1970-01-01 01:00:00"}]}]"#;
    let kueue = r#"{"items": [{"kind": "Workload", "metadata": {"name": "2", "creationTimestamp": "0001-01-01T00:00:00Z"},
        "spec": {}, "status": {"conditions": [
        {"type": "Admitted", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}]}}]}"#;
    let log = "id,submitted_s,started_s,ended_s,ran_s,gpus\n1,1685613600,1685613660,1685617200,3540,1\n\
        2,0,1685613660,1685617200,3540,1\n3,1685613600,-3600,1685617200,3000,1\n";
    for (form, text, n) in [
        (Form::Helios, helios, 2),
        (Form::Acme, helios, 2),
        (Form::Sacct, sacct, 2),
        (Form::Philly, philly, 2),
        (Form::Kueue, kueue, 2),
        (Form::Log, log, 2),
    ] {
        let log = read(form, text);
        assert_eq!(n_doubts(&log, Doubt::ZeroTimes), n, "{form:?}: {:?}", log.complaints);
        let second = log.rows.iter().find(|row| row.id.ends_with('2')).unwrap();
        assert_eq!(second.submitted_s, None, "{form:?}");
        if let Some(third) = log.rows.iter().find(|row| row.id == "3") {
            assert_eq!(third.started_s, None, "{form:?}");
            // The running time is the log's duration where there is one, and never the time since 1970.
            assert!(third.ran_s.is_none_or(|ran| (ran - 3000.0).abs() < 1.0), "{form:?}: {third:?}");
        }
    }
}

#[test]
fn times_of_logs_that_count_from_0_may_be_0() {
    let spot = "job_name,gpu_request,worker_num,submit_time,duration\na,1,1,0,100\n";
    let openb = "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\na,1,1000,0,100,0\n";
    let log = "id,submitted_s,ran_s,gpus\na,0,100,1\nb,900,100,1\nc,86400,5,1\n";
    for (form, text) in [(Form::SpotGpu, spot), (Form::Openb, openb), (Form::Log, log)] {
        let log = read(form, text);
        assert_eq!(
            (log.rows.at(0).submitted_s, n_doubts(&log, Doubt::ZeroTimes)),
            (Some(0.0), 0),
            "{form:?}"
        );
    }
}

#[test]
fn what_has_ended_by_its_state_does_not_run() {
    let job = |status: &str| {
        let attempt = r#"{"start_time": "2017-10-07 01:20:00", "end_time": "None", "detail": [{"ip": "m", "gpus": ["g"]}]}"#;
        let text = format!(
            r#"[{{"jobid": "a", {status}"submitted_time": "2017-10-07 01:12:09", "attempts": [{attempt}]}}]"#
        );
        let log = read(Form::Philly, text);
        assert_eq!((log.rows.at(0).ended_s, log.rows.at(0).ran_s), (None, None));
        (log.rows.at(0).state, n_doubts(&log, Doubt::EndUnknown))
    };
    assert_eq!(job(r#""status": "Killed", "#), (State::Cancelled, 1));
    assert_eq!(job(r#""status": "Failed", "#), (State::Failed, 1));
    assert_eq!(job(r#""status": "Pass", "#), (State::Completed, 1));
    assert_eq!(job(r#""status": "None", "#), (State::Running, 0));
    assert_eq!(job(""), (State::Running, 0));
    let helios = "job_id,gpu_num,submit_time,start_time,end_time,state\n\
        1,1,2023-06-01 10:00:00,2023-06-01 10:01:00,,COMPLETED\n";
    assert_eq!(n_doubts(&read(Form::Helios, helios), Doubt::EndUnknown), 1);
}

#[test]
fn dates_that_there_are_not_are_named_so() {
    let head = "job_id,gpu_num,submit_time\n1,1";
    for (date, expected) in [
        ("2023-02-29 00:00:00", "expected a day that there is: its month is shorter"),
        ("31/12/2023 00:00:00", "expected a date with the year first, such as 2017-10-07 01:12:09"),
        ("noon", "expected a date and time such as 2017-10-07 01:12:09"),
    ] {
        let log = read(Form::Helios, format!("{head},{date}\n"));
        assert_eq!(log.complaints[0].message, format!("submit_time is `{date}`, {expected}"));
        let log =
            read(Form::Philly, format!(r#"[{{"jobid": "a", "submitted_time": "{date}", "attempts": []}}]"#));
        assert_eq!(log.complaints[0].message, format!("submitted_time is `{date}`, {expected}"));
    }
}
