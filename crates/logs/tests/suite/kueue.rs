//! What workloads of Kueue ask for: accelerators under many names, and names that are none.

use std::io::Cursor;

use apportion_logs::read::read_log_from;
use apportion_logs::write::write_log;
use apportion_logs::{Form, ReadOptions, Reading};

/// The log of workloads, each of a name, parts of its specification, and what its container asks for.
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
        assert_eq!((&*log.rows[0].id, &log.rows[0].group, &log.rows[0].class), ("a", &None, &None));
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
        let row = &log.rows[0];
        assert_eq!((row.name.as_deref(), row.worker_type.as_deref()), (Some("a"), expected));
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
