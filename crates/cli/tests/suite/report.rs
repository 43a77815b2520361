//! Pages about results: the files that the command writes, and their view in a browser.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::browser::Browser;

const SMALL: &str = "\
format: apportion/sweep-v1
name: small
run:
  cluster: {v100: 2, p100: 2, k80: 2}
  workload: {generator: gavel, duration: 2h}
  measure: [20, 60]
axes:
  policy: [fifo, isolated, max_min_fairness_perf]
  rate: [0.5, 1.0, 9.0]
  seed: [0, 1, 2]
stop: {saturated: true}
";

fn apportion(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.current_dir(folder).args(arguments).args(["--progress", "never"]).output().unwrap()
}

#[track_caller]
fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let output = apportion(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = apportion(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

/// A folder with the results of a sweep in `results`.
fn swept(text: &str, more: &[&str]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("sweep.yaml"), text).unwrap();
    succeed(folder.path(), &[&["sweep", "sweep.yaml", "--out", "results"][..], more].concat());
    folder
}

/// Whether a document names nothing outside itself.
fn is_alone(document: &str) -> bool {
    let n_links = document.matches("href=").count();
    let names = ["src=", "@import"].iter().any(|name| document.contains(name));
    !names && n_links == document.matches("href=\"#section-").count()
}

/// Whether it names the rate that is proven to be the largest.
fn says_capacity(why: &serde_json::Value) -> bool {
    let rate =
        why.as_str().unwrap().strip_prefix("saturated above ").and_then(|rest| rest.strip_suffix(" jobs/h"));
    rate.is_some_and(|rate| (1.0..9.0).contains(&rate.parse::<f64>().unwrap()))
}

/// The page's data, read back.
fn data(page: &str) -> serde_json::Value {
    let data = page.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script").next()).unwrap();
    serde_json::from_str(data).unwrap()
}

#[test]
fn a_sweep_becomes_a_page_with_files_and_the_same_bytes_each_time() {
    let folder = swept(SMALL, &["--keep-jobs"]);
    let at = folder.path();
    let report = ["report", "results", "--baseline", "isolated", "--assets", "files", "--out"];
    succeed(at, &[&report[..], &["one.html"]].concat());
    succeed(at, &["report", "results/results.sqlite", "--baseline", "isolated", "--out", "two.html"]);
    let page = fs::read_to_string(at.join("one.html")).unwrap();
    assert!(page == fs::read_to_string(at.join("two.html")).unwrap(), "the same results give the same page");
    let (document, scripts) = page.split_once("<script").unwrap();
    assert!(is_alone(document) && !scripts.contains("<script src"), "it asks for nothing");
    assert!(document.contains("default-src 'none'"), "and may not");
    for words in [
        "small: 3 policies against arrival rate",
        "3 seeds",
        "saturated",
        "against isolated",
        "over all 3 seeds",
    ] {
        assert!(page.contains(words), "{words}");
    }

    // The average by rate is computed again from the rows.
    let store = apportion_studies::sweep::Store::open_to_read(&at.join("results")).unwrap();
    let data = data(&page);
    let chart = &data["figures"][0]["variants"][0][1];
    assert_eq!(chart["name"], "average-jct");
    for (position, policy) in ["fifo", "isolated", "max_min_fairness_perf"].into_iter().enumerate() {
        let series = &chart["series"][position];
        assert_eq!(series["name"], policy);
        let rows = store.rows().unwrap();
        let values: Vec<f64> = rows
            .iter()
            .filter(|row| row.values[0] == policy && row.values[1].as_f64() == Some(0.5))
            .filter_map(|row| row.outcome.metric("average_jct_s"))
            .map(|seconds| seconds / 3600.0)
            .collect();
        assert_eq!(values.len(), 3);
        let mean = values.iter().sum::<f64>() / 3.0;
        let shown = series["marks"][0]["y"].as_f64().unwrap();
        assert!((shown / mean - 1.0).abs() < 1e-5, "{policy}: {shown} {mean}");
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let low = mean - (squares / 2.0).sqrt();
        assert!((series["marks"][0]["low"].as_f64().unwrap() / low - 1.0).abs() < 1e-4, "a deviation below");
    }
    let absent = chart["absent"].as_array().unwrap();
    assert_eq!(absent.len(), 3, "a cross for each policy at the rate that no policy sustains");
    assert!(absent.iter().all(|cross| cross["x"] == 9.0 && says_capacity(&cross["why"])));

    let names: Vec<String> = fs::read_dir(at.join("files"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in [
        "average-jct.svg",
        "average-jct.csv",
        "jct-cdf-at-0.5.svg",
        "rho-cdf-at-1.csv",
        "utilization-by-type-at-1.svg",
        "makespan-bars-at-0.5.svg",
        "against-baseline-average-jct.csv",
        "runs.csv",
    ] {
        assert!(names.iter().any(|other| other == name), "{name} is not among {names:?}");
    }
    let svg = fs::read_to_string(at.join("files/average-jct.svg")).unwrap();
    for words in ["<svg", "Average job completion time (h)", "saturated"] {
        assert!(svg.contains(words), "{words}");
    }
    let runs = fs::read_to_string(at.join("files/runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 1 + 27, "no run is left out");
    assert_eq!(runs.lines().filter(|line| line.contains(",saturated,")).count(), 9);
    let against = fs::read_to_string(at.join("files/against-baseline-average-jct.csv")).unwrap();
    assert_eq!(against.lines().count(), 1 + 6, "{against}");
}

#[test]
fn one_seed_has_no_interval_and_says_so() {
    let folder = swept(SMALL, &["--only", "seed=1", "--only", "rate=0.5"]);
    succeed(folder.path(), &["report", "results"]);
    let page = fs::read_to_string(folder.path().join("results/report.html")).unwrap();
    for words in ["one seed, so no spread", "of one seed, so without an interval", "--keep-jobs"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(data(&page)["figures"][0]["variants"][0][1]["series"][0]["marks"][0].get("low").is_none());
}

/// The page goes where the results are, and is no part of them.
#[test]
fn a_page_stands_beside_its_results_and_leaves_them_as_they_are() {
    let folder = swept(SMALL, &["--only", "seed=1", "--only", "rate=0.5"]);
    let at = folder.path();
    let shown = succeed(at, &["results", "show", "results", "--runs", "--format", "csv"]);
    for results in ["results", "results/results.sqlite"] {
        let said = succeed(at, &["report", results]);
        assert_eq!(said, "results/report.html\n");
        fs::remove_file(at.join("results/report.html")).unwrap();
    }
    succeed(at, &["report", "results"]);
    assert_eq!(succeed(at, &["results", "show", "results", "--runs", "--format", "csv"]), shown);
    assert_eq!(
        succeed(at, &["results", "merge", "results", "--out", "whole", "--quiet"]),
        "whole/results.sqlite\nwhole/results.csv\n"
    );
    let told = succeed(at, &["report", "results", "--out", "elsewhere.html"]);
    assert_eq!(told, "elsewhere.html\n");
    let page = fs::read_to_string(at.join("elsewhere.html")).unwrap();
    assert_eq!(succeed(at, &["report", "results", "--out", "-"]), page);
    let picture = succeed(at, &["report", "results", "--out", "elsewhere.html", "--svg", "-"]);
    assert!(picture.starts_with("<svg") && !at.join("-").exists(), "{picture}");
    // A file that is read is never overwritten, nor is the page by the picture.
    for arguments in [
        &["report", "results", "--out", "results/results.sqlite"][..],
        &["report", "results", "--svg", "results/results.csv"],
        &["report", "elsewhere.html", "--out", "elsewhere.html"],
        &["report", "results", "--out", "one.html", "--svg", "one.html"],
        &["report", "results", "--out", "-", "--svg", "-"],
    ] {
        let said = refused(at, arguments);
        assert!(said.contains("are the same file"), "{arguments:?}: {said}");
    }
    assert_eq!(succeed(at, &["results", "show", "results", "--runs", "--format", "csv"]), shown);
    assert!(!at.join("report.html").exists());
}

#[test]
fn results_that_are_not_there_or_not_ours_are_refused() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    assert!(refused(at, &["report", "nowhere"]).contains("nowhere"));
    fs::write(at.join("notes.txt"), "nothing of the kind\n").unwrap();
    assert!(refused(at, &["report", "notes.txt"]).contains("notes.txt"));
    let folder = swept(SMALL, &["--only", "seed=1", "--only", "rate=0.5"]);
    let at = folder.path();
    let said = refused(at, &["report", "results", "--baseline", "isolate"]);
    assert!(said.contains("did you mean `isolated`"), "{said}");
    let whole = fs::read(at.join("results/results.sqlite")).unwrap();
    fs::write(at.join("half.sqlite"), &whole[..whole.len() / 2]).unwrap();
    assert!(refused(at, &["report", "half.sqlite"]).contains("damaged"));
    let connection = rusqlite::Connection::open(at.join("results/results.sqlite")).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let said = refused(at, &["report", "results"]);
    assert!(said.contains("format 99") && said.contains("format 2"), "{said}");
    assert!(!at.join("results/report.html").exists(), "nothing is written");
}

#[test]
fn results_without_utilization_by_type_are_still_read() {
    let folder = swept(SMALL, &["--only", "seed=1", "--only", "rate=0.5"]);
    let connection = rusqlite::Connection::open(folder.path().join("results/results.sqlite")).unwrap();
    connection.execute_batch("DROP TABLE utilization; UPDATE runs SET checksum = NULL").unwrap();
    drop(connection);
    succeed(folder.path(), &["report", "results"]);
    let page = fs::read_to_string(folder.path().join("results/report.html")).unwrap();
    assert!(!page.contains("Utilization by worker type"));
    succeed(
        folder.path(),
        &["sweep", "sweep.yaml", "--out", "results", "--only", "seed=2", "--only", "rate=0.5"],
    );
}

/// Results in which the slow seeds of some policies were given up.
fn with_survivors(policies: &str) -> TempDir {
    let text = SMALL.replace("[fifo, isolated, max_min_fairness_perf]", policies);
    let folder = swept(&text, &["--keep-jobs"]);
    let connection = rusqlite::Connection::open(folder.path().join("results/results.sqlite")).unwrap();
    let change = "PRAGMA foreign_keys = OFF;
        UPDATE runs SET status = 'timeout', reason = 'slow', average_jct_s = NULL, checksum = NULL
            WHERE policy = 'fifo' AND rate = 1.0 AND seed = 2;
        DELETE FROM runs WHERE policy = 'isolated' AND rate = 0.5 AND seed = 1";
    connection.execute_batch(change).unwrap();
    folder
}

#[test]
fn no_mean_is_shown_without_all_its_seeds() {
    let folder = with_survivors("[fifo, isolated, max_min_fairness_perf]");
    let at = folder.path();
    let shown = succeed(at, &["results", "show", "results"]);
    assert!(
        shown.starts_with(
            "average jct in hours, by arrival rate in jobs/h, mean ± standard deviation over 3 seeds\n(in parentheses"
        ),
        "{shown}"
    );
    let line = |start: &str| shown.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    assert!(line("fifo").contains(" over 2 of 3), 1 timeout"), "{shown}");
    assert!(
        line("isolated").contains(" over 2 of 3), 1 not there") && line("isolated").contains(" ± "),
        "{shown}"
    );
    let csv = succeed(at, &["results", "show", "results", "--format", "csv"]);
    let head = csv.lines().next().unwrap();
    assert!(head.starts_with("policy,rate,average_jct_s,average_jct_s_deviation,capacity,n_done,"), "{head}");
    assert!(head.ends_with(",n,n_of"), "{head}");
    let line = |start: &str| csv.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    assert!(line("fifo,1").contains(",,,") && line("fifo,1").ends_with(",2,3"), "{csv}");
    assert!(!line("fifo,0.5").contains(",,") && line("fifo,0.5").ends_with(",3,3"), "{csv}");

    succeed(at, &["report", "results", "--assets", "files"]);
    let data = data(&fs::read_to_string(at.join("results/report.html")).unwrap());
    let chart = &data["figures"][0]["variants"][0][1];
    let marks = |series: usize| chart["series"][series]["marks"].as_array().unwrap().clone();
    let (fifo, isolated) = (marks(0), marks(1));
    assert_eq!((&fifo[1]["n"], &fifo[1]["n_of"], fifo[1].get("low")), (&2.into(), &3.into(), None));
    assert_eq!((&isolated[0]["n"], &isolated[0]["n_of"]), (&2.into(), &3.into()));
    assert!(fifo[0].get("n_of").is_none() && fifo[0].get("low").is_some());
    let absent = |series: u64| {
        let crosses = chart["absent"].as_array().unwrap().iter();
        crosses
            .filter(|cross| cross["series"] == series)
            .map(
                |cross| {
                    if says_capacity(&cross["why"]) { "saturated" } else { cross["why"].as_str().unwrap() }
                },
            )
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (absent(0), absent(1)),
        (vec!["1 of 3 timeout", "saturated"], vec!["1 of 3 not there", "saturated"])
    );
    let read = |name: &str| fs::read_to_string(at.join("files").join(name)).unwrap();
    let csv = read("average-jct.csv");
    assert!(csv.lines().any(|line| line.starts_with("fifo,1,,,,2,,3,")), "no value: {csv}");
    let svg = read("average-jct.svg");
    assert!(
        svg.contains("hollow: mean over fewer than 3 seeds") && svg.contains("fill=\"#FFFFFF\""),
        "{svg}"
    );
    // Neither distributions nor comparisons are over the remaining seeds.
    let cdf = read("jct-cdf-at-1.csv");
    assert!(!cdf.contains("fifo") && cdf.contains("isolated"), "{cdf}");
    assert!(read("jct-cdf-at-1.svg").contains("not shown: fifo (1 of 3 timeout)"));
    let against = read("against-baseline-average-jct.csv");
    let line = |start: &str| against.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    assert!(line("isolated,0.5,").ends_with(",,,,,,,,1 of 3 not there"), "{against}");
    assert!(line("isolated,1,").ends_with(",,,,,,,fifo: 1 of 3 timeout"), "{against}");
    assert!(line("max_min_fairness_perf,0.5,").ends_with(",3,"), "{against}");
}

#[test]
fn a_browser_tells_hollow_marks_and_many_series_apart() {
    let Some(browser) = Browser::start() else { return };
    let folder = with_survivors(
        "[fifo, isolated, max_min_fairness_perf, max_min_fairness, fifo_perf, allox, min_total_duration, srtf]",
    );
    succeed(folder.path(), &["report", "results"]);
    browser.open(&folder.path().join("results/report.html"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let hollow = "return [...document.querySelectorAll('#figure-0 svg .mark-symbol.role-mark path')]\
                  .filter(path => path.getAttribute('fill') === 'var(--paper)').map(path => path.getAttribute('aria-label'))";
    let hollow = browser.run(hollow);
    let labels: Vec<&str> = hollow.as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect();
    assert_eq!(labels.len(), 2, "{labels:?}");
    assert!(labels.iter().all(|label| label.contains("2 of 3: not the mean of all")), "{labels:?}");
    let dashed = "return [...document.querySelectorAll('#figure-0 svg .mark-line path')]\
                  .filter(path => path.getAttribute('stroke-dasharray') === '7,4').length";
    assert!(
        browser.run(dashed).as_u64().unwrap() > 0,
        "the eighth line has the colour of the first, and dashes"
    );
    let whiskers = "return document.querySelectorAll('#figure-0 svg .mark-rule.role-mark line').length";
    assert!(browser.run(whiskers).as_u64().unwrap() >= 2, "a spread without neighbours is a whisker");
    let objects = "return [...document.querySelectorAll('[aria-label]')].map(element => element.getAttribute('aria-label'))\
                   .filter(label => label.includes('[object') || label.includes('tip:'))";
    assert_eq!(browser.run(objects), serde_json::json!([]));
    let label = browser.run("return document.querySelector('#figure-0 .chart').getAttribute('aria-label')");
    assert!(
        label.as_str().unwrap().starts_with("Average job completion time against arrival rate. "),
        "{label}"
    );
}

#[test]
fn a_browser_draws_the_page_of_a_sweep() {
    let Some(browser) = Browser::start() else { return };
    let folder = swept(SMALL, &["--keep-jobs"]);
    succeed(folder.path(), &["report", "results"]);
    browser.open(&folder.path().join("results/report.html"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.run("return document.getElementById('problem').textContent"), "");
    let n_figures = browser.run("return document.querySelectorAll('figure').length").as_u64().unwrap();
    assert_eq!(n_figures, 5, "metrics, makespan, two distributions, utilization");
    let drawn = "return [...document.querySelectorAll('figure')].filter(f => \
                 f.querySelectorAll('svg .role-mark path').length > 2).length";
    assert_eq!(browser.run(drawn), n_figures, "marks in every figure");
    let buttons = "return [...document.querySelectorAll('figure')].every(f => \
                   f.querySelector('[data-as=svg]') && f.querySelector('[data-as=csv]'))";
    assert_eq!(browser.run(buttons), true);

    // Over the first point of the first line.
    browser.hover(
        "const mark = document.querySelector('#figure-0 svg .mark-symbol.role-mark path');
         mark.scrollIntoView({block: 'center'});
         const box = mark.getBoundingClientRect();
         return [box.x + box.width / 2, box.y + box.height / 2];",
    );
    let shown =
        browser.run("const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.textContent");
    let shown = shown.as_str().unwrap();
    assert!(shown.contains("Average job completion time (h)") && shown.contains("seeds 3"), "`{shown}`");
    let objects = "return document.documentElement.innerHTML.match(/aria-label=\"[^\"]*\\[object/g)";
    assert_eq!(browser.run(objects), serde_json::Value::Null, "what screen readers hear is text");

    // Another metric is drawn when chosen, and saved when asked for.
    let choose = "const select = document.querySelector('#figure-0 select'); select.value = '3';
                  select.dispatchEvent(new Event('change'));";
    browser.run(choose);
    let title = "const done = arguments[0]; const look = () => document.querySelector('#figure-0 svg').textContent\
                 .includes('99th percentile') ? done(true) : requestAnimationFrame(look); look();";
    browser.run_async(title);
    let save = "const done = arguments[0];
                URL.createObjectURL = (blob) => { blob.text().then((text) => done(text)); return '#'; };
                document.querySelector('#figure-0 [data-as=csv]').click();";
    let csv = browser.run_async(save);
    assert!(csv.as_str().unwrap().starts_with("series,arrival rate (jobs/h),99th percentile"), "{csv}");
    let svg = browser.run_async(&save.replace("data-as=csv", "data-as=svg"));
    assert!(svg.as_str().unwrap().starts_with("<svg"), "{svg}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn published_points_are_shown_beside_the_studys_own() {
    let published = "\npublished:\n  - {metric: average_jct_s, unit: h, source: a notebook, at: {rate: [0.5, 9]}, \
                     values: {fifo: [1.25, 99], isolated: [null, 7]}}\n";
    let folder = swept(&format!("{SMALL}{published}"), &["--only", "seed=1"]);
    let at = folder.path();
    let shown = succeed(at, &["results", "show", "results"]);
    assert!(shown.contains("[in brackets as published: a notebook]"), "{shown}");
    assert!(shown.contains(" [1.25]") && shown.contains("saturated [99.00]"), "{shown}");
    let csv = succeed(at, &["results", "show", "results", "--format", "csv"]);
    assert!(csv.lines().next().unwrap().ends_with(",n,n_of,average_jct_s_published"), "{csv}");
    assert!(csv.lines().any(|line| line.starts_with("fifo,0.5,") && line.ends_with(",4500")), "{csv}");
    let rho = succeed(at, &["results", "show", "results", "--metric", "average_rho"]);
    assert!(!rho.contains("published"), "{rho}");
    let alone = swept(&format!("{SMALL}{published}"), &["--only", "rate=1.0", "--only", "policy=fifo"]);
    let shown = succeed(alone.path(), &["results", "show", "results"]);
    assert!(
        shown.starts_with("average jct in hours") && !shown.contains("published"),
        "none of these: {shown}"
    );

    succeed(at, &["report", "results", "--assets", "files", "--svg", "picture.svg"]);
    let picture = fs::read_to_string(at.join("picture.svg")).unwrap();
    assert!(picture.contains("rings: published, a notebook") && picture.contains("r=\"6\""), "{picture}");
    assert_eq!(picture, fs::read_to_string(at.join("files/average-jct.svg")).unwrap());
    let data = data(&fs::read_to_string(at.join("results/report.html")).unwrap());
    let rings = &data["figures"][0]["variants"][0][1]["published"];
    assert_eq!((&rings[0]["marks"][1]["y"], &rings[1]["name"]), (&99.0.into(), &"isolated".into()));
    let Some(browser) = Browser::start() else { return };
    browser.open(&at.join("results/report.html"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let drawn = "return [...document.querySelectorAll('#figure-0 svg .mark-symbol.role-mark path')]\
                 .filter(path => (path.getAttribute('aria-label') || '').includes(', published: ')).length";
    assert_eq!(browser.run(drawn), 3);
}

#[test]
fn results_without_a_chart_have_no_picture() {
    let folder = swept(SMALL, &["--only", "seed=1", "--only", "rate=0.5"]);
    let at = folder.path();
    let connection = rusqlite::Connection::open(at.join("results/results.sqlite")).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM runs").unwrap();
    drop(connection);
    let said = refused(at, &["report", "results", "--svg", "picture.svg"]);
    assert!(said.contains("--svg: there is no chart in these results"), "{said}");
    assert!(!at.join("picture.svg").exists() && !at.join("results/report.html").exists());
}

/// One picture compares the several ways in which one policy runs.
#[test]
fn the_ways_in_which_one_policy_ran_are_the_lines_of_one_picture() {
    let ways = "  ideal: [false, true]\n  round_length: [6min, 12min]\n  seed: [0]\n\
                skip: [{ideal: true, round_length: 12min}]";
    let text = SMALL.replace("[fifo, isolated, max_min_fairness_perf]", "[max_min_fairness_perf]");
    let folder = swept(&text.replace("  seed: [0, 1, 2]", ways), &[]);
    succeed(folder.path(), &["report", "results", "--svg", "one.svg"]);
    let picture = fs::read_to_string(folder.path().join("one.svg")).unwrap();
    for way in
        ["ideal false; round_length 360", "ideal false; round_length 720", "ideal true; round_length 360"]
    {
        assert!(picture.contains(way), "{way}: {picture}");
    }
    assert!(picture.contains("policy max_min_fairness_perf"), "{picture}");
}
