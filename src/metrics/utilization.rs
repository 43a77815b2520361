//! Busy worker time over worker time, by worker type; and the price of busy time.

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::index::Id;
use crate::simulator::Event;
use crate::units::{Dollars, Seconds};

/// Busy time of workers so far, and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Utilization {
    /// Worker types and their workers: [type].
    types: Vec<(String, u32)>,
    /// Busy worker-seconds: [type].
    busy_s: Vec<f64>,
    cost: Option<Dollars>,
    /// The instant of the first arrival.
    from: Option<Seconds>,
    /// The end of the last slice.
    until: Seconds,
}

impl Utilization {
    /// The utilization before the first event, on this cluster.
    pub fn new(cluster: &Cluster) -> Self {
        let types: Vec<_> = cluster.types().iter().map(|kind| (kind.name.clone(), kind.n_workers)).collect();
        let priced = cluster.types().iter().any(|kind| kind.price.is_some());
        Self {
            busy_s: vec![0.0; types.len()],
            types,
            cost: priced.then_some(Dollars::ZERO),
            from: None,
            until: Seconds::ZERO,
        }
    }

    /// Adds one event.
    pub fn fold(&mut self, event: &Event<'_>) {
        if let Event::Arrival { job, .. } = event {
            self.from = Some(self.from.map_or(job.arrival, |from| from.min(job.arrival)));
        }
        if let Event::Slice(slice) = event {
            let n_workers = f64::from(slice.n_workers);
            self.busy_s[slice.worker_type.index()] += slice.time.get() * n_workers;
            self.until = self.until.max(slice.end);
            if let Some(price) = slice.price {
                let cost = price * slice.time.of_workers(n_workers);
                *self.cost.get_or_insert_default() += cost;
            }
        }
    }

    /// The time that counts, in s: from the first arrival to the end of the last slice.
    fn window_s(&self) -> f64 {
        self.until.get() - self.from.unwrap_or_default().get()
    }

    /// Busy worker time over worker time from the first arrival to the end of the last slice, by type.
    pub fn by_type(&self) -> Vec<(String, f64)> {
        let of = |((name, n_workers), busy): (&(String, u32), &f64)| {
            let all = f64::from(*n_workers) * self.window_s();
            (name.clone(), if all > 0.0 { busy / all } else { 0.0 })
        };
        self.types.iter().zip(&self.busy_s).map(of).collect()
    }

    /// Busy worker time over worker time, over all types.
    pub fn all(&self) -> f64 {
        let n_workers: f64 = self.types.iter().map(|(_, n_workers)| f64::from(*n_workers)).sum();
        let all = n_workers * self.window_s();
        if all > 0.0 { self.busy_s.iter().sum::<f64>() / all } else { 0.0 }
    }

    /// The price of busy time; none without prices.
    pub fn cost(&self) -> Option<Dollars> {
        self.cost
    }
}
