//! The `resource` model: co-located jobs divide shared resources max-min fairly.
//!
//!   ρ(a | b) = κ_t · min_r  min(1, max(φ_r(a, b), 1 − d_r(b)) / d_r(a))        φ_r(a, b) = w_r(a) / (w_r(a) + w_r(b))
//!
//! | symbol    | range  | unit | here                                                                         |
//! |-----------|--------|------|------------------------------------------------------------------------------|
//! | ρ(a \| b) | (0, 1] | 1    | the fraction of its isolated throughput that a keeps beside b, on type t     |
//! | d_r(a)    | [0, 1] | 1    | the fraction of resource r's capacity that a takes when it runs alone        |
//! | w_r(a)    | > 0    | 1    | how large a share of r a gets against others: long kernels outlast short ones |
//! | κ_t       | (0, 1] | 1    | what sharing leaves of a worker of type t even where nothing is contended    |
//!
//! The inner term is the weighted max-min share of a resource of capacity 1 between two demands, over the demand: a job gets its
//! demand, or its fair share φ, or the rest that the other leaves, whichever is least, but the second never undercuts the third. A
//! job advances as its most starved resource lets it. With equal weights and κ = 1 it is plain max-min fairness, under which no job
//! keeps less than a half; measured pairs do (a GPU gives time by kernel, not by job), hence the weights.
//!
//! Each resource is divided as if the other job ran at full speed: a job slowed by one resource is not
//! credited with leaving more of the next. So ρ(a | b) never rises with a demand of either job, which the joint
//! bottleneck does not promise, and a pair is one pass over the resources.
//!
//! Demands are those of a job type on one worker type, whatever the scale factor. Only throughputs of pairs were measured, so
//! fitted resources are latent: their names are labels.

use std::collections::BTreeMap;

use ndarray::Array3;
use serde::{Deserialize, Serialize};

use super::ContentionError;
use crate::index::{Id, RowId};
use crate::throughput::Throughputs;

/// Demands for shared resources, per worker type and job type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ResourceModel {
    /// Names of the shared resources.
    pub resources: Vec<String>,
    /// Jobs' demands on each worker type, by its name.
    pub worker_types: BTreeMap<String, SharedWorker>,
}

/// A worker type that jobs share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SharedWorker {
    /// κ: the fraction of the worker that sharing leaves even if no resource is contended, in (0, 1].
    pub efficiency: f64,
    /// Demands by job type.
    pub demands: BTreeMap<String, Demands>,
    /// Job types that do not fit on one worker together: measured, not modelled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cannot_share: Vec<[String; 2]>,
}

/// The demands of a job type for the shared resources of one worker type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Demands {
    /// d: fractions of capacity taken when alone, in [0, 1], one per resource.
    pub demand: Vec<f64>,
    /// w: weights in the division of a contended resource, > 0, one per resource.
    pub weight: Vec<f64>,
}

/// The weighted max-min share of a resource of capacity 1, over the demand: the fraction of its demand that a
/// job gets beside another. `fair` is its share φ when both ask for more than theirs, in (0, 1).
///
/// ```
/// use apportion::throughput::contention::resource::retained;
/// assert_eq!(retained(0.4, 0.5, 0.5), 1.0);      // both fit
/// assert_eq!(retained(1.0, 1.0, 0.5), 0.5);      // an equal division
/// assert_eq!(retained(1.0, 0.25, 0.5), 0.75);    // the other leaves more than half
/// ```
pub fn retained(demand: f64, other_demand: f64, fair: f64) -> f64 {
    let available = fair.max(1.0 - other_demand);
    if available >= demand { 1.0 } else { available / demand }
}

impl SharedWorker {
    /// ρ(job | other); none if a job type has no demands here, 0 if the two cannot share a worker.
    pub fn retention(&self, job: &str, other: &str) -> Option<f64> {
        let (own, others) = (self.demands.get(job)?, self.demands.get(other)?);
        let apart = |[a, b]: &[String; 2]| (a == job && b == other) || (a == other && b == job);
        if self.cannot_share.iter().any(apart) {
            return Some(0.0);
        }
        Some(self.efficiency * own.beside(others))
    }
}

impl Demands {
    /// ρ/κ: the fraction that a job with these demands keeps beside one with the demands `others`.
    pub fn beside(&self, others: &Self) -> f64 {
        let each = self.demand.iter().zip(&self.weight).zip(others.demand.iter().zip(&others.weight));
        each.map(|((demand, weight), (other_demand, other_weight))| {
            retained(*demand, *other_demand, weight / (weight + other_weight))
        })
        .fold(1.0, f64::min)
    }
}

impl ResourceModel {
    /// Checks every number's range and every list's length.
    ///
    /// # Errors
    /// Naming the first value that is out of range.
    pub fn check(&self) -> Result<(), ContentionError> {
        for (worker_type, shared) in &self.worker_types {
            let path = format!("worker_types.{worker_type}");
            let efficiency = shared.efficiency;
            if !(efficiency > 0.0 && efficiency <= 1.0) {
                let path = format!("{path}.efficiency");
                return Err(ContentionError::value(path, efficiency, "a number above 0, at most 1"));
            }
            for (job_type, demands) in &shared.demands {
                let path = format!("{path}.demands.{job_type}");
                self.check_length(&format!("{path}.demand"), &demands.demand)?;
                self.check_length(&format!("{path}.weight"), &demands.weight)?;
                if let Some(value) = demands.demand.iter().find(|value| !(0.0..=1.0).contains(*value)) {
                    let path = format!("{path}.demand");
                    return Err(ContentionError::value(path, *value, "a fraction of capacity, 0 to 1"));
                }
                if let Some(value) = demands.weight.iter().find(|value| !(value.is_finite() && **value > 0.0))
                {
                    let path = format!("{path}.weight");
                    return Err(ContentionError::value(path, *value, "a finite number above 0"));
                }
            }
        }
        Ok(())
    }

    fn check_length(&self, path: &str, values: &[f64]) -> Result<(), ContentionError> {
        let (found, expected) = (values.len(), self.resources.len());
        if found == expected {
            Ok(())
        } else {
            Err(ContentionError::Length { path: path.to_owned(), found, expected })
        }
    }

    /// Co-located steps/s of all rows of `throughputs`: [type × row × other].
    pub(super) fn colocated(&self, throughputs: &Throughputs) -> Result<Array3<f64>, ContentionError> {
        let (n_types, n_rows) = (throughputs.worker_types().len(), throughputs.rows().len());
        let mut colocated = Array3::zeros((n_types, n_rows, n_rows));
        for (column, name) in throughputs.worker_types().enumerate() {
            let runs = |row: &RowId| throughputs.alone(*row, column) > 0.0;
            let running: Vec<RowId> = throughputs.rows().ids().filter(runs).collect();
            let unknown = || ContentionError::UnknownWorkerType {
                worker_type: name.clone(),
                expected: self.worker_types.keys().map(|t| format!("`{t}`")).collect::<Vec<_>>().join(", "),
            };
            let shared = self.worker_types.get(name).ok_or_else(unknown)?;
            for row in &running {
                let key = &throughputs.rows()[*row];
                for other in &running {
                    let other_key = &throughputs.rows()[*other];
                    if key.scale_factor != other_key.scale_factor {
                        continue;
                    }
                    let kept = shared.retention(&key.job_type, &other_key.job_type).ok_or_else(|| {
                        let lacks = |job_type: &&String| !shared.demands.contains_key(*job_type);
                        let pair = [&key.job_type, &other_key.job_type];
                        let job_type = pair.into_iter().find(lacks).unwrap_or(&key.job_type).clone();
                        ContentionError::UnknownJobType { job_type, place: format!("on `{name}`") }
                    })?;
                    colocated[[column.index(), row.index(), other.index()]] =
                        kept * throughputs.alone(*row, column);
                }
            }
        }
        Ok(colocated)
    }
}
