//! The rule `low_average_jct`: no stream of jobs starves another, and time goes to few combinations in every build.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::{Arc, Mutex};

use apportion::catalog::Catalog;
use apportion::metrics::Recorder;
use apportion::policy::{Decision, Policy, PolicyError};
use apportion::problem::Problem;
use apportion::simulator::{Limits, Options, Outcome, Simulation, Unobserved};
use apportion::spec::Source;
use apportion::workload::Listed;
use apportion::{Cluster, Job, Seconds, StepsPerSecond, Throughputs};

const HOUR: f64 = 3600.0;

/// The shipped policy of this name, without its constraints on each job if not `floored`.
fn policy(name: &str, floored: bool) -> Box<dyn Policy> {
    let mut catalog = Catalog::embedded();
    let text = catalog.document(name).unwrap().source.text.clone();
    let start = text.find("for_each_job").unwrap();
    let end = text.find("refine").unwrap();
    let kept = if floored { &text[start..end] } else { "" };
    let text = format!("{}{kept}{}", &text[..start], &text[end..]);
    catalog.add(Source::new("mine.yaml", text.replace(name, "mine"))).unwrap();
    catalog.policy("mine").unwrap()
}

fn run(jobs: Vec<Job>, policy: Box<dyn Policy>) -> Recorder {
    run_on("v100=4", jobs, policy)
}

fn run_on(cluster: &str, jobs: Vec<Job>, policy: Box<dyn Policy>) -> Recorder {
    let cluster: Cluster = cluster.parse().unwrap();
    let system = (&cluster, Throughputs::embedded("osdi20").unwrap());
    let mut simulation =
        Simulation::new(system, Box::new(Listed::new(jobs)), policy, Options::corrected()).unwrap();
    let mut recorder = Recorder::new(simulation.cluster());
    assert_eq!(simulation.run(&mut recorder, &Limits::default()).unwrap(), Outcome::Finished);
    recorder
}

/// A gang of all four workers, and short jobs of one that keep them busy for 400 hours, each worth more per worker.
#[test]
fn a_stream_of_short_jobs_does_not_starve_a_gang() {
    let job = |minutes: u32, arrival: f64| {
        let job = Job::new("hand-made").arrival(Seconds::new(arrival * HOUR));
        job.steps(60 * minutes).throughput("v100", StepsPerSecond::new(1.0))
    };
    let jobs = || {
        let stream = (0..2960).map(|number| job(30, 0.135_f64 * f64::from(number)));
        std::iter::once(job(600, 0.0).scale_factor(4)).chain(stream).collect::<Vec<Job>>()
    };
    for name in ["low_average_jct", "low_average_jct_packed"] {
        let gang = |floored: bool| {
            let summary = run(jobs(), policy(name, floored)).summary();
            (summary.jobs[0].jct.unwrap().get() / HOUR, summary.jobs[0].rho.unwrap())
        };
        let ((starved, _), (floored, rho)) = (gang(false), gang(true));
        assert!(starved > 395.0, "{name}: {starved} h");
        assert!(floored < 250.0 && rho < 4.5, "{name}: {floored} h, rho {rho}");
    }
}

/// A gang that could use slow workers all of the time, where short jobs keep the fast ones busy, on which it is a hundred times
/// faster and has a part of its shares.
#[test]
fn time_on_slow_workers_is_not_taken_for_a_share_of_fast_ones() {
    let speed = StepsPerSecond::new;
    let gang = Job::new("gang").scale_factor(4).steps(1_080_000).arrival(Seconds::ZERO);
    let gang = gang.throughput("v100", speed(100.0)).throughput("k80", speed(1.0));
    let short = |number: u32| {
        let job = Job::new("short").steps(1000).arrival(Seconds::new(300.0 * f64::from(number)));
        job.throughput("v100", speed(1.0))
    };
    let jobs = || std::iter::once(gang.clone()).chain((1..=1500).map(short)).collect::<Vec<Job>>();
    for name in ["low_average_jct", "max_min_fairness_perf"] {
        let policy = Catalog::embedded().policy(name).unwrap();
        let summary = run_on("v100=4,k80=4", jobs(), policy).summary();
        let (jct, rho) = (summary.jobs[0].jct.unwrap().get() / HOUR, summary.jobs[0].rho.unwrap());
        assert!(jct < 60.0 && rho < 5.0, "{name}: {jct} h, rho {rho}");
    }
}

/// Notes how many combinations have time in each decision, beside the rows that a vertex may be held by.
#[derive(Debug)]
struct Counting {
    inner: Box<dyn Policy>,
    seen: Arc<Mutex<Vec<(usize, usize)>>>,
}

impl Policy for Counting {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let decision = self.inner.allocate(problem)?;
        let shares = decision.allocation.shares();
        let rows = decision.allocation.combinations().ids().map(|row| shares.row(row));
        let given = rows.flatten().filter(|share| **share > 0.0).count();
        self.seen.lock().unwrap().push((given, 2 * problem.n_jobs() + problem.n_types()));
        Ok(decision)
    }
}

#[test]
fn time_goes_to_no_more_combinations_than_a_vertex_has() {
    let types = ["ResNet-50 (batch size 64)", "LM (batch size 20)", "Transformer (batch size 64)", "A3C"];
    let jobs = (0_u32..24).map(|number| {
        let job = Job::new(types[number as usize % 4]).steps(90_000 + 7_000 * number);
        job.arrival(Seconds::new(1000.0 * f64::from(number)))
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let counting = Counting { inner: policy("low_average_jct_packed", true), seen: Arc::clone(&seen) };
    let cluster: Cluster = "v100=3,p100=3,k80=3".parse().unwrap();
    let system = (&cluster, Throughputs::embedded("osdi20").unwrap());
    let jobs = Box::new(Listed::new(jobs.collect()));
    let mut simulation = Simulation::new(system, jobs, Box::new(counting), Options::corrected()).unwrap();
    assert_eq!(simulation.run(&mut Unobserved, &Limits::default()).unwrap(), Outcome::Finished);
    let seen = seen.lock().unwrap();
    assert!(seen.len() >= 30 && seen.iter().all(|(given, rows)| given <= rows), "{seen:?}");
}

/// A gang that fits the slow type alone and is slower there than a quarter of an isolated share of both would be, and jobs that
/// keep that type busy.
#[test]
fn a_gang_that_fits_slow_workers_alone_has_its_part_of_those() {
    let speed = StepsPerSecond::new;
    let gang = Job::new("gang").scale_factor(8).steps(18_000).arrival(Seconds::ZERO);
    let gang = gang.throughput("v100", speed(50.0)).throughput("k80", speed(1.0));
    let ends = |hours: u32, name: &str| {
        let long = Job::new("long").steps(3_600 * hours).arrival(Seconds::ZERO).throughput("k80", speed(1.0));
        let jobs = std::iter::once(gang.clone()).chain(std::iter::repeat_n(long, 8)).collect();
        let policy = Catalog::embedded().policy(name).unwrap();
        run_on("v100=7,k80=8", jobs, policy).summary().jobs[0].jct.unwrap().get() / HOUR
    };
    for name in ["low_average_jct", "low_average_jct_packed"] {
        // A quarter of a ninth of the eight workers is a share of 1/36: 180 h for 5 h of work.
        let jct = ends(400, name);
        assert!(jct < 190.0, "{name}: {jct} h");
    }
}
