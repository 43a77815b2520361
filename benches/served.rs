//! A live scheduler in service: its driver on a store on disk, its front, and the pretend cluster's agents.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use apportion::{Catalog, Seconds};
use apportion_live::clock::Clock;
use apportion_live::core::{Answer, Request, Settings, Submission};
use apportion_live::driver::{Client, Driver};
use apportion_live::front::{self, Options};
use apportion_live::protocol::{JobNumber, Orders};

use crate::pretend::{BEAT, Node, POLICY, ROUND, Work, Works, nodes, scheduler};

/// Workers on each server.
const PER_SERVER: u32 = 4;

/// A running scheduler, its front, and its agents once they are started.
#[derive(Debug)]
pub struct Served {
    driver: Option<Driver>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    address: SocketAddr,
    works: Works,
}

impl Served {
    /// Starts a scheduler and its front. The scheduler's records are in `folder`.
    pub fn start(folder: &Path) -> Self {
        let policy = Catalog::embedded().policy(POLICY).unwrap();
        let settings = Settings::of_round(Seconds::new(ROUND));
        let path = folder.join("scheduler.sqlite");
        let driver = Driver::start(settings, scheduler(PER_SERVER), Some(policy), Vec::new(), &path).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (client, until) = (driver.client(), Arc::clone(&stop));
        let front =
            thread::spawn(move || front::serve(client, listener, Options::default(), &until).unwrap());
        Self { driver: Some(driver), stop, threads: vec![front], address, works: Works::new() }
    }

    /// A client of the scheduler.
    pub fn client(&self) -> Client {
        self.driver.as_ref().unwrap().client()
    }

    /// Submits a job with these steps/s by worker type, and waits until it is acknowledged.
    pub fn submit(&mut self, submission: Submission, speeds: [f64; 3]) -> JobNumber {
        let answer = self.client().ask(Request::Submit(Box::new(submission))).unwrap();
        let Ok(Answer::Submitted { job, .. }) = answer else { panic!("{answer:?}") };
        self.works.insert(job, Work { speeds, saved: 0.0 });
        job
    }

    /// Starts the agents of all servers, on a thread. They know only the jobs that have been submitted before.
    pub fn join(&mut self) {
        let client = self.client();
        let (works, stop) = (self.works.clone(), Arc::clone(&self.stop));
        let listen = |node: Node| {
            let orders = client.listen(node.name()).unwrap();
            (node, orders)
        };
        let nodes = nodes(PER_SERVER).into_iter().map(listen).collect();
        self.threads.push(thread::spawn(move || report(nodes, &client, works, &stop)));
    }

    /// The body of the answer to a request.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        body.to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        drop(self.driver.take());
    }
}

/// Reports from a part of the servers at a time, each once a beat, and takes the orders that have come, until `stop`.
fn report(mut nodes: Vec<(Node, Receiver<Orders>)>, client: &Client, mut works: Works, stop: &AtomicBool) {
    let clock = Clock::at(Seconds::ZERO);
    let parts = 10 * BEAT;
    for part in (0..parts).cycle() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        for (node, orders) in nodes.iter_mut().skip(part).step_by(parts) {
            for orders in orders.try_iter() {
                node.take(clock.now().get(), &orders, &works);
            }
            client.report(node.report(clock.now().get(), &mut works)).unwrap();
        }
        thread::park_timeout(Duration::from_millis(100));
    }
}
