//! Time and memory that this process has used.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time of all threads of this process.
pub fn processor_time() -> Duration {
    time_of(ClockId::ProcessCPUTime)
}

/// Time since a fixed, arbitrary instant.
pub fn time() -> Duration {
    time_of(ClockId::Monotonic)
}

fn time_of(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Resident memory of this process now, in MB.
pub fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib * 1024.0 / 1e6
}
