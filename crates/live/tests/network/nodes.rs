//! A scheduler behind its front, and servers that talk to it.

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
use apportion_live::core::{Answer, JobView, Request, Settings, State};
use apportion_live::driver::Driver;
use apportion_live::front::{self, Form, Options};
use apportion_live::network::{Access, HttpLink, News};
use apportion_live::protocol::JobNumber;
use serde_json::{Value, json};

use crate::support::{lives, wait_for};

/// The shim and the pretend trainer.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_apportion-shim");

/// The length of a round, in s: long enough for a crowded machine, short enough for a test that waits for its end.
pub(crate) const ROUND: f64 = 1.5;

/// The steps of a trainer that does not end in the time of a test.
pub(crate) const ENDLESS: u64 = 1_000_000;

pub(crate) fn tls_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

pub(crate) fn driver(path: &Path, silence: f64) -> Driver {
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
    Driver::start(settings, scheduler, Some(policy()), Vec::new(), path).unwrap()
}

/// A scheduler of two servers, and its front.
pub(crate) struct Head {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    front: Option<JoinHandle<()>>,
    driver: Option<Driver>,
}

impl Head {
    pub(crate) fn start(folder: &Path, silence: f64) -> Self {
        Self::start_at(folder, silence, ("127.0.0.1:0".parse().unwrap(), Options::default()))
    }

    pub(crate) fn start_at(folder: &Path, silence: f64, (address, options): (SocketAddr, Options)) -> Self {
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

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn ask(&self, request: Request) -> Answer {
        self.driver.as_ref().unwrap().client().ask(request).unwrap().unwrap()
    }

    /// Submits a trainer that makes `steps` steps, at 100 steps/s.
    pub(crate) fn submit(&self, steps: u64) -> u64 {
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

    pub(crate) fn job(&self, number: u64) -> JobView {
        match self.ask(Request::Jobs) {
            Answer::Jobs(jobs) => jobs.into_iter().find(|job| job.job.0 == number).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn until(&self, number: u64, what: &str, is: impl Fn(&JobView) -> bool) -> JobView {
        wait_for(what, || Some(self.job(number)).filter(&is))
    }

    pub(crate) fn until_running(&self, number: u64) -> JobView {
        self.until(number, "steps", |job| job.state == State::Running && job.steps > 0.0)
    }

    /// Cancels a job, and waits until no process of it runs.
    pub(crate) fn cancel(&self, number: u64) {
        self.ask(Request::Cancel(JobNumber(number)));
        self.until(number, "its end", |job| job.state == State::Cancelled);
    }

    pub(crate) fn is_up(&self, server: &str) -> bool {
        match self.ask(Request::Servers) {
            Answer::Servers(servers) => servers.iter().any(|one| one.server == server && one.is_reachable),
            other => panic!("{other:?}"),
        }
    }

    /// Sends a request as it is, and returns the status and the body.
    pub(crate) fn raw(&self, head: &str, body: &[u8]) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!(
            "{head}Host: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        // A body that is refused may not be read to its end.
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
pub(crate) struct Node {
    stop: Arc<AtomicBool>,
    pub news: Arc<Mutex<Vec<News>>>,
    thread: Option<JoinHandle<Option<String>>>,
}

impl Node {
    pub(crate) fn start(home: &Path, access: Access, name: &str, worker_type: &str) -> Self {
        Self::start_with_beat(home, access, (name, worker_type), None)
    }

    pub(crate) fn start_with_beat(
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

    /// Waits for news that meet the condition.
    pub(crate) fn until(&self, what: &str, is: impl Fn(&News) -> bool) -> News {
        wait_for(what, || self.news.lock().unwrap().iter().find(|news| is(news)).cloned())
    }

    pub(crate) fn until_refused(&self) -> String {
        match self.until("a refusal", |news| matches!(news, News::Refused(_))) {
            News::Refused(why) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the agent ends by itself, and answers why its token was refused.
    pub(crate) fn ended(mut self) -> Option<String> {
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
pub(crate) fn programs(home: &Path, job: u64) -> Vec<i32> {
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

pub(crate) fn access(url: &str) -> Access {
    Access::new(url, None, None).unwrap()
}

pub(crate) fn report(name: &str, worker_type: &str, n_workers: u32) -> String {
    json!({"server": name, "id": {"boot": 1, "number": 1}, "worker_type": worker_type, "n_workers": n_workers,
           "taken": [0, 0], "ranks": []})
    .to_string()
}

pub(crate) const REPORT: &str = "POST /v1/agents/report HTTP/1.1\r\n";

/// A way to a scheduler that can be cut: connections are then broken, and new ones closed at once.
pub(crate) struct Proxy {
    pub address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(crate) fn start(to: SocketAddr) -> Self {
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

    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
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
