//! Documents that the program writes, and the prices that it reads, fit their schemas.

use std::fs;
use std::path::Path;
use std::process::Command;

use apportion::metrics::METRICS;
use apportion::spec::run::RunSpec;
use apportion::spec::{Source, read_prices};
use serde_json::{Value, json};

use crate::schema::{ROOT, parsed, said, schema};
use crate::schema_checker::check;

#[test]
fn prices_fit_their_schema() {
    let schema = schema("prices");
    let example = "v100: 2.48\np100: 1.46\nk80: 0.45\n";
    assert!(fs::read_to_string(Path::new(ROOT).join("docs/formats.md")).expect("text").contains(example));
    assert!(read_prices(&Source::new("prices.yaml", example), &["v100", "p100", "k80"]).is_ok());
    assert_eq!(check(&schema, &parsed(example)), Ok(()));
    for wrong in ["{v100: much}", "{v100: {zzz: 1}}", "{v100: null}"] {
        assert!(read_prices(&Source::new("prices.yaml", wrong), &["v100"]).is_err());
        assert!(check(&schema, &parsed(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn what_a_forecast_writes_fits_its_schemas() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("jobs.csv").display().to_string();
    let generated = "trace generate --rate 6 --jobs 60 --multi-worker --out";
    said(&generated.split_whitespace().chain([&*trace]).collect::<Vec<_>>());
    let rules = "forecast --policy fifo --cluster v100=64,k80=64 --forks 10 --format json --trace";
    for (kind, more) in [
        ("forecast", "--at 6.8h --job 40 --known-durations"),
        ("forecast", "--at 6.8h --job 40 --arrivals none --limit 600"),
        ("forecast-calibration", "--calibrate --every 2h --limit 2d"),
    ] {
        let arguments = rules.split_whitespace().chain([&*trace]).chain(more.split_whitespace());
        let result: Value = serde_json::from_str(&said(&arguments.collect::<Vec<_>>())).expect("JSON");
        assert_eq!(check(&schema(kind), &result), Ok(()), "{more}");
    }
}

#[test]
fn what_a_benchmark_writes_fits_its_schemas() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().display().to_string();
    let arguments = "bench --policy max_min_fairness_perf,fifo,finish_time_fairness_perf --instance osdi20 --sizes 40 --backend default \
                     --repeats 1 --changes 2 --format json --export";
    let results = parsed(&said(&arguments.split_whitespace().chain([&*out]).collect::<Vec<_>>()));
    let programs = folder.path().join("osdi20-40-0/programs.json");
    let programs = parsed(&fs::read_to_string(programs).expect("what is said of programs"));
    assert_eq!(check(&schema("bench"), &results), Ok(()), "{results}");
    assert_eq!(check(&schema("apportion/programs-v1"), &programs), Ok(()), "{programs}");
    let fields = |schema: &Value, of: &str| {
        schema["$defs"][of]["properties"].as_object().map_or(0, serde_json::Map::len)
    };
    assert_eq!(fields(&schema("bench"), "Row"), results["rows"][0].as_object().expect("a row").len());
}

#[test]
fn what_is_said_of_traces_and_nodes_fits_its_schemas() {
    let show = ["trace", "show", "examples/trace.csv", "--format", "json"];
    let bare = parsed(&said(&show));
    let shaped = parsed(&said(&[&show[..], &["--throughputs", "osdi20"]].concat()));
    assert!(bare["shape"].is_null() && shaped["shape"]["n_jobs"].is_u64(), "{bare}\n{shaped}");
    let nodes = "crates/logs/tests/fixtures/nodes/scontrol_show_node.txt";
    let cluster =
        said(&["trace", "cluster", nodes, "--from", "scontrol", "--skip-unreadable", "--format", "json"]);
    for (name, document) in
        [("workload", &bare), ("workload-v1", &shaped), ("apportion/nodes-v1", &parsed(&cluster))]
    {
        assert_eq!(check(&schema(name), document), Ok(()), "{name}: {document}");
    }
}

#[test]
fn what_a_simulation_writes_fits_its_schemas() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let result = said(&[
        "simulate",
        "--policy",
        "max_min_fairness_packed",
        "--cluster",
        "v100=8,k80=8",
        "--static",
        "4",
        "--duration",
        "1h",
        "--multi-worker",
        "--slos",
        "--events",
        &path("events"),
        "--save-snapshots",
        &path("snapshots"),
        "--format",
        "json",
    ]);
    let result: Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!(check(&schema("simulation"), &result), Ok(()));
    let run: RunSpec = serde_json::from_value(result["spec"].clone()).expect("a run");
    assert_eq!(run.policy, "max_min_fairness_packed");
    let (events, log) = (schema("events"), fs::read_to_string(path("events")).expect("a log"));
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        check(&events, &line).unwrap_or_else(|complaint| panic!("{complaint}\n{line}"));
    }
    for kind in ["arrival", "allocated", "round_started", "lease", "slice", "completion"] {
        assert!(log.contains(&format!("{{\"event\":\"{kind}\"")), "no {kind}");
    }
    assert!(check(&events, &json!({"event": "rest"})).is_err());
    assert!(check(&events, &json!({"event": "idle", "from": "now", "until": 1.0})).is_err());
    let snapshots = schema("snapshot");
    for entry in fs::read_dir(path("snapshots")).expect("a folder") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("text");
        assert_eq!(check(&snapshots, &parsed(&text)), Ok(()));
    }
}

#[test]
fn results_have_the_columns_of_their_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out").display().to_string();
    let file = folder.path().join("study.yaml");
    let study = "format: apportion/sweep-v1\nname: small\nrun: {cluster: {v100: 2}, static: 2, duration: 1h}\n\
                 axes: {policy: [fifo]}\n";
    fs::write(&file, study).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    let ran = command.args(["sweep", &file.display().to_string(), "--out", &out]).output();
    assert!(ran.as_ref().is_ok_and(|output| output.status.success()), "{ran:?}");
    let schema = schema("results");
    let shown: Value =
        serde_json::from_str(&said(&["results", "show", &out, "--runs", "--format", "json"])).expect("JSON");
    let rows = shown["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1);
    assert_eq!(check(&schema, &rows[0]), Ok(()));
    let store = apportion_studies::sweep::Store::open_to_read(Path::new(&out)).expect("results");
    let database = rusqlite::Connection::open(store.path()).expect("a database");
    let mut query = database.prepare("SELECT name FROM pragma_table_info('runs')").expect("a query");
    let columns = query.query_map([], |row| row.get::<_, String>(0)).expect("columns");
    let mut columns: Vec<String> = columns.collect::<Result<_, _>>().expect("names");
    columns.retain(|column| column != "policy");
    let described: Vec<&String> = schema["properties"].as_object().expect("columns").keys().collect();
    assert_eq!(columns.iter().collect::<Vec<_>>(), described);
    assert!(METRICS.iter().all(|metric| schema["properties"][metric.name]["description"].is_string()));
}
