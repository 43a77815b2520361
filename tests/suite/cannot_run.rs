//! Jobs that cannot run everywhere, through every policy file and every choice among optima.

#![expect(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion::catalog::{CatalogError, PolicyOptions};
use apportion::index::{EntityId, Id, JobId, JobIndex};
use apportion::policy::{Decision, Refine};
use apportion::problem::{ActiveJob, Colocation, Entity, InnerRule, ProblemBuilder};
use apportion::spec::Fidelity;
use apportion::workload::Combination;
use apportion::{Catalog, Cluster, DollarsPerWorkerHour, Problem, Seconds, Steps};
use proptest::prelude::*;

/// Policies that as published give time everywhere: policies blind to worker types, and equal shares.
const EVERYWHERE: [&str; 8] = [
    "finish_time_fairness",
    "max_min_fairness",
    "max_min_fairness_water_filling",
    "max_min_fairness_hierarchical",
    "min_total_duration",
    "isolated",
    "proportional",
    "gandiva",
];

#[derive(Clone, Debug)]
struct Drawn {
    /// 0 on two of five types.
    speeds: [f64; 3],
    scale_factor: u32,
    hours: f64,
    /// Time to the SLO over the time it takes alone where it is fastest.
    slack: f64,
    entity: usize,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let speed = || prop_oneof![2 => Just(0.0), 3 => 0.5_f64..20.0];
    let speeds = (speed(), speed(), speed(), 0_usize..3, 0.5_f64..20.0).prop_map(|(a, b, c, one, speed)| {
        let mut speeds = [a, b, c];
        // Everybody runs somewhere.
        speeds[one] = speeds[one].max(speed);
        speeds
    });
    (speeds, prop::sample::select(vec![1_u32, 1, 2]), 0.5_f64..50.0, 1.1_f64..8.0, 0_usize..3).prop_map(
        |(speeds, scale_factor, hours, slack, entity)| Drawn { speeds, scale_factor, hours, slack, entity },
    )
}

fn problem(workers: [u32; 3], jobs: &[Drawn]) -> Problem {
    let mut cluster = Cluster::try_new(["v100", "p100", "k80"].into_iter().zip(workers)).unwrap();
    for (name, price) in [("v100", 2.48), ("p100", 1.46), ("k80", 0.45)] {
        cluster = cluster.with_price(name, DollarsPerWorkerHour::new(price)).unwrap();
    }
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for (weight, inner) in [(1.0, InnerRule::Fairness), (2.0, InnerRule::Fifo), (3.0, InnerRule::Fairness)] {
        builder.entity(Entity { name: format!("of {weight}"), weight, inner, parent: None });
    }
    let mut pairs = BTreeMap::new();
    for (index, drawn) in jobs.iter().enumerate() {
        let fastest = drawn.speeds.into_iter().fold(0.0, f64::max);
        let job = ActiveJob {
            scale_factor: drawn.scale_factor,
            steps_remaining: Steps::new(drawn.hours * 3600.0 * fastest),
            elapsed: Seconds::new(100.0 * drawn.hours),
            slo_remaining: Some(Seconds::new(drawn.hours * 3600.0 * drawn.slack)),
            entity: Some(EntityId::from_index(drawn.entity)),
            ..ActiveJob::new(JobId::from_index(index))
        };
        builder.job(job, &drawn.speeds);
        for (other, beside) in jobs[..index].iter().enumerate() {
            let together = |j: usize| [0.7 * beside.speeds[j], 0.7 * drawn.speeds[j]];
            if beside.scale_factor == drawn.scale_factor
                && (0..3).any(|j| together(j)[0] * together(j)[1] > 0.0)
            {
                let pair = Combination::pair(JobIndex::from_index(other), JobIndex::from_index(index));
                let shared = |j| if together(j)[0] * together(j)[1] > 0.0 { together(j) } else { [0.0; 2] };
                pairs.insert(pair, vec![shared(0), shared(1), shared(2)]);
            }
        }
    }
    builder.colocation(Colocation::Pairs(pairs));
    builder.build().unwrap()
}

/// A combination with time where one of its jobs cannot run, in words.
fn misplaced(problem: &Problem, decision: &Decision) -> Option<String> {
    for (id, combination) in decision.allocation.combinations().enumerate() {
        let shares = decision.allocation.shares().row(id).iter();
        for ((worker_type, kind), share) in problem.cluster().types().enumerate().zip(shares) {
            let runs = |job: JobIndex| {
                problem.throughput()[(job, worker_type)] > 0.0
                    && problem.jobs()[job].scale_factor <= kind.n_workers
            };
            if *share != 0.0 && !combination.members().all(runs) {
                return Some(format!("{combination:?} has {share} of {}", kind.name));
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_time_is_given_where_a_job_cannot_run(
        workers in [2_u32..5, 2_u32..5, 2_u32..5],
        jobs in prop::collection::vec(drawn(), 1..9),
    ) {
        let catalog = Catalog::embedded();
        // Learned policies give no shares by a program or a rule; their choices are checked in the tests of their own crate.
        let names: Vec<&str> = catalog.names();
        prop_assert_eq!(names.len(), 36);
        for name in names {
            let mut jobs = jobs.clone();
            if name == "allox" {
                // It matches jobs to single workers.
                for job in &mut jobs {
                    job.scale_factor = 1;
                }
            }
            let problem = problem(workers, &jobs);
            let refinements = [None, Some(Refine::Interior), Some(Refine::WaterFilling), Some(Refine::None)];
            let corrected = refinements.map(|refine| (Fidelity::Corrected, refine));
            for (fidelity, refine) in corrected.into_iter().chain([(Fidelity::Published, Some(Refine::Interior))]) {
                if (name, fidelity) == ("fifo", Fidelity::Published) {
                    // It gives away more workers than there are.
                    continue;
                }
                let options = PolicyOptions { fidelity, refine, ..PolicyOptions::default() };
                let mut policy = match catalog.build(name, &options) {
                    Ok(policy) => policy,
                    Err(CatalogError::Program { .. }) if refine == Some(Refine::WaterFilling) => continue,
                    Err(error) => return Err(TestCaseError::fail(error.to_string())),
                };
                let asked = format!("{name}, {fidelity:?}, {refine:?}");
                let decision = policy.allocate(&problem).unwrap_or_else(|error| panic!("{asked}: {error}"));
                let certified = decision.objective.as_ref().is_none_or(|objective| objective.optimal);
                prop_assert!(certified, "{}: {:?}", asked, decision.objective);
                let fallbacks = decision.solve.as_ref().map_or(&[][..], |solve| &solve.fallbacks);
                prop_assert!(fallbacks.is_empty(), "{}: {:?}", asked, fallbacks);
                if fidelity == Fidelity::Corrected || !EVERYWHERE.contains(&name) {
                    prop_assert_eq!(misplaced(&problem, &decision), None, "{}", asked);
                }
            }
        }
    }
}
