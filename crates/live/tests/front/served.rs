//! A scheduler that serves over a socket, and the requests of tests to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use apportion::scheduler::{Options as SchedulerOptions, Scheduler};
use apportion::{Catalog, Cluster, Seconds, Throughputs};
use apportion_live::core::Settings;
use apportion_live::driver::{Client, Driver, StartError};
use apportion_live::front::{self, Options, Tokens};
use serde_json::{Value, json};

/// The number of attempts for a result that must come.
pub(crate) const PATIENCE: usize = 2_000;

/// A scheduler of two servers, and its front.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    front: Option<JoinHandle<()>>,
    driver: Option<Driver>,
}

/// The scheduler's thread, on these records.
pub(crate) fn driver(path: &Path) -> Result<Driver, StartError> {
    let cluster: Cluster = "v100=2,k80=2".parse().unwrap();
    let cluster =
        cluster.with_workers_per_server("v100", 2).unwrap().with_workers_per_server("k80", 2).unwrap();
    let round = Seconds::new(0.4);
    let options = SchedulerOptions::default().with_round_length(round).with_reset_interval(round);
    let policy = || Catalog::embedded().policy("max_min_fairness_perf").unwrap();
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let scheduler = Scheduler::new(&cluster, throughputs, policy(), options).unwrap();
    // A crowded machine is slow, and no server of this test is ever silent.
    let settings = Settings { silence: Seconds::new(30.0), ..Settings::of_round(round) };
    Driver::start(settings, scheduler, Some(policy()), Vec::new(), path)
}

impl Served {
    pub(crate) fn start(folder: &Path, tokens: Option<Tokens>) -> Self {
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

    pub(crate) fn client(&self) -> Client {
        self.driver.as_ref().unwrap().client()
    }

    /// Sends bytes as they are, and reads the whole answer: status, head and body.
    pub(crate) fn raw(&self, request: &[u8]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        // A body that is refused may not be read to its end.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> (u16, Value) {
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

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, value) = self.ask("GET", path, &[], "");
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// The number of a job that is submitted and taken in.
    pub(crate) fn submit(&self, form: &Value) -> u64 {
        let (status, value) = self.ask("POST", "/v1/jobs", &[], &form.to_string());
        assert_eq!(status, 201, "{value}");
        value["job"].as_u64().unwrap()
    }

    /// Asks until the condition holds.
    pub(crate) fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
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

/// A job's submission.
pub(crate) fn form(name: &str, steps: u32) -> Value {
    json!({"name": name, "user": "ann", "key": name,
           "job": {"job_type": "ResNet-50 (batch size 64)", "total_steps": steps},
           "program": {"command": ["train", "--fast"], "environment": {"A": "b"}}})
}
