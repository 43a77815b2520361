//! Places of what is wrong with a policy, and jobs without time in its answers.

use std::fs;

use super::sweep::{apportion, complaint};
use tempfile::TempDir;

/// What a policy's text has wrong is pointed at in its file, also what only a snapshot shows to be wrong.
#[test]
fn faults_of_a_policy_s_text_are_shown_at_their_place() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("s.yaml"),
        "format: apportion/snapshot-v1\ncluster: {a: 1}\nentities: [{id: lab}]\njobs:\n  - {id: x, steps_remaining: 1, throughput: {a: 1}, entity: lab}\n",
    )
    .unwrap();
    let constraint = |row: &str| format!("maximize: sum_over_jobs(throughput)\nconstraints:\n  - {row}\n");
    for (text, expected, place) in [
        (
            "maximize: min_over_jobs(throughput / isolated_throughput)\nhierarchical: true\n".to_owned(),
            "a hierarchical policy needs",
            "p.yaml:6:15",
        ),
        (
            constraint("sum_over_jobs(owned_by(\"labb\") * time_on(a)) <= 1"),
            "names the owner `labb`",
            "p.yaml:7:29",
        ),
        (constraint("sum_over_jobs(time_on(b)) <= 1"), "the worker type that", "p.yaml:7:27"),
    ] {
        fs::write(
            folder.path().join("p.yaml"),
            format!("format: apportion/policy-v1\nname: p\nsummary: s\nkind: program\n{text}"),
        )
        .unwrap();
        let said = complaint(folder.path(), &["allocate", "--policy", "p.yaml", "s.yaml"]);
        assert!(said.contains(expected) && said.contains(place), "{said}");
    }
}

/// In CSV every job of the snapshot has a row, also one without time.
#[test]
fn jobs_without_time_have_rows_of_zeros() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("s.yaml"),
        "format: apportion/snapshot-v1\ncluster: {a: 1}\njobs:\n  - {id: x, steps_remaining: 1, throughput: {a: 1}}\n  - {id: y, steps_remaining: 1, throughput: {a: 3}}\n",
    )
    .unwrap();
    let mut command =
        apportion(folder.path(), &["--format", "csv", "allocate", "--policy", "fifo", "s.yaml"]);
    let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert_eq!(said, "jobs,a,throughput\nx,1,1\ny,0,0\n");
}
