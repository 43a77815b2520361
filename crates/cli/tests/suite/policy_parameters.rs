//! Parameters behind the name of a policy: their effect, and the names of runs with different ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use apportion_studies::sweep::Store;
use apportion_studies::sweep::spec::value_text;

use super::sweep::{complaint, folder_with, succeed};

const STUDY: &str = "\
format: apportion/sweep-v1
name: exponents
run:
  cluster: {v100: 2, p100: 2, k80: 2}
  workload: {generator: gavel}
  measure: [10, 30]
axes:
  policy:
    - completion_rate
    - completion_rate:exponent=0.25
    - completion_rate:exponent=0.75
    - tempered_completion_rate
    - tempered_completion_rate:exponent=0.75
    - themis:fairness=0.1
    - themis
    - mine.yaml:power=-1
    - mine.yaml:power=-1:floor=0.3
  rate: [0.6]
  seed: [0]
";

const MINE: &str = "\
format: apportion/policy-v1
name: mine
summary: relative throughput, shorter jobs first by so much
kind: program
parameters:
  power: -0.5
  floor: {default: 0, from: 0, to: 1}
maximize: sum_over_jobs(throughput / fastest_throughput * (steps_remaining / fastest_throughput / 3600[s])^power)
for_each_job:
  - throughput >= floor * isolated_throughput
";

#[test]
fn a_sweep_tells_policies_with_different_parameters_apart() {
    let folder = folder_with("exponents.yaml", STUDY);
    fs::write(folder.path().join("mine.yaml"), MINE).unwrap();
    let shown = String::from_utf8(succeed(folder.path(), &["sweep", "exponents.yaml"]).stdout).unwrap();
    let store = Store::open_to_read(&folder.path().join("results/exponents")).unwrap();
    let rows = store.rows().unwrap();
    let digests: BTreeSet<&String> = rows.iter().map(|row| &row.digest).collect();
    assert_eq!((rows.len(), digests.len()), (9, 9), "each is a run of its own");
    let named = |row: &apportion_studies::sweep::Row| (value_text(&row.values[0]), row.outcome.metrics);
    let found: BTreeMap<_, _> = rows.iter().map(named).collect();
    assert_eq!(found.len(), 9, "each has a label of its own");
    let lines = |name: &str| shown.lines().filter(|line| line.split(' ').next() == Some(name)).count();
    assert!(found.keys().all(|name| lines(name) == 1), "{shown}");
    let of = |name: &str| found[name];
    assert_eq!(of("tempered_completion_rate:exponent=0.75"), of("tempered_completion_rate"));
    let jct = |name: &str| {
        rows.iter().find(|row| value_text(&row.values[0]) == name)?.outcome.metric("average_jct_s")
    };
    let ratio = jct("completion_rate:exponent=0.75").unwrap() / jct("tempered_completion_rate").unwrap();
    assert!((ratio - 1.0).abs() < 0.01, "two programs of one rule: {ratio}");
    let all = ["completion_rate", "completion_rate:exponent=0.25", "completion_rate:exponent=0.75"];
    let different: BTreeSet<String> = all.iter().map(|name| format!("{:?}", of(name))).collect();
    assert_eq!(different.len(), 3, "the exponent changes what is decided");
    assert_ne!(of("themis:fairness=0.1"), of("themis"));
    assert_ne!(of("mine.yaml:power=-1"), of("mine.yaml:power=-1:floor=0.3"));
}

#[test]
fn a_parameter_that_does_not_fit_is_refused_where_the_policy_is_named() {
    let folder = folder_with("exponents.yaml", STUDY);
    fs::write(folder.path().join("mine.yaml"), MINE).unwrap();
    for (instead, expected, place) in [
        ("mine.yaml:power=-1:floor=3", "`floor` is 3, expected a number from 0 to 1", "exponents.yaml:17:7"),
        (
            "mine.yaml:pwer=1",
            "unknown parameter `pwer`, expected one of `power`, `floor`",
            "exponents.yaml:17:7",
        ),
        ("fifo:power=1", "policy `fifo` has no parameters", "exponents.yaml:17:7"),
    ] {
        let text = STUDY.replace("mine.yaml:power=-1:floor=0.3", instead);
        fs::write(folder.path().join("exponents.yaml"), text).unwrap();
        let said = complaint(folder.path(), &["sweep", "exponents.yaml", "--dry-run"]);
        assert!(said.contains(expected) && said.contains(place), "{said}");
    }
    let simulate = ["simulate", "--cluster", "v100=2", "--rate", "1", "--jobs", "3", "--policy"];
    let said = complaint(folder.path(), &[&simulate[..], &["completion_rate:exponent=2.5"]].concat());
    assert!(said.contains("`exponent` is 2.5, expected a number from -2 to 2"), "{said}");
    let said = complaint(folder.path(), &["policies", "show", "completion_rate:exponent=1"]);
    assert!(said.contains("leave them out: `apportion policies show completion_rate`"), "{said}");
}

#[test]
fn a_policy_is_called_by_its_name_and_parameters() {
    let folder = folder_with("mine.yaml", MINE);
    let snapshot = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/snapshot.yaml");
    for (asked, said) in [
        ("mine.yaml:power=-1.50:floor=0.1", "mine:floor=0.1:power=-1.5"),
        ("completion_rate:exponent=0.75", "completion_rate:exponent=0.75"),
    ] {
        let shown = succeed(folder.path(), &["allocate", "--policy", asked, snapshot]).stdout;
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains(&format!("policy     {said}\n")), "{shown}");
    }
    let checked = succeed(folder.path(), &["policies", "check", "mine.yaml:power=2"]).stdout;
    assert!(String::from_utf8(checked).unwrap().contains("mine:power=2"), "it says what was checked");
}
