//! The guard of a shim: its parent, which kills what the shim leaves behind.

use std::env;
use std::process::{Command, Stdio};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, set_child_subreaper, setsid, wait};

use crate::process::living;
use crate::shim::{LOOK, ShimError, failed};

/// The environment variable with the number of the guard, which is set for the shim only.
pub(super) const GUARD: &str = "APPORTION_SHIM_GUARD";

/// Whether this process is the child of a guard.
pub(super) fn is_guarded() -> bool {
    let guard = env::var_os(GUARD).and_then(|guard| Pid::from_raw(guard.to_str()?.parse().ok()?));
    guard.is_some() && getppid() == guard
}

/// Starts the shim by the command line of this process, and returns when neither the shim nor any process that it left behind
/// lives.
///
/// The guard adopts what a killed shim leaves behind (`PR_SET_CHILD_SUBREAPER`), also processes that have left the program's group
/// and session. It writes no end: that the shim is gone, an agent finds by its lock.
pub(super) fn guard() -> Result<(), ShimError> {
    // An agent may have started it as the leader of a session already.
    let _ = setsid();
    set_child_subreaper(Some(getpid())).map_err(|error| failed("adopting processes")(error.into()))?;
    let mut shim = Command::new("/proc/self/exe");
    shim.args(env::args_os().skip(1)).env(GUARD, getpid().to_string()).stdin(Stdio::null());
    let status = shim.spawn().and_then(|mut shim| shim.wait()).map_err(failed("the shim"))?;
    let own = getpid().as_raw_nonzero().get();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(None) => {
                for left in living().iter().filter(|seen| seen.parent == own) {
                    left.signal(Signal::KILL);
                }
                thread::sleep(LOOK);
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    if status.success() { Ok(()) } else { Err(ShimError::Ended(status.to_string())) }
}
