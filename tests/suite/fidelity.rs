//! Under the published semantics, jobs end when the published simulator says they do: to the last bit.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::Arc;

use apportion::metrics::Recorder;
use apportion::policy::Policy;
use apportion::policy::heuristic::{Fifo, FifoPerf, Isolated};
use apportion::simulator::{Limits, Options, Outcome, Simulation};
use apportion::spec::Fidelity;
use apportion::workload::{Gavel, WorkloadOptions};
use apportion::{Cluster, JobsPerHour, Seconds, Throughputs};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    runs: Vec<Run>,
}

/// One run of the published simulator.
#[derive(Deserialize)]
struct Run {
    policy: String,
    cluster: String,
    /// In the order of the cluster.
    workers_per_server: Vec<u32>,
    seed: u64,
    jobs_per_hour: Option<f64>,
    at_once: Option<usize>,
    measure: Option<(u32, u32)>,
    multi_worker: bool,
    multi_priority: bool,
    end: f64,
    utilization: f64,
    jct: Vec<Option<f64>>,
}

impl Run {
    fn cluster(&self) -> Cluster {
        let mut cluster: Cluster = self.cluster.parse().unwrap();
        let names: Vec<String> = cluster.types().iter().map(|kind| kind.name.clone()).collect();
        for (name, per_server) in names.iter().zip(&self.workers_per_server) {
            cluster = cluster.with_workers_per_server(name, *per_server).unwrap();
        }
        cluster
    }

    fn workload(&self) -> WorkloadOptions {
        let options = match (self.jobs_per_hour, self.at_once) {
            (Some(rate), _) => WorkloadOptions::continuous(JobsPerHour::new(rate).mean_gap()),
            (None, n_jobs) => WorkloadOptions::at_once(n_jobs.unwrap()),
        };
        options.multi_worker(self.multi_worker).multi_priority(self.multi_priority)
    }

    fn policy(&self) -> Box<dyn Policy> {
        match self.policy.as_str() {
            "isolated" => Box::new(Isolated { fidelity: Fidelity::Published }),
            "fifo_perf" => Box::new(FifoPerf),
            "fifo" => Box::new(Fifo::new(Fidelity::Published, self.seed)),
            other => panic!("no policy {other}"),
        }
    }
}

#[test]
fn jobs_end_when_the_published_simulator_says() {
    let recorded: Recorded =
        serde_json::from_str(include_str!("../fixtures/gavel_completions.json")).unwrap();
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    for run in &recorded.runs {
        let mut options = Options::published().with_seed(run.seed);
        options.measure = run.measure.map(|(start, end)| start..end);
        let jobs = Gavel::try_new(run.workload(), Arc::clone(&throughputs), run.seed).unwrap();
        let system = (&run.cluster(), Arc::clone(&throughputs));
        let mut simulation = Simulation::new(system, Box::new(jobs), run.policy(), options).unwrap();
        let mut recorder = Recorder::new(simulation.cluster());
        let outcome = simulation.run(&mut recorder, &Limits::default()).unwrap();
        assert_eq!(outcome, Outcome::Finished);
        let summary = recorder.summary();
        let found: Vec<Option<f64>> = summary.jobs.iter().map(|job| job.jct.map(Seconds::get)).collect();
        let name = format!("{} on {} with seed {}", run.policy, run.cluster, run.seed);
        assert_eq!(found, run.jct, "{name}");
        assert_eq!(simulation.now(), Seconds::new(run.end), "{name}");
        assert!((summary.utilization["all"] / run.utilization - 1.0).abs() < 1e-9, "{name}");
    }
}
