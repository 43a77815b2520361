//! Simulations that get nowhere end and say why; none runs past what its clock can show, or past its limits.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apportion::index::{Id, JobIndex};
use apportion::policy::heuristic::{FifoPerf, Isolated};
use apportion::policy::{Conflict, Decision, Policy, PolicyError};
use apportion::problem::Problem;
use apportion::simulator::{
    Event, Limits, Observer, Options, Outcome, Patience, PreemptionCost, Simulation, Standstill, Unobserved,
    WorkerFaults,
};
use apportion::solver::ConflictSize;
use apportion::spec::snapshot::Label;
use apportion::workload::{Arrivals, Combination, Listed};
use apportion::{Allocation, Cluster, Job, Seconds, StepsPerSecond, Throughputs};

/// A job that one V100 runs at 1 step/s.
fn job(steps: u32, arrival: f64) -> Job {
    let speed = StepsPerSecond::new(1.0);
    Job::new("hand-made").steps(steps).arrival(Seconds::new(arrival)).throughput("v100", speed)
}

/// One long job, then short ones for ever.
#[derive(Debug)]
struct Endless {
    long: u32,
    short: u32,
    gap: f64,
    n: u32,
}

impl Arrivals for Endless {
    fn next_job(&mut self) -> Option<Job> {
        let steps = if self.n == 0 { self.long } else { self.short };
        let arrival = self.gap * f64::from(self.n);
        self.n += 1;
        Some(job(steps, arrival))
    }
}

/// Gives the whole of the first worker type to the last job; nothing to others.
#[derive(Debug)]
struct LastFirst;

impl Policy for LastFirst {
    fn name(&self) -> &'static str {
        "last_first"
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let last = problem.jobs().ids().last();
        let rows = last.map(|job| (Combination::single(job), vec![1.0]));
        let mut decision = Decision::of(Allocation::check(problem, rows).unwrap());
        decision.rules.skip_zero_priority = true;
        Ok(decision)
    }
}

/// Gives nothing to anyone.
#[derive(Debug)]
struct Miser;

impl Policy for Miser {
    fn name(&self) -> &'static str {
        "miser"
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let rows = problem.jobs().ids().next().map(|job| (Combination::single(job), vec![0.0]));
        let mut decision = Decision::of(Allocation::check(problem, rows).unwrap());
        decision.rules.skip_zero_priority = true;
        Ok(decision)
    }
}

fn parts() -> (Cluster, Arc<Throughputs>) {
    ("v100=1".parse().unwrap(), Throughputs::embedded("osdi20").unwrap())
}

fn simulation(arrivals: Box<dyn Arrivals>, policy: Box<dyn Policy>, options: Options) -> Simulation {
    let (cluster, throughputs) = parts();
    Simulation::new((&cluster, throughputs), arrivals, policy, options).unwrap()
}

fn listed(jobs: Vec<Job>) -> Box<dyn Arrivals> {
    Box::new(Listed::new(jobs))
}

fn patient(rounds: Option<u64>, doublings: Option<u32>) -> Limits {
    Limits { rounds: Some(200_000), patience: Patience { rounds, doublings }, ..Limits::default() }
}

/// A job that comes back loses a whole round to it.
fn costly() -> Options {
    let (checkpoint, restore) = (Seconds::ZERO, Seconds::new(360.0));
    let preemption_cost = Some(PreemptionCost { checkpoint, restore, job_types: Vec::new() });
    Options { preemption_cost, ..Options::corrected() }
}

#[test]
fn rounds_in_which_no_job_runs_a_step_are_a_livelock() {
    let turns = || {
        simulation(listed(vec![job(5_000, 0.0), job(5_000, 0.0)]), Box::new(Isolated::default()), costly())
    };
    let mut endless = turns();
    let limits = Limits { rounds: Some(3_000), ..Limits::default() };
    assert_eq!(endless.run(&mut Unobserved, &limits).unwrap(), Outcome::RoundLimit);
    let mut whole = turns();
    assert_eq!(whole.run(&mut Unobserved, &patient(Some(500), None)).unwrap(), Outcome::Standstill);
    let Some(Standstill::Livelock { since, rounds, leases, jobs }) = whole.standstill() else {
        panic!("{:?}", whole.standstill())
    };
    // each job runs one round, the first in which it has workers
    assert!(
        *since <= Seconds::new(4.0 * 360.0) && *rounds == 501 && *leases == 501,
        "{:?}",
        whole.standstill()
    );
    assert_eq!(*jobs, [Label::Number(0), Label::Number(1)]);
    let text = whole.standstill().unwrap().to_string();
    assert!(
        text.contains("in 501 rounds with 501 leases") && text.contains("2 active jobs (0, 1)"),
        "{text}"
    );

    let mut first = turns();
    first.run(&mut Unobserved, &Limits { rounds: Some(300), ..Limits::default() }).unwrap();
    let (cluster, throughputs) = parts();
    let arrivals = listed(vec![job(5_000, 0.0), job(5_000, 0.0)]);
    let policy = Box::new(Isolated::default());
    let mut second =
        Simulation::resume((&cluster, throughputs), arrivals, policy, &first.checkpoint()).unwrap();
    assert_eq!(second.run(&mut Unobserved, &patient(Some(500), None)).unwrap(), Outcome::Standstill);
    assert_eq!(second.standstill(), whole.standstill());
}

#[test]
fn a_job_to_come_is_waited_for() {
    // In 3,000 rounds without a step a third job is still to arrive; it runs, so the simulation was not at a standstill.
    let jobs = vec![job(5_000, 0.0), job(5_000, 0.0), job(100, 360.0 * 3_000.0)];
    let mut simulation = simulation(listed(jobs), Box::new(Isolated::default()), costly());
    assert_eq!(simulation.run(&mut Unobserved, &patient(Some(500), None)).unwrap(), Outcome::Standstill);
    assert!(simulation.now() > Seconds::new(360.0 * 3_400.0), "{}", simulation.now());
}

#[test]
fn jobs_that_the_policy_gives_nothing_are_starved() {
    let named = job(50, 0.0).name("short");
    let mut stalled = simulation(listed(vec![named]), Box::new(Miser), Options::corrected());
    assert_eq!(stalled.run(&mut Unobserved, &Limits::default()).unwrap(), Outcome::Stalled);
    let text = stalled.standstill().unwrap().to_string();
    assert!(
        text.starts_with("the policy gives nothing to 1 active job (short); nothing has changed since 0.00"),
        "{text}"
    );
    assert!(text.contains(" hours (1 round), and"), "{text}");
    assert_eq!(stalled.standstill().unwrap().name(), "starved");
}

#[test]
fn a_measured_job_that_is_overtaken_for_ever_is_starved() {
    let arrivals = Box::new(Endless { long: 100_000, short: 360, gap: 360.0, n: 0 });
    let options = Options::corrected().with_measure(0..1).with_reset_interval(Seconds::ZERO);
    let mut found = simulation(arrivals, Box::new(LastFirst), options);
    assert_eq!(found.run(&mut Unobserved, &patient(None, Some(2))).unwrap(), Outcome::Standstill);
    let Some(Standstill::Overtaken { jobs, n_before, n_arrived, n_active, .. }) = found.standstill() else {
        panic!("{:?}", found.standstill())
    };
    assert_eq!((jobs.as_slice(), *n_arrived), (&[Label::Number(0)][..], 4_000));
    assert!(*n_before <= 1_000 && *n_active <= 2, "{:?}", found.standstill());
}

/// Gives the first job little of the first worker type, and divides the rest among the others.
#[derive(Debug)]
struct Crumbs;

impl Policy for Crumbs {
    fn name(&self) -> &'static str {
        "crumbs"
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let n_others = problem.jobs().len() as f64 - 1.0;
        let share = |job: JobIndex| if job.index() == 0 { 0.002 } else { 0.998 / n_others };
        let rows = problem.jobs().ids().map(|job| (Combination::single(job), vec![share(job)]));
        Ok(Decision::of(Allocation::check(problem, rows).unwrap()))
    }
}

#[test]
fn a_measured_job_that_hardly_runs_is_starved_and_one_that_gets_on_is_not() {
    let run = |gap: f64| {
        let arrivals = Box::new(Endless { long: 20_000_000, short: 350, gap, n: 0 });
        let options = Options::corrected().with_measure(0..1).with_reset_interval(Seconds::ZERO);
        let mut run = simulation(arrivals, Box::new(Crumbs), options);
        let outcome = run.run(&mut Unobserved, &patient(None, Some(2))).unwrap();
        (outcome, run.standstill().cloned())
    };
    let (outcome, found) = run(361.0);
    assert_eq!(outcome, Outcome::Standstill);
    let Some(Standstill::Crawling { jobs, part, n_before, n_arrived, n_active }) = &found else {
        panic!("{found:?}")
    };
    assert_eq!((jobs.as_slice(), *n_before, *n_arrived), (&[Label::Number(0)][..], 1_000, 4_000));
    assert!((0.0..0.01).contains(part) && *part > 0.0 && *n_active < 100, "{found:?}");
    let text = found.unwrap().to_string();
    assert!(text.starts_with("measured jobs hardly run: 1 active job (0), at most 0."), "{text}");
    assert_eq!(run(1_000.0), (Outcome::Finished, None));
}

#[test]
fn a_queue_that_grows_with_the_arrivals_is_growing_and_one_that_does_not_is_not() {
    let run = |gap: f64| {
        let arrivals = Box::new(Endless { long: 360, short: 360, gap, n: 0 });
        let mut run = simulation(arrivals, Box::new(FifoPerf), Options::corrected().with_measure(0..1_000));
        let outcome = run.run(&mut Unobserved, &patient(None, Some(2))).unwrap();
        (outcome, run.standstill().cloned())
    };
    assert_eq!(run(400.0), (Outcome::Finished, None));
    let (outcome, found) = run(60.0);
    assert_eq!(outcome, Outcome::Standstill);
    let Some(Standstill::Growing { course, n_active, growth }) = found else { panic!("{found:?}") };
    // five of six jobs that have come are there
    assert!(n_active.abs_diff(3_333) < 10, "{n_active}");
    assert_eq!(course.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [2_000, 4_000]);
    assert!((course[0].1 - 1_250.0).abs() < 10.0 && (course[1].1 - 2_500.0).abs() < 10.0, "{course:?}");
    assert!((growth.per_arrival - 5.0 / 6.0).abs() < 0.01 && growth.error < 0.01, "{growth:?}");
}

fn failing(between: f64, repair: f64) -> Options {
    let mut options = Options::corrected();
    options.faults.workers = Some(WorkerFaults {
        mean_time_between_failures: Seconds::new(between),
        mean_time_to_repair: Seconds::new(repair),
    });
    options
}

#[test]
fn what_is_too_late_for_the_clock_ends_the_simulation() {
    let ends = |jobs: Vec<Job>, options: Options| {
        let mut simulation = simulation(listed(jobs), Box::new(FifoPerf), options);
        let outcome = simulation.run(&mut Unobserved, &Limits::default()).unwrap();
        assert_eq!(outcome, Outcome::Standstill);
        assert!(simulation.now() < Seconds::new(1e12), "{}", simulation.now());
        let found = simulation.standstill().unwrap();
        assert!(matches!(found, Standstill::Unresolved { .. }), "{found:?}");
        found.to_string()
    };
    for repair in [1e308, 1e200, 1e20] {
        ends(vec![job(5_000, 0.0)], failing(1_000.0, repair));
    }
    let text = ends(vec![job(5_000, 0.0), job(5, 1e18)], Options::corrected());
    assert_eq!(
        text,
        "what comes next is at 1e18 s, where the clock cannot tell apart the parts of a round of 360 s"
    );
    let mut never = costly();
    never.preemption_cost.as_mut().unwrap().restore = Seconds::new(1e300);
    let mut turns =
        simulation(listed(vec![job(5_000, 0.0), job(5_000, 0.0)]), Box::new(Isolated::default()), never);
    assert_eq!(turns.run(&mut Unobserved, &Limits::default()).unwrap(), Outcome::Standstill);
    let mut ideal = Options::corrected();
    ideal.ideal = true;
    ends(vec![job(5, 0.0), job(5, 1e18)], ideal);
    let refused = simulation_error(failing(1e-5, 10.0));
    assert!(
        refused.ends_with("expected a finite number of seconds above 0, at least a millionth of a round"),
        "{refused}"
    );
}

fn simulation_error(options: Options) -> String {
    let (cluster, throughputs) = parts();
    let made = Simulation::new((&cluster, throughputs), listed(Vec::new()), Box::new(FifoPerf), options);
    made.map(drop).unwrap_err().to_string()
}

/// Raises a flag after a given number of failures of workers, and keeps all events.
#[derive(Debug, Default)]
struct Raises {
    flag: Arc<AtomicBool>,
    after: usize,
    n_failures: usize,
    events: Vec<String>,
}

impl Observer for Raises {
    fn observe(&mut self, event: &Event<'_>) {
        self.events.push(format!("{event:?}"));
        self.n_failures += usize::from(matches!(event, Event::WorkerDown { .. }));
        if self.n_failures == self.after {
            self.flag.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn an_interrupt_is_heard_between_two_rounds_and_nothing_is_lost() {
    // For 40,000 s there are only failures and repairs, as many of one as of the other.
    let jobs = || listed(vec![job(1, 0.0), job(5, 40_000.0)]);
    let options = || failing(1.0, 1.0);
    let limits = |flag: &Arc<AtomicBool>| Limits { interrupt: Some(Arc::clone(flag)), ..Limits::default() };
    let mut whole = Raises { after: usize::MAX, ..Raises::default() };
    let flag = Arc::clone(&whole.flag);
    let outcome = simulation(jobs(), Box::new(FifoPerf), options()).run(&mut whole, &limits(&flag)).unwrap();
    assert_eq!(outcome, Outcome::Finished);
    assert!(whole.n_failures > 15_000, "{}", whole.n_failures);

    let mut parts_of = Raises { after: 5_000, ..Raises::default() };
    let flag = Arc::clone(&parts_of.flag);
    let mut first = simulation(jobs(), Box::new(FifoPerf), options());
    assert_eq!(first.run(&mut parts_of, &limits(&flag)).unwrap(), Outcome::Interrupted);
    assert!(parts_of.n_failures < 8_000, "{}", parts_of.n_failures);
    flag.store(false, Ordering::Relaxed);
    let (cluster, throughputs) = parts();
    let parts = (&cluster, throughputs);
    let mut second = Simulation::resume(parts, jobs(), Box::new(FifoPerf), &first.checkpoint()).unwrap();
    assert_eq!(second.run(&mut parts_of, &limits(&flag)).unwrap(), Outcome::Finished);
    assert!(parts_of.events == whole.events, "the events differ");
}

/// Gives no decision while two jobs are there, for this reason.
#[derive(Clone, Debug)]
struct Alone(PolicyError);

impl Policy for Alone {
    fn name(&self) -> &'static str {
        "alone"
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        if problem.n_jobs() > 1 {
            return Err(self.0.clone());
        }
        let rows = problem.jobs().ids().next().map(|job| (Combination::single(job), vec![1.0]));
        Ok(Decision::of(Allocation::check(problem, rows).unwrap()))
    }
}

/// The first job is done when the policy fails, so that positions of active jobs are not those of all jobs.
#[test]
fn a_decision_that_fails_names_the_job_that_it_fails_on() {
    let named = |name: &str, steps, arrival| job(steps, arrival).name(name);
    let conflict = Conflict {
        constraint: "throughput >= 9[steps/s]".to_owned(),
        job: Some(0),
        n_alike: 1,
        worker_type: None,
        is_droppable: false,
        possible: None,
        relaxed: None,
        can_be_dropped: false,
    };
    let conflicts = PolicyError::Conflict {
        policy: "alone".to_owned(),
        conflicts: vec![conflict],
        size: ConflictSize::Smallest,
        names: Box::default(),
    };
    for (first, said) in [(7_200, "job a"), (100, "job b")] {
        for ideal in [false, true] {
            let jobs = vec![named("a", first, 0.0), named("b", 7_200, 3_600.0), named("c", 7_200, 3_600.0)];
            let options = Options { ideal, ..Options::corrected().with_reset_interval(Seconds::ZERO) };
            let alone = Alone(conflicts.clone());
            let mut simulation = simulation(listed(jobs), Box::new(alone), options);
            let error = simulation.run(&mut Unobserved, &Limits::default()).unwrap_err().to_string();
            assert!(error.ends_with(&format!("keeps `throughput >= 9[steps/s]` for {said}")), "{error}");
        }
    }
}

#[test]
fn a_decision_that_fails_says_when_and_with_which_jobs() {
    let jobs = || listed(vec![job(100, 0.0), job(7_200, 3_600.0), job(7_200, 7_200.0)]);
    let policy = || "alone".to_owned();
    let missing = PolicyError::Missing {
        policy: policy(),
        field: "weight".to_owned(),
        job: 1,
        expected: "another".to_owned(),
    };
    let conflict = Conflict {
        constraint: "throughput >= 9[steps/s]".to_owned(),
        job: Some(1),
        n_alike: 1,
        worker_type: None,
        is_droppable: false,
        possible: None,
        relaxed: None,
        can_be_dropped: false,
    };
    let conflicts = PolicyError::Conflict {
        policy: policy(),
        conflicts: vec![conflict],
        size: ConflictSize::Smallest,
        names: Box::default(),
    };
    // the second of the problem, which is called 2
    let no_weight = "policy `alone` needs `weight` of job 2, expected another";
    let infeasible = "policy `alone` is infeasible: no allocation keeps `throughput >= 9[steps/s]` for job 2";
    for (error, said) in [(missing, no_weight), (conflicts, infeasible)] {
        for ideal in [false, true] {
            let options = Options { ideal, ..Options::corrected().with_reset_interval(Seconds::ZERO) };
            let mut simulation = simulation(jobs(), Box::new(Alone(error.clone())), options);
            let error = simulation.run(&mut Unobserved, &Limits::default()).unwrap_err().to_string();
            let (place, what) = error.split_once(": ").unwrap();
            assert!(place.starts_with("after 2.00 simulated hours, in round "), "{error}");
            assert!(place.ends_with("with 2 active jobs (1, 2)"), "{error}");
            assert_eq!(what, said);
        }
    }
}
