//! `apportion throughputs` and `apportion trace`, as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

pub(crate) fn apportion(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apportion")).args(arguments).output().expect("the command runs")
}

pub(crate) fn stdout(arguments: &[&str]) -> String {
    let output = apportion(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Checks for exit code 2 and a message that contains `expected`.
pub(crate) fn assert_refused(arguments: &[&str], expected: &str) {
    let output = apportion(arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(message.contains(expected), "{message}\nlacks: {expected}");
}

pub(crate) fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn every_shipped_file_of_throughputs_is_checked_and_said_to_be_what_it_is() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../throughputs");
    let mut n_for_worlds = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let file = entry.expect("a file").path().display().to_string();
        let output = apportion(&["throughputs", "check", &file]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{file}: {message}");
        n_for_worlds += usize::from(message.contains("for `apportion world`, no matrix for policies"));
    }
    assert_eq!(n_for_worlds, 2, "dl2 and deepshare");
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = path(folder.path(), "dl2.yaml");
    let text = include_str!("../../../../throughputs/dl2.yaml").replace("unit: samples/s", "unit: steps/s");
    std::fs::write(&wrong, text).expect("written");
    assert_refused(&["throughputs", "check", &wrong], "`steps/s`, expected `samples/s`");
}

#[test]
fn every_shipped_document_of_throughputs_and_traces_is_printed_as_it_is() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(format!("{root}/throughputs")).expect("a folder") {
        let file = entry.expect("a file").path();
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let text = std::fs::read_to_string(&file).expect("text");
        assert_eq!(stdout(&["throughputs", "show", &name, "--text"]), text, "{name}");
        let table = stdout(&["throughputs", "show", &name, "--format", "csv"]);
        assert!(table.starts_with("job_type,") && table.lines().count() > 10, "{name}: {table}");
        assert_eq!(table, stdout(&["throughputs", "show", &file.display().to_string(), "--format", "csv"]));
        names.push(name);
    }
    assert_eq!(names.len(), 4, "{names:?}");
    for name in &names {
        assert_refused(&["throughputs", "show", "deepshar"], &format!("`{name}`"));
    }
    assert_refused(&["throughputs", "show", "deepshar", "--text"], "did you mean `deepshare`?");
    assert_refused(&["throughputs", "show", "dl2", "--scale-factor", "2"], "`--scale-factor` is of matrices");
    assert_refused(&["throughputs", "show", "dl2", "--job-type", "resnet"], "no job type `resnet`");
    // A run that failed has no throughput.
    let one = stdout(&["throughputs", "show", "dl2", "--job-type", "inception-bn", "--format", "csv"]);
    assert!(one.starts_with("job_type,workers,parameter_servers,samples_per_s\n"), "{one}");

    let traces: Vec<String> = std::fs::read_dir(format!("{root}/sweeps"))
        .expect("a folder")
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "csv"))
        .map(|path| path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned())
        .collect();
    assert_eq!(traces, ["osdi20-figure-11"]);
    let text = std::fs::read_to_string(format!("{root}/sweeps/osdi20-figure-11.csv")).expect("text");
    assert_eq!(stdout(&["trace", "show", "osdi20-figure-11", "--text"]), text);
    assert!(stdout(&["trace", "show", "osdi20-figure-11"]).starts_with("job_type"));
    assert_refused(&["trace", "show", "osdi20-figure-1"], "did you mean `osdi20-figure-11`?");
    assert_refused(&["trace", "show", "osdi20-figure-11", "--text", "--page", "a.html"], "cannot be used");
}

#[test]
fn every_shipped_training_is_printed_as_it_is() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../training");
    let mut n = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let file = entry.expect("a file").path();
        if file.extension().is_some_and(|ending| ending == "yaml") {
            let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
            let text = std::fs::read_to_string(&file).expect("text");
            assert_eq!(stdout(&["train", "show", name]), text, "{name}");
            n += 1;
        }
    }
    assert!(n >= 20, "{n} trainings");
    assert_refused(&["train", "show", "dl3"], "expected a file or one of `deepshare_a`");
    assert_refused(&["train", "show", "dl3"], "did you mean `dl2`?");
    assert_refused(&["train", "show"], "--out <FOLDER>");
    for more in [&["train", "dl2", "elastic"][..], &["train", "dl2", "elastic", "--out", "nowhere"]] {
        assert_refused(more, "unexpected argument `elastic`");
    }
    assert_refused(&["train", "show", "dl2", "--out", "nowhere"], "`show` only prints one");
    let sweep = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sweeps/quick.yaml");
    assert_refused(&["train", "show", sweep], "apportion/training-v1");
}

#[test]
fn a_generated_trace_survives_both_forms() {
    let folder = tempfile::tempdir().expect("a folder");
    let (csv, gavel) = (path(folder.path(), "jobs.csv"), path(folder.path(), "jobs.trace"));
    let generate = ["trace", "generate", "--rate", "2", "--jobs", "50", "--multi-worker", "--slos"];
    let text = stdout(&[&generate[..], &["--seed", "7", "--out", &csv]].concat());
    assert_eq!(text, "");
    let again = stdout(&[&generate[..], &["--seed", "7"]].concat());
    assert_eq!(std::fs::read_to_string(&csv).expect("written"), again);
    assert_ne!(again, stdout(&[&generate[..], &["--seed", "8"]].concat()));
    stdout(&["trace", "convert", &csv, "--to", "gavel", "--throughputs", "osdi20", "--out", &gavel]);
    let show = |file: &str| stdout(&["trace", "show", file, "--throughputs", "osdi20", "--format", "csv"]);
    let counts = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.rsplit_once(',').expect("columns").0.to_owned()).collect()
    };
    assert_eq!(counts(&show(&csv)), counts(&show(&gavel)));
}

#[test]
fn what_is_generated_is_read_or_refused_with_the_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = path(folder.path(), "jobs");
    for (arguments, flag) in [
        ("--rate 1e-12 --jobs 3", "--rate: job `1` has an arrival of "),
        ("--rate 1e-300 --jobs 2", "--rate: "),
        ("--rate 1e-12 --jobs 3 --generator gavel", "--rate: "),
        ("--static 3 --duration 1e15", "--duration: job `0` has total_steps of "),
        ("--static 2 --duration 12000000000d", "--duration: "),
        ("--static 2 --duration 0", "--duration: "),
        ("--static 2 --duration 1e-200", "--duration: job `0` has "),
        ("--rate 5e-324 --jobs 2", "--rate: "),
        ("--static 2 --duration 1e308d", "expected a time"),
        ("--rate 1e300 --jobs 20", ""),
        ("--static 4 --duration 1e9 --slos --multi-priority", ""),
        ("--rate 1e-7 --jobs 3", ""),
    ] {
        for form in ["native", "gavel"] {
            let arguments = ["trace", "generate", "--to", form, "--out", &out]
                .into_iter()
                .chain(arguments.split_whitespace())
                .collect::<Vec<_>>();
            let written = apportion(&arguments);
            let said = String::from_utf8_lossy(&written.stderr).into_owned();
            if written.status.success() {
                assert!(flag.is_empty(), "{arguments:?}");
                assert!(
                    stdout(&["trace", "show", &out, "--throughputs", "osdi20"]).contains("jobs"),
                    "{arguments:?}"
                );
                std::fs::remove_file(&out).expect("written");
            } else {
                assert_eq!(written.status.code(), Some(2), "{arguments:?}: {said}");
                assert!(said.contains(flag), "{arguments:?}: {said}");
                assert!(!Path::new(&out).exists(), "{arguments:?}");
            }
        }
    }
}

#[test]
fn an_exported_matrix_is_read_back_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (path(folder.path(), "a.yaml"), path(folder.path(), "b.yaml"));
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../throughputs/osdi20.yaml");
    stdout(&["throughputs", "import", shipped, "--name", "mine", "--note", "a copy", "--out", &first]);
    stdout(&["throughputs", "import", &first, "--out", &second]);
    let text = std::fs::read_to_string(&first).expect("written");
    assert!(text.contains("name: mine\n") && text.contains("note: a copy\n"), "{}", &text[..600]);
    assert_eq!(text, std::fs::read_to_string(&second).expect("written"));
    let show = |matrix: &str| stdout(&["throughputs", "show", matrix, "--format", "json"]);
    assert_eq!(show(&first), show("osdi20"));
    assert!(
        stdout(&["throughputs", "check", &first, "--format", "csv"])
            .contains("isolated throughputs of 0 or null")
    );
}

#[test]
fn retained_fractions_are_shown_beside_each_job_type_of_the_same_size() {
    let text = stdout(&["throughputs", "show", "--job-type", "A3C", "--colocated", "--format", "csv"]);
    assert_eq!(text.lines().count(), 1 + 26);
    assert!(text.starts_with("job_type,scale_factor,beside,v100,p100,k80\n"), "{text}");
}

#[test]
fn bad_input_is_refused_with_the_nearest_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = path(folder.path(), "bad.csv");
    std::fs::write(&trace, "job_type,total_steps,arrival\nA3C,10,5\nA3D,10,4\n").expect("written");
    let show = ["trace", "show", &trace, "--throughputs", "osdi20"];
    assert_refused(&show, "did you mean `A3C`?");
    assert_refused(&show, "bad.csv:3:8");
    let unknown = (0..30).map(|at| format!("A3D,10,{at}\n")).collect::<Vec<_>>().concat();
    std::fs::write(&trace, format!("job_type,total_steps,arrival\n{unknown}")).expect("written");
    assert_refused(
        &["trace", "convert", &trace, "--throughputs", "osdi20"],
        "(29 more like it, the last on line 31)",
    );
    assert_refused(&["throughputs", "show", "osdi2"], "osdi20");
    // The matrix as a document, to start one's own from.
    let document = stdout(&["throughputs", "show", "osdi20", "--text"]);
    assert!(document.starts_with("format: apportion/throughputs-v1\n"), "{}", &document[..80]);
    let folder = tempfile::tempdir().expect("a folder");
    let mine = path(folder.path(), "mine.yaml");
    std::fs::write(&mine, &document).expect("written");
    assert_eq!(stdout(&["throughputs", "show", &mine]), stdout(&["throughputs", "show", "osdi20"]));
    assert_refused(&["throughputs", "show", "osdi20", "--text", "--scale-factor", "2"], "--text");
    assert_refused(&["throughputs", "show", "--job-type", "A3"], "did you mean `A3C`?");
    assert_refused(&["trace", "generate", "--rate", "nan", "--jobs", "3"], "`nan` is no number");
    assert_refused(&["trace", "generate", "--jobs", "3"], "--rate");
    assert_refused(&["trace", "show", "nowhere.csv"], "there is no such file");
}

/// A cluster's log: a job or two that count and one that does not, with the expected output.
struct Log {
    origin: &'static str,
    text: &'static str,
    /// The expected jobs: name, arrival, workers, owner.
    jobs: &'static [[&'static str; 4]],
}

const LOGS: [Log; 3] = [
    Log {
        origin: "philly",
        text: r#"[
  {"status": "Pass", "vc": "research", "jobid": "late", "user": "u", "submitted_time": "2017-10-07 01:00:00",
   "attempts": [{"start_time": "2017-10-07 01:00:30", "end_time": "2017-10-07 02:00:30",
                 "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}]},
  {"status": "Pass", "vc": "b", "jobid": "early", "user": "u", "submitted_time": "2017-10-07 00:00:00",
   "attempts": [{"start_time": "2017-10-07 00:10:00", "end_time": "2017-10-07 00:20:00",
                 "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
  {"status": "Failed", "vc": "b", "jobid": "never", "user": "u", "submitted_time": "2017-10-07 00:00:00", "attempts": []}
]"#,
        jobs: &[["early", "0", "1", "b"], ["late", "3600", "2", "research"]],
    },
    Log {
        origin: "pai",
        text: "one,worker,2.0,Terminated,1000.0,1900.0,400.0,10.0,50.0,MISC\n\
         two,worker,4.0,Terminated,1360.0,1460.0,400.0,10.0,100.0,V100\n\
         none,ps,1.0,Terminated,900.0,1800.0,600.0,10.0,,\n",
        jobs: &[["one", "0", "1", ""], ["two", "360", "4", ""]],
    },
    Log {
        origin: "helios",
        text: "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
         7,u,vc1,1,1,1,COMPLETED,2020-06-09 18:00:00,2020-06-09 18:00:00,2020-06-09 19:00:00,3600,0\n\
         8,u,vc2,8,16,1,FAILED,2020-06-09 18:00:30,2020-06-09 18:01:00,2020-06-09 18:05:00,240,30\n\
         9,u,vc2,0,16,1,COMPLETED,2020-06-09 18:00:30,2020-06-09 18:00:30,2020-06-09 18:05:00,240,0\n",
        jobs: &[["7", "0", "1", "vc1"], ["8", "30", "8", "vc2"]],
    },
];

#[test]
fn logs_of_clusters_become_traces_that_can_be_simulated() {
    let folder = tempfile::tempdir().expect("a folder");
    for Log { origin, text: log, jobs } in LOGS {
        let (given, made) = (path(folder.path(), "log"), path(folder.path(), "jobs.csv"));
        std::fs::write(&given, log).expect("written");
        let convert =
            ["trace", "convert", &given, "--from", origin, "--throughputs", "osdi20", "--seed", "3"];
        let output = apportion(&[&convert[..], &["--out", &made]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{origin}: {said}");
        assert!(said.contains("left out"), "{origin}: {said}");
        let text = std::fs::read_to_string(&made).expect("written");
        assert_eq!(stdout(&convert), text, "{origin}: the same seed, the same jobs");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let heads = reader.headers().expect("heads").clone();
        let place = |name: &str| heads.iter().position(|head| head == name).expect("a column of this name");
        let places = ["id", "arrival", "scale_factor", "entity"].map(place);
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
        let found: Vec<[&str; 4]> = rows.iter().map(|row| places.map(|place| &row[place])).collect();
        assert_eq!(found, jobs, "{origin}");
        let simulate =
            ["simulate", "--policy", "fifo", "--cluster", "v100=8", "--trace", &made, "--format", "json"];
        let simulated: serde_json::Value = serde_json::from_str(&stdout(&simulate)).expect("JSON");
        assert!(simulated["average_jct_s"].as_f64().is_some_and(|jct| jct > 0.0), "{origin}: {simulated}");
    }
    let wrong = path(folder.path(), "log");
    let convert = ["trace", "convert", &wrong, "--from", "philly", "--throughputs", "osdi20"];
    assert_refused(&convert, "expected a JSON list of {jobid, vc");
}

#[test]
fn a_log_that_is_not_understood_is_refused_or_its_jobs_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let (given, made) = (path(folder.path(), "log"), path(folder.path(), "jobs.csv"));
    let log = "job_id,vc,gpu_num,submit_time,duration\n1,a,1,2020/6/9 18:41,60\n1,a,1,2020/6/9 18:42,60\n\
               2,a,1,9.6.2020 18:41,60\n";
    std::fs::write(&given, log).expect("written");
    let convert = ["trace", "convert", &given, "--from", "helios", "--throughputs", "osdi20", "--out", &made];
    assert_refused(&convert, "1 row of the log not understood");
    assert_refused(&convert, "log:4:7");
    assert!(!Path::new(&made).exists());
    let output = apportion(&[&convert[..], &["--skip-unreadable"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 row not understood and left out"), "{said}");
    assert!(
        said.contains("ids that an earlier job has; the later one is called ID#2 (first: line 3, `1`)"),
        "{said}"
    );
    let ids: Vec<String> = std::fs::read_to_string(&made)
        .expect("written")
        .lines()
        .map(|line| line.split(',').next().unwrap_or("").to_owned())
        .collect();
    assert_eq!(ids, ["id", "1", "1#2"]);
}

#[test]
fn jobs_keep_the_ids_of_their_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let [trace, events, snapshots, page] =
        ["t.csv", "e.jsonl", "snapshots", "page.html"].map(|name| path(folder.path(), name));
    // The first takes long, the second not.
    let text = "id,job_type,total_steps,arrival\n1,A3C,50000,0\n0,A3C,1000,0\n";
    std::fs::write(&trace, text).expect("written");
    let simulate = ["simulate", "--policy", "isolated", "--cluster", "v100=2", "--trace", &trace];
    let kept = ["--events", &events, "--save-snapshots", &snapshots];
    let csv = stdout(&[&simulate[..], &kept, &["--format", "csv"]].concat());
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!([rows[0][0], rows[1][0]], ["1", "0"], "{csv}");
    let jct = |row: &[&str]| row[6].parse::<f64>().expect("a time");
    assert!(jct(&rows[0]) > 10.0 * jct(&rows[1]), "{csv}");
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&[&simulate[..], &["--format", "json"]].concat())).expect("JSON");
    let id = |at: usize| (json["jobs"][at]["id"].clone(), json["jobs"][at]["position"].clone());
    assert_eq!(id(0), (serde_json::json!("1"), serde_json::json!(0)));
    let log = std::fs::read_to_string(&events).expect("written");
    assert!(log.contains("\"name\":\"1\"") && log.contains("\"name\":\"0\""), "{log}");
    let snapshot = path(Path::new(&snapshots), "000000.json");
    let asked = stdout(&["allocate", "--policy", "isolated", &snapshot, "--format", "csv"]);
    assert!(asked.lines().nth(1).is_some_and(|line| line.starts_with("1,")), "{asked}");
    stdout(&["report", &events, "--out", &page]);
    let page = std::fs::read_to_string(&page).expect("written");
    assert!(page.contains("\"0\":[\"A3C\",1,0.0,"), "{}", &page[..2000]);
    // If ids are positions, no job is named.
    std::fs::write(&trace, text.replace("\n1,", "\nx,").replace("\n0,", "\n1,").replace("\nx,", "\n0,"))
        .expect("written");
    let json = stdout(&[&simulate[..], &["--format", "json"]].concat());
    assert!(!json.contains("position"), "{json}");
}

/// Pairs of rows are not measured here: a table of them would have 17,000 × 17,000 numbers.
#[test]
fn a_matrix_without_colocation_needs_no_table_of_it() {
    use std::fmt::Write as _;
    let folder = tempfile::tempdir().expect("a folder");
    let mut text =
        "format: apportion/throughputs-v1\nname: many\nunit: steps/s\nworker_types: [v100]\nrows:\n"
            .to_owned();
    for row in 1..=17_000 {
        writeln!(text, "  - {{job_type: t, scale_factor: {row}, consolidated: [2]}}")
            .expect("memory takes all");
    }
    let (given, made) = (path(folder.path(), "many.yaml"), path(folder.path(), "made.yaml"));
    std::fs::write(&given, text).expect("written");
    stdout(&["throughputs", "import", &given, "--out", &made]);
    let written = std::fs::read_to_string(&made).expect("read");
    assert_eq!(written.matches("job_type: t,").count(), 17_000);
    assert!(!written.contains("colocation"), "nothing is known of it");
}

#[test]
fn what_is_wrong_with_a_file_has_its_line_and_column() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, content: &[u8]| {
        let file = path(folder.path(), name);
        std::fs::write(&file, content).expect("written");
        file
    };
    let head = b"id,name,user,group,submitted_s,eligible_s,started_s,ended_s,ran_s,gpus,gpu_fraction,nodes,gpu_type,state,attempts,class\n";
    let log = file("latin.csv", &[&head[..], b"1,\xff,u,g,1,1,2,3,1,1,,1,A,completed,1,normal\n"].concat());
    assert_refused(&["trace", "show", &log, "--from", "log"], "latin.csv:2:3\n");
    let simulate = |entities: &str, expected: &str| {
        let flags = ["simulate", "--policy", "fifo", "--cluster", "v100=1", "--static", "2"];
        assert_refused(&[&flags[..], &["--entities", entities]].concat(), expected);
    };
    simulate(&file("map.yaml", b"{}"), "map.yaml:1:1\n");
    simulate(&file("empty.yaml", b"# none\n"), "the document is empty, expected a list of entities");
    let snapshot =
        "format: apportion/snapshot-v1\ncluster: {a: 1}\njobs:\n- {id: 1, throughput: {a: 0x10}}\n";
    let snapshot = file("hexadecimal.yaml", snapshot.as_bytes());
    assert_refused(&["allocate", "--policy", "fifo", &snapshot], "is `0x10`, expected a decimal number");
}
