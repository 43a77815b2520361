//! Processes as the system shows them, and the signals that they are sent.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

/// The environment variable that names the folder of a rank to its program, and to all that this starts.
pub(crate) const LEASE: &str = "APPORTION_LEASE";

/// A process: its number, and its start, by which it differs from a later process with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// The instant of its start, in the kernel's units since the start of the server.
    pub(crate) started: u64,
}

/// A process that exists, as `/proc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) identity: Identity,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Whether it is dead and its parent has not yet asked how it ended.
    is_dead: bool,
}

impl Seen {
    /// The process with this number, if there is one.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The process of a line `PID (NAME) STATE PARENT GROUP SESSION …`; the name may hold anything, parentheses as well.
    fn parse(pid: i32, line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |place: usize| -> Option<i32> { fields.get(place)?.parse().ok() };
        let started = fields.get(19)?.parse().ok()?;
        Some(Self {
            identity: Identity { pid, started },
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            is_dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        })
    }

    /// The folder of the rank that it was started by, as its environment named it at its start; none where that cannot be read, as of
    /// processes of other users.
    fn rank_folder(&self) -> Option<PathBuf> {
        let environment = fs::read(format!("/proc/{}/environ", self.identity.pid)).ok()?;
        let value =
            |variable: &[u8]| variable.strip_prefix(LEASE.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
        environment.split(|byte| *byte == 0).find_map(value).map(|path| OsString::from_vec(path).into())
    }

    /// Sends it a signal. It is no error if the process is gone meanwhile.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.identity.pid) {
            let _ = kill_process(pid, signal);
        }
    }
}

/// Whether a signal would end a process: it neither handles, nor ignores, nor blocks it. False for a process that is gone.
pub(crate) fn dies_of(pid: i32, signal: Signal) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    is_deadly(&status, signal.as_raw())
}

/// Whether none of the sets of signals in a process's status contains this signal.
fn is_deadly(status: &str, signal: i32) -> bool {
    let has_signal = |line: &str| {
        let set = ["SigBlk:", "SigIgn:", "SigCgt:"].iter().find_map(|name| line.strip_prefix(name))?;
        let set = u64::from_str_radix(set.trim(), 16).ok()?;
        Some(set >> (signal - 1) & 1 == 1)
    };
    let sets: Vec<bool> = status.lines().filter_map(has_signal).collect();
    sets.len() == 3 && !sets.contains(&true)
}

/// All processes that live.
pub(crate) fn living() -> Vec<Seen> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pid = |name: &str| name.parse().ok();
    let names = entries.flatten().filter_map(|entry| pid(entry.file_name().to_str()?));
    names.filter_map(Seen::of).filter(|seen| !seen.is_dead).collect()
}

/// Kills all processes of ranks whose folders were in `ranks` and are not there any more. Answers how many were left.
pub(crate) fn kill_without_folder(ranks: &Path) -> usize {
    let is_lost = |seen: &Seen| {
        seen.rank_folder().is_some_and(|folder| folder.parent() == Some(ranks) && !folder.exists())
    };
    let lost: Vec<Seen> = living().into_iter().filter(is_lost).collect();
    for seen in &lost {
        seen.signal(Signal::KILL);
    }
    lost.len()
}

/// Sends a signal to a process group. It is no error if the group is gone meanwhile.
pub(crate) fn signal_group(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = kill_process_group(group, signal);
    }
}

/// An identifier of this start of the server.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The processes of a rank: a shim, whose number is that of a session, and its program, whose number is that of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owned {
    /// An identifier of the server's start: process numbers mean nothing after another one.
    pub(crate) boot_id: String,
    pub(crate) shim: Identity,
    pub(crate) program: Identity,
}

impl Owned {
    /// Kills what is left of the rank of this folder, whose shim is gone. Answers whether nothing was left.
    ///
    /// A process is the rank's if it is of its group *and* of its session, in the same start of the server, or if it was started
    /// with the rank's folder in its environment. The number of a group is not given out again as long as the group has members, so
    /// a leader that was started at another time shows that all of the group's are gone.
    pub(crate) fn kill_rest(&self, folder: &Path) -> bool {
        if self.boot_id != boot_id() {
            return true;
        }
        let program = self.program;
        let is_reused = Seen::of(program.pid).is_some_and(|seen| seen.identity != program);
        let is_of_group = |seen: &Seen| {
            !is_reused
                && seen.group == program.pid
                && seen.session == self.shim.pid
                && seen.identity.started >= program.started
        };
        let is_of_rank = |seen: &Seen| is_of_group(seen) || seen.rank_folder().is_some_and(|of| of == folder);
        let left: Vec<Seen> = living().into_iter().filter(is_of_rank).collect();
        if left.iter().any(is_of_group) {
            signal_group(program.pid, Signal::KILL);
        }
        for seen in &left {
            seen.signal(Signal::KILL);
        }
        left.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let line = "17 (a) b (c)) S 1 15 14 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 9 9";
        let seen = Seen::parse(17, line).unwrap();
        let identity = Identity { pid: 17, started: 12345 };
        assert_eq!(seen, Seen { identity, parent: 1, group: 15, session: 14, is_dead: false });
        assert!(Seen::parse(17, "17 (x) Z 1 15 14 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 1").unwrap().is_dead);
        assert_eq!(Seen::parse(17, "17 (x"), None);
    }

    #[test]
    fn a_signal_ends_what_has_made_no_arrangement_for_it() {
        let status = |blocked: &str, ignored: &str, caught: &str| {
            format!(
                "Name:\tx\nSigPnd:\t0000000000004000\nSigBlk:\t{blocked}\nSigIgn:\t{ignored}\nSigCgt:\t{caught}\n"
            )
        };
        let (none, term, others) = ("0000000000000000", "0000000000004000", "0000000180000002");
        let (deadly, number) = (status(none, others, others), Signal::TERM.as_raw());
        assert!(is_deadly(&deadly, number));
        for kept in [status(term, none, none), status(none, term, none), status(none, none, term)] {
            assert!(!is_deadly(&kept, number), "{kept}");
        }
        assert!(!is_deadly("Name:\tx\n", number), "what is not known");
    }

    #[test]
    fn the_signals_of_a_process_are_read() {
        use std::process::{Command, Stdio};
        for (script, dies) in [("echo; exec sleep 60", true), ("trap : TERM; echo; sleep 60; :", false)] {
            let mut shell = Command::new("/bin/sh");
            let mut child = shell.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
            // Its first output means that its signal handling is set up.
            let mut word = [0];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
            assert_eq!(dies_of(i32::try_from(child.id()).unwrap(), Signal::TERM), dies, "{script}");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(!dies_of(i32::MAX, Signal::TERM));
    }

    #[test]
    fn processes_of_another_start_of_the_server_are_not_ours() {
        let own = Seen::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        let (shim, program) = (Identity { pid: own.session, started: 0 }, own.identity);
        // Were it taken for ours, this test would be killed.
        let folder = Path::new("/no/such/rank");
        assert!(Owned { boot_id: "another".to_owned(), shim, program }.kill_rest(folder));
        let earlier = Identity { started: program.started - 1, ..program };
        assert!(Owned { boot_id: boot_id(), shim, program: earlier }.kill_rest(folder));
    }
}
