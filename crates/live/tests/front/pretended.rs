//! An agent without processes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use apportion::Seconds;
use apportion_live::agent::{Act, Agent, Server};
use apportion_live::clock::Clock;
use apportion_live::driver::Client;
use apportion_live::protocol::{End, Progress, Run};

/// An agent without programs: each of its ranks gains a number of steps at every report.
pub(crate) struct Pretended {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pretended {
    pub(crate) fn join(client: Client, name: &str, worker_type: &str) -> Self {
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
