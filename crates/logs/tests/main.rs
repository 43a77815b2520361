//! Invented logs of each form, with its pitfalls, compared with expected rows, counts and complaints.
//!
//! `APPORTION_WRITE_EXPECTED=1` rewrites the expected files, to be reviewed before they are kept.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod suite {
    mod clusters;
    mod conversion;
    mod fixtures;
    mod kueue;
    mod many;
    mod missing;
    mod records;
    mod refused;
    mod sacct;
    mod sacct_jobs;
    mod starts;
    mod times;
    mod written_and_read;
}
