//! Constraints on the whole cluster against programs written by hand, one column a combination of jobs and type, and against
//! sums over the shares of the decision.

use std::sync::Arc;

use proptest::prelude::*;

use super::packed_tests::{Drawn, assorted, drawn, problem_of};
use super::program_columns::PricingLimits;
use super::tests::options_of;
use super::*;
use crate::index::{EntityId, Id, JobId, JobIndex};
use crate::policy::{Conflict, Decision, Limit, Policy, PolicyError};
use crate::problem::{ActiveJob, Entity, InnerRule, Problem, ProblemBuilder};
use crate::program::{ConstraintText, ObjectiveText, Program, Range, Sense};
use crate::solver::{ConflictSize, Limits, registry, solve_certified};
use crate::workload::Combination;

/// The coefficient in a row of a job's share of time on a worker type. The last argument is its throughput there, in steps/s, and
/// how many jobs share the workers.
type Counts = fn(&Problem, JobIndex, usize, (f64, f64)) -> f64;

/// A row over all jobs: as policy files have it, with its bound in the place of `LIMIT`, and by hand.
#[derive(Clone, Copy, Debug)]
struct Row {
    text: &'static str,
    counts: Counts,
    at_most: bool,
}

const BUDGET: Row = Row {
    text: "sum_over_jobs(sum_over_worker_types(price(type) * workers_on(type))) <= LIMIT[$/h]",
    counts: |problem, job, kind, (_, n_jobs)| workers(problem, job) * price(problem, kind) / n_jobs,
    at_most: true,
};

const QUOTA: Row = Row {
    text: "sum_over_jobs(owned_by(\"one\") * scale_factor * sum_over_worker_types(time_on(type))) <= LIMIT[workers]",
    counts: |problem, job, _, _| of_one(problem, job) * workers(problem, job),
    at_most: true,
};

const CAP: Row = Row {
    text: "sum_over_jobs(owned_by(\"one\") * throughput / isolated_throughput) <= LIMIT",
    counts: |problem, job, _, (throughput, _)| of_one(problem, job) * throughput / isolated(problem, job),
    at_most: true,
};

const FLOOR: Row = Row {
    text: "sum_over_jobs(owned_by(\"one\") * throughput / isolated_throughput) >= LIMIT",
    counts: CAP.counts,
    at_most: false,
};

fn workers(problem: &Problem, job: JobIndex) -> f64 {
    f64::from(problem.jobs()[job].scale_factor)
}

fn price(problem: &Problem, kind: usize) -> f64 {
    problem.cluster().types()[Id::from_index(kind)].price.unwrap().get()
}

/// 1 for a job of the owner `one`, else 0: jobs belong to the two owners in turn.
fn of_one(problem: &Problem, job: JobIndex) -> f64 {
    let owner = problem.jobs()[job].entity.unwrap();
    f64::from(u8::from(problem.entities()[owner].name == "one"))
}

fn isolated(problem: &Problem, job: JobIndex) -> f64 {
    let size = problem.jobs()[job].scale_factor;
    crate::policy::view::isolated(problem, size, problem.throughput().row(job))
}

/// Objectives as policy files have them, each with whether it is a sum over jobs rather than the least of them.
const OBJECTIVES: [(&str, bool); 3] = [
    ("sum_over_jobs(throughput / isolated_throughput)", true),
    ("min_over_jobs(throughput / isolated_throughput)", false),
    ("lexicographic_min_over_jobs(throughput / isolated_throughput)", false),
];

fn policy(objective: &str, rows: &[(Row, f64)], pairs: bool, priced: bool) -> ProgramPolicy {
    let mut text = ObjectiveText::new(Sense::Maximize, objective);
    let constraint =
        |(row, limit): &(Row, f64)| ConstraintText::hard(row.text.replace("LIMIT", &format!("{limit}")));
    text.constraints = rows.iter().map(constraint).collect();
    let mut policy = ProgramPolicy::try_new(ProgramOptions { pairs, ..options_of(&text) }).unwrap();
    let all_priced = PricingLimits { unpriced_max: 0, ..PricingLimits::default() };
    policy.pricing = if priced { all_priced } else { PricingLimits::UNPRICED };
    policy
}

/// Each job alone, and each two jobs that share workers, with the throughputs of their jobs there.
fn combinations(problem: &Problem, pairs: bool) -> Vec<(Vec<JobIndex>, usize, Vec<f64>)> {
    let jobs: Vec<JobIndex> = problem.jobs().ids().collect();
    let mut all = Vec::new();
    for (kind, of_type) in problem.cluster().types().ids().enumerate() {
        let has_room =
            |job: JobIndex| problem.cluster().types()[of_type].n_workers >= problem.jobs()[job].scale_factor;
        for (position, first) in jobs.iter().copied().enumerate().filter(|(_, job)| has_room(*job)) {
            let alone = problem.throughput().row(first)[kind];
            if alone > 0.0 {
                all.push((vec![first], kind, vec![alone]));
            }
            for second in jobs[..position].iter().copied().filter(|_| pairs) {
                let together = problem.colocated(Combination::pair(first, second), of_type);
                if let Some([a, b]) = together.filter(|both| both[0] > 0.0 && both[1] > 0.0) {
                    // The smaller job is the first of a pair.
                    all.push((vec![second, first], kind, vec![a, b]));
                }
            }
        }
    }
    all
}

/// The program written by hand.
fn by_hand(problem: &Problem, rows: &[(Row, f64)], pairs: bool, summed: bool) -> Program {
    let combinations = combinations(problem, pairs);
    let mut program = Program::new(Sense::Maximize);
    let worth = |job: JobIndex, throughput: f64| throughput / isolated(problem, job);
    for (jobs, _, throughputs) in &combinations {
        let sum: f64 = jobs.iter().zip(throughputs).map(|(job, throughput)| worth(*job, *throughput)).sum();
        let share = Range { lower: 0.0, upper: 1.0 };
        program.push_column(share, share, if summed { sum } else { 0.0 });
    }
    let terms = |counts: &dyn Fn(JobIndex, usize, (f64, f64)) -> f64| -> Vec<(usize, f64)> {
        let of = |(jobs, kind, throughputs): &(Vec<JobIndex>, usize, Vec<f64>)| {
            let n_jobs = jobs.len() as f64;
            jobs.iter().zip(throughputs).map(|(job, speed)| counts(*job, *kind, (*speed, n_jobs))).sum()
        };
        combinations.iter().map(of).enumerate().collect()
    };
    let level = (!summed).then(|| program.push_column(Range::FREE, Range { lower: 0.0, upper: 1e6 }, 1.0));
    for job in problem.jobs().ids() {
        let is_it = |other: JobIndex| f64::from(u8::from(other == job));
        program.push_row(Range::at_most(1.0), terms(&|other, _, _| is_it(other)));
        if let Some(level) = level {
            let had = terms(&|other, _, (throughput, _)| is_it(other) * worth(job, throughput));
            program.push_row(Range::at_least(0.0), had.into_iter().chain([(level, -1.0)]));
        }
    }
    for (kind, of_type) in problem.cluster().types().iter().enumerate() {
        let used = combinations.iter().enumerate().filter(|(_, (_, other, _))| *other == kind);
        let used = used.map(|(column, (jobs, ..))| (column, workers(problem, jobs[0])));
        program.push_row(Range::at_most(f64::from(of_type.n_workers)), used);
    }
    for (row, limit) in rows {
        let range = if row.at_most { Range::at_most(*limit) } else { Range::at_least(*limit) };
        program.push_row(range, terms(&|job, kind, speed| (row.counts)(problem, job, kind, speed)));
    }
    program
}

fn optimum(program: &Program) -> f64 {
    let mut chain = vec![registry::backend("clarabel").unwrap()];
    solve_certified(program, &mut chain, &Limits::default(), None).unwrap().certificate.primal
}

/// The left side of a row at the shares of a decision.
fn counted(problem: &Problem, decision: &Decision, row: Row) -> f64 {
    let mut sum = 0.0;
    for (place, combination) in decision.allocation.combinations().enumerate() {
        for (kind, share) in decision.allocation.shares().row(place).iter().enumerate() {
            let together = || problem.colocated(*combination, Id::from_index(kind)).unwrap_or_default();
            let throughputs = match combination.second() {
                None => [problem.throughput().row(combination.first())[kind], 0.0],
                Some(_) if *share != 0.0 => together(),
                Some(_) => [0.0; 2],
            };
            let n_jobs = combination.members().count() as f64;
            for (job, throughput) in combination.members().zip(throughputs) {
                sum += share * (row.counts)(problem, job, kind, (throughput, n_jobs));
            }
        }
    }
    sum
}

fn decide(policy: &mut ProgramPolicy, problem: &Problem) -> Decision {
    let decision = policy.allocate(problem).unwrap();
    assert!(decision.objective.as_ref().unwrap().optimal, "{:?}", decision.objective);
    decision
}

/// Rows that all can be kept at once, the tightness of each between 0 and 1.
fn rows(problem: &Problem, tightness: [f64; 2]) -> Vec<Vec<(Row, f64)>> {
    let types = problem.cluster().types();
    let all: f64 = types.iter().map(|kind| f64::from(kind.n_workers)).sum();
    let cost: f64 = types.iter().map(|kind| f64::from(kind.n_workers) * kind.price.unwrap().get()).sum();
    let n_of_one = problem.jobs().ids().map(|job| of_one(problem, job)).sum::<f64>();
    let [budget, other] = [tightness[0] * cost, tightness[1] * all];
    let (budget, quota) = ((BUDGET, budget), (QUOTA, other));
    let (cap, floor) = ((CAP, 1.5 * tightness[1] * n_of_one), (FLOOR, tightness[1] * n_of_one));
    vec![vec![budget], vec![quota], vec![budget, quota], vec![cap], vec![floor], vec![budget, cap]]
}

fn check(jobs: &[Drawn], n_workers: u32, pairs: bool, tightness: [f64; 2]) -> Result<u32, TestCaseError> {
    let problem = problem_of(jobs, n_workers, 4);
    let mut n_that_matter = 0;
    for (objective, summed) in OBJECTIVES {
        for rows in rows(&problem, tightness) {
            let expected = optimum(&by_hand(&problem, &rows, pairs, summed));
            let without = optimum(&by_hand(&problem, &[], pairs, summed));
            for priced in [false, true].into_iter().filter(|priced| pairs || !priced) {
                let decision = decide(&mut policy(objective, &rows, pairs, priced), &problem);
                let report = decision.objective.as_ref().unwrap();
                let near = (report.value - expected).abs() <= 1e-6 * expected.abs();
                prop_assert!(near, "{objective} {rows:?} {priced}: {report:?}, not {expected}");
                for (row, limit) in &rows {
                    let found = counted(&problem, &decision, *row);
                    let over = if row.at_most { found - limit } else { limit - found };
                    prop_assert!(over <= 1e-6 * limit, "{objective} {row:?} {priced}: {found}, {limit}");
                }
            }
            n_that_matter += u32::from(expected < without * (1.0 - 1e-3));
        }
    }
    Ok(n_that_matter)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn optima_are_those_of_programs_written_by_hand(
        jobs in drawn(9), workers in 2_u32..5, tightness in [0.05_f64..0.9, 0.05_f64..0.9],
    ) {
        check(&jobs, workers, false, tightness)?;
    }

    #[test]
    fn so_they_are_where_jobs_share_workers(
        jobs in drawn(6), workers in 2_u32..4, tightness in [0.05_f64..0.9, 0.05_f64..0.9],
    ) {
        check(&jobs, workers, true, tightness)?;
    }
}

/// The rows are no decoration: without them the optima of these would be others.
#[test]
fn most_rows_that_are_drawn_change_the_optimum() {
    for pairs in [false, true] {
        let n_that_matter = check(&assorted(6, 1), 3, pairs, [0.3, 0.2]).unwrap();
        assert!(n_that_matter >= 10, "{n_that_matter} of 18");
    }
}

/// Four jobs on four workers: two of `red`, one of `blue` and one without an owner; `red` and `blue` belong to `paint`.
fn painted() -> Problem {
    let cluster = crate::Cluster::try_new([("fast", 4)]).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for (name, parent) in [("paint", None), ("red", Some(0)), ("blue", Some(0))] {
        let parent = parent.map(EntityId::from_index);
        builder.entity(Entity { name: name.to_owned(), weight: 1.0, inner: InnerRule::Fairness, parent });
    }
    for (position, owner) in [Some(1), Some(1), Some(2), None].into_iter().enumerate() {
        let entity = owner.map(EntityId::from_index);
        builder.job(ActiveJob { entity, ..ActiveJob::new(JobId::from_index(position)) }, &[1.0]);
    }
    builder.build().unwrap()
}

fn on_cluster(objective: (Sense, &str), constraint: ConstraintText) -> ProgramPolicy {
    let mut text = ObjectiveText::new(objective.0, objective.1);
    text.constraints = vec![constraint];
    ProgramPolicy::try_new(options_of(&text)).unwrap()
}

const SUM: (Sense, &str) = (Sense::Maximize, "sum_over_jobs(throughput)");

/// Two classes: the jobs of the owner that is named, and the others. Jobs that a row treats alike stay alike.
#[test]
fn an_owner_has_the_jobs_of_the_owners_below_it() {
    for (owner, held) in [("red", [0.25, 0.25, 1.0, 1.0]), ("paint", [1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0, 1.0])]
    {
        let row = format!("sum_over_jobs(owned_by(\"{owner}\") * time_on(fast)) <= 0.5");
        let mut policy = on_cluster(SUM, ConstraintText::hard(row));
        let decision = decide(&mut policy, &painted());
        let shares: Vec<f64> =
            (0..4).map(|job| decision.allocation.effective_throughput().as_slice()[job]).collect();
        assert!(
            shares.iter().zip(held).all(|(one, other)| (one - other).abs() < 1e-6),
            "{owner}: {shares:?}"
        );
        assert_eq!(decision.solve.unwrap().size.classes, 2);
    }
    // no job of an owner that is not there
    let row = "sum_over_jobs(owned_by(\"green\") * time_on(fast)) <= 0.5";
    let value = decide(&mut on_cluster(SUM, ConstraintText::hard(row)), &painted()).objective.unwrap().value;
    assert!((value - 4.0).abs() < 1e-6, "{value}");
}

/// A session decides on classes: it is as good as a decision from scratch.
#[test]
fn sessions_keep_the_row() {
    let row = "sum_over_jobs(owned_by(\"red\") * time_on(fast)) <= 0.5";
    let mut session = Session::new(on_cluster(SUM, ConstraintText::hard(row)), painted()).unwrap();
    for id in [2, 0, 1] {
        let value = session.decide().unwrap().objective.as_ref().unwrap().value;
        let expected = decide(&mut on_cluster(SUM, ConstraintText::hard(row)), session.problem());
        assert!((value - expected.objective.unwrap().value).abs() < 1e-9, "{value}");
        session.remove(JobId::from_index(id)).unwrap();
    }
}

/// A unit of fast time beyond 2.5 brings a step. At a penalty of 0.25 all four workers are used; at one of 2, no more
/// than 2.5.
#[test]
fn a_soft_row_costs_its_penalty_once() {
    for (penalty, value) in [(0.25, 4.0 - 0.25 * 1.5), (2.0, 2.5)] {
        let row = ConstraintText::soft("sum_over_jobs(time_on(fast)) <= 2.5", penalty);
        let report = decide(&mut on_cluster(SUM, row), &painted()).objective.unwrap();
        assert!((report.value - value).abs() < 1e-6, "{report:?}");
    }
}

/// Every route keeps the row, which is the reason for every share.
#[test]
fn every_route_keeps_the_row_and_prices_it() {
    let objectives = [
        (Sense::Maximize, "sum_over_jobs(throughput)", 1.0),
        (Sense::Maximize, "min_over_jobs(throughput)", 0.25),
        (Sense::Maximize, "lexicographic_min_over_jobs(throughput)", 0.25),
        // 4·log(B/4), d/dB = 4/B
        (Sense::Maximize, "sum_over_jobs(log(throughput))", 2.0),
        // 4/B, d/dB = −4/B²
        (Sense::Minimize, "max_over_jobs(1[steps] / throughput) / 1[s]", -1.0),
        // (1 + 4/B)/(1 + 1), d/dB = −2/B²
        (
            Sense::Minimize,
            "max_over_jobs((1[s] + 1[steps] / throughput) / (1[s] + 1[steps] / isolated_throughput))",
            -0.5,
        ),
    ];
    for (sense, objective, price) in objectives {
        let row = ConstraintText::hard("2 >= sum_over_jobs(time_on(fast))");
        let mut policy = on_cluster((sense, objective), row);
        let decision = decide(&mut policy, &painted());
        let used: f64 = decision.allocation.effective_throughput().as_slice().iter().sum();
        assert!((used - 2.0).abs() < 1e-5, "{objective}: {used}");
        let explanation = policy.explain(&painted()).unwrap();
        assert_eq!(explanation.prices_unknown, None, "{objective}");
        let [constraint] = &explanation.constraints[..] else { panic!("one constraint") };
        assert_eq!((constraint.subject, constraint.rows.len()), (None, 1));
        // The side on the right of `>=` is the sum: a unit more there is a unit less to have.
        let found = constraint.rows[0].price.unwrap();
        assert!((found + price).abs() < 1e-4 * price.abs(), "{objective}: {found}, not {price}");
        assert!(constraint.rows[0].binds, "{objective}");
        let held = |limits: &[Limit]| limits.contains(&Limit::Constraint(0));
        assert!(
            explanation.jobs.iter().all(|job| held(&job.limits)),
            "{objective}: {:?}",
            explanation.jobs[0]
        );
    }
}

#[test]
fn rows_that_cannot_be_kept_are_named() {
    let mut text = ObjectiveText::new(SUM.0, SUM.1);
    text.constraints = vec![
        ConstraintText::hard("sum_over_jobs(time_on(fast)) <= 3.5"),
        ConstraintText::hard("sum_over_jobs(owned_by(\"red\") * time_on(fast)) <= 0.5"),
        ConstraintText::hard("sum_over_jobs(owned_by(\"paint\") * time_on(fast)) >= 2"),
    ];
    let error = ProgramPolicy::try_new(options_of(&text)).unwrap().allocate(&painted()).unwrap_err();
    let PolicyError::Conflict { conflicts, .. } = &error else { panic!("{error}") };
    let named: Vec<&str> = conflicts.iter().map(|Conflict { constraint, .. }| constraint.as_str()).collect();
    assert_eq!(named, [&text.constraints[1].text, &text.constraints[2].text]);
    assert!(conflicts.iter().all(|of| of.job.is_none() && of.worker_type.is_none() && of.n_alike == 1));
    assert!(error.to_string().contains("for the whole cluster"), "{error}");
    // Blue has one worker at most: red must have another for two, and has half of one.
    for (conflict, expected) in conflicts.iter().zip([2.0, 0.75]) {
        assert_eq!(conflict.possible, None);
        let relaxed = conflict.relaxed.unwrap();
        assert!((relaxed - expected).abs() < 1e-6, "{conflict:?}");
    }
    // Relaxed as either conflict says, both can be kept.
    for (position, row) in [
        (1, "sum_over_jobs(owned_by(\"red\") * time_on(fast)) <= 0.5 * 2.0"),
        (2, "sum_over_jobs(owned_by(\"paint\") * time_on(fast)) >= 2 * 0.75"),
    ] {
        let mut relaxed = text.clone();
        relaxed.constraints[position] = ConstraintText::hard(row);
        decide(&mut ProgramPolicy::try_new(options_of(&relaxed)).unwrap(), &painted());
    }
}

/// Objectives for which no two jobs are alike.
const WEIGHTED: [&str; 3] = [
    "sum_over_jobs(weight * throughput / isolated_throughput)",
    "min_over_jobs(throughput / (weight * isolated_throughput))",
    "lexicographic_min_over_jobs(throughput / (weight * isolated_throughput))",
];

/// Without the row these would be decided by prices, and, where jobs share workers, by kinds.
#[test]
fn methods_that_see_no_such_row_decline() {
    let rows = |problem: &Problem| vec![(CAP, 0.2 * problem.n_jobs() as f64)];
    for (jobs, n_workers, pairs, before) in [
        (assorted(700, 1), 60, false, super::Strategy::Singles),
        (assorted(40, 1), 3, true, super::Strategy::Kinds),
    ] {
        let problem = problem_of(&jobs, n_workers, if pairs { 3 } else { usize::MAX });
        // A weighted sum over kinds is one over as many as there are jobs.
        for objective in &WEIGHTED[usize::from(pairs)..] {
            let without = decide(&mut policy(objective, &[], pairs, pairs), &problem);
            assert_eq!(without.solve.unwrap().strategy, before, "{objective}");
            let decision = decide(&mut policy(objective, &rows(&problem), pairs, pairs), &problem);
            let report = decision.solve.as_ref().unwrap();
            let written = [super::Strategy::Written, super::Strategy::Pairs].contains(&report.strategy);
            assert!(written, "{objective}: {:?}", report.strategy);
            let limit = 0.2 * problem.n_jobs() as f64;
            let found = counted(&problem, &decision, CAP);
            assert!(found <= limit * (1.0 + 1e-6), "{objective}: {found}, {limit}");
            let mut asked = policy(objective, &rows(&problem), pairs, pairs);
            let options = ProgramOptions { strategy: Some(before), ..asked.options().clone() };
            asked = ProgramPolicy::try_new(options).unwrap();
            let error = asked.allocate(&problem).unwrap_err();
            assert!(matches!(error, PolicyError::Strategy { .. }), "{objective}: {error}");
        }
    }
}

#[test]
fn a_worker_type_that_the_cluster_lacks_is_said_with_the_text_that_names_it() {
    let problem = problem_of(&assorted(2, 1), 2, usize::MAX);
    let level = "min_over_jobs(throughput / isolated_throughput)";
    let named = |objective: &str, list: usize, row: &str| {
        let mut text = ObjectiveText::new(Sense::Maximize, objective);
        let lists = [&mut text.for_each_job, &mut text.for_each_worker_type, &mut text.constraints];
        lists.into_iter().nth(list).unwrap().push(ConstraintText::hard(row));
        let error = ProgramPolicy::try_new(options_of(&text)).unwrap().allocate(&problem).unwrap_err();
        assert!(matches!(error, PolicyError::Data { .. }), "{error:?}");
        error.to_string()
    };
    for (list, row) in [
        "time_on(a100) <= 0.5",
        "sum_over_jobs(workers_on(type)) <= capacity(a100)",
        "sum_over_jobs(workers_on(a100)) <= 2[workers]",
    ]
    .into_iter()
    .enumerate()
    {
        let error = named(level, list, row);
        let said =
            format!("needs `a100`, the worker type that the constraint `{row}` names, expected one of");
        assert!(error.contains(&said) && !error.contains("infeasible"), "{error}");
    }
    let error =
        named("sum_over_jobs(throughput * price(a100))", 0, "throughput >= 0.1 * isolated_throughput");
    assert!(error.contains("needs `a100`, the worker type that the objective names"), "{error}");
}

#[test]
fn no_part_of_a_right_side_is_minus_zero() {
    let conflict = Conflict {
        constraint: "a <= b".to_owned(),
        job: None,
        n_alike: 1,
        worker_type: None,
        is_droppable: false,
        possible: None,
        relaxed: Some(-1e-12),
        can_be_dropped: false,
    };
    let words = |conflict: Conflict| {
        crate::policy::in_words(&[conflict], ConflictSize::Smallest, |_| String::new(), |_| String::new())
    };
    assert!(words(conflict.clone()).contains("with 0.0 %"), "{}", words(conflict.clone()));
    let alone = Conflict { possible: Some(-0.0), ..conflict };
    assert!(words(alone.clone()).contains("it reaches 0.0 %"), "{}", words(alone));
}
