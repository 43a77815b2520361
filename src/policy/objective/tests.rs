use super::*;
use crate::program::Route;
use crate::spec::policy::EMBEDDED;
use crate::spec::{Diagnostic, Source, load_policy};

fn policy(body: &str) -> Result<Option<Objective>, SpecError> {
    let text = format!("format: apportion/policy-v1\nname: mine\nsummary: mine\nkind: program\n{body}");
    objective_of(&PolicyDocument::read(Source::new("mine.yaml", text))?)
}

fn complaint(body: &str) -> Diagnostic {
    policy(body).expect_err(body).diagnostics.remove(0)
}

#[test]
fn every_shipped_policy_is_documented_and_takes_its_route() {
    let mut routes = Vec::new();
    for (name, _) in EMBEDDED {
        let document = load_policy(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(document.name, name);
        assert!(document.origin.is_some(), "policies/{name}.yaml has no `source`: say where it comes from");
        assert!(
            document.notes.is_some(),
            "policies/{name}.yaml has no `notes`: say what its summary leaves out"
        );
        let objective = objective_of(&document).unwrap_or_else(|error| panic!("{error}"));
        routes.push((name, objective.map(|objective| (objective.route(), objective.job_data().join(" ")))));
    }
    let route = |name: &str| routes.iter().find(|(other, _)| *other == name).unwrap().1.clone();
    let level = "weight scale_factor equal_share_throughput".to_owned();
    assert_eq!(route("max_min_fairness_packed"), Some((Route::Linear, level)));
    assert_eq!(route("min_total_duration"), Some((Route::Linear, "steps_remaining".to_owned())));
    let data = "steps_remaining elapsed isolated_elapsed isolated_throughput".to_owned();
    assert_eq!(route("finish_time_fairness_perf"), Some((Route::Parametric, data)));
    assert_eq!(route("proportional_fairness"), Some((Route::Conic, "weight".to_owned())));
    assert_eq!(route("fifo"), None);
}

#[test]
fn every_program_and_rule_of_the_folder_is_shipped() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/policies");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .filter(|path| !std::fs::read_to_string(path).unwrap().contains("\nkind: learned\n"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let mut shipped: Vec<String> = EMBEDDED.iter().map(|(name, _)| (*name).to_owned()).collect();
    files.sort();
    shipped.sort();
    for name in &files {
        assert!(shipped.contains(name), "policies/{name}.yaml has no line in src/spec/policy/embedded.rs");
    }
    for name in &shipped {
        assert!(
            files.contains(name),
            "{name} has a line in src/spec/policy/embedded.rs and no file in policies/"
        );
    }
    assert_eq!(files.len(), shipped.len(), "a policy has two lines in src/spec/policy/embedded.rs");
}

/// Checks place (line, column, width), message and help of the first error in a policy's body.
#[track_caller]
fn assert_complaint(body: &str, place: (usize, usize, usize), message: &str, help: &str) {
    let found = complaint(body);
    assert_eq!((found.line, found.column, found.width), place, "{body}\n{found:?}");
    assert!(found.message.contains(message), "{body}: {}", found.message);
    assert!(found.help.unwrap_or_default().contains(help), "{body}");
}

#[test]
fn complaints_point_into_the_objective() {
    let check = assert_complaint;
    check(
        "maximize: min_over_jobs(thruput)",
        (5, 25, 7),
        "unknown name `thruput`",
        "did you mean `throughput`?",
    );
    let body = "maximize: sum_over_jobs(steps_remaining / throughput)";
    check(body, (5, 11, 43), "`maximize` of", "must be concave");
    let body = "maximize: sum_over_jobs(throughput + elapsed)";
    check(body, (5, 25, 20), "sum of `steps/s` and `s`", "unit in brackets");
    let body = "minimize: max_over_jobs(steps_remaining / elapsed * throughput)";
    check(body, (5, 43, 7), "division by `elapsed`", "max(elapsed");
    let body = "maximize: >-\n  sum_over_jobs(\n    weight *\n    trougput)";
    check(body, (8, 5, 8), "unknown name", "did you mean");
}

#[test]
fn complaints_point_into_constraints_columns_and_refinement() {
    let check = |rest: &str, place, message, help| {
        let body = format!("maximize: sum_over_jobs(throughput)\n{rest}");
        assert_complaint(&body, place, message, help);
    };
    check("for_each_job:\n  - throughput >= 3", (7, 5, 15), "comparison of", "unit");
    let mapped = "for_each_job:\n  - {constraint: throughput >= q, soft: 2}";
    check(mapped, (7, 32, 1), "unknown name `q`", "");
    let cluster = |row: &str| format!("constraints:\n  - {row}");
    check(&cluster("throughput <= 3[steps/s]"), (7, 5, 10), "of one job", "`sum_over_jobs(…)`");
    check(
        &cluster("sum_over_jobs(price(type)) <= 3"),
        (7, 19, 10),
        "of one worker type",
        "sum_over_worker_types",
    );
    let unit = "sum_over_jobs(throughput) <= 3[$/h]";
    check(&cluster(unit), (7, 5, 35), "comparison of `steps/s` and `$/h`", "unit in brackets");
    let curved = "sum_over_jobs(sqrt(throughput)) <= 3[$]";
    check(&cluster(curved), (7, 5, 39), "comparison", "");
    let concave = "min_over_jobs(throughput) <= 3[steps/s]";
    check(&cluster(concave), (7, 5, 39), "its left side is concave", "must be concave");
    check(&cluster("3 <= 4"), (7, 5, 6), "does not depend on the allocation", "`throughput`");
    let dropped = "{constraint: 'sum_over_jobs(throughput) >= 3[steps/s]', droppable: true}";
    check(&cluster(dropped), (7, 19, 39), "only a hard, linear constraint of `for_each_job`", "soft");
    check(&cluster("sum_over_jobs(owned_by * throughput) <= 0"), (7, 19, 8), "the name of an owner", "");
    check(
        &cluster("sum_over_jobs(throughput) <= owned_by(\"a\")"),
        (7, 34, 8),
        "of one job",
        "sum_over_jobs",
    );
    check("columns: {bonus: s > 0}", (6, 11, 5), "declared but", "remove it");
    check("columns: {bonus: lightyears}", (6, 18, 10), "expected a unit", "as in");
    check("refine: water_filling", (6, 9, 13), "needs levels", "min_over_jobs");
}

#[test]
fn an_own_column_enters_the_objective() {
    let body = "maximize: sum_over_jobs(bonus * log(throughput))\ncolumns: {bonus: 1 > 0}";
    let objective = policy(body).unwrap().unwrap();
    assert_eq!(objective.job_data(), ["bonus"]);
    let unsigned = "maximize: sum_over_jobs(bonus * log(throughput))\ncolumns: {bonus: 1}";
    assert!(complaint(unsigned).message.contains("whose sign is not known"));
}

#[test]
fn soft_constraints_are_refused_where_one_level_is_raised_after_the_other() {
    let level = "over_jobs(throughput / isolated_throughput)";
    for (list, constraint) in [
        ("for_each_job", "throughput <= 1.1 * isolated_throughput"),
        ("for_each_worker_type", "sum_over_jobs(workers_on(type)) <= 2[workers]"),
        ("constraints", "sum_over_jobs(workers_on(v100)) <= 2[workers]"),
    ] {
        let soft = format!("{list}:\n  - constraint: {constraint}\n    soft: 0.1\n");
        assert!(policy(&format!("maximize: min_{level}\n{soft}")).is_ok(), "{list}");
        let found = complaint(&format!("maximize: lexicographic_min_{level}\n{soft}"));
        assert_eq!((found.line, found.column), (7, 17), "{list}");
        assert!(found.message.ends_with("by `lexicographic_min_over_jobs`"), "{}", found.message);
        assert!(found.help.is_some_and(|help| help.contains("`min_over_jobs(…)`")));
        let found = complaint(&format!("maximize: min_{level}\n{soft}refine: water_filling\n"));
        assert_eq!((found.line, found.column), (7, 17), "{list}");
        assert!(found.message.ends_with("by `refine: water_filling`"), "{}", found.message);
    }
}
