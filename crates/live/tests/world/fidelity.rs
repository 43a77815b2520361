//! Live against simulated: the same jobs, the same policy, the same times of starting, stopping and deciding.

use std::collections::BTreeMap;

use apportion::scheduler::{Options, Scheduler};
use apportion::simulator::{self, Live, Refill, Simulation};
use apportion::workload::{Arrivals, Listed};
use apportion::{Catalog, Cluster, Job, Seconds, StepsPerSecond, Throughputs};
use apportion_live::agent::Server;
use apportion_live::core::{Core, Effect, Input, Record, Request, Settings, Step, Stored, Submission};
use apportion_live::protocol::{JobNumber, Program};

use super::node::{Checkpoints, Manners, Node};
use super::random::Random;

const ROUND: f64 = 60.0;
const STEP: f64 = 0.25;
const START_UP: f64 = 3.0;
const STOP: f64 = 2.0;

/// The largest relative difference of average completion times.
const DIFFERENCE_MAX: f64 = 0.05;

/// Random jobs with at most `spacing` seconds between two arrivals. For each job: its speed on the fast worker type in steps/s, the
/// job itself, and its speed on the slow type divided by that on the fast one.
fn jobs(random: &mut Random, spacing: f64) -> Vec<(f64, Job, f64)> {
    let mut at = 0.0;
    let mut jobs = Vec::new();
    for _ in 0..24 {
        let speed = 1.0 + 9.0 * random.unit();
        let ratio = 0.2 + 0.7 * random.unit();
        let steps = (speed * 60.0 * (1.0 + 12.0 * random.unit())) as u32;
        let job = Job::new("my own")
            .steps(steps)
            .scale_factor([1, 1, 1, 2][random.below(4)])
            .arrival(Seconds::new(at))
            .throughput("v100", StepsPerSecond::new(speed))
            .throughput("k80", StepsPerSecond::new(speed * ratio));
        jobs.push((speed, job, ratio));
        at += spacing * random.unit();
    }
    jobs
}

fn cluster() -> Cluster {
    let cluster: Cluster = "v100=4,k80=2".parse().unwrap();
    cluster.with_workers_per_server("v100", 4).unwrap().with_workers_per_server("k80", 2).unwrap()
}

/// The average completion time in the simulator, in s.
fn simulated(policy: &str, jobs: Vec<Job>, live: Live) -> f64 {
    let reset = Seconds::ZERO;
    let mut options =
        simulator::Options::corrected().with_round_length(Seconds::new(ROUND)).with_reset_interval(reset);
    options.live = live;
    let arrivals: Box<dyn Arrivals> = Box::new(Listed::new(jobs));
    let policy = Catalog::embedded().policy(policy).unwrap();
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let mut simulation = Simulation::new((&cluster(), throughputs), arrivals, policy, options).unwrap();
    let mut at = BTreeMap::new();
    simulation.run(&mut Completions(&mut at), &simulator::Limits::default()).unwrap();
    at.values().sum::<f64>() / at.len() as f64
}

/// Completion times of jobs, in s.
#[derive(Debug)]
struct Completions<'a>(&'a mut BTreeMap<u32, f64>);

impl simulator::Observer for Completions<'_> {
    fn observe(&mut self, event: &simulator::Event<'_>) {
        if let simulator::Event::Completion { at, id, job, .. } = event {
            let id = apportion::index::Id::index(*id) as u32;
            self.0.insert(id, (*at - job.arrival).get());
        }
    }
}

/// The average completion time of the live scheduler on pretend nodes, in s.
fn live(policy: &str, jobs: &[(f64, Job, f64)], look_ahead: f64) -> f64 {
    let options =
        Options::corrected().with_round_length(Seconds::new(ROUND)).with_reset_interval(Seconds::ZERO);
    let policy = Catalog::embedded().policy(policy).unwrap();
    let scheduler =
        Scheduler::new(&cluster(), Throughputs::embedded("osdi20").unwrap(), policy, options).unwrap();
    let mut settings = Settings::of_round(Seconds::new(ROUND));
    settings.decision_limit = None;
    settings.look_ahead = Seconds::new(look_ahead);
    let stored = Stored { epoch: 1, ..Stored::default() };
    let (mut core, _) = Core::open(settings, scheduler, stored, Seconds::ZERO).unwrap();
    let mut random = Random::new(7);
    let server = |name: &str, n_workers| Server { name: name.into(), worker_type: name.into(), n_workers };
    let mut nodes = [Node::new(server("v100", 4), &mut random), Node::new(server("k80", 2), &mut random)];
    let mut manners: BTreeMap<JobNumber, Manners> = BTreeMap::new();
    let mut checkpoints = Checkpoints::new();
    let mut waiting = jobs.iter().zip(0u64..).peekable();
    let mut took = BTreeMap::new();
    // Servers are there before the first job.
    let mut now = -2.0;
    while took.len() < jobs.len() {
        let since = now;
        now += STEP;
        let clock = Seconds::new(now + 2.0);
        let mut steps: Vec<Step> = Vec::new();
        for node in &mut nodes {
            node.go_on((now, since), &manners, &mut checkpoints, &mut random);
            if let Some(report) = node.report(now, 0.5) {
                steps.push(core.take(clock, Input::Report(report)));
            }
        }
        while let Some(((speed, job, ratio), number)) =
            waiting.next_if(|((_, job, _), _)| job.arrival.get() <= now)
        {
            let (slow_speed, speed) = (speed * ratio, *speed);
            let (start_up, stop_time) = (START_UP, STOP);
            let own = Manners {
                speaks: true,
                is_deaf: false,
                failure_rate: 0.0,
                speed,
                slow_speed,
                start_up,
                stop_time,
            };
            manners.insert(JobNumber(number), own);
            let program =
                Program { command: vec!["train".into()], directory: None, environment: BTreeMap::new() };
            let submission = Submission { name: None, user: None, key: None, job: job.clone(), program };
            steps.push(core.take(clock, Input::Request(number, Request::Submit(Box::new(submission)))));
        }
        if core.wake_at() <= clock {
            steps.push(core.take(clock, Input::Wake));
        }
        for step in steps {
            for record in &step.records {
                if let Record::Job(job) = record
                    && let Some(outcome) = &job.outcome
                {
                    took.insert(job.number, (outcome.at - job.job.arrival).get());
                }
            }
            for effect in step.effects {
                if let Effect::Send(name, orders) = effect {
                    let node = nodes.iter_mut().find(|node| node.server.name == name).unwrap();
                    node.take(now, &orders, &checkpoints);
                }
            }
        }
    }
    took.values().sum::<f64>() / took.len() as f64
}

#[test]
fn a_simulation_foretells_a_live_cluster() {
    for (policy, look_ahead, spacing) in [
        ("fifo", 5.0, 60.0),
        ("fifo", 5.0, 400.0),
        ("max_min_fairness_perf", 5.0, 60.0),
        ("max_min_fairness_perf", 10.0, 60.0),
        ("max_min_fairness_perf", 10.0, 400.0),
    ] {
        let jobs = jobs(&mut Random::new(3), spacing);
        let plain: Vec<Job> = jobs.iter().map(|(_, job, _)| job.clone()).collect();
        let options = Live {
            look_ahead: Seconds::new(look_ahead),
            start_up: Seconds::new(START_UP),
            stop: Seconds::new(STOP),
            refill: Refill::AtOnce,
            measured: false,
        };
        let simulated = simulated(policy, plain, options);
        let live = live(policy, &jobs, look_ahead);
        let difference = (live / simulated - 1.0).abs();
        assert!(difference <= DIFFERENCE_MAX, "{policy}: {live} s live, {simulated} s simulated");
    }
}
