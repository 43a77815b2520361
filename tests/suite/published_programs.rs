//! Programs reach the optimum of the published system's own formulas, and never less than it reached itself.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::collections::BTreeMap;

use apportion::Throughputs;
use apportion::catalog::{Catalog, PolicyOptions};
use apportion::index::{EntityId, Id};
use apportion::policy::{Decision, Sense};
use apportion::problem::Problem;
use apportion::spec::Fidelity;
use apportion::spec::{Snapshot, Source};
use serde::Deserialize;

/// One instance: see the fixtures' README.
#[derive(Deserialize)]
struct Recorded {
    snapshot: serde_json::Value,
    policies: BTreeMap<String, Values>,
}

#[derive(Deserialize)]
struct Values {
    gavel: Value,
    optimum: Value,
    /// Whether the optimum is another one without the published quirks.
    #[serde(default)]
    gavel_only: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    One(f64),
    Many(Vec<f64>),
}

impl Value {
    fn numbers(&self) -> &[f64] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

/// The numbers by which a decision is judged: the sorted levels of water filling, the entities' totals of levels times weights, the
/// throughputs after discounts, or the objective.
fn judged(policy: &str, problem: &Problem, decision: &Decision) -> Vec<f64> {
    let levels = || decision.levels.clone().unwrap();
    if policy.contains("water_filling") {
        let mut levels = levels();
        levels.sort_by(f64::total_cmp);
        return levels;
    }
    if policy.contains("hierarchical") {
        let mut totals = vec![0.0; problem.entities().len()];
        for (job, level) in problem.jobs().iter().zip(levels()) {
            totals[job.entity.map(EntityId::index).unwrap()] += level * job.weight;
        }
        return totals;
    }
    if policy.contains("strategy_proof") {
        return decision.allocation.effective_throughput().as_slice().to_vec();
    }
    vec![decision.objective.as_ref().unwrap().value]
}

#[test]
fn programs_reach_the_optimum_of_the_published_formulas() {
    let (catalog, throughputs) = (Catalog::embedded(), Throughputs::embedded("osdi20").unwrap());
    let mut wrong = Vec::new();
    for (at, line) in include_str!("../fixtures/gavel_programs.jsonl").lines().enumerate() {
        let Recorded { snapshot, policies } = serde_json::from_str(line).unwrap();
        let snapshot = Snapshot::read(&Source::new("recorded", snapshot.to_string())).unwrap();
        let problem = Problem::from_snapshot(&snapshot, &throughputs).unwrap();
        for (name, values) in &policies {
            let both = [Fidelity::Published, Fidelity::Corrected];
            for fidelity in both.into_iter().take(if values.gavel_only { 1 } else { 2 }) {
                let options = PolicyOptions { fidelity, ..PolicyOptions::default() };
                let decision = catalog.build(name, &options).unwrap().allocate(&problem).unwrap();
                let objective = decision.objective.as_ref().unwrap();
                let judged = judged(name, &problem, &decision);
                let sign = if objective.sense == Sense::Maximize { 1.0 } else { -1.0 };
                let off = |ours: f64, theirs: f64| sign * (ours - theirs) / theirs.abs();
                let (optimum, gavel) = (values.optimum.numbers(), values.gavel.numbers());
                let exact = judged.iter().zip(optimum).all(|(a, b)| off(*a, *b).abs() <= 1e-6);
                // What is one number is no worse; vectors are the optimum's.
                let no_worse = judged.len() > 1 || off(judged[0], gavel[0]) >= -1e-6;
                if !exact || !no_worse || judged.len() != optimum.len() || !objective.optimal {
                    wrong.push(format!("{at} {name} {fidelity:?}: {judged:?}, {optimum:?}, Gavel {gavel:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Others gain nothing from 1e-9 of one job's level, as the simplex method knows which columns stay at 0.
#[cfg(feature = "highs")]
#[test]
fn levels_over_five_decades_are_those_of_rational_arithmetic() {
    #[derive(Deserialize)]
    struct Exact {
        snapshot: serde_json::Value,
        levels: Vec<f64>,
    }
    let Exact { snapshot, levels } =
        serde_json::from_str(include_str!("../fixtures/five_decades.json")).unwrap();
    let snapshot = Snapshot::read(&Source::new("recorded", snapshot.to_string())).unwrap();
    let problem = Problem::from_snapshot(&snapshot, &Throughputs::embedded("osdi20").unwrap()).unwrap();
    let mut policy = Catalog::embedded().policy("max_min_fairness_water_filling_packed").unwrap();
    let found = policy.allocate(&problem).unwrap().levels.unwrap();
    for (found, exact) in found.iter().zip(&levels) {
        assert!((found - exact).abs() <= 1e-6 * exact, "{found} {exact}");
    }
}
