//! Why results cannot be read or kept, and what to do about it.

use std::io;

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
    #[error("{path} holds no results: no {FILE}")]
    Missing {
        /// The folder.
        path: String,
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

impl StoreError {
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
            Self::Missing { .. } => Some("`apportion sweep` writes them"),
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
