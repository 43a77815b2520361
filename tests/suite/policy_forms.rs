//! Forms that the text of a policy may take: against enumeration, against numbers found by hand, and the reports of
//! constraints that no allocation keeps.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use apportion::catalog::Catalog;
use apportion::index::{Id, JobIndex};
use apportion::policy::{Conflict, Decision, Policy, PolicyError};
use apportion::spec::{Snapshot, Source};
use apportion::{Problem, Throughputs};
use proptest::prelude::*;

/// The policy of this body, and the problem of a snapshot of this body.
pub(super) fn read(policy: &str, snapshot: &str) -> (Box<dyn Policy>, Problem) {
    let text = format!("format: apportion/policy-v1\nname: tried\nsummary: tried\nkind: program\n{policy}");
    let mut catalog = Catalog::embedded();
    catalog.add(Source::new("tried.yaml", text)).unwrap_or_else(|error| panic!("{error}\n{policy}"));
    let text = format!("format: apportion/snapshot-v1\n{snapshot}");
    let snapshot = Snapshot::read(&Source::new("snapshot.yaml", text)).unwrap();
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    (catalog.policy("tried").unwrap(), Problem::from_snapshot(&snapshot, &throughputs).unwrap())
}

fn decide(policy: &str, snapshot: &str) -> Result<Decision, PolicyError> {
    let (mut policy, problem) = read(policy, snapshot);
    policy.allocate(&problem)
}

/// The certified value of the objective.
#[track_caller]
pub(super) fn value(policy: &str, snapshot: &str) -> f64 {
    let objective = decide(policy, snapshot).unwrap_or_else(|error| panic!("{error}\n{policy}")).objective;
    let objective = objective.unwrap();
    assert!(objective.optimal, "{objective:?}\n{policy}");
    objective.value
}

#[track_caller]
pub(super) fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{found}, expected {expected}");
}

const THREE: &str = "cluster: {v100: 2, p100: 2}\njobs:
  - {id: a, throughput: {v100: 4, p100: 1}, steps_remaining: 1000, slo_remaining: 300}
  - {id: b, throughput: {v100: 3, p100: 2}, steps_remaining: 1000}
  - {id: c, throughput: {v100: 2, p100: 2}, steps_remaining: 2000, slo_remaining: 300}\n";

#[test]
fn a_curved_function_of_what_names_a_share_twice_is_a_program() {
    let pair = "cluster: {v100: 1}\njobs: [{id: x, throughput: {v100: 4}}, {id: y, throughput: {v100: 3}}]
pairs: [{jobs: [x, y], throughput: {v100: [3, 2]}}]\n";
    near(
        value("colocation: pairs\nmaximize: log(sum_over_jobs(throughput) / 1[steps/s])\n", pair),
        5.0_f64.ln(),
    );
    let one = "cluster: {v100: 1}\njobs: [{id: x, throughput: {v100: 4}}]\n";
    near(
        value("maximize: sum_over_jobs(sqrt(throughput / isolated_throughput + time_on(v100)))\n", one),
        2.0_f64.sqrt(),
    );
    near(value("minimize: sum_over_jobs(inv(throughput / isolated_throughput + time_on(v100)))\n", one), 0.5);
}

#[test]
fn a_part_that_counts_for_nothing_is_left_out_of_the_program() {
    // By an owner without the job.
    let owned = "cluster: {v100: 1}\nentities: [{id: P}]\njobs:
  - {id: a, throughput: {v100: 1}}\n  - {id: b, entity: P, throughput: {v100: 1}}\n";
    let text = "maximize: sum_over_jobs(owned_by(\"P\") * log(throughput / isolated_throughput)) - \
                sum_over_jobs(inv(throughput / isolated_throughput))\n";
    // With x the share of b: log 2x − 1/(2x) − 1/(2 − 2x), at its best where 1/x + 1/(2x²) = 1/(2(1 − x)²).
    let x = 0.596_97_f64;
    near(value(text, owned), (2.0 * x).ln() - 0.5 / x - 0.5 / (1.0 - x));
    // By a type on which the job cannot run: log 0.8 is a number.
    let apart = "cluster: {v100: 1, p100: 1}\njobs:
  - {id: a, throughput: {p100: 1}}\n  - {id: b, throughput: {v100: 1}}\n";
    let text =
        "maximize: sum_over_jobs(log(0.8 + time_on(v100)) - 0.2 * inv(throughput / isolated_throughput))\n";
    near(value(text, apart), 0.8_f64.ln() + 1.8_f64.ln() - 0.2);
}

#[test]
fn a_job_without_a_deadline_is_never_late() {
    let late = "minimize: sum_over_jobs(max(steps_remaining / throughput - slo_remaining, 0[s]))\n";
    // Job c takes 1000 s alone wherever it runs, job a is in time.
    near(value(late, THREE), 700.0);
    let product = "maximize: sum_over_jobs(throughput)\nfor_each_job: [throughput * slo_remaining >= steps_remaining]\n";
    let Err(PolicyError::Missing { field, job, .. }) = decide(product, THREE) else { panic!("b has none") };
    assert_eq!((field.as_str(), job), ("slo_remaining", 1));
    // A missing deadline is not named as the cause where other numbers overflow.
    let beside = "maximize: sum_over_jobs(throughput)\nfor_each_job:\n  - steps_remaining / throughput <= 1e9 * slo_remaining
  - throughput >= 1e200 * 1e200 * isolated_throughput\n";
    let error = decide(beside, THREE).unwrap_err();
    assert!(matches!(error, PolicyError::Overflow { .. }), "{error}");
    assert!(error.to_string().contains("less far apart"), "{error}");
}

#[test]
fn an_objective_that_nothing_moves_from_infinity_is_infeasible() {
    let owned = "cluster: {v100: 1}\nentities: [{id: P}]\njobs: [{id: a, throughput: {v100: 1}}]\n";
    let text = "maximize: log(sum_over_jobs(owned_by(\"P\") * throughput) / 1[steps/s])\n";
    let error = decide(text, owned).unwrap_err();
    assert!(matches!(&error, PolicyError::Infeasible { reason, .. } if reason.contains("-∞")), "{error}");
}

#[test]
fn a_level_that_no_throughput_raises_is_the_bound_of_the_first_level() {
    let owned = "cluster: {v100: 1}\nentities: [{id: P}]\njobs:
  - {id: a, throughput: {v100: 1}}\n  - {id: b, entity: P, throughput: {v100: 1}}\n";
    near(value("maximize: lexicographic_min_over_jobs(owned_by(\"P\") * throughput)\n", owned), 0.0);
}

#[test]
fn a_limit_far_beyond_reach_is_none() {
    for (objective, expected) in [("sum_over_jobs(throughput)", 9.0), ("min_over_jobs(throughput)", 2.0)] {
        for limit in ["1e12", "1e30"] {
            let text = format!(
                "maximize: {objective}\nconstraints: [\"sum_over_jobs(throughput) <= {limit}[steps/s]\"]\n"
            );
            near(value(&text, THREE), expected);
        }
    }
}

#[test]
fn a_worker_type_without_a_price_is_named_where_prices_are_read() {
    let priced =
        "cluster: {v100: 1, k80: 1}\nprices: {v100: 2.5}\njobs: [{id: a, throughput: {v100: 2, k80: 1}}]\n";
    let error =
        decide("maximize: sum_over_jobs(throughput * price(v100))\n", priced).unwrap_err().to_string();
    assert!(error.contains("needs `price`, which worker type `k80` does not have"), "{error}");
    near(value("maximize: sum_over_jobs(throughput)\n", priced), 2.0);
}

#[test]
fn idle_workers_are_used_beside_constraints_that_do_not_need_them_idle() {
    let apart = "cluster: {v100: 1, p100: 1}\njobs:
  - {id: a, throughput: {p100: 1}}\n  - {id: b, throughput: {v100: 1}}\n";
    let used = |constraint: &str| {
        let text =
            format!("maximize: sum_over_jobs(log(0.8 + time_on(v100)))\nfor_each_job: [\"{constraint}\"]\n");
        let decision = decide(&text, apart).unwrap();
        decision.allocation.effective_throughput()[JobIndex::from_index(0)]
    };
    near(used("throughput >= 0.1 * isolated_throughput"), 1.0);
    assert!(used("time_on(p100) <= 0.25") <= 0.25 + 1e-9);
}

#[test]
fn terms_that_cancel_leave_no_row_of_rounding() {
    let pair = "cluster: {v100: 7}\njobs:
  - {id: x, scale_factor: 4, weight: 0.3, throughput: {v100: 1.12}}
  - {id: y, scale_factor: 4, weight: 0.3, throughput: {v100: 1.12}}
pairs: [{jobs: [x, y], throughput: {v100: [0.829, 0.894]}}]\n";
    let text = "colocation: pairs\nmaximize: sum_over_jobs(throughput / isolated_throughput)
constraints: [\"sum_over_jobs(weight * throughput) - 0.1 * sum_over_jobs(throughput) - 0.2 * sum_over_jobs(throughput) <= 32.7[steps/s]\"]\n";
    let free = text.split("constraints").next().unwrap();
    near(value(text, pair), value(free, pair));
}

#[test]
fn rows_that_contradict_one_another_are_named_beside_any_cones() {
    // Each of four alike has 0.25 of the worker, and 0.5 is asked for.
    let job = |id: &str| format!("  - {{id: {id}, throughput: {{v100: 1.12}}}}\n");
    let alike = format!("cluster: {{v100: 1}}\njobs:\n{}", ["a", "b", "c", "d"].map(job).concat());
    for text in ["inv(time_on(v100)) <= 2", "inv(0.19 + time_on(v100)) <= 1.5", "sqrt(time_on(v100)) >= 0.7"]
    {
        let policy = format!(
            "maximize: sum_over_jobs(throughput) - 0.16[steps/s] * sum_over_jobs(inv(throughput / isolated_throughput))
for_each_job: [\"{text}\"]\n"
        );
        assert!(!conflicts(&policy, &alike).is_empty(), "{text}");
    }
}

/// The constraints that contradict one another.
#[track_caller]
fn conflicts(policy: &str, snapshot: &str) -> Vec<Conflict> {
    match decide(policy, snapshot) {
        Err(PolicyError::Conflict { conflicts, .. }) => conflicts,
        other => panic!("{policy}: {other:?}"),
    }
}

#[test]
fn constraints_that_nothing_keeps_are_named_with_the_part_of_the_right_side_as_written() {
    let of_jobs = [
        ("steps_remaining / throughput <= slo_remaining", Some(1000.0 / 300.0)),
        ("inv(throughput / isolated_throughput) <= 0.5", Some(2.0)),
        ("log(throughput / isolated_throughput) >= 1", Some(0.0)),
        ("sqrt(throughput / isolated_throughput) >= 2", Some(0.5)),
        ("throughput - isolated_throughput >= 2[steps/s]", Some(0.0)),
        ("throughput >= 8[steps/s]", Some(0.25)),
        ("throughput - 2 * isolated_throughput >= 0[steps/s]", None),
        ("time_on(v100) <= -0.1", None),
        ("time_on(v100) == 2", Some(0.5)),
    ];
    for (text, part) in of_jobs {
        let found =
            conflicts(&format!("maximize: sum_over_jobs(throughput)\nfor_each_job: [\"{text}\"]\n"), THREE);
        let [Conflict { constraint, job: Some(_), possible, .. }] = found.as_slice() else {
            panic!("{text}: {found:?}")
        };
        assert_eq!(constraint, text);
        let close = possible.zip(part).is_none_or(|(found, part)| (found - part).abs() < 1e-6);
        let is_last = found[0].job == Some(2);
        assert!(possible.is_some() == part.is_some() && (close || !is_last), "{text}: {possible:?}");
    }
    // isolated throughputs are 2.5, 2.5 and 2 steps/s; a and b on v100s and c on a p100 do best.
    let logs = (4.0_f64 / 2.5).ln() + (3.0_f64 / 2.5).ln();
    let of_cluster = [
        ("sum_over_jobs(log(throughput / isolated_throughput)) >= 5", Some(logs / 5.0)),
        ("min_over_jobs(log(throughput / isolated_throughput)) >= 0.1", Some(0.0)),
        (
            "sum_over_jobs(inv(throughput / isolated_throughput)) <= 2",
            Some((2.5 / 4.0 + 2.5 / 3.0 + 1.0) / 2.0),
        ),
    ];
    for (text, part) in of_cluster {
        let found =
            conflicts(&format!("maximize: sum_over_jobs(throughput)\nconstraints: [\"{text}\"]\n"), THREE);
        let [Conflict { constraint, job: None, possible: Some(possible), .. }] = found.as_slice() else {
            panic!("{text}: {found:?}")
        };
        assert_eq!(constraint, text);
        near(*possible, part.unwrap());
    }
    // Droppable constraints are never reported as contradictions, even if they contradict one another.
    let beside = "maximize: sum_over_jobs(throughput)\nfor_each_job:\n  - time_on(k80) >= 1.001
  - {constraint: \"throughput >= 3.9[steps/s]\", droppable: true}
  - {constraint: \"throughput <= 0.1[steps/s]\", droppable: true}\n";
    let found =
        conflicts(beside, "cluster: {v100: 1, k80: 1}\njobs: [{id: a, throughput: {v100: 4, k80: 0.01}}]\n");
    assert!(found.len() == 1 && found[0].constraint.contains("1.001"), "{found:?}");
}

const DROPPABLE: [&str; 5] = [
    "throughput >= 2[steps/s]",
    "throughput <= 1[steps/s]",
    "time_on(v100) <= 0.3",
    "time_on(v100) >= time_on(k80)",
    "throughput - 2[steps/s] * time_on(k80) >= 0.5[steps/s]",
];

const HARD: [&str; 3] = ["time_on(k80) >= 0", "time_on(k80) >= 0.3", "throughput >= 0.5[steps/s]"];

/// The snapshot, with the jobs of a set owned by `kept`.
fn speeds(jobs: &[[u32; 2]], kept: usize) -> String {
    let job = |(position, [fast, slow]): (usize, &[u32; 2])| {
        let owner = if kept >> position & 1 == 1 { "entity: kept, " } else { "" };
        format!("  - {{id: j{position}, {owner}throughput: {{v100: {fast}, k80: {slow}}}}}\n")
    };
    let jobs: String = jobs.iter().enumerate().map(job).collect();
    format!("cluster: {{v100: 1, k80: 2}}\nentities: [{{id: kept}}]\njobs:\n{jobs}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_droppable_constraints_of_any_form_as_few_are_dropped_as_can_be(
        jobs in prop::collection::vec([1_u32..6, 1_u32..4], 1..=4),
        chosen in prop::sample::subsequence(DROPPABLE.to_vec(), 1..=2),
        hard in prop::sample::select(HARD.to_vec()),
    ) {
        let listed = |texts: &[String]| format!("maximize: sum_over_jobs(throughput)\nfor_each_job:\n  - {}\n", texts.join("\n  - "));
        let droppable = chosen.iter().map(|text| format!("{{constraint: \"{text}\", droppable: true}}"));
        let decision = decide(&listed(&droppable.chain([format!("\"{hard}\"")]).collect::<Vec<_>>()), &speeds(&jobs, 0));
        // The same, hard for the jobs of a set and void for the others.
        let of_kept = |text: &&str| {
            let (left, right) = text.split_once("= ").unwrap();
            let (left, sign) = left.split_at(left.len() - 1);
            format!("'owned_by(\"kept\") * ({left}) {sign}= owned_by(\"kept\") * ({right})'")
        };
        let held = listed(&chosen.iter().map(of_kept).chain([format!("\"{hard}\"")]).collect::<Vec<_>>());
        let possible = (0..1_usize << jobs.len()).filter(|kept| decide(&held, &speeds(&jobs, *kept)).is_ok());
        let most = possible.map(|kept| (0..jobs.len()).filter(|job| kept >> job & 1 == 1).count()).max();
        let kept = decision.ok().map(|decision| jobs.len() - decision.dropped.len());
        prop_assert_eq!(kept, most, "{:?} {} {:?}", chosen, hard, jobs);
    }
}

/// Two jobs on one worker of which each is to have half and a little more, and four on two and two with logarithms.
fn on_the_verge(more: f64) -> [(String, &'static str); 2] {
    let half = 0.5 + more;
    [
        (
            format!("maximize: sum_over_jobs(throughput)\nfor_each_job: ['throughput >= {half}[steps/s]']\n"),
            "cluster: {v100: 1}\njobs: [{id: a, throughput: {v100: 1}}, {id: b, throughput: {v100: 1}}]\n",
        ),
        (
            format!(
                "maximize: sum_over_jobs(log(throughput / 1[steps/s]))\nfor_each_job: ['time_on(v100) >= {half}']\n"
            ),
            "cluster: {v100: 2, p100: 2}\njobs: [{id: a, throughput: {v100: 2, p100: 1}},
  {id: b, throughput: {v100: 3, p100: 2}}, {id: c, throughput: {v100: 4, p100: 3}}, {id: d, throughput: {v100: 5, p100: 4}}]\n",
        ),
    ]
}

#[test]
fn what_a_solver_tolerates_is_not_taken_for_an_allocation_that_keeps_all_constraints() {
    for more in [5e-9, 1e-8, 3e-8, 1e-7, 4.7e-7, 6e-7, 1e-6] {
        for (policy, snapshot) in on_the_verge(more) {
            let found = conflicts(&policy, snapshot);
            assert!(!found.is_empty(), "{more}: {policy}");
        }
    }
    // Closer than that nothing is proven, and the report says by how much the shares violate the constraint.
    let [(policy, snapshot), _] = on_the_verge(1e-9);
    let objective = decide(&policy, snapshot).unwrap().objective.unwrap();
    assert!(objective.violation_max >= 1e-9, "{objective:?}");
}

#[test]
fn dual_values_that_prove_nothing_are_no_prices() {
    for more in [0.0, 1e-12, 1e-11, 1e-10, 1e-9] {
        let [(policy, snapshot), _] = on_the_verge(more);
        let (mut policy, problem) = read(&policy, snapshot);
        let explanation = policy.explain(&problem).unwrap();
        let prices: Vec<f64> = explanation.types.iter().filter_map(|kind| kind.one_more).collect();
        assert!(prices.iter().all(|price| price.abs() < 1e3), "{more}: {prices:?}");
        assert!(more > 0.0 || !prices.is_empty(), "with {more} more there are prices");
    }
}

#[test]
fn what_is_paid_for_beside_a_promise_is_no_gain_of_the_promises() {
    let kept = "minimize: sum_over_jobs(price(v100) * workers_on(v100))\nfor_each_job:
  - {constraint: time_on(v100) <= 0.5, droppable: true}\n  - {constraint: time_on(v100) >= 0.25, soft: 0.05}\n";
    let one = "cluster: {v100: 2}\nprices: {v100: 1}\njobs: [{id: a, throughput: {v100: 4}}]\n";
    near(value(kept, one), 0.25 * 0.05);
}

#[test]
fn a_share_of_rounding_breaks_no_promise() {
    let text = "minimize: sum_over_jobs(price(v100) * workers_on(v100))\nfor_each_job:
  - {constraint: throughput_on(v100) <= 0.3 * throughput, droppable: true}
constraints: [sum_over_jobs(sqrt(throughput / isolated_throughput)) >= 1]\n";
    let three = "cluster: {v100: 1}\nprices: {v100: 1}\njobs:
  - {id: a, throughput: {v100: 4}}\n  - {id: b, throughput: {v100: 4}}\n  - {id: c, throughput: {v100: 4}}\n";
    let decision = decide(text, three).unwrap();
    near(decision.objective.unwrap().value, 1.0 / 3.0);
    assert_eq!(decision.dropped.len(), 1, "{:?}", decision.dropped);
}

#[test]
fn constraints_that_leave_a_job_nothing_of_what_the_objective_needs_are_named() {
    let rho = "(elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput)";
    let parametric = format!("minimize: max_over_jobs({rho})\n");
    let two = "cluster: {v100: 1, k80: 1}\njobs:
  - {id: a, steps_remaining: 100, throughput: {v100: 4}}\n  - {id: b, steps_remaining: 100, throughput: {v100: 4, k80: 1}}\n";
    for objective in [
        "minimize: max_over_jobs(steps_remaining / throughput)\n",
        "minimize: sum_over_jobs(steps_remaining / throughput)\n",
        "maximize: sum_over_jobs(log(throughput / isolated_throughput))\n",
        "maximize: min_over_jobs(log(throughput / isolated_throughput))\n",
        parametric.as_str(),
    ] {
        for constraint in ["time_on(v100) <= 0", "throughput_on(v100) <= 0.3 * throughput"] {
            let found = conflicts(&format!("{objective}for_each_job: [{constraint}]\n"), two);
            let [own, needed] = &found[..] else { panic!("{objective} {constraint}: {found:?}") };
            assert_eq!((own.constraint.as_str(), own.job), (constraint, Some(0)));
            assert!(needed.constraint.starts_with("throughput > 0") && needed.job == Some(0), "{needed:?}");
        }
    }
}

/// A constraint that bounds by 0 what jobs may have gives them nothing, not a share of a solver's tolerance, whichever
/// method decides.
#[test]
fn jobs_that_a_constraint_forbids_all_have_no_time_at_all() {
    let snapshot = "cluster: {v100: 1, k80: 1}\nentities: [{id: a}, {id: b}]\njobs:
  - {id: x, throughput: {v100: 4, k80: 1}, steps_remaining: 1000, entity: a}
  - {id: y, throughput: {v100: 3, k80: 2}, steps_remaining: 1000, entity: b}\n";
    let forbidden = "constraints: ['sum_over_jobs(owned_by(\"a\") * sum_over_worker_types(workers_on(type))) <= 0[workers]']\n";
    for (objective, expected) in [
        ("maximize: sum_over_jobs(throughput)\nrefine: interior\n", 3.0),
        // 3 steps/s, and isolated half of 3 and half of 2
        ("maximize: sum_over_jobs(sqrt(throughput / isolated_throughput))\n", (3.0_f64 / 2.5).sqrt()),
    ] {
        let decision = decide(&format!("{objective}{forbidden}"), snapshot).unwrap();
        let given = decision.allocation.effective_throughput().as_slice().to_vec();
        assert_eq!(given[0].to_bits(), 0.0_f64.to_bits(), "{objective}: {given:?}");
        let report = decision.objective.unwrap();
        assert!(report.optimal, "{objective}: {report:?}");
        near(report.value, expected);
    }
    // A bound a little above 0 is not a bound of 0: this constraint can be kept, and is not reported as a contradiction.
    let little = forbidden.replace("<= 0[", "<= 1e-13[");
    let decided = decide(
        &format!("maximize: sum_over_jobs(log(throughput / isolated_throughput))\n{little}"),
        snapshot,
    );
    assert!(
        !matches!(decided, Err(PolicyError::Conflict { .. } | PolicyError::Infeasible { .. })),
        "{decided:?}"
    );
    // A tiny part of the others' throughput is not 0 either, though it is far below a solver's tolerance.
    let part =
        "constraints: ['sum_over_jobs(owned_by(\"a\") * throughput) <= 1e-16 * sum_over_jobs(throughput)']\n";
    let decided =
        decide(&format!("maximize: sum_over_jobs(log(throughput / isolated_throughput))\n{part}"), snapshot);
    assert!(
        !matches!(decided, Err(PolicyError::Conflict { .. } | PolicyError::Infeasible { .. })),
        "{decided:?}"
    );
    let nothing = decide(
        &format!("maximize: sum_over_jobs(log(throughput / isolated_throughput))\n{forbidden}"),
        snapshot,
    );
    assert!(matches!(nothing, Err(PolicyError::Conflict { .. })), "{nothing:?}");
}

/// A deadline that has passed drops the constraints that read it, and no others.
#[test]
fn a_deadline_that_has_passed_drops_no_constraint_that_does_not_read_it() {
    let snapshot = "cluster: {v100: 2}\njobs:
  - {id: late, throughput: {v100: 4}, steps_remaining: 1000, slo_remaining: -5}
  - {id: y, throughput: {v100: 3}, steps_remaining: 1000}\n";
    let dropped = |constraint: &str| {
        let policy = format!(
            "maximize: sum_over_jobs(throughput)\nfor_each_job: [{{constraint: {constraint}, droppable: true}}]\n"
        );
        decide(&policy, snapshot).unwrap().dropped
    };
    assert!(dropped("throughput >= 0.25 * isolated_throughput").is_empty());
    assert_eq!(dropped("throughput >= steps_remaining / slo_remaining"), [JobIndex::from_index(0)]);
}
