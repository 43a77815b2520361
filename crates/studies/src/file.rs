//! Files that a user names for results: a regular file is replaced as a whole or not at all, anything else is written into.
//!
//! A file that is there, or is not yet, is replaced by a temporary one beside it once that is whole. A link stays, and
//! what it points at is replaced; permissions are kept. A device, a pipe or a descriptor (`/dev/stdout`, `/dev/fd/63`) is
//! opened and written to: there is nothing to replace.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Suffix of the name of an incomplete file. Such a name begins with a dot and the name of the complete file.
pub const PARTIAL: &str = ".partial";

/// The most links that are followed from one path.
const LINKS_MAX: usize = 40;
/// The most letters of a file's name that are part of its temporary name.
const NAME_MAX: usize = 60;

/// Writes a file.
///
/// # Errors
/// If it cannot be written; a regular one then stays as it was.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(bytes)?;
    file.keep().map(|_| ())
}

/// Checks whether a file can be written, and leaves everything as it was. Only regular files are tried.
///
/// # Errors
/// Fails as [`NewFile::create`] does.
pub fn check(path: &Path) -> io::Result<()> {
    let is_stream = fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
    if is_stream || is_descriptor(path) { Ok(()) } else { NewFile::create(path).map(drop) }
}

/// Files and folders of a command that may be refused yet: what was not there before is removed unless it is kept.
#[derive(Debug, Default)]
pub struct Made {
    paths: Vec<PathBuf>,
}

impl Made {
    /// Notes a path, and the folders to it, before they are made: those of them that are not there.
    pub fn note(&mut self, path: &Path) {
        let is_missing = |path: &&Path| {
            let error = path.symlink_metadata().err();
            error.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let missing: Vec<&Path> = path.ancestors().take_while(is_missing).collect();
        self.paths.extend(missing.into_iter().rev().map(Path::to_owned));
    }

    /// Notes a path that was made just now.
    pub fn add(&mut self, path: PathBuf) {
        self.paths.push(path);
    }

    /// Lets all of it stay.
    pub fn keep(mut self) {
        self.paths.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in self.paths.iter().rev() {
            // A folder with files of others stays.
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
    }
}

/// A path with all links resolved, also for a file that does not exist yet.
pub fn place(path: &Path) -> PathBuf {
    if let Ok(there) = fs::canonicalize(path) {
        return there;
    }
    let end = end_of_links(path).unwrap_or_else(|_| path.to_owned());
    let folder = end.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (fs::canonicalize(folder), end.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => end,
    }
}

/// A file that is being written. If dropped before it is kept, it leaves a regular file as it was.
#[derive(Debug)]
pub enum NewFile {
    /// A temporary file that will replace a regular file.
    Whole {
        /// Temporary file with the content so far.
        temporary: NamedTempFile,
        /// Path of the regular file, with links resolved.
        target: PathBuf,
    },
    /// An open file that is written into directly.
    Stream(File),
}

impl NewFile {
    /// Begins a file at a path.
    ///
    /// # Errors
    /// If it cannot be written there.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path
            .as_os_str()
            .as_encoded_bytes()
            .last()
            .is_some_and(|last| std::path::is_separator(char::from(*last)))
        {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if let Some(stream) = descriptor(path)? {
            return Ok(Self::Stream(stream));
        }
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => Ok(Self::Stream(OpenOptions::new().append(true).open(path)?)),
            Ok(there) => {
                // A rename would succeed even where the file may not be written.
                OpenOptions::new().append(true).open(path)?;
                Self::beside(fs::canonicalize(path)?, Some(&there))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::beside(end_of_links(path)?, None),
            Err(error) => Err(error),
        }
    }

    fn beside(target: PathBuf, replaced: Option<&fs::Metadata>) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy();
        let prefix: String = [".", &name, "."].concat().chars().take(NAME_MAX).collect();
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(PARTIAL);
        #[cfg(unix)]
        if replaced.is_none() {
            use std::os::unix::fs::PermissionsExt as _;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let temporary = builder.tempfile_in(folder).map_err(|error| {
            // The name of the temporary file would mean nothing to the user.
            let cause = error.to_string();
            let cause = cause.split(" at path ").next().unwrap_or_default();
            io::Error::new(error.kind(), format!("no file can be made in {}: {cause}", folder.display()))
        })?;
        if let Some(replaced) = replaced {
            take_over(temporary.as_file(), replaced)?;
        }
        Ok(Self::Whole { temporary, target })
    }

    /// Puts the file in its place. Returns the open file.
    ///
    /// # Errors
    /// If that fails; a regular file then stays as it was.
    pub fn keep(mut self) -> io::Result<File> {
        self.flush()?;
        match self {
            Self::Whole { temporary, target } => temporary.persist(target).map_err(|error| error.error),
            Self::Stream(file) => Ok(file),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Whole { temporary, .. } => temporary.as_file_mut().write(bytes),
            Self::Stream(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Whole { temporary, .. } => temporary.as_file_mut().flush(),
            Self::Stream(file) => file.flush(),
        }
    }
}

/// Gives a file the permissions of the one that it replaces and, where that is allowed, its owner.
fn take_over(file: &File, replaced: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (replaced.uid(), replaced.gid()) {
            let _ = fchown(file, Some(replaced.uid()), Some(replaced.gid()));
        }
    }
    file.set_permissions(replaced.permissions())
}

/// Whether a path names a descriptor of this process.
fn is_descriptor(path: &Path) -> bool {
    let folders = [Path::new("/dev/fd"), Path::new("/proc/self/fd")];
    let names = [Path::new("/dev/stdout"), Path::new("/dev/stderr")];
    cfg!(unix) && (names.contains(&path) || folders.iter().any(|folder| path.parent() == Some(folder)))
}

/// The open file of a path that names a descriptor of this process; none for other paths.
#[cfg(unix)]
fn descriptor(path: &Path) -> io::Result<Option<File>> {
    use std::os::fd::AsFd as _;
    // If standard output is a file, opening it again would overwrite it from its start.
    let folders = [Path::new("/dev/fd"), Path::new("/proc/self/fd")];
    let is = |name: &str, number: &str| {
        path == Path::new(name) || folders.iter().any(|folder| path == folder.join(number))
    };
    let owned = if is("/dev/stdout", "1") {
        io::stdout().as_fd().try_clone_to_owned()?
    } else if is("/dev/stderr", "2") {
        io::stderr().as_fd().try_clone_to_owned()?
    } else if folders.iter().any(|folder| path.parent() == Some(folder)) {
        return OpenOptions::new().append(true).open(path).map(Some);
    } else {
        return Ok(None);
    };
    Ok(Some(owned.into()))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as where there are descriptors")]
fn descriptor(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// End of a path's links, at a file that does not exist.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidFilename, "its links go round in a circle"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::process::Command;
    use std::thread;

    use tempfile::TempDir;

    use super::*;

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    #[test]
    fn a_link_stays_and_what_it_points_at_is_written() {
        let folder = TempDir::new().unwrap();
        for (link, target) in [("old", "there"), ("new", "not-there-yet")] {
            symlink(target, folder.path().join(link)).unwrap();
        }
        fs::write(folder.path().join("there"), "before").unwrap();
        write(&folder.path().join("old"), b"1").unwrap();
        write(&folder.path().join("new"), b"2").unwrap();
        assert_eq!(names(&folder), ["new", "not-there-yet", "old", "there"]);
        assert!(["new", "old"].iter().all(|name| folder.path().join(name).is_symlink()));
        assert_eq!(fs::read_to_string(folder.path().join("there")).unwrap(), "1");
        assert_eq!(fs::read_to_string(folder.path().join("not-there-yet")).unwrap(), "2");
        symlink("loop", folder.path().join("loop")).unwrap();
        assert!(write(&folder.path().join("loop"), b"3").is_err());
    }

    #[test]
    fn a_pipe_is_written_into_and_stays() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let reader = thread::spawn({
            let path = path.clone();
            move || fs::read_to_string(path).unwrap()
        });
        write(&path, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert_eq!(names(&folder), ["pipe"]);
        assert!(!fs::metadata(&path).unwrap().is_file());
    }

    #[test]
    fn permissions_are_kept_and_a_new_file_has_those_of_any_other() {
        let folder = TempDir::new().unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o7777;
        fs::write(folder.path().join("plain"), "").unwrap();
        fs::write(folder.path().join("secret"), "").unwrap();
        fs::set_permissions(folder.path().join("secret"), fs::Permissions::from_mode(0o640)).unwrap();
        write(&folder.path().join("secret"), b"x").unwrap();
        write(&folder.path().join("new"), b"x").unwrap();
        assert_eq!((mode("secret"), mode("new")), (0o640, mode("plain")));
    }

    #[test]
    fn what_is_not_kept_leaves_nothing_and_files_of_others_are_not_touched() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "before").unwrap();
        fs::write(folder.path().join("x.partial"), "mine").unwrap();
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        write(&path, b"after").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(fs::read_to_string(folder.path().join("x.partial")).unwrap(), "mine");
        assert_eq!(names(&folder), ["x", "x.partial"]);
    }

    #[test]
    fn what_a_refused_command_made_is_removed_and_nothing_else() {
        let folder = TempDir::new().unwrap();
        let make = |keep: bool| {
            let mut made = Made::default();
            for name in ["there", "a/b/own", "a/b/own-too"] {
                made.note(&folder.path().join(name));
            }
            fs::create_dir_all(folder.path().join("a/b")).unwrap();
            for name in ["there", "a/b/own", "a/b/own-too"] {
                fs::write(folder.path().join(name), "").unwrap();
            }
            if keep { made.keep() } else { drop(made) }
        };
        fs::write(folder.path().join("there"), "").unwrap();
        make(false);
        assert_eq!(names(&folder), ["there"]);
        make(true);
        assert_eq!(names(&folder), ["a", "there"]);
        make(false);
        assert!(folder.path().join("a/b/own").is_file());
    }

    #[test]
    fn a_path_leads_to_one_place_however_it_is_spelt() {
        let folder = TempDir::new().unwrap();
        let at = fs::canonicalize(folder.path()).unwrap();
        symlink("new", at.join("link")).unwrap();
        symlink(".", at.join("here")).unwrap();
        for name in ["new", "./new", "link", "here/new", "here/link"] {
            assert_eq!(place(&at.join(name)), at.join("new"), "{name}");
        }
        assert_eq!(place(Path::new("not-there")), fs::canonicalize(".").unwrap().join("not-there"));
        assert!(check(&at.join("new")).is_ok() && check(Path::new("/dev/stdout")).is_ok());
        for name in ["absent/new", "here/", "absent/"] {
            assert!(check(&at.join(name)).is_err(), "{name}");
        }
        assert_eq!(names(&folder), ["here", "link"]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = TempDir::new().unwrap();
        let error = write(&folder.path().join("absent/x"), b"").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("absent: No such file"), "{error}");
        assert_eq!(write(folder.path(), b"").unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert!(names(&folder).is_empty());
    }
}
