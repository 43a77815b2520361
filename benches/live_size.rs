//! Measurement of the answers and the memory of a live scheduler with 10,000 active jobs.
//!
//! `cargo run --release -p apportion-benches --no-default-features --example live_size`

#![expect(clippy::unwrap_used, reason = "a measurement of known inputs")]
#![expect(clippy::print_stdout, reason = "what it is for")]

use std::fs::File;
use std::io::{Seek, Write};
use std::thread;
use std::time::Duration;

use apportion_benches::pretend::Jobs;
use apportion_benches::served::Served;
use apportion_benches::usage::{resident_mb, time};
use serde_json::Value;

/// The number of active jobs.
const JOBS: usize = 10_000;

/// The number of workers that must be held before answers are measured.
const HELD: usize = 450;

/// The number of last submissions, each of which is followed by a page that is synced.
const SYNCS: usize = 1_000;

/// The number of times that each path is asked for.
const REPEATS: usize = 50;

fn main() {
    println!("resident before: {:.0} MB", resident_mb());
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::start(folder.path());
    println!("resident with a scheduler: {:.0} MB", resident_mb());
    let mut jobs = Jobs::new();
    let took = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        format!("median {:.1} ms, longest {:.1} ms", times[times.len() / 2], times[times.len() - 1])
    };
    let (mut times, mut beside, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    let mut file = File::create(folder.path().join("page")).unwrap();
    for number in 0..JOBS {
        // Jobs are so long that none ends.
        let (submission, speeds) = jobs.next(1_000.0);
        let before = time();
        served.submit(submission, speeds);
        let submitted = time();
        if number < JOBS - SYNCS {
            times.push(submitted.saturating_sub(before).as_secs_f64() * 1e3);
            continue;
        }
        beside.push(submitted.saturating_sub(before).as_secs_f64() * 1e3);
        file.rewind().unwrap();
        file.write_all(&[1; 4096]).unwrap();
        file.sync_data().unwrap();
        syncs.push(time().saturating_sub(submitted).as_secs_f64() * 1e3);
    }
    println!("submissions: {}", took(&mut times));
    println!("submissions in turn with the next: {}", took(&mut beside));
    println!("a page replaced and synced: {}", took(&mut syncs));
    println!("resident with {JOBS} jobs: {:.0} MB", resident_mb());
    served.join();
    while held(&served) < HELD {
        thread::park_timeout(Duration::from_secs(1));
    }
    for path in ["/v1/jobs", "/v1/servers", "/v1/next", "/metrics", "/", "/v1/jobs/7"] {
        let mut times = Vec::new();
        let mut bytes = 0;
        for _ in 0..REPEATS {
            let before = time();
            bytes = served.get(path).len();
            times.push(time().saturating_sub(before).as_secs_f64() * 1e3);
        }
        println!("GET {path}: {bytes} bytes, {}", took(&mut times));
    }
    println!("resident after: {:.0} MB, agents included", resident_mb());
}

/// The number of workers that hold a job.
fn held(served: &Served) -> usize {
    let servers: Vec<Value> = serde_json::from_str(&served.get("/v1/servers")).unwrap();
    let jobs = servers.iter().flat_map(|server| server["jobs"].as_array().unwrap());
    jobs.filter(|jobs| !jobs.as_array().unwrap().is_empty()).count()
}
