//! Every metric of the table, wherever metrics are listed.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use apportion::metrics::table::Prominence;
use apportion::metrics::{METRICS, Metric, Summary};
use serde_json::Value;
use tempfile::TempDir;

/// Runs in which every metric has a value.
const SWEEP: &str = "\
format: apportion/sweep-v1
name: all
run:
  cluster: {v100: 2, k80: 2}
  workload: {static: 8, duration: 2h, slos: true}
  prices: prices.csv
axes:
  policy: [fifo, isolated]
";

/// The first of them, as flags.
const RUN: &str =
    "simulate --policy fifo --cluster v100=2,k80=2 --static 8 --duration 2h --slos --prices prices.csv";

#[track_caller]
fn succeed(folder: &Path, arguments: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.current_dir(folder).args(arguments.split_whitespace()).args(["--progress", "never"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn swept() -> TempDir {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("prices.csv"), "time,worker_type,price\n0,v100,2\n0,k80,1\n").unwrap();
    fs::write(at.join("all.yaml"), SWEEP).unwrap();
    succeed(at, "sweep all.yaml --out results");
    folder
}

#[test]
fn every_metric_has_its_column_its_key_and_its_flag() {
    let folder = swept();
    let at = folder.path();
    let csv = fs::read_to_string(at.join("results/results.csv")).unwrap();
    let names: Vec<&str> = Metric::names().collect();
    assert!(csv.lines().next().unwrap().contains(&format!(",{},", names.join(","))), "{csv}");

    let runs: Value =
        serde_json::from_str(&succeed(at, "results show results --runs --format json")).unwrap();
    let runs = &runs["rows"];
    let summary: Summary = serde_json::from_str(&succeed(at, &format!("{RUN} --format json"))).unwrap();
    for metric in METRICS {
        let (name, value) = (metric.name, (metric.of)(&summary));
        assert!(
            value.is_some(),
            "{name} has no value in a simulation with prices and deadlines in which all jobs are completed: read from JSON, a \
             `Summary` has no field that is skipped there, and what has a value in few simulations only belongs in `DETAILS`"
        );
        assert_eq!(runs[0][name].as_f64(), value, "{name}: the sweep and the simulation agree");
    }

    let jct = summary.jct.as_ref().expect("jobs were completed");
    let spread = [
        ("average_jct_s", jct.average),
        ("median_jct_s", jct.median),
        ("p95_jct_s", jct.p95),
        ("p99_jct_s", jct.p99),
    ];
    for (name, value) in spread {
        assert_eq!(runs[0][name].as_f64(), Some(value), "{name} is another number of the distribution");
    }

    let flags = names.iter().fold(String::new(), |flags, name| flags + " --metric " + name);
    let compared = succeed(at, &format!("compare results results --format json{flags}"));
    let compared: Value = serde_json::from_str(&compared).unwrap();
    let points = compared["points"].as_array().unwrap();
    for name in names {
        assert_eq!(points.iter().filter(|point| point["metric"] == name).count(), 2, "{name}");
        let shown = succeed(at, &format!("results show results --metric {name} --format csv"));
        assert!(shown.lines().next().unwrap().contains(&format!(",{name},{name}_deviation,")), "{shown}");
    }
}

#[test]
fn every_metric_has_its_label_on_the_pages() {
    let folder = swept();
    let at = folder.path();
    let of_run = succeed(at, RUN);
    fs::write(at.join("run.json"), succeed(at, &format!("{RUN} --format json"))).unwrap();
    let page = |results: &str| {
        succeed(at, &format!("report {results} --out page.html"));
        fs::read_to_string(at.join("page.html")).unwrap()
    };
    let (run_page, study_page) = (page("run.json"), page("results"));
    for metric in METRICS {
        let label = metric.label;
        let inside: String =
            label.chars().take(1).flat_map(char::to_lowercase).chain(label.chars().skip(1)).collect();
        assert!(of_run.contains(&inside), "{label} is not what `simulate` prints:\n{of_run}");
        assert!(run_page.contains(&inside), "{label} is not on the page of a simulation");
        let head = format!(">{}</th>", metric.title());
        assert!(study_page.contains(&head), "{head} is not in the table of all runs");
        let has = |title: String| study_page.contains(&title);
        assert_eq!(has(format!("{label} by policy")), metric.prominence >= Prominence::Chart, "{label}");
        assert_eq!(
            has(format!("{label} against fifo")),
            metric.prominence >= Prominence::Compared,
            "{label}"
        );
    }
}
