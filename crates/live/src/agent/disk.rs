//! The disk of an agent's folder: whether it has room for ranks to be started.

use std::path::PathBuf;

use apportion::Seconds;
use rustix::fs::statvfs;

/// The least room for a start, in bytes: the documents of a rank, and the room that is taken for documents written later.
const ROOM_MIN: u64 = 256 << 10;

/// The interval at which the disk is looked at.
const LOOK: Seconds = Seconds::new(1.0);

/// The disk of a folder.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    looked: Option<Seconds>,
    full: Option<String>,
}

impl Disk {
    pub(crate) fn of(folder: PathBuf) -> Self {
        Self { folder, looked: None, full: None }
    }

    /// Why nothing can be started, in words; none if there is room.
    pub(crate) fn full(&self) -> Option<&str> {
        self.full.as_deref()
    }

    /// Looks again if the last look was long ago. Returns whether the disk has become full, or has room again.
    pub(crate) fn look(&mut self, now: Seconds) -> bool {
        if self.looked.is_some_and(|at| now < at + LOOK) {
            return false;
        }
        self.looked = Some(now);
        let was_full = self.full.is_some();
        // If the system does not tell, a start that fails will.
        let is_full = statvfs(&self.folder).is_ok_and(|disk| {
            let has_names = disk.f_files == 0 || disk.f_favail > 0;
            disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM_MIN || !has_names
        });
        self.full = is_full.then(|| format!("the disk of {} is full", self.folder.display()));
        was_full != is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_looked_at_once_a_second_and_one_that_is_not_there_is_not_full() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = Disk::of(folder.path().join("none"));
        assert!(!disk.look(Seconds::ZERO) && disk.full().is_none());
        disk.full = Some("the disk of it is full".to_owned());
        assert!(!disk.look(Seconds::new(0.5)) && disk.full().is_some(), "not looked at yet");
        assert!(disk.look(Seconds::new(1.0)) && disk.full().is_none(), "there is room again");
    }
}
