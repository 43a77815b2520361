//! Results of a sweep as they are shown: with missing seeds, in folders that hold none, and numbers as numbers.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::sweep::{complaint, folder_with, succeed};

const FOUR: &str = "\
format: apportion/sweep-v1
name: four
run: {cluster: {v100: 2, k80: 2}, jobs: 10}
axes:
  policy: [fifo, isolated]
  rate: [0.5, 1.0]
  seed: [0, 1, 2, 3]
";

fn text(folder: &Path, arguments: &[&str]) -> String {
    String::from_utf8(succeed(folder, arguments).stdout).unwrap()
}

/// Results in `part` of a sweep that was stopped after the first two seeds of each point.
fn stopped() -> TempDir {
    let folder = folder_with("four.yaml", FOUR);
    succeed(folder.path(), &["sweep", "four.yaml", "--out", "part"]);
    let results = rusqlite::Connection::open(folder.path().join("part/results.sqlite")).unwrap();
    results.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM runs WHERE seed > 1").unwrap();
    folder
}

#[test]
fn there_is_no_mean_before_every_seed_that_was_asked_for_is_done() {
    let folder = stopped();
    let at = folder.path();
    let shown = text(at, &["results", "show", "part"]);
    assert!(shown.contains("over 4 seeds\n(in parentheses over the seeds that have a number"), "{shown}");
    assert_eq!(shown.matches(" over 2 of 4), 2 not there").count(), 4, "{shown}");
    let listed = text(at, &["results", "show", "part", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let listed = listed["rows"].as_array().unwrap();
    assert_eq!(listed.len(), 4);
    for group in listed {
        assert_eq!((&group["n"], &group["n_of"]), (&2.into(), &4.into()), "{group}");
        assert_eq!(group["average_jct_s"], serde_json::Value::Null, "{group}");
    }
    succeed(at, &["report", "part", "--assets", "drawn"]);
    let page = fs::read_to_string(at.join("part/report.html")).unwrap();
    assert!(page.contains("hollow: mean over fewer than 4 seeds"), "no hollow marks");
    let compared = text(at, &["compare", "part", "part", "--format", "json"]);
    let compared: serde_json::Value = serde_json::from_str(&compared).unwrap();
    assert_eq!((&compared["points"][0]["n"], &compared["points"][0]["n_of"]), (&2.into(), &4.into()));
    assert_eq!((&compared["n_runs"], &compared["n_runs_of"]), (&8.into(), &16.into()));
    assert!(text(at, &["compare", "part", "part"]).contains("2 of 4"));
}

#[test]
fn seeds_that_were_not_asked_for_are_not_missed() {
    let folder = folder_with("four.yaml", FOUR);
    let at = folder.path();
    let two = text(at, &["sweep", "four.yaml", "--only", "seed=0:2", "--out", "two"]);
    assert!(two.contains("over 2 seeds\n\n") && !two.contains("not there"), "{two}");
    assert!(text(at, &["results", "show", "two"]).contains("over 2 seeds\n\n"));
    // Points that are asked for later are in the study, too; others are not in this command's table.
    let one = text(at, &["sweep", "four.yaml", "--only", "seed=3", "--only", "policy=fifo", "--out", "two"]);
    assert!(one.contains("of one seed"), "{one}");
    let all = text(at, &["results", "show", "two"]);
    assert!(all.contains("over 3 seeds") && all.contains(" over 2 of 3), 1 not there"), "{all}");
}

/// The page's script takes differences of runs: if runs were rounded, a small difference would lose all its digits.
#[test]
fn any_two_are_compared_with_all_digits_of_their_runs() {
    let folder = stopped();
    let at = folder.path();
    succeed(at, &["report", "part"]);
    let page = fs::read_to_string(at.join("part/report.html")).unwrap();
    let runs = text(at, &["results", "show", "part", "--runs", "--format", "json"]);
    let runs: serde_json::Value = serde_json::from_str(&runs).unwrap();
    let runs = runs["rows"].as_array().unwrap();
    assert_eq!(runs.len(), 8);
    let pairs = page.split_once("\"pairs\":[{").unwrap().1.split_once("\"t\":").unwrap().0;
    for run in runs {
        let hours = run["average_jct_s"].as_f64().unwrap() / 3600.0;
        assert!(pairs.contains(&hours.to_string()), "{hours}: {pairs}");
    }
}

#[test]
fn values_of_axes_are_numbers_for_programs() {
    let folder = stopped();
    let at = folder.path();
    let compared = text(at, &["compare", "part", "part", "--format", "json"]);
    let planned = text(at, &["sweep", "four.yaml", "--out", "part", "--dry-run", "--format", "json"]);
    let compared: serde_json::Value = serde_json::from_str(&compared).unwrap();
    let planned: serde_json::Value = serde_json::from_str(&planned).unwrap();
    assert_eq!(compared["points"][0]["rate"], serde_json::json!(0.5));
    assert_eq!(
        (&planned["rows"][1]["rate"], &planned["rows"][1]["seed"]),
        (&serde_json::json!(0.5), &1.into())
    );
    let planned = text(at, &["sweep", "four.yaml", "--out", "part", "--dry-run"]);
    assert!(planned.contains("fifo      0.5 "), "for people as they are written: {planned}");
}

#[test]
fn it_is_said_what_is_where_results_were_looked_for() {
    let folder = folder_with("four.yaml", FOUR);
    let at = folder.path();
    succeed(at, &["sweep", "four.yaml", "--only", "seed=0", "--out", "one"]);
    fs::create_dir(at.join("void")).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("gone", at.join("dang")).unwrap();
        fs::create_dir(at.join("inside")).unwrap();
        std::os::unix::fs::symlink("gone.sqlite", at.join("inside/results.sqlite")).unwrap();
    }
    for command in
        [&["results", "show"][..], &["report"], &["compare", "one"], &["results", "merge", "--out", "o"]]
    {
        let said = |path: &str| complaint(at, &[command, &[path]].concat());
        let gone = said("nowhere.jsonl");
        assert!(gone.contains("nowhere.jsonl: there is no such file or folder"), "{gone}");
        assert!(!gone.contains("holds no results"), "{gone}");
        assert!(said("void").contains("void holds no results: no results.sqlite"));
        if cfg!(unix) {
            let dangling = said("dang");
            assert!(dangling.contains("dang is a link to `gone`, which is not there"), "{dangling}");
            let inside = said("inside");
            assert!(
                inside.contains("results.sqlite is a link to `gone.sqlite`, which is not there"),
                "{inside}"
            );
        }
    }
    let table = complaint(at, &["report", "one/results.csv"]);
    assert!(table.contains("`apportion report one`"), "{table}");
    let table = complaint(at, &["results", "show", "one/results.csv"]);
    assert!(table.contains("it is not a database, as results.sqlite beside it is"), "{table}");
    let other = complaint(at, &["report", "four.yaml"]);
    assert!(other.contains("a sweep's folder") && other.contains("JSON of `simulate` or `bench`"), "{other}");
}

#[test]
fn allocations_that_a_sweep_keeps_are_those_of_the_simulation() {
    let of_run = "cluster: {v100: 2, k80: 2}, jobs: 6";
    let sweep = format!(
        "format: apportion/sweep-v1\nname: kept\nrun: {{{of_run}}}\n\
         axes: {{policy: [max_min_fairness_packed, fifo], rate: [2.0], seed: [1]}}\n"
    );
    let folder = folder_with("kept.yaml", &sweep);
    let at = folder.path();
    succeed(at, &["sweep", "kept.yaml", "--out", "without"]);
    let said = complaint(at, &["results", "show", "without", "--allocations"]);
    assert!(said.contains("no run of these results has kept its allocations"), "{said}");
    assert!(said.contains("--keep-allocations"), "{said}");
    succeed(at, &["sweep", "kept.yaml", "--out", "with", "--keep-allocations"]);
    succeed(at, &["results", "merge", "without", "with", "--out", "both"]);
    let shown = text(at, &["results", "show", "with", "--allocations", "--format", "csv"]);
    assert_eq!(shown, text(at, &["results", "show", "both", "--allocations", "--format", "csv"]));
    fs::write(at.join("said.yaml"), sweep + "keep_allocations: true\n").unwrap();
    succeed(at, &["sweep", "said.yaml", "--out", "said"]);
    assert_eq!(shown, text(at, &["results", "show", "said", "--allocations", "--format", "csv"]));
    let mut expected = "policy,rate,seed,from_s,until_s,job,partner,worker_type,share\n".to_owned();
    let short = |number: f64, decimals: usize| {
        if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.decimals$}") }
    };
    for policy in ["max_min_fairness_packed", "fifo"] {
        let run = format!(
            "simulate --policy {policy} --cluster v100=2,k80=2 --rate 2 --jobs 6 --seed 1 --events {policy}.jsonl"
        );
        succeed(at, &run.split_whitespace().collect::<Vec<_>>());
        let events = fs::read_to_string(at.join(format!("{policy}.jsonl"))).unwrap();
        let events: Vec<serde_json::Value> =
            events.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        let decisions: Vec<&serde_json::Value> =
            events.iter().filter(|event| event["event"] == "allocated").collect();
        assert!(decisions.len() > 3, "{policy}");
        for (position, decision) in decisions.iter().enumerate() {
            let from = decision["now"].as_f64().unwrap();
            let until = decisions.get(position + 1).map(|next| next["now"].as_f64().unwrap());
            for of in decision["shares"].as_array().unwrap() {
                let partner = of["jobs"]["second"].as_u64().map_or(String::new(), |id| id.to_string());
                for (worker_type, share) in of["shares"].as_object().unwrap() {
                    let until = until.map_or("END".to_owned(), |until| short(until, 4));
                    let (from, job, share) = (short(from, 4), &of["jobs"]["first"], share.as_f64().unwrap());
                    let row = format!("{policy},2,1,{from},{until},{job},{partner},{worker_type},{share}\n");
                    expected.push_str(&row);
                }
            }
        }
    }
    assert_eq!(shown.lines().count(), expected.lines().count());
    for (found, expected) in shown.lines().zip(expected.lines()) {
        let [found, expected]: [Vec<&str>; 2] = [found, expected].map(|line| line.split(',').collect());
        let number = |text: &str| text.parse::<f64>().ok();
        for (column, (one, other)) in found.iter().zip(&expected).enumerate() {
            let is_close = match (number(one), number(other)) {
                (Some(one), Some(other)) => (one - other).abs() < 1e-3,
                _ => (*other == "END" && column == 4) || one == other,
            };
            assert!(is_close, "{found:?} is not {expected:?}");
        }
    }
}
