//! Clusters' logs at the command line: reports, pages, the normalized log, clusters of nodes.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::data_commands::{apportion, assert_refused, path, stdout};

const SACCT: &str = "\
JobID|User|Account|Submit|Start|End|ElapsedRaw|State|NNodes|AllocTRES|JobName
1|ann|lab|2026-03-02T08:00:00Z|2026-03-02T08:10:00Z|2026-03-02T09:10:00Z|3600|COMPLETED|1|gres/gpu:a100=4,gres/gpu=4|a|b
2|bob|lab|2026-03-02T18:00:00Z|2026-03-02T18:00:10Z|2026-03-02T20:00:10Z|7200|FAILED|1|gres/gpu:v100=1,gres/gpu=1|train
3|bob|lab|2026-03-02T09:30:00Z|Unknown|Unknown|0|PENDING|1||train
4|bob|lab|2026-03-05T09:30:00Z|2026-03-05T09:30:00Z|2026-03-05T10:30:00Z|3600|CANCELLED by 7|1|cpu=1|train
";

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = path(folder, name);
    std::fs::write(&path, text).expect("written");
    path
}

#[test]
fn a_log_is_reported_on_as_text_as_json_and_as_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = written(folder.path(), "sacct.txt", SACCT);
    let page = path(folder.path(), "page.html");
    let show = ["trace", "show", &log, "--from", "sacct", "--cluster", "v100=4"];
    let text = stdout(&[&show[..], &["--page", &page]].concat());
    for expected in [
        "4 rows read, 2 jobs, 2 rows left out",
        "1 row left out: never started (first: line 4, `3`)",
        "1 row left out: asked for no accelerator (first: line 5, `4`)",
        "the wait of 2 jobs was 5.08 min on average",
        "The running time of 2 jobs is taken to be that on v100.",
        "the jobs are 15.0 % of what v100=4 (4 workers) can do.",
        "2 jobs over 10 h",
    ] {
        assert!(text.contains(expected), "{text}\nlacks {expected}");
    }
    let html = std::fs::read_to_string(&page).expect("written");
    for expected in ["Arrivals over time", "Running times", "never started", "Known of this form"] {
        assert!(html.contains(expected), "lacks {expected}");
    }
    let json: Value =
        serde_json::from_str(&stdout(&[&show[..], &["--format", "json"]].concat())).expect("JSON");
    let head = html.split("</header>").next().expect("a head");
    for expected in ["<dt>command</dt><dd>apportion trace show ", "<dt>made on</dt><dd>20"] {
        assert!(head.contains(expected), "{head}\nlacks {expected}");
    }
    let page = stdout(&[&show[..], &["--page", "-"]].concat());
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "the page alone");
    assert!(!Path::new("-").exists());
    assert_eq!(json["format"], "apportion/import-report-v1");
    assert_eq!((&json["n_jobs"], &json["left_out"][0]["reason"]), (&2.into(), &"no_workers".into()));
    assert_eq!(json["accelerators"]["a100"], 1);
    assert_eq!(json["shape"]["worker_hours"], 6.0);
}

#[test]
fn the_normalized_log_is_written_and_read_back_as_the_same_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = written(folder.path(), "sacct.txt", SACCT);
    let normalized = path(folder.path(), "log.csv");
    stdout(&["trace", "convert", &log, "--from", "sacct", "--to", "log", "--out", &normalized]);
    let text = std::fs::read_to_string(&normalized).expect("written");
    assert_eq!(text.lines().count(), 5);
    assert!(
        text.contains("1,a|b,ann,lab,1772438400,,1772439000,1772442600,3600,4,,1,a100,completed,1,"),
        "{text}"
    );
    let jobs =
        |log: &str, form: &str| stdout(&["trace", "convert", log, "--from", form, "--throughputs", "osdi20"]);
    assert_eq!(jobs(&normalized, "log"), jobs(&log, "sacct"));
    assert_refused(&["trace", "convert", &log, "--from", "sacct"], "--throughputs names the job types");
    assert_refused(&["trace", "convert", &log, "--to", "log"], "a trace is no log");
    let windowed = ["trace", "convert", &log, "--from", "sacct", "--to", "log", "--window", "1d..2d"];
    assert_refused(&windowed, "--window is about jobs");
    assert_refused(&["trace", "show", &log], "`--from sacct` reads it");
}

#[test]
fn a_normalized_log_needs_the_columns_that_the_page_of_formats_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let columns = [("id", "a"), ("gpus", "2"), ("ran_s", "60"), ("submitted_s", "0")];
    let log_without = |left_out: &str| {
        let kept = || columns.iter().filter(|(name, _)| *name != left_out);
        let names: Vec<&str> = kept().map(|(name, _)| *name).collect();
        let cells: Vec<&str> = kept().map(|(_, cell)| *cell).collect();
        written(folder.path(), "log.csv", &format!("{}\n{}\n", names.join(","), cells.join(",")))
    };
    let text = stdout(&["trace", "show", &log_without(""), "--from", "log"]);
    assert!(text.starts_with("1 row read, 1 job, 0 rows left out"), "{text}");
    let page = include_str!("../../../../docs/formats.md");
    assert!(page.contains("`id`, `ran_s` and `gpus` are needed, others may be left out"));
    for needed in ["id", "ran_s", "gpus"] {
        let show = ["trace", "show", &log_without(needed), "--from", "log"];
        assert_refused(&show, &format!("no column `{needed}`"));
    }
}

#[test]
fn rules_and_windows_are_taken_from_the_command_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = written(folder.path(), "sacct.txt", SACCT);
    let default = stdout(&["trace", "rules"]);
    let rules = written(folder.path(), "rules.yaml", &default.replace("draw: [\"*\"]", "draw: [\"A3C\"]"));
    let convert = ["trace", "convert", &log, "--from", "sacct", "--throughputs", "osdi20", "--rules", &rules];
    let text = stdout(&[&convert[..], &["--window", "2026-03-02T08:30Z.."]].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[1].starts_with("2,A3C,1,") && lines[1].contains(",0,1,,lab"), "{text}");
    let wrong =
        written(folder.path(), "wrong.yaml", &default.replace("fractions: round_up", "fractions: up"));
    let refused = ["trace", "show", &log, "--from", "sacct", "--rules", &wrong];
    assert_refused(&refused, "wrong.yaml:6:12");
    assert_refused(&refused, "unknown name `up`");
}

#[test]
fn a_log_of_which_no_job_is_left_is_refused_with_every_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let head = SACCT.lines().next().expect("a header");
    let last = SACCT.lines().next_back().expect("a row");
    let log = written(folder.path(), "sacct.txt", &format!("{head}\n{last}\n"));
    let out = path(folder.path(), "jobs.csv");
    let convert = ["trace", "convert", &log, "--from", "sacct", "--throughputs", "osdi20", "--out", &out];
    assert_refused(&convert, "no job is left of 1 row of the log; 1: asked for no accelerator");
    assert_refused(&convert, "AccountingStorageTRES");
    assert!(!Path::new(&out).exists());
    let empty = written(folder.path(), "empty.txt", "");
    assert_refused(&["trace", "show", &empty, "--from", "sacct"], "the log is empty");
    assert_refused(&["trace", "show", &log, "--from", "supercloud"], "is not read");
}

/// A log of the form `log` with two jobs that are not as large as a scale factor, and one unknown column.
const ODD_SIZES: &str = "\
id,submitted_s,ran_s,gpus,state,rack
a,0,3600,3,completed,r1
b,10,36000,8,completed,r1
c,20,3600,800,completed,r2
";

#[test]
fn what_became_of_jobs_is_said_of_these_jobs_in_text_and_on_the_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = written(folder.path(), "log.csv", ODD_SIZES);
    let page = path(folder.path(), "page.html");
    let text = stdout(&["trace", "show", &log, "--from", "log", "--page", &page]);
    let html = std::fs::read_to_string(&page).expect("written");
    for expected in [
        "3 rows read, 3 jobs, 0 rows left out",
        "1 job given the largest scale factor of their rule, and needed more",
        "1 job given more workers than they had, the next scale factor; in the log these took 3.0 worker-hours",
        "In the log all jobs together took 883 worker-hours.",
        "columns not used: rack",
    ] {
        assert!(text.contains(expected), "{text}\nlacks {expected}");
        assert!(html.contains(expected), "the page lacks {expected}");
    }
    let json: Value =
        serde_json::from_str(&stdout(&["trace", "show", &log, "--from", "log", "--format", "json"]))
            .expect("JSON");
    assert_eq!(json["worker_hours_rounded_up_in_log"], 3.0);
    assert_eq!(json["worker_hours_in_log"], 883.0);
    let output = apportion(&["trace", "convert", &log, "--from", "log", "--to", "log"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("columns not used: rack"), "{said}");
    let tasks = "job_name,inst_num,start_time,end_time,plan_gpu\nj,1,100000,100600,100\n";
    let tasks = written(folder.path(), "tasks.csv", tasks);
    let jobs = written(folder.path(), "jobs.csv", "job_name,start_time,cost\nj,99000,7\n");
    let output =
        apportion(&["trace", "convert", &tasks, "--from", "pai", "--job-table", &jobs, "--to", "log"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("columns not used: cost"), "{said}");
}

#[test]
fn where_the_first_rows_of_a_table_of_jobs_are_is_said_with_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let tasks =
        "job_name,inst_num,start_time,end_time,plan_gpu\nk1,1,200000,203600,100\nk2,1,200000,203600,100\n";
    let tasks = written(folder.path(), "tasks.csv", tasks);
    let table = "job_name,status,start_time\nk1,Terminated,199000\nk2,Terminated,199100\nz1,Waiting,199000\nz1,Waiting,199000\n\
                 z2,Bad,199000\nz3,Waiting,2e15\n";
    let table = written(folder.path(), "table.csv", table);
    let (report, page) = (path(folder.path(), "report.json"), path(folder.path(), "page.html"));
    let from = ["--from", "pai", "--job-table", &table, "--throughputs", "osdi20", "--skip-unreadable"];
    let expected = [
        (6, "something in them is not understood"),
        (5, "say the same as an earlier row"),
        (4, "never started"),
    ];
    let converted = apportion(&[&["trace", "convert", &tasks][..], &from, &["--report", &report]].concat());
    let told = String::from_utf8_lossy(&converted.stderr).into_owned();
    let shown = stdout(&[&["trace", "show", &tasks][..], &from, &["--page", &page]].concat());
    let log = apportion(&[
        "trace",
        "convert",
        &tasks,
        "--from",
        "pai",
        "--job-table",
        &table,
        "--skip-unreadable",
        "--to",
        "log",
    ]);
    let log = String::from_utf8_lossy(&log.stderr).into_owned();
    let csv = stdout(&[&["trace", "show", &tasks][..], &from, &["--format", "csv"]].concat());
    let json: Value =
        serde_json::from_str(&std::fs::read_to_string(&report).expect("written")).expect("JSON");
    let html = std::fs::read_to_string(&page).expect("written");
    assert!(html.contains("table.csv</td>"), "the page names the file");
    for (line, words) in expected {
        let place = format!("line {line} of {table}");
        let line_with = |text: &str| text.lines().find(|line| line.contains(words)).map(str::to_owned);
        for text in [&told, &shown] {
            assert!(line_with(text).is_some_and(|line| line.contains(&place)), "{words}: {text}");
        }
        assert!(line_with(&log).is_none_or(|line| line.contains(&place)), "{words}: {log}");
        assert!(line_with(&csv).is_some_and(|line| line.ends_with(&table)), "{csv}");
        let mut entries = json["left_out"].as_array().expect("a list").iter();
        let entry = entries.find(|entry| entry["words"].as_str().is_some_and(|said| said.contains(words)));
        let entry = entry.expect("an entry");
        assert_eq!((&entry["line"], &entry["file"]), (&line.into(), &table.as_str().into()), "{entry}");
    }
    let refused =
        apportion(&["trace", "convert", &tasks, "--from", "pai", "--job-table", &table, "--to", "log"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("of the log and its table of jobs not understood"), "{said}");
    assert!(!said.contains("tasks.csv:6") && said.contains("table.csv:6"), "{said}");
    // Rows of the log itself name no file.
    let log = written(folder.path(), "sacct.txt", SACCT);
    let shown = stdout(&["trace", "show", &log, "--from", "sacct", "--format", "csv"]);
    assert!(shown.lines().skip(1).all(|line| line.ends_with(',')), "{shown}");
}

#[test]
fn running_times_below_a_second_are_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = written(folder.path(), "log.csv", "id,submitted_s,ran_s,gpus\na,0,0.2,1\nb,5,0.3,1\nc,9,2,1\n");
    let page = path(folder.path(), "page.html");
    let text = stdout(&["trace", "show", &log, "--from", "log", "--page", &page]);
    let html = std::fs::read_to_string(&page).expect("written");
    let lines: Vec<_> = text.lines().skip_while(|line| *line != "running time").skip(1).take(2).collect();
    assert!(lines[0].trim_start().starts_with("below 1 s ") && lines[0].ends_with(" 2"), "{lines:?}");
    assert!(lines[1].trim_start().starts_with("from 1 s ") && lines[1].ends_with(" 1"), "{lines:?}");
    assert!(html.contains("below 1 s"), "the page has the class");
}

#[test]
fn a_window_with_one_zone_is_compared_by_the_zone_of_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "\
job_id,gpu_num,submit_time,start_time,end_time,state
1,1,2020-04-01 00:00:00,2020-04-01 00:00:10,2020-04-01 01:00:10,COMPLETED
2,1,2020-04-01 00:30:00,2020-04-01 00:40:10,2020-04-01 01:00:10,COMPLETED
3,1,2020-04-01 05:00:00,2020-04-01 05:00:10,2020-04-01 06:00:10,COMPLETED
";
    let log = written(folder.path(), "log.csv", text);
    let show = |window: &str, zone: &str| {
        let said =
            apportion(&["trace", "show", &log, "--from", "helios", "--zone", zone, "--window", window]);
        let text = [said.stdout, said.stderr].concat();
        (said.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    // In Los Angeles 3:00 is 10:00 by UTC.
    let (code, said) = show("2020-04-01T06:00Z..2020-04-01T03:00", "America/Los_Angeles");
    assert!(code == Some(0) && said.contains("3 rows read, 2 jobs"), "{said}");
    for (window, zone) in [
        ("2020-04-01T06:00Z..2020-04-01T03:00", "UTC"),
        ("2020-04-01T03:00..2020-04-01T06:00Z", "America/Los_Angeles"),
        ("2020-04-01T03:00..2020-04-01T01:00", "America/Los_Angeles"),
        ("2020-04-01T03:00Z..2020-04-01T01:00Z", "America/Los_Angeles"),
        ("3d..1d", "UTC"),
    ] {
        let (code, said) = show(window, zone);
        assert!(code == Some(2) && said.contains(&format!("`{window}` ends before it begins")), "{said}");
        assert!(said.contains("--window"), "{said}");
    }
}

#[test]
fn a_study_says_what_it_leaves_out_of_a_log_and_which_jobs_it_cuts() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = written(folder.path(), "log.csv", &[ODD_SIZES, "d,30,60,many,completed,r1\n"].concat());
    let study = "\
format: apportion/sweep-v1
name: mine
description: Mine.
log: {form: log, skip_unreadable: true}
run: {throughputs: osdi20, cluster: {v100: 8}}
axes: {policy: [fifo], trace: [\"log 0d..1d\"]}
";
    let sweep = written(folder.path(), "mine.yaml", study);
    let out = path(folder.path(), "out");
    let output = apportion(&["sweep", &sweep, "--log", &log, "--out", &out]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let expected = [
        "`log 0d..1d` of ",
        ": 3 jobs",
        "1 row of ",
        "log.csv not understood and left out, the first: ",
        "log.csv:5:9: gpus is `many`, expected a whole number",
        "in `log 0d..1d`: 1 job given the largest scale factor of their rule, and needed more",
    ];
    for expected in expected {
        assert!(said.contains(expected), "{said}\nlacks {expected}");
    }
    let page = path(folder.path(), "page.html");
    stdout(&["report", &out, "--out", &page]);
    let html = std::fs::read_to_string(&page).expect("written");
    assert!(html.contains("Mine. Of the log: 1 row of "), "the page says it");
}

#[test]
fn a_study_says_what_is_left_out_of_each_window_of_a_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = "\
id,submitted_s,started_s,ended_s,ran_s,gpus,state,attempts
a,0,0,3600,3600,1,completed,1
b,10,,,,1,cancelled,0
c,20,,,,1,cancelled,0
d,30,30,30,0,1,failed,1
e,86400,86400,90000,3600,1,completed,1
f,86410,,,20,0,completed,1
g,,,,20,1,completed,1
a,0,0,3600,3600,1,completed,1
";
    let log = written(folder.path(), "log.csv", log);
    let study = "\
format: apportion/sweep-v1
name: mine
description: Mine.
log: {form: log}
run: {throughputs: osdi20, cluster: {v100: 8}}
axes: {policy: [fifo], trace: [\"log 0d..1d\", \"log 1d..2d\"]}
";
    let sweep = written(folder.path(), "mine.yaml", study);
    let out = path(folder.path(), "out");
    let output = apportion(&["sweep", &sweep, "--log", &log, "--out", &out]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let expected = [
        "log.csv left out whatever the window (1: say the same as an earlier row; 1: neither the time that is their arrival by the \
         rules nor a later one is there)",
        "in `log 0d..1d`: 3 rows left out (2: never started; 1: ran for 0 s)",
        "in `log 1d..2d`: 1 row left out (1: asked for no accelerator)",
    ];
    for expected in expected {
        assert!(said.contains(expected), "{said}\nlacks {expected}");
    }
    let page = path(folder.path(), "page.html");
    stdout(&["report", &out, "--out", &page]);
    let html = std::fs::read_to_string(&page).expect("written");
    assert!(
        html.contains("Mine. Of the log: 2 rows of ") && html.contains("(2: never started; 1: ran for 0 s)")
    );
}

#[test]
fn a_file_called_as_standard_output_is_standard_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = written(folder.path(), "log.csv", ODD_SIZES);
    let convert = ["trace", "convert", &log, "--from", "log"];
    let generate = ["trace", "generate", "--rate", "2", "--jobs", "3"];
    let export = ["policies", "export-onnx", "learned_pairs"];
    for arguments in [
        &[&convert[..], &["--to", "log"]].concat()[..],
        &[&convert[..], &["--throughputs", "osdi20"]].concat(),
        &generate,
        &export,
    ] {
        let arguments = [arguments, &["--out", "-"]].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_apportion"))
            .args(&arguments)
            .current_dir(folder.path())
            .output()
            .expect("the command runs");
        assert!(output.status.success() && output.stdout.len() > 60, "{arguments:?}");
        assert!(!folder.path().join("-").exists(), "{arguments:?}");
    }
    let jobs = path(folder.path(), "jobs.csv");
    let report = [&convert[..], &["--throughputs", "osdi20", "--report", "-"]].concat();
    let json: Value =
        serde_json::from_str(&stdout(&[&report[..], &["--out", &jobs]].concat())).expect("JSON");
    assert_eq!(json["n_jobs"], 3);
    assert_refused(&report, "--report and --out are the same file, -");
}

#[test]
fn standard_input_is_read_for_one_thing() {
    for (arguments, expected) in [
        (
            &["trace", "show", "-", "--from", "pai", "--job-table", "-"][..],
            "the log and --job-table are both `-`",
        ),
        (&["trace", "convert", "-", "--from", "log", "--rules", "-"], "the log and --rules are both `-`"),
        (
            &["trace", "show", "jobs.csv", "--from", "log", "--throughputs", "-", "--rules", "-"],
            "--throughputs and --rules are both `-`",
        ),
    ] {
        assert_refused(arguments, expected);
    }
}

#[test]
fn of_many_columns_that_are_not_used_the_first_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let columns: Vec<String> = (0..50).map(|at| format!("c{at}{}", "x".repeat(100))).collect();
    let text = format!("id,submitted_s,ran_s,gpus,{}\na,0,60,1{}\n", columns.join(","), ",".repeat(50));
    let text = stdout(&["trace", "show", &written(folder.path(), "log.csv", &text), "--from", "log"]);
    let line = text.lines().find(|line| line.starts_with("columns not used: c0x")).expect("a line");
    assert!(line.ends_with("x…, and 30 more") && line.contains("c19x") && !line.contains("c20x"), "{line}");
}

#[test]
fn nodes_become_a_cluster() {
    let folder = tempfile::tempdir().expect("a folder");
    let nodes = "NodeName=n1 Gres=gpu:a100:4(S:0-1) State=IDLE\nNodeName=n2 Gres=gpu:a100:4 State=DOWN*\nNodeName=n3 Gres=(null) State=IDLE\n";
    let nodes = written(folder.path(), "nodes.txt", nodes);
    let show = ["trace", "cluster", &nodes, "--from", "scontrol"];
    let output = apportion(&show);
    assert!(output.status.success());
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("--cluster a100=4 --servers a100=4"), "{out}");
    assert!(
        said.contains("1 node down, drained or not there yet, and not counted (first: line 2, `n2`)"),
        "{said}"
    );
    let json: Value =
        serde_json::from_str(&stdout(&[&show[..], &["--format", "json"]].concat())).expect("JSON");
    assert_eq!(json["types"][0]["n_workers"], 4);
}

#[test]
fn the_call_of_sacct_prints_what_is_read() {
    let call = stdout(&["trace", "sacct-command"]);
    let columns = call.split("-o ").nth(1).expect("columns").trim().replace(',', "|");
    let folder = tempfile::tempdir().expect("a folder");
    // A log with a header alone has no rows, and no unknown column.
    let row = "5|5|ann|lab|gpu|normal|1772438400|1772438400|1772438400|1772442000|3600|COMPLETED|1|gres/gpu=1|gres/gpu=1|name";
    let log = written(folder.path(), "sacct.txt", &format!("{columns}\n{row}\n"));
    let json: Value =
        serde_json::from_str(&stdout(&["trace", "show", &log, "--from", "sacct", "--format", "json"]))
            .expect("JSON");
    assert_eq!((&json["n_jobs"], &json["unused_columns"]), (&1.into(), &Value::Array(Vec::new())));
    assert_eq!(json["doubts"], Value::Array(Vec::new()));
}

#[test]
fn studies_run_on_windows_of_a_log_that_the_user_has() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../logs/tests/fixtures/");
    let folder = tempfile::tempdir().expect("a folder");
    for (study, log, n_jobs) in [
        ("philly", "philly/cluster_job_log.json", "2"),
        ("helios", "helios/cluster_log.csv", "9"),
        ("spot-2026", "spot-gpu/job_info_df.csv", "13"),
    ] {
        let (log, out) = ([fixtures, log].concat(), path(folder.path(), study));
        let sweep = ["sweep", study, "--quick", "--log", &log, "--out", &out];
        let shown = stdout(&sweep);
        let csv = std::fs::read_to_string(path(Path::new(&out), "results.csv")).expect("results");
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let heads = reader.headers().expect("heads").clone();
        let place = |name: &str| heads.iter().position(|head| head == name).expect("a column of this name");
        let (status, jobs, trace) = (place("status"), place("n_measured"), place("trace"));
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        assert_eq!(rows.len(), 2, "{csv}");
        for row in &rows {
            assert_eq!(
                (&row[status], &row[jobs], &row[trace]),
                ("done", n_jobs, "log 0d..2d"),
                "{study}: {csv}"
            );
        }
        assert_eq!(stdout(&sweep), shown, "{study}: results are kept");
    }
    let acme = [fixtures, "acme/trace_seren.csv"].concat();
    assert_refused(
        &["sweep", "helios", "--quick", "--log", &acme, "--dry-run"],
        "a log of the form `acme`, expected one of the form `helios`",
    );
    assert_refused(&["sweep", "philly", "--dry-run"], "`--log FILE` says where yours is");
    assert_refused(&["sweep", "quick", "--log", "x", "--dry-run"], "runs on no log");
    let philly = [fixtures, "philly/cluster_job_log.json"].concat();
    assert_refused(
        &["sweep", "philly", "--log", &philly, "--dry-run"],
        "no job of the log is in `log 21d..28d`",
    );
    let text = stdout(&["sweep", "show", "philly"]);
    let wrong = written(folder.path(), "wrong.yaml", &text.replace("log 77d..84d", "log 77d-84d"));
    assert_refused(&["sweep", &wrong, "--log", &philly, "--dry-run"], "expected FROM..TO");
    let wrong = written(folder.path(), "form.yaml", &text.replace("form: philly", "form: phily"));
    assert_refused(&["sweep", &wrong, "--log", &philly, "--dry-run"], "unknown form `phily`");
}
