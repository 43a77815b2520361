use std::sync::Arc;

use super::*;
use apportion::spec::snapshot::SnapshotDocument;
use apportion::spec::{Snapshot, Source};
use apportion::{Catalog, Problem, Throughputs};

fn problem(document: &SnapshotDocument) -> Problem {
    let snapshot = Snapshot::read(&Source::new("drawn", document.to_json())).unwrap();
    Problem::from_snapshot(&snapshot, &Arc::clone(&Throughputs::embedded("osdi20").unwrap())).unwrap()
}

/// Two jobs on one worker of type `a`, the second of which also runs on the two of type `b`.
const SMALL: &str = r#"{"format": "apportion/snapshot-v1", "cluster": {"a": 1, "b": 2}, "prices": {"a": 2.0, "b": 1.0},
    "jobs": [{"id": 1, "steps_remaining": 8.0, "throughput": {"a": 4.0}},
             {"id": 2, "steps_remaining": 6.0, "slo_remaining": 3.0, "scale_factor": 2, "throughput": {"a": 3.0, "b": 2.0}}],
    "pairs": []}"#;

fn small() -> SnapshotDocument {
    serde_json::from_str(SMALL).unwrap()
}

fn rows(first: [f64; 2], second: [f64; 2]) -> Vec<Row> {
    vec![Row { jobs: vec![0], shares: first.to_vec() }, Row { jobs: vec![1], shares: second.to_vec() }]
}

fn decided(policy: &str, value: f64, rows: Vec<Row>) -> Decided {
    let numbers = (Some(value), Some(value), Some(0.0));
    let (value, bound, gap_relative) = numbers;
    let maximize = Worth::of(policy).is_gain();
    Decided {
        value,
        bound,
        gap_relative,
        maximize,
        rows,
        ..Decided::without(policy, "default", Verdict::Certified, "")
    }
}

fn fault(decisions: &[Decided]) -> Option<String> {
    Judge::new(&small(), &[], decisions).faults().first().map(|fault| fault.what.clone())
}

#[test]
fn worth_follows_from_its_formulas() {
    let document = small();
    let numbers = Numbers::of(&document, &[]);
    let all = rows([1.0, 0.0], [0.0, 1.0]);
    let value = |worth| numbers.value(worth, &all).unwrap();
    let near = |worth, expected: f64| {
        assert!((value(worth) - expected).abs() < 1e-12, "{worth:?}: {}", value(worth));
    };
    // With an equal share of three workers, job 1 has throughput 4·1/3, job 2 has (3·1 + 2·2)/3.
    near(Worth::Level(View::Measured), (2.0 * 2.0 / (7.0_f64 / 3.0)).min(4.0 / (4.0 / 3.0)));
    near(Worth::Level(View::Unit), 2.0);
    near(Worth::Makespan(View::Measured), 3.0);
    near(Worth::Makespan(View::Reference), 2.0);
    // 1/2 of the cluster is 1/2 of a worker of `a` and all of `b`, which is scaled to all of a job's time.
    near(
        Worth::Unfairness(View::Measured),
        (2.0_f64 / (8.0 / (4.0 / 3.0))).max(3.0 / (6.0 / (3.0 * 0.25 + 2.0 * 0.5))),
    );
    near(Worth::Total, 6.0);
    near(Worth::PerDollar, 4.0 / 2.0 + 2.0);
    near(Worth::Logarithms, 8.0_f64.ln());
    assert_eq!(numbers.value(Worth::Logarithms, &rows([0.0, 0.0], [0.0, 1.0])), None);
    assert_eq!(numbers.asked(1), Some(2.0));
}

#[test]
fn shares_that_break_something_are_found() {
    let document = small();
    let numbers = Numbers::of(&document, &[]);
    assert_eq!(numbers.broken(&rows([1.0, 0.0], [0.0, 1.0])), None);
    for (first, second, what) in [
        ([-0.1, 0.0], [0.0, 1.0], "have shares"),
        ([0.5, 0.5], [0.0, 0.5], "cannot run"),
        ([0.5, 0.0], [0.1, 0.5], "cannot run"),
        ([1.0, 0.0], [0.0, 1.1], "have shares"),
    ] {
        let found = numbers.broken(&rows(first, second)).unwrap();
        assert!(found.contains(what), "{found}");
    }
    let twice = [rows([0.6, 0.0], [0.0, 0.0]), rows([0.6, 0.0], [0.0, 0.0])].concat();
    assert!(numbers.broken(&twice).unwrap().contains("of its time"));
    assert!(numbers.broken(&numbers.within(&twice)).is_none());
}

#[test]
fn untrue_claims_are_found_and_true_ones_are_not() {
    let best = || rows([1.0, 0.0], [0.0, 1.0]);
    let half = || rows([0.5, 0.0], [0.0, 1.0]);
    assert_eq!(fault(&[decided("max_sum_throughput_perf", 6.0, best())]), None);
    let found = |decisions: &[Decided], what: &str| {
        let found = fault(decisions).unwrap_or_default();
        assert!(found.contains(what), "{found:?}, not {what:?}");
    };
    found(&[decided("max_sum_throughput_perf", 7.0, best())], "the shares are worth 6e0");
    found(
        &[decided("max_sum_throughput_perf", 4.0, half()), decided("min_total_duration_perf", 3.0, best())],
        "bound 4e0; min_total_duration_perf by default is worth 6e0",
    );
    let loose = Decided { bound: Some(6.0), ..decided("max_sum_throughput_perf", 4.0, half()) };
    found(std::slice::from_ref(&loose), "certified at value 4e0 and bound 6e0");
    assert_eq!(fault(&[Decided { verdict: Verdict::Uncertified, ..loose }]), None);
    let refused = Decided::without("min_total_duration_perf", "default", Verdict::Infeasible, "");
    found(&[refused], "said to be infeasible; equal shares has value");
    let mut late =
        decided("max_sum_throughput_normalized_by_cost_perf_SLOs", 4.0, rows([1.0, 0.0], [0.0, 0.9]));
    late.value = Some(2.0 + 1.8);
    late.bound = late.value;
    found(std::slice::from_ref(&late), "its deadline asks for 2e0");
    late.dropped = vec![1];
    found(&[late, decided("max_sum_throughput_perf", 6.0, best())], "1 deadlines are dropped");
    let other = |value| decided("max_min_fairness_hierarchical_perf", value, best());
    found(&[other(1.0), other(1.1)], "by default it is 1e0");
}

#[test]
fn a_seed_draws_the_same_instances_and_policies_decide_them() {
    let catalog = Catalog::embedded();
    let policies = ["max_min_fairness_perf", "max_min_fairness_packed", "min_total_duration_perf"];
    for number in 0..12 {
        let document = draw(3, number, 2.0, &["here".to_owned()]);
        assert_eq!(document, draw(3, number, 2.0, &["here".to_owned()]));
        assert_ne!(document, draw(4, number, 2.0, &["here".to_owned()]));
        let problem = problem(&document);
        let decisions = policies.map(|policy| decide(&catalog, &problem, policy, None));
        let judge = Judge::new(&document, &[], &decisions);
        let faults = judge.faults();
        assert_eq!(faults, [], "instance {number}");
        let mut tally = Tally::of(2.0, &decisions, &judge, &faults);
        tally.add(&tally.clone());
        assert_eq!((tally.decisions, tally.crashed, tally.broken), (6, 0, 0));
    }
}
