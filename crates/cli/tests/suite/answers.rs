//! The JSON of `--format json` is described: each kind of answer has a schema, and its answers have all required fields and no
//! unknown ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::Value;

use crate::schema::{ROOT, said, schema};
use crate::schema_checker::check;

/// Kinds of answers of which these tests compare one with its schema.
const HELD: [&str; 19] = [
    "allocation",
    "array",
    "bench",
    "check",
    "comparison",
    "explanation",
    "fit",
    "forecast",
    "forecast-calibration",
    "import-report",
    "nodes",
    "programs",
    "report",
    "shadow-report",
    "shown-policy",
    "simulation",
    "table",
    "text",
    "workload",
];

/// The kinds of a running scheduler: every test of it compares them, as all its answers pass through `fits`.
const HELD_LIVE: [&str; 8] = ["done", "history", "jobs", "next", "servers", "submitted", "when", "why"];

/// The kind of an answer that fits the schema of its kind, without a field that is not in it.
#[track_caller]
pub(crate) fn fits(answer: &Value) -> String {
    static KNOWN: LazyLock<Mutex<BTreeMap<String, Value>>> = LazyLock::new(Mutex::default);
    let head: Vec<&String> = answer.as_object().expect("an object").keys().take(2).collect();
    assert_eq!(head, ["format", "version"], "{answer}");
    assert_eq!(answer["version"], env!("CARGO_PKG_VERSION"));
    let format = answer["format"].as_str().expect("text");
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let schema = known.entry(format.to_owned()).or_insert_with(|| {
        let mut schema = schema(format);
        close(&mut schema);
        schema
    });
    if let Err(complaint) = check(schema, answer) {
        panic!("{format}: {complaint}\n{answer}");
    }
    format.strip_prefix("apportion/").and_then(|kind| kind.strip_suffix("-v1")).expect("a kind").to_owned()
}

/// Makes a schema refuse fields that it does not name.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            let names_fields = keywords.get("properties").is_some_and(Value::is_object);
            if names_fields && !keywords.contains_key("additionalProperties") {
                keywords.insert("additionalProperties".to_owned(), false.into());
            }
            keywords.values_mut().for_each(close);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(close),
        _ => {}
    }
}

/// The kind of the answer that a command prints with `--format json`.
#[track_caller]
fn kind_of(line: &str) -> String {
    let arguments: Vec<&str> = line.split_whitespace().chain(["--format", "json"]).collect();
    fits(&serde_json::from_str(&said(&arguments)).unwrap_or_else(|error| panic!("{line}: {error}")))
}

#[test]
fn every_answer_fits_the_schema_of_its_kind() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (trace, results, page, exported) = (at("jobs.csv"), at("results"), at("page.html"), at("exported"));
    said(&["trace", "generate", "--rate", "6", "--jobs", "60", "--multi-worker", "--out", &trace]);
    let small = "--policy fifo,isolated --rate 0.2 --seed 0:3 --cluster v100=2,p100=2,k80=2 --set jobs=5";
    said(&format!("sweep {small} --out {results}").split_whitespace().collect::<Vec<_>>());
    let simulate = "simulate --policy max_min_fairness_packed --cluster v100=8,k80=8 --static 4 --duration 1h --multi-worker";
    let forecast = format!("forecast --policy fifo --cluster v100=64,k80=64 --forks 10 --trace {trace}");
    let nodes = "crates/logs/tests/fixtures/nodes/scontrol_show_node.txt";
    let bench = format!(
        "bench --policy max_min_fairness_perf,fifo --instance osdi20 --sizes 40 --backend default --repeats 1 --changes 2 --export {exported}"
    );
    let kinds = [
        ("allocation", "allocate --policy max_min_fairness_perf examples/snapshot.yaml".to_owned()),
        ("allocation", "allocate --policy fifo examples/snapshot.yaml".to_owned()),
        (
            "allocation",
            "allocate --policy max_min_fairness_water_filling_perf examples/snapshot.yaml".to_owned(),
        ),
        ("explanation", "explain --policy max_min_fairness_perf examples/snapshot.yaml".to_owned()),
        (
            "explanation",
            "explain --policy max_min_fairness_water_filling_perf examples/snapshot.yaml".to_owned(),
        ),
        ("explanation", "explain --policy fifo examples/snapshot.yaml".to_owned()),
        ("simulation", format!("{simulate} --slos")),
        (
            "simulation",
            "simulate --policy fifo_perf --cluster v100=4 --rate 0.5 --jobs 9 --lower-bound alone".to_owned(),
        ),
        ("forecast", format!("{forecast} --at 6.8h --job 40 --known-durations")),
        ("forecast-calibration", format!("{forecast} --calibrate --every 2h --limit 2d")),
        ("comparison", format!("compare {results} {results} --bound average_jct_s<=1.02")),
        (
            "check",
            "check --instances 4 --policies max_min_fairness_perf --backends default --decades 2".to_owned(),
        ),
        ("fit", "throughputs fit osdi20 --model resource --starts 1".to_owned()),
        ("workload", "trace show examples/trace.csv --throughputs osdi20".to_owned()),
        ("workload", "trace show examples/trace.csv".to_owned()),
        ("import-report", "trace show examples/log.csv --from log".to_owned()),
        ("nodes", format!("trace cluster {nodes} --from scontrol --skip-unreadable")),
        ("shown-policy", "policies show max_min_fairness_perf".to_owned()),
        ("table", "policies list".to_owned()),
        ("table", format!("results show {results} --runs")),
        ("text", "sweep show quick".to_owned()),
        ("report", format!("report {results} --out {page}")),
        ("bench", bench),
    ];
    for (kind, line) in &kinds {
        assert_eq!(kind_of(line), *kind, "{line}");
    }
    let programs = fs::read_to_string(Path::new(&exported).join("osdi20-40-0/programs.json")).unwrap();
    assert_eq!(fits(&serde_json::from_str(&programs).unwrap()), "programs");
    let mut held: BTreeSet<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
    held.extend(["programs", "array", "shadow-report"]);
    assert_eq!(held, BTreeSet::from(HELD));
}

#[cfg(unix)]
#[test]
fn a_submitted_array_fits_its_schema() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let sbatch = folder.path().join("sbatch");
    fs::write(&sbatch, "#!/bin/sh\necho 17\n").unwrap();
    fs::set_permissions(&sbatch, fs::Permissions::from_mode(0o755)).unwrap();
    let out = folder.path().join("out").display().to_string();
    let arguments = ["sweep", "quick", "--out", &out, "--slurm", "--tasks", "4", "--format", "json"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.args(arguments).current_dir(ROOT).env("PATH", folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fits(&serde_json::from_slice(&output.stdout).unwrap()), "array");
}

#[cfg(feature = "live")]
#[test]
fn what_a_shadow_found_fits_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let record = r#"{
        "format": "apportion/shadow-v1", "policy": "fifo", "round_length_s": 360.0, "since_s": 0.0, "looked_s": 900.0, "n_rounds": 2,
        "jobs": {"7": {"seen": {"name": "a", "user": "ann", "job_type": "A3C", "n_workers": 1, "speeds": {"v100": 1.0}, "limit_s": null,
            "submitted_s": 10.0, "there": {"started_s": 20.0, "ended_s": null}, "ran_on": "v100"},
            "here": {"started_s": null, "ended_s": null}, "left_out": null, "needed": null, "work": []}}
    }"#;
    fs::write(folder.path().join("shadow.json"), record).unwrap();
    let state = folder.path().display().to_string();
    let report = said(&["shadow", "--state", &state, "--format", "json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((fits(&report).as_str(), &report["jobs"][0]["wait_there_s"]), ("shadow-report", &10.0.into()));
}

#[test]
fn every_kind_of_answer_in_the_source_has_a_schema_and_a_test() {
    let mut kinds = BTreeSet::new();
    let mut folders = vec![Path::new(ROOT).join("crates/cli/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let found = text.split("const KIND: &'static str = \"").skip(1);
                kinds.extend(found.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }
    // These are documents of other crates that are printed, or written beside the printed ones, as they are.
    kinds.extend(["bench", "import-report", "programs"].map(str::to_owned));
    let held: BTreeSet<String> = HELD.into_iter().chain(HELD_LIVE).map(str::to_owned).collect();
    assert_eq!(kinds, held);
    let page = fs::read_to_string(Path::new(ROOT).join("docs/formats.md")).unwrap();
    for kind in kinds.iter().filter(|kind| cfg!(feature = "live") || !is_of_scheduler(kind)) {
        let schema = schema(&format!("apportion/{kind}-v1"));
        assert!(schema["description"].is_string() && page.contains(&format!("\n## {kind}\n")), "{kind}");
    }
}

fn is_of_scheduler(kind: &str) -> bool {
    HELD_LIVE.contains(&kind) || kind == "shadow-report"
}
