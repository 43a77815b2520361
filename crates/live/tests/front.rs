//! The front over real sockets: a scheduler on a real store, and agents that pretend their ranks run.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use apportion::scheduler::{Options as SchedulerOptions, Scheduler};
use apportion::{Catalog, Cluster, Seconds, Throughputs};
use apportion_live::agent::{Act, Agent, Server};
use apportion_live::clock::{Clock, wall_s};
use apportion_live::core::Settings;
use apportion_live::driver::{Client, Driver, StartError};
use apportion_live::front::{self, FrontError, Options, Tokens};
use apportion_live::protocol::{End, Progress, Run};
use apportion_live::store::{Store, StoreError};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long something that must come is waited for.
const PATIENCE: usize = 2_000;

/// A scheduler of two servers, and its front.
struct Served {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    front: Option<JoinHandle<()>>,
    driver: Option<Driver>,
}

fn driver(path: &Path) -> Result<Driver, StartError> {
    let cluster: Cluster = "v100=2,k80=2".parse().unwrap();
    let cluster =
        cluster.with_workers_per_server("v100", 2).unwrap().with_workers_per_server("k80", 2).unwrap();
    let round = Seconds::new(0.4);
    let options = SchedulerOptions::default().with_round_length(round).with_reset_interval(round);
    let policy = || Catalog::embedded().policy("max_min_fairness_perf").unwrap();
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let scheduler = Scheduler::new(&cluster, throughputs, policy(), options).unwrap();
    // (a crowded machine is slow, and no server of this test is ever silent)
    let settings = Settings { silence: Seconds::new(30.0), ..Settings::of_round(round) };
    Driver::start(settings, scheduler, Some(policy()), path)
}

impl Served {
    fn start(folder: &Path, tokens: Option<Tokens>) -> Self {
        let driver = driver(&folder.join("scheduler.sqlite")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (client, until) = (driver.client(), Arc::clone(&stop));
        let options = Options { tokens, tls: None, ..Options::default() };
        let front = thread::spawn(move || {
            front::serve(client, listener, options, &until).unwrap();
        });
        Self { address, stop, front: Some(front), driver: Some(driver) }
    }

    fn client(&self) -> Client {
        self.driver.as_ref().unwrap().client()
    }

    /// Sends bytes as they are, and reads all that is answered: status, head and body.
    fn raw(&self, request: &[u8]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        // (a body that is refused may not be read to its end)
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> (u16, Value) {
        let mut lines = vec![format!("{method} {path} HTTP/1.1"), "Connection: close".to_owned()];
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            lines.push(format!("Host: {}", self.address));
        }
        if method == "POST" && !headers.iter().any(|header| header.starts_with("Content-Type:")) {
            lines.push("Content-Type: application/json".to_owned());
        }
        lines.extend(headers.iter().map(|&header| header.to_owned()));
        lines.push(format!("Content-Length: {}", body.len()));
        let (status, head, text) = self.raw(format!("{}\r\n\r\n{body}", lines.join("\r\n")).as_bytes());
        assert!(head.contains("cache-control: no-store"), "{head}");
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        (status, value)
    }

    fn get(&self, path: &str) -> Value {
        let (status, value) = self.ask("GET", path, &[], "");
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// A submission that is taken in; its number.
    fn submit(&self, form: &Value) -> u64 {
        let (status, value) = self.ask("POST", "/v1/jobs", &[], &form.to_string());
        assert_eq!(status, 201, "{value}");
        value["job"].as_u64().unwrap()
    }

    /// Asks until it is so.
    fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..PATIENCE {
            let value = self.get(path);
            if is_so(&value) {
                return value;
            }
            thread::park_timeout(Duration::from_millis(20));
        }
        panic!("{path} is still {}", self.get(path));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.front.take().unwrap().join().unwrap();
        drop(self.driver.take());
    }
}

/// An agent whose ranks only count: so many steps each time it is looked at.
struct Pretended {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pretended {
    fn join(client: Client, name: &str, worker_type: &str) -> Self {
        let server = Server { name: name.into(), worker_type: worker_type.into(), n_workers: 2 };
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = thread::spawn(move || pretend(&client, server, &until));
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Pretended {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn pretend(client: &Client, server: Server, stop: &AtomicBool) {
    let clock = Clock::at(Seconds::ZERO);
    let Ok(orders) = client.listen(&server.name) else { return };
    let mut agent = Agent::new(server, 1, Vec::new());
    let mut ranks: BTreeMap<(Run, u32), (f64, f64)> = BTreeMap::new();
    while !stop.load(Ordering::Relaxed) {
        if client.report(agent.report(clock.now())).is_err() {
            return;
        }
        let mut acts = Vec::new();
        if let Ok(orders) = orders.recv_timeout(Duration::from_millis(20)) {
            acts = agent.take(clock.now(), &orders);
        }
        for act in acts {
            match act {
                Act::Start(start) => {
                    ranks.insert((start.run, start.rank), (0.0, start.total_steps.get()));
                }
                Act::Steer { run, rank, stop: Some(_), .. } => {
                    ranks.remove(&(run, rank));
                    agent.note_end(run, rank, End::Stopped(Some(0)));
                }
                Act::Steer { .. } => {}
            }
        }
        let mut done = Vec::new();
        for (&(run, rank), (steps, total)) in &mut ranks {
            *steps += 1.0;
            let progress = Progress {
                speaks: true,
                steps: *steps,
                checkpointed: *steps,
                seconds: *steps,
                done: *steps >= *total,
                ..Progress::default()
            };
            agent.note_progress(run, rank, progress);
            if progress.done {
                done.push((run, rank));
            }
        }
        for (run, rank) in done {
            ranks.remove(&(run, rank));
            agent.note_end(run, rank, End::Exit(0));
        }
    }
}

fn form(name: &str, steps: u32) -> Value {
    json!({"name": name, "user": "ann", "key": name,
           "job": {"job_type": "ResNet-50 (batch size 64)", "total_steps": steps},
           "program": {"command": ["train", "--fast"], "environment": {"A": "b"}}})
}

#[test]
fn a_job_is_submitted_runs_and_is_done() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    assert_eq!(served.get("/v1/jobs"), json!([]));
    assert_eq!(served.get("/v1/servers"), json!([]));
    assert!(served.get("/v1/next")["ends_in_s"].is_null());
    let _agents =
        [Pretended::join(served.client(), "one", "v100"), Pretended::join(served.client(), "two", "k80")];
    served.until("/v1/servers", |servers| servers.as_array().unwrap().len() == 2);
    let short = served.submit(&form("short", 5));
    let long = served.submit(&form("long", 1_000_000));
    assert_eq!(served.submit(&form("long", 1_000_000)), long, "sent again with its key it is the same job");
    served.until(&format!("/v1/jobs/{short}"), |job| job["state"] == "completed");
    let running = served.until(&format!("/v1/jobs/{long}"), |job| job["state"] == "running");
    assert_eq!((running["name"].as_str(), running["user"].as_str()), (Some("long"), Some("ann")));
    assert!(running["because"].as_array().unwrap().iter().any(|why| why == "It runs."), "{running}");
    served.until("/v1/next", |next| next["places"][0]["job"] == long && next["ends_in_s"].is_number());

    let (status, said) = served.ask("DELETE", &format!("/v1/jobs/{long}"), &[], "");
    assert_eq!(status, 200, "{said}");
    assert!(said["text"].as_str().unwrap().contains("will not be started again"), "{said}");
    served.until(&format!("/v1/jobs/{long}"), |job| job["state"] == "cancelled");
    let (status, said) = served.ask("DELETE", &format!("/v1/jobs/{long}"), &[], "");
    assert_eq!((status, said["error"].as_str().unwrap().contains("is over already")), (400, true), "{said}");
}

#[test]
fn a_server_is_drained_and_resumed() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    let _agent = Pretended::join(served.client(), "node 1/a", "v100");
    served.until("/v1/servers", |servers| servers[0]["server"] == "node 1/a");
    let (status, said) = served.ask("POST", "/v1/servers/node%201%2Fa/drain", &[], r#"{"reason": "a fan"}"#);
    assert_eq!(status, 200, "{said}");
    assert_eq!(served.get("/v1/servers")[0]["drained"], "a fan");
    let notes = served.get("/v1/notes");
    let note = notes.as_array().unwrap().iter().find(|note| note["text"] == "node 1/a is drained: a fan");
    assert_eq!(note.unwrap()["server"], "node 1/a");
    for body in ["", "{}"] {
        let (status, said) = served.ask("POST", "/v1/servers/node%201%2Fa/resume", &[], body);
        assert_eq!(status, 200, "{said}");
    }
    assert!(served.get("/v1/servers")[0]["drained"].is_null());
    let (status, said) = served.ask("POST", "/v1/servers/nobody/drain", &[], "");
    assert_eq!(status, 404);
    assert!(said["error"].as_str().unwrap().contains("expected one of node 1/a"), "{said}");
}

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    let good = form("a", 5);
    let with = |path: &[&str], value: Value| {
        let mut form = good.clone();
        let mut place = &mut form;
        for name in path {
            place = &mut place[*name];
        }
        *place = value;
        form.to_string()
    };
    let bodies = [
        (String::new(), "the body is not as expected"),
        ("{".to_owned(), "line 1 column 1"),
        ("[1]".to_owned(), "the body is not as expected"),
        ("[]".to_owned(), "expected an object, in braces"),
        (
            with(&["program", "directory"], json!("tmp")),
            "the program's folder is `tmp`, expected a path from the root",
        ),
        (with(&["nmae"], json!("x")), "unknown field `nmae`, expected one of"),
        (with(&["job", "steps"], json!(1)), "unknown field `steps`"),
        (with(&["program", "shell"], json!(true)), "unknown field `shell`"),
        (with(&["job", "job_type"], json!("no such type")), "no throughputs for `no such type`"),
        (with(&["job", "scale_factor"], json!(-1)), "-1"),
        (with(&["job", "total_steps"], json!(0)), "the job has no steps"),
        (with(&["job", "weight"], json!(0)), "weight"),
        (with(&["program", "command"], json!([])), "no command"),
    ];
    for (body, says) in bodies {
        let (status, said) = served.ask("POST", "/v1/jobs", &[], &body);
        let text = said["error"].as_str().unwrap_or_default();
        assert!(status == 400 && text.contains(says), "{body}: {status} {said}, expected {says}");
    }
    let places = [
        ("GET", "/v1/jobs/x", 400, "`x` is no job's number"),
        ("GET", "/v1/jobs/7", 404, "there is no job 7"),
        ("DELETE", "/v1/jobs/7", 404, "there is no job 7"),
        ("GET", "/v1/nothing", 404, "/v1/nothing"),
        ("PUT", "/v1/jobs", 405, "PUT"),
        ("GET", "/v1/events?after=x", 400, "`after` is `x`"),
        ("GET", "/v1/events?before=3", 400, "unknown parameter `before`"),
    ];
    for (method, path, status, says) in places {
        let (found, said) = served.ask(method, path, &[], "");
        let text = said["error"].as_str().unwrap_or_default();
        assert!(found == status && text.contains(says), "{method} {path}: {found} {said}");
    }
    assert_eq!(served.get("/v1/jobs"), json!([]), "nothing of it was taken in");
}

#[test]
fn a_vast_body_is_refused_and_a_slow_one_harms_nobody() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    let mut slow = TcpStream::connect(served.address).unwrap();
    let head = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{";
    slow.write_all(head.as_bytes()).unwrap();
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    let (status, _) = served.ask("POST", "/v1/jobs", &[], &" ".repeat((1 << 20) + 1));
    assert_eq!(status, 413);
    served.submit(&form("a", 5));
    drop((slow, silent));
}

#[test]
fn strangers_are_not_let_in() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    for host in ["Host: evil.example", "Host: evil.example:7070", "Host: 127.0.0.1.evil.example"] {
        let (status, said) = served.ask("GET", "/v1/jobs", &[host], "");
        assert!(status == 403 && said["error"].as_str().unwrap().contains("name of this machine"), "{said}");
        assert_eq!(served.ask("GET", "/", &[host], "").0, 403);
    }
    for host in ["Host: localhost", "Host: [::1]:7070", "Host: 127.0.0.1"] {
        assert_eq!(served.ask("GET", "/v1/jobs", &[host], "").0, 200);
    }
    // What another site's form can send.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let (status, said) =
            served.ask("POST", "/v1/jobs", &[&format!("Content-Type: {kind}")], &form("a", 5).to_string());
        assert!(status == 415 && said["error"].as_str().unwrap().contains("application/json"), "{said}");
    }
    let (_, head, _) = served.raw(
        b"OPTIONS /v1/jobs HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n",
    );
    assert!(!head.contains("access-control"), "{head}");
    assert_eq!(served.get("/v1/jobs"), json!([]));
}

#[test]
fn with_a_token_only_those_who_know_it_are_let_in() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), Some(Tokens::of("open sesame")));
    for headers in [
        &[][..],
        &["Authorization: Bearer open"],
        &["Authorization: Basic open sesame"],
        &["Authorization: Bearer "],
    ] {
        for path in ["/v1/jobs", "/v1/health", "/v1/notes", "/v1/events", "/metrics"] {
            let (status, said) = served.ask("GET", path, headers, "");
            assert!(status == 401 && said["error"].as_str().unwrap().contains("token"), "{path}: {said}");
        }
    }
    let known = "Authorization: Bearer open sesame";
    // (who knows the token may call the scheduler by any name)
    assert_eq!(served.ask("GET", "/v1/jobs", &[known, "Host: head.example:7070"], "").0, 200);
    let (status, page) = served.ask("GET", "/", &[], "");
    assert!(
        status == 200 && page.as_str().unwrap().starts_with("<!doctype html>"),
        "the page has nothing to tell"
    );
}

#[test]
fn nothing_is_served_beyond_this_machine_without_a_token() {
    let folder = TempDir::new().unwrap();
    let driver = driver(&folder.path().join("scheduler.sqlite")).unwrap();
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let stop = Arc::new(AtomicBool::new(true));
    let refused = front::serve(driver.client(), listener, Options::default(), &stop);
    assert!(matches!(refused, Err(FrontError::NeedsToken { .. })), "{refused:?}");
}

#[test]
fn two_schedulers_do_not_share_their_state() {
    let folder = TempDir::new().unwrap();
    let _served = Served::start(folder.path(), None);
    let second = driver(&folder.path().join("scheduler.sqlite"));
    assert!(matches!(second, Err(StartError::Store(StoreError::InUse { .. }))), "{second:?}");
}

#[test]
fn a_state_of_another_version_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    drop(driver(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refused = driver(&path).unwrap_err().to_string();
    assert!(refused.contains("another version (layout 99"), "{refused}");
    fs::write(
        &path,
        "no database, but longer than the head of one, so that it is read as something else".repeat(20),
    )
    .unwrap();
    let refused = driver(&path).unwrap_err().to_string();
    assert!(refused.contains("no SQLite file"), "{refused}");
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    assert_eq!(served.get("/v1/health")["epoch"], 1);
    let (kept, gone) = (served.submit(&form("kept", 5)), served.submit(&form("gone", 5)));
    assert_eq!(served.ask("DELETE", &format!("/v1/jobs/{gone}"), &[], "").0, 200);
    drop(served);
    let served = Served::start(folder.path(), None);
    let health = served.get("/v1/health");
    assert_eq!((health["epoch"].as_u64(), health["disk"].is_null()), (Some(2), true), "{health}");
    let jobs = served.get("/v1/jobs");
    let (over, active): (Vec<_>, Vec<_>) =
        jobs.as_array().unwrap().iter().partition(|job| job["ended_s"].as_f64().is_some());
    let numbers =
        |jobs: Vec<&Value>| -> Vec<_> { jobs.iter().filter_map(|job| job["job"].as_u64()).collect() };
    assert_eq!((numbers(active), numbers(over)), (vec![kept], vec![gone]));
    assert_eq!(served.submit(&form("kept", 5)), kept, "its key is known still");
    assert!(served.submit(&form("new", 5)) > gone, "no number is used twice");
}

/// Makes the records' file refuse jobs, as on a full disk, until a time on the wall, in s since 1970.
fn refuse_jobs_until(path: &Path, until: f64) {
    drop(Store::open(path).unwrap());
    let connection = rusqlite::Connection::open(path).unwrap();
    let trigger = format!(
        "CREATE TRIGGER full BEFORE INSERT ON jobs WHEN unixepoch('subsec') < {until:.3}
         BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
    );
    connection.execute_batch(&trigger).unwrap();
}

#[test]
fn a_disk_that_refuses_is_said_with_503_and_nothing_is_acknowledged_before_it_is_well() {
    let folder = TempDir::new().unwrap();
    let until = wall_s() + 3.0;
    refuse_jobs_until(&folder.path().join("scheduler.sqlite"), until);
    let served = Served::start(folder.path(), None);
    assert_eq!(served.ask("GET", "/v1/health", &[], "").0, 200);
    thread::scope(|scope| {
        let submitted = scope.spawn(|| (served.submit(&form("late", 3)), wall_s()));
        let refusal = (0..PATIENCE).find_map(|_| {
            let (status, health) = served.ask("GET", "/v1/health", &[], "");
            thread::park_timeout(Duration::from_millis(20));
            (status == 503).then_some(health)
        });
        let refusal = refusal.unwrap();
        assert!(refusal["disk"].as_str().unwrap().contains("the disk is full"), "{refusal}");
        assert!(
            served.ask("GET", "/metrics", &[], "").1.as_str().unwrap().contains("apportion_disk_refuses 1")
        );
        // Questions are answered; nothing is taken.
        for path in ["/v1/jobs", "/v1/jobs/0", "/v1/servers", "/v1/next"] {
            assert_eq!(served.ask("GET", path, &[], "").0, 200, "{path}");
        }
        assert_eq!(served.ask("DELETE", "/v1/jobs/0", &[], "").0, 503);
        let (job, at) = submitted.join().unwrap();
        assert_eq!(job, 0);
        assert!(at >= until, "it was acknowledged {} s before it was on disk", until - at);
    });
    assert_eq!(served.until("/v1/health", |_| true)["disk"], Value::Null);
    assert_eq!(served.get("/v1/jobs/0")["name"], "late");
}

#[test]
fn events_come_in_parts_and_metrics_add_up() {
    let folder = TempDir::new().unwrap();
    let served = Served::start(folder.path(), None);
    let _agent = Pretended::join(served.client(), "one", "v100");
    let job = served.submit(&form("short", 3));
    served.until(&format!("/v1/jobs/{job}"), |job| job["state"] == "completed");
    let mut after = 0;
    let mut lines = Vec::new();
    loop {
        let request = format!(
            "GET /v1/events?after={after}&most=2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        );
        let (status, head, body) = served.raw(request.as_bytes());
        assert!(status == 200 && head.contains("application/x-ndjson"), "{head}");
        let last = head.lines().find_map(|line| line.strip_prefix("x-apportion-last: ")).unwrap();
        // (before the first comes the header)
        assert!(body.lines().count() <= 2 + usize::from(after == 0), "{body}");
        assert_eq!(body.starts_with("{\"format\":\"apportion/events-v1\""), after == 0, "{body}");
        lines.extend(body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone()));
        if lines.iter().any(|event| event == "completion") {
            break;
        }
        assert!(!body.is_empty(), "{lines:?}");
        after = last.parse().unwrap();
    }
    assert!(
        lines.iter().any(|event| event == "arrival") && lines.iter().any(|event| event == "lease"),
        "{lines:?}"
    );

    let (status, text) = served.ask("GET", "/metrics", &[], "");
    let text = text.as_str().unwrap().to_owned();
    assert_eq!(status, 200);
    for line in [
        "apportion_completed_jobs_total 1",
        "apportion_jobs{state=\"completed\"} 1",
        "apportion_workers_joined{worker_type=\"v100\"} 2",
        "apportion_workers_up{worker_type=\"v100\"} 2",
        "apportion_disk_refuses 0",
        "apportion_epoch 1",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
    }
    // A decision that is made ahead of its round is no older than that.
    served.submit(&form("long", 3000));
    served.until("/v1/next", |next| next["is_decided"] == true);
    let (_, text) = served.ask("GET", "/metrics", &[], "");
    let text = text.as_str().unwrap().to_owned();
    let age = text.lines().find_map(|line| line.strip_prefix("apportion_decision_age_seconds "));
    assert!(age.unwrap().parse::<f64>().unwrap() >= 0.0, "{text}");
}
