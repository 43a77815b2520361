//! Servers that are not heard of.

use std::collections::BTreeMap;

use apportion::scheduler::{Options, Scheduler};
use apportion::{Catalog, Job, Seconds, StepsPerSecond, Throughputs};
use apportion_live::agent::Server;
use apportion_live::core::{Core, Effect, Input, Request, Settings, Stored, Submission};
use apportion_live::protocol::{JobNumber, Program};

use super::node::{Checkpoints, Node};
use super::random::Random;
use super::small::GOOD;

const ROUND: f64 = 360.0;
const STEP: f64 = 0.25;

/// A scheduler of three workers to which no server has joined.
fn core() -> Core {
    let options =
        Options::corrected().with_round_length(Seconds::new(ROUND)).with_reset_interval(Seconds::ZERO);
    let policy = Catalog::embedded().policy("max_min_fairness_perf").unwrap();
    let cluster = "v100=3".parse().unwrap();
    let scheduler =
        Scheduler::new(&cluster, Throughputs::embedded("osdi20").unwrap(), policy, options).unwrap();
    let stored = Stored { epoch: 1, ..Stored::default() };
    Core::open(settings(), scheduler, stored, Seconds::ZERO).unwrap().0
}

fn settings() -> Settings {
    Settings { decision_limit: None, ..Settings::of_round(Seconds::new(ROUND)) }
}

fn submission() -> Input {
    let job = Job::new("my own").steps(100_000).throughput("v100", StepsPerSecond::new(1.0));
    let program = Program { command: vec!["train".into()], directory: None, environment: BTreeMap::new() };
    let submission = Submission { name: None, user: None, key: None, job, program };
    Input::Request(1, Request::Submit(Box::new(submission)))
}

#[test]
fn jobs_that_are_cancelled_before_a_server_comes_are_forgotten() {
    let mut core = core();
    let mut sizes = Vec::new();
    // As many are kept for questions after the first 2,000 as after the next ones, and their numbers have as many digits.
    for number in 0..6_000 {
        for input in [submission(), Input::Request(2, Request::Cancel(JobNumber(number)))] {
            let step = core.take(Seconds::new(1.0), input);
            assert!(matches!(step.effects[..], [Effect::Answer(_, Ok(_))]), "{step:?}");
        }
        if number >= 1_999 && number % 1_000 == 999 {
            sizes.push(format!("{core:?}").len());
        }
    }
    assert!(sizes.iter().all(|size| *size < sizes[0] + 100), "{sizes:?}");
}

#[test]
fn a_lost_lease_is_over_in_time_though_reports_never_cease() {
    let (mut core, settings) = (core(), settings());
    let mut random = Random::new(1);
    let node = |name: &str| {
        let server = Server { name: name.into(), worker_type: "v100".into(), n_workers: 1 };
        Node::new(server, &mut random)
    };
    let mut nodes: Vec<_> = ["a", "b", "c"].map(node).into();
    let mut manners = BTreeMap::new();
    let mut checkpoints = Checkpoints::new();
    let mut now = 0.0;
    let mut lost = None;
    while now < 3.0 * ROUND && core.counters().unconfirmed == 0 {
        let since = now;
        now += STEP;
        let mut inputs = Vec::new();
        for (place, node) in nodes.iter_mut().enumerate() {
            node.go_on((now, since), &manners, &mut checkpoints, &mut random);
            inputs.extend((Some(place) != lost).then(|| node.report(now, STEP)).flatten().map(Input::Report));
        }
        if manners.len() < 2 && now > 1.0 {
            manners.insert(JobNumber(manners.len() as u64), GOOD);
            inputs.push(submission());
        }
        if now > 100.0 && lost.is_none() {
            lost = nodes.iter().position(|node| !node.processes.is_empty());
        }
        // A driver wakes the core only if no other input comes.
        if core.wake_at().get() <= now {
            inputs.push(Input::Wake);
        }
        for input in inputs {
            for effect in core.take(Seconds::new(now), input).effects {
                if let Effect::Send(name, orders) = effect {
                    let node = nodes.iter_mut().find(|node| node.server.name == name).unwrap();
                    node.take(now, &orders, &checkpoints);
                }
            }
        }
    }
    // The last lease of the run ends with the round in which its server was lost; then grace and slack pass.
    let over = ROUND + settings.grace.get() + settings.slack.get();
    assert!(core.counters().unconfirmed > 0 && now <= over + 5.0, "its run counted until {now}, not {over}");
}
