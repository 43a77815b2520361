//! The scheduler compared with the simulator, and policies that are late or fail.

mod direct;
mod inside;
mod resized;
mod restored;
mod shadow;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use shadow::{Shadow, of_four, some_jobs, with_worker_faults};

use super::*;
use crate::catalog::{Catalog, PolicyOptions};
use crate::cluster::Cluster;
use crate::index::{Id, JobId, WorkerId};
use crate::policy::heuristic::Isolated;
use crate::policy::{Decision, Policy, PolicyError};
use crate::problem::{Entity, InnerRule, Problem};
use crate::simulator::{self, Event, Limits, Live, Observer, Outcome, Refill, Simulation, WorkerFaults};
use crate::throughput::Throughputs;
use crate::units::{Seconds, Steps, StepsPerSecond};
use crate::workload::{Combination, Job, Listed, Native, WorkloadOptions};

/// A deadline that no test reaches: every awaited answer comes.
const LONG: Option<Duration> = Some(Duration::from_hours(1));
const NOT_AT_ALL: Option<Duration> = Some(Duration::ZERO);
const SHORT: Option<Duration> = Some(Duration::from_millis(1));

fn throughputs() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").unwrap()
}

fn scheduler(cluster: &str, policy: Box<dyn Policy>) -> Scheduler {
    Scheduler::new(&cluster.parse().unwrap(), throughputs(), policy, Options::default()).unwrap()
}

fn job(v100: f64, k80: f64) -> Job {
    let speed = StepsPerSecond::new;
    Job::new("my own").steps(100_000).throughput("v100", speed(v100)).throughput("k80", speed(k80))
}

/// The instant at which a round of the default length starts.
fn start(round: u32) -> Seconds {
    Seconds::new(360.0 * f64::from(round))
}

/// The names and the worker type of each lease.
fn held(round: &Round) -> Vec<(String, &str)> {
    let mut held: Vec<_> =
        round.leases.iter().map(|lease| (lease.names.join("+"), lease.type_name.as_str())).collect();
    held.sort();
    held
}

/// Reports that every lease ran for the whole round.
fn run(scheduler: &mut Scheduler, round: &Round) {
    for lease in &round.leases {
        let (jobs, worker_type, time) = (lease.jobs, lease.worker_type, round.until - round.from);
        scheduler.record(Received { jobs, worker_type, time, steps: [Steps::new(1.0); 2] }).unwrap();
    }
}

/// The permitted next action of a [`Gated`] policy.
#[derive(Debug)]
enum Permit {
    Decide,
    Fail,
    Panic,
}

/// A policy that decides nothing until it is told to.
#[derive(Debug)]
struct Gated(Receiver<Permit>, Isolated);

fn gated() -> (Sender<Permit>, Box<dyn Policy>) {
    let (to, from) = channel();
    (to, Box::new(Gated(from, Isolated::default())))
}

impl Policy for Gated {
    fn name(&self) -> &'static str {
        "gated"
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let undecided =
            |reason: &str| PolicyError::Undecided { policy: "gated".into(), reason: reason.into() };
        match self.0.recv() {
            Ok(Permit::Decide) => self.1.allocate(problem),
            Ok(Permit::Fail) => Err(undecided("told to fail")),
            Ok(Permit::Panic) => panic!("told to panic"),
            Err(_) => Err(undecided("nobody is there")),
        }
    }
}

/// The number of times that the two gave idle workers to others.
fn shadowed(policy: &str, options: simulator::Options, seed: u64) -> usize {
    let is_small = options.live.refill == Refill::Completion;
    let cluster = of_four(if is_small { "v100=4,k80=1" } else { "v100=6,p100=4,k80=4" });
    let options = options.with_seed(seed);
    let jobs = some_jobs(seed);
    let made = || {
        let options = PolicyOptions { seed, ..PolicyOptions::default() };
        Catalog::embedded().build(policy, &options).unwrap()
    };
    let scheduler = Scheduler::new(&cluster, throughputs(), made(), options.scheduler()).unwrap();
    let mut shadow = Shadow::new(scheduler);
    let mut simulation =
        Simulation::new((&cluster, throughputs()), Box::new(Listed::new(jobs)), made(), options).unwrap();
    let outcome = simulation.run(&mut shadow, &Limits { rounds: Some(20_000), ..Limits::default() });
    assert_eq!(outcome.unwrap(), Outcome::Finished);
    assert!(shadow.n_compared > 50, "{policy}: {} leases", shadow.n_compared);
    shadow.n_refilled
}

#[test]
fn rounds_are_those_of_the_simulator() {
    let policies = [
        "max_min_fairness",
        "max_min_fairness_perf",
        "max_min_fairness_packed",
        "finish_time_fairness_perf",
        "fifo",
        "fifo_packed",
        "themis",
    ];
    let mut n_refilled = 0;
    for (seed, policy) in (0..).zip(policies) {
        shadowed(policy, simulator::Options::corrected(), seed);
        shadowed(policy, with_worker_faults(), seed + 100);
        let mut live = simulator::Options::corrected();
        let (start_up, stop) = (Seconds::new(30.0), Seconds::new(20.0));
        live.live = Live { refill: Refill::Completion, start_up, stop, ..Live::default() };
        n_refilled += shadowed(policy, live, seed + 200);
    }
    assert!(n_refilled > 5, "{n_refilled}");
}

#[test]
fn time_received_approaches_the_shares() {
    let policy = Catalog::embedded().policy("max_min_fairness_perf").unwrap();
    let mut scheduler = scheduler("v100=1,k80=1", policy);
    let speeds = [(10.0, 1.0), (4.0, 1.0), (2.0, 1.0)];
    let ids = speeds.map(|(v100, k80)| scheduler.submit(job(v100, k80)).unwrap());
    let n_rounds = 2_000;
    let mut n_held = [[0_u32; 2]; 3];
    for number in 0..n_rounds {
        let round = scheduler.tick(start(number), if number % 2 == 0 { LONG } else { None });
        let expected = if number == 0 { Decided::Fresh { asked: Seconds::ZERO } } else { Decided::Unchanged };
        assert_eq!(round.decided, expected);
        for lease in &round.leases {
            let row = ids.iter().position(|id| lease.jobs == Combination::single(*id)).unwrap();
            n_held[row][lease.worker_type.index()] += 1;
        }
        run(&mut scheduler, &round);
    }
    let in_force = scheduler.in_force().unwrap();
    assert!(in_force.objective.as_ref().is_some_and(|objective| objective.optimal));
    for (jobs, shares) in &in_force.shares {
        let row = ids.iter().position(|id| *jobs == Combination::single(*id)).unwrap();
        for (share, n_held) in shares.iter().zip(n_held[row]) {
            let received = f64::from(n_held) / f64::from(n_rounds);
            assert!((received - share).abs() < 0.005, "{jobs:?}: {received} of {share}");
        }
    }
    assert_eq!(scheduler.steps_done(ids[0]), Some(Steps::new(f64::from(n_held[0].iter().sum::<u32>()))));
}

#[test]
fn jobs_that_fit_nowhere_are_refused_one_by_one() {
    let policy = Catalog::embedded().policy("max_min_fairness_perf").unwrap();
    let mut scheduler = scheduler("v100=2,k80=1", policy);
    let here = scheduler.submit_as("mine", job(2.0, 1.0)).unwrap();
    let refused = scheduler.submit(Job::new("unheard of").scale_factor(2)).unwrap_err();
    assert!(matches!(refused, SubmitError::NoThroughput { scale_factor: 2, .. }), "{refused}");
    let refused = scheduler.submit(job(2.0, 1.0).scale_factor(3)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the job can run on no worker type of the cluster `v100=2,k80=1` at scale factor 3"
    );
    let refused = scheduler.submit(job(0.0, 0.0)).unwrap_err();
    assert!(matches!(refused, SubmitError::FitsNowhere { scale_factor: 1, .. }), "{refused}");
    for wrong in [
        job(f64::INFINITY, 1.0),
        job(2.0, 1.0).weight(0.0),
        job(2.0, 1.0).scale_factor(0),
        job(2.0, 1.0).total_steps(Steps::new(-1.0)).entity("nobody"),
        job(2.0, 1.0).arrival(Seconds::new(f64::NAN)),
    ] {
        let refused = scheduler.submit(wrong).unwrap_err();
        assert!(matches!(refused, SubmitError::Value { .. }), "{refused}");
    }
    let refused = scheduler.submit_as("mine", job(2.0, 1.0)).unwrap_err();
    assert_eq!(refused, SubmitError::NameTaken { name: "mine".into(), id: here });
    assert!(scheduler.problem().unwrap().entities().is_empty());
    assert_eq!(held(&scheduler.tick(start(0), None)), [("mine".to_owned(), "v100")]);
    assert!(scheduler.finish(here) && !scheduler.finish(here));
    assert_eq!(scheduler.find("mine"), None);
    assert!(scheduler.submit_as("mine", job(2.0, 1.0)).is_ok_and(|again| again != here));
}

#[test]
fn a_late_decision_leaves_the_last_in_force_and_is_adopted_when_it_comes() {
    let (permits, policy) = gated();
    let mut scheduler = scheduler("v100=1,k80=1", policy);
    let stays = scheduler.submit_as("stays", job(2.0, 1.0)).unwrap();
    let goes = scheduler.submit_as("goes", job(2.0, 1.0)).unwrap();
    permits.send(Permit::Decide).unwrap();
    let first = scheduler.tick(start(0), LONG);
    assert_eq!(first.decided, Decided::Fresh { asked: start(0) });
    assert_eq!(first.leases.len(), 2);
    run(&mut scheduler, &first);

    // The next decision is not permitted: the new job gets the workers that would idle.
    scheduler.finish(goes);
    let comes = scheduler.submit_as("comes", job(2.0, 1.0)).unwrap();
    for number in 1..4 {
        let round = scheduler.tick(start(number), if number == 1 { SHORT } else { NOT_AT_ALL });
        assert_eq!(round.decided, Decided::Late { since: start(1) });
        let mut names: Vec<_> = held(&round).into_iter().map(|(name, _)| name).collect();
        names.sort();
        assert_eq!(names, ["comes", "stays"]);
        assert_eq!(scheduler.in_force().unwrap().asked, start(0));
        run(&mut scheduler, &round);
    }
    // A third job comes while the policy is deciding: its answer cannot know it, and a second follows.
    let third = scheduler.submit_as("third", job(2.0, 1.0)).unwrap();
    permits.send(Permit::Decide).unwrap();
    let round = scheduler.tick(start(4), LONG);
    assert_eq!(round.decided, Decided::Fresh { asked: start(1) });
    let in_force = scheduler.in_force().unwrap();
    assert_eq!((in_force.asked, in_force.adopted), (start(1), start(4)));
    let jobs: Vec<_> = in_force.shares.iter().map(|(jobs, _)| jobs.first()).collect();
    assert_eq!(jobs, [stays, comes]);
    assert!(scheduler.mechanism().unwrap().has_changed());
    permits.send(Permit::Decide).unwrap();
    let interval = Options::default().mechanism.reset_interval;
    let later = scheduler.tick(start(4) + interval, None);
    assert_eq!(later.decided, Decided::Fresh { asked: start(4) + interval });
    let jobs: Vec<_> = scheduler.in_force().unwrap().shares.iter().map(|(jobs, _)| jobs.first()).collect();
    assert_eq!(jobs, [stays, comes, third]);
}

#[test]
fn a_late_decision_without_a_job_left_is_dropped() {
    let (permits, policy) = gated();
    let mut scheduler = scheduler("v100=1,k80=1", policy);
    let goes = scheduler.submit_as("goes", job(2.0, 1.0)).unwrap();
    assert_eq!(scheduler.tick(start(0), NOT_AT_ALL).decided, Decided::Late { since: start(0) });
    scheduler.finish(goes);
    scheduler.submit_as("comes", job(2.0, 1.0)).unwrap();
    permits.send(Permit::Decide).unwrap();
    permits.send(Permit::Decide).unwrap();
    let round = scheduler.tick(start(1), None);
    assert_eq!(round.decided, Decided::Fresh { asked: start(1) });
    assert_eq!(held(&round).len(), 1);
}

#[test]
fn a_decision_that_never_ends_holds_nobody_up() {
    let (permits, policy) = gated();
    let mut scheduler = scheduler("v100=1,k80=1", policy);
    let ids = [0, 1, 2].map(|_| scheduler.submit(job(2.0, 1.0)).unwrap());
    let mut has_run = [false; 3];
    for number in 0..20 {
        let round = scheduler.tick(start(number), NOT_AT_ALL);
        assert_eq!(round.decided, Decided::Late { since: start(0) });
        assert_eq!(round.leases.len(), 2, "no worker idles");
        for lease in &round.leases {
            has_run[ids.iter().position(|id| lease.jobs.contains(*id)).unwrap()] = true;
        }
        run(&mut scheduler, &round);
    }
    assert!(has_run[0] && has_run[1]);
    drop(scheduler);
    drop(permits);
}

#[test]
fn a_decision_that_fails_leaves_the_last_in_force() {
    for deadline in [None, LONG] {
        let (permits, policy) = gated();
        let mut scheduler = scheduler("v100=1,k80=1", policy);
        scheduler.submit_as("stays", job(2.0, 1.0)).unwrap();
        permits.send(Permit::Decide).unwrap();
        let before = held(&scheduler.tick(start(0), deadline))[0].1.to_owned();
        scheduler.submit_as("comes", job(2.0, 1.0)).unwrap();
        permits.send(Permit::Fail).unwrap();
        let round = scheduler.tick(start(1), deadline);
        let Decided::Failed { error } = &round.decided else { panic!("{:?}", round.decided) };
        assert_eq!(error.to_string(), "policy `gated` cannot decide: told to fail");
        assert_eq!(round.leases.len(), 2);
        assert!(held(&round).contains(&("stays".to_owned(), before.as_str())));
        assert_eq!(scheduler.in_force().unwrap().asked, start(0));
        permits.send(Permit::Decide).unwrap();
        assert_eq!(scheduler.tick(start(2), deadline).decided, Decided::Fresh { asked: start(2) });
    }
}

#[test]
fn a_policy_that_panics_on_its_thread_has_failed_and_is_asked_again() {
    let (permits, policy) = gated();
    let mut scheduler = scheduler("v100=1", policy);
    scheduler.submit(job(2.0, 1.0)).unwrap();
    permits.send(Permit::Panic).unwrap();
    let round = scheduler.tick(start(0), LONG);
    let Decided::Failed { error } = &round.decided else { panic!("{:?}", round.decided) };
    assert_eq!(error.to_string(), "policy `gated` failed: it panicked: told to panic");
    permits.send(Permit::Decide).unwrap();
    assert_eq!(scheduler.tick(start(1), LONG).decided, Decided::Fresh { asked: start(1) });
}

#[test]
fn workers_that_are_down_are_not_leased() {
    let policy = Catalog::embedded().policy("max_min_fairness_perf").unwrap();
    let mut scheduler = scheduler("v100=2", policy);
    for _ in 0..2 {
        scheduler.submit(job(2.0, 1.0)).unwrap();
    }
    let [first, second] = [0, 1].map(WorkerId::from_index);
    let leased = |round: &Round| {
        let mut workers: Vec<_> = round.leases.iter().flat_map(|lease| lease.workers.clone()).collect();
        workers.sort_unstable();
        workers
    };
    assert_eq!(leased(&scheduler.tick(start(0), None)), [first, second]);
    scheduler.set_up(first, false).unwrap();
    let round = scheduler.tick(start(1), None);
    assert_eq!(leased(&round), [second]);
    assert_eq!(round.preempted.len(), 2, "the first job moves, so that both lose their workers");
    scheduler.set_up(second, false).unwrap();
    assert_eq!(leased(&scheduler.tick(start(2), None)), []);
    scheduler.set_up(first, true).unwrap();
    assert_eq!(leased(&scheduler.tick(start(3), None)), [first]);
    let error = scheduler.set_up(WorkerId::from_index(2), true).unwrap_err();
    assert!(matches!(error, ReportError::UnknownWorker { .. }), "{error}");
}

#[test]
fn reports_count_whenever_they_come() {
    let policy = Catalog::embedded().policy("max_min_fairness_perf").unwrap();
    let mut scheduler = scheduler("v100=1", policy);
    let (one, other) = (scheduler.submit(job(2.0, 1.0)).unwrap(), scheduler.submit(job(2.0, 1.0)).unwrap());
    let round = scheduler.tick(start(0), None);
    let holder = round.leases[0].jobs;
    assert_eq!(scheduler.tick(start(1), None).leases[0].jobs, holder, "nothing was reported: it goes on");
    run(&mut scheduler, &round);
    assert_ne!(scheduler.tick(start(2), None).leases[0].jobs, holder, "the late report counts");
    // More steps than the job has: it is still here, so it has one to go.
    let worker_type = round.leases[0].worker_type;
    let report = |jobs, time: f64, steps: f64| Received {
        jobs,
        worker_type,
        time: Seconds::new(time),
        steps: [Steps::new(steps), Steps::ZERO],
    };
    scheduler.record(report(Combination::single(one), 360.0, 1e9)).unwrap();
    let problem = scheduler.problem().unwrap();
    assert_eq!(problem.jobs().iter().next().unwrap().steps_remaining, Steps::new(1.0));
    scheduler.finish(one);
    assert!(scheduler.record(report(Combination::pair(one, other), 360.0, 1.0)).is_ok(), "gone, but known");
    let error = scheduler.record(report(Combination::single(JobId::from_index(2)), 1.0, 1.0)).unwrap_err();
    assert!(matches!(error, ReportError::UnknownJob { .. }), "{error}");
    let error = scheduler.record(report(Combination::single(other), f64::NAN, 1.0)).unwrap_err();
    assert!(matches!(error, ReportError::Value { field: "time", .. }), "{error}");
}

#[test]
fn weights_of_owners_count_from_the_next_decision_on() {
    let policy = Catalog::embedded().policy("max_min_fairness_hierarchical_perf").unwrap();
    let mut scheduler = scheduler("v100=1", policy);
    let owner = |name: &str, weight: f64, parent| Entity {
        name: name.to_owned(),
        weight,
        inner: InnerRule::Fairness,
        parent,
    };
    let heavy = scheduler.declare(owner("heavy", 3.0, None)).unwrap();
    let below = scheduler.declare(owner("below", 1.0, Some(heavy))).unwrap();
    assert!(scheduler.declare(owner("heavy", 3.0, Some(below))).is_err(), "a circle");
    assert!(scheduler.declare(owner("light", 0.0, None)).is_err());
    let ids = ["heavy", "light"].map(|name| scheduler.submit(job(2.0, 1.0).entity(name)).unwrap());
    let shares = |scheduler: &Scheduler| {
        let in_force = scheduler.in_force().unwrap();
        ids.map(|id| {
            let of_job = |(jobs, _): &&(Combination<JobId>, Vec<f64>)| *jobs == Combination::single(id);
            in_force.shares.iter().find(of_job).unwrap().1[0]
        })
    };
    scheduler.tick(start(0), None);
    assert!(shares(&scheduler).iter().zip([0.75, 0.25]).all(|(found, share)| (found - share).abs() < 1e-6));
    scheduler.declare(owner("heavy", 1.0, None)).unwrap();
    scheduler.tick(Seconds::new(2_000.0), None);
    assert!(shares(&scheduler).iter().all(|found| (found - 0.5).abs() < 1e-6));
}

#[test]
fn options_out_of_range_and_clusters_that_do_not_fit_are_refused() {
    let made = |cluster: &str, options| {
        Scheduler::new(&cluster.parse().unwrap(), throughputs(), Box::new(Isolated::default()), options)
    };
    let options = Options::default().with_round_length(Seconds::ZERO);
    let error = made("v100=1", options).unwrap_err();
    assert_eq!(error.to_string(), "round_length is 0, expected a finite number of seconds above 0");
    let error = made("abacus=1", Options::default()).unwrap_err();
    assert!(matches!(error, SetupError::Cluster(_)), "{error}");
}

/// A scheduler may be owned by any thread.
#[test]
fn a_scheduler_can_be_sent() {
    fn is_send<T: Send>() {}
    is_send::<Scheduler>();
}
