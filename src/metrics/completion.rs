//! Job completion times: JCT = completion − arrival, in seconds; and the makespan.

use serde::{Deserialize, Serialize};

use super::service::{Service, Services};
use crate::cluster::Cluster;
use crate::index::JobId;
use crate::simulator::Event;
use crate::spec::snapshot::Label;
use crate::units::Seconds;
use crate::workload::Job;

/// A measured job that was completed or given up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobRecord {
    /// What its trace calls it; its position in order of arrival where that is no other.
    pub id: Label,
    /// Its position in order of arrival, where `id` is another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<JobId>,
    /// Its type.
    pub job_type: String,
    /// Workers it needed at once.
    pub scale_factor: u32,
    /// Its importance.
    pub weight: f64,
    /// When it arrived.
    pub arrival: Seconds,
    /// When its last step ended; none if it was given up after too many failures.
    pub completion: Option<Seconds>,
    /// Completion − arrival.
    pub jct: Option<Seconds>,
    /// Finish-time fairness: completion time over the time that it would have taken on an isolated 1/n share.
    pub rho: Option<f64>,
    /// Its deadline, as a time from arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<Seconds>,
    /// Its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// What it received.
    #[serde(flatten)]
    pub service: Service,
}

impl JobRecord {
    /// Its position in order of arrival.
    pub fn order(&self) -> i64 {
        match (self.position.map(Label::from).as_ref(), &self.id) {
            (Some(Label::Number(position)), _) | (_, Label::Number(position)) => *position,
            _ => i64::MAX,
        }
    }
}

/// Measured jobs, in the order in which they ended, with the first arrival and last completion of all jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completions {
    jobs: Vec<JobRecord>,
    services: Services,
    first_arrival: Option<Seconds>,
    last_completion: Option<Seconds>,
}

impl Completions {
    /// The fold before the first event, on this cluster.
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            jobs: Vec::new(),
            services: Services::new(cluster),
            first_arrival: None,
            last_completion: None,
        }
    }

    /// Takes in one event.
    pub fn fold(&mut self, event: &Event<'_>) {
        self.services.fold(event);
        match *event {
            Event::Arrival { job, .. } => {
                let first = self.first_arrival.get_or_insert(job.arrival);
                *first = first.min(job.arrival);
            }
            Event::Completion { at, id, measured, job, isolated } => {
                self.last_completion = Some(self.last_completion.map_or(at, |last| last.max(at)));
                let service = self.services.close(id, at);
                if measured {
                    let jct = at - job.arrival;
                    let rho = (isolated.get() > 0.0).then(|| jct / isolated);
                    let (completion, jct) = (Some(at), Some(jct));
                    self.jobs.push(JobRecord { completion, jct, rho, ..record(id, job, service) });
                }
            }
            Event::Dropped { at, id, measured, job } => {
                let service = self.services.close(id, at);
                if measured {
                    self.jobs.push(record(id, job, service));
                }
            }
            _ => {}
        }
    }

    /// The measured jobs, in order of arrival.
    pub fn jobs(&self) -> Vec<JobRecord> {
        let mut jobs = self.jobs.clone();
        jobs.sort_by_key(JobRecord::order);
        jobs
    }

    /// JCTs of the measured jobs that were completed, s, in order of completion.
    pub fn jcts(&self) -> impl Iterator<Item = f64> {
        self.jobs.iter().filter_map(|job| job.jct).map(Seconds::get)
    }

    /// Measured jobs that were given up.
    pub fn n_dropped(&self) -> usize {
        self.jobs.iter().filter(|job| job.completion.is_none()).count()
    }

    /// Last completion − first arrival, of all jobs.
    pub fn makespan(&self) -> Option<Seconds> {
        Some(self.last_completion? - self.first_arrival?)
    }
}

fn record(id: JobId, job: &Job, service: Service) -> JobRecord {
    let position = job.name.is_some().then_some(id);
    let id = job.name.clone().map_or_else(|| Label::from(id), Label::Text);
    JobRecord {
        id,
        position,
        job_type: job.job_type.clone(),
        scale_factor: job.scale_factor,
        weight: job.weight,
        arrival: job.arrival,
        completion: None,
        jct: None,
        rho: None,
        slo: job.slo,
        entity: job.entity.clone(),
        service,
    }
}
