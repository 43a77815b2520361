//! Requests of Kueue's workloads: accelerators under many names, and names of other resources.

use std::io::Cursor;

use apportion_logs::read::read_log_from;
use apportion_logs::tally::Doubt;
use apportion_logs::write::write_log;
use apportion_logs::{Form, ReadOptions, Reading, State};

/// A log of workloads, each with a name, parts of its specification, and the requests of its container.
fn read(workloads: &[(&str, &str, &str)]) -> Reading {
    let each = workloads.iter().map(|(name, spec, resources)| {
        format!(
            r#"{{"kind": "Workload", "metadata": {{"name": "{name}", "creationTimestamp": "2026-05-04T08:00:00Z"}},
            "spec": {{"podSets": [{{"template": {{"spec": {{"containers": [{{"resources": {resources}}}]}}}}}}]{spec}}},
            "status": {{"conditions": [
                {{"type": "Admitted", "status": "True", "lastTransitionTime": "2026-05-04T08:10:00Z"}},
                {{"type": "Finished", "status": "True", "lastTransitionTime": "2026-05-04T09:10:00Z"}}]}}}}"#
        )
    });
    let text = format!(r#"{{"items": [{}]}}"#, each.collect::<Vec<_>>().join(","));
    read_log_from("kueue.json", Cursor::new(text), &ReadOptions::new(Form::Kueue)).unwrap()
}

#[test]
fn accelerators_in_units_that_are_not_understood_are_not_none() {
    for resources in [
        r#"{"requests": {"aliyun.com/gpu-mem": "8"}}"#,
        r#"{"limits": {"nvidia.com/gpumem": "4096", "nvidia.com/gpucores": "50"}}"#,
        r#"{"requests": {"aws.amazon.com/neuroncore": "4"}}"#,
        r#"{"requests": {"tencent.com/vcuda-core": 50}}"#,
        r#"{"requests": {"nvidia.com/gpu.shared": "4"}}"#,
        r#"{"requests": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096"}}"#,
        r#"{"requests": {"cpu": "4"}, "claims": [{"name": "gpu"}]}"#,
    ] {
        let log = read(&[("a", "", resources)]);
        assert_eq!((log.rows.len(), log.n_not_understood()), (0, 1), "{resources}");
        let said = &log.complaints[0].message;
        assert!(said.ends_with("the workload does not say"), "{resources}: {said}");
    }
    let none = r#"{"requests": {"cpu": "4", "memory": "1Gi", "nvidia.com/gpumem": "0"}, "claims": []}"#;
    let other = r#"{"requests": {"nvidia.com/gpu": "2", "example.com/license": "1", "rdma/hca": "1"}}"#;
    let log = read(&[("none", "", none), ("two", "", other), ("too", "", other)]);
    let n_workers: Vec<_> = log.rows.iter().map(|row| row.n_workers).collect();
    assert_eq!(n_workers, [Some(0), Some(2), Some(2)]);
    assert_eq!(log.unused_columns, ["resource example.com/license"]);
}

#[test]
fn names_of_blanks_are_none() {
    let resources = r#"{"requests": {"nvidia.com/gpu": "2"}}"#;
    for spec in [r#", "queueName": "\u00a0""#, r#", "priorityClassRef": {"name": "\u2003"}"#] {
        let log = read(&[("a ", spec, resources)]);
        assert_eq!((log.rows.at(0).id, log.rows.at(0).group, log.rows.at(0).class), ("a", None, None));
        write_log(&mut Vec::new(), &log.rows).unwrap();
    }
    let head = r#"{"items": [{"kind": "Workload", "metadata": {"name": "a", "namespace": " ", "ownerReferences": [{"name": " "}]}"#;
    let admitted = r#""resourceUsage": {"nvidia.com/gpu": "2"}}]}}}]}"#;
    for (flavors, expected) in [
        (r#"{"nvidia.com/gpu": " "}"#, None),
        (r#"{"nvidia.com/gpu": "\u0001"}"#, None),
        (r#"{"nvidia.com/gpu": "a100", "nvidia.com/mig-1g.5gb": " "}"#, Some("a100")),
    ] {
        let text = format!(
            r#"{head}, "spec": {{}}, "status": {{"admission": {{"podSetAssignments": [{{"flavors": {flavors}, {admitted}"#
        );
        let log = read_log_from("kueue.json", Cursor::new(text), &ReadOptions::new(Form::Kueue)).unwrap();
        let row = log.rows.at(0);
        assert_eq!((row.name, row.worker_type), (Some("a"), expected));
        write_log(&mut Vec::new(), &log.rows).unwrap();
    }
}

#[test]
fn parts_of_no_accelerator_are_none() {
    let head = "job_name,gpu_request,worker_num,submit_time,duration";
    let text = format!("{head}\n1,0.5,0,0,100\n2,0.5,1,0,100\n");
    let log = read_log_from("spot.csv", Cursor::new(text), &ReadOptions::new(Form::SpotGpu)).unwrap();
    let sizes: Vec<_> = log.rows.iter().map(|row| (row.n_workers, row.fraction)).collect();
    assert_eq!(sizes, [(Some(0), None), (Some(1), Some(0.5))]);
    write_log(&mut Vec::new(), &log.rows).unwrap();
}

/// The row of a workload with given conditions and other parts of its status, and how many runs were lost.
fn with_status(spec: &str, status: &str) -> (State, Option<f64>, Option<f64>, Option<u32>, u64) {
    let text = format!(
        r#"{{"items": [{{"kind": "Workload", "metadata": {{"name": "a", "creationTimestamp": "2024-06-04T07:00:00Z"}},
        "spec": {{"podSets": []{spec}}}, "status": {{{status}}}}}]}}"#
    );
    let log = read_log_from("kueue.json", Cursor::new(text), &ReadOptions::new(Form::Kueue)).unwrap();
    let row = log.rows.at(0);
    let n_lost = log.doubts.get(&Doubt::RunsLost).map_or(0, |tally| tally.n);
    (
        row.state,
        row.ended_s.zip(row.started_s).map(|(end, start)| end - start),
        row.ran_s,
        row.n_attempts,
        n_lost,
    )
}

#[test]
fn an_eviction_after_the_admission_ends_the_run() {
    let condition = |kind: &str, at: &str, reason: &str| {
        format!(
            r#"{{"type": "{kind}", "status": "True", "reason": "{reason}", "lastTransitionTime": "2024-06-{at}:06:00Z"}}"#
        )
    };
    let of = |evicted: &str, reason: &str| {
        format!(
            r#""conditions": [{}, {}]"#,
            condition("Admitted", "04T07", ""),
            condition("Evicted", evicted, reason)
        )
    };
    let ran = Some(72_000.0);
    let once = r#", "schedulingStats": {"evictions": [{"count": 1}]}"#;
    let thrice = r#", "schedulingStats": {"evictions": [{"count": 3}]}"#;
    let late = r#", "schedulingStats": {"evictions": [{"count": 1, "underlyingCause": "MaximumExecutionTimeExceeded"}]}"#;
    let past = r#", "accumulatedPastExecutionTimeSeconds": 100"#;
    let stopped = r#", "active": false"#;
    for (spec, status, expected) in [
        ("", of("05T03", "Preempted"), (State::Preempted, ran, ran, Some(1), 0)),
        ("", of("05T03", "NodeFailures"), (State::NodeFailure, ran, ran, Some(1), 0)),
        ("", of("05T03", "Preempted") + once, (State::Preempted, ran, ran, Some(1), 0)),
        ("", of("05T03", "Preempted") + thrice, (State::Preempted, ran, ran, Some(3), 1)),
        ("", of("05T03", "Preempted") + thrice + past, (State::Preempted, ran, Some(72_100.0), Some(3), 0)),
        // It was admitted again, and the number of earlier admissions is not known.
        ("", of("04T03", "Preempted"), (State::Running, None, None, None, 1)),
        ("", of("04T03", "Preempted") + once, (State::Running, None, None, Some(2), 1)),
        // It was stopped, and does not wait.
        (stopped, of("05T03", "Deactivated"), (State::Cancelled, ran, ran, Some(1), 0)),
        (stopped, of("05T03", "Deactivated") + late, (State::Timeout, ran, ran, Some(1), 0)),
    ] {
        assert_eq!(with_status(spec, &status), expected, "{spec} {status}");
    }
    // Nothing is known any more of the admission that it once had.
    let gone =
        r#""conditions": [{"type": "Admitted", "status": "False"}, {"type": "Evicted", "status": "True"}]"#;
    assert_eq!(with_status("", gone), (State::Pending, None, None, None, 1));
}

#[test]
fn a_part_of_several_accelerators_is_doubted() {
    let head = "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time";
    let text = format!("{head}\na,2,500,0,9,1\nb,1,500,0,9,1\nc,2,1000,0,9,1\nd,4,0,0,9,1\n");
    let log = read_log_from("openb.csv", Cursor::new(text), &ReadOptions::new(Form::Openb)).unwrap();
    let sizes: Vec<_> = log.rows.iter().map(|row| (row.n_workers, row.fraction)).collect();
    assert_eq!(sizes, [(Some(2), None), (Some(1), Some(0.5)), (Some(2), None), (Some(4), None)]);
    let tally = &log.doubts[&Doubt::PartOfSeveral];
    assert_eq!((tally.n, tally.line, tally.id.as_deref()), (2, 2, Some("a")));
}
