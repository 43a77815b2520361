//! Reasons why results cannot be read or kept, with advice.

use std::path::Path;
use std::{fmt, fs, io};

use thiserror::Error;

use super::FILE;

/// Reason why results cannot be read or kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {path}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// Path of the file or folder.
        path: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The database library failed.
    #[error("cannot {action} {path}")]
    Database {
        /// The action that failed.
        action: &'static str,
        /// Path of the file.
        path: String,
        /// Cause.
        #[source]
        source: rusqlite::Error,
    },
    /// There is no results file.
    #[error("{path}{why}")]
    Missing {
        /// Path of the folder, or of the file given in its place.
        path: String,
        /// Description of what is there instead.
        why: Absence,
    },
    /// The file was not written by this program.
    #[error("{path} is not a results file of apportion: {what}")]
    Foreign {
        /// Path of the file.
        path: String,
        /// Reason why it is not a results file.
        what: String,
    },
    /// The content of a results file is broken.
    #[error("{path} is damaged: {what}")]
    Damaged {
        /// Path of the file.
        path: String,
        /// Description of the damage.
        what: String,
    },
    /// The results file has another format or is from another version.
    #[error("{path} was written by {found}, this is {expected}")]
    Version {
        /// Path of the file.
        path: String,
        /// Version that wrote the file.
        found: String,
        /// Version that reads the file.
        expected: String,
    },
    /// Two results of one run differ.
    #[error("{first} and {second} hold different results for the run {digest} ({run}): {what}")]
    Conflict {
        /// Digest that identifies the run.
        digest: String,
        /// Values of the run on the axes.
        run: String,
        /// Path of one file.
        first: String,
        /// Path of the other file.
        second: String,
        /// Description of the difference.
        what: String,
    },
    /// The results are those of another study.
    #[error("{path} holds results of another study: {what}")]
    OtherStudy {
        /// Path of the file.
        path: String,
        /// Description of the difference.
        what: String,
    },
    /// Results that are to be joined are those of two studies.
    #[error("{path} and {other} hold results of two studies: {what}")]
    TwoStudies {
        /// Path of one file.
        path: String,
        /// Path of the other file.
        other: String,
        /// Description of the difference.
        what: String,
    },
    /// Another process is writing.
    #[error("another sweep is writing to {path}")]
    Locked {
        /// Path of the folder.
        path: String,
    },
    /// Worker threads cannot be started.
    #[error("cannot start worker threads: {message}")]
    Threads {
        /// Cause.
        message: String,
    },
}

/// State of a path without results.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// It is a folder, or a file that no sweep has written.
    NoResults,
    /// There is nothing.
    NotThere,
    /// It is a link to this path, which does not exist.
    DeadLink(String),
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResults => write!(f, " holds no results: no {FILE}"),
            Self::NotThere => f.write_str(": there is no such file or folder"),
            Self::DeadLink(target) => write!(f, " is a link to `{target}`, which is not there"),
        }
    }
}

impl StoreError {
    /// The error for missing results: in this folder, or in the file given in its place.
    pub(super) fn missing(given: &Path) -> Self {
        let inside = given.join(FILE);
        let dead = |path: &&Path| !path.exists() && path.is_symlink();
        if let Some(path) = [given, &inside].into_iter().find(dead) {
            let target = fs::read_link(path).map(|target| target.display().to_string());
            let why = Absence::DeadLink(target.unwrap_or_default());
            return Self::Missing { path: path.display().to_string(), why };
        }
        let why = if given.exists() { Absence::NoResults } else { Absence::NotThere };
        Self::Missing { path: given.display().to_string(), why }
    }

    /// Advice for the user.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Foreign { .. } | Self::Damaged { .. } => Some(
                "nothing was changed; results are read where `apportion sweep` wrote them, and written elsewhere with `--out DIR`",
            ),
            Self::Version { .. } => {
                Some("results of two versions are not mixed; write elsewhere with `--out DIR`")
            }
            Self::OtherStudy { .. } => Some(
                "write elsewhere with `--out DIR` (Gavel's `--log-dir DIR`), or give the sweep another name",
            ),
            Self::TwoStudies { .. } => Some("nothing was joined; join the results of each study by itself"),
            Self::Locked { .. } => Some("wait for it, or write elsewhere with `--out DIR`"),
            Self::Conflict { .. } => Some(
                "nothing was joined; the same run gives the same numbers, so one of the two was changed or made by a changed program",
            ),
            Self::Missing { why: Absence::NoResults, .. } => Some("`apportion sweep` writes them"),
            Self::Missing { .. } => {
                Some("give the folder that `apportion sweep` wrote, or the results.sqlite in it")
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                Some("a folder is where a file of the results is to be: write elsewhere with `--out DIR`")
            }
            Self::Io { .. } | Self::Database { .. } | Self::Threads { .. } => None,
        }
    }

    /// The error of an unreadable file as that of a file without results, unless reading is not permitted.
    pub(super) fn into_no_results(self) -> Self {
        match self {
            Self::Io { path, source, .. } if source.kind() != io::ErrorKind::PermissionDenied => {
                Self::Foreign { path, what: format!("it cannot be read: {source}") }
            }
            error => error,
        }
    }

    /// The error about a file, with a note where the results are in the file beside it.
    pub(super) fn beside(self, file: &Path) -> Self {
        match self {
            Self::Foreign { path, what } if file.with_file_name(FILE).is_file() => {
                Self::Foreign { path, what: format!("{what}, as {FILE} beside it is") }
            }
            error => error,
        }
    }

    /// Whether the input is at fault, and not the machine.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Foreign { .. }
            | Self::Damaged { .. }
            | Self::Version { .. }
            | Self::OtherStudy { .. }
            | Self::TwoStudies { .. }
            | Self::Conflict { .. }
            | Self::Missing { .. } => true,
            // A folder where a file is to be is the user's choice of a place.
            Self::Io { action, source, .. } => {
                *action == "read" || source.kind() == io::ErrorKind::IsADirectory
            }
            Self::Database { .. } | Self::Locked { .. } | Self::Threads { .. } => false,
        }
    }
}
