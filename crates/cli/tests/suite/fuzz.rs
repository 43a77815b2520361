//! Every reader of documents, given whole documents that were damaged: it accepts or refuses, and never panics.
//!
//! 256 inputs a reader and run; the environment's `PROPTEST_CASES` sets another number.

use std::sync::Arc;

use apportion::spec::{PolicyDocument, Snapshot, Source, SpecError, read_throughputs};
use apportion::{CatalogError, Problem, Throughputs};
use apportion_published::plugin;
use apportion_studies::sweep::spec::SweepSpec;
use proptest::prelude::*;

/// A way to damage a document.
#[derive(Clone, Debug)]
enum Damage {
    /// Replaces a span by other text.
    Replace { at: usize, length: usize, with: String },
    /// Cuts the end off.
    Cut { at: usize },
    /// Repeats a span.
    Repeat { at: usize, length: usize, times: usize },
}

fn damage() -> impl Strategy<Value = Damage> {
    let token = prop_oneof![
        Just(String::new()),
        "[-+.0-9e]{1,12}",
        "[\\PC\n\t]{1,8}",
        Just("null".to_owned()),
        Just(".nan".to_owned()),
        Just("-.inf".to_owned()),
        Just("1e400".to_owned()),
        Just("99999999999999999999".to_owned()),
        Just("{".to_owned()),
        Just("]".to_owned()),
        Just("&a [*a]".to_owned()),
        Just("<<: *b".to_owned()),
        Just("!!binary x".to_owned()),
        Just("\0".to_owned()),
    ];
    prop_oneof![
        6 => (any::<usize>(), 0usize..12, token).prop_map(|(at, length, with)| Damage::Replace { at, length, with }),
        1 => any::<usize>().prop_map(|at| Damage::Cut { at }),
        1 => (any::<usize>(), 1usize..60, 1usize..40)
            .prop_map(|(at, length, times)| Damage::Repeat { at, length, times }),
    ]
}

/// The position of the letter that `at` falls on, in bytes.
fn boundary(text: &str, at: usize) -> usize {
    let mut byte = at % (text.len() + 1);
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    byte
}

fn damaged(text: &str, damages: &[Damage]) -> String {
    let mut text = text.to_owned();
    for damage in damages {
        match damage {
            Damage::Replace { at, length, with } => {
                let from = boundary(&text, *at);
                let to = boundary(&text, (from + length).min(text.len())).max(from);
                text.replace_range(from..to, with);
            }
            Damage::Cut { at } => text.truncate(boundary(&text, *at)),
            Damage::Repeat { at, length, times } => {
                let from = boundary(&text, *at);
                let to = boundary(&text, (from + length).min(text.len())).max(from);
                let stretch = text[from..to].repeat(*times);
                text.insert_str(to, &stretch);
            }
        }
    }
    text
}

/// Checks that an error's place is in the text: no line or column beyond it.
fn check<T>(text: &str, outcome: Result<T, SpecError>) {
    let Err(error) = outcome else { return };
    assert!(!error.diagnostics.is_empty(), "an error says something");
    let n_lines = text.lines().count();
    for diagnostic in error.diagnostics {
        assert!(diagnostic.line <= n_lines + 1, "{diagnostic:?}");
        assert!(!diagnostic.message.is_empty());
    }
}

const SNAPSHOT: &str = "\
format: apportion/snapshot-v1
cluster: {v100: 4, p100: 4, k80: 2}
prices: {v100: 2.48, p100: 1.46, k80: 0.45}
jobs:
  - {id: 17, job_type: ResNet-50 (batch size 64), scale_factor: 2, steps_remaining: 1e5, entity: a, extra: {u: 1}}
  - {id: late, weight: 2.0, elapsed: 60, throughput: {v100: 10.2, p100: 5.1, k80: null}, entity: b, extra: {u: 2}}
pairs:
  - {jobs: [17, late], throughput: {v100: [6.1, 3.0]}}
entities:
  - {id: a, weight: 2.0, inner: fifo, parent: b}
  - {id: b}
";

const THROUGHPUTS: &str = "\
format: apportion/throughputs-v1
name: tiny
unit: steps/s
source: {who: nobody, where: here, when: 2020-01-01, licence: none}
worker_types: [fast, slow]
rows:
  - {job_type: A, scale_factor: 1, consolidated: [2.0, 1.0], unconsolidated: [2.0, null]}
  - {job_type: B, scale_factor: 1, consolidated: [3.0, 0], unconsolidated: [3.0, 0]}
colocation:
  model: measured
  retained:
    fast:
      - {job_type: A, scale_factor: 1, beside: [0.5, 0.6]}
      - {job_type: B, scale_factor: 1, beside: [0.7, 0.5]}
";

const GAVEL: &str =
    r#"{"v100": {"('A', 1)": {"null": 2.0, "('A', 1)": [1.0, 1.0]}}, "k80": {"('A', 1)": {"null": 1.0}}}"#;

fn osdi20() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").expect("shipped")
}

fn read_snapshot(text: &str) -> Result<Problem, SpecError> {
    Problem::from_snapshot(&Snapshot::read(&Source::new("fuzz", text))?, &osdi20())
}

fn sweeps() -> Vec<String> {
    documents(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sweeps"))
}

fn policies() -> Vec<String> {
    documents(concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies"))
}

/// The texts of a folder's YAML files, in the order of their names.
fn documents(folder: &str) -> Vec<String> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.into_iter().map(|path| std::fs::read_to_string(path).expect("text")).collect()
}

#[test]
fn the_whole_documents_are_read() {
    assert!(read_snapshot(SNAPSHOT).is_ok(), "{:?}", read_snapshot(SNAPSHOT).err());
    for text in [THROUGHPUTS, GAVEL] {
        let read = read_throughputs(&Source::new("fuzz", text), "tiny");
        assert!(read.is_ok(), "{:?}", read.err());
    }
    for text in sweeps() {
        let read = SweepSpec::parse(&Source::new("fuzz", text), false);
        assert!(read.is_ok(), "{:?}", read.err());
    }
}

proptest! {
    #[test]
    fn no_damage_to_a_snapshot_makes_a_panic(damages in proptest::collection::vec(damage(), 1..4)) {
        let text = damaged(SNAPSHOT, &damages);
        check(&text, read_snapshot(&text));
    }

    #[test]
    fn no_damage_to_throughputs_makes_a_panic(
        gavel in any::<bool>(),
        damages in proptest::collection::vec(damage(), 1..4),
    ) {
        let text = damaged(if gavel { GAVEL } else { THROUGHPUTS }, &damages);
        let read = read_throughputs(&Source::new("fuzz", text.clone()), "tiny");
        check(&text, read.map(|file| Throughputs::try_new(file.measured).is_ok()));
    }

    #[test]
    fn no_damage_to_a_sweep_makes_a_panic(which in 0usize..8, damages in proptest::collection::vec(damage(), 1..4)) {
        let sweeps = sweeps();
        let text = damaged(&sweeps[which % sweeps.len()], &damages);
        check(&text, SweepSpec::parse(&Source::new("fuzz", text.clone()), which % 2 == 0));
    }

    #[test]
    fn no_damage_to_a_policy_makes_a_panic(
        which in any::<prop::sample::Index>(),
        damages in proptest::collection::vec(damage(), 1..4),
    ) {
        let policies = policies();
        let text = damaged(&policies[which.index(policies.len())], &damages);
        let mut catalog = plugin::catalog();
        let source = || Source::new("fuzz", text.clone());
        let read = PolicyDocument::read(source()).and_then(|document| {
            catalog.add(source())?;
            Ok(document.name)
        });
        // An accepted policy decides, or gives a reason why not.
        match read {
            Err(error) => check(&text, Err::<(), _>(error)),
            Ok(name) => match catalog.policy(&name) {
                Ok(mut policy) => drop(policy.allocate(&read_snapshot(SNAPSHOT).expect("whole"))),
                Err(CatalogError::Spec(error)) => check(&text, Err::<(), _>(error)),
                Err(error) => assert!(!error.to_string().is_empty()),
            },
        }
    }
}
