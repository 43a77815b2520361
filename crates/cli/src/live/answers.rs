//! Answers in JSON of commands that ask a scheduler: the scheduler's own, passed on in the form of its version.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::output::Answer;
use apportion_live::core::{JobView, NextView, ServerView, Why};
use apportion_live::shadow::Report;

/// The jobs of a running scheduler, as `apportion jobs --format json` prints them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Jobs<'a> {
    /// Jobs that run come first, then jobs that wait, then jobs that are over, the newest first.
    #[schemars(with = "Vec<JobView>")]
    pub(super) jobs: &'a Value,
}

impl Answer for Jobs<'_> {
    const KIND: &'static str = "jobs";
}

/// A job of a running scheduler, and why it waits or runs as it does, as `apportion why --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Bound<'a> {
    #[serde(flatten)]
    #[schemars(with = "Why")]
    pub(super) why: &'a Value,
}

impl Answer for Bound<'_> {
    const KIND: &'static str = "why";
}

/// The places of jobs in a running scheduler's round and in the next one, as `apportion next --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rounds<'a> {
    #[serde(flatten)]
    #[schemars(with = "NextView")]
    pub(super) next: &'a Value,
}

impl Answer for Rounds<'_> {
    const KIND: &'static str = "next";
}

/// The servers of a running scheduler, as `apportion servers --format json` prints them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Servers<'a> {
    /// The servers.
    #[schemars(with = "Vec<ServerView>")]
    pub(super) servers: &'a Value,
}

impl Answer for Servers<'_> {
    const KIND: &'static str = "servers";
}

/// A scheduler's act, as `apportion cancel`, `drain`, `resume` and `remove` print it with `--format json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Done<'a> {
    /// The act, in words.
    pub(super) text: &'a str,
}

impl Answer for Done<'_> {
    const KIND: &'static str = "done";
}

/// A job that was taken in, as `apportion submit --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Submitted<'a> {
    /// Its number.
    pub(super) job: u64,
    /// The key under which it was submitted: another submission under it is the same job.
    pub(super) key: &'a str,
    /// Warnings about the submission.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    pub(super) warnings: &'a [&'a str],
}

impl Answer for Submitted<'_> {
    const KIND: &'static str = "submitted";
}

/// The decisions of a policy beside another scheduler, as `apportion shadow --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Shadowed<'a> {
    #[serde(flatten)]
    pub(super) report: &'a Report,
}

impl Answer for Shadowed<'_> {
    const KIND: &'static str = "shadow-report";
}
