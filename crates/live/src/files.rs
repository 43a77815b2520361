//! Documents that are read and written whole, and locks.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a document.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::from)
}

/// Writes a document under a temporary name and renames it, so that half of it is never read.
pub(crate) fn write<T: Serialize>(path: &Path, document: &T) -> io::Result<()> {
    replace(path, document, false)
}

/// Writes a document as [`write`] does, and returns when it is on disk.
pub(crate) fn write_durably<T: Serialize>(path: &Path, document: &T) -> io::Result<()> {
    replace(path, document, true)?;
    path.parent().map_or(Ok(()), sync_folder)
}

fn replace<T: Serialize>(path: &Path, document: &T, durable: bool) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let written = (|| {
        let mut file = File::create(&name)?;
        file.write_all(&serde_json::to_vec(document)?)?;
        if durable { file.sync_all() } else { Ok(()) }
    })();
    let renamed = written.and_then(|()| fs::rename(&name, path));
    if renamed.is_err() {
        // On a full disk, half a file is in the way.
        let _ = fs::remove_file(&name);
    }
    renamed
}

/// Writes `n_bytes` blanks to a file: [`write_into`] or [`write_in_any_case`] later puts a document there, even on a full disk.
pub(crate) fn take_room(room: &Path, n_bytes: usize) -> io::Result<()> {
    let mut file = File::create(room)?;
    file.write_all(&vec![b' '; n_bytes])?;
    file.sync_all()
}

/// Writes a document into a file of blanks by [`take_room`], and renames that: this takes no more of the disk. It returns when the
/// document is on disk.
pub(crate) fn write_into<T: Serialize>(room: &Path, path: &Path, document: &T) -> io::Result<()> {
    let mut text = serde_json::to_vec(document)?;
    let mut file = File::options().write(true).open(room)?;
    let n_bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if text.len() > n_bytes {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the document is longer than its room"));
    }
    // Blanks behind a document are not part of it.
    text.resize(n_bytes, b' ');
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(room, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Writes a document as [`write`] does; where the disk is full, into one of the files of blanks by [`take_room`]. The document that
/// is replaced then serves as room for the next one.
pub(crate) fn write_in_any_case<T: Serialize>(
    rooms: &[PathBuf],
    path: &Path,
    document: &T,
) -> io::Result<()> {
    write(path, document).or_else(|error| {
        let room = rooms.iter().find(|room| room.exists()).ok_or(error)?;
        let mut text = serde_json::to_vec(document)?;
        let mut file = File::options().write(true).open(room)?;
        // Blanks behind a document are not part of it.
        text.resize(text.len().max(usize::try_from(file.metadata()?.len()).unwrap_or(0)), b' ');
        file.write_all(&text)?;
        let swapped = renameat_with(CWD, room, CWD, path, RenameFlags::EXCHANGE);
        // There is nothing to swap with at first, and some file systems cannot.
        swapped.map_err(io::Error::from).or_else(|_| fs::rename(room, path))
    })
}

/// Returns when the names in a folder are on disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The file, locked until it is dropped; none if another holds the lock.
pub(crate) fn try_lock(file: File) -> io::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The version of a file: it differs after the file has been replaced by renaming.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version(Option<(u64, i64, i64, u64)>);

impl Version {
    /// The version of a file as it is now; all absent files have the same. The file is opened for it: on a network's file system,
    /// only that asks the server for changes by another node.
    pub(crate) fn of(path: &Path) -> Self {
        let of = |data: Metadata| (data.ino(), data.mtime(), data.mtime_nsec(), data.len());
        Self(File::open(path).and_then(|file| file.metadata()).ok().map(of))
    }

    /// Whether the file exists.
    pub(crate) fn is_there(self) -> bool {
        self.0.is_some()
    }
}
