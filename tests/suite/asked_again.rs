//! Policies that depend on time: they decide again at the instants that they request, and do not count remembered time twice.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::Arc;

use apportion::catalog::{Catalog, PolicyOptions};
use apportion::index::Id;
use apportion::metrics::Recorder;
use apportion::policy::heuristic::{Las, LasParameters, Themis, ThemisParameters};
use apportion::policy::{Decision, Policy, PolicyError};
use apportion::problem::Problem;
use apportion::simulator::{Checkpoint, Event, Limits, Observer, Options, Outcome, Simulation};
use apportion::workload::{Arrivals, Listed, Native, WorkloadOptions};
use apportion::{Cluster, Job, Seconds, StepsPerSecond, Throughputs};
use proptest::prelude::*;

/// The slow way: asks at every boundary, or never before something changes.
#[derive(Debug)]
struct Asked {
    policy: Box<dyn Policy>,
    after: Option<Seconds>,
}

impl Policy for Asked {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let mut decision = self.policy.allocate(problem)?;
        decision.rules.recompute_after = self.after;
        Ok(decision)
    }
}

fn las() -> Box<dyn Policy> {
    let thresholds = vec![1_003.7, 9_001.3];
    Box::new(Las::new(LasParameters { thresholds, promote_after: Some(3.1), backfill: true }))
}

/// With a knob of 0 nothing is left to chance.
fn themis() -> Box<dyn Policy> {
    Box::new(Themis::new(ThemisParameters { lease_s: 1_200.0, fairness: 0.0 }, 0))
}

fn throughputs() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").unwrap()
}

fn cluster() -> Cluster {
    "v100=3,p100=2,k80=2".parse().unwrap()
}

fn arrivals(seed: u64) -> Box<dyn Arrivals> {
    let options = WorkloadOptions::continuous(Seconds::new(1500.0)).jobs(25).multi_worker(true);
    let mut native = Native::try_new(options, &throughputs(), seed).unwrap();
    let jobs = std::iter::from_fn(|| native.next_job()).map(|job| {
        let steps = job.total_steps / 20.0;
        job.total_steps(steps)
    });
    Box::new(Listed::new(jobs.filter(|job| job.scale_factor <= 2).collect()))
}

fn completions(seed: u64, policy: Box<dyn Policy>, options: Options) -> Vec<(i64, Option<Seconds>)> {
    let mut simulation =
        Simulation::new((&cluster(), throughputs()), arrivals(seed), policy, options).unwrap();
    let mut recorder = Recorder::new(simulation.cluster());
    let limits = Limits { rounds: Some(200_000), ..Limits::default() };
    assert_eq!(simulation.run(&mut recorder, &limits).unwrap(), Outcome::Finished);
    recorder.summary().jobs.iter().map(|job| (job.order(), job.completion)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn las_asked_when_queues_change_is_las_asked_every_round(seed in 0_u64..1 << 40) {
        let options = || Options::corrected().with_reset_interval(Seconds::ZERO);
        let always = Asked { policy: las(), after: Some(Seconds::ZERO) };
        prop_assert_eq!(completions(seed, las(), options()), completions(seed, Box::new(always), options()));
    }

    #[test]
    fn what_is_to_be_asked_survives_a_checkpoint(seed in 0_u64..1 << 40, stop in 1_u64..80, ideal in any::<bool>()) {
        for policy in [las, themis] {
            let mut options = Options::corrected();
            options.ideal = ideal;
            let whole = completions(seed, policy(), options.clone());
            let system = (&cluster(), throughputs());
            let mut first = Simulation::new(system.clone(), arrivals(seed), policy(), options).unwrap();
            let mut recorder = Recorder::new(first.cluster());
            first.run(&mut recorder, &Limits { rounds: Some(stop), ..Limits::default() }).unwrap();
            let saved = serde_json::to_string(&first.checkpoint()).unwrap();
            let checkpoint: Checkpoint = serde_json::from_str(&saved).unwrap();
            let mut second = Simulation::resume(system, arrivals(seed), policy(), &checkpoint).unwrap();
            second.run(&mut recorder, &Limits::default()).unwrap();
            let jobs = recorder.summary().jobs;
            prop_assert_eq!(jobs.iter().map(|job| (job.order(), job.completion)).collect::<Vec<_>>(), whole);
        }
    }
}

/// Which job runs in each round; one worker.
#[derive(Debug, Default)]
struct Turns(Vec<usize>);

impl Observer for Turns {
    fn observe(&mut self, event: &Event<'_>) {
        if let Event::Lease { jobs, .. } = event {
            self.0.push(jobs.first().index());
        }
    }
}

/// Jobs of 1 step/s on one worker: (steps, arrival).
fn turns(policy: Box<dyn Policy>, jobs: &[(u32, f64)]) -> Vec<usize> {
    let speed = StepsPerSecond::new(1.0);
    let job = |(steps, arrival): &(u32, f64)| {
        Job::new("hand-made").steps(*steps).arrival(Seconds::new(*arrival)).throughput("v100", speed)
    };
    let arrivals = Box::new(Listed::new(jobs.iter().map(job).collect()));
    let cluster: Cluster = "v100=1".parse().unwrap();
    let options = Options::corrected();
    let mut simulation = Simulation::new((&cluster, throughputs()), arrivals, policy, options).unwrap();
    let mut turns = Turns::default();
    simulation.run(&mut turns, &Limits::default()).unwrap();
    turns.0
}

#[test]
fn a_job_is_demoted_at_the_first_boundary_after_its_threshold() {
    let las = || {
        let (thresholds, promote_after) = (vec![1_000.0], None);
        Las::new(LasParameters { thresholds, promote_after, backfill: true })
    };
    // Past 1,000 s at 1,080 s, within the reset interval. The newcomer's 400 s end at 1,480 s.
    let jobs = [(1_800, 0.0), (400, 300.0)];
    assert_eq!(turns(Box::new(las()), &jobs), [0, 0, 0, 1, 1, 0, 0]);
    // Asked at changes alone it sees the newcomer when the reset interval is over, and the first job is done by then.
    let never = Asked { policy: Box::new(las()), after: None };
    assert_eq!(turns(Box::new(never), &jobs), [0, 0, 0, 0, 0, 1, 1]);
}

#[test]
fn a_lease_ends_at_the_first_boundary_after_its_length() {
    // Each lease of 1,200 s lasts four rounds. When the first has ended ρ is (1440 + 1560)/6000 for the job that had
    // it and (1440 + 3000)/6000 for the other; later both are equal after each pair of leases, and ties go by arrival.
    let jobs = [(3_000, 0.0), (3_000, 0.0)];
    let expected = [[0; 4], [1; 4], [0; 4], [1; 4]].concat();
    let found = turns(themis(), &jobs);
    assert_eq!(found[..16], expected);
    assert_eq!(found[16..], [0, 1]);
}

/// Decides every problem anew, with nothing remembered, and compares.
#[derive(Debug)]
struct Anew {
    policy: &'static str,
    n_decisions: usize,
}

impl Observer for Anew {
    fn observe(&mut self, _event: &Event<'_>) {}

    fn decided(&mut self, _now: Seconds, problem: &Problem, decision: &Decision) {
        let Some(known) = &decision.objective else { return };
        let mut fresh = Catalog::embedded().build(self.policy, &PolicyOptions::default()).unwrap();
        let found = fresh.allocate(problem).unwrap().objective.unwrap();
        assert!((found.value / known.value - 1.0).abs() < 1e-6, "{} after {}", found.value, known.value);
        self.n_decisions += 1;
    }
}

#[test]
fn a_decision_on_finish_times_follows_from_its_problem() {
    let policy = "finish_time_fairness_perf";
    let made = Catalog::embedded().build(policy, &PolicyOptions::default()).unwrap();
    let system = (&cluster(), throughputs());
    let mut simulation = Simulation::new(system, arrivals(7), made, Options::corrected()).unwrap();
    let mut anew = Anew { policy, n_decisions: 0 };
    simulation.run(&mut anew, &Limits::default()).unwrap();
    assert!(anew.n_decisions > 10);
}
