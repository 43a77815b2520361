//! Logs and rules with one long list: if work were the product of two lists, these tests would take minutes.

use std::fmt::Write;
use std::io::Cursor;

use apportion::spec::Source;
use apportion::throughput::Throughputs;
use apportion_logs::nodes::{NodeForm, read_nodes_from};
use apportion_logs::read::read_log_from;
use apportion_logs::{Converter, Doubt, Form, ReadOptions, Reading, Rules};

/// Number of entries of each list.
const N: usize = 40_000;

fn read(form: Form, text: String) -> Reading {
    let log = read_log_from("log", Cursor::new(text), &ReadOptions::new(form)).unwrap();
    assert!(log.complaints.is_empty(), "{:?}", log.complaints);
    log
}

/// Texts of all numbers below [`N`], with a separator between them.
fn each(by: &str, text: impl Fn(usize) -> String) -> String {
    (0..N).map(text).collect::<Vec<_>>().join(by)
}

#[test]
fn alternatives_and_columns_may_be_many() {
    let head = "name,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,scheduled_time";
    let columns = each(",", |at| format!("c{at}"));
    let types = each("|", |at| format!("t{at}"));
    let log = read(Form::Openb, format!("{head},{columns}\np,1,1000,{types},0,9,1{}\n", ",".repeat(N)));
    assert_eq!(log.rows.at(0).worker_type, Some(types.as_str()));
    assert_eq!(log.unused_columns.len(), N);
}

#[test]
fn pod_sets_may_be_many() {
    let sets = each(",", |at| {
        format!(
            r#"{{"name":"s{at}","count":9,"template":{{"spec":{{"containers":[{{"resources":{{"limits":{{"amd.com/gpu":1}}}}}}]}}}}}}"#
        )
    });
    let admitted = each(",", |at| format!(r#"{{"name":"s{at}","count":2}}"#));
    let text = format!(
        r#"{{"items":[{{"kind":"Workload","metadata":{{"name":"w"}},"spec":{{"podSets":[{sets}]}},"status":{{"admission":{{"podSetAssignments":[{admitted}]}}}}}}]}}"#
    );
    assert_eq!(read(Form::Kueue, text).rows.at(0).n_workers, Some(80_000));
}

#[test]
fn worker_types_of_nodes_may_be_many() {
    let gres = each(",", |at| format!("gpu:t{at}:2"));
    let text = format!("NodeName=a State=IDLE Gres={gres}\n");
    let nodes = read_nodes_from("nodes", Cursor::new(text), NodeForm::Scontrol).unwrap();
    let cluster = nodes.cluster().unwrap();
    assert_eq!((cluster.n_types(), cluster.n_workers()), (N, 80_000));
    assert!(cluster.types().iter().all(|kind| kind.workers_per_server == 2));
}

#[test]
fn runs_of_one_job_may_be_many() {
    let mut text = "JobID|Submit|Start|End|ElapsedRaw|State|AllocTRES\n".to_owned();
    for at in 0..N {
        let start = 1_700_000_000 + 10 * at;
        writeln!(text, "5|1700000000|{start}|{}|5|PREEMPTED|gres/gpu:t{at}=1", start + 5).unwrap();
        writeln!(text, "5|1700000000|{start}|Unknown|5|RUNNING|gres/gpu:t{at}=1").unwrap();
    }
    let log = read(Form::Sacct, text);
    assert_eq!((log.rows.len(), log.rows.at(0).n_attempts), (1, u32::try_from(N).ok()));
    assert_eq!((log.doubts[&Doubt::SeveralTypes].n, log.rows.at(0).ran_s), (1, Some(200_000.0)));
}

#[test]
fn rules_that_name_what_they_are_about_may_be_many() {
    let rows = each("\n", |at| format!("j{at},u{at},{at},60,1"));
    let log = read(Form::Log, format!("id,user,submitted_s,ran_s,gpus\n{rows}\n"));
    let entries =
        each(",", |at| format!(r#"{{"when":{{"user":"U{at}"}},"draw":["A3C"],"weight":{}}}"#, at + 1));
    let rules = |entries: &str| {
        let text = format!(r#"{{"format":"apportion/log-rules-v1","job_types":[{entries}]}}"#);
        Source::new("rules.json", text)
    };
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let source = rules(&entries);
    let parsed = Rules::parse(&source).unwrap();
    let converter = Converter::new(&throughputs, (&parsed, &source), 0).unwrap();
    let converted = converter.convert(&log, None, None);
    let weights: Vec<f64> = converted.chosen.iter().map(|chosen| chosen.weight).collect();
    assert_eq!(weights, (1..=N).map(|weight| weight as f64).collect::<Vec<_>>());
    // A pattern has to be compared with each row, so their number is limited.
    let source = rules(&[r#"{"when":{"user":"u*"},"leave_out":true}"#; 1001].join(","));
    let parsed = Rules::parse(&source).unwrap();
    let said = Converter::new(&throughputs, (&parsed, &source), 0).expect_err("refused").to_string();
    assert!(said.contains("entry 1001 of `job_types` that only comparing tells"), "{said}");
}
