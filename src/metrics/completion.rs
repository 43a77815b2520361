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
    /// Its id in the trace; its position in order of arrival if it has no other.
    pub id: Label,
    /// Its position in order of arrival, if `id` is another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<JobId>,
    /// Its job type.
    pub job_type: String,
    /// Workers it needed at once.
    pub scale_factor: u32,
    /// Its importance.
    pub weight: f64,
    /// Its arrival.
    #[serde(rename = "arrival_s", alias = "arrival")]
    pub arrival: Seconds,
    /// The instant at which its last step ended; none if it was given up after too many failures.
    #[serde(rename = "completion_s", alias = "completion")]
    pub completion: Option<Seconds>,
    /// Completion − arrival.
    #[serde(rename = "jct_s", alias = "jct")]
    pub jct: Option<Seconds>,
    /// Finish-time fairness: completion time over the time that it would have taken on an isolated 1/n share.
    pub rho: Option<f64>,
    /// Its deadline, as a time from arrival.
    #[serde(rename = "slo_s", alias = "slo", default, skip_serializing_if = "Option::is_none")]
    pub slo: Option<Seconds>,
    /// Its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// The time and workers that it received.
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
    /// Jobs whose account is open after their end: the event of a slice that they share, or of their partner's end, may still come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<Ended>,
    /// Whether there are rounds.
    #[serde(default)]
    has_rounds: bool,
    first_arrival: Option<Seconds>,
    last_completion: Option<Seconds>,
}

/// A job that has ended in the present round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Ended {
    id: JobId,
    at: Seconds,
    /// The position of its record, if it is measured.
    record: Option<usize>,
}

impl Completions {
    /// The completions before the first event, on this cluster.
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            jobs: Vec::new(),
            services: Services::new(cluster),
            ended: Vec::new(),
            has_rounds: false,
            first_arrival: None,
            last_completion: None,
        }
    }

    /// Adds one event.
    pub fn fold(&mut self, event: &Event<'_>) {
        self.services.fold(event);
        match *event {
            Event::Arrival { job, .. } => {
                let first = self.first_arrival.get_or_insert(job.arrival);
                *first = first.min(job.arrival);
            }
            Event::RoundStarted { .. } => {
                self.has_rounds = true;
                self.close_ended();
            }
            Event::Completion { at, id, measured, job, isolated } => {
                self.last_completion = Some(self.last_completion.map_or(at, |last| last.max(at)));
                if measured {
                    let jct = at - job.arrival;
                    let rho = (isolated.get() > 0.0).then(|| jct / isolated);
                    self.jobs.push(JobRecord {
                        completion: Some(at),
                        jct: Some(jct),
                        rho,
                        ..record(id, job)
                    });
                }
                self.end(id, at, measured);
            }
            Event::Dropped { at, id, measured, job } => {
                if measured {
                    self.jobs.push(record(id, job));
                }
                self.end(id, at, measured);
            }
            _ => {}
        }
    }

    /// Notes that a job has ended; its record, if it is measured, is the last.
    fn end(&mut self, id: JobId, at: Seconds, measured: bool) {
        self.services.end(id, at);
        self.ended.push(Ended { id, at, record: measured.then(|| self.jobs.len() - 1) });
        if !self.has_rounds {
            self.close_ended();
        }
    }

    /// Closes the accounts of jobs that have ended, in the order of their ends, which may differ from the order of the events: of
    /// two that shared workers, the first to end comes first.
    fn close_ended(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_by(|one, other| one.at.total_cmp(&other.at));
        for Ended { id, at, record } in ended {
            let service = self.services.close(id, at);
            if let Some(record) = record {
                self.jobs[record].service = service;
            }
        }
    }

    /// The measured jobs, in order of arrival.
    pub fn jobs(&self) -> Vec<JobRecord> {
        let mut closed = self.clone();
        closed.close_ended();
        closed.jobs.sort_by_key(JobRecord::order);
        closed.jobs
    }

    /// JCTs of the measured jobs that were completed, s, in order of completion.
    pub fn jcts(&self) -> impl Iterator<Item = f64> {
        self.jobs.iter().filter_map(|job| job.jct).map(Seconds::get)
    }

    /// Number of measured jobs that were given up.
    pub fn n_dropped(&self) -> usize {
        self.jobs.iter().filter(|job| job.completion.is_none()).count()
    }

    /// Last completion − first arrival, of all completed jobs.
    pub fn makespan(&self) -> Option<Seconds> {
        Some(self.last_completion? - self.first_arrival?)
    }
}

/// The record of a job that ends, before its service is known.
fn record(id: JobId, job: &Job) -> JobRecord {
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
        service: Service::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Id, WorkerTypeId};
    use crate::simulator::Slice;
    use crate::units::{DollarsPerWorkerHour, Steps};
    use crate::workload::Combination;

    #[test]
    fn jobs_that_share_are_charged_alike_in_whatever_order_their_ends_are_told() {
        let cluster: Cluster = "fast=1".parse().unwrap();
        let [one, two] = [0, 1].map(JobId::from_index);
        let job = Job::new("A");
        let slice = Event::Slice(Slice {
            jobs: Combination::pair(one, two),
            incarnations: None,
            worker_type: WorkerTypeId::from_index(0),
            n_workers: 1,
            start: Seconds::ZERO,
            end: Seconds::new(300.0),
            time: Seconds::new(300.0),
            overhead: Seconds::ZERO,
            price: Some(DollarsPerWorkerHour::new(3.0)),
            steps: [Steps::new(1.0); 2],
            throughput: [1.0; 2],
            succeeded: true,
        });
        let end = |id, at| Event::Completion {
            at: Seconds::new(at),
            id,
            measured: true,
            job: &job,
            isolated: Seconds::new(100.0),
        };
        let (late, early) = (end(one, 300.0), end(two, 100.0));
        let round = Event::RoundStarted { now: Seconds::ZERO, round: 0, n_active: 2, n_leases: 1 };
        // A live cluster knows of an end before the slice is over.
        for order in [[&slice, &late, &early], [&slice, &early, &late], [&early, &slice, &late]] {
            let mut completions = Completions::new(&cluster);
            for id in [one, two] {
                completions.fold(&Event::Arrival { now: Seconds::ZERO, id, measured: true, job: &job });
            }
            completions.fold(&round);
            for event in order {
                completions.fold(event);
            }
            // Half a worker each for 100 s, and the whole of it for the first after that.
            let in_the_round = completions.jobs();
            for (record, had_s, worker_s) in
                [(&in_the_round[0], 300.0, 250.0), (&in_the_round[1], 100.0, 50.0)]
            {
                assert_eq!(record.service.service, Seconds::new(had_s), "{order:?}");
                assert_eq!(record.service.share_received, Some(1.0), "{order:?}");
                let cost = record.service.cost.unwrap().get();
                assert!((cost - 3.0 * worker_s / 3600.0).abs() < 1e-12, "{cost}: {order:?}");
            }
            completions.fold(&round);
            assert_eq!(completions.jobs(), in_the_round, "the round after changes nothing");
        }
    }
}
