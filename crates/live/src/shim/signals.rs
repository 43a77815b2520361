//! The signals by which a shim is told that its node, or its Slurm job, is to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::flag;

/// Tells whether SIGTERM or SIGUSR1 has come.
#[derive(Clone, Debug)]
pub(super) struct Told(Arc<AtomicBool>);

impl Told {
    /// Listens from now on; these signals do not end the process any more.
    pub(super) fn listen() -> io::Result<Self> {
        let told = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGUSR1] {
            flag::register(signal, Arc::clone(&told))?;
        }
        Ok(Self(told))
    }

    pub(super) fn is_told(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
