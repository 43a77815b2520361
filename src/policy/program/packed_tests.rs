//! Priced pairs against programs that have every pair as a column.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::{Strategy, ValueTree};

use super::policy::Decided;
use super::program_columns::PricingLimits;
use super::*;
use crate::index::{EntityId, Id, JobId, JobIndex, WorkerTypeId};
use crate::policy::{Decision, Policy};
use crate::problem::{Colocation, Entity, InnerRule, Problem, ProblemBuilder, matrix_columns};
use crate::program::expression::Vocabulary;
use crate::program::{ConstraintText, Objective, ObjectiveText, Program, Sense};
use crate::solver::{Interrupt, Limits, registry};
use crate::throughput::Throughputs;
use crate::units::{DollarsPerWorkerHour, Seconds, Steps};
use crate::workload::Combination;

/// The objectives of the packed policies, and one that minimizes over a sum.
pub(super) fn objectives() -> Vec<(Sense, &'static str, bool)> {
    vec![
        (
            Sense::Maximize,
            "min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))",
            false,
        ),
        (
            Sense::Maximize,
            "lexicographic_min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))",
            false,
        ),
        (Sense::Minimize, "max_over_jobs(steps_remaining / throughput)", false),
        (
            Sense::Minimize,
            "max_over_jobs((elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput))",
            false,
        ),
        (Sense::Maximize, "sum_over_jobs(sum_over_worker_types(throughput_on(type) / price(type)))", true),
        (Sense::Maximize, "sum_over_jobs(weight * throughput / equal_share_throughput)", false),
    ]
}

pub(super) fn policy((sense, text, droppable): (Sense, &str, bool), priced: bool) -> ProgramPolicy {
    let mut text = ObjectiveText::new(sense, text);
    if droppable {
        text.for_each_job = vec![ConstraintText::droppable("throughput >= steps_remaining / slo_remaining")];
    }
    let objective = Objective::check(&text, Vocabulary::default()).unwrap();
    let mut policy = ProgramPolicy::try_new(ProgramOptions {
        name: "tested".to_owned(),
        objective,
        view: crate::policy::ThroughputView::Measured,
        pairs: true,
        refine: Refine::Utilization,
        hierarchical: false,
        discounted: false,
        fidelity: crate::spec::Fidelity::Corrected,
        backend: None,
        strategy: None,
        time_limit: None,
        interrupt: Interrupt::default(),
    })
    .unwrap();
    let all_priced = PricingLimits { unpriced_max: 0, ..PricingLimits::default() };
    policy.pricing = if priced { all_priced } else { PricingLimits::UNPRICED };
    policy
}

fn interior((sense, text, _): (Sense, &str, bool), pairs: bool, backend: Option<&str>) -> ProgramPolicy {
    let objective = Objective::check(&ObjectiveText::new(sense, text), Vocabulary::default()).unwrap();
    let options = policy((sense, text, false), false).options().clone();
    let backend = backend.map(str::to_owned);
    ProgramPolicy::try_new(ProgramOptions { objective, refine: Refine::Interior, pairs, backend, ..options })
        .unwrap()
}

#[derive(Clone, Debug)]
pub(super) struct Drawn {
    row: prop::sample::Index,
    weight: f64,
    hours: f64,
    /// Time to the SLO, relative to the time that the job takes alone on the fastest workers.
    slack: f64,
}

pub(super) fn drawn(most: usize) -> impl Strategy<Value = Vec<Drawn>> {
    let job = (any::<prop::sample::Index>(), 0.5_f64..4.0, 0.2_f64..50.0, 1.05_f64..8.0);
    let job = job.prop_map(|(row, weight, hours, slack)| Drawn { row, weight, hours, slack });
    prop::collection::vec(job, 2..=most)
}

/// Jobs of any type of the standard matrix on few workers, no two alike.
fn problem(jobs: &[Drawn], workers: u32) -> Problem {
    problem_of(jobs, workers, usize::MAX)
}

/// Jobs of at most `n_rows` types, which lie far apart in the standard matrix, on few workers.
pub(super) fn problem_of(jobs: &[Drawn], workers: u32, n_rows: usize) -> Problem {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let prices = [2.48, 1.46, 0.45];
    let kinds = ["v100", "p100", "k80"].map(|name| (name, workers));
    let mut cluster = crate::Cluster::try_new(kinds).unwrap();
    for (kind, price) in prices.into_iter().enumerate() {
        cluster.set_price(WorkerTypeId::from_index(kind), DollarsPerWorkerHour::new(price));
    }
    let columns = matrix_columns(&cluster, &throughputs).unwrap();
    let rows: Vec<_> =
        throughputs.rows().ids().filter(|row| throughputs.rows()[*row].scale_factor <= 2).collect();
    let step = rows.len().div_ceil(n_rows).max(1);
    let rows: Vec<_> = rows.into_iter().step_by(step).collect();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for (name, weight) in [("one", 1.0), ("other", 2.0)] {
        let (name, inner) = (name.to_owned(), InnerRule::Fairness);
        builder.entity(Entity { name, weight, inner, parent: None });
    }
    for (index, drawn) in jobs.iter().enumerate() {
        let row = rows[drawn.row.index(rows.len())];
        let speeds: Vec<f64> =
            columns.iter().map(|column| column.map_or(0.0, |c| throughputs.alone(row, c))).collect();
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        let job = crate::problem::ActiveJob {
            scale_factor: throughputs.rows()[row].scale_factor,
            weight: drawn.weight,
            steps_remaining: Steps::new(drawn.hours * 3600.0 * fastest),
            elapsed: Seconds::new(drawn.hours * 100.0),
            slo_remaining: Some(Seconds::new(drawn.hours * 3600.0 * drawn.slack)),
            row: Some(row),
            entity: Some(EntityId::from_index(index % 2)),
            ..crate::problem::ActiveJob::new(JobId::from_index(index))
        };
        builder.job(job, &speeds);
    }
    builder.colocation(Colocation::Rows { throughputs, columns });
    builder.build().unwrap()
}

/// Six jobs of one type on one v100 and one k80; all but the first say of themselves that they run on the k80 alone.
fn kept_from_the_v100() -> Problem {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let cluster = crate::Cluster::try_new([("v100", 1), ("k80", 1)]).unwrap();
    let columns = matrix_columns(&cluster, &throughputs).unwrap();
    let row = throughputs.find("ResNet-18 (batch size 16)", 1).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for index in 0..6 {
        let job = crate::problem::ActiveJob {
            row: Some(row),
            ..crate::problem::ActiveJob::new(JobId::from_index(index))
        };
        builder.job(job, &[if index == 0 { 5.0 } else { 0.0 }, 1.0 + index as f64 / 10.0]);
    }
    builder.colocation(Colocation::Rows { throughputs, columns });
    builder.build().unwrap()
}

#[test]
fn two_share_only_workers_that_both_run_on_alone() {
    let problem = kept_from_the_v100();
    let objective = objectives()[0];
    let values = [false, true].map(|priced| {
        let decision = decide(&mut policy(objective, priced), &problem);
        for (row, combination) in decision.allocation.combinations().enumerate() {
            let on_v100 = decision.allocation.shares().row(row)[0];
            assert!(!combination.is_pair() || on_v100 == 0.0, "{combination:?} has {on_v100} of the v100");
        }
        decision.objective.unwrap().value
    });
    assert!((values[0] - values[1]).abs() <= 1e-8 * values[0], "{values:?}");
}

fn decide(policy: &mut ProgramPolicy, problem: &Problem) -> Decision {
    let decision = policy.allocate(problem).unwrap();
    assert!(decision.objective.as_ref().unwrap().optimal, "{:?}", decision.objective);
    decision
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn priced_pairs_lose_nothing(jobs in drawn(14), workers in 2_u32..5) {
        let problem = problem(&jobs, workers);
        for objective in objectives() {
            let every = decide(&mut policy(objective, false), &problem);
            let priced = decide(&mut policy(objective, true), &problem);
            prop_assert_eq!(every.dropped.len(), priced.dropped.len());
            let fallbacks = priced.solve.unwrap().fallbacks;
            prop_assert!(fallbacks.is_empty(), "{fallbacks:?}");
            if every.dropped != priced.dropped {
                // The constraints of other jobs may be dropped, as long as they are as many.
                continue;
            }
            let (one, other) = (every.objective.unwrap(), priced.objective.unwrap());
            prop_assert!((one.value - other.value).abs() <= 1e-8 * one.value.abs(), "{}: {one:?} {other:?}", objective.1);
            if let (Some(one), Some(other)) = (every.levels.filter(|_| objective.1.starts_with("lexi")), priced.levels) {
                for (one, other) in one.iter().zip(&other) {
                    prop_assert!((one - other).abs() <= 1e-6 * one.abs(), "{one} {other}");
                }
            }
        }
    }
}

/// The problem with every pair's throughputs written out, and no rows of the matrix.
fn with_pairs_given(problem: &Problem) -> Problem {
    let mut builder = ProblemBuilder::new(Arc::clone(problem.cluster()));
    problem.entities().iter().for_each(|entity| {
        builder.entity(entity.clone());
    });
    for (index, job) in problem.jobs().enumerate() {
        let job = crate::problem::ActiveJob { row: None, ..job.clone() };
        builder.job(job, problem.throughput().row(index));
    }
    let jobs: Vec<JobIndex> = problem.jobs().ids().collect();
    let two = |(place, first): (usize, &JobIndex)| {
        jobs[place + 1..].iter().map(|second| Combination::pair(*first, *second)).collect::<Vec<_>>()
    };
    let given = jobs.iter().enumerate().flat_map(two).filter_map(|pair| {
        let both = problem.cluster().types().ids().map(|kind| problem.colocated(pair, kind));
        let both: Vec<[f64; 2]> = both.map(Option::unwrap_or_default).collect();
        both.iter().any(|both| both[0] > 0.0).then_some((pair, both))
    });
    builder.colocation(Colocation::Pairs(given.collect()));
    builder.build().unwrap()
}

#[test]
fn pairs_given_one_by_one_are_grouped_as_those_of_a_matrix() {
    for seed in 0..6 {
        let jobs = assorted(24, seed);
        let problem = problem_of(&jobs, 3, 5);
        let given = with_pairs_given(&problem);
        for objective in objectives() {
            for priced in [false, true] {
                let by_row = decide(&mut policy(objective, priced), &problem);
                let by_pair = decide(&mut policy(objective, priced), &given);
                let [one, other] = [&by_row, &by_pair].map(|of| of.objective.clone().unwrap());
                let near = (one.value - other.value).abs() <= 1e-8 * one.value.abs();
                assert!(near, "{} {priced}: {one:?} {other:?}", objective.1);
            }
        }
        // what they ask for aside, they are of five kinds
        let sum = (Sense::Maximize, "sum_over_jobs(throughput / equal_share_throughput)", false);
        let [by_row, by_pair] = [&problem, &given].map(|of| decide(&mut policy(sum, false), of));
        let classes = [&by_row, &by_pair].map(|of| of.solve.as_ref().unwrap().size.classes);
        assert!(classes[0] == classes[1] && classes[0] <= 5, "{classes:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Levels and sums are raised from a known start, and end where the chain ends from nothing.
    #[test]
    fn a_known_start_leads_to_the_optimum(jobs in drawn(14), workers in 2_u32..5) {
        let problem = problem(&jobs, workers);
        let refined = [0, 2, 3, 4, 5].map(|objective| (objective, Refine::Utilization));
        for (objective, refine) in refined.into_iter().chain([(5, Refine::None)]) {
            let objective = objectives()[objective];
            let policy = || {
                let mut policy = policy(objective, false);
                policy.options.refine = refine;
                policy
            };
            let mut decided = policy();
            let fresh = decided.state();
            let started = decide(&mut decided, &problem);
            // whatever was decided before
            let longer = |(at, job): (usize, &Drawn)| Drawn { hours: 900.0 + 7.0 * at as f64, ..job.clone() };
            let other: Vec<Drawn> = jobs.iter().rev().enumerate().map(longer).collect();
            decide(&mut decided, &self::problem(&other, workers));
            decided.restore(&fresh).unwrap();
            prop_assert_eq!(&decide(&mut decided, &problem).allocation, &started.allocation, "{}", objective.1);
            let mut chain = policy();
            let linear = registry::default_chain(&Program::new(Sense::Maximize));
            chain.solve_by(linear, registry::conic_chain(), Limits::default());
            let chain = decide(&mut chain, &problem);
            let report = started.solve.unwrap();
            prop_assert!(report.fallbacks.is_empty(), "{:?}", report.fallbacks);
            let paired = started.allocation.combinations().iter().any(Combination::is_pair);
            prop_assert!(!paired || report.backend.as_deref() == Some("simplex"), "{:?}", report.backend);
            let (one, other) = (started.objective.unwrap(), chain.objective.unwrap());
            // An interior-point method alone is as exact as its certificates say.
            let near = if cfg!(feature = "highs") { 1e-7 } else { 1e-6 };
            prop_assert!((one.value - other.value).abs() <= near * one.value.abs(), "{}: {one:?} {other:?}", objective.1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Where there are many jobs to a kind, their time is pooled, and they get what programs over all pairs give them.
    #[test]
    fn kinds_lose_nothing(jobs in drawn(18), workers in 2_u32..6, n_rows in 1_usize..5) {
        let problem = problem_of(&jobs, workers, n_rows);
        let entities = [false; 5].into_iter().chain([true]);
        let cases = objectives().into_iter().take(5).chain([objectives()[1]]).zip(entities);
        for (objective, entities) in cases {
            let [every, mut pooled] = [false, true].map(|priced| {
                let mut policy = policy(objective, priced);
                policy.options.hierarchical = entities;
                policy
            });
            let every = decide(&mut { every }, &problem);
            let Decided { optimum: solved, decision, .. } = pooled.solve(&problem).unwrap();
            let report = decision.solve.clone().unwrap();
            let has_pairs = every.solve.as_ref().unwrap().size.columns > 3 * jobs.len() + 1;
            // An interior-point method may need a second backend, and the next program cannot always hold its level.
            if cfg!(feature = "highs") {
                prop_assert!(report.fallbacks.is_empty(), "{:?}", report.fallbacks);
                let pooled = solved.answer.is_none() || jobs.len() < 2 * n_rows || !has_pairs;
                prop_assert!(pooled, "programs over members were written: {}", objective.1);
            }
            let (one, other) = (every.objective.unwrap(), decision.objective.unwrap());
            // An interior-point method's answer is one within the tolerance of certificates.
            let near = if cfg!(feature = "highs") { 1e-8 } else { 1e-6 };
            prop_assert!((one.value - other.value).abs() <= near * one.value.abs(), "{}: {one:?} {other:?}", objective.1);
            prop_assert!((other.bound - other.value).abs() <= 1e-8 * one.value.abs(), "{}: {other:?}", objective.1);
            if let (Some(one), Some(other)) = (every.levels.filter(|_| objective.1.starts_with("lexi")), decision.levels) {
                for (one, other) in one.iter().zip(&other) {
                    // Where programs end inside, levels are held to fewer digits.
                    let near = if cfg!(feature = "highs") { 1e-6 } else { 1e-3 };
                    prop_assert!((one - other).abs() <= near * one.abs(), "{one} {other}");
                }
            }
        }
    }
}

/// Where not all deadlines can be kept, the program over kinds drops as few as programs over all pairs, and most of the time no
/// such program is needed; but where jobs whose deadline is dropped are asked for something else, too.
#[test]
fn kinds_drop_as_few_as_programs() {
    let (mut overloaded, mut pooled) = (0, 0);
    for (seed, hard) in (0..24).map(|seed| (seed, seed % 6 == 5)) {
        let n_rows = 1 + seed as usize % 3;
        let problem = problem_of(&assorted(32, seed), 2, n_rows);
        let decisions = [false, true].map(|priced| {
            let mut policy = policy(objectives()[4], priced);
            if hard {
                let (sense, text, _) = objectives()[4];
                let mut text = ObjectiveText::new(sense, text);
                let deadline = ConstraintText::droppable("throughput >= steps_remaining / slo_remaining");
                let least = ConstraintText::hard("throughput >= 0.02 * equal_share_throughput");
                text.for_each_job = vec![deadline, least];
                let objective = Objective::check(&text, Vocabulary::default()).unwrap();
                let pricing = policy.pricing;
                policy =
                    ProgramPolicy::try_new(ProgramOptions { objective, ..policy.options().clone() }).unwrap();
                policy.pricing = pricing;
            }
            let decision = policy.allocate(&problem).unwrap();
            (decision.dropped.len(), decision.solve.unwrap().size.columns)
        });
        let [(every, all), (few, columns)] = decisions;
        assert_eq!(every, few, "seed {seed}");
        overloaded += usize::from(every > 0 && !hard);
        pooled += usize::from(every > 0 && !hard && columns < all);
    }
    assert!(overloaded > 12 && 4 * pooled > 3 * overloaded, "{overloaded} overloaded, {pooled} by kinds");
}

/// Jobs with pairs of which some are worth more than time slicing, some less.
pub(super) fn assorted(n: usize, seed: u32) -> Vec<Drawn> {
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    let mut next = || {
        // xorshift (Marsaglia 2003)
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        f64::from(state) / f64::from(u32::MAX)
    };
    let strategy = any::<prop::sample::Index>();
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    (0..n)
        .map(|_| Drawn {
            row: strategy.new_tree(&mut runner).unwrap().current(),
            weight: 0.5 + 3.5 * next(),
            hours: 0.2 + 50.0 * next(),
            slack: 1.05 + 7.0 * next(),
        })
        .collect()
}

/// A search for pairs that is cut off long before its end bounds the worth of the pairs that it did not price: its
/// bound holds over all pairs.
#[test]
fn a_search_for_pairs_that_is_cut_off_bounds_what_it_missed() {
    for objective in objectives() {
        let mut cut_off = 0;
        for seed in 1..12 {
            let problem = problem(&assorted(16, seed), 3);
            let every = policy(objective, false).allocate(&problem).unwrap();
            let mut short = policy(objective, true);
            short.pricing.gain_max = 0.1;
            let short = short.allocate(&problem).unwrap();
            if every.dropped != short.dropped {
                continue;
            }
            let (exact, short) = (every.objective.unwrap(), short.objective.unwrap());
            let sign = if exact.sense == Sense::Maximize { 1.0 } else { -1.0 };
            let (missed, left) = (sign * (exact.value - short.value), sign * (short.bound - exact.value));
            let digits = 1e-7 * exact.value.abs();
            assert!(missed >= -digits && left >= -digits, "{}: {exact:?} {short:?}", objective.1);
            assert!(short.gap_relative <= 0.2, "{}: {short:?}", objective.1);
            cut_off += usize::from(short.gap_relative > 1e-5);
        }
        assert!(cut_off > 0, "{}: every search went to its end", objective.1);
    }
}

/// Every combination's shares, by its members.
fn shares(decision: &Decision) -> Vec<(Combination<JobIndex>, Vec<f64>)> {
    let allocation = &decision.allocation;
    allocation
        .combinations()
        .enumerate()
        .map(|(id, who)| (*who, allocation.shares().row(id).to_vec()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_centre_over_classes_is_the_centre_over_jobs(mut jobs in drawn(4), copies in 1_usize..4, workers in 2_u32..5) {
        for (objective, pairs) in
            objectives().into_iter().filter(|(_, _, droppable)| !droppable).flat_map(|o| [(o, true), (o, false)])
        {
            for job in &mut jobs {
                job.weight = 1.0;
            }
            let mut copied: Vec<Drawn> = jobs.iter().flat_map(|job| std::iter::repeat_n(job.clone(), copies)).collect();
            for (index, job) in copied.iter_mut().enumerate() {
                job.slack = 2.0 + index as f64;
            }
            let problem = problem(&copied, workers);
            let decide = |apart: bool| {
                let mut policy = interior(objective, pairs, None);
                if apart {
                    // A datum that no term reads, and that differs between all jobs.
                    policy.data.push("slo_remaining".to_owned());
                }
                let decision = decide(&mut policy, &problem);
                let report = decision.solve.clone().unwrap();
                assert!(report.fallbacks.is_empty(), "{}: {:?}", objective.1, report.fallbacks);
                assert!(!apart || report.size.classes == copied.len());
                decision
            };
            let [classes, alone] = [false, true].map(|apart| shares(&decide(apart)));
            for ((who, one), (again, two)) in classes.iter().zip(&alone) {
                prop_assert_eq!(who, again);
                for (one, two) in one.iter().zip(two) {
                    prop_assert!((one - two).abs() <= 1e-3, "{} {pairs}: {who:?} {one} {two}", objective.1);
                }
            }
        }
    }

    /// Clarabel over jobs ends near the centre, not at it: no optimum has a larger sum of logarithms than the centre.
    #[test]
    fn no_optimum_is_more_central_than_the_centre(jobs in drawn(4), copies in 1_usize..4, workers in 2_u32..5) {
        let objective = objectives()[0];
        let copied: Vec<Drawn> = jobs.iter().flat_map(|job| std::iter::repeat_n(job.clone(), copies)).collect();
        let problem = problem(&copied, workers);
        for pairs in [true, false] {
            let [centre, clarabel] = [None, Some("clarabel")].map(|backend| {
                let decision = decide(&mut interior(objective, pairs, backend), &problem);
                assert_eq!(decision.solve.as_ref().unwrap().backend.as_deref(), backend.or(Some("centre")));
                distances(&problem, &decision)
            });
            let inside = |place: &usize| centre[*place] > 1e-5;
            let apart = (0..centre.len()).filter(inside).map(|at| (clarabel[at].max(1e-12) / centre[at]).ln());
            let more: f64 = apart.sum();
            prop_assert!(more <= 1e-3 * centre.len() as f64, "{pairs}: more central by {more}");
        }
    }
}

/// Distances of a max-min optimum from each constraint: shares, then idle time, idle workers, and level above the least.
fn distances(problem: &Problem, decision: &Decision) -> Vec<f64> {
    let (mut time, mut idle) = (vec![1.0; problem.n_jobs()], Vec::new());
    idle.extend(problem.cluster().types().iter().map(|kind| f64::from(kind.n_workers)));
    let mut distances = Vec::new();
    let mut all = shares(decision);
    all.sort_by_key(|(combination, _)| *combination);
    for (combination, row) in all {
        for (kind, share) in row.iter().enumerate() {
            idle[kind] -= f64::from(problem.jobs()[combination.first()].scale_factor) * share;
            combination.members().for_each(|job| time[job.index()] -= share);
        }
        distances.extend(row);
    }
    let levels = decision.levels.as_ref().unwrap();
    let least = levels.iter().copied().fold(f64::INFINITY, f64::min);
    distances.extend(time.into_iter().chain(idle).chain(levels.iter().map(|level| level - least)));
    distances
}
