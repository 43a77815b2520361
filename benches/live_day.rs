//! Measurement of memory and disk that a live scheduler takes, and their growth, in a day on a pretend clock.
//!
//! `cargo run --release -p apportion-benches --no-default-features --example live_day`

#![expect(clippy::unwrap_used, reason = "a measurement of known inputs")]
#![expect(clippy::print_stdout, reason = "what it is for")]

use std::path::Path;

use apportion_benches::pretend::World;
use apportion_benches::usage::{processor_time, resident_mb};
use apportion_live::store::Store;

/// Length of the pretended time, h.
const HOURS: usize = 24;

/// Interval between measurements, h.
const LOOK: usize = 4;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    let mut world = World::new(4, (1_000, 1.0), Some(Store::open(&path).unwrap()));
    println!(
        "hours, resident MB, letters of the core, state kB, file MB, log MB, jobs over, job writes, events, event MB, notes, \
         commits, median decision ms, longest, processor s"
    );
    let mut decisions = Vec::new();
    for hour in (0..=HOURS).step_by(LOOK) {
        while world.now() < 3600.0 * hour as f64 {
            decisions.push(world.round().decision.as_secs_f64() * 1e3);
        }
        decisions.sort_by(f64::total_cmp);
        let median = decisions.get(decisions.len() / 2).copied().unwrap_or_default();
        let longest = decisions.last().copied().unwrap_or_default();
        decisions.clear();
        let letters = format!("{:?}", world.core()).len();
        let records = world.records;
        println!(
            "{hour}, {:.1}, {letters}, {:.0}, {:.1}, {:.1}, {}, {}, {}, {:.1}, {}, {}, {median:.1}, {longest:.1}, {:.0}",
            resident_mb(),
            records.state_bytes as f64 / 1e3,
            size_mb(&path),
            size_mb(&folder.path().join("scheduler.sqlite-wal")),
            records.over,
            records.jobs,
            records.events,
            records.event_bytes as f64 / 1e6,
            records.notes,
            records.commits,
            processor_time().as_secs_f64(),
        );
    }
}

fn size_mb(path: &Path) -> f64 {
    path.metadata().map_or(0.0, |file| file.len() as f64 / 1e6)
}
