//! Places of faults in a policy, and jobs without time in its answers.

use std::fs;
use std::process::Command;

use super::sweep::{apportion, complaint};
use tempfile::TempDir;

/// A fault in a policy's text is shown at its place in the file, also if only a snapshot reveals it.
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
            "p.yaml:7:28",
        ),
        (
            constraint("sum_over_jobs(owned_by(\"\") * time_on(a)) <= 1"),
            "names the owner ``, expected one of",
            "p.yaml:7:28",
        ),
        (constraint("sum_over_jobs(time_on(b)) <= 1"), "names the worker type `b`", "p.yaml:7:27"),
        (
            "throughput: reference(b)\nmaximize: sum_over_jobs(throughput)\n".to_owned(),
            "or put `fastest` at the end: `reference(b, fastest)`",
            "p.yaml:5:13",
        ),
        (
            constraint("sum_over_jobs(sqrt(time_on(a))) <= 1"),
            "the constraint is `sum_over_jobs(sqrt(time_on(\"a\"))) - 1.0 <= 0`, and its left side is concave",
            "p.yaml:7:5",
        ),
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

/// Every command refuses a policy that names a worker type which the cluster lacks before it runs anything.
#[test]
fn worker_types_that_the_cluster_lacks_are_refused_before_anything_runs() {
    let folder = TempDir::new().unwrap();
    let policy = "format: apportion/policy-v1\nname: p\nsummary: s\nkind: program\nmaximize: sum_over_jobs(throughput)\n\
                  constraints:\n  - sum_over_jobs(workers_on(p100)) <= 1[workers]\n";
    fs::write(folder.path().join("p.yaml"), policy).unwrap();
    fs::write(
        folder.path().join("s.yaml"),
        "format: apportion/snapshot-v1\ncluster: {v100: 1}\njobs:\n  - {id: x, steps_remaining: 1, throughput: {v100: 1}}\n",
    )
    .unwrap();
    for words in [
        "simulate --policy p.yaml --cluster v100=1 --static 2",
        "sweep --policy p.yaml --rate 1 --seed 0 --cluster v100=1 --set jobs=2 --dry-run",
        "bench --policy p.yaml --snapshot s.yaml --repeats 1",
        "explain --policy p.yaml s.yaml",
        "serve --local --cluster v100=1 --state state --policy p.yaml",
    ] {
        let said = complaint(folder.path(), &words.split(' ').collect::<Vec<_>>());
        assert!(
            said.contains("names the worker type `p100`") && said.contains("p.yaml:7:"),
            "{words}: {said}"
        );
    }
}

/// A policy's text may come from a pipe, which is read once.
#[cfg(unix)]
#[test]
fn a_policy_is_read_from_a_pipe() {
    let fifo = include_str!("../../../../policies/fifo.yaml");
    for words in [
        "policies check /dev/stdin",
        "simulate --policy /dev/stdin --cluster v100=1 --static 1 --duration 60",
    ] {
        let ran = super::command::apportion(&words.split(' ').collect::<Vec<_>>(), fifo);
        assert_eq!(ran.code, Some(0), "{words}: {}", ran.stderr);
    }
    for words in ["check --policies /dev/stdin --instances 1", "bench --policy /dev/stdin --quick"] {
        let ran = super::command::apportion(&words.split(' ').collect::<Vec<_>>(), fifo);
        assert_eq!(ran.code, Some(2), "{words}: {}", ran.stderr);
        assert!(ran.stderr.contains("/dev/stdin` is no file"), "{words}: {}", ran.stderr);
    }
}

/// Missing weights are reported at the policy's field.
#[test]
fn weights_that_are_not_there_are_refused_at_their_field() {
    let folder = TempDir::new().unwrap();
    let policy = include_str!("../../../../policies/learned_values.yaml");
    let line = policy.lines().position(|line| line.starts_with("weights:")).unwrap() + 1;
    for (weights, expected) in
        [("mine", "unknown weights `mine`"), ("mine.safetensors", "there is no such file")]
    {
        let lines = policy.lines().map(|line| {
            if line.starts_with("weights:") { format!("weights: {weights}") } else { line.to_owned() }
        });
        fs::write(folder.path().join("w.yaml"), lines.collect::<Vec<_>>().join("\n")).unwrap();
        let said = complaint(folder.path(), &["policies", "check", "w.yaml"]);
        assert!(said.contains(expected) && said.contains(&format!("w.yaml:{line}:1")), "{said}");
    }
}

/// Among allocations that drop the same constraints nothing is better; another set of as few may allow more.
#[test]
fn a_bound_beside_dropped_constraints_is_one_of_the_same_jobs() {
    let folder = TempDir::new().unwrap();
    let policy = "format: apportion/policy-v1\nname: p\nsummary: s\nkind: program\nmaximize: sum_over_jobs(throughput)\n\
                  columns: {need: \"steps/s >= 0\"}\nfor_each_job:\n  - {constraint: throughput >= need, droppable: true}\n";
    fs::write(folder.path().join("p.yaml"), policy).unwrap();
    for (need, expected) in [(9, true), (1, false)] {
        let snapshot = format!(
            "format: apportion/snapshot-v1\ncluster: {{v100: 1}}\njobs:\n  - {{id: a, steps_remaining: 1, throughput: {{v100: 1}}, \
             extra: {{need: 0.9}}}}\n  - {{id: b, steps_remaining: 1, throughput: {{v100: 10}}, extra: {{need: {need}}}}}\n"
        );
        fs::write(folder.path().join("s.yaml"), snapshot).unwrap();
        for (command, words) in [
            ("allocate", "certified optimal among allocations that drop the same constraints"),
            ("explain", "no allocation that drops the constraints of the same jobs beats"),
        ] {
            let mut asked = apportion(folder.path(), &[command, "--policy", "p.yaml", "s.yaml"]);
            let said = String::from_utf8(asked.output().unwrap().stdout).unwrap();
            assert_eq!(said.contains(words), expected, "{said}");
        }
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

/// Each constraint that the answer says could be dropped leaves an allocation once it is marked `droppable: true`; each other one,
/// marked alone, leaves none.
#[test]
fn what_would_relax_a_conflict_is_said_and_does() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let jobs = "jobs:\n  - {id: x, throughput: {a: 1}}\n  - {id: y, throughput: {a: 2}}\n";
    fs::write(at.join("s.yaml"), format!("format: apportion/snapshot-v1\ncluster: {{a: 1}}\n{jobs}"))
        .unwrap();
    let remedy = "(with `droppable: true` it can be dropped)";
    let allocate = |for_each_job: &[String], constraints: &str| {
        let rows = format!("  - {}\n", for_each_job.join("\n  - "));
        let text = "maximize: sum_over_jobs(throughput)\nfor_each_job:\n";
        let head = "format: apportion/policy-v1\nname: p\nsummary: s\nkind: program\n";
        fs::write(at.join("p.yaml"), format!("{head}{text}{rows}{constraints}")).unwrap();
        let arguments =
            ["allocate", "--policy", "p.yaml", "s.yaml", "--format", "json", "--progress", "json"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
        let output = command.current_dir(at).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said, String::from_utf8(output.stdout).unwrap())
    };
    let cap = "constraints:\n  - sum_over_jobs(workers_on(a)) >= 9[workers]\n";
    for (rows, constraints, can_be) in [
        (&["time_on(a) >= 0.8"][..], "", &[true][..]),
        (&["time_on(a) >= 0.8", "time_on(a) <= 0.5"], "", &[true, false]),
        (&["time_on(a) >= 0.8"], cap, &[false]),
        (&["time_on(a) == 0.8"], "", &[false]),
    ] {
        let hard: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
        let (code, said, _) = allocate(&hard, constraints);
        assert_eq!(code, Some(3), "{said}");
        let event: serde_json::Value = serde_json::from_str(&said).unwrap();
        let message = event["message"].as_str().unwrap();
        assert!(message.contains("no allocation keeps"), "{message}");
        assert_eq!(message.contains(remedy), can_be.contains(&true), "{message}");
        for (position, can_be) in can_be.iter().enumerate() {
            let mut marked = hard.clone();
            marked[position] = format!("{{constraint: {}, droppable: true}}", hard[position]);
            let (code, said, answer) = allocate(&marked, constraints);
            assert_eq!(code == Some(0), *can_be, "{marked:?}: {said}");
            if *can_be {
                let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
                assert!(!answer["dropped"].as_array().unwrap().is_empty(), "{answer}");
            }
        }
    }
}
