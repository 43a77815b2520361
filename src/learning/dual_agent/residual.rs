//! A rule's scores, to which networks may add theirs in place of deciding from nothing: a training then begins with the
//! rule itself, and where only one agent is trained the other stays the rule.
//!
//! ```text
//! order of job i  = −ln hours left              margin of job i = ln(speed of the type where it would go / patience)
//! logit of job i  = order + 10⁴ min(0, margin)  of stopping = −50
//! logit of candidate c = ln(expected speed) + 0.3 where the rule would put the job
//! ```
//!
//! Speeds are parts of the job's best. While nothing runs the margin does not count. To order and to margin the ordering
//! agent adds a number each, the placement agent adds one to a candidate's logit; each is the sum of what its network
//! says and of a linear function of the row itself.

use serde::{Deserialize, Serialize};

use crate::world::dual_agent::observe::{CANDIDATE_EXPECTED, JOB_RELATIVE, JOB_TIME_LEFT, WHOLE_PLACED};

/// Logit of stopping, below that of any job that is fast enough.
pub const STOP: f32 = -50.0;

/// How much a job loses for each factor of e by which it is too slow.
pub const TOO_SLOW: f32 = 1e4;

/// What the rule's own choice of a server gains.
pub const ADVISED: f32 = 0.3;

/// What the rule's staying where a job was gains: a job moves only for more.
pub const STAYING: f32 = 0.14;

/// Four times a job's feature is the logarithm of its hours left.
pub const TIME_LEFT_SCALE: f32 = 4.0;

/// Least speed of which a logarithm is taken.
pub const SPEED_MIN: f32 = 1e-3;

/// The rule: by estimated time left, where a job is expected to be fastest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    /// Its patience, above 0.
    pub patience: f64,
}

impl Residual {
    /// The logarithm of its patience.
    pub fn log_patience(&self) -> f32 {
        self.patience.ln() as f32
    }

    /// The logit of a job of this row, order and margin being changed by so much.
    pub fn job(&self, whole: &[f32], row: &[f32], [order, margin]: [f32; 2]) -> f32 {
        let order = order - TIME_LEFT_SCALE * row[JOB_TIME_LEFT];
        let margin = margin + row[JOB_RELATIVE].max(SPEED_MIN).ln() - self.log_patience();
        if whole[WHOLE_PLACED] > 0.0 { order + TOO_SLOW * margin.min(0.0) } else { order }
    }

    /// What a candidate of this row has before its agent says anything.
    pub fn candidate(&self, stays: bool, row: &[f32], advised: f32) -> f32 {
        row[CANDIDATE_EXPECTED] + ADVISED * advised + if stays { STAYING } else { 0.0 }
    }
}
