//! Tests that the plug-in's policies are found, checked and run like any other.

use apportion::metrics::Recorder;
use apportion::simulator::{Limits, Options, Outcome, Simulation};
use apportion::spec::Source;
use apportion::workload::Listed;
use apportion::{Catalog, Cluster, Job, Problem, StepsPerSecond, Throughputs};
use weighted_first::WeightedFirst;

const TEXT: &str = "\
format: apportion/policy-v1
name: mine
summary: the heaviest jobs first
kind: weighted_first
at_most: 2
";

#[test]
fn the_heaviest_jobs_run() {
    let mut catalog = Catalog::embedded().with(WeightedFirst);
    catalog.add(Source::new("mine.yaml", TEXT)).unwrap();
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let cluster: Cluster = "v100=1,k80=2".parse().unwrap();
    let job = |name: &str, weight: f64| {
        let speeds = |job: Job| {
            job.throughput("v100", StepsPerSecond::new(4.0)).throughput("k80", StepsPerSecond::new(1.0))
        };
        speeds(Job::new(name).weight(weight).steps(1000))
    };
    let jobs = [job("light", 1.0), job("heavy", 3.0), job("middling", 2.0)];
    let problem = Problem::new(&cluster, &jobs, &throughputs).unwrap();
    let mut policy = catalog.policy("mine").unwrap();
    let decision = policy.allocate(&problem).unwrap();
    let speeds: Vec<f64> = decision.allocation.effective_throughput().iter().copied().collect();
    assert_eq!(speeds, [0.0, 4.0, 1.0]);
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place() {
    let mut catalog = Catalog::embedded().with(WeightedFirst);
    let error = catalog.add(Source::new("mine.yaml", TEXT.replace("at_most", "atmost"))).unwrap_err();
    assert!(error.to_string().starts_with("mine.yaml:5:1: unknown key `atmost`"), "{error}");
    let error = Catalog::embedded().add(Source::new("mine.yaml", TEXT)).unwrap_err().to_string();
    let expected =
        "mine.yaml:4:7: unknown kind of policy `weighted_first`, expected one of `program`, `heuristic`";
    assert_eq!(error, expected);
}

#[test]
fn a_simulation_runs_by_it() {
    let mut catalog = Catalog::embedded().with(WeightedFirst);
    catalog.add(Source::new("mine.yaml", TEXT.replace("at_most: 2", "at_most: 1"))).unwrap();
    let cluster: Cluster = "v100=1".parse().unwrap();
    let job = |weight: f64| {
        Job::new("hand-made").weight(weight).steps(1000).throughput("v100", StepsPerSecond::new(1.0))
    };
    let jobs = Box::new(Listed::new(vec![job(1.0), job(2.0)]));
    let system = (&cluster, Throughputs::embedded("osdi20").unwrap());
    let policy = catalog.policy("mine").unwrap();
    let mut simulation = Simulation::new(system, jobs, policy, Options::default()).unwrap();
    let mut recorder = Recorder::new(simulation.cluster());
    assert_eq!(simulation.run(&mut recorder, &Limits::default()).unwrap(), Outcome::Finished);
    // The heavy job runs first, to its end.
    let summary = recorder.summary();
    let ends: Vec<_> = summary.jobs.iter().map(|job| job.completion.unwrap()).collect();
    assert!(ends[1] < ends[0], "{ends:?}");
}
