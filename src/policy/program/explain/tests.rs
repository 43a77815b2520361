//! Prices worked out by hand, compared with those of another backend and with optima whose right sides are moved.

use std::sync::Arc;

use crate::index::{Id, JobId};
use crate::policy::program::ProgramPolicy;
use crate::policy::program::explain::reasons::reduced_costs;
use crate::policy::program::explain::{DecisionUse, Explained, explain};
use crate::policy::program::tests::options_of;
use crate::policy::{Binding, Explanation, Limit, Policy};
use crate::problem::{ActiveJob, Problem, ProblemBuilder};
use crate::program::{BoundObjective, ConstraintText, ObjectiveText, RowRole, Sense};
use crate::solver::{Limits, registry};
use crate::units::{DollarsPerWorkerHour, Seconds, Steps};

/// The amount by which right sides are moved.
const MOVED: f64 = 1e-4;

/// A job: throughputs on fast and slow workers, steps that remain, seconds since it came.
type Job = ([f64; 2], f64, f64);

/// A problem of jobs on fast and slow workers at 10 and 5 dollars an hour.
fn problem(workers: [u32; 2], jobs: &[Job]) -> Problem {
    let cluster = crate::Cluster::try_new([("fast", workers[0]), ("slow", workers[1])]).unwrap();
    let cluster = cluster.with_price("fast", DollarsPerWorkerHour::new(10.0)).unwrap();
    let cluster = cluster.with_price("slow", DollarsPerWorkerHour::new(5.0)).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for (index, (throughput, steps, elapsed)) in jobs.iter().enumerate() {
        let job = ActiveJob {
            steps_remaining: Steps::new(*steps),
            elapsed: Seconds::new(*elapsed),
            ..ActiveJob::new(JobId::from_index(index))
        };
        builder.job(job, throughput);
    }
    builder.build().unwrap()
}

/// Jobs for which only throughputs matter: all other data are alike.
fn jobs<const N: usize>(throughputs: [[f64; 2]; N]) -> Vec<Job> {
    throughputs.map(|throughput| (throughput, 100.0, 100.0)).to_vec()
}

const SUM: (Sense, &str) = (Sense::Maximize, "sum_over_jobs(throughput)");

fn per_job((sense, objective): (Sense, &str), constraint: ConstraintText) -> ObjectiveText {
    ObjectiveText { for_each_job: vec![constraint], ..ObjectiveText::new(sense, objective) }
}

fn policy(text: &ObjectiveText) -> ProgramPolicy {
    ProgramPolicy::try_new(options_of(text)).unwrap()
}

fn optimum(text: &ObjectiveText, problem: &Problem) -> f64 {
    let objective = policy(text).allocate(problem).unwrap().objective.unwrap();
    assert!(objective.optimal, "{objective:?}");
    objective.value
}

#[track_caller]
fn near(one: f64, other: f64) {
    assert!((one - other).abs() <= 1e-6 * (1.0 + other.abs()), "{one}, not {other}");
}

/// The prices of the first constraint's rows.
fn prices(explanation: &Explanation) -> Vec<f64> {
    assert_eq!(explanation.prices_unknown, None);
    explanation.constraints[0].rows.iter().map(|row| row.price.unwrap()).collect()
}

/// The explanation of a policy whose first constraint has a right side `at`; its prices are compared with what Clarabel and
/// simplex find on the written program and, added up, with how the optimum moves with that side.
#[track_caller]
fn explained(text: &dyn Fn(f64) -> ObjectiveText, at: f64, problem: &Problem) -> Explanation {
    let explanation = policy(&text(at)).explain(problem).unwrap();
    let own = prices(&explanation);
    for backend in ["clarabel", "simplex"] {
        let mut other = policy(&text(at));
        let chain = |name| vec![registry::backend(name).unwrap()];
        other.solve_by(chain(backend), chain("clarabel"), Limits::default());
        let other = other.explain(problem).unwrap();
        for (own, other) in own.iter().zip(prices(&other)) {
            near(*own, other);
        }
    }
    let [more, less] = [at + MOVED, at - MOVED].map(|at| optimum(&text(at), problem));
    let moved = (more - less) / (2.0 * MOVED);
    let all: f64 = own.iter().sum();
    assert!((moved - all).abs() <= 1e-4 * (1.0 + all.abs()), "moved by {moved}, priced {all}");
    explanation
}

/// Eight workers at 10 dollars an hour and two jobs that may cost 4: each has 4/10 of a worker, and the least level is 0.4.
/// A dollar an hour more for both is 1/10 of a worker for each, and so 0.1; each has half of that.
#[test]
fn a_cap_of_the_policy_that_binds_is_the_reason() {
    let objective = (Sense::Maximize, "min_over_jobs(throughput / isolated_throughput)");
    let text = |cap: f64| {
        let cap = format!("scale_factor * sum_over_worker_types(price(type) * time_on(type)) <= {cap}[$/h]");
        per_job(objective, ConstraintText::hard(cap))
    };
    let explanation = explained(&text, 4.0, &problem([8, 0], &jobs([[1.0, 0.0]; 2])));
    near(explanation.objective().unwrap().value, 0.4);
    near(explanation.types[0].one_more.unwrap(), 0.0);
    let constraint = &explanation.constraints[0];
    assert_eq!(constraint.text, text(4.0).for_each_job[0].text);
    assert_eq!(constraint.unit.to_string(), "$/h");
    for (job, row) in explanation.jobs.iter().zip(&constraint.rows) {
        assert_eq!((job.binding, &job.limits[..]), (Binding::Constraint, &[Limit::Constraint(0)][..]));
        assert!(job.sets_objective && row.binds && !row.exceeded && row.slack.abs() < 1e-6, "{row:?}");
        near(job.time, 0.4);
        near(job.time_price.unwrap(), 0.0);
        near(row.price.unwrap(), 0.05);
    }
}

/// A quarter of the time on fast workers is worth the difference to slow ones: 3 to each of three that are alike, 1 to the
/// fourth, which all have room there.
#[test]
fn a_cap_on_one_worker_type_has_a_price_for_each_job_of_a_class() {
    let text = |cap: f64| per_job(SUM, ConstraintText::hard(format!("time_on(fast) <= {cap}")));
    let of = jobs([[4.0, 1.0], [4.0, 1.0], [4.0, 1.0], [3.0, 2.0]]);
    let explanation = explained(&text, 0.25, &problem([4, 4], &of));
    let by_hand = [3.0, 3.0, 3.0, 1.0];
    for ((price, expected), job) in prices(&explanation).into_iter().zip(by_hand).zip(&explanation.jobs) {
        near(price, expected);
        assert_eq!(
            (job.binding, &job.limits[..]),
            (Binding::Constraint, &[Limit::Constraint(0), Limit::Time][..])
        );
        assert_eq!((job.throughput_price, job.sets_objective), (None, false), "a sum asks nothing of a job");
    }
    // The side of one job alone, which is then alike no other.
    let text = per_job(SUM, ConstraintText::hard("time_on(fast) <= elapsed / 400[s]"));
    for (job, expected) in by_hand.into_iter().enumerate() {
        let moved = |by: f64| {
            let mut of = of.clone();
            of[job].2 += 400.0 * by;
            optimum(&text, &problem([4, 4], &of))
        };
        near((moved(MOVED) - moved(-MOVED)) / (2.0 * MOVED), expected);
    }
    let same = policy(&text).explain(&problem([4, 4], &of)).unwrap();
    for (price, expected) in prices(&same).into_iter().zip(by_hand) {
        near(price, expected);
    }
}

/// One worker, and floors of 1/2 step/s: a step/s of the slow job costs the fast one 4 steps/s. So 1 step/s more of floor
/// changes the sum by 1 − 4 at the slow job, and by nothing at the fast one, which is above its floor.
#[test]
fn a_floor_has_the_price_of_what_it_takes() {
    let text = |floor: f64| per_job(SUM, ConstraintText::hard(format!("throughput >= {floor}[steps/s]")));
    let explanation = explained(&text, 0.5, &problem([1, 0], &jobs([[4.0, 0.0], [1.0, 0.0]])));
    near(explanation.objective().unwrap().value, 2.5);
    let (rows, jobs) = (&explanation.constraints[0].rows, &explanation.jobs);
    near(rows[0].price.unwrap(), 0.0);
    near(rows[1].price.unwrap(), -3.0);
    assert!(!rows[0].binds && rows[1].binds);
    near(rows[0].slack, 1.5);
    assert_eq!((jobs[0].binding, jobs[1].binding), (Binding::Capacity, Binding::Constraint));
    near(explanation.types[0].one_more.unwrap(), 4.0);
}

/// Half of the time on slow workers: more there is less on fast ones, of the time that all is used.
#[test]
fn an_equality_has_a_price_of_either_sign() {
    let text = |at: f64| per_job(SUM, ConstraintText::hard(format!("time_on(slow) == {at}")));
    let explanation = explained(&text, 0.5, &problem([4, 4], &jobs([[4.0, 1.0], [4.0, 1.0], [1.0, 3.0]])));
    // The third is faster on slow workers.
    let expected = [1.0 - 4.0, 1.0 - 4.0, 3.0 - 1.0];
    for (price, expected) in prices(&explanation).into_iter().zip(expected) {
        near(price, expected);
    }
    assert!(explanation.jobs.iter().all(|job| job.binding == Binding::Constraint));
}

/// Four jobs have 3/2 of the fast workers and as much of the slow: (2 + 1) · 3/2 in all, of which a unit more of fast time
/// is 2/4 for the least, and one of slow time 1/4.
#[test]
fn a_constraint_on_worker_types_is_the_reason_where_it_has_a_price() {
    let objective = (Sense::Maximize, "min_over_jobs(throughput)");
    let text = |cap: f64| ObjectiveText {
        for_each_worker_type: vec![ConstraintText::hard(format!("sum_over_jobs(time_on(type)) <= {cap}"))],
        ..ObjectiveText::new(objective.0, objective.1)
    };
    let explanation = explained(&text, 1.5, &problem([4, 4], &jobs([[2.0, 1.0]; 4])));
    near(explanation.objective().unwrap().value, 1.125);
    for (price, expected) in prices(&explanation).into_iter().zip([0.5, 0.25]) {
        near(price, expected);
    }
    for job in &explanation.jobs {
        assert_eq!((job.binding, &job.limits[..]), (Binding::Constraint, &[Limit::Constraint(0)][..]));
        assert!(job.sets_objective);
    }
    assert!(explanation.types.iter().all(|kind| !kind.binds && kind.one_more.unwrap().abs() < 1e-6));
}

/// A minute more for work at half a step/s is less of a floor: 50 steps in 100 s ask for 1/2, and a second more for
/// 50/100² less, each step/s of which is worth 3.
#[test]
fn a_curved_constraint_is_priced_in_its_own_unit() {
    let text =
        |most: f64| per_job(SUM, ConstraintText::hard(format!("steps_remaining / throughput <= {most}[s]")));
    let of = vec![([4.0, 0.0], 50.0, 0.0), ([1.0, 0.0], 50.0, 0.0)];
    let explanation = explained(&text, 100.0, &problem([1, 0], &of));
    let expected = [0.0, 3.0 * 50.0 / 1e4];
    for (price, expected) in prices(&explanation).into_iter().zip(expected) {
        near(price, expected);
    }
    assert_eq!(explanation.constraints[0].unit.to_string(), "s");
}

/// An objective that is minimized falls where a cap is raised: by its inverse, by a search over levels, and by
/// logarithms.
#[test]
fn caps_are_priced_in_units_of_the_objective_by_every_route() {
    let of = vec![([4.0, 1.0], 200.0, 40.0), ([4.0, 1.0], 200.0, 40.0), ([3.0, 2.0], 90.0, 10.0)];
    for (sense, objective) in [
        (Sense::Minimize, "max_over_jobs(steps_remaining / throughput)"),
        (
            Sense::Minimize,
            "max_over_jobs((elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput))",
        ),
        (Sense::Maximize, "sum_over_jobs(log(throughput))"),
    ] {
        let text =
            |cap: f64| per_job((sense, objective), ConstraintText::hard(format!("time_on(fast) <= {cap}")));
        let explanation = explained(&text, 0.25, &problem([4, 4], &of));
        let own = prices(&explanation);
        near(own[0], own[1]);
        assert!(own[0].abs() > 1e-3 && (own[0] < 0.0) == (sense == Sense::Minimize), "{objective}: {own:?}");
        assert_eq!(explanation.jobs[0].binding, Binding::Constraint);
    }
}

#[test]
fn a_soft_constraint_has_at_most_its_penalty_for_a_price() {
    let of = problem([4, 4], &jobs([[4.0, 1.0]; 2]));
    // A unit of fast time is worth 3: worth exceeding at a penalty of 1, and not at one of 5.
    for (penalty, time, price) in [(1.0, 1.0, 1.0), (5.0, 0.25, 3.0)] {
        let text = |cap: f64| per_job(SUM, ConstraintText::soft(format!("time_on(fast) <= {cap}"), penalty));
        let explanation = explained(&text, 0.25, &of);
        assert_eq!(explanation.constraints[0].penalty, Some(penalty));
        for row in &explanation.constraints[0].rows {
            near(row.price.unwrap(), price);
            near(row.slack, 0.25 - time);
            assert!(row.binds && row.exceeded == (time > 0.5), "{row:?}");
        }
    }
}

/// One constraint asks for ten times what there is, and is dropped; the other takes half of the worker from a job that is
/// four times as fast.
#[test]
fn a_dropped_constraint_has_no_price() {
    let text = per_job(SUM, ConstraintText::droppable("throughput >= steps_remaining / 100[s]"));
    let of = [([4.0, 0.0], 0.001, 0.0), ([1.0, 0.0], 50.0, 0.0), ([1.0, 0.0], 1000.0, 0.0)];
    let explanation = policy(&text).explain(&problem([1, 0], &of)).unwrap();
    assert_eq!(explanation.prices_unknown, None);
    let constraint = &explanation.constraints[0];
    assert!(constraint.droppable);
    let dropped: Vec<bool> = constraint.rows.iter().map(|row| row.dropped).collect();
    assert_eq!(dropped, [false, false, true]);
    near(constraint.rows[1].price.unwrap(), -3.0);
    assert_eq!((constraint.rows[2].price, constraint.rows[2].exceeded), (None, true));
    assert_eq!(explanation.jobs[1].binding, Binding::Constraint);
}

/// Two jobs that only fast workers run set the objective; what two others have of the slow worker, which is all given
/// away, follows from how the optimum is refined.
#[test]
fn what_no_price_explains_is_said_to_be_unexplained() {
    let text = ObjectiveText::new(Sense::Maximize, "min_over_jobs(throughput)");
    let of = jobs([[1.0, 0.0], [1.0, 0.0], [0.0, 9.0], [0.0, 9.0]]);
    let explanation = policy(&text).explain(&problem([1, 1], &of)).unwrap();
    assert_eq!(explanation.prices_unknown, None);
    let bindings: Vec<Binding> = explanation.jobs.iter().map(|job| job.binding).collect();
    let (sets, silent) = (Binding::Bottleneck, Binding::Unexplained);
    assert_eq!(bindings, [sets, sets, silent, silent]);
    assert_eq!(explanation.jobs[0].limits, [Limit::Capacity]);
    assert!(explanation.jobs[2].limits.is_empty() && explanation.types[1].binds);
}

/// Two jobs share the fast worker, at a level of 1/2; the third may have 3/10 of the slow one, at 9 · 3/10, where a unit more
/// of time there is 9 of its level and nothing of the least.
#[test]
fn a_constraint_that_held_a_later_level_is_the_reason_there() {
    let objective = (Sense::Maximize, "lexicographic_min_over_jobs(throughput)");
    let text = |cap: f64| per_job(objective, ConstraintText::hard(format!("time_on(slow) <= {cap}")));
    let of = jobs([[1.0, 0.0], [1.0, 0.0], [0.0, 9.0]]);
    let explanation = explained(&text, 0.3, &problem([1, 1], &of));
    for price in prices(&explanation) {
        near(price, 0.0);
    }
    let job = &explanation.jobs[2];
    assert_eq!((job.binding, &job.limits[..]), (Binding::Constraint, &[Limit::Constraint(0)][..]));
    let fixed = job.fixed.as_ref().unwrap();
    assert_eq!((fixed.step, fixed.steps), (2, 2));
    near(fixed.level, 2.7);
    near(fixed.constraints[0][0].unwrap(), 9.0);
    assert_eq!(explanation.jobs[0].binding, Binding::Bottleneck);
}

/// 1e5 units of cost for all of a worker's time, and a job that gets none of it: the row's slack is rounding, relative to its
/// terms, though both of its sides are nearly 0.
#[test]
fn rounding_of_a_row_of_large_numbers_is_no_excess() {
    use crate::policy::program::explain::prices::is_close;
    use crate::program::Sides;
    assert!(is_close(Sides { small: 8e-8, large: 0.0 }, 1e5));
    assert!(!is_close(Sides { small: 8e-8, large: 0.0 }, 1e-3));
    let text = |at: f64| per_job(SUM, ConstraintText::hard(format!("1e5 * time_on(fast) <= {at}")));
    let mut policy = policy(&text(2e4));
    let problem = problem([4, 4], &jobs([[4.0, 1.0], [3.0, 2.0]]));
    let explained = policy.solve_to_explain(&problem).unwrap();
    let objective = policy.options.objective.clone();
    let bound = objective.bind(&explained.reduced.instance).unwrap();
    let in_use = |fast: f64| {
        let time = |column: &crate::program::Column| if column.worker_type == 0 { fast } else { 0.5 };
        Some(DecisionUse::of(&bound, &bound.columns().iter().map(time).collect::<Vec<_>>()))
    };
    for (fast, exceeded) in [(0.2 + 1e-7, false), (0.2 + 1e-3, true)] {
        let again = policy.solve_to_explain(&problem).unwrap();
        let explained = Explained { in_use: in_use(fast), ..again };
        let explanation = explain(&problem, &bound, explained);
        for row in &explanation.constraints[0].rows {
            assert!(row.binds && row.exceeded == exceeded, "{row:?}");
        }
    }
}

/// A worker's hour costs 2.5 on fast workers and 1.25 on slow ones. Both jobs make more than that of the one fast worker, and
/// of a slow one less: both would take more of the fast one.
#[test]
fn workers_that_are_not_worth_their_price_leave_the_others_as_the_reason() {
    let sum = "sum_over_jobs(throughput - 0.25[steps*h/s/$] * sum_over_worker_types(price(type) * workers_on(type)))";
    let text = ObjectiveText::new(Sense::Maximize, sum);
    let explanation = policy(&text).explain(&problem([1, 2], &jobs([[4.0, 1.0]; 2]))).unwrap();
    near(explanation.types[0].one_more.unwrap(), 1.5);
    near(explanation.types[1].workers_used, 0.0);
    for job in &explanation.jobs {
        assert_eq!((job.binding, &job.limits[..]), (Binding::Capacity, &[Limit::Capacity][..]));
    }
    // With fast workers to spare, nothing but the objective keeps the third job from running.
    let of = problem([3, 2], &jobs([[4.0, 1.0], [4.0, 1.0], [1.0, 1.0]]));
    let explanation = policy(&text).explain(&of).unwrap();
    assert_eq!((explanation.jobs[2].binding, explanation.prices_unknown), (Binding::Free, None));
}

#[test]
fn what_a_worker_more_would_change_itself_is_said_to_be_held() {
    let of = problem([1, 2], &jobs([[4.0, 1.0]; 2]));
    let held = |objective: &str, row: &str| {
        let mut text = ObjectiveText::new(Sense::Maximize, objective);
        text.for_each_worker_type = vec![ConstraintText::hard(row)];
        policy(&text).explain(&of).unwrap().held
    };
    let (sum, row) = ("sum_over_jobs(throughput)", "sum_over_jobs(workers_on(type)) <= 1[workers]");
    assert!(held(sum, row).is_empty());
    assert_eq!(held(sum, "sum_over_jobs(workers_on(type)) <= 0.5 * capacity(type)"), ["capacity"]);
    let level = "min_over_jobs(throughput / isolated_throughput)";
    assert_eq!(held(level, row), ["isolated_throughput"]);
}

/// Beside a job's 10^12 steps/s an optimum is proven by prices to which half of another job's time is worth nothing.
#[test]
fn idle_workers_that_a_gap_leaves_open_are_not_said_to_be_unasked() {
    let problem = problem([1, 1], &jobs([[1e12, 0.0], [0.0, 1.0]]));
    let capped = per_job(SUM, ConstraintText::hard("time_on(slow) <= 0.5"));
    let capped = policy(&capped).allocate(&problem).unwrap();
    let mut policy = policy(&ObjectiveText::new(SUM.0, SUM.1));
    let mut explained = policy.solve_to_explain(&problem).unwrap();
    let reduced = explained.reduced.clone();
    let bound = policy.options.objective.bind(&reduced.instance).unwrap();
    // Of the rows, that of the first job's time alone has a price: the whole gain of its column, in which it stands with 1.
    let formulation = explained.solved.explaining.clone().formulation(&bound);
    let time = formulation.rows.iter().position(|role| *role == RowRole::Time { member: 0 }).unwrap();
    let duals = &mut explained.solved.answer.as_mut().unwrap().solution.row_duals;
    duals.fill(0.0);
    duals[time] = formulation.program.cost[0];
    explained.in_use = Some(DecisionUse::of(&bound, &[1.0, 0.5]));
    explained.decision.allocation = capped.allocation;
    let explanation = explain(&problem, &bound, explained);
    assert_eq!((explanation.prices_unknown, explanation.jobs[1].binding), (None, Binding::Unrefined));
}

/// Two jobs share the fast worker and are on one of two slow workers in the rest of their time: of each job's time on either
/// type, the prices of time, of workers and of the logarithm's cone add up to nothing.
#[test]
fn the_prices_of_cones_count() {
    let problem = problem([1, 2], &jobs([[2.0, 1.0]; 2]));
    let mut policy = policy(&ObjectiveText::new(Sense::Maximize, "sum_over_jobs(log(throughput))"));
    let explained = policy.solve_to_explain(&problem).unwrap();
    let reduced = explained.reduced.clone();
    let bound = policy.options.objective.bind(&reduced.instance).unwrap();
    let formulation = explained.solved.explaining.clone().formulation(&bound);
    let solution = &explained.solved.answer.as_ref().unwrap().solution;
    assert_eq!(solution.cone_duals.len(), formulation.program.cones.len());
    for cost in reduced_costs(&formulation, &solution.row_duals, &solution.cone_duals, |_| true) {
        assert!(cost.abs() < 1e-6, "{cost}");
    }
    let explanation = explain(&problem, &bound, explained);
    assert!(explanation.types[0].binds && !explanation.types[1].binds);
    near(explanation.types[1].one_more.unwrap(), 0.0);
    for job in &explanation.jobs {
        assert_eq!((job.binding, &job.limits[..]), (Binding::Time, &[Limit::Time][..]));
    }
}

/// Half of the slow worker idles in the decision, though not in the answer of the solver, to which it has a price.
#[test]
fn workers_that_idle_are_no_reason() {
    let problem = problem([1, 1], &jobs([[4.0, 1.0]; 3]));
    let capped = per_job(SUM, ConstraintText::hard("time_on(slow) <= 0.15"));
    let capped = policy(&capped).allocate(&problem).unwrap();
    let mut policy = policy(&ObjectiveText::new(SUM.0, SUM.1));
    let whole = policy.explain(&problem).unwrap();
    let mut explained = policy.solve_to_explain(&problem).unwrap();
    let reduced = explained.reduced.clone();
    let bound = policy.options.objective.bind(&reduced.instance).unwrap();
    assert!(whole.types.iter().all(|kind| kind.binds && kind.one_more.unwrap() > 0.5));
    assert!(whole.jobs.iter().all(|job| job.limits == [Limit::Capacity]));
    explained.decision.allocation = capped.allocation;
    let idle = explain(&problem, &bound, explained);
    assert!(!idle.types[1].binds && idle.types[1].one_more == Some(0.0));
    assert!(idle.jobs.iter().all(|job| job.limits.is_empty()), "{:?}", idle.jobs);
}

/// A decision with prices that are taken away, or do not belong to it, by one change each.
#[test]
fn prices_that_do_not_prove_the_decision_are_not_shown_and_the_reason_is_told() {
    type Change = fn(&mut Explained, &BoundObjective<'_>);
    let changes: [(&str, Change); 8] = [
        ("drops other jobs' constraints", |of, _| of.in_use = None),
        ("no program was solved", |of, _| of.solved.answer = None),
        ("the backend gives none", |of, _| of.solved.answer.as_mut().unwrap().solution.row_duals.clear()),
        ("do not prove its optimum", |of, _| {
            of.solved.answer.as_mut().unwrap().solution.row_duals.fill(0.0);
        }),
        ("has a price at the level", |of, _| of.solved.price_factor = 0.0),
        ("not proven to be an optimum", |of, _| of.decision.objective.as_mut().unwrap().optimal = false),
        ("has another optimum", |of, _| of.decision.objective.as_mut().unwrap().bound *= 2.0),
        ("has a price and room", |of, bound| {
            of.in_use = Some(DecisionUse::of(bound, &vec![0.0; bound.columns().len()]));
        }),
    ];
    let objective = (Sense::Maximize, "min_over_jobs(throughput)");
    let text = per_job(objective, ConstraintText::hard("time_on(slow) <= 0.1"));
    let problem = problem([1, 1], &jobs([[2.0, 1.0]; 3]));
    let shown = |change: Option<Change>| {
        let mut policy = policy(&text);
        let mut explained = policy.solve_to_explain(&problem).unwrap();
        let reduced = explained.reduced.clone();
        let bound = policy.options.objective.bind(&reduced.instance).unwrap();
        if let Some(change) = change {
            change(&mut explained, &bound);
        }
        explain(&problem, &bound, explained)
    };
    let known = shown(None);
    assert_eq!((known.prices_unknown, known.jobs[0].binding), (None, Binding::Constraint));
    for (why, change) in changes {
        let unknown = shown(Some(change));
        let told = unknown.prices_unknown.unwrap_or_else(|| panic!("prices though {why}"));
        assert!(told.contains(why), "{told}, not {why}");
        assert!(unknown.types.iter().all(|kind| kind.one_more.is_none()), "{why}");
        assert!(unknown.constraints[0].rows.iter().all(|row| row.price.is_none()), "{why}");
        for job in &unknown.jobs {
            assert_eq!((job.throughput_price, job.time_price, &job.fixed), (None, None, &None), "{why}");
            assert!(job.limits.is_empty() && !job.sets_objective, "{why}: {job:?}");
            assert_eq!(job.binding, Binding::Unexplained, "{why}");
        }
    }
}

/// Levels are 50·x and 100·x of the throughputs x of two jobs on one worker, where they run at 2 and 4 steps/s: at a level
/// L, L/100 + L/400 of its time is used, and a step/s asked of them more takes 1/2 and 1/4.
#[test]
fn a_price_of_throughput_is_per_step_a_second_whatever_levels_are_in() {
    let of = [([2.0, 0.0], 100.0, 50.0), ([4.0, 0.0], 100.0, 100.0)];
    let text = ObjectiveText::new(Sense::Maximize, "min_over_jobs(throughput * elapsed)");
    let explanation = policy(&text).explain(&problem([1, 1], &of)).unwrap();
    near(explanation.decision.objective.as_ref().unwrap().value, 80.0);
    for (job, expected) in explanation.jobs.iter().zip([-40.0, -20.0]) {
        near(job.throughput_price.unwrap(), expected);
        assert!(job.sets_objective);
    }
    // Levels that are in no proportion to throughput, and levels of another quantity.
    for text in
        ["min_over_jobs(min(throughput, isolated_throughput) + throughput)", "min_over_jobs(time_on(fast))"]
    {
        let explanation = policy(&ObjectiveText::new(Sense::Maximize, text)).explain(&problem([1, 1], &of));
        let jobs = explanation.unwrap().jobs;
        assert!(jobs.iter().any(|job| job.sets_objective), "{text}: {jobs:?}");
        assert!(jobs.iter().all(|job| job.throughput_price.is_none()), "{text}: {jobs:?}");
    }
}
