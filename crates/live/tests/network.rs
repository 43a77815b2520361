//! A scheduler, its front and agents over real sockets, with real processes as ranks. What is waited for comes when it comes:
//! the limit only ends a test that would never end.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod support;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use apportion::scheduler::{Options as SchedulerOptions, Scheduler};
use apportion::{Catalog, Cluster, Seconds, Throughputs};
use apportion_live::agent::{self, Home, Server};
use apportion_live::clock;
use apportion_live::core::{Answer, JobView, Request, Settings, State};
use apportion_live::driver::Driver;
use apportion_live::front::{self, Form, Options, Role, Tls, TlsError, Tokens};
use apportion_live::network::{Access, HttpLink, News};
use apportion_live::protocol::JobNumber;
use serde_json::{Value, json};
use tempfile::TempDir;

use support::{lives, wait_for};

/// The shim and the pretend trainer.
const PROGRAM: &str = env!("CARGO_BIN_EXE_apportion-shim");

/// A round: long enough for a crowded machine, short enough for a test that waits for its end.
const ROUND: f64 = 1.5;

/// A trainer that does not end in the time of a test.
const ENDLESS: u64 = 1_000_000;

fn tls_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

fn driver(path: &Path, silence: f64) -> Driver {
    let cluster: Cluster = "v100=2,k80=2".parse().unwrap();
    let cluster =
        cluster.with_workers_per_server("v100", 2).unwrap().with_workers_per_server("k80", 2).unwrap();
    let round = Seconds::new(ROUND);
    let options = SchedulerOptions::default().with_round_length(round).with_reset_interval(round);
    let policy = || Catalog::embedded().policy("max_min_fairness_perf").unwrap();
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let scheduler = Scheduler::new(&cluster, throughputs, policy(), options).unwrap();
    let settings = Settings {
        silence: Seconds::new(silence),
        start_limit: Seconds::new(20.0),
        decision_limit: Some(Duration::from_secs(5)),
        ..Settings::of_round(round)
    };
    Driver::start(settings, scheduler, Some(policy()), path).unwrap()
}

/// A scheduler of two servers, and its front.
struct Head {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    front: Option<JoinHandle<()>>,
    driver: Option<Driver>,
}

impl Head {
    fn start(folder: &Path, silence: f64) -> Self {
        Self::start_at(folder, silence, ("127.0.0.1:0".parse().unwrap(), Options::default()))
    }

    fn start_at(folder: &Path, silence: f64, (address, options): (SocketAddr, Options)) -> Self {
        let driver = driver(&folder.join("scheduler.sqlite"), silence);
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (client, until) = (driver.client(), Arc::clone(&stop));
        let front = thread::spawn(move || {
            front::serve(client, listener, options, &until).unwrap();
        });
        Self { address, stop, front: Some(front), driver: Some(driver) }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn ask(&self, request: Request) -> Answer {
        self.driver.as_ref().unwrap().client().ask(request).unwrap().unwrap()
    }

    /// Submits a trainer of so many steps, at 100 steps/s.
    fn submit(&self, steps: u64) -> u64 {
        let form: Form = serde_json::from_value(json!({
            "job": {"job_type": "ResNet-50 (batch size 64)", "total_steps": steps},
            "program": {"command": [PROGRAM, "trainer", "--speed", "100"]},
        }))
        .unwrap();
        match self.ask(Request::Submit(Box::new(form.into()))) {
            Answer::Submitted { job, .. } => job.0,
            other => panic!("{other:?}"),
        }
    }

    fn job(&self, number: u64) -> JobView {
        match self.ask(Request::Jobs) {
            Answer::Jobs(jobs) => jobs.into_iter().find(|job| job.job.0 == number).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn until(&self, number: u64, what: &str, is: impl Fn(&JobView) -> bool) -> JobView {
        wait_for(what, || Some(self.job(number)).filter(&is))
    }

    fn until_running(&self, number: u64) -> JobView {
        self.until(number, "steps", |job| job.state == State::Running && job.steps > 0.0)
    }

    /// Cancels a job, and waits until nothing of it runs.
    fn cancel(&self, number: u64) {
        self.ask(Request::Cancel(JobNumber(number)));
        self.until(number, "its end", |job| job.state == State::Cancelled);
    }

    fn is_up(&self, server: &str) -> bool {
        match self.ask(Request::Servers) {
            Answer::Servers(servers) => servers.iter().any(|one| one.server == server && one.is_reachable),
            other => panic!("{other:?}"),
        }
    }

    /// Sends a request as it is; the status and the body.
    fn raw(&self, head: &str, body: &[u8]) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!(
            "{head}Host: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        // (a body that is refused may not be read to its end)
        let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.write_all(body));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.front.take().unwrap().join().unwrap();
        drop(self.driver.take());
    }
}

/// A server: an agent on a thread, with a folder.
struct Node {
    stop: Arc<AtomicBool>,
    news: Arc<Mutex<Vec<News>>>,
    thread: Option<JoinHandle<Option<String>>>,
}

impl Node {
    fn start(home: &Path, access: Access, name: &str, worker_type: &str) -> Self {
        Self::start_with_beat(home, access, (name, worker_type), None)
    }

    fn start_with_beat(
        home: &Path,
        access: Access,
        (name, worker_type): (&str, &str),
        beat: Option<Duration>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let news = Arc::new(Mutex::new(Vec::new()));
        let server = Server { name: name.into(), worker_type: worker_type.into(), n_workers: 2 };
        let checkpoints = home.parent().unwrap().join("checkpoints");
        let (state, shim) = (home.to_owned(), vec![PROGRAM.into(), "shim".into()]);
        let own = Home { state, checkpoints, shim };
        let (until, told) = (Arc::clone(&stop), Arc::clone(&news));
        let thread = thread::spawn(move || {
            let note = move |news: &News| told.lock().unwrap().push(news.clone());
            let mut link = HttpLink::start(access, &server.name, Arc::clone(&until), note).unwrap();
            if let Some(beat) = beat {
                link.set_beat(beat);
            }
            agent::run(server, own, &mut link, Duration::from_millis(100), &until).unwrap();
            link.denied()
        });
        Self { stop, news, thread: Some(thread) }
    }

    /// Waits for news that are so.
    fn until(&self, what: &str, is: impl Fn(&News) -> bool) -> News {
        wait_for(what, || self.news.lock().unwrap().iter().find(|news| is(news)).cloned())
    }

    fn until_refused(&self) -> String {
        match self.until("a refusal", |news| matches!(news, News::Refused(_))) {
            News::Refused(why) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the agent ends by itself; why its token was refused.
    fn ended(mut self) -> Option<String> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || ended.is_ok());
        }
    }
}

/// The processes of a job that run on a server.
fn programs(home: &Path, job: u64) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(home.join("ranks")) else { return Vec::new() };
    let of_job = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&format!("{job}."));
    let pid = |path: PathBuf| {
        let owned: Value = serde_json::from_slice(&fs::read(path.join("shim.json")).ok()?).ok()?;
        i32::try_from(owned["program"]["pid"].as_i64()?).ok()
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(of_job)
        .filter_map(pid)
        .filter(|pid| lives(*pid))
        .collect()
}

fn access(url: &str) -> Access {
    Access::new(url, None, None).unwrap()
}

fn report(name: &str, worker_type: &str, n_workers: u32) -> String {
    json!({"server": name, "id": {"boot": 1, "number": 1}, "worker_type": worker_type, "n_workers": n_workers,
           "taken": [0, 0], "ranks": []})
    .to_string()
}

const REPORT: &str = "POST /v1/agents/report HTTP/1.1\r\n";

#[test]
fn servers_join_and_their_jobs_are_done() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 30.0);
    let nodes = [("one", "v100"), ("two", "k80")]
        .map(|(name, kind)| Node::start(&folder.path().join(name), access(&head.url()), name, kind));
    for (node, name) in nodes.iter().zip(["one", "two"]) {
        node.until("an agent that is heeded", |news| *news == News::Heeded);
        assert!(head.is_up(name));
    }
    let jobs: Vec<_> = (0..4).map(|_| head.submit(50)).collect();
    for job in jobs {
        let job = head.until(job, "its end", |job| job.state == State::Completed);
        assert_eq!((job.steps, job.checkpointed), (50.0, 50.0));
    }
    assert!(nodes.iter().all(|node| *node.news.lock().unwrap() == [News::Heeded]));
}

#[test]
fn orders_do_not_wait_for_a_report() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 1000.0);
    let (home, hour) = (folder.path().join("one"), Duration::from_hours(1));
    let _node = Node::start_with_beat(&home, access(&head.url()), ("one", "v100"), Some(hour));
    wait_for("the server", || head.is_up("one").then_some(()));
    let job = head.submit(ENDLESS);
    wait_for("its program", || (!programs(&home, job).is_empty()).then_some(()));
    head.cancel(job);
    wait_for("the program's end", || programs(&home, job).is_empty().then_some(()));
}

#[test]
fn a_scheduler_that_comes_back_adopts_what_runs() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 1.0);
    let home = folder.path().join("one");
    let node = Node::start(&home, access(&head.url()), "one", "v100");
    let job = head.submit(ENDLESS);
    head.until_running(job);
    let pids = programs(&home, job);
    let address = head.address;
    drop(head);
    let head = Head::start_at(folder.path(), 1.0, (address, Options::default()));
    let steps = head.until_running(job).steps;
    let view = head.until(job, "more steps", |job| job.steps > steps + 200.0);
    assert_eq!((view.starts, programs(&home, job)), (1, pids));
    head.cancel(job);
    drop(node);
}

#[test]
fn an_agent_that_comes_back_adopts_what_runs() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 1.0);
    let home = folder.path().join("one");
    let node = Node::start(&home, access(&head.url()), "one", "v100");
    let job = head.submit(ENDLESS);
    head.until_running(job);
    let pids = programs(&home, job);
    drop(node);
    let _node = Node::start(&home, access(&head.url()), "one", "v100");
    let steps = head.job(job).steps;
    let view = head.until(job, "more steps", |job| job.steps > steps + 200.0);
    assert_eq!((view.starts, programs(&home, job)), (1, pids));
    head.cancel(job);
}

#[test]
fn a_name_has_one_agent_and_the_other_is_told() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 1.0);
    let homes = ["first", "second"].map(|name| folder.path().join(name));
    let first = Node::start(&homes[0], access(&head.url()), "same", "v100");
    let job = head.submit(ENDLESS);
    let before = head.until_running(job).steps;
    let second = Node::start(&homes[1], access(&head.url()), "same", "v100");
    let why = second.until_refused();
    assert!(why.contains("the name of another agent") && why.contains("a name of its own"), "{why}");
    head.until(job, "more steps", |job| job.steps > before + 100.0);
    assert!(programs(&homes[1], job).is_empty());
    assert!(!first.news.lock().unwrap().iter().any(|news| matches!(news, News::Refused(_))));
    // Once the first has been silent, the second is the server's agent. Its job starts there when the lease is over.
    drop(first);
    second.until("an agent that is heeded", |news| *news == News::Heeded);
    wait_for("the job's start with the second", || {
        let (one, other) = (programs(&homes[0], job), programs(&homes[1], job));
        assert!(one.is_empty() || other.is_empty(), "two incarnations at once");
        (!other.is_empty()).then_some(())
    });
    let first = Node::start(&homes[0], access(&head.url()), "same", "v100");
    first.until_refused();
    head.cancel(job);
}

#[test]
fn an_order_that_another_agent_may_have_carried_out_is_not_repeated() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 0.3);
    let of_home = |home: u32| {
        let mut report: Value = serde_json::from_str(&report("same", "v100", 2)).unwrap();
        report["home"] = json!(home);
        report["id"]["boot"] = json!(home);
        head.raw(REPORT, report.to_string().as_bytes())
    };
    assert_eq!(of_home(1).0, 200);
    let job = head.submit(ENDLESS);
    let before = head.until(job, "its first start", |job| job.starts == 1);
    let heard = wait_for("the second agent", || Some(of_home(2)).filter(|(status, _)| *status == 200)).1;
    assert_eq!(heard["orders"]["leases"], json!([]), "{heard}");
    assert_eq!(head.job(job).starts, before.starts);
}

#[test]
fn two_agents_on_copies_of_one_folder_do_not_take_turns() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 2.0);
    let homes = ["original", "copy"].map(|name| folder.path().join(name));
    fs::create_dir_all(&homes[1]).unwrap();
    let original = Node::start(&homes[0], access(&head.url()), "same", "v100");
    original.until("an agent that is heeded", |news| *news == News::Heeded);
    for name in ["home.json", "boot.json"] {
        fs::copy(homes[0].join(name), homes[1].join(name)).unwrap();
    }
    let copy = Node::start(&homes[1], access(&head.url()), "same", "v100");
    copy.until("an agent that is heeded", |news| *news == News::Heeded);
    let why = original.until_refused();
    assert!(why.contains("copies of one folder"), "{why}");
    assert!(!copy.news.lock().unwrap().iter().any(|news| matches!(news, News::Refused(_))));
}

/// A way to a scheduler that can be cut: connections are then broken, and new ones closed at once.
struct Proxy {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (is_cut, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let streams = Arc::new(Mutex::new(Vec::new()));
        let (cut, until, kept) = (Arc::clone(&is_cut), Arc::clone(&stop), Arc::clone(&streams));
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok(_) if cut.load(Ordering::Relaxed) => {}
                    Ok((near, _)) => {
                        let Ok(far) = TcpStream::connect(to) else { continue };
                        near.set_nonblocking(false).unwrap();
                        for (mut from, mut to) in [(&near, &far), (&far, &near)]
                            .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
                        {
                            thread::spawn(move || {
                                let _ = std::io::copy(&mut from, &mut to);
                                let _ = to.shutdown(Shutdown::Both);
                            });
                        }
                        kept.lock().unwrap().extend([near, far]);
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        thread::sleep(Duration::from_millis(5));
                    }
                }
            }
        });
        Self { address, is_cut, streams, stop, thread: Some(thread) }
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn mend(&self) {
        self.is_cut.store(false, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_link_that_is_cut_for_longer_than_a_lease_starts_nothing_twice() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 1.0);
    let proxy = Proxy::start(head.address);
    let homes = ["far", "near"].map(|name| folder.path().join(name));
    let far = Node::start(&homes[0], access(&format!("http://{}", proxy.address)), "far", "v100");
    let job = head.submit(ENDLESS);
    head.until_running(job);
    let _near = Node::start(&homes[1], access(&head.url()), "near", "k80");
    wait_for("the second server", || head.is_up("near").then_some(()));
    head.until(job, "the job on the first server", |job| job.servers == ["far"]);
    let (before, starts) = (programs(&homes[0], job), head.job(job).starts);
    proxy.cut();
    far.until("a scheduler that is not reached", |news| matches!(news, News::Unreached(_)));
    wait_for("the job's start elsewhere", || {
        let [far, near] = [0, 1].map(|place| programs(&homes[place], job));
        assert!(far.is_empty() || near.is_empty(), "two incarnations at once");
        (!near.is_empty()).then_some(())
    });
    assert!(
        !before.is_empty() && before.iter().all(|pid| !lives(*pid)),
        "it stopped when its lease was over"
    );
    proxy.mend();
    wait_for("the first server", || head.is_up("far").then_some(()));
    let n_heeded = || far.news.lock().unwrap().iter().filter(|news| **news == News::Heeded).count();
    wait_for("the first agent's word of it", || (n_heeded() == 2).then_some(()));
    assert!(head.job(job).starts > starts);
    head.cancel(job);
}

#[test]
fn each_token_has_its_role() {
    let folder = TempDir::new().unwrap();
    let options = || Options {
        tokens: Some(Tokens::of("people's").and("agents'", Role::Agent).and_of("two's", &["two"])),
        tls: None,
        ..Options::default()
    };
    let head = Head::start_at(folder.path(), 2.0, ("127.0.0.1:0".parse().unwrap(), options()));
    let body = report("one", "v100", 2);
    let ask = |start: &str, token: &str, body: &str| {
        head.raw(&format!("{start} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n"), body.as_bytes())
    };
    for (start, token, status, says) in [
        ("POST /v1/agents/report", "people's", 403, "`sha256:DIGEST agent`"),
        ("GET /v1/agents/one/orders", "people's", 403, "this token is for people"),
        ("POST /v1/agents/report", "wrong", 401, "not one of the scheduler's"),
        ("GET /v1/jobs", "agents'", 403, "this token is for agents"),
        ("POST /v1/jobs", "agents'", 403, "this token is for agents"),
        ("GET /metrics", "agents'", 403, "this token is for agents"),
        ("GET /v1/agents/one/orders", "agents'", 404, "its agent reports first"),
        ("GET /v1/jobs", "people's", 200, ""),
        ("POST /v1/agents/report", "agents'", 200, ""),
        // (it reports of the server `one`)
        ("POST /v1/agents/report", "two's", 403, "this token is not for the server `one`"),
        ("GET /v1/agents/one/orders", "two's", 403, "the scheduler's token file has it for two"),
        ("GET /v1/agents/%6Fne/orders", "two's", 403, "this token is not for the server `one`"),
        ("GET /v1/agents/two/orders", "two's", 404, "its agent reports first"),
        ("GET /v1/jobs", "two's", 403, "this token is for agents"),
    ] {
        let (found, said) = ask(start, token, &body);
        let text = said["error"].as_str().unwrap_or_default();
        assert!(found == status && text.contains(says), "{start} with {token}: {found} {said}");
    }
    // An agent ends at once if its token is refused at its start,
    for token in ["wrong", "people's"] {
        let access = Access::new(&head.url(), Some(token), None).unwrap();
        let denied = Node::start(&folder.path().join("denied"), access, "two", "k80").ended();
        assert!(denied.unwrap().contains("token"));
    }
    // and goes on if it was heeded before.
    let good = Access::new(&head.url(), Some("agents'"), None).unwrap();
    let node = Node::start(&folder.path().join("two"), good, "two", "k80");
    node.until("an agent that is heeded", |news| *news == News::Heeded);
    let address = head.address;
    drop(head);
    let others = Options { tokens: Some(Tokens::of("another")), tls: None, ..Options::default() };
    let head = Head::start_at(folder.path(), 2.0, (address, others));
    assert!(node.until_refused().contains("not one of the scheduler's"));
    drop(head);
    let _head = Head::start_at(folder.path(), 2.0, (address, options()));
    let n_heeded = || node.news.lock().unwrap().iter().filter(|news| **news == News::Heeded).count();
    wait_for("the token that is good again", || (n_heeded() == 2).then_some(()));
}

#[test]
fn what_is_wrong_with_a_report_is_said() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 30.0);
    let long = "a".repeat(101);
    for (body, status, says) in [
        (report("one", "tpu", 2), 409, "workers of type tpu, which the cluster does not"),
        (report("one", "v100", 3), 409, "the cluster has no server of that type and size"),
        (report("../one", "v100", 2), 400, "`../one` is no name of a server"),
        (report("a\u{1b}[31m", "v100", 2), 400, "is no name of a server"),
        (report("", "v100", 2), 400, "is no name of a server"),
        (report(&long, "v100", 2), 400, "1 to 100 letters"),
        (report("one", "v\n100", 2), 400, "without control characters"),
        (report("one", "v100", 0), 400, "1 to 1024 workers"),
        (report("one", "v100", u32::MAX), 400, "1 to 1024 workers"),
        ("{}".to_owned(), 400, "the body is not as expected"),
        (" ".repeat(100 << 20), 413, "more than"),
    ] {
        let (found, said) = head.raw(REPORT, body.as_bytes());
        let text = said["error"].as_str().unwrap_or_default();
        assert!(found == status && text.contains(says), "{status} {says}: {found} {said}");
    }
    for (query, says) in
        [("after=1", "EPOCH.NUMBER"), ("wait=-1", "`wait` is `-1`"), ("x=1", "unknown parameter")]
    {
        let (found, said) = head.raw(&format!("GET /v1/agents/one/orders?{query} HTTP/1.1\r\n"), b"");
        assert!(found == 400 && said["error"].as_str().unwrap().contains(says), "{query}: {found} {said}");
    }
    assert_eq!(head.raw(REPORT, report("one", "v100", 2).as_bytes()).0, 200);
    assert!(head.is_up("one"));
}

#[test]
fn many_wait_for_orders_at_once() {
    let folder = TempDir::new().unwrap();
    let head = Head::start(folder.path(), 30.0);
    let (status, heard) = head.raw(REPORT, report("one", "v100", 2).as_bytes());
    let orders = &heard["orders"];
    assert!(status == 200 && heard["beat_s"] == 5.0 && orders["leases"] == json!([]), "{heard}");
    let (epoch, number) = (&orders["epoch"], &orders["number"]);
    let ask =
        |wait: &str| format!("GET /v1/agents/one/orders?after={epoch}.{number}&wait={wait} HTTP/1.1\r\n");
    assert_eq!(head.raw(&ask("0.05"), b"").0, 204);
    let request = format!("{}Host: localhost\r\nConnection: close\r\n\r\n", ask("30"));
    let mut waiting: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(head.address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let job = head.submit(ENDLESS);
    for stream in &mut waiting {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let orders: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(orders["leases"][0]["run"]["job"], job, "{text}");
    }
    // Requests that wait do not hold up the end.
    let access = access(&head.url());
    let waits = thread::spawn(move || {
        let path = "/v1/agents/one/orders?after=9.9&wait=30";
        let first = access.ask(ureq::http::Method::GET, path, Duration::from_secs(20)).unwrap();
        let orders: Value = serde_json::from_str(&first.text).unwrap();
        let path = format!("/v1/agents/one/orders?after={}.{}&wait=30", orders["epoch"], orders["number"]);
        access.ask(ureq::http::Method::GET, &path, Duration::from_secs(20))
    });
    thread::sleep(Duration::from_millis(200));
    let since = clock::node_now();
    drop(head);
    assert!(clock::node_now() - since < Seconds::new(1.5));
    assert!(waits.join().unwrap().is_ok_and(|reply| reply.status == 503));
}

#[test]
fn https_is_spoken_where_the_certificate_is_trusted() {
    let folder = TempDir::new().unwrap();
    let tls = Tls::read(&tls_file("head.pem"), &tls_file("head.key")).unwrap();
    let options = Options {
        tokens: Some(Tokens::of("people's").and("agents'", Role::Agent)),
        tls: Some(tls),
        ..Options::default()
    };
    let head = Head::start_at(folder.path(), 30.0, ("127.0.0.1:0".parse().unwrap(), options));
    let (url, port) = (format!("https://{}", head.address), head.address.port());
    let ca = tls_file("ca.pem");
    let trusting = Access::new(&url, Some("agents'"), Some(&ca)).unwrap();
    let node = Node::start(&folder.path().join("one"), trusting, "one", "v100");
    let job = head.submit(50);
    head.until(job, "its end", |job| job.state == State::Completed);
    assert_eq!(*node.news.lock().unwrap(), [News::Heeded]);

    let limit = Duration::from_secs(10);
    let ask = |url: &str, ca: Option<&Path>| {
        let access = Access::new(url, Some("people's"), ca).unwrap();
        access.ask(ureq::http::Method::GET, "/v1/health", limit)
    };
    assert_eq!(ask(&format!("https://localhost:{port}"), Some(&ca)).unwrap().status, 200);
    let lost = ask(&url, None).unwrap_err();
    assert!(lost.is_unheard && lost.to_string().contains("`--ca FILE`"), "{lost}");
    let lost = ask(&format!("https://127.0.0.2:{port}"), Some(&ca));
    assert!(lost.is_err(), "the certificate has another name");
    let reply = ask(&head.url(), None).unwrap();
    assert!(reply.status == 400 && reply.text.contains("write https:// in place of http://"), "{reply:?}");

    let plain = Head::start(&folder.path().join("one"), 30.0);
    let lost = ask(&format!("https://{}", plain.address), Some(&ca)).unwrap_err();
    assert!(lost.to_string().contains("speaks no https"), "{lost}");
}

#[test]
fn what_is_no_certificate_or_key_is_named() {
    let read = |certificate: &str, key: &str| Tls::read(&tls_file(certificate), &tls_file(key)).unwrap_err();
    assert!(matches!(read("head.pem", "other.key"), TlsError::Mismatch { .. }));
    for (certificate, key, says) in [
        ("head.pem", "other.key", "does not belong to the first certificate in"),
        ("other.key", "head.key", "other.key has no certificate in PEM"),
        ("head.pem", "ca.pem", "ca.pem has no private key in PEM"),
        ("none.pem", "head.key", "none.pem: No such file"),
        ("head.pem", "none.key", "none.key: No such file"),
    ] {
        let said = read(certificate, key).to_string();
        assert!(said.contains(says), "{said}");
    }
}
