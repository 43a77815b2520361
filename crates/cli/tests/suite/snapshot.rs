//! Snapshots: read, refused with exact messages, written and read again.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion::index::{EntityId, Id, JobId, JobIndex};
use apportion::problem::{ActiveJob, Colocation, Entity, InnerRule, ProblemBuilder};
use apportion::spec::snapshot::Label;
use apportion::spec::{Snapshot, Source, SpecError};
use apportion::workload::Combination;
use apportion::{Cluster, Problem, Seconds, Steps, Throughputs};
use apportion_cli::diagnostics;
use proptest::prelude::*;

fn throughputs() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").expect("shipped")
}

fn read(text: &str) -> Result<Problem, SpecError> {
    let snapshot = Snapshot::read(&Source::new("snapshot.yaml", text))?;
    Problem::from_snapshot(&snapshot, &throughputs())
}

const HEAD: &str = "format: apportion/snapshot-v1\ncluster: {v100: 4, p100: 4, k80: 2}\n";

/// The complaint about a snapshot, as the command prints it.
fn check(text: &str, expected: &str) {
    let shown = match read(text) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => diagnostics::of_spec(&error),
    };
    assert_eq!(shown, expected, "\n{shown}");
}

fn check_jobs(jobs: &str, expected: &str) {
    check(&format!("{HEAD}jobs:\n{jobs}"), expected);
}

#[test]
fn a_whole_snapshot_is_read() {
    let text = "\
format: apportion/snapshot-v1
cluster: {v100: 4, p100: 4, k80: 2}
prices: {v100: 2.48, p100: 1.46, k80: 0.45}
jobs:
  - id: 17
    job_type: ResNet-50 (batch size 64)
    scale_factor: 2
    weight: 2.0
    steps_remaining: 120000
    elapsed: 3600
    slo_remaining: 86400
    entity: team-a
    throughput: {v100: 10.2, p100: 5.1, k80: 0}
  - {id: late, scale_factor: 2, entity: team-b, throughput: {p100: 4.0, k80: null}}
  - {id: 4, job_type: A3C}
pairs:
  - {jobs: [late, 17], throughput: {p100: [3.0, 2.1]}}
entities:
  - {id: team-b, parent: both}
  - {id: team-a, weight: 2.0, inner: fifo, parent: both}
  - {id: both}
";
    let problem = read(text).unwrap();
    assert_eq!(problem.cluster().to_string(), "v100=4,p100=4,k80=2");
    let prices: Vec<f64> = problem.cluster().types().iter().map(|t| t.price.unwrap().get()).collect();
    assert_eq!(prices, [2.48, 1.46, 0.45]);
    assert_eq!(problem.throughput().row(JobIndex::from_index(0)), [10.2, 5.1, 0.0]);
    assert_eq!(problem.throughput().row(JobIndex::from_index(1)), [0.0, 4.0, 0.0]);
    assert!(problem.throughput().row(JobIndex::from_index(2)).iter().all(|value| *value > 1.0));
    let first = &problem.jobs()[JobIndex::from_index(0)];
    assert_eq!((first.weight, first.steps_remaining.get(), first.elapsed.get()), (2.0, 120_000.0, 3600.0));
    assert_eq!(first.slo_remaining, Some(Seconds::new(86_400.0)));
    assert_eq!(problem.entities()[first.entity.unwrap()].name, "team-a");
    assert_eq!(problem.entities()[first.entity.unwrap()].inner, InnerRule::Fifo);
    let pair = Combination::pair(JobIndex::from_index(0), JobIndex::from_index(1));
    assert_eq!(problem.colocated(pair, Id::from_index(1)), Some([2.1, 3.0]), "members in the order of jobs");
    assert_eq!(problem.colocated(pair, Id::from_index(0)), None);
}

#[test]
fn pairs_come_from_the_matrix_where_the_snapshot_has_none() {
    let problem =
        read(&format!("{HEAD}jobs: [{{id: 1, job_type: A3C}}, {{id: 2, job_type: CycleGAN}}]\n")).unwrap();
    let pair = Combination::pair(JobIndex::from_index(0), JobIndex::from_index(1));
    assert!(problem.colocated(pair, Id::from_index(1)).is_some());
}

#[test]
fn an_unknown_job_type_is_refused() {
    check_jobs(
        "- {id: 1, job_type: A3D}\n",
        "\
error: unknown job type `A3D`, expected one of `ResNet-18 (batch size 16)`, `ResNet-18 (batch size 32)`, `ResNet-18 (batch size 64)`, `ResNet-18 (batch size 128)`, `ResNet-18 (batch size 256)`, `ResNet-50 (batch size 16)`, `ResNet-50 (batch size 32)`, `ResNet-50 (batch size 64)`, `ResNet-50 (batch size 128)`, `Transformer (batch size 16)`, `Transformer (batch size 32)`, `Transformer (batch size 64)` and 14 more
  --> snapshot.yaml:4:21
   4 | - {id: 1, job_type: A3D}
     |                     ^^^ did you mean `A3C`?
",
    );
    check_jobs(
        "- {id: 1, job_type: A3C, scale_factor: 3}\n",
        "\
error: job type `A3C` has no throughputs at scale factor 3 in `osdi20`, expected one of 1
  --> snapshot.yaml:4:40
   4 | - {id: 1, job_type: A3C, scale_factor: 3}
     |                                        ^
",
    );
}

#[test]
fn an_unknown_worker_type_is_refused() {
    check_jobs(
        "- {id: 1, throughput: {v10: 1}}\n",
        "\
error: unknown worker type `v10`, expected one of `v100`, `p100`, `k80`
  --> snapshot.yaml:4:24
   4 | - {id: 1, throughput: {v10: 1}}
     |                        ^^^ did you mean `v100`?
",
    );
    check(
        "format: apportion/snapshot-v1\ncluster: {v100: 1, p10: 1}\njobs: [{id: 1, job_type: A3C}]\n",
        "\
error: worker type `p10` is not in throughputs `osdi20`, where job `1` looks itself up, expected one of `v100`, `p100`, `k80`
  --> snapshot.yaml:2:20
   2 | cluster: {v100: 1, p10: 1}
     |                    ^^^ did you mean `p100`?
",
    );
    check(
        "format: apportion/snapshot-v1\ncluster: {v100: 1}\nprices: {v200: 1}\njobs: []\n",
        "\
error: unknown worker type `v200`, expected one of `v100`
  --> snapshot.yaml:3:10
   3 | prices: {v200: 1}
     |          ^^^^ did you mean `v100`?
",
    );
}

#[test]
fn a_cluster_without_workers_is_refused() {
    check(
        "format: apportion/snapshot-v1\ncluster: {v100: 0, k80: 0}\njobs: []\n",
        "\
error: the cluster has no workers, expected at least one
  --> snapshot.yaml:2:10
   2 | cluster: {v100: 0, k80: 0}
     |          ^^^^^^^^^^^^^^^^^
",
    );
    check(
        "format: apportion/snapshot-v1\ncluster: {v100: 99999999999}\njobs: []\n",
        "\
error: 99999999999 workers of `v100`: expected at most 10000000
  --> snapshot.yaml:2:17
   2 | cluster: {v100: 99999999999}
     |                 ^^^^^^^^^^^
",
    );
}

#[test]
fn a_job_that_runs_nowhere_is_refused() {
    check_jobs(
        "- {id: 1, throughput: {v100: 1}}\n- {id: 2, scale_factor: 8, throughput: {v100: 1}}\n",
        "\
error: job `2` can run on no worker type of the cluster at scale factor 8
  --> snapshot.yaml:5:3
   5 | - {id: 2, scale_factor: 8, throughput: {v100: 1}}
     |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  help: no worker type has more than 4 workers
",
    );
    check_jobs(
        "- {id: 2, throughput: {v100: 0}}\n",
        "\
error: job `2` can run on no worker type of the cluster at scale factor 1
  --> snapshot.yaml:4:3
   4 | - {id: 2, throughput: {v100: 0}}
     |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  help: it needs a throughput above 0 on a type with workers enough
",
    );
    check_jobs(
        "- {id: 1}\n",
        "\
error: job `1` has neither `throughput` nor `job_type`, expected one of them
  --> snapshot.yaml:4:3
   4 | - {id: 1}
     |   ^^^^^^^
",
    );
}

#[test]
fn absurd_numbers_are_refused_all_at_once() {
    check_jobs(
        "\
- id: 1
  weight: .nan
  steps_remaining: -5
  elapsed: .inf
  isolated_elapsed: 1e300
  throughput: {v100: -1, p100: 1e99}
- {id: 2, scale_factor: 0, weight: 0, throughput: {v100: 1}}
",
        "\
error: `weight` is NaN, expected a number from 1e-100 to 1e15
  --> snapshot.yaml:5:11
   5 |   weight: .nan
     |           ^^^^

error: `steps_remaining` is -5, expected a number of steps from 0 to 1e15
  --> snapshot.yaml:6:20
   6 |   steps_remaining: -5
     |                    ^^

error: `elapsed` is inf, expected a number of seconds from 0 to 1e15
  --> snapshot.yaml:7:12
   7 |   elapsed: .inf
     |            ^^^^

error: `isolated_elapsed` is 1e300, expected a number of seconds from 0 to 1e15
  --> snapshot.yaml:8:21
   8 |   isolated_elapsed: 1e300
     |                     ^^^^^

error: `v100` is -1, expected a number of steps/s from 0 to 1e15
  --> snapshot.yaml:9:22
   9 |   throughput: {v100: -1, p100: 1e99}
     |                      ^^

error: `p100` is 1e99, expected a number of steps/s from 0 to 1e15
  --> snapshot.yaml:9:32
   9 |   throughput: {v100: -1, p100: 1e99}
     |                                ^^^^

error: `scale_factor` is 0, expected at least 1 worker
  --> snapshot.yaml:10:25
  10 | - {id: 2, scale_factor: 0, weight: 0, throughput: {v100: 1}}
     |                         ^

error: `weight` is 0, expected a number from 1e-100 to 1e15
  --> snapshot.yaml:10:36
  10 | - {id: 2, scale_factor: 0, weight: 0, throughput: {v100: 1}}
     |                                    ^
",
    );
    check_jobs(
        "- {id: 1, scale_factor: -1, throughput: {v100: 1}}\n",
        "\
error: `jobs[0].scale_factor` is `-1`, expected a whole number from 0 to 4294967295
  --> snapshot.yaml:4:25
   4 | - {id: 1, scale_factor: -1, throughput: {v100: 1}}
     |                         ^^
",
    );
}

#[test]
fn two_jobs_of_one_id_are_refused() {
    check_jobs(
        "- {id: 7, throughput: {v100: 1}}\n- {id: '7', throughput: {v100: 1}}\n",
        "\
error: id `7` is that of jobs[0] already, expected another
  --> snapshot.yaml:5:8
   5 | - {id: '7', throughput: {v100: 1}}
     |        ^^^
",
    );
}

#[test]
fn references_that_lead_nowhere_are_refused() {
    let jobs = "jobs: [{id: one, throughput: {v100: 1}}, {id: two, entity: b, throughput: {v100: 1}}]\n";
    check(
        &format!(
            "{HEAD}{jobs}pairs:\n- {{jobs: [one, tow], throughput: {{v10: [1, -2]}}}}\n- {{jobs: [one, one], throughput: {{}}}}\n"
        ),
        "\
error: unknown job `tow`, expected one of `one`, `two`
  --> snapshot.yaml:5:16
   5 | - {jobs: [one, tow], throughput: {v10: [1, -2]}}
     |                ^^^ did you mean `two`?

error: unknown worker type `v10`, expected one of `v100`, `p100`, `k80`
  --> snapshot.yaml:5:35
   5 | - {jobs: [one, tow], throughput: {v10: [1, -2]}}
     |                                   ^^^ did you mean `v100`?

error: `v10[1]` is -2, expected a number of steps/s from 0 to 1e15
  --> snapshot.yaml:5:44
   5 | - {jobs: [one, tow], throughput: {v10: [1, -2]}}
     |                                            ^^

error: a job cannot share workers with itself: `one`
  --> snapshot.yaml:6:10
   6 | - {jobs: [one, one], throughput: {}}
     |          ^^^^^^^^^^
",
    );
    check(
        &format!("{HEAD}{jobs}entities: [{{id: a, parent: c}}, {{id: c, parent: a}}]\n"),
        "\
error: entity `a` belongs to itself, by way of its parents
  --> snapshot.yaml:4:28
   4 | entities: [{id: a, parent: c}, {id: c, parent: a}]
     |                            ^

error: entity `c` belongs to itself, by way of its parents
  --> snapshot.yaml:4:48
   4 | entities: [{id: a, parent: c}, {id: c, parent: a}]
     |                                                ^

error: unknown entity `b`, expected one of `a`, `c`
  --> snapshot.yaml:3:60
   3 | jobs: [{id: one, throughput: {v100: 1}}, {id: two, entity: b, throughput: {v100: 1}}]
     |                                                            ^
",
    );
}

#[test]
fn a_truncated_snapshot_is_refused() {
    let whole = r#"{"format": "apportion/snapshot-v1", "cluster": {"v100": 1}, "jobs": [{"id": 1, "throughput": {"v100": 2.5}}]}"#;
    assert!(read(whole).is_ok());
    for length in 0..whole.len() {
        let error = read(&whole[..length]).unwrap_err();
        assert!(!error.diagnostics.is_empty());
    }
    check(
        &whole[..70],
        "\
error: not JSON: EOF while parsing an object
  --> snapshot.yaml:1:70
   1 | {\"format\": \"apportion/snapshot-v1\", \"cluster\": {\"v100\": 1}, \"jobs\": [{
     |                                                                      ^
",
    );
}

#[test]
fn a_snapshot_that_is_another_document_says_so() {
    check(
        "format: apportion/sweep-v1\nname: x\n",
        "\
error: format is `apportion/sweep-v1`, expected `apportion/snapshot-v1`
  --> snapshot.yaml:1:9
   1 | format: apportion/sweep-v1
     |         ^^^^^^^^^^^^^^^^^^
  help: this is a sweep document, expected a snapshot
",
    );
}

prop_compose! {
    fn job()(
        scale_factor in 1u32..3,
        weight in 0.1..10.0,
        steps in 0.0..1e6,
        elapsed in 0.0..1e6,
        slo in proptest::option::of(-10.0..1e6),
        entity in proptest::option::of(0usize..2),
        throughput in proptest::collection::vec(0.01..100.0, 3),
    ) -> (ActiveJob, Vec<f64>) {
        let job = ActiveJob {
            scale_factor,
            weight,
            steps_remaining: Steps::new(steps),
            elapsed: Seconds::new(elapsed),
            isolated_elapsed: Seconds::new(elapsed / 3.0),
            slo_remaining: slo.map(Seconds::new),
            entity: entity.map(EntityId::from_index),
            ..ActiveJob::new(JobId::from_index(0))
        };
        (job, throughput)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_problem_survives_its_snapshot(jobs in proptest::collection::vec(job(), 0..6)) {
        let cluster: Cluster = "v100=4,p100=4,k80=2".parse().unwrap();
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        for (name, parent) in [("a", None), ("b", Some(EntityId::from_index(0)))] {
            builder.entity(Entity { name: name.into(), weight: 1.5, inner: InnerRule::Fifo, parent });
        }
        let n_jobs = jobs.len();
        for (position, (job, throughput)) in jobs.into_iter().enumerate() {
            builder.job(ActiveJob { id: JobId::from_index(position), ..job }, &throughput);
        }
        if n_jobs > 0 {
            builder.extra("urgency", (0..n_jobs).map(|position| position as f64 / 3.0).collect());
        }
        let mut pairs = BTreeMap::new();
        if n_jobs > 1 {
            let pair = Combination::pair(JobIndex::from_index(0), JobIndex::from_index(1));
            pairs.insert(pair, vec![[0.1, 0.2], [0.3, 1.0 / 3.0], [0.0, 0.0]]);
        }
        builder.colocation(Colocation::Pairs(pairs));
        let problem = builder.build().unwrap();

        let text = problem.to_snapshot(Label::from).to_json();
        let snapshot = Snapshot::read(&Source::new("saved", text.clone())).unwrap();
        let again = Problem::from_snapshot(&snapshot, &throughputs()).unwrap();
        prop_assert_eq!(problem.jobs(), again.jobs());
        prop_assert_eq!(problem.throughput(), again.throughput());
        prop_assert_eq!(problem.entities(), again.entities());
        prop_assert_eq!(problem.extra(), again.extra());
        prop_assert_eq!(problem.cluster().types(), again.cluster().types());
        if let (Colocation::Pairs(one), Colocation::Pairs(other)) = (problem.colocation(), again.colocation()) {
            prop_assert_eq!(one, other);
        }
        prop_assert_eq!(again.to_snapshot(Label::from).to_json(), text);
    }

    #[test]
    fn no_mutation_of_a_snapshot_makes_a_panic(cuts in proptest::collection::vec((0usize..400, "\\PC{0,3}"), 1..4)) {
        let mut text = format!("{HEAD}jobs:\n- {{id: 1, job_type: A3C, weight: 2, throughput: {{v100: 1.5}}}}\n\
            - {{id: x, entity: e, throughput: {{k80: 1}}}}\npairs:\n- {{jobs: [1, x], throughput: {{v100: [1, 2]}}}}\n\
            entities: [{{id: e, inner: fifo}}]\n");
        for (place, with) in cuts {
            let place = text.char_indices().map(|(byte, _)| byte).nth(place).unwrap_or(0);
            let end = text[place..].chars().next().map_or(place, |letter| place + letter.len_utf8());
            text.replace_range(place..end, &with);
        }
        let _ = read(&text);
    }
}

#[test]
fn faults_of_a_large_snapshot_are_listed_in_part_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let job = |at: usize| format!("{{\"id\": {at}, \"entity\": \"x{at}\", \"throughput\": {{\"v100\": 1}}}}");
    let jobs: Vec<String> = (0..4_000).map(job).collect();
    let text = format!(
        "{{\"format\": \"apportion/snapshot-v1\", \"cluster\": {{\"v100\": 1}}, \"entities\": [{{\"id\": \"a\"}}],\n\"jobs\": [{}]}}",
        jobs.join(",\n")
    );
    let path = folder.path().join("s.json");
    std::fs::write(&path, text).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.args(["allocate", "--policy", "fifo"]).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.matches("error: unknown entity `x").count(), 20, "{said}");
    assert!(said.contains("s.json:2:") && said.ends_with("error: and 3980 more like these\n"), "{said}");
}
