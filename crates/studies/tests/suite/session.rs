//! Sessions compared with decisions from scratch: the same optimum and the same classes after any arrivals and departures.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::Arc;

use apportion::index::{Id, JobId, JobIndex};
use apportion::policy::{Policy, ProgramPolicy, Session, Strategy as PolicyStrategy};
use apportion::problem::ActiveJob;
use apportion::units::{Seconds, Steps};
use apportion::{Catalog, Job, PolicyOptions, Problem, Throughputs};
use apportion_studies::benchmark::Instance;
use proptest::prelude::*;

/// Relative tolerance of a session's optimum against one from scratch: both are certified to 1e-6.
const AGREEMENT: f64 = 1e-7;

const POLICIES: [&str; 7] = [
    "max_min_fairness_perf",
    "max_min_fairness_water_filling_perf",
    "max_min_fairness_hierarchical_perf",
    "min_total_duration_perf",
    "max_sum_throughput_perf",
    "proportional_fairness",
    "finish_time_fairness_perf",
];

#[derive(Clone, Copy, Debug)]
enum Change {
    Arrival(usize),
    Departure(usize),
    Progress(usize, f64),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        2 => (0_usize..200).prop_map(Change::Arrival),
        2 => (0_usize..200).prop_map(Change::Departure),
        1 => (0_usize..200, 0.1_f64..1.0).prop_map(|(job, part)| Change::Progress(job, part)),
    ];
    prop::collection::vec(change, 1..6)
}

fn policy(name: &str) -> ProgramPolicy {
    Catalog::embedded().program(name, &PolicyOptions::default()).unwrap().unwrap()
}

fn drawn(instance: &Instance, n_jobs: usize, seed: u64) -> Problem {
    let throughputs: Arc<Throughputs> = Throughputs::embedded("osdi20").unwrap();
    instance.problem(n_jobs, seed, &throughputs).unwrap()
}

fn job(problem: &Problem, position: usize) -> (ActiveJob, Vec<f64>) {
    let index = JobIndex::from_index(position);
    (problem.jobs()[index].clone(), problem.throughput().row(index).to_vec())
}

/// Applies changes in a session, and compares it with decisions from scratch after each.
fn play(name: &str, instance: &Instance, n_jobs: usize, seed: u64, changes: &[Change]) {
    let start = drawn(instance, n_jobs, seed);
    let others = drawn(instance, 200, seed + 1);
    let mut session = Session::new(policy(name), start).unwrap();
    let mut next = 1_000;
    session.decide().unwrap();
    for change in changes {
        let n = session.problem().n_jobs();
        let at = |position: usize| job(session.problem(), position % n).0;
        match *change {
            Change::Arrival(position) => {
                let (arrived, speeds) = job(&others, position);
                next += 1;
                let arrived = ActiveJob { id: JobId::from_index(next), scale_factor: 1, ..arrived };
                session.insert(arrived, &speeds).unwrap();
            }
            Change::Departure(_) if n == 1 => continue,
            Change::Departure(position) => {
                let gone = at(position);
                assert_eq!(session.remove(gone.id).unwrap(), gone);
                assert!(session.shares(gone.id).is_none());
            }
            Change::Progress(position, part) => {
                let before = at(position);
                let steps_remaining = Steps::new(before.steps_remaining.get() * part);
                let weight = before.weight * (1.0 + part);
                let elapsed = Seconds::new(before.elapsed.get() + 3600.0);
                let isolated_elapsed = Seconds::new(before.isolated_elapsed.get() + 3600.0 * part);
                let after = ActiveJob { steps_remaining, weight, elapsed, isolated_elapsed, ..before };
                session.update(after).unwrap();
            }
        }
        let context = format!("{name} on {instance}, {n_jobs} jobs, after {change:?}");
        let again = session.decide().unwrap_or_else(|error| panic!("{context}: {error}")).clone();
        // A policy that decided before would add to the isolated time that it recorded.
        let mut scratch = policy(name);
        let anew = scratch.allocate(session.problem()).unwrap();
        let (again_report, anew_report) = (again.objective.unwrap(), anew.objective.unwrap());
        assert!(again_report.optimal, "{context}: {again_report:?}, {:?}", again.solve.fallbacks);
        let agree = |a: f64, b: f64| (a - b).abs() <= AGREEMENT * a.abs().max(b.abs()).max(1e-9);
        assert!(agree(again_report.value, anew_report.value), "{context}: {again_report:?} {anew_report:?}");
        assert!(agree(again_report.bound, anew_report.bound), "{context}: {again_report:?} {anew_report:?}");
        assert_eq!(again.solve.size, anew.solve.as_ref().unwrap().size, "{context}");
        let written_out = session.written_out().unwrap().unwrap();
        let value = scratch.value_of(session.problem(), &written_out.allocation).unwrap();
        assert!(
            name.contains("hierarchical") || agree(value, again_report.value),
            "{context}: {value} {again_report:?}"
        );
        let utilization: f64 = written_out.allocation.shares().rows().flatten().sum();
        assert!(utilization > 0.0, "{context}");
        if name.contains("water_filling") || name.contains("hierarchical") {
            // Levels are equal for all lexicographic optima.
            let (again, anew) = (written_out.levels.unwrap(), anew.levels.unwrap());
            let apart = again.iter().zip(&anew).find(|(a, b)| (*a - *b).abs() > 1e-6 * b.abs());
            assert!(apart.is_none(), "{context}: {apart:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_session_finds_the_optimum_that_a_decision_from_scratch_finds(
        which in 0..POLICIES.len(),
        alike in any::<bool>(),
        n_jobs in 2_usize..60,
        seed in 0_u64..1_000,
        changes in changes(),
    ) {
        let instance = if alike {
            Instance::Matrix { throughputs: "osdi20".to_owned(), distinct: false }
        } else {
            Instance::Random { types: 3, heterogeneity: 10.0, density: 1.0 }
        };
        play(POLICIES[which], &instance, n_jobs, seed, &changes);
    }
}

#[test]
fn finish_time_fairness_measures_against_the_isolated_time_that_jobs_state() {
    let name = "finish_time_fairness_perf";
    for distinct in [false, true] {
        let instance = Instance::Matrix { throughputs: "osdi20".to_owned(), distinct };
        let changes: Vec<Change> = (0..8).map(|job| Change::Progress(job, 0.1 + 0.1 * job as f64)).collect();
        play(name, &instance, 12, 3, &changes);
        let mut session = Session::new(policy(name), drawn(&instance, 12, 3)).unwrap();
        let value = |session: &mut Session| session.decide().unwrap().objective.clone().unwrap().value;
        let before = value(&mut session);
        for position in 0..12 {
            let (job, _) = job(session.problem(), position);
            let isolated_elapsed = Seconds::new(job.isolated_elapsed.get() + 1e6);
            session.update(ActiveJob { isolated_elapsed, ..job }).unwrap();
        }
        assert!(value(&mut session) < 0.9 * before, "more isolated time is a smaller ratio than {before}");
    }
}

#[test]
fn a_session_of_many_unlike_jobs_goes_on_from_prices() {
    let instance = Instance::Random { types: 3, heterogeneity: 10.0, density: 1.0 };
    let changes = [Change::Arrival(3), Change::Departure(400)];
    for name in ["max_min_fairness_perf", "proportional_fairness", "max_sum_throughput_perf"] {
        play(name, &instance, 700, 1, &changes);
        let asked = |session: &mut Session| {
            let solve = &session.decide().unwrap().solve;
            assert!(
                solve.fallbacks.is_empty() && solve.strategy == PolicyStrategy::Singles,
                "{name}: {solve:?}"
            );
            solve.iterations
        };
        let mut session = Session::new(policy(name), drawn(&instance, 2000, 0)).unwrap();
        asked(&mut session);
        let (mut warm, mut cold) = (0, 0);
        for id in 0..10 {
            session.remove(JobId::from_index(id)).unwrap();
            warm += asked(&mut session);
            cold += asked(&mut Session::new(policy(name), session.problem().clone()).unwrap());
        }
        // Of those without prices to begin with, samples are not counted.
        assert!(warm < cold, "{name}: asked {warm} times in 10 decisions, {cold} in those of ten others");
        // A session that forgets begins as a new one does.
        session.forget();
        let other = asked(&mut Session::new(policy(name), session.problem().clone()).unwrap());
        assert_eq!(asked(&mut session), other, "{name}");
    }
}

#[test]
fn few_sweeps_lead_from_one_decision_to_the_next() {
    let instance = Instance::Matrix { throughputs: "osdi20".to_owned(), distinct: false };
    for name in ["max_min_fairness_perf", "max_sum_throughput_perf"] {
        let mut session = Session::new(policy(name), drawn(&instance, 500, 0)).unwrap();
        let cold = session.decide().unwrap().solve.iterations;
        let mut warm = 0;
        for id in 0..20 {
            session.remove(JobId::from_index(id)).unwrap();
            let decided = session.decide().unwrap();
            assert!(decided.solve.fallbacks.is_empty(), "{:?}", decided.solve.fallbacks);
            assert_eq!(decided.solve.strategy, PolicyStrategy::Singles, "{name}");
            warm += decided.solve.iterations;
        }
        assert!(warm < 20 * cold, "{name}: {warm} sweeps in 20 decisions, {cold} in the first");
    }
}

#[test]
fn a_job_that_changes_leaves_its_class_and_comes_back() {
    let throughputs: Arc<Throughputs> = Throughputs::embedded("osdi20").unwrap();
    let cluster = "v100=4,p100=4,k80=4".parse().unwrap();
    let jobs = vec![Job::new("ResNet-50 (batch size 64)").steps(120_000); 20];
    let problem = Problem::new(&cluster, &jobs, &throughputs).unwrap();
    let mut session = Session::new(policy("max_min_fairness_perf"), problem).unwrap();
    let value = |session: &mut Session| session.decide().unwrap().objective.clone().unwrap().value;
    let (alike, n_alike) = (value(&mut session), session.n_classes());
    let (job, speeds) = job(session.problem(), 7);
    session.update(ActiveJob { weight: 3.0, ..job.clone() }).unwrap();
    let apart = value(&mut session);
    let anew = policy("max_min_fairness_perf").allocate(session.problem()).unwrap().objective.unwrap().value;
    assert_eq!((n_alike, session.n_classes()), (1, 2));
    assert!(apart < alike && (apart - anew).abs() <= AGREEMENT * anew, "{alike} {apart} {anew}");
    let throughput = |id: JobId| {
        let shares = session.shares(id).unwrap();
        shares.iter().zip(&speeds).map(|(share, speed)| share * speed).sum::<f64>()
    };
    assert!(throughput(job.id) > 2.0 * throughput(JobId::from_index(8)));
    session.update(job).unwrap();
    assert!((value(&mut session) - alike).abs() <= AGREEMENT * alike && session.n_classes() == 1);
}

#[test]
fn what_a_session_cannot_tell_by_classes_it_refuses() {
    let instance = Instance::Matrix { throughputs: "osdi20".to_owned(), distinct: false };
    for (name, reason) in [
        ("max_min_fairness_packed", "share workers"),
        ("max_sum_throughput_normalized_by_cost_perf_SLOs", "drop constraints"),
        ("max_min_fairness_strategy_proof", "decides once more"),
    ] {
        let error = Session::new(policy(name), drawn(&instance, 9, 0)).unwrap_err().to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
    let mut session = Session::new(policy("max_min_fairness"), drawn(&instance, 9, 0)).unwrap();
    let (known, speeds) = job(session.problem(), 4);
    assert!(session.insert(known.clone(), &speeds).unwrap_err().to_string().contains("there already"));
    let unknown = ActiveJob { id: JobId::from_index(77), ..known.clone() };
    assert!(session.remove(unknown.id).unwrap_err().to_string().contains("no job 77"));
    assert!(session.update(unknown.clone()).is_err());
    assert!(session.insert(unknown.clone(), &[0.0, 0.0, 0.0]).is_err());
    assert!(session.insert(ActiveJob { weight: -1.0, ..unknown }, &speeds).is_err());
    assert_eq!(session.problem().n_jobs(), 9);
    for id in 0..9 {
        session.remove(JobId::from_index(id)).unwrap();
    }
    assert!(session.decide().unwrap().objective.is_none());
    session.insert(known.clone(), &speeds).unwrap();
    session.decide().unwrap();
    assert!(session.shares(known.id).unwrap().iter().sum::<f64>() > 0.99);
}
