//! The first line of the event log. It describes what ran, so that a live scheduler's log is read as a simulation's.

use std::collections::BTreeMap;

use apportion::metrics::log::{FORMAT, Header};
use apportion::scheduler::Scheduler;
use apportion::spec::run::sha256;
use apportion::{Cluster, Seconds};
use serde_json::{Map, Value, json};

/// The header of a scheduler's log, as a line without its end: the cluster and the policy of its present start.
///
/// Fields that no live scheduler has are left out: a workload, a seed and the jobs to be measured. `digest` is that of the
/// specification alone, `data` is empty, and instants are those of the scheduler's clock, which begins at 0 with its first start.
pub(crate) fn header(scheduler: &Scheduler) -> String {
    let cluster = scheduler.cluster();
    let options = scheduler.options();
    let spec = json!({
        "policy": scheduler.policy_name(),
        "cluster": counts(cluster, |kind| kind.n_workers),
        "servers": counts(cluster, |kind| kind.workers_per_server),
        "round_length": options.round_length,
        "reset_interval": options.mechanism.reset_interval,
    });
    let header = Header {
        format: FORMAT.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        digest: sha256(spec.to_string().as_bytes()),
        cluster: cluster.clone(),
        spec,
        data: BTreeMap::new(),
        origin: Seconds::ZERO,
    };
    header.line().trim_end().to_owned()
}

/// A JSON object of a number for each worker type, by name.
fn counts(cluster: &Cluster, number: impl Fn(&apportion::cluster::WorkerType) -> u32) -> Value {
    let counts: Map<String, Value> =
        cluster.types().iter().map(|kind| (kind.name.clone(), json!(number(kind)))).collect();
    Value::Object(counts)
}
