//! Constraints that limit what jobs have, over the rounds of a simulation.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion::catalog::Catalog;
use apportion::index::{Id, JobId};
use apportion::simulator::{Event, Limits, Observer, Options, Outcome, Simulation};
use apportion::spec::Source;
use apportion::workload::Listed;
use apportion::{Cluster, DollarsPerWorkerHour, Job, Seconds, Throughputs};

/// Dollars, and worker-hours of an owner's jobs and of each type, as leases run.
#[derive(Debug, Default)]
struct Bill {
    dollars: f64,
    research: f64,
    by_type: BTreeMap<usize, f64>,
    /// Hours of each job on the first type.
    on_first: BTreeMap<JobId, f64>,
    owned: BTreeMap<JobId, bool>,
    until: f64,
}

impl Observer for Bill {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Arrival { id, job, .. } => {
                self.owned.insert(*id, job.entity.as_deref() == Some("research"));
            }
            Event::Slice(slice) => {
                let hours = (slice.end.get() - slice.start.get()) / 3600.0 * f64::from(slice.n_workers);
                self.dollars += hours * slice.price.unwrap().get();
                *self.by_type.entry(slice.worker_type.index()).or_default() += hours;
                if slice.worker_type.index() == 0 {
                    *self.on_first.entry(slice.jobs.first()).or_default() += hours;
                }
                if self.owned[&slice.jobs.first()] {
                    self.research += hours;
                }
                self.until = self.until.max(slice.end.get() / 3600.0);
            }
            _ => {}
        }
    }
}

/// Rounds keep what shares keep: a budget, and the quota of an owner, though workers idle beside jobs that wait. Each job
/// may be half a round ahead of its share of each type, once for each time that jobs change.
#[test]
fn a_budget_and_a_quota_hold_over_rounds() {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let mut cluster = "v100=4,k80=4".parse::<Cluster>().unwrap();
    for (kind, price) in [(0, 3.0), (1, 1.0)] {
        cluster.set_price(Id::from_index(kind), DollarsPerWorkerHour::new(price));
    }
    let job = |number: u32| {
        let job = Job::new("ResNet-50 (batch size 64)").steps(400_000).arrival(Seconds::ZERO);
        if number.is_multiple_of(2) { job.entity("research") } else { job }
    };
    let text = |constraints: &str| {
        format!(
            "format: apportion/policy-v1\nname: limited\nsummary: limited\nkind: program\n\
             maximize: min_over_jobs(throughput / isolated_throughput)\n{constraints}"
        )
    };
    let run = |constraints: &str| {
        let mut catalog = Catalog::embedded();
        catalog.add(Source::new("limited.yaml", text(constraints))).unwrap();
        let jobs = Listed::new((0..8).map(job).collect());
        let policy = catalog.policy("limited").unwrap();
        let system = (&cluster, Arc::clone(&throughputs));
        let mut simulation = Simulation::new(system, Box::new(jobs), policy, Options::corrected()).unwrap();
        let mut bill = Bill::default();
        let outcome = simulation.run(&mut bill, &Limits::default()).unwrap();
        assert_eq!(outcome, Outcome::Finished);
        bill
    };
    let free = run("");
    assert!(free.dollars / free.until > 8.0 && free.research / free.until > 2.0, "{free:?}");
    let held = run("constraints:\n  \
         - sum_over_jobs(scale_factor * sum_over_worker_types(price(type) * time_on(type))) <= 5[$/h]\n  \
         - sum_over_jobs(owned_by(\"research\") * scale_factor * sum_over_worker_types(time_on(type))) <= 1.5[workers]\n");
    let half_rounds = 0.5 * 0.1 * 8.0;
    assert!(held.dollars <= 5.0 * held.until + 4.0 * half_rounds, "{held:?}");
    assert!(held.research <= 1.5 * held.until + half_rounds, "{held:?}");
    assert!(held.dollars > 4.0 * held.until, "no less than is bought: {held:?}");
    let half = run("for_each_worker_type: [sum_over_jobs(workers_on(type)) <= 0.5 * capacity(type)]\n");
    for (kind, hours) in &half.by_type {
        assert!(*hours <= 2.0 * half.until + half_rounds, "{kind}: {half:?}");
    }
    let capped = run("for_each_job: [time_on(v100) <= 0.3]\n");
    for hours in capped.on_first.values() {
        assert!(*hours <= 0.3 * capped.until + half_rounds / 8.0 * 2.0, "{capped:?}");
    }
    assert!(free.on_first.values().any(|hours| *hours > 0.4 * free.until), "{free:?}");
}
