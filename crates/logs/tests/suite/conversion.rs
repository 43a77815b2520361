//! Rows as jobs: rules, windows, draws, and what is written.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use apportion::spec::{Source, TraceForm, TraceOrder, read_trace};
use apportion::throughput::Throughputs;
use apportion::units::Seconds;
use apportion_logs::read::read_log_from;
use apportion_logs::write::write_jobs;
use apportion_logs::{Converted, Converter, Doubt, Form, ReadOptions, Reading, Reason, Rules, Tally, Window};

const HEAD: &str =
    "id,name,user,group,submitted_s,started_s,ended_s,ran_s,gpus,gpu_fraction,gpu_type,state,class\n";

/// A normalized log with the given lines.
fn log(lines: &str) -> Reading {
    let text = format!("{HEAD}{lines}");
    let log = read_log_from("log.csv", Cursor::new(text), &ReadOptions::new(Form::Log)).unwrap();
    assert!(log.complaints.is_empty(), "{:?}", log.complaints);
    log
}

/// A log of `n` jobs of two users, an hour apart.
fn many(n: usize) -> Reading {
    let line = |at: usize| format!("{at},train,u{},g,{},,,7200,1,,,,\n", at % 2, 3600 * at);
    log(&(0..n).map(line).collect::<String>())
}

struct Made {
    /// Name, job type, scale factor, arrival and duration on the first worker type, s.
    jobs: Vec<(String, String, u32, f64, f64)>,
    converted: Converted,
}

fn convert(log: &Reading, rules: &str, window: Option<&str>) -> Made {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let source = Source::new("rules.yaml", format!("format: apportion/log-rules-v1\n{rules}"));
    let rules = Rules::parse(&source).unwrap_or_else(|error| panic!("{error}"));
    let converter =
        Converter::new(&throughputs, (&rules, &source), 1).unwrap_or_else(|error| panic!("{error}"));
    let window: Option<Window> = window.map(|text| text.parse().unwrap());
    let converted = converter.convert(log, window.as_ref(), None);
    let job = |chosen| {
        let traced = converter.job(log, chosen);
        let duration = traced.job.duration.map_or(0.0, Seconds::get);
        let job = traced.job;
        (traced.id, job.job_type, job.scale_factor, job.arrival.get(), duration)
    };
    Made { jobs: converted.chosen.iter().map(job).collect(), converted }
}

fn n_of(converted: &Converted, reason: Reason) -> u64 {
    converted.left_out.get(&reason).map_or(0, |tally| tally.n)
}

#[test]
fn every_row_becomes_a_job_or_is_counted_with_its_reason() {
    let log = log("\
a,,u,g,0,10,110,100,1,,,completed,
b,,u,g,5,,,,1,,,cancelled,
c,,u,g,5,10,,,1,,,running,
d,,u,g,5,10,10,0,1,,,failed,
e,,u,g,5,10,8,-2,1,,,failed,
f,,u,g,5,10,20,10,0,,,completed,
g,,u,g,5,10,20,10,,,,completed,
h,,u,g,,,,10,1,,,completed,
i,,u,g,60,70,90,20,3,,,failed,
");
    let Made { jobs, converted } = convert(&log, "", None);
    let brief: Vec<_> = jobs
        .iter()
        .map(|(id, _, size, arrival, duration)| (id.as_str(), *size, *arrival, duration.round()))
        .collect();
    assert_eq!(brief, [("a", 1, 0.0, 100.0), ("i", 4, 60.0, 20.0)]);
    let reasons = [
        Reason::NotEnded,
        Reason::RanForNothing,
        Reason::NoWorkers,
        Reason::WorkersUnknown,
        Reason::NoArrival,
    ];
    assert_eq!(reasons.map(|reason| n_of(&converted, reason)), [1; 5]);
    // A row that contradicts itself is left out by reading.
    assert_eq!(log.left_out[&Reason::Contradictory].n, 1);
    // Job `b` has no start and no known attempts.
    assert_eq!(n_of(&converted, Reason::RunningTimeUnknown), 1);
    assert_eq!(
        converted.left_out.values().map(|tally| tally.n).sum::<u64>() + jobs.len() as u64,
        log.rows.len() as u64
    );
}

#[test]
fn rules_say_which_job_types_stand_for_which_rows() {
    let log = log("\
a,bert-base,ann,g,0,,,3600,1,,A100,completed,HP
b,resnet,ann,g,1,,,3600,2,,V100,completed,Spot
c,resnet,bob,g,2,,,3600,2,0.5,V100,failed,Spot
d,other,bob,g,3,,,3600,1,,,cancelled,
e,other,bob,g,4,,,3600,64,,,completed,
");
    let rules = "\
states: {cancelled: leave_out}
fractions: each_whole
too_large: leave_out
entity: user
durations: [{gpu_type: 'V*', worker_type: k80}]
job_types:
  - {when: {name: 'bert*', class: hp}, draw: ['Transformer*'], weight: 3}
  - {when: {gpus_from: 2, gpus_to: 8}, draw: ['ResNet-50*']}
  - {draw: ['*']}
";
    let Made { jobs, converted } = convert(&log, rules, None);
    assert!(jobs[0].1.starts_with("Transformer") && jobs[1].1.starts_with("ResNet-50"), "{jobs:?}");
    assert_eq!(
        jobs.iter().map(|job| (job.0.as_str(), job.2)).collect::<Vec<_>>(),
        [("a", 1), ("b", 2), ("c", 2)]
    );
    assert_eq!((n_of(&converted, Reason::State), n_of(&converted, Reason::TooLarge)), (1, 1));
    // An hour on the slowest type is shorter on the first.
    assert!(jobs[1].4 < 3600.0 && (jobs[0].4 - 3600.0).abs() < 1e-6, "{jobs:?}");
    assert_eq!(converted.ran_on, [1, 0, 2]);
}

#[test]
fn a_class_that_names_a_job_type_is_it() {
    let log = log("a,,u,g,0,,,3600,1,,,completed,A3C\nb,,u,g,1,,,3600,1,,,completed,nothing\n");
    let Made { jobs, converted } = convert(&log, "job_types: [{named_by_class: true}]", None);
    assert_eq!(jobs.iter().map(|job| (job.0.as_str(), job.1.as_str())).collect::<Vec<_>>(), [("a", "A3C")]);
    assert_eq!(n_of(&converted, Reason::ClassUnknown), 1);
}

#[test]
fn draws_are_of_the_job_or_of_its_user_whatever_else_is_in_the_log() {
    let all = convert(&many(200), "", None);
    let types = |jobs: &[(String, String, u32, f64, f64)]| -> Vec<String> {
        jobs.iter().map(|job| job.1.clone()).collect()
    };
    let part = convert(&many(200), "", Some("50h..150h"));
    assert_eq!(types(&part.jobs), types(&all.jobs)[50..150]);
    assert_eq!((part.jobs[0].3, n_of(&part.converted, Reason::OutsideWindow)), (0.0, 100));
    let distinct = |jobs: &[(String, String, u32, f64, f64)]| {
        types(jobs).into_iter().collect::<std::collections::BTreeSet<_>>().len()
    };
    assert!(distinct(&all.jobs) > 15);
    let of_users = convert(&many(200), "draw_by: user", None);
    assert!(distinct(&of_users.jobs) <= 2);
}

#[test]
fn rules_that_make_no_sense_are_refused_with_their_place() {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    for (rules, expected) in [
        ("job_types: [{}]", "rules.yaml:2:13: expected one of `draw`"),
        ("job_types: [{draw: ['*'], weight: 0}]", "a weight out of range"),
        ("job_types: [{draw: ['*'], when: {gpus_from: 3, gpus_to: 2}}]", "no row has so few"),
        (
            "job_types: [{draw: ['Nothing*']}]",
            "rules.yaml:2:21: no job type of throughputs `osdi20` matches `Nothing*`",
        ),
        ("durations: [{gpu_type: '*', worker_type: v1000}]", "unknown worker type `v1000`"),
        ("fractions: up", "rules.yaml:2:12: unknown name `up`"),
        ("colour: red", "colour"),
    ] {
        let source = Source::new("rules.yaml", format!("format: apportion/log-rules-v1\n{rules}\n"));
        let said = match Rules::parse(&source) {
            Err(error) => error.to_string(),
            Ok(rules) => Converter::new(&throughputs, (&rules, &source), 0).expect_err("refused").to_string(),
        };
        assert!(said.contains(expected), "{said}\nlacks {expected}");
    }
}

#[test]
fn what_is_written_is_read_back_in_pieces() {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let log = many(25_000);
    let (rules, source) = Rules::embedded().unwrap();
    let converter = Converter::new(&throughputs, (&rules, &source), 0).unwrap();
    let converted = converter.convert(&log, None, None);
    for form in [TraceForm::Native, TraceForm::Gavel] {
        let mut text = Vec::new();
        write_jobs(&mut text, &converter, &log, &converted, form, &throughputs).unwrap();
        text.flush().unwrap();
        let source = Source::new("t", String::from_utf8(text).unwrap());
        let read = read_trace(&source, Some(&throughputs), TraceOrder::Refuse).unwrap();
        assert_eq!(read.jobs.len(), 25_000);
        if form == TraceForm::Native {
            assert_eq!(read.jobs[24_999].id, "24999");
        }
    }
}

#[test]
fn rows_that_are_no_jobs_are_counted_in_the_window_in_which_they_would_arrive() {
    let log = log("\
a,,u,g,0,0,100,100,1,,,completed,
b,,u,g,5,10,10,0,1,,,failed,
c,,u,g,10,,,20,0,,,completed,
d,,u,g,86400,86400,86400,0,1,,,failed,
e,,u,g,,,,10,1,,,completed,
f,,u,g,,,,10,0,,,completed,
");
    let counts = |rows: &BTreeMap<Reason, Tally>| -> Vec<_> {
        rows.iter().map(|(reason, rows)| (*reason, rows.n)).collect()
    };
    let undated = vec![(Reason::NoWorkers, 1), (Reason::NoArrival, 1)];
    let day = convert(&log, "", Some("0d..1d")).converted;
    assert_eq!(counts(&day.left_out_inside), [(Reason::NoWorkers, 1), (Reason::RanForNothing, 1)]);
    assert_eq!(counts(&day.left_out_undated), undated);
    let next = convert(&log, "", Some("1d..2d")).converted;
    assert_eq!(counts(&next.left_out_inside), [(Reason::RanForNothing, 1)]);
    let all = convert(&log, "", None).converted;
    assert_eq!(counts(&all.left_out_inside), [(Reason::NoWorkers, 1), (Reason::RanForNothing, 2)]);
    assert_eq!(counts(&all.left_out_undated), undated);
}

#[test]
fn a_window_that_no_clock_shows_holds_nothing() {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let (rules, source) = Rules::embedded().unwrap();
    let converter = Converter::new(&throughputs, (&rules, &source), 0).unwrap();
    let zone = "Asia/Shanghai".parse().unwrap();
    let window: Window = "9999-12-31..".parse().unwrap();
    let converted = converter.convert(&many(3), Some(&window), Some(&zone));
    assert_eq!((converted.chosen.len(), n_of(&converted, Reason::OutsideWindow)), (0, 3));
    for text in ["3d..1d", "2020-02-02..2020-02-01", "1d", "a..b"] {
        assert!(text.parse::<Window>().is_err(), "{text}");
    }
}

#[test]
fn parts_of_accelerators_are_rounded_up_and_a_start_at_0_long_before_the_end_is_none() {
    let log = log("a,,u,g,0,,,3600,3,0.5,,completed,\nb,,u,g,1,,,3600,4,0.25,,completed,\n");
    let Made { jobs, .. } = convert(&log, "", None);
    assert_eq!(jobs.iter().map(|job| job.2).collect::<Vec<_>>(), [2, 1]);
    let tasks = "j,worker,1.0,Terminated,0.0,1003700.0,600.0,10.0,100.0,T4\n";
    let log = read_log_from("tasks.csv", Cursor::new(tasks), &ReadOptions::new(Form::Pai)).unwrap();
    assert_eq!((log.rows.at(0).started_s, log.rows.at(0).ran_s), (None, None));
}

#[test]
fn which_time_stands_for_an_arrival_is_said() {
    let text = "\
id,submitted_s,eligible_s,started_s,ran_s,gpus
a,0,10,20,60,1
b,,10,20,60,1
c,,,20,60,1
";
    let log = read_log_from("log", Cursor::new(text), &ReadOptions::new(Form::Log)).unwrap();
    for (rule, arrivals, expected) in [
        (
            "submitted",
            [0.0, 10.0, 20.0],
            &[(Doubt::NoSubmission, "c"), (Doubt::NoSubmissionButEligible, "b")][..],
        ),
        ("eligible", [0.0, 0.0, 10.0], &[(Doubt::NoEligible, "c")]),
        ("started", [0.0, 0.0, 0.0], &[]),
    ] {
        let Made { jobs, converted } = convert(&log, &format!("arrival: {rule}"), None);
        assert_eq!(jobs.iter().map(|job| job.3).collect::<Vec<_>>(), arrivals, "{rule}");
        let doubts =
            converted.doubts.iter().map(|(doubt, tally)| (*doubt, tally.id.as_deref().unwrap_or_default()));
        assert_eq!(doubts.collect::<Vec<_>>(), expected, "{rule}");
    }
}

#[test]
fn more_accelerators_than_can_be_counted_are_not_understood() {
    let set =
        r#"{"count":4294967295,"template":{"spec":{"containers":[{"resources":{"limits":{"a/gpu":2}}}]}}}"#;
    let workload = format!(r#"{{"kind":"Workload","metadata":{{"name":"w"}},"spec":{{"podSets":[{set}]}}}}"#);
    for (form, text) in [
        (Form::SpotGpu, "job_name,gpu_request,worker_num,submit_time,duration\na,1e15,1,0,60\n".to_owned()),
        (
            Form::SpotGpu,
            "job_name,gpu_request,worker_num,submit_time,duration\na,2,4294967295,0,60\n".to_owned(),
        ),
        (Form::Pai, "j,worker,1,Terminated,1,61,600,10,1e15,T4\n".to_owned()),
        (Form::Kueue, format!(r#"{{"items":[{workload}]}}"#)),
    ] {
        let log = read_log_from("log", Cursor::new(text), &ReadOptions::new(form)).unwrap();
        let message = &log.complaints[0].message;
        assert!(log.rows.is_empty() && message.contains("more than 4294967295 accelerators"), "{message}");
    }
    let text = "id,ran_s,gpus,gpu_fraction\na,60,0,0.5\n";
    let log = read_log_from("log", Cursor::new(text), &ReadOptions::new(Form::Log)).unwrap();
    assert!(log.complaints[0].message.contains("a part of 0 accelerators"), "{:?}", log.complaints);
}
