//! Checksums of rows, by which a digit that changed after a run was written is found when it is read.
//!
//! A checksum is the SHA-256 of a JSON text, in which a number is written as the shortest decimal that reads back as the
//! same double. Missing values are left out, so that a column added by a later version changes nothing. Wall time is not
//! part of it: the same result has the same checksum on every machine.

use apportion::metrics::{METRICS, Metric};
use apportion::spec::run::sha256;
use serde_json::{Map, Value, json};

use super::{Row, Study};
use crate::sweep::outcome::{AllocationRow, JobRow};
use crate::sweep::spec::value_text;
use apportion::metrics::Service;
use apportion::units::{Dollars, Seconds};

/// Checksum of a run without its jobs.
pub(super) fn of_run(study: &Study, row: &Row) -> String {
    let axes = study.axes.iter().zip(&row.values);
    let axes: Map<String, Value> =
        axes.map(|((name, _), value)| (name.clone(), value_text(value).into())).collect();
    // Metrics have names without units here, as the first results had them.
    let metrics = METRICS.iter().map(Metric::bare_name).zip(row.outcome.metrics);
    let metrics: Map<String, Value> =
        metrics.filter_map(|(name, value)| Some((name.to_owned(), number(value?)))).collect();
    let utilization: Vec<Value> =
        row.outcome.utilization.iter().map(|(name, value)| json!([name, number(*value)])).collect();
    let whole = json!({
        "digest": row.digest,
        "axes": axes,
        "status": row.outcome.status.name(),
        "reason": row.outcome.reason,
        "capacity": row.outcome.capacity.map(number),
        "metrics": metrics,
        "utilization": utilization,
        "version": row.version,
        "spec": row.spec,
        "data": row.data,
    });
    sha256(whole.to_string().as_bytes())
}

/// Checksum of the jobs of a run, in the order of their ids.
pub(super) fn of_jobs(digest: &str, jobs: &[JobRow]) -> String {
    let mut jobs: Vec<&JobRow> = jobs.iter().collect();
    jobs.sort_by_key(|job| job.id);
    let job = |job: &&JobRow| {
        let JobRow { id, job_type, scale_factor, weight, arrival, completion, jct, rho, service } = job;
        let ended = [completion, jct, rho].map(|value| value.map(number));
        let mut row =
            vec![json!(id), json!(job_type), json!(scale_factor), number(*weight), number(*arrival)];
        row.push(json!(ended));
        // Rows of older versions lack the service of jobs, and so do their checksums.
        row.extend(service.as_ref().map(of_service));
        Value::from(row)
    };
    let jobs: Vec<Value> = jobs.iter().map(job).collect();
    sha256(json!([digest, jobs]).to_string().as_bytes())
}

/// Checksum of the shares of a run, in their order.
pub(super) fn of_allocations(digest: &str, rows: &[AllocationRow]) -> String {
    let row = |row: &AllocationRow| {
        let AllocationRow { from, until, job, partner, worker_type, share } = row;
        json!([number(*from), number(*until), job, partner, worker_type, number(*share)])
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    sha256(json!([digest, rows]).to_string().as_bytes())
}

/// Service of a job, as JSON.
fn of_service(received: &Service) -> Value {
    let Service { wait, service, preemptions, worker_hours, cost, share_received, share_owed } = received;
    let hours: Vec<Value> = worker_hours.iter().map(|(name, hours)| json!([name, number(*hours)])).collect();
    let maybe = [wait.map(Seconds::get), cost.map(Dollars::get), *share_received, *share_owed];
    json!([number(service.get()), preemptions, hours, maybe.map(|value| value.map(number))])
}

/// A number as text, which can also hold infinity. The database does not keep the sign of zero, so this does not either.
fn number(value: f64) -> Value {
    (if value == 0.0 { 0.0 } else { value }).to_string().into()
}
