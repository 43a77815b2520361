//! The signals by which a shim learns that its node, or its Slurm job, is to end.

use std::env;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, getppid};
use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::flag;

/// The environment variable with the number of the Slurm job's own process, which is set for shims that a Slurm job starts.
pub(super) const PARENT: &str = "APPORTION_SHIM_PARENT";

/// Whether this process is a shim that a Slurm job has started.
pub(super) fn is_of_slurm() -> bool {
    env::var_os(PARENT).is_some()
}

/// A record of whether SIGTERM or SIGUSR1 has come, and whether the Slurm job's own process is gone.
#[derive(Clone, Debug)]
pub(super) struct Told {
    flag: Arc<AtomicBool>,
    parent: Option<Pid>,
}

impl Told {
    /// Listens from now on; these signals do not end the process any more.
    pub(super) fn listen() -> io::Result<Self> {
        let told = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGUSR1] {
            flag::register(signal, Arc::clone(&told))?;
        }
        let parent = env::var_os(PARENT).and_then(|parent| Pid::from_raw(parent.to_str()?.parse().ok()?));
        Ok(Self { flag: told, parent })
    }

    /// Whether the Slurm job's own process is gone. Slurm then takes the job for over, and gives its workers to another.
    pub(super) fn is_orphaned(&self) -> bool {
        self.parent.is_some() && getppid() != self.parent
    }

    pub(super) fn is_told(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}
