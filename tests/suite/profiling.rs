//! Simulations in which policies see estimated throughputs of pairs.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion::index::{JobId, WorkerTypeId};
use apportion::metrics::Recorder;
use apportion::policy::{Decision, Policy};
use apportion::simulator::{Checkpoint, Event, Limits, Observer, Options, Outcome, Simulation, Unobserved};
use apportion::throughput::Profiling;
use apportion::workload::{Arrivals, Combination, Listed, Native, WorkloadOptions};
use apportion::{Catalog, Cluster, PolicyOptions, Problem, Seconds, Throughputs};

fn throughputs() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").unwrap()
}

fn cluster() -> Cluster {
    "v100=2,p100=1,k80=2".parse().unwrap()
}

fn arrivals() -> Box<dyn Arrivals> {
    let options = WorkloadOptions::continuous(Seconds::new(300.0)).jobs(24);
    let mut native = Native::try_new(options, &throughputs(), 3).unwrap();
    let jobs = std::iter::from_fn(|| native.next_job()).map(|job| {
        let steps = job.total_steps / 8.0;
        job.total_steps(steps)
    });
    Box::new(Listed::new(jobs.collect()))
}

fn policy(name: &str) -> Box<dyn Policy> {
    Catalog::embedded().build(name, &PolicyOptions::default()).unwrap()
}

fn simulation(name: &str, options: Options) -> Simulation {
    Simulation::new((&cluster(), throughputs()), arrivals(), policy(name), options).unwrap()
}

fn estimating(mut options: Options) -> Options {
    options.profiling = Some(Profiling::new(0.3, 5));
    options.with_seed(11)
}

fn limits(rounds: u64) -> Limits {
    Limits { rounds: Some(rounds), ..Limits::default() }
}

type Pair = (Combination<JobId>, WorkerTypeId);

/// Every event as text, and the estimated throughputs of pairs beside the true ones.
#[derive(Debug, Default)]
struct Log {
    events: Vec<String>,
    /// The last belief that a policy was shown.
    believed: BTreeMap<Pair, [f64; 2]>,
    /// The throughputs measured, and the number of measurements since that estimate.
    measured: BTreeMap<Pair, ([f64; 2], i32)>,
    n_wrong: usize,
    n_corrected: usize,
}

impl Observer for Log {
    fn observe(&mut self, event: &Event<'_>) {
        self.events.push(serde_json::to_string(event).unwrap());
        if let Event::Slice(slice) = event
            && slice.jobs.is_pair()
        {
            let entry = self.measured.entry((slice.jobs, slice.worker_type)).or_insert(([0.0; 2], 0));
            *entry = (slice.throughput, entry.1 + 1);
        }
    }

    fn decided(&mut self, _now: Seconds, problem: &Problem, _decision: &Decision) {
        let jobs: Vec<_> = problem.jobs().ids().collect();
        for (position, first) in jobs.iter().enumerate() {
            for second in &jobs[position + 1..] {
                let pair = Combination::pair(*first, *second);
                for kind in problem.cluster().types().ids() {
                    let new = problem.colocated(pair, kind).unwrap_or_default();
                    let key = (pair.map(|index| problem.jobs()[index].id), kind);
                    let old = self.believed.insert(key, new);
                    if let (Some((truth, times)), Some(old)) = (self.measured.remove(&key), old) {
                        self.check(old, new, (truth, times));
                    }
                }
            }
        }
    }
}

impl Log {
    /// Each measurement halves the error; that of a pair that stands still removes it.
    fn check(&mut self, old: [f64; 2], new: [f64; 2], (truth, times): ([f64; 2], i32)) {
        if truth.iter().all(|steps| *steps == 0.0) {
            assert!(new.iter().all(|steps| *steps == 0.0), "{old:?} {new:?}");
            return;
        }
        for member in 0..2 {
            let error = old[member] - truth[member];
            let expected = truth[member] + error * 0.5_f64.powi(times);
            assert!(
                (new[member] - expected).abs() <= 1e-9 * truth[member],
                "{old:?} {new:?} {truth:?} {times}"
            );
            self.n_wrong += usize::from(error.abs() > 1e-3 * truth[member]);
        }
        self.n_corrected += 1;
    }
}

#[test]
fn beliefs_move_to_what_runs_and_what_runs_is_the_truth() {
    let mut simulation = simulation("max_min_fairness_packed", estimating(Options::corrected()));
    let mut log = Log::default();
    assert_eq!(simulation.run(&mut log, &limits(100_000)).unwrap(), Outcome::Finished);
    assert!(log.n_corrected > 10, "{} corrections", log.n_corrected);
    assert!(log.n_wrong > 3, "{} beliefs were wrong", log.n_wrong);
}

#[test]
fn a_resumed_estimator_is_one_never_stopped() {
    let ideal = Options { ideal: true, ..Options::corrected() };
    for (name, options) in [
        ("max_min_fairness_packed", Options::corrected()),
        ("max_min_fairness_packed", ideal),
        ("gandiva", Options::published()),
    ] {
        let options = estimating(options);
        let mut log = Log::default();
        assert_eq!(
            simulation(name, options.clone()).run(&mut log, &limits(100_000)).unwrap(),
            Outcome::Finished
        );
        for stop in [1, 9, 30] {
            let mut first = simulation(name, options.clone());
            let mut observer = Log::default();
            first.run(&mut observer, &limits(stop)).unwrap();
            let saved = serde_json::to_string(&first.checkpoint()).unwrap();
            let checkpoint: Checkpoint = serde_json::from_str(&saved).unwrap();
            let system = (&cluster(), throughputs());
            let mut second = Simulation::resume(system, arrivals(), policy(name), &checkpoint).unwrap();
            assert_eq!(second.run(&mut observer, &limits(100_000)).unwrap(), Outcome::Finished);
            assert!(observer.events == log.events, "{name}, stopped after {stop}");
        }
    }
}

#[test]
fn estimates_cost_little_and_knowing_costs_nothing() {
    let average = |profiling: Option<Profiling>| {
        let mut options = Options::corrected().with_seed(11);
        options.profiling = profiling;
        let mut simulation = simulation("max_min_fairness_packed", options);
        let mut recorder = Recorder::new(simulation.cluster());
        simulation.run(&mut recorder, &limits(100_000)).unwrap();
        recorder.summary().average_jct.unwrap()
    };
    let known = average(None);
    let n_all = throughputs().rows().iter().filter(|row| row.scale_factor == 1).count();
    let profiled = average(Some(Profiling::new(1.0, n_all)));
    let guessed = average(Some(Profiling::new(0.0, 1)));
    eprintln!("average completion time, s: known {known}, profiled {profiled}, guessed {guessed}");
    assert!((profiled / known - 1.0).abs() < 0.05, "{profiled} {known}");
    assert!((guessed / known - 1.0).abs() < 0.3, "{guessed} {known}");
}

#[test]
fn nothing_of_it_is_saved_where_nothing_is_estimated() {
    let mut simulation = simulation("fifo_perf", Options::corrected());
    simulation.run(&mut Unobserved, &limits(3)).unwrap();
    let saved = serde_json::to_value(simulation.checkpoint()).unwrap();
    assert!(saved.get("estimator").is_none() && saved["options"].get("profiling").is_none());
    let mut bad = Options::corrected();
    bad.profiling = Some(Profiling::new(0.5, 1000));
    let refused = Simulation::new((&cluster(), throughputs()), arrivals(), policy("fifo_perf"), bad);
    assert!(refused.unwrap_err().to_string().contains("reference_models is 1000"));
}
