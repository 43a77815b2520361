//! Why results cannot be read or kept, and what to do about it.

use std::path::Path;
use std::{fmt, fs, io};

use thiserror::Error;

use super::FILE;

/// Why results cannot be read or kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {path}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// Where.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The database library failed.
    #[error("cannot {action} {path}")]
    Database {
        /// The action that failed.
        action: &'static str,
        /// Where.
        path: String,
        /// Why not.
        #[source]
        source: rusqlite::Error,
    },
    /// There is no results file.
    #[error("{path}{why}")]
    Missing {
        /// The folder, or the file that was to be one.
        path: String,
        /// What is there in its place.
        why: Absence,
    },
    /// A file that this program did not write.
    #[error("{path} is not a results file of apportion: {what}")]
    Foreign {
        /// The file.
        path: String,
        /// Why it is no results file, in words.
        what: String,
    },
    /// A results file whose content is broken.
    #[error("{path} is damaged: {what}")]
    Damaged {
        /// The file.
        path: String,
        /// The damage, in words.
        what: String,
    },
    /// A results file in another format or by another version.
    #[error("{path} was written by {found}, this is {expected}")]
    Version {
        /// The file.
        path: String,
        /// The version that wrote the file.
        found: String,
        /// The version that reads the file.
        expected: String,
    },
    /// Two results for one run, which has only one.
    #[error("{first} and {second} hold different results for the run {digest} ({run}): {what}")]
    Conflict {
        /// The run's identity.
        digest: String,
        /// Its values on the axes.
        run: String,
        /// A file.
        first: String,
        /// Another.
        second: String,
        /// The difference, in words.
        what: String,
    },
    /// Results of another study.
    #[error("{path} holds results of another study: {what}")]
    OtherStudy {
        /// The file.
        path: String,
        /// The difference, in words.
        what: String,
    },
    /// Another process is writing.
    #[error("another sweep is writing to {path}")]
    Locked {
        /// The folder.
        path: String,
    },
    /// No worker threads.
    #[error("cannot start worker threads: {message}")]
    Threads {
        /// Why not.
        message: String,
    },
}

/// What is where there are no results.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// A folder, or nothing that a sweep has written.
    NoResults,
    /// Nothing.
    NotThere,
    /// A link to this, which is not there.
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
    /// No results where they were looked for: in this folder, or in the file given in its place.
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

    /// What to do about it.
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
            Self::Locked { .. } => Some("wait for it, or write elsewhere with `--out DIR`"),
            Self::Conflict { .. } => Some(
                "nothing was joined; the same run gives the same numbers, so one of the two was changed or made by a changed program",
            ),
            Self::Missing { why: Absence::NoResults, .. } => Some("`apportion sweep` writes them"),
            Self::Missing { .. } => {
                Some("give the folder that `apportion sweep` wrote, or the results.sqlite in it")
            }
            Self::Io { .. } | Self::Database { .. } | Self::Threads { .. } => None,
        }
    }

    /// A file that cannot be read for another reason than that it may not be is no results file.
    pub(super) fn into_no_results(self) -> Self {
        match self {
            Self::Io { path, source, .. } if source.kind() != io::ErrorKind::PermissionDenied => {
                Self::Foreign { path, what: format!("it cannot be read: {source}") }
            }
            error => error,
        }
    }

    /// The error about a file, which says so where the results are in the file beside it.
    pub(super) fn beside(self, file: &Path) -> Self {
        match self {
            Self::Foreign { path, what } if file.with_file_name(FILE).is_file() => {
                Self::Foreign { path, what: format!("{what}, as {FILE} beside it is") }
            }
            error => error,
        }
    }

    /// Is it the input's fault, not the machine's?
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Foreign { .. }
            | Self::Damaged { .. }
            | Self::Version { .. }
            | Self::OtherStudy { .. }
            | Self::Conflict { .. }
            | Self::Missing { .. } => true,
            Self::Io { action, .. } => *action == "read",
            Self::Database { .. } | Self::Locked { .. } | Self::Threads { .. } => false,
        }
    }
}
