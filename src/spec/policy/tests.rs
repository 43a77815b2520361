use super::*;
use crate::spec::Diagnostic;

const HEAD: &str = "format: apportion/policy-v1\nname: mine\nsummary: mine\n";

fn read(body: &str) -> Result<PolicyDocument, SpecError> {
    PolicyDocument::read(Source::new("mine.yaml", format!("{HEAD}{body}")))
}

fn complaint(body: &str) -> Diagnostic {
    read(body).expect_err(body).diagnostics.remove(0)
}

#[test]
fn a_program_is_read_with_its_defaults() {
    let document = read("kind: program\nmaximize: sum_over_jobs(throughput)\n").unwrap();
    let PolicyKind::Program(program) = document.kind else { panic!("a program") };
    assert!(program.maximize);
    assert_eq!((program.view, program.colocation), (View::Measured, Colocation::None));
    assert_eq!(program.refine, Refine::Utilization);
}

#[test]
fn constraints_are_texts_or_mappings() {
    let body = "kind: program\nmaximize: sum_over_jobs(throughput)\nfor_each_job:\n  - a <= b\n  - {constraint: c == d, soft: 2.5}\n";
    let PolicyKind::Program(program) = read(body).unwrap().kind else { panic!("a program") };
    let constraints: Vec<_> =
        program.for_each_job.iter().map(|item| (item.constraint.as_str(), item.soft)).collect();
    assert_eq!(constraints, [("a <= b", None), ("c == d", Some(2.5))]);
}

#[test]
fn views_are_read_back_as_they_are_written() {
    for text in
        ["measured", "unit", "reference(v100)", "reference(v100, p100, fastest)", "reference(fastest)"]
    {
        let body = format!("kind: program\nminimize: x\nthroughput: {text}\n");
        let PolicyKind::Program(program) = read(&body).unwrap().kind else { panic!("a program") };
        assert_eq!(program.view.to_string(), text);
    }
    for text in ["guessed", "reference()", "reference", "reference(fastest, v100)", "reference(a,,b)"] {
        let found = complaint(&format!("kind: program\nminimize: x\nthroughput: {text}\n"));
        assert!(found.message.starts_with("throughput view"), "{text}: {}", found.message);
        assert_eq!((found.line, found.column), (6, 13), "{text}");
    }
}

#[test]
fn fields_that_do_not_fit_together_are_refused_at_their_place() {
    for (body, line, message) in [
        ("kind: program\n", 4, "a program needs `maximize` or `minimize`"),
        ("kind: program\nmaximize: x\nminimize: y\n", 6, "both `maximize` and `minimize` are given"),
        ("kind: program\nmaximize: x\nrule: fifo\n", 6, "`rule` belongs to `kind: heuristic`"),
        ("kind: heuristic\n", 4, "a heuristic needs `rule`"),
        ("kind: heuristic\nrule: fifo\nrefine: none\n", 6, "`refine` belongs to `kind: program`"),
        ("kind: heuristic\nrule: isolated\nparameters: {alpha: 1}\n", 6, "this rule has no parameters"),
        ("kind: heuristic\nrule: fifoo\n", 5, "unknown"),
        ("kind: heuristic\nrule: fifo\ncolocation: pairs\n", 6, "`colocation` belongs to `kind: program`"),
        ("kind: heuristic\nrule: fifo\nactor: pairs\n", 6, "unknown key `actor`"),
        ("kind: program\nmaximise: x\n", 5, "unknown key `maximise`"),
        ("kind: program\nmaximize: x\nfor_each_job: [{constraint: x, sofft: 1}]\n", 6, "unknown key `sofft`"),
        ("kind: program\nmaximize: x\nfor_each_job: [3]\n", 6, "a constraint"),
    ] {
        let found = complaint(body);
        assert!(found.message.contains(message), "{body}: {}", found.message);
        assert_eq!(found.line, line, "{body}: {found:?}");
    }
    let empty = PolicyDocument::read(Source::new(
        "mine.yaml",
        "format: apportion/policy-v1\nname: ''\nsummary: ' '\nkind: heuristic\n",
    ));
    assert_eq!(empty.unwrap_err().diagnostics.len(), 3, "all at once");
}

#[test]
fn parameters_are_read_as_their_rule_wants_them() {
    #[derive(Debug, Default, PartialEq, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Parameters {
        alpha: f64,
    }
    let document = read("kind: heuristic\nrule: allox\nparameters: {alpha: 0.5}\n").unwrap();
    assert_eq!(document.parameters::<Parameters>().unwrap(), Parameters { alpha: 0.5 });
    let document = read("kind: heuristic\nrule: allox\nparameters: {beta: 0.5}\n").unwrap();
    let found = document.parameters::<Parameters>().unwrap_err().diagnostics.remove(0);
    assert!(found.message.contains("unknown key `beta`"), "{found:?}");
    assert_eq!(found.line, 6);
}

#[test]
fn a_plug_in_reads_the_fields_that_are_its_own() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Mine {
        #[serde(default)]
        depth: u32,
        names: Vec<String>,
    }
    let body = "kind: mine\nnames: [a, b]\ndepth: 3\nnotes: none\n";
    let document = read(body).unwrap();
    assert_eq!((document.kind_name(), document.notes.as_deref()), ("mine", Some("none")));
    let names = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(document.own_fields::<Mine>().unwrap(), Mine { depth: 3, names: names.clone() });
    let json = r#"{"format": "apportion/policy-v1", "name": "n", "names": ["a", "b"], "summary": "s", "kind": "mine"}"#;
    let document = PolicyDocument::read(Source::new("mine.json", json)).unwrap();
    assert_eq!(document.own_fields::<Mine>().unwrap(), Mine { depth: 0, names });
    for (body, line, message) in [
        ("kind: mine\nnames: [a]\ndeep: 3\n", 6, "unknown key `deep`"),
        ("kind: mine\nnames: [a]\ndepth: x\n", 6, "expected a whole number"),
        ("kind: mine\n", 1, "has no `names`"),
    ] {
        let found = read(body).unwrap().own_fields::<Mine>().unwrap_err().diagnostics.remove(0);
        assert!(found.message.contains(message), "{body}: {}", found.message);
        assert_eq!(found.line, line, "{body}: {found:?}");
    }
}
