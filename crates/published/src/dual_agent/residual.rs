//! A rule's scores, to which networks may add their own. A training then begins with the rule itself, and if only one agent is
//! trained, the other stays the rule.
//!
//! ```text
//! order of job i  = −ln hours left − service · ln workers              margin of job i = ln(speed where it would go / patience)
//! logit of job i  = order + 10⁴ min(0, margin)  of stopping = −50
//! logit of candidate c = ln(expected speed) + 0.3, or as much as is `advised`, where the rule would put the job
//! ```
//!
//! Speeds are relative to the job's best. The speed in a margin is the type's or, as far as `expecting` says, the expected
//! speed on the very servers. While no job runs, the margin does not count. The ordering agent adds a number to order and one
//! to margin, the placement agent adds one to a candidate's logit; each is the sum of its network's output and of a linear
//! function of the row itself. A whole placement that the rule proposes has the logarithm of its merit, and nothing else.

use serde::{Deserialize, Serialize};

use crate::dual_agent::observe::{
    CANDIDATE_EXPECTED, JOB_EXPECTED, JOB_RELATIVE, JOB_TIME_LEFT, JOB_WORKERS, WHOLE_PLACED,
};

/// Logit of stopping, below that of any job that is fast enough.
pub const STOP: f32 = -50.0;

/// The loss of a job's logit for each factor of e by which it is too slow.
pub const TOO_SLOW: f32 = 1e4;

/// The default gain of the logit of the rule's own choice of a server.
pub const ADVISED: f64 = 0.3;

/// The default gain of the logit of staying: a job moves only if it gains more.
pub const STAYING: f64 = 0.14;

/// Factor from a job's feature to ln of its remaining hours.
pub const TIME_LEFT_SCALE: f32 = 4.0;

/// Factor from a job's feature to its number of workers.
pub const WORKERS_SCALE: f32 = 16.0;

/// The smallest speed whose logarithm is taken.
pub const SPEED_MIN: f32 = 1e-3;

/// A rule beside networks: jobs by estimated remaining time, on the servers where a job is expected to be fastest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    /// Patience of the rule, above 0 and at most 1: the least part of its best speed at which a job starts while others run.
    pub patience: f64,
    /// The weight, from 0 to 1, in the margin of the expected log speed on the very servers, in place of that of their type.
    #[serde(default, skip_serializing_if = "is_none")]
    pub expecting: f64,
    /// The weight of a job's workers beside its remaining time: 1 = least worker-hours first.
    #[serde(default, skip_serializing_if = "is_none")]
    pub service: f64,
    /// The gain of the logit of staying where a job was.
    #[serde(default = "staying", skip_serializing_if = "is_staying")]
    pub staying: f64,
    /// The gain of the logit of the rule's own choice of a server.
    #[serde(default = "advised", skip_serializing_if = "is_advised")]
    pub advised: f64,
}

fn staying() -> f64 {
    STAYING
}

fn advised() -> f64 {
    ADVISED
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as it is asked")]
fn is_staying(number: &f64) -> bool {
    number.total_cmp(&STAYING).is_eq()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as it is asked")]
fn is_advised(number: &f64) -> bool {
    number.total_cmp(&ADVISED).is_eq()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as it is asked")]
fn is_none(expecting: &f64) -> bool {
    expecting.total_cmp(&0.0).is_eq()
}

impl Residual {
    /// A rule with this patience, and other options at their defaults.
    pub const fn of(patience: f64) -> Self {
        Self { patience, expecting: 0.0, service: 0.0, staying: STAYING, advised: ADVISED }
    }

    /// The logarithm of its patience.
    pub fn log_patience(&self) -> f32 {
        self.patience.ln() as f32
    }

    /// The logit of a job with this row; `order` and `margin` are added to the rule's.
    pub fn job(&self, whole: &[f32], row: &[f32], [order, margin]: [f32; 2]) -> f32 {
        let mut order = order - TIME_LEFT_SCALE * row[JOB_TIME_LEFT];
        if self.service > 0.0 {
            order -= self.service as f32 * (WORKERS_SCALE * row[JOB_WORKERS]).max(1.0).ln();
        }
        let alike = row[JOB_RELATIVE].max(SPEED_MIN).ln();
        let speed = match self.expecting {
            0.0 => alike,
            share => alike + share as f32 * (row[JOB_EXPECTED] - alike),
        };
        let margin = margin + speed - self.log_patience();
        if whole[WHOLE_PLACED] > 0.0 { order + TOO_SLOW * margin.min(0.0) } else { order }
    }

    /// The rule's part of the logit of a candidate with this row.
    pub fn candidate(&self, stays: bool, row: &[f32], advised: f32) -> f32 {
        row[CANDIDATE_EXPECTED]
            + self.advised as f32 * advised
            + if stays { self.staying as f32 } else { 0.0 }
    }
}
