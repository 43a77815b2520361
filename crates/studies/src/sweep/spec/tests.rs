use proptest::prelude::*;
use serde_json::json;

use super::fields::GROUPS;
use super::*;

const GOOD: &str = "\
format: apportion/sweep-v1
name: tiny
run:
  cluster: {v100: 4, k80: 4}
  workload: {generator: gavel}
  measure: [4, 8]
axes:
  policy: [fifo, isolated]
  rate: {from: 0.4, to: 6.0, points: 15}
  seed: [0, 1]
stop: {saturated: true, wall: 30min}
quick:
  run: {measure: [0, 2]}
  axes: {rate: [1, 2]}
";

fn parse(text: &str) -> Result<SweepSpec, SpecError> {
    SweepSpec::parse(&Source::new("t.yaml", text), false)
}

fn complaints(text: &str) -> Vec<String> {
    let errors = parse(text).unwrap_err();
    errors.diagnostics.iter().map(|d| format!("{}:{}: {}", d.line, d.column, d.message)).collect()
}

/// The good document with one line replaced.
fn with(line: &str, instead: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    GOOD.replace(line, instead)
}

#[test]
fn a_study_is_read() {
    let sweep = parse(GOOD).unwrap();
    assert_eq!((sweep.name.as_str(), sweep.n_points()), ("tiny", 60));
    assert_eq!(
        sweep.stop,
        StopSpec { saturated: true, wall: Some(Seconds::new(1800.0)), ..StopSpec::default() }
    );
    let fields: Vec<&str> = sweep.axes.iter().map(|axis| axis.field.as_str()).collect();
    assert_eq!(fields, ["policy", "workload.rate", "seed"]);
    let rates: Vec<String> = sweep.axes[1].values.iter().map(value_text).collect();
    assert_eq!(rates[..4], ["0.4", "0.8", "1.2", "1.6"]);
    assert_eq!(rates[14], "6");
    let run = sweep.run(&[1, 2, 1]);
    assert_eq!((run.policy.as_str(), run.seed, run.measure), ("isolated", 1, Some([4, 8])));
    assert_eq!(run.workload.rate.map(apportion::JobsPerHour::get), Some(1.2));
}

#[test]
fn the_quick_form_changes_what_it_names() {
    let quick = SweepSpec::parse(&Source::new("t.yaml", GOOD), true).unwrap();
    assert_eq!(quick.n_points(), 8);
    assert_eq!(quick.run(&[0, 0, 0]).measure, Some([0, 2]));
    assert!(quick.fixed_text() != parse(GOOD).unwrap().fixed_text());
    let without = GOOD.split("quick:").next().unwrap();
    assert!(SweepSpec::parse(&Source::new("t.yaml", without), true).is_err());
}

#[test]
fn a_logarithmic_range_has_equal_ratios() {
    let text = with("{from: 0.4, to: 6.0, points: 15}", "{from: 1, to: 100, points: 5, scale: log}");
    let values: Vec<String> = parse(&text).unwrap().axes[1].values.iter().map(value_text).collect();
    assert_eq!(values, ["1", "3.16227766017", "10", "31.6227766017", "100"]);
}

#[test]
fn any_field_may_be_varied() {
    let text = with("  seed: [0, 1]", "  mechanism.round_length: [6min, 720]\n  multi_worker: [false, true]");
    let sweep = parse(&text).unwrap();
    assert_eq!(sweep.run(&[0, 0, 1, 1]).mechanism.round_length, Seconds::new(720.0));
    assert!(sweep.run(&[0, 0, 1, 1]).workload.multi_worker);
    let clusters = with("  cluster: {v100: 4, k80: 4}\n", "")
        .replace("  seed: [0, 1]", "  cluster: [{v100: 4}, v100=2, 'v100=2,k80=1']");
    let sweep = parse(&clusters).unwrap();
    let texts: Vec<String> = sweep.axes[2].values.iter().map(value_text).collect();
    assert_eq!(texts, ["v100=4", "v100=2", "v100=2,k80=1"]);
}

#[test]
fn a_field_is_found_where_it_is_written() {
    let sweep = parse(GOOD).unwrap();
    let path = |field| sweep.path_of(field, &[1, 2, 0]);
    assert_eq!(path("policy"), "axes.policy[1]");
    assert_eq!(path("workload.rate"), "axes.rate");
    assert_eq!(path("workload.generator"), "run.workload.generator");
    assert_eq!(path("throughputs"), "run");
}

/// Errors: a name, the line and its replacement, and a part of the message.
const BAD: [(&str, &str, &str); 24] = [
    (
        "apportion/sweep-v1",
        "apportion/sweep-v9",
        "1:9: format is `apportion/sweep-v9`, expected `apportion/sweep-v1`",
    ),
    ("{v100: 4, k80: 4}", "{v100: 4, v100: 4}", "4:22: key `v100` is given twice"),
    ("[fifo, isolated]", "[fifo, !x isolated]", "8:18: !x is not known here"),
    (
        "name: tiny",
        "name: ../tiny",
        "2:7: `../tiny`, expected up to 100 letters, digits, `-`, `_` and `.`: resul",
    ),
    (
        "  measure: [4, 8]",
        "  mesure: [4, 8]",
        "6:3: unknown field `mesure`, expected one of `policy`, `cluster`, `servers`",
    ),
    ("  measure: [4, 8]", "  measure: 4", "6:12: `run.measure` is `4`, expected a list of 2"),
    (
        "  measure: [4, 8]",
        "  measure: [8, 4]",
        "6:12: [8, 4) holds no job, expected [start, end) with start < end",
    ),
    ("  measure: [4, 8]", "  seed: 3", "10:9: both varied, here, and fixed, as `run.seed`"),
    (
        "{v100: 4, k80: 4}",
        "{v100: 4, k80: -4}",
        "4:12: `run.cluster` is `-4`, expected a whole number from 0 to 4294967295",
    ),
    ("{v100: 4, k80: 4}", "{v100: 0}", "4:12: the cluster has no workers"),
    (
        "{generator: gavel}",
        "{generator: gavle}",
        "5:25: unknown name `gavle`, expected one of `native`, `gavel`, `gavel_osdi20`",
    ),
    (
        "{generator: gavel}",
        "{generatr: gavel}",
        "5:14: unknown field `generatr`, expected one of `generator`, `rate`, `jobs`",
    ),
    ("[fifo, isolated]", "[]", "8:11: an axis without values"),
    ("[fifo, isolated]", "[fifo, isolated, fifo]", "8:28: `fifo` comes twice, first at position 1"),
    ("[fifo, isolated]", "[isolated, fifo, fifo, fifo]", "8:28: `fifo` comes 3 times, first at position 2"),
    ("[fifo, isolated]", "fifo", "8:11: expected a list of values, or a range {from, to, points, scale}"),
    ("  policy:", "  polcy:", "8:3: unknown field `polcy`, expected one of `policy`, `cluster`, `servers`,"),
    ("{from: 0.4, to: 6.0, points: 15}", "[1, .nan]", "9:13: .nan, expected a finite number"),
    (
        "{from: 0.4, to: 6.0, points: 15}",
        "[1, fast]",
        "9:13: `axes.rate[1]` is the text \"fast\", expected a number",
    ),
    (
        "{from: 0.4, to: 6.0, points: 15}",
        "[1, -2]",
        "9:13: -2 jobs/h, expected a number from 1e-9 to 1000000",
    ),
    (
        "{from: 0.4, to: 6.0, points: 15}",
        "{from: 6, to: 0.4, points: 15}",
        "9:9: from 6 to 0.4 is no range, expected two finite numbers, `from` below `",
    ),
    (
        "{from: 0.4, to: 6.0, points: 15}",
        "{from: 0, to: 6, points: 3, scale: log}",
        "9:9: a logarithmic range starts above 0, not at 0",
    ),
    (
        "{from: 0.4, to: 6.0, points: 15}",
        "{from: 1, to: 6, points: 1}",
        "9:9: 1 points, expected 2 to 100000",
    ),
    (
        "  axes: {rate: [1, 2]}",
        "  axes: {ratee: [1, 2]}",
        "14:10: no axis `ratee`, expected one of `policy`, `rate`, `seed`",
    ),
];

/// Errors of an automatic axis or of the section `skip`, with a part of the message.
const BAD_RULES: [(&str, &str, &str); 8] = [
    (
        "rate: {from: 0.4, to: 6.0, points: 15}",
        "rate: {auto: {from: -1}}",
        "9:23: -1, expected a rate in jobs/h above 0",
    ),
    (
        "rate: {from: 0.4, to: 6.0, points: 15}",
        "rate: {auto: {form: 1}}",
        "9:16: unknown key `form`, expected one of `from`, `factor`",
    ),
    (
        "seed: [0, 1]",
        "seed: auto",
        "10:9: `auto` raises the arrival rate, expected a list of values, or a range",
    ),
    ("quick:", "skip: [{rat: 1}]\nquick:", "12:9: no axis `rat`, expected one of `policy`, `rate`, `seed`"),
    ("quick:", "skip: [{policy: las}]\nquick:", "12:17: axis `policy` has no value `las`"),
    (
        "quick:",
        "skip: [{rate: {from: x}}]\nquick:",
        "12:15: expected numbers, such as {from: 5} or {from: 1, to: 2}",
    ),
    ("quick:", "skip: [{}]\nquick:", "12:8: an empty rule would leave out every run"),
    ("quick:", "skip: [{rate: {from: 0}}]\nquick:", "12:7: every run is left out"),
];

#[test]
fn rules_of_the_grid_are_checked() {
    for (line, instead, expected) in BAD_RULES {
        let found = complaints(&with(line, instead));
        assert!(found[0].starts_with(expected), "{instead}: {found:#?}");
    }
}

/// Published points of the good document, before its short form.
const PUBLISHED: &str = "\
published:
  - metric: average_jct_s
    unit: h
    source: a notebook
    at: {rate: [0.4, 1.2]}
    values: {fifo: [17.58, null], isolated: [23, 24.5]}
quick:";

#[test]
fn published_points_are_read() {
    let text = with("quick:", PUBLISHED);
    let sweep = parse(&text).unwrap();
    let [published] = &sweep.published[..] else { panic!("{:?}", sweep.published) };
    assert_eq!((published.metric.as_str(), published.axis.as_str()), ("average_jct_s", "rate"));
    assert_eq!(published.points("fifo").collect::<Vec<_>>(), [(0.4, 17.58)]);
    assert_eq!(published.points("isolated").collect::<Vec<_>>(), [(0.4, 23.0), (1.2, 24.5)]);
    assert_eq!(published.points("gandiva").count(), 0);
    let quick = SweepSpec::parse(&Source::new("t.yaml", text), true).unwrap();
    assert!(quick.published.is_empty(), "a short form has other runs");
}

/// Errors of published points, with a part of the message.
const BAD_POINTS: [(&str, &str, &str); 15] = [
    ("average_jct_s", "average_jtc", "13:13: unknown metric `average_jtc`, expected one of `n_jobs`"),
    ("    unit: h\n", "", "13:5: `average_jct_s` has a unit, which is not given"),
    ("unit: h", "unit: s", "14:11: unit `s`, expected `h`"),
    ("average_jct_s", "average_rho", "14:11: unit `h`, expected none: `average_rho` has no unit"),
    ("a notebook", "' '", "15:13: empty, expected where the values are printed"),
    ("{rate: [0.4, 1.2]}", "{}", "16:9: expected one axis"),
    ("{rate: [0.4", "{rat: [0.4", "16:10: no axis `rat`, expected one of `policy`, `rate`, `seed`"),
    ("[0.4, 1.2]", "[0.4, 1.3]", "16:22: axis `rate` has no value `1.3`"),
    ("[0.4, 1.2]", "auto", "16:16: expected numbers: points are drawn against them"),
    ("{rate: [0.4, 1.2]}", "{policy: [fifo, isolated]}", "16:19: expected numbers: points are drawn"),
    ("{fifo: [", "{fofi: [", "17:14: axis `policy` has no value `fofi`, expected one of `fifo`, `isolated`"),
    ("[17.58, null]", "[17.58]", "17:20: 1 values at 2 places"),
    ("[17.58, null]", "[17.58, -1]", "17:28: -1.0, expected a number from 0 to 1000000000000000.0"),
    ("[17.58, null]", "[1e308, null]", "17:21: 1e308, expected a number from 0 to 1000000000000000.0"),
    ("{fifo: [17.58, null], isolated: [23, 24.5]}", "{}", "17:13: no values"),
];

#[test]
fn published_points_are_checked() {
    for (line, instead, expected) in BAD_POINTS {
        assert!(PUBLISHED.contains(line), "{line}");
        let found = complaints(&with("quick:", &PUBLISHED.replace(line, instead)));
        assert_eq!(found.len(), 1, "{instead}: {found:#?}");
        assert!(found[0].starts_with(expected), "{instead}: {found:#?}");
    }
    let more =
        with("quick:", PUBLISHED).replace("  seed: [0, 1]", "  seed: [0]\n  multi_worker: [false, true]");
    assert!(complaints(&more)[0].contains("the study varies `multi_worker`, too"), "{:?}", complaints(&more));
    let other = with("quick:", PUBLISHED).replace("  policy: [fifo, isolated]", "  seed: [0, 1]");
    let other = other.replacen("  seed: [0, 1]\nstop", "stop", 1);
    let found = complaints(&other);
    assert!(found[0].contains("values are given by policy, which the study does not vary"), "{found:?}");
}

#[test]
fn a_rate_may_find_its_own_values() {
    let sweep = parse(&with("{from: 0.4, to: 6.0, points: 15}", "{auto: {from: 0.4, jct: 5}}")).unwrap();
    let (axis, auto) = sweep.auto_axis().unwrap();
    assert_eq!((axis, sweep.n_points()), (1, 4));
    assert_eq!((auto.from, auto.jct, auto.utilization), (0.4, Some(5.0), None));
    let plain = parse(&with("{from: 0.4, to: 6.0, points: 15}", "auto")).unwrap();
    assert_eq!(plain.axes[1].auto, Some(AutoSpec::default()));
}

#[test]
fn what_is_wrong_is_said_once() {
    for (line, instead, expected) in BAD {
        let found = complaints(&with(line, instead));
        assert_eq!(found.len(), 1, "{instead}: {found:#?}");
        assert!(found[0].starts_with(expected), "{instead}: {found:#?}");
    }
}

#[test]
fn a_value_that_comes_often_is_complained_of_once() {
    let seeds = |values: &str| complaints(&with("seed: [0, 1]", &format!("seed: [{values}]")));
    assert_eq!(seeds(&"5, ".repeat(3000)).len(), 1);
    let all: Vec<String> = (0..50).map(|seed| format!("{seed}, {seed}")).collect();
    let said = seeds(&all.join(", "));
    assert_eq!(said.len(), 20);
    assert!(said[19].ends_with("first at position 39; 30 more values come more than once"), "{}", said[19]);
}

#[test]
fn fields_varied_twice_and_too_many_runs_are_refused() {
    let twice = with("  seed: [0, 1]", "  workload.rate: [1]");
    assert!(complaints(&twice)[0].contains("varied twice, first as `axes.rate`"));
    let many = with("  seed: [0, 1]", "  seed: {from: 1, to: 50000, points: 50000}");
    assert!(complaints(&many)[0].contains("more than 100000 runs"), "{:?}", complaints(&many));
    let nothing = "format: apportion/sweep-v1\nname: x\naxes: {}\n";
    assert!(complaints(nothing)[0].contains("nothing is varied"));
}

#[test]
fn several_mistakes_are_said_together() {
    let text = with("[fifo, isolated]", "[fifo, fifo]").replace("[0, 1]", "[]");
    assert_eq!(complaints(&text).len(), 2);
}

#[test]
fn no_field_of_a_run_shares_its_last_name_with_another() {
    let fields = field_names();
    let mut last: Vec<&str> = fields.iter().filter_map(|field| field.rsplit('.').next()).collect();
    last.extend(GROUPS);
    last.sort_unstable();
    let n = last.len();
    last.dedup();
    assert_eq!(last.len(), n);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Bytes of a good document replaced, removed and inserted: a sweep or complaints, never a panic.
    #[test]
    fn broken_documents_never_panic(edits in proptest::collection::vec((0_usize..600, any::<u8>(), 0_u8..3), 1..12)) {
        let mut bytes = GOOD.as_bytes().to_vec();
        for (position, byte, kind) in edits {
            let position = position % bytes.len().max(1);
            match kind {
                0 if !bytes.is_empty() => bytes[position] = byte,
                1 if !bytes.is_empty() => { bytes.remove(position); }
                _ => bytes.insert(position, byte % 128),
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Err(errors) = parse(&text) {
            prop_assert!(!errors.diagnostics.is_empty());
        }
    }

    /// Values of every shape in every place.
    #[test]
    fn strange_values_never_panic(value in strange(), axis in any::<bool>(), field in 0_usize..40) {
        let names = field_names();
        let name = &names[field % names.len()];
        let text = if axis {
            json!({"format": FORMAT, "name": "x", "run": {"policy": "fifo"}, "axes": {name: value}})
        } else {
            json!({"format": FORMAT, "name": "x", "run": {name: value}, "axes": {"policy": ["fifo"]}})
        };
        let _ = parse(&text.to_string());
    }
}

fn strange() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e308..1e308).prop_map(Value::from),
        "[a-z0-9=,.:/ ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("from|to|points|scale|rate|v100", inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}
