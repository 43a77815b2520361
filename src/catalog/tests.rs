use super::*;
use crate::index::{Id, JobId};
use crate::problem::{ActiveJob, ProblemBuilder};
use crate::units::Steps;

#[test]
fn parameters_out_of_their_range_are_refused_at_their_place() {
    for (rule, parameters, expected) in [
        ("allox", "alpha: 0", "6:21: `alpha` is 0.0, expected a number above 0, at most 1"),
        ("allox", "alpha: 1.5", "6:21: `alpha` is 1.5"),
        ("allox", "fidelity: published", "6:14: unknown key `fidelity`, expected `alpha`"),
        ("gandiva", "behaviour: published", "6:14: unknown key `behaviour`"),
        ("fifo_packed", "threshold: -1", "6:25: `threshold` is -1.0, expected a number from 0 to 100"),
        ("gandiva", "threshold: .inf", "6:25: `threshold` is inf"),
        ("las", "thresholds: [10, 5]", "6:26: `thresholds` is [10.0, 5.0], expected numbers"),
        ("las", "thresholds: [0, 5]", "6:26: `thresholds` is [0.0, 5.0]"),
        ("las", "promote_after: 0", "6:29: `promote_after` is 0.0, expected a number above 0, or null"),
        ("themis", "fairness: 7", "6:24: `fairness` is 7.0, expected a number from 0 to 1"),
        ("themis", "lease_s: .nan", "6:23: `lease_s` is NaN, expected a number of seconds above 0"),
        ("srtf", "measure: yards", "6:23: unknown name `yards`"),
        ("fifo", "alpha: 1", "6:1: this rule has no parameters"),
    ] {
        let text = format!(
            "format: apportion/policy-v1\nname: p\nsummary: s\nkind: heuristic\nrule: {rule}\n\
             parameters: {{{parameters}}}\n"
        );
        let mut catalog = Catalog::embedded();
        let added = catalog.add(Source::new("p", text)).map(|_| ());
        let error = match added {
            Ok(()) => catalog.policy("p").unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(&format!("p:{expected}")), "{error}\nlacks {expected}");
    }
}

#[test]
fn every_shipped_policy_is_built_at_either_fidelity() {
    let catalog = Catalog::embedded();
    for name in catalog.names() {
        for fidelity in [Fidelity::Corrected, Fidelity::Published] {
            let options = PolicyOptions { fidelity, ..PolicyOptions::default() };
            let inside = catalog.document(name).unwrap().decides_inside_rounds();
            match catalog.ready(name, &options).unwrap() {
                Ready::Allocating(policy) => assert!(policy.name() == name && !inside),
                Ready::InRounds(_) => {
                    let error = catalog.build(name, &options).unwrap_err().to_string();
                    let said = format!("policy `{name}` decides inside rounds");
                    assert!(inside && error.starts_with(&said), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_policy_of_ten_lines_is_added_and_used_by_name() {
    let text = "format: apportion/policy-v1\nname: mine\nsummary: mine\nkind: program\n\
                maximize: min_over_jobs(throughput / isolated_throughput)\n";
    let mut catalog = Catalog::embedded();
    catalog.add(Source::new("mine.yaml", text)).unwrap();
    assert_eq!(catalog.policy("mine").unwrap().name(), "mine");
    let error = catalog.policy("max_min_fairnes").unwrap_err().to_string();
    assert!(error.contains("unknown policy `max_min_fairnes`, expected a file or one of"), "{error}");
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let options = PolicyOptions { refine: Some(Refine::WaterFilling), ..PolicyOptions::default() };
    let error = Catalog::embedded().build("proportional_fairness", &options).unwrap_err();
    assert!(matches!(error, CatalogError::Program { .. }), "{error}");
    let text = "format: apportion/policy-v1\nname: soft\nsummary: s\nkind: program\n\
                maximize: min_over_jobs(throughput / isolated_throughput)\n\
                constraints: [{constraint: sum_over_jobs(time_on(a)) <= 2, soft: 1}]\n";
    let mut catalog = Catalog::embedded();
    catalog.add(Source::new("soft.yaml", text)).unwrap();
    assert!(catalog.policy("soft").is_ok());
    let error = catalog.build("soft", &options).unwrap_err().to_string();
    assert!(error.contains("no constraint can be soft: use `min_over_jobs`"), "{error}");
    let options = PolicyOptions { backend: Some("abacus".to_owned()), ..PolicyOptions::default() };
    assert!(Catalog::embedded().build("max_min_fairness", &options).is_err());
}

/// A catalog with a program that declares parameters of every kind.
fn with_parameters(parameters: &str, rest: &str) -> Result<Catalog, SpecError> {
    let text = format!(
        "format: apportion/policy-v1\nname: mine\nsummary: s\nkind: program\nparameters:\n{parameters}\n{rest}\n"
    );
    let mut catalog = Catalog::embedded();
    catalog.add(Source::new("mine.yaml", text))?;
    Ok(catalog)
}

const FLOOR: &str = "maximize: sum_over_jobs(throughput / isolated_throughput * weight^power)\n\
                     for_each_job: [\"throughput >= floor * isolated_throughput\"]\n\
                     constraints: [\"sum_over_jobs(sum_over_worker_types(price(type) * workers_on(type))) <= budget\"]";
const DECLARED: &str =
    "  power: -0.5\n  floor: {default: 0, from: 0, to: 1}\n  budget: {default: 9, unit: $/h, from: 0}";

#[test]
fn parameters_stand_for_their_numbers() {
    let catalog = with_parameters(DECLARED, FLOOR).unwrap();
    let written = |name: &str| objective_of(&catalog.document(name).unwrap()).unwrap().unwrap();
    let objective = written("mine:floor=0.25:power=2");
    assert_eq!(
        objective.expression().to_string(),
        "sum_over_jobs(throughput / isolated_throughput * weight^2.0)"
    );
    assert_eq!(objective.constraints()[0].excess.to_string(), "0.25 * isolated_throughput - throughput");
    assert!(objective.constraints()[1].excess.to_string().ends_with(" - 9.0[$/h]"));
    assert!(written("mine").expression().to_string().ends_with("weight^-0.5)"));
    assert_eq!(catalog.policy("mine:power=2.0:floor=1e-1").unwrap().name(), "mine:floor=0.1:power=2");
}

#[test]
fn parameters_of_a_rule_are_set_as_those_of_a_program_are() {
    let catalog = Catalog::embedded();
    let document = catalog.document("las:thresholds=[60, 3600]:promote_after=null").unwrap();
    assert_eq!(document.name, "las:promote_after=null:thresholds=[60,3600]");
    let parameters: LasParameters = document.parameters().unwrap();
    assert_eq!((parameters.thresholds, parameters.promote_after), (vec![60.0, 3600.0], None));
    assert!(parameters.backfill, "as its document says");
}

#[test]
fn a_digest_tells_parameters_apart() {
    let catalog = Catalog::embedded();
    let digest = |name: &str| catalog.digest(name).unwrap();
    assert_ne!(
        digest("tempered_completion_rate:exponent=0.5"),
        digest("tempered_completion_rate:exponent=0.75")
    );
    assert_ne!(digest("tempered_completion_rate:exponent=0.5"), digest("tempered_completion_rate"));
    assert_eq!(
        digest("tempered_completion_rate:exponent=0.5"),
        digest("tempered_completion_rate:exponent=5e-1")
    );
    assert_ne!(digest("themis:fairness=0.5"), digest("themis"));
}

#[test]
fn parameters_that_do_not_fit_are_refused_where_the_policy_is_named() {
    for (name, expected) in [
        (
            "tempered_completion_rate:exponent=9",
            "tempered_completion_rate:exponent=9: `exponent` is 9, expected a number from -2 to 2",
        ),
        ("tempered_completion_rate:exponent=.nan", "`exponent` is `null`, expected a number"),
        ("tempered_completion_rate:exponent=.inf", "`exponent` is `null`, expected a number"),
        ("tempered_completion_rate:exponent=", "`exponent` is `null`, expected a number"),
        ("tempered_completion_rate:exponent=much", "`exponent` is `much`, expected a number"),
        (
            "tempered_completion_rate:exponnet=1",
            "unknown parameter `exponnet`, expected one of `exponent`, `floor`",
        ),
        ("tempered_completion_rate:exponent=1:exponent=1", "`exponent` is given twice"),
        ("tempered_completion_rate:exponent=1:2", "`2` is no parameter, expected NAME=VALUE"),
        ("tempered_completion_rate:exponent=[", "`exponent=[` has no value that can be read"),
        ("max_min_fairness:exponent=1", "policy `max_min_fairness` has no parameters"),
        ("fifo:alpha=1", "policy `fifo` has no parameters"),
        ("completion:exponent=1", "unknown policy `completion`, expected a file or one of"),
        ("themis:fairness=7", "themis:fairness=7: `fairness` is 7.0, expected a number from 0 to 1"),
        ("themis:fairness=much", "`fairness` is the text \"much\", expected a number"),
        ("themis:lease=7", "unknown key `lease`, expected `lease_s` or `fairness`"),
    ] {
        let error = Catalog::embedded().policy(name).expect_err(name).to_string();
        assert!(error.contains(expected), "{error}\nlacks {expected}");
    }
}

#[test]
fn parameters_that_a_document_cannot_have_are_refused_at_their_place() {
    let objective = "maximize: sum_over_jobs(throughput * power)";
    for (parameters, rest, expected) in [
        ("  power: .nan", objective, "6:10: `power` is NaN, expected a number from -1e15 to 1e15"),
        ("  power: {default: 3, to: 2}", objective, "6:20: `power` is 3, expected a number, 2 at most"),
        ("  power: {default: 3, form: 2}", objective, "6:23: unknown key `form`"),
        ("  power: {from: 3}", objective, "`parameters.power` has no `default`"),
        ("  power: high", objective, "6:10: `parameters.power` is the text \"high\", expected a number"),
        ("  power: {default: 3, unit: W}", objective, "6:29: unknown unit `W`"),
        ("  power: 1\n  weight: 1", objective, "7:3: parameter `weight` has a name that is taken"),
        ("  power: 1\n  floor: 1", objective, "7:3: parameter `floor` is declared but neither"),
        ("  power: 0", "maximize: sum_over_jobs(throughput / power)", "7:38: division by `0.0`"),
        (
            "  b: {default: 2, unit: s}",
            "maximize: sum_over_jobs(throughput * weight^b)",
            "7:45: expected a number without a unit",
        ),
        ("  power: 1", "maximize: sum_over_jobs(throughput * pwoer)", "7:38: unknown name `pwoer`"),
    ] {
        let error = with_parameters(parameters, rest).map(|_| ()).expect_err(parameters).to_string();
        assert!(
            error.contains(&format!("mine.yaml:{expected}")) || error.contains(expected),
            "{error}\nlacks {expected}"
        );
    }
}

#[test]
fn a_reference_is_a_policy_and_what_stands_behind_it() {
    for (text, policy, moved) in [
        ("fifo", "fifo", "x"),
        ("themis:fairness=0.5", "themis", "x:fairness=0.5"),
        ("runs:v=1/mine.yaml", "runs:v=1/mine.yaml", "x"),
        ("runs:v=1/mine.yaml:a=1:b=2", "runs:v=1/mine.yaml", "x:a=1:b=2"),
        ("C:mine.yaml", "C:mine.yaml", "x"),
        (":a=1", ":a=1", "x"),
    ] {
        let reference = PolicyReference::new(text);
        assert_eq!((reference.policy, reference.at("x").as_str()), (policy, moved), "{text}");
    }
}

#[test]
fn an_exponent_decides_which_of_two_jobs_is_served() {
    // One worker, and two jobs of 1 step/s with one hour and four hours left. All of its time is worth 1 job an hour · 1 to
    // the one, and 1/4 · 4^exponent to the other: 1/4 by exponent 0, 4 by exponent 2.
    for (policy, first) in [
        ("tempered_completion_rate:exponent=0:floor=0", 1.0),
        ("tempered_completion_rate:exponent=2:floor=0", 0.0),
    ] {
        for policy in [policy.to_owned(), policy.replace("rate", "rate_packed")] {
            let mut builder = ProblemBuilder::new(Arc::new("a=1".parse().unwrap()));
            for (id, hours) in [1.0, 4.0].into_iter().enumerate() {
                let steps_remaining = Steps::new(hours * 3600.0);
                builder.job(ActiveJob { steps_remaining, ..ActiveJob::new(JobId::from_index(id)) }, &[1.0]);
            }
            let decided =
                Catalog::embedded().policy(&policy).unwrap().allocate(&builder.build().unwrap()).unwrap();
            let throughput = decided.allocation.effective_throughput();
            let found: Vec<f64> = throughput.iter().copied().collect();
            assert!(
                (found[0] - first).abs() < 1e-6 && (found[1] - (1.0 - first)).abs() < 1e-6,
                "{policy}: {found:?}"
            );
        }
    }
}
