//! Files that are no log of the form that is asked for, cut off, or of a form that cannot be trusted.

use apportion_logs::{Form, ReadOptions, read_log};

use super::fixtures::fixture;

/// Message and help of the refusal.
fn said(file: &str, form: Form) -> String {
    let path = fixture(file).display().to_string();
    let error = read_log(&path, &ReadOptions::new(form)).expect_err(file);
    let only = &error.diagnostics[0];
    assert_eq!(only.source, path);
    format!("{}:{}: {}; {}", only.line, only.column, only.message, only.help.clone().unwrap_or_default())
}

#[test]
fn what_is_no_log_is_refused_with_its_place_and_what_is_expected() {
    for (file, form, expected) in [
        ("helios/no_gpu_num.csv", Form::Helios, "1:1: no column `gpu_num`"),
        ("helios/twice.csv", Form::Helios, "1:1: two columns `gpu_num`"),
        ("philly/truncated.json", Form::Philly, "the document ends inside its list: it is cut off"),
        ("sacct/no_header.txt", Form::Sacct, "sacct-command` prints the call"),
        ("sacct/fixed_width.txt", Form::Sacct, "sacct-command` prints the call"),
        ("kueue/single.json", Form::Kueue, "no JSON list of entries"),
        ("helios/cluster_log.csv", Form::Philly, "1:1: no JSON list of entries"),
        ("helios/cluster_log.csv", Form::Openb, "its columns are those of the form `helios`"),
        ("acme/trace_seren.csv", Form::SpotGpu, "its columns are those of the form `acme`"),
        ("refused/supercloud-slurm-log.csv", Form::Sacct, "of the form `supercloud`, which is not read"),
        ("refused/asi_opensource_pod_hourly.csv", Form::Openb, "of the form `gpu-2026`, which is not read"),
        ("refused/disaggregated_DLRM_trace.csv", Form::Dlrm, "`--force` reads it all the same"),
        ("refused/supercloud-slurm-log.csv", Form::SuperCloud, "no reader that could be trusted"),
    ] {
        let said = said(file, form);
        assert!(said.contains(expected), "{file} as {form:?}: {said}\nlacks {expected}");
    }
}

#[test]
fn entries_of_another_kind_are_no_workloads() {
    let path = fixture("kueue/pods.json").display().to_string();
    let log = read_log(&path, &ReadOptions::new(Form::Kueue)).unwrap();
    assert!(log.rows.is_empty() && log.n_not_understood() > 0);
    assert!(log.complaints[0].message.contains("expected a Workload"), "{:?}", log.complaints);
}

#[test]
fn services_are_read_where_they_are_asked_for() {
    let path = fixture("refused/disaggregated_DLRM_trace.csv").display().to_string();
    let log = read_log(&path, &ReadOptions { force: true, ..ReadOptions::new(Form::Dlrm) }).unwrap();
    assert_eq!(log.n_not_understood(), 0, "{:?}", log.complaints);
}
