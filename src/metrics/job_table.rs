//! The table of columns of measured jobs, as [`METRICS`](super::METRICS) is the table of metrics of whole runs.
//!
//! All writers of jobs as columns read it: the CSV of `simulate`, the tables `jobs` and `services` of results, tables in Python.
//! The JSON of a job has the same names. Columns are in the order of the arrays, so a new entry goes to the end of one.

use super::completion::JobRecord;
use super::service::Service;
use super::table::{Unit, bare};
use crate::units::{Dollars, Seconds};

/// A column of measured jobs, with its description.
#[derive(Clone, Copy, Debug)]
pub struct JobColumn {
    /// Its name, with the unit of times at its end: `jct_s`.
    pub name: &'static str,
    /// Its unit. Counts are whole numbers.
    pub unit: Unit,
    /// Its meaning, in a line.
    pub meaning: &'static str,
    /// The value for a job; none if it has none, such as the completion of a job that was given up.
    pub of: fn(&JobNumbers<'_>) -> Option<JobValue>,
}

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JobValue {
    /// A number of things.
    Count(u64),
    /// A time, a cost or a ratio.
    Number(f64),
}

/// The numbers of a measured job.
#[derive(Clone, Copy, Debug)]
pub struct JobNumbers<'a> {
    /// Workers that it needed at once.
    pub scale_factor: u32,
    /// Its importance.
    pub weight: f64,
    /// Its arrival.
    pub arrival: Seconds,
    /// The instant at which its last step ended.
    pub completion: Option<Seconds>,
    /// Completion − arrival.
    pub jct: Option<Seconds>,
    /// Finish-time fairness.
    pub rho: Option<f64>,
    /// The job's service, if it is known.
    pub service: Option<&'a Service>,
}

impl<'a> From<&'a JobRecord> for JobNumbers<'a> {
    fn from(job: &'a JobRecord) -> Self {
        let JobRecord { scale_factor, weight, arrival, completion, jct, rho, service, .. } = job;
        Self {
            scale_factor: *scale_factor,
            weight: *weight,
            arrival: *arrival,
            completion: *completion,
            jct: *jct,
            rho: *rho,
            service: Some(service),
        }
    }
}

impl JobColumn {
    /// Whether its values are counts.
    pub const fn is_count(&self) -> bool {
        matches!(self.unit, Unit::Count | Unit::Jobs)
    }

    /// The name without the unit of times, as in results of earlier versions: `jct`.
    pub fn bare_name(&self) -> &'static str {
        bare(self.name, self.unit)
    }
}

const fn column(
    name: &'static str,
    unit: Unit,
    meaning: &'static str,
    of: fn(&JobNumbers<'_>) -> Option<JobValue>,
) -> JobColumn {
    JobColumn { name, unit, meaning, of }
}

fn time(value: Option<Seconds>) -> Option<JobValue> {
    value.map(Seconds::get).map(JobValue::Number)
}

/// Columns of the job itself.
pub const JOB_COLUMNS: [JobColumn; 6] = [
    column("scale_factor", Unit::Count, "workers that it needed at once", |job| {
        Some(JobValue::Count(job.scale_factor.into()))
    }),
    column("weight", Unit::Ratio, "its importance", |job| Some(JobValue::Number(job.weight))),
    column("arrival_s", Unit::Seconds, "when it arrived", |job| time(Some(job.arrival))),
    column("completion_s", Unit::Seconds, "when its last step ended", |job| time(job.completion)),
    column("jct_s", Unit::Seconds, "time from arrival to completion", |job| time(job.jct)),
    column("rho", Unit::Ratio, "finish-time fairness", |job| job.rho.map(JobValue::Number)),
];

/// Columns of the job's service from its arrival to its end.
pub const SERVICE_COLUMNS: [JobColumn; 6] = [
    column("wait_s", Unit::Seconds, "time from arrival to its first workers", |job| time(job.service?.wait)),
    column("service_s", Unit::Seconds, "time that it had workers", |job| time(Some(job.service?.service))),
    column("preemptions", Unit::Count, "how often it lost workers while it had work left", |job| {
        Some(JobValue::Count(job.service?.preemptions))
    }),
    column("cost", Unit::Dollars, "the price of its time on workers", |job| {
        job.service?.cost.map(Dollars::get).map(JobValue::Number)
    }),
    column("share_received", Unit::Fraction, "the part of its time that it had workers", |job| {
        job.service?.share_received.map(JobValue::Number)
    }),
    column("share_owed", Unit::Fraction, "the part of its time that allocations gave it", |job| {
        job.service?.share_owed.map(JobValue::Number)
    }),
];

/// All columns, in their order.
pub fn job_columns() -> impl Iterator<Item = &'static JobColumn> {
    JOB_COLUMNS.iter().chain(&SERVICE_COLUMNS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::spec::snapshot::Label;

    fn record() -> JobRecord {
        let service = Service {
            wait: Some(Seconds::new(1.0)),
            service: Seconds::new(2.0),
            preemptions: 3,
            cost: Some(Dollars::new(4.0)),
            share_received: Some(0.5),
            share_owed: Some(0.25),
            ..Service::default()
        };
        JobRecord {
            id: Label::Number(7),
            position: None,
            job_type: "A".to_owned(),
            scale_factor: 2,
            weight: 1.5,
            arrival: Seconds::new(10.0),
            completion: Some(Seconds::new(30.0)),
            jct: Some(Seconds::new(20.0)),
            rho: Some(0.75),
            slo: Some(Seconds::new(90.0)),
            entity: None,
            service,
        }
    }

    #[test]
    fn the_json_of_a_job_has_every_column_under_its_name() {
        let record = record();
        let written = serde_json::to_value(&record).unwrap();
        for column in job_columns() {
            let value = match (column.of)(&JobNumbers::from(&record)).unwrap() {
                JobValue::Count(count) => count.into(),
                JobValue::Number(number) => serde_json::Value::from(number),
            };
            assert_eq!(written[column.name], value, "{}", column.name);
            assert_eq!(value.is_u64(), column.is_count(), "{}", column.name);
            assert_eq!(column.name.ends_with("_s"), column.unit == Unit::Seconds, "{}", column.name);
            assert!(!column.meaning.is_empty());
        }
        let names: BTreeSet<&str> = job_columns().map(|column| column.name).collect();
        assert_eq!(names.len(), JOB_COLUMNS.len() + SERVICE_COLUMNS.len());
    }

    #[test]
    fn a_job_is_read_by_its_names_without_units_too() {
        let record = record();
        let mut written = serde_json::to_value(&record).unwrap();
        let fields = written.as_object_mut().unwrap();
        for name in ["arrival", "completion", "jct", "slo", "wait", "service"] {
            let value = fields.remove(&format!("{name}_s")).unwrap();
            fields.insert(name.to_owned(), value);
        }
        assert_eq!(serde_json::from_value::<JobRecord>(written).unwrap(), record);
    }
}
