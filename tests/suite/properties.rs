//! Properties that the literature promises of each policy, over random clusters and jobs, through the catalog.
//!
//! | property | holds for | known not to hold for |
//! |---|---|---|
//! | feasibility | every policy | `fifo` as published, which is not asked here |
//! | order of jobs does not matter | every program: objective and throughputs | rules that go by arrival |
//! | rescaling a throughput row | all that normalize, or know the work to be done | sums of raw steps |
//! | sharing incentive | max-min, water filling (equal weights); finish-time fairness of fresh jobs | sums; agnostic policies |
//! | Pareto efficiency | measured view, refined or filled to the last level | agnostic, refined otherwise, discounted |
//! | monotone in workers | makespan, sums, Nash welfare; levels if every type grows alike | levels if one type grows |
//! | saturation (water filling) | every `water_filling` policy, seen as it sees | |
//! | classes | every program: like jobs are as unlike ones | |

#![expect(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion::allocation::VIOLATION_MAX;
use apportion::index::{Id, JobId, JobIndex};
use apportion::policy::{Decision, Sense};
use apportion::problem::{ActiveJob, Colocation, ProblemBuilder};
use apportion::spec::Source;
use apportion::workload::Combination;
use apportion::{Catalog, Cluster, DollarsPerWorkerHour, Problem, Seconds, Steps};
use proptest::prelude::*;

const TYPES: [&str; 3] = ["v100", "p100", "k80"];

/// A job, apart from its place among the others.
#[derive(Clone, Debug)]
struct Drawn {
    speeds: [f64; 3],
    scale_factor: u32,
    weight: f64,
    steps: f64,
    elapsed: f64,
    slo: f64,
    /// The part of its throughput that a job beside it loses.
    demand: f64,
}

#[derive(Clone, Debug)]
struct Case {
    workers: [u32; 3],
    jobs: Vec<Drawn>,
}

impl Case {
    fn problem(&self) -> Problem {
        self.problem_with(&[])
    }

    /// The problem with extra columns, all pairs of one scale factor allowed.
    fn problem_with(&self, extra: &[(&str, Vec<f64>)]) -> Problem {
        let mut cluster = Cluster::try_new(TYPES.into_iter().zip(self.workers)).unwrap();
        for (name, price) in TYPES.into_iter().zip([2.48, 1.46, 0.45]) {
            cluster = cluster.with_price(name, DollarsPerWorkerHour::new(price)).unwrap();
        }
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        let mut pairs = BTreeMap::new();
        for (index, drawn) in self.jobs.iter().enumerate() {
            let job = ActiveJob {
                scale_factor: drawn.scale_factor,
                weight: drawn.weight,
                steps_remaining: Steps::new(drawn.steps),
                elapsed: Seconds::new(drawn.elapsed),
                slo_remaining: Some(Seconds::new(drawn.slo)),
                ..ActiveJob::new(JobId::from_index(index))
            };
            builder.job(job, &drawn.speeds);
            for (other, beside) in self.jobs[..index].iter().enumerate() {
                if beside.scale_factor == drawn.scale_factor {
                    let together = |j: usize| {
                        [beside.speeds[j] * (1.0 - drawn.demand), drawn.speeds[j] * (1.0 - beside.demand)]
                    };
                    let pair = Combination::pair(JobIndex::from_index(other), JobIndex::from_index(index));
                    pairs.insert(pair, vec![together(0), together(1), together(2)]);
                }
            }
        }
        builder.colocation(Colocation::Pairs(pairs));
        for (name, column) in extra {
            builder.extra(*name, column.clone());
        }
        builder.build().unwrap()
    }

    fn equal_share(&self, job: usize) -> f64 {
        let all: u32 = self.workers.iter().sum();
        let parts = self.jobs[job].speeds.iter().zip(self.workers);
        parts.map(|(speed, n)| speed * f64::from(n)).sum::<f64>() / f64::from(all)
    }

    /// Throughput of the isolated share: 1/n of every type, no more than all the time.
    fn isolated(&self, job: usize) -> f64 {
        let Drawn { speeds, scale_factor, .. } = &self.jobs[job];
        let n = self.jobs.len() as f64 * f64::from(*scale_factor);
        let time = f64::from(self.workers.iter().sum::<u32>()) / n;
        let parts = speeds.iter().zip(self.workers);
        parts.map(|(speed, w)| speed * f64::from(w) / n).sum::<f64>() / time.max(1.0)
    }

    /// The level that max-min policies raise, at these throughputs.
    fn level(&self, job: usize, throughput: f64) -> f64 {
        let Drawn { scale_factor, weight, .. } = self.jobs[job];
        f64::from(scale_factor) * throughput / (weight * self.equal_share(job))
    }
}

/// Speeds are drawn from a continuum, so that optima are unique but for accidents; some jobs cannot run somewhere.
fn drawn() -> impl Strategy<Value = Drawn> {
    let speeds = (1.0_f64..10.0, 0.5_f64..5.0, 0.0_f64..2.0)
        .prop_map(|(a, b, c)| [a, b, if c < 0.3 { 0.0 } else { c }]);
    let kind = (speeds, prop::sample::select(vec![1_u32, 1, 2]), 0.5_f64..3.0);
    (kind, 1e3_f64..1e5, 0.0_f64..1e4, 1e3_f64..1e5, 0.1_f64..0.7).prop_map(
        |((speeds, scale_factor, weight), steps, elapsed, slo, demand)| Drawn {
            speeds,
            scale_factor,
            weight,
            steps,
            elapsed,
            slo,
            demand,
        },
    )
}

/// Few workers for the jobs there are, so that most have to share or wait.
fn cases(most: usize) -> impl Strategy<Value = Case> {
    ([2_u32..4, 1_u32..4, 1_u32..3], prop::collection::vec(drawn(), 1..=most))
        .prop_map(|(workers, jobs)| Case { workers, jobs })
}

/// Jobs of one worker and one weight.
fn alike(mut case: Case) -> Case {
    for job in &mut case.jobs {
        (job.scale_factor, job.weight) = (1, 1.0);
    }
    case
}

fn decide(policy: &str, problem: &Problem) -> Decision {
    let mut policy = Catalog::embedded().policy(policy).unwrap();
    policy.allocate(problem).unwrap_or_else(|error| panic!("{}: {error}", policy.name()))
}

fn objective(policy: &str, case: &Case) -> f64 {
    decide(policy, &case.problem()).objective.unwrap().value
}

fn throughputs(decision: &Decision) -> Vec<f64> {
    decision.allocation.effective_throughput().iter().copied().collect()
}

fn programs() -> Vec<String> {
    let catalog = Catalog::embedded();
    let is_program =
        |name: &&str| matches!(catalog.document(name).unwrap().kind, apportion::spec::PolicyKind::Program(_));
    catalog.names().into_iter().filter(is_program).map(str::to_owned).collect()
}

/// Largest relative difference of two vectors.
fn apart(one: &[f64], other: &[f64]) -> f64 {
    let size = one.iter().chain(other).fold(1e-9_f64, |most, value| most.max(value.abs()));
    one.iter()
        .zip(other)
        .map(|(a, b)| (a - b).abs() / a.abs().max(b.abs()).max(1e-3 * size))
        .fold(0.0, f64::max)
}

fn close(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() <= tolerance * one.abs().max(other.abs()).max(1.0)
}

/// Whether a policy knows that worker types differ. An agnostic policy has many optima of the same value.
fn sees_speeds(policy: &str) -> bool {
    ["_perf", "_packed", "strategy_proof", "proportional_fairness"].iter().any(|part| policy.contains(part))
}

/// The relative error of throughputs at an optimum: the optimum of a logarithm is flat.
fn tolerance(policy: &str) -> f64 {
    if policy.contains("strategy_proof") || policy.contains("proportional") { 1e-3 } else { 1e-5 }
}

/// The largest Σ gain·throughput at which no job's throughput is below its `floor`: by a policy of the test's own, in the
/// language of policy files, with both as columns.
fn above_floors(case: &Case, gain: Vec<f64>, floor: Vec<f64>) -> f64 {
    let text = "format: apportion/policy-v1\nname: above_floors\nsummary: the most above floors\nkind: program\n\
                columns: {gain: s/steps >= 0, floor: steps/s >= 0}\nmaximize: sum_over_jobs(gain * throughput)\n\
                for_each_job: [throughput >= floor]\nrefine: none\n";
    let mut catalog = Catalog::embedded();
    catalog.add(Source::new("above_floors.yaml", text)).unwrap();
    let problem = case.problem_with(&[("gain", gain), ("floor", floor)]);
    catalog.policy("above_floors").unwrap().allocate(&problem).unwrap().objective.unwrap().value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// Checks time and capacity by the shares alone, and throughputs by the shares and the measured throughputs.
    #[test]
    fn every_policy_stays_within_time_and_capacity(case in cases(8)) {
        let problem = case.problem();
        let catalog = Catalog::embedded();
        let allocates = |name: &&str| !catalog.document(name).unwrap().decides_inside_rounds();
        for name in catalog.names().into_iter().filter(allocates) {
            // It matches jobs to single workers.
            let case = if name == "allox" { alike(case.clone()) } else { case.clone() };
            let problem = if name == "allox" { case.problem() } else { problem.clone() };
            let allocation = decide(name, &problem).allocation;
            let (mut time, mut used) = (vec![0.0; case.jobs.len()], [0.0; 3]);
            let mut reached = vec![0.0; case.jobs.len()];
            for (id, combination) in allocation.combinations().enumerate() {
                let members: Vec<usize> = combination.members().map(Id::index).collect();
                let scale_factor = case.jobs[members[0]].scale_factor;
                prop_assert!(members.iter().all(|m| case.jobs[*m].scale_factor == scale_factor), "{}", name);
                for (j, share) in allocation.shares().row(id).iter().enumerate() {
                    prop_assert!(*share >= 0.0, "{}: {}", name, share);
                    used[j] += f64::from(scale_factor) * share;
                    for m in &members {
                        time[*m] += share;
                        let beside = members.iter().find(|other| *other != m);
                        let kept = beside.map_or(1.0, |other| 1.0 - case.jobs[*other].demand);
                        reached[*m] += share * kept * case.jobs[*m].speeds[j];
                    }
                }
            }
            prop_assert!(time.iter().all(|time| *time <= 1.0 + VIOLATION_MAX), "{}: {:?}", name, time);
            for (used, workers) in used.into_iter().zip(case.workers) {
                prop_assert!(used <= f64::from(workers) * (1.0 + VIOLATION_MAX), "{}: {} of {}", name, used, workers);
            }
            let said = throughputs(&decide(name, &problem));
            prop_assert!(said.iter().zip(&reached).all(|(a, b)| close(*a, *b, 1e-9)), "{}: {:?} {:?}", name, said, reached);
        }
    }

    /// Other names, another order: the same objective, the same throughput for every job. (Rules go by arrival,
    /// which an order is; they are left out.) Where jobs are told apart by nothing that the policy sees, as under
    /// agnostic views, several optima are equally good, and only the objective is held.
    #[test]
    fn programs_do_not_look_at_names_or_order(case in cases(8), key in any::<u64>()) {
        let n = case.jobs.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|job| (key ^ (*job as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)).rotate_left(17));
        let jobs = order.iter().map(|job| case.jobs[*job].clone()).collect();
        let renamed = Case { jobs, ..case.clone() };
        for name in programs() {
            let (one, other) = (decide(&name, &case.problem()), decide(&name, &renamed.problem()));
            let (value, again) = (one.objective.as_ref().unwrap().value, other.objective.as_ref().unwrap().value);
            prop_assert!(close(value, again, 1e-6), "{}: {} {}", name, value, again);
            let (one, other) = (throughputs(&one), throughputs(&other));
            let back: Vec<f64> = order.iter().map(|job| one[*job]).collect();
            if sees_speeds(&name) {
                prop_assert!(apart(&back, &other) < tolerance(&name), "{}: {:?} {:?}", name, back, other);
            }
        }
    }

    /// Another unit for one job's steps (a row of throughputs times a factor, and the steps left with it) changes no job's
    /// time. Not so where raw steps of different jobs are added up.
    #[test]
    fn the_unit_of_a_step_does_not_matter(case in cases(7), job in any::<prop::sample::Index>(), factor in 0.02_f64..50.0) {
        let job = job.index(case.jobs.len());
        let mut rescaled = case.clone();
        rescaled.jobs[job].steps *= factor;
        rescaled.jobs[job].speeds.iter_mut().for_each(|speed| *speed *= factor);
        for name in programs().into_iter().filter(|name| !name.starts_with("max_sum")) {
            let (one, other) = (decide(&name, &case.problem()), decide(&name, &rescaled.problem()));
            if !name.starts_with("proportional") {
                // Nash welfare moves by a constant.
                let (one, other) = (one.objective.as_ref().unwrap().value, other.objective.as_ref().unwrap().value);
                prop_assert!(close(one, other, 1e-6), "{}: {} {}", name, one, other);
            }
            let (mut one, other) = (throughputs(&one), throughputs(&other));
            one[job] *= factor;
            let ratios: Vec<f64> = one.iter().zip(&other).map(|(a, b)| if *b > 0.0 { a / b } else { 1.0 }).collect();
            if sees_speeds(&name) {
                prop_assert!(apart(&ratios, &vec![1.0; ratios.len()]) < tolerance(&name), "{}: {:?}", name, ratios);
            }
        }
    }

    /// Sharing incentive: no job is worse off than with 1/n of the cluster. Jobs of one weight and one scale factor all
    /// have the same level there, so the lowest level is at least that one. With unequal weights or scale factors, the
    /// lowest isolated level is still reached, but a job may fall below its own: then only the minimum is held.
    /// A job that has not run yet has a finish-time fairness of exactly 1 in isolation.
    #[test]
    fn sharing_is_worth_it(mut case in cases(8)) {
        // A share of a type that has fewer workers than a job needs would be none.
        case.workers = case.workers.map(|workers| workers.max(2));
        let policies = ["max_min_fairness_perf", "max_min_fairness_packed", "max_min_fairness_water_filling_perf",
            "max_min_fairness_water_filling_packed"];
        let equal = alike(case.clone());
        for name in policies {
            let reached = throughputs(&decide(name, &equal.problem()));
            for (job, reached) in reached.iter().enumerate() {
                prop_assert!(*reached >= equal.isolated(job) * (1.0 - 1e-6), "{}: job {} {}", name, job, reached);
            }
            let floor = |job| case.level(job, case.isolated(job));
            let floor = (0..case.jobs.len()).map(floor).fold(f64::INFINITY, f64::min);
            let reached = throughputs(&decide(name, &case.problem()));
            for (job, reached) in reached.iter().enumerate() {
                prop_assert!(case.level(job, *reached) >= floor * (1.0 - 1e-6), "{}: job {} {}", name, job, reached);
            }
        }
        let mut fresh = case;
        fresh.jobs.iter_mut().for_each(|job| job.elapsed = 0.0);
        for name in ["finish_time_fairness_perf", "finish_time_fairness_packed"] {
            let worst = objective(name, &fresh);
            prop_assert!(worst <= 1.0 + 1e-6, "{}: {}", name, worst);
        }
    }

    /// No job can be raised without lowering another: with the throughput of every job as its floor, the sum cannot rise.
    /// Not promised by the agnostic policies, blind to speeds, nor after the discount of the strategy-proof one.
    #[test]
    fn refined_and_filled_optima_are_efficient(case in cases(8)) {
        for name in ["max_min_fairness_perf", "max_min_fairness_water_filling_perf", "finish_time_fairness_perf",
            "min_total_duration_perf", "max_sum_throughput_perf", "max_min_fairness_hierarchical_perf"]
        {
            let reached = throughputs(&decide(name, &case.problem()));
            let gain: Vec<f64> = (0..case.jobs.len()).map(|job| 1.0 / case.equal_share(job)).collect();
            let had: f64 = reached.iter().zip(&gain).map(|(value, gain)| value * gain).sum();
            let eased = |by: f64| {
                above_floors(&case, gain.clone(), reached.iter().map(|value| value * (1.0 - by)).collect())
            };
            // Floors must be eased for a solver's sake, and a slow job's floor can be worth much to a fast one.
            // The gain is concave in the easing, so this extrapolation is no less than the gain without easing.
            let most = 2.0 * eased(1e-7) - eased(2e-7);
            prop_assert!(most <= had * (1.0 + 1e-5), "{}: {} could be {}", name, had, most);
        }
    }

    /// One more worker of any type: no worse by an objective whose measure does not move with the cluster.
    /// Levels are normalized by an equal share of the cluster, which moves: a job alone on a fast and a slow
    /// worker (speeds 2 and 1) has level 2/1.5; with two fast ones 2/(5/3), which is less. They are held to
    /// growth of every type alike. Finish-time fairness compares with an isolated share, which grows, too.
    #[test]
    fn more_workers_are_no_worse(case in cases(7), kind in 0_usize..3) {
        let mut more = case.clone();
        more.workers[kind] += 1;
        let double = Case { workers: case.workers.map(|n| 2 * n), ..case.clone() };
        for name in programs() {
            let absolute = ["max_sum_throughput_perf", "max_sum_throughput_normalized_by_cost_perf", "proportional_fairness"];
            let larger = if absolute.contains(&name.as_str()) || name.starts_with("min_total_duration") {
                &more
            } else if name.starts_with("max_min_fairness") && !name.contains("strategy_proof") {
                &double
            } else {
                continue;
            };
            let before = decide(&name, &case.problem());
            if before.levels.is_some() && name.contains("hierarchical") {
                continue;
            }
            let before = before.objective.unwrap();
            let after = objective(&name, larger);
            let gain = if before.sense == Sense::Maximize { after - before.value } else { before.value - after };
            prop_assert!(gain >= -1e-6 * before.value.abs().max(1.0), "{}: {} {}", name, before.value, after);
        }
    }

    /// Twice the cluster with every job twice is the same problem, and jobs that differ in the tenth digit, of
    /// which no class can be made, are decided as those that are alike.
    #[test]
    fn copies_of_jobs_are_decided_as_one(case in cases(3)) {
        // A type with fewer workers than a job needs could run it only when doubled.
        let case = Case { workers: case.workers.map(|n| n.max(2)), ..case };
        let copies = |tell_apart: f64| {
            let mut jobs = case.jobs.clone();
            jobs.extend(case.jobs.iter().cloned().map(|mut job| {
                job.speeds.iter_mut().for_each(|speed| *speed *= 1.0 + tell_apart);
                job
            }));
            Case { workers: case.workers.map(|n| 2 * n), jobs }
        };
        for name in programs().into_iter().filter(|name| !name.contains("strategy_proof") && !name.contains("SLOs")) {
            let once = objective(&name, &case);
            let sums = ["max_sum", "proportional", "low_average_jct", "tempered"].iter().any(|sum| name.starts_with(sum));
            let expected = if sums { 2.0 * once } else { once };
            // A job and its copy may share workers, which one job alone cannot: packed, twice is better.
            if !name.contains("packed") {
                let twice = objective(&name, &copies(0.0));
                prop_assert!(close(expected, twice, 1e-6), "{}: {} {}", name, expected, twice);
            }
            let (like, unlike) = (objective(&name, &copies(0.0)), objective(&name, &copies(1e-10)));
            prop_assert!(close(like, unlike, 1e-6), "{}: {} {}", name, like, unlike);
        }
    }

    /// Sharing workers adds choices and takes none away.
    #[test]
    fn pairs_are_no_worse_than_none(case in cases(7)) {
        for family in ["max_min_fairness", "finish_time_fairness", "min_total_duration"] {
            let alone = decide(&format!("{family}_perf"), &case.problem()).objective.unwrap();
            let packed = objective(&format!("{family}_packed"), &case);
            let gain = if alone.sense == Sense::Maximize { packed - alone.value } else { alone.value - packed };
            prop_assert!(gain >= -1e-6 * alone.value.abs().max(1.0), "{}: {} {}", family, alone.value, packed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    /// Water filling by its definition, sixty jobs at a time: a job cannot be raised if all jobs of no higher level keep
    /// theirs, however much jobs of higher levels lose.
    #[test]
    fn a_filled_job_rises_only_at_the_cost_of_one_no_higher(
        workers in [8_u32..20, 8_u32..20, 8_u32..20],
        jobs in prop::collection::vec(drawn(), 60),
    ) {
        let case = Case { workers, jobs };
        let reached = throughputs(&decide("max_min_fairness_water_filling_perf", &case.problem()));
        let level: Vec<f64> = reached.iter().enumerate().map(|(job, value)| case.level(job, *value)).collect();
        for job in 0..level.len() {
            let no_higher = |other: usize| level[other] <= level[job] * (1.0 + 1e-6);
            let floor = (0..level.len()).map(|m| if no_higher(m) { reached[m] * (1.0 - 1e-9) } else { 0.0 });
            let gain = (0..level.len()).map(|other| f64::from(u8::from(other == job))).collect();
            let most = above_floors(&case, gain, floor.collect());
            prop_assert!(most <= reached[job] * (1.0 + 1e-4), "job {job} has {}, could have {most}", reached[job]);
        }
    }
}

fn job(speeds: [f64; 3]) -> Drawn {
    Drawn { speeds, scale_factor: 1, weight: 1.0, steps: 1e4, elapsed: 0.0, slo: 1e4, demand: 0.3 }
}

/// Cases in which the properties above do not hold, worked out by hand.
#[test]
fn what_is_not_promised_is_not_kept() {
    // A worker more lowers a level: 2 over a mean speed of 3/2, then 2 over one of 5/3.
    let alone = |fast| Case { workers: [fast, 1, 0], jobs: vec![job([2.0, 1.0, 0.0])] };
    for (fast, expected) in [(1, 4.0 / 3.0), (2, 6.0 / 5.0)] {
        let level = objective("max_min_fairness_perf", &alone(fast));
        assert!(close(level, expected, 1e-9), "{fast}: {level}");
    }
    // The job with steps in the smaller unit gets the one worker.
    for (unit, expected) in [(1.0, [0.0, 3.0]), (10.0, [20.0, 0.0])] {
        let case = Case { workers: [1, 0, 0], jobs: vec![job([2.0 * unit, 0.0, 0.0]), job([3.0, 0.0, 0.0])] };
        let reached = throughputs(&decide("max_sum_throughput_perf", &case.problem()));
        assert!(apart(&reached, &expected) < 1e-5, "{reached:?}");
    }
    // With twice the weight, a job of the same speed has twice the throughput, and the other less than its half.
    let mut heavy = job([6.0, 0.0, 0.0]);
    heavy.weight = 2.0;
    let case = Case { workers: [1, 0, 0], jobs: vec![heavy, job([6.0, 0.0, 0.0])] };
    let reached = throughputs(&decide("max_min_fairness_perf", &case.problem()));
    assert!(apart(&reached, &[4.0, 2.0]) < 1e-6 && reached[1] < case.isolated(1), "{reached:?}");
}
