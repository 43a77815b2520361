use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to be refused")]
struct Document {
    format: String,
    #[serde(default)]
    jobs: Vec<Entry>,
    #[serde(default, with = "serde_yaml::with::singleton_map")]
    rule: Rule,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read to be refused")]
struct Entry {
    id: u32,
    #[serde(default)]
    weight: Option<f64>,
    #[serde(default)]
    throughput: BTreeMap<String, f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Rule {
    #[default]
    Fifo,
    Cap {
        #[expect(dead_code, reason = "read to be refused")]
        workers: u32,
    },
}

/// The refusal of `text`, as `line:column [underlined] message | help`.
fn refusal(text: &str) -> String {
    match Source::new("d", text).parse_format::<Document>("apportion/test-v1") {
        Ok(_) => "accepted".to_owned(),
        Err(error) => brief(&error),
    }
}

fn brief(error: &SpecError) -> String {
    let lines = error.diagnostics.iter().map(|d| {
        let help = d.help.as_ref().map(|help| format!(" | {help}")).unwrap_or_default();
        let underlined: String = d.excerpt.chars().skip(d.column.saturating_sub(1)).take(d.width).collect();
        format!("{}:{} [{underlined}] {}{help}", d.line, d.column, d.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn check(text: &str, expected: &str) {
    assert_eq!(refusal(text), expected, "\n{text}");
}

const HEAD: &str = "format: apportion/test-v1\n";

#[test]
fn an_unknown_key_is_pointed_at_and_the_nearest_one_named() {
    let message =
        "unknown key `wieght`, expected one of `id`, `weight`, `throughput` | did you mean `weight`?";
    check(&format!("{HEAD}jobs:\n  - id: 1\n    wieght: 2\n"), &format!("4:5 [wieght] {message}"));
    check(
        r#"{"format": "apportion/test-v1", "jobs": [{"id": 1, "wieght": 2}]}"#,
        &format!("1:52 [\"wieght\"] {message}"),
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_pointed_at() {
    check(
        &format!("{HEAD}jobs:\n- {{id: 1, weight: heavy}}\n"),
        "3:19 [heavy] `jobs[0].weight` is the text \"heavy\", expected a number",
    );
    check(
        "{\"format\": \"apportion/test-v1\",\n \"jobs\": [{\"id\": 1, \"weight\": \"heavy\"}]}",
        "2:31 [\"heavy\"] `jobs[0].weight` is the text \"heavy\", expected a number",
    );
    for written in ["0x10", "0o17"] {
        check(
            &format!("{HEAD}jobs:\n- {{id: 1, weight: {written}}}\n"),
            &format!("3:19 [{written}] `jobs[0].weight` is `{written}`, expected a decimal number"),
        );
    }
    check(&format!("{HEAD}jobs: 3\n"), "2:7 [3] `jobs` is `3`, expected a list");
    check(
        &format!("{HEAD}jobs:\n- id: -1\n"),
        "3:7 [-1] `jobs[0].id` is `-1`, expected a whole number from 0 to 4294967295",
    );
    check(
        &format!("{HEAD}jobs:\n- id: 1.5\n"),
        "3:7 [1.5] `jobs[0].id` is `1.5`, expected a whole number from 0 to 4294967295",
    );
    check(
        &format!("{HEAD}jobs:\n- id: 99999999999\n"),
        "3:7 [99999999999] `jobs[0].id` is `99999999999`, expected a whole number from 0 to 4294967295",
    );
    check(
        &format!("{HEAD}jobs:\n- id: 1\n  throughput: [1, 2]\n"),
        "4:15 [[] `jobs[0].throughput` is a list, expected a mapping",
    );
}

#[test]
fn a_missing_key_is_looked_for_in_its_mapping() {
    check(&format!("{HEAD}jobs:\n- weight: 1\n"), "3:3 [w] `jobs[0]` has no `id`");
    check(
        "{\"format\": \"apportion/test-v1\",\n \"jobs\": [{\"id\": 1}, {\"weight\": 1}]}",
        "2:22 [{] `jobs[1]` has no `id`",
    );
}

#[test]
fn an_unknown_variant_is_pointed_at() {
    check(
        &format!("{HEAD}rule: fofi\n"),
        "2:7 [fofi] unknown name `fofi`, expected `fifo` or `cap` | did you mean `fifo`?",
    );
    check(
        &format!("{HEAD}rule: {{cap: {{wrokers: 2}}}}\n"),
        "2:14 [wrokers] unknown key `wrokers`, expected `workers` | did you mean `workers`?",
    );
}

#[test]
fn a_key_given_twice_is_refused() {
    check(&format!("{HEAD}jobs: []\njobs: []\n"), "3:1 [jobs] key `jobs` is given twice");
    check(
        &format!("{HEAD}jobs:\n- id: 1\n  throughput: {{a: 1, b: 2, a: 3}}\n"),
        "4:28 [a] key `a` is given twice",
    );
    check(
        r#"{"format": "apportion/test-v1", "jobs": [], "jobs": []}"#,
        "1:45 [\"jobs\"] key `jobs` is given twice",
    );
}

#[test]
fn another_format_is_named() {
    check(
        "jobs: []\n",
        "1:1 [j] the document has no `format`, expected `apportion/test-v1` | begin the file with `format: apportion/test-v1`",
    );
    check(
        "format: apportion/test-v2\n",
        "1:9 [apportion/test-v2] format is `apportion/test-v2`, expected `apportion/test-v1` | this program is older than the file's format: a newer release reads it",
    );
    check(
        "format: apportion/policy-v1\n",
        "1:9 [apportion/policy-v1] format is `apportion/policy-v1`, expected `apportion/test-v1` | this is a policy document, expected a test",
    );
}

#[test]
fn faults_in_a_list_are_in_plain_words() {
    let of = |text: &str| brief(&Source::new("d", text).parse::<Vec<Entry>>().unwrap_err());
    let unknown = of("- {id: 1}\n- {id: 2, wait: 3}\n");
    assert!(unknown.starts_with("2:11 [wait] unknown key `wait`, expected one of `id`"), "{unknown}");
    assert!(of("- {weight: 3}\n").ends_with(" `[0]` has no `id`"), "{}", of("- {weight: 3}\n"));
    let kind = of("[{id: 1, weight: heavy}]");
    assert_eq!(kind, "1:18 [heavy] `[0].weight` is the text \"heavy\", expected a number");
    assert!(of("[3]").ends_with(" `[0]` is `3`, expected a mapping"), "{}", of("[3]"));
}

#[test]
fn numbers_that_are_not_finite_are_pointed_at() {
    let of = |text: &str| Source::new("d", text).check_finite().map_err(|error| brief(&error));
    assert_eq!(
        of("a: [1, -.inf]\n"),
        Err("1:8 [-.inf] `-.inf` is no finite number, expected one".to_owned())
    );
    assert_eq!(
        of("a: 1\nb: {c: .NaN}"),
        Err("2:8 [.NaN] `.NaN` is no finite number, expected one".to_owned())
    );
    for fine in ["a: '.inf'", "a: inf", "a: [1, 1e300, \".nan\"]", "a: +.nan", "a: b: c"] {
        assert_eq!(of(fine), Ok(()), "{fine}");
    }
}

#[test]
fn text_that_is_no_document_is_refused() {
    check("", "1:1 [] the document is empty, expected a mapping");
    check("# nothing\n\n", "1:1 [#] the document is empty, expected a mapping");
    let list = |text: &str| {
        let error = Source::new("t", text).parse::<Vec<u8>>().unwrap_err();
        (error.diagnostics[0].line, error.diagnostics[0].column)
    };
    assert_eq!((list("{}"), list("\n{}")), ((1, 1), (2, 1)), "columns are counted from 1");
    check("ab\nc\0d", "2:2 [] a NUL byte at byte 4: expected a text file, this one is binary");
    check(
        &format!("{HEAD}---\nformat: x\n"),
        "2:1 [-] a second document begins here, expected one document a file",
    );
    check(
        &format!("{HEAD}jobs:\n\t- id: 1\n"),
        "3:2 [-] not YAML: tabs disallowed within this context (block indentation) | YAML is indented with spaces, not tabs",
    );
    check(
        &format!("{HEAD}jobs: [1, 2\n"),
        "3:1 [] not YAML: while parsing a flow sequence, expected ',' or ']'",
    );
    check("{\"format\": \"apportion/test-v1\", \"jobs\": [", "1:41 [[] not JSON: EOF while parsing a list");
    check(
        "just words",
        "1:1 [j] the document has no `format`, expected `apportion/test-v1` | begin the file with `format: apportion/test-v1`",
    );
    check(&format!("{HEAD}jobs: {}\n", "[".repeat(1000)), "2:262 [[] nested more than 64 levels deep");
    check(
        &format!("{HEAD}jobs: {}1{}\n", "[".repeat(1000), "]".repeat(1000)),
        "2:262 [[] nested more than 64 levels deep",
    );
}

#[test]
fn yaml_in_braces_is_yaml() {
    check("{format: apportion/test-v1, jobs: [{id: 1}]}", "accepted");
    check(r#"{"format": "apportion/test-v1", "jobs": [],}"#, "accepted");
    check(
        "{format: apportion/test-v1, jobs: [{id: x}]}",
        "1:41 [x] `jobs[0].id` is the text \"x\", expected a whole number from 0 to 4294967295",
    );
    check("{format: apportion/test-v1, jobs: [{weight: 1}]}", "1:36 [{] `jobs[0]` has no `id`");
    check(
        "{format: apportion/test-v1, jobs: [{id: 1]}",
        "1:42 []] not YAML: while parsing a flow mapping, did not find expected ',' or '}'",
    );
    check(
        "{format: apportion/test-v1, jobs: [{id: 1, name: x <= 6[s], weight: 1}]}",
        "1:56 [[] not YAML: while parsing a flow mapping, did not find expected ',' or '}' | within `{…}` and `[…]`, text with \
         brackets is quoted, as in \"x <= 6[steps/s]\"",
    );
    check(r#"{"format": "apportion/test-v1", "jobs": [}]}"#, "1:42 [}] not JSON: expected value");
}

#[test]
fn aliases_cannot_explode() {
    let mut text = format!("{HEAD}a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(text, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    check(&text, "6:45 [*a3] aliases stand for more than 100000 values");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    check(&format!("\u{feff}{HEAD}jobs: 3\n"), "2:7 [3] `jobs` is `3`, expected a list");
}

fn at(text: &str, path: &str) -> String {
    brief(&Source::new("d", text).error_at(path, "here", None))
}

#[test]
fn a_path_is_found_in_yaml_and_json() {
    let yaml =
        "axes:\n  rate: {from: 1, to: 2}\njobs:\n  - id: 1\n    t: {a.b: 5}\n  - name: 'x y'\n    t: {}\n";
    assert_eq!(at(yaml, "axes.rate.to"), "2:23 [2] here");
    assert_eq!(at(yaml, "axes.rate"), "2:9 [{from: 1, to: 2}] here");
    assert_eq!(at(yaml, "axes"), "1:1 [axes] here");
    assert_eq!(at(yaml, "jobs[0].t.a.b"), "5:14 [5] here");
    assert_eq!(at(yaml, "jobs[1].name"), "6:11 ['x y'] here");
    assert_eq!(at(yaml, "jobs[1]"), "6:5 [n] here");
    assert_eq!(at(yaml, "jobs[1].missing"), "6:5 [n] here");
    assert_eq!(at(yaml, "jobs[0].t.c"), "5:5 [t] here");
    assert_eq!(at(yaml, "nowhere"), "1:1 [a] here");
    let json = r#"{"jobs": [{"id": 1}, {"id": 2, "t": {"x": 7}}]}"#;
    assert_eq!(at(json, "jobs[1].t.x"), "1:43 [7] here");
    assert_eq!(at(json, "jobs[1].id"), "1:29 [2] here");
    let keyed = Source::new("d", yaml).error_at_key("jobs[1].name", "here", None);
    assert_eq!(brief(&keyed), "6:5 [name] here");
}

/// The line and column at which the letter `!` of the value at `k` is found.
fn within(text: &str) -> (usize, usize) {
    #[derive(Deserialize)]
    struct One {
        k: String,
    }
    let source = Source::new("d", text);
    let value = source.parse::<One>().unwrap().k;
    let offset = value.chars().position(|letter| letter == '!').unwrap();
    let error = source.error_within("k", offset, 1, "here");
    (error.diagnostics[0].line, error.diagnostics[0].column)
}

#[test]
fn a_letter_of_a_string_is_found_however_it_is_written() {
    let texts = [
        "k: ab !c\n",
        "k: 'a''b !c'\n",
        "k: \"a\\\"b\\u00e9 \\n!c\"\n",
        "k: ab\n  cd\n  e !f\n",
        "k: |\n  ab\n    cd\n\n  e !f\n",
        "k: >-\n  ab\n  cd\n\n  e !f\n",
        "k: |2-  # note\n   ab\n  !f\n",
        "k: \"ab \\\n   cd\n\n  !f\"\n",
        "{\"k\": \"ab\\t!c\"}",
        "k: 'ä ö\n\n  ü !'\n",
    ];
    for text in texts {
        let (line, column) = within(text);
        let letter = text.lines().nth(line - 1).and_then(|line| line.chars().nth(column - 1));
        assert_eq!(letter, Some('!'), "{text:?} {line}:{column}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn no_text_makes_a_panic(text in "[\\PC\n\t]{0,60}", path in "[a-c.\\[\\]0-9]{0,8}", offset in 0usize..9) {
        let source = Source::new("d", text);
        let _ = source.parse_format::<Document>("apportion/test-v1");
        let _ = source.error_at(&path, "", None);
        let _ = source.error_within(&path, offset, 1, "");
    }

    #[test]
    fn no_punctuation_makes_a_panic(text in "[-a{}\\[\\]:,'\"|>&*!#?%@ \n\t\\\\]{0,60}") {
        let source = Source::new("d", format!("format: apportion/test-v1\n{text}"));
        let _ = source.parse_format::<Document>("apportion/test-v1");
        let _ = source.error_at("a[0].a", "", None);
        let _ = source.error_within("a", 2, 1, "");
    }
}

#[test]
fn complaints_after_the_first_are_counted_and_not_made() {
    let text = format!("jobs: [{}]\n", "{id: 1, weight: 2}, ".repeat(4_000));
    let source = Source::new("d", text);
    let mut complaints = Complaints::default();
    let mut n_made = 0;
    for position in 0..4_000 {
        complaints.push(|| {
            n_made += 1;
            Unplaced::at(&format!("jobs[{position}].weight"), "2, expected 1", None)
        });
    }
    assert_eq!(n_made, LISTED_MAX);
    let error = source.all_at(complaints).unwrap_err();
    assert_eq!((error.diagnostics.len(), error.n_more), (LISTED_MAX, 4_000 - LISTED_MAX));
    assert_eq!((error.diagnostics[1].line, error.diagnostics[1].column), (1, 8 + 20 + 16));
    assert!(error.to_string().ends_with("\nand 3980 more"), "{error}");
    let joined = SpecError::join([error.clone(), error]).unwrap_err();
    assert_eq!((joined.diagnostics.len(), joined.n_more), (2 * LISTED_MAX, 2 * (4_000 - LISTED_MAX)));
}

#[test]
fn numbers_too_small_to_be_honoured_are_refused_where_they_stand() {
    let of = |weight: &str| Source::new("d", format!("format: x\njobs:\n  - {{id: 1, weight: {weight}}}\n"));
    for tiny in ["1e-300", "-4.9E-324", "1e-400", "2.5e-101", &format!("0.{}1", "0".repeat(400))] {
        let error = of(tiny).parse::<Document>().unwrap_err();
        let said = format!(
            "d:3:21: the number `{tiny}` is too small, expected 0, or a number of 1e-100 or more in size"
        );
        assert_eq!(error.to_string(), said);
        assert!(error.diagnostics[0].help.as_ref().is_some_and(|help| help.contains("write 0")));
        let json = Source::new(
            "j",
            format!("{{\"format\": \"x\",\n\"jobs\": [{{\"id\": 1, \"weight\": {tiny}}}]}}"),
        );
        let error = json.parse::<Document>().unwrap_err();
        assert!(error.to_string().starts_with("j:2:30: the number "), "{error}");
    }
    for fine in ["0", "0e-400", "-0.0", "1e-100", "1e-99", &format!("1{}", "0".repeat(99))] {
        let parsed = of(fine).parse::<Document>();
        assert!(parsed.is_ok(), "{fine}: {parsed:?}");
    }
    // Text is no number.
    let text = Source::new("d", "format: \"1e-400\"\njobs: [{id: 1, throughput: {a-1e-400: 1}}]\n");
    assert!(text.parse::<Document>().is_ok());
}
