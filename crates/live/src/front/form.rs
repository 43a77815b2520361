//! A job as it is submitted over HTTP.

use std::collections::BTreeMap;

use apportion::{Job, Seconds, Steps, StepsPerSecond};
use serde::{Deserialize, Serialize};

use crate::core::Submission;
use crate::protocol::Program;

/// A job to be taken in.
///
/// ```json
/// {"name": "cifar", "key": "a-word-of-its-own",
///  "job": {"job_type": "ResNet-50 (batch size 64)", "scale_factor": 2, "total_steps": 100000},
///  "program": {"command": ["python", "train.py"], "directory": "/data/cifar", "environment": {"SEED": "7"}}}
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// The name that its user gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The user that submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A key that no other submission has: sent again with the same one, it is the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The job as the policy is to know it.
    pub job: JobForm,
    /// The program that it runs.
    pub program: Program,
}

/// A job as the policy is to know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobForm {
    /// The job type, as the throughput matrix names it.
    pub job_type: String,
    /// Workers it needs at once.
    #[serde(default = "one")]
    pub scale_factor: u32,
    /// Numbers of workers that it may be given, ascending, its scale factor among them; empty if that is the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u32>,
    /// Steps from its beginning to its end.
    pub total_steps: f64,
    /// The job's importance to its user; larger is more.
    #[serde(default = "weight")]
    pub weight: f64,
    /// The time from its arrival within which it ought to be done, in s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<f64>,
    /// Its owner, for hierarchical policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Its throughput alone by worker type, in steps/s, in place of the matrix's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<BTreeMap<String, f64>>,
}

const fn one() -> u32 {
    1
}

const fn weight() -> f64 {
    1.0
}

impl From<Form> for Submission {
    fn from(form: Form) -> Self {
        let Form { name, user, key, job, program } = form;
        Self { name, user, key, job: job.into(), program }
    }
}

impl From<JobForm> for Job {
    fn from(form: JobForm) -> Self {
        let mut job = Self::new(form.job_type).scale_factor(form.scale_factor).sizes(form.sizes);
        job.total_steps = Steps::new(form.total_steps);
        job.weight = form.weight;
        job.slo = form.slo.map(Seconds::new);
        job.entity = form.owner;
        job.throughput = form.throughput.map(|speeds| {
            speeds.into_iter().map(|(name, speed)| (name, StepsPerSecond::new(speed))).collect()
        });
        job
    }
}
