//! Schemas are true: shipped documents fit them, and they refuse names and types of fields that a reader refuses.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use apportion::catalog::PolicyOptions;
use apportion::spec::run::FaultsSpec;
use apportion::spec::snapshot::{Snapshot, SnapshotEntity};
use apportion::spec::trace::{TraceOrder, read_trace};
use apportion::spec::{Source, read_throughputs};
use apportion::spec::{elastic_throughputs, spread_throughputs};
use apportion_logs::Rules;
use apportion_published::plugin;
use apportion_studies::sweep::spec::{SweepSpec, field_names};
use serde_json::{Value, json};

use crate::schema_checker::check;

pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Standard output of a command that succeeds.
pub(crate) fn said(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.args(arguments).current_dir(ROOT).output().expect("the command runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

pub(crate) fn schema(name: &str) -> Value {
    serde_json::from_str(&said(&["schema", name])).expect("a schema is JSON")
}

/// The names of all documents that this build knows.
fn names() -> Vec<String> {
    let listed: Value = serde_json::from_str(&said(&["schema", "--format", "json"])).expect("JSON");
    let listed = listed["rows"].as_array().expect("rows");
    let name = |row: &Value| row["document"].as_str().expect("a name").to_owned();
    listed.iter().map(name).collect()
}

/// YAML files of the folders that documents ship in.
fn shipped() -> Vec<PathBuf> {
    let folders = ["policies", "throughputs", "sweeps", "training", "examples"];
    let entries =
        folders.iter().flat_map(|folder| fs::read_dir(Path::new(ROOT).join(folder)).expect("a folder"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

pub(crate) fn parsed(text: &str) -> Value {
    Source::new("document", text).parse().expect("YAML")
}

/// The kind of a document; none if it states none.
fn kind(document: &Value) -> Option<&str> {
    document["format"].as_str()?.strip_prefix("apportion/")?.strip_suffix("-v1")
}

/// Why the program refuses a document; none if it accepts it.
fn refusal(kind: &str, document: &Value) -> Option<String> {
    let source = Source::new("document", document.to_string());
    let result = match kind {
        "snapshot" => Snapshot::read(&source).map(drop).map_err(|error| error.to_string()),
        "throughputs" => read_throughputs(&source, "document").map(drop).map_err(|error| error.to_string()),
        "spread-throughputs" => {
            spread_throughputs::read_spread_throughputs(&source).map(drop).map_err(|error| error.to_string())
        }
        "elastic-throughputs" => elastic_throughputs::read_elastic_throughputs(&source)
            .map(drop)
            .map_err(|error| error.to_string()),
        "sweep" => SweepSpec::parse(&source, false).map(drop).map_err(|error| error.to_string()),
        "entities" => source.parse::<Vec<SnapshotEntity>>().map(drop).map_err(|error| error.to_string()),
        "policy" => {
            let mut catalog = plugin::catalog();
            catalog.add(source).map(drop).map_err(|error| error.to_string()).and_then(|()| {
                let name = document["name"].as_str().unwrap_or_default();
                catalog.ready(name, &PolicyOptions::default()).map(drop).map_err(|error| error.to_string())
            })
        }
        "training" => training(&source),
        "log-rules" => Rules::parse(&source).map(drop).map_err(|error| error.to_string()),
        other => panic!("teach this test to read `{other}`"),
    };
    result.err()
}

fn training(source: &Source) -> Result<(), String> {
    use apportion_published::training::spec::{FORMAT, TrainingSpec};
    let spec: TrainingSpec = source.parse_format(FORMAT).map_err(|error| error.to_string())?;
    apportion_published::systems::open(&spec.system, &spec.world).map(drop).map_err(|error| error.to_string())
}

/// The document with one change, in every place: an unknown key, a scalar that is a mapping or a list, a key that is missing.
/// that is missing.
fn variants(document: &Value) -> Vec<Value> {
    match document {
        Value::Object(fields) => {
            let mut all = Vec::new();
            let mut more = fields.clone();
            more.insert("zzz".to_owned(), 1.into());
            all.push(more.into());
            for (name, inner) in fields {
                let mut fewer = fields.clone();
                fewer.shift_remove(name);
                all.push(fewer.into());
                for other in variants(inner) {
                    let mut changed = fields.clone();
                    changed.insert(name.clone(), other);
                    all.push(changed.into());
                }
            }
            all
        }
        Value::Array(items) => {
            let mut all = Vec::new();
            // Items are alike; the last is often special.
            for position in [0, items.len().saturating_sub(1)].into_iter().collect::<BTreeSet<_>>() {
                let Some(inner) = items.get(position) else { continue };
                for other in variants(inner) {
                    let mut changed = items.clone();
                    changed[position] = other;
                    all.push(changed.into());
                }
            }
            all
        }
        _ => vec![json!({"zzz": 1}), json!([{"zzz": 1}])],
    }
}

/// Whether the error is about a field's name or type.
fn is_of_form(complaint: &str) -> bool {
    let forms = [
        "unknown key `zzz`",
        "unknown field `zzz`",
        "is a mapping, expected",
        "is a list, expected",
        "invalid type: map",
        "invalid type: sequence",
        " has no `",
    ];
    forms.iter().any(|form| complaint.contains(form))
}

/// Every field of a run, and both of its names where it has two.
const WIDE_SWEEP: &str = "
format: apportion/sweep-v1
name: wide
description: every field
source: nowhere
run:
  cluster: {v100: 4, k80: 2}
  servers: v100=4
  prices: {v100: 2.48}
  throughputs: osdi20
  semantics: gavel
  correct: [ties]
  measure: [2, 4]
  workload: {generator: gavel, jobs: 10, multi_worker: true, multi_priority: false, slos: false, duration: 2h}
  mechanism.round_length: 6min
  reset_interval: 1920
  ideal: false
  preemption_cost: 5
  solver: {refine: interior, backend: null}
  faults: {worker_mtbf: 30d, worker_mttr: 2h, job_failure: 0.1, job_attempts: 5, straggling: 0.1, straggling_rounds: 3,
    noise: 0.1, contention: 0}
  profiling: {fraction: 0.5, reference_models: 2, smoothing: 0.5}
  live: {look_ahead: 30s, start_up: 20, stop: 10s, refill: completion, measured: true}
axes:
  policy: [fifo, isolated]
  rate: {from: 0.4, to: 6, points: 5, scale: log}
  seed: [0, 1]
stop: {saturated: true, wall: 30min}
skip: [{policy: fifo, rate: {from: 5}}, {seed: [1], policy: isolated}]
keep_jobs: true
quick: {run: {measure: [1, 2]}, axes: {seed: [0]}}
";

const WIDE_SNAPSHOT: &str = "
format: apportion/snapshot-v1
cluster: {v100: 4, k80: 2}
prices: {v100: 2.48}
jobs:
  - {id: a, job_type: A3C, scale_factor: 1, weight: 2, steps_remaining: 10, elapsed: 1, isolated_elapsed: 1,
     slo_remaining: 5, entity: team, throughput: {v100: 1, k80: null}, extra: {bonus: 1}}
  - {id: 2, throughput: {v100: 2}, extra: {bonus: 0}}
pairs: [{jobs: [a, 2], throughput: {v100: [0.5, 1]}}]
entities: [{id: team, weight: 2, inner: fifo, parent: all}, {id: all}]
";

const WIDE_POLICY: &str = "
format: apportion/policy-v1
name: wide
summary: every field of a program
source: nowhere
notes: none
differs_from_gavel: everywhere
kind: program
throughput: reference(v100, fastest)
colocation: none
parameters: {power: 1, cap: {default: 9, unit: steps/s, from: 0, to: 10}}
maximize: sum_over_jobs(bonus^power * throughput)
for_each_job: ['throughput >= 0', {constraint: 'throughput >= 0', soft: 2}]
for_each_worker_type: []
constraints: ['sum_over_jobs(throughput) >= 0', {constraint: 'sum_over_jobs(throughput) <= cap', soft: 1}]
refine: none
hierarchical: false
discounted: false
columns: {bonus: '1 > 0'}
";

const WIDE_THROUGHPUTS: &str = "
format: apportion/throughputs-v1
name: wide
unit: steps/s
source: {who: a, where: b, when: c, licence: d, hardware: e, software: f, note: g}
worker_types: [v100]
rows: [{job_type: one, scale_factor: 1, consolidated: [1.5], unconsolidated: [null]}]
colocation:
  model: resource
  resource:
    resources: [memory]
    worker_types: {v100: {efficiency: 0.9, demands: {one: {demand: [0.5], weight: [1]}}, cannot_share: []}}
";

#[test]
fn a_schema_and_its_reader_agree_on_names_and_types_of_fields() {
    let wide = [WIDE_SWEEP, WIDE_SNAPSHOT, WIDE_POLICY, WIDE_THROUGHPUTS].map(parsed);
    // Long tables repeat themselves.
    let short = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.len() < 1500);
    let files =
        shipped().into_iter().filter(short).map(|path| parsed(&fs::read_to_string(path).expect("text")));
    let documents: Vec<Value> = wide.into_iter().chain(files).collect();
    let mut complaints = Vec::new();
    for name in names() {
        let schema = schema(&name);
        let of_kind = |document: &&Value| {
            kind(document).map_or(name == "entities" && document.is_array(), |kind| kind == name)
        };
        let mut n_refused = 0;
        for document in documents.iter().filter(of_kind) {
            if let Some(refusal) = refusal(&name, document) {
                complaints.push(format!("{name}: {refusal}\n{document}"));
            }
            if let Err(complaint) = check(&schema, document) {
                complaints.push(format!("{name}: {complaint}\n{document}"));
            }
            for variant in variants(document) {
                let (refusal, fits) = (refusal(&name, &variant), check(&schema, &variant));
                n_refused += usize::from(fits.is_err());
                match (refusal, fits) {
                    (None, Err(complaint)) => {
                        complaints.push(format!("{name}: the program takes it, {complaint}\n{variant}"));
                    }
                    (Some(refusal), Ok(())) if is_of_form(&refusal) => {
                        complaints.push(format!("{name}: its schema takes it, {refusal}\n{variant}"));
                    }
                    _ => {}
                }
            }
        }
        // A document that the program writes states its version, and is hardly ever read.
        let is_written = schema["properties"]["version"].is_object();
        let is_read = !is_written && !["trace", "log", "prices", "events", "job-columns"].contains(&&*name);
        assert!(n_refused > 0 || !is_read, "{name}: no document was tried");
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn every_document_that_ships_fits_the_schema_of_its_kind() {
    let names = names();
    for path in shipped() {
        let document = parsed(&fs::read_to_string(&path).expect("text"));
        let Some(kind) = kind(&document) else {
            assert!(path.ends_with("examples/entities.yaml"), "{} says no format", path.display());
            continue;
        };
        assert!(names.iter().any(|name| name == kind), "{} has no schema", path.display());
        check(&schema(kind), &document).unwrap_or_else(|complaint| panic!("{}: {complaint}", path.display()));
    }
}

#[test]
fn the_parameters_of_every_rule_are_those_of_the_schema() {
    let schema = schema("policy");
    let rules = schema["$defs"]["Rule"]["oneOf"].as_array().expect("rules");
    assert!(rules.len() > 10);
    for rule in rules {
        let document = json!({
            "format": "apportion/policy-v1", "name": "mine", "summary": "mine", "kind": "heuristic", "rule": rule["const"],
            "parameters": {"zzz": 1},
        });
        let rule = &rule["const"];
        let refused = refusal("policy", &document);
        assert!(
            refused.is_some(),
            "rule {rule} takes any parameters: see `Rule::pairs_and_parameters` and `rule` in src/catalog.rs"
        );
        let described = check(&schema, &document);
        assert!(
            described.is_err(),
            "rule {rule}: `schema` in crates/cli/src/policies.rs has neither its parameters nor that it has none"
        );
    }
    assert_eq!(said(&["policies", "schema"]), said(&["schema", "policy"]));
}

#[test]
fn a_sweep_may_fix_and_vary_every_field_of_a_run_under_all_its_names() {
    let schema = schema("sweep");
    let names: BTreeSet<String> = field_names()
        .into_iter()
        .flat_map(|field| {
            let leaf = field.rsplit('.').next().unwrap_or_default().to_owned();
            let group = field.split('.').next().unwrap_or_default().to_owned();
            [field, leaf, group]
        })
        .collect();
    for part in ["FixedFields", "VariedFields", "SkippedPoints"] {
        let properties = schema["$defs"][part]["properties"].as_object().expect("fields");
        assert_eq!(properties.keys().cloned().collect::<BTreeSet<_>>(), names, "{part}");
    }
    let defaults = schema["$defs"]["FaultsSpec"]["properties"]["job_attempts"]["default"].as_u64();
    assert_eq!(defaults, Some(u64::from(FaultsSpec::default().job_attempts)));
}

#[test]
fn a_trace_has_the_columns_of_its_schema_and_no_others() {
    let schema = schema("trace");
    let columns: Vec<&str> =
        schema["properties"].as_object().expect("columns").keys().map(String::as_str).collect();
    let value = |column: &str| if ["id", "job_type", "entity"].contains(&column) { "a" } else { "1" };
    let read = |columns: &[&str]| {
        let line: Vec<&str> = columns.iter().map(|column| value(column)).collect();
        let text = format!("{}\n{}\n", columns.join(","), line.join(","));
        read_trace(&Source::new("trace.csv", text), None, TraceOrder::Refuse)
            .map_err(|error| error.to_string())
    };
    assert!(read(&columns).is_ok());
    assert!(read(&[&columns[..], &["zzz"]].concat()).unwrap_err().contains("unknown column `zzz`"));
    for column in &columns {
        let others: Vec<&str> = columns.iter().copied().filter(|other| other != column).collect();
        let needed = schema["required"].as_array().expect("names").contains(&json!(column));
        assert_eq!(read(&others).is_err(), needed, "{column}");
    }
    let example = fs::read_to_string(Path::new(ROOT).join("examples/trace.csv")).expect("text");
    let trace = read_trace(&Source::new("trace.csv", example), None, TraceOrder::Refuse).unwrap();
    assert_eq!(trace.jobs.len(), 2);
}

#[test]
fn the_page_of_formats_is_what_the_command_prints() {
    let printed = said(&["schema", "--markdown"]);
    let page = fs::read_to_string(Path::new(ROOT).join("docs/formats.md")).expect("docs/formats.md is there");
    let differs = page.lines().zip(printed.lines()).position(|(one, other)| one != other);
    assert!(
        page == printed,
        "docs/formats.md is out of date from line {} on: `make formats` writes it anew\n{}",
        differs.unwrap_or_default() + 1,
        printed.lines().nth(differs.unwrap_or_default()).unwrap_or_default()
    );
    for name in names() {
        assert!(page.contains(&format!("\n## {name}\n")), "{name}");
    }
    // Links of the source's documentation lead nowhere here.
    let stray = page.lines().find(|line| line.contains("[`") || line.contains("](crate::"));
    assert_eq!(stray, None);
}

#[test]
fn a_name_that_is_no_document_is_refused_with_the_nearest() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.args(["schema", "snapshto"]).output().expect("the command runs");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("unknown document `snapshto`") && message.contains("did you mean `snapshot`?"),
        "{message}"
    );
}
