//! Values that logs lack: starts, ends, accelerators, attempts that never were.

use std::io::Cursor;

use apportion::spec::Source;
use apportion::throughput::Throughputs;
use apportion_logs::read::read_log_from;
use apportion_logs::{Converter, Doubt, Form, ReadOptions, Reading, Reason, Rules};

pub(super) fn read(form: Form, text: &str) -> Reading {
    let options = ReadOptions { force: true, ..ReadOptions::new(form) };
    let log = read_log_from("log", Cursor::new(text.to_owned()), &options).unwrap();
    assert!(log.complaints.is_empty(), "{:?}", log.complaints);
    log
}

/// The reasons for which rows of a log become no jobs by some rules, each with the id of the first.
pub(super) fn reasons(log: &Reading, rules: &str) -> Vec<(Reason, String)> {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let source = Source::new("rules.yaml", format!("format: apportion/log-rules-v1\n{rules}"));
    let rules = Rules::parse(&source).unwrap();
    let converter = Converter::new(&throughputs, (&rules, &source), 0).unwrap();
    let left_out = converter.convert(log, None, None).left_out;
    left_out.into_iter().map(|(reason, tally)| (reason, tally.id.unwrap_or_default())).collect()
}

#[test]
fn attempts_that_never_started_are_none_and_lists_of_no_server_are_not_0_accelerators() {
    let times = r#""start_time": "2017-10-02 08:00:40", "end_time": "2017-10-02 09:00:40""#;
    let none = r#"{"start_time": null, "end_time": null, "detail": []}"#.to_owned();
    let told = format!(r#"{{{times}, "detail": [{{"ip": "m1", "gpus": ["gpu0"]}}]}}"#);
    let untold = format!(r#"{{{times}, "detail": []}}"#);
    let job = |id: &str, status: &str, attempts: &[&String]| {
        let attempts: Vec<&str> = attempts.iter().map(|attempt| attempt.as_str()).collect();
        let attempts = attempts.join(",");
        format!(
            r#"{{"jobid": "{id}", "status": "{status}", "submitted_time": "2017-10-02 08:00:00", "attempts": [{attempts}]}}"#
        )
    };
    let jobs = [
        job("a", "Killed", &[&none]),
        job("b", "Killed", &[&none, &none]),
        job("c", "Pass", &[&untold]),
        job("d", "Pass", &[&told, &none]),
    ];
    let log = read(Form::Philly, &format!("[{}]", jobs.join(",")));
    let rows: Vec<_> = log.rows.iter().map(|row| (row.n_attempts, row.n_workers, row.ran_s)).collect();
    let hour = Some(3600.0);
    assert_eq!(
        rows,
        [(Some(0), None, None), (Some(0), None, None), (Some(1), None, hour), (Some(1), Some(1), hour)]
    );
    let expected = [(Reason::WorkersUnknown, "c".to_owned()), (Reason::NotStarted, "a".to_owned())];
    assert_eq!(reasons(&log, ""), expected);
}

#[test]
fn a_duration_is_taken_where_a_start_or_an_end_is_missing_unless_it_is_a_wait() {
    let head = "job_id,gpu_num,state,submit_time,start_time,end_time,duration";
    let lines = "\
a,1,COMPLETED,2020-04-02T00:00:00Z,,2020-04-02T02:00:00Z,1800
b,1,FAILED,2020-04-02T00:00:00Z,2020-04-02T00:10:00Z,,1800
c,1,CANCELLED,2020-04-02T00:00:00Z,,2020-04-02T02:00:00Z,1800
d,1,FAILED,2020-04-02T00:00:00Z,,2020-04-02T02:00:00Z,7200
e,1,RUNNING,2020-04-02T00:00:00Z,2020-04-02T00:10:00Z,,1800
f,1,FAILED,2020-04-02T00:00:00Z,,2020-04-02T02:00:00Z,0
";
    for form in [Form::Helios, Form::Acme] {
        let log = read(form, &format!("{head}\n{lines}"));
        let ran: Vec<_> = log.rows.iter().map(|row| row.ran_s).collect();
        assert_eq!(ran, [Some(1800.0), Some(1800.0), None, None, None, None]);
        let attempts: Vec<_> = log.rows.iter().map(|row| row.n_attempts).collect();
        assert_eq!(attempts, [Some(1), Some(1), Some(0), None, Some(1), Some(0)]);
        assert_eq!(log.doubts[&Doubt::DurationAlone].n, 2);
        let expected =
            [(Reason::NotStarted, "c"), (Reason::NotEnded, "e"), (Reason::RunningTimeUnknown, "d")];
        assert_eq!(reasons(&log, ""), expected.map(|(reason, id)| (reason, id.to_owned())));
    }
}

#[test]
fn times_outside_of_a_log_are_not_of_jobs_that_never_started() {
    let head = "instance_sn,gpu_request,creation_time,scheduled_time,deletion_time";
    let log =
        read(Form::Dlrm, &format!("{head}\na,1,NaN,NaN,500\nb,1,100,110,NaN\nc,1,NaN,NaN,NaN\nd,1,1,2,3\n"));
    let expected = [(Reason::NotEnded, "b".to_owned()), (Reason::RunningTimeUnknown, "a".to_owned())];
    assert_eq!(reasons(&log, ""), expected);
}

#[test]
fn a_class_that_names_no_job_type_is_the_reason() {
    let log = read(Form::Log, "id,submitted_s,ran_s,gpus,class\na,0,10,1,Bert\nb,0,10,1,\nc,0,10,1,A3C\n");
    let expected = [(Reason::ClassUnknown, "a".to_owned())];
    assert_eq!(reasons(&log, "job_types: [{named_by_class: true}]"), expected);
}

#[test]
fn what_is_no_name_of_an_accelerator_is_not_counted_as_one() {
    let job = |gpus: &str| {
        let times = r#""start_time": "2017-10-03 01:00:00", "end_time": "2017-10-03 02:00:00""#;
        let text = format!(
            r#"[{{"jobid": "a", "submitted_time": "2017-10-03 00:00:00", "status": "Pass",
            "attempts": [{{{times}, "detail": [{{"ip": "m1", "gpus": [{gpus}]}}]}}]}}]"#
        );
        read_log_from("log", Cursor::new(text), &ReadOptions::new(Form::Philly)).unwrap()
    };
    for wrong in ["null", "{\"x\":1}", "\"\"", "\" \"", "7", "\"None\""] {
        let log = job(&format!("\"g0\", {wrong}"));
        assert_eq!((log.rows.len(), log.n_not_understood()), (0, 1), "{wrong}");
        assert!(log.complaints[0].message.starts_with("gpus "), "{:?}", log.complaints);
        assert_eq!(log.complaints[0].excerpt.chars().nth(log.complaints[0].column - 1), wrong.chars().next());
    }
    let log = job("\"g0\", \"g1\"");
    assert_eq!((log.rows.at(0).n_workers, log.doubts.get(&Doubt::NamedTwice)), (Some(2), None));
    let log = job("\"g0\", \"g0\"");
    assert_eq!((log.rows.at(0).n_workers, log.doubts[&Doubt::NamedTwice].n), (Some(2), 1));
}
