//! The commands of a live scheduler, against a running one.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::answers::fits;

/// The number of looks for a result that must come.
pub(crate) const LOOKS: usize = 600;

/// `apportion serve`, on a free port; ended when dropped.
pub(crate) struct Served {
    child: Child,
    url: String,
    said_before: String,
}

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.current_dir(folder).args(["--progress", "never"]).args(arguments);
    command.env_remove("APPORTION_SCHEDULER").env("USER", "ann");
    command
}

/// A scheduler of four workers on two servers.
pub(crate) const USUAL: [&str; 8] = [
    "serve",
    "--cluster",
    "v100=2,k80=2",
    "--servers",
    "v100=2,k80=2",
    "--policy",
    "max_min_fairness_perf",
    "--state=state",
];

impl Served {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, &[])
    }

    /// Starts a scheduler with these variables in its environment.
    pub(crate) fn start_with(folder: &Path, arguments: &[&str], variables: &[(&str, &Path)]) -> Self {
        let more = ["--listen", "127.0.0.1:0", "--log", "json"];
        let arguments: Vec<&str> = arguments.iter().chain(&more).copied().collect();
        let mut served = command(folder, &arguments);
        served.envs(variables.iter().copied());
        let mut child = served.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut all = String::new();
        let url = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended before it listened: {all}");
            if let Ok(line) = serde_json::from_str::<Value>(&line)
                && let Some(address) = line["address"].as_str()
            {
                break format!("http://{address}");
            }
            all += &line;
        };
        // Its output is read on, or it could not go on writing.
        thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Self { child, url, said_before: all }
    }

    /// Its output before it listened.
    pub(crate) fn said_before(&self) -> &str {
        &self.said_before
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn run(&self, folder: &Path, arguments: &[&str]) -> Output {
        command(folder, arguments).env("APPORTION_SCHEDULER", &self.url).output().unwrap()
    }

    #[track_caller]
    pub(crate) fn ask(&self, folder: &Path, arguments: &[&str]) -> String {
        let output = self.run(folder, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// An answer in JSON, which fits its schema; if it lists jobs or servers, the list.
    #[track_caller]
    pub(crate) fn json(&self, folder: &Path, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = ["--format", "json"].iter().chain(arguments).copied().collect();
        let mut answer: Value = serde_json::from_str(&self.ask(folder, &arguments)).unwrap();
        match &*fits(&answer) {
            "jobs" | "history" => answer["jobs"].take(),
            "servers" => answer["servers"].take(),
            _ => answer,
        }
    }

    #[track_caller]
    pub(crate) fn refused(&self, folder: &Path, arguments: &[&str]) -> String {
        said_with_2(self.run(folder, arguments))
    }

    /// Asks it to end, as a service manager does, and answers its exit code.
    #[cfg(unix)]
    pub(crate) fn end(mut self) -> Option<i32> {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(asked.success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub(crate) fn said_with_2(output: Output) -> String {
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

/// The usual command with one flag changed, or more at its end.
fn usual_with<'a>(flag: &str, value: &'a str) -> Vec<&'a str> {
    let mut arguments = USUAL.to_vec();
    let place = arguments.iter().position(|argument| *argument == flag).unwrap();
    arguments[place + 1] = value;
    arguments
}

/// Whether a condition comes to hold within the tests' patience.
pub(crate) fn comes_true(holds: impl Fn() -> bool) -> bool {
    (0..LOOKS).any(|_| {
        let is_so = holds();
        if !is_so {
            thread::sleep(Duration::from_millis(100));
        }
        is_so
    })
}

#[test]
fn jobs_are_submitted_asked_about_and_cancelled() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let served = Served::start(at, &USUAL);
    assert_eq!(served.json(at, &["jobs"]), json!([]));
    assert_eq!(served.json(at, &["servers"]), json!([]));
    let submit = "submit --name cifar --scale-factor 2 --steps 1000 --env SEED=7 --directory code";
    let mut submit: Vec<&str> = submit.split(' ').collect();
    submit.extend(["--job-type", "ResNet-50 (batch size 64)", "--", "python", "train.py", "--epochs", "90"]);
    assert_eq!(served.ask(at, &submit), "0\n");
    let own = "submit --job-type mine --throughput v100=3.2,k80=1 --steps 50 --key word -- true";
    let own: Vec<&str> = own.split(' ').collect();
    let first = served.json(at, &own);
    assert_eq!((&first["job"], &first["key"]), (&json!(1), &json!("word")));
    assert_eq!(served.json(at, &own), first, "with the same key it is the same job");

    let jobs = served.json(at, &["jobs"]);
    assert_eq!(jobs.as_array().unwrap().len(), 2);
    let names = (jobs[0]["name"].as_str(), jobs[0]["user"].as_str(), jobs[0]["state"].as_str());
    assert_eq!(names, (Some("cifar"), Some("ann"), Some("waiting")));
    let table = served.ask(at, &["jobs"]);
    assert!(table.contains("cifar") && table.contains("ResNet-50 (batch size 64)"), "{table}");
    let why = served.ask(at, &["why", "0"]);
    assert!(
        why.contains("job 0 (cifar)") && why.contains("No server that may be given jobs is here."),
        "{why}"
    );
    for (command, kind) in [(&["why", "0"][..], "why"), (&["next"], "next")] {
        assert_eq!(served.json(at, command)["format"], format!("apportion/{kind}-v1"));
    }
    let next = served.ask(at, &["next"]);
    assert!(next.contains("No round runs") && next.contains("Without a place: job 0, 1."), "{next}");
    let said = served.json(at, &["cancel", "0"]);
    assert_eq!(said["format"], "apportion/done-v1");
    assert!(said["text"].as_str().is_some_and(|text| text.contains("job 0 is cancelled")), "{said}");

    for (arguments, says) in [
        (&["cancel", "0"][..], "job 0 is over already"),
        (&["why", "9"], "there is no job 9: the last is 1"),
        (&["drain", "nobody", "--reason", "x"], "there is no server `nobody`: none has joined"),
        (&["resume", "a/../b"], "there is no server `a/../b`"),
        (&["remove", "a/../b"], "there is no server `a/../b`"),
        (&["submit", "--job-type", "x", "--steps", "5", "--", "true"], "no throughputs for `x`"),
        (&["submit", "--job-type", "x", "--steps", "5"], "<PROGRAM>"),
        (
            &["submit", "--job-type", "x", "--steps", "5", "--throughput", "v100", "--", "true"],
            "TYPE=STEPS_PER_SECOND",
        ),
    ] {
        let said = served.refused(at, arguments);
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    #[cfg(unix)]
    let log = served.ask(at, &["history"]);
    let row = log.lines().nth(1).unwrap_or_default();
    assert!(row.starts_with("0,cifar,") && row.contains(",cancelled,0,"), "{log}");
    assert_eq!(served.end(), Some(0));
    let served = Served::start(at, &USUAL);
    let jobs = served.json(at, &["jobs"]);
    let active: Vec<_> = jobs.as_array().unwrap().iter().filter(|job| job["ended_s"].is_null()).collect();
    assert!(active.len() == 1 && active[0]["job"] == 1, "it is there after a restart: {jobs}");
}

#[test]
fn what_hinders_a_scheduler_is_said_with_its_remedy() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let refused = |arguments: &[&str]| said_with_2(command(at, arguments).output().unwrap());
    let with = |more: &[&'static str]| [&USUAL[..], more].concat();
    let served = Served::start(at, &USUAL);
    let port = served.url.trim_start_matches("http://");
    fs::write(at.join("token"), "open sesame\n").unwrap();

    let cases: Vec<(Vec<&str>, &[&str])> = vec![
        (with(&["--listen", "127.0.0.1:0"]), &["another scheduler uses this state", "--state"]),
        (usual_with("--cluster", "v10=2"), &["no worker type `v10`", "did you mean `v100`?"]),
        (usual_with("--cluster", "v100"), &["worker_type=count"]),
        (usual_with("--policy", "max_min_farness"), &["max_min_farness", "did you mean"]),
        (with(&["--listen", "nowhere"]), &["cannot listen on nowhere", "127.0.0.1:7070"]),
        (with(&["--listen", "0.0.0.0:0"]), &["can be reached from other machines", "--token-file"]),
        (with(&["--listen", "0.0.0.0:0", "--token-file", "none"]), &["cannot read none", "sha256sum"]),
        (
            with(&["--listen", "0.0.0.0:0", "--token-file", "token"]),
            &["token:1: this is no digest", "sha256sum"],
        ),
        (with(&["--local"]), &["several servers", "this machine is one"]),
        (vec!["serve"], &["--cluster", "--policy", "--state"]),
    ];
    for (arguments, says) in cases {
        let said = refused(&arguments);
        assert!(says.iter().all(|says| said.contains(says)), "{arguments:?}: {said}");
    }
    let said = refused(&[&USUAL[..7], &["--state", "other", "--listen", port]].concat());
    assert!(said.contains("is in use already") && said.contains("--listen 127.0.0.1:0"), "{said}");
    let said = refused(
        &[&USUAL[..7], &["--state", "other", "--listen", "127.0.0.1:0", "--look-ahead", "400"]].concat(),
    );
    assert!(said.contains("--look-ahead is 400") && said.contains("less than the round's"), "{said}");
    drop(served);
    rusqlite::Connection::open(at.join("state/scheduler.sqlite"))
        .unwrap()
        .pragma_update(None, "user_version", 9)
        .unwrap();
    let said = refused(&with(&["--listen", "127.0.0.1:0"]));
    assert!(said.contains("another version (layout 9") && said.contains("run that version"), "{said}");
}

#[test]
fn without_a_scheduler_the_commands_say_how_to_start_one() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    // This is a port without a listener.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    for arguments in
        [&["jobs"][..], &["cancel", "1"], &["submit", "--job-type", "x", "--steps", "5", "--", "true"]]
    {
        let said = said_with_2(command(at, arguments).env("APPORTION_SCHEDULER", &url).output().unwrap());
        assert!(said.contains(&url) && said.contains("apportion serve"), "{said}");
    }
    for (url, says) in [("ftp://head:7070", "http://HOST:PORT"), ("head:7070", "https://HOST:PORT")] {
        let said = said_with_2(command(at, &["jobs", "--scheduler", url]).output().unwrap());
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn another_program_that_answers_is_taken_for_no_scheduler() {
    let folder = TempDir::new().unwrap();
    let submit = &["submit", "--job-type", "x", "--steps", "5", "--", "true"][..];
    let drain = &["drain", "a", "--reason", "x"][..];
    for (arguments, answer) in [
        (&["jobs"][..], "[]"),
        (&["why", "3"], "{}"),
        (&["when", "3"], "{}"),
        (&["next"], "{}"),
        (&["servers"], "[]"),
        (&["history"], "[]"),
        (&["events"], "{}"),
        (&["cancel", "3"], "{}"),
        (drain, "{}"),
        (submit, "{\"job\":4}"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let other = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 0 && !line.trim_end().is_empty() {
                line.clear();
            }
            let length = answer.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            stream.write_all((head + answer).as_bytes()).unwrap();
        });
        let output = command(folder.path(), arguments).env("APPORTION_SCHEDULER", &url).output().unwrap();
        let said = said_with_2(output);
        other.join().unwrap();
        assert!(said.contains("is no scheduler of this kind"), "{arguments:?}: {said}");
    }
}

/// Reads a request to its end, and answers its body.
fn heard(stream: &mut std::net::TcpStream) -> Value {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim_end().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_submission_whose_answer_is_lost_is_sent_again_with_its_key() {
    let folder = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let scheduler = thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        let sent = heard(&mut first);
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        let again = heard(&mut second);
        let answer = "HTTP/1.1 201 Created\r\nx-apportion-version: 0\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{\"job\":4}";
        second.write_all(answer.as_bytes()).unwrap();
        (sent, again)
    });
    let arguments = ["submit", "--scheduler", &url, "--job-type", "x", "--steps", "5", "--format", "json"];
    let mut submit = Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = submit.current_dir(folder.path()).args(arguments).args(["--", "true"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (sent, again) = scheduler.join().unwrap();
    assert_eq!(sent, again);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((answer["job"].as_u64(), answer["key"].as_str()), (Some(4), sent["key"].as_str()));
    assert_eq!(sent["key"].as_str().map(str::len), Some(32));
}

#[test]
fn a_scheduler_with_a_token_answers_those_who_know_it() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    // The digest of `abc`, by printf %s abc | sha256sum.
    let digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n";
    fs::write(at.join("token.sha256"), digest).unwrap();
    fs::write(at.join("token"), "abc\n").unwrap();
    fs::write(at.join("wrong"), "abd\n").unwrap();
    let served = Served::start(at, &[&USUAL[..], &["--token-file", "token.sha256"]].concat());
    assert!(served.refused(at, &["jobs"]).contains("`--token-file FILE`"));
    assert!(served.refused(at, &["jobs", "--token-file", "wrong"]).contains("not one of the scheduler's"));
    assert!(served.refused(at, &["jobs", "--token-file", "token.sha256"]).contains("the digest of a token"));
    assert_eq!(served.json(at, &["jobs", "--token-file", "token"]), json!([]));
}

#[test]
fn the_log_of_a_scheduler_is_a_file_of_events_that_report_reads() {
    let folder = TempDir::new().unwrap();
    let local = ["serve", "--local", "--cluster", "v100=2", "--policy", "fifo", "--state=state"];
    let arguments: Vec<&str> = local.into_iter().chain(["--round-length", "2"]).collect();
    let mut served = Served::start(folder.path(), &arguments);
    let submit = |served: &Served, name: &str, command: &[&str]| {
        let flags = ["submit", "--name", name, "--job-type", "A3C", "--steps", "5", "--"];
        served.ask(folder.path(), &flags.into_iter().chain(command.iter().copied()).collect::<Vec<_>>());
    };
    submit(&served, "short", &["sleep", "0.2"]);
    submit(&served, "gone", &["sleep", "1000"]);
    served.ask(folder.path(), &["cancel", "1"]);
    let is_over = |served: &Served| {
        let jobs = served.json(folder.path(), &["jobs"]);
        jobs.as_array().unwrap().iter().all(|job| !job["ended_s"].is_null())
    };
    assert!((0..LOOKS).any(|_| is_over(&served) || {
        thread::sleep(Duration::from_millis(100));
        false
    }));
    // A restart continues the same log.
    served.end();
    served = Served::start(folder.path(), &arguments);
    submit(&served, "again", &["sleep", "0.2"]);
    assert!((0..LOOKS).any(|_| is_over(&served) || {
        thread::sleep(Duration::from_millis(100));
        false
    }));

    served.ask(folder.path(), &["events", "--out", "events.jsonl"]);
    let text = fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&header["format"], &header["spec"]["policy"]),
        (&json!("apportion/events-v1"), &json!("fifo"))
    );
    assert_eq!(text.matches("\"event\":\"completion\"").count(), 2, "{text}");
    assert_eq!(served.ask(folder.path(), &["events"]).lines().next(), text.lines().next());
    let output = command(folder.path(), &["report", "events.jsonl", "--out", "run.html"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(folder.path().join("run.html")).unwrap();
    assert!(page.contains("fifo") && page.contains("v100"));

    // Of a log with a damaged line, the jobs that are whole are shown.
    let is_second = |line: &&str| line.contains("\"event\":\"arrival\"") && line.contains("\"id\":1,");
    let second = text.lines().find(is_second).unwrap();
    let damaged = text.replace(second, "{\"event\":\"arri\u{1}");
    fs::write(folder.path().join("damaged.jsonl"), damaged).unwrap();
    let output = command(folder.path(), &["report", "damaged.jsonl"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("the event of their arrival is missing: 1\n"), "{said}");
    assert!(said.contains("lines that are no events, 1 in all: line "), "{said}");
    let page = fs::read_to_string(folder.path().join("damaged.html")).unwrap();
    assert!(page.contains("jobs that are left out, since the event of their arrival is missing"));

    // Without a scheduler there is no half of a file.
    let url = served.url().to_owned();
    served.end();
    let mut ended = command(folder.path(), &["events", "--out", "none.jsonl"]);
    assert_eq!(ended.env("APPORTION_SCHEDULER", url).output().unwrap().status.code(), Some(2));
    assert!(!folder.path().join("none.jsonl").exists());
}
