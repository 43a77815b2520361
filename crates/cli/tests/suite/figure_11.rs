//! The scenario of Gavel's multi-level fairness figure, and owners of jobs in simulations.
//!
//! Expected values were computed outside of this project's code, with SciPy 1.x's `linprog` (HiGHS, tolerances of
//! 1e-10): raise all unsaturated jobs from what they have at the rate of the weight that falls to them, then solve
//! one more program for each such job to see whether it alone could rise; those that cannot are saturated, their
//! weight goes to the rest of their entity; repeat.

#![expect(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use apportion::index::{Id, JobId};
use apportion::problem::{ActiveJob, Entity, InnerRule, ProblemBuilder};
use apportion::spec::snapshot::Snapshot;
use apportion::spec::{Source, TraceOrder, load_throughputs, read_trace};
use apportion::{Catalog, Cluster};

const JOBS: &str = include_str!("../../../../sweeps/osdi20-figure-11.csv");
const TYPES: [&str; 3] = ["v100", "p100", "k80"];

/// For each of the first `n` jobs: its throughput divided by that of an equal share, and its share of time.
fn decide(policy: &str, n: usize, inner: InnerRule) -> (Vec<f64>, Vec<f64>) {
    let throughputs = load_throughputs("osdi20").unwrap();
    let trace = read_trace(&Source::new("figure", JOBS), Some(&throughputs), TraceOrder::Refuse).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(Cluster::try_new(TYPES.map(|name| (name, 3))).unwrap()));
    let owners = [1.0, 2.0, 3.0].map(|weight: f64| {
        builder.entity(Entity { name: format!("entity{}", weight - 1.0), weight, inner, parent: None })
    });
    let mut equal_share = Vec::new();
    for (index, job) in trace.into_jobs().into_iter().take(n).enumerate() {
        let row = throughputs.find(&job.job_type, job.scale_factor).unwrap();
        let speeds = TYPES.map(|name| throughputs.alone(row, throughputs.find_worker_type(name).unwrap()));
        equal_share.push(speeds.iter().sum::<f64>() / 3.0);
        assert_eq!(job.entity.as_deref(), Some(format!("entity{}", index / 6).as_str()));
        // In the published variant of first come, first served, weights are all 1.
        let weight = if inner == InnerRule::Fifo { 1.0 } else { job.weight };
        let entity = Some(owners[index / 6]);
        builder.job(ActiveJob { weight, entity, ..ActiveJob::new(JobId::from_index(index)) }, &speeds);
    }
    let problem = builder.build().unwrap();
    let decision = Catalog::embedded().policy(policy).unwrap().allocate(&problem).unwrap();
    let proof = decision.objective.unwrap();
    assert!(proof.optimal && proof.value > 0.0, "{policy}, {n} jobs: {proof:?}");
    let allocation = decision.allocation;
    let mut time = vec![0.0; n];
    for (id, combination) in allocation.combinations().enumerate() {
        time[combination.first().index()] += allocation.shares().row(id).iter().sum::<f64>();
    }
    let levels = allocation.effective_throughput().iter().zip(&equal_share).map(|(thr, equal)| thr / equal);
    (levels.collect(), time)
}

fn totals(levels: &[f64]) -> [f64; 3] {
    [0, 1, 2].map(|entity| levels.iter().skip(6 * entity).take(6).sum())
}

#[track_caller]
fn assert_all_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart <= 2e-6, "{found:?} instead of {expected:?}");
}

#[test]
fn two_jobs_on_nine_workers_are_each_alone_on_the_fastest() {
    // Throughput alone on a v100 over the mean of the three types. (Published: 0.948 and 1.321.)
    let (levels, _) = decide("max_min_fairness_hierarchical_perf", 2, InnerRule::Fairness);
    assert_all_close(&levels, &[1.719_601_3, 1.321_027_2]);
}

#[test]
fn entities_share_by_weight_and_pass_on_what_they_cannot_use() {
    let policy = "max_min_fairness_hierarchical_perf";
    let (levels, _) = decide(policy, 9, InnerRule::Fairness);
    // The second entity's three jobs have all they can use; the first entity has the rest.
    let first = [0.504_393_3, 1.008_786_5, 0.504_393_3, 1.008_786_5, 0.504_393_3, 1.008_786_5];
    assert_all_close(&levels, &[&first[..], &[1.341_992_6, 1.719_601_3, 1.810_624_7]].concat());
    let (levels, _) = decide(policy, 12, InnerRule::Fairness);
    assert_all_close(
        &levels[6..],
        &[0.742_761_9, 1.485_523_8, 0.742_761_9, 1.273_260_3, 0.742_761_9, 1.485_523_8],
    );
    for (n, expected) in [
        (9, [4.539_539_4, 4.872_218_6, 0.0]),
        (12, [3.236_296_7, 6.472_593_5, 0.0]),
        (17, [1.731_434_3, 3.462_868_6, 5.194_302_9]),
        (18, [1.743_220_8, 3.486_441_7, 5.229_662_5]),
    ] {
        assert_all_close(&totals(&decide(policy, n, InnerRule::Fairness).0), &expected);
    }
}

#[test]
fn blind_to_speeds_entities_share_time_by_weight() {
    let policy = "max_min_fairness_hierarchical";
    // Nine workers over weights 1, 2 and 3; inside an entity over weights 1, 2, 1, 2, 1, 2.
    let (_, time) = decide(policy, 18, InnerRule::Fairness);
    let inside = |whole: f64| [1.0, 2.0, 1.0, 2.0, 1.0, 2.0].map(|weight| whole * weight / 9.0);
    assert_all_close(&time, &[inside(1.5), inside(3.0), inside(4.5)].concat());
    // With a job less, the last entity's two heavy jobs run all the time and its light ones take what they leave.
    let (_, time) = decide(policy, 17, InnerRule::Fairness);
    assert_all_close(&time[12..], &[5.0 / 6.0, 1.0, 5.0 / 6.0, 1.0, 5.0 / 6.0]);
    assert_all_close(&totals(&time), &[1.5, 3.0, 4.5]);
}

#[test]
fn first_come_first_served_inside_an_entity() {
    let (_, time) = decide("max_min_fairness_hierarchical", 18, InnerRule::Fifo);
    let served = |n: f64| [0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(|before| (n - before).clamp(0.0, 1.0));
    assert_all_close(&time, &[served(1.5), served(3.0), served(4.5)].concat());
    let (levels, _) = decide("max_min_fairness_hierarchical_perf", 18, InnerRule::Fifo);
    let expected = [
        [1.047_569_7, 0.401_900_4, 0.0, 0.0, 0.0, 0.0],
        [1.341_992_6, 0.970_465_1, 0.438_382_1, 0.148_100_6, 0.0, 0.0],
        [1.527_814_0, 1.614_895_2, 0.983_550_4, 0.140_504_2, 0.081_646_7, 0.0],
    ];
    assert_all_close(&levels, &expected.concat());
}

fn simulate(folder: &Path, more: &[&str]) -> Output {
    let command =
        ["simulate", "--policy", "max_min_fairness_hierarchical", "--cluster", "v100=3,p100=3,k80=3"];
    let rest = ["--trace", "osdi20-figure-11", "--progress", "never"];
    Command::new(env!("CARGO_BIN_EXE_apportion"))
        .args(command)
        .args(rest)
        .args(more)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn a_simulation_knows_the_weights_and_rules_of_owners() {
    let folder = tempfile::TempDir::new().unwrap();
    let entities = "- {id: all}\n- {id: entity0, weight: 1, parent: all}\n\
                    - {id: entity1, weight: 2, inner: fifo, parent: all}\n- {id: entity2, weight: 3, parent: all}\n";
    fs::write(folder.path().join("entities.yaml"), entities).unwrap();
    let arguments =
        ["--entities", "entities.yaml", "--reset-interval", "360", "--save-snapshots", "decisions"];
    let output = simulate(folder.path(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let saved = fs::read_dir(folder.path().join("decisions")).unwrap().map(|entry| entry.unwrap().path());
    let mut full = 0;
    for path in saved {
        let text = fs::read_to_string(&path).unwrap();
        let snapshot = Snapshot::read(&Source::new("saved.yaml", text.as_str())).unwrap();
        let entities = &snapshot.document().entities;
        assert_eq!(entities.iter().map(|entity| entity.weight).collect::<Vec<_>>(), [1.0, 1.0, 2.0, 3.0]);
        assert_eq!(entities[2].parent.as_deref(), Some("all"));
        full += usize::from(snapshot.document().jobs.len() == 18);
    }
    assert!(full > 0, "no decision saw all jobs");
}

/// The values of each series of a chart's table, in order of time.
fn series(csv: &str) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut all: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let mark = (cells[1].parse().unwrap(), cells[2].parse().unwrap());
        match all.last_mut() {
            Some((name, marks)) if name == cells[0] => marks.push(mark),
            _ => all.push((cells[0].to_owned(), vec![mark])),
        }
    }
    all
}

#[test]
fn a_page_shows_the_workers_of_each_owner_over_time() {
    let folder = tempfile::TempDir::new().unwrap();
    let entities = "- {id: entity0, weight: 1}\n- {id: entity1, weight: 2}\n- {id: entity2, weight: 3}\n";
    fs::write(folder.path().join("entities.yaml"), entities).unwrap();
    let arguments = ["--entities", "entities.yaml", "--reset-interval", "360", "--events", "run.jsonl"];
    let output = simulate(folder.path(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(env!("CARGO_BIN_EXE_apportion"))
        .args(["report", "run.jsonl", "--until", "9h", "--assets", "files", "--svg", "owners.svg"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("owners.svg").contains("Workers that allocations owe each owner"));
    assert!(read("run.html").contains("the first 9 h"));

    // Blind to speeds, the one job there is at first is owed one worker, and owners of all 18 their parts of nine by weight.
    let owed = series(&read("files/workers-owed-to-owners.csv"));
    let held = series(&read("files/workers-of-owners.csv"));
    assert!((owed[0].1[0].1 - 1.0).abs() < 1e-6, "{:?}", owed[0].1[0]);
    for (at, expected) in [1.5, 3.0, 4.5].into_iter().enumerate() {
        assert_eq!(
            (owed[at].0.as_str(), held[at].0.as_str()),
            (&*format!("entity{at}"), &*format!("entity{at}"))
        );
        let (last, value) = owed[at].1.last().unwrap();
        assert!((value - expected).abs() < 1e-5 && (8.9..9.1).contains(last), "{last} h: {value}");
        let since: Vec<f64> =
            held[at].1.iter().filter(|(hours, _)| *hours > 7.5).map(|(_, value)| *value).collect();
        let mean = since.iter().sum::<f64>() / since.len() as f64;
        assert!((mean - expected).abs() < 0.3, "{mean} workers held of {expected}");
    }
}

#[test]
fn what_is_wrong_with_owners_is_said() {
    let folder = tempfile::TempDir::new().unwrap();
    for (entities, expected) in [
        ("[{id: entity0}, {id: entity1}]", " belongs to `entity2`, expected one of"),
        ("[{id: entity0, weight: -1}]", "entity `entity0` has weight -1"),
        ("- {id: entity0}\n- {id: entity1, weight: -1}", "--> entities.yaml:2:25"),
        ("- {id: a}\n- {id: a}", "--> entities.yaml:2:8"),
        ("[{id: entity0, parent: entity9}]", "belongs to `entity9`, which is not given"),
        ("[{id: a, parent: b}, {id: b, parent: a}]", "belongs to itself"),
        ("[{id: a}, {id: a}]", "entity `a` is given twice"),
        ("[{id: a, inner: lottery}]", "lottery"),
    ] {
        fs::write(folder.path().join("entities.yaml"), entities).unwrap();
        let output = simulate(folder.path(), &["--entities", "entities.yaml"]);
        let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{entities}: {said}");
    }
}
