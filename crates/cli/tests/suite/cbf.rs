//! Programs as CBF text, read back by a reader of its own and solved.

use std::collections::BTreeMap;
use std::fs;

use apportion::program::text::to_cbf;
use apportion::program::{Affine, Cone, ConeKind, Program, Range, Sense};
use apportion::solver::{Limits, Termination, registry};
use apportion::spec::{Snapshot, Source};
use apportion::{PolicyOptions, Problem};
use apportion_published::plugin;
use apportion_studies::benchmark::programs::Programs;
use proptest::prelude::*;

use crate::bench::{osdi20, results};
use crate::command::apportion;

/// The content of a file, section by section: `VAR` and `CON` as (cone, entries), the others as their numbers.
struct Cbf {
    cones: BTreeMap<String, Vec<(String, usize)>>,
    numbers: BTreeMap<String, Vec<Vec<f64>>>,
    sense: Sense,
}

impl Cbf {
    /// Reads the sections that the command writes, and no others, by the rules of the format: keywords on lines of their own, then
    /// the number of lines that follow.
    fn read(text: &str) -> Self {
        let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let mut read = Self { cones: BTreeMap::new(), numbers: BTreeMap::new(), sense: Sense::Minimize };
        let count = |line: Option<&str>, at: usize| -> usize {
            line.and_then(|line| line.split(' ').nth(at)).and_then(|n| n.parse().ok()).expect("a count")
        };
        assert_eq!((lines.next(), lines.next()), (Some("VER"), Some("3")), "the version comes first");
        while let Some(keyword) = lines.next() {
            match keyword {
                "OBJSENSE" => {
                    let sense = lines.next();
                    assert!(matches!(sense, Some("MAX" | "MIN")), "{sense:?}");
                    read.sense = if sense == Some("MAX") { Sense::Maximize } else { Sense::Minimize };
                }
                "VAR" | "CON" => {
                    let head = lines.next();
                    let (n_entries, n_cones) = (count(head, 0), count(head, 1));
                    let cone = |line: &str| {
                        let (name, n) = line.split_once(' ').expect("a cone and its size");
                        (name.to_owned(), n.parse().expect("a size"))
                    };
                    let cones: Vec<(String, usize)> = lines.by_ref().take(n_cones).map(cone).collect();
                    assert_eq!(cones.iter().map(|(_, n)| n).sum::<usize>(), n_entries, "{keyword}");
                    read.cones.insert(keyword.to_owned(), cones);
                }
                "OBJACOORD" | "ACOORD" | "BCOORD" => {
                    let n_lines = count(lines.next(), 0);
                    let rows: Vec<Vec<f64>> = lines.by_ref().take(n_lines).map(numbers).collect();
                    assert_eq!(rows.len(), n_lines, "{keyword}");
                    read.numbers.insert(keyword.to_owned(), rows);
                }
                "OBJBCOORD" => {
                    let constant = numbers(lines.next().expect("a constant"));
                    read.numbers.insert(keyword.to_owned(), vec![constant]);
                }
                other => panic!("unknown keyword `{other}`"),
            }
        }
        read
    }

    fn lines(&self, keyword: &str) -> &[Vec<f64>] {
        self.numbers.get(keyword).map_or(&[], Vec::as_slice)
    }

    fn entries(&self, keyword: &str) -> Vec<(&str, usize)> {
        self.cones.get(keyword).into_iter().flatten().map(|(cone, n)| (cone.as_str(), *n)).collect()
    }

    /// The program, by the definitions of the format's cones.
    fn program(&self) -> Program {
        let mut program = Program::new(self.sense);
        let bounds = |cone: &str| match cone {
            "F" => Range::FREE,
            "L+" => Range::at_least(0.0),
            "L-" => Range::at_most(0.0),
            "L=" => Range::exactly(0.0),
            other => panic!("no bounds: `{other}`"),
        };
        for (cone, n) in self.entries("VAR") {
            for _ in 0..n {
                program.push_column(bounds(cone), bounds(cone), 0.0);
            }
        }
        for line in self.lines("OBJACOORD") {
            program.cost[at(line[0])] = line[1];
        }
        program.offset = self.lines("OBJBCOORD").first().map_or(0.0, |line| line[0]);
        let n_forms = self.entries("CON").iter().map(|(_, n)| n).sum();
        let mut forms = vec![Affine::default(); n_forms];
        for line in self.lines("ACOORD") {
            forms[at(line[0])].terms.push((at(line[1]), line[2]));
        }
        for line in self.lines("BCOORD") {
            forms[at(line[0])].constant = line[1];
        }
        let mut forms = forms.into_iter();
        for (cone, n) in self.entries("CON") {
            let mut here: Vec<Affine> = forms.by_ref().take(n).collect();
            let kind = match cone {
                "Q" => ConeKind::SecondOrder,
                // The cone u ≥ v·exp(w/v) is y·exp(x/y) ≤ z of (w, v, u).
                "EXP" => {
                    here.reverse();
                    ConeKind::Exponential
                }
                _ => {
                    for form in here {
                        let Range { lower, upper } = bounds(cone);
                        let range = Range { lower: lower - form.constant, upper: upper - form.constant };
                        program.push_row(range, form.terms);
                    }
                    continue;
                }
            };
            program.cones.push(Cone { kind, entries: here });
        }
        program
    }
}

fn at(number: f64) -> usize {
    number.to_string().parse().expect("a position")
}

fn numbers(line: &str) -> Vec<f64> {
    line.split(' ').map(|word| word.parse().expect("a number")).collect()
}

/// All demands of a program, in any of its forms: bounds one by one, in an order of their own.
fn demands(program: &Program) -> (Vec<String>, Vec<String>) {
    let mut bounds = Vec::new();
    let mut push = |terms: &[(usize, f64)], range: Range| {
        let form: Vec<(usize, u64)> =
            terms.iter().map(|(column, value)| (*column, value.to_bits())).collect();
        // 0 is 0, whatever its sign.
        let told = |bound: f64| (bound + 0.0).to_bits();
        if range.is_point() {
            return bounds.push(format!("{form:?} = {}", told(range.upper)));
        }
        if range.upper.is_finite() {
            bounds.push(format!("{form:?} <= {}", told(range.upper)));
        }
        if range.lower.is_finite() {
            bounds.push(format!("{form:?} >= {}", told(range.lower)));
        }
    };
    for row in 0..program.n_rows() {
        push(&program.row(row).collect::<Vec<_>>(), program.rows[row]);
    }
    for (column, range) in program.columns.iter().enumerate() {
        push(&[(column, 1.0)], *range);
    }
    bounds.sort();
    let cones = program.cones.iter().map(|cone| format!("{cone:?}")).collect();
    (bounds, cones)
}

fn assert_same(read: &Program, program: &Program) {
    assert_eq!((read.sense, read.n_columns()), (program.sense, program.n_columns()));
    assert_eq!((&read.cost, read.offset.to_bits()), (&program.cost, program.offset.to_bits()));
    assert_eq!(demands(read), demands(program));
}

/// The optimum by an interior-point method.
fn optimum(program: &Program) -> f64 {
    let mut clarabel = registry::backend("clarabel").expect("there is one");
    let solved = clarabel.solve(program, &Limits::default(), None).expect("an answer");
    assert_eq!(solved.termination, Termination::Optimal);
    program.objective(&solved.columns)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1e-3)
}

fn bound() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(-0.0), -1e6..1e6_f64, Just(1.0 / 3.0), Just(1e-300)]
}

fn any_range() -> impl Strategy<Value = Range> {
    prop_oneof![
        Just(Range::FREE),
        Just(Range::NON_NEGATIVE),
        bound().prop_map(Range::at_most),
        bound().prop_map(Range::at_least),
        bound().prop_map(Range::exactly),
        (bound(), bound()).prop_map(|(lower, upper)| Range { lower, upper }),
    ]
}

fn any_terms() -> impl Strategy<Value = Vec<(usize, f64)>> {
    let value = bound().prop_filter("a term", |value| *value != 0.0);
    prop::collection::btree_map(0_usize..4, value, 0..4).prop_map(|terms| terms.into_iter().collect())
}

fn any_cone() -> impl Strategy<Value = Cone> {
    let entry =
        || (any_terms(), bound()).prop_map(|(terms, constant)| Affine { constant: constant + 0.0, terms });
    prop_oneof![
        prop::collection::vec(entry(), 3).prop_map(|entries| Cone { kind: ConeKind::Exponential, entries }),
        prop::collection::vec(entry(), 2..5)
            .prop_map(|entries| Cone { kind: ConeKind::SecondOrder, entries }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_back_is_the_program_to_the_last_bit(
        columns in prop::collection::vec((any_range(), bound()), 4),
        rows in prop::collection::vec((any_range(), any_terms()), 0..5),
        cones in prop::collection::vec(any_cone(), 0..4),
        (offset, maximize) in (bound(), any::<bool>()),
    ) {
        let mut program = Program::new(if maximize { Sense::Maximize } else { Sense::Minimize });
        program.offset = offset + 0.0;
        for (range, cost) in columns {
            program.push_column(range, range, cost + 0.0);
        }
        for (range, terms) in rows {
            program.push_row(range, terms);
        }
        program.cones = cones;
        assert_same(&Cbf::read(&to_cbf(&program)).program(), &program);
    }
}

/// The program max log x subject to x ≤ 8. Its optimum is log 8, and another one if the entries of its cone are reversed.
#[test]
fn an_exponential_cone_is_read_as_it_is_meant() {
    let mut program = Program::new(Sense::Maximize);
    let x = program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 8.0 }, 0.0);
    let log = program.push_column(Range::FREE, Range { lower: -10.0, upper: 10.0 }, 1.0);
    program.push_row(Range::at_most(8.0), [(x, 1.0)]);
    let form = |constant: f64, terms: &[(usize, f64)]| Affine { constant, terms: terms.to_vec() };
    let entries = vec![form(0.0, &[(log, 1.0)]), form(1.0, &[]), form(0.0, &[(x, 1.0)])];
    program.cones.push(Cone { kind: ConeKind::Exponential, entries });
    let text = to_cbf(&program);
    assert!(text.ends_with("CON\n4 2\nL- 1\nEXP 3\n\nOBJACOORD\n1\n1 1\n\nACOORD\n3\n0 0 1\n1 0 1\n3 1 1\n\nBCOORD\n2\n0 -8\n2 1\n"), "{text}");
    let found = optimum(&Cbf::read(&text).program());
    assert!(near(found, 8.0_f64.ln()), "{found}");
}

const SNAPSHOT: &str = "
format: apportion/snapshot-v1
cluster: {fast: 4, slow: 4}
jobs:
  - {id: one, steps_remaining: 90000, throughput: {fast: 4, slow: 1}}
  - {id: alike, steps_remaining: 90000, throughput: {fast: 4, slow: 1}}
  - {id: gang, steps_remaining: 40000, scale_factor: 2, throughput: {fast: 6, slow: 5}}
  - {id: other, steps_remaining: 50000, throughput: {fast: 2, slow: 1.5}}
";

/// The value behind `NAME = ` in a comment.
fn said(text: &str, name: &str) -> Option<f64> {
    let behind = text.lines().find_map(|line| line.strip_prefix('#')?.split_once(&format!(" {name} = ")))?.1;
    behind.split([',', ' ']).next()?.parse().ok()
}

#[test]
fn an_explained_program_of_cones_has_the_optimum_that_its_comments_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("snapshot.yaml");
    fs::write(&path, SNAPSHOT).expect("a file");
    let path = path.to_str().expect("text");
    for (policy, is_conic) in [("proportional_fairness", true), ("max_min_fairness_perf", false)] {
        let explain = |form: &str| apportion(&["explain", "--policy", policy, path, "--program", form], "");
        let text = explain("cbf").stdout;
        let program = Cbf::read(&text).program();
        assert_eq!(!program.is_linear(), is_conic, "{policy}: {text}");
        let found = optimum(&program);
        assert!(near(found, said(&text, "optimum").expect("an optimum")), "{policy}: {found} of {text}");
        assert!(text.contains("# job_class_0: ") && text.contains(": one alike\n"), "{text}");
        assert!(text.contains("# objective = scale * optimum, scale = "), "{text}");
        let objective = found * said(&text, "scale").expect("a scale");
        let explained = apportion(&["explain", "--policy", policy, path, "--format", "json"], "");
        let explained: serde_json::Value = serde_json::from_str(&explained.stdout).expect("JSON");
        let expected = explained["objective"]["value"].as_f64().expect("an objective");
        assert!(near(objective, expected), "{policy}: {objective}, not {expected}");
        if is_conic {
            let refused = explain("lp");
            assert_eq!(refused.code, Some(2));
            assert!(refused.stderr.contains("--program cbf"), "{}", refused.stderr);
        }
    }
}

#[test]
fn an_export_has_the_programs_of_cones_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("its name is text");
    let common = ["--policy", "proportional_fairness,max_min_fairness_perf", "--instance", "osdi20"];
    let more = ["--sizes", "30", "--backend", "default", "--export", path, "--limit", "60"];
    results(&[&common[..], &more].concat());
    let inside = folder.path().join("osdi20-30-0");
    let snapshot = Snapshot::read(&Source::load(inside.join("snapshot.json")).expect("the instance"));
    let problem = Problem::from_snapshot(&snapshot.expect("a snapshot"), &osdi20()).expect("a problem");
    let described = fs::read_to_string(inside.join("programs.json")).expect("programs.json");
    let described: Programs = serde_json::from_str(&described).expect("what is said of programs");
    let mut n_conic = 0;
    for of in &described.policies {
        let built = plugin::catalog().program(&of.policy, &PolicyOptions::default());
        let mut policy = built.expect("a policy").expect("a program");
        let programs = policy.programs(&problem).expect("programs");
        assert_eq!(programs.len(), of.programs.len(), "{}", of.policy);
        for (program, file) in programs.iter().zip(&of.programs) {
            let (name, others) = file.files.split_last().expect("a file");
            assert!(name.rsplit('.').next() == Some("cbf") && file.message.is_none(), "{file:?}");
            assert_eq!(others.len(), if program.is_linear() { 2 } else { 0 }, "{file:?}");
            let read = Cbf::read(&fs::read_to_string(inside.join(name)).expect("a file")).program();
            assert_same(&read, program);
            n_conic += usize::from(!program.is_linear());
            if let Some(expected) = file.optimum.filter(|_| !program.is_linear()) {
                let found = optimum(&read);
                assert!(near(found, expected), "{found}, not {expected}: {file:?}");
            }
        }
    }
    assert!(n_conic > 0, "{described:?}");
}
