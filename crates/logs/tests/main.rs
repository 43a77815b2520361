//! Invented logs of each form, with the traps of each, against what they come to: rows, counts and complaints.
//!
//! `APPORTION_WRITE_EXPECTED=1` writes what is expected anew, to be read before it is kept.

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
