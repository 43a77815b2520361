//! Pages about one simulation, from its events or from its result.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, UNIX_EPOCH};

use apportion::index::Id;
use apportion::metrics::timeline::Timeline;
use apportion::metrics::{Recorder, log};
use serde_json::Value;
use tempfile::TempDir;

use crate::browser::Browser;

/// A job type that would do harm if it were taken for more than text.
const NASTY: &str = "</script><script>window.broken = 1</script><b>";

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

/// A folder with `run.jsonl` and `run.json` of a simulation with gangs and pairs.
fn simulated() -> TempDir {
    let folder = TempDir::new().unwrap();
    let run = "simulate --policy max_min_fairness_packed --cluster v100=8,p100=8,k80=8 --servers v100=4 --rate 3 --jobs 30 \
               --multi-worker --duration 3h --events run.jsonl --format json";
    let out = succeed(folder.path(), &run.split_whitespace().collect::<Vec<_>>());
    fs::write(folder.path().join("run.json"), out).unwrap();
    folder
}

fn replayed(path: &Path) -> (Recorder, Timeline) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header = log::header(lines.next().unwrap()).unwrap();
    let mut observer = (Recorder::new(&header.cluster), Timeline::new(&header.cluster));
    let mut replay = log::Replay::new(&header);
    for line in lines {
        replay.tell(line, &mut observer).unwrap();
    }
    observer
}

#[test]
fn times_of_a_stopped_simulation_are_said_to_be_of_the_jobs_that_were_done() {
    let folder = simulated();
    let at = folder.path();
    let text = fs::read_to_string(at.join("run.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let is_end = |line: &&&str| line.contains("\"event\":\"completion\"");
    let n_ends = lines.iter().filter(is_end).count();
    assert_eq!(n_ends, 30);
    let tenth = lines.iter().enumerate().filter(|(_, line)| is_end(line)).nth(9).unwrap().0;
    fs::write(at.join("part.jsonl"), lines[..=tenth].join("\n") + "\n").unwrap();
    succeed(at, &["report", "part.jsonl", "--assets", "files"]);
    let page = fs::read_to_string(at.join("part.html")).unwrap();
    for words in [
        "stopped with 20 of 30 measured jobs not done, so times are of the others",
        "average job completion time (10 of 30 measured jobs)",
        "30 measured jobs, of which 20 have no such number",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("; makespan"), "which nobody knows");
    let cdf = fs::read_to_string(at.join("files/jct-cdf.csv")).unwrap();
    let last: f64 = cdf.lines().last().unwrap().split(',').nth(2).unwrap().parse().unwrap();
    assert!((last - 1.0 / 3.0).abs() < 1e-5, "a third of the jobs: {cdf}");
}

#[test]
fn events_told_again_amount_to_what_the_simulation_amounted_to() {
    let folder = simulated();
    let (recorder, timeline) = replayed(&folder.path().join("run.jsonl"));
    let result: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("run.json")).unwrap()).unwrap();
    let summary = serde_json::to_value(recorder.summary()).unwrap();
    for (name, value) in summary.as_object().unwrap() {
        assert_eq!(result[name], *value, "{name}");
    }

    // A stay is a lease and its extensions.
    let number = |name: &str| result[name].as_u64().unwrap();
    let stays = timeline.stays();
    assert_eq!(stays.iter().map(|stay| stay.n_rounds).sum::<u64>(), number("leases"));
    assert_eq!(stays.len() as u64, number("leases") - number("lease_extensions"));
    assert!(stays.iter().any(|stay| stay.jobs.is_pair()) && stays.iter().any(|stay| stay.workers.len() > 1));
    for worker in 0..24 {
        let mut of_worker: Vec<_> =
            stays.iter().filter(|stay| stay.workers.iter().any(|own| own.index() == worker)).collect();
        of_worker.sort_by(|one, other| one.start.get().total_cmp(&other.start.get()));
        let apart = of_worker.windows(2).all(|pair| pair[0].end.get() <= pair[1].start.get() + 1e-6);
        assert!(apart, "nobody shares worker {worker} but in a pair");
    }

    // Values spread over time add up to the whole.
    let averages = timeline.averages();
    let (width, until) = (averages.interval.get(), timeline.until().get());
    let total = |values: &[f64]| -> f64 {
        let length = |at: usize| (until - at as f64 * width).min(width);
        values.iter().enumerate().map(|(at, value)| value * length(at)).sum()
    };
    let jcts: f64 = result["jobs"].as_array().unwrap().iter().map(|job| job["jct_s"].as_f64().unwrap()).sum();
    assert!((total(&averages.active) / jcts - 1.0).abs() < 1e-9, "all jobs are measured");
    for (kind, name) in ["v100", "p100", "k80"].into_iter().enumerate() {
        let expected = result["utilization"][name].as_f64().unwrap();
        assert!((total(&averages.utilization[kind]) / until - expected).abs() < 1e-9, "{name}");
    }
    let more_run = averages
        .running
        .iter()
        .zip(&averages.active)
        .filter(|(running, active)| *running > &(*active + 1e-6));
    assert_eq!(more_run.count(), 0, "a job that runs is active");
}

#[test]
fn a_simulation_becomes_a_page_with_the_same_bytes_each_time() {
    let folder = simulated();
    let at = folder.path();
    succeed(at, &["report", "run.jsonl", "--out", "one.html", "--assets", "files"]);
    succeed(at, &["report", "run.jsonl", "--out", "two.html"]);
    let page = fs::read_to_string(at.join("one.html")).unwrap();
    assert!(page == fs::read_to_string(at.join("two.html")).unwrap());
    for words in
        ["One simulation: max_min_fairness_packed on", "30 measured jobs", "lease extensions", "<canvas"]
    {
        assert!(page.contains(words), "{words}");
    }
    let files = [
        "gantt.svg",
        "gantt.csv",
        "jobs-over-time.svg",
        "utilization-over-time.csv",
        "jct-cdf.svg",
        "jobs.csv",
    ];
    for name in files {
        assert!(at.join("files").join(name).exists(), "{name}");
    }
    let gantt = fs::read_to_string(at.join("files/gantt.csv")).unwrap();
    let (_, timeline) = replayed(&at.join("run.jsonl"));
    assert_eq!(gantt.lines().count(), 1 + timeline.stays().len());
    let svg = fs::read_to_string(at.join("files/gantt.svg")).unwrap();
    assert!(svg.matches("<rect").count() > 30 && svg.ends_with("</svg>\n"));

    let told = succeed(at, &["report", "run.json", "--out", "result.html", "--format", "json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let expected = serde_json::json!({"format": "apportion/report-v1", "version": env!("CARGO_PKG_VERSION"),
                                      "page": "result.html", "assets": null, "picture": null});
    assert_eq!(told, expected);
    let csv = succeed(at, &["report", "run.json", "--out", "result.html", "--format", "csv"]);
    assert_eq!(csv, "what,path\npage,result.html\n");
    let page = fs::read_to_string(at.join("result.html")).unwrap();
    assert!(!page.contains("<canvas") && page.contains("this page was made from the result alone"));
    let err = refused(at, &["report", "run.json", "--baseline", "fifo"]);
    assert!(err.contains("is not of a sweep"), "{err}");
}

#[test]
fn events_that_are_damaged_or_not_ours_are_refused() {
    let folder = simulated();
    let at = folder.path();
    let text = fs::read_to_string(at.join("run.jsonl")).unwrap();
    let n_lines = text.lines().count();
    fs::write(at.join("half.jsonl"), &text[..text.len() - 40]).unwrap();
    let said = refused(at, &["report", "half.jsonl"]);
    assert!(said.contains(&format!("line {n_lines} is not an event: EOF")), "{said}");
    // The place is where the line breaks off.
    let place = format!("--> half.jsonl:{n_lines}:");
    assert!(said.contains(&place) && !said.contains(&format!("{place}1\n")), "{said}");
    assert!(!said.contains("at line 1"), "{said}");
    fs::write(at.join("head.jsonl"), text.replacen("\"n_workers\":", "\"n_workers\":-", 1)).unwrap();
    let said = refused(at, &["report", "head.jsonl"]);
    assert!(said.contains("--> head.jsonl:1:") && !said.contains("--> head.jsonl:1:1\n"), "{said}");
    let spaced = text.replacen("{\"format\":", "{ \"format\" : ", 1);
    fs::write(at.join("spaced.jsonl"), spaced).unwrap();
    succeed(at, &["report", "spaced.jsonl", "--out", "spaced.html"]);
    let (_, events) = text.split_once('\n').unwrap();
    fs::write(at.join("headless.jsonl"), events).unwrap();
    let said = refused(at, &["report", "headless.jsonl"]);
    assert!(
        said.contains("does not start with a header") && said.contains("--> headless.jsonl:1:1\n"),
        "{said}"
    );
    fs::write(at.join("other.jsonl"), text.replacen("events-v1", "events-v9", 1)).unwrap();
    let said = refused(at, &["report", "other.jsonl"]);
    assert!(said.contains("format apportion/events-v9, this is apportion/events-v1"), "{said}");
    fs::write(at.join("empty.jsonl"), "").unwrap();
    assert!(refused(at, &["report", "empty.jsonl"]).contains("empty.jsonl is empty"));
    fs::write(at.join("latin.jsonl"), [text.as_bytes(), b"{\"event\": \"caf\xe9\"}\n"].concat()).unwrap();
    let said = refused(at, &["report", "latin.jsonl"]);
    assert!(said.contains(&format!("--> latin.jsonl:{}:15\n", n_lines + 1)), "{said}");
    fs::write(at.join("latin.json"), b"{\n\"caf\xc3\xa9\": \"\xe9\"}").unwrap();
    let said = refused(at, &["report", "latin.json"]);
    assert!(said.contains("line 2 is not UTF-8 from its character 10 on\n  --> latin.json:2:10\n"), "{said}");
    let result = fs::read_to_string(at.join("run.json")).unwrap();
    fs::write(at.join("wrong.json"), result.replacen("\"count\": ", "\"count\": -", 1)).unwrap();
    let said = refused(at, &["report", "wrong.json"]);
    let before = &result[..result.find("\"count\": ").unwrap()];
    let place = format!("--> wrong.json:{}:", before.matches('\n').count() + 1);
    assert!(said.contains(&place) && said.contains("help: "), "{place} {said}");
    fs::write(at.join("other.json"), "{\"average\": 1}").unwrap();
    assert!(
        refused(at, &["report", "other.json"]).contains("is not the JSON of a simulation or a benchmark")
    );
}

#[cfg(unix)]
#[test]
fn a_page_is_made_of_what_comes_through_a_pipe() {
    let folder = simulated();
    let report = |input: &str| {
        let command = format!("exec {} report <(cat {input})", env!("CARGO_BIN_EXE_apportion"));
        Command::new("bash").args(["-c", &command]).current_dir(folder.path()).output().unwrap()
    };
    let output = report("run.jsonl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read_to_string(folder.path().join("report.html")).unwrap().contains("average"));
    fs::write(folder.path().join("other"), "SQLite format 3").unwrap();
    let output = report("other");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is neither a simulation's nor a benchmark's, and no regular file"), "{said}");
}

#[test]
fn a_browser_draws_the_page_of_a_simulation() {
    let Some(browser) = Browser::start() else { return };
    let folder = simulated();
    succeed(folder.path(), &["report", "run.jsonl"]);
    browser.open(&folder.path().join("run.html"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // More than the few colours of an empty chart.
    let colours = "const canvas = document.querySelector('canvas');
        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;";
    assert!(browser.run(colours).as_u64().unwrap() > 30);
    browser.hover(
        "const canvas = document.querySelector('canvas');
         canvas.scrollIntoView({block: 'center'});
         const box = canvas.getBoundingClientRect();
         return [box.x + 80, box.y + 32];",
    );
    let tip = "const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.innerText";
    let shown = browser.run(tip);
    let shown = shown.as_str().unwrap();
    for words in ["job ", "arrived", "from", "rounds", "lease"] {
        assert!(shown.contains(words), "{words}: `{shown}`");
    }
    // The charts below follow the range of the Gantt chart.
    let ticks = "return document.querySelectorAll('figure')[1].querySelector('.role-axis-label').textContent";
    let before = browser.run(ticks);
    browser.run("document.querySelector('[data-zoom=\"+\"]').click()");
    let moved = format!(
        "const done = arguments[0], before = {before}; const now = () => {{ {ticks} }};
         const look = () => now() !== before ? done(now()) : requestAnimationFrame(look); look();"
    );
    assert_ne!(browser.run_async(&moved), before);
    let save = "const done = arguments[0];
                URL.createObjectURL = (blob) => { blob.text().then((text) => done(text)); return '#'; };
                document.querySelector('#gantt [data-as=svg]').click();";
    assert!(browser.run_async(save).as_str().unwrap().starts_with("<svg"));
    let csv = browser.run_async(&save.replace("=svg", "=csv"));
    assert!(csv.as_str().unwrap().starts_with("jobs,job_type,worker_type"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn names_from_files_stay_text() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let throughputs = format!(
        "format: apportion/throughputs-v1\nname: nasty\nunit: steps/s\nsource: {{who: a test}}\nworker_types: [a]\n\
         rows:\n  - {{job_type: \"{NASTY}\", scale_factor: 1, consolidated: [1.0], unconsolidated: [1.0]}}\n"
    );
    fs::write(at.join("nasty.yaml"), throughputs).unwrap();
    let trace =
        format!("id,job_type,scale_factor,total_steps,arrival,weight,slo,entity\n0,{NASTY},1,5000,0,1,,\n");
    fs::write(at.join("nasty.csv"), trace).unwrap();
    let run =
        "simulate --policy fifo --cluster a=1 --throughputs nasty.yaml --trace nasty.csv --events run.jsonl";
    succeed(at, &run.split_whitespace().collect::<Vec<_>>());
    succeed(at, &["report", "run.jsonl"]);
    let page = fs::read_to_string(at.join("run.html")).unwrap();
    assert!(!page.contains("<script>window.broken"));
    assert!(page.contains("&lt;script&gt;window.broken"), "it is shown in the table of jobs");
    let Some(browser) = Browser::start() else { return };
    browser.open(&at.join("run.html"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.run("return window.broken || 0"), 0);
    browser.hover(
        "const canvas = document.querySelector('canvas');
         canvas.scrollIntoView({block: 'center'});
         const box = canvas.getBoundingClientRect();
         return [box.x + box.width / 2, box.y + 34];",
    );
    let shown = browser.run("return document.getElementById('tip').textContent");
    assert!(shown.as_str().unwrap().contains(NASTY), "{shown}");
    assert_eq!(browser.run("return window.broken || 0"), 0);
}

#[test]
fn a_page_tells_the_command_and_the_day_of_its_file() {
    let folder = simulated();
    let at = folder.path();
    // 2021-03-04.
    let day = UNIX_EPOCH + Duration::from_hours(448_565);
    for file in ["run.jsonl", "run.json"] {
        fs::File::options().write(true).open(at.join(file)).unwrap().set_modified(day).unwrap();
        succeed(at, &["report", file, "--out", "page.html"]);
        let page = fs::read_to_string(at.join("page.html")).unwrap();
        for words in [
            "apportion simulate --policy max_min_fairness_packed --cluster v100=8,p100=8,k80=8 --servers v100=4 --rate 3 \
             --jobs 30 --multi-worker --duration 10800",
            "file last written on",
            "2021-03-04",
        ] {
            assert!(page.contains(words), "{file}: {words}");
        }
    }
    let said = refused(at, &["report", "run.json", "--until", "2h"]);
    assert!(said.contains("--until: run.json holds no events"), "{said}");
}

/// Logs of older programs have the positions of worker types in place of their names.
#[test]
fn an_older_log_has_the_same_page() {
    let folder = simulated();
    let at = folder.path();
    let text = fs::read_to_string(at.join("run.jsonl")).unwrap();
    let (header, events) = text.split_once('\n').unwrap();
    let mut older = events.to_owned();
    for (position, name) in ["v100", "p100", "k80"].iter().enumerate() {
        let said = format!("\"worker_type\":\"{name}\"");
        assert!(older.contains(&said), "{name}");
        older = older.replace(&said, &format!("\"worker_type\":{position}"));
    }
    assert!(!older.contains("\"worker_type\":\""));
    let mut pages = Vec::new();
    for events in [events, &older] {
        fs::write(at.join("run.jsonl"), format!("{header}\n{events}")).unwrap();
        succeed(at, &["report", "run.jsonl"]);
        pages.push(fs::read_to_string(at.join("run.html")).unwrap());
    }
    assert!(pages[0] == pages[1], "the pages differ");
    let wrong = older.replacen("\"worker_type\":2", "\"worker_type\":\"h100\"", 1);
    fs::write(at.join("wrong.jsonl"), format!("{header}\n{wrong}")).unwrap();
    assert!(refused(at, &["report", "wrong.jsonl"]).contains("the cluster has no worker type `h100`"));
}

#[test]
fn shares_received_stand_against_shares_owed() {
    let folder = simulated();
    let at = folder.path();
    let result: Value = serde_json::from_str(&fs::read_to_string(at.join("run.json")).unwrap()).unwrap();
    let jobs = result["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 30);
    let mut charts = Vec::new();
    for file in ["run.jsonl", "run.json"] {
        succeed(at, &["report", file, "--out", "page.html", "--assets", "files"]);
        charts.push(fs::read_to_string(at.join("files/share-received-and-owed.csv")).unwrap());
    }
    assert_eq!(charts[0], charts[1], "events and result have the same shares");
    let lines: Vec<&str> = charts[0].lines().skip(1).collect();
    assert_eq!(lines.len(), 2 * jobs.len());
    for (job, (received, owed)) in jobs.iter().zip(lines.iter().zip(&lines[jobs.len()..])) {
        for (line, series, name) in [(received, "received", "share_received"), (owed, "owed", "share_owed")] {
            let cells: Vec<&str> = line.split(',').collect();
            assert!(cells[0].starts_with(series) && cells[1] == format!("job {}", job["id"]), "{line}");
            let (found, expected) = (cells[2].parse::<f64>().unwrap(), job[name].as_f64().unwrap());
            assert!((found - 100.0 * expected).abs() < 1e-3, "{line}: {expected}");
        }
    }
    assert!(fs::read_to_string(at.join("page.html")).unwrap().contains("Share received against share owed"));
    // Of many jobs it is a distribution, and without allocations there is none.
    let of = |policy: &str| {
        let run = format!(
            "simulate --policy {policy} --cluster v100=8 --static 45 --duration 10min --events many.jsonl"
        );
        succeed(at, &run.split_whitespace().collect::<Vec<_>>());
        succeed(at, &["report", "many.jsonl"]);
        fs::read_to_string(at.join("many.html")).unwrap()
    };
    let many = of("max_min_fairness");
    assert!(many.contains("share received less share owed (percentage points)"));
    assert!(!of("elastic_optimus").contains("Share received against share owed"));
}

/// A chart against one number of jobs would be one point.
#[test]
fn a_benchmark_of_one_size_has_a_chart_of_bars() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let bench = "bench --policy max_min_fairness_perf,isolated --instance random --sizes 8 \
                 --backend default,clarabel,good_lp-microlp --repeats 3 --limit 60 --format json";
    fs::write(at.join("bench.json"), succeed(at, &bench.split_whitespace().collect::<Vec<_>>())).unwrap();
    let said = succeed(at, &["report", "bench.json", "--svg", "first.svg", "--assets", "files"]);
    assert!(said.starts_with("bench.html\n"));
    let page = fs::read_to_string(at.join("bench.html")).unwrap();
    for words in ["Time of a decision", "processor", "good_lp-microlp (unproven)"] {
        assert!(page.contains(words), "{words}");
    }
    let picture = fs::read_to_string(at.join("first.svg")).unwrap();
    assert!(
        picture.contains("max_min_fairness_perf, random-3x10") && picture.contains("clarabel"),
        "{picture}"
    );
    let csv = fs::read_to_string(at.join("files/cost-max-min-fairness-perf--random-3x10.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2, "a bar for each that has a time: {csv}");
}

#[test]
fn a_benchmark_becomes_a_page() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let bench = "bench --policy max_min_fairness_perf --instance random --sizes 8,16 --backend default,clarabel \
                 --partitions 2 --limit 60 --format json";
    fs::write(at.join("bench.json"), succeed(at, &bench.split_whitespace().collect::<Vec<_>>())).unwrap();
    succeed(at, &["report", "bench.json", "--assets", "files"]);
    let page = fs::read_to_string(at.join("bench.html")).unwrap();
    assert!(
        page.contains("What decisions cost: 1 problem, 4 ways to decide")
            && page.contains("8 cases, 8 done, 4 of them certified optimal"),
        "parts are no backends, and what they give is not certified: see the page"
    );
    assert!(page.contains("apportion bench --policy max_min_fairness_perf") && page.contains("made on"));
    let (_, cells) = page.split_once("<tbody>").unwrap();
    assert!(!cells.split("</tbody>").next().unwrap().contains("0.000000"), "a gap is small, not nothing");
    let table = fs::read_to_string(at.join("files/cases.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 8);
    let text = fs::read_to_string(at.join("bench.json")).unwrap();
    fs::write(at.join("other.json"), text.replace("bench-v1", "bench-v9")).unwrap();
    assert!(refused(at, &["report", "other.json"]).contains("is of format apportion/bench-v9"));
    let Some(browser) = Browser::start() else { return };
    browser.open(&at.join("bench.html"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert!(
        browser.run("return document.querySelectorAll('figure svg .role-mark path').length").as_u64()
            > Some(2)
    );
}
