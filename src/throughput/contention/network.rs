//! The `network` model: jobs spread over servers divide the links between them fairly.
//!
//!   ρ(a | S) = β / (1 + Σ_{b ∈ S} delay(a, b))          delay(a, b) = c(a) · h(b)
//!
//! | symbol    | range  | here                                                                                |
//! |-----------|--------|-------------------------------------------------------------------------------------|
//! | ρ(a \| S) | (0, 1] | the fraction of its isolated throughput that a keeps beside the set S on a server    |
//! | c(a)      | (0, 1) | the part of a's step that it spends communicating between servers when alone         |
//! | h(b)      | ≥ 0    | competing flows of b on the link, averaged over its step                             |
//! | β         | (0, 1] | what is left of a job beside others even where no link is contended                  |
//!
//! A fairly shared link serves one flow among 1 + Σ h as if it were that much slower, so a step that took
//! (1 − c) + c takes (1 − c) + c (1 + Σ h) = 1 + c Σ h. Both depend on the job's configuration, S servers and W workers:
//!
//!   c = logistic(logit(c₂) + γ₁ ln(S/2) + γ₂ ln(W/2))          h = h₂ (S/2)^γ₃ (W/2)^γ₄
//!
//! with c₂, h₂ of the job type at two workers on two servers. A job on one server neither sends nor suffers: it is
//! left out of S and keeps 1. A job on several servers keeps the least over them; callers take that minimum.
//!
//! If retention was measured, the table answers: for a pair, or for a whole set. In a set of which only pairs were measured, the
//! delays of those pairs are β/ρ(a | b) − 1, at least 0, and the others' are modelled.
//!
//! The setting, and the form of the table, are DeepShare's (Ryu and Eo, ICPADS 2023), which takes the least over neighbours instead
//! of adding their delays and has no model of unmeasured ones.

use ndarray::Array3;
use serde::{Deserialize, Serialize};

use super::ContentionError;
use super::fit::logistic;
use crate::index::{Id, RowId};
use crate::throughput::Throughputs;

/// Traffic per job type, and measured retention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NetworkModel {
    /// Workers of one server, ≥ 1: a job with more is spread over servers.
    pub workers_per_server: u32,
    /// β: the fraction that a job keeps beside others if no link is contended, in (0, 1].
    pub efficiency: f64,
    /// Traffic by job type.
    pub job_types: std::collections::BTreeMap<String, Traffic>,
    /// The growth of traffic with servers and workers.
    #[serde(default)]
    pub growth: Growth,
    /// Measured pairs; its configurations are the columns of `beside`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<MeasuredRow>,
    /// Measured sets of more than one neighbour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured_sets: Vec<MeasuredSet>,
}

/// The traffic of a job type at two workers on two servers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// c₂: the part of a step spent communicating between servers when alone, in (0, 1).
    pub communication: f64,
    /// h₂: competing flows on the link, averaged over a step, ≥ 0.
    pub flows: f64,
}

/// Exponents γ of traffic in servers and workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// γ₁, of communication in servers.
    pub communication_servers: f64,
    /// γ₂, of communication in workers.
    pub communication_workers: f64,
    /// γ₃, of flows in servers.
    pub flows_servers: f64,
    /// γ₄, of flows in workers.
    pub flows_workers: f64,
}

/// A job type on a number of workers and servers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The job type.
    pub job_type: String,
    /// Workers in all, ≥ 1.
    pub workers: u32,
    /// Servers that the workers are on, ≥ 1.
    pub servers: u32,
}

/// The measured retention of one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MeasuredRow {
    /// The configuration measured.
    pub job: Configuration,
    /// The fraction retained beside each row's configuration, in order; null = not measured.
    pub beside: Vec<Option<f64>>,
}

/// The measured retention of a configuration beside several others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MeasuredSet {
    /// The configuration measured.
    pub job: Configuration,
    /// Its neighbours, in any order.
    pub beside: Vec<Configuration>,
    /// The fraction retained.
    pub retained: f64,
}

impl Traffic {
    /// The traffic (c, h) of a configuration on two servers or more.
    pub(super) fn at(self, growth: &Growth, workers: u32, servers: u32) -> (f64, f64) {
        let (by_servers, by_workers) = doublings(workers, servers);
        let grown = growth.communication_servers * by_servers + growth.communication_workers * by_workers;
        let odds = (self.communication / (1.0 - self.communication)).ln();
        let flows = growth.flows_servers * by_servers + growth.flows_workers * by_workers;
        (logistic(odds + grown), self.flows * flows.exp())
    }
}

/// The pair (ln(S/2), ln(W/2)).
pub(super) fn doublings(workers: u32, servers: u32) -> (f64, f64) {
    ((f64::from(servers) / 2.0).ln(), (f64::from(workers) / 2.0).ln())
}

impl NetworkModel {
    /// ρ(job | beside): the fraction of its isolated throughput that a configuration keeps beside others that
    /// share one of its servers.
    ///
    /// # Errors
    /// If a job type is neither measured nor modelled.
    pub fn retention(&self, job: &Configuration, beside: &[Configuration]) -> Result<f64, ContentionError> {
        let neighbours: Vec<&Configuration> = beside.iter().filter(|other| other.servers > 1).collect();
        if job.servers <= 1 || neighbours.is_empty() {
            return Ok(1.0);
        }
        if let Some(retained) = self.measured_set(job, &neighbours) {
            return Ok(retained);
        }
        let mut delay = 0.0;
        for other in neighbours {
            delay += match self.measured_pair(job, other) {
                Some(retained) => (self.efficiency / retained - 1.0).max(0.0),
                None => self.traffic(job)?.0 * self.traffic(other)?.1,
            };
        }
        Ok(self.efficiency / (1.0 + delay))
    }

    /// ρ(job | beside) of the model alone, without measurements.
    ///
    /// # Errors
    /// If a job type is not modelled.
    pub fn modelled(&self, job: &Configuration, beside: &Configuration) -> Result<f64, ContentionError> {
        if job.servers <= 1 || beside.servers <= 1 {
            return Ok(1.0);
        }
        Ok(self.efficiency / (1.0 + self.traffic(job)?.0 * self.traffic(beside)?.1))
    }

    fn traffic(&self, job: &Configuration) -> Result<(f64, f64), ContentionError> {
        let unknown = || ContentionError::UnknownJobType {
            job_type: job.job_type.clone(),
            place: format!("with {} workers on {} servers", job.workers, job.servers),
        };
        let traffic = self.job_types.get(&job.job_type).ok_or_else(unknown)?;
        Ok(traffic.at(&self.growth, job.workers, job.servers))
    }

    fn measured_pair(&self, job: &Configuration, other: &Configuration) -> Option<f64> {
        let row = self.measured.iter().find(|row| row.job == *job)?;
        let column = self.measured.iter().position(|row| row.job == *other)?;
        row.beside.get(column).copied().flatten()
    }

    fn measured_set(&self, job: &Configuration, neighbours: &[&Configuration]) -> Option<f64> {
        if let [other] = neighbours {
            return self.measured_pair(job, other);
        }
        let sorted = |mut set: Vec<&Configuration>| -> Vec<Configuration> {
            set.sort_unstable();
            set.into_iter().cloned().collect()
        };
        let wanted = sorted(neighbours.to_vec());
        let same = |set: &&MeasuredSet| set.job == *job && sorted(set.beside.iter().collect()) == wanted;
        self.measured_sets.iter().find(same).map(|set| set.retained)
    }

    /// Checks every number's range and every list's length.
    ///
    /// # Errors
    /// Naming the first value that is out of range.
    pub fn check(&self) -> Result<(), ContentionError> {
        let value = |path: String, value, expected| Err(ContentionError::value(path, value, expected));
        if self.workers_per_server == 0 {
            return value("workers_per_server".to_owned(), 0.0, "at least 1");
        }
        if !(self.efficiency > 0.0 && self.efficiency <= 1.0) {
            return value("efficiency".to_owned(), self.efficiency, "a number above 0, at most 1");
        }
        for (job_type, traffic) in &self.job_types {
            let path = format!("job_types.{job_type}");
            if !(traffic.communication > 0.0 && traffic.communication < 1.0) {
                let expected = "a part of a step, between 0 and 1";
                return value(format!("{path}.communication"), traffic.communication, expected);
            }
            if !(traffic.flows.is_finite() && traffic.flows >= 0.0) {
                return value(format!("{path}.flows"), traffic.flows, "a finite number, at least 0");
            }
        }
        let Growth { communication_servers, communication_workers, flows_servers, flows_workers } =
            self.growth;
        let exponents = [communication_servers, communication_workers, flows_servers, flows_workers];
        if let Some(exponent) =
            exponents.into_iter().find(|exponent| exponent.is_nan() || exponent.abs() > EXPONENT_MAX)
        {
            return value("growth".to_owned(), exponent, "exponents of at most 10 either way");
        }
        self.check_measured()
    }

    fn check_measured(&self) -> Result<(), ContentionError> {
        let expected = "a fraction above 0, at most 1";
        let fraction = |path: String, retained: f64| {
            let fits = retained > 0.0 && retained <= 1.0;
            if fits { Ok(()) } else { Err(ContentionError::value(path, retained, expected)) }
        };
        for (position, row) in self.measured.iter().enumerate() {
            let path = format!("measured[{position}].beside");
            let (found, expected) = (row.beside.len(), self.measured.len());
            if found != expected {
                return Err(ContentionError::Length { path, found, expected });
            }
            for (column, retained) in row.beside.iter().enumerate() {
                fraction(format!("{path}[{column}]"), retained.unwrap_or(1.0))?;
            }
        }
        for (position, set) in self.measured_sets.iter().enumerate() {
            fraction(format!("measured_sets[{position}].retained"), set.retained)?;
        }
        Ok(())
    }

    /// Co-located steps/s of all rows of `throughputs`: [type × row × other]. Rows take the fewest servers that hold them; the
    /// model does not describe the effects of two jobs on each other inside a server.
    pub(super) fn colocated(&self, throughputs: &Throughputs) -> Result<Array3<f64>, ContentionError> {
        let (n_types, n_rows) = (throughputs.worker_types().len(), throughputs.rows().len());
        let configurations: Vec<Configuration> = throughputs
            .rows()
            .iter()
            .map(|key| Configuration {
                job_type: key.job_type.clone(),
                workers: key.scale_factor,
                servers: key.scale_factor.div_ceil(self.workers_per_server),
            })
            .collect();
        let mut colocated = Array3::zeros((n_types, n_rows, n_rows));
        for (row, job) in configurations.iter().enumerate() {
            for (other, beside) in configurations.iter().enumerate() {
                if job.workers != beside.workers {
                    continue;
                }
                let kept = self.retention(job, std::slice::from_ref(beside))?;
                for column in throughputs.worker_types().ids() {
                    let alone = |row| throughputs.alone(RowId::from_index(row), column);
                    if alone(other) > 0.0 {
                        colocated[[column.index(), row, other]] = kept * alone(row);
                    }
                }
            }
        }
        Ok(colocated)
    }
}

/// The largest exponent: larger ones overflow at sizes that exist.
const EXPONENT_MAX: f64 = 10.0;
