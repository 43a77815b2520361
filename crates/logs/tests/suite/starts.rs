//! Numbers of starts of jobs: what logs say of them, and which rows are not taken as jobs that never started.

use std::io::Cursor;

use apportion_logs::read::read_log_from;
use apportion_logs::{Doubt, Form, ReadOptions, Reading, Reason, Row};

use super::missing::{read, reasons};

fn starts(log: &Reading) -> Vec<Option<u32>> {
    log.rows.iter().map(|row| row.n_attempts).collect()
}

fn ran(log: &Reading) -> Vec<Option<f64>> {
    log.rows.iter().map(|row| row.ran_s).collect()
}

/// Reasons for which rows become no jobs, each with the id of the first.
fn why(log: &Reading) -> Vec<(Reason, String)> {
    reasons(log, "")
}

#[test]
fn what_slurm_says_has_elapsed_is_taken_of_a_job_without_a_start() {
    let head = "JobID|Submit|Eligible|Start|End|ElapsedRaw|State|AllocTRES";
    let lines = "\
1|1700000000||Unknown|1700000500|300|COMPLETED|gres/gpu=1
2|1700000000||0|1700000500|300|FAILED|gres/gpu=1
3|1700000000||1700000100|Unknown|400|FAILED|gres/gpu=1
4|1700000000||Unknown|1700000500|0|CANCELLED|gres/gpu=1
5|1700000000||Unknown|1700000500|0|FAILED|gres/gpu=1
6|1700000000||0|1700000500|0|COMPLETED|gres/gpu=1
7|1700000000||Unknown|Unknown|0|PENDING|gres/gpu=1
8|1700000000||Unknown|Unknown|300|RUNNING|gres/gpu=1
9|1700000000||Unknown|1700000500||NODE_FAIL|gres/gpu=1
";
    let log = read(Form::Sacct, &format!("{head}\n{lines}"));
    let taken = [Some(300.0), Some(300.0), Some(400.0)];
    assert_eq!(ran(&log), [&taken[..], &[None; 6]].concat());
    let once = Some(1);
    assert_eq!(starts(&log), [once, once, once, Some(0), Some(0), None, Some(0), None, None]);
    assert_eq!((log.doubts[&Doubt::DurationAlone].n, log.doubts[&Doubt::DurationAlone].line), (3, 2));
    let expected = [(Reason::NotStarted, "4"), (Reason::NotEnded, "8"), (Reason::RunningTimeUnknown, "6")];
    assert_eq!(why(&log), expected.map(|(reason, id)| (reason, id.to_owned())));
}

#[test]
fn how_often_a_job_was_started_is_not_known_where_it_is_not_of_one_of_its_runs() {
    let head = "JobID|User|Account|Submit|Start|End|ElapsedRaw|State|AllocTRES|JobName";
    let attempts = "\
1|a|b|1700000000|1700000010|1700000610|600|PREEMPTED|gres/gpu=1|c
1|a|b|1700000610|Unknown|1700000900||COMPLETED|gres/gpu=1|c
";
    assert_eq!(starts(&read(Form::Sacct, &format!("{head}\n{attempts}"))), [None]);
    for (states, expected) in [
        (["COMPLETED", "CANCELLED"], None),
        (["CANCELLED", "COMPLETED"], None),
        (["CANCELLED", "CANCELLED"], Some(0)),
    ] {
        let line =
            |at: usize| format!("1+{at}|a|b|1700000000|Unknown|1700000900||{}|gres/gpu=1|c\n", states[at]);
        let log = read(Form::Sacct, &format!("{head}\n{}{}", line(0), line(1)));
        assert_eq!(starts(&log), [expected], "{states:?}");
    }
}

#[test]
fn tables_without_a_start_of_a_job_that_ended_do_not_say_that_it_never_started() {
    let head = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue";
    let line = |id: u32, state: &str, start: &str, end: &str| {
        format!("{id},a,v,1,8,1,{state},2020-04-01 00:00:00,{start},{end},,\n")
    };
    let end = "2020-04-01 01:00:00";
    let lines = [
        line(1, "COMPLETED", "", end),
        line(2, "FAILED", "1970-01-01 08:00:00", end),
        line(3, "CANCELLED", "1970-01-01 08:00:00", end),
        line(4, "FAILED", "", ""),
        line(5, "PENDING", "", ""),
        line(6, "RUNNING", "", ""),
    ];
    let text = format!("{head}\n{}", lines.concat());
    let zone = Some("Asia/Shanghai".parse().unwrap());
    let options = ReadOptions { zone, ..ReadOptions::new(Form::Helios) };
    let log = read_log_from("helios", Cursor::new(text), &options).unwrap();
    assert_eq!(starts(&log), [None, None, Some(0), Some(0), Some(0), None]);
    let expected = [(Reason::NotStarted, "3"), (Reason::NotEnded, "6"), (Reason::RunningTimeUnknown, "1")];
    assert_eq!(why(&log), expected.map(|(reason, id)| (reason, id.to_owned())));

    let head = "name,num_gpu,gpu_milli,pod_phase,creation_time,deletion_time,scheduled_time";
    let log = read(
        Form::Openb,
        &format!(
            "{head}\np,1,1000,Succeeded,1,500,\nq,1,1000,Failed,1,500,\nr,1,1000,Pending,1,500,\ns,1,1000,Running,1,,\n"
        ),
    );
    assert_eq!(starts(&log), [None, None, Some(0), None]);
    let expected = [(Reason::NotStarted, "r"), (Reason::NotEnded, "s"), (Reason::RunningTimeUnknown, "p")];
    assert_eq!(why(&log), expected.map(|(reason, id)| (reason, id.to_owned())));

    let head = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type";
    let lines = "a,t,1,Terminated,,900000,1,1,100,T4\nb,t,1,Failed,,900000,1,1,100,T4\nc,t,1,Waiting,,,1,1,100,T4\n\
                 d,t,1,Failed,,,1,1,100,T4\ne,t,1,Failed,800000,900000,1,1,,\n";
    let log = read(Form::Pai, &format!("{head}\n{lines}"));
    assert_eq!(starts(&log), [None, None, Some(0), Some(0), None]);

    let job = |id: &str, status: &str| {
        format!(
            r#"{{"jobid": "{id}", "status": "{status}", "submitted_time": "2017-10-02 08:00:00", "attempts": []}}"#
        )
    };
    let log =
        read(Form::Philly, &format!("[{},{},{}]", job("a", "Pass"), job("b", "Killed"), job("c", "Failed")));
    assert_eq!(starts(&log), [None, Some(0), Some(0)]);
}

#[test]
fn a_workload_that_was_evicted_has_run_as_often_as_is_not_known() {
    let condition = |kind: &str, status: &str, at: &str, reason: &str| {
        format!(
            r#"{{"type": "{kind}", "status": "{status}", "reason": "{reason}", "lastTransitionTime": "2025-06-01T{at}:00Z"}}"#
        )
    };
    let workload = |name: &str, spec: &str, conditions: &[String], more: &str| {
        format!(
            r#"{{"kind": "Workload", "metadata": {{"name": "{name}", "creationTimestamp": "2025-06-01T00:00:00Z"}},
            "spec": {{"podSets": []{spec}}}, "status": {{"conditions": [{}]{more}}}}}"#,
            conditions.join(",")
        )
    };
    let evicted = [
        condition("Admitted", "False", "00:30", "NoReservation"),
        condition("Evicted", "True", "00:30", "Preempted"),
    ];
    let readmitted = [
        condition("Evicted", "False", "00:40", "QuotaReserved"),
        condition("Admitted", "True", "00:40", "Admitted"),
        condition("Finished", "True", "01:10", "Succeeded"),
    ];
    let once = [readmitted[1].clone(), readmitted[2].clone()];
    let past = r#", "accumulatedPastExecutionTimeSeconds": 1200"#;
    let stopped = r#", "active": false"#;
    let workloads = [
        workload("waits", "", &evicted, ""),
        workload("past", "", &evicted, past),
        workload("stopped", stopped, &evicted, ""),
        workload("never", stopped, &evicted[1..], ""),
        workload("readmitted", "", &readmitted, past),
        workload("lost", "", &readmitted, ""),
        workload("once", "", &once, ""),
        workload("unseen", "", &readmitted[2..], ""),
        workload("new", "", &[], ""),
    ];
    let log = read(Form::Kueue, &format!(r#"{{"items": [{}]}}"#, workloads.join(",")));
    let expected = [None, None, None, Some(0), None, None, Some(1), None, Some(0)];
    assert_eq!(starts(&log), expected);
    let hour = 3600.0;
    assert_eq!(ran(&log)[4..7], [Some(1800.0 + 1200.0), Some(hour / 2.0), Some(hour / 2.0)]);
    // Jobs that wait again, were stopped as they waited again, or of which only the last run is kept.
    assert_eq!(log.doubts[&Doubt::RunsLost].n, 3);
    // Without this, the first reason would be that each asks for no accelerator.
    let mut log = log;
    log.rows = log.rows.iter().map(|row| Row { n_workers: Some(1), ..row }).collect();
    let expected =
        [(Reason::NotStarted, "never"), (Reason::NotEnded, "waits"), (Reason::RunningTimeUnknown, "stopped")];
    assert_eq!(why(&log), expected.map(|(reason, id)| (reason, id.to_owned())));
}

#[test]
fn a_normalized_log_without_numbers_of_starts_does_not_say_that_there_were_none() {
    let log = read(
        Form::Log,
        "id,submitted_s,ran_s,gpus,state,attempts\na,0,,1,pending,\nb,0,,1,pending,0\nc,0,,1,running,0\nd,0,,1,completed,0\n",
    );
    let expected = [(Reason::NotStarted, "b"), (Reason::NotEnded, "a"), (Reason::RunningTimeUnknown, "d")];
    assert_eq!(why(&log), expected.map(|(reason, id)| (reason, id.to_owned())));
}
